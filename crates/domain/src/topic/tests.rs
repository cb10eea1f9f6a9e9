use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::folded::fold;
use crate::sample;

fn topic(name: Option<&str>) -> Topic {
    let create = TopicCreate { key: "orders".parse().unwrap(), name: name.map(ToOwned::to_owned) };
    Topic::new(sample::id(7), &sample::home(), create, sample::at(1))
}

fn search(query: Value) -> Option<TopicSearch> {
    serde_json::from_value::<TopicQuery>(query).unwrap().search()
}

/// One row per name: the refusal, in a new topic and in an update.
#[test]
fn a_name_is_readable_and_has_1_to_100_characters() {
    for (name, problem) in [
        ("x".into(), None),
        ("ü".repeat(100), None),
        (String::new(), Some("`name` must not be empty")),
        ("x".repeat(101), Some("`name` must be at most 100 characters long")),
        ("a\nb".into(), Some("`name` must be text without control characters")),
    ] {
        let create = TopicCreate { key: "t".parse().unwrap(), name: Some(name.clone()) };
        let update = TopicUpdate { name: Patch::Set(name) };
        for checked in [create.check(), update.check()] {
            assert_eq!(checked.err().map(|invalid| invalid.to_string()).as_deref(), problem);
        }
    }
    assert_eq!(TopicCreate { key: "t".parse().unwrap(), name: None }.check(), Ok(()));
    for name in [Patch::Keep, Patch::Clear] {
        assert_eq!(TopicUpdate { name }.check(), Ok(()));
    }
}

#[test]
fn a_new_one_has_what_it_was_given() {
    let topic = topic(Some("Orders"));
    assert_eq!((topic.id, topic.key.as_str()), (sample::id(7), "orders"));
    assert_eq!(topic.name.as_deref(), Some("Orders"));
    assert_eq!((topic.created_at, topic.updated_at), (sample::at(1), sample::at(1)));
    assert_eq!(topic.environment_id, sample::home().environment_id);
}

/// One row per update: the name before, the update, and the name after.
#[test]
fn an_update_keeps_clears_or_changes_the_name() {
    for (before, update, after) in [
        (Some("A"), json!({}), Some("A")),
        (None, json!({}), None),
        (Some("A"), json!({ "name": null }), None),
        (None, json!({ "name": null }), None),
        (Some("A"), json!({ "name": "B" }), Some("B")),
        (Some("A"), json!({ "name": "A" }), Some("A")),
        (None, json!({ "name": "B" }), Some("B")),
    ] {
        let update = serde_json::from_value(update).unwrap();
        // An update without a difference changes no time.
        let updated_at = sample::at(if before == after { 1 } else { 9 });
        let expected = Topic { updated_at, ..topic(after) };
        assert_eq!(topic(before).updated(update, sample::at(9)), expected);
    }
}

#[test]
fn a_topic_that_is_created_again_is_given_the_name_that_is_said() {
    for (name, patch) in [(None, Patch::Keep), (Some("B".to_owned()), Patch::Set("B".into()))] {
        let create = TopicCreate { key: "orders".parse().unwrap(), name };
        assert_eq!(create.to_update(), TopicUpdate { name: patch });
    }
}

#[test]
fn a_query_that_says_nothing_searches_for_nothing() {
    for query in [
        json!({}),
        json!({ "key": "" }),
        json!({ "name": "" }),
        json!({ "key": "", "name": "" }),
        json!({ "key": null, "limit": 5 }),
    ] {
        assert!(search(query.clone()).is_none(), "{query}");
    }
}

/// One row per search in a topic `Orders:EU` with the name `Österreich 100% (a.b)`.
#[test]
fn a_topic_is_found_by_what_is_in_its_key_and_in_its_name() {
    let folded = (fold("Orders:EU"), fold("Österreich 100% (a.b)"));
    let topic = FoldedTopic { key: folded.0.as_bytes(), name: folded.1.as_bytes() };
    for (query, found) in [
        (json!({ "key": "Orders:EU" }), true),
        (json!({ "key": "orders:eu" }), true),
        (json!({ "key": "ERS" }), true),
        (json!({ "key": ":" }), true),
        (json!({ "key": "orders:eu1" }), false),
        (json!({ "key": "o.ders" }), false),
        (json!({ "key": ".*" }), false),
        (json!({ "key": "österreich" }), false),
        (json!({ "name": "ÖSTER" }), true),
        (json!({ "name": "0% (A.B)" }), true),
        (json!({ "name": " " }), true),
        (json!({ "name": "a_b" }), false),
        (json!({ "name": "(a.b" }), true),
        (json!({ "name": "orders" }), false),
        (json!({ "key": "eu", "name": "österreich" }), true),
        (json!({ "key": "eu", "name": "france" }), false),
        (json!({ "key": "us", "name": "österreich" }), false),
        (json!({ "key": "eu", "name": "" }), true),
    ] {
        assert_eq!(search(query.clone()).unwrap().finds(topic), found, "{query}");
    }
}

#[test]
fn a_topic_without_a_name_is_found_by_its_key_alone() {
    let topic = FoldedTopic { key: b"orders", name: b"" };
    assert!(search(json!({ "key": "orders" })).unwrap().finds(topic));
    assert!(!search(json!({ "name": "o" })).unwrap().finds(topic));
    assert!(!search(json!({ "key": "orders", "name": "o" })).unwrap().finds(topic));
}

#[test]
fn topics_are_sorted_by_creation_unless_something_is_said() {
    let orders = [OrderBy::Id, OrderBy::Key, OrderBy::CreatedAt, OrderBy::UpdatedAt];
    assert_eq!(TopicQuery::ORDERS, orders);
}

/// One row per text: a part of it, in another case.
#[test]
fn case_makes_no_difference_in_any_script() {
    for (name, part) in [
        ("Οδός Σωτήρος 1", "ΣΩΤΉΡΟΣ"),
        ("ΟΔΟΣΑ", "οδος"),
        ("ΟΔΟΣΑ", "ΟΔΟΣ"),
        ("Straße", "STRASSE"),
        ("İstanbul", "i"),
        ("ПРИВЕТ", "привет"),
    ] {
        let name = fold(name);
        let topic = FoldedTopic { key: b"", name: name.as_bytes() };
        assert!(search(json!({ "name": part })).unwrap().finds(topic), "{part} in {name}");
    }
}

proptest! {
    #[test]
    fn whatever_is_in_a_name_finds_it(parts in prop::array::uniform3("[ΣςσA-Cßİı]{1,4}|\\PC{1,8}")) {
        let name = fold(&parts.concat());
        let topic = FoldedTopic { key: b"", name: name.as_bytes() };
        for part in parts {
            let search = search(json!({ "name": part })).unwrap();
            prop_assert!(search.finds(topic));
        }
    }
}
