use std::slice;

use proptest::prelude::*;
use serde_json::json;

use super::compare::tests::value;
use super::*;
use crate::error::Reason;
use crate::sample;

fn object(value: Value) -> Object {
    value.try_into().unwrap()
}

fn part(field: &str, operator: FilterOperator, value: &str) -> FilterChild {
    let (field, value) = (field.to_owned(), value.to_owned());
    FilterChild::Part(FieldFilterPart { field, value, operator, on: FilterSource::Payload })
}

fn group(value: Joint, children: impl IntoIterator<Item = FilterChild>) -> Filter {
    let children = children.into_iter().collect();
    Filter { is_negated: false, kind: FilterType::Group, value, children }
}

fn not(group: Filter) -> Filter {
    group.negated()
}

// Chain of groups, each the only child of the one before.
fn nested(depth: usize, innermost: FilterChild) -> Filter {
    (1..depth).fold(group(Joint::And, [innermost]), |inner, _| {
        group(Joint::And, [FilterChild::Group(inner)])
    })
}

fn yes() -> FilterChild {
    part("missing", FilterOperator::NotEqual, "")
}

fn no() -> FilterChild {
    part("missing", FilterOperator::Equal, "")
}

fn report(filters: &[Filter]) -> FilterReport {
    let none = Object::default();
    evaluate(filters, &FilterFacts::new(&none, &none))
}

#[track_caller]
fn check(filters: &[Filter], holds: bool) {
    let report = report(filters);
    assert_eq!(report.holds, holds);
    assert_eq!(report.checks.len(), leaves(filters), "every comparison is reported");
    assert_eq!(super::check(filters), Ok(()));
}

fn leaves(filters: &[Filter]) -> usize {
    let children = filters.iter().flat_map(|group| &group.children);
    let leaf = |child: &FilterChild| match child {
        FilterChild::Part(_) => 1,
        FilterChild::Group(group) => leaves(slice::from_ref(group)),
    };
    children.map(leaf).sum()
}

#[test]
fn groups_are_joined_and_negated() {
    use Joint::{And, Or};
    for (joint, children, holds) in [
        (And, vec![], true),
        (And, vec![yes()], true),
        (And, vec![no()], false),
        (And, vec![yes(), yes()], true),
        (And, vec![no(), yes()], false),
        (Or, vec![], true),
        (Or, vec![yes()], true),
        (Or, vec![no()], false),
        (Or, vec![yes(), no()], true),
        (Or, vec![no(), no()], false),
    ] {
        let group = group(joint, children);
        check(slice::from_ref(&group), holds);
        check(&[not(group)], !holds);
    }
}

#[test]
fn one_of_the_outer_groups_is_enough() {
    let (yes, no) = (group(Joint::And, [yes()]), group(Joint::And, [no()]));
    check(&[], true);
    check(&[no.clone(), no.clone()], false);
    check(&[no.clone(), yes.clone()], true);
    check(&[yes.clone(), no], true);
    check(&[not(yes.clone()), not(yes)], false);
}

#[test]
fn groups_are_nested() {
    let either = FilterChild::Group(group(Joint::Or, [no(), yes()]));
    let neither = FilterChild::Group(not(group(Joint::Or, [no(), no()])));
    let both = FilterChild::Group(group(Joint::And, [no(), yes()]));
    check(&[group(Joint::And, [either.clone(), neither.clone()])], true);
    check(&[group(Joint::And, [either.clone(), both.clone()])], false);
    check(&[not(group(Joint::Or, [both, no()]))], true);
    check(&[not(group(Joint::And, [either, neither]))], false);
}

#[test]
fn a_fact_is_found_by_its_path() {
    let subscriber = object(json!({ "data": { "plan": "pro" } }));
    let payload = object(json!({
        "order.total": 1,
        "order": { "total": 2, "items": [{ "price": 3 }, null] },
        "": { "": 4 },
        "text": "abc",
    }));
    let facts = FilterFacts::new(&subscriber, &payload);
    for (on, field, found) in [
        (FilterSource::Payload, "order.total", Some(json!(1))),
        (FilterSource::Payload, "order.items.0.price", Some(json!(3))),
        (FilterSource::Payload, "order.items.1", Some(json!(null))),
        (FilterSource::Payload, "order.items.2", None),
        (FilterSource::Payload, "order.items.-1", None),
        (FilterSource::Payload, "order.items.length", None),
        (FilterSource::Payload, "order.items.99999999999999999999", None),
        (FilterSource::Payload, "order.", None),
        (FilterSource::Payload, ".", Some(json!(4))),
        (FilterSource::Payload, "text.0", None),
        (FilterSource::Payload, "data.plan", None),
        (FilterSource::Subscriber, "data.plan", Some(json!("pro"))),
        (FilterSource::Subscriber, "order", None),
    ] {
        assert_eq!(facts.find(on, field).as_deref(), found.as_ref(), "{on} {field}");
    }
}

