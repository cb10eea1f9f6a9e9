//! The entries of all parts of a list in one order.

use std::collections::VecDeque;
use std::ops::Range;

use domain::message::Signature;

use super::Reader;
use crate::batch::{Batches, Row};
use crate::layout::Target;
use crate::record::Record;
use crate::{KeyRange, Order, Prefix, Result, Snapshot};

/// The entries of all parts of a list in one order.
pub(super) struct Merged<'r, S: ?Sized, R> {
    reader: &'r Reader<'r, S, R>,
    may_show: &'r dyn Fn(Signature) -> bool,
    order: Order,
    parts: Vec<Ahead<'r, S, R>>,
}

// Entries of a part that were read ahead.
struct Ahead<'r, S: ?Sized, R> {
    prefix: &'r Prefix<R>,
    batches: Batches<'r, S>,
    entries: VecDeque<Entry>,
    // The sort values of the entries. Most of them are all that is kept of an entry.
    places: Vec<u8>,
}

struct Entry {
    // Where the sort value is.
    place: Range<usize>,
    row: Option<Row>,
}

/// An entry of a list.
pub(super) struct Looked<'m> {
    /// Sort value.
    pub(super) sorted: &'m [u8],
    /// The row. `None` if its signature says that its record is not shown.
    pub(super) row: Option<Row>,
}

impl<'r, S: Snapshot + ?Sized, R: Record> Merged<'r, S, R> {
    /// The entries within the range that each part has.
    pub(super) fn new(
        reader: &'r Reader<'r, S, R>,
        may_show: &'r dyn Fn(Signature) -> bool,
        range: impl Fn(&Prefix<R>) -> KeyRange,
        order: Order,
    ) -> Self {
        let filled = reader.list.parts.iter().filter(|part| part.len != Some(0));
        let parts = filled.map(|part| {
            let prefix = &part.prefix;
            let range = crate::Range::of_bytes(reader.list.table, range(prefix));
            let batches = Batches::new(reader.snapshot, range, order);
            Ahead { prefix, batches, entries: VecDeque::new(), places: Vec::new() }
        });
        Self { reader, may_show, order, parts: parts.collect() }
    }

    /// The next entry. Entries are read `ahead` at a time.
    pub(super) fn next(&mut self, ahead: usize) -> Result<Option<Looked<'_>>> {
        for part in &mut self.parts {
            if part.entries.is_empty() {
                part.read_ahead(self.reader, self.may_show, ahead)?;
            }
        }
        let fronts = self.parts.iter_mut().filter(|part| !part.entries.is_empty());
        let first = match self.order {
            Order::Ascending => fronts.min_by(|one, other| one.front().cmp(&other.front())),
            Order::Descending => fronts.max_by(|one, other| one.front().cmp(&other.front())),
        };
        Ok(first.and_then(Ahead::pop))
    }
}

impl<S: Snapshot + ?Sized, R: Record> Ahead<'_, S, R> {
    // The sort value of the next entry.
    fn front(&self) -> Option<&[u8]> {
        self.places.get(self.entries.front()?.place.clone())
    }

    fn pop(&mut self) -> Option<Looked<'_>> {
        let Entry { place, row } = self.entries.pop_front()?;
        Some(Looked { sorted: self.places.get(place)?, row })
    }

    fn read_ahead(
        &mut self,
        reader: &Reader<'_, S, R>,
        may_show: &dyn Fn(Signature) -> bool,
        limit: usize,
    ) -> Result<()> {
        let Self { prefix, batches, entries, places } = self;
        places.clear();
        let mut found = Ok(());
        batches.visit(limit, &mut |key, value| {
            let sorted = match reader.split(prefix, key) {
                Ok((sorted, _)) => sorted,
                Err(error) => return found = Err(error),
            };
            let start = places.len();
            places.extend_from_slice(sorted);
            let signature = Target::read(reader.list.table, value).signature;
            let row = signature.is_none_or(may_show).then(|| Row::new(key, value));
            entries.push_back(Entry { place: start..places.len(), row });
        })?;
        found
    }
}
