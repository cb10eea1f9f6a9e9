//! Windows of digests whose end is in quarantine, since a record cannot be read.

use std::time::Duration;

use serde_json::json;
use store::Table;
use testkit::tables::{self, put};
use tidings::ids::{NotificationId, QuarantineId};
use tidings::quarantine::QuarantineQuery;

use super::{digest, run_at};
use crate::world::{World, on_both, only, say, with};

/// What becomes of the notification that has opened the window.
type Fate = fn(&World, NotificationId);

const STAYS: Fate = |_, _| {};
const CANCELED: Fate = |world, _| _ = world.env.events().cancel("t1").unwrap();
const DELETED: Fate = |world, id| world.env.notifications().delete(id).unwrap();

/// Does `work` while the first record of that table is damaged.
fn damaged(world: &World, table: Table, work: impl FnOnce()) {
    let (_, key, value) = tables::of(&world.store, table).swap_remove(0);
    put(&world.store, table, &key, Some(b"?"));
    work();
    put(&world.store, table, &key, Some(&value));
}

fn entry(world: &World) -> QuarantineId {
    only(world.engine.quarantine().list(&QuarantineQuery::default()).unwrap().data).id
}

fn event(world: &World, n: u64) -> NotificationId {
    let event = json!({ "name": "news", "to": "ada", "payload": { "n": n } });
    let event = with(event, json!({ "transactionId": format!("t{n}") }));
    only(world.trigger(event).notifications).notification_id
}

/// A window with two events, whose end a damaged subscriber has put into quarantine.
fn set_aside(world: &World) -> [NotificationId; 2] {
    world.bare_subscriber("ada");
    let minute = digest(json!({ "type": "regular", "amount": 1, "unit": "minutes" }));
    let said = "{{ total_count }}: {% for event in events %}{{ event.payload.n }} {% endfor %}";
    world.workflow_of("news", &[minute, say(said)]);
    let ids = [1, 2].map(|n| event(world, n));
    damaged(world, Table::Subscribers, || run_at(world, 60));
    assert_eq!(ids.map(|id| world.statuses(id)), [["delayed", "pending"], ["merged", "merged"]]);
    assert_eq!(world.engine.check().unwrap().findings, []);
    assert_eq!(world.engine.repair().unwrap().resumed, 0);
    ids
}

/// The end of a window is that of all its events, whatever has become of the first one.
#[test]
fn a_window_whose_end_is_put_back_closes_for_the_events_that_are_left() {
    for (fate, expected) in [(STAYS, "2: 1 2 "), (CANCELED, "1: 2 "), (DELETED, "1: 2 ")] {
        on_both(|world| {
            let [first, _] = set_aside(&world);
            fate(&world, first);

            world.engine.quarantine().requeue(entry(&world)).unwrap();
            run_at(&world, 61);

            assert_eq!(world.texts("ada"), [expected]);
            assert_eq!(world.engine.delivery().next_due().unwrap(), None);
            assert_eq!(world.engine.check().unwrap().findings, []);
        });
    }
}

/// A first event that has expired ends with the window, and the other one goes on.
#[test]
fn a_window_whose_end_is_put_back_goes_on_without_an_expired_event() {
    on_both(|world| {
        let minute = digest(json!({ "type": "regular", "amount": 1, "unit": "minutes" }));
        world.bare_subscriber("ada");
        world.workflow_of("news", &[minute, say("{{ total_count }} of {{ payload.n }}")]);
        let expires_at = world.now().after(Duration::from_secs(90));
        let ids = [Some(expires_at), None].map(|at| {
            let payload = json!({ "n": at.map_or(2, |_| 1) });
            let event = json!({ "name": "news", "to": "ada", "payload": payload, "expiresAt": at });
            only(world.trigger(event).notifications).notification_id
        });
        damaged(&world, Table::Subscribers, || run_at(&world, 60));
        run_at(&world, 90);

        world.engine.quarantine().requeue(entry(&world)).unwrap();
        run_at(&world, 91);

        assert_eq!(world.texts("ada"), ["1 of 2"]);
        assert_eq!(ids.map(|id| world.statuses(id)), [["skipped"; 2], ["completed"; 2]]);
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

/// A window without an event has nothing left to close for.
#[test]
fn the_end_of_a_window_without_events_is_not_put_back() {
    for (fate, reason) in
        [(CANCELED, "its job has ended in another way"), (DELETED, "its notification is gone")]
    {
        on_both(|world| {
            let [first, _] = set_aside(&world);
            world.env.events().cancel("t2").unwrap();
            fate(&world, first);
            let entry = entry(&world);
            let refusal = format!("400 the task is not put back into the queue: {reason}");
            world.refuses(&refusal, || world.engine.quarantine().requeue(entry));
            world.engine.quarantine().discard(entry).unwrap();
            assert_eq!(world.engine.check().unwrap().findings, []);
        });
    }
}

/// Nothing waits for a window whose end is discarded, and later events have another one.
#[test]
fn a_window_whose_end_is_discarded_fails_for_all_of_its_events() {
    let failed = || ["failed", "canceled"];
    for (fate, expected) in [
        (STAYS, [Some(failed()), Some(["merged"; 2])]),
        (CANCELED, [Some(["canceled"; 2]), Some(failed())]),
        (DELETED, [None, Some(failed())]),
    ] {
        on_both(|world| {
            let ids = set_aside(&world);
            fate(&world, ids[0]);

            world.engine.quarantine().discard(entry(&world)).unwrap();

            for (id, expected) in ids.into_iter().zip(expected) {
                let found = world.env.notifications().find(id).unwrap();
                assert_eq!(found.is_some(), expected.is_some());
                if let Some(expected) = expected {
                    assert_eq!(world.statuses(id), expected);
                    let is_told = world.log(id, 0).contains(&"record_unreadable".to_owned());
                    assert_eq!(is_told, expected == failed());
                }
            }
            assert_eq!(world.engine.check().unwrap().findings, []);
            assert_eq!(world.engine.repair().unwrap().resumed, 0);
            assert_eq!(world.engine.delivery().next_due().unwrap(), None);
            event(&world, 3);
            run_at(&world, 120);
            assert_eq!(world.texts("ada"), ["1: 3 "]);
        });
    }
}

/// An entry can be discarded while what it needs is damaged. A repair looks after the rest.
#[test]
fn an_end_is_discarded_also_if_its_window_cannot_be_read() {
    for table in [Table::Notifications, Table::DigestEvents, Table::Workflows] {
        on_both(|world| {
            set_aside(&world);
            let entry = entry(&world);
            damaged(&world, table, || world.engine.quarantine().discard(entry).unwrap());
            assert_eq!(world.engine.quarantine().find(entry).unwrap(), None);
            let _report = world.engine.repair().unwrap();
            run_at(&world, 61);
            assert_eq!(world.engine.check().unwrap().findings, []);
            assert_eq!(world.engine.delivery().next_due().unwrap(), None);
        });
    }
}
