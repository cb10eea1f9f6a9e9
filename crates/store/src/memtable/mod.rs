//! Changes of many transactions in memory: those that the log has, and the file does not.
//!
//! A memtable is an index of the payloads of log records. Clones share all that they have in
//! common, so that a clone is a snapshot.

mod payload;
mod payloads;
mod table_index;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::iter;
use std::ops::Bound;
use std::sync::Arc;

pub(crate) use self::payload::{Encoded, Malformed, encode, encoded_len};
use self::payload::{EncodedChange, decode};
use self::payloads::Payloads;
use self::table_index::TableIndex;
use crate::overlay::{Changed, Layer, Run};
use crate::range::KeySpan;
use crate::{Order, Table};

/// The latest change of each key that a sequence of payloads has changed.
#[derive(Clone, Default)]
pub(crate) struct Memtable {
    payloads: Payloads,
    tables: BTreeMap<Table, Arc<TableIndex>>,
}

/// A key with its table: the place where a step has ended.
pub(crate) type Position = (Table, Vec<u8>);

impl Memtable {
    /// Returns `true` if there are no changes.
    pub(crate) fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// Number of payloads that were added.
    pub(crate) fn payloads(&self) -> usize {
        self.payloads.len()
    }

    /// Adds changes, in place of earlier ones of the same keys.
    pub(crate) fn add(&mut self, Encoded { payload, places }: &Encoded) {
        let number = self.payloads.push(Arc::clone(payload));
        for place in places {
            self.set(number, *place);
        }
    }

    /// Adds the changes of a payload that the log had, in place of earlier ones of the same keys. Adds none of a
    /// malformed one.
    pub(crate) fn replay(&mut self, payload: Arc<Vec<u8>>) -> Result<(), Malformed> {
        decode(&payload, |_| {})?;
        let number = self.payloads.push(Arc::clone(&payload));
        decode(&payload, |place| self.set(number, place))
    }

    fn set(&mut self, payload: u32, (table, key, value): EncodedChange) {
        let index = Arc::make_mut(self.tables.entry(table).or_default());
        index.set(&self.payloads, payload, key, value);
    }

    /// The changes behind `position`, or all of them, in the order of tables and keys.
    pub(crate) fn after<'m>(
        &'m self,
        position: Option<&'m Position>,
    ) -> impl Iterator<Item = (Table, &'m [u8], Option<&'m [u8]>)> {
        let tables = position.map_or(Bound::Unbounded, |(table, _)| Bound::Included(*table));
        self.tables.range((tables, Bound::Unbounded)).flat_map(move |(table, index)| {
            let start = match position {
                Some((other, key)) if other == table => Bound::Excluded(key.as_slice()),
                _ => Bound::Unbounded,
            };
            let entries = index.range(&self.payloads, (start, Bound::Unbounded));
            let entries = entries.into_iter().flatten();
            entries.map(|it| (*table, it.key(&self.payloads), it.value(&self.payloads)))
        })
    }
}

impl Layer for Memtable {
    fn change(&self, table: Table, key: &[u8]) -> Option<Changed<'_>> {
        let entry = self.tables.get(&table)?.get(&self.payloads, key)?;
        Some(entry.value(&self.payloads))
    }

    fn run(&self, table: Table, span: KeySpan<'_>, order: Order) -> Option<Run<'_>> {
        let mut entries = self.tables.get(&table)?.range(&self.payloads, span)?;
        Some(Box::new(iter::from_fn(move || {
            let entry = order.step(&mut entries)?;
            Some((entry.key(&self.payloads), entry.value(&self.payloads)))
        })))
    }
}
