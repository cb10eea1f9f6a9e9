//! Circuits: an integration that keeps failing is left alone for a while.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::interposed::Point;
use tidings::circuit::{Circuit, CircuitPolicy};
use tidings::integration::{IntegrationUpdate, OnUnknown};
use tidings::{Builder, Delivery, SendError};

use super::refusing::push;
use super::retryable;
use crate::world::{Counts, World, email, names, on_both_with, parsed, sms, with};

const SECOND: Duration = Duration::from_secs(1);

// Three failures within a minute open a circuit for ten seconds.
fn policy(builder: Builder) -> Builder {
    builder.circuit(CircuitPolicy::new(3, SECOND * 60).pause(SECOND * 10))
}

fn prepared(world: &World) {
    world.active_integration("email", "ses");
    let phone = json!({ "subscriberId": "ada", "email": "ada@example.org", "phone": "+491" });
    world.subscriber(phone);
    world.workflow_of("mail", &[email()]);
}

fn fail(world: &World, times: usize) {
    for _ in 0..times {
        world.recorder.refuse_next(retryable("down"));
    }
}

fn circuit(world: &World) -> Circuit {
    let health = world.env.integrations().health().unwrap();
    health.into_iter().find(|one| one.identifier.as_str() == "ses").unwrap().circuit
}

fn held(world: &World) -> usize {
    world.engine.delivery().run_due(usize::MAX).unwrap().postponed
}

/// The messages behind the failures wait without an attempt. After the pause one of them is the
/// probe, and after its success the others follow.
#[test]
fn an_integration_that_keeps_failing_is_left_alone() {
    on_both_with(policy, |world| {
        prepared(&world);
        fail(&world, 3);
        let ids: Vec<_> = (0..6).map(|_| world.notify("mail", "ada")).collect();

        let report = world.engine.delivery().run_due(usize::MAX).unwrap();
        assert_eq!((report.retried, report.sent, report.postponed), (3, 0, 3));
        let until = world.now().after(SECOND * 10);
        assert_eq!(circuit(&world), Circuit::Open { until, probes: 0 });
        assert_eq!(world.engine.delivery().next_due().unwrap(), Some(until));
        assert_eq!(held(&world), 0);

        world.pass(SECOND * 10);
        assert_eq!(world.run_due().sent, 3);
        assert_eq!(circuit(&world), Circuit::default());
        let attempts = names(&world.recorder.sent(), Delivery::attempt);
        assert_eq!(attempts, ["1", "1", "1"]);
        world.pass(SECOND * 60);
        assert_eq!(world.run_due().sent, 3);
        for id in ids {
            assert_eq!(world.statuses(id), ["completed"]);
        }
    });
}

/// A probe that fails doubles the pause, and no other call is made.
#[test]
fn a_probe_that_fails_opens_the_circuit_again() {
    on_both_with(policy, |world| {
        prepared(&world);
        fail(&world, 4);
        for _ in 0..5 {
            world.notify("mail", "ada");
        }
        assert_eq!(held(&world), 2);
        world.pass(SECOND * 10);
        let report = world.engine.delivery().run_due(usize::MAX).unwrap();
        assert_eq!((report.retried, report.sent), (1, 0));
        let until = world.now().after(SECOND * 20);
        assert_eq!(circuit(&world), Circuit::Open { until, probes: 1 });
        world.pass(SECOND * 20);
        assert_eq!(world.run_due().sent, 5);
    });
}

/// The store fails before the call. The message is the probe as soon as the store goes on.
#[test]
fn a_probe_that_was_not_made_ends_no_later_one() {
    on_both_with(policy, |world| {
        prepared(&world);
        let ses = world.env.integrations().list().unwrap()[0].id;
        let update = IntegrationUpdate::default().on_unknown(OnUnknown::GiveUp);
        world.env.integrations().update(ses, &update).unwrap();
        fail(&world, 3);
        for _ in 0..4 {
            world.notify("mail", "ada");
        }
        assert_eq!(held(&world), 1);
        world.pass(SECOND * 10);
        // The claim is stored, and the note of the call is not.
        world.store.fail(Point::Write, 1);
        world.engine.delivery().run_due(1).unwrap_err();

        assert_eq!(world.run_due().sent, 1);
        assert_eq!(circuit(&world), Circuit::default());
    });
}

