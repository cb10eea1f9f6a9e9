//! Observers: told what has happened, in the order of commits.

use std::mem;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::json;
use tidings::job::Detail;
use tidings::message::MarkAs;
use tidings::observer::{Event, MessageEvent};
use tidings::time::Timestamp;
use tidings::{Builder, Clock, Engine, FailureReason, SendError, SystemClock};

use super::refusing::push;
use super::{ada, retryable};
use crate::world::{World, email, id, in_app, on_both, only, parsed};

const PATIENCE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

// An engine on the store of `world`, and what its observer is told.
fn observed(
    world: &World,
    configure: impl FnOnce(Builder) -> Builder,
) -> (Engine, Receiver<Event>) {
    let (sender, events) = channel();
    let observer = move |event: &Event| drop(sender.send(event.clone()));
    (world.engine_with(|builder| configure(builder.observer(observer))), events)
}

// All events, once the engine is gone.
fn told(engine: Engine, events: &Receiver<Event>) -> Vec<Event> {
    drop(engine);
    let next = || events.recv_timeout(PATIENCE);
    std::iter::from_fn(|| next().ok()).collect()
}

// A word for each event.
fn words(events: &[Event]) -> Vec<String> {
    let of = |word: &str, message: &MessageEvent| format!("{word} {}", message.channel);
    let word = |event: &Event| match event {
        Event::MessageCreated(message) => of("created", message),
        Event::MessageSent(message) => of("sent", message),
        Event::MessageFailed(message) => of("failed", message),
        Event::MessageMarked(message) => of("marked", message),
        Event::JobFailed(job) => format!("{} job failed", job.kind),
        Event::NotificationEnded { .. } => "ended".into(),
        Event::PreferenceChanged { workflow_id, .. } => {
            format!("preference {}", workflow_id.is_some())
        }
        other => format!("{other:?}"),
    };
    events.iter().map(word).collect()
}

#[test]
fn what_happens_is_told_in_its_order() {
    on_both(|world| {
        ada(&world);
        world.active_integration("email", "sendgrid");
        world.workflow_of("both", &[in_app(), email()]);
        let (engine, events) = observed(&world, |builder| builder);
        let env = engine.environment(world.env.environment_id()).unwrap();
        let trigger = parsed(json!({ "name": "both", "to": "ada" }));

        env.events().trigger(&trigger).unwrap();
        engine.delivery().run_due(10).unwrap();
        env.inbox("ada").unwrap().mark_all(MarkAs::Read).unwrap();
        let global = parsed(json!({ "channels": { "sms": false } }));
        env.preferences("ada").unwrap().update_global(&global).unwrap();
        world.recorder.refuse_next(SendError::permanent("no"));
        env.events().trigger(&trigger).unwrap();
        engine.delivery().run_due(10).unwrap();
        // What is refused has not happened.
        env.events().trigger(&parsed(json!({ "name": "nothing", "to": "ada" }))).unwrap_err();

        let first = world.messages("ada").pop().unwrap();
        drop(env);
        let events = told(engine, &events);
        let expected = [
            "created in_app",
            "sent email",
            "ended",
            "marked in_app",
            "preference false",
            "created in_app",
            "failed email",
            "email job failed",
            "ended",
        ];
        assert_eq!(words(&events), expected);
        let Event::MessageCreated(created) = &events[0] else { panic!("{events:?}") };
        assert_eq!((created.message_id, created.subscriber_id), (first.id, first.subscriber_id));
        assert_eq!(created.notification_id, first.notification_id);
    });
}

/// A host that shows a badge is told of each message that comes into an inbox.
#[test]
fn a_message_that_comes_back_into_an_inbox_is_told() {
    on_both(|world| {
        ada(&world);
        world.in_app_workflow("hi");
        let (engine, events) = observed(&world, |builder| builder);
        let env = engine.environment(world.env.environment_id()).unwrap();
        for mark in [None, Some(MarkAs::Read)] {
            env.events().trigger(&parsed(json!({ "name": "hi", "to": "ada" }))).unwrap();
            let message = world.messages("ada").remove(0);
            if let Some(mark) = mark {
                env.inbox("ada").unwrap().mark_as([message.id], mark).unwrap();
            }
            let later = world.clock.now().after(HOUR);
            env.inbox("ada").unwrap().snooze([message.id], later).unwrap();
            world.clock.advance(HOUR);
            engine.delivery().run_due(10).unwrap();
            env.notifications().resend(message.notification_id, "0").unwrap();
            let later = world.clock.now().after(HOUR);
            env.inbox("ada").unwrap().snooze([message.id], later).unwrap();
            env.inbox("ada").unwrap().unsnooze([message.id]).unwrap();
        }

        drop(env);
        let created = ["created in_app", "ended"];
        // The job that is resent is a part of a notification that has ended.
        let again = ["created in_app", "created in_app", "created in_app"];
        let expected = [&created[..], &again, &created, &["marked in_app"], &again].concat();
        assert_eq!(words(&told(engine, &events)), expected);
    });
}

