//! Copies of a store: one snapshot of it, in another store.
//!
//! The copy is compared with the snapshot, by a count and a hash for each table. The environments come
//! last, behind the comparison and in one transaction, so that an unfinished copy shows none of the
//! records. The next copy goes on with it: what is there already is not written again.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::range::EVERYTHING;
use crate::{
    Decision, Error, KeyRange, OnProgress, Order, Progress, Result, Snapshot, Store, Table,
    Transaction, records,
};

/// Bytes of entries behind which a transaction takes no other one.
const BYTES: usize = 1 << 20;

/// Number of entries that a transaction takes at most.
const ENTRIES: usize = 4_096;

/// Result of a copy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
#[must_use = "it says whether the copy is finished"]
pub struct Copied {
    /// The number of entries of all tables.
    pub entries: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// The tables that have entries.
    pub tables: Vec<CopiedTable>,
    /// `true` if everything was copied and is as in its origin; `false` if `progress` has ended the
    /// copy.
    pub is_finished: bool,
}

/// A table of a copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CopiedTable {
    /// The name of the table.
    pub table: &'static str,
    /// The number of its entries.
    pub entries: u64,
    /// SHA-256 of its keys and values, in the order of the keys.
    pub sha256: [u8; 32],
}

/// Copies one snapshot of `from` into `to`, while others read and write `from`. Nothing else may
/// write to `to` meanwhile. Calls `progress` after each transaction, and ends if it breaks. A copy that
/// was interrupted is started again, with the snapshot of that time.
///
/// # Errors
///
/// [`Error::TargetInUse`] if `to` has environments; [`Error::UnfinishedCopy`] if `from` is one;
/// [`Error::CopyDiffers`] if the copy is not as its origin; otherwise the errors of both stores.
pub fn copy(
    from: &dyn Store,
    to: &dyn Store,
    mut progress: impl FnMut(Progress) -> ControlFlow<()>,
) -> Result<Copied> {
    let in_use = records::read(to, |target| has_rows(target, Table::Environments))?;
    if in_use {
        return Err(Error::TargetInUse);
    }
    records::read(from, |snapshot| {
        check_source(snapshot)?;
        copy_snapshot(snapshot, to, &mut progress)
    })
}

/// Makes the entries of `to` those of `snapshot`.
pub(crate) fn copy_snapshot(
    snapshot: &dyn Snapshot,
    to: &dyn Store,
    progress: &mut OnProgress<'_>,
) -> Result<Copied> {
    let mut run = Run { snapshot, to, progress, copied: Copied::default() };
    run.copied.is_finished = run.all_tables()?.is_continue();
    Ok(run.copied)
}

