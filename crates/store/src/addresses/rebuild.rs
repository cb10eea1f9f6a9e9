//! Making the index of an environment anew, in small transactions.
//!
//! New groups are made behind those that are there, and get every address. Then the others are
//! removed, each in one transaction. So a search finds each address all the time, and some of them
//! twice. An interruption leaves an index that is sound, and another rebuild removes the rest.

use std::ops::{Bound, ControlFlow};

use domain::ids::EnvironmentId;
use domain::topic::fold;

use super::row::Row;
use super::trigrams::ROWS;
use super::{Head, Tail, put_trigrams, row, row_key, take_apart};
use crate::layout::{self, AddressPart};
use crate::record::corrupt;
use crate::{
    KeyRange, OnRows, Order, Range, ReadRecords, Result, Snapshot, Store, Table, Transaction,
    WriteRecords, if_readable,
};

/// Number of addresses that one transaction adds.
const ADDRESSES: usize = 500;

/// Number of keys that one transaction looks at.
const KEYS: usize = 1_024;

/// No group has this number or a larger one. A key that says so is damaged.
const FAR: u32 = 1 << 31;

/// Makes the index of an environment anew from the addresses of its subscribers. Searches and
/// changes of subscribers go on meanwhile. Ends if `progress` breaks.
///
/// # Errors
///
/// [`Corrupt`](crate::Error::Corrupt), if a scan does not come further.
pub fn rebuild(
    store: &dyn Store,
    environment: EnvironmentId,
    progress: &mut OnRows<'_>,
) -> Result<ControlFlow<()>> {
    let first = crate::write_in(store, environment, |txn| begin(txn, environment))?;
    let emails = layout::emails(environment).range();
    let added = step_through(&emails, ADDRESSES, progress, |keys| {
        write(store, environment, keys, |txn, found| add(txn, environment, found))
    })?;
    if added.is_break() {
        return Ok(added);
    }
    let rows = layout::address_rows(environment).range();
    let removed = step_through(&rows, 1, progress, |keys| {
        write(store, environment, keys, |txn, found| remove_group(txn, environment, first, found))
    })?;
    if removed.is_break() {
        return Ok(removed);
    }
    let all = layout::addresses(environment).range();
    step_through(&all, KEYS, progress, |keys| {
        write(store, environment, keys, |txn, found| remove_others(txn, first, found))
    })
}

/// The next keys of a range.
struct Keys {
    table: Table,
    range: KeyRange,
    limit: usize,
}

// Calls `step` with the next keys of `range`, until it returns no last key.
fn step_through<R>(
    range: &Range<R>,
    limit: usize,
    progress: &mut OnRows<'_>,
    mut step: impl FnMut(&Keys) -> Result<(u64, Option<Vec<u8>>)>,
) -> Result<ControlFlow<()>> {
    let mut keys = Keys { table: range.table(), range: range.bytes().clone(), limit };
    let mut behind: Option<Vec<u8>> = None;
    loop {
        let (rows, last) = step(&keys)?;
        let Some(last) = last else { return Ok(ControlFlow::Continue(())) };
        if progress(Table::Addresses, rows).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        if behind.is_some_and(|behind| last <= behind) {
            return Err(corrupt(range.table(), "a scan does not come further"));
        }
        keys.range.0 = Bound::Excluded(last.clone());
        behind = Some(last);
    }
}

// Runs `body` with the next keys in a transaction. Returns their number, and the key that it returns.
fn write(
    store: &dyn Store,
    environment: EnvironmentId,
    keys: &Keys,
    mut body: impl FnMut(&mut dyn Transaction, &[Vec<u8>]) -> Result<Option<Vec<u8>>>,
) -> Result<(u64, Option<Vec<u8>>)> {
    crate::write_in(store, environment, |txn| {
        let found = scan(&*txn, keys)?;
        Ok((found.len() as u64, body(txn, &found)?))
    })
}

