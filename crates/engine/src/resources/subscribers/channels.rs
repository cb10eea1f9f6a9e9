//! Destinations of subscribers for chat and push messages.

use domain::convert::IntoChecked;
use domain::ids::{IntegrationId, SubscriberId};
use domain::subscriber::{ChannelSettings, Subscriber};

use super::{Subscribers, get, replace};
use crate::Result;
use crate::resources::integrations;

impl Subscribers<'_> {
    /// Sets the destination of a subscriber at one chat or push integration. If it has one there, fields that
    /// are absent stay, and device tokens are added to those that are there: two devices that register at
    /// once are both there afterwards.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tidings::subscriber::{ChannelCredentials, ChannelSettings, SubscriberCreate};
    /// # use tidings::integration::IntegrationCreate;
    /// use tidings::vocabulary::{Channel, ChannelProviderId};
    ///
    /// # let engine = tidings::Engine::in_memory();
    /// # let env = engine.organization("acme")?.development()?;
    /// # env.subscribers().create(&SubscriberCreate::new("ada")?)?;
    /// let fcm = env.integrations().create(&IntegrationCreate::new("fcm", Channel::Push)?)?;
    /// for token in ["phone", "tablet"] {
    ///     let device = ChannelCredentials::default().device_tokens([token]);
    ///     let settings = ChannelSettings::new(fcm.id, ChannelProviderId::Fcm, device)?;
    ///     env.subscribers().set_channel("ada", &settings)?;
    /// }
    /// let ada = env.subscribers().get("ada")?;
    /// assert_eq!(ada.profile.channels[0].credentials.device_tokens, ["phone", "tablet"]);
    ///
    /// let ada = env.subscribers().remove_channel("ada", fcm.id)?;
    /// assert_eq!(ada.profile.channels, []);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`](crate::Error::NotFound), if there is no such integration or subscriber;
    /// [`Error::Invalid`](crate::Error::Invalid), if the integration is not one of chat or push, if a text is
    /// too long, if there are more than 100 destinations, or if an integration has more than 100 device
    /// tokens.
    pub fn set_channel(
        &self,
        id: impl IntoChecked<SubscriberId>,
        settings: &ChannelSettings,
    ) -> Result<Subscriber> {
        self.set_channel_of(&id.into_checked()?, settings)
    }

    fn set_channel_of(&self, id: &SubscriberId, settings: &ChannelSettings) -> Result<Subscriber> {
        self.scope.write("subscribers.set_channel", (id, settings), |tx| {
            settings.check_channel(integrations::get(tx, settings.integration_id)?.channel)?;
            let before = get(tx, id)?;
            let profile = before.profile.with_channel(settings.clone())?;
            let after = before.with_profile(profile, tx.now());
            replace(tx, &before, &after)?;
            Ok(after)
        })
    }

    /// Removes the destination of a subscriber at a chat or push integration, if it has one there.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`](crate::Error::NotFound), if there is no such subscriber.
    pub fn remove_channel(
        &self,
        id: impl IntoChecked<SubscriberId>,
        integration: impl IntoChecked<IntegrationId>,
    ) -> Result<Subscriber> {
        self.remove_channel_of(&id.into_checked()?, integration.into_checked()?)
    }

    fn remove_channel_of(
        &self,
        id: &SubscriberId,
        integration: IntegrationId,
    ) -> Result<Subscriber> {
        self.scope.write("subscribers.remove_channel", (id, integration), |tx| {
            let before = get(tx, id)?;
            let after = before.with_profile(before.profile.without_channel(integration), tx.now());
            replace(tx, &before, &after)?;
            Ok(after)
        })
    }

    /// Removes a device token of a subscriber at a push integration, if it is there: the device is signed out,
    /// and the others stay.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use tidings::subscriber::{ChannelCredentials, ChannelSettings, SubscriberCreate};
    /// # use tidings::integration::IntegrationCreate;
    /// # use tidings::vocabulary::{Channel, ChannelProviderId};
    /// # let engine = tidings::Engine::in_memory();
    /// # let env = engine.organization("acme")?.development()?;
    /// # env.subscribers().create(&SubscriberCreate::new("ada")?)?;
    /// # let fcm = env.integrations().create(&IntegrationCreate::new("fcm", Channel::Push)?)?;
    /// let devices = ChannelCredentials::default().device_tokens(["phone", "tablet"]);
    /// let settings = ChannelSettings::new(fcm.id, ChannelProviderId::Fcm, devices)?;
    /// env.subscribers().set_channel("ada", &settings)?;
    ///
    /// let ada = env.subscribers().remove_device("ada", fcm.id, "phone")?;
    /// assert_eq!(ada.profile.channels[0].credentials.device_tokens, ["tablet"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`](crate::Error::NotFound), if there is no such subscriber.
    pub fn remove_device(
        &self,
        id: impl IntoChecked<SubscriberId>,
        integration: impl IntoChecked<IntegrationId>,
        token: &str,
    ) -> Result<Subscriber> {
        self.remove_device_of(&id.into_checked()?, integration.into_checked()?, token)
    }

    fn remove_device_of(
        &self,
        id: &SubscriberId,
        integration: IntegrationId,
        token: &str,
    ) -> Result<Subscriber> {
        self.scope.write("subscribers.remove_device", (id, integration, token), |tx| {
            let before = get(tx, id)?;
            let profile = before.profile.without_device(integration, token);
            let after = before.with_profile(profile, tx.now());
            replace(tx, &before, &after)?;
            Ok(after)
        })
    }
}
