//! What an inbox costs: its counts, its first page, the unread ones, and marking a message, for a
//! subscriber with 10,000 messages, of which a hundredth is not read. Each of its triggers has another
//! recipient at random.
//!
//! ```text
//! cargo bench --bench inbox
//! ```

use std::iter::repeat_with;

use bench_data::Calls;
use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::{from_value, json};
use store::Store;
use store::memory::MemoryStore;
use store::redb::RedbStore;
use tidings::ids::{MessageId, SubscriberId};
use tidings::message::{MarkAs, Message, MessageQuery};
use tidings::trigger::Trigger;
use tidings::{Engine, Inbox, Scope};

const SEED: u64 = 1;
const OTHERS: usize = 10_000;
const MESSAGES: usize = 10_000;
const UNREAD: usize = 100;
const AT_A_TIME: usize = 100;

fn inboxes(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    inbox(criterion, "memory", MemoryStore::default());
    inbox(criterion, "redb", RedbStore::open(folder.path().join("bench.redb")).unwrap());
}

fn inbox(criterion: &mut Criterion, backend: &str, store: impl Store) {
    let engine = Engine::builder().build(store);
    let env = engine.organization("acme").unwrap().development().unwrap();
    let subscriber: SubscriberId = "ada".try_into().unwrap();
    fill(&env, &subscriber);
    let inbox = env.inbox(&subscriber).unwrap();
    let newest: Vec<MessageId> = list(&inbox, json!({})).iter().map(|one| one.id).collect();

    let mut group = criterion.benchmark_group(format!("inbox of 10,000, {backend}"));
    group.bench_function("counts", |bencher| bencher.iter(|| inbox.counts().unwrap()));
    group.bench_function("first page of 10", |bencher| {
        bencher.iter(|| inbox.list(&MessageQuery::default()).unwrap());
    });
    let unread: MessageQuery = from_value(json!({ "read": false })).unwrap();
    group.bench_function("first 10 unread", |bencher| {
        bencher.iter(|| inbox.list(&unread).unwrap());
    });
    group.bench_function("mark 1 as read and unread", |bencher| {
        bencher.iter(|| {
            inbox.mark_as(&newest[..1], MarkAs::Read).unwrap();
            inbox.mark_as(&newest[..1], MarkAs::Unread).unwrap()
        });
    });
    group.bench_function("mark 10 as read and unread", |bencher| {
        bencher.iter(|| {
            inbox.mark_as(&newest, MarkAs::Read).unwrap();
            inbox.mark_as(&newest, MarkAs::Unread).unwrap()
        });
    });
    group.finish();
}

fn fill(env: &Scope, subscriber: &SubscriberId) {
    for workflow in Calls::workflows() {
        env.workflows().create(&workflow).unwrap();
    }
    let mut calls = Calls::new(SEED, OTHERS);
    let inbox = env.inbox(subscriber).unwrap();
    for start in (0..MESSAGES).step_by(AT_A_TIME) {
        let trigger = || calls.trigger(1).to(subscriber).unwrap();
        let triggers: Vec<Trigger> = repeat_with(trigger).take(AT_A_TIME).collect();
        env.events().trigger_bulk(&triggers).unwrap();
        if start + UNREAD < MESSAGES {
            let messages = list(&inbox, json!({ "limit": AT_A_TIME }));
            let ids: Vec<MessageId> = messages.iter().map(|message| message.id).collect();
            inbox.mark_as(&ids, MarkAs::Read).unwrap();
        }
    }
    assert_eq!(inbox.counts().unwrap().unread, UNREAD);
}

fn list(inbox: &Inbox<'_>, query: serde_json::Value) -> Vec<Message> {
    inbox.list(&from_value(query).unwrap()).unwrap().data
}

criterion_group!(benches, inboxes);
criterion_main!(benches);
