//! Reading of requests.

use serde::de::DeserializeSeed;
use serde_json::{Deserializer, Value};

use super::nesting::is_shallow;
use super::path::{BODY, Path};
use super::shape::Shaped;
use super::unique::Unique;
use super::walk::{Look, Unknown};
use super::{Object, refusal};
use crate::error::{Invalid, Reason};

/// Reads a request from JSON text. A refusal names the path of the field. Unknown and repeated
/// members are refused.
///
/// `serde_json::from_slice`, `serde_json::from_value` and extractors that are based on them, such as
/// `axum::Json`, ignore unknown members: a misspelled field is lost. A service takes the bytes of a body
/// and calls this function, or takes a JSON value and calls [`read_value`].
///
/// # Errors
///
/// [`Invalid`], with the path of the first field that cannot be read.
///
/// ```
/// # extern crate tidings_domain as tidings;
/// use tidings::json::read;
/// use tidings::preference::WorkflowPreferenceUpdates;
///
/// let body = br#"{ "preferences": [{ "workflowId": "w", "channels": { "emial": false } }] }"#;
/// let refused = read::<WorkflowPreferenceUpdates>(body).unwrap_err();
/// let expected = "`preferences[0].channels.emial` is not known; did you mean `email`?";
/// assert_eq!(refused.to_string(), expected);
/// ```
pub fn read<T: Shaped>(json: &[u8]) -> Result<T, Invalid> {
    checked(&parse(json)?, Unknown::Refused)
}

/// Reads a request from a JSON value as [`read`] does. A value has no repeated members.
///
/// # Errors
///
/// [`Invalid`], with the path of the first field that cannot be read, or if the value is nested deeper
/// than JSON text may be.
///
/// ```
/// # extern crate tidings_domain as tidings;
/// use serde_json::json;
/// use tidings::json::read_value;
/// use tidings::trigger::Trigger;
///
/// let trigger = json!({ "name": "order-shipped", "to": "ada", "transactionID": "shipped-4711" });
/// let refused = read_value::<Trigger>(&trigger).unwrap_err();
/// let expected = "`transactionID` is not known; did you mean `transactionId`?";
/// assert_eq!(refused.to_string(), expected);
/// ```
pub fn read_value<T: Shaped>(json: &Value) -> Result<T, Invalid> {
    // The limit of the reader of texts. A record holds objects, and so may exceed the depth of one.
    let max = 2 * Object::MAX_DEPTH;
    if !is_shallow(json, max) {
        return Err(Invalid::new(BODY, Reason::TooDeep { max }));
    }
    checked(json, Unknown::Refused)
}

/// Reads a request as [`read`] does, but ignores unknown members: for a server with newer clients.
///
/// # Errors
///
/// As [`read`].
///
/// ```
/// # extern crate tidings_domain as tidings;
/// use tidings::json::{read, read_lenient};
/// use tidings::topic::TopicCreate;
///
/// let body = br#"{ "key": "news", "color": "red" }"#;
/// assert!(read::<TopicCreate>(body).is_err());
/// assert_eq!(read_lenient::<TopicCreate>(body).unwrap().key.as_str(), "news");
/// ```
pub fn read_lenient<T: Shaped>(json: &[u8]) -> Result<T, Invalid> {
    checked(&parse(json)?, Unknown::Ignored)
}

/// Reads a request from a JSON value whose depth is bounded.
pub(crate) fn checked<T: Shaped>(value: &Value, unknown: Unknown) -> Result<T, Invalid> {
    Look::Form(unknown).at(T::shape(), value, &Path::Whole)?;
    T::deserialize(value).map_err(|error| {
        let found = Look::Values.at(T::shape(), value, &Path::Whole);
        found.err().unwrap_or_else(|| refusal::of(&Path::Whole, &error))
    })
}

fn parse(json: &[u8]) -> Result<Value, Invalid> {
    let mut repeated = None;
    let mut from = Deserializer::from_slice(json);
    let value = Unique { path: Path::Whole, repeated: &mut repeated }.deserialize(&mut from);
    value.and_then(|value| from.end().map(|()| value)).map_err(|error| {
        let problem = error.to_string();
        repeated.unwrap_or_else(|| Invalid::new(BODY, Reason::Unreadable { problem }))
    })
}

#[cfg(test)]
mod tests;
