//! Keys: byte strings that sort as lists do.
//!
//! A key is a sequence of parts. Text parts end in NUL, which no text part contains, so that the
//! parts of `("a", "b")` never run together into those of `("ab", "")`. Ids are their 16 bytes.
//! Times are big-endian with the sign bit flipped, so that they sort as times. Numbers are
//! big-endian, ordinals in 5 bytes.
//!
//! A key knows its table and the type of record that it leads to. So a key cannot be looked up in
//! another table, nor its record be taken for one of another type:
//!
//! ```
//! # use domain::{ids::{EnvironmentId, SubscriberId}, subscriber::Subscriber, topic::Topic};
//! # use store::{ReadRecords, Result, Snapshot, layout};
//! # use tidings_store as store;
//! fn find(at: &dyn Snapshot, env: EnvironmentId, id: &SubscriberId) -> Result<Option<Subscriber>> {
//!     at.find(&layout::subscriber(env, id))
//! }
//! ```
//!
//! ```compile_fail,E0308
//! # use domain::{ids::{EnvironmentId, SubscriberId}, subscriber::Subscriber, topic::Topic};
//! # use store::{ReadRecords, Result, Snapshot, layout};
//! # use tidings_store as store;
//! fn find(at: &dyn Snapshot, env: EnvironmentId, id: &SubscriberId) -> Result<Option<Topic>> {
//!     at.find(&layout::subscriber(env, id))
//! }
//! ```

use std::fmt;
use std::marker::PhantomData;
use std::ops::Bound;

use domain::ids::EnvironmentId;
use domain::notification::Ordinal;
use domain::page::{self, OrderBy};
use domain::time::Timestamp;
use uuid::Uuid;

use crate::{KeyRange, Order, Table};

/// A table whose entries are records `R`, or lead to records `R`.
pub(crate) struct TableOf<R> {
    table: Table,
    record: PhantomData<fn() -> R>,
}

impl<R> TableOf<R> {
    pub(crate) const fn new(table: Table) -> Self {
        Self { table, record: PhantomData }
    }

    /// All keys of the table.
    pub(crate) fn all(&self) -> Prefix<R> {
        Prefix::new(self.table, Vec::with_capacity(TYPICAL_LEN))
    }

    /// The keys of an environment.
    pub(crate) fn within(&self, environment: EnvironmentId) -> Prefix<R> {
        self.all().id(environment)
    }
}

/// A value that is not a record.
#[derive(Clone, Copy, Debug)]
pub enum Bytes {}

/// The length of most keys, in bytes.
const TYPICAL_LEN: usize = 64;

macro_rules! keys {
    ($($(#[$doc:meta])* $name:ident: $bytes:ty,)+) => {
        $(
            $(#[$doc])*
            pub struct $name<R> {
                table: Table,
                bytes: $bytes,
                record: PhantomData<fn() -> R>,
            }

            impl<R> $name<R> {
                const fn new(table: Table, bytes: $bytes) -> Self {
                    Self { table, bytes, record: PhantomData }
                }

                /// The table.
                pub fn table(&self) -> Table {
                    self.table
                }
            }

            // Derived code would demand the same of the record.
            impl<R> Clone for $name<R> {
                fn clone(&self) -> Self {
                    Self::new(self.table, self.bytes.clone())
                }
            }

            impl<R> PartialEq for $name<R> {
                fn eq(&self, other: &Self) -> bool {
                    (self.table, &self.bytes) == (other.table, &other.bytes)
                }
            }

            impl<R> Eq for $name<R> {}

            impl<R> fmt::Debug for $name<R> {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.debug_tuple(stringify!($name)).field(&self.table).field(&self.bytes).finish()
                }
            }
        )+
    };
}

keys! {
    /// The key of one entry, which is a record `R` or leads to one.
    Key: Vec<u8>,
    /// The leading parts of keys.
    Prefix: Vec<u8>,
    /// A range of keys.
    Range: KeyRange,
}

impl<R> Prefix<R> {
    pub(crate) fn text(mut self, part: &str) -> Self {
        self.bytes.extend_from_slice(part.as_bytes());
        self.bytes.push(0);
        self
    }

    pub(crate) fn id(mut self, part: impl Into<Uuid>) -> Self {
        self.bytes.extend_from_slice(part.into().as_bytes());
        self
    }

    /// A part that stands for any value, or for `value`.
    pub(crate) fn narrowed(mut self, value: Option<&str>) -> Self {
        self.bytes.push(u8::from(value.is_some()));
        match value {
            Some(value) => self.text(value),
            None => self,
        }
    }

    pub(crate) fn order(mut self, order_by: OrderBy) -> Self {
        self.bytes.push(order_by.tag());
        self
    }

    pub(crate) fn time(mut self, part: Timestamp) -> Self {
        let sortable = part.as_millis().cast_unsigned() ^ (1 << 63);
        self.bytes.extend_from_slice(&sortable.to_be_bytes());
        self
    }

    pub(crate) fn ordinal(mut self, part: Ordinal) -> Self {
        let [_, _, _, bytes @ ..] = part.get().to_be_bytes();
        self.bytes.extend_from_slice(&bytes);
        self
    }

    pub(crate) fn number(mut self, part: u32) -> Self {
        self.bytes.extend_from_slice(&part.to_be_bytes());
        self
    }

    pub(crate) fn tag(mut self, part: u8) -> Self {
        self.bytes.push(part);
        self
    }

    pub(crate) fn value(mut self, part: u128) -> Self {
        self.bytes.extend_from_slice(&part.to_be_bytes());
        self
    }

    /// The key that ends here.
    pub(crate) fn end(self) -> Key<R> {
        Key::new(self.table, self.bytes)
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

    /// The part of `key` behind this prefix.
    pub(crate) fn rest<'k>(&self, key: &'k [u8]) -> &'k [u8] {
        key.strip_prefix(self.bytes.as_slice()).unwrap_or(key)
    }
}

impl<R> Key<R> {
    /// The bytes by which the store sorts.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The keys from this one up to `end`, which is not one of them.
    pub(crate) fn until(self, end: Self) -> Range<R> {
        Range::new(self.table, (Bound::Included(self.bytes), Bound::Excluded(end.bytes)))
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
fn upper_bound(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut bound = prefix.get(..=last)?.to_vec();
    *bound.last_mut()? += 1;
    Some(bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Prefix<()> {
        TableOf::new(Table::ALL[0]).all()
    }

    #[test]
    fn parts_do_not_run_together() {
        let ab_then_nothing = all().text("ab").text("").end();
        let a_then_b = all().text("a").text("b").end();
        assert_ne!(ab_then_nothing, a_then_b);
    }

    #[test]
    fn times_sort_as_times() {
        let key = |millis| all().time(Timestamp::from_millis(millis)).end().as_bytes().to_vec();
        assert!([i64::MIN, -1, 0, 1, i64::MAX].map(key).is_sorted());
    }

    #[test]
    fn a_prefix_ends_where_the_next_one_starts() {
        let end = |bytes: &[u8]| range(bytes).1;
        assert_eq!(end(b"a"), Bound::Excluded(b"b".to_vec()));
        assert_eq!(end(&[1, 0xff]), Bound::Excluded(vec![2]));
        assert_eq!(end(&[0xff, 0xff]), Bound::Unbounded);
        assert_eq!(end(b""), Bound::Unbounded);
    }
}
