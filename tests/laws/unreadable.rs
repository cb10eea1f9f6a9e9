//! An entry that cannot be read hides itself, and nothing else: lists, deletions, retention and
//! delivery go on.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use store::layout::{Derived, IndexPart, Role, SearchedField};
use store::{Table, encoding};
use testkit::interposed::{Lie, Point};
use testkit::is_thorough;
use testkit::records::{Ruins, readers};
use testkit::requests::{self, Answer, Refusal};
use testkit::seeded::copy_with;
use testkit::tables::{self, Entry, dump, of_plain_worlds, put};
use testkit::world::{World, hour, in_app};
use tidings::ids::InternalSubscriberId;
use tidings::message::{Changes, FeedCursor, FeedPage, MarkAs};
use tidings::quarantine::QuarantineQuery;
use tidings::retention::Retention;
use tidings::subscriber::SubscriberQuery;
use tidings::vocabulary::Channel;
use tidings::{DeliveryReport, Error};

use crate::parsed;
use crate::seeded::{copy, entries_of};

/// A way to damage a value. It leaves none that can be read as it was.
type Ruin = fn(Table, &[u8]) -> Vec<u8>;

const RUINS: [Ruin; 4] = [
    |_, _| b"\xFFgarbage".to_vec(),
    |_, value| value[..value.len() / 2].to_vec(),
    |_, _| Vec::new(),
    // The value of another row.
    |table, value| {
        let other = entries_of(table).map(|(_, _, other)| other).find(|other| *other != value);
        other.cloned().unwrap_or_else(|| b"\x01{}".to_vec())
    },
];

/// Calls `scenario` with the first and the last entry of a table, and each damage to them.
fn each_damage(table: Table, scenario: impl FnMut(&[u8], &[u8], &[u8])) {
    damage(table, true, scenario);
}

/// The same with one damage to the first entry and another one to the last: two in one table, and the others in the
/// next. `TIDINGS_TEST_SCALE` brings back all.
fn damage_in_turn(table: Table, scenario: impl FnMut(&[u8], &[u8], &[u8])) {
    damage(table, is_thorough(), scenario);
}

fn damage(table: Table, tries_all: bool, mut scenario: impl FnMut(&[u8], &[u8], &[u8])) {
    for (number, ruin) in RUINS.into_iter().enumerate() {
        let mut entries = entries_of(table);
        let ends: Vec<_> = [entries.next(), entries.next_back()].into_iter().flatten().collect();
        let is_of_table = number % 2 == table as usize % 2;
        let is_wanted =
            |end: usize| tries_all || is_of_table && (ends.len() == 1 || end == number / 2);
        for (_, (_, key, value)) in ends.iter().enumerate().filter(|(end, _)| is_wanted(*end)) {
            let damaged = ruin(table, value);
            if damaged != *value {
                scenario(key, value, &damaged);
            }
        }
    }
}

fn name(request: &Value) -> (&str, &str) {
    request[0].as_str().unwrap_or_default().split_once('.').unwrap_or_default()
}

fn is_list(request: &Value) -> bool {
    let (_, operation) = name(request);
    operation.starts_with("count")
        || matches!(
            operation,
            "list" | "list_active" | "subscriptions" | "changes_since" | "next_due"
        )
}

fn is_deletion(request: &Value) -> bool {
    let (_, operation) = name(request);
    operation.starts_with("delete")
        || operation.ends_with("_matching")
        || matches!(operation, "clear" | "mark_all")
}

/// Whether the request names the record of the damaged entry, and cannot do without it.
fn names_it(request: &Value, table: Table) -> bool {
    let of = if let Role::IndexOf(table) = table.role() { table } else { table };
    let (group, operation) = name(request);
    match of {
        Table::Subscribers => {
            matches!((group, operation), ("inbox" | "messages", _) | ("subscribers", "delete"))
                || request.to_string().contains("subscriptions\",\"")
        }
        Table::Topics => group == "topics" && operation != "list",
        Table::Integrations => group == "integrations" && operation == "delete",
        Table::Contexts => group == "contexts" && operation == "delete",
        Table::Layouts | Table::Workflows | Table::TranslationGroups => {
            operation.starts_with("delete") && group != "subscribers" && group != "notifications"
        }
        Table::Translations => group == "translations" && operation == "delete",
        Table::ChannelEndpoints => group == "channel_endpoints" && operation == "delete",
        Table::ChannelConnections => group == "channel_connections" && operation == "delete",
        Table::Notifications => group == "notifications" && operation == "delete",
        Table::Messages => group == "inbox" && operation == "delete",
        _ => false,
    }
}

