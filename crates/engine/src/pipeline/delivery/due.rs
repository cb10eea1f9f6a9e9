//! The tasks that are due, and the lanes that they are in.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use domain::task::{Lane, Task, TaskClass, Work};
use domain::time::Timestamp;
use store::{Entry, Order, Range, ReadRecords, Referent, Snapshot, Table, lanes, layout};

use super::bring_forward::bring_forward;
use super::claim::Claimed;
use super::{clock_skew, fairness};
use crate::damage;
use crate::pipeline::sweep;
use crate::tx::Draft;
use crate::{Engine, Result};

/// Adds the tasks of sweeps that environments lack, brings back the tasks that a clock ahead has put off, and
/// brings messages forward whose circuit is closed. Returns `true` if tasks are due, or may be due after another call.
pub(super) fn ensure_tasks(engine: &Engine) -> Result<bool> {
    sweep::ensure(engine)?;
    clock_skew::bring_back(engine)?;
    Ok(bring_forward(engine))
}

/// Returns the time at which the next task is due. Returns `None` if no task waits.
pub(super) fn next(engine: &Engine) -> Result<Option<Timestamp>> {
    if ensure_tasks(engine)? {
        return Ok(Some(engine.now()));
    }
    engine.read_pure(|snapshot| {
        let mut next: Option<Timestamp> = None;
        for class in TaskClass::ALL {
            let lanes = layout::lanes_until(class, Timestamp::MAX);
            let first = snapshot.first_known(&lanes, Order::Ascending, layout::lane_of)?;
            let due_at = first.map(|(_, due_at)| due_at);
            next = next.into_iter().chain(due_at).min();
        }
        Ok(next)
    })
}

/// Returns the time at which the next task is due that is no sweep. Returns `None` if no other task
/// waits.
pub(super) fn next_besides_sweeps(snapshot: &dyn Snapshot) -> Result<Option<Timestamp>> {
    let mut next: Option<Timestamp> = None;
    for class in TaskClass::ALL {
        for (lane, due_at) in lanes_of(snapshot, class, Timestamp::MAX, usize::MAX)?.lanes {
            if next.is_some_and(|next| next <= due_at) {
                break;
            }
            // An environment has one sweep, which is in the lane of tasks without a workflow.
            let range = layout::lane(&lane).range();
            let first = store::index_entries(snapshot, &range, 2, layout::task_of)?;
            let mut others = first.into_iter().filter_map(|entry| match entry.referent {
                Referent::Record(Task { work: Work::Sweep { .. }, .. }) => None,
                Referent::Record(task) => task.state.due_at(),
                Referent::Other(_) | Referent::Unreadable(_) | Referent::Missing => Some(due_at),
            });
            next = next.into_iter().chain(others.next()).min();
        }
    }
    Ok(next)
}

/// The due tasks: one of the first class, if the claim has one, those of a class before those of the next
/// one, and as many of each lane of a class as of the others.
pub(super) fn tasks(
    draft: &mut Draft<'_>,
    limit: usize,
    first: Option<TaskClass>,
    claimed: &mut Claimed,
) -> Result<Vec<Task>> {
    let mut tasks = match first {
        Some(class) => due_of_class(draft, class, limit.min(1), claimed)?,
        None => Vec::new(),
    };
    // A task that was found is not looked for again.
    let found = first.filter(|_| !tasks.is_empty());
    for class in TaskClass::ALL.into_iter().filter(|class| found != Some(*class)) {
        if tasks.len() >= limit {
            break;
        }
        tasks.extend(due_of_class(draft, class, limit - tasks.len(), claimed)?);
    }
    Ok(tasks)
}

// The due tasks of a class. Entries that lead to no lane are removed.
fn due_of_class(
    draft: &mut Draft<'_>,
    class: TaskClass,
    limit: usize,
    claimed: &mut Claimed,
) -> Result<Vec<Task>> {
    let found = lanes_of(draft.writer, class, draft.now, limit.max(fairness::LANES))?;
    for entry in &found.unreadable {
        draft.writer.delete(Table::Lanes, entry)?;
        claimed.took_out(entry);
    }
    let lanes = draft.engine.parts.scheduler.in_turn(found.lanes, limit);
    tasks_in(draft, &lanes, limit, claimed)
}

