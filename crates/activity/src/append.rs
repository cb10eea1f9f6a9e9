//! Additions to the index, in the transaction of a trigger.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use domain::ids::{EnvironmentId, NotificationId, TransactionId};
use domain::notification::Ordinal;
use domain::time::Timestamp;
use domain::trigger::AcceptedTrigger;
use store::{Order, ReadRecords, Result, Snapshot, Table, Transaction, WriteRecords, layout};

use crate::facets::{FACETS_IN_ROW, Facets};
use crate::head::Head;
use crate::row::LastRow;
use crate::{ActivityIndex, corrupt};

/// Takes in the notifications of a trigger, one after the other.
#[derive(Debug)]
pub struct Appender {
    environment: EnvironmentId,
    head: Head,
    first: u64,
    facets: Vec<Facets>,
    last_row: Arc<LastRow>,
}

impl ActivityIndex {
    /// Starts to take in the notifications of a trigger.
    pub fn append(
        &self,
        snapshot: &(impl Snapshot + ?Sized),
        environment: EnvironmentId,
    ) -> Result<Appender> {
        let head = Head::get(snapshot, environment, self.segment_size)?;
        let last_row = Arc::clone(&self.last_row);
        Ok(Appender { environment, head, first: head.next, facets: Vec::new(), last_row })
    }
}

impl Appender {
    /// The id of the next notification, which is created at `at`.
    pub fn next_id(&self, at: Timestamp, random: u64) -> NotificationId {
        let ordinal = Ordinal::new(self.head.next + self.facets.len() as u64);
        NotificationId::new(at, ordinal, random)
    }

    /// Takes in a notification that has the [`next_id`](Self::next_id).
    pub fn add(&mut self, facets: Facets) {
        self.facets.push(facets);
    }

    /// Writes `accepted`, with the notifications that were taken in as its own.
    pub fn finish(mut self, txn: &mut dyn Transaction, accepted: AcceptedTrigger) -> Result<()> {
        let next = self.head.next + self.facets.len() as u64;
        txn.insert(&AcceptedTrigger { ordinals: self.first..next, ..accepted })?;
        if self.facets.is_empty() {
            return Ok(());
        }
        self.head.next = next;
        let place = (self.environment, self.head.generation, self.first);
        put_facets(txn, place, &self.facets, &self.last_row)?;
        self.head.put(txn, self.environment)
    }
}

/// Puts the facets of the notifications from `first` on behind those that are there.
pub(crate) fn put_facets(
    txn: &mut dyn Transaction,
    (environment, generation, first): (EnvironmentId, u32, u64),
    mut facets: &[Facets],
    last_row: &LastRow,
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
        let mut state = last_row.behind(&bytes);
        for facets in these {
            state.write(facets, &mut bytes);
        }
        txn.put_bytes(&key, &bytes)?;
        last_row.keep(bytes, state);
        next += these.len() as u64;
        facets = rest;
    }
    Ok(())
}

/// The ordinals of the notifications of a trigger.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Runs(Vec<Range<u64>>);

impl Runs {
    /// The runs of a transaction, or none.
    pub(crate) fn find(
        snapshot: &(impl Snapshot + ?Sized),
        environment: EnvironmentId,
        id: &TransactionId,
    ) -> Result<Self> {
        let mut runs = Some(Self::default());
        let entries = layout::transaction(environment, id).range();
        snapshot.scan_bytes(&entries, Order::Ascending, None, &mut |entry, _| {
            let run = layout::run_of_transaction(entry).map(|(run, _)| run);
            runs = runs.take().zip(run).and_then(|(runs, run)| runs.then(run));
            if runs.is_some() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        runs.ok_or_else(|| corrupt(Table::Transactions, "it leads to no trigger"))
    }

    // The runs with another one, which lies behind them.
    fn then(mut self, run: Range<u64>) -> Option<Self> {
        let is_behind = run.start >= self.end();
        if !run.is_empty() {
            self.add(run);
        }
        is_behind.then_some(self)
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
        let first = self.0.partition_point(|run| run.end <= ordinal);
        self.0.get(first).is_some_and(|run| run.contains(&ordinal))
    }

    /// The parts of `range` that are in no run.
    pub(crate) fn missing(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let mut missing: Vec<Range<u64>> = Vec::new();
        for ordinal in range.filter(|ordinal| !self.contains(*ordinal)) {
            match missing.last_mut() {
                Some(last) if last.end == ordinal => last.end += 1,
                _ => missing.push(ordinal..ordinal + 1),
            }
        }
        missing
    }

    pub(crate) fn newest_first(self) -> impl Iterator<Item = Range<u64>> {
        self.0.into_iter().rev()
    }

    /// The ordinal behind the last one.
    pub(crate) fn end(&self) -> u64 {
        self.0.last().map_or(0, |run| run.end)
    }
}
