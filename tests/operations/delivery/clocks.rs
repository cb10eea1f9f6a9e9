//! A clock that jumps back and forth while tasks are claimed, done and settled.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use testkit::interposed::{Interposed, Point};
use tidings::circuit::CircuitPolicy;
use tidings::ids::IntegrationId;
use tidings::time::Timestamp;
use tidings::{Clock, Delivery, Engine, ManualClock, ProviderReceipt};

use super::{Told, retryable};
use crate::world::{World, email, in_app, on_both, parsed, time};

const SECOND: Duration = Duration::from_secs(1);

/// A clock that shows the time for some readings, and a second before for the next ones.
#[derive(Clone, Debug, Default)]
struct Restless {
    time: ManualClock,
    jumps: Arc<AtomicBool>,
    readings: Arc<AtomicUsize>,
    right: usize,
    late: usize,
}

impl Clock for Restless {
    fn now(&self) -> Timestamp {
        let reading = self.readings.fetch_add(1, Ordering::Relaxed) % (self.right + self.late);
        let is_late = reading >= self.right && self.jumps.load(Ordering::Relaxed);
        if is_late { self.time.now().before(SECOND) } else { self.time.now() }
    }
}

/// Sends a message that is put off until `wait` is over, under clocks that jump in many ways since.
fn check(wait: Duration, put_off: impl Fn(&World)) {
    for (right, late) in (1..12).flat_map(|right| (1..12).map(move |late| (right, late))) {
        let clock = Restless { right, late, ..Restless::default() };
        let world = World::with(Interposed::default(), |builder| {
            clock.time.set(parsed(json!(crate::world::START)));
            let policy = CircuitPolicy::new(1, SECOND * 60).pause(SECOND * 10);
            builder.clock(clock.clone()).circuit(policy).per_second("ses", 1)
        });
        world.active_integration("email", "ses");
        world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
        world.workflow_of("mail", &[email()]);
        put_off(&world);

        clock.time.advance(wait);
        clock.jumps.store(true, Ordering::Relaxed);
        for _ in 0..100 {
            let report = world.engine.delivery().run_due(usize::MAX);
            assert!(report.is_ok(), "{right} right and {late} late readings: {report:?}");
        }
    }
}

/// What was queued under a clock that was ahead by years is done under the right one, as long
/// afterwards as it was put off. The queue may have been looked at before, or while the clock was ahead.
#[test]
fn what_a_clock_has_put_off_that_was_ahead_is_done() {
    let looks = [true, false].into_iter();
    for (is_looked_at_before, is_looked_at_ahead) in
        looks.clone().flat_map(|before| looks.clone().map(move |ahead| (before, ahead)))
    {
        on_both(|world| {
            let hour = json!({ "type": "regular", "amount": 1, "unit": "hours" });
            let step = |kind: &str| json!({ "type": kind, "metadata": hour });
            world.active_integration("email", "ses");
            world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
            world.workflow_of("mail", &[email()]);
            world.workflow_of("delay", &[step("delay"), in_app()]);
            world.workflow_of("digest", &[step("digest"), in_app()]);
            if is_looked_at_before {
                world.run_due();
            }
            let right = world.now();
            world.clock.set(time("2099-01-01T00:00:00.000Z"));
            if is_looked_at_ahead {
                world.run_due();
            }
            for workflow in ["mail", "delay", "digest", "digest"] {
                world.notify(workflow, "ada");
            }
            world.clock.set(right);
            let inbox = || world.inbox("ada").len();

            world.run_due();
            assert_eq!((world.recorder.sent().len(), inbox()), (1, 0));
            world.pass(SECOND * 3_599);
            world.run_due();
            assert_eq!(inbox(), 0);
            world.pass(SECOND);
            world.run_due();
            assert_eq!(inbox(), 2);
            assert_eq!(world.engine.delivery().next_due().unwrap(), None);
            assert_eq!(world.engine.check().unwrap().findings, []);
        });
    }
}

