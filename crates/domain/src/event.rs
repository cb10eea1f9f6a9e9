//! Events: what the notifications of one trigger have in common.

use serde_json::Value;

use crate::context::{Context, ContextSet};
use crate::environment::Home;
use crate::ids::TransactionId;
use crate::known::{self, Known};
use crate::subscriber::Subscriber;
use crate::time::Timestamp;
use crate::trigger::Trigger;
use crate::vocabulary::Severity;
use crate::workflow::Workflow;

/// A trigger with its workflow and its contexts: the common part of its notifications.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// The environment of the event, with its organization.
    pub home: &'a Home,
    /// The trigger.
    pub trigger: &'a Trigger,
    /// The transaction id of the trigger.
    pub transaction_id: &'a TransactionId,
    /// The triggered workflow.
    pub workflow: &'a Workflow,
    /// The contexts of the event.
    pub contexts: &'a [Context],
    /// The keys of the contexts.
    pub context_keys: &'a ContextSet,
    /// The time of the trigger.
    pub now: Timestamp,
}

impl Event<'_> {
    /// The data of conditions, with the event addressed to `subscriber`.
    pub fn data(&self, subscriber: &Subscriber) -> Value {
        let about = known::about(subscriber);
        Known::new(&about, &self.trigger.payload, self.contexts, self.workflow).data()
    }

    /// The severity in the overrides of the trigger.
    pub(crate) fn severity(&self) -> Option<Severity> {
        self.trigger.overrides.as_ref()?.get("severity")?.as_str()?.parse().ok()
    }
}
