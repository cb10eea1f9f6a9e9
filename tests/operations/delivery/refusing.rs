//! What is not sent: because it should not be, and because it cannot be.

use std::time::Duration;

use serde_json::{Value, json};
use tidings::SendError;
use tidings::job::RetryPolicy;

use super::{ada, error, log, queued_email};
use crate::world::{
    Counts, World, active_integration, email, id, in_app, on_both, on_both_with, only, parsed,
    payload_is, sms, wire, with, workflow_of,
};

const NOTHING: Counts = Counts { sent: 0, retried: 0, failed: 0, skipped: 0, superseded: 0 };
const SKIPPED: Counts = Counts { skipped: 1, ..NOTHING };
const FAILED: Counts = Counts { sent: 0, retried: 0, failed: 1, skipped: 0, superseded: 0 };

#[test]
fn a_preference_keeps_a_message_back() {
    #[track_caller]
    fn check(workflow: &Value, said: &Value, detail: &str) {
        on_both(|world| {
            ada(&world);
            world.active_integration("email", "sendgrid");
            world.workflow(with(workflow_of("mail", &[email(), in_app()]), workflow.clone()));
            say(&world, said);
            let notification = world.notify("mail", "ada");

            assert_eq!(world.run_due(), NOTHING);
            assert_eq!(world.recorder.sent().len(), 0);
            let notification = world.notification(notification);
            assert_eq!(log(&notification, 0), [detail]);
            assert_eq!(world.statuses(notification.id), ["skipped", "completed"]);
            // Nothing was tried, so there is nothing to list.
            assert_eq!(only(world.messages("ada")).channel.as_str(), "in_app");
        });
    }

    check(
        &json!({ "preferenceSettings": { "email": false } }),
        &json!({}),
        "filtered_by_workflow_preference",
    );
    check(
        &json!({}),
        &json!({ "global": { "email": false } }),
        "filtered_by_subscriber_global_preference",
    );
    check(
        &json!({ "preferenceSettings": { "email": true } }),
        &json!({ "global": { "email": true }, "specific": { "email": false } }),
        "filtered_by_subscriber_workflow_preference",
    );
    // A critical workflow keeps its own word only.
    check(
        &json!({ "critical": true, "preferenceSettings": { "email": false } }),
        &json!({ "global": { "email": true } }),
        "filtered_by_workflow_preference",
    );
}

#[test]
fn a_critical_workflow_is_sent_whatever_its_subscriber_says() {
    on_both(|world| {
        ada(&world);
        world.active_integration("email", "sendgrid");
        world.workflow(with(workflow_of("mail", &[email()]), json!({ "critical": true })));
        say(&world, &json!({ "global": { "email": false } }));

        world.notify("mail", "ada");

        assert_eq!(world.run_due().sent, 1);
    });
}

#[test]
fn a_preference_holds_for_its_own_contexts() {
    on_both(|world| {
        ada(&world);
        world.active_integration("email", "sendgrid");
        world.workflow_of("mail", &[email()]);
        let ada = id("ada");
        let off = json!({ "channels": { "email": false }, "context": { "tenant": "acme" } });
        world.env.preferences(&ada).unwrap().update_global(&parsed(off)).unwrap();
        let report = |fields: Value| {
            let event = with(json!({ "name": "mail", "to": "ada" }), fields);
            world.trigger(event);
            world.run_due()
        };

        assert_eq!(report(json!({ "context": { "tenant": "acme" } })), NOTHING);
        assert_eq!(report(json!({ "context": { "tenant": "globex" } })).sent, 1);
        assert_eq!(report(json!({ "context": { "tenant": "acme", "app": "shop" } })).sent, 1);
        assert_eq!(report(json!({})).sent, 1);

        // P10: a preference for no context says nothing about one.
        let everywhere = json!({ "channels": { "email": false } });
        world.env.preferences(&ada).unwrap().update_global(&parsed(everywhere)).unwrap();
        assert_eq!(report(json!({})), NOTHING);
        assert_eq!(report(json!({ "context": { "tenant": "globex" } })).sent, 1);
    });
}

#[test]
fn what_is_wanted_is_decided_when_it_is_sent() {
    on_both(|world| {
        let off = queued_email(&world);
        say(&world, &json!({ "specific": { "email": false } }));
        assert_eq!(world.run_due(), SKIPPED);
        assert_eq!(world.statuses(off), ["skipped"]);

        say(&world, &json!({ "specific": { "email": true } }));
        world.notify("mail", "ada");
        assert_eq!(world.run_due().sent, 1);
    });
}

