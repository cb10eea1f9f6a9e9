//! Digests.

use std::slice;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tidings::ids::NotificationId;
use tidings::job::JobDigest;
use tidings::json::Object;
use tidings::limits::Limits;
use tidings::{Call, DeliveryReport, ManualClock, Scope, SendError};

use super::{delay, digest, event_at, run_at, set};
use crate::world::{
    START, World, email, names, on_both, on_both_with, only, parsed, say, time, with,
};

fn minute() -> Value {
    digest(json!({ "type": "regular", "amount": 1, "unit": "minutes" }))
}

fn said() -> Value {
    say("{{ total_count }}: {% for event in events %}{{ event.payload.n }} {% endfor %}")
}

/// D1: three events within the window are one message at its end, in the order of their arrival.
#[test]
fn d1_events_of_a_window_are_one_message() {
    on_both(|world| {
        world.workflow_of("news", &[minute(), said()]);
        let first = event_at(&world, 0, "news", json!({ "n": 1 }));
        let others = [10, 20].map(|at| event_at(&world, at, "news", json!({ "n": at })));
        run_at(&world, 59);
        assert_eq!(world.texts("ada"), [""; 0]);
        assert_eq!(world.statuses(first), ["delayed", "pending"]);

        run_at(&world, 60);
        assert_eq!(world.texts("ada"), ["3: 1 10 20 "]);
        let notification = world.notification(first);
        assert_eq!(world.log(notification.id, 0), ["digest_opened", "digest_closed"]);
        let gathered = notification.jobs[0].digest.clone().unwrap();
        assert_eq!(gathered.event_count, Some(3));
        let numbers = gathered.events.iter().map(|event| event.payload["n"].clone());
        assert_eq!(numbers.collect::<Vec<_>>(), [json!(1), json!(10), json!(20)]);
        for other in others {
            let merged = world.notification(other);
            assert_eq!(world.statuses(other), ["merged", "merged"]);
            assert_eq!(world.log(merged.id, 0), ["digest_merged"]);
            assert_eq!(merged.digested_notification_id, Some(first));
        }
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

/// The record of a notification has the payloads of the events, which may be as deep as an object can be.
#[test]
fn the_deepest_payload_is_digested_and_read_again() {
    on_both(|world| {
        let ada = json!({ "subscriberId": "ada", "email": "ada@example.org" });
        world.env.subscribers().create(&parsed(ada)).unwrap();
        world.active_integration("email", "sendgrid");
        world.workflow_of("news", &[minute(), say("{{ total_count }}"), email()]);
        let deepest = (1..Object::MAX_DEPTH).fold(json!({}), |inside, _| json!({ "in": inside }));
        let id = event_at(&world, 0, "news", deepest.clone());
        run_at(&world, 60);

        assert_eq!(world.texts("ada"), ["1"]);
        let read = world.notification(id);
        assert_eq!(world.statuses(id), ["completed", "completed", "completed"]);
        let [event] = &read.jobs[0].digest.clone().unwrap().events[..] else { panic!("one event") };
        assert_eq!(Value::from(event.payload.clone()), deepest);
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

/// Nobody else has done what there is nothing left to do of.
#[test]
fn the_end_of_a_window_without_events_is_left_to_nobody() {
    on_both(|world| {
        world.workflow_of("news", &[minute(), said()]);
        let event = json!({ "name": "news", "to": "ada", "transactionId": "t" });
        world.trigger(event);
        world.env.events().cancel("t").unwrap();
        set(&world, 60);

        let report = world.engine.delivery().run_due(100).unwrap();

        assert_eq!(report, DeliveryReport::default());
        assert_eq!(world.engine.delivery().next_due().unwrap(), None);
    });
}

/// D2: events of one millisecond are one message.
#[test]
fn d2_events_of_one_millisecond_are_one_message() {
    on_both(|world| {
        world.workflow_of("news", &[minute(), said()]);
        for n in [1, 2] {
            event_at(&world, 0, "news", json!({ "n": n }));
        }
        run_at(&world, 60);
        assert_eq!(world.texts("ada"), ["2: 1 2 "]);
    });
}

/// D3: events with different values of the key are collected separately.
#[test]
fn d3_keys_are_collected_separately() {
    on_both(|world| {
        let metadata =
            json!({ "type": "regular", "amount": 1, "unit": "minutes", "digestKey": "key" });
        world.workflow_of("news", &[digest(metadata), said()]);
        for (n, key) in [(1, "a"), (2, "b"), (3, "a"), (4, "b")] {
            event_at(&world, n, "news", json!({ "n": n, "key": key }));
        }
        run_at(&world, 70);
        assert_eq!(world.texts("ada"), ["2: 1 3 ", "2: 2 4 "]);
    });
}

/// D4: an event at the end of a window opens another one, whether the window was closed or not.
#[test]
fn d4_an_event_at_the_end_opens_another_window() {
    on_both(|world| {
        world.workflow_of("news", &[minute(), said()]);
        event_at(&world, 0, "news", json!({ "n": 1 }));
        set(&world, 60);
        world.trigger(json!({ "name": "news", "to": "ada", "payload": { "n": 2 } }));
        world.run_due();
        assert_eq!(world.texts("ada"), ["1: 1 "]);
        run_at(&world, 120);
        assert_eq!(world.texts("ada"), ["1: 1 ", "1: 2 "]);
    });
}

/// A call may wait for its transaction while the window is closed, and a clock may go back.
#[test]
fn an_event_joins_no_window_that_has_closed() {
    on_both(|world| {
        world.workflow_of("news", &[minute(), said()]);
        event_at(&world, 0, "news", json!({ "n": 1 }));
        run_at(&world, 60);
        let late = event_at(&world, 59, "news", json!({ "n": 2 }));
        assert_eq!(world.log(late, 0), ["digest_opened"]);
        run_at(&world, 120);
        assert_eq!(world.texts("ada"), ["1: 1 ", "1: 2 "]);
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

/// A handler triggers events in a round that closes a window, before and after its events are read.
#[test]
fn an_event_joins_no_window_that_is_being_closed() {
    let late = Arc::new(Mutex::new(None::<(Scope, ManualClock)>));
    let told = Arc::clone(&late);
    let trigger = move |_: &Call| {
        let (env, clock) = told.lock().unwrap().clone().unwrap();
        clock.set(time(START).after(Duration::from_secs(59)));
        env.events().trigger(&parsed(json!({ "name": "news", "to": "ada" }))).unwrap();
        clock.set(time(START).after(Duration::from_secs(60)));
        Ok(None)
    };
    on_both_with(
        |builder| builder.handler("late", trigger.clone()),
        |world| {
            *late.lock().unwrap() = Some((world.env.clone(), world.clock.clone()));
            let custom = json!({ "type": "custom", "metadata": { "handler": "late" } });
            world.workflow_of("before", slice::from_ref(&custom));
            world.workflow_of("news", &[minute(), say("{{ total_count }}")]);
            world.workflow_of("behind", &[custom]);
            event_at(&world, 0, "news", json!({}));
            set(&world, 60);
            for other in ["before", "behind"] {
                world.trigger(json!({ "name": other, "to": "ada" }));
            }
            run_at(&world, 60);
            run_at(&world, 119);
            let told: Vec<u64> =
                world.texts("ada").iter().map(|text| text.parse().unwrap()).collect();
            assert_eq!(told, [1, 2]);
        },
    );
}

/// D5: the first event after a quiet time passes; an open window takes the others.
#[test]
fn d5_an_open_window_wins_over_the_look_back() {
    on_both(|world| {
        let metadata = json!({
            "type": "backoff", "amount": 60, "unit": "minutes",
            "backoffAmount": 5, "backoffUnit": "minutes",
        });
        world.workflow_of("news", &[digest(metadata), said()]);
        let first = event_at(&world, 0, "news", json!({ "n": 0 }));
        assert_eq!(world.statuses(first), ["skipped", "completed"]);
        assert_eq!(world.log(first, 0), ["digest_passed"]);
        assert_eq!(world.texts("ada"), ["1: 0 "]);
        let second = event_at(&world, 60, "news", json!({ "n": 1 }));
        let third = event_at(&world, 30 * 60, "news", json!({ "n": 30 }));
        assert_eq!(world.statuses(second), ["delayed", "pending"]);
        assert_eq!(world.statuses(third), ["merged", "merged"]);
        run_at(&world, 61 * 60);
        assert_eq!(world.texts("ada").last().unwrap(), "2: 1 30 ");
    });
}

/// The time of an event under a clock that was set back does not end the quiet time after a later one.
#[test]
fn a_look_back_sees_the_latest_event() {
    on_both(|world| {
        let metadata = json!({
            "type": "backoff", "amount": 1, "unit": "minutes",
            "backoffAmount": 30, "backoffUnit": "minutes",
        });
        world.workflow_of("news", &[digest(metadata), said()]);
        let minutes = |minutes: u64| minutes * 60;
        for at in [0, 50] {
            let passes = event_at(&world, minutes(at), "news", json!({ "n": at }));
            assert_eq!(world.statuses(passes), ["skipped", "completed"]);
        }
        event_at(&world, minutes(10), "news", json!({ "n": 10 }));
        run_at(&world, minutes(12));
        let soon = event_at(&world, minutes(55), "news", json!({ "n": 55 }));
        assert_eq!(world.statuses(soon), ["delayed", "pending"]);
    });
}

/// An event that passes a digest is that of the templates behind it, also of those that are rendered
/// when the message is sent.
#[test]
fn an_event_that_passes_is_alone_in_its_digest() {
    on_both(|world| {
        world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
        world.active_integration("email", "sendgrid");
        let template = json!({ "subject": "{{ total_count }} of {{ last.payload.n }}", "body":
            "{{ steps.digest.eventCount }} {{ steps.digest.status }} {{ first.payload.n }}" });
        let mail = json!({ "type": "email", "template": template });
        let quiet = with(minute(), json!({ "runIf": { "var": "payload.waits" } }));
        let backoff = json!({
            "type": "backoff", "amount": 60, "unit": "minutes",
            "backoffAmount": 5, "backoffUnit": "minutes",
        });
        for (name, first) in [("condition", quiet), ("backoff", digest(backoff))] {
            world.workflow_of(name, &[first, mail.clone()]);
            event_at(&world, 0, name, json!({ "n": 7 }));
            world.run_due();
            let sent = world.recorder.sent();
            let message = &sent.last().unwrap().message;
            assert_eq!(message.subject.as_deref(), Some("1 of 7"), "{name}");
            assert_eq!(message.text(), Some("1 skipped 7"), "{name}");
        }
    });
}

/// D6: events that were delayed before are one message.
#[test]
fn d6_a_delay_before_a_digest_changes_nothing() {
    on_both(|world| {
        let delay = json!({
            "type": "delay", "metadata": { "type": "regular", "amount": 5, "unit": "seconds" },
        });
        world.workflow_of("news", &[delay, minute(), said()]);
        for n in [1, 2] {
            event_at(&world, n, "news", json!({ "n": n }));
        }
        for at in [6, 7, 66] {
            run_at(&world, at);
        }
        assert_eq!(world.texts("ada"), ["2: 1 2 "]);
    });
}

/// D7: a condition that holds changes nothing, and one that does not lets the event pass unmerged.
#[test]
fn d7_a_condition_decides_about_the_digest() {
    on_both(|world| {
        let only = json!([{ "type": "GROUP", "value": "AND", "children": [
            { "field": "quiet", "operator": "EQUAL", "value": "true", "on": "payload" },
        ] }]);
        let mut step = minute();
        step["filters"] = only;
        world.workflow_of("news", &[step, say("{{ payload.n }} {{ total_count }}")]);
        for n in [1, 2] {
            event_at(&world, n, "news", json!({ "n": n, "quiet": true }));
        }
        let loud = event_at(&world, 3, "news", json!({ "n": 3, "quiet": false }));
        assert_eq!(world.statuses(loud), ["skipped", "completed"]);
        run_at(&world, 61);
        assert_eq!(world.texts("ada"), ["3 1", "1 2"]);
    });
}

/// D8: the deletion of the first notification leaves the others, which are one message.
#[test]
fn d8_the_oldest_event_that_is_left_goes_on() {
    on_both(|world| {
        world.workflow_of("news", &[minute(), said()]);
        let first = event_at(&world, 0, "news", json!({ "n": 1 }));
        let second = event_at(&world, 10, "news", json!({ "n": 2 }));
        event_at(&world, 20, "news", json!({ "n": 3 }));
        set(&world, 30);
        world.env.notifications().delete(first).unwrap();
        run_at(&world, 60);
        assert_eq!(world.texts("ada"), ["2: 2 3 "]);
        assert_eq!(world.statuses(second), ["completed", "completed"]);
        assert_eq!(world.notification(second).digested_notification_id, None);
    });
}

/// D8: also if the oldest event is canceled.
#[test]
fn d8_the_window_of_a_canceled_event_ends_at_its_time() {
    on_both(|world| {
        world.workflow_of("news", &[minute(), said()]);
        let event = json!({ "name": "news", "to": "ada", "payload": { "n": 1 } });
        let event = with(event, json!({ "transactionId": "t1" }));
        let first = only(world.trigger(event).notifications).notification_id;
        event_at(&world, 10, "news", json!({ "n": 2 }));
        event_at(&world, 20, "news", json!({ "n": 3 }));
        set(&world, 30);
        world.env.events().cancel("t1").unwrap();
        run_at(&world, 59);
        assert_eq!(world.texts("ada"), [""; 0]);
        run_at(&world, 60);
        assert_eq!(world.texts("ada"), ["2: 2 3 "]);
        assert_eq!(world.statuses(first), ["canceled", "canceled"]);
    });
}

/// D9: a window that is closed again after a crash is not merged with itself.
#[test]
fn d9_a_window_closes_once_after_a_crash() {
    on_both(|world| {
        world.workflow_of("news", &[minute(), said()]);
        event_at(&world, 0, "news", json!({ "n": 1 }));
        event_at(&world, 1, "news", json!({ "n": 2 }));
        set(&world, 60);
        for write in 0..30 {
            world.interrupted(write, || world.engine.delivery().run_due(usize::MAX).ok());
        }
        run_at(&world, 3_600);
        assert_eq!(world.texts("ada"), ["2: 1 2 "]);
    });
}

/// D11: a calendar is that of the subscriber's time zone. At noon in UTC, nine o'clock in Berlin is 20 hours away.
#[test]
fn d11_calendar_times_are_those_of_the_subscriber() {
    let nine = json!({ "type": "timed", "timed": { "cronExpression": "0 9 * * *" } });
    for step in [digest(nine.clone()), delay(nine)] {
        on_both(|world| {
            let ada = json!({ "subscriberId": "ada", "timezone": "Europe/Berlin" });
            world.subscriber(ada);
            world.workflow_of("news", &[step.clone(), say("{{ payload.n }}")]);
            event_at(&world, 0, "news", json!({ "n": 1 }));
            run_at(&world, 20 * 3_600 - 1);
            assert_eq!(world.texts("ada"), [""; 0], "{step}");
            run_at(&world, 20 * 3_600);
            assert_eq!(world.texts("ada"), ["1"], "{step}");
        });
    }
}

/// A call may wait for its transaction while the window is closed.
#[test]
fn a_calendar_digest_has_one_message_at_each_time() {
    const NINE: u64 = 21 * 3_600;
    on_both(|world| {
        let nine = json!({ "type": "timed", "timed": { "cronExpression": "0 9 * * *" } });
        world.workflow_of("news", &[digest(nine), said()]);
        event_at(&world, 0, "news", json!({ "n": 1 }));
        run_at(&world, NINE);
        let late = event_at(&world, NINE - 1, "news", json!({ "n": 2 }));
        assert_eq!(world.log(late, 0), ["digest_opened"]);
        for at in [NINE, NINE + 3_600] {
            run_at(&world, at);
            assert_eq!(world.texts("ada"), ["1: 1 "]);
        }
        event_at(&world, NINE + 7_200, "news", json!({ "n": 3 }));
        run_at(&world, NINE + 24 * 3_600);
        assert_eq!(world.texts("ada"), ["1: 1 ", "2: 2 3 "]);
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

/// D14: the overrides of an event set the lengths of its windows and delays, each by its own name.
#[test]
fn d14_an_event_sets_the_length_of_its_digest_and_of_its_delay() {
    let short = json!({ "amount": 5, "unit": "seconds" });
    let minute = json!({ "type": "regular", "amount": 1, "unit": "minutes" });
    for (step, own, other) in
        [(digest(minute.clone()), "digest", "delay"), (delay(minute), "delay", "digest")]
    {
        on_both(|world| {
            world.workflow_of("news", &[step.clone(), say("{{ payload.n }}")]);
            for (start, name, length) in [(0, own, 5), (100, other, 60)] {
                run_at(&world, start);
                let event = json!({ "name": "news", "to": "ada", "payload": { "n": start } });
                world.trigger(with(event, json!({ "overrides": { name: short } })));
                let before = world.inbox("ada").len();
                run_at(&world, start + length - 1);
                assert_eq!(world.inbox("ada").len(), before, "{own} with {name}");
                run_at(&world, start + length);
                assert_eq!(world.inbox("ada").len(), before + 1, "{own} with {name}");
            }
        });
    }
}

/// D10: two digests in one workflow have windows of their own.
#[test]
fn d10_digests_of_one_workflow_are_independent() {
    on_both(|world| {
        let hour = digest(json!({ "type": "regular", "amount": 1, "unit": "hours" }));
        let hour = json!({ "name": "hourly", "type": hour["type"], "metadata": hour["metadata"] });
        world.workflow_of("news", &[minute(), hour, said()]);
        // The events of the latest digest of a notification that has closed.
        let events = |id| {
            let events = world.env.notifications().digest_events(id, None).unwrap().data;
            names(&events, |event| event.payload.get("n").unwrap().to_string())
        };
        let [first, _] = [0, 100].map(|start| {
            let [first, _] =
                [start, start + 10].map(|at| event_at(&world, at, "news", json!({ "n": at })));
            run_at(&world, start + 60);
            assert_eq!(events(first), [start.to_string(), (start + 10).to_string()]);
            first
        });
        run_at(&world, 3_660);
        assert_eq!(world.texts("ada"), ["2: 0 100 "]);
        assert_eq!(events(first), ["0", "100"]);
    });
}

/// A message between two digests tells of the events of the first one, also if it is sent again, or for the
/// first time, when the second one has closed.
#[test]
fn a_message_between_two_digests_tells_of_the_first_one() {
    let body = "{% for event in events %}{{ event.payload.n }} {% endfor %}";
    let template = json!({ "subject": "{{ total_count }} new", "body": body });
    let mail = |name| json!({ "type": "email", "name": name, "template": template });
    let hour = digest(json!({ "type": "regular", "amount": 1, "unit": "hours" }));
    let hour = with(hour, json!({ "name": "hourly" }));
    let (five, one) = ("5 new: 0 10 20 30 40 ", "1 new: 0 ");
    for (is_held, expected) in [(false, vec![five, one, five]), (true, vec![five, one])] {
        on_both(|world| {
            world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
            let ses = world.active_integration("email", "ses").id;
            world.workflow_of("news", &[minute(), mail("first"), hour.clone(), mail("second")]);
            if is_held {
                world.env.integrations().pause(ses).unwrap();
            }
            let [id, ..] =
                [0, 10, 20, 30, 40].map(|at| event_at(&world, at, "news", json!({ "n": at })));
            run_at(&world, 60);
            run_at(&world, 3_660);
            assert_eq!(
                world.notification(id).jobs[2].digest.as_ref().unwrap().event_count,
                Some(1)
            );
            if is_held {
                world.env.integrations().resume(ses).unwrap();
            } else {
                world.env.notifications().resend(id, "first").unwrap();
            }
            run_at(&world, 3_661);
            let mut sent = names(&world.recorder.sent(), |sent| {
                let subject = sent.message.subject.clone().unwrap();
                format!("{subject}: {}", sent.message.text().unwrap())
            });
            if is_held {
                sent.sort_unstable_by(|one, other| other.cmp(one));
            }
            assert_eq!(sent, expected, "{is_held}");
            assert_eq!(world.engine.check().unwrap().findings, []);
        });
    }
}

/// The first one of the inbox had failed, and is made anew when the second digest has closed.
#[test]
fn a_message_that_is_made_anew_tells_of_the_digest_before_it() {
    on_both(|world| {
        let again = with(minute(), json!({ "name": "again" }));
        let steps = |text: &str| [minute(), say(text), again.clone(), say("{{ total_count }}")];
        world.workflow_of("news", &steps("{{ payload.n / payload.by }}"));
        let [id, _] =
            [0, 10].map(|at| event_at(&world, at, "news", json!({ "n": at, "by": "two" })));
        run_at(&world, 60);
        run_at(&world, 120);
        assert_eq!(world.statuses(id), ["completed", "failed", "completed", "completed"]);
        let repaired = json!({ "steps": steps("{{ total_count }} of {{ last.payload.n }}") });
        world.env.workflows().update("news", &parsed(repaired)).unwrap();

        world.env.notifications().resend(id, "1").unwrap();

        assert_eq!(world.texts("ada"), ["1", "2 of 10"]);
    });
}

/// The message of a closed window is that of all its events. It is canceled with the last of them.
#[test]
fn a_digest_is_canceled_with_its_last_event() {
    let text = "{{ total_count }}: {% for event in events %}{{ event.payload.n }} {% endfor %}";
    let sms = json!({ "type": "sms", "template": { "body": text } });
    for (canceled, expected) in [
        (&["t1"][..], &["2: 1 2 "][..]),
        (&["t2"], &["2: 1 2 "]),
        (&["t1", "t2"], &[]),
        (&["t2", "t1"], &[]),
    ] {
        on_both(|world| {
            world.active_integration("sms", "of-the-host");
            world.subscriber(json!({ "subscriberId": "ada", "phone": "+1" }));
            world.workflow_of("news", &[minute(), sms.clone()]);
            for n in [1, 2] {
                world.trigger(json!({
                    "name": "news", "to": "ada", "payload": { "n": n },
                    "transactionId": format!("t{n}"),
                }));
            }
            world.recorder.refuse_next(SendError::retryable("busy"));
            run_at(&world, 60);
            for id in canceled {
                let answer = world.env.events().cancel(*id).unwrap();
                assert_eq!((answer.running, answer.remaining), (0, 0), "{id}");
            }
            run_at(&world, 3_600);
            let sent = world.recorder.sent();
            assert_eq!(names(&sent, |sent| sent.message.text().unwrap().to_owned()), expected);
            assert_eq!(world.engine.delivery().next_due().unwrap(), None);
            assert_eq!(world.engine.check().unwrap().findings, []);
        });
    }
}

/// A canceled event goes on for the others of an earlier digest. Its jobs end with a later window if none
/// of these is left by then.
#[test]
fn a_later_digest_ends_with_the_last_event_of_an_earlier_one() {
    let others: [fn(&World, NotificationId); 3] = [
        |_, _| {},
        |world, _| assert_eq!(world.env.events().cancel("t2").unwrap().running, 0),
        |world, other| world.env.notifications().delete(other).unwrap(),
    ];
    let ended = ["completed", "canceled", "canceled"];
    for (other_ends, expected) in others.into_iter().zip([["completed"; 3], ended, ended]) {
        on_both(|world| {
            let again = with(minute(), json!({ "name": "again" }));
            world.workflow_of("news", &[minute(), again, say("{{ total_count }}")]);
            run_at(&world, 0);
            let [first, other] = ["t1", "t2"].map(|id| {
                let event = json!({ "name": "news", "to": "ada", "transactionId": id });
                only(world.trigger(event).notifications).notification_id
            });
            run_at(&world, 60);
            assert_eq!(world.env.events().cancel("t1").unwrap().canceled, 0);
            other_ends(&world, other);
            run_at(&world, 120);
            assert_eq!(world.statuses(first), expected);
            assert_eq!(world.engine.delivery().next_due().unwrap(), None);
            assert_eq!(world.engine.check().unwrap().findings, []);
        });
    }
}

/// The message before a digest waits for its integration longer than the event that has opened the window lasts.
#[test]
fn a_message_that_waits_ends_no_live_event_of_a_later_digest() {
    on_both(|world| {
        world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
        let integration = world.active_integration("email", "ses");
        world.env.integrations().pause(integration.id).unwrap();
        let hour = delay(json!({ "type": "regular", "amount": 1, "unit": "hours" }));
        world.workflow_of("news", &[email(), minute(), hour, said()]);
        let expires_at = time(START).after(Duration::from_secs(1_800));
        let event = json!({ "name": "news", "to": "ada", "expiresAt": expires_at });
        run_at(&world, 0);
        let first = only(world.trigger(event).notifications).notification_id;
        let other = event_at(&world, 10, "news", json!({ "n": 2 }));
        for at in [60, 3_660] {
            run_at(&world, at);
        }

        assert_eq!(world.texts("ada"), ["2:  2 "]);
        let behind = |id| world.statuses(id).split_off(1);
        assert_eq!([first, other].map(behind), [["completed"; 3], ["merged"; 3]]);
        world.env.integrations().resume(integration.id).unwrap();
        run_at(&world, 3_700);
        assert_eq!([first, other].map(|id| world.statuses(id).remove(0)), ["skipped", "completed"]);
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

/// The call of a provider is under way when the event is canceled. The windows belong to the other event, too.
#[test]
fn a_call_that_is_under_way_ends_no_live_event_of_later_digests() {
    on_both(|world| {
        world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
        world.active_integration("email", "ses");
        let again = with(minute(), json!({ "name": "again" }));
        world.workflow_of("news", &[email(), minute(), again, said()]);
        run_at(&world, 0);
        let [first, other] = ["t1", "t2"].map(|id| {
            let event = json!({ "name": "news", "to": "ada", "transactionId": id });
            only(world.trigger(event).notifications).notification_id
        });
        let dying = world.mortal_engine(|builder| builder, |_| {});
        assert!(dying.delivery().run_due(usize::MAX).is_err());
        run_at(&world, 60);
        assert_eq!(world.env.events().cancel("t1").unwrap().running, 1);
        run_at(&world, 120);

        let behind = |id| world.statuses(id).split_off(1);
        assert_eq!([first, other].map(behind), [["completed"; 3], ["merged"; 3]]);
        run_at(&world, 600);
        assert_eq!(
            [first, other].map(|id| world.statuses(id).remove(0)),
            ["canceled", "completed"]
        );
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

/// An event that has expired when its window ends is left out, and the first one of the others has the
/// message: also its payload, its conditions and its overrides are meant.
#[test]
fn an_expired_event_is_left_out_of_its_digest() {
    let (sent, skipped, merged) = (["completed"; 3], ["skipped"; 3], ["merged"; 3]);
    for (expiries, expected, ended) in [
        ([30, 90, 59], &["2 of 1"][..], [skipped, sent, merged]),
        ([90, 30, 59], &["1 of 1"], [sent, merged, merged]),
        ([30, 90, 90], &["2 of 2"], [skipped, sent, merged]),
        ([30, 60, 59], &[], [skipped, merged, merged]),
    ] {
        on_both(|world| {
            let delay = json!({
                "type": "delay", "metadata": { "type": "regular", "amount": 5, "unit": "seconds" },
            });
            let said = say("{{ payload.n }} of {{ total_count }}");
            world.workflow_of("news", &[minute(), delay, said]);
            run_at(&world, 0);
            let ids = [1, 2, 3].map(|n| {
                let expires_at = time(START).after(Duration::from_secs(expiries[n - 1]));
                let receipt = world.trigger(json!({
                    "name": "news", "to": "ada", "payload": { "n": n }, "expiresAt": expires_at,
                }));
                only(receipt.notifications).notification_id
            });
            for at in [60, 65] {
                run_at(&world, at);
            }
            assert_eq!(world.texts("ada"), expected);
            assert_eq!(ids.map(|id| world.statuses(id)), ended);
            let last = world.log(ids[0], 0).pop().unwrap();
            assert_eq!(last == "expired", ended[0] == skipped, "{last}");
            assert_eq!(world.engine.delivery().next_due().unwrap(), None);
            assert_eq!(world.engine.check().unwrap().findings, []);
        });
    }
}

/// A window that a clock has opened that was years ahead ends a minute after the clock is right, and
/// holds no event of today.
#[test]
fn a_clock_that_was_ahead_holds_no_later_events() {
    on_both(|world| {
        let years = 5 * 365 * 24 * 60 * 60;
        world.workflow_of("news", &[minute(), said()]);
        for (at, n) in [(years, 1), (0, 2), (30, 3)] {
            event_at(&world, at, "news", json!({ "n": n }));
        }
        run_at(&world, 59);
        assert_eq!(world.texts("ada"), [""; 0]);
        for at in [60, years + 60] {
            run_at(&world, at);
            assert_eq!(world.texts("ada"), ["1: 1 ", "2: 2 3 "]);
        }
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

/// An event passes an inactive digest, as it passes one by its condition.
#[test]
fn an_event_passes_an_inactive_digest() {
    on_both(|world| {
        let inactive = with(minute(), json!({ "active": false, "name": "news" }));
        let text = "{{ total_count }} {{ first.payload.n }} {{ steps.news.eventCount }} \
                    {{ steps.news.events[0].payload.n }} {{ steps.news.status }}";
        let delay = super::delay(json!({ "type": "regular", "amount": 1, "unit": "minutes" }));
        world.workflow_of("news", &[inactive, say(text), delay, say(text)]);
        let id = event_at(&world, 0, "news", json!({ "n": 7 }));
        assert_eq!(world.texts("ada"), ["1 7 1 7 skipped"]);
        run_at(&world, 60);
        assert_eq!(world.texts("ada"), ["1 7 1 7 skipped"; 2]);
        assert_eq!(world.statuses(id), ["completed"; 3]);
    });
}

/// A message that waits when a digest is added before it has passed the digest, too.
#[test]
fn an_event_passes_a_digest_that_is_added_while_it_waits() {
    on_both(|world| {
        let delay = super::delay(json!({ "type": "regular", "amount": 1, "unit": "minutes" }));
        let delay = with(delay, json!({ "name": "wait" }));
        let said = |text: &str| with(say(text), json!({ "name": "said" }));
        world.workflow_of("news", &[delay.clone(), said("{{ payload.n }}")]);
        let id = event_at(&world, 0, "news", json!({ "n": 7 }));
        let steps = [minute(), delay, said("{{ total_count }} {{ last.payload.n }}")];
        let update = parsed(json!({ "steps": steps }));
        world.env.workflows().update("news", &update).unwrap();
        run_at(&world, 60);
        assert_eq!(world.texts("ada"), ["1 7"]);
        assert_eq!(world.statuses(id), ["completed"; 2]);
    });
}

/// A window that is open when its step is deactivated or deleted closes as it would have: the message
/// is that of its events. Later events have no digest.
#[test]
fn a_window_outlives_its_step() {
    let say = |body: &str| with(say(body), json!({ "name": "said" }));
    let said = say("{{ payload.n }}: {{ total_count | default('alone') }}");
    let inactive = with(minute(), json!({ "active": false }));
    for (steps, expected) in [
        (json!([inactive, said]), ["3: 1", "1: 2"]),
        // Without a digest, a template cannot name its events.
        (json!([say("{{ payload.n }}")]), ["3", "1"]),
    ] {
        for restarts in [false, true] {
            on_both(|mut world| {
                world.workflow_of("news", &[minute(), said.clone()]);
                let [first, second] =
                    [1, 2].map(|n| event_at(&world, n, "news", json!({ "n": n })));
                let update = parsed(json!({ "steps": steps }));
                world.env.workflows().update("news", &update).unwrap();
                event_at(&world, 3, "news", json!({ "n": 3 }));
                assert_eq!(world.texts("ada"), expected[..1]);
                if restarts {
                    world.restart_with(|builder| builder);
                }
                run_at(&world, 61);
                assert_eq!(world.texts("ada"), expected);
                assert_eq!(world.statuses(first), ["completed"; 2]);
                assert_eq!(world.statuses(second), ["merged"; 2]);
                let closed = world.notification(first);
                assert_eq!(world.log(closed.id, 0), ["digest_opened", "digest_closed"]);
                assert_eq!(closed.jobs[0].digest.as_ref().unwrap().event_count, Some(2));
                assert_eq!(world.engine.delivery().next_due().unwrap(), None);
                assert_eq!(world.engine.check().unwrap().findings, []);
            });
        }
    }
}

#[test]
fn contexts_and_subscribers_have_windows_of_their_own() {
    on_both(|world| {
        world.workflow_of("news", &[minute(), said()]);
        run_at(&world, 0);
        for tenant in ["acme", "globex"] {
            let context = json!({ "tenant": tenant });
            for to in ["ada", "bob"] {
                world.trigger(json!({
                    "name": "news", "to": to, "payload": { "n": tenant }, "context": context,
                }));
            }
        }
        run_at(&world, 60);
        assert_eq!(world.texts("ada"), ["1: acme ", "1: globex "]);
        assert_eq!(world.inbox("bob").len(), 2);
    });
}

/// A job has the first hundred events, the last one and the number of all.
#[test]
fn a_job_has_the_first_hundred_events() {
    on_both(|world| {
        world.workflow_of(
            "news",
            &[minute(), say("{{ total_count }} {{ first.payload.n }} {{ last.payload.n }}")],
        );
        for n in 0..250 {
            world.trigger(json!({ "name": "news", "to": "ada", "payload": { "n": n } }));
        }
        run_at(&world, 60);
        assert_eq!(world.texts("ada"), ["250 0 249"]);
        let notifications = world.notifications(json!({ "limit": 50, "page": 4 }));
        let gathered = only(notifications.last()).jobs[0].digest.clone().unwrap();
        assert_eq!((gathered.events.len(), gathered.event_count), (100, Some(250)));
    });
}

/// A job has as many of its events as fit, the last one and the number of all. One that fits nowhere is there
/// nevertheless.
#[test]
fn a_job_has_the_first_mebibyte_of_events() {
    let text = "{% for event in events %}{{ event.payload.n }} {% endfor %}\
                and {{ total_count - events | length }} more, the last is {{ last.payload.n }}";
    for (size, expected) in [
        (200 * 1024, "0 1 2 3 4 and 3 more, the last is 7"),
        (JobDigest::MAX_EVENTS_SIZE, "0 and 7 more, the last is 7"),
        (100 * 1024, "0 1 2 3 4 5 6 7 and 0 more, the last is 7"),
    ] {
        let limits = Limits::default().payload(2 * JobDigest::MAX_EVENTS_SIZE);
        on_both_with(
            |builder| builder.limits(limits),
            |world| {
                world.workflow_of("news", &[minute(), say(text)]);
                let large = "x".repeat(size);
                let [id, ..] = [0, 1, 2, 3, 4, 5, 6, 7]
                    .map(|n| event_at(&world, 0, "news", json!({ "n": n, "large": large })));
                run_at(&world, 60);
                assert_eq!(world.texts("ada"), [expected]);
                let gathered = world.notification(id).jobs[0].digest.clone().unwrap();
                assert_eq!(gathered.event_count, Some(8));
                assert_eq!(gathered.last_event.is_none(), gathered.events.len() == 8);
                let page = world.env.notifications().digest_events(id, None).unwrap();
                assert_eq!((page.data.len(), page.next), (8, None));
            },
        );
    }
}

#[test]
fn a_workflow_without_steps_behind_a_digest_ends_with_it() {
    on_both(|world| {
        world.workflow_of("news", &[minute()]);
        let id = event_at(&world, 0, "news", json!({}));
        run_at(&world, 60);
        assert_eq!(world.statuses(id), ["completed"]);
    });
}

/// Two results of one batch let a notification go on, and only the first of the two turns finds the
/// digest. The second one comes when the window is over, and before its end was taken care of.
#[test]
fn a_turn_that_comes_late_ends_no_window() {
    on_both_with(
        |builder| builder.handler("noop", |_: &Call| Ok(None)),
        |world| {
            world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
            world.active_integration("email", "ses");
            let custom = json!({ "type": "custom", "metadata": { "handler": "noop" } });
            world.workflow_of("news", &[email(), custom, minute(), said()]);
            let first = event_at(&world, 0, "news", json!({ "n": 1 }));
            let delivery = world.engine.delivery();
            delivery.run_due(2).unwrap();
            delivery.run_due(1).unwrap();
            assert_eq!(world.statuses(first)[2..], ["delayed", "pending"]);

            run_at(&world, 60);

            assert_eq!(world.texts("ada"), ["1: 1 "]);
            assert_eq!(world.log(first, 2), ["digest_opened", "digest_closed"]);
            assert_eq!(world.engine.check().unwrap().findings, []);
        },
    );
}
