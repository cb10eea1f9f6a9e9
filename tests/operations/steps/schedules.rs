//! Schedules of subscribers.

use std::time::Duration;

use serde_json::{Value, json};
use store::Table;
use testkit::tables::{Entry, dump, put};

use super::{delay, digest, event_at, run_at};
use crate::world::{
    START, World, email, id, on_both, on_both_with, only, parsed, say, time, with, workflow_of,
};
use tidings::Builder;
use tidings::content::MessageContent;
use tidings::preview::Preview;
use tidings::quarantine::QuarantineQuery;

// Ada, who accepts messages on Saturdays from nine to five in Berlin. The start is a Friday at noon.
fn ada(world: &World, outside: Value) {
    world.subscriber(json!({
        "subscriberId": "ada", "email": "ada@example.org", "timezone": "Europe/Berlin",
    }));
    world.active_integration("email", "sendgrid");
    open_on(world, "saturday", outside);
}

// Ada accepts messages on that day only.
fn open_on(world: &World, day: &str, outside: Value) {
    let hours = json!([{ "start": "09:00 AM", "end": "05:00 PM" }]);
    let mut schedule = json!({
        "isEnabled": true, "weeklySchedule": { day: { "isEnabled": true, "hours": hours } },
    });
    if !outside.is_null() {
        schedule["outside"] = outside;
    }
    let update = json!({ "schedule": schedule });
    world.env.preferences(id("ada")).unwrap().update_global(&parsed(update)).unwrap();
}

// Seconds from the start to Saturday at nine in Berlin.
const OPENING: u64 = 20 * 3_600;

#[test]
fn a_message_outside_the_hours_waits_for_the_next_opening() {
    on_both(|world| {
        ada(&world, Value::Null);
        world.workflow_of("mail", &[email(), say("at once")]);
        let id = event_at(&world, 0, "mail", json!({}));
        assert_eq!(world.texts("ada"), ["at once"]);
        assert_eq!(world.statuses(id), ["queued", "completed"]);
        assert_eq!(world.log(id, 0), ["step_queued", "deferred_to_schedule"]);
        run_at(&world, OPENING - 1);
        assert_eq!(world.recorder.sent().len(), 0);
        run_at(&world, OPENING);
        assert_eq!(world.recorder.sent().len(), 1);
    });
}

/// Nine o'clock in Berlin, and not in London, where it is an hour later.
#[test]
fn a_subscriber_without_a_time_zone_has_that_of_the_engine() {
    let in_berlin = |builder: Builder| builder.default_timezone("Europe/Berlin").unwrap();
    on_both_with(in_berlin, |world| {
        for (who, zone) in [("ada", Value::Null), ("bob", json!("Europe/London"))] {
            world.subscriber(json!({ "subscriberId": who, "timezone": zone }));
        }
        let nine = delay(json!({ "type": "timed", "timed": { "atTime": "09:00" } }));
        world.workflow_of("nine", &[nine, say("{{ payload.at | time }}")]);
        let events = ["ada", "bob"].map(|who| {
            let event = json!({
                "name": "nine", "to": who, "payload": { "at": "2026-01-05T23:30:00Z" },
            });
            only(world.trigger(event).notifications).notification_id
        });
        run_at(&world, OPENING - 1);
        assert_eq!(events.map(|id| world.statuses(id)[0].clone()), ["delayed", "delayed"]);
        run_at(&world, OPENING);
        assert_eq!(events.map(|id| world.statuses(id)[0].clone()), ["completed", "delayed"]);
        run_at(&world, OPENING + 3_600);
        assert_eq!(world.texts("ada"), ["00:30"]);
        assert_eq!(world.texts("bob"), ["23:30"]);
        let step = Preview::new("1", "ada").unwrap();
        let preview = step.payload(json!({ "at": "2026-01-05T23:30:00Z" })).unwrap();
        let shown = world.env.workflows().preview("nine", &preview).unwrap();
        assert_eq!(shown.content, MessageContent::Text("00:30".into()));
    });
    let nowhere = Builder::default().default_timezone("Europe/Atlantis").unwrap_err();
    assert_eq!(nowhere.to_string(), "`defaultTimezone` must be an IANA time zone");
}

/// A schedule that a context does not have is that of the default context.
#[test]
fn quiet_hours_hold_in_every_context() {
    on_both(|world| {
        ada(&world, Value::Null);
        world.workflow_of("mail", &[email()]);
        let event = json!({ "name": "mail", "to": "ada", "context": { "tenant": "acme" } });
        world.trigger(event);
        run_at(&world, OPENING - 1);
        assert_eq!(world.recorder.sent().len(), 0);
        run_at(&world, OPENING);
        assert_eq!(world.recorder.sent().len(), 1);
    });
}

