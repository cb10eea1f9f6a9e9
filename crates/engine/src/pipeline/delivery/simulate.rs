//! Simulation: the clock moves from one due time to the next, and what is due is done.

use domain::retention::Retention;
use domain::time::Timestamp;

use super::claim::{self, Claimed};
use super::due;
use super::repeat_guard::RepeatGuard;
use super::{DeliveryQueue, DeliveryReport};
use crate::error::Rejection;
use crate::{Clock, Error, ManualClock, Result, trace};

/// Tasks of one claim. The clock stands still meanwhile, so that leases do not matter.
const AT_ONCE: usize = 4096;

/// Latest time of a simulation: a year before the last timestamp, so that there are later times for
/// the leases and the next tasks.
const LATEST: Timestamp = Timestamp::from_millis(Timestamp::MAX.as_millis() - 365 * 86_400_000);

impl DeliveryQueue<'_> {
    /// Simulates the time until `end`: sets the clock of the engine to each time at which tasks are
    /// due, and does them, on the calling thread. At the end, the clock shows `end`. Returns the
    /// sum of what was done. Triggers come from the caller, between two calls.
    ///
    /// Tasks that are due at the same time are done in the order of their class, critical ones
    /// first, of each class those first that call no provider and no handler, and then in the order of
    /// their ids. With [`SeededEntropy`](crate::SeededEntropy) and providers
    /// that give the same answers, each run writes the same records, byte by byte. The clock does
    /// not go back: if it is past `end`, tasks that were due by `end` are done at its time. The
    /// latest end is a year before [`Timestamp::MAX`]. Sweeps come again and again, so that of
    /// those in a span without other tasks only the last ones take place.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tidings::{Engine, ManualClock, store::memory::MemoryStore};
    /// # use tidings::{message::MessageQuery, step::Step, trigger::Trigger, workflow::WorkflowCreate};
    /// # use tidings::{step::Delay, vocabulary::TimeUnit};
    ///
    /// let clock = ManualClock::default();
    /// let engine = Engine::builder().clock(clock.clone()).build(MemoryStore::default());
    /// # let env = engine.organization("acme")?.development()?;
    /// # env.workflows().create(&WorkflowCreate::new("trial", "Trial")?
    /// #     .step(Step::delay(Delay::lasting(3, TimeUnit::Days)))
    /// #     .step(Step::in_app("Your trial ends soon.")?))?;
    /// // The workflow waits for three days, and then has a message.
    /// env.events().trigger(&Trigger::new("trial", "ada")?)?;
    /// engine.delivery().run_until("1970-01-08T00:00:00.000Z".parse()?)?;
    /// let inbox = env.inbox("ada")?.list(&MessageQuery::default())?;
    /// assert_eq!(inbox.data[0].created_at.to_string(), "1970-01-04T00:00:00.000Z");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Rejection::ClockNotManual`], if the clock of the engine is no
    /// [`ManualClock`](crate::ManualClock). [`Error::Store`], and then the clock shows the time of
    /// the failure. The report of the next call counts what this one has done.
    pub fn run_until(&self, end: Timestamp) -> Result<DeliveryReport> {
        let run = |report: &mut DeliveryReport| self.simulate(end, report);
        trace::operation("delivery.run_until", None, || {
            self.engine.parts.pending_report.with_pending(run)
        })
    }

    fn simulate(&self, end: Timestamp, report: &mut DeliveryReport) -> Result<()> {
        let clock = self.engine.parts.clock.as_manual();
        let clock = clock.ok_or(Error::Rejected(Rejection::ClockNotManual))?;
        let mut guard = RepeatGuard::default();
        let end = end.min(LATEST);
        self.settle_kept(report)?;
        while let Some(due_at) = due::next(self.engine)?.filter(|due_at| *due_at <= end) {
            set_forward(clock, self.behind_sweeps(due_at, end)?);
            self.run_now(&mut guard, report)?;
        }
        set_forward(clock, end);
        Ok(())
    }

    // The time to go on at, where the next task is due at `due_at`. While nothing but sweeps is due,
    // all but the last of them are left out: they come again and again, and that one removes what
    // the others would have.
    fn behind_sweeps(&self, due_at: Timestamp, end: Timestamp) -> Result<Timestamp> {
        if self.engine.parts.settings.retention.keeps_everything() {
            return Ok(due_at);
        }
        let next = self.engine.read(due::next_besides_sweeps)?;
        let last = next.map_or(end, |next| next.min(end)).before(Retention::INTERVAL);
        Ok(due_at.max(last))
    }

    // Does tasks that are due now.
    fn run_now(&self, guard: &mut RepeatGuard, report: &mut DeliveryReport) -> Result<()> {
        let claimed = claim::claim_at_once(self.engine, AT_ONCE)?;
        guard.note(self.engine, &claimed)?;
        let Claimed { mut leased, quarantined, .. } = claimed;
        report.quarantined += quarantined;
        leased.sort_by_key(|leased| (leased.task.class, leased.task.id));
        // A provider that moves the clock past the lease gets the other tasks again.
        if self.work(leased, report)? > 0 {
            *guard = RepeatGuard::default();
        }
        Ok(())
    }
}

fn set_forward(clock: &ManualClock, time: Timestamp) {
    if clock.now() < time {
        clock.set(time);
    }
}
