//! Settlement of custom steps: what functions of the host application have returned.

use domain::job::{Detail, JobStatus};
use domain::json::Object;
use domain::task::{AfterFailure, Task, TaskState};
use domain::time::Timestamp;
use store::WriteRecords;

use super::Settled;
use crate::Result;
use crate::pipeline::delivery::call::CallResult;
use crate::pipeline::delivery::claim::Leased;
use crate::pipeline::delivery::{DeliveryFailure, FailureReason};
use crate::pipeline::notification_tx::NotificationTx;
use crate::tx::View;

impl NotificationTx<'_, '_> {
    // Stores what a function of the host application has returned.
    pub(super) fn returned(
        &mut self,
        job: usize,
        leased: &Leased,
        task: &Task,
        result: &CallResult,
    ) -> Result<Settled> {
        let failure = match result {
            Ok(result) => return self.handled(job, task, result.as_ref()),
            Err(failure) => failure,
        };
        let policy = (&self.tx.engine().parts.settings.retry, || self.tx.jitter());
        let (attempts, retry) = (leased.attempt(), failure.retry());
        let after = task.state.after_failure(attempts, retry, policy, self.tx.now());
        let Some(after) = after else { return Ok(Settled::Superseded) };
        match after {
            AfterFailure::RetryAt(due_at) => {
                self.log(job, Detail::HandlerRetry, failure.text());
                self.move_job(job, JobStatus::Queued { due_at, attempts });
                if let Some(settled) = self.end_if_canceled(job, task)? {
                    return Ok(settled);
                }
                self.tx.replace(task, &task.with(TaskState::Waiting { due_at, attempts }))?;
                Ok(self.failed(job, failure.reason(), Some(due_at)))
            }
            AfterFailure::Failed => {
                self.log(job, failure.detail(), failure.text());
                self.tx.remove(task)?;
                self.fail(job)?;
                Ok(self.failed(job, failure.reason(), None))
            }
        }
    }

    fn handled(&mut self, job: usize, task: &Task, result: Option<&Object>) -> Result<Settled> {
        if let Some(job) = self.notification.jobs.get_mut(job) {
            job.result = result.cloned();
        }
        self.complete(job, Detail::HandlerCompleted, None);
        self.tx.remove(task)?;
        self.go_on()?;
        Ok(Settled::Nothing)
    }

    fn failed(&self, job: usize, reason: FailureReason, retry_at: Option<Timestamp>) -> Settled {
        match self.failure(job, reason) {
            Some(failure) => Settled::Failed(DeliveryFailure { retry_at, ..failure }),
            None => Settled::Nothing,
        }
    }
}