#[track_caller]
fn check_complaint(answer: &Answer, table: Table, request: &Value) {
    let Err(Refusal::By(Error::Store(store::Error::Corrupt { table: named, .. }))) = answer else {
        panic!("{request} with {} damaged: {answer:?}", table.name())
    };
    let role = |name: &str| Table::named(name).map(Table::role);
    let is_index = role(named) == Some(Role::IndexOf(table));
    assert!(*named == table.name() || is_index, "{request} with {} damaged", table.name());
}

/// The tables with rows that an environment is made of, and that no operation makes anew.
fn tables() -> impl Iterator<Item = Table> {
    of_plain_worlds().into_iter().filter(|table| {
        // Without its record, an environment has no scope.
        *table != Table::Environments && !matches!(table.role(), Role::Derived(_))
    })
}

#[test]
fn lists_and_deletions_go_on() {
    let world = Ruins::default();
    let wanted = |request: &&Value| is_list(request) || is_deletion(request);
    let all = requests::sound().iter().filter(wanted).count();
    let (mut rows, mut made) = (0, 0);
    for table in tables() {
        let requests: Vec<&Value> = readers(table).iter().filter(wanted).collect();
        each_damage(table, |key, value, damaged| {
            rows += 1;
            made += requests.len();
            world.put(table, key, Some(damaged));
            for request in &requests {
                let answer = world.answer(request);
                if answer.is_err() {
                    assert!(
                        names_it(request, table),
                        "{request} with {}: {answer:?}",
                        table.name()
                    );
                    check_complaint(&answer, table, request);
                }
            }
            world.put(table, key, Some(value));
        });
    }
    assert!(rows > 100 && made > 2 * rows, "{rows} {made}");
    println!("{made} of {all} requests beside each of {rows} damaged rows would see it, and go on");
}

/// A damaged page may bring rows into a table whose keys begin as those of an environment do, and go
/// on in no known way. Calls pass over more of them than a transaction looks at.
#[test]
fn unknown_keys_hold_up_no_call() {
    let ruins = Ruins::default();
    for table in tables() {
        // The first key goes on, and what all keys of an environment begin with.
        let (Some((_, first, _)), Some((_, last, value))) =
            (entries_of(table).next(), entries_of(table).next_back())
        else {
            continue;
        };
        for start in [&first[..], &last[..last.len().min(16)]] {
            for number in 0..1_100_u16 {
                let unknown = [start, b"\xF0unknown", &number.to_be_bytes()].concat();
                ruins.put(table, &unknown, Some(value));
            }
        }
    }
    for request in requests::sound() {
        let (sender, returned) = mpsc::channel();
        let ruins = ruins.clone();
        thread::spawn(move || sender.send(ruins.answer_in_a_copy(request).is_ok()));
        let returned = returned.recv_timeout(Duration::from_secs(60));
        assert!(returned.is_ok(), "{request} does not return");
    }
}

/// A page is one item shorter, and says so.
#[test]
fn a_page_tells_how_many_items_it_leaves_out() {
    let world = Ruins::default();
    for (table, request) in [
        (Table::Subscribers, json!(["subscribers.list", {}])),
        (Table::SubscriberIds, json!(["subscribers.list", {}])),
        (Table::Workflows, json!(["workflows.list", {}])),
        (Table::Contexts, json!(["contexts.list", {}])),
        (Table::ChannelConnections, json!(["channel_connections.list", {}])),
        (Table::ChannelEndpoints, json!(["channel_endpoints.list", {}])),
        (Table::Topics, json!(["topics.list", {}])),
        (Table::Layouts, json!(["layouts.list", {}])),
        (Table::Translations, json!(["translations.list", {}])),
        (Table::Suppressions, json!(["suppressions.list", {}])),
    ] {
        let all = world.answer(&request).unwrap().json();
        let all = all["data"].as_array().unwrap();
        each_damage(table, |key, value, damaged| {
            world.put(table, key, Some(damaged));
            let page = world.answer(&request).unwrap().json();
            assert_eq!(page["unreadable"], 1, "{request}: {page}");
            let left = page["data"].as_array().unwrap();
            assert_eq!(left.len() + 1, all.len());
            assert!(left.iter().all(|item| all.contains(item)), "{request}");
            world.put(table, key, Some(value));
        });
    }
}

