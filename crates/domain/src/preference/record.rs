//! Stored preference of a subscriber.

use serde::{Deserialize, Serialize};

use super::{GlobalPreferenceUpdate, Preference, WorkflowPreferenceUpdate};
use crate::context::ContextSet;
use crate::ids::{EnvironmentId, InternalSubscriberId, WorkflowId};
use crate::schedule::Schedule;
use crate::time::Timestamp;

/// Stored preference of a subscriber.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscriberPreference {
    /// Environment of the preference.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// Id of the subscriber, given by the engine.
    #[serde(rename = "_subscriberId")]
    pub subscriber_id: InternalSubscriberId,
    /// Contexts of the preference: exactly these.
    #[serde(default, skip_serializing_if = "ContextSet::is_empty")]
    pub context_keys: ContextSet,
    /// Scope.
    #[serde(flatten)]
    pub scope: PreferenceScope,
    /// Preference.
    pub preference: Preference,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

impl SubscriberPreference {
    /// Returns a preference without settings.
    pub fn new(
        environment_id: EnvironmentId,
        subscriber_id: InternalSubscriberId,
        context_keys: ContextSet,
        scope: PreferenceScope,
        now: Timestamp,
    ) -> Self {
        let (preference, updated_at) = (Preference::default(), now);
        Self { environment_id, subscriber_id, context_keys, scope, preference, updated_at }
    }

    /// Returns the preference after `update`. An update without a difference changes
    /// nothing, not even the time.
    #[must_use]
    pub fn updated_for_workflow(&self, update: &WorkflowPreferenceUpdate, now: Timestamp) -> Self {
        let mut after = self.clone();
        update.channels.apply(&mut after.preference.channels);
        update.enabled.apply(&mut after.preference.enabled);
        update.condition.clone().apply(&mut after.preference.condition);
        after.dated(self, now)
    }

    /// Returns the preference for every workflow after `update`. An update without a difference
    /// changes nothing, not even the time.
    #[must_use]
    pub fn updated(&self, update: &GlobalPreferenceUpdate, now: Timestamp) -> Self {
        let mut after = self.clone();
        update.channels.apply(&mut after.preference.channels);
        update.enabled.apply(&mut after.preference.enabled);
        update.condition.clone().apply(&mut after.preference.condition);
        if let PreferenceScope::Global { schedule } = &mut after.scope {
            let set = update.schedule.clone().map(|set| set.in_place_of(schedule.as_ref()));
            set.apply(schedule);
        }
        after.dated(self, now)
    }

    /// Returns `true` if the preference has no setting, no condition and no schedule.
    #[doc(hidden)]
    pub fn is_empty(&self) -> bool {
        self.preference == Preference::default() && self.schedule().is_none()
    }

    /// Returns the hours for disturbing messages, if the preference is about every workflow and has
    /// some.
    #[doc(hidden)]
    pub const fn schedule(&self) -> Option<&Schedule> {
        match &self.scope {
            PreferenceScope::Global { schedule } => schedule.as_ref(),
            PreferenceScope::Workflow { .. } => None,
        }
    }

    fn dated(self, before: &Self, now: Timestamp) -> Self {
        if self == *before { self } else { Self { updated_at: now, ..self } }
    }
}

/// Scope of a subscriber's preference.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "level")]
pub enum PreferenceScope {
    /// Every workflow.
    #[serde(rename = "global")]
    Global {
        /// Hours for disturbing messages.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        schedule: Option<Schedule>,
    },
    /// One workflow.
    #[serde(rename = "template")]
    Workflow {
        /// Id of the workflow.
        #[serde(rename = "_workflowId")]
        workflow_id: WorkflowId,
    },
}
