//! Making the rows of outcomes anew from the notifications.

use std::ops::ControlFlow;

use domain::ids::EnvironmentId;
use domain::notification::{NotificationOutcome, Ordinal};

use super::mark::put;
use super::{IN_ROW, made_anew, row_of};
use crate::batch::{Batch, Row};
use crate::step::TableRebuild;
use crate::{OnRows, Order, ReadRecords, Result, Snapshot, Store, Table, Transaction, layout};

/// Number of entries that one transaction looks at.
const ENTRIES: usize = 1_024;

/// Makes the rows of an environment anew from its notifications, in one transaction for each 1,024
/// entries or notifications. Each transaction leaves rows that are right. Ends if `progress` breaks.
pub fn rebuild(
    store: &dyn Store,
    environment: EnvironmentId,
    progress: &mut OnRows<'_>,
) -> Result<ControlFlow<()>> {
    let rebuild = TableRebuild { store, environment, table: Table::NotificationOutcomes };
    let removed =
        rebuild.run(Vec::new(), progress, |txn, behind| remove_extra(txn, environment, behind))?;
    if removed.is_break() {
        return Ok(removed);
    }
    rebuild.run(0, progress, |txn, from| step(txn, environment, *from))
}

// Removes those of the next entries behind a key that are no rows of outcomes. Returns the number of entries
// that were looked at, and the key of the last one if there may be others behind it.
fn remove_extra(
    transaction: &mut dyn Transaction,
    environment: EnvironmentId,
    behind: &[u8],
) -> Result<(u64, Option<Vec<u8>>)> {
    let range = layout::all_outcome_rows(environment).resumed(behind);
    let Batch { rows, next } = Batch::read(&*transaction, &range, ENTRIES)?;
    for Row { key, .. } in &rows {
        if layout::outcome_of_row(key).is_none_or(|(_, row)| !is_possible(row)) {
            transaction.delete(range.table(), key)?;
        }
    }
    Ok((rows.len() as u64, next))
}

// Makes the first rows from the number `from` on anew. Returns 1 and the number behind them, or 0 and `None` if
// there are none.
fn step(
    transaction: &mut dyn Transaction,
    environment: EnvironmentId,
    from: u32,
) -> Result<(u64, Option<u32>)> {
    let Some(number) = first(transaction, environment, from)? else { return Ok((0, None)) };
    for (outcome, row) in made_anew(transaction, environment, number)?.rows {
        put(transaction, (environment, outcome, number), &row)?;
    }
    Ok((1, number.checked_add(1)))
}

// The number of the first row from `from` on that there is, or that a notification is in.
pub(crate) fn first(
    snapshot: &(impl Snapshot + ?Sized),
    environment: EnvironmentId,
    from: u32,
) -> Result<Option<u32>> {
    if !is_possible(from) {
        return Ok(None);
    }
    let start = Ordinal::new(u64::from(from) * IN_ROW);
    let later = layout::notifications_from(environment, start);
    let row = |key: &[u8]| layout::ordinal_of(key).map(|ordinal| row_of(ordinal.get()));
    let mut found = Vec::from_iter(snapshot.first_known(&later, Order::Ascending, row)?);
    for outcome in NotificationOutcome::ALL {
        let later = layout::outcome_rows(environment, *outcome, from..u32::MAX);
        let row = |key: &[u8]| layout::outcome_of_row(key).map(|(_, row)| row);
        found.extend(snapshot.first_known(&later, Order::Ascending, row)?);
    }
    Ok(found.into_iter().filter(|row| *row >= from).min())
}

// Returns whether there are ordinals for the row with this number.
pub(crate) fn is_possible(number: u32) -> bool {
    let first = u64::from(number) * IN_ROW;
    Ordinal::new(first).get() == first
}
