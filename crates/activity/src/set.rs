//! Sets of places in a segment, laid out in memory as they are on disk.

use std::ops::{ControlFlow, Range};
use std::{iter, mem};

/// How many places a segment has at most. A bit for each of them, together with its key, fills two
/// pages of the store.
pub(crate) const CAPACITY: u32 = 61_440;

/// How many places are listed one by one. Bits take less room for more than that.
const FEW: usize = 3_840;
const WORDS: u16 = 960;

/// A set of places in a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Set {
    /// The places, smallest first.
    Few(Vec<[u8; 2]>),
    /// A bit for each place.
    Many(Box<[[u8; 8]]>),
}

/// A set that lies somewhere else.
#[derive(Clone, Copy, Debug)]
pub(crate) enum View<'a> {
    Few(&'a [[u8; 2]]),
    Many(&'a [[u8; 8]]),
}

impl Default for Set {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl Set {
    /// Every place within `range`.
    pub(crate) fn all(range: &Range<u32>) -> Self {
        let mut words = vec![u64::MAX.to_le_bytes(); usize::from(WORDS)].into_boxed_slice();
        clip(&mut words, range);
        Self::Many(words)
    }

    pub(crate) fn insert(&mut self, place: u16) {
        match self {
            Self::Few(places) => {
                let at = places.partition_point(|other| u16::from_le_bytes(*other) < place);
                if places.get(at) != Some(&place.to_le_bytes()) {
                    places.insert(at, place.to_le_bytes());
                }
                self.settle();
            }
            Self::Many(words) => set(words, place),
        }
    }

    pub(crate) fn view(&self) -> View<'_> {
        match self {
            Self::Few(places) => View::Few(places),
            Self::Many(words) => View::Many(words),
        }
    }

    /// Keeps what is in `other` as well.
    pub(crate) fn intersect(&mut self, other: View<'_>) {
        match (&mut *self, other) {
            (Self::Few(places), View::Few(others)) => keep_common(places, others),
            (Self::Few(places), View::Many(words)) => keep(places, |place| has(words, place)),
            (Self::Many(words), View::Few(places)) => {
                let both = places.iter().copied().filter(|place| has(words, *place));
                *self = Self::Few(both.collect());
            }
            (Self::Many(words), View::Many(others)) => {
                for (word, other) in words.iter_mut().zip(others) {
                    let both = u64::from_le_bytes(*word) & u64::from_le_bytes(*other);
                    *word = both.to_le_bytes();
                }
            }
        }
    }

    /// Takes in what is in `other`.
    pub(crate) fn unite(&mut self, other: View<'_>) {
        match (&mut *self, other) {
            (Self::Few(places), View::Few(others)) => {
                places.extend_from_slice(others);
                places.sort_unstable_by_key(|place| u16::from_le_bytes(*place));
                places.dedup();
                self.settle();
            }
            (Self::Few(_), View::Many(_)) => {
                let few = mem::replace(self, other.to_set());
                self.unite(few.view());
            }
            (Self::Many(words), View::Few(others)) => {
                for place in others {
                    set(words, u16::from_le_bytes(*place));
                }
            }
            (Self::Many(words), View::Many(others)) => {
                for (word, other) in words.iter_mut().zip(others) {
                    let either = u64::from_le_bytes(*word) | u64::from_le_bytes(*other);
                    *word = either.to_le_bytes();
                }
            }
        }
    }

    /// Drops what is in `other`.
    pub(crate) fn subtract(&mut self, other: View<'_>) {
        match self {
            Self::Few(places) => keep(places, |place| !other.contains(place)),
            Self::Many(words) => match other {
                View::Few(others) => {
                    for place in others {
                        unset(words, u16::from_le_bytes(*place));
                    }
                }
                View::Many(others) => {
                    for (word, other) in words.iter_mut().zip(others) {
                        let left = u64::from_le_bytes(*word) & !u64::from_le_bytes(*other);
                        *word = left.to_le_bytes();
                    }
                }
            },
        }
    }

    /// Keeps what is within `range`.
    pub(crate) fn clip(&mut self, range: &Range<u32>) {
        match self {
            Self::Few(places) => {
                places.retain(|place| range.contains(&u32::from(u16::from_le_bytes(*place))));
            }
            Self::Many(words) => clip(words, range),
        }
    }

    /// Shows `visit` the places, largest first, but for the first `skip`, which it counts down.
    pub(crate) fn descend(
        &self,
        skip: &mut u64,
        mut visit: impl FnMut(u16) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self {
            Self::Few(places) => {
                let count = places.len() as u64;
                let skipped = count.min(*skip);
                *skip -= skipped;
                let left = usize::try_from(count - skipped).unwrap_or_default();
                let left = places.get(..left).unwrap_or_default();
                left.iter().rev().try_for_each(|place| visit(u16::from_le_bytes(*place)))
            }
            Self::Many(words) => {
                for (at, word) in (0..WORDS).rev().zip(words.iter().rev()) {
                    let word = u64::from_le_bytes(*word);
                    let count = u64::from(word.count_ones());
                    if count <= *skip {
                        *skip -= count;
                        continue;
                    }
                    let skipped = usize::try_from(mem::take(skip)).unwrap_or(usize::MAX);
                    ones(word).skip(skipped).try_for_each(|bit| visit(at * 64 + bit))?;
                }
                ControlFlow::Continue(())
            }
        }
    }

    /// Adds the bytes of the set to `out`.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Few(places) => out.extend_from_slice(places.as_flattened()),
            Self::Many(words) => out.extend_from_slice(words.as_flattened()),
        }
    }

    // Lists of many places become bits.
    fn settle(&mut self) {
        if let Self::Few(places) = self
            && places.len() >= FEW
        {
            let mut words = vec![[0; 8]; usize::from(WORDS)].into_boxed_slice();
            for place in places {
                set(&mut words, u16::from_le_bytes(*place));
            }
            *self = Self::Many(words);
        }
    }
}

