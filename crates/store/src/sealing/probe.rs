//! What the records of a store say about a key whose mark is damaged or lost.

use std::ops::ControlFlow;

use super::keys::KeyId;
use super::seal::{Seal, key_of};
use crate::range::EVERYTHING;
use crate::{Error, Order, Range, ReadRecords, Result, Snapshot, Table, check};

/// Number of records of a table that are opened with a key that has opened none of them.
const TRIED: usize = 16;

/// What records say about a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Evidence {
    /// The key opens a record.
    Opens,
    /// The key opens none of the records that name it.
    OpensNone,
    /// No record names the key.
    Unused,
    /// No record that was found names the key, and not all of them were found.
    Unknown,
}

/// Looks for records that name `key`, in all tables, until one of them opens. A value that names another key is
/// passed by, and costs no more than its head.
pub(super) fn evidence(
    snapshot: &(impl Snapshot + ?Sized),
    seal: &Seal,
    key: KeyId,
) -> Result<Evidence> {
    let mut evidence = Evidence::Unused;
    for table in tables() {
        let mut tried = 0;
        let scanned = each_value(snapshot, table, None, &mut |place, value| {
            if key_of(value) != Some(key) {
                return ControlFlow::Continue(());
            }
            tried += 1;
            let opens = seal.open(table, place, value).is_ok();
            evidence = if opens { Evidence::Opens } else { Evidence::OpensNone };
            if opens || tried >= TRIED { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if evidence == Evidence::Opens {
            return Ok(evidence);
        }
        if if_whole(scanned)?.is_none() && evidence == Evidence::Unused {
            evidence = Evidence::Unknown;
        }
    }
    Ok(evidence)
}

/// Returns `true` if `key` opens none of the first records of each table that name it, and there is one.
pub(super) fn opens_none_of_the_first(
    snapshot: &(impl Snapshot + ?Sized),
    seal: &Seal,
    key: KeyId,
) -> Result<bool> {
    let (mut found, mut opens) = (false, false);
    for table in tables() {
        let scanned = each_value(snapshot, table, Some(TRIED), &mut |place, value| {
            if key_of(value) == Some(key) {
                found = true;
                opens = seal.open(table, place, value).is_ok();
            }
            if opens { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if_whole(scanned)?;
        if opens {
            return Ok(false);
        }
    }
    Ok(found)
}

/// Returns the key that one of the first records of each table names, if any does.
pub(super) fn first_key(snapshot: &(impl Snapshot + ?Sized)) -> Result<Option<KeyId>> {
    let mut found = None;
    for table in tables() {
        let scanned = each_value(snapshot, table, Some(TRIED), &mut |_, value| {
            found = key_of(value);
            if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if_whole(scanned)?;
        if found.is_some() {
            break;
        }
    }
    Ok(found)
}

/// Returns `true` if the store has no entry at all. A table that is damaged is not empty.
pub(super) fn is_empty(snapshot: &(impl Snapshot + ?Sized)) -> Result<bool> {
    for table in Table::ALL {
        let found = if_whole(snapshot.has_any(&Range::of_table(table, None)))?;
        if found != Some(false) {
            return Ok(false);
        }
    }
    Ok(true)
}

// Returns `None` if the table is damaged. The rest of it is not seen then, and the store is opened
// nevertheless, so that it can be repaired.
fn if_whole<T>(scanned: Result<T>) -> Result<Option<T>> {
    match scanned {
        Err(Error::Corrupt { .. } | Error::Damaged { .. }) => Ok(None),
        scanned => scanned.map(Some),
    }
}

fn tables() -> impl Iterator<Item = Table> {
    Table::ALL.into_iter().filter(|table| check::has_records(*table))
}

fn each_value(
    snapshot: &(impl Snapshot + ?Sized),
    table: Table,
    limit: Option<usize>,
    visit: &mut crate::Visit<'_>,
) -> Result<()> {
    snapshot.scan(table, &EVERYTHING, Order::Ascending, limit, visit)
}
