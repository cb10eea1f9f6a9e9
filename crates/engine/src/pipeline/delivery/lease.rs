//! Leased tasks: an attempt at a task, and the time for which no other worker has it.

use std::cell::Cell;
use std::time::Duration;

use domain::task::{Claim, Task, TaskState};
use domain::time::Timestamp;
use store::Kept;

use super::task_result::TaskResult;
use crate::Engine;

/// A task that is leased for an attempt.
#[derive(Debug)]
pub(super) struct Leased {
    pub(super) task: Kept<Task>,
    pub(super) claim: Claim,
    /// Time since which the task was due.
    pub(super) due_at: Timestamp,
    /// Time of the claim.
    pub(super) since: Timestamp,
    pub(super) until: Timestamp,
    /// Latest time that the work on the task has seen.
    pub(super) seen: Cell<Timestamp>,
}

impl Leased {
    /// Number of the attempt, from 1.
    pub(super) const fn attempt(&self) -> u32 {
        self.claim.number()
    }

    /// Returns `true` if `task` has the lease of this attempt at `now`. Its number is not enough: the claim after
    /// an undone one has the same number, and a redrive counts from 1 again.
    pub(super) fn is_current(&self, task: &Task, now: Timestamp) -> bool {
        let TaskState::Leased { until, attempts } = task.state else { return false };
        // The lease of a clock that was ahead has been given another end.
        let is_same_lease = until == self.until || self.is_of_clock_ahead(now);
        let is_same_start = task.restarted_at == self.task.restarted_at;
        attempts == self.attempt() && is_same_lease && is_same_start
    }

    /// Time of the work on the task. The clock may have gone back since the claim. The task was due
    /// then, and what it has waited for would not be over.
    pub(super) fn now(&self, engine: &Engine) -> Timestamp {
        let now = engine.now().max(self.since);
        self.seen.set(self.seen.get().max(now));
        now
    }

    /// Returns `true` if the last attempt has no outcome: the task may end the process, and the attempts of
    /// others would count.
    pub(super) fn is_alone(&self) -> bool {
        !matches!(self.claim, Claim::Attempt(_))
    }

    pub(super) fn calls_the_host(&self) -> bool {
        self.task.work.calls_the_host()
    }

    /// Returns the task with the result of an attempt that has not begun. The task is due behind those that were
    /// due at its claim: it may be the one that cannot be done.
    pub(super) fn put_back_last(self) -> (Self, TaskResult) {
        let since = self.since;
        (self, TaskResult::Unused(since))
    }

    /// Returns the task of a batch that has ended before it. The task keeps its place among those that are due.
    pub(super) fn put_back_in_place(self) -> (Self, TaskResult) {
        let due_at = self.due_at;
        (self, TaskResult::Unused(due_at))
    }

    /// Returns `true` if the clock was ahead at the claim.
    pub(super) fn is_of_clock_ahead(&self, now: Timestamp) -> bool {
        self.since.is_far_ahead_of(now)
    }

    /// Returns `true` if the clock was ahead at the claim, or when the work on the task has read it.
    pub(super) fn has_seen_clock_ahead(&self, now: Timestamp) -> bool {
        self.seen.get().is_far_ahead_of(now)
    }

    /// Returns `true` if work that begins at `now` and lasts `span` ends within the lease. A lease up
    /// to the last instant there is does not end. One of a clock that was ahead says nothing about now.
    pub(super) fn fits(&self, now: Timestamp, span: Duration) -> bool {
        let left = self.until.since(now);
        let is_in_it = self.until == Timestamp::MAX || (!left.is_zero() && left >= span);
        is_in_it && !self.is_of_clock_ahead(now)
    }

    /// Returns the result of an attempt that does not begin, because another worker may have the task: the
    /// store has taken long, or the process was suspended. The attempt counts, so that the retry policy
    /// ends a task whose store is always too slow. It does not count if the clock was ahead.
    pub(super) fn lost(&self, now: Timestamp) -> Option<TaskResult> {
        if self.has_seen_clock_ahead(now) {
            return Some(TaskResult::Unused(self.since));
        }
        (!self.fits(now, Duration::ZERO)).then_some(TaskResult::Lost)
    }
}
