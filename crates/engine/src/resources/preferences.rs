//! Operations on the preferences of a subscriber.

use std::collections::HashMap;
use std::sync::Arc;

use domain::context::ContextSet;
use domain::ids::{InternalSubscriberId, SubscriberId, WorkflowId};
use domain::preference::{
    BulkRefusal, GlobalPreference, GlobalPreferenceUpdate, PreferenceScope, Preferences,
    PreferencesQuery, SubscriberPreference, UpdatedPreference, WorkflowPreference,
    WorkflowPreferenceUpdate, WorkflowPreferenceUpdates, resolve,
};
use domain::vocabulary::Channel;
use domain::workflow::Workflow;
use serde::Serialize;
use serde::de::DeserializeOwned;
use store::{ReadRecords, WriteRecords, layout};

use crate::resources::{contexts, subscribers, workflows};
use crate::tx::{Tx, View};
use crate::{Entity, Error, Rejection, Result, Scope};

/// The preferences of a subscriber.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tidings::preference::{WorkflowPreferenceUpdate, WorkflowPreferenceUpdates, PreferencesQuery};
/// use tidings::vocabulary::Channel;
/// # use tidings::{step::Step, subscriber::SubscriberCreate, workflow::WorkflowCreate};
///
/// # let engine = tidings::Engine::in_memory();
/// # let env = engine.organization("acme")?.development()?;
/// # env.workflows().create(
/// #     &WorkflowCreate::new("greeting", "Greeting")?.step(Step::in_app("Hello!")?))?;
/// # env.subscribers().create(&SubscriberCreate::new("ada")?)?;
/// let no_email = WorkflowPreferenceUpdate::new("greeting").with(Channel::Email, false);
/// env.preferences("ada")?.update_bulk(&WorkflowPreferenceUpdates::default().preference(no_email))?;
///
/// let preferences = env.preferences("ada")?.get(&PreferencesQuery::default())?;
/// assert_eq!(preferences.workflows[0].channels.email, Some(false));
/// assert_eq!(preferences.workflows[0].channels.in_app, Some(true));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SubscriberPreferences<'s> {
    pub(crate) scope: &'s Scope,
    pub(crate) subscriber: SubscriberId,
}

impl SubscriberPreferences<'_> {
    /// Returns the global preference and that of every active workflow, with all channels. Critical
    /// workflows, which no preference holds back, are there if the query asks for them. Each channel names
    /// the layer that decides. Each context set has preferences of its own. Only the schedule without
    /// contexts also holds in each context set that has none.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such subscriber; [`Error::Invalid`], if the query has more
    /// than 100 contexts.
    pub fn get(&self, query: &PreferencesQuery) -> Result<Preferences> {
        query.check()?;
        self.scope.read("preferences.get", |view| {
            let subscriber = subscribers::get(view, &self.subscriber)?;
            let said = Said::all(view, subscriber.id, &query.context_keys)?;
            let prefix = layout::workflows(view.environment_id());
            let workflows = self.scope.engine.parts.decoded.workflows.all(view, &prefix)?;
            let shown = workflows.iter().filter(|workflow| {
                workflow.active
                    && !workflow.is_deleted()
                    && query.criticality.matches(workflow.critical)
            });
            let workflows = shown.map(|workflow| said.about(workflow)).collect();
            Ok(Preferences::new(said.in_general(), workflows))
        })
    }

    /// Changes the preferences of several workflows, all or none.
    ///
    /// They count for events of exactly the contexts of the update: without contexts, for events
    /// without contexts.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] with all workflows that do not exist, or with the subscriber;
    /// [`Rejection::CriticalWorkflows`] with all critical workflows of the request;
    /// [`Error::Invalid`], if the request has no preference or more than 100, or a context is
    /// malformed.
    pub fn update_bulk(
        &self,
        update: &WorkflowPreferenceUpdates,
    ) -> Result<Vec<UpdatedPreference>> {
        self.write("preferences.update_bulk", update, |tx| {
            update.check()?;
            let named = contexts::named(update.context.as_ref())?;
            let subscriber = subscribers::get(tx, &self.subscriber)?.id;
            let changes = named_workflows(tx, update)?;
            contexts::ensure(tx, &named)?;
            let place = Place { subscriber, contexts: contexts::keys(&named) };
            let global = place.find(tx, None)?.map(|global| global.preference);
            let mut updated = Vec::with_capacity(changes.len());
            for (workflow, said) in changes {
                let workflow_id = workflow.id;
                let scope = PreferenceScope::Workflow { workflow_id };
                let now = tx.now();
                let after =
                    place.change(tx, scope, |before| before.updated_for_workflow(said, now))?;
                let specific = &after.preference;
                updated.push(UpdatedPreference::new(&workflow, global.as_ref(), specific));
            }
            Ok(updated)
        })
    }

    /// Changes the global preference. Preferences of single workflows stay.
    ///
    /// It counts for events of exactly the contexts of the update: without contexts, for events
    /// without contexts. Only a schedule without contexts also holds in each context set that has none.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such subscriber; [`Error::Invalid`], if a schedule
    /// names no day or has a span without length.
    pub fn update_global(&self, update: &GlobalPreferenceUpdate) -> Result<UpdatedPreference> {
        self.write("preferences.update_global", update, |tx| {
            update.check()?;
            let named = contexts::named(update.context.as_ref())?;
            let subscriber = subscribers::get(tx, &self.subscriber)?.id;
            contexts::ensure(tx, &named)?;
            let place = Place { subscriber, contexts: contexts::keys(&named) };
            let scope = PreferenceScope::Global { schedule: None };
            let now = tx.now();
            let after = place.change(tx, scope, |before| before.updated(update, now))?;
            Ok(general(Some(&after)).into())
        })
    }

    fn write<T: Serialize + DeserializeOwned>(
        &self,
        operation: &'static str,
        update: impl Serialize,
        body: impl FnMut(&mut Tx<'_>) -> Result<T>,
    ) -> Result<T> {
        let arguments = (&self.subscriber, update);
        self.scope.write_of(operation, &self.subscriber, arguments, body)
    }
}

