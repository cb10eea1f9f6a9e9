//! No value makes a filter, a test, a function or an operator panic, and no result is too large.

use minijinja::value::Kwargs;
use minijinja::{Error, State};

use super::super::Template;
use super::super::budget::weigh;
use super::super::engine::{FILTERS, TESTS};
use super::super::*;
use super::*;

/// Functions that stand for operators, and those of templates.
const FUNCTIONS: [&str; 9] = [
    "range",
    edit::CONCAT,
    edit::ADD,
    edit::MULTIPLY,
    edit::LIST,
    edit::MAP,
    edit::KEEP,
    edit::READ,
    edit::ITEM,
];
/// Operators that the engine runs itself.
const OPERATORS: [&str; 14] =
    ["-", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and"];

fn deep(levels: usize) -> Value {
    (0..levels).fold(Value::from("x"), |inner, _| Value::from(vec![inner]))
}

fn values() -> Vec<Value> {
    let map = |value: Value| Value::from_pairs([(Value::from("a"), value)]);
    let list = |values: &[Value]| Value::from(values.to_vec());
    let mut values = vec![Value::UNDEFINED, Value::from(()), Value::from(true)];
    values.extend([0, 1, -1, 2, 1000, i64::MIN, i64::MAX].map(Value::from));
    values.extend([u64::MAX].map(Value::from));
    values.extend([i128::MIN, i128::MAX].map(Value::from));
    values.extend([0.0, -0.0, 1.5, f64::MAX, f64::MIN_POSITIVE].map(Value::from));
    values.extend([f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(Value::from));
    let texts = ["", "a", "a.b", "upper", "odd", "in", "ceil", "value", "%s %d %5.2f %(a)s", "%c"];
    values.extend(texts.map(Value::from));
    values.push(Value::from("\u{1f980}<&'\"\n\r\n\t \u{df}".repeat(500)));
    values.push(Value::from_safe_string("<b>\u{fc}</b>".into()));
    values.push(list(&[]));
    values.push(list(&[Value::from("b"), Value::from(1), Value::from(f64::NAN), Value::UNDEFINED]));
    values.push(list(&[list(&[Value::from("k"), Value::from(1)]), list(&[])]));
    values.push(Value::from((0..2000).collect::<Vec<_>>()));
    values.push(Value::make_iterable(|| 0..3));
    values.push(list(&[map(Value::from(1)), map(Value::from("x")), Value::from(2)]));
    values.push(map(deep(3)));
    values.extend([deep(90), deep(300)]);
    values
}

// Calls `call` with a fresh budget, and checks its result.
fn run(what: &str, args: &[Value], call: impl FnOnce(&mut State<'_, '_>) -> Result<Value, Error>) {
    let mut state = ENGINE.empty_state();
    // A value that is too deep is handed through, and refused when it is read.
    let sound = weigh(args, Template::MAX_WEIGHT).is_ok();
    if let Ok(result) = call(&mut state)
        && sound
    {
        assert!(
            weigh([&result], 2 * Template::MAX_WEIGHT).is_ok(),
            "{what} of {args:?} makes too much"
        );
    }
}

fn run_all(args: &[Value]) {
    for name in FILTERS {
        run(name, args, |state| state.apply_filter(name, args));
    }
    for name in TESTS {
        run(name, args, |state| state.perform_test(name, args).map(Value::from));
    }
    for name in FUNCTIONS {
        run(name, args, |state| {
            let function = state.lookup(name).expect("a function of templates");
            function.call(state, args)
        });
    }
}

#[test]
fn no_value_alone_makes_a_builtin_panic() {
    run_all(&[]);
    for value in values() {
        run_all(&[value]);
    }
}

#[test]
fn no_two_values_make_a_builtin_panic() {
    let values = values();
    for (a, b) in values.iter().flat_map(|a| values.iter().map(move |b| (a, b))) {
        run_all(&[a.clone(), b.clone()]);
    }
}

#[test]
fn no_two_values_make_an_operator_panic() {
    let values = values();
    let templates = OPERATORS.map(|operator| {
        Template::new(format!("{{{{ payload.a {operator} payload.b }}}}{{{{ -payload.a }}}}"))
            .unwrap()
    });
    for (a, b) in values.iter().flat_map(|a| values.iter().map(move |b| (a, b))) {
        let payload = Value::from_pairs([("a", a.clone()), ("b", b.clone())]);
        let variables = Variables::of(Value::from_pairs([("payload", payload)]));
        for template in &templates {
            let _ = template.rendered(Format::Plain, &variables);
        }
    }
}

proptest! {
    #[test]
    fn no_arguments_make_a_builtin_panic(
        args in proptest::collection::vec(proptest::sample::select(values()), 2..6),
        named in proptest::collection::vec(
            (proptest::sample::select(NAMES.to_vec()), proptest::sample::select(values())),
            0..3,
        ),
    ) {
        let mut args = args;
        if !named.is_empty() {
            args.push(Kwargs::from_iter(named).into());
        }
        run_all(&args);
    }
}
