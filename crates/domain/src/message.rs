//! Messages: the content of one notification on one channel, and its delivery.

mod action;
mod compose;
mod counters;
mod excerpt;
mod feed;
mod groups;
mod place;
mod query;
mod shelf;
mod signature;
mod stage;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::content::{Cta, MessageContent};
use crate::context::ContextSet;
use crate::environment::Home;
use crate::error::{Invalid, Reason, Unit, at_most_items};
use crate::ids::{
    ContentId, EnvironmentId, InternalSubscriberId, MessageId, NotificationId, OrganizationId,
    TransactionId, WorkflowId, WorkflowIdentifier,
};
use crate::json::{Object, shape};
use crate::notification::Notification;
use crate::plan::Address;
use crate::query as read;
use crate::secret::Secret;
use crate::step::Rendered;
use crate::subscriber::Subscriber;
use crate::time::Timestamp;
use crate::vocabulary::{Channel, Severity, wire_enum};
use crate::workflow::Workflow;

pub use action::CompleteAction;
#[doc(hidden)]
pub use counters::{Counted, CountedMessage, ListPlace, MessageCounters, Tally, Waiting};
#[doc(hidden)]
pub use excerpt::{MessageExcerpt, MessageFacts, WholeMessage};
pub use feed::{Changes, FeedCursor, FeedPage, InboxChange};
#[doc(hidden)]
pub use feed::{DeletedMessage, Known, Standing};
pub use groups::{DataFilter, TagFilter};
#[doc(hidden)]
pub use place::MessagePlace;
pub use query::MessageQuery;
#[doc(hidden)]
pub use shelf::{Folder, Progress, Shelf};
#[doc(hidden)]
pub use signature::{Signature, SignatureFilter};
#[doc(hidden)]
pub use stage::Edit;
pub use stage::Stage;

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
    pub content_id: Option<ContentId>,
    /// Id of the feed. It is always absent.
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
    /// Subscriber, filled in by reads of messages on all channels. An inbox leaves it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscriber: Option<Arc<Subscriber>>,
    /// Workflow, filled in by reads of messages on all channels, as long as it exists. An inbox leaves it
    /// out.
    #[serde(rename = "template", default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<Arc<Workflow>>,
    /// Identifier of the workflow.
    #[serde(rename = "templateIdentifier", default, skip_serializing_if = "Option::is_none")]
    pub workflow_identifier: Option<WorkflowIdentifier>,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Times of delivery: more than one if the message was delivered again. Of a message that was snoozed more than
    /// 100 times, the first and the last 50 are kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delivered_at: Vec<Timestamp>,
    /// Time by which lists sort the message, if its own is not behind that of an earlier one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed_at: Option<Timestamp>,
    /// Number of the last change of the message in the inbox. `None` if it is as it was delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_change: Option<u64>,
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
    /// The provider accepted the message, with a warning. The engine writes no such status: what a content
    /// lacks is in the log of the job.
    #[serde(rename_all = "camelCase")]
    Warning {
        /// Kind of the warning.
        error_id: String,
        /// Message of the warning.
        error_text: String,
    },
}

/// Request to mark messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct MarkMessages {
    /// Ids of the messages: 1 to 1,000.
    #[serde(deserialize_with = "read::one_or_many")]
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

impl From<&Message> for Home {
    fn from(message: &Message) -> Self {
        Self {
            organization_id: message.organization_id.clone(),
            environment_id: message.environment_id,
        }
    }
}

impl Message {
    /// Maximum number of messages in a request to mark.
    pub const MAX_MARKED: usize = 1_000;

    /// Maximum size of the messages in a request to mark, archive, snooze or delete them, in bytes of their
    /// texts, payloads and overrides.
    pub const MAX_MARKED_SIZE: usize = 32 * 1024 * 1024;

    /// Returns the size of the texts, the payload and the overrides, in bytes.
    #[doc(hidden)]
    pub fn size(&self) -> usize {
        let lines = [&self.subject, &self.title].into_iter().flatten().map(String::len);
        let objects = [&self.payload, &self.overrides].into_iter().flatten().map(Object::size);
        let content = self.content.as_ref().map_or(0, MessageContent::size);
        lines.chain(objects).sum::<usize>() + content + self.cta.size()
    }

