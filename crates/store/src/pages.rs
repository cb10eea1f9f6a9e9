//! Pages: pieces in which a long list of records is read.

mod among;
mod merged;
mod walk;

use std::iter;
use std::ops::ControlFlow;

use domain::page::{Bound, Cursor, Direction, Page, PageRequest, Place, Total};

use crate::batch::{Batches, Row};
use crate::layout::CountedList;
use crate::record::{Record, corrupt, follow_intact, follow_readable, misplaced};
use crate::{KeyRange, Order, Prefix, Range, Result, Snapshot, Table, list_counts};

pub(crate) use among::page as among;
pub use walk::{Bounds, Selection, WalkLimit};
pub(crate) use walk::{page as selected, total};

/// A list of records: its parts, and the condition for the records that it shows.
#[derive(Debug)]
pub struct List<'l, R> {
    table: Table,
    parts: Vec<Part<R>>,
    shown: Shown<'l, R>,
    total: Known,
}

// What is known of the number of records in a list.
#[derive(Clone, Copy, Debug)]
enum Known {
    Nothing,
    Total(usize),
    // A row has the number of records, unless it is lost.
    Counted(CountedList),
}

#[derive(Debug)]
struct Part<R> {
    prefix: Prefix<R>,
    // Number of entries, if it is known.
    len: Option<usize>,
}

impl<R> Part<R> {
    // `limit`, or the number of entries if that is less. A scan with this limit ends at the last
    // entry of the part, and does not pass the removed entries behind it.
    fn at_most(&self, limit: usize) -> usize {
        self.len.map_or(limit, |len| len.min(limit))
    }
}

enum Shown<'l, R> {
    All,
    ByText(&'l dyn Fn(&[u8]) -> bool),
    ByRecord(&'l dyn Fn(&R) -> bool),
}

impl<'l, R: Record> List<'l, R> {
    /// The records of the entries that have one of `parts`, sorted by the rest of their keys. All
    /// of `parts` belong to one table.
    pub fn new<K>(parts: impl IntoIterator<Item = Prefix<R, K>>) -> Self {
        Self::of_parts(parts.into_iter().map(|prefix| (prefix, None)))
    }

    /// The records as [`new`](Self::new) lists them, with the number of entries in each part, where that is
    /// known. A total needs no count of these.
    pub fn of_parts<K>(parts: impl IntoIterator<Item = (Prefix<R, K>, Option<usize>)>) -> Self {
        let part = |(prefix, len): (Prefix<R, K>, _)| Part { prefix: prefix.open(), len };
        let parts: Vec<_> = parts.into_iter().map(part).collect();
        let table = parts.first().map_or(R::TABLE, |part| part.prefix.table());
        Self { table, parts, shown: Shown::All, total: Known::Nothing }
    }

    /// The list with a total that is known. Its records are not counted.
    #[must_use]
    pub fn of_total(self, total: usize) -> Self {
        Self { total: Known::Total(total), ..self }
    }

    /// The list with a row that has the number of its records. They are counted only if the row is not
    /// there, or if the list shows some of them.
    #[must_use]
    pub fn counted_as(self, list: CountedList) -> Self {
        Self { total: Known::Counted(list), ..self }
    }

    // The list whose row has the number of records that are shown.
    fn counted(&self) -> Option<CountedList> {
        match (self.total, &self.shown) {
            (Known::Counted(list), Shown::All) => Some(list),
            (Known::Counted(_), Shown::ByText(_) | Shown::ByRecord(_))
            | (Known::Nothing | Known::Total(_), _) => None,
        }
    }

    // Returns `true` if the number of entries in one of the parts is known.
    fn is_counted(&self) -> bool {
        self.parts.iter().any(|part| self.known_len(part).is_some())
    }

    // Number of entries in `part`, if it is known and the list shows all of them.
    fn known_len(&self, part: &Part<R>) -> Option<usize> {
        match self.shown {
            Shown::All => part.len,
            Shown::ByText(_) | Shown::ByRecord(_) => None,
        }
    }

    /// The list without the records that `shows` does not let through, if it is `narrow`.
    #[must_use]
    pub fn of_records(self, narrow: bool, shows: &'l dyn Fn(&R) -> bool) -> Self {
        if narrow { Self { shown: Shown::ByRecord(shows), ..self } } else { self }
    }

    /// The list without the records whose entries have a text that `shows` does not let through, if
    /// it is `narrow`. The text is behind the sort value.
    #[must_use]
    pub fn of_texts(self, narrow: bool, shows: &'l dyn Fn(&[u8]) -> bool) -> Self {
        if narrow { Self { shown: Shown::ByText(shows), ..self } } else { self }
    }
}

// An entry of a list: the sort value, and the record if it was read already. One that cannot be read
// has its place in the list, since nobody knows whether a condition lets it through.
struct Entry<R> {
    sorted: Vec<u8>,
    row: Row,
    record: Option<Box<R>>,
}

// Called with each entry that a list shows: its sort value, key, value, and its record if it was
// read already.
type Found<'f, R> = dyn FnMut(&[u8], &[u8], &[u8], Option<Box<R>>) + 'f;

// The first `limit` entries within `range`, whose keys have `part`.
struct PartScan<'p, R> {
    part: &'p Prefix<R>,
    range: KeyRange,
    order: Order,
    limit: usize,
}