/// A process may die under a clock that is ahead, while it sends a message that was queued then or
/// before.
#[test]
fn a_lease_of_a_clock_that_was_ahead_ends() {
    for is_earlier in [false, true] {
        on_both(|mut world| {
            world.active_integration("email", "ses");
            world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
            world.workflow_of("mail", &[email()]);
            let right = world.now();
            if is_earlier {
                world.notify("mail", "ada");
            }
            world.clock.set(time("2099-01-01T00:00:00.000Z"));
            if !is_earlier {
                world.notify("mail", "ada");
            }
            let killed = world.mortal_engine(|builder| builder, |_| {});
            assert!(killed.delivery().run_due(1).is_err());
            world.clock.set(right);
            world.restart_with(|builder| builder);

            // Another process may send the message still.
            assert_eq!(world.run_due().sent, 0);
            world.pass(SECOND * 299);
            assert_eq!(world.run_due().sent, 0);
            world.pass(SECOND);
            assert_eq!(world.run_due().sent, 1);
        });
    }
}

/// The events are of the right time, and what is done with them is not.
#[test]
fn what_a_clock_has_put_off_of_an_earlier_event_is_done() {
    for restarts in [false, true] {
        on_both(|mut world| {
            let step = |kind: &str, amount: u32, unit: &str| {
                let metadata = json!({ "type": "regular", "amount": amount, "unit": unit });
                json!({ "type": kind, "metadata": metadata })
            };
            world.active_integration("email", "ses");
            world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
            world.workflow_of("mail", &[email()]);
            let delays = [step("delay", 1, "minutes"), step("delay", 2, "minutes"), in_app()];
            world.workflow_of("delays", &delays);
            let events = [step("digest", 3, "days"), in_app()];
            world.workflow_of("digest", &events);
            // A month is no mistake of a clock.
            world.workflow_of("month", &[step("delay", 30, "days"), in_app()]);
            for workflow in ["mail", "delays", "digest", "month"] {
                world.notify(workflow, "ada");
            }
            let right = world.now();
            // Behind the first minute, and before the month.
            world.clock.set(time("2026-12-01T00:00:00.000Z"));
            world.recorder.refuse_next(retryable("down"));
            assert_eq!(world.run_due().retried, 1);
            world.clock.set(right);
            if restarts {
                world.restart_with(|builder| builder);
            }

            world.run_due();
            let sent = |world: &World| (world.recorder.sent().len(), world.inbox("ada").len());
            // The digest was told under that clock.
            assert_eq!(sent(&world), (1, 1));
            for (wait, messages) in [(119, 1), (1, 2), (29 * 86_400, 2), (86_400, 3)] {
                world.pass(SECOND * wait);
                world.run_due();
                assert_eq!(sent(&world), (1, messages), "{wait}");
            }
            assert_eq!(world.engine.check().unwrap().findings, []);
        });
    }
}

/// A clock that is ahead has put off a message, and what waits behind it.
#[test]
fn a_delay_behind_a_message_keeps_its_length() {
    for (kind, restarts) in [("delay", false), ("delay", true), ("digest", false), ("digest", true)]
    {
        on_both(|mut world| {
            let metadata = json!({ "type": "regular", "amount": 2, "unit": "minutes" });
            world.active_integration("email", "ses");
            world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
            let wait = json!({ "type": kind, "metadata": metadata });
            world.workflow_of("both", &[email(), wait, in_app()]);
            let right = world.now();
            world.clock.set(time("2030-01-01T00:00:00.000Z"));
            world.notify("both", "ada");
            world.clock.set(right);
            if restarts {
                world.restart_with(|builder| builder);
            }

            for (wait, messages) in [(0, 0), (119, 0), (1, 1)] {
                world.pass(SECOND * wait);
                world.run_due();
                assert_eq!(world.recorder.sent().len(), 1, "{kind}");
                assert_eq!(world.inbox("ada").len(), messages, "{kind} {wait}");
            }
            assert_eq!(world.engine.check().unwrap().findings, []);
        });
    }
}

/// Each start looks at what was put off, and a delay that was brought back is not brought back again.
#[test]
fn a_delay_that_was_brought_back_stays_where_it_is() {
    for kind in ["delay", "digest"] {
        on_both(|mut world| {
            let month = json!({ "type": "regular", "amount": 30, "unit": "days" });
            world.bare_subscriber("ada");
            world.workflow_of("w", &[json!({ "type": kind, "metadata": month }), in_app()]);
            let right = world.now();
            world.clock.set(time("2026-12-01T00:00:00.000Z"));
            world.notify("w", "ada");
            world.clock.set(right);
            world.run_due();
            let due_at = world.engine.delivery().next_due().unwrap();
            assert_eq!(due_at, Some(right.after(SECOND * (30 * 86_400))));

            world.pass(SECOND);
            world.restart_with(|builder| builder);
            world.run_due();

            assert_eq!(world.engine.delivery().next_due().unwrap(), due_at);
        });
    }
}

