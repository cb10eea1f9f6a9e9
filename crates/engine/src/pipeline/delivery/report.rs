//! The report of a run of the delivery queue.

use std::{fmt, mem};

use domain::ids::{EnvironmentId, JobId, NotificationId};
use domain::job::Detail;
use domain::notification::Notification;
use domain::time::Timestamp;
use domain::vocabulary::StepType;
use parking_lot::Mutex;
use serde::Serialize;
use thiserror::Error;

use super::SendError;
use crate::Result;
use crate::error::as_text;

/// Results of the due jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DeliveryReport {
    /// Number of messages that a provider has accepted.
    pub sent: usize,
    /// Number of messages that wait for another attempt.
    pub retried: usize,
    /// Number of jobs that have failed for good. Jobs that fail in the first turn of a notification are not counted,
    /// because that turn is a part of the trigger. An example is an inbox message whose template fails. The
    /// [observer](crate::Builder::observer) gets an event for every failed job
    /// ([`JobFailed`](crate::observer::Event::JobFailed)).
    pub failed: usize,
    /// Number of jobs skipped, for a preference, a condition, a missing address or a throttle, and of
    /// messages that were canceled before their calls. Those that are skipped in the first turn of a
    /// notification are not counted.
    pub skipped: usize,
    /// Number of records that were removed for their [age](crate::Builder::retention).
    pub swept: usize,
    /// Number of notifications of events with many recipients.
    pub created: usize,
    /// Number of snoozed messages that were delivered again.
    pub woken: usize,
    /// Number of messages left to another thread or process, because their lease was over.
    pub superseded: usize,
    /// Number of messages that wait without an attempt: their provider takes no more at the moment, or
    /// their integration has an open circuit or is paused. See
    /// [`Builder::per_second`](crate::Builder::per_second), [`Builder::circuit`](crate::Builder::circuit)
    /// and [`Integrations::pause`](crate::Integrations::pause).
    pub postponed: usize,
    /// Number of tasks taken out of the queue, because a stored record cannot be read. See
    /// [`Engine::quarantine`](crate::Engine::quarantine).
    pub quarantined: usize,
    /// The first [`MAX_FAILURES`](Self::MAX_FAILURES) jobs that failed or will be tried again.
    pub failures: Vec<DeliveryFailure>,
}

/// A job whose message was not sent.
///
/// Prints as `email job 0198… of notification 0198…: no provider is registered`, with the provider
/// and the time of the next attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DeliveryFailure {
    /// The environment of the notification.
    pub environment_id: EnvironmentId,
    /// The notification that the job is a part of.
    pub notification_id: NotificationId,
    /// The job. A delivery to one of several destinations has an
    /// [idempotency key](crate::Delivery::idempotency_key) of its own.
    pub job_id: JobId,
    /// The kind of the job, which [names its channel](StepType::channel).
    pub kind: StepType,
    /// The provider of the integration. `None` if this run ended before a provider was asked.
    pub provider_id: Option<String>,
    /// Reason for which the message was not sent. JSON has its text.
    #[serde(serialize_with = "as_text")]
    pub reason: FailureReason,
    /// Time of the next attempt. `None` if the job has failed for good.
    pub retry_at: Option<Timestamp>,
}

/// Reason for which a message was not sent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FailureReason {
    /// The provider refused the message. Its reason has the first 1,000 characters of the text that the
    /// provider gave.
    #[error(transparent)]
    Refused(SendError),
    /// No provider is registered for the integration.
    #[error("no provider is registered")]
    NoProvider,
    /// No function is registered for the custom step.
    #[error("no handler is registered")]
    NoHandler,
    /// The lease of the last attempt is over, and the outcome of the attempt is unknown.
    #[error("the last attempt has not been answered")]
    Unanswered,
    /// The message could not be made, has no integration, or the settings of the step do not fit the
    /// event.
    #[error("{detail}{}", text.as_ref().map_or(String::new(), |text| format!(": {text}")))]
    Unsendable {
        /// Reason, as in the execution details of the job.
        detail: Detail,
        /// Additional text, such as the error of a template.
        text: Option<String>,
    },
}

