//! Trying again when a provider cannot send right now.

use std::time::Duration;

use serde_json::json;
use tidings::ids::SendId;
use tidings::job::{JobStatus, RetryPolicy};
use tidings::time::Timestamp;
use tidings::vocabulary::ProviderId;
use tidings::{Delivery, SendError};

use super::{error, log, queued_email, retryable};
use crate::world::{Counts, World, email, in_app, names, on_both, on_both_with, only, wire, with};

const RETRIED: Counts = Counts { sent: 0, retried: 1, failed: 0, skipped: 0, superseded: 0 };
const NOTHING: Counts = Counts { sent: 0, retried: 0, failed: 0, skipped: 0, superseded: 0 };

#[test]
fn a_job_names_the_provider_of_its_latest_try() {
    on_both(|world| {
        let id = queued_email(&world);
        world.recorder.refuse_next(retryable("busy"));
        world.run_due();
        assert_eq!(only(world.notification(id).jobs).provider_id, ProviderId::Sendgrid);

        let own = world.active_integration("email", "our-relay");
        world.env.integrations().set_primary(own.id).unwrap();
        world.pass(Duration::from_secs(60));
        world.run_due();

        // What only the host knows has no name of its own in a job.
        assert_eq!(only(world.notification(id).jobs).provider_id, ProviderId::SvcEmail);
    });
}

#[test]
fn as_much_is_kept_of_what_a_provider_says_as_is_worth_keeping() {
    on_both(|world| {
        let id = queued_email(&world);
        world.recorder.refuse_next(SendError::permanent("x".repeat(5_000)));
        world.run_due();

        let log = only(world.notification(id).jobs).execution_details;
        assert_eq!(log.last().unwrap().raw.as_ref().unwrap().len(), 1_000);
    });
}

#[test]
fn a_message_whose_answer_was_lost_is_tried_again_with_its_key() {
    on_both(|world| {
        let id = queued_email(&world);
        world.recorder.refuse_next(SendError::unknown("reset"));
        assert_eq!(world.run_due(), RETRIED);

        world.clock.set(due_at(&world, id, 1));
        world.run_due();

        let log = log(&world.notification(id), 0);
        assert!(log.contains(&"provider_retry: no answer: reset".into()), "{log:?}");
        let sent = only(world.recorder.sent());
        assert_eq!(sent.idempotency_key(), only(world.notification(id).jobs).id.into());
    });
}

#[test]
fn a_message_is_tried_again_when_its_policy_says() {
    on_both(|world| {
        let policy = RetryPolicy::default();
        let id = queued_email(&world);

        for attempts in 1..policy.attempts {
            world.recorder.refuse_next(retryable("busy"));
            let failed_at = world.now();
            assert_eq!(world.run_due(), RETRIED, "{attempts}");

            let due_at = due_at(&world, id, attempts);
            let soonest = failed_at.after(policy.next(attempts, u16::MAX).unwrap());
            let latest = failed_at.after(policy.next(attempts, 0).unwrap());
            assert!((soonest..=latest).contains(&due_at), "{attempts}: {due_at}");

            world.clock.set(Timestamp::from_millis(due_at.as_millis() - 1));
            assert_eq!(world.run_due(), NOTHING, "{attempts}");
            world.clock.set(due_at);
        }

        // The last try of the eight.
        world.recorder.refuse_next(retryable("still busy"));
        assert_eq!(world.run_due(), Counts { failed: 1, ..NOTHING });
        assert_eq!(world.statuses(id), ["failed"]);
        let message = only(world.messages("ada"));
        assert_eq!(message.status, error("provider_error", "still busy"));
        world.pass(Duration::from_secs(86_400));
        assert_eq!(world.run_due(), NOTHING);
    });
}

#[test]
fn a_message_that_gets_through_in_the_end_is_listed_once() {
    on_both(|world| {
        let id = queued_email(&world);
        world.recorder.refuse_next(retryable("busy"));
        world.recorder.refuse_next(retryable("busy"));

        for expected in [RETRIED, RETRIED, Counts { sent: 1, ..NOTHING }] {
            assert_eq!(world.run_due(), expected);
            world.pass(Duration::from_secs(60));
        }

        assert_eq!(wire(only(world.messages("ada")))["status"], "sent");
        let notification = world.notification(id);
        assert_eq!(
            log(&notification, 0),
            [
                "step_queued",
                "integration_selected: sendgrid",
                "provider_retry: busy",
                "integration_selected: sendgrid",
                "provider_retry: busy",
                "integration_selected: sendgrid",
                "message_sent",
            ]
        );
        let details = &only(notification.jobs).execution_details;
        assert_eq!(
            names(details, |entry| entry.is_retry),
            ["false", "false", "false", "true", "true", "true", "true"]
        );
    });
}

