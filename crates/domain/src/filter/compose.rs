//! Constructors of filters.

use std::mem;

use serde_json::Value;

use super::compare::into_text;
use super::{
    FieldFilterPart, Filter, FilterChild, FilterOperator, FilterSource, FilterType, Joint,
};
use crate::json::{Object, dismantle, is_shallow};

/// Fact of a comparison, made by [`Filter::payload`], [`Filter::subscriber`], [`Filter::actor`],
/// [`Filter::context`] and [`Filter::step`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct FilterField {
    on: FilterSource,
    field: String,
}

impl Filter {
    /// Begins a comparison of a field of the payload, as in `order.items.0.price`. The field may
    /// begin with `payload.`, unless the payload has a value at the whole path.
    pub fn payload(field: impl Into<String>) -> FilterField {
        FilterField { on: FilterSource::Payload, field: field.into() }
    }

    /// Begins a comparison of a field of the subscriber, as in `data.plan`.
    pub fn subscriber(field: impl Into<String>) -> FilterField {
        FilterField { on: FilterSource::Subscriber, field: field.into() }
    }

    /// Begins a comparison of a field of the subscriber who has caused the event, as in `data.role`.
    pub fn actor(field: impl Into<String>) -> FilterField {
        FilterField { on: FilterSource::Actor, field: field.into() }
    }

    /// Begins a comparison of a context of the event: its type, and `id` or a field of its data, as in
    /// `tenant.id` and `tenant.data.plan`.
    pub fn context(field: impl Into<String>) -> FilterField {
        FilterField { on: FilterSource::Context, field: field.into() }
    }

    /// Begins a comparison of the result of an earlier step, as in `mail.seen`: the id, `uuid` or
    /// name of the step, and a field.
    pub fn step(field: impl Into<String>) -> FilterField {
        FilterField { on: FilterSource::Steps, field: field.into() }
    }

    /// Returns a group of `children`, all of which or one of which must hold.
    pub fn group(value: Joint, children: impl IntoIterator<Item: Into<FilterChild>>) -> Self {
        let children = children.into_iter().map(Into::into).collect();
        Self { is_negated: false, kind: FilterType::Group, value, children }
    }

    /// Returns a filter that holds if this one and `other` hold.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        self.joined(Joint::And, other)
    }

    /// Returns a filter that holds if this one or `other` holds.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        self.joined(Joint::Or, other)
    }

    /// Restricts `filters`, of which one must hold, to what one of `others` admits. No others restrict
    /// nothing.
    pub(crate) fn restrict(filters: &mut Vec<Self>, others: impl IntoIterator<Item = Self>) {
        let before = std::mem::take(filters).into_iter().reduce(Self::or);
        let others: Vec<_> = others.into_iter().collect();
        *filters = match before {
            None => others,
            Some(before) => vec![match others.into_iter().reduce(Self::or) {
                None => before,
                Some(others) => before.and(others),
            }],
        };
    }

    /// Returns a filter that holds if this one does not.
    #[must_use]
    pub fn negated(mut self) -> Self {
        self.is_negated = !self.is_negated;
        self
    }

    fn joined(self, joint: Joint, other: Self) -> Self {
        let children = [self, other].into_iter().flat_map(|filter| filter.below(joint));
        Self::group(joint, children.collect::<Vec<_>>())
    }

    // Returns the children of the filter if groups can be merged, or the filter as the only child.
    fn below(mut self, joint: Joint) -> Vec<FilterChild> {
        let is_one = !self.is_negated && (self.value == joint || self.children.len() == 1);
        if is_one && !self.children.is_empty() {
            return mem::take(&mut self.children);
        }
        vec![self.into()]
    }
}

impl FilterField {
    /// Holds if the field equals `value`.
    pub fn equals(self, value: impl Into<Value>) -> Filter {
        self.compared(FilterOperator::Equal, value)
    }

    /// Holds if the field differs from `value`, or is absent.
    pub fn differs_from(self, value: impl Into<Value>) -> Filter {
        self.compared(FilterOperator::NotEqual, value)
    }

