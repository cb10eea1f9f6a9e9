//! The indexes that find subscribers by a part of their e-mail address or of their name, in any case.
//!
//! Folded texts lie in rows of up to a page, and 64 rows are a group. New texts go to the last row.
//! When the last group is full, it gets trigrams: a search reads those rows of it that may have all
//! trigrams of the part, and every row of the last group. A part of one or two bytes has no trigram,
//! and is searched for in all rows.
//!
//! A text that is removed leaves its row. The trigrams stay, so that they may name rows in vain. A
//! group that has lost half of its texts is taken apart: the others are added anew. It is looked at
//! when one of its rows falls below a quarter, so that at least a twelfth of all rows is in use.
//!
//! Many people have the same name. So a tag precedes each name, which follows from the id of the
//! subscriber: a removal finds the row of one person among those of all with the name.

mod compare;
mod rebuild;
mod row;
mod search;
#[cfg(test)]
mod tests;
mod trigrams;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use domain::contact::Email;
use domain::folded::{FoldedPart, fold};
use domain::ids::{EnvironmentId, InternalSubscriberId};
use uuid::Uuid;

pub(crate) use self::compare::compare;
pub use self::rebuild::rebuild;
use self::row::{ROOM, Row, View};
use self::search::{visit_all_rows, visit_rows};
use self::trigrams::{ROWS, Trigrams};
use crate::layout::{IndexPart, SearchedField, TextIndex};
use crate::record::corrupt;
use crate::{Bytes, Key, ReadRecords, Result, Snapshot, Transaction, WriteRecords};

/// So many texts, or more, are looked for in one pass through all rows. A search for one of them reads all
/// rows of the last group, and about three pages of trigrams of each other group.
const TOGETHER: usize = 16;

/// A text by whose parts a subscriber is found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IndexedText {
    index: TextIndex,
    /// The folded text, and the tag before it if it has one.
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
        let folded = fold(name);
        let plain = folded.chars().filter(|letter| !letter.is_ascii_control());
        Self { index, text: tag(subscriber).into_iter().chain(plain).collect(), subscriber }
    }

    // The part by which the row of the text is found. What people share makes a search longer.
    fn distinctive_part(&self) -> &str {
        match self.index.field {
            SearchedField::Email => &self.text,
            SearchedField::Name => self.text.get(..TAG).unwrap_or_default(),
        }
    }

    /// Returns `true` if the text is in this index.
    pub(crate) fn is_of(&self, index: TextIndex) -> bool {
        self.index == index
    }
}

/// Length of the tag of a name.
const TAG: usize = 5;

// Control characters, which no name has: five bits of the id each. The last bits of an id are random.
fn tag(subscriber: InternalSubscriberId) -> [char; TAG] {
    let id = Uuid::from(subscriber).as_u128();
    [0, 5, 10, 15, 20].map(|shift| match u8::try_from(id >> shift & 31) {
        Ok(0) | Err(_) => '\x7f',
        Ok(bits) => char::from(bits),
    })
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

    fn push<T: Transaction + ?Sized>(
        &mut self,
        txn: &mut T,
        text: &[u8],
        subscriber: InternalSubscriberId,
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
        Ok(())
    }

    // Goes on with another group, or with the same one if half of it is free.
    fn close<T: Transaction + ?Sized>(&mut self, txn: &mut T) -> Result<()> {
        let Head { group, .. } = self.head;
        let rows = rows(txn, self.index, group)?;
        if is_half_empty(&rows) {
            take_apart(txn, self.index, group)?;
            (self.head.rows, self.row) = (1, Row::default());
            return self.push_all(txn, &rows);
        }
        put_trigrams(txn, self.index, group, &rows)?;
        let full = || corrupt(self.index.field.table(), "the last group has no next one");
        self.head = Head { group: group.checked_add(1).ok_or_else(full)?, rows: 1 };
        self.row = Row::default();
        Ok(())
    }

    fn push_all<T: Transaction + ?Sized>(&mut self, txn: &mut T, rows: &[Row]) -> Result<()> {
        let mut entries = rows.iter().flat_map(|row| row.view().entries());
        entries.try_for_each(|(text, subscriber)| self.push(txn, text, subscriber))
    }

    fn put<T: Transaction + ?Sized>(&self, txn: &mut T) -> Result<()> {
        let Self { index, head, row } = self;
        let key = index.part(IndexPart::Head);
        txn.put_bytes(&key, &head.bytes())?;
        txn.put_bytes(&row_key(*index, (head.group, head.rows - 1)), &row.to_bytes())
    }
}

/// Adds the texts of a subscriber.
pub(crate) fn add_all<T: Transaction + ?Sized>(txn: &mut T, texts: &[IndexedText]) -> Result<()> {
    if texts.len() > 1 {
        let indexes = || texts.iter().map(|text| text.index);
        txn.prefetch(&mut indexes().map(|index| index.part(IndexPart::Head).into_parts()))?;
        let mut rows = Vec::with_capacity(texts.len());
        for index in indexes() {
            let last = Head::find(&*txn, index)?.map(|head| (head.group, head.rows - 1));
            rows.extend(last.map(|place| row_key(index, place).into_parts()));
        }
        txn.prefetch(&mut rows.into_iter())?;
    }
    texts.iter().try_for_each(|text| add(txn, text))
}

