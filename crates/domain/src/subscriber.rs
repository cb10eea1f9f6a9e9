//! Subscribers: the people and systems that are notified.

mod bulk;
mod channels;
mod compose;
mod query;
mod wire;

use serde::{Deserialize, Serialize};

use crate::contact::{Email, Locale, TimeZone};
use crate::environment::Home;
use crate::error::Invalid;
use crate::ids::{EnvironmentId, InternalSubscriberId, OrganizationId, SubscriberId, plain};
use crate::job::{Destination, SendTarget};
use crate::json::{Object, shape};
use crate::patch::Patch;
use crate::plan::Address;
use crate::secret::Secret;
use crate::time::{Dated, Timestamp, dated};
use crate::vocabulary::Channel;

pub use bulk::Upserted;
pub use channels::{ChannelCredentials, ChannelSettings};
pub use query::SubscriberQuery;
#[doc(hidden)]
pub use query::SubscriberSearch;

/// Both ids of a subscriber: some of its fields.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscriberIds {
    /// Id in the host application.
    pub subscriber_id: SubscriberId,
    /// Id made by the engine.
    #[serde(rename = "_id")]
    pub id: InternalSubscriberId,
}

/// Recipient of notifications.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", from = "wire::Flat")]
#[non_exhaustive]
pub struct Subscriber {
    /// Id made by the engine.
    #[serde(rename = "_id")]
    pub id: InternalSubscriberId,
    /// Id in the host application.
    pub subscriber_id: SubscriberId,
    /// Profile.
    #[serde(flatten)]
    pub profile: Profile,
    /// Names of topics. Deprecated, and never filled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub topics: Vec<String>,
    /// `true` if the subscriber is connected, as the host application says. Absent if it says nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_online: Option<bool>,
    /// Time at which the subscriber was last disconnected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_online_at: Option<Timestamp>,
    /// Number of changes.
    #[serde(rename = "__v")]
    pub version: u64,
    /// Organization of the subscriber.
    #[serde(rename = "_organizationId")]
    pub organization_id: OrganizationId,
    /// Environment of the subscriber.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// `true` if the deletion of the subscriber has begun, so that nothing is sent to it any more. The
    /// end of the deletion removes the record.
    pub deleted: bool,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

/// Profile of a subscriber: everything that the host application sets besides the id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Profile {
    /// Given name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_name: Option<String>,
    /// Family name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_name: Option<String>,
    /// E-mail address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<Email>,
    /// Telephone number for text messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phone: Option<String>,
    /// URL or name of a picture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub avatar: Option<String>,
    /// Language of messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locale: Option<Locale>,
    /// Time zone of times in messages, of schedules, and of delays and digests that end at a time of day.
    /// Absent, it is that of the engine, which is UTC unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timezone: Option<TimeZone>,
    /// Destinations of chat and push messages: at most 100, one for each integration. Those of an `upsert` or
    /// of a recipient of a trigger are added to those of the subscriber.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub channels: Vec<ChannelSettings>,
    /// Custom data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Object>,
}

shape! { Profile {
    "firstName": first_name, "lastName": last_name, "email": email, "phone": phone,
    "avatar": avatar, "locale": locale, "timezone": timezone, "channels": channels, "data": data,
} }

/// New subscriber.
///
/// ```
/// # extern crate tidings_domain as tidings;
/// use tidings::subscriber::SubscriberCreate;
///
/// let ada = SubscriberCreate::new("ada")?.first_name("Ada").email("ada@example.org")?;
/// assert_eq!(ada.subscriber_id.as_str(), "ada");
/// let error = SubscriberCreate::new("ada")?.email("ada").unwrap_err();
/// assert_eq!(error.to_string(), "`email` must be an e-mail address");
/// # Ok::<(), tidings::error::Invalid>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SubscriberCreate {
    /// Id in the host application.
    pub subscriber_id: SubscriberId,
    /// Profile.
    #[serde(flatten)]
    pub profile: Profile,
}

shape! { SubscriberCreate { "subscriberId": subscriber_id; profile } }

