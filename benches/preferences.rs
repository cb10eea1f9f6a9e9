//! What preferences cost: one decision, all five channels, and all workflows of a subscriber.
//!
//! ```text
//! cargo bench --bench preferences
//! ```

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use domain::condition::Rule;
use domain::preference::{
    ConditionData, Layers, Preference, PreferencesQuery, WorkflowPreferenceUpdate,
    WorkflowPreferenceUpdates, resolve,
};
use domain::vocabulary::Channel;
use serde_json::json;
use tidings::Engine;
use tidings::ids::SubscriberId;
use tidings::store::Store;
use tidings::store::memory::MemoryStore;
use tidings::store::redb::RedbStore;

fn decisions(criterion: &mut Criterion) {
    let all = Preference::default().enabled(true);
    let full = Channel::ALL.iter().fold(all, |full, channel| full.with(*channel, true));
    let silent = Preference::default();
    let layers = Layers {
        definition: Some(&full),
        operator: Some(&silent),
        subscriber_global: Some(&silent),
        subscriber_workflow: Some(&silent),
        ..Layers::default()
    };
    let mut group = criterion.benchmark_group("decision");
    group.bench_function("4 layers, 1 channel", |bencher| {
        bencher.iter(|| resolve(black_box(layers), black_box(Channel::Sms)));
    });
    group.bench_function("4 layers, 5 channels", |bencher| {
        bencher.iter(|| {
            let layers = black_box(layers);
            Channel::ALL.iter().filter(|channel| resolve(layers, **channel).is_enabled()).count()
        });
    });
    let rule = Rule::new(json!({ ">": [{ "var": "payload.amount" }, 100] })).unwrap();
    let conditional = Preference::default().condition(rule).unwrap();
    let data = json!({ "payload": { "amount": 250, "currency": "EUR" } });
    let layers = Layers {
        subscriber_workflow: Some(&conditional),
        data: ConditionData::Known(&data),
        ..layers
    };
    group.bench_function("4 layers, 5 channels, one condition", |bencher| {
        bencher.iter(|| {
            let layers = black_box(layers);
            Channel::ALL.iter().filter(|channel| resolve(layers, **channel).is_enabled()).count()
        });
    });
    group.finish();
}

fn readings(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let mut group = criterion.benchmark_group("100 workflows of a subscriber");
    reading(&mut group, "memory", MemoryStore::default());
    reading(&mut group, "redb", RedbStore::open(folder.path().join("bench.redb")).unwrap());
    group.finish();
}

fn reading(
    group: &mut criterion::BenchmarkGroup<'_, criterion::measurement::WallTime>,
    name: &str,
    store: impl Store,
) {
    let engine = Engine::builder().build(store);
    let env = engine.organization("acme").unwrap().development().unwrap();
    let ada = SubscriberId::new("ada").unwrap();
    env.subscribers()
        .create(&serde_json::from_value(json!({ "subscriberId": "ada" })).unwrap())
        .unwrap();
    let mut update = WorkflowPreferenceUpdates::default();
    for number in 0..100 {
        let workflow = json!({
            "workflowId": format!("workflow-{number}"),
            "name": format!("Workflow {number}"),
            "active": true,
            "steps": [{ "type": "email", "template": { "subject": "Hello", "body": "Hello" } }],
        });
        env.workflows().create(&serde_json::from_value(workflow).unwrap()).unwrap();
        if number % 4 == 0 {
            let off = WorkflowPreferenceUpdate::new(format!("workflow-{number}"));
            update = update.preference(off.with(Channel::Email, false));
        }
    }
    env.preferences(&ada).unwrap().update_bulk(&update).unwrap();
    group.bench_function(name, |bencher| {
        bencher.iter(|| env.preferences(&ada).unwrap().get(&PreferencesQuery::default()).unwrap());
    });
}

criterion_group!(benches, decisions, readings);
criterion_main!(benches);