#[test]
fn a_report_says_what_was_expected_and_what_was_there() {
    let payload = object(json!({ "total": 5, "none": null, "note": "x".repeat(300) }));
    let filter = not(group(
        Joint::And,
        [
            part("total", FilterOperator::Larger, "5"),
            part("none", FilterOperator::Equal, "null"),
            part("missing", FilterOperator::NotIn, "a,b"),
            part("note", FilterOperator::Like, "x%"),
            part("total", FilterOperator::In, &"5,".repeat(1_000)),
        ],
    ));

    let report = evaluate(&[filter], &FilterFacts::new(&payload, &payload));

    let beginning = format!("\"{}...", "x".repeat(255));
    let check = |field, operator, expected, actual, held| FilterCheck {
        field: String::from(field),
        operator,
        on: FilterSource::Payload,
        expected: String::from(expected),
        actual,
        held,
    };
    let checks = vec![
        check("total", FilterOperator::Larger, "5", Some(json!(5)), false),
        check("none", FilterOperator::Equal, "null", Some(json!(null)), true),
        check("missing", FilterOperator::NotIn, "a,b", None, true),
        check("note", FilterOperator::Like, "x%", Some(json!(beginning)), true),
        check(
            "total",
            FilterOperator::In,
            &format!("{}...", "5,".repeat(128)),
            Some(json!(5)),
            true,
        ),
    ];
    assert_eq!(report, FilterReport { holds: true, checks });
    let missing = concat!(
        r#"{"field":"missing","operator":"NOT_IN","on":"payload","#,
        r#""expected":"a,b","held":true}"#
    );
    assert_eq!(serde_json::to_string(&report.checks[2]).unwrap(), missing);
}

