//! Batches: tasks that were claimed together, and are done one after the other within one lease.

use std::mem;
use std::ops::ControlFlow::{Break, Continue};
use std::time::Duration;
use std::vec::IntoIter;

use domain::ids::TransactionId;
use domain::quota::Caller;
use domain::task::{Claim, Work};
use domain::time::Timestamp;

use super::circuits::Awaited;
use super::lease::Leased;
use super::provider::Delivery;
use super::quota::CallAdmission;
use super::settle;
use super::task_result::{JobResult, TaskResult};
use super::{DeliveryQueue, DeliveryReport, call, quarantine, release, send, turn};
use crate::heal::healed;
use crate::pipeline::{cancel, fan_out, sweep};
use crate::{Error, Result, trace};

// Bounds of the time of the engine's clock after which results are settled, checked after each task. If the
// process crashes before the settlement, the messages are sent again.
const SHORTEST_WAIT: Duration = Duration::from_millis(5);
const LONGEST_WAIT: Duration = Duration::from_millis(100);

// Results wait for so many times the time that the last settlement took. Settlements of up to 10 ms then take a
// tenth of the time of a worker.
const WAIT_FACTOR: u32 = 10;

// Time of the engine's clock after which what is left of a batch is given back, checked before each task. A
// provider may be much slower than at the claim before.
const LONGEST: Duration = Duration::from_secs(1);

/// Size of the content of results with which they are settled, in bytes.
pub(super) const UNSETTLED_SIZE: usize = 1024 * 1024;

/// Effect of the work on a task. All but `Done` have settled the task in transactions of their own.
enum Worked {
    /// The result has to be stored.
    Done(TaskResult),
    /// So many notifications were created.
    Created(usize),
    /// So many records were removed.
    Swept(usize),
    /// A step of a cancellation or of a release was made.
    Settled,
}

// Results of a batch that are not stored.
struct Unstored {
    results: Vec<(Leased, TaskResult)>,
    // Size of their content, in bytes.
    size: usize,
    // Time since which results wait.
    since: Timestamp,
    // Time after which they are stored.
    wait: Duration,
}

