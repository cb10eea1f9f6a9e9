//! Step filters: whether a step runs, or an integration is chosen, given everything that is known.
//!
//! The [`FilterFacts`] are gathered beforehand: an evaluation looks nothing up, always ends, never fails,
//! and can be repeated. It makes every comparison, since the report explains the answer.
//!
//! ```
//! use serde_json::json;
//! use tidings_domain::filter::{FilterFacts, Filter, evaluate};
//! use tidings_domain::json::Object;
//!
//! let large = Filter::payload("order.total").larger_than(100);
//! let filter = large.and(Filter::subscriber("data.plan").is_in(["gold", "silver"]));
//!
//! let payload = Object::try_from(json!({ "order": { "total": 120 } }))?;
//! let subscriber = Object::try_from(json!({ "data": { "plan": "gold" } }))?;
//! let report = evaluate(&[filter], &FilterFacts { subscriber: &subscriber, payload: &payload });
//! assert!(report.holds);
//! assert_eq!(report.checks[0].actual, Some(json!(120)));
//! # Ok::<(), tidings_domain::error::Invalid>(())
//! ```

mod compare;
mod compose;

use std::fmt::{self, Write};

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::error::{Invalid, Reason};
use crate::json::{Object, Shape, Shaped, shape};
use crate::vocabulary::wire_enum;

pub use compose::FilterField;

/// A group of comparisons, and of further groups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Filter {
    /// Whether the answer of the group is turned around.
    #[serde(default)]
    pub is_negated: bool,
    /// What an editor shows the group as. The answer does not depend on it.
    #[serde(rename = "type")]
    pub kind: FilterType,
    /// Whether every child has to hold, or one of them.
    pub value: Joint,
    /// What is grouped. Where nothing is, the group holds.
    #[serde(default)]
    pub children: Vec<FilterChild>,
}

shape! { Filter {
    "isNegated": is_negated, "type": kind, "value": value, "children": children
} }

wire_enum! {
    /// What an editor shows a group as.
    FilterType, "type":
    Boolean = "BOOLEAN",
    Text = "TEXT",
    Date = "DATE",
    Number = "NUMBER",
    Statement = "STATEMENT",
    List = "LIST",
    MultiList = "MULTI_LIST",
    Group = "GROUP",
}

wire_enum! {
    /// How the children of a group make up its answer.
    Joint, "value":
    And = "AND",
    Or = "OR",
}

/// What a group is made of. On the wire, what names a field is a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum FilterChild {
    /// A comparison.
    Part(FieldFilterPart),
    /// A group within the group.
    Group(Filter),
}

impl Shaped for FilterChild {
    fn shape() -> Shape {
        Shape::choice(|child| {
            if ["field", "operator", "on"].iter().any(|name| child.get(name).is_some()) {
                FieldFilterPart::shape()
            } else {
                Filter::shape()
            }
        })
    }
}

/// A comparison of one fact with the value of the filter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FieldFilterPart {
    /// Where the fact is found, as in `order.items.0.price`. A name that is just the same, dots
    /// and all, comes first.
    pub field: String,
    /// What the fact is compared with.
    pub value: String,
    /// How they are compared.
    pub operator: FilterOperator,
    /// Whose fact it is.
    pub on: FilterSource,
}

shape! { FieldFilterPart { "field": field, "value": value, "operator": operator, "on": on } }

wire_enum! {
    /// How a fact is compared with the value of a filter.
    ///
    /// | operator | its opposite | holds where the fact |
    /// |---|---|---|
    /// | `EQUAL` | `NOT_EQUAL` | is the value, read as the type that the fact has: a text, or the JSON text of anything else |
    /// | `LARGER`, `SMALLER`, `LARGER_EQUAL`, `SMALLER_EQUAL` | | is a number or a text on that side of the value: as numbers where both are, else as RFC 3339 instants where both are, else as texts where the fact is one |
    /// | `BETWEEN` | `NOT_BETWEEN` | is neither smaller than the first nor larger than the second of two listed values |
    /// | `IN` | `NOT_IN` | is `EQUAL` to a listed value |
    /// | `ANY_IN` | | has an element that is `IN`; anything but an array is its own only element |
    /// | `ALL_IN` | | has elements, and nothing but elements that are `IN` |
    /// | `LIKE` | `NOT_LIKE` | is a text of the form of the value, case aside: `%` is any text, `_` any character |
    ///
    /// Where there is no fact, none of them holds. An opposite holds exactly where its counterpart
    /// does not, so also where there is no fact.
    ///
    /// Values are listed as a JSON array or between commas, where spaces around a value and values
    /// without a character do not count.
    FilterOperator, "operator":
    Larger = "LARGER",
    Smaller = "SMALLER",
    LargerEqual = "LARGER_EQUAL",
    SmallerEqual = "SMALLER_EQUAL",
    Equal = "EQUAL",
    NotEqual = "NOT_EQUAL",
    AllIn = "ALL_IN",
    AnyIn = "ANY_IN",
    NotIn = "NOT_IN",
    Between = "BETWEEN",
    NotBetween = "NOT_BETWEEN",
    Like = "LIKE",
    NotLike = "NOT_LIKE",
    In = "IN",
}

wire_enum! {
    /// Whose facts a comparison is about.
    FilterSource, "on":
    Subscriber = "subscriber",
    Payload = "payload",
}

/// Everything a filter may ask about.
#[derive(Clone, Copy, Debug)]
pub struct FilterFacts<'a> {
    /// The subscriber, as templates see it.
    pub subscriber: &'a Object,
    /// What the trigger brought along.
    pub payload: &'a Object,
}

