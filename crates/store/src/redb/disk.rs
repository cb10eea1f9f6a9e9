//! A snapshot of a redb file.

use std::ops::ControlFlow;
use std::result;
use std::sync::Arc;

use redb::{AccessGuard, ReadableTable};

use super::database::DatabaseFile;
use super::failure::{Failure, attempt, caught};
use super::key::Bytes;
use super::view::View;
use crate::{Error, KeyRange, Order, Result, Snapshot, Table, Visit, VisitValue, range};

/// A snapshot of the file.
pub(super) struct Disk<'s> {
    view: Arc<View>,
    file: &'s DatabaseFile,
}

impl<'s> Disk<'s> {
    pub(super) fn now(file: &'s DatabaseFile) -> Result<Self> {
        let view = file.present().view().map_err(|failure| error(file, failure))?;
        Ok(Self { view, file })
    }

    fn try_get(
        &self,
        table: Table,
        key: &[u8],
        visit: &mut dyn FnMut(&[u8]),
    ) -> result::Result<bool, Failure> {
        let Some(rows) = self.view.open(table)? else { return Ok(false) };
        let found = attempt("read an entry", || ReadableTable::get(rows, key))?;
        let Some(value) = &found else { return Ok(false) };
        visit(caught(|| value.value())?);
        Ok(true)
    }

    fn try_get_many(
        &self,
        table: Table,
        keys: &[&[u8]],
        visit: &mut VisitValue<'_>,
    ) -> result::Result<(), Failure> {
        let rows = self.view.open(table)?;
        for key in keys {
            let Some(rows) = &rows else {
                visit(None);
                continue;
            };
            let found = attempt("read an entry", || ReadableTable::get(*rows, *key))?;
            visit(found.as_ref().map(|value| caught(|| value.value())).transpose()?);
        }
        Ok(())
    }

    fn try_scan(
        &self,
        table: Table,
        range: &KeyRange,
        order: Order,
        limit: Option<usize>,
        visit: &mut Visit<'_>,
    ) -> result::Result<(), Failure> {
        let (Some(rows), Some(span)) = (self.view.open(table)?, range::borrow(range)) else {
            return Ok(());
        };
        let mut entries = attempt("read a range", || ReadableTable::range::<&[u8]>(rows, span))?;
        let mut before: Option<(AccessGuard<'_, Bytes>, _)> = None;
        for _ in 0..limit.unwrap_or(usize::MAX) {
            let next = attempt("read a range", || order.step(&mut entries).transpose())?;
            let Some((key, value)) = &next else { break };
            let (key, value) = caught(|| (key.value(), value.value()))?;
            // A damaged page may have keys of another place, and of another environment.
            if !order.admits(span, before.as_ref().map(|(key, _)| key.value()), key) {
                return Err(Failure::Misplaced(table));
            }
            if let ControlFlow::Break(()) = visit(key, value) {
                break;
            }
            before = next;
        }
        Ok(())
    }
}

/// The error of reading a snapshot of `file`.
fn error(file: &DatabaseFile, failure: Failure) -> Error {
    let failure = match (file.explained(failure), file.closed()) {
        (Failure::Full { .. } | Failure::Interrupted(_), Some(closed)) => {
            Failure::Stopped(Box::new(closed.clone()))
        }
        // A commit has failed meanwhile. The next snapshot is of the file that was opened again.
        (Failure::Full { cause, .. }, None) => Failure::Interrupted(cause),
        // redb reads nothing more after an error.
        (failure @ Failure::Refused { .. }, _) if file.has_failed() => {
            Failure::Stopped(Box::new(failure))
        }
        (failure, _) => failure,
    };
    failure.at(&file.path)
}

impl Snapshot for Disk<'_> {
    fn get(&self, table: Table, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.try_get(table, key, visit).map_err(|failure| error(self.file, failure))
    }

    fn get_many(&self, table: Table, keys: &[&[u8]], visit: &mut VisitValue<'_>) -> Result<()> {
        self.try_get_many(table, keys, visit).map_err(|failure| error(self.file, failure))
    }

    fn scan(
        &self,
        table: Table,
        range: &KeyRange,
        order: Order,
        limit: Option<usize>,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        self.try_scan(table, range, order, limit, visit)
            .map_err(|failure| error(self.file, failure))
    }
}