/// One that fails in the trigger, and one that fails in a turn of its own, which the report has.
#[test]
fn a_job_of_the_inbox_that_fails_is_told() {
    on_both(|world| {
        ada(&world);
        let broken = json!({
            "type": "in_app", "template": { "body": "{{ payload.a / payload.b }}" },
        });
        let delay = json!({ "type": "delay", "metadata": { "type": "regular", "amount": 1,
            "unit": "hours" } });
        world.workflow_of("broken", &[broken.clone(), delay, broken]);
        let (engine, events) = observed(&world, |builder| builder);
        let env = engine.environment(world.env.environment_id()).unwrap();
        let payload = json!({ "a": 1, "b": "two" });
        let trigger = parsed(json!({ "name": "broken", "to": "ada", "payload": payload }));

        let receipt = env.events().trigger(&trigger).unwrap();
        world.clock.advance(Duration::from_secs(3_600));
        let report = engine.delivery().run_due(10).unwrap();

        let notification = world.notification(receipt.notifications[0].notification_id);
        let [first, _, last] = &notification.jobs[..] else { panic!("{notification:?}") };
        assert_eq!((report.failed, report.failures.len()), (1, 1));
        assert_eq!(report.failures[0].job_id, last.id);
        let FailureReason::Unsendable { detail, text: Some(text) } = &report.failures[0].reason
        else {
            panic!("{report:?}")
        };
        assert_eq!(*detail, Detail::ContentNotGenerated);
        assert!(!text.is_empty());
        let failed = json!({ "outcomes": ["failed"] });
        assert_eq!(env.notifications().list(&parsed(failed)).unwrap().data.len(), 1);
        assert_eq!(env.dead_letters().list(&parsed(json!({}))).unwrap().data.len(), 0);
        drop(env);
        let events = told(engine, &events);
        assert_eq!(words(&events), ["in_app job failed", "in_app job failed", "ended"]);
        for (event, job) in events.iter().zip([first, last]) {
            let Event::JobFailed(told) = event else { panic!("{event:?}") };
            assert_eq!((told.job_id, told.step_id), (job.id, job.step.id));
            assert_eq!(told.notification_id, notification.id);
            assert_eq!(told.reason, Some(Detail::ContentNotGenerated));
        }
    });
}

/// One that failed for good is redriven, and is sent again; then it fails with another answer.
#[test]
fn a_message_that_is_sent_after_a_failure_is_told() {
    on_both(|world| {
        ada(&world);
        world.active_integration("email", "sendgrid");
        world.workflow_of("mail", &[email()]);
        let (engine, events) = observed(&world, |builder| builder);
        let env = engine.environment(world.env.environment_id()).unwrap();
        let run = || engine.delivery().run_due(10).unwrap();
        world.recorder.refuse_next(SendError::permanent("no"));
        env.events().trigger(&parsed(json!({ "name": "mail", "to": "ada" }))).unwrap();
        assert_eq!(run().failed, 1);
        let message = only(world.messages("ada"));

        env.dead_letters().redrive_matching(&parsed(json!({}))).unwrap();
        assert_eq!(run().sent, 1);
        env.messages().mark("ada", [message.id], MarkAs::Read).unwrap();
        env.notifications().resend(message.notification_id, "0").unwrap();
        assert_eq!(run().sent, 1);
        world.recorder.refuse_next(SendError::permanent("gone"));
        env.notifications().resend(message.notification_id, "0").unwrap();
        assert_eq!(run().failed, 1);

        drop((run, env));
        let events = told(engine, &events);
        let failed = ["failed email", "email job failed", "ended"];
        let sent = ["sent email", "ended"];
        let expected = [&failed[..], &sent, &["marked email"], &sent, &failed].concat();
        assert_eq!(words(&events), expected);
    });
}

