//! Quarantine: a task that cannot be done, because a record cannot be read, leaves its lane, and the
//! others go on.

use domain::ids::{EnvironmentId, QuarantineId};
use domain::job::Detail;
use domain::notification::Notification;
use domain::quarantine::{Quarantined, RequeueRefusal, Unreadable};
use domain::task::{Task, TaskState};
use serde_json::Value;
use store::{Order, Prefix, ReadRecords, Record, Snapshot, Witness, WriteRecords, layout};

use super::DeliveryQueue;
use super::claim::Leased;
use crate::error::Rejection;
use crate::pipeline::apply::Course;
use crate::pipeline::facts::RunFacts;
use crate::resources::{integrations, notifications};
use crate::tx::{Draft, Reading, Tx};
use crate::{Engine, Error, Result, trace};

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
        let first = |snapshot: &dyn Snapshot| {
            Ok(snapshot.readable(&Prefix::of_all().range(), Order::Ascending, limit)?)
        };
        trace::operation("delivery.quarantined", None, || self.engine.read(first))
    }

    /// Puts a task of the quarantine back into the queue, such as after the damaged record was
    /// written anew. The task is due at once. A job that has failed for the damage waits again, and
    /// jobs behind it that have ended stay as they are. Returns `false` if there is no entry with
    /// this id.
    ///
    /// ```
    /// # fn main() -> tidings::Result<()> {
    /// let engine = tidings::Engine::in_memory();
    /// // ... the records are repaired
    /// for entry in engine.delivery().quarantined(100)? {
    ///     if let Err(refused) = engine.delivery().requeue(entry.id) {
    ///         eprintln!("{}: {refused}", entry.key);
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Rejection::NotRequeued`], if the task itself cannot be read, if its notification is gone, or
    /// if its job has ended in another way. [`Error::Store`], if the notification cannot be read.
    pub fn requeue(&self, id: QuarantineId) -> Result<bool> {
        let requeue = |draft: &mut Draft<'_>| {
            let Some(quarantined) = draft.writer.find(&layout::quarantined(id))? else {
                return Ok(false);
            };
            let task = quarantined.readable_task().map_err(refused)?;
            put_back(&mut draft.within(&task.home()), &quarantined, &task)?;
            Ok(true)
        };
        let now = self.engine.now();
        trace::operation("delivery.requeue", None, || self.engine.write(now, requeue))
    }

    /// Removes an entry of the quarantine. What has waited for its task, such as a snoozed message, goes on
    /// with the next [repair](crate::Engine::repair). Returns `false` if there is none with this id.
    ///
    /// # Errors
    ///
    /// [`Error::Store`].
    pub fn discard(&self, id: QuarantineId) -> Result<bool> {
        let remove = |draft: &mut Draft<'_>| {
            // An entry that cannot be read is removed too.
            let key = layout::quarantined(id);
            let is_there = draft.writer.contains(&key)?;
            draft.writer.delete_key(&key)?;
            Ok(is_there)
        };
        let now = self.engine.now();
        trace::operation("delivery.discard", None, || self.engine.write(now, remove))
    }
}

fn refused(reason: RequeueRefusal) -> Error {
    Error::rejected(Rejection::NotRequeued { reason })
}

// Puts a task back that is due at once. Its job waits again if it has failed.
fn put_back(tx: &mut Tx<'_>, quarantined: &Quarantined, task: &Task) -> Result<()> {
    let due_at = tx.now();
    let task = task.with(TaskState::Waiting { due_at, attempts: 0 });
    if tx.contains(&task.key())? {
        return Err(refused(RequeueRefusal::Queued));
    }
    if task.work.notification_id().is_some() {
        let found = notifications::of_work(tx, &task.work)?;
        let before = found.ok_or_else(|| refused(RequeueRefusal::Gone))?;
        let mut course = Course::of(tx, before.clone(), None);
        if let Some((job, status)) = before.requeued(&task.work, due_at).map_err(refused)? {
            course.log(job, Detail::StepQueued, None);
            course.move_job(job, status);
        }
        course.notification.wait_again(&task);
        let after = course.notification;
        tx.replace(&before, &after)?;
    }
    tx.insert(&task)?;
    Ok(tx.remove(quarantined)?)
}

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
