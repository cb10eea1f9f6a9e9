//! Sizes of what filters make of their values.

use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Error, State};

use super::Template;
use super::budget::{allow, refusal, spend, weigh};
use super::edit;

/// Number of bytes that are compared or copied at the cost of a byte that is made.
const COMPARISONS: usize = 64;

/// Largest width or precision of a field in a format.
const WIDEST: usize = 999;

/// Refuses values that make the result too large, or the filter too slow.
pub(super) fn check_size(
    state: &mut State<'_, '_>,
    name: &str,
    value: &Value,
    others: &[Value],
) -> Result<(), Error> {
    let length = value.as_bytes().map_or(0, <[u8]>::len);
    match name {
        // The separator occurs once per item, or per place between characters.
        "__join" => allow(state, items(value).saturating_mul(texts(others)?)),
        "__replace" => allow(state, (length + 1).saturating_mul(texts(others)?)),
        "__indent" => {
            let lines = value.as_bytes().unwrap_or_default().split(|byte| *byte == b'\n').count();
            allow(state, lines.saturating_mul(largest_count(others)?))
        }
        "__batch" | "__slice" => largest_count(others.get(..1).unwrap_or_default()).map(drop),
        "__round" => largest_count(others).map(drop),
        "__format" => check_format(state, value, others),
        "__trim" => {
            let letters = others.first().and_then(Value::as_bytes).map_or(0, <[u8]>::len);
            spend(state, length.saturating_mul(letters) / COMPARISONS)
        }
        // Each item of a list of texts or lists is added to a copy of those before it.
        "__sum" if adds_texts(others) => {
            let weight = weigh([value], Template::MAX_WEIGHT)?;
            allow(state, items(value).saturating_mul(weight) / COMPARISONS)
        }
        // A filter that calls filters could recurse.
        "__map"
            if others.iter().any(|other| {
                other.as_str().is_some_and(|name| name == "map" || name.starts_with(edit::RESERVED))
            }) =>
        {
            Err(refusal("`map` is not given such a filter"))
        }
        "__select" | "__reject" if hidden(others.first()) => Err(hidden_test()),
        "__selectattr" | "__rejectattr" if hidden(others.get(1)) => Err(hidden_test()),
        _ => Ok(()),
    }
}

// Returns `true` if the name is one of the engine's own, which no budget bounds.
fn hidden(name: Option<&Value>) -> bool {
    name.and_then(Value::as_str).is_some_and(|name| name.starts_with(edit::RESERVED))
}

fn hidden_test() -> Error {
    refusal("a filter is not given such a test")
}

// Returns `true` if a sum does not start with a number.
fn adds_texts(others: &[Value]) -> bool {
    let named = others.last().and_then(|last| Kwargs::try_from(last.clone()).ok());
    let start = named.and_then(|named| named.get::<Option<Value>>("start").ok()?);
    start.or(others.get(1).cloned()).is_some_and(|start| start.kind() != ValueKind::Number)
}

// Returns the number of items to join. A value that is no sequence has none.
fn items(value: &Value) -> usize {
    match value.kind() {
        ValueKind::Seq | ValueKind::Map | ValueKind::Iterable | ValueKind::String => {
            value.len().unwrap_or(Template::MAX_WEIGHT)
        }
        _ => 0,
    }
}

// Returns the largest possible length of the arguments' texts, escaped.
fn texts(others: &[Value]) -> Result<usize, Error> {
    Ok(weigh(others, Template::MAX_WEIGHT)? * 6)
}

// Returns the largest number among the arguments.
fn largest_count(others: &[Value]) -> Result<usize, Error> {
    let mut largest = 4;
    for other in others {
        let named = matches!(other.kind(), ValueKind::Map).then(|| Kwargs::try_from(other.clone()));
        let numbers = match named {
            Some(named) => {
                let named = named?;
                named.args().filter_map(|name| named.peek::<Value>(name).ok()).collect()
            }
            None => vec![other.clone()],
        };
        for number in numbers.iter().filter(|number| number.kind() == ValueKind::Number) {
            let count = i128::try_from(number.clone()).unwrap_or(i128::MAX).unsigned_abs();
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            if count > usize::from(Template::MAX_NUMBER) {
                return Err(refusal(format!(
                    "a filter is given a number above {}",
                    Template::MAX_NUMBER
                )));
            }
            largest = largest.max(count);
        }
    }
    Ok(largest)
}

// Refuses a format whose result may be too large. Fields with four digits or more and `*` are refused. A
// field takes the next argument, or any member of a map, also many times.
fn check_format(state: &mut State<'_, '_>, format: &Value, others: &[Value]) -> Result<(), Error> {
    let format = format.as_bytes().unwrap_or_default();
    let mut digits = 0;
    let wide = format.iter().any(|byte| {
        digits = if byte.is_ascii_digit() { digits + 1 } else { 0 };
        digits == 4
    });
    let starred = format.windows(2).any(|pair| matches!(pair, [b'%' | b'.', b'*']));
    if wide || starred {
        return Err(refusal("a format has too wide a field"));
    }
    let fields = format.split(|byte| *byte == b'%').count();
    let members = format.windows(2).filter(|pair| *pair == b"%(").count();
    let mut largest = 0;
    if let Some(map) = others.first().filter(|map| members > 0 && map.kind() == ValueKind::Map) {
        for key in map.try_iter()? {
            largest = largest.max(weigh([&map.get_item(&key)?], Template::MAX_WEIGHT)?);
        }
    }
    allow(state, fields.saturating_mul(WIDEST).saturating_add(members.saturating_mul(largest)))
}
