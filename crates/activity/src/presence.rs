//! Bloom filter of the terms of a segment. With it a search skips most segments that have nothing
//! of a rare subscriber.
//!
//! Each term has six bits, all within the same 64 bytes, which the processor fetches at once.

use crate::facets::Term;

/// The terms that a segment may have. With as many terms as places, one in forty of the other terms
/// is a false positive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Presence(Box<[[u8; 64]]>);

const BITS: u32 = 6;

impl Presence {
    /// No term, in as many bytes as the segment has places.
    pub(crate) fn empty(places: u32) -> Self {
        Self(vec![[0; 64]; lines_of(places)].into_boxed_slice())
    }

    /// Returns the filter of `bytes` for a segment of so many places. Returns `None` if the bytes
    /// are no such filter.
    pub(crate) fn read(bytes: &[u8], places: u32) -> Option<Self> {
        let (lines, []) = bytes.as_chunks() else { return None };
        (lines.len() == lines_of(places)).then(|| Self(lines.into()))
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_flattened()
    }

    pub(crate) fn add(&mut self, term: Term) {
        let (line, bits) = place(term, self.0.len());
        let Some(line) = self.0.get_mut(line) else { return };
        for (at, mask) in bits {
            if let Some(byte) = line.get_mut(at) {
                *byte |= mask;
            }
        }
    }

    pub(crate) fn may_have(&self, term: Term) -> bool {
        let (line, mut bits) = place(term, self.0.len());
        // Without a filter anything may be there.
        let Some(line) = self.0.get(line) else { return true };
        bits.all(|(at, mask)| line.get(at).is_some_and(|byte| byte & mask != 0))
    }
}

// The line of a term, and its bits in there.
fn place(term: Term, lines: usize) -> (usize, impl Iterator<Item = (usize, u8)>) {
    let hash = hash(term);
    // The line and the bits within the line depend on different bits of the hash.
    let line = usize::try_from(spread(hash)).unwrap_or_default() % lines.max(1);
    let bits = (0..BITS).map(move |bit| {
        let at = hash >> (9 * bit) & 511;
        (usize::try_from(at / 8).unwrap_or_default(), 1 << (at % 8))
    });
    (line, bits)
}

fn lines_of(places: u32) -> usize {
    usize::try_from(places.div_ceil(64)).unwrap_or(1).max(1)
}

fn hash(term: Term) -> u64 {
    let (dimension, value) = term.parts();
    let half = |half: u128| u64::try_from(half & u128::from(u64::MAX)).unwrap_or_default();
    spread(half(value) ^ spread(half(value >> 64).wrapping_add(u64::from(dimension))))
}

// SplitMix64's way of making every bit depend on every other one.
fn spread(bits: u64) -> u64 {
    let bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::CAPACITY;

    #[test]
    fn it_knows_what_is_there_and_most_of_what_is_not() {
        let term = |value: u128| Term::of_parts(2, value << 80 | 7 << 76 | 2 << 62).unwrap();
        let mut presence = Presence::empty(CAPACITY);
        let there = u128::from(CAPACITY);
        (0..there).for_each(|value| presence.add(term(value)));
        assert!((0..there).all(|value| presence.may_have(term(value))));
        let wrong = (there..2 * there).filter(|value| presence.may_have(term(*value))).count();
        assert!(wrong < 61_440 / 30, "{wrong}");
        let bytes = presence.as_bytes();
        assert_eq!(Presence::read(bytes, CAPACITY), Some(presence.clone()));
        assert_eq!(Presence::read(&bytes[64..], CAPACITY), None);
        assert_eq!(Presence::read(&bytes[1..], CAPACITY), None);
    }
}
