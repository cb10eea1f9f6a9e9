//! Simulation: the clock moves from one due time to the next.

use proptest::prelude::*;
use serde_json::json;
use tidings::retention::Retention;
use tidings::time::Timestamp;
use tidings::vocabulary::Channel;

use crate::world::{
    Backend, START, World, active_integration, email, hour, on_both, on_both_with, say, time, with,
};
use testkit::interposed::Interposed;
use testkit::sealed::in_common;

const SUBSCRIBERS: [&str; 3] = ["ada", "bob", "cleo"];
const WORKFLOWS: [&str; 5] = ["plain", "digest", "later", "limited", "mail"];

fn furnish(world: &World) {
    for subscriber in SUBSCRIBERS {
        let mail = format!("{subscriber}@example.org");
        world.subscriber(json!({ "subscriberId": subscriber, "email": mail }));
    }
    world.active_integration("email", "sendgrid");
    let throttle = json!({ "type": "throttle", "metadata": { "amount": 1, "unit": "hours" } });
    world.workflow_of("plain", &[say("hello")]);
    world.workflow_of("digest", &[hour("digest"), say("{{ events | length }}"), email()]);
    world.workflow_of("later", &[say("now"), hour("delay"), email(), say("then")]);
    world.workflow_of("limited", &[throttle, say("at most once"), email()]);
    world.workflow_of("mail", &[email()]);
}

fn minutes(count: u64) -> Timestamp {
    time(START).after(std::time::Duration::from_secs(count * 60))
}

/// A trigger so many minutes after the one before, of a workflow for a subscriber, perhaps with an
/// answer of the provider that asks for another attempt.
type Event = (u64, usize, usize, bool);

fn replay(backend: &Backend, events: &[Event]) -> World {
    let world = World::with(Interposed::over(backend.open()), |builder| builder);
    furnish(&world);
    let mut now = 0;
    for (wait, workflow, subscriber, refused) in events {
        now += wait;
        world.engine.delivery().run_until(minutes(now)).unwrap();
        if *refused {
            world.recorder.refuse_next(tidings::SendError::retryable("busy"));
        }
        let (workflow, to) = (WORKFLOWS[*workflow], SUBSCRIBERS[*subscriber]);
        world.trigger(json!({ "name": workflow, "to": to }));
    }
    world.engine.delivery().run_until(minutes(now + 7 * 24 * 60)).unwrap();
    world
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Two runs with the same seed write the same, byte by byte, and every job has ended.
    #[test]
    fn a_simulation_is_the_same_for_a_seed(
        events in prop::collection::vec((0..90_u64, 0..5_usize, 0..3_usize, any::<bool>()), 0..20)
    ) {
        let [first, second] = [(); 2].map(|()| replay(&Backend::both()[0], &events));
        prop_assert!(in_common(first.dump()) == in_common(second.dump()));
        let sent = |world: &World| format!("{:?}", world.recorder.sent());
        prop_assert_eq!(sent(&first), sent(&second));
        let told = first.notifications(json!({ "limit": 50 }));
        prop_assert!(told.iter().flat_map(|one| &one.jobs).all(|job| job.status.has_ended()));
    }
}

/// Both backends tell the same story.
#[test]
fn a_simulation_is_the_same_on_both_backends() {
    let events: Vec<Event> =
        (0..40).map(|n| (n as u64 * 7 % 50, n % 5, n % 3, n % 4 == 0)).collect();
    let [memory, redb] = Backend::both().map(|backend| replay(&backend, &events));
    let told = |world: &World| {
        let mut told = Vec::new();
        for subscriber in SUBSCRIBERS {
            for message in world.messages(subscriber) {
                told.push((subscriber, message.created_at, message.channel, message.content));
            }
        }
        told
    };
    assert!(told(&memory).len() > 20);
    assert_eq!(told(&memory), told(&redb));
}

/// The time of a message is exactly that at which it was due, and the clock shows the end.
#[test]
fn what_is_due_happens_at_its_time() {
    on_both(|world| {
        furnish(&world);
        world.trigger(json!({ "name": "later", "to": "ada" }));
        world.clock.advance(std::time::Duration::from_secs(30 * 60));
        world.trigger(json!({ "name": "later", "to": "bob" }));
        let delivery = world.engine.delivery();
        let report = delivery.run_until(minutes(59)).unwrap();
        assert_eq!((report.sent, world.now()), (0, minutes(59)));
        let report = delivery.run_until(minutes(120)).unwrap();
        assert_eq!((report.sent, world.now()), (2, minutes(120)));
        let at = |to: &str| world.messages(to).iter().map(|one| one.created_at).collect::<Vec<_>>();
        assert_eq!(at("ada"), [minutes(60), minutes(60), minutes(0)]);
        assert_eq!(at("bob"), [minutes(90), minutes(90), minutes(30)]);
    });
}

