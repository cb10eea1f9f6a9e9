//! The contract of [`Store`] as tests, one function per law.
//!
//! A backend runs them all with [`conformance_tests!`](crate::conformance_tests). Every law gets a
//! store of its own, so that they can run in any order.

#![expect(clippy::missing_panics_doc, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ops::ControlFlow;

use crate::range::EVERYTHING;
use crate::{Decision, KeyRange, Order, Snapshot, Store, Table, Transaction};

pub mod gets;
pub mod scans;
pub mod transactions;

/// Turns every law into a `#[test]` that runs on a store made by `$store`.
#[macro_export]
macro_rules! conformance_tests {
    ($store:expr) => {
        $crate::conformance_tests! { $store;
            transactions:
            shows_what_was_committed
            the_last_put_wins
            keeps_any_bytes
            deletes_what_is_not_there
            an_abort_leaves_nothing
            an_error_leaves_nothing
            a_panic_leaves_nothing
            a_panic_of_a_reader_goes_on
            a_transaction_sees_itself
            a_transaction_sees_those_before_it
            nobody_else_sees_a_transaction
            a_snapshot_does_not_move
            writers_are_alone
            commits_are_seen_in_order;

            gets:
            shows_a_value_once
            a_get_of_many_shows_each_key_in_order
            a_get_of_many_stays_in_its_table
            a_get_of_many_in_a_transaction_sees_its_changes
            a_prefetch_changes_no_answer;

            scans:
            scans_in_both_orders
            scans_within_any_bounds
            a_scan_stays_in_its_table
            a_scan_stops_when_told
            a_scan_shows_as_many_as_its_limit
            a_scan_in_a_transaction_merges_its_changes
            a_scan_in_a_transaction_stops_when_told
            a_scan_in_a_transaction_counts_what_it_shows;
        }
    };
    ($store:expr; $($about:ident: $($law:ident)*;)*) => {
        $($(
            #[test]
            fn $law() {
                $crate::conformance::$about::$law(&$store);
            }
        )*)*
    };
}

const ROWS: Table = Table::ALL[1];
const NEIGHBOURS: [Table; 2] = [Table::ALL[0], Table::ALL[2]];

fn read(store: &dyn Store, body: impl Fn(&dyn Snapshot)) {
    let result = store.read(&mut |snapshot| {
        body(snapshot);
        Ok(())
    });
    result.unwrap();
}

fn write(store: &dyn Store, body: impl Fn(&mut dyn Transaction) -> Decision) {
    store.write(&mut |transaction| Ok(body(transaction))).unwrap();
}

fn commit(store: &dyn Store, changes: &[(&str, Option<&str>)]) {
    write(store, |transaction| {
        for (key, change) in changes {
            set(transaction, key, *change);
        }
        Decision::Commit
    });
}

fn set(transaction: &mut dyn Transaction, key: &str, change: Option<&str>) {
    match change {
        Some(value) => transaction.put(ROWS, key.as_bytes(), value.as_bytes()).unwrap(),
        None => transaction.delete(ROWS, key.as_bytes()).unwrap(),
    }
}

fn get(snapshot: &(impl Snapshot + ?Sized), key: &[u8]) -> Option<Vec<u8>> {
    let mut value = None;
    let found = snapshot.get(ROWS, key, &mut |bytes| value = Some(bytes.to_vec())).unwrap();
    assert_eq!(found, value.is_some());
    value
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn dump(store: &dyn Store) -> Vec<String> {
    let mut entries = Vec::new();
    let result = store.read(&mut |snapshot| {
        entries = scan(snapshot, &EVERYTHING, Order::Ascending);
        Ok(())
    });
    result.unwrap();
    entries
}

fn scan(snapshot: &(impl Snapshot + ?Sized), range: &KeyRange, order: Order) -> Vec<String> {
    let mut entries = Vec::new();
    let mut visit = |key: &[u8], value: &[u8]| {
        entries.push(format!("{}={}", text(key), text(value)));
        ControlFlow::Continue(())
    };
    snapshot.scan(ROWS, range, order, None, &mut visit).unwrap();
    entries
}