// Number of entries that are read at a time, until enough records are found.
const AT_A_TIME: usize = 256;

/// The page of `list` that `request` asks for.
pub(crate) fn page<R: Record>(
    snapshot: &(impl Snapshot + ?Sized),
    list: &List<'_, R>,
    request: &PageRequest,
) -> Result<Page<R>> {
    let reader = Reader { snapshot, list, request };
    let forwards = Order::from(request.direction);
    let backwards = Order::from(request.direction.reversed());
    let one_more = request.limit + 1;
    if let Some(counted) = list.counted() {
        snapshot.prefetch(&mut iter::once(counted.key().into_parts()))?;
    }
    let mut found = match &request.place {
        Place::Start => reader.read(None, forwards, one_more)?,
        Place::After(bound) => reader.read(Some(bound), forwards, one_more)?,
        Place::Before(bound) => reader.read(Some(bound), backwards, one_more)?,
    };
    let goes_on = found.len() > request.limit;
    found.truncate(request.limit);
    if let Place::Before(_) = request.place {
        found.reverse();
    }
    let cursor = |entry: Option<&Entry<R>>| entry.map(|entry| reader.cursor(entry));
    let (start, end) = (cursor(found.first()), cursor(found.last()));
    let (has_previous, has_next) = match request.place {
        Place::Start => (false, goes_on),
        Place::After(_) => (reader.goes_on_behind(start.as_ref(), backwards)?, goes_on),
        Place::Before(_) => (goes_on, reader.goes_on_behind(end.as_ref(), forwards)?),
    };
    let total = Total::of(match (&request.place, &end) {
        _ if let Known::Total(total) = list.total => total,
        (Place::Start, _) if !goes_on => found.len(),
        _ if let Some(total) = reader.known_total()? => total,
        (Place::Start, Some(end)) if !list.is_counted() => {
            found.len() + reader.count(Some((end, forwards)))?
        }
        _ => reader.count(None)?,
    });
    let ends = (start.filter(|_| has_previous), end.filter(|_| has_next));
    reader.page(found, ends, total)
}

struct Reader<'r, S: ?Sized, R> {
    snapshot: &'r S,
    list: &'r List<'r, R>,
    request: &'r PageRequest,
}

