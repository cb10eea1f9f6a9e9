//! Rounds: a claim, and the work on the tasks that it has taken.

use std::time::Duration;

use domain::task::Work;

use super::claim::{self, Claimed};
use super::{BATCH, DeliveryQueue, DeliveryReport};
use crate::Result;

/// What the rounds of a caller, one after the other, depend on.
#[derive(Debug)]
pub(crate) struct Rounds {
    size: usize,
    // First entry of the queue that the last claim has read, with the attempt and the place of a
    // sweep. A message that another integration sends and a sweep are due again at once.
    before: Option<(Vec<u8>, u32, Option<Work>)>,
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
        Self { size: 1, before: None }
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
        let first = Some((first, attempt, sweep));
        // Every claim changes its tasks, unless they are given back.
        if first == rounds.before {
            return Err(claim::not_claimed());
        }
        rounds.before = first;
        report.quarantined += quarantined;
        let count = leased.len();
        let given_back = self.work(leased, report)?;
        if given_back > 0 {
            rounds.before = None;
        }
        Ok(Some(Round { done: count - given_back + quarantined, given_back }))
    }
}
