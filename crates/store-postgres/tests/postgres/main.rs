//! `PostgresStore` on a server that the tests start: the contract, several processes, failures.
//!
//! Where PostgreSQL is not installed, the tests say that they are skipped.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use store::{Store, Table, Transaction};
use testkit::postgres::Server;
use testkit::wait_until;
use tidings_store_postgres::PostgresStore;

mod callers;
mod clocks;
mod cluster;
mod commits;
mod compression;
mod contract;
mod failover;
mod forgetting;
mod guesses;
mod join;
mod listening;
mod logged;
mod opening;
mod read_only;
mod round_trips;
mod scans;
mod scopes;
mod several;
mod silence;
mod threads;
mod tls;
mod unknown;

/// Waits until so many connections of an application are free behind a transaction that only has read.
fn wait_until_free(server: &Server, application: &str, connections: usize) {
    let query = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{application}' \
         AND state = 'idle' AND query = 'ROLLBACK'"
    );
    wait_until(|| server.query(&query) == [connections.to_string()]);
}

/// Begins the transaction of a body that writes, which locks what is in its scope: the first read does.
fn lock(transaction: &dyn Transaction, table: Table, key: &[u8]) {
    transaction.get(table, key, &mut |_| ()).unwrap();
}

/// Reads so many times at once, so that the store has as many connections, which are idle then.
fn read_at_once(store: &PostgresStore, times: usize) {
    let all = Barrier::new(times);
    thread::scope(|scope| {
        for _ in 0..times {
            scope.spawn(|| {
                let read = store.read(&mut |_| {
                    all.wait();
                    Ok(())
                });
                read.unwrap();
            });
        }
    });
}

/// Cuts again and again while callers count the calls that they have made: each time when some more are made,
/// so that calls come to their end on any machine.
fn cut_until_over(made: &AtomicU64, is_over: &AtomicBool, cut: impl Fn()) {
    let mut last = 0;
    for pause in (0..20).cycle() {
        wait_until(|| made.load(Ordering::SeqCst) >= last + 4 || is_over.load(Ordering::SeqCst));
        if is_over.load(Ordering::SeqCst) {
            return;
        }
        // Each cut comes at another moment of a call.
        thread::sleep(Duration::from_millis(pause));
        cut();
        last = made.load(Ordering::SeqCst);
    }
}