impl<'a> View<'a> {
    /// The set that was written as `bytes`.
    pub(crate) fn read(bytes: &'a [u8]) -> Self {
        if bytes.len() < 2 * FEW {
            Self::Few(bytes.as_chunks().0)
        } else {
            Self::Many(bytes.as_chunks().0)
        }
    }

    pub(crate) fn len(self) -> u64 {
        match self {
            Self::Few(places) => places.len() as u64,
            Self::Many(words) => {
                words.iter().map(|word| u64::from(u64::from_le_bytes(*word).count_ones())).sum()
            }
        }
    }

    pub(crate) fn is_empty(self) -> bool {
        match self {
            Self::Few(places) => places.is_empty(),
            Self::Many(words) => words.iter().all(|word| *word == [0; 8]),
        }
    }

    pub(crate) fn to_set(self) -> Set {
        match self {
            Self::Few(places) => Set::Few(places.to_vec()),
            Self::Many(words) => Set::Many(words.into()),
        }
    }

    pub(crate) fn places(self) -> impl Iterator<Item = u16> {
        let (few, many) = match self {
            Self::Few(places) => (places, [].as_slice()),
            Self::Many(words) => ([].as_slice(), words),
        };
        let few = few.iter().map(|place| u16::from_le_bytes(*place));
        let many = (0_u16..).zip(many).flat_map(|(at, word)| {
            let mut ones: Vec<u16> = ones(u64::from_le_bytes(*word)).collect();
            ones.reverse();
            ones.into_iter().map(move |bit| at * 64 + bit)
        });
        few.chain(many)
    }

    fn contains(self, place: [u8; 2]) -> bool {
        match self {
            Self::Few(places) => {
                let place = u16::from_le_bytes(place);
                places.binary_search_by_key(&place, |other| u16::from_le_bytes(*other)).is_ok()
            }
            Self::Many(words) => has(words, place),
        }
    }
}

// Whether a place is kept is as good as random, so that the processor had better not guess.
fn keep(places: &mut Vec<[u8; 2]>, is_kept: impl Fn([u8; 2]) -> bool) {
    let mut kept = 0;
    for at in 0..places.len() {
        let Some(place) = places.get(at).copied() else { break };
        if let Some(free) = places.get_mut(kept) {
            *free = place;
        }
        kept += usize::from(is_kept(place));
    }
    places.truncate(kept);
}

// Both are in order.
fn keep_common(places: &mut Vec<[u8; 2]>, others: &[[u8; 2]]) {
    const MUCH_LONGER: usize = 16;
    if others.len() / MUCH_LONGER > places.len() {
        return keep(places, |place| View::Few(others).contains(place));
    }
    let number = |place: &[u8; 2]| u16::from_le_bytes(*place);
    let mut others = others.iter().map(number);
    let mut other = others.next();
    places.retain(|place| {
        while other.is_some_and(|other| other < number(place)) {
            other = others.next();
        }
        other == Some(number(place))
    });
}

