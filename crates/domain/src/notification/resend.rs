//! The rule of sending a message again.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Notification;
use crate::ids::StepId;
use crate::job::JobStatus;

/// Reason for which the message of a step is not sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ResendRefusal {
    /// The notification has no such step.
    NoStep,
    /// The step has not ended.
    Waiting,
    /// The step sends no message, its message is gone, or the digest of another notification has its
    /// event.
    NoMessage,
}

impl Notification {
    /// Returns the number of the job whose message is sent again.
    #[doc(hidden)]
    pub fn resendable(&self, step: StepId) -> Result<usize, ResendRefusal> {
        let found = self.jobs.iter().enumerate().find(|(_, job)| job.step.id == step);
        let (number, job) = found.ok_or(ResendRefusal::NoStep)?;
        if !job.status.has_ended() {
            return Err(ResendRefusal::Waiting);
        }
        if job.kind.channel().is_none() || job.status == JobStatus::Merged {
            return Err(ResendRefusal::NoMessage);
        }
        Ok(number)
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
