//! One table of a memtable: places of changes, in the order of their keys.

use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

use super::payload::Span;
use super::payloads::Payloads;
use crate::range::KeySpan;

/// Number of entries of a leaf before it is split. A write copies the leaf that it touches.
const LEAF: usize = 256;

/// Sorted leaves. A clone shares all of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows(Vec<Arc<Vec<Entry>>>);

/// The place of one change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Number of the payload.
    pub(super) payload: u32,
    pub(super) key: Span,
    /// `None` for a removal.
    pub(super) value: Option<Span>,
}

/// The leaf and the place in it, of an entry or of a gap before it.
type Place = (usize, usize);

impl Rows {
    /// Puts `entry` in the place of an earlier one with the same key.
    pub(super) fn set(&mut self, payloads: &Payloads, entry: Entry) {
        let key = entry.key(payloads);
        let at = self.leaf(payloads, key);
        let Some(leaf) = self.0.get_mut(at) else {
            self.0.push(Arc::new(vec![entry]));
            return;
        };
        let leaf = Arc::make_mut(leaf);
        match leaf.binary_search_by(|other| other.key(payloads).cmp(key)) {
            Ok(found) => {
                if let Some(other) = leaf.get_mut(found) {
                    *other = entry;
                }
            }
            Err(gap) => leaf.insert(gap, entry),
        }
        if leaf.len() > LEAF {
            let upper = leaf.split_off(LEAF / 2);
            self.0.insert(at + 1, Arc::new(upper));
        }
    }

    /// The entry under `key`.
    pub(super) fn get(&self, payloads: &Payloads, key: &[u8]) -> Option<&Entry> {
        let leaf = self.0.get(self.leaf(payloads, key))?;
        let found = leaf.binary_search_by(|other| other.key(payloads).cmp(key)).ok()?;
        leaf.get(found)
    }

    /// The entries within `span`. Returns `None` if there are none.
    pub(super) fn range<'r>(
        &'r self,
        payloads: &Payloads,
        (start, end): KeySpan<'_>,
    ) -> Option<impl DoubleEndedIterator<Item = &'r Entry> + use<'r>> {
        let first = match start {
            Bound::Included(key) => self.gap(payloads, key, Ordering::Less),
            Bound::Excluded(key) => self.gap(payloads, key, Ordering::Equal),
            Bound::Unbounded => (0, 0),
        };
        let last = match end {
            Bound::Included(key) => self.gap(payloads, key, Ordering::Equal),
            Bound::Excluded(key) => self.gap(payloads, key, Ordering::Less),
            Bound::Unbounded => (self.0.len(), 0),
        };
        (first < last).then(|| self.between(first, last))
    }

    fn between(&self, first: Place, last: Place) -> impl DoubleEndedIterator<Item = &Entry> {
        (first.0..self.0.len().min(last.0 + 1)).flat_map(move |at| {
            let leaf = self.0.get(at).map(|leaf| leaf.as_slice()).unwrap_or_default();
            let start = if at == first.0 { first.1 } else { 0 };
            let end = if at == last.0 { last.1 } else { leaf.len() };
            leaf.get(start..end).unwrap_or_default()
        })
    }

    /// The place behind all entries that compare to `key` as `upto` or less.
    fn gap(&self, payloads: &Payloads, key: &[u8], upto: Ordering) -> Place {
        let at = self.leaf(payloads, key);
        let before = |other: &Entry| other.key(payloads).cmp(key) <= upto;
        let Some(leaf) = self.0.get(at) else { return (at, 0) };
        let place = leaf.partition_point(before);
        // The end of a leaf is the start of the next one.
        if place == leaf.len() { (at + 1, 0) } else { (at, place) }
    }

    /// The number of the only leaf that `key` may be in.
    fn leaf(&self, payloads: &Payloads, key: &[u8]) -> usize {
        let starts_before =
            |leaf: &Arc<Vec<Entry>>| leaf.first().is_some_and(|it| it.key(payloads) <= key);
        self.0.partition_point(starts_before).saturating_sub(1)
    }
}

impl Entry {
    pub(super) fn key(self, payloads: &Payloads) -> &[u8] {
        self.key.of(payloads.get(self.payload))
    }

    /// The value, or `None` for a removal.
    pub(super) fn value(self, payloads: &Payloads) -> Option<&[u8]> {
        Some(self.value?.of(payloads.get(self.payload)))
    }
}
