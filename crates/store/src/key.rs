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
use std::ops::{self, Bound};

use domain::ids::EnvironmentId;
use domain::page::{self, OrderBy};
use uuid::Uuid;

use crate::{KeyRange, Order, Table};

pub(crate) use part::parts;
pub use part::{Any, KeyPart, Parts, Sorted, SortedPlace, Text};

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
pub(crate) const TYPICAL_LEN: usize = 64;

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

impl<R, P: KeyPart, K> Prefix<R, (P, K)> {
    /// The keys of this prefix that have `part` next.
    pub fn then(mut self, part: P::Form<'_>) -> Prefix<R, K> {
        P::write(part, &mut self.bytes);
        Prefix::new(self.table, self.bytes)
    }
}

// Ranges of keys, by the part that they have next.
impl<R, P: KeyPart, K> Prefix<R, (P, K)> {
    /// The keys before those of `part`.
    pub(crate) fn before(&self, part: P::Form<'_>) -> Range<R> {
        let end = Bound::Excluded(self.clone().then(part).bytes);
        Range::new(self.table, (range(&self.bytes).0, end))
    }

    /// The keys up to those of `part`, and those.
    pub(crate) fn until(&self, part: P::Form<'_>) -> Range<R> {
        let of_part = range(&self.clone().then(part).bytes);
        Range::new(self.table, (range(&self.bytes).0, of_part.1))
    }

    /// The keys of `part`, and those behind them.
    pub(crate) fn from(&self, part: P::Form<'_>) -> Range<R> {
        let start = Bound::Included(self.clone().then(part).bytes);
        Range::new(self.table, (start, range(&self.bytes).1))
    }

    /// The keys behind those of `part`.
    pub(crate) fn behind(&self, part: P::Form<'_>) -> Range<R> {
        Range::new(self.table, self.above(&self.clone().then(part).bytes))
    }

    /// The keys behind those of `part`, or all.
    pub(crate) fn behind_or_all(&self, part: Option<P::Form<'_>>) -> Range<R> {
        part.map_or_else(|| self.range(), |part| self.behind(part))
    }

    /// The keys of the parts from the start of `parts` up to its end, which they do not include.
    pub(crate) fn between(&self, parts: ops::Range<P::Form<'_>>) -> Range<R> {
        let [start, end] = [parts.start, parts.end].map(|part| self.clone().then(part).bytes);
        Range::new(self.table, (Bound::Included(start), Bound::Excluded(end)))
    }

    /// The keys before those of `part`, and those behind them.
    pub(crate) fn around(&self, part: P::Form<'_>) -> [Range<R>; 2] {
        let of_part = self.clone().then(part).bytes;
        let before = (range(&self.bytes).0, Bound::Excluded(of_part.clone()));
        [before, self.above(&of_part)].map(|bytes| Range::new(self.table, bytes))
    }
}

impl<R, P: KeyPart, Q: KeyPart, K> Prefix<R, (P, (Q, K))> {
    /// The keys behind those that have the parts `one` and `next`.
    pub(crate) fn behind_both(&self, one: P::Form<'_>, next: Q::Form<'_>) -> Range<R> {
        Range::new(self.table, self.above(&self.clone().then(one).then(next).bytes))
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

    /// The same prefix, which ids follow, whatever its entries are or lead to.
    pub(crate) fn of_ids(self) -> Prefix<Bytes, (Uuid, Open)> {
        Prefix::new(self.table, self.bytes)
    }

    /// The bytes with which the keys begin.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The keys with this prefix.
    pub fn range(&self) -> Range<R> {
        Range::new(self.table, range(&self.bytes))
    }

    /// The keys of a page, which begins at `bound` and goes on in `order`, and of all pages that
    /// follow. A key that continues that of the item of `bound` counts as the item.
    pub(crate) fn page_range(&self, bound: Option<&page::Bound>, order: Order) -> KeyRange {
        let (start, end) = range(&self.bytes);
        match (order, bound) {
            (_, None) => (start, end),
            (Order::Ascending, Some(page::Bound::Included(cursor))) => {
                (Bound::Included(self.item(cursor)), end)
            }
            (Order::Ascending, Some(page::Bound::Excluded(cursor))) => {
                self.above(&self.item(cursor))
            }
            (Order::Descending, Some(page::Bound::Included(cursor))) => {
                (start, range(&self.item(cursor)).1)
            }
            (Order::Descending, Some(page::Bound::Excluded(cursor))) => {
                (start, Bound::Excluded(self.item(cursor)))
            }
        }
    }

    // The keys behind all that start with `item`.
    fn above(&self, item: &[u8]) -> KeyRange {
        match upper_bound(item) {
            Some(start) => (Bound::Included(start), range(&self.bytes).1),
            None => (Bound::Excluded(Vec::new()), Bound::Excluded(Vec::new())),
        }
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

    /// The prefix that this key alone has.
    pub fn into_prefix(self) -> Prefix<R> {
        Prefix::new(self.table, self.bytes)
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

    pub(crate) fn into_bytes(self) -> KeyRange {
        self.bytes
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
}

impl Range<Bytes> {
    /// The keys of this range up to `last`, and that one.
    pub(crate) fn until(self, last: &[u8]) -> Self {
        Self::new(self.table, (self.bytes.0, Bound::Included(last.to_vec())))
    }

    /// These keys of a table.
    pub(crate) fn of_bytes(table: Table, bytes: KeyRange) -> Self {
        Self::new(table, bytes)
    }

    /// The keys of a table behind `behind`, or all.
    pub(crate) fn of_table(table: Table, behind: Option<&[u8]>) -> Self {
        let start = behind.map_or(Bound::Unbounded, |key| Bound::Excluded(key.to_vec()));
        Self::new(table, (start, Bound::Unbounded))
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
