//! Batches: tasks that were claimed together, and are done one after the other within one lease.

use std::time::Duration;
use std::vec::IntoIter;

use domain::ids::TransactionId;
use domain::task::{Claim, Work};
use domain::time::Timestamp;

use super::claim::Leased;
use super::provider::Delivery;
use super::quota::Admission;
use super::send::{self, Attempt};
use super::settle::{self, Done};
use super::{DeliveryQueue, DeliveryReport, call, quarantine, release, turn};
use crate::heal::healed;
use crate::pipeline::{cancel, chunk, sweep};
use crate::{Error, Result, trace};

// Time of the engine's clock after which results are settled, checked after each task. If the
// process crashes before the settlement, the messages are sent again.
const UNSETTLED: Duration = Duration::from_millis(100);

// Time of the engine's clock after which what is left of a batch is given back, checked before each task. A
// provider may be much slower than at the claim before.
const LONGEST: Duration = Duration::from_secs(1);

/// Size of the content of results with which they are settled, in bytes.
pub(super) const UNSETTLED_SIZE: usize = 1024 * 1024;

impl DeliveryQueue<'_> {
    /// Does a batch of tasks, and settles it in few transactions. What is left after a second, or does not
    /// fit into the lease, is given back. Returns the number of these tasks. If the store fails, what was not
    /// handed over is given back when it goes on. If a task fails for good, those behind it are given back.
    pub(super) fn work(&self, batch: Vec<Leased>, report: &mut DeliveryReport) -> Result<usize> {
        let mut waiting = batch.into_iter();
        self.work_through(&mut waiting, report).inspect_err(|error| self.hand_back(error, waiting))
    }

    /// Gives tasks back that were not begun because of `error`: at once if the store goes on, which fails for
    /// another task only, and when it goes on otherwise.
    pub(super) fn hand_back(&self, error: &Error, waiting: impl IntoIterator<Item = Leased>) {
        let unused = waiting.into_iter().map(|leased| (leased, Done::Unused));
        if error.is_retryable() {
            self.engine.parts.unsettled.keep(error, unused);
            return;
        }
        let (mut unused, mut report) = (unused.collect(), DeliveryReport::default());
        // What cannot be given back is due when its lease is over.
        let _ = settle::settle(self.engine, &mut unused, &mut report);
    }

    fn work_through(
        &self,
        waiting: &mut IntoIter<Leased>,
        report: &mut DeliveryReport,
    ) -> Result<usize> {
        let (mut unsettled, mut size) = (Vec::new(), 0);
        let begun_at = self.engine.now();
        let (mut since, mut slowest) = (begun_at, Duration::ZERO);
        while let Some(next) = waiting.as_slice().first() {
            let start = self.engine.now();
            let is_over = self.is_stopping() || start.since(begun_at) > LONGEST;
            if is_over || !next.fits(start, slowest) {
                let unused = waiting.len();
                unsettled.extend(waiting.map(|leased| (leased, Done::Unused)));
                self.settle(unsettled, report)?;
                return Ok(unused);
            }
            let Some(leased) = waiting.next() else { break };
            let done = match self.work_on(&leased).and_then(|done| self.counted(done)) {
                Ok(done) => done,
                Err(error) => {
                    // Nothing was handed over.
                    self.engine.parts.unsettled.keep(&error, [(leased, Done::Unused)]);
                    self.settle(unsettled, report)?;
                    return Err(error);
                }
            };
            let end = self.engine.now();
            since = since.min(end);
            slowest = slowest.max(end.since(start));
            size += done.size();
            unsettled.push((leased, done));
            if end.since(since) > UNSETTLED || size > UNSETTLED_SIZE {
                self.settle(std::mem::take(&mut unsettled), report)?;
                (since, size) = (end, 0);
            }
        }
        self.settle(unsettled, report)?;
        Ok(0)
    }

    // A rehearsal keeps its content in memory.
    fn counted(&self, done: Done) -> Result<Done> {
        let parts = &self.engine.parts;
        if let Some(evidence) = &parts.evidence {
            parts.limits.check_content(evidence.count(done.messages_size()))?;
        }
        Ok(done)
    }

    // Stores results, or keeps them until the store goes on.
    fn settle(&self, mut results: Vec<(Leased, Done)>, report: &mut DeliveryReport) -> Result<()> {
        let settled = settle::settle(self.engine, &mut results, report);
        settled.inspect_err(|error| self.engine.parts.unsettled.keep(error, results))
    }

    fn work_on(&self, leased: &Leased) -> Result<Done> {
        trace::task(&leased.task, leased.attempt(), Done::word, || self.try_work_on(leased))
    }

    fn try_work_on(&self, leased: &Leased) -> Result<Done> {
        if matches!(leased.claim, Claim::GiveUp(_)) && leased.task.work.notification_id().is_some()
        {
            return Ok(Done::GaveUp);
        }
        let done = quarantine::unless_unreadable(self.engine, leased, || self.attempt(leased))?;
        Ok(done.unwrap_or_else(Done::Unreadable))
    }

    fn attempt(&self, leased: &Leased) -> Result<Done> {
        match &leased.task.work {
            // A rehearsal tells the recipients of its trigger only.
            Work::FanOut { .. } if self.engine.parts.evidence.is_some() => Ok(Done::Dropped),
            Work::FanOut { transaction_id } => self.tell_some(leased, transaction_id),
            Work::Cancel { .. } => {
                cancel::step(self.engine, &leased.task).map(|()| Done::Created(0))
            }
            Work::Turn { notification_id } => turn::plan(self.engine, leased, *notification_id),
            Work::Release { integration_id } => {
                release::step(self.engine, &leased.task, *integration_id).map(|()| Done::Created(0))
            }
            Work::Send { notification_id, message, .. } => {
                let kept = message.as_deref();
                self.send(leased, send::prepare(self.engine, leased, *notification_id, kept)?)
            }
            Work::Wake { .. } => Ok(Done::Woken),
            Work::Sweep { .. } => {
                sweep::step(self.engine, &leased.task, leased.since).map(Done::Swept)
            }
            Work::Close { .. } => turn::close(self.engine, leased),
            Work::Call { notification_id, job_id } => {
                let job = (*notification_id, *job_id);
                Ok(match call::prepare(self.engine, leased, job)? {
                    call::Prepared::Call(call) => match leased.lost(self.engine.now()) {
                        Some(lost) => lost,
                        None => Done::Called(call::call(self.engine, &call)),
                    },
                    call::Prepared::Refuse(refusal) => Done::Refused(refusal),
                    call::Prepared::Hold(hold) => Done::Paused(hold),
                    call::Prepared::Drop => Done::Dropped,
                })
            }
        }
    }

    fn send(&self, leased: &Leased, attempt: Attempt) -> Result<Done> {
        Ok(match attempt {
            Attempt::Send(delivery) => match leased.lost(self.engine.now()) {
                Some(lost) => lost,
                None => return self.ask(leased, delivery),
            },
            Attempt::FanOut(targets) => Done::FannedOut(targets),
            Attempt::Refuse(refusal) => Done::Refused(refusal),
            Attempt::Defer(due_at) => Done::Deferred(due_at),
            Attempt::Hold(hold) => Done::Paused(hold),
            Attempt::Drop => Done::Dropped,
        })
    }
}

