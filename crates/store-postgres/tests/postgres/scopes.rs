//! Transactions that stay within an environment: those of others do not wait for them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use serde_json::json;
use store::{Decision, Snapshot, Store, Table, Transaction, WriteScope};
use testkit::interposed::Interposed;
use testkit::postgres::Server;
use testkit::wait_until;
use testkit::world::{World, email};
use tidings_store_postgres::{PostgresOptions, PostgresStore};
use uuid::Uuid;

const TABLE: Table = Table::Subscribers;
const PROCESSES: u64 = 4;

/// Environments whose heads differ.
const ENVIRONMENTS: [u128; 2] = [1, 2];

/// A timeout that is longer than what is waited for.
const LONG: Duration = Duration::from_secs(60);

#[test]
fn a_writer_waits_for_those_of_its_environment_only() {
    let Some(server) = Server::shared() else { return };
    let place = server.place();
    let (slow, patient) = (place.open(), place.open());
    let hasty = place.with(hasty).open();
    let [here, there] = ENVIRONMENTS;
    let mut kept = Vec::new();
    let wrote = slow.write_within(scope(here), &mut |tx| {
        add(tx, here, 1)?;
        let mut within = |store: &PostgresStore, scope| {
            kept.push(store.write_within(scope, &mut |tx| {
                add(tx, there, 1)?;
                Ok(Decision::Commit)
            }));
        };
        within(&patient, scope(there));
        within(&hasty, WriteScope::Everything);
        // A body that leaves its scope waits as well.
        within(&hasty, scope(3));
        kept.push(hasty.write_within(scope(here), &mut |_| Ok(Decision::Commit)));
        Ok(Decision::Commit)
    });
    wrote.unwrap();
    let kept: Vec<bool> = kept.iter().map(Result::is_ok).collect();
    assert_eq!(kept, [true, false, false, false]);
    assert_eq!(amounts(&slow), [1, 1]);
}

/// A process whose writers wait for an environment that another process holds writes to others meanwhile,
/// whether those writers have asked for the lock, or commit what they have taken for right.
#[test]
fn writers_that_wait_for_an_environment_hold_up_no_others() {
    const CALLERS: u64 = 8;
    let Some(server) = Server::shared() else { return };
    for commits_before in [0, 8] {
        let place = server.place().with(|options| options.timeout = LONG);
        let (holder, store) = (place.open(), place.open());
        let [here, there] = ENVIRONMENTS;
        let added = AtomicU64::new(0);
        let add_one = |environment| {
            let wrote = store.write_within(scope(environment), &mut |tx| {
                add(tx, environment, 1)?;
                added.fetch_add(1, Ordering::SeqCst);
                Ok(Decision::Commit)
            });
            wrote.unwrap();
        };
        (0..commits_before).for_each(|_| add_one(here));
        let (tell, told) = mpsc::channel();
        thread::scope(|threads| {
            let held = holder.write_within(scope(here), &mut |tx| {
                crate::lock(tx, TABLE, &here.to_be_bytes());
                for _ in 0..CALLERS {
                    threads.spawn(|| add_one(here));
                }
                // Each of them waits for its turn, or for the commit of what it has added.
                wait_until(|| {
                    let (waiting, added) = (store.waiting() as u64, added.load(Ordering::SeqCst));
                    waiting > 0 && waiting + added >= commits_before + CALLERS
                });
                for _ in 0..CALLERS {
                    let tell = tell.clone();
                    threads.spawn(move || {
                        add_one(there);
                        tell.send(()).unwrap();
                    });
                }
                let soon = Duration::from_secs(30);
                let written = (0..CALLERS).filter(|_| told.recv_timeout(soon).is_ok()).count();
                assert_eq!(written as u64, CALLERS, "behind {commits_before} commits");
                Ok(Decision::Abort)
            });
            held.unwrap();
        });
        assert_eq!(amounts(&store), [commits_before + CALLERS, CALLERS]);
    }
}

/// Callers who wait for an environment share transactions of about a mebibyte.
#[test]
fn large_changes_of_several_callers_are_several_transactions() {
    const CALLERS: usize = 8;
    const SIZE: usize = 400 << 10;
    let Some(server) = Server::shared() else { return };
    let place = server.place().with(|options| options.timeout = LONG);
    let (holder, store) = (place.open(), place.open());
    let [here, _] = ENVIRONMENTS;
    thread::scope(|threads| {
        let held = holder.write_within(scope(here), &mut |tx| {
            crate::lock(tx, TABLE, &here.to_be_bytes());
            for caller in 0..CALLERS {
                let store = &store;
                threads.spawn(move || {
                    let put = store.write_within(scope(here), &mut |tx| {
                        let key = [&here.to_be_bytes()[..], &caller.to_be_bytes()].concat();
                        tx.put(TABLE, &key, &vec![7; SIZE])?;
                        Ok(Decision::Commit)
                    });
                    put.unwrap();
                });
            }
            wait_until(|| store.waiting() == CALLERS);
            Ok(Decision::Abort)
        });
        held.unwrap();
    });
    let entries = format!("\"{}\".tidings_entries", place.schema());
    let callers = server.query(&format!("SELECT count(*) FROM {entries} GROUP BY xmin::text"));
    let callers: Vec<usize> = callers.iter().map(|callers| callers.parse().unwrap()).collect();
    assert_eq!((callers.iter().sum(), callers.iter().max()), (CALLERS, Some(&3)), "{callers:?}");
}

