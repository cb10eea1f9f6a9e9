//! The index that finds subscribers by a part of their e-mail address, in any case.
//!
//! Folded addresses lie in rows of up to a page, and 64 rows are a group. New addresses go to the
//! last row. When the last group is full, it gets trigrams: a search reads those rows of it that
//! may have all trigrams of the part, and every row of the last group. A part of one or two bytes
//! has no trigram, and is searched for in all rows.
//!
//! An address that is removed leaves its row. The trigrams stay, so that they may name rows in
//! vain. A group that has lost half of its addresses is taken apart: the others are added anew. It
//! is looked at when one of its rows falls below a quarter, so that at least a twelfth of all rows
//! is in use.

mod compare;
mod rebuild;
mod row;
mod search;
#[cfg(test)]
mod tests;
mod trigrams;

use std::collections::BTreeSet;

use domain::contact::{Email, EmailPart};
use domain::ids::{EnvironmentId, InternalSubscriberId};
use domain::topic::fold;

pub(crate) use self::compare::compare;
pub use self::rebuild::rebuild;
use self::row::{ROOM, Row, View};
use self::search::visit_rows;
use self::trigrams::{ROWS, Trigrams};
use crate::layout::{self, AddressPart};
use crate::record::corrupt;
use crate::{Bytes, Key, ReadRecords, Result, Snapshot, Table, Transaction, WriteRecords};

/// An address by whose parts a subscriber is found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    environment: EnvironmentId,
    folded: String,
    subscriber: InternalSubscriberId,
}

impl Address {
    /// The address of a subscriber.
    pub fn new(
        environment: EnvironmentId,
        email: &Email,
        subscriber: InternalSubscriberId,
    ) -> Self {
        Self { environment, folded: fold(email.as_str()), subscriber }
    }
}

/// The place of the last row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    group: u32,
    /// Number of rows of the group, from 1 on.
    rows: u8,
}

impl Head {
    fn find(
        snapshot: &(impl Snapshot + ?Sized),
        environment: EnvironmentId,
    ) -> Result<Option<Self>> {
        let mut head = None;
        let key = layout::address_part(environment, AddressPart::Head);
        snapshot.get_bytes(&key, &mut |bytes| head = Some(Self::read(bytes)))?;
        let damaged = || corrupt(Table::Addresses, "it is not a head");
        head.map(|head| head.ok_or_else(damaged)).transpose()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (group, rest) = bytes.split_first_chunk()?;
        let [rows] = rest else { return None };
        let head = Self { group: u32::from_le_bytes(*group), rows: *rows };
        (1..=ROWS).contains(rows).then_some(head)
    }

    fn bytes(self) -> Vec<u8> {
        [self.group.to_le_bytes().as_slice(), &[self.rows]].concat()
    }
}

/// The end of the index, which takes new addresses.
struct Tail {
    environment: EnvironmentId,
    head: Head,
    /// The last row.
    row: Row,
}

impl Tail {
    fn find(snapshot: &(impl Snapshot + ?Sized), environment: EnvironmentId) -> Result<Self> {
        let Some(head) = Head::find(snapshot, environment)? else {
            let head = Head { group: 0, rows: 1 };
            return Ok(Self { environment, head, row: Row::default() });
        };
        let row = row(snapshot, environment, (head.group, head.rows - 1))?;
        Ok(Self { environment, head, row })
    }

    fn push<T: Transaction + ?Sized>(
        &mut self,
        txn: &mut T,
        address: &[u8],
        subscriber: InternalSubscriberId,
    ) -> Result<()> {
        while !self.row.push(address, subscriber) {
            self.put(txn)?;
            if self.head.rows == ROWS {
                self.close(txn)?;
            } else {
                self.head.rows += 1;
                self.row = Row::default();
            }
        }
        Ok(())
    }

    // Goes on with another group, or with the same one if half of it is free.
    fn close<T: Transaction + ?Sized>(&mut self, txn: &mut T) -> Result<()> {
        let Head { group, .. } = self.head;
        let rows = rows(txn, self.environment, group)?;
        if is_half_empty(&rows) {
            take_apart(txn, self.environment, group)?;
            (self.head.rows, self.row) = (1, Row::default());
            return self.push_all(txn, &rows);
        }
        put_trigrams(txn, self.environment, group, &rows)?;
        let full = || corrupt(Table::Addresses, "the last group has no next one");
        self.head = Head { group: group.checked_add(1).ok_or_else(full)?, rows: 1 };
        self.row = Row::default();
        Ok(())
    }

    fn push_all<T: Transaction + ?Sized>(&mut self, txn: &mut T, rows: &[Row]) -> Result<()> {
        let mut entries = rows.iter().flat_map(|row| row.view().entries());
        entries.try_for_each(|(address, subscriber)| self.push(txn, address, subscriber))
    }

