//! Unsubscribe links: signed tokens in messages, each of which switches off one preference.

mod token;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::context::{ContextPayload, ContextSet};
use crate::convert::IntoChecked;
use crate::error::{Invalid, Reason};
use crate::ids::{EnvironmentId, InternalSubscriberId, SubscriberId, TopicKey, WorkflowRef};
use crate::json::shape;
use crate::preference::WorkflowInfo;
use crate::secret::Secret;
use crate::time::Timestamp;
use crate::vocabulary::{Channel, wire_enum};
use crate::workflow::Workflow;

#[doc(hidden)]
pub use token::{Claimed, Claims};

/// Unsubscribe links of an engine: the URL of a page of the host, and the lifetime of a link.
///
/// ```
/// # extern crate tidings_domain as tidings;
/// use tidings::unsubscribe::UnsubscribeLinks;
///
/// let links = UnsubscribeLinks::new("https://shop.example.org/unsubscribe")?.valid_for_days(90);
/// assert!(UnsubscribeLinks::new("/unsubscribe").is_err());
/// # Ok::<(), tidings::error::Invalid>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsubscribeLinks {
    url: String,
    lifetime: Duration,
}

/// Request for an unsubscribe link.
///
/// ```
/// # extern crate tidings_domain as tidings;
/// use tidings::unsubscribe::UnsubscribeRequest;
/// use tidings::vocabulary::Channel;
///
/// let digest = UnsubscribeRequest::workflow("ada", "weekly-digest", Channel::Email)?;
/// let news = UnsubscribeRequest::topic("ada", "news")?;
/// # Ok::<(), tidings::error::Invalid>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UnsubscribeRequest {
    /// Subscriber of the preference.
    pub subscriber_id: SubscriberId,
    /// Preference that the link switches off.
    pub from: UnsubscribeFrom,
    /// Contexts of the preference: exactly these, at most 5.
    #[serde(default)]
    pub context_keys: ContextSet,
}

shape! { UnsubscribeRequest {
    "subscriberId": subscriber_id, "from": from, "contextKeys": context_keys
} }

/// Preference that an unsubscribe link switches off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum UnsubscribeFrom {
    /// Messages of a workflow on a channel.
    Workflow {
        /// Workflow: identifier, id or slug.
        workflow_id: WorkflowRef,
        /// Channel.
        channel: Channel,
    },
    /// A topic, on every channel.
    Topic {
        /// Key of the topic.
        topic_key: TopicKey,
    },
}

shape! { UnsubscribeFrom by "type" {
    "workflow": { "workflowId": WorkflowRef, "channel": Channel },
    "topic": { "topicKey": TopicKey },
} }

/// Meaning of an unsubscribe link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Unsubscription {
    /// Subscriber of the preference.
    pub subscriber_id: SubscriberId,
    /// Preference that the link switches off.
    pub from: UnsubscribedFrom,
    /// Contexts of the preference.
    pub context_keys: ContextSet,
    /// `true` if the preferences admit the channel of the workflow, or if there is a subscription to
    /// the topic. Conditions count as met.
    pub subscribed: bool,
    /// Time at which the link expires.
    pub expires_at: Timestamp,
}

/// Preference that an unsubscribe link switches off, as records have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum UnsubscribedFrom {
    /// Messages of a workflow on a channel.
    Workflow {
        /// Workflow.
        workflow: WorkflowInfo,
        /// Channel.
        channel: Channel,
    },
    /// A topic, on every channel.
    Topic {
        /// Key of the topic.
        topic_key: TopicKey,
        /// Display name of the topic.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
}

wire_enum! {
    /// Reason to refuse the token of an unsubscribe link.
    TokenProblem, "token":
    Malformed = "malformed",
    OtherEnvironment = "other_environment",
    Forged = "forged",
    Expired = "expired",
    SubscriberDeleted = "subscriber_deleted",
}

impl TokenProblem {
    /// Returns the problem as a sentence about the link.
    pub const fn sentence(self) -> &'static str {
        match self {
            TokenProblem::Malformed => "it is not whole",
            TokenProblem::OtherEnvironment => "it belongs to another environment",
            TokenProblem::Forged => "its signature is wrong",
            TokenProblem::Expired => "it has expired",
            TokenProblem::SubscriberDeleted => "its subscriber was deleted",
        }
    }
}

/// Key that signs the unsubscribe links of an environment.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LinkKey {
    /// Environment of the links.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// Random letters and digits.
    pub key: Secret,
    /// Time of creation.
    pub created_at: Timestamp,
}

impl LinkKey {
    /// Length of a key, in letters and digits of 5 bits each: more than 256 bits.
    pub const LENGTH: usize = 52;
}

/// Unsubscribe link of a message, which is signed when it is used.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    url: String,
    key: Secret,
    claims: Claims,
}

/// Recipient of a message with an unsubscribe link.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct LinkTo<'a> {
    pub subscriber: InternalSubscriberId,
    pub contexts: &'a ContextSet,
    pub channel: Channel,
    /// Time from which on the lifetime counts.
    pub since: Timestamp,
}

