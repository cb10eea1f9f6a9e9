//! Constructors of rules.

use serde_json::{Map, Value, json};

use super::Rule;
use crate::error::Invalid;
use crate::json::{depth_within, dismantle};

/// Value in a rule: a literal, a [`var`], or an operator with arguments. The conversion into a
/// [`Rule`] checks it.
///
/// ```
/// # extern crate tidings_domain as tidings;
/// use tidings::condition::{Rule, var};
///
/// let large = var("payload.total").greater_than(100);
/// let gold = var("subscriber.data.plan").is_in(["gold", "platinum"]);
/// let rule = Rule::try_from(large.and(gold))?;
/// let json = r#"{"and":[{">":[{"var":"payload.total"},100]},{"in":[{"var":"subscriber.data.plan"},["gold","platinum"]]}]}"#;
/// assert_eq!(rule.source().to_string(), json);
/// # Ok::<(), tidings::error::Invalid>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Expression(Option<Tree>);

// Value with the levels of its arrays and objects: at most as many as a rule may have. An expression
// with more levels has no tree, so that no expression is walked or dropped beyond them.
#[derive(Clone, Debug, PartialEq)]
struct Tree {
    value: Value,
    levels: usize,
}

/// Returns the value of the data at `path`, as in `payload.total`. Evaluates to `null` if the data
/// has none.
pub fn var(path: impl Into<String>) -> Expression {
    Expression(Some(Tree { value: json!({ "var": path.into() }), levels: 1 }))
}

impl Expression {
    /// Evaluates to `true` if the two values have the same type and are equal.
    pub fn equals(self, other: impl Into<Expression>) -> Self {
        self.compared("===", other)
    }

    /// Evaluates to `true` if the two values differ in type or value.
    pub fn differs_from(self, other: impl Into<Expression>) -> Self {
        self.compared("!==", other)
    }

    /// Evaluates to `true` if this value is greater than the other one.
    pub fn greater_than(self, other: impl Into<Expression>) -> Self {
        self.compared(">", other)
    }

    /// Evaluates to `true` if this value is greater than or equal to the other one.
    pub fn at_least(self, other: impl Into<Expression>) -> Self {
        self.compared(">=", other)
    }

    /// Evaluates to `true` if this value is less than the other one.
    pub fn less_than(self, other: impl Into<Expression>) -> Self {
        self.compared("<", other)
    }

    /// Evaluates to `true` if this value is less than or equal to the other one.
    pub fn at_most(self, other: impl Into<Expression>) -> Self {
        self.compared("<=", other)
    }

    /// Evaluates to `true` if this value is one of `values`.
    pub fn is_in(self, values: impl IntoIterator<Item: Into<Expression>>) -> Self {
        self.compared("in", Expression(Tree::list(values.into_iter().map(|value| value.into().0))))
    }

    /// Evaluates to `true` if this value is a list with `item` in it, or a text that contains
    /// `item`.
    pub fn contains(self, item: impl Into<Expression>) -> Self {
        item.into().compared("in", self)
    }

    /// Evaluates to `true` if both conditions do.
    pub fn and(self, other: impl Into<Expression>) -> Self {
        self.joined("and", other.into())
    }

    /// Evaluates to `true` if one of the two conditions does.
    pub fn or(self, other: impl Into<Expression>) -> Self {
        self.joined("or", other.into())
    }

    /// Evaluates to `true` if the condition does not.
    pub fn negated(self) -> Self {
        Self::operation("!", [self.0])
    }

    fn compared(self, operator: &str, other: impl Into<Expression>) -> Self {
        Self::operation(operator, [self.0, other.into().0])
    }

    // Moves the arguments. `json!` would copy them, level by level on the stack.
    fn operation<const N: usize>(operator: &str, arguments: [Option<Tree>; N]) -> Self {
        Self(Tree::list(arguments).and_then(|list| {
            let value = Value::Object(Map::from_iter([(operator.to_owned(), list.value)]));
            Tree { value, levels: list.levels + 1 }.bounded()
        }))
    }

    // Appends to the arguments of the same operator, which keeps long chains flat.
    fn joined(mut self, operator: &str, other: Self) -> Self {
        let arguments = self.0.as_mut().and_then(|tree| tree.value.get_mut(operator));
        let Some(arguments) = arguments.and_then(Value::as_array_mut) else {
            return self.compared(operator, other);
        };
        let Some(other) = other.0 else { return Self(None) };
        arguments.push(other.value);
        let longer = |tree: Tree| Tree { levels: tree.levels.max(other.levels + 2), ..tree };
        Self(self.0.map(longer).and_then(Tree::bounded))
    }
}

