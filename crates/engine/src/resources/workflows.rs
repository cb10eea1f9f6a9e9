//! Operations on workflows.

mod declare;
mod pause;

use std::sync::Arc;

use domain::ids::{WorkflowId, WorkflowIdentifier, WorkflowRef};
use domain::page::{ListKind, Page};
use domain::preview::Preview;
use domain::step::Rendered;
use domain::translation::Resource;
use domain::unsubscribe::LinkTo;
use domain::workflow::{StepIds, Workflow, WorkflowCreate, WorkflowQuery, WorkflowUpdate};
use store::{Key, List, ReadRecords, Step, WriteRecords, layout};

use crate::damage;
use crate::pipeline::texts;
use crate::resources::cascade::{Cascade, Deleting, Removed};
use crate::resources::{contexts, references, subscribers, translation_groups, unsubscribe};
use crate::tx::{Tx, View};
use crate::{Entity, Error, Result, Scope};

/// The workflows of an environment. A workflow is named by its identifier, its id or its slug.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tidings::filter::Filter;
/// use tidings::step::Step;
/// use tidings::workflow::WorkflowCreate;
///
/// # let engine = tidings::Engine::in_memory();
/// # let env = engine.organization("acme")?.development()?;
/// let create = WorkflowCreate::new("greeting", "Greeting")?
///     .step(Step::in_app("Hello {{ payload.name }}!")?)
///     .step(Step::sms("Hello!")?.only_if(Filter::payload("urgent").equals(true)));
/// let greeting = env.workflows().create(&create)?;
/// assert_eq!(env.workflows().get(greeting.id)?, greeting);
/// assert_eq!(env.workflows().get(greeting.slug())?, greeting);
/// assert_eq!(env.workflows().get(greeting.identifier())?, greeting);
///
/// // JSON is the second way in.
/// let update = tidings::json::read(br#"{ "tags": ["welcome"] }"#)?;
/// assert_eq!(env.workflows().update("greeting", &update)?.tags, ["welcome"]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Workflows<'s> {
    pub(crate) scope: &'s Scope,
}

