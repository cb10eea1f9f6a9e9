//! Filters, tests and functions of templates.
//!
//! A filter of the engine is called only if the size of the arguments bounds that of the result.

use minijinja::value::{Kwargs, Rest, Value, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, State, filters, functions, tests};

use super::budget::{LIMIT, allow, keep, read, read_texts, refusal, weigh};
use super::edit;
use super::growth;

/// Largest number for a filter, as a length or a count.
const MAX_COUNT: usize = 1000;

/// Filters that read no nested values.
const SHALLOW_FILTERS: [&str; 7] =
    ["__bool", "__count", "__d", "__default", "__first", "__last", "__length"];
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

/// Functions of templates.
pub(super) const FUNCTIONS: &[&str] = &["range"];

macro_rules! filters {
    ($($name:literal: $filter:expr,)+) => {
        /// Filters of templates.
        pub(super) const FILTERS: &[&str] = &[$($name),+];

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
    ($($name:literal: $test:expr,)+) => {
        /// Tests of templates.
        pub(super) const TESTS: &[&str] = &[$($name),+];

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
    "abs": filters::abs,
    "batch": filters::batch,
    "bool": filters::bool,
    "capitalize": filters::capitalize,
    "count": filters::length,
    "d": filters::default,
    "default": filters::default,
    "dictsort": filters::dictsort,
    "e": filters::escape,
    "escape": filters::escape,
    "first": filters::first,
    "float": filters::float,
    "format": filters::format,
    "groupby": filters::groupby,
    "indent": filters::indent,
    "int": filters::int,
    "items": filters::items,
    "join": filters::join,
    "last": filters::last,
    "length": filters::length,
    "lines": filters::lines,
    "list": filters::list,
    "lower": filters::lower,
    "map": filters::map,
    "max": filters::max,
    "min": filters::min,
    "reject": filters::reject,
    "rejectattr": filters::rejectattr,
    "replace": filters::replace,
    "reverse": filters::reverse,
    "round": filters::round,
    "safe": filters::safe,
    "select": filters::select,
    "selectattr": filters::selectattr,
    "slice": filters::slice,
    "sort": filters::sort,
    "split": filters::split,
    "string": filters::string,
    "sum": filters::sum,
    "title": filters::title,
    "trim": filters::trim,
    "unique": filters::unique,
    "upper": filters::upper,
}

tests! {
    "boolean": tests::is_boolean,
    "defined": tests::is_defined,
    "divisibleby": growth::is_divisible,
    "endingwith": tests::is_endingwith,
    "eq": tests::is_eq,
    "equalto": tests::is_eq,
    "escaped": tests::is_safe,
    "even": tests::is_even,
    "false": tests::is_false,
    "float": tests::is_float,
    "ge": tests::is_ge,
    "greaterthan": tests::is_gt,
    "gt": tests::is_gt,
    "in": tests::is_in,
    "int": tests::is_integer,
    "integer": tests::is_integer,
    "iterable": tests::is_iterable,
    "le": tests::is_le,
    "lessthan": tests::is_lt,
    "lower": tests::is_lower,
    "lt": tests::is_lt,
    "mapping": tests::is_mapping,
    "ne": tests::is_ne,
    "none": tests::is_none,
    "number": tests::is_number,
    "odd": tests::is_odd,
    "safe": tests::is_safe,
    "sameas": tests::is_sameas,
    "sequence": tests::is_sequence,
    "startingwith": tests::is_startingwith,
    "string": tests::is_string,
    "true": tests::is_true,
    "undefined": tests::is_undefined,
    "upper": tests::is_upper,
}

/// Adds all filters, tests and functions to `engine`.
pub(super) fn add_to(engine: &mut Environment<'_>) {
    add_filters(engine);
    add_tests(engine);
    engine.add_function("range", functions::range);
    engine.add_function(edit::CONCAT, growth::concat);
    engine.add_function(edit::ADD, growth::add);
    engine.add_function(edit::MULTIPLY, growth::multiply);
    engine.add_function(edit::LIST, growth::list);
    engine.add_function(edit::MAP, growth::map);
    engine.add_function(edit::KEEP, growth::kept);
    engine.add_function(edit::READ, growth::read);
    engine.add_function(edit::ITEM, growth::item);
}

// Calls the engine's filter `name` with `values`, within the budget.
fn bounded(state: &mut State<'_, '_>, name: &str, values: &[Value]) -> Result<Value, Error> {
    if SHALLOW_FILTERS.contains(&name) {
        read_texts(state, values)?;
    } else {
        read(state, values)?;
    }
    let Some((value, others)) = values.split_first() else {
        return Err(refusal("a filter is given nothing"));
    };
    let length = value.as_bytes().map_or(0, <[u8]>::len);
    match name {
        // The separator occurs once per item, or per place between characters.
        "__join" => allow(state, items(value).saturating_mul(texts(others)?))?,
        "__replace" => allow(state, (length + 1).saturating_mul(texts(others)?))?,
        "__indent" => {
            let lines = value.as_bytes().unwrap_or_default().split(|byte| *byte == b'\n').count();
            allow(state, lines.saturating_mul(largest_count(others)?))?;
        }
        "__batch" | "__slice" | "__round" => {
            largest_count(others)?;
        }
        "__format" => check_format(value)?,
        // A filter that calls filters could recurse.
        "__map"
            if others.iter().any(|other| {
                other.as_str().is_some_and(|name| name == "map" || name.starts_with(edit::RESERVED))
            }) =>
        {
            return Err(refusal("`map` is not given such a filter"));
        }
        "__select" | "__reject" if hidden(others.first()) => return Err(hidden_test()),
        "__selectattr" | "__rejectattr" if hidden(others.get(1)) => return Err(hidden_test()),
        _ => {}
    }
    let made = state.apply_filter(name, values)?;
    keep(state, made)
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
            value.len().unwrap_or(LIMIT)
        }
        _ => 0,
    }
}

// Returns the largest possible length of the arguments' texts, escaped.
fn texts(others: &[Value]) -> Result<usize, Error> {
    Ok(weigh(others, LIMIT)? * 6)
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
            if count > MAX_COUNT {
                return Err(refusal(format!("a filter is given a number above {MAX_COUNT}")));
            }
            largest = largest.max(count);
        }
    }
    Ok(largest)
}

// A width determines the length of the result. So three digits and `*` are refused.
fn check_format(format: &Value) -> Result<(), Error> {
    let format = format.as_bytes().unwrap_or_default();
    let mut digits = 0;
    let wide = format.iter().any(|byte| {
        digits = if byte.is_ascii_digit() { digits + 1 } else { 0 };
        digits == 4
    });
    let starred = format.windows(2).any(|pair| matches!(pair, [b'%' | b'.', b'*']));
    if wide || starred { Err(refusal("a format has too wide a field")) } else { Ok(()) }
}
