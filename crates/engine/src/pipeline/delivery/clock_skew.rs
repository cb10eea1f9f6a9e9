//! Tasks whose due times were set by a clock that was ahead by more than a day. Their due times are computed
//! anew when the engine starts, and when its clock goes back by more than that.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicI64, Ordering};

use domain::environment::{Environment, Home};
use domain::ids::{EnvironmentId, NotificationId};
use domain::notification::Notification;
use domain::task::{Lane, Task, TaskClass};
use domain::time::{MAX_CLOCK_SKEW, Timestamp};
use store::{Order, Prefix, ReadRecords, Record, Snapshot, WriteRecords, layout};

use super::due::held_lanes_of;
use super::lease::Leased;
use crate::damage::if_readable;
use crate::pipeline::row_batch::{RowBatch, RowBudget};
use crate::resources::notifications;
use crate::tx::{MAX_TRANSACTION_CONTENT, Reading, Tx, View};
use crate::{Engine, Result};

/// Largest number of tasks that one transaction brings back.
const AT_A_TIME: usize = 128;

/// The latest time at which the engine has scanned its queue, or written.
#[derive(Debug)]
pub(crate) struct ClockWatermark {
    latest: AtomicI64,
    /// Least creation of an environment that was passed over, since the clock was behind it.
    passed_over: AtomicI64,
}

/// Before the first scan, and if no environment was passed over.
const NEVER: i64 = i64::MAX;

impl Default for ClockWatermark {
    fn default() -> Self {
        Self { latest: AtomicI64::new(NEVER), passed_over: AtomicI64::new(NEVER) }
    }
}

impl ClockWatermark {
    /// Notes the time of a transaction that has ended. A scan that has begun meanwhile may have missed
    /// what it wrote, and is followed by another one if the time was ahead.
    pub(crate) fn note(&self, now: Timestamp) {
        self.latest.fetch_max(now.as_millis(), Ordering::AcqRel);
    }

    // Begins a scan, unless the clock goes on from the latest time and has reached no environment that was
    // passed over, or another thread has begun one. The clock is read after the latest time, which another
    // thread may have noted meanwhile.
    fn begin_scan(&self, now: impl Fn() -> Timestamp) -> Option<(Timestamp, SkewScan<'_>)> {
        let latest = self.latest.load(Ordering::Acquire);
        let passed_over = self.passed_over.load(Ordering::Acquire);
        let now = now();
        let goes_on = now.after(MAX_CLOCK_SKEW).as_millis() >= latest;
        let (place, before, after) = if goes_on {
            self.note(now);
            (&self.passed_over, passed_over, NEVER)
        } else {
            (&self.latest, latest, now.as_millis())
        };
        if goes_on && now.as_millis() < passed_over {
            return None;
        }
        let (begun, not) = (Ordering::AcqRel, Ordering::Relaxed);
        let has_begun = place.compare_exchange(before, after, begun, not).is_ok();
        let is_first = goes_on || latest == NEVER;
        has_begun.then_some((now, SkewScan { of: self, latest, passed_over, is_first }))
    }
}

/// A scan of all tasks. If it does not come to its end, another one follows.
struct SkewScan<'l> {
    of: &'l ClockWatermark,
    /// What is noted at its end.
    latest: i64,
    passed_over: i64,
    /// `true` if the engine has not scanned the environments before.
    is_first: bool,
}

impl SkewScan<'_> {
    fn end(mut self, passed_over: Option<Timestamp>) {
        self.latest = i64::MIN;
        self.passed_over = passed_over.map_or(NEVER, Timestamp::as_millis);
    }
}

impl Drop for SkewScan<'_> {
    fn drop(&mut self) {
        self.of.latest.fetch_max(self.latest, Ordering::AcqRel);
        self.of.passed_over.fetch_min(self.passed_over, Ordering::AcqRel);
    }
}

