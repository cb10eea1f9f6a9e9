//! Walking through the places of a segment that are in several sets, newest first, and no further
//! than need be.

use std::ops::Range;
use std::{mem, slice};

use crate::lockstep;
use crate::set::{View, has, ones};

/// The places within `range` that are in each of `sets`, and not in `without`.
#[derive(Clone, Debug)]
pub(crate) struct Walk<'a> {
    pub(crate) range: Range<u32>,
    pub(crate) sets: &'a [Any<'a>],
    pub(crate) without: Option<View<'a>>,
}

/// The places that are in any of these sets. Sets are united as far as a walk goes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Any<'a> {
    One(View<'a>),
    Several(&'a [View<'a>]),
}

/// Page that one or several walks fill: the first places are skipped, and the next ones taken up to
/// a limit.
#[derive(Debug)]
pub(crate) struct Page<T> {
    /// Number of places left to skip.
    pub(crate) skip: u64,
    /// Number of wanted places.
    limit: usize,
    pub(crate) found: Vec<T>,
}

/// Number of places in 64 words.
pub(crate) const LINE: u32 = 64 * 64;

/// Number of places from which a list is too long to test each of them in several sets.
const LONG: usize = 512;

/// Number of places from which a list is too long to test each of them in united sets.
const LONG_FOR_UNIONS: usize = 64;

/// Maximum number of places that are sorted to unite sets.
const SORTED: usize = 256;

impl<T> Page<T> {
    pub(crate) fn new(skip: u64, limit: usize) -> Self {
        Self { skip, limit, found: Vec::with_capacity(limit.min(64)) }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.found.len() >= self.limit
    }

    /// Takes the results of `at` for `places`, newest first.
    pub(crate) fn extend(
        &mut self,
        places: impl ExactSizeIterator<Item = u32>,
        at: impl FnMut(u32) -> T,
    ) {
        let skip = usize::try_from(self.skip).unwrap_or(usize::MAX).min(places.len());
        self.skip -= skip as u64;
        let room = self.limit - self.found.len();
        self.found.extend(places.skip(skip).take(room).map(at));
    }

    // Takes the bits of `mask`, highest first.
    fn take(&mut self, mask: u64, mut at: impl FnMut(u16) -> T) {
        let count = u64::from(mask.count_ones());
        if count <= self.skip {
            self.skip -= count;
            return;
        }
        let skip = usize::try_from(mem::take(&mut self.skip)).unwrap_or(usize::MAX);
        let room = self.limit - self.found.len();
        self.found.extend(ones(mask).skip(skip).take(room).map(&mut at));
    }
}

