//! Keys: byte strings that sort as lists do.
//!
//! A key is a sequence of [parts](Part). Text parts end in NUL, which no text part contains, so that
//! the parts of `("a", "b")` never run together into those of `("ab", "")`. Ids are their 16 bytes.
//! Times are big-endian with the sign bit flipped, so that they sort as times. Numbers are
//! big-endian, ordinals in 5 bytes, places of messages in 8.
//!
//! A table knows the parts of its keys and the type of record that a key leads to. A key is made
//! part by part. So a key cannot be looked up in another table, and its record cannot be taken for
//! one of another type:
//!
//! ```
//! # use domain::{ids::{EnvironmentId, SubscriberId}, subscriber::Subscriber, topic::Topic};
//! # use store::{ReadRecords, Result, Snapshot, layout::SUBSCRIBERS};
//! # use tidings_store as store;
//! fn find(at: &dyn Snapshot, env: EnvironmentId, id: &SubscriberId) -> Result<Option<Subscriber>> {
//!     at.find(&SUBSCRIBERS.within(env).then(id).end())
//! }
//! ```
//!
//! ```compile_fail,E0308
//! # use domain::{ids::{EnvironmentId, SubscriberId}, subscriber::Subscriber, topic::Topic};
//! # use store::{ReadRecords, Result, Snapshot, layout::SUBSCRIBERS};
//! # use tidings_store as store;
//! fn find(at: &dyn Snapshot, env: EnvironmentId, id: &SubscriberId) -> Result<Option<Topic>> {
//!     at.find(&SUBSCRIBERS.within(env).then(id).end())
//! }
//! ```
//!
//! A part of another type is refused:
//!
//! ```compile_fail,E0308
//! # use domain::{ids::{EnvironmentId, TopicKey}, subscriber::Subscriber};
//! # use store::{Key, layout::SUBSCRIBERS};
//! # use tidings_store as store;
//! fn key(env: EnvironmentId, topic: &TopicKey) -> Key<Subscriber> {
//!     SUBSCRIBERS.within(env).then(topic).end()
//! }
//! ```
//!
//! So is a key with a part too few, and one with a part too many:
//!
//! ```compile_fail,E0599
//! # use domain::{ids::EnvironmentId, subscriber::Subscriber};
//! # use store::{Key, layout::SUBSCRIBERS};
//! # use tidings_store as store;
//! fn key(env: EnvironmentId) -> Key<Subscriber> {
//!     SUBSCRIBERS.within(env).end()
//! }
//! ```
//!
//! ```compile_fail,E0599
//! # use domain::{ids::{EnvironmentId, SubscriberId}, subscriber::Subscriber};
//! # use store::{Key, layout::SUBSCRIBERS};
//! # use tidings_store as store;
//! fn key(env: EnvironmentId, id: &SubscriberId) -> Key<Subscriber> {
//!     SUBSCRIBERS.within(env).then(id).then(id).end()
//! }
//! ```

mod part;

use std::fmt;
use std::marker::PhantomData;
use std::ops::Bound;

use domain::ids::EnvironmentId;
use domain::page::{self, OrderBy};

use crate::{KeyRange, Order, Table};

pub(crate) use part::parts;
pub use part::{Any, Part, Parts, Place, Sorted, Text};

/// A table with keys of the parts `K`, whose entries are records `R`, or lead to records `R`.
#[derive(Debug)]
pub struct TableOf<R, K> {
    table: Table,
    kind: PhantomData<fn() -> (R, K)>,
}

impl<R, K> TableOf<R, K> {
    pub(crate) const fn new(table: Table) -> Self {
        Self { table, kind: PhantomData }
    }

    /// All keys of the table.
    pub fn all(&self) -> Prefix<R, K> {
        Prefix::new(self.table, Vec::with_capacity(TYPICAL_LEN))
    }
}

impl<R, K> TableOf<R, (EnvironmentId, K)> {
    /// The keys of an environment.
    pub fn within(&self, environment: EnvironmentId) -> Prefix<R, K> {
        self.all().then(environment)
    }
}

