//! Jobs: the execution of one step for one notification, with a log.

mod detail;
mod digest;
mod retry;
mod sends;

use serde::{Deserialize, Serialize};

use crate::dead_letter::DeadLetterMark;
use crate::filter::Filter;
use crate::ids::{ContentId, IntegrationId, JobId, MessageId, StepId, TaskId};
use crate::json::Object;
use crate::receipt::ProviderMessage;
use crate::step::{ReplyCallback, WorkflowStep};
use crate::time::Timestamp;
use crate::vocabulary::{ProviderId, StepType};
use crate::workflow::Workflow;

pub use detail::{Detail, ExecutionDetail, ExecutionSource, ExecutionStatus};
pub use digest::{DigestType, JobDigest, JobTimed};
pub use retry::RetryPolicy;
pub use sends::{Destination, JobSend, SendStatus, SendTarget, SendsOutcome};

// Each attempt writes the log anew, and a message may be sent again without end.
const MAX_LOG: usize = 1_000;

// Number of ids of messages at providers that a job keeps. A job with many destinations keeps two for each of
// them.
const MAX_PROVIDER_MESSAGES: usize = 100;

/// Execution of one step of a workflow, for one notification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Job {
    /// Id given by the engine.
    #[serde(rename = "_id")]
    pub id: JobId,
    /// Type of the step.
    #[serde(rename = "type")]
    pub kind: StepType,
    /// Events of a digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<JobDigest>,
    /// Log, oldest entry first. Of more than 1,000 entries, the first and the last 500 are kept.
    pub execution_details: Vec<ExecutionDetail>,
    /// Step, as of the trigger.
    pub step: JobStep,
    /// Overrides of the trigger for this job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overrides: Option<Object>,
    /// Payload of the trigger for this job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Object>,
    /// Provider of the job: that of the last integration that took part. A provider that the host has
    /// registered under a name of its own is shown as the built-in one of its channel, such as `svc-sms`.
    /// Its name is [`Integration::provider_id`](crate::integration::Integration::provider_id), and
    /// [`Message::provider_id`](crate::message::Message::provider_id) of the message.
    pub provider_id: ProviderId,
    /// Status.
    #[serde(flatten)]
    pub status: JobStatus,
    /// Message of the job.
    #[serde(rename = "_messageId", default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// Time of the last change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
    /// Result of a function of the host application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Object>,
    /// Sends to the destinations of the subscriber, if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sends: Vec<JobSend>,
    /// Mark of a dead letter. `None` unless the message has failed for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_letter: Option<DeadLetterMark>,
    /// Messages by the ids that their providers gave them, with what the providers have reported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub provider_messages: Vec<ProviderMessage>,
    /// Number of delays to fit the subscriber's schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_extensions_count: Option<u32>,
}

/// Status of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "lowercase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum JobStatus {
    /// Waits for the job before it.
    Pending,
    /// Holds up the jobs behind it, and goes on by itself.
    Delayed {
        /// Time at which the jobs go on.
        until: Timestamp,
    },
    /// Waits for an attempt.
    Queued {
        /// Earliest time of the attempt.
        due_at: Timestamp,
        /// Number of attempts so far.
        attempts: u32,
    },
    /// Leased for an attempt. Filled in by reads.
    Running {
        /// End of the lease, after which another attempt may begin.
        lease_until: Timestamp,
        /// Number of attempts, the current one included.
        attempts: u32,
    },
    /// Succeeded.
    Completed,
    /// Failed for good.
    Failed,
    /// Canceled, or behind a job that failed.
    Canceled,
    /// Skipped by a rule, such as a condition or a preference.
    Skipped,
    /// Done by another notification, whose digest has collected the event.
    Merged,
}

