//! Results of earlier steps in the conditions and templates of later ones.

use std::time::Duration;

use serde_json::{Value, json};
use tidings::SendError;
use tidings::message::MarkAs;

use super::{delay, digest, event_at, run_at};
use crate::world::{World, email, id, on_both, only, parsed, say, with};

fn unread() -> Value {
    json!({ "==": [{ "var": "steps.bell.read" }, false] })
}

fn escalating(world: &World) {
    world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
    world.active_integration("email", "sendgrid");
    let bell = with(say("read me"), json!({ "name": "bell" }));
    let hour = delay(json!({ "type": "regular", "amount": 1, "unit": "hours" }));
    world.workflow_of("bell", &[bell, hour, with(email(), json!({ "runIf": unread() }))]);
}

/// An e-mail follows if the message in the inbox is still unread after an hour.
#[test]
fn an_email_follows_an_unread_message() {
    on_both(|world| {
        escalating(&world);
        let unread = event_at(&world, 0, "bell", json!({}));
        let read = event_at(&world, 0, "bell", json!({}));
        let message = world.notification(read).jobs[0].message_id.unwrap();
        world.env.inbox(id("ada")).unwrap().mark_as([message], MarkAs::Read).unwrap();
        run_at(&world, 3_600);
        assert_eq!(world.statuses(unread), ["completed"; 3]);
        assert_eq!(world.statuses(read), ["completed", "completed", "skipped"]);
        assert_eq!(world.recorder.sent().len(), 1);
    });
}

/// A message that preferences keep out of the inbox has no `read`, so that an e-mail follows unless the
/// message was read, and none follows if it has to be unread.
#[test]
fn an_email_follows_a_message_that_is_not_in_the_inbox() {
    let unless_read = json!({ "!": [{ "var": "steps.bell.read" }] });
    for (condition, is_off, expected) in [
        (unless_read.clone(), true, ["skipped", "completed", "completed"]),
        (unless_read, false, ["completed"; 3]),
        (unread(), true, ["skipped", "completed", "skipped"]),
    ] {
        on_both(|world| {
            world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
            world.active_integration("email", "sendgrid");
            let off = json!({ "channels": { "in_app": !is_off } });
            world.env.preferences(id("ada")).unwrap().update_global(&parsed(off)).unwrap();
            let bell = with(say("read me"), json!({ "name": "bell" }));
            let hour = delay(json!({ "type": "regular", "amount": 1, "unit": "hours" }));
            world.workflow_of("bell", &[bell, hour, with(email(), json!({ "runIf": condition }))]);
            let event = event_at(&world, 0, "bell", json!({}));
            run_at(&world, 3_600);
            assert_eq!(world.statuses(event), expected, "{condition}");
        });
    }
}

/// A step that refers to the outcome of a message waits for it.
#[test]
fn a_step_waits_for_the_message_that_it_refers_to() {
    on_both(|world| {
        world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
        world.active_integration("email", "sendgrid");
        let mail = with(email(), json!({ "name": "mail" }));
        let failed = json!({ "==": [{ "var": "steps.mail.status" }, "failed"] });
        let instead = with(say("could not write to you"), json!({ "runIf": failed }));
        world.workflow_of("mail", &[mail, instead]);
        for (refused, expected) in
            [(true, ["failed", "completed"]), (false, ["completed", "skipped"])]
        {
            let id = event_at(&world, 0, "mail", json!({}));
            assert_eq!(world.statuses(id), ["queued", "pending"]);
            if refused {
                world.recorder.refuse_next(SendError::permanent("no"));
            }
            world.run_due();
            assert_eq!(world.statuses(id), expected);
        }
        assert_eq!(only(world.inbox("ada")).text(), Some("could not write to you"));
    });
}

