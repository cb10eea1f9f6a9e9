//! Filters, tests and functions of templates.
//!
//! A filter of the engine is called only if the size of the arguments bounds that of the result.

use minijinja::value::{Rest, Value, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, State, filters, tests};

use super::Template;
use super::absent;
use super::budget::{keep, read, read_texts, refusal};
use super::edit;
use super::growth;
use super::missing;
use super::moments;
use super::places;
use super::signatures::{Kind, Parameter, either, may, named, needs, needs_either};
use super::sizes;
use super::texts;

const MOST: i32 = Template::MAX_NUMBER as i32;

const SIZE: Kind = Kind::From(1, MOST);
const CASE: Parameter = named("case_sensitive", Kind::Flag);
const ATTRIBUTE: Parameter = named("attribute", Kind::Text);
const OTHER: Parameter = needs("other", Kind::Any);

/// Filters that read no nested values. `last` goes through all numbers of a range.
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
    "join"[either("d", Kind::Any), either("attribute", Kind::Text)]: absent::join,
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
    engine.add_filter(absent::JOINED, filters::join);
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
    let values = &*texts::settled(values)?;
    let is_range = values.first().is_some_and(|value| value.kind() == ValueKind::Iterable);
    if SHALLOW_FILTERS.contains(&name) && !(name == "__last" && is_range) {
        read_texts(state, values)?;
    } else {
        read(state, values)?;
    }
    let values = absent::without_absent(name, values)?;
    let Some((value, others)) = values.split_first() else {
        return Err(refusal("a filter is given nothing"));
    };
    sizes::check_size(state, name, value, others)?;
    let made = state.apply_filter(name, &values)?;
    keep(state, made)
}
