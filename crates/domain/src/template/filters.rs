//! Filters, tests and functions of templates.
//!
//! A filter of the engine is called only if the size of the arguments bounds that of the result.

use std::borrow::Cow;
use std::iter;

use minijinja::value::{Kwargs, Rest, Value, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, State, filters, tests};

use super::Template;
use super::budget::{allow, keep, read, read_texts, refusal, spend, weigh};
use super::edit;
use super::growth;
use super::missing;
use super::moments;
use super::places;
use super::signatures::{Kind, Parameter, either, may, named, needs, needs_either};
use super::texts;

const MOST: i32 = Template::MAX_NUMBER as i32;

const SIZE: Kind = Kind::From(1, MOST);
const CASE: Parameter = named("case_sensitive", Kind::Flag);
const ATTRIBUTE: Parameter = named("attribute", Kind::Text);
const OTHER: Parameter = needs("other", Kind::Any);

/// Filters that read no nested values.
const SHALLOW_FILTERS: [&str; 9] =
    ["__date", "__time", "__bool", "__count", "__d", "__default", "__first", "__last", "__length"];
/// Tests that read more than the kind of a value.
const READING_TESTS: [&str; 18] = [
    "endingwith",
    "eq",
    "equalto",
    "ge",
    "greaterthan",
    "gt",
    "in",
    "le",
    "lessthan",
    "lower",
    "lt",
    "ne",
    "sameas",
    "startingwith",
    "upper",
    "divisibleby",
    "even",
    "odd",
];

/// Number of bytes that are compared or copied at the cost of a byte that is made.
const COMPARISONS: usize = 64;

/// Largest width or precision of a field in a format.
const WIDEST: usize = 999;

/// The engine's own filter `join`.
const JOINED: &str = "__joined";

/// Functions of templates.
pub(super) const FUNCTIONS: &[&str] = &["range", "t"];

/// Parameters of the function `t`.
pub(super) const TEXT: [Parameter; 2] = [needs("key", Kind::Text), named("values", Kind::Named)];

/// Parameters of `range`.
pub(super) const RANGE: [Parameter; 3] =
    [needs("start", Kind::Whole), may("stop", Kind::Whole), may("step", Kind::Whole)];

macro_rules! filters {
    ($($name:literal [$($parameter:expr),*]: $filter:expr,)+) => {
        /// Filters of templates.
        pub(super) const FILTERS: &[&str] = &[$($name),+];

        /// Returns the parameters of the filter `name`.
        pub(super) fn filter(name: &str) -> Option<&'static [Parameter]> {
            match name {
                $($name => Some(const { &[$($parameter),*] }),)+
                _ => None,
            }
        }

        fn add_filters(engine: &mut Environment<'_>) {
            $(
                engine.add_filter(concat!("__", $name), $filter);
                engine.add_filter($name, |state: &mut State<'_, '_>, values: Rest<ValueOrKwargs>| {
                    bounded(state, concat!("__", $name), &values.into_values())
                });
            )+
        }
    };
}

macro_rules! tests {
    ($($name:literal [$($parameter:expr),*]: $test:expr,)+) => {
        /// Tests of templates.
        pub(super) const TESTS: &[&str] = &[$($name),+];

        /// Returns the parameters of the test `name`.
        pub(super) fn test(name: &str) -> Option<&'static [Parameter]> {
            match name {
                $($name => Some(const { &[$($parameter),*] }),)+
                _ => None,
            }
        }

        fn add_tests(engine: &mut Environment<'_>) {
            $(
                engine.add_test(concat!("__", $name), $test);
                engine.add_test($name, |state: &mut State<'_, '_>, values: Rest<ValueOrKwargs>| {
                    let values = values.into_values();
                    if READING_TESTS.contains(&$name) {
                        read(state, &values)?;
                    }
                    state.perform_test(concat!("__", $name), &values)
                });
            )+
        }
    };
}

