//! Statistics of the delivery queue.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use domain::ids::{EnvironmentId, IntegrationId, WorkflowId};
use domain::quarantine::Quarantined;
use domain::task::{Lane, TaskClass, TaskState};
use domain::time::Timestamp;
use serde::Serialize;
use store::{Order, Prefix, ReadRecords, Referent, Snapshot, layout};

use super::{DeliveryQueue, due};
use crate::{Result, trace};

// Number of tasks that are counted.
const TASKS: usize = 10_000;

// Number of lanes of a class that are looked at.
const LANES: usize = 1_000;

/// Statistics of the delivery queue, as of one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct QueueStats {
    /// Depth of each lane, in the order in which the lanes are served.
    pub lanes: Vec<LaneStats>,
    /// `false` if there are more tasks or lanes than were counted.
    pub is_complete: bool,
    /// Number of the calls that are under way in this engine, by the id of the provider.
    pub calls: BTreeMap<String, usize>,
    /// Messages of each integration that was called or holds some.
    pub integrations: BTreeMap<IntegrationId, IntegrationStats>,
    /// Number of entries in the quarantine, counted up to 10,000.
    pub quarantined: usize,
    /// Text of the error with which the last upkeep of the activity index has failed. `None` if it
    /// has succeeded.
    pub upkeep_error: Option<String>,
}

/// Depth of a lane: the tasks of one class, environment and workflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LaneStats {
    /// Class of the tasks.
    pub class: TaskClass,
    /// Environment of the tasks.
    pub environment_id: EnvironmentId,
    /// Workflow of the tasks. `None` if they belong to no workflow.
    pub workflow_id: Option<WorkflowId>,
    /// Depth.
    pub depth: QueueDepth,
}

/// Messages of an integration. The calls are those of this engine since it was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct IntegrationStats {
    /// Number of messages that its provider has accepted.
    pub accepted: u64,
    /// Number of calls of its provider that have failed.
    pub failed: u64,
    /// Number of messages that wait until it is resumed.
    pub held: usize,
}

/// Number of tasks in a part of the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct QueueDepth {
    /// Number of tasks that wait for an attempt, now or later.
    pub waiting: usize,
    /// Number of tasks that are leased for an attempt.
    pub leased: usize,
    /// Number of tasks that wait until their workflow or their integration is resumed.
    pub held: usize,
    /// Earliest time at which a waiting task is due.
    pub oldest_due: Option<Timestamp>,
}

impl DeliveryQueue<'_> {
    /// Returns statistics of the queue. At most 10,000 tasks are read, in the order in which they
    /// would be claimed, of at most 1,000 lanes of each class.
    ///
    /// ```
    /// # fn main() -> tidings::Result<()> {
    /// let engine = tidings::Engine::in_memory();
    /// let stats = engine.delivery().stats()?;
    /// assert_eq!((stats.total().waiting, stats.total().oldest_due), (0, None));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Store`](crate::Error::Store).
    pub fn stats(&self) -> Result<QueueStats> {
        trace::operation("delivery.stats", None, || self.measured())
    }

    fn measured(&self) -> Result<QueueStats> {
        let mut stats = self.engine.read(|snapshot| {
            let mut stats = QueueStats { is_complete: true, ..QueueStats::default() };
            let mut left = TASKS;
            for class in TaskClass::ALL {
                let lanes = due::lanes_of(snapshot, class, Timestamp::MAX, LANES)?.lanes;
                stats.is_complete &= lanes.len() < LANES;
                for (lane, _) in lanes {
                    let (lane, read) = LaneStats::read(snapshot, &lane, left)?;
                    left -= read;
                    stats.lanes.push(lane);
                }
                let paused = due::held_lanes_of(snapshot, class, LANES)?;
                stats.is_complete &= paused.len() < LANES;
                for lane in paused {
                    let (mut lane, read) = LaneStats::read(snapshot, &lane, left)?;
                    left -= read;
                    lane.depth.hold();
                    let is_empty = lane.depth == QueueDepth::default();
                    stats.lanes.extend(Some(lane).filter(|_| !is_empty));
                }
            }
            left -= stats.add_held(snapshot, left)?;
            stats.is_complete &= left > 0;
            let all = Prefix::<Quarantined>::of_all().range();
            snapshot.scan_bytes(&all, Order::Ascending, Some(TASKS), &mut |_, _| {
                stats.quarantined += 1;
                ControlFlow::Continue(())
            })?;
            Ok(stats)
        })?;
        for (id, calls) in self.engine.parts.circuits.calls() {
            let of_one = stats.integrations.entry(id).or_default();
            (of_one.accepted, of_one.failed) = (calls.accepted, calls.failed);
        }
        stats.calls = self.engine.parts.quotas.running();
        stats.upkeep_error = self.engine.parts.upkeep.error();
        Ok(stats)
    }
}

