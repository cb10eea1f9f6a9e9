//! Who decides whether a channel may be used.

use serde_json::Value;

use super::Preference;
use crate::vocabulary::{Channel, wire_enum};

/// Everything that has a say, from the least to the most specific layer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Layers<'a> {
    /// The workflow as its author defined it.
    pub definition: Option<&'a Preference>,
    /// The workflow as it was set in a dashboard.
    pub dashboard: Option<&'a Preference>,
    /// The subscriber's word for every workflow.
    pub subscriber_global: Option<&'a Preference>,
    /// The subscriber's word for this workflow.
    pub subscriber_workflow: Option<&'a Preference>,
    /// Whether the workflow is critical: subscribers cannot opt out of it.
    pub critical: bool,
    /// What conditions are decided on.
    pub data: ConditionData<'a>,
}

/// What the conditions of preferences are decided on.
#[derive(Clone, Copy, Debug, Default)]
pub enum ConditionData<'a> {
    /// No data: a layer whose word depends on its condition is undecided.
    #[default]
    Missing,
    /// No data: each condition is taken to hold, as where preferences are shown.
    AssumedToHold,
    /// Data: `subscriber`, `payload`, `context` and `workflow`.
    Known(&'a Value),
}

/// Whether a channel may be used, and which layer decides about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The channel may be used.
    Enabled(Layer),
    /// The channel may not be used.
    Disabled(Layer),
    /// The layer has a condition, and there is no data to decide it on.
    Undecided(Layer),
}

impl Verdict {
    /// Whether the channel may be used. False if that is undecided.
    pub const fn is_enabled(self) -> bool {
        matches!(self, Verdict::Enabled(_))
    }

    /// The layer that decides.
    pub const fn decided_by(self) -> Layer {
        match self {
            Verdict::Enabled(layer) | Verdict::Disabled(layer) | Verdict::Undecided(layer) => layer,
        }
    }
}

// What one layer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    Yes,
    No,
    // It depends on data that is missing.
    Open,
}

impl From<bool> for Word {
    fn from(enabled: bool) -> Self {
        if enabled { Word::Yes } else { Word::No }
    }
}

wire_enum! {
    /// Names the layer that decided.
    Layer, "layer":
    Default = "default",
    Definition = "definition",
    Dashboard = "dashboard",
    SubscriberGlobal = "subscriber_global",
    SubscriberWorkflow = "subscriber_workflow",
}

impl<'a> Layers<'a> {
    /// Whether anything depends on data.
    pub(crate) fn have_conditions(self) -> bool {
        self.heard().any(|(preference, _)| preference.condition.is_some())
    }

    // Those who are listened to, from the most to the least specific one.
    fn heard(self) -> impl Iterator<Item = (&'a Preference, Layer)> {
        // A critical workflow does not listen to its subscribers.
        let listens = !self.critical;
        let layers = [
            (self.subscriber_workflow.filter(|_| listens), Layer::SubscriberWorkflow),
            (self.subscriber_global.filter(|_| listens), Layer::SubscriberGlobal),
            (self.dashboard, Layer::Dashboard),
            (self.definition, Layer::Definition),
        ];
        layers.into_iter().filter_map(|(preference, layer)| Some((preference?, layer)))
    }
}

/// Decides whether `channel` may be used. The most specific layer that says something about the
/// channel decides; where nobody does, the channel is on.
pub fn resolve(layers: Layers<'_>, channel: Channel) -> Verdict {
    decide(layers, |preference| preference.say(channel, layers.data))
}

/// Decides whether a channel that no layer names may be used.
pub fn resolve_unnamed(layers: Layers<'_>) -> Verdict {
    decide(layers, |preference| preference.say_unnamed(layers.data))
}

fn decide(layers: Layers<'_>, word: impl Fn(&Preference) -> Option<Word>) -> Verdict {
    let decided = layers.heard().find_map(|(preference, layer)| {
        Some(match word(preference)? {
            Word::Yes => Verdict::Enabled(layer),
            Word::No => Verdict::Disabled(layer),
            Word::Open => Verdict::Undecided(layer),
        })
    });
    // No layer objects.
    decided.unwrap_or(Verdict::Enabled(Layer::Default))
}
