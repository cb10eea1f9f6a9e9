//! One scan of a store and of the changes that lie over it.

use std::iter::Peekable;
use std::ops::ControlFlow;

use super::changes::{Run, compare};
use crate::{Order, Visit};

/// Passes the entries of a scan on, with the changes in their places.
pub(super) struct Merge<'m, 'c, 'v> {
    run: Peekable<Run<'c>>,
    order: Order,
    /// Number of entries that may still be visited.
    left: usize,
    visit: &'m mut Visit<'v>,
}

impl<'m, 'c, 'v> Merge<'m, 'c, 'v> {
    pub(super) fn new(
        run: Run<'c>,
        order: Order,
        limit: Option<usize>,
        visit: &'m mut Visit<'v>,
    ) -> Self {
        Self { run: run.peekable(), order, left: limit.unwrap_or(usize::MAX), visit }
    }

    /// Visits the changes in front of an entry, and then the entry unless a change replaces it.
    pub(super) fn entry(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        let order = self.order;
        while let Some(change) = self.run.next_if(|(new, _)| compare(new, key, order).is_lt()) {
            self.change(change)?;
        }
        match self.run.next_if(|(new, _)| *new == key) {
            Some(change) => self.change(change),
            None => self.show(key, value),
        }
    }

    /// Visits the changes behind the last entry.
    pub(super) fn rest(&mut self) {
        while let Some(change) = self.run.next() {
            if self.change(change).is_break() {
                break;
            }
        }
    }

    fn change(&mut self, (key, change): (&[u8], Option<&[u8]>)) -> ControlFlow<()> {
        change.map_or(ControlFlow::Continue(()), |value| self.show(key, value))
    }

    fn show(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        let Some(left) = self.left.checked_sub(1) else { return ControlFlow::Break(()) };
        self.left = left;
        (self.visit)(key, value)?;
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
