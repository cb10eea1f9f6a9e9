//! Messages: the content of one notification on one channel, and its delivery.

mod compose;
mod counters;
mod place;
mod shelf;

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
use crate::plan::Address;
use crate::query;
use crate::secret::Secret;
use crate::step::Rendered;
use crate::subscriber::Subscriber;
use crate::time::Timestamp;
use crate::vocabulary::{Channel, Severity, wire_enum};
use crate::workflow::Workflow;

#[doc(hidden)]
pub use counters::{CountedMessage, ListPlace, MessageCounters, Waiting};
#[doc(hidden)]
pub use place::MessagePlace;
#[doc(hidden)]
pub use shelf::{Folder, Progress, Shelf};

/// Message on one channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Message {
    /// Id given by the engine.
    #[serde(rename = "_id")]
    pub id: MessageId,
    /// Id of the workflow.
    #[serde(rename = "_templateId", default, skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<WorkflowId>,
    /// Id of the step's content.
    #[serde(rename = "_messageTemplateId", default, skip_serializing_if = "Option::is_none")]
    pub template_id: Option<TemplateId>,
    /// Id of the feed.
    #[serde(rename = "_feedId", default, skip_serializing_if = "Option::is_none")]
    pub feed_id: Option<String>,
    /// Environment of the message.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// Organization of the message.
    #[serde(rename = "_organizationId")]
    pub organization_id: OrganizationId,
    /// Id of the notification.
    #[serde(rename = "_notificationId")]
    pub notification_id: NotificationId,
    /// Id of the subscriber, given by the engine.
    #[serde(rename = "_subscriberId")]
    pub subscriber_id: InternalSubscriberId,
    /// Subscriber, filled in by lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscriber: Option<Subscriber>,
    /// Workflow, filled in by lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<Workflow>,
    /// Identifier of the workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_identifier: Option<WorkflowIdentifier>,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Times of delivery: more than one if the message was delivered again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delivered_at: Vec<Timestamp>,
    /// Time by which lists sort the message, if its own is not behind that of an earlier one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed_at: Option<Timestamp>,
    /// Progress of the reader.
    #[serde(flatten)]
    pub stage: Stage,
    /// End of the snooze.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snoozed_until: Option<Timestamp>,
    /// Content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<MessageContent>,
    /// Id of the triggered event.
    pub transaction_id: TransactionId,
    /// Subject of an e-mail, or line above a message in the inbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Title of a push message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// E-mail address of the recipient.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// Telephone number of the recipient.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phone: Option<String>,
    /// URL of the webhook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct_webhook_url: Option<Secret>,
    /// Id of the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// Tokens of the recipient's devices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub device_tokens: Vec<String>,
    /// Channel.
    pub channel: Channel,
    /// Call to action.
    pub cta: Cta,
    /// Result of the delivery.
    #[serde(flatten)]
    pub status: MessageStatus,
    /// Payload of the trigger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Object>,
    /// Overrides of the trigger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overrides: Option<Object>,
    /// Contexts of the event.
    #[serde(default, skip_serializing_if = "ContextSet::is_empty")]
    pub context_keys: ContextSet,
    /// Tags of the workflow at the time of the event.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Severity of the notification.
    #[serde(default, skip_serializing_if = "Severity::is_none")]
    pub severity: Severity,
}

/// Progress of the reader. Each stage includes the ones before it: a read message was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "StageFields", into = "StageFields")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Stage {
    Unseen,
    Seen { seen_at: Timestamp },
    Read { seen_at: Timestamp, read_at: Timestamp },
}

// Wire form of a stage.
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
    /// Action of a reader on a message.
    MarkAs, "markAs":
    Read = "read",
    Seen = "seen",
    Unread = "unread",
    Unseen = "unseen",
}

/// Result of the delivery to a provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum MessageStatus {
    /// The provider accepted the message.
    Sent,
    /// The delivery failed.
    #[serde(rename_all = "camelCase")]
    Error {
        /// Kind of the error.
        error_id: String,
        /// Message of the error.
        error_text: String,
    },
    /// The provider accepted the message, with a warning.
    #[serde(rename_all = "camelCase")]
    Warning {
        /// Kind of the warning.
        error_id: String,
        /// Message of the warning.
        error_text: String,
    },
}

