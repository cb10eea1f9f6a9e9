//! The places of the texts of subscribers.
//!
//! A subscriber has one text in an index. Its places are the rows that have it: one, and further ones
//! while the index is rebuilt. A place is the number of the group, the lowest byte first, and that of the
//! row. The place in a group that a rebuild removed stays until that rebuild, or another one, ends.

use domain::ids::InternalSubscriberId;

use super::trigrams::ROWS;
use super::{Place, find_row};
use crate::batch::next_key;
use crate::layout::{IndexPart, SearchedField, TextIndex};
use crate::record::{corrupt, if_readable};
use crate::{Bytes, Key, ReadRecords, Result, Snapshot, Transaction, WriteRecords};

pub(super) fn key(index: TextIndex, subscriber: InternalSubscriberId) -> Key<Bytes> {
    index.part(IndexPart::Places(subscriber))
}

/// The places in the bytes of a value. Returns `None` if they are none.
pub(super) fn read(bytes: &[u8]) -> Option<Vec<Place>> {
    let (places, rest) = bytes.as_chunks();
    let is_whole = rest.is_empty() && !places.is_empty();
    let place = |[a, b, c, d, row]: &[u8; 5]| (u32::from_le_bytes([*a, *b, *c, *d]), *row);
    let places: Vec<Place> = places.iter().map(place).collect();
    (is_whole && places.iter().all(|(_, row)| *row < ROWS)).then_some(places)
}

/// The places of the text of a subscriber. Returns `None` if none are known.
pub(super) fn find(
    snapshot: &(impl Snapshot + ?Sized),
    index: TextIndex,
    subscriber: InternalSubscriberId,
) -> Result<Option<Vec<Place>>> {
    let mut found = None;
    snapshot.get_bytes(&key(index, subscriber), &mut |bytes| found = Some(read(bytes)))?;
    found.map(|places| places.ok_or_else(|| damaged(index))).transpose()
}

pub(super) fn damaged(index: TextIndex) -> crate::Error {
    corrupt(index.field.table(), "it is not a list of places")
}

/// Adds a place. Those in the group `left` are given up.
pub(super) fn add<T: Transaction + ?Sized>(
    txn: &mut T,
    index: TextIndex,
    (subscriber, place): (InternalSubscriberId, Place),
    left: Option<u32>,
) -> Result<()> {
    let known = if_readable(find(&*txn, index, subscriber))?.flatten().unwrap_or_default();
    let mut places = known.clone();
    places.retain(|(group, _)| Some(*group) != left);
    if !places.contains(&place) {
        places.push(place);
    }
    if places == known { Ok(()) } else { put(txn, index, subscriber, &places) }
}

/// Tells the store that the places of these subscribers are going to be read.
pub(super) fn prefetch(
    snapshot: &(impl Snapshot + ?Sized),
    index: TextIndex,
    subscribers: impl Iterator<Item = InternalSubscriberId>,
) -> Result<()> {
    snapshot.prefetch(&mut subscribers.map(|subscriber| key(index, subscriber).into_parts()))
}

pub(super) fn put<T: Transaction + ?Sized>(
    txn: &mut T,
    index: TextIndex,
    subscriber: InternalSubscriberId,
    places: &[Place],
) -> Result<()> {
    let bytes = |(group, row): &Place| [group.to_le_bytes().as_slice(), &[*row]].concat();
    txn.put_bytes(&key(index, subscriber), &places.iter().flat_map(bytes).collect::<Vec<_>>())
}

/// Adds the places of the texts in the next row of the indexes of a field, behind a key. Returns the key of
/// the row. Returns `None` if there are no more rows.
pub(crate) fn add_next(
    txn: &mut dyn Transaction,
    field: SearchedField,
    behind: &[u8],
) -> Result<Option<Vec<u8>>> {
    let mut behind = behind.to_vec();
    loop {
        let prefix = (!behind.is_empty()).then_some(behind.as_slice());
        let Some(key) = next_key(&*txn, field.table(), prefix)? else { return Ok(None) };
        match field.read(&key) {
            Some((environment, IndexPart::Row { group, row })) => {
                add_row(txn, TextIndex { field, environment }, (group, row))?;
                return Ok(Some(key));
            }
            // No row comes behind them.
            Some((environment, IndexPart::Trigrams { .. } | IndexPart::Places(_))) => {
                behind = TextIndex { field, environment }.all().as_bytes().to_vec();
            }
            Some((_, IndexPart::Head)) => behind = key,
            None => return Ok(Some(key)),
        }
    }
}

/// Adds the places of the texts in a row. One that cannot be read is passed over.
pub(super) fn add_row(txn: &mut dyn Transaction, index: TextIndex, place: Place) -> Result<()> {
    let row = if_readable(find_row(&*txn, index, place))?.flatten().unwrap_or_default();
    let subscribers = || row.view().entries().map(|(_, subscriber)| subscriber);
    prefetch(&*txn, index, subscribers())?;
    subscribers().try_for_each(|subscriber| add(txn, index, (subscriber, place), None))
}