filters! {
    "abs"[]: filters::abs,
    "batch"[needs("linecount", SIZE), may("fill_with", Kind::Any)]: filters::batch,
    "bool"[]: filters::bool,
    "capitalize"[]: filters::capitalize,
    "count"[]: filters::length,
    "d"[may("default_value", Kind::Any), may("boolean", Kind::Any)]: filters::default,
    "date"[either("format", Kind::Moment), either("zone", Kind::Zone)]: moments::date,
    "default"[may("default_value", Kind::Any), may("boolean", Kind::Any)]: filters::default,
    "dictsort"[named("by", Kind::Word(&["key", "value"])), CASE, named("reverse", Kind::Flag)]: filters::dictsort,
    // `downcase` and `upcase` are the names in Liquid, which imported translations have.
    "downcase"[]: filters::lower,
    "e"[]: filters::escape,
    "escape"[]: filters::escape,
    "first"[]: filters::first,
    "float"[either("default", Kind::Any)]: filters::float,
    "format"[may("values", Kind::Rest)]: filters::format,
    "groupby"[needs_either("attribute", Kind::Text), named("default", Kind::Any), CASE]: filters::groupby,
    "indent"[either("width", Kind::From(0, MOST)), either("first", Kind::Flag), either("blank", Kind::Flag)]: filters::indent,
    "int"[either("default", Kind::Any), either("base", Kind::From(2, 36))]: filters::int,
    "items"[]: filters::items,
    "join"[either("d", Kind::Any), either("attribute", Kind::Text)]: join,
    "last"[]: filters::last,
    "length"[]: filters::length,
    "lines"[]: filters::lines,
    "list"[]: filters::list,
    "lower"[]: filters::lower,
    "map"[needs("filter", Kind::Filter), named("attribute", Kind::Any), named("default", Kind::Any)]: filters::map,
    "max"[CASE, ATTRIBUTE]: filters::max,
    "min"[CASE, ATTRIBUTE]: filters::min,
    "reject"[may("test", Kind::Test)]: filters::reject,
    "rejectattr"[needs("attribute", Kind::Any), may("test", Kind::Test)]: filters::rejectattr,
    "replace"[needs("old", Kind::Any), needs("new", Kind::Any)]: filters::replace,
    "reverse"[]: filters::reverse,
    "round"[either("precision", Kind::From(-MOST, MOST)), either("method", Kind::Word(&["common", "ceil", "floor"]))]: filters::round,
    "safe"[]: filters::safe,
    "select"[may("test", Kind::Test)]: filters::select,
    "selectattr"[needs("attribute", Kind::Any), may("test", Kind::Test)]: filters::selectattr,
    "slice"[needs("slices", SIZE), may("fill_with", Kind::Any)]: filters::slice,
    "sort"[CASE, named("reverse", Kind::Flag), ATTRIBUTE]: filters::sort,
    "split"[may("separator", Kind::Text), may("maxsplit", Kind::Whole)]: filters::split,
    "string"[]: filters::string,
    "sum"[either("attribute", Kind::Text), either("start", Kind::Any)]: filters::sum,
    "t"[named("values", Kind::Named)]: texts::text,
    "time"[either("format", Kind::Moment), either("zone", Kind::Zone)]: moments::time,
    "title"[]: filters::title,
    "trim"[may("chars", Kind::Any)]: filters::trim,
    "unique"[CASE, ATTRIBUTE]: filters::unique,
    "upcase"[]: filters::upper,
    "upper"[]: filters::upper,
}

