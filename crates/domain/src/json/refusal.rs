//! Refusals of JSON values.

use serde::de::DeserializeOwned;
use serde_json::{Error, Value};

use super::path::Path;
use crate::error::{Invalid, Reason};
use crate::page::OrderBy;

/// Returns the refusal of the value at `path` for an error of serde.
///
/// An error of serde is a text. It names a missing or repeated field, or contains a refusal of the
/// domain.
pub(super) fn of(path: &Path<'_>, error: &Error) -> Invalid {
    let text = error.to_string();
    let (about, text) = if let Some(name) = text.strip_prefix("missing field ") {
        (Some(Reason::Missing), name)
    } else if let Some(name) = text.strip_prefix("duplicate field ") {
        (Some(Reason::Repeated), name)
    } else {
        (None, text.as_str())
    };
    let named = text.strip_prefix('`').and_then(|named| named.split_once('`'));
    match (about, named) {
        (Some(reason), Some((name, _))) => Invalid::new(Path::Member(path, name).named(), reason),
        (None, Some((name, rule))) => {
            let rule = rule.trim_start().to_owned();
            Invalid::new(Path::Member(path, name).named(), Reason::InWords { rule })
        }
        (_, None) => Invalid::new(path.named(), unexpected(text)),
    }
}

/// Reads `value`, or returns the refusal. The path is the name that the broken rule gives to
/// itself.
pub(super) fn read<T: DeserializeOwned>(value: &Value) -> Result<(), Invalid> {
    T::deserialize(value).map(drop).map_err(|error| {
        let text = error.to_string();
        match text.strip_prefix('`').and_then(|named| named.split_once('`')) {
            Some((name, rule)) => {
                Invalid::new(name, Reason::InWords { rule: rule.trim_start().to_owned() })
            }
            None => Invalid::new("value", unexpected(&text)),
        }
    })
}

/// Refuses a value that is not one of `words`.
pub(super) fn word(words: &[&str], value: &Value) -> Result<(), Invalid> {
    match value {
        Value::String(text) if words.contains(&text.as_str()) => Ok(()),
        Value::String(_) => {
            let words = words.iter().map(ToString::to_string).collect();
            Err(Invalid::new("word", Reason::NotOneOf { words }))
        }
        _ => Err(not("a text")),
    }
}

/// Refuses an order that the list does not have.
pub(super) fn order(orders: &[OrderBy], value: &Value) -> Result<(), Invalid> {
    if value.is_null() {
        return Ok(());
    }
    word(&orders.iter().map(|order| order.as_str()).collect::<Vec<_>>(), value)
}

/// Returns the refusal of a value that is not `expected`.
pub(super) fn not(expected: &'static str) -> Invalid {
    Invalid::new("value", Reason::malformed(expected))
}

// The text in front of the expectation quotes the value, which may be a secret.
fn unexpected(text: &str) -> Reason {
    let Some((_, expected)) = text.rsplit_once("expected ") else {
        return Reason::Unreadable { problem: "it has another form than it should".to_owned() };
    };
    Reason::malformed(form(expected).to_owned())
}

// Returns the public name of a form that serde expects.
fn form(expected: &str) -> &str {
    match expected.split(' ').next().unwrap_or_default() {
        "struct" | "internally" | "adjacently" => "an object",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number",
        _ => match expected {
            "a map" => "an object",
            "a sequence" => "a list",
            "a string" | "a word" => "a text",
            "a boolean" => "`true` or `false`",
            other => other,
        },
    }
}
