//! Subscribers: the people and systems that are notified.

mod compose;
mod query;

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::contact::{Email, Locale, TimeZone};
use crate::environment::Home;
use crate::error::{Invalid, Reason, at_most_items};
use crate::ids::{
    EnvironmentId, IntegrationId, IntegrationIdentifier, InternalSubscriberId, OrganizationId,
    SubscriberId, plain,
};
use crate::job::{Destination, SendTarget};
use crate::json::{Object, shape};
use crate::limits;
use crate::patch::Patch;
use crate::plan::Address;
use crate::secret::Secret;
use crate::time::{Dated, Timestamp, dated};
use crate::vocabulary::{Channel, ChannelProviderId};

pub use query::SubscriberQuery;
#[doc(hidden)]
pub use query::SubscriberSearch;

/// Recipient of notifications.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
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
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub topics: Vec<String>,
    /// `true` if the subscriber is connected, as the host application says. Absent if it says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_online: Option<bool>,
    /// Time at which the subscriber was last disconnected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_online_at: Option<Timestamp>,
    /// Number of changes.
    #[serde(rename = "__v", default)]
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
    /// Time zone for times in messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timezone: Option<TimeZone>,
    /// Destinations of chat and push messages: at most 100, one for each integration.
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

/// Destination of a subscriber at one chat or push integration: that with the id `_integrationId`. The
/// provider and the identifier are shown only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ChannelSettings {
    /// Provider. It is shown only.
    pub provider_id: ChannelProviderId,
    /// Identifier of the integration. It is shown only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integration_identifier: Option<IntegrationIdentifier>,
    /// Destination.
    pub credentials: ChannelCredentials,
    /// Id of the integration. It alone decides which one sends to the destination.
    #[serde(rename = "_integrationId")]
    pub integration_id: IntegrationId,
}

shape! { ChannelSettings {
    "providerId": provider_id, "integrationIdentifier": integration_identifier,
    "credentials": credentials, "_integrationId": integration_id,
} }

/// Destination of the messages of a chat or push integration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ChannelCredentials {
    /// URL of a chat provider's webhook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook_url: Option<Secret>,
    /// Mattermost channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// Device tokens of a push provider: at most 100.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub device_tokens: Vec<String>,
    /// Id of a Grafana on-call alert.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alert_uid: Option<String>,
    /// Title of a Grafana on-call alert.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// URL of a Grafana on-call alert's picture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_url: Option<String>,
    /// State of a Grafana on-call alert.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Link of a Grafana on-call alert.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_url: Option<String>,
}

