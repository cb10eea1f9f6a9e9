//! Transactions that take for right what is in memory, and ask the server when they end.

use std::mem;
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use store::{Decision, Error, Order, Snapshot, Store, Table, Transaction, WriteScope};
use testkit::postgres::{Place, Server};
use testkit::proxy::Proxy;
use testkit::wait_until;
use tidings_store_postgres::PostgresStore;
use uuid::Uuid;

const TABLE: Table = Table::Subscribers;
const ENVIRONMENT: u128 = 7;

/// Number of commits behind which a process takes what is in memory for right, and more.
const ROUNDS: u64 = 10;

/// Number of commits that the server knows, and at most a quarter more.
const COMMITS_KEPT: u64 = 1_024;

#[test]
fn a_transaction_on_values_in_memory_takes_one_round_trip() {
    let Some(store) = opened() else { return };
    (0..ROUNDS).for_each(|_| increment(&store, "count"));
    let taken = trips(&store, || increment(&store, "count"));
    assert_eq!((count(&store, "count"), taken), (ROUNDS + 1, 1));
    // The first question of a body begins the transaction.
    assert_eq!(trips(&store, || increment(&store, "other")), 2);
    // An error and an abort are those of the state on the server.
    let abort = |tx: &mut dyn Transaction| number(tx, "count").map(|_| Decision::Abort);
    assert_eq!(trips(&store, || store.write_within(scope(), &mut |tx| abort(tx)).unwrap()), 1);
    let pure = || store.read_pure(&mut |view| number(view, "count").map(drop)).unwrap();
    assert_eq!(trips(&store, pure), 1);
    let pure = || store.read_pure(&mut |view| number(view, "unknown").map(drop)).unwrap();
    assert_eq!(trips(&store, pure), 1);
}

/// The commit of another process is in memory of neither.
#[test]
fn a_body_that_another_process_has_overtaken_runs_again() {
    let Some(server) = Server::shared() else { return };
    let place = place(server);
    let (here, there) = (place.open(), place.open());
    for round in 1..=5 {
        (0..ROUNDS).for_each(|_| increment(&here, "count"));
        increment(&there, "count");
        let mut runs = 0;
        let added = here.write_within(scope(), &mut |tx| {
            runs += 1;
            add(tx, "count").map(|()| Decision::Commit)
        });
        added.unwrap();
        assert_eq!((runs, count(&there, "count")), (2, round * (ROUNDS + 2)));
    }
}

/// A guess that was wrong writes nothing, also under keys that are new.
#[test]
fn a_body_that_runs_again_leaves_nothing_of_its_first_run() {
    let Some(server) = Server::shared() else { return };
    let place = place(server);
    let (here, there) = (place.open(), place.open());
    (0..ROUNDS).for_each(|_| increment(&here, "count"));
    increment(&there, "count");
    let mut names = Vec::new();
    let added = here.write_within(scope(), &mut |tx| {
        names.push(format!("new-{}", number(tx, "count")?));
        tx.put(TABLE, &key(&names[names.len() - 1]), &7_u64.to_be_bytes())?;
        Ok(Decision::Commit)
    });
    added.unwrap();
    assert_eq!(names, [format!("new-{ROUNDS}"), format!("new-{}", ROUNDS + 1)]);
    assert_eq!([count(&there, &names[0]), count(&there, &names[1])], [0, 7]);
}

/// Keys that were not read are taken for new.
#[test]
fn an_entry_that_was_not_read_is_overwritten() {
    let Some(server) = Server::shared() else { return };
    let place = place(server);
    let (here, there) = (place.open(), place.open());
    for round in 1..=3_u64 {
        (0..ROUNDS).for_each(|_| increment(&there, "count"));
        let mut runs = 0;
        let overwritten = here.write_within(scope(), &mut |tx| {
            runs += 1;
            tx.put(TABLE, &key("count"), &0_u64.to_be_bytes())?;
            tx.put(TABLE, &key(&format!("new-{round}")), b"value")?;
            Ok(Decision::Commit)
        });
        overwritten.unwrap();
        // The second time, it looks for its keys.
        assert_eq!((runs, count(&there, "count")), (if round == 1 { 2 } else { 1 }, 0));
    }
    assert_eq!(count(&here, "count"), 0);
}

