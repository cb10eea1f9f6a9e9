//! Any step filters, over any facts.

use arbitrary::{Result, Unstructured};
use domain::filter::{
    Filter, FilterCheck, FilterChild, FilterFacts, FilterOperator, FilterSource, FilterType, Joint,
    check, evaluate,
};
use domain::json::Object;
use serde_json::{Value, json};

use crate::json;

const WORDS: &[&str] = &[
    "a",
    "b",
    "a.b",
    "a.0",
    "a.b.1",
    "",
    ".",
    "1",
    "1.0",
    "-2",
    "1e2",
    "x, y",
    "[1, \"x\"]",
    "true",
    "null",
    "%a_",
    "%",
    "_",
    "\u{130}",
    "2026-11-20T12:00:00Z",
    "2026-11-20T13:00:00+01:00",
    "1,3",
];

/// Filters, a subscriber and a payload: the JSON texts that `bytes` are, or else something made up
/// from them.
pub fn decode(bytes: &[u8]) -> Vec<Value> {
    json::texts(bytes).or_else(|| made(&mut Unstructured::new(bytes)).ok()).unwrap_or_default()
}

fn made(from: &mut Unstructured<'_>) -> Result<Vec<Value>> {
    let mut groups = Vec::new();
    for _ in 0..from.int_in_range(0..=2)? {
        groups.push(group(from, 3)?);
    }
    let mut facts =
        || Ok(json!({ "a": json::made(from, WORDS, 2)?, "b": json::made(from, WORDS, 2)? }));
    Ok(vec![json!(groups), facts()?, facts()?])
}

fn group(from: &mut Unstructured<'_>, depth: usize) -> Result<Value> {
    let mut children = Vec::new();
    for _ in 0..from.int_in_range(0..=3)? {
        let goes_on = depth > 0 && from.ratio(1, 3)?;
        children.push(if goes_on { group(from, depth - 1)? } else { part(from)? });
    }
    Ok(json!({
        "isNegated": from.arbitrary::<bool>()?,
        "type": from.choose(FilterType::ALL)?,
        "value": from.choose(Joint::ALL)?,
        "children": children,
    }))
}

fn part(from: &mut Unstructured<'_>) -> Result<Value> {
    Ok(json!({
        "field": from.choose(WORDS)?,
        "value": from.choose(WORDS)?,
        "operator": from.choose(FilterOperator::ALL)?,
        "on": from.choose(FilterSource::ALL)?,
    }))
}

/// Evaluates the first of `values` over the two others.
///
/// # Panics
///
/// If the report contradicts its own comparisons, or a filter agrees with its negation.
pub fn run(values: &[Value]) {
    let at = |place: usize| values.get(place).cloned().unwrap_or_default();
    let Ok(filters) = serde_json::from_value::<Vec<Filter>>(at(0)) else { return };
    let [subscriber, payload] = [1, 2].map(|place| Object::try_from(at(place)).unwrap_or_default());
    let facts = FilterFacts::new(&subscriber, &payload);
    let report = evaluate(&filters, &facts);
    assert!(report.checks.len() <= Filter::MAX_PARTS, "a report is too long");
    let Ok(text) = serde_json::to_string(&filters) else {
        assert!(check(&filters).is_err(), "filters that are not too deep are JSON");
        return;
    };
    let again: Vec<Filter> = serde_json::from_str(&text).expect("filters can be read again");
    assert_eq!(again, filters, "filters read back as others");
    if check(&filters).is_err() {
        return;
    }

    let mut checks = report.checks.iter();
    let verdicts: Vec<bool> = filters.iter().map(|filter| rejoined(filter, &mut checks)).collect();
    assert!(checks.next().is_none(), "{text} has fewer comparisons than its report");
    let holds = verdicts.is_empty() || verdicts.contains(&true);
    assert_eq!(report.holds, holds, "{text} and its report differ: {report:?}");
    for (filter, held) in filters.iter().zip(verdicts) {
        let negated = filter.clone().negated();
        let negated = evaluate(&[negated], &facts);
        assert_eq!(negated.holds, !held, "the negation of {filter:?} says the same");
    }
    for comparison in &report.checks {
        check_opposite(comparison, &facts);
    }
}

// Result of a group, computed from the results that the report has for its comparisons.
fn rejoined<'c>(group: &Filter, checks: &mut impl Iterator<Item = &'c FilterCheck>) -> bool {
    let mut verdicts = Vec::new();
    for child in &group.children {
        verdicts.push(match child {
            FilterChild::Group(group) => rejoined(group, checks),
            FilterChild::Part(part) => {
                let check = checks.next().expect("every comparison is in the report");
                assert_eq!((&check.field, check.operator), (&part.field, part.operator));
                check.held
            }
        });
    }
    let joined = match group.value {
        Joint::And => !verdicts.contains(&false),
        Joint::Or => verdicts.is_empty() || verdicts.contains(&true),
    };
    joined != group.is_negated
}

// Checks that exactly one of an operator and its opposite holds.
fn check_opposite(comparison: &FilterCheck, facts: &FilterFacts<'_>) {
    let opposite = match comparison.operator {
        FilterOperator::Equal => FilterOperator::NotEqual,
        FilterOperator::In => FilterOperator::NotIn,
        FilterOperator::Between => FilterOperator::NotBetween,
        FilterOperator::Like => FilterOperator::NotLike,
        _ => return,
    };
    let FilterCheck { field, expected, on, .. } = comparison;
    let part = json!({ "field": field, "value": expected, "operator": opposite, "on": on });
    let group = json!({ "type": "GROUP", "value": "AND", "children": [part] });
    let filters: Vec<Filter> = serde_json::from_value(json!([group])).expect("a filter");
    assert_eq!(evaluate(&filters, facts).holds, !comparison.held, "{comparison:?}");
}