/// One row per way in which a message is sent again: it is under way when a delay, or a window of a digest
/// behind it, ends.
#[test]
fn a_message_that_is_sent_again_does_not_keep_a_delay_from_its_end() {
    let hour = json!({ "type": "regular", "amount": 1, "unit": "hours" });
    let sent = json!({ "==": [{ "var": "steps.mail.status" }, "completed"] });
    let told = with(say("we wrote to you"), json!({ "runIf": sent }));
    let mail = with(email(), json!({ "name": "mail" }));
    for wait in [delay(hour.clone()), digest(hour)] {
        for is_redriven in [false, true] {
            on_both(|world| {
                world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
                world.active_integration("email", "sendgrid");
                world.workflow_of("mail", &[mail.clone(), wait.clone(), told.clone()]);
                let id = event_at(&world, 0, "mail", json!({}));
                if is_redriven {
                    world.recorder.refuse_next(SendError::permanent("no"));
                }
                world.run_due();
                run_at(&world, 3_000);
                if is_redriven {
                    world.env.dead_letters().redrive_matching(&parsed(json!({}))).unwrap();
                } else {
                    let step = world.notification(id).jobs[0].step.id;
                    world.env.notifications().resend(id, step).unwrap();
                }
                let busy = SendError::retry_after("busy", Duration::from_secs(1_200));
                world.recorder.refuse_next(busy);
                world.run_due();

                run_at(&world, 3_600);
                assert_eq!(world.statuses(id), ["queued", "completed", "pending"]);
                run_at(&world, 7_200);
                assert_eq!(world.statuses(id), ["completed"; 3]);
                assert_eq!(world.texts("ada"), ["we wrote to you"]);
            });
        }
    }
}

/// One row per order of a digest that closes and one that the event passes: each has its own events.
#[test]
fn a_digest_that_is_passed_has_no_events_of_another_one() {
    let minute = json!({ "type": "regular", "amount": 1, "unit": "minutes" });
    let never = json!({ "==": [{ "var": "payload.none" }, 1] });
    let closes = with(digest(minute.clone()), json!({ "name": "closes" }));
    let passes = with(digest(minute.clone()), json!({ "name": "passes", "runIf": never }));
    let text = "{{ steps.closes.events | length }} {{ steps.passes.events | length }}";
    let once = with(say(text), json!({ "name": "once" }));
    for digests in [[closes.clone(), passes.clone()], [passes, closes]] {
        on_both(|world| {
            let [first, second] = digests.clone();
            world.workflow_of(
                "news",
                &[first, second, once.clone(), delay(minute.clone()), say(text)],
            );
            for at in [0, 1, 2] {
                event_at(&world, at, "news", json!({}));
            }
            for at in [60, 120] {
                run_at(&world, at);
            }
            assert_eq!(world.texts("ada"), ["3 1", "3 1"]);
        });
    }
}

/// One row per number of events: what becomes of the step behind their digest, and the texts.
#[test]
fn a_step_sees_the_events_of_the_digest_before_it() {
    let window = json!({ "type": "regular", "amount": 1, "unit": "minutes" });
    let several = json!({ ">": [{ "var": "steps.digest.eventCount" }, 1] });
    let text = "{{ steps.digest.events | length }} of {{ steps.digest.eventCount }}, \
                {{ steps.digest.status }}";
    let told = with(say(text), json!({ "runIf": several }));
    let later = say("{{ steps.digest.eventCount }}");
    let steps = [digest(window.clone()), told, delay(window), later];
    for (events, status, expected) in
        [(1, "skipped", vec!["1"]), (2, "completed", vec!["2 of 2, completed", "2"])]
    {
        on_both(|world| {
            world.workflow_of("news", &steps);
            let first = event_at(&world, 0, "news", json!({}));
            for at in 1..events {
                event_at(&world, at, "news", json!({}));
            }
            run_at(&world, 60);
            assert_eq!(world.statuses(first)[1], status);
            run_at(&world, 120);
            assert_eq!(world.texts("ada"), expected);
        });
    }
}
