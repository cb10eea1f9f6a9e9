//! Destinations of a subscriber at chat and push integrations.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::Profile;
use crate::error::{Invalid, Reason, at_most_items};
use crate::ids::{IntegrationId, IntegrationIdentifier};
use crate::json::shape;
use crate::limits;
use crate::plan::Address;
use crate::secret::Secret;
use crate::vocabulary::{Channel, ChannelProviderId};

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
    /// URL of a chat provider's webhook, which is not empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook_url: Option<Secret>,
    /// Mattermost channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// Device tokens of a push provider: at most 100, none of them empty.
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

impl Profile {
    /// Returns the profile with `settings`. A destination of the same integration keeps what they leave out,
    /// and its device tokens.
    #[doc(hidden)]
    pub fn with_channel(&self, settings: ChannelSettings) -> Result<Self, Invalid> {
        let mut profile = self.clone();
        merge(&mut profile.channels, settings)?;
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

    /// Returns the profile without the webhook of an integration, if it is still at `address`.
    #[must_use]
    pub(super) fn without_webhook(&self, integration_id: IntegrationId, address: &Address) -> Self {
        let mut profile = self.clone();
        let settings = profile.channels.iter_mut();
        for settings in settings.filter(|one| one.integration_id == integration_id) {
            let url = settings.credentials.webhook_url.take();
            settings.credentials.webhook_url = url.filter(|url| !address.is_webhook(url.expose()));
        }
        profile
    }

    /// Returns the profile without a device token of an integration.
    #[doc(hidden)]
    #[must_use]
    pub fn without_device(&self, integration_id: IntegrationId, token: &str) -> Self {
        let mut profile = self.clone();
        let settings = profile.channels.iter_mut();
        for settings in settings.filter(|one| one.integration_id == integration_id) {
            settings.credentials.device_tokens.retain(|known| known != token);
        }
        profile
    }
}

impl ChannelSettings {
    /// Refuses an integration of a channel without such destinations.
    #[doc(hidden)]
    pub fn check_channel(&self, channel: Channel) -> Result<(), Invalid> {
        match channel {
            Channel::Chat | Channel::Push => Ok(()),
            Channel::InApp | Channel::Email | Channel::Sms => {
                let expected = "the id of a chat or push integration";
                Err(Invalid::new("_integrationId", Reason::malformed(expected)))
            }
        }
    }

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

    // The other texts are no destinations. An empty one clears what is there.
    fn check_destinations(&self) -> Result<(), Invalid> {
        let is_empty = |text: &str| text.trim().is_empty();
        if self.webhook_url.as_ref().is_some_and(|url| is_empty(url.expose())) {
            return Err(Invalid::new("webhookUrl", Reason::Empty));
        }
        match self.device_tokens.iter().position(|token| is_empty(token)) {
            Some(index) => Err(Invalid::new(format!("deviceTokens[{index}]"), Reason::Empty)),
            None => Ok(()),
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

// Adds `settings` to `channels`. A destination of the same integration keeps its place, and what they leave out.
// It may have been stored when it could be empty.
fn merge(channels: &mut Vec<ChannelSettings>, settings: ChannelSettings) -> Result<(), Invalid> {
    let within = |invalid: Invalid| invalid.within("credentials");
    settings.credentials.check_destinations().map_err(within)?;
    let is_same = |one: &ChannelSettings| one.integration_id == settings.integration_id;
    let known = channels.iter().position(is_same);
    let settings = match known {
        Some(place) => channels.remove(place).and(settings),
        None => settings,
    };
    settings.credentials.check().map_err(within)?;
    channels.insert(known.unwrap_or(channels.len()), settings);
    Ok(())
}

/// Returns `known` with `newer`, each merged as in [`Profile::with_channel`]. A refusal names the place in
/// `newer`.
pub(super) fn merged(
    mut known: Vec<ChannelSettings>,
    newer: Vec<ChannelSettings>,
) -> Result<Vec<ChannelSettings>, Invalid> {
    if newer.is_empty() {
        return Ok(known);
    }
    for (index, settings) in newer.into_iter().enumerate() {
        merge(&mut known, settings).map_err(|bad| bad.within(format!("channels[{index}]")))?;
    }
    at_most_items("channels", &known, Profile::MAX_CHANNELS)?;
    Ok(known)
}

/// Refuses too many destinations, empty ones, a second one of an integration, and too many or too long device
/// tokens.
pub(super) fn check(channels: &[ChannelSettings]) -> Result<(), Invalid> {
    at_most_items("channels", channels, Profile::MAX_CHANNELS)?;
    let mut integrations = HashSet::new();
    for (index, settings) in channels.iter().enumerate() {
        let place = format!("channels[{index}]");
        let credentials = &settings.credentials;
        let credentials = credentials.check_destinations().and_then(|()| credentials.check());
        credentials.map_err(|invalid| invalid.within(format!("{place}.credentials")))?;
        // A message goes to one webhook of an integration, so that a second one would have none.
        if !integrations.insert(settings.integration_id) {
            return Err(Invalid::new(format!("{place}._integrationId"), Reason::Repeated));
        }
    }
    Ok(())
}