/// Reports of calls that have failed, which their callers have not seen.
#[derive(Debug, Default)]
pub(crate) struct PendingReport(Mutex<DeliveryReport>);

impl PendingReport {
    /// Returns the report of `run`, with those of the calls before that have failed.
    ///
    /// # Errors
    ///
    /// The error of `run`. The report is kept for the next call.
    pub(super) fn with_pending(
        &self,
        run: impl FnOnce(&mut DeliveryReport) -> Result<()>,
    ) -> Result<DeliveryReport> {
        let mut report = mem::take(&mut *self.0.lock());
        match run(&mut report) {
            Ok(()) => Ok(report),
            Err(error) => {
                self.0.lock().add_all(report);
                Err(error)
            }
        }
    }
}

impl DeliveryReport {
    /// Largest number of failures that a report names.
    pub const MAX_FAILURES: usize = 100;

    /// Adds the results of another run.
    pub(crate) fn add_all(&mut self, other: Self) {
        let Self {
            sent,
            retried,
            failed,
            skipped,
            swept,
            created,
            woken,
            superseded,
            postponed,
            quarantined,
            failures,
        } = other;
        self.created += created;
        self.woken += woken;
        self.sent += sent;
        self.retried += retried;
        self.failed += failed;
        self.skipped += skipped;
        self.superseded += superseded;
        self.swept += swept;
        self.postponed += postponed;
        self.quarantined += quarantined;
        let room = Self::MAX_FAILURES.saturating_sub(self.failures.len());
        self.failures.extend(failures.into_iter().take(room));
    }

    /// Counts a failure, and names it if there is room.
    pub(super) fn add(&mut self, failure: DeliveryFailure) {
        match failure.retry_at {
            Some(_) => self.retried += 1,
            None => self.failed += 1,
        }
        if self.failures.len() < Self::MAX_FAILURES {
            self.failures.push(failure);
        }
    }
}

impl fmt::Display for DeliveryFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, job_id, notification_id, reason, .. } = self;
        write!(f, "{kind} job {job_id} of notification {notification_id}")?;
        if let Some(provider) = &self.provider_id {
            write!(f, " through {provider}")?;
        }
        write!(f, ": {reason}")?;
        match self.retry_at {
            Some(at) => write!(f, ", next attempt at {at}"),
            None => Ok(()),
        }
    }
}

impl DeliveryFailure {
    /// The failure of a job of `notification` for good, before a provider was asked.
    pub(super) fn unsent(
        notification: &Notification,
        job: (JobId, StepType),
        reason: FailureReason,
    ) -> Self {
        let (job_id, kind) = job;
        Self {
            environment_id: notification.environment_id,
            notification_id: notification.id,
            job_id,
            kind,
            provider_id: None,
            reason,
            retry_at: None,
        }
    }

    /// Returns the failure with the time of the next attempt.
    pub(super) fn retried_at(self, due_at: Timestamp) -> Self {
        Self { retry_at: Some(due_at), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_prints_job_provider_reason_and_next_attempt() {
        let id = "0198a000-0000-7000-8000-000000000001";
        let failure = DeliveryFailure {
            environment_id: id.parse().unwrap(),
            notification_id: id.parse().unwrap(),
            job_id: id.parse().unwrap(),
            kind: StepType::Email,
            provider_id: None,
            reason: FailureReason::NoProvider,
            retry_at: None,
        };
        let of = format!("email job {id} of notification {id}");
        assert_eq!(failure.to_string(), format!("{of}: no provider is registered"));
        let retry_at = Some(Timestamp::from_millis(0));
        let retried = DeliveryFailure { provider_id: Some("smtp".into()), retry_at, ..failure };
        let then = "next attempt at 1970-01-01T00:00:00.000Z";
        let expected = format!("{of} through smtp: no provider is registered, {then}");
        assert_eq!(retried.to_string(), expected);
        let reason = |text: Option<&str>| FailureReason::Unsendable {
            detail: Detail::ContentNotGenerated,
            text: text.map(Into::into),
        };
        assert_eq!(reason(None).to_string(), "content_not_generated");
        assert_eq!(reason(Some("in line 1")).to_string(), "content_not_generated: in line 1");
    }
}