/// Tasks of one time go by their class and then by their ids, whatever their workflow.
#[test]
fn tasks_of_one_time_have_an_order() {
    on_both(|world| {
        furnish(&world);
        let mail = world.env.workflows().get("mail").unwrap().id;
        let urgent = json!({
            "name": "Urgent", "workflowId": "urgent", "active": true, "critical": true,
            "steps": [email()],
        });
        let urgent = world.workflow(urgent).id;
        let other = world.workflow_of("mail-2", &[email()]).id;
        for name in ["mail-2", "mail", "mail-2", "urgent"] {
            world.trigger(json!({ "name": name, "to": "ada" }));
        }
        world.engine.delivery().run_until(world.now()).unwrap();
        let sent = world.recorder.sent();
        let of = |sent: &tidings::Delivery| sent.notification.workflow_id.unwrap();
        assert_eq!(sent.iter().map(of).collect::<Vec<_>>(), [urgent, other, mail, other]);
    });
}

/// They are more than a worker claims at a time.
#[test]
fn many_tasks_of_one_time_have_an_order() {
    on_both(|world| {
        furnish(&world);
        world.workflow_of("mail-2", &[email()]);
        for _ in 0..40 {
            for name in ["mail", "mail-2"] {
                world.trigger(json!({ "name": name, "to": "ada" }));
            }
        }
        world.engine.delivery().run_until(world.now()).unwrap();
        let sent = world.recorder.sent();
        let jobs: Vec<_> = sent.iter().map(tidings::Delivery::idempotency_key).collect();
        assert_eq!(jobs.len(), 80);
        assert!(jobs.is_sorted(), "{jobs:?}");
    });
}

/// The clock does not go back, and what is overdue is done at its time.
#[test]
fn the_clock_does_not_go_back() {
    on_both(|world| {
        furnish(&world);
        world.trigger(json!({ "name": "mail", "to": "ada" }));
        world.clock.set(minutes(60));
        world.engine.delivery().run_until(minutes(30)).unwrap();
        assert_eq!(world.now(), minutes(60));
        assert_eq!(world.messages("ada")[0].created_at, minutes(60));
    });
}

/// A message that another integration sends is due again at once.
#[test]
fn a_fallback_takes_over_in_a_simulation() {
    on_both(|world| {
        furnish(&world);
        let second = with(active_integration("email", "second"), json!({ "fallback": 1 }));
        world.integration(second);
        world.trigger(json!({ "name": "mail", "to": "ada" }));
        world.recorder.refuse_next(tidings::SendError::misconfigured("no key"));

        let report = world.engine.delivery().run_until(minutes(1)).unwrap();

        assert_eq!((report.retried, report.sent), (1, 1));
        assert_eq!(world.recorder.sent()[0].integration.identifier.as_str(), "second");
    });
}

/// A sweep is due again and again. It alone does not keep a simulation going, and what is old by the
/// end is removed.
#[test]
fn a_simulation_ends_with_a_policy() {
    let policy = || Retention::default().activity_days(1).messages_days(Channel::InApp, 1);
    on_both_with(
        |builder| builder.retention(policy()),
        |world| {
            furnish(&world);
            let months = json!({ "type": "delay", "metadata":
                { "type": "regular", "amount": 120, "unit": "months" } });
            world.workflow_of("slow", &[say("now"), months, say("then")]);
            world.trigger(json!({ "name": "slow", "to": "ada" }));
            world.trigger(json!({ "name": "plain", "to": "bob" }));
            let then = minutes(0).as_millis() + 9 * 365 * 24 * 3_600_000;
            let delivery = world.engine.delivery();

            let report = delivery.run_until(Timestamp::from_millis(then)).unwrap();
            // The notification, the message and the receipt of one event.
            assert_eq!((report.swept, world.inbox("bob").len()), (3, 0));
            assert_eq!((world.now().as_millis(), world.inbox("ada").len()), (then, 1));

            let report = delivery.run_until(Timestamp::MAX).unwrap();
            assert_eq!((report.swept, world.inbox("ada").len()), (4, 0));
            assert_eq!(world.now(), time("9998-12-31T23:59:59.999Z"));
            // The clock is at the end, so that nothing is left to do.
            assert_eq!(delivery.run_until(Timestamp::MAX).unwrap().swept, 0);
        },
    );
}

#[test]
fn a_clock_that_cannot_be_set_is_refused() {
    let engine = tidings::Engine::in_memory();
    let error = engine.delivery().run_until(minutes(1)).unwrap_err();
    let text = "a simulation needs an engine with a manual clock";
    assert_eq!((error.status(), error.to_string()), (400, text.to_owned()));
}
