//! Reading a range of keys in batches.
//!
//! A scan of a damaged table may lead back to keys that it has passed, and a loop over batches would have no
//! end. So each key has to be in the range, and behind the one before it.

use std::ops::{Bound, ControlFlow, RangeBounds};

use crate::key::upper_bound;
use crate::layout::Target;
use crate::record::misplaced;
use crate::{KeyRange, Order, Range, Result, Snapshot, Table, Visit, range};

/// One entry of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
}

impl Row {
    pub(crate) fn new(key: &[u8], value: &[u8]) -> Self {
        Self { key: key.to_vec(), value: value.to_vec() }
    }

    /// Size of the key and the value in bytes.
    pub(crate) fn size(&self) -> usize {
        self.key.len() + self.value.len()
    }

    /// What the value says, if the row is an entry of `index`.
    pub(crate) fn target(&self, index: Table) -> Target<'_> {
        Target::read(index, &self.value)
    }
}

/// Size at which a batch ends.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// Number of rows.
    pub rows: usize,
    /// Size of their keys and values in bytes, which the last row may exceed.
    pub bytes: usize,
}

/// Size in bytes at which a batch ends that is read in a transaction.
const BYTES: usize = 1 << 20;

impl Limit {
    /// So many rows, or as many bytes as a transaction that holds up the others may look at.
    pub(crate) const fn in_transaction(rows: usize) -> Self {
        Self { rows, bytes: BYTES }
    }
}

impl From<usize> for Limit {
    fn from(rows: usize) -> Self {
        Self { rows, bytes: usize::MAX }
    }
}

/// Rows that are read together.
#[derive(Debug)]
pub(crate) struct Batch {
    /// The rows, in the order of the scan.
    pub(crate) rows: Vec<Row>,
    /// Key of the last row, if there may be others behind it in the range.
    pub(crate) next: Option<Vec<u8>>,
}

impl Batch {
    /// The first rows within `range`, up to a limit.
    ///
    /// # Errors
    ///
    /// As [`visit`].
    pub(crate) fn read<R>(
        snapshot: &(impl Snapshot + ?Sized),
        range: &Range<R>,
        limit: impl Into<Limit>,
    ) -> Result<Self> {
        Self::of(snapshot, (range.table(), range.bytes(), Order::Ascending), limit.into())
    }

    fn of(
        snapshot: &(impl Snapshot + ?Sized),
        entries: (Table, &KeyRange, Order),
        limit: Limit,
    ) -> Result<Self> {
        let (mut bytes, mut rows) = (0, Vec::new());
        let visit = &mut |key: &[u8], value: &[u8]| {
            let row = Row::new(key, value);
            bytes += row.size();
            rows.push(row);
            if bytes < limit.bytes { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let next = self::visit(snapshot, entries, limit.rows, visit)?;
        Ok(Self { rows, next })
    }
}

/// A range that is read batch by batch from one snapshot.
pub(crate) struct Batches<'s, S: ?Sized> {
    snapshot: &'s S,
    table: Table,
    /// The range of the entries that were not read yet.
    rest: Option<KeyRange>,
    order: Order,
}

impl<'s, S: Snapshot + ?Sized> Batches<'s, S> {
    pub(crate) fn new<R>(snapshot: &'s S, range: Range<R>, order: Order) -> Self {
        Self { snapshot, table: range.table(), rest: Some(range.into_bytes()), order }
    }

    /// The next rows, up to a limit. Returns `None` if none are left.
    ///
    /// # Errors
    ///
    /// As [`visit`].
    pub(crate) fn next(&mut self, limit: impl Into<Limit>) -> Result<Option<Vec<Row>>> {
        let Some(range) = self.rest.take() else { return Ok(None) };
        let entries = (self.table, &range, self.order);
        let Batch { rows, next } = Batch::of(self.snapshot, entries, limit.into())?;
        self.resume(range, next);
        Ok((!rows.is_empty()).then_some(rows))
    }

    /// Calls `visit` with the key and the value of the next `size` entries, or of all that are left.
    ///
    /// # Errors
    ///
    /// As [`visit`].
    pub(crate) fn visit(&mut self, size: usize, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let Some(range) = self.rest.take() else { return Ok(()) };
        let entries = (self.table, &range, self.order);
        let next = self::visit(self.snapshot, entries, size, &mut |key, value| {
            visit(key, value);
            ControlFlow::Continue(())
        })?;
        self.resume(range, next);
        Ok(())
    }

    fn resume(&mut self, (start, end): KeyRange, last: Option<Vec<u8>>) {
        self.rest = last.map(Bound::Excluded).map(|behind| match self.order {
            Order::Ascending => (behind, end),
            Order::Descending => (start, behind),
        });
    }
}

/// Calls `visit` with the key and the value of the first `limit` entries within a range of a table, until it
/// breaks. Returns the last key if there may be others behind it.
///
/// # Errors
///
/// The backend's, and [`Corrupt`](crate::Error::Corrupt) if the scan shows an entry outside its range, or out
/// of order.
pub(crate) fn visit(
    snapshot: &(impl Snapshot + ?Sized),
    (table, range, order): (Table, &KeyRange, Order),
    limit: usize,
    visit: &mut Visit<'_>,
) -> Result<Option<Vec<u8>>> {
    let Some(span) = range::borrow(range) else { return Ok(None) };
    let (mut count, mut last) = (0, Vec::new());
    let (mut is_in_place, mut flow) = (true, ControlFlow::Continue(()));
    snapshot.scan(table, range, order, Some(limit), &mut |key, value| {
        let before = (count > 0).then_some(last.as_slice());
        is_in_place = order.admits(span, before, key);
        if !is_in_place {
            return ControlFlow::Break(());
        }
        count += 1;
        last.clear();
        last.extend_from_slice(key);
        flow = visit(key, value);
        flow
    })?;
    if !is_in_place {
        return Err(misplaced(table));
    }
    Ok((count > 0 && (count >= limit || flow.is_break())).then_some(last))
}

/// The first key of a table behind all keys that begin with `prefix`, or of all if that is `None`.
pub(crate) fn next_key(
    snapshot: &dyn Snapshot,
    table: Table,
    prefix: Option<&[u8]>,
) -> Result<Option<Vec<u8>>> {
    let start = match prefix.map(upper_bound) {
        None => Bound::Unbounded,
        Some(Some(start)) => Bound::Included(start),
        Some(None) => return Ok(None),
    };
    let range: KeyRange = (start, Bound::Unbounded);
    let mut found = None;
    snapshot.scan(table, &range, Order::Ascending, Some(1), &mut |key, _| {
        found = Some(key.to_vec());
        ControlFlow::Break(())
    })?;
    // A damaged table may show a key that was passed.
    Ok(found.filter(|key| range.contains(key)))
}