#[test]
fn a_condition_keeps_a_message_back_and_says_why() {
    on_both(|world| {
        ada(&world);
        world.active_integration("email", "sendgrid");
        let guarded = with(email(), json!({ "filters": [payload_is("vip", "true")] }));
        world.workflow_of("mail", &[guarded, in_app()]);

        let id = world.notify("mail", "ada");

        assert_eq!(world.run_due(), NOTHING);
        assert_eq!(world.statuses(id), ["skipped", "completed"]);
        let [entry] = &world.notification(id).jobs[0].execution_details[..] else {
            panic!("one entry")
        };
        assert_eq!(entry.detail.as_str(), "filtered_by_step_conditions");
        let report: Value = serde_json::from_str(entry.raw.as_deref().unwrap()).unwrap();
        let check = json!({
            "field": "vip", "operator": "EQUAL", "on": "payload", "expected": "true", "held": false,
        });
        assert_eq!(report, json!({ "holds": false, "checks": [check] }));

        world.trigger(json!({ "name": "mail", "to": "ada", "payload": { "vip": true } }));
        assert_eq!(world.run_due().sent, 1);
    });
}

#[test]
fn a_subscriber_without_an_address_is_not_sent_anything() {
    on_both(|world| {
        let check = |step: Value, profile: Value, detail: &str| {
            world.subscriber(with(json!({ "subscriberId": "ada" }), profile));
            world.workflow_of("any", &[step, in_app()]);

            let notification = world.notify("any", "ada");
            let report = world.run_due();

            assert_eq!(report, SKIPPED, "{detail}");
            assert_eq!(log(&world.notification(notification), 0), ["step_queued", detail]);
            assert_eq!(world.statuses(notification), ["skipped", "completed"], "{detail}");
            world.env.workflows().delete("any").unwrap();
            world.env.subscribers().delete(id("ada")).unwrap();
        };
        for channel in ["email", "sms", "chat", "push"] {
            world.active_integration(channel, channel);
        }

        check(email(), json!({}), "missing_email");
        check(sms(), json!({}), "missing_phone");
        check(sms(), json!({ "phone": "" }), "missing_phone");
        check(with(sms(), json!({ "type": "chat" })), json!({}), "missing_chat_webhook");
        check(push(), json!({}), "missing_push_tokens");
    });
}

#[test]
fn settings_of_another_integration_are_no_address() {
    on_both(|world| {
        let old = world.active_integration("push", "old");
        world.subscriber(json!({ "subscriberId": "ada", "channels": [{
            "providerId": "fcm",
            "_integrationId": old.id,
            "credentials": { "deviceTokens": ["phone"] },
        }] }));
        world.workflow_of("push", &[push()]);
        let retire = json!({ "active": false });
        world.env.integrations().update(old.id, &parsed(retire)).unwrap();
        world.active_integration("push", "new");

        let id = world.notify("push", "ada");

        assert_eq!(world.run_due(), SKIPPED);
        assert_eq!(log(&world.notification(id), 0), ["step_queued", "missing_push_tokens"]);
    });
}

#[test]
fn what_is_deleted_is_not_sent() {
    on_both(|world| {
        let gone = queued_email(&world);
        world.env.subscribers().delete(id("ada")).unwrap();
        // Somebody else of the same name.
        ada(&world);

        assert_eq!(world.run_due(), SKIPPED);
        assert_eq!(log(&world.notification(gone), 0), ["step_queued", "subscriber_deleted"]);

        let gone = world.notify("mail", "ada");
        world.env.workflows().delete("mail").unwrap();
        assert_eq!(world.run_due(), SKIPPED);
        assert_eq!(log(&world.notification(gone), 0), ["step_queued", "workflow_deleted"]);

        world.workflow_of("mail", &[email()]);
        let gone = world.notify("mail", "ada");
        let update = json!({ "steps": [sms()] });
        world.env.workflows().update("mail", &parsed(update)).unwrap();
        assert_eq!(world.run_due(), SKIPPED);
        assert_eq!(log(&world.notification(gone), 0), ["step_queued", "step_deleted"]);
        assert_eq!(world.recorder.sent().len(), 0);
    });
}

#[test]
fn a_message_says_what_its_workflow_says_when_it_is_sent() {
    on_both(|world| {
        queued_email(&world);
        let step = world.env.workflows().get("mail").unwrap().steps[0].id;
        let template = json!({ "subject": "New", "body": "<p>New</p>" });
        let changed = with(email(), json!({ "_id": step, "template": template }));
        world.env.workflows().update("mail", &parsed(json!({ "steps": [changed] }))).unwrap();

        world.run_due();

        assert_eq!(only(world.messages("ada")).subject.as_deref(), Some("New"));
    });
}

