//! Many threads make every call at once, workers deliver, and the code of the host panics, with payloads
//! that panic when they are dropped: nothing waits for ever, and indexes, counters and tasks agree with
//! the records at any time.
//!
//! `TIDINGS_STORM` is the length of a storm in seconds, 2 if it is not set. It is longer if not every
//! request was made, or not every callback has panicked.
//! `TIDINGS_STORM=600 cargo test --test laws storm -- --nocapture` prints what happened in it.

use std::any::Any;
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::future::Future;
use std::mem::forget;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use store::memory::MemoryStore;
use tempfile::{TempDir, tempdir};
use testkit::dice::Dice;
use testkit::interposed::Interposed;
use testkit::parsed;
use testkit::requests::{self, Answer, Refusal};
use testkit::seeded::{self, email};
use testkit::tables::check_indexes;
use testkit::world::{Backend, World};
use tidings::credentials::Credentials;
use tidings::error::Invalid;
use tidings::integration::Integration;
use tidings::json::Object;
use tidings::observer::Event;
use tidings::receipt::{InboundRefusal, Receipt};
use tidings::time::Timestamp;
use tidings::vocabulary::Channel;
use tidings::{
    Call, Clock, Delivery, Entropy, Error, Handler, Inbound, InboundReport, IntegrationTestResult,
    ManualClock, Provider, ProviderReceipt, Scope, SendError,
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
            .handler("charge", host.clone())
            .observer(move |_: &Event| observer.may_panic(Callback::Observer, 4))
    });
    host.clock.set(world.clock.now());
    let sound = requests::sound().iter();
    let storm = Storm {
        world: &world,
        host: &host,
        scopes: [world.env.clone(), world.production()],
        folder: tempdir().unwrap(),
        first: sound.clone().filter(|request| !deletes(request)).chain(sound).collect(),
        requests: AtomicUsize::new(0),
    };
    let worker = world.engine.worker().threads(2).start().unwrap();
    let seconds = env::var("TIDINGS_STORM").map_or(2, |seconds| seconds.parse().unwrap());
    let answers = storm.run(Duration::from_secs(seconds));
    host.is_calm.store(true, Relaxed);
    let report = worker.stop(Duration::from_secs(60));
    assert_eq!(report.running, 0);
    println!("{answers:#?}\nthe host has panicked: {:?}\n{report:?}", host.panics.lock().unwrap());
    // A panic, and no failure of the store.
    let unplanned = "the host's code panicked";
    assert!(report.last_error.is_none_or(|error| error == unplanned));
    assert_eq!(world.engine.check().unwrap().findings, []);
    let made = |request: &Value| answers.contains_key(operation(request));
    assert!(requests::sound().iter().all(made), "not every operation was called");
    assert!(host.has_panicked_everywhere(), "not every callback has panicked");
    let done = answers.values().filter(|counts| counts.contains_key("done")).count();
    assert!(done * 2 > answers.len(), "{done} of {} operations were done", answers.len());
}

/// A place at which the engine calls the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Callback {
    Clock,
    Entropy,
    Observer,
    Progress,
    Waker,
    /// The handler of a step.
    Step,
    Send,
    Accept,
    Check,
    Receipts,
}

const CALLBACKS: usize = 10;

/// Code of the host, of which some calls panic.
#[derive(Clone, Debug, Default)]
struct Host {
    clock: ManualClock,
    is_calm: Arc<AtomicBool>,
    raging: Arc<AtomicBool>,
    calls: Arc<AtomicU64>,
    panics: Arc<Mutex<BTreeMap<Callback, u64>>>,
}

/// The payload of a planned panic. Its destructor panics.
struct Planned(Callback);

impl Drop for Planned {
    fn drop(&mut self) {
        resume_unwind(Box::new(Self(self.0)));
    }
}

impl Host {
    fn number(&self, below: usize) -> usize {
        Dice::new(self.calls.fetch_add(1, Relaxed)).below(below)
    }

    fn may_panic(&self, callback: Callback, once_in: usize) {
        let panics = self.raging.load(Relaxed) && !self.is_calm.load(Relaxed);
        if panics && self.number(once_in) == 0 {
            *self.panics.lock().unwrap().entry(callback).or_default() += 1;
            // Without the message of the hook.
            resume_unwind(Box::new(Planned(callback)));
        }
    }

