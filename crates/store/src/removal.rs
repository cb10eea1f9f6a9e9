//! Removal of all rows of an environment, in steps.
//!
//! Rows are removed by their keys, so those that cannot be read go as well. The record of the
//! environment stays, so that an interrupted removal can be found and goes on.

use std::ops::ControlFlow;

use domain::ids::EnvironmentId;
use domain::quarantine::Quarantined;

use crate::batch::{self, Batch, Limit};
use crate::record::if_readable;
use crate::{Codec, Order, Range, Result, Snapshot, Table, Transaction, layout};

/// Place up to which the rows of an environment are removed. The default is the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemovalPlace {
    /// Number of the range.
    number: usize,
    /// Key behind which the range goes on.
    behind: Option<Vec<u8>>,
}

/// What a step has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovalStep {
    /// The last table that it has looked at.
    pub table: Table,
    /// Number of rows that it has looked at.
    pub rows: u64,
    /// Number of rows that it has removed.
    pub removed: u64,
    /// Where the next step begins. `None` at the end.
    pub next: Option<RemovalPlace>,
}

/// Removes rows of an environment from `place` on. Looks at `most` rows at most, and at fewer large ones.
pub fn step(
    transaction: &mut dyn Transaction,
    environment: EnvironmentId,
    place: &RemovalPlace,
    most: usize,
) -> Result<RemovalStep> {
    let (ranges, mut place) = (layout::ranges_of(environment), place.clone());
    let table = ranges.get(place.number).map_or(Table::Tasks, Range::table);
    let mut step = RemovalStep { table, rows: 0, removed: 0, next: None };
    let mut left = Limit::in_transaction(most);
    while let Some(range) = ranges.get(place.number) {
        if left.rows == 0 || left.bytes == 0 {
            step.next = Some(place);
            break;
        }
        let (table, mut range) = (range.table(), range.clone());
        if let Some(behind) = &place.behind {
            range = range.resumed(behind);
        }
        let entries = (table, range.bytes(), Order::Ascending);
        let (codec, mut rows) = (transaction.codec(), Vec::new());
        let next = batch::visit(&*transaction, entries, left.rows, &mut |key, value| {
            rows.push((key.to_vec(), is_of(environment, codec, table, (key, value))));
            left.bytes = left.bytes.saturating_sub(key.len() + value.len());
            if left.bytes > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        left.rows -= rows.len();
        step.table = table;
        step.rows += rows.len() as u64;
        for (key, is_own) in rows {
            if is_own? {
                transaction.delete(table, &key)?;
                step.removed += 1;
            }
        }
        let number = place.number + usize::from(next.is_none());
        place = RemovalPlace { number, behind: next };
    }
    Ok(step)
}

/// Returns a table that has rows of an environment. [Shared](layout::SHARED) tables are not looked at: an
/// environment without other rows adds none to them.
pub fn first_left(snapshot: &dyn Snapshot, environment: EnvironmentId) -> Result<Option<Table>> {
    for range in layout::ranges_of(environment) {
        let table = range.table();
        if !layout::SHARED.contains(&table) && !Batch::read(snapshot, &range, 1)?.rows.is_empty() {
            return Ok(Some(table));
        }
    }
    Ok(None)
}

// An entry of the quarantine that cannot be read belongs to no environment.
fn is_of(
    environment: EnvironmentId,
    codec: Codec<'_>,
    table: Table,
    (key, value): (&[u8], &[u8]),
) -> Result<bool> {
    let owner = match table {
        Table::Quarantine => {
            if_readable(codec.decode::<Quarantined>(key, value))?.map(|entry| entry.environment_id)
        }
        Table::ApiKeys => layout::environment_of(Table::EnvironmentKeys, value),
        _ => layout::environment_of(table, key),
    };
    Ok(owner == Some(environment))
}