/// Many environments are held, and readers have connections all the same.
#[test]
fn writers_that_wait_leave_connections_to_readers() {
    let Some(server) = Server::shared() else { return };
    let place = server.place().with(|options| options.timeout = LONG);
    let (holder, store) = (place.open(), place.open());
    let (tell, told) = mpsc::channel();
    thread::scope(|threads| {
        let held = holder.write(&mut |tx| {
            crate::lock(tx, TABLE, b"any");
            for environment in 1..=16 {
                let store = &store;
                threads.spawn(move || {
                    let added = store.write_within(scope(environment), &mut |tx| {
                        add(tx, environment, 1)?;
                        Ok(Decision::Commit)
                    });
                    added.unwrap();
                });
            }
            wait_until(|| store.waiting() == 16);
            threads.spawn(|| {
                amounts(&store);
                tell.send(()).unwrap();
            });
            told.recv_timeout(Duration::from_secs(30)).unwrap();
            Ok(Decision::Abort)
        });
        held.unwrap();
    });
    assert_eq!(amounts(&store), [1, 1]);
}

/// A worker delivers for an environment while another one is locked.
#[test]
fn a_claim_waits_for_its_environment_only() {
    let Some(server) = Server::shared() else { return };
    let place = server.place();
    let slow = place.open();
    let steady = |options: &mut PostgresOptions| {
        options.timeout = Duration::from_secs(5);
        options.patience = Duration::ZERO;
    };
    let store = Interposed::over(Arc::new(place.with(steady).open()));
    let mut world = World::with(store, |builder| builder);
    let elsewhere = scope(Uuid::from(world.env.environment_id()).as_u128());
    world.env = world.production();
    world.workflow_of("mail", &[email()]);
    world.active_integration("email", "sendgrid");
    world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
    world.notify("mail", "ada");
    let mut sent = 0;
    let wrote = slow.write_within(elsewhere, &mut |_| {
        sent = world.engine.delivery().run_due(10).unwrap().sent;
        Ok(Decision::Abort)
    });
    wrote.unwrap();
    assert_eq!(sent, 1);
}

/// Whatever a body declares, no change is lost.
#[test]
fn a_body_that_leaves_its_scope_is_alone() {
    let Some(server) = Server::shared() else { return };
    let place = server.place();
    let runs = AtomicU64::new(0);
    thread::scope(|threads| {
        for _ in 0..PROCESSES {
            let (store, runs) = (place.open(), &runs);
            threads.spawn(move || {
                for round in 0..25 {
                    let [one, other] = ENVIRONMENTS;
                    // Every second body changes what it has not declared.
                    let declared = if round % 2 == 0 { one } else { other };
                    let result = store.write_within(scope(declared), &mut |tx| {
                        runs.fetch_add(1, Ordering::Relaxed);
                        // The body takes no notice of the refusal.
                        drop(add(tx, one, 1));
                        Ok(Decision::Commit)
                    });
                    result.unwrap();
                }
            });
        }
    });
    assert_eq!(amounts(&place.open()), [PROCESSES * 25, 0]);
    assert!(runs.into_inner() >= PROCESSES * 37);
}

/// Callers of one process that touch one environment or both: each of them reads what it has added.
#[test]
fn writers_of_one_process_with_different_scopes_lose_nothing() {
    const ROUNDS: u64 = 40;
    let Some(server) = Server::shared() else { return };
    let place = server.place();
    let stores = [place.open(), place.open()];
    let [one, other] = ENVIRONMENTS;
    let add_to = |store: &PostgresStore, scope, own: &[u8]| {
        for round in 0..ROUNDS {
            let added = store.write_within(scope, &mut |tx| {
                add(tx, one, 1)?;
                if scope == WriteScope::Everything {
                    add(tx, other, 1)?;
                }
                let own = [&one.to_be_bytes()[..], own].concat();
                tx.put(TABLE, &own, &round.to_be_bytes())?;
                Ok(Decision::Commit)
            });
            added.unwrap();
            let mut seen = None;
            let read = store.read_pure(&mut |view| {
                let own = [&one.to_be_bytes()[..], own].concat();
                view.get(TABLE, &own, &mut |bytes| seen = Some(bytes.to_vec())).map(drop)
            });
            read.unwrap();
            assert_eq!(seen, Some(round.to_be_bytes().to_vec()));
        }
    };
    thread::scope(|threads| {
        for (at, store) in (0_u8..).zip(&stores) {
            for caller in 0..3 {
                let scope = if caller == 0 { WriteScope::Everything } else { scope(one) };
                threads.spawn(move || add_to(store, scope, &[at, caller]));
            }
        }
    });
    for store in &stores {
        assert_eq!(amounts(store), [ROUNDS * 6, ROUNDS * 2]);
    }
}