    fn has_panicked_everywhere(&self) -> bool {
        self.panics.lock().unwrap().len() == CALLBACKS
    }
}

impl Clock for Host {
    fn now(&self) -> Timestamp {
        self.may_panic(Callback::Clock, 300);
        self.clock.now()
    }
}

impl Entropy for Host {
    fn fill(&self, bytes: &mut [u8]) {
        self.may_panic(Callback::Entropy, 300);
        for byte in bytes {
            *byte = u8::try_from(self.number(256)).unwrap();
        }
    }
}

impl Wake for Host {
    fn wake(self: Arc<Self>) {
        self.may_panic(Callback::Waker, 2);
    }
}

impl Handler for Host {
    fn call(&self, _: &Call) -> Result<Option<Object>, SendError> {
        self.may_panic(Callback::Step, 2);
        Ok(None)
    }
}

impl Provider for Host {
    fn send(&self, _: &Delivery) -> Result<ProviderReceipt, SendError> {
        self.may_panic(Callback::Send, 8);
        match self.number(8) {
            0 => Err(SendError::retryable("busy")),
            1 => Err(SendError::permanent("no such address")),
            2 => Err(SendError::unknown("no answer")),
            3 => Err(SendError::misconfigured("no password")),
            _ => Ok(ProviderReceipt::with_id("sent")),
        }
    }

    fn accept(&self, _: Channel, _: &Credentials) -> Result<(), Invalid> {
        self.may_panic(Callback::Accept, 8);
        Ok(())
    }

    fn receipts(&self, _: &Inbound<'_>) -> Result<Vec<Receipt>, InboundRefusal> {
        self.may_panic(Callback::Receipts, 4);
        Ok(Vec::new())
    }

    fn check(&self, _: &Integration) -> IntegrationTestResult {
        self.may_panic(Callback::Check, 2);
        IntegrationTestResult::Passed
    }
}

/// What the threads share.
struct Storm<'w> {
    world: &'w World,
    host: &'w Host,
    scopes: [Scope; 2],
    folder: TempDir,
    /// The requests that are made first: those that delete nothing, and then all.
    first: Vec<&'static Value>,
    /// Number of requests that were begun.
    requests: AtomicUsize,
}

/// How often each operation was answered in which way.
type Answers = BTreeMap<String, BTreeMap<String, u64>>;

/// What a thread does, and since when.
type Doing = Mutex<(Instant, String)>;