    /// Holds if the field is larger than `value`.
    pub fn greater_than(self, value: impl Into<Value>) -> Filter {
        self.compared(FilterOperator::Larger, value)
    }

    /// Holds if the field is smaller than `value`.
    pub fn less_than(self, value: impl Into<Value>) -> Filter {
        self.compared(FilterOperator::Smaller, value)
    }

    /// Holds if the field equals `value` or is larger.
    pub fn at_least(self, value: impl Into<Value>) -> Filter {
        self.compared(FilterOperator::LargerEqual, value)
    }

    /// Holds if the field equals `value` or is smaller.
    pub fn at_most(self, value: impl Into<Value>) -> Filter {
        self.compared(FilterOperator::SmallerEqual, value)
    }

    /// Holds if the field is neither smaller than `low` nor larger than `high`.
    pub fn between(self, low: impl Into<Value>, high: impl Into<Value>) -> Filter {
        self.compared(FilterOperator::Between, listed([low.into(), high.into()]))
    }

    /// Holds if the field is one of `values`.
    pub fn is_in(self, values: impl IntoIterator<Item: Into<Value>>) -> Filter {
        self.compared(FilterOperator::In, listed(values))
    }

    /// Holds if the field is none of `values`, or is absent.
    pub fn is_not_in(self, values: impl IntoIterator<Item: Into<Value>>) -> Filter {
        self.compared(FilterOperator::NotIn, listed(values))
    }

    /// Holds if an element of the field is one of `values`.
    pub fn any_in(self, values: impl IntoIterator<Item: Into<Value>>) -> Filter {
        self.compared(FilterOperator::AnyIn, listed(values))
    }

    /// Holds if the field has elements, and each of them is one of `values`.
    pub fn all_in(self, values: impl IntoIterator<Item: Into<Value>>) -> Filter {
        self.compared(FilterOperator::AllIn, listed(values))
    }

    /// Holds if the field is a text of the form `pattern`, in any case. `%` matches any text, `_`
    /// any character.
    pub fn like(self, pattern: impl Into<String>) -> Filter {
        self.compared(FilterOperator::Like, pattern.into())
    }

    /// Returns the comparison with `value` by `operator`. A text is compared without its quotes, and
    /// any other value as its JSON text. A value that is nested deeper than an [`Object`] is refused where
    /// the filter is saved.
    pub fn compared(self, operator: FilterOperator, value: impl Into<Value>) -> Filter {
        let Self { on, field } = self;
        let part = FieldFilterPart { field, value: text(value.into()), operator, on };
        Filter::group(Joint::And, [part])
    }
}

// No fact is nested that deep. The text in place of such a value is refused as too long.
fn text(value: Value) -> String {
    if is_shallow(&value, Object::MAX_DEPTH) {
        return into_text(value);
    }
    dismantle(value);
    "[".repeat(FieldFilterPart::MAX_VALUE + 1)
}

// A JSON array, so that a value may contain commas.
fn listed(values: impl IntoIterator<Item: Into<Value>>) -> String {
    let values = values.into_iter().map(|value| text(value.into()).into());
    Value::Array(values.collect()).to_string()
}

impl From<FieldFilterPart> for FilterChild {
    fn from(part: FieldFilterPart) -> Self {
        FilterChild::Part(part)
    }
}

