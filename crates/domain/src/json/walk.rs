//! Walk over a value along its shape.

use serde_json::{Map, Value};

use super::path::Path;
use super::refusal;
use super::shape::{EmptyText, Kind, Shape};
use crate::error::{Invalid, Reason};
use crate::suggest::nearest;

/// Words that are used for a member of another name, the most exact name first.
const SYNONYMS: [(&str, &str); 5] = [
    ("workflow", "workflowId"),
    ("workflow", "name"),
    ("workflowId", "name"),
    ("subscriber", "subscriberId"),
    ("recipients", "to"),
];

/// Treatment of unknown members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// Unknown members are refused.
    Refused,
    /// Unknown members are ignored.
    Ignored,
}

/// Subject of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// Objects, lists and names of members.
    Form(Unknown),
    /// Values: a second walk, after serde has refused one of them.
    Values,
}

impl Look {
    /// Refuses the first value that does not have its shape.
    pub(super) fn at(self, shape: Shape, value: &Value, path: &Path<'_>) -> Result<(), Invalid> {
        let refused = |expected| Err(Invalid::new(path.named(), Reason::malformed(expected)));
        match (shape.0, value) {
            (Kind::Leaf(check), value) => self.leaf(path, || check(value)),
            (Kind::Orders(orders), value) => self.leaf(path, || refusal::order(orders, value)),
            (Kind::Nullable(..) | Kind::Many(..), Value::Null) => Ok(()),
            (Kind::Nullable(inner, _), value) => self.at(inner(), value, path),
            (Kind::Choice(choose), value) => self.at(choose(value), value, path),
            (Kind::Items(item), Value::Array(items)) => self.items(item(), items, path),
            (Kind::Items(_), _) => refused("a list"),
            (Kind::Many(item, empty), value) => self.many(item(), empty, value, path),
            (Kind::Entries(name, entry), Value::Object(members)) => {
                members.iter().try_for_each(|(key, value)| {
                    let path = Path::Member(path, key);
                    self.name(&path, key, name)?;
                    self.at(entry(), value, &path)
                })
            }
            (Kind::Members { read, .. } | Kind::Tagged { read, .. }, Value::Object(members)) => {
                self.members(shape, members, path)?;
                match self {
                    Look::Form(_) => Ok(()),
                    Look::Values => read(value).map_err(|error| refusal::of(path, &error)),
                }
            }
            (Kind::Entries(..) | Kind::Members { .. } | Kind::Tagged { .. }, _) => {
                refused("an object")
            }
        }
    }

    fn leaf(self, path: &Path<'_>, check: impl Fn() -> Result<(), Invalid>) -> Result<(), Invalid> {
        match self {
            Look::Form(_) => Ok(()),
            Look::Values => check().map_err(|invalid| path.of(invalid)),
        }
    }

    fn name(
        self,
        path: &Path<'_>,
        name: &str,
        check: fn(&str) -> Result<(), Invalid>,
    ) -> Result<(), Invalid> {
        if self == Look::Form(Unknown::Ignored) {
            return Ok(());
        }
        check(name).map_err(|invalid| {
            if let Reason::NotOneOf { words } = &invalid.reason
                && let Some(word) = nearest(name, words.iter().map(String::as_str))
            {
                let suggestion = Some(word.to_owned());
                return Invalid::new(path.named(), Reason::Unknown { suggestion });
            }
            path.of(invalid)
        })
    }

    fn items(self, item: Shape, items: &[Value], path: &Path<'_>) -> Result<(), Invalid> {
        let mut items = items.iter().enumerate();
        items.try_for_each(|(index, value)| self.at(item, value, &Path::Item(path, index)))
    }

    // Walks over a list, or one item of it.
    fn many(
        self,
        item: Shape,
        empty: EmptyText,
        value: &Value,
        path: &Path<'_>,
    ) -> Result<(), Invalid> {
        let is_item = |item: &Value| {
            empty == EmptyText::IsItem || item.as_str().is_none_or(|text| !text.is_empty())
        };
        match value {
            Value::Array(items) => {
                let mut items = items.iter().enumerate().filter(|(_, item)| is_item(item));
                items.try_for_each(|(index, value)| self.at(item, value, &Path::Item(path, index)))
            }
            value if is_item(value) => self.at(item, value, path),
            _ => Ok(()),
        }
    }

    // The order is: names, then words that select further names, then contents.
    fn members(
        self,
        shape: Shape,
        members: &Map<String, Value>,
        path: &Path<'_>,
    ) -> Result<(), Invalid> {
        if self == Look::Form(Unknown::Refused)
            && let Some(name) = members.keys().find(|name| shape.member(members, name).is_none())
        {
            return Err(unknown(&Path::Member(path, name), name, shape, members));
        }
        if self != Look::Form(Unknown::Ignored) {
            tags(shape, members, path)?;
        }
        let is_kept = |(name, value): &(&String, &Value)| {
            value.is_null() && shape.keeps_for_null(members, name)
        };
        if let Some((name, _)) = members.iter().find(is_kept) {
            let reason = Reason::malformed("a value: leave it out to keep it");
            return Err(Invalid::new(Path::Member(path, name).named(), reason));
        }
        members.iter().try_for_each(|(name, value)| match shape.member(members, name) {
            Some(member) => self.at(member, value, &Path::Member(path, name)),
            None => Ok(()),
        })
    }
}

fn tags(shape: Shape, members: &Map<String, Value>, path: &Path<'_>) -> Result<(), Invalid> {
    shape.tags().into_iter().try_for_each(|(tag, words)| {
        let path = Path::Member(path, tag);
        let missing = || Invalid::new(path.named(), Reason::Missing);
        let value = members.get(tag).ok_or_else(missing)?;
        refusal::word(&words, value).map_err(|invalid| path.of(invalid))
    })
}

/// Refuses a member that `shape` does not have, with the member that was meant.
pub(crate) fn unknown(
    path: &Path<'_>,
    name: &str,
    shape: Shape,
    members: &Map<String, Value>,
) -> Invalid {
    let known = shape.names(members);
    let synonym = || SYNONYMS.iter().find(|(one, other)| *one == name && known.contains(other));
    let suggestion = nearest(name, known.iter().copied())
        .map(str::to_owned)
        .or_else(|| synonym().map(|(_, meant)| (*meant).to_owned()))
        .or_else(|| below(name, shape, members));
    Invalid::new(path.named(), Reason::Unknown { suggestion })
}

// Returns the path of the member `name` one level below, as in `channels.email`. A variant has
// chosen its members.
fn below(name: &str, shape: Shape, members: &Map<String, Value>) -> Option<String> {
    if !shape.tags().is_empty() {
        return None;
    }
    shape.names(members).into_iter().find_map(|parent| {
        let (place, inside) = shape.member(members, parent)?.inside(parent)?;
        inside.names(&Map::new()).contains(&name).then(|| format!("{place}.{name}"))
    })
}
