//! Messages: what reached a subscriber on one channel, or should have.

mod compose;

use serde::{Deserialize, Serialize};

use crate::content::{Cta, MessageContent};
use crate::context::ContextSet;
use crate::error::{Invalid, Reason, at_most_items};
use crate::ids::{
    EnvironmentId, InternalSubscriberId, MessageId, NotificationId, OrganizationId, TemplateId,
    TransactionId, WorkflowId, WorkflowIdentifier,
};
use crate::json::{Object, shape};
use crate::notification::Notification;
use crate::page::{OrderBy, PageQuery};
use crate::query;
use crate::secret::Secret;
use crate::step::Rendered;
use crate::subscriber::Subscriber;
use crate::time::Timestamp;
use crate::turn::Address;
use crate::vocabulary::{Channel, wire_enum};
use crate::workflow::Workflow;

/// A message on one channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Message {
    /// What the engine calls it.
    #[serde(rename = "_id")]
    pub id: MessageId,
    /// The workflow that it is from.
    #[serde(rename = "_templateId", default, skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<WorkflowId>,
    /// The content that it was rendered from.
    #[serde(rename = "_messageTemplateId", default, skip_serializing_if = "Option::is_none")]
    pub template_id: Option<TemplateId>,
    /// The feed that it is listed in.
    #[serde(rename = "_feedId", default, skip_serializing_if = "Option::is_none")]
    pub feed_id: Option<String>,
    /// The environment it belongs to.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// The organization it belongs to.
    #[serde(rename = "_organizationId")]
    pub organization_id: OrganizationId,
    /// The notification that it is a part of.
    #[serde(rename = "_notificationId")]
    pub notification_id: NotificationId,
    /// Whom it is for.
    #[serde(rename = "_subscriberId")]
    pub subscriber_id: InternalSubscriberId,
    /// Whom it is for; filled in when a list is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscriber: Option<Subscriber>,
    /// The workflow that it is from; filled in when a list is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<Workflow>,
    /// The name of the workflow that it is from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_identifier: Option<WorkflowIdentifier>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was delivered; several times if it was delivered again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delivered_at: Vec<Timestamp>,
    /// How far it has been taken.
    #[serde(flatten)]
    pub stage: Stage,
    /// Until when it is out of sight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snoozed_until: Option<Timestamp>,
    /// What it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<MessageContent>,
    /// The call of trigger that it is from.
    pub transaction_id: TransactionId,
    /// The line above it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The line above a push message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The address that it went to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// The number that it went to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phone: Option<String>,
    /// The address that it was posted to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct_webhook_url: Option<Secret>,
    /// The provider that it went through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// The devices that it went to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub device_tokens: Vec<String>,
    /// The channel that it is on.
    pub channel: Channel,
    /// What it calls for.
    pub cta: Cta,
    /// Whether it was handed over.
    #[serde(flatten)]
    pub status: MessageStatus,
    /// The payload of the trigger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Object>,
    /// The overrides of the trigger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overrides: Option<Object>,
    /// The contexts that it is about.
    #[serde(default, skip_serializing_if = "ContextSet::is_empty")]
    pub context_keys: ContextSet,
}

/// How far a message has been taken. Each stage includes the ones before it: what was read was
/// seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "StageFields", into = "StageFields")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Stage {
    Unseen,
    Seen { seen_at: Timestamp },
    Read { seen_at: Timestamp, read_at: Timestamp },
}

// How a stage looks on the wire.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StageFields {
    read: bool,
    seen: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_seen_date: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_read_date: Option<Timestamp>,
}

wire_enum! {
    /// What a reader does to a message.
    MarkAs, "markAs":
    Read = "read",
    Seen = "seen",
    Unread = "unread",
    Unseen = "unseen",
}

/// Whether a message was handed over to its provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum MessageStatus {
    /// It was.
    Sent,
    /// It was not.
    #[serde(rename_all = "camelCase")]
    Error {
        /// What kind of thing went wrong.
        error_id: String,
        /// What went wrong.
        error_text: String,
    },
    /// It was, and something was odd about it.
    #[serde(rename_all = "camelCase")]
    Warning {
        /// What kind of thing was odd.
        error_id: String,
        /// What was odd.
        error_text: String,
    },
}

