//! A task that cannot be done, because a record cannot be read, leaves its lane for the quarantine, and
//! the others go on.

use domain::ids::EnvironmentId;
use domain::notification::Notification;
use domain::quarantine::{Quarantined, Unreadable};
use domain::task::Task;
use serde_json::Value;
use store::{Witness, WriteRecords};

use super::claim::Leased;
use crate::pipeline::facts::RunFacts;
use crate::resources::{integrations, notifications};
use crate::tx::{Draft, Reading, Tx};
use crate::{Engine, Error, Result};

/// Puts a task into quarantine, which `unreadable` keeps from being done. `task` is `None` if the
/// task itself cannot be read.
pub(crate) fn put(
    draft: &mut Draft<'_>,
    environment_id: EnvironmentId,
    unreadable: &Unreadable,
    task: Option<&Task>,
) -> Result<()> {
    let made = (draft.made.id(), draft.now);
    // A task that was read from JSON is JSON again.
    let task = task.map(|task| serde_json::to_value(task).unwrap_or(Value::Null));
    let entry = Quarantined::new(made, environment_id, unreadable, task);
    Ok(draft.writer.insert(&entry)?)
}

/// Moves a task into quarantine that `unreadable` keeps from being done.
pub(super) fn move_task(tx: &mut Tx<'_>, task: &Task, unreadable: &Unreadable) -> Result<()> {
    tx.remove(task)?;
    put(&mut tx.draft, task.environment_id, unreadable, Some(task))
}

/// Returns the record that keeps a task from being done with `error`. Returns `None` if the error is
/// not about damage.
pub(super) fn cause(engine: &Engine, leased: &Leased, error: &Error) -> Result<Option<Unreadable>> {
    let Error::Store(store::Error::Corrupt { table, source }) = error else { return Ok(None) };
    let (home, now) = (leased.task.home(), leased.now(engine));
    let found = engine.read(|snapshot| {
        let witness = Witness::new(snapshot);
        let view = Reading { engine, home: &home, snapshot: &witness };
        let found = notifications::of_work(&view, &leased.task.work);
        let facts = |found: Notification| {
            RunFacts::of(&view, &found, found.next_job(), now)?;
            integrations::check_readable(&view)
        };
        let read = found.and_then(|found| found.map_or(Ok(()), facts));
        Ok(match read {
            Err(Error::Store(error)) => witness.unreadable(&error),
            Ok(()) | Err(_) => None,
        })
    })?;
    // It is in a record that only other work reads.
    let other =
        || Unreadable { table, key: Vec::new(), value: Vec::new(), reason: source.to_string() };
    Ok(Some(found.unwrap_or_else(other)))
}