impl Workflows<'_> {
    /// Creates a workflow.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] with the path of the field, if a step cannot be run or a template does
    /// not compile; [`Error::Conflict`], if the identifier is taken; [`Error::BeingDeleted`], if the
    /// [deletion](Self::delete) of its workflow has begun.
    pub fn create(&self, create: &WorkflowCreate) -> Result<Workflow> {
        self.scope.write("workflows.create", create, |tx| {
            tx.limits().check_data(create.data.as_ref())?;
            let step_ids = || step_ids(tx);
            let workflow = Workflow::new(tx.id(), tx.home(), create.clone(), step_ids, tx.now())?;
            let identifier = workflow.identifier();
            let key: Key<Workflow> = layout::by_identifier(tx.environment_id(), identifier);
            if tx.contains(&key)? {
                return Err(taken(tx, identifier)?);
            }
            tx.insert(&workflow)?;
            translate(tx, &workflow)?;
            Ok(workflow)
        })
    }

    /// The workflow of that name.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is none.
    pub fn get(&self, name: impl Into<WorkflowRef>) -> Result<Workflow> {
        let name = name.into();
        self.scope.read("workflows.get", |view| get(view, name.as_str()).map(Arc::unwrap_or_clone))
    }

    /// The workflow of that name. Returns `None` if there is none.
    pub fn find(&self, name: impl Into<WorkflowRef>) -> Result<Option<Workflow>> {
        let name = name.into();
        self.scope
            .read("workflows.find", |view| Ok(find(view, name.as_str())?.map(Arc::unwrap_or_clone)))
    }

    /// A page of the workflows, newest first by default.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], if the limit, the cursors or the order of the query cannot be used.
    pub fn list(&self, query: &WorkflowQuery) -> Result<Page<Workflow>> {
        let request =
            query.page.check(self.scope.list_id(ListKind::Workflows), WorkflowQuery::ORDERS)?;
        let prefix = layout::workflows(self.scope.environment_id());
        let matches = |workflow: &Workflow| query.matches(workflow);
        let list = List::new([prefix]).of_records(query.is_filtered(), &matches);
        self.scope.read("workflows.list", |view| Ok(view.page(&list, &request)?))
    }

    /// Changes a workflow. Steps are replaced as a whole, and matched to existing steps as in
    /// [`upsert`](Self::upsert). Waiting messages use the changed workflow.
    ///
    /// # Errors
    ///
    /// As [`create`](Self::create), and [`Error::NotFound`], if there is no such workflow.
    pub fn update(
        &self,
        name: impl Into<WorkflowRef>,
        update: &WorkflowUpdate,
    ) -> Result<Workflow> {
        self.update_of(name.into().as_str(), update)
    }

    fn update_of(&self, name: &str, update: &WorkflowUpdate) -> Result<Workflow> {
        self.scope.write("workflows.update", (name, update), |tx| {
            tx.limits().check_data(update.data.as_set())?;
            let before = get(tx, name)?;
            let after = before.updated(update.clone(), || step_ids(tx), tx.now())?;
            tx.replace(&*before, &after)?;
            translate(tx, &after)?;
            Ok(after)
        })
    }

    /// Renders a step of a workflow for a subscriber and a payload. Nothing is written.
    ///
    /// Neither conditions nor preferences keep the step from being rendered.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use serde_json::json;
    /// use tidings::content::MessageContent;
    /// use tidings::preview::Preview;
    /// use tidings::step::Step;
    /// use tidings::subscriber::SubscriberCreate;
    /// use tidings::workflow::WorkflowCreate;
    ///
    /// # let engine = tidings::Engine::in_memory();
    /// # let env = engine.organization("acme")?.development()?;
    /// let step = Step::sms("Order {{ payload.order }} is on its way")?.name("text");
    /// env.workflows().create(&WorkflowCreate::new("order-shipped", "Order shipped")?.step(step))?;
    /// env.subscribers().create(&SubscriberCreate::new("ada")?)?;
    ///
    /// let preview = Preview::new("text", "ada")?.payload(json!({ "order": "A-1001" }))?;
    /// let rendered = env.workflows().preview("order-shipped", &preview)?;
    /// assert_eq!(rendered.content, MessageContent::Text("Order A-1001 is on its way".into()));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such workflow or subscriber; [`Error::Invalid`], if the
    /// workflow has no such step, if the payload is too large or its schema does not allow it, or if a
    /// template cannot be rendered, with its line.
    pub fn preview(&self, name: impl Into<WorkflowRef>, preview: &Preview) -> Result<Rendered> {
        let name = name.into();
        self.scope.read("workflows.preview", |view| {
            self.scope.engine.parts.settings.limits.check_preview(preview)?;
            let workflow = get(view, name.as_str())?;
            let subscriber = subscribers::get(view, &preview.subscriber_id)?;
            let named = contexts::named(preview.context.as_ref())?;
            let contexts = contexts::as_stored(view, &named)?;
            let reader = Some(&subscriber);
            let texts = texts::of_workflow(view, &workflow, reader)?;
            let choice = preview.layout(&workflow, &subscriber, &contexts);
            let layout = texts::chosen_layout(view, choice, &workflow, reader)?;
            let to = LinkTo {
                subscriber: subscriber.id,
                contexts: &contexts::keys(&named),
                channel: preview.channel(&workflow),
                since: self.scope.engine.now(),
            };
            let link = unsubscribe::link(view, &workflow, to)?;
            let shown = (texts.as_ref(), layout.as_frame_ref(), link.as_ref());
            let zone = self.scope.engine.parts.settings.default_timezone;
            Ok(preview.render(&workflow, &subscriber, &contexts, shown, zone)?)
        })
    }

    /// Deletes a workflow with its preferences and translations. Its waiting messages are not sent.
    /// The activity list keeps its notifications.
    ///
    /// More than 500 dependents are removed in several transactions. From the first one on, nothing
    /// can be done with the workflow and nothing of it goes on, so that no message is sent without
    /// the preferences that are gone. After an interruption the workflow is listed as `deleted`, its
    /// identifier is taken, and another call goes on.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such workflow.
    pub fn delete(&self, name: impl Into<WorkflowRef>) -> Result<()> {
        self.delete_of(name.into().as_str())
    }

    fn delete_of(&self, name: &str) -> Result<()> {
        self.scope.write_deletion("workflows.delete", name, |tx, before| {
            let found = find_any(tx, name)?;
            if before.is_over(found.as_ref().map(|workflow| workflow.id)) {
                return Ok(Step::Done(()));
            }
            let workflow = references::expect::<Workflow, _>(tx, name, found)?;
            Ok(Deleting::after(remove(tx, &workflow, before.removed())?, workflow.id))
        })
    }
}

/// The workflow of that name.
pub(crate) fn get(view: &dyn View, name: &str) -> Result<Arc<Workflow>> {
    references::expect::<Workflow, _>(view, name, find(view, name)?)
}

/// The workflow with that identifier.
pub(crate) fn get_by_identifier(
    view: &dyn View,
    identifier: &WorkflowIdentifier,
) -> Result<Arc<Workflow>> {
    let found = find_by_identifier(view, identifier)?;
    references::expect::<Workflow, _>(view, identifier.as_str(), found)
}

/// The workflow of that name. Returns `None` if there is none.
pub(crate) fn find(view: &dyn View, name: &str) -> Result<Option<Arc<Workflow>>> {
    Ok(usable(find_any(view, name)?))
}

// The workflow of that name, also if its deletion has begun.
fn find_any(view: &dyn View, name: &str) -> Result<Option<Arc<Workflow>>> {
    references::find(view.environment_id(), name, |key| known(view, key))
}

