//! Reading records, by their keys and by index entries.

use std::ops::ControlFlow;
use std::slice;

use domain::ids::EnvironmentId;
use domain::page::{Page, PageRequest, Total};

use crate::batch::{Batches, Row};
use crate::layout::Target;
use crate::pages::{self, List, Selection};
use crate::record::{self, Excerpt, Record, if_readable};
use crate::stored::Stored;
use crate::{Key, Order, Prefix, Range, Result, Snapshot, Visit};

/// Number of index entries that are followed at a time.
const AT_A_TIME: usize = 128;

/// Reading records: implemented for every [`Snapshot`] and every [`Transaction`](crate::Transaction).
pub trait ReadRecords: Snapshot {
    /// The record that the entry under `key` is or leads to. Returns `None` if there is no entry.
    fn find<R: Record>(&self, key: &Key<R>) -> Result<Option<R>> {
        if key.table() != R::TABLE {
            return Ok(self.find_many(slice::from_ref(key))?.pop().flatten());
        }
        let (codec, mut record) = (self.codec(), None);
        let bytes = key.as_bytes();
        self.get(R::TABLE, bytes, &mut |value| record = Some(codec.decode(bytes, value)))?;
        record.transpose()
    }

    /// The records that the entries under `keys` are or lead to, in the order of `keys`. All of
    /// `keys` belong to one table.
    fn find_many<R: Record>(&self, keys: &[Key<R>]) -> Result<Vec<Option<R>>> {
        let Some(table) = keys.first().map(Key::table) else { return Ok(Vec::new()) };
        let bytes: Vec<&[u8]> = keys.iter().map(Key::as_bytes).collect();
        if table == R::TABLE {
            return record::find_many(self, &bytes);
        }
        let mut rows = Vec::new();
        let mut found = Vec::with_capacity(keys.len());
        let mut rest = bytes.iter();
        self.get_many(table, &bytes, &mut |value| {
            let entry = rest.next().zip(value);
            found.push(entry.is_some());
            rows.extend(entry.map(|(key, value)| Row::new(key, value)));
        })?;
        let mut records = record::follow(self, table, &rows)?.into_iter();
        Ok(found.into_iter().map(|found| found.then(|| records.next()).flatten()).collect())
    }

    /// The records under `keys`, in the order of `keys`. One that cannot be read is `None`. All of
    /// `keys` belong to the table of the records.
    fn find_readable<R: Record>(&self, keys: &[Key<R>]) -> Result<Vec<Option<R>>> {
        let bytes: Vec<&[u8]> = keys.iter().map(Key::as_bytes).collect();
        record::find_readable(self, &bytes)
    }

    /// The keys of the records that the entries of an index under `keys` lead to, in the order of `keys`. The
    /// records are not looked at.
    fn targets<R>(&self, keys: &[Key<R>]) -> Result<Vec<Option<Vec<u8>>>> {
        let Some(table) = keys.first().map(Key::table) else { return Ok(Vec::new()) };
        let bytes: Vec<&[u8]> = keys.iter().map(Key::as_bytes).collect();
        let mut targets = Vec::with_capacity(keys.len());
        self.get_many(table, &bytes, &mut |value| {
            targets.push(value.map(|value| Target::read(table, value).key.to_vec()));
        })?;
        Ok(targets)
    }

    /// Some fields of the records of an environment that the entries under `keys` are or lead to, in
    /// the order of `keys`. All of `keys` belong to one table: that of the records, or that of
    /// [`Excerpt::entry`].
    fn find_excerpts<E: Excerpt>(
        &self,
        environment: EnvironmentId,
        keys: &[Key<E::Of>],
    ) -> Result<Vec<Option<E>>> {
        self.find_each_excerpt(environment, keys)?.into_iter().collect()
    }

    /// Some fields of records, as [`find_excerpts`](Self::find_excerpts) returns them, with `None` for a record
    /// that cannot be read.
    fn find_readable_excerpts<E: Excerpt>(
        &self,
        environment: EnvironmentId,
        keys: &[Key<E::Of>],
    ) -> Result<Vec<Option<E>>> {
        let found = self.find_each_excerpt(environment, keys)?.into_iter();
        found.map(|found| Ok(if_readable(found)?.flatten())).collect()
    }

