//! Several processes on one schema. Each has a store of its own, with its own values in memory.

use std::future::Future;
use std::ops::Bound::Unbounded;
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use store::{Decision, Order, Snapshot, Store, Table, Transaction};
use testkit::interposed::Interposed;
use testkit::postgres::{Place, Server};
use testkit::proxy::Proxy;
use testkit::waiting::{PATIENCE, wait_until};
use testkit::world::{World, email};
use tidings::integration::IntegrationCreate;
use tidings::notification::{NotificationOutcome, NotificationQuery};
use tidings::step::Step;
use tidings::subscriber::SubscriberCreate;
use tidings::trigger::Trigger;
use tidings::vocabulary::Channel;
use tidings::workflow::WorkflowCreate;
use tidings::{
    Builder, Call, Engine, FailureReason, ManualClock, OsEntropy, RecordingProvider, SystemClock,
};
use tidings_store_postgres::{PostgresOptions, PostgresStore};

use crate::{cut_until_over, wait_until_free};

const TABLE: Table = Table::ALL[3];
const OTHER: Table = Table::ALL[4];
const PROCESSES: u64 = 4;

/// The key of the commits by which a listener is found to listen. All others come behind it.
const FIRST: u8 = 0;

/// Number of increments of each process.
const ROUNDS: u64 = 50;

#[test]
fn writers_of_all_processes_are_alone() {
    let Some(server) = Server::shared() else { return };
    let place = server.place();
    thread::scope(|scope| {
        for _ in 0..PROCESSES {
            let store = place.open();
            scope.spawn(move || (0..ROUNDS).for_each(|_| increment(&store)));
        }
    });
    assert_eq!(count(&place.open()), PROCESSES * ROUNDS);
}

/// A rolling deployment: a process that is older or newer has no provider and no handler for what another one
/// has triggered, and leaves both to it.
#[test]
fn a_process_leaves_what_it_cannot_call_to_others() {
    let Some(server) = Server::shared() else { return };
    let (place, clock) = (server.place(), ManualClock::at("2026-06-01T12:00:00Z".parse().unwrap()));
    let recorder = RecordingProvider::default();
    let engine = |configure: &dyn Fn(Builder) -> Builder| {
        configure(Engine::builder().clock(clock.clone())).build(place.open())
    };
    let new = engine(&|builder| {
        builder.default_provider(recorder.clone()).handler("book", |_: &Call| Ok(None))
    });
    let old = engine(&|builder| builder);
    let env = new.organization("shop").unwrap().production().unwrap();
    env.integrations().create(&IntegrationCreate::new("ses", Channel::Email).unwrap()).unwrap();
    let ada = SubscriberCreate::new("ada").unwrap().email("ada@example.org").unwrap();
    for (name, step) in
        [("mail", Step::email("Hello", "Hello").unwrap()), ("call", Step::custom("book"))]
    {
        let workflow = WorkflowCreate::new(name, name).unwrap().step(step);
        env.workflows().create(&workflow).unwrap();
        env.events().trigger(&Trigger::new(name, ada.clone()).unwrap()).unwrap();
    }
    let failures = old.delivery().run_due(100).unwrap().failures;
    let mut reasons: Vec<_> = failures.iter().map(|failure| failure.reason.clone()).collect();
    reasons.sort_by_key(|reason| format!("{reason:?}"));
    assert_eq!(reasons, [FailureReason::NoHandler, FailureReason::NoProvider]);
    assert!(failures.iter().all(|failure| failure.retry_at.is_some()));

    clock.advance(Duration::from_secs(60));
    assert_eq!(new.delivery().run_due(100).unwrap().failed, 0);
    assert_eq!(recorder.sent().len(), 1);
    let open = [NotificationOutcome::Waiting, NotificationOutcome::Failed];
    let query = NotificationQuery::default().outcomes(open);
    assert_eq!(env.notifications().list(&query).unwrap().data.len(), 0);
}