/// Step of a job, as it was when the event was triggered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct JobStep {
    /// Id given by the engine.
    #[serde(rename = "_id")]
    pub id: StepId,
    /// `true` if the step runs.
    pub active: bool,
    /// Conditions of the step.
    pub filters: Vec<Filter>,
    /// Id of the content, given by the engine.
    #[serde(rename = "_templateId")]
    pub content_id: ContentId,
    /// Address for replies, which has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_callback: Option<ReplyCallback>,
    /// Values that control the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_variables: Option<Object>,
    /// Settings of a delay, digest or throttle. Always absent: the workflow has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
    /// Problems of the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issues: Option<Object>,
    /// Content. Always absent: the workflow has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<Object>,
    /// Alternative contents. Always absent: the workflow has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<JobStep>,
    /// Display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Id of the step before it.
    #[serde(rename = "_parentId", default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<StepId>,
}

impl Job {
    /// Returns the ids of the tasks of its messages or of its call, which may be done.
    #[doc(hidden)]
    pub fn task_ids(&self) -> impl Iterator<Item = TaskId> {
        let sends = self.sends.iter().map(|send| send.id);
        [self.id.into()].into_iter().chain(sends).map(TaskId::from)
    }

    /// Returns a job that waits for the job before it.
    #[doc(hidden)]
    pub fn new(id: JobId, step: &WorkflowStep, now: Timestamp) -> Self {
        let kind = step.definition.kind.step_type();
        Self {
            id,
            kind,
            digest: None,
            execution_details: Vec::new(),
            step: JobStep::from(step),
            overrides: None,
            payload: None,
            provider_id: kind.channel().map_or(ProviderId::Svc, ProviderId::built_in),
            status: JobStatus::Pending,
            message_id: None,
            updated_at: Some(now),
            result: None,
            sends: Vec::new(),
            provider_messages: Vec::new(),
            dead_letter: None,
            schedule_extensions_count: None,
        }
    }

    /// Adds `entry` to the log, and sets the provider and the retry flag of the entry. A long log keeps its
    /// first entries and its last ones, and the first entry that says that the message was sent.
    #[doc(hidden)]
    pub fn log(&mut self, mut entry: ExecutionDetail) {
        entry.is_retry = self.execution_details.iter().any(|before| before.detail.is_attempt());
        entry.provider_id = entry.detail.names_provider().then_some(self.provider_id);
        let last = self.execution_details.len().saturating_sub(MAX_LOG / 2 - 1);
        if last > MAX_LOG / 2 {
            // Entries of the middle go. `was_sent` needs the first one of a sent message.
            if let Some(sent) = self.first_sent().filter(|at| (MAX_LOG / 2..last).contains(at)) {
                self.execution_details.swap(MAX_LOG / 2 - 1, sent);
            }
            self.execution_details.drain(MAX_LOG / 2..last);
        }
        self.execution_details.push(entry);
    }

    fn first_sent(&self) -> Option<usize> {
        self.execution_details.iter().position(|entry| entry.detail == Detail::MessageSent)
    }

    /// Returns `true` if the message was sent before.
    #[doc(hidden)]
    pub fn was_sent(&self) -> bool {
        self.first_sent().is_some()
    }

    /// Adds a message by the id that its provider gave it. The oldest ids go beyond 100, or beyond two for
    /// each destination.
    #[doc(hidden)]
    pub fn sent_as(&mut self, integration: IntegrationId, provider_message_id: &str) {
        if let Some(known) = self.provider_message(integration, provider_message_id) {
            known.resent = None;
        } else if let Some(sent) = ProviderMessage::new(integration, provider_message_id) {
            let most = MAX_PROVIDER_MESSAGES.max(2 * self.sends.len());
            let gone = (self.provider_messages.len() + 1).saturating_sub(most);
            self.provider_messages.drain(..gone);
            self.provider_messages.push(sent);
        }
    }

    /// Returns the message that has this id at its provider.
    #[doc(hidden)]
    pub fn provider_message(
        &mut self,
        integration: IntegrationId,
        id: &str,
    ) -> Option<&mut ProviderMessage> {
        self.provider_messages.iter_mut().find(|sent| sent.is(integration, id))
    }

