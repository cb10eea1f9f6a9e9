//! Failures of workers, as an observer and a subscriber of `tracing` are told of them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use tidings::Engine;
use tidings::observer::Event as Told;
use tidings::store::memory::MemoryStore;
use tidings::store::{self, ReadBody, Store, WriteBody};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

type Texts = Arc<Mutex<Vec<String>>>;

/// A store that cannot be read as long as its flags are set: the second one has it panic.
#[derive(Debug, Default)]
struct Failing {
    store: MemoryStore,
    flags: Arc<[AtomicBool; 2]>,
}

impl Store for Failing {
    fn read(&self, body: &mut ReadBody<'_>) -> store::Result<()> {
        let [fails, panics] = &*self.flags;
        assert!(!panics.load(Ordering::SeqCst), "ada@example.org");
        if fails.load(Ordering::SeqCst) {
            let source = "ada@example.org".into();
            return Err(store::Error::Backend { backend: "test", action: "read", source });
        }
        self.store.read(body)
    }

    fn write(&self, body: &mut WriteBody<'_>) -> store::Result<()> {
        self.store.write(body)
    }
}

/// Keeps the level and the fields of the events of every thread.
#[derive(Clone, Debug, Default)]
struct Recorder(Texts);

struct Fields(Vec<String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.push(format!("{field}={value:?}"));
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("tidings") && *metadata.level() == Level::ERROR
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(vec![event.metadata().level().to_string()]);
        event.record(&mut fields);
        self.0.lock().unwrap().push(fields.0.join(" "));
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[track_caller]
fn wait_for(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "{what} was not seen in 60 seconds");
        thread::sleep(Duration::from_millis(1));
    }
}

/// One event for each failure, behind which the worker makes a pause.
#[test]
fn a_failure_of_a_worker_is_told_to_the_observer_and_to_tracing() {
    let recorder = Recorder::default();
    tracing::subscriber::set_global_default(recorder.clone()).unwrap();
    let (told, store) = (Texts::default(), Failing::default());
    let (events, flags) = (Arc::clone(&told), Arc::clone(&store.flags));
    let observer = move |event: &Told| {
        if let Told::WorkerFailed { error } = event {
            events.lock().unwrap().push(error.clone());
        }
    };
    let engine = Engine::builder().observer(observer).build(store);
    engine.organization("acme").unwrap().development().unwrap();
    let worker = engine.worker().start().unwrap();
    let count = |text: &str| told.lock().unwrap().iter().filter(|one| **one == text).count();

    for (flag, text) in
        flags.iter().zip(["test could not read: ada@example.org", "the host's code panicked"])
    {
        flag.store(true, Ordering::SeqCst);
        wait_for(text, || count(text) >= 2);
        flag.store(false, Ordering::SeqCst);
    }

    let report = worker.stop(Duration::from_secs(60));
    // Threads that are not done by then may fail once more.
    assert_eq!(report.running, 0, "the worker stops slowly: {report:?}");
    assert!(report.errors >= 4, "{report:?}");
    wait_for("every event", || told.lock().unwrap().len() == report.errors);
    let events = recorder.0.lock().unwrap();
    assert_eq!(events.len(), report.errors);
    let of = |outcome: &str| format!("ERROR message=a worker has failed outcome={outcome:?}");
    for (outcome, text) in [
        ("store_error", "test could not read: ada@example.org"),
        ("panicked", "the host's code panicked"),
    ] {
        let found = events.iter().filter(|event| **event == of(outcome)).count();
        assert_eq!(found, count(text), "{events:?}");
    }
}
