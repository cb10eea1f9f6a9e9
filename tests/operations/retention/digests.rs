//! What a sweep keeps of digests, and what goes with them.

use std::slice;
use std::time::Duration;

use serde_json::json;
use store::Table;
use testkit::interposed::Interposed;
use tidings::Builder;
use tidings::ids::NotificationId;
use tidings::retention::Retention;
use tidings::vocabulary::Channel;

use super::{DAY, count, days, is_sound};
use crate::world::{World, email, id, in_app, on_both, on_both_with, only, parsed};

/// An open window pins its events, also those of an earlier digest in them, whoever was canceled.
#[test]
fn open_windows_pin_their_events() {
    let digest = |amount: u32, unit: &str| {
        json!({
            "type": "digest", "metadata": { "type": "regular", "amount": amount, "unit": unit },
        })
    };
    let said = json!({ "type": "in_app", "template": {
        "body": "{% for event in events %}{{ event.payload.n }}{% endfor %}",
    } });
    let long = digest(2, "months");
    for (digests, canceled, expected) in [
        (&[long.clone()][..], &["0"][..], "123"),
        (slice::from_ref(&long), &["0", "1"], "23"),
        // The first one goes on for those of its digest.
        (&[digest(10, "minutes"), long.clone()], &["0"], "0"),
    ] {
        on_both_with(
            |builder| builder.retention(Retention::default().activity_days(30)),
            |world| {
                let mut steps = digests.to_vec();
                steps.push(said.clone());
                world.workflow_of("news", &steps);
                for n in 0..4 {
                    world.trigger(json!({
                        "name": "news", "to": "ada", "payload": { "n": n },
                        "transactionId": n.to_string(),
                    }));
                }
                world.pass(Duration::from_secs(3_600));
                world.engine.delivery().run_due(usize::MAX).unwrap();
                for id in canceled {
                    world.env.events().cancel(*id).unwrap();
                }
                days(&world, 64);
                let texts: Vec<_> =
                    world.inbox("ada").iter().map(|one| one.text().map(str::to_owned)).collect();
                assert_eq!(texts, [Some(expected.to_owned())]);
                days(&world, 40);
                assert_eq!(count(&world), 0);
                is_sound(&world);
            },
        );
    }
}

/// What a digest has collected stays until the jobs behind it have ended, whichever event they belong to.
/// One row per fate of the event that has opened the window.
#[test]
fn a_digest_pins_its_events_without_their_opener() {
    let of = |kind: &str, amount: u32, unit: &str| json!({ "type": kind, "metadata": { "type": "regular", "amount": amount, "unit": unit } });
    let steps = [of("digest", 1, "hours"), of("delay", 60, "days"), in_app()];
    let fates: [fn(&World, NotificationId); 3] = [
        |_, _| {},
        |world, _| drop(world.env.events().cancel("0").unwrap()),
        |world, first| world.env.notifications().delete(first).unwrap(),
    ];
    for (fate, events) in fates.into_iter().zip([4, 3, 3]) {
        on_both_with(
            |builder| builder.retention(Retention::default().activity_days(30)),
            |world| {
                world.workflow_of("news", &steps);
                let ids: Vec<_> = (0..4)
                    .map(|n| {
                        let event = json!({
                            "name": "news", "to": "ada", "transactionId": n.to_string(),
                        });
                        only(world.trigger(event).notifications).notification_id
                    })
                    .collect();
                fate(&world, ids[0]);
                world.pass(Duration::from_secs(3_600));
                world.engine.delivery().run_due(usize::MAX).unwrap();
                days(&world, 50);
                let carrier = ids[4 - events];
                let page = world.env.notifications().digest_events(carrier, None).unwrap();
                assert_eq!(page.data.len(), events);
                assert!(ids[2..].iter().all(|id| world.env.notifications().get(*id).is_ok()));

                days(&world, 50);
                assert_eq!((count(&world), world.inbox("ada").len()), (0, 1));
                is_sound(&world);
            },
        );
    }
}

/// The opener was canceled, so that another event carries the digest. The others are many.
#[test]
fn a_sweep_of_a_digest_costs_as_much_as_it_has_events() {
    let reads = |count: usize| {
        let policy = Retention::default().activity_days(30);
        let world = World::with(Interposed::default(), |builder| builder.retention(policy));
        let digest = json!({ "type": "regular", "amount": 1, "unit": "hours" });
        world.workflow_of("news", &[json!({ "type": "digest", "metadata": digest }), in_app()]);
        for n in 0..count {
            let event = json!({ "name": "news", "to": "ada", "transactionId": n.to_string() });
            world.trigger(event);
        }
        // None of the first half is left when the window closes.
        for n in 0..count / 2 {
            world.env.events().cancel(n.to_string().as_str()).unwrap();
        }
        world.pass(Duration::from_secs(3_600));
        world.run_due();
        let (calls, _) = world.store.calls_of(|| days(&world, 40));
        assert_eq!(super::count(&world), 0);
        calls.len()
    };
    let (few, many) = (reads(250), reads(1_000));
    assert!(many < 5 * few, "{few} calls, and {many} for four times as many events");
}

