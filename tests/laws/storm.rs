//! Many threads make every call at once, workers deliver, and the code of the host panics: nothing
//! waits for ever, and indexes, counters and tasks agree with the records at any time.
//!
//! `TIDINGS_STORM` is the length of a storm in seconds, 2 if it is not set:
//! `TIDINGS_STORM=600 cargo test --test laws storm -- --nocapture` prints what happened in it.

use std::any::Any;
use std::collections::BTreeMap;
use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::disk::Dice;
use testkit::interposed::Interposed;
use testkit::requests::{self, Answer, Refusal};
use testkit::seeded;
use testkit::world::{Backend, World};
use tidings::observer::Event;
use tidings::time::Timestamp;
use tidings::{
    Clock, Delivery, Entropy, Error, ManualClock, Provider, ProviderReceipt, Scope, SendError,
};

const THREADS: u64 = 32;

/// A call that takes longer waits for ever.
const PATIENCE: Duration = Duration::from_secs(180);

#[test]
fn a_storm_in_memory() {
    storm(&Backend::both()[0]);
}

#[test]
fn a_storm_on_a_disk() {
    storm(&Backend::both()[1]);
}

#[test]
fn on_a_server_a_storm() {
    if let Some(backend) = Backend::on_a_server() {
        storm(&backend);
    }
}

fn storm(backend: &Backend) {
    let host = Host::default();
    let world = seeded::copy_in(Interposed::over(backend.open()), |builder| {
        let observer = host.clone();
        builder
            .clock(host.clone())
            .entropy(host.clone())
            .default_provider(host.clone())
            .observer(move |_: &Event| observer.panics_once_in(4))
    });
    host.clock.set(world.clock.now());
    let sky = Sky { world: &world, host: &host, scopes: [world.env.clone(), world.production()] };
    let worker = world.engine.worker().threads(2).start().unwrap();
    let seconds = env::var("TIDINGS_STORM").map_or(2, |seconds| seconds.parse().unwrap());
    let answers = sky.rages(Duration::from_secs(seconds));
    host.is_calm.store(true, Relaxed);
    let report = worker.stop(Duration::from_secs(60));
    assert_eq!(report.running, 0);
    println!("{answers:#?}\n{} panics of the host, {report:?}", host.panics.load(Relaxed));
    // A panic, and no failure of the store.
    let unplanned = "the host's code panicked";
    assert!(report.last_error.is_none_or(|error| error == unplanned));
    assert_eq!(world.engine.check().unwrap().findings, []);
    assert!(answers["done"] > 0 && host.panics.load(Relaxed) > 0);
}

/// Code of the host that panics now and then.
#[derive(Clone, Debug, Default)]
struct Host {
    clock: ManualClock,
    is_calm: Arc<AtomicBool>,
    raging: Arc<AtomicBool>,
    calls: Arc<AtomicU64>,
    panics: Arc<AtomicU64>,
}

/// The payload of a planned panic.
struct Planned;

impl Host {
    fn number(&self, below: usize) -> usize {
        Dice::new(self.calls.fetch_add(1, Relaxed)).below(below)
    }

    fn panics_once_in(&self, times: usize) {
        let rages = self.raging.load(Relaxed) && !self.is_calm.load(Relaxed);
        if rages && self.number(times) == 0 {
            self.panics.fetch_add(1, Relaxed);
            // Without the message of the hook.
            resume_unwind(Box::new(Planned));
        }
    }
}

impl Clock for Host {
    fn now(&self) -> Timestamp {
        self.panics_once_in(300);
        self.clock.now()
    }
}

impl Entropy for Host {
    fn fill(&self, bytes: &mut [u8]) {
        self.panics_once_in(300);
        for byte in bytes {
            *byte = u8::try_from(self.number(256)).unwrap();
        }
    }
}

impl Provider for Host {
    fn send(&self, _: &Delivery) -> Result<ProviderReceipt, SendError> {
        self.panics_once_in(8);
        match self.number(8) {
            0 => Err(SendError::retryable("busy")),
            1 => Err(SendError::permanent("no such address")),
            2 => Err(SendError::unknown("no answer")),
            3 => Err(SendError::misconfigured("no password")),
            _ => Ok(ProviderReceipt::id("sent")),
        }
    }
}