/// Adds a text.
pub(crate) fn add<T: Transaction + ?Sized>(txn: &mut T, text: &IndexedText) -> Result<()> {
    let IndexedText { index, text, subscriber } = text;
    let mut tail = Tail::find(&*txn, *index)?;
    tail.push(txn, text.as_bytes(), *subscriber)?;
    tail.put(txn)
}

/// What records lose and get of the texts by which they are found. The texts that are lost in a transaction
/// are looked for together.
#[derive(Debug, Default)]
#[must_use = "the index is as it was until the changes are made"]
pub struct TextChanges {
    lost: Vec<IndexedText>,
    new: Vec<IndexedText>,
}

impl TextChanges {
    /// Adds those of a record that has the texts `after` in place of `before`.
    pub(crate) fn note(&mut self, before: Vec<IndexedText>, after: Vec<IndexedText>) {
        let is_in = |texts: &[IndexedText], text: &IndexedText| texts.contains(text);
        self.lost.extend(before.iter().filter(|text| !is_in(&after, text)).cloned());
        self.new.extend(after.into_iter().filter(|text| !is_in(&before, text)));
    }

    /// Makes the changes.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub fn make<T: Transaction + ?Sized>(self, txn: &mut T) -> Result<()> {
        remove_all(txn, &self.lost)?;
        self.new.iter().try_for_each(|text| add(txn, text))
    }
}

/// Removes texts, if they are there. A rebuild that was interrupted leaves some in two rows.
pub(crate) fn remove_all<T: Transaction + ?Sized>(
    txn: &mut T,
    texts: &[IndexedText],
) -> Result<()> {
    let mut indexes: BTreeMap<TextIndex, Vec<&IndexedText>> = BTreeMap::new();
    for text in texts {
        indexes.entry(text.index).or_default().push(text);
    }
    indexes.iter().try_for_each(|(index, texts)| remove_from(txn, *index, texts))
}

fn remove_from<T: Transaction + ?Sized>(
    txn: &mut T,
    index: TextIndex,
    texts: &[&IndexedText],
) -> Result<()> {
    let all: BTreeSet<_> = texts.iter().map(|it| (it.subscriber, it.text.as_bytes())).collect();
    // Ids differ in most comparisons, and a set costs more than a few of them.
    let is_lost = |(text, subscriber): (&[u8], InternalSubscriberId)| {
        if texts.len() < TOGETHER {
            return texts
                .iter()
                .any(|it| it.subscriber == subscriber && it.text.as_bytes() == text);
        }
        all.contains(&(subscriber, text))
    };
    let mut found = BTreeMap::new();
    let visit = &mut |at: Place, row: View<'_>| {
        if row.entries().any(is_lost) {
            found.insert(at, Row::from(row));
        }
        ControlFlow::Continue(())
    };
    if texts.len() < TOGETHER {
        for text in texts {
            let part = FoldedPart::of_folded(text.distinctive_part());
            _ = visit_rows(&*txn, index, &part, visit)?;
        }
    } else {
        _ = visit_all_rows(&*txn, index, visit)?;
    }
    let Some(head) = Head::find(&*txn, index)? else { return Ok(()) };
    let mut falling = BTreeSet::new();
    for (at, mut row) in found {
        let before = row.view().len();
        row.remove(is_lost);
        txn.put_bytes(&row_key(index, at), &row.to_bytes())?;
        let falls = (row.view().len() + 1..=before).contains(&(ROOM / 4));
        falling.extend((at.0 < head.group && falls).then_some(at.0));
    }
    falling.into_iter().try_for_each(|group| spread(txn, index, group))
}

// Adds the texts of a group anew, if half of it is free.
fn spread<T: Transaction + ?Sized>(txn: &mut T, index: TextIndex, group: u32) -> Result<()> {
    let rows = rows(txn, index, group)?;
    if is_half_empty(&rows) {
        take_apart(txn, index, group)?;
        let mut tail = Tail::find(&*txn, index)?;
        tail.push_all(txn, &rows)?;
        tail.put(txn)?;
    }
    Ok(())
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
    // No text has a control character. It would be found in a tag, or between two texts.
    if part.as_bytes().iter().any(u8::is_ascii_control) {
        return Ok(());
    }
    visit_rows(snapshot, index, part, &mut |_, row| row.find(part, visit)).map(drop)
}

/// Group and number of a row.
type Place = (u32, u8);

fn row_key(index: TextIndex, (group, row): Place) -> Key<Bytes> {
    index.part(IndexPart::Row { group, row: row.into() })
}

fn page_key(index: TextIndex, page: u8, group: u32) -> Key<Bytes> {
    index.part(IndexPart::Trigrams { page: page.into(), group })
}

fn row(snapshot: &(impl Snapshot + ?Sized), index: TextIndex, place: Place) -> Result<Row> {
    let mut found = None;
    snapshot.get_bytes(&row_key(index, place), &mut |bytes| {
        found = View::read(bytes).map(Row::from);
    })?;
    found.ok_or_else(|| damaged_row(index))
}

fn rows(snapshot: &(impl Snapshot + ?Sized), index: TextIndex, group: u32) -> Result<Vec<Row>> {
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
fn take_apart<T: Transaction + ?Sized>(txn: &mut T, index: TextIndex, group: u32) -> Result<()> {
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
