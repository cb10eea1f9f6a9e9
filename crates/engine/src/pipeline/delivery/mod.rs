//! Delivery: due tasks are claimed, done and settled. No transaction is open while a provider works,
//! and none while a plan is made.

mod assumed;
mod batch;
mod bring_forward;
mod call;
pub(crate) mod circuits;
mod claim;
mod claim_size;
pub(crate) mod clock_skew;
mod due;
pub(crate) mod fairness;
pub(crate) mod inbound;
pub(crate) mod integration_check;
mod lease;
mod provider;
mod quarantine;
pub(crate) mod quota;
mod recording;
pub(crate) mod release;
mod repeat_guard;
mod report;
mod sample;
mod send;
mod send_result;
mod settle;
mod simulate;
mod stats;
mod task_result;
mod turn;
pub(crate) mod unsettled;

use std::sync::atomic::{AtomicBool, Ordering};

use domain::time::Timestamp;

use self::claim::Claimed;
use self::claim_size::BatchDone;
use crate::{Engine, Result, trace};

pub(crate) use assumed::Assumed;
pub use call::{Call, Handler};
pub(crate) use claim_size::ClaimSize;
pub use inbound::{Inbound, InboundReport};
pub use provider::{Delivery, IntegrationTestResult, Provider, ProviderReceipt, SendError};
pub use recording::RecordingProvider;
pub(crate) use repeat_guard::RepeatGuard;
pub(crate) use report::PendingReport;
pub use report::{DeliveryFailure, DeliveryReport, FailureReason};
pub(super) use settle::RECHECK_DELAY;
pub(crate) use settle::end_window;
pub use stats::{IntegrationStats, LaneStats, QueueDepth, QueueStats};

/// The delivery queue of all environments.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tidings::{Engine, RecordingProvider, store::memory::MemoryStore};
/// # use tidings::{integration::IntegrationCreate, step::Step, subscriber::SubscriberCreate};
/// # use tidings::{trigger::Trigger, vocabulary::Channel, workflow::WorkflowCreate};
///
/// let recorder = RecordingProvider::default(); // or your own providers
/// let builder = Engine::builder().default_provider(recorder.clone());
/// let engine = builder.build(MemoryStore::default());
/// # let env = engine.organization("acme")?.development()?;
/// # env.integrations().create(&IntegrationCreate::new("ses", Channel::Email)?)?;
/// # env.workflows().create(
/// #     &WorkflowCreate::new("greeting", "Greeting")?.step(Step::email("Hello!", "Hello!")?))?;
/// # let ada = SubscriberCreate::new("ada")?.email("ada@example.org")?;
/// # env.events().trigger(&Trigger::new("greeting", ada)?)?;
/// let report = engine.delivery().run_due(100)?;
/// assert_eq!((report.sent, recorder.sent().len()), (1, 1));
/// for failure in &report.failures {
///     eprintln!("{}: {}", failure.notification_id, failure.reason);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct DeliveryQueue<'e> {
    engine: &'e Engine,
    // Set when the worker of this queue stops.
    stopping: Option<&'e AtomicBool>,
}

impl<'e> DeliveryQueue<'e> {
    pub(crate) fn new(engine: &'e Engine) -> Self {
        Self { engine, stopping: None }
    }

    /// The queue of a worker, which gives tasks back when `stopping` is set.
    pub(crate) fn of_worker(engine: &'e Engine, stopping: &'e AtomicBool) -> Self {
        Self { engine, stopping: Some(stopping) }
    }

    fn is_stopping(&self) -> bool {
        self.stopping.is_some_and(|stopping| stopping.load(Ordering::SeqCst))
    }

    /// Does at most `limit` due tasks of all environments: it sends messages and continues delayed jobs.
    /// Critical notifications and those of high severity come first. Other workflows take turns. If more than
    /// 1,024 workflows have due tasks, those that have waited longest come first. Without a worker, it first does
    /// a step of the upkeep of the activity index.
    ///
    /// A host application with a loop of its own calls this function regularly, from one thread or several.
    /// Other applications start a [`Worker`](crate::Worker).
    ///
    /// # Errors
    ///
    /// [`Error::Store`](crate::Error::Store), also if a claimed task is still due. Results that
    /// were not stored are stored by the next call, if the error
    /// [is retryable](crate::Error::is_retryable). Other claimed tasks that were not settled are
    /// done again when their lease is over. The report of the next call counts what this one has done.
    pub fn run_due(&self, limit: usize) -> Result<DeliveryReport> {
        let run = |report: &mut DeliveryReport| self.run_batches(limit, report);
        trace::operation("delivery.run_due", None, || {
            self.engine.tend_without_worker();
            self.engine.parts.pending_report.with_pending(run)
        })
    }

    /// Settles the results that the store did not take when they were made.
    pub(crate) fn settle_kept(&self, report: &mut DeliveryReport) -> Result<()> {
        self.engine.parts.unsettled.settle(self.engine, report)
    }

    fn run_batches(&self, limit: usize, report: &mut DeliveryReport) -> Result<()> {
        let (mut left, mut size) = (limit, ClaimSize::first());
        let mut guard = RepeatGuard::default();
        while left > 0 {
            let Some(batch) = self.run_batch(&mut guard, size.at_most(left), report)? else {
                break;
            };
            if batch.done == 0 && size.tasks == 1 {
                break;
            }
            left = left.saturating_sub(batch.done);
            size = size.grown(batch);
        }
        Ok(())
    }

    /// Claims tasks and does them. Returns `None` if none is due.
    pub(crate) fn run_batch(
        &self,
        guard: &mut RepeatGuard,
        size: ClaimSize,
        report: &mut DeliveryReport,
    ) -> Result<Option<BatchDone>> {
        self.settle_kept(report)?;
        let claimed = claim::claim(self.engine, size)?;
        if claimed.first.is_none() {
            // The store has kept what the last claim has written. A task that was put back since may
            // be due as it was.
            *guard = RepeatGuard::default();
            return Ok(None);
        }
        if let Err(error) = guard.note(self.engine, &claimed) {
            self.hand_back(&error, claimed.leased);
            return Err(error);
        }
        let Claimed { leased, quarantined, .. } = claimed;
        report.quarantined += quarantined;
        let count = leased.len();
        let long = leased.iter().filter(|leased| !leased.task.work.is_short()).count();
        let given_back = self.work(leased, report)?;
        if given_back > 0 {
            *guard = RepeatGuard::default();
        }
        Ok(Some(BatchDone { done: count - given_back + quarantined, given_back, long }))
    }

    /// Returns the time at which the next task is due. The time is in the past if a task is due
    /// already. Returns `None` if no task waits.
    pub fn next_due(&self) -> Result<Option<Timestamp>> {
        trace::operation("delivery.next_due", None, || due::next(self.engine))
    }
}
