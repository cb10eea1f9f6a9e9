//! Requests about preferences.

use serde::{Deserialize, Serialize};

use super::PreferenceChannelsUpdate;
use crate::condition::Rule;
use crate::context::{ContextFilter, ContextPayload, ContextSet};
use crate::error::{Invalid, Reason};
use crate::ids::WorkflowRef;
use crate::json::shape;
use crate::patch::Patch;
use crate::schedule::Schedule;
use crate::vocabulary::wire_enum;
use crate::workflow::Workflow;

/// Query of the preferences of a subscriber. By default, critical workflows are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct PreferencesQuery {
    /// Filter of the workflows by criticality.
    pub criticality: Criticality,
    /// Contexts of the preferences. At most 100.
    pub context_keys: ContextSet,
}

shape! { PreferencesQuery { "criticality": criticality, "contextKeys": context_keys } }

impl PreferencesQuery {
    /// Refuses a query with more than 100 contexts.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Invalid> {
        self.context_keys.check(ContextFilter::MAX_VALUES)
    }
}

wire_enum! {
    /// Filter of workflows by criticality.
    #[derive(Default)]
    Criticality, "criticality":
    Critical = "critical",
    #[default]
    NonCritical = "nonCritical",
    All = "all",
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

/// Update of a subscriber's preferences for several workflows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WorkflowPreferenceUpdates {
    /// Updates: 1 to 100. The last one for a workflow counts.
    pub preferences: Vec<WorkflowPreferenceUpdate>,
    /// Contexts of the preferences, which count for events of exactly these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextPayload>,
}

shape! { WorkflowPreferenceUpdates { "preferences": preferences, "context": context } }

/// Update of a subscriber's preference for one workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct WorkflowPreferenceUpdate {
    /// Workflow: identifier, id or slug.
    pub workflow_id: WorkflowRef,
    /// Setting for every channel without one of its own. It has no effect while there is a condition.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub enabled: Patch<bool>,
    /// Settings. An absent channel keeps its setting, and the wider layers decide about one that is
    /// cleared.
    pub channels: PreferenceChannelsUpdate,
    /// Condition that must hold for any channel to be used.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub condition: Patch<Rule>,
}

shape! { WorkflowPreferenceUpdate {
    "workflowId": workflow_id, "enabled": enabled, "channels": channels, "condition": condition
} }

/// Update of a subscriber's preference for every workflow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct GlobalPreferenceUpdate {
    /// Setting for every channel without one of its own. It has no effect while there is a condition.
    #[serde(skip_serializing_if = "Patch::is_keep")]
    pub enabled: Patch<bool>,
    /// Settings. An absent channel keeps its setting, and the wider layers decide about one that is
    /// cleared.
    pub channels: PreferenceChannelsUpdate,
    /// Condition that must hold for any channel to be used.
    #[serde(skip_serializing_if = "Patch::is_keep")]
    pub condition: Patch<Rule>,
    /// Hours for disturbing messages. Those of the preference without contexts hold in each context
    /// set that has none.
    #[serde(skip_serializing_if = "Patch::is_keep")]
    pub schedule: Patch<Schedule>,
    /// Contexts of the preference, which counts for events of exactly these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextPayload>,
}

shape! { GlobalPreferenceUpdate {
    "enabled": enabled, "channels": channels, "condition": condition, "schedule": schedule,
    "context": context,
} }

/// Reason to refuse an update of several workflows, with the names of the workflows.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BulkRefusal {
    /// The workflows do not exist.
    Missing(Vec<String>),
    /// The workflows are critical, so subscribers cannot opt out of them.
    Critical(Vec<String>),
}

impl WorkflowPreferenceUpdates {
    /// Returns each workflow of the update once, in the order of its first mention, with the last
    /// of its items. `found` has the workflow of each item, if it exists.
    #[doc(hidden)]
    pub fn changes(
        &self,
        found: impl IntoIterator<Item = Option<Workflow>>,
    ) -> Result<Vec<(Workflow, &WorkflowPreferenceUpdate)>, BulkRefusal> {
        let mut changes: Vec<(Workflow, &WorkflowPreferenceUpdate)> = Vec::new();
        let (mut missing, mut critical) = (Vec::new(), Vec::new());
        for (item, workflow) in self.preferences.iter().zip(found) {
            let name = || item.workflow_id.to_string();
            match workflow {
                None => missing.push(name()),
                Some(workflow) if workflow.critical => critical.push(name()),
                Some(workflow) => match changes.iter_mut().find(|(one, _)| one.id == workflow.id) {
                    Some((_, last)) => *last = item,
                    None => changes.push((workflow, item)),
                },
            }
        }
        match (missing.is_empty(), critical.is_empty()) {
            (false, _) => Err(BulkRefusal::Missing(missing)),
            (true, false) => Err(BulkRefusal::Critical(critical)),
            (true, true) => Ok(changes),
        }
    }

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
        self.schedule.as_set().map_or(Ok(()), Schedule::check)
    }
}

fn check_condition(condition: &Patch<Rule>) -> Result<(), Invalid> {
    condition.as_set().map_or(Ok(()), Rule::check_names)
}
