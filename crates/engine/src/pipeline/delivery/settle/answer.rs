//! Settlement of messages: the answers of providers, and messages that wait for an opening.

use domain::job::{Detail, JobStatus, SendStatus};
use domain::message::MessageStatus;
use domain::plan;
use domain::task::{Outcome, Settlement, Task, TaskState, Tries};
use domain::time::Timestamp;
use domain::vocabulary::ProviderId;
use store::WriteRecords;

use super::Settled;
use super::dead_letter::DeadLetterCause;
use crate::Result;
use crate::pipeline::apply::Course;
use crate::pipeline::delivery::claim::Leased;
use crate::pipeline::delivery::provider::{Delivery, SendResult};
use crate::pipeline::delivery::{DeliveryFailure, FailureReason};
use crate::pipeline::left::LiveEvents;
use crate::tx::View;

// A message, and what its provider has said.
#[derive(Clone, Copy)]
struct Answer<'a> {
    job: usize,
    task: &'a Task,
    delivery: &'a Delivery,
    result: &'a SendResult,
}

impl Course<'_, '_> {
    // Stores the answer of a provider.
    pub(super) fn answer(
        &mut self,
        job: usize,
        task: &Task,
        delivery: &Delivery,
        result: &SendResult,
    ) -> Result<Settled> {
        let now = self.tx.now();
        let retry = (&self.tx.engine().parts.retry, || self.tx.jitter());
        let (outcome, tries) = result.outcome(delivery);
        let settlement = task.state.settle(delivery.attempts, outcome, retry, now);
        let Some(settlement) = settlement else { return Ok(Settled::Superseded) };
        self.note_choice(job, delivery);
        let answer = Answer { job, task, delivery, result };
        match settlement {
            Settlement::Done => self.sent(answer),
            Settlement::Retry { due_at, attempts } => {
                self.send_again(answer, (outcome, tries), (due_at, attempts))
            }
            Settlement::Failed => self.not_sent(answer),
        }
    }

    fn sent(&mut self, answer: Answer<'_>) -> Result<Settled> {
        let Answer { job, task, delivery, result } = answer;
        let said = result.said(delivery);
        self.note_id(job, delivery, result);
        let mut message = delivery.message.clone();
        message.delivered_at.push(self.tx.now());
        self.tx.remove(task)?;
        if let Some(send) = delivery.send {
            self.store_send(job, send, message)?;
            self.log(job, Detail::MessageSent, said);
            self.end_send(job, send, SendStatus::Sent)?;
            return Ok(Settled::Sent);
        }
        self.store(job, message)?;
        self.complete(job, Detail::MessageSent, said);
        self.go_on()?;
        Ok(Settled::Sent)
    }

    // The message is sent again, unless its event was canceled meanwhile.
    fn send_again(
        &mut self,
        answer: Answer<'_>,
        (outcome, tries): (Outcome, Tries),
        (due_at, attempts): (Timestamp, u32),
    ) -> Result<Settled> {
        let Answer { job, task, delivery, result } = answer;
        self.log(job, Detail::ProviderRetry, result.said(delivery));
        if outcome == Outcome::Switch {
            let from = delivery.integration.identifier.to_string();
            self.log(job, Detail::IntegrationSwitched, Some(from));
        }
        self.move_job(job, JobStatus::Queued { due_at, attempts });
        if let Err(refusal) = plan::again(self.is_canceled(job)?) {
            self.tx.remove(task)?;
            return match delivery.send {
                Some(send) => self.send_refused(job, task, send, &refusal),
                None => self.refused(job, task, &refusal),
            };
        }
        let kept = Some(Box::new(delivery.message.clone()));
        let after = task.with(TaskState::Waiting { due_at, attempts });
        self.tx.replace(task, &after.with_message(kept).with_tries(tries))?;
        Ok(self.failed_attempt(job, delivery, result, Some(due_at)))
    }

    fn not_sent(&mut self, answer: Answer<'_>) -> Result<Settled> {
        let Answer { job, task, delivery, result } = answer;
        let said = result.said(delivery);
        let error_id = result.failure().to_string();
        let error_text = said.clone().unwrap_or_default();
        let mut message = delivery.message.clone();
        message.status = MessageStatus::Error { error_id, error_text };
        self.log(job, result.failure(), said);
        self.tx.remove(task)?;
        if result.is_gone() {
            self.forget(job, delivery)?;
        }
        let stored = self.store_of(job, delivery.send, message)?;
        if let Some(cause) = DeadLetterCause::answered(delivery, result, stored) {
            self.mark_dead(job, delivery.send, cause);
        }
        self.end_failed(job, delivery.send)?;
        Ok(self.failed_attempt(job, delivery, result, None))
    }

    pub(super) fn is_canceled(&self, job: usize) -> Result<bool> {
        LiveEvents::bounded(self.tx.now()).is_canceled(self.tx, &self.notification, job)
    }

    // Keeps the id of the message at its provider, by which reports name it.
    fn note_id(&mut self, job: usize, delivery: &Delivery, result: &SendResult) {
        if let (SendResult::Sent(receipt), Some(job)) =
            (result, self.notification.jobs.get_mut(job))
            && let Some(id) = &receipt.provider_message_id
        {
            job.sent_as(delivery.integration.id, id);
        }
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
        self.note_repeat(job, leased);
        self.log(job, Detail::DeferredToSchedule, Some(due_at.to_string()));
        self.move_job(job, JobStatus::Queued { due_at, attempts });
        self.tx.replace(task, &task.with(TaskState::Waiting { due_at, attempts }))?;
        Ok(Settled::Nothing)
    }

    fn failed_attempt(
        &self,
        job: usize,
        delivery: &Delivery,
        result: &SendResult,
        retry_at: Option<Timestamp>,
    ) -> Settled {
        let reason = match result {
            SendResult::Sent(_) => return Settled::Sent,
            SendResult::Refused(error) => FailureReason::Refused(error.clone()),
            SendResult::NoProvider => FailureReason::NoProvider,
        };
        let provider_id = Some(delivery.integration.provider_id.clone());
        match self.failure(job, reason) {
            Some(failure) => Settled::Failed(DeliveryFailure { provider_id, retry_at, ..failure }),
            None => Settled::Nothing,
        }
    }
}
