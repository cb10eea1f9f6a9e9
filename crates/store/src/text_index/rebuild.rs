//! Making an index anew, in small transactions.
//!
//! New groups are made behind those that are there, and get every text. Then the others are removed, each
//! in one transaction. So a search finds each text all the time, and some of them twice. An interruption
//! leaves an index that is sound, and another rebuild removes the rest. Before a text is in two rows, it has
//! the place of the first one, and at the end the places name the new groups only.

use std::ops::ControlFlow;

use domain::ids::InternalSubscriberId;
use domain::subscriber::Subscriber;

use super::row::Row;
use super::trigrams::ROWS;
use super::{Head, Tail, delete_group, find_row, places, put_trigrams, row, row_key};
use crate::layout::{self, IndexPart, TextIndex};
use crate::record::{self, Record};
use crate::step::TableRebuild;
use crate::{
    OnRows, Order, Range, ReadRecords, Result, Store, Transaction, WriteRecords, batch,
    if_readable, write_in,
};

/// Number of subscribers whose texts one transaction adds.
const SUBSCRIBERS: usize = 500;

/// Number of rows whose texts get places in one transaction.
const PLACED: usize = 8;

/// Number of keys that one transaction looks at.
const KEYS: usize = 1_024;

/// No group has this number or a larger one. A key that says so is damaged.
const FAR: u32 = 1 << 31;

/// Makes an index anew from the subscribers. Searches and changes of subscribers go on meanwhile. Ends if
/// `progress` breaks.
///
/// # Errors
///
/// [`Corrupt`](crate::Error::Corrupt), if a table is out of order.
pub fn rebuild(
    store: &dyn Store,
    index: TextIndex,
    progress: &mut OnRows<'_>,
) -> Result<ControlFlow<()>> {
    let first = write_in(store, index.environment, |txn| begin(txn, index))?;
    let rebuild =
        TableRebuild { store, environment: index.environment, table: index.field.table() };
    let placed = through(&rebuild, (index.rows().range(), PLACED), progress, |txn, keys| {
        add_places(txn, index, first, keys)
    })?;
    if placed.is_break() {
        return Ok(placed);
    }
    let subscribers = layout::all_subscribers(index.environment).range();
    let added = through(&rebuild, (subscribers, SUBSCRIBERS), progress, |txn, keys| {
        add_texts(txn, index, keys)
    })?;
    if added.is_break() {
        return Ok(added);
    }
    let removed = through(&rebuild, (index.rows().range(), 1), progress, |txn, keys| {
        remove_group(txn, index, first, keys)
    })?;
    if removed.is_break() {
        return Ok(removed);
    }
    through(&rebuild, (index.all().range(), KEYS), progress, |txn, keys| {
        remove_others(txn, index, first, keys)
    })
}

// Calls `step` with the next `limit` keys of `range`, in a transaction each, until it returns no last key.
fn through<R>(
    rebuild: &TableRebuild<'_>,
    (range, limit): (Range<R>, usize),
    progress: &mut OnRows<'_>,
    mut step: impl FnMut(&mut dyn Transaction, &[Vec<u8>]) -> Result<Option<Vec<u8>>>,
) -> Result<ControlFlow<()>> {
    rebuild.run(range, progress, |txn, range| {
        let (entries, mut keys) = ((range.table(), range.bytes(), Order::Ascending), Vec::new());
        batch::visit(&*txn, entries, limit, &mut |key, _| {
            keys.push(key.to_vec());
            ControlFlow::Continue(())
        })?;
        let last = step(txn, &keys)?;
        Ok(last.map_or((0, None), |last| (keys.len() as u64, Some(range.clone().resumed(&last)))))
    })
}

// Ends the last group, however few rows it has, and begins another one. Returns its number.
fn begin<T: Transaction + ?Sized>(txn: &mut T, index: TextIndex) -> Result<u32> {
    let last = last_group(&*txn, index)?;
    let head = if_readable(Head::find(&*txn, index))?.flatten();
    let head = head.filter(|head| head.group < FAR && Some(head.group) >= last);
    let first = head.map(|head| head.group).max(last).map_or(0, |group| group + 1);
    if let Some(head) = head {
        end_group(txn, index, head)?;
    }
    let head = Head { group: first, rows: 1 };
    Tail { index, head, row: Row::default() }.put(txn)?;
    Ok(first)
}

fn last_group<T: Transaction + ?Sized>(txn: &T, index: TextIndex) -> Result<Option<u32>> {
    let known = |key: &[u8]| group_of_row(index, key).filter(|group| *group < FAR);
    txn.first_known(&index.rows().range(), Order::Descending, known)
}

fn end_group<T: Transaction + ?Sized>(txn: &mut T, index: TextIndex, head: Head) -> Result<()> {
    let mut rows = Vec::new();
    for number in 0..ROWS {
        let place = (head.group, number);
        let found = if_readable(row(&*txn, index, place))?;
        if found.is_none() {
            txn.put_bytes(&row_key(index, place), &Row::default().to_bytes())?;
        }
        rows.push(found.unwrap_or_default());
    }
    put_trigrams(txn, index, head.group, &rows)
}

