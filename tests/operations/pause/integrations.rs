//! Paused integrations.

use std::time::Duration;

use serde_json::{Value, json};
use tidings::ids::IntegrationId;
use tidings::integration::IntegrationDelete;
use tidings::job::JobStatus;
use tidings::{Delivery, SendError};

use super::{HOUR, ada, check_still, held};
use crate::world::{
    Counts, World, active_integration, email, names, on_both, only, parsed, sms, time, wire, with,
};

fn pause(world: &World, id: IntegrationId) {
    world.env.integrations().pause(id).unwrap();
}

fn resume(world: &World, id: IntegrationId) {
    world.env.integrations().resume(id).unwrap();
}

fn told(world: &World) -> Vec<String> {
    names(&world.recorder.sent(), |delivery: &Delivery| delivery.integration.identifier.clone())
}

/// An integration for e-mail, with another one behind it, and a workflow that uses it.
fn mail(world: &World) -> IntegrationId {
    ada(world);
    let first = world.active_integration("email", "first").id;
    world.active_integration("email", "second");
    world.active_integration("sms", "twilio");
    world.workflow_of("mail", &[email()]);
    first
}

#[test]
fn a_paused_integration_holds_its_messages_and_others_go_on() {
    on_both(|mut world| {
        let id = mail(&world);
        world.workflow_of("both", &[email(), sms()]);
        pause(&world, id);
        let sent = world.notify("both", "ada");

        let report = world.engine.delivery().run_due(100).unwrap();

        assert_eq!((report.sent, report.postponed, report.failed), (1, 1, 0));
        assert_eq!(told(&world), ["twilio"]);
        assert_eq!(world.statuses(sent), ["queued", "completed"]);
        assert_eq!(world.log(sent, 0), ["step_queued", "integration_paused"]);
        world.pass(HOUR);
        check_still(&world);
        world.restart_with(|builder| builder);
        check_still(&world);
        assert_eq!(held(&world), 1);

        resume(&world, id);
        assert_eq!(world.run_due(), Counts { sent: 1, ..Counts::default() });
        assert_eq!(told(&world), ["twilio", "first"]);
        assert_eq!(world.recorder.sent()[1].attempt(), 1);
        assert_eq!((world.statuses(sent), held(&world)), (vec!["completed".to_owned(); 2], 0));
        check_still(&world);
    });
}

#[test]
fn a_pause_is_visible_and_stays_until_the_integration_is_resumed() {
    on_both(|world| {
        let create = with(active_integration("email", "first"), json!({ "identifier": "first" }));
        let before = world.integration(create.clone());
        assert_eq!(wire(&before).get("pausedAt"), None);
        let at = world.tick();
        let integrations = world.env.integrations();

        let paused = integrations.pause(before.id).unwrap();

        assert_eq!(wire(&paused), with(wire(&before), json!({ "pausedAt": at })));
        world.tick();
        assert_eq!(world.unchanged(|| integrations.pause(before.id).unwrap()), paused);
        let declared = with(create, json!({ "name": "Changed" }));
        let declared = integrations.upsert(&parsed(declared)).unwrap();
        assert_eq!((declared.name.as_str(), declared.paused_at), ("Changed", Some(at)));
        assert_eq!(integrations.set_primary(before.id).unwrap().paused_at, Some(at));

        let resumed = integrations.resume(before.id).unwrap();
        assert_eq!(resumed.paused_at, None);
        assert_eq!(world.unchanged(|| integrations.resume(before.id).unwrap()), resumed);
        let unknown = "00000000-0000-7000-8000-000000000000";
        let refusal = format!("404 integration `{unknown}` is not there");
        world.refuses(&refusal, || integrations.pause(unknown));
        world.refuses(&refusal, || integrations.resume(unknown));
    });
}

#[test]
fn a_retry_that_is_held_is_the_same_message_later() {
    on_both(|world| {
        let id = mail(&world);
        world.notify("mail", "ada");
        world.recorder.refuse_next(SendError::retryable("busy"));
        assert_eq!(world.run_due().retried, 1);
        pause(&world, id);
        world.pass(HOUR);
        assert_eq!(world.engine.delivery().run_due(100).unwrap().postponed, 1);
        check_still(&world);
        let changed = parsed(json!({ "steps": [with(email(), json!({
            "template": { "subject": "Other", "body": "Other" } }))] }));
        world.env.workflows().update("mail", &changed).unwrap();

        resume(&world, id);
        assert_eq!(world.run_due(), Counts { sent: 1, ..Counts::default() });
        let sent = only(world.recorder.sent());
        assert_eq!(sent.attempt(), 2);
        assert_ne!(sent.message.subject.as_deref(), Some("Other"));
    });
}