/// Entries that a body has seen are not taken for new, however it has seen them.
#[test]
fn an_entry_that_was_read_is_overwritten_at_once() {
    type See = fn(&mut dyn Transaction) -> store::Result<()>;

    let Some(server) = Server::shared() else { return };
    let place = place(server);
    let there = place.open();
    // Values of this size are not kept in memory.
    let large = vec![7; 20 << 10];
    let put = |tx: &mut dyn Transaction, name: &str, value: &[u8]| tx.put(TABLE, &key(name), value);
    let names = ["got", "listed"];
    let filled = there.write_within(scope(), &mut |tx| {
        names.iter().try_for_each(|name| put(tx, name, &large)).map(|()| Decision::Commit)
    });
    filled.unwrap();
    let here = place.open();
    (0..ROUNDS).for_each(|_| increment(&here, "count"));
    let see: [(&str, See); 2] = [
        ("got", |tx| tx.get(TABLE, &key("got"), &mut |_| ()).map(drop)),
        ("listed", |tx| {
            let range = (Bound::Included(key("l")), Bound::Excluded(key("m")));
            tx.scan(TABLE, &range, Order::Ascending, None, &mut |_, _| ControlFlow::Continue(()))
        }),
    ];
    for (name, see) in see {
        let mut runs = 0;
        let overwritten = here.write_within(scope(), &mut |tx| {
            runs += 1;
            see(tx)?;
            put(tx, name, b"small").map(|()| Decision::Commit)
        });
        overwritten.unwrap();
        assert_eq!(runs, 1, "{name}");
    }
}

/// Stores with little memory write side by side: what they have read is forgotten before their commits,
/// and keys are put, deleted and put again that nobody has read.
#[test]
fn writers_that_forget_what_they_have_read_lose_nothing() {
    const CALLS: u64 = 40;
    let Some(server) = Server::shared() else { return };
    let place = place(server).with(|options| options.cache_bytes = 2 << 10);
    let stores = [place.open(), place.open()];
    // Of one store, the commits come behind each other, so that it guesses.
    for (store, callers) in [(&stores[..1], 4), (&stores[..], 2)] {
        let before = count(&stores[0], "count");
        let calls = |store: &PostgresStore, caller: u64| {
            for call in 0..CALLS {
                let own = format!("own-{caller}");
                let written = store.write_within(scope(), &mut |tx| {
                    add(tx, "count")?;
                    let name = format!("shared-{}", (caller + call) % 5);
                    match (caller * 7 + call) % 3 {
                        0 => tx.delete(TABLE, &key(&name))?,
                        _ => tx.put(TABLE, &key(&name), &call.to_be_bytes())?,
                    }
                    tx.put(TABLE, &key(&own), &call.to_be_bytes())?;
                    Ok(Decision::Commit)
                });
                written.unwrap();
                assert_eq!(count(store, &own), call);
            }
        };
        thread::scope(|scope| {
            for (at, store) in store.iter().enumerate() {
                for caller in 0..callers {
                    scope.spawn(move || calls(store, at as u64 * callers + caller));
                }
            }
        });
        let made = store.len() as u64 * callers * CALLS;
        assert!(stores.iter().all(|store| count(store, "count") == before + made));
    }
}

#[test]
fn a_refusal_is_that_of_the_last_commit() {
    let Some(server) = Server::shared() else { return };
    let place = place(server);
    let (here, there) = (place.open(), place.open());
    let refused = || Error::Backend { backend: "a test", action: "find", source: "odd".into() };
    for _ in 0..5 {
        (0..ROUNDS).for_each(|_| increment(&here, "count"));
        increment(&there, "count");
        let mut seen = 0;
        let written = here.write_within(scope(), &mut |tx| {
            seen = number(tx, "count")?;
            if seen % 2 == 1 { Err(refused()) } else { Ok(Decision::Abort) }
        });
        assert_eq!((seen, written.is_err()), (count(&there, "count"), seen % 2 == 1));
    }
}

#[test]
fn a_pure_read_sees_the_last_commit() {
    let Some(server) = Server::shared() else { return };
    let place = place(server);
    let (here, there) = (place.open(), place.open());
    increment(&here, "count");
    for round in 2..10 {
        increment(&there, "count");
        let mut seen = 0;
        let read = here.read_pure(&mut |view| {
            seen = number(view, "count")?;
            Ok(())
        });
        read.unwrap();
        assert_eq!(seen, round);
    }
}

