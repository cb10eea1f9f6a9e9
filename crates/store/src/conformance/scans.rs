//! Entries that a scan shows, and their order.

use std::ops::Bound::{Excluded, Included, Unbounded};
use std::ops::{ControlFlow, RangeBounds};

use super::{EVERYTHING, NEIGHBOURS, ROWS, commit, dump, read, scan, set, text, write};
use crate::{Decision, KeyRange, Order, Snapshot, Store};

/// A scan shows entries in the order of their bytes, or in the opposite one.
pub fn scans_in_both_orders(store: &dyn Store) {
    let sorted: [&[u8]; 8] = [b"", b"\0", b"\0\0", b"\0\xff", b"a", b"aa", b"b", b"\xff"];
    write(store, |transaction| {
        sorted.iter().rev().for_each(|key| transaction.put(ROWS, key, b"").unwrap());
        Decision::Commit
    });
    let keys = |snapshot: &dyn Snapshot, order| {
        let mut keys = Vec::new();
        let mut visit = |key: &[u8], _: &[u8]| {
            keys.push(key.to_vec());
            ControlFlow::Continue(())
        };
        snapshot.scan(ROWS, &EVERYTHING, order, None, &mut visit).unwrap();
        keys
    };
    read(store, |snapshot| {
        assert_eq!(keys(snapshot, Order::Ascending), sorted);
        let mut reversed = keys(snapshot, Order::Descending);
        reversed.reverse();
        assert_eq!(reversed, sorted);
    });
}

/// A scan shows what lies within its bounds, and nothing where nothing can.
pub fn scans_within_any_bounds(store: &dyn Store) {
    commit(store, &[("b", Some("")), ("d", Some("")), ("f", Some(""))]);
    let keys = ["", "a", "b", "c", "d", "e", "f", "g"];
    let bounds =
        || keys.into_iter().flat_map(|key| [Included(key), Excluded(key)]).chain([Unbounded]);
    for (start, end) in bounds().flat_map(|start| bounds().map(move |end| (start, end))) {
        let within = ["b", "d", "f"].into_iter().filter(|key| (start, end).contains(key));
        let mut expected: Vec<_> = within.map(|key| format!("{key}=")).collect();
        let range = (start.map(Into::into), end.map(Into::into));
        read(store, |snapshot| {
            assert_eq!(scan(snapshot, &range, Order::Ascending), expected, "{range:?}");
        });
        expected.reverse();
        read(store, |snapshot| {
            assert_eq!(scan(snapshot, &range, Order::Descending), expected, "{range:?}");
        });
    }
}

/// A scan shows one table, not its neighbours.
pub fn a_scan_stays_in_its_table(store: &dyn Store) {
    commit(store, &[("ada", Some("1"))]);
    write(store, |transaction| {
        for table in NEIGHBOURS {
            transaction.put(table, b"aa", b"9").unwrap();
            transaction.put(table, b"zz", b"9").unwrap();
        }
        assert_eq!(scan(transaction, &EVERYTHING, Order::Ascending), ["ada=1"]);
        Decision::Commit
    });
    read(store, |snapshot| {
        assert_eq!(scan(snapshot, &EVERYTHING, Order::Ascending), ["ada=1"]);
        assert_eq!(scan(snapshot, &EVERYTHING, Order::Descending), ["ada=1"]);
    });
}

/// A scan ends where its visitor breaks.
pub fn a_scan_stops_when_told(store: &dyn Store) {
    commit(store, &[("a", Some("")), ("b", Some("")), ("c", Some(""))]);
    read(store, |snapshot| {
        assert_eq!(first_two(snapshot, Order::Ascending), ["a", "b"]);
        assert_eq!(first_two(snapshot, Order::Descending), ["c", "b"]);
    });
}

/// A scan shows its first entries, as many as its limit, of those within its bounds.
pub fn a_scan_shows_as_many_as_its_limit(store: &dyn Store) {
    commit(store, &[("a", Some("")), ("b", Some("")), ("c", Some("")), ("d", Some(""))]);
    let within = (Excluded(b"a".into()), Unbounded);
    read(store, |snapshot| {
        for limit in 0..5 {
            let first =
                |expected: &[&str]| expected.iter().take(limit).copied().collect::<String>();
            let shown = |range, order| first_of(snapshot, range, order, limit);
            assert_eq!(shown(&EVERYTHING, Order::Ascending), first(&["a", "b", "c", "d"]));
            assert_eq!(shown(&EVERYTHING, Order::Descending), first(&["d", "c", "b", "a"]));
            assert_eq!(shown(&within, Order::Ascending), first(&["b", "c", "d"]));
            assert_eq!(shown(&within, Order::Descending), first(&["d", "c", "b"]));
        }
    });
}

