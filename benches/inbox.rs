//! What an inbox costs: its counts, a page with its total, the unread messages deep in it, marks,
//! and how long they hold the writer. Between its messages lie those of 1,000 other subscribers in a
//! random order.
//!
//! ```text
//! cargo bench --bench inbox
//! TIDINGS_INBOX=1000000 cargo bench --bench inbox
//! ```

use std::env;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, criterion_group, criterion_main};
use serde_json::{from_value, json};
use store::memory::MemoryStore;
use store::redb::RedbStore;
use store::{ReadBody, Result, Store, WriteBody};
use tidings::message::{MarkAs, MessageQuery};
use tidings::page::Direction;
use tidings::trigger::Trigger;
use tidings::{Engine, Inbox, Scope};

// Number of messages in the inbox, unless the environment says another.
const MESSAGES: usize = 10_000;
// Number of unread messages, which are the oldest ones.
const UNREAD: usize = 100;
// Number of triggers in a transaction.
const AT_A_TIME: usize = 100;
// Number of other inboxes. Every fourth message belongs to one of them.
const OTHERS: u64 = 1_000;
// One of so many messages has a tag that the others do not have.
const RARE: usize = 500;

fn inboxes(criterion: &mut Criterion) {
    let messages = env::var("TIDINGS_INBOX").map_or(MESSAGES, |text| text.parse().unwrap());
    if messages <= MESSAGES {
        inbox(criterion, messages, "memory", MemoryStore::default());
    }
    let folder = tempfile::tempdir().unwrap();
    let store = RedbStore::open(folder.path().join("bench.redb")).unwrap();
    inbox(criterion, messages, "redb", store);
}

// A store that measures how long a transaction holds the writer.
#[derive(Debug)]
struct Timed<S>(S, AtomicU64);

impl<S: Store> Store for Timed<S> {
    fn read(&self, body: &mut ReadBody<'_>) -> Result<()> {
        self.0.read(body)
    }

    fn write(&self, body: &mut WriteBody<'_>) -> Result<()> {
        self.0.write(&mut |transaction| {
            let start = Instant::now();
            let decision = body(transaction);
            let held = u64::try_from(start.elapsed().as_micros()).unwrap();
            self.1.fetch_max(held, Ordering::Relaxed);
            decision
        })
    }
}

impl<S> Timed<S> {
    // The longest time since the last call.
    fn held(&self) -> Duration {
        Duration::from_micros(self.1.swap(0, Ordering::Relaxed))
    }
}

fn inbox(criterion: &mut Criterion, messages: usize, backend: &str, store: impl Store) {
    let store = Arc::new(Timed(store, AtomicU64::new(0)));
    let engine = Engine::builder().build(Arc::clone(&store));
    let env = engine.organization("acme").unwrap().development().unwrap();
    fill(&env, messages);
    let inbox = env.inbox("ada").unwrap();

    let mut group = criterion.benchmark_group(format!("inbox of {messages}, {backend}"));
    group.bench_function("counts", |bencher| bencher.iter(|| inbox.counts().unwrap()));
    let page = |group: &mut BenchmarkGroup<'_, WallTime>, name: &str, query: MessageQuery| {
        group.bench_function(name, |bencher| {
            bencher.iter(|| black_box(inbox.list(&query).unwrap()));
        });
    };
    page(&mut group, "page of 10 with its total", MessageQuery::default());
    page(&mut group, "page of 20 with its total", MessageQuery::default().limit(20));
    page(&mut group, "page of 10 unread with its total", MessageQuery::default().unread());
    let tagged = MessageQuery::default().unread().tags(["orders"]);
    page(&mut group, "page of 10 unread of a tag with its total", tagged);
    let rare = MessageQuery::default().tags(["refunds"]);
    page(&mut group, "page of 10 of a rare tag with its total", rare.clone());
    let (pages, found) = all(&inbox, &rare);
    println!("{found} messages of a rare tag on {pages} pages");
    group.bench_function("all pages of a rare tag", |bencher| {
        bencher.iter(|| assert_eq!(all(&inbox, &rare), (pages, found)));
    });
    group.bench_function("counts of a tag", |bencher| {
        bencher.iter(|| inbox.counts_of_tag("orders").unwrap());
    });
    let cursor = inbox.cursor().unwrap();
    group.bench_function("changes since the newest cursor", |bencher| {
        bencher.iter(|| inbox.changes_since(&cursor).unwrap());
    });
    let second = inbox.list(&MessageQuery::default()).unwrap().next.unwrap();
    page(&mut group, "second page of 10 with its total", MessageQuery::default().after(&second));
    let newest = [inbox.list(&MessageQuery::default()).unwrap().data[0].id];
    group.bench_function("mark 1 as unread and as read", |bencher| {
        bencher.iter(|| {
            inbox.mark_as(newest, MarkAs::Unread).unwrap();
            inbox.mark_as(newest, MarkAs::Read).unwrap()
        });
    });
    for (name, mark_as) in [("unread", MarkAs::Unread), ("read", MarkAs::Read)] {
        let count = inbox.count(&MessageQuery::default()).unwrap();
        store.held();
        let start = Instant::now();
        let marked = inbox.mark_all(mark_as).unwrap();
        let (took, held) = (start.elapsed(), store.held());
        println!("{marked} of {count:?} marked as {name} in {took:?}, holding the writer {held:?}");
    }
    group.sample_size(10);
    if messages <= MESSAGES {
        group.bench_function("mark all as read and as unread", |bencher| {
            bencher.iter(|| both_ways(&inbox, messages));
        });
    }
    group.finish();
}

