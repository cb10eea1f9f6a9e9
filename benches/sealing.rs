//! What sealed records cost: durable triggers and pages of an inbox, plain and sealed, in turn.
//!
//! ```text
//! cargo bench --bench sealing
//! ```

use std::hint::black_box;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use bench_data::Calls;
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use tidings::message::MessageQuery;
use tidings::sealing::{Keyring, SealingKey};
use tidings::store::redb::RedbStore;
use tidings::trigger::Trigger;
use tidings::{Engine, Scope};

const SEED: u64 = 1;
const SUBSCRIBERS: usize = 1_000;
const BEFORE: usize = 20_000;

fn sealing(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    for (name, keys) in [("plain", &[][..]), ("sealed", &[1])] {
        let engine = engine(&folder.path().join(name), keys);
        measure(criterion, name, filled(&engine));
    }
    reseal(&folder.path().join("sealed"));
}

fn measure(criterion: &mut Criterion, name: &str, (env, mut calls): (Scope, Calls)) {
    let mut group = criterion.benchmark_group(name);
    group.bench_function("trigger, one subscriber", |bencher| {
        bencher.iter_batched(
            || calls.trigger(1),
            |trigger| env.events().trigger(&trigger).unwrap(),
            BatchSize::SmallInput,
        );
    });
    let inbox = env.inbox("reader").unwrap();
    let page = MessageQuery::default();
    group.bench_function("page of an inbox", |bencher| {
        bencher.iter(|| black_box(inbox.list(&page).unwrap().data.len()));
    });
    group.finish();
}

// Seals everything with another key.
fn reseal(path: &Path) {
    let engine = engine(path, &[2, 1]);
    let (start, mut longest, mut last) = (Instant::now(), 0, Instant::now());
    let report = engine.reseal_with(|_| {
        longest = longest.max(last.elapsed().as_micros());
        last = Instant::now();
        ControlFlow::Continue(())
    });
    let (took, report) = (start.elapsed(), report.unwrap());
    println!("{} records sealed anew in {took:?}, {longest} µs a step at most", report.resealed);
}

fn engine(path: &Path, keys: &[u8]) -> Engine {
    let key = |id: &u8| (u32::from(*id), SealingKey::from_bytes([*id; 32]));
    let mut keys = keys.iter().map(key);
    let ring = keys.next().map(|(id, key)| {
        keys.fold(Keyring::new(id, key), |ring, (id, key)| ring.and_old(id, key).unwrap())
    });
    let store = RedbStore::open(path).unwrap();
    match ring {
        Some(ring) => Engine::builder().sealing(ring).build(store),
        None => Engine::builder().build(store),
    }
}

fn filled(engine: &Engine) -> (Scope, Calls) {
    let env = engine.organization("acme").unwrap().development().unwrap();
    for workflow in Calls::workflows() {
        env.workflows().create(&workflow).unwrap();
    }
    let mut calls = Calls::new(SEED, SUBSCRIBERS);
    for _ in 0..BEFORE / 5_000 {
        let bulk: Vec<_> = (0..50).map(|_| calls.trigger(100)).collect();
        env.events().trigger_bulk(&bulk).unwrap().all().unwrap();
    }
    for _ in 0..200 {
        let mut to_reader = calls.trigger(1);
        to_reader.to = Trigger::new("any", "reader").unwrap().to;
        env.events().trigger(&to_reader).unwrap();
    }
    (env, calls)
}

criterion_group!(benches, sealing);
criterion_main!(benches);
