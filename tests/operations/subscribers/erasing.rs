//! A person's data: its export, and its erasure.

mod answers;
mod left;
mod meanwhile;

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use domain::digest::{ThrottleSlot, WindowEvent};
use domain::idempotency::StoredAnswer;
use domain::quarantine::Quarantined;
use domain::task::{Task, Work};
use serde_json::{Value, json};
use store::encoding;
use store::redb::RedbStore;
use testkit::interposed::{Interposed, Point};
use testkit::sealed::is_wanted;
use testkit::tables;
use tidings::SendError;
use tidings::ids::NotificationId;
use tidings::notification::NotificationQuery;
use tidings::person::Erasure;
use tidings::store::Table;
use uuid::Uuid;

use crate::world::{World, in_app, on_both, parsed, wire};

const CANARIES: [&str; 6] =
    ["Canaria", "canary@example.org", "+4299887766", "canary-id", "payload-canary", "canary-token"];

// A person in every kind of record, and another one who shares the triggers.
fn fill(world: &World) {
    let env = &world.env;
    world.active_integration("email", "mail");
    world.active_integration("chat", "slack");
    world.workflow_of("both", &[in_app(), mail()]);
    let digest = json!({ "type": "regular", "amount": 1, "unit": "hours" });
    world.workflow_of("digest", &[json!({ "type": "digest", "metadata": digest }), in_app()]);
    let hour = json!({ "amount": 1, "unit": "hours" });
    world.workflow_of("throttle", &[json!({ "type": "throttle", "metadata": hour }), in_app()]);
    let delay = json!({ "type": "regular", "amount": 1, "unit": "hours" });
    world.workflow_of("delay", &[json!({ "type": "delay", "metadata": delay }), in_app()]);
    world.workflow_of("mail", &[mail()]);
    let canary = json!({
        "subscriberId": "canary-id", "firstName": "Canaria", "email": "canary@example.org",
        "phone": "+4299887766", "data": { "nick": "Canaria" },
    });
    let once = env.idempotent("create").unwrap();
    once.subscribers().create(&parsed(canary.clone())).unwrap();
    world.subscriber(json!({ "subscriberId": "bob", "email": "bob@example.org" }));
    let topics = env.topics();
    let own = json!({ "subscriberId": "canary-id", "identifier": "one", "name": "Canaria's" });
    let both = parsed(json!({ "subscriptions": [own, "bob"] }));
    assert_eq!(topics.subscribe("news", &both).unwrap().errors, []);
    let all = json!({ "channels": { "sms": false } });
    env.preferences("canary-id").unwrap().update_global(&parsed(all)).unwrap();
    let connection = json!({
        "integrationIdentifier": "slack", "subscriberId": "canary-id",
        "workspace": { "id": "Canaria" }, "auth": { "accessToken": "canary-token" },
    });
    env.channel_connections().create(&parsed(connection)).unwrap();
    let endpoint = json!({
        "integrationIdentifier": "slack", "subscriberId": "canary-id", "type": "slack_user",
        "endpoint": { "userId": "Canaria" },
    });
    env.channel_endpoints().create(&parsed(endpoint)).unwrap();
    for create in [
        json!({ "channel": "email", "address": "canary@example.org", "text": "Canaria" }),
        json!({ "channel": "sms", "address": "+4299887766" }),
    ] {
        env.suppressions().add(&parsed(create)).unwrap();
    }
    env.suppressions().remove(parsed(json!("email")), "canary@example.org").unwrap();
    for workflow in ["both", "digest", "delay", "throttle"] {
        let payload = json!({ "text": "payload-canary" });
        let to = json!(["bob", "canary-id"]);
        let trigger = json!({ "name": workflow, "to": to, "transactionId": workflow });
        // What is in the payload of another recipient is not looked at.
        env.events().trigger(&parsed(trigger)).unwrap();
        let own = json!({ "name": workflow, "to": "canary-id", "payload": payload });
        env.idempotent(workflow).unwrap().events().trigger(&parsed(own)).unwrap();
    }
    world.run_due();
    world.recorder.refuse_next(SendError::permanent("gone"));
    world.recorder.refuse_next(SendError::retryable("later"));
    world.trigger(json!({ "name": "mail", "to": [canary] }));
    world.trigger(json!({ "name": "mail", "to": ["canary-id"], "payload": { "Canaria": 1 } }));
    world.run_due();
    put_aside(world);
    let inbox = env.inbox("canary-id").unwrap();
    let messages = inbox.list(&parsed(json!({}))).unwrap().data;
    inbox.delete([messages[0].id]).unwrap();
    let tomorrow = world.now().after(Duration::from_secs(24 * 3_600));
    inbox.snooze([messages[1].id], tomorrow).unwrap();
}

