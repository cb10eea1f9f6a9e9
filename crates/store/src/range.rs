//! What every backend has to know about a run of keys.

use std::ops::Bound::{self, Excluded, Included, Unbounded};

use crate::{KeyRange, Order};

/// A run of borrowed keys that is not empty by its bounds alone, as ordered maps demand it.
pub(crate) type KeySpan<'k> = (Bound<&'k [u8]>, Bound<&'k [u8]>);

/// The same range over borrowed keys, or nothing if no key can lie in it.
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
    /// Takes the next entry off the end this order starts at.
    pub(crate) fn step<I: DoubleEndedIterator>(self, entries: &mut I) -> Option<I::Item> {
        match self {
            Order::Ascending => entries.next(),
            Order::Descending => entries.next_back(),
        }
    }
}
