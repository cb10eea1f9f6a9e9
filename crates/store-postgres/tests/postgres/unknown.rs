//! Commits of which nobody knows whether they are made.

use std::ops::ControlFlow;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use store::{Decision, Error, Store, Table, WriteScope};
use testkit::postgres::Server;
use testkit::proxy::Proxy;
use testkit::wait_until;
use tidings_store_postgres::PostgresStore;
use uuid::Uuid;

use crate::wait_until_free;

const TABLE: Table = Table::Subscribers;
const ENVIRONMENT: u128 = 7;

/// Number of commits behind which a process commits with one statement.
const ROUNDS: usize = 10;

/// The store tells its listeners of such a commit when it has failed, because it may be made, and again if it
/// is made after that.
#[test]
fn a_commit_of_which_nothing_is_known_is_told() {
    for is_late in [false, true] {
        let Some(server) = Server::start() else { return };
        let proxy = Proxy::before(server.folder());
        let place = server.place();
        let url = format!("{} application_name=unknown", proxy.url());
        let store = place.clone().through(&url).with(|options| {
            options.timeout = Duration::from_secs(3);
            options.patience = Duration::ZERO;
        });
        let store = store.open();
        let (tell, told) = mpsc::channel();
        store.listen(Box::new(move |keys| {
            tell.send(keys.map(<[_]>::to_vec)).unwrap();
            ControlFlow::Continue(())
        }));
        // There is a connection for the commit while the store asks for news on another one. They take
        // turns, so that each of them knows the statement.
        store.read(&mut |_| store.read(&mut |_| put(&store, b"before"))).unwrap();
        wait_until_free(&server, "unknown", 2);
        (0..ROUNDS).for_each(|_| put(&store, b"before").unwrap());
        let halted = if is_late { server.halt_connections() } else { Vec::new() };
        let commits = || {
            server.query(&format!("SELECT max(commits) FROM \"{}\".tidings_heads", place.schema()))
        };
        let (before, asked) = (commits(), store.round_trips());
        proxy.lose_answers(true);
        let put = thread::scope(|threads| {
            let put = threads.spawn(|| put(&store, b"after"));
            if is_late {
                wait_until(|| store.round_trips() > asked);
                // The question is on its way.
                thread::sleep(Duration::from_millis(300));
            } else {
                wait_until(|| commits() != before);
            }
            proxy.cut();
            put.join().unwrap()
        });
        assert!(matches!(put, Err(Error::Unavailable { .. })), "{put:?}");
        assert_eq!(commits() == before, is_late);
        assert!(told.try_recv().is_err());
        proxy.lose_answers(false);
        proxy.cut();
        let soon = Duration::from_secs(60);
        while told.recv_timeout(soon).unwrap().is_some() {}
        if is_late {
            while told.recv_timeout(Duration::from_millis(300)).is_ok() {}
            server.resume_connections(&halted);
            assert_eq!(told.recv_timeout(soon).unwrap(), Some(vec![(TABLE, key(b"after"))]));
        }
    }
}

fn put(store: &PostgresStore, name: &[u8]) -> store::Result<()> {
    let scope = WriteScope::Environment(Uuid::from_u128(ENVIRONMENT).into());
    store.write_within(scope, &mut |tx| {
        tx.put(TABLE, &key(name), b"value").map(|()| Decision::Commit)
    })
}

fn key(name: &[u8]) -> Vec<u8> {
    [&ENVIRONMENT.to_be_bytes()[..], name].concat()
}
