//! What scans cost: rows that the server reads, and bytes that it sends.

use std::ops::Bound::{Excluded, Included};
use std::ops::ControlFlow;

use store::memory::MemoryStore;
use store::{Decision, KeyRange, Order, Store, Table};
use testkit::postgres::Server;
use testkit::proxy::Proxy;
use testkit::tables;
use testkit::wait_until;
use tidings_store_postgres::PostgresStore;

const TABLE: Table = Table::Topics;

/// The server plans statements while the relation is new, and keeps the plans while it grows. A scan with a
/// limit reads the rows that it needs.
#[test]
fn a_scan_of_a_new_database_reads_what_it_needs() {
    const ROWS: u64 = 20_000;
    let Some(server) = Server::shared() else { return };
    let place = server.place();
    let name = "scans-of-a-new-database";
    let store = place.clone().through(&format!("{} application_name={name}", place.url())).open();
    let of = |relation: &str| format!("\"{}\".tidings_{relation}", place.schema());
    let (entries, tables) = (of("entries"), of("tables"));
    server.query(&format!("ALTER TABLE {entries} SET (autovacuum_enabled = off)"));
    let scan_all = || {
        let scans =
            [Order::Ascending, Order::Descending].map(|order| [1, 2].map(|limit| (order, limit)));
        scans.concat().into_iter().map(|(order, limit)| scan(&store, order, limit)).sum::<usize>()
    };
    assert_eq!(scan_all(), 0);
    server.query(&format!(
        "INSERT INTO {entries} (tbl, head, hash, rest, value)
         SELECT id, decode('05' || lpad(to_hex(number), 8, '0'), 'hex'), '', '', ''
         FROM {tables}, generate_series(1, {ROWS}) AS number WHERE name = '{}'",
        TABLE.name()
    ));
    // What is known of a range without entries is forgotten by another commit only.
    put(&store, b"other", b"");
    assert_eq!(scan_all(), 6);
    drop(store);
    // The server counts what a connection has read when it ends.
    let open = format!("SELECT 1 FROM pg_stat_activity WHERE application_name = '{name}'");
    wait_until(|| server.query(&open).is_empty());
    let read = format!(
        "SELECT idx_tup_fetch FROM pg_stat_user_tables WHERE relid = '{entries}'::regclass"
    );
    let read: u64 = server.query(&read)[0].parse().unwrap();
    assert!(read < ROWS / 10, "{read}");
}

/// A copy takes about a mebibyte of values at a time, and the server sends each of them about once.
#[test]
fn a_copy_of_large_values_sends_them_about_once() {
    const ROWS: u32 = 200;
    const SIZE: usize = 64 << 10;
    let Some(server) = Server::shared() else { return };
    let proxy = Proxy::before(server.folder());
    let place = server.place();
    let (origin, store) = (place.open(), place.clone().through(&proxy.url()).open());
    for row in 0..ROWS {
        put(&origin, &row.to_be_bytes(), &vec![7; SIZE]);
    }
    // Without one, it would be an unfinished copy itself.
    tables::put(&origin, Table::Environments, b"environment", Some(b"value"));
    let before = proxy.answered();
    let copied =
        store::transfer::copy(&store, &MemoryStore::default(), |_| ControlFlow::Continue(()));
    assert_eq!(copied.unwrap().entries, u64::from(ROWS) + 1);
    let sent = proxy.answered() - before;
    // The server sends a bytea in binary, as it is.
    assert!(sent < 3 * u64::from(ROWS) * SIZE as u64, "{sent}");
}

/// Scans some entries of the range. Returns their number.
fn scan(store: &PostgresStore, order: Order, limit: usize) -> usize {
    let range: KeyRange = (Included(vec![5]), Excluded(vec![6]));
    let mut entries = 0;
    let read = store.read(&mut |view| {
        entries = 0;
        view.scan(TABLE, &range, order, Some(limit), &mut |_, _| {
            entries += 1;
            ControlFlow::Continue(())
        })
    });
    read.unwrap();
    entries
}

fn put(store: &PostgresStore, key: &[u8], value: &[u8]) {
    let put = store.write(&mut |tx| tx.put(TABLE, key, value).map(|()| Decision::Commit));
    put.unwrap();
}
