//! Attempts: the claim of a due task, and its state after a failure.

use std::time::Duration;

use super::{TaskState, Work};
use crate::ids::IntegrationId;
use crate::job::RetryPolicy;
use crate::time::Timestamp;

/// Decision about a due task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Attempt with this number, counting from 1.
    Attempt(u32),
    /// Attempt with this number, after one whose outcome is unknown.
    Repeat(u32),
    /// No attempt: the outcome of the last one, which has this number, is unknown.
    GiveUp(u32),
}

impl Claim {
    /// Returns the number of the attempt.
    pub const fn number(self) -> u32 {
        match self {
            Claim::Attempt(number) | Claim::Repeat(number) | Claim::GiveUp(number) => number,
        }
    }

    /// Returns the time at which work that calls the host is due if the claim was not used: `now`. If the call
    /// of an earlier attempt may be under way, that has a new lease.
    pub fn due_anew(self, now: Timestamp, lease: Duration) -> Timestamp {
        match self {
            Claim::Attempt(_) => now,
            Claim::Repeat(_) | Claim::GiveUp(_) => now.after(lease),
        }
    }
}

/// Attempt that may follow a failed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The next attempt is due after this time at the earliest.
    Later(Duration),
    /// Another integration takes over at once, also behind the last attempt of the policy. That happens at
    /// most once for each integration.
    Switch,
    /// No attempt follows.
    Never,
}

/// Effect of a failed attempt on its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterFailure {
    /// Another attempt follows at this time.
    RetryAt(Timestamp),
    /// The task has failed.
    Failed,
}

/// Least number of attempts at work that calls nothing of the host application: what has ended the process was
/// hardly this work.
const ATTEMPTS_WITHIN: u32 = 3;

impl Work {
    /// Returns the number of attempts without an outcome behind which the work is given up.
    pub fn attempts(&self, policy: &RetryPolicy) -> u32 {
        if self.calls_the_host() { policy.attempts } else { policy.attempts.max(ATTEMPTS_WITHIN) }
    }
}

/// Upper bound of the wait that a provider asks for.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

impl TaskState {
    /// Returns the time of the next attempt, or the end of the lease. Returns `None` if the task is
    /// held.
    pub const fn due_at(self) -> Option<Timestamp> {
        match self {
            TaskState::Waiting { due_at, .. } => Some(due_at),
            TaskState::Leased { until, .. } => Some(until),
            TaskState::Held { .. } => None,
        }
    }

    /// Returns the decision about the task at `now`. Returns `None` if the task is not due.
    /// A task that is leased after `most` attempts is given up.
    pub fn claim(self, most: u32, now: Timestamp) -> Option<Claim> {
        match self {
            TaskState::Waiting { due_at, attempts } if due_at <= now => {
                Some(Claim::Attempt(attempts.saturating_add(1)))
            }
            TaskState::Leased { until, attempts } if until <= now => {
                let last = attempts >= most;
                Some(if last {
                    Claim::GiveUp(attempts)
                } else {
                    Claim::Repeat(attempts.saturating_add(1))
                })
            }
            TaskState::Waiting { .. } | TaskState::Leased { .. } | TaskState::Held { .. } => None,
        }
    }

    /// Returns the effect of the failure of attempt number `attempt` at `now`. Returns `None` if it is not the
    /// current attempt. `jitter` is called only if there is another attempt.
    pub fn after_failure(
        self,
        attempt: u32,
        retry: Retry,
        (policy, jitter): (&RetryPolicy, impl FnOnce() -> u16),
        now: Timestamp,
    ) -> Option<AfterFailure> {
        self.is_attempt(attempt).then(|| match retry {
            Retry::Never => AfterFailure::Failed,
            Retry::Switch => AfterFailure::RetryAt(now),
            Retry::Later(asked) => match policy.next(attempt, jitter()) {
                // There is no time after the last one.
                Some(wait) if now < Timestamp::MAX => {
                    AfterFailure::RetryAt(now.after(wait.max(asked.min(LONGEST_WAIT))))
                }
                Some(_) | None => AfterFailure::Failed,
            },
        })
    }

