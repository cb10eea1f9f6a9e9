//! Delays.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::json;
use store::Table;
use testkit::interposed::Point;
use testkit::tables::{Entry, dump, put};
use tidings::ids::NotificationId;
use tidings::job::JobStatus;
use tidings::quarantine::QuarantineQuery;
use tidings::time::Timestamp;
use tidings::{Clock, ManualClock, Scope};

use super::{delay, event_at, run_at};
use crate::world::{START, World, email, id, on_both, only, parsed, say, time};

#[test]
fn the_steps_behind_a_delay_go_on_when_it_is_over() {
    on_both(|world| {
        let minute = delay(json!({ "type": "regular", "amount": 1, "unit": "minutes" }));
        world.workflow_of("wait", &[say("first"), minute, say("second {{ payload.n }}")]);
        let id = event_at(&world, 0, "wait", json!({ "n": 7 }));
        assert_eq!(world.statuses(id), ["completed", "delayed", "pending"]);
        let until = time(START).after(Duration::from_secs(60));
        assert_eq!(world.notification(id).jobs[1].status, JobStatus::Delayed { until });
        assert_eq!(world.engine.delivery().next_due().unwrap(), Some(until));

        run_at(&world, 59);
        assert_eq!(world.texts("ada"), ["first"]);
        run_at(&world, 60);
        assert_eq!(world.texts("ada"), ["first", "second 7"]);
        assert_eq!(world.statuses(id), ["completed"; 3]);
        assert_eq!(world.log(id, 1), ["step_delayed", "delay_finished"]);
        assert_eq!(world.engine.delivery().next_due().unwrap(), None);
    });
}

/// One row per payload of a delay until a time in it.
#[test]
fn a_delay_may_end_at_a_time_in_the_payload() {
    on_both(|world| {
        let until = delay(json!({ "type": "scheduled", "delayPath": "order.due" }));
        world.workflow_of("due", &[until, say("due")]);
        for (due, expected) in [
            (json!({ "order": { "due": "2026-11-20T13:00:00Z" } }), ["delayed", "pending"]),
            (json!({ "order": { "due": "2026-11-20T11:00:00Z" } }), ["completed", "completed"]),
            (json!({ "order": { "due": "soon" } }), ["failed", "canceled"]),
            (json!({}), ["failed", "canceled"]),
        ] {
            let id = event_at(&world, 0, "due", due.clone());
            assert_eq!(world.statuses(id), expected, "{due}");
        }
        run_at(&world, 3_600);
        assert_eq!(world.texts("ada"), ["due", "due"]);
    });
}

#[test]
fn a_delay_whose_time_has_passed_may_skip_the_rest() {
    on_both(|world| {
        let until = delay(json!({ "type": "scheduled", "delayPath": "at", "onPast": "skip" }));
        world.workflow_of("late", &[until, say("late")]);
        let id = event_at(&world, 0, "late", json!({ "at": "2026-11-20T11:59:59Z" }));
        assert_eq!(world.statuses(id), ["skipped", "skipped"]);
        let notification = world.notification(id);
        assert_eq!(world.log(notification.id, 0), ["delay_time_passed"]);
        assert_eq!(world.log(notification.id, 1), ["preceding_step_skipped"]);
    });
}

#[test]
fn a_delay_without_a_length_is_over_at_once() {
    on_both(|world| {
        world.workflow_of("now", &[delay(json!({ "type": "regular" })), say("now")]);
        let id = event_at(&world, 0, "now", json!({}));
        assert_eq!(world.statuses(id), ["completed", "completed"]);
    });
}

/// P17: the preference at the time of the send decides.
#[test]
fn p17_a_preference_that_changes_during_a_delay_counts() {
    on_both(|world| {
        world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
        world.active_integration("email", "sendgrid");
        let minute = delay(json!({ "type": "regular", "amount": 1, "unit": "minutes" }));
        world.workflow_of("mail", &[minute, email()]);
        let say = |on: bool| {
            let update = json!({ "channels": { "email": on } });
            world.env.preferences(id("ada")).unwrap().update_global(&parsed(update)).unwrap();
        };
        let off = event_at(&world, 0, "mail", json!({}));
        say(false);
        run_at(&world, 60);
        assert_eq!(world.statuses(off), ["completed", "skipped"]);
        let on = event_at(&world, 61, "mail", json!({}));
        say(true);
        run_at(&world, 121);
        assert_eq!(world.statuses(on), ["completed", "completed"]);
    });
}

#[test]
fn a_step_that_was_removed_during_a_delay_is_skipped_and_a_deleted_workflow_cancels() {
    on_both(|world| {
        let minute = delay(json!({ "type": "regular", "amount": 1, "unit": "minutes" }));
        let workflow = world.workflow_of("wait", &[minute, say("one"), say("two")]);
        let id = event_at(&world, 0, "wait", json!({}));
        let steps = json!({ "steps": [
            { "_id": workflow.steps[0].id, "type": "delay",
              "metadata": { "type": "regular", "amount": 9, "unit": "days" } },
            { "_id": workflow.steps[2].id, "type": "in_app", "template": { "body": "changed" } },
        ] });
        world.env.workflows().update("wait", &parsed(steps)).unwrap();
        let gone = event_at(&world, 30, "wait", json!({}));
        run_at(&world, 60);
        assert_eq!(world.statuses(id), ["completed", "skipped", "completed"]);
        assert_eq!(world.texts("ada"), ["changed"]);

        world.env.workflows().delete("wait").unwrap();
        run_at(&world, 10 * 24 * 3_600);
        assert_eq!(world.statuses(gone), ["canceled", "canceled"]);
    });
}

