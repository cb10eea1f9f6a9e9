//! Blocks: the sets of several terms in one value of the store.
//!
//! A block has the number of its terms, their values in order, where the set of each one ends, and
//! the sets. Most terms of a segment name one or two notifications, and the key of a row of its own
//! would cost ten times what the set does.

use std::mem;
use std::ops::Range;

use domain::ids::EnvironmentId;
use store::layout::{self, SegmentPart};
use store::{Bytes, Key, ReadRecords, Result, Snapshot};

use crate::corrupt;
use crate::facets::{DIMENSIONS, Term};
use crate::head::Head;
use crate::lockstep;
use crate::set::{Set, View};

/// Maximum length of a block with several terms, in bytes. Such a block fills a page of the store.
const FULL: usize = 3_900;

/// A block in borrowed bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block<'a> {
    values: &'a [[u8; 16]],
    ends: &'a [[u8; 2]],
    sets: &'a [u8],
}

/// The first term of each block of a segment, in order, as bytes that have the same order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Directory {
    firsts: Box<[[u8; 17]]>,
    /// For each dimension, by its number, the index behind its last block.
    ends: [usize; 1 + DIMENSIONS],
}

/// A block in the making.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    terms: Vec<Term>,
    ends: Vec<[u8; 2]>,
    sets: Vec<u8>,
}

/// The blocks of `terms`, which are in order, and the first term of each.
pub(crate) fn write(terms: &[(Term, &Set)]) -> Vec<(Term, Vec<u8>)> {
    let mut blocks = Vec::new();
    let mut writer = Writer::default();
    for (term, set) in terms {
        let size = match set.view() {
            View::Few(places) => 2 * places.len(),
            View::Many(words) => 8 * words.len(),
        };
        blocks.extend(writer.add(*term, size, |out| set.write(out)));
    }
    blocks.extend(writer.finish());
    blocks
}

/// Shows `visit` the block of a segment that starts with `first`.
pub(crate) fn find(
    snapshot: &dyn Snapshot,
    environment: EnvironmentId,
    head: &Head,
    segment: u32,
    first: Term,
    visit: &mut dyn FnMut(Block<'_>),
) -> Result<()> {
    let (dimension, value) = first.parts();
    let part = SegmentPart::Block { dimension, value };
    read(snapshot, &layout::segment_part(environment, head.generation, segment, part), visit)
}

/// Shows `visit` the block under `key`.
pub(crate) fn read(
    snapshot: &dyn Snapshot,
    key: &Key<Bytes>,
    visit: &mut dyn FnMut(Block<'_>),
) -> Result<()> {
    let mut is_intact = false;
    snapshot.get_bytes(key, &mut |bytes| {
        if let Some(block) = Block::read(bytes) {
            is_intact = true;
            visit(block);
        }
    })?;
    if is_intact { Ok(()) } else { Err(corrupt(key.table(), "a block is missing")) }
}

impl<'a> Block<'a> {
    /// Returns the block of `bytes`. Returns `None` if the bytes are no block.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Self> {
        let (count, rest) = bytes.split_first_chunk()?;
        let count = usize::from(u16::from_le_bytes(*count));
        let (values, rest) = rest.split_at_checked(16 * count)?;
        let (ends, sets) = rest.split_at_checked(2 * count)?;
        let (values, ends) = (values.as_chunks().0, ends.as_chunks().0);
        Some(Self { values, ends, sets })
    }

    /// The set of the term with that value.
    pub(crate) fn find(self, value: u128) -> Option<View<'a>> {
        self.bytes_of(value).map(View::read)
    }

    /// The bytes of the set of the term with that value.
    pub(crate) fn bytes_of(self, value: u128) -> Option<&'a [u8]> {
        // Numbers are compared faster than bytes are.
        let at = self.values.binary_search_by_key(&value, |it| u128::from_be_bytes(*it)).ok()?;
        self.bytes(at)
    }

    /// Every value with the bytes of its set. Damaged sets are left out.
    pub(crate) fn entries(self) -> impl Iterator<Item = (u128, &'a [u8])> {
        let values = self.values.iter().copied().map(u128::from_be_bytes);
        values.enumerate().filter_map(move |(at, value)| Some((value, self.bytes(at)?)))
    }

    /// Every value and its set; `None` for a set if the block is damaged.
    pub(crate) fn iter(self) -> impl Iterator<Item = (u128, Option<View<'a>>)> {
        let values = self.values.iter().copied().map(u128::from_be_bytes);
        values.enumerate().map(move |(at, value)| (value, self.bytes(at).map(View::read)))
    }

    fn bytes(self, at: usize) -> Option<&'a [u8]> {
        let end = |at: usize| self.ends.get(at).copied().map(u16::from_le_bytes).map(usize::from);
        let start = at.checked_sub(1).map_or(Some(0), end)?;
        self.sets.get(start..end(at)?)
    }
}

