use serde_json::{Value, json};

use super::*;
use crate::sample::object;

fn schema() -> Object {
    object(json!({
        "type": "object",
        "properties": {
            "order": {
                "type": "object",
                "properties": { "id": { "type": "string", "pattern": "^A-[0-9]+$" } },
                "required": ["id"],
            },
            "items": { "type": "array", "items": { "type": "number", "minimum": 1 } },
        },
        "required": ["order"],
        "additionalProperties": false,
    }))
}

#[test]
fn a_payload_is_checked_with_the_way_to_the_field() {
    let refused = |payload: Value| check(&schema(), &object(payload)).unwrap_err().to_string();
    for (payload, refusal) in [
        (json!({}), "`payload.order` is required"),
        (json!({ "order": {} }), "`payload.order.id` is required"),
        (
            json!({ "order": { "id": 5 } }),
            "`payload.order.id` does not match the schema: value is not of type \"string\"",
        ),
        (
            json!({ "order": { "id": "A-1" }, "items": [1, 0] }),
            "`payload.items[1]` does not match the schema: value is less than the minimum of 1",
        ),
        (
            json!({ "order": { "id": "B" } }),
            "`payload.order.id` does not match the schema: value does not match \"^A-[0-9]+$\"",
        ),
    ] {
        assert_eq!(refused(payload), refusal);
    }
    let more = refused(json!({ "order": { "id": "A-1" }, "more": 1 }));
    assert!(more.starts_with("`payload` does not match the schema: "), "{more}");
    assert_eq!(
        check(&schema(), &object(json!({ "order": { "id": "A-1" }, "items": [1] }))),
        Ok(())
    );
}

#[test]
fn a_schema_is_one_and_needs_no_other_document() {
    assert_eq!(check_schema(&schema()), Ok(()));
    for none in [
        json!({ "type": "objekt" }),
        json!({ "$ref": "https://example.org/schema.json" }),
        json!({ "$ref": "file:///etc/schema.json" }),
        json!({ "properties": { "a": { "pattern": "(" } } }),
    ] {
        let error = check_schema(&object(none.clone())).unwrap_err();
        assert_eq!(error.field, "payloadSchema", "{none:.100}");
    }
    let large = object(json!({ "description": "x".repeat(Workflow::MAX_PAYLOAD_SCHEMA) }));
    assert_eq!(
        check_schema(&large).unwrap_err().to_string(),
        "`payloadSchema` must be at most 65536 bytes long, not 65554"
    );
}

#[test]
fn a_schema_that_refers_to_itself_is_followed_as_far_as_the_payload_goes() {
    let list = object(json!({ "properties": { "next": { "$ref": "#" } }, "maxProperties": 1 }));
    let deepest = (1..Object::MAX_DEPTH).fold(json!({}), |inner, _| json!({ "next": inner }));
    assert_eq!(check(&list, &object(deepest)), Ok(()));
    let error = check(&list, &object(json!({ "next": { "a": 1, "b": 2 } }))).unwrap_err();
    assert_eq!(error.field, "payload.next");
}
