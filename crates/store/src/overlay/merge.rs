//! Reads of a store and of the changes that lie over it.

use std::cmp::Ordering;
use std::iter::{self, Peekable};
use std::ops::ControlFlow;

use super::changes::{Changed, Run};
use crate::{Order, Result, Snapshot, Table, Visit, VisitValue};

/// The runs of several layers, latest first, as one. A change of a later layer replaces the changes
/// of the same key in earlier ones.
pub(crate) fn merged<'c>(
    runs: impl DoubleEndedIterator<Item = Run<'c>>,
    order: Order,
) -> Option<Run<'c>> {
    runs.rev().reduce(|lower, upper| over(upper, lower, order))
}

/// Visits the value under `key`: that of `change`, or that of the base if there is no change.
pub(crate) fn get_over<'s, S: Snapshot + 's>(
    change: Option<Changed<'_>>,
    base: impl FnOnce() -> Result<&'s S>,
    table: Table,
    key: &[u8],
    visit: &mut dyn FnMut(&[u8]),
) -> Result<bool> {
    match change {
        Some(Some(value)) => {
            visit(value);
            Ok(true)
        }
        Some(None) => Ok(false),
        None => base()?.get(table, key, visit),
    }
}

/// Visits the values under `keys`: the changed ones, and those of the base for all others.
pub(crate) fn get_many_over<'c, 's, S: Snapshot + 's>(
    change: impl Fn(&[u8]) -> Option<Changed<'c>>,
    base: impl FnOnce() -> Result<&'s S>,
    table: Table,
    keys: &[&[u8]],
    visit: &mut VisitValue<'_>,
) -> Result<()> {
    let changes: Vec<_> = keys.iter().map(|key| change(key)).collect();
    let unchanged = keys.iter().zip(&changes).filter(|(_, change)| change.is_none());
    let below: Vec<&[u8]> = unchanged.map(|(key, _)| *key).collect();
    let mut changes = changes.into_iter().peekable();
    if !below.is_empty() {
        base()?.get_many(table, &below, &mut |value| {
            while let Some(Some(change)) = changes.next_if(Option::is_some) {
                visit(change);
            }
            changes.next();
            visit(value);
        })?;
    }
    changes.flatten().for_each(visit);
    Ok(())
}

/// Visits the first `limit` entries of `scan`, with the changes of `run` in their places.
pub(crate) fn scan_over(
    run: Run<'_>,
    order: Order,
    limit: Option<usize>,
    visit: &mut Visit<'_>,
    scan: &mut dyn FnMut(&mut Visit<'_>) -> Result<()>,
) -> Result<()> {
    let mut merge = Merge::new(run, order, limit, visit);
    let mut flow = ControlFlow::Continue(());
    scan(&mut |key, value| {
        flow = merge.entry(key, value);
        flow
    })?;
    if flow.is_continue() {
        merge.rest();
    }
    Ok(())
}

/// Passes the entries of a scan on, with the changes in their places.
struct Merge<'m, 'c, 'v> {
    run: Peekable<Run<'c>>,
    order: Order,
    /// Number of entries that may still be visited.
    left: usize,
    visit: &'m mut Visit<'v>,
}

impl<'m, 'c, 'v> Merge<'m, 'c, 'v> {
    fn new(run: Run<'c>, order: Order, limit: Option<usize>, visit: &'m mut Visit<'v>) -> Self {
        Self { run: run.peekable(), order, left: limit.unwrap_or(usize::MAX), visit }
    }

    /// Visits the changes in front of an entry, and then the entry unless a change replaces it.
    fn entry(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
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
    fn rest(&mut self) {
        while let Some(change) = self.run.next() {
            if self.change(change).is_break() {
                break;
            }
        }
    }

    fn change(&mut self, (key, change): (&[u8], Changed<'_>)) -> ControlFlow<()> {
        change.map_or(ControlFlow::Continue(()), |value| self.show(key, value))
    }

    fn show(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        let Some(left) = self.left.checked_sub(1) else { return ControlFlow::Break(()) };
        self.left = left;
        (self.visit)(key, value)?;
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Both runs as one. A change of `upper` replaces the change of the same key in `lower`.
fn over<'c>(upper: Run<'c>, lower: Run<'c>, order: Order) -> Run<'c> {
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
fn compare(left: &[u8], right: &[u8], order: Order) -> Ordering {
    match order {
        Order::Ascending => left.cmp(right),
        Order::Descending => right.cmp(left),
    }
}
