//! The loop of claims: a claim, the work on the tasks that it has taken, and the size of the next one.

use std::collections::VecDeque;
use std::time::Duration;

use domain::ids::TaskId;
use domain::task::Work;

use super::claim::{self, ClaimSize, Claimed};
use super::{BATCH, DeliveryQueue, DeliveryReport, LARGE_BATCH};
use crate::{Engine, Result};

/// Number of claims in a row that may begin with the same turn. A turn whose jobs have changed since it was
/// planned is due again as it was. If more claims begin with it, the store does not keep what they write.
const REPEATS: u32 = 8;

/// State of the claims that a caller makes one after the other.
#[derive(Debug)]
pub(crate) struct ClaimLoop {
    size: ClaimSize,
    guard: RepeatGuard,
}

/// Number of claims whose starts are known: lanes take turns, so that a claim may start as one long before it.
const STARTS: usize = 256;

/// Finds claims that start as earlier ones. It has the starts of the last claims, each with the number of
/// repetitions.
#[derive(Debug, Default)]
pub(super) struct RepeatGuard(VecDeque<(ClaimStart, u32)>);

/// The first entry of the queue that a claim has read, and a task that is not the same in the next
/// claim, if the store keeps what is written: the first that calls the host application, if any,
/// and the first of all otherwise.
#[derive(Debug, PartialEq)]
struct ClaimStart {
    entry: Vec<u8>,
    task: Option<(TaskId, u32, Work)>,
}

impl RepeatGuard {
    /// Notes what a claim starts with.
    ///
    /// # Errors
    ///
    /// [`store::Error::Corrupt`], if the store does not keep what claims write.
    pub(super) fn note(&mut self, engine: &Engine, claimed: &Claimed) -> Result<()> {
        let leased = &claimed.leased;
        let calling = leased.iter().find(|leased| leased.task.work.calls_the_host());
        let task = calling.or(leased.first());
        let start = claimed.first.clone().map(|entry| ClaimStart {
            entry,
            task: task.map(|leased| (leased.task.id, leased.attempt(), leased.task.work.clone())),
        });
        let Some(start) = start else { return Ok(()) };
        let before = self.0.iter().position(|(before, _)| *before == start);
        let before = before.and_then(|place| self.0.remove(place));
        let (is_same, repeats) = before.map_or((false, 0), |(_, repeats)| (true, repeats + 1));
        self.0.truncate(STARTS - 1);
        self.0.push_front((start, repeats));
        let allowed = match calling {
            // A call that was made is not made again, unless its task was put back meanwhile.
            Some(leased) if is_same && !claim::is_kept(engine, leased)? => 0,
            Some(_) | None => REPEATS,
        };
        if repeats > allowed { Err(claim::not_claimed()) } else { Ok(()) }
    }
}

/// Tasks of a batch, behind the work on them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchDone {
    /// Number of tasks that were done, or taken out of the queue.
    pub(crate) done: usize,
    /// Number of tasks that were given back.
    pub(crate) given_back: usize,
    /// Number of tasks that are not short.
    pub(crate) long: usize,
}

impl Default for ClaimLoop {
    fn default() -> Self {
        Self { size: ClaimSize { tasks: 1, long: 1, alone: true }, guard: RepeatGuard::default() }
    }
}

impl ClaimLoop {
    /// Returns the size of the next claim.
    pub(crate) fn size(&self) -> ClaimSize {
        self.size
    }

    /// Makes the next claim as large as fits into `span`, judging by a batch that took `elapsed`. Short tasks
    /// and others are judged by claims of their own, because a call may take ten thousand times as long as a
    /// turn.
    pub(crate) fn fit(&mut self, batch: BatchDone, elapsed: Duration, span: Duration) {
        let ClaimSize { tasks, long, .. } = &mut self.size;
        let nanos = elapsed.as_nanos().max(1);
        let fitted = |done: usize, largest: usize| {
            let fitting = span.as_nanos().saturating_mul(done as u128) / nanos;
            usize::try_from(fitting).unwrap_or(largest).clamp(1, largest)
        };
        if batch.given_back > 0 {
            *tasks = batch.done.clamp(1, *tasks);
        } else if batch.long == 0 {
            *tasks = fitted(batch.done, (*tasks * 2).min(LARGE_BATCH));
        }
        if batch.long > 0 {
            *long = fitted(batch.long.min(batch.done), (*long * 2).min(BATCH));
            *tasks = (*tasks).max(*long);
        }
    }
}

