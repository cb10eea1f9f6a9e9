//! Rounds: a claim, and the work on the tasks that it has taken.

use std::time::Duration;

use domain::task::Work;

use super::claim::{self, Claimed};
use super::{BATCH, DeliveryQueue, DeliveryReport};
use crate::Result;

/// Claims in a row that may begin with the same attempt. A turn whose jobs have changed since it was
/// planned is due again as it was. Behind so many claims, the store does not keep what they write.
const REPEATS: u32 = 8;

/// What the rounds of a caller, one after the other, depend on.
#[derive(Debug)]
pub(crate) struct Rounds {
    size: usize,
    // First entry of the queue that the last claim has read, with the attempt and the place of a
    // sweep. A message that another integration sends and a sweep are due again at once.
    firsts: Repeats<(Vec<u8>, u32, Option<Work>)>,
}

/// What claims have begun with, and how often in a row.
#[derive(Debug)]
pub(super) struct Repeats<First> {
    before: Option<First>,
    count: u32,
}

impl<First: PartialEq> Repeats<First> {
    /// Notes what a claim has begun with. `None` may come again and again.
    pub(super) fn note(&mut self, first: Option<First>) -> Result<()> {
        let is_same = first.is_some() && first == self.before;
        self.count = if is_same { self.count + 1 } else { 0 };
        self.before = first;
        if self.count > REPEATS { Err(claim::not_claimed()) } else { Ok(()) }
    }
}

impl<First> Default for Repeats<First> {
    fn default() -> Self {
        Self { before: None, count: 0 }
    }
}

/// Tasks of a round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    /// Number of tasks that were done, or taken out of the queue.
    pub(crate) done: usize,
    /// Number of tasks that were given back.
    pub(crate) given_back: usize,
}

impl Default for Rounds {
    fn default() -> Self {
        Self { size: 1, firsts: Repeats::default() }
    }
}

impl Rounds {
    /// Returns the number of tasks for the next claim.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Makes the next claim as large as fits into `span`, judging by a round that took `elapsed`.
    pub(crate) fn fit(&mut self, round: Round, elapsed: Duration, span: Duration) {
        let nanos = elapsed.as_nanos().max(1);
        let fitting = span.as_nanos().saturating_mul(round.done as u128) / nanos;
        let largest = (self.size * 2).min(BATCH);
        self.size = usize::try_from(fitting).unwrap_or(largest).clamp(1, largest);
    }
}

impl DeliveryQueue<'_> {
    /// Claims at most `limit` tasks and does them. Returns `None` if none is due.
    pub(crate) fn round(
        &self,
        rounds: &mut Rounds,
        limit: usize,
        report: &mut DeliveryReport,
    ) -> Result<Option<Round>> {
        let Claimed { leased, quarantined, first } = claim::claim(self.engine, limit)?;
        let Some(first) = first else { return Ok(None) };
        let sweep = leased.first().map(|leased| &leased.task.work);
        let sweep = sweep.filter(|work| matches!(work, Work::Sweep { .. })).cloned();
        let attempt = leased.first().map_or(0, |leased| leased.attempt);
        // Every claim changes its tasks, unless they are given back.
        rounds.firsts.note(Some((first, attempt, sweep)))?;
        report.quarantined += quarantined;
        let count = leased.len();
        let given_back = self.work(leased, report)?;
        if given_back > 0 {
            rounds.firsts = Repeats::default();
        }
        Ok(Some(Round { done: count - given_back + quarantined, given_back }))
    }
}
