//! Outcomes of notifications: what has become of their jobs.

use super::Notification;
use crate::job::{Job, JobStatus};
use crate::vocabulary::wire_enum;

wire_enum! {
    /// Outcome of a notification: at least one of its jobs has it. A notification with several jobs
    /// may have several outcomes, such as a message that was delivered and one that has failed.
    ///
    /// | outcome     | a job of the notification |
    /// |-------------|---------------------------|
    /// | `waiting`   | has not ended: it waits for another job, a time, a digest or an attempt |
    /// | `delivered` | has put its message into the inbox, or the provider has accepted it |
    /// | `failed`    | failed for good |
    /// | `skipped`   | was skipped by a rule, such as a condition, a preference or a throttle, or has expired |
    /// | `canceled`  | was canceled, or is behind a job that failed |
    /// | `merged`    | is part of the digest of another notification |
    ///
    /// A delay, a digest, a throttle and a custom step deliver nothing.
    #[non_exhaustive]
    NotificationOutcome, "outcomes":
    Waiting = "waiting",
    Delivered = "delivered",
    Failed = "failed",
    Skipped = "skipped",
    Canceled = "canceled",
    Merged = "merged",
}

/// Set of outcomes.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcomes(u8);

impl NotificationOutcome {
    /// Returns the number in keys. The outcomes are declared in the order of their numbers.
    #[doc(hidden)]
    pub const fn number(self) -> u8 {
        self as u8
    }

    // The bit in a set.
    const fn bit(self) -> u8 {
        1 << self.number()
    }
}

impl Outcomes {
    /// Returns `true` if the set has `outcome`.
    pub const fn has(self, outcome: NotificationOutcome) -> bool {
        self.0 & outcome.bit() != 0
    }
}

impl FromIterator<NotificationOutcome> for Outcomes {
    fn from_iter<I: IntoIterator<Item = NotificationOutcome>>(outcomes: I) -> Self {
        Self(outcomes.into_iter().fold(0, |bits, outcome| bits | outcome.bit()))
    }
}

impl Job {
    /// Returns the outcome that the job gives its notification. Returns `None` for a step without a
    /// message that has completed.
    pub fn outcome(&self) -> Option<NotificationOutcome> {
        match self.status {
            JobStatus::Pending
            | JobStatus::Delayed { .. }
            | JobStatus::Queued { .. }
            | JobStatus::Running { .. } => Some(NotificationOutcome::Waiting),
            JobStatus::Completed => self.kind.channel().map(|_| NotificationOutcome::Delivered),
            JobStatus::Failed => Some(NotificationOutcome::Failed),
            JobStatus::Canceled => Some(NotificationOutcome::Canceled),
            JobStatus::Skipped => Some(NotificationOutcome::Skipped),
            JobStatus::Merged => Some(NotificationOutcome::Merged),
        }
    }
}

impl Notification {
    /// Returns the outcomes of all jobs.
    #[doc(hidden)]
    pub fn outcomes(&self) -> Outcomes {
        self.jobs.iter().filter_map(Job::outcome).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;
    use crate::vocabulary::StepType;

    #[test]
    fn the_outcome_of_a_job() {
        let at = Timestamp::default();
        let waiting = Some(NotificationOutcome::Waiting);
        let table = [
            (StepType::Email, JobStatus::Pending, waiting),
            (StepType::Delay, JobStatus::Delayed { until: at }, waiting),
            (StepType::Sms, JobStatus::Queued { due_at: at, attempts: 1 }, waiting),
            (StepType::Push, JobStatus::Running { lease_until: at, attempts: 1 }, waiting),
            (StepType::InApp, JobStatus::Completed, Some(NotificationOutcome::Delivered)),
            (StepType::Chat, JobStatus::Completed, Some(NotificationOutcome::Delivered)),
            (StepType::Delay, JobStatus::Completed, None),
            (StepType::Digest, JobStatus::Completed, None),
            (StepType::Throttle, JobStatus::Completed, None),
            (StepType::Custom, JobStatus::Completed, None),
            (StepType::Custom, JobStatus::Failed, Some(NotificationOutcome::Failed)),
            (StepType::Email, JobStatus::Canceled, Some(NotificationOutcome::Canceled)),
            (StepType::Email, JobStatus::Skipped, Some(NotificationOutcome::Skipped)),
            (StepType::Digest, JobStatus::Merged, Some(NotificationOutcome::Merged)),
        ];
        for (kind, status, expected) in table {
            let job = crate::notification::tests::job(kind, status);
            assert_eq!(job.outcome(), expected, "{kind} {status:?}");
        }
    }

    /// Files have these numbers.
    #[test]
    fn every_outcome_keeps_its_number() {
        let outcomes = [
            NotificationOutcome::Waiting,
            NotificationOutcome::Delivered,
            NotificationOutcome::Failed,
            NotificationOutcome::Skipped,
            NotificationOutcome::Canceled,
            NotificationOutcome::Merged,
        ];
        assert_eq!(outcomes.map(NotificationOutcome::number), [0, 1, 2, 3, 4, 5]);
        assert_eq!(NotificationOutcome::ALL, outcomes);
    }

    #[test]
    fn a_set_has_what_it_was_made_of() {
        for outcome in NotificationOutcome::ALL {
            let set: Outcomes = [*outcome].into_iter().collect();
            for other in NotificationOutcome::ALL {
                assert_eq!(set.has(*other), other == outcome);
            }
        }
    }
}