/// What is read ahead is what others have committed, and takes one round trip. The begin of a transaction that
/// writes may take another one.
#[test]
fn values_of_others_are_read_ahead() {
    let Some(server) = Server::shared() else { return };
    let place = server.place().with(|options| options.poll = Duration::from_secs(3_600));
    let set = |store: &PostgresStore, value: &[u8]| {
        let put = |transaction: &mut dyn Transaction| {
            transaction.put(TABLE, b"ada", value)?;
            transaction.put(OTHER, b"ada", b"other")?;
            Ok(Decision::Commit)
        };
        store.write(&mut |transaction| put(transaction)).unwrap();
    };
    let check = |store: &PostgresStore, snapshot: &dyn Snapshot, expected: &[u8], trips: u64| {
        let keys = [(TABLE, "ada"), (OTHER, "ada"), (TABLE, "bob")];
        let mut rows = keys.iter().map(|(table, key)| (*table, key.as_bytes().to_vec()));
        let before = store.round_trips();
        snapshot.prefetch(&mut rows).unwrap();
        let values = keys.map(|(table, key)| {
            let mut value = None;
            let visit = &mut |bytes: &[u8]| value = Some(bytes.to_vec());
            snapshot.get(table, key.as_bytes(), visit).unwrap();
            value
        });
        assert_eq!(values, [Some(expected.to_vec()), Some(b"other".to_vec()), None]);
        assert_eq!(store.round_trips(), before + trips);
    };
    let [others, reader, writer] = [(); 3].map(|()| place.open());
    for value in [b"1", b"2"] {
        set(&others, value);
        let read = &mut |snapshot: &dyn Snapshot| {
            check(&reader, snapshot, value, 1);
            Ok(())
        };
        reader.read(read).unwrap();
        let write = &mut |transaction: &mut dyn Transaction| {
            // It begins with the values, or before them if some are in memory.
            check(&writer, transaction, value, if value == b"1" { 1 } else { 2 });
            Ok(Decision::Abort)
        };
        writer.write(write).unwrap();
    }
}

/// Connections break at any time, in the middle of commits as well. Each call is made once all the
/// same.
#[test]
fn a_call_whose_connection_breaks_is_made_once() {
    let Some(server) = Server::start() else { return };
    let place = server.place().with(patient);
    check_increments(&place, || server.cut_connections());
}

/// The same where answers get lost as well: the server has committed, and nobody hears of it.
#[test]
fn a_call_whose_answer_is_cut_off_is_made_once() {
    let Some(server) = Server::shared() else { return };
    let proxy = Proxy::before(server.folder());
    let place = server.place().with(patient).through(&proxy.url());
    check_increments(&place, || proxy.cut());
}

/// Checks that each increment of several processes is made once, although connections are cut meanwhile.
#[track_caller]
fn check_increments(place: &Place, cut: impl Fn() + Sync) {
    let stores: Vec<PostgresStore> = (0..PROCESSES).map(|_| place.open()).collect();
    let [made, cuts] = [(); 2].map(|()| AtomicU64::new(0));
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let writers: Vec<_> = stores
            .iter()
            .map(|store| scope.spawn(|| increment_among(store, &made, &cuts)))
            .collect();
        scope.spawn(|| {
            cut_until_over(&made, &is_over, || {
                cut();
                cuts.fetch_add(1, Ordering::SeqCst);
            });
        });
        for writer in writers {
            writer.join().unwrap();
        }
        is_over.store(true, Ordering::SeqCst);
    });
    assert_eq!(count(&place.open()), made.into_inner());
}

/// A reader that begins after a commit of another process sees it, whatever it has in memory.
#[test]
fn a_commit_of_another_process_is_seen() {
    let Some(server) = Server::shared() else { return };
    let place = server.place();
    let stores: Vec<PostgresStore> = (0..2).map(|_| place.open()).collect();
    for round in 0..200_u64 {
        let [writer, reader] = [0, 1].map(|at| &stores[usize::try_from((round + at) % 2).unwrap()]);
        increment(writer);
        assert_eq!(count(reader), round + 1);
        assert_eq!(count(reader), round + 1);
    }
}

#[test]
fn a_process_that_is_far_behind_forgets_everything() {
    let Some(server) = Server::shared() else { return };
    let place = server.place();
    let (busy, idle) = (place.open(), place.open());
    assert_eq!(count(&idle), 0);
    // More keys than other processes are told of.
    put(&busy, &|tx| (0..100).try_for_each(|at| tx.put(TABLE, &[at; 4_000], b"value")));
    increment(&busy);
    assert_eq!(count(&idle), 1);
}

