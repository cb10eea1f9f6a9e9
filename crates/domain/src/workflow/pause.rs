//! Workflows that are paused.

use super::Workflow;
use crate::task::{Lane, TaskClass};
use crate::time::{Dated, Timestamp};

impl Workflow {
    /// Returns `true` if the workflow is paused: it takes triggers, and nothing of it goes on.
    pub const fn is_paused(&self) -> bool {
        self.paused_at.is_some()
    }

    /// Returns the workflow, paused at `now` unless it is paused already.
    #[doc(hidden)]
    #[must_use]
    pub fn paused(&self, now: Timestamp) -> Self {
        let paused_at = self.paused_at.or(Some(now));
        Self { paused_at, ..self.clone() }.changed_from(self, now)
    }

    /// Returns the workflow, not paused.
    #[doc(hidden)]
    #[must_use]
    pub fn resumed(&self, now: Timestamp) -> Self {
        Self { paused_at: None, ..self.clone() }.changed_from(self, now)
    }

    /// Returns the lanes of its tasks.
    #[doc(hidden)]
    pub fn lanes(&self) -> [Lane; TaskClass::ALL.len()] {
        let (environment_id, workflow_id) = (self.environment_id, Some(self.id));
        TaskClass::ALL.map(|class| Lane { class, environment_id, workflow_id })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::sample::{at, workflow};

    #[test]
    fn a_paused_workflow_keeps_the_time_of_its_first_pause() {
        let running = workflow(json!([]));
        let paused = running.paused(at(5));
        assert_eq!((paused.paused_at, paused.updated_at), (Some(at(5)), at(5)));
        assert_eq!(paused.paused(at(9)), paused);
        let resumed = paused.resumed(at(9));
        assert_eq!((resumed.is_paused(), resumed.updated_at), (false, at(9)));
        assert_eq!(resumed.resumed(at(11)), resumed);
    }
}
