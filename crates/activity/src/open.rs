//! A segment that is not sealed: it is in memory, and made of the facets on disk.

use std::mem;

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
    sets: Sets,
    /// Terms of the last notification, and where their sets are. Most neighbours share most of their terms.
    last: Vec<(Term, usize)>,
    /// Those of the notification before it, kept for their room.
    before: Vec<(Term, usize)>,
}

/// The places of each term.
#[derive(Clone, Debug, Default)]
struct Sets {
    numbers: HashMap<Term, usize>,
    sets: Vec<Set>,
}

impl OpenSegment {
    /// Takes in another notification.
    pub(crate) fn push(&mut self, facets: &Facets) {
        let place = u16::try_from(self.times.len()).unwrap_or(u16::MAX);
        let time = facets.created_at.as_millis();
        self.times.push(time);
        self.ranges.push(time);
        mem::swap(&mut self.last, &mut self.before);
        self.last.clear();
        let mut before = self.before.iter().peekable();
        for term in &facets.terms {
            while before.next_if(|(other, _)| other < term).is_some() {}
            let number = match before.peek() {
                Some((other, number)) if other == term => *number,
                _ => self.sets.number(*term),
            };
            self.sets.insert(number, place);
            self.last.push((*term, number));
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
        self.sets.get(*self.sets.numbers.get(&term)?).map(Set::view)
    }

    /// Every term and its places, in the order of the terms.
    pub(crate) fn sorted(&self) -> Vec<(Term, &Set)> {
        let set = |(term, number): (&Term, &usize)| Some((*term, self.sets.get(*number)?));
        let mut terms: Vec<(Term, &Set)> = self.sets.numbers.iter().filter_map(set).collect();
        terms.sort_unstable_by_key(|(term, _)| *term);
        terms
    }
}

impl Sets {
    /// The number of the set of a term, which is empty if the term is new.
    fn number(&mut self, term: Term) -> usize {
        *self.numbers.entry(term).or_insert_with(|| {
            self.sets.push(Set::default());
            self.sets.len() - 1
        })
    }

    fn get(&self, number: usize) -> Option<&Set> {
        self.sets.get(number)
    }

    fn insert(&mut self, number: usize, place: u16) {
        if let Some(set) = self.sets.get_mut(number) {
            set.insert(place);
        }
    }
}
