//! Settings of single channels, and updates of them.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::layers::{Layers, resolve};
use crate::json::{Member, Shape, Shaped, is_default};
use crate::patch::Patch;
use crate::vocabulary::Channel;

/// A value for each channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    default,
    bound(
        serialize = "T: Serialize + Default + PartialEq",
        deserialize = "T: Deserialize<'de> + Default"
    )
)]
#[expect(missing_docs, reason = "the channels say it")]
#[non_exhaustive]
pub struct PerChannel<T> {
    #[serde(skip_serializing_if = "is_default")]
    pub email: T,
    #[serde(skip_serializing_if = "is_default")]
    pub sms: T,
    #[serde(skip_serializing_if = "is_default")]
    pub in_app: T,
    #[serde(skip_serializing_if = "is_default")]
    pub chat: T,
    #[serde(skip_serializing_if = "is_default")]
    pub push: T,
}

/// Setting for each channel. `None` for a channel without one.
pub type PreferenceChannels = PerChannel<Option<bool>>;

/// Update of the settings of single channels. A channel that is cleared has no setting of its own: the
/// wider layers decide about it.
///
/// ```
/// # extern crate tidings_domain as tidings;
/// use tidings::preference::PreferenceChannelsUpdate;
/// use tidings::vocabulary::Channel;
///
/// let update = PreferenceChannelsUpdate::default().with(Channel::Sms, true).clear(Channel::Email);
/// assert_eq!(serde_json::to_string(&update)?, r#"{"email":null,"sms":true}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
pub type PreferenceChannelsUpdate = PerChannel<Patch<bool>>;

impl<T: Shaped + DeserializeOwned + Default> Shaped for PerChannel<T> {
    fn shape() -> Shape {
        Shape::members::<Self>(
            const {
                &[
                    Member::of(&["email"], |it: &Self| &it.email),
                    Member::of(&["sms"], |it: &Self| &it.sms),
                    Member::of(&["in_app"], |it: &Self| &it.in_app),
                    Member::of(&["chat"], |it: &Self| &it.chat),
                    Member::of(&["push"], |it: &Self| &it.push),
                ]
            },
            &[],
        )
    }
}

impl<T> PerChannel<T> {
    pub(super) const fn value_mut(&mut self, channel: Channel) -> &mut T {
        match channel {
            Channel::InApp => &mut self.in_app,
            Channel::Email => &mut self.email,
            Channel::Sms => &mut self.sms,
            Channel::Chat => &mut self.chat,
            Channel::Push => &mut self.push,
        }
    }
}

impl<T: From<bool>> PerChannel<T> {
    /// Returns the channels with `channel` switched on or off.
    #[must_use]
    pub fn with(mut self, channel: Channel, enabled: bool) -> Self {
        *self.value_mut(channel) = enabled.into();
        self
    }
}

impl PreferenceChannels {
    /// Returns the setting for `channel`.
    pub const fn get(&self, channel: Channel) -> Option<bool> {
        let mut channels = *self;
        *channels.value_mut(channel)
    }

    /// Returns the decision of `layers` for every channel.
    #[doc(hidden)]
    pub fn resolved(layers: Layers<'_>) -> Self {
        let mut channels = Self::default();
        for channel in Channel::ALL {
            *channels.value_mut(*channel) = Some(resolve(layers, *channel).is_enabled());
        }
        channels
    }
}

impl PreferenceChannelsUpdate {
    /// Returns the update that clears the setting of `channel`.
    #[must_use]
    pub fn clear(mut self, channel: Channel) -> Self {
        *self.value_mut(channel) = Patch::Clear;
        self
    }

    pub(super) fn apply(mut self, channels: &mut PreferenceChannels) {
        for channel in Channel::ALL {
            self.value_mut(*channel).apply(channels.value_mut(*channel));
        }
    }
}
