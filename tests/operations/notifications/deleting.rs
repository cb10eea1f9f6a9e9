//! Deleting from the activity list: one notification, or what is old.

use std::time::Duration;

use domain::digest::WindowEvent;
use serde_json::{Value, json};
use testkit::interposed::Point;
use tidings::Scope;
use tidings::ids::NotificationId;
use tidings::time::Timestamp;
use tidings::trigger::Trigger;

use super::{count, happen, ids, intact, on_both_with_segments as on_both};
use crate::cascades;
use crate::world::{START, email, in_app, names, parsed, time, workflow_of};

/// A deletion of a notification, or of those before a time.
type Act = fn(&Scope, NotificationId, Timestamp);

#[test]
fn any_time_is_searched_after_the_segments_before_it_are_cleared() {
    on_both(|world| {
        world.workflow_of("hi", &[in_app()]);
        let mut times = Vec::new();
        for _ in 0..60 {
            world.clock.advance(Duration::from_millis(1));
            happen(&world, "hi", "ada", json!({}));
            times.push(world.now());
        }

        assert_eq!(world.env.notifications().delete_before(times[40]).unwrap(), 40);

        for (at, time) in times.iter().enumerate() {
            let left = (at as u64 + 1).saturating_sub(40);
            assert_eq!(count(&world.env, json!({ "before": time })), left, "{at}");
        }
    });
}

#[test]
fn a_clock_that_is_wrong_once_spoils_nothing_after_it() {
    for (year, is_old) in [("2099", false), ("1970", true)] {
        on_both(|world| {
            world.workflow_of("hi", &[in_app()]);
            let made = |count: usize| {
                let each = |_| {
                    world.clock.advance(Duration::from_secs(1));
                    happen(&world, "hi", "ada", json!({}))
                };
                (0..count).map(each).collect::<Vec<_>>()
            };
            let mut today = made(5);
            let now = world.now();
            world.clock.set(time(&format!("{year}-06-01T00:00:00.000Z")));
            let wrong = made(1);
            world.clock.set(now);
            today.extend(made(60));
            today.reverse();

            let window = json!({ "after": time(START), "before": world.now() });
            assert_eq!(ids(&world.env, window), today);
            assert_eq!(world.notification(today[0]).created_at, world.now());

            // Retention keeps what is young, wherever it lies, and deletes what is old.
            let notifications = world.env.notifications();
            let month = Duration::from_secs(30 * 24 * 60 * 60);
            assert_eq!(notifications.delete_before(time(START)).unwrap(), u64::from(is_old));
            world.clock.advance(month);
            let newest = made(3);
            let removed = notifications.delete_before(now.after(month)).unwrap();
            assert_eq!(removed, today.len() as u64);
            let wrong = if is_old { Vec::new() } else { wrong };
            let left: Vec<_> = newest.iter().rev().chain(&wrong).copied().collect();
            assert_eq!(ids(&world.env, json!({})), left);
            assert_eq!(count(&world.env, json!({ "after": now.after(month) })), left.len() as u64);
            intact(&world.env);
            assert!(notifications.rebuild_index().unwrap().is_finished);
            assert_eq!(count(&world.env, json!({ "before": world.now() })), 3);
            intact(&world.env);
        });
    }
}

