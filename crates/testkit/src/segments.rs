//! Any damage of the activity index.

use std::sync::LazyLock;
use std::time::Duration;

use arbitrary::Arbitrary;
use serde_json::{Value, json};
use store::memory::MemoryStore;

use crate::effort::Effort;
use crate::interposed::{Interposed, Point};
use crate::parsed;
use crate::requests;
use crate::seeded;
use crate::tables::{self, Entry, dump, is_activity};
use crate::world::World;

/// Calls of the store that one request may make. A sound index needs less than a tenth.
const CALLS: usize = 20_000;

/// A change of a row of the index.
#[derive(Clone, Debug, Arbitrary)]
pub struct Edit {
    /// Number of the row.
    pub row: u16,
    /// What becomes of its value.
    pub change: Change,
}

/// A change of a value.
#[derive(Clone, Debug, Arbitrary)]
pub enum Change {
    /// These bytes are in its place.
    Value(Vec<u8>),
    /// A bit is the other one.
    Flip(u16, u8),
    /// The bytes from there on are missing.
    Cut(u16),
    /// A number of two bytes is written over others.
    Number(u16, u16),
    /// These bytes come in between.
    Insert(u16, Vec<u8>),
    /// The value of another row is in its place.
    Other(u16),
    /// The row is missing.
    Removed,
}

/// Makes requests that search, count and change the list of notifications, over an index with these
/// changes. Repairs the store in the end.
///
/// # Panics
///
/// If a request panics or makes too many calls of the store, or if the store is not repaired.
pub fn run(edits: &[Edit], effort: Effort) {
    let store = FULL.0.fork();
    for edit in edits.iter().take(8) {
        edit.make(&store);
    }
    let world = world_over(store);
    for request in effort.some_of(&REQUESTS, 1) {
        world.store.stop(Point::Call, CALLS);
        let answer = requests::call(&world.engine, &world.env, request);
        assert!(!world.store.recover(), "{request} has no end: {answer:?}");
    }
    if effort.is_one_of(256) {
        assert!(world.engine.repair().expect("the store can be read and written").is_finished);
        let check = world.engine.check().expect("the store can be read");
        assert_eq!(check.findings, [], "a repair leaves something behind");
    }
}

impl Edit {
    fn make(&self, store: &MemoryStore) {
        let (table, key, value) = row(self.row);
        let mut value = value.clone();
        let at = |at: u16, len: usize| usize::from(at) % (len + 1);
        match &self.change {
            Change::Value(bytes) => value.clone_from(bytes),
            Change::Flip(place, bit) => {
                let place = at(*place, value.len());
                value.iter_mut().skip(place).take(1).for_each(|byte| *byte ^= 1 << (bit % 8));
            }
            Change::Cut(place) => value.truncate(at(*place, value.len())),
            Change::Number(place, number) => {
                let place = at(*place, value.len());
                let bytes = value.iter_mut().skip(place);
                bytes.zip(number.to_le_bytes()).for_each(|(byte, new)| *byte = new);
            }
            Change::Insert(place, bytes) => {
                let place = at(*place, value.len());
                value.splice(place..place, bytes.iter().copied());
            }
            Change::Other(other) => value.clone_from(&row(*other).2),
            Change::Removed => return tables::put(store, *table, key, None),
        }
        tables::put(store, *table, key, Some(&value));
    }
}

fn row(number: u16) -> &'static Entry {
    &FULL.1[usize::from(number) % FULL.1.len()]
}

/// The seeded world with sealed segments, two spans and deleted notifications, and the rows of its
/// index.
static FULL: LazyLock<(MemoryStore, Vec<Entry>)> = LazyLock::new(|| {
    let store = seeded::store();
    let world = world_over(store.clone());
    for n in 0..48 {
        world.clock.advance(Duration::from_secs(1));
        let workflow = ["inbox", "both", "all"][n % 3];
        let to =
            [json!(["ada"]), json!(["bob", "cyd"]), json!(["ada", "bob"])][n % 2 + n / 32].clone();
        let trigger = seeded::trigger(workflow, to).transaction_id(format!("full {n}"));
        world.env.events().trigger(&trigger.expect("an id")).expect("it is sound");
    }
    let list = parsed(json!({ "limit": 50 }));
    let newest = world.env.notifications().list(&list).expect("they are there").data;
    for at in [3, 20, 40] {
        world.env.notifications().delete(newest[at].id).expect("it is there");
    }
    let mut rows = dump(&store);
    rows.retain(|(table, ..)| is_activity(*table));
    (store, rows)
});

fn world_over(store: MemoryStore) -> World {
    let world = seeded::world_over(Interposed::new(store));
    world.clock.advance(Duration::from_secs(1_000));
    world
}

static REQUESTS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    vec![
        json!(["notifications.list", {}]),
        json!(["notifications.list", { "limit": 7, "page": 9 }]),
        json!(["notifications.list", { "subscriberIds": ["ada"], "limit": 50 }]),
        json!(["notifications.list", { "subscriberIds": ["ada", "cyd"], "templates": ["both"] }]),
        json!(["notifications.list", { "emails": "bob@example.org", "channels": ["email"] }]),
        json!(["notifications.list", { "search": "ada", "severity": ["high"] }]),
        json!(["notifications.list", { "contextKeys": ["tenant:acme"] }]),
        json!(["notifications.list", { "topicKey": "prices" }]),
        json!(["notifications.list", { "outcomes": ["waiting", "failed"] }]),
        json!(["notifications.list", {
            "after": "2026-11-21T12:00:03Z", "before": "2026-11-21T12:40:00Z", "limit": 50,
        }]),
        json!(["notifications.count", {}]),
        json!(["notifications.count", { "channels": ["in_app"], "subscriberIds": "bob" }]),
        json!(["notifications.count", { "outcomes": ["delivered", "merged", "canceled"] }]),
        json!(["notifications.count", { "templates": ["inbox"], "after": "2026-11-21T12:00:00Z" }]),
        json!(["notifications.check_index"]),
        json!(["notifications.delete", "$notification 0"]),
        json!(["notifications.delete", "$notification 12"]),
        json!(["notifications.delete_before", "2026-11-21T12:00:06Z"]),
        json!(["notifications.delete_before", "2026-12-01T00:00:00Z"]),
        json!(["events.trigger", { "name": "both", "to": ["ada", "bob"], "payload": { "n": 1 } }]),
        json!(["events.trigger_bulk", vec![json!({ "name": "inbox", "to": "cyd" }); 20]]),
        json!(["subscribers.erase", "ada"]),
        json!(["delivery.run_due", 8]),
        json!(["notifications.rebuild_index"]),
    ]
});
