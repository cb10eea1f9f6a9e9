//! Settlement of turns, and delays that are extended to the schedule of a subscriber.

use domain::ids::{NotificationId, StepId};
use domain::job::{Detail, JobDigest, JobStatus};
use domain::plan::{self, Action, RefusalKind};
use domain::task::{Task, TaskState, Work};
use domain::time::Timestamp;
use store::WriteRecords;

use super::{Settled, requeue};
use crate::Result;
use crate::pipeline::delivery::lease::Leased;
use crate::pipeline::delivery::turn::{Closed, Turn};
use crate::pipeline::delivery::{DeliveryFailure, FailureReason};
use crate::pipeline::facts::is_canceled;
use crate::pipeline::notification_tx::NotificationTx;
use crate::resources::notifications;

impl NotificationTx<'_, '_> {
    // Applies a turn, unless the jobs have changed since it was planned.
    pub(super) fn turn(&mut self, leased: &Leased, task: &Task, turn: &Turn) -> Result<Settled> {
        let statuses = self.notification.jobs.iter().map(|job| job.status);
        let is_as_planned = statuses.eq(turn.statuses.iter().copied());
        let first = match turn.source.closed() {
            Some(closed) => self.notification.job_of(closed.step_id),
            None => self.notification.next_job(),
        };
        // A cancellation lasts, and was found by a look at all events of a digest.
        let is_canceled = !turn.canceled && is_as_planned && self.is_canceled(first)?;
        if !is_as_planned || is_canceled {
            let now = self.tx.now();
            return requeue::given_back(self.tx, leased, task, now).map(|()| Settled::Nothing);
        }
        let extension = match turn.actions[..] {
            [Action::Extend { job, until }] => Some((job, until)),
            _ => None,
        };
        let mut skipped = 0;
        if let Some(Closed { step_id, digest }) = turn.source.closed() {
            let digest = if extension.is_some() { digest.open() } else { digest.clone() };
            skipped = self.carry(task, *step_id, digest)?;
        }
        if let Some((job, until)) = extension {
            self.extend(job, task, until)?;
            return Ok(Settled::Turned { skipped, failed: Vec::new() });
        }
        self.tx.remove(task)?;
        let before: Vec<_> = self.notification.jobs.iter().map(|job| job.status).collect();
        self.perform(&turn.actions)?;
        let (skipped_behind, failed) = self.ended_since(&before);
        Ok(Settled::Turned { skipped: skipped + skipped_behind, failed })
    }

    // The number of jobs that were skipped, and the failures, since they had these statuses. The actions of
    // a turn do not tell: the transaction decides digests and throttles, and drops what is behind them.
    fn ended_since(&self, before: &[JobStatus]) -> (usize, Vec<DeliveryFailure>) {
        let (mut skipped, mut failed) = (0, Vec::new());
        for (number, (job, before)) in self.notification.jobs.iter().zip(before).enumerate() {
            match job.status {
                status if status == *before => {}
                JobStatus::Skipped => skipped += 1,
                JobStatus::Failed => {
                    let failure = job.execution_details.last().and_then(|last| {
                        let (detail, text) = (last.detail, last.raw.clone());
                        self.failure(number, FailureReason::Unsendable { detail, text })
                    });
                    failed.extend(failure);
                }
                _ => {}
            }
        }
        (skipped, failed)
    }

    /// Takes over the jobs behind the window of `task`. Those of the notification that has waited for it
    /// end, if it is another one. Returns the number of those that are skipped.
    pub(super) fn carry(&mut self, task: &Task, digest: StepId, job: JobDigest) -> Result<usize> {
        self.notification.take_over(digest, job, self.tx.now());
        task.work.notification_id().map_or(Ok(0), |before| self.end_carrier(before, digest))
    }

    // Ends the jobs that have waited for a window, from the digest on, if those of another notification
    // go on instead: their event has expired, or was canceled.
    fn end_carrier(&mut self, id: NotificationId, digest: StepId) -> Result<usize> {
        if id == self.notification.id {
            return Ok(0);
        }
        let Some(before) = notifications::find(self.tx, id)? else { return Ok(0) };
        let is_canceled = is_canceled(self.tx, &before.transaction_id)?;
        let refusal = if is_canceled { plan::CANCELED } else { plan::EXPIRED };
        let is_skip = refusal.kind == RefusalKind::Skip;
        let mut skipped = 0;
        let mut ended = NotificationTx::of(self.tx, before.clone(), None);
        let jobs = before.jobs.iter().enumerate();
        for (job, waiting) in jobs.skip_while(|(_, job)| job.step.id != digest) {
            if !waiting.status.has_ended() {
                ended.refuse(job, refusal.clone());
                skipped += usize::from(is_skip);
            }
        }
        let after = ended.notification;
        self.tx.replace(&before, &after)?;
        Ok(skipped)
    }

    // The end of a delay or of a window moves to the next opening of the schedule. Events join the
    // window meanwhile.
    fn extend(&mut self, job: usize, task: &Task, until: Timestamp) -> Result<()> {
        self.log(job, Detail::ExtendedToSchedule, Some(until.to_string()));
        self.move_job(job, JobStatus::Delayed { until });
        if let Some(job) = self.notification.jobs.get_mut(job) {
            let extensions = job.schedule_extensions_count.unwrap_or_default();
            job.schedule_extensions_count = Some(extensions.saturating_add(1));
        }
        let after = task.with(TaskState::Waiting { due_at: until, attempts: 0 });
        self.tx.replace(task, &after.with_notification(self.notification.id))?;
        match &task.work {
            Work::Close { window_id, key, .. } => self.prolong(job, *window_id, *key, until),
            Work::Turn { .. }
            | Work::Send(_)
            | Work::Call { .. }
            | Work::Sweep { .. }
            | Work::FanOut { .. }
            | Work::Wake { .. }
            | Work::Cancel { .. }
            | Work::Release { .. } => Ok(()),
        }
    }
}
