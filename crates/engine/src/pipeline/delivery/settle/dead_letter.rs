//! Settlement of messages that have failed for good: they become dead letters.

use domain::dead_letter::{DeadLetterMark, DeadLetterReason};
use domain::ids::{MessageId, SendId};
use domain::job::Detail;
use domain::message::{Message, MessageStatus};
use domain::task::Task;
use store::Table;

use crate::Result;
use crate::pipeline::delivery::provider::Delivery;
use crate::pipeline::delivery::send_result::SendFailure;
use crate::pipeline::notification_tx::NotificationTx;

impl NotificationTx<'_, '_> {
    /// Marks a job, or its send, whose last attempt has failed.
    pub(super) fn mark_dead_failed(
        &mut self,
        job: usize,
        delivery: &Delivery,
        failure: &SendFailure,
        message_id: Option<MessageId>,
    ) {
        let mut mark = self.new_mark(failure.dead_letter_reason());
        mark.text = Some(failure.text(delivery));
        mark.integration_id = Some(delivery.integration.id);
        mark.message_id = message_id;
        mark.called = delivery.tries.called().cloned();
        self.mark_dead(job, delivery.send, mark);
    }

    fn new_mark(&self, reason: DeadLetterReason) -> DeadLetterMark {
        DeadLetterMark::new(self.tx.id(), reason, self.tx.now())
    }

    // Marks a job, or its send, whose message has failed for good.
    fn mark_dead(&mut self, job: usize, send: Option<SendId>, mark: DeadLetterMark) {
        let Some(job) = self.notification.jobs.get_mut(job) else { return };
        match send {
            None => job.dead_letter = Some(mark),
            Some(id) => {
                if let Some(send) = job.sends.iter_mut().find(|send| send.id == id) {
                    send.dead_letter = Some(mark);
                }
            }
        }
    }

    /// Marks a job, or its send, whose task ends with `detail` and without an answer. The content of its earlier
    /// attempts is stored, so that it can be sent again.
    pub(super) fn mark_dead_unsent(
        &mut self,
        job: usize,
        task: &Task,
        detail: Detail,
        text: Option<String>,
    ) -> Result<()> {
        let Some((work, reason)) = task.send_work().zip(DeadLetterReason::of(detail)) else {
            return Ok(());
        };
        let send = task.send_id();
        let message_id = match &work.message {
            Some(kept) => {
                let (error_id, error_text) = (detail.to_string(), text.clone().unwrap_or_default());
                let mut message = Message::clone(kept);
                message.status = MessageStatus::Error { error_id, error_text };
                self.store_of(job, send, message)?
            }
            None => None,
        };
        let mut mark = self.new_mark(reason);
        mark.text = text;
        mark.integration_id = work.target.as_ref().map(|target| target.integration_id);
        mark.message_id = message_id;
        mark.called = work.tries.called().cloned();
        self.mark_dead(job, send, mark);
        Ok(())
    }

    /// Ends a job, or one of its sends, whose task is missing. Whether the message was sent is not known.
    pub(crate) fn end_lost(&mut self, job: usize, send: Option<SendId>) -> Result<()> {
        self.log(job, Detail::RecordUnreadable, Some(Table::Tasks.name().to_owned()));
        let mark = self.new_mark(DeadLetterReason::AnswerLost);
        self.mark_dead(job, send, mark);
        self.end_failed(job, send)
    }

    /// Stores the message of a job, or of one of its sends. Returns its id.
    pub(super) fn store_of(
        &mut self,
        job: usize,
        send: Option<SendId>,
        message: Message,
    ) -> Result<Option<MessageId>> {
        match send {
            Some(send) => self.store_send(job, send, message),
            None => self.store(job, message),
        }
    }
}
