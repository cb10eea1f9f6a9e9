//! Totals of long lists come from numbers that follow from the changes, and are right without them.

use serde_json::{Value, json};
use store::Table;
use store::memory::MemoryStore;
use testkit::interposed::{Call, Interposed};
use testkit::tables::{self, Entry, put};
use tidings::page::Total;

use crate::subscriptions::subscribe_all;
use crate::world::{World, on_both, parsed};

type List = (&'static str, fn(&World, &Value) -> (usize, Total));

const LISTS: [List; 4] = [
    ("subscribers", |world, query| {
        let page = world.env.subscribers().list(&parsed(query.clone())).unwrap();
        (page.data.len(), page.total)
    }),
    ("topics", |world, query| {
        let page = world.env.topics().list(&parsed(query.clone())).unwrap();
        (page.data.len(), page.total)
    }),
    ("contexts", |world, query| {
        let page = world.env.contexts().list(&parsed(query.clone())).unwrap();
        (page.data.len(), page.total)
    }),
    ("subscriptions", |world, query| {
        let page = world.env.topics().subscriptions("topic-0", &parsed(query.clone())).unwrap();
        (page.data.len(), page.total)
    }),
];

/// Checks the total of each list, of its first page and of all.
#[track_caller]
fn check(world: &World, expected: [usize; 4]) {
    for ((name, list), expected) in LISTS.iter().zip(expected) {
        for (limit, orders) in [(2, ["ASC", "DESC"]), (100, ["ASC", "DESC"])] {
            for order in orders {
                let query = json!({ "limit": limit, "orderDirection": order });
                let (found, total) = list(world, &query);
                assert_eq!(total, Total::Exactly(expected), "{name} {query}");
                assert_eq!(found, expected.min(limit), "{name} {query}");
            }
        }
    }
}

/// Seven of each, made in every way.
fn set_up(world: &World) {
    world.in_app_workflow("order");
    for number in 0..5 {
        world.bare_subscriber(&format!("subscriber-{number}"));
        let topic = json!({ "key": format!("topic-{number}") });
        world.env.topics().create(&parsed(topic)).unwrap();
        let context = json!({ "type": "tenant", "id": format!("{number}") });
        world.env.contexts().create(&parsed(context)).unwrap();
    }
    world.trigger(json!({
        "name": "order", "to": ["subscriber-5", "subscriber-0"], "context": { "tenant": "5" },
    }));
    world.env.subscribers().upsert(&parsed(json!({ "subscriberId": "subscriber-6" }))).unwrap();
    world.env.topics().upsert(&parsed(json!({ "key": "topic-5" }))).unwrap();
    let everybody: Vec<_> = (0..7).map(|number| format!("subscriber-{number}")).collect();
    subscribe_all(world, "topic-0", json!({ "subscriptions": everybody }));
    let one = json!({ "subscriptions": ["subscriber-0"], "context": { "tenant": "6" } });
    subscribe_all(world, "topic-6", one);
    check(world, [7; 4]);
}

fn rows(world: &World) -> Vec<Entry> {
    tables::of(&world.store, Table::ListCounts)
}

#[test]
fn totals_follow_the_changes() {
    on_both(|world| {
        set_up(&world);
        // What is there already, or is changed, is no other record.
        world
            .env
            .subscribers()
            .upsert(&parsed(json!({
                "subscriberId": "subscriber-0", "firstName": "Ada", "email": "ada@example.org",
            })))
            .unwrap();
        world.env.topics().upsert(&parsed(json!({ "key": "topic-0", "name": "News" }))).unwrap();
        subscribe_all(&world, "topic-0", json!({ "subscriptions": ["subscriber-0"] }));
        world.trigger(json!({ "name": "order", "to": "subscriber-1" }));
        check(&world, [7; 4]);

        world.env.subscribers().delete("subscriber-0").unwrap();
        check(&world, [6, 7, 7, 6]);
        assert!(world.env.subscribers().erase("subscriber-1").unwrap().is_finished);
        world.env.topics().delete("topic-1").unwrap();
        world.env.contexts().delete("tenant:0").unwrap();
        let two = parsed(json!({
            "subscriptions": [{ "subscriberId": "subscriber-2" }, { "subscriberId": "nobody" }],
        }));
        assert_eq!(world.env.topics().unsubscribe("topic-0", &two).unwrap().errors.len(), 1);
        check(&world, [5, 6, 6, 4]);

        // A refusal changes nothing.
        world.env.topics().create(&parsed(json!({ "key": "topic-0" }))).unwrap_err();
        check(&world, [5, 6, 6, 4]);
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

/// A page of a list takes the same calls, however long it is.
#[test]
fn a_page_scans_nothing_for_its_total() {
    on_both(|world| {
        set_up(&world);
        for (name, list) in LISTS {
            let (calls, _) = world.store.calls_of(|| list(&world, &json!({ "limit": 2 })));
            let scans = calls.iter().filter(|call| matches!(call, Call::Scan(_)));
            assert_eq!(scans.count(), 1, "{name}: {calls:?}");
        }
    });
}

#[test]
fn an_event_for_known_subscribers_touches_no_number() {
    on_both(|world| {
        set_up(&world);
        let event = json!({ "name": "order", "to": ["subscriber-0", "subscriber-1"] });
        let (calls, _) = world.store.calls_of(|| world.trigger(event));
        let touches = |call: &Call| match call {
            Call::Get(table, _)
            | Call::GetMany(table, _)
            | Call::Scan(table)
            | Call::Put(table, _)
            | Call::Delete(table, _) => *table == Table::ListCounts,
            Call::Read | Call::Write | Call::Commit => false,
        };
        assert!(!calls.iter().any(touches), "{calls:?}");
    });
}

/// Lost and damaged rows change no total, and the changes that follow count anew.
#[test]
fn totals_are_right_without_their_numbers() {
    for value in [None, Some(b"damaged".as_slice()), Some(b"")] {
        on_both(|world| {
            set_up(&world);
            let sound = rows(&world);
            // The topics have two lists of subscriptions.
            assert_eq!(sound.len(), 5);
            for (table, key, _) in &sound {
                put(&world.store, *table, key, value);
            }
            check(&world, [7; 4]);
            let findings = world.engine.check().unwrap().findings;
            assert_eq!(findings.len(), 5, "{findings:?}");

            world.bare_subscriber("another");
            world.env.subscribers().delete("another").unwrap();
            check(&world, [7; 4]);
            assert_eq!(world.engine.check().unwrap().findings.len(), 4);

            assert!(world.engine.repair().unwrap().is_finished);
            assert_eq!(rows(&world), sound);
            check(&world, [7; 4]);
        });
    }
}

/// A number that says something else is found and mended.
#[test]
fn a_wrong_number_is_mended() {
    on_both(|world| {
        set_up(&world);
        let sound = rows(&world);
        world.bare_subscriber("another");
        for (table, key, value) in &sound {
            put(&world.store, *table, key, Some(value));
        }
        let findings: Vec<_> = world.engine.check().unwrap().findings;
        let texts: Vec<_> = findings.iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), 1);
        assert!(texts[0].ends_with("the counters are not those of the records"), "{texts:?}");
        assert_eq!(world.engine.repair().unwrap().mended, 1);
        check(&world, [8, 7, 7, 7]);
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

#[test]
fn a_copy_has_the_numbers_and_a_deletion_leaves_none() {
    on_both(|world| {
        set_up(&world);
        let other = MemoryStore::default();
        assert!(world.engine.copy_to(&other).unwrap().is_finished);
        let copied = World::with(Interposed::new(other), |it| it);
        assert_eq!(rows(&copied), rows(&world));

        assert!(
            world.organization.delete_environment(world.env.environment_id()).unwrap().is_finished
        );
        assert_eq!(rows(&world), []);
    });
}
