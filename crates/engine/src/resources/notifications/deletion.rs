//! Deletion of notifications, with what goes with them.

use std::slice;

use domain::convert::IntoChecked;
use domain::ids::NotificationId;
use domain::job::Job;
use domain::notification::Notification;
use domain::task::Task;
use domain::time::Timestamp;
use serde_json::json;
use store::{ReadRecords, Step, Table, WriteRecords, layout};

use super::events::{Deletion, Events};
use super::{Notifications, find, missing};
use crate::Result;
use crate::damage::if_readable;
use crate::guarded::guarded;
use crate::resources::removal_guard::RemovalGuard;
use crate::tx::{Tx, View};

impl Notifications<'_> {
    /// Deletes a notification, with its jobs and their logs. Inbox messages stay. Its waiting messages are not sent,
    /// including the message of a closed digest. If the window of its digest is still open, the next event of the
    /// window takes over. Its events in digests are deleted as well. The last notification of a trigger frees its
    /// transaction id.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`](crate::Error::NotFound), if there is none.
    pub fn delete(&self, id: impl IntoChecked<NotificationId>) -> Result<()> {
        self.delete_of(id.into_checked()?)
    }

    fn delete_of(&self, id: NotificationId) -> Result<()> {
        let index = self.scope.engine.activity();
        let look = || {
            self.scope.view(|view| {
                let found = if_readable(find(view, id))?.flatten();
                Events::of(view, found.as_slice())
            })
        };
        let start = (look()?, RemovalGuard::default());
        let mut again =
            |(_, guard): (Events, RemovalGuard)| look().map(|found| Step::More((found, guard)));
        self.scope.write_in_steps_with(
            "notifications.delete",
            id,
            (start, &mut again),
            |tx, (events, guard): &(Events, RemovalGuard)| {
                let notification = find(tx, id)?.ok_or_else(|| missing(id))?;
                let mut guard = guard.clone();
                if !events.are_all_of(&notification)
                    || clear_runs(tx, slice::from_ref(&notification), &mut guard)?
                {
                    return Ok(Step::More((Events::default(), guard)));
                }
                remove_tasks(tx, &notification)?;
                index.delete(tx, &notification)?;
                events.remove(tx)?;
                Ok(Step::Done(()))
            },
        )
    }

    /// Deletes every notification that was created before `time`, by the clock at its creation.
    /// Returns the number of deleted notifications. A host calls it regularly, to limit the age of
    /// the activity list. Their events in digests are deleted with them. The last notification of a
    /// trigger frees its transaction id.
    ///
    /// The deletion takes several transactions. After an interruption, another call continues.
    pub fn delete_before(&self, time: Timestamp) -> Result<u64> {
        let index = self.scope.engine.activity();
        let environment = self.scope.environment_id();
        let start = self.scope.view(|view| {
            let old = index.created_before(view, environment, time)?;
            Deletion::of(old).next(view, time)
        })?;
        let mut next =
            |at: Deletion| self.scope.view(|view| at.clone().next(view, time)).map(Step::More);
        let deleted = self.scope.write_in_steps_with(
            "notifications.delete_before",
            json!({ "time": time }),
            (start, &mut next),
            |tx, at: &Deletion| {
                let (removed, next) = at.first(tx, time)?;
                let mut guard = at.guard.clone();
                if clear_runs(tx, &removed, &mut guard)? {
                    return Ok(Step::More(at.again(guard)));
                }
                index.delete_all(tx, environment, &removed)?;
                at.events.remove(tx)?;
                Ok(if next.old.is_empty() { Step::Done(next.deleted) } else { Step::More(next) })
            },
        )?;
        // After a failure here, the next trigger removes the remainder.
        guarded(&self.scope.engine, environment, |store| index.tend_all(store, environment)).ok();
        Ok(deleted)
    }
}

/// Removes some runs of the triggers of `removed`, which are in the order of their ordinals. Returns `true`
/// if there are more runs to remove before these notifications are deleted.
///
/// # Errors
///
/// Those of [`RemovalGuard::note`], with the first of the runs.
pub(crate) fn clear_runs(
    tx: &mut Tx<'_>,
    removed: &[Notification],
    guard: &mut RemovalGuard,
) -> Result<bool> {
    let environment = tx.environment_id();
    for of_one in removed.chunk_by(|one, next| one.transaction_id == next.transaction_id) {
        let Some(last) = of_one.last() else { continue };
        let of_trigger = |one: &&Notification| one.transaction_id == last.transaction_id;
        let gone = removed.iter().filter(of_trigger).map(|one| one.id.ordinal());
        let gone: Vec<_> = gone.collect();
        let writer = &mut *tx.draft.writer;
        let cleared = activity::clear_runs(writer, environment, &last.transaction_id, &gone)?;
        if let Some(first) = cleared {
            guard.note(Table::Transactions, &first)?;
            return Ok(true);
        }
    }
    Ok(false)
}

// Removes the tasks of the messages and calls of a notification. A window has other events, and a delay that
// ends without its notification does nothing.
fn remove_tasks(tx: &mut Tx<'_>, notification: &Notification) -> Result<()> {
    let waiting = notification.jobs.iter().filter(|job| !job.status.has_ended());
    for id in waiting.flat_map(Job::task_ids) {
        let key = layout::task(tx.environment_id(), id);
        if let Some(task) = store::if_readable(tx.find::<Task>(&key))?.flatten() {
            tx.remove(&task)?;
        }
    }
    Ok(())
}