// Messages that cannot be sent, because a record is damaged. What is left of two of them is the entry
// of the quarantine, with the id of the host or of the engine in the record.
fn put_aside(world: &World) {
    for (table, is_deleted) in
        [(Table::Subscribers, true), (Table::Notifications, true), (Table::Workflows, false)]
    {
        let id = put_aside_one(world, "canary-id", (table, is_deleted));
        if is_deleted {
            world.env.notifications().delete(id).unwrap();
        }
    }
}

// A message to a subscriber that cannot be sent, because the records of a table are damaged meanwhile:
// cut in the middle, or but for one byte.
fn put_aside_one(world: &World, to: &str, (table, in_the_middle): (Table, bool)) -> NotificationId {
    let receipt = world.trigger(json!({ "name": "mail", "to": [to] }));
    let rows = tables::of(&world.store, table);
    for (table, key, sound) in &rows {
        // The beginning of a notification has the id of its subscriber.
        let damaged = &sound[..if in_the_middle { 96.min(sound.len() / 2) } else { 1 }];
        tables::put(&world.store, *table, key, Some(damaged));
    }
    world.run_due();
    for (table, key, sound) in &rows {
        tables::put(&world.store, *table, key, Some(sound));
    }
    receipt.notifications[0].notification_id
}

// The ids of a subscriber and of all notifications and messages of this one.
fn own_ids(world: &World, subscriber: &str) -> Vec<Uuid> {
    let query = json!({ "subscriberIds": [subscriber], "limit": 50 });
    let notifications = world.notifications(query).into_iter().map(|found| found.id.into());
    let own = world.env.subscribers().get(subscriber).unwrap().id;
    let messages = world.messages(subscriber).into_iter().map(|found| found.id.into());
    notifications.chain(messages).chain([own.into()]).collect()
}

// There is something of the person in each table that an erasure has to look through.
fn check_traces(world: &World, ids: &[Uuid]) {
    let is_own = |id: Uuid| ids.contains(&id);
    assert!(world.records::<WindowEvent>().iter().any(|row| is_own(row.notification_id.into())));
    assert!(world.records::<ThrottleSlot>().iter().any(|row| is_own(row.notification_id.into())));
    let tasks = world.records::<Task>();
    let turns = tasks.iter().filter_map(|task| task.work.notification_id());
    assert!(turns.into_iter().any(|id| is_own(id.into())));
    assert!(
        tasks.iter().any(
            |task| matches!(task.work, Work::Wake { message_id } if is_own(message_id.into()))
        )
    );
    let has = |record: Value| record.to_string().contains("canary");
    assert!(world.records::<StoredAnswer>().into_iter().any(|answer| has(wire(answer))));
    let letters = world.env.dead_letters().list(&parsed(json!({}))).unwrap().data;
    assert!(letters.iter().any(|letter| is_own(letter.notification_id.into())));
    let put_aside = world.records::<Quarantined>();
    let tables: Vec<_> = put_aside.iter().map(|entry| entry.table.as_str()).collect();
    assert_eq!(tables, ["subscribers", "notifications", "workflows"]);
    assert!(put_aside[0].key.contains("canary-id"));
}

