//! Commits of several environments that share a transaction of the server.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use store::{Decision, Error, Snapshot, Store, Table, Transaction, WriteScope};
use testkit::postgres::{Place, Server};
use testkit::proxy::Proxy;
use testkit::wait_until;
use tidings_store_postgres::PostgresStore;
use uuid::Uuid;

use crate::cut_until_over;

const TABLE: Table = Table::Subscribers;

/// Environments whose heads differ.
const ENVIRONMENTS: [u128; 12] = [4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48];

/// Number of commits behind which a process takes what is in memory for right.
const ROUNDS: u64 = 5;

/// A timeout that is longer than what is waited for.
const LONG: Duration = Duration::from_secs(90);

/// Callers of different environments whose commits are ready while another one is under way.
#[test]
fn environments_share_a_commit() {
    let Some(server) = Server::start() else { return };
    let (place, store) = opened(&server);
    let callers = ENVIRONMENTS.len();
    let taken = trips(&store, || {
        halted(&server, &store, |at| {
            let added = store.write_within(scope(ENVIRONMENTS[at]), &mut |tx| {
                add(tx, ENVIRONMENTS[at]).map(|()| Decision::Commit)
            });
            added.unwrap();
        });
    });
    // One caller comes first, and the others share the next one.
    assert_eq!((taken, transactions(&server, &place)), (2, vec![1, callers - 1]));
    assert!(
        ENVIRONMENTS.iter().all(|environment| count(&place.open(), *environment) == ROUNDS + 1)
    );
}

/// A transaction has about a mebibyte of changes at most.
#[test]
fn large_changes_of_several_environments_are_several_transactions() {
    const SIZE: usize = 400 << 10;
    let Some(server) = Server::start() else { return };
    let (place, store) = opened(&server);
    halted(&server, &store, |at| {
        let put = store.write_within(scope(ENVIRONMENTS[at]), &mut |tx| {
            tx.put(TABLE, &key(ENVIRONMENTS[at]), &vec![7; SIZE]).map(|()| Decision::Commit)
        });
        put.unwrap();
    });
    let callers = transactions(&server, &place);
    assert_eq!(
        (callers.iter().sum(), callers.last()),
        (ENVIRONMENTS.len(), Some(&2)),
        "{callers:?}"
    );
}

/// Another process holds more environments than there are connections. Their callers wait, those of the others
/// do not, and share commits all the same.
#[test]
fn environments_that_are_held_hold_up_no_commits() {
    const HELD: usize = 6;
    const CALLS: u64 = 20;
    let Some(server) = Server::shared() else { return };
    let (place, store) = opened_at(server.place().with(|options| options.timeout = LONG));
    let holder = place.clone().with(|options| options.connections = 4 * HELD).open();
    let (store, (held, free)) = (&store, ENVIRONMENTS.split_at(HELD));
    thread::scope(|threads| {
        hold(&holder, held, &mut || {
            for environment in held {
                threads.spawn(move || increment(store, *environment));
            }
            wait_until(|| store.waiting() == HELD);
            let call = |environment| (0..CALLS).for_each(|_| increment(store, environment));
            let spawn = |environment| threads.spawn(move || call(environment));
            let callers: Vec<_> = free.iter().copied().map(spawn).collect();
            wait_until(|| callers.iter().all(thread::ScopedJoinHandle::is_finished));
            assert!(held.iter().all(|environment| count(&place.open(), *environment) == ROUNDS));
        });
    });
    let made = |environment: &u128| count(store, *environment) - ROUNDS;
    assert!(held.iter().all(|environment| made(environment) == 1));
    assert!(free.iter().all(|environment| made(environment) == CALLS));
}

/// Readers that take long, and callers of environments that another process holds, may have all connections
/// but one. The commits of other environments take that one.
#[test]
fn readers_and_callers_that_wait_leave_a_connection_to_commits() {
    const HELD: usize = 2;
    // One of them removes the notes of old commits.
    const COMMITS: u64 = 257;
    let Some(server) = Server::shared() else { return };
    let (place, store) = opened_at(server.place().with(|options| options.timeout = LONG));
    let holder = place.open();
    let (store, (held, free)) = (&store, ENVIRONMENTS.split_at(HELD));
    let (reads, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|threads| {
        // As many as leave two connections to writers.
        for _ in 0..2 {
            threads.spawn(|| {
                let read = store.read(&mut |_| {
                    reads.fetch_add(1, Ordering::SeqCst);
                    wait_until(|| is_over.load(Ordering::SeqCst));
                    Ok(())
                });
                read.unwrap();
            });
        }
        wait_until(|| reads.load(Ordering::SeqCst) == 2);
        hold(&holder, held, &mut || {
            for environment in held {
                threads.spawn(move || increment(store, *environment));
            }
            thread::sleep(Duration::from_millis(500));
            let caller = threads.spawn(move || {
                (0..COMMITS).for_each(|_| increment(store, free[0]));
            });
            wait_until(|| caller.is_finished());
        });
        is_over.store(true, Ordering::SeqCst);
    });
    for environment in held {
        assert_eq!(count(store, *environment), ROUNDS + 1);
    }
    assert_eq!(count(store, free[0]), ROUNDS + COMMITS);
}

