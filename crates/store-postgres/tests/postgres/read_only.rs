//! A server that takes no writes any more, while its connections stay open: another one takes over at the
//! address. Here, a role gets read-only connections, until new ones may write again.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use store::{Decision, Error, Store, Table};
use testkit::postgres::Server;
use testkit::wait_until;
use tidings_store_postgres::PostgresStore;

use crate::read_at_once;

/// Number of idle connections.
const IDLE: usize = 3;

/// One call finds out, and no other one meets a connection of before, also if it was in use meanwhile.
#[test]
fn a_read_only_connection_fails_one_call() {
    let Some(server) = Server::shared() else { return };
    let patience = Duration::ZERO;
    let (role, store) = behind_read_only_connections(server, "demoted", patience);
    let (held, over) = (Barrier::new(2), Barrier::new(2));
    let [refused, written] = thread::scope(|scope| {
        scope.spawn(|| {
            let read = store.read(&mut |_| {
                held.wait();
                over.wait();
                Ok(())
            });
            read.unwrap();
        });
        held.wait();
        allow_writes(server, &role);
        let written = [(); 2].map(|()| write(&store));
        over.wait();
        written
    });
    let refused = refused.unwrap_err();
    assert!(matches!(refused, Error::Unavailable { .. }), "{refused:?}");
    assert!(refused.is_retryable() && refused.to_string().contains("25006"), "{refused}");
    written.unwrap();
    for _ in 0..2 * IDLE {
        write(&store).unwrap();
    }
}

/// A call that may try again goes on behind it.
#[test]
fn a_call_with_patience_goes_on_where_it_may_write() {
    let Some(server) = Server::shared() else { return };
    let patience = Duration::from_secs(30);
    let (role, store) = behind_read_only_connections(server, "patient", patience);
    thread::scope(|scope| {
        let written = scope.spawn(|| write(&store));
        thread::sleep(Duration::from_millis(200));
        assert!(!written.is_finished());
        allow_writes(server, &role);
        written.join().unwrap().unwrap();
    });
}

/// A store that looks for a server that takes writes waits for one.
#[test]
fn no_connection_leads_to_a_server_that_takes_no_writes() {
    let Some(server) = Server::shared() else { return };
    let (role, _) = behind_read_only_connections(server, "choosy", Duration::ZERO);
    let url = server.url().replace("user=postgres", &format!("user={role}"));
    let place = server.place().through(&format!("{url} target_session_attrs=read-write"));
    let place = place.with(|options| options.patience = Duration::from_millis(100));
    let refused = PostgresStore::open_with(place.url(), place.options()).unwrap_err();
    assert!(refused.to_string().contains("does not allow writes"), "{refused}");
    assert!(refused.is_retryable());
    allow_writes(server, &role);
    write(&place.open()).unwrap();
}

/// A store whose connections may only read. New ones may only read as well, until the role may write.
fn behind_read_only_connections(
    server: &Server,
    role: &str,
    patience: Duration,
) -> (String, PostgresStore) {
    server.query(&format!("CREATE ROLE {role} LOGIN SUPERUSER"));
    let url = server.url().replace("user=postgres", &format!("user={role}"));
    let place = server.place().through(&url).with(|options| {
        options.connections = 8;
        options.patience = patience;
    });
    let store = place.open();
    write(&store).unwrap();
    server.query(&format!("ALTER ROLE {role} SET default_transaction_read_only = on"));
    let cut =
        format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{role}'");
    server.query(&cut);
    wait_until(|| store.read(&mut |_| Ok(())).is_ok());
    read_at_once(&store, IDLE);
    (role.to_owned(), store)
}

fn allow_writes(server: &Server, role: &str) {
    server.query(&format!("ALTER ROLE {role} RESET default_transaction_read_only"));
}

fn write(store: &PostgresStore) -> store::Result<()> {
    store.write(&mut |tx| tx.put(Table::Topics, b"key", b"value").map(|()| Decision::Commit))
}
