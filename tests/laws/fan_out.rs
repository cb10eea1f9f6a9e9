//! Events with many recipients: whatever fails between, each recipient is told once.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use serde_json::json;
use store::Table;
use testkit::facade::restarted;
use testkit::interposed::{Interposed, Point};
use testkit::postgres::Server;
use testkit::scaled;
use testkit::tables::{Entry, check_indexes, dump, load, put, records};
use testkit::world::{World, in_app, only, workflow_of};
use tidings::notification::Notification;
use tidings::quarantine::QuarantineQuery;
use tidings::trigger::{ProgressStatus, Trigger};

use crate::parsed;

const CROWD: usize = 110;

// A world with an accepted event for a crowd in two topics.
static ACCEPTED: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let world = World::with(Interposed::default(), restarted(0));
    accept(&world, CROWD);
    dump(&world.store)
});

fn accept(world: &World, crowd: usize) {
    world.workflow(workflow_of("hi", &[in_app()]));
    let names: Vec<String> = (0..crowd).map(|number| format!("s{number}")).collect();
    for name in &names {
        world.bare_subscriber(name);
    }
    for (topic, some) in [("one", &names[..crowd * 3 / 4]), ("other", &names[crowd / 4..])] {
        for some in some.chunks(100) {
            let subscribe = parsed(json!({ "subscriptions": some }));
            assert_eq!(world.env.topics().subscribe(topic, &subscribe).unwrap().errors, []);
        }
    }
    let topic = |key: &str| json!({ "type": "Topic", "topicKey": key });
    let trigger: Trigger = parsed(json!({
        "name": "hi", "to": ["s3", "new", topic("one"), topic("other")], "transactionId": "t1",
    }));
    assert!(world.env.events().trigger(&trigger).unwrap().continues);
}

fn world_of(entries: &[Entry]) -> World {
    world_in(Interposed::default(), entries)
}

fn world_in(store: Interposed, entries: &[Entry]) -> World {
    load(&store, entries);
    World::with(store, restarted(1))
}

#[test]
fn a_crowd_is_told_once_each_whatever_fails() {
    let of_calls = (97 / scaled(1_usize)).max(1);
    a_crowd_is_told(of_calls, 1, Interposed::default);
}

#[test]
fn on_a_server_a_crowd_is_told_once_each_whatever_fails() {
    if let Some(server) = Server::wanted() {
        a_crowd_is_told(997, 3, || Interposed::new(server.place().open()));
    }
}

// Each `of_calls`th call fails, and each `of_transactions`th transaction.
fn a_crowd_is_told(of_calls: usize, of_transactions: usize, store: impl Fn() -> Interposed) {
    for (point, stride) in [
        (Point::Call, of_calls),
        (Point::Called, of_calls),
        (Point::Begin, of_transactions),
        (Point::Commit, of_transactions),
        (Point::Committed, of_transactions),
    ] {
        for after in (0..).step_by(stride) {
            let mut world = world_in(store(), &ACCEPTED);
            world.store.stop(point, after);
            let stopped = world.engine.delivery().run_due(usize::MAX);
            let has_failed = world.store.recover();
            assert_eq!(stopped.is_err(), has_failed, "{point:?} {after}");
            world.restart_with(restarted(2));
            // Leases are over.
            world.clock.advance(Duration::from_secs(1_000));
            world.engine.delivery().run_due(usize::MAX).unwrap();
            check(&world, CROWD);
            if !has_failed {
                break;
            }
        }
    }
}

/// A holder of a lease that is over does nothing, whatever it has planned.
#[test]
fn a_crowd_is_told_once_each_by_several_workers() {
    told_by_several_workers(Interposed::default);
    told_by_several_workers(|| Interposed::default().side_by_side());
}

#[test]
fn on_a_server_a_crowd_is_told_once_each_by_several_workers() {
    if let Some(server) = Server::wanted() {
        told_by_several_workers(|| Interposed::new(server.place().open()));
    }
}

