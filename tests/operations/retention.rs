//! Retention: what a sweep removes, and what it keeps.

mod crowds;
mod digests;

use std::fs;
use std::time::Duration;

use serde_json::json;
use store::Table;
use testkit::interposed::Interposed;
use testkit::tables::{self, put};
use tidings::message::InboxCounts;
use tidings::notification::NotificationQuery;
use tidings::quarantine::QuarantineQuery;
use tidings::retention::Retention;
use tidings::time::Timestamp;
use tidings::vocabulary::Channel;
use tidings::{Engine, ManualClock};

use crate::world::{
    Blip, START, World, email, id, in_app, on_both, on_both_with, only, parsed, time, workflow_of,
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Lets so many days pass, one after the other, with a sweep on each.
fn days(world: &World, days: u32) -> usize {
    let sweep = || {
        world.pass(DAY);
        world.engine.delivery().run_due(usize::MAX).unwrap().swept
    };
    (0..days).map(|_| sweep()).sum()
}

fn count(world: &World) -> u64 {
    world.env.notifications().count(&NotificationQuery::default()).unwrap()
}

fn is_sound(world: &World) {
    assert_eq!(world.engine.check().unwrap().findings, []);
}

#[test]
fn without_a_policy_everything_is_kept() {
    on_both(|world| {
        world.in_app_workflow("news");
        world.notify("news", "ada");
        assert_eq!(world.engine.delivery().next_due().unwrap(), None);
        assert_eq!(days(&world, 2), 0);
        assert_eq!((count(&world), world.rows(Table::Tasks)), (1, 0));
    });
}

/// A clock that shows the end of time has no later time for another sweep. Under the right clock there
/// is one again.
#[test]
fn at_the_end_of_time_there_is_one_sweep() {
    on_both_with(
        |builder| builder.retention(Retention::default().activity_days(30)),
        |world| {
            let right = world.now();
            world.clock.set(Timestamp::MAX);
            world.engine.delivery().run_due(100).unwrap();
            assert_eq!(world.engine.delivery().next_due().unwrap(), None);

            world.clock.set(right);
            world.engine.delivery().run_due(100).unwrap();
            let next = world.engine.delivery().next_due().unwrap();
            assert_eq!(next, Some(right.after(DAY)));
        },
    );
}

/// The age counts from the end of the last job. Messages and the receipt are kept.
#[test]
fn notifications_go_by_age() {
    on_both_with(
        |builder| builder.retention(Retention::default().activity_days(30)),
        |world| {
            world.in_app_workflow("news");
            let delay = json!({ "type": "delay", "metadata":
                { "type": "regular", "amount": 10, "unit": "days" } });
            world.workflow_of("late", &[delay, in_app()]);
            let news = world.notify("news", "ada");
            let late = world.notify("late", "ada");
            assert_eq!(days(&world, 30), 0);
            assert_eq!(days(&world, 1), 1);
            assert_eq!(world.env.notifications().find(news).unwrap(), None);
            assert_eq!(days(&world, 9), 0);
            assert!(world.env.notifications().find(late).unwrap().is_some());
            assert_eq!(days(&world, 1), 1);
            assert_eq!((count(&world), world.inbox("ada").len()), (0, 2));
            is_sound(&world);
        },
    );
}

/// A clock that was ahead has put the sweep off. The next start puts it back.
#[test]
fn a_clock_that_was_ahead_does_not_end_retention() {
    let policy = Retention::default().activity_days(5);
    on_both_with(
        |builder| builder.retention(policy.clone()),
        |mut world| {
            let year = 365 * DAY;
            world.pass(year);
            world.engine.delivery().run_due(usize::MAX).unwrap();
            world.clock.set(time(START));
            world.restart_with(|builder| builder.retention(policy.clone()));
            world.in_app_workflow("news");
            world.notify("news", "ada");
            assert_eq!(days(&world, 8), 1);
            assert_eq!(count(&world), 0);
        },
    );
}

/// A job that waits pins its notification and the messages, however old they are.
#[test]
fn a_clock_that_is_ahead_for_a_moment_makes_nothing_old() {
    let policy =
        Retention::default().activity_days(30).messages_days(Channel::InApp, 30).receipts_days(30);
    for readings in 0..30 {
        let mut world = World::in_memory();
        world.in_app_workflow("news");
        for _ in 0..3 {
            world.notify("news", "ada");
        }
        world.pass(DAY);
        let clock = Blip::behind(readings, &world.clock);
        world.restart_with(|builder| builder.clock(clock).retention(policy.clone()));

        for _ in 0..20 {
            assert_eq!(world.engine.delivery().run_due(100).unwrap().swept, 0, "{readings}");
        }

        assert_eq!((count(&world), world.inbox("ada").len()), (3, 3), "{readings}");
    }
}

/// As that of a machine that has not asked for the time yet.
#[test]
fn a_clock_that_is_set_right_within_an_hour_has_removed_nothing() {
    let hour = Duration::from_secs(60 * 60);
    on_both(|mut world| {
        // A manual clock would be right at once.
        let clock = Blip::behind(usize::MAX, &world.clock);
        let policy = Retention::default().activity_days(30);
        world.restart_with(|builder| builder.clock(clock).retention(policy.clone()));
        world.in_app_workflow("news");
        world.notify("news", "ada");
        let swept = |world: &World| world.engine.delivery().run_due(usize::MAX).unwrap().swept;
        assert_eq!(days(&world, 1), 0);

        let right = world.now();
        world.pass(3_650 * DAY);
        for _ in 0..6 {
            assert_eq!(swept(&world), 0);
            world.pass(Duration::from_secs(599));
        }
        world.clock.set(right);
        assert_eq!((days(&world, 20), count(&world)), (0, 1));
        assert_eq!((days(&world, 20), count(&world)), (1, 0));

        // Nothing has called for a while, and the clock is right.
        world.notify("news", "ada");
        world.pass(60 * DAY);
        assert_eq!(swept(&world), 0);
        let until = world.now().after(hour);
        assert_eq!(world.engine.delivery().next_due().unwrap(), Some(until));
        world.pass(hour);
        assert_eq!((swept(&world), count(&world)), (1, 0));
        assert_eq!(world.engine.delivery().next_due().unwrap(), Some(until.after(DAY)));
    });
}

/// An environment whose task cannot be read gets another one.
#[test]
fn a_task_that_cannot_be_read_does_not_end_retention() {
    let policy = || Retention::default().activity_days(30);
    on_both_with(
        |builder| builder.retention(policy()),
        |mut world| {
            world.active_integration("email", "ses");
            world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
            world.workflow_of("mail", &[email()]);
            days(&world, 1);
            let (table, key, _) = only(tables::of(&world.store, Table::Tasks));
            put(&world.store, table, &key, Some(b"\xFFgarbage"));
            world.restart_with(|builder| builder.retention(policy()));
            world.notify("mail", "ada");

            assert_eq!(world.run_due().sent, 1);

            assert_eq!((days(&world, 29), count(&world)), (0, 1));
            assert_eq!((days(&world, 3), count(&world)), (1, 0));
        },
    );
}

/// Receipts go in the order of their events, but for those of a clock that was ahead.
#[test]
fn a_receipt_of_a_clock_that_was_ahead_holds_up_no_other() {
    on_both_with(
        |builder| {
            builder
                .retention(Retention::default().activity_days(1).messages_days(Channel::InApp, 1))
        },
        |world| {
            world.in_app_workflow("news");
            let right = world.now();
            world.clock.set(time("2099-01-01T00:00:00.000Z"));
            world.notify("news", "ada");
            world.clock.set(right);
            for _ in 0..2 {
                world.notify("news", "ada");
            }
            assert_eq!(world.rows(Table::Triggers), 3);

            days(&world, 5);

            assert_eq!(world.rows(Table::Triggers), 1);
        },
    );
}

#[test]
fn live_tasks_pin() {
    on_both_with(
        |builder| {
            builder
                .retention(Retention::default().activity_days(1).messages_days(Channel::InApp, 1))
        },
        |world| {
            let delay = json!({ "type": "delay", "metadata":
                { "type": "regular", "amount": 2, "unit": "months" } });
            world.workflow_of("slow", &[in_app(), delay]);
            let slow = world.notify("slow", "ada");
            assert_eq!((days(&world, 40), world.inbox("ada").len()), (0, 1));
            assert!(world.env.notifications().find(slow).unwrap().is_some());
            days(&world, 30);
            assert_eq!(world.env.notifications().find(slow).unwrap(), None);
            assert_eq!((world.inbox("ada").len(), world.rows(Table::Triggers)), (0, 0));
        },
    );
}

/// Each channel has its own age. The row of the trigger goes with the last message, so that its
/// transaction id is free. The counters of the inbox stay, since its feed goes on, and tell nothing of
/// messages that are gone.
#[test]
fn messages_go_by_channel() {
    let retention = Retention::default()
        .activity_days(5)
        .messages_days(Channel::InApp, 20)
        .messages_days(Channel::Email, 10);
    on_both_with(
        |builder| builder.retention(retention.clone()),
        |world| {
            world.active_integration("email", "ses");
            world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
            world.workflow_of("both", &[in_app(), email()]);
            let event = json!({ "name": "both", "to": "ada", "transactionId": "once" });
            let first = world.trigger(event.clone());
            world.run_due();
            let counts = |world: &World| world.env.inbox(id("ada")).unwrap().counts().unwrap();
            let full = counts(&world);
            assert_eq!(world.messages("ada").len(), 2);
            assert_eq!((days(&world, 6), count(&world)), (1, 0));
            assert_eq!((days(&world, 5), world.messages("ada").len()), (1, 1));
            assert_eq!(counts(&world), full);
            assert_eq!(world.trigger(event.clone()), first);
            // The message, and the row of the trigger.
            assert_eq!((days(&world, 10), world.messages("ada").len()), (2, 0));
            assert_ne!(counts(&world), full);
            for table in [Table::Messages, Table::MessageLists, Table::DeletedMessages] {
                assert_eq!(world.rows(table), 0, "{table:?}");
            }
            assert_eq!(counts(&world), InboxCounts::default());
            assert_eq!((world.rows(Table::Triggers), world.rows(Table::Transactions)), (0, 0));
            assert_ne!(world.trigger(event), first);
            is_sound(&world);
        },
    );
}

#[test]
fn messages_go_while_their_notifications_stay() {
    on_both_with(
        |builder| builder.retention(Retention::default().messages_days(Channel::InApp, 3)),
        |world| {
            world.in_app_workflow("news");
            let first = world.notify("news", "ada");
            assert_eq!((days(&world, 4), world.inbox("ada").len()), (1, 0));
            assert!(world.env.notifications().find(first).unwrap().is_some());
            is_sound(&world);
        },
    );
}

/// Receipts outlive what the trigger has made.
#[test]
fn receipts_have_an_age_of_their_own() {
    let retention =
        Retention::default().activity_days(2).messages_days(Channel::InApp, 2).receipts_days(9);
    on_both_with(
        |builder| builder.retention(retention.clone()),
        |world| {
            world.in_app_workflow("news");
            let event = json!({ "name": "news", "to": "ada", "transactionId": "once" });
            let first = world.trigger(event.clone());
            assert_eq!(days(&world, 3), 2);
            assert_eq!(world.trigger(event.clone()), first);
            assert_eq!((days(&world, 6), days(&world, 1)), (0, 1));
            assert_ne!(world.trigger(event), first);
            is_sound(&world);
        },
    );
}

/// An event that has reached nobody has no notification and no message that could be its last one. Its
/// receipt has the age of notifications, or that of receipts, and is kept without an age.
#[test]
fn a_receipt_of_an_event_for_nobody_goes_by_the_age_that_counts_for_it() {
    let default = Retention::default;
    for (retention, goes_after) in [
        (default().activity_days(3), Some(3)),
        (default().messages_days(Channel::InApp, 4).activity_days(9), Some(4)),
        (default().receipts_days(5), Some(5)),
        (default().activity_days(2).receipts_days(5), Some(5)),
        (default().idempotency_hours(24), None),
    ] {
        on_both_with(
            |builder| builder.retention(retention.clone()),
            |world| {
                world.in_app_workflow("news");
                world.env.topics().create(&parsed(json!({ "key": "empty" }))).unwrap();
                let topic = json!({ "type": "Topic", "topicKey": "empty" });
                let event = json!({ "name": "news", "to": topic, "transactionId": "once" });
                let first = world.trigger(event.clone());
                assert_eq!(first.notifications, []);
                match goes_after {
                    Some(age) => assert_eq!((days(&world, age), days(&world, 1)), (0, 1)),
                    None => assert_eq!(days(&world, 40), 0),
                }
                let left = usize::from(goes_after.is_none());
                assert_eq!(world.rows(Table::Triggers), left, "{retention:?}");
                assert_eq!(world.rows(Table::Transactions), left, "{retention:?}");
                is_sound(&world);
            },
        );
    }
}

/// What else there is of an event goes with its receipt: whether it was canceled, and how many
/// subscribers it has reached. A later event with the same id is another one.
#[test]
fn a_canceled_event_goes_with_its_receipt() {
    on_both_with(
        |builder| {
            builder
                .retention(Retention::default().activity_days(2).messages_days(Channel::InApp, 2))
        },
        |world| {
            world.in_app_workflow("news");
            for n in 0..150 {
                world.bare_subscriber(&format!("s{n}"));
            }
            let sale = || parsed(json!({ "name": "news", "transactionId": "sale" }));
            world.env.events().broadcast(&sale()).unwrap();
            world.engine.delivery().run_due(2).unwrap();
            world.env.events().cancel("sale").unwrap();
            assert_eq!(world.rows(Table::FanOutStates), 1);
            assert_eq!(world.rows(Table::CanceledTriggers), 1);

            days(&world, 4);

            for table in [Table::Triggers, Table::FanOutStates, Table::CanceledTriggers] {
                assert_eq!(world.rows(table), 0, "{table:?}");
            }
            assert!(world.env.events().progress("sale").is_err());
            world.env.events().broadcast(&sale()).unwrap();
            world.engine.delivery().run_due(usize::MAX).unwrap();
            assert_eq!(world.env.events().progress("sale").unwrap().created, 150);
            is_sound(&world);
        },
    );
}

/// The receipt of an event stays as long as recipients are left to tell, also while its task is in
/// quarantine.
#[test]
fn an_event_that_goes_on_keeps_its_receipt() {
    on_both_with(
        |builder| {
            builder
                .retention(Retention::default().activity_days(1).messages_days(Channel::InApp, 1))
        },
        |world| {
            world.in_app_workflow("news");
            for n in 0..150 {
                world.bare_subscriber(&format!("s{n}"));
            }
            let sale = || parsed(json!({ "name": "news", "transactionId": "sale" }));
            let first = world.env.events().broadcast(&sale()).unwrap();
            let entries = tables::dump(&world.store);
            let state = entries.iter().find(|(table, ..)| *table == Table::FanOutStates);
            let (table, key, sound) = state.unwrap();
            put(&world.store, *table, key, Some(b"?"));
            days(&world, 3);
            put(&world.store, *table, key, Some(sound));

            assert_eq!(world.rows(Table::Triggers), 1);
            let delivery = world.engine.delivery();
            let entry =
                only(world.engine.quarantine().list(&QuarantineQuery::default()).unwrap().data);
            world.engine.quarantine().requeue(entry.id).unwrap();
            delivery.run_due(usize::MAX).unwrap();
            assert_eq!(world.env.events().broadcast(&sale()).unwrap(), first);
            assert_eq!(world.env.events().progress("sale").unwrap().created, 150);
            assert_eq!(world.inbox("s0").len(), 1);
            is_sound(&world);
        },
    );
}

/// The runs of an event may be older and younger than its age. An event that is repeated meanwhile is
/// answered with its receipt, or is another one.
#[test]
fn the_runs_of_an_event_go_behind_its_last_one() {
    let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    let retention =
        Retention::default().activity_days(1).messages_days(Channel::InApp, 1).receipts_days(3);
    on_both_with(
        |builder| builder.retention(retention.clone()),
        |world| {
            let delivery = world.engine.delivery();
            world.in_app_workflow("news");
            for n in 0..450 {
                world.bare_subscriber(&format!("s{n}"));
            }
            let sale = || parsed(json!({ "name": "news", "transactionId": "sale" }));
            let first = world.env.events().broadcast(&sale()).unwrap();
            delivery.run_due(1).unwrap();
            world.pass(minutes(5));
            delivery.run_due(usize::MAX).unwrap();
            let runs = world.rows(Table::Triggers);
            assert!(runs > 2, "{runs}");

            world.pass(minutes(24 * 60 - 3));
            delivery.run_due(usize::MAX).unwrap();
            days(&world, 2);
            assert_eq!(world.rows(Table::Notifications), 0);
            assert_eq!(world.env.events().broadcast(&sale()).unwrap(), first);
            assert_eq!(world.rows(Table::Triggers), runs);
            // The first run has the receipt, and goes last.
            days(&world, 1);
            assert_eq!(world.rows(Table::Triggers), 1);
            assert_eq!(world.env.events().broadcast(&sale()).unwrap(), first);
            days(&world, 1);
            assert_eq!((world.rows(Table::Triggers), world.rows(Table::FanOutStates)), (0, 0));
            is_sound(&world);
        },
    );
}

#[test]
fn stored_answers_go_when_they_no_longer_count() {
    on_both_with(
        |builder| builder.retention(Retention::default().idempotency_hours(48)),
        |world| {
            let once = world.env.idempotent("key").unwrap();
            once.subscribers().create(&parsed(json!({ "subscriberId": "ada" }))).unwrap();
            assert_eq!((days(&world, 1), world.rows(Table::StoredAnswers)), (0, 1));
            assert_eq!((days(&world, 1), world.rows(Table::StoredAnswers)), (1, 0));
            assert_eq!(world.rows(Table::ExpiringAnswers), 0);
        },
    );
}

/// So many answers take more steps of a sweep than claims may begin alike. The clock stands still.
#[test]
fn many_stored_answers_go_at_one_time() {
    let world = World::with(Interposed::default(), |builder| {
        builder.retention(Retention::default().idempotency_hours(24))
    });
    for number in 0..1_300 {
        let once = world.env.idempotent(format!("key-{number}")).unwrap();
        let create = json!({ "channel": "email", "address": "ada@example.org" });
        once.suppressions().add(&parsed(create)).ok();
    }
    let stored = world.rows(Table::StoredAnswers);
    assert!(stored > 1_200, "{stored}");

    assert_eq!((days(&world, 2), world.rows(Table::StoredAnswers)), (stored, 0));
}

/// With any policy, nothing that has expired stays for want of later calls.
#[test]
fn what_has_expired_goes_with_any_policy() {
    on_both_with(
        |builder| builder.retention(Retention::default().activity_days(30)),
        |world| {
            let once = world.env.idempotent("key").unwrap();
            for (address, hours) in [("ada@example.org", 12), ("bob@example.org", 240)] {
                let until = world.now().after(Duration::from_secs(hours * 60 * 60));
                let add = json!({ "channel": "email", "address": address, "expiresAt": until });
                once.suppressions().add(&parsed(add.clone())).ok();
                world.env.suppressions().add(&parsed(add)).unwrap();
            }
            assert_eq!((world.rows(Table::Suppressions), world.rows(Table::StoredAnswers)), (2, 1));
            assert_eq!(days(&world, 2), 2);
            assert_eq!((world.rows(Table::Suppressions), world.rows(Table::StoredAnswers)), (1, 0));
            assert_eq!(world.rows(Table::ExpiringSuppressions), 1);
        },
    );
}

/// A policy that is set later finds all environments. A policy that is gone ends the sweeps.
#[test]
fn a_policy_may_come_and_go() {
    on_both(|mut world| {
        world.in_app_workflow("news");
        world.notify("news", "ada");
        world.pass(DAY * 2);
        let elsewhere = world.elsewhere();
        world.restart_with(|builder| builder.retention(Retention::default().activity_days(1)));
        assert_eq!(world.engine.delivery().run_due(usize::MAX).unwrap().swept, 1);
        assert_eq!(world.rows(Table::Tasks), 2);
        drop(elsewhere);
        let tomorrow = Some(world.now().after(DAY));
        assert_eq!(world.engine.delivery().next_due().unwrap(), tomorrow);
        world.restart_with(|builder| builder.retention(Retention::default().activity_days(1)));
        assert_eq!(world.rows(Table::Tasks), 2, "they are found again");
        world.restart_with(|builder| builder);
        days(&world, 1);
        assert_eq!(world.rows(Table::Tasks), 0);
    });
}

/// Another process has no policy. It ends the sweeps of all environments, and creates one without.
#[test]
fn a_process_without_a_policy_does_not_end_the_sweeps_of_another_one() {
    on_both_with(
        |builder| builder.retention(Retention::default().activity_days(1)),
        |world| {
            world.run_due();
            let other = world.another_engine();
            world.pass(DAY);
            other.delivery().run_due(usize::MAX).unwrap();
            assert_eq!(world.rows(Table::Tasks), 0);
            let elsewhere = other.organization("other").unwrap().development().unwrap();
            for env in [&world.env, &elsewhere] {
                env.workflows().create(&parsed(workflow_of("news", &[in_app()]))).unwrap();
                let event = json!({ "name": "news", "to": "ada" });
                env.events().trigger(&parsed(event)).unwrap();
            }
            assert_eq!(days(&world, 3), 2);
        },
    );
}

/// A sweep that is killed goes on when its lease is over.
#[test]
fn a_sweep_goes_on_after_a_kill() {
    let policy = || Retention::default().activity_days(1).messages_days(Channel::InApp, 1);
    on_both_with(
        |builder| builder.retention(policy()),
        |world| {
            world.in_app_workflow("news");
            for _ in 0..300 {
                world.notify("news", "ada");
            }
            world.pass(DAY * 2);
            for transactions in 0.. {
                let run = || world.engine.delivery().run_due(usize::MAX);
                if world.interrupted(transactions % 9, run).is_ok() {
                    break;
                }
                is_sound(&world);
                world.pass(Duration::from_secs(301));
            }
            assert_eq!((count(&world), world.inbox("ada").len()), (0, 0));
            assert_eq!(world.rows(Table::Triggers), 0);
            is_sound(&world);
        },
    );
}

/// Rows that cannot be read do not stop a sweep.
#[test]
fn what_cannot_be_read_is_passed_over() {
    let world = World::with(testkit::interposed::Interposed::default(), |builder| {
        builder.retention(Retention::default().messages_days(Channel::InApp, 1))
    });
    world.in_app_workflow("news");
    for _ in 0..3 {
        world.notify("news", "ada");
    }
    let entries = tables::dump(&world.store);
    let (table, key, _) = entries.iter().find(|(table, ..)| *table == Table::Messages).unwrap();
    put(&world.store, *table, key, Some(b"?"));
    // Two messages. The notifications are kept, and so are the triggers.
    assert_eq!(days(&world, 2), 2);
}

/// After a sweep, as many new notifications do not grow the file.
#[test]
fn space_is_used_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tidings.redb");
    let clock = ManualClock::at(time(START));
    let retention = Retention::default().activity_days(1).messages_days(Channel::InApp, 1);
    let open = || {
        let builder = Engine::builder().clock(clock.clone()).retention(retention.clone());
        let engine = builder.activity_segments(64).open(&path).unwrap();
        let env = engine.organization("acme").unwrap().development().unwrap();
        (engine, env)
    };
    let news = json!({ "workflowId": "news", "name": "News", "steps": [in_app()] });
    open().1.workflows().create(&parsed(news)).unwrap();
    let text = "x".repeat(500);
    let event = json!({ "name": "news", "to": "ada", "payload": { "text": text } });
    let round = || {
        let (_, env) = open();
        for _ in 0..20 {
            env.events().trigger_bulk(&vec![parsed(event.clone()); 50]).unwrap().all().unwrap();
        }
        drop(env);
        let full = fs::metadata(&path).unwrap().len();
        clock.advance(DAY * 2);
        assert_eq!(open().0.delivery().run_due(usize::MAX).unwrap().swept, 3_000);
        full
    };
    let sizes: Vec<_> = (0..13).map(|_| round()).collect();
    assert!(sizes[0] > 1_000_000, "{sizes:?}");
    // Rounds differ in the pages that are free, so that single files differ in size, by less than a quarter of
    // what one round writes.
    let largest = |rounds: &[u64]| rounds.iter().max().copied().unwrap_or_default();
    assert!(largest(&sizes[9..]) <= largest(&sizes[1..5]) + sizes[0] / 4, "{sizes:?}");
}
