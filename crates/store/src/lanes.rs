//! Lanes of tasks: two rows for each lane that has some. One has the time at which the first task
//! is due, and the other sorts the lanes of a class by that time. The lanes of a paused workflow have
//! a row in a table of their own in place of the second one, also without tasks. So a look for due tasks
//! does not meet them.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use domain::task::{Lane, Task};
use domain::time::Timestamp;

use crate::{
    Change, Order, Range, ReadRecords, Result, Snapshot, Transaction, WriteRecords, layout,
};

/// Moves the lanes whose tasks a transaction has changed to the time of their first task. A lane that is
/// held stays where it is, and a row that cannot be read is written anew.
pub fn move_changed(transaction: &mut dyn Transaction, changes: &[Change]) -> Result<()> {
    let mut lanes: BTreeMap<Lane, Option<Timestamp>> = BTreeMap::new();
    for change in changes.iter().filter_map(|change| change.lane) {
        let earliest = lanes.entry(change.lane).or_default();
        *earliest = earliest.iter().copied().chain(change.earliest).min();
    }
    prefetch(&*transaction, lanes.keys())?;
    for (lane, earliest) in lanes {
        let state = state(transaction, &lane)?;
        let range = match (state, earliest) {
            (State::Held, _) | (State::Due(_) | State::Idle, None) => continue,
            // What is due behind the first task does not move the lane.
            (State::Due(due_at), Some(earliest)) if earliest > due_at => continue,
            // The transaction has removed all tasks that were due before `earliest`, or moved them.
            (State::Due(_) | State::Idle, Some(earliest)) => layout::due_from(&lane, earliest),
            (State::Unreadable, _) => layout::lane(&lane).range(),
        };
        let first = first_within(transaction, &range)?;
        set_state(transaction, &lane, state, first)?;
    }
    Ok(())
}

/// Tells the store that these lanes are going to be moved.
pub fn prefetch<'l>(
    snapshot: &dyn Snapshot,
    lanes: impl IntoIterator<Item = &'l Lane>,
) -> Result<()> {
    let heads = lanes.into_iter().map(|lane| layout::lane_head(lane).into_parts());
    snapshot.prefetch(&mut heads.into_iter())
}

/// Moves a lane to the time of its first task. A row that cannot be read is written anew. A lane
/// that is held stays where it is.
pub fn move_lane(transaction: &mut dyn Transaction, lane: &Lane) -> Result<()> {
    let before = state(transaction, lane)?;
    if before == State::Held {
        return Ok(());
    }
    let first = first_due(transaction, lane)?;
    set_state(transaction, lane, before, first)
}

fn set_state(
    transaction: &mut dyn Transaction,
    lane: &Lane,
    before: State,
    first: Option<Timestamp>,
) -> Result<()> {
    if before == State::of(first) {
        return Ok(());
    }
    if let State::Due(due_at) = before {
        transaction.delete_key(&layout::lane_entry(lane, due_at))?;
    }
    let key = layout::lane_head(lane);
    match first {
        Some(due_at) => {
            let entry = layout::lane_entry(lane, due_at);
            // The rows name each other, so that no other row is taken for one of them.
            transaction.put_bytes(&entry, key.as_bytes())?;
            transaction.put_bytes(&key, entry.as_bytes())
        }
        None => transaction.delete_key(&key),
    }
}

/// Moves a lane that an entry sorts by `due_at` to the time of its first task. `first` is that time, or
/// `None` if it is not known.
pub fn mend(
    transaction: &mut dyn Transaction,
    lane: &Lane,
    due_at: Timestamp,
    first: Option<Timestamp>,
) -> Result<()> {
    let state = state(transaction, lane)?;
    if state == State::Due(due_at) && first == Some(due_at) {
        return Ok(());
    }
    if state == State::Held || first_due(transaction, lane)? != Some(due_at) {
        transaction.delete_key(&layout::lane_entry(lane, due_at))?;
    }
    move_lane(transaction, lane)
}

/// Takes a lane out of those that have due tasks, until it is released.
pub fn hold(transaction: &mut dyn Transaction, lane: &Lane) -> Result<()> {
    if let State::Due(due_at) = state(transaction, lane)? {
        transaction.delete_key(&layout::lane_entry(lane, due_at))?;
    }
    let (entry, key) = (layout::held_lane(lane), layout::lane_head(lane));
    transaction.put_bytes(&entry, key.as_bytes())?;
    transaction.put_bytes(&key, entry.as_bytes())
}

/// Puts a lane that was held back to the time of its first task.
pub fn release(transaction: &mut dyn Transaction, lane: &Lane) -> Result<()> {
    transaction.delete_key(&layout::held_lane(lane))?;
    if state(transaction, lane)? == State::Held {
        transaction.delete_key(&layout::lane_head(lane))?;
    }
    move_lane(transaction, lane)
}

/// The time at which the first task of a lane is due, from the tasks.
pub(crate) fn first_due(
    snapshot: &(impl Snapshot + ?Sized),
    lane: &Lane,
) -> Result<Option<Timestamp>> {
    first_within(snapshot, &layout::lane(lane).range())
}

fn first_within(
    snapshot: &(impl Snapshot + ?Sized),
    tasks: &Range<Task>,
) -> Result<Option<Timestamp>> {
    snapshot.first_known(tasks, Order::Ascending, layout::due_at)
}

// State of a lane, by its row in `LaneHeads`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    // The lane has no row.
    Idle,
    // Time at which the first task is due.
    Due(Timestamp),
    // The workflow of the lane is paused.
    Held,
    // The row leads to another lane, or to none.
    Unreadable,
}

impl State {
    fn of(first: Option<Timestamp>) -> Self {
        first.map_or(State::Idle, State::Due)
    }
}

fn state(snapshot: &(impl Snapshot + ?Sized), lane: &Lane) -> Result<State> {
    let mut state = State::Idle;
    snapshot.get_bytes(&layout::lane_head(lane), &mut |entry| {
        let named = layout::lane_of(entry).filter(|(named, _)| named == lane);
        let is_held = || layout::held_lane_of(entry).is_some_and(|named| named == *lane);
        state = match named {
            Some((_, due_at)) => State::Due(due_at),
            None if is_held() => State::Held,
            None => State::Unreadable,
        };
    })?;
    Ok(state)
}
