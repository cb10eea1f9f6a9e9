//! What was written yesterday is read today, and what is written today looks as it did yesterday.
//!
//! `tests/golden/disk` has a file for each format: everything that the seeded world leaves in its tables, an entry
//! in a line: the table, the key in hexadecimal digits, and either what an index entry says or the
//! bytes of a record, byte for byte, and the JSON that they stand for.
//!
//! A change of the layout, of a record or of what an operation writes turns
//! [`the_layout_is_as_it_was`] red. If that is meant, and every older file can still be read, then
//! either `FORMAT` was raised, or nothing was released with the present one, and
//!
//! ```text
//! TIDINGS_BLESS=1 cargo test --test laws formats
//! ```
//!
//! writes the file of the present format anew. Files of older formats are never touched.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;
use std::{env, fs};

use serde_json::{Value, json};
use store::layout::{FORMAT, OLDEST_FORMAT};
use store::memory::MemoryStore;
use store::{Key, Store, Table, backfill, encoding};
use testkit::disk::Disk;
use testkit::interposed::{Interposed, Point};
use testkit::tables::{Entry, check_indexes, dump, load, of_plain_worlds, put};
use tidings::preference::PreferencesQuery;
use tidings::subscriber::{Subscriber, SubscriberQuery};
use tidings::{Clock, Engine, ManualClock, RecordingProvider, Scope};

use crate::parsed;
use crate::seeded::{self, ada, entries, made_in, trigger};