// The number of pages of a query, and of the messages on them.
fn all(inbox: &Inbox<'_>, query: &MessageQuery) -> (usize, usize) {
    let (mut pages, mut found, mut next) = (0, 0, Some(query.clone()));
    while let Some(asked) = next {
        let page = inbox.list(&asked).unwrap();
        (pages, found) = (pages + 1, found + page.data.len());
        next = page.next.map(|cursor| query.clone().after(&cursor));
    }
    (pages, found)
}

fn both_ways(inbox: &Inbox<'_>, messages: usize) {
    inbox.mark_all(MarkAs::Read).unwrap();
    assert_eq!(inbox.mark_all(MarkAs::Unread).unwrap(), messages as u64);
}

fn fill(env: &Scope, messages: usize) {
    for (id, tag) in [("order-shipped", "orders"), ("order-refunded", "refunds")] {
        let workflow = json!({
            "workflowId": id,
            "name": id,
            "tags": [tag],
            "steps": [{ "type": "in_app", "template": { "body": "Order {{ payload.order }}" } }],
        });
        env.workflows().create(&from_value(workflow).unwrap()).unwrap();
    }
    let mut random = 1_u64;
    for start in (0..messages).step_by(AT_A_TIME) {
        let triggers = (start..start + AT_A_TIME).flat_map(|order| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let other = format!("subscriber-{}", (random >> 33) % OTHERS);
            let other = order.is_multiple_of(4).then_some(other);
            let recipients = ["ada".to_owned()].into_iter().chain(other);
            recipients.map(move |recipient| {
                let is_rare = order % RARE == RARE / 2;
                let workflow = if is_rare { "order-refunded" } else { "order-shipped" };
                let trigger = Trigger::new(workflow, recipient).unwrap();
                trigger.payload(json!({ "order": order })).unwrap()
            })
        });
        let triggers: Vec<Trigger> = triggers.collect();
        for triggers in triggers.chunks(AT_A_TIME) {
            env.events().trigger_bulk(triggers).unwrap().all().unwrap();
        }
    }
    let inbox = env.inbox("ada").unwrap();
    inbox.mark_all(MarkAs::Read).unwrap();
    let oldest = MessageQuery::default().limit(100).order_direction(Direction::Ascending);
    let oldest = inbox.list(&oldest).unwrap().data;
    inbox.mark_as(oldest.iter().take(UNREAD).map(|one| one.id), MarkAs::Unread).unwrap();
    assert_eq!(inbox.counts().unwrap().unread, UNREAD);
}

criterion_group!(benches, inboxes);
criterion_main!(benches);
