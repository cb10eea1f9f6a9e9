//! Copies of a store: one snapshot of it, in another store.
//!
//! The copy is compared with the snapshot, by a count and a hash for each table. The environments come
//! last, behind the comparison and in one transaction, so that an unfinished copy shows none of the
//! records. The next copy goes on with it: what is there already is not written again.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::batch::{Batch, Limit, Row};
use crate::range::EVERYTHING;
use crate::{
    Decision, Error, OnProgress, Order, Progress, Range, ReadRecords, Result, Snapshot, Store,
    Table, Transaction, run,
};

/// Size of the entries of one transaction.
const AT_ONCE: Limit = Limit { rows: 4_096, bytes: 1 << 20 };

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
    let in_use = run::read(to, |target| has_rows(target, Table::Environments))?;
    if in_use {
        return Err(Error::TargetInUse);
    }
    run::read(from, |snapshot| {
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
        let range = Range::of_table(table, None);
        let mut batches = crate::batch::Batches::new(part, range, Order::Ascending);
        while let Some(rows) = batches.next(AT_ONCE)? {
            let keys: Vec<&[u8]> = rows.iter().map(|row| row.key.as_slice()).collect();
            let mut values = rows.iter().map(|row| row.value.as_slice());
            let mut has_all = true;
            snapshot.get_many(table, &keys, &mut |value| has_all &= value == values.next())?;
            if !has_all {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Fails if a store has rows of environments, and none of their records: a copy writes those last.
pub(crate) fn check_source(snapshot: &dyn Snapshot) -> Result<()> {
    if has_rows(snapshot, Table::Environments)? {
        return Ok(());
    }
    // Marks and the quarantine have rows also without environments.
    let exempt = [Table::Seals, Table::Backfills, Table::Quarantine];
    for table in Table::ALL.into_iter().filter(|table| !exempt.contains(table)) {
        if has_rows(snapshot, table)? {
            return Err(Error::UnfinishedCopy);
        }
    }
    Ok(())
}

fn has_rows(snapshot: &dyn Snapshot, table: Table) -> Result<bool> {
    snapshot.has_any(&Range::of_table(table, None))
}

struct Run<'r> {
    snapshot: &'r dyn Snapshot,
    to: &'r dyn Store,
    progress: &'r mut OnProgress<'r>,
    copied: Copied,
}

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
        let (mut sum, mut behind) = (Sum::default(), None);
        loop {
            let Batch { rows, next } = self.step(table, behind.as_deref())?;
            sum.add(&rows);
            if self.tell(table, false, &rows).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            behind = next;
            if behind.is_none() {
                break;
            }
        }
        self.copied.tables.extend(sum.ended(table));
        Ok(ControlFlow::Continue(()))
    }

    /// Copies the next entries in one transaction, up to the end of the next batch of the origin or of the
    /// target, whichever comes first.
    fn step(&self, table: Table, behind: Option<&[u8]>) -> Result<Batch> {
        let rest = Range::of_table(table, behind);
        let mut rows = Batch::read(self.snapshot, &rest, AT_ONCE)?.rows;
        let last = rows.last().map(|row| row.key.clone());
        let range = match &last {
            Some(last) => rest.until(last),
            None => rest,
        };
        let mut next = None;
        let is_within =
            |next: &Option<Vec<u8>>, row: &Row| next.as_ref().is_none_or(|next| row.key <= *next);
        self.to.write(&mut |transaction| {
            let before = Batch::read(&*transaction, &range, AT_ONCE)?;
            next = before.next.or_else(|| last.clone());
            let count = rows.partition_point(|row| is_within(&next, row));
            replace(transaction, table, before.rows, rows.split_at(count).0)
        })?;
        rows.retain(|row| is_within(&next, row));
        Ok(Batch { rows, next })
    }

    /// Reads the copy again, each batch on a snapshot of its own.
    fn compare(&mut self) -> Result<ControlFlow<()>> {
        let copied = self.copied.clone();
        (self.copied.entries, self.copied.bytes) = (0, 0);
        let expected: BTreeMap<_, _> = copied.tables.iter().map(|it| (it.table, it)).collect();
        for table in tables_but_environments() {
            let (mut sum, mut range) = (Sum::default(), Range::of_table(table, None));
            loop {
                let rows = run::read(self.to, |target| {
                    Ok::<_, Error>(Batch::read(target, &range, AT_ONCE)?.rows)
                })?;
                let Some(last) = rows.last() else { break };
                sum.add(&rows);
                range = range.resumed(&last.key);
                if self.tell(table, true, &rows).is_break() {
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

    fn tell(&mut self, table: Table, is_comparing: bool, entries: &[Row]) -> ControlFlow<()> {
        self.copied.entries += entries.len() as u64;
        self.copied.bytes += size(entries) as u64;
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
    fn add(&mut self, entries: &[Row]) {
        self.entries += entries.len() as u64;
        for part in entries.iter().flat_map(|Row { key, value }| [key, value]) {
            self.hash.update((part.len() as u64).to_le_bytes());
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
fn all(snapshot: &dyn Snapshot, table: Table) -> Result<Vec<Row>> {
    let mut entries = Vec::new();
    snapshot.scan(table, &EVERYTHING, Order::Ascending, None, &mut |key, value| {
        entries.push(Row::new(key, value));
        ControlFlow::Continue(())
    })?;
    Ok(entries)
}

fn size(rows: &[Row]) -> usize {
    rows.iter().map(Row::size).sum()
}

/// Puts `entries` in the place of the entries `before`.
fn replace(
    transaction: &mut dyn Transaction,
    table: Table,
    before: Vec<Row>,
    entries: &[Row],
) -> Result<Decision> {
    let mut others: BTreeMap<_, _> = before.into_iter().map(|row| (row.key, row.value)).collect();
    let mut decision = Decision::Abort;
    for Row { key, value } in entries {
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::damaged::{Damaged, leading_back};
    use crate::memory::MemoryStore;

    /// A copy has an end if the scans of its origin or of its target lead back to the start of a table.
    #[test]
    fn a_copy_ends_where_a_scan_leads_back() {
        let sound = Arc::new(MemoryStore::default());
        let rows = |store: &MemoryStore, number: u64| {
            run::write(store, |txn| {
                (0..number).try_for_each(|key| txn.put(Table::Topics, &key.to_be_bytes(), b"row"))
            })
            .unwrap();
        };
        rows(&sound, 5_000);
        let damaged = Damaged(Arc::clone(&sound), leading_back);
        let target = Damaged(Arc::new(MemoryStore::default()), leading_back);
        let stores: [(&dyn Store, &dyn Store); 2] =
            [(&damaged, &MemoryStore::default()), (sound.as_ref(), &target)];
        for (from, to) in stores {
            let mut calls = 0;
            let progress = &mut |_| {
                calls += 1;
                if calls < 1_000 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            };
            let copied = run::read(from, |snapshot| copy_snapshot(snapshot, to, progress));
            assert!(matches!(copied, Err(Error::Corrupt { .. })), "{copied:?}");
        }
    }
}
