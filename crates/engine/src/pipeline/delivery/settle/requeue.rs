//! Tasks that are due again without an attempt that counts.

use domain::task::Task;
use domain::time::Timestamp;
use store::WriteRecords;

use crate::Result;
use crate::pipeline::delivery::clock_skew;
use crate::pipeline::delivery::lease::Leased;
use crate::tx::Tx;

/// Gives a task back that was not attempted. Its attempt does not count. The task is due at `due_at`, or at the
/// present time if the clock has gone back since. A delay that was set under the right clock keeps its end if
/// that of the claim was ahead.
pub(super) fn unused(
    tx: &mut Tx<'_>,
    leased: &Leased,
    task: &Task,
    due_at: Timestamp,
) -> Result<()> {
    if leased.is_of_clock_ahead(tx.now()) {
        return clock_skew::give_back(tx, leased, task);
    }
    let due_at = due_at.min(tx.now());
    undone(tx, leased, task, due_at)
}

/// Undoes the claim of a task, which is due at `due_at`. A call that was stored and not made has no unknown
/// outcome.
pub(super) fn undone(
    tx: &mut Tx<'_>,
    leased: &Leased,
    task: &Task,
    due_at: Timestamp,
) -> Result<()> {
    let Some(state) = task.state.undone(leased.claim, due_at) else { return Ok(()) };
    Ok(tx.replace(task, &task.with(state).uncalled(&leased.task))?)
}

/// Makes a task due at `due_at`. Its attempt does not count.
pub(super) fn given_back(
    tx: &mut Tx<'_>,
    leased: &Leased,
    task: &Task,
    due_at: Timestamp,
) -> Result<()> {
    let Some(state) = task.state.given_back(leased.attempt(), due_at) else { return Ok(()) };
    Ok(tx.replace(task, &task.with(state))?)
}
