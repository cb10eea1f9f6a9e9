//! Claiming: taking jobs that are due, so that nobody else does.

use std::ops::ControlFlow;

use domain::environment::Home;
use domain::ids::JobId;
use domain::job::{Detail, JobStatus};
use domain::notification::Notification;
use domain::time::Timestamp;
use domain::turn::{self, Dispatch, RefusalKind};
use store::{Order, ReadRecords, Snapshot, Table, Transaction, WriteRecords, layout};

use super::advance::Run;
use super::{Delivery, Gathered};
use crate::{Engine, Result, Scope};

/// What a claim found.
#[derive(Debug, Default)]
pub(super) struct Claimed {
    /// The messages to be sent.
    pub(super) deliveries: Vec<Delivery>,
    /// How many jobs were due.
    pub(super) looked_at: usize,
    /// How many of them were not to be done.
    pub(super) skipped: usize,
    /// How many of them could not be done.
    pub(super) failed: usize,
}

/// Takes at most `limit` of the jobs that are due.
pub(super) fn claim(engine: &Engine, limit: usize) -> Result<Claimed> {
    let now = engine.now();
    engine.write(|txn| {
        let mut claimed = Claimed::default();
        for notification in due(&*txn, now, limit)? {
            claimed.looked_at += 1;
            claim_one(engine, txn, &notification, now, &mut claimed)?;
        }
        Ok(claimed)
    })
}

/// When the next job is due.
pub(super) fn next_due(engine: &Engine) -> Result<Option<Timestamp>> {
    let soonest = engine.read(|snapshot| due(snapshot, Timestamp::MAX, 1))?;
    Ok(soonest.first().and_then(Notification::due_at))
}

fn due(snapshot: &dyn Snapshot, now: Timestamp, limit: usize) -> Result<Vec<Notification>> {
    let mut due = Vec::new();
    snapshot.each(Table::Due, &layout::due_until(now), Order::Ascending, |_, notification| {
        due.push(notification);
        if due.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(due)
}

fn claim_one(
    engine: &Engine,
    txn: &mut dyn Transaction,
    before: &Notification,
    now: Timestamp,
    claimed: &mut Claimed,
) -> Result<()> {
    let Some((job, status)) = before.due_job(now).map(|job| (job.id, job.status)) else {
        // Passing it over would find it again, and again.
        let (table, source) = (Table::Due.name(), "an entry leads to nothing that is due".into());
        return Err(store::Error::Corrupt { table, source }.into());
    };
    let scope = Scope { engine: engine.clone(), home: Home::from(before) };
    let gathered = Gathered::now(&scope, &*txn, before)?;
    let mut run = Run { scope: &scope, now, notification: before.clone(), gathered };
    let attempts = run.attempts(job, status);
    let found = run.notification.job(job);
    match found.map(|job| turn::dispatch(job, &run.notification, run.gathered.surroundings())) {
        None => {}
        Some(Ok(dispatch)) => {
            claimed.deliveries.extend(run.start(job, attempts.saturating_add(1), dispatch));
        }
        Some(Err(refusal)) => {
            match refusal.kind {
                RefusalKind::Skip => claimed.skipped += 1,
                RefusalKind::Fail => claimed.failed += 1,
            }
            run.refuse(job, refusal);
            run.advance(txn)?;
        }
    }
    Ok(txn.replace(before, &run.notification)?)
}

impl Run<'_> {
    // How often the job was tried. A try whose lease is over may have come to an end that nobody
    // knows of.
    fn attempts(&mut self, job: JobId, status: JobStatus) -> u32 {
        match status {
            JobStatus::Running { attempts, .. } => {
                self.log(job, Detail::LeaseExpired, None);
                attempts
            }
            JobStatus::Queued { attempts, .. } => attempts,
            JobStatus::Pending
            | JobStatus::Completed
            | JobStatus::Failed
            | JobStatus::Canceled
            | JobStatus::Skipped => 0,
        }
    }

    fn start(&mut self, job: JobId, attempts: u32, dispatch: Dispatch) -> Option<Delivery> {
        let Dispatch { integration, address, rendered } = dispatch;
        let message = self.message(job, integration.channel, rendered)?;
        let message = message.addressed(&integration.provider_id, &address);
        let lease_until = self.now.after(self.scope.engine.parts.lease);
        if let Some(job) = self.notification.job_mut(job)
            && let Ok(provider_id) = integration.provider_id.parse()
        {
            job.provider_id = provider_id;
        }
        self.log(job, Detail::IntegrationSelected, Some(integration.identifier.to_string()));
        self.move_job(job, JobStatus::Running { lease_until, attempts });
        Some(Delivery {
            message,
            integration,
            address,
            subscriber: self.gathered.subscriber.clone()?,
            notification: self.notification.clone(),
            job,
            attempts,
        })
    }
}