/// A turn that was under way when its process ended has no delay any more, if that was one of the clock
/// that was ahead.
#[test]
fn a_turn_of_a_clock_that_was_ahead_goes_on() {
    let kinds = ["delay", "digest"].into_iter();
    for (kind, is_earlier) in kinds.flat_map(|kind| [(kind, false), (kind, true)]) {
        for transactions in 0..4 {
            on_both(|mut world| {
                let hour = json!({ "type": "regular", "amount": 1, "unit": "hours" });
                let wait = json!({ "type": kind, "metadata": hour });
                world.bare_subscriber("ada");
                world.workflow_of("wait", &[wait, in_app()]);
                let right = world.now();
                if !is_earlier {
                    world.clock.set(time("2099-01-01T00:00:00.000Z"));
                }
                world.notify("wait", "ada");
                world.clock.set(time("2099-01-01T01:00:00.000Z"));
                world.interrupted(transactions, || drop(world.engine.delivery().run_due(1)));
                world.clock.set(right);
                world.restart_with(|builder| builder);

                world.run_due();
                world.clock.advance(SECOND * 3_600);
                world.run_due();

                assert_eq!(world.inbox("ada").len(), 1, "{kind} {is_earlier} {transactions}");
            });
        }
    }
}

/// Under a clock that is ahead, another process claims the end of a window during the call of a message, and dies.
/// The result of the message puts the window back.
#[test]
fn a_window_that_was_put_back_by_a_clock_that_was_ahead_keeps_its_end() {
    for kind in ["delay", "digest"] {
        on_both(|mut world| {
            let hour = json!({ "type": "regular", "amount": 1, "unit": "hours" });
            world.active_integration("email", "ses");
            world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
            let waits = json!({ "type": kind, "metadata": hour });
            world.workflow_of("late", &[email(), waits, in_app()]);
            world.notify("late", "ada");
            let right = world.now();
            world.clock.set(time("2099-01-01T00:00:00.000Z"));
            let store = Interposed::new(world.store.clone());
            let builder = Engine::builder().clock(world.clock.clone());
            let dying = builder.build(store.clone());
            let engine = world.engine_with(|builder| {
                builder.default_provider(Told(move |_: &Delivery| {
                    store.stop(Point::Write, 1);
                    dying.delivery().run_due(1).unwrap_err();
                    Ok(ProviderReceipt::default())
                }))
            });
            assert_eq!(engine.delivery().run_due(1).unwrap().sent, 1);
            assert_eq!(world.inbox("ada").len(), 0, "{kind}");
            world.clock.set(right);
            world.restart_with(|builder| builder);

            world.run_due();
            assert_eq!(world.inbox("ada").len(), 0, "{kind}");
            world.pass(SECOND * 3_600);
            world.run_due();

            assert_eq!(world.inbox("ada").len(), 1, "{kind}");
        });
    }
}

// Resumes an integration under a clock that is ahead, at which its messages are due then. Nothing is sent
// before the clock is right again.
fn resume_ahead(world: &World, integration: IntegrationId) {
    let right = world.now();
    world.clock.set(time("2099-01-01T00:00:00.000Z"));
    world.env.integrations().resume(integration).unwrap();
    world.engine.delivery().run_due(1).unwrap();
    assert_eq!(world.recorder.sent().len(), 0);
    world.clock.set(right);
}

/// An integration is resumed under the clock that is ahead, and its messages are due then.
#[test]
fn a_message_that_was_released_by_a_clock_that_was_ahead_is_sent() {
    for restarts in [false, true] {
        on_both(|mut world| {
            let integration = world.active_integration("email", "ses");
            world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
            world.workflow_of("mail", &[email()]);
            world.env.integrations().pause(integration.id).unwrap();
            world.notify("mail", "ada");
            world.run_due();
            resume_ahead(&world, integration.id);
            if restarts {
                world.restart_with(|builder| builder);
            }

            world.run_due();

            assert_eq!(world.recorder.sent().len(), 1);
        });
    }
}