impl DeliveryQueue<'_> {
    // Tells the next recipients of a crowd.
    fn tell_some(&self, leased: &Leased, id: &TransactionId) -> Result<Done> {
        let step = || chunk::step(self.engine, &leased.task, id);
        let created = healed(self.engine, leased.task.environment_id, step)?;
        Ok(created.map_or_else(Done::Paused, Done::Created))
    }

    // Hands a message to its provider, unless the provider or the integration takes none now.
    fn ask(&self, leased: &Leased, delivery: Box<Delivery>) -> Result<Done> {
        let (quotas, circuits) = (&self.engine.parts.quotas, &self.engine.parts.circuits);
        let (integration, now) = (delivery.integration.id, leased.now(self.engine));
        let postponed = |since, until| Ok(Done::Postponed { since, until });
        if let Some(until) = circuits.waits_until(integration, now) {
            return postponed(now, until);
        }
        let caller = (leased.task.lane(), leased.due_at);
        let clock = || leased.now(self.engine);
        let mut permit = match quotas.admit(&delivery.integration.provider_id, caller, &clock) {
            Admission::Now(permit) => permit,
            Admission::Later { since, until } => return postponed(since, until),
        };
        if !send::note_call(self.engine, leased, &delivery)? {
            return Ok(Done::Lost);
        }
        let begun_at = self.engine.now();
        if let Some(lost) = leased.lost(begun_at) {
            return Ok(lost);
        }
        // Another thread may have begun the probe meanwhile. A probe that has begun is made.
        if let Some(until) = circuits.begin(integration, now) {
            return postponed(now, until);
        }
        permit.begin(begun_at);
        let result = send::send(self.engine, &delivery);
        drop(permit);
        circuits.end(&delivery, &result, self.engine.now());
        Ok(Done::Asked(delivery, result))
    }
}

impl Leased {
    /// Returns `true` if the clock was ahead at the claim.
    pub(super) fn is_of_clock_ahead(&self, now: Timestamp) -> bool {
        self.since.is_ahead_of(now)
    }

    /// Returns `true` if the clock was ahead at the claim, or when the work on the task has read it.
    pub(super) fn has_seen_clock_ahead(&self, now: Timestamp) -> bool {
        self.seen.get().is_ahead_of(now)
    }

    // Returns `true` if work that begins at `now` and lasts `span` ends within the lease. A lease up
    // to the last instant there is does not end. One of a clock that was ahead says nothing about now.
    fn fits(&self, now: Timestamp, span: Duration) -> bool {
        let left = self.until.since(now);
        let is_in_it = self.until == Timestamp::MAX || (!left.is_zero() && left >= span);
        is_in_it && !self.is_of_clock_ahead(now)
    }

    // Returns the result of an attempt that does not begin, because another worker may have the task: the
    // store has taken long, or the process was suspended. The attempt counts, so that the retry policy
    // ends a task whose store is always too slow. It does not count if the clock was ahead.
    fn lost(&self, now: Timestamp) -> Option<Done> {
        if self.has_seen_clock_ahead(now) {
            return Some(Done::Unused);
        }
        (!self.fits(now, Duration::ZERO)).then_some(Done::Lost)
    }
}