    /// Refuses to mark no message, or more than 1,000.
    #[doc(hidden)]
    pub fn check_marked(ids: &[MessageId]) -> Result<(), Invalid> {
        if ids.is_empty() {
            return Err(Invalid::new("messageId", Reason::Empty));
        }
        at_most_items("messageId", ids, Self::MAX_MARKED)
    }

    /// Refuses messages of this size, in all, if they are too large for one request.
    #[doc(hidden)]
    pub fn check_marked_size(size: usize) -> Result<(), Invalid> {
        if size > Self::MAX_MARKED_SIZE {
            let (max, unit) = (Self::MAX_MARKED_SIZE, Unit::Bytes);
            return Err(Invalid::new("messageId", Reason::TooLong { max, unit }));
        }
        Ok(())
    }

    /// Returns the message with the content `rendered` on `channel`, for the subscriber of
    /// `notification`. `content_id` is the step's content in `workflow`.
    #[doc(hidden)]
    pub fn new(
        id: MessageId,
        notification: &Notification,
        workflow: &Workflow,
        content_id: ContentId,
        channel: Channel,
        rendered: Rendered,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            workflow_id: Some(workflow.id),
            content_id: Some(content_id),
            feed_id: None,
            environment_id: notification.environment_id,
            organization_id: notification.organization_id.clone(),
            notification_id: notification.id,
            subscriber_id: notification.subscriber_id,
            subscriber: None,
            workflow: None,
            workflow_identifier: Some(workflow.identifier().clone()),
            created_at: now,
            delivered_at: Vec::new(),
            listed_at: None,
            last_change: None,
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
            tags: notification.tags.clone(),
            severity: notification.severity.unwrap_or_default(),
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
        let template = notification.jobs.get(job)?.step.content_id;
        let id = MessageId::new(now, notification.place_of_message(job), random);
        Some(Self::new(id, notification, workflow, template, channel, rendered, now))
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

    /// Returns `true` if the message is in the inbox of its subscriber.
    #[doc(hidden)]
    pub fn is_in_inbox(&self) -> bool {
        self.shelf().is_inbox()
    }

    /// Returns the address that the message is sent to. Returns `None` for a channel whose addresses cannot be
    /// suppressed.
    #[doc(hidden)]
    pub fn address(&self) -> Option<String> {
        match self.channel {
            Channel::Email => self.email.clone(),
            Channel::Sms => self.phone.clone(),
            Channel::InApp | Channel::Chat | Channel::Push => None,
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

    /// Returns the content of the message for another destination of the integration.
    #[doc(hidden)]
    #[must_use]
    pub fn to_another(self) -> Self {
        Self { device_tokens: Vec::new(), direct_webhook_url: None, ..self.redriven() }
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

    /// Returns the message in the place of `before`, which was stored earlier: with its id, and with its
    /// times of delivery before those of the new one, 100 in all. A message for a provider keeps its marks.
    /// One in the inbox has those that it was given, as it is unseen again.
    #[doc(hidden)]
    #[must_use]
    pub fn in_place_of(mut self, before: &Message) -> Self {
        self.id = before.id;
        self.created_at = before.created_at;
        self.delivered_at.splice(0..0, before.delivered_at.iter().copied());
        self.limit_deliveries();
        if self.channel != Channel::InApp {
            self.stage = before.stage;
        }
        self
    }

    /// Returns the message for another attempt, as it was before the provider has failed.
    #[doc(hidden)]
    #[must_use]
    pub fn redriven(self) -> Self {
        Self { status: MessageStatus::Sent, delivered_at: Vec::new(), listed_at: None, ..self }
    }

    /// Returns the message with its secrets masked.
    #[must_use]
    pub fn redacted(self) -> Self {
        let redacted = |one| Arc::new(Subscriber::redacted(Arc::unwrap_or_clone(one)));
        let subscriber = self.subscriber.map(redacted);
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

#[cfg(test)]
mod tests;
