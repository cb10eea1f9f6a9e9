//! Looking for records that wait for a task which is not there.
//!
//! The tasks of messages and windows are found by their ids. Turns and the tasks of broadcasts have ids of
//! their own, so the tasks of an environment are looked through, once for many records.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use domain::ids::EnvironmentId;
use domain::message::Message;
use domain::notification::Notification;
use domain::quarantine::Quarantined;
use domain::task::{Awaited, Task};
use domain::trigger::FanOut;

use super::{ROWS, deleted_environments};
use crate::batch::{Batch, Row};
use crate::record::if_readable;
use crate::{Codec, OnRows, Order, Prefix, Range, ReadRecords, Result, Snapshot, Table, layout};

/// A record that waits for tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// A notification whose jobs have not ended.
    Notification(Box<Notification>),
    /// A snoozed message.
    Message(Box<Message>),
    /// An event whose recipients tasks tell.
    FanOut(Box<FanOut>),
}

/// A record that waits for tasks which are not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stalled {
    /// Table of the record.
    pub table: Table,
    /// Key of the record.
    pub key: Vec<u8>,
    /// The tasks that are not there.
    pub lost: Vec<Awaited>,
}

/// Stalled records of a part of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StalledPart {
    /// The records.
    pub found: Vec<Stalled>,
    /// The key behind which the table goes on. `None` at its end.
    pub next: Option<Vec<u8>>,
}

// Tasks that may not be there, with the keys of the records that wait for them.
type Wanted = BTreeMap<(EnvironmentId, Awaited), Vec<u8>>;

impl Waiting {
    /// The tables that have such records.
    pub const TABLES: [Table; 3] = [Table::Notifications, Table::Messages, Table::FanOuts];

    /// Reads a record. Returns `None` if it is of another table, or cannot be read.
    pub fn read(codec: Codec<'_>, table: Table, key: &[u8], value: &[u8]) -> Result<Option<Self>> {
        if_readable(match table {
            Table::Notifications => codec.decode(key, value).map(Box::new).map(Self::Notification),
            Table::Messages => codec.decode(key, value).map(Box::new).map(Self::Message),
            Table::FanOuts => codec.decode(key, value).map(Box::new).map(Self::FanOut),
            _ => return Ok(None),
        })
    }

    fn environment(&self) -> EnvironmentId {
        match self {
            Self::Notification(notification) => notification.environment_id,
            Self::Message(message) => message.environment_id,
            Self::FanOut(fan_out) => fan_out.environment_id,
        }
    }

    fn awaited(&self) -> Vec<Awaited> {
        match self {
            Self::Notification(notification) => {
                notification.awaited().into_iter().map(|(_, awaited)| awaited).collect()
            }
            Self::Message(message) => message.awaited().into_iter().collect(),
            Self::FanOut(fan_out) => vec![fan_out.awaited()],
        }
    }
}

/// Looks for stalled records of a table behind `behind`. A record whose task is in quarantine is not
/// stalled. Breaks if `progress` does.
pub fn stalled(
    snapshot: &dyn Snapshot,
    table: Table,
    behind: Option<&[u8]>,
    progress: &mut OnRows<'_>,
) -> Result<ControlFlow<(), StalledPart>> {
    // Maximum number of tasks in memory. Fewer take more passes through all tasks.
    const MOST: usize = 65_536;
    let (mut wanted, mut next) = (Wanted::new(), behind.map(<[u8]>::to_vec));
    loop {
        let batch = Batch::read(snapshot, &Range::of_table(table, next.as_deref()), ROWS)?;
        if progress(table, batch.rows.len() as u64).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        for row in batch.rows {
            want(snapshot, table, row, &mut wanted)?;
        }
        next = batch.next;
        if next.is_none() || wanted.len() >= MOST {
            break;
        }
    }
    if remove_queued(snapshot, &mut wanted, progress)?.is_break() {
        return Ok(ControlFlow::Break(()));
    }
    remove_quarantined(snapshot, &mut wanted)?;
    if !wanted.is_empty() {
        let deleted = deleted_environments(snapshot)?;
        wanted.retain(|(environment, _), _| !deleted.contains(environment));
    }
    let mut found: BTreeMap<Vec<u8>, Vec<Awaited>> = BTreeMap::new();
    for ((_, awaited), key) in wanted {
        found.entry(key).or_default().push(awaited);
    }
    let found = found.into_iter().map(|(key, lost)| Stalled { table, key, lost }).collect();
    Ok(ControlFlow::Continue(StalledPart { found, next }))
}

// Adds the tasks that a record waits for and that are not there under their ids.
fn want(snapshot: &dyn Snapshot, table: Table, row: Row, wanted: &mut Wanted) -> Result<()> {
    let Some(waiting) = Waiting::read(snapshot.codec(), table, &row.key, &row.value)? else {
        return Ok(());
    };
    let environment = waiting.environment();
    for awaited in waiting.awaited() {
        let is_there = match &awaited {
            Awaited::Task(id) => snapshot.contains(&layout::task(environment, *id))?,
            Awaited::Turn(_) | Awaited::FanOut(_) => false,
        };
        if !is_there {
            wanted.insert((environment, awaited), row.key.clone());
        }
    }
    Ok(())
}

// Removes those whose tasks are in the queue under ids of their own.
fn remove_queued(
    snapshot: &dyn Snapshot,
    wanted: &mut Wanted,
    progress: &mut OnRows<'_>,
) -> Result<ControlFlow<()>> {
    let of_work = wanted.keys().filter(|(_, awaited)| is_by_work(awaited));
    let environments: BTreeSet<EnvironmentId> =
        of_work.map(|(environment, _)| *environment).collect();
    for environment in environments {
        if remove_queued_in(environment, snapshot, wanted, progress)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

// Removes those whose tasks are in the queue of an environment, up to the last one that is wanted.
fn remove_queued_in(
    environment: EnvironmentId,
    snapshot: &dyn Snapshot,
    wanted: &mut Wanted,
    progress: &mut OnRows<'_>,
) -> Result<ControlFlow<()>> {
    const STEP: u64 = 256;
    let is_its =
        |(of, awaited): &&(EnvironmentId, Awaited)| *of == environment && is_by_work(awaited);
    let mut left = wanted.keys().filter(is_its).count();
    let (mut rows, mut told) = (0, ControlFlow::Continue(()));
    let tasks = layout::tasks(environment).range();
    snapshot.each_readable::<Task>(&tasks, Order::Ascending, |task| {
        let by_work = Awaited::of(&task).find(is_by_work);
        let found = by_work.and_then(|awaited| wanted.remove(&(environment, awaited)));
        left -= usize::from(found.is_some());
        rows += 1;
        if rows % STEP == 0 {
            told = progress(Table::Tasks, STEP);
        }
        if left > 0 && told.is_continue() {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    Ok(told)
}

fn is_by_work(awaited: &Awaited) -> bool {
    match awaited {
        Awaited::Task(_) => false,
        Awaited::Turn(_) | Awaited::FanOut(_) => true,
    }
}

// Removes those whose tasks are in quarantine: they wait for the operator.
fn remove_quarantined(snapshot: &dyn Snapshot, wanted: &mut Wanted) -> Result<()> {
    if wanted.is_empty() {
        return Ok(());
    }
    let all = Prefix::<Quarantined>::of_all().range();
    snapshot.each_readable::<Quarantined>(&all, Order::Ascending, |entry| {
        if let Ok(task) = entry.readable_task() {
            for awaited in Awaited::of(&task) {
                wanted.remove(&(task.environment_id, awaited));
            }
        }
        ControlFlow::Continue(())
    })
}
