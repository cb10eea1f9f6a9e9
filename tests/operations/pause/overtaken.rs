//! Workflows that are paused, deleted or changed between a plan and the transaction that stores it.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::interposed::Point;
use tidings::Scope;
use tidings::store::Table;
use tidings::trigger::Broadcast;

use super::{ada, check_still, held};
use crate::world::{World, in_app, on_both, parsed};

type Act = fn(&Scope);

const PAUSE: Act = |env| drop(env.workflows().pause("news").unwrap());
const DELETE: Act = |env| env.workflows().delete("news").unwrap();
const MINUTE: Duration = Duration::from_secs(60);

/// The number of transactions before the one that stores the plan: a task is claimed first.
const TRIGGER: usize = 0;
const TASK: usize = 1;

/// Does something behind the next plan, before it is stored.
fn overtake(world: &World, before: usize, act: Act) {
    let env = world.env.clone();
    world.store.pause(Point::Write, before, move || act(&env));
}

fn delay() -> Value {
    json!({ "type": "delay", "metadata": { "type": "regular", "amount": 1, "unit": "minutes" } })
}

/// Steps whose rows are shared by many events.
fn shared() -> [Value; 2] {
    let hour = json!({ "type": "regular", "amount": 1, "unit": "hours" });
    let digest = json!({ "type": "digest", "metadata": hour });
    let throttle = json!({ "type": "throttle", "metadata": { "amount": 1, "unit": "hours" } });
    [throttle, digest]
}

/// Checks that what waits is done after the resumption.
fn goes_on(world: &World, messages: usize) {
    check_still(world);
    assert_eq!(world.inbox("ada"), []);
    world.env.workflows().resume("news").unwrap();
    world.tick();
    world.run_due();
    assert_eq!(world.inbox("ada").len(), messages);
    check_still(world);
    assert_eq!(world.engine.check().unwrap().findings, []);
}

fn nothing_is_left(world: &World) {
    for table in [Table::DigestBuckets, Table::ThrottleSlots, Table::Tasks] {
        assert_eq!(world.rows(table), 0, "{table:?}");
    }
    assert_eq!(world.engine.check().unwrap().findings, []);
}

#[test]
fn an_event_that_was_planned_before_a_pause_waits() {
    on_both(|world| {
        ada(&world);
        world.in_app_workflow("news");
        overtake(&world, TRIGGER, PAUSE);
        let id = world.notify("news", "ada");
        assert_eq!(world.log(id, 0), ["workflow_paused"]);
        assert_eq!(held(&world), 1);
        goes_on(&world, 1);
    });
}

#[test]
fn a_bulk_that_was_planned_before_a_pause_waits() {
    on_both(|world| {
        ada(&world);
        world.in_app_workflow("news");
        let event = || parsed(json!({ "name": "news", "to": "ada" }));
        overtake(&world, TRIGGER, PAUSE);
        world.env.events().trigger_bulk(&[event(), event()]).unwrap().all().unwrap();
        assert_eq!(held(&world), 2);
        goes_on(&world, 2);
    });
}

#[test]
fn a_turn_that_was_planned_before_a_pause_waits() {
    on_both(|world| {
        ada(&world);
        world.workflow_of("news", &[delay(), in_app()]);
        let id = world.notify("news", "ada");
        world.pass(MINUTE);
        overtake(&world, TASK, PAUSE);
        world.run_due();
        assert_eq!(world.statuses(id), ["delayed", "pending"]);
        assert_eq!(held(&world), 1);
        goes_on(&world, 1);
    });
}

/// The crowd of a broadcast is told by tasks.
fn crowd(world: &World) {
    ada(world);
    for number in 0..130 {
        world.bare_subscriber(&format!("s{number:03}"));
    }
}

fn broadcast(world: &World) {
    let broadcast: Broadcast = parsed(json!({ "name": "news", "transactionId": "sale" }));
    world.env.events().broadcast(&broadcast).unwrap();
}

fn created(world: &World) -> u64 {
    world.env.events().progress("sale").unwrap().created
}

#[test]
fn a_part_of_a_broadcast_that_was_planned_before_a_pause_waits() {
    on_both(|world| {
        crowd(&world);
        world.in_app_workflow("news");
        broadcast(&world);
        overtake(&world, TASK, PAUSE);
        world.run_due();
        assert_eq!((created(&world), held(&world)), (0, 1));
        goes_on(&world, 1);
        assert_eq!(created(&world), 131);
    });
}

/// The rows of a workflow go with it, and none comes afterwards.
#[test]
fn an_event_that_was_planned_before_the_deletion_of_its_workflow_leaves_nothing() {
    for step in shared() {
        on_both(|world| {
            ada(&world);
            world.workflow_of("news", &[step.clone(), in_app()]);
            overtake(&world, TRIGGER, DELETE);
            let event = parsed(json!({ "name": "news", "to": "ada" }));
            let refused = world.env.events().trigger(&event).unwrap_err();
            assert_eq!(refused.status(), 404);
            nothing_is_left(&world);
        });
    }
}

#[test]
fn a_turn_that_was_planned_before_the_deletion_of_its_workflow_leaves_nothing() {
    for step in shared() {
        on_both(|world| {
            ada(&world);
            world.workflow_of("news", &[delay(), step.clone(), in_app()]);
            let id = world.notify("news", "ada");
            world.pass(MINUTE);
            overtake(&world, TASK, DELETE);
            world.run_due();
            assert_eq!(world.statuses(id), ["canceled"; 3]);
            nothing_is_left(&world);
        });
    }
}

#[test]
fn a_part_of_a_broadcast_that_was_planned_before_the_deletion_of_its_workflow_leaves_nothing() {
    for step in shared() {
        on_both(|world| {
            crowd(&world);
            world.workflow_of("news", &[step.clone(), in_app()]);
            broadcast(&world);
            overtake(&world, TASK, DELETE);
            world.run_due();
            world.tick();
            world.run_due();
            assert_eq!(created(&world), 0);
            nothing_is_left(&world);
        });
    }
}

/// A message of a later turn uses the steps as they are.
#[test]
fn a_turn_that_was_planned_before_a_change_of_its_workflow_shows_the_change() {
    on_both(|world| {
        ada(&world);
        world.workflow_of("news", &[delay(), in_app()]);
        world.notify("news", "ada");
        world.pass(MINUTE);
        overtake(&world, TASK, |env| {
            let after = json!({ "type": "in_app", "template": { "body": "Changed" } });
            let update = parsed(json!({ "steps": [delay(), after] }));
            env.workflows().update("news", &update).unwrap();
        });
        world.run_due();
        assert_eq!(world.inbox("ada")[0].text(), Some("Changed"));
    });
}