/// Partial update of a subscriber.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "named after the fields of `Profile`")]
#[non_exhaustive]
pub struct SubscriberUpdate {
    #[serde(rename = "firstName", skip_serializing_if = "Patch::is_keep")]
    pub first_name: Patch<String>,
    #[serde(rename = "lastName", skip_serializing_if = "Patch::is_keep")]
    pub last_name: Patch<String>,
    #[serde(skip_serializing_if = "Patch::is_keep")]
    pub email: Patch<Email>,
    #[serde(skip_serializing_if = "Patch::is_keep")]
    pub phone: Patch<String>,
    #[serde(skip_serializing_if = "Patch::is_keep")]
    pub avatar: Patch<String>,
    #[serde(skip_serializing_if = "Patch::is_keep")]
    pub locale: Patch<Locale>,
    #[serde(skip_serializing_if = "Patch::is_keep")]
    pub timezone: Patch<TimeZone>,
    #[serde(skip_serializing_if = "Patch::is_keep")]
    pub data: Patch<Object>,
}

shape! { update SubscriberUpdate {
    "firstName": first_name, "lastName": last_name, "email": email, "phone": phone,
    "avatar": avatar, "locale": locale, "timezone": timezone, "data": data,
} }

dated! { Subscriber }

impl Subscriber {
    /// Returns a new subscriber.
    #[doc(hidden)]
    pub fn new(
        id: InternalSubscriberId,
        home: &Home,
        create: SubscriberCreate,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            subscriber_id: create.subscriber_id,
            profile: create.profile,
            topics: Vec::new(),
            is_online: None,
            last_online_at: None,
            version: 0,
            organization_id: home.organization_id.clone(),
            environment_id: home.environment_id,
            deleted: false,
            created_at: now,
            updated_at: now,
        }
    }

    /// Returns the subscriber with the fields of `create` in place of its own, and with the destinations of
    /// both. Absent fields stay.
    #[doc(hidden)]
    pub fn superseded_by(self, create: &SubscriberCreate, now: Timestamp) -> Result<Self, Invalid> {
        if create.has_only_id() {
            return Ok(self);
        }
        let profile = self.profile.clone().superseded_by(create.profile.clone())?;
        Ok(self.with_profile(profile, now))
    }

    /// Returns the addresses that may be suppressed, and that `after` does not have.
    #[doc(hidden)]
    pub fn addresses_lost(&self, after: &Self) -> impl Iterator<Item = (Channel, String)> {
        let all = self.profile.addresses();
        all.filter(|address| !after.profile.addresses().any(|kept| kept == *address))
    }

    /// Returns the subscriber with `profile` in place of its own. An equal one changes nothing, not
    /// even the time.
    #[doc(hidden)]
    #[must_use]
    pub fn with_profile(&self, profile: Profile, now: Timestamp) -> Self {
        if self.profile == profile {
            return self.clone();
        }
        let version = self.version.saturating_add(1);
        Self { profile, version, ..self.clone() }.changed(now)
    }

    /// Returns the subscriber that is connected or not. The end of a connection sets `last_online_at`. What is
    /// known already changes nothing, not even the time.
    #[doc(hidden)]
    #[must_use]
    pub fn online(&self, is_online: bool, now: Timestamp) -> Self {
        if self.is_online == Some(is_online) {
            return self.clone();
        }
        let has_left = self.is_online == Some(true);
        let last_online_at = if has_left { Some(now) } else { self.last_online_at };
        let version = self.version.saturating_add(1);
        Self { is_online: Some(is_online), last_online_at, version, ..self.clone() }.changed(now)
    }

    /// Returns the subscriber with a deletion that began at `now`, or that had begun before.
    #[doc(hidden)]
    #[must_use]
    pub fn deleted(&self, now: Timestamp) -> Self {
        if self.deleted {
            return self.clone();
        }
        let version = self.version.saturating_add(1);
        Self { deleted: true, version, ..self.clone() }.changed(now)
    }

    /// Returns the subscriber without the destination `target`, which had `address`. Returns `None` if the
    /// subscriber does not have that destination, or has it at another address.
    #[doc(hidden)]
    pub fn without(&self, target: &SendTarget, address: &Address, now: Timestamp) -> Option<Self> {
        let integration = target.integration_id;
        let profile = match &target.to {
            Destination::Webhook => self.profile.without_webhook(integration, address),
            Destination::Device { token } => self.profile.without_device(integration, token),
            Destination::Endpoint { .. } => return None,
        };
        (profile != self.profile).then(|| self.with_profile(profile, now))
    }

    /// Returns the subscriber with the secrets of its channels masked.
    #[must_use]
    pub fn redacted(mut self) -> Self {
        for settings in &mut self.profile.channels {
            let url = &mut settings.credentials.webhook_url;
            *url = url.as_ref().map(|_| Secret::redacted());
        }
        self
    }
}