/// Rows that follow from others are made anew where they are needed.
#[test]
fn what_is_derived_is_made_anew() {
    let wanted = |request: &&Value| is_list(request) && name(request).0 != "delivery";
    let requests: Vec<&Value> = requests::sound().iter().filter(wanted).collect();
    let check = json!(["notifications.check_index"]);
    let ask = |world: &World, request: &Value| {
        requests::text(&requests::call(&world.engine, &world.env, request))
    };
    let sound = copy();
    let expected: Vec<_> = requests.iter().map(|request| ask(&sound, request)).collect();
    for table in of_plain_worlds() {
        if !matches!(table.role(), Role::Derived(_)) {
            continue;
        }
        each_damage(table, |key, _, damaged| {
            let world = copy();
            put(&world.store, table, key, Some(damaged));
            // What is in the activity index has no form that only one thing can have.
            let is_found = ask(&world, &check) != ask(&sound, &check);
            for (request, expected) in requests.iter().zip(&expected) {
                let answer = ask(&world, request);
                // The feed of counters that are lost starts anew.
                let may_differ = is_found || name(request).1 == "changes_since";
                let is_fine = answer == *expected || may_differ && !answer.contains("not readable");
                assert!(is_fine, "{request} with {}: {expected}\nbecomes\n{answer}", table.name());
            }
        });
    }
}

/// An operation makes the rows anew that it finds damaged, of each kind, and no others.
#[test]
fn only_what_is_damaged_is_made_anew() {
    let kinds = [Derived::Activity, Derived::Outcomes, Derived::Texts(SearchedField::Email)];
    let request =
        json!(["notifications.list", { "search": "example", "outcomes": ["waiting", "failed"] }]);
    let ask = |world: &World| requests::text(&requests::call(&world.engine, &world.env, &request));
    let sound = copy();
    for damage in 1..8 {
        let is_damaged = |kind: &&Derived| {
            kinds.iter().position(|one| one == *kind).is_some_and(|bit| damage >> bit & 1 == 1)
        };
        let world = copy();
        for kind in kinds.iter().filter(is_damaged) {
            for (table, key, _) in rows_of(&world, *kind) {
                put(&world.store, table, &key, Some(b"\xFFgarbage"));
            }
        }
        assert_eq!(ask(&world), ask(&sound), "{damage:b}");
        for kind in kinds.iter().filter(|kind| !is_damaged(kind)) {
            assert_eq!(rows_of(&world, *kind), rows_of(&sound, *kind), "{damage:b}: {kind:?}");
        }
        assert_eq!(world.engine.check().unwrap().findings, [], "{damage:b}");
    }
}

/// So is the index of names.
#[test]
fn a_damaged_index_of_names_is_made_anew() {
    let request = json!(["subscribers.list", { "name": "a" }]);
    let ask = |world: &World| requests::text(&requests::call(&world.engine, &world.env, &request));
    let sound = ask(&copy());
    for damage in [None, Some(b"\xFFgarbage".as_slice()), Some(b"")] {
        let rows = rows_of(&copy(), Derived::Texts(SearchedField::Name));
        assert!(rows.len() > 1);
        // Without its head, which is the first row, an index has no texts. A search reads no places.
        let is_read = |(_, key, _): &&Entry| places_of(SearchedField::Name, key).is_none();
        for (table, key, _) in rows.iter().skip(usize::from(damage.is_none())).filter(is_read) {
            let world = copy();
            put(&world.store, *table, key, damage);
            assert_eq!(ask(&world), sound, "{damage:?} at {key:?}");
            assert_eq!(world.engine.check().unwrap().findings, []);
        }
    }
}

/// A change of a subscriber reads the places of the texts.
#[test]
fn damaged_places_of_texts_are_made_anew() {
    for field in SearchedField::ALL {
        for damage in [None, Some(b"\xFFgarbage".as_slice()), Some(b""), Some(b"\0\0\0\0\x3F")] {
            for (table, key, _) in rows_of(&copy(), Derived::Texts(field)) {
                let Some(id) = places_of(field, &key) else { continue };
                let world = copy();
                put(&world.store, table, &key, damage);
                let subscribers = world.env.subscribers();
                let all = subscribers.list(&SubscriberQuery::default()).unwrap().data;
                let of = all.iter().find(|subscriber| subscriber.id == id).unwrap();
                let change =
                    json!({ "firstName": "Zoe", "lastName": null, "email": "zoe@new.org" });
                subscribers.update(&of.subscriber_id, &parsed(change)).unwrap();
                let find = |query| subscribers.list(&parsed(query)).unwrap().data.len();
                assert_eq!(find(json!({ "name": "Zoe" })), 1);
                assert_eq!(find(json!({ "limit": 100 })), all.len());
                assert_eq!(world.engine.check().unwrap().findings, [], "{damage:?} of {field:?}");
            }
        }
    }
}

