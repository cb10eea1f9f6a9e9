//! Preferences: which channels may be used, by layer, and which layer decides.
//!
//! The rule needs no store, so that a host application can test the preferences of its workflows
//! offline:
//!
//! ```
//! # extern crate tidings_domain as tidings;
//! use tidings::preference::{Decision, Layer, Preference, PreferenceCase};
//! use tidings::vocabulary::Channel;
//! use tidings::workflow::WorkflowCreate;
//!
//! let newsletter = WorkflowCreate::new("newsletter", "Newsletter")?;
//! let email = |enabled| Preference::default().with(Channel::Email, enabled);
//! let case = PreferenceCase::new(&newsletter)?
//!     .operator(email(false))?
//!     .subscriber_workflow(email(true))?;
//!
//! assert_eq!(case.decide(Channel::Email), Decision::Send(Layer::SubscriberWorkflow));
//! # Ok::<(), tidings::error::Invalid>(())
//! ```

mod case;
mod channels;
mod compose;
mod effective;
mod layers;
mod record;
mod request;

use serde::{Deserialize, Serialize};

use crate::condition::Rule;
use crate::error::Invalid;
use crate::json::shape;
use crate::vocabulary::Channel;

pub use case::{Decision, PreferenceCase};
pub use channels::{PerChannel, PreferenceChannels, PreferenceChannelsUpdate};
pub use effective::{
    GlobalPreference, OverrideSource, PreferenceLevel, PreferenceOverride, Preferences,
    UpdatedPreference, WorkflowInfo, WorkflowName, WorkflowPreference,
};
use layers::Setting;
pub(crate) use layers::settings;
pub use layers::{ConditionData, Layer, Layers, Resolved, resolve, resolve_unnamed};
pub use record::{PreferenceScope, SubscriberPreference};
pub use request::{
    BulkRefusal, Criticality, GlobalPreferenceUpdate, PreferencesQuery, WorkflowPreferenceUpdate,
    WorkflowPreferenceUpdates,
};

/// Preference of one layer: one setting for all channels, and settings for single ones.
///
/// A condition overrides the setting for all channels. If it does not hold, every channel is off.
/// If it holds, only channels that are switched off by name are off. Its variables are those of
/// `payload`, `subscriber`, `actor`, `context` and `workflow`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Preference {
    /// Setting for every channel without one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Settings for single channels.
    #[serde(flatten)]
    pub channels: PreferenceChannels,
    /// Condition that must hold for any channel to be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Rule>,
}

shape! { Preference { "enabled": enabled, "condition": condition; channels } }

impl Preference {
    /// Returns the preference with `channel` switched on or off.
    #[must_use]
    pub fn with(mut self, channel: Channel, enabled: bool) -> Self {
        *self.channels.value_mut(channel) = Some(enabled);
        self
    }

    /// Refuses a condition with an unknown variable.
    pub(crate) fn check(&self) -> Result<(), Invalid> {
        self.condition.as_ref().map_or(Ok(()), Rule::check_names)
    }

    /// Returns the preference with every channel without a setting of its own switched on or off.
    #[must_use]
    pub fn enabled(self, enabled: bool) -> Self {
        Self { enabled: Some(enabled), ..self }
    }

    fn setting_for(&self, channel: Channel, data: ConditionData<'_>) -> Option<Setting> {
        let word = self.channels.get(channel);
        match (self.condition_holds(data), word) {
            (None, single) => single.or(self.enabled).map(Setting::from),
            // The condition overrides the setting for all channels.
            (Some(_), Some(false)) => Some(Setting::Off),
            (Some(holds), Some(true) | None) => Some(holds),
        }
    }

    fn setting_for_unnamed(&self, data: ConditionData<'_>) -> Option<Setting> {
        self.condition_holds(data).or(self.enabled.map(Setting::from))
    }

    // Returns `None` if there is no condition.
    fn condition_holds(&self, data: ConditionData<'_>) -> Option<Setting> {
        let rule = self.condition.as_ref()?;
        Some(match data {
            ConditionData::Missing => Setting::Open,
            ConditionData::AssumedToHold => Setting::On,
            ConditionData::Known(data) => rule.holds(data).into(),
        })
    }
}

#[cfg(test)]
mod tests;
