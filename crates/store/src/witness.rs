//! A view that tells which entry a read could not read.

use std::cell::RefCell;
use std::fmt;

use domain::quarantine::Unreadable;

use crate::{Codec, Error, KeyRange, Order, Result, Snapshot, Table, Visit, VisitValue, check};

// Table, key and value of an entry.
type Read = (Table, Vec<u8>, Vec<u8>);

/// A view that keeps a copy of each entry that was read through it.
pub struct Witness<'s> {
    snapshot: &'s dyn Snapshot,
    read: RefCell<Vec<Read>>,
}

impl<'s> Witness<'s> {
    /// A view of `snapshot` through which nothing was read.
    pub fn new(snapshot: &'s dyn Snapshot) -> Self {
        Self { snapshot, read: RefCell::default() }
    }

    /// Returns the entry that could not be read: the first one of its table that cannot, or the
    /// last one that was read. Returns `None` if `error` is not about damage.
    pub fn unreadable(&self, error: &Error) -> Option<Unreadable> {
        let Error::Corrupt { table, source } = error else { return None };
        let (codec, read) = (self.snapshot.codec(), self.read.borrow());
        let of_table = || read.iter().filter(|(read, ..)| read.name() == *table);
        let is_unreadable = |(table, key, value): &&Read| {
            check::is_readable(codec, *table, key, value) == Some(false)
        };
        let found = of_table().find(is_unreadable).or_else(|| of_table().next_back());
        let (key, value) =
            found.map(|(_, key, value)| (key.clone(), value.clone())).unwrap_or_default();
        Some(Unreadable { table, key, value, reason: source.to_string() })
    }

    fn note(&self, table: Table, key: &[u8], value: &[u8]) {
        self.read.borrow_mut().push((table, key.to_vec(), value.to_vec()));
    }
}

impl fmt::Debug for Witness<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Witness").finish_non_exhaustive()
    }
}

impl Snapshot for Witness<'_> {
    fn get(&self, table: Table, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.snapshot.get(table, key, &mut |value| {
            self.note(table, key, value);
            visit(value);
        })
    }

    fn get_many(&self, table: Table, keys: &[&[u8]], visit: &mut VisitValue<'_>) -> Result<()> {
        let mut rest = keys.iter();
        self.snapshot.get_many(table, keys, &mut |value| {
            if let (Some(key), Some(value)) = (rest.next(), value) {
                self.note(table, key, value);
            }
            visit(value);
        })
    }

    fn scan(
        &self,
        table: Table,
        range: &KeyRange,
        order: Order,
        limit: Option<usize>,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        self.snapshot.scan(table, range, order, limit, &mut |key, value| {
            self.note(table, key, value);
            visit(key, value)
        })
    }

    fn prefetch(&self, keys: &mut dyn Iterator<Item = (Table, Vec<u8>)>) -> Result<()> {
        self.snapshot.prefetch(keys)
    }

    fn era(&self) -> u64 {
        self.snapshot.era()
    }

    fn stamp(&self) -> Option<u64> {
        self.snapshot.stamp()
    }

    fn codec(&self) -> Codec<'_> {
        self.snapshot.codec()
    }
}