impl Walk<'_> {
    /// Adds the results of `at` for the places to `page`.
    pub(crate) fn go<T>(&self, page: &mut Page<T>, at: impl FnMut(u32) -> T) {
        let lists = self.sets.iter().enumerate().filter_map(|(number, set)| match set {
            Any::One(View::Few(places)) => Some((number, *places)),
            Any::One(View::Many(_)) | Any::Several(_) => None,
        });
        let unites = self.sets.iter().any(|set| matches!(set, Any::Several(_)));
        let is_long = |places: &[[u8; 2]]| {
            places.len() >= LONG && self.sets.len() > 2 || places.len() >= LONG_FOR_UNIONS && unites
        };
        match lists.min_by_key(|(_, places)| places.len()) {
            Some((number, places)) if !is_long(places) => self.along(places, number, page, at),
            None if self.sets.is_empty() && self.without.is_none() => {
                page.extend(self.range.clone().rev(), at);
            }
            Some(_) | None => self.across(page, at),
        }
    }

    /// Returns `true` if there is any such place.
    pub(crate) fn leads_anywhere(&self) -> bool {
        let mut page = Page::new(0, 1);
        self.go(&mut page, |_| ());
        page.is_full()
    }

    // Goes along the shortest list, 64 places at a time, so that the processor has no branches to
    // predict.
    fn along<T>(
        &self,
        places: &[[u8; 2]],
        number: usize,
        page: &mut Page<T>,
        mut at: impl FnMut(u32) -> T,
    ) {
        for places in within(places, &self.range).rchunks(64) {
            let mut mask = u64::MAX >> (64 - places.len());
            for (_, set) in self.sets.iter().enumerate().filter(|(other, _)| *other != number) {
                mask &= set.mask(places, mask);
            }
            if let Some(without) = self.without {
                mask &= !without.mask(places, mask);
            }
            page.take(mask, |bit| {
                let place = places.get(usize::from(bit)).copied().unwrap_or_default();
                at(u16::from_le_bytes(place).into())
            });
            if page.is_full() {
                return;
            }
        }
    }

    // Goes through 64 words at a time. Most of them are empty if little matches.
    fn across<T>(&self, page: &mut Page<T>, mut at: impl FnMut(u32) -> T) {
        let lines = self.range.start / LINE..self.range.end.div_ceil(LINE);
        let mut left = Left::of(self.sets);
        for line in lines.rev() {
            let start = line * LINE;
            let Some(words) = left.line(start) else { continue };
            for (at_word, word) in (0_u32..64).rev().zip(words.iter().rev()) {
                let (place, mut word) = (start + at_word * 64, *word);
                let within = |bound: u32| {
                    let bits = bound.saturating_sub(place).min(64);
                    1_u64.checked_shl(bits).map_or(u64::MAX, |bit| bit - 1)
                };
                word &= within(self.range.end) & !within(self.range.start);
                if let Some(without) = self.without {
                    word &= !without.word(place);
                }
                page.take(word, |bit| at(place + u32::from(bit)));
                if page.is_full() {
                    return;
                }
            }
        }
    }
}

impl<'a> Any<'a> {
    /// The places in any of `sets`. They are put in order in `few` if few of them are within
    /// `range`.
    pub(crate) fn of(sets: &'a [View<'a>], range: &Range<u32>, few: &'a mut Vec<[u8; 2]>) -> Self {
        if let [one] = sets {
            return Self::One(*one);
        }
        for set in sets {
            let View::Few(places) = set else { return Self::Several(sets) };
            let places = within(places, range);
            if few.len() + places.len() > SORTED {
                return Self::Several(sets);
            }
            few.extend_from_slice(places);
        }
        few.sort_unstable_by_key(|place| u16::from_le_bytes(*place));
        few.dedup();
        Self::One(View::Few(few))
    }

    fn sets(&self) -> &[View<'a>] {
        match self {
            Self::One(set) => slice::from_ref(set),
            Self::Several(sets) => sets,
        }
    }

    /// Mask of those of at most 64 places that are in a set. The mask has no bit outside `wanted`.
    pub(crate) fn mask(&self, places: &[[u8; 2]], wanted: u64) -> u64 {
        let sets = self.sets().iter();
        sets.fold(0, |mask, set| mask | set.mask(places, wanted & !mask)) & wanted
    }
}

/// The parts of several sets in front of the lines that a walk has been through.
#[derive(Debug)]
struct Left<'a>(Vec<Vec<View<'a>>>);