/// Brings back the tasks of all environments, unless the clock goes on from the latest time.
pub(super) fn bring_back(engine: &Engine) -> Result<()> {
    // A rehearsal does not see the tasks that wait.
    if engine.parts.is_rehearsal() {
        return Ok(());
    }
    let Some((now, scan)) = engine.parts.clock_watermark.begin_scan(|| engine.now()) else {
        return Ok(());
    };
    let all = Prefix::<Environment>::of_all().range();
    let (environments, lanes) = engine.read(|snapshot| {
        let environments = snapshot.readable(&all, Order::Ascending, usize::MAX)?;
        Ok((environments, if scan.is_first { lanes(snapshot)? } else { HashMap::new() }))
    })?;
    let mut passed_over: Option<Timestamp> = None;
    for environment in &environments {
        // A clock that is behind the creation of an environment is wrong itself.
        if environment.created_at > now {
            passed_over = passed_over.into_iter().chain([environment.created_at]).min();
            continue;
        }
        let home = environment.home();
        let lanes = lanes.get(&environment.id).map(Vec::as_slice).unwrap_or_default();
        let scans_all = !scan.is_first || has_delayed(engine, &home, lanes, now)?;
        let made_since = if scans_all { Timestamp::MIN } else { now.after(MAX_CLOCK_SKEW) };
        let mut after = Vec::new();
        while let Some(last) = bring_some_back(engine, &home, (now, made_since), &after)? {
            after = last;
        }
    }
    scan.end(passed_over);
    Ok(())
}

