//! Shapes of requests as JSON: members, and how each of them is read.
//!
//! Serde has the same knowledge, but gives no access to it. Unknown members are ignored, and
//! flattened structures lose the path. So every request declares a shape beside its fields, with
//! `shape`.

use std::iter;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::Invalid;
use crate::page::OrderBy;

/// Type that [`read`](super::read()) reads.
#[doc(hidden)]
pub trait Shaped: DeserializeOwned {
    /// Returns the shape as JSON.
    #[doc(hidden)]
    fn shape() -> Shape;

    /// Returns the shape in a query, where a number or a flag may be a text.
    #[doc(hidden)]
    fn written() -> Shape {
        Self::shape()
    }
}

/// Shape of a JSON value.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Shape(pub(super) Kind);

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// Value without members of its own.
    Leaf(Check),
    /// Field that a list can be sorted by.
    Orders(&'static [OrderBy]),
    /// Value or `null`.
    Nullable(Lazy, Null),
    /// List.
    Items(Lazy),
    /// List, or one item of it.
    Many(Lazy, EmptyText),
    /// Object with members of any name.
    Entries(Name, Lazy),
    /// Object with these members, and with those of the flattened shapes.
    Members { read: Read, members: &'static [Member], flat: &'static [Flat], absent: Absent },
    /// Object whose members depend on a word.
    Tagged { read: Read, tag: &'static str, variants: &'static [(&'static str, Lazy)] },
    /// One of several shapes, depending on the value.
    Choice(fn(&Value) -> Shape),
}

/// Meaning of `null`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Null {
    /// The same as an absent member.
    IsAbsent,
    /// The value is cleared.
    Clears,
}

/// Meaning of an absent member of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absent {
    /// There is no value.
    IsNothing,
    /// The stored value is kept. So a `null` that clears nothing is refused.
    Keeps,
}

/// Meaning of an empty text in place of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EmptyText {
    /// One item.
    IsItem,
    /// The empty list.
    IsNoItem,
}

pub(crate) type Lazy = fn() -> Shape;
pub(super) type Check = fn(&Value) -> Result<(), Invalid>;
pub(super) type Read = fn(&Value) -> Result<(), serde_json::Error>;
type Name = fn(&str) -> Result<(), Invalid>;

/// Member of an object, under a name and aliases.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    names: &'static [&'static str],
    shape: Lazy,
}

/// Members of a flattened shape.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flat {
    shape: Lazy,
    orders: &'static [OrderBy],
}

impl Member {
    /// Returns the member for a field of `S`.
    pub(crate) const fn of<S, T: Shaped>(
        names: &'static [&'static str],
        _: for<'s> fn(&'s S) -> &'s T,
    ) -> Self {
        Self { names, shape: T::shape }
    }

    /// Returns the member for a field in a query, where numbers and flags may be texts.
    pub(crate) const fn written<S, T: Shaped>(
        names: &'static [&'static str],
        _: for<'s> fn(&'s S) -> &'s T,
    ) -> Self {
        Self { names, shape: T::written }
    }

    /// Returns the member for a list, or for one item of it.
    pub(crate) const fn many<S, T: Shaped>(
        names: &'static [&'static str],
        _: for<'s> fn(&'s S) -> &'s Vec<T>,
    ) -> Self {
        Self { names, shape: || Shape(Kind::Many(T::shape, EmptyText::IsItem)) }
    }

    /// Returns a member with members of its own.
    pub(crate) const fn inside(names: &'static [&'static str], shape: Lazy) -> Self {
        Self { names, shape }
    }

    /// Returns the member of a variant, which has no field to refer to.
    pub(crate) const fn typed<T: Shaped>(names: &'static [&'static str]) -> Self {
        Self { names, shape: T::shape }
    }
}

impl Flat {
    /// Returns the flattened members of a field.
    pub(crate) const fn of<S, T: Shaped>(_: for<'s> fn(&'s S) -> &'s T) -> Self {
        Self { shape: T::shape, orders: &[] }
    }

    /// Returns the members of the page of a list with these `orders`.
    pub(crate) const fn page<S, T: Shaped>(
        _: for<'s> fn(&'s S) -> &'s T,
        orders: &'static [OrderBy],
    ) -> Self {
        Self { shape: T::shape, orders }
    }

    /// Returns the flattened members of a variant.
    pub(crate) const fn typed<T: Shaped>() -> Self {
        Self { shape: T::shape, orders: &[] }
    }
}

