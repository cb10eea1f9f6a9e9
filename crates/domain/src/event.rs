//! Events: the common part of the notifications of one trigger.

use serde_json::Value;

use crate::context::{Context, ContextSet};
use crate::environment::Home;
use crate::ids::TransactionId;
use crate::subscriber::Subscriber;
use crate::template_data::TemplateData;
use crate::time::Timestamp;
use crate::trigger::Trigger;
use crate::workflow::Workflow;

/// Trigger with its workflow and contexts: the common part of its notifications.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// Environment of the event, with its organization.
    pub home: &'a Home,
    /// Trigger.
    pub trigger: &'a Trigger,
    /// Id of the event.
    pub transaction_id: &'a TransactionId,
    /// Triggered workflow.
    pub workflow: &'a Workflow,
    /// Contexts of the event.
    pub contexts: &'a [Context],
    /// Subscriber who has caused the event.
    pub actor: Option<&'a Subscriber>,
    /// Keys of the contexts.
    pub context_keys: &'a ContextSet,
    /// Time of the trigger.
    pub now: Timestamp,
}

impl Event<'_> {
    /// Returns the data for conditions, with the event addressed to `subscriber`.
    pub fn data(&self, subscriber: &Subscriber) -> Value {
        TemplateData::new(subscriber, &self.trigger.payload, self.contexts, self.workflow)
            .with_actor(self.actor)
            .data()
    }
}
