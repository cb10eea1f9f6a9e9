//! What long calls tell the host while they run.

use std::ops::ControlFlow;

use crate::Table;

/// Progress of a long call: a check, a repair, a rebuild of an index, a deletion, a copy or a
/// resealing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Name of the table that is compared, rebuilt, cleared, copied or resealed.
    pub table: &'static str,
    /// Number of rows that were looked at so far, in all tables. The comparison of a copy counts
    /// from 0 again.
    pub rows: u64,
    /// Size of these rows in bytes, if the call copies them; otherwise 0.
    pub bytes: u64,
    /// `true` if a copy is compared with its origin. The environments are copied after that.
    pub is_comparing: bool,
}

impl Progress {
    /// Progress of a call that looks at rows.
    #[doc(hidden)]
    pub fn of_rows(table: Table, rows: u64) -> Self {
        Self { table: table.name(), rows, bytes: 0, is_comparing: false }
    }
}

/// Function that hears of the progress of a long call. The call ends if it breaks.
#[doc(hidden)]
pub type OnProgress<'p> = dyn FnMut(Progress) -> ControlFlow<()> + 'p;

/// Function that hears of each part of a long work: the table that is compared or rebuilt, and the number
/// of rows that were looked at since the last call. The work ends if it breaks.
#[doc(hidden)]
pub type OnRows<'p> = dyn FnMut(Table, u64) -> ControlFlow<()> + 'p;