/// A window that is extended may have no opener any more, and its bucket a later window.
#[test]
fn an_open_window_pins_its_events_without_their_opener() {
    on_both_with(
        |builder| builder.retention(Retention::default().activity_days(2)),
        |world| {
            // It is Saturday evening, and Ada accepts messages on Saturdays until five.
            world.pass(Duration::from_secs(30 * 3_600));
            world.bare_subscriber("ada");
            let hours = json!([{ "start": "09:00 AM", "end": "05:00 PM" }]);
            let saturday = json!({ "saturday": { "isEnabled": true, "hours": hours } });
            let update = json!({ "schedule": { "isEnabled": true, "weeklySchedule": saturday } });
            world.env.preferences(id("ada")).unwrap().update_global(&parsed(update)).unwrap();
            let metadata = json!({
                "type": "regular", "amount": 1, "unit": "minutes", "extendToSchedule": true,
            });
            let digest = json!({ "type": "digest", "metadata": metadata });
            let said = json!({ "type": "in_app", "template": {
                "body": "{% for event in events %}{{ event.payload.n }}{% endfor %}",
            } });
            world.workflow_of("news", &[digest, said]);
            let event = |n: u32| {
                let event = json!({ "name": "news", "to": "ada", "payload": { "n": n } });
                only(world.trigger(event).notifications).notification_id
            };
            let [opener, ..] = [1, 2, 3].map(event);
            world.env.notifications().delete(opener).unwrap();
            world.pass(Duration::from_secs(60));
            event(4);

            days(&world, 6);
            world.pass(Duration::from_secs(15 * 3_600));
            world.run_due();

            let mut texts: Vec<_> =
                world.inbox("ada").iter().map(|one| one.text().map(str::to_owned)).collect();
            texts.sort();
            assert_eq!(texts, [Some("23".to_owned()), Some("4".to_owned())]);
            days(&world, 4);
            assert_eq!(count(&world), 0);
            is_sound(&world);
        },
    );
}

fn digesting(world: &World, amount: u32, unit: &str) {
    let throttle = json!({ "amount": 1, "unit": "hours", "threshold": 500 });
    let digest = json!({ "type": "regular", "amount": amount, "unit": unit });
    world.workflow_of(
        "news",
        &[
            json!({ "type": "throttle", "metadata": throttle }),
            json!({ "type": "digest", "name": "digest", "metadata": digest }),
            in_app(),
        ],
    );
}

/// The events of a digest are paged as long as their notifications are kept. Places of throttles go when they
/// are free, and buckets with the end of their window.
#[test]
fn events_of_digests_go_with_their_notifications() {
    on_both_with(
        |builder| builder.retention(Retention::default().activity_days(30)),
        |world| {
            digesting(&world, 40, "days");
            let first = world.notify("news", "ada");
            for n in 1..150 {
                world.trigger(json!({ "name": "news", "to": "ada", "payload": { "n": n } }));
            }
            // Events are older than 30 days, and the window is open. Places are free for long.
            assert_eq!((days(&world, 39), count(&world)), (150, 150));
            assert_eq!(world.rows(Table::ThrottleSlots), 0);
            assert_eq!((days(&world, 1), days(&world, 30)), (0, 1));
            assert_eq!(world.rows(Table::DigestBuckets), 0);
            let page = world.env.notifications().digest_events(first, None).unwrap();
            assert_eq!((page.data.len(), page.next), (100, Some(100)));
            let rest = world.env.notifications().digest_events(first, page.next).unwrap();
            assert_eq!((rest.data.len(), rest.next), (50, None));
            assert_eq!(rest.data[49].payload.get("n"), Some(&json!(149)));

            // The notifications, the triggers but for the one with a message, the events.
            assert_eq!((days(&world, 1), count(&world)), (150 + 149 + 150, 0));
            assert_eq!(world.rows(Table::DigestEvents), 0);
            assert!(world.env.notifications().digest_events(first, None).is_err());
            is_sound(&world);
        },
    );
}

/// A policy may limit the age of messages only, and the host that of notifications. Each key of a digest and of a
/// throttle has a row of its own.
#[test]
fn keys_of_digests_and_throttles_go_without_an_age_of_notifications() {
    on_both_with(
        |builder| builder.retention(Retention::default().messages_days(Channel::InApp, 3)),
        |world| {
            let digest =
                json!({ "type": "regular", "amount": 1, "unit": "hours", "digestKey": "n" });
            let throttle =
                json!({ "amount": 1, "unit": "hours", "threshold": 1, "throttleKey": "n" });
            world.workflow_of(
                "news",
                &[
                    json!({ "type": "throttle", "metadata": throttle }),
                    json!({ "type": "digest", "metadata": digest }),
                    in_app(),
                ],
            );
            for n in 0..5 {
                world.trigger(json!({ "name": "news", "to": "ada", "payload": { "n": n } }));
            }
            let left =
                || [Table::DigestBuckets, Table::ThrottleSlots].map(|table| world.rows(table));
            assert_eq!(left(), [5, 5]);
            days(&world, 1);
            assert_eq!(left(), [5, 5], "the clock may be ahead");
            days(&world, 2);
            assert_eq!((left(), count(&world)), ([0, 0], 5));
            is_sound(&world);
        },
    );
}

