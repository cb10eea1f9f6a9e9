//! What a request looks like as JSON: which members an object has, and how each of them is read.
//!
//! Serde knows as much, and does not say it: it passes over what it does not know, and loses the
//! way in structures that are flattened into others. So every request declares its shape beside
//! its fields, with [`shape`].

use std::iter;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::Invalid;
use crate::page::OrderBy;

/// A type that [`read`](super::read) reads.
pub trait Shaped: DeserializeOwned {
    /// What it looks like as JSON.
    #[doc(hidden)]
    fn shape() -> Shape;

    /// The same in a query, where a number or a flag may be written out.
    #[doc(hidden)]
    fn written() -> Shape {
        Self::shape()
    }
}

/// What something looks like as JSON.
#[derive(Clone, Copy, Debug)]
pub struct Shape(pub(super) Kind);

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// Something that is read as a whole.
    Leaf(Check),
    /// The words that a list can be sorted by.
    Orders(&'static [OrderBy]),
    /// Something, or `null`.
    Nullable(Lazy),
    /// A list.
    Items(Lazy),
    /// A list, or one item of it.
    Many(Lazy, EmptyText),
    /// An object with members of any name.
    Entries(Name, Lazy),
    /// An object with these members, and those of what is flattened into it.
    Members { read: Read, members: &'static [Member], flat: &'static [Flat] },
    /// An object whose members depend on a word.
    Tagged { read: Read, tag: &'static str, variants: &'static [(&'static str, Lazy)] },
    /// One of several, depending on what is there.
    Choice(fn(&Value) -> Shape),
}

/// What an empty text says where a list is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EmptyText {
    /// It is an item.
    IsItem,
    /// Nothing, as a field of a form that nobody has filled in.
    SaysNothing,
    /// That the list is empty.
    IsNoItem,
}

pub(crate) type Lazy = fn() -> Shape;
pub(super) type Check = fn(&Value) -> Result<(), Invalid>;
pub(super) type Read = fn(&Value) -> Result<(), serde_json::Error>;
type Name = fn(&str) -> Result<(), Invalid>;

/// A member of an object, under its name and under others that mean the same.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    names: &'static [&'static str],
    shape: Lazy,
}

/// The members of something that is flattened into an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flat {
    shape: Lazy,
    orders: &'static [OrderBy],
}

impl Member {
    /// The member of `S` that the field is.
    pub(crate) const fn of<S, T: Shaped>(
        names: &'static [&'static str],
        _: for<'s> fn(&'s S) -> &'s T,
    ) -> Self {
        Self { names, shape: T::shape }
    }

    /// The same where numbers and flags may be written out.
    pub(crate) const fn written<S, T: Shaped>(
        names: &'static [&'static str],
        _: for<'s> fn(&'s S) -> &'s T,
    ) -> Self {
        Self { names, shape: T::written }
    }

    /// A list, or one item of it.
    pub(crate) const fn many<S, T: Shaped>(
        names: &'static [&'static str],
        _: for<'s> fn(&'s S) -> &'s Vec<T>,
    ) -> Self {
        Self { names, shape: || Shape(Kind::Many(T::shape, EmptyText::IsItem)) }
    }

    /// A list, or one item of it, in a query: an empty text says nothing.
    pub(crate) const fn list<S, T: Shaped>(
        names: &'static [&'static str],
        _: for<'s> fn(&'s S) -> &'s Vec<T>,
    ) -> Self {
        Self { names, shape: || Shape(Kind::Many(T::shape, EmptyText::SaysNothing)) }
    }

    /// A member with members of its own.
    pub(crate) const fn inside(names: &'static [&'static str], shape: Lazy) -> Self {
        Self { names, shape }
    }

    /// The member of a variant, which has no fields that could be named.
    pub(crate) const fn typed<T: Shaped>(names: &'static [&'static str]) -> Self {
        Self { names, shape: T::shape }
    }
}

impl Flat {
    /// What the field holds.
    pub(crate) const fn of<S, T: Shaped>(_: for<'s> fn(&'s S) -> &'s T) -> Self {
        Self { shape: T::shape, orders: &[] }
    }

    /// The page of a list that can be sorted by `orders`.
    pub(crate) const fn page<S, T: Shaped>(
        _: for<'s> fn(&'s S) -> &'s T,
        orders: &'static [OrderBy],
    ) -> Self {
        Self { shape: T::shape, orders }
    }

    /// What a variant holds.
    pub(crate) const fn typed<T: Shaped>() -> Self {
        Self { shape: T::shape, orders: &[] }
    }
}

impl Shape {
    /// Something that is read as a whole, and says what is wrong with it.
    pub(crate) const fn leaf(check: Check) -> Self {
        Self(Kind::Leaf(check))
    }

    /// An object with these members.
    pub(crate) fn members<T: DeserializeOwned>(
        members: &'static [Member],
        flat: &'static [Flat],
    ) -> Self {
        Self(Kind::Members { read: reads::<T>, members, flat })
    }

