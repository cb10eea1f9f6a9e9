//! The time of a trigger while an event reaches 100,000 subscribers: `cargo bench --bench fan_out`.

use std::time::{Duration, Instant};
use std::{env, thread};

use tidings::step::Step;
use tidings::subscriber::SubscriberCreate;
use tidings::trigger::{Broadcast, Trigger};
use tidings::workflow::WorkflowCreate;
use tidings::{Engine, Scope};

const THREADS: usize = 8;

fn main() {
    // `cargo test --benches` runs it on few subscribers.
    let is_bench = env::args().any(|argument| argument == "--bench");
    let crowd = if is_bench { 100_000 } else { 500 };
    measure("memory", &Engine::in_memory(), crowd);
    let folder = tempfile::tempdir().unwrap();
    measure("file", &Engine::open(folder.path().join("tidings.redb")).unwrap(), crowd);
}

fn measure(name: &str, engine: &Engine, crowd: usize) {
    let env = prepared(engine, crowd);
    let idle = percentiles(triggers(&env, 1_000, || false));
    let accepting = Instant::now();
    let news = Broadcast::new("news").unwrap().transaction_id("news").unwrap();
    env.events().broadcast(&news).unwrap();
    let accepted = accepting.elapsed();
    let (busy, told) = thread::scope(|scope| {
        let telling = scope.spawn(|| {
            let begun = Instant::now();
            while engine.delivery().next_due().unwrap().is_some() {
                engine.delivery().run_due(1).unwrap();
            }
            begun.elapsed()
        });
        let busy = percentiles(triggers(&env, usize::MAX, || telling.is_finished()));
        (busy, telling.join().unwrap())
    });
    assert_eq!(env.events().progress("news").unwrap().created, crowd as u64);
    println!("{name}: {crowd} subscribers told in {told:.1?}, accepted in {accepted:.1?}");
    println!("  a trigger on an idle engine: {idle}");
    println!("  a trigger meanwhile:         {busy}");
}

fn prepared(engine: &Engine, crowd: usize) -> Scope {
    let env = engine.organization("acme").unwrap().development().unwrap();
    for name in ["news", "code"] {
        let step = Step::in_app("Dear {{ subscriber.subscriberId }}").unwrap();
        env.workflows().create(&WorkflowCreate::new(name, name).unwrap().step(step)).unwrap();
    }
    thread::scope(|scope| {
        for part in 0..THREADS {
            let env = &env;
            scope.spawn(move || {
                for number in (part..crowd).step_by(THREADS) {
                    let create = SubscriberCreate::new(format!("s{number}")).unwrap();
                    env.subscribers().create(&create).unwrap();
                }
            });
        }
    });
    env
}

// One trigger each two milliseconds.
fn triggers(env: &Scope, limit: usize, is_over: impl Fn() -> bool) -> Vec<Duration> {
    let mut spans = Vec::new();
    while spans.len() < limit && !is_over() {
        let trigger = Trigger::new("code", format!("s{}", spans.len() % 100)).unwrap();
        let begun = Instant::now();
        env.events().trigger(&trigger).unwrap();
        spans.push(begun.elapsed());
        thread::sleep(Duration::from_millis(2));
    }
    spans
}

fn percentiles(mut spans: Vec<Duration>) -> String {
    spans.sort();
    let at = |percent: usize| {
        let place = spans.len() * percent / 100;
        spans.get(place.min(spans.len().saturating_sub(1))).copied().unwrap_or_default()
    };
    let (median, late, last) = (at(50), at(99), at(100));
    format!("{} calls, median {median:.2?}, p99 {late:.2?}, longest {last:.2?}", spans.len())
}