/// Commits that share a statement, too, keep only so many notes.
#[test]
fn notes_of_old_commits_are_removed() {
    const COMMITS: u64 = 1024 + 2 * 256;
    let Some(server) = Server::start() else { return };
    let (place, store) = opened(&server);
    for _ in 0..COMMITS {
        increment(&store, ENVIRONMENTS[0]);
    }
    assert_eq!(count(&store, ENVIRONMENTS[0]), ROUNDS + COMMITS);
    let schema = place.schema();
    let more = server.query(&format!(
        "SELECT head FROM \"{schema}\".tidings_commits GROUP BY head HAVING count(*) > 1024 + 256"
    ));
    assert_eq!(more.len(), 0);
}

/// What is odd about the call of one environment.
#[derive(Clone, Copy, Debug)]
enum Odd {
    /// An entry is there that was taken for new. The whole statement fails.
    IsThere,
    /// Another process has changed the environment.
    IsOvertaken,
    /// The body fails.
    Fails,
}

impl Odd {
    /// How often the body runs, and how often the environment is incremented.
    fn expected(self) -> (u64, u64) {
        match self {
            Self::IsThere => (2, 1),
            Self::IsOvertaken => (2, 2),
            Self::Fails => (1, 0),
        }
    }
}

/// The body of an environment whose commit fails runs again, and those of the others do not.
#[test]
fn a_commit_that_fails_is_made_without_the_others() {
    for odd in [Odd::IsThere, Odd::IsOvertaken, Odd::Fails] {
        let Some(server) = Server::start() else { return };
        let (place, store) = opened(&server);
        let other = place.open();
        let [_, one, ..] = ENVIRONMENTS;
        let unknown = [&key(one)[..], b"unknown"].concat();
        match odd {
            // Values of this size are not kept in memory.
            Odd::IsThere => put(&store, one, &unknown, 600 << 10),
            Odd::IsOvertaken => increment(&other, one),
            Odd::Fails => {}
        }
        let runs = ENVIRONMENTS.map(|_| AtomicU64::new(0));
        let call = |at: usize| {
            let environment = ENVIRONMENTS[at];
            store.write_within(scope(environment), &mut |tx| {
                runs[at].fetch_add(1, Ordering::Relaxed);
                add(tx, environment)?;
                if environment == one {
                    match odd {
                        Odd::IsThere => tx.put(TABLE, &unknown, b"new")?,
                        Odd::IsOvertaken => {}
                        Odd::Fails => return Err(odd_error()),
                    }
                }
                Ok(Decision::Commit)
            })
        };
        halted(&server, &store, |at| {
            assert_eq!(call(at).is_ok(), at != 1 || odd.expected().1 > 0);
        });
        let made = |environment| count(&other, environment) - ROUNDS;
        let found = runs.each_ref().map(|runs| runs.load(Ordering::Relaxed));
        for (environment, runs) in ENVIRONMENTS.into_iter().zip(found) {
            let expected = if environment == one { odd.expected() } else { (1, 1) };
            assert_eq!((runs, made(environment)), expected, "{odd:?}, environment {environment}");
        }
    }
}

fn odd_error() -> Error {
    Error::Backend { backend: "a test", action: "add", source: "odd".into() }
}

/// Each caller of a statement whose answer is lost asks whether its changes are made.
#[test]
fn calls_whose_shared_commit_has_no_answer_are_made_once() {
    let Some(server) = Server::start() else { return };
    let proxy = Proxy::before(server.folder());
    let (place, direct) = opened(&server);
    let store = place.clone().through(&proxy.url()).open();
    for environment in ENVIRONMENTS {
        (0..ROUNDS).for_each(|_| increment(&store, environment));
    }
    let before = count(&direct, ENVIRONMENTS[1]);
    let runs = AtomicU64::new(0);
    let call = |at: usize| {
        let added = store.write_within(scope(ENVIRONMENTS[at]), &mut |tx| {
            runs.fetch_add(1, Ordering::Relaxed);
            add(tx, ENVIRONMENTS[at]).map(|()| Decision::Commit)
        });
        added.unwrap();
    };
    // The commit of the first environment is made, and the shared one of the others waits for an entry.
    let entry = format!(
        "UPDATE \"{}\".tidings_entries SET value = value WHERE head = '\\x{:032x}'; \
         SELECT pg_sleep(6); ROLLBACK",
        place.schema(),
        ENVIRONMENTS[1]
    );
    thread::scope(|threads| {
        threads.spawn(|| server.query(&format!("BEGIN; {entry}")));
        thread::sleep(Duration::from_millis(500));
        halted_until(&server, &store, call, || {
            thread::sleep(Duration::from_millis(500));
            proxy.lose_answers(true);
            wait_until(|| count(&direct, ENVIRONMENTS[1]) > before);
            proxy.lose_answers(false);
            proxy.cut();
        });
    });
    assert_eq!(runs.into_inner(), ENVIRONMENTS.len() as u64);
    assert!(ENVIRONMENTS.iter().all(|environment| count(&direct, *environment) == before + 1));
}

