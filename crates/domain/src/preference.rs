//! Preferences: who has a say in whether a channel may be used, and who wins.
//!
//! The rule needs no store, so a host application can test its workflows' preferences offline:
//!
//! ```
//! use tidings_domain::preference::{Layer, Layers, Preference, Verdict, resolve};
//! use tidings_domain::vocabulary::Channel;
//!
//! let marketing = Preference::default().with(Channel::Email, false);
//! let ada = Preference::default().with(Channel::Email, true);
//! let layers = Layers {
//!     definition: Some(&marketing),
//!     subscriber_workflow: Some(&ada),
//!     ..Layers::default()
//! };
//!
//! let email = resolve(layers, Channel::Email);
//! assert_eq!(email, Verdict::Enabled(Layer::SubscriberWorkflow));
//! ```

mod case;
mod compose;
mod layers;
mod record;

use serde::{Deserialize, Serialize};

use crate::condition::Rule;
use crate::context::{ContextPayload, ContextSet};
use crate::error::{Invalid, Reason};
use crate::ids::{WorkflowId, WorkflowIdentifier};
use crate::json::{Object, shape};
use crate::patch::Patch;
use crate::schedule::Schedule;
use crate::time::Timestamp;
use crate::vocabulary::{Channel, Severity, wire_enum};
use crate::workflow::Workflow;

pub use case::{Decision, PreferenceCase};
use layers::Word;
pub use layers::{ConditionData, Layer, Layers, Verdict, resolve, resolve_unnamed};
pub use record::{PreferenceScope, SubscriberPreference};

/// What one layer has to say: a word for all channels, and words for single ones.
///
/// A condition has the last word: where it does not hold, the layer says no to every channel; where
/// it does, it says no only to channels that it names, whatever its word for all of them is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Preference {
    /// Holds for every channel without a word of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Words for single channels.
    #[serde(flatten)]
    pub channels: PreferenceChannels,
    /// What must hold for any channel to be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Rule>,
}

shape! { Preference { "enabled": enabled, "condition": condition; channels } }

/// A word for each channel that there is something to say about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the channels say it")]
#[non_exhaustive]
pub struct PreferenceChannels {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sms: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_app: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub push: Option<bool>,
}

shape! { PreferenceChannels {
    "email": email, "sms": sms, "in_app": in_app, "chat": chat, "push": push
} }

impl Preference {
    /// The same preference with a word for `channel`.
    #[must_use]
    pub fn with(mut self, channel: Channel, enabled: bool) -> Self {
        *self.channels.word(channel) = Some(enabled);
        self
    }

    /// The same preference with a word for every channel that has none of its own.
    #[must_use]
    pub fn with_all(self, enabled: bool) -> Self {
        Self { enabled: Some(enabled), ..self }
    }

    fn say(&self, channel: Channel, data: ConditionData<'_>) -> Option<Word> {
        let word = self.channels.get(channel);
        match (self.condition_holds(data), word) {
            (None, word) => word.or(self.enabled).map(Word::from),
            // Whether the condition holds or not.
            (Some(_), Some(false)) => Some(Word::No),
            (Some(holds), Some(true) | None) => Some(holds),
        }
    }

    fn say_unnamed(&self, data: ConditionData<'_>) -> Option<Word> {
        self.condition_holds(data).or(self.enabled.map(Word::from))
    }

    // Returns `None` if there is no condition.
    fn condition_holds(&self, data: ConditionData<'_>) -> Option<Word> {
        let rule = self.condition.as_ref()?;
        Some(match data {
            ConditionData::Missing => Word::Open,
            ConditionData::AssumedToHold => Word::Yes,
            ConditionData::Known(data) => rule.holds(data).into(),
        })
    }
}

impl PreferenceChannels {
    /// The word for `channel`.
    pub const fn get(&self, channel: Channel) -> Option<bool> {
        match channel {
            Channel::InApp => self.in_app,
            Channel::Email => self.email,
            Channel::Sms => self.sms,
            Channel::Chat => self.chat,
            Channel::Push => self.push,
        }
    }

    /// What `layers` decide for every channel.
    pub fn resolved(layers: Layers<'_>) -> Self {
        let mut channels = Self::default();
        for channel in Channel::ALL {
            *channels.word(*channel) = Some(resolve(layers, *channel).is_enabled());
        }
        channels
    }

    /// Takes over the words of `other`, where it has any.
    pub fn merge(&mut self, other: &PreferenceChannels) {
        for channel in Channel::ALL {
            if let Some(enabled) = other.get(*channel) {
                *self.word(*channel) = Some(enabled);
            }
        }
    }