/// Readers that come while others ask share the next question, and each of them gets its own value, or the
/// first entry of its own range.
#[test]
fn pure_reads_that_wait_ask_together() {
    const READERS: u64 = 6;
    let Some(server) = Server::start() else { return };
    let place = two_connections(&server);
    let there = place.open();
    let name = |reader: u64| format!("reader-{reader}");
    for reader in 1..READERS {
        (0..reader).for_each(|_| increment(&there, &name(reader)));
    }
    for number in [number, first] {
        let here = place.open();
        let taken = trips_of_a_crowd(&server, &here, READERS, |reader, view| {
            let seen = number(view, &name(reader))?;
            assert_eq!(seen, reader);
            Ok(())
        });
        assert!(taken <= 4, "{taken}");
    }
}

/// Readers that share questions need no connections of their own.
#[test]
fn a_crowd_of_pure_reads_asks_together() {
    let Some(server) = Server::start() else { return };
    let store = two_connections(&server).open();
    increment(&store, "count");
    let taken = trips_of_a_crowd(&server, &store, 32, |_, view| number(view, "count").map(drop));
    assert!(taken <= 4, "{taken}");
}

/// What is read before, by and after the first question is one state, whatever others do meanwhile.
#[test]
fn a_pure_read_sees_one_state() {
    let Some(server) = Server::shared() else { return };
    let place = place(server);
    let names = ["a", "b", "c", "d"];
    let all = |store: &PostgresStore| {
        let added = store.write_within(scope(), &mut |tx| {
            names.iter().try_for_each(|name| add(tx, name)).map(|()| Decision::Commit)
        });
        added.unwrap();
    };
    let of_both = |number: Number| (0..names.len()).map(move |overtaken| (number, overtaken));
    for (number, overtaken) in of_both(number).chain(of_both(first)) {
        let (here, there) = (place.open(), place.open());
        all(&there);
        // One value is in memory, the others are not.
        let known = names[overtaken % 2];
        here.read(&mut |view| number(view, known).map(drop)).unwrap();
        let (mut runs, mut seen) = (0, Vec::new());
        let read = here.read_pure(&mut |view| {
            runs += 1;
            seen.clear();
            for (at, name) in names.iter().enumerate() {
                if runs == 1 && at == overtaken {
                    all(&there);
                }
                seen.push(number(view, name)?);
            }
            Ok(())
        });
        read.unwrap();
        assert!(seen.iter().all(|one| *one == seen[0]), "{overtaken}: {seen:?}");
        let last = count(&there, "a");
        assert!(seen[0] == last || overtaken > 0 && seen[0] == last - 1, "{overtaken}: {seen:?}");
    }
}

/// A body runs over a commit that is under way, and another process commits behind that one, and before
/// the body's first question.
#[test]
fn a_body_over_a_commit_does_not_overtake_another_process() {
    let Some(server) = Server::shared() else { return };
    let place = place(server);
    let [here, there, holder] = [(); 3].map(|()| place.open());
    (0..ROUNDS).for_each(|_| increment(&here, "count"));
    let pause = || thread::sleep(Duration::from_millis(100));
    thread::scope(|threads| {
        let held = holder.write_within(scope(), &mut |tx| {
            crate::lock(tx, TABLE, &key("any"));
            threads.spawn(|| increment(&here, "count"));
            pause();
            threads.spawn(|| increment(&there, "count"));
            pause();
            threads.spawn(|| {
                let added = here.write_within(scope(), &mut |tx| {
                    add(tx, "count")?;
                    number(tx, "unknown").map(|_| Decision::Commit)
                });
                added.unwrap();
            });
            pause();
            Ok(Decision::Abort)
        });
        held.unwrap();
    });
    assert_eq!(count(&there, "count"), ROUNDS + 3);
}

/// Several callers of several processes: each of them runs over commits that are under way.
#[test]
fn callers_of_an_environment_are_alone() {
    let Some(server) = Server::shared() else { return };
    let place = place(server);
    let made = increment_by_many(&place, &|made| made < 4 * ROUNDS, &thread::yield_now);
    assert_eq!(count(&place.open(), "count"), made);
}

