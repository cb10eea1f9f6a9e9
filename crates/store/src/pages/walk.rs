//! Pages of lists whose condition is checked record by record, within a number of records.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;

use domain::ids::EnvironmentId;
use domain::page::{Bound, Cursor, Page, PageRequest, Place, Total};

use super::{List, Reader};
use crate::record::{Batches, Excerpt, Record, Row, follow_excerpts, if_readable};
use crate::{Error, KeyRange, Order, Prefix, Result, Snapshot};

/// The records of a list that meet a condition. The entries of the list are those of
/// [`Excerpt::entry`].
pub struct Selection<'l, E: Excerpt> {
    /// The list.
    pub list: &'l List<'l, E::Of>,
    /// The environment of the list.
    pub environment: EnvironmentId,
    /// The condition, on some fields of a record.
    pub shows: &'l dyn Fn(&E) -> bool,
    /// What is known about these records, and how many of the list are looked at.
    pub bounds: Bounds,
}

/// What is known about the records that a selection shows, and how many are looked at.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Number of records that a walk looks at. A page takes three walks at most.
    pub scanned: usize,
    /// Number of records that are shown, if it is known.
    pub total: Option<usize>,
    /// Number that the shown records do not exceed.
    pub at_most: usize,
}

/// The page of `selection` that `request` asks for. A page that ends early has a cursor behind the
/// last record that was looked at.
pub(crate) fn page<E: Excerpt>(
    snapshot: &(impl Snapshot + ?Sized),
    selection: &Selection<'_, E>,
    request: &PageRequest,
) -> Result<Page<E::Of>> {
    let selected = Selected::of(snapshot, selection, request);
    let forwards = Order::from(request.direction);
    let backwards = Order::from(request.direction.reversed());
    let walk = |bound: Option<&Bound>, order, limit| selected.first(bound, order, limit);
    let (mut walked, bound) = match &request.place {
        Place::Start => (walk(None, forwards, request.limit)?, None),
        Place::After(bound) => (walk(Some(bound), forwards, request.limit)?, Some(bound)),
        Place::Before(bound) => (walk(Some(bound), backwards, request.limit)?, Some(bound)),
    };
    let rest = walked.rest.take();
    // On its other side, the list goes on behind this place.
    let behind = walked.found.first().map(|first| Bound::Excluded(selected.cursor(&first.sorted)));
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
        _ => total(snapshot, selection, request)?,
    };
    let all = walked.found.len();
    let data: Vec<_> = walked.found.into_iter().filter_map(|found| found.record).collect();
    let unreadable = all - data.len();
    Ok(Page::new(data, ends, total).without(unreadable))
}

/// The number of records that `selection` shows, as far as a walk gets.
pub(crate) fn total<E: Excerpt>(
    snapshot: &(impl Snapshot + ?Sized),
    selection: &Selection<'_, E>,
    request: &PageRequest,
) -> Result<Total> {
    if let Some(total) = selection.bounds.total {
        return Ok(Total::of(total));
    }
    let selected = Selected::of(snapshot, selection, request);
    let mut walk = selected.walk(None, Order::from(request.direction));
    let mut count = 0;
    while walk.next()?.is_some() {
        count += 1;
    }
    Ok(if walk.is_whole() { Total::of(count) } else { Total::AtLeast(count) })
}

impl<E: Excerpt> fmt::Debug for Selection<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Selection").field("bounds", &self.bounds).finish_non_exhaustive()
    }
}

// A selection, and the page of it that a request asks for.
struct Selected<'s, S: ?Sized, E: Excerpt> {
    reader: Reader<'s, S, E::Of>,
    selection: &'s Selection<'s, E>,
}

// A record that a selection shows.
struct Found<R> {
    sorted: Vec<u8>,
    // `None` if it cannot be read, or was not asked for.
    record: Option<R>,
}