impl Storm<'_> {
    fn run(&self, span: Duration) -> Answers {
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
            let mut all = Answers::new();
            for (operation, answers) in
                threads.into_iter().flat_map(|thread| thread.join().unwrap())
            {
                for (answer, count) in answers {
                    let counts = all.entry(operation.clone()).or_default();
                    *counts.entry(answer).or_default() += count;
                }
            }
            all
        })
    }

    fn thread(&self, seed: u64, end: Instant, doing: &Doing) -> Answers {
        let mut dice = Dice::new(seed + 1_000);
        let mut answers = Answers::new();
        while Instant::now() < end || !self.has_seen_everything() && Instant::now() < end + PATIENCE
        {
            let request = self.next_request(&mut dice);
            *doing.lock().unwrap() = (Instant::now(), request.to_string());
            let scope = &self.scopes[dice.below(2)];
            let call = || {
                self.call_other(scope, &mut dice);
                requests::call(&self.world.engine, scope, &request)
            };
            let answer = match catch_unwind(AssertUnwindSafe(call)) {
                Ok(answer) => outcome(&request, &answer),
                Err(payload) => {
                    let Some(&Planned(callback)) = payload.downcast_ref() else {
                        panic!("{request}: {:?}", said(&*payload));
                    };
                    forget(payload);
                    let of_callers = [Callback::Clock, Callback::Entropy, Callback::Progress];
                    assert!(of_callers.contains(&callback), "{request}: {callback:?}");
                    "a panic of the host".into()
                }
            };
            let counts = answers.entry(operation(&request).to_owned()).or_default();
            *counts.entry(answer).or_default() += 1;
        }
        *doing.lock().unwrap() = (end.max(Instant::now()) + PATIENCE, String::new());
        answers
    }

    fn has_seen_everything(&self) -> bool {
        self.requests.load(Relaxed) > self.first.len() && self.host.has_panicked_everywhere()
    }

    fn next_request(&self, dice: &mut Dice) -> Value {
        let number = self.requests.fetch_add(1, Relaxed);
        let any = |dice: &mut Dice| &requests::sound()[dice.below(requests::sound().len())];
        let request = self.first.get(number).copied().unwrap_or_else(|| {
            let request = any(dice);
            // There is little to do where everything is deleted soon.
            if deletes(request) && dice.below(8) > 0 { any(dice) } else { request }
        });
        let mut request = request.clone();
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

    // Now and then, a call that is no request.
    fn call_other(&self, scope: &Scope, dice: &mut Dice) {
        let engine = &self.world.engine;
        let goes_on = || {
            self.host.may_panic(Callback::Progress, 20);
            ControlFlow::Continue(())
        };
        match dice.below(200) {
            // What a snapshot shows agrees at any time.
            0 => assert_eq!(engine.check_with(|_| goes_on()).unwrap().findings, []),
            1 => _ = engine.repair_with(|_| goes_on()).unwrap(),
            2 => {
                let copy = MemoryStore::default();
                assert!(engine.copy_to_with(&copy, |_| goes_on()).unwrap().is_finished);
                check_indexes(&copy);
            }
            3 => {
                let path =
                    self.folder.path().join(format!("{}.redb", self.host.number(usize::MAX)));
                let copied = engine.backup_with(&path, |_| goes_on());
                assert!(copied.unwrap().is_finished);
                fs::remove_file(path).unwrap();
            }
            4 => match engine.reseal_with(|_| goes_on()) {
                Ok(_) | Err(Error::Rejected(_)) => {}
                Err(error) => panic!("resealing: {error:?}"),
            },
            5..10 => {
                _ = scope
                    .inbox("ada")
                    .and_then(|inbox| inbox.wait(&inbox.cursor()?, Duration::from_millis(20)));
            }
            10..15 => self.watch(scope),
            15..20 => {
                let event = parsed(json!({ "name": "both", "to": "ada" }));
                _ = scope.events().explain(&event, self.host.clock.now());
            }
            20..25 => Self::charge(scope),
            25..30 => Self::report(scope),
            _ => {}
        }
    }

    // A future that is pending while the inbox changes.
    fn watch(&self, scope: &Scope) {
        let Ok(inbox) = scope.inbox("ada") else { return };
        let Ok(cursor) = inbox.cursor() else { return };
        let waker = Waker::from(Arc::new(self.host.clone()));
        let mut change = Box::pin(inbox.changed(&cursor));
        _ = change.as_mut().poll(&mut Context::from_waker(&waker));
        _ = scope.events().trigger(&parsed(json!({ "name": "inbox", "to": "ada" })));
    }

    // A message that is sent and a step that the handler does, whatever was deleted before.
    fn charge(scope: &Scope) {
        let ada = json!({ "subscriberId": "ada", "email": "ada@example.org" });
        _ = scope.subscribers().upsert(&parsed(ada));
        _ = Self::reporting(scope);
        let steps = [email(), json!({ "type": "custom", "metadata": { "handler": "charge" } })];
        let charge = json!({ "workflowId": "charge", "name": "C", "active": true, "steps": steps });
        _ = scope.workflows().upsert(&parsed(charge));
        _ = scope.events().trigger(&parsed(json!({ "name": "charge", "to": "ada" })));
    }

    // A report of a service, and a test of its integration.
    fn report(scope: &Scope) {
        if let Ok(integration) = Self::reporting(scope) {
            _ = scope.integrations().ingest_inbound(integration.id, &InboundReport::new("[]"));
            _ = scope.integrations().test(integration.id);
        }
    }

    fn reporting(scope: &Scope) -> tidings::Result<Integration> {
        let reporting = json!({
            "identifier": "reporting", "providerId": "ses", "channel": "email", "active": true,
            "configurations":
                { "inboundWebhookEnabled": true, "inboundWebhookSigningKey": "key" },
        });
        scope.integrations().upsert(&parsed(reporting))
    }
}

// The name of the operation that a request asks for.
fn operation(request: &Value) -> &str {
    let name = if request[0] == "idempotent" { &request[2] } else { &request[0] };
    name.as_str().unwrap()
}

fn deletes(request: &Value) -> bool {
    let (_, verb) = operation(request).split_once('.').unwrap();
    ["delete", "erase", "clear", "discard", "sync"].iter().any(|word| verb.starts_with(word))
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
