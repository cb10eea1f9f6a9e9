//! Settlement of calls of the host that succeed after another worker has given up the task: the job has failed, and
//! its message may be a dead letter.

use domain::dead_letter::MarkPlace;
use domain::job::{JobSend, JobStatus, SendStatus};
use domain::notification::Notification;
use domain::task::{SendWork, Task, Work};

use super::{Settled, change_jobs};
use crate::Result;
use crate::pipeline::delivery::lease::Leased;
use crate::pipeline::delivery::task_result::{JobResult, TaskResult};
use crate::resources::notifications;
use crate::tx::Tx;

/// Completes the job if it has failed. Jobs behind it that were stopped stay as they are.
pub(super) fn settle(tx: &mut Tx<'_>, leased: &Leased, done: &TaskResult) -> Result<Settled> {
    let TaskResult::Job(result) = done else { return Ok(Settled::Superseded) };
    let found = notifications::of_work(tx, &leased.task.work)?;
    let Some(before) = found else { return Ok(Settled::Superseded) };
    let Some(place) = failed_place(&before, &leased.task) else { return Ok(Settled::Superseded) };
    change_jobs(tx, &before, |notification_tx| match result {
        JobResult::ProviderCalled(delivery, Ok(receipt)) => {
            notification_tx.notification.take_mark(place);
            notification_tx.sent(place.job, delivery, receipt)
        }
        JobResult::HandlerCalled(Ok(result)) => notification_tx.handled(place.job, result.as_ref()),
        JobResult::ProviderCalled(_, Err(_))
        | JobResult::HandlerCalled(Err(_))
        | JobResult::Split(_)
        | JobResult::Refused(_)
        | JobResult::Deferred(_)
        | JobResult::WorkflowPaused
        | JobResult::IntegrationPaused(_) => Ok(Settled::Superseded),
    })
}

// Returns the place of the job of a task, or of its send, if that has failed.
fn failed_place(notification: &Notification, task: &Task) -> Option<MarkPlace> {
    let (Work::Send(SendWork { job_id, .. }) | Work::Call { job_id, .. }) = &task.work else {
        return None;
    };
    let number = notification.jobs.iter().position(|job| job.id == *job_id)?;
    let job = notification.jobs.get(number)?;
    let Some(id) = task.send_id() else {
        let has_failed = job.status == JobStatus::Failed && job.sends.is_empty();
        return has_failed.then_some(MarkPlace { job: number, send: None });
    };
    let is_failed = |send: &JobSend| send.id == id && send.status == SendStatus::Failed;
    let send = job.sends.iter().position(is_failed)?;
    Some(MarkPlace { job: number, send: Some(send) })
}
