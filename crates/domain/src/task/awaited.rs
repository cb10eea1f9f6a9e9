//! Tasks that records wait for.

use super::{Task, Work};
use crate::ids::{NotificationId, TaskId, TransactionId};
use crate::job::{Job, JobStatus};
use crate::message::Message;
use crate::notification::Notification;
use crate::trigger::FanOut;

/// A task that a record waits for. If there is no such task, the record waits for ever.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Awaited {
    /// The task with this id.
    Task(TaskId),
    /// A turn of this notification.
    Turn(NotificationId),
    /// A task that tells recipients of this event.
    FanOut(TransactionId),
}

impl Awaited {
    /// Returns what a task is to those who wait for it.
    pub fn of(task: &Task) -> impl Iterator<Item = Self> {
        let by_work = match &task.work {
            Work::Turn { notification_id } => Some(Self::Turn(*notification_id)),
            Work::FanOut { transaction_id } => Some(Self::FanOut(transaction_id.clone())),
            Work::Send(_)
            | Work::Close { .. }
            | Work::Call { .. }
            | Work::Sweep { .. }
            | Work::Wake { .. }
            | Work::Cancel { .. }
            | Work::Release { .. } => None,
        };
        [Self::Task(task.id)].into_iter().chain(by_work)
    }
}

impl Notification {
    /// Returns the tasks that the jobs wait for, each with the number of the job.
    #[doc(hidden)]
    pub fn awaited(&self) -> Vec<(usize, Awaited)> {
        let mut awaited = Vec::new();
        let mut is_behind_another = false;
        for (number, job) in self.jobs.iter().enumerate() {
            match job.status {
                JobStatus::Queued { .. } | JobStatus::Running { .. } => {
                    awaited.extend(job.attempts().map(|task| (number, task)));
                }
                JobStatus::Delayed { .. } => awaited.push((number, self.end_of_delay(job))),
                // The end of the job before it leads to a turn.
                JobStatus::Pending if is_behind_another => {}
                JobStatus::Pending => awaited.push((number, Awaited::Turn(self.id))),
                JobStatus::Completed
                | JobStatus::Failed
                | JobStatus::Canceled
                | JobStatus::Skipped
                | JobStatus::Merged => {}
            }
            is_behind_another |= !job.status.has_ended();
        }
        awaited
    }

    // The task of a window has the id of the window.
    fn end_of_delay(&self, job: &Job) -> Awaited {
        let window = job.digest.as_ref().and_then(|digest| digest.window_id);
        window.map_or(Awaited::Turn(self.id), |window| Awaited::Task(window.into()))
    }
}

impl Job {
    // The tasks of the message of a job, or of its call.
    fn attempts(&self) -> impl Iterator<Item = Awaited> {
        let own = self.waiting_sends().next().is_none().then_some(self.id.into());
        own.into_iter()
            .chain(self.waiting_sends().map(|send| send.id))
            .map(|id| Awaited::Task(id.into()))
    }
}

impl Message {
    /// Returns the task that ends the snooze of the message. Returns `None` if it is not snoozed.
    #[doc(hidden)]
    pub fn awaited(&self) -> Option<Awaited> {
        self.snoozed_until.map(|_| Awaited::Task(TaskId::of_wake(self.id)))
    }
}

impl FanOut {
    /// Returns the task that tells the next recipients.
    #[doc(hidden)]
    pub fn awaited(&self) -> Awaited {
        Awaited::FanOut(self.transaction_id.clone())
    }
}