    #[doc(hidden)]
    fn find_each_excerpt<E: Excerpt>(
        &self,
        environment: EnvironmentId,
        keys: &[Key<E::Of>],
    ) -> Result<Vec<Result<Option<E>>>> {
        let Some(table) = keys.first().map(Key::table) else { return Ok(Vec::new()) };
        if table == E::Of::TABLE {
            let bytes: Vec<&[u8]> = keys.iter().map(Key::as_bytes).collect();
            return record::find_each_excerpt(self, environment, &bytes);
        }
        let targets = self.targets(keys)?;
        let there: Vec<&[u8]> = targets.iter().flatten().map(Vec::as_slice).collect();
        let mut found = record::find_each_excerpt::<E>(self, environment, &there)?.into_iter();
        let lead = keys.iter().zip(&targets).map(|(key, target)| {
            let Some(excerpt) = target.as_ref().and_then(|_| found.next()) else { return Ok(None) };
            let excerpt = excerpt?.filter(|excerpt| excerpt.entry(environment) == *key);
            excerpt.map(Some).ok_or_else(|| record::dangling(table))
        });
        Ok(lead.collect())
    }

    /// Returns `true` if there is an entry under `key`.
    fn contains<R>(&self, key: &Key<R>) -> Result<bool> {
        self.get_bytes(key, &mut |_| {})
    }

    /// Calls `visit` with the value under `key`, and returns whether there is one.
    fn get_bytes<R>(&self, key: &Key<R>, visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.get(key.table(), key.as_bytes(), visit)
    }

    /// Calls `visit` with the first `limit` entries within `range`, in `order`, until `visit`
    /// breaks.
    fn scan_bytes<R>(
        &self,
        range: &Range<R>,
        order: Order,
        limit: Option<usize>,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        self.scan(range.table(), range.bytes(), order, limit, visit)
    }

    /// Returns `true` if there is an entry within `range`.
    fn has_any<R>(&self, range: &Range<R>) -> Result<bool> {
        let mut has_any = false;
        self.scan_bytes(range, Order::Ascending, Some(1), &mut |_, _| {
            has_any = true;
            ControlFlow::Break(())
        })?;
        Ok(has_any)
    }

