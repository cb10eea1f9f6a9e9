//! Identifiers. Callers choose texts; the engine makes UUIDs, in the order of creation.

mod rules;

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

use crate::convert::text_conversions;
use crate::error::{Invalid, Reason};
use crate::packed::{self, Packed};
use crate::vocabulary::Word;

use rules::{joined_runs, long, readable, short, topic_key};
pub(crate) use rules::{line, plain};

macro_rules! text_id {
    ($(#[doc = $doc:literal])* $name:ident, $field:literal, $check:ident) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                from.deserialize_str(Word::of("a string"))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl $name {
            /// Checks `raw` and returns it as an identifier.
            pub fn new(raw: impl Into<Arc<str>>) -> Result<Self, Invalid> {
                let raw = raw.into();
                $check($field, &raw)?;
                Ok(Self(raw))
            }

            /// Returns the identifier as written.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        text_conversions!($name);

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                self.as_str()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0.as_ref().into()
            }
        }
    };
}

macro_rules! made_id {
    ($(#[doc = $doc:literal])* $name:ident, $field:literal) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_newtype_struct(packed::ID, &self.0)
            }
        }

        impl Packed for $name {
            fn unpack(bytes: &[u8]) -> Option<Self> {
                Uuid::from_slice(bytes).ok().map(Self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                packed::read(from, packed::ID, "a word")
            }
        }

        impl From<Uuid> for $name {
            fn from(uuid: Uuid) -> Self {
                Self(uuid)
            }
        }

        impl From<$name> for Uuid {
            fn from(id: $name) -> Uuid {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = Invalid;

            fn from_str(text: &str) -> Result<Self, Invalid> {
                let expected = "an identifier made by the engine";
                let uuid = Uuid::try_parse(text)
                    .map_err(|_| Invalid::new($field, Reason::malformed(expected)))?;
                Ok(Self(uuid))
            }
        }

        impl TryFrom<&str> for $name {
            type Error = Invalid;

            fn try_from(text: &str) -> Result<Self, Invalid> {
                text.parse()
            }
        }

        impl TryFrom<String> for $name {
            type Error = Invalid;

            fn try_from(text: String) -> Result<Self, Invalid> {
                text.parse()
            }
        }

        impl TryFrom<&String> for $name {
            type Error = Invalid;

            fn try_from(text: &String) -> Result<Self, Invalid> {
                text.parse()
            }
        }

        impl From<&$name> for $name {
            fn from(id: &$name) -> Self {
                *id
            }
        }
    };
}

macro_rules! reference {
    ($(#[doc = $doc:literal])* $name:ident, $($id:ty),*) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Returns the reference as written.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }

        impl From<&$name> for $name {
            fn from(reference: &$name) -> Self {
                reference.clone()
            }
        }

        impl From<$name> for String {
            fn from(reference: $name) -> String {
                reference.0
            }
        }

        $(impl From<$id> for $name {
            fn from(id: $id) -> Self {
                Self(id.to_string())
            }
        })*
    };
}

text_id! {
    /// Organization, named by the host application. It owns environments.
    OrganizationId, "organizationId", readable
}
text_id! {
    /// Subscriber, named by the host application: usually its own user id.
    SubscriberId, "subscriberId", readable
}
text_id! {
    /// Triggered event, named by the host application or by the engine.
    TransactionId, "transactionId", readable
}
text_id! {
    /// User of the host application that creates or deletes records.
    UserId, "userId", readable
}
text_id! {
    /// Name that triggers a workflow: runs of letters and digits, joined by `-`, `_` or `.`.
    WorkflowIdentifier, "workflowId", joined_runs
}
text_id! {
    /// Name of an integration, unique in its environment.
    IntegrationIdentifier, "identifier", joined_runs
}
text_id! {
    /// Key of a topic, chosen by the host application: at most 100 characters.
    TopicKey, "topicKey", topic_key
}
text_id! {
    /// Name of a subscription, unique in its topic.
    SubscriptionIdentifier, "identifier", long
}
text_id! {
    /// Name of a channel connection, unique in its environment.
    ConnectionIdentifier, "connectionIdentifier", readable
}
text_id! {
    /// Name of a channel endpoint, unique in its environment.
    EndpointIdentifier, "identifier", readable
}
text_id! {
    /// Channel, user, team or tenant, named by a chat platform.
    PlatformId, "id", readable
}
text_id! {
    /// Name of a layout, unique in its environment.
    LayoutIdentifier, "layoutId", joined_runs
}
text_id! {
    /// Key of one writing call, chosen by the caller.
    IdempotencyKey, "idempotency-key", short
}

made_id! {
    /// Id of an API key, made by the engine.
    ApiKeyId, "apiKeyId"
}
made_id! {
    /// Id of a channel connection, made by the engine.
    ConnectionId, "connectionId"
}
made_id! {
    /// Id of a window of a digest.
    DigestWindowId, "windowId"
}
made_id! {
    /// Id of a context, made by the engine.
    ContextId, "contextId"
}
made_id! {
    /// Id of an entry in the log of a job.
    DetailId, "detailId"
}
made_id! {
    /// Id of a channel endpoint, made by the engine.
    EndpointId, "endpointId"
}
made_id! {
    /// Id of an environment.
    EnvironmentId, "environmentId"
}
made_id! {
    /// Id of an integration.
    IntegrationId, "integrationId"
}
made_id! {
    /// Id of a job: one step of a workflow for one notification.
    JobId, "jobId"
}
made_id! {
    /// Id of a layout, made by the engine.
    LayoutId, "_layoutId"
}
made_id! {
    /// Id of a message.
    MessageId, "messageId"
}
made_id! {
    /// Id of a notification: one triggered event for one subscriber.
    NotificationId, "notificationId"
}
made_id! {
    /// Id of a group of workflows.
    NotificationGroupId, "notificationGroupId"
}
made_id! {
    /// Id of a send: the way of a message to one destination. A message whose job has one destination
    /// has the id of its job.
    SendId, "sendId"
}
made_id! {
    /// Id of a step of a workflow.
    StepId, "stepId"
}
made_id! {
    /// Id of a subscriber, made by the engine. A subscriber that is deleted and created again gets
    /// a new one.
    InternalSubscriberId, "_subscriberId"
}
made_id! {
    /// Id of a subscription, made by the engine.
    SubscriptionId, "id"
}
made_id! {
    /// Id of a suppression, made by the engine.
    SuppressionId, "suppressionId"
}
made_id! {
    /// Id of a task of the pipeline.
    TaskId, "taskId"
}
made_id! {
    /// Id of a dead letter.
    DeadLetterId, "cursor"
}
made_id! {
    /// Id of an entry of the quarantine.
    QuarantineId, "quarantineId"
}
made_id! {
    /// Id of the content of a step.
    ContentId, "templateId"
}
made_id! {
    /// Id of a topic, made by the engine.
    TopicId, "topicId"
}
made_id! {
    /// Id of a translation.
    TranslationId, "translationId"
}
made_id! {
    /// Id of a workflow, made by the engine.
    WorkflowId, "workflowId"
}

reference! {
    /// Workflow that a call or a request names by its identifier, its id or its slug. A text that is
    /// none of them finds no workflow.
    ///
    /// ```
    /// # extern crate tidings_domain as tidings;
    /// use tidings::ids::{WorkflowRef, WorkflowIdentifier};
    ///
    /// let workflow: WorkflowRef = WorkflowIdentifier::new("welcome")?.into();
    /// assert_eq!(workflow, "welcome".into());
    /// # Ok::<(), tidings::error::Invalid>(())
    /// ```
    WorkflowRef,
    &str, String, &String, WorkflowIdentifier, &WorkflowIdentifier, WorkflowId, &WorkflowId
}
reference! {
    /// Integration that a call or a request names by its identifier or its id. A text that is neither
    /// of them finds no integration.
    IntegrationRef,
    &str, String, &String, IntegrationIdentifier, &IntegrationIdentifier, IntegrationId,
    &IntegrationId
}

reference! {
    /// Step that a call or a request names by its id or its name, or else by its place, counted from 0,
    /// as in `"0"`.
    StepRef,
    &str, String, &String, StepId, &StepId
}

reference! {
    /// Layout that a call names by its identifier or its id. A text that is neither of them finds no
    /// layout.
    LayoutRef,
    &str, String, &String, LayoutIdentifier, &LayoutIdentifier, LayoutId, &LayoutId
}

// A record that has the id of another one.
macro_rules! same_id {
    ($($(#[doc = $doc:literal])* $from:ident => $to:ident),*) => {$(
        $(#[doc = $doc])*
        impl From<$from> for $to {
            fn from(id: $from) -> Self {
                Self(id.0)
            }
        }
    )*};
}

same_id! {
    /// The only message of a job has the id of the job.
    JobId => SendId,
    /// The task of a job has the id of the job.
    JobId => TaskId,
    /// The task of a send has the id of the send.
    SendId => TaskId,
    /// The task that closes a window has the id of the window.
    DigestWindowId => TaskId
}

/// Returns a UUID of version 7 from the milliseconds since the Unix epoch and the lower 74 bits of
/// `tail`. UUIDs sort by time, and then by tail.
#[doc(hidden)]
pub fn v7(millis: u64, tail: u128) -> Uuid {
    let (high, low) = (tail >> 62 & 0xfff, tail & ((1 << 62) - 1));
    Uuid::from_u128(u128::from(millis) << 80 | 7 << 76 | high << 64 | 2 << 62 | low)
}

impl OrganizationId {
    /// Returns the organization of environments whose own one is lost.
    #[doc(hidden)]
    pub fn repaired() -> Self {
        Self("repaired".into())
    }
}

impl UserId {
    /// Returns the user that stands for the host application.
    #[doc(hidden)]
    pub fn host() -> Self {
        Self("host".into())
    }
}

/// Longest identifier, in bytes.
pub const MAX_LEN: usize = 255;

impl TopicKey {
    /// Longest key, in characters.
    pub const MAX_LEN: usize = 100;
}

impl SubscriptionIdentifier {
    /// Longest identifier, in bytes. The engine composes one from the keys of the topic and the
    /// subscriber. A caller may choose [`Subscription::MAX_IDENTIFIER`] characters.
    ///
    /// [`Subscription::MAX_IDENTIFIER`]: crate::subscription::Subscription::MAX_IDENTIFIER
    pub const MAX_LEN: usize = 2_048;
}

#[cfg(test)]
mod tests;