/// A message is not attempted by an integration that is left alone, if there is another one.
#[test]
fn a_fallback_takes_over_at_once() {
    on_both_with(policy, |world| {
        prepared(&world);
        let fallback = json!({
            "providerId": "mailgun", "channel": "email", "identifier": "mailgun", "active": true,
            "fallback": 1,
        });
        world.integration(fallback);
        for _ in 0..3 {
            world.recorder.refuse_next(SendError::misconfigured("no key"));
            world.notify("mail", "ada");
            assert_eq!(world.run_due(), Counts { sent: 1, retried: 1, ..Counts::default() });
        }
        assert!(matches!(circuit(&world), Circuit::Open { .. }));

        world.notify("mail", "ada");
        assert_eq!(world.run_due(), Counts { sent: 1, ..Counts::default() });
        let sent = world.recorder.sent().pop().unwrap();
        assert_eq!((sent.attempt(), &*sent.integration.provider_id), (1, "mailgun"));

        // The probe goes through the first one again.
        world.pass(SECOND * 10);
        world.notify("mail", "ada");
        assert_eq!(world.run_due().sent, 1);
        assert_ne!(world.recorder.sent().pop().unwrap().integration.provider_id, "mailgun");
    });
}

/// What is refused for its content or its recipient tells nothing of the integration.
#[test]
fn refusals_of_messages_open_no_circuit() {
    on_both_with(policy, |world| {
        prepared(&world);
        for _ in 0..4 {
            world.recorder.refuse_next(SendError::permanent("no"));
            world.recorder.refuse_next(SendError::recipient_gone("no"));
            world.notify("mail", "ada");
            world.notify("mail", "ada");
        }
        assert_eq!(world.run_due(), Counts { failed: 8, ..Counts::default() });
        assert_eq!(circuit(&world), Circuit::default());
    });
}

/// A server of one subscriber that is down says nothing of those of the others, which have the same
/// integration: a webhook, and the push service of a browser.
#[test]
fn servers_of_recipients_that_are_down_open_no_circuit() {
    let browser = json!({ "endpoint": "https://push.example/ada", "keys": {} }).to_string();
    let chat = with(sms(), json!({ "type": "chat" }));
    for (channel, provider, credentials, step) in [
        ("chat", "slack", json!({ "webhookUrl": "https://chat.example/ada" }), chat),
        ("push", "push-webhook", json!({ "deviceTokens": [browser] }), push()),
    ] {
        servers_that_are_down_open_no_circuit((channel, provider), &credentials, &step);
    }
}

fn servers_that_are_down_open_no_circuit(
    (channel, provider): (&str, &str),
    credentials: &Value,
    step: &Value,
) {
    on_both_with(policy, |world| {
        let integration = world.integration(json!({
            "providerId": provider, "channel": channel, "identifier": "ses", "active": true,
        }));
        world.subscriber(json!({ "subscriberId": "ada", "channels": [{
            "providerId": provider,
            "_integrationId": integration.id,
            "credentials": credentials,
        }] }));
        world.workflow_of("chat", std::slice::from_ref(step));
        fail(&world, 3);
        for _ in 0..3 {
            world.recorder.refuse_next(SendError::unknown("no answer"));
        }
        for _ in 0..7 {
            world.notify("chat", "ada");
        }
        assert_eq!(world.run_due(), Counts { sent: 1, retried: 6, ..Counts::default() });
        assert_eq!(circuit(&world), Circuit::default());

        // A setting that the integration lacks is one for all of them.
        for _ in 0..3 {
            world.recorder.refuse_next(SendError::misconfigured("no key"));
            world.notify("chat", "ada");
        }
        assert_eq!(world.run_due().failed, 3);
        assert!(matches!(circuit(&world), Circuit::Open { .. }));
    });
}

#[test]
fn a_change_of_the_integration_closes_its_circuit() {
    on_both_with(policy, |world| {
        prepared(&world);
        world.active_integration("sms", "twilio");
        world.workflow_of("text", &[sms()]);
        fail(&world, 3);
        for _ in 0..3 {
            world.notify("mail", "ada");
        }
        assert_eq!(world.run_due().retried, 3);
        // The circuit of another integration is its own.
        world.notify("text", "ada");
        assert_eq!(world.run_due().sent, 1);
        assert!(matches!(circuit(&world), Circuit::Open { .. }));
        let all = world.env.integrations().list_active().unwrap();
        let ses = all.iter().find(|one| one.identifier.as_str() == "ses").unwrap();
        world.env.integrations().update(ses.id, &parsed(json!({ "name": "New" }))).unwrap();
        assert_eq!(circuit(&world), Circuit::default());
        world.notify("mail", "ada");
        assert_eq!(world.run_due().sent, 1);
    });
}

#[test]
fn circuits_may_be_switched_off() {
    on_both_with(
        |builder| builder.circuit(None),
        |world| {
            prepared(&world);
            fail(&world, 40);
            for _ in 0..41 {
                world.notify("mail", "ada");
            }
            assert_eq!(world.run_due(), Counts { retried: 40, sent: 1, ..Counts::default() });
        },
    );
}
