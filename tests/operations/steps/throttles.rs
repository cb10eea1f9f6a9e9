//! Throttles.

use serde_json::{Value, json};

use tidings::store::Table;

use super::{delay, event_at, run_at};
use crate::world::{World, on_both, say};

fn throttled(world: &World, metadata: Value) {
    let throttle = json!({ "type": "throttle", "metadata": metadata });
    world.workflow_of("news", &[throttle, say("{{ payload.n }}")]);
}

fn passes(world: &World, seconds: u64, payload: Value) -> bool {
    let id = event_at(world, seconds, "news", payload);
    match world.statuses(id)[..] {
        [ref first, ref second] if first == "completed" && second == "completed" => true,
        _ => {
            let notification = world.notification(id);
            assert_eq!(world.log(notification.id, 0), ["throttle_limit_exceeded"]);
            assert_eq!(world.log(notification.id, 1), ["preceding_step_skipped"]);
            false
        }
    }
}

/// T1: one event in ten minutes.
#[test]
fn t1_a_window_is_exact() {
    on_both(|world| {
        throttled(&world, json!({ "amount": 10, "unit": "minutes" }));
        let passed = [0, 599, 600].map(|at| passes(&world, at, json!({})));
        assert_eq!(passed, [true, false, true]);
    });
}

/// T2: an event takes one place, also if the call is repeated.
#[test]
fn t2_a_run_takes_one_place() {
    on_both(|world| {
        throttled(&world, json!({ "amount": 10, "unit": "minutes", "threshold": 2 }));
        let event = json!({ "name": "news", "to": "ada", "transactionId": "once" });
        for _ in 0..3 {
            world.trigger(event.clone());
        }
        let passed = [1, 2].map(|at| passes(&world, at, json!({})));
        assert_eq!(passed, [true, false]);
    });
}

/// T3: events with different values of the key are counted separately.
#[test]
fn t3_keys_are_counted_separately() {
    on_both(|world| {
        throttled(&world, json!({ "amount": 1, "unit": "hours", "throttleKey": "order.id" }));
        let order = |id: Value| json!({ "order": { "id": id } });
        let orders = [order(json!(1)), order(json!(2)), order(json!(1)), json!({}), json!({})];
        let passed = orders.map(|payload| passes(&world, 0, payload));
        assert_eq!(passed, [true, true, false, true, false]);
    });
}

/// A throttle is one of the subscriber, whatever the context of an event.
#[test]
fn events_of_all_contexts_are_counted_together() {
    on_both(|world| {
        throttled(&world, json!({ "amount": 1, "unit": "hours" }));
        let events = [("ada", "acme"), ("ada", "globex"), ("bob", "globex")];
        let passed = events.map(|(to, tenant)| {
            world.trigger(json!({ "name": "news", "to": to, "context": { "tenant": tenant } }));
            world.inbox(to).len()
        });
        assert_eq!(passed, [1, 1, 1]);
    });
}

/// One row per type of window: which of the events at these minutes pass, two in ten minutes.
#[test]
fn a_window_is_fixed_or_slides() {
    for (kind, expected) in
        [("fixed", [true, true, false, true, true]), ("sliding", [true, true, false, true, false])]
    {
        on_both(|world| {
            throttled(
                &world,
                json!({ "amount": 10, "unit": "minutes", "threshold": 2, "windowType": kind }),
            );
            let passed = [0, 9, 9, 10, 11].map(|at| passes(&world, at * 60, json!({})));
            assert_eq!(passed, expected, "{kind}");
            assert_eq!(world.engine.check().unwrap().findings, []);
        });
    }
}

/// The end of the window is in the payload. A window that is over restricts nothing.
#[test]
fn a_window_that_is_over_takes_no_place() {
    on_both(|world| {
        throttled(&world, json!({ "dynamicKey": "quiet" }));
        let over = json!({ "quiet": "2020-01-01T00:00:00Z" });
        let later = json!({ "quiet": { "amount": 1, "unit": "hours" } });
        let passed =
            [&over, &over, &later, &over].map(|payload| passes(&world, 0, payload.clone()));
        assert_eq!(passed, [true, true, true, false]);
        assert_eq!(world.rows(Table::ThrottleSlots), 1);
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

/// The throttle comes first, or behind a delay that has begun under the right clock.
#[test]
fn a_place_that_was_taken_under_a_clock_that_was_ahead_is_free() {
    let hour = json!({ "type": "throttle", "metadata": { "amount": 1, "unit": "hours" } });
    let minute = delay(json!({ "type": "regular", "amount": 1, "unit": "minutes" }));
    let (at_once, later) = (vec![hour.clone(), say("!")], vec![minute, hour, say("!")]);
    for (days, told) in [(1, 1), (400, 2)] {
        let ahead = days * 86_400;
        for (steps, triggered_at) in [(&at_once, ahead), (&later, 0)] {
            on_both(|world| {
                world.workflow_of("codes", steps);
                event_at(&world, triggered_at, "codes", json!({}));
                run_at(&world, ahead);
                event_at(&world, 1, "codes", json!({}));
                run_at(&world, 120);
                assert_eq!(world.inbox("ada").len(), told, "{days} {triggered_at}");
                assert_eq!(world.engine.check().unwrap().findings, []);
            });
        }
    }
}
