//! Blocks: the sets of several terms in one value of the store.
//!
//! A block has the number of its terms, their values in order, where the set of each one ends, and
//! the sets. Most terms of a segment name one or two notifications, and the key of a row of its own
//! would cost ten times what the set does.

use crate::set::{Set, View};

/// How long a block with several terms may be, so that it fills a page of the store.
const FULL: usize = 3_900;

/// A block that lies somewhere else.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block<'a> {
    values: &'a [[u8; 16]],
    ends: &'a [[u8; 2]],
    sets: &'a [u8],
}

/// A block in the making.
#[derive(Debug, Default)]
pub(crate) struct BlockWriter {
    values: Vec<[u8; 16]>,
    ends: Vec<[u8; 2]>,
    sets: Vec<u8>,
}

impl<'a> Block<'a> {
    /// The block that was written as `bytes`, or nothing if they are no block.
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
        let at = self.values.binary_search(&value.to_be_bytes()).ok()?;
        self.set(at)
    }

    /// The first of its values.
    pub(crate) fn first(self) -> Option<u128> {
        self.values.first().copied().map(u128::from_be_bytes)
    }

    /// Every value and its set; nothing for a set if the block is damaged.
    pub(crate) fn iter(self) -> impl Iterator<Item = (u128, Option<View<'a>>)> {
        let values = self.values.iter().copied().map(u128::from_be_bytes);
        values.enumerate().map(move |(at, value)| (value, self.set(at)))
    }

    fn set(self, at: usize) -> Option<View<'a>> {
        let end = |at: usize| self.ends.get(at).copied().map(u16::from_le_bytes).map(usize::from);
        let start = at.checked_sub(1).map_or(Some(0), end)?;
        self.sets.get(start..end(at)?).map(View::read)
    }
}

impl BlockWriter {
    /// Whether there is room for the set of another term.
    pub(crate) fn has_room(&self, set: &Set) -> bool {
        let size = match set.view() {
            View::Few(places) => 2 * places.len(),
            View::Many(words) => 8 * words.len(),
        };
        self.values.is_empty() || 2 + 18 * (self.values.len() + 1) + self.sets.len() + size <= FULL
    }

    /// Adds the set of a term with a larger value.
    pub(crate) fn add(&mut self, value: u128, set: &Set) {
        self.values.push(value.to_be_bytes());
        set.write(&mut self.sets);
        self.ends.push(u16::try_from(self.sets.len()).unwrap_or(u16::MAX).to_le_bytes());
    }

    /// The first value and the bytes, or nothing if it is empty.
    pub(crate) fn finish(&mut self) -> Option<(u128, Vec<u8>)> {
        let Self { values, ends, sets } = std::mem::take(self);
        let first = u128::from_be_bytes(*values.first()?);
        let count = u16::try_from(values.len()).unwrap_or(u16::MAX).to_le_bytes();
        let bytes = [&count, values.as_flattened(), ends.as_flattened(), &sets].concat();
        Some((first, bytes))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_value_is_found_and_no_other(
            terms in proptest::collection::btree_map(any::<u128>(), 1_u16..90, 1..60),
            other: u128,
        ) {
            let mut writer = BlockWriter::default();
            let mut blocks = Vec::new();
            for (value, count) in &terms {
                let set = set(*count);
                if !writer.has_room(&set) {
                    blocks.extend(writer.finish());
                }
                writer.add(*value, &set);
            }
            blocks.extend(writer.finish());
            for (value, count) in &terms {
                let block = blocks.iter().rfind(|(first, _)| first <= value).unwrap();
                let found = Block::read(&block.1).unwrap().find(*value).unwrap();
                prop_assert_eq!(found.to_set(), set(*count));
            }
            for (first, bytes) in &blocks {
                prop_assert!(bytes.len() <= FULL);
                let block = Block::read(bytes).unwrap();
                prop_assert_eq!(block.first(), Some(*first));
                prop_assert!(terms.contains_key(&other) || block.find(other).is_none());
            }
            let listed = blocks.iter().flat_map(|(_, bytes)| Block::read(bytes).unwrap().iter());
            prop_assert!(listed.map(|(value, _)| value).eq(terms.keys().copied()));
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
