//! Records as bytes, and the index entries that lead to them.

use std::borrow::Cow;

use domain::ids::EnvironmentId;
use domain::message::{Counted, Signature};
use domain::notification::Outcomes;
use domain::observer::Event;
use domain::task::Lane;
use domain::time::Timestamp;
use uuid::Uuid;

use crate::batch::{Batch, Row};
use crate::key::{Bytes, Open, TableOf};
use crate::layout::{CountedList, Target};
use crate::outcomes::Listed;
use crate::stored::{Readable, Stored};
use crate::text_index::IndexedText;
use crate::{Codec, Error, Key, Prefix, Range, Result, Snapshot, Table};

/// A record, which has a table of its own.
pub trait Record: Stored + PartialEq {
    /// The key of the record in its table.
    fn key(&self) -> Key<Self>;

    /// The length in bytes that its value is padded to, so that it can grow in place. The default
    /// is no padding.
    fn reserved_len(&self) -> usize {
        0
    }

    /// Adds the index entries that lead to the record.
    fn index(&self, _entries: &mut Entries<Self>) {}

    /// The texts by whose parts the record is found. Most records have none.
    fn texts(&self) -> Vec<IndexedText> {
        Vec::new()
    }

    /// The counters that count the record, and what they count. Most records are not counted.
    fn counted(&self) -> Option<(Key<Bytes>, Counted)> {
        None
    }

    /// The counted list that has the record, and its id there. Most records are in none.
    fn counted_place(&self) -> Option<CountedPlace> {
        None
    }

    /// What an observer is told of a change of the record. Of most records it is told nothing.
    fn events(_before: Option<&Self>, _after: Option<&Self>) -> Vec<Event> {
        Vec::new()
    }

    /// The outcomes of the record, by its place in the activity list. Only notifications have
    /// outcomes.
    fn outcomes(&self) -> Option<(Listed, Outcomes)> {
        None
    }

    /// The place of the record in a lane. Only tasks are in lanes.
    fn lane(&self) -> Option<LanePlace> {
        None
    }
}

/// A lane, and the time at which a task is due in it. `None` for a task that an integration holds.
pub(crate) type LanePlace = (Lane, Option<Timestamp>);

/// A list whose records are counted, and the id of a record in it.
pub(crate) type CountedPlace = (CountedList, Uuid);

/// Some fields of a record, which are decoded without the others.
pub trait Excerpt: Readable {
    /// The record.
    type Of: Record;

    /// The key of the record in its table.
    fn key(&self, environment: EnvironmentId) -> Key<Self::Of>;

    /// The key of the index entry by which the record is found. The default is that of the record itself.
    fn entry(&self, environment: EnvironmentId) -> Key<Self::Of> {
        self.key(environment)
    }
}

impl<R: Record> Prefix<R> {
    /// The keys of all records of that type, in any environment.
    pub fn of_all() -> Self {
        TableOf::<R, Open>::new(R::TABLE).all()
    }
}

/// The index entries that lead to one record.
#[derive(Debug, PartialEq, Eq)]
pub struct Entries<R> {
    entries: Vec<IndexEntry<R>>,
    /// The only entry that is taken, without its signature, if it is asked whether there is one.
    sought: Option<(Table, Vec<u8>)>,
}

/// An index entry that leads to a record.
#[derive(Debug, PartialEq, Eq)]
pub struct IndexEntry<R> {
    /// Key of the entry.
    pub key: Key<R>,
    /// Signature in the value of the entry. Only those of lists of messages have one.
    pub signature: Option<Signature>,
}

impl<R> IndexEntry<R> {
    /// The value of the entry, if it leads to the record under `target`.
    pub fn value<'k>(&self, target: &'k Key<R>) -> Cow<'k, [u8]> {
        Target { key: target.as_bytes(), signature: self.signature }.to_bytes()
    }
}

impl<R: Record> Entries<R> {
    /// The entries of `record`.
    pub fn of(record: &R) -> Self {
        Self::taken(record, None)
    }