    /// Returns the state after a claim that was not used, due at `due_at`: the attempt does not count, and
    /// an outcome that was unknown before the claim is still unknown. Returns `None` if it is not the
    /// current attempt.
    pub fn undone(self, claim: Claim, due_at: Timestamp) -> Option<TaskState> {
        self.is_attempt(claim.number()).then_some(match claim {
            Claim::Attempt(number) => {
                TaskState::Waiting { due_at, attempts: number.saturating_sub(1) }
            }
            Claim::Repeat(number) => {
                TaskState::Leased { until: due_at, attempts: number.saturating_sub(1) }
            }
            Claim::GiveUp(attempts) => TaskState::Leased { until: due_at, attempts },
        })
    }

    /// Returns the state after attempt number `attempt` has done nothing, due at `due_at`. The attempt
    /// does not count. Returns `None` if it is not the current attempt.
    pub fn given_back(self, attempt: u32, due_at: Timestamp) -> Option<TaskState> {
        let attempts = attempt.saturating_sub(1);
        self.is_attempt(attempt).then_some(TaskState::Waiting { due_at, attempts })
    }

    /// Returns the state after attempt number `attempt` has found that `integration_id` is paused.
    /// The attempt does not count. Returns `None` if it is not the current attempt.
    pub fn held(self, attempt: u32, integration_id: IntegrationId) -> Option<TaskState> {
        let attempts = attempt.saturating_sub(1);
        self.is_attempt(attempt).then_some(TaskState::Held { integration_id, attempts })
    }

    /// Returns the state of a held task that is due again at `due_at`.
    #[must_use]
    pub const fn released(self, due_at: Timestamp) -> TaskState {
        match self {
            TaskState::Held { attempts, .. } => TaskState::Waiting { due_at, attempts },
            TaskState::Waiting { .. } | TaskState::Leased { .. } => self,
        }
    }

    /// Returns the state of a task that waits until the time `from` and is due at `to` instead. Returns `None` if
    /// the task does not wait until then.
    pub fn brought_forward(self, from: Timestamp, to: Timestamp) -> Option<TaskState> {
        match self {
            TaskState::Waiting { due_at, attempts } if due_at == from => {
                Some(TaskState::Waiting { due_at: to, attempts })
            }
            TaskState::Waiting { .. } | TaskState::Leased { .. } | TaskState::Held { .. } => None,
        }
    }

    /// Returns `true` if the task is leased for the attempt number `attempt`.
    pub const fn is_attempt(self, attempt: u32) -> bool {
        match self {
            TaskState::Leased { attempts, .. } => attempts == attempt,
            TaskState::Waiting { .. } | TaskState::Held { .. } => false,
        }
    }