// Adds the places of the texts in these rows, up to the first new group. Returns the last of the keys.
fn add_places(
    txn: &mut dyn Transaction,
    index: TextIndex,
    first: u32,
    keys: &[Vec<u8>],
) -> Result<Option<Vec<u8>>> {
    for key in keys {
        let Some(IndexPart::Row { group, row }) = index.read(key) else { continue };
        if group >= first {
            return Ok(None);
        }
        places::add_row(txn, index, (group, row))?;
    }
    Ok(keys.last().cloned())
}

// Adds the texts of the subscribers under these keys. Returns the last of the keys.
fn add_texts<T: Transaction + ?Sized>(
    txn: &mut T,
    index: TextIndex,
    keys: &[Vec<u8>],
) -> Result<Option<Vec<u8>>> {
    let bytes: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let mut tail = Tail::find(&*txn, index)?;
    let subscribers = record::find_readable::<Subscriber>(&*txn, &bytes)?;
    places::prefetch(&*txn, index, subscribers.iter().flatten().map(|subscriber| subscriber.id))?;
    for subscriber in subscribers.into_iter().flatten() {
        for text in subscriber.texts().iter().filter(|text| text.is_of(index)) {
            tail.push(txn, (text.text.as_bytes(), text.subscriber), None)?;
        }
    }
    tail.put(txn)?;
    Ok(keys.last().cloned())
}

// Removes the group of the next row, if it comes before the first new one. Returns the last key of
// that group.
fn remove_group<T: Transaction + ?Sized>(
    txn: &mut T,
    index: TextIndex,
    first: u32,
    next: &[Vec<u8>],
) -> Result<Option<Vec<u8>>> {
    let Some(key) = next.first() else { return Ok(None) };
    let Some(group) = group_of_row(index, key) else { return Ok(Some(key.clone())) };
    if group >= first {
        return Ok(None);
    }
    delete_group(txn, index, group)?;
    let last = row_key(index, (group, ROWS - 1)).as_bytes().to_vec();
    Ok(Some(last.max(key.clone())))
}

// Removes the rows, trigrams and places that are in no group in use. Returns the key behind which the removal
// goes on. That is behind all rows in use, since other operations add rows as fast as a step looks at them.
fn remove_others<T: Transaction + ?Sized>(
    txn: &mut T,
    index: TextIndex,
    first: u32,
    keys: &[Vec<u8>],
) -> Result<Option<Vec<u8>>> {
    let used = first..FAR;
    let places = keys.iter().filter(|key| matches!(index.read(key), Some(IndexPart::Places(_))));
    txn.prefetch(&mut places.map(|key| (index.field.table(), key.clone())))?;
    for key in keys {
        let is_used = match index.read(key) {
            Some(IndexPart::Head) => true,
            Some(IndexPart::Row { group, .. } | IndexPart::Trigrams { group, .. }) => {
                used.contains(&group)
            }
            Some(IndexPart::Places(subscriber)) => keep_new_places(txn, index, first, subscriber)?,
            None => false,
        };
        if !is_used {
            txn.delete(index.field.table(), key)?;
        }
    }
    let last = keys.last().map(|key| match group_of_row(index, key) {
        Some(group) if used.contains(&group) => {
            index.part(IndexPart::Row { group: FAR - 1, row: u8::MAX }).as_bytes().to_vec()
        }
        Some(_) | None => key.clone(),
    });
    Ok(last)
}

// Removes the places in groups before the first new one. Where the head and all rows were lost, the numbers of
// new groups are those of older ones, so that a text may have an older place beside its own. Returns `false` if
// no place is left.
fn keep_new_places<T: Transaction + ?Sized>(
    txn: &mut T,
    index: TextIndex,
    first: u32,
    subscriber: InternalSubscriberId,
) -> Result<bool> {
    let found = if_readable(places::find(&*txn, index, subscriber))?.flatten().unwrap_or_default();
    let mut new: Vec<_> = found.iter().filter(|(group, _)| *group >= first).copied().collect();
    if new.len() > 1 {
        let mut there = Vec::new();
        for place in new {
            let row = if_readable(find_row(&*txn, index, place))?.flatten().unwrap_or_default();
            let mut entries = row.view().entries();
            there.extend(entries.any(|(_, other)| other == subscriber).then_some(place));
        }
        new = there;
    }
    if !new.is_empty() && new != found {
        places::put(txn, index, subscriber, &new)?;
    }
    Ok(!new.is_empty())
}

fn group_of_row(index: TextIndex, key: &[u8]) -> Option<u32> {
    match index.read(key) {
        Some(IndexPart::Row { group, .. }) => Some(group),
        Some(IndexPart::Head | IndexPart::Trigrams { .. } | IndexPart::Places(_)) | None => None,
    }
}
