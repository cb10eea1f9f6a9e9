//! The tasks of sweeps: each environment has one, if the engine has a policy.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicI64, Ordering};

use domain::environment::{Environment, Home};
use domain::retention::{Retention, SweepPace};
use domain::task::{Task, Work};
use domain::time::Timestamp;
use store::{Order, Prefix, ReadRecords, Record, Snapshot, WriteRecords, layout};

use super::MAX_REMOVED;
use crate::resources::environments;
use crate::tx::Draft;
use crate::{Engine, Result};

/// What is known of the tasks of sweeps.
#[derive(Debug)]
pub(crate) struct SweepTasks {
    // The last time at which every environment had its task. Another engine on the store may have no
    // policy: it ends sweeps, and its environments have none.
    seen_at: AtomicI64,
}

impl Default for SweepTasks {
    fn default() -> Self {
        Self { seen_at: AtomicI64::new(Timestamp::MIN.as_millis()) }
    }
}

impl SweepTasks {
    // Returns `true` if every environment had its task within the time from one sweep to the next.
    fn are_there(&self, now: Timestamp) -> bool {
        let seen_at = Timestamp::from_millis(self.seen_at.load(Ordering::Acquire));
        seen_at <= now && now.since(seen_at) < Retention::INTERVAL
    }
}

/// Sees to it that each environment has its task, if the engine has a policy.
pub(crate) fn ensure(engine: &Engine) -> Result<()> {
    let sweeps = &engine.parts.sweeps;
    if engine.parts.settings.retention.keeps_everything() {
        return Ok(());
    }
    let now = engine.now();
    if sweeps.are_there(now) {
        return Ok(());
    }
    let lacking = engine.read(|snapshot| {
        let mut lacking = Vec::new();
        for home in homes(snapshot)? {
            let is_there = environments::is_there(engine, snapshot, &home)?;
            if is_there && lacks_task(snapshot, &home, now)?.is_some() {
                lacking.push(home);
            }
        }
        Ok(lacking)
    })?;
    for some in lacking.chunks(MAX_REMOVED) {
        engine.write(now, |draft| {
            for home in some {
                if environments::is_there(engine, &*draft.writer, home)? {
                    add(draft, home)?;
                }
            }
            Ok(())
        })?;
    }
    sweeps.seen_at.store(now.as_millis(), Ordering::Release);
    Ok(())
}

// The environments, also those whose records cannot be read.
fn homes(snapshot: &dyn Snapshot) -> store::Result<Vec<Home>> {
    let mut homes = Vec::new();
    let all = Prefix::<Environment>::of_all().range();
    snapshot.scan_bytes(&all, Order::Ascending, None, &mut |key, _| {
        homes.extend(layout::home_of(key));
        ControlFlow::Continue(())
    })?;
    Ok(homes)
}

/// Adds the task of an environment, if the engine has a policy.
pub(crate) fn add(draft: &mut Draft<'_>, home: &Home) -> Result<()> {
    if draft.engine.parts.settings.retention.keeps_everything() {
        return Ok(());
    }
    match lacks_task(&*draft.writer, home, draft.now)? {
        Some((Some(there), task)) => Ok(draft.writer.replace(&there, &task)?),
        Some((None, task)) => Ok(draft.writer.insert(&task)?),
        None => Ok(()),
    }
}

// The task that an environment lacks, and the one in its place. One that cannot be read is taken out of the
// queue when it is due.
fn lacks_task(
    snapshot: &dyn Snapshot,
    home: &Home,
    now: Timestamp,
) -> store::Result<Option<(Option<Task>, Task)>> {
    let task = Task::sweep(home, now, SweepPace::default());
    let Some(there) = store::if_readable(snapshot.find::<Task>(&task.key()))? else {
        return Ok(None);
    };
    let task = match there.as_ref().map(|there| &there.work) {
        Some(Work::Sweep { pace, .. }) => Task::sweep(home, now, *pace),
        Some(_) | None => task,
    };
    // A clock that was ahead has put it off.
    let latest = Some(now.after(Retention::INTERVAL));
    let is_right = there.as_ref().is_some_and(|there| there.state.due_at() <= latest);
    Ok((!is_right).then_some((there, task)))
}