fn mail() -> Value {
    json!({ "type": "email", "template": {
        "subject": "{{ subscriber.firstName }}", "body": "{{ payload.text }} for {{ subscriber.email }}",
    } })
}

#[test]
fn an_export_has_everything_about_a_person() {
    on_both(|world| {
        fill(&world);
        world
            .env
            .suppressions()
            .add(&parsed(json!({
                "channel": "email", "address": "canary@example.org",
            })))
            .unwrap();

        let data = world.unchanged(|| world.env.subscribers().export("canary-id").unwrap());

        assert_eq!(data.notifications.len(), 11);
        assert_eq!(data.receipts.len(), 11);
        let jobs = || data.notifications.iter().flat_map(|notification| &notification.jobs);
        let letter = jobs().find_map(|job| job.dead_letter.as_ref()).unwrap();
        assert_eq!(letter.text.as_deref(), Some("refused: gone"));
        let window = jobs().find_map(|job| job.digest.as_ref()?.window_id).unwrap();
        let events = world.records::<WindowEvent>();
        let events = events.iter().filter(|event| event.window_id == window);
        let collected = events.filter(|event| {
            let mut all = data.notifications.iter();
            all.any(|one| one.id == event.notification_id && one.payload.is_some())
        });
        assert_eq!(collected.count(), 2, "events of the pending digest");
        assert!(data.receipts.iter().all(|receipt| receipt.notifications.len() == 1));
        assert_eq!((data.preferences.len(), data.subscriptions.len()), (1, 1));
        assert_eq!((data.connections.len(), data.endpoints.len()), (1, 1));
        assert_eq!(data.suppressions.len(), 2);
        assert!(!data.messages.is_empty());
        let json = wire(&data).to_string();
        for canary in CANARIES {
            assert!(json.contains(canary), "{canary} is not in the export");
        }
        assert!(!json.contains("bob"));
        world
            .refuses("404 subscriber `eve` is not there", || world.env.subscribers().export("eve"));
    });
}

#[test]
fn an_erasure_leaves_nothing_of_a_person_and_all_of_the_others() {
    on_both(|world| {
        fill(&world);
        let bob = |world: &World| {
            let query = json!({ "subscriberIds": ["bob"] });
            (world.notifications(query), world.inbox("bob"), world.env.subscribers().get("bob"))
        };
        let (notifications, inbox, subscriber) = bob(&world);
        let ids = own_ids(&world, "canary-id");
        // The erasure begins long after the last call.
        world.pass(Duration::from_secs(600));

        let erased = world.env.subscribers().erase("canary-id").unwrap();

        assert_eq!((erased.notifications, erased.triggers), (11, 4), "{erased:?}");
        // Sealed bytes show nothing of the person: their entry stays.
        let quarantined = if is_wanted() { 2 } else { 3 };
        assert_eq!((erased.answers, erased.quarantined), (5, quarantined), "{erased:?}");
        assert!(erased.messages > 0 && erased.windows > 0, "{erased:?}");
        assert_eq!(bob(&world).0, notifications);
        assert_eq!((bob(&world).1, bob(&world).2.unwrap()), (inbox, subscriber.unwrap()));
        assert!(world.env.subscribers().find("canary-id").unwrap().is_none());
        nothing_is_left(&world.store);
        no_id_is_left(&world, &ids);
        tables::check_indexes(&world.store);
        world.run_due();
        world.refuses("404 subscriber `canary-id` is not there", || {
            world.env.subscribers().erase("canary-id")
        });
        // Nothing is triggered again for the others.
        let again = json!({ "name": "both", "to": ["bob"], "transactionId": "both" });
        assert_eq!(world.trigger(again).notifications.len(), 1);
        assert_eq!(bob(&world).0.len(), notifications.len());
    });
}

