//! Contexts: the setting of a notification, such as a tenant or an app.

mod compose;
mod key;
mod named;

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::environment::Home;
use crate::error::{Invalid, Reason, Unit};
use crate::ids::{ContextId, EnvironmentId, OrganizationId};
use crate::json::{Object, Path, Shape, Shaped, shape};
use crate::page::{OrderBy, PageQuery};
use crate::query;
use crate::time::{Dated, Timestamp, dated};

pub use key::{ContextFilter, ContextKey, ContextPart, ContextSet};
#[doc(hidden)]
pub use named::{ContextChange, NamedContext};

/// Context with its data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Context {
    /// Id given by the engine.
    #[serde(rename = "_id")]
    pub id: ContextId,
    /// Organization of the context.
    #[serde(rename = "_organizationId")]
    pub organization_id: OrganizationId,
    /// Environment of the context.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// Key: type and id.
    #[serde(flatten)]
    pub key: ContextKey,
    /// Data for templates and conditions.
    pub data: Object,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the last change of the data.
    pub updated_at: Timestamp,
}

/// New context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ContextCreate {
    /// Key: type and id.
    #[serde(flatten)]
    pub key: ContextKey,
    /// Data for templates and conditions: at most 64 KiB of JSON text.
    #[serde(default)]
    pub data: Object,
}

shape! { ContextCreate { "data": data; key } }

/// Update of a context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ContextUpdate {
    /// Data that replaces the stored data: at most 64 KiB of JSON text.
    pub data: Object,
}

shape! { ContextUpdate { "data": data } }

/// Query of contexts. A context must meet every condition that is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ContextQuery {
    /// Page of the list.
    #[serde(flatten)]
    pub page: PageQuery,
    /// Type of the context.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<ContextPart>,
    /// Id of the context, with any type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<ContextPart>,
}

shape! { ContextQuery { "type": kind, "id": id; page by ContextQuery::ORDERS } }

/// Contexts of a call: an id for each type, with optional data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ContextPayload(pub BTreeMap<String, ContextValue>);

/// Context of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum ContextValue {
    /// Id alone.
    Id(String),
    /// Id and data.
    Rich(RichContext),
}

impl Shaped for ContextPayload {
    fn shape() -> Shape {
        BTreeMap::<String, ContextValue>::shape()
    }
}

impl Shaped for ContextValue {
    fn shape() -> Shape {
        Shape::choice(|value| match value {
            Value::Object(_) => RichContext::shape(),
            _ => Shape::leaf(|value| {
                value.as_str().map(drop).ok_or_else(|| {
                    Invalid::new("context", Reason::malformed("a text or an object"))
                })
            }),
        })
    }
}

/// Id and data of a context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RichContext {
    /// Id, unique within its type.
    pub id: String,
    /// Data of a context that the call creates. A trigger replaces the stored data with it, and other
    /// calls leave the data of a context that is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Object>,
}

shape! { RichContext { "id": id, "data": data } }

dated! { Context }

impl Context {
    /// Maximum size of the data as JSON text, in bytes.
    pub const MAX_DATA: usize = 64 * 1024;

    /// Returns a new context.
    #[doc(hidden)]
    pub fn new(id: ContextId, home: &Home, key: ContextKey, data: Object, now: Timestamp) -> Self {
        Self {
            id,
            organization_id: home.organization_id.clone(),
            environment_id: home.environment_id,
            key,
            data,
            created_at: now,
            updated_at: now,
        }
    }

    /// Returns the context with `data` in place of its own. Equal data changes nothing, not even
    /// the time.
    #[doc(hidden)]
    #[must_use]
    pub fn with_data(&self, data: Object, now: Timestamp) -> Self {
        Self { data, ..self.clone() }.changed_from(self, now)
    }

    /// Refuses data of more than 64 KiB.
    #[doc(hidden)]
    pub fn check_data(data: &Object) -> Result<(), Invalid> {
        if data.size() > Self::MAX_DATA {
            let reason = Reason::TooLong { max: Self::MAX_DATA, unit: Unit::Bytes };
            return Err(Invalid::new("data", reason));
        }
        Ok(())
    }
}

impl ContextQuery {
    /// Fields that the list can be sorted by.
    #[doc(hidden)]
    pub const ORDERS: &[OrderBy] = &[OrderBy::CreatedAt, OrderBy::UpdatedAt, OrderBy::Id];

    /// Returns `true` if the query excludes contexts of its type.
    #[doc(hidden)]
    pub fn is_filtered(&self) -> bool {
        self.id.is_some()
    }

    /// Returns `true` if `context` meets the conditions.
    #[doc(hidden)]
    pub fn matches(&self, context: &Context) -> bool {
        self.kind.as_ref().is_none_or(|kind| context.key.kind() == kind.as_str())
            && self.id.as_ref().is_none_or(|id| context.key.id() == id.as_str())
    }
}

