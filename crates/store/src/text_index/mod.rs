//! The indexes that find subscribers by a part of their e-mail address or of their name, in any case.
//!
//! Folded texts lie in rows of up to a page, and 64 rows are a group. New texts go to the last row.
//! When the last group is full, it gets trigrams: a search reads those rows of it that may have all
//! trigrams of the part, and every row of the last group. A part of one or two bytes has no trigram,
//! and is searched for in all rows.
//!
//! A text that is removed leaves its row, which its places name. The trigrams stay, so that they may name
//! rows in vain. A group that has lost half of its texts is taken apart: the others are added anew. A removal
//! looks at a group when a row of it falls below a quarter, and when one becomes empty.

mod compare;
mod places;
mod rebuild;
mod remove;
mod row;
mod search;
#[cfg(test)]
mod tests;
mod trigrams;

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use domain::contact::Email;
use domain::folded::{FoldedPart, fold};
use domain::ids::{EnvironmentId, InternalSubscriberId};

pub(crate) use self::compare::compare;
pub(crate) use self::places::add_next as add_next_places;
pub use self::rebuild::rebuild;
pub(crate) use self::remove::remove_all;
use self::row::{ROOM, Row, View};
use self::search::visit_rows;
use self::trigrams::{ROWS, Trigrams};
use crate::layout::{IndexPart, SearchedField, TextIndex};
use crate::record::corrupt;
use crate::{
    Bytes, Key, ReadRecords, Result, Snapshot, Table, Transaction, WriteRecords, backfill,
};

/// A text by whose parts a subscriber is found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IndexedText {
    index: TextIndex,
    /// The folded text.
    text: String,
    subscriber: InternalSubscriberId,
}

impl IndexedText {
    /// The e-mail address of a subscriber.
    pub fn email(
        environment: EnvironmentId,
        email: &Email,
        subscriber: InternalSubscriberId,
    ) -> Self {
        let index = TextIndex { field: SearchedField::Email, environment };
        Self { index, text: fold(email.as_str()), subscriber }
    }

    /// The name of a subscriber.
    pub fn name(environment: EnvironmentId, name: &str, subscriber: InternalSubscriberId) -> Self {
        let index = TextIndex { field: SearchedField::Name, environment };
        let text = fold(name).chars().filter(|letter| !letter.is_ascii_control()).collect();
        Self { index, text, subscriber }
    }

    /// Returns `true` if a text of an older format may lack places while rows are put that it did not have.
    fn may_lack_places(&self) -> bool {
        backfill::PLACED == self.index.field
    }

