//! Broadcasts: events for all subscribers of an environment.

use serde::{Deserialize, Serialize};

use super::compose::event_setters;
use super::{Recipients, SubscriberRecipient, Trigger};
use crate::context::ContextPayload;
use crate::convert::IntoChecked;
use crate::error::Invalid;
use crate::ids::{TransactionId, WorkflowIdentifier};
use crate::json::{Object, shape};
use crate::time::Timestamp;

/// Event of the host application for all subscribers of an environment.
///
/// ```
/// # extern crate tidings_domain as tidings;
/// use serde_json::json;
/// use tidings::trigger::Broadcast;
///
/// let broadcast = Broadcast::new("maintenance")?
///     .payload(json!({ "from": "22:00" }))?
///     .transaction_id("maintenance-2026-11")?;
/// # Ok::<(), tidings::error::Invalid>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Broadcast {
    /// Identifier of the workflow.
    #[serde(rename = "name")]
    pub workflow: WorkflowIdentifier,
    /// Fields of the event, for templates and conditions.
    #[serde(default)]
    pub payload: Object,
    /// Settings that override those of the workflow for this event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overrides: Option<Object>,
    /// Id of the event, made by the engine if absent. An event under the same id happens once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction_id: Option<TransactionId>,
    /// Time from which on nothing is sent any more: jobs that have not begun by then are skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Subscriber who has caused the event. The event does not reach this subscriber.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<SubscriberRecipient>,
    /// Contexts of the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextPayload>,
}

shape! { Broadcast {
    "name": workflow, "payload": payload, "overrides": overrides,
    "transactionId": transaction_id, "expiresAt": expires_at, "actor": actor, "context": context,
} }

event_setters!(Broadcast);

impl Broadcast {
    /// Returns an event of `workflow` for all subscribers.
    pub fn new(workflow: impl IntoChecked<WorkflowIdentifier>) -> Result<Self, Invalid> {
        Ok(Self {
            workflow: workflow.into_checked().map_err(|invalid| invalid.named("name"))?,
            payload: Object::default(),
            overrides: None,
            transaction_id: None,
            expires_at: None,
            actor: None,
            context: None,
        })
    }

    /// Returns the trigger of the same event, without recipients.
    #[doc(hidden)]
    pub fn to_trigger(&self) -> Trigger {
        let Self { workflow, payload, overrides, transaction_id, expires_at, actor, context } =
            self.clone();
        let to = Recipients::Many(Vec::new());
        Trigger { workflow, to, payload, overrides, transaction_id, expires_at, actor, context }
    }
}
