//! Jobs: one step of a workflow for one notification, and what happened to it.

mod attempt;
mod digest;
mod retry;

use serde::{Deserialize, Serialize};

use crate::filter::Filter;
use crate::ids::{DetailId, JobId, MessageId, StepId, TemplateId};
use crate::json::Object;
use crate::step::{ReplyCallback, WorkflowStep};
use crate::time::Timestamp;
use crate::vocabulary::{JobType, ProviderId, wire_enum};

pub use attempt::{Claim, SendOutcome};
pub use digest::{DigestType, JobDigest, JobTimed};
pub use retry::RetryPolicy;

/// The execution of one step of a workflow, for one notification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Job {
    /// What the engine calls it.
    #[serde(rename = "_id")]
    pub id: JobId,
    /// What it does.
    #[serde(rename = "type")]
    pub kind: JobType,
    /// What a digest collected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<JobDigest>,
    /// What happened to it, oldest first.
    pub execution_details: Vec<ExecutionDetail>,
    /// The step that it is.
    pub step: JobStep,
    /// The overrides that apply to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overrides: Option<Object>,
    /// The payload that applies to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Object>,
    /// The provider that it goes through.
    pub provider_id: ProviderId,
    /// Where it stands.
    #[serde(flatten)]
    pub status: JobStatus,
    /// The message that came of it.
    #[serde(rename = "_messageId", default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// When it last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
    /// How often it was put off to fit the subscriber's schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_extensions_count: Option<u32>,
}

/// Where a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum JobStatus {
    /// It waits for the job before it.
    Pending,
    /// It waits for somebody to take it.
    Queued {
        /// When it may be taken.
        due_at: Timestamp,
        /// How often it was tried before.
        attempts: u32,
    },
    /// Somebody has it.
    Running {
        /// Until when nobody else may take it.
        lease_until: Timestamp,
        /// How often it was tried, this time included.
        attempts: u32,
    },
    /// It did what it should.
    Completed,
    /// It could not do what it should.
    Failed,
    /// A job before it failed, or somebody called it off.
    Canceled,
    /// A rule said that it should not be done.
    Skipped,
}

/// The step that a job is, as it was when the event was triggered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct JobStep {
    /// What the engine calls it.
    #[serde(rename = "_id")]
    pub id: StepId,
    /// Whether it is run.
    pub active: bool,
    /// When it is run.
    pub filters: Vec<Filter>,
    /// What the engine calls its content.
    #[serde(rename = "_templateId")]
    pub template_id: TemplateId,
    /// Where replies go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_callback: Option<ReplyCallback>,
    /// Values that control it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_variables: Option<Object>,
    /// How it waits or collects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
    /// What is wrong with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issues: Option<Object>,
    /// What it says. Empty here: the workflow has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<Object>,
    /// Other contents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<JobStep>,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The step before it.
    #[serde(rename = "_parentId", default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<StepId>,
}

/// An entry in the log of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ExecutionDetail {
    /// What the engine calls it.
    #[serde(rename = "_id")]
    pub id: DetailId,
    /// When it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// How good or bad it is.
    pub status: ExecutionStatus,
    /// What happened.
    pub detail: Detail,
    /// Whether it happened when the job was tried again.
    pub is_retry: bool,
    /// Whether it was a test.
    pub is_test: bool,
    /// The provider that it happened with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<ProviderId>,
    /// More about it, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    /// Where it comes from.
    pub source: ExecutionSource,
}

wire_enum! {
    /// How good or bad an entry in the log of a job is.
    ExecutionStatus, "status":
    Success = "Success",
    Warning = "Warning",
    Failed = "Failed",
    Pending = "Pending",
    Queued = "Queued",
    ReadConfirmation = "ReadConfirmation",
}

wire_enum! {
    /// Where an entry in the log of a job comes from.
    ExecutionSource, "source":
    Credentials = "Credentials",
    Internal = "Internal",
    Payload = "Payload",
    Webhook = "Webhook",
}

wire_enum! {
    /// What happened to a job. The words are stable: they can be searched for.
    #[non_exhaustive]
    Detail, "detail":
    StepQueued = "step_queued",
    MessageCreated = "message_created",
    MessageSent = "message_sent",
    IntegrationSelected = "integration_selected",
    VariantChosen = "variant_chosen",
    FilteredByStepConditions = "filtered_by_step_conditions",
    FilteredByWorkflowPreference = "filtered_by_workflow_preference",
    FilteredBySubscriberGlobalPreference = "filtered_by_subscriber_global_preference",
    FilteredBySubscriberWorkflowPreference = "filtered_by_subscriber_workflow_preference",
    SubscriberDeleted = "subscriber_deleted",
    WorkflowDeleted = "workflow_deleted",
    StepDeleted = "step_deleted",
    StepInactive = "step_inactive",
    ContentNotGenerated = "content_not_generated",
    NoActiveIntegration = "no_active_integration",
    MissingEmail = "missing_email",
    MissingPhone = "missing_phone",
    MissingPushTokens = "missing_push_tokens",
    MissingChatWebhook = "missing_chat_webhook",
    ProviderMissing = "provider_missing",
    ProviderRetry = "provider_retry",
    ProviderError = "provider_error",
    LeaseExpired = "lease_expired",
    PrecedingStepFailed = "preceding_step_failed",
}

