//! Changes that the store below does not have yet.

use std::cmp::Ordering;
use std::collections::{BTreeMap, btree_map};
use std::iter;

use crate::range::KeySpan;
use crate::{Order, Table};

/// Changes of several tables: for each changed key its new value, or its removal.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    tables: BTreeMap<Table, BTreeMap<Vec<u8>, Change>>,
}

/// A new value, or `None` for a removal.
pub(crate) type Change = Option<Vec<u8>>;

/// Changes in the order of a scan, each key once.
pub(super) type Run<'c> = Box<dyn Iterator<Item = (&'c [u8], Option<&'c [u8]>)> + 'c>;

impl Changes {
    /// Returns `true` if there are no changes.
    pub(crate) fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// Notes a change, in place of an earlier one of the same key.
    pub(crate) fn set(&mut self, table: Table, key: &[u8], change: Change) {
        self.tables.entry(table).or_default().insert(key.to_vec(), change);
    }

    /// The change of `key`. Returns `None` if `key` is unchanged.
    pub(crate) fn get(&self, table: Table, key: &[u8]) -> Option<&Change> {
        self.tables.get(&table)?.get(key)
    }

    /// Adds the changes of `later`, which take precedence.
    pub(crate) fn then(&mut self, later: Changes) {
        for (table, changes) in later.tables {
            match self.tables.entry(table) {
                btree_map::Entry::Vacant(free) => {
                    free.insert(changes);
                }
                btree_map::Entry::Occupied(earlier) => earlier.into_mut().extend(changes),
            }
        }
    }

    /// Each changed table with its changes, in the order of their keys.
    pub(crate) fn tables(&self) -> impl Iterator<Item = (Table, &BTreeMap<Vec<u8>, Change>)> {
        self.tables.iter().map(|(table, changes)| (*table, changes))
    }

    /// The changes within `span`. Returns `None` if the table has no changes.
    pub(super) fn run(&self, table: Table, span: KeySpan<'_>, order: Order) -> Option<Run<'_>> {
        let mut entries = self.tables.get(&table)?.range::<[u8], _>(span);
        Some(Box::new(iter::from_fn(move || {
            let (key, change) = order.step(&mut entries)?;
            Some((key.as_slice(), change.as_deref()))
        })))
    }
}

/// Both runs as one. A change of `upper` replaces the change of the same key in `lower`.
pub(super) fn over<'c>(upper: Run<'c>, lower: Run<'c>, order: Order) -> Run<'c> {
    let (mut upper, mut lower) = (upper.peekable(), lower.peekable());
    Box::new(iter::from_fn(move || {
        let (Some((above, _)), Some((below, _))) = (upper.peek(), lower.peek()) else {
            return upper.next().or_else(|| lower.next());
        };
        match compare(above, below, order) {
            Ordering::Less => upper.next(),
            Ordering::Equal => {
                lower.next();
                upper.next()
            }
            Ordering::Greater => lower.next(),
        }
    }))
}

/// Compares two keys as `order` sorts them.
pub(super) fn compare(left: &[u8], right: &[u8], order: Order) -> Ordering {
    match order {
        Order::Ascending => left.cmp(right),
        Order::Descending => right.cmp(left),
    }
}
