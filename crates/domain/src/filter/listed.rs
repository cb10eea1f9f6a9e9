//! Looking up many elements in a list of values.

use std::cmp::Ordering;
use std::collections::HashSet;

use serde_json::{Number, Value};

use super::compare::{is_equal, number, order_numbers};

/// Products of elements and values up to which each element is compared with each value.
const FEW: usize = 256;

/// The values of a list, sorted by what they are equal to. An element is looked up in time that does
/// not grow with the list.
struct Listed<'l> {
    texts: HashSet<&'l str>,
    /// In their order.
    numbers: Vec<Number>,
    /// Arrays and objects.
    trees: HashSet<Value>,
}

impl<'l> Listed<'l> {
    fn of(list: &'l [String]) -> Self {
        let mut numbers: Vec<Number> = list.iter().filter_map(|value| number(value)).collect();
        numbers.sort_by(in_order);
        let trees = list.iter().filter_map(|value| serde_json::from_str::<Value>(value).ok());
        Self {
            texts: list.iter().map(String::as_str).collect(),
            numbers,
            trees: trees.filter(|value| value.is_array() || value.is_object()).collect(),
        }
    }

    fn has(&self, element: &Value) -> bool {
        match element {
            Value::Null => self.texts.contains("null"),
            Value::Bool(true) => self.texts.contains("true"),
            Value::Bool(false) => self.texts.contains("false"),
            Value::Number(number) => {
                self.numbers.binary_search_by(|listed| in_order(listed, number)).is_ok()
            }
            Value::String(text) => self.texts.contains(text.as_str()),
            Value::Array(_) | Value::Object(_) => self.trees.contains(element),
        }
    }
}

// Numbers of JSON are ordered, since none of them is infinite.
fn in_order(one: &Number, other: &Number) -> Ordering {
    order_numbers(one, other).unwrap_or(Ordering::Equal)
}

/// Returns `true` if any of `elements` is equal to a value in `list`.
pub(super) fn has_any(list: &[String], elements: &[Value]) -> bool {
    if is_few(list, elements) {
        return elements.iter().any(|element| is_listed(element, list));
    }
    let listed = Listed::of(list);
    elements.iter().any(|element| listed.has(element))
}

/// Returns `true` if each of `elements` is equal to a value in `list`.
pub(super) fn has_all(list: &[String], elements: &[Value]) -> bool {
    if is_few(list, elements) {
        return elements.iter().all(|element| is_listed(element, list));
    }
    let listed = Listed::of(list);
    elements.iter().all(|element| listed.has(element))
}

/// Returns `true` if `actual` is equal to a value in `list`.
pub(super) fn is_listed(actual: &Value, list: &[String]) -> bool {
    list.iter().any(|expected| is_equal(actual, expected))
}

fn is_few(list: &[String], elements: &[Value]) -> bool {
    list.len().saturating_mul(elements.len()) <= FEW
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::compare::tests::value;
    use super::*;

    proptest! {
        #[test]
        fn a_look_up_finds_what_a_comparison_with_each_value_does(
            elements in prop::collection::vec(value(), 0..12),
            others in prop::collection::vec(value(), 0..6),
            texts in prop::collection::vec("[0-9.e-]{0,4}|[ab]|\\PC{0,3}", 0..6),
        ) {
            let written = elements.iter().step_by(2).chain(&others);
            let list: Vec<String> = written
                .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
                .chain(texts)
                .collect();
            let listed = Listed::of(&list);
            for element in &elements {
                prop_assert_eq!(listed.has(element), is_listed(element, &list), "{}", element);
            }
        }
    }

    /// The work is counted, so that the time of a machine plays no part.
    #[test]
    fn numbers_are_found_however_they_are_written() {
        let list = ["5.0", " 7e0", "-0.0", "18446744073709551615", "1e3"].map(str::to_owned);
        let listed = Listed::of(&list);
        for (element, expected) in [
            (json!(5), true),
            (json!(7), true),
            (json!(0), true),
            (json!(u64::MAX), true),
            (json!(1000.0), true),
            (json!(6), false),
            (json!("5"), false),
        ] {
            assert_eq!(listed.has(&element), expected, "{element}");
        }
    }

    /// It would take a minute with a comparison of each with each.
    #[test]
    fn a_million_elements_are_looked_up_in_thousands_of_values() {
        let list: Vec<String> = (0..3_000).map(|number| format!("{number}")).collect();
        let elements = vec![json!("no such value"); 1_000_000];
        assert!(!has_any(&list, &elements));
        assert!(has_all(&list, &vec![json!(2_999); 1_000_000]));
    }
}
