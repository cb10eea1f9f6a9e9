//! Excerpts of messages: the fields by which lists sort and select them.

use serde::Deserialize;

use super::{ListPlace, Message, Progress, Shelf};
use crate::context::ContextSet;
use crate::ids::{InternalSubscriberId, MessageId, TransactionId, WorkflowId, WorkflowIdentifier};
use crate::json::Object;
use crate::time::Timestamp;
use crate::vocabulary::{Channel, Severity};

/// Fields of a message by which lists sort and select it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageExcerpt {
    /// Id given by the engine.
    #[serde(rename = "_id")]
    pub id: MessageId,
    /// Id of the workflow.
    #[serde(rename = "_templateId", default)]
    pub workflow_id: Option<WorkflowId>,
    /// Id of the subscriber, given by the engine.
    #[serde(rename = "_subscriberId")]
    pub subscriber_id: InternalSubscriberId,
    /// Identifier of the workflow.
    #[serde(rename = "templateIdentifier", default)]
    pub workflow_identifier: Option<WorkflowIdentifier>,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Times of delivery.
    #[serde(default)]
    pub delivered_at: Vec<Timestamp>,
    /// Time by which lists sort the message.
    #[serde(default)]
    pub listed_at: Option<Timestamp>,
    /// `true` if the message was read.
    pub read: bool,
    /// `true` if the message was seen.
    pub seen: bool,
    /// Time at which the message was put into the archive.
    #[serde(default)]
    pub archived_at: Option<Timestamp>,
    /// End of the snooze.
    #[serde(default)]
    pub snoozed_until: Option<Timestamp>,
    /// Id of the triggered event.
    pub transaction_id: TransactionId,
    /// Channel.
    pub channel: Channel,
    /// Contexts of the event.
    #[serde(default)]
    pub context_keys: ContextSet,
    /// Tags of the workflow at the time of the event.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Severity of the notification.
    #[serde(default)]
    pub severity: Severity,
}

/// A message in place of its excerpt, for queries of what an excerpt does not have.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct WholeMessage(pub Message);

/// Payload of the event of a message.
#[derive(Clone, Copy, Debug)]
pub(super) enum Payload<'m> {
    /// The payload, if there is one.
    Known(Option<&'m Object>),
    /// An excerpt does not have it.
    Unknown,
}

/// What a query compares of a message.
#[derive(Clone, Copy, Debug)]
pub struct MessageFacts<'m> {
    pub(super) channel: Channel,
    pub(super) transaction_id: &'m TransactionId,
    pub(super) progress: Progress,
    pub(super) is_archived: bool,
    pub(super) is_snoozed: bool,
    pub(super) tags: &'m [String],
    pub(super) severity: Severity,
    pub(super) context_keys: &'m ContextSet,
    pub(super) workflow_identifier: Option<&'m WorkflowIdentifier>,
    pub(super) workflow_id: Option<WorkflowId>,
    pub(super) created_at: Timestamp,
    pub(super) payload: Payload<'m>,
}

#[doc(hidden)]
impl<'m> From<&'m Message> for MessageFacts<'m> {
    fn from(message: &'m Message) -> Self {
        Self {
            channel: message.channel,
            transaction_id: &message.transaction_id,
            progress: message.stage.progress(),
            is_archived: message.stage.is_archived(),
            is_snoozed: message.snoozed_until.is_some(),
            tags: &message.tags,
            severity: message.severity,
            context_keys: &message.context_keys,
            workflow_identifier: message.workflow_identifier.as_ref(),
            workflow_id: message.workflow_id,
            created_at: message.created_at,
            payload: Payload::Known(message.payload.as_ref()),
        }
    }
}

impl<'m> From<&'m MessageExcerpt> for MessageFacts<'m> {
    fn from(excerpt: &'m MessageExcerpt) -> Self {
        Self {
            channel: excerpt.channel,
            transaction_id: &excerpt.transaction_id,
            progress: excerpt.progress(),
            is_archived: excerpt.archived_at.is_some(),
            is_snoozed: excerpt.snoozed_until.is_some(),
            tags: &excerpt.tags,
            severity: excerpt.severity,
            context_keys: &excerpt.context_keys,
            workflow_identifier: excerpt.workflow_identifier.as_ref(),
            workflow_id: excerpt.workflow_id,
            created_at: excerpt.created_at,
            payload: Payload::Unknown,
        }
    }
}

impl<'m> From<&'m WholeMessage> for MessageFacts<'m> {
    fn from(WholeMessage(message): &'m WholeMessage) -> Self {
        message.into()
    }
}

impl MessageExcerpt {
    /// Returns the shelf of the message.
    pub fn shelf(&self) -> Shelf {
        Shelf::of(MessageFacts::from(self))
    }

    /// Returns the place of the message in lists.
    pub fn list_place(&self) -> ListPlace {
        let delivered_at = self.delivered_at.last().copied();
        ListPlace::of(self.id, [self.listed_at, delivered_at], self.created_at)
    }

    fn progress(&self) -> Progress {
        match (self.seen, self.read) {
            (_, true) => Progress::Read,
            (true, false) => Progress::Seen,
            (false, false) => Progress::Unseen,
        }
    }
}