impl LaneStats {
    // Reads at most `limit` tasks, and returns their number.
    fn read(snapshot: &dyn Snapshot, lane: &Lane, limit: usize) -> Result<(Self, usize)> {
        let mut depth = QueueDepth::default();
        let tasks =
            store::index_entries(snapshot, &layout::lane(lane).range(), limit, layout::task_of)?;
        for entry in &tasks {
            let Referent::Record(task) = &entry.referent else { continue };
            if task.state.is_leased() {
                depth.leased += 1;
            } else {
                depth.waiting += 1;
                let due_at = task.state.due_at();
                depth.oldest_due = depth.oldest_due.into_iter().chain(due_at).min();
            }
        }
        Ok((Self::of(lane, depth), tasks.len()))
    }

    const fn of(lane: &Lane, depth: QueueDepth) -> Self {
        let Lane { class, environment_id, workflow_id } = *lane;
        Self { class, environment_id, workflow_id, depth }
    }

    fn is_of(&self, lane: &Lane) -> bool {
        let own = (self.class, self.environment_id, self.workflow_id);
        own == (lane.class, lane.environment_id, lane.workflow_id)
    }
}

impl QueueDepth {
    // Counts the tasks as held that wait, because their workflow is paused.
    fn hold(&mut self) {
        self.held += std::mem::take(&mut self.waiting);
        self.oldest_due = None;
    }
}

impl QueueStats {
    // Counts at most `limit` tasks that wait for an integration, and returns their number.
    fn add_held(&mut self, snapshot: &dyn Snapshot, limit: usize) -> Result<usize> {
        let held =
            store::index_entries(snapshot, &layout::all_held(), limit, layout::held_task_of)?;
        for entry in &held {
            let Referent::Record(task) = &entry.referent else { continue };
            if let TaskState::Held { integration_id, .. } = task.state {
                self.integrations.entry(integration_id).or_default().held += 1;
            }
            let lane = task.lane();
            if let Some(stats) = self.lanes.iter_mut().find(|stats| stats.is_of(&lane)) {
                stats.depth.held += 1;
            } else {
                let depth = QueueDepth { held: 1, ..QueueDepth::default() };
                self.lanes.push(LaneStats::of(&lane, depth));
            }
        }
        Ok(held.len())
    }

    /// Returns the depth of the whole queue.
    pub fn total(&self) -> QueueDepth {
        self.sum(|_| true)
    }

    /// Returns the depth of a class.
    pub fn class(&self, class: TaskClass) -> QueueDepth {
        self.sum(|lane| lane.class == class)
    }

    /// Returns the depth of an environment.
    pub fn environment(&self, id: EnvironmentId) -> QueueDepth {
        self.sum(|lane| lane.environment_id == id)
    }

    fn sum(&self, has: impl Fn(&LaneStats) -> bool) -> QueueDepth {
        let lanes = self.lanes.iter().filter(|lane| has(lane)).map(|lane| lane.depth);
        lanes.fold(QueueDepth::default(), |sum, lane| QueueDepth {
            waiting: sum.waiting + lane.waiting,
            leased: sum.leased + lane.leased,
            held: sum.held + lane.held,
            oldest_due: sum.oldest_due.into_iter().chain(lane.oldest_due).min(),
        })
    }
}