/// An open window pins its events, also if the notification that has opened it is deleted.
#[test]
fn an_open_window_pins() {
    on_both_with(
        |builder| builder.retention(Retention::default().activity_days(10)),
        |world| {
            digesting(&world, 40, "days");
            let opener = world.notify("news", "ada");
            let other = world.notify("news", "ada");
            world.env.notifications().delete(opener).unwrap();
            days(&world, 39);
            assert!(world.env.notifications().find(other).unwrap().is_some());
            days(&world, 1);
            assert_eq!(world.inbox("ada").len(), 1);
            days(&world, 11);
            assert_eq!((count(&world), world.rows(Table::DigestEvents)), (0, 0));
        },
    );
}

/// A window that is closed late pins its events, although its opener was canceled and a later event has
/// opened another one. The process that closes it dies, and the next one sweeps first.
#[test]
fn a_window_that_is_closed_late_pins_its_events() {
    let retention = |builder: Builder| builder.retention(Retention::default().activity_days(1));
    on_both_with(retention, |mut world| {
        world.active_integration("email", "ses");
        world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
        world.workflow_of("mail", &[email()]);
        let hour = json!({ "type": "regular", "amount": 1, "unit": "hours" });
        let said = "{% for event in events %}{{ event.payload.n }}{% endfor %}";
        world.workflow_of(
            "news",
            &[
                json!({ "type": "digest", "metadata": hour }),
                json!({ "type": "in_app", "template": { "body": said } }),
            ],
        );
        let trigger = |world: &World, n: usize| {
            let (payload, id) = (json!({ "n": n }), n.to_string());
            world.trigger(json!({
                "name": "news", "to": "ada", "payload": payload, "transactionId": id,
            }));
        };
        world.notify("mail", "ada");
        trigger(&world, 0);
        trigger(&world, 1);
        world.pass(Duration::from_secs(7_200));
        trigger(&world, 2);
        world.env.events().cancel("0").unwrap();
        world.pass(3 * DAY);
        // The claim is stored, and nothing behind it.
        assert!(world.interrupted(1, || world.engine.delivery().run_due(3)).is_err());
        world.restart_with(retention);

        world.run_due();
        assert_eq!((world.inbox("ada").len(), count(&world)), (0, 4));
        world.pass(Duration::from_secs(300));
        world.run_due();

        let mut texts: Vec<_> =
            world.inbox("ada").iter().map(|one| one.text().unwrap().to_owned()).collect();
        texts.sort();
        assert_eq!(texts, ["1", "2"]);
        days(&world, 3);
        assert_eq!((count(&world), world.rows(Table::DigestEvents)), (0, 0));
        is_sound(&world);
    });
}

/// The look-back of a backoff is kept, however short the age is.
#[test]
fn a_look_back_outlives_the_age() {
    on_both_with(
        |builder| builder.retention(Retention::default().activity_days(1)),
        |world| {
            let backoff = json!({ "type": "backoff", "amount": 1, "unit": "hours",
                "backoffAmount": 7, "backoffUnit": "days" });
            world
                .workflow_of("news", &[json!({ "type": "digest", "metadata": backoff }), in_app()]);
            world.notify("news", "ada");
            days(&world, 5);
            assert_eq!((count(&world), world.rows(Table::DigestBuckets)), (0, 1));
            world.notify("news", "ada");
            assert_eq!(world.inbox("ada").len(), 1, "the second event opens a window");
            days(&world, 10);
            assert_eq!(world.rows(Table::DigestBuckets), 0);
        },
    );
}

/// Deleting a workflow or a subscriber removes its buckets and slots, also those of steps that the workflow
/// does not have any more.
#[test]
fn deletions_take_buckets_and_slots_along() {
    for has_steps in [true, false] {
        on_both(|world| {
            digesting(&world, 1, "hours");
            world.notify("news", "ada");
            world.notify("news", "bob");
            let left = |world: &World| {
                (world.rows(Table::DigestBuckets), world.rows(Table::ThrottleSlots))
            };
            assert_eq!(left(&world), (2, 2));
            if !has_steps {
                let bare = parsed(json!({ "steps": [in_app()] }));
                world.env.workflows().update("news", &bare).unwrap();
            }
            world.env.subscribers().delete("ada").unwrap();
            assert_eq!(left(&world), (1, 1), "{has_steps}");
            world.env.workflows().delete("news").unwrap();
            assert_eq!(left(&world), (0, 0));
            is_sound(&world);
        });
    }
}
