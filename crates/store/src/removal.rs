//! Removal of all rows of an environment, in steps.
//!
//! Rows are removed by their keys, so those that cannot be read go as well. The record of the
//! environment stays, so that an interrupted removal can be found and goes on.

use domain::ids::EnvironmentId;
use domain::quarantine::Quarantined;

use crate::batch::{Batch, Row};
use crate::record::if_readable;
use crate::{Codec, Range, Result, Snapshot, Table, Transaction, layout};

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

/// Removes rows of an environment from `place` on. Looks at `most` rows at most.
pub fn step(
    transaction: &mut dyn Transaction,
    environment: EnvironmentId,
    place: &RemovalPlace,
    most: usize,
) -> Result<RemovalStep> {
    let (ranges, mut place) = (layout::ranges_of(environment), place.clone());
    let table = ranges.get(place.number).map_or(Table::Tasks, Range::table);
    let mut step = RemovalStep { table, rows: 0, removed: 0, next: None };
    let mut left = most;
    while let Some(range) = ranges.get(place.number) {
        if left == 0 {
            step.next = Some(place);
            break;
        }
        let (table, mut range) = (range.table(), range.clone());
        if let Some(behind) = &place.behind {
            range = range.resumed(behind);
        }
        let Batch { rows, next } = Batch::read(&*transaction, &range, left)?;
        for row in &rows {
            if is_of(environment, transaction.codec(), table, row)? {
                transaction.delete(table, &row.key)?;
                step.removed += 1;
            }
        }
        step.table = table;
        step.rows += rows.len() as u64;
        let number = place.number + usize::from(next.is_none());
        place = RemovalPlace { number, behind: next };
        left -= rows.len();
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
    Row { key, value }: &Row,
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
