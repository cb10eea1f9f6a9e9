//! What a transaction has read before the server has begun it.

use store::Table;

use crate::cache::{Cache, head_of};
use crate::heads::Counts;
use crate::scan::Span;

/// What was read before a transaction has begun.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) keys: Vec<(Table, Vec<u8>)>,
    pub(crate) spans: Vec<(Table, Span)>,
    /// Number of times that the server has confirmed it, at the counts of the transaction.
    pub(crate) confirmed: u8,
}

impl Seen {
    pub(crate) fn of_keys(keys: impl IntoIterator<Item = (Table, Vec<u8>)>) -> Self {
        Self { keys: keys.into_iter().collect(), ..Self::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.spans.is_empty()
    }

    /// Returns `true` if news can be compared with it: each span has the keys of one head.
    pub(crate) fn has_heads(&self) -> bool {
        self.spans.iter().all(|(table, span)| head_of(*table, span).is_some())
    }

    pub(crate) fn add(&mut self, more: Self) {
        self.keys.extend(more.keys);
        self.spans.extend(more.spans);
    }

    /// Returns `true` if it is the same as at these counts, as far as the cache is right.
    pub(crate) fn is_same(&self, cache: &Cache, counts: &Counts) -> bool {
        self.keys.iter().all(|(table, key)| cache.is_same(counts, *table, key))
            && self.spans.iter().all(|(table, span)| cache.is_same_span(counts, *table, span))
    }
}
