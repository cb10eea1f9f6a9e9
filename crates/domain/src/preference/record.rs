//! The word of a subscriber, as it is stored.

use serde::{Deserialize, Serialize};

use super::{BulkPreference, GlobalPreferenceUpdate, Preference};
use crate::context::ContextSet;
use crate::ids::{EnvironmentId, InternalSubscriberId, WorkflowId};
use crate::schedule::Schedule;
use crate::time::Timestamp;

/// The word of a subscriber, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscriberPreference {
    /// The environment it belongs to.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// Whose word it is.
    #[serde(rename = "_subscriberId")]
    pub subscriber_id: InternalSubscriberId,
    /// The contexts it holds for: exactly these, and no others.
    #[serde(default, skip_serializing_if = "ContextSet::is_empty")]
    pub context_keys: ContextSet,
    /// What it is about.
    #[serde(flatten)]
    pub scope: PreferenceScope,
    /// The word.
    pub preference: Preference,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

impl SubscriberPreference {
    /// A word that says nothing yet.
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

    /// The word after `said`. What says nothing new changes nothing.
    #[must_use]
    pub fn saying(&self, said: &BulkPreference, now: Timestamp) -> Self {
        let mut after = self.clone();
        after.preference.channels.merge(&said.channels);
        said.condition.clone().apply(&mut after.preference.condition);
        after.dated(self, now)
    }

    /// The word about every workflow after `update`. What says nothing new changes nothing.
    #[must_use]
    pub fn updated(&self, update: &GlobalPreferenceUpdate, now: Timestamp) -> Self {
        let mut after = self.clone();
        after.preference.channels.merge(&update.channels);
        update.enabled.apply(&mut after.preference.enabled);
        update.condition.clone().apply(&mut after.preference.condition);
        if let PreferenceScope::Global { schedule } = &mut after.scope {
            update.schedule.clone().apply(schedule);
        }
        after.dated(self, now)
    }

    fn dated(self, before: &Self, now: Timestamp) -> Self {
        if self == *before { self } else { Self { updated_at: now, ..self } }
    }
}

/// What a subscriber's word is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "level")]
pub enum PreferenceScope {
    /// Every workflow.
    #[serde(rename = "global")]
    Global {
        /// The hours in which the subscriber may be disturbed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        schedule: Option<Schedule>,
    },
    /// One workflow.
    #[serde(rename = "template")]
    Workflow {
        /// The workflow.
        #[serde(rename = "_workflowId")]
        workflow_id: WorkflowId,
    },
}
