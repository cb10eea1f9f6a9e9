//! Reading and writing records, with their index entries.

use std::ops::ControlFlow;
use std::slice;

use domain::page::{Page, PageRequest};

use crate::pages::{self, List};
use crate::record::{self, Batches, Entries, Record, Row, corrupt, dangling};
use crate::{
    Decision, Error, Key, KeyRange, Order, Prefix, Result, Snapshot, Store, Table, Transaction,
};

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

/// How many index entries are followed at a time.
const AT_A_TIME: usize = 128;

/// Reading records: implemented for every [`Snapshot`] and every [`Transaction`].
pub trait ReadRecords: Snapshot {
    /// The record under `key`. Returns `None` if there is none.
    fn find<R: Record>(&self, key: &Key) -> Result<Option<R>> {
        let mut record = None;
        let key = key.as_bytes();
        self.get(R::TABLE, key, &mut |bytes| record = Some(record::decode(key, bytes)))?;
        record.transpose()
    }

    /// The records under `keys`, in the order of `keys`.
    fn find_many<R: Record>(&self, keys: &[Key]) -> Result<Vec<Option<R>>> {
        let keys: Vec<&[u8]> = keys.iter().map(Key::as_bytes).collect();
        record::find_many(self, &keys)
    }

    /// The record to which the entry of `index` under `key` leads. Returns `None` if there is no
    /// entry.
    fn find_by<R: Record>(&self, index: Table, key: &Key) -> Result<Option<R>> {
        Ok(self.find_many_by(index, slice::from_ref(key))?.pop().flatten())
    }

    /// The records to which the entries of `index` under `keys` lead, in the order of `keys`.
    fn find_many_by<R: Record>(&self, index: Table, keys: &[Key]) -> Result<Vec<Option<R>>> {
        let bytes: Vec<&[u8]> = keys.iter().map(Key::as_bytes).collect();
        let mut rows = Vec::new();
        let mut found = Vec::with_capacity(keys.len());
        let mut rest = keys.iter();
        self.get_many(index, &bytes, &mut |target| {
            let entry = rest.next().zip(target);
            found.push(entry.is_some());
            rows.extend(entry.map(|(key, target)| Row::new(key.as_bytes(), target)));
        })?;
        let mut records = record::follow(self, index, &rows)?.into_iter();
        Ok(found.into_iter().map(|found| found.then(|| records.next()).flatten()).collect())
    }

    /// The records under `keys`, which entries of `index` name, in the order of `keys`.
    fn targets<R: Record>(&self, index: Table, keys: &[Key]) -> Result<Vec<R>> {
        let records = self.find_many(keys)?.into_iter();
        records.map(|record| record.ok_or_else(|| dangling(index))).collect()
    }

    /// Whether there is an entry under `key`.
    fn contains(&self, table: Table, key: &Key) -> Result<bool> {
        self.get(table, key.as_bytes(), &mut |_| {})
    }

    /// The number of entries with `prefix`, at most `limit`.
    fn count(&self, table: Table, prefix: &Prefix, limit: Option<usize>) -> Result<usize> {
        let mut count = 0;
        self.scan(table, &prefix.range(), Order::Ascending, limit, &mut |_, _| {
            count += 1;
            ControlFlow::Continue(())
        })?;
        Ok(count)
    }

    /// The records whose entries in `table` have `prefix`. The table is the records' own, or one of
    /// their indexes.
    fn all<R: Record>(&self, table: Table, prefix: &Prefix) -> Result<Vec<R>> {
        let mut records = Vec::new();
        self.each(table, &prefix.range(), Order::Ascending, |_, record| {
            records.push(record);
            ControlFlow::Continue(())
        })?;
        Ok(records)
    }

    /// The records of the first `limit` entries of `table` within `range`, in `order`.
    fn first<R: Record>(
        &self,
        table: Table,
        range: &KeyRange,
        order: Order,
        limit: usize,
    ) -> Result<Vec<R>> {
        let rows = Batches::new(self, table, range.clone(), order).next(limit)?;
        record::follow(self, table, &rows.unwrap_or_default())
    }

    /// Calls `visit` with the records whose entries in `table` are within `range`, in `order`,
    /// until it breaks. Each comes with the key of its entry.
    fn each<R: Record>(
        &self,
        table: Table,
        range: &KeyRange,
        order: Order,
        mut visit: impl FnMut(&[u8], R) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut batches = Batches::new(self, table, range.clone(), order);
        while let Some(rows) = batches.next(AT_A_TIME)? {
            let records = record::follow(self, table, &rows)?;
            for (row, record) in rows.iter().zip(records) {
                if visit(&row.key, record).is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The page of `list` that `request` asks for.
    fn page<R: Record>(&self, list: &List<'_, R>, request: &PageRequest) -> Result<Page<R>> {
        pages::page(self, list, request)
    }
}

impl<S: Snapshot + ?Sized> ReadRecords for S {}

/// Writing records with their index entries: implemented for every [`Transaction`].
pub trait WriteRecords: Transaction {
    /// Stores a record whose key is free, with its index entries.
    fn insert<R: Record>(&mut self, record: &R) -> Result<()> {
        let key = record.key();
        self.put(R::TABLE, key.as_bytes(), &record::encode(record)?)?;
        for (index, entry) in Entries::of(record).iter() {
            self.put(index, entry.as_bytes(), key.as_bytes())?;
        }
        Ok(())
    }

    /// Stores `new` in place of `old`, which has the same key. Writes nothing if they are equal.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if their keys differ.
    fn replace<R: Record>(&mut self, old: &R, new: &R) -> Result<()> {
        if old == new {
            return Ok(());
        }
        let key = new.key();
        if old.key() != key {
            return Err(corrupt(R::TABLE, "a record keeps its key"));
        }
        self.put(R::TABLE, key.as_bytes(), &record::encode(new)?)?;
        let (before, after) = (Entries::of(old), Entries::of(new));
        for (index, entry) in before.iter().filter(|entry| !after.contains(entry)) {
            self.delete(index, entry.as_bytes())?;
        }
        for (index, entry) in after.iter().filter(|entry| !before.contains(entry)) {
            self.put(index, entry.as_bytes(), key.as_bytes())?;
        }
        Ok(())
    }

    /// Removes a record and its index entries.
    fn remove<R: Record>(&mut self, record: &R) -> Result<()> {
        for (index, entry) in Entries::of(record).iter() {
            self.delete(index, entry.as_bytes())?;
        }
        self.delete(R::TABLE, record.key().as_bytes())
    }
}

impl<T: Transaction + ?Sized> WriteRecords for T {}

fn not_run() -> Error {
    let source = "it returned without running the body".into();
    Error::Backend { backend: "store", action: "run a transaction", source }
}
