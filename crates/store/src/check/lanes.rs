//! Steps through the rows of lanes: those that are there, and then those that have to be there.

use domain::task::Lane;
use domain::workflow::Workflow;

use super::{PassStep, Problem};
use crate::batch::{Row, next_key};
use crate::record::if_readable;
use crate::{ReadRecords, Result, Snapshot, Table, lanes, layout};

/// Number of rows, workflows or lanes that a step looks at.
const AT_A_TIME: usize = 256;

/// Tables of the passes: the rows of lanes, the workflows, which may be paused, and the tasks.
pub(super) const TABLES: [Table; 5] =
    [Table::Lanes, Table::LaneHeads, Table::HeldLanes, Table::Workflows, Table::Due];

/// Runs a step through `table`, one of [`TABLES`]. Rows of lanes are compared with the tasks and the paused
/// workflows. Workflows and tasks are looked up in the rows of lanes.
pub(super) fn lanes(
    snapshot: &dyn Snapshot,
    table: Table,
    behind: Option<&[u8]>,
) -> Result<PassStep> {
    match table {
        Table::Due => tasks(snapshot, behind),
        Table::Workflows => workflows(snapshot, behind),
        table => rows(snapshot, table, behind),
    }
}

// The rows of a lane.
#[derive(Debug, PartialEq, Eq)]
enum Expected {
    // The workflow cannot be read, so that the lane may be held.
    Unknown,
    // No task is due, and the workflow is not paused.
    Nothing,
    // A row in that table under that key, and one in `LaneHeads` that leads to it.
    Entry(Table, Vec<u8>),
}

impl Expected {
    fn of(snapshot: &dyn Snapshot, lane: &Lane) -> Result<Self> {
        let workflow = lane.workflow_id.map(|id| layout::workflow(lane.environment_id, id));
        let found = workflow.map_or(Ok(None), |key| snapshot.find::<Workflow>(&key));
        let Some(workflow) = if_readable(found)? else { return Ok(Self::Unknown) };
        let entry = if workflow.is_some_and(|workflow| workflow.is_paused()) {
            layout::held_lane(lane)
        } else {
            match lanes::first_due(snapshot, lane)? {
                Some(due_at) => layout::lane_entry(lane, due_at),
                None => return Ok(Self::Nothing),
            }
        };
        Ok(Self::Entry(entry.table(), entry.as_bytes().to_vec()))
    }

    // The value under a key, if one of the rows has that key.
    fn value(&self, lane: &Lane, table: Table, key: &[u8]) -> Option<Vec<u8>> {
        let Self::Entry(own, entry) = self else { return None };
        let head = layout::lane_head(lane);
        match table {
            Table::LaneHeads => (head.as_bytes() == key).then(|| entry.clone()),
            table => (*own == table && entry == key).then(|| head.as_bytes().to_vec()),
        }
    }
}

fn lane_of(table: Table, key: &[u8]) -> Option<Lane> {
    match table {
        Table::Lanes => layout::lane_of(key).map(|(lane, _)| lane),
        Table::LaneHeads => layout::lane_of_head(key),
        _ => layout::held_lane_of(key),
    }
}

// Looks for rows that no lane has.
fn rows(snapshot: &dyn Snapshot, table: Table, behind: Option<&[u8]>) -> Result<PassStep> {
    let (mut step, rows) = PassStep::begin(snapshot, table, behind, AT_A_TIME)?;
    for Row { key, value } in &rows {
        let lane = lane_of(table, key);
        let expected = lane.map(|lane| Ok((lane, Expected::of(snapshot, &lane)?))).transpose()?;
        let is_right = expected.is_some_and(|(lane, expected)| {
            expected == Expected::Unknown
                || expected.value(&lane, table, key).as_ref() == Some(value)
        });
        if !is_right {
            step.found_row(table, key, Problem::Misplaced, None);
        }
    }
    Ok(step)
}

// Looks for the rows of the lanes of paused workflows.
fn workflows(snapshot: &dyn Snapshot, behind: Option<&[u8]>) -> Result<PassStep> {
    let (mut step, rows) = PassStep::begin(snapshot, Table::Workflows, behind, AT_A_TIME)?;
    // The pass through records counts the workflows.
    step.rows = 0;
    let codec = snapshot.codec();
    for Row { key, value } in &rows {
        let workflow = codec.decode::<Workflow>(key, value).ok();
        if let Some(workflow) = workflow.filter(Workflow::is_paused) {
            for lane in workflow.lanes() {
                look_for(snapshot, (Table::HeldLanes, &lane), &mut step)?;
            }
        }
    }
    Ok(step)
}

// Looks for the rows of lanes with tasks. A lane is passed with one look-up.
fn tasks(snapshot: &dyn Snapshot, behind: Option<&[u8]>) -> Result<PassStep> {
    let (mut step, mut passed) = (PassStep::default(), behind.map(<[u8]>::to_vec));
    for _ in 0..AT_A_TIME {
        let Some(key) = next_key(snapshot, Table::Due, passed.as_deref())? else {
            return Ok(step);
        };
        passed = Some(match layout::lane_of_due(&key) {
            Some((lane, _)) => {
                look_for(snapshot, (Table::Lanes, &lane), &mut step)?;
                layout::lane(&lane).as_bytes().to_vec()
            }
            None => key,
        });
    }
    step.next = passed;
    Ok(step)
}

// Looks for the rows of a lane that has one in that table.
fn look_for(
    snapshot: &dyn Snapshot,
    (table, lane): (Table, &Lane),
    step: &mut PassStep,
) -> Result<()> {
    let entry = match Expected::of(snapshot, lane)? {
        Expected::Entry(own, entry) if own == table => entry,
        Expected::Entry(..) | Expected::Nothing | Expected::Unknown => return Ok(()),
    };
    let head = layout::lane_head(lane).as_bytes().to_vec();
    let rows = [(table, entry.clone(), head.clone()), (Table::LaneHeads, head, entry)];
    for (table, key, value) in rows {
        let mut is_there = false;
        snapshot.get(table, &key, &mut |there| is_there = there == value)?;
        if !is_there {
            step.found_row(table, &key, Problem::Misplaced, Some(value));
        }
    }
    Ok(())
}