/// A reader that begins after a commit sees it, whichever environments it has changed, and whatever
/// it has in memory.
#[test]
fn commits_of_several_environments_are_seen() {
    let Some(server) = Server::shared() else { return };
    let place = server.place();
    let stores: Vec<PostgresStore> = (0..2).map(|_| place.open()).collect();
    let mut expected = [0, 0];
    for round in 0..200_usize {
        let (writer, reader) = (&stores[round / 3 % 2], &stores[(round / 3 + 1) % 2]);
        let touched = if round % 5 == 0 { &[0, 1][..] } else { &[round % 2][..] };
        let scope = match touched {
            [one] => scope(ENVIRONMENTS[*one]),
            _ => WriteScope::Everything,
        };
        let wrote = writer.write_within(scope, &mut |tx| {
            touched.iter().try_for_each(|at| add(tx, ENVIRONMENTS[*at], 1))?;
            Ok(Decision::Commit)
        });
        wrote.unwrap();
        for at in touched {
            expected[*at] += 1;
        }
        assert_eq!(amounts(reader), expected);
        assert_eq!(amounts(reader), expected);
    }
}

/// Readers see all changes of a transaction that touches two environments, or none, while others
/// change each of them.
#[test]
fn readers_see_transactions_as_a_whole() {
    let Some(server) = Server::shared() else { return };
    let place = server.place();
    let [one, other] = ENVIRONMENTS;
    let first = place.open();
    let fill = first.write(&mut |tx| {
        add(tx, one, 1_000)?;
        Ok(Decision::Commit)
    });
    fill.unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|threads| {
        let movers: Vec<_> = (0..PROCESSES)
            .map(|_| {
                let store = place.open();
                threads.spawn(move || (0..25).for_each(|_| move_one(&store, one, other)))
            })
            .collect();
        let (reader, is_over) = (place.open(), &is_over);
        threads.spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                assert_eq!(amounts(&reader).iter().sum::<u64>(), 1_000);
            }
        });
        for mover in movers {
            mover.join().unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(amounts(&first), [1_000 - PROCESSES * 25, PROCESSES * 25]);
}

/// Moves one from an environment to another, and leaves a mark in each.
fn move_one(store: &PostgresStore, from: u128, to: u128) {
    let moved = store.write(&mut |tx| {
        let amount = amount(tx, from)?;
        tx.put(TABLE, &key(from), &(amount - 1).to_be_bytes())?;
        add(tx, to, 1)?;
        Ok(Decision::Commit)
    });
    moved.unwrap();
    for environment in [from, to] {
        let touched = store.write_within(scope(environment), &mut |tx| {
            add(tx, environment, 0)?;
            Ok(Decision::Commit)
        });
        touched.unwrap();
    }
}

fn scope(environment: u128) -> WriteScope {
    WriteScope::Environment(Uuid::from_u128(environment).into())
}

fn key(environment: u128) -> Vec<u8> {
    [&environment.to_be_bytes()[..], b"amount"].concat()
}

fn amount(at: &(impl Snapshot + ?Sized), environment: u128) -> store::Result<u64> {
    let mut amount = 0;
    at.get(TABLE, &key(environment), &mut |bytes| {
        amount = u64::from_be_bytes(bytes.try_into().unwrap());
    })?;
    Ok(amount)
}

fn add(tx: &mut dyn Transaction, environment: u128, more: u64) -> store::Result<()> {
    let amount = amount(tx, environment)? + more;
    tx.put(TABLE, &key(environment), &amount.to_be_bytes())
}

fn amounts(store: &PostgresStore) -> [u64; 2] {
    let mut amounts = [0; 2];
    let read = store.read(&mut |snapshot| {
        for (found, environment) in amounts.iter_mut().zip(ENVIRONMENTS) {
            *found = amount(snapshot, environment)?;
        }
        Ok(())
    });
    read.unwrap();
    amounts
}

fn hasty(options: &mut PostgresOptions) {
    options.timeout = Duration::from_millis(300);
    options.patience = Duration::ZERO;
}