// The workflows of an update, with their items.
fn named_workflows<'u>(
    view: &dyn View,
    update: &'u WorkflowPreferenceUpdates,
) -> Result<Vec<(Workflow, &'u WorkflowPreferenceUpdate)>> {
    let items = update.preferences.iter();
    let found = items.map(|item| {
        Ok(workflows::find(view, item.workflow_id.as_str())?.map(Arc::unwrap_or_clone))
    });
    update.changes(found.collect::<Result<Vec<_>>>()?).map_err(|refusal| match refusal {
        BulkRefusal::Missing(ids) => Error::none_of(Entity::Workflow, ids),
        BulkRefusal::Critical(workflows) => Rejection::CriticalWorkflows { workflows }.into(),
    })
}

/// Refuses a critical workflow, of which subscribers cannot opt out.
pub(crate) fn refuse_critical(workflow: &Workflow) -> Result<()> {
    if workflow.critical {
        let workflows = vec![workflow.identifier().to_string()];
        return Err(Rejection::CriticalWorkflows { workflows }.into());
    }
    Ok(())
}

/// Place of a subscriber's preferences for one context set.
pub(crate) struct Place {
    pub(crate) subscriber: InternalSubscriberId,
    pub(crate) contexts: ContextSet,
}

impl Place {
    /// Switches off a channel of a workflow.
    pub(crate) fn switch_off(
        &self,
        tx: &mut Tx<'_>,
        workflow: &Workflow,
        channel: Channel,
    ) -> Result<()> {
        refuse_critical(workflow)?;
        let off = WorkflowPreferenceUpdate::new(workflow.identifier().to_string());
        let off = off.with(channel, false);
        let (scope, now) = (PreferenceScope::Workflow { workflow_id: workflow.id }, tx.now());
        self.change(tx, scope, |before| before.updated_for_workflow(&off, now)).map(drop)
    }

    /// Returns `true` if the preferences admit a channel of a workflow. Conditions count as met.
    pub(crate) fn admits(
        &self,
        view: &dyn View,
        workflow: &Workflow,
        channel: Channel,
    ) -> Result<bool> {
        let (global, specific) = (self.find(view, None)?, self.find(view, Some(workflow.id))?);
        let [global, specific] =
            [&global, &specific].map(|found| found.as_ref().map(|found| &found.preference));
        Ok(resolve(workflow.layers(global, specific), channel).is_enabled())
    }

    fn find(
        &self,
        view: &dyn View,
        workflow: Option<WorkflowId>,
    ) -> Result<Option<SubscriberPreference>> {
        let environment = view.environment_id();
        let key = layout::preference(environment, self.subscriber, &self.contexts, workflow);
        Ok(view.find(&key)?)
    }

    // Stores a changed preference. An empty preference is not created, and one that becomes empty is
    // removed.
    fn change(
        &self,
        tx: &mut Tx<'_>,
        scope: PreferenceScope,
        change: impl FnOnce(&SubscriberPreference) -> SubscriberPreference,
    ) -> Result<SubscriberPreference> {
        let workflow = match scope {
            PreferenceScope::Workflow { workflow_id } => Some(workflow_id),
            PreferenceScope::Global { .. } => None,
        };
        if let Some(before) = self.find(tx, workflow)? {
            let after = change(&before);
            if after.is_empty() {
                tx.remove(&before)?;
            } else {
                tx.replace(&before, &after)?;
            }
            return Ok(after);
        }
        let (environment, contexts) = (tx.environment_id(), self.contexts.clone());
        let unsaid =
            SubscriberPreference::new(environment, self.subscriber, contexts, scope, tx.now());
        let after = change(&unsaid);
        if after != unsaid {
            tx.insert(&after)?;
        }
        Ok(after)
    }
}

/// Preferences of a subscriber for one context set.
#[derive(Debug, Default)]
struct Said {
    global: Option<SubscriberPreference>,
    workflows: HashMap<WorkflowId, SubscriberPreference>,
}

impl Said {
    fn all(
        view: &dyn View,
        subscriber: InternalSubscriberId,
        contexts: &ContextSet,
    ) -> Result<Self> {
        let prefix = layout::preferences_for(view.environment_id(), subscriber, contexts);
        let mut said = Self::default();
        for preference in view.all(&prefix)? {
            match preference.scope {
                PreferenceScope::Global { .. } => said.global = Some(preference),
                PreferenceScope::Workflow { workflow_id } => {
                    said.workflows.insert(workflow_id, preference);
                }
            }
        }
        Ok(said)
    }

    fn in_general(&self) -> GlobalPreference {
        general(self.global.as_ref())
    }

    fn about(&self, workflow: &Workflow) -> WorkflowPreference {
        let specific = self.workflows.get(&workflow.id);
        WorkflowPreference::new(
            workflow,
            self.global.as_ref().map(|global| &global.preference),
            specific.map(|specific| (&specific.preference, specific.updated_at)),
        )
    }
}

fn general(global: Option<&SubscriberPreference>) -> GlobalPreference {
    let schedule = global.and_then(SubscriberPreference::schedule).cloned();
    GlobalPreference::new(global.map(|global| &global.preference), schedule)
}
