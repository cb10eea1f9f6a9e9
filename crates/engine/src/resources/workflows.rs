//! Operations on workflows.

use domain::ids::{WorkflowId, WorkflowIdentifier};
use domain::page::Page;
use domain::preference::SubscriberPreference;
use domain::time::Timestamp;
use domain::translation::Resource;
use domain::workflow::{StepIds, Workflow, WorkflowCreate, WorkflowQuery, WorkflowUpdate};
use store::{List, ReadRecords, Snapshot, Table, Transaction, WriteRecords, layout};

use crate::resources::cascade::Cascade;
use crate::resources::translations;
use crate::{Entity, Error, Result, Scope};

/// The workflows of an environment. A workflow is named by its identifier, its id or its slug.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use serde_json::{from_value, json};
/// # let engine = tidings::Engine::in_memory();
/// # let env = engine.organization("acme".try_into()?).development()?;
/// let greeting = env.workflows().create(from_value(json!({
///     "workflowId": "greeting",
///     "name": "Greeting",
///     "active": true,
///     "steps": [{ "type": "in_app", "template": { "body": "Hello {{ payload.name }}!" } }],
/// }))?)?;
/// assert_eq!(env.workflows().get(&greeting.slug())?, greeting);
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
    /// [`Error::Invalid`] with the way to the field, if a step cannot be run or a template does
    /// not compile; [`Error::Conflict`], if the identifier is taken.
    pub fn create(&self, create: WorkflowCreate) -> Result<Workflow> {
        let home = &self.scope.home;
        self.scope.write("workflows.create", &create, |txn, now| {
            let (id, step_ids) = (self.scope.id(now), || self.step_ids(now));
            let workflow = Workflow::new(id, home, create.clone(), step_ids, now)?;
            let identifier = workflow.identifier();
            let key = layout::workflow_identifier(home.environment_id, identifier);
            if txn.contains(Table::WorkflowIdentifiers, &key)? {
                return Err(Error::conflict(Entity::Workflow, identifier));
            }
            txn.insert(&workflow)?;
            self.translate(txn, &workflow, now)?;
            Ok(workflow)
        })
    }

    /// The workflow of that name.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is none.
    pub fn get(&self, name: &str) -> Result<Workflow> {
        self.scope.read(|snapshot| get(self.scope, snapshot, name))
    }

    /// A page of the workflows, newest first unless the query says otherwise.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], if the page that the query asks for cannot be one.
    pub fn list(&self, query: &WorkflowQuery) -> Result<Page<Workflow>> {
        let request =
            query.page.check(self.scope.list_id(Table::Workflows), WorkflowQuery::ORDERS)?;
        let prefix = layout::workflows(self.scope.environment_id());
        let shows = |workflow: &Workflow| query.shows(workflow);
        let list = List::new(Table::Workflows, [prefix]).of_records(query.is_narrow(), &shows);
        self.scope.read(|snapshot| Ok(snapshot.page(&list, &request)?))
    }

    /// Changes a workflow. Its steps are replaced as a whole; those that name their id stay the
    /// same steps. What is on its way says what the workflow says when it is sent.
    ///
    /// # Errors
    ///
    /// As [`create`](Self::create), and [`Error::NotFound`], if there is no such workflow.
    pub fn update(&self, name: &str, update: WorkflowUpdate) -> Result<Workflow> {
        self.scope.write("workflows.update", (name, &update), |txn, now| {
            let before = get(self.scope, &*txn, name)?;
            let after = before.updated(update.clone(), || self.step_ids(now), now)?;
            txn.replace(&before, &after)?;
            self.translate(txn, &after, now)?;
            Ok(after)
        })
    }

    /// Deletes a workflow, with what subscribers said about it and with its translations. What is
    /// on its way is not sent any more; the activity list keeps what has happened.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such workflow.
    pub fn delete(&self, name: &str) -> Result<()> {
        self.scope.write_in_steps("workflows.delete", name, (), |txn, _, ()| {
            let workflow = get(self.scope, &*txn, name)?;
            let mut cascade = Cascade::new(txn);
            let preferences = layout::workflow_preferences(workflow.environment_id, workflow.id);
            cascade.remove::<SubscriberPreference>(Table::WorkflowPreferences, &preferences)?;
            let resource = Resource::workflow(workflow.identifier());
            translations::remove_group(&mut cascade, workflow.environment_id, &resource)?;
            cascade.then(|txn| Ok(txn.remove(&workflow)?))
        })
    }

    fn translate(
        &self,
        txn: &mut dyn Transaction,
        workflow: &Workflow,
        now: Timestamp,
    ) -> Result<()> {
        if !workflow.is_translation_enabled {
            return Ok(());
        }
        let resource = Resource::workflow(workflow.identifier());
        translations::ensure_group(&self.scope.home, txn, resource, now)
    }

    fn step_ids(&self, now: Timestamp) -> StepIds {
        (self.scope.id(now), self.scope.id(now))
    }
}

/// The workflow of that name.
pub(crate) fn get(scope: &Scope, snapshot: &dyn Snapshot, name: &str) -> Result<Workflow> {
    find(scope, snapshot, name)?.ok_or_else(|| Error::not_found(Entity::Workflow, name))
}

/// Notes that a workflow is not translated any more.
pub(crate) fn stop_translating(
    scope: &Scope,
    txn: &mut dyn Transaction,
    name: &str,
    now: Timestamp,
) -> Result<()> {
    let before = get(scope, &*txn, name)?;
    Ok(txn.replace(&before, &before.untranslated(now))?)
}

/// The workflow of that name, if there is one. An identifier that looks like an id or a slug is
/// an identifier first.
pub(crate) fn find(scope: &Scope, snapshot: &dyn Snapshot, name: &str) -> Result<Option<Workflow>> {
    if let Ok(identifier) = WorkflowIdentifier::new(name)
        && let Some(workflow) = find_by_identifier(scope, snapshot, &identifier)?
    {
        return Ok(Some(workflow));
    }
    let id = name.parse().ok().or_else(|| Workflow::id_in_slug(name));
    id.map_or(Ok(None), |id| find_by_id(scope, snapshot, id))
}

/// The workflow with that identifier, if there is one.
pub(crate) fn find_by_identifier(
    scope: &Scope,
    snapshot: &dyn Snapshot,
    identifier: &WorkflowIdentifier,
) -> Result<Option<Workflow>> {
    let key = layout::workflow_identifier(scope.environment_id(), identifier);
    Ok(snapshot.find_by(Table::WorkflowIdentifiers, &key)?)
}

/// The workflow of that id, if there is one.
pub(crate) fn find_by_id(
    scope: &Scope,
    snapshot: &dyn Snapshot,
    id: WorkflowId,
) -> Result<Option<Workflow>> {
    Ok(snapshot.find(&layout::workflow(scope.environment_id(), id))?)
}
