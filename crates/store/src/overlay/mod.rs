//! Changes over a snapshot, and a transaction on a store that cannot take changes yet.
//!
//! The overlay uses nothing of the store below but its [`Snapshot`].

mod changes;
mod merge;

use std::cell::OnceCell;
use std::{fmt, iter};

pub use self::changes::Changes;
pub(crate) use self::changes::{Changed, Layer, Run};
pub(crate) use self::merge::{get_many_over, get_over, merged, scan_over};
use crate::{
    Codec, KeyRange, Order, Result, Snapshot, Table, Transaction, Visit, VisitValue, range,
};

/// A transaction whose own changes lie over earlier changes, and those over a snapshot.
pub struct Overlay<'s, S, T> {
    own: Changes,
    /// Earlier changes, latest first.
    under: Vec<&'s Changes>,
    /// The snapshot lies below all changes. So it may be taken before or after the commit of any of
    /// them.
    base: OnceCell<S>,
    take_snapshot: T,
    codec: Codec<'s>,
    era: u64,
}

impl<'s, S: Snapshot, T: Fn() -> Result<S>> Overlay<'s, S, T> {
    /// A transaction over the changes of `under`, latest first, and the snapshot that
    /// `take_snapshot` returns. A transaction that reads nothing takes no snapshot.
    pub fn new(under: Vec<&'s Changes>, take_snapshot: T) -> Self {
        let (own, base) = (Changes::default(), OnceCell::new());
        Self { own, under, base, take_snapshot, codec: Codec::COMPACT, era: 0 }
    }

    /// The same transaction with the codec of the store below.
    pub(crate) fn encoded_by(self, codec: Codec<'s>) -> Self {
        Self { codec, ..self }
    }

    /// The same transaction over a snapshot of that [era](Snapshot::era).
    #[must_use]
    pub fn in_era(self, era: u64) -> Self {
        Self { era, ..self }
    }

    /// The transaction's own changes.
    pub fn into_changes(self) -> Changes {
        self.own
    }

    fn base(&self) -> Result<&S> {
        if let Some(base) = self.base.get() {
            return Ok(base);
        }
        let base = (self.take_snapshot)()?;
        Ok(self.base.get_or_init(|| base))
    }

    fn layers(&self) -> impl DoubleEndedIterator<Item = &Changes> {
        iter::once(&self.own).chain(self.under.iter().copied())
    }

    fn change(&self, table: Table, key: &[u8]) -> Option<Changed<'_>> {
        self.layers().find_map(|changes| changes.change(table, key))
    }

    // The changes of all layers within `range`. Returns `None` if the table has no changes.
    fn run(&self, table: Table, range: &KeyRange, order: Order) -> Option<Run<'_>> {
        let span = range::borrow(range)?;
        merged(self.layers().filter_map(|changes| changes.run(table, span, order)), order)
    }

    fn removals(&self, table: Table, range: &KeyRange, order: Order) -> usize {
        let run = self.run(table, range, order).into_iter().flatten();
        run.filter(|(_, change)| change.is_none()).count()
    }
}

// The changes may hold secrets.
impl<S, T> fmt::Debug for Overlay<'_, S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overlay").finish_non_exhaustive()
    }
}

impl<S: Snapshot, T: Fn() -> Result<S>> Snapshot for Overlay<'_, S, T> {
    fn get(&self, table: Table, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        get_over(self.change(table, key), || self.base(), table, key, visit)
    }

    fn get_many(&self, table: Table, keys: &[&[u8]], visit: &mut VisitValue<'_>) -> Result<()> {
        let change = |key: &[u8]| self.change(table, key);
        get_many_over(change, || self.base(), table, keys, visit)
    }

    fn scan(
        &self,
        table: Table,
        range: &KeyRange,
        order: Order,
        limit: Option<usize>,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        let Some(run) = self.run(table, range, order) else {
            return self.base()?.scan(table, range, order, limit, visit);
        };
        // Each removal may hide one of the entries below.
        let below = |limit: usize| limit.saturating_add(self.removals(table, range, order));
        scan_over(run, order, limit, visit, &mut |visit| {
            self.base()?.scan(table, range, order, limit.map(below), visit)
        })
    }

    fn prefetch(&self, keys: &mut dyn Iterator<Item = (Table, Vec<u8>)>) -> Result<()> {
        self.base()?.prefetch(keys)
    }

    fn era(&self) -> u64 {
        self.era
    }

    fn stamp(&self) -> Option<u64> {
        if self.layers().all(Changes::is_empty) { self.base().ok()?.stamp() } else { None }
    }

    fn codec(&self) -> Codec<'_> {
        self.codec
    }
}

impl<S: Snapshot, T: Fn() -> Result<S>> Transaction for Overlay<'_, S, T> {
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        self.own.set(table, key, Some(value));
        Ok(())
    }

    fn delete(&mut self, table: Table, key: &[u8]) -> Result<()> {
        self.own.set(table, key, None);
        Ok(())
    }
}
