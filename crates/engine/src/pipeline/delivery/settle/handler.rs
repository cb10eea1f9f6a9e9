//! Settlement of custom steps: what functions of the host application have returned.

use domain::job::{Detail, JobStatus};
use domain::json::Object;
use domain::task::{AfterFailure, Task, TaskState};
use store::WriteRecords;

use super::Settled;
use crate::Result;
use crate::pipeline::delivery::call::CallResult;
use crate::pipeline::delivery::lease::Leased;
use crate::pipeline::notification_tx::NotificationTx;
use crate::tx::View;

impl NotificationTx<'_, '_> {
    // Stores what a function of the host application has returned.
    pub(super) fn handler_called(
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
                let failure = self.failure(job, failure.reason());
                Ok(Settled::of_failure(failure.map(|failure| failure.retried_at(due_at))))
            }
            AfterFailure::Failed => {
                self.log(job, failure.detail(), failure.text());
                self.tx.remove(task)?;
                self.end_failed(job, None)?;
                Ok(Settled::of_failure(self.failure(job, failure.reason())))
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
}
