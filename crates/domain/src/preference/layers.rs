//! Layers of preferences, and the decision about a channel.

use serde_json::Value;

use super::Preference;
use crate::vocabulary::{Channel, wire_enum};

/// Preferences of every layer, from the least to the most specific one.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Layers<'a> {
    /// Preference in the definition of the workflow.
    pub definition: Option<&'a Preference>,
    /// Preference of the operator.
    pub operator: Option<&'a Preference>,
    /// Preference of the subscriber for every workflow.
    pub subscriber_global: Option<&'a Preference>,
    /// Preference of the subscriber for this workflow.
    pub subscriber_workflow: Option<&'a Preference>,
    /// `true` if the workflow is critical: subscribers cannot opt out of it.
    pub critical: bool,
    /// Data for conditions.
    pub data: ConditionData<'a>,
}

/// Data for the conditions of preferences.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default)]
pub enum ConditionData<'a> {
    /// No data: a layer that depends on its condition is undecided.
    #[default]
    Missing,
    /// No data: every condition counts as met, as in lists of preferences.
    AssumedToHold,
    /// Data: `payload`, `subscriber`, `actor`, `context` and `workflow`.
    Known(&'a Value),
}

/// Decision about a channel, with the layer that decides.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolved {
    /// The channel may be used.
    Enabled(Layer),
    /// The channel may not be used.
    Disabled(Layer),
    /// The layer depends on a condition, and there is no data to evaluate.
    Undecided(Layer),
}

impl Resolved {
    /// Returns `true` if the channel may be used. Returns `false` if that is undecided.
    pub const fn is_enabled(self) -> bool {
        matches!(self, Resolved::Enabled(_))
    }

    /// Returns the layer that decides.
    pub const fn decided_by(self) -> Layer {
        match self {
            Resolved::Enabled(layer) | Resolved::Disabled(layer) | Resolved::Undecided(layer) => {
                layer
            }
        }
    }
}

// Setting of one layer for a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    On,
    Off,
    // Depends on missing data.
    Open,
}

impl From<bool> for Setting {
    fn from(enabled: bool) -> Self {
        if enabled { Setting::On } else { Setting::Off }
    }
}

wire_enum! {
    /// Layer that decides.
    Layer, "layer":
    Default = "default",
    Definition = "definition",
    Operator = "dashboard",
    SubscriberGlobal = "subscriber_global",
    SubscriberWorkflow = "subscriber_workflow",
}

impl<'a> Layers<'a> {
    /// Returns `true` if a layer that counts has a condition.
    pub(crate) fn have_conditions(self) -> bool {
        self.effective().any(|(preference, _)| preference.condition.is_some())
    }

    // Returns the layers that count, from the most to the least specific one.
    fn effective(self) -> impl Iterator<Item = (&'a Preference, Layer)> {
        // A critical workflow ignores its subscribers' preferences.
        let counts = !self.critical;
        let layers = [
            (self.subscriber_workflow.filter(|_| counts), Layer::SubscriberWorkflow),
            (self.subscriber_global.filter(|_| counts), Layer::SubscriberGlobal),
            (self.operator, Layer::Operator),
            (self.definition, Layer::Definition),
        ];
        layers.into_iter().filter_map(|(preference, layer)| Some((preference?, layer)))
    }
}

/// Returns the setting of each layer that counts for `channel`, from the most to the least specific
/// one, with its preference. A layer without a setting has `None`.
pub(crate) fn settings(
    layers: Layers<'_>,
    channel: Channel,
) -> impl Iterator<Item = (&Preference, Layer, Option<bool>)> {
    layers.effective().map(move |(preference, layer)| {
        let setting = preference.setting_for(channel, layers.data);
        (preference, layer, setting.map(|setting| setting == Setting::On))
    })
}

/// Decides whether `channel` may be used. The most specific layer with a setting for the channel
/// decides. Without any setting, the channel is on.
#[doc(hidden)]
pub fn resolve(layers: Layers<'_>, channel: Channel) -> Resolved {
    decide(layers, |preference| preference.setting_for(channel, layers.data))
}

/// Decides whether a channel without a setting in any layer may be used.
#[doc(hidden)]
pub fn resolve_unnamed(layers: Layers<'_>) -> Resolved {
    decide(layers, |preference| preference.setting_for_unnamed(layers.data))
}

fn decide(layers: Layers<'_>, setting: impl Fn(&Preference) -> Option<Setting>) -> Resolved {
    let decided = layers.effective().find_map(|(preference, layer)| {
        Some(match setting(preference)? {
            Setting::On => Resolved::Enabled(layer),
            Setting::Off => Resolved::Disabled(layer),
            Setting::Open => Resolved::Undecided(layer),
        })
    });
    // No layer objects.
    decided.unwrap_or(Resolved::Enabled(Layer::Default))
}