impl DeliveryQueue<'_> {
    /// Claims tasks and does them. Returns `None` if none is due.
    pub(crate) fn run_batch(
        &self,
        claims: &mut ClaimLoop,
        size: ClaimSize,
        report: &mut DeliveryReport,
    ) -> Result<Option<BatchDone>> {
        self.settle_kept(report)?;
        let claimed = claim::claim(self.engine, size)?;
        if claimed.first.is_none() {
            // The store has kept what the last claim has written. A task that was put back since may
            // be due as it was.
            claims.guard = RepeatGuard::default();
            return Ok(None);
        }
        if let Err(error) = claims.guard.note(self.engine, &claimed) {
            self.hand_back(&error, claimed.leased);
            return Err(error);
        }
        let Claimed { leased, quarantined, .. } = claimed;
        report.quarantined += quarantined;
        let count = leased.len();
        let long = leased.iter().filter(|leased| !leased.task.work.is_short()).count();
        let given_back = self.work(leased, report)?;
        if given_back > 0 {
            claims.guard = RepeatGuard::default();
        }
        Ok(Some(BatchDone { done: count - given_back + quarantined, given_back, long }))
    }
}

#[cfg(test)]
mod tests {
    use domain::dead_letter::DeadLetterQuery;
    use domain::integration::IntegrationCreate;
    use domain::step::{Delay, Step};
    use domain::subscriber::SubscriberCreate;
    use domain::task::TaskClass;
    use domain::trigger::Trigger;
    use domain::vocabulary::{Channel, TimeUnit};
    use domain::workflow::WorkflowCreate;
    use store::memory::MemoryStore;

    use super::super::lease::Leased;
    use super::super::settle;
    use super::*;
    use crate::{ManualClock, RecordingProvider, SendError};

    /// One row per batch: its tasks that were done and given back, those that are not short, the time that it
    /// took, and the size of the next claim.
    #[test]
    fn a_claim_fits_into_its_span() {
        const SPAN: Duration = Duration::from_millis(100);
        let mut claims = ClaimLoop::default();
        for (row, (done, given_back, long, millis, next)) in [
            (1, 0, 0, 1, (2, 1)),
            (2, 0, 0, 1, (4, 1)),
            // A slow call makes no claim of turns smaller.
            (4, 0, 1, 2_000, (4, 1)),
            (4, 0, 0, 1, (8, 1)),
            (8, 0, 1, 2, (8, 2)),
            (8, 0, 2, 2, (8, 4)),
            (8, 0, 4, 2, (8, 8)),
            (8, 0, 8, 2, (16, 16)),
            // A provider has become slow.
            (1, 15, 16, 2_000, (1, 1)),
            (1, 0, 0, 200, (1, 1)),
        ]
        .into_iter()
        .enumerate()
        {
            let batch = BatchDone { done, given_back, long };
            claims.fit(batch, Duration::from_millis(millis), SPAN);
            assert_eq!((claims.size.tasks, claims.size.long), next, "row {row}");
        }
    }

    #[test]
    fn a_claim_that_is_not_worked_on_is_given_back() {
        let (engine, recorder) = mailing();
        let (queue, mut claims) = (engine.delivery(), ClaimLoop::default());
        let size = ClaimSize { tasks: BATCH, long: BATCH, alone: true };
        let mut report = DeliveryReport::default();
        let claimed = claim::claim(&engine, size).unwrap();
        for _ in 0..=REPEATS {
            claims.guard.note(&engine, &claimed).unwrap();
        }
        let mut unused = claimed.leased.into_iter().map(Leased::put_back_last).collect();
        settle::settle(&engine, &mut unused, &mut report).unwrap();

        queue.run_batch(&mut claims, size, &mut report).unwrap_err();

        let total = queue.stats().unwrap().total();
        assert_eq!((total.waiting, total.leased), (1, 0));
        assert_eq!(queue.run_due(1).unwrap().sent, 1);
        assert_eq!(recorder.sent()[0].attempt(), 1);
    }

