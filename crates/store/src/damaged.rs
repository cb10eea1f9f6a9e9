//! Stores for unit tests whose scans are those of damaged ones.

use std::sync::Arc;

use crate::memory::MemoryStore;
use crate::range::EVERYTHING;
use crate::{
    KeyRange, Order, ReadBody, Result, Snapshot, Store, Table, Visit, VisitValue, WriteBody,
};

/// The scan of a damaged store: what is below, the table, the range, the order and the limit.
pub(crate) type Scan =
    fn(&dyn Snapshot, (Table, &KeyRange, Order, Option<usize>), &mut Visit<'_>) -> Result<()>;

/// A store whose scans are those of a damaged one.
#[derive(Debug)]
pub(crate) struct Damaged(pub(crate) Arc<MemoryStore>, pub(crate) Scan);

/// A view whose scans are those of a damaged one.
pub(crate) struct DamagedView<'s>(pub(crate) &'s dyn Snapshot, pub(crate) Scan);

impl Store for Damaged {
    fn read(&self, body: &mut ReadBody<'_>) -> Result<()> {
        self.0.read(&mut |snapshot| body(&DamagedView(snapshot, self.1)))
    }

    fn write(&self, body: &mut WriteBody<'_>) -> Result<()> {
        self.0.write(body)
    }
}

impl Snapshot for DamagedView<'_> {
    fn get(&self, table: Table, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.0.get(table, key, visit)
    }

    fn get_many(&self, table: Table, keys: &[&[u8]], visit: &mut VisitValue<'_>) -> Result<()> {
        self.0.get_many(table, keys, visit)
    }

    fn scan(
        &self,
        table: Table,
        range: &KeyRange,
        order: Order,
        limit: Option<usize>,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        (self.1)(self.0, (table, range, order, limit), visit)
    }
}

/// Scans from a key on lead back to the start, as those of a damaged index do.
pub(crate) fn leading_back(
    below: &dyn Snapshot,
    (table, _, order, limit): (Table, &KeyRange, Order, Option<usize>),
    visit: &mut Visit<'_>,
) -> Result<()> {
    below.scan(table, &EVERYTHING, order, limit, visit)
}
