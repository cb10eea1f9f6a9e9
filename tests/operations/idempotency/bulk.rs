//! Bulks of more events than one transaction takes.

use std::collections::BTreeSet;

use domain::idempotency::StoredAnswer;
use serde_json::{Value, json};
use store::Table;
use testkit::interposed::Point;
use tidings::trigger::{Trigger, TriggerReceipt, TriggerStatus};
use tidings::{Scope, SeededEntropy};

use crate::world::{World, id, in_app, names, on_both, only, parsed, wire, with, workflow_of};

/// A transaction takes five of these events.
const RECIPIENTS: usize = 100;

#[test]
fn a_bulk_that_is_interrupted_goes_on_behind_the_events_that_have_happened() {
    on_both(|world| {
        let once = begin(&world);
        let events: Vec<_> = (0..12).map(|_| event(json!({}))).collect();

        // The first transaction of each call is that of the ids.
        for (writes, happened) in [(1, 0), (2, 5), (2, 10)] {
            let error = world.interrupted(writes, || trigger(&once, &events)).unwrap_err();
            assert_eq!((error.status(), world.rows(Table::StoredAnswers)), (500, 1));
            assert_eq!(told(&world), happened);
        }
        let receipts = trigger(&once, &events).unwrap();

        assert_eq!((told(&world), world.rows(Table::StoredAnswers)), (12, 1));
        let made = |receipt: &TriggerReceipt| {
            let query = json!({ "transactionId": receipt.transaction_id });
            world.env.notifications().count(&parsed(query)).unwrap()
        };
        assert!(receipts.iter().all(|receipt| made(receipt) == RECIPIENTS as u64));
        let ids = names(&receipts, |receipt| receipt.transaction_id.clone());
        assert_eq!(BTreeSet::from_iter(ids).len(), 12);
        // The answer is repeated.
        assert_eq!(trigger(&once, &events).unwrap(), receipts);
        assert_eq!(trigger(&once, &events[1..]).unwrap_err().status(), 409);
        assert_eq!(told(&world), 12);
    });
}

/// What is left fits into one transaction, so that its events would need no ids.
#[test]
fn the_rest_of_a_bulk_has_the_ids_that_it_was_begun_with() {
    on_both(|world| {
        let once = begin(&world);
        let named = |at: usize| match at {
            1..=4 => json!({ "transactionId": format!("t{at}") }),
            _ => json!({}),
        };
        let events: Vec<_> = (0..7).map(|at| event(named(at))).collect();

        world.interrupted(2, || trigger(&once, &events)).unwrap_err();
        assert_eq!(told(&world), 5);
        let receipts = trigger(&once, &events).unwrap();

        assert_eq!((receipts.len(), told(&world)), (7, 7));
    });
}

/// An equal call of another thread is made as a whole between two transactions.
#[test]
fn equal_bulks_at_the_same_time_happen_once() {
    for after in 0..4 {
        on_both(|world| {
            let once = begin(&world);
            let events: Vec<_> = (0..6).map(|_| event(json!({}))).collect();
            let other = (once.clone(), events.clone());
            let meanwhile = move || drop(trigger(&other.0, &other.1).unwrap());
            world.store.pause(Point::Write, after, meanwhile);

            let receipts = trigger(&once, &events).unwrap();

            assert_eq!((told(&world), world.rows(Table::StoredAnswers)), (6, 1), "{after}");
            assert_eq!(trigger(&once, &events).unwrap(), receipts);
        });
    }
}

/// One row per erasure of ada: the recipients of the first event, the transactions of a call before that was
/// interrupted, those of this call before the erasure, and who is named.
#[test]
fn the_answer_of_a_bulk_does_not_name_who_was_erased_before_its_end() {
    for (to, interrupted, erased, named) in [
        // The ids, the first events, and the others.
        (&["ada", "bob"][..], None, 2, &["bob"][..]),
        // The first events have happened in an earlier call, and are read before the erasure.
        (&["ada", "bob"], Some(2), 1, &["bob"]),
        (&["ada"], None, 2, &[]),
    ] {
        on_both(|world| {
            let once = begin(&world);
            let mut events: Vec<_> = (0..7).map(|_| event(json!({}))).collect();
            events[0] = event(json!({ "to": to }));
            if let Some(after) = interrupted {
                world.interrupted(after, || trigger(&once, &events)).unwrap_err();
            }
            let env = world.env.clone();
            let erase = move || assert!(env.subscribers().erase("ada").unwrap().is_finished);
            world.store.pause(Point::Write, erased, erase);

            let receipts = trigger(&once, &events).unwrap();

            let told = names(&receipts[0].notifications, |made| made.subscriber_id.clone());
            assert_eq!(receipts.len(), 7);
            assert_eq!(told, named);
            let stored = wire(only(world.records::<StoredAnswer>()));
            assert!(!stored.to_string().contains("\"ada\""));
        });
    }
}

