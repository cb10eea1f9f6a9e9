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

/// For longer than this no provider is left alone, whatever it asks for.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

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
            Settled::Superseded => report.superseded += 1,
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
    if !run.awaits(delivery, outcome) {
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
    // Whether the outcome still says something about the job. That it was sent does so until the
    // job is over, whoever has it now; that it was not only as long as nobody else has it.
    fn awaits(&self, delivery: &Delivery, outcome: &Outcome) -> bool {
        let Some(job) = self.notification.job(delivery.job) else { return false };
        match outcome {
            Outcome::Sent(_) => !job.status.has_ended(),
            Outcome::Refused(_) | Outcome::NoProvider => job.status.is_attempt(delivery.attempts),
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
                let asked = after.unwrap_or_default().min(LONGEST_WAIT);
                let due_at = self.now.after(wait.max(asked));
                self.log(delivery.job, Detail::ProviderRetry, Some(excerpt(reason)));
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
        self.store(txn, delivery, &message)?;
        let raw = receipt.provider_message_id.as_deref().map(excerpt);
        self.complete(delivery.job, Detail::MessageSent, raw);
        Ok(Settled::Sent)
    }

    fn refused(
        &mut self,
        txn: &mut dyn Transaction,
        delivery: &Delivery,
        detail: Detail,
        reason: &str,
    ) -> Result<Settled> {
        let (error_id, error_text) = (detail.to_string(), excerpt(reason));
        self.log(delivery.job, detail, Some(error_text.clone()));
        let status = MessageStatus::Error { error_id, error_text };
        self.store(txn, delivery, &Message { status, ..delivery.message.clone() })?;
        self.fail(delivery.job);
        Ok(Settled::Failed)
    }

    // A subscriber that was deleted while the provider worked has no messages any more.
    fn store(
        &mut self,
        txn: &mut dyn Transaction,
        delivery: &Delivery,
        message: &Message,
    ) -> Result<()> {
        if self.gathered.subscriber.is_some() {
            txn.insert(message)?;
            self.name_message(delivery.job, message.id);
        }
        Ok(())
    }
}

// As much as is worth keeping of what a provider says.
fn excerpt(text: &str) -> String {
    text.chars().take(1_000).collect()
}

impl Engine {
    // How long to wait after so many tries; nothing, if it was the last one.
    fn wait_after(&self, attempts: u32) -> Option<Duration> {
        self.parts.retry.next(attempts, self.parts.ids.jitter())
    }
}