tests! {
    "boolean"[]: tests::is_boolean,
    "defined"[]: tests::is_defined,
    "divisibleby"[OTHER]: growth::is_divisible,
    "endingwith"[OTHER]: tests::is_endingwith,
    "eq"[OTHER]: tests::is_eq,
    "equalto"[OTHER]: tests::is_eq,
    "escaped"[]: tests::is_safe,
    "even"[]: tests::is_even,
    "false"[]: tests::is_false,
    "float"[]: tests::is_float,
    "ge"[OTHER]: tests::is_ge,
    "greaterthan"[OTHER]: tests::is_gt,
    "gt"[OTHER]: tests::is_gt,
    "in"[OTHER]: tests::is_in,
    "int"[]: tests::is_integer,
    "integer"[]: tests::is_integer,
    "iterable"[]: tests::is_iterable,
    "le"[OTHER]: tests::is_le,
    "lessthan"[OTHER]: tests::is_lt,
    "lower"[]: tests::is_lower,
    "lt"[OTHER]: tests::is_lt,
    "mapping"[]: tests::is_mapping,
    "ne"[OTHER]: tests::is_ne,
    "none"[]: tests::is_none,
    "number"[]: tests::is_number,
    "odd"[]: tests::is_odd,
    "safe"[]: tests::is_safe,
    "sameas"[OTHER]: tests::is_sameas,
    "sequence"[]: tests::is_sequence,
    "startingwith"[OTHER]: tests::is_startingwith,
    "string"[]: tests::is_string,
    "true"[]: tests::is_true,
    "undefined"[]: tests::is_undefined,
    "upper"[]: tests::is_upper,
}

/// Adds all filters, tests and functions to `engine`.
pub(super) fn add_to(engine: &mut Environment<'_>) {
    add_filters(engine);
    engine.add_filter(JOINED, filters::join);
    add_tests(engine);
    engine.add_function("range", places::range);
    engine.add_function(edit::CONCAT, growth::concat);
    engine.add_function(edit::ADD, growth::add);
    engine.add_function(edit::MULTIPLY, growth::multiply);
    engine.add_function(edit::LIST, growth::list);
    engine.add_function(edit::MAP, growth::map);
    engine.add_function(edit::KEEP, growth::kept);
    engine.add_function(edit::READ, growth::read);
    engine.add_function(edit::ITEM, growth::item);
    engine.add_function(edit::SHOWN, missing::shown);
}

// Calls the engine's filter `name` with `values`, within the budget.
fn bounded(state: &mut State<'_, '_>, name: &str, values: &[Value]) -> Result<Value, Error> {
    let gives_default = matches!(name, "__d" | "__default");
    if let Some(value) = values.first().filter(|value| missing::is_missing(value))
        && !gives_default
    {
        return Ok(value.clone());
    }
    if SHALLOW_FILTERS.contains(&name) {
        read_texts(state, values)?;
    } else {
        read(state, values)?;
    }
    let values = without_absent(name, values)?;
    let Some((value, others)) = values.split_first() else {
        return Err(refusal("a filter is given nothing"));
    };
    check_size(state, name, value, others)?;
    let made = state.apply_filter(name, &values)?;
    keep(state, made)
}

// Returns the values of a filter without absent ones. The engine prints `null` as `None`.
fn without_absent<'v>(name: &str, values: &'v [Value]) -> Result<Cow<'v, [Value]>, Error> {
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
        let member = value.get_item(&key)?;
        Ok((key, if member.is_none() { Value::from("") } else { member }))
    };
    Ok(Value::from_pairs(value.try_iter()?.map(member).collect::<Result<Vec<_>, Error>>()?))
}

// `a | join(", ")` and `a | join(", ", attribute="name")`, in which `null` is an empty text.
fn join(
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
            Value::from(items.try_iter()?.map(|item| known(&item)).collect::<Vec<_>>())
        }
        _ => items,
    };
    state.apply_filter(JOINED, &[items, joiner.unwrap_or_default()])
}

// Refuses values that make the result too large, or the filter too slow.
fn check_size(
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

// Returns `true` if a sum does not start with a number.
fn adds_texts(others: &[Value]) -> bool {
    let named = others.last().and_then(|last| Kwargs::try_from(last.clone()).ok());
    let start = named.and_then(|named| named.get::<Option<Value>>("start").ok()?);
    start.or(others.get(1).cloned()).is_some_and(|start| start.kind() != ValueKind::Number)
}

// Returns `true` if the name is one of the engine's own, which no budget bounds.
fn hidden(name: Option<&Value>) -> bool {
    name.and_then(Value::as_str).is_some_and(|name| name.starts_with(edit::RESERVED))
}

fn hidden_test() -> Error {
    refusal("a filter is not given such a test")
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