    /// Returns `true` if an entry of `record` in `index` has this key.
    pub(crate) fn has(record: &R, index: Table, key: &[u8]) -> bool {
        !Self::taken(record, Some((index, key.to_vec()))).entries.is_empty()
    }

    fn taken(record: &R, sought: Option<(Table, Vec<u8>)>) -> Self {
        let mut entries = Self { entries: Vec::new(), sought };
        record.index(&mut entries);
        entries
    }

    /// Adds an entry.
    pub fn add(&mut self, key: Key<R>) {
        self.take(key, || None);
    }

    /// Adds an entry with a signature.
    pub(crate) fn add_signed(&mut self, key: Key<R>, signature: impl FnOnce() -> Signature) {
        self.take(key, || Some(signature()));
    }

    fn take(&mut self, key: Key<R>, signature: impl FnOnce() -> Option<Signature>) {
        let signature = match &self.sought {
            None => signature(),
            Some((index, sought)) if key.table() == *index && key.as_bytes() == sought => None,
            Some(_) => return,
        };
        self.entries.push(IndexEntry { key, signature });
    }

    /// The entries.
    pub fn iter(&self) -> impl Iterator<Item = &IndexEntry<R>> {
        self.entries.iter()
    }

    /// Returns `true` if one of the entries has this key.
    pub(crate) fn contains(&self, key: &Key<R>) -> bool {
        self.iter().any(|entry| entry.key == *key)
    }
}

/// The index entries of a record: each index, the key in it, and the signature in its value.
pub(crate) type RowEntries = Vec<(Table, Vec<u8>, Option<Signature>)>;

/// The index entries of the record in a row.
pub(crate) fn row_entries<R: Record>(
    codec: Codec<'_>,
    key: &[u8],
    value: &[u8],
) -> Result<RowEntries> {
    let entries = Entries::of(&codec.decode::<R>(key, value)?);
    let entries = entries
        .iter()
        .map(|IndexEntry { key, signature }| (key.table(), key.as_bytes().to_vec(), *signature));
    Ok(entries.collect())
}

/// The records under `keys`, in the order of `keys`.
pub(crate) fn find_many<R: Record>(
    snapshot: &(impl Snapshot + ?Sized),
    keys: &[&[u8]],
) -> Result<Vec<Option<R>>> {
    let mut records = Vec::with_capacity(keys.len());
    find_each(snapshot, keys, |_, found| {
        records.push(found?);
        Ok(())
    })?;
    Ok(records)
}

/// The records under `keys`, in the order of `keys`. One that cannot be read is `None`.
pub(crate) fn find_readable<R: Record>(
    snapshot: &(impl Snapshot + ?Sized),
    keys: &[&[u8]],
) -> Result<Vec<Option<R>>> {
    let mut records = Vec::with_capacity(keys.len());
    find_each(snapshot, keys, |_, found| {
        records.push(if_readable(found)?.flatten());
        Ok(())
    })?;
    Ok(records)
}

/// Returns what was found. Returns `None` if it cannot be read.
pub fn if_readable<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Err(Error::Corrupt { .. }) => Ok(None),
        found => found.map(Some),
    }
}

// Calls `visit` with the record under each of `keys`, or the reason for which it cannot be read, and with the
// size of its value. Returns the first error of `visit`. Records are large, so none is collected here.
fn find_each<R: Record>(
    snapshot: &(impl Snapshot + ?Sized),
    keys: &[&[u8]],
    mut visit: impl FnMut(usize, Result<Option<R>>) -> Result<()>,
) -> Result<()> {
    let codec = snapshot.codec();
    let mut rest = keys.iter();
    let mut visited = Ok(());
    snapshot.get_many(R::TABLE, keys, &mut |value| {
        let Some(key) = rest.next().filter(|_| visited.is_ok()) else { return };
        visited = match value {
            Some(value) => visit(value.len(), codec.decode(key, value).map(Some)),
            None => visit(0, Ok(None)),
        };
    })?;
    visited
}