/// Which messages of a subscriber are listed, newest first. Every condition that is given must
/// hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct MessageQuery {
    /// Those on this channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<Channel>,
    /// Those of this call of trigger.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transaction_id: Option<TransactionId>,
    /// Those that were read, or those that were not.
    #[serde(deserialize_with = "query::optional", skip_serializing_if = "Option::is_none")]
    pub read: Option<bool>,
    /// Those that were seen, or those that were not.
    #[serde(deserialize_with = "query::optional", skip_serializing_if = "Option::is_none")]
    pub seen: Option<bool>,
    /// Which page of them.
    #[serde(flatten)]
    pub page: PageQuery,
}

shape! { MessageQuery {
    "channel": channel, "transactionId": transaction_id, "read": read as written,
    "seen": seen as written;
    page by MessageQuery::ORDERS
} }

/// Messages to mark, as a request names them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct MarkMessages {
    /// The messages: 1 to 1,000 of them.
    #[serde(deserialize_with = "query::one_or_many")]
    pub message_id: Vec<MessageId>,
    /// What they are marked as.
    pub mark_as: MarkAs,
}

shape! { MarkMessages { "messageId": message_id as many, "markAs": mark_as } }

/// How many messages in an inbox wait for their reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InboxCounts {
    /// Those that were not seen.
    pub unseen: usize,
    /// Those that were not read.
    pub unread: usize,
}

impl Message {
    /// The most messages that are marked at once.
    pub const MAX_MARKED: usize = 1_000;

    /// Refuses to mark no messages, or too many.
    pub fn check_marked(ids: &[MessageId]) -> Result<(), Invalid> {
        if ids.is_empty() {
            return Err(Invalid::new("messageId", Reason::Empty));
        }
        at_most_items("messageId", ids, Self::MAX_MARKED)
    }

    /// What `rendered` says to the subscriber of `notification`, as the step `template_id` of
    /// `workflow` has it, on its way through `channel`.
    pub fn new(
        id: MessageId,
        notification: &Notification,
        workflow: &Workflow,
        (template_id, channel): (TemplateId, Channel),
        rendered: Rendered,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            workflow_id: Some(workflow.id),
            template_id: Some(template_id),
            feed_id: None,
            environment_id: notification.environment_id,
            organization_id: notification.organization_id.clone(),
            notification_id: notification.id,
            subscriber_id: notification.subscriber_id,
            subscriber: None,
            template: None,
            template_identifier: Some(workflow.identifier().clone()),
            created_at: now,
            delivered_at: Vec::new(),
            stage: Stage::Unseen,
            snoozed_until: None,
            content: Some(rendered.content),
            transaction_id: notification.transaction_id.clone(),
            subject: rendered.subject,
            title: rendered.title,
            email: None,
            phone: None,
            direct_webhook_url: None,
            provider_id: None,
            device_tokens: Vec::new(),
            channel,
            cta: rendered.cta,
            status: MessageStatus::Sent,
            payload: notification.payload.clone(),
            overrides: notification.overrides.clone(),
            context_keys: notification.context_keys.clone(),
        }
    }

    /// What it says, if that is one text.
    pub fn text(&self) -> Option<&str> {
        match &self.content {
            Some(MessageContent::Text(text)) => Some(text),
            Some(MessageContent::Blocks(_)) | None => None,
        }
    }

    /// The message on its way through `provider_id` to `address`.
    #[must_use]
    pub fn addressed(mut self, provider_id: &str, address: &Address) -> Self {
        self.provider_id = Some(provider_id.into());
        match address {
            Address::Email(email) => self.email = Some(email.to_string()),
            Address::Phone(phone) => self.phone = Some(phone.clone()),
            Address::Webhook(url) => self.direct_webhook_url = Some(url.clone()),
            Address::Devices(tokens) => self.device_tokens.clone_from(tokens),
        }
        self
    }

    /// The message with its secrets made unreadable.
    #[must_use]
    pub fn redacted(self) -> Self {
        let subscriber = self.subscriber.map(Subscriber::redacted);
        let direct_webhook_url = self.direct_webhook_url.as_ref().map(|_| Secret::redacted());
        Self { subscriber, direct_webhook_url, ..self }
    }
}