#[test]
fn a_failure_for_good_is_listed_and_ends_its_job() {
    let because = |reason: &str| reason.to_owned();
    for (refusal, text) in [
        (SendError::permanent(because("spam")), "refused: spam"),
        (SendError::recipient_gone(because("bounced")), "the recipient is gone: bounced"),
        (SendError::misconfigured(because("no key")), "not set up: no key"),
    ] {
        on_both(|world| {
            let id = queued_email(&world);
            world.recorder.refuse_next(refusal.clone());

            let report = world.run_due();

            assert_eq!(report, FAILED);
            let message = only(world.messages("ada"));
            assert_eq!(message.status, error("provider_error", text));
            assert_eq!(message.delivered_at, []);
            let shown = wire(&message);
            assert_eq!(shown["status"], "error");
            assert_eq!(
                (&shown["errorId"], &shown["errorText"]),
                (&json!("provider_error"), &json!(text))
            );
            let notification = world.notification(id);
            assert_eq!(world.statuses(id), ["failed"]);
            assert_eq!(only(&notification.jobs).message_id, Some(message.id));
            assert_eq!(
                log(&notification, 0),
                [
                    "step_queued",
                    "integration_selected: sendgrid",
                    &format!("provider_error: {text}"),
                ]
            );
            // Nobody comes back to it.
            world.pass(std::time::Duration::from_secs(86_400));
            assert_eq!(world.run_due(), Counts::default());
        });
    }
}

#[test]
fn without_an_integration_a_job_fails() {
    on_both(|world| {
        ada(&world);
        let off = active_integration("email", "asleep");
        world.integration(with(off, json!({ "active": false })));
        world.active_integration("sms", "twilio");
        world.workflow_of("mail", &[email(), in_app()]);

        let id = world.notify("mail", "ada");
        let report = world.run_due();

        assert_eq!(report, FAILED);
        assert_eq!(world.statuses(id), ["failed", "completed"]);
        assert_eq!(log(&world.notification(id), 0), ["step_queued", "no_active_integration"]);
    });
}

#[test]
fn without_a_provider_a_message_fails() {
    on_both_with(
        |_| {
            let builder =
                testkit::sealed::builder().retry(RetryPolicy::new(1, Duration::from_secs(1)));
            builder.provider("twilio", tidings::RecordingProvider::default())
        },
        |world| {
            let id = queued_email(&world);

            let report = world.run_due();

            assert_eq!(report, FAILED);
            let text = "no provider is registered for `sendgrid`";
            assert_eq!(only(world.messages("ada")).status, error("provider_missing", text));
            assert_eq!(world.statuses(id), ["failed"]);
            let last = log(&world.notification(id), 0).pop().unwrap();
            assert_eq!(last, format!("provider_missing: {text}"));
        },
    );
}

#[test]
fn what_does_not_render_fails() {
    on_both(|world| {
        ada(&world);
        world.active_integration("email", "sendgrid");
        let template = json!({ "subject": "Hello", "body": "{{ payload.n / 0 }}" });
        world.workflow_of("mail", &[with(email(), json!({ "template": template })), in_app()]);

        let id = world.notify("mail", "ada");
        let report = world.run_due();

        assert_eq!(report, FAILED);
        assert_eq!(world.statuses(id), ["failed", "completed"]);
        let entry = log(&world.notification(id), 0).pop().unwrap();
        assert!(entry.starts_with("content_not_generated: "), "{entry}");
    });
}

#[test]
fn a_step_that_matters_stops_those_after_it_when_it_fails() {
    on_both(|world| {
        ada(&world);
        world.active_integration("email", "sendgrid");
        let check = |stops: bool, fails: bool, expected: &[&str]| {
            let first = with(email(), json!({ "shouldStopOnFail": stops }));
            let name = format!("mail-{stops}-{fails}");
            world.workflow_of(&name, &[first, in_app(), in_app()]);
            if fails {
                world.recorder.refuse_next(SendError::permanent("no"));
            }
            let id = world.notify(&name, "ada");
            world.run_due();
            assert_eq!(world.statuses(id), expected);
            world.notification(id)
        };

        check(false, false, &["completed", "completed", "completed"]);
        check(true, false, &["completed", "completed", "completed"]);
        check(false, true, &["failed", "completed", "completed"]);
        let stopped = check(true, true, &["failed", "canceled", "canceled"]);
        assert_eq!(log(&stopped, 1), ["preceding_step_failed"]);
        assert_eq!(log(&stopped, 2), ["preceding_step_failed"]);

        // What is not to be sent has not failed.
        say(&world, &json!({ "global": { "email": false } }));
        let id = world.notify("mail-true-false", "ada");
        world.run_due();
        assert_eq!(world.statuses(id), ["skipped", "completed", "completed"]);
    });
}

pub fn push() -> Value {
    json!({ "type": "push", "template": { "title": "News", "body": "Hello" } })
}

// Writes down what `ada` says about everything, and about `mail`.
fn say(world: &World, said: &Value) {
    let ada = id("ada");
    let preferences = world.env.preferences(&ada).unwrap();
    if let Some(channels) = said.get("global") {
        preferences.update_global(&parsed(json!({ "channels": channels }))).unwrap();
    }
    if let Some(channels) = said.get("specific") {
        let update = json!({ "preferences": [{ "workflowId": "mail", "channels": channels }] });
        preferences.update_bulk(&parsed(update)).unwrap();
    }
}
