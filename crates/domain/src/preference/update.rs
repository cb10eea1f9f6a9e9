//! Updates of the settings of single channels.

use serde::{Deserialize, Serialize};

use super::PreferenceChannels;
use crate::json::shape;
use crate::patch::Patch;
use crate::vocabulary::Channel;

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the channels say it")]
#[non_exhaustive]
pub struct PreferenceChannelsUpdate {
    #[serde(skip_serializing_if = "Patch::is_keep")]
    pub email: Patch<bool>,
    #[serde(skip_serializing_if = "Patch::is_keep")]
    pub sms: Patch<bool>,
    #[serde(skip_serializing_if = "Patch::is_keep")]
    pub in_app: Patch<bool>,
    #[serde(skip_serializing_if = "Patch::is_keep")]
    pub chat: Patch<bool>,
    #[serde(skip_serializing_if = "Patch::is_keep")]
    pub push: Patch<bool>,
}

shape! { PreferenceChannelsUpdate {
    "email": email, "sms": sms, "in_app": in_app, "chat": chat, "push": push
} }

impl PreferenceChannelsUpdate {
    /// Returns the update with `channel` switched on or off.
    #[must_use]
    pub fn with(mut self, channel: Channel, enabled: bool) -> Self {
        *self.word(channel) = Patch::Set(enabled);
        self
    }

    /// Returns the update that clears the setting of `channel`.
    #[must_use]
    pub fn clear(mut self, channel: Channel) -> Self {
        *self.word(channel) = Patch::Clear;
        self
    }

    pub(super) fn apply(mut self, channels: &mut PreferenceChannels) {
        for channel in Channel::ALL {
            self.word(*channel).apply(channels.word(*channel));
        }
    }

    const fn word(&mut self, channel: Channel) -> &mut Patch<bool> {
        match channel {
            Channel::InApp => &mut self.in_app,
            Channel::Email => &mut self.email,
            Channel::Sms => &mut self.sms,
            Channel::Chat => &mut self.chat,
            Channel::Push => &mut self.push,
        }
    }
}
