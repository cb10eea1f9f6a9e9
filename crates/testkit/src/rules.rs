//! Any JSON as a condition, over any data.

use std::sync::LazyLock;

use arbitrary::{Result, Unstructured};
use domain::condition::Rule;
use serde_json::{Value, json};

use crate::json;

// Operators, and what they like to work on.
static WORDS: LazyLock<Vec<&str>> = LazyLock::new(|| [Rule::OPERATORS, OTHERS].concat());

// Texts that operators like to work on, and one that is nearly an operator.
const OTHERS: &[&str] = &[
    "log",
    "current",
    "accumulator",
    "",
    "a",
    "b",
    "a.b",
    "0",
    "1",
    "-1",
    "1e3",
    "\u{e9}",
    "length",
    "true",
    "NaN",
    "Infinity",
    " 7 ",
];

/// A condition, and the data that it is evaluated over: the JSON texts that `bytes` are, the
/// condition first, or else something made up from them.
pub fn decode(bytes: &[u8]) -> Vec<Value> {
    json::texts(bytes).or_else(|| made(&mut Unstructured::new(bytes)).ok()).unwrap_or_default()
}

fn made(from: &mut Unstructured<'_>) -> Result<Vec<Value>> {
    Ok(vec![rule(from, 4)?, json::made(from, &WORDS, 3)?, json::made(from, &WORDS, 3)?])
}

fn rule(from: &mut Unstructured<'_>, depth: usize) -> Result<Value> {
    if depth == 0 || from.ratio(1, 6)? {
        return json::made(from, &WORDS, 2);
    }
    let mut arguments = Vec::new();
    for _ in 0..from.int_in_range(0..=3)? {
        arguments.push(rule(from, depth - 1)?);
    }
    let operator = *from.choose(&WORDS)?;
    let alone = arguments.len() == 1 && from.arbitrary()?;
    let arguments = if alone { arguments.remove(0) } else { arguments.into() };
    Ok(json!({ operator: arguments }))
}

/// Compiles the first of `values`, and evaluates it over the others.
///
/// # Panics
///
/// If a rule reads back as another one, or says two things about the same data.
pub fn run(values: &[Value]) {
    let Some((source, data)) = values.split_first() else { return };
    let Ok(rule) = Rule::new(source.clone()) else {
        let again: std::result::Result<Rule, _> = serde_json::from_value(source.clone());
        assert!(again.is_err(), "{source} is refused, and then it is not");
        return;
    };
    assert_eq!(rule.source(), source, "a rule is not what it was made of");
    let text = serde_json::to_string(&rule).expect("a rule is JSON");
    let again: Rule = serde_json::from_str(&text).expect("a rule can be read again");
    assert_eq!(again, rule, "a rule reads back as another one");
    for data in [&Value::Null].into_iter().chain(data) {
        let value = rule.evaluate(data);
        assert_eq!(again.evaluate(data), value, "{text} says two things about {data}");
        let read: Value = serde_json::from_str(&value.to_string()).expect("it is JSON");
        assert_eq!(read, value, "what {text} comes to reads back as something else");
        assert_eq!(rule.holds(data), value == Value::Bool(true), "{text} over {data} is {value}");
    }
}