// Records that a walk has found, and the place behind which there may be more.
struct Walked<R> {
    found: Vec<Found<R>>,
    rest: Option<Cursor>,
}

impl<'s, S: Snapshot + ?Sized, E: Excerpt> Selected<'s, S, E> {
    fn of(snapshot: &'s S, selection: &'s Selection<'s, E>, request: &'s PageRequest) -> Self {
        Self { reader: Reader { snapshot, list: selection.list, request }, selection }
    }

    fn cursor(&self, sorted: &[u8]) -> Cursor {
        Cursor::at(self.reader.request.list, self.reader.request.order_by, sorted)
    }

    // The first `limit` records on the far side of `bound`, as seen in `order`.
    fn first(&self, bound: Option<&Bound>, order: Order, limit: usize) -> Result<Walked<E::Of>> {
        let mut walk = self.walk(bound, order);
        walk.wanted = limit;
        let mut found = Vec::new();
        while let Some(next) = walk.next()? {
            if found.len() == limit {
                let last = found.last().unwrap_or(&next);
                let rest = Some(self.cursor(&last.sorted));
                return Ok(Walked { found, rest });
            }
            found.push(next);
        }
        Ok(Walked { found, rest: walk.rest() })
    }

    // A walk over what is on the far side of `bound`, as seen in `order`.
    fn walk<'w>(&'w self, bound: Option<&Bound>, order: Order) -> Walk<'w, 's, S, E> {
        let Bounds { scanned, at_most, .. } = self.selection.bounds;
        let range = |part: &Prefix<E::Of>| part.beyond(bound, order);
        Walk {
            selected: self,
            entries: Merged::new(&self.reader, range, order),
            found: VecDeque::new(),
            last: Vec::new(),
            left: scanned,
            hidden: if bound.is_none() { at_most } else { usize::MAX },
            wanted: 0,
            size: FEW,
        }
    }
}

// Number of entries of which the records are read at first, and at most, at a time.
const FEW: usize = 32;
const MANY: usize = 256;

// A walk over the entries of a list.
struct Walk<'w, 's, S: ?Sized, E: Excerpt> {
    selected: &'w Selected<'s, S, E>,
    entries: Merged<'w, S, E::Of>,
    // What was found ahead.
    found: VecDeque<Found<E::Of>>,
    // Place of the last entry that it has looked at.
    last: Vec<u8>,
    // Number of entries that it may still look at.
    left: usize,
    // Number that the records which were not found yet do not exceed.
    hidden: usize,
    // Number of the next records that are asked for.
    wanted: usize,
    // Number of entries that it looks at next.
    size: usize,
}

impl<S: Snapshot + ?Sized, E: Excerpt> Walk<'_, '_, S, E> {
    // The next record that the selection shows.
    fn next(&mut self) -> Result<Option<Found<E::Of>>> {
        while self.found.is_empty() && self.hidden > 0 && self.left > 0 {
            let entries = self.entries.next(self.left.min(self.size))?;
            let Some(last) = entries.last() else {
                self.hidden = 0;
                break;
            };
            self.last = last.sorted().to_vec();
            self.left -= entries.len();
            self.size = MANY.min(2 * self.size);
            self.look(&entries)?;
        }
        Ok(self.found.pop_front())
    }

    // Returns `true` if there is nothing behind the last entry that was looked at.
    fn is_whole(&self) -> bool {
        self.hidden == 0
    }

    // The last place that was looked at, if there may be more behind it.
    fn rest(&self) -> Option<Cursor> {
        (!self.is_whole()).then(|| self.selected.cursor(&self.last))
    }

