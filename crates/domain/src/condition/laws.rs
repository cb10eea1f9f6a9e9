//! Laws of every rule.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

use super::*;

proptest! {
    #[test]
    fn any_value_is_compiled_or_refused(source in any_value()) {
        if let Ok(rule) = Rule::new(source.clone()) {
            prop_assert_eq!(rule.source(), &source);
        }
    }

    #[test]
    fn any_rule_is_evaluated_over_any_data(source in any_rule(), data in any_value()) {
        let compiled = rule(source);
        prop_assert_eq!(compiled.holds(&data), compiled.evaluate(&data) == json!(true));
    }

    #[test]
    fn any_rule_is_written_as_it_was_read(source in any_rule()) {
        let compiled = rule(source.clone());
        prop_assert_eq!(serde_json::to_value(&compiled).unwrap(), source);
        let text = serde_json::to_string(&compiled).unwrap();
        // Some fractions change when they are read.
        prop_assert!(serde_json::from_str::<Rule>(&text).is_ok());
    }

    #[test]
    fn an_unknown_operator_is_found_anywhere(way in vec(select(SYMBOLS), 0..30)) {
        let inner = json!({ "equals": [1, 2] });
        let around = |inner, symbol: &&str| match *symbol {
            "!" | "!!" => json!({ *symbol: [inner] }),
            symbol => json!({ symbol: [inner, 1] }),
        };
        let error = Rule::new(way.iter().fold(inner, around)).unwrap_err();
        let places = way.iter().rev().flat_map(|symbol| [".", symbol, "[0]"]).collect::<String>();
        let reason = Reason::UnknownOperator { operator: "equals".into() };
        prop_assert_eq!(error, Invalid::new(format!("condition{places}"), reason));
    }

    #[test]
    fn data_is_not_taken_for_a_rule(looks_like in any_rule()) {
        let data = json!({ "x": looks_like, "list": [looks_like, [looks_like]] });
        for (source, expected) in [
            (json!({ "var": "x" }), &data["x"]),
            (json!({ "var": ["none", { "var": "x" }] }), &data["x"]),
            (json!({ "if": [{ "var": "x" }, { "var": "x" }] }), &data["x"]),
            (json!({ "or": [{ "var": "none" }, { "var": "x" }] }), &data["x"]),
            (json!({ "map": [{ "var": "list" }, { "var": "" }] }), &data["list"]),
            (json!({ "merge": { "var": "list" } }), &data["list"]),
            (json!({ "filter": [{ "var": "list" }, true] }), &data["list"]),
            (json!({ "reduce": [[1], { "var": "accumulator" }, { "var": "x" }] }), &data["x"]),
            (json!({ "reduce": [{ "var": "list" }, { "var": "current" }] }), &data["list"][1]),
        ] {
            prop_assert_eq!(&rule(source).evaluate(&data), expected);
        }
        let is_itself = json!({ "===": [{ "var": "" }, { "var": "" }] });
        for scan in ["all", "some"] {
            let holds = rule(json!({ scan: [{ "var": "list" }, is_itself] })).holds(&data);
            prop_assert!(holds);
        }
    }

    #[test]
    fn where_jsonlogic_rs_is_right_it_says_the_same(
        rule in agreed::any(3, agreed::ROOT), data in agreed::data(),
    ) {
        // `jsonlogic_rs` returns an error where it has no result.
        if let Ok(expected) = jsonlogic_rs::apply(&rule, &data) {
            let actual = Rule::new(rule).unwrap().evaluate(&data);
            prop_assert!(agreed::same(&actual, &expected), "{} is not {}", actual, expected);
        }
    }
}

const SYMBOLS: &[&str] = Rule::OPERATORS;

fn any_scalar() -> impl Strategy<Value = Value> {
    let texts = ["", "a", "a.a", "current", "accumulator", "1", "-1.5e3", "NaN", "inf", "ä\u{0}"];
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3..4_i64).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        select(texts.to_vec()).prop_map(Value::from),
    ]
}

/// Values with many objects that look like rules. Few of them are.
fn any_value() -> impl Strategy<Value = Value> {
    any_scalar().prop_recursive(6, 64, 4, |inner| {
        let symbol = prop_oneof![9 => select(SYMBOLS), 1 => Just("a")];
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::Array),
            vec((symbol.clone(), inner.clone()), 0..3).prop_map(Value::from_iter),
            (symbol, vec(inner, 0..4)).prop_map(|(symbol, items)| json!({ symbol: items })),
        ]
    })
}