fn told_by_several_workers(store: impl Fn() -> Interposed) {
    for pause in 0..6 {
        let world = world_in(store(), &ACCEPTED);
        let (other, clock) = (world.another_engine(), world.clock.clone());
        world.store.pause(Point::Begin, pause, move || {
            clock.advance(Duration::from_secs(1_000));
            other.delivery().run_due(usize::MAX).unwrap();
        });
        world.engine.delivery().run_due(usize::MAX).unwrap();
        world.clock.advance(Duration::from_secs(1_000));
        world.engine.delivery().run_due(usize::MAX).unwrap();
        check(&world, CROWD);
    }
}

#[test]
fn a_large_crowd_is_told_once_each() {
    let crowd = scaled(1_000);
    let world = World::in_memory();
    accept(&world, crowd);
    world.engine.delivery().run_due(usize::MAX).unwrap();
    check(&world, crowd);
}

/// The task of an event whose record or state cannot be read goes into quarantine, and other tasks go
/// on. When the record is whole again and the task is put back, each recipient is told once.
#[test]
fn a_crowd_is_told_once_each_after_a_repair() {
    for table in [Table::FanOuts, Table::FanOutStates] {
        for chunks in [0, 1] {
            for ruin in [b"?".as_slice(), b"", b"\x01{}"] {
                let world = world_of(&ACCEPTED);
                world.engine.delivery().run_due(chunks).unwrap();
                let all = dump(&world.store);
                let (_, key, sound) = all.iter().find(|(of, ..)| *of == table).unwrap();
                put(&world.store, table, key, Some(ruin));

                let report = world.engine.delivery().run_due(usize::MAX).unwrap();

                assert_eq!((report.quarantined, report.created), (1, 0));
                assert_eq!(world.engine.delivery().next_due().unwrap(), None);
                let entry =
                    only(world.engine.quarantine().list(&QuarantineQuery::default()).unwrap().data);
                assert_eq!(entry.table, table.name());
                assert_eq!(entry.task.as_ref().unwrap()["work"]["type"], "fan_out");
                let progress = world.env.events().progress("t1");
                assert_eq!(progress.is_err(), table == Table::FanOutStates);
                put(&world.store, table, key, Some(sound));
                world.engine.quarantine().requeue(entry.id).unwrap();
                world.engine.delivery().run_due(usize::MAX).unwrap();
                check(&world, CROWD);
            }
        }
    }
}

/// An event stays canceled when the record of its cancellation cannot be read: the key is what
/// counts. Calls that need the record name its table.
#[test]
fn a_canceled_crowd_stays_canceled_after_damage() {
    for ruin in [b"?".as_slice(), b"", b"\x01{}"] {
        let world = world_of(&ACCEPTED);
        world.env.events().cancel("t1").unwrap();
        let all = dump(&world.store);
        let table = Table::CanceledTriggers;
        let (_, key, _) = all.iter().find(|(of, ..)| *of == table).unwrap();
        put(&world.store, table, key, Some(ruin));

        let report = world.engine.delivery().run_due(usize::MAX).unwrap();

        assert_eq!((report.created, report.quarantined), (0, 0));
        let events = world.env.events();
        for error in [events.cancel("t1").unwrap_err(), events.progress("t1").unwrap_err()] {
            assert_eq!(error.to_string(), "record in table `canceled_triggers` is not readable");
        }
        let findings = world.engine.check().unwrap().findings;
        assert!(findings.len() == 1 && findings[0].to_string().starts_with("canceled_triggers"));
        // It goes with the event.
        world.clock.advance(Duration::from_secs(1));
        world.env.notifications().delete_before(world.now()).unwrap();
        check_indexes(&world.store);
    }
}

// Everybody has one notification and one message, nothing is left to do, and the indexes agree.
#[track_caller]
fn check(world: &World, crowd: usize) {
    let mut told = BTreeMap::<_, usize>::new();
    for notification in records::<Notification>(&world.store) {
        *told.entry(notification.subscriber_id).or_default() += 1;
    }
    assert_eq!(told.len(), crowd + 1);
    assert!(told.values().all(|count| *count == 1), "somebody was told twice");
    let progress = world.env.events().progress("t1").unwrap();
    let expected = (ProgressStatus::Completed, crowd as u64 + 1);
    assert_eq!((progress.status, progress.created), expected);
    assert_eq!(world.engine.delivery().next_due().unwrap(), None);
    check_indexes(&world.store);
}
