//! Listing topics (11).

use serde_json::{Value, json};
use tidings::Engine;
use tidings::page::Total;
use tidings::topic::Topic;

use super::{CHANGED_AT, MADE_AT, check_pages, lines, set};
use crate::world::{World, names, on_both, parsed, wire};

const ORDERS: &[&str] = &["_id", "key", "createdAt", "updatedAt"];

#[test]
fn topics_are_paged_as_they_are_sorted() {
    on_both(|world| {
        // Some of these start as others do, or differ in their case only.
        let keys = ["a", "ab", "a.b", "B", "b", "a-b", "ä@b.org", "_", "aa", "A"];
        let mut made: Vec<Topic> = Vec::new();
        for (n, at) in MADE_AT.into_iter().enumerate() {
            set(&world, at);
            let key = if keys[n].is_ascii() { keys[n] } else { "a@b.org" };
            let mut topic = json!({ "key": key });
            if n % 2 == 0 {
                topic["name"] = json!(format!("Topic {}", n % 3));
            }
            made.push(create(&world, topic));
        }
        for (n, at) in CHANGED_AT {
            set(&world, at);
            let rename = json!({ "name": if n == 0 { None } else { Some(format!("Other {n}")) } });
            made[n] = world.env.topics().update(&made[n].key, &parsed(rename)).unwrap();
        }
        world.production().topics().create(&parsed(json!({ "key": "a" }))).unwrap();
        let list = |query: Value| world.env.topics().list(&parsed(query)).unwrap();
        // 11.4
        let lines = lines(&made, ORDERS, &list);

        // 11.1
        for query in [
            json!({}),
            json!({ "key": "B" }),
            json!({ "name": "topic" }),
            json!({ "key": "a", "name": "R" }),
            json!({ "name": "2" }),
            json!({ "key": "nowhere" }),
        ] {
            check_pages(&list, &lines, &query, |topic| {
                let contains = |text: &str, field: &str| {
                    let wanted = query[field].as_str().unwrap_or_default();
                    text.to_lowercase().contains(&wanted.to_lowercase())
                };
                let name = topic.name.as_deref().unwrap_or_default();
                contains(topic.key.as_str(), "key") && contains(name, "name")
            });
        }

        let gone: Vec<_> = made.iter().step_by(2).collect();
        for topic in &gone {
            world.env.topics().delete(&topic.key).unwrap();
        }
        check_pages(&list, &lines, &json!({}), |topic| !gone.contains(&topic));
    });
}