/// The message fails for the first device, and the second one gets it later. Each acceptance is told.
#[test]
fn a_message_that_another_device_gets_is_told() {
    on_both(|world| {
        let fcm = world.active_integration("push", "fcm");
        let devices = json!({ "deviceTokens": ["phone", "tablet", "watch"] });
        world.subscriber(json!({ "subscriberId": "ada", "channels": [
            { "providerId": "fcm", "_integrationId": fcm.id, "credentials": devices },
        ] }));
        world.workflow_of("push", &[push()]);
        let (engine, events) = observed(&world, |builder| builder);
        let env = engine.environment(world.env.environment_id()).unwrap();
        world.recorder.refuse_next(SendError::permanent("no"));
        for _ in 0..2 {
            world.recorder.refuse_next(retryable("busy"));
        }
        env.events().trigger(&parsed(json!({ "name": "push", "to": "ada" }))).unwrap();
        engine.delivery().run_due(10).unwrap();
        world.clock.advance(Duration::from_secs(60));
        assert_eq!(engine.delivery().run_due(10).unwrap().sent, 2);

        drop(env);
        let events = told(engine, &events);
        assert_eq!(words(&events), ["failed push", "sent push", "sent push", "ended"]);
    });
}

#[test]
fn a_panic_of_the_observer_is_its_own() {
    on_both(|world| {
        world.in_app_workflow("inbox");
        let (sender, events) = channel();
        let observer = move |event: &Event| {
            sender.send(event.clone()).unwrap();
            panic!("the observer is broken");
        };
        let engine = world.engine_with(|builder| builder.observer(observer));
        let env = engine.environment(world.env.environment_id()).unwrap();
        for _ in 0..2 {
            env.events().trigger(&parsed(json!({ "name": "inbox", "to": "ada" }))).unwrap();
        }
        drop(env);
        assert_eq!(told(engine, &events).len(), 4);
    });
}

/// Ordinals are given in transactions, so that ids are in the order of commits.
#[test]
fn threads_are_told_of_in_the_order_of_their_commits() {
    on_both(|world| {
        world.in_app_workflow("inbox");
        let (engine, events) = observed(&world, |builder| builder);
        let env = engine.environment(world.env.environment_id()).unwrap();
        thread::scope(|scope| {
            for n in 0..8 {
                let env = &env;
                scope.spawn(move || {
                    let to = format!("s{n}");
                    for _ in 0..20 {
                        let trigger = json!({ "name": "inbox", "to": to });
                        env.events().trigger(&parsed(trigger)).unwrap();
                    }
                });
            }
        });
        drop(env);
        let events = told(engine, &events);
        let created = events.iter().filter_map(|event| match event {
            Event::MessageCreated(message) => Some(message.notification_id.ordinal()),
            _ => None,
        });
        let created: Vec<_> = created.collect();
        assert_eq!(created.len(), 160);
        assert!(created.is_sorted(), "{created:?}");
        assert!(world.env.subscribers().find(id("s7")).unwrap().is_some());
    });
}

/// A clock that shows another time than the system's.
#[derive(Clone, Debug, Default)]
struct Shifted(Arc<Mutex<Duration>>);

impl Clock for Shifted {
    fn now(&self) -> Timestamp {
        SystemClock.now().after(*self.0.lock().unwrap())
    }
}

/// A clock behind whose next reading the thread stops.
#[derive(Clone, Debug, Default)]
struct Stopping(Arc<Mutex<Duration>>);

impl Clock for Stopping {
    fn now(&self) -> Timestamp {
        let now = SystemClock.now();
        thread::sleep(mem::take(&mut *self.0.lock().unwrap()));
        now
    }
}

#[test]
fn a_thread_that_stops_is_no_jump_of_the_clock() {
    let world = World::in_memory();
    let clock = Stopping::default();
    let (engine, events) = observed(&world, |builder| builder.clock(clock.clone()));
    engine.delivery().run_due(1).unwrap();
    *clock.0.lock().unwrap() = Duration::from_millis(2_200);
    engine.delivery().run_due(1).unwrap();

    assert_eq!(told(engine, &events), []);
}

#[test]
fn a_clock_that_jumps_is_told() {
    let world = World::in_memory();
    let clock = Shifted::default();
    let (engine, events) = observed(&world, |builder| builder.clock(clock.clone()));
    let hour = Duration::from_secs(3_600);
    engine.delivery().run_due(1).unwrap();
    *clock.0.lock().unwrap() = hour;
    engine.delivery().run_due(1).unwrap();
    engine.delivery().run_due(1).unwrap();
    *clock.0.lock().unwrap() = Duration::ZERO;
    engine.delivery().run_due(1).unwrap();

    let told = told(engine, &events);
    let [Event::ClockJumped { from, to }, Event::ClockJumped { from: back, to: again }] = told[..]
    else {
        panic!("{told:?}")
    };
    assert!(to.since(from) > hour / 2 && back.since(again) > hour / 2);
}