/// Callers of two processes on several environments, whose connections end in the middle of what they do.
#[test]
fn calls_whose_shared_commit_breaks_are_made_once() {
    const CALLS: u64 = 60;
    let Some(server) = Server::start() else { return };
    let patient = server.place().with(|options| options.patience = Duration::from_secs(60));
    let (place, store) = opened_at(patient);
    let stores = [store, place.open()];
    let (made, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|threads| {
        let callers = ENVIRONMENTS.iter().enumerate().flat_map(|(at, environment)| {
            // Two callers each, and both processes on every third environment.
            let of_both = if at % 3 == 0 { [0, 1] } else { [at % 2, at % 2] };
            of_both.map(|store| (&stores[store], *environment))
        });
        let callers: Vec<_> = callers
            .map(|(store, environment)| {
                let made = &made;
                threads.spawn(move || {
                    for _ in 0..CALLS {
                        increment(store, environment);
                        made.fetch_add(1, Ordering::SeqCst);
                    }
                })
            })
            .collect();
        threads.spawn(|| cut_until_over(&made, &is_over, || server.cut_connections()));
        for caller in callers {
            caller.join().unwrap();
        }
        is_over.store(true, Ordering::SeqCst);
    });
    for environment in ENVIRONMENTS {
        for store in &stores {
            assert_eq!(count(store, environment), ROUNDS + 2 * CALLS, "{environment}");
        }
    }
}

/// A store that takes for right what it has in memory of all environments.
fn opened(server: &Server) -> (Place, PostgresStore) {
    opened_at(server.place())
}

fn opened_at(place: Place) -> (Place, PostgresStore) {
    let place = place.with(|options| options.poll = Duration::from_secs(3_600));
    let store = place.open();
    for environment in ENVIRONMENTS {
        (0..ROUNDS).for_each(|_| increment(&store, environment));
    }
    (place, store)
}

/// Calls for each environment, and lets the server go on when all callers wait for it. The first one has asked
/// before the others come.
fn halted(server: &Server, store: &PostgresStore, call: impl Fn(usize) + Sync) {
    halted_until(server, store, call, || ());
}

/// The same, and runs `then` when the server goes on.
fn halted_until(
    server: &Server,
    store: &PostgresStore,
    call: impl Fn(usize) + Sync,
    then: impl FnOnce(),
) {
    let (halted, before) = (server.halt_connections(), store.round_trips());
    thread::scope(|threads| {
        for at in 0..ENVIRONMENTS.len() {
            let call = &call;
            threads.spawn(move || call(at));
            if at == 0 {
                wait_until(|| store.round_trips() > before);
            }
        }
        wait_until(|| store.waiting() == ENVIRONMENTS.len());
        server.resume_connections(&halted);
        then();
    });
}

/// Number of entries of each transaction, in their order.
fn transactions(server: &Server, place: &Place) -> Vec<usize> {
    let entries = format!("\"{}\".tidings_entries", place.schema());
    let count = format!("SELECT count(*) FROM {entries} GROUP BY xmin::text ORDER BY count");
    server.query(&count).iter().map(|count| count.parse().unwrap()).collect()
}

fn hold(store: &PostgresStore, environments: &[u128], body: &mut dyn FnMut()) {
    let Some((first, others)) = environments.split_first() else { return body() };
    let held = store.write_within(scope(*first), &mut |tx| {
        crate::lock(tx, TABLE, &key(*first));
        hold(store, others, body);
        Ok(Decision::Abort)
    });
    held.unwrap();
}

fn scope(environment: u128) -> WriteScope {
    WriteScope::Environment(Uuid::from_u128(environment).into())
}

fn key(environment: u128) -> Vec<u8> {
    environment.to_be_bytes().to_vec()
}

fn put(store: &PostgresStore, environment: u128, key: &[u8], size: usize) {
    let put = store.write_within(scope(environment), &mut |tx| {
        tx.put(TABLE, key, &vec![7; size]).map(|()| Decision::Commit)
    });
    put.unwrap();
}

fn increment(store: &PostgresStore, environment: u128) {
    let added = store.write_within(scope(environment), &mut |tx| {
        add(tx, environment).map(|()| Decision::Commit)
    });
    added.unwrap();
}

fn add(tx: &mut dyn Transaction, environment: u128) -> store::Result<()> {
    let more = number(tx, environment)? + 1;
    tx.put(TABLE, &key(environment), &more.to_be_bytes())
}

fn number(view: &(impl Snapshot + ?Sized), environment: u128) -> store::Result<u64> {
    let mut number = 0;
    view.get(TABLE, &key(environment), &mut |bytes| {
        number = u64::from_be_bytes(bytes.try_into().unwrap());
    })?;
    Ok(number)
}

fn count(store: &PostgresStore, environment: u128) -> u64 {
    let mut count = 0;
    let read = store.read(&mut |view| {
        count = number(view, environment)?;
        Ok(())
    });
    read.unwrap();
    count
}

fn trips(store: &PostgresStore, call: impl FnOnce()) -> u64 {
    let before = store.round_trips();
    call();
    store.round_trips() - before
}
