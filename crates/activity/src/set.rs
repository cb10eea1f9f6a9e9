//! Sets of places in a segment, laid out in memory as they are on disk.

use std::{iter, mem};

use smallvec::SmallVec;

/// Maximum number of places in a segment. A bit for each of them, together with the key, fills two
/// pages of the store.
pub(crate) const CAPACITY: u32 = 61_440;

/// Maximum number of places that are listed one by one. Bits take less room for more than that.
const FEW: usize = 3_840;
const WORDS: u16 = 960;

/// A set of places in a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Set {
    /// The places, smallest first. Most sets have one or two.
    Few(SmallVec<[[u8; 2]; 8]>),
    /// A bit for each place.
    Many(Box<[[u8; 8]]>),
}

/// A set in borrowed bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum View<'a> {
    Few(&'a [[u8; 2]]),
    Many(&'a [[u8; 8]]),
}

impl Default for Set {
    fn default() -> Self {
        Self::Few(SmallVec::new())
    }
}

impl Set {
    /// No place, and room for many.
    pub(crate) fn roomy() -> Self {
        Self::Many(vec![[0; 8]; usize::from(WORDS)].into_boxed_slice())
    }

    /// The places that are in any of `sets`.
    pub(crate) fn united(sets: &[View<'_>]) -> Self {
        let mut all = Self::roomy();
        for set in sets {
            all.unite(*set);
        }
        all
    }

    pub(crate) fn insert(&mut self, place: u16) {
        match self {
            Self::Few(places) => {
                let number = |place: &[u8; 2]| u16::from_le_bytes(*place);
                if places.last().is_none_or(|last| number(last) < place) {
                    places.push(place.to_le_bytes());
                } else if let Err(at) = places.binary_search_by_key(&place, number) {
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

    /// Takes in the places of `other`.
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

    /// Takes out the places of `other`.
    pub(crate) fn leave_out(&mut self, other: View<'_>) {
        match self {
            Self::Few(places) => places.retain(|place| !other.contains(*place)),
            Self::Many(words) => match other {
                View::Few(others) => {
                    for place in others {
                        let place = u16::from_le_bytes(*place);
                        if let Some(word) = words.get_mut(usize::from(place / 64)) {
                            *word =
                                (u64::from_le_bytes(*word) & !(1 << (place % 64))).to_le_bytes();
                        }
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

    /// Adds the places of the bits of a word whose first bit is `ordinal`, in a segment that starts
    /// with `start`. Bits outside of the segment are left out.
    pub(crate) fn add_word(&mut self, ordinal: u64, start: u64, word: u64) {
        if let Self::Many(words) = self
            && let Some(place) = ordinal.checked_sub(start).filter(|place| place % 64 == 0)
        {
            let own = usize::try_from(place / 64).ok().and_then(|at| words.get_mut(at));
            if let Some(own) = own {
                *own = (u64::from_le_bytes(*own) | word).to_le_bytes();
            }
            return;
        }
        for bit in ones(word) {
            let place = (ordinal + u64::from(bit)).checked_sub(start);
            if let Some(Ok(place)) = place.map(u16::try_from) {
                self.insert(place);
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
            let few = mem::replace(self, Self::roomy());
            self.unite(few.view());
        }
    }
}

impl<'a> View<'a> {
    /// The set that was written as `bytes`.
    pub(crate) fn read(bytes: &'a [u8]) -> Self {
        if bytes.len() < 2 * FEW {
            Self::Few(bytes.as_chunks().0)
        } else {
            let words = bytes.as_chunks().0;
            Self::Many(words.get(..usize::from(WORDS)).unwrap_or(words))
        }
    }

    /// Returns `true` if there is no place.
    pub(crate) fn is_empty(self) -> bool {
        match self {
            Self::Few(places) => places.is_empty(),
            Self::Many(words) => words.iter().all(|word| *word == [0; 8]),
        }
    }

    /// The number of places.
    pub(crate) fn len(self) -> u64 {
        match self {
            Self::Few(places) => places.len() as u64,
            Self::Many(words) => {
                words.iter().map(|word| u64::from(u64::from_le_bytes(*word).count_ones())).sum()
            }
        }
    }

    /// Returns `true` if a place is in the set.
    pub(crate) fn contains(self, place: [u8; 2]) -> bool {
        match self {
            Self::Few(places) => {
                let number = |place: &[u8; 2]| u16::from_le_bytes(*place);
                places.binary_search_by_key(&number(&place), number).is_ok()
            }
            Self::Many(words) => has(words, place),
        }
    }

    pub(crate) fn to_set(self) -> Set {
        match self {
            Self::Few(places) => Set::Few(places.into()),
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
}

/// Returns `true` if the bit of a place is set.
pub(crate) fn has(words: &[[u8; 8]], place: [u8; 2]) -> bool {
    let place = u16::from_le_bytes(place);
    let word = words.get(usize::from(place / 64)).copied().unwrap_or_default();
    u64::from_le_bytes(word) >> (place % 64) & 1 == 1
}

fn set(words: &mut [[u8; 8]], place: u16) {
    if let Some(word) = words.get_mut(usize::from(place / 64)) {
        *word = (u64::from_le_bytes(*word) | 1 << (place % 64)).to_le_bytes();
    }
}

/// The bits that are set, highest first.
pub(crate) fn ones(mut word: u64) -> impl Iterator<Item = u16> {
    iter::from_fn(move || {
        let bit = word.checked_ilog2()?;
        word ^= 1 << bit;
        u16::try_from(bit).ok()
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    pub(crate) fn places() -> impl Strategy<Value = BTreeSet<u16>> {
        let place = 0..u16::try_from(CAPACITY).unwrap();
        prop_oneof![
            proptest::collection::btree_set(place.clone(), 0..40),
            (place, 1_u16..7, 3_000_usize..9_000).prop_map(|(start, step, count)| {
                let all = (start..u16::try_from(CAPACITY).unwrap()).step_by(step.into());
                all.take(count).collect()
            }),
        ]
    }

    pub(crate) fn set_of(places: &BTreeSet<u16>) -> Set {
        let mut set = Set::default();
        for place in places {
            set.insert(*place);
        }
        set
    }

    fn back(set: &Set) -> BTreeSet<u16> {
        set.view().places().collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn a_set_behaves_like_a_set(one in places(), other in places()) {
            let (a, b) = (set_of(&one), set_of(&other));
            prop_assert_eq!(back(&a), one.clone());
            prop_assert_eq!(a.view().len(), one.len() as u64);

            let mut either = a.clone();
            either.unite(b.view());
            prop_assert_eq!(back(&either), &one | &other);

            let mut rest = a.clone();
            rest.leave_out(b.view());
            prop_assert_eq!(rest.view().is_empty(), one.is_subset(&other));
            prop_assert_eq!(back(&rest), &one - &other);
        }

        #[test]
        fn a_word_adds_the_places_of_its_bits(
            places in places(),
            ordinal in 0_u64..200,
            start in 0_u64..200,
            word: u64,
        ) {
            let bits = ones(word).filter_map(|bit| (ordinal + u64::from(bit)).checked_sub(start));
            let bits = bits.map(|place| u16::try_from(place).unwrap());
            let expected: BTreeSet<u16> = places.iter().copied().chain(bits).collect();
            let mut roomy = Set::roomy();
            roomy.unite(set_of(&places).view());
            for mut set in [set_of(&places), roomy] {
                set.add_word(ordinal, start, word);
                prop_assert_eq!(back(&set), expected.clone());
            }
        }

        #[test]
        fn a_set_is_read_as_it_was_written(places in places()) {
            let set = set_of(&places);
            let mut bytes = Vec::new();
            set.write(&mut bytes);
            prop_assert!(bytes.len() <= 2 * FEW);
            prop_assert_eq!(View::read(&bytes).to_set(), set);
        }
    }
}