// Returns `true` if a clock that was ahead has put off a task that was made before. An engine that
// starts does not scan every task: the last ones of each lane are likely to be those.
fn has_delayed(engine: &Engine, home: &Home, lanes: &[Lane], now: Timestamp) -> Result<bool> {
    engine.read(|snapshot| {
        let view = Reading { engine, home, snapshot };
        for lane in lanes {
            let late = layout::due_behind(lane, now.after(MAX_CLOCK_SKEW));
            let tasks: Vec<Task> = view.readable(&late, Order::Descending, AT_A_TIME)?;
            if !put_off(&view, tasks, now)?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    })
}

fn lanes(snapshot: &dyn Snapshot) -> Result<HashMap<EnvironmentId, Vec<Lane>>> {
    let mut lanes: HashMap<_, Vec<_>> = HashMap::new();
    for class in TaskClass::ALL {
        let all = layout::lanes_until(class, Timestamp::MAX);
        snapshot.scan_bytes(&all, Order::Ascending, None, &mut |key, _| {
            if let Some((lane, _)) = layout::lane_of(key) {
                lanes.entry(lane.environment_id).or_default().push(lane);
            }
            ControlFlow::Continue(())
        })?;
        // The workflows of these are paused.
        for lane in held_lanes_of(snapshot, class, usize::MAX)? {
            lanes.entry(lane.environment_id).or_default().push(lane);
        }
    }
    Ok(lanes)
}

// Brings back those of the next tasks behind a key that were made at `made_since` or later. Returns the
// key of the last one. Returns `None` at the end.
fn bring_some_back(
    engine: &Engine,
    home: &Home,
    (now, made_since): (Timestamp, Timestamp),
    after: &[u8],
) -> Result<Option<Vec<u8>>> {
    let made_later = layout::tasks_from(home.environment_id, made_since);
    let range = made_later.resumed(after);
    let (tasks, last) = engine.read(|snapshot| {
        let view = Reading { engine, home, snapshot };
        let mut left = RowBudget { rows: AT_A_TIME, size: MAX_TRANSACTION_CONTENT };
        let RowBatch { rows, is_last } = RowBatch::<Task>::of(&view, &range, &mut left)?;
        // A damaged table may show a place that was passed.
        let last = rows.last().map(|(key, _)| key.clone());
        let last = last.filter(|last| !is_last && last.as_slice() > after);
        let tasks = rows.into_iter().filter_map(|(_, task)| task).collect();
        Ok((put_off(&view, tasks, now)?, last))
    })?;
    let mut rest = tasks.as_slice();
    while !rest.is_empty() {
        let done = engine.write_in(home, now, |tx| bring_first_back(tx, rest))?;
        rest = rest.get(done..).unwrap_or_default();
    }
    Ok(last)
}

// Brings back the first tasks, up to the content of a transaction. Returns their number.
fn bring_first_back(tx: &mut Tx<'_>, tasks: &[Task]) -> Result<usize> {
    let (mut done, mut size) = (0, 0);
    for task in tasks {
        if size >= MAX_TRANSACTION_CONTENT {
            break;
        }
        size += bring_one_back(tx, task)?;
        done += 1;
    }
    Ok(done)
}

// Those of the tasks that are to be brought back.
fn put_off(view: &Reading<'_>, mut tasks: Vec<Task>, now: Timestamp) -> Result<Vec<Task>> {
    tasks.retain(|task| task.state.due_at().is_some_and(|due_at| due_at.is_far_ahead_of(now)));
    let ids: Vec<_> = tasks.iter().map(|task| task.work.notification_id()).collect();
    let key = |id: NotificationId| layout::notification(view.environment_id(), id.ordinal());
    let keys: Vec<_> = ids.iter().flatten().map(|id| key(*id)).collect();
    let found = view.engine.parts.decoded.notifications.find_readable(view, &keys)?;
    let found = found.into_iter().flatten();
    let found: HashMap<_, _> = found.map(|notification| (notification.id, notification)).collect();
    let mut ids = ids.into_iter();
    let lease = view.engine.parts.settings.lease;
    tasks.retain(|task| {
        let notification = ids.next().flatten().and_then(|id| found.get(&id));
        task.brought_back(now, lease, notification.map(|found| &**found)).is_some()
    });
    Ok(tasks)
}

// Brings back a task, unless another process has done so meanwhile, with the delay that it ends.
// Returns the size of its notification.
fn bring_one_back(tx: &mut Tx<'_>, task: &Task) -> Result<usize> {
    let lease = tx.engine().parts.settings.lease;
    let there = store::if_readable(tx.find::<Task>(&task.key()))?.flatten();
    // What cannot be read is found out when the task is done.
    let before = if_readable(notifications::of_work(tx, &task.work))?.flatten();
    let after = task.brought_back(tx.now(), lease, before.as_ref());
    let size = before.as_ref().map_or(0, Notification::size);
    let Some(after) = after.filter(|_| there.as_ref() == Some(task)) else { return Ok(size) };
    replace(tx, task, &after, before)?;
    Ok(size)
}

/// Gives back a task that was leased under a clock that was ahead, due as it is under the present one.
/// The host was not called. If its call of an earlier attempt may be under way, that gets a new lease.
pub(super) fn give_back(tx: &mut Tx<'_>, leased: &Leased, task: &Task) -> Result<()> {
    let (now, lease) = (tx.now(), tx.engine().parts.settings.lease);
    if task.work.calls_the_host() {
        let due_at = leased.claim.due_anew(now, lease);
        let Some(state) = task.state.undone(leased.claim, due_at) else { return Ok(()) };
        // A call that was stored and not made has no unknown outcome.
        return Ok(tx.replace(task, &task.with(state).uncalled(&leased.task))?);
    }
    let before = if_readable(notifications::of_work(tx, &task.work))?.flatten();
    // Another thread may have brought it back already.
    let brought_back = task.brought_back(now, lease, before.as_ref());
    let state = brought_back.map_or(task.state, |task| task.state);
    let due_at = state.due_at().unwrap_or(now);
    let Some(state) = task.state.undone(leased.claim, due_at) else { return Ok(()) };
    replace(tx, task, &task.with(state), before)
}

// Replaces a task, and brings back the delay that it ends.
fn replace(
    tx: &mut Tx<'_>,
    task: &Task,
    after: &Task,
    notification: Option<Notification>,
) -> Result<()> {
    tx.replace(task, after)?;
    // A delay behind a message has a task of its own.
    if let Some(before) = notification.filter(|_| !task.work.calls_the_host()) {
        let due_at = after.state.due_at().unwrap_or(tx.now());
        let after = before.brought_back(tx.now(), due_at);
        if after != before {
            tx.replace(&before, &after)?;
        }
    }
    Ok(())
}