    /// Result of `read` for the first key within `range`, in `order`, for which there is one. Other keys are
    /// those of a damaged table.
    fn first_known<R, T>(
        &self,
        range: &Range<R>,
        order: Order,
        read: impl Fn(&[u8]) -> Option<T>,
    ) -> Result<Option<T>> {
        let mut found = None;
        // The first key is enough nearly always.
        for limit in [Some(1), None] {
            let mut is_empty = true;
            self.scan_bytes(range, order, limit, &mut |key, _| {
                is_empty = false;
                found = read(key);
                if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            if is_empty || found.is_some() {
                break;
            }
        }
        Ok(found)
    }

    /// The distinct results of `read` for the keys within `all`, in their order. `behind` returns the range
    /// behind all keys of one result, so that each costs one look-up.
    fn distinct<R, T: Ord>(
        &self,
        all: Range<R>,
        read: impl Fn(&[u8]) -> Option<T>,
        behind: impl Fn(&T) -> Range<R>,
    ) -> Result<Vec<T>> {
        let (mut distinct, mut rest) = (Vec::new(), all);
        while let Some(found) = self.first_known(&rest, Order::Ascending, &read)? {
            // A damaged table may show a key that was passed.
            if distinct.last().is_some_and(|last| *last >= found) {
                break;
            }
            rest = behind(&found);
            distinct.push(found);
        }
        Ok(distinct)
    }

    /// The number of entries with `prefix`, at most `limit`.
    fn count<R, K>(&self, prefix: &Prefix<R, K>, limit: Option<usize>) -> Result<usize> {
        let mut count = 0;
        self.scan_bytes(&prefix.range(), Order::Ascending, limit, &mut |_, _| {
            count += 1;
            ControlFlow::Continue(())
        })?;
        Ok(count)
    }

    /// The records of the entries with `prefix`, in the order of their keys.
    fn all<R: Record>(&self, prefix: &Prefix<R>) -> Result<Vec<R>> {
        let mut records = Vec::new();
        self.each(&prefix.range(), Order::Ascending, |record| {
            records.push(record);
            ControlFlow::Continue(())
        })?;
        Ok(records)
    }

    /// The records of the first `limit` entries within `range`, in `order`.
    fn first<R: Record>(&self, range: &Range<R>, order: Order, limit: usize) -> Result<Vec<R>> {
        let rows = Batches::new(self, range.clone(), order).next(limit)?;
        record::follow(self, range.table(), &rows.unwrap_or_default())
    }

    /// The first `limit` records of the entries within `range` that can be read, in `order`.
    fn readable<R: Record>(&self, range: &Range<R>, order: Order, limit: usize) -> Result<Vec<R>> {
        let (found, _) = self.readable_with_gaps(range, order, limit)?;
        Ok(found.into_iter().map(|(_, record)| record).collect())
    }

    /// The readable records of a range, each with the number of entries before it that cannot be read, and
    /// the number of such entries behind the last record.
    fn readable_with_gaps<R: Record>(
        &self,
        range: &Range<R>,
        order: Order,
        limit: usize,
    ) -> Result<(Vec<(usize, R)>, usize)> {
        let mut batches = Batches::new(self, range.clone(), order);
        let (mut found, mut gap) = (Vec::new(), 0);
        while found.len() < limit {
            let Some(rows) = batches.next(limit - found.len())? else { break };
            for record in record::follow_readable(self, range.table(), &rows)? {
                match record {
                    Some(record) => found.push((std::mem::take(&mut gap), record)),
                    None => gap += 1,
                }
            }
        }
        Ok((found, gap))
    }

    /// Calls `visit` with the records of the entries within `range` that can be read, in `order`,
    /// until it breaks.
    fn each_readable<R: Record>(
        &self,
        range: &Range<R>,
        order: Order,
        mut visit: impl FnMut(R) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut batches = Batches::new(self, range.clone(), order);
        while let Some(rows) = batches.next(AT_A_TIME)? {
            let records = record::follow_readable(self, range.table(), &rows)?;
            if records.into_iter().flatten().try_for_each(&mut visit).is_break() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Calls `visit` with the records of an environment within `range` that can be read and of which some
    /// fields are `wanted`. The others are not decoded as a whole.
    fn each_wanted<E: Excerpt>(
        &self,
        environment: EnvironmentId,
        range: &Range<E::Of>,
        wanted: impl Fn(&E) -> bool,
        mut visit: impl FnMut(E::Of),
    ) -> Result<()> {
        let codec = self.codec();
        let mut batches = Batches::new(self, range.clone(), Order::Ascending);
        while let Some(rows) = batches.next(AT_A_TIME)? {
            for Row { key, value } in rows {
                if let Some(record) = codec.decode_if(environment, (&key, &value), &wanted) {
                    visit(record);
                }
            }
        }
        Ok(())
    }

    /// Calls `visit` with the records of the entries within `range`, in `order`, until it breaks.
    fn each<R: Record>(
        &self,
        range: &Range<R>,
        order: Order,
        mut visit: impl FnMut(R) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut batches = Batches::new(self, range.clone(), order);
        while let Some(rows) = batches.next(AT_A_TIME)? {
            let mut records = record::follow(self, range.table(), &rows)?.into_iter();
            if records.try_for_each(&mut visit).is_break() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The page of `list` that `request` asks for.
    fn page<R: Record>(&self, list: &List<'_, R>, request: &PageRequest) -> Result<Page<R>> {
        pages::page(self, list, request)
    }

    /// The page that `request` asks for, of those entries with `prefix` whose keys end in one of `places`.
    /// These are sorted, each is there once, and their number is the total. Those that `shows` does not let
    /// through are left out.
    fn page_among<R: Record>(
        &self,
        prefix: &Prefix<R>,
        places: &[impl AsRef<[u8]>],
        shows: &dyn Fn(&R) -> bool,
        request: &PageRequest,
    ) -> Result<Page<R>> {
        pages::among(self, prefix, places, shows, request)
    }

    /// The page of the records that meet a condition, of which no more than a number are looked at.
    /// A page that ends early has a cursor behind the last record that was looked at.
    fn selected_page<E: Excerpt>(
        &self,
        selection: &Selection<'_, E>,
        request: &PageRequest,
    ) -> Result<Page<E::Of>> {
        pages::selected(self, selection, request)
    }

    /// The number of these records, as far as a walk gets.
    fn total<E: Excerpt>(
        &self,
        selection: &Selection<'_, E>,
        request: &PageRequest,
    ) -> Result<Total> {
        pages::total(self, selection, request)
    }
}

impl<S: Snapshot + ?Sized> ReadRecords for S {}