#[test]
fn a_notification_that_was_deleted_is_nowhere() {
    // Where it is sealed, and where it is not.
    for behind in [0, 40] {
        on_both(|world| {
            world.workflow_of("hi", &[in_app(), email()]);
            world.active_integration("email", "sendgrid");
            let ada = json!({ "subscriberId": "ada", "email": "ada@example.org" });
            let both = json!({ "to": [ada, "bob"], "transactionId": "t" });
            let deleted = happen(&world, "hi", "ada", both);
            for _ in 0..behind {
                happen(&world, "hi", "bob", json!({}));
            }
            let all = behind + 2;
            let listed = |query: Value| ids(&world.env, query);
            assert!(listed(json!({ "transactionId": "t" })).contains(&deleted));
            let inbox = world.inbox("ada");

            world.env.notifications().delete(deleted).unwrap();

            let refusal = format!("404 notification `{deleted}` is not there");
            world.refuses(&refusal, || world.env.notifications().get(deleted));
            world.refuses(&refusal, || world.env.notifications().delete(deleted));
            assert_eq!(count(&world.env, json!({})), all - 1);
            for (query, left) in [
                (json!({ "transactionId": "t" }), 1),
                (json!({ "subscriberIds": ["ada"] }), 0),
                (json!({ "channels": ["email"], "severity": ["none"] }), all - 1),
                (json!({ "templates": ["hi"], "search": "example" }), 0),
            ] {
                assert_eq!(listed(query.clone()).len() as u64, left, "{query}");
                assert_eq!(count(&world.env, query), left);
            }
            // What it has put into an inbox stays; what it has not sent is not sent.
            assert_eq!(world.inbox("ada"), inbox);
            world.run_due();
            assert!(world.recorder.sent().is_empty());
            // The trigger has happened, and happens no more.
            let again = json!({ "name": "hi", "to": "ada", "transactionId": "t" });
            assert_eq!(world.trigger(again).notifications.len(), 2);
            assert_eq!(count(&world.env, json!({})), all - 1);
            intact(&world.env);
        });
    }
}

#[test]
fn what_is_deleted_is_what_was_created_before_then() {
    on_both(|world| {
        let workflow = world.in_app_workflow("hi");
        let made: Vec<NotificationId> =
            (0..40).map(|_| happen(&world, "hi", "ada", json!({}))).collect();
        let twentieth = world.notification(made[20]).created_at;
        let delete_before = |end| world.env.notifications().delete_before(end).unwrap();

        assert_eq!(delete_before(time(START)), 0);
        assert_eq!(ids(&world.env, json!({})).len(), 40);
        // The one that was created just then is not older.
        assert_eq!(delete_before(twentieth), 20);

        let left: Vec<_> = made[20..].iter().rev().copied().collect();
        for query in
            [json!({}), json!({ "templates": [workflow.id] }), json!({ "after": twentieth })]
        {
            assert_eq!(ids(&world.env, query), left);
        }
        for query in
            [json!({ "before": twentieth }), json!({ "after": twentieth, "before": twentieth })]
        {
            assert_eq!(ids(&world.env, query), [made[20]]);
        }
        assert!(made[..20].iter().all(|id| world.env.notifications().get(*id).is_err()));
        assert_eq!(delete_before(twentieth), 0);
        // A millisecond later it is, and those that one by one were deleted are not counted.
        world.env.notifications().delete(made[25]).unwrap();
        assert_eq!(delete_before(twentieth.after(Duration::from_millis(1))), 1);
        assert_eq!(delete_before(world.now().after(Duration::from_millis(1))), 18);
        assert_eq!(count(&world.env, json!({})), 0);
        intact(&world.env);
        // Life goes on behind what was deleted.
        let new = happen(&world, "hi", "ada", json!({}));
        assert_eq!(ids(&world.env, json!({ "subscriberIds": ["ada"] })), [new]);
        assert!(made.iter().all(|old| *old < new));
        intact(&world.env);
    });
}

#[test]
fn a_trigger_is_forgotten_with_the_last_of_its_notifications() {
    on_both(|world| {
        world.in_app_workflow("hi");
        let event = json!({ "name": "hi", "to": ["ada", "bob"], "transactionId": "t" });
        let first = world.trigger(event.clone());
        let time = world.tick();
        world.env.notifications().delete(first.notifications[1].notification_id).unwrap();
        assert_eq!(world.trigger(event.clone()), first);

        assert_eq!(world.env.notifications().delete_before(time).unwrap(), 1);

        let second = world.trigger(event.clone());
        assert_ne!(second.notifications, first.notifications);
        assert_eq!(
            ids(&world.env, json!({ "transactionId": "t" })),
            [second.notifications[1].notification_id, second.notifications[0].notification_id]
        );
        assert_eq!(world.trigger(event), second);
        intact(&world.env);
    });
}

