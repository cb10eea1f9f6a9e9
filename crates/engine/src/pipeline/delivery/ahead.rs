//! Tasks that a clock has put off that was ahead by more than a day. They are brought back when the
//! engine starts, and when its clock goes back by more than that.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use domain::environment::{Environment, Home};
use domain::task::{CLOCK_DIFFERENCE, Task};
use domain::time::Timestamp;
use store::{Order, Prefix, ReadRecords, Record, WriteRecords, layout};

use crate::damage::if_readable;
use crate::pipeline::sweep::{Batch, Room};
use crate::resources::notifications;
use crate::tx::{Reading, Tx};
use crate::{Engine, Result};

/// Largest number of tasks that one transaction brings back.
const AT_A_TIME: usize = 128;

/// The latest time at which the engine has looked at its queue.
#[derive(Debug)]
pub(crate) struct LatestLook(AtomicI64);

impl Default for LatestLook {
    fn default() -> Self {
        Self(AtomicI64::new(i64::MAX))
    }
}

/// Brings back the tasks of all environments, unless the clock goes on from the last look.
pub(super) fn bring_back(engine: &Engine) -> Result<()> {
    // A rehearsal does not see the tasks that wait.
    if engine.parts.findings.is_some() {
        return Ok(());
    }
    let (now, latest) = (engine.now(), &engine.parts.latest_look.0);
    if now.after(CLOCK_DIFFERENCE).as_millis() >= latest.load(Ordering::Relaxed) {
        latest.fetch_max(now.as_millis(), Ordering::Relaxed);
        return Ok(());
    }
    let all = Prefix::<Environment>::of_all().range();
    let environments: Vec<Environment> =
        engine.read(|snapshot| Ok(snapshot.readable(&all, Order::Ascending, usize::MAX)?))?;
    // A clock that is behind the creation of an environment is wrong itself.
    for environment in environments.iter().filter(|environment| environment.created_at <= now) {
        let organization_id = environment.organization_id.clone();
        let home = Home { organization_id, environment_id: environment.id };
        let mut after = Vec::new();
        while let Some(last) = bring_some_back(engine, &home, now, &after)? {
            after = last;
        }
    }
    latest.store(now.as_millis(), Ordering::Relaxed);
    Ok(())
}

// Looks at the next tasks behind a key: those whose ids were made under the clock that was ahead.
// Returns the key of the last one. Returns `None` at the end.
fn bring_some_back(
    engine: &Engine,
    home: &Home,
    now: Timestamp,
    after: &[u8],
) -> Result<Option<Vec<u8>>> {
    let made_later = layout::tasks_since(home.environment_id, now.after(CLOCK_DIFFERENCE));
    let range = made_later.resumed(after);
    let Batch { rows, is_last } = engine.read(|snapshot| {
        let mut left = Room { rows: AT_A_TIME, size: usize::MAX };
        Batch::<Task>::of(&Reading { engine, home, snapshot }, &range, &mut left)
    })?;
    // A damaged table may show a place that was passed.
    let last = rows.last().map(|(key, _)| key.clone());
    let last = last.filter(|last| !is_last && last.as_slice() > after);
    let tasks: Vec<_> = rows.into_iter().filter_map(|(_, task)| task).collect();
    let lease = engine.parts.lease;
    if tasks.iter().any(|task| task.brought_back(now, lease).is_some()) {
        engine.write_in(home, now, |tx| {
            tasks.iter().try_for_each(|task| bring_one_back(tx, task, lease))
        })?;
    }
    Ok(last)
}

// Brings back a task, unless another process has done so meanwhile, with the jobs that it is about.
fn bring_one_back(tx: &mut Tx<'_>, task: &Task, lease: Duration) -> Result<()> {
    let there = store::if_readable(tx.find::<Task>(&task.key()))?.flatten();
    let after = task.brought_back(tx.now(), lease);
    let Some(after) = after.filter(|_| there.as_ref() == Some(task)) else { return Ok(()) };
    tx.replace(task, &after)?;
    // What cannot be read is found out when the task is done.
    if let Some(before) = if_readable(notifications::of_work(tx, &task.work))?.flatten() {
        let due_at = after.state.due_at().unwrap_or(tx.now());
        let after = before.brought_back(tx.now(), due_at);
        if after != before {
            tx.replace(&before, &after)?;
        }
    }
    Ok(())
}