    /// Returns the message that an integration has sent. Returns `None` if it went to several
    /// destinations: a report about one of them says nothing about the message.
    #[doc(hidden)]
    pub fn message_of(&self, integration: IntegrationId) -> Option<MessageId> {
        if self.sends.is_empty() {
            return self.message_id;
        }
        let mut own = self.sends.iter().filter(|one| one.target.integration_id == integration);
        match (own.next(), own.next()) {
            (Some(only), None) => only.message_id,
            _ => None,
        }
    }

    /// Returns the message of an integration that one of several destinations was called with. Returns `None`
    /// if none was called.
    #[doc(hidden)]
    pub fn message_called_with(&self, integration: IntegrationId) -> Option<MessageId> {
        let own = self.sends.iter().filter(|one| one.target.integration_id == integration);
        let mut called =
            own.filter(|one| matches!(one.status, SendStatus::Sent | SendStatus::Failed));
        called.find_map(|one| one.message_id)
    }

    /// Returns the places between the message of the job and that of an integration. The message of
    /// the first integration is that of the job.
    #[doc(hidden)]
    pub fn message_offset(&self, integration: IntegrationId) -> usize {
        let mut known = Vec::new();
        for send in &self.sends {
            if !known.contains(&send.target.integration_id) {
                known.push(send.target.integration_id);
            }
        }
        let place = known.iter().position(|one| *one == integration).unwrap_or_default();
        place * Workflow::MAX_STEPS
    }

    /// Sets the status.
    #[doc(hidden)]
    pub fn move_to(&mut self, status: JobStatus, now: Timestamp) {
        self.status = status;
        self.updated_at = Some(now);
    }
}

impl JobStatus {
    /// Returns the word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            JobStatus::Pending => "pending",
            JobStatus::Delayed { .. } => "delayed",
            JobStatus::Queued { .. } => "queued",
            JobStatus::Running { .. } => "running",
            JobStatus::Completed => "completed",
            JobStatus::Failed => "failed",
            JobStatus::Canceled => "canceled",
            JobStatus::Skipped => "skipped",
            JobStatus::Merged => "merged",
        }
    }

    /// Returns the time of the next attempt, the end of the lease, or that of the delay. Returns
    /// `None` if the job waits for another one or has ended.
    pub const fn due_at(self) -> Option<Timestamp> {
        match self {
            JobStatus::Delayed { until } => Some(until),
            JobStatus::Queued { due_at, .. } => Some(due_at),
            JobStatus::Running { lease_until, .. } => Some(lease_until),
            JobStatus::Pending
            | JobStatus::Completed
            | JobStatus::Failed
            | JobStatus::Canceled
            | JobStatus::Skipped
            | JobStatus::Merged => None,
        }
    }

    /// Returns the end of the delay. Returns `None` if the job is not delayed.
    pub(crate) const fn delayed_until(self) -> Option<Timestamp> {
        if let JobStatus::Delayed { until } = self { Some(until) } else { None }
    }

    /// Returns `true` if the job has ended.
    pub const fn has_ended(self) -> bool {
        match self {
            JobStatus::Pending
            | JobStatus::Delayed { .. }
            | JobStatus::Queued { .. }
            | JobStatus::Running { .. } => false,
            JobStatus::Completed
            | JobStatus::Failed
            | JobStatus::Canceled
            | JobStatus::Skipped
            | JobStatus::Merged => true,
        }
    }
}

impl From<&WorkflowStep> for JobStep {
    fn from(step: &WorkflowStep) -> Self {
        Self {
            id: step.id,
            active: step.definition.active,
            filters: step.definition.filters.clone(),
            content_id: step.content_id,
            reply_callback: step.definition.reply_callback.clone(),
            control_variables: None,
            metadata: None,
            issues: None,
            template: None,
            variants: Vec::new(),
            name: step.definition.name.clone(),
            parent_id: step.parent_id,
        }
    }
}

#[cfg(test)]
mod tests;