/// A commit that fails takes those behind it along, and each call is made once all the same.
#[test]
fn callers_behind_a_commit_that_breaks_are_made_once() {
    let Some(server) = Server::start() else { return };
    let place = place(&server).with(|options| options.patience = Duration::from_secs(60));
    let cuts = AtomicU64::new(0);
    let cut = || {
        server.cut_connections();
        cuts.fetch_add(1, Ordering::Relaxed);
        thread::sleep(Duration::from_millis(30));
    };
    let goes_on = |made| made < ROUNDS || cuts.load(Ordering::Relaxed) < 8;
    let made = increment_by_many(&place, &goes_on, &cut);
    assert_eq!(count(&place.open(), "count"), made);
}

/// A process that was idle for some commits learns what they have changed, and asks for nothing else. Behind
/// many of them, or behind many keys, it forgets what is in memory.
#[test]
fn a_process_that_was_idle_loads_few_commits() {
    let Some(server) = Server::shared() else { return };
    let place = place(server);
    let large = |number: u64| (0..50).map(move |at| format!("{number:04}-{at:04000}"));
    for (commits, keys, is_kept) in [(200, 1, true), (300, 1, false), (3, 50, true), (8, 50, false)]
    {
        let (idle, busy) = (place.open(), place.open());
        increment(&busy, "kept");
        let before = count(&idle, "kept");
        for number in 0..commits {
            let written = busy.write_within(scope(), &mut |tx| {
                for name in large(number).take(keys) {
                    tx.put(TABLE, &key(&name), b"value")?;
                }
                Ok(Decision::Commit)
            });
            written.unwrap();
        }
        let taken = trips(&idle, || assert_eq!(count(&idle, "kept"), before));
        assert_eq!(taken == 1, is_kept, "{commits} commits of {keys} keys: {taken}");
    }
}

/// Another process has made so many commits meanwhile that the server has forgotten which they were.
#[test]
fn a_commit_of_which_nothing_is_known_is_not_made_again() {
    let Some(server) = Server::shared() else { return };
    let proxy = Proxy::before(server.folder());
    let place = place(server);
    let (here, there) = (place.clone().through(&proxy.url()).open(), place.open());
    (0..ROUNDS).for_each(|_| increment(&here, "count"));
    proxy.lose_answers(true);
    let made = thread::scope(|scope| {
        let made = scope.spawn(|| {
            here.write_within(self::scope(), &mut |tx| add(tx, "count").map(|()| Decision::Commit))
        });
        while count(&there, "count") == ROUNDS {
            thread::yield_now();
        }
        (0..COMMITS_KEPT * 5 / 4).for_each(|_| increment(&there, "other"));
        proxy.lose_answers(false);
        proxy.cut();
        made.join().unwrap()
    });
    assert!(matches!(made, Err(Error::Unavailable { .. })), "{made:?}");
    assert_eq!(count(&here, "count"), ROUNDS + 1);
}

/// The server has a commit in its socket, and takes it up after the store has found no such commit.
#[test]
fn a_commit_that_is_not_found_is_never_made() {
    let Some(server) = Server::start() else { return };
    let proxy = Proxy::before(server.folder());
    let place = place(&server).through(&proxy.url());
    let here = place.open();
    (0..ROUNDS).for_each(|_| increment(&here, "count"));
    let pause = || thread::sleep(Duration::from_millis(300));
    let (halted, mut runs) = (server.halt_connections(), 0);
    let sent = proxy.sent();
    thread::scope(|threads| {
        threads.spawn(|| {
            wait_until(|| proxy.sent() > sent);
            pause();
            proxy.cut();
        });
        let added = here.write_within(scope(), &mut |tx| {
            runs += 1;
            add(tx, "count")?;
            if runs == 2 {
                server.resume_connections(&halted);
                pause();
            }
            Ok(Decision::Commit)
        });
        added.unwrap();
    });
    assert!(runs > 1);
    assert_eq!(count(&place.open(), "count"), ROUNDS + 1);
}