/// Query of the messages of a subscriber, newest first. A message must meet every condition that is
/// set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct MessageQuery {
    /// Channel of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<Channel>,
    /// Id of the triggered event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transaction_id: Option<TransactionId>,
    /// `true` selects read messages, `false` unread ones.
    #[serde(deserialize_with = "query::optional", skip_serializing_if = "Option::is_none")]
    pub read: Option<bool>,
    /// `true` selects seen messages, `false` unseen ones.
    #[serde(deserialize_with = "query::optional", skip_serializing_if = "Option::is_none")]
    pub seen: Option<bool>,
    /// Page of the list.
    #[serde(flatten)]
    pub page: PageQuery,
}

shape! { MessageQuery {
    "channel": channel, "transactionId": transaction_id, "read": read as written,
    "seen": seen as written;
    page by MessageQuery::ORDERS
} }

/// Request to mark messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct MarkMessages {
    /// Ids of the messages: 1 to 1,000.
    #[serde(deserialize_with = "query::one_or_many")]
    pub message_id: Vec<MessageId>,
    /// Mark.
    pub mark_as: MarkAs,
}

shape! { MarkMessages { "messageId": message_id as many, "markAs": mark_as } }

/// Numbers of unseen and unread messages in an inbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InboxCounts {
    /// Number of unseen messages.
    pub unseen: usize,
    /// Number of unread messages.
    pub unread: usize,
}

impl Message {
    /// Maximum number of messages in a request to mark.
    pub const MAX_MARKED: usize = 1_000;

    /// Refuses to mark no message, or more than 1,000.
    #[doc(hidden)]
    pub fn check_marked(ids: &[MessageId]) -> Result<(), Invalid> {
        if ids.is_empty() {
            return Err(Invalid::new("messageId", Reason::Empty));
        }
        at_most_items("messageId", ids, Self::MAX_MARKED)
    }

    /// Returns the message with the content `rendered` on `channel`, for the subscriber of
    /// `notification`. `template_id` is the step's content in `workflow`.
    #[doc(hidden)]
    pub fn new(
        id: MessageId,
        notification: &Notification,
        workflow: &Workflow,
        template_id: TemplateId,
        channel: Channel,
        rendered: Rendered,
        now: Timestamp,
    ) -> Self {
        Self {
            workflow_id: Some(workflow.id),
            template_id: Some(template_id),
            template_identifier: Some(workflow.identifier().clone()),
            content: Some(rendered.content),
            subject: rendered.subject,
            title: rendered.title,
            cta: rendered.cta,
            ..Self::empty(id, notification, channel, now)
        }
    }

    /// Returns the message of the job with the number `job` of `notification`. Returns `None` if
    /// there is no such job.
    #[doc(hidden)]
    pub fn of_job(
        notification: &Notification,
        job: usize,
        (workflow, channel): (&Workflow, Channel),
        rendered: Rendered,
        (now, random): (Timestamp, u64),
    ) -> Option<Self> {
        let template = notification.jobs.get(job)?.step.template_id;
        let id = MessageId::new(now, notification.place_of_message(job), random);
        Some(Self::new(id, notification, workflow, template, channel, rendered, now))
    }

    // Returns the message without content.
    fn empty(id: MessageId, notification: &Notification, channel: Channel, now: Timestamp) -> Self {
        Self {
            id,
            workflow_id: None,
            template_id: None,
            feed_id: None,
            environment_id: notification.environment_id,
            organization_id: notification.organization_id.clone(),
            notification_id: notification.id,
            subscriber_id: notification.subscriber_id,
            subscriber: None,
            template: None,
            template_identifier: None,
            created_at: now,
            delivered_at: Vec::new(),
            listed_at: None,
            stage: Stage::Unseen,
            snoozed_until: None,
            content: None,
            transaction_id: notification.transaction_id.clone(),
            subject: None,
            title: None,
            email: None,
            phone: None,
            direct_webhook_url: None,
            provider_id: None,
            device_tokens: Vec::new(),
            channel,
            cta: Cta::default(),
            status: MessageStatus::Sent,
            payload: notification.payload.clone(),
            overrides: notification.overrides.clone(),
            context_keys: notification.context_keys.clone(),
            tags: notification.tags.clone(),
            severity: notification.severity.unwrap_or_default(),
        }
    }

    /// Returns the content if it is one text.
    pub fn text(&self) -> Option<&str> {
        match &self.content {
            Some(MessageContent::Text(text)) => Some(text),
            Some(MessageContent::Blocks(_)) | None => None,
        }
    }

