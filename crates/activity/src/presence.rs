//! Which terms a segment may have: a Bloom filter, so that most segments that have nothing of a
//! rare subscriber are not looked into.
//!
//! Each term has six bits, all within the same 64 bytes, which the processor fetches at once.

use crate::facets::Term;

/// The terms that a segment may have. It is wrong about one in thirty of those that it has not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Presence(Box<[[u8; 64]]>);

const BITS: u32 = 6;

impl Presence {
    /// No term, in as many bytes as the segment has places.
    pub(crate) fn empty(places: u32) -> Self {
        let lines = usize::try_from(places.div_ceil(64)).unwrap_or(1).max(1);
        Self(vec![[0; 64]; lines].into_boxed_slice())
    }

    /// What was written as `bytes`.
    pub(crate) fn read(bytes: &[u8]) -> Self {
        Self(bytes.as_chunks().0.into())
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
    let line = usize::try_from(hash >> 54).unwrap_or_default() % lines.max(1);
    let bits = (0..BITS).map(move |bit| {
        let at = hash >> (9 * bit) & 511;
        (usize::try_from(at / 8).unwrap_or_default(), 1 << (at % 8))
    });
    (line, bits)
}

// SplitMix64's way of spreading bits, over both halves of the value.
fn hash(term: Term) -> u64 {
    let (dimension, value) = term.parts();
    let [high, low] = [value >> 64, value].map(|half| u64::try_from(half & MASK).unwrap_or(0));
    let spread = |mut bits: u64| {
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ bits >> 31
    };
    spread(low ^ spread(high.wrapping_add(u64::from(dimension))))
}

const MASK: u128 = 0xffff_ffff_ffff_ffff;
