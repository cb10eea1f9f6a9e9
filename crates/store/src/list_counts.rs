//! Numbers of records in lists: one row for each list that has some.
//!
//! The rows follow from the changes of a transaction, so that the total of a page costs one look-up,
//! however long the list is. A list without a row that can be read is counted from its start, in
//! steps. The row has the id of the last record that is counted. A change up to that id changes the
//! number, and a later step counts the records behind it. A transaction that changes lists does a step for
//! some of them. Until all records are counted, or more than a total tells, a page counts the entries.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use domain::page::Total;
use uuid::Uuid;

use crate::batch::{Batch, Batches, next_key};
use crate::layout::CountedList;
use crate::outcomes::checksum;
use crate::record::{CountedPlace, if_readable, misplaced};
use crate::{
    Bytes, Change, Order, Range, ReadRecords, Result, Snapshot, Step, Table, Transaction,
    WriteRecords,
};

/// Number of records that a step counts. In tests a list is small.
pub(crate) const STEP: usize = if cfg!(test) { 3 } else { 1_024 };

/// Number of lists that a transaction counts on at most. A later change of the others does.
const LISTS: usize = if cfg!(test) { 2 } else { 8 };

/// Change of a list whose records are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListChange {
    list: CountedList,
    id: Uuid,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Added,
    Removed,
}

impl ListChange {
    /// Returns the change of the list of a record. Returns `None` if the list is as long as before: a
    /// record that is replaced stays in its list.
    pub(crate) fn of(before: Option<CountedPlace>, after: Option<CountedPlace>) -> Option<Self> {
        let ((list, id), kind) = match (before, after) {
            (None, Some(place)) => (place, Kind::Added),
            (Some(place), None) => (place, Kind::Removed),
            (Some(_), Some(_)) | (None, None) => return None,
        };
        Some(Self { list, id, kind })
    }
}

/// What a row tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count {
    /// Number of records that are counted.
    pub(crate) records: u64,
    /// Id of the last one of these. `None` if all are counted.
    pub(crate) until: Option<Uuid>,
}

/// The number of records in a list, or one that is above the cap of a total. Returns `None` if it is
/// not known.
pub(crate) fn find(
    snapshot: &(impl Snapshot + ?Sized),
    list: CountedList,
) -> Result<Option<usize>> {
    let count = look_up(snapshot, list)?;
    let records = count.and_then(|count| Some((count, usize::try_from(count.records).ok()?)));
    let known = records.filter(|(count, records)| count.until.is_none() || *records > Total::CAP);
    Ok(known.map(|(_, records)| records))
}

/// Counts the changes of a transaction, and writes each row once. Lists that are not counted to their end
/// are counted on, some of them in a transaction.
pub fn count(transaction: &mut dyn Transaction, changes: &[Change]) -> Result<()> {
    let mut lists: BTreeMap<CountedList, Vec<ListChange>> = BTreeMap::new();
    for change in changes.iter().filter_map(|change| change.listed) {
        lists.entry(change.list).or_default().push(change);
    }
    if lists.len() > 1 {
        transaction.prefetch(&mut lists.keys().map(|list| list.key().into_parts()))?;
    }
    let mut steps = 0;
    for (list, changes) in lists {
        let before = look_up(&*transaction, list)?;
        let after = before.and_then(|count| count.changed(&changes));
        let is_whole = matches!(after, Some(Count { until: None, .. }));
        if is_whole && after == before {
            continue;
        }
        _ = if is_whole || steps == LISTS {
            Count::put(after, transaction, list)?
        } else {
            steps += 1;
            match after {
                Some(count) => count.step(transaction, list)?,
                None => begin(transaction, list)?,
            }
        };
    }
    Ok(())
}

/// Begins to count the records of a list anew.
pub fn begin(transaction: &mut dyn Transaction, list: CountedList) -> Result<Step> {
    let counted = Count::NONE.and(&*transaction, list, list.entries().range());
    Count::put(if_readable(counted)?, transaction, list)
}

/// Goes on with that. It is done when all records are counted.
pub fn go_on(transaction: &mut dyn Transaction, list: CountedList) -> Result<Step> {
    match look_up(&*transaction, list)? {
        Some(count) => count.step(transaction, list),
        None => begin(transaction, list),
    }
}

/// Removes the row of the list that an entry of an index belongs to, before the entry is put or removed in
/// another way than with its record. The next change of the list counts it anew.
pub(crate) fn forget(transaction: &mut dyn Transaction, index: Table, key: &[u8]) -> Result<()> {
    match CountedList::of_entry(index, key) {
        Some(list) => transaction.delete_key(&list.key()),
        None => Ok(()),
    }
}

