//! Queries of lists, read from JSON or from a query string.
//!
//! A query string consists of texts. So a number may be written in digits, and a flag as `true` or
//! `false`. A list with one item may be the item. An empty field of a form counts as absent, and so does an
//! empty text by which a list is searched. In JSON, an empty text in place of an id, a word, a time or a
//! number is refused: a call on all that match would take it for no filter. In a list of texts it is an
//! item, which nothing matches. For a context filter it is the empty set.

mod emptied;
mod read;

use std::fmt::Display;
use std::str::FromStr;

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

pub(crate) use emptied::{Emptied, write_unless_emptied};
pub use read::{read, read_lenient};

/// Reads a text by which a list is searched. `null` and an empty text count as absent.
pub(crate) fn search<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<String>::deserialize(from)?.filter(|text| !text.is_empty()))
}

/// Reads a number or a flag, or its text. `null` counts as absent.
pub(crate) fn value<'de, D: Deserializer<'de>, T>(from: D) -> Result<T, D::Error>
where
    T: Default + DeserializeOwned + FromStr<Err: Display>,
{
    optional(from).map(Option::unwrap_or_default)
}

/// Reads an optional number or flag, or its text. `null` counts as absent.
pub(crate) fn optional<'de, D: Deserializer<'de>, T>(from: D) -> Result<Option<T>, D::Error>
where
    T: DeserializeOwned + FromStr<Err: Display>,
{
    Option::<Value>::deserialize(from)?.map(value_or_text).transpose()
}

/// Reads a list, or its only item. `null` counts as absent.
pub(crate) fn one_or_many<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    from: D,
) -> Result<Vec<T>, D::Error> {
    match Value::deserialize(from)? {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) => items.into_iter().map(T::deserialize).collect(),
        item => T::deserialize(item).map(|item| vec![item]),
    }
    .map_err(D::Error::custom)
}

/// Reads an object, but refuses a text with a better message.
pub(crate) fn fields<T: DeserializeOwned, E: Error>(value: Value) -> Result<T, E> {
    match value {
        Value::Object(_) => T::deserialize(value).map_err(E::custom),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(E::custom("expected a text or an object"))
        }
    }
}

fn value_or_text<T: DeserializeOwned + FromStr<Err: Display>, E: Error>(
    value: Value,
) -> Result<T, E> {
    match value {
        Value::String(text) => text.parse().map_err(|_| E::custom("expected a number or a flag")),
        value => T::deserialize(value).map_err(E::custom),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Asked {
        #[serde(deserialize_with = "optional")]
        limit: Option<u32>,
        #[serde(deserialize_with = "value")]
        all: bool,
        #[serde(deserialize_with = "optional")]
        read: Option<bool>,
        #[serde(deserialize_with = "one_or_many")]
        emails: Vec<String>,
    }

    #[test]
    fn text_stands_for_what_it_says() {
        let asked =
            Asked { limit: Some(5), all: true, read: Some(false), emails: vec!["a".into()] };
        for json in [
            json!({ "limit": 5, "all": true, "read": false, "emails": ["a"] }),
            json!({ "limit": "5", "all": "true", "read": "false", "emails": "a" }),
        ] {
            assert_eq!(serde_json::from_value::<Asked>(json).unwrap(), asked);
        }
        assert_eq!(serde_json::from_value::<Asked>(json!({})).unwrap(), Asked::default());
    }

    #[test]
    fn other_text_is_refused() {
        for json in [
            json!({ "limit": "many" }),
            json!({ "limit": -1 }),
            json!({ "limit": "-1" }),
            json!({ "all": "yes" }),
            json!({ "read": 1 }),
            json!({ "emails": 1 }),
        ] {
            assert!(serde_json::from_value::<Asked>(json.clone()).is_err(), "{json}");
        }
    }
}