/// The first event has no effect, and so the transaction id is that of the last one.
#[test]
fn the_answer_of_a_bulk_has_the_receipt_of_each_event() {
    on_both(|world| {
        let once = begin(&world);
        let off = with(workflow_of("off", &[in_app()]), json!({ "active": false }));
        world.workflow(off);
        let mut events: Vec<_> = (0..7).map(|_| event(json!({}))).collect();
        events[0] = event(json!({ "name": "off", "transactionId": "t" }));
        events[6] = event(json!({ "transactionId": "t" }));

        let receipts = trigger(&once, &events).unwrap();

        let statuses = [receipts[0].status, receipts[6].status];
        assert_eq!(statuses, [TriggerStatus::TriggerNotActive, TriggerStatus::Processed]);
    });
}

/// Two engines with the same seed make the same id for a new subscriber of the last event. The repeated
/// call makes another one.
#[test]
fn a_bulk_goes_on_behind_a_conflict() {
    on_both(|world| {
        begin(&world);
        let scope = |key| {
            let engine = world.engine_with(|builder| builder.entropy(SeededEntropy::new(99)));
            let scope = engine.environment(world.env.environment_id()).unwrap();
            scope.idempotent(key).unwrap()
        };
        let events = |new: &str| -> Vec<_> {
            let named = |at| event(json!({ "transactionId": format!("{new} {at}") }));
            let last = event(json!({ "to": [new], "transactionId": new }));
            (0..5).map(named).chain([last]).collect()
        };
        trigger(&world.env, &events("ada")[..1]).unwrap();
        let (one, other) = (scope("one"), scope("other"));
        trigger(&one, &events("bob")).unwrap();

        assert_eq!(trigger(&other, &events("cyd")).unwrap_err().status(), 409);
        assert_eq!((told(&world), world.env.subscribers().get("cyd").is_ok()), (11, false));
        assert_eq!(trigger(&other, &events("cyd")).unwrap().len(), 6);
        assert_eq!((told(&world), world.inbox("cyd").len()), (11, 1));
    });
}

/// The events of the transactions before the failure have happened, and no others.
#[test]
fn a_bulk_without_a_key_fails_between_two_events() {
    on_both(|world| {
        begin(&world);
        let events: Vec<_> = (0..12).map(|_| event(json!({}))).collect();
        for (writes, happened) in [(0, 0), (1, 5), (2, 15)] {
            let error = world.interrupted(writes, || trigger(&world.env, &events)).unwrap_err();
            assert_eq!(error.status(), 500);
            assert_eq!(told(&world), happened);
        }
    });
}

/// An event with much content is a transaction of its own.
#[test]
fn a_transaction_of_a_bulk_ends_with_its_content() {
    on_both(|world| {
        begin(&world);
        let payload = json!({ "text": "x".repeat(40 * 1_000) });
        let events: Vec<_> = (0..3).map(|_| event(json!({ "payload": payload }))).collect();

        let error = world.interrupted(1, || trigger(&world.env, &events)).unwrap_err();

        assert_eq!((error.status(), told(&world)), (500, 1));
    });
}

fn begin(world: &World) -> Scope {
    world.env.workflows().create(&parsed(workflow_of("hi", &[in_app()]))).unwrap();
    world.env.idempotent("k").unwrap()
}

fn event(fields: Value) -> Trigger {
    let to: Vec<_> = (0..RECIPIENTS).map(|at| format!("s{at}")).collect();
    parsed(with(json!({ "name": "hi", "to": to }), fields))
}

fn trigger(scope: &Scope, events: &[Trigger]) -> tidings::Result<Vec<TriggerReceipt>> {
    scope.events().trigger_bulk(events)?.into_iter().collect()
}

// Number of events that have told the first recipient.
fn told(world: &World) -> usize {
    world.env.inbox(id("s0")).unwrap().counts().map_or(0, |counts| counts.unseen)
}
