//! Reading single values, one or many at a time.

use super::{NEIGHBOURS, ROWS, commit, get, read, set, text, write};
use crate::{Decision, Snapshot, Store};

/// A get shows the value once and returns `true`, or shows nothing and returns `false`.
pub fn shows_a_value_once(store: &dyn Store) {
    commit(store, &[("ada", Some("1"))]);
    read(store, |snapshot| {
        for (key, expected) in [("ada", &["1"][..]), ("ad", &[]), ("adam", &[])] {
            let mut shown = Vec::new();
            let mut visit = |value: &[u8]| shown.push(text(value));
            let found = snapshot.get(ROWS, key.as_bytes(), &mut visit).unwrap();
            assert_eq!(shown, expected);
            assert_eq!(found, !expected.is_empty());
        }
    });
}

/// A get of many shows a value or `None` for each key, in the order in which they were asked for.
pub fn a_get_of_many_shows_each_key_in_order(store: &dyn Store) {
    read(store, |snapshot| {
        assert_eq!(values(snapshot, &["ada"]), ["-"], "the table is empty");
    });
    commit(store, &[("ada", Some("1")), ("bob", Some("")), ("cid", Some("3")), ("dan", Some("4"))]);
    read(store, |snapshot| {
        assert_eq!(values(snapshot, &[]), [""; 0]);
        assert_eq!(values(snapshot, &["ada"]), ["1"]);
        assert_eq!(values(snapshot, &["dan", "eve", "ada", "bob"]), ["4", "-", "1", ""]);
        assert_eq!(values(snapshot, &["cid", "ad", "cid", "ad"]), ["3", "-", "3", "-"]);
    });
}

/// A get of many reads one table, not its neighbours.
pub fn a_get_of_many_stays_in_its_table(store: &dyn Store) {
    commit(store, &[("ada", Some("1"))]);
    write(store, |transaction| {
        for table in NEIGHBOURS {
            transaction.put(table, b"ada", b"9").unwrap();
            transaction.put(table, b"bob", b"9").unwrap();
        }
        assert_eq!(values(transaction, &["ada", "bob"]), ["1", "-"]);
        Decision::Commit
    });
    read(store, |snapshot| assert_eq!(values(snapshot, &["bob", "ada"]), ["-", "1"]));
}

/// A get of many in a transaction shows the values as they would be after it.
pub fn a_get_of_many_in_a_transaction_sees_its_changes(store: &dyn Store) {
    commit(store, &[("ada", Some("1")), ("bob", Some("2")), ("cid", Some("3"))]);
    write(store, |transaction| {
        set(transaction, "ada", Some("changed"));
        set(transaction, "bob", None);
        set(transaction, "dan", Some("new"));
        let keys = ["cid", "ada", "eve", "bob", "cid", "dan", "ada"];
        let expected = ["3", "changed", "-", "-", "3", "new", "changed"];
        assert_eq!(values(transaction, &keys), expected);
        assert_eq!(values(transaction, &["dan", "bob"]), ["new", "-"]);
        Decision::Commit
    });
}

/// A prefetch changes no answer, also if its keys change before they are read.
pub fn a_prefetch_changes_no_answer(store: &dyn Store) {
    let keys = ["cid", "ada", "eve", "bob", "cid", "dan"];
    let prefetch = |snapshot: &dyn Snapshot| {
        let rows = keys.iter().map(|key| (ROWS, key.as_bytes().to_vec()));
        let neighbours = NEIGHBOURS.iter().map(|table| (*table, b"ada".to_vec()));
        snapshot.prefetch(&mut rows.chain(neighbours)).unwrap();
    };
    let one_by_one = |snapshot: &dyn Snapshot| {
        let value = |key: &str| get(snapshot, key.as_bytes()).map_or("-".into(), |it| text(&it));
        keys.map(value)
    };
    commit(store, &[("ada", Some("1")), ("bob", Some("2")), ("cid", Some("3"))]);
    let after = ["3", "changed", "-", "-", "3", "new"];
    write(store, |transaction| {
        set(transaction, "ada", Some("changed"));
        prefetch(transaction);
        set(transaction, "bob", None);
        set(transaction, "dan", Some("new"));
        assert_eq!(one_by_one(transaction), after);
        assert_eq!(values(transaction, &keys), after);
        Decision::Commit
    });
    read(store, |snapshot| {
        prefetch(snapshot);
        assert_eq!(one_by_one(snapshot), after);
        assert_eq!(values(snapshot, &keys), after);
    });
    commit(store, &[("ada", None)]);
    read(store, |snapshot| {
        prefetch(snapshot);
        assert_eq!(values(snapshot, &["ada", "cid"]), ["-", "3"]);
    });
}

// The values under `keys`, and a dash for each key that has none.
fn values(snapshot: &(impl Snapshot + ?Sized), keys: &[&str]) -> Vec<String> {
    let keys: Vec<&[u8]> = keys.iter().map(|key| key.as_bytes()).collect();
    let mut values = Vec::new();
    let mut visit = |value: Option<&[u8]>| values.push(value.map_or_else(|| "-".into(), text));
    snapshot.get_many(ROWS, &keys, &mut visit).unwrap();
    values
}
