//! Changes that the store below does not have yet.

use std::collections::{BTreeMap, btree_map};
use std::iter;

use crate::range::KeySpan;
use crate::{Order, Table};

/// Changes of several tables: for each changed key its new value, or its removal.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    tables: BTreeMap<Table, BTreeMap<Vec<u8>, Change>>,
}

/// A new value, or `None` for a removal.
pub(crate) type Change = Option<Vec<u8>>;

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
    pub fn set(&mut self, table: Table, key: &[u8], change: Change) {
        self.tables.entry(table).or_default().insert(key.to_vec(), change);
    }

    /// Adds the changes of `later`, which take precedence.
    pub fn then(&mut self, later: Changes) {
        if self.tables.is_empty() {
            self.tables = later.tables;
            return;
        }
        for (table, changes) in later.tables {
            match self.tables.entry(table) {
                btree_map::Entry::Vacant(free) => {
                    free.insert(changes);
                }
                btree_map::Entry::Occupied(earlier) => earlier.into_mut().extend(changes),
            }
        }
    }

    /// Returns `true` if `key` gets a value.
    pub fn puts(&self, table: Table, key: &[u8]) -> bool {
        matches!(self.change(table, key), Some(Some(_)))
    }

    /// Each changed key with its new value, or with `None` for a removal, in the order of tables and keys.
    pub fn iter(&self) -> impl Iterator<Item = (Table, &[u8], Option<&[u8]>)> {
        self.tables.iter().flat_map(|(table, changes)| {
            changes.iter().map(|(key, change)| (*table, &key[..], change.as_deref()))
        })
    }

    /// Each changed table with its changes, in the order of their keys.
    pub fn tables(&self) -> impl Iterator<Item = (Table, &BTreeMap<Vec<u8>, Change>)> {
        self.tables.iter().map(|(table, changes)| (*table, changes))
    }
}

impl Layer for Changes {
    fn change(&self, table: Table, key: &[u8]) -> Option<Changed<'_>> {
        self.tables.get(&table)?.get(key).map(Option::as_deref)
    }

    fn run(&self, table: Table, span: KeySpan<'_>, order: Order) -> Option<Run<'_>> {
        let mut entries = self.tables.get(&table)?.range::<[u8], _>(span);
        Some(Box::new(iter::from_fn(move || {
            let (key, change) = order.step(&mut entries)?;
            Some((key.as_slice(), change.as_deref()))
        })))
    }
}