/// Returns `true` if `snapshot` has all entries of `part`.
#[cfg(feature = "redb")]
pub(crate) fn has_all_of(snapshot: &dyn Snapshot, part: &dyn Snapshot) -> Result<bool> {
    for table in Table::ALL {
        let mut start = Bound::Unbounded;
        loop {
            let entries = batch(part, table, &(start, Bound::Unbounded))?;
            let Some((last, _)) = entries.last() else { break };
            start = Bound::Excluded(last.clone());
            let keys: Vec<&[u8]> = entries.iter().map(|(key, _)| key.as_slice()).collect();
            let mut values = entries.iter().map(|(_, value)| value.as_slice());
            let mut has_all = true;
            snapshot.get_many(table, &keys, &mut |value| has_all &= value == values.next())?;
            if !has_all {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Fails if a store has rows of environments, and none of their records: a copy writes those last. Marks and
/// the quarantine have rows also without environments.
pub(crate) fn check_source(snapshot: &dyn Snapshot) -> Result<()> {
    let others = [Table::Environments, Table::Seals, Table::Backfills, Table::Quarantine];
    if has_rows(snapshot, Table::Environments)? {
        return Ok(());
    }
    for table in Table::ALL.into_iter().filter(|table| !others.contains(table)) {
        if has_rows(snapshot, table)? {
            return Err(Error::UnfinishedCopy);
        }
    }
    Ok(())
}

fn has_rows(snapshot: &dyn Snapshot, table: Table) -> Result<bool> {
    let mut found = false;
    snapshot.scan(table, &EVERYTHING, Order::Ascending, Some(1), &mut |_, _| {
        found = true;
        ControlFlow::Break(())
    })?;
    Ok(found)
}

struct Run<'r> {
    snapshot: &'r dyn Snapshot,
    to: &'r dyn Store,
    progress: &'r mut OnProgress<'r>,
    copied: Copied,
}

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

impl Run<'_> {
    fn all_tables(&mut self) -> Result<ControlFlow<()>> {
        for table in tables_but_environments() {
            if self.table(table)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        if self.compare()?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        self.environments()
    }

    fn table(&mut self, table: Table) -> Result<ControlFlow<()>> {
        let (mut sum, mut start) = (Sum::default(), Bound::Unbounded);
        loop {
            let (entries, end) = self.step(table, start)?;
            sum.add(&entries);
            if self.tell(table, false, &entries).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            let Some(end) = end else { break };
            start = Bound::Excluded(end);
        }
        self.copied.tables.extend(sum.ended(table));
        Ok(ControlFlow::Continue(()))
    }

    /// Copies the next entries in one transaction, up to the end of the next batch of the origin or of the
    /// target, whichever comes first. Returns the entries, and the key of that end unless it is the end of
    /// the table.
    fn step(&self, table: Table, start: Bound<Vec<u8>>) -> Result<(Entries, Option<Vec<u8>>)> {
        let mut entries = batch(self.snapshot, table, &(start.clone(), Bound::Unbounded))?;
        let last = last_key(&entries);
        let range = (start, last.clone().map_or(Bound::Unbounded, Bound::Included));
        let mut end = None;
        let is_within =
            |end: &Option<Vec<u8>>, key: &Vec<u8>| end.as_ref().is_none_or(|end| key <= end);
        self.to.write(&mut |transaction| {
            let before = batch(&*transaction, table, &range)?;
            end = if is_full(&before) { last_key(&before) } else { last.clone() };
            let count = entries.partition_point(|(key, _)| is_within(&end, key));
            replace(transaction, table, before, entries.split_at(count).0)
        })?;
        entries.retain(|(key, _)| is_within(&end, key));
        Ok((entries, end))
    }

    /// Reads the copy again, each batch on a snapshot of its own.
    fn compare(&mut self) -> Result<ControlFlow<()>> {
        let copied = self.copied.clone();
        (self.copied.entries, self.copied.bytes) = (0, 0);
        let expected: BTreeMap<_, _> = copied.tables.iter().map(|it| (it.table, it)).collect();
        for table in tables_but_environments() {
            let (mut sum, mut start) = (Sum::default(), Bound::Unbounded);
            loop {
                let range = (start, Bound::Unbounded);
                let entries = records::read(self.to, |target| batch(target, table, &range))?;
                let Some((last, _)) = entries.last() else { break };
                sum.add(&entries);
                start = Bound::Excluded(last.clone());
                if self.tell(table, true, &entries).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            if sum.ended(table).as_ref() != expected.get(table.name()).copied() {
                return Err(Error::CopyDiffers { table: table.name() });
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Copies the environments and compares them. Nothing ends the copy once they are there.
    fn environments(&mut self) -> Result<ControlFlow<()>> {
        let (table, mut sum) = (Table::Environments, Sum::default());
        let entries = all(self.snapshot, table)?;
        sum.add(&entries);
        if self.tell(table, false, &entries).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        self.to.write(&mut |transaction| {
            let before = all(&*transaction, table)?;
            let decision = replace(transaction, table, before, &entries)?;
            let is_as_in_origin = all(&*transaction, table)? == entries;
            is_as_in_origin.then_some(decision).ok_or(Error::CopyDiffers { table: table.name() })
        })?;
        self.copied.tables.extend(sum.ended(table));
        Ok(ControlFlow::Continue(()))
    }

    fn tell(&mut self, table: Table, is_comparing: bool, entries: &Entries) -> ControlFlow<()> {
        self.copied.entries += count(entries.len());
        self.copied.bytes += count(size(entries));
        let Copied { entries: rows, bytes, .. } = self.copied;
        (self.progress)(Progress { table: table.name(), rows, bytes, is_comparing })
    }
}

/// Count and hash of the entries of a table.
#[derive(Default)]
struct Sum {
    entries: u64,
    hash: Sha256,
}

impl Sum {
    fn add(&mut self, entries: &Entries) {
        self.entries += count(entries.len());
        for part in entries.iter().flat_map(|(key, value)| [key, value]) {
            self.hash.update(count(part.len()).to_le_bytes());
            self.hash.update(part);
        }
    }

    fn ended(self, table: Table) -> Option<CopiedTable> {
        let Self { entries, hash } = self;
        let table = table.name();
        (entries > 0).then(|| CopiedTable { table, entries, sha256: hash.finalize().into() })
    }
}

/// All tables but the environments.
fn tables_but_environments() -> impl Iterator<Item = Table> {
    Table::ALL.into_iter().filter(|table| *table != Table::Environments)
}

/// All entries of a table.
fn all(snapshot: &dyn Snapshot, table: Table) -> Result<Entries> {
    let mut entries = Entries::new();
    snapshot.scan(table, &EVERYTHING, Order::Ascending, None, &mut |key, value| {
        entries.push((key.to_vec(), value.to_vec()));
        ControlFlow::Continue(())
    })?;
    Ok(entries)
}

/// The first entries within `range`, some megabyte of them.
fn batch(snapshot: &dyn Snapshot, table: Table, range: &KeyRange) -> Result<Entries> {
    let (mut entries, mut bytes) = (Entries::new(), 0);
    snapshot.scan(table, range, Order::Ascending, Some(ENTRIES), &mut |key, value| {
        bytes += key.len() + value.len();
        entries.push((key.to_vec(), value.to_vec()));
        if bytes < BYTES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(entries)
}

/// Returns `true` if there may be entries behind those of a [`batch`].
fn is_full(entries: &Entries) -> bool {
    entries.len() >= ENTRIES || size(entries) >= BYTES
}

fn size(entries: &Entries) -> usize {
    entries.iter().map(|(key, value)| key.len() + value.len()).sum()
}

fn last_key(entries: &Entries) -> Option<Vec<u8>> {
    entries.last().map(|(key, _)| key.clone())
}

/// Puts `entries` in the place of the entries `before`.
fn replace(
    transaction: &mut dyn Transaction,
    table: Table,
    before: Entries,
    entries: &[(Vec<u8>, Vec<u8>)],
) -> Result<Decision> {
    let mut others: BTreeMap<_, _> = before.into_iter().collect();
    let mut decision = Decision::Abort;
    for (key, value) in entries {
        if others.remove(key).as_ref() != Some(value) {
            transaction.put(table, key, value)?;
            decision = Decision::Commit;
        }
    }
    for key in others.keys() {
        transaction.delete(table, key)?;
        decision = Decision::Commit;
    }
    Ok(decision)
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
