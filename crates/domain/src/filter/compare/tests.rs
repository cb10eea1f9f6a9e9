use FilterOperator::*;
use proptest::prelude::*;
use serde_json::json;

use super::*;

const MISSING: Option<Value> = None;

fn opposite(operator: FilterOperator) -> Option<FilterOperator> {
    match operator {
        Equal => Some(NotEqual),
        In => Some(NotIn),
        Between => Some(NotBetween),
        Like => Some(NotLike),
        NotEqual => Some(Equal),
        NotIn => Some(In),
        NotBetween => Some(Between),
        NotLike => Some(Like),
        Larger | Smaller | LargerEqual | SmallerEqual | AllIn | AnyIn => None,
    }
}

#[track_caller]
fn check(actual: impl Into<Option<Value>>, operator: FilterOperator, value: &str, holds: bool) {
    let actual = actual.into();
    let row = format!("{actual:?} {operator} {value}");
    assert_eq!(operator.holds(actual.as_ref(), value), holds, "{row}");
    if let Some(opposite) = opposite(operator) {
        assert_eq!(opposite.holds(actual.as_ref(), value), !holds, "the opposite of {row}");
    }
}

/// One row per operator: a value, a fact that matches, one that does not, and one of a type
/// without a meaning for the operator.
#[test]
fn every_operator_with_every_kind_of_fact() {
    for (operator, value, fits, misses, other) in [
        (Larger, "5", json!(6), json!(5), json!(true)),
        (Smaller, "5", json!(4), json!(5), json!(null)),
        (LargerEqual, "5", json!(5), json!(4), json!([6])),
        (SmallerEqual, "5", json!(5), json!(6), json!({ "a": 4 })),
        (Equal, "5", json!(5), json!(6), json!([5])),
        (AllIn, "a,b", json!(["a", "b"]), json!(["a", "c"]), json!(1)),
        (AnyIn, "a,b", json!(["c", "b"]), json!(["c", "d"]), json!(1)),
        (In, "a,b", json!("b"), json!("c"), json!(["a"])),
        (Between, "1,5", json!(5), json!(6), json!(false)),
        (Like, "a%", json!("abc"), json!("bcd"), json!(["abc"])),
    ] {
        check(fits, operator, value, true);
        check(misses, operator, value, false);
        check(other, operator, value, false);
        check(MISSING, operator, value, false);
    }
    for operator in FilterOperator::ALL {
        let negated = matches!(operator, NotEqual | NotIn | NotBetween | NotLike);
        check(MISSING, *operator, "1,5", negated);
    }
}