impl Directory {
    fn new(firsts: Box<[[u8; 17]]>) -> Self {
        let mut ends = [0; 1 + DIMENSIONS];
        for (number, end) in (0_u8..).zip(&mut ends) {
            *end = firsts.partition_point(|[dimension, ..]| *dimension <= number);
        }
        Self { firsts, ends }
    }

    pub(crate) fn of(firsts: impl Iterator<Item = Term>) -> Self {
        Self::new(firsts.map(Term::to_bytes).collect())
    }

    /// The first term of the block that has each of `terms`, with the value of that term, for those that any
    /// block has.
    pub(crate) fn blocks_of(&self, terms: &[Term]) -> Vec<(Term, u128)> {
        let mut blocks = Vec::with_capacity(terms.len());
        lockstep::nearest(self.about(terms), terms, is_behind, |term, first| {
            let first = first_for(*first, *term);
            blocks.extend(first.map(|first| (first, term.parts().1)));
        });
        blocks
    }

    /// The first term of the block that has `term`, if any block has it.
    pub(crate) fn block_of(&self, term: Term) -> Option<Term> {
        let at = self.behind(term).checked_sub(1)?;
        first_for(*self.firsts.get(at)?, term)
    }

    pub(crate) fn len(&self) -> usize {
        self.firsts.len()
    }

    /// Index of the last block whose first term is `term` or a term before it, or 0.
    pub(crate) fn at(&self, term: Term) -> usize {
        self.behind(term).saturating_sub(1)
    }

    // Index of the first block whose first term is behind `term`.
    fn behind(&self, term: Term) -> usize {
        let (dimension, value) = term.parts();
        let within = self.within(dimension, dimension);
        let own = self.firsts.get(within.clone()).unwrap_or_default();
        within.start + own.partition_point(|first| parts(*first).1 <= value)
    }

    // The first terms of the dimensions of `terms`, which are in order.
    fn about(&self, terms: &[Term]) -> &[[u8; 17]] {
        let dimension = |term: Option<&Term>| term.map_or(0, |term| term.parts().0);
        let within = self.within(dimension(terms.first()), dimension(terms.last()));
        self.firsts.get(within).unwrap_or_default()
    }

    // The indexes of the blocks of the dimensions from `first` to `last`.
    fn within(&self, first: u8, last: u8) -> Range<usize> {
        let end = |number: u8| self.ends.get(usize::from(number)).copied().unwrap_or_default();
        end(first.saturating_sub(1))..end(last)
    }

    /// Returns the first term of the block with that index.
    pub(crate) fn get(&self, at: usize) -> Option<Term> {
        Term::of_bytes(*self.firsts.get(at)?)
    }

    /// The first terms of the blocks from that index on.
    pub(crate) fn from(&self, at: usize) -> impl Iterator<Item = Term> {
        let rest = self.firsts.get(at..).unwrap_or_default();
        rest.iter().filter_map(|bytes| Term::of_bytes(*bytes))
    }

    /// Returns `true` if one of `terms` is one of its terms.
    pub(crate) fn has_any(&self, terms: &[Term]) -> bool {
        let mut has_any = false;
        lockstep::nearest(self.about(terms), terms, is_behind, |term, found| {
            has_any |= parts(*found) == term.parts();
        });
        has_any
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.firsts.as_flattened()
    }

    /// Returns the directory of `bytes`. Returns `None` if the bytes are no directory.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let (firsts, []) = bytes.as_chunks() else { return None };
        firsts.is_sorted().then(|| Self::new(firsts.into()))
    }
}

