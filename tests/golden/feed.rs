//! The answers of the feeds of inboxes, which the specification does not have.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};
use testkit::world::World;
use tidings::message::{Changes, MessageQuery};

fn read(file: &str) -> Value {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/feed");
    let text = fs::read_to_string(format!("{folder}/{file}.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn names(object: &Value) -> BTreeSet<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn what_is_read_is_written_again() {
    for file in ["changes", "reset"] {
        let json = read(file);
        let changes: Changes = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(serde_json::to_value(&changes).unwrap(), json, "{file}");
    }
}

/// Each part of an answer has the names that it has in the files, and each kind of it is there.
#[test]
fn an_inbox_answers_as_in_the_files() {
    let world = World::in_memory();
    world.in_app_workflow("hi");
    let inbox = world.env.inbox("ada").unwrap();
    world.notify("hi", "ada");
    let start = inbox.cursor().unwrap();
    world.notify("hi", "ada");
    let messages = inbox.list(&MessageQuery::default()).unwrap().data;
    inbox.delete([messages[1].id]).unwrap();

    let answer = serde_json::to_value(inbox.changes_since(&start).unwrap()).unwrap();
    let golden = read("changes");
    assert_eq!(names(&answer), names(&golden));
    assert_eq!(names(&answer["counts"]), names(&golden["counts"]));
    assert_eq!(answer["counts"], json!({ "unseen": 1, "unread": 1 }));
    for (change, golden) in [
        (&answer["changes"][0], &golden["changes"][0]),
        (&answer["changes"][1], &golden["changes"][1]),
    ] {
        assert_eq!((names(change), &change["type"]), (names(golden), &golden["type"]));
    }
    assert_eq!(answer["changes"][0]["message"], serde_json::to_value(&messages[0]).unwrap());
    assert_eq!(answer["changes"][1]["messageId"], json!(messages[1].id));

    // A cursor that is ahead is of another copy of the store.
    let ahead = inbox.cursor().unwrap();
    let other = World::in_memory();
    other.in_app_workflow("hi");
    other.notify("hi", "ada");
    let reset = other.env.inbox("ada").unwrap().changes_since(&ahead).unwrap();
    let reset = serde_json::to_value(reset).unwrap();
    assert_eq!((names(&reset), &reset["type"]), (names(&read("reset")), &json!("reset")));
}
