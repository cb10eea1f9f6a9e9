//! Constructors and setters of subscribers.

use super::{
    ChannelCredentials, ChannelSettings, Profile, SubscriberCreate, SubscriberQuery,
    SubscriberUpdate,
};
use crate::contact::{Email, Locale, TimeZone};
use crate::convert::IntoChecked;
use crate::error::Invalid;
use crate::ids::{IntegrationId, IntegrationIdentifier, SubscriberId};
use crate::json::Object;
use crate::secret::Secret;
use crate::setters::{page_setters, setters};
use crate::vocabulary::ChannelProviderId;

impl SubscriberCreate {
    /// Returns a subscriber with an empty profile.
    pub fn new(subscriber_id: impl IntoChecked<SubscriberId>) -> Result<Self, Invalid> {
        Ok(Self { subscriber_id: subscriber_id.into_checked()?, profile: Profile::default() })
    }

    /// Returns `true` if it has nothing but the id, so that it changes no subscriber.
    #[doc(hidden)]
    pub fn has_only_id(&self) -> bool {
        self.profile == Profile::default()
    }
}

setters! { SubscriberCreate:
    /// Sets the whole profile.
    profile: exact(Profile);
    /// Sets the given name.
    first_name @ profile.first_name: into(String);
    /// Sets the family name.
    last_name @ profile.last_name: into(String);
    /// Sets the e-mail address.
    email @ profile.email: checked(Email, "email");
    /// Sets the telephone number for text messages, as their provider wants it. The engine does not check
    /// it, and cannot suppress what is no number.
    phone @ profile.phone: into(String);
    /// Sets the URL or the name of a picture.
    avatar @ profile.avatar: into(String);
    /// Sets the language of messages.
    locale @ profile.locale: checked(Locale, "locale");
    /// Sets the time zone of times in messages, of schedules, and of delays and digests that end at a time
    /// of day. Without one it is that of the engine, which is UTC unless set.
    timezone @ profile.timezone: checked(TimeZone, "timezone");
    /// Sets custom data.
    data @ profile.data: checked(Object, "data");
    /// Adds the destination of a chat or push integration. An integration has one destination. An `upsert` and
    /// a trigger add it to those of the subscriber, as `set_channel` does.
    channel @ profile.channels: push(ChannelSettings);
}

setters! { SubscriberUpdate:
    /// Sets the given name.
    first_name: into(String);
    /// Removes the given name.
    clear_first_name @ first_name: clear();
    /// Sets the family name.
    last_name: into(String);
    /// Removes the family name.
    clear_last_name @ last_name: clear();
    /// Sets the e-mail address.
    email: checked(Email, "email");
    /// Removes the e-mail address.
    clear_email @ email: clear();
    /// Sets the telephone number for text messages.
    phone: into(String);
    /// Removes the telephone number for text messages.
    clear_phone @ phone: clear();
    /// Sets the URL or the name of a picture.
    avatar: into(String);
    /// Removes the picture.
    clear_avatar @ avatar: clear();
    /// Sets the language of messages.
    locale: checked(Locale, "locale");
    /// Removes the language of messages.
    clear_locale @ locale: clear();
    /// Sets the time zone.
    timezone: checked(TimeZone, "timezone");
    /// Removes the time zone, so that it is that of the engine.
    clear_timezone @ timezone: clear();
    /// Sets custom data.
    data: checked(Object, "data");
    /// Removes custom data.
    clear_data @ data: clear();
}

setters! { SubscriberQuery:
    /// Lists the subscribers with exactly this address.
    email: into(String);
    /// Lists the subscribers with exactly this number.
    phone: into(String);
    /// Lists the subscribers with this text in the given name and the family name, in any case.
    name: into(String);
}

page_setters!(SubscriberQuery);

impl ChannelSettings {
    /// Returns the destination of a chat or push integration.
    pub fn new(
        integration_id: impl IntoChecked<IntegrationId>,
        provider_id: ChannelProviderId,
        credentials: ChannelCredentials,
    ) -> Result<Self, Invalid> {
        let integration_id = integration_id.into_checked();
        Ok(Self {
            provider_id,
            integration_identifier: None,
            credentials,
            integration_id: integration_id.map_err(|invalid| invalid.named("_integrationId"))?,
        })
    }
}

setters! { ChannelSettings:
    /// Sets the identifier of the integration.
    integration_identifier: checked(IntegrationIdentifier, "integrationIdentifier");
}

setters! { ChannelCredentials:
    /// Sets the URL of a chat provider's webhook.
    webhook_url: into(Secret);
    /// Sets the Mattermost channel.
    channel: into(String);
    /// Sets the device tokens of a push provider: at most 100.
    device_tokens: each(String);
    /// Sets the id of a Grafana on-call alert.
    alert_uid: into(String);
    /// Sets the title of a Grafana on-call alert.
    title: into(String);
    /// Sets the picture of a Grafana on-call alert.
    image_url: into(String);
    /// Sets the state of a Grafana on-call alert.
    state: into(String);
    /// Sets the link of a Grafana on-call alert.
    external_url: into(String);
}