#[test]
fn a_trigger_is_forgotten_too_when_its_notifications_are_deleted_one_by_one() {
    on_both(|world| {
        world.in_app_workflow("hi");
        let event = json!({ "name": "hi", "to": ["ada", "bob"], "transactionId": "t" });
        let first = world.trigger(event.clone());
        for created in first.notifications.iter().rev() {
            assert_eq!(world.trigger(event.clone()), first);
            world.env.notifications().delete(created.notification_id).unwrap();
        }
        assert!(ids(&world.env, json!({ "transactionId": "t" })).is_empty());

        let second = world.trigger(event.clone());
        assert_ne!(second.notifications, first.notifications);
        assert_eq!(ids(&world.env, json!({ "transactionId": "t" })).len(), 2);
        intact(&world.env);
    });
}

/// More than a transaction takes is deleted in several of them, and an interruption in between
/// leaves the list in order: a trigger with one notification on either side is still known.
#[test]
fn a_deletion_of_much_that_is_old_goes_on_where_it_was() {
    cascades::on_both(|world| {
        let [_, second] = crowd(&world.env);
        let notifications = world.env.notifications();
        let end = time("2030-01-01T00:00:00Z");
        assert_eq!(count(&world.env, json!({})), 2_004);

        let delete = || notifications.delete_before(end);
        assert!(world.interrupted(4, delete).is_err());

        assert_eq!(count(&world.env, json!({})), 1_004);
        let left = ids(&world.env, json!({ "transactionId": "pair" }));
        assert_eq!(names(&left, Clone::clone), [&*second], "half of it is left");
        let again = parsed(pair());
        let receipt = world.env.events().trigger(&again).unwrap();
        assert_eq!(receipt.notifications[1].notification_id.to_string(), second);
        assert_eq!(count(&world.env, json!({})), 1_004);
        intact(&world.env);
        assert_eq!(delete().unwrap(), 1_004);
        assert_eq!((count(&world.env, json!({})), delete().unwrap()), (0, 0));
        intact(&world.env);
        // The id is free again, and nothing of before is left besides.
        let receipt = world.env.events().trigger(&again).unwrap();
        assert!(!names(&receipt.notifications, |one| one.notification_id).contains(&second));
        let tables = world.dump_without(&[]);
        let there = |table: &str| tables.keys().filter(|(name, _)| *name == table).count();
        assert_eq!((there("notifications"), there("transactions")), (2, 1));
        assert_eq!(there("triggers"), 1);
        assert_eq!((there("activity_segments"), there("activity_deleted")), (0, 0));
    });
}

/// Whether the window is open or has closed. There is no policy of retention.
#[test]
fn the_events_of_digests_go_with_their_notifications() {
    for is_closed in [false, true] {
        on_both(|world| {
            let hour = json!({ "type": "regular", "amount": 1, "unit": "hours" });
            let digest = json!({ "type": "digest", "metadata": hour });
            world.workflow_of("news", &[digest, in_app()]);
            let all: Vec<_> = (0..4).map(|_| world.notify("news", "ada")).collect();
            let bob = world.notify("news", "bob");
            if is_closed {
                world.pass(Duration::from_secs(7_200));
                world.run_due();
            }
            let left = || names(&world.records::<WindowEvent>(), |event| event.notification_id);
            let notifications = world.env.notifications();

            notifications.delete(all[1]).unwrap();
            notifications.delete(all[0]).unwrap();

            assert_eq!(left(), names(&[all[2], all[3], bob], |id| *id), "{is_closed}");
            world.pass(Duration::from_secs(7_200));
            world.run_due();
            assert_eq!((world.inbox("ada").len(), world.inbox("bob").len()), (1, 1));
            assert_eq!(notifications.digest_events(bob, None).unwrap().data.len(), 1);
            assert_eq!(notifications.delete_before(world.now()).unwrap(), 3);
            assert_eq!(left(), [""; 0]);
            assert_eq!(world.engine.check().unwrap().findings, []);
        });
    }
}

