//! Callers that share a transaction: what happens to one of them is not what happens to the others.

use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Duration;

use store::{Decision, Error, Snapshot, Store, Table, Transaction, WriteBody, WriteScope};
use testkit::postgres::{Place, Server};
use tidings_store_postgres::PostgresStore;
use uuid::Uuid;

const TABLE: Table = Table::Subscribers;
const ENVIRONMENT: u128 = 7;

/// Time in which the other callers come while the first one has its turn.
const ALL_COME: Duration = Duration::from_millis(500);

/// A body refuses because of changes in its transaction, which are lost.
#[test]
fn an_error_that_rests_on_lost_changes_is_not_returned() {
    let Some(server) = Server::start() else { return };
    let store = place(&server, Duration::from_millis(300)).open();
    let server = Mutex::new(server);
    let (first_runs, mut refused) = (Barrier::new(2), false);
    let [first, second] = thread::scope(|threads| {
        let first = threads.spawn(|| {
            let mut is_met = false;
            write(&store, &mut |tx| {
                if !is_met {
                    is_met = true;
                    first_runs.wait();
                    thread::sleep(ALL_COME);
                }
                put(tx, "taken", b"")
            })
        });
        let second = threads.spawn(|| {
            first_runs.wait();
            write(&store, &mut |tx| {
                if !has(tx, "taken")? {
                    return put(tx, "taken", b"");
                }
                refused = true;
                server.lock().unwrap().crash();
                Err(refusal())
            })
        });
        [first.join().unwrap(), second.join().unwrap()]
    });
    assert!(refused);
    for written in [first, second] {
        assert!(matches!(written, Err(Error::Unavailable { .. })), "{written:?}");
    }
}

fn place(server: &Server, patience: Duration) -> Place {
    server.place().with(|options| {
        options.patience = patience;
        options.poll = Duration::from_secs(3_600);
    })
}

fn refusal() -> Error {
    Error::Backend { backend: "a test", action: "put", source: "it is there".into() }
}

fn write(store: &PostgresStore, body: &mut WriteBody<'_>) -> store::Result<()> {
    store.write_within(WriteScope::Environment(Uuid::from_u128(ENVIRONMENT).into()), body)
}

fn put(tx: &mut dyn Transaction, name: &str, value: &[u8]) -> store::Result<Decision> {
    tx.put(TABLE, &key(name), value).map(|()| Decision::Commit)
}

fn has(view: &(impl Snapshot + ?Sized), name: &str) -> store::Result<bool> {
    view.get(TABLE, &key(name), &mut |_| ())
}

fn key(name: &str) -> Vec<u8> {
    [&ENVIRONMENT.to_be_bytes()[..], name.as_bytes()].concat()
}
