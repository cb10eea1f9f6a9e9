//! Records on top of bytes: encoding, and keeping indexes in step.

use std::ops::ControlFlow;

use domain::page::{Page, PageRequest};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::encoding;
use crate::pages::{self, List};
use crate::{
    Decision, Error, Key, KeyRange, Order, Prefix, Result, Snapshot, Store, Table, Transaction,
};

/// Something that is kept in a table of its own.
pub trait Record: Serialize + DeserializeOwned + PartialEq {
    /// The table that it is kept in.
    const TABLE: Table;

    /// The key that it is kept under.
    fn key(&self) -> Key;

    /// How many bytes of the store it takes when it has grown up, about. Nothing for what does not
    /// grow.
    fn room(&self) -> usize {
        0
    }

    /// Adds the index entries that lead to it.
    fn index(&self, _entries: &mut Entries) {}
}

/// The index entries that lead to one record.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Entries(Vec<(Table, Key)>);

impl Entries {
    /// Adds one entry.
    pub fn add(&mut self, index: Table, key: Key) {
        self.0.push((index, key));
    }

    /// Those that lead to `record`.
    pub fn of<R: Record>(record: &R) -> Self {
        let mut entries = Self::default();
        record.index(&mut entries);
        entries
    }

    fn has(&self, index: Table, key: &[u8]) -> bool {
        self.iter().any(|(other, entry)| other == index && entry.as_bytes() == key)
    }

    /// Each index and the key in it.
    pub fn iter(&self) -> impl Iterator<Item = (Table, &Key)> {
        self.0.iter().map(|(index, key)| (*index, key))
    }
}

/// Shows `body` one fixed view of `store`, and returns what it makes of it.
pub fn read<T, E: From<Error>>(
    store: &dyn Store,
    mut body: impl FnMut(&dyn Snapshot) -> Result<T, E>,
) -> Result<T, E> {
    let mut outcome = None;
    store.read(&mut |snapshot| {
        outcome = Some(body(snapshot));
        Ok(())
    })?;
    outcome.unwrap_or_else(|| Err(not_run().into()))
}

/// Runs `body` in a transaction on `store`. Its changes are made unless it returns an error.
pub fn write<T, E: From<Error>>(
    store: &dyn Store,
    mut body: impl FnMut(&mut dyn Transaction) -> Result<T, E>,
) -> Result<T, E> {
    let mut outcome = None;
    store.write(&mut |transaction| {
        let result = body(transaction);
        let decision = if result.is_ok() { Decision::Commit } else { Decision::Abort };
        outcome = Some(result);
        Ok(decision)
    })?;
    outcome.unwrap_or_else(|| Err(not_run().into()))
}

/// Reading records. Every [`Snapshot`] and every [`Transaction`] can; nobody implements this.
pub trait ReadRecords: Snapshot {
    /// The record under `key`.
    fn find<R: Record>(&self, key: &Key) -> Result<Option<R>> {
        find(self, key.as_bytes())
    }

    /// The record that the entry of `index` under `key` leads to.
    fn find_by<R: Record>(&self, index: Table, key: &Key) -> Result<Option<R>> {
        let mut target = None;
        self.get(index, key.as_bytes(), &mut |bytes| target = Some(bytes.to_vec()))?;
        target.map(|target| follow(self, index, key.as_bytes(), &target)).transpose()
    }

    /// Whether there is an entry under `key`.
    fn contains(&self, table: Table, key: &Key) -> Result<bool> {
        self.get(table, key.as_bytes(), &mut |_| {})
    }

