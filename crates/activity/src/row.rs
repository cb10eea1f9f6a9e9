//! A row of facets: successive notifications, each as its difference from the one before it.
//!
//! The notifications of one trigger differ in their subscriber, and most neighbours have severity,
//! channels and contexts in common. The facets of a notification are
//!
//! - the time, less that of the notification before, as a zigzag integer,
//! - a bit for each of the first 64 terms of the notification before that it has as well,
//! - the number of its other terms, and those: a byte for the dimension and the number of bytes of
//!   the value, and these bytes.
//!
//! Integers are in LEB128. The first notification of a row has an empty one before it.

use domain::time::Timestamp;
use parking_lot::Mutex;

use crate::facets::{Facets, Term};

/// Facets of the last notification that a row has, while it is read or written.
#[derive(Debug, Default)]
pub(crate) struct RowState {
    last: Facets,
    // Terms of the next notification, kept for their room.
    terms: Vec<Term>,
}

/// The row that was put last, with the state behind it. A trigger that finds the bytes of this row goes on
/// from there, and does not read the notifications in it.
#[derive(Debug, Default)]
pub(crate) struct LastRow(Mutex<Option<(Vec<u8>, RowState)>>);

/// Bits of a dimension in the byte before a value.
const DIMENSION_BITS: u8 = 3;

impl RowState {
    /// State behind the notifications of `row`. Returns `None` if the bytes are no row.
    pub(crate) fn behind(mut row: &[u8]) -> Option<Self> {
        let mut state = Self::default();
        while !row.is_empty() {
            row = state.read(row)?;
        }
        Some(state)
    }

    /// Facets of the last notification.
    pub(crate) const fn last(&self) -> &Facets {
        &self.last
    }

    /// Reads the next notification, and returns the bytes behind it. Returns `None` if the bytes are
    /// no facets.
    pub(crate) fn read<'a>(&mut self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let (delta, rest) = read_integer(bytes)?;
        let (kept, rest) = read_integer(rest)?;
        let (others, mut rest) = read_integer(rest)?;
        let millis = self.last.created_at.as_millis().checked_add(from_zigzag(delta))?;
        self.terms.clear();
        for (at, term) in self.last.terms.iter().take(64).enumerate() {
            if kept >> at & 1 == 1 {
                self.terms.push(*term);
            }
        }
        if u64::from(kept.count_ones()) != self.terms.len() as u64 {
            return None;
        }
        for _ in 0..others {
            let (term, behind) = read_term(rest)?;
            self.terms.push(term);
            rest = behind;
        }
        self.terms.sort_unstable();
        std::mem::swap(&mut self.terms, &mut self.last.terms);
        self.last.created_at = Timestamp::from_millis(millis);
        Some(rest)
    }

    /// Adds the bytes of the next notification to `out`.
    pub(crate) fn write(&mut self, facets: &Facets, out: &mut Vec<u8>) {
        let before = &self.last.terms;
        let before = before.get(..before.len().min(64)).unwrap_or_default();
        let mut kept = 0;
        let mut others = Vec::new();
        for term in &facets.terms {
            match before.binary_search(term) {
                Ok(at) => kept |= 1 << at,
                Err(_) => others.push(*term),
            }
        }
        // Both times are within the range of a date, far from the ends of an integer.
        let (time, last) = (facets.created_at.as_millis(), self.last.created_at.as_millis());
        write_integer(to_zigzag(time.wrapping_sub(last)), out);
        write_integer(kept, out);
        write_integer(others.len() as u64, out);
        for term in others {
            write_term(term, out);
        }
        self.last.clone_from(facets);
    }
}

impl LastRow {
    /// State behind the notifications of `row`.
    pub(crate) fn behind(&self, row: &[u8]) -> RowState {
        let last = self.0.lock().take();
        if let Some((_, state)) = last.filter(|(bytes, _)| bytes == row) {
            return state;
        }
        // Readers report a damaged row, which a rebuilding replaces. It does not refuse triggers.
        RowState::behind(row).unwrap_or_default()
    }

    /// Keeps a row that was put, also if it is not committed then: its bytes are what it is known by.
    pub(crate) fn keep(&self, row: Vec<u8>, state: RowState) {
        *self.0.lock() = Some((row, state));
    }
}

fn write_term(term: Term, out: &mut Vec<u8>) {
    let (dimension, value) = term.parts();
    let value = value.to_be_bytes();
    let zeros = value.iter().take_while(|byte| **byte == 0).count();
    let value = value.get(zeros..).unwrap_or_default();
    let len = u8::try_from(value.len()).unwrap_or_default();
    out.push(len << DIMENSION_BITS | dimension);
    out.extend_from_slice(value);
}