#[test]
fn an_event_that_every_process_triggers_happens_once() {
    let Some(server) = Server::shared() else { return };
    let place = server.place();
    let worlds: Vec<World> = (0..PROCESSES)
        .map(|_| World::with(Interposed::over(Arc::new(place.open())), |it| it.entropy(OsEntropy)))
        .collect();
    worlds[0].in_app_workflow("order");
    thread::scope(|scope| {
        for world in &worlds {
            scope.spawn(|| {
                for number in 0..20 {
                    let id = format!("order-{number}");
                    world.trigger(json!({ "name": "order", "to": "ada", "transactionId": id }));
                }
            });
        }
    });
    for world in &worlds {
        assert_eq!(world.notifications(json!({ "limit": 50 })).len(), 20);
    }
}

/// A future that waits for an inbox is woken by what another process has triggered, and a worker
/// delivers it.
#[test]
fn what_waits_hears_of_other_processes() {
    let Some(server) = Server::shared() else { return };
    let place = server.place();
    let [here, there] = [(); 2].map(|()| {
        let store = Interposed::over(Arc::new(place.open()));
        World::with(store, |it| it.entropy(OsEntropy).clock(SystemClock))
    });
    here.in_app_workflow("order");
    here.workflow_of("welcome", &[email()]);
    here.active_integration("email", "mail");
    here.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));

    let woken = Arc::new(Woken::default());
    let inbox = there.env.inbox("ada").unwrap();
    let mut changed = pin!(inbox.changed(&inbox.cursor().unwrap()));
    let waker = Waker::from(Arc::clone(&woken));
    let mut poll = || changed.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(poll().is_pending());
    here.notify("order", "ada");
    wait_until(|| woken.0.load(Ordering::SeqCst));
    assert!(poll().is_ready());

    // A subscriber without messages is deleted.
    here.bare_subscriber("bob");
    let inbox = there.env.inbox("bob").unwrap();
    let mut changed = pin!(inbox.changed(&inbox.cursor().unwrap()));
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    assert!(changed.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    here.env.subscribers().delete("bob").unwrap();
    wait_until(|| woken.0.load(Ordering::SeqCst));

    let worker = there.engine.worker().start().unwrap();
    here.notify("welcome", "ada");
    wait_until(|| there.recorder.sent().len() == 1);
    drop(worker.stop(Duration::from_secs(10)));
    assert!(here.recorder.sent().is_empty());
}

