//! Step filters: conditions of steps, variants and integrations.
//!
//! The caller gathers the [`FilterFacts`] beforehand. An evaluation reads nothing else, always
//! ends, never fails, and can be repeated. It makes every comparison, so that the report is
//! complete.
//!
//! ```
//! # extern crate tidings_domain as tidings;
//! use serde_json::json;
//! use tidings::filter::{FilterFacts, Filter, evaluate};
//! use tidings::json::Object;
//!
//! let large = Filter::payload("order.total").greater_than(100);
//! let filter = large.and(Filter::subscriber("data.plan").is_in(["gold", "silver"]));
//!
//! let payload = Object::try_from(json!({ "order": { "total": 120 } }))?;
//! let subscriber = Object::try_from(json!({ "data": { "plan": "gold" } }))?;
//! let report = evaluate(&[filter], &FilterFacts::new(&subscriber, &payload));
//! assert!(report.holds);
//! assert_eq!(report.checks[0].actual, Some(json!(120)));
//! # Ok::<(), tidings::error::Invalid>(())
//! ```

mod check;
mod compare;
mod compose;
mod listed;
mod nesting;
mod pattern;

use std::borrow::Cow;
use std::fmt::{self, Write};

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::context::Context;
use crate::json::{Object, Shape, Shaped, shape};
use crate::step::{StepResults, find_in_payload};
use crate::vocabulary::wire_enum;

#[doc(hidden)]
pub use check::check;
pub(crate) use check::{check_payload, check_step, step_paths};
pub use compose::FilterField;

/// Group of comparisons and of further groups.
///
/// Levels beyond the one that [`Filter::MAX_DEPTH`] refuses are neither cloned nor compared nor
/// printed, so that no filter that is composed takes the stack.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Filter {
    /// `true` if the result of the group is negated.
    #[serde(default)]
    pub is_negated: bool,
    /// Label for editors, without effect on the result.
    #[serde(rename = "type")]
    pub kind: FilterType,
    /// Joint of the children: whether all must hold, or one.
    pub value: Joint,
    /// Children. A group without children holds.
    #[serde(default)]
    pub children: Vec<FilterChild>,
}

shape! { Filter {
    "isNegated": is_negated, "type": kind, "value": value, "children": children
} }

wire_enum! {
    /// Label of a group in an editor.
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
    /// Joint of the children of a group.
    Joint, "value":
    And = "AND",
    Or = "OR",
}

/// Child of a group. On the wire, a child with `field` is a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum FilterChild {
    /// Comparison.
    Part(FieldFilterPart),
    /// Nested group.
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

/// Comparison of a fact with the value of the filter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FieldFilterPart {
    /// Path of the fact, as in `order.items.0.price`. A member with exactly this name, dots
    /// included, comes first. A path in the payload may begin with `payload.`, unless the payload has
    /// a value at the whole path.
    pub field: String,
    /// Value to compare with.
    pub value: String,
    /// Operator.
    pub operator: FilterOperator,
    /// Source of the fact.
    pub on: FilterSource,
}

shape! { FieldFilterPart { "field": field, "value": value, "operator": operator, "on": on } }

wire_enum! {
    /// Operator of a comparison.
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
    /// If the fact is absent, none of the operators holds. An opposite holds if and only if its
    /// counterpart does not, so also if the fact is absent.
    ///
    /// A list of values is a JSON array, or is separated by commas. Between commas, white space
    /// around values and empty values are ignored.
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
    /// Source of the fact of a comparison. Results of earlier `steps` exist for steps only: their
    /// fields begin with the id, `uuid` or name of the step, as in `mail.seen`.
    ///
    /// Fields of `actor` are those of the subscriber who has caused the event. Fields of `context` begin with
    /// the type of a context of the event, as in `tenant.id` and `tenant.data.plan`.
    FilterSource, "on":
    Subscriber = "subscriber",
    Payload = "payload",
    Steps = "steps",
    Actor = "actor",
    Context = "context",
}

/// Facts that filters compare.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct FilterFacts<'a> {
    /// Subscriber, as in templates.
    pub subscriber: &'a Object,
    /// Payload of the trigger.
    pub payload: &'a Object,
    /// Results of earlier steps. `None` where there are no steps.
    pub steps: Option<&'a StepResults>,
    /// Subscriber who has caused the event, as in templates.
    pub actor: Option<&'a Object>,
    /// Contexts of the event.
    pub contexts: &'a [Context],
}

impl<'a> FilterFacts<'a> {
    /// Returns the facts without results of steps.
    pub const fn new(subscriber: &'a Object, payload: &'a Object) -> Self {
        Self { subscriber, payload, steps: None, actor: None, contexts: &[] }
    }

