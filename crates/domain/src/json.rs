//! JSON from the host application: requests, and objects in them, such as payloads, custom data and
//! overrides.

mod declare;
mod leaf;
mod nesting;
mod path;
mod read;
mod refusal;
mod shape;
mod unique;
mod walk;

use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::error::{Invalid, Reason};

// With the feature `arbitrary_precision`, a number is its text, and is serialized as an object: templates would
// show that, and files would hold it.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(
    size_of::<serde_json::Number>() < size_of::<String>(),
    "Tidings needs `serde_json` without `arbitrary_precision`, which another dependency enables: \
     `cargo tree -i serde_json -e features` names it"
);

pub use read::{read, read_lenient, read_value};
pub use shape::{Shape, Shaped};

pub(crate) use declare::shape;
pub(crate) use leaf::{context_key, text_or_object, word};
pub(crate) use nesting::{depth_within, dismantle, is_nested_within, is_shallow};
pub(crate) use path::Path;
pub(crate) use read::checked;
pub(crate) use shape::{Flat, Member};
pub(crate) use walk::{Unknown, unknown};

/// Returns `true` for a default, which is not written because reading restores it.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// JSON object, nested at most [`Object::MAX_DEPTH`] levels deep.
///
/// The bound protects the stack of later walks. It also keeps stored records readable: `serde_json`
/// refuses more than 128 levels. Clones share their members.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
pub struct Object(#[serde(serialize_with = "members")] Arc<Map<String, Value>>);

impl Object {
    /// Deepest nesting.
    pub const MAX_DEPTH: usize = 64;

    /// Returns `record` as an object. Records contain objects, and so may exceed the depth of an
    /// object.
    pub(crate) fn of(record: impl Serialize) -> Self {
        match serde_json::to_value(record) {
            Ok(Value::Object(map)) => Self(Arc::new(map)),
            Ok(_) | Err(_) => Self::default(),
        }
    }

    /// Returns `value` as serialized. Refuses a value that is no object.
    ///
    /// ```
    /// # extern crate tidings_domain as tidings;
    /// use serde::Serialize;
    /// use tidings::json::Object;
    ///
    /// #[derive(Serialize)]
    /// struct Order { number: u32 }
    ///
    /// assert_eq!(Object::serialized(Order { number: 7 })?["number"], 7);
    /// assert!(Object::serialized("an order").is_err());
    /// # Ok::<(), tidings::error::Invalid>(())
    /// ```
    pub fn serialized(value: impl Serialize) -> Result<Self, Invalid> {
        let unreadable =
            |error: serde_json::Error| Reason::Unreadable { problem: error.to_string() };
        if !is_nested_within(&value, Self::MAX_DEPTH) {
            return Err(Invalid::new("object", Reason::TooDeep { max: Self::MAX_DEPTH }));
        }
        let value = serde_json::to_value(value);
        value.map_err(|error| Invalid::new("object", unreadable(error)))?.try_into()
    }

    /// Sets the member `name`. Records of the engine may exceed the depth of an object.
    pub(crate) fn insert(&mut self, name: String, value: Value) {
        Arc::make_mut(&mut self.0).insert(name, value);
    }

    /// Returns the value at a path such as `order.items.0.price`. A member with exactly this name,
    /// dots included, comes first.
    pub(crate) fn find(&self, path: &str) -> Option<&Value> {
        self.get(path).or_else(|| {
            let (first, rest) = path.split_once('.')?;
            find(self.get(first)?, rest)
        })
    }

    /// Returns the size of the object as JSON text, in bytes.
    #[doc(hidden)]
    pub fn size(&self) -> usize {
        size(&*self.0)
    }
}

/// Returns the value at a path into `value`, such as `order.items.0.price`.
pub(crate) fn find<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(value, member)
}

/// Returns the member or the item of a value that a name in a path leads to.
pub(crate) fn member<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    match value {
        Value::Object(map) => map.get(name),
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

impl Deref for Object {
    type Target = Map<String, Value>;

    fn deref(&self) -> &Map<String, Value> {
        &self.0
    }
}

impl TryFrom<Map<String, Value>> for Object {
    type Error = Invalid;

    fn try_from(map: Map<String, Value>) -> Result<Self, Invalid> {
        if map.values().all(|value| is_shallow(value, Self::MAX_DEPTH - 1)) {
            return Ok(Self(Arc::new(map)));
        }
        map.into_iter().for_each(|(_, value)| dismantle(value));
        Err(Invalid::new("object", Reason::TooDeep { max: Self::MAX_DEPTH }))
    }
}

impl TryFrom<Value> for Object {
    type Error = Invalid;

    fn try_from(value: Value) -> Result<Self, Invalid> {
        match value {
            Value::Object(map) => map.try_into(),
            other => {
                dismantle(other);
                let expected = "a JSON object";
                Err(Invalid::new("object", Reason::malformed(expected)))
            }
        }
    }
}

impl From<&Object> for Object {
    fn from(object: &Object) -> Self {
        object.clone()
    }
}

impl From<Object> for Map<String, Value> {
    fn from(object: Object) -> Self {
        Arc::unwrap_or_clone(object.0)
    }
}

impl From<Object> for Value {
    fn from(object: Object) -> Self {
        Value::Object(object.into())
    }
}

fn members<S: Serializer>(members: &Map<String, Value>, serializer: S) -> Result<S::Ok, S::Error> {
    members.serialize(serializer)
}

/// Returns the size of `value` as JSON text, in bytes.
pub(crate) fn size(value: &impl Serialize) -> usize {
    // Writing JSON into a counter cannot fail.
    let mut size = Size(0);
    serde_json::to_writer(&mut size, value).map_or(usize::MAX, |()| size.0)
}

struct Size(usize);

impl std::io::Write for Size {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn nested(levels: usize) -> Value {
        (0..levels).fold(Value::Null, |inner, _| json!({ "in": inner }))
    }

    #[test]
    fn is_nested_to_a_bound() {
        assert!(Object::try_from(nested(Object::MAX_DEPTH)).is_ok());
        let error = Object::try_from(nested(Object::MAX_DEPTH + 1)).unwrap_err();
        assert_eq!(error.reason, Reason::TooDeep { max: Object::MAX_DEPTH });
    }

    #[test]
    fn a_bottomless_value_is_refused_and_not_followed() {
        let mut value = Value::Null;
        for _ in 0..1_000_000 {
            value = Value::Array(vec![value]);
        }
        let mut map = Map::new();
        map.insert("in".into(), value);
        assert!(Object::try_from(map).is_err());
    }

    #[test]
    fn anything_else_is_refused() {
        for value in [json!(null), json!([]), json!("text"), json!(1)] {
            let error = Object::try_from(value).unwrap_err();
            assert_eq!(error.to_string(), "`object` must be a JSON object");
        }
    }

    #[test]
    fn is_measured_in_bytes_of_text() {
        let object = Object::try_from(json!({ "a": "ü" })).unwrap();
        assert_eq!(object.size(), r#"{"a":"ü"}"#.len());
    }
}