/// Each of two engines over one store hears of the commits of the other.
#[test]
fn engines_of_one_store_hear_of_each_other() {
    let Some(server) = Server::shared() else { return };
    let store = server.place().open();
    let [here, there] = [(); 2].map(|()| {
        let store = Interposed::over(Arc::new(store.clone()));
        World::with(store, |it| it.entropy(OsEntropy).clock(SystemClock))
    });
    here.in_app_workflow("order");
    here.bare_subscriber("ada");
    let woken = Arc::new(Woken::default());
    let inbox = there.env.inbox("ada").unwrap();
    let mut changed = pin!(inbox.changed(&inbox.cursor().unwrap()));
    let waker = Waker::from(Arc::clone(&woken));
    assert!(changed.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    here.notify("order", "ada");
    wait_until(|| woken.0.load(Ordering::SeqCst));
    assert!(changed.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
}

/// A process that asks for commits once an hour is called by another one.
#[test]
fn a_commit_calls_other_processes() {
    let Some(server) = Server::shared() else { return };
    let place = server.place().with(|options| options.poll = Duration::from_secs(3_600));
    let (here, there) = (place.open(), place.open());
    let (tell, told) = mpsc::channel();
    // The store calls others while it listens itself.
    here.listen(Box::new(|_| ControlFlow::Continue(())));
    there.listen(Box::new(move |keys| {
        tell.send(keys.map(<[_]>::to_vec)).unwrap();
        ControlFlow::Continue(())
    }));
    until_heard(&here, &told);
    let names = (1..=40).filter(|name| {
        set(&here, *name);
        hears(&told, *name)
    });
    assert!(names.count() >= 20, "most commits are not named");
}

/// What a listener is told.
type Told = Option<Vec<(Table, Vec<u8>)>>;

/// Commits to `store` until a listener hears of it. Its connection may not be there yet.
#[track_caller]
fn until_heard(store: &PostgresStore, told: &mpsc::Receiver<Told>) {
    wait_until(|| {
        set(store, FIRST);
        told.recv_timeout(Duration::from_millis(100)).is_ok()
    });
}

/// Returns `true` if the next commit that a listener hears of is that of this key, apart from those of keys
/// before it, and `false` if it hears that any key may have changed.
#[track_caller]
fn hears(told: &mpsc::Receiver<Told>, key: u8) -> bool {
    loop {
        let Some(keys) = told.recv_timeout(PATIENCE).unwrap() else { return false };
        let keys: Vec<_> = keys.into_iter().filter(|(_, found)| found[..] >= [key][..]).collect();
        if !keys.is_empty() {
            assert_eq!(keys, [(TABLE, vec![key])]);
            return true;
        }
    }
}

/// What a commit means for the engine that has made it is done when it returns.
#[test]
fn a_store_is_not_told_of_its_own_commits() {
    let Some(server) = Server::shared() else { return };
    let place = server.place();
    let (here, there) = (place.open(), place.open());
    let (tell, told) = mpsc::channel();
    here.listen(Box::new(move |keys| {
        tell.send(keys.map(<[_]>::to_vec)).unwrap();
        ControlFlow::Continue(())
    }));
    until_heard(&there, &told);
    // The connection that listens may break.
    let is_heard = (1..=20).any(|name| {
        (0..10).for_each(|_| increment(&here));
        set(&there, name);
        hears(&told, name)
    });
    assert!(is_heard);
}

/// Listeners come and go, and one connection listens for all of them.
#[test]
fn a_store_listens_once() {
    let Some(server) = Server::shared() else { return };
    let (place, name) = (server.place(), "listens-once");
    let url = format!("{} application_name={name}", place.url());
    let (here, there) = (place.clone().through(&url).open(), place.open());
    let (tell, told) = mpsc::channel();
    let connections = || {
        let query = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_notify($1%'";
        server.query(&format!("{query} AND application_name = '{name}'"))
    };
    for _ in 0..3 {
        let tell = tell.clone();
        here.listen(Box::new(move |_| {
            tell.send(()).unwrap();
            ControlFlow::Break(())
        }));
        increment(&there);
        told.recv_timeout(Duration::from_secs(60)).unwrap();
        wait_until(|| connections() != ["0"]);
        thread::sleep(Duration::from_millis(300));
    }
    assert_eq!(connections(), ["1"]);
}

/// A network loses what is said on the connections that are there. One call finds that out.
#[test]
fn connections_that_have_gone_silent_fail_one_call() {
    let Some(server) = Server::shared() else { return };
    let proxy = Proxy::before(server.folder());
    // The server itself ends a transaction that nobody goes on with after fifty seconds.
    let soon = |options: &mut PostgresOptions| {
        options.timeout = Duration::from_secs(5);
        options.patience = Duration::ZERO;
    };
    let url = format!("{} application_name=silent", proxy.url());
    let store = server.place().through(&url).with(soon).open();
    let all = Barrier::new(2);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let read = store.read(&mut |_| {
                    all.wait();
                    Ok(())
                });
                read.unwrap();
            });
        }
    });
    wait_until_free(server, "silent", 2);
    proxy.silence();
    let failed = store.read(&mut |_| Ok(()));
    assert!(matches!(failed, Err(store::Error::Unavailable { .. })), "{failed:?}");
    increment(&store);
    assert_eq!(count(&store), 1);
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// What was acknowledged before the server crashed is there when it runs again, and calls that come
/// meanwhile wait for it.
#[test]
fn a_server_that_crashes_loses_nothing() {
    let Some(mut server) = Server::start() else { return };
    let place = server.place().with(patient);
    let stores: Vec<PostgresStore> = (0..PROCESSES).map(|_| place.open()).collect();
    let acknowledged = AtomicU64::new(0);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for store in &stores {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    increment(store);
                    acknowledged.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for _ in 0..2 {
            let before = acknowledged.load(Ordering::Relaxed);
            wait_until(|| acknowledged.load(Ordering::Relaxed) > before + 40);
            server.crash();
            thread::sleep(Duration::from_millis(200));
            server.run();
        }
        let before = acknowledged.load(Ordering::Relaxed);
        wait_until(|| acknowledged.load(Ordering::Relaxed) > before + 40);
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(count(&place.open()), acknowledged.into_inner());
}

/// Without a server, a call returns an error that says so, and the next one works when it is there.
#[test]
fn a_server_that_is_away_is_named() {
    let Some(mut server) = Server::start() else { return };
    let place = server.place().with(|options| options.patience = Duration::from_millis(300));
    let store = place.open();
    increment(&store);
    server.crash();
    let read = store.read(&mut |_| Ok(())).unwrap_err();
    let write = store.write(&mut |_| Ok(Decision::Commit)).unwrap_err();
    for error in [read, write] {
        assert!(matches!(error, store::Error::Unavailable { .. }), "{error:?}");
        assert!(error.is_retryable());
    }
    server.run();
    increment(&store);
    assert_eq!(count(&store), 2);
}

#[test]
fn calls_that_find_no_connection_say_so() {
    let Some(server) = Server::shared() else { return };
    let store = server.place().with(hasty).open();
    let mut inner = Ok(());
    let outer = store.read(&mut |_| {
        inner = store.read(&mut |_| Ok(()));
        // Writers do not wait for readers.
        increment(&store);
        Ok(())
    });
    outer.unwrap();
    let error = inner.unwrap_err();
    assert!(matches!(error, store::Error::Unavailable { .. }), "{error:?}");
    assert_eq!(count(&store), 1);
}

/// Readers that have connections wait for one that has a lock of the host, and has not asked the server
/// yet.
#[test]
fn a_reader_with_a_lock_gets_a_connection() {
    let Some(server) = Server::shared() else { return };
    let store = server.place().with(|options| options.connections = 4).open();
    let (lock, has_lock) = (Mutex::new(()), Barrier::new(3));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                has_lock.wait();
                // It may have to wait until the lock is free.
                _ = store.read(&mut |_| {
                    drop(lock.lock());
                    Ok(())
                });
            });
        }
        let mut runs = 0;
        let read = store.read_pure(&mut |view| {
            runs += 1;
            let _held = lock.lock();
            if runs == 1 {
                has_lock.wait();
                thread::sleep(Duration::from_millis(100));
            }
            view.get(TABLE, b"count", &mut |_| ()).map(drop)
        });
        read.unwrap();
        assert_eq!(runs, 1);
    });
}