impl From<Filter> for FilterChild {
    fn from(group: Filter) -> Self {
        FilterChild::Group(group)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_comparison_is_a_group_of_one() {
        check(&Filter::payload("express").equals(true), "payload express EQUAL true");
        check(&Filter::payload("n").differs_from(1), "payload n NOT_EQUAL 1");
        check(&Filter::payload("n").greater_than(1.5), "payload n LARGER 1.5");
        check(&Filter::payload("n").less_than(1), "payload n SMALLER 1");
        check(&Filter::payload("n").at_least(1), "payload n LARGER_EQUAL 1");
        check(&Filter::payload("n").at_most(1), "payload n SMALLER_EQUAL 1");
        check(&Filter::payload("n").between(1, 2), r#"payload n BETWEEN ["1","2"]"#);
        check(
            &Filter::subscriber("data.a").is_in(["b, c", "d"]),
            r#"subscriber data.a IN ["b, c","d"]"#,
        );
        check(&Filter::subscriber("data.a").is_not_in([1]), r#"subscriber data.a NOT_IN ["1"]"#);
        check(&Filter::subscriber("data.a").any_in(["b"]), r#"subscriber data.a ANY_IN ["b"]"#);
        check(&Filter::subscriber("data.a").all_in(["b"]), r#"subscriber data.a ALL_IN ["b"]"#);
        check(&Filter::subscriber("data.a").like("b%"), "subscriber data.a LIKE b%");
    }

    #[track_caller]
    fn check(filter: &Filter, expected: &str) {
        let words: Vec<_> = expected.splitn(4, ' ').collect();
        let [on, field, operator, value] = words[..] else { panic!("{expected}") };
        let part = json!({ "on": on, "field": field, "operator": operator, "value": value });
        assert_eq!(as_json(filter), group("AND", &[part]));
        super::super::check(std::slice::from_ref(filter)).unwrap();
    }

    /// A JSON value is compared as the Rust value that it stands for.
    #[test]
    fn a_json_value_is_compared_without_its_quotes() {
        let field = || Filter::payload("p");
        let rows = [
            (field().equals(json!("x")), field().equals("x")),
            (field().equals(json!(1.5)), field().equals(1.5)),
            (field().equals(json!(true)), field().equals(true)),
            (field().differs_from(json!("x")), field().differs_from("x")),
            (field().greater_than(json!("x")), field().greater_than("x")),
            (field().less_than(json!("x")), field().less_than("x")),
            (field().at_least(json!("x")), field().at_least("x")),
            (field().at_most(json!("x")), field().at_most("x")),
            (field().between(json!("x"), json!("y")), field().between("x", "y")),
            (field().is_in([json!("x"), json!(1)]), field().is_in(["x", "1"])),
            (field().is_not_in([json!("x")]), field().is_not_in(["x"])),
            (field().any_in([json!("x")]), field().any_in(["x"])),
            (field().all_in([json!("x")]), field().all_in(["x"])),
        ];
        for (of_json, of_rust) in rows {
            assert_eq!(of_json, of_rust);
        }
        let object = json!({ "plan": "gold" });
        check(&field().equals(object), r#"payload p EQUAL {"plan":"gold"}"#);
    }

    #[test]
    fn groups_that_can_be_one_are_one() {
        let is = |field: &str| Filter::payload(field).equals("x");
        let part =
            |field| json!({ "on": "payload", "field": field, "operator": "EQUAL", "value": "x" });
        let (a, b, c) = (part("a"), part("b"), part("c"));
        let both = group("AND", &[a.clone(), b.clone()]);
        assert_eq!(as_json(&is("a").and(is("b"))), both);
        let three = group("AND", &[a.clone(), b.clone(), c.clone()]);
        assert_eq!(as_json(&is("a").and(is("b")).and(is("c"))), three);
        assert_eq!(
            as_json(&is("a").and(is("b")).or(is("c"))),
            group("OR", &[both.clone(), c.clone()])
        );
        let mut not_both = both;
        not_both["isNegated"] = true.into();
        assert_eq!(as_json(&is("a").and(is("b")).negated()), not_both);
        let expected = group("AND", &[c, not_both]);
        assert_eq!(as_json(&is("c").and(is("a").and(is("b")).negated())), expected);
        let nothing = Filter::group(Joint::Or, Vec::<FilterChild>::new());
        assert_eq!(as_json(&nothing.clone().or(is("a"))), group("OR", &[as_json(&nothing), a]));
    }

    fn as_json(filter: &Filter) -> Value {
        serde_json::to_value(filter).unwrap()
    }

    fn group(value: &str, children: &[Value]) -> Value {
        json!({ "isNegated": false, "type": "GROUP", "value": value, "children": children })
    }
}
