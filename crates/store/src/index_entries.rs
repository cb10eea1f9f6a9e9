//! Following index entries one by one, so that one that is damaged does not hide the others.

use std::collections::BTreeSet;
use std::ops::RangeBounds;

use domain::quarantine::Unreadable;

use crate::batch::{Batch, Limit, Row};
use crate::layout::{self, Role};
use crate::record::{Entries, next_part};
use crate::{Bytes, Error, Key, Range, Record, Result, Snapshot, Table, Transaction, list_counts};

/// An index entry, and what it refers to.
#[derive(Debug)]
pub struct Entry<R> {
    /// Key of the entry.
    pub key: Vec<u8>,
    /// What it refers to.
    pub referent: Referent<R>,
}

/// What an index entry refers to.
#[derive(Debug)]
pub enum Referent<R> {
    /// A record that has the entry.
    Record(R),
    /// A record that does not have the entry.
    Other(R),
    /// A record that cannot be read.
    Unreadable(Unreadable),
    /// No record.
    Missing,
}

/// The first entries within a range.
#[derive(Debug)]
pub struct FirstEntries<R> {
    /// The entries, in the order of the index.
    pub entries: Vec<Entry<R>>,
    /// The key of the last one, if there may be others behind it.
    pub next: Option<Vec<u8>>,
}

/// Returns the first `limit` entries of an index within `range`. `target` makes the key of the
/// record from that of the entry: the value of the entry is not used.
///
/// # Errors
///
/// The backend's, and [`Error::Corrupt`] if the index is out of order. A damaged record is a
/// [`Referent`].
pub fn index_entries<R: Record>(
    snapshot: &(impl Snapshot + ?Sized),
    range: &Range<R>,
    limit: usize,
    target: fn(&[u8]) -> Option<Key<R>>,
) -> Result<Vec<Entry<R>>> {
    first_entries(snapshot, range, limit.into(), target).map(|first| first.entries)
}

/// Returns the first entries of an index within `range`, as [`index_entries`] does, up to so many rows, or until
/// the records have so many bytes or some more.
///
/// # Errors
///
/// As [`index_entries`].
pub fn first_entries<R: Record>(
    snapshot: &(impl Snapshot + ?Sized),
    range: &Range<R>,
    limit: Limit,
    target: fn(&[u8]) -> Option<Key<R>>,
) -> Result<FirstEntries<R>> {
    let target = |row: &Row| target(&row.key).map(|key| key.as_bytes().to_vec());
    followed(snapshot, range, limit, target)
}

/// Returns the first `limit` entries within `range`, which are records or lead to records by their
/// values.
///
/// # Errors
///
/// As [`index_entries`].
pub fn dependents<R: Record>(
    snapshot: &(impl Snapshot + ?Sized),
    range: &Range<R>,
    limit: usize,
) -> Result<Vec<Entry<R>>> {
    let is_record = range.table() == R::TABLE;
    let target = |row: &Row| {
        let key = if is_record { row.key.as_slice() } else { row.target(range.table()).key };
        Some(key.to_vec())
    };
    followed(snapshot, range, limit.into(), target).map(|first| first.entries)
}

fn followed<R: Record>(
    snapshot: &(impl Snapshot + ?Sized),
    range: &Range<R>,
    limit: Limit,
    target: impl Fn(&Row) -> Option<Vec<u8>>,
) -> Result<FirstEntries<R>> {
    let Batch { rows, next } = Batch::read(snapshot, range, limit)?;
    let (mut entries, mut seen) = (Vec::with_capacity(rows.len()), 0);
    while let Some(part) = next_part(&rows, (entries.len(), seen), limit.bytes) {
        entries.extend(follow_part(snapshot, range, part, (&target, &mut seen))?);
    }
    let next = if entries.len() < rows.len() {
        entries.last().map(|entry: &Entry<R>| entry.key.clone())
    } else {
        next
    };
    Ok(FirstEntries { entries, next })
}

// Follows some entries, and adds the size of the values that they lead to to `seen`.
fn follow_part<R: Record>(
    snapshot: &(impl Snapshot + ?Sized),
    range: &Range<R>,
    rows: &[Row],
    (target, seen): (impl Fn(&Row) -> Option<Vec<u8>>, &mut usize),
) -> Result<Vec<Entry<R>>> {
    let keys: Vec<_> = rows.iter().map(|row| (target(row), &row.key)).collect();
    let targets: Vec<&[u8]> = keys.iter().filter_map(|(target, _)| target.as_deref()).collect();
    let mut values = Vec::with_capacity(targets.len());
    snapshot.get_many(R::TABLE, &targets, &mut |value| {
        *seen += value.map_or(0, <[u8]>::len);
        values.push(value.map(<[u8]>::to_vec));
    })?;
    let mut values = values.into_iter();
    let entries = keys.into_iter().map(|(target, key)| {
        let value = target.as_ref().and_then(|_| values.next().flatten());
        let referent = match target.zip(value) {
            Some((target, value)) => referent(snapshot, range, key, (&target, value))?,
            None => Referent::Missing,
        };
        Ok(Entry { key: key.clone(), referent })
    });
    entries.collect()
}