/// The due tasks of lanes, as many of each of them as of the others.
pub(super) fn tasks_in(
    draft: &mut Draft<'_>,
    lanes: &[(Lane, Timestamp)],
    limit: usize,
    claimed: &mut Claimed,
) -> Result<Vec<Task>> {
    lanes::prefetch(&*draft.writer, lanes.iter().map(|(lane, _)| lane))?;
    let mut tasks = Vec::new();
    let mut rest = lanes.len();
    let mut seen = BTreeSet::new();
    for &(lane, due_at) in lanes {
        if tasks.len() >= limit {
            break;
        }
        let share = limit.saturating_sub(tasks.len()).div_ceil(rest);
        rest -= 1;
        let mut first = None;
        // After damage, a lane may have two entries.
        if seen.insert(lane) {
            let found = due_of(draft, (&lane, due_at), share, claimed)?;
            first = found.first().and_then(|task| task.state.due_at());
            tasks.extend(found);
        }
        lanes::mend(draft.writer, &lane, due_at, first)?;
    }
    Ok(tasks)
}

// The first `limit` due tasks of a lane, without those that cannot be read. The first one is due at `first`, unless
// another process has taken it since.
fn due_of(
    draft: &mut Draft<'_>,
    (lane, first): (&Lane, Timestamp),
    limit: usize,
    claimed: &mut Claimed,
) -> Result<Vec<Task>> {
    // A scan passes the entries of earlier claims one by one, as long as they are in the file. The first claim
    // of a lane passes them, and finds what damage has put in front.
    if draft.engine.parts.scheduler.has_served(lane) {
        let range = layout::due_between(lane, first, draft.now);
        let tasks = due_within(draft, &range, limit, claimed)?;
        if !tasks.is_empty() {
            return Ok(tasks);
        }
    }
    due_within(draft, &layout::due_until(lane, draft.now), limit, claimed)
}

fn due_within(
    draft: &mut Draft<'_>,
    range: &Range<Task>,
    limit: usize,
    claimed: &mut Claimed,
) -> Result<Vec<Task>> {
    let mut tasks = Vec::new();
    for entry in store::index_entries(draft.writer, range, limit, layout::task_of)? {
        claimed.first.get_or_insert_with(|| entry.key.clone());
        if !matches!(entry.referent, Referent::Record(_)) {
            take_out(draft, &entry, range)?;
            claimed.took_out(&entry.key);
        }
        tasks.extend(entry.record());
    }
    Ok(tasks)
}

/// Takes an entry out of an index of tasks that leads to no task with the entry. A task with other entries counts
/// in its lane.
pub(super) fn take_out(
    draft: &mut Draft<'_>,
    entry: &Entry<Task>,
    index: &Range<Task>,
) -> Result<()> {
    damage::take_out(draft, entry, index)?;
    match &entry.referent {
        Referent::Other(task) => Ok(lanes::move_lane(draft.writer, &task.lane())?),
        Referent::Record(_) | Referent::Unreadable(_) | Referent::Missing => Ok(()),
    }
}

/// Lanes of a class with a task that is due, and entries that lead to no lane.
#[derive(Default)]
pub(super) struct Lanes {
    pub(super) lanes: Vec<(Lane, Timestamp)>,
    pub(super) unreadable: Vec<Vec<u8>>,
}

/// The first `limit` lanes of a class with a task that is due at `now`.
pub(super) fn lanes_of(
    snapshot: &(impl Snapshot + ?Sized),
    class: TaskClass,
    now: Timestamp,
    limit: usize,
) -> Result<Lanes> {
    let mut found = Lanes::default();
    let range = layout::lanes_until(class, now);
    snapshot.scan_bytes(&range, Order::Ascending, None, &mut |entry, _| {
        match layout::lane_of(entry) {
            Some(lane) => found.lanes.push(lane),
            None => found.unreadable.push(entry.to_vec()),
        }
        let is_enough = found.lanes.len().max(found.unreadable.len()) >= limit;
        if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(found)
}

/// The first `limit` lanes of a class whose workflows are paused.
pub(super) fn held_lanes_of(
    snapshot: &(impl Snapshot + ?Sized),
    class: TaskClass,
    limit: usize,
) -> Result<Vec<Lane>> {
    let mut lanes = Vec::new();
    let range = layout::held_lanes(class);
    snapshot.scan_bytes(&range, Order::Ascending, Some(limit), &mut |entry, _| {
        lanes.extend(layout::held_lane_of(entry));
        ControlFlow::Continue(())
    })?;
    Ok(lanes)
}
