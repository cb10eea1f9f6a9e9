//! No transaction holds the writer for long: each looks at and changes a bounded number of rows,
//! however large the world is.
//!
//! `cargo test --release --test laws holds -- --nocapture` prints the longest hold of each operation.
//! With `TIDINGS_HOLD` the world is in a file, and each transaction has to end, its sync included, within
//! so many milliseconds: rows are bounded on any machine, and time on one that is quick enough.

use std::env;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::environment::Home;
use domain::notification::NotificationOutcome;
use domain::retention::Retention;
use domain::subscriber::Subscriber;
use serde_json::{Value, json};
use store::layout::{self, Role, SearchedField, Target, TextIndex};
use store::memory::MemoryStore;
use store::redb::RedbStore;
use store::{Store, Table, WriteRecords};
use tempfile::tempdir;
use testkit::holds::{Hold, Noted};
use testkit::interposed::{Interposed, Point};
use testkit::requests;
use testkit::tables::{self, Entry, dump, load};
use testkit::world::{Counts, World, in_app, with, workflow_of};
use tidings::time::Timestamp;
use tidings::trigger::{AcceptedTrigger, TriggerReceipt};
use tidings::{Builder, DeliveryReport};
use uuid::Uuid;

use crate::large::{self, noise};
use crate::parsed;

mod larger;

/// Rows that one transaction may look at and change.
const MOST: usize = 13_000;

/// The same of an operation that finds the counters of a large inbox damaged.
const MOST_OF_A_RECOUNT: usize = 2_200;

/// The same of the tasks of many devices: two for each of 1,000 tasks and of those of one message more, and
/// some for each message.
const MOST_OF_DEVICES: usize = 3_600;

/// The largest payload of an event, in bytes.
const LARGEST_PAYLOAD: usize = 256 * 1024;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What is done in a copy of the large world.
enum Deed {
    Request(Value),
    /// Everything that is due so many days later.
    Later(u32),
    Repair,
    /// A message in an inbox whose counters are damaged.
    Uncounted,
    Cancel,
    Progress,
}

