//! Spans of keys without entries.

use std::collections::BTreeMap;
use std::ops::Bound::{Included, Unbounded};

use store::Table;

use crate::scan::Span;

/// Number of gaps of a head that are kept.
const GAPS: usize = 4_096;

/// Spans without entries, all of whose keys belong to one head, by their starts. No two of them have a
/// key in common.
#[derive(Default)]
pub(crate) struct Gaps(BTreeMap<(Table, Vec<u8>), Gap>);

struct Gap {
    end: Vec<u8>,
    /// Count of its head since which it is known to be empty.
    since: u64,
}

impl Gaps {
    /// Count since which a span is known to be empty.
    pub(crate) fn since(&self, table: Table, span: &Span) -> Option<u64> {
        let before = (Unbounded, Included((table, span.start.clone())));
        let ((other, _), gap) = self.0.range(before).next_back()?;
        let covers = *other == table && span.end.as_ref().is_some_and(|end| *end <= gap.end);
        covers.then_some(gap.since)
    }

    /// Keeps a span, as a whole with those that it touches.
    pub(crate) fn keep(&mut self, table: Table, span: &Span, since: u64) {
        let Some(end) = &span.end else { return };
        let (mut start, mut gap) = (span.start.clone(), Gap { end: end.clone(), since });
        while let Some((place, other)) = self.last_before(table, &gap.end)
            && other.end >= start
        {
            gap.since = gap.since.max(other.since);
            gap.end = gap.end.max(other.end.clone());
            start = start.min(place.1.clone());
            self.0.remove(&place);
        }
        if self.0.len() >= GAPS {
            self.0.clear();
        }
        self.0.insert((table, start), gap);
    }

    /// Forgets the gap around a key.
    pub(crate) fn end(&mut self, table: Table, key: &[u8]) {
        let before = (Unbounded, Included((table, key.to_vec())));
        if let Some(((other, start), gap)) = self.0.range(before).next_back()
            && *other == table
            && *key < *gap.end
        {
            let place = (table, start.clone());
            self.0.remove(&place);
        }
    }

    fn last_before(&self, table: Table, end: &[u8]) -> Option<((Table, Vec<u8>), &Gap)> {
        let before = (Unbounded, Included((table, end.to_vec())));
        let (place, gap) = self.0.range(before).next_back()?;
        (place.0 == table).then(|| (place.clone(), gap))
    }
}
