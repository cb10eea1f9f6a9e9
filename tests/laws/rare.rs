//! Fields that no record of the seeded world has, as they are on disk.
//!
//! `tests/golden/disk/v3.rare.jsonl` has a message that is not listed by its own time, and a notification
//! of an event with an actor.
//!
//! ```text
//! TIDINGS_BLESS=1 cargo test --test laws rare
//! ```
//!
//! writes the file anew, if nothing was released with the present format.

use std::path::Path;
use std::{env, fs};

use domain::message::Message;
use domain::notification::Notification;
use domain::time::Timestamp;
use store::layout::FORMAT;
use store::memory::MemoryStore;
use store::{ReadRecords, Record, Table, WriteRecords, read, write};
use testkit::seeded;
use testkit::tables::{Entry, dump, load};

use crate::formats::{entry, line};

#[test]
fn rare_fields_are_as_they_were() {
    let (message, notification) = records();
    let store = MemoryStore::default();
    write(&store, |txn| -> store::Result<()> {
        txn.insert(&message)?;
        txn.insert(&notification)
    })
    .unwrap();
    let is_record = |(table, ..): &Entry| [Table::Messages, Table::Notifications].contains(table);
    let entries: Vec<Entry> = dump(&store).into_iter().filter(is_record).collect();
    let written: String = entries.iter().map(|entry| line(entry) + "\n").collect();
    let file = format!("tests/golden/disk/v{FORMAT}.rare.jsonl");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    if env::var_os("TIDINGS_BLESS").is_some() {
        fs::write(&path, &written).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap();
    assert_eq!(written, golden);
    for name in ["listedAt", "_actorId"] {
        assert!(golden.contains(&format!("\"{name}\":")), "{name} is in no record");
    }

    let stored: Vec<Entry> = golden.lines().map(entry).collect();
    let again = MemoryStore::default();
    load(&again, &stored);
    read(&again, |snapshot| -> store::Result<()> {
        assert_eq!(snapshot.find(&message.key())?.as_ref(), Some(&message));
        assert_eq!(snapshot.find(&notification.key())?.as_ref(), Some(&notification));
        Ok(())
    })
    .unwrap();
}

fn records() -> (Message, Notification) {
    let (world, _) = seeded::fork();
    let mut message = world.records::<Message>().remove(0);
    message.listed_at = Some(Timestamp::from_millis(1_800_000_000_000));
    let mut notification = world.records::<Notification>().remove(0);
    notification.actor_id = Some(notification.subscriber_id);
    (message, notification)
}
