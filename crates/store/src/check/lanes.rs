//! Steps through the rows of lanes: those that are there, and then those that have to be there.

use std::ops::{Bound, ControlFlow};

use domain::task::Lane;
use domain::workflow::Workflow;

use super::derived::next_key;
use super::{Fix, PassStep, Problem};
use crate::record::if_readable;
use crate::{Codec, Order, ReadRecords, Result, Snapshot, Table, lanes, layout};

/// Number of rows, workflows or lanes that a step looks at.
const AT_A_TIME: usize = 256;

/// What a pass goes through: the rows of lanes, the workflows, which may be paused, and the tasks.
const TABLES: [Table; 5] =
    [Table::Lanes, Table::LaneHeads, Table::HeldLanes, Table::Workflows, Table::Due];

/// Compares some rows of lanes with the tasks that are due, and with paused workflows. The key of
/// a step is the number of a table and a key in it.
pub(super) fn lanes(snapshot: &dyn Snapshot, behind: Option<&[u8]>) -> Result<PassStep> {
    let (at, key) = behind.and_then(<[u8]>::split_first).unwrap_or((&0, &[]));
    let Some(table) = TABLES.get(usize::from(*at)) else { return Ok(PassStep::default()) };
    let mut step = PassStep::default();
    let last = match table {
        Table::Due => tasks(snapshot, key, &mut step)?,
        Table::Workflows => workflows(snapshot, key, &mut step)?,
        table => rows(snapshot, *table, key, &mut step)?,
    };
    let is_last = usize::from(*at) + 1 == TABLES.len();
    step.next = match last {
        Some(last) => Some([&[*at], last.as_slice()].concat()),
        None => (!is_last).then(|| vec![at + 1]),
    };
    Ok(step)
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

// Looks for rows that no lane has. Returns the last key, unless all were looked at.
fn rows(
    snapshot: &dyn Snapshot,
    table: Table,
    behind: &[u8],
    step: &mut PassStep,
) -> Result<Option<Vec<u8>>> {
    let found = some(snapshot, table, behind)?;
    for (key, value) in &found {
        step.rows += 1;
        let lane = lane_of(table, key);
        let expected = lane.map(|lane| Ok((lane, Expected::of(snapshot, &lane)?))).transpose()?;
        let is_right = expected.is_some_and(|(lane, expected)| {
            expected == Expected::Unknown
                || expected.value(&lane, table, key).as_ref() == Some(value)
        });
        if !is_right {
            step.found(table, key, Problem::Misplaced, Fix::Remove(table, key.clone()));
        }
    }
    Ok(last(found))
}

// Looks for the rows of the lanes of paused workflows.
fn workflows(
    snapshot: &dyn Snapshot,
    behind: &[u8],
    step: &mut PassStep,
) -> Result<Option<Vec<u8>>> {
    let found = some(snapshot, Table::Workflows, behind)?;
    let codec: Codec<'_> = snapshot.codec();
    for (key, value) in &found {
        let workflow = codec.decode::<Workflow>(key, value).ok();
        if let Some(workflow) = workflow.filter(Workflow::is_paused) {
            for lane in workflow.lanes() {
                look_for(snapshot, (Table::HeldLanes, &lane), step)?;
            }
        }
    }
    Ok(last(found))
}

// Looks for the rows of lanes with tasks. A lane is passed with one look-up.
fn tasks(snapshot: &dyn Snapshot, behind: &[u8], step: &mut PassStep) -> Result<Option<Vec<u8>>> {
    let mut passed = Some(behind.to_vec()).filter(|behind| !behind.is_empty());
    for _ in 0..AT_A_TIME {
        let Some(key) = next_key(snapshot, Table::Due, passed.as_deref())? else {
            return Ok(None);
        };
        passed = Some(match layout::lane_of_due(&key) {
            Some((lane, _)) => {
                look_for(snapshot, (Table::Lanes, &lane), step)?;
                layout::lane(&lane).as_bytes().to_vec()
            }
            None => key,
        });
    }
    Ok(passed)
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
            step.found(table, &key, Problem::Misplaced, Fix::Put(table, key.clone(), value));
        }
    }
    Ok(())
}

// Some rows behind a key, or the first ones.
fn some(snapshot: &dyn Snapshot, table: Table, behind: &[u8]) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let start = if behind.is_empty() { Bound::Unbounded } else { Bound::Excluded(behind.to_vec()) };
    let (range, mut found) = ((start, Bound::Unbounded), Vec::new());
    snapshot.scan(table, &range, Order::Ascending, Some(AT_A_TIME), &mut |key, value| {
        // A damaged table may show a key that was passed.
        if key <= behind {
            return ControlFlow::Break(());
        }
        found.push((key.to_vec(), value.to_vec()));
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

fn last(found: Vec<(Vec<u8>, Vec<u8>)>) -> Option<Vec<u8>> {
    found.into_iter().nth(AT_A_TIME - 1).map(|(key, _)| key)
}
