//! Sizes of what filters make of their values.

use std::borrow::Cow;

use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{AutoEscape, Error, State};

use super::Template;
use super::budget::{NODE, READS, allow, refusal, spend, weigh};
use super::edit;

/// Number of bytes that are compared or copied at the cost of a byte that is made.
const COMPARISONS: usize = 64;

/// Bytes that HTML escapes, each as 6 bytes at most.
const ESCAPED: &[u8] = b"<>&\"'/";

/// Largest width or precision of a field in a format.
const WIDEST: usize = 999;

/// Refuses values that make the result too large, or the filter too slow.
pub(super) fn check_size(
    state: &mut State<'_, '_>,
    name: &str,
    value: &Value,
    others: &[Value],
) -> Result<(), Error> {
    spend_path(state, name, value, others)?;
    match name {
        // The separator occurs once per item, or per place between characters.
        "__join" => {
            let separator = named(others, "d").or_else(|| placed(others, 0)).unwrap_or_default();
            let separator = length(&separator, escape(state));
            allow(state, items(value).saturating_mul(separator))
        }
        "__replace" => check_replaced(state, value, others),
        "__indent" => {
            let lines = text(value).split('\n').count();
            allow(state, lines.saturating_mul(largest_count(others)?))
        }
        "__batch" | "__slice" => largest_count(others.get(..1).unwrap_or_default()).map(drop),
        "__round" => largest_count(others).map(drop),
        "__format" => check_format(state, value, others),
        "__trim" => {
            let letters = others.first().map_or(0, |letters| text(letters).len());
            spend(state, text(value).len().saturating_mul(letters) / COMPARISONS)
        }
        // Each item of a list of texts or lists is added to a copy of those before it.
        "__sum" if adds_texts(others) => {
            let weight = weigh([value], Template::MAX_WEIGHT)?;
            allow(state, items(value).saturating_mul(weight) / COMPARISONS)
        }
        _ => check_called(name, others),
    }
}

// Refuses filters that call themselves, and what no budget bounds.
fn check_called(name: &str, others: &[Value]) -> Result<(), Error> {
    match name {
        // A filter that calls filters could recurse.
        "__map"
            if others
                .first()
                .and_then(Value::as_str)
                .is_some_and(|name| name == "map" || name.starts_with(edit::RESERVED)) =>
        {
            Err(refusal("`map` is not given such a filter"))
        }
        "__select" | "__reject" if hidden(others.first()) => Err(hidden_test()),
        "__selectattr" | "__rejectattr" if hidden(others.get(1)) => Err(hidden_test()),
        _ => Ok(()),
    }
}

// Subtracts the price of the path of an attribute, which is walked for each item. `sort` makes a value of each
// of its keys, and copies texts.
fn spend_path(
    state: &mut State<'_, '_>,
    name: &str,
    value: &Value,
    others: &[Value],
) -> Result<(), Error> {
    let Some(path) = path(name, others) else { return Ok(()) };
    let path = text(&path);
    let items = items(value);
    let steps = path.matches(['.', ',']).count();
    let weight = match steps {
        0 => 0,
        _ => weigh([value], Template::MAX_WEIGHT)?.max(items.saturating_mul(NODE)) / READS,
    };
    let compared = items.saturating_mul(path.len()) / COMPARISONS;
    spend(state, weight.saturating_mul(steps).saturating_add(compared))
}

// Returns the path of the attribute that a filter reads of each item.
fn path(name: &str, others: &[Value]) -> Option<Value> {
    let place = match name {
        "__groupby" | "__rejectattr" | "__selectattr" | "__sum" => Some(0),
        "__join" => Some(1),
        "__map" | "__max" | "__min" | "__sort" | "__unique" => None,
        _ => return None,
    };
    named(others, "attribute").or_else(|| placed(others, place?))
}

// Returns the argument at a place, unless it is absent.
fn placed(others: &[Value], place: usize) -> Option<Value> {
    let is_given = |other: &&Value| !other.is_none() && Kwargs::try_from((*other).clone()).is_err();
    others.get(place).filter(is_given).cloned()
}

// Returns the argument with a name, unless it is absent.
fn named(others: &[Value], name: &str) -> Option<Value> {
    let named = others.last().and_then(|last| Kwargs::try_from(last.clone()).ok())?;
    named.get::<Option<Value>>(name).ok()?
}

// Refuses a replacement whose result may be too large.
fn check_replaced(state: &mut State<'_, '_>, value: &Value, others: &[Value]) -> Result<(), Error> {
    let [old, new] = others else { return Ok(()) };
    // The engine escapes nothing, unless one of the three is markup.
    let has_markup = [value, old, new].into_iter().any(Value::is_safe);
    let escape = if has_markup { escape(state) } else { 1 };
    let is_escaped = escape > 1 && !value.is_safe();
    let (text, old) = (text(value), text(old));
    let escaped = if is_escaped {
        text.bytes().filter(|byte| ESCAPED.contains(byte)).count() * escape
    } else {
        0
    };
    // Each byte of an escaped character may be a place as well.
    let places = text.matches(&*old).count() + escaped;
    let made = places.saturating_mul(length(new, escape));
    allow(state, made.saturating_add(text.len() + escaped))
}

// Returns the text that the engine makes of a value. The weight of a value does not bound it: a group of texts
// may have a long one.
fn text(value: &Value) -> Cow<'_, str> {
    value.as_str().map_or_else(|| value.to_string().into(), Cow::Borrowed)
}

// Returns the largest number of bytes for one, where a text may be escaped.
fn escape(state: &State<'_, '_>) -> usize {
    if matches!(state.auto_escape(), AutoEscape::None) { 1 } else { 6 }
}

// Returns the largest length of the text of a value whose bytes become as many as `escape`, unless it is markup.
fn length(value: &Value, escape: usize) -> usize {
    text(value).len().saturating_mul(if value.is_safe() { 1 } else { escape })
}

// Returns `true` if the name of a test may be one of the engine's own, which no budget bounds. The engine takes
// the text of any value for a name.
fn hidden(name: Option<&Value>) -> bool {
    let name = name.filter(|name| !name.is_undefined() && !name.is_none());
    name.is_some_and(|name| name.as_str().is_none_or(|name| name.starts_with(edit::RESERVED)))
}

fn hidden_test() -> Error {
    refusal("a filter is not given such a test")
}

// Returns `true` if a sum does not start with a number.
fn adds_texts(others: &[Value]) -> bool {
    let start = named(others, "start").or_else(|| placed(others, 1));
    start.is_some_and(|start| start.kind() != ValueKind::Number)
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
