//! One table of a memtable: places of changes, in the order of their keys.

use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

use super::payload::Slice;
use super::payloads::Payloads;
use crate::range::KeySpan;

/// Number of entries of a leaf before it is split. A write copies the leaf that it touches.
const LEAF: usize = 128;

/// Sorted leaves. A clone shares all of them.
#[derive(Clone, Debug, Default)]
pub(super) struct TableIndex {
    /// The start that all keys have in common.
    prefix: Vec<u8>,
    /// Leaves with the hint of their first entry. None is empty.
    leaves: Vec<(Hint, Arc<Vec<Entry>>)>,
}

/// The place of one change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    hint: Hint,
    /// Number of the payload.
    payload: u32,
    key: Slice,
    /// `None` for a removal.
    value: Option<Slice>,
}

/// The bytes of a key behind the common prefix, as many as there is room for. Most keys are told
/// apart by them alone, so that a search does not look into the payloads.
type Hint = (u64, u32);

/// A key that is searched for, and where it lies among all keys.
#[derive(Clone, Copy)]
struct Sought<'k> {
    key: &'k [u8],
    side: Side,
}

#[derive(Clone, Copy)]
enum Side {
    /// It sorts before all keys with the common prefix.
    Before,
    /// It has the common prefix.
    Within(Hint),
    /// It sorts behind all keys with the common prefix.
    Behind,
}

/// The leaf and the place in it, of an entry or of a gap before it.
type Place = (usize, usize);

impl TableIndex {
    /// Puts a change of `payload` in the place of an earlier one with the same key.
    pub(super) fn set(
        &mut self,
        payloads: &Payloads,
        payload: u32,
        key: Slice,
        value: Option<Slice>,
    ) {
        let mut entry = Entry { hint: Hint::default(), payload, key, value };
        let key = entry.key(payloads);
        self.share_prefix(payloads, key);
        entry.hint = hint(key, self.prefix.len());
        let sought = Sought { key, side: Side::Within(entry.hint) };
        let at = self.leaf(payloads, sought);
        let Some((first, leaf)) = self.leaves.get_mut(at) else {
            self.leaves.push((entry.hint, Arc::new(vec![entry])));
            return;
        };
        let leaf = own(leaf);
        match leaf.binary_search_by(|other| other.compare(payloads, sought)) {
            Ok(found) => {
                if let Some(other) = leaf.get_mut(found) {
                    *other = entry;
                }
            }
            Err(gap) => leaf.insert(gap, entry),
        }
        *first = leaf.first().map_or(*first, |entry| entry.hint);
        if leaf.len() > LEAF {
            let upper = with_room(leaf.get(LEAF / 2..).unwrap_or_default());
            leaf.truncate(LEAF / 2);
            let hint = upper.first().map_or_else(Hint::default, |entry| entry.hint);
            self.leaves.insert(at + 1, (hint, Arc::new(upper)));
        }
    }

    /// Makes the common prefix one of `key` as well.
    fn share_prefix(&mut self, payloads: &Payloads, key: &[u8]) {
        if self.leaves.is_empty() {
            self.prefix = key.to_vec();
        } else if !key.starts_with(&self.prefix) {
            let common =
                self.prefix.iter().zip(key).take_while(|(one, other)| one == other).count();
            self.prefix.truncate(common);
            for (first, leaf) in &mut self.leaves {
                for entry in Arc::make_mut(leaf) {
                    entry.hint = hint(entry.key(payloads), common);
                }
                *first = leaf.first().map_or(*first, |entry| entry.hint);
            }
        }
    }

    /// The entry under `key`.
    pub(super) fn get(&self, payloads: &Payloads, key: &[u8]) -> Option<&Entry> {
        let sought = self.sought(key);
        let (_, leaf) = self.leaves.get(self.leaf(payloads, sought))?;
        let found = leaf.binary_search_by(|other| other.compare(payloads, sought)).ok()?;
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
            Bound::Unbounded => (self.leaves.len(), 0),
        };
        (first < last).then(|| self.between(first, last))
    }

    fn between(&self, first: Place, last: Place) -> impl DoubleEndedIterator<Item = &Entry> {
        (first.0..self.leaves.len().min(last.0 + 1)).flat_map(move |at| {
            let leaf = self.leaves.get(at).map(|(_, leaf)| leaf.as_slice()).unwrap_or_default();
            let start = if at == first.0 { first.1 } else { 0 };
            let end = if at == last.0 { last.1 } else { leaf.len() };
            leaf.get(start..end).unwrap_or_default()
        })
    }

    /// The place behind all entries that compare to `key` as `upto` or less.
    fn gap(&self, payloads: &Payloads, key: &[u8], upto: Ordering) -> Place {
        let sought = self.sought(key);
        let at = self.leaf(payloads, sought);
        let Some((_, leaf)) = self.leaves.get(at) else { return (at, 0) };
        let place = leaf.partition_point(|other| other.compare(payloads, sought) <= upto);
        // The end of a leaf is the start of the next one.
        if place == leaf.len() { (at + 1, 0) } else { (at, place) }
    }

    fn sought<'k>(&self, key: &'k [u8]) -> Sought<'k> {
        let side = if key.starts_with(&self.prefix) {
            Side::Within(hint(key, self.prefix.len()))
        } else if key < self.prefix.as_slice() {
            Side::Before
        } else {
            Side::Behind
        };
        Sought { key, side }
    }

    /// The number of the only leaf that a key may be in.
    fn leaf(&self, payloads: &Payloads, sought: Sought<'_>) -> usize {
        let starts_before = |(first, leaf): &(Hint, Arc<Vec<Entry>>)| match sought.side {
            Side::Within(hint) if *first == hint => {
                leaf.first().is_some_and(|it| it.key(payloads) <= sought.key)
            }
            Side::Within(hint) => *first < hint,
            Side::Before => false,
            Side::Behind => true,
        };
        self.leaves.partition_point(starts_before).saturating_sub(1)
    }
}

/// The leaf alone, which is copied if another index has it as well.
fn own(leaf: &mut Arc<Vec<Entry>>) -> &mut Vec<Entry> {
    if Arc::get_mut(leaf).is_none() {
        *leaf = Arc::new(with_room(leaf));
    }
    Arc::make_mut(leaf)
}

/// A leaf of these entries that takes all that come before it is split without another allocation.
fn with_room(entries: &[Entry]) -> Vec<Entry> {
    let mut leaf = Vec::with_capacity(LEAF + 1);
    leaf.extend_from_slice(entries);
    leaf
}

/// The hint of `key`, which has a common prefix of that length.
fn hint(key: &[u8], prefix: usize) -> Hint {
    let (mut high, mut low) = ([0; 8], [0; 4]);
    for (byte, other) in high.iter_mut().chain(&mut low).zip(key.iter().skip(prefix)) {
        *byte = *other;
    }
    (u64::from_be_bytes(high), u32::from_be_bytes(low))
}

impl Entry {
    pub(super) fn key(self, payloads: &Payloads) -> &[u8] {
        self.key.of(payloads.get(self.payload))
    }

    /// The value, or `None` for a removal.
    pub(super) fn value(self, payloads: &Payloads) -> Option<&[u8]> {
        Some(self.value?.of(payloads.get(self.payload)))
    }

    fn compare(self, payloads: &Payloads, sought: Sought<'_>) -> Ordering {
        match sought.side {
            Side::Before => Ordering::Greater,
            Side::Behind => Ordering::Less,
            Side::Within(hint) => {
                self.hint.cmp(&hint).then_with(|| self.key(payloads).cmp(sought.key))
            }
        }
    }
}