    // Looks at the records of `entries`. One that cannot be read has its place in the list, since
    // nobody knows whether the condition lets it through.
    fn look(&mut self, entries: &[Entry]) -> Result<()> {
        let Selected { reader, selection } = self.selected;
        let codec = reader.snapshot.codec();
        let place = (selection.environment, selection.list.table);
        let rows = entries.iter().map(|entry| &entry.row);
        let mut looked = Ok(());
        let mut rest = entries.iter();
        follow_excerpts::<E>(reader.snapshot, place, rows, &mut |excerpt, value| {
            let Some(entry) = rest.next() else { return };
            let excerpt = match if_readable(excerpt) {
                Ok(excerpt) => excerpt,
                Err(error) => return looked = Err(error),
            };
            if excerpt.as_ref().is_some_and(|excerpt| !(selection.shows)(excerpt)) {
                return;
            }
            let mut record = None;
            if excerpt.is_some() {
                self.hidden = self.hidden.saturating_sub(1);
                if self.wanted > 0 {
                    record = codec.decode(&entry.row.value, value).ok();
                }
            }
            self.wanted = self.wanted.saturating_sub(1);
            self.found.push_back(Found { sorted: entry.sorted().to_vec(), record });
        })?;
        looked
    }
}

// An entry of an index.
struct Entry {
    row: Row,
    // The place of the sort value in the key.
    sorted: Range<usize>,
}

impl Entry {
    fn sorted(&self) -> &[u8] {
        self.row.key.get(self.sorted.clone()).unwrap_or_default()
    }
}

// The entries of all parts of a list in one order.
struct Merged<'r, S: ?Sized, R> {
    reader: &'r Reader<'r, S, R>,
    order: Order,
    parts: Vec<Ahead<'r, S, R>>,
}

// Entries of a part that were read ahead.
struct Ahead<'r, S: ?Sized, R> {
    prefix: &'r Prefix<R>,
    batches: Batches<'r, S>,
    entries: VecDeque<Entry>,
}

impl<'r, S: Snapshot + ?Sized, R: Record> Merged<'r, S, R> {
    // The entries within the range that each part has.
    fn new(
        reader: &'r Reader<'r, S, R>,
        range: impl Fn(&Prefix<R>) -> KeyRange,
        order: Order,
    ) -> Self {
        let filled = reader.list.parts.iter().filter(|part| part.len != Some(0));
        let parts = filled.map(|part| {
            let (prefix, range) = (&part.prefix, range(&part.prefix));
            let batches = Batches::new(reader.snapshot, reader.list.table, range, order);
            Ahead { prefix, batches, entries: VecDeque::new() }
        });
        Self { reader, order, parts: parts.collect() }
    }

    // The next `limit` entries.
    fn next(&mut self, limit: usize) -> Result<Vec<Entry>> {
        let mut entries = Vec::with_capacity(limit);
        while entries.len() < limit
            && let Some(entry) = self.next_one(limit)?
        {
            entries.push(entry);
        }
        Ok(entries)
    }

    fn next_one(&mut self, ahead: usize) -> Result<Option<Entry>> {
        for part in &mut self.parts {
            part.read_ahead(self.reader, ahead)?;
        }
        let fronts = self.parts.iter_mut().filter(|part| !part.entries.is_empty());
        let first = match self.order {
            Order::Ascending => fronts.min_by(|one, other| one.next().cmp(&other.next())),
            Order::Descending => fronts.max_by(|one, other| one.next().cmp(&other.next())),
        };
        Ok(first.and_then(|part| part.entries.pop_front()))
    }
}

impl<S: Snapshot + ?Sized, R: Record> Ahead<'_, S, R> {
    // The sort value of the next entry.
    fn next(&self) -> Option<&[u8]> {
        self.entries.front().map(Entry::sorted)
    }

    fn read_ahead(&mut self, reader: &Reader<'_, S, R>, limit: usize) -> Result<()> {
        if !self.entries.is_empty() {
            return Ok(());
        }
        for row in self.batches.next(limit)?.unwrap_or_default() {
            let (sorted, text) = reader.split(self.prefix, &row.key)?;
            let end = row.key.len() - text.len();
            let sorted = end - sorted.len()..end;
            self.entries.push_back(Entry { row, sorted });
        }
        Ok(())
    }
}
