//! Keys: byte strings that sort the way lists are read.
//!
//! A key is a sequence of parts. Text parts end in NUL, which no text part contains, so that the
//! parts of `("a", "b")` never run together into those of `("ab", "")`. Ids are their 16 bytes.
//! Times are big-endian with the sign bit flipped, so that they sort as times. Numbers are
//! big-endian, ordinals in 5 bytes.

use std::ops::Bound;

use domain::notification::Ordinal;
use domain::page::{self, OrderBy};
use domain::time::Timestamp;
use uuid::Uuid;

use crate::{KeyRange, Order};

/// The full key of one entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(Vec<u8>);

/// The leading parts of a key: what a run of entries has in common.
#[derive(Clone, Debug, Default)]
pub struct Prefix(Vec<u8>);

impl Prefix {
    /// What every key has in common.
    pub(crate) const fn all() -> Self {
        Self(Vec::new())
    }

    /// The same, with room for what most keys have.
    pub(crate) fn with_room() -> Self {
        Self(Vec::with_capacity(64))
    }

    pub(crate) fn text(mut self, part: &str) -> Self {
        self.0.extend_from_slice(part.as_bytes());
        self.0.push(0);
        self
    }

    pub(crate) fn id(mut self, part: impl Into<Uuid>) -> Self {
        self.0.extend_from_slice(part.into().as_bytes());
        self
    }

    /// Everything, or what has `value`.
    pub(crate) fn narrowed(mut self, value: Option<&str>) -> Self {
        self.0.push(u8::from(value.is_some()));
        match value {
            Some(value) => self.text(value),
            None => self,
        }
    }

    pub(crate) fn order(mut self, order_by: OrderBy) -> Self {
        self.0.push(order_by.tag());
        self
    }

    pub(crate) fn time(mut self, part: Timestamp) -> Self {
        let sortable = part.as_millis().cast_unsigned() ^ (1 << 63);
        self.0.extend_from_slice(&sortable.to_be_bytes());
        self
    }

    pub(crate) fn ordinal(mut self, part: Ordinal) -> Self {
        let [_, _, _, bytes @ ..] = part.get().to_be_bytes();
        self.0.extend_from_slice(&bytes);
        self
    }

    pub(crate) fn number(mut self, part: u32) -> Self {
        self.0.extend_from_slice(&part.to_be_bytes());
        self
    }

    pub(crate) fn tag(mut self, part: u8) -> Self {
        self.0.push(part);
        self
    }

    pub(crate) fn value(mut self, part: u128) -> Self {
        self.0.extend_from_slice(&part.to_be_bytes());
        self
    }

    pub(crate) fn end(self) -> Key {
        Key(self.0)
    }

    /// Every key with this prefix.
    pub fn range(&self) -> KeyRange {
        let end = self.upper_bound().map_or(Bound::Unbounded, Bound::Excluded);
        (Bound::Included(self.0.clone()), end)
    }

    /// The keys with this prefix that are on the far side of `bound` as seen in `order`, or all.
    pub(crate) fn beyond(&self, bound: Option<&page::Bound>, order: Order) -> KeyRange {
        match (bound, order) {
            (None, _) => self.range(),
            (Some(bound), Order::Ascending) => self.above(bound),
            (Some(bound), Order::Descending) => self.below(bound),
        }
    }

    /// The keys with this prefix that sort behind `bound`. Those that go on where its item ends
    /// are on the side of the item.
    fn above(&self, bound: &page::Bound) -> KeyRange {
        let start = match bound {
            page::Bound::Included(cursor) => self.item(cursor).range().0,
            page::Bound::Excluded(cursor) => match self.item(cursor).upper_bound() {
                Some(behind) => Bound::Included(behind),
                None => return (Bound::Excluded(Vec::new()), Bound::Excluded(Vec::new())),
            },
        };
        (start, self.range().1)
    }

    /// The keys with this prefix that sort in front of `bound`. Those that go on where its item
    /// ends are on the side of the item.
    fn below(&self, bound: &page::Bound) -> KeyRange {
        let end = match bound {
            page::Bound::Included(cursor) => self.item(cursor).range().1,
            page::Bound::Excluded(cursor) => Bound::Excluded(self.item(cursor).0),
        };
        (self.range().0, end)
    }

    fn item(&self, cursor: &page::Cursor) -> Self {
        Self([&self.0, cursor.key()].concat())
    }

    /// What `key` has besides this prefix.
    pub(crate) fn rest<'k>(&self, key: &'k [u8]) -> &'k [u8] {
        key.strip_prefix(self.0.as_slice()).unwrap_or(key)
    }

    /// The smallest byte string above every key with this prefix.
    fn upper_bound(&self) -> Option<Vec<u8>> {
        let last = self.0.iter().rposition(|byte| *byte != u8::MAX)?;
        let mut bound = self.0.get(..=last)?.to_vec();
        *bound.last_mut()? += 1;
        Some(bound)
    }
}

impl Key {
    /// The bytes that the store sorts by.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_run_together() {
        let ab_then_nothing = Prefix::all().text("ab").text("").end();
        let a_then_b = Prefix::all().text("a").text("b").end();
        assert_ne!(ab_then_nothing, a_then_b);
    }

    #[test]
    fn times_sort_as_times() {
        let key = |millis| Prefix::all().time(Timestamp::from_millis(millis)).end();
        assert!([i64::MIN, -1, 0, 1, i64::MAX].map(key).is_sorted());
    }

    #[test]
    fn a_prefix_ends_where_the_next_one_starts() {
        let end = |bytes: &[u8]| Prefix(bytes.to_vec()).range().1;
        assert_eq!(end(b"a"), Bound::Excluded(b"b".to_vec()));
        assert_eq!(end(&[1, 0xff]), Bound::Excluded(vec![2]));
        assert_eq!(end(&[0xff, 0xff]), Bound::Unbounded);
        assert_eq!(end(b""), Bound::Unbounded);
    }
}