fn places_of(field: SearchedField, key: &[u8]) -> Option<InternalSubscriberId> {
    match field.read(key)? {
        (_, IndexPart::Places(subscriber)) => Some(subscriber),
        (_, IndexPart::Head | IndexPart::Row { .. } | IndexPart::Trigrams { .. }) => None,
    }
}

/// Rows that are damaged again are made anew again a minute later, or once the clock has gone back.
#[test]
fn what_is_damaged_again_is_made_anew_again() {
    let request = json!(["notifications.list", { "search": "example" }]);
    let sound = copy();
    let ask = |world: &World| requests::text(&requests::call(&world.engine, &world.env, &request));
    let damage = |world: &World| {
        for (table, key, _) in rows_of(world, Derived::Texts(SearchedField::Email)) {
            put(&world.store, table, &key, Some(b"\xFFgarbage"));
        }
    };
    let world = copy();
    damage(&world);
    assert_eq!(ask(&world), ask(&sound));
    damage(&world);
    assert_ne!(ask(&world), ask(&sound), "it is made anew at once");
    world.pass(Duration::from_secs(60));
    assert_eq!(ask(&world), ask(&sound), "a minute later");
    damage(&world);
    world.clock.set(world.now().before(Duration::from_secs(1)));
    assert_eq!(ask(&world), ask(&sound), "the clock has gone back");
}

/// An index that cannot be made anew, because the notifications cannot be gone through, is tried again a minute
/// later.
#[test]
fn what_cannot_be_made_anew_costs_no_more() {
    let world = copy();
    for (table, key, _) in rows_of(&world, Derived::Activity) {
        put(&world.store, table, &key, Some(b"\xFFgarbage"));
    }
    world.store.tell(Lie::ForeignIn(Table::Notifications));
    let calls = || {
        let request = json!(["notifications.list", { "search": "example" }]);
        let ask = || requests::text(&requests::call(&world.engine, &world.env, &request));
        world.store.calls_of(ask).0.len()
    };
    let (first, second) = (calls(), calls());
    assert!(first > second, "it is tried again: {first} and {second} calls of the store");
    world.pass(Duration::from_secs(60));
    let third = calls();
    assert!(third > second, "it is not tried a minute later: {second} and {third} calls");
}

/// A rebuild of the activity index that fails, with the old one in use, leaves no rows of its own.
#[test]
fn a_rebuild_that_fails_leaves_nothing() {
    let head = |rows: &[Entry]| rows.iter().find(|row| row.0 == Table::ActivityHeads).cloned();
    for calls in 0.. {
        let world = copy();
        let before = rows_of(&world, Derived::Activity);
        world.store.fail(Point::Begin, calls);
        let rebuilt = world.env.notifications().rebuild_index();
        if !world.store.recover() {
            assert!(rebuilt.is_ok() && calls > 5, "{calls} calls");
            break;
        }
        let after = rows_of(&world, Derived::Activity);
        assert!(after == before || head(&after) != head(&before), "after {calls} calls");
    }
}

fn rows_of(world: &World, kind: Derived) -> Vec<Entry> {
    let mut rows = dump(&world.store);
    rows.retain(|(table, ..)| table.role() == Role::Derived(kind));
    rows
}

/// Old records go, but for one that cannot be read and what belongs to it.
#[test]
fn retention_goes_on() {
    let policy = || {
        Retention::default()
            .activity_days(1)
            .messages_days(Channel::InApp, 1)
            .receipts_days(1)
            .idempotency_hours(1)
    };
    let sweep = |damage: Option<(Table, &[u8], &[u8])>| -> DeliveryReport {
        let world = copy_with(|builder| builder.retention(policy()));
        if let Some((table, key, value)) = damage {
            put(&world.store, table, key, Some(value));
        }
        world.pass(Duration::from_secs(400 * 24 * 60 * 60));
        let mut report = world.engine.delivery().run_due(usize::MAX).unwrap();
        world.pass(Duration::from_secs(2 * 24 * 60 * 60));
        let again = world.engine.delivery().run_due(usize::MAX).unwrap();
        report.swept += again.swept;
        report.quarantined += again.quarantined;
        report
    };
    let sound = sweep(None);
    assert!(sound.swept > 50, "{sound:?}");
    for table in of_plain_worlds() {
        damage_in_turn(table, |key, _, damaged| {
            let report = sweep(Some((table, key, damaged)));
            let left = sound.swept - report.swept.min(sound.swept);
            assert!(left <= 12, "{}: {left} are left of {}", table.name(), sound.swept);
        });
    }
}

