//! A segment that is not sealed: it is in memory, and made of the facets on disk.

use foldhash::HashMap;

use crate::facets::{Facets, Term};
use crate::set::{Set, View};
use crate::times::{TIMES_IN_ROW, Times};

/// The notifications behind the last sealed segment, or the first of them that fill a segment.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenSegment {
    /// Time of creation of each notification, in milliseconds.
    pub(crate) times: Vec<i64>,
    /// The ranges of the times.
    pub(crate) ranges: Times,
    sets: HashMap<Term, Set>,
}

impl OpenSegment {
    /// Takes in another notification.
    pub(crate) fn push(&mut self, facets: &Facets) {
        let place = u16::try_from(self.times.len()).unwrap_or(u16::MAX);
        let time = facets.created_at.as_millis();
        self.times.push(time);
        self.ranges.push(time);
        for term in &facets.terms {
            self.sets.entry(*term).or_default().insert(place);
        }
    }

    /// The times of a row.
    pub(crate) fn row(&self, row: usize) -> &[i64] {
        self.times.chunks(TIMES_IN_ROW).nth(row).unwrap_or_default()
    }

    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.times.len()).unwrap_or(u32::MAX)
    }

    /// The places of a term.
    pub(crate) fn find(&self, term: Term) -> Option<View<'_>> {
        self.sets.get(&term).map(Set::view)
    }

    /// Every term and its places, in the order of the terms.
    pub(crate) fn sorted(&self) -> Vec<(Term, &Set)> {
        let mut terms: Vec<(Term, &Set)> =
            self.sets.iter().map(|(term, set)| (*term, set)).collect();
        terms.sort_unstable_by_key(|(term, _)| *term);
        terms
    }
}