/// What the threads share.
struct Sky<'w> {
    world: &'w World,
    host: &'w Host,
    scopes: [Scope; 2],
}

/// What a thread does, and since when.
type Doing = Mutex<(Instant, String)>;

impl Sky<'_> {
    fn rages(&self, span: Duration) -> BTreeMap<String, u64> {
        let end = Instant::now() + span;
        let doing: Vec<Doing> =
            (0..THREADS).map(|_| Mutex::new((Instant::now(), String::new()))).collect();
        self.host.raging.store(true, Relaxed);
        thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .zip(&doing)
                .map(|(seed, doing)| scope.spawn(move || self.thread(seed, end, doing)))
                .collect();
            while !threads.iter().all(thread::ScopedJoinHandle::is_finished) {
                self.host.clock.advance(Duration::from_millis(25));
                watch(&doing);
                thread::sleep(Duration::from_millis(5));
            }
            let mut all = BTreeMap::new();
            for answers in threads.into_iter().map(|thread| thread.join().unwrap()) {
                for (name, count) in answers {
                    *all.entry(name).or_default() += count;
                }
            }
            all
        })
    }

    fn thread(&self, seed: u64, end: Instant, doing: &Doing) -> BTreeMap<String, u64> {
        let mut dice = Dice::new(seed + 1_000);
        let mut answers = BTreeMap::new();
        while Instant::now() < end {
            let request = any_request(&mut dice);
            *doing.lock().unwrap() = (Instant::now(), request.to_string());
            let scope = &self.scopes[dice.below(2)];
            let call = || self.call(scope, &request, &mut dice);
            let name = match catch_unwind(AssertUnwindSafe(call)) {
                Ok(answer) => outcome(&request, &answer),
                Err(payload) if payload.is::<Planned>() => "a panic of the host".into(),
                Err(payload) => panic!("{request}: {:?}", said(&*payload)),
            };
            *answers.entry(name).or_default() += 1;
        }
        *doing.lock().unwrap() = (end + PATIENCE, String::new());
        answers
    }

    fn call(&self, scope: &Scope, request: &Value, dice: &mut Dice) -> Answer {
        let engine = &self.world.engine;
        match dice.below(200) {
            // What a snapshot shows agrees at any time.
            0 => assert_eq!(engine.check().unwrap().findings, []),
            1 => _ = engine.repair().unwrap(),
            2 => _ = engine.delivery().stats().unwrap(),
            3..8 => {
                _ = scope
                    .inbox("ada")
                    .and_then(|inbox| inbox.wait(&inbox.cursor()?, Duration::from_millis(20)));
            }
            8..12 => {
                let event = testkit::parsed(json!({ "name": "both", "to": "ada" }));
                _ = scope.events().explain(&event, self.host.clock.now());
            }
            _ => {}
        }
        requests::call(engine, scope, request)
    }
}

fn any_request(dice: &mut Dice) -> Value {
    let sound = requests::sound();
    let mut request = sound[dice.below(sound.len())].clone();
    let may_have_a_key =
        request[0].as_str().is_some_and(|name| name != "idempotent" && requests::writes(name));
    if may_have_a_key
        && dice.below(8) == 0
        && let Value::Array(parts) = &mut request
    {
        let key = format!("key {}", dice.below(50));
        parts.splice(0..0, [json!("idempotent"), json!(key)]);
    }
    request
}

// The store is sound, so that it fails for nothing.
fn outcome(request: &Value, answer: &Answer) -> String {
    match answer {
        Ok(_) => "done".into(),
        Err(Refusal::By(Error::Store(error))) => panic!("{request}: {error:?}"),
        Err(Refusal::By(error)) => format!("refused with {}", error.status()),
        Err(Refusal::Unreadable(why)) => panic!("{request}: {why}"),
    }
}

fn said(payload: &(dyn Any + Send)) -> Option<&str> {
    let owned = payload.downcast_ref::<String>().map(String::as_str);
    owned.or_else(|| payload.downcast_ref::<&str>().copied())
}

// Ends the process when a thread is stuck: it could not be joined.
fn watch(doing: &[Doing]) {
    for (number, doing) in doing.iter().enumerate() {
        let (since, request) = &*doing.lock().unwrap();
        if since.elapsed() > PATIENCE {
            eprintln!("thread {number} is stuck in {request}");
            std::process::abort();
        }
    }
}