impl<S: Snapshot + ?Sized, R: Record> Reader<'_, S, R> {
    // The first `limit` entries on the far side of `bound`, as seen in `order`.
    fn read(&self, bound: Option<&Bound>, order: Order, limit: usize) -> Result<Vec<Entry<R>>> {
        let mut found = Vec::new();
        for part in &self.list.parts {
            let (part, limit) = (&part.prefix, part.at_most(limit));
            let scan = PartScan { part, range: part.page_range(bound, order), order, limit };
            self.first(&scan, &mut |sorted, key, value, record| {
                found.push(Entry { sorted: sorted.to_vec(), row: Row::new(key, value), record });
            })?;
        }
        if self.list.parts.len() > 1 {
            // Those of each part are in order, which a stable sort makes use of.
            found.sort_by(|one, other| match order {
                Order::Ascending => one.sorted.cmp(&other.sorted),
                Order::Descending => other.sorted.cmp(&one.sorted),
            });
        }
        found.truncate(limit);
        Ok(found)
    }

    // The number of records, if a row has it.
    fn known_total(&self) -> Result<Option<usize>> {
        let counted = self.list.counted();
        counted.map_or(Ok(None), |list| list_counts::find(self.snapshot, list))
    }

    // Counts to one past the cap of a total: the whole list, or the part behind a place in it.
    fn count(&self, behind: Option<(&Cursor, Order)>) -> Result<usize> {
        let limit = Total::CAP + 1;
        let mut count = 0;
        for part in &self.list.parts {
            if let (None, Some(len)) = (behind, self.list.known_len(part)) {
                count += len;
                continue;
            }
            let (part, limit) = (&part.prefix, part.at_most(limit.saturating_sub(count)));
            let range = match behind {
                None => part.page_range(None, Order::Ascending),
                Some((cursor, order)) => {
                    part.page_range(Some(&Bound::Excluded(cursor.clone())), order)
                }
            };
            let scan = PartScan { part, range, order: Order::Ascending, limit };
            self.first(&scan, &mut |_, _, _, _| count += 1)?;
        }
        Ok(count)
    }

    fn goes_on_behind(&self, cursor: Option<&Cursor>, order: Order) -> Result<bool> {
        let Some(cursor) = cursor else { return Ok(false) };
        let bound = Bound::Excluded(cursor.clone());
        Ok(!self.read(Some(&bound), order, 1)?.is_empty())
    }

    // Calls `visit` with those entries of `scan` that the list shows.
    fn first(&self, scan: &PartScan<'_, R>, visit: &mut Found<'_, R>) -> Result<()> {
        if scan.limit == 0 {
            return Ok(());
        }
        match self.list.shown {
            Shown::All => self.first_by_text(scan, Some(scan.limit), &|_| true, visit),
            Shown::ByText(shows) => self.first_by_text(scan, None, shows, visit),
            Shown::ByRecord(shows) => self.first_by_record(scan, shows, visit),
        }
    }

    fn first_by_text(
        &self,
        scan: &PartScan<'_, R>,
        scanned: Option<usize>,
        shows: &dyn Fn(&[u8]) -> bool,
        visit: &mut Found<'_, R>,
    ) -> Result<()> {
        let PartScan { part, range, order, limit } = scan;
        let mut left = *limit;
        let mut failure = None;
        self.snapshot.scan(self.list.table, range, *order, scanned, &mut |key, value| {
            match self.split(part, key) {
                Ok((sorted, text)) if left > 0 && shows(text) => {
                    left -= 1;
                    visit(sorted, key, value, None);
                }
                Ok(_) => {}
                Err(error) => failure = Some(error),
            }
            go_on_if(left > 0 && failure.is_none())
        })?;
        failure.map_or(Ok(()), Err)
    }

    fn first_by_record(
        &self,
        scan: &PartScan<'_, R>,
        shows: &dyn Fn(&R) -> bool,
        visit: &mut Found<'_, R>,
    ) -> Result<()> {
        let (mut left, mut size) = (scan.limit, scan.limit.min(AT_A_TIME));
        let range = Range::of_bytes(self.list.table, scan.range.clone());
        let mut batches = Batches::new(self.snapshot, range, scan.order);
        while left > 0
            && let Some(rows) = batches.next(size)?
        {
            let records = follow_readable(self.snapshot, self.list.table, &rows)?;
            let matching =
                rows.iter().zip(records).filter(|(_, record)| record.as_ref().is_none_or(shows));
            for (row, record) in matching.take(left) {
                left -= 1;
                let (sorted, _) = self.split(scan.part, &row.key)?;
                visit(sorted, &row.key, &row.value, record.map(Box::new));
            }
            size = AT_A_TIME.min(2 * size);
        }
        Ok(())
    }

    // The sort value of an entry, and the text behind it.
    fn split<'k>(&self, part: &Prefix<R>, key: &'k [u8]) -> Result<(&'k [u8], &'k [u8])> {
        let rest = part.rest(key).ok_or_else(|| misplaced(self.list.table))?;
        let split = self.request.order_by.sort_len(rest).and_then(|len| rest.split_at_checked(len));
        split.ok_or_else(|| corrupt(self.list.table, "an entry is not sorted as its list is"))
    }

    fn cursor(&self, entry: &Entry<R>) -> Cursor {
        Cursor::at(self.request.list, self.request.order_by, &entry.sorted)
    }

    // The page of `entries`, without the records that cannot be read.
    fn page(
        &self,
        entries: Vec<Entry<R>>,
        ends: (Option<Cursor>, Option<Cursor>),
        total: Total,
    ) -> Result<Page<R>> {
        let all = entries.len();
        let data = self.records(entries)?;
        let unreadable = all - data.len();
        Ok(Page::new(data, ends, total).without(unreadable))
    }

    fn records(&self, entries: Vec<Entry<R>>) -> Result<Vec<R>> {
        if let Shown::ByRecord(_) = self.list.shown {
            return Ok(entries.into_iter().filter_map(|entry| Some(*entry.record?)).collect());
        }
        let rows: Vec<Row> = entries.into_iter().map(|entry| entry.row).collect();
        follow_intact(self.snapshot, self.list.table, &rows)
    }
}

fn go_on_if(more: bool) -> ControlFlow<()> {
    if more { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}

impl From<Direction> for Order {
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::Ascending => Order::Ascending,
            Direction::Descending => Order::Descending,
        }
    }
}

impl<R> std::fmt::Debug for Shown<'_, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Shown::All => "All",
            Shown::ByText(_) => "ByText",
            Shown::ByRecord(_) => "ByRecord",
        })
    }
}

#[cfg(test)]
mod tests;