/// Rules with any operators and any arguments, in valid numbers.
fn any_rule() -> impl Strategy<Value = Value> {
    let root = select(SYMBOLS).prop_map(|symbol| with_arity(symbol, &[]));
    let leaf = prop_oneof![any_scalar(), root];
    let inner = leaf.prop_recursive(6, 96, 4, |inner| {
        let call = (select(SYMBOLS), vec(inner.clone(), 3));
        prop_oneof![
            4 => call.prop_map(|(symbol, arguments)| with_arity(symbol, &arguments)),
            1 => vec(inner, 0..4).prop_map(Value::Array),
        ]
    });
    (select(SYMBOLS), vec(inner, 3)).prop_map(|(symbol, arguments)| with_arity(symbol, &arguments))
}

fn with_arity(symbol: &str, arguments: &[Value]) -> Value {
    let count = match symbol {
        "!" | "!!" | "var" => 1,
        "<" | "<=" | "substr" | "reduce" | "if" | "and" | "cat" | "missing" | "merge" => 3,
        _ => 2,
    };
    let padding = std::iter::repeat(Value::from("a"));
    let arguments = arguments.iter().cloned().chain(padding).take(count).collect::<Value>();
    json!({ symbol: arguments })
}

fn any_scalar_but_null() -> impl Strategy<Value = Value> {
    any_scalar().prop_filter("null", |value| !value.is_null())
}

/// Rules that `jsonlogic-rs` evaluates correctly. They convert no `null`, contain no infinite
/// number, and have no operator inside of an array.
mod agreed {
    use super::*;

    type Rules = BoxedStrategy<Value>;

