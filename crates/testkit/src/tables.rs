//! What is in a store: every table, and whether the indexes agree with the records.

use std::collections::BTreeSet;
use std::ops::{Bound, ControlFlow};

use domain::connection::ChannelConnection;
use domain::context::Context;
use domain::endpoint::ChannelEndpoint;
use domain::environment::Environment;
use domain::idempotency::StoredAnswer;
use domain::integration::Integration;
use domain::layout::Layout;
use domain::message::Message;
use domain::notification::Notification;
use domain::preference::SubscriberPreference;
use domain::subscriber::Subscriber;
use domain::subscription::Subscription;
use domain::topic::Topic;
use domain::translation::{Translation, TranslationGroup};
use domain::trigger::AcceptedTrigger;
use domain::workflow::Workflow;
use store::{
    Decision, Entries, KeyRange, Order, ReadRecords, Record, Snapshot, Store, Table, layout,
};
use tidings::Engine;

/// One entry of a table: its key and its value.
pub type Entry = (Table, Vec<u8>, Vec<u8>);

const EVERYTHING: KeyRange = (Bound::Unbounded, Bound::Unbounded);

/// Every entry of every table.
pub fn dump(store: &dyn Store) -> Vec<Entry> {
    try_dump(store).expect("the store can be read")
}

/// Every entry of every table of a store that may be damaged.
pub fn try_dump(store: &dyn Store) -> store::Result<Vec<Entry>> {
    store::read(store, everything)
}

/// Every entry of every table that a snapshot shows.
pub fn everything(snapshot: &dyn Snapshot) -> store::Result<Vec<Entry>> {
    let tables = Table::ALL.iter().map(|table| entries(snapshot, *table));
    Ok(tables.collect::<store::Result<Vec<_>>>()?.concat())
}

/// Every record of a kind.
pub fn records<R: Record>(store: &dyn Store) -> Vec<R> {
    let mut records = Vec::new();
    let read = store::read(store, |snapshot| {
        records.clear();
        snapshot.each(R::TABLE, &EVERYTHING, Order::Ascending, |_, record| {
            records.push(record);
            ControlFlow::Continue(())
        })
    });
    read.expect("the store can be read");
    records
}

/// Puts `entries` into `store`.
pub fn load(store: &dyn Store, entries: &[Entry]) {
    let loaded = store.write(&mut |transaction| {
        for (table, key, value) in entries {
            transaction.put(*table, key, value)?;
        }
        Ok(Decision::Commit)
    });
    loaded.expect("the store can be written to");
}

/// Checks that the entries of the indexes are those that the records have, each leading to its
/// record, that each record lies under its own key, and that the activity index of every
/// environment agrees with the notifications.
#[track_caller]
pub fn check_indexes(store: &(impl Store + Clone)) {
    check_entries(store);
    let engine = Engine::builder().build(store.clone());
    for environment in records::<Environment>(store) {
        let scope = engine.environment(environment.id).expect("it is there");
        let check = scope.notifications().check_index().expect("the index can be read");
        assert_eq!(check.disagreements, [], "in the activity index of {}", environment.name);
    }
}

#[track_caller]
fn check_entries(store: &dyn Store) {
    let (found, expected) = store::read(store, |snapshot| {
        let mut records = Records { snapshot, tables: Vec::new(), entries: BTreeSet::new() };
        records.add::<Environment>()?;
        records.add::<Subscriber>()?;
        records.add::<Workflow>()?;
        records.add::<Integration>()?;
        records.add::<Context>()?;
        records.add::<SubscriberPreference>()?;
        records.add::<ChannelEndpoint>()?;
        records.add::<ChannelConnection>()?;
        records.add::<Topic>()?;
        records.add::<Subscription>()?;
        records.add::<Layout>()?;
        records.add::<Translation>()?;
        records.add::<TranslationGroup>()?;
        records.add::<AcceptedTrigger>()?;
        records.add::<Notification>()?;
        records.add::<Message>()?;
        records.add::<StoredAnswer>()?;
        let mut found = BTreeSet::new();
        let is_index = |table: &&Table| !records.tables.contains(table) && !is_activity(**table);
        for index in Table::ALL.iter().filter(is_index) {
            found.extend(entries(snapshot, *index)?);
        }
        Ok::<_, store::Error>((found, records.entries))
    })
    .expect("the store can be read");
    let missing: Vec<_> = expected.difference(&found).map(show).collect();
    let extra: Vec<_> = found.difference(&expected).map(show).collect();
    assert!(missing.is_empty() && extra.is_empty(), "missing: {missing:#?}\nextra: {extra:#?}");
}

/// Whether the table belongs to the activity index, of which no entry leads to a record by its key.
pub fn is_activity(table: Table) -> bool {
    table == Table::ActivityHeads || layout::ACTIVITY.contains(&table)
}

// The records of the tables that were added, and the index entries that they have.
struct Records<'s> {
    snapshot: &'s dyn Snapshot,
    tables: Vec<Table>,
    entries: BTreeSet<Entry>,
}

impl Records<'_> {
    fn add<R: Record>(&mut self) -> store::Result<()> {
        self.tables.push(R::TABLE);
        let entries = &mut self.entries;
        self.snapshot.each(R::TABLE, &EVERYTHING, Order::Ascending, |key, record: R| {
            let target = record.key();
            assert_eq!(target.as_bytes(), key, "a record of {} has moved", R::TABLE.name());
            for (index, entry) in Entries::of(&record).iter() {
                entries.insert((index, entry.as_bytes().to_vec(), key.to_vec()));
            }
            ControlFlow::Continue(())
        })
    }
}

fn entries(snapshot: &dyn Snapshot, table: Table) -> store::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    snapshot.scan(table, &EVERYTHING, Order::Ascending, None, &mut |key, value| {
        entries.push((table, key.to_vec(), value.to_vec()));
        ControlFlow::Continue(())
    })?;
    Ok(entries)
}

fn show((table, key, target): &Entry) -> String {
    format!("{} {} -> {}", table.name(), key.escape_ascii(), target.escape_ascii())
}