/// One row per setting outside the hours: the status of the job and its log.
#[test]
fn a_channel_may_drop_or_deliver_outside_the_hours() {
    for (outside, status, entry) in [
        (json!({ "email": "drop" }), "skipped", "outside_schedule"),
        (json!({ "email": "deliver" }), "completed", "message_sent"),
        (json!({ "sms": "drop" }), "queued", "deferred_to_schedule"),
    ] {
        on_both(|world| {
            ada(&world, outside.clone());
            world.workflow_of("mail", &[email()]);
            let id = event_at(&world, 0, "mail", json!({}));
            world.run_due();
            assert_eq!(world.statuses(id), [status], "{outside}");
            assert_eq!(world.log(id, 0).last().unwrap(), entry);
        });
    }
}

#[test]
fn a_critical_message_is_not_held_back() {
    on_both(|world| {
        ada(&world, Value::Null);
        world.workflow(with(workflow_of("code", &[email()]), json!({ "critical": true })));
        event_at(&world, 0, "code", json!({}));
        world.run_due();
        assert_eq!(world.recorder.sent().len(), 1);
    });
}

/// The workflow is what it is when the step is done, as with preferences.
#[test]
fn a_workflow_that_becomes_critical_is_not_held_back_any_more() {
    for critical in [true, false] {
        on_both(|world| {
            ada(&world, Value::Null);
            let minute = json!({ "type": "regular", "amount": 1, "unit": "minutes" });
            let create = workflow_of("code", &[delay(minute), email()]);
            world.workflow(with(create, json!({ "critical": !critical })));
            event_at(&world, 0, "code", json!({}));
            world.run_due();
            let update = parsed(json!({ "critical": critical }));
            world.env.workflows().update("code", &update).unwrap();
            run_at(&world, 60);
            assert_eq!(world.recorder.sent().len(), usize::from(critical));
        });
    }
}

/// A message that is tried again outside the hours waits as well.
#[test]
fn a_retry_waits_for_the_next_opening() {
    on_both(|world| {
        ada(&world, Value::Null);
        world.workflow_of("mail", &[email()]);
        event_at(&world, OPENING + 8 * 3_600 - 1, "mail", json!({}));
        world.recorder.refuse_next(tidings::SendError::retryable("busy"));
        world.run_due();
        run_at(&world, OPENING + 9 * 3_600);
        assert_eq!(world.recorder.sent().len(), 0);
        run_at(&world, OPENING + 7 * 24 * 3_600);
        assert_eq!(world.recorder.sent().len(), 1);
    });
}

/// D13: a window whose end is outside the hours moves to the next opening, and takes events until
/// then.
#[test]
fn d13_a_window_extends_to_the_schedule() {
    on_both(|world| {
        ada(&world, Value::Null);
        let metadata = json!({
            "type": "regular", "amount": 1, "unit": "minutes", "extendToSchedule": true,
        });
        world.workflow_of("news", &[digest(metadata), say("{{ total_count }}")]);
        let first = event_at(&world, 0, "news", json!({}));
        run_at(&world, 60);
        let notification = world.notification(first);
        assert_eq!(world.statuses(first), ["delayed", "pending"]);
        assert_eq!(notification.jobs[0].schedule_extensions_count, Some(1));
        let second = event_at(&world, 3_600, "news", json!({}));
        assert_eq!(world.statuses(second), ["merged", "merged"]);
        run_at(&world, OPENING);
        assert_eq!(world.texts("ada"), ["2"]);
    });
}

/// D13: a window or a delay moves three times at most.
#[test]
fn d13_a_step_extends_three_times() {
    let minute =
        json!({ "type": "regular", "amount": 1, "unit": "minutes", "extendToSchedule": true });
    for step in [digest(minute.clone()), delay(minute)] {
        on_both(|world| {
            ada(&world, Value::Null);
            world.workflow_of("news", &[step.clone(), say("{{ payload.n }}")]);
            let event = event_at(&world, 0, "news", json!({ "n": 1 }));
            let ends = [60, OPENING, OPENING + 86_400, OPENING + 2 * 86_400];
            for (extensions, (end, next)) in
                ends.into_iter().zip(["saturday", "sunday", "monday", "tuesday"]).enumerate()
            {
                open_on(&world, next, Value::Null);
                let job = world.notification(event).jobs.remove(0);
                assert_eq!(job.schedule_extensions_count.unwrap_or(0) as usize, extensions);
                assert_eq!(world.texts("ada"), [""; 0], "{step}");
                run_at(&world, end);
            }
            assert_eq!(world.texts("ada"), ["1"], "{step}");
            let log = world.log(event, 0);
            assert!(log.iter().any(|detail| detail == "max_extensions_reached"), "{log:?}");
        });
    }
}

