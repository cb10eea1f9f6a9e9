//! What a trigger costs: alone and in bulk, with a step that goes into the inbox. Recipients and
//! transaction ids are random, and the store has 35,000 notifications before.
//!
//! ```text
//! cargo bench --bench trigger
//! ```

use bench_data::Calls;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use tidings::store::Store;
use tidings::store::memory::MemoryStore;
use tidings::store::redb::RedbStore;
use tidings::trigger::Trigger;
use tidings::{Engine, Scope};

const SEED: u64 = 1;
const SUBSCRIBERS: usize = 10_000;
const BEFORE: usize = 35_000;

fn triggers(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let redb = || RedbStore::open(folder.path().join("bench.redb")).unwrap();
    trigger(criterion, "trigger, memory", MemoryStore::default());
    trigger(criterion, "trigger, redb", redb());
}

fn trigger(criterion: &mut Criterion, name: &str, store: impl Store) {
    let env = environment(store);
    let mut calls = Calls::new(SEED, SUBSCRIBERS);
    for _ in 0..BEFORE / 5_000 {
        take_in(&env, &bulk(&mut calls, 50, 100));
    }
    let mut group = criterion.benchmark_group(name);
    for (notifications, events, recipients) in [(1, 1, 1), (100, 1, 100), (1_000, 100, 10)] {
        group.throughput(Throughput::Elements(notifications));
        let shape = format!("{events} events to {recipients} subscribers");
        group.bench_function(&shape, |bencher| {
            bencher.iter_batched(
                || bulk(&mut calls, events, recipients),
                |bulk| take_in(&env, &bulk),
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

fn environment(store: impl Store) -> Scope {
    let engine = Engine::builder().build(store);
    let env = engine.organization("acme").unwrap().development().unwrap();
    for workflow in Calls::workflows() {
        env.workflows().create(&workflow).unwrap();
    }
    env
}

fn bulk(calls: &mut Calls, events: usize, recipients: usize) -> Vec<Trigger> {
    (0..events).map(|_| calls.trigger(recipients)).collect()
}

fn take_in(env: &Scope, bulk: &[Trigger]) {
    env.events().trigger_bulk(bulk).unwrap().all().unwrap();
}

criterion_group!(benches, triggers);
criterion_main!(benches);
