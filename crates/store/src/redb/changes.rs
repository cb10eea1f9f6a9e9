//! Changes that are not on disk yet.

use std::cmp::Ordering;
use std::collections::{BTreeMap, btree_map};
use std::iter;

use redb::WriteTransaction;

use super::disk::rows;
use crate::range::KeySpan;
use crate::{Order, Table};

/// What to do to each key: put a value there, or leave nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    tables: BTreeMap<Table, BTreeMap<Vec<u8>, Change>>,
}

/// A value to be put, or nothing to be left.
pub(super) type Change = Option<Vec<u8>>;

/// Changes in the order of a scan, each key once.
pub(super) type Run<'c> = Box<dyn Iterator<Item = (&'c [u8], Option<&'c [u8]>)> + 'c>;

impl Changes {
    pub(super) fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    pub(super) fn set(&mut self, table: Table, key: &[u8], change: Change) {
        self.tables.entry(table).or_default().insert(key.to_vec(), change);
    }

    pub(super) fn get(&self, table: Table, key: &[u8]) -> Option<&Change> {
        self.tables.get(&table)?.get(key)
    }

    /// Makes the changes of `later` after these.
    pub(super) fn then(&mut self, later: Changes) {
        for (table, changes) in later.tables {
            match self.tables.entry(table) {
                btree_map::Entry::Vacant(free) => {
                    free.insert(changes);
                }
                btree_map::Entry::Occupied(earlier) => earlier.into_mut().extend(changes),
            }
        }
    }

    /// The changes within `span`, if there are any in the table.
    pub(super) fn run(&self, table: Table, span: KeySpan<'_>, order: Order) -> Option<Run<'_>> {
        let mut entries = self.tables.get(&table)?.range::<[u8], _>(span);
        Some(Box::new(iter::from_fn(move || {
            let (key, change) = order.step(&mut entries)?;
            Some((key.as_slice(), change.as_deref()))
        })))
    }

    /// Hands everything to redb, in the order of its pages.
    pub(super) fn apply(&self, transaction: &WriteTransaction) -> Result<(), redb::Error> {
        for (table, changes) in &self.tables {
            let mut table = transaction.open_table(rows(*table))?;
            for (key, change) in changes {
                match change {
                    Some(value) => drop(table.insert(key.as_slice(), value.as_slice())?),
                    None => drop(table.remove(key.as_slice())?),
                }
            }
        }
        Ok(())
    }
}

/// Both runs as one. Where they have the same key, `upper` says what becomes of it.
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

/// How two keys stand to each other when they are read in `order`.
pub(super) fn compare(left: &[u8], right: &[u8], order: Order) -> Ordering {
    match order {
        Order::Ascending => left.cmp(right),
        Order::Descending => right.cmp(left),
    }
}