/// Two processes with three callers each increment, in bursts. Returns how often.
fn increment_by_many(
    place: &Place,
    goes_on: &(dyn Fn(u64) -> bool + Sync),
    meanwhile: &(dyn Fn() + Sync),
) -> u64 {
    let (stores, is_over) = ([place.open(), place.open()], AtomicBool::new(false));
    let caller = |store: &PostgresStore, pause: u64| {
        let mut made = 0;
        while goes_on(made) {
            // Some ask for what is not in memory.
            let other = format!("{pause} {made}");
            let added = store.write_within(self::scope(), &mut |tx| {
                add(tx, "count")?;
                if made % 3 == 0 {
                    add(tx, &other)?;
                }
                Ok(Decision::Commit)
            });
            added.unwrap();
            made += 1;
            if made % (2 * ROUNDS) == 0 {
                thread::sleep(Duration::from_millis(pause));
            }
        }
        made
    };
    thread::scope(|scope| {
        let (caller, is_over) = (&caller, &is_over);
        let of_stores = (0..6).zip(stores.iter().cycle());
        let spawn = |(at, store): (u64, _)| scope.spawn(move || caller(store, at * 7));
        let callers: Vec<_> = of_stores.map(spawn).collect();
        scope.spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                meanwhile();
            }
        });
        let made = callers.into_iter().map(|caller| caller.join().unwrap()).sum();
        is_over.store(true, Ordering::Relaxed);
        made
    })
}

fn opened() -> Option<PostgresStore> {
    Server::shared().map(|server| place(server).open())
}

/// The questions for commits of other processes do not count.
fn place(server: &Server) -> Place {
    server.place().with(|options| options.poll = Duration::from_secs(3_600))
}

fn two_connections(server: &Server) -> Place {
    place(server).with(|options| {
        options.connections = 2;
        options.timeout = Duration::from_secs(60);
    })
}

/// Round trips of readers, all of which begin while a server that has two connections answers none of them.
/// The first two readers ask on these connections.
fn trips_of_a_crowd(
    server: &Server,
    store: &PostgresStore,
    readers: u64,
    read: impl Fn(u64, &dyn Snapshot) -> store::Result<()> + Sync,
) -> u64 {
    // A transaction and a reader have a connection each, and the readers know the statements.
    let opened = store.write_within(scope(), &mut |tx| {
        number(tx, "unknown")?;
        store.read(&mut |view| number(view, "unknown").map(drop))?;
        Ok(Decision::Abort)
    });
    opened.unwrap();
    for _ in 0..2 {
        store.read_pure(&mut |view| number(view, "unknown").map(drop)).unwrap();
    }
    let begun = AtomicU64::new(0);
    let halted = server.halt_connections();
    trips(store, || {
        thread::scope(|threads| {
            for reader in 0..readers {
                let (read, begun) = (&read, &begun);
                threads.spawn(move || {
                    let mut is_first_run = true;
                    let outcome = store.read_pure(&mut |view| {
                        begun.fetch_add(u64::from(mem::take(&mut is_first_run)), Ordering::SeqCst);
                        read(reader, view)
                    });
                    outcome.unwrap();
                });
            }
            wait_until(|| begun.load(Ordering::SeqCst) == readers);
            // Each of them has asked, or waits for those who ask.
            thread::sleep(Duration::from_millis(500));
            server.resume_connections(&halted);
        });
    })
}

fn scope() -> WriteScope {
    WriteScope::Environment(Uuid::from_u128(ENVIRONMENT).into())
}

fn key(name: &str) -> Vec<u8> {
    [&ENVIRONMENT.to_be_bytes()[..], name.as_bytes()].concat()
}

fn increment(store: &PostgresStore, name: &str) {
    store.write_within(scope(), &mut |tx| add(tx, name).map(|()| Decision::Commit)).unwrap();
}

fn add(tx: &mut dyn Transaction, name: &str) -> store::Result<()> {
    let more = number(tx, name)? + 1;
    tx.put(TABLE, &key(name), &more.to_be_bytes())
}

type Number = fn(&dyn Snapshot, &str) -> store::Result<u64>;

fn number(view: &dyn Snapshot, name: &str) -> store::Result<u64> {
    let mut number = 0;
    view.get(TABLE, &key(name), &mut |bytes| {
        number = u64::from_be_bytes(bytes.try_into().unwrap());
    })?;
    Ok(number)
}

/// The number as the first entry of a range.
fn first(view: &dyn Snapshot, name: &str) -> store::Result<u64> {
    let range = (Bound::Included(key(name)), Bound::Excluded([&key(name)[..], b"\xff"].concat()));
    let mut number = 0;
    view.scan(TABLE, &range, Order::Ascending, Some(1), &mut |_, bytes| {
        number = u64::from_be_bytes(bytes.try_into().unwrap());
        ControlFlow::Continue(())
    })?;
    Ok(number)
}

fn count(store: &PostgresStore, name: &str) -> u64 {
    let mut count = 0;
    let read = store.read(&mut |view| {
        count = number(view, name)?;
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