/// A scan in a transaction shows the entries as they would be after it.
pub fn a_scan_in_a_transaction_merges_its_changes(store: &dyn Store) {
    let before = [("b", Some("1")), ("c", Some("1")), ("d", Some("1")), ("f", Some("1"))];
    commit(store, &before);
    let changes = [("a", Some("2")), ("c", Some("2")), ("d", None), ("e", Some("2")), ("x", None)];
    let mut expected = vec!["a=2", "b=1", "c=2", "e=2", "f=1"];
    let within = (Excluded(b"a".into()), Included(b"e".into()));
    write(store, |transaction| {
        for (key, change) in changes {
            set(transaction, key, change);
        }
        assert_eq!(scan(transaction, &EVERYTHING, Order::Ascending), expected);
        assert_eq!(scan(transaction, &within, Order::Ascending), ["b=1", "c=2", "e=2"]);
        assert_eq!(scan(transaction, &within, Order::Descending), ["e=2", "c=2", "b=1"]);
        let inverted = (Excluded(b"e".into()), Excluded(b"a".into()));
        assert_eq!(scan(transaction, &inverted, Order::Ascending), [""; 0]);
        Decision::Commit
    });
    assert_eq!(dump(store), expected);
    expected.reverse();
    read(store, |snapshot| {
        assert_eq!(scan(snapshot, &EVERYTHING, Order::Descending), expected);
    });
}

/// A scan in a transaction ends where its visitor breaks, at a change or at an entry from before.
pub fn a_scan_in_a_transaction_stops_when_told(store: &dyn Store) {
    commit(store, &[("b", Some("")), ("d", Some(""))]);
    write(store, |transaction| {
        for key in ["a", "c", "e"] {
            set(transaction, key, Some(""));
        }
        assert_eq!(first_two(transaction, Order::Ascending), ["a", "b"]);
        assert_eq!(first_two(transaction, Order::Descending), ["e", "d"]);
        set(transaction, "b", Some("changed"));
        set(transaction, "d", None);
        assert_eq!(first_two(transaction, Order::Ascending), ["a", "b"]);
        assert_eq!(first_two(transaction, Order::Descending), ["e", "c"]);
        Decision::Abort
    });
}

/// The limit of a scan in a transaction counts the entries that it shows, not those from before
/// that were changed or removed.
pub fn a_scan_in_a_transaction_counts_what_it_shows(store: &dyn Store) {
    commit(store, &[("b", Some("")), ("c", Some("")), ("e", Some("")), ("f", Some(""))]);
    write(store, |transaction| {
        for (key, change) in [("a", Some("")), ("b", None), ("c", Some("changed")), ("e", None)] {
            set(transaction, key, change);
        }
        for limit in 0..5 {
            let first =
                |expected: [&str; 3]| expected.iter().take(limit).copied().collect::<String>();
            let shown = |order| first_of(transaction, &EVERYTHING, order, limit);
            assert_eq!(shown(Order::Ascending), first(["a", "c", "f"]));
            assert_eq!(shown(Order::Descending), first(["f", "c", "a"]));
        }
        Decision::Abort
    });
}

fn first_of(
    snapshot: &(impl Snapshot + ?Sized),
    range: &KeyRange,
    order: Order,
    limit: usize,
) -> String {
    let mut keys = String::new();
    let mut visit = |key: &[u8], _: &[u8]| {
        keys += &text(key);
        ControlFlow::Continue(())
    };
    snapshot.scan(ROWS, range, order, Some(limit), &mut visit).unwrap();
    keys
}

fn first_two(snapshot: &(impl Snapshot + ?Sized), order: Order) -> Vec<String> {
    let mut keys = Vec::new();
    let mut visit = |key: &[u8], _: &[u8]| {
        keys.push(text(key));
        if keys.len() < 2 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    snapshot.scan(ROWS, &EVERYTHING, order, None, &mut visit).unwrap();
    keys
}
