//! Making the rows of outcomes anew from the notifications.

use std::ops::ControlFlow;

use domain::ids::EnvironmentId;
use domain::notification::{NotificationOutcome, Ordinal};

use super::mark::put;
use super::{IN_ROW, made_anew, row_of};
use crate::{
    OnRows, Order, ReadRecords, Result, Snapshot, Store, Table, Transaction, layout, records,
};

/// Makes the rows of an environment anew from its notifications, in one transaction for each 1,024
/// notifications. Each transaction leaves rows that are right. Ends if `progress` breaks.
pub fn rebuild(
    store: &dyn Store,
    environment: EnvironmentId,
    progress: &mut OnRows<'_>,
) -> Result<ControlFlow<()>> {
    records::write_in(store, environment, |transaction| {
        remove_strangers(transaction, environment)
    })?;
    let mut next = Some(0);
    while let Some(from) = next {
        next = records::write_in(store, environment, |transaction| {
            step(transaction, environment, from)
        })?;
        if next.is_some() && progress(Table::NotificationOutcomes, 1).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

// Removes the entries whose keys are not those of rows.
fn remove_strangers(transaction: &mut dyn Transaction, environment: EnvironmentId) -> Result<()> {
    let mut strangers = Vec::new();
    let all = layout::all_outcome_rows(environment);
    transaction.scan_bytes(&all, Order::Ascending, None, &mut |key, _| {
        if layout::outcome_of_row(key).is_none_or(|(_, row)| !is_possible(row)) {
            strangers.push(key.to_vec());
        }
        ControlFlow::Continue(())
    })?;
    strangers.iter().try_for_each(|key| transaction.delete(Table::NotificationOutcomes, key))
}

// Makes the first rows from the number `from` on anew. Returns the number behind them, or `None` if
// there are none.
fn step(
    transaction: &mut dyn Transaction,
    environment: EnvironmentId,
    from: u32,
) -> Result<Option<u32>> {
    let Some(number) = first(transaction, environment, from)? else { return Ok(None) };
    for (outcome, row) in made_anew(transaction, environment, number)? {
        put(transaction, (environment, outcome, number), &row)?;
    }
    Ok(number.checked_add(1))
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
