//! Triggers: events of the host application, and their recipients.

mod audience;
mod broadcast;
mod cancel;
mod compose;
mod fan_out;
pub(crate) mod overrides;
mod receipt;
mod wire;

use std::ptr;

use serde::{Deserialize, Serialize};

use crate::context::ContextPayload;
use crate::error::{Invalid, Reason, at_most_items};
use crate::ids::{SubscriberId, TopicKey, TransactionId, WorkflowIdentifier};
use crate::json::{Object, shape};
use crate::subscriber::{Profile, SubscriberCreate};
use crate::time::Timestamp;
use crate::vocabulary::{Severity, wire_enum};
use crate::workflow::Workflow;

#[doc(hidden)]
pub use audience::Audience;
pub use broadcast::Broadcast;
pub use cancel::{CanceledTrigger, Cancellation};
pub use fan_out::{Crowd, EventProgress, FanOut, FanOutState, ProgressStatus, Visited};
#[doc(hidden)]
pub use receipt::{AcceptedTrigger, TriggerRecipients};
pub use receipt::{CreatedNotification, TopicCounts, TriggerReceipt, TriggerStatus};

/// Event of the host application, with its recipients.
///
/// ```
/// # extern crate tidings_domain as tidings;
/// use serde_json::json;
/// use tidings::subscriber::SubscriberCreate;
/// use tidings::trigger::{TopicRecipient, Trigger};
///
/// let trigger = Trigger::new("order-shipped", "ada")?
///     .to(TopicRecipient::new("orders")?.exclude("bob")?)?
///     .to(SubscriberCreate::new("cleo")?.email("cleo@example.org")?)?
///     .payload(json!({ "order": "A-1001" }))?
///     .transaction_id("shipped-A-1001")?
///     .context("tenant", "acme")?;
/// # Ok::<(), tidings::error::Invalid>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Trigger {
    /// Identifier of the workflow.
    #[serde(rename = "name")]
    pub workflow: WorkflowIdentifier,
    /// Recipients: 1 to 100 subscribers and topics. Of several for the same subscriber, the last one
    /// with a profile counts.
    pub to: Recipients,
    /// Fields of the event, for templates and conditions.
    #[serde(default)]
    pub payload: Object,
    /// Settings that override those of the workflow for this event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overrides: Option<Object>,
    /// Id of the event, made by the engine if absent. An event that is triggered again under the
    /// same id happens once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction_id: Option<TransactionId>,
    /// Time from which on nothing is sent any more: jobs that have not begun by then are skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Subscriber who has caused the event, created or updated as a recipient is. Topics do not
    /// reach this subscriber. Templates and conditions of steps know it as `actor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<SubscriberRecipient>,
    /// Contexts of the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextPayload>,
}

shape! { Trigger {
    "name": workflow, "to": to, "payload": payload, "overrides": overrides,
    "transactionId": transaction_id, "expiresAt": expires_at, "actor": actor, "context": context,
} }

/// Recipients of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Recipients {
    /// One recipient.
    One(Recipient),
    /// Several.
    Many(Vec<Recipient>),
}

/// Recipient of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Recipient {
    /// Subscriber.
    Subscriber(SubscriberRecipient),
    /// Subscribers in a topic.
    Topic(TopicRecipient),
}

/// Subscriber as a recipient.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum SubscriberRecipient {
    /// Subscriber with this id, created if absent.
    Id(SubscriberId),
    /// Subscriber with this id, created or updated with this profile. Absent fields stay, and destinations are
    /// added to those that are there.
    Inline(SubscriberCreate),
}

/// Subscribers in a topic whose subscriptions admit the event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TopicRecipient {
    #[serde(rename = "type")]
    kind: TopicRecipientType,
    /// Key of the topic.
    pub topic_key: TopicKey,
    /// Subscribers to leave out of the topics of the trigger: at most 1,000 in all of its topics.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<SubscriberId>,
}

shape! { TopicRecipient { "type": kind, "topicKey": topic_key, "exclude": exclude, } }

wire_enum! {
    /// Type of a recipient other than a subscriber.
    #[doc(hidden)]
    TopicRecipientType, "type":
    Topic = "Topic",
}

impl Trigger {
    /// Returns the severity in the overrides, or that of the workflow.
    pub(crate) fn severity(&self, workflow: &Workflow) -> Severity {
        let overrides = self.overrides.as_ref();
        let severity = overrides.and_then(|overrides| overrides.get("severity")?.as_str());
        severity.and_then(|severity| severity.parse().ok()).unwrap_or(workflow.severity)
    }