    /// Returns `true` if the text is in this index.
    pub(crate) fn is_of(&self, index: TextIndex) -> bool {
        self.index == index
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
    fn find(snapshot: &(impl Snapshot + ?Sized), index: TextIndex) -> Result<Option<Self>> {
        let mut head = None;
        let key = index.part(IndexPart::Head);
        snapshot.get_bytes(&key, &mut |bytes| head = Some(Self::read(bytes)))?;
        let damaged = || corrupt(index.field.table(), "it is not a head");
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

/// The end of the index, which takes new texts.
struct Tail {
    index: TextIndex,
    head: Head,
    /// The last row.
    row: Row,
}

impl Tail {
    fn find(snapshot: &(impl Snapshot + ?Sized), index: TextIndex) -> Result<Self> {
        let Some(head) = Head::find(snapshot, index)? else {
            let head = Head { group: 0, rows: 1 };
            return Ok(Self { index, head, row: Row::default() });
        };
        let row = row(snapshot, index, (head.group, head.rows - 1))?;
        Ok(Self { index, head, row })
    }

    // Adds a text. Places of it in the removed group `left` are given up.
    fn push<T: Transaction + ?Sized>(
        &mut self,
        txn: &mut T,
        (text, subscriber): (&[u8], InternalSubscriberId),
        left: Option<u32>,
    ) -> Result<()> {
        while !self.row.push(text, subscriber) {
            self.put(txn)?;
            if self.head.rows == ROWS {
                self.close(txn)?;
            } else {
                self.head.rows += 1;
                self.row = Row::default();
            }
        }
        let place = (self.head.group, self.head.rows - 1);
        places::add(txn, self.index, (subscriber, place), left)
    }

    // Goes on with another group. If half of this one is free, the other one gets its texts.
    fn close<T: Transaction + ?Sized>(&mut self, txn: &mut T) -> Result<()> {
        let Head { group, .. } = self.head;
        let rows = rows(txn, self.index, group)?;
        let full = || corrupt(self.index.field.table(), "the last group has no next one");
        self.head = Head { group: group.checked_add(1).ok_or_else(full)?, rows: 1 };
        self.row = Row::default();
        if !is_half_empty(&rows) {
            return put_trigrams(txn, self.index, group, &rows);
        }
        delete_group(txn, self.index, group)?;
        self.push_all(txn, group, &rows)
    }

    // Adds the texts of the rows of a group that was taken apart.
    fn push_all<T: Transaction + ?Sized>(
        &mut self,
        txn: &mut T,
        group: u32,
        rows: &[Row],
    ) -> Result<()> {
        let entries = || rows.iter().flat_map(|row| row.view().entries());
        places::prefetch(&*txn, self.index, entries().map(|(_, subscriber)| subscriber))?;
        entries().try_for_each(|entry| self.push(txn, entry, Some(group)))
    }

    fn put<T: Transaction + ?Sized>(&self, txn: &mut T) -> Result<()> {
        let Self { index, head, row } = self;
        let key = index.part(IndexPart::Head);
        txn.put_bytes(&key, &head.bytes())?;
        txn.put_bytes(&row_key(*index, (head.group, head.rows - 1)), &row.to_bytes())
    }
}

/// Adds texts.
pub(crate) fn add_all<T: Transaction + ?Sized>(txn: &mut T, texts: &[IndexedText]) -> Result<()> {
    // Most records have no indexed texts.
    if texts.is_empty() {
        return Ok(());
    }
    let indexes: BTreeSet<_> = texts.iter().map(|text| text.index).collect();
    let heads = indexes.iter().map(|index| index.part(IndexPart::Head).into_parts());
    txn.prefetch(&mut heads.chain(places_of(texts)))?;
    let mut rows = Vec::with_capacity(indexes.len());
    for index in &indexes {
        let last = Head::find(&*txn, *index)?.map(|head| (head.group, head.rows - 1));
        rows.extend(last.map(|place| row_key(*index, place).into_parts()));
    }
    txn.prefetch(&mut rows.into_iter())?;
    for index in indexes {
        let mut tail = Tail::find(&*txn, index)?;
        for text in texts.iter().filter(|text| text.is_of(index)) {
            tail.push(txn, (text.text.as_bytes(), text.subscriber), None)?;
        }
        tail.put(txn)?;
    }
    Ok(())
}

// The keys of the places of these texts.
fn places_of(texts: &[IndexedText]) -> impl Iterator<Item = (Table, Vec<u8>)> {
    texts.iter().map(|text| places::key(text.index, text.subscriber).into_parts())
}

/// Texts that records lose, and texts that they get.
#[derive(Debug, Default)]
#[must_use = "the index is as it was until the changes are made"]
pub struct TextChanges {
    lost: Vec<IndexedText>,
    new: Vec<IndexedText>,
}

impl TextChanges {
    /// Adds the changes of a record whose texts were `before`, and are `after`.
    pub(crate) fn note(&mut self, before: Vec<IndexedText>, after: Vec<IndexedText>) {
        self.lost.extend(before.iter().filter(|text| !after.contains(text)).cloned());
        self.new.extend(after.into_iter().filter(|text| !before.contains(text)));
    }

    /// Makes the changes.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub fn make<T: Transaction + ?Sized>(self, txn: &mut T) -> Result<()> {
        remove_all(txn, &self.lost)?;
        add_all(txn, &self.new)
    }
}

/// Called with subscribers, until it breaks.
pub type VisitSubscriber<'v> = dyn FnMut(InternalSubscriberId) -> ControlFlow<()> + 'v;

/// Calls `visit` with the subscribers whose texts have `part`, until it breaks. Each is found once or more
/// often.
pub fn find(
    snapshot: &(impl Snapshot + ?Sized),
    index: TextIndex,
    part: &FoldedPart,
    visit: &mut VisitSubscriber<'_>,
) -> Result<()> {
    // No text has a control character. NUL would be found between two texts.
    if part.as_bytes().iter().any(u8::is_ascii_control) {
        return Ok(());
    }
    visit_rows(snapshot, index, part, &mut |_, row| row.find(part, visit)).map(drop)
}

/// Group and number of a row.
type Place = (u32, u8);

fn row_key(index: TextIndex, (group, row): Place) -> Key<Bytes> {
    index.part(IndexPart::Row { group, row })
}

fn page_key(index: TextIndex, page: u8, group: u32) -> Key<Bytes> {
    index.part(IndexPart::Trigrams { page, group })
}

fn find_row(
    snapshot: &(impl Snapshot + ?Sized),
    index: TextIndex,
    place: Place,
) -> Result<Option<Row>> {
    let mut found = None;
    snapshot.get_bytes(&row_key(index, place), &mut |bytes| {
        found = Some(View::read(bytes).map(Row::from));
    })?;
    found.map(|row| row.ok_or_else(|| damaged_row(index))).transpose()
}

fn row(snapshot: &(impl Snapshot + ?Sized), index: TextIndex, place: Place) -> Result<Row> {
    find_row(snapshot, index, place)?.ok_or_else(|| damaged_row(index))
}

fn rows(snapshot: &(impl Snapshot + ?Sized), index: TextIndex, group: u32) -> Result<Vec<Row>> {
    snapshot.prefetch(&mut (0..ROWS).map(|number| row_key(index, (group, number)).into_parts()))?;
    (0..ROWS).map(|number| row(snapshot, index, (group, number))).collect()
}

fn is_half_empty(rows: &[Row]) -> bool {
    rows.iter().map(|row| row.view().len()).sum::<usize>() < ROOM * usize::from(ROWS) / 2
}

// Puts the trigrams of the rows of a group.
fn put_trigrams<T: Transaction + ?Sized>(
    txn: &mut T,
    index: TextIndex,
    group: u32,
    rows: &[Row],
) -> Result<()> {
    let trigrams = Trigrams::of(rows.iter().map(|row| row.view().text()));
    let mut pages = trigrams.pages();
    pages.try_for_each(|(page, words)| txn.put_bytes(&page_key(index, page, group), &words))
}

// Removes the rows and the trigrams of a group.
fn delete_group<T: Transaction + ?Sized>(txn: &mut T, index: TextIndex, group: u32) -> Result<()> {
    for row in 0..ROWS {
        txn.delete_key(&row_key(index, (group, row)))?;
    }
    for page in 0..=u8::MAX {
        txn.delete_key(&page_key(index, page, group))?;
    }
    Ok(())
}

fn damaged_row(index: TextIndex) -> crate::Error {
    corrupt(index.field.table(), "a row is missing, or is not a row of texts")
}