/// Whoever carries a window that is extended may expire or be canceled before it ends: the jobs end, and
/// those of the next event go on.
#[test]
fn an_extended_window_leaves_no_job_behind() {
    for (expiries, canceled, expected, ended) in [
        ([30, 3_600, 0], None, &["3"][..], ["skipped", "skipped", "completed"]),
        ([0, 3_600, 0], Some(0), &["3"], ["canceled", "skipped", "completed"]),
        ([30, 3_600, 3_600], None, &[], ["skipped", "skipped", "merged"]),
        ([30, 0, 0], Some(1), &["3"], ["skipped", "canceled", "completed"]),
    ] {
        on_both(|world| {
            ada(&world, Value::Null);
            let metadata = json!({
                "type": "regular", "amount": 1, "unit": "minutes", "extendToSchedule": true,
            });
            world.workflow_of("news", &[digest(metadata), say("{{ payload.n }}")]);
            run_at(&world, 0);
            let ids = [0, 1, 2].map(|at| {
                let mut event = json!({
                    "name": "news", "to": "ada", "payload": { "n": at + 1 },
                    "transactionId": format!("t{at}"),
                });
                if expiries[at] > 0 {
                    let expiry = time(START).after(Duration::from_secs(expiries[at]));
                    event["expiresAt"] = json!(expiry);
                }
                only(world.trigger(event).notifications).notification_id
            });
            // The opener is canceled before the extension, and a later one behind it.
            for (at, seconds) in [(0, 30), (1, 120)] {
                run_at(&world, seconds);
                if canceled == Some(at) {
                    world.env.events().cancel(format!("t{at}").as_str()).unwrap();
                }
            }
            run_at(&world, OPENING);
            assert_eq!(world.texts("ada"), expected);
            assert_eq!(ids.map(|id| world.statuses(id)), ended.map(|status| [status; 2]));
            assert_eq!(world.engine.delivery().next_due().unwrap(), None);
            assert_eq!(world.engine.check().unwrap().findings, []);
        });
    }
}

/// The first turn has met a damaged record, and is put back while a window is open that events behind it
/// have opened: before the time of its end, or behind that.
#[test]
fn a_turn_that_is_put_back_leaves_a_window_alone() {
    for (extends, is_before_end) in [(false, true), (false, false), (true, true), (true, false)] {
        let world = World::in_memory();
        ada(&world, Value::Null);
        let metadata = json!({
            "type": "regular", "amount": 1, "unit": "minutes", "extendToSchedule": extends,
        });
        world.workflow_of("news", &[say("now"), digest(metadata), say("{{ total_count }}")]);
        world.env.workflows().pause("news").unwrap();
        event_at(&world, 0, "news", json!({}));
        let subscriber = |(of, ..): &Entry| *of == Table::Subscribers;
        let (table, key, value) = dump(&world.store).into_iter().find(subscriber).unwrap();
        put(&world.store, table, &key, Some(b"?"));
        world.env.workflows().resume("news").unwrap();
        world.engine.delivery().run_due(1).unwrap();
        put(&world.store, table, &key, Some(&value));
        world.run_due();
        event_at(&world, 10, "news", json!({}));
        let entry = only(world.engine.quarantine().list(&QuarantineQuery::default()).unwrap().data);
        if !is_before_end {
            world.pass(Duration::from_secs(60));
        }
        world.engine.quarantine().requeue(entry.id).unwrap();
        run_at(&world, 80);
        run_at(&world, OPENING);
        let mut found = world.texts("ada");
        found.sort();
        assert_eq!(found, ["2", "now", "now"], "{extends} {is_before_end}");
        assert_eq!(world.engine.check().unwrap().findings, []);
    }
}

#[test]
fn a_delay_may_extend_to_the_schedule() {
    on_both(|world| {
        ada(&world, Value::Null);
        let minute = json!({
            "type": "regular", "amount": 1, "unit": "minutes", "extendToSchedule": true,
        });
        world.workflow_of("wait", &[delay(minute), say("later")]);
        event_at(&world, 0, "wait", json!({}));
        run_at(&world, 60);
        run_at(&world, OPENING - 1);
        assert_eq!(world.texts("ada"), [""; 0]);
        run_at(&world, OPENING);
        assert_eq!(world.texts("ada"), ["later"]);
    });
}