    const fn word(&mut self, channel: Channel) -> &mut Option<bool> {
        match channel {
            Channel::InApp => &mut self.in_app,
            Channel::Email => &mut self.email,
            Channel::Sms => &mut self.sms,
            Channel::Chat => &mut self.chat,
            Channel::Push => &mut self.push,
        }
    }
}

/// Which preferences of a subscriber are read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct PreferencesQuery {
    /// Which workflows are shown.
    pub criticality: Criticality,
    /// The contexts they are read for.
    pub context_keys: ContextSet,
}

shape! { PreferencesQuery { "criticality": criticality, "contextKeys": context_keys } }

wire_enum! {
    /// Which workflows are shown.
    Criticality, "criticality":
    Critical = "critical",
    NonCritical = "nonCritical",
    All = "all",
}

#[expect(clippy::derivable_impls, reason = "the words are declared by a macro")]
impl Default for Criticality {
    fn default() -> Self {
        Criticality::NonCritical
    }
}

impl Criticality {
    /// Whether a workflow is shown.
    pub fn matches(self, critical: bool) -> bool {
        match self {
            Criticality::Critical => critical,
            Criticality::NonCritical => !critical,
            Criticality::All => true,
        }
    }
}

/// Every preference of a subscriber.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Preferences {
    /// The word for every workflow.
    pub global: GlobalPreference,
    /// What holds for each workflow, oldest workflow first.
    pub workflows: Vec<WorkflowPreference>,
}

/// What holds where a workflow says nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GlobalPreference {
    /// Whether a channel that is not named may be used.
    pub enabled: bool,
    /// Whether each channel may be used.
    pub channels: PreferenceChannels,
    /// The hours in which the subscriber may be disturbed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// What must hold besides, as the subscriber said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Rule>,
}

/// What holds for one workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct WorkflowPreference {
    /// Whether a channel that no layer names may be used.
    pub enabled: bool,
    /// Whether each channel may be used.
    pub channels: PreferenceChannels,
    /// Who decided, for each channel.
    pub overrides: Vec<PreferenceOverride>,
    /// The workflow.
    pub workflow: WorkflowName,
    /// What must hold besides, as the subscriber said about this workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Rule>,
    /// When the subscriber last said something about this workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
}

/// Who decided about a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PreferenceOverride {
    /// The channel.
    pub channel: Channel,
    /// The side that decided.
    pub source: OverrideSource,
    /// The layer that decided.
    pub layer: Layer,
}

wire_enum! {
    /// The side that decided about a channel.
    OverrideSource, "source":
    Subscriber = "subscriber",
    Template = "template",
    WorkflowOverride = "workflowOverride",
}

impl From<Layer> for OverrideSource {
    fn from(layer: Layer) -> Self {
        match layer {
            Layer::SubscriberGlobal | Layer::SubscriberWorkflow => OverrideSource::Subscriber,
            Layer::Default | Layer::Definition | Layer::Dashboard => OverrideSource::Template,
        }
    }
}

impl PreferenceOverride {
    /// Who decided in `layers`, for each channel.
    pub fn all(layers: Layers<'_>) -> Vec<Self> {
        let decided = |channel: &Channel| {
            let layer = resolve(layers, *channel).decided_by();
            Self { channel: *channel, source: layer.into(), layer }
        };
        Channel::ALL.iter().map(decided).collect()
    }
}

/// A workflow, as a preference names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct WorkflowName {
    /// Its name in URLs.
    pub slug: String,
    /// The name that triggers it.
    pub identifier: WorkflowIdentifier,
    /// What people call it.
    pub name: String,
    /// When it was last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
}

/// New words of a subscriber for several workflows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BulkPreferences {
    /// The words, at most 100. Of two for the same workflow the last one holds.
    pub preferences: Vec<BulkPreference>,
    /// The contexts they hold for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextPayload>,
}

shape! { BulkPreferences { "preferences": preferences, "context": context } }

/// New words of a subscriber for one workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct BulkPreference {
    /// The workflow: its identifier, its id or its slug.
    pub workflow_id: String,
    /// The words. A channel that is not named keeps the one it has.
    pub channels: PreferenceChannels,
    /// What must hold for any channel to be used.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub condition: Patch<Rule>,
}

shape! { BulkPreference {
    "workflowId": workflow_id, "channels": channels, "condition": condition
} }

