//! Content of a store: every table, and the agreement of indexes and records.

use std::ops::{Bound, ControlFlow};

use serde_json::Value;
use store::layout::Role;
use store::{
    Decision, KeyRange, Order, Prefix, ReadRecords, Record, Snapshot, Store, Table, encoding,
    layout,
};
use tidings::Engine;

use crate::sealed;

/// One entry of a table: its key and its value.
pub type Entry = (Table, Vec<u8>, Vec<u8>);

const EVERYTHING: KeyRange = (Bound::Unbounded, Bound::Unbounded);

/// Every table of a world without keys, of the present format: marks are in other ones.
pub fn of_plain_worlds() -> Vec<Table> {
    Table::ALL.into_iter().filter(|table| table.role() != Role::Marks).collect()
}

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
    let mut entries = Vec::new();
    for table in Table::ALL {
        snapshot.scan(table, &EVERYTHING, Order::Ascending, None, &mut |key, value| {
            entries.push((table, key.to_vec(), value.to_vec()));
            ControlFlow::Continue(())
        })?;
    }
    Ok(entries)
}

/// Every entry of one table.
pub fn of(store: &dyn Store, table: Table) -> Vec<Entry> {
    let mut entries = dump(store);
    entries.retain(|(of, ..)| *of == table);
    entries
}

/// Every record of a kind.
pub fn records<R: Record>(store: &dyn Store) -> Vec<R> {
    let read = store::read(store, |snapshot| snapshot.all(&Prefix::of_all()));
    read.expect("the store can be read")
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

/// Puts `value` into `store`, or leaves nothing under the key.
pub fn put(store: &dyn Store, table: Table, key: &[u8], value: Option<&[u8]>) {
    let written = store.write(&mut |transaction| {
        match value {
            Some(value) => transaction.put(table, key, value)?,
            None => transaction.delete(table, key)?,
        }
        Ok(Decision::Commit)
    });
    written.expect("the store can be written to");
}

/// The value under a key.
pub fn value(store: &dyn Store, table: Table, key: &[u8]) -> Option<Vec<u8>> {
    let mut value = None;
    let read = store.read(&mut |snapshot| {
        value = None;
        snapshot.get(table, key, &mut |bytes| value = Some(bytes.to_vec())).map(drop)
    });
    read.expect("the store can be read");
    value
}

/// The JSON that a value of a record holds. Returns `None` if there is none.
pub fn decoded(value: &[u8]) -> Option<Value> {
    encoding::json(value).ok().and_then(|json| serde_json::from_slice(&json).ok())
}

/// Checks that `store` has no contradictions, see [`Engine::check`].
#[track_caller]
pub fn check_indexes(store: &(impl Store + Clone)) {
    let builder = sealed::like(store, Engine::builder());
    let check = builder.build(store.clone()).check().expect("the store can be read");
    let findings: Vec<_> = check.findings.iter().map(ToString::to_string).collect();
    assert!(findings.is_empty(), "{findings:#?}");
}

/// Returns `true` if the table belongs to the activity index. No entry of that index leads to a
/// record by its key.
pub fn is_activity(table: Table) -> bool {
    table == Table::ActivityHeads || layout::ACTIVITY.contains(&table)
}
