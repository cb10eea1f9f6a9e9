//! Jobs: one step of a workflow for one notification, and what happened to it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::filter::StepFilter;
use crate::ids::{DetailId, JobId, MessageId, StepId, TemplateId};
use crate::json::Object;
use crate::step::{MonthlyType, Ordinal, OrdinalValue, Step};
use crate::time::Timestamp;
use crate::vocabulary::{JobType, ProviderId, TimeUnit, Weekday, vocabulary};

/// A step of a workflow on its way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
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
pub struct JobStep {
    /// What the engine calls it.
    #[serde(rename = "_id")]
    pub id: StepId,
    /// Whether it is run.
    pub active: bool,
    /// When it is run.
    pub filters: Vec<StepFilter>,
    /// What the engine calls its content.
    #[serde(rename = "_templateId")]
    pub template_id: TemplateId,
    /// Where replies go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_callback: Option<Object>,
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

/// What a digest collected, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "named as in the specification")]
pub struct JobDigest {
    #[serde(rename = "type")]
    pub kind: DigestType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<TimeUnit>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_amount: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_unit: Option<TimeUnit>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_mode: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timed: Option<JobTimed>,
}

vocabulary! {
    /// How a digest collects.
    DigestType, "type":
    Regular = "regular",
    Backoff = "backoff",
    Timed = "timed",
}

/// The times of the calendar at which a digest ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "named as in the specification")]
pub struct JobTimed {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_time: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub week_days: Vec<Weekday>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub month_days: Vec<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ordinal: Option<Ordinal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ordinal_value: Option<OrdinalValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub monthly_type: Option<MonthlyType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cron_expression: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until_date: Option<String>,
}

/// An entry in the log of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
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
    /// What is to be known about it, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    /// Where it comes from.
    pub source: ExecutionSource,
}

vocabulary! {
    /// How good or bad an entry in the log of a job is.
    ExecutionStatus, "status":
    Success = "Success",
    Warning = "Warning",
    Failed = "Failed",
    Pending = "Pending",
    Queued = "Queued",
    ReadConfirmation = "ReadConfirmation",
}

vocabulary! {
    /// Where an entry in the log of a job comes from.
    ExecutionSource, "source":
    Credentials = "Credentials",
    Internal = "Internal",
    Payload = "Payload",
    Webhook = "Webhook",
}

vocabulary! {
    /// What happened to a job. The words are stable: they can be searched for.
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
    pub fn new(id: JobId, step: &Step, now: Timestamp) -> Self {
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
    /// When somebody has to look after the job; never, if nobody has to.
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

/// How often, and at which intervals, a provider that cannot send right now is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How often in all.
    pub attempts: u32,
    /// The time between the first try and the second. It doubles with every try.
    pub first_interval: Duration,
}

impl Default for RetryPolicy {
    /// Eight tries within half an hour.
    fn default() -> Self {
        Self { attempts: 8, first_interval: Duration::from_secs(14) }
    }
}

impl RetryPolicy {
    /// How long to wait after the try number `attempts`; nothing if it was the last one.
    /// `jitter`, out of 65 536, takes up to a quarter off, so that what failed together is not
    /// tried together.
    pub fn next(&self, attempts: u32, jitter: u16) -> Option<Duration> {
        if attempts >= self.attempts {
            return None;
        }
        let doubled = 2_u32.saturating_pow(attempts.saturating_sub(1));
        let interval = self.first_interval.saturating_mul(doubled);
        Some(interval - interval / 4 / (1 << 16) * u32::from(jitter))
    }
}

impl From<&Step> for JobStep {
    fn from(step: &Step) -> Self {
        Self {
            id: step.id,
            active: step.definition.active,
            filters: step.definition.filters.clone(),
            template_id: step.template_id,
            reply_callback: None,
            control_variables: None,
            metadata: None,
            issues: None,
            template: None,
            variants: Vec::new(),
            name: step.definition.name.clone(),
            parent_id: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_tries_take_half_an_hour() {
        let policy = RetryPolicy::default();
        let waits: Vec<_> = (1..).map_while(|attempts| policy.next(attempts, 0)).collect();
        assert_eq!(
            waits.iter().map(Duration::as_secs).collect::<Vec<_>>(),
            [14, 28, 56, 112, 224, 448, 896]
        );
        assert!(waits.iter().sum::<Duration>() < Duration::from_secs(30 * 60));
    }

    #[test]
    fn jitter_takes_a_quarter_off_at_most() {
        let policy = RetryPolicy { attempts: 2, first_interval: Duration::from_secs(64) };
        assert_eq!(policy.next(1, 0), Some(Duration::from_secs(64)));
        let least = policy.next(1, u16::MAX).unwrap();
        assert!(least > Duration::from_secs(48) && least < Duration::from_millis(48_001));
        assert_eq!(policy.next(2, 0), None);
    }

    #[test]
    fn a_status_carries_what_is_known_in_it() {
        let queued = JobStatus::Queued { due_at: Timestamp::from_millis(0), attempts: 1 };
        assert_eq!(
            serde_json::to_string(&queued).unwrap(),
            r#"{"status":"queued","dueAt":"1970-01-01T00:00:00.000Z","attempts":1}"#
        );
        assert_eq!(serde_json::to_string(&JobStatus::Skipped).unwrap(), r#"{"status":"skipped"}"#);
    }
}