impl Profile {
    /// Maximum number of integrations with a destination of a subscriber.
    pub const MAX_CHANNELS: usize = 100;
    /// Maximum number of device tokens and chat destinations of one integration.
    pub const MAX_DEVICE_TOKENS: usize = 100;
    /// Longest device token and other text of a chat or push destination, in characters.
    pub const MAX_DEVICE_TOKEN: usize = 4096;

    /// Refuses too many destinations, a second one of an integration, too many or too long device
    /// tokens, and names with control characters.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Invalid> {
        self.texts().check()?;
        channels::check(&self.channels)
    }

    /// Returns the profile after `update`.
    #[doc(hidden)]
    #[must_use]
    pub fn updated(&self, update: SubscriberUpdate) -> Self {
        let mut profile = self.clone();
        update.first_name.apply(&mut profile.first_name);
        update.last_name.apply(&mut profile.last_name);
        update.email.apply(&mut profile.email);
        update.phone.apply(&mut profile.phone);
        update.avatar.apply(&mut profile.avatar);
        update.locale.apply(&mut profile.locale);
        update.timezone.apply(&mut profile.timezone);
        update.data.apply(&mut profile.data);
        profile
    }

    /// Returns `newer`, with its absent fields taken from `self`, and with the destinations of both: each
    /// of `newer` as [`with_channel`](Self::with_channel) sets it.
    #[doc(hidden)]
    pub fn superseded_by(self, newer: Profile) -> Result<Self, Invalid> {
        Ok(Self {
            first_name: newer.first_name.or(self.first_name),
            last_name: newer.last_name.or(self.last_name),
            email: newer.email.or(self.email),
            phone: newer.phone.or(self.phone),
            avatar: newer.avatar.or(self.avatar),
            locale: newer.locale.or(self.locale),
            timezone: newer.timezone.or(self.timezone),
            channels: channels::merged(self.channels, newer.channels)?,
            data: newer.data.or(self.data),
        })
    }

    /// Returns the addresses that may be suppressed.
    #[doc(hidden)]
    pub fn addresses(&self) -> impl Iterator<Item = (Channel, String)> {
        let email = self.email.as_ref().map(|email| (Channel::Email, email.to_string()));
        let phone = self.phone.clone().map(|phone| (Channel::Sms, phone));
        email.into_iter().chain(phone)
    }

    pub(crate) fn texts(&self) -> SubscriberTexts<'_> {
        let names = [&self.first_name, &self.last_name, &self.phone, &self.avatar];
        SubscriberTexts::new(names.map(Option::as_deref))
    }

    /// Returns the given name and the family name, with a space between them. Returns `None` without
    /// both.
    #[doc(hidden)]
    pub fn full_name(&self) -> Option<String> {
        let names = [&self.first_name, &self.last_name].into_iter().flatten();
        let names: Vec<&str> = names.map(String::as_str).collect();
        (!names.is_empty()).then(|| names.join(" "))
    }
}

/// Texts of a subscriber without a type of their own, by field name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SubscriberTexts<'t> {
    pub(crate) names: [(&'static str, Option<&'t str>); 3],
    pub(crate) avatar: Option<&'t str>,
}

impl<'t> SubscriberTexts<'t> {
    fn new([first_name, last_name, phone, avatar]: [Option<&'t str>; 4]) -> Self {
        let names = [("firstName", first_name), ("lastName", last_name), ("phone", phone)];
        Self { names, avatar }
    }

    fn check(self) -> Result<(), Invalid> {
        let mut texts = self.names.into_iter().chain([("avatar", self.avatar)]);
        texts.try_for_each(|(field, text)| plain(field, text.unwrap_or_default()))
    }
}

impl SubscriberUpdate {
    /// Refuses names with control characters.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Invalid> {
        self.texts().check()
    }

    pub(crate) fn texts(&self) -> SubscriberTexts<'_> {
        let names = [&self.first_name, &self.last_name, &self.phone, &self.avatar];
        SubscriberTexts::new(names.map(|name| name.as_set().map(String::as_str)))
    }
}

#[cfg(test)]
mod tests;
