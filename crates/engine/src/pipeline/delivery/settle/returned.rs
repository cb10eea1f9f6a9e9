//! Settlement of custom steps: what functions of the host application have returned.

use domain::job::{Detail, JobStatus};
use domain::plan;
use domain::task::{Settlement, Task, TaskState};
use domain::time::Timestamp;
use store::WriteRecords;

use super::Settled;
use crate::Result;
use crate::pipeline::apply::Course;
use crate::pipeline::delivery::call::CallResult;
use crate::pipeline::delivery::claim::Leased;
use crate::pipeline::delivery::{DeliveryFailure, FailureReason};
use crate::tx::View;

impl Course<'_, '_> {
    // Stores what a function of the host application has returned.
    pub(super) fn returned(
        &mut self,
        job: usize,
        leased: &Leased,
        task: &Task,
        result: &CallResult,
    ) -> Result<Settled> {
        let now = self.tx.now();
        let retry = (&self.tx.engine().parts.retry, || self.tx.jitter());
        let settlement = task.state.settle(leased.attempt(), result.outcome(), retry, now);
        let Some(settlement) = settlement else { return Ok(Settled::Superseded) };
        let said = result.said();
        match settlement {
            Settlement::Done => self.handled(job, task, result),
            Settlement::Retry { due_at, attempts } => {
                self.log(job, Detail::HandlerRetry, said);
                self.move_job(job, JobStatus::Queued { due_at, attempts });
                if let Err(refusal) = plan::again(self.is_canceled(job)?) {
                    self.tx.remove(task)?;
                    return self.refused(job, task, &refusal);
                }
                self.tx.replace(task, &task.with(TaskState::Waiting { due_at, attempts }))?;
                Ok(self.failed(job, result.reason(), Some(due_at)))
            }
            Settlement::Failed => {
                self.log(job, result.failure(), said);
                self.tx.remove(task)?;
                self.fail(job)?;
                Ok(self.failed(job, result.reason(), None))
            }
        }
    }

    fn handled(&mut self, number: usize, task: &Task, result: &CallResult) -> Result<Settled> {
        let job = self.notification.jobs.get_mut(number);
        if let (CallResult::Done(result), Some(job)) = (result, job) {
            job.result.clone_from(result);
        }
        self.complete(number, Detail::HandlerCompleted, None);
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
