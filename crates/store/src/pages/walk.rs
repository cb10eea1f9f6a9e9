//! Pages of lists whose condition is checked record by record, within a number of records.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use domain::page::{Bound, Cursor, Page, PageRequest, Place, Total};

use super::{Entry, List, Reader, Shown};
use crate::record::{Batches, Record, Row, follow_readable};
use crate::{Error, Order, Prefix, Result, Snapshot};

/// What is known about the records that a list shows, and how many are looked at.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Number of records that a walk looks at. A page takes three walks at most.
    pub scanned: usize,
    /// Number of records that the list shows, if it is known.
    pub total: Option<usize>,
    /// Number that the list does not exceed.
    pub at_most: usize,
}

/// The page of `list` that `request` asks for. A page that ends early has a cursor behind the last
/// record that was looked at.
pub(crate) fn page<R: Record>(
    snapshot: &(impl Snapshot + ?Sized),
    list: &List<'_, R>,
    request: &PageRequest,
    bounds: Bounds,
) -> Result<Page<R>> {
    let reader = Reader { snapshot, list, request };
    let forwards = Order::from(request.direction);
    let backwards = Order::from(request.direction.reversed());
    let walk = |bound: Option<&Bound>, order, limit| reader.walk(bound, order, limit, bounds);
    let (mut walked, bound) = match &request.place {
        Place::Start => (walk(None, forwards, request.limit)?, None),
        Place::After(bound) => (walk(Some(bound), forwards, request.limit)?, Some(bound)),
        Place::Before(bound) => (walk(Some(bound), backwards, request.limit)?, Some(bound)),
    };
    let rest = walked.rest.take();
    // On its other side, the list goes on behind this place.
    let behind = walked.found.first().map(|first| Bound::Excluded(reader.cursor(first)));
    let goes_back = |order| match behind.as_ref().or(bound) {
        Some(bound) => Ok(walk(Some(bound), order, 0)?.rest.and(Some(bound.cursor().clone()))),
        None => Ok::<_, Error>(None),
    };
    let ends = match request.place {
        Place::Start => (None, rest),
        Place::After(_) => (goes_back(backwards)?, rest),
        Place::Before(_) => (rest, goes_back(forwards)?),
    };
    if let Place::Before(_) = request.place {
        walked.found.reverse();
    }
    let total = match (&request.place, &ends.1) {
        (Place::Start, None) => Total::of(walked.found.len()),
        _ => total(snapshot, list, request, bounds)?,
    };
    reader.page(walked.found, ends, total)
}

/// The number of records that `list` shows, as far as a walk gets.
pub(crate) fn total<R: Record>(
    snapshot: &(impl Snapshot + ?Sized),
    list: &List<'_, R>,
    request: &PageRequest,
    bounds: Bounds,
) -> Result<Total> {
    if let Some(total) = bounds.total {
        return Ok(Total::of(total));
    }
    let reader = Reader { snapshot, list, request };
    let order = Order::from(request.direction);
    let mut count = 0;
    let rest = reader.each(None, order, bounds, &mut |_| {
        count += 1;
        ControlFlow::Continue(())
    })?;
    Ok(if rest.is_some() { Total::AtLeast(count) } else { Total::of(count) })
}

// Entries that a walk has found, and the place behind which there may be more.
struct Walked<R> {
    found: Vec<Entry<R>>,
    rest: Option<Cursor>,
}

