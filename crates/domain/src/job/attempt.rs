//! Attempts: the claim of a due job, and its status after an outcome.

use std::time::Duration;

use super::{JobStatus, RetryPolicy};
use crate::time::Timestamp;

/// Decision about a due job.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Attempt with this number, counting from 1.
    Attempt(u32),
    /// Attempt with this number, after one whose outcome is unknown.
    Repeat(u32),
    /// No attempt: the outcome of the last one is unknown.
    GiveUp,
}

/// Outcome of an attempt.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendOutcome {
    /// The provider accepted the message.
    Sent,
    /// The provider refused the message for now. The next attempt is due after this time at the
    /// earliest.
    Later(Duration),
    /// The provider refused the message for good.
    Never,
}

/// Upper bound of the wait that a provider asks for.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

impl JobStatus {
    /// Returns the decision about the job at `now`. Returns `None` if the job is not due.
    #[doc(hidden)]
    pub fn claim(self, policy: &RetryPolicy, now: Timestamp) -> Option<Claim> {
        match self {
            JobStatus::Queued { due_at, attempts } if due_at <= now => {
                Some(Claim::Attempt(attempts.saturating_add(1)))
            }
            JobStatus::Running { lease_until, attempts } if lease_until <= now => {
                let last = attempts >= policy.attempts;
                Some(if last { Claim::GiveUp } else { Claim::Repeat(attempts.saturating_add(1)) })
            }
            JobStatus::Pending
            | JobStatus::Queued { .. }
            | JobStatus::Running { .. }
            | JobStatus::Completed
            | JobStatus::Failed
            | JobStatus::Canceled
            | JobStatus::Skipped => None,
        }
    }

    /// Returns the status after `outcome` of the attempt number `attempt`. Returns `None` if the
    /// outcome has no effect. An accepted message counts until the job has ended. A refused one
    /// counts only while `attempt` is the current attempt. `jitter` is called only if there is
    /// another attempt.
    #[doc(hidden)]
    pub fn after(
        self,
        attempt: u32,
        outcome: SendOutcome,
        (policy, jitter): (&RetryPolicy, impl FnOnce() -> u16),
        now: Timestamp,
    ) -> Option<JobStatus> {
        let has_it = self.is_attempt(attempt);
        match outcome {
            SendOutcome::Sent => (!self.has_ended()).then_some(JobStatus::Completed),
            SendOutcome::Never => has_it.then_some(JobStatus::Failed),
            SendOutcome::Later(asked) => has_it.then(|| match policy.next(attempt, jitter()) {
                Some(wait) => {
                    let due_at = now.after(wait.max(asked.min(LONGEST_WAIT)));
                    JobStatus::Queued { due_at, attempts: attempt }
                }
                None => JobStatus::Failed,
            }),
        }
    }

    /// Returns the status after attempt number `attempt` was given back at `now`, before its message
    /// was handed to the provider. The attempt does not count. Returns `None` if it is not the
    /// current attempt.
    pub fn given_back(self, attempt: u32, now: Timestamp) -> Option<JobStatus> {
        let attempts = attempt.saturating_sub(1);
        self.is_attempt(attempt).then_some(JobStatus::Queued { due_at: now, attempts })
    }

    /// Returns `true` if the job is leased, and the outcome of its attempt is unknown.
    pub const fn is_running(self) -> bool {
        matches!(self, JobStatus::Running { .. })
    }

    const fn is_attempt(self, attempt: u32) -> bool {
        match self {
            JobStatus::Running { attempts, .. } => attempts == attempt,
            JobStatus::Pending
            | JobStatus::Queued { .. }
            | JobStatus::Completed
            | JobStatus::Failed
            | JobStatus::Canceled
            | JobStatus::Skipped => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::at;

    const POLICY: RetryPolicy =
        RetryPolicy { attempts: 2, first_interval: Duration::from_millis(10) };

    const fn queued(due_at: i64, attempts: u32) -> JobStatus {
        JobStatus::Queued { due_at: Timestamp::from_millis(due_at), attempts }
    }

    const fn running(lease_until: i64, attempts: u32) -> JobStatus {
        JobStatus::Running { lease_until: Timestamp::from_millis(lease_until), attempts }
    }

    /// One row per status: what comes of the job at 5.
    #[test]
    fn what_is_due_is_tried_as_often_as_the_policy_says() {
        for (status, claim) in [
            (JobStatus::Pending, None),
            (queued(6, 0), None),
            (queued(5, 0), Some(Claim::Attempt(1))),
            // A provider asked for another attempt later.
            (queued(5, 2), Some(Claim::Attempt(3))),
            (running(6, 1), None),
            (running(5, 1), Some(Claim::Repeat(2))),
            (running(5, 2), Some(Claim::GiveUp)),
            (queued(5, u32::MAX), Some(Claim::Attempt(u32::MAX))),
            (JobStatus::Completed, None),
            (JobStatus::Failed, None),
            (JobStatus::Canceled, None),
            (JobStatus::Skipped, None),
        ] {
            assert_eq!(status.claim(&POLICY, at(5)), claim, "{status:?}");
        }
    }

    /// One row per status: where the job stands after each outcome of its first attempt, at 5.
    #[test]
    fn an_outcome_counts_while_the_attempt_is_current() {
        use JobStatus::{Canceled, Completed, Failed, Pending, Skipped};
        let later = SendOutcome::Later(Duration::ZERO);
        for (status, sent, retried, refused) in [
            (running(9, 1), Some(Completed), Some(queued(15, 1)), Some(Failed)),
            // Somebody else has it, or had it.
            (running(9, 2), Some(Completed), None, None),
            (queued(9, 2), Some(Completed), None, None),
            (Pending, Some(Completed), None, None),
            (Completed, None, None, None),
            (Failed, None, None, None),
            (Canceled, None, None, None),
            (Skipped, None, None, None),
        ] {
            let after = |outcome| status.after(1, outcome, (&POLICY, || 0), at(5));
            let statuses = [SendOutcome::Sent, later, SendOutcome::Never].map(after);
            assert_eq!(statuses, [sent, retried, refused], "{status:?}");
        }
    }

    /// One row per status: where the job stands after its second attempt was given back, at 5.
    #[test]
    fn an_attempt_that_was_given_back_does_not_count() {
        for (status, after) in [
            (running(9, 2), Some(queued(5, 1))),
            (running(5, 2), Some(queued(5, 1))),
            (running(9, 3), None),
            (queued(9, 2), None),
            (JobStatus::Pending, None),
            (JobStatus::Completed, None),
            (JobStatus::Failed, None),
        ] {
            assert_eq!(status.given_back(2, at(5)), after, "{status:?}");
        }
    }

    #[test]
    fn the_last_attempt_is_not_tried_again() {
        let later = SendOutcome::Later(Duration::ZERO);
        let after = running(9, 2).after(2, later, (&POLICY, || 0), at(5));
        assert_eq!(after, Some(JobStatus::Failed));
    }

    /// One row per time that a provider asks for: when the job is due again, from 0 on.
    #[test]
    fn a_provider_is_left_alone_as_long_as_it_asks_but_not_for_ever() {
        let day = 24 * 60 * 60 * 1_000;
        for (asked, due_at) in [
            (Duration::ZERO, 10),
            (Duration::from_millis(9), 10),
            (Duration::from_millis(11), 11),
            (Duration::MAX, day),
        ] {
            let after = running(9, 1).after(1, SendOutcome::Later(asked), (&POLICY, || 0), at(0));
            assert_eq!(after, Some(queued(due_at, 1)), "{asked:?}");
        }
    }
}