shape! { ChannelCredentials {
    "webhookUrl": webhook_url, "channel": channel, "deviceTokens": device_tokens,
    "alertUid": alert_uid, "title": title, "imageUrl": image_url, "state": state,
    "externalUrl": external_url,
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

impl Subscriber {
    /// Returns the subscriber without the destination `target`, which had `address`. Returns `None` if the
    /// subscriber does not have that destination, or has it at another address.
    #[doc(hidden)]
    pub fn without(&self, target: &SendTarget, address: &Address, now: Timestamp) -> Option<Self> {
        let mut profile = self.profile.clone();
        let settings = profile.channels.iter_mut();
        for settings in settings.filter(|one| one.integration_id == target.integration_id) {
            let credentials = &mut settings.credentials;
            match &target.to {
                Destination::Webhook => {
                    let url = credentials.webhook_url.take();
                    credentials.webhook_url = url.filter(|url| !address.is_webhook(url.expose()));
                }
                Destination::Device { token } => {
                    credentials.device_tokens.retain(|known| known != token);
                }
                Destination::Endpoint { .. } => {}
            }
        }
        (profile != self.profile).then(|| self.with_profile(profile, now))
    }
}

impl Profile {
    /// Returns the profile with `settings`. A destination of the same integration keeps what they leave out,
    /// and its device tokens.
    #[doc(hidden)]
    pub fn with_channel(&self, settings: ChannelSettings) -> Result<Self, Invalid> {
        let mut profile = self.clone();
        let is_same = |one: &ChannelSettings| one.integration_id == settings.integration_id;
        let known = profile.channels.iter().position(is_same);
        let settings = match known {
            Some(place) => profile.channels.remove(place).and(settings),
            None => settings,
        };
        settings.credentials.check().map_err(|invalid| invalid.within("credentials"))?;
        profile.channels.insert(known.unwrap_or(profile.channels.len()), settings);
        at_most_items("channels", &profile.channels, Self::MAX_CHANNELS)?;
        Ok(profile)
    }

    /// Returns the profile without the destination of an integration.
    #[doc(hidden)]
    #[must_use]
    pub fn without_channel(&self, integration_id: IntegrationId) -> Self {
        let mut profile = self.clone();
        profile.channels.retain(|settings| settings.integration_id != integration_id);
        profile
    }
}

impl ChannelSettings {
    // Returns `newer`, with what it leaves out.
    fn and(self, newer: Self) -> Self {
        Self {
            integration_identifier: newer.integration_identifier.or(self.integration_identifier),
            credentials: self.credentials.and(newer.credentials),
            ..newer
        }
    }
}

impl ChannelCredentials {
    // Returns `newer`, with its absent fields taken from `self`, and with the tokens of both.
    fn and(self, newer: Self) -> Self {
        let mut device_tokens = self.device_tokens;
        for token in newer.device_tokens {
            if !device_tokens.contains(&token) {
                device_tokens.push(token);
            }
        }
        Self {
            webhook_url: newer.webhook_url.or(self.webhook_url),
            channel: newer.channel.or(self.channel),
            device_tokens,
            alert_uid: newer.alert_uid.or(self.alert_uid),
            title: newer.title.or(self.title),
            image_url: newer.image_url.or(self.image_url),
            state: newer.state.or(self.state),
            external_url: newer.external_url.or(self.external_url),
        }
    }

    fn check(&self) -> Result<(), Invalid> {
        let texts = [
            ("webhookUrl", self.webhook_url.as_ref().map(Secret::expose)),
            ("channel", self.channel.as_deref()),
            ("alertUid", self.alert_uid.as_deref()),
            ("title", self.title.as_deref()),
            ("imageUrl", self.image_url.as_deref()),
            ("state", self.state.as_deref()),
            ("externalUrl", self.external_url.as_deref()),
        ];
        at_most_items("deviceTokens", &self.device_tokens, Profile::MAX_DEVICE_TOKENS)?;
        for (index, token) in self.device_tokens.iter().enumerate() {
            limits::text(&format!("deviceTokens[{index}]"), token, Profile::MAX_DEVICE_TOKEN)?;
        }
        texts.into_iter().try_for_each(|(field, text)| {
            limits::text(field, text.unwrap_or_default(), Profile::MAX_DEVICE_TOKEN)
        })
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
        at_most_items("channels", &self.channels, Self::MAX_CHANNELS)?;
        let mut integrations = HashSet::new();
        for (index, settings) in self.channels.iter().enumerate() {
            let place = format!("channels[{index}]");
            let credentials = settings.credentials.check();
            credentials.map_err(|invalid| invalid.within(format!("{place}.credentials")))?;
            // A message goes to one webhook of an integration, so that a second one would have none.
            if !integrations.insert(settings.integration_id) {
                return Err(Invalid::new(format!("{place}._integrationId"), Reason::Repeated));
            }
        }
        Ok(())
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

    /// Returns `newer`, with its absent fields taken from `self`.
    #[doc(hidden)]
    #[must_use]
    pub fn superseded_by(self, newer: Profile) -> Self {
        Self {
            first_name: newer.first_name.or(self.first_name),
            last_name: newer.last_name.or(self.last_name),
            email: newer.email.or(self.email),
            phone: newer.phone.or(self.phone),
            avatar: newer.avatar.or(self.avatar),
            locale: newer.locale.or(self.locale),
            timezone: newer.timezone.or(self.timezone),
            channels: if newer.channels.is_empty() { self.channels } else { newer.channels },
            data: newer.data.or(self.data),
        }
    }
}

/// Texts of a subscriber without a type of their own, by field name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SubscriberTexts<'t> {
    pub(crate) names: [(&'static str, Option<&'t str>); 3],
    pub(crate) avatar: Option<&'t str>,
}

impl SubscriberTexts<'_> {
    fn check(self) -> Result<(), Invalid> {
        let mut texts = self.names.into_iter().chain([("avatar", self.avatar)]);
        texts.try_for_each(|(field, text)| plain(field, text.unwrap_or_default()))
    }
}

impl Profile {
    /// Returns the addresses that may be suppressed.
    #[doc(hidden)]
    pub fn addresses(&self) -> impl Iterator<Item = (Channel, String)> {
        let email = self.email.as_ref().map(|email| (Channel::Email, email.to_string()));
        let phone = self.phone.clone().map(|phone| (Channel::Sms, phone));
        email.into_iter().chain(phone)
    }

    pub(crate) fn texts(&self) -> SubscriberTexts<'_> {
        SubscriberTexts {
            names: [
                ("firstName", self.first_name.as_deref()),
                ("lastName", self.last_name.as_deref()),
                ("phone", self.phone.as_deref()),
            ],
            avatar: self.avatar.as_deref(),
        }
    }
}

impl SubscriberUpdate {
    /// Refuses names with control characters.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Invalid> {
        self.texts().check()
    }

    pub(crate) fn texts(&self) -> SubscriberTexts<'_> {
        SubscriberTexts {
            names: [
                ("firstName", self.first_name.as_set().map(String::as_str)),
                ("lastName", self.last_name.as_set().map(String::as_str)),
                ("phone", self.phone.as_set().map(String::as_str)),
            ],
            avatar: self.avatar.as_set().map(String::as_str),
        }
    }
}

impl Profile {
    /// Returns the given name and the family name, with a space between them. Returns `None` without
    /// both.
    #[doc(hidden)]
    pub fn full_name(&self) -> Option<String> {
        let names = [&self.first_name, &self.last_name].into_iter().flatten();
        let names: Vec<&str> = names.map(String::as_str).collect();
        (!names.is_empty()).then(|| names.join(" "))
    }
}

#[cfg(test)]
mod tests;