impl UnsubscribeLinks {
    /// Longest URL, in bytes: a line of an e-mail's head has room for it and for a token.
    pub const MAX_URL: usize = 500;
    /// Longest token, in bytes: the longest key of a topic and the contexts of a notification fit.
    /// A longer text is refused before it is decoded.
    pub const MAX_TOKEN: usize = 8 * 1024;
    /// Lifetime of a link in days, unless the host sets another one.
    pub const DAYS: u32 = 365;

    /// Returns links to the page at `url`. Each link adds the parameter `token` to its query.
    ///
    /// # Errors
    ///
    /// [`Invalid`], if `url` does not start with `https://` or `http://`, has a fragment or a
    /// character that URLs do not have, or is longer than 500 bytes.
    pub fn new(url: impl Into<String>) -> Result<Self, Invalid> {
        let url = url.into();
        let rest = url.strip_prefix("https://").or(url.strip_prefix("http://"));
        let plain = |byte: u8| byte.is_ascii_graphic() && !b"<>\"#,".contains(&byte);
        let is_sound = rest.is_some_and(|rest| !rest.is_empty()) && url.bytes().all(plain);
        if !is_sound || url.len() > Self::MAX_URL {
            let reason = Reason::malformed("an http or https URL without a fragment");
            return Err(Invalid::new("unsubscribeUrl", reason));
        }
        Ok(Self { url, lifetime: days(Self::DAYS) })
    }

    /// Sets the lifetime of a link, from the time of its notification: 1 day at least.
    #[must_use]
    pub fn valid_for_days(self, count: u32) -> Self {
        Self { lifetime: days(count.max(1)), ..self }
    }

    /// Returns the time at which a link expires that was made at `since`.
    #[doc(hidden)]
    pub fn expiry(&self, since: Timestamp) -> Timestamp {
        since.after(self.lifetime)
    }

    /// Returns the URL with a signed token.
    #[doc(hidden)]
    pub fn sign(&self, key: &LinkKey, claims: Claims) -> Link {
        let url = self.url.clone();
        Link { url, key: key.key.clone(), claims }
    }

    /// Returns the link in a message of `workflow`. Messages of a critical one have none, nor have
    /// those in the inbox.
    #[doc(hidden)]
    pub fn link(&self, key: &LinkKey, workflow: &Workflow, to: LinkTo<'_>) -> Option<Link> {
        let LinkTo { subscriber, contexts, channel, since } = to;
        let claims = Claims {
            environment_id: key.environment_id,
            subscriber_id: subscriber,
            from: Claimed::Workflow(workflow.id, channel),
            context_keys: contexts.clone(),
            expires_at: self.expiry(since),
        };
        (!workflow.critical && channel != Channel::InApp).then(|| self.sign(key, claims))
    }
}

impl Link {
    /// Returns the URL with the token.
    pub fn to_url(&self) -> String {
        let separator = if self.url.contains('?') { '&' } else { '?' };
        format!("{}{separator}token={}", self.url, self.claims.token(&self.key))
    }
}

impl Unsubscription {
    /// Returns the meaning of a link of a subscriber, with the contexts of its preference.
    #[doc(hidden)]
    pub fn new(
        (subscriber_id, context_keys): (SubscriberId, ContextSet),
        from: UnsubscribedFrom,
        subscribed: bool,
        expires_at: Timestamp,
    ) -> Self {
        Self { subscriber_id, from, context_keys, subscribed, expires_at }
    }
}

impl UnsubscribeRequest {
    /// Returns a request for a link to the messages of a workflow on a channel.
    pub fn workflow(
        subscriber: impl IntoChecked<SubscriberId>,
        workflow: impl Into<WorkflowRef>,
        channel: Channel,
    ) -> Result<Self, Invalid> {
        let from = UnsubscribeFrom::Workflow { workflow_id: workflow.into(), channel };
        Self::of(subscriber, from)
    }

    /// Returns a request for a link to a topic.
    pub fn topic(
        subscriber: impl IntoChecked<SubscriberId>,
        topic: impl IntoChecked<TopicKey>,
    ) -> Result<Self, Invalid> {
        let topic_key = topic.into_checked().map_err(|invalid| invalid.named("topicKey"))?;
        Self::of(subscriber, UnsubscribeFrom::Topic { topic_key })
    }

    fn of(
        subscriber: impl IntoChecked<SubscriberId>,
        from: UnsubscribeFrom,
    ) -> Result<Self, Invalid> {
        let subscriber_id =
            subscriber.into_checked().map_err(|invalid| invalid.named("subscriberId"))?;
        Ok(Self { subscriber_id, from, context_keys: ContextSet::default() })
    }

    /// Sets the contexts of the preference. It counts for events of exactly these.
    #[must_use]
    pub fn contexts(self, context_keys: ContextSet) -> Self {
        Self { context_keys, ..self }
    }

    /// Refuses more contexts than an event has. Their token would be longer than those that are read.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Invalid> {
        self.context_keys.check(ContextPayload::MAX)
    }
}

fn days(count: u32) -> Duration {
    Duration::from_secs(u64::from(count) * 24 * 60 * 60)
}

#[cfg(test)]
mod tests;