impl<S: Snapshot + ?Sized, R: Record> Reader<'_, S, R> {
    // The first `limit` entries on the far side of `bound`, as seen in `order`.
    fn walk(
        &self,
        bound: Option<&Bound>,
        order: Order,
        limit: usize,
        bounds: Bounds,
    ) -> Result<Walked<R>> {
        let (mut found, mut behind) = (Vec::new(), None);
        let rest = self.each(bound, order, bounds, &mut |entry| {
            if found.len() == limit {
                behind = Some(self.cursor(found.last().unwrap_or(&entry)));
                return ControlFlow::Break(());
            }
            found.push(entry);
            ControlFlow::Continue(())
        })?;
        Ok(Walked { found, rest: behind.or(rest) })
    }

    // Calls `visit` with the entries on the far side of `bound`, as seen in `order`, until it breaks.
    // Returns the last place that was looked at if the walk ends at its bound. Returns `None` if
    // `visit` breaks, or at the end.
    fn each(
        &self,
        bound: Option<&Bound>,
        order: Order,
        bounds: Bounds,
        visit: &mut dyn FnMut(Entry<R>) -> ControlFlow<()>,
    ) -> Result<Option<Cursor>> {
        // Number of entries of which the records are read at a time.
        const AT_A_TIME: usize = 32;
        let mut merged = Merged::new(self, bound, order);
        let (mut left, mut visited) = (bounds.scanned, 0);
        // No other record is shown.
        while bound.is_some() || visited != bounds.at_most {
            if left == 0 {
                return Ok(merged.last);
            }
            let entries = merged.next(left.min(AT_A_TIME))?;
            if entries.is_empty() {
                break;
            }
            left -= entries.len();
            for entry in self.shown(entries)? {
                if visit(entry).is_break() {
                    return Ok(None);
                }
                visited += 1;
            }
        }
        Ok(None)
    }

    // The entries whose records the list shows, with their records.
    fn shown(&self, entries: Vec<Entry<R>>) -> Result<Vec<Entry<R>>> {
        let rows: Vec<Row> = entries.iter().map(|entry| entry.row.clone()).collect();
        let records = follow_readable::<R>(self.snapshot, self.list.table, &rows)?;
        let shows = |record: &R| match self.list.shown {
            Shown::ByRecord(shows) => shows(record),
            Shown::All | Shown::ByText(_) => true,
        };
        let read = entries.into_iter().zip(records);
        let read = read.filter(|(_, record)| record.as_ref().is_none_or(shows));
        Ok(read.map(|(entry, record)| Entry { record, ..entry }).collect())
    }
}

// The entries of all parts of a list in one order.
struct Merged<'r, S: ?Sized, R> {
    reader: &'r Reader<'r, S, R>,
    order: Order,
    parts: Vec<Ahead<'r, S, R>>,
    // Place of the last entry.
    last: Option<Cursor>,
}

// Entries of a part that were read ahead.
struct Ahead<'r, S: ?Sized, R> {
    prefix: &'r Prefix<R>,
    batches: Batches<'r, S>,
    entries: VecDeque<Entry<R>>,
}

impl<'r, S: Snapshot + ?Sized, R: Record> Merged<'r, S, R> {
    fn new(reader: &'r Reader<'r, S, R>, bound: Option<&Bound>, order: Order) -> Self {
        let filled = reader.list.parts.iter().filter(|part| part.len != Some(0));
        let parts = filled.map(|part| {
            let (prefix, range) = (&part.prefix, part.prefix.beyond(bound, order));
            let batches = Batches::new(reader.snapshot, reader.list.table, range, order);
            Ahead { prefix, batches, entries: VecDeque::new() }
        });
        Self { reader, order, parts: parts.collect(), last: None }
    }

    // The next `limit` entries.
    fn next(&mut self, limit: usize) -> Result<Vec<Entry<R>>> {
        let mut entries = Vec::with_capacity(limit);
        while entries.len() < limit
            && let Some(entry) = self.next_one(limit)?
        {
            entries.push(entry);
        }
        if let Some(last) = entries.last() {
            self.last = Some(self.reader.cursor(last));
        }
        Ok(entries)
    }

    fn next_one(&mut self, ahead: usize) -> Result<Option<Entry<R>>> {
        for part in &mut self.parts {
            part.read_ahead(self.reader, ahead)?;
        }
        let fronts = self.parts.iter_mut().filter(|part| !part.entries.is_empty());
        let sorted = |part: &&mut Ahead<'r, S, R>| {
            part.entries.front().map(|entry| entry.sorted.clone()).unwrap_or_default()
        };
        let first = match self.order {
            Order::Ascending => fronts.min_by_key(sorted),
            Order::Descending => fronts.max_by_key(sorted),
        };
        Ok(first.and_then(|part| part.entries.pop_front()))
    }
}

impl<S: Snapshot + ?Sized, R: Record> Ahead<'_, S, R> {
    fn read_ahead(&mut self, reader: &Reader<'_, S, R>, limit: usize) -> Result<()> {
        if !self.entries.is_empty() {
            return Ok(());
        }
        for row in self.batches.next(limit)?.unwrap_or_default() {
            let (sorted, _) = reader.split(self.prefix, &row.key)?;
            self.entries.push_back(Entry { sorted: sorted.to_vec(), row, record: None });
        }
        Ok(())
    }
}