impl Tree {
    fn literal(value: Value) -> Option<Self> {
        let Some(levels) = depth_within(&value, Rule::MAX_DEPTH) else {
            dismantle(value);
            return None;
        };
        Some(Self { value, levels })
    }

    fn list(items: impl IntoIterator<Item = Option<Self>>) -> Option<Self> {
        let (mut values, mut levels) = (Vec::new(), 0);
        for item in items {
            let item = item?;
            levels = levels.max(item.levels);
            values.push(item.value);
        }
        Self { value: values.into(), levels: levels + 1 }.bounded()
    }

    fn bounded(self) -> Option<Self> {
        (self.levels <= Rule::MAX_DEPTH).then_some(self)
    }
}

impl<T: Into<Value>> From<T> for Expression {
    fn from(literal: T) -> Self {
        Self(Tree::literal(literal.into()))
    }
}

impl TryFrom<Expression> for Rule {
    type Error = Invalid;

    fn try_from(expression: Expression) -> Result<Self, Invalid> {
        expression.0.map_or_else(|| Err(Self::too_deep()), |tree| Self::new(tree.value))
    }
}

impl From<&Rule> for Rule {
    fn from(rule: &Rule) -> Self {
        rule.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One row per condition: what it is written as, data that it holds for, and data that it does
    /// not hold for.
    #[test]
    fn every_condition_is_a_rule() {
        let x = || var("x");
        let row = check;
        row(x().equals(1), json!({ "===": [{ "var": "x" }, 1] }), json!(1), json!("1"));
        row(x().differs_from(1), json!({ "!==": [{ "var": "x" }, 1] }), json!("1"), json!(1));
        row(x().greater_than(1), json!({ ">": [{ "var": "x" }, 1] }), json!(2), json!(1));
        row(x().at_least(1), json!({ ">=": [{ "var": "x" }, 1] }), json!(1), json!(0));
        row(x().less_than(1), json!({ "<": [{ "var": "x" }, 1] }), json!(0), json!(1));
        row(x().at_most(1), json!({ "<=": [{ "var": "x" }, 1] }), json!(1), json!(2));
        row(x().is_in(["a"]), json!({ "in": [{ "var": "x" }, ["a"]] }), json!("a"), json!("b"));
        row(x().contains("a"), json!({ "in": ["a", { "var": "x" }] }), json!(["a"]), json!(["b"]));
        let not = json!({ "!": [{ "===": [{ "var": "x" }, true] }] });
        row(x().equals(true).negated(), not, json!(false), json!(true));
    }

    #[test]
    fn conditions_are_joined_without_nesting() {
        let x = || var("x");
        let (one, two) = (json!({ ">": [{ "var": "x" }, 1] }), json!({ "<": [{ "var": "x" }, 4] }));
        let three = json!({ "!==": [{ "var": "x" }, 3] });
        let all = x().greater_than(1).and(x().less_than(4)).and(x().differs_from(3));
        check(all, json!({ "and": [one, two, three] }), json!(2), json!(3));
        let any = x().greater_than(1).and(x().less_than(4)).or(x().differs_from(3));
        let both = json!({ "and": [one, two] });
        let strict = x().greater_than(3).or(x().less_than(2));
        let outside = json!({ "or": [{ ">": [{ "var": "x" }, 3] }, { "<": [{ "var": "x" }, 2] }] });
        check(strict, outside, json!(1), json!(2));
        assert_eq!(Rule::try_from(any).unwrap().source(), &json!({ "or": [both, three] }));
    }

    #[track_caller]
    fn check(expression: Expression, expected: Value, holds: Value, fails: Value) {
        let rule = Rule::try_from(expression).unwrap();
        assert_eq!(rule.source(), &expected);
        assert!(rule.holds(&json!({ "x": holds })), "{expected}");
        assert!(!rule.holds(&json!({ "x": fails })), "{expected}");
    }

    #[test]
    fn what_is_too_large_is_refused_where_it_is_used() {
        let long = var("x").equals("x".repeat(Rule::MAX_SIZE));
        assert_eq!(Rule::try_from(long).unwrap_err().field, "condition");
    }
}
