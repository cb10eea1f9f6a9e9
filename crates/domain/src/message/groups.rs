//! Conditions of queries in groups: on the tags of messages, and on the payloads of their events.

use std::collections::BTreeMap;

use serde::de::{Error as _, IgnoredAny};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::error::{Invalid, Reason, at_most, at_most_items};
use crate::json::{Member, Object, Shape, Shaped, dismantle};

/// Tags that a message must have: one of each group. Without groups, any message matches.
///
/// On the wire, one group is a list of tags, and several are `{"and": [{"or": [...]}, ...]}`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TagFilter(Vec<Vec<String>>);

/// Values that the payload of a message must have under some names: one of each group.
///
/// A name may be a path, as in `order.status`. On the wire, one value is itself, one group is a list or
/// `{"or": [...]}`, and several groups are `{"and": [{"or": [...]}, ...]}`. Values are texts, numbers, flags
/// and `null`. A list in the payload has each of its items. What is not in the payload has no value, and
/// `null` is only itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct DataFilter(BTreeMap<String, DataGroups>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct DataGroups(Vec<Vec<Value>>);

#[derive(Serialize, Deserialize)]
struct Or<T> {
    or: Vec<T>,
}

/// Returns the groups of a condition as it is written. Returns `None` if it has another form.
fn groups_of(written: Value) -> Option<Vec<Vec<Value>>> {
    match written {
        Value::Array(values) => Some(vec![values]),
        Value::Object(mut members) => match members.remove("and") {
            Some(Value::Array(and)) if members.is_empty() => and.into_iter().map(values).collect(),
            Some(_) => None,
            None => values(Value::Object(members)).map(|values| vec![values]),
        },
        value => Some(vec![vec![value]]),
    }
}

fn values(or: Value) -> Option<Vec<Value>> {
    let Value::Object(mut members) = or else { return None };
    match members.remove("or") {
        Some(Value::Array(values)) if members.is_empty() => Some(values),
        Some(_) | None => None,
    }
}

impl TagFilter {
    /// Maximum number of groups, also of a [`DataFilter`] under one name.
    pub const MAX_GROUPS: usize = 30;
    /// Maximum number of tags of a group, and of values of a group of a [`DataFilter`].
    pub const MAX_IN_GROUP: usize = 100;
    /// Maximum number of tags of all groups together, and of values of a [`DataFilter`].
    pub const MAX_IN_ALL: usize = 200;

    /// Returns `true` if any message matches.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the groups. A message has one tag of each.
    pub fn groups(&self) -> &[Vec<String>] {
        &self.0
    }

    pub(super) fn add(&mut self, group: Vec<String>) {
        self.0.push(group);
    }

    pub(super) fn matches(&self, tags: &[String]) -> bool {
        self.0.iter().all(|group| group.iter().any(|tag| tags.contains(tag)))
    }

    pub(super) fn check(&self) -> Result<(), Invalid> {
        check_groups("tags", &self.0)?;
        check_all("tags", self.0.iter().map(Vec::len).sum())
    }
}

impl DataFilter {
    /// Longest name and longest text, in characters.
    pub const MAX_TEXT: usize = 256;

    /// Returns `true` if any message matches.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    // Refuses lists and objects, which may be nested deeper than the stack allows.
    pub(super) fn add(&mut self, name: String, group: Vec<Value>) -> Result<(), Invalid> {
        if let Err(invalid) = group.iter().try_for_each(check_scalar) {
            group.into_iter().for_each(dismantle);
            return Err(invalid.named(format!("data.{name}")));
        }
        self.0.entry(name).or_default().0.push(group);
        Ok(())
    }

    pub(super) fn matches(&self, payload: Option<&Object>) -> bool {
        self.0.iter().all(|(name, DataGroups(groups))| {
            let found = payload.and_then(|payload| payload.find(name));
            found.is_some_and(|found| {
                groups.iter().all(|group| group.iter().any(|value| has(found, value)))
            })
        })
    }

    pub(super) fn check(&self) -> Result<(), Invalid> {
        let groups = || self.0.values().flat_map(|groups| &groups.0);
        check_all("data", groups().map(Vec::len).sum())?;
        self.0.iter().try_for_each(|(name, DataGroups(groups))| {
            let field = format!("data.{name}");
            check_name(name).map_err(|invalid| invalid.named(&field))?;
            if groups.is_empty() {
                return Err(Invalid::new(field, Reason::Empty));
            }
            check_groups(&field, groups)?;
            let mut values = groups.iter().flatten();
            values.try_for_each(|value| check_scalar(value).map_err(|it| it.named(&field)))
        })
    }
}

// Returns `true` if a value of a payload is `wanted`, or is a list with such an item.
fn has(found: &Value, wanted: &Value) -> bool {
    match found {
        Value::Array(items) => items.iter().any(|item| is_equal(item, wanted)),
        found => is_equal(found, wanted),
    }
}

// Numbers are equal if their values are. Whole numbers are compared exactly.
fn is_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) if one.is_f64() || other.is_f64() => {
            one.as_f64() == other.as_f64()
        }
        (one, other) => one == other,
    }
}

