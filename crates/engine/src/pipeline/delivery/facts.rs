//! Records that the run of a step depends on.

use domain::context::Context;
use domain::event::Event;
use domain::ids::WorkflowId;
use domain::integration::Integration;
use domain::notification::Notification;
use domain::preference::{Preference, SubscriberPreference};
use domain::step_run::StepFacts;
use domain::subscriber::Subscriber;
use domain::workflow::Workflow;
use std::borrow::Cow;
use std::sync::Arc;
use store::{ReadRecords, layout};

use crate::Result;
use crate::resources::{contexts, integrations, workflows};
use crate::tx::View;

/// Records that the steps of a notification depend on.
#[derive(Debug)]
pub(crate) struct RunFacts<'a> {
    pub(crate) subscriber: Option<Subscriber>,
    pub(crate) workflow: Option<&'a Workflow>,
    contexts: Cow<'a, [Context]>,
    global: Option<Preference>,
    specific: Option<Preference>,
    integrations: Vec<Arc<Integration>>,
}

impl<'a> RunFacts<'a> {
    /// Returns the records of the notification's steps, with its [workflow](workflow_of).
    pub(crate) fn now(
        view: &dyn View,
        notification: &Notification,
        workflow: Option<&'a Workflow>,
    ) -> Result<Self> {
        let key = layout::subscriber_id(view.environment_id(), notification.subscriber_id);
        let (global, specific) = preferences(view, notification)?;
        Ok(Self {
            subscriber: view.find(&key)?,
            workflow,
            contexts: contexts::known(view, &notification.context_keys)?.into(),
            global,
            specific,
            integrations: integrations::all(view)?,
        })
    }

    /// Returns the records of the steps that a trigger runs. A trigger runs no step that needs an
    /// integration.
    pub(crate) fn for_trigger(
        view: &dyn View,
        event: &Event<'a>,
        notification: &Notification,
        subscriber: Subscriber,
    ) -> Result<Self> {
        let (global, specific) = preferences(view, notification)?;
        Ok(Self {
            subscriber: Some(subscriber),
            workflow: Some(event.workflow),
            contexts: Cow::Borrowed(event.contexts),
            global,
            specific,
            integrations: Vec::new(),
        })
    }

    pub(crate) fn step_facts(&self) -> StepFacts<'_> {
        StepFacts {
            subscriber: self.subscriber.as_ref(),
            workflow: self.workflow,
            contexts: &self.contexts,
            global: self.global.as_ref(),
            specific: self.specific.as_ref(),
            integrations: &self.integrations,
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

// The global preference and that of the workflow.
fn preferences(
    view: &dyn View,
    notification: &Notification,
) -> Result<(Option<Preference>, Option<Preference>)> {
    let find = |workflow: Option<WorkflowId>| {
        let key = layout::preference(
            view.environment_id(),
            notification.subscriber_id,
            &notification.context_keys,
            workflow,
        );
        let said = view.find::<SubscriberPreference>(&key)?;
        Ok::<_, store::Error>(said.map(|said| said.preference))
    };
    let specific = match notification.workflow_id {
        Some(id) => find(Some(id))?,
        None => None,
    };
    Ok((find(None)?, specific))
}
