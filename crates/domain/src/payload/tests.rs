use serde_json::{Value, json};

use super::*;
use crate::sample::object;

fn new(schema: Value) -> PayloadSchema {
    PayloadSchema::new(object(schema))
}

fn schema() -> PayloadSchema {
    new(json!({
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
    let refused =
        |payload: Value| schema().check_payload(&object(payload)).unwrap_err().to_string();
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
        schema().check_payload(&object(json!({ "order": { "id": "A-1" }, "items": [1] }))),
        Ok(())
    );
}

#[test]
fn a_schema_is_one_and_needs_no_other_document() {
    assert_eq!(schema().check(), Ok(()));
    for none in [
        json!({ "type": "objekt" }),
        json!({ "$ref": "https://example.org/schema.json" }),
        json!({ "$ref": "file:///etc/schema.json" }),
        json!({ "properties": { "a": { "pattern": "(" } } }),
    ] {
        let error = new(none.clone()).check().unwrap_err();
        assert_eq!(error.field, "payloadSchema", "{none:.100}");
    }
    let large = new(json!({ "description": "x".repeat(Workflow::MAX_PAYLOAD_SCHEMA) }));
    assert_eq!(
        large.check().unwrap_err().to_string(),
        "`payloadSchema` must be at most 65536 bytes long, not 65554"
    );
}

#[test]
fn a_schema_that_refers_to_itself_is_followed_as_far_as_the_payload_goes() {
    let list = new(json!({ "properties": { "next": { "$ref": "#" } }, "maxProperties": 1 }));
    let deepest = (1..Object::MAX_DEPTH).fold(json!({}), |inner, _| json!({ "next": inner }));
    assert_eq!(list.check_payload(&object(deepest)), Ok(()));
    let error = list.check_payload(&object(json!({ "next": { "a": 1, "b": 2 } }))).unwrap_err();
    assert_eq!(error.field, "payload.next");
}

#[test]
fn a_schema_is_compiled_once_and_clones_share_it() {
    let schema = schema();
    schema.check().unwrap();
    assert!(!schema.prepared.is_compiled());
    let refused = |schema: &PayloadSchema| schema.check_payload(&object(json!({}))).unwrap_err();
    let first = refused(&schema);
    assert!(schema.prepared.is_compiled());
    let clone = schema.clone();
    assert!(clone.prepared.is_compiled());
    assert_eq!((refused(&schema), refused(&clone)), (first.clone(), first));
}

#[test]
fn a_schema_equals_its_json() {
    let (used, text) = (schema(), serde_json::to_string(&schema()).unwrap());
    used.check_payload(&object(json!({ "order": { "id": "A-1" } }))).unwrap();
    assert_eq!(used, serde_json::from_str(&text).unwrap());
    assert_eq!(serde_json::to_string(&used).unwrap(), text);
    assert_ne!(used, new(json!({})));
}

#[test]
fn a_stored_object_that_is_no_schema_refuses_each_payload() {
    let none: PayloadSchema = serde_json::from_value(json!({ "type": "objekt" })).unwrap();
    for _ in 0..2 {
        assert_eq!(none.check_payload(&object(json!({}))).unwrap_err().field, "payloadSchema");
        assert!(!none.prepared.is_compiled());
    }
}

/// Schemas that refer twice to the next one would take days to compile.
#[test]
fn references_that_are_followed_are_bounded() {
    let to = |uri: &str| json!({ "$ref": uri });
    let several = |count: usize| {
        // 99 references lead to 99 others, which count once more where they are.
        let mut all = vec![to("#/$defs/b"); 99];
        all.extend(vec![to("#/$defs/c"); count - 9_999]);
        let b = json!({ "anyOf": vec![to("#/$defs/c"); 99] });
        new(json!({ "anyOf": all, "$defs": { "b": b, "c": {} } }))
    };
    several(Workflow::MAX_SCHEMA_REFERENCES).check().unwrap();
    let refused = several(Workflow::MAX_SCHEMA_REFERENCES + 1);
    for refused in [refused.check(), refused.check_payload(&object(json!({})))] {
        let refused = refused.unwrap_err();
        assert_eq!(refused.field, "payloadSchema");
    }

    let chain = |length: usize, times: usize, name: fn(usize) -> String, anchored: bool| {
        let mut defs = serde_json::Map::new();
        for number in 0..=length {
            let next = vec![to(&name(number + 1)); if number < length { times } else { 0 }];
            let mut schema = json!({ "allOf": next });
            if next.is_empty() {
                schema = json!({ "type": "string" });
            }
            if anchored {
                schema["$anchor"] = json!(format!("a{number}"));
            }
            defs.insert(format!("a{number}"), schema);
        }
        new(json!({ "properties": { "x": to(&name(0)) }, "$defs": defs })).check()
    };
    let by_pointer = |number: usize| format!("#/$defs/a{number}");
    let by_name = |number: usize| format!("#a{number}");
    for (name, anchored) in
        [(by_pointer as fn(usize) -> String, false), (by_name as fn(usize) -> String, true)]
    {
        assert!(chain(8, 2, name, anchored).is_ok());
        assert!(chain(60, 1, name, anchored).is_ok());
        for (length, times) in [(20, 2), (100, 2), (500, 2), (100, 1), (1_000, 1)] {
            assert!(chain(length, times, name, anchored).is_err(), "{length} {times}");
        }
    }
}

/// The ways through such definitions would take days for one number.
#[test]
fn references_lead_back_to_themselves_in_values_only() {
    let all = |keyword: fn(Vec<Value>) -> Value| {
        let schema = |one: usize| {
            let others = (0..7).filter(|other| *other != one);
            keyword(others.map(|other| json!({ "$ref": format!("#/$defs/v{other}") })).collect())
        };
        let defs: serde_json::Map<_, _> =
            (0..7).map(|one| (format!("v{one}"), schema(one))).collect();
        new(json!({ "$defs": defs, "properties": { "x": { "$ref": "#/$defs/v0" } } }))
    };
    let endless = all(|others| json!({ "allOf": others }));
    let payload = object(json!({ "x": 1 }));
    for refused in [endless.check(), endless.check_payload(&payload)] {
        assert_eq!(
            refused.unwrap_err().to_string(),
            "`payloadSchema` does not match the schema: a reference leads back to itself without a step into the payload"
        );
    }
    let sound = all(
        |others| json!({ "allOf": others.iter().map(|one| json!({ "items": one })).collect::<Vec<_>>() }),
    );
    sound.check().unwrap();
    sound.check_payload(&payload).unwrap();
}