    /// How many entries share `prefix`, counting to `limit` at most.
    fn count(&self, table: Table, prefix: &Prefix, limit: usize) -> Result<usize> {
        let mut count = 0;
        self.scan(table, &prefix.range(), Order::Ascending, &mut |_, _| {
            count += 1;
            if count < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok(count)
    }

    /// The keys of the records that the entries of `index` sharing `prefix` lead to.
    fn targets(&self, index: Table, prefix: &Prefix) -> Result<Vec<Key>> {
        let mut targets = Vec::new();
        self.scan(index, &prefix.range(), Order::Ascending, &mut |_, target| {
            targets.push(Key::stored(target));
            ControlFlow::Continue(())
        })?;
        Ok(targets)
    }

    /// The record under `target`, which an entry of `index` leads to.
    fn follow<R: Record>(&self, index: Table, target: &Key) -> Result<R> {
        find(self, target.as_bytes())?.ok_or_else(|| dangling(index))
    }

    /// Every record whose entry in `table` shares `prefix`. The table is the record's own, or one
    /// of its indexes.
    fn all<R: Record>(&self, table: Table, prefix: &Prefix) -> Result<Vec<R>> {
        let mut records = Vec::new();
        self.each(table, &prefix.range(), Order::Ascending, |_, record| {
            records.push(record);
            ControlFlow::Continue(())
        })?;
        Ok(records)
    }

    /// Shows `visit` the records whose entries in `table` are within `range`, in `order`, until it
    /// breaks, each with the key of its entry.
    fn each<R: Record>(
        &self,
        table: Table,
        range: &KeyRange,
        order: Order,
        mut visit: impl FnMut(&[u8], R) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut failure = None;
        self.scan(table, range, order, &mut |key, value| match follow(self, table, key, value) {
            Ok(record) => visit(key, record),
            Err(error) => {
                failure = Some(error);
                ControlFlow::Break(())
            }
        })?;
        failure.map_or(Ok(()), Err)
    }

    /// The page of `list` that `request` asks for.
    fn page<R: Record>(&self, list: &List<'_, R>, request: &PageRequest) -> Result<Page<R>> {
        pages::page(self, list, request)
    }
}

impl<S: Snapshot + ?Sized> ReadRecords for S {}

/// Writing records, with their index entries. Every [`Transaction`] can; nobody implements this.
pub trait WriteRecords: Transaction {
    /// Stores a record under a key that is free.
    fn insert<R: Record>(&mut self, record: &R) -> Result<()> {
        let key = record.key();
        self.put(R::TABLE, key.as_bytes(), &encode(record)?)?;
        for (index, entry) in Entries::of(record).iter() {
            self.put(index, entry.as_bytes(), key.as_bytes())?;
        }
        Ok(())
    }

    /// Stores `new` where `old` was, if it says anything else. Both have the same key.
    fn replace<R: Record>(&mut self, old: &R, new: &R) -> Result<()> {
        if old == new {
            return Ok(());
        }
        let key = new.key();
        if old.key() != key {
            return Err(corrupt(R::TABLE, "a record keeps its key"));
        }
        self.put(R::TABLE, key.as_bytes(), &encode(new)?)?;
        let (before, after) = (Entries::of(old), Entries::of(new));
        for (index, entry) in before.0.iter().filter(|entry| !after.0.contains(entry)) {
            self.delete(*index, entry.as_bytes())?;
        }
        for (index, entry) in after.0.iter().filter(|entry| !before.0.contains(entry)) {
            self.put(*index, entry.as_bytes(), key.as_bytes())?;
        }
        Ok(())
    }

    /// Removes a record.
    fn remove<R: Record>(&mut self, record: &R) -> Result<()> {
        for (index, entry) in Entries::of(record).iter() {
            self.delete(index, entry.as_bytes())?;
        }
        self.delete(R::TABLE, record.key().as_bytes())
    }
}

impl<T: Transaction + ?Sized> WriteRecords for T {}

fn find<R: Record>(snapshot: &(impl Snapshot + ?Sized), key: &[u8]) -> Result<Option<R>> {
    let mut record = None;
    snapshot.get(R::TABLE, key, &mut |bytes| record = Some(decode(key, bytes)))?;
    record.transpose()
}

// The record that an entry of `table` stands for or leads to.
pub(crate) fn follow<R: Record>(
    snapshot: &(impl Snapshot + ?Sized),
    table: Table,
    key: &[u8],
    value: &[u8],
) -> Result<R> {
    if table == R::TABLE {
        return decode(key, value);
    }
    let record = find(snapshot, value)?;
    // An entry that leads to a record which does not have it may lead out of its scope.
    record.filter(|record| Entries::of(record).has(table, key)).ok_or_else(|| dangling(table))
}

fn encode<R: Record>(record: &R) -> Result<Vec<u8>> {
    let json = serde_json::to_vec(record).map_err(|source| corrupt(R::TABLE, source))?;
    Ok(encoding::encode_with_room(&json, record.room()))
}

// The record of an entry in its own table. One that says of itself that it lies elsewhere is not
// to be believed: its scope may be wrong.
pub(crate) fn decode<R: Record>(key: &[u8], value: &[u8]) -> Result<R> {
    let json = encoding::decode(value).map_err(|source| corrupt(R::TABLE, source))?;
    let record: R = serde_json::from_slice(&json).map_err(|source| corrupt(R::TABLE, source))?;
    if record.key().as_bytes() != key {
        return Err(corrupt(R::TABLE, "it belongs under another key"));
    }
    Ok(record)
}

pub(crate) fn corrupt(
    table: Table,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> Error {
    Error::Corrupt { table: table.name(), source: source.into() }
}

fn dangling(index: Table) -> Error {
    corrupt(index, "an entry leads nowhere")
}

fn not_run() -> Error {
    let source = "it returned without running the body".into();
    Error::Backend { backend: "store", action: "run a transaction", source }
}