#[test]
fn no_transaction_touches_more_rows_than_stated() {
    let within = env::var("TIDINGS_HOLD").ok();
    let within = within.map(|millis| Duration::from_millis(millis.parse().unwrap()));
    let mut problems = Vec::new();
    for deed in deeds() {
        let holds = holds_of(&deed, within.is_some());
        let most = holds.iter().map(Hold::touched).max().unwrap_or_default();
        let longest = holds.iter().map(|hold| hold.span).max().unwrap_or_default();
        println!("{deed}: {} transactions, {most} rows, {longest:.1?}", holds.len());
        if most > deed.most() {
            problems.push(format!("{deed}: {most} rows in one transaction"));
        }
        if within.is_some_and(|within| longest > within) {
            problems.push(format!("{deed}: {longest:.1?} in one transaction"));
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
}

/// An index of texts is made anew in transactions that are no larger where there are more of them.
#[test]
fn a_rebuild_of_texts_touches_as_many_rows_in_a_larger_environment() {
    let most = |field, subscribers: u32| {
        let (noted, home) = (Noted::over(Arc::new(MemoryStore::default())), home());
        for number in 0..subscribers {
            let text = format!("{number}@b.cc");
            let create =
                json!({ "subscriberId": number.to_string(), "email": text, "firstName": text });
            let id = Uuid::from_u128(number.into()).into();
            let one = Subscriber::new(id, &home, parsed(create), Timestamp::from_millis(0));
            store::write(&noted, |tx| tx.insert(&one)).unwrap();
        }
        noted.take();
        let goes_on = &mut |_, _| ControlFlow::Continue(());
        let index = TextIndex { field, environment: home.environment_id };
        let rebuilt = store::text_index::rebuild(&noted, index, goes_on);
        assert!(rebuilt.unwrap().is_continue());
        most_of(&noted)
    };
    for field in SearchedField::ALL {
        check_bounded([most(field, 1_500), most(field, 4_500)], "texts");
    }
}

/// The rows of outcomes are made anew in transactions that are no larger where there are more of them.
#[test]
fn a_rebuild_of_outcomes_touches_as_many_rows_among_more_of_them() {
    let most = |rows: u32| {
        let (noted, home) = (Noted::over(Arc::new(MemoryStore::default())), home());
        let outcome = NotificationOutcome::ALL[0];
        for number in 0..rows {
            let key = layout::outcome_row(home.environment_id, outcome, number);
            tables::put(&noted, key.table(), key.as_bytes(), Some(b"outdated"));
        }
        noted.take();
        let goes_on = &mut |_, _| ControlFlow::Continue(());
        let rebuilt = store::outcomes::rebuild(&noted, home.environment_id, goes_on);
        assert!(rebuilt.unwrap().is_continue());
        assert_eq!(dump(&noted), []);
        most_of(&noted)
    };
    check_bounded([most(1_500), most(4_500)], "outdated rows");
}

/// A copy that goes on removes other rows of its target in transactions that are no larger where there are
/// more of them.
#[test]
fn a_copy_touches_as_many_rows_of_a_fuller_target() {
    let most = |rows: u32, size: usize| {
        let noted = Noted::over(Arc::new(MemoryStore::default()));
        let origin = MemoryStore::default();
        // Without one, it would be an unfinished copy itself.
        tables::put(&origin, Table::Environments, b"environment", Some(b"value"));
        for number in 0..rows {
            let key = [b"key".as_slice(), &number.to_be_bytes()].concat();
            tables::put(&noted, Table::Topics, &key, Some(&vec![0; size]));
            if number % 5_000 == 0 {
                tables::put(&origin, Table::Topics, &key, Some(b"other"));
            }
        }
        noted.take();
        let copied = store::transfer::copy(&origin, &noted, &mut |_| ControlFlow::Continue(()));
        assert!(copied.unwrap().is_finished);
        assert!(dump(&noted) == dump(&origin));
        most_of(&noted)
    };
    for size in [1, 1_024] {
        check_bounded([most(6_000, size), most(24_000, size)], "rows");
    }
}

/// A rebuild of the activity index takes transactions that are no larger where its segments are.
#[test]
fn a_rebuild_of_the_index_touches_as_many_rows_with_larger_segments() {
    let most = |segment: u32| {
        let (world, noted) = noted_world(|builder| builder.activity_segments(segment));
        trigger_bulks(&world, &[in_app()], 50);
        noted.take();
        assert!(world.env.notifications().rebuild_index().unwrap().is_finished);
        most_of(&noted)
    };
    let (small, large) = (most(1_024), most(4_096));
    assert!(small > 1_024, "{small} rows");
    assert!(
        large <= small + small / 4,
        "{large} rows in one transaction, and {small} with small segments"
    );
}

/// The topic of a bulk is empty when its events are planned, and has a hundred members in the transaction,
/// which plans the events again.
#[test]
fn a_bulk_that_is_planned_again_touches_as_many_rows_as_stated() {
    let (world, noted) = noted_world(|builder| builder);
    world.workflow(workflow_of("news", &[in_app()]));
    let all: Vec<_> = (0..100).map(|number| format!("subscriber-{number}")).collect();
    for id in &all {
        world.subscriber(json!({ "subscriberId": id }));
    }
    let env = world.env.clone();
    env.topics().create(&parsed(json!({ "key": "all" }))).unwrap();
    world.store.pause(Point::Write, 0, move || {
        let subscribe = parsed(json!({ "subscriptions": all }));
        assert_eq!(env.topics().subscribe("all", &subscribe).unwrap().errors, []);
        env.workflows().update("news", &parsed(json!({ "name": "Other news" }))).unwrap();
    });
    let topic = json!({ "type": "Topic", "topicKey": "all" });
    let bulk = vec![parsed(json!({ "name": "news", "to": topic })); 100];
    let receipts = world.env.events().trigger_bulk(&bulk).unwrap().all().unwrap();
    assert_eq!(receipts.len(), 100);
    let query = json!({ "limit": 1 });
    assert_eq!(world.env.notifications().count(&parsed(query)).unwrap(), 10_000);
    let most = most_of(&noted);
    assert!(most <= MOST, "{most} rows in one transaction");
}

/// A rebuild of the activity index takes transactions that are no larger where more notifications are deleted
/// meanwhile.
#[test]
fn a_rebuild_of_the_index_touches_as_many_rows_beside_more_deletions() {
    let most = |bulks: usize| {
        let (world, noted) = noted_world(|builder| builder.activity_segments(1_024));
        world.workflow(workflow_of("sale", &[in_app()]));
        // The first notification stays, so that the floor does not move.
        world.subscriber(json!({ "subscriberId": "bob" }));
        world.env.events().trigger(&parsed(json!({ "name": "sale", "to": "bob" }))).unwrap();
        trigger_bulks(&world, &[in_app()], bulks);
        noted.take();
        // Behind the last segment, so that all of them are in the new index.
        let (mut segments, all) = (0, bulks * 100 / 1_024);
        let rebuilt = world.env.notifications().rebuild_index_with(|at| {
            segments += usize::from(at.table == Table::ActivitySegments.name());
            if segments == all {
                assert!(world.env.subscribers().erase("ada").unwrap().is_finished);
            }
            ControlFlow::Continue(())
        });
        assert!(rebuilt.unwrap().is_finished);
        assert_eq!(world.engine.check().unwrap().findings, []);
        assert_eq!(world.env.notifications().count(&parsed(json!({}))).unwrap(), 1);
        most_of(&noted)
    };
    let (few, many) = (most(12), most(40));
    assert!(few > 1_024, "{few} rows");
    assert!(
        many <= few + few / 4,
        "{many} rows in one transaction, and {few} beside fewer deletions"
    );
}

/// Damaged rows say of notifications that they are deleted. The last transaction of a rebuild is no larger where
/// more of them are.
#[test]
fn a_rebuild_of_the_index_touches_as_many_rows_beside_more_damaged_deletions() {
    const SEGMENT: u32 = 1_024;
    let most = |damaged: usize| {
        let (world, noted) = noted_world(|builder| builder.activity_segments(SEGMENT));
        world.workflow(workflow_of("sale", &[in_app()]));
        world.subscriber(json!({ "subscriberId": "bob" }));
        let bulk = vec![parsed(json!({ "name": "sale", "to": "bob" })); 100];
        for _ in 0..damaged * 11 {
            assert!(world.env.events().trigger_bulk(&bulk).unwrap().iter().all(Result::is_ok));
        }
        trigger_bulks(&world, &[in_app()], 22);
        assert!(world.env.subscribers().erase("ada").unwrap().is_finished);
        let rows = dump(&world.store);
        let deletions = rows.iter().filter(|(table, ..)| *table == Table::ActivityDeleted);
        let (_, key, full) = deletions.max_by_key(|(.., places)| places.len()).unwrap();
        let full_segment = layout::deleted_segment(key).unwrap();
        assert!(full_segment as usize > damaged);
        let start = key.len() - size_of::<u32>();
        for segment in 0..u32::try_from(damaged).unwrap() {
            let key = [&key[..start], &segment.to_be_bytes()].concat();
            tables::put(&world.store, Table::ActivityDeleted, &key, Some(full));
        }
        assert_ne!(world.engine.check().unwrap().findings, []);
        noted.take();
        assert!(world.env.notifications().rebuild_index().unwrap().is_finished);
        assert_eq!(world.engine.check().unwrap().findings, []);
        let left = world.env.notifications().count(&parsed(json!({}))).unwrap();
        assert_eq!(left, (damaged * 11 * 100) as u64);
        most_of(&noted)
    };
    check_bounded([most(1), most(4)], "damaged rows");
}

/// Texts of translations are compiled before a transaction takes the writer, and between two of them. A
/// transaction that compiles takes its part of the time in each round. One that does not takes it in none but
/// those in which the machine does something else.
#[test]
fn no_transaction_compiles_texts() {
    let (world, noted) = noted_world(|builder| builder);
    let names = ["one", "two", "three"];
    for name in names {
        world.workflow(workflow_of(name, &[in_app()]));
    }
    let text =
        |round: usize| json!({ "hello": format!("{{{{ payload.n{round} }}}} ").repeat(2_000) });
    let import = |round| {
        let texts: serde_json::Map<_, _> =
            names.iter().map(|name| (name.to_string(), text(round))).collect();
        let import = parsed(json!({ "locale": "it_IT", "masterJson": { "workflows": texts } }));
        assert_eq!(world.env.translations().import(&import).unwrap().successful.len(), 3);
    };
    let upsert = |round| {
        let upsert = parsed(json!({
            "resourceType": "workflow", "resourceId": "one", "locale": "fr_FR",
            "content": text(round),
        }));
        world.env.translations().upsert(&upsert).unwrap();
    };
    let calls: [&dyn Fn(usize); 2] = [&import, &upsert];
    for call in calls {
        let is_short = |round| {
            noted.take();
            let start = Instant::now();
            call(round);
            let all = start.elapsed();
            noted.take().iter().all(|hold| hold.span < all / 6)
        };
        assert!((0..20).any(is_short), "a transaction compiles in each round");
    }
}

/// An erasure removes a digest window in transactions that are no larger where it has more events.
#[test]
fn an_erasure_touches_as_many_rows_with_a_larger_window() {
    let most = |bulks: usize| {
        let (world, noted) = noted_world(|builder| builder);
        let window = json!({ "type": "regular", "amount": 1, "unit": "hours" });
        let digest = json!({ "type": "digest", "metadata": window });
        trigger_bulks(&world, &[digest, in_app()], bulks);
        noted.take();
        assert!(world.env.subscribers().erase("ada").unwrap().is_finished);
        let left = dump(&world.store);
        assert!(left.iter().all(|(table, ..)| table.name() != "digest_events"));
        most_of(&noted)
    };
    let (small, large) = (most(12), most(36));
    assert!(small > 512, "{small} rows");
    assert!(
        large <= small + small / 4,
        "{large} rows in one transaction, and {small} of fewer events"
    );
}

/// An erasure removes the notifications of many windows in transactions that are no larger where each window has
/// more events.
#[test]
fn an_erasure_touches_as_many_rows_with_larger_windows() {
    let most = |bulks: usize| {
        let (world, noted) = noted_world(|builder| builder);
        let window =
            json!({ "type": "regular", "amount": 1, "unit": "hours", "digestKey": "post" });
        let digest = json!({ "type": "digest", "metadata": window });
        world.workflow(workflow_of("news", &[digest, in_app()]));
        world.subscriber(json!({ "subscriberId": "ada" }));
        let event = |post| json!({ "name": "news", "to": "ada", "payload": { "post": post } });
        let bulk: Vec<_> = (0..100).map(|post| parsed(event(post))).collect();
        for _ in 0..bulks {
            assert!(world.env.events().trigger_bulk(&bulk).unwrap().iter().all(Result::is_ok));
        }
        noted.take();
        assert!(world.env.subscribers().erase("ada").unwrap().is_finished);
        let left = dump(&world.store);
        assert!(left.iter().all(|(table, ..)| table.name() != "digest_events"));
        most_of(&noted)
    };
    check_bounded([most(4), most(24)], "events in each window");
}

/// A dependent that cannot be read does not say which index entries it has. A deletion and an erasure look for
/// them in transactions that are no larger where the indexes are.
#[test]
fn a_deletion_touches_as_many_rows_of_larger_indexes_around_an_unreadable_dependent() {
    let most = |(table, index): (Table, Table), erases: bool, others: u128| {
        let (world, noted) = noted_world(|builder| builder);
        trigger_bulks(&world, &[in_app()], 1);
        world.run_due();
        let both = parsed(json!({ "subscriptions": ["ada"] }));
        assert_eq!(world.env.topics().subscribe("news", &both).unwrap().errors, []);
        let inbox = world.env.inbox("ada").unwrap();
        inbox.archive([inbox.list(&parsed(json!({}))).unwrap().data[0].id]).unwrap();
        let row = |of: Table| dump(&world.store).into_iter().find(|row| row.0 == of).unwrap();
        let (_, entry, value) = row(index);
        let record = Target::read(index, &value).key.to_vec();
        tables::put(&noted, table, &record, Some(b"damaged"));
        // Entries of other subscribers, which lead elsewhere.
        let elsewhere = vec![0; value.len()];
        for other in 0..others {
            let key = [&entry[..16], &other.to_be_bytes(), &entry[32..]].concat();
            tables::put(&noted, index, &key, Some(&elsewhere));
        }
        noted.take();
        if erases {
            assert!(world.env.subscribers().erase("ada").unwrap().is_finished);
        } else {
            world.env.subscribers().delete("ada").unwrap();
        }
        let touched = most_of(&noted);
        let leads_there = |(of, _, value): &Entry| {
            of.role() == Role::IndexOf(table) && Target::read(*of, value).key == record
        };
        assert!(!dump(&world.store).iter().any(leads_there), "an entry is left");
        assert_eq!(tables::value(&noted, table, &record), None);
        touched
    };
    for tables in [
        (Table::Subscriptions, Table::SubscriberSubscriptions),
        (Table::Messages, Table::MessageChanges),
    ] {
        for erases in [false, true] {
            check_bounded([most(tables, erases, 10_000), most(tables, erases, 30_000)], "entries");
        }
    }
}

/// A deletion looks for the events of a digest outside of its transactions.
#[test]
fn a_deletion_touches_as_many_rows_of_a_larger_digest() {
    let most = |bulks: usize| {
        let (world, noted, told) = digested_world(bulks);
        let notifications = world.env.notifications();
        noted.take();
        notifications.delete(told.last().unwrap().notifications[0].notification_id).unwrap();
        let of_one = most_of(&noted);
        notifications.delete_before(world.now().after(DAY)).unwrap();
        assert!(dump(&world.store).iter().all(|(table, ..)| table.name() != "digest_events"));
        (of_one, most_of(&noted))
    };
    let (small, large) = (most(6), most(18));
    assert!(0 < small.0 && small.0 < 64 && 500 < small.1, "{small:?} rows");
    assert!(
        large.0 <= small.0 + 8 && large.1 <= small.1 + small.1 / 4,
        "{large:?} rows in one transaction, and {small:?} of fewer events"
    );
}

/// A deletion looks at the last run of notifications of a broadcast, and at the others only if that is gone.
#[test]
fn a_deletion_touches_as_many_rows_of_a_broadcast_in_more_runs() {
    let touched = |runs: u64| {
        let (world, noted) = noted_world(|builder| builder);
        trigger_bulks(&world, &[in_app()], 1);
        world.subscriber(json!({ "subscriberId": "bob" }));
        let crowd = json!({ "name": "news", "to": ["ada", "bob"], "transactionId": "crowd" });
        let told = world.env.events().trigger(&parsed(crowd)).unwrap();
        let environment = world.env.environment_id();
        // Runs whose notifications are gone, with those of other events between them.
        for first in (0..runs).map(|run| run * 2) {
            let id = told.transaction_id.clone();
            let bare = AcceptedTrigger::bare(environment, world.now(), id);
            let run = AcceptedTrigger { ordinals: first..first + 1, ..bare };
            store::write(&world.store, |tx| tx.insert(&run)).unwrap();
        }
        noted.take();
        world.env.notifications().delete(told.notifications[0].notification_id).unwrap();
        most_of(&noted)
    };
    let (few, many) = (touched(2), touched(50));
    assert!(0 < few && many <= few, "{many} rows in one transaction, and {few} of fewer runs");
}

/// With the last notification of a broadcast go all of its runs, in transactions that are no larger where
/// there are more of them.
#[test]
fn a_deletion_touches_as_many_rows_with_the_last_notification_of_more_runs() {
    type Delete = fn(&World, &TriggerReceipt);
    let deletions: [Delete; 3] = [
        |world, told| {
            world.env.notifications().delete(told.notifications[0].notification_id).unwrap();
        },
        |world, _| {
            world.env.notifications().delete_before(world.now().after(DAY)).unwrap();
        },
        |world, _| {
            assert!(world.env.subscribers().erase("ada").unwrap().is_finished);
        },
    ];
    for delete in deletions {
        let touched = |runs: u64| {
            let (world, noted) = noted_world(|builder| builder);
            world.workflow(workflow_of("news", &[in_app()]));
            world.subscriber(json!({ "subscriberId": "ada" }));
            let crowd = json!({ "name": "news", "to": ["ada"], "transactionId": "crowd" });
            let told = world.env.events().trigger(&parsed(crowd)).unwrap();
            // Runs whose notifications are gone.
            for first in (0..runs).map(|run| 1_000 + run * 2) {
                let (id, environment) = (told.transaction_id.clone(), world.env.environment_id());
                let bare = AcceptedTrigger::bare(environment, world.now(), id);
                let run = AcceptedTrigger { ordinals: first..first + 1, ..bare };
                store::write(&world.store, |tx| tx.insert(&run)).unwrap();
            }
            noted.take();
            delete(&world, &told);
            let left = dump(&world.store);
            let of_trigger = [Table::Triggers, Table::Transactions];
            assert!(!left.iter().any(|(table, ..)| of_trigger.contains(table)), "a run is left");
            most_of(&noted)
        };
        check_bounded([touched(600), touched(1_800)], "runs");
    }
}

/// A cancellation looks at the events of a digest up to the first one that is left.
#[test]
fn a_cancellation_touches_as_many_rows_behind_a_larger_digest() {
    let most = |bulks: usize| {
        let (world, noted, told) = digested_world(bulks);
        noted.take();
        let canceled = world.env.events().cancel(&told[0].transaction_id).unwrap();
        assert_eq!(canceled.canceled, 0, "the jobs are those of the other events");
        most_of(&noted)
    };
    let (small, large) = (most(3), most(9));
    // Of the events, it has looked at the first two.
    assert!(0 < small && small < 64, "{small} rows");
    assert!(large <= small + 8, "{large} rows in one transaction, and {small} of fewer events");
}

/// A cancellation looks at so many events of a digest that are not left. The next turn looks at all of them.
#[test]
fn a_cancellation_touches_as_many_rows_behind_more_canceled_events() {
    let most = |bulks: usize| {
        let (world, noted, told) = digested_world(bulks);
        let (first, others) = told.split_first().unwrap();
        for other in others {
            world.env.events().cancel(&other.transaction_id).unwrap();
        }
        noted.take();
        world.env.events().cancel(&first.transaction_id).unwrap();
        world.pass(Duration::from_secs(3_600));
        while world.run_due() != Counts::default() {}
        assert_eq!(world.inbox("ada"), [], "no event is left");
        let ended = world.notification(first.notifications[0].notification_id).ended_at();
        assert!(ended.is_some(), "a job waits");
        assert_eq!(world.engine.delivery().next_due().unwrap(), None);
        most_of(&noted)
    };
    let (small, large) = (most(4), most(12));
    assert!(256 < small && small < 1_500, "{small} rows");
    assert!(large <= small + 8, "{large} rows in one transaction, and {small} of fewer events");
}

/// One of some messages goes to as many devices as a subscriber may have, and the others to many. Their tasks are
/// made, and ended by a cancellation, in transactions that are no larger for it.
#[test]
fn messages_to_many_devices_touch_as_many_rows_as_stated() {
    let (world, noted) = noted_world(|builder| builder);
    let accounts: Vec<_> = (0..5)
        .map(|number| world.active_integration("push", &format!("fcm-{number}")).id)
        .collect();
    let push = json!({ "type": "push", "template": { "title": "t", "body": "b" } });
    world.workflow(workflow_of("push", &[push]));
    for person in 0..10 {
        let most = if person == 0 { 5 } else { 2 };
        let channels = accounts.iter().take(most).map(|id| {
            let tokens: Vec<_> = (0..100).map(|device| format!("{id} {device}")).collect();
            let credentials = json!({ "deviceTokens": tokens });
            json!({ "providerId": "fcm", "_integrationId": id, "credentials": credentials })
        });
        let channels: Vec<_> = channels.collect();
        world.subscriber(json!({ "subscriberId": format!("s{person}"), "channels": channels }));
    }
    let to: Vec<_> = (0..10).map(|person| format!("s{person}")).collect();
    let receipt = world.trigger(json!({ "name": "push", "to": to, "transactionId": "t" }));
    noted.take();

    world.engine.delivery().run_due(10).unwrap();

    let sends = |job: &tidings::job::Job| job.sends.len();
    let of = |one: &tidings::trigger::CreatedNotification| world.notification(one.notification_id);
    let all = receipt.notifications.iter().flat_map(|one| of(one).jobs).map(|job| sends(&job));
    assert_eq!(all.sum::<usize>(), 500 + 9 * 200, "each has a send");
    let fanned_out = most_of(&noted);
    assert!(fanned_out <= MOST_OF_DEVICES, "{fanned_out} rows");
    noted.take();
    world.env.events().cancel("t").unwrap();
    let canceled = most_of(&noted);
    assert!(canceled <= MOST_OF_DEVICES, "{canceled} rows");
    while world.run_due() != Counts::default() {}
    assert_eq!(world.engine.delivery().next_due().unwrap(), None);
    assert!(most_of(&noted) <= MOST);
    let ended = receipt.notifications.iter().all(|one| of(one).ended_at().is_some());
    assert!(ended, "a message waits");
    println!("{fanned_out} rows of a fan-out, {canceled} of a cancellation");
}

/// An event looks at as many places of a throttle as there are, if more events have passed before.
#[test]
fn a_throttle_reads_as_many_places_as_it_has() {
    let touched = |places: u32| {
        let (world, noted) = noted_world(|builder| builder);
        let hour = json!({ "amount": 1, "unit": "hours" });
        let steps = |threshold: u32| {
            let metadata = with(hour.clone(), json!({ "threshold": threshold }));
            [json!({ "type": "throttle", "metadata": metadata }), in_app()]
        };
        trigger_bulks(&world, &steps(1_000), 3);
        let fewer = parsed(json!({ "steps": steps(places) }));
        world.env.workflows().update("news", &fewer).unwrap();
        noted.take();
        world.notify("news", "ada");
        most_of(&noted)
    };
    let [few, many] = [2, 102].map(touched);
    assert_eq!(many - few, 100, "{many} and {few} rows");
}

/// A chunk of a crowd ends where its notifications have much content.
#[test]
fn a_chunk_is_smaller_where_its_content_is_large() {
    let most = |payload: usize| {
        let (world, noted) = noted_world(|builder| builder);
        world.workflow(workflow_of("news", &[in_app()]));
        let members: Vec<_> = (0..101).map(|number| format!("s{number}")).collect();
        for member in &members {
            world.subscriber(json!({ "subscriberId": member }));
        }
        for some in members.chunks(100) {
            let request = json!(["topics.subscribe", "all", { "subscriptions": some }]);
            requests::call(&world.engine, &world.env, &request).unwrap();
        }
        let topic = json!({ "type": "Topic", "topicKey": "all" });
        let payload = json!({ "text": "x".repeat(payload) });
        world.trigger(
            json!({ "name": "news", "to": topic, "payload": payload, "transactionId": "t" }),
        );
        noted.take();
        while world.run_due() != Counts::default() {}
        assert_eq!(world.env.events().progress("t").unwrap().created, 101);
        assert!(members.iter().all(|member| world.inbox(member).len() == 1));
        most_of(&noted)
    };
    let (light, heavy) = (most(100), most(LARGEST_PAYLOAD - 20));
    assert!(heavy * 4 < light, "{heavy} rows in one transaction, and {light} of small content");
}

/// A step of the retention ends where its notifications are large.
#[test]
fn a_sweep_is_smaller_where_its_notifications_are_large() {
    let most = |payload: usize| {
        let days = Retention::default().activity_days(1);
        let (world, noted) = noted_world(|builder| builder.retention(days.clone()));
        world.workflow(workflow_of("news", &[in_app()]));
        world.subscriber(json!({ "subscriberId": "ada" }));
        let payload = json!({ "text": noise(payload) });
        for _ in 0..24 {
            world.trigger(json!({ "name": "news", "to": "ada", "payload": payload }));
        }
        world.pass(3 * DAY);
        noted.take();
        world.run_due();
        assert_eq!(world.notifications(json!({})), []);
        most_of(&noted)
    };
    let (light, heavy) = (most(100), most(LARGEST_PAYLOAD - 20));
    assert!(heavy * 2 < light, "{heavy} rows in one transaction, and {light} of small ones");
}

/// What goes through large records looks at few of them in each transaction.
#[test]
fn no_transaction_looks_at_more_bytes_than_stated() {
    const ROW: usize = 64 * 1024;
    const LETTERS: u64 = 60;
    let (world, noted) = noted_world(|builder| builder.default_provider(large::Refusing));
    large_records(&world, &noise(ROW), (300, LETTERS));
    let most = |what: &str, bytes: usize, body: &dyn Fn()| {
        noted.take();
        body();
        let most = noted.take().iter().map(|hold| hold.shown).max().unwrap_or_default();
        println!("{what}: {most} bytes");
        (most > bytes).then(|| format!("{what}: {most} bytes"))
    };
    let environment = world.env.environment_id();
    let goes_on = |_, _| ControlFlow::Continue(());
    damage_counters(&world);
    let (few, some) = ((2 << 20) + 2 * ROW, 8 << 20);
    let problems = [
        most("counters", few, &|| {
            assert!(world.engine.repair().unwrap().is_finished);
            assert_eq!(world.engine.check().unwrap().findings, []);
        }),
        most("dead letters", few, &|| {
            assert!(store::letters::rebuild(&noted, environment, &mut { goes_on }).is_ok());
        }),
        most("redriven letters", some, &|| {
            let all = parsed(json!({}));
            assert_eq!(world.env.dead_letters().redrive_matching(&all).unwrap(), LETTERS);
        }),
        most("deletion", few, &|| {
            assert!(world.organization.delete_environment(environment).unwrap().is_finished);
        }),
    ];
    assert_eq!(problems.into_iter().flatten().collect::<Vec<_>>(), Vec::<String>::new());
}

/// Messages of this text in the inbox of ada, and dead letters with it.
fn large_records(world: &World, text: &str, (messages, letters): (u64, u64)) {
    let body = "{{ payload.text }}";
    let in_app = json!({ "type": "in_app", "template": { "body": body } });
    let email = json!({ "type": "email", "template": { "subject": "Hello", "body": body } });
    world.active_integration("email", "sendgrid");
    world.workflow(workflow_of("news", &[in_app]));
    world.workflow(workflow_of("mail", &[email]));
    world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
    let payload = json!({ "text": text });
    for (name, times) in [("news", messages), ("mail", letters)] {
        for _ in 0..times {
            world.trigger(json!({ "name": name, "to": "ada", "payload": payload }));
        }
    }
    while world.run_due() != Counts::default() {}
    assert_eq!(world.env.dead_letters().count(&parsed(json!({}))).unwrap(), letters);
}

/// A world whose transactions are noted.
fn noted_world(configure: impl Fn(Builder) -> Builder) -> (World, Noted) {
    let noted = Noted::over(Arc::new(MemoryStore::default()));
    (World::with(Interposed::new(noted.clone()), configure), noted)
}

/// The largest number of rows in a transaction since `take` was last called.
fn most_of(noted: &Noted) -> usize {
    noted.take().iter().map(Hold::touched).max().unwrap_or_default()
}

/// Checks that a transaction touches about as many rows among many of these as among few.
#[track_caller]
fn check_bounded([few, many]: [usize; 2], of: &str) {
    assert!(many <= few + few / 4, "{many} rows in one transaction, and {few} among fewer {of}");
}

/// So many times a hundred events for ada, of a workflow with these steps.
fn trigger_bulks(world: &World, steps: &[Value], bulks: usize) -> Vec<TriggerReceipt> {
    world.workflow(workflow_of("news", steps));
    world.subscriber(json!({ "subscriberId": "ada" }));
    let bulk = vec![parsed(json!({ "name": "news", "to": "ada" })); 100];
    let told = (0..bulks).flat_map(|_| world.env.events().trigger_bulk(&bulk).unwrap());
    told.map(Result::unwrap).collect()
}

/// A noted world with a digest of so many times a hundred events, whose delay is not over.
fn digested_world(bulks: usize) -> (World, Noted, Vec<TriggerReceipt>) {
    let (world, noted) = noted_world(|builder| builder);
    let hour = json!({ "type": "regular", "amount": 1, "unit": "hours" });
    let [digest, delay] = ["digest", "delay"].map(|kind| json!({ "type": kind, "metadata": hour }));
    let told = trigger_bulks(&world, &[digest, delay, in_app()], bulks);
    world.pass(Duration::from_secs(3_600));
    world.run_due();
    (world, noted, told)
}

fn home() -> Home {
    Home { organization_id: "acme".parse().unwrap(), environment_id: Uuid::from_u128(1).into() }
}

fn holds_of(deed: &Deed, in_a_file: bool) -> Vec<Hold> {
    let folder = tempdir().unwrap();
    let below: Arc<dyn Store> = if in_a_file {
        let file = RedbStore::open(folder.path().join("large.redb")).unwrap();
        load(&file, &dump(&large::store()));
        Arc::new(file)
    } else {
        Arc::new(large::store())
    };
    let noted = Noted::over(below);
    let world = large::over(Interposed::new(noted.clone()));
    // What the first operation of an engine does is no part of the deed.
    world.engine.delivery().next_due().unwrap();
    noted.take();
    deed.happens_in(&world);
    noted.take()
}

impl Deed {
    fn most(&self) -> usize {
        match self {
            Self::Repair | Self::Uncounted => MOST_OF_A_RECOUNT,
            Self::Request(_) | Self::Later(_) | Self::Cancel | Self::Progress => MOST,
        }
    }

    fn happens_in(&self, world: &World) {
        let due = |world: &World| {
            while {
                let report = world.engine.delivery().run_due(1_000).unwrap();
                report != DeliveryReport::default()
            } {}
        };
        match self {
            Self::Request(request) => {
                let request = large::with_ids(world, request);
                requests::call(&world.engine, &world.env, &request).unwrap();
            }
            Self::Later(days) => {
                world.pass(DAY * *days);
                due(world);
            }
            Self::Repair => {
                damage_counters(world);
                assert!(world.engine.repair().unwrap().is_finished);
            }
            Self::Uncounted => {
                damage_counters(world);
                let event = json!({ "name": "news", "to": "ada" });
                world.env.events().trigger(&parsed(event)).unwrap();
                due(world);
            }
            Self::Cancel | Self::Progress => {
                let topic = json!({ "type": "Topic", "topicKey": "all" });
                let crowd = json!({ "name": "wait", "to": topic, "transactionId": "crowd" });
                world.env.events().trigger(&parsed(crowd)).unwrap();
                due(world);
                if matches!(self, Self::Cancel) {
                    world.env.events().cancel("crowd").unwrap();
                    due(world);
                }
            }
        }
    }
}

fn damage_counters(world: &World) {
    let entries = dump(&world.store);
    let counters = |entry: &&Entry| ["message_counters", "list_counts"].contains(&entry.0.name());
    for (table, key, _) in entries.iter().filter(counters) {
        testkit::tables::put(&world.store, *table, key, Some(b"damaged"));
    }
}

fn deeds() -> impl Iterator<Item = Deed> {
    let others = [
        Deed::Later(2),
        Deed::Later(400),
        Deed::Repair,
        Deed::Uncounted,
        Deed::Cancel,
        Deed::Progress,
    ];
    large::requests().into_iter().map(Deed::Request).chain(others)
}

impl fmt::Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request(request) => write!(f, "{:.60}", request.to_string()),
            Self::Later(days) => write!(f, "what is due {days} days later"),
            Self::Repair => f.write_str("repair of every counter"),
            Self::Uncounted => f.write_str("a message where every counter is damaged"),
            Self::Cancel => f.write_str("a crowd is canceled"),
            Self::Progress => f.write_str("a crowd is told"),
        }
    }
}