    /// Maximum number of recipients of a trigger.
    pub const MAX_RECIPIENTS: usize = 100;
    /// Maximum number of subscribers in the topics of a trigger that are notified at once. Tasks notify
    /// those of larger topics.
    pub const MAX_AT_ONCE: usize = 100;
    /// Maximum number of excluded subscribers of all topics of a trigger. The lists of the topics are united,
    /// and each chunk of a crowd reads them.
    pub const MAX_EXCLUDED: usize = 1_000;
    /// Maximum number of triggers in a bulk.
    pub const MAX_BULK: usize = 100;

    /// Returns the size of the payload and the overrides, in bytes.
    #[doc(hidden)]
    pub fn size(&self) -> usize {
        self.payload.size() + self.overrides.as_ref().map_or(0, Object::size)
    }

    /// Refuses a bulk without triggers, or with more than 100.
    #[doc(hidden)]
    pub fn check_bulk(triggers: &[Trigger]) -> Result<(), Invalid> {
        if triggers.is_empty() {
            return Err(Invalid::new("events", Reason::Empty));
        }
        at_most_items("events", triggers, Self::MAX_BULK)
    }
}

impl Recipients {
    fn as_slice(&self) -> &[Recipient] {
        match self {
            Recipients::One(recipient) => std::slice::from_ref(recipient),
            Recipients::Many(recipients) => recipients,
        }
    }

    /// Returns the path of a recipient of the trigger.
    #[doc(hidden)]
    pub fn path_of(&self, recipient: &SubscriberRecipient) -> String {
        let is_it = |one: &Recipient| match one {
            Recipient::Subscriber(one) => ptr::eq(one, recipient),
            Recipient::Topic(_) => false,
        };
        match self {
            Recipients::One(_) => "to".to_owned(),
            Recipients::Many(many) => {
                many.iter().position(is_it).map_or("to".to_owned(), |index| format!("to[{index}]"))
            }
        }
    }

    /// Checks every recipient. A refusal names the path of the field.
    pub(crate) fn each(
        &self,
        mut check: impl FnMut(&Recipient) -> Result<(), Invalid>,
    ) -> Result<(), Invalid> {
        match self {
            Recipients::One(recipient) => check(recipient).map_err(|bad| bad.within("to")),
            Recipients::Many(recipients) => {
                recipients.iter().enumerate().try_for_each(|(index, recipient)| {
                    check(recipient).map_err(|bad| bad.within(format!("to[{index}]")))
                })
            }
        }
    }
}

impl Recipient {
    fn check(&self) -> Result<(), Invalid> {
        match self {
            Recipient::Subscriber(subscriber) => subscriber.check(),
            Recipient::Topic(_) => Ok(()),
        }
    }
}

impl SubscriberRecipient {
    fn check(&self) -> Result<(), Invalid> {
        match self {
            SubscriberRecipient::Id(_) => Ok(()),
            SubscriberRecipient::Inline(create) => create.profile.check(),
        }
    }

    /// Returns the id of the subscriber in the host application.
    pub const fn subscriber_id(&self) -> &SubscriberId {
        match self {
            SubscriberRecipient::Id(id) => id,
            SubscriberRecipient::Inline(subscriber) => &subscriber.subscriber_id,
        }
    }

    /// Returns the recipient as in the trigger, without secrets of its channels. Custom data with
    /// the maximum depth is left out too, since it would be one level deeper here.
    #[doc(hidden)]
    pub fn as_object(&self) -> Object {
        if let SubscriberRecipient::Id(id) = self {
            let mut object = Object::default();
            object.insert("subscriberId".to_owned(), id.as_str().into());
            return object;
        }
        let mut create = self.to_create();
        create.profile.channels.clear();
        let whole = serde_json::to_value(&create).unwrap_or_default();
        Object::try_from(whole).unwrap_or_else(|_| {
            create.profile.data = None;
            Object::of(create)
        })
    }

    /// Returns the subscriber to create if it does not exist.
    #[doc(hidden)]
    pub fn to_create(&self) -> SubscriberCreate {
        match self {
            SubscriberRecipient::Id(id) => {
                SubscriberCreate { subscriber_id: id.clone(), profile: Profile::default() }
            }
            SubscriberRecipient::Inline(subscriber) => subscriber.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
