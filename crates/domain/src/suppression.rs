//! Suppressions: addresses to which no messages are sent, since they bounce or their owners complain.

mod address;

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::environment::Home;
use crate::error::{Invalid, Reason, at_most};
use crate::ids::{EnvironmentId, SubscriberId, SuppressionId};
use crate::json::shape;
use crate::page::{OrderBy, PageQuery};
use crate::setters::{page_setters, setters};
use crate::time::Timestamp;
use crate::vocabulary::{Channel, wire_enum};

pub use address::SuppressedAddress;

/// Address on a channel to which no messages are sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Suppression {
    /// Id given by the engine.
    #[serde(rename = "_id")]
    pub id: SuppressionId,
    /// Environment of the suppression.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// Channel and address.
    #[serde(flatten)]
    pub address: SuppressedAddress,
    /// Reason.
    pub reason: SuppressionReason,
    /// Text of the service or of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Time from which on nothing is sent.
    pub created_at: Timestamp,
    /// Time from which on messages are sent again. `None` for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Subscribers whose messages a provider has reported, and those who had the address and have another
    /// one or were deleted since. If one of them is erased, or if there are more than 100, only a hash of the
    /// address is kept.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub subscriber_ids: BTreeSet<SubscriberId>,
}

wire_enum! {
    /// Reason of a suppression.
    SuppressionReason, "reason":
    Bounced = "bounced",
    Complained = "complained",
    Manual = "manual",
}

/// New suppression.
///
/// ```
/// # extern crate tidings_domain as tidings;
/// use tidings::suppression::SuppressionCreate;
/// use tidings::vocabulary::Channel;
///
/// let gone = SuppressionCreate::new(Channel::Email, "Ada@Example.org")?.text("has left");
/// assert_eq!(gone.address.address(), "ada@example.org");
/// # Ok::<(), tidings::error::Invalid>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SuppressionCreate {
    /// Channel and address.
    #[serde(flatten)]
    pub address: SuppressedAddress,
    /// Reason. Absent for one of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<SuppressionReason>,
    /// Text: at most 1,000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Time from which on messages are sent again. Absent for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

shape! { SuppressionCreate {
    "reason": reason, "text": text, "expiresAt": expires_at; address
} }

/// Query of suppressions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SuppressionQuery {
    /// Page of the list.
    #[serde(flatten)]
    pub page: PageQuery,
    /// Channel of the addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<Channel>,
}

shape! { SuppressionQuery { "channel": channel; page by SuppressionQuery::ORDERS } }

setters! { SuppressionCreate:
    /// Sets the reason.
    reason: exact(SuppressionReason);
    /// Sets the text.
    text: into(String);
    /// Sets the time from which on messages are sent again.
    expires_at: exact(Timestamp);
}

setters! { SuppressionQuery:
    /// Lists the addresses of a channel.
    channel: exact(Channel);
}

page_setters!(SuppressionQuery);

impl SuppressionQuery {
    /// Fields that the list can be sorted by.
    #[doc(hidden)]
    pub const ORDERS: &[OrderBy] = &[OrderBy::Id];
}

impl SuppressionCreate {
    /// Longest text, in characters.
    pub const MAX_TEXT: usize = 1_000;

    /// Returns a suppression of an e-mail address or a telephone number, by the host and for ever.
    ///
    /// # Errors
    ///
    /// [`Invalid`], if the channel is another one, or the address has no valid form.
    pub fn new(channel: Channel, address: impl AsRef<str>) -> Result<Self, Invalid> {
        let address = SuppressedAddress::new(channel, address)?;
        Ok(Self { address, reason: None, text: None, expires_at: None })
    }

    /// Returns the suppression of an address that a provider has reported at `now`.
    #[doc(hidden)]
    pub fn reported(
        address: SuppressedAddress,
        reason: SuppressionReason,
        text: Option<String>,
        now: Timestamp,
    ) -> Self {
        Self { address, reason: Some(reason), text, expires_at: reason.expiry(now) }
    }

    /// Refuses a text that is too long.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Invalid> {
        at_most("text", self.text.as_deref().unwrap_or_default(), Self::MAX_TEXT)
    }
}

impl Suppression {
    /// Days for which an address is suppressed that has bounced.
    pub const DAYS: u32 = 90;

    // Subscribers that it names. The address of more is kept as a hash.
    const MAX_SUBSCRIBERS: usize = 100;

