//! Claims of due jobs. A job has one claim at a time.

use domain::environment::Home;
use domain::ids::JobId;
use domain::job::{Claim, Detail, JobStatus};
use domain::notification::Notification;
use domain::step_run::{self, Dispatch, Refusal, RefusalKind};
use domain::time::Timestamp;
use domain::vocabulary::{JobType, ProviderId};
use store::{Order, ReadRecords, Snapshot, WriteRecords, layout};

use super::advance::StepRun;
use super::{Delivery, DeliveryFailure, FailureReason, RunFacts, workflow_of};
use crate::tx::{Tx, View};
use crate::{Engine, Error, Result};

/// Result of a claim.
#[derive(Debug, Default)]
pub(super) struct Claimed {
    /// The messages to be sent.
    pub(super) deliveries: Vec<Delivery>,
    /// Number of due jobs.
    pub(super) looked_at: usize,
    /// Number of skipped jobs.
    pub(super) skipped: usize,
    /// Those that could not be done.
    pub(super) failures: Vec<DeliveryFailure>,
    /// The notification of the first due job, before the claim.
    pub(super) first: Option<Notification>,
}

/// Takes at most `limit` of the jobs that are due. A job whose last attempt has no outcome is sent
/// alone: it may end the process, and the attempts of others would count.
pub(super) fn claim(engine: &Engine, limit: usize) -> Result<Claimed> {
    engine.write(engine.now(), |draft| {
        let mut claimed = Claimed::default();
        for notification in due(draft.writer, draft.now, limit)? {
            let is_repeat = is_repeat(&notification, draft.now);
            if is_repeat && !claimed.deliveries.is_empty() {
                break;
            }
            claimed.looked_at += 1;
            claimed.first.get_or_insert_with(|| notification.clone());
            let home = Home::from(&notification);
            claim_one(&mut draft.within(&home), &notification, &mut claimed)?;
            if is_repeat && !claimed.deliveries.is_empty() {
                break;
            }
        }
        Ok(claimed)
    })
}

fn is_repeat(notification: &Notification, now: Timestamp) -> bool {
    notification.due_job(now).is_some_and(|job| job.status.is_running())
}

/// Returns the time at which the next job is due. Returns `None` if no job waits.
pub(super) fn next_due(engine: &Engine) -> Result<Option<Timestamp>> {
    let soonest = engine.read(|snapshot| due(snapshot, Timestamp::MAX, 1))?;
    Ok(soonest.first().and_then(Notification::due_at))
}

fn due(snapshot: &dyn Snapshot, now: Timestamp, limit: usize) -> Result<Vec<Notification>> {
    Ok(snapshot.first(&layout::due_until(now), Order::Ascending, limit)?)
}

/// The error of a job that is still due after its claim.
pub(super) fn not_claimed() -> Error {
    corrupt("a claimed job is still due")
}

fn corrupt(what: &'static str) -> Error {
    let table = layout::due_until(Timestamp::MAX).table().name();
    store::Error::Corrupt { table, source: what.into() }.into()
}

fn claim_one(tx: &mut Tx<'_>, before: &Notification, claimed: &mut Claimed) -> Result<()> {
    let (policy, now) = (&tx.engine().parts.retry, tx.now());
    let due = before.due_job(now);
    let due = due.and_then(|job| Some((job.id, job.kind, job.status.claim(policy, now)?)));
    let Some((job, kind, claim)) = due else {
        // A skipped entry would be found again by every claim.
        return Err(corrupt("an entry leads to nothing that is due"));
    };
    let workflow = workflow_of(tx, before)?;
    let facts = RunFacts::now(tx, before, workflow.as_deref())?;
    let mut run = StepRun { tx, notification: before.clone(), facts };
    match claim {
        Claim::Attempt(attempt) => run.attempt((job, kind), attempt, claimed)?,
        Claim::Repeat(attempt) => {
            run.log(job, Detail::LeaseExpired, None);
            run.attempt((job, kind), attempt, claimed)?;
        }
        Claim::GiveUp => {
            let reason = FailureReason::Unanswered;
            claimed.failures.push(DeliveryFailure::unsent(before, (job, kind), reason));
            run.log(job, Detail::LeaseExpired, None);
            run.fail(job);
            run.advance()?;
        }
    }
    let after = run.notification;
    Ok(tx.replace(before, &after)?)
}

impl StepRun<'_, '_> {
    fn attempt(
        &mut self,
        (job, kind): (JobId, JobType),
        attempt: u32,
        claimed: &mut Claimed,
    ) -> Result<()> {
        let refusal = match self.start(job, attempt) {
            Ok(delivery) => {
                claimed.deliveries.push(delivery);
                return Ok(());
            }
            Err(refusal) => refusal,
        };
        match refusal.kind {
            RefusalKind::Skip => claimed.skipped += 1,
            RefusalKind::Fail => {
                let (detail, text) = (refusal.detail, refusal.raw.clone());
                let reason = FailureReason::Unsendable { detail, text };
                let failure = DeliveryFailure::unsent(&self.notification, (job, kind), reason);
                claimed.failures.push(failure);
            }
        }
        self.refuse(job, refusal);
        self.advance()
    }

    fn start(&mut self, job: JobId, attempts: u32) -> Result<Delivery, Refusal> {
        let facts = self.facts.step_facts();
        let found = self.notification.job(job).ok_or(Refusal::workflow_deleted())?;
        let Dispatch { integration, address, rendered } =
            step_run::dispatch(found, &self.notification, facts)?;
        let subscriber = facts.subscriber.cloned().ok_or(Refusal::workflow_deleted())?;
        let channel = integration.channel;
        let message = self.message(job, channel, rendered).ok_or(Refusal::workflow_deleted())?;
        let message = message.addressed(&integration.provider_id, &address);
        let lease_until = self.tx.now().after(self.tx.engine().parts.lease);
        if let Some(job) = self.notification.job_mut(job) {
            let known = integration.provider_id.parse();
            job.provider_id = known.unwrap_or(ProviderId::built_in(channel));
        }
        self.log(job, Detail::IntegrationSelected, Some(integration.identifier.to_string()));
        self.move_job(job, JobStatus::Running { lease_until, attempts });
        Ok(Delivery {
            message,
            integration,
            address,
            subscriber,
            notification: self.notification.clone(),
            job,
            attempts,
            lease_until,
        })
    }
}