/// A delay ends while the deletion looks for the events of the notification, which then joins a window.
#[test]
fn an_event_that_is_collected_meanwhile_goes_with_its_notification() {
    let many: Act = |env, _, time| assert_eq!(env.notifications().delete_before(time).unwrap(), 3);
    let one: Act = |env, id, _| env.notifications().delete(id).unwrap();
    for (act, left) in [(many, 0), (one, 2)] {
        on_both(|world| {
            let minute = json!({ "type": "regular", "amount": 1, "unit": "minutes" });
            let hour = json!({ "type": "regular", "amount": 1, "unit": "hours" });
            let [delay, digest] = [("delay", minute), ("digest", hour)]
                .map(|(kind, metadata)| json!({ "type": kind, "metadata": metadata }));
            world.workflow_of("news", &[digest.clone(), in_app()]);
            world.workflow_of("late", &[delay, digest, in_app()]);
            world.notify("news", "ada");
            let late = world.notify("late", "ada");
            world.notify("news", "bob");
            world.pass(Duration::from_secs(60));
            let events = || world.records::<WindowEvent>().len();
            assert_eq!(events(), 2);
            let engine = world.engine.clone();
            world.store.pause(Point::Write, 0, move || _ = engine.delivery().run_due(9).unwrap());

            act(&world.env, late, world.now());

            assert_eq!((count(&world.env, json!({})), events() as u64), (left, left));
            assert_eq!(world.engine.check().unwrap().findings, []);
        });
    }
}

/// Each transaction removes the events of its notifications, which may be behind those of later ones.
#[test]
fn a_deletion_of_much_that_is_old_takes_events_of_digests_along() {
    cascades::on_both(|world| {
        let hour = json!({ "type": "regular", "amount": 1, "unit": "hours" });
        world.workflow_of("hi", &[json!({ "type": "digest", "metadata": hour }), in_app()]);
        fill(&world.env, 600);
        world.notify("hi", "bob");
        let end = world.tick();
        fill(&world.env, 2);
        let events = || world.records::<WindowEvent>().len();
        let delete = || world.env.notifications().delete_before(end);

        assert!(world.interrupted(2, delete).is_err());

        assert_eq!((count(&world.env, json!({})), events()), (103, 103));
        assert_eq!(delete().unwrap(), 101);
        assert_eq!((count(&world.env, json!({})), events()), (2, 2));
    });
}

#[test]
fn a_deletion_that_is_made_once_is_made_once() {
    on_both(|world| {
        world.in_app_workflow("hi");
        let first = happen(&world, "hi", "ada", json!({}));
        happen(&world, "hi", "ada", json!({}));
        let time = world.tick();
        let once = |key: &str| world.env.idempotent(key).unwrap();

        once("one").notifications().delete(first).unwrap();
        world.unchanged(|| once("one").notifications().delete(first).unwrap());
        assert_eq!(once("old").notifications().delete_before(time).unwrap(), 1);
        happen(&world, "hi", "ada", json!({}));
        let again = world.unchanged(|| once("old").notifications().delete_before(time).unwrap());
        assert_eq!(again, 1);
    });
}

// So many that the thousandth is the first of a pair, whose ids are returned.
fn crowd(env: &Scope) -> [String; 2] {
    env.workflows().create(&parsed(workflow_of("hi", &[in_app()]))).unwrap();
    fill(env, 999);
    let pair = env.events().trigger(&parsed(pair())).unwrap().notifications;
    fill(env, 1_003);
    [0, 1].map(|at| pair[at].notification_id.to_string())
}

fn pair() -> Value {
    json!({ "name": "hi", "to": ["ada", "bob"], "transactionId": "pair" })
}

fn fill(env: &Scope, count: usize) {
    let events: Vec<Trigger> = vec![parsed(json!({ "name": "hi", "to": "ada" })); count];
    for events in events.chunks(Trigger::MAX_BULK) {
        env.events().trigger_bulk(events).unwrap().all().unwrap();
    }
}