impl DeliveryQueue<'_> {
    /// Does a batch of tasks, and settles it in few transactions. What is left after a second, or does not
    /// fit into the lease, is given back. Returns the number of these tasks. If the store fails, what was not
    /// handed over is given back when it goes on. If a task fails for good, those behind it are given back.
    pub(super) fn work(
        &self,
        mut batch: Vec<Leased>,
        report: &mut DeliveryReport,
    ) -> Result<usize> {
        // What needs no call of the host does not wait for those of its class.
        for class in batch.chunk_by_mut(|one, next| one.task.class == next.task.class) {
            class.sort_by_key(Leased::calls_the_host);
        }
        let mut waiting = batch.into_iter();
        self.work_through(&mut waiting, report).inspect_err(|error| self.hand_back(error, waiting))
    }

    /// Gives tasks back that were not begun because of `error`: at once if the store goes on, which fails for
    /// another task only, and when it goes on otherwise.
    pub(super) fn hand_back(&self, error: &Error, waiting: impl IntoIterator<Item = Leased>) {
        let unused = waiting.into_iter().map(Leased::put_back_last);
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
        let begun_at = self.engine.now();
        let (mut unstored, mut slowest) = (Unstored::since(begun_at), Duration::ZERO);
        while let Some(next) = waiting.as_slice().first() {
            // A call may take long. What was done without one is stored before it.
            if next.calls_the_host() && unstored.has_other_than_calls() {
                self.store(&mut unstored, report)?;
            }
            let start = self.engine.now();
            let is_over = self.is_stopping() || start.since(begun_at) > LONGEST;
            if is_over || !next.fits(start, slowest) {
                let unused = waiting.len();
                unstored.results.extend(waiting.map(Leased::put_back_in_place));
                self.settle(unstored.results, report)?;
                return Ok(unused);
            }
            let Some(leased) = waiting.next() else { break };
            let worked = match self.work_on(&leased).and_then(|worked| self.counted(worked)) {
                Ok(worked) => worked,
                Err(error) => {
                    // Nothing was handed over.
                    self.engine.parts.unsettled.keep(&error, [leased.put_back_last()]);
                    self.settle(unstored.results, report)?;
                    return Err(error);
                }
            };
            let end = self.engine.now();
            slowest = slowest.max(end.since(start));
            unstored.add(leased, worked, report);
            if unstored.is_full(end) {
                self.store(&mut unstored, report)?;
            }
        }
        self.settle(unstored.results, report)?;
        Ok(0)
    }

    // A rehearsal keeps its content in memory.
    fn counted(&self, worked: Worked) -> Result<Worked> {
        let parts = &self.engine.parts;
        if let (Some(evidence), Worked::Done(done)) = (parts.evidence(), &worked) {
            parts.settings.limits.check_content(evidence.count(done.size().messages))?;
        }
        Ok(worked)
    }

    // Stores the results so far.
    fn store(&self, unstored: &mut Unstored, report: &mut DeliveryReport) -> Result<()> {
        let begun_at = self.engine.now();
        self.settle(unstored.take(), report)?;
        unstored.begin(begun_at, self.engine.now());
        Ok(())
    }

    // Stores results, or keeps them until the store goes on.
    fn settle(
        &self,
        mut results: Vec<(Leased, TaskResult)>,
        report: &mut DeliveryReport,
    ) -> Result<()> {
        let settled = settle::settle(self.engine, &mut results, report);
        settled.inspect_err(|error| self.engine.parts.unsettled.keep(error, results))
    }

    fn work_on(&self, leased: &Leased) -> Result<Worked> {
        trace::task(&leased.task, leased.attempt(), Worked::word, || self.try_work_on(leased))
    }

    fn try_work_on(&self, leased: &Leased) -> Result<Worked> {
        if matches!(leased.claim, Claim::GiveUp(_)) && leased.task.work.notification_id().is_some()
        {
            return Ok(Worked::Done(TaskResult::GaveUp));
        }
        let worked = quarantine::unless_unreadable(self.engine, leased, || self.attempt(leased))?;
        Ok(worked.unwrap_or_else(|unreadable| Worked::Done(TaskResult::Unreadable(unreadable))))
    }

    fn attempt(&self, leased: &Leased) -> Result<Worked> {
        let (engine, task) = (self.engine, &leased.task);
        let done = match &task.work {
            // A rehearsal notifies the recipients of its trigger only.
            Work::FanOut { .. } if engine.parts.is_rehearsal() => TaskResult::Dropped,
            Work::FanOut { transaction_id } => return self.fan_out_chunk(leased, transaction_id),
            Work::Cancel { .. } => {
                return cancel::step(engine, task).map(|()| Worked::Settled);
            }
            Work::Release { integration_id } => {
                return release::step(engine, task, *integration_id).map(|()| Worked::Settled);
            }
            Work::Sweep { .. } => {
                return sweep::step(engine, task, leased.since).map(Worked::Swept);
            }
            Work::Turn { notification_id } => turn::plan(engine, leased, *notification_id)?,
            Work::Close { .. } => turn::close(engine, leased)?,
            Work::Wake { message_id } => TaskResult::Woken(*message_id),
            Work::Send(work) => {
                let changes = engine.parts.circuits.changes();
                match send::prepare(engine, leased, work, changes)? {
                    Break(done) => done,
                    Continue(delivery) => self.call_provider(leased, delivery, changes)?,
                }
            }
            Work::Call { notification_id, job_id } => {
                match call::prepare(engine, leased, *notification_id, *job_id)? {
                    Break(done) => done,
                    Continue(call) => match leased.lost(engine.now()) {
                        Some(lost) => lost,
                        None => {
                            TaskResult::Job(JobResult::HandlerCalled(call::call(engine, &call)))
                        }
                    },
                }
            }
        };
        Ok(Worked::Done(done))
    }

    // Notifies the next recipients of a crowd.
    fn fan_out_chunk(&self, leased: &Leased, id: &TransactionId) -> Result<Worked> {
        let step = || fan_out::step(self.engine, &leased.task, id);
        Ok(match healed(self.engine, leased.task.environment_id, step)? {
            Some(created) => Worked::Created(created),
            None => Worked::Done(TaskResult::WorkflowPaused),
        })
    }

    // Hands a message to its provider, unless the provider or the integration takes none now. `changes` is the number
    // of changes of integrations before the decision.
    fn call_provider(
        &self,
        leased: &Leased,
        delivery: Box<Delivery>,
        changes: u64,
    ) -> Result<TaskResult> {
        if let Some(lost) = leased.lost(self.engine.now()) {
            return Ok(lost);
        }
        let (quotas, circuits) = (&self.engine.parts.quotas, &self.engine.parts.circuits);
        let (integration, now) = (delivery.integration.id, leased.now(self.engine));
        let circuit_open = || {
            let ids = delivery.others.awaited(integration);
            Ok(TaskResult::CircuitOpen(Awaited { ids, changes }))
        };
        if circuits.is_open(integration, now) {
            return circuit_open();
        }
        let caller = Caller { lane: leased.task.lane(), due_at: leased.due_at };
        let clock = || leased.now(self.engine);
        let mut permit = match quotas.admit(&delivery.integration.provider_id, caller, &clock) {
            CallAdmission::Now(permit) => permit,
            CallAdmission::Later { since, until } => {
                return Ok(TaskResult::QuotaUsedUp { since, until });
            }
        };
        let is_stored = send::store_call(self.engine, leased, &delivery)?;
        let begun_at = self.engine.now();
        if let Some(lost) = leased.lost(begun_at) {
            return Ok(lost);
        }
        if !is_stored {
            return Ok(TaskResult::Lost);
        }
        // Another thread may have begun the probe meanwhile. A probe that has begun is made.
        if !circuits.begin(integration, leased.now(self.engine)) {
            return circuit_open();
        }
        permit.begin(begun_at);
        let result = send::send(self.engine, &delivery);
        drop(permit);
        if circuits.end(&delivery, &result, self.engine.now()) {
            self.engine.parts.work_signal.notify();
        }
        Ok(TaskResult::Job(JobResult::ProviderCalled(delivery, result)))
    }
}

