//! Pages: how a long list of records is read in pieces.

use std::ops::ControlFlow;

use domain::page::{Bound, Cursor, Direction, Page, PageRequest, Place, Total};

use crate::records::{Record, corrupt, follow};
use crate::{KeyRange, Order, Prefix, Result, Snapshot, Table};

/// A list of records: what it is made of, and which of them it shows.
#[derive(Debug)]
pub struct List<'l, R> {
    table: Table,
    parts: Vec<Prefix>,
    shown: Shown<'l, R>,
}

enum Shown<'l, R> {
    All,
    ByText(&'l dyn Fn(&[u8]) -> bool),
    ByRecord(&'l dyn Fn(&R) -> bool),
}

impl<'l, R: Record> List<'l, R> {
    /// The records whose entries in `table` share one of `parts`, sorted by the rest of their keys.
    /// The table is the records' own, or one of their indexes.
    pub fn new(table: Table, parts: impl IntoIterator<Item = Prefix>) -> Self {
        Self { table, parts: parts.into_iter().collect(), shown: Shown::All }
    }

    /// The list without the records that `shows` does not let through, if it is `narrow`.
    #[must_use]
    pub fn of_records(self, narrow: bool, shows: &'l dyn Fn(&R) -> bool) -> Self {
        if narrow { Self { shown: Shown::ByRecord(shows), ..self } } else { self }
    }

    /// The same, by what the entries of the records say behind what they are sorted by.
    #[must_use]
    pub fn of_texts(self, narrow: bool, shows: &'l dyn Fn(&[u8]) -> bool) -> Self {
        if narrow { Self { shown: Shown::ByText(shows), ..self } } else { self }
    }
}

// An entry of a list.
struct Entry {
    sorted: Vec<u8>,
    key: Vec<u8>,
    value: Vec<u8>,
}

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
    let cursor = |entry: Option<&Entry>| entry.map(|entry| reader.cursor(entry));
    let (start, end) = (cursor(found.first()), cursor(found.last()));
    let (has_previous, has_next) = match request.place {
        Place::Start => (false, goes_on),
        Place::After(_) => (reader.goes_on_behind(start.as_ref(), backwards)?, goes_on),
        Place::Before(_) => (goes_on, reader.goes_on_behind(end.as_ref(), forwards)?),
    };
    let counted = match (&request.place, &end) {
        (Place::Start, _) if !goes_on => found.len(),
        (Place::Start, Some(end)) => found.len() + reader.count(Some((end, forwards)))?,
        _ => reader.count(None)?,
    };
    Ok(Page {
        next: end.filter(|_| has_next),
        previous: start.filter(|_| has_previous),
        data: found.iter().map(|entry| reader.record(entry)).collect::<Result<_>>()?,
        total: Total::of(counted),
    })
}

struct Reader<'r, S: ?Sized, R> {
    snapshot: &'r S,
    list: &'r List<'r, R>,
    request: &'r PageRequest,
}

impl<S: Snapshot + ?Sized, R: Record> Reader<'_, S, R> {
    // The first `limit` entries on the far side of `bound`, as seen in `order`.
    fn read(&self, bound: Option<&Bound>, order: Order, limit: usize) -> Result<Vec<Entry>> {
        let mut found = Vec::new();
        for part in &self.list.parts {
            let range = part.beyond(bound, order);
            let before = found.len();
            self.each(part, &range, order, |sorted, key, value| {
                let (sorted, key, value) = (sorted.to_vec(), key.to_vec(), value.to_vec());
                found.push(Entry { sorted, key, value });
                go_on_if(found.len() - before < limit)
            })?;
        }
        if self.list.parts.len() > 1 {
            found.sort_unstable_by(|one, other| match order {
                Order::Ascending => one.sorted.cmp(&other.sorted),
                Order::Descending => other.sorted.cmp(&one.sorted),
            });
        }
        found.truncate(limit);
        Ok(found)
    }

    // Counts to one past the cap of a total, the whole list or what is behind a place in it.
    fn count(&self, behind: Option<(&Cursor, Order)>) -> Result<usize> {
        let limit = Total::CAP + 1;
        let mut count = 0;
        for part in &self.list.parts {
            let range = match behind {
                None => part.range(),
                Some((cursor, order)) => part.beyond(Some(&Bound::Excluded(cursor.clone())), order),
            };
            if count < limit {
                self.each(part, &range, Order::Ascending, |_, _, _| {
                    count += 1;
                    go_on_if(count < limit)
                })?;
            }
        }
        Ok(count)
    }

    fn goes_on_behind(&self, cursor: Option<&Cursor>, order: Order) -> Result<bool> {
        let Some(cursor) = cursor else { return Ok(false) };
        let bound = Bound::Excluded(cursor.clone());
        Ok(!self.read(Some(&bound), order, 1)?.is_empty())
    }

    // Shows `visit` the entries within `range` that the list shows: what they are sorted by, their
    // keys and their values.
    fn each(
        &self,
        part: &Prefix,
        range: &KeyRange,
        order: Order,
        mut visit: impl FnMut(&[u8], &[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut failure = None;
        self.snapshot.scan(self.list.table, range, order, &mut |key, value| match self
            .shown(part, key, value)
        {
            Ok(Some(sorted)) => visit(sorted, key, value),
            Ok(None) => ControlFlow::Continue(()),
            Err(error) => {
                failure = Some(error);
                ControlFlow::Break(())
            }
        })?;
        failure.map_or(Ok(()), Err)
    }

    // What an entry is sorted by, if the list shows it.
    fn shown<'k>(&self, part: &Prefix, key: &'k [u8], value: &[u8]) -> Result<Option<&'k [u8]>> {
        let rest = part.rest(key);
        let split = self.request.order_by.sort_len(rest).and_then(|len| rest.split_at_checked(len));
        let unsorted = || corrupt(self.list.table, "an entry is not sorted as its list is");
        let (sorted, text) = split.ok_or_else(unsorted)?;
        let shown = match self.list.shown {
            Shown::All => true,
            Shown::ByText(shows) => shows(text),
            Shown::ByRecord(shows) => shows(&follow(self.snapshot, self.list.table, key, value)?),
        };
        Ok(shown.then_some(sorted))
    }

    fn cursor(&self, entry: &Entry) -> Cursor {
        Cursor::at(self.request.list, self.request.order_by, &entry.sorted)
    }

    fn record(&self, entry: &Entry) -> Result<R> {
        follow(self.snapshot, self.list.table, &entry.key, &entry.value)
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
