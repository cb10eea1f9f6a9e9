//! Records that the plans of a notification depend on.

use std::sync::Arc;

use domain::context::{Context, ContextSet};
use domain::ids::{InternalSubscriberId, WorkflowId};
use domain::integration::Integration;
use domain::notification::Notification;
use domain::plan::Facts;
use domain::preference::{Preference, SubscriberPreference};
use domain::subscriber::Subscriber;
use domain::workflow::Workflow;
use store::{ReadRecords, layout};

use crate::Result;
use crate::resources::{contexts, integrations, workflows};
use crate::tx::View;

/// Records that the plans of a notification depend on, as of one snapshot.
#[derive(Debug)]
pub(crate) struct RunFacts {
    pub(crate) subscriber: Option<Subscriber>,
    pub(crate) workflow: Option<Arc<Workflow>>,
    contexts: Vec<Context>,
    preferences: Preferences,
    integrations: Vec<Arc<Integration>>,
}

/// Preferences of a subscriber for a set of contexts.
#[derive(Debug, Default)]
pub(crate) struct Preferences {
    global: Option<Preference>,
    specific: Option<Preference>,
}

impl RunFacts {
    /// Returns the records of a notification.
    pub(crate) fn of(view: &dyn View, notification: &Notification) -> Result<Self> {
        let (subscriber, workflow) = (notification.subscriber_id, notification.workflow_id);
        let key = layout::subscriber_id(view.environment_id(), subscriber);
        Ok(Self {
            subscriber: view.find(&key)?,
            workflow: workflow_of(view, notification)?,
            contexts: contexts::known(view, &notification.context_keys)?,
            preferences: Preferences::of(view, subscriber, &notification.context_keys, workflow)?,
            integrations: integrations::all(view)?,
        })
    }

    pub(crate) fn facts(&self) -> Facts<'_> {
        Facts {
            integrations: &self.integrations,
            ..self.preferences.facts(
                self.subscriber.as_ref(),
                self.workflow.as_deref(),
                &self.contexts,
            )
        }
    }
}

impl Preferences {
    /// Returns the preferences of a subscriber.
    pub(crate) fn of(
        view: &dyn View,
        subscriber: InternalSubscriberId,
        contexts: &ContextSet,
        workflow: Option<WorkflowId>,
    ) -> Result<Self> {
        let find = |workflow: Option<WorkflowId>| {
            let environment = view.environment_id();
            let key = layout::preference(environment, subscriber, contexts, workflow);
            let said = view.find::<SubscriberPreference>(&key)?;
            Ok::<_, store::Error>(said.map(|said| said.preference))
        };
        let specific = match workflow {
            Some(id) => find(Some(id))?,
            None => None,
        };
        Ok(Self { global: find(None)?, specific })
    }

    /// Returns the facts of a turn with these preferences.
    pub(crate) fn facts<'a>(
        &'a self,
        subscriber: Option<&'a Subscriber>,
        workflow: Option<&'a Workflow>,
        contexts: &'a [Context],
    ) -> Facts<'a> {
        Facts {
            subscriber,
            workflow,
            contexts,
            global: self.global.as_ref(),
            specific: self.specific.as_ref(),
            integrations: &[],
        }
    }
}

/// The workflow of the notification. Returns `None` if it was deleted.
pub(crate) fn workflow_of(
    view: &dyn View,
    notification: &Notification,
) -> Result<Option<Arc<Workflow>>> {
    match notification.workflow_id {
        Some(id) => workflows::find_by_id(view, id),
        None => Ok(None),
    }
}