/// Some fields of the records of an environment under `keys`, in the order of `keys`, each or the reason for
/// which it cannot be read.
pub(crate) fn find_each_excerpt<E: Excerpt>(
    snapshot: &(impl Snapshot + ?Sized),
    environment: EnvironmentId,
    keys: &[&[u8]],
) -> Result<Vec<Result<Option<E>>>> {
    let codec = snapshot.codec();
    let mut excerpts = Vec::with_capacity(keys.len());
    let mut rest = keys.iter();
    snapshot.get_many(E::Of::TABLE, keys, &mut |value| {
        let entry = rest.next().zip(value);
        let excerpt = entry.map(|(key, value)| codec.decode_excerpt(environment, key, value));
        excerpts.push(excerpt.transpose());
    })?;
    Ok(excerpts)
}

/// The records of `rows`, which are entries of `table`: the records' own table, or one of their
/// indexes.
pub(crate) fn follow<R: Record>(
    snapshot: &(impl Snapshot + ?Sized),
    table: Table,
    rows: &[Row],
) -> Result<Vec<R>> {
    let mut records = Vec::with_capacity(rows.len());
    follow_each(snapshot, table, rows, |_, found| {
        records.push(found?);
        Ok(())
    })?;
    Ok(records)
}

/// The records of `rows`, as [`follow`] returns them, with `None` for a row that cannot be read, or that leads
/// to no record.
pub(crate) fn follow_readable<R: Record>(
    snapshot: &(impl Snapshot + ?Sized),
    table: Table,
    rows: &[Row],
) -> Result<Vec<Option<R>>> {
    let mut records = Vec::with_capacity(rows.len());
    follow_each(snapshot, table, rows, |_, found| {
        records.push(if_readable(found)?);
        Ok(())
    })?;
    Ok(records)
}

/// The records of `rows`, as [`follow`] returns them, without those that cannot be read.
pub(crate) fn follow_intact<R: Record>(
    snapshot: &(impl Snapshot + ?Sized),
    table: Table,
    rows: &[Row],
) -> Result<Vec<R>> {
    let mut records = Vec::with_capacity(rows.len());
    follow_each(snapshot, table, rows, |_, found| {
        records.extend(if_readable(found)?);
        Ok(())
    })?;
    Ok(records)
}

/// The records of the first of `rows`, as [`follow_readable`] returns them, until those have so many `bytes`
/// or some more.
pub(crate) fn follow_some<R: Record>(
    snapshot: &(impl Snapshot + ?Sized),
    table: Table,
    rows: &[Row],
    bytes: usize,
) -> Result<Vec<Option<R>>> {
    let (mut found, mut seen) = (Vec::with_capacity(rows.len()), 0);
    while let Some(part) = next_part(rows, (found.len(), seen), bytes) {
        follow_each(snapshot, table, part, |size, record| {
            seen += size;
            found.push(if_readable(record)?);
            Ok(())
        })?;
    }
    Ok(found)
}

/// The rows to follow next, behind so many that had so many bytes, until all have `bytes` or some more. There
/// are few at first, to know how many of their size there may be.
pub(crate) fn next_part(
    rows: &[Row],
    (count, seen): (usize, usize),
    bytes: usize,
) -> Option<&[Row]> {
    const FIRST: usize = 8;
    const MANY: usize = 128;
    let rest = rows.get(count..).filter(|rest| !rest.is_empty() && seen < bytes)?;
    let left = bytes.saturating_sub(seen);
    let size = match (bytes, count) {
        (usize::MAX, _) => rest.len(),
        (_, 0) => FIRST,
        _ => left.saturating_mul(count).checked_div(seen).unwrap_or(MANY).clamp(1, MANY),
    };
    Some(rest.get(..size).unwrap_or(rest))
}

