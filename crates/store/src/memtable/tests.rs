//! A memtable and its clones against sorted maps.

use std::collections::BTreeMap;
use std::ops::Bound;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::overlay::Changes;
use crate::{KeyRange, range};

type Edge = Bound<Vec<u8>>;
type Model = BTreeMap<(Table, Vec<u8>), Option<Vec<u8>>>;

#[test]
fn a_malformed_payload_adds_nothing() {
    let mut changes = Changes::default();
    for key in [b"one", b"two"] {
        changes.set(Table::Topics, key, Some(b"value"));
    }
    let payload = encode(&changes, encoded_len(&changes)).payload;
    let mut memtable = Memtable::default();
    for cut in 1..5 {
        let payload = payload[..payload.len() - cut].to_vec();
        assert_eq!(memtable.replay(Arc::new(payload)), Err(Malformed));
        assert_eq!(memtable.after(None).count(), 0);
    }
    memtable.replay(payload).unwrap();
    assert_eq!(memtable.after(None).count(), 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn each_clone_shows_what_was_added_before_it(
        batches in vec(vec((table(), key(), value()), 1..40), 1..40),
        ranges in vec((table(), bound(), bound()), 1..8),
    ) {
        let (mut memtable, mut model) = (Memtable::default(), Model::new());
        let mut replayed = Memtable::default();
        let mut clones = vec![(memtable.clone(), model.clone())];
        for batch in batches {
            let mut changes = Changes::default();
            for (table, key, value) in batch {
                let key = long(table, key);
                changes.set(table, &key, value.as_deref());
                model.insert((table, key), value);
            }
            let encoded = encode(&changes, encoded_len(&changes));
            replayed.replay(Arc::clone(&encoded.payload)).unwrap();
            memtable.add(&encoded);
            clones.push((memtable.clone(), model.clone()));
            clones.push((replayed.clone(), model.clone()));
        }
        let long = |table: Table, bound: Edge| bound.map(|key| long(table, key));
        let ranges: Vec<_> = ranges
            .into_iter()
            .map(|(table, start, end)| (table, long(table, start), long(table, end)))
            .collect();
        for (memtable, model) in &clones {
            check(memtable, model, &ranges);
        }
    }
}

/// Enough keys for many leaves, in rising, falling and mixed order.
#[test]
fn leaves_are_split() {
    for step in [1_u64, 5_999, 1_717] {
        let (mut memtable, mut model) = (Memtable::default(), Model::new());
        for number in 0..6_000 {
            let key = (number * step % 6_000).to_be_bytes().to_vec();
            let value = (number % 3 > 0).then(|| number.to_be_bytes().to_vec());
            let mut changes = Changes::default();
            changes.set(Table::ALL[0], &key, value.as_deref());
            memtable.add(&encode(&changes, encoded_len(&changes)));
            model.insert((Table::ALL[0], key), value);
        }
        let edge = |number: u64| Bound::Included(number.to_be_bytes().to_vec());
        let ranges = [0, 1, 127, 128, 129, 255, 256, 5_900].map(|start: u64| {
            (Table::ALL[0], edge(start), Bound::Excluded((start + 300).to_be_bytes().to_vec()))
        });
        check(&memtable, &model, &ranges);
    }
}

fn check(memtable: &Memtable, model: &Model, ranges: &[(Table, Edge, Edge)]) {
    let all: Vec<_> = memtable.after(None).map(own).collect();
    let expected = model.iter().map(|((table, key), it)| (*table, key.clone(), it.clone()));
    assert_eq!(all, expected.collect::<Vec<_>>());
    assert_eq!(memtable.is_empty(), model.is_empty());
    for (number, (table, key, value)) in all.iter().enumerate().step_by(1 + all.len() / 50) {
        assert_eq!(memtable.change(*table, key), Some(value.as_deref()));
        let position = (*table, key.clone());
        assert_eq!(memtable.after(Some(&position)).map(own).collect::<Vec<_>>(), all[number + 1..]);
    }
    for (table, start, end) in ranges {
        check_range(memtable, model, *table, &(start.clone(), end.clone()));
        if let Bound::Included(key) | Bound::Excluded(key) = start {
            let expected = model.get(&(*table, key.clone())).map(Option::as_deref);
            assert_eq!(memtable.change(*table, key), expected);
        }
    }
}

fn check_range(memtable: &Memtable, model: &Model, table: Table, range: &KeyRange) {
    let Some(span) = range::borrow(range) else { return };
    let within = model
        .iter()
        .filter(|((other, key), _)| *other == table && std::ops::RangeBounds::contains(range, key));
    let mut expected: Vec<_> = within.map(|((_, key), it)| (&**key, it.as_deref())).collect();
    for order in [Order::Ascending, Order::Descending] {
        let run = memtable.run(table, span, order);
        assert_eq!(run.is_some(), !expected.is_empty());
        assert_eq!(run.into_iter().flatten().collect::<Vec<_>>(), expected);
        expected.reverse();
    }
}

fn own((table, key, value): (Table, &[u8], Option<&[u8]>)) -> (Table, Vec<u8>, Option<Vec<u8>>) {
    (table, key.to_vec(), value.map(<[u8]>::to_vec))
}

fn table() -> impl Strategy<Value = Table> {
    (0..3_usize).prop_map(|number| Table::ALL[number])
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    vec(0..6_u8, 0..5)
}

/// The keys of the second table have a long start in common, and those of the third table one of
/// four, which differ behind it or sort around it.
fn long(table: Table, key: Vec<u8>) -> Vec<u8> {
    let start: &[u8] = match (table == Table::ALL[0], table == Table::ALL[1], key.first()) {
        (true, ..) => &[],
        (_, true, _) | (.., Some(0 | 1)) => &[3; 18],
        (.., Some(2 | 3)) => &[3; 32],
        (.., Some(4)) => &[3; 6],
        _ => &[4; 7],
    };
    [start, &key].concat()
}

fn value() -> impl Strategy<Value = Option<Vec<u8>>> {
    prop::option::weighted(0.8, vec(any::<u8>(), 0..4))
}

fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    prop_oneof![
        key().prop_map(Bound::Included),
        key().prop_map(Bound::Excluded),
        Just(Bound::Unbounded),
    ]
}