#[test]
fn the_layout_is_as_it_was() {
    let path = folder().join(format!("v{FORMAT}.jsonl"));
    let lines: Vec<String> = entries().iter().map(line).collect();
    if env::var_os("TIDINGS_BLESS").is_some() {
        fs::write(&path, lines.join("\n") + "\n").unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap();
    for (number, (line, golden)) in lines.iter().zip(golden.lines()).enumerate() {
        assert_eq!(line, golden, "in line {} of {}", number + 1, path.display());
    }
    assert_eq!(lines.len(), golden.lines().count());
    for table in of_plain_worlds() {
        assert!(entries().iter().any(|(other, ..)| *other == table), "nothing in {}", table.name());
    }
}

#[test]
fn both_backends_write_it() {
    let on_disk = made_in(Interposed::new(Disk::new().open()));
    assert!(dump(&on_disk.store) == entries());
}

#[test]
fn every_version_is_read() {
    for version in OLDEST_FORMAT..=FORMAT {
        let golden = [of_version(version), marks(version)].concat();
        let memory = MemoryStore::default();
        load(&memory, &golden);
        check_reads(&Interposed::new(memory));
        let disk = Disk::new();
        load(&disk.open(), &golden);
        check_reads(&Interposed::new(disk.open()));
    }
}

/// It is searched without the rows that its format did not have, and gets them as soon as it takes writes.
#[test]
fn an_older_store_that_takes_no_writes_is_read() {
    let (store, engine) = older();
    let env = first_environment(&engine);
    let subscribers = env.subscribers().list(&SubscriberQuery::default()).unwrap().data;
    for takes_writes in [false, true] {
        for (subscriber, query) in subscribers.iter().flat_map(searches) {
            if !takes_writes {
                store.fail(Point::Commit, 0);
            }
            check_finds(&env, &query, subscriber);
        }
        let has_mark = dump(&store).iter().any(|(table, ..)| *table == Table::Backfills);
        assert_eq!((has_mark, store.recover()), (!takes_writes, !takes_writes));
    }
    assert_eq!(engine.check().unwrap().findings, []);
}

/// New rows of an older store are damaged before the old ones are there.
#[test]
fn an_older_store_is_repaired() {
    let (store, engine) = older();
    let env = first_environment(&engine);
    let new = parsed(json!({ "subscriberId": "new", "firstName": "New", "phone": "1" }));
    env.subscribers().create(&new).unwrap();
    let names = |table: &Table| *table == Table::NameIndex;
    for (table, key, _) in dump(&store).iter().filter(|(table, ..)| names(table)) {
        put(&store, *table, key, Some(b"damaged"));
    }
    assert_ne!(engine.check().unwrap().findings, []);
    assert!(engine.repair().unwrap().is_finished);
    assert_eq!(engine.check().unwrap().findings, []);
    assert!(dump(&store).iter().all(|(table, ..)| *table != Table::Backfills));
    for subscriber in env.subscribers().list(&SubscriberQuery::default()).unwrap().data {
        check_is_found(&env, &subscriber);
    }
}

/// An entry was lost when the rows of an older format were put, so that its record was passed over.
#[test]
fn a_record_that_was_passed_over_is_repaired() {
    let (store, engine) = older();
    let env = first_environment(&engine);
    let is_entry = |(table, ..): &&Entry| *table == Table::SubscriberIds;
    let (table, key, _) = dump(&store).iter().find(is_entry).cloned().unwrap();
    put(&store, table, &key, None);
    let new = |number: u32| parsed(json!({ "subscriberId": format!("new-{number}") }));
    (0..500).for_each(|number| drop(env.subscribers().create(&new(number)).unwrap()));
    store.fail(Point::Commit, 1);
    env.subscribers().list(&parsed(json!({ "name": "Ada" }))).unwrap();
    assert!(store.recover(), "there are more rows to put");
    let has_mark = || dump(&store).iter().any(|(table, ..)| *table == Table::Backfills);
    assert!(has_mark());
    assert!(engine.repair().unwrap().is_finished);
    assert!(!has_mark());
    assert_eq!(engine.check().unwrap().findings, []);
    for subscriber in env.subscribers().list(&parsed(json!({ "limit": 100 }))).unwrap().data {
        check_is_found(&env, &subscriber);
    }
}

fn older() -> (Interposed, Engine) {
    let store = Interposed::new(MemoryStore::default());
    load(&store, &[of_version(OLDEST_FORMAT), marks(OLDEST_FORMAT)].concat());
    (store.clone(), Engine::builder().build(store))
}

fn first_environment(engine: &Engine) -> Scope {
    let organization = engine.organization("acme").unwrap();
    engine.environment(organization.environments().list().unwrap()[0].id).unwrap()
}

/// Checks that everything in `store` is to be had from an engine over it, and that life goes on from
/// there.
#[track_caller]
fn check_reads(store: &Interposed) {
    check_indexes(store);
    let recorder = RecordingProvider::default();
    let now = seeded::world().clock.now().after(Duration::from_secs(1_000));
    let engine = Engine::builder()
        .clock(ManualClock::at(now))
        .default_provider(recorder.clone())
        .build(store.clone());

    check_reads_back(&engine, store);
    engine.delivery().run_due(usize::MAX).unwrap();
    assert!(!recorder.sent().is_empty(), "what was due is not sent");
    check_indexes(store);
}

/// Checks that the public operations have as many records as there are, and what hangs on them.
#[track_caller]
fn check_reads_back(engine: &Engine, store: &dyn Store) {
    let entries = dump(store);
    let there = |table| entries.iter().filter(|(other, ..)| *other == table).count();
    let organization = engine.organization("acme").unwrap();
    let environments = organization.environments().list().unwrap();
    assert_eq!(environments.len(), there(Table::Environments));
    let env = engine.environment(environments[0].id).unwrap();

    let page = json!({ "limit": 100 });
    let subscribers = env.subscribers().list(&parsed(page.clone())).unwrap().data;
    assert_eq!(subscribers.len(), there(Table::Subscribers));
    for subscriber in &subscribers {
        check_is_found(&env, subscriber);
    }
    assert!(dump(store).iter().all(|(table, ..)| *table != Table::Backfills), "a mark is left");
    let workflows = env.workflows().list(&parsed(page.clone())).unwrap().data;
    assert_eq!(workflows.len(), there(Table::Workflows));
    let deleted = 1;
    assert_eq!(env.integrations().list().unwrap().len() + deleted, there(Table::Integrations));
    let messages = subscribers.iter().flat_map(|subscriber| {
        env.messages().list(&subscriber.subscriber_id, &parsed(page.clone())).unwrap().data
    });
    assert_eq!(messages.count(), there(Table::Messages));
    let notifications = env.notifications().list(&parsed(json!({ "limit": 50 }))).unwrap();
    assert_eq!(notifications.data.len(), there(Table::Notifications));

    let contexts = env.contexts().list(&parsed(page.clone())).unwrap().data;
    assert_eq!(contexts.len(), there(Table::Contexts));
    let connections = env.channel_connections().list(&parsed(page.clone())).unwrap().data;
    assert_eq!(connections.len(), there(Table::ChannelConnections));
    let endpoints = env.channel_endpoints().list(&parsed(page.clone())).unwrap().data;
    assert_eq!(endpoints.len(), there(Table::ChannelEndpoints));
    let topics = env.topics().list(&parsed(page.clone())).unwrap().data;
    assert_eq!(topics.len(), there(Table::Topics));
    let subscriptions = topics.iter().flat_map(|topic| {
        env.topics().subscriptions(&topic.key, &parsed(page.clone())).unwrap().data
    });
    assert_eq!(subscriptions.count(), there(Table::Subscriptions));
    let layouts = env.layouts().list(&parsed(page.clone())).unwrap().data;
    assert_eq!(layouts.len(), there(Table::Layouts));
    let translations = env.translations().list(&parsed(page)).unwrap().data;
    assert_eq!(translations.len(), there(Table::Translations));

    let preferences = env.preferences(ada()).unwrap().get(&PreferencesQuery::default()).unwrap();
    assert!(preferences.global.schedule.is_some());
    assert!(preferences.workflows.iter().any(|workflow| workflow.updated_at.is_some()));
    let mut again = trigger("inbox", json!("ada"));
    again.transaction_id = Some(parsed(json!("first")));
    assert_eq!(env.events().trigger(&again).unwrap().notifications.len(), 2);
}

/// Checks that a subscriber is found by each of its fields.
#[track_caller]
pub(crate) fn check_is_found(env: &Scope, subscriber: &Subscriber) {
    for (_, query) in searches(subscriber) {
        check_finds(env, &query, subscriber);
    }
}

#[track_caller]
fn check_finds(env: &Scope, query: &Value, subscriber: &Subscriber) {
    let found = env.subscribers().list(&parsed(query.clone())).unwrap();
    assert!(found.data.contains(subscriber), "{query}");
}

// A subscriber, and the queries that find it.
fn searches(subscriber: &Subscriber) -> Vec<(&Subscriber, Value)> {
    let profile = &subscriber.profile;
    let fields = [
        ("email", profile.email.as_ref().map(ToString::to_string)),
        ("phone", profile.phone.clone()),
        ("name", profile.first_name.clone()),
        ("name", profile.last_name.as_ref().map(|name| name.to_uppercase())),
    ];
    let query = |(field, value): (&str, Option<String>)| {
        Some((subscriber, json!({ field: value?, "limit": 100 })))
    };
    fields.into_iter().filter_map(query).collect()
}

/// The marks that opening a file of a version leaves.
pub(crate) fn marks(version: u32) -> Vec<Entry> {
    let mark = |mark: Key<_>| (Table::Backfills, mark.as_bytes().to_vec(), Vec::new());
    backfill::marks(version).map(mark).collect()
}

/// The entries of a version.
pub(crate) fn of_version(version: u32) -> Vec<Entry> {
    let path = folder().join(format!("v{version}.jsonl"));
    fs::read_to_string(path).unwrap().lines().map(entry).collect()
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/disk")
}

pub(crate) fn line((table, key, value): &Entry) -> String {
    let (table, key, bytes) = (table.name(), hex(key), hex(value));
    let json = encoding::json(value).ok().and_then(|json| String::from_utf8(json.into()).ok());
    match json.filter(|json| json.starts_with('{')) {
        // The bytes are the text, or are not to be read by a person.
        Some(json) if value[1..] == *json.as_bytes() => {
            format!(r#"{{"table":"{table}","key":"{key}","encoding":1,"value":{json}}}"#)
        }
        Some(json) => {
            format!(r#"{{"table":"{table}","key":"{key}","bytes":"{bytes}","value":{json}}}"#)
        }
        None => format!(r#"{{"table":"{table}","key":"{key}","bytes":"{bytes}"}}"#),
    }
}

pub(crate) fn entry(line: &str) -> Entry {
    let fields: Value = serde_json::from_str(line).unwrap();
    let text = |name: &str| fields[name].as_str().unwrap();
    let table = Table::named(text("table"));
    let value = if fields.get("bytes").is_some() {
        bytes(text("bytes"))
    } else {
        // The text itself: what it was parsed into may be written in another way.
        let (_, rest) = line.split_once(r#","encoding":1,"value":"#).unwrap();
        [b"\x01", rest.strip_suffix('}').unwrap().as_bytes()].concat()
    };
    (table.unwrap(), bytes(text("key")), value)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<char> = hex.chars().collect();
    let byte = |two: &[char]| u8::from_str_radix(&String::from_iter(two), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}