fn read_term(bytes: &[u8]) -> Option<(Term, &[u8])> {
    let (head, rest) = bytes.split_first()?;
    let (value, rest) = rest.split_at_checked(usize::from(head >> DIMENSION_BITS))?;
    if value.first() == Some(&0) {
        return None;
    }
    let mut bytes = [0; 16];
    let (_, end) = bytes.split_at_mut_checked(16_usize.checked_sub(value.len())?)?;
    end.copy_from_slice(value);
    let dimension = head & ((1 << DIMENSION_BITS) - 1);
    Some((Term::of_parts(dimension, u128::from_be_bytes(bytes))?, rest))
}

fn write_integer(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

fn read_integer(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (at, byte) in bytes.iter().enumerate().take(10) {
        let bits = u64::from(byte & 0x7f);
        let shifted = bits << (7 * at);
        if shifted >> (7 * at) != bits {
            return None;
        }
        value |= shifted;
        if byte & 0x80 == 0 {
            return Some((value, bytes.get(at + 1..)?));
        }
    }
    None
}

const fn to_zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63).cast_unsigned()
}

const fn from_zigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_facets() -> impl Strategy<Value = Vec<Facets>> {
        // Few dimensions and values, so that neighbours have terms in common.
        let value = prop_oneof![Just(0), 1..40_u128, any::<u128>()];
        let term = (1..8_u8, value).prop_map(|(dimension, value)| Term::of_parts(dimension, value));
        let terms = prop::collection::btree_set(term.prop_filter_map("a term", |term| term), 0..90);
        let time = prop_oneof![-9..9_i64, any::<i32>().prop_map(|time| i64::from(time) * 4_000)];
        let facets = (time, terms).prop_map(|(time, terms)| Facets {
            created_at: Timestamp::from_millis(time),
            terms: terms.into_iter().collect(),
        });
        prop::collection::vec(facets, 0..16)
    }

    fn written(all: &[Facets]) -> Vec<u8> {
        let (mut state, mut bytes) = (RowState::default(), Vec::new());
        for facets in all {
            state.write(facets, &mut bytes);
        }
        bytes
    }

    fn read(mut bytes: &[u8]) -> Option<Vec<Facets>> {
        let (mut state, mut all) = (RowState::default(), Vec::new());
        while !bytes.is_empty() {
            bytes = state.read(bytes)?;
            all.push(state.last().clone());
        }
        Some(all)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_row_is_read_as_it_was_written(all in any_facets()) {
            let bytes = written(&all);
            prop_assert_eq!(read(&bytes), Some(all));
        }

        #[test]
        fn a_row_is_the_same_in_one_part_or_two(all in any_facets(), at in 0..16_usize) {
            let (first, second) = all.split_at(at.min(all.len()));
            let mut bytes = written(first);
            let mut state = RowState::behind(&bytes).unwrap();
            for facets in second {
                state.write(facets, &mut bytes);
            }
            prop_assert_eq!(bytes, written(&all));
        }

        /// Two environments, and transactions that are not committed.
        #[test]
        fn a_row_goes_on_as_if_it_was_read(
            steps in prop::collection::vec((any::<bool>(), any_facets(), any::<bool>()), 0..12),
        ) {
            let (last, mut rows) = (LastRow::default(), [Vec::new(), Vec::new()]);
            for (of_second, some, commits) in steps {
                let row = &mut rows[usize::from(of_second)];
                let (mut expected, mut bytes) = (row.clone(), row.clone());
                let (mut fresh, mut state) = (RowState::behind(row).unwrap(), last.behind(row));
                for facets in &some {
                    fresh.write(facets, &mut expected);
                    state.write(facets, &mut bytes);
                }
                prop_assert_eq!(&bytes, &expected);
                last.keep(bytes.clone(), state);
                if commits {
                    *row = bytes;
                }
            }
        }

        #[test]
        fn a_row_that_ends_early_is_a_shorter_one_or_none(all in any_facets(), at in any::<usize>()) {
            let bytes = written(&all);
            let end = at % (bytes.len() + 1);
            if let Some(some) = read(&bytes[..end]) {
                prop_assert_eq!(&all[..some.len()], some);
            }
        }

        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Some(all) = read(&bytes) {
                prop_assert!(all.len() <= bytes.len());
            }
        }
    }

    #[test]
    fn the_notifications_of_one_trigger_take_few_bytes() {
        let common = ["in_app", "email"]
            .map(|word| word.bytes().fold(0, |all, byte| all << 8 | u128::from(byte)));
        let facets = |subscriber: u128| Facets {
            created_at: Timestamp::from_millis(1_767_600_000_000),
            terms: [
                (2, u128::MAX - subscriber),
                (4, 0),
                (5, u128::MAX),
                (7, common[1]),
                (7, common[0]),
            ]
            .into_iter()
            .filter_map(|(dimension, value)| Term::of_parts(dimension, value))
            .collect(),
        };
        let all: Vec<Facets> = (0..16).map(facets).collect();
        // The first has all; another one has a time, bits, a number and a subscriber.
        assert_eq!(written(&all[..1]).len(), 6 + 1 + 1 + 17 + 1 + 17 + 6 + 7);
        assert_eq!(written(&all).len(), 56 + 15 * (1 + 1 + 1 + 17));
    }
}