    /// Returns `true` if the task is leased, and the outcome of its attempt is unknown.
    pub const fn is_leased(self) -> bool {
        matches!(self, TaskState::Leased { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{at, id};

    const POLICY: RetryPolicy = RetryPolicy::new(2, Duration::from_millis(10));

    const fn waiting(due_at: i64, attempts: u32) -> TaskState {
        TaskState::Waiting { due_at: Timestamp::from_millis(due_at), attempts }
    }

    const fn leased(until: i64, attempts: u32) -> TaskState {
        TaskState::Leased { until: Timestamp::from_millis(until), attempts }
    }

    fn paused(attempts: u32) -> TaskState {
        TaskState::Held { integration_id: id(1), attempts }
    }

    fn retry(due_at: i64) -> AfterFailure {
        AfterFailure::RetryAt(at(due_at))
    }

    /// One row per state: the claim at 5.
    #[test]
    fn a_due_task_is_tried_as_often_as_the_policy_allows() {
        for (state, claim) in [
            (waiting(6, 0), None),
            (waiting(5, 0), Some(Claim::Attempt(1))),
            // A provider asked for another attempt later.
            (waiting(5, 2), Some(Claim::Attempt(3))),
            (leased(6, 1), None),
            (leased(5, 1), Some(Claim::Repeat(2))),
            (leased(5, 2), Some(Claim::GiveUp(2))),
            (waiting(5, u32::MAX), Some(Claim::Attempt(u32::MAX))),
            (paused(0), None),
        ] {
            assert_eq!(state.claim(POLICY.attempts, at(5)), claim, "{state:?}");
        }
    }

    /// One row per state: the effect of failures of the first attempt, at 5.
    #[test]
    fn a_failure_counts_while_the_attempt_is_current() {
        let effects = [AfterFailure::Failed, retry(5), retry(15)];
        for (state, effects) in [
            (leased(9, 1), effects.map(Some)),
            // Another worker has the task, or had it.
            (leased(9, 2), [None; 3]),
            (waiting(9, 2), [None; 3]),
            (paused(1), [None; 3]),
        ] {
            let after = |retry| state.after_failure(1, retry, (&POLICY, || 0), at(5));
            let failures = [Retry::Never, Retry::Switch, Retry::Later(Duration::ZERO)];
            assert_eq!(failures.map(after), effects, "{state:?}");
        }
    }

    /// One row per state: the state after the second attempt was given back, at 5.
    #[test]
    fn an_attempt_that_was_given_back_does_not_count() {
        for (state, after) in [
            (leased(9, 2), Some(waiting(5, 1))),
            (leased(5, 2), Some(waiting(5, 1))),
            (leased(9, 3), None),
            (waiting(9, 2), None),
        ] {
            assert_eq!(state.given_back(2, at(5)), after, "{state:?}");
        }
    }

    /// One row per claim of a state that is due at 5: the state after it was not used, due at 7, from which
    /// the same claim follows.
    #[test]
    fn a_claim_that_was_not_used_is_made_again() {
        for (before, undone) in [
            (waiting(5, 0), waiting(7, 0)),
            (leased(5, 1), leased(7, 1)),
            (leased(5, 2), leased(7, 2)),
        ] {
            let claim = before.claim(POLICY.attempts, at(5)).unwrap();
            let current = leased(9, claim.number());
            assert_eq!(current.undone(claim, at(7)), Some(undone), "{before:?}");
            assert_eq!(undone.claim(POLICY.attempts, at(7)), Some(claim), "{before:?}");
            assert_eq!(leased(9, claim.number() + 1).undone(claim, at(7)), None, "{before:?}");
        }
    }

    #[test]
    fn a_call_that_may_be_under_way_has_a_new_lease() {
        let claims = [Claim::Attempt(1), Claim::Repeat(2), Claim::GiveUp(2)];
        let due_at = claims.map(|claim| claim.due_anew(at(5), Duration::from_millis(3)));
        assert_eq!(due_at, [5, 8, 8].map(at));
    }

    /// One row per state: the state after the second attempt has found its integration paused, and
    /// the state after the integration is resumed, at 5.
    #[test]
    fn an_attempt_that_was_held_does_not_count() {
        for (state, held, released) in [
            (leased(9, 2), Some(paused(1)), leased(9, 2)),
            (leased(9, 3), None, leased(9, 3)),
            (waiting(9, 2), None, waiting(9, 2)),
            (paused(2), None, waiting(5, 2)),
        ] {
            assert_eq!(state.held(2, id(1)), held, "{state:?}");
            assert_eq!(state.released(at(5)), released, "{state:?}");
        }
    }

    #[test]
    fn the_last_attempt_is_not_tried_again() {
        let later = Retry::Later(Duration::ZERO);
        let after = leased(9, 2).after_failure(2, later, (&POLICY, || 0), at(5));
        assert_eq!(after, Some(AfterFailure::Failed));
    }

    #[test]
    fn at_the_end_of_time_there_is_no_later_attempt() {
        let later = Retry::Later(Duration::ZERO);
        let after = |now| leased(9, 1).after_failure(1, later, (&POLICY, || 0), now);
        assert_eq!(after(Timestamp::MAX), Some(AfterFailure::Failed));
        let last = Timestamp::MAX;
        assert_eq!(after(at(last.as_millis() - 1)), Some(AfterFailure::RetryAt(last)));
    }

    /// One row per time that a provider asks for: when the task is due again, from 0 on.
    #[test]
    fn a_provider_is_left_alone_as_long_as_it_asks_but_not_for_ever() {
        let day = 24 * 60 * 60 * 1_000;
        for (asked, due_at) in [
            (Duration::ZERO, 10),
            (Duration::from_millis(9), 10),
            (Duration::from_millis(11), 11),
            (Duration::MAX, day),
        ] {
            let after = leased(9, 1).after_failure(1, Retry::Later(asked), (&POLICY, || 0), at(0));
            assert_eq!(after, Some(retry(due_at)), "{asked:?}");
        }
    }
}
