//! Rows of outcomes that follow from the changes of a transaction.

use std::collections::BTreeMap;

use domain::ids::EnvironmentId;
use domain::notification::{NotificationOutcome, Outcomes};

use super::{Listed, Row, is_marked, look_up, made_anew, row_of};
use crate::{Change, Result, Transaction, WriteRecords, layout};

/// Change of the outcomes of a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    listed: Listed,
    before: Option<Outcomes>,
    after: Option<Outcomes>,
}

impl Moved {
    /// Returns the change of a record. Returns `None` if it has the same outcomes, or none at all.
    pub(crate) fn of(
        before: Option<(Listed, Outcomes)>,
        after: Option<(Listed, Outcomes)>,
    ) -> Option<Self> {
        let (listed_before, before) = before.unzip();
        let (listed_after, after) = after.unzip();
        let listed = listed_after.or(listed_before).filter(|_| before != after)?;
        Some(Self { listed, before, after })
    }
}

// A row that a transaction changes: its environment, its outcome and its number.
type Place = (EnvironmentId, NotificationOutcome, u32);

/// Writes the rows of the notifications that a transaction has changed, each row once.
pub fn mark(transaction: &mut dyn Transaction, changes: &[Change]) -> Result<()> {
    let mut rows: BTreeMap<Place, (Option<Row>, Row)> = BTreeMap::new();
    for (listed, (before, after)) in net(changes) {
        for outcome in NotificationOutcome::ALL {
            let is_set = is_marked(after, *outcome);
            if is_marked(before, *outcome) != is_set {
                let place = (listed.environment, *outcome, row_of(listed.ordinal));
                let (_, row) = match rows.entry(place) {
                    std::collections::btree_map::Entry::Occupied(there) => there.into_mut(),
                    std::collections::btree_map::Entry::Vacant(free) => {
                        free.insert(known(transaction, place)?)
                    }
                };
                row.set(listed.ordinal, is_set);
            }
        }
    }
    for ((environment, outcome, number), (before, row)) in rows {
        if before != Some(row) {
            put(transaction, (environment, outcome, number), &row)?;
        }
    }
    Ok(())
}

// The first and the last outcomes of each notification.
fn net(changes: &[Change]) -> BTreeMap<Listed, (Option<Outcomes>, Option<Outcomes>)> {
    let mut net = BTreeMap::new();
    for Moved { listed, before, after } in changes.iter().filter_map(|change| change.moved) {
        net.entry(listed).and_modify(|(_, last)| *last = after).or_insert((before, after));
    }
    net
}

// A row as it is, and the same to be changed. One that cannot be read is rebuilt, so that damage
// to it holds up no delivery.
fn known(
    transaction: &dyn Transaction,
    (environment, outcome, number): Place,
) -> Result<(Option<Row>, Row)> {
    let there = look_up(transaction, &layout::outcome_row(environment, outcome, number))?;
    if let Some(row) = there {
        return Ok((there, row));
    }
    let anew = made_anew(transaction, environment, number)?.rows;
    let row = anew.into_iter().find(|(other, _)| *other == outcome);
    Ok((None, row.map(|(_, row)| row).unwrap_or_default()))
}

/// Puts a row, or removes it if it is empty.
pub(super) fn put(
    transaction: &mut dyn Transaction,
    (environment, outcome, number): Place,
    row: &Row,
) -> Result<()> {
    let key = layout::outcome_row(environment, outcome, number);
    if row.is_empty() {
        return transaction.delete_key(&key);
    }
    transaction.put_bytes(&key, &row.bytes(key.as_bytes()))
}