    /// Returns the text of an e-mail without its HTML, for a text part beside the HTML: a line for
    /// each block, and the address behind each link. Returns the text of any other message.
    ///
    /// The same content has the same text, so that all attempts to send a message agree.
    pub fn plain_text(&self) -> Option<String> {
        let content = self.content.as_ref()?;
        match self.channel {
            Channel::Email => Some(content.plain_text()),
            Channel::InApp | Channel::Sms | Channel::Chat | Channel::Push => {
                self.text().map(ToOwned::to_owned)
            }
        }
    }

    /// Returns the message to `address`, sent by `provider_id`.
    #[doc(hidden)]
    #[must_use]
    pub fn addressed(mut self, provider_id: &str, address: &Address) -> Self {
        self.provider_id = Some(provider_id.into());
        match address {
            Address::Email(email) => self.email = Some(email.to_string()),
            Address::Phone(phone) => self.phone = Some(phone.clone()),
            Address::Webhook { url, .. } => self.direct_webhook_url = Some(url.clone()),
            Address::Device(token) => self.device_tokens = vec![token.clone()],
            Address::Workspace { .. } => {}
        }
        self
    }

    /// Returns the message with what is known of `before`, the same message to other destinations of
    /// the integration.
    #[doc(hidden)]
    #[must_use]
    pub fn joined(mut self, before: &Message) -> Self {
        let mut tokens = before.device_tokens.clone();
        tokens.extend(
            self.device_tokens.into_iter().filter(|one| !before.device_tokens.contains(one)),
        );
        self.device_tokens = tokens;
        self.direct_webhook_url =
            self.direct_webhook_url.or_else(|| before.direct_webhook_url.clone());
        if before.status == MessageStatus::Sent {
            self.status = MessageStatus::Sent;
        }
        self
    }

    /// Returns the message with its secrets masked.
    #[must_use]
    pub fn redacted(self) -> Self {
        let subscriber = self.subscriber.map(Subscriber::redacted);
        let direct_webhook_url = self.direct_webhook_url.as_ref().map(|_| Secret::redacted());
        Self { subscriber, direct_webhook_url, ..self }
    }
}

impl InboxCounts {
    /// Returns the numbers of unseen and unread messages.
    #[doc(hidden)]
    pub fn new(unseen: usize, unread: usize) -> Self {
        Self { unseen, unread }
    }
}

impl Stage {
    /// Returns the stage after `mark_as`. A mark without effect changes no time.
    #[doc(hidden)]
    #[must_use]
    pub fn mark(self, mark_as: MarkAs, now: Timestamp) -> Stage {
        match (mark_as, self) {
            (MarkAs::Unseen, _) => Stage::Unseen,
            // An unseen message that is marked unread becomes seen.
            (MarkAs::Seen | MarkAs::Unread, Stage::Unseen) => Stage::Seen { seen_at: now },
            (MarkAs::Read, Stage::Unseen) => Stage::Read { seen_at: now, read_at: now },
            (MarkAs::Read, Stage::Seen { seen_at }) => Stage::Read { seen_at, read_at: now },
            (MarkAs::Unread, Stage::Read { seen_at, .. }) => Stage::Seen { seen_at },
            // The mark is set already, or a later stage includes it.
            (MarkAs::Seen | MarkAs::Unread, Stage::Seen { .. })
            | (MarkAs::Seen | MarkAs::Read, Stage::Read { .. }) => self,
        }
    }

    /// Returns `true` if the message was seen.
    pub const fn is_seen(self) -> bool {
        self.progress().is_seen()
    }

    /// Returns `true` if the message was read.
    pub const fn is_read(self) -> bool {
        self.progress().is_read()
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
    /// Fields that the list can be sorted by.
    #[doc(hidden)]
    pub const ORDERS: &[OrderBy] = &[OrderBy::Id];

    /// Returns `true` if the query excludes messages.
    #[doc(hidden)]
    pub fn is_filtered(&self) -> bool {
        self.channel.is_some()
            || self.transaction_id.is_some()
            || self.read.is_some()
            || self.seen.is_some()
    }

    /// Returns `true` if `message` meets the conditions.
    #[doc(hidden)]
    pub fn matches(&self, message: &Message) -> bool {
        self.channel.is_none_or(|channel| message.channel == channel)
            && self.transaction_id.as_ref().is_none_or(|id| message.transaction_id == *id)
            && self.read.is_none_or(|read| message.stage.is_read() == read)
            && self.seen.is_none_or(|seen| message.stage.is_seen() == seen)
    }
}

#[cfg(test)]
mod tests;
