//! Arguments are checked when a template is made, and the engine agrees.

use super::super::*;
use super::NAMES;
use crate::template::engine::{FILTERS, TESTS};

#[track_caller]
fn refused(call: &str, problem: &str) {
    let error = Template::new(format!("{{{{ payload.a | {call} }}}}")).expect_err(call);
    assert_eq!(
        error.to_string(),
        format!("`template` is not a valid template: {problem} in line 1")
    );
}

#[test]
fn wrong_arguments_are_refused() {
    for (call, problem) in [
        ("join(sep=',')", "the filter `join` has no argument `sep`"),
        (
            "join(',', atribute='a')",
            "the filter `join` has no argument `atribute` (did you mean `attribute`?)",
        ),
        ("join(',', d=';')", "the filter `join` is given `d` twice"),
        ("join(',', 'a', 1)", "the filter `join` takes at most 2 arguments"),
        ("replace('a')", "the filter `replace` needs `new`"),
        ("replace", "the filter `replace` needs `old`"),
        ("upper('a')", "the filter `upper` takes at most 0 arguments"),
        ("trim('a', 'b')", "the filter `trim` takes at most 1 argument"),
        ("map('nonsense')", "unknown filter `nonsense`"),
        ("map('uper')", "unknown filter `uper` (did you mean `upper`?)"),
        ("map('map', 'upper')", "unknown filter `map` (did you mean `max`?)"),
        ("map", "the filter `map` needs `filter`"),
        ("map(1)", "`filter` of the filter `map` must be the name of a filter"),
        ("map('replace', 'a')", "the filter `replace` needs `new`"),
        ("map('upper', 'a')", "the filter `upper` takes at most 0 arguments"),
        (
            "map(atribute='a')",
            "the filter `map` has no argument `atribute` (did you mean `attribute`?)",
        ),
        ("select('od')", "unknown test `od` (did you mean `odd`?)"),
        ("select('__in', 'a')", "unknown test `__in`"),
        ("select('divisibleby')", "the test `divisibleby` needs `other`"),
        ("selectattr('a', 'odd', 1)", "the test `odd` takes at most 0 arguments"),
        ("rejectattr", "the filter `rejectattr` needs `attribute`"),
        ("groupby", "the filter `groupby` needs `attribute`"),
        ("groupby(1)", "`attribute` of the filter `groupby` must be a text"),
        ("batch(0)", "`linecount` of the filter `batch` must be a whole number from 1 to 1000"),
        ("batch('2')", "`linecount` of the filter `batch` must be a whole number from 1 to 1000"),
        ("batch(2, fill_with='x')", "the filter `batch` has no argument `fill_with`"),
        ("indent(-1)", "`width` of the filter `indent` must be a whole number from 0 to 1000"),
        (
            "round(1.5)",
            "`precision` of the filter `round` must be a whole number from -1000 to 1000",
        ),
        ("round(2, 'up')", "`method` of the filter `round` must be one of: common, ceil, floor"),
        ("sort(reverse=1)", "`reverse` of the filter `sort` must be true or false"),
        ("int(base=1)", "`base` of the filter `int` must be a whole number from 2 to 36"),
        ("split(1)", "`separator` of the filter `split` must be a text"),
    ] {
        refused(call, problem);
    }
    for (expression, problem) in [
        ("1 is divisibleby", "the test `divisibleby` needs `other`"),
        ("1 is odd(2)", "the test `odd` takes at most 0 arguments"),
        ("1 is odd 2", "the test `odd` takes at most 0 arguments"),
        ("range()", "the function `range` needs `start`"),
        ("range('a')", "`start` of the function `range` must be a whole number"),
        ("range(1, 2, 3, 4)", "the function `range` takes at most 3 arguments"),
        ("range(stop=1)", "the function `range` has no argument `stop`"),
    ] {
        let error = Template::new(format!("{{{{ {expression} }}}}")).expect_err(expression);
        assert!(error.to_string().contains(problem), "{expression}: {error}");
    }
}

#[test]
fn what_a_rendering_decides_is_left_to_it() {
    for call in [
        "batch(payload.n)",
        "map(payload.filter, payload.a)",
        "select(payload.test, 1)",
        "round(1 + 1)",
        "join(payload.d, attribute=payload.b)",
        "default([])",
        "format(1, a=2)",
        "map('join', ', ', attribute='a')",
        "round(none)",
        "split(none, 2)",
        "indent(2, first=true)",
    ] {
        let template = Template::new(format!("{{{{ payload.a | {call} }}}}"));
        assert!(template.is_ok(), "{call}: {template:?}");
    }
}

/// Literals, and whether several filters print them.
const LITERALS: [&str; 7] = ["'a'", "''", "1", "-2", "1.5", "true", "none"];

fn calls(name: &str) -> Vec<String> {
    let mut calls = vec![name.to_owned()];
    for first in LITERALS {
        calls.push(format!("{name}({first})"));
        calls.extend(LITERALS.iter().map(|second| format!("{name}({first}, {second})")));
        calls.extend(NAMES.iter().map(|named| format!("{name}({named}={first})")));
    }
    calls.push(format!("{name}(1, 1, 1)"));
    calls.push(format!("{name}(1, 1, 1, 1)"));
    calls
}

fn payload() -> Variables {
    Variables::new(serde_json::json!({ "payload": { "values": [
        "1", 1, 1.5, null, true, [], [1], ["b", "a"], { "a": 1 }, [{ "a": "x" }], [["a", 1]],
    ] } }))
}

// Returns `true` if the engine renders `call` for one of many values.
fn renders(call: &str, operator: &str) -> bool {
    let variables = payload();
    (0..11).any(|place| {
        let call = format!("{{{{ payload.values[{place}] {operator} {call} }}}}");
        let compiled = ENGINE.template_from_named_str(Format::Plain.name(), &call);
        compiled.is_ok_and(|compiled| compiled.render(roots(&variables)).is_ok())
    })
}

#[test]
fn every_accepted_call_suits_some_value_and_every_refused_call_none() {
    // A format decides about its values itself.
    let filters = FILTERS.iter().filter(|name| **name != "format").map(|name| (*name, "|"));
    let mut wrong = Vec::new();
    for (name, operator) in filters.chain(TESTS.iter().map(|name| (*name, "is"))) {
        for call in calls(name) {
            let accepted = Template::new(format!("{{{{ 1 {operator} {call} }}}}")).is_ok();
            let renders = renders(&call, operator);
            // The engine takes flags for numbers, swallows names and words that it does not know,
            // and renders nothing for a filter of no items.
            let lax = call.contains('=')
                || call.contains("true")
                || call.contains("none")
                || ["map", "select", "reject", "dictsort"].contains(&name)
                || name.ends_with("attr")
                || name == "int";
            if accepted != renders && !(lax && renders) {
                wrong.push((call, accepted));
            }
        }
    }
    assert_eq!(wrong, []);
}

fn roots(variables: &Variables) -> Value {
    let variables = variables.clone();
    Value::from_object(Roots { variables, format: Format::Plain, given: None })
}
