//! Removing texts from the rows that their places name.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use domain::folded::FoldedPart;
use domain::ids::InternalSubscriberId;

use super::row::{ROOM, View};
use super::search::{visit_all_rows, visit_rows};
use super::{
    Head, IndexedText, Place, Tail, delete_group, find_row, is_half_empty, places, places_of,
    row_key, rows,
};
use crate::layout::TextIndex;
use crate::record::corrupt;
use crate::{Result, Snapshot, Transaction, WriteRecords, backfill};

/// Number of texts without places from which on one pass through all rows looks for them. A search for one
/// of them reads all rows of the last group, and about three pages of trigrams of each other group.
const TOGETHER: usize = 16;

/// Removes texts.
///
/// # Errors
///
/// [`Corrupt`](crate::Error::Corrupt), if a text is not at its places.
pub(crate) fn remove_all<T: Transaction + ?Sized>(
    txn: &mut T,
    texts: &[IndexedText],
) -> Result<()> {
    let may_lack = texts.iter().any(IndexedText::may_lack_places);
    let mark = may_lack.then(|| backfill::mark().into_parts());
    txn.prefetch(&mut places_of(texts).chain(mark))?;
    let is_pending = may_lack && backfill::is_pending(&*txn)?;
    let mut indexes: BTreeMap<TextIndex, Lost<'_>> = BTreeMap::new();
    for text in texts {
        let lost = indexes.entry(text.index).or_default();
        lost.add(&*txn, text, is_pending && text.may_lack_places())?;
        txn.delete_key(&places::key(text.index, text.subscriber))?;
    }
    for (index, lost) in &mut indexes {
        lost.look_for_unplaced(&*txn, *index)?;
    }
    let rows = indexes.iter().flat_map(|(index, lost)| {
        lost.rows.keys().map(|place| row_key(*index, *place).into_parts())
    });
    txn.prefetch(&mut rows.collect::<Vec<_>>().into_iter())?;
    indexes.into_iter().try_for_each(|(index, lost)| lost.remove(txn, index))
}

/// Texts that an index loses.
#[derive(Default)]
struct Lost<'t> {
    /// The subscribers whose texts leave each row.
    rows: BTreeMap<Place, BTreeSet<InternalSubscriberId>>,
    /// The subscribers whose texts have known places.
    placed: BTreeSet<InternalSubscriberId>,
    /// Texts of a file of an older format, which have no places, or not all of them yet. The index may lack
    /// them.
    unplaced: BTreeSet<(InternalSubscriberId, &'t str)>,
}

impl<'t> Lost<'t> {
    // Notes the rows of a text, of which others may not be known yet if it `lacks_places`.
    fn add(
        &mut self,
        snapshot: &(impl Snapshot + ?Sized),
        text: &'t IndexedText,
        lacks_places: bool,
    ) -> Result<()> {
        let IndexedText { index, text, subscriber } = text;
        let places = places::find(snapshot, *index, *subscriber)?;
        if lacks_places || places.is_none() {
            self.unplaced.insert((*subscriber, text));
        }
        let Some(places) = places else { return Ok(()) };
        self.placed.insert(*subscriber);
        for place in places {
            self.rows.entry(place).or_default().insert(*subscriber);
        }
        Ok(())
    }

    fn look_for_unplaced(
        &mut self,
        snapshot: &(impl Snapshot + ?Sized),
        index: TextIndex,
    ) -> Result<()> {
        let Self { rows, unplaced, .. } = self;
        let visit = &mut |place: Place, row: View<'_>| {
            for (text, subscriber) in row.entries() {
                if str::from_utf8(text).is_ok_and(|text| unplaced.contains(&(subscriber, text))) {
                    rows.entry(place).or_default().insert(subscriber);
                }
            }
            ControlFlow::Continue(())
        };
        if unplaced.len() >= TOGETHER {
            return visit_all_rows(snapshot, index, visit).map(drop);
        }
        let mut parts = unplaced.iter().map(|(_, text)| FoldedPart::of_folded(text));
        parts.try_for_each(|part| visit_rows(snapshot, index, &part, visit).map(drop))
    }

    fn remove<T: Transaction + ?Sized>(mut self, txn: &mut T, index: TextIndex) -> Result<()> {
        let Some(head) = Head::find(&*txn, index)? else { return Ok(()) };
        let mut falling = None;
        for (place, lost) in self.rows {
            let Some(mut row) = find_row(&*txn, index, place)? else { continue };
            let before = row.view().len();
            row.view().entries().for_each(|(_, subscriber)| {
                if lost.contains(&subscriber) {
                    self.placed.remove(&subscriber);
                }
            });
            row.remove(&lost);
            txn.put_bytes(&row_key(index, place), &row.to_bytes())?;
            let after = row.view().len();
            let falls_below_a_quarter = after < ROOM / 4 && ROOM / 4 <= before;
            let falls = falls_below_a_quarter || row.view().is_empty();
            falling = falling.or((place.0 < head.group && falls).then_some(place.0));
        }
        if !self.placed.is_empty() {
            return Err(corrupt(index.field.table(), "a text is not at its places"));
        }
        // One group only: to add its texts anew changes the row of places of each. Another group is looked at
        // when a further row of it falls.
        falling.map_or(Ok(()), |group| spread(txn, index, group))
    }
}

// Adds the texts of a group anew, if half of it is free.
fn spread<T: Transaction + ?Sized>(txn: &mut T, index: TextIndex, group: u32) -> Result<()> {
    let rows = rows(txn, index, group)?;
    if is_half_empty(&rows) {
        delete_group(txn, index, group)?;
        let mut tail = Tail::find(&*txn, index)?;
        tail.push_all(txn, group, &rows)?;
        tail.put(txn)?;
    }
    Ok(())
}
