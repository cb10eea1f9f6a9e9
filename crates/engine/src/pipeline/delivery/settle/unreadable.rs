//! Settlement of work that a record keeps from being done: its task goes into quarantine.

use domain::job::Detail;
use domain::quarantine::Unreadable;
use domain::task::{Task, Work};
use domain::time::Timestamp;

use super::Settled;
use crate::Result;
use crate::damage::if_readable;
use crate::pipeline::delivery::lease::Leased;
use crate::pipeline::delivery::quarantine;
use crate::pipeline::facts::workflow_of;
use crate::pipeline::live_events::LiveEvents;
use crate::pipeline::notification_tx::NotificationTx;
use crate::resources::notifications;
use crate::tx::Tx;

/// Puts a task into quarantine. Its job fails, if the notification can be read. The jobs behind a window
/// wait until its end is put back or discarded: they would end with a digest that fails, and an event that
/// goes on for the others would find none.
pub(super) fn settle(
    tx: &mut Tx<'_>,
    leased: &Leased,
    task: &Task,
    unreadable: &Unreadable,
) -> Result<Settled> {
    quarantine::move_task(tx, task, unreadable)?;
    if !matches!(task.work, Work::Close { .. }) {
        fail(tx, task, leased.since, unreadable.table)?;
    }
    Ok(Settled::Quarantined)
}

/// Ends the jobs behind a window whose end is discarded, for a damaged record of this table. Does nothing if
/// the task has other work.
pub(crate) fn end_window(tx: &mut Tx<'_>, task: &Task, table: &str) -> Result<()> {
    let now = tx.now();
    if matches!(task.work, Work::Close { .. }) { fail(tx, task, now, table) } else { Ok(()) }
}

// Fails the job of a task that was claimed at this time, if its notifications can be read.
fn fail(tx: &mut Tx<'_>, task: &Task, claimed_at: Timestamp, table: &str) -> Result<()> {
    // The end of a window ends the jobs of the notification that has waited for it, too.
    let Some(waiting) = if_readable(notifications::of_work(tx, &task.work))? else {
        return Ok(());
    };
    let live_events = LiveEvents::bounded(tx.now());
    let first = if_readable(live_events.notification_of(tx, &task.work))?.flatten();
    let found = match first {
        Some(first) => if_readable(notifications::find(tx, first))?.flatten(),
        None => waiting,
    };
    let Some(before) = found else { return Ok(()) };
    let workflow = if_readable(workflow_of(tx, &before))?.flatten();
    let mut notification_tx = NotificationTx::of(tx, before.clone(), workflow.as_deref());
    notification_tx.end_delay(task, claimed_at);
    notification_tx.carry_given_up(task)?;
    if let Some(job) = task.work.job_in(&notification_tx.notification) {
        notification_tx.log(job, Detail::RecordUnreadable, Some(table.into()));
        notification_tx.end_failed(job, task.send_id())?;
    }
    notification_tx.store_over(&before).map(drop)
}