impl Shape {
    /// Returns the shape of a value without members, which `check` reads.
    pub(crate) const fn leaf(check: Check) -> Self {
        Self(Kind::Leaf(check))
    }

    /// Returns the shape of an object with these members.
    pub(crate) fn members<T: DeserializeOwned>(
        members: &'static [Member],
        flat: &'static [Flat],
    ) -> Self {
        Self(Kind::Members { read: reads::<T>, members, flat, absent: Absent::IsNothing })
    }

    /// Returns the shape of an update with these members.
    pub(crate) fn update<T: DeserializeOwned>(
        members: &'static [Member],
        flat: &'static [Flat],
    ) -> Self {
        Self(Kind::Members { read: reads::<T>, members, flat, absent: Absent::Keeps })
    }

    /// Returns the same shape, read as a `T`.
    pub(crate) fn read_as<T: DeserializeOwned>(self) -> Self {
        match self.0 {
            Kind::Members { members, flat, absent, .. } => {
                Self(Kind::Members { read: reads::<T>, members, flat, absent })
            }
            _ => self,
        }
    }

    /// Returns the shape of an object whose members depend on the word under `tag`.
    pub(crate) fn tagged<T: DeserializeOwned>(
        tag: &'static str,
        variants: &'static [(&'static str, Lazy)],
    ) -> Self {
        Self(Kind::Tagged { read: reads::<T>, tag, variants })
    }

    /// Returns the shape of an object with members of any name that `name` accepts.
    pub(crate) fn entries<T: Shaped>(name: Name) -> Self {
        Self(Kind::Entries(name, T::shape))
    }

    /// Returns the shape of a set, or of a single item. An empty text is the empty set.
    pub(crate) const fn set(item: Lazy) -> Self {
        Self(Kind::Many(item, EmptyText::IsNoItem))
    }

    /// Returns the shape of a list, or of a single item.
    pub(crate) const fn many(item: Lazy) -> Self {
        Self(Kind::Many(item, EmptyText::IsItem))
    }

    /// Returns the shape of a list.
    pub(crate) const fn items(item: Lazy) -> Self {
        Self(Kind::Items(item))
    }

    /// Returns the shape of a value or `null`, which counts as absent.
    pub(crate) const fn nullable(value: Lazy) -> Self {
        Self(Kind::Nullable(value, Null::IsAbsent))
    }

    /// Returns one of several shapes, depending on the value.
    pub(crate) const fn choice(choose: fn(&Value) -> Shape) -> Self {
        Self(Kind::Choice(choose))
    }

    /// Returns `true` for a list, whose items may be repeated fields of a query.
    pub(crate) fn is_list(&self) -> bool {
        match self.0 {
            Kind::Items(_) | Kind::Many(..) => true,
            Kind::Nullable(inner, _) => inner().is_list(),
            Kind::Leaf(_)
            | Kind::Orders(_)
            | Kind::Entries(..)
            | Kind::Members { .. }
            | Kind::Tagged { .. }
            | Kind::Choice(_) => false,
        }
    }

    /// Returns `true` if `null` in the member `name` of `object` would keep the stored value.
    pub(super) fn keeps_for_null(&self, object: &Map<String, Value>, name: &str) -> bool {
        let keeps = matches!(self.0, Kind::Members { absent: Absent::Keeps, .. });
        let member = self.member(object, name).filter(|_| keeps);
        member.is_some_and(|member| matches!(member.0, Kind::Nullable(_, Null::IsAbsent)))
    }

    /// Returns `true` if an empty text has a meaning in a query.
    pub(crate) fn takes_empty_text(&self) -> bool {
        matches!(self.0, Kind::Many(_, EmptyText::IsNoItem))
    }

    /// Returns the shape of the member `name` of `object`.
    pub(crate) fn member(&self, object: &Map<String, Value>, name: &str) -> Option<Shape> {
        match self.0 {
            Kind::Members { members, flat, .. } => {
                let own = members.iter().find(|member| member.names.contains(&name));
                let own = own.map(|member| (member.shape)());
                own.or_else(|| flat.iter().find_map(|flat| flat.member(object, name)))
            }
            Kind::Tagged { tag, .. } if name == tag => Some(Shape(Kind::Leaf(|_| Ok(())))),
            Kind::Tagged { tag, variants, .. } => {
                chosen(object, tag, variants).find_map(|shape| shape.member(object, name))
            }
            Kind::Leaf(_)
            | Kind::Orders(_)
            | Kind::Nullable(..)
            | Kind::Items(_)
            | Kind::Many(..)
            | Kind::Entries(..)
            | Kind::Choice(_) => None,
        }
    }

    /// Returns the names that the members of `object` may have.
    pub(crate) fn names(&self, object: &Map<String, Value>) -> Vec<&'static str> {
        match self.0 {
            Kind::Members { members, flat, .. } => {
                let own = members.iter().flat_map(|member| member.names.iter().copied());
                let flat = flat.iter().flat_map(|flat| (flat.shape)().names(object));
                own.chain(flat).collect()
            }
            Kind::Tagged { tag, variants, .. } => {
                let inside = chosen(object, tag, variants);
                iter::once(tag).chain(inside.flat_map(|shape| shape.names(object))).collect()
            }
            Kind::Leaf(_)
            | Kind::Orders(_)
            | Kind::Nullable(..)
            | Kind::Items(_)
            | Kind::Many(..)
            | Kind::Entries(..)
            | Kind::Choice(_) => Vec::new(),
        }
    }

    /// Returns the shape of the object in the member `name`, and its place: `name`, or `name[0]` in a
    /// list.
    pub(super) fn inside(&self, name: &str) -> Option<(String, Shape)> {
        match self.0 {
            Kind::Members { .. } | Kind::Tagged { .. } => Some((name.to_owned(), *self)),
            Kind::Nullable(inner, _) => inner().inside(name),
            Kind::Items(item) => item().inside(name).map(|(name, item)| (name + "[0]", item)),
            Kind::Leaf(_)
            | Kind::Orders(_)
            | Kind::Many(..)
            | Kind::Entries(..)
            | Kind::Choice(_) => None,
        }
    }

    /// Returns the words that select a variant, and the name of their member.
    pub(super) fn tags(&self) -> Vec<(&'static str, Vec<&'static str>)> {
        match self.0 {
            Kind::Members { flat, .. } => {
                flat.iter().flat_map(|flat| (flat.shape)().tags()).collect()
            }
            Kind::Tagged { tag, variants, .. } => {
                vec![(tag, variants.iter().map(|(word, _)| *word).collect())]
            }
            Kind::Leaf(_)
            | Kind::Orders(_)
            | Kind::Nullable(..)
            | Kind::Items(_)
            | Kind::Many(..)
            | Kind::Entries(..)
            | Kind::Choice(_) => Vec::new(),
        }
    }
}

impl Flat {
    fn member(&self, object: &Map<String, Value>, name: &str) -> Option<Shape> {
        if name == "orderBy" && !self.orders.is_empty() {
            return Some(Shape(Kind::Orders(self.orders)));
        }
        (self.shape)().member(object, name)
    }
}

// Returns the variant that the word in `object` selects. Returns all variants if there is no such
// word.
fn chosen(
    object: &Map<String, Value>,
    tag: &str,
    variants: &'static [(&'static str, Lazy)],
) -> impl Iterator<Item = Shape> {
    let word = object.get(tag).and_then(Value::as_str);
    let word =
        word.filter(|word| variants.iter().any(|(known, _)| known == word)).map(str::to_owned);
    let is_chosen = move |known: &str| word.as_deref().is_none_or(|word| word == known);
    variants.iter().filter(move |(known, _)| is_chosen(known)).map(|(_, shape)| shape())
}

fn reads<T: DeserializeOwned>(value: &Value) -> Result<(), serde_json::Error> {
    T::deserialize(value).map(drop)
}
