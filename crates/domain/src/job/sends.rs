//! Sends: a chat or push message goes to each destination of the subscriber on its own.

use serde::{Deserialize, Serialize};

use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::dead_letter::DeadLetterMark;
use crate::ids::{EndpointIdentifier, IntegrationId, JobId, MessageId, SendId, v7};
use crate::job::{Job, JobStatus};
use crate::vocabulary::wire_enum;

/// Message of a job on its way to one destination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct JobSend {
    /// Idempotency key of the attempts.
    #[serde(rename = "_id")]
    pub id: SendId,
    /// Destination.
    #[serde(flatten)]
    pub target: SendTarget,
    /// State.
    pub status: SendStatus,
    /// Message of the integration, once the send has ended.
    #[serde(rename = "_messageId", default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// Mark of a dead letter. `None` unless the send has failed for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_letter: Option<DeadLetterMark>,
}

/// Destination of a message at an integration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SendTarget {
    /// Integration that sends.
    #[serde(rename = "_integrationId")]
    pub integration_id: IntegrationId,
    /// Destination at the integration.
    pub to: Destination,
}

/// Destination at an integration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Destination {
    /// Webhook in the settings of the subscriber.
    Webhook,
    /// Device.
    Device {
        /// Token of the device.
        token: String,
    },
    /// Channel endpoint.
    Endpoint {
        /// Identifier of the endpoint.
        identifier: EndpointIdentifier,
    },
}

wire_enum! {
    /// State of a send.
    SendStatus, "status":
    Queued = "queued",
    Sent = "sent",
    Failed = "failed",
    Skipped = "skipped",
    Canceled = "canceled",
}

/// Outcome of a job, from those of its sends.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendsOutcome {
    /// A send has not ended.
    Waiting,
    /// Some have succeeded, and none has failed.
    Sent,
    /// Some have succeeded, and so many have failed.
    SomeFailed {
        /// Number of those that have failed.
        failed: usize,
    },
    /// None has succeeded, and some have failed.
    AllFailed,
    /// Each one was skipped.
    AllSkipped,
    /// None has succeeded or failed, and some were canceled.
    AllCanceled,
}

impl Destination {
    /// Returns what a log shows of the destination. The URL of a webhook is a secret.
    #[doc(hidden)]
    pub fn shown(&self) -> Option<String> {
        match self {
            Destination::Webhook => None,
            Destination::Device { token } => Some(token.clone()),
            Destination::Endpoint { identifier } => Some(identifier.to_string()),
        }
    }
}

impl SendTarget {
    /// Returns a destination at an integration.
    #[doc(hidden)]
    pub fn new(integration_id: IntegrationId, to: Destination) -> Self {
        Self { integration_id, to }
    }
}

impl JobSend {
    /// Returns a send of `job` that waits for its first attempt. Its id follows from both, so that it
    /// is the same if the job fans out again after a fault.
    #[doc(hidden)]
    pub fn new(job: JobId, target: SendTarget) -> Self {
        let job = Uuid::from(job).as_u128();
        let mut hash = Sha256::new().chain_update(job.to_be_bytes());
        hash.update(Uuid::from(target.integration_id).as_bytes());
        match &target.to {
            Destination::Webhook => {}
            Destination::Device { token } => hash.update(token),
            Destination::Endpoint { identifier } => {
                // No text has this byte, so that no token of a device is the same.
                hash.update([0xFF]);
                hash.update(identifier.as_str());
            }
        }
        let tail = hash.finalize().iter().fold(0, |tail: u128, byte| tail << 8 | u128::from(*byte));
        let millis = u64::try_from(job >> 80).unwrap_or_default();
        let id = v7(millis, tail & ((1 << 74) - 1)).into();
        Self { id, target, status: SendStatus::Queued, message_id: None, dead_letter: None }
    }
}

impl Job {
    /// Returns the sends that have not ended. A job that is sent again has none until it fans out: those
    /// of its earlier run have ended.
    #[doc(hidden)]
    pub fn waiting_sends(&self) -> impl Iterator<Item = &JobSend> {
        self.sends.iter().filter(|send| send.status == SendStatus::Queued)
    }

    /// Replaces the sends by one to each of these destinations. The sends of an integration keep its message.
    /// The message of a job without sends is that of the first integration.
    #[doc(hidden)]
    pub fn split(&mut self, targets: &[SendTarget]) {
        let first = targets.first().filter(|_| self.sends.is_empty());
        let first = first.map(|target| target.integration_id);
        let send = |target: &SendTarget| {
            let integration = target.integration_id;
            let is_first = first == Some(integration);
            let message_id =
                if is_first { self.message_id } else { self.stored_message(integration) };
            JobSend { message_id, ..JobSend::new(self.id, target.clone()) }
        };
        self.sends = targets.iter().map(send).collect();
    }

    /// Returns the message of an integration. Returns `None` if none of its sends has stored it.
    #[doc(hidden)]
    pub fn stored_message(&self, integration: IntegrationId) -> Option<MessageId> {
        let mut own = self.sends.iter().filter(|one| one.target.integration_id == integration);
        own.find_map(|one| one.message_id)
    }

