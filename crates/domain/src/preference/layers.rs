//! Who decides whether a channel may be used.

use super::Preference;
use crate::vocabulary::{Channel, vocabulary};

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
}

/// Whether a channel may be used, and on whose word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether the channel may be used.
    pub enabled: bool,
    /// The layer that decided.
    pub decided_by: Layer,
}

vocabulary! {
    /// Names the layer that decided.
    Layer, "layer":
    Default = "default",
    Definition = "definition",
    Dashboard = "dashboard",
    SubscriberGlobal = "subscriber_global",
    SubscriberWorkflow = "subscriber_workflow",
}

/// Decides whether `channel` may be used. The most specific layer that says something about the
/// channel decides; where nobody does, the channel is on.
pub fn resolve(layers: Layers<'_>, channel: Channel) -> Verdict {
    decide(layers, |preference| preference.say(channel))
}

/// Decides whether a channel that no layer names may be used.
pub fn resolve_unnamed(layers: Layers<'_>) -> Verdict {
    decide(layers, |preference| preference.enabled)
}

fn decide(layers: Layers<'_>, word: impl Fn(&Preference) -> Option<bool>) -> Verdict {
    let say = |layer: Option<&Preference>| layer.and_then(&word);
    let (enabled, decided_by) = match (
        layers.critical,
        say(layers.subscriber_workflow),
        say(layers.subscriber_global),
        say(layers.dashboard),
        say(layers.definition),
    ) {
        // A critical workflow does not listen to its subscribers.
        (false, Some(enabled), _, _, _) => (enabled, Layer::SubscriberWorkflow),
        (false, None, Some(enabled), _, _) => (enabled, Layer::SubscriberGlobal),
        (true, _, _, Some(enabled), _) | (false, None, None, Some(enabled), _) => {
            (enabled, Layer::Dashboard)
        }
        (true, _, _, None, Some(enabled)) | (false, None, None, None, Some(enabled)) => {
            (enabled, Layer::Definition)
        }
        // Nobody objected.
        (true, _, _, None, None) | (false, None, None, None, None) => (true, Layer::Default),
    };
    Verdict { enabled, decided_by }
}