fn has(words: &[[u8; 8]], place: [u8; 2]) -> bool {
    let place = u16::from_le_bytes(place);
    let word = words.get(usize::from(place / 64)).copied().unwrap_or_default();
    u64::from_le_bytes(word) >> (place % 64) & 1 == 1
}

fn set(words: &mut [[u8; 8]], place: u16) {
    if let Some(word) = words.get_mut(usize::from(place / 64)) {
        *word = (u64::from_le_bytes(*word) | 1 << (place % 64)).to_le_bytes();
    }
}

fn unset(words: &mut [[u8; 8]], place: u16) {
    if let Some(word) = words.get_mut(usize::from(place / 64)) {
        *word = (u64::from_le_bytes(*word) & !(1 << (place % 64))).to_le_bytes();
    }
}

fn clip(words: &mut [[u8; 8]], range: &Range<u32>) {
    for (at, word) in (0_u32..).zip(words) {
        let low = range.start.saturating_sub(at * 64).min(64);
        let high = range.end.saturating_sub(at * 64).min(64);
        let below = |bits: u32| 1_u64.checked_shl(bits).map_or(u64::MAX, |bit| bit - 1);
        *word = (u64::from_le_bytes(*word) & below(high) & !below(low)).to_le_bytes();
    }
}

// The bits that are set, highest first.
fn ones(mut word: u64) -> impl Iterator<Item = u16> {
    iter::from_fn(move || {
        let bit = word.checked_ilog2()?;
        word ^= 1 << bit;
        u16::try_from(bit).ok()
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn places() -> impl Strategy<Value = BTreeSet<u16>> {
        let place = 0..u16::try_from(CAPACITY).unwrap();
        prop_oneof![
            proptest::collection::btree_set(place.clone(), 0..40),
            (place, 1_u16..7, 3_000_usize..9_000).prop_map(|(start, step, count)| {
                let all = (start..u16::try_from(CAPACITY).unwrap()).step_by(step.into());
                all.take(count).collect()
            }),
        ]
    }

    fn set_of(places: &BTreeSet<u16>) -> Set {
        let mut set = Set::default();
        places.iter().for_each(|place| set.insert(*place));
        set
    }

    fn back(set: &Set) -> BTreeSet<u16> {
        set.view().places().collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn a_set_behaves_like_a_set(one in places(), other in places(), from: u16, to: u16) {
            let (a, b) = (set_of(&one), set_of(&other));
            prop_assert_eq!(back(&a), one.clone());
            prop_assert_eq!(a.view().len(), one.len() as u64);
            prop_assert_eq!(a.view().is_empty(), one.is_empty());

            let mut both = a.clone();
            both.intersect(b.view());
            prop_assert_eq!(back(&both), &one & &other);
            prop_assert_eq!(both.view().is_empty(), one.is_disjoint(&other));
            let mut either = a.clone();
            either.unite(b.view());
            prop_assert_eq!(back(&either), &one | &other);
            let mut left = a.clone();
            left.subtract(b.view());
            prop_assert_eq!(back(&left), &one - &other);
            let mut clipped = a.clone();
            let range = u32::from(from)..u32::from(to);
            clipped.clip(&range);
            let within = one.iter().copied().filter(|place| range.contains(&u32::from(*place)));
            prop_assert_eq!(back(&clipped), within.collect());
        }

        #[test]
        fn a_set_is_read_as_it_was_written(places in places()) {
            let set = set_of(&places);
            let mut bytes = Vec::new();
            set.write(&mut bytes);
            prop_assert!(bytes.len() <= 2 * FEW);
            prop_assert_eq!(View::read(&bytes).to_set(), set);
        }

        #[test]
        fn descending_skips_the_largest(places in places(), skip in 0_u64..10_000, limit in 1..60) {
            let set = set_of(&places);
            let mut left = skip;
            let mut seen = Vec::new();
            let _ = set.descend(&mut left, |place| {
                seen.push(place);
                if seen.len() == limit as usize {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
            let expected = places.iter().rev().skip(skip as usize).take(limit as usize);
            prop_assert_eq!(seen, expected.copied().collect::<Vec<_>>());
            prop_assert_eq!(left, skip.saturating_sub(places.len() as u64));
        }

        #[test]
        fn all_is_a_range(start in 0..CAPACITY, end in 0..=CAPACITY) {
            let all: Vec<u32> = Set::all(&(start..end)).view().places().map(u32::from).collect();
            prop_assert_eq!(all, (start..end).collect::<Vec<_>>());
        }
    }
}