fn scan(snapshot: &(impl Snapshot + ?Sized), keys: &Keys) -> Result<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    snapshot.scan(keys.table, &keys.range, Order::Ascending, Some(keys.limit), &mut |key, _| {
        found.push(key.to_vec());
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

// Ends the last group, however few rows it has, and begins another one. Returns its number.
fn begin<T: Transaction + ?Sized>(txn: &mut T, environment: EnvironmentId) -> Result<u32> {
    let first = last_group(&*txn, environment)?.map_or(0, |group| group + 1);
    if let Some(head) = if_readable(Head::find(&*txn, environment))?.flatten()
        && head.group + 1 == first
    {
        end_group(txn, environment, head)?;
    }
    let head = Head { group: first, rows: 1 };
    Tail { environment, head, row: Row::default() }.put(txn)?;
    Ok(first)
}

fn last_group<T: Transaction + ?Sized>(txn: &T, environment: EnvironmentId) -> Result<Option<u32>> {
    let (rows, mut last) = (layout::address_rows(environment).range(), None);
    txn.scan_bytes(&rows, Order::Descending, None, &mut |key, _| {
        last = group_of(key).filter(|group| *group < FAR);
        if last.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(last)
}

fn end_group<T: Transaction + ?Sized>(
    txn: &mut T,
    environment: EnvironmentId,
    head: Head,
) -> Result<()> {
    let mut rows = Vec::new();
    for number in 0..ROWS {
        let place = (head.group, number);
        let found = if_readable(row(&*txn, environment, place))?;
        if found.is_none() {
            txn.put_bytes(&row_key(environment, place), &Row::default().to_bytes())?;
        }
        rows.push(found.unwrap_or_default());
    }
    put_trigrams(txn, environment, head.group, &rows)
}

// Adds the addresses in these entries of subscribers. Returns the last of the entries.
fn add<T: Transaction + ?Sized>(
    txn: &mut T,
    environment: EnvironmentId,
    entries: &[Vec<u8>],
) -> Result<Option<Vec<u8>>> {
    let mut tail = Tail::find(&*txn, environment)?;
    for entry in entries {
        if let Some((email, subscriber)) = layout::subscriber_of_email(environment, entry) {
            tail.push(txn, fold(email).as_bytes(), subscriber)?;
        }
    }
    tail.put(txn)?;
    Ok(entries.last().cloned())
}

// Removes the group of the next row, if it comes before the first new one. Returns the last key of
// that group.
fn remove_group<T: Transaction + ?Sized>(
    txn: &mut T,
    environment: EnvironmentId,
    first: u32,
    next: &[Vec<u8>],
) -> Result<Option<Vec<u8>>> {
    let Some(key) = next.first() else { return Ok(None) };
    let Some(group) = group_of(key) else { return Ok(Some(key.clone())) };
    if group >= first {
        return Ok(None);
    }
    take_apart(txn, environment, group)?;
    let last = row_key(environment, (group, ROWS - 1)).as_bytes().to_vec();
    Ok(Some(last.max(key.clone())))
}

// Removes what is in no group that is in use. Returns the last of the keys.
fn remove_others<T: Transaction + ?Sized>(
    txn: &mut T,
    first: u32,
    keys: &[Vec<u8>],
) -> Result<Option<Vec<u8>>> {
    for key in keys {
        let is_used = match layout::read_address_part(key) {
            Some((_, AddressPart::Head)) => true,
            Some((_, AddressPart::Row { group, .. } | AddressPart::Trigrams { group, .. })) => {
                (first..FAR).contains(&group)
            }
            None => false,
        };
        if !is_used {
            txn.delete(Table::Addresses, key)?;
        }
    }
    Ok(keys.last().cloned())
}

fn group_of(key: &[u8]) -> Option<u32> {
    match layout::read_address_part(key) {
        Some((_, AddressPart::Row { group, .. })) => Some(group),
        Some((_, AddressPart::Head | AddressPart::Trigrams { .. })) | None => None,
    }
}
