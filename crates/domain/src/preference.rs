//! Preferences: which channels may be used, by layer, and which layer decides.
//!
//! The rule needs no store, so that a host application can test the preferences of its workflows
//! offline:
//!
//! ```
//! use tidings_domain::preference::{Decision, Layer, Preference, PreferenceCase};
//! use tidings_domain::vocabulary::Channel;
//! use tidings_domain::workflow::WorkflowCreate;
//!
//! let newsletter = WorkflowCreate::new("newsletter", "Newsletter")?;
//! let email = |enabled| Preference::default().with(Channel::Email, enabled);
//! let case = PreferenceCase::new(&newsletter)
//!     .dashboard(email(false))
//!     .subscriber_workflow(email(true));
//!
//! assert_eq!(case.decide(Channel::Email), Decision::Send(Layer::SubscriberWorkflow));
//! # Ok::<(), tidings_domain::error::Invalid>(())
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
use layers::Setting;
pub use layers::{ConditionData, Layer, Layers, Verdict, resolve, resolve_unnamed};
pub use record::{PreferenceScope, SubscriberPreference};

/// Preference of one layer: one setting for all channels, and settings for single ones.
///
/// A condition overrides the setting for all channels. If it does not hold, every channel is off.
/// If it holds, only channels that are switched off by name are off.
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

/// Setting for each channel. `None` for a channel without one.
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
    /// Returns the preference with `channel` switched on or off.
    #[must_use]
    pub fn with(mut self, channel: Channel, enabled: bool) -> Self {
        *self.channels.word(channel) = Some(enabled);
        self
    }

    /// Refuses a condition with an unknown variable.
    pub(crate) fn check(&self) -> Result<(), Invalid> {
        self.condition.as_ref().map_or(Ok(()), Rule::check_names)
    }

    /// Returns the preference with every channel without a setting of its own switched on or off.
    #[must_use]
    pub fn with_all(self, enabled: bool) -> Self {
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

impl PreferenceChannels {
    /// Returns the setting for `channel`.
    pub const fn get(&self, channel: Channel) -> Option<bool> {
        match channel {
            Channel::InApp => self.in_app,
            Channel::Email => self.email,
            Channel::Sms => self.sms,
            Channel::Chat => self.chat,
            Channel::Push => self.push,
        }
    }

    /// Returns the decision of `layers` for every channel.
    #[doc(hidden)]
    pub fn resolved(layers: Layers<'_>) -> Self {
        let mut channels = Self::default();
        for channel in Channel::ALL {
            *channels.word(*channel) = Some(resolve(layers, *channel).is_enabled());
        }
        channels
    }

    /// Replaces the settings that `other` has.
    #[doc(hidden)]
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

/// Query of the preferences of a subscriber.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct PreferencesQuery {
    /// Filter of the workflows by criticality.
    pub criticality: Criticality,
    /// Contexts of the preferences.
    pub context_keys: ContextSet,
}

shape! { PreferencesQuery { "criticality": criticality, "contextKeys": context_keys } }

wire_enum! {
    /// Filter of workflows by criticality.
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
    /// Returns `true` if the filter selects a workflow that is `critical` or not.
    #[doc(hidden)]
    pub fn matches(self, critical: bool) -> bool {
        match self {
            Criticality::Critical => critical,
            Criticality::NonCritical => !critical,
            Criticality::All => true,
        }
    }
}

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
    /// Hours for disturbing messages.
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
    /// Returns the layer of `layers` that decided, for each channel.
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

/// Update of a subscriber's preferences for several workflows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BulkPreferences {
    /// Updates: 1 to 100. The last one for a workflow counts.
    pub preferences: Vec<BulkPreference>,
    /// Contexts of the preferences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextPayload>,
}

shape! { BulkPreferences { "preferences": preferences, "context": context } }

/// Update of a subscriber's preference for one workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct BulkPreference {
    /// Workflow: identifier, id or slug.
    pub workflow_id: String,
    /// Settings. An absent channel keeps its setting.
    pub channels: PreferenceChannels,
    /// Condition that must hold for any channel to be used.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub condition: Patch<Rule>,
}

shape! { BulkPreference {
    "workflowId": workflow_id, "channels": channels, "condition": condition
} }

/// Update of a subscriber's preference for every workflow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct GlobalPreferenceUpdate {
    /// Setting for every channel without one of its own.
    #[serde(skip_serializing_if = "Patch::is_keep")]
    pub enabled: Patch<bool>,
    /// Settings. An absent channel keeps its setting.
    pub channels: PreferenceChannels,
    /// Condition that must hold for any channel to be used.
    #[serde(skip_serializing_if = "Patch::is_keep")]
    pub condition: Patch<Rule>,
    /// Hours for disturbing messages.
    #[serde(skip_serializing_if = "Patch::is_keep")]
    pub schedule: Patch<Schedule>,
    /// Contexts of the preference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextPayload>,
}

shape! { GlobalPreferenceUpdate {
    "enabled": enabled, "channels": channels, "condition": condition, "schedule": schedule,
    "context": context,
} }

/// Effective preference after an update, for one workflow or for all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UpdatedPreference {
    /// Scope of the preference.
    pub level: PreferenceLevel,
    /// Workflow, for a preference of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowInfo>,
    /// `true` if a channel without a setting may be used.
    pub enabled: bool,
    /// Setting for each channel: `true` if it may be used.
    pub channels: PreferenceChannels,
    /// Condition of the subscriber.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Rule>,
}

wire_enum! {
    /// Scope of a preference.
    PreferenceLevel, "level":
    Global = "global",
    Template = "template",
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
    /// Maximum number of workflows in an update.
    pub const MAX: usize = 100;

    /// Refuses an update of no workflow, or of more than 100.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Invalid> {
        if self.preferences.is_empty() {
            return Err(Invalid::new("preferences", Reason::Empty));
        }
        crate::error::at_most_items("preferences", &self.preferences, Self::MAX)?;
        self.preferences.iter().enumerate().try_for_each(|(index, item)| {
            let at = |invalid: Invalid| invalid.within(format!("preferences[{index}]"));
            check_condition(&item.condition).map_err(at)
        })
    }
}

impl GlobalPreferenceUpdate {
    /// Refuses a condition with an unknown variable, and a schedule that is not well formed.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Invalid> {
        check_condition(&self.condition)?;
        match &self.schedule {
            Patch::Set(schedule) => schedule.check(),
            Patch::Keep | Patch::Clear => Ok(()),
        }
    }
}

fn check_condition(condition: &Patch<Rule>) -> Result<(), Invalid> {
    match condition {
        Patch::Set(rule) => rule.check_names(),
        Patch::Keep | Patch::Clear => Ok(()),
    }
}

#[cfg(test)]
mod tests;
