//! Bloom filter of the terms of a segment. With it a search skips most segments that have nothing
//! of a rare subscriber.
//!
//! Each term has six bits, all within the same 64 bytes, which the processor fetches at once.

use crate::facets::Term;

/// The terms that a segment may have. With as many terms as places, one in forty of the other terms
/// is a false positive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Presence(Box<[[u8; 64]]>);

/// A term that is looked for, with its line in the filters of all segments of a size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe {
    pub(crate) term: Term,
    hash: u64,
    line: usize,
}

const BITS: u32 = 6;

impl Probe {
    /// A term that is looked for in segments of so many places.
    pub(crate) fn of(term: Term, places: u32) -> Self {
        let hash = hash(term);
        Self { term, hash, line: line(hash, lines_of(places)) }
    }
}

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
        let hash = hash(term);
        let line = line(hash, self.0.len());
        let Some(line) = self.0.get_mut(line) else { return };
        for (at, mask) in bits(hash) {
            if let Some(byte) = line.get_mut(at) {
                *byte |= mask;
            }
        }
    }

    /// Returns `true` if there may be a term. The probe is one for segments of this size.
    pub(crate) fn may_have(&self, probe: &Probe) -> bool {
        // Without a filter anything may be there.
        let Some(line) = self.0.get(probe.line) else { return true };
        // The processor cannot predict the bits, so it looks at each of them.
        let has = |(at, mask)| line.get(at).is_some_and(|byte| byte & mask != 0);
        bits(probe.hash).map(has).fold(true, |all, is_there| all & is_there)
    }
}

// The line of a term. It and the bits within it depend on different bits of the hash.
fn line(hash: u64, lines: usize) -> usize {
    usize::try_from(spread(hash)).unwrap_or_default() % lines.max(1)
}

// The bits of a term in its line: bytes, and a bit of each.
fn bits(hash: u64) -> impl Iterator<Item = (usize, u8)> {
    (0..BITS).map(move |bit| {
        let at = hash >> (9 * bit) & 511;
        (usize::try_from(at / 8).unwrap_or_default(), 1 << (at % 8))
    })
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
        let may_have = |value: &u128| presence.may_have(&Probe::of(term(*value), CAPACITY));
        assert!((0..there).all(|value| may_have(&value)));
        let wrong = (there..2 * there).filter(may_have).count();
        assert!(wrong < 61_440 / 30, "{wrong}");
        let bytes = presence.as_bytes();
        assert_eq!(Presence::read(bytes, CAPACITY), Some(presence.clone()));
        assert_eq!(Presence::read(&bytes[64..], CAPACITY), None);
        assert_eq!(Presence::read(&bytes[1..], CAPACITY), None);
    }
}