/// What a deletion comes across is kept in the quarantine.
#[test]
fn a_deletion_keeps_what_it_cannot_read() {
    for (table, request) in [
        (Table::Subscriptions, json!(["topics.delete", "news"])),
        (Table::Preferences, json!(["subscribers.delete", "ada"])),
        (Table::Suppressions, json!(["suppressions.clear", null])),
    ] {
        let world = copy();
        let (_, key, value) = entries_of(table).next().unwrap();
        put(&world.store, table, key, Some(b"damaged"));
        let before = world.engine.quarantine().list(&QuarantineQuery::default()).unwrap().data;

        requests::call(&world.engine, &world.env, &request).unwrap();

        let mut found = world.engine.quarantine().list(&QuarantineQuery::default()).unwrap().data;
        found.retain(|entry| !before.contains(entry));
        let [entry] = &found[..] else { panic!("{request}: {found:?}") };
        assert_eq!((entry.table.as_str(), entry.value.as_str()), (table.name(), "damaged"));
        assert_eq!(entry.key, key.escape_ascii().to_string());
        assert!(entry.task.is_none() && encoding::json(value).is_ok());
    }
}

/// An erasure keeps nothing, also not of what it cannot read.
#[test]
fn an_erasure_keeps_no_damaged_record() {
    let whole = copy();
    assert!(whole.env.subscribers().erase("ada").unwrap().is_finished);
    let kept = dump(&whole.store);
    for table in [Table::Preferences, Table::Messages, Table::DigestEvents] {
        let is_kept = |key: &[u8]| kept.iter().any(|(other, at, _)| *other == table && at == key);
        let own: Vec<_> = entries_of(table).filter(|(_, key, _)| !is_kept(key)).collect();
        assert!(!own.is_empty(), "{table:?}");
        for (_, key, _) in own {
            let world = copy();
            put(&world.store, table, key, Some(b"damaged"));
            let quarantined = |world: &World| {
                world.engine.quarantine().list(&QuarantineQuery::default()).unwrap().data
            };
            let before = quarantined(&world).len();
            assert!(world.env.subscribers().erase("ada").unwrap().is_finished);
            assert!(quarantined(&world).len() <= before);
            let left = dump(&world.store);
            assert!(!left.iter().any(|(other, at, _)| *other == table && at == key), "{table:?}");
        }
    }
}

#[test]
fn an_erasure_removes_a_task_that_cannot_be_read() {
    let world = World::in_memory();
    world.workflow_of("late", &[hour("delay"), in_app()]);
    world.workflow_of("soon", &[hour("digest"), in_app()]);
    world.notify("late", "ada");
    world.notify("soon", "ada");
    assert_eq!(world.rows(Table::Tasks), 2);
    for (table, key, _) in tables::of(&world.store, Table::Tasks) {
        put(&world.store, table, &key, Some(b"damaged"));
    }

    assert!(world.env.subscribers().erase("ada").unwrap().is_finished);

    // The turn of a delay has an id that its notification does not know.
    assert_eq!(world.rows(Table::Tasks), 1);
    world.pass(Duration::from_secs(3_600));
    // A claim takes it out of the queue, and the entry of the other one.
    assert_eq!(world.engine.delivery().run_due(100).unwrap().quarantined, 2);
    assert_eq!(world.rows(Table::Tasks), 0);
}

/// The receipt of an event of the person cannot be read.
#[test]
fn an_erasure_passes_over_own_receipts_that_cannot_be_read() {
    for (_, key, _) in entries_of(Table::Triggers) {
        let world = copy();
        put(&world.store, Table::Triggers, key, Some(b"damaged"));
        assert!(world.env.subscribers().erase("ada").unwrap().is_finished);
        assert!(world.env.subscribers().find("ada").unwrap().is_none());
    }
}