impl Detail {
    // Whether a try came to an end with it.
    const fn is_attempt(self) -> bool {
        matches!(self, Detail::ProviderRetry | Detail::LeaseExpired)
    }

    // Whether it happened with the provider of the job.
    const fn names_provider(self) -> bool {
        matches!(
            self,
            Detail::IntegrationSelected
                | Detail::MessageSent
                | Detail::ProviderRetry
                | Detail::ProviderError
                | Detail::ProviderMissing
        )
    }

    /// How good or bad it is.
    pub const fn status(self) -> ExecutionStatus {
        match self {
            Detail::StepQueued => ExecutionStatus::Queued,
            Detail::MessageCreated
            | Detail::MessageSent
            | Detail::IntegrationSelected
            | Detail::VariantChosen
            | Detail::FilteredByStepConditions
            | Detail::FilteredByWorkflowPreference
            | Detail::FilteredBySubscriberGlobalPreference
            | Detail::FilteredBySubscriberWorkflowPreference => ExecutionStatus::Success,
            Detail::SubscriberDeleted
            | Detail::WorkflowDeleted
            | Detail::StepDeleted
            | Detail::StepInactive
            | Detail::MissingEmail
            | Detail::MissingPhone
            | Detail::MissingPushTokens
            | Detail::MissingChatWebhook
            | Detail::LeaseExpired
            | Detail::PrecedingStepFailed => ExecutionStatus::Warning,
            Detail::ProviderRetry => ExecutionStatus::Pending,
            Detail::ContentNotGenerated
            | Detail::NoActiveIntegration
            | Detail::ProviderMissing
            | Detail::ProviderError => ExecutionStatus::Failed,
        }
    }
}

impl ExecutionDetail {
    /// The entry that says that `detail` has happened.
    pub fn new(id: DetailId, detail: Detail, raw: Option<String>, now: Timestamp) -> Self {
        Self {
            id,
            created_at: Some(now),
            status: detail.status(),
            detail,
            is_retry: false,
            is_test: false,
            provider_id: None,
            raw,
            source: ExecutionSource::Internal,
        }
    }
}

impl Job {
    /// A job that waits for its turn.
    pub fn new(id: JobId, step: &WorkflowStep, now: Timestamp) -> Self {
        let kind = step.definition.kind.job_type();
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
            schedule_extensions_count: None,
        }
    }

    /// Adds `entry` to the log, with the provider and whether the job was tried before.
    pub fn log(&mut self, mut entry: ExecutionDetail) {
        entry.is_retry = self.execution_details.iter().any(|before| before.detail.is_attempt());
        entry.provider_id = entry.detail.names_provider().then_some(self.provider_id);
        self.execution_details.push(entry);
    }

    /// Moves the job to `status`.
    pub fn move_to(&mut self, status: JobStatus, now: Timestamp) {
        self.status = status;
        self.updated_at = Some(now);
    }
}

impl JobStatus {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            JobStatus::Pending => "pending",
            JobStatus::Queued { .. } => "queued",
            JobStatus::Running { .. } => "running",
            JobStatus::Completed => "completed",
            JobStatus::Failed => "failed",
            JobStatus::Canceled => "canceled",
            JobStatus::Skipped => "skipped",
        }
    }

    /// When the job is to be tried, or its lease is over; never, if it waits or is over.
    pub const fn due_at(self) -> Option<Timestamp> {
        match self {
            JobStatus::Queued { due_at, .. } => Some(due_at),
            JobStatus::Running { lease_until, .. } => Some(lease_until),
            JobStatus::Pending
            | JobStatus::Completed
            | JobStatus::Failed
            | JobStatus::Canceled
            | JobStatus::Skipped => None,
        }
    }

    /// Whether the job is over.
    pub const fn has_ended(self) -> bool {
        match self {
            JobStatus::Pending | JobStatus::Queued { .. } | JobStatus::Running { .. } => false,
            JobStatus::Completed | JobStatus::Failed | JobStatus::Canceled | JobStatus::Skipped => {
                true
            }
        }
    }
}

impl From<&WorkflowStep> for JobStep {
    fn from(step: &WorkflowStep) -> Self {
        Self {
            id: step.id,
            active: step.definition.active,
            filters: step.definition.filters.clone(),
            template_id: step.template_id,
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