    /// Adds the results of earlier steps.
    #[must_use]
    pub const fn with_steps(self, steps: &'a StepResults) -> Self {
        Self { steps: Some(steps), ..self }
    }

    /// Adds the subscriber who has caused the event, if there is one, and the contexts of the event.
    #[must_use]
    pub const fn with_origin(self, actor: Option<&'a Object>, contexts: &'a [Context]) -> Self {
        Self { actor, contexts, ..self }
    }
}

/// Result of an evaluation, with every comparison.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FilterReport {
    /// `true` if the filters hold.
    pub holds: bool,
    /// Comparisons, in the order of the filters.
    pub checks: Vec<FilterCheck>,
}

/// Result of one comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FilterCheck {
    /// Path of the fact.
    pub field: String,
    /// Operator.
    pub operator: FilterOperator,
    /// Source of the fact.
    pub on: FilterSource,
    /// Value of the filter. A long one is cut to its first 256 characters.
    pub expected: String,
    /// Fact, if it exists. A long one is cut to the first 256 characters of its JSON text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actual: Option<Value>,
    /// `true` if the comparison holds.
    pub held: bool,
}

impl Filter {
    /// Deepest nesting of groups.
    pub const MAX_DEPTH: usize = 16;

    /// Maximum number of comparisons and empty groups in all filters together.
    pub const MAX_PARTS: usize = 256;
}

impl FieldFilterPart {
    /// Longest path of a fact, in characters.
    pub const MAX_FIELD: usize = 1024;

    /// Longest value, in characters.
    pub const MAX_VALUE: usize = 16 * 1024;

    /// Longest pattern of `LIKE`, in characters.
    pub const MAX_PATTERN: usize = 127;
}

/// Evaluates `filters` over `facts`. The result holds if one filter does, or if there are none.
///
/// Groups and comparisons beyond the limits of [`check`] do not hold.
#[doc(hidden)]
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
        let actual = actual.as_deref();
        let held = part.operator.holds(actual, &part.value);
        self.checks.push(FilterCheck {
            field: part.field.clone(),
            operator: part.operator,
            on: part.on,
            expected: cut(&part.value).unwrap_or_else(|| part.value.clone()),
            actual: actual.map(excerpt),
            held,
        });
        held
    }
}

// Counts, since `all` and `any` would stop early and leave comparisons out of the report.
fn join(joint: Joint, verdicts: impl ExactSizeIterator<Item = bool>) -> bool {
    let total = verdicts.len();
    let held = verdicts.filter(|held| *held).count();
    match joint {
        Joint::And => held == total,
        Joint::Or => held > 0 || total == 0,
    }
}

impl<'a> FilterFacts<'a> {
    fn find(&self, on: FilterSource, field: &str) -> Option<Cow<'a, Value>> {
        let found = match on {
            FilterSource::Subscriber => self.subscriber.find(field),
            FilterSource::Payload => find_in_payload(self.payload, field),
            FilterSource::Steps => return self.steps?.find(field),
            FilterSource::Actor => self.actor?.find(field),
            FilterSource::Context => return self.find_in_contexts(field),
        };
        found.map(Cow::Borrowed)
    }

    fn find_in_contexts(&self, field: &str) -> Option<Cow<'a, Value>> {
        let (kind, field) = field.split_once('.')?;
        let context = self.contexts.iter().find(|context| context.key.kind() == kind)?;
        match field.split_once('.') {
            Some(("data", field)) => context.data.find(field).map(Cow::Borrowed),
            None if field == "data" => Some(Cow::Owned(context.data.clone().into())),
            None if field == "id" => Some(Cow::Owned(context.key.id().into())),
            Some(_) | None => None,
        }
    }
}

// Bounds the report: every comparison may be about the whole payload.
pub(crate) fn excerpt(value: &Value) -> Value {
    cut(value).map_or_else(|| value.clone(), Value::String)
}

// Returns the beginning of a long text. Returns `None` if it is short.
fn cut(text: &impl fmt::Display) -> Option<String> {
    let mut excerpt = Excerpt { text: String::new(), room: Excerpt::MAX };
    write!(excerpt, "{text}").is_err().then(|| excerpt.text + "...")
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
        // The derived error of an untagged enum does not name the fault.
        let child = Map::deserialize(from)?;
        if child.contains_key("field") {
            return FieldFilterPart::deserialize(child).map(Self::Part).map_err(D::Error::custom);
        }
        Filter::deserialize(child).map(Self::Group).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests;
