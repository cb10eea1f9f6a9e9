//! Settlement: the result of an attempt is stored, and the next job starts.

use domain::environment::Home;
use domain::ids::JobId;
use domain::job::{Detail, JobStatus, SendOutcome};
use domain::message::{Message, MessageStatus};
use domain::time::Timestamp;
use store::WriteRecords;

use super::advance::StepRun;
use super::provider::{Delivery, SendError, SendResult};
use super::{DeliveryFailure, DeliveryReport, FailureReason, RunFacts, workflow_of};
use crate::resources::notifications;
use crate::tx::{Tx, View};
use crate::{Engine, Result};

/// Stores the results of deliveries. Results of superseded jobs are dropped.
pub(super) fn settle(
    engine: &Engine,
    results: &[(Delivery, SendResult)],
    report: &mut DeliveryReport,
) -> Result<()> {
    if results.is_empty() {
        return Ok(());
    }
    let settled = engine.write(engine.now(), |draft| {
        let settled = results.iter().map(|(delivery, result)| {
            let home = Home::from(&delivery.notification);
            settle_one(&mut draft.within(&home), delivery, result)
        });
        settled.collect::<Result<Vec<_>>>()
    })?;
    for settled in settled {
        match settled {
            Settled::Sent => report.sent += 1,
            Settled::Failed(failure) => report.add(failure),
            Settled::Superseded => report.superseded += 1,
        }
    }
    Ok(())
}

fn settle_one(tx: &mut Tx<'_>, delivery: &Delivery, result: &SendResult) -> Result<Settled> {
    let Some(before) = notifications::find(tx, delivery.notification.id)? else {
        return Ok(Settled::Superseded);
    };
    let (job, now) = (before.job(delivery.job), tx.now());
    let retry = (&tx.engine().parts.retry, || tx.jitter());
    let status =
        job.and_then(|job| job.status.after(delivery.attempts, result.outcome(), retry, now));
    let Some(status) = status else { return Ok(Settled::Superseded) };
    let workflow = workflow_of(tx, &before)?;
    let facts = RunFacts::now(tx, &before, workflow.as_deref())?;
    let mut run = StepRun { tx, notification: before.clone(), facts };
    let settled = run.settle(delivery, result, status)?;
    run.advance()?;
    let after = run.notification;
    tx.replace(&before, &after)?;
    Ok(settled)
}

// Settlement of a job.
enum Settled {
    Sent,
    // Failure for good, or until the next attempt.
    Failed(DeliveryFailure),
    Superseded,
}

impl StepRun<'_, '_> {
    // Stores `status` as the status of the job after `result`.
    fn settle(
        &mut self,
        delivery: &Delivery,
        result: &SendResult,
        status: JobStatus,
    ) -> Result<Settled> {
        let said = result.said(delivery);
        match status {
            JobStatus::Completed => {
                let mut message = delivery.message.clone();
                message.delivered_at.push(self.tx.now());
                self.store_sent(delivery.job, message)?;
                self.complete(delivery.job, Detail::MessageSent, said);
                Ok(Settled::Sent)
            }
            JobStatus::Queued { due_at, .. } => {
                self.log(delivery.job, Detail::ProviderRetry, said);
                self.move_job(delivery.job, status);
                Ok(result.settled(delivery, Some(due_at)))
            }
            JobStatus::Failed => {
                let error_id = result.failure().to_string();
                let error_text = said.clone().unwrap_or_default();
                let status = MessageStatus::Error { error_id, error_text };
                let mut message = delivery.message.clone();
                message.status = status;
                self.store_sent(delivery.job, message)?;
                self.log(delivery.job, result.failure(), said);
                self.fail(delivery.job);
                Ok(result.settled(delivery, None))
            }
            // No outcome leads to these statuses.
            JobStatus::Pending
            | JobStatus::Running { .. }
            | JobStatus::Canceled
            | JobStatus::Skipped => Ok(Settled::Superseded),
        }
    }

    // A subscriber that was deleted while the provider worked has no messages any more.
    fn store_sent(&mut self, job: JobId, message: Message) -> Result<()> {
        if self.facts.subscriber.is_some() { self.store(job, message) } else { Ok(()) }
    }
}

impl SendResult {
    fn outcome(&self) -> SendOutcome {
        match self {
            SendResult::Sent(_) => SendOutcome::Sent,
            SendResult::Refused(SendError::Retryable { after, .. }) => {
                SendOutcome::Later(after.unwrap_or_default())
            }
            SendResult::Refused(
                SendError::Permanent { .. }
                | SendError::RecipientGone { .. }
                | SendError::Misconfigured { .. },
            )
            | SendResult::NoProvider => SendOutcome::Never,
        }
    }

    // Returns the settlement of the job. A job that was not done is tried again at `retry_at`.
    fn settled(&self, delivery: &Delivery, retry_at: Option<Timestamp>) -> Settled {
        let reason = match self {
            SendResult::Sent(_) => return Settled::Sent,
            SendResult::Refused(error) => FailureReason::Refused(error.clone()),
            SendResult::NoProvider => FailureReason::NoProvider,
        };
        let job = (delivery.job, delivery.integration.channel.into());
        let provider_id = Some(delivery.integration.provider_id.clone());
        let failure = DeliveryFailure::unsent(&delivery.notification, job, reason);
        Settled::Failed(DeliveryFailure { provider_id, retry_at, ..failure })
    }

    // Detail in the log of a job that fails.
    fn failure(&self) -> Detail {
        match self {
            SendResult::Sent(_) | SendResult::Refused(_) => Detail::ProviderError,
            SendResult::NoProvider => Detail::ProviderMissing,
        }
    }

    // Text of the provider, shortened for the log.
    fn said(&self, delivery: &Delivery) -> Option<String> {
        let said = match self {
            SendResult::Sent(receipt) => receipt.provider_message_id.clone()?,
            SendResult::Refused(SendError::Retryable { reason, .. }) => reason.clone(),
            SendResult::Refused(error) => error.to_string(),
            SendResult::NoProvider => {
                let provider = &delivery.integration.provider_id;
                format!("no provider is registered for `{provider}`")
            }
        };
        Some(said.chars().take(1_000).collect())
    }
}
