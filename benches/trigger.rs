//! What a trigger costs: alone and in bulk, with a step that goes into the inbox.
//!
//! ```text
//! cargo bench --bench trigger
//! ```

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use serde_json::json;
use tidings::ids::SubscriberId;
use tidings::store::Store;
use tidings::store::memory::MemoryStore;
use tidings::store::redb::RedbStore;
use tidings::trigger::{Recipient, Recipients, Trigger};
use tidings::{Engine, Scope};

fn triggers(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let redb = || RedbStore::open(folder.path().join("bench.redb")).unwrap();
    trigger(criterion, "trigger, memory", MemoryStore::default());
    trigger(criterion, "trigger, redb", redb());
}

fn trigger(criterion: &mut Criterion, name: &str, store: impl Store) {
    let env = environment(store);
    let mut group = criterion.benchmark_group(name);
    for (notifications, events, recipients) in [(1, 1, 1), (100, 1, 100), (1_000, 100, 10)] {
        group.throughput(Throughput::Elements(notifications));
        let shape = format!("{events} events to {recipients} subscribers");
        group.bench_function(&shape, |bencher| {
            let mut next = 0;
            bencher.iter_batched(
                || bulk(events, recipients, &mut next),
                |bulk| env.events().trigger_bulk(&bulk).unwrap(),
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

fn environment(store: impl Store) -> Scope {
    let engine = Engine::builder().build(store);
    let env = engine.organization("acme").unwrap().development().unwrap();
    let workflow = json!({
        "workflowId": "order-shipped",
        "name": "Order shipped",
        "active": true,
        "steps": [{
            "type": "in_app",
            "template": {
                "subject": "Order {{ payload.order }}",
                "body": "Your order {{ payload.order }} is on its way to {{ payload.city }}.",
            },
        }],
    });
    env.workflows().create(&serde_json::from_value(workflow).unwrap()).unwrap();
    env
}

fn bulk(events: usize, recipients: usize, next: &mut usize) -> Vec<Trigger> {
    let mut recipient = || {
        *next += 1;
        SubscriberId::new(format!("customer-{}", *next % 10_000)).unwrap()
    };
    let mut event = || {
        let to: Vec<Recipient> = (0..recipients).map(|_| recipient().into()).collect();
        let payload = json!({ "order": "A-1042", "city": "Lisbon" });
        let mut trigger = Trigger::new("order-shipped", "customer-0").unwrap();
        trigger.to = Recipients::Many(to);
        trigger.payload(payload).unwrap()
    };
    (0..events).map(|_| event()).collect()
}

criterion_group!(benches, triggers);
criterion_main!(benches);
