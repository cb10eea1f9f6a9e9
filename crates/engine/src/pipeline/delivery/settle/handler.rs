//! Settlement of custom steps: what functions of the host application have returned.

use domain::job::Detail;
use domain::json::Object;
use domain::task::{AfterFailure, Task};
use store::WriteRecords;

use super::{NextAttempt, Settled};
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
            Ok(result) => {
                self.tx.remove(task)?;
                return self.handled(job, result.as_ref());
            }
            Err(failure) => failure,
        };
        let policy = (&self.tx.engine().parts.settings.retry, || self.tx.jitter());
        let is_shared = self.tx.engine().store().runs_side_by_side();
        let (attempts, retry) = (leased.attempt(), failure.retry(is_shared));
        let after = task.state.after_failure(attempts, retry, policy, self.tx.now());
        let Some(after) = after else { return Ok(Settled::Superseded) };
        match after {
            AfterFailure::RetryAt(due_at) => {
                self.log(job, Detail::HandlerRetry, failure.text());
                let failure = self.failure(job, failure.reason());
                let next = NextAttempt { due_at, attempts, work: None };
                self.retry_later(job, task, next, failure)
            }
            AfterFailure::Failed => {
                self.log(job, failure.detail(), failure.text());
                self.tx.remove(task)?;
                self.end_failed(job, None)?;
                Ok(Settled::of_failure(self.failure(job, failure.reason())))
            }
        }
    }

    /// Stores the result of a function of the host application.
    pub(super) fn handled(&mut self, job: usize, result: Option<&Object>) -> Result<Settled> {
        if let Some(job) = self.notification.jobs.get_mut(job) {
            job.result = result.cloned();
        }
        self.complete(job, Detail::HandlerCompleted, None);
        self.go_on()?;
        Ok(Settled::Nothing)
    }
}
