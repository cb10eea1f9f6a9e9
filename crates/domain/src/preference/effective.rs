//! Effective preferences: what the layers of a subscriber amount to.

use serde::{Deserialize, Serialize};

use super::{
    ConditionData, Layer, Layers, Preference, PreferenceChannels, resolve, resolve_unnamed,
};
use crate::condition::Rule;
use crate::ids::{WorkflowId, WorkflowIdentifier};
use crate::json::Object;
use crate::schedule::Schedule;
use crate::time::Timestamp;
use crate::vocabulary::{Channel, Severity, wire_enum};
use crate::workflow::Workflow;

/// All preferences of a subscriber.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Preferences {
    /// Preference for every workflow.
    pub global: GlobalPreference,
    /// Preference for each workflow, oldest workflow first.
    pub workflows: Vec<WorkflowPreference>,
}

/// Effective preference for workflows without one of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GlobalPreference {
    /// `true` if a channel without a setting may be used.
    pub enabled: bool,
    /// Setting for each channel: `true` if it may be used.
    pub channels: PreferenceChannels,
    /// Hours for disturbing messages, as set for these contexts. If absent, those of the preference
    /// without contexts hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// Condition of the subscriber.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Rule>,
}

/// Effective preference for one workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct WorkflowPreference {
    /// `true` if a channel without a setting may be used.
    pub enabled: bool,
    /// Setting for each channel: `true` if it may be used.
    pub channels: PreferenceChannels,
    /// Layer that decided, for each channel.
    pub overrides: Vec<PreferenceOverride>,
    /// Workflow.
    pub workflow: WorkflowName,
    /// Condition of the subscriber for this workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Rule>,
    /// Time of the subscriber's last change for this workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
}

/// Layer that decided about a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PreferenceOverride {
    /// Channel.
    pub channel: Channel,
    /// Side that decided.
    pub source: OverrideSource,
    /// Layer that decided.
    pub layer: Layer,
}

wire_enum! {
    /// Side that decided about a channel.
    OverrideSource, "source":
    Subscriber = "subscriber",
    Workflow = "template",
    WorkflowOverride = "workflowOverride",
}

impl From<Layer> for OverrideSource {
    fn from(layer: Layer) -> Self {
        match layer {
            Layer::SubscriberGlobal | Layer::SubscriberWorkflow => OverrideSource::Subscriber,
            Layer::Default | Layer::Definition | Layer::Operator => OverrideSource::Workflow,
        }
    }
}

impl PreferenceOverride {
    /// Returns the layer of `layers` that decided, for each channel.
    #[doc(hidden)]
    pub fn all(layers: Layers<'_>) -> Vec<Self> {
        let decided = |channel: &Channel| {
            let layer = resolve(layers, *channel).decided_by();
            Self { channel: *channel, source: layer.into(), layer }
        };
        Channel::ALL.iter().map(decided).collect()
    }
}

/// Names of a workflow in a preference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct WorkflowName {
    /// Name in URLs.
    pub slug: String,
    /// Identifier that triggers the workflow.
    pub identifier: WorkflowIdentifier,
    /// Display name.
    pub name: String,
    /// Time of the last change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
}

/// Effective preference after an update, for one workflow or for all. On the wire it has its
/// [level](Self::level) too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "LeveledPreference", from = "LeveledPreference")]
#[non_exhaustive]
pub struct UpdatedPreference {
    /// Workflow, for a preference of one.
    pub workflow: Option<WorkflowInfo>,
    /// `true` if a channel without a setting may be used.
    pub enabled: bool,
    /// Setting for each channel: `true` if it may be used.
    pub channels: PreferenceChannels,
    /// Condition of the subscriber.
    pub condition: Option<Rule>,
}

// Members on the wire. The level follows from the workflow, so what is read of it has no effect.
#[derive(Serialize, Deserialize)]
struct LeveledPreference {
    level: PreferenceLevel,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    workflow: Option<WorkflowInfo>,
    enabled: bool,
    channels: PreferenceChannels,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    condition: Option<Rule>,
}

wire_enum! {
    /// Scope of a preference.
    PreferenceLevel, "level":
    Global = "global",
    Workflow = "template",
}

/// Public part of a workflow, for subscribers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WorkflowInfo {
    /// Id given by the engine.
    pub id: WorkflowId,
    /// Identifier that triggers the workflow.
    pub identifier: WorkflowIdentifier,
    /// Display name.
    pub name: String,
    /// `true` if the workflow is critical: subscribers cannot opt out of it.
    pub critical: bool,
    /// Tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Custom data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Object>,
    /// Severity of its notifications.
    pub severity: Severity,
}

impl Preferences {
    /// Returns all preferences of a subscriber.
    #[doc(hidden)]
    pub fn new(global: GlobalPreference, workflows: Vec<WorkflowPreference>) -> Self {
        Self { global, workflows }
    }
}

impl GlobalPreference {
    /// Returns the effective preference for workflows without one, with the subscriber's `global`
    /// preference.
    #[doc(hidden)]
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
    /// Returns the effective preference for `workflow`, from the subscriber's `global` and
    /// `specific` preferences. The time is that of the latter.
    #[doc(hidden)]
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
    /// Returns the effective preference for `workflow` after an update of the subscriber's
    /// `specific` preference.
    #[doc(hidden)]
    pub fn new(workflow: &Workflow, global: Option<&Preference>, specific: &Preference) -> Self {
        let layers = workflow.layers(global, Some(specific));
        Self {
            workflow: Some(workflow.info()),
            enabled: resolve_unnamed(layers).is_enabled(),
            channels: PreferenceChannels::resolved(layers),
            condition: specific.condition.clone(),
        }
    }

    /// Returns the scope of the preference.
    pub const fn level(&self) -> PreferenceLevel {
        match &self.workflow {
            Some(_) => PreferenceLevel::Workflow,
            None => PreferenceLevel::Global,
        }
    }
}

impl From<GlobalPreference> for UpdatedPreference {
    fn from(global: GlobalPreference) -> Self {
        let GlobalPreference { enabled, channels, condition, .. } = global;
        Self { workflow: None, enabled, channels, condition }
    }
}

impl From<UpdatedPreference> for LeveledPreference {
    fn from(updated: UpdatedPreference) -> Self {
        let level = updated.level();
        let UpdatedPreference { workflow, enabled, channels, condition } = updated;
        Self { level, workflow, enabled, channels, condition }
    }
}

impl From<LeveledPreference> for UpdatedPreference {
    fn from(leveled: LeveledPreference) -> Self {
        let LeveledPreference { level: _, workflow, enabled, channels, condition } = leveled;
        Self { workflow, enabled, channels, condition }
    }
}
