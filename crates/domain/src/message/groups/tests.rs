use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::json::read_value;
use crate::message::MessageQuery;

const TAGS: [&str; 3] = ["a", "b", "c"];

fn values() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3).prop_map(Value::from),
        prop::sample::select(vec![0.5, 1.0, 2.0]).prop_map(Value::from),
        prop::sample::select(TAGS.to_vec()).prop_map(Value::from),
    ]
}

fn group(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    prop::collection::vec(value, 1..4).prop_map(Value::from)
}

fn groups<V: Strategy<Value = Value> + 'static>(value: fn() -> V) -> impl Strategy<Value = Value> {
    let or = move || group(value()).prop_map(|or| json!({ "or": or }));
    let and = prop::collection::vec(or(), 1..4).prop_map(|and| json!({ "and": and }));
    prop_oneof![value(), group(value()), or(), and]
}

fn tag() -> impl Strategy<Value = Value> {
    prop::sample::select(TAGS.to_vec()).prop_map(Value::from)
}

fn payloads() -> impl Strategy<Value = Value> {
    let value = prop_oneof![values(), prop::collection::vec(values(), 0..3).prop_map(Value::from)];
    prop::collection::btree_map(prop::sample::select(vec!["x", "y"]), value, 0..3).prop_map(
        |members| members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
    )
}

/// The same rule, over what is written.
fn meets(condition: &Value, is_met: &dyn Fn(&Value) -> bool) -> bool {
    match condition {
        Value::Array(values) => values.iter().any(is_met),
        Value::Object(members) => match (members.get("and"), members.get("or")) {
            (Some(and), None) => and.as_array().unwrap().iter().all(|or| meets(or, is_met)),
            (None, Some(or)) => meets(or, is_met),
            other => panic!("{other:?}"),
        },
        value => is_met(value),
    }
}

fn is_same(one: &Value, other: &Value) -> bool {
    one == other || one.is_number() && other.is_number() && one.as_f64() == other.as_f64()
}

proptest! {
    #[test]
    fn tags_are_those_of_a_plain_model(
        asked in groups(tag),
        tags in prop::collection::vec(prop::sample::select(TAGS.to_vec()), 0..3),
    ) {
        let filter: TagFilter = serde_json::from_value(asked.clone()).unwrap();
        let expected = meets(&asked, &|tag| tags.iter().any(|one| tag == one));
        let tags: Vec<String> = tags.into_iter().map(str::to_owned).collect();
        prop_assert_eq!(filter.matches(&tags), expected);
        let written = serde_json::to_value(&filter).unwrap();
        prop_assert_eq!(serde_json::from_value::<TagFilter>(written).unwrap(), filter);
    }

    #[test]
    fn data_is_that_of_a_plain_model(
        asked in prop::collection::btree_map(prop::sample::select(vec!["x", "y"]), groups(values), 0..3),
        payload in payloads(),
    ) {
        let expected = asked.iter().all(|(name, condition)| match payload.get(name) {
            None => false,
            Some(Value::Array(items)) => {
                meets(condition, &|wanted| items.iter().any(|item| is_same(item, wanted)))
            }
            Some(found) => meets(condition, &|wanted| is_same(found, wanted)),
        });
        let filter: DataFilter = serde_json::from_value(json!(asked)).unwrap();
        prop_assert!(filter.check().is_ok());
        let payload = Object::try_from(payload).unwrap();
        prop_assert_eq!(filter.matches(Some(&payload)), expected);
        prop_assert_eq!(filter.matches(None), asked.is_empty());
        let written = serde_json::to_value(&filter).unwrap();
        prop_assert_eq!(serde_json::from_value::<DataFilter>(written).unwrap(), filter);
    }

    /// Whatever a client sends is read or refused, and matches or does not.
    #[test]
    fn any_conditions_are_read_or_refused(
        value in prop_oneof![groups(values), payloads(), group(payloads())],
        payload in payloads(),
    ) {
        let asked = json!({ "tags": value, "data": { "x": value } });
        if let Ok(query) = read_value::<MessageQuery>(&asked) {
            prop_assert!(serde_json::from_value::<MessageQuery>(asked).is_ok());
            let payload = Object::try_from(payload).unwrap();
            _ = (query.check(), query.tags.matches(&[]), query.data.matches(Some(&payload)));
        }
    }
}