    /// Returns a new suppression.
    #[doc(hidden)]
    pub fn new(id: SuppressionId, home: &Home, create: SuppressionCreate, now: Timestamp) -> Self {
        let SuppressionCreate { address, reason, text, expires_at } = create;
        let (environment_id, created_at) = (home.environment_id, now);
        let reason = reason.unwrap_or(SuppressionReason::Manual);
        let subscriber_ids = BTreeSet::new();
        Self { id, environment_id, address, reason, text, created_at, expires_at, subscriber_ids }
    }

    /// Returns the suppression with a further subscriber, unless it is about nobody that is known.
    #[doc(hidden)]
    #[must_use]
    pub fn of(mut self, subscriber: &SubscriberId) -> Self {
        if self.address.is_hash() {
            return self;
        }
        self.subscriber_ids.insert(subscriber.clone());
        if self.subscriber_ids.len() > Self::MAX_SUBSCRIBERS { self.erased() } else { self }
    }

    /// Returns the suppression after another one of its address. It holds as long as the longer of
    /// both, whose reason it has, and whose text unless its address is a hash.
    #[doc(hidden)]
    #[must_use]
    pub fn renewed(self, create: SuppressionCreate) -> Self {
        let SuppressionCreate { reason, text, expires_at, .. } = create;
        self.or_longer(reason.unwrap_or(SuppressionReason::Manual), text, expires_at)
    }

    /// Returns the suppression after another one was moved to its address. It holds as long as the longer
    /// of both, whose reason it has.
    #[doc(hidden)]
    #[must_use]
    pub fn merged(self, other: Self) -> Self {
        self.or_longer(other.reason, other.text, other.expires_at)
    }

    fn or_longer(
        self,
        reason: SuppressionReason,
        text: Option<String>,
        expires_at: Option<Timestamp>,
    ) -> Self {
        if end(expires_at) <= self.end() {
            return self;
        }
        // Nothing but the hash of the address is kept of who was erased.
        let text = if self.address.is_hash() { None } else { text.or(self.text) };
        Self { reason, text, expires_at, ..self }
    }

    /// Returns the time from which on messages are sent again. It is the last one for never.
    #[doc(hidden)]
    pub fn end(&self) -> Timestamp {
        end(self.expires_at)
    }

    /// Returns the suppression as it is shown to a subscriber: it names no other one.
    #[doc(hidden)]
    #[must_use]
    pub fn only(mut self, subscriber: &SubscriberId) -> Self {
        self.subscriber_ids.retain(|id| id == subscriber);
        self
    }

    /// Returns the suppression without what it says about persons: the address is a hash, and the text
    /// and the subscribers are gone. Messages to the address are suppressed as before.
    #[doc(hidden)]
    #[must_use]
    pub fn erased(&self) -> Self {
        let address = self.address.erased(self.environment_id);
        Self { address, text: None, subscriber_ids: BTreeSet::new(), ..self.clone() }
    }

    /// Returns `true` if messages are sent to the address again at `now`.
    #[doc(hidden)]
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|expires_at| expires_at <= now)
    }

    /// Returns what the log of a job shows of the suppression.
    #[doc(hidden)]
    pub fn shown(&self) -> String {
        match (&self.text, self.expires_at) {
            (Some(text), _) => format!("{}: {text}", self.reason),
            (None, Some(until)) => format!("{} until {until}", self.reason),
            (None, None) => self.reason.to_string(),
        }
    }
}

impl SuppressionReason {
    /// Returns the time until which the reason of a report at `now` holds. A complaint holds for
    /// ever.
    #[doc(hidden)]
    pub fn expiry(self, now: Timestamp) -> Option<Timestamp> {
        match self {
            SuppressionReason::Bounced => {
                Some(now.after(Duration::from_secs(u64::from(Suppression::DAYS) * 24 * 60 * 60)))
            }
            SuppressionReason::Complained | SuppressionReason::Manual => None,
        }
    }
}

fn end(expires_at: Option<Timestamp>) -> Timestamp {
    expires_at.unwrap_or(Timestamp::MAX)
}

// The reason to refuse a channel without addresses of its own.
fn unsupported() -> Invalid {
    let words = [Channel::Email, Channel::Sms].iter().map(ToString::to_string).collect();
    Invalid::new("channel", Reason::NotOneOf { words })
}

#[cfg(test)]
mod tests;