// Calls `visit` with the record of each of `rows`, or the reason for which it cannot be read, and with the size
// of a value that the row leads to. Returns the first error of `visit`.
fn follow_each<R: Record>(
    snapshot: &(impl Snapshot + ?Sized),
    table: Table,
    rows: &[Row],
    mut visit: impl FnMut(usize, Result<R>) -> Result<()>,
) -> Result<()> {
    if table == R::TABLE {
        let codec = snapshot.codec();
        return rows.iter().try_for_each(|row| visit(0, codec.decode(&row.key, &row.value)));
    }
    let keys: Vec<&[u8]> = rows.iter().map(|row| row.target(table).key).collect();
    let mut rest = rows.iter();
    find_each(snapshot, &keys, |size, found: Result<Option<R>>| {
        // A record that does not have this entry may belong to another environment.
        let row = rest.next();
        let has = |record: &R| row.is_some_and(|row| Entries::has(record, table, &row.key));
        match found {
            Ok(Some(record)) if has(&record) => visit(size, Ok(record)),
            Ok(_) => visit(size, Err(dangling(table))),
            Err(error) => visit(size, Err(error)),
        }
    })
}

/// Calls `visit` with the excerpt that each of `rows` leads to, or the reason for which it cannot be
/// read, and with the value that it is from. `rows` are entries of an index of an environment.
pub(crate) fn follow_excerpts<'r, E: Excerpt>(
    snapshot: &(impl Snapshot + ?Sized),
    (environment, table): (EnvironmentId, Table),
    rows: impl Iterator<Item = &'r Row> + Clone,
    visit: &mut dyn FnMut(Result<E>, &[u8]),
) -> Result<()> {
    let codec = snapshot.codec();
    let keys: Vec<&[u8]> = rows.clone().map(|row| row.target(table).key).collect();
    // A record that does not have this entry may belong to another environment.
    let has = |excerpt: &E, row: &Row| {
        let entry = excerpt.entry(environment);
        entry.table() == table && entry.as_bytes() == row.key
    };
    let lead = |row: &Row, value: &[u8]| {
        let excerpt = codec.decode_excerpt(environment, row.target(table).key, value)?;
        if has(&excerpt, row) { Ok(excerpt) } else { Err(dangling(table)) }
    };
    let mut rest = rows;
    snapshot.get_many(E::Of::TABLE, &keys, &mut |value| {
        let Some(row) = rest.next() else { return };
        match value {
            Some(value) => visit(lead(row, value), value),
            None => visit(Err(dangling(table)), &[]),
        }
    })
}

/// Excerpts of the records that some entries of an index lead to.
#[derive(Debug)]
pub struct Excerpts<E> {
    /// The excerpts that can be read.
    pub found: Vec<E>,
    /// The key behind which there may be other entries. `None` at the end of the range.
    pub next: Option<Vec<u8>>,
}

/// Looks at the first `limit` entries of an index of an environment within `range`. Records that
/// `may_show` excludes by their signatures are not read.
///
/// # Errors
///
/// The backend's, and [`Error::Corrupt`] if the index is out of order.
pub fn excerpts<E: Excerpt>(
    snapshot: &(impl Snapshot + ?Sized),
    environment: EnvironmentId,
    (range, limit): (&Range<E::Of>, usize),
    may_show: impl Fn(Signature) -> bool,
) -> Result<Excerpts<E>> {
    let Batch { rows, next } = Batch::read(snapshot, range, limit)?;
    let table = range.table();
    let shown = rows.iter().filter(|row| row.target(table).signature.is_none_or(&may_show));
    let mut found = Vec::new();
    let mut looked = Ok(());
    follow_excerpts(snapshot, (environment, table), shown, &mut |excerpt, _| match if_readable(
        excerpt,
    ) {
        Ok(excerpt) => found.extend(excerpt),
        Err(error) => looked = Err(error),
    })?;
    looked.map(|()| Excerpts { found, next })
}

pub(crate) fn corrupt(
    table: Table,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> Error {
    Error::Corrupt { table: table.name(), source: source.into() }
}

/// The error of an entry that is outside the range of a scan, or out of order.
pub(crate) fn misplaced(table: Table) -> Error {
    corrupt(table, "an entry is not in its place")
}

pub(crate) fn dangling(index: Table) -> Error {
    corrupt(index, "an entry leads nowhere")
}
