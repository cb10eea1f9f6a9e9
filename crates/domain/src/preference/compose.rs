//! Constructors and setters of preferences.

use super::{
    Criticality, GlobalPreferenceUpdate, Preference, PreferencesQuery, WorkflowPreferenceUpdate,
    WorkflowPreferenceUpdates,
};
use crate::condition::Rule;
use crate::context::ContextKey;
use crate::ids::WorkflowRef;
use crate::schedule::Schedule;
use crate::setters::{context_setter, setters};
use crate::vocabulary::Channel;

setters! { Preference:
    /// Sets the condition, which overrides the setting for all channels: a rule, JSON, or an
    /// [`Expression`](crate::condition::Expression).
    condition: within(Rule);
}

impl WorkflowPreferenceUpdate {
    /// Returns an update for a workflow, by its identifier, id or slug, that changes nothing.
    pub fn new(workflow_id: impl Into<WorkflowRef>) -> Self {
        let (enabled, channels, condition) = Default::default();
        Self { workflow_id: workflow_id.into(), enabled, channels, condition }
    }

    /// Switches a channel on or off.
    #[must_use]
    pub fn with(self, channel: Channel, enabled: bool) -> Self {
        Self { channels: self.channels.with(channel, enabled), ..self }
    }

    /// Removes the setting of a channel, so that the wider layers decide about it.
    #[must_use]
    pub fn clear_channel(self, channel: Channel) -> Self {
        Self { channels: self.channels.clear(channel), ..self }
    }
}

setters! { WorkflowPreferenceUpdate:
    /// Switches every channel without a setting of its own on or off. A condition overrides this, also one that is
    /// stored: to switch the channels off, remove it with `clear_condition`.
    enabled: exact(bool);
    /// Removes the setting for every channel without one of its own.
    clear_enabled @ enabled: clear();
    /// Sets the condition, which overrides the setting for all channels.
    condition: within(Rule);
    /// Removes the condition.
    clear_condition @ condition: clear();
}

setters! { WorkflowPreferenceUpdates:
    /// Adds an update for one workflow: 100 at most.
    preference @ preferences: push(WorkflowPreferenceUpdate);
    /// Sets the updates, one for each workflow: 100 at most.
    preferences: each(WorkflowPreferenceUpdate);
}

context_setter!(WorkflowPreferenceUpdates);

impl GlobalPreferenceUpdate {
    /// Switches a channel on or off.
    #[must_use]
    pub fn with(self, channel: Channel, enabled: bool) -> Self {
        Self { channels: self.channels.with(channel, enabled), ..self }
    }

    /// Removes the setting of a channel, so that the wider layers decide about it.
    #[must_use]
    pub fn clear_channel(self, channel: Channel) -> Self {
        Self { channels: self.channels.clear(channel), ..self }
    }
}

setters! { GlobalPreferenceUpdate:
    /// Switches every channel without a setting of its own on or off. A condition overrides this, also one that is
    /// stored: to switch the channels off, remove it with `clear_condition`.
    enabled: exact(bool);
    /// Removes the setting for every channel without one of its own.
    clear_enabled @ enabled: clear();
    /// Sets the condition, which overrides the setting for all channels.
    condition: within(Rule);
    /// Removes the condition.
    clear_condition @ condition: clear();
    /// Sets the hours for disturbing messages.
    schedule: exact(Schedule);
    /// Removes the schedule.
    clear_schedule @ schedule: clear();
}

context_setter!(GlobalPreferenceUpdate);

setters! { PreferencesQuery:
    /// Sets the filter of the workflows by criticality.
    criticality: exact(Criticality);
    /// Sets the contexts that the preferences are read for, as in `tenant:acme`.
    context_keys: each_checked(ContextKey, "contextKeys");
}