#[test]
fn a_value_is_read_as_the_type_of_the_fact() {
    for (actual, value, holds) in [
        (json!("5"), "5", true),
        (json!("5"), "5.0", false),
        (json!("a"), "A", false),
        (json!(""), "", true),
        (json!(5), "5.0", true),
        (json!(5), " 5e0 ", true),
        (json!(5.5), "5.5", true),
        (json!(0), "-0.0", true),
        (json!(0), "", false),
        (json!(5), "five", false),
        (json!(true), "true", true),
        (json!(true), "1", false),
        (json!(false), "false", true),
        (json!(false), "no", false),
        (json!(null), "null", true),
        (json!(null), "", false),
        (json!([1, "a"]), r#"[ 1, "a" ]"#, true),
        (json!([1, "a"]), r#"["a", 1]"#, false),
        (json!({ "a": 1, "b": 2 }), r#"{"b":2,"a":1}"#, true),
        (json!({}), "", false),
    ] {
        check(actual, Equal, value, holds);
    }
}

#[test]
fn facts_are_ordered_as_numbers_as_instants_or_as_texts() {
    for (actual, value, order) in [
        (json!(10), "9", Some(Ordering::Greater)),
        (json!("10"), "9", Some(Ordering::Greater)),
        (json!("10"), "9a", Some(Ordering::Less)),
        (json!(9_007_199_254_740_993_u64), "9007199254740992", Some(Ordering::Greater)),
        (json!(9_007_199_254_740_993_u64), "9007199254740992.0", Some(Ordering::Greater)),
        (json!(9_007_199_254_740_992.0), "9007199254740993", Some(Ordering::Less)),
        (json!(u64::MAX), "18446744073709551614", Some(Ordering::Greater)),
        (json!(i64::MIN), "18446744073709551615", Some(Ordering::Less)),
        (json!(u64::MAX), "1e300", Some(Ordering::Less)),
        (json!(i64::MIN), "-1e300", Some(Ordering::Greater)),
        (json!(-5), "-5.5", Some(Ordering::Greater)),
        (json!(5), "5.5", Some(Ordering::Less)),
        (json!(0.1), "0.10", Some(Ordering::Equal)),
        (json!(5), "five", None),
        (json!(5), "inf", None),
        (json!(5), "NaN", None),
        (json!(5), "2026-11-20T12:00:00Z", None),
        (json!("2026-11-20T12:00:00Z"), "2026-11-20T13:00:00+02:00", Some(Ordering::Greater)),
        (json!("2026-11-20T12:00:00Z"), "2026-11-20T12:00:00.0001Z", Some(Ordering::Less)),
        (json!("2026-11-20T12:00:00Z"), "2026-11-20T13:00:00+01:00", Some(Ordering::Equal)),
        (json!("2026-11-20"), "2026-11-20T00:00:00Z", Some(Ordering::Less)),
        (json!("b"), "a", Some(Ordering::Greater)),
        (json!("b"), "B", Some(Ordering::Greater)),
        (json!(""), "", Some(Ordering::Equal)),
        (json!(true), "false", None),
        (json!(null), "null", None),
        (json!([1]), "[1]", None),
        (json!({}), "{}", None),
    ] {
        check(actual.clone(), Larger, value, order.is_some_and(Ordering::is_gt));
        check(actual.clone(), Smaller, value, order.is_some_and(Ordering::is_lt));
        check(actual.clone(), LargerEqual, value, order.is_some_and(Ordering::is_ge));
        check(actual, SmallerEqual, value, order.is_some_and(Ordering::is_le));
    }
}

#[test]
fn a_span_includes_its_bounds() {
    for (actual, value, holds) in [
        (json!(1), "1,5", true),
        (json!(5), " 1 , 5 ", true),
        (json!(5), "[1, 5]", true),
        (json!(0), "1,5", false),
        (json!(3), "5,1", false),
        (json!("2026-06-01T00:00:00Z"), "2026-01-01T00:00:00Z,2026-12-31T00:00:00Z", true),
        (json!("m"), r#"["a","z"]"#, true),
        (json!(3), "1", false),
        (json!(3), "1,", false),
        (json!(3), "1,3,5", false),
        (json!(3), "", false),
        (json!(3), "a,b", false),
    ] {
        check(actual, Between, value, holds);
    }
}

#[test]
fn values_are_listed_between_commas_or_as_json() {
    for (actual, value, holds) in [
        (json!("b"), "a, b ,c", true),
        (json!("a,b"), "a,b", false),
        (json!("a,b"), r#"["a,b"]"#, true),
        (json!("ab"), "abc", false),
        (json!(2), "1,2.0", true),
        (json!(2), "[1, 2]", true),
        (json!(2), r#"["2"]"#, true),
        (json!("2"), "[2]", true),
        (json!(true), "true,false", true),
        (json!(null), "[null]", true),
        (json!([1]), "[[1], [2]]", true),
        (json!(""), "a,,b", false),
        (json!(""), r#"[""]"#, true),
        (json!(""), "", false),
        (json!("a"), "[]", false),
        (json!("[a"), "[a,b", true),
    ] {
        check(actual, In, value, holds);
    }
}

/// Every element is looked up among the values of the list, and not the other way round.
#[test]
fn the_elements_of_an_array_are_asked_one_by_one() {
    for (actual, value, any, all) in [
        (json!(["a", "b"]), "a,b,c", true, true),
        (json!(["a", "b", "c"]), "a,b", true, false),
        (json!(["c"]), "a,b", false, false),
        (json!([1, "b"]), "1,b", true, true),
        (json!([[1], 2]), "[[1]]", true, false),
        (json!([]), "a,b", false, false),
        (json!("a"), "a,b", true, true),
        (json!({ "a": 1 }), r#"[{"a":1}]"#, true, true),
    ] {
        check(actual.clone(), AnyIn, value, any);
        check(actual, AllIn, value, all);
    }
}

#[test]
fn a_pattern_stands_for_the_whole_text() {
    for (text, pattern, holds) in [
        ("", "", true),
        ("", "%", true),
        ("", "_", false),
        ("abc", "ABC", true),
        ("abc", "ab", false),
        ("abc", "bc", false),
        ("abc", "%b%", true),
        ("abc", "a%c", true),
        ("abc", "a_c", true),
        ("abc", "a_", false),
        ("abc", "%%_%%_%%_%%", true),
        ("abab", "%ab", true),
        ("aXbXc", "a%x_", true),
        ("ÜBER", "über", true),
        ("\u{130}", "_", true),
        ("\u{130}", "i", true),
        ("a\nb", "a%b", true),
        ("a.c", "a.c", true),
        ("abc", "a.c", false),
    ] {
        check(json!(text), Like, pattern, holds);
    }
    check(json!(42), Like, "4%", false);
    check(json!(null), Like, "%", false);
}

#[test]
fn a_pattern_has_a_longest_length_and_a_text_has_none() {
    let (longest, too_long) = ("%a".repeat(63) + "b", "_".repeat(128));
    let text = "a".repeat(1_000_000);
    check(json!(text), Like, &longest, false);
    check(json!(text + "B"), Like, &longest, true);
    check(json!("_".repeat(127)), Like, &"_".repeat(127), true);
    check(json!(too_long), Like, &too_long, false);
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::sample::select(vec![
            "",
            "null",
            "true",
            "5",
            "-0.0",
            "1e999",
            "a",
            "[",
            "[1,\"a\"]",
            "{}",
            "1,5",
            "a,b",
            "2026-11-20T12:00:00Z",
            "2026-11-20T12:00:60Z,9",
        ])
        .prop_map(str::to_owned),
        "[ab%_,]{0,6}",
        any::<String>(),
    ]
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ]
}

pub(in crate::filter) fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((text(), inner), 0..3)
                .prop_map(|items| Value::Object(items.into_iter().collect())),
        ]
    })
}

// Match by the definition of each character in a pattern.
fn is_like_by_definition(text: &[char], pattern: &[char]) -> bool {
    match (pattern, text) {
        ([], text) => text.is_empty(),
        (['%', rest @ ..], text) => {
            (0..=text.len()).any(|taken| is_like_by_definition(&text[taken..], rest))
        }
        ([first, rest @ ..], [next, text @ ..]) => {
            (*first == '_' || first.eq_ignore_ascii_case(next)) && is_like_by_definition(text, rest)
        }
        (_, []) => false,
    }
}

proptest! {
    #[test]
    fn an_opposite_holds_where_its_counterpart_does_not(
        actual in proptest::option::of(value()),
        expected in text(),
    ) {
        for operator in FilterOperator::ALL {
            let holds = operator.holds(actual.as_ref(), &expected);
            if let Some(opposite) = opposite(*operator) {
                prop_assert_eq!(opposite.holds(actual.as_ref(), &expected), !holds);
            }
        }
    }

    #[test]
    fn a_scalar_is_its_own_only_element(actual in scalar(), list in text()) {
        let holds = In.holds(Some(&actual), &list);
        prop_assert_eq!(AnyIn.holds(Some(&actual), &list), holds);
        prop_assert_eq!(AllIn.holds(Some(&actual), &list), holds);
    }

    #[test]
    fn all_elements_are_more_than_any(actual in value(), list in text()) {
        prop_assert!(AnyIn.holds(Some(&actual), &list) || !AllIn.holds(Some(&actual), &list));
    }

    #[test]
    fn a_span_is_its_two_bounds(actual in value(), low in text(), high in text()) {
        let span = json!([low, high]).to_string();
        let within = LargerEqual.holds(Some(&actual), &low)
            && SmallerEqual.holds(Some(&actual), &high);
        prop_assert_eq!(Between.holds(Some(&actual), &span), within);
    }

    #[test]
    fn numbers_keep_their_order(quarters in -(1_i64 << 53)..(1 << 53), apart in -2_i64..=2) {
        let whole = quarters / 4 + apart;
        #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
        let (integer, fraction) = (Number::from(whole), Number::from_f64(quarters as f64 / 4.0));
        let fraction = fraction.unwrap();
        let order = (whole * 4).cmp(&quarters);
        prop_assert_eq!(order_numbers(&integer, &fraction), Some(order));
        prop_assert_eq!(order_numbers(&fraction, &integer), Some(order.reverse()));
    }

    #[test]
    fn a_pattern_means_what_its_characters_do(text in "[abAB]{0,8}", pattern in "[abA%_]{0,6}") {
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        let holds = is_like_by_definition(&chars(&text), &chars(&pattern));
        prop_assert_eq!(Like.holds(Some(&json!(text)), &pattern), holds);
    }
}