/// The ids of the workflows with these identifiers, in the order of `names`. The workflows are not read.
pub(crate) fn ids_of(view: &dyn View, names: &[WorkflowRef]) -> Result<Vec<Option<WorkflowId>>> {
    let environment = view.environment_id();
    let identifiers: Vec<_> =
        names.iter().map(|name| WorkflowIdentifier::new(name.as_str()).ok()).collect();
    let of_one = |identifier| layout::by_identifier::<Workflow>(environment, identifier);
    let keys: Vec<_> = identifiers.iter().flatten().map(of_one).collect();
    let mut targets = view.targets(&keys)?.into_iter();
    let mut next = || layout::workflow_of(&targets.next()??);
    let ids = identifiers.iter().map(|identifier| identifier.as_ref().and_then(|_| next()));
    Ok(ids.map(|found| found.filter(|found| found.0 == environment).map(|found| found.1)).collect())
}

/// The workflow with that identifier. Returns `None` if there is none.
pub(crate) fn find_by_identifier(
    view: &dyn View,
    identifier: &WorkflowIdentifier,
) -> Result<Option<Arc<Workflow>>> {
    Ok(usable(known(view, &layout::by_identifier(view.environment_id(), identifier))?))
}

/// The workflow of that id. Returns `None` if there is none.
pub(crate) fn find_by_id(view: &dyn View, id: WorkflowId) -> Result<Option<Arc<Workflow>>> {
    Ok(usable(known(view, &layout::workflow(view.environment_id(), id))?))
}

/// Returns `true` if a workflow is as it was read: not paused, changed or deleted since.
pub(crate) fn is_as_read(view: &dyn View, read: &Arc<Workflow>) -> Result<bool> {
    Ok(find_by_id(view, read.id)?.is_some_and(|found| found == *read))
}

fn usable(workflow: Option<Arc<Workflow>>) -> Option<Arc<Workflow>> {
    workflow.filter(|workflow| !workflow.is_deleted())
}

// A workflow, also if its deletion has begun.
fn known(view: &dyn View, key: &Key<Workflow>) -> Result<Option<Arc<Workflow>>> {
    Ok(view.engine().parts.decoded.prepared.find(view, key)?)
}

// Removes a workflow with its dependents, up to the limit of one transaction. One that is left is
// marked.
fn remove(tx: &mut Tx<'_>, workflow: &Workflow, before: &Removed) -> Result<Step<Removed, ()>> {
    let mut cascade = Cascade::new(tx, before);
    let preferences = layout::workflow_preferences(workflow.environment_id, workflow.id);
    cascade.remove(&preferences)?;
    cascade.remove(&layout::workflow_buckets(workflow.environment_id, workflow.id))?;
    cascade.remove(&layout::workflow_slots(workflow.environment_id, workflow.id))?;
    let resource = Resource::workflow(workflow.identifier());
    translation_groups::remove(&mut cascade, workflow.environment_id, &resource)?;
    let step = cascade.then(|tx| {
        release_paused(tx, workflow)?;
        Ok(tx.remove(workflow)?)
    })?;
    if step.is_more() {
        close(tx, workflow)?;
    }
    Ok(step)
}

// Marks a workflow as being deleted: nothing can be done with it, and nothing of it goes on.
fn close(tx: &mut Tx<'_>, workflow: &Workflow) -> Result<()> {
    release_paused(tx, workflow)?;
    Ok(tx.replace(workflow, &workflow.deleted(tx.now()))?)
}

// What a paused workflow holds ends without it.
fn release_paused(tx: &mut Tx<'_>, workflow: &Workflow) -> Result<()> {
    if workflow.is_paused() { pause::release(tx, workflow) } else { Ok(()) }
}

// The refusal of an identifier in use. A workflow that cannot be read has its identifier as well.
fn taken(view: &dyn View, identifier: &WorkflowIdentifier) -> Result<Error> {
    let key = layout::by_identifier(view.environment_id(), identifier);
    let found = damage::if_readable(known(view, &key))?.flatten();
    let is_deleted = found.is_some_and(|found| found.is_deleted());
    Ok(if is_deleted {
        being_deleted(identifier)
    } else {
        Error::conflict(Entity::Workflow, identifier)
    })
}

fn being_deleted(identifier: &WorkflowIdentifier) -> Error {
    Error::being_deleted(Entity::Workflow, identifier)
}

/// Marks a workflow as not translated.
pub(crate) fn stop_translating(tx: &mut Tx<'_>, name: &str) -> Result<()> {
    let before = get(tx, name)?;
    Ok(tx.replace(&*before, &before.untranslated(tx.now()))?)
}

fn translate(tx: &mut Tx<'_>, workflow: &Workflow) -> Result<()> {
    if !workflow.is_translation_enabled {
        return Ok(());
    }
    translation_groups::ensure(tx, Resource::workflow(workflow.identifier()))
}

fn step_ids(tx: &Tx<'_>) -> StepIds {
    (tx.id(), tx.id())
}