fn referent<R: Record>(
    snapshot: &(impl Snapshot + ?Sized),
    range: &Range<R>,
    entry: &[u8],
    (target, value): (&[u8], Vec<u8>),
) -> Result<Referent<R>> {
    match snapshot.codec().decode::<R>(target, &value) {
        Ok(record) => {
            let has_entry =
                range.table() == R::TABLE || Entries::has(&record, range.table(), entry);
            Ok(if has_entry { Referent::Record(record) } else { Referent::Other(record) })
        }
        Err(Error::Corrupt { table, source }) => {
            let (key, reason) = (target.to_vec(), source.to_string());
            Ok(Referent::Unreadable(Unreadable { table, key, value, reason }))
        }
        Err(other) => Err(other),
    }
}

/// A search for the index entries of records that cannot be read. Only such a record says which entries it
/// has, so the indexes of its environment are looked through, in steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamageScan {
    table: Table,
    keys: BTreeSet<Vec<u8>>,
    /// Entries that stay, so that the records are found by them.
    kept: Range<Bytes>,
    /// What is left to look through, the next one last.
    left: Vec<Range<Bytes>>,
}

impl DamageScan {
    /// A search for the entries of the records among `found` that cannot be read, but for those within
    /// `range`. Returns `None` if there are no such records, or no indexes of their table.
    pub fn of<R: Record>(found: &[Entry<R>], range: &Range<R>) -> Option<Self> {
        let keys: BTreeSet<Vec<u8>> = found.iter().filter_map(Entry::unreadable).cloned().collect();
        let environments = keys.iter().filter_map(|key| layout::environment_of(R::TABLE, key));
        let environments: BTreeSet<_> = environments.collect();
        let ranges = environments.into_iter().flat_map(layout::ranges_of);
        let left: Vec<_> =
            ranges.filter(|range| range.table().role() == Role::IndexOf(R::TABLE)).collect();
        let kept = Range::of_bytes(range.table(), range.bytes().clone());
        (!left.is_empty()).then_some(Self { table: R::TABLE, keys, kept, left })
    }

    /// Returns `true` if all indexes were looked through.
    pub fn is_over(&self) -> bool {
        self.left.is_empty()
    }

    /// Returns `true` if this is a search for the entries of all records that `other` searches for.
    pub fn covers(&self, other: &Self) -> bool {
        self.table == other.table && other.keys.is_subset(&self.keys)
    }

    /// Looks at `most` entries at most, and removes those that lead to the records.
    pub fn step(&mut self, transaction: &mut dyn Transaction, mut most: usize) -> Result<()> {
        while most > 0
            && let Some(range) = self.left.pop()
        {
            let index = range.table();
            let Batch { rows, next } = Batch::read(&*transaction, &range, most)?;
            for row in rows.iter().filter(|row| self.is_wanted(index, row)) {
                list_counts::forget(transaction, index, &row.key)?;
                transaction.delete(index, &row.key)?;
            }
            self.left.extend(next.map(|last| range.resumed(&last)));
            most -= rows.len();
        }
        Ok(())
    }

    fn is_wanted(&self, index: Table, row: &Row) -> bool {
        let is_kept = self.kept.table() == index && self.kept.bytes().contains(&row.key);
        !is_kept && self.keys.contains(row.target(index).key)
    }
}

impl<R: Record> Entry<R> {
    /// The key of the record, if that cannot be read.
    fn unreadable(&self) -> Option<&Vec<u8>> {
        match &self.referent {
            Referent::Unreadable(unreadable) => Some(&unreadable.key),
            Referent::Record(_) | Referent::Other(_) | Referent::Missing => None,
        }
    }

    /// The record that has the entry. Returns `None` if it has none.
    pub fn record(self) -> Option<R> {
        match self.referent {
            Referent::Record(record) => Some(record),
            Referent::Other(_) | Referent::Unreadable(_) | Referent::Missing => None,
        }
    }

    /// Removes the entry, and the record if it cannot be read. A record that can be read and does
    /// not have the entry gets the entries that it has.
    pub fn take_out(&self, transaction: &mut dyn Transaction, index: &Range<R>) -> Result<()> {
        list_counts::forget(transaction, index.table(), &self.key)?;
        transaction.delete(index.table(), &self.key)?;
        match &self.referent {
            Referent::Unreadable(unreadable) => transaction.delete(R::TABLE, &unreadable.key),
            Referent::Record(record) | Referent::Other(record) => {
                let key = record.key();
                Entries::of(record).iter().try_for_each(|entry| {
                    let (index, place) = (entry.key.table(), entry.key.as_bytes());
                    list_counts::forget(transaction, index, place)?;
                    transaction.put(index, place, &entry.value(&key))
                })
            }
            Referent::Missing => Ok(()),
        }
    }
}