impl<'a> Left<'a> {
    fn of(sets: &[Any<'a>]) -> Self {
        let mut all: Vec<Vec<View<'a>>> = sets.iter().map(|set| set.sets().to_vec()).collect();
        // Bits are quicker than lists.
        all.sort_by_key(|sets| !matches!(sets.as_slice(), [View::Many(_)]));
        Self(all)
    }

    // The bits of the places from `start` on that are in each of the sets, unless there are none.
    fn line(&mut self, start: u32) -> Option<[u64; 64]> {
        let mut words = [u64::MAX; 64];
        for any in &mut self.0 {
            let mut own = [0; 64];
            for set in any.iter_mut() {
                set.take_line(start, &mut own);
            }
            let mut all = 0;
            for (word, own) in words.iter_mut().zip(own) {
                *word &= own;
                all |= *word;
            }
            if all == 0 {
                return None;
            }
        }
        Some(words)
    }
}

impl View<'_> {
    // Mask of those of at most 64 places that are in the set. Places outside `wanted` may be left
    // out.
    fn mask(self, places: &[[u8; 2]], wanted: u64) -> u64 {
        match self {
            // Fewer than eight places are tested one by one.
            Self::Many(words) if wanted.count_ones() < 8 => ones(wanted).fold(0, |mask, bit| {
                let place = places.get(usize::from(bit)).copied().unwrap_or_default();
                mask | u64::from(has(words, place)) << bit
            }),
            Self::Many(words) => {
                let bits = places.iter().map(|place| u64::from(has(words, *place)));
                bits.enumerate().fold(0, |mask, (bit, is_in)| mask | is_in << bit)
            }
            Self::Few(others) => common(places, others),
        }
    }

    // Adds the bits of the places from `start` on that are in the set. Takes those places, and the
    // ones behind them, out of a list.
    fn take_line(&mut self, start: u32, words: &mut [u64; 64]) {
        match self {
            Self::Many(all) => {
                let from = usize::try_from(start / 64).unwrap_or(usize::MAX);
                let line = all.get(from..).and_then(<[_]>::split_first_chunk::<64>);
                if let Some((line, _)) = line {
                    for (word, own) in words.iter_mut().zip(line) {
                        *word |= u64::from_le_bytes(*own);
                    }
                }
            }
            Self::Few(places) => {
                let number = |place: &[u8; 2]| u32::from(u16::from_le_bytes(*place));
                if places.last().is_some_and(|last| number(last) >= start + LINE) {
                    let end = places.partition_point(|place| number(place) < start + LINE);
                    *places = places.get(..end).unwrap_or_default();
                }
                while let Some((last, rest)) = places.split_last()
                    && let Some(place) = number(last).checked_sub(start)
                {
                    let at = usize::try_from(place / 64).unwrap_or_default();
                    // A list that is damaged may go back.
                    if let Some(word) = words.get_mut(at) {
                        *word |= 1 << (place % 64);
                    }
                    *places = rest;
                }
            }
        }
    }

    // The bits of the 64 places from `start` on.
    fn word(self, start: u32) -> u64 {
        match self {
            Self::Many(words) => {
                let word = usize::try_from(start / 64).ok().and_then(|at| words.get(at));
                word.copied().map_or(0, u64::from_le_bytes)
            }
            Self::Few(places) => {
                let place = |place: &[u8; 2]| u32::from(u16::from_le_bytes(*place));
                let first = places.partition_point(|other| place(other) < start);
                let rest = places.get(first..).unwrap_or_default();
                let within = rest.iter().map(place).take_while(|place| *place < start + 64);
                let bits = within.filter_map(|place| place.checked_sub(start));
                bits.fold(0, |mask, bit| mask | 1 << bit)
            }
        }
    }
}

// Those of `places` that are within `range`.
fn within<'a>(places: &'a [[u8; 2]], range: &Range<u32>) -> &'a [[u8; 2]] {
    let before =
        |bound: u32| places.partition_point(|place| u32::from(u16::from_le_bytes(*place)) < bound);
    places.get(before(range.start)..before(range.end)).unwrap_or_default()
}

