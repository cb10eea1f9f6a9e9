//! Workers: threads that send what is due, until they are stopped.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use store::{Decision, Store, Table};
use testkit::interposed::Point;
use testkit::tables;
use testkit::waiting::{PATIENCE, wait_until};
use tidings::time::Timestamp;
use tidings::{
    Builder, Clock, Delivery, Engine, Provider, ProviderReceipt, SystemClock, Worker, WorkerError,
};

use super::{Told, crowd, queued_email};
use crate::world::{World, email, on_both, parsed};

/// An engine on the store of `world` whose clock goes by itself.
fn running(world: &World, configure: impl FnOnce(Builder) -> Builder) -> Engine {
    world.engine_with(|builder| configure(builder.clock(SystemClock)))
}

#[test]
fn a_worker_sends_what_is_due_and_what_comes() {
    on_both(|world| {
        queued_email(&world);
        let engine = running(&world, |builder| builder);
        let worker = engine.worker().threads(3).start().unwrap();
        wait_until(|| world.recorder.sent().len() == 1);

        let env = engine.environment(world.env.environment_id()).unwrap();
        let trigger = parsed(json!({ "name": "mail", "to": crowd(50) }));
        env.events().trigger(&trigger).unwrap();
        wait_until(|| world.recorder.sent().len() == 51);
        wait_until(|| worker.report().delivery.sent == 51);

        let report = worker.stop(PATIENCE);
        assert_eq!((report.errors, report.last_error, report.running), (0, None, 0));
        assert_eq!(engine.delivery().next_due().unwrap(), None);
    });
}

#[test]
fn a_stopped_worker_sends_nothing() {
    on_both(|world| {
        let engine = running(&world, |builder| builder);
        drop(engine.worker().threads(2).start().unwrap());
        queued_email(&world);
        assert_eq!(engine.delivery().run_due(10).unwrap().sent, 1);
    });
}

#[test]
fn the_file_of_an_engine_whose_worker_has_stopped_can_be_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.redb");
    for _ in 0..20 {
        let engine = Engine::open(&path).unwrap();
        let worker = engine.worker().threads(4).start().unwrap();
        drop(engine);
        let report = worker.stop(PATIENCE);
        assert_eq!((report.running, report.last_error), (0, None));
    }
}

#[test]
fn a_manual_clock_is_refused() {
    let world = World::in_memory();
    let refused = world.engine.worker().start().unwrap_err();
    assert!(matches!(refused, WorkerError::ManualClock), "{refused}");
}

#[test]
fn a_worker_survives_a_store_that_fails_for_a_time() {
    on_both(|world| {
        queued_email(&world);
        let engine = running(&world, |builder| builder);
        world.store.stop(Point::Write, 0);
        let worker = engine.worker().start().unwrap();
        wait_until(|| worker.report().errors > 2);
        assert!(worker.report().last_error.is_some());

        world.store.recover();
        wait_until(|| world.recorder.sent().len() == 1);
        assert_eq!(worker.stop(PATIENCE).running, 0);
    });
}

/// A clock that panics when it is told to.
#[derive(Clone, Debug, Default)]
struct Fragile(Arc<AtomicBool>);

impl Clock for Fragile {
    fn now(&self) -> Timestamp {
        assert!(!self.0.load(Ordering::SeqCst), "the clock is broken");
        SystemClock.now()
    }
}

#[test]
fn a_worker_survives_panics_of_the_host() {
    on_both(|world| {
        queued_email(&world);
        let clock = Fragile::default();
        let engine = world.engine_with(|builder| builder.clock(clock.clone()));
        clock.0.store(true, Ordering::SeqCst);
        let worker = engine.worker().start().unwrap();
        wait_until(|| worker.report().errors > 0);
        assert_eq!(worker.report().last_error.unwrap(), "the host's code panicked");

        clock.0.store(false, Ordering::SeqCst);
        wait_until(|| world.recorder.sent().len() == 1);
        assert_eq!(worker.stop(PATIENCE).running, 0);
    });
}

#[test]
fn what_was_claimed_and_not_begun_is_given_back() {
    on_both(|world| {
        world.active_integration("email", "sendgrid");
        world.workflow_of("mail", &[email()]);
        world.trigger(json!({ "name": "mail", "to": crowd(100) }));
        let (entered, entries) = channel();
        let (leave, exit) = channel::<()>();
        let exit = Mutex::new(exit);
        let calls = AtomicUsize::new(0);
        let provider = Told(move |_: &Delivery| {
            // By then, a claim takes several.
            if calls.fetch_add(1, Ordering::SeqCst) == 20 {
                entered.send(()).unwrap();
                exit.lock().unwrap().recv().unwrap();
            }
            Ok(ProviderReceipt::default())
        });
        let engine = running(&world, |builder| builder.default_provider(provider));
        let worker = engine.worker().start().unwrap();
        entries.recv_timeout(PATIENCE).unwrap();

        let report = worker.stop(Duration::ZERO);
        assert_eq!(report.running, 1);
        leave.send(()).unwrap();
        let depth = || engine.delivery().stats().unwrap().total();
        wait_until(|| depth().leased == 0);

        assert_eq!(depth().waiting, 79);
        assert_eq!(engine.delivery().run_due(1_000).unwrap().sent, 79);
    });
}