// An event whose delay ends, and what happens between the plan of its turn and the transaction.
fn delayed(world: &World, meanwhile: fn(&Scope)) -> NotificationId {
    let minute = delay(json!({ "type": "regular", "amount": 1, "unit": "minutes" }));
    world.workflow_of("wait", &[minute, say("one")]);
    let id = event_at(world, 0, "wait", json!({}));
    world.clock.set(time(START).after(Duration::from_secs(60)));
    let env = world.env.clone();
    world.store.pause(Point::Write, 1, move || meanwhile(&env));
    id
}

/// The turn was planned with the workflow, and is planned again without it. No job is left that nothing ends.
#[test]
fn a_workflow_that_is_deleted_while_a_delay_ends_cancels() {
    on_both(|world| {
        let id = delayed(&world, |env| env.workflows().delete("wait").unwrap());

        world.run_due();

        assert_eq!(world.statuses(id), ["canceled", "canceled"]);
        assert_eq!(world.log(id, 1).last().unwrap(), "workflow_deleted");
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

/// The turn was planned with the subscriber, who has no inbox any more.
#[test]
fn a_subscriber_who_is_deleted_while_a_delay_ends_gets_no_message() {
    on_both(|world| {
        let id = delayed(&world, |env| env.subscribers().delete("ada").unwrap());

        let report = world.run_due();

        assert_eq!(world.statuses(id), ["completed", "skipped"]);
        assert_eq!(world.log(id, 1), ["subscriber_deleted"]);
        assert_eq!(report.skipped, 1);
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

/// A clock that goes back between the claim and the plan leaves no job behind.
#[test]
fn a_clock_that_goes_back_leaves_no_delay_behind() {
    on_both(|world| {
        let minute = delay(json!({ "type": "regular", "amount": 1, "unit": "minutes" }));
        world.workflow_of("wait", &[minute, say("over")]);
        let id = event_at(&world, 0, "wait", json!({}));
        let back = Back { clock: world.clock.clone(), calls: AtomicU32::new(0) };
        let engine = testkit::sealed::builder().clock(back).build(world.store.clone());
        world.clock.set(time(START).after(Duration::from_secs(60)));
        engine.delivery().run_due(1).unwrap();
        run_at(&world, 3_600);
        assert_eq!(world.statuses(id), ["completed", "completed"]);
    });
}

// A clock that goes back by an hour after its first time.
#[derive(Debug)]
struct Back {
    clock: ManualClock,
    calls: AtomicU32,
}

impl Clock for Back {
    fn now(&self) -> Timestamp {
        let now = self.clock.now();
        match self.calls.fetch_add(1, Ordering::Relaxed) {
            0 => now,
            _ => Timestamp::from_millis(now.as_millis() - 3_600_000),
        }
    }
}

/// The turn of the first message meets the damaged record again, while the delay behind it lasts.
#[test]
fn a_turn_that_is_put_back_and_fails_again_leaves_a_delay_alone() {
    let day = 24 * 3_600;
    let world = World::in_memory();
    world.bare_subscriber("ada");
    let wait = delay(json!({ "type": "regular", "amount": 1, "unit": "days" }));
    world.workflow_of("late", &[say("now"), wait, say("later")]);
    world.env.workflows().pause("late").unwrap();
    let id = event_at(&world, 0, "late", json!({}));
    world.env.workflows().resume("late").unwrap();
    let of_subscriber = |(table, ..): &Entry| *table == Table::Subscribers;
    let (table, key, value) = dump(&world.store).into_iter().find(of_subscriber).unwrap();
    let damaged = |work: &dyn Fn()| {
        put(&world.store, table, &key, Some(b"?"));
        work();
        put(&world.store, table, &key, Some(&value));
    };
    let entry = || only(world.engine.quarantine().list(&QuarantineQuery::default()).unwrap().data);
    damaged(&|| _ = world.engine.delivery().run_due(1).unwrap());
    world.run_due();
    assert_eq!(world.statuses(id), ["failed", "delayed", "pending"]);

    world.engine.quarantine().requeue(entry().id).unwrap();
    damaged(&|| _ = world.engine.delivery().run_due(1).unwrap());
    run_at(&world, day - 1);

    assert_eq!(world.statuses(id), ["failed", "delayed", "pending"]);
    world.engine.quarantine().requeue(entry().id).unwrap();
    world.run_due();
    assert_eq!(world.texts("ada"), ["now"]);
    run_at(&world, day);
    assert_eq!(world.texts("ada"), ["now", "later"]);
    assert_eq!(world.engine.check().unwrap().findings, []);
}