/// A reader that asks alone, and has a lock of the host for which those wait that have all connections, does
/// not wait for one of them. Its body runs again when it has a connection.
#[test]
fn a_reader_with_a_lock_does_not_wait_for_a_connection() {
    let Some(server) = Server::shared() else { return };
    let waits = |options: &mut PostgresOptions| {
        options.connections = 4;
        options.timeout = Duration::from_secs(60);
    };
    let store = server.place().with(waits).open();
    let (lock, has_lock) = (Mutex::new(()), Barrier::new(3));
    let (admitted, mut start) = (AtomicUsize::new(0), Instant::now());
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                has_lock.wait();
                let read = store.read(&mut |_| {
                    admitted.fetch_add(1, Ordering::SeqCst);
                    drop(lock.lock());
                    Ok(())
                });
                read.unwrap();
            });
        }
        let mut runs = 0;
        let read = store.read_pure(&mut |view| {
            runs += 1;
            let _held = lock.lock();
            if runs == 1 {
                has_lock.wait();
                // A body runs when its reader may have a connection.
                wait_until(|| admitted.load(Ordering::SeqCst) == 2);
                start = Instant::now();
            }
            view.scan(TABLE, &(Unbounded, Unbounded), Order::Ascending, None, &mut |_, _| {
                ControlFlow::Continue(())
            })
        });
        read.unwrap();
        assert_eq!(runs, 2);
    });
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
}

/// A writer that takes too long fails others, and is made itself.
#[test]
fn a_writer_that_is_kept_waiting_says_so() {
    let Some(server) = Server::shared() else { return };
    let place = server.place();
    let (slow, hasty) = (place.open(), place.with(hasty).open());
    let mut kept = Ok(());
    put(&slow, &|tx| tx.put(TABLE, b"count", &1_u64.to_be_bytes()));
    let wrote = slow.write(&mut |tx| {
        crate::lock(tx, TABLE, b"count");
        tx.put(TABLE, b"count", &2_u64.to_be_bytes())?;
        kept = hasty.write(&mut |tx| tx.delete(TABLE, b"count").map(|()| Decision::Commit));
        Ok(Decision::Commit)
    });
    wrote.unwrap();
    let error = kept.unwrap_err();
    assert!(matches!(error, store::Error::Unavailable { .. }), "{error:?}");
    assert_eq!(count(&hasty), 2);
}

