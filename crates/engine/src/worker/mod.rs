//! Workers: threads of the engine that do what is due.

mod report;
mod thread;
pub(crate) mod upkeep;
pub(crate) mod work_signal;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::Builder as ThreadBuilder;
use std::time::{Duration, Instant};

use thiserror::Error;

use self::thread::{Shared, WorkerThread};
use crate::Engine;

pub use report::WorkerReport;

// Time that a dropped worker has for the calls that are under way.
const DROP_TIMEOUT: Duration = Duration::from_secs(5);

/// The settings of a [`Worker`].
#[derive(Debug)]
#[must_use = "`start` starts the worker"]
pub struct WorkerBuilder {
    engine: Engine,
    threads: NonZeroUsize,
}

/// Threads that do the due tasks of an engine: they send messages, let delayed jobs go on, and do
/// the upkeep of the activity index.
///
/// A thread sleeps until the next task is due, one second at most. A commit of the same engine that
/// adds a task wakes it. A thread claims the tasks that it can do in 100 ms, judging by the last
/// ones: at most 32, or 256 if they are short. Errors of the store and panics of the host's code are
/// counted, and the thread goes on after a pause of up to one second.
///
/// A worker that is dropped stops as by [`stop`](Self::stop) with five seconds. Keep it as long as it
/// is to work: `engine.worker().start()?;` stops it at once, and the compiler warns of it.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use tidings::{Engine, RecordingProvider, store::memory::MemoryStore};
/// # use tidings::{integration::IntegrationCreate, step::Step, subscriber::SubscriberCreate};
/// # use tidings::{trigger::Trigger, vocabulary::Channel, workflow::WorkflowCreate};
///
/// let recorder = RecordingProvider::default(); // or your own providers
/// let engine = Engine::builder()
///     .default_provider(recorder.clone())
///     .max_concurrent("ses", 2)
///     .per_second("ses", 50)
///     .build(MemoryStore::default());
/// # let env = engine.organization("acme")?.development()?;
/// # env.integrations().create(&IntegrationCreate::new("ses", Channel::Email)?)?;
/// # env.workflows().create(
/// #     &WorkflowCreate::new("greeting", "Greeting")?.step(Step::email("Hello!", "Hello!")?))?;
/// let worker = engine.worker().threads(2).start()?;
/// let ada = SubscriberCreate::new("ada")?.email("ada@example.org")?;
/// env.events().trigger(&Trigger::new("greeting", ada)?)?;
/// # while recorder.sent().is_empty() { std::thread::sleep(Duration::from_millis(1)); }
/// // Later, at the end of the process:
/// let report = worker.stop(Duration::from_secs(10));
/// assert_eq!((report.delivery.sent, report.errors, report.running), (1, 0, 0));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a worker that is dropped stops: bind it, as in `let worker = ...`"]
pub struct Worker {
    engine: Engine,
    shared: Arc<Shared>,
}

/// Reason for which a worker did not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// The clock of the engine does not go by itself. Call
    /// [`run_due`](crate::DeliveryQueue::run_due) after each move of the clock.
    #[error("a worker needs a clock that goes by itself, and the engine has a manual clock")]
    ManualClock,
    /// The operating system has not started a thread.
    #[error("a thread was not started")]
    Thread(#[source] std::io::Error),
}

impl Engine {
    /// Returns the builder of a worker with one thread.
    pub fn worker(&self) -> WorkerBuilder {
        WorkerBuilder { engine: self.clone(), threads: NonZeroUsize::MIN }
    }
}

impl WorkerBuilder {
    /// Sets the number of threads: 1 at least, which is the default. Each of them calls one provider
    /// at a time.
    pub fn threads(self, threads: usize) -> Self {
        Self { threads: NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN), ..self }
    }

    /// Starts the threads.
    ///
    /// # Errors
    ///
    /// [`WorkerError::ManualClock`], if the engine has a manual clock; [`WorkerError::Thread`], if
    /// the operating system does not start a thread. No thread is left then.
    pub fn start(self) -> Result<Worker, WorkerError> {
        if self.engine.parts.clock.as_manual().is_some() {
            return Err(WorkerError::ManualClock);
        }
        let worker = Worker { engine: self.engine, shared: Arc::default() };
        for number in 1..=self.threads.get() {
            let member = WorkerThread::join(&worker.engine, &worker.shared);
            let thread = ThreadBuilder::new().name(format!("tidings-worker-{number}"));
            // A worker that is dropped stops the threads before.
            thread.spawn(move || member.run()).map_err(WorkerError::Thread)?;
        }
        Ok(worker)
    }
}

impl Worker {
    /// Returns what the worker has done so far.
    pub fn report(&self) -> WorkerReport {
        self.shared.report()
    }

    /// Stops the threads, and waits at most for `timeout` until they have ended. Tasks that were
    /// claimed and not begun are given back. A call of a provider that takes longer is not interrupted: its thread
    /// stores the result, and then ends. If the process ends before that, the message is sent again after its lease,
    /// and so are the messages that were sent within 100 ms before the call. A thread drops its engine when it ends,
    /// so that the file can be opened again once all other clones are dropped. A call on a thread of the worker, as
    /// in a provider, waits for the other threads only.
    #[must_use = "the report says whether threads are left"]
    pub fn stop(self, timeout: Duration) -> WorkerReport {
        self.end(timeout);
        self.report()
    }

    fn end(&self, timeout: Duration) {
        self.shared.stop(&self.engine);
        let end = Instant::now().checked_add(timeout);
        self.shared.wait_for_end(end);
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if !self.shared.is_stopping() {
            self.end(DROP_TIMEOUT);
        }
    }
}
