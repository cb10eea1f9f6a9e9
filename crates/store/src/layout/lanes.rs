//! The keys of tasks in lanes, of lanes, and of held tasks.

use domain::ids::{EnvironmentId, TaskId, v7};
use domain::task::{Lane, Task, TaskClass};
use domain::time::Timestamp;

use super::{DUE, HELD, HELD_LANES, LANE_HEADS, LANES, TASKS, task};
use crate::key::{Bytes, Key, Prefix, Range, parts};

/// The tasks of an environment whose ids were made at `since` or later.
pub fn tasks_from(environment: EnvironmentId, since: Timestamp) -> Range<Task> {
    let first = v7(u64::try_from(since.as_millis()).unwrap_or_default(), 0);
    TASKS.within(environment).from(first.into())
}

/// The tasks of a lane, in the order of the times at which they are due.
pub fn lane(lane: &Lane) -> Prefix<Task, parts![Timestamp, TaskId]> {
    DUE.all().then(lane.class).then(lane.environment_id).then(lane.workflow_id)
}

/// The tasks of a lane that are due at `now`.
pub fn due_until(lane: &Lane, now: Timestamp) -> Range<Task> {
    self::lane(lane).until(now)
}

/// The tasks of a lane that are due at `first` or later, and at `now`.
pub fn due_between(lane: &Lane, first: Timestamp, now: Timestamp) -> Range<Task> {
    due_until(lane, now).resumed(self::lane(lane).then(first).as_bytes())
}

/// The tasks of a lane that are due at one time.
pub fn due_at_once(lane: &Lane, time: Timestamp) -> Range<Task> {
    self::lane(lane).then(time).range()
}

/// The tasks of a lane that are due at `time` or later.
pub(crate) fn due_from(lane: &Lane, time: Timestamp) -> Range<Task> {
    self::lane(lane).from(time)
}

/// The tasks of a lane that are due behind `time`.
pub fn due_behind(lane: &Lane, time: Timestamp) -> Range<Task> {
    self::lane(lane).behind(time)
}

/// The time at which a task is due, from its entry in [`DUE`].
pub fn due_at(entry: &[u8]) -> Option<Timestamp> {
    let (_, (_, (_, (due_at, _)))) = DUE.read(entry)?;
    Some(due_at)
}

/// The task of an entry in [`DUE`].
pub fn task_of(entry: &[u8]) -> Option<Key<Task>> {
    let (_, (environment, (_, (_, (id, ()))))) = DUE.read(entry)?;
    Some(task(environment, id))
}

/// The lane of an entry in [`DUE`], and the time at which its task is due.
pub fn lane_of_due(entry: &[u8]) -> Option<(Lane, Timestamp)> {
    let (class, (environment_id, (workflow_id, (due_at, _)))) = DUE.read(entry)?;
    Some((Lane { class, environment_id, workflow_id }, due_at))
}

/// The lane of a row of [`LANE_HEADS`].
pub fn lane_of_head(key: &[u8]) -> Option<Lane> {
    let (class, (environment_id, (workflow_id, ()))) = LANE_HEADS.read(key)?;
    Some(Lane { class, environment_id, workflow_id })
}

/// The time at which the first task of a lane is due.
pub fn lane_head(lane: &Lane) -> Key<Bytes> {
    LANE_HEADS.all().then(lane.class).then(lane.environment_id).then(lane.workflow_id).end()
}

/// A lane by the time at which its first task is due.
pub fn lane_entry(lane: &Lane, due_at: Timestamp) -> Key<Bytes> {
    let of_class = LANES.all().then(lane.class).then(due_at);
    of_class.then(lane.environment_id).then(lane.workflow_id).end()
}

/// The lanes of a class with a task that is due at `now`.
pub fn lanes_until(class: TaskClass, now: Timestamp) -> Range<Bytes> {
    LANES.all().then(class).until(now)
}

/// The lane of an entry of [`LANES`], and the time at which its first task is due.
pub fn lane_of(entry: &[u8]) -> Option<(Lane, Timestamp)> {
    let (class, (due_at, (environment_id, (workflow_id, ())))) = LANES.read(entry)?;
    Some((Lane { class, environment_id, workflow_id }, due_at))
}

/// A lane whose workflow is paused.
pub fn held_lane(lane: &Lane) -> Key<Bytes> {
    HELD_LANES.all().then(lane.class).then(lane.environment_id).then(lane.workflow_id).end()
}

/// The lanes of a class whose workflows are paused.
pub fn held_lanes(class: TaskClass) -> Range<Bytes> {
    HELD_LANES.all().then(class).range()
}

/// The lane of an entry of [`HELD_LANES`].
pub fn held_lane_of(entry: &[u8]) -> Option<Lane> {
    let (class, (environment_id, (workflow_id, ()))) = HELD_LANES.read(entry)?;
    Some(Lane { class, environment_id, workflow_id })
}

/// The tasks that wait until an integration is resumed: those of all integrations.
pub fn all_held() -> Range<Task> {
    HELD.all().range()
}

/// The task of an entry in [`HELD`].
pub fn held_task_of(entry: &[u8]) -> Option<Key<Task>> {
    let (environment, (_, (id, ()))) = HELD.read(entry)?;
    Some(task(environment, id))
}
