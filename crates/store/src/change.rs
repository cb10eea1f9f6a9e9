//! Changes of records, as a transaction reports them.

use domain::observer::Event;
use domain::task::Lane;
use domain::time::Timestamp;

use crate::counters::Recount;
use crate::list_counts::ListChange;
use crate::outcomes::Moved;
use crate::record::LanePlace;
use crate::{Key, Record, Table};

/// One record that a transaction inserted, replaced or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The kind of the change.
    pub kind: ChangeKind,
    /// The table of the record.
    pub table: Table,
    /// The key of the record in its table.
    pub key: Vec<u8>,
    /// The change of what counters count.
    pub recount: Option<Recount>,
    /// The change of a list whose records are counted.
    pub listed: Option<ListChange>,
    /// The change of a task in its lane.
    pub lane: Option<LaneChange>,
    /// The change of the outcomes of a notification.
    pub moved: Option<Moved>,
    /// What an observer is told, in its order.
    pub events: Vec<Event>,
}

/// Kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// The record is new.
    Inserted,
    /// The record has another value.
    Replaced,
    /// The record is gone.
    Removed,
}

/// The change of a task in its lane, which it never leaves: its class and its workflow stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneChange {
    /// The lane of the task.
    pub lane: Lane,
    /// The earlier one of the times at which the task is due, before and after the change. `None` if an
    /// integration holds it before and after.
    pub earliest: Option<Timestamp>,
}

impl LaneChange {
    fn of(before: Option<LanePlace>, after: Option<LanePlace>) -> Option<Self> {
        let (lane, _) = after.or(before)?;
        let times = before.into_iter().chain(after).filter_map(|(_, due_at)| due_at);
        Some(Self { lane, earliest: times.min() })
    }
}

impl Change {
    pub(crate) fn new<R>(kind: ChangeKind, key: &Key<R>) -> Self {
        Self {
            kind,
            table: key.table(),
            key: key.as_bytes().to_vec(),
            recount: None,
            listed: None,
            lane: None,
            moved: None,
            events: Vec::new(),
        }
    }

    /// The change of a record that counters may count, that a counted list or a lane may hold, and that
    /// may have outcomes, before or after it.
    pub(crate) fn of<R: Record>(self, before: Option<&R>, after: Option<&R>) -> Self {
        let recount = Recount::of(before.and_then(R::counted), after.and_then(R::counted));
        let listed =
            ListChange::of(before.and_then(R::counted_place), after.and_then(R::counted_place));
        let lane = LaneChange::of(before.and_then(R::lane), after.and_then(R::lane));
        let moved = Moved::of(before.and_then(R::outcomes), after.and_then(R::outcomes));
        Self { recount, listed, lane, moved, events: R::events(before, after), ..self }
    }
}
