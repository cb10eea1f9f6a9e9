//! Additions to the index, in the transaction of a trigger.

use std::ops::Range;

use domain::ids::{EnvironmentId, NotificationId, TransactionId};
use domain::notification::Ordinal;
use domain::time::Timestamp;
use store::{Bytes, Key, ReadRecords, Result, Snapshot, Transaction, WriteRecords, layout};

use crate::facets::{FACETS_IN_ROW, Facets};
use crate::head::Head;
use crate::{ActivityIndex, corrupt};

/// Takes in the notifications of a trigger, one after the other.
#[derive(Debug)]
pub struct Appender {
    environment: EnvironmentId,
    head: Head,
    first: u64,
    facets: Vec<Facets>,
}

impl ActivityIndex {
    /// Starts to take in the notifications of a trigger.
    pub fn append(
        &self,
        snapshot: &(impl Snapshot + ?Sized),
        environment: EnvironmentId,
    ) -> Result<Appender> {
        let head = Head::get(snapshot, environment, self.segment_size)?;
        Ok(Appender { environment, head, first: head.next, facets: Vec::new() })
    }
}

impl Appender {
    /// Time of creation of the next notification: `now`, or the time of the last one if that is
    /// later. The list is in order of both time and creation.
    pub fn created_at(&self, now: Timestamp) -> Timestamp {
        now.max(self.head.last)
    }

    /// The id of the next notification, which was created at `at`.
    pub fn next_id(&self, at: Timestamp, random: u64) -> NotificationId {
        let ordinal = Ordinal::new(self.head.next + self.facets.len() as u64);
        NotificationId::new(at, ordinal, random)
    }

    /// Takes in a notification that has the [`next_id`](Self::next_id).
    pub fn add(&mut self, facets: Facets) {
        self.facets.push(facets);
    }

    /// Writes the notifications that were taken in, as those of `transaction`.
    pub fn finish(mut self, txn: &mut dyn Transaction, transaction: &TransactionId) -> Result<()> {
        let Some(last) = self.facets.last() else { return Ok(()) };
        self.head.last = self.head.last.max(last.created_at);
        self.head.next += self.facets.len() as u64;
        let Head { generation, next, .. } = self.head;
        put_facets(txn, self.environment, generation, self.first, &self.facets)?;
        let key = layout::transaction_notifications(self.environment, generation, transaction);
        let mut runs = Runs::find(&*txn, &key)?;
        runs.add(self.first..next);
        txn.put_bytes(&key, &runs.bytes())?;
        self.head.put(txn, self.environment)
    }
}

/// Puts the facets of the notifications from `first` on behind those that are there.
pub(crate) fn put_facets(
    txn: &mut dyn Transaction,
    environment: EnvironmentId,
    generation: u32,
    first: u64,
    mut facets: &[Facets],
) -> Result<()> {
    let mut next = first;
    while !facets.is_empty() {
        let row = next / u64::from(FACETS_IN_ROW);
        let room = usize::try_from((row + 1) * u64::from(FACETS_IN_ROW) - next).unwrap_or_default();
        let (these, rest) = facets.split_at(room.min(facets.len()));
        let key = layout::activity_facets(environment, generation, row);
        let mut bytes = Vec::new();
        if !next.is_multiple_of(FACETS_IN_ROW.into()) {
            let mut copy = |there: &[u8]| bytes.extend_from_slice(there);
            txn.get_bytes(&key, &mut copy)?;
        }
        for facets in these {
            facets.write(&mut bytes);
        }
        txn.put_bytes(&key, &bytes)?;
        next += these.len() as u64;
        facets = rest;
    }
    Ok(())
}

/// The ordinals of the notifications of a trigger.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Runs(Vec<Range<u64>>);

impl Runs {
    /// The runs that are written under `key`, or none.
    pub(crate) fn find(snapshot: &(impl Snapshot + ?Sized), key: &Key<Bytes>) -> Result<Self> {
        let mut runs = Some(Self::default());
        let mut read = |bytes: &[u8]| runs = Self::read(bytes);
        snapshot.get_bytes(key, &mut read)?;
        runs.ok_or_else(|| corrupt(key.table(), "they are not runs"))
    }

    /// Returns the runs of `bytes`. Returns `None` if the bytes are no runs.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let (ends, []) = bytes.as_chunks::<8>() else { return None };
        let (pairs, []) = ends.as_chunks() else { return None };
        let mut runs = Self::default();
        for [start, end] in pairs {
            let (start, end) = (u64::from_be_bytes(*start), u64::from_be_bytes(*end));
            if start >= end || start < runs.end() || end > 1 << Ordinal::BITS {
                return None;
            }
            runs.add(start..end);
        }
        (!pairs.is_empty()).then_some(runs)
    }

    /// Adds a run behind the others, if it is not there.
    pub(crate) fn add(&mut self, run: Range<u64>) {
        match self.0.last_mut() {
            Some(last) if last.end >= run.start => last.end = last.end.max(run.end),
            _ => self.0.push(run),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Range<u64>> {
        self.0.iter().cloned()
    }

    pub(crate) fn contains(&self, ordinal: u64) -> bool {
        self.0.iter().any(|run| run.contains(&ordinal))
    }

    pub(crate) fn newest_first(self) -> impl Iterator<Item = Range<u64>> {
        self.0.into_iter().rev()
    }

    /// The ordinal behind the last one.
    pub(crate) fn end(&self) -> u64 {
        self.0.last().map_or(0, |run| run.end)
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let ends = self.0.iter().flat_map(|run| [run.start, run.end]);
        ends.flat_map(u64::to_be_bytes).collect()
    }
}