fn check_groups<T>(field: &str, groups: &[Vec<T>]) -> Result<(), Invalid> {
    if groups.len() > 1 {
        at_most_items(&format!("{field}.and"), groups, TagFilter::MAX_GROUPS)?;
    }
    groups.iter().enumerate().try_for_each(|(place, group)| {
        let field = match groups.len() {
            1 => field.to_owned(),
            _ => format!("{field}.and[{place}].or"),
        };
        if group.is_empty() {
            return Err(Invalid::new(field, Reason::Empty));
        }
        at_most_items(&field, group, TagFilter::MAX_IN_GROUP)
    })
}

fn check_all(field: &str, count: usize) -> Result<(), Invalid> {
    let max = TagFilter::MAX_IN_ALL;
    if count > max { Err(Invalid::new(field, Reason::TooMany { max })) } else { Ok(()) }
}

fn check_name(name: &str) -> Result<(), Invalid> {
    if name.is_empty() || name.starts_with(['$', '.']) {
        let expected = "under a name that does not start with `$` or `.`";
        return Err(Invalid::new("data", Reason::malformed(expected)));
    }
    at_most("data", name, DataFilter::MAX_TEXT)
}

fn check_scalar(value: &Value) -> Result<(), Invalid> {
    match value {
        Value::String(text) => at_most("data", text, DataFilter::MAX_TEXT),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        Value::Array(_) | Value::Object(_) => {
            let expected = "a text, a number, `true`, `false`, `null`, or a group of these";
            Err(Invalid::new("data", Reason::malformed(expected)))
        }
    }
}

/// One group. A group without tags is refused when the query is checked.
impl From<Vec<String>> for TagFilter {
    fn from(tags: Vec<String>) -> Self {
        Self(vec![tags])
    }
}

impl Serialize for TagFilter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [] => serializer.collect_seq::<[&str; 0]>([]),
            [group] if !group.is_empty() => group.serialize(serializer),
            groups => serialize_and(groups, serializer),
        }
    }
}

// `null` counts as absent, as in other lists of queries.
impl<'de> Deserialize<'de> for TagFilter {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let written = Value::deserialize(from)?;
        let is_group = written.is_object();
        let groups = if written.is_null() { Some(Vec::new()) } else { groups_of(written) };
        let tags = |group: Vec<Value>| group.into_iter().map(String::deserialize).collect();
        let groups: Option<Result<Vec<Vec<String>>, _>> =
            groups.map(|groups| groups.into_iter().map(tags).collect());
        let Some(Ok(groups)) = groups else {
            return Err(D::Error::custom("`tags` must be a list of texts, or groups of them"));
        };
        if is_group {
            // No groups are no filter for any message: `check` refuses one without tags.
            return Ok(Self(if groups.is_empty() { vec![Vec::new()] } else { groups }));
        }
        // In a request, an empty list is no filter.
        let tags: Vec<_> = groups.into_iter().flatten().collect();
        Ok(if tags.is_empty() { Self::default() } else { tags.into() })
    }
}

impl Serialize for DataGroups {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [group] => match group.as_slice() {
                [value] if check_scalar(value).is_ok() => value.serialize(serializer),
                group => group.serialize(serializer),
            },
            groups => serialize_and(groups, serializer),
        }
    }
}

// A value that is no scalar is refused when the query is checked, with its name.
impl<'de> Deserialize<'de> for DataGroups {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let groups = groups_of(Value::deserialize(from)?);
        let refused = || D::Error::custom("`data` must have values, or groups of them");
        groups.map(Self).ok_or_else(refused)
    }
}

impl<'de> Deserialize<'de> for DataFilter {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self(Option::deserialize(from)?.unwrap_or_default()))
    }
}

fn serialize_and<T: Serialize, S: Serializer>(
    groups: &[Vec<T>],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let groups: Vec<_> = groups.iter().map(|or| Or { or: or.iter().collect() }).collect();
    let mut map = serializer.serialize_map(Some(1))?;
    map.serialize_entry("and", &groups)?;
    map.end()
}

impl Shaped for TagFilter {
    fn shape() -> Shape {
        Shape::many(|| Shape::choice(choose::<String>))
    }
}

impl Shaped for DataFilter {
    fn shape() -> Shape {
        Shape::nullable(|| Shape::entries::<DataGroups>(check_name))
    }
}

impl Shaped for DataGroups {
    fn shape() -> Shape {
        Shape::choice(|value| match value {
            Value::Array(_) => Vec::<Scalar>::shape(),
            value => choose::<Scalar>(value),
        })
    }
}

#[derive(Deserialize)]
struct Scalar(IgnoredAny);

impl Shaped for Scalar {
    fn shape() -> Shape {
        Shape::leaf(check_scalar)
    }
}

fn choose<T: Shaped>(value: &Value) -> Shape {
    match value {
        Value::Object(members) if members.contains_key("and") => Shape::members::<IgnoredAny>(
            const { &[Member::inside(&["and"], || Shape::items(or::<T>))] },
            &[],
        ),
        Value::Object(_) => or::<T>(),
        _ => T::shape(),
    }
}

fn or<T: Shaped>() -> Shape {
    Shape::members::<Or<T>>(const { &[Member::inside(&["or"], Vec::<T>::shape)] }, &[])
}

#[cfg(test)]
mod tests;