#[test]
fn filters_are_written_as_they_are_read() {
    let json = json!({ "isNegated": true, "type": "MULTI_LIST", "value": "OR", "children": [
        { "field": "a.b", "value": "1", "operator": "EQUAL", "on": "payload" },
        { "isNegated": false, "type": "GROUP", "value": "AND", "children": [] },
    ] });
    let filter: Filter = serde_json::from_value(json.clone()).unwrap();
    let child = FilterChild::Group(group(Joint::And, []));
    assert_eq!(filter.children, [part("a.b", FilterOperator::Equal, "1"), child]);
    assert_eq!(serde_json::to_value(filter).unwrap(), json);

    let short = serde_json::from_str::<Filter>(r#"{"type":"GROUP","value":"AND"}"#);
    assert_eq!(short.unwrap(), group(Joint::And, []));
}

#[test]
fn what_is_no_filter_is_refused_for_what_is_wrong_with_it() {
    for (child, problem) in [
        (json!({ "type": "TEXT", "value": "XOR" }), "`value` must be one of AND, OR"),
        (json!({ "value": "AND" }), "missing field `type`"),
        (json!({ "field": "a", "on": "payload" }), "missing field `value`"),
        (
            json!({ "field": "a", "on": "x" }),
            "`on` must be one of subscriber, payload, steps, actor, context",
        ),
        (
            json!({ "field": "a", "operator": "EQUALS" }),
            "`operator` must be one of LARGER, SMALLER, LARGER_EQUAL, SMALLER_EQUAL, EQUAL, \
             NOT_EQUAL, ALL_IN, ANY_IN, NOT_IN, BETWEEN, NOT_BETWEEN, LIKE, NOT_LIKE, IN",
        ),
    ] {
        let filter = json!({ "type": "GROUP", "value": "AND", "children": [child] });
        let error = serde_json::from_value::<Filter>(filter).unwrap_err();
        assert_eq!(error.to_string(), problem);
    }
}

#[test]
fn an_actor_and_contexts_are_facts() {
    let none = Object::default();
    let actor = object(json!({ "data": { "role": "admin" } }));
    let key = "tenant:acme".parse().unwrap();
    let data = object(json!({ "plan": { "seats": 4 } }));
    let contexts = [Context::new(sample::id(7), &sample::home(), key, data, sample::at(0))];
    let facts = FilterFacts::new(&none, &none);
    let known = facts.with_origin(Some(&actor), &contexts);
    for (filter, holds) in [
        (Filter::actor("data.role").equals("admin"), true),
        (Filter::actor("data.role").equals("guest"), false),
        (Filter::context("tenant.id").equals("acme"), true),
        (Filter::context("tenant.data.plan.seats").greater_than(3), true),
        (Filter::context("tenant.data").equals(r#"{"plan":{"seats":4}}"#), true),
        (Filter::context("tenant.plan").equals("4"), false),
        (Filter::context("tenant").equals("acme"), false),
        (Filter::context("app.id").equals("acme"), false),
    ] {
        let filters = [filter];
        assert_eq!(evaluate(&filters, &known).holds, holds, "{filters:?}");
        assert!(!evaluate(&filters, &facts).holds, "{filters:?}");
    }
    for (filter, problem) in [
        (Filter::actor("role").equals("a"), "actor.role`"),
        (Filter::actor("frstName").equals("a"), "actor.frstName`; did you mean `actor.firstName`?"),
        (
            Filter::context("tenant.dta.plan").equals("a"),
            "context.tenant.dta.plan`; did you mean `context.tenant.data`?",
        ),
        (
            Filter::context("tenant").equals("acme"),
            "context.tenant`; did you mean `context.tenant.id`?",
        ),
        (
            Filter::context("tenant.id.x").equals("acme"),
            "context.tenant.id.x`; did you mean `context.tenant.id`?",
        ),
    ] {
        let field = "`filters[0].children[0].field` has no variable `";
        let problem = format!("{field}{problem}");
        assert_eq!(super::check(slice::from_ref(&filter)).unwrap_err().to_string(), problem);
        assert_eq!(check::check_step(&[filter]).unwrap_err().to_string(), problem);
    }
}

#[test]
fn what_is_saved_has_bounds() {
    let crowd = |count| group(Joint::And, vec![yes(); count]);
    let second = |operator, value: &str| {
        vec![crowd(0), group(Joint::Or, [yes(), part("a", operator, value)])]
    };
    let too_deep = "`filters` must be nested at most 16 levels deep";
    let too_many = "`filters` must have at most 256 items";
    let no_span = "`filters[1].children[1].value` must be two values, as in `1,5`";
    let too_long = "`filters[1].children[1].value` must be at most 127 characters long";
    for (filters, problem) in [
        (vec![nested(16, yes())], None),
        (vec![nested(17, yes())], Some(too_deep)),
        (vec![crowd(256)], None),
        (vec![crowd(255), crowd(2)], Some(too_many)),
        (vec![crowd(0); 257], Some(too_many)),
        (second(FilterOperator::Between, "1,5"), None),
        (second(FilterOperator::Between, "1"), Some(no_span)),
        (second(FilterOperator::NotBetween, "1,2,3"), Some(no_span)),
        (second(FilterOperator::Like, &"_".repeat(127)), None),
        (second(FilterOperator::Like, &"_".repeat(128)), Some(too_long)),
        (second(FilterOperator::NotLike, &"%".repeat(128)), Some(too_long)),
    ] {
        let refused = super::check(&filters).map_err(|invalid| invalid.to_string());
        assert_eq!(refused.err().as_deref(), problem);
    }
}

#[test]
fn what_is_past_the_bounds_does_not_hold() {
    check(&[nested(16, yes())], true);
    assert_eq!(report(&[nested(17, yes())]), FilterReport { holds: false, checks: vec![] });
    assert!(!report(&[nested(16, FilterChild::Group(not(group(Joint::And, [no()]))))]).holds);

    let crowd = report(&[group(Joint::And, vec![yes(); 257])]);
    assert_eq!((crowd.holds, crowd.checks.len()), (false, 256));
}

#[test]
fn a_bottomless_filter_is_refused_and_not_followed() {
    let mut filters = [nested(200_000, yes())];
    let (refused, report) = (super::check(&filters), report(&filters));

    // The derived drop would recurse once per level.
    while let Some(FilterChild::Group(inner)) = filters[0].children.pop() {
        filters = [inner];
    }
    let reason = Reason::TooDeep { max: Filter::MAX_DEPTH };
    assert_eq!(refused.unwrap_err().reason, reason);
    assert_eq!(report, FilterReport { holds: false, checks: vec![] });
}

#[test]
fn the_deepest_json_there_is_can_be_read() {
    let text = |depth: usize| {
        let open = r#"{"type":"GROUP","value":"AND","children":["#;
        open.repeat(depth) + &"]}".repeat(depth)
    };
    assert!(serde_json::from_str::<Filter>(&text(63)).is_ok());
    assert!(serde_json::from_str::<Filter>(&text(1_000_000)).is_err());
}

fn facts() -> impl Strategy<Value = Object> {
    let entries = prop::collection::vec(("[ab]|a\\.b", value()), 0..4);
    entries.prop_map(|entries| object(Value::Object(entries.into_iter().collect())))
}

fn leaf() -> impl Strategy<Value = FilterChild> {
    let operator = proptest::sample::select(FilterOperator::ALL);
    let on = proptest::sample::select(FilterSource::ALL);
    let field = r"[ab](\.[ab01]){0,3}|\PC{0,3}";
    (field, "[ab%_,0-2]{0,4}|\\PC*", operator, on).prop_map(|(field, value, operator, on)| {
        FilterChild::Part(FieldFilterPart { field, value, operator, on })
    })
}

fn filter() -> impl Strategy<Value = Filter> {
    let tree = |children: BoxedStrategy<FilterChild>| {
        let joint = proptest::sample::select(Joint::ALL);
        let kind = proptest::sample::select(FilterType::ALL);
        let children = prop::collection::vec(children, 0..4);
        (any::<bool>(), kind, joint, children).prop_map(|(is_negated, kind, value, children)| {
            Filter { is_negated, kind, value, children }
        })
    };
    let child = leaf()
        .prop_recursive(4, 24, 4, move |inner| tree(inner.boxed()).prop_map(FilterChild::Group));
    tree(child.boxed())
}

proptest! {
    #[test]
    fn any_filter_has_a_report_over_any_facts(
        filters in prop::collection::vec(filter(), 0..3),
        subscriber in facts(),
        payload in facts(),
    ) {
        let facts = FilterFacts::new(&subscriber, &payload);
        let report = evaluate(&filters, &facts);
        prop_assert_eq!(report.checks.len(), leaves(&filters).min(Filter::MAX_PARTS));
        prop_assert_eq!(evaluate(&filters, &facts), report);
    }

    #[test]
    fn a_negated_group_makes_the_same_comparisons_and_says_the_opposite(
        filter in filter(),
        payload in facts(),
    ) {
        let facts = FilterFacts::new(&payload, &payload);
        let affirmed = evaluate(slice::from_ref(&filter), &facts);
        let negated = evaluate(&[not(filter)], &facts);
        prop_assert_eq!(negated.holds, !affirmed.holds);
        prop_assert_eq!(negated.checks, affirmed.checks);
    }

    #[test]
    fn any_filter_is_read_as_it_is_written(filter in filter()) {
        let json = serde_json::to_string(&filter).unwrap();
        prop_assert_eq!(serde_json::from_str::<Filter>(&json).unwrap(), filter);
    }
}

/// Steps are known to the conditions of steps, and to those of their variants.
#[test]
fn only_the_filters_of_steps_may_refer_to_steps() {
    let filters = [Filter::payload("a").equals(1).and(Filter::step("mail.seen").equals(true))];
    assert_eq!(check_step(&filters), Ok(()));
    let error = super::check(&filters).unwrap_err().to_string();
    assert_eq!(
        error,
        "`filters[0].children[1].on` must be one of subscriber, payload, actor, context"
    );
    assert_eq!(step_paths(&filters), [("filters[0].children[1]".to_owned(), "mail", Some("seen"))]);
}

/// One row per payload: whether a comparison of `payload.x` holds. A field of that name comes first.
#[test]
fn a_path_in_the_payload_may_begin_with_its_root() {
    let filter = group(Joint::And, [part("payload.x", FilterOperator::Equal, "1")]);
    for (payload, holds) in [
        (json!({ "x": 1 }), true),
        (json!({ "x": 2 }), false),
        (json!({}), false),
        (json!({ "payload": { "x": 1 }, "x": 2 }), true),
        (json!({ "payload": { "x": 2 }, "x": 1 }), false),
        (json!({ "payload": {}, "x": 1 }), true),
        (json!({ "payload.x": 1, "x": 2 }), true),
    ] {
        let (payload, none) = (object(payload.clone()), Object::default());
        let facts = FilterFacts::new(&none, &payload);
        let report = evaluate(slice::from_ref(&filter), &facts);
        assert_eq!(report.holds, holds, "{payload:?}");
    }
}
