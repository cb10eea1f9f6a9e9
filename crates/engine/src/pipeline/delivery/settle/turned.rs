//! Settlement of turns, and delays that are extended to the schedule of a subscriber.

use domain::ids::{NotificationId, StepId};
use domain::job::{Detail, JobDigest, JobStatus};
use domain::plan::{self, Action, RefusalKind};
use domain::task::{Task, TaskState, Work};
use domain::time::Timestamp;
use store::WriteRecords;

use super::{Settled, put_back};
use crate::Result;
use crate::pipeline::apply::Course;
use crate::pipeline::delivery::claim::Leased;
use crate::pipeline::delivery::turn::{Closed, Turn};
use crate::pipeline::delivery::{DeliveryFailure, FailureReason};
use crate::pipeline::facts::is_canceled;
use crate::resources::notifications;

impl Course<'_, '_> {
    // Applies a turn, unless the jobs have changed since it was planned.
    pub(super) fn turn(&mut self, leased: &Leased, task: &Task, turn: &Turn) -> Result<Settled> {
        let statuses = self.notification.jobs.iter().map(|job| job.status);
        let is_as_planned = statuses.eq(turn.statuses.iter().copied());
        // A cancellation lasts, and was found by a look at all events of a digest.
        let is_canceled =
            !turn.canceled && is_as_planned && self.is_canceled(self.notification.next_job())?;
        if !is_as_planned || is_canceled {
            let now = self.tx.now();
            return put_back(self.tx, leased, task, now).map(|_| Settled::Again);
        }
        let extension = match turn.actions[..] {
            [Action::Extend { job, until }] => Some((job, until)),
            _ => None,
        };
        if let Some(Closed { step_id, digest }) = &turn.closed {
            let digest = if extension.is_some() { digest.open() } else { digest.clone() };
            self.carry(task, *step_id, digest)?;
        }
        if let Some((job, until)) = extension {
            self.extend(job, task, until)?;
            return Ok(Settled::Again);
        }
        self.tx.remove(task)?;
        self.perform(&turn.actions)?;
        let skipped = turn.actions.iter().filter(|action| action.is_skip()).count();
        Ok(Settled::Turned { skipped, failed: self.failures(&turn.actions) })
    }

    // The failures among the actions that were performed.
    fn failures(&self, actions: &[Action]) -> Vec<DeliveryFailure> {
        let failure = |action: &Action| match action {
            Action::Refuse(job, refusal) if refusal.kind == RefusalKind::Fail => {
                let (detail, text) = (refusal.detail, refusal.raw.clone());
                let status = self.notification.jobs.get(*job).map(|job| job.status);
                self.failure(*job, FailureReason::Unsendable { detail, text })
                    .filter(|_| status == Some(JobStatus::Failed))
            }
            Action::Refuse(..)
            | Action::Keep(..)
            | Action::Send { .. }
            | Action::Pass(..)
            | Action::Delay { .. }
            | Action::Extend { .. }
            | Action::Gather(..)
            | Action::Limit(..)
            | Action::Call(_) => None,
        };
        actions.iter().filter_map(failure).collect()
    }

    /// Takes over the jobs behind the window of `task`. Those of the notification that has waited for it
    /// end, if it is another one.
    pub(super) fn carry(&mut self, task: &Task, digest: StepId, job: JobDigest) -> Result<()> {
        self.notification.take_over(digest, job, self.tx.now());
        task.work.notification_id().map_or(Ok(()), |before| self.end_carrier(before, digest))
    }

    // Ends the jobs that have waited for a window, from the digest on, if those of another notification
    // go on instead: their event has expired, or was canceled.
    fn end_carrier(&mut self, id: NotificationId, digest: StepId) -> Result<()> {
        if id == self.notification.id {
            return Ok(());
        }
        let Some(before) = notifications::find(self.tx, id)? else { return Ok(()) };
        let is_canceled = is_canceled(self.tx, &before.transaction_id)?;
        let refusal = if is_canceled { plan::canceled() } else { plan::EXPIRED };
        let mut ended = Course::of(self.tx, before.clone(), None);
        let jobs = before.jobs.iter().enumerate();
        for (job, waiting) in jobs.skip_while(|(_, job)| job.step.id != digest) {
            if !waiting.status.has_ended() {
                ended.refuse(job, refusal.clone());
            }
        }
        let after = ended.notification;
        Ok(self.tx.replace(&before, &after)?)
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
        self.tx.replace(task, &after.carried_by(self.notification.id))?;
        match &task.work {
            Work::Close { window_id, key, .. } => self.prolong(job, (*window_id, *key), until),
            Work::Turn { .. }
            | Work::Send { .. }
            | Work::Call { .. }
            | Work::Sweep { .. }
            | Work::FanOut { .. }
            | Work::Wake { .. }
            | Work::Cancel { .. }
            | Work::Release { .. } => Ok(()),
        }
    }
}