/// New words of a subscriber for every workflow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct GlobalPreferenceUpdate {
    /// The word for every channel without a word of its own.
    #[serde(skip_serializing_if = "Patch::is_keep")]
    pub enabled: Patch<bool>,
    /// The words. A channel that is not named keeps the one it has.
    pub channels: PreferenceChannels,
    /// What must hold for any channel to be used.
    #[serde(skip_serializing_if = "Patch::is_keep")]
    pub condition: Patch<Rule>,
    /// The hours in which the subscriber may be disturbed.
    #[serde(skip_serializing_if = "Patch::is_keep")]
    pub schedule: Patch<Schedule>,
    /// The contexts they hold for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextPayload>,
}

shape! { GlobalPreferenceUpdate {
    "enabled": enabled, "channels": channels, "condition": condition, "schedule": schedule,
    "context": context,
} }

/// What holds for a workflow, or for all of them, after an update.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UpdatedPreference {
    /// What it is about.
    pub level: PreferenceLevel,
    /// The workflow, where it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowInfo>,
    /// Whether a channel that no layer names may be used.
    pub enabled: bool,
    /// Whether each channel may be used.
    pub channels: PreferenceChannels,
    /// What must hold besides, as the subscriber said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Rule>,
}

wire_enum! {
    /// What a preference is about.
    PreferenceLevel, "level":
    Global = "global",
    Template = "template",
}

/// What a subscriber may know about a workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WorkflowInfo {
    /// What the engine calls it.
    pub id: WorkflowId,
    /// The name that triggers it.
    pub identifier: WorkflowIdentifier,
    /// What people call it.
    pub name: String,
    /// Whether it is critical: subscribers cannot opt out of it.
    pub critical: bool,
    /// What it is filed under.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Custom data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Object>,
    /// How much its notifications matter.
    pub severity: Severity,
}

impl Preferences {
    /// Returns every preference of a subscriber.
    pub fn new(global: GlobalPreference, workflows: Vec<WorkflowPreference>) -> Self {
        Self { global, workflows }
    }
}

impl GlobalPreference {
    /// Returns what holds where a workflow says nothing, with the subscriber's `global` preference.
    pub fn new(global: Option<&Preference>, schedule: Option<Schedule>) -> Self {
        let data = ConditionData::AssumedToHold;
        let layers = Layers { subscriber_global: global, data, ..Layers::default() };
        Self {
            enabled: resolve_unnamed(layers).is_enabled(),
            channels: PreferenceChannels::resolved(layers),
            schedule,
            condition: global.and_then(|global| global.condition.clone()),
        }
    }
}

impl WorkflowPreference {
    /// Returns what holds for `workflow`, with the subscriber's `global` and `specific` preferences
    /// and the time of the latter.
    pub fn new(
        workflow: &Workflow,
        global: Option<&Preference>,
        specific: Option<(&Preference, Timestamp)>,
    ) -> Self {
        let (specific, updated_at) = specific.unzip();
        let layers = workflow.layers(global, specific);
        Self {
            enabled: resolve_unnamed(layers).is_enabled(),
            channels: PreferenceChannels::resolved(layers),
            overrides: PreferenceOverride::all(layers),
            workflow: WorkflowName::from(workflow),
            condition: specific.and_then(|specific| specific.condition.clone()),
            updated_at,
        }
    }
}

impl UpdatedPreference {
    /// Returns what holds for `workflow` after an update of the subscriber's `specific` preference.
    pub fn new(workflow: &Workflow, global: Option<&Preference>, specific: &Preference) -> Self {
        let layers = workflow.layers(global, Some(specific));
        Self {
            level: PreferenceLevel::Template,
            workflow: Some(workflow.info()),
            enabled: resolve_unnamed(layers).is_enabled(),
            channels: PreferenceChannels::resolved(layers),
            condition: specific.condition.clone(),
        }
    }
}

impl From<GlobalPreference> for UpdatedPreference {
    fn from(global: GlobalPreference) -> Self {
        let GlobalPreference { enabled, channels, condition, .. } = global;
        let level = PreferenceLevel::Global;
        Self { level, workflow: None, enabled, channels, condition }
    }
}

impl BulkPreferences {
    /// The most workflows one update may be about.
    pub const MAX: usize = 100;

    /// Refuses an update about no workflow, or about too many.
    pub fn check(&self) -> Result<(), Invalid> {
        if self.preferences.is_empty() {
            return Err(Invalid::new("preferences", Reason::Empty));
        }
        crate::error::at_most_items("preferences", &self.preferences, Self::MAX)
    }
}

#[cfg(test)]
mod tests;