impl<R, K: Parts> TableOf<R, K> {
    /// The parts of `key`. Returns `None` if it is no key of this table.
    pub fn read<'k>(&self, mut key: &'k [u8]) -> Option<K::Read<'k>> {
        let parts = K::read(&mut key)?;
        key.is_empty().then_some(parts)
    }
}

/// A value that is not a record.
#[derive(Clone, Copy, Debug)]
pub enum Bytes {}

/// The parts that follow a prefix, where they do not matter.
#[derive(Clone, Copy, Debug)]
pub enum Open {}

/// The length of most keys, in bytes.
const TYPICAL_LEN: usize = 64;

macro_rules! keys {
    ($($(#[$doc:meta])* $name:ident<R $(, $parts:ident = $default:ty)?>: $bytes:ty,)+) => {
        $(
            $(#[$doc])*
            pub struct $name<R $(, $parts = $default)?> {
                table: Table,
                bytes: $bytes,
                kind: PhantomData<fn() -> (R, $($parts)?)>,
            }

            impl<R $(, $parts)?> $name<R $(, $parts)?> {
                const fn new(table: Table, bytes: $bytes) -> Self {
                    Self { table, bytes, kind: PhantomData }
                }

                /// The table.
                pub fn table(&self) -> Table {
                    self.table
                }
            }

            // Derived code would demand the same of the record.
            impl<R $(, $parts)?> Clone for $name<R $(, $parts)?> {
                fn clone(&self) -> Self {
                    Self::new(self.table, self.bytes.clone())
                }
            }

            impl<R $(, $parts)?> PartialEq for $name<R $(, $parts)?> {
                fn eq(&self, other: &Self) -> bool {
                    (self.table, &self.bytes) == (other.table, &other.bytes)
                }
            }

            impl<R $(, $parts)?> Eq for $name<R $(, $parts)?> {}

            impl<R $(, $parts)?> fmt::Debug for $name<R $(, $parts)?> {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.debug_tuple(stringify!($name)).field(&self.table).field(&self.bytes).finish()
                }
            }
        )+
    };
}

keys! {
    /// The key of one entry, which is a record `R` or leads to one.
    Key<R>: Vec<u8>,
    /// The leading parts of keys, which the parts `K` follow.
    Prefix<R, K = Open>: Vec<u8>,
    /// A range of keys.
    Range<R>: KeyRange,
}

impl<R, P: Part, K> Prefix<R, (P, K)> {
    /// The keys of this prefix that have `part` next.
    pub fn then(mut self, part: P::Form<'_>) -> Prefix<R, K> {
        P::write(part, &mut self.bytes);
        Prefix::new(self.table, self.bytes)
    }
}

impl<R, P: Part, K> Prefix<R, (P, K)> {
    /// The keys on both sides of those that have `part` next: the ones before them, and the ones
    /// behind them.
    pub(crate) fn around(self, part: P::Form<'_>) -> [Range<R>; 2] {
        let own = self.clone().then(part);
        [self.clone().until(own.clone()), self.range().beyond(own.range())]
    }
}

impl<R, Id, K> Prefix<R, (Sorted<Id>, K)> {
    /// The list in this order.
    pub fn by(mut self, order_by: OrderBy) -> Prefix<R> {
        u8::write(order_by.tag(), &mut self.bytes);
        self.open()
    }
}

impl<R> Prefix<R, ()> {
    /// The key that ends here.
    pub fn end(self) -> Key<R> {
        Key::new(self.table, self.bytes)
    }
}

impl<R, K> Prefix<R, K> {
    /// The same prefix, without the types of the parts that follow.
    pub fn open(self) -> Prefix<R> {
        Prefix::new(self.table, self.bytes)
    }

    /// The same prefix, whatever its entries are or lead to.
    pub(crate) fn untyped(self) -> Prefix<Bytes> {
        Prefix::new(self.table, self.bytes)
    }

    /// The keys of this prefix that continue with `bytes`.
    pub(crate) fn and(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// The keys from the start of this prefix up to that of `end`.
    pub fn until<L>(self, end: Prefix<R, L>) -> Range<R> {
        Range::new(self.table, (Bound::Included(self.bytes), Bound::Excluded(end.bytes)))
    }

    /// The bytes with which the keys begin.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The keys with this prefix.
    pub fn range(&self) -> Range<R> {
        Range::new(self.table, range(&self.bytes))
    }

    /// The keys with this prefix that are on the far side of `bound` as seen in `order`, or all.
    pub(crate) fn beyond(&self, bound: Option<&page::Bound>, order: Order) -> KeyRange {
        match (bound, order) {
            (None, _) => range(&self.bytes),
            (Some(bound), Order::Ascending) => self.above(bound),
            (Some(bound), Order::Descending) => self.below(bound),
        }
    }

    // The keys that sort behind `bound`. A key that continues the item's key counts as the item.
    fn above(&self, bound: &page::Bound) -> KeyRange {
        let start = match bound {
            page::Bound::Included(cursor) => Bound::Included(self.item(cursor)),
            page::Bound::Excluded(cursor) => match upper_bound(&self.item(cursor)) {
                Some(behind) => Bound::Included(behind),
                None => return (Bound::Excluded(Vec::new()), Bound::Excluded(Vec::new())),
            },
        };
        (start, range(&self.bytes).1)
    }

    // The keys that sort in front of `bound`. A key that continues the item's key counts as the
    // item.
    fn below(&self, bound: &page::Bound) -> KeyRange {
        let end = match bound {
            page::Bound::Included(cursor) => range(&self.item(cursor)).1,
            page::Bound::Excluded(cursor) => Bound::Excluded(self.item(cursor)),
        };
        (range(&self.bytes).0, end)
    }

    fn item(&self, cursor: &page::Cursor) -> Vec<u8> {
        [&self.bytes, cursor.key()].concat()
    }

    /// The part of `key` behind this prefix. Returns `None` if `key` has another prefix.
    pub(crate) fn rest<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        key.strip_prefix(self.bytes.as_slice())
    }
}

impl<R> Key<R> {
    /// The bytes by which the store sorts.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The table, and the bytes.
    pub fn into_parts(self) -> (Table, Vec<u8>) {
        (self.table, self.bytes)
    }
}

impl<R> Range<R> {
    /// The range of bytes.
    pub fn bytes(&self) -> &KeyRange {
        &self.bytes
    }

    /// The keys from `start` to the end of this range.
    pub(crate) fn starting_at(self, start: Key<R>) -> Self {
        Self::new(self.table, (Bound::Included(start.bytes), self.bytes.1))
    }

    /// The keys of this range behind `key`.
    pub(crate) fn behind(self, key: Key<R>) -> Self {
        Self::new(self.table, (Bound::Excluded(key.bytes), self.bytes.1))
    }

    /// The keys of this range behind those bytes.
    #[must_use]
    pub fn resumed(self, bytes: &[u8]) -> Self {
        let (start, end) = self.bytes;
        let is_behind = match &start {
            Bound::Included(start) => start.as_slice() > bytes,
            Bound::Excluded(start) => start.as_slice() >= bytes,
            Bound::Unbounded => false,
        };
        let start = if is_behind { start } else { Bound::Excluded(bytes.to_vec()) };
        Self::new(self.table, (start, end))
    }

    /// The keys of this range behind all keys of `other`.
    pub(crate) fn beyond(self, other: Self) -> Self {
        let start = match other.bytes.1 {
            Bound::Excluded(end) => Bound::Included(end),
            Bound::Included(end) => Bound::Excluded(end),
            Bound::Unbounded => self.bytes.1.clone(),
        };
        Self::new(self.table, (start, self.bytes.1))
    }

    /// The keys from the start of this range to the end of `other`.
    pub(crate) fn through(self, other: Self) -> Self {
        Self::new(self.table, (self.bytes.0, other.bytes.1))
    }
}

fn range(prefix: &[u8]) -> KeyRange {
    let end = upper_bound(prefix).map_or(Bound::Unbounded, Bound::Excluded);
    (Bound::Included(prefix.to_vec()), end)
}

// The smallest byte string above each key with this prefix. Returns `None` if there is none.
pub(crate) fn upper_bound(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut bound = prefix.get(..=last)?.to_vec();
    *bound.last_mut()? += 1;
    Some(bound)
}

#[cfg(test)]
mod tests;
