//! Callers that share a transaction: what happens to one of them is not what happens to the others.

use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use store::{Decision, Error, Snapshot, Store, Table, Transaction, WriteBody, WriteScope};
use testkit::postgres::{Place, Server};
use testkit::proxy::Proxy;
use testkit::wait_until;
use tidings_store_postgres::PostgresStore;
use uuid::Uuid;

const TABLE: Table = Table::Subscribers;
const ENVIRONMENT: u128 = 7;

/// Number of commits behind which a process takes what is in memory for right.
const ROUNDS: usize = 6;

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
                    wait_until(|| store.waiting() == 1);
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

/// The server refuses what one caller writes.
#[test]
fn a_change_that_is_refused_fails_its_caller() {
    let Some(server) = Server::shared() else { return };
    let place = place(server, Duration::from_secs(10));
    let store = place.open();
    (0..ROUNDS).for_each(|_| write(&store, &mut |tx| put(tx, "before", b"")).unwrap());
    let entries = format!("\"{}\".tidings_entries", place.schema());
    server.query(&format!("ALTER TABLE {entries} ADD CHECK (value <> 'refused')"));
    let first_runs = Barrier::new(4);
    let written = thread::scope(|threads| {
        let values: [&[u8]; 4] = [b"first", b"second", b"refused", b"last"];
        let callers = values.map(|value| {
            let (store, first_runs) = (&store, &first_runs);
            threads.spawn(move || {
                let name = String::from_utf8_lossy(value);
                let mut is_met = value != b"first";
                if is_met {
                    first_runs.wait();
                }
                write(store, &mut |tx| {
                    if !is_met {
                        is_met = true;
                        first_runs.wait();
                        wait_until(|| store.waiting() == 3);
                    }
                    put(tx, &name, value)
                })
            })
        });
        callers.map(|caller| caller.join().unwrap())
    });
    assert!(matches!(written[2], Err(Error::Refused { .. })), "{written:?}");
    for at in [0, 1, 3] {
        assert!(written[at].is_ok(), "{written:?}");
    }
    for (name, expected) in [("first", true), ("second", true), ("refused", false), ("last", true)]
    {
        assert_eq!(is_there(&place.open(), name), expected, "{name}");
    }
}

/// Callers that come while the server is away wait for their own patience, and not for that of others, too.
#[test]
fn callers_wait_as_long_as_they_are_told_to() {
    const PATIENCE: Duration = Duration::from_secs(6);
    let Some(mut server) = Server::start() else { return };
    let store = place(&server, PATIENCE).open();
    (0..ROUNDS).for_each(|_| write(&store, &mut |tx| put(tx, "before", b"")).unwrap());
    server.crash();
    let times = thread::scope(|threads| {
        let callers = [0, 1, 2].map(|at| {
            let store = &store;
            threads.spawn(move || {
                thread::sleep(Duration::from_millis(100) * at);
                let start = Instant::now();
                let written = write(store, &mut |tx| put(tx, "after", b""));
                assert!(matches!(written, Err(Error::Unavailable { .. })), "{written:?}");
                start.elapsed()
            })
        });
        callers.map(|caller| caller.join().unwrap())
    });
    assert!(times.iter().all(|time| *time < PATIENCE * 7 / 4), "{times:?}");
}

/// A store that looks for commits without a pause would take a core of the server.
#[test]
fn the_question_for_commits_has_a_pause() {
    let Some(server) = Server::shared() else { return };
    let proxy = Proxy::before(server.folder());
    let place = server.place().through(&proxy.url()).with(|options| options.poll = Duration::ZERO);
    let store = place.open();
    store.listen(Box::new(|_| std::ops::ControlFlow::Continue(())));
    // It has connected, and asks.
    let before = proxy.sent();
    wait_until(|| proxy.sent() > before + 20);
    let (before, start) = (proxy.sent(), Instant::now());
    thread::sleep(Duration::from_secs(1));
    let asked = proxy.sent() - before;
    let allowed = start.elapsed().as_millis() * 5 / 4;
    assert!((1..=allowed).contains(&u128::from(asked)), "{asked} of {allowed}");
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

fn is_there(store: &PostgresStore, name: &str) -> bool {
    let mut is_there = false;
    let read = store.read(&mut |view| {
        is_there = has(view, name)?;
        Ok(())
    });
    read.unwrap();
    is_there
}

fn key(name: &str) -> Vec<u8> {
    [&ENVIRONMENT.to_be_bytes()[..], name.as_bytes()].concat()
}