    /// Sets the message of the sends of an integration. That of the first integration is the message of the job.
    #[doc(hidden)]
    pub fn set_message(&mut self, integration: IntegrationId, message: MessageId) {
        for send in self.sends.iter_mut().filter(|one| one.target.integration_id == integration) {
            send.message_id = Some(message);
        }
        if self.message_offset(integration) == 0 {
            self.message_id = Some(message);
        }
    }
}

impl SendsOutcome {
    /// Returns the outcome of a job with these sends.
    #[doc(hidden)]
    pub fn of(sends: &[JobSend]) -> Self {
        let has = |status| sends.iter().any(|send| send.status == status);
        let failed = sends.iter().filter(|send| send.status == SendStatus::Failed).count();
        match (has(SendStatus::Queued), has(SendStatus::Sent), failed) {
            (true, ..) => SendsOutcome::Waiting,
            (false, true, 0) => SendsOutcome::Sent,
            (false, true, failed) => SendsOutcome::SomeFailed { failed },
            (false, false, 0) if has(SendStatus::Canceled) => SendsOutcome::AllCanceled,
            (false, false, 0) => SendsOutcome::AllSkipped,
            (false, false, _) => SendsOutcome::AllFailed,
        }
    }

    /// Returns the status of a job with this outcome. A message that some destinations have is sent,
    /// whatever became of the other sends. Returns `None` if a send has not ended.
    #[doc(hidden)]
    pub const fn status(self) -> Option<JobStatus> {
        match self {
            SendsOutcome::Waiting => None,
            SendsOutcome::Sent | SendsOutcome::SomeFailed { .. } => Some(JobStatus::Completed),
            SendsOutcome::AllFailed => Some(JobStatus::Failed),
            SendsOutcome::AllSkipped => Some(JobStatus::Skipped),
            SendsOutcome::AllCanceled => Some(JobStatus::Canceled),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_id_of_a_send_follows_from_its_job_and_its_target() {
        let id = |job, (integration, to)| {
            JobSend::new(sample::id(job), SendTarget::new(sample::id(integration), to)).id
        };
        let device = |token: &str| Destination::Device { token: token.into() };
        let endpoint = Destination::Endpoint { identifier: "a".parse().unwrap() };
        let first = id(1, (2, device("a")));
        assert_eq!(id(1, (2, device("a"))), first);
        for (job, target) in [
            (3, (2, device("a"))),
            (1, (3, device("a"))),
            (1, (2, device("b"))),
            (1, (2, endpoint)),
            (1, (2, Destination::Webhook)),
        ] {
            assert_ne!(id(job, target.clone()), first, "{job} {target:?}");
        }
    }

    /// One row per mixture of sends.
    #[test]
    fn the_outcome_of_a_job_is_that_of_its_sends() {
        use SendStatus::{Canceled, Failed, Queued, Sent, Skipped};
        let (completed, failed) = (Some(JobStatus::Completed), Some(JobStatus::Failed));
        let (skipped, canceled) = (Some(JobStatus::Skipped), Some(JobStatus::Canceled));
        for (statuses, outcome, status) in [
            (&[Sent, Queued][..], SendsOutcome::Waiting, None),
            (&[Failed, Queued], SendsOutcome::Waiting, None),
            (&[Canceled, Queued], SendsOutcome::Waiting, None),
            (&[Sent], SendsOutcome::Sent, completed),
            (&[Sent, Sent], SendsOutcome::Sent, completed),
            (&[Sent, Skipped], SendsOutcome::Sent, completed),
            (&[Sent, Canceled], SendsOutcome::Sent, completed),
            (&[Canceled, Sent], SendsOutcome::Sent, completed),
            (&[Sent, Failed], SendsOutcome::SomeFailed { failed: 1 }, completed),
            (&[Failed, Sent, Skipped, Failed], SendsOutcome::SomeFailed { failed: 2 }, completed),
            (&[Failed, Sent, Canceled], SendsOutcome::SomeFailed { failed: 1 }, completed),
            (&[Failed, Failed], SendsOutcome::AllFailed, failed),
            (&[Failed, Skipped], SendsOutcome::AllFailed, failed),
            (&[Failed, Canceled], SendsOutcome::AllFailed, failed),
            (&[Skipped, Skipped], SendsOutcome::AllSkipped, skipped),
            (&[], SendsOutcome::AllSkipped, skipped),
            (&[Canceled, Canceled], SendsOutcome::AllCanceled, canceled),
            (&[Canceled, Skipped], SendsOutcome::AllCanceled, canceled),
        ] {
            let target = SendTarget::new(sample::id(1), Destination::Webhook);
            let send = |status: &SendStatus| JobSend {
                status: *status,
                ..JobSend::new(sample::id(2), target.clone())
            };
            let sends: Vec<_> = statuses.iter().map(send).collect();
            assert_eq!(SendsOutcome::of(&sends), outcome, "{statuses:?}");
            assert_eq!(outcome.status(), status, "{statuses:?}");
        }
    }
}
