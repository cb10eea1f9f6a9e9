//! Comparison of a fact with the value of a filter.

use std::cmp::Ordering;
use std::slice;

use chrono::{DateTime, FixedOffset};
use serde_json::{Number, Value};

use super::pattern::Pattern;
use super::{FilterOperator, listed};
use crate::error::{Invalid, Reason};

impl FilterOperator {
    /// Refuses a value that no fact can match.
    pub(super) fn check(self, value: &str) -> Result<(), Invalid> {
        match self {
            FilterOperator::Between | FilterOperator::NotBetween => bounds(value).map(drop),
            FilterOperator::Like | FilterOperator::NotLike => Pattern::new(value).map(drop),
            FilterOperator::Larger
            | FilterOperator::Smaller
            | FilterOperator::LargerEqual
            | FilterOperator::SmallerEqual
            | FilterOperator::Equal
            | FilterOperator::NotEqual
            | FilterOperator::AllIn
            | FilterOperator::AnyIn
            | FilterOperator::NotIn
            | FilterOperator::In => Ok(()),
        }
    }

    /// Returns `true` if the comparison of a fact with the value of a filter holds.
    pub(super) fn holds(self, actual: Option<&Value>, expected: &str) -> bool {
        let is = |test: fn(&Value, &str) -> bool| actual.is_some_and(|fact| test(fact, expected));
        let ordered = |test: fn(Ordering) -> bool| {
            actual.and_then(|fact| order(fact, expected)).is_some_and(test)
        };
        match self {
            FilterOperator::Larger => ordered(Ordering::is_gt),
            FilterOperator::Smaller => ordered(Ordering::is_lt),
            FilterOperator::LargerEqual => ordered(Ordering::is_ge),
            FilterOperator::SmallerEqual => ordered(Ordering::is_le),
            FilterOperator::Equal => is(is_equal),
            FilterOperator::NotEqual => !is(is_equal),
            FilterOperator::AllIn => is(is_all_in),
            FilterOperator::AnyIn => is(is_any_in),
            FilterOperator::NotIn => !is(is_in),
            FilterOperator::Between => is(is_between),
            FilterOperator::NotBetween => !is(is_between),
            FilterOperator::Like => is(is_like),
            FilterOperator::NotLike => !is(is_like),
            FilterOperator::In => is(is_in),
        }
    }
}

pub(super) fn is_equal(actual: &Value, expected: &str) -> bool {
    match actual {
        Value::Null => expected == "null",
        Value::Bool(actual) => expected == if *actual { "true" } else { "false" },
        Value::Number(actual) => number(expected)
            .and_then(|expected| order_numbers(actual, &expected))
            .is_some_and(Ordering::is_eq),
        Value::String(actual) => actual == expected,
        Value::Array(_) | Value::Object(_) => {
            serde_json::from_str::<Value>(expected).is_ok_and(|expected| expected == *actual)
        }
    }
}

fn is_between(actual: &Value, expected: &str) -> bool {
    let Ok([low, high]) = bounds(expected) else { return false };
    order(actual, &low).is_some_and(Ordering::is_ge)
        && order(actual, &high).is_some_and(Ordering::is_le)
}

fn is_in(actual: &Value, expected: &str) -> bool {
    listed::is_listed(actual, &list(expected))
}

fn is_any_in(actual: &Value, expected: &str) -> bool {
    listed::has_any(&list(expected), elements(actual))
}

fn is_all_in(actual: &Value, expected: &str) -> bool {
    let elements = elements(actual);
    !elements.is_empty() && listed::has_all(&list(expected), elements)
}

fn is_like(actual: &Value, expected: &str) -> bool {
    let Value::String(text) = actual else { return false };
    Pattern::new(expected).is_ok_and(|pattern| pattern.fits(text))
}

fn elements(value: &Value) -> &[Value] {
    match value {
        Value::Array(items) => items,
        other => slice::from_ref(other),
    }
}

fn list(text: &str) -> Vec<String> {
    if let Ok(items) = serde_json::from_str::<Vec<Value>>(text) {
        return items.into_iter().map(into_text).collect();
    }
    let items = text.split(',').map(str::trim);
    items.filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

/// Returns the text of a value in a filter: a text without its quotes, or the JSON text.
pub(super) fn into_text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

fn bounds(text: &str) -> Result<[String; 2], Invalid> {
    list(text)
        .try_into()
        .map_err(|_| Invalid::new("value", Reason::malformed("two values, as in `1,5`")))
}

fn order(actual: &Value, expected: &str) -> Option<Ordering> {
    match actual {
        Value::Number(actual) => order_numbers(actual, &number(expected)?),
        Value::String(actual) => order_texts(actual, expected),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn order_texts(left: &str, right: &str) -> Option<Ordering> {
    if let (Some(left), Some(right)) = (number(left), number(right)) {
        return order_numbers(&left, &right);
    }
    if let (Some(left), Some(right)) = (instant(left), instant(right)) {
        return Some(left.cmp(&right));
    }
    Some(left.cmp(right))
}

// `f64` cannot represent large integers exactly.
pub(super) fn order_numbers(left: &Number, right: &Number) -> Option<Ordering> {
    match (left.as_i128(), right.as_i128()) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        (Some(left), None) => order_mixed(left, right.as_f64()?),
        (None, Some(right)) => order_mixed(right, left.as_f64()?).map(Ordering::reverse),
        (None, None) => left.as_f64()?.partial_cmp(&right.as_f64()?),
    }
}

fn order_mixed(left: i128, right: f64) -> Option<Ordering> {
    #[expect(clippy::cast_possible_truncation, reason = "no integer of JSON is near the bounds")]
    let whole = right.trunc() as i128;
    let fraction = right.fract();
    Some(left.cmp(&whole).then(0.0.partial_cmp(&fraction)?))
}

// Parses a JSON number. `inf` and an empty text are none.
pub(super) fn number(text: &str) -> Option<Number> {
    text.trim().parse().ok()
}

// `Timestamp` would round to milliseconds.
fn instant(text: &str) -> Option<DateTime<FixedOffset>> {
    DateTime::parse_from_rfc3339(text).ok()
}

#[cfg(test)]
pub(super) mod tests;
