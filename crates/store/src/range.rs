//! Ranges of keys, as the backends in this crate read them.

use std::iter;
use std::ops::Bound::{self, Excluded, Included, Unbounded};
use std::ops::RangeBounds;

use crate::{KeyRange, Order};

/// All keys of a table.
pub(crate) const EVERYTHING: KeyRange = (Unbounded, Unbounded);

/// A range of borrowed keys whose start does not lie behind its end. Ordered maps demand that.
pub(crate) type KeySpan<'k> = (Bound<&'k [u8]>, Bound<&'k [u8]>);

/// The same range over borrowed keys. Returns `None` if its bounds leave room for no key.
pub(crate) fn borrow((start, end): &KeyRange) -> Option<KeySpan<'_>> {
    let empty = match (start, end) {
        (Unbounded, _) | (_, Unbounded) => false,
        (Included(start), Included(end)) => start > end,
        (Included(start) | Excluded(start), Excluded(end)) | (Excluded(start), Included(end)) => {
            start >= end
        }
    };
    let bounds = (start.as_ref().map(Vec::as_slice), end.as_ref().map(Vec::as_slice));
    (!empty).then_some(bounds)
}

impl Order {
    /// The first `limit` of `entries`, or all of them, in this order.
    pub(crate) fn first<I: DoubleEndedIterator>(
        self,
        limit: Option<usize>,
        mut entries: I,
    ) -> impl Iterator<Item = I::Item> {
        iter::from_fn(move || self.step(&mut entries)).take(limit.unwrap_or(usize::MAX))
    }

    /// Returns `true` if a scan of `span` in this order may show `key` behind `before`, which is
    /// the key that it has shown last.
    pub(crate) fn admits(self, span: KeySpan<'_>, before: Option<&[u8]>, key: &[u8]) -> bool {
        let is_behind = before.is_none_or(|before| match self {
            Order::Ascending => before < key,
            Order::Descending => key < before,
        });
        is_behind && span.contains(key)
    }

    /// Takes the next entry off the end at which this order starts.
    pub(crate) fn step<I: DoubleEndedIterator>(self, entries: &mut I) -> Option<I::Item> {
        match self {
            Order::Ascending => entries.next(),
            Order::Descending => entries.next_back(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: KeySpan<'_> = (Included(b"b"), Excluded(b"e"));

    #[test]
    fn a_scan_shows_keys_of_its_range() {
        for (key, is_within) in [("", false), ("a", false), ("b", true), ("dz", true), ("e", false)]
        {
            for order in [Order::Ascending, Order::Descending] {
                assert_eq!(order.admits(SPAN, None, key.as_bytes()), is_within, "{key}");
            }
        }
        assert!(!Order::Ascending.admits(SPAN, Some(b"c"), b"e"));
        assert!(!Order::Descending.admits(SPAN, Some(b"c"), b"a"));
        assert!(Order::Ascending.admits((Unbounded, Unbounded), None, b"anything"));
    }

    #[test]
    fn a_scan_shows_no_key_twice_and_none_out_of_order() {
        for (order, before, behind) in
            [(Order::Ascending, b"c", b"d"), (Order::Descending, b"d", b"c")]
        {
            assert!(order.admits(SPAN, Some(before), behind));
            assert!(!order.admits(SPAN, Some(behind), before));
            assert!(!order.admits(SPAN, Some(before), before));
        }
    }
}
