//! Sizes of claims: of the first one, and of the next one behind a batch.

use std::time::Duration;

use super::claim::Claimed;

/// Tasks of the first claim of a run of the queue, and the most that are not short.
pub(super) const BATCH: usize = 32;

/// Tasks of one claim behind a batch of short tasks alone. A claim and its results are two commits, which take as
/// long as many short tasks.
pub(super) const LARGE_BATCH: usize = 256;

/// Limits of a claim.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClaimSize {
    /// Number of tasks.
    pub(super) tasks: usize,
    /// Number of tasks that are not short.
    pub(super) long: usize,
    /// `true` if a task that is leased alone may be the first one.
    pub(super) alone: bool,
}

/// Tasks of a batch, behind the work on them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchDone {
    /// Number of tasks that were done, or taken out of the queue.
    pub(crate) done: usize,
    /// Number of tasks that were given back.
    pub(crate) given_back: usize,
    /// Number of tasks that are not short.
    pub(crate) long: usize,
}

impl Default for ClaimSize {
    /// Size of the first claim of a worker, which knows nothing of its tasks.
    fn default() -> Self {
        Self::new(1, 1)
    }
}

impl ClaimSize {
    /// The size of a claim of `tasks` tasks, of which `long` are not short.
    pub(super) const fn new(tasks: usize, long: usize) -> Self {
        Self { tasks, long, alone: true }
    }

    /// Size of the first claim of a run of the queue.
    pub(super) const fn first() -> Self {
        Self::new(BATCH, BATCH)
    }

    /// Returns the size with no more than `limit` tasks.
    pub(super) fn at_most(self, limit: usize) -> Self {
        Self { tasks: self.tasks.min(limit), ..self }
    }

    /// Returns what is left of the size behind the tasks of another claim.
    pub(super) fn behind(self, claimed: &Claimed) -> Self {
        let long = claimed.leased.iter().filter(|leased| !leased.task.work.is_short()).count();
        Self {
            tasks: self.tasks.saturating_sub(claimed.leased.len()),
            long: self.long.saturating_sub(long),
            alone: self.alone && claimed.leased.is_empty(),
        }
    }

    /// Returns the size of the next claim of a worker: as much as fits into `span`, judging by a batch that took
    /// `elapsed`. Short tasks and others are judged by claims of their own, because a call may take ten thousand
    /// times as long as a turn.
    pub(crate) fn fitted(self, batch: BatchDone, elapsed: Duration, span: Duration) -> Self {
        let Self { mut tasks, mut long, alone } = self;
        let nanos = elapsed.as_nanos().max(1);
        let fitting = |done: usize, largest: usize| {
            let fitting = span.as_nanos().saturating_mul(done as u128) / nanos;
            usize::try_from(fitting).unwrap_or(largest).clamp(1, largest)
        };
        if batch.given_back > 0 {
            tasks = batch.done.clamp(1, tasks);
        } else if batch.long == 0 {
            tasks = fitting(batch.done, (tasks * 2).min(LARGE_BATCH));
        }
        if batch.long > 0 {
            long = fitting(batch.long.min(batch.done), (long * 2).min(BATCH));
            tasks = tasks.max(long);
        }
        Self { tasks, long, alone }
    }

    /// Returns the size of the next claim of a run of the queue: twice as much, or what was done if tasks were
    /// given back. It measures no time, so that a history under a manual clock is the same on each machine.
    pub(super) fn grown(self, batch: BatchDone) -> Self {
        let largest = if batch.long == 0 { LARGE_BATCH } else { BATCH };
        let tasks =
            if batch.given_back > 0 { batch.done.max(1) } else { (self.tasks * 2).min(largest) };
        Self { tasks, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One row per batch: its tasks that were done and given back, those that are not short, the time that it
    /// took, and the size of the next claim.
    #[test]
    fn a_claim_fits_into_its_span() {
        const SPAN: Duration = Duration::from_millis(100);
        let mut size = ClaimSize::default();
        for (row, (done, given_back, long, millis, next)) in [
            (1, 0, 0, 1, (2, 1)),
            (2, 0, 0, 1, (4, 1)),
            // A slow call makes no claim of turns smaller.
            (4, 0, 1, 2_000, (4, 1)),
            (4, 0, 0, 1, (8, 1)),
            (8, 0, 1, 2, (8, 2)),
            (8, 0, 2, 2, (8, 4)),
            (8, 0, 4, 2, (8, 8)),
            (8, 0, 8, 2, (16, 16)),
            // A provider has become slow.
            (1, 15, 16, 2_000, (1, 1)),
            (1, 0, 0, 200, (1, 1)),
        ]
        .into_iter()
        .enumerate()
        {
            let batch = BatchDone { done, given_back, long };
            size = size.fitted(batch, Duration::from_millis(millis), SPAN);
            assert_eq!((size.tasks, size.long), next, "row {row}");
        }
    }
}
