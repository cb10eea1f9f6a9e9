//! Outcomes of notifications: rows of bits beside the activity index, one for each outcome and each
//! 1,024 consecutive ordinals, unless no bit is set. Most notifications have a delivered message, so
//! the rows of `delivered` have the notifications without one.
//!
//! The rows follow from the changes of a transaction, since outcomes change after the segments of
//! the activity index are sealed.

mod mark;
mod rebuild;

use std::ops::{ControlFlow, Range};

use domain::fnv;
use domain::ids::EnvironmentId;
use domain::notification::{Notification, NotificationOutcome, Ordinal, Outcomes};

use crate::record::corrupt;
use crate::{Codec, Key, Order, ReadRecords, Record, Result, Snapshot, Table, layout};

pub use mark::{Moved, mark};
pub use rebuild::rebuild;
pub(crate) use rebuild::{first, is_possible};

/// Number of notifications in a row.
pub const IN_ROW: u64 = 1_024;

const WORDS: usize = 16;

/// The place of a notification in the activity list of its environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listed {
    environment: EnvironmentId,
    ordinal: u64,
}

impl Listed {
    pub(crate) fn of(environment: EnvironmentId, ordinal: Ordinal) -> Self {
        Self { environment, ordinal: ordinal.get() }
    }
}

/// A row: a bit for each of its notifications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row([u64; WORDS]);

impl Row {
    /// The words with a bit for each notification, each with its first place in the row.
    pub fn words(&self) -> impl Iterator<Item = (u64, u64)> {
        (0..).step_by(64).zip(self.0).filter(|(_, word)| *word != 0)
    }

    fn set(&mut self, ordinal: u64, is_set: bool) {
        let place = ordinal % IN_ROW;
        let word = usize::try_from(place / 64).ok().and_then(|at| self.0.get_mut(at));
        let (Some(word), bit) = (word, 1 << (place % 64)) else { return };
        *word = if is_set { *word | bit } else { *word & !bit };
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The value of the row under `key`: which words are not zero, these words, and a checksum that
    /// covers the key, so that no other row is taken for this one.
    pub(crate) fn bytes(&self, key: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 2];
        let mut mask = 0_u16;
        for (at, word) in self.0.iter().enumerate().filter(|(_, word)| **word != 0) {
            mask |= 1 << at;
            bytes.extend(word.to_le_bytes());
        }
        bytes.splice(..2, mask.to_le_bytes());
        let sum = checksum(key, &bytes);
        bytes.extend(sum.to_le_bytes());
        bytes
    }

    fn read(key: &[u8], bytes: &[u8]) -> Option<Self> {
        let (bytes, sum) = bytes.split_last_chunk()?;
        let (mask, words) = bytes.split_first_chunk()?;
        let mask = u16::from_le_bytes(*mask);
        let (words, rest) = words.as_chunks::<8>();
        let is_whole = rest.is_empty() && words.len() == usize::try_from(mask.count_ones()).ok()?;
        if !is_whole || u32::from_le_bytes(*sum) != checksum(key, bytes) {
            return None;
        }
        let mut row = Self::default();
        let own = row.0.iter_mut().enumerate().filter(|(at, _)| mask >> at & 1 == 1);
        for ((_, own), word) in own.zip(words) {
            *own = u64::from_le_bytes(*word);
        }
        Some(row)
    }
}

/// A checksum of the value under `key`: FNV-1a, folded to 32 bits.
pub(crate) fn checksum(key: &[u8], bytes: &[u8]) -> u32 {
    let sum = fnv::hash(key.iter().chain(bytes));
    u32::try_from((sum >> 32) ^ (sum & u64::from(u32::MAX))).unwrap_or_default()
}

/// The number of the row with this ordinal.
pub fn row_of(ordinal: u64) -> u32 {
    u32::try_from(ordinal / IN_ROW).unwrap_or(u32::MAX)
}

/// The row under `key`, which is empty if there is none.
///
/// # Errors
///
/// [`Error::Corrupt`](crate::Error::Corrupt), if it cannot be read.
pub fn find(
    snapshot: &(impl Snapshot + ?Sized),
    environment: EnvironmentId,
    outcome: NotificationOutcome,
    number: u32,
) -> Result<Row> {
    let key = layout::outcome_row(environment, outcome, number);
    look_up(snapshot, &key)?.ok_or_else(unreadable)
}

