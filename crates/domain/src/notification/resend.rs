//! The rule of sending a message again.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Notification;
use crate::error::Invalid;
use crate::ids::StepId;
use crate::job::{Detail, Job, JobStatus};
use crate::step;

/// Reason for which the message of a step is not sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ResendRefusal {
    /// The notification has no step of that id.
    NoStep,
    /// The step has not ended.
    Waiting,
    /// The step sends no message, its message is gone, a condition, a throttle or a delay has passed over it, or
    /// the digest of another notification has its event.
    NoMessage,
}

impl Notification {
    /// Returns the job of a step and its number: by the id or the name of the step, or else by its
    /// place. Returns `None` if the notification has no such step.
    #[doc(hidden)]
    pub fn job_of_step(&self, step: &str) -> Option<(usize, &Job)> {
        let mut jobs = self.jobs.iter().enumerate();
        let id = step.parse::<StepId>().ok();
        let with_id = jobs.clone().find(|(_, job)| id == Some(job.step.id));
        let named = || jobs.clone().find(|(_, job)| job.step.name.as_deref() == Some(step));
        with_id.or_else(named).or_else(|| jobs.nth(step.parse().ok()?))
    }

    /// Returns the refusal of a step that the notification does not have, with those that it has.
    #[doc(hidden)]
    pub fn unknown_step(&self) -> Invalid {
        step::unknown(self.jobs.iter().map(|job| job.step.name.as_deref()))
    }
}

impl Job {
    /// Refuses a job whose message is not sent again.
    #[doc(hidden)]
    pub fn check_resent(&self) -> Result<(), ResendRefusal> {
        if !self.status.has_ended() {
            return Err(ResendRefusal::Waiting);
        }
        let is_without = self.status == JobStatus::Merged || self.was_passed_over();
        if self.kind.channel().is_none() || is_without {
            return Err(ResendRefusal::NoMessage);
        }
        Ok(())
    }

    // Returns `true` if a condition, a throttle or a delay has decided that there is no message. An attempt does
    // not look at them again.
    fn was_passed_over(&self) -> bool {
        let last = self.execution_details.last().map(|last| last.detail);
        self.status == JobStatus::Skipped
            && self.message_id.is_none()
            && matches!(last, Some(Detail::FilteredByStepConditions | Detail::PrecedingStepSkipped))
    }
}

impl fmt::Display for ResendRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ResendRefusal::NoStep => "the notification has no such step",
            ResendRefusal::Waiting => "the step has not ended",
            ResendRefusal::NoMessage => "the step has no message",
        })
    }
}
