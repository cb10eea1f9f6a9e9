use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const KEY: &[u8] = b"key";

fn row_with(places: &BTreeSet<u64>) -> Row {
    let mut row = Row::default();
    for place in places {
        row.set(*place, true);
    }
    row
}

fn places() -> impl Strategy<Value = BTreeSet<u64>> {
    prop_oneof![
        proptest::collection::btree_set(0..IN_ROW, 0..8),
        (0..IN_ROW, 0..IN_ROW).prop_map(|(from, to)| (from..to).collect()),
    ]
}

proptest! {
    #[test]
    fn a_row_has_the_places_that_are_set(places in places(), other in 0..IN_ROW) {
        let mut row = row_with(&places);
        let of = |row: &Row| -> BTreeSet<u64> {
            let bits = row.words().flat_map(|(first, word)| {
                (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| first + bit)
            });
            bits.collect()
        };
        prop_assert_eq!(of(&row), places.clone());

        row.set(other + 3 * IN_ROW, false);
        let mut rest = places;
        rest.remove(&other);
        prop_assert_eq!(of(&row), rest.clone());
        prop_assert_eq!(row.is_empty(), rest.is_empty());
    }

    #[test]
    fn a_row_is_read_as_it_was_written_and_under_its_key(places in places()) {
        let row = row_with(&places);
        let bytes = row.bytes(KEY);
        prop_assert!(bytes.len() <= 2 + 128 + 4);
        prop_assert_eq!(Row::read(KEY, &bytes), Some(row));
        prop_assert_eq!(Row::read(b"kez", &bytes), None);
    }

    #[test]
    fn a_row_with_another_bit_is_refused(places in places(), at: prop::sample::Index, bit in 0_u32..8) {
        let mut bytes = row_with(&places).bytes(KEY);
        let at = at.index(bytes.len());
        bytes[at] ^= 1_u8 << bit;
        prop_assert_eq!(Row::read(KEY, &bytes), None);
    }
}
