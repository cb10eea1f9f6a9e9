//! Rows of a range that are read together, up to a number and a size.

use std::ops::ControlFlow;

use store::{Order, Range, ReadRecords, Record, Snapshot};

use crate::Result;
use crate::tx::Reading;

/// Rows that may still be read, and their size in bytes.
pub(crate) struct RowBudget {
    pub(crate) rows: usize,
    pub(crate) size: usize,
}

/// The first rows of a range: their keys and records. A row that cannot be read has no record.
pub(crate) struct RowBatch<R> {
    pub(crate) rows: Vec<(Vec<u8>, Option<R>)>,
    /// `true` if the range has no others.
    pub(crate) is_last: bool,
}

impl RowBudget {
    /// Returns `true` if no row may be read.
    pub(crate) const fn is_spent(&self) -> bool {
        self.rows == 0 || self.size == 0
    }
}

impl<R: Record> RowBatch<R> {
    /// Reads the rows that are left in the budget.
    pub(crate) fn of(view: &Reading<'_>, range: &Range<R>, left: &mut RowBudget) -> Result<Self> {
        let (codec, mut rows) = (view.codec(), Vec::new());
        view.scan_bytes(range, Order::Ascending, Some(left.rows), &mut |key, value| {
            rows.push((key.to_vec(), codec.decode::<R>(key, value).ok()));
            left.size = left.size.saturating_sub(value.len());
            if left.size == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        left.rows = left.rows.saturating_sub(rows.len());
        Ok(Self { rows, is_last: !left.is_spent() })
    }
}
