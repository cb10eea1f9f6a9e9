//! Fallbacks, and calls whose answer was lost.

use std::time::Duration;

use serde_json::{Value, json};
use tidings::SendError;
use tidings::ids::NotificationId;
use tidings::integration::{IntegrationCreate, OnUnknown};
use tidings::job::RetryPolicy;
use tidings::vocabulary::Channel;

use super::{ada, log, retryable};
use crate::world::{
    World, active_integration, email, names, on_both, on_both_with, only, parsed, wire, with,
};

#[test]
fn a_fallback_takes_over_after_two_failures() {
    on_both(|world| {
        let id = mailing(&world, &["first", "second"]);
        world.recorder.refuse_next(retryable("busy"));
        world.recorder.refuse_next(SendError::retry_after("busy", Duration::from_secs(7_200)));

        assert_eq!(world.run_due().retried, 1);
        world.pass(Duration::from_secs(60));
        // The pause is one of the first service, and the second one is asked at once.
        let report = world.run_due();

        assert_eq!((report.retried, report.sent), (1, 1));
        let sent = only(world.recorder.sent());
        assert_eq!((sent.integration.identifier.as_str(), sent.attempt()), ("second", 3));
        assert_eq!(
            log(&world.notification(id), 0),
            [
                "step_queued",
                "integration_selected: first",
                "provider_retry: busy",
                "integration_selected: first",
                "provider_retry: busy",
                "integration_switched: first",
                "integration_selected: second",
                "message_sent",
            ]
        );
        assert_eq!(wire(only(world.messages("ada")))["providerId"], "second");
    });
}

#[test]
fn an_integration_that_is_not_set_up_has_a_fallback_at_once() {
    on_both(|world| {
        let id = mailing(&world, &["first", "second", "third"]);
        world.recorder.refuse_next(SendError::misconfigured("no key"));
        world.recorder.refuse_next(SendError::misconfigured("no host"));

        let report = world.run_due();

        assert_eq!((report.retried, report.sent, report.failed), (2, 1, 0));
        let sent = only(world.recorder.sent());
        assert_eq!(sent.integration.identifier.as_str(), "third");
        assert_eq!(log(&world.notification(id), 0)[3], "integration_switched: first");

        // Where each one lacks a setting, the message fails.
        let id = world.notify("mail", "ada");
        for _ in 0..3 {
            world.recorder.refuse_next(SendError::misconfigured("no key"));
        }
        assert_eq!(world.run_due().failed, 1);
        let last = log(&world.notification(id), 0).pop().unwrap();
        assert_eq!(last, "provider_error: not set up: no key");
    });
}

/// One row per number of attempts and kind of failures: the calls. Each fallback that takes over has a call
/// behind the last attempt of the policy.
#[test]
fn a_fallback_takes_over_behind_the_last_attempt() {
    let (busy, lacking) = (retryable("busy"), SendError::misconfigured("no key"));
    let rows: [(u32, SendError, &[&str]); 7] = [
        (1, busy.clone(), &["first"]),
        (2, busy.clone(), &["first", "first", "second"]),
        (3, busy.clone(), &["first", "first", "second"]),
        (4, busy.clone(), &["first", "first", "second", "second", "third"]),
        (5, busy.clone(), &["first", "first", "second", "second", "third"]),
        (6, busy.clone(), &["first", "first", "second", "second", "third", "third"]),
        (1, lacking, &["first", "second", "third"]),
    ];
    for (attempts, failure, calls) in rows {
        on_both_with(
            |builder| builder.retry(RetryPolicy::new(attempts, Duration::from_secs(1))),
            |world| {
                let id = mailing(&world, &["first", "second", "third"]);
                for _ in calls {
                    world.recorder.refuse_next(failure.clone());
                }
                for _ in 0..10 {
                    world.run_due();
                    world.pass(Duration::from_secs(60));
                }
                let called = log(&world.notification(id), 0);
                let called: Vec<_> = called
                    .iter()
                    .filter_map(|line| line.strip_prefix("integration_selected: "))
                    .collect();
                assert_eq!(called, *calls, "{attempts}");
                assert!(world.recorder.sent().is_empty(), "{attempts}");
            },
        );
    }
}

#[test]
fn a_provider_that_is_not_registered_has_a_fallback() {
    on_both(|world| {
        mailing(&world, &["first", "second"]);
        let own = tidings::RecordingProvider::default();
        let engine = testkit::sealed::builder().clock(world.clock.clone());
        let engine = engine.provider("second", own.clone()).build(world.store.clone());

        assert_eq!(engine.delivery().run_due(10).unwrap().sent, 1);
        assert_eq!(only(own.sent()).integration.identifier.as_str(), "second");
    });
}

