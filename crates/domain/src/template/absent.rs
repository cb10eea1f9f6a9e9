//! Values of filters that are absent: undefined, or `null`.

use std::borrow::Cow;
use std::iter;

use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Error, State};

use super::{missing, texts};

/// The engine's own filter `join`.
pub(super) const JOINED: &str = "__joined";

/// Returns the values of a filter without absent ones. The engine prints `null` as `None`.
pub(super) fn without_absent<'v>(
    name: &str,
    values: &'v [Value],
) -> Result<Cow<'v, [Value]>, Error> {
    Ok(match (name, values) {
        ("__format", [format, others @ ..]) => {
            let others = others.iter().map(formatted);
            let format = if is_absent(format) { in_place_of_absent(name) } else { format.clone() };
            iter::once(Ok(format)).chain(others).collect::<Result<_, _>>()?
        }
        ("__replace", values) => values.iter().map(known).collect(),
        (_, [value, others @ ..]) if is_absent(value) => {
            [&[in_place_of_absent(name)], others].concat().into()
        }
        (_, values) => values.into(),
    })
}

// Returns the value of a filter in place of an absent one. Some filters refuse an undefined value.
fn in_place_of_absent(name: &str) -> Value {
    match name {
        "__abs" | "__round" => 0.into(),
        "__count" | "__first" | "__last" | "__length" => Vec::<Value>::new().into(),
        "__dictsort" | "__items" => Value::from_pairs([("", ""); 0]),
        "__format" | "__lines" | "__split" => "".into(),
        _ => Value::UNDEFINED,
    }
}

// Returns `true` for an undefined value, for `null`, and for a variable without a value.
fn is_absent(value: &Value) -> bool {
    value.is_undefined() || value.is_none() || missing::is_missing(value)
}

// Returns an undefined value in place of one that is absent.
fn known(value: &Value) -> Value {
    if is_absent(value) { Value::UNDEFINED } else { value.clone() }
}

// Returns an argument of a format. A format refuses a map without the value of a field.
fn formatted(value: &Value) -> Result<Value, Error> {
    if value.kind() != ValueKind::Map {
        return Ok(known(value));
    }
    let member = |key: Value| {
        let member = texts::settle(&value.get_item(&key)?)?;
        Ok((key, if member.is_none() { Value::from("") } else { member }))
    };
    Ok(Value::from_pairs(value.try_iter()?.map(member).collect::<Result<Vec<_>, Error>>()?))
}

/// `a | join(", ")` and `a | join(", ", attribute="name")`, in which `null` is an empty text.
pub(super) fn join(
    state: &mut State<'_, '_>,
    value: Value,
    joiner: Option<Value>,
    attribute: Option<&str>,
    named: Kwargs,
) -> Result<Value, Error> {
    let joiner = joiner.map_or_else(|| named.get("d"), |joiner| Ok(Some(joiner)))?;
    let attribute = attribute.map_or_else(|| named.get("attribute"), |name| Ok(Some(name)))?;
    named.assert_all_used()?;
    let items = match attribute {
        Some(attribute) => {
            let named = Kwargs::from_iter([("attribute", Value::from(attribute))]);
            state.apply_filter("__map", &[value, named.into()])?
        }
        None => value,
    };
    let items = match items.kind() {
        ValueKind::Seq | ValueKind::Iterable => {
            let items: Vec<Value> = items.try_iter()?.map(|item| known(&item)).collect();
            Value::from(texts::settled(&items)?.into_owned())
        }
        _ => items,
    };
    state.apply_filter(JOINED, &[items, joiner.unwrap_or_default()])
}