impl InboxCounts {
    /// Returns how many messages were not seen, and how many were not read.
    pub fn new(unseen: usize, unread: usize) -> Self {
        Self { unseen, unread }
    }
}

impl Stage {
    /// The stage after a reader did `mark_as`. What changes nothing changes no date.
    #[must_use]
    pub fn mark(self, mark_as: MarkAs, now: Timestamp) -> Stage {
        match (mark_as, self) {
            (MarkAs::Unseen, _) => Stage::Unseen,
            // What was never seen cannot be made unread without having been seen.
            (MarkAs::Seen | MarkAs::Unread, Stage::Unseen) => Stage::Seen { seen_at: now },
            (MarkAs::Read, Stage::Unseen) => Stage::Read { seen_at: now, read_at: now },
            (MarkAs::Read, Stage::Seen { seen_at }) => Stage::Read { seen_at, read_at: now },
            (MarkAs::Unread, Stage::Read { seen_at, .. }) => Stage::Seen { seen_at },
            // Marked so before, or taken further since.
            (MarkAs::Seen | MarkAs::Unread, Stage::Seen { .. })
            | (MarkAs::Seen | MarkAs::Read, Stage::Read { .. }) => self,
        }
    }

    /// Whether the message was seen.
    pub const fn is_seen(self) -> bool {
        match self {
            Stage::Unseen => false,
            Stage::Seen { .. } | Stage::Read { .. } => true,
        }
    }

    /// Whether the message was read.
    pub const fn is_read(self) -> bool {
        match self {
            Stage::Unseen | Stage::Seen { .. } => false,
            Stage::Read { .. } => true,
        }
    }
}

impl TryFrom<StageFields> for Stage {
    type Error = Invalid;

    fn try_from(fields: StageFields) -> Result<Self, Invalid> {
        match (fields.seen, fields.read, fields.last_seen_date, fields.last_read_date) {
            (false, false, None, None) => Ok(Stage::Unseen),
            (true, false, Some(seen_at), None) => Ok(Stage::Seen { seen_at }),
            (true, true, Some(seen_at), Some(read_at)) => Ok(Stage::Read { seen_at, read_at }),
            _ => {
                let expected = "together with `seen` and both dates";
                Err(Invalid::new("read", Reason::malformed(expected)))
            }
        }
    }
}

impl From<Stage> for StageFields {
    fn from(stage: Stage) -> Self {
        let (seen, read) = (stage.is_seen(), stage.is_read());
        let (last_seen_date, last_read_date) = match stage {
            Stage::Unseen => (None, None),
            Stage::Seen { seen_at } => (Some(seen_at), None),
            Stage::Read { seen_at, read_at } => (Some(seen_at), Some(read_at)),
        };
        Self { read, seen, last_seen_date, last_read_date }
    }
}

impl MessageQuery {
    /// What the list can be sorted by.
    pub const ORDERS: &[OrderBy] = &[OrderBy::Id];

    /// Whether the query leaves any out.
    pub fn is_filtered(&self) -> bool {
        self.channel.is_some()
            || self.transaction_id.is_some()
            || self.read.is_some()
            || self.seen.is_some()
    }

    /// Whether `message` belongs to the list.
    pub fn matches(&self, message: &Message) -> bool {
        self.channel.is_none_or(|channel| message.channel == channel)
            && self.transaction_id.as_ref().is_none_or(|id| message.transaction_id == *id)
            && self.read.is_none_or(|read| message.stage.is_read() == read)
            && self.seen.is_none_or(|seen| message.stage.is_seen() == seen)
    }
}

#[cfg(test)]
mod tests;