/// One row per query: the keys of the topics that are listed, newest first.
#[test]
fn topics_are_found_by_what_is_in_their_key_and_name() {
    on_both(|world| {
        for (key, name) in [
            ("topic-key-1", Some("First [new]")),
            ("topic-key-2", Some("100 % Wool.*")),
            ("Topic.Key:3", None),
            ("ada@example.org", Some("ÄRGER in der Straße")),
            ("topicXkey", Some("ΟΔΟΣ ΣΑΣΑ")),
        ] {
            let mut topic = json!({ "key": key });
            if let Some(name) = name {
                topic["name"] = json!(name);
            }
            let made = create(&world, topic);
            // 11.5
            let made = wire(made);
            for field in ["_id", "key", "createdAt", "updatedAt"] {
                assert!(made[field].is_string(), "{field}");
            }
            assert_eq!(made.get("name").and_then(Value::as_str), name);
        }
        // 11.9
        for foreign in [world.production(), world.elsewhere()] {
            foreign.topics().create(&parsed(json!({ "key": "topic-key-2x" }))).unwrap();
        }
        let check = |query: Value, expected: &[&str]| {
            let page = world.env.topics().list(&parsed(query.clone())).unwrap();
            assert_eq!(names(&page.data, |one| one.key.clone()), expected, "{query}");
            assert_eq!(page.total, Total::Exactly(expected.len()));
        };
        let all = ["topicXkey", "ada@example.org", "Topic.Key:3", "topic-key-2", "topic-key-1"];

        check(json!({}), &all);
        // An empty text says nothing.
        check(json!({ "key": "", "name": "" }), &all);
        // 11.2, 11.6
        check(json!({ "key": "topic-key-2" }), &["topic-key-2"]);
        check(json!({ "key": "TOPIC-KEY-2" }), &["topic-key-2"]);
        check(
            json!({ "key": "TOPIC" }),
            &["topicXkey", "Topic.Key:3", "topic-key-2", "topic-key-1"],
        );
        check(json!({ "key": "key:" }), &["Topic.Key:3"]);
        check(json!({ "key": "topic-key-2x" }), &[]);
        // 11.3
        check(json!({ "name": "first" }), &["topic-key-1"]);
        check(json!({ "name": "ärger" }), &["ada@example.org"]);
        check(json!({ "name": "STRAßE" }), &["ada@example.org"]);
        // What is in a name is found, at the end of a word as well.
        check(json!({ "name": "ΟΔΟΣ" }), &["topicXkey"]);
        check(json!({ "name": "οδος" }), &["topicXkey"]);
        check(json!({ "name": "ΣΑΣ" }), &["topicXkey"]);
        // The name is not looked for in the key, nor the key in the name.
        check(json!({ "name": "topic" }), &[]);
        check(json!({ "key": "wool" }), &[]);
        // 11.7
        check(json!({ "key": "." }), &["ada@example.org", "Topic.Key:3"]);
        check(json!({ "key": "topic.key" }), &["Topic.Key:3"]);
        check(json!({ "key": "[" }), &[]);
        check(json!({ "key": "*" }), &[]);
        check(json!({ "key": "%" }), &[]);
        check(json!({ "key": "\0" }), &[]);
        check(json!({ "name": "[" }), &["topic-key-1"]);
        check(json!({ "name": ".*" }), &["topic-key-2"]);
        check(json!({ "name": "%" }), &["topic-key-2"]);
        check(json!({ "name": "\0" }), &[]);
        // 11.8
        check(json!({ "key": "topic", "name": "new" }), &["topic-key-1"]);
        check(json!({ "key": "ada", "name": "new" }), &[]);
    });
}

#[test]
fn a_renamed_topic_is_found_by_its_new_name_only() {
    on_both(|world| {
        let topic = create(&world, json!({ "key": "orders", "name": "Old" }));
        world.tick();
        let rename = |name: Value| {
            world.env.topics().update(&topic.key, &parsed(json!({ "name": name }))).unwrap()
        };
        let found =
            |name: &str| world.env.topics().list(&parsed(json!({ "name": name }))).unwrap().data;

        let renamed = rename(json!("New"));
        assert_eq!((found("old"), found("new")), (vec![], vec![renamed]));
        rename(Value::Null);
        assert_eq!(found("new"), []);
    });
}

#[test]
fn a_total_is_counted_up_to_its_cap() {
    let env = Engine::in_memory().organization("acme").unwrap().development().unwrap();
    let create = |n: usize| {
        env.topics().create(&parsed(json!({ "key": n.to_string() }))).unwrap();
    };
    (0..Total::CAP).for_each(create);
    let list = |query: Value| env.topics().list(&parsed(query)).unwrap();
    let first = list(json!({ "limit": 1 }));
    assert_eq!(first.total, Total::Exactly(50_000));

    create(Total::CAP);

    for query in [
        json!({ "limit": 1 }),
        json!({ "limit": 1, "after": first.next }),
        json!({ "limit": 1, "before": first.next }),
        json!({ "limit": 1, "orderBy": "key", "orderDirection": "ASC" }),
    ] {
        let page = wire(list(query));
        let (total, capped) = (&page["totalCount"], &page["totalCountCapped"]);
        assert_eq!((total, capped), (&json!(50_000), &json!(true)));
    }
    let rare = list(json!({ "key": "49999" }));
    assert_eq!((rare.data.len(), rare.total), (1, Total::Exactly(1)));
}

fn create(world: &World, topic: Value) -> Topic {
    world.env.topics().create(&parsed(topic)).unwrap()
}
