//! Ranges of keys, as the backends in this crate read them.

use std::iter;
use std::ops::Bound::{self, Excluded, Included, Unbounded};

use crate::{KeyRange, Order};

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

    /// Takes the next entry off the end at which this order starts.
    pub(crate) fn step<I: DoubleEndedIterator>(self, entries: &mut I) -> Option<I::Item> {
        match self {
            Order::Ascending => entries.next(),
            Order::Descending => entries.next_back(),
        }
    }
}