// Encoded records hold their texts as they are.
fn nothing_is_left(store: &Interposed) {
    are_in_no_row(tables::dump(store), &CANARIES.map(|canary| canary.as_bytes().to_vec()));
}

// An id is 16 bytes in keys, a text in JSON, and in the quarantine escaped bytes, of which the first
// may be missing. The activity index has that of a subscriber until it is made anew.
fn no_id_is_left(world: &World, ids: &[Uuid]) {
    let forms = |id: &Uuid| {
        let escaped = id.as_bytes()[10..].escape_ascii().to_string();
        [id.as_bytes().to_vec(), id.to_string().into_bytes(), escaped.into_bytes()]
    };
    let forms: Vec<_> = ids.iter().flat_map(forms).collect();
    let rows = tables::dump(&world.store).into_iter();
    are_in_no_row(rows.filter(|row| !tables::is_activity(row.0)), &forms);
    assert!(world.env.notifications().rebuild_index().unwrap().is_finished);
    are_in_no_row(tables::dump(&world.store), &forms);
}

// No row has one of `parts`: neither in its bytes nor in the texts of its value.
fn are_in_no_row(rows: impl IntoIterator<Item = tables::Entry>, parts: &[Vec<u8>]) {
    for (table, key, value) in rows {
        let json = encoding::json(&value).unwrap_or_default().into_owned();
        let texts = String::from_utf8_lossy(&json).replace(r"\\", r"\").into_bytes();
        let rows = [key, value, texts].map(|bytes| bytes.to_ascii_lowercase());
        for part in parts {
            let part = part.to_ascii_lowercase();
            let has = |row: &Vec<u8>| row.windows(part.len()).any(|found| found == part);
            assert!(!rows.iter().any(has), "{} is in {table:?}", part.escape_ascii());
        }
    }
}

/// Whoever was deleted has left traces, which an erasure finds by the same id.
#[test]
fn an_erasure_reaches_who_was_deleted_before_also_under_a_present_subscriber() {
    for is_there_again in [false, true] {
        on_both(|world| {
            fill(&world);
            let ids = own_ids(&world, "canary-id");
            check_traces(&world, &ids);
            let bob = || world.notifications(json!({ "subscriberIds": ["bob"] }));
            let before = bob();
            world.env.subscribers().delete("canary-id").unwrap();
            if is_there_again {
                world.bare_subscriber("canary-id");
            }

            let erased = world.env.subscribers().erase("canary-id").unwrap();

            assert_eq!((erased.notifications, erased.triggers), (11, 4), "{erased:?}");
            assert_eq!((erased.answers, erased.suppressions), (5, 1), "{erased:?}");
            assert_eq!(bob(), before);
            nothing_is_left(&world.store);
            no_id_is_left(&world, &ids);
            tables::check_indexes(&world.store);
            world.refuses("404 subscriber `canary-id` is not there", || {
                world.env.subscribers().erase("canary-id")
            });
        });
    }
}

/// Neither the file nor its log has a byte of what was erased.
#[test]
fn a_compacted_file_has_nothing_of_an_erased_person() {
    compacted_without_the_person(|world| {
        assert!(world.env.subscribers().erase("canary-id").unwrap().is_finished);
    });
}

#[test]
fn a_compacted_file_has_nothing_of_a_person_who_was_deleted_and_then_erased() {
    compacted_without_the_person(|world| {
        world.env.subscribers().delete("canary-id").unwrap();
        assert!(world.env.subscribers().erase("canary-id").unwrap().is_finished);
    });
}

fn compacted_without_the_person(erase: impl Fn(&World)) {
    // The bytes of sealed values say nothing.
    if is_wanted() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.redb");
    let files = || bytes_of(folder.path());
    let store = Arc::new(RedbStore::open(&path).unwrap());
    {
        let world = World::with(Interposed::over(store.clone()), |builder| builder);
        fill(&world);
        store.checkpoint().unwrap();
        let before = files();
        for canary in CANARIES {
            assert!(has_text(&before, canary), "{canary} was not there");
        }
        erase(&world);
    }
    store.checkpoint().unwrap();
    drop(store);
    let erased = files();
    // Free pages keep their bytes.
    assert!(CANARIES.iter().any(|canary| has_text(&erased, canary)));

    assert!(RedbStore::compact(&path).unwrap().is_finished);

    let after = files();
    assert!(after.len() < erased.len());
    for canary in CANARIES {
        assert!(!has_text(&after, canary), "{canary} is in the file");
    }
    let store = RedbStore::open(&path).unwrap();
    let world = World::with(Interposed::new(store), |builder| builder);
    assert_eq!(world.notifications(json!({ "subscriberIds": ["bob"] })).len(), 4);
    tables::check_indexes(&world.store);
}

/// A backup that was ended before the erasure has left a part. The next one has no byte of it.
#[test]
fn a_backup_has_nothing_of_an_erased_person_of_an_earlier_part() {
    // The bytes of sealed values say nothing.
    if is_wanted() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("copy.redb");
    let world = World::in_memory();
    fill(&world);
    // So many pages become free that not all of them are used again.
    let payload = json!({ "text": "payload-canary".repeat(1_000) });
    for _ in 0..32 {
        world.trigger(json!({ "name": "both", "to": ["canary-id"], "payload": payload }));
    }
    let ended = world.engine.backup_with(&path, |progress| {
        if progress.is_comparing { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(!ended.unwrap().is_finished);
    let part = bytes_of(folder.path());
    for canary in CANARIES {
        assert!(has_text(&part, canary), "{canary} was not there");
    }
    assert!(world.env.subscribers().erase("canary-id").unwrap().is_finished);

    assert!(world.engine.backup(&path).unwrap().is_finished);

    let copy = bytes_of(folder.path());
    for canary in CANARIES {
        assert!(!has_text(&copy, canary), "{canary} is in the copy");
    }
    assert!(tables::dump(&RedbStore::open(&path).unwrap()) == tables::dump(&world.store));
}

// The bytes of all files in a folder.
fn bytes_of(folder: &Path) -> Vec<u8> {
    let entries = fs::read_dir(folder).unwrap();
    let bytes = entries.map(|entry| fs::read(entry.unwrap().path()).unwrap());
    bytes.collect::<Vec<_>>().concat()
}

fn has_text(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|part| part.eq_ignore_ascii_case(text.as_bytes()))
}

/// The answer of an erasure that was ended is not stored: an equal call goes on.
#[test]
fn an_erasure_that_the_host_ends_goes_on() {
    on_both(|world| {
        world.workflow_of("news", &[in_app()]);
        world.bare_subscriber("canary-id");
        for _ in 0..150 {
            world.notify("news", "canary-id");
        }
        let once = world.env.idempotent("erase").unwrap();
        let mut tables = Vec::new();

        let ended = once.subscribers().erase_with("canary-id", |at| {
            tables.push(at.table);
            ControlFlow::Break(())
        });

        let ended = ended.unwrap();
        assert_eq!((ended.notifications, ended.is_finished), (64, false));
        assert_eq!(tables, ["notifications"]);
        let rest = once.subscribers().erase("canary-id").unwrap();
        assert_eq!((rest.notifications, rest.is_finished), (150 - 64, true));
        assert_eq!(once.subscribers().erase("canary-id").unwrap(), rest);
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

#[test]
fn an_interrupted_erasure_goes_on() {
    on_both(|world| {
        world.workflow_of("news", &[in_app()]);
        world.bare_subscriber("canary-id");
        for _ in 0..150 {
            world.notify("news", "canary-id");
        }
        let erase = || world.env.subscribers().erase("canary-id");

        assert_eq!(world.interrupted(1, erase).unwrap_err().status(), 500);

        let left = world.notifications(json!({ "subscriberIds": ["canary-id"], "limit": 50 }));
        assert!(!left.is_empty());
        let rest: Erasure = erase().unwrap();
        assert_eq!(rest.notifications, 150 - 64);
        let answers = [Table::StoredAnswers, Table::ExpiringAnswers];
        assert!(!world.dump_without(&answers).is_empty());
        nothing_is_left(&world.store);
    });
}

/// A suppression names those who had its address.
#[test]
fn an_export_has_the_suppressions_of_former_addresses() {
    on_both(|world| {
        world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
        let add = |address: &str| {
            let create = parsed(json!({ "channel": "email", "address": address }));
            world.env.suppressions().add(&create).unwrap();
        };
        add("ada@example.org");
        add("nobody@example.org");
        let other = parsed(json!({ "email": "other@example.org" }));
        world.env.subscribers().update("ada", &other).unwrap();
        add("other@example.org");

        let data = world.env.subscribers().export("ada").unwrap();

        let addresses: Vec<_> = data.suppressions.iter().map(|one| one.address.address()).collect();
        assert_eq!(addresses, ["other@example.org", "ada@example.org"]);
        // One that is both is shown once.
        let back = parsed(json!({ "email": "ada@example.org" }));
        world.env.subscribers().update("ada", &back).unwrap();
        let data = world.env.subscribers().export("ada").unwrap();
        assert_eq!(data.suppressions.len(), 2);
    });
}

/// Who wants no messages gets none, also as a subscriber who is created later.
#[test]
fn an_erased_address_stays_suppressed() {
    on_both(|world| {
        fill(&world);
        let suppressed =
            json!({ "channel": "email", "address": "Canary@Example.org", "text": "Canaria" });
        let before = world.env.suppressions().add(&parsed(suppressed)).unwrap();
        let find = || {
            let channel = parsed(json!("email"));
            world.env.suppressions().find(channel, "canary@example.org").unwrap()
        };

        let erased = world.env.subscribers().erase("canary-id").unwrap();

        assert_eq!(erased.suppressions, 2);
        nothing_is_left(&world.store);
        let left = find().unwrap();
        assert_eq!((left.reason, left.expires_at), (before.reason, before.expires_at));
        assert!(left.text.is_none() && left.address.address().starts_with("erased:"));
        let again = json!({ "subscriberId": "again", "email": "canary@example.org" });
        world.pass(std::time::Duration::from_secs(24 * 3_600));
        world.run_due();
        let sent = world.recorder.sent().len();
        world.trigger(json!({ "name": "mail", "to": [again] }));
        world.run_due();
        let sent = &world.recorder.sent()[sent..];
        assert!(
            sent.iter().all(|one| !format!("{:?}", one.address).contains("canary")),
            "{sent:?}"
        );
        let outcome = wire(world.notifications(json!({ "subscriberIds": ["again"] })));
        assert!(outcome.to_string().contains("address_suppressed"), "{outcome}");
        // Another erasure finds nothing more to do.
        assert_eq!(world.env.subscribers().erase("again").unwrap().suppressions, 0);
        // The host may remove it by the address.
        world.env.suppressions().remove(parsed(json!("email")), "canary@example.org").unwrap();
        assert!(find().is_none());
        tables::check_indexes(&world.store);
    });
}

// Tasks tell 120 subscribers of an event whose actor has a name to look for.
fn broadcast_by_canary(world: &World) {
    world.workflow_of("news", &[in_app()]);
    for number in 0..120 {
        world.bare_subscriber(&format!("s{number}"));
    }
    let profile = json!({ "subscriberId": "canary-id", "firstName": "Canaria" });
    world.subscriber(profile.clone());
    let everybody = json!({ "name": "news", "actor": profile, "transactionId": "all" });
    world.env.events().broadcast(&parsed(everybody)).unwrap();
}

/// The notifications of an event with many recipients are planned with its actor, who is erased before they
/// are stored.
#[test]
fn a_task_that_tells_others_forgets_who_is_erased_meanwhile() {
    on_both(|world| {
        broadcast_by_canary(&world);
        let env = world.env.clone();
        world.store.pause(Point::Write, 1, move || {
            assert!(env.subscribers().erase("canary-id").unwrap().is_finished);
        });

        world.run_due();
        world.pass(Duration::from_secs(1));
        world.run_due();

        nothing_is_left(&world.store);
        assert_eq!(world.env.notifications().count(&NotificationQuery::default()).unwrap(), 120);
    });
}

/// An event with many recipients does not find who was erased.
#[test]
fn tasks_tell_the_others_and_not_who_was_erased() {
    on_both(|world| {
        broadcast_by_canary(&world);
        for numbers in [0..60, 60..120] {
            let all: Vec<_> = numbers.map(|number| format!("s{number}")).collect();
            assert_eq!(
                world
                    .env
                    .topics()
                    .subscribe("all", &parsed(json!({ "subscriptions": all })))
                    .unwrap()
                    .errors,
                []
            );
        }
        let topic = json!({ "type": "Topic", "topicKey": "all", "exclude": ["s0", "canary-id"] });
        for (to, id) in [(topic.clone(), "one"), (json!([topic]), "many")] {
            world.trigger(json!({ "name": "news", "to": to, "transactionId": id }));
        }

        let erased = world.env.subscribers().erase("canary-id").unwrap();

        assert_eq!((erased.notifications, erased.triggers), (0, 3));
        nothing_is_left(&world.store);
        assert_eq!(world.engine.delivery().run_due(1_000).unwrap().created, 120 + 2 * 119);
        nothing_is_left(&world.store);
    });
}

/// An erasure removes the person from the events in an early transaction, and the subscriber in the last one.
#[test]
fn tasks_tell_nothing_to_who_is_left_out_while_an_erasure_runs() {
    for goes_on in [true, false] {
        on_both(|world| {
            broadcast_by_canary(&world);
            world.bare_subscriber("bob");
            let members: Vec<_> = (0..110).map(|number| format!("s{number}")).collect();
            for some in [&members[..60], &members[60..], &["canary-id".to_owned()]] {
                let request = parsed(json!({ "subscriptions": some }));
                assert_eq!(world.env.topics().subscribe("all", &request).unwrap().errors, []);
            }
            let topic =
                |exclude: Value| json!({ "type": "Topic", "topicKey": "all", "exclude": exclude });
            let excluded = topic(json!(["canary-id"]));
            let named = json!([topic(json!([])), "canary-id"]);
            for (to, id) in [(excluded, "excluded"), (named, "named")] {
                world.trigger(json!({ "name": "news", "to": to, "transactionId": id }));
            }
            // More than a transaction looks at.
            for _ in 0..6 {
                let event = || parsed(json!({ "name": "news", "to": "bob" }));
                let events: Vec<_> = (0..100).map(|_| event()).collect();
                world.env.events().trigger_bulk(&events).unwrap().all().unwrap();
            }
            let tell = || {
                world.engine.delivery().run_due(1_000).unwrap();
                assert_eq!(world.notifications(json!({ "subscriberIds": ["canary-id"] })), []);
            };
            let mut parts = 0;

            let erased = world.env.subscribers().erase_with("canary-id", |_| {
                parts += 1;
                if goes_on {
                    tell();
                    return ControlFlow::Continue(());
                }
                ControlFlow::Break(())
            });

            assert_eq!((erased.unwrap().is_finished, parts > 0), (goes_on, true));
            tell();
            if !goes_on {
                assert!(world.env.subscribers().get("canary-id").unwrap().deleted);
                assert!(world.env.subscribers().erase("canary-id").unwrap().is_finished);
            }
            nothing_is_left(&world.store);
            let query = NotificationQuery::default();
            assert_eq!(world.env.notifications().count(&query).unwrap(), 120 + 2 * 110 + 600);
        });
    }
}
