//! A transaction whose changes lie over those that are on their way to the disk.

use std::cell::OnceCell;
use std::iter::{self, Peekable};
use std::ops::ControlFlow;
use std::path::Path;

use super::changes::{Changes, Run, compare, over};
use super::disk::Disk;
use super::handle::Handle;
use crate::{KeyRange, Order, Result, Snapshot, Table, Transaction, Visit, range};

/// A transaction in the making.
pub(super) struct Layered<'s> {
    own: Changes,
    /// What came before, latest first.
    under: Vec<&'s Changes>,
    /// The disk lies below everything, so it does not matter whether it is looked at before or
    /// after the commit of a layer above it.
    disk: OnceCell<Disk<'s>>,
    database: &'s Handle,
    path: &'s Path,
}

impl<'s> Layered<'s> {
    pub(super) fn new(under: Vec<&'s Changes>, database: &'s Handle, path: &'s Path) -> Self {
        Self { own: Changes::default(), under, disk: OnceCell::new(), database, path }
    }

    pub(super) fn into_changes(self) -> Changes {
        self.own
    }

    fn disk(&self) -> Result<&Disk<'s>> {
        if let Some(disk) = self.disk.get() {
            return Ok(disk);
        }
        let disk = Disk::now(self.database, self.path)?;
        Ok(self.disk.get_or_init(|| disk))
    }

    fn layers(&self) -> impl DoubleEndedIterator<Item = &Changes> {
        iter::once(&self.own).chain(self.under.iter().copied())
    }
}

impl Snapshot for Layered<'_> {
    fn get(&self, table: Table, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        match self.layers().find_map(|changes| changes.get(table, key)) {
            Some(Some(value)) => {
                visit(value);
                Ok(true)
            }
            Some(None) => Ok(false),
            None => self.disk()?.get(table, key, visit),
        }
    }

    fn scan(
        &self,
        table: Table,
        range: &KeyRange,
        order: Order,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        let Some(span) = range::borrow(range) else { return Ok(()) };
        let runs = self.layers().filter_map(|changes| changes.run(table, span, order));
        let Some(run) = runs.rev().reduce(|lower, upper| over(upper, lower, order)) else {
            return self.disk()?.scan(table, range, order, visit);
        };
        let mut merge = Merge { run: run.peekable(), order, visit };
        let mut flow = ControlFlow::Continue(());
        self.disk()?.scan(table, range, order, &mut |key, value| {
            flow = merge.entry(key, value);
            flow
        })?;
        if flow.is_continue() {
            merge.rest();
        }
        Ok(())
    }
}

impl Transaction for Layered<'_> {
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        self.own.set(table, key, Some(value.to_vec()));
        Ok(())
    }

    fn delete(&mut self, table: Table, key: &[u8]) -> Result<()> {
        self.own.set(table, key, None);
        Ok(())
    }
}

/// A scan of the disk that meets the changes which have not got there.
struct Merge<'m, 'c, 'v> {
    run: Peekable<Run<'c>>,
    order: Order,
    visit: &'m mut Visit<'v>,
}

impl Merge<'_, '_, '_> {
    fn entry(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        let order = self.order;
        while let Some(change) = self.run.next_if(|(new, _)| compare(new, key, order).is_lt()) {
            self.show(change)?;
        }
        match self.run.next_if(|(new, _)| *new == key) {
            Some(change) => self.show(change),
            None => (self.visit)(key, value),
        }
    }

    fn rest(&mut self) {
        while let Some(change) = self.run.next() {
            if self.show(change).is_break() {
                break;
            }
        }
    }

    fn show(&mut self, (key, change): (&[u8], Option<&[u8]>)) -> ControlFlow<()> {
        change.map_or(ControlFlow::Continue(()), |value| (self.visit)(key, value))
    }
}