/// A feed counts what it leaves out, and its cursor goes on behind it.
#[test]
fn a_feed_passes_over_what_it_cannot_read() {
    let world = World::in_memory();
    world.workflow_of("news", &[in_app()]);
    world.bare_subscriber("ada");
    let inbox = world.env.inbox("ada").unwrap();
    let start = inbox.cursor().unwrap();
    for _ in 0..FeedPage::LIMIT * 2 + 20 {
        world.notify("news", "ada");
    }
    let stored = || tables::of(&world.store, Table::Messages).into_iter();
    // All of the first page and some of the others, which were delivered.
    let damaged = FeedPage::LIMIT + 10;
    for (table, key, _) in stored().take(damaged) {
        put(&world.store, table, &key, Some(b"damaged"));
    }
    assert_eq!(followed(&world, start), (damaged, FeedPage::LIMIT + 10));

    // The same of changes that are no deliveries.
    let start = inbox.cursor().unwrap();
    let query = json!({ "limit": 100 });
    let readable = inbox.list(&parsed(query)).unwrap();
    let ids: Vec<_> = readable.data.iter().map(|message| message.id).collect();
    assert!(ids.len() > 50, "{} messages", ids.len());
    for id in &ids {
        inbox.mark_as([*id], MarkAs::Read).unwrap();
    }
    let is_of = |key: &[u8]| ids[..30].iter().any(|id| key.ends_with(&id.place().to_bytes()));
    for (table, key, _) in stored().filter(|(_, key, _)| is_of(key)) {
        put(&world.store, table, &key, Some(b"damaged"));
    }
    assert_eq!(followed(&world, start), (30, ids.len() - 30));
}

/// The number of changes that a feed leaves out, and of those that it tells, from a cursor to the end.
fn followed(world: &World, mut cursor: FeedCursor) -> (usize, usize) {
    let (mut left_out, mut told) = (0, 0);
    for _ in 0..20 {
        let changes = world.env.inbox("ada").unwrap().changes_since(&cursor).unwrap();
        let Changes::Since(page) = changes else { panic!("{changes:?}") };
        left_out += page.unreadable;
        told += page.changes.len();
        if !page.has_more {
            return (left_out, told);
        }
        assert_ne!(page.next, cursor, "the cursor stands still");
        cursor = page.next;
    }
    panic!("the feed does not end");
}

/// A key is revoked whatever has become of its environment.
#[test]
fn a_key_of_a_damaged_environment_is_revoked() {
    let world = copy();
    let created = world.env.api_keys().create(&parsed(json!({ "name": "Orders" }))).unwrap();
    let header = format!("ApiKey {}", created.key.expose());
    let (_, key, _) = entries_of(Table::Environments).next().unwrap();
    put(&world.store, Table::Environments, key, Some(b"damaged"));

    world.env.api_keys().revoke(created.record.id).unwrap();

    assert!(world.another_engine().authenticate(&header).is_err());
    let left = world.env.api_keys().list().unwrap();
    assert!(left.iter().all(|one| one.id != created.record.id));
}

/// The list of organizations reads no records, and skips a key that is none.
#[test]
fn an_organization_is_listed_whatever_has_become_of_its_environments() {
    let world = copy();
    for (_, key, _) in entries_of(Table::Environments) {
        put(&world.store, Table::Environments, key, Some(b"damaged"));
    }
    put(&world.store, Table::Environments, b"\0no key", Some(b"damaged"));
    put(&world.store, Table::Environments, b"acme\0no key", Some(b"damaged"));

    let page = world.another_engine().organizations(None).unwrap();

    assert_eq!((page.data, page.next), (vec!["acme".parse().unwrap()], None));
}

/// The engine does not take an environment that cannot be read for one that is not there.
#[test]
fn an_environment_that_cannot_be_read_is_not_created_again() {
    let world = copy();
    let (_, key, _) = entries_of(Table::Environments).next().unwrap();
    put(&world.store, Table::Environments, key, Some(b"damaged"));
    let engine = world.another_engine();
    let acme = engine.organization("acme").unwrap();
    let refused = acme.development().unwrap_err();
    assert!(matches!(refused, Error::Store(store::Error::Corrupt { table: "environments", .. })));
    assert_eq!(acme.environments().list().unwrap().len(), 1);
    let report = engine.delivery().run_due(usize::MAX).unwrap();
    let sound = copy().another_engine().delivery().run_due(usize::MAX).unwrap();
    assert_eq!(report, sound);
}
