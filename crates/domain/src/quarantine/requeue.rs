//! The rule of putting a task back into the queue.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::job::{Detail, JobStatus, SendStatus};
use crate::notification::Notification;
use crate::task::{SendWork, Task, Work};
use crate::time::Timestamp;

/// Reason for which a task is not put back into the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum RequeueRefusal {
    /// The entry has no task that can be read.
    Unreadable,
    /// The notification is gone.
    Gone,
    /// The job has ended in another way since.
    Ended,
    /// There is such a task in the queue.
    Queued,
}

impl Notification {
    /// Returns the job that waits again if `work` is put back into the queue at `now`, with its
    /// status. Returns `None` if it still waits. The end of a window is asked of the first event that is
    /// left: if that has joined the window, it takes over its own jobs when the window closes.
    #[doc(hidden)]
    pub fn requeued(
        &self,
        work: &Work,
        now: Timestamp,
    ) -> Result<Option<(usize, JobStatus)>, RequeueRefusal> {
        let is_set_aside = |number: usize| {
            self.jobs.get(number).is_some_and(|job| {
                let last = job.execution_details.last().map(|entry| entry.detail);
                job.status == JobStatus::Failed && last == Some(Detail::RecordUnreadable)
            })
        };
        let (job, status) = match work {
            Work::Send(SendWork { job_id, .. }) | Work::Call { job_id, .. } => {
                let job = self.jobs.iter().position(|job| job.id == *job_id);
                (job, JobStatus::Queued { due_at: now, attempts: 0 })
            }
            Work::Close { step_id, .. } => {
                let job = self.jobs.iter().position(|job| job.step.id == *step_id);
                (job, JobStatus::Delayed { until: now })
            }
            Work::Turn { .. } => {
                let failed = (0..self.jobs.len()).find(|number| is_set_aside(*number));
                let waiting = self.jobs.iter().position(|job| !job.status.has_ended());
                (failed.or(waiting), JobStatus::Pending)
            }
            Work::Sweep { .. }
            | Work::FanOut { .. }
            | Work::Wake { .. }
            | Work::Cancel { .. }
            | Work::Release { .. } => return Ok(None),
        };
        let job = job.ok_or(RequeueRefusal::Ended)?;
        if is_set_aside(job) {
            return Ok(Some((job, status)));
        }
        let is_close = matches!(work, Work::Close { .. });
        let waits = self.jobs.get(job).is_some_and(|job| {
            !job.status.has_ended() || (is_close && job.status == JobStatus::Merged)
        });
        if waits { Ok(None) } else { Err(RequeueRefusal::Ended) }
    }

    /// Lets the send of a task wait again, if the task is that of one of several destinations.
    #[doc(hidden)]
    pub fn wait_again(&mut self, task: &Task) {
        let Some(id) = task.send_id() else { return };
        let sends = self.jobs.iter_mut().flat_map(|job| &mut job.sends);
        for send in sends.filter(|send| send.id == id) {
            send.status = SendStatus::Queued;
        }
    }
}

impl fmt::Display for RequeueRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RequeueRefusal::Unreadable => "it has no task that can be read",
            RequeueRefusal::Gone => "its notification is gone",
            RequeueRefusal::Ended => "its job has ended in another way",
            RequeueRefusal::Queued => "the queue has such a task",
        })
    }
}