    /// The same object, from which a `T` is made.
    pub(crate) fn read_as<T: DeserializeOwned>(self) -> Self {
        match self.0 {
            Kind::Members { members, flat, .. } => {
                Self(Kind::Members { read: reads::<T>, members, flat })
            }
            _ => self,
        }
    }

    /// An object whose members depend on the word under `tag`.
    pub(crate) fn tagged<T: DeserializeOwned>(
        tag: &'static str,
        variants: &'static [(&'static str, Lazy)],
    ) -> Self {
        Self(Kind::Tagged { read: reads::<T>, tag, variants })
    }

    /// An object with members of any name that `name` does not refuse.
    pub(crate) fn entries<T: Shaped>(name: Name) -> Self {
        Self(Kind::Entries(name, T::shape))
    }

    /// A set that may be a single item; an empty text is the empty set.
    pub(crate) const fn set(item: Lazy) -> Self {
        Self(Kind::Many(item, EmptyText::IsNoItem))
    }

    /// One of several, depending on what is there.
    pub(crate) const fn choice(choose: fn(&Value) -> Shape) -> Self {
        Self(Kind::Choice(choose))
    }

    /// Whether it is a list, of which a query may give one item after the other.
    pub(crate) fn is_list(&self) -> bool {
        match self.0 {
            Kind::Items(_) | Kind::Many(..) => true,
            Kind::Nullable(inner) => inner().is_list(),
            Kind::Leaf(_)
            | Kind::Orders(_)
            | Kind::Entries(..)
            | Kind::Members { .. }
            | Kind::Tagged { .. }
            | Kind::Choice(_) => false,
        }
    }

    /// Whether an empty text says something in a query.
    pub(crate) fn takes_empty_text(&self) -> bool {
        matches!(self.0, Kind::Many(_, EmptyText::IsNoItem))
    }

    /// The shape of the member of that name, in `object`.
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
            | Kind::Nullable(_)
            | Kind::Items(_)
            | Kind::Many(..)
            | Kind::Entries(..)
            | Kind::Choice(_) => None,
        }
    }

    /// What the members of `object` may be called.
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
            | Kind::Nullable(_)
            | Kind::Items(_)
            | Kind::Many(..)
            | Kind::Entries(..)
            | Kind::Choice(_) => Vec::new(),
        }
    }

    /// The words that decide what is in `object`, and the name they stand under.
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
            | Kind::Nullable(_)
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

// The variant that the word in `object` chooses; all of them, if it chooses none.
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

/// Declares what a type looks like as JSON: the names of its members, with the fields that they
/// are, and behind `;` the fields whose members are its own. Behind a field may stand how it is read:
/// `as written`, as a number or a flag of a query; `as many`, as a list or one item of it; `as
/// list`, the same in a query. Of an enum, the words of its tag have members with their types.
macro_rules! shape {
    ($type:ident {
        $($name:literal $(| $alias:literal)* : $field:ident $(as $how:ident)?),* $(,)?
        $(; $($flat:ident $(by $orders:path)?),+)?
    }) => {
        impl $crate::json::Shaped for $type {
            fn shape() -> $crate::json::Shape {
                const MEMBERS: &[$crate::json::Member] = &[$(
                    $crate::json::shape!(
                        @member $type, [$name $(, $alias)*], $field $(, $how)?
                    ),
                )*];
                const FLAT: &[$crate::json::Flat] = &[$($(
                    $crate::json::shape!(@flat $type, $flat $(, $orders)?),
                )+)?];
                $crate::json::Shape::members::<Self>(MEMBERS, FLAT)
            }
        }
    };
    ($type:ident by $tag:literal {
        $($word:literal: { $($name:literal: $of:ty),* $(; $flat:ty)? }),* $(,)?
    }) => {
        impl $crate::json::Shaped for $type {
            fn shape() -> $crate::json::Shape {
                $crate::json::Shape::tagged::<Self>($tag, &[$(
                    ($word, || {
                        const MEMBERS: &[$crate::json::Member] =
                            &[$($crate::json::Member::typed::<$of>(&[$name])),*];
                        const FLAT: &[$crate::json::Flat] =
                            &[$($crate::json::Flat::typed::<$flat>())?];
                        $crate::json::Shape::members::<::serde::de::IgnoredAny>(MEMBERS, FLAT)
                    }),
                )*])
            }
        }
    };
    (@member $type:ident, $names:tt, $field:ident) => {
        $crate::json::Member::of(&$names, |it: &$type| &it.$field)
    };
    (@member $type:ident, $names:tt, $field:ident, $how:ident) => {
        $crate::json::Member::$how(&$names, |it: &$type| &it.$field)
    };
    (@flat $type:ident, $field:ident) => {
        $crate::json::Flat::of(|it: &$type| &it.$field)
    };
    (@flat $type:ident, $field:ident, $orders:path) => {
        $crate::json::Flat::page(|it: &$type| &it.$field, $orders)
    };
}
pub(crate) use shape;
