//! Records that cannot be read: what goes on without them, and where they are put.

use domain::ids::EnvironmentId;
use domain::quarantine::{Quarantined, Unreadable};
use domain::task::Task;
use serde_json::Value;
use store::{Entry, Range, Record, Referent, Table, WriteRecords, layout};
use uuid::Uuid;

use crate::Result;
use crate::tx::Draft;

/// Returns what was found. Returns `None` if it cannot be read.
pub(crate) fn if_readable<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Err(error) if error.corruption().is_some() => Ok(None),
        found => found.map(Some),
    }
}

/// Puts a record that cannot be read into quarantine. The caller removes it from its table.
pub(crate) fn quarantine(
    draft: &mut Draft<'_>,
    table: Table,
    unreadable: &Unreadable,
) -> Result<()> {
    let environment = layout::environment_of(table, &unreadable.key);
    let environment = environment.unwrap_or_else(|| Uuid::nil().into());
    put(draft, environment, unreadable, None)
}

/// Puts a record that cannot be read into quarantine, with the task that it keeps from being done. The caller
/// removes the task from its table.
pub(crate) fn quarantine_with_task(
    draft: &mut Draft<'_>,
    task: &Task,
    unreadable: &Unreadable,
) -> Result<()> {
    put(draft, task.environment_id, unreadable, Some(task))
}

fn put(
    draft: &mut Draft<'_>,
    environment_id: EnvironmentId,
    unreadable: &Unreadable,
    task: Option<&Task>,
) -> Result<()> {
    let made = (draft.random.id(), draft.now);
    // A task that was read from JSON is JSON again.
    let task = task.map(|task| serde_json::to_value(task).unwrap_or(Value::Null));
    let entry = Quarantined::new(made, environment_id, unreadable, task);
    Ok(draft.writer.insert(&entry)?)
}

/// Takes an entry out of an index that leads to no record with the entry. A record that cannot be read is moved
/// into quarantine.
pub(crate) fn take_out<R: Record>(
    draft: &mut Draft<'_>,
    entry: &Entry<R>,
    index: &Range<R>,
) -> Result<()> {
    match &entry.referent {
        Referent::Unreadable(unreadable) => quarantine(draft, R::TABLE, unreadable)?,
        Referent::Record(_) | Referent::Other(_) | Referent::Missing => {}
    }
    Ok(entry.take_out(draft.writer, index)?)
}