impl Unstored {
    fn since(time: Timestamp) -> Self {
        Self { results: Vec::new(), size: 0, since: time, wait: SHORTEST_WAIT }
    }

    // Adds the result of a task, or its effect to the report if the task is settled.
    fn add(&mut self, leased: Leased, worked: Worked, report: &mut DeliveryReport) {
        match worked {
            Worked::Done(done) => {
                self.size += done.size().content;
                self.results.push((leased, done));
            }
            Worked::Created(count) => report.created += count,
            Worked::Swept(count) => report.swept += count,
            Worked::Settled => {}
        }
    }

    fn has_other_than_calls(&self) -> bool {
        self.results.iter().any(|(leased, _)| !leased.calls_the_host())
    }

    // Returns `true` if the results have to be stored at `now`. The clock may have gone back.
    fn is_full(&mut self, now: Timestamp) -> bool {
        self.since = self.since.min(now);
        now.since(self.since) > self.wait || self.size > UNSETTLED_SIZE
    }

    fn take(&mut self) -> Vec<(Leased, TaskResult)> {
        self.size = 0;
        mem::take(&mut self.results)
    }

    // Begins anew at `now`, behind a settlement that has begun at `settled_from`.
    fn begin(&mut self, settled_from: Timestamp, now: Timestamp) {
        let took = now.since(settled_from);
        self.since = now;
        self.wait = took.saturating_mul(WAIT_FACTOR).clamp(SHORTEST_WAIT, LONGEST_WAIT);
    }
}

impl Worked {
    const fn word(&self) -> &'static str {
        match self {
            Worked::Done(done) => done.word(),
            Worked::Created(_) => "created",
            Worked::Swept(_) => "swept",
            Worked::Settled => "settled",
        }
    }
}