// Mask of those of at most 64 places that are in a list. Both are in order.
fn common(places: &[[u8; 2]], others: &[[u8; 2]]) -> u64 {
    let number = |place: &[u8; 2]| u16::from_le_bytes(*place);
    let mut mask = 0;
    if places.len() <= lockstep::TOGETHER {
        let (is_behind, mut bit) = (|other: &_, place: &_| number(other) > number(place), 0);
        lockstep::nearest(others, places, is_behind, |place, other| {
            mask |= u64::from(place == other) << bit;
            bit += 1;
        });
        return mask;
    }
    let Some(first) = places.first().map(number) else { return 0 };
    let mut others = others.get(others.partition_point(|other| number(other) < first)..);
    for (bit, place) in places.iter().map(number).enumerate() {
        let Some(rest) = others else { break };
        // Matches are seldom far apart, so the step starts at one and doubles.
        let mut step = 1;
        while rest.get(step).is_some_and(|other| number(other) <= place) {
            step *= 2;
        }
        let near = rest.get(..rest.len().min(step)).unwrap_or_default();
        let before = near.partition_point(|other| number(other) < place);
        mask |= u64::from(rest.get(before).map(number) == Some(place)) << bit;
        others = rest.get(before..);
    }
    mask
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::set::tests::{places, set_of};
    use crate::set::{CAPACITY, Set};

    proptest! {
        #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

        #[test]
        fn a_walk_goes_through_what_is_in_all_sets(
            groups in proptest::collection::vec(proptest::collection::vec(places(), 1..5), 0..4),
            without in proptest::option::of(places()),
            start in 0..CAPACITY,
            len in prop_oneof![0..200_u32, Just(CAPACITY)],
            skip in prop_oneof![Just(0), 0_u64..100, 0_u64..20_000],
            limit in prop_oneof![1_usize..50, Just(100_000)],
        ) {
            let range = start..(start + len).min(CAPACITY);
            let expected = range.clone().rev().filter(|place| {
                let is_in = |places: &BTreeSet<u16>| places.contains(&u16::try_from(*place).unwrap());
                groups.iter().all(|group| group.iter().any(is_in))
                    && !without.as_ref().is_some_and(is_in)
            });
            let expected: Vec<u32> = expected.collect();
            let groups: Vec<Vec<Set>> =
                groups.iter().map(|group| group.iter().map(set_of).collect()).collect();
            let without = without.as_ref().map(set_of);
            let views: Vec<Vec<View<'_>>> =
                groups.iter().map(|group| group.iter().map(Set::view).collect()).collect();
            let without = without.as_ref().map(Set::view);
            let mut few = vec![Vec::new(); views.len()];
            let sets = views.iter().zip(&mut few).map(|(group, few)| Any::of(group, &range, few));
            let sets: Vec<Any<'_>> = sets.collect();
            let walk = Walk { range: range.clone(), sets: &sets, without };

            let mut page = Page::new(skip, limit);
            walk.go(&mut page, |place| place);
            let there = expected.iter().copied().skip(usize::try_from(skip).unwrap()).take(limit);
            prop_assert_eq!(&page.found, &there.collect::<Vec<_>>());
            prop_assert_eq!(page.skip, skip.saturating_sub(expected.len() as u64));
            prop_assert_eq!(walk.leads_anywhere(), !expected.is_empty());

            let mut all = Page::<()>::new(u64::MAX, 1);
            walk.go(&mut all, |_| ());
            prop_assert_eq!(u64::MAX - all.skip, expected.len() as u64);
        }

        #[test]
        fn damaged_sets_lead_somewhere_or_nowhere(
            sets in proptest::collection::vec(bytes(), 1..4),
            without in bytes(),
            start in 0..CAPACITY,
            len in 0..CAPACITY,
        ) {
            let views: Vec<View<'_>> = sets.iter().map(|bytes| View::read(bytes)).collect();
            let range = start..(start + len).min(CAPACITY);
            let mut few = Vec::new();
            let any = Any::of(&views, &range, &mut few);
            let sets: Vec<Any<'_>> = views.iter().map(|set| Any::One(*set)).chain([any]).collect();
            let walk = Walk { range, sets: &sets, without: Some(View::read(&without)) };
            walk.go(&mut Page::new(3, 100), |place| place);
            walk.leads_anywhere();
            for set in &views {
                set.places().for_each(drop);
            }
        }
    }

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![0_usize..200, 7_000_usize..9_000]
            .prop_flat_map(|len| proptest::collection::vec(any::<u8>(), len))
    }
}
