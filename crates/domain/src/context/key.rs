//! Keys of contexts, and sets of keys.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::convert::text_conversions;
use crate::error::{Invalid, Reason};
use crate::json::{self, Shape, Shaped, shape};
use crate::query;

/// Key of a context: type and id, written `type:id`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "ContextKeyFields")]
pub struct ContextKey {
    /// Type, such as `tenant`.
    #[serde(rename = "type")]
    kind: ContextPart,
    /// Id, unique within the type.
    id: ContextPart,
}

shape! { ContextKey { "type": kind, "id": id } }

// Deserialized by field, so that an error names the part at fault.
#[derive(Deserialize)]
struct ContextKeyFields {
    #[serde(rename = "type")]
    kind: String,
    id: String,
}

/// Type or id in a context key: 1 to 100 letters, digits, `_` and `-`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ContextPart(String);

/// Set of contexts. The order does not matter.
// `None` if the set is empty. All notifications of an event and their messages share one set.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextSet(Option<Arc<ContextKeys>>);

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct ContextKeys {
    sorted: BTreeSet<ContextKey>,
    /// The keys as one text, with commas between them. No key has one.
    text: String,
}

/// Filter of a list by context set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(into = "Option<ContextSet>")]
pub enum ContextFilter {
    /// Any set.
    #[default]
    Any,
    /// Exactly this set. The empty set selects items without contexts.
    Exact(ContextSet),
}

impl Shaped for ContextSet {
    fn shape() -> Shape {
        Shape::set(json::context_key)
    }
}

impl Shaped for ContextFilter {
    fn shape() -> Shape {
        ContextSet::shape()
    }
}

impl TryFrom<ContextKeyFields> for ContextKey {
    type Error = Invalid;

    fn try_from(fields: ContextKeyFields) -> Result<Self, Invalid> {
        Self::new(fields.kind, fields.id)
    }
}

impl ContextKey {
    /// Checks `kind` and `id` and returns them as a key.
    pub fn new(kind: impl Into<String>, id: impl Into<String>) -> Result<Self, Invalid> {
        let kind = ContextPart::new(kind).map_err(|invalid| invalid.named("type"))?;
        let id = ContextPart::new(id).map_err(|invalid| invalid.named("id"))?;
        Ok(Self { kind, id })
    }

    /// Returns the type, such as `tenant`.
    pub fn kind(&self) -> &str {
        &self.kind.0
    }

    /// Returns the id, unique within the type.
    pub fn id(&self) -> &str {
        &self.id.0
    }
}

impl ContextPart {
    /// Longest type and longest id of a context, in characters.
    pub const MAX_LEN: usize = 100;

    /// Returns the text of the part.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Checks `raw` and returns it as a part of a key.
    pub fn new(raw: impl Into<String>) -> Result<Self, Invalid> {
        let raw = raw.into();
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if !(1..=Self::MAX_LEN).contains(&raw.len()) || !raw.chars().all(plain) {
            let expected = format!("1 to {} letters, digits, `_` and `-`", Self::MAX_LEN);
            return Err(Invalid::new("context", Reason::malformed(expected)));
        }
        Ok(Self(raw))
    }
}

text_conversions!(ContextPart);

impl From<ContextPart> for String {
    fn from(part: ContextPart) -> String {
        part.0
    }
}

impl fmt::Display for ContextKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.0, self.id.0)
    }
}

impl FromStr for ContextKey {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let Some((kind, id)) = text.split_once(':') else {
            return Err(Invalid::new("context", Reason::malformed("`type:id`")));
        };
        Self::new(kind, id).map_err(|invalid| invalid.named("context"))
    }
}

impl TryFrom<&str> for ContextKey {
    type Error = Invalid;

    fn try_from(text: &str) -> Result<Self, Invalid> {
        text.parse()
    }
}

impl TryFrom<String> for ContextKey {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        text.parse()
    }
}