impl ContextPayload {
    /// Maximum number of contexts in a call.
    pub const MAX: usize = 5;

    /// Returns the refusal of a second context of the type `kind`.
    pub(crate) fn repeated(kind: &str) -> Invalid {
        Invalid::new(format!("context.{kind}"), Reason::Repeated)
    }

    /// Checks the contexts, 1 to 5 of them. Returns them in the order of types.
    #[doc(hidden)]
    pub fn check(&self) -> Result<Vec<NamedContext>, Invalid> {
        match self.0.len() {
            0 => Err(Invalid::new("context", Reason::Empty)),
            1..=Self::MAX => self.0.iter().map(|(kind, value)| value.check(kind)).collect(),
            _ => Err(Invalid::new("context", Reason::TooMany { max: Self::MAX })),
        }
    }
}

impl ContextValue {
    fn check(&self, kind: &str) -> Result<NamedContext, Invalid> {
        let context = Path::Member(&Path::Whole, "context");
        let path = Path::Member(&context, kind);
        let (id, place, data) = match self {
            ContextValue::Id(id) => (id, path, None),
            ContextValue::Rich(RichContext { id, data }) => {
                (id, Path::Member(&path, "id"), data.clone())
            }
        };
        ContextPart::new(kind).map_err(|_| {
            let expected = "under a type of 1 to 100 letters, digits, `_` and `-`";
            Invalid::new(path.named(), Reason::malformed(expected))
        })?;
        let key = ContextKey::new(kind, id).map_err(|invalid| invalid.named(place.named()))?;
        if let Some(data) = &data {
            Context::check_data(data).map_err(|invalid| invalid.within(path))?;
        }
        Ok(NamedContext { key, data })
    }
}