    /// Behind a slow provider, a claim takes one message. The lane of the messages comes first.
    #[test]
    fn short_tasks_are_claimed_behind_more_long_ones_than_fit() {
        let (engine, _) = mailing();
        let env = engine.organization("acme").unwrap().development().unwrap();
        let notify = |workflow| {
            env.events().trigger(&Trigger::new(workflow, "ada").unwrap()).unwrap();
        };
        (0..4).for_each(|_| notify("mail"));
        let late = WorkflowCreate::new("late", "Late").unwrap();
        let late = late
            .step(Step::delay(Delay::lasting(1, TimeUnit::Minutes)))
            .step(Step::in_app("Hello").unwrap());
        env.workflows().create(&late).unwrap();
        (0..2).for_each(|_| notify("late"));
        engine.parts.clock.as_manual().unwrap().advance(Duration::from_secs(60));

        let claimed =
            claim::claim(&engine, ClaimSize { tasks: BATCH, long: 1, alone: true }).unwrap();

        let works = claimed.leased.iter().map(|leased| leased.task.work.is_short());
        assert_eq!(works.collect::<Vec<_>>(), [false, true, true]);
    }

    /// Environments are claimed one by one, behind the lane that has its turn.
    #[test]
    fn a_message_without_an_outcome_is_claimed_alone_side_by_side() {
        let (engine, _) = mailing();
        let env = engine.organization("acme").unwrap().development().unwrap();
        let size = ClaimSize { tasks: BATCH, long: BATCH, alone: true };
        let claim = |first| claim::claim_side_by_side(&engine, size, first).unwrap().leased;
        assert_eq!(claim(None).len(), 1);
        let other = WorkflowCreate::new("other", "Other").unwrap();
        let other = other.step(Step::email("Hello", "Hello").unwrap());
        env.workflows().create(&other).unwrap();
        env.events().trigger(&Trigger::new("other", "ada").unwrap()).unwrap();
        let lease = engine.parts.settings.lease;
        engine.parts.clock.as_manual().unwrap().advance(lease);

        let alone = |leased: Vec<Leased>| leased.iter().map(Leased::is_alone).collect::<Vec<_>>();
        assert_eq!(alone(claim(Some(TaskClass::Normal))), [false]);
        assert_eq!(alone(claim(engine.parts.scheduler.next_class())), [true]);
    }

    // An engine with an e-mail that is due.
    fn mailing() -> (Engine, RecordingProvider) {
        let recorder = RecordingProvider::default();
        let builder = Engine::builder().clock(ManualClock::default());
        let engine = builder.default_provider(recorder.clone()).build(MemoryStore::default());
        let env = engine.organization("acme").unwrap().development().unwrap();
        env.integrations().create(&IntegrationCreate::new("ses", Channel::Email).unwrap()).unwrap();
        let mail = WorkflowCreate::new("mail", "Mail").unwrap();
        env.workflows().create(&mail.step(Step::email("Hello", "Hello").unwrap())).unwrap();
        let ada = SubscriberCreate::new("ada").unwrap().email("ada@example.org").unwrap();
        env.events().trigger(&Trigger::new("mail", ada).unwrap()).unwrap();
        (engine, recorder)
    }

    /// A worker keeps its state for as long as it runs. The time stands still meanwhile.
    #[test]
    fn a_message_that_is_sent_again_and_again_is_no_claim_that_was_lost() {
        let (engine, recorder) = mailing();
        let env = engine.organization("acme").unwrap().development().unwrap();

        let (queue, mut claims) = (engine.delivery(), ClaimLoop::default());
        let size = ClaimSize { tasks: BATCH, long: BATCH, alone: true };
        for redriven in 0..4 {
            recorder.refuse_next(SendError::permanent("no"));
            let mut report = DeliveryReport::default();
            while queue.run_batch(&mut claims, size, &mut report).unwrap().is_some() {}
            assert_eq!(report.failures.len(), 1, "redriven {redriven} times");
            let letters = env.dead_letters().list(&DeadLetterQuery::default()).unwrap();
            env.dead_letters().redrive(letters.data[0].id).unwrap();
        }
    }
}
