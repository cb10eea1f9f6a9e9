//! Quarantine: a task that cannot be done, because a record cannot be read, leaves its lane, and the
//! others go on.

use domain::ids::{EnvironmentId, QuarantineId};
use domain::quarantine::{Quarantined, Unreadable};
use domain::task::Task;
use serde_json::Value;
use store::{Order, Prefix, ReadRecords, Witness, WriteRecords, layout};

use super::DeliveryQueue;
use super::claim::Leased;
use crate::pipeline::facts::RunFacts;
use crate::resources::notifications;
use crate::tx::{Draft, Reading, Tx};
use crate::{Engine, Error, Result};

impl DeliveryQueue<'_> {
    /// Returns the first `limit` tasks of all environments that were taken out of the queue, because
    /// a stored record cannot be read. The oldest comes first.
    ///
    /// ```
    /// # fn main() -> tidings::Result<()> {
    /// let engine = tidings::Engine::in_memory();
    /// for entry in engine.delivery().quarantined(100)? {
    ///     eprintln!("{} {}: {}", entry.table, entry.key, entry.reason);
    ///     engine.delivery().discard(entry.id)?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Store`].
    pub fn quarantined(&self, limit: usize) -> Result<Vec<Quarantined>> {
        self.engine.read(|snapshot| {
            Ok(snapshot.first(&Prefix::of_all().range(), Order::Ascending, limit)?)
        })
    }

    /// Removes an entry of the quarantine. Returns `false` if there is none with this id.
    ///
    /// # Errors
    ///
    /// [`Error::Store`].
    pub fn discard(&self, id: QuarantineId) -> Result<bool> {
        self.engine.write(self.engine.now(), |draft| {
            // An entry that cannot be read is removed too.
            let key = layout::quarantined(id);
            let is_there = draft.writer.contains(&key)?;
            draft.writer.delete_key(&key)?;
            Ok(is_there)
        })
    }
}

/// Puts a task into quarantine, which `unreadable` keeps from being done. `task` is `None` if the
/// task itself cannot be read.
pub(super) fn put(
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

/// Returns what was found. Returns `None` if it cannot be read.
pub(super) fn if_readable<T>(found: Result<Option<T>>) -> Result<Option<T>> {
    match found {
        Err(Error::Store(store::Error::Corrupt { .. })) => Ok(None),
        found => found,
    }
}

/// Returns the record that keeps a task from being done with `error`. Returns `None` if the error is
/// not about damage.
pub(super) fn cause(engine: &Engine, leased: &Leased, error: &Error) -> Result<Option<Unreadable>> {
    let Error::Store(store::Error::Corrupt { table, source }) = error else { return Ok(None) };
    let home = leased.task.home();
    let found = engine.read(|snapshot| {
        let witness = Witness::new(snapshot);
        let view = Reading { engine, home: &home, snapshot: &witness };
        let found = notifications::of_work(&view, &leased.task.work);
        let read = found
            .and_then(|found| found.map_or(Ok(()), |found| RunFacts::of(&view, &found).map(drop)));
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
