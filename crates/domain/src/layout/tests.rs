use serde_json::{Value, json};

use super::*;
use crate::sample;

fn upsert(changes: Value) -> LayoutUpsert {
    let mut json = json!({ "layoutId": "frame", "name": "Frame" });
    for (name, value) in sample::object(changes).iter() {
        json[name] = value.clone();
    }
    serde_json::from_value(json).unwrap()
}

fn layout(changes: Value) -> Layout {
    Layout::new(sample::id(8), &sample::home(), upsert(changes), sample::at(1))
}

#[test]
fn a_name_has_1_to_128_characters() {
    for (name, problem) in [
        ("x".into(), None),
        ("ü".repeat(128), None),
        (String::new(), Some("`name` must not be empty")),
        ("x".repeat(129), Some("`name` must be at most 128 characters long")),
    ] {
        let error = upsert(json!({ "name": name })).check().err();
        assert_eq!(error.map(|invalid| invalid.to_string()).as_deref(), problem);
    }
}

#[test]
fn a_new_one_is_not_translated_unless_that_is_said() {
    assert!(!layout(json!({})).is_translation_enabled);
    assert!(layout(json!({ "isTranslationEnabled": true })).is_translation_enabled);
    assert_eq!(layout(json!({})).identifier.as_str(), "frame");
    assert_eq!(layout(json!({})).created_at, sample::at(1));
}

#[test]
fn an_upsert_changes_what_it_names() {
    let on = json!({ "isTranslationEnabled": true });
    let before = layout(on.clone());
    let later = Layout { updated_at: sample::at(9), ..before.clone() };
    for (upserted, expected) in [
        (json!({}), before.clone()),
        (on, before.clone()),
        (json!({ "name": "New" }), Layout { name: "New".into(), ..later.clone() }),
        (
            json!({ "isTranslationEnabled": false }),
            Layout { is_translation_enabled: false, ..later },
        ),
    ] {
        assert_eq!(before.updated(upsert(upserted), sample::at(9)), expected);
    }
}

#[test]
fn an_upsert_keeps_a_body_sets_it_or_removes_it() {
    let frame = "<b>{{ content }}</b>";
    let before = layout(json!({ "body": frame }));
    let body = |upsert: LayoutUpsert| {
        let after = before.updated(upsert, sample::at(9));
        after.body.map(|body| body.as_str().to_owned())
    };
    assert_eq!(body(upsert(json!({}))).as_deref(), Some(frame));
    let new = "<i>{{ content }}</i>";
    assert_eq!(body(upsert(json!({ "body": new }))).as_deref(), Some(new));
    assert_eq!(body(upsert(json!({ "body": null }))), None);
    assert_eq!(body(upsert(json!({})).clear_body()), None);
    assert_eq!(layout(json!({ "body": null })).body, None);
}

/// What is not cleared is not kept silently.
#[test]
fn null_in_place_of_a_flag_is_refused() {
    for name in ["isDefault", "isTranslationEnabled"] {
        let json = json!({ "layoutId": "frame", "name": "Frame", name: null });
        let refused = crate::json::read_value::<LayoutUpsert>(&json).unwrap_err().to_string();
        assert_eq!(refused, format!("`{name}` must be a value: leave it out to keep it"));
    }
}

#[test]
fn what_is_not_translated_any_more_says_so_once() {
    let before = layout(json!({ "isTranslationEnabled": true }));
    let after = before.untranslated(sample::at(9));
    let (is_translation_enabled, updated_at) = (false, sample::at(9));
    assert_eq!(after, Layout { is_translation_enabled, updated_at, ..before });
    assert_eq!(after.untranslated(sample::at(99)), after);
}

#[test]
fn a_query_shows_those_that_are_translated_or_those_that_are_not() {
    let (on, off) = (layout(json!({ "isTranslationEnabled": true })), layout(json!({})));
    for (query, filtered, shown) in [
        (json!({}), false, [true, true]),
        (json!({ "isTranslationEnabled": true }), true, [true, false]),
        (json!({ "isTranslationEnabled": "false" }), true, [false, true]),
    ] {
        let query: LayoutQuery = serde_json::from_value(query).unwrap();
        assert_eq!(query.is_filtered(), filtered);
        assert_eq!([query.matches(&on), query.matches(&off)], shown);
    }
}