impl TryFrom<&String> for ContextKey {
    type Error = Invalid;

    fn try_from(text: &String) -> Result<Self, Invalid> {
        text.parse()
    }
}

impl From<&ContextKey> for ContextKey {
    fn from(key: &ContextKey) -> Self {
        key.clone()
    }
}

impl ContextSet {
    /// Returns `true` if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the keys in order.
    pub fn keys(&self) -> impl Iterator<Item = &ContextKey> {
        self.0.iter().flat_map(|keys| &keys.sorted)
    }

    /// Refuses a set of more than `max` keys.
    pub(crate) fn check(&self, max: usize) -> Result<(), Invalid> {
        if self.keys().count() > max {
            return Err(Invalid::new("contextKeys", Reason::TooMany { max }));
        }
        Ok(())
    }

    /// Returns the set as one text. Two sets have the same text if and only if they are equal.
    #[doc(hidden)]
    pub fn canonical(&self) -> &str {
        self.0.as_ref().map_or("", |keys| &keys.text)
    }

    // Returns the text of each key, in order.
    fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(|keys| keys.text.split(','))
    }
}

impl FromIterator<ContextKey> for ContextSet {
    fn from_iter<I: IntoIterator<Item = ContextKey>>(keys: I) -> Self {
        let sorted: BTreeSet<ContextKey> = keys.into_iter().collect();
        let mut text = String::new();
        for key in &sorted {
            let comma = if text.is_empty() { "" } else { "," };
            text.extend([comma, key.kind(), ":", key.id()]);
        }
        Self((!sorted.is_empty()).then(|| Arc::new(ContextKeys { sorted, text })))
    }
}

// A query string writes the empty list as one empty text.
impl TryFrom<Vec<String>> for ContextSet {
    type Error = Invalid;

    fn try_from(keys: Vec<String>) -> Result<Self, Invalid> {
        let keys = keys.iter().filter(|key| !key.is_empty()).map(|key| key.parse());
        keys.map(|key| key.map_err(|invalid: Invalid| invalid.named("contextKeys"))).collect()
    }
}

impl Serialize for ContextSet {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.texts())
    }
}

impl<'de> Deserialize<'de> for ContextSet {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let keys: Vec<String> = query::one_or_many(from)?;
        keys.try_into().map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for ContextFilter {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Option::<ContextSet>::deserialize(from).map(Self::from)
    }
}

impl From<ContextSet> for Vec<String> {
    fn from(set: ContextSet) -> Self {
        set.texts().map(str::to_owned).collect()
    }
}

impl ContextFilter {
    /// Maximum number of contexts in a query of preferences, subscriptions, connections or endpoints.
    pub const MAX_VALUES: usize = 100;

    /// Refuses a filter by more than `max` contexts.
    pub(crate) fn check(&self, max: usize) -> Result<(), Invalid> {
        match self {
            ContextFilter::Any => Ok(()),
            ContextFilter::Exact(contexts) => contexts.check(max),
        }
    }

    /// Returns `true` if the filter excludes nothing.
    #[doc(hidden)]
    pub fn is_any(&self) -> bool {
        *self == ContextFilter::Any
    }

    /// Returns `true` if an item with these contexts meets the filter.
    #[doc(hidden)]
    pub fn matches(&self, contexts: &ContextSet) -> bool {
        match self {
            ContextFilter::Any => true,
            ContextFilter::Exact(wanted) => wanted == contexts,
        }
    }
}

impl From<Option<ContextSet>> for ContextFilter {
    fn from(set: Option<ContextSet>) -> Self {
        set.map_or(ContextFilter::Any, ContextFilter::Exact)
    }
}

impl From<ContextFilter> for Option<ContextSet> {
    fn from(filter: ContextFilter) -> Self {
        match filter {
            ContextFilter::Any => None,
            ContextFilter::Exact(set) => Some(set),
        }
    }
}