#[test]
fn a_refused_message_has_no_fallback() {
    on_both(|world| {
        mailing(&world, &["first", "second"]);
        world.recorder.refuse_next(SendError::permanent("spam"));
        assert_eq!(world.run_due().failed, 1);
        assert_eq!(world.recorder.sent().len(), 0);
    });
}

#[test]
fn fallbacks_are_declared_and_changed() {
    on_both(|world| {
        let integrations = world.env.integrations();
        let mail = IntegrationCreate::new("ses", Channel::Email).unwrap();
        let mail = mail.identifier("spare").unwrap().fallback(2).on_unknown(OnUnknown::GiveUp);
        let created = integrations.upsert(&mail).unwrap();
        assert_eq!((created.fallback, created.on_unknown), (Some(2), OnUnknown::GiveUp));
        // A fallback does not become primary by itself.
        assert!(!created.is_primary());
        world.unchanged(|| integrations.upsert(&mail).unwrap());

        let update = parsed(json!({ "fallback": null, "onUnknown": "resend_with_key" }));
        let changed = integrations.update(created.id, &update).unwrap();
        assert_eq!((changed.fallback, changed.on_unknown), (None, OnUnknown::ResendWithKey));

        let chat = with(active_integration("chat", "slack"), json!({ "fallback": 1 }));
        world.refuses(
            "422 `fallback` must be left out: only e-mail and text messages have fallbacks",
            || integrations.create(&parsed(chat.clone())),
        );
    });
}

#[test]
fn a_lost_answer_is_followed_by_what_the_integration_says() {
    for (on_unknown, then) in
        [("resend", "second"), ("resend_with_key", "first"), ("give_up", "nobody")]
    {
        on_both(|world| {
            let id = mailing(&world, &["first", "second"]);
            set(&world, json!({ "onUnknown": on_unknown }));
            for _ in 0..2 {
                world.recorder.refuse_next(SendError::unknown("timeout"));
            }
            world.run_due();
            world.pass(Duration::from_secs(60));
            world.run_due();
            world.pass(Duration::from_secs(120));
            world.run_due();

            let senders = names(&world.recorder.sent(), |sent| sent.integration.identifier.clone());
            let sender = senders.first().map_or("nobody", String::as_str);
            assert_eq!(sender, then, "{on_unknown}");
            let status = if then == "nobody" { "failed" } else { "completed" };
            assert_eq!(world.statuses(id), [status], "{on_unknown}");
            if then == "nobody" {
                let last = log(&world.notification(id), 0).pop().unwrap();
                assert_eq!(last, "answer_lost: no answer: timeout");
            }
        });
    }
}

#[test]
fn a_crash_during_a_call_is_a_lost_answer() {
    for (on_unknown, status, calls) in
        [("resend", "completed", 1), ("resend_with_key", "completed", 1), ("give_up", "failed", 0)]
    {
        on_both(|world| {
            let id = mailing(&world, &["first"]);
            set(&world, json!({ "onUnknown": on_unknown }));
            let mortal = world.mortal_engine(|builder| builder, |_| {});
            mortal.delivery().run_due(1).unwrap_err();
            world.pass(Duration::from_secs(301));

            world.run_due();

            assert_eq!(world.statuses(id), [status], "{on_unknown}");
            assert_eq!(world.recorder.sent().len(), calls, "{on_unknown}");
            if calls == 0 {
                let log = log(&world.notification(id), 0);
                assert_eq!(log, ["step_queued", "lease_expired", "answer_lost"]);
            }
        });
    }
}

#[test]
fn a_message_that_was_claimed_and_not_called_is_sent_after_a_crash() {
    on_both(|world| {
        let first = mailing(&world, &["first"]);
        set(&world, json!({ "onUnknown": "give_up" }));
        let second = world.notify("mail", "ada");
        let mortal = world.mortal_engine(|builder| builder, |_| {});
        mortal.delivery().run_due(2).unwrap_err();
        world.pass(Duration::from_secs(301));

        world.run_due();

        // Only the call of the first one had begun.
        assert_eq!(world.statuses(first), ["failed"]);
        assert_eq!(world.statuses(second), ["completed"]);
    });
}

// Triggers an e-mail to `ada`. The first of the integrations is primary, the others are fallbacks.
fn mailing(world: &World, integrations: &[&str]) -> NotificationId {
    ada(world);
    world.workflow_of("mail", &[email()]);
    for (place, name) in integrations.iter().enumerate() {
        let fallback = if place == 0 { json!({}) } else { json!({ "fallback": place }) };
        world.integration(with(active_integration("email", name), fallback));
    }
    world.notify("mail", "ada")
}

// Changes the first integration.
fn set(world: &World, update: Value) {
    let first = world.env.integrations().list().unwrap().remove(0);
    world.env.integrations().update(first.id, &parsed(update)).unwrap();
}
