//! Dead letters that are sent again.

use domain::dead_letter::{MarkPlace, RedriveRefusal};
use domain::job::{Detail, JobStatus, SendStatus};
use domain::message::Message;
use domain::task::{SendWork, Task, Tries, Work};
use store::WriteRecords;

use super::notification_tx::NotificationTx;
use crate::Result;

impl NotificationTx<'_, '_> {
    /// Sends the message of a dead letter again, which is `message` if it is there. It has the content and the
    /// idempotency key of the earlier attempts. These do not count. Jobs behind it that have ended stay as they
    /// are.
    pub(crate) fn redrive(
        &mut self,
        place: MarkPlace,
        message: Option<Message>,
    ) -> Result<Result<(), RedriveRefusal>> {
        let (now, notification_id) = (self.tx.now(), self.notification.id);
        let mut redriven = self.notification.clone();
        let Some(mark) = redriven.take_mark(place) else { return Ok(Ok(())) };
        if mark.message_id.is_some() && message.is_none() {
            return Ok(Err(RedriveRefusal::MessageGone));
        }
        let message = message.map(|message| Box::new(message.redriven()));
        let Some(job) = redriven.jobs.get_mut(place.job) else { return Ok(Ok(())) };
        let job_id = job.id;
        let send = place.send.and_then(|number| job.sends.get_mut(number));
        let (id, target) = match send {
            Some(send) => {
                send.status = SendStatus::Queued;
                (send.id, Some(send.target.clone()))
            }
            None => (job_id.into(), None),
        };
        self.notification = redriven;
        self.log(place.job, Detail::StepRedriven, None);
        self.move_job(place.job, JobStatus::Queued { due_at: now, attempts: 0 });
        let tries = Tries::default().with_called(mark.called);
        let work = SendWork { notification_id, job_id, message, tries, target };
        let task = Task::of(&self.notification, id.into(), now, Work::Send(work));
        self.tx.insert(&task.restarted(now))?;
        Ok(Ok(()))
    }
}
