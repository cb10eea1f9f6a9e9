//! Settlement of messages: the answers of providers, and messages that wait for an opening.

use domain::job::{Detail, JobStatus, SendStatus};
use domain::message::{Message, MessageStatus};
use domain::suppression::{SuppressedAddress, SuppressionReason};
use domain::task::{AfterFailure, Retry, Task, TaskState, Tries};
use domain::time::Timestamp;
use domain::vocabulary::ProviderId;
use store::WriteRecords;

use super::{NextAttempt, Settled};
use crate::Result;
use crate::pipeline::delivery::DeliveryFailure;
use crate::pipeline::delivery::lease::Leased;
use crate::pipeline::delivery::provider::{Delivery, ProviderReceipt};
use crate::pipeline::delivery::send_result::{SendFailure, SendResult};
use crate::pipeline::live_events::LiveEvents;
use crate::pipeline::notification_tx::NotificationTx;
use crate::resources::suppressions;
use crate::tx::View;

// A message that was not sent.
#[derive(Clone, Copy)]
struct Failed<'a> {
    job: usize,
    task: &'a Task,
    delivery: &'a Delivery,
    failure: &'a SendFailure,
}

impl NotificationTx<'_, '_> {
    // Stores the result of an attempt to send a message.
    pub(super) fn provider_called(
        &mut self,
        job: usize,
        task: &Task,
        delivery: &Delivery,
        result: &SendResult,
    ) -> Result<Settled> {
        let failure = match result {
            Ok(receipt) => {
                self.tx.remove(task)?;
                return self.sent(job, delivery, receipt);
            }
            Err(failure) => failure,
        };
        let policy = (&self.tx.engine().parts.settings.retry, || self.tx.jitter());
        let is_shared = self.tx.engine().store().runs_side_by_side();
        let (retry, tries) = failure.retry(delivery, is_shared);
        let after = task.state.after_failure(delivery.attempts, retry, policy, self.tx.now());
        let Some(after) = after else { return Ok(Settled::Superseded) };
        self.note_choice(job, delivery);
        let failed = Failed { job, task, delivery, failure };
        match after {
            AfterFailure::RetryAt(due_at) => self.send_again(failed, retry, tries, due_at),
            AfterFailure::Failed => self.not_sent(failed),
        }
    }

    /// Stores a message that the provider has taken.
    pub(super) fn sent(
        &mut self,
        job: usize,
        delivery: &Delivery,
        receipt: &ProviderReceipt,
    ) -> Result<Settled> {
        self.note_choice(job, delivery);
        // Reports name the message by this id.
        if let (Some(id), Some(job)) =
            (&receipt.provider_message_id, self.notification.jobs.get_mut(job))
        {
            job.sent_as(delivery.integration.id, id);
        }
        let mut message = delivery.message.clone();
        message.delivered_at.push(self.tx.now());
        if let Some(send) = delivery.send {
            self.store_send(job, send, message)?;
            self.log(job, Detail::MessageSent, receipt.text());
            self.end_send(job, send, SendStatus::Sent)?;
            return Ok(Settled::Sent);
        }
        self.store(job, message)?;
        self.complete(job, Detail::MessageSent, receipt.text());
        self.go_on()?;
        Ok(Settled::Sent)
    }

    // The message is sent again, unless its event was canceled meanwhile.
    fn send_again(
        &mut self,
        failed: Failed<'_>,
        retry: Retry,
        tries: Tries,
        due_at: Timestamp,
    ) -> Result<Settled> {
        let Failed { job, task, delivery, failure } = failed;
        self.log(job, Detail::ProviderRetry, Some(failure.text(delivery)));
        if retry == Retry::Switch {
            let from = delivery.integration.identifier.to_string();
            self.log(job, Detail::IntegrationSwitched, Some(from));
        }
        let work = task.send_work().map(|work| work.after(delivery.message.clone(), tries));
        let next = NextAttempt { due_at, attempts: delivery.attempts, work };
        self.retry_later(job, task, next, self.call_failure(failed))
    }

    fn not_sent(&mut self, failed: Failed<'_>) -> Result<Settled> {
        let Failed { job, task, delivery, failure } = failed;
        let (detail, error_text) = (failure.detail(), failure.text(delivery));
        self.log(job, detail, Some(error_text.clone()));
        let mut message = delivery.message.clone();
        let error_id = detail.to_string();
        message.status = MessageStatus::Error { error_id, error_text: error_text.clone() };
        self.tx.remove(task)?;
        if failure.is_gone() {
            match &delivery.target {
                Some(target) => self.remove_destination(job, delivery, target)?,
                None => self.suppress_address(&message, &error_text)?,
            }
        }
        let stored = self.store_of(job, delivery.send, message)?;
        self.mark_dead_failed(job, delivery, failure, stored);
        self.end_failed(job, delivery.send)?;
        Ok(Settled::of_failure(self.call_failure(failed)))
    }

    // The failure of a call of a provider. Returns `None` if the job is gone.
    fn call_failure(
        &self,
        Failed { job, delivery, failure, .. }: Failed<'_>,
    ) -> Option<DeliveryFailure> {
        let provider_id = Some(delivery.integration.provider_id.clone());
        let failure = self.failure(job, failure.reason())?;
        Some(DeliveryFailure { provider_id, ..failure })
    }

    // Suppresses an address without a recipient. It stays with the subscriber.
    fn suppress_address(&mut self, message: &Message, text: &str) -> Result<()> {
        let address = message.address();
        let address = address.and_then(|text| SuppressedAddress::new(message.channel, text).ok());
        let Some(address) = address else { return Ok(()) };
        let bounced = (SuppressionReason::Bounced, Some(text.to_owned()));
        let subscriber = self.notification.recipient_id();
        suppressions::report(self.tx, address, bounced, subscriber.as_ref()).map(drop)
    }

    pub(super) fn is_canceled(&self, job: usize) -> Result<bool> {
        LiveEvents::bounded(self.tx.now()).is_canceled(self.tx, &self.notification, job)
    }

    // Names the provider of the job.
    fn note_choice(&mut self, job: usize, delivery: &Delivery) {
        let integration = &delivery.integration;
        if let Some(variant) = &delivery.variant {
            self.log(job, Detail::VariantChosen, Some(variant.clone()));
        }
        self.warn(job, &delivery.warnings);
        if let Some(job) = self.notification.jobs.get_mut(job) {
            let known = integration.provider_id.parse();
            job.provider_id = known.unwrap_or(ProviderId::built_in(integration.channel));
        }
        self.log(job, Detail::IntegrationSelected, Some(integration.identifier.to_string()));
    }

    // The message waits for the next opening of the schedule.
    pub(super) fn defer(
        &mut self,
        job: usize,
        leased: &Leased,
        task: &Task,
        due_at: Timestamp,
    ) -> Result<Settled> {
        let attempts = leased.attempt().saturating_sub(1);
        self.log(job, Detail::DeferredToSchedule, Some(due_at.to_string()));
        self.move_job(job, JobStatus::Queued { due_at, attempts });
        self.tx.replace(task, &task.with(TaskState::Waiting { due_at, attempts }))?;
        Ok(Settled::Nothing)
    }
}
