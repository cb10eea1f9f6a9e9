//! Sending the message of a step again.

use std::time::Duration;

use serde_json::json;
use tidings::SendError;
use tidings::ids::NotificationId;

use crate::world::{World, email, in_app, names, on_both, parsed, payload_is, wire, with};

fn prepared(world: &World) {
    world.active_integration("email", "ses");
    world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
    let delay = json!({ "type": "delay", "metadata":
        { "type": "regular", "amount": 1, "unit": "hours" } });
    world.workflow_of("both", &[in_app(), email(), delay]);
}

fn resend(world: &World, id: NotificationId, job: usize) -> tidings::Result<()> {
    let step = world.notification(id).jobs[job].step.id;
    world.env.notifications().resend(id, step)
}

/// Each resending has an idempotency key of its own, and the message has both times of delivery.
#[test]
fn a_message_is_sent_again() {
    on_both(|world| {
        prepared(&world);
        let id = world.notify("both", "ada");
        assert_eq!(world.run_due().sent, 1);
        world.tick();
        resend(&world, id, 1).unwrap();
        assert_eq!(world.notification(id).jobs[1].status.as_str(), "queued");
        assert_eq!(world.run_due().sent, 1);
        let [first, second] = &world.recorder.sent()[..] else { panic!("two messages") };
        assert_ne!(first.idempotency_key(), second.idempotency_key());
        let job = &world.notification(id).jobs[1];
        assert_eq!(second.idempotency_key(), job.id.into());
        let words = names(&job.execution_details, |entry| entry.detail);
        let once = ["step_queued", "integration_selected", "message_sent"];
        assert_eq!(words, [&once[..], &["step_resent"], &once[..]].concat());
        let messages = world.messages("ada");
        assert_eq!(messages.len(), 2);
        let sent = messages.iter().find(|message| Some(message.id) == job.message_id).unwrap();
        assert_eq!(sent.delivered_at.len(), 2);
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

#[test]
fn a_failed_message_is_sent_again() {
    on_both(|world| {
        prepared(&world);
        world.recorder.refuse_next(SendError::permanent("no"));
        let id = world.notify("both", "ada");
        assert_eq!(world.run_due().failed, 1);
        resend(&world, id, 1).unwrap();
        assert_eq!(world.run_due().sent, 1);
        assert_eq!(world.notification(id).jobs[1].status.as_str(), "completed");
        assert_eq!(world.messages("ada").len(), 2);
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

/// The first message was sent, and the steps behind it are under way.
#[test]
fn a_resent_message_that_fails_stops_no_step_behind_it() {
    on_both(|world| {
        prepared(&world);
        let delay = json!({ "type": "delay", "metadata":
            { "type": "regular", "amount": 1, "unit": "hours" } });
        let stopping = with(email(), json!({ "shouldStopOnFail": true }));
        world.workflow_of("reminded", &[stopping, delay, in_app()]);
        let id = world.notify("reminded", "ada");
        assert_eq!(world.run_due().sent, 1);
        world.recorder.refuse_next(SendError::permanent("no"));
        resend(&world, id, 0).unwrap();
        assert_eq!(world.run_due().failed, 1);
        world.pass(Duration::from_secs(3_600));
        world.run_due();
        let statuses = names(&world.notification(id).jobs, |job| job.status.as_str());
        assert_eq!(statuses, ["failed", "completed", "completed"]);
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

/// The first message was sent, and the turn of the steps behind it is not done yet.
#[test]
fn a_resent_message_that_fails_stops_no_step_that_waits_for_its_turn() {
    on_both(|world| {
        prepared(&world);
        let stopping = with(email(), json!({ "shouldStopOnFail": true }));
        world.workflow_of("told", &[stopping, in_app()]);
        let id = world.notify("told", "ada");
        assert_eq!(world.engine.delivery().run_due(1).unwrap().sent, 1);
        world.recorder.refuse_next(SendError::permanent("no"));
        resend(&world, id, 0).unwrap();
        world.tick();
        world.run_due();
        let statuses = names(&world.notification(id).jobs, |job| job.status.as_str());
        assert_eq!(statuses, ["failed", "completed"]);
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

/// One row per name of the step.
#[test]
fn a_step_is_sent_again_by_its_name_and_by_its_place() {
    on_both(|world| {
        prepared(&world);
        let named = with(email(), json!({ "name": "mail" }));
        world.workflow_of("named", &[in_app(), named]);
        let id = world.notify("named", "ada");
        assert_eq!(world.run_due().sent, 1);
        let own = world.notification(id).jobs[1].step.id.to_string();
        for step in ["mail", "1", &own] {
            world.env.notifications().resend(id, step).unwrap();
            assert_eq!(world.run_due().sent, 1, "{step}");
        }
        world.refuses("422 `step` must be one of 0, mail", || {
            world.env.notifications().resend(id, "post")
        });
    });
}

/// A message in the inbox is unseen again, and the newest one.
#[test]
fn a_message_in_the_inbox_is_delivered_again() {
    on_both(|world| {
        prepared(&world);
        world.in_app_workflow("news");
        let id = world.notify("both", "ada");
        world.tick();
        world.notify("news", "ada");
        let inbox = world.env.inbox("ada").unwrap();
        let before = inbox.counts().unwrap();
        inbox.mark_all(tidings::message::MarkAs::Read).unwrap();
        world.tick();
        resend(&world, id, 0).unwrap();
        let messages = world.inbox("ada");
        assert_eq!((messages.len(), messages[0].notification_id), (2, id));
        assert_eq!(messages[0].delivered_at.len(), 2);
        assert_ne!(inbox.counts().unwrap(), before);
        assert_eq!(messages[0].stage, tidings::message::Stage::Unseen);
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

/// Each list decodes the times of delivery.
#[test]
fn a_message_that_is_sent_again_and_again_keeps_some_times_of_delivery() {
    on_both(|world| {
        world.in_app_workflow("news");
        let id = world.notify("news", "ada");
        let first = world.now();
        for _ in 0..150 {
            world.tick();
            resend(&world, id, 0).unwrap();
        }
        let [message] = &world.inbox("ada")[..] else { panic!("there are several messages") };
        let times = &message.delivered_at;
        assert_eq!((times.len(), times[0], times[99]), (100, first, world.now()));
        assert!(times.is_sorted());
    });
}

/// The template is repaired, and the message is made as the workflow has it now.
#[test]
fn a_message_of_the_inbox_that_could_not_be_made_is_made_anew() {
    on_both(|world| {
        let step = |body: &str| json!({ "type": "in_app", "template": { "body": body } });
        let delay = json!({ "type": "delay", "metadata":
            { "type": "regular", "amount": 1, "unit": "hours" } });
        world.workflow_of("sum", &[step("{{ payload.a / payload.b }}"), delay.clone()]);
        let event = json!({ "name": "sum", "to": "ada", "payload": { "a": 1, "b": "two" } });
        let id = world.trigger(event).notifications[0].notification_id;
        let first = world.notification(id).jobs[0].clone();
        assert_eq!((first.status.as_str(), world.inbox("ada").len()), ("failed", 0));

        resend(&world, id, 0).unwrap();
        let again = world.notification(id).jobs[0].clone();
        assert_eq!(again.status.as_str(), "failed");
        assert_ne!(again.id, first.id);
        let words = names(&again.execution_details, |entry| entry.detail);
        assert_eq!(words, ["content_not_generated", "step_resent", "content_not_generated"]);

        let repaired = json!({ "steps": [step("{{ payload.a }} by {{ payload.b }}"), delay] });
        world.env.workflows().update("sum", &parsed(repaired)).unwrap();
        resend(&world, id, 0).unwrap();
        let job = world.notification(id).jobs[0].clone();
        let inbox = world.inbox("ada");
        assert_eq!((job.status.as_str(), inbox.len()), ("completed", 1));
        assert_eq!(job.message_id, Some(inbox[0].id));
        assert_eq!(wire(&inbox[0].content), json!("1 by two"));
        // The jobs behind it are where they were.
        assert_eq!(world.notification(id).jobs[1].status.as_str(), "delayed");
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

/// A rule has decided that there is no message: neither of the inbox nor for a provider.
#[test]
fn a_message_that_a_rule_has_skipped_is_not_sent() {
    let throttle = json!({ "type": "throttle", "metadata": { "amount": 1, "unit": "hours" } });
    let until = json!({ "type": "scheduled", "delayPath": "at", "onPast": "skip" });
    let passed = json!({ "type": "delay", "metadata": until });
    let gold = json!({ "filters": [payload_is("plan", "gold")] });
    let loud = json!({ "runIf": { "==": [{ "var": "payload.loud" }, true] } });
    for kind in [in_app(), email()] {
        for steps in [
            [throttle.clone(), kind.clone()],
            [passed.clone(), kind.clone()],
            [in_app(), with(kind.clone(), gold.clone())],
            [in_app(), with(kind.clone(), loud.clone())],
        ] {
            on_both(|world| {
                prepared(&world);
                world.workflow_of("rules", &steps);
                let early = json!({ "at": "2026-11-19T12:00:00.000Z" });
                let event = json!({ "name": "rules", "to": "ada", "payload": early });
                world.trigger(event.clone());
                let id = world.trigger(event).notifications[0].notification_id;
                let sent = world.run_due().sent;
                let job = world.notification(id).jobs[1].clone();
                assert_eq!((job.status.as_str(), job.message_id), ("skipped", None));
                let step = job.step.id;
                let reason = "the step has no message";
                let text = format!("400 the step `{step}` is not sent again: {reason}");
                world.refuses(&text, || resend(&world, id, 1));
                world.run_due();
                assert_eq!(world.recorder.sent().len(), sent);
            });
        }
    }
}

/// What an attempt has found is looked at again: the address is there now.
#[test]
fn a_message_that_had_no_address_is_sent() {
    on_both(|world| {
        prepared(&world);
        world.bare_subscriber("bob");
        let id = world.notify("both", "bob");
        world.run_due();
        assert_eq!(world.notification(id).jobs[1].status.as_str(), "skipped");
        let address = parsed(json!({ "email": "bob@example.org" }));
        world.env.subscribers().update("bob", &address).unwrap();
        resend(&world, id, 1).unwrap();
        assert_eq!(world.run_due().sent, 1);
    });
}

#[test]
fn refusals_name_their_reason() {
    on_both(|world| {
        prepared(&world);
        let id = world.notify("both", "ada");
        let job = |job: usize| world.notification(id).jobs[job].step.id;
        let text = |step, reason| format!("400 the step `{step}` is not sent again: {reason}");
        let resend = |step| world.env.notifications().resend(id, step);
        for waiting in [1, 2] {
            let reason = "the step has not ended";
            world.refuses(&text(job(waiting), reason), || resend(job(waiting)));
        }
        world.run_due();
        world.pass(std::time::Duration::from_secs(3_600));
        world.run_due();
        world.refuses(&text(job(2), "the step has no message"), || resend(job(2)));
        let other = "0198a000-0000-7000-8000-000000000001".parse().unwrap();
        let reason = "the notification has no such step";
        world.refuses(&text(other, reason), || resend(other));
        for unknown in ["mail", "3", ""] {
            let refusal = "422 `step` must be one of 0, 1, 2";
            world.refuses(refusal, || world.env.notifications().resend(id, unknown));
        }
        world.env.subscribers().delete("ada").unwrap();
        world.refuses(&text(job(0), "the step has no message"), || resend(job(0)));
    });
}