    /// Names in the data, by type.
    #[derive(Clone, Copy)]
    pub(super) struct Names {
        numbers: &'static [&'static str],
        texts: &'static [&'static str],
        lists: &'static [&'static str],
    }

    pub(super) const ROOT: Names = Names {
        numbers: &["n", "m", "list.1", "items.0.qty"],
        texts: &["t", "items.1.tag"],
        lists: &["list"],
    };
    const NUMBER: Names = Names { numbers: &[""], texts: &["none"], lists: &["none"] };
    const ITEM: Names = Names { numbers: &["qty"], texts: &["tag"], lists: &["none"] };
    const STEP: Names =
        Names { numbers: &["current", "accumulator"], texts: &["none"], lists: &["none"] };

    pub(super) fn data() -> impl Strategy<Value = Value> {
        let item =
            || (-9..9, "[ab12]{0,2}").prop_map(|(qty, tag)| json!({ "qty": qty, "tag": tag }));
        (-9..9, -9..9, "[ab12]{0,3}", vec(-9..9, 2..5), [item(), item()]).prop_map(
            |(n, m, t, list, items)| {
                json!({ "n": n, "m": m, "t": t, "list": list, "items": items })
            },
        )
    }

    pub(super) fn any(depth: u32, names: Names) -> Rules {
        prop_oneof![
            truth(depth, names),
            number(depth, names),
            text(depth, names),
            list(depth, names)
        ]
        .boxed()
    }

    fn variable(
        names: &'static [&'static str],
        literal: impl Strategy<Value = Value> + 'static,
    ) -> Rules {
        (select(names), literal).prop_map(|(name, value)| json!({ "var": [name, value] })).boxed()
    }

    fn scalar(depth: u32, names: Names) -> Rules {
        prop_oneof![truth(depth, names), number(depth, names), text(depth, names)].boxed()
    }

    fn call(
        symbols: &'static [&'static str],
        arguments: impl Strategy<Value = Vec<Value>> + 'static,
    ) -> Rules {
        (select(symbols), arguments).prop_map(|(symbol, list)| json!({ symbol: list })).boxed()
    }

    fn two(
        one: impl Strategy<Value = Value> + 'static,
        two: impl Strategy<Value = Value> + 'static,
    ) -> BoxedStrategy<Vec<Value>> {
        (one, two).prop_map(|(one, two)| vec![one, two]).boxed()
    }

    fn three(
        one: Rules,
        two: impl Strategy<Value = Value> + 'static,
        three: impl Strategy<Value = Value> + 'static,
    ) -> BoxedStrategy<Vec<Value>> {
        (one, two, three).prop_map(|(one, two, three)| vec![one, two, three]).boxed()
    }

    fn not_empty(text: Value) -> Value {
        json!({ "cat": [text, "."] })
    }

    fn truth(depth: u32, names: Names) -> Rules {
        let Some(inside) = depth.checked_sub(1) else {
            return call(&["!", "!!"], vec(proptest::bool::ANY.prop_map(Value::from), 1));
        };
        let items = Just(json!({ "var": "items" }));
        prop_oneof![
            call(&["==", "!=", "===", "!==", "<", "<=", ">", ">="], vec(scalar(inside, names), 2)),
            call(&["<", "<="], vec(number(inside, names), 3)),
            call(&["!", "!!"], vec(super::any_scalar_but_null(), 1)),
            call(&["!", "!!"], vec(list(inside, names), 1)),
            call(&["and", "or"], vec(truth(inside, names), 1..4)),
            call(&["in"], two(text(0, names), text(inside, names).prop_map(not_empty))),
            call(&["in"], two(scalar(0, names), list(inside, names))),
            call(&["all", "some", "none"], two(number_list(), truth(inside, NUMBER))),
            call(&["all", "some", "none"], two(items, truth(inside, ITEM))),
        ]
        .boxed()
    }

    fn number(depth: u32, names: Names) -> Rules {
        let literal =
            || prop_oneof![(-20..20).prop_map(Value::from), (-9.0..9.0).prop_map(Value::from)];
        let Some(inside) = depth.checked_sub(1) else {
            return prop_oneof![literal(), variable(names.numbers, literal())].boxed();
        };
        prop_oneof![
            call(&["+", "*", "max", "min"], vec(number(inside, names), 1..4)),
            call(&["+", "-", "/"], vec(text(0, names), 2)),
            call(&["-", "/", "%"], vec(scalar_but_text(inside, names), 2)),
            call(&["-"], vec(number(inside, names), 1)),
            call(&["if", "?:"], three(truth(inside, names), number(0, names), number(0, names))),
            call(&["reduce"], three(number_list(), number(inside, STEP), number(0, names))),
        ]
        .boxed()
    }

    fn scalar_but_text(depth: u32, names: Names) -> Rules {
        prop_oneof![number(depth, names), truth(0, names)].boxed()
    }

    fn text(depth: u32, names: Names) -> Rules {
        let literal = || "[ab12]{0,3}".prop_map(Value::from);
        let Some(inside) = depth.checked_sub(1) else {
            return prop_oneof![literal(), variable(names.texts, literal())].boxed();
        };
        let places = || (-5..5).prop_map(Value::from);
        prop_oneof![
            call(&["cat"], vec(prop_oneof![text(inside, names), truth(0, names)], 1..4)),
            call(&["substr"], two(text(inside, names), places())),
            call(&["substr"], three(text(inside, names), places(), places())),
            call(&["if"], three(truth(inside, names), text(0, names), text(0, names))),
        ]
        .boxed()
    }

    fn number_list() -> Rules {
        vec(-9..9, 0..4).prop_map(Value::from).boxed()
    }

    fn list(depth: u32, names: Names) -> Rules {
        let Some(inside) = depth.checked_sub(1) else {
            return prop_oneof![number_list(), variable(names.lists, number_list())].boxed();
        };
        prop_oneof![
            call(&["merge"], vec(prop_oneof![list(inside, names), number(0, names)], 0..3)),
            call(&["map", "filter"], two(list(0, names), scalar(inside, NUMBER))),
            call(
                &["missing"],
                vec(
                    select(&["n", "none", "items.0.qty", "items.5"][..]).prop_map(Value::from),
                    0..3
                )
            ),
            call(
                &["missing_some"],
                two((0..3).prop_map(Value::from), Just(json!(["n", "none", "nor.this"])))
            ),
        ]
        .boxed()
    }

    /// Returns `true` if two results are equal. 1 equals 1.0.
    pub(super) fn same(one: &Value, other: &Value) -> bool {
        match (one, other) {
            (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
            (Value::Array(one), Value::Array(other)) => {
                one.len() == other.len()
                    && one.iter().zip(other).all(|(one, other)| same(one, other))
            }
            (one, other) => one == other,
        }
    }
}

fn rule(source: Value) -> Rule {
    Rule::new(source).unwrap()
}
