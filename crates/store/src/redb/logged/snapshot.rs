//! A snapshot of the database with the changes that lie over it.

use std::sync::Arc;

use super::super::database::DatabaseFile;
use super::super::disk::Disk;
use crate::memtable::Memtable;
use crate::overlay::{Changed, Layer, Run, get_many_over, get_over, merged, scan_over};
use crate::{KeyRange, Order, Result, Snapshot, Table, Visit, VisitValue, range};

/// Memtables over a snapshot of the database.
pub(in crate::redb) struct Merged<'s> {
    /// Latest first.
    memtables: [Option<Arc<Memtable>>; 2],
    disk: Disk<'s>,
}

impl<'s> Merged<'s> {
    pub(super) fn now(
        file: &'s DatabaseFile,
        memtables: [Option<&Arc<Memtable>>; 2],
    ) -> Result<Self> {
        let disk = Disk::now(file)?;
        let memtables = memtables.map(|it| it.filter(|it| !it.is_empty()).map(Arc::clone));
        Ok(Self { memtables, disk })
    }

    fn change(&self, table: Table, key: &[u8]) -> Option<Changed<'_>> {
        self.memtables.iter().flatten().find_map(|it| it.change(table, key))
    }

    fn run(&self, table: Table, range: &KeyRange, order: Order) -> Option<Run<'_>> {
        let span = range::borrow(range)?;
        let memtables = self.memtables.iter().flatten();
        merged(memtables.filter_map(|it| it.run(table, span, order)), order)
    }
}

impl Snapshot for Merged<'_> {
    fn get(&self, table: Table, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        get_over(self.change(table, key), || Ok(&self.disk), table, key, visit)
    }

    fn get_many(&self, table: Table, keys: &[&[u8]], visit: &mut VisitValue<'_>) -> Result<()> {
        let change = |key: &[u8]| self.change(table, key);
        get_many_over(change, || Ok(&self.disk), table, keys, visit)
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
            return self.disk.scan(table, range, order, limit, visit);
        };
        // The merge ends the scan, however many entries were removed.
        let scan = &mut |visit: &mut Visit<'_>| self.disk.scan(table, range, order, None, visit);
        scan_over(run, order, limit, visit, scan)
    }
}
