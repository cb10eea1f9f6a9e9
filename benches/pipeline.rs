//! What the pipeline costs: turns of delayed notifications, digests of many events, messages handed
//! to a provider, two callers beside one, and the first turn after a file was opened.
//!
//! ```text
//! cargo bench --bench pipeline
//! TIDINGS_DELAYED=1000000 cargo bench --bench pipeline
//! ```
//!
//! Only ratios within one run mean anything.

use std::path::Path;
use std::time::{Duration, Instant};
use std::{env, thread};

use serde_json::json;
use tidings::step::{Delay, DigestWindow, Step};
use tidings::store::Store;
use tidings::store::memory::MemoryStore;
use tidings::store::redb::RedbStore;
use tidings::time::Timestamp;
use tidings::trigger::Trigger;
use tidings::vocabulary::{Channel, TimeUnit};
use tidings::workflow::WorkflowCreate;
use tidings::{Builder, Engine, ManualClock, RecordingProvider, Scope};

const NOTIFICATIONS: u32 = 20_000;
const EVENTS: u32 = 10_000;
const CALLS: u32 = 2_000;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| RedbStore::open(folder.path().join(name)).unwrap();
    turns("memory", MemoryStore::default());
    turns("file", file("turns.redb"));
    sends("memory", MemoryStore::default());
    sends("file", file("sends.redb"));
    digest("memory", MemoryStore::default());
    digest("file", file("digest.redb"));
    callers("memory", || Engine::builder().build(MemoryStore::default()));
    let open = |path: &Path| Engine::builder().open(path).unwrap();
    let mut number = 0;
    callers("file", || {
        number += 1;
        open(&folder.path().join(format!("callers {number}.redb")))
    });
    recovery(&folder.path().join("recovery.redb"));
}

struct World {
    engine: Engine,
    env: Scope,
    clock: ManualClock,
}

// An environment with a workflow `news` of these steps, and a clock that stands still.
fn world(store: impl Store, steps: Vec<Step>, builder: Builder) -> World {
    let clock = ManualClock::at(Timestamp::from_millis(1_800_000_000_000));
    let engine = builder.clock(clock.clone()).build(store);
    let env = environment(&engine, steps);
    World { engine, env, clock }
}

fn environment(engine: &Engine, steps: Vec<Step>) -> Scope {
    let env = engine.organization("acme").unwrap().development().unwrap();
    let workflow = WorkflowCreate::new("news", "News").unwrap();
    env.workflows().create(&steps.into_iter().fold(workflow, WorkflowCreate::step)).unwrap();
    env
}

fn in_app() -> Step {
    Step::in_app("{{ subscriber.subscriberId }}, {{ payload.text }}").unwrap()
}

fn trigger(subscriber: u32) -> Trigger {
    let trigger = Trigger::new("news", format!("subscriber-{}", subscriber % 1_000)).unwrap();
    trigger.payload(json!({ "text": "there is something new", "n": subscriber })).unwrap()
}

fn fill(env: &Scope, notifications: u32) {
    let triggers: Vec<_> = (0..notifications).map(trigger).collect();
    for bulk in triggers.chunks(100) {
        env.events().trigger_bulk(bulk).unwrap().all().unwrap();
    }
}

fn turns(store_name: &str, store: impl Store) {
    let wait = Step::delay(Delay::lasting(1, TimeUnit::Minutes));
    let World { engine, env, clock } = world(store, vec![wait, in_app()], Engine::builder());
    fill(&env, NOTIFICATIONS);
    clock.advance(Duration::from_secs(60));
    let start = Instant::now();
    engine.delivery().run_due(usize::MAX).unwrap();
    say(store_name, "turns that put a message into the inbox", NOTIFICATIONS, start.elapsed());
}

// Opens a file with many delayed notifications, all of which are due by then.
fn recovery(path: &Path) {
    let delayed = env::var("TIDINGS_DELAYED").map_or(100_000, |text| text.parse().unwrap());
    let wait = Step::delay(Delay::lasting(1, TimeUnit::Minutes));
    let steps = vec![wait, in_app()];
    let World { engine, env, clock } =
        world(RedbStore::open(path).unwrap(), steps, Engine::builder());
    fill(&env, delayed);
    drop((engine, env));
    clock.advance(Duration::from_secs(60));
    let start = Instant::now();
    let engine = Engine::builder().clock(clock).open(path).unwrap();
    let opened = start.elapsed();
    engine.delivery().run_due(1).unwrap();
    let first = start.elapsed();
    println!(
        "file: {delayed} delayed notifications, opened in {opened:?}, the first turn {first:?} after the start"
    );
}

fn sends(store_name: &str, store: impl Store) {
    let recorder = RecordingProvider::default();
    let email = Step::email("News", "<p>{{ payload.text }}</p>").unwrap();
    let builder = Engine::builder().default_provider(recorder.clone());
    let World { engine, env, .. } = world(store, vec![email], builder);
    let ses = tidings::integration::IntegrationCreate::new("ses", Channel::Email).unwrap();
    env.integrations().create(&ses).unwrap();
    for number in 0..1_000 {
        let id = format!("subscriber-{number}");
        let subscriber = tidings::subscriber::SubscriberCreate::new(id).unwrap();
        env.subscribers().create(&subscriber.email("a@example.org").unwrap()).unwrap();
    }
    fill(&env, NOTIFICATIONS);
    let start = Instant::now();
    engine.delivery().run_due(usize::MAX).unwrap();
    assert_eq!(recorder.sent().len(), NOTIFICATIONS as usize);
    say(store_name, "messages handed to a provider", NOTIFICATIONS, start.elapsed());
}

fn digest(store_name: &str, store: impl Store) {
    let digest = Step::digest(DigestWindow::new(1, TimeUnit::Hours));
    let World { engine, env, clock } = world(store, vec![digest, in_app()], Engine::builder());
    let mut times = Vec::new();
    for _ in 0..EVENTS {
        let start = Instant::now();
        env.events().trigger(&trigger(0)).unwrap();
        times.push(start.elapsed());
    }
    let median = |times: &[Duration]| {
        let mut times = times.to_vec();
        times.sort_unstable();
        times[times.len() / 2]
    };
    let (first, last) = (median(&times[..1_000]), median(&times[times.len() - 1_000..]));
    clock.advance(Duration::from_secs(3_600));
    let start = Instant::now();
    engine.delivery().run_due(usize::MAX).unwrap();
    println!(
        "{store_name}: a digest of {EVENTS} events: {first:?} for each of the first thousand, \
         {last:?} for each of the last, {:?} to close",
        start.elapsed()
    );
}

fn callers(store_name: &str, mut open: impl FnMut() -> Engine) {
    let mut rate = |threads: u32| {
        let engine = open();
        let env = environment(&engine, vec![in_app()]);
        let start = Instant::now();
        thread::scope(|scope| {
            for number in 0..threads {
                let env = &env;
                scope.spawn(move || {
                    for call in 0..CALLS {
                        env.events().trigger(&trigger(number * CALLS + call)).unwrap();
                    }
                });
            }
        });
        f64::from(threads * CALLS) / start.elapsed().as_secs_f64()
    };
    let (one, two) = (rate(1), rate(2));
    println!(
        "{store_name}: {one:.0} triggers/s by one caller, {two:.0} by two, {:.2} times as many",
        two / one
    );
}

fn say(store_name: &str, what: &str, count: u32, span: Duration) {
    println!("{store_name}: {:.0} {what}/s", f64::from(count) / span.as_secs_f64());
}
