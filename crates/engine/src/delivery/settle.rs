//! Settling: writing down what came of an attempt, and moving on.

use std::time::Duration;

use domain::environment::Home;
use domain::job::{Detail, JobStatus};
use domain::message::{Message, MessageStatus};
use domain::notification::Notification;
use domain::time::Timestamp;
use store::{ReadRecords, Transaction, WriteRecords, layout};

use super::advance::Run;
use super::provider::{Delivery, Outcome, ProviderReceipt, SendError};
use super::{DeliveryReport, Gathered};
use crate::{Engine, Result, Scope};

/// Writes down the outcomes of deliveries, but for jobs that somebody else has taken over since.
pub(super) fn settle(
    engine: &Engine,
    outcomes: &[(Delivery, Outcome)],
    report: &mut DeliveryReport,
) -> Result<()> {
    if outcomes.is_empty() {
        return Ok(());
    }
    let now = engine.now();
    let settled = engine.write(|txn| {
        let settled = outcomes
            .iter()
            .map(|(delivery, outcome)| settle_one(engine, txn, delivery, outcome, now));
        settled.collect::<Result<Vec<_>>>()
    })?;
    for settled in settled {
        match settled {
            Settled::Sent => report.sent += 1,
            Settled::Retried => report.retried += 1,
            Settled::Failed => report.failed += 1,
            Settled::Superseded => {}
        }
    }
    Ok(())
}

fn settle_one(
    engine: &Engine,
    txn: &mut dyn Transaction,
    delivery: &Delivery,
    outcome: &Outcome,
    now: Timestamp,
) -> Result<Settled> {
    let scope = Scope { engine: engine.clone(), home: Home::from(&delivery.notification) };
    let key = layout::notification(scope.environment_id(), delivery.notification.id);
    let Some(before) = txn.find::<Notification>(&key)? else { return Ok(Settled::Superseded) };
    let gathered = Gathered::now(&scope, &*txn, &before)?;
    let mut run = Run { scope: &scope, now, notification: before.clone(), gathered };
    if !run.is_ours(delivery) {
        return Ok(Settled::Superseded);
    }
    let settled = run.settle(txn, delivery, outcome)?;
    run.advance(txn)?;
    txn.replace(&before, &run.notification)?;
    Ok(settled)
}

// What became of a job.
enum Settled {
    Sent,
    Retried,
    Failed,
    Superseded,
}

impl Run<'_> {
    fn is_ours(&self, delivery: &Delivery) -> bool {
        match self.notification.job(delivery.job).map(|job| job.status) {
            Some(JobStatus::Running { attempts, .. }) => attempts == delivery.attempts,
            Some(
                JobStatus::Pending
                | JobStatus::Queued { .. }
                | JobStatus::Completed
                | JobStatus::Failed
                | JobStatus::Canceled
                | JobStatus::Skipped,
            )
            | None => false,
        }
    }

    fn settle(
        &mut self,
        txn: &mut dyn Transaction,
        delivery: &Delivery,
        outcome: &Outcome,
    ) -> Result<Settled> {
        match outcome {
            Outcome::Sent(receipt) => self.sent(txn, delivery, receipt),
            Outcome::Refused(SendError::Retryable { after, reason }) => {
                let wait = self.scope.engine.wait_after(delivery.attempts);
                let Some(wait) = wait else {
                    return self.refused(txn, delivery, Detail::ProviderError, reason);
                };
                let due_at = self.now.after(wait.max(after.unwrap_or_default()));
                self.log(delivery.job, Detail::ProviderRetry, Some(reason.clone()));
                let attempts = delivery.attempts;
                self.move_job(delivery.job, JobStatus::Queued { due_at, attempts });
                Ok(Settled::Retried)
            }
            Outcome::Refused(
                error @ (SendError::Permanent { .. }
                | SendError::RecipientGone { .. }
                | SendError::Misconfigured { .. }),
            ) => self.refused(txn, delivery, Detail::ProviderError, &error.to_string()),
            Outcome::NoProvider => {
                let provider = &delivery.integration.provider_id;
                let reason = format!("no provider is registered for `{provider}`");
                self.refused(txn, delivery, Detail::ProviderMissing, &reason)
            }
        }
    }

    fn sent(
        &mut self,
        txn: &mut dyn Transaction,
        delivery: &Delivery,
        receipt: &ProviderReceipt,
    ) -> Result<Settled> {
        let mut message = delivery.message.clone();
        message.delivered_at.push(self.now);
        self.store(txn, &message)?;
        let raw = receipt.provider_message_id.clone();
        self.complete(delivery.job, message.id, Detail::MessageSent, raw);
        Ok(Settled::Sent)
    }

    fn refused(
        &mut self,
        txn: &mut dyn Transaction,
        delivery: &Delivery,
        detail: Detail,
        reason: &str,
    ) -> Result<Settled> {
        let status =
            MessageStatus::Error { error_id: detail.to_string(), error_text: reason.into() };
        let message = Message { status, ..delivery.message.clone() };
        self.store(txn, &message)?;
        self.log(delivery.job, detail, Some(reason.into()));
        if let Some(job) = self.notification.job_mut(delivery.job) {
            job.message_id = Some(message.id);
        }
        self.fail(delivery.job);
        Ok(Settled::Failed)
    }

    // A subscriber that was deleted while the provider worked has no messages any more.
    fn store(&self, txn: &mut dyn Transaction, message: &Message) -> Result<()> {
        match &self.gathered.subscriber {
            Some(_) => Ok(txn.insert(message)?),
            None => Ok(()),
        }
    }
}

impl Engine {
    // How long to wait after so many tries; nothing, if it was the last one.
    fn wait_after(&self, attempts: u32) -> Option<Duration> {
        self.parts.retry.next(attempts, self.parts.ids.jitter())
    }
}