#[test]
fn a_service_that_asks_to_be_left_alone_is() {
    let check = |after: u64, expected: fn(Duration) -> bool| {
        on_both(|world| {
            let id = queued_email(&world);
            let later = SendError::retry_after("later", Duration::from_secs(after));
            world.recorder.refuse_next(later);
            let failed_at = world.now();

            assert_eq!(world.run_due(), RETRIED);

            let wait = due_at(&world, id, 1).since(failed_at);
            assert!(expected(wait), "{wait:?}");
        });
    };

    check(3_600, |wait| wait == Duration::from_secs(3_600));
    // Being asked for less does not make it hurry.
    check(1, |wait| wait > Duration::from_secs(10));
}

#[test]
fn every_try_is_for_the_same_message() {
    on_both(|world| {
        let told = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let notebook = std::sync::Arc::clone(&told);
        let refusing = super::Told(move |delivery: &Delivery| {
            notebook.lock().unwrap().push(delivery.idempotency_key());
            Err(retryable("busy"))
        });
        let engine = world.engine_with(|builder| builder.default_provider(refusing));
        let id = queued_email(&world);
        let other = world.notify("mail", "ada");

        for _ in 0..3 {
            engine.delivery().run_due(usize::MAX).unwrap();
            world.pass(Duration::from_secs(60));
        }

        let mut keys = [id, other].map(|id| SendId::from(world.notification(id).jobs[0].id));
        keys.sort();
        let mut told = std::mem::take(&mut *told.lock().unwrap());
        // The random part of the intervals decides who is first.
        told.chunks_mut(2).for_each(<[_]>::sort);
        assert_eq!(told, keys.repeat(3));
    });
}

#[test]
fn a_policy_of_one_try_does_not_try_again() {
    let policy = RetryPolicy::new(1, Duration::from_secs(1));
    on_both_with(
        move |builder| builder.retry(policy),
        |world| {
            let id = queued_email(&world);
            world.recorder.refuse_next(retryable("busy"));

            assert_eq!(world.run_due(), Counts { failed: 1, ..NOTHING });
            assert_eq!(world.statuses(id), ["failed"]);
        },
    );
}

#[test]
fn only_a_step_that_stops_on_failure_is_waited_for() {
    on_both(|world| {
        queued_email(&world);
        world.run_due();
        let stops = with(email(), json!({ "shouldStopOnFail": true }));
        for (step, name, behind) in [(email(), "both", "completed"), (stops, "first", "pending")] {
            world.workflow_of(name, &[step, in_app()]);
            world.recorder.refuse_next(retryable("busy"));

            let id = world.notify(name, "ada");
            assert_eq!(world.run_due(), RETRIED);
            assert_eq!(world.statuses(id), ["queued", behind]);

            world.pass(Duration::from_secs(60));
            assert_eq!(world.run_due().sent, 1);
            assert_eq!(world.statuses(id), ["completed", "completed"]);
        }
    });
}

#[test]
fn a_message_that_waits_does_not_hold_up_others() {
    on_both(|world| {
        queued_email(&world);
        world.recorder.refuse_next(retryable("busy"));
        world.trigger(json!({
            "name": "mail", "to": { "subscriberId": "bob", "email": "bob@example.org" },
        }));

        assert_eq!(world.run_due(), Counts { sent: 1, retried: 1, ..NOTHING });
        assert_eq!(wire(only(world.messages("bob")))["status"], "sent");
    });
}

// When the only job of a notification is tried again, having been tried so often.
#[track_caller]
pub(super) fn due_at(world: &World, id: tidings::ids::NotificationId, tried: u32) -> Timestamp {
    match only(world.notification(id).jobs).status {
        JobStatus::Queued { due_at, attempts } if attempts == tried => due_at,
        other => panic!("{other:?}"),
    }
}
