//! The job that waits for a task.

use super::{SendWork, Work};
use crate::job::{Job, JobStatus};
use crate::notification::Notification;

impl Work {
    /// Returns the number of the job of `notification` that waits for the work: for a turn, the first one
    /// that it decides. Returns `None` if the job has ended, if a delay or an open window holds up the turn,
    /// and for work on no job.
    pub fn job_in(&self, notification: &Notification) -> Option<usize> {
        let mut jobs = notification.jobs.iter();
        let waits = |job: &Job| !job.status.has_ended();
        match self {
            Work::Send(SendWork { job_id, .. }) | Work::Call { job_id, .. } => {
                jobs.position(|job| job.id == *job_id && waits(job))
            }
            Work::Close { step_id, .. } => {
                jobs.position(|job| job.step.id == *step_id && waits(job))
            }
            Work::Turn { .. } => {
                let is_delayed = |job: &&Job| matches!(job.status, JobStatus::Delayed { .. });
                let mut before = jobs.take_while(|job| !is_delayed(job));
                before.position(|job| job.status == JobStatus::Pending)
            }
            Work::Sweep { .. }
            | Work::FanOut { .. }
            | Work::Wake { .. }
            | Work::Cancel { .. }
            | Work::Release { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::sample::{self, at};

    /// One row per work and statuses of a digest, an e-mail and another one.
    #[test]
    fn the_job_of_a_task_has_not_ended() {
        use JobStatus::{Completed, Merged, Pending};
        let delayed = JobStatus::Delayed { until: at(5) };
        let queued = JobStatus::Queued { due_at: at(5), attempts: 1 };
        let digest = json!({ "type": "digest", "metadata":
            { "type": "regular", "amount": 1, "unit": "minutes" } });
        let email = json!({ "type": "email", "template": { "subject": "S", "body": "B" } });
        let workflow = sample::workflow(json!([digest, email, email]));
        let subscriber = sample::subscriber(json!({}));
        let mut notification = sample::notification(&workflow, &subscriber, json!({}));
        for (kind, of, statuses, expected) in [
            ("send", 1, [Completed, queued, Pending], Some(1)),
            ("call", 2, [Completed, queued, queued], Some(2)),
            ("send", 1, [Completed, Completed, Pending], None),
            ("close", 0, [delayed, Pending, Pending], Some(0)),
            ("close", 0, [Merged, Merged, Merged], None),
            ("turn", 0, [Completed, queued, Pending], Some(2)),
            ("turn", 0, [Completed, Pending, Pending], Some(1)),
            ("turn", 0, [delayed, Pending, Pending], None),
            ("turn", 0, [Pending, delayed, Pending], Some(0)),
            ("turn", 0, [Completed, queued, queued], None),
            ("wake", 0, [Pending, Pending, Pending], None),
        ] {
            for (job, status) in notification.jobs.iter_mut().zip(statuses) {
                job.status = status;
            }
            let job = &notification.jobs[of];
            let work: Value = json!({
                "type": kind, "_notificationId": notification.id, "_jobId": job.id,
                "_stepId": job.step.id, "_windowId": job.id, "key": job.id, "_messageId": job.id,
            });
            let work: Work = serde_json::from_value(work).unwrap();
            assert_eq!(work.job_in(&notification), expected, "{kind} {statuses:?}");
        }
    }
}
