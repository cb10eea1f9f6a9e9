//! Settlement of work whose last attempt had no end.

use domain::job::{Detail, Job, JobStatus};
use domain::task::{Task, Work};
use domain::time::Timestamp;
use store::WriteRecords;

use super::{Settled, change_jobs, drop_task};
use crate::Result;
use crate::pipeline::delivery::FailureReason;
use crate::pipeline::delivery::lease::Leased;
use crate::pipeline::live_events::LiveEvents;
use crate::pipeline::notification_tx::NotificationTx;
use crate::resources::notifications;
use crate::tx::Tx;

/// Ends the job of a task, unless its notification is gone. The end of a window fails for the first event
/// that is left: its jobs would go on.
pub(super) fn settle(tx: &mut Tx<'_>, leased: &Leased, task: &Task) -> Result<Settled> {
    let left = LiveEvents::bounded(tx.now()).notification_of(tx, &task.work)?;
    let found = left.map_or(Ok(None), |id| notifications::find(tx, id))?;
    let Some(before) = found else { return drop_task(tx, task) };
    change_jobs(tx, &before, |notification_tx| notification_tx.give_up(leased, task))
}

impl NotificationTx<'_, '_> {
    fn give_up(&mut self, leased: &Leased, task: &Task) -> Result<Settled> {
        self.end_delay(task, leased.since);
        let skipped = self.carry_given_up(task)?;
        self.tx.remove(task)?;
        let Some(job) = task.work.job_in(&self.notification) else {
            return Ok(Settled::Turned { skipped, failed: Vec::new() });
        };
        let failure = self.failure(job, FailureReason::Unanswered);
        self.log(job, Detail::LeaseExpired, None);
        self.mark_dead_unsent(job, task, Detail::LeaseExpired, None)?;
        self.end_failed(job, task.send_id())?;
        Ok(Settled::Turned { skipped, failed: failure.into_iter().collect() })
    }

    // Ends the delay that a turn was due for, if the turn fails. A turn that was put back may be one of a job
    // in front of a delay, which has a task of its own as long as it lasts. The clock may have gone back since
    // the claim.
    pub(super) fn end_delay(&mut self, task: &Task, claimed_at: Timestamp) {
        let is_turn = matches!(task.work, Work::Turn { .. });
        if !is_turn || self.notification.is_collecting() {
            return;
        }
        let now = self.tx.now().max(claimed_at);
        let is_over =
            |job: &Job| matches!(job.status, JobStatus::Delayed { until } if until <= now);
        if let Some(job) = self.notification.jobs.iter().position(is_over) {
            self.complete(job, Detail::DelayFinished, None);
        }
    }

    // Takes over the jobs behind a window whose end is given up, so that they fail. Returns the number of
    // those that are skipped.
    pub(super) fn carry_given_up(&mut self, task: &Task) -> Result<usize> {
        let Work::Close { step_id, .. } = task.work else { return Ok(0) };
        let mut jobs = self.notification.jobs.iter();
        let digest = jobs.find(|job| job.step.id == step_id).and_then(|job| job.digest.clone());
        digest.map_or(Ok(0), |digest| self.carry(task, step_id, digest))
    }
}