/// The next list behind `behind` that has entries, or the first one.
pub(crate) fn next(
    snapshot: &dyn Snapshot,
    behind: Option<CountedList>,
) -> Result<Option<CountedList>> {
    let passed = |table: &Table| behind.is_some_and(|list| list.table() != *table);
    let mut owner = behind.map(CountedList::owner);
    for table in CountedList::TABLES.into_iter().skip_while(passed) {
        while let Some(key) = next_key(snapshot, table, owner.as_deref())? {
            if let Some(list) = CountedList::of_entry(table, &key) {
                return Ok(Some(list));
            }
            owner = Some(key);
        }
        owner = None;
    }
    Ok(None)
}

impl Count {
    const NONE: Self = Self { records: 0, until: None };

    /// The count in the value under the key of a list. Returns `None` if it cannot be read.
    pub(crate) fn read(key: &[u8], value: &[u8]) -> Option<Self> {
        let (bytes, sum) = value.split_last_chunk()?;
        let (records, until) = bytes.split_first_chunk()?;
        let until = match until {
            [] => None,
            until => Some(Uuid::from_slice(until).ok()?),
        };
        let count = Self { records: u64::from_le_bytes(*records), until };
        (u32::from_le_bytes(*sum) == checksum(key, bytes)).then_some(count)
    }

    // The number, the id if there is one, and a checksum that covers the key, so that no other row is
    // taken for this one.
    fn bytes(self, key: &[u8]) -> Vec<u8> {
        let mut bytes = self.records.to_le_bytes().to_vec();
        bytes.extend(self.until.map(Uuid::into_bytes).into_iter().flatten());
        let sum = checksum(key, &bytes);
        bytes.extend(sum.to_le_bytes());
        bytes
    }

    // The count behind some changes. Returns `None` if more records are gone than were counted.
    fn changed(self, changes: &[ListChange]) -> Option<Self> {
        let is_counted = |id| self.until.is_none_or(|until| id <= until);
        let counted = changes.iter().filter(|change| is_counted(change.id));
        let by = counted.map(|change| match change.kind {
            Kind::Added => 1,
            Kind::Removed => -1,
        });
        Some(Self { records: self.records.checked_add_signed(by.sum())?, ..self })
    }

    // The count with the first of the other entries.
    fn and(
        self,
        snapshot: &(impl Snapshot + ?Sized),
        list: CountedList,
        others: Range<Bytes>,
    ) -> Result<Self> {
        let Batch { rows, next } = Batch::read(snapshot, &others, STEP)?;
        let until = next.map(|key| list.id_of(&key).ok_or_else(|| misplaced(others.table())));
        Ok(Self { records: self.records + rows.len() as u64, until: until.transpose()? })
    }

    fn step(self, transaction: &mut dyn Transaction, list: CountedList) -> Result<Step> {
        let counted = match self.until {
            Some(until) => self.and(&*transaction, list, list.entries().behind(until)),
            None => Ok(self),
        };
        Self::put(if_readable(counted)?, transaction, list)
    }

    // Writes what was counted. A list that cannot be gone through, or that has no records, has no row.
    fn put(
        counted: Option<Self>,
        transaction: &mut dyn Transaction,
        list: CountedList,
    ) -> Result<Step> {
        let key = list.key();
        match counted {
            None | Some(Self::NONE) => {
                transaction.delete_key(&key)?;
                Ok(Step::Done(()))
            }
            Some(count) => {
                transaction.put_bytes(&key, &count.bytes(key.as_bytes()))?;
                Ok(Step::of(count.until.is_some()))
            }
        }
    }

    /// Returns `true` if the number is that of the entries of a list, as far as it goes.
    pub(crate) fn is_right(self, snapshot: &dyn Snapshot, list: CountedList) -> Result<bool> {
        let entries = match self.until {
            Some(until) => list.entries().until(until),
            None => list.entries().range(),
        };
        let mut batches = Batches::new(snapshot, entries, Order::Ascending);
        let mut records = 0;
        while let Some(rows) = batches.next(STEP)? {
            records += rows.len() as u64;
        }
        Ok(records == self.records)
    }
}

/// The row of a list. Returns `None` if there is none, or if it cannot be read.
pub(crate) fn look_up(
    snapshot: &(impl Snapshot + ?Sized),
    list: CountedList,
) -> Result<Option<Count>> {
    let (key, mut count) = (list.key(), None);
    snapshot.get_bytes(&key, &mut |value| count = Count::read(key.as_bytes(), value))?;
    Ok(count)
}