/// A provider that stops its own worker does not wait for itself.
#[test]
fn a_worker_is_stopped_by_its_own_provider() {
    on_both(|world| {
        queued_email(&world);
        let worker = Arc::new(Mutex::new(None::<Worker>));
        let (sender, stopped) = channel();
        let own = Arc::clone(&worker);
        let provider = Told(move |_: &Delivery| {
            wait_until(|| own.lock().unwrap().is_some());
            let worker = own.lock().unwrap().take().unwrap();
            sender.send(worker.stop(Duration::MAX).running).unwrap();
            Ok(ProviderReceipt::default())
        });
        let engine = running(&world, |builder| builder.default_provider(provider));
        *worker.lock().unwrap() = Some(engine.worker().threads(3).start().unwrap());
        assert_eq!(stopped.recv_timeout(PATIENCE), Ok(1));
    });
}

#[test]
fn calls_of_a_provider_at_once_are_limited() {
    on_both(|world| {
        world.active_integration("email", "sendgrid");
        world.workflow_of("mail", &[email()]);
        world.trigger(json!({ "name": "mail", "to": crowd(30) }));
        let (now, most) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
        let (seen, recorder) = (Arc::clone(&most), world.recorder.clone());
        let provider = Told(move |delivery: &Delivery| {
            seen.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            thread::sleep(Duration::from_millis(3));
            // The first call waits for a second one, if there ever is one.
            let patience = Instant::now() + PATIENCE;
            while seen.load(Ordering::SeqCst) < 2 && Instant::now() < patience {
                thread::yield_now();
            }
            now.fetch_sub(1, Ordering::SeqCst);
            recorder.send(delivery)
        });
        let engine = running(&world, |builder| {
            builder.default_provider(provider).max_concurrent("sendgrid", 2)
        });
        let worker = engine.worker().threads(6).start().unwrap();
        wait_until(|| world.recorder.sent().len() == 30);
        assert_eq!(most.load(Ordering::SeqCst), 2);
        assert_eq!(worker.stop(PATIENCE).errors, 0);
    });
}

#[test]
fn a_worker_does_the_upkeep_of_the_index() {
    on_both(|world| {
        world.in_app_workflow("inbox");
        let engine = running(&world, |builder| builder.activity_segments(16));
        let env = engine.environment(world.env.environment_id()).unwrap();
        let worker = engine.worker().start().unwrap();
        for _ in 0..17 {
            env.events().trigger(&parsed(json!({ "name": "inbox", "to": "ada" }))).unwrap();
        }
        wait_until(|| world.rows(Table::ActivitySegments) > 0);
        let report = worker.stop(PATIENCE);
        assert_eq!((report.errors, report.running), (0, 0));
        assert_eq!(engine.delivery().stats().unwrap().upkeep_error, None);
    });
}

/// The merge of sealed segments reads all of them. A worker makes the index anew where it finds damage.
#[test]
fn a_worker_makes_a_damaged_index_anew() {
    on_both(|world| {
        world.in_app_workflow("inbox");
        let segments = |builder: Builder| builder.activity_segments(16);
        let trigger = parsed(json!({ "name": "inbox", "to": "ada" }));
        let has = |wanted: Table| world.rows(wanted) > 0;
        let env = running(&world, segments).environment(world.env.environment_id()).unwrap();
        for _ in 0..33 {
            env.events().trigger(&trigger).unwrap();
        }
        let damaged = tables::of(&world.store, Table::ActivitySegments);
        assert!(!damaged.is_empty() && !has(Table::ActivityMerged));
        for (table, key, value) in damaged {
            world
                .store
                .write(&mut |txn| {
                    txn.put(table, &key, &value[..value.len() / 2]).map(|()| Decision::Commit)
                })
                .unwrap();
        }

        let engine = running(&world, segments);
        let env = engine.environment(world.env.environment_id()).unwrap();
        let worker = engine.worker().start().unwrap();
        for _ in 0..33 {
            env.events().trigger(&trigger).unwrap();
        }
        wait_until(|| has(Table::ActivityMerged));
        let report = worker.stop(PATIENCE);
        assert_eq!((report.errors, report.last_error), (0, None));
        assert_eq!(engine.delivery().stats().unwrap().upkeep_error, None);
        assert!(env.notifications().check_index().unwrap().disagreements.is_empty());
    });
}