// The parts of a term in bytes, which sort as the bytes do.
fn parts([dimension, value @ ..]: [u8; 17]) -> (u8, u128) {
    (dimension, u128::from_be_bytes(value))
}

// Returns `true` if a term in bytes is behind `term`.
#[expect(clippy::needless_bitwise_bool, reason = "the processor cannot predict branches here")]
fn is_behind(bytes: &[u8; 17], term: &Term) -> bool {
    let ((dimension, value), term) = (parts(*bytes), term.parts());
    (dimension > term.0) | (dimension == term.0) & (value > term.1)
}

// The first term of a block, from its bytes, if the block may have `term`.
fn first_for(bytes: [u8; 17], term: Term) -> Option<Term> {
    let first = Term::of_bytes(bytes)?;
    (first.parts().0 == term.parts().0 && first <= term).then_some(first)
}

impl Writer {
    /// Adds a term behind the others, with a set of `size` bytes that `write` writes. Returns the
    /// block before if that has no room for it.
    pub(crate) fn add(
        &mut self,
        term: Term,
        size: usize,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Option<(Term, Vec<u8>)> {
        let full = if self.has_room(term, size) { None } else { self.finish() };
        self.terms.push(term);
        write(&mut self.sets);
        self.ends.push(u16::try_from(self.sets.len()).unwrap_or(u16::MAX).to_le_bytes());
        full
    }

    // A block has terms about the same thing.
    fn has_room(&self, term: Term, size: usize) -> bool {
        let Some(first) = self.terms.first() else { return true };
        first.parts().0 == term.parts().0
            && 2 + 18 * (self.terms.len() + 1) + self.sets.len() + size <= FULL
    }

    /// Returns the block, if it has any term.
    pub(crate) fn finish(&mut self) -> Option<(Term, Vec<u8>)> {
        let Self { terms, ends, sets } = mem::take(self);
        let first = *terms.first()?;
        let mut bytes = u16::try_from(terms.len()).unwrap_or(u16::MAX).to_le_bytes().to_vec();
        bytes.extend(terms.iter().flat_map(|term| term.parts().1.to_be_bytes()));
        bytes.extend_from_slice(ends.as_flattened());
        bytes.extend_from_slice(&sets);
        Some((first, bytes))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_term_is_found_and_no_other(
            terms in proptest::collection::btree_map((1_u8..8, any::<u128>()), 1_u16..90, 1..60),
            other: u128,
        ) {
            let sets: BTreeMap<Term, Set> = terms
                .iter()
                .map(|((dimension, value), count)| {
                    (Term::of_parts(*dimension, *value).unwrap(), set(*count))
                })
                .collect();
            let sorted: Vec<(Term, &Set)> = sets.iter().map(|(term, set)| (*term, set)).collect();
            let blocks = write(&sorted);
            for (term, set) in &sorted {
                let block = blocks.iter().rfind(|(first, _)| first <= term).unwrap();
                let found = Block::read(&block.1).unwrap().find(term.parts().1).unwrap();
                prop_assert_eq!(&found.to_set(), *set);
            }
            let directory = Directory::of(blocks.iter().map(|(first, _)| *first));
            prop_assert_eq!(Directory::read(directory.as_bytes()), Some(directory.clone()));
            for (term, _) in &sorted {
                let block = blocks.iter().rfind(|(first, _)| first <= term).unwrap();
                prop_assert_eq!(directory.block_of(*term), Some(block.0));
            }
            let mut listed = Vec::new();
            for (first, bytes) in &blocks {
                prop_assert!(bytes.len() <= FULL);
                let block = Block::read(bytes).unwrap();
                let (dimension, _) = first.parts();
                prop_assert!(terms.contains_key(&(dimension, other)) || block.find(other).is_none());
                listed.extend(block.iter().map(|(value, _)| (dimension, value)));
            }
            prop_assert!(listed.iter().eq(terms.keys()));
        }

        #[test]
        fn any_bytes_are_a_block_or_none(bytes: Vec<u8>, value: u128) {
            if let Some(block) = Block::read(&bytes) {
                block.find(value);
                block.iter().for_each(drop);
            }
        }
    }

    fn set(count: u16) -> Set {
        let mut set = Set::default();
        (0..count).for_each(|place| set.insert(place * 7));
        set
    }
}