    fn put<T: Transaction + ?Sized>(&self, txn: &mut T) -> Result<()> {
        let Self { environment, head, row } = self;
        let key = layout::address_part(*environment, AddressPart::Head);
        txn.put_bytes(&key, &head.bytes())?;
        txn.put_bytes(&row_key(*environment, (head.group, head.rows - 1)), &row.to_bytes())
    }
}

/// Adds an address.
pub(crate) fn add<T: Transaction + ?Sized>(txn: &mut T, address: &Address) -> Result<()> {
    let mut tail = Tail::find(&*txn, address.environment)?;
    tail.push(txn, address.folded.as_bytes(), address.subscriber)?;
    tail.put(txn)
}

/// Removes an address, if it is there. A rebuild that was interrupted leaves it in two rows.
pub(crate) fn remove<T: Transaction + ?Sized>(txn: &mut T, address: &Address) -> Result<()> {
    let Address { environment, folded, subscriber } = address;
    let part = EmailPart::of_folded(folded);
    let mut places = Vec::new();
    let wanted = (folded.as_bytes(), *subscriber);
    visit_rows(&*txn, *environment, &part, &mut |at, row| {
        if row.entries().any(|entry| entry == wanted) {
            places.push((at, Row::from(row)));
        }
    })?;
    let Some(head) = Head::find(&*txn, *environment)? else { return Ok(()) };
    let mut falling = BTreeSet::new();
    for (at, mut row) in places {
        let before = row.view().len();
        row.remove(folded.as_bytes(), *subscriber);
        txn.put_bytes(&row_key(*environment, at), &row.to_bytes())?;
        let falls = (row.view().len() + 1..=before).contains(&(ROOM / 4));
        falling.extend((at.0 < head.group && falls).then_some(at.0));
    }
    falling.into_iter().try_for_each(|group| spread(txn, *environment, group))
}

// Adds the addresses of a group anew, if half of it is free.
fn spread<T: Transaction + ?Sized>(
    txn: &mut T,
    environment: EnvironmentId,
    group: u32,
) -> Result<()> {
    let rows = rows(txn, environment, group)?;
    if is_half_empty(&rows) {
        take_apart(txn, environment, group)?;
        let mut tail = Tail::find(&*txn, environment)?;
        tail.push_all(txn, &rows)?;
        tail.put(txn)?;
    }
    Ok(())
}

/// Calls `visit` with the subscribers of an environment whose addresses have `part`.
pub fn find(
    snapshot: &(impl Snapshot + ?Sized),
    environment: EnvironmentId,
    part: &EmailPart,
    visit: &mut dyn FnMut(InternalSubscriberId),
) -> Result<()> {
    // No address has a NUL. It would be found between two of them.
    if part.folded().contains(&0) {
        return Ok(());
    }
    visit_rows(snapshot, environment, part, &mut |_, row| row.find(part, visit))
}

/// Group and number of a row.
type Place = (u32, u8);

fn row_key(environment: EnvironmentId, (group, row): Place) -> Key<Bytes> {
    layout::address_part(environment, AddressPart::Row { group, row: row.into() })
}

fn page_key(environment: EnvironmentId, page: u8, group: u32) -> Key<Bytes> {
    layout::address_part(environment, AddressPart::Trigrams { page: page.into(), group })
}

fn row(
    snapshot: &(impl Snapshot + ?Sized),
    environment: EnvironmentId,
    place: Place,
) -> Result<Row> {
    let mut found = None;
    snapshot.get_bytes(&row_key(environment, place), &mut |bytes| {
        found = View::read(bytes).map(Row::from);
    })?;
    found.ok_or_else(damaged_row)
}

fn rows(
    snapshot: &(impl Snapshot + ?Sized),
    environment: EnvironmentId,
    group: u32,
) -> Result<Vec<Row>> {
    (0..ROWS).map(|number| row(snapshot, environment, (group, number))).collect()
}

fn is_half_empty(rows: &[Row]) -> bool {
    rows.iter().map(|row| row.view().len()).sum::<usize>() < ROOM * usize::from(ROWS) / 2
}

// Puts the trigrams of the rows of a group.
fn put_trigrams<T: Transaction + ?Sized>(
    txn: &mut T,
    environment: EnvironmentId,
    group: u32,
    rows: &[Row],
) -> Result<()> {
    let trigrams = Trigrams::of(rows.iter().map(|row| row.view().text()));
    let mut pages = trigrams.pages();
    pages.try_for_each(|(page, words)| txn.put_bytes(&page_key(environment, page, group), &words))
}

// Removes the rows and the trigrams of a group.
fn take_apart<T: Transaction + ?Sized>(
    txn: &mut T,
    environment: EnvironmentId,
    group: u32,
) -> Result<()> {
    for row in 0..ROWS {
        txn.delete_key(&row_key(environment, (group, row)))?;
    }
    for page in 0..=u8::MAX {
        txn.delete_key(&page_key(environment, page, group))?;
    }
    Ok(())
}

fn damaged_row() -> crate::Error {
    corrupt(Table::Addresses, "a row is missing, or is not a row of addresses")
}