/// Their bodies read nothing, and the second one does not join the transaction of the first.
#[test]
fn writers_that_wait_for_a_lock_say_so_each() {
    let Some(server) = Server::shared() else { return };
    let place = server.place();
    let (slow, hasty) = (place.open(), place.with(hasty).open());
    let mut kept = Vec::new();
    let wrote = slow.write(&mut |tx| {
        crate::lock(tx, TABLE, b"count");
        kept = thread::scope(|threads| {
            let put = || {
                hasty.write(&mut |tx| {
                    tx.put(TABLE, b"count", &[7])?;
                    Ok(Decision::Commit)
                })
            };
            let writers = [0; 3].map(|_| threads.spawn(put));
            writers.map(|writer| writer.join().unwrap()).into()
        });
        Ok(Decision::Abort)
    });
    wrote.unwrap();
    for kept in kept {
        let error = kept.unwrap_err();
        assert!(matches!(error, store::Error::Unavailable { .. }), "{error:?}");
    }
}

/// The connection of a commit that gets no answer gives back its lock when the server goes on.
#[test]
fn a_server_that_hangs_keeps_no_lock() {
    let Some(server) = Server::start() else { return };
    let place = server.place();
    // The server itself ends a transaction that nobody goes on with after thirty seconds.
    let soon = |options: &mut PostgresOptions| {
        options.timeout = Duration::from_secs(10);
        options.patience = Duration::ZERO;
    };
    let (hangs, other) = (place.clone().with(hasty).open(), place.with(soon).open());
    let mut halted = Vec::new();
    let written = hangs.write(&mut |tx| {
        tx.put(TABLE, b"count", &7_u64.to_be_bytes())?;
        tx.get(TABLE, b"other", &mut |_| ())?;
        halted = server.halt_connections();
        Ok(Decision::Commit)
    });
    assert!(matches!(written, Err(store::Error::Unavailable { .. })), "{written:?}");
    server.resume_connections(&halted);
    // All or nothing.
    let before = count(&other);
    assert!([0, 7].contains(&before), "{before}");
    increment(&other);
    assert_eq!(count(&hangs), before + 1);
}

// On a busy machine, a call may need many tries.
fn patient(options: &mut PostgresOptions) {
    options.patience = Duration::from_secs(60);
}

fn hasty(options: &mut PostgresOptions) {
    options.connections = 2;
    options.timeout = Duration::from_secs(3);
    options.patience = Duration::ZERO;
}

/// Increments until connections were cut some times. Counts all increments that are `made`.
fn increment_among(store: &PostgresStore, made: &AtomicU64, cuts: &AtomicU64) {
    let mut own = 0;
    while own < ROUNDS || cuts.load(Ordering::SeqCst) < 8 {
        increment(store);
        own += 1;
        made.fetch_add(1, Ordering::SeqCst);
    }
}

fn increment(store: &PostgresStore) {
    let add = |tx: &mut dyn Transaction| {
        let mut count = 0_u64;
        tx.get(TABLE, b"count", &mut |bytes| count = number(bytes))?;
        tx.put(TABLE, b"count", &(count + 1).to_be_bytes())
    };
    put(store, &add);
}

fn put(store: &PostgresStore, change: &dyn Fn(&mut dyn Transaction) -> store::Result<()>) {
    store.write(&mut |tx| change(tx).map(|()| Decision::Commit)).unwrap();
}

fn set(store: &PostgresStore, key: u8) {
    put(store, &|tx| tx.put(TABLE, &[key], b"value"));
}

fn count(store: &PostgresStore) -> u64 {
    let mut count = 0;
    let read = store.read(&mut |snapshot| {
        snapshot.get(TABLE, b"count", &mut |bytes| count = number(bytes)).map(drop)
    });
    read.unwrap();
    count
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes.try_into().unwrap())
}