/// So are messages to several endpoints, of which the job says less.
#[test]
fn messages_to_endpoints_that_were_released_by_a_clock_that_was_ahead_are_sent() {
    on_both(|mut world| {
        let integration = world.active_integration("chat", "slack");
        world.bare_subscriber("ada");
        for path in ["a", "b"] {
            let endpoint = json!({
                "integrationIdentifier": "slack", "subscriberId": "ada", "type": "webhook",
                "endpoint": { "url": format!("https://chat.example.org/{path}") },
            });
            world.env.channel_endpoints().create(&parsed(endpoint)).unwrap();
        }
        let chat = json!({ "type": "chat", "template": { "body": "Hello" } });
        world.workflow_of("chat", &[chat]);
        world.env.integrations().pause(integration.id).unwrap();
        world.notify("chat", "ada");
        world.run_due();
        resume_ahead(&world, integration.id);
        world.restart_with(|builder| builder);

        world.run_due();

        assert_eq!(world.recorder.sent().len(), 2);
    });
}

/// A clock without a battery begins long before the store was made.
#[test]
fn a_clock_that_is_behind_brings_nothing_back() {
    on_both(|world| {
        let hour = json!({ "type": "regular", "amount": 1, "unit": "hours" });
        let delay = json!({ "type": "delay", "metadata": hour });
        world.bare_subscriber("ada");
        world.workflow_of("delay", &[delay, in_app()]);
        world.notify("delay", "ada");
        let (right, due_at) = (world.now(), world.engine.delivery().next_due().unwrap());
        world.clock.set(time("1970-01-01T00:00:00.000Z"));

        world.run_due();

        assert_eq!(world.engine.delivery().next_due().unwrap(), due_at);
        world.clock.set(right);
        world.run_due();
        assert_eq!(world.engine.delivery().next_due().unwrap(), due_at);
    });
}

/// An engine that starts under such a clock looks at the queue once the clock is right.
#[test]
fn a_clock_that_is_behind_at_the_start_is_not_the_only_one_that_counts() {
    on_both(|mut world| {
        let right = world.now();
        let hour = json!({ "type": "regular", "amount": 1, "unit": "hours" });
        let delay = json!({ "type": "delay", "metadata": hour });
        world.bare_subscriber("ada");
        world.workflow_of("delay", &[delay, in_app()]);
        world.clock.set(time("2099-01-01T00:00:00.000Z"));
        world.notify("delay", "ada");
        world.clock.set(time("1970-01-01T00:00:00.000Z"));
        world.restart_with(|builder| builder);
        for _ in 0..2 {
            world.run_due();
        }

        world.clock.set(right);
        world.run_due();
        world.clock.advance(SECOND * 3_600);
        world.run_due();

        assert_eq!(world.inbox("ada").len(), 1);
    });
}

/// The clock that was ahead has put off the second attempt to send an earlier message. The workflow is paused
/// when the engine starts.
#[test]
fn what_waits_for_its_workflow_is_brought_back() {
    on_both(|mut world| {
        world.active_integration("email", "ses");
        world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
        world.workflow_of("mail", &[email()]);
        world.notify("mail", "ada");
        let right = world.now();
        world.clock.set(time("2099-01-01T00:00:00.000Z"));
        world.recorder.refuse_next(retryable("down"));
        assert_eq!(world.run_due().retried, 1);
        world.env.workflows().pause("mail").unwrap();
        world.clock.set(right);
        world.restart_with(|builder| builder);
        world.run_due();

        world.env.workflows().resume("mail").unwrap();

        assert_eq!(world.run_due().sent, 1);
    });
}

#[test]
fn a_message_waits_for_a_circuit() {
    check(SECOND * 10, |world| {
        world.recorder.refuse_next(retryable("down"));
        for _ in 0..2 {
            world.notify("mail", "ada");
        }
        assert_eq!(world.engine.delivery().run_due(usize::MAX).unwrap().postponed, 1);
    });
}

#[test]
fn a_message_waits_for_a_quota() {
    check(SECOND, |world| {
        for _ in 0..3 {
            world.notify("mail", "ada");
        }
        assert_eq!(world.engine.delivery().run_due(usize::MAX).unwrap().postponed, 2);
    });
}

/// It is a Friday noon, and the quiet hours end at one.
#[test]
fn a_message_waits_for_the_end_of_quiet_hours() {
    check(SECOND * 3_600, |world| {
        let hours: Value = json!([{ "start": "01:00 PM", "end": "05:30 PM" }]);
        let friday = json!({ "friday": { "isEnabled": true, "hours": hours } });
        let schedule = json!({ "schedule": { "isEnabled": true, "weeklySchedule": friday } });
        world.env.preferences("ada").unwrap().update_global(&parsed(schedule)).unwrap();
        world.notify("mail", "ada");
        world.run_due();
        assert_eq!(world.recorder.sent().len(), 0);
    });
}
