//! Claims: due tasks are leased, from all lanes in turn.

use std::ops::ControlFlow;

use domain::task::{Claim, Lane, Task, TaskClass, TaskState};
use domain::time::Timestamp;
use store::{Order, ReadRecords, Snapshot, Table, WriteRecords, lanes, layout};

use crate::tx::Draft;
use crate::{Engine, Error, Result};

/// A task that is leased for an attempt.
#[derive(Debug)]
pub(super) struct Leased {
    pub(super) task: Task,
    /// Number of the attempt, from 1.
    pub(super) attempt: u32,
    /// Time of the claim.
    pub(super) since: Timestamp,
    pub(super) until: Timestamp,
    pub(super) kind: LeaseKind,
}

/// What is known about the attempt before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeaseKind {
    /// There was none, or its outcome is known.
    Attempt,
    /// Its outcome is unknown.
    Repeat,
    /// Its outcome is unknown, and it was the last one.
    GiveUp,
}

/// Leases at most `limit` of the tasks that are due. A task whose last attempt has no outcome is
/// leased alone: it may end the process, and the attempts of others would count.
pub(super) fn claim(engine: &Engine, limit: usize) -> Result<Vec<Leased>> {
    engine.write(engine.now(), |draft| {
        let mut claimed: Vec<Leased> = Vec::new();
        for task in due(draft, limit)? {
            let alone = task.state.is_leased();
            if alone && !claimed.is_empty() {
                break;
            }
            claimed.push(lease(draft, &task)?);
            if alone {
                break;
            }
        }
        Ok(claimed)
    })
}

/// Returns the time at which the next task is due. Returns `None` if no task waits.
pub(super) fn next_due(engine: &Engine) -> Result<Option<Timestamp>> {
    engine.read(|snapshot| {
        let mut next: Option<Timestamp> = None;
        for class in TaskClass::ALL {
            let first = lanes_of(snapshot, class, Timestamp::MAX, 1)?;
            let due_at = first.first().map(|(_, due_at)| *due_at);
            next = next.into_iter().chain(due_at).min();
        }
        Ok(next)
    })
}

/// The error of a task that is still due after its claim.
pub(super) fn not_claimed() -> Error {
    corrupt("a claimed task is still due")
}

fn corrupt(what: &'static str) -> Error {
    let (table, source) = (Table::Due.name(), what.into());
    store::Error::Corrupt { table, source }.into()
}

// The due tasks: those of a class before those of the next one, and as many of each lane of a class
// as of the others.
fn due(draft: &mut Draft<'_>, limit: usize) -> Result<Vec<Task>> {
    let now = draft.now;
    let mut tasks = Vec::new();
    for class in TaskClass::ALL {
        let lanes = lanes_of(draft.writer, class, now, limit - tasks.len())?;
        let mut rest = lanes.len();
        for (lane, _) in lanes {
            let share = (limit - tasks.len()).div_ceil(rest);
            rest -= 1;
            let of_lane =
                draft.writer.first(&layout::due_until(&lane, now), Order::Ascending, share)?;
            if of_lane.is_empty() {
                lanes::move_lane(draft.writer, &lane)?;
            }
            tasks.extend(of_lane);
        }
        if tasks.len() >= limit {
            break;
        }
    }
    Ok(tasks)
}

// The first `limit` lanes of a class with a task that is due at `now`.
fn lanes_of(
    snapshot: &(impl Snapshot + ?Sized),
    class: TaskClass,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<(Lane, Timestamp)>> {
    let mut lanes = Some(Vec::new());
    let range = layout::lanes_until(class, now);
    snapshot.scan_bytes(&range, Order::Ascending, Some(limit), &mut |entry, _| {
        lanes = lanes.take().zip(layout::lane_of(entry)).map(|(mut lanes, lane)| {
            lanes.push(lane);
            lanes
        });
        if lanes.is_some() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    lanes.ok_or_else(|| corrupt("an entry leads to no lane"))
}

fn lease(draft: &mut Draft<'_>, before: &Task) -> Result<Leased> {
    let parts = &draft.engine.parts;
    let claim = before.state.claim(&parts.retry, draft.now);
    let (attempt, kind) = match claim.ok_or_else(|| corrupt("a task is not due"))? {
        Claim::Attempt(attempt) => (attempt, LeaseKind::Attempt),
        Claim::Repeat(attempt) => (attempt, LeaseKind::Repeat),
        Claim::GiveUp(attempt) => (attempt, LeaseKind::GiveUp),
    };
    let since = draft.now;
    let until = since.after(parts.lease);
    let task = before.with(TaskState::Leased { until, attempts: attempt });
    draft.writer.replace(before, &task)?;
    Ok(Leased { task, attempt, since, until, kind })
}