/// What came of an evaluation, with every comparison that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FilterReport {
    /// Whether the filters hold.
    pub holds: bool,
    /// The comparisons, in the order of the filters.
    pub checks: Vec<FilterCheck>,
}

/// One comparison that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FilterCheck {
    /// Where the fact was looked for.
    pub field: String,
    /// How it was compared.
    pub operator: FilterOperator,
    /// Whose fact it is.
    pub on: FilterSource,
    /// What it was compared with.
    pub expected: String,
    /// The fact, if there is one; of a long one, the beginning of its JSON text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actual: Option<Value>,
    /// Whether the comparison held.
    pub held: bool,
}

impl Filter {
    /// The deepest nesting of groups.
    pub const MAX_DEPTH: usize = 16;

    /// The most comparisons and empty groups in all filters together.
    pub const MAX_PARTS: usize = 256;
}

impl FieldFilterPart {
    /// The longest pattern of `LIKE`, in characters.
    pub const MAX_PATTERN: usize = 127;
}

/// Refuses filters that are nested too deeply, have too many parts, or cannot mean anything.
pub fn check(filters: &[Filter]) -> Result<(), Invalid> {
    // Walks with a list of its own, for the filters may be nested deeper than the stack is.
    let place = |(index, group)| (format!("filters[{index}]"), group, 1);
    let mut open: Vec<_> = filters.iter().enumerate().map(place).collect();
    let mut parts = 0;
    while let Some((place, group, depth)) = open.pop() {
        if depth > Filter::MAX_DEPTH {
            return Err(Invalid::new("filters", Reason::TooDeep { max: Filter::MAX_DEPTH }));
        }
        parts += usize::from(group.children.is_empty());
        for (index, child) in group.children.iter().enumerate() {
            let place = format!("{place}.children[{index}]");
            match child {
                FilterChild::Group(group) => open.push((place, group, depth + 1)),
                FilterChild::Part(part) => {
                    parts += 1;
                    part.operator.check(&part.value).map_err(|invalid| invalid.within(place))?;
                }
            }
        }
        if parts > Filter::MAX_PARTS {
            return Err(Invalid::new("filters", Reason::TooMany { max: Filter::MAX_PARTS }));
        }
    }
    Ok(())
}

/// Evaluates `filters` over `facts`. They hold if one of them does, or if there are none.
///
/// What is past the bounds that [`check`] keeps counts as not holding.
pub fn evaluate(filters: &[Filter], facts: &FilterFacts<'_>) -> FilterReport {
    let mut evaluation = Evaluation { facts, checks: Vec::new() };
    let holds = join(Joint::Or, filters.iter().map(|group| evaluation.group(group, 1)));
    FilterReport { holds, checks: evaluation.checks }
}

struct Evaluation<'a> {
    facts: &'a FilterFacts<'a>,
    checks: Vec<FilterCheck>,
}

impl Evaluation<'_> {
    fn group(&mut self, group: &Filter, depth: usize) -> bool {
        if depth > Filter::MAX_DEPTH {
            return false;
        }
        let verdicts = group.children.iter().map(|child| match child {
            FilterChild::Part(part) => self.part(part),
            FilterChild::Group(group) => self.group(group, depth + 1),
        });
        join(group.value, verdicts) != group.is_negated
    }

    fn part(&mut self, part: &FieldFilterPart) -> bool {
        if self.checks.len() == Filter::MAX_PARTS {
            return false;
        }
        let actual = self.facts.find(part.on, &part.field);
        let held = part.operator.holds(actual, &part.value);
        self.checks.push(FilterCheck {
            field: part.field.clone(),
            operator: part.operator,
            on: part.on,
            expected: part.value.clone(),
            actual: actual.map(excerpt),
            held,
        });
        held
    }
}

// Counts, where `all` and `any` would stop before every comparison is made.
fn join(joint: Joint, verdicts: impl ExactSizeIterator<Item = bool>) -> bool {
    let total = verdicts.len();
    let held = verdicts.filter(|held| *held).count();
    match joint {
        Joint::And => held == total,
        Joint::Or => held > 0 || total == 0,
    }
}

impl<'a> FilterFacts<'a> {
    fn find(&self, on: FilterSource, field: &str) -> Option<&'a Value> {
        let object = match on {
            FilterSource::Subscriber => self.subscriber,
            FilterSource::Payload => self.payload,
        };
        object.get(field).or_else(|| {
            let (first, rest) = field.split_once('.')?;
            rest.split('.').try_fold(object.get(first)?, |value, name| match value {
                Value::Object(map) => map.get(name),
                Value::Array(items) => items.get(name.parse::<usize>().ok()?),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
            })
        })
    }
}

// A report must not carry off the whole payload once for each comparison.
fn excerpt(value: &Value) -> Value {
    let mut excerpt = Excerpt { text: String::new(), room: Excerpt::MAX };
    match write!(excerpt, "{value}") {
        Ok(()) => value.clone(),
        Err(_) => Value::String(excerpt.text + "..."),
    }
}

struct Excerpt {
    text: String,
    room: usize,
}

impl Excerpt {
    const MAX: usize = 256;
}

impl Write for Excerpt {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            self.room = self.room.checked_sub(1).ok_or(fmt::Error)?;
            self.text.push(character);
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for FilterChild {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        // What serde derives for an untagged enum does not say what is wrong with the child.
        let child = Map::deserialize(from)?;
        if child.contains_key("field") {
            return FieldFilterPart::deserialize(child).map(Self::Part).map_err(D::Error::custom);
        }
        Filter::deserialize(child).map(Self::Group).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests;
