//! What was written yesterday is read today, and what is written today looks as it did yesterday.
//!
//! `tests/golden/disk/v1.jsonl` is everything that the seeded world leaves in its tables, an entry
//! in a line: the table, the key in hexadecimal digits, and either the key that an index entry
//! leads to or the encoding and the JSON text of a record, byte for byte.
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

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use fuzz::disk::Disk;
use fuzz::facade::{Shared, World};
use fuzz::tables::{Entry, check_indexes, dump, load};
use store::layout::FORMAT;
use store::memory::MemoryStore;
use store::{Store, Table};
use tidings::domain::ids::EnvironmentId;
use tidings::domain::message::MessageQuery;
use tidings::domain::notification::NotificationQuery;
use tidings::domain::page::{PageQuery, Total};
use tidings::domain::preference::PreferencesQuery;
use tidings::domain::subscriber::SubscriberQuery;
use tidings::domain::workflow::WorkflowQuery;
use tidings::{Clock, Engine, ManualClock, Outbox};

use crate::seeded::{self, acme, ada, entries, prepare};

#[test]
fn the_layout_is_as_it_was() {
    let path = folder().join(format!("v{FORMAT}.jsonl"));
    let lines: Vec<String> = entries().iter().map(line).collect();
    if std::env::var_os("TIDINGS_BLESS").is_some() {
        fs::write(&path, lines.join("\n") + "\n").unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap();
    for (number, (line, golden)) in lines.iter().zip(golden.lines()).enumerate() {
        assert_eq!(line, golden, "in line {} of {}", number + 1, path.display());
    }
    assert_eq!(lines.len(), golden.lines().count());
    for table in Table::ALL {
        assert!(entries().iter().any(|(other, ..)| *other == table), "nothing in {}", table.name());
    }
}

#[test]
fn both_backends_write_it() {
    let on_disk = prepare(World::on(fuzz::facade::Backend::Redb(Disk::default())));
    assert!(dump(&on_disk.store) == entries());
}

#[test]
fn every_version_is_read() {
    let files = fs::read_dir(folder()).unwrap().map(|file| file.unwrap().path());
    for path in files {
        let golden: Vec<Entry> = fs::read_to_string(&path).unwrap().lines().map(entry).collect();
        check_reads(&golden, Shared::new(MemoryStore::default()));
        let disk = Disk::default();
        load(&disk.open(), &golden);
        check_reads(&[], Shared::new(disk.open()));
    }
}

/// Checks that everything in `golden` is to be had from an engine over `store`, and that life goes
/// on from there.
#[track_caller]
fn check_reads(golden: &[Entry], store: Shared) {
    load(&store, golden);
    check_indexes(&store);
    let outbox = Outbox::default();
    let now = seeded::world().clock.now().after(std::time::Duration::from_secs(1_000));
    let engine = Engine::builder()
        .clock(ManualClock::at(now))
        .fallback_provider(outbox.clone())
        .build(store.clone());

    assert_eq!(read_through(&engine), records(&store));
    engine.delivery().run_due(usize::MAX).unwrap();
    assert!(!outbox.sent().is_empty(), "what was due is not sent");
    check_indexes(&store);
}

/// How many records there are in each table, as the public operations have it.
fn read_through(engine: &Engine) -> BTreeMap<&'static str, usize> {
    let organization = engine.organization("acme".try_into().unwrap());
    let environments = organization.environments().list().unwrap();
    let id: EnvironmentId = environments[0].id;
    let env = engine.environment(id).unwrap();
    let page = PageQuery { limit: Some(100), ..PageQuery::default() };
    let subscribers = SubscriberQuery { page: page.clone(), ..SubscriberQuery::default() };
    let subscribers = env.subscribers().list(&subscribers).unwrap().data;
    let workflows = WorkflowQuery { page: page.clone(), ..WorkflowQuery::default() };
    let workflows = env.workflows().list(&workflows).unwrap().data;
    let query = MessageQuery { page, ..MessageQuery::default() };
    let messages = subscribers.iter().map(|subscriber| {
        let page = env.messages().list(&subscriber.subscriber_id, &query).unwrap();
        assert_eq!(page.total, Total::Exactly(page.data.len()));
        page.data.len()
    });
    let query = NotificationQuery { limit: Some(50), ..NotificationQuery::default() };
    let notifications = env.notifications().list(&query).unwrap();
    assert!(!notifications.has_more);
    BTreeMap::from([
        ("environments", environments.len()),
        ("subscribers", subscribers.len()),
        ("workflows", workflows.len()),
        ("messages", messages.sum()),
        ("notifications", notifications.data.len()),
    ])
}