/// Calls `visit` with the rows of an outcome with a number in `rows` that are not empty, and with
/// their numbers.
///
/// # Errors
///
/// [`Error::Corrupt`](crate::Error::Corrupt), if one of them cannot be read.
pub fn each(
    snapshot: &(impl Snapshot + ?Sized),
    environment: EnvironmentId,
    (outcome, rows): (NotificationOutcome, Range<u32>),
    visit: &mut dyn FnMut(u32, &Row),
) -> Result<()> {
    let range = layout::outcome_rows(environment, outcome, rows);
    let mut is_readable = true;
    snapshot.scan_bytes(&range, Order::Ascending, None, &mut |key, value| {
        let found = layout::outcome_of_row(key).zip(Row::read(key, value));
        let Some(((_, number), row)) = found else {
            is_readable = false;
            return ControlFlow::Break(());
        };
        visit(number, &row);
        ControlFlow::Continue(())
    })?;
    if is_readable { Ok(()) } else { Err(unreadable()) }
}

// The row under `key`, or `None` if it cannot be read.
fn look_up(snapshot: &(impl Snapshot + ?Sized), key: &Key<crate::Bytes>) -> Result<Option<Row>> {
    let mut row = Some(Row::default());
    snapshot.get_bytes(key, &mut |value| row = Row::read(key.as_bytes(), value))?;
    Ok(row)
}

fn unreadable() -> crate::Error {
    corrupt(Table::NotificationOutcomes, "it is not a row of outcomes: rebuild the index")
}

// Returns whether the row of `outcome` has a notification with `outcomes`.
fn is_marked(outcomes: Option<Outcomes>, outcome: NotificationOutcome) -> bool {
    let is_inverted = outcome == NotificationOutcome::Delivered;
    outcomes.is_some_and(|all| all.has(outcome) != is_inverted)
}

// Rows of one number, as they follow from the notifications. A notification that cannot be read has no
// outcomes.
struct MadeAnew {
    // The row of each outcome, in the order of the outcomes.
    rows: Vec<(NotificationOutcome, Row)>,
    // `true` if all notifications can be read.
    is_whole: bool,
}

fn made_anew(
    snapshot: &(impl Snapshot + ?Sized),
    environment: EnvironmentId,
    number: u32,
) -> Result<MadeAnew> {
    let rows = NotificationOutcome::ALL.iter().map(|outcome| (*outcome, Row::default()));
    let mut anew = MadeAnew { rows: rows.collect(), is_whole: true };
    let first = u64::from(number) * IN_ROW;
    let range = layout::notifications_between(environment, first..first + IN_ROW);
    let codec = snapshot.codec();
    snapshot.scan_bytes(&range, Order::Ascending, None, &mut |key, value| {
        match of_entry(codec, key, value) {
            Some((listed, outcomes)) => {
                for (outcome, row) in &mut anew.rows {
                    row.set(listed.ordinal, is_marked(Some(outcomes), *outcome));
                }
            }
            None => anew.is_whole = false,
        }
        ControlFlow::Continue(())
    })?;
    Ok(anew)
}

fn of_entry(codec: Codec<'_>, key: &[u8], value: &[u8]) -> Option<(Listed, Outcomes)> {
    Record::outcomes(&codec.decode::<Notification>(key, value).ok()?)
}

/// A row that is not that of its notifications: its key, and what it should be.
pub(crate) type Wrong = (Vec<u8>, Option<Vec<u8>>);

/// Rows with this number that are not those of the notifications. Returns none if one of the
/// notifications cannot be read.
pub(crate) fn compare(
    snapshot: &dyn Snapshot,
    environment: EnvironmentId,
    number: u32,
) -> Result<Vec<Wrong>> {
    let mut wrong = Vec::new();
    let anew = made_anew(snapshot, environment, number)?;
    if !anew.is_whole {
        return Ok(wrong);
    }
    for (outcome, row) in anew.rows {
        let key = layout::outcome_row(environment, outcome, number).as_bytes().to_vec();
        let expected = (!row.is_empty()).then(|| row.bytes(&key));
        let mut there = None;
        let visit = &mut |value: &[u8]| there = Some(value.to_vec());
        snapshot.get(Table::NotificationOutcomes, &key, visit)?;
        if there != expected {
            wrong.push((key, expected));
        }
    }
    Ok(wrong)
}

#[cfg(test)]
mod tests;