#[test]
fn held_messages_are_canceled_and_expire() {
    on_both(|world| {
        let id = mail(&world);
        pause(&world, id);
        let event = |more: Value| {
            let event = with(json!({ "name": "mail", "to": "ada" }), more);
            only(world.trigger(event).notifications).notification_id
        };
        let canceled = event(json!({ "transactionId": "t" }));
        let late = event(json!({ "expiresAt": time("2026-11-20T12:30:00.000Z") }));
        assert_eq!(world.engine.delivery().run_due(100).unwrap().postponed, 2);

        assert_eq!(world.env.events().cancel("t").unwrap().canceled, 1);
        assert_eq!((world.statuses(canceled), held(&world)), (vec!["canceled".to_owned()], 1));
        world.pass(HOUR);
        resume(&world, id);
        world.run_due();

        assert_eq!(world.statuses(late), ["skipped"]);
        assert_eq!(told(&world).len(), 0);
        check_still(&world);
    });
}

#[test]
fn the_messages_of_an_integration_that_is_deleted_find_another_one() {
    on_both(|world| {
        let id = mail(&world);
        pause(&world, id);
        let sent = world.notify("mail", "ada");
        world.run_due();
        let mut delete = IntegrationDelete::default();
        delete.promote = true;
        world.env.integrations().delete(id, &delete).unwrap();

        assert_eq!(world.run_due(), Counts { sent: 1, ..Counts::default() });
        assert_eq!(
            (told(&world), world.statuses(sent)),
            (vec!["second".to_owned()], vec!["completed".to_owned()],)
        );
        check_still(&world);
    });
}

#[test]
fn a_message_waits_for_its_workflow_and_for_its_integration() {
    on_both(|world| {
        let id = mail(&world);
        pause(&world, id);
        world.notify("mail", "ada");
        assert_eq!(world.engine.delivery().run_due(100).unwrap().postponed, 1);
        world.env.workflows().pause("mail").unwrap();
        resume(&world, id);
        world.run_due();
        assert_eq!((told(&world).len(), held(&world)), (0, 1));
        check_still(&world);

        world.env.workflows().resume("mail").unwrap();
        assert_eq!(world.run_due(), Counts { sent: 1, ..Counts::default() });
        check_still(&world);
    });
}

#[test]
fn many_messages_are_released_some_at_a_time() {
    on_both(|world| {
        let id = mail(&world);
        pause(&world, id);
        let everybody: Vec<_> = (0..100)
            .map(|n| json!({ "subscriberId": format!("s{n}"), "email": "s@example.org" }))
            .collect();
        (0..3).for_each(|_| drop(world.trigger(json!({ "name": "mail", "to": everybody }))));
        assert_eq!(world.engine.delivery().run_due(1_000).unwrap().postponed, 300);
        check_still(&world);

        resume(&world, id);
        // The first release. Then the others wait, and those that were released wait again.
        assert_eq!(world.engine.delivery().run_due(1).unwrap().sent, 0);
        assert_eq!(held(&world), 100);
        pause(&world, id);
        assert_eq!(world.engine.delivery().run_due(1_000).unwrap().postponed, 200);
        assert_eq!(held(&world), 300);
        check_still(&world);

        resume(&world, id);
        world.engine.delivery().run_due(1_000).unwrap();
        let mut keys = names(&world.recorder.sent(), Delivery::idempotency_key);
        keys.sort();
        keys.dedup();
        assert_eq!((keys.len(), world.recorder.sent().len()), (300, 300));
        check_still(&world);
    });
}

#[test]
fn a_simulation_ends_when_only_held_messages_are_left() {
    on_both(|world| {
        let id = mail(&world);
        pause(&world, id);
        let sent = world.notify("mail", "ada");
        let end = world.now().after(HOUR * 24);
        let report = world.engine.delivery().run_until(end).unwrap();
        assert_eq!((report.postponed, report.sent, world.now()), (1, 0, end));
        assert!(matches!(world.notification(sent).jobs[0].status, JobStatus::Queued { .. }));

        resume(&world, id);
        world.engine.delivery().run_until(end.after(Duration::from_secs(1))).unwrap();
        assert_eq!(told(&world), ["first"]);
    });
}
