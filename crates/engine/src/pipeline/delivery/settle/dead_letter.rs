//! Settlement of messages that have failed for good: they become dead letters.

use domain::dead_letter::{DeadLetterMark, DeadLetterReason};
use domain::ids::{IntegrationId, MessageId, SendId};
use domain::job::{Detail, SendTarget};
use domain::message::{Message, MessageStatus};
use domain::task::Task;
use store::Table;

use crate::Result;
use crate::pipeline::delivery::provider::Delivery;
use crate::pipeline::delivery::send_result::SendFailure;
use crate::pipeline::notification_tx::NotificationTx;

/// End of a message for a provider.
#[derive(Debug)]
pub(super) struct DeadLetterCause {
    reason: DeadLetterReason,
    text: Option<String>,
    integration_id: Option<IntegrationId>,
    message_id: Option<MessageId>,
    called: Option<SendTarget>,
}

impl DeadLetterCause {
    /// Returns the end of a message whose last attempt has failed.
    pub(super) fn failed(
        delivery: &Delivery,
        failure: &SendFailure,
        message_id: Option<MessageId>,
    ) -> Self {
        let (reason, text) = (failure.dead_letter_reason(), Some(failure.text(delivery)));
        let called = delivery.tries.called().cloned();
        let integration_id = Some(delivery.integration.id);
        Self { reason, text, integration_id, message_id, called }
    }
}

impl NotificationTx<'_, '_> {
    /// Marks a job, or its send, whose message has failed for good.
    pub(super) fn mark_dead(&mut self, job: usize, send: Option<SendId>, cause: DeadLetterCause) {
        let mut mark = DeadLetterMark::new(self.tx.id(), cause.reason, self.tx.now());
        mark.text = cause.text;
        mark.integration_id = cause.integration_id;
        mark.message_id = cause.message_id;
        mark.called = cause.called;
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

    /// The same for a task that ends with `detail` and without an answer. The content of its earlier
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
        let integration_id = work.target.as_ref().map(|target| target.integration_id);
        let called = work.tries.called().cloned();
        self.mark_dead(
            job,
            send,
            DeadLetterCause { reason, text, integration_id, message_id, called },
        );
        Ok(())
    }

    /// Ends a job, or one of its sends, whose task is missing. Whether the message was sent is not known.
    pub(crate) fn end_lost(&mut self, job: usize, send: Option<SendId>) -> Result<()> {
        self.log(job, Detail::RecordUnreadable, Some(Table::Tasks.name().to_owned()));
        let (reason, text) = (DeadLetterReason::AnswerLost, None);
        let cause =
            DeadLetterCause { reason, text, integration_id: None, message_id: None, called: None };
        self.mark_dead(job, send, cause);
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
