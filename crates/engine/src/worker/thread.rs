//! A thread of a worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::WorkerReport;
use crate::host::{self, Panicked};
use crate::observer::Event;
use crate::pipeline::delivery::{ClaimSize, DeliveryQueue, RepeatGuard};
use crate::{DeliveryReport, Engine, Error, Result, trace};

// A sleeping thread looks at the queue after this time at the latest: another process may have
// added a task, and the clock may have jumped.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

// Pause after the first of several errors. It doubles with each.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

// Time that the tasks of one claim take, judging by those before.
const CLAIM: Duration = Duration::from_millis(100);

/// What the threads of a worker share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    stopping: AtomicBool,
    report: Mutex<WorkerReport>,
    ended: Condvar,
    members: Mutex<Vec<ThreadId>>,
}

/// A thread of a worker.
#[derive(Debug)]
pub(super) struct WorkerThread {
    // Dropped before the thread counts as ended, so that the file of an engine whose worker has
    // stopped can be opened again.
    engine: Engine,
    running: Running,
}

// A thread counts as running until this is dropped.
#[derive(Debug)]
struct Running(Arc<Shared>);

impl Shared {
    pub(super) fn report(&self) -> WorkerReport {
        self.report.lock().clone()
    }

    pub(super) fn stop(&self, engine: &Engine) {
        self.stopping.store(true, Ordering::SeqCst);
        engine.parts.work_signal.notify();
    }

    /// Waits until no other thread runs, or until `end`. `None` is never.
    pub(super) fn wait_for_end(&self, end: Option<Instant>) {
        let is_member = self.members.lock().contains(&thread::current().id());
        let mut report = self.report.lock();
        let runs = |report: &mut WorkerReport| report.running > usize::from(is_member);
        match end {
            Some(end) => drop(self.ended.wait_while_until(&mut report, runs, end)),
            None => self.ended.wait_while(&mut report, runs),
        }
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    fn failed(&self, error: String) {
        let mut report = self.report.lock();
        report.errors += 1;
        report.last_error = Some(error);
    }
}

impl WorkerThread {
    pub(super) fn join(engine: &Engine, shared: &Arc<Shared>) -> Self {
        shared.report.lock().running += 1;
        engine.parts.upkeep.join();
        Self { engine: engine.clone(), running: Running(Arc::clone(shared)) }
    }

    /// Works until the worker is stopped.
    pub(super) fn run(self) {
        let (shared, work_signal) = (&self.running.0, &self.engine.parts.work_signal);
        shared.members.lock().push(thread::current().id());
        let (mut guard, mut size) = (RepeatGuard::default(), ClaimSize::default());
        let mut pause = SHORTEST_PAUSE;
        while !shared.is_stopping() {
            let seen = work_signal.sequence();
            let failure = match host::call(|| self.step(&mut guard, &mut size)) {
                Ok(Ok(sleep)) => {
                    pause = SHORTEST_PAUSE;
                    if !sleep.is_zero() && !shared.is_stopping() {
                        work_signal.wait(seen, sleep);
                    }
                    continue;
                }
                Ok(Err(error)) => Some(error),
                Err(Panicked) => None,
            };
            self.failed(failure.as_ref());
            (guard, size) = (RepeatGuard::default(), ClaimSize::default());
            self.pause(pause);
            pause = (pause * 2).min(LONGEST_SLEEP);
        }
        // What the store did not take before would be lost with the process.
        if let Ok(Err(error)) = host::call(|| self.settle_kept()) {
            self.failed(Some(&error));
        }
    }

    // Counts and tells a failure. Without an error, it is a panic.
    fn failed(&self, error: Option<&Error>) {
        let text = error.map_or_else(|| "the host's code panicked".into(), Error::to_string);
        self.engine.parts.observer.tell(|| Event::WorkerFailed { error: text.clone() });
        self.running.0.failed(text);
        // The subscriber is the host's code.
        _ = host::call(|| trace::worker_failed(error));
    }

    fn settle_kept(&self) -> Result<()> {
        let mut report = DeliveryReport::default();
        let shared = &self.running.0;
        let queue = DeliveryQueue::of_worker(&self.engine, &shared.stopping);
        let settled = queue.settle_kept(&mut report);
        shared.report.lock().delivery.add_all(report);
        settled
    }

    // Waits, whatever is committed meanwhile, until the worker is stopped.
    fn pause(&self, span: Duration) {
        let end = Instant::now() + span;
        let work_signal = &self.engine.parts.work_signal;
        loop {
            let seen = work_signal.sequence();
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || self.running.0.is_stopping() {
                return;
            }
            work_signal.wait(seen, left);
        }
    }

    // Does a step of the upkeep. Returns `false` if there was none, or if it has failed: no message
    // waits for the upkeep.
    fn tend(&self) -> bool {
        self.engine.tend_one().unwrap_or_else(|error| {
            self.failed(Some(&error));
            false
        })
    }