/// Conditions that are refused are read, too, before they are checked.
#[test]
fn what_was_read_is_written_as_itself() {
    for json in [
        json!({ "tags": { "and": [{ "or": [] }] } }),
        json!({ "tags": { "or": ["", "a"] } }),
        json!({ "tags": ["", "a"] }),
        json!({ "tags": { "and": [] } }),
        json!({ "data": { "x": [[1]], "y": { "or": [{}] }, "z": { "and": [] }, "": [] } }),
        json!({ "data": { "x": { "and": [{ "or": [[]] }] }, "y": { "or": [null] } } }),
    ] {
        let query: MessageQuery = serde_json::from_value(json.clone()).unwrap();
        let written = serde_json::to_value(&query).unwrap();
        assert_eq!(serde_json::from_value::<MessageQuery>(written).unwrap(), query, "{json}");
    }
}

#[test]
fn a_name_may_be_a_path() {
    let payload = Object::try_from(json!({ "order": { "status": ["paid"] }, "a.b": 1 })).unwrap();
    for (data, expected) in [
        (json!({ "order.status": "paid" }), true),
        (json!({ "order.status": ["open", "sent"] }), false),
        (json!({ "a.b": 1.0 }), true),
        (json!({ "order": null }), false),
        (json!({ "order.id": null }), false),
    ] {
        let filter: DataFilter = serde_json::from_value(data.clone()).unwrap();
        assert_eq!(filter.matches(Some(&payload)), expected, "{data}");
    }
}

#[test]
fn a_refusal_names_the_field() {
    let of = |count: usize| (0..count).map(|number| number.to_string()).collect::<Vec<_>>();
    let or = |counts: &[usize]| json!({ "and": counts.iter().map(|count| json!({ "or": of(*count) })).collect::<Vec<_>>() });
    let long = "x".repeat(257);
    for (query, expected) in [
        (json!({ "tags": of(101) }), "`tags` must have at most 100 items"),
        (json!({ "tags": or(&[1; 31]) }), "`tags.and` must have at most 30 items"),
        (json!({ "tags": or(&[1, 101]) }), "`tags.and[1].or` must have at most 100 items"),
        (json!({ "tags": or(&[100, 100, 1]) }), "`tags` must have at most 200 items"),
        (json!({ "tags": or(&[]) }), "`tags` must not be empty"),
        (json!({ "tags": or(&[1, 0]) }), "`tags.and[1].or` must not be empty"),
        (json!({ "tags": [or(&[1])] }), "`tags` must be a list of texts, or groups of them"),
        (json!({ "tags": { "and": ["a"] } }), "`tags.and[0]` must be an object"),
        (json!({ "tags": { "xor": ["a"] } }), "`tags.xor` is not known; did you mean `or`?"),
        (json!({ "data": "x" }), "`data` must be an object"),
        (json!({ "data": { "x": [] } }), "`data.x` must not be empty"),
        (json!({ "data": { "x": or(&[]) } }), "`data.x` must not be empty"),
        (json!({ "data": { "x": or(&[1; 31]) } }), "`data.x.and` must have at most 30 items"),
        (json!({ "data": { "x": of(101) } }), "`data.x` must have at most 100 items"),
        (json!({ "data": { "x": of(100), "y": of(101) } }), "`data` must have at most 200 items"),
        (json!({ "data": { "x": [long] } }), "`data.x` must be at most 256 characters long"),
        (
            json!({ "data": { "x": [[1]] } }),
            "`data.x` must be a text, a number, `true`, `false`, `null`, or a group of these",
        ),
        (
            json!({ "data": { "$x": 1 } }),
            "`data.$x` must be under a name that does not start with `$` or `.`",
        ),
        (
            json!({ "createdGte": "2030-01-02T00:00:00Z", "createdLte": "2030-01-01T00:00:00Z" }),
            "`createdGte` must not come after `createdLte`",
        ),
    ] {
        let read = read_value::<MessageQuery>(&query);
        let refused = read.and_then(|query| query.check()).unwrap_err();
        assert_eq!(refused.to_string(), expected, "{query}");
    }
}
