//! Leases: what is claimed is sent by one, and again by another if nobody knows what became of it.

use std::mem::forget;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use serde_json::json;
use testkit::interposed::Point;
use tidings::dead_letter::DeadLetterQuery;
use tidings::ids::NotificationId;
use tidings::integration::{IntegrationUpdate, OnUnknown};
use tidings::job::{JobStatus, RetryPolicy, SendStatus};
use tidings::subscriber::ChannelSettings;
use tidings::time::Timestamp;
use tidings::{Builder, Call, Delivery, Engine, Error, ProviderReceipt, SendError};

use super::fan_out::token;
use super::refusing::push;
use super::{Told, ada, log, queued_email, retryable};
use crate::world::{Counts, World, email, in_app, names, on_both, only, parsed, wire, with};

const LEASE: Duration = Duration::from_secs(300);
const NOTHING: Counts = Counts { sent: 0, retried: 0, failed: 0, skipped: 0, superseded: 0 };
const SENT: Counts = Counts { sent: 1, ..NOTHING };
/// The fate of the event that has opened a window: the seconds to its expiry, what is done to it, the
/// statuses of its jobs in the end, and the number of the event that fails.
type Fate = (Option<u64>, fn(&World, NotificationId), Option<[&'static str; 2]>, usize);

const SUPERSEDED: Counts = Counts { superseded: 1, ..NOTHING };

#[test]
fn what_a_crash_left_behind_is_sent_again_after_its_lease() {
    on_both(|world| {
        let id = queued_email(&world);
        let key = Arc::new(Mutex::new(None));
        let seen = Arc::clone(&key);
        crash(&world, move |delivery| {
            *seen.lock().unwrap() = Some(delivery.idempotency_key());
        });

        let until = world.now().after(LEASE);
        let running = JobStatus::Running { lease_until: until, attempts: 1 };
        assert_eq!(only(world.notification(id).jobs).status, running);
        let next = world.another_engine();
        let before = Timestamp::from_millis(until.as_millis() - 1);
        world.clock.set(before);
        assert_eq!(run_due(&next), NOTHING);
        world.clock.set(until);
        assert_eq!(run_due(&next), SENT);

        let again = only(world.recorder.sent());
        assert_eq!(Some(again.idempotency_key()), *key.lock().unwrap());
        assert_eq!(wire(only(world.messages("ada")))["status"], "sent");
        assert_eq!(
            log(&world.notification(id), 0),
            ["step_queued", "lease_expired", "integration_selected: sendgrid", "message_sent",]
        );
        world.pass(LEASE);
        assert_eq!(run_due(&next), NOTHING);
    });
}

#[test]
fn a_crash_leaves_nothing_else_behind() {
    on_both(|world| {
        queued_email(&world);
        for who in ["bob", "cyd"] {
            let email = format!("{who}@example.org");
            let to = json!({ "subscriberId": who, "email": email });
            world.trigger(json!({ "name": "mail", "to": to }));
        }

        crash(&world, |_| {});

        // All three were claimed together.
        assert_eq!(world.run_due(), NOTHING);
        assert_eq!(world.messages("ada"), []);
        world.pass(LEASE);
        assert_eq!(world.run_due(), Counts { sent: 3, ..NOTHING });
        let to =
            names(&world.recorder.sent(), |delivery| delivery.subscriber.subscriber_id.clone());
        assert_eq!(to, ["ada", "bob", "cyd"]);
    });
}

#[test]
fn nobody_else_takes_what_is_being_sent() {
    on_both(|world| {
        let other = world.another_engine();
        let engine = world.engine_with(|builder| {
            builder.default_provider(Told(move |_: &Delivery| {
                assert_eq!(run_due(&other), NOTHING);
                Ok(ProviderReceipt::default())
            }))
        });
        queued_email(&world);

        assert_eq!(run_due(&engine), SENT);
        assert_eq!(world.recorder.sent().len(), 0);
    });
}

/// A process may be suspended wherever it waits for the store. When it goes on, another one may be
/// sending.
#[test]
fn a_process_that_was_suspended_sends_nothing_that_another_has() {
    let points = ["resend", "resend_with_key", "give_up"].map(suspended);
    // The call of an integration that does not simply send again is noted in one transaction more.
    assert!(points[0] > 0 && points[1] > points[0] && points[2] > points[0], "{points:?}");
}

// Suspends a process at each call of the store before its send. Returns the number of calls at which
// another process has superseded it.
fn suspended(on_unknown: &str) -> usize {
    let mut superseded = 0;
    for calls in 0.. {
        let world = World::in_memory();
        queued_email(&world);
        let integration = only(world.env.integrations().list().unwrap());
        let update = parsed(json!({ "onUnknown": on_unknown }));
        world.env.integrations().update(integration.id, &update).unwrap();
        let (sending, is_sending) = mpsc::channel();
        let (answer, answers) = mpsc::channel::<()>();
        let answers = Mutex::new(answers);
        let other = world.engine_with(|builder| {
            builder.default_provider(Told(move |_: &Delivery| {
                sending.send(()).unwrap();
                answers.lock().unwrap().recv().unwrap();
                Ok(ProviderReceipt::default())
            }))
        });
        let (clock, recorder) = (world.clock.clone(), world.recorder.clone());
        let (tell, told) = mpsc::channel();
        world.store.pause(Point::Begin, calls, move || {
            let is_in_time = recorder.sent().is_empty();
            if is_in_time {
                clock.advance(LEASE);
                let thread = thread::spawn(move || run_due(&other));
                is_sending.recv().unwrap();
                tell.send(thread).unwrap();
            }
        });

        let counts = run_due(&world.engine);

        let Ok(thread) = told.try_recv() else { break };
        assert_eq!(world.recorder.sent().len(), 0, "suspended before call {calls}");
        answer.send(()).unwrap();
        assert_eq!(thread.join().unwrap(), SENT);
        superseded += counts.superseded;
    }
    superseded
}

/// An integration may want a call known before it is made, and the store may take longer than the lease
/// to note it. The next attempt sends the message, through any integration.
#[test]
fn a_call_that_is_noted_too_late_has_no_lost_answer() {
    for point in [Point::Commit, Point::Committed] {
        for on_unknown in [OnUnknown::ResendWithKey, OnUnknown::GiveUp] {
            let world = World::in_memory();
            let id = queued_email(&world);
            let integrations = world.env.integrations();
            let integration = only(integrations.list().unwrap());
            let update = IntegrationUpdate::default().on_unknown(on_unknown);
            integrations.update(integration.id, &update).unwrap();
            let clock = world.clock.clone();
            // The first commit is that of the claim.
            world.store.pause(point, 1, move || clock.advance(LEASE));

            let counts = world.run_due();

            assert_eq!(counts, Counts { sent: 1, ..SUPERSEDED }, "{on_unknown:?}, {point:?}");
            let attempts: Vec<_> = world.recorder.sent().iter().map(Delivery::attempt).collect();
            assert_eq!(attempts, [2], "the attempt without a call counts");
            assert_eq!(log(&world.notification(id), 0).pop().unwrap(), "message_sent");
        }
    }
}

/// The process that has noted the call ends before it can tell that there was none.
#[test]
fn a_call_that_was_noted_before_a_crash_may_have_a_lost_answer() {
    let world = World::in_memory();
    let id = queued_email(&world);
    let integrations = world.env.integrations();
    let integration = only(integrations.list().unwrap());
    let update = IntegrationUpdate::default().on_unknown(OnUnknown::GiveUp);
    integrations.update(integration.id, &update).unwrap();
    let (clock, store) = (world.clock.clone(), world.store.clone());
    world.store.pause(Point::Committed, 1, move || {
        clock.advance(LEASE);
        store.kill();
    });
    world.engine.delivery().run_due(10).unwrap_err();
    world.store.recover();

    assert_eq!(run_due(&world.another_engine()), Counts { failed: 1, ..NOTHING });

    assert_eq!(log(&world.notification(id), 0).pop().unwrap(), "answer_lost");
}

#[test]
fn what_outlives_its_lease_unsent_is_claimed_again() {
    on_both(|world| {
        let clock = world.clock.clone();
        let engine = world.engine_with(|builder| {
            builder.default_provider(Told(move |_: &Delivery| {
                clock.advance(LEASE);
                Ok(ProviderReceipt::default())
            }))
        });
        let first = queued_email(&world);
        let second = world.notify("mail", "ada");

        assert_eq!(run_due(&engine), Counts { sent: 2, ..NOTHING });

        assert_eq!(log(&world.notification(first), 0).len(), 3);
        assert!(!log(&world.notification(second), 0).contains(&"lease_expired".into()));
        assert_eq!(world.messages("ada").len(), 2);
    });
}

/// The retry policy has one attempt, so that another worker gives the message up before the provider answers.
#[test]
fn a_message_that_was_given_up_and_sent_is_no_dead_letter() {
    on_both(|world| {
        let once = |builder: Builder| builder.retry(RetryPolicy::new(1, Duration::from_secs(1)));
        let (clock, other) = (world.clock.clone(), world.engine_with(once));
        let engine = world.engine_with(|builder| {
            once(builder).default_provider(Told(move |_: &Delivery| {
                clock.advance(LEASE);
                assert_eq!(run_due(&other), Counts { failed: 1, ..NOTHING });
                Ok(ProviderReceipt::with_id("sg-1"))
            }))
        });
        let id = queued_email(&world);

        assert_eq!(run_due(&engine), SENT);

        assert_eq!(world.statuses(id), ["completed"]);
        assert_eq!(
            log(&world.notification(id), 0),
            [
                "step_queued",
                "lease_expired",
                "integration_selected: sendgrid",
                "message_sent: sg-1",
            ]
        );
        assert_eq!(wire(only(world.messages("ada")))["status"], "sent");
        let letters = world.env.dead_letters();
        assert_eq!(letters.count(&DeadLetterQuery::default()).unwrap(), 0);
        world.pass(LEASE);
        assert_eq!(run_due(&engine), NOTHING);
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

/// Steps behind it were stopped, or had their turn when the message was given up. They have no other one.
#[test]
fn steps_behind_a_message_that_was_given_up_and_sent_keep_their_end() {
    for (stops, expected) in [(false, ["completed"; 2]), (true, ["completed", "canceled"])] {
        on_both(|world| {
            let once =
                |builder: Builder| builder.retry(RetryPolicy::new(1, Duration::from_secs(1)));
            let (clock, other) = (world.clock.clone(), world.engine_with(once));
            let engine = world.engine_with(|builder| {
                once(builder).default_provider(Told(move |_: &Delivery| {
                    clock.advance(LEASE);
                    assert_eq!(run_due(&other).failed, 1);
                    Ok(ProviderReceipt::default())
                }))
            });
            ada(&world);
            world.active_integration("email", "sendgrid");
            let email = with(email(), json!({ "shouldStopOnFail": stops }));
            world.workflow_of("mail", &[email, in_app()]);
            let id = world.notify("mail", "ada");

            for _ in 0..3 {
                run_due(&engine);
                world.pass(LEASE);
            }

            assert_eq!(world.statuses(id), expected);
            assert_eq!(world.inbox("ada").len(), usize::from(!stops));
            assert_eq!(world.engine.delivery().next_due().unwrap(), None);
            assert_eq!(world.engine.check().unwrap().findings, []);
        });
    }
}

/// The same for a function of the host, and for two devices.
#[test]
fn calls_that_were_given_up_and_made_are_completed() {
    on_both(|world| {
        let once = |builder: Builder| builder.retry(RetryPolicy::new(1, Duration::from_secs(1)));
        let (clock, other) = (world.clock.clone(), world.engine_with(once));
        let outlast = Arc::new(move || {
            clock.advance(LEASE);
            assert!(run_due(&other).failed > 0);
        });
        let (called, sent) = (Arc::clone(&outlast), outlast);
        let engine = world.engine_with(|builder| {
            let late = move |_: &Call| {
                called();
                Ok(parsed(json!({ "booked": true })))
            };
            let devices = Told(move |delivery: &Delivery| {
                // The answer of the other device, which is called first, is not stored yet.
                if token(delivery) == "phone" {
                    sent();
                }
                Ok(ProviderReceipt::default())
            });
            once(builder).handler("book", late).default_provider(devices)
        });
        let integration = world.active_integration("push", "fcm");
        world.subscriber(json!({ "subscriberId": "ada" }));
        let settings: ChannelSettings = parsed(json!({
            "providerId": "fcm", "_integrationId": integration.id,
            "credentials": { "deviceTokens": ["phone", "tablet"] },
        }));
        world.env.subscribers().set_channel("ada", &settings).unwrap();
        let custom = json!({ "type": "custom", "metadata": { "handler": "book" } });
        world.workflow_of("custom", &[custom]);
        world.workflow_of("push", &[push()]);

        for workflow in ["custom", "push"] {
            let id = world.notify(workflow, "ada");
            for _ in 0..3 {
                run_due(&engine);
                world.pass(LEASE);
            }
            assert_eq!(world.statuses(id), ["completed"], "{workflow}");
            let job = only(world.notification(id).jobs);
            assert_eq!(job.result.is_some(), workflow == "custom");
            assert!(
                job.sends.iter().all(|send| send.status == SendStatus::Sent),
                "{:?}",
                job.sends
            );
            let letters = world.env.dead_letters();
            assert_eq!(letters.count(&DeadLetterQuery::default()).unwrap(), 0);
        }
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

/// A provider that fits five messages into a lease, or none.
#[test]
fn every_message_of_a_slow_provider_is_handed_to_it_once() {
    for span in [Duration::from_secs(60), Duration::from_secs(70), LEASE, LEASE * 2] {
        on_both(|world| {
            let clock = world.clock.clone();
            let retry = RetryPolicy::new(1, Duration::from_secs(1));
            let engine = world.engine_with(|builder| {
                builder.retry(retry).default_provider(Told(move |delivery: &Delivery| {
                    assert_eq!(delivery.attempt(), 1);
                    clock.advance(span);
                    Ok(ProviderReceipt::default())
                }))
            });
            queued_email(&world);
            for _ in 1..40 {
                world.notify("mail", "ada");
            }

            assert_eq!(run_due(&engine), Counts { sent: 40, ..NOTHING }, "{span:?}");
        });
    }
}

#[test]
fn messages_that_were_given_back_are_not_counted_as_run() {
    on_both(|world| {
        let clock = world.clock.clone();
        let engine = world.engine_with(|builder| {
            builder.default_provider(Told(move |_: &Delivery| {
                clock.advance(LEASE);
                Ok(ProviderReceipt::default())
            }))
        });
        queued_email(&world);
        for _ in 1..4 {
            world.notify("mail", "ada");
        }

        assert_eq!(engine.delivery().run_due(3).unwrap().sent, 3);
        assert_eq!(engine.delivery().run_due(3).unwrap().sent, 1);
    });
}

/// A clock that is wrong for a moment delays nothing by more than that moment.
#[test]
fn messages_that_were_given_back_by_a_wrong_clock_are_due_by_the_right_one() {
    for wrong in [Timestamp::MAX, Timestamp::MIN] {
        on_both(|world| {
            let (clock, right) = (world.clock.clone(), world.now());
            let engine = world.engine_with(|builder| {
                builder.default_provider(Told(move |_: &Delivery| {
                    clock.set(wrong);
                    Ok(ProviderReceipt::default())
                }))
            });
            queued_email(&world);
            for _ in 1..4 {
                world.notify("mail", "ada");
            }

            let first = run_due(&engine).sent;
            world.clock.set(right);
            assert_eq!(first + run_due(&engine).sent, 4, "{wrong}");
            assert_eq!(engine.delivery().stats().unwrap().total().waiting, 0);
        });
    }
}

#[test]
fn a_message_without_an_outcome_is_sent_alone() {
    on_both(|world| {
        let ids = [queued_email(&world), world.notify("mail", "ada")];
        for _ in 0..2 {
            die(&world.mortal_engine(|builder| builder, |_| {}));
            world.pass(LEASE);
        }

        let mut attempts = ids.map(|id| match only(world.notification(id).jobs).status {
            JobStatus::Running { attempts, .. } => attempts,
            status => panic!("{status:?}"),
        });
        attempts.sort_unstable();
        assert_eq!(attempts, [1, 2]);
        assert_eq!(world.run_due(), Counts { sent: 2, ..NOTHING });
    });
}

#[test]
fn a_lease_is_a_second_at_least() {
    on_both(|world| {
        let engine = world.engine_with(|builder| builder.lease(Duration::ZERO));
        queued_email(&world);
        world.notify("mail", "ada");

        assert_eq!(run_due(&engine), Counts { sent: 2, ..NOTHING });
    });
}

#[test]
fn messages_are_sent_at_the_end_of_time() {
    on_both(|world| {
        queued_email(&world);
        world.notify("mail", "ada");
        world.clock.advance(Timestamp::MAX.since(world.now()));

        assert_eq!(world.run_due(), Counts { sent: 2, ..NOTHING });
    });
}

#[test]
fn what_kills_its_process_is_not_tried_for_ever() {
    on_both(|world| {
        let retry = RetryPolicy::new(2, Duration::from_secs(1));
        let id = queued_email(&world);
        for _ in 0..2 {
            die(&world.mortal_engine(|builder| builder.retry(retry), |_| {}));
            world.pass(LEASE);
        }

        let engine = world.engine_with(|builder| builder.retry(retry));
        assert_eq!(run_due(&engine), Counts { failed: 1, ..NOTHING });

        assert_eq!(world.statuses(id), ["failed"]);
        assert_eq!(log(&world.notification(id), 0).last().unwrap(), "lease_expired");
        assert_eq!(world.recorder.sent().len(), 0);
    });
}

// Two attempts of each task that calls the host, and three of the others.
fn twice(builder: Builder) -> Builder {
    builder.retry(RetryPolicy::new(2, Duration::from_secs(1)))
}

// Three processes end while they do the next task: the claim is stored, and its result is not.
fn die_thrice(world: &mut World) {
    for _ in 0..3 {
        let died = world.interrupted(1, || world.engine.delivery().run_due(1));
        assert!(died.is_err(), "{died:?}");
        world.restart_with(twice);
        world.pass(LEASE);
    }
}

/// A schedule, or a pause of the workflow, that was not there at the first attempt.
#[test]
fn a_message_that_waits_after_a_crash_says_that_its_lease_has_ended() {
    let closed = json!({ "schedule": { "isEnabled": true, "weeklySchedule": {
        "saturday": { "isEnabled": true, "hours": [{ "start": "09:00 AM", "end": "05:00 PM" }] },
    } } });
    let deferred = &["lease_expired", "deferred_to_schedule"][..];
    for (is_closed, expected) in [(true, deferred), (false, &["lease_expired"])] {
        on_both(|world| {
            let id = queued_email(&world);
            crash(&world, |_| {});
            world.pass(LEASE);
            let env = world.env.clone();
            if is_closed {
                let preferences = env.preferences("ada").unwrap();
                preferences.update_global(&parsed(closed.clone())).unwrap();
            } else {
                // After the claim.
                let pause = move || drop(env.workflows().pause("mail").unwrap());
                world.store.pause(Point::Committed, 0, pause);
            }

            assert_eq!(world.run_due(), NOTHING);

            assert_eq!(world.statuses(id), ["queued"]);
            let log = names(&world.notification(id).jobs[0].execution_details, |one| one.detail);
            assert_eq!(log[1..], *expected);
        });
    }
}

/// A process ends while it does the first of two turns, which calls nothing of the host.
#[test]
fn what_calls_no_host_outlives_a_crash_under_a_policy_of_one_attempt() {
    let delay = json!({ "type": "regular", "amount": 1, "unit": "minutes" });
    let delay = json!({ "type": "delay", "metadata": delay });
    on_both(|mut world| {
        let once = |builder: Builder| builder.retry(RetryPolicy::new(1, Duration::from_secs(1)));
        world.restart_with(once);
        world.workflow_of("late", &[delay.clone(), in_app()]);
        let ids = [world.notify("late", "ada"), world.notify("late", "ada")];
        world.pass(Duration::from_secs(60));
        let died = world.interrupted(1, || world.engine.delivery().run_due(10));
        assert!(died.is_err(), "{died:?}");
        world.restart_with(once);
        world.pass(LEASE);

        world.run_due();

        for id in ids {
            assert_eq!(world.statuses(id), ["completed", "completed"]);
        }
        assert_eq!(world.engine.delivery().next_due().unwrap(), None);
    });
}

/// A turn is due at the end of a delay. What it cannot decide is the job behind that.
#[test]
fn a_turn_that_kills_its_process_is_not_tried_for_ever() {
    let delay = json!({ "type": "regular", "amount": 1, "unit": "minutes" });
    let delay = json!({ "type": "delay", "metadata": delay });
    for (steps, ended) in [
        (vec![delay.clone(), in_app(), in_app()], vec!["completed", "failed", "completed"]),
        (vec![delay], vec!["completed"]),
    ] {
        on_both(|mut world| {
            world.restart_with(twice);
            world.workflow_of("late", &steps);
            let id = world.notify("late", "ada");
            world.pass(Duration::from_secs(60));
            die_thrice(&mut world);

            world.run_due();

            assert_eq!(world.statuses(id), ended);
            assert_eq!(world.engine.check().unwrap().findings, []);
            assert_eq!(world.engine.delivery().next_due().unwrap(), None);
        });
    }
}

/// The job of the first event that is left fails.
#[test]
fn a_digest_that_kills_its_process_is_not_tried_for_ever() {
    let digest = json!({ "type": "digest", "metadata":
        { "type": "regular", "amount": 1, "unit": "minutes" } });
    let failed = ["failed", "canceled"];
    let fates: [Fate; 4] = [
        (None, |_, _| {}, Some(failed), 0),
        (Some(20), |_, _| {}, Some(["skipped"; 2]), 1),
        (None, |world, _| drop(world.env.events().cancel("0").unwrap()), Some(["canceled"; 2]), 1),
        (None, |world, first| world.env.notifications().delete(first).unwrap(), None, 1),
    ];
    for (seconds, fate, opener, end_of) in fates {
        on_both(|mut world| {
            world.restart_with(twice);
            world.workflow_of("news", &[digest.clone(), in_app()]);
            let expiry = seconds.map(|seconds| world.now().after(Duration::from_secs(seconds)));
            let ids = [("0", expiry), ("1", None), ("2", None)].map(|(id, expires_at)| {
                let event = json!({
                    "name": "news", "to": "ada", "transactionId": id, "expiresAt": expires_at,
                });
                only(world.trigger(event).notifications).notification_id
            });
            fate(&world, ids[0]);
            world.pass(Duration::from_secs(60));
            die_thrice(&mut world);

            let report = world.engine.delivery().run_due(1).unwrap();
            assert_eq!((report.failed, report.failures.len()), (1, 1));
            // Those of the event that has expired.
            assert_eq!(report.skipped, if seconds.is_some() { 2 } else { 0 });
            world.run_due();

            let found = world.env.notifications().find(ids[0]).unwrap();
            assert_eq!(
                found.map(|_| world.statuses(ids[0])),
                opener.map(|all| all.map(str::to_owned).to_vec())
            );
            assert_eq!(world.statuses(ids[end_of]), failed);
            let log = log(&world.notification(ids[end_of]), 0);
            assert_eq!(log.last().unwrap(), "lease_expired");
            assert_eq!(world.statuses(ids[2]), ["merged", "merged"]);
            assert_eq!(world.engine.check().unwrap().findings, []);
            assert_eq!(world.engine.delivery().next_due().unwrap(), None);
        });
    }
}

#[test]
fn a_provider_that_panics_is_tried_again_and_harms_nobody_else() {
    on_both(|world| {
        let engine = world.engine_with(|builder| {
            builder.default_provider(Told(|delivery: &Delivery| {
                assert_eq!(delivery.subscriber.subscriber_id.as_str(), "bob");
                Ok(ProviderReceipt::default())
            }))
        });
        let id = queued_email(&world);
        let bob = json!({ "subscriberId": "bob", "email": "bob@example.org" });
        world.trigger(json!({ "name": "mail", "to": bob }));

        assert_eq!(run_due(&engine), Counts { sent: 1, retried: 1, ..NOTHING });

        assert_eq!(
            log(&world.notification(id), 0).last().unwrap(),
            "provider_retry: no answer: the provider panicked"
        );
    });
}

/// A value whose destructor panics, with a value of the same kind.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic_any(Bomb);
    }
}

#[test]
fn a_panic_whose_payload_panics_when_it_is_dropped_harms_nobody_else() {
    on_both(|world| {
        let engine = world.engine_with(|builder| {
            builder.default_provider(Told(|delivery: &Delivery| {
                if delivery.subscriber.subscriber_id.as_str() == "ada" {
                    panic_any(Bomb);
                }
                Ok(ProviderReceipt::default())
            }))
        });
        let id = queued_email(&world);
        let bob = json!({ "subscriberId": "bob", "email": "bob@example.org" });
        world.trigger(json!({ "name": "mail", "to": bob }));

        // A payload that gets out must not be dropped here, so that the test fails in order.
        let counts = catch_unwind(AssertUnwindSafe(|| run_due(&engine))).map_err(forget);

        assert_eq!(counts, Ok(Counts { sent: 1, retried: 1, ..NOTHING }));
        assert_eq!(
            log(&world.notification(id), 0).last().unwrap(),
            "provider_retry: no answer: the provider panicked"
        );
    });
}

#[test]
fn an_outcome_that_comes_too_late_is_ignored() {
    for late in [
        Ok(ProviderReceipt::with_id("late")),
        Err(retryable("late")),
        Err(SendError::permanent("late")),
    ] {
        on_both(|world| {
            let engine = slow(&world, SENT, late.clone());
            let id = queued_email(&world);

            assert_eq!(run_due(&engine), SUPERSEDED);

            let message = only(world.messages("ada"));
            assert_eq!(message.id, only(world.recorder.sent()).message.id);
            assert_eq!(wire(message)["status"], "sent");
            assert_eq!(world.statuses(id), ["completed"]);
            assert_eq!(log(&world.notification(id), 0).last().unwrap(), "message_sent");
        });
    }
}

/// That a message was sent is a fact, whoever has it now.
#[test]
fn what_was_sent_is_not_tried_again() {
    on_both(|world| {
        world.recorder.refuse_next(retryable("busy"));
        let retried = Counts { retried: 1, ..NOTHING };
        let engine = slow(&world, retried, Ok(ProviderReceipt::default()));
        let id = queued_email(&world);

        assert_eq!(run_due(&engine), SENT);

        assert_eq!(world.statuses(id), ["completed"]);
        world.pass(Duration::from_secs(60));
        assert_eq!(world.run_due(), NOTHING);
        assert_eq!(world.messages("ada").len(), 1);
    });
}

#[test]
fn a_refusal_is_ignored_while_somebody_else_is_sending() {
    on_both(|world| {
        let (clock, other) = (world.clock.clone(), dying(&world, |_| {}));
        let engine = world.engine_with(|builder| {
            builder.default_provider(Told(move |_: &Delivery| {
                clock.advance(LEASE);
                die(&other);
                Err(SendError::permanent("late"))
            }))
        });
        let id = queued_email(&world);

        assert_eq!(run_due(&engine), SUPERSEDED);

        let lease_until = world.now().after(LEASE);
        let running = JobStatus::Running { lease_until, attempts: 2 };
        assert_eq!(only(world.notification(id).jobs).status, running);
        assert_eq!(world.messages("ada"), []);
        world.pass(LEASE);
        assert_eq!(world.run_due(), SENT);
        assert_eq!(world.messages("ada").len(), 1);
    });
}

/// Another worker has given the message up, and it was redriven: the attempts are counted anew.
#[test]
fn a_refusal_of_a_call_before_a_redrive_is_ignored() {
    on_both(|mut world| {
        let once = |builder: Builder| builder.retry(RetryPolicy::new(1, Duration::from_secs(1)));
        world.restart_with(once);
        let (clock, env) = (world.clock.clone(), world.env.clone());
        let giving_up = world.engine_with(once);
        let other = world.mortal_engine(once, |_| {});
        let engine = world.engine_with(|builder| {
            once(builder).default_provider(Told(move |_: &Delivery| {
                clock.advance(LEASE);
                assert_eq!(run_due(&giving_up).failed, 1);
                env.dead_letters().redrive_matching(&parsed(json!({}))).unwrap();
                die(&other);
                Err(SendError::permanent("late"))
            }))
        });
        let id = queued_email(&world);

        assert_eq!(run_due(&engine), SUPERSEDED);

        let lease_until = world.now().after(LEASE);
        let running = JobStatus::Running { lease_until, attempts: 1 };
        assert_eq!(only(world.notification(id).jobs).status, running);
        assert_eq!(world.messages("ada"), []);
    });
}

#[test]
fn an_outcome_that_comes_after_the_lease_counts_if_nobody_has_taken_over() {
    on_both(|world| {
        let clock = world.clock.clone();
        let engine = world.engine_with(|builder| {
            builder.default_provider(Told(move |_: &Delivery| {
                clock.advance(LEASE * 2);
                Ok(ProviderReceipt::with_id("m-1"))
            }))
        });
        let id = queued_email(&world);

        assert_eq!(run_due(&engine), SENT);

        assert_eq!(log(&world.notification(id), 0).last().unwrap(), "message_sent: m-1");
        assert_eq!(world.run_due(), NOTHING);
    });
}

#[test]
fn a_subscriber_who_is_deleted_meanwhile_has_no_messages() {
    on_both(|world| {
        let env = world.env.clone();
        let engine = world.engine_with(|builder| {
            builder.default_provider(Told(move |delivery: &Delivery| {
                env.subscribers().delete(&delivery.subscriber.subscriber_id).unwrap();
                Ok(ProviderReceipt::default())
            }))
        });
        let id = queued_email(&world);

        assert_eq!(run_due(&engine), SENT);

        assert_eq!(world.statuses(id), ["completed"]);
        assert_eq!(only(world.notification(id).jobs).message_id, None);
        assert!(world.dump().keys().all(|(table, _)| *table != "messages"));
    });
}

#[test]
fn a_lease_is_as_long_as_the_engine_is_told() {
    on_both(|world| {
        let id = queued_email(&world);
        let lease = Duration::from_secs(7);
        die(&world.mortal_engine(|builder| builder.lease(lease), |_| {}));

        let lease_until = world.now().after(Duration::from_secs(7));
        let running = JobStatus::Running { lease_until, attempts: 1 };
        assert_eq!(only(world.notification(id).jobs).status, running);
    });
}

// Runs what is due in an engine whose provider dies of the first message, having shown it to
// `watch`.
fn crash(world: &World, watch: impl Fn(&Delivery) + Send + Sync + 'static) {
    die(&dying(world, watch));
}

fn dying(world: &World, watch: impl Fn(&Delivery) + Send + Sync + 'static) -> Engine {
    world.mortal_engine(|builder| builder, watch)
}

fn die(engine: &Engine) {
    let died = engine.delivery().run_due(usize::MAX);
    assert!(matches!(died, Err(Error::Store(_))), "the provider was not called: {died:?}");
}

// An engine whose provider takes so long that another engine takes its message over, which comes
// to `expected`; then it answers.
fn slow(world: &World, expected: Counts, answer: Result<ProviderReceipt, SendError>) -> Engine {
    let (clock, quick) = (world.clock.clone(), world.another_engine());
    world.engine_with(|builder| {
        builder.default_provider(Told(move |_: &Delivery| {
            clock.advance(LEASE);
            assert_eq!(run_due(&quick), expected);
            answer.clone()
        }))
    })
}

fn run_due(engine: &Engine) -> Counts {
    engine.delivery().run_due(usize::MAX).unwrap().into()
}