// The derived error of an untagged enum does not name the fault.
impl<'de> Deserialize<'de> for ContextValue {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Value::deserialize(from)? {
            Value::String(id) => Ok(ContextValue::Id(id)),
            rich => query::fields(rich).map(ContextValue::Rich),
        }
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for ContextPayload {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let value = |(kind, id): (K, V)| (kind.into(), ContextValue::Id(id.into()));
        Self(pairs.into_iter().map(value).collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::sample;
    use crate::trigger::Trigger;

    #[test]
    fn a_set_knows_no_order_and_no_repetition() {
        let set = |keys: &[&str]| {
            ContextSet::try_from(keys.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap()
        };
        assert_eq!(set(&["b:2", "a:1"]), set(&["a:1", "b:2", "a:1"]));
        assert_eq!(set(&["b:2", "a:1"]).canonical(), "a:1,b:2");
        assert_eq!(set(&[""]), ContextSet::default());
    }

    #[test]
    fn a_key_has_two_plain_halves() {
        assert_eq!("tenant:acme-1".parse::<ContextKey>().unwrap().to_string(), "tenant:acme-1");
        for bad in
            ["tenant", "a:b:c", ":x", "x:", "a.b:c", "ä:b", &format!("t:{}", "x".repeat(101))]
        {
            assert!(bad.parse::<ContextKey>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_payload_has_one_context_of_a_type() {
        let payload = ContextPayload::default().with("tenant", "acme").unwrap();
        for again in ["acme", "umbrella"] {
            let refused = payload.clone().with("tenant", again).unwrap_err();
            assert_eq!(refused.to_string(), "`context.tenant` must not be given twice");
        }
        let trigger = Trigger::new("hello", "ada").unwrap().context("tenant", "acme").unwrap();
        let refused = trigger.context("tenant", RichContext::new("umbrella")).unwrap_err();
        assert_eq!(refused.to_string(), "`context.tenant` must not be given twice");
    }

    #[test]
    fn a_new_context_is_refused_under_the_names_of_its_request() {
        for (kind, id, field) in [("a b", "x", "type"), ("x", "a b", "id")] {
            assert_eq!(ContextCreate::new(kind, id).unwrap_err().field, field);
        }
    }

    #[test]
    fn a_payload_names_one_to_five_contexts() {
        let payload = |json| serde_json::from_value::<ContextPayload>(json).unwrap().check();
        let named = payload(json!({ "tenant": "acme", "app": { "id": "x", "data": { "a": 1 } } }));
        let keys: Vec<_> = named.unwrap().iter().map(|named| named.key.to_string()).collect();
        assert_eq!(keys, ["app:x", "tenant:acme"]);

        let six: serde_json::Map<_, _> = (0..6).map(|n| (format!("t{n}"), json!("x"))).collect();
        for bad in [json!({}), json!(six), json!({ "a:b": "c" }), json!({ "a": "b c" })] {
            assert!(payload(bad.clone()).is_err(), "{bad}");
        }
        let data = json!({ "text": "x".repeat(Context::MAX_DATA) });
        assert!(payload(json!({ "a": { "id": "b", "data": data } })).is_err());
    }

    fn context(data: Object) -> Context {
        let key = "tenant:acme".parse().unwrap();
        Context::new(sample::id(7), &sample::home(), key, data, sample::at(1))
    }

    #[test]
    fn new_data_takes_the_place_of_the_old() {
        let before = context(sample::object(json!({ "a": 1, "b": 2 })));
        let data = sample::object(json!({ "a": 1 }));
        let after = before.with_data(data.clone(), sample::at(9));
        assert_eq!(after, Context { data, updated_at: sample::at(9), ..before.clone() });
        assert_eq!(before.with_data(before.data.clone(), sample::at(9)), before, "nor the date");
    }

    #[test]
    fn data_takes_64_kib_at_most() {
        let around = r#"{"a":""}"#.len();
        let check = |size: usize| {
            let data = sample::object(json!({ "a": "x".repeat(size - around) }));
            Context::check_data(&data).map_err(|invalid| invalid.to_string())
        };
        assert_eq!(check(65_536), Ok(()));
        assert_eq!(check(65_537), Err("`data` must be at most 65536 bytes long".into()));
    }

    /// One row per filter on the wire: which contexts are shown.
    #[test]
    fn a_filter_asks_for_anything_or_for_nothing_or_for_a_set() {
        #[derive(Deserialize)]
        struct Query {
            #[serde(default)]
            keys: ContextFilter,
        }
        let set = |keys: &[&str]| keys.iter().map(|key| key.parse().unwrap()).collect();
        let (none, one, two) = (set(&[]), set(&["a:1"]), set(&["a:1", "b:2"]));
        for (query, shown) in [
            (json!({}), [true, true, true]),
            (json!({ "keys": null }), [true, true, true]),
            (json!({ "keys": [] }), [true, false, false]),
            (json!({ "keys": "" }), [true, false, false]),
            (json!({ "keys": [""] }), [true, false, false]),
            (json!({ "keys": "a:1" }), [false, true, false]),
            (json!({ "keys": ["a:1", "a:1"] }), [false, true, false]),
            (json!({ "keys": ["b:2", "a:1"] }), [false, false, true]),
            (json!({ "keys": ["b:2"] }), [false, false, false]),
        ] {
            let Query { keys } = serde_json::from_value(query.clone()).unwrap();
            assert_eq!([&none, &one, &two].map(|set| keys.matches(set)), shown, "{query}");
            assert_eq!(keys.is_any(), shown == [true; 3]);
        }
        let error = serde_json::from_value::<ContextFilter>(json!(["a"])).unwrap_err();
        assert_eq!(error.to_string(), "`contextKeys` must be `type:id`");
    }

    #[test]
    fn a_query_shows_what_fulfils_all_of_it() {
        let context = context(Object::default());
        for (query, matches, filtered) in [
            (json!({}), true, false),
            (json!({ "type": "tenant" }), true, false),
            (json!({ "type": "app" }), false, false),
            (json!({ "id": "acme" }), true, true),
            (json!({ "id": "acm" }), false, true),
            (json!({ "type": "tenant", "id": "acme" }), true, true),
            (json!({ "type": "app", "id": "acme" }), false, true),
        ] {
            let query: ContextQuery = serde_json::from_value(query).unwrap();
            assert_eq!(
                (query.matches(&context), query.is_filtered()),
                (matches, filtered),
                "{query:?}"
            );
        }
    }

    #[test]
    fn what_is_wrong_with_a_request_is_said() {
        for (json, problem) in [
            (json!({ "id": "acme" }), "missing field `type`"),
            (json!({ "type": "tenant" }), "missing field `id`"),
            (json!({ "type": "a.b", "id": "acme" }), "must be 1 to 100 letters, digits"),
            (json!({ "type": "tenant", "id": "acme", "data": 1 }), "invalid type: integer `1`"),
        ] {
            let error = serde_json::from_value::<ContextCreate>(json).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
        let error = serde_json::from_value::<ContextUpdate>(json!({})).unwrap_err();
        assert_eq!(error.to_string(), "missing field `data`");
    }

    proptest! {
        #[test]
        fn a_set_has_one_text(
            keys in prop::collection::vec("[ab]:[ab]{1,2}", 0..4),
            others in prop::collection::vec("[ab]:[ab]{1,2}", 0..4),
        ) {
            let set = |keys: &[String]| ContextSet::try_from(keys.to_vec()).unwrap();
            let (one, other) = (set(&keys), set(&others));
            prop_assert_eq!(one == other, one.canonical() == other.canonical());
            prop_assert_eq!(set(&Vec::from(one.clone())), one.clone());
            prop_assert_eq!(ContextFilter::Exact(one.clone()).matches(&other), one == other);
        }
    }
}