    // Does what is due. Returns the time to sleep afterwards: none if something was done.
    fn step(&self, guard: &mut RepeatGuard, size: &mut ClaimSize) -> Result<Duration> {
        self.settle_kept()?;
        let (engine, shared) = (&self.engine, &self.running.0);
        let tended = self.tend();
        let queue = DeliveryQueue::of_worker(engine, &shared.stopping);
        let next = queue.next_due()?;
        let sleep = next.map_or(LONGEST_SLEEP, |next| next.since(engine.now()).min(LONGEST_SLEEP));
        if !sleep.is_zero() {
            return Ok(if tended { Duration::ZERO } else { sleep });
        }
        let mut report = DeliveryReport::default();
        let start = Instant::now();
        let done = queue.run_batch(guard, *size, &mut report);
        shared.report.lock().delivery.add_all(report);
        match done? {
            // Another thread was faster.
            None => Ok(if tended { Duration::ZERO } else { SHORTEST_PAUSE }),
            Some(batch) => {
                *size = size.fitted(batch, start.elapsed(), CLAIM);
                Ok(Duration::ZERO)
            }
        }
    }
}

impl Drop for WorkerThread {
    fn drop(&mut self) {
        self.engine.parts.upkeep.leave();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.report.lock().running -= 1;
        self.0.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use domain::integration::IntegrationCreate;
    use domain::step::Step;
    use domain::subscriber::SubscriberCreate;
    use domain::trigger::Trigger;
    use domain::vocabulary::Channel;
    use domain::workflow::WorkflowCreate;
    use store::memory::MemoryStore;
    use store::{KeyRange, Order, ReadBody, Snapshot, Store, Table, Visit, VisitValue, WriteBody};

    use super::*;
    use crate::{Delivery, Provider, ProviderReceipt, RecordingProvider, SendError};

    /// A provider that notes how many threads run when its engine is dropped.
    #[derive(Debug)]
    struct Witness {
        shared: Arc<Shared>,
        running: Arc<AtomicUsize>,
    }

    impl Provider for Witness {
        fn send(&self, _: &Delivery) -> Result<ProviderReceipt, SendError> {
            Ok(ProviderReceipt::default())
        }
    }

    impl Drop for Witness {
        fn drop(&mut self) {
            self.running.store(self.shared.report().running, Ordering::SeqCst);
        }
    }

    /// The file of an engine whose worker has stopped can be opened again at once.
    #[test]
    fn a_thread_runs_until_its_engine_is_dropped() {
        let (shared, running) = (Arc::<Shared>::default(), Arc::<AtomicUsize>::default());
        let witness = Witness { shared: Arc::clone(&shared), running: Arc::clone(&running) };
        let engine = Engine::builder().default_provider(witness).build(MemoryStore::default());
        let member = WorkerThread::join(&engine, &shared);
        drop(engine);
        assert_eq!(running.load(Ordering::SeqCst), 0);

        drop(member);
        assert_eq!(running.load(Ordering::SeqCst), 1);
        assert_eq!(shared.report().running, 0);
    }

    /// A store that cannot read the heads of activity lists outside of transactions.
    #[derive(Debug, Default)]
    struct Headless(MemoryStore);

    struct View<'s>(&'s dyn Snapshot);

    impl Store for Headless {
        fn read(&self, body: &mut ReadBody<'_>) -> store::Result<()> {
            self.0.read(&mut |snapshot| body(&View(snapshot)))
        }

        fn write(&self, body: &mut WriteBody<'_>) -> store::Result<()> {
            self.0.write(body)
        }
    }

    fn readable(table: Table) -> store::Result<()> {
        let source = "on purpose".into();
        match table {
            Table::ActivityHeads => {
                Err(store::Error::Backend { backend: "headless", action: "read", source })
            }
            _ => Ok(()),
        }
    }

    impl Snapshot for View<'_> {
        fn get(
            &self,
            table: Table,
            key: &[u8],
            visit: &mut dyn FnMut(&[u8]),
        ) -> store::Result<bool> {
            readable(table)?;
            self.0.get(table, key, visit)
        }

        fn get_many(
            &self,
            table: Table,
            keys: &[&[u8]],
            visit: &mut VisitValue<'_>,
        ) -> store::Result<()> {
            readable(table)?;
            self.0.get_many(table, keys, visit)
        }

        fn scan(
            &self,
            table: Table,
            range: &KeyRange,
            order: Order,
            limit: Option<usize>,
            visit: &mut Visit<'_>,
        ) -> store::Result<()> {
            readable(table)?;
            self.0.scan(table, range, order, limit, visit)
        }
    }

    #[test]
    fn an_upkeep_that_fails_holds_up_no_message() {
        let recorder = RecordingProvider::default();
        let engine =
            Engine::builder().default_provider(recorder.clone()).build(Headless::default());
        let env = engine.organization("acme").unwrap().development().unwrap();
        let mail = IntegrationCreate::new("ses", Channel::Email).unwrap();
        env.integrations().create(&mail).unwrap();
        let greeting = WorkflowCreate::new("greeting", "Greeting").unwrap();
        let greeting = greeting.step(Step::email("Hello!", "Hello!").unwrap());
        env.workflows().create(&greeting).unwrap();
        let shared = Arc::<Shared>::default();
        let member = WorkerThread::join(&engine, &shared);
        let ada = || SubscriberCreate::new("ada").unwrap().email("ada@example.org").unwrap();
        for sent in [1, 2] {
            env.events().trigger(&Trigger::new("greeting", ada()).unwrap()).unwrap();

            member.step(&mut RepeatGuard::default(), &mut ClaimSize::default()).unwrap();

            assert_eq!(recorder.sent().len(), sent);
            // The environment rests behind the first failure.
            assert_eq!(shared.report().errors, 1);
        }
        assert!(engine.delivery().stats().unwrap().upkeep_error.is_some());
    }
}
