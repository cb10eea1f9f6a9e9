//! Fields of a message as JSON has them. A struct without flattened parts is read field by field,
//! and nothing is kept aside.

use serde::de::{Error, IgnoredAny, Unexpected};
use serde::{Deserialize, Deserializer};

use super::stage::StageFields;
use super::{Message, MessageStatus, Stage};
use crate::content::{Cta, MessageContent};
use crate::context::ContextSet;
use crate::ids::{
    EnvironmentId, InternalSubscriberId, MessageId, NotificationId, OrganizationId, TemplateId,
    TransactionId, WorkflowId, WorkflowIdentifier,
};
use crate::json::Object;
use crate::secret::Secret;
use crate::subscriber::Subscriber;
use crate::time::Timestamp;
use crate::vocabulary::{Channel, Severity};
use crate::workflow::Workflow;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MessageFields {
    #[serde(rename = "_id")]
    id: MessageId,
    #[serde(rename = "_templateId")]
    workflow_id: Option<WorkflowId>,
    #[serde(rename = "_messageTemplateId")]
    template_id: Option<TemplateId>,
    #[serde(rename = "_feedId")]
    feed_id: Option<String>,
    #[serde(rename = "_environmentId")]
    environment_id: EnvironmentId,
    #[serde(rename = "_organizationId")]
    organization_id: OrganizationId,
    #[serde(rename = "_notificationId")]
    notification_id: NotificationId,
    #[serde(rename = "_subscriberId")]
    subscriber_id: InternalSubscriberId,
    subscriber: Option<Subscriber>,
    template: Option<Workflow>,
    template_identifier: Option<WorkflowIdentifier>,
    created_at: Timestamp,
    #[serde(default)]
    delivered_at: Vec<Timestamp>,
    listed_at: Option<Timestamp>,
    last_change: Option<u64>,
    snoozed_until: Option<Timestamp>,
    content: Option<MessageContent>,
    transaction_id: TransactionId,
    subject: Option<String>,
    title: Option<String>,
    email: Option<String>,
    phone: Option<String>,
    direct_webhook_url: Option<Secret>,
    provider_id: Option<String>,
    #[serde(default)]
    device_tokens: Vec<String>,
    channel: Channel,
    cta: Cta,
    payload: Option<Object>,
    overrides: Option<Object>,
    #[serde(default)]
    context_keys: ContextSet,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    severity: Severity,
    // The stage.
    read: bool,
    seen: bool,
    last_seen_date: Option<Timestamp>,
    last_read_date: Option<Timestamp>,
    archived_at: Option<Timestamp>,
    // The result of the delivery.
    status: Status,
    error_id: Option<Unchecked>,
    error_text: Option<Unchecked>,
}

// Name of a result of the delivery.
#[derive(Deserialize)]
#[serde(variant_identifier, rename_all = "lowercase")]
enum Status {
    Sent,
    Error,
    Warning,
}

// A text, or anything else if nobody needs it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Unchecked {
    Text(String),
    Other(IgnoredAny),
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        MessageFields::deserialize(from)?.message()
    }
}

impl MessageFields {
    fn message<E: Error>(self) -> Result<Message, E> {
        let stage = StageFields {
            read: self.read,
            seen: self.seen,
            last_seen_date: self.last_seen_date,
            last_read_date: self.last_read_date,
            archived_at: self.archived_at,
        };
        Ok(Message {
            stage: Stage::try_from(stage).map_err(E::custom)?,
            status: status(self.status, self.error_id, self.error_text)?,
            id: self.id,
            workflow_id: self.workflow_id,
            template_id: self.template_id,
            feed_id: self.feed_id,
            environment_id: self.environment_id,
            organization_id: self.organization_id,
            notification_id: self.notification_id,
            subscriber_id: self.subscriber_id,
            subscriber: self.subscriber,
            template: self.template,
            template_identifier: self.template_identifier,
            created_at: self.created_at,
            delivered_at: self.delivered_at,
            listed_at: self.listed_at,
            last_change: self.last_change,
            snoozed_until: self.snoozed_until,
            content: self.content,
            transaction_id: self.transaction_id,
            subject: self.subject,
            title: self.title,
            email: self.email,
            phone: self.phone,
            direct_webhook_url: self.direct_webhook_url,
            provider_id: self.provider_id,
            device_tokens: self.device_tokens,
            channel: self.channel,
            cta: self.cta,
            payload: self.payload,
            overrides: self.overrides,
            context_keys: self.context_keys,
            tags: self.tags,
            severity: self.severity,
        })
    }
}

fn status<E: Error>(
    status: Status,
    error_id: Option<Unchecked>,
    error_text: Option<Unchecked>,
) -> Result<MessageStatus, E> {
    let texts = || Ok((text(error_id, "errorId")?, text(error_text, "errorText")?));
    Ok(match status {
        Status::Sent => MessageStatus::Sent,
        Status::Error => {
            let (error_id, error_text) = texts()?;
            MessageStatus::Error { error_id, error_text }
        }
        Status::Warning => {
            let (error_id, error_text) = texts()?;
            MessageStatus::Warning { error_id, error_text }
        }
    })
}

fn text<E: Error>(found: Option<Unchecked>, field: &'static str) -> Result<String, E> {
    match found {
        Some(Unchecked::Text(text)) => Ok(text),
        Some(Unchecked::Other(_)) => {
            Err(E::invalid_type(Unexpected::Other("another value"), &"a string"))
        }
        None => Err(E::missing_field(field)),
    }
}
