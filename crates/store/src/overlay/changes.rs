//! Changes that the store below does not have yet.

use std::collections::BTreeMap;
use std::iter;
use std::ops::Range;

use smallvec::SmallVec;

use crate::key::TYPICAL_LEN;
use crate::range::KeySpan;
use crate::{Order, Table};

/// Changes of several tables: for each changed key its new value, or its removal.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    tables: BTreeMap<Table, BTreeMap<ChangedKey, Option<Place>>>,
    /// The values, in the order in which they were set.
    values: Vec<u8>,
    /// Number of bytes of values that were replaced since.
    replaced: usize,
}

/// Number of bytes of replaced values that stay in any case.
const FEW: usize = 64 << 10;

/// A changed key. A transaction changes thousands, and allocations of keys and values would take a large part of
/// its time.
type ChangedKey = SmallVec<[u8; TYPICAL_LEN]>;

/// Place of a value among those of its changes.
type Place = Range<usize>;

/// The changes of one table.
#[derive(Clone, Copy, Debug)]
pub struct TableChanges<'c> {
    changes: &'c BTreeMap<ChangedKey, Option<Place>>,
    values: &'c [u8],
}

/// A new value in a layer, or `None` for a removal.
pub(crate) type Changed<'c> = Option<&'c [u8]>;

/// Changes in the order of a scan, each key once.
pub(crate) type Run<'c> = Box<dyn Iterator<Item = (&'c [u8], Changed<'c>)> + 'c>;

/// Changes that lie over a snapshot.
pub(crate) trait Layer {
    /// The change of `key`. Returns `None` if `key` is unchanged.
    fn change(&self, table: Table, key: &[u8]) -> Option<Changed<'_>>;

    /// The changes within `span`. Returns `None` if there are none in the table.
    fn run(&self, table: Table, span: KeySpan<'_>, order: Order) -> Option<Run<'_>>;
}

impl Changes {
    /// Returns `true` if there are no changes.
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// Notes a change, in place of an earlier one of the same key.
    pub fn set(&mut self, table: Table, key: &[u8], change: Option<&[u8]>) {
        let place = change.map(|value| {
            let start = self.values.len();
            self.values.extend_from_slice(value);
            start..self.values.len()
        });
        let before =
            self.tables.entry(table).or_default().insert(ChangedKey::from_slice(key), place);
        self.replaced += before.flatten().map_or(0, |place| place.len());
        self.drop_replaced();
    }

    /// Adds the changes of `later`, which take precedence.
    pub fn then(&mut self, later: Changes) {
        if self.tables.is_empty() {
            *self = later;
            return;
        }
        let behind = self.values.len();
        self.values.extend_from_slice(&later.values);
        self.replaced += later.replaced;
        for (table, changes) in later.tables {
            let known = self.tables.entry(table).or_default();
            for (key, place) in changes {
                let moved = place.map(|place| place.start + behind..place.end + behind);
                let before = known.insert(key, moved);
                self.replaced += before.flatten().map_or(0, |place| place.len());
            }
        }
        self.drop_replaced();
    }

    /// Drops the values that were replaced, if they are more than the others.
    fn drop_replaced(&mut self) {
        if self.replaced <= FEW.max(self.values.len() / 2) {
            return;
        }
        let mut values = Vec::with_capacity(self.values.len().saturating_sub(self.replaced));
        for place in self.tables.values_mut().flat_map(BTreeMap::values_mut).flatten() {
            let start = values.len();
            values.extend_from_slice(self.values.get(place.clone()).unwrap_or_default());
            *place = start..values.len();
        }
        (self.values, self.replaced) = (values, 0);
    }

    /// Returns `true` if `key` gets a value.
    pub fn puts(&self, table: Table, key: &[u8]) -> bool {
        matches!(self.change(table, key), Some(Some(_)))
    }

    /// Each changed key with its new value, or with `None` for a removal, in the order of tables and keys.
    pub fn iter(&self) -> impl Iterator<Item = (Table, &[u8], Option<&[u8]>)> {
        self.tables().flat_map(|(table, changes)| {
            changes.iter().map(move |(key, change)| (table, key, change))
        })
    }

    /// Each changed table with its changes.
    pub fn tables(&self) -> impl Iterator<Item = (Table, TableChanges<'_>)> {
        let values = self.values.as_slice();
        self.tables.iter().map(move |(table, changes)| (*table, TableChanges { changes, values }))
    }

    fn of(&self, table: Table) -> Option<TableChanges<'_>> {
        Some(TableChanges { changes: self.tables.get(&table)?, values: &self.values })
    }
}

impl<'c> TableChanges<'c> {
    /// Each changed key with its new value, or with `None` for a removal, in the order of the keys.
    pub fn iter(self) -> impl ExactSizeIterator<Item = (&'c [u8], Option<&'c [u8]>)> {
        self.changes.iter().map(move |(key, place)| (key.as_slice(), self.value(place.as_ref())))
    }

    fn value(self, place: Option<&Place>) -> Option<&'c [u8]> {
        place.map(|place| self.values.get(place.clone()).unwrap_or_default())
    }
}

impl Layer for Changes {
    fn change(&self, table: Table, key: &[u8]) -> Option<Changed<'_>> {
        let of_table = self.of(table)?;
        of_table.changes.get(key).map(|place| of_table.value(place.as_ref()))
    }

    fn run(&self, table: Table, span: KeySpan<'_>, order: Order) -> Option<Run<'_>> {
        let of_table = self.of(table)?;
        let mut entries = of_table.changes.range::<[u8], _>(span);
        Some(Box::new(iter::from_fn(move || {
            let (key, place) = order.step(&mut entries)?;
            Some((key.as_slice(), of_table.value(place.as_ref())))
        })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: Table = Table::ALL[0];

    /// A rehearsal adds one transaction after the other to its changes.
    #[test]
    fn values_that_were_replaced_take_little_room() {
        let value = |number: u16| [number.to_be_bytes(); 512].concat();
        let (mut changes, mut all) = (Changes::default(), Changes::default());
        for number in 0..1_000 {
            changes.set(TABLE, b"hot", Some(&value(number)));
            changes.set(TABLE, &number.to_be_bytes(), None);
            let mut one = Changes::default();
            one.set(TABLE, b"first", Some(&value(number)));
            one.set(TABLE, b"hot", Some(b"before"));
            one.set(TABLE, b"hot", Some(&value(number)));
            all.then(one);
        }
        for changes in [&changes, &all] {
            assert!(changes.values.len() < 2 * FEW, "{} bytes", changes.values.len());
            assert_eq!(changes.change(TABLE, b"hot"), Some(Some(&*value(999))));
        }
        assert_eq!(changes.change(TABLE, &[0, 7]), Some(None));
        let shown: Vec<_> = all.iter().collect();
        let value = value(999);
        assert_eq!(shown, [(TABLE, &b"first"[..], Some(&*value)), (TABLE, b"hot", Some(&*value))]);
    }
}
