//! The keys that commits have changed.

use std::ops::Range;

use store::Table;

use crate::scan::Span;

/// Keys that some commits in a row have changed, in their order.
pub(super) struct ChangedKeys {
    keys: Vec<(Table, Range<usize>)>,
    bytes: Vec<u8>,
}

impl ChangedKeys {
    pub(super) fn of<'k>(changed: impl Iterator<Item = (Table, &'k [u8])>) -> Self {
        let mut changed: Vec<_> = changed.collect();
        changed.sort_unstable();
        let (mut keys, mut bytes) = (Vec::with_capacity(changed.len()), Vec::new());
        for (table, key) in changed {
            let start = bytes.len();
            bytes.extend_from_slice(key);
            keys.push((table, start..bytes.len()));
        }
        Self { keys, bytes }
    }

    /// Number of keys.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(super) fn contains(&self, table: Table, key: &[u8]) -> bool {
        self.first_from(table, key) == Some((table, key))
    }

    /// Returns `true` if one of the keys lies in the span.
    pub(super) fn has_within(&self, table: Table, span: &Span) -> bool {
        let first = self.first_from(table, &span.start);
        first.is_some_and(|(other, key)| other == table && span.contains(key))
    }

    fn first_from(&self, table: Table, key: &[u8]) -> Option<(Table, &[u8])> {
        let place = self.keys.partition_point(|at| self.read(at) < (table, key));
        self.keys.get(place).map(|at| self.read(at))
    }

    fn read(&self, (table, place): &(Table, Range<usize>)) -> (Table, &[u8]) {
        (*table, self.bytes.get(place.clone()).unwrap_or_default())
    }
}
