//! Jobs: the execution of one step for one notification, with a log.

mod digest;
mod retry;
mod sends;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::dead_letter::DeadLetterMark;
use crate::filter::Filter;
use crate::ids::{DetailId, IntegrationId, JobId, MessageId, StepId, TaskId, TemplateId};
use crate::json::Object;
use crate::receipt::ProviderMessage;
use crate::step::{ReplyCallback, WorkflowStep};
use crate::time::Timestamp;
use crate::vocabulary::{JobType, ProviderId, wire_enum};
use crate::workflow::Workflow;

pub use digest::{DigestType, JobDigest, JobTimed};
pub use retry::RetryPolicy;
pub use sends::{Destination, JobSend, SendStatus, SendTarget, SendsOutcome};

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
    pub kind: JobType,
    /// Events of a digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<JobDigest>,
    /// Log, oldest entry first.
    pub execution_details: Vec<ExecutionDetail>,
    /// Step, as of the trigger.
    pub step: JobStep,
    /// Overrides of the trigger for this job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overrides: Option<Object>,
    /// Payload of the trigger for this job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Object>,
    /// Provider of the job.
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
    pub template_id: TemplateId,
    /// Address for replies, which has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_callback: Option<ReplyCallback>,
    /// Values that control the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_variables: Option<Object>,
    /// Settings of a delay, digest or throttle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
    /// Problems of the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issues: Option<Object>,
    /// Content. Always absent: the workflow has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<Object>,
    /// Alternative contents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<JobStep>,
    /// Display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Id of the step before it.
    #[serde(rename = "_parentId", default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<StepId>,
}

/// Entry in the log of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ExecutionDetail {
    /// Id given by the engine.
    #[serde(rename = "_id")]
    pub id: DetailId,
    /// Time of the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// Severity of the entry.
    pub status: ExecutionStatus,
    /// Event that the entry records.
    pub detail: Detail,
    /// `true` if the job was attempted before.
    pub is_retry: bool,
    /// `true` if the job was a test.
    pub is_test: bool,
    /// Provider that took part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<ProviderId>,
    /// Details, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    /// Origin of the entry.
    pub source: ExecutionSource,
}

wire_enum! {
    /// Severity of an entry in the log of a job.
    ExecutionStatus, "status":
    Success = "Success",
    Warning = "Warning",
    Failed = "Failed",
    Pending = "Pending",
    Queued = "Queued",
    ReadConfirmation = "ReadConfirmation",
}

wire_enum! {
    /// Origin of an entry in the log of a job.
    ExecutionSource, "source":
    Credentials = "Credentials",
    Internal = "Internal",
    Payload = "Payload",
    Webhook = "Webhook",
}

wire_enum! {
    /// Event in the log of a job. The words are stable, so that hosts can search for them.
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
    VariableMissing = "variable_missing",
    TranslationMissing = "translation_missing",
    TranslationInvalid = "translation_invalid",
    LayoutMissing = "layout_missing",
    NoActiveIntegration = "no_active_integration",
    MissingEmail = "missing_email",
    MissingPhone = "missing_phone",
    MissingPushTokens = "missing_push_tokens",
    MissingChatWebhook = "missing_chat_webhook",
    AddressSuppressed = "address_suppressed",
    ProviderMissing = "provider_missing",
    ProviderRetry = "provider_retry",
    ProviderError = "provider_error",
    IntegrationSwitched = "integration_switched",
    AnswerLost = "answer_lost",
    LeaseExpired = "lease_expired",
    PrecedingStepFailed = "preceding_step_failed",
    PrecedingStepSkipped = "preceding_step_skipped",
    StepDelayed = "step_delayed",
    DelayFinished = "delay_finished",
    DelayTimePassed = "delay_time_passed",
    DelayNotPossible = "delay_not_possible",
    DigestOpened = "digest_opened",
    DigestMerged = "digest_merged",
    DigestPassed = "digest_passed",
    DigestClosed = "digest_closed",
    DigestNotPossible = "digest_not_possible",
    ThrottlePassed = "throttle_passed",
    ThrottleLimitExceeded = "throttle_limit_exceeded",
    ThrottleNotPossible = "throttle_not_possible",
    DeferredToSchedule = "deferred_to_schedule",
    OutsideSchedule = "outside_schedule",
    ScheduleNeverOpens = "schedule_never_opens",
    ExtendedToSchedule = "extended_to_schedule",
    WorkflowPaused = "workflow_paused",
    IntegrationPaused = "integration_paused",
    MaxExtensionsReached = "max_extensions_reached",
    HandlerCompleted = "handler_completed",
    HandlerMissing = "handler_missing",
    HandlerRetry = "handler_retry",
    HandlerError = "handler_error",
    RecordUnreadable = "record_unreadable",
    SendsQueued = "sends_queued",
    SomeSendsFailed = "some_sends_failed",
    MessageDeferred = "message_deferred",
    MessageDelivered = "message_delivered",
    MessageOpened = "message_opened",
    MessageClicked = "message_clicked",
    MessageBounced = "message_bounced",
    RecipientComplained = "recipient_complained",
    RecipientUnsubscribed = "recipient_unsubscribed",
    RecipientRemoved = "recipient_removed",
    StepResent = "step_resent",
    StepRedriven = "step_redriven",
    Canceled = "canceled",
    Expired = "expired",
}

impl Detail {
    // Returns `true` if the event ends an attempt.
    const fn is_attempt(self) -> bool {
        matches!(self, Detail::ProviderRetry | Detail::HandlerRetry | Detail::LeaseExpired)
    }

    // Returns `true` if the provider of the job took part in the event.
    const fn names_provider(self) -> bool {
        matches!(
            self,
            Detail::IntegrationSelected
                | Detail::MessageSent
                | Detail::ProviderRetry
                | Detail::ProviderError
                | Detail::ProviderMissing
                | Detail::IntegrationSwitched
                | Detail::AnswerLost
        ) || self.is_report()
    }

    // Returns `true` if a provider has reported the event.
    const fn is_report(self) -> bool {
        matches!(
            self,
            Detail::MessageDeferred
                | Detail::MessageDelivered
                | Detail::MessageOpened
                | Detail::MessageClicked
                | Detail::MessageBounced
                | Detail::RecipientComplained
                | Detail::RecipientUnsubscribed
        )
    }

    /// Returns the severity of the event.
    #[doc(hidden)]
    pub const fn status(self) -> ExecutionStatus {
        match self {
            Detail::StepQueued
            | Detail::StepResent
            | Detail::StepRedriven
            | Detail::SendsQueued => ExecutionStatus::Queued,
            Detail::MessageCreated
            | Detail::MessageSent
            | Detail::IntegrationSelected
            | Detail::VariantChosen
            | Detail::FilteredByStepConditions
            | Detail::FilteredByWorkflowPreference
            | Detail::FilteredBySubscriberGlobalPreference
            | Detail::FilteredBySubscriberWorkflowPreference
            | Detail::DelayFinished
            | Detail::DigestMerged
            | Detail::DigestPassed
            | Detail::DigestClosed
            | Detail::ThrottlePassed
            | Detail::ThrottleLimitExceeded
            | Detail::OutsideSchedule
            | Detail::MessageDelivered
            | Detail::MessageClicked
            | Detail::HandlerCompleted => ExecutionStatus::Success,
            Detail::MessageOpened => ExecutionStatus::ReadConfirmation,
            Detail::SubscriberDeleted
            | Detail::WorkflowDeleted
            | Detail::StepDeleted
            | Detail::StepInactive
            | Detail::MissingEmail
            | Detail::MissingPhone
            | Detail::MissingPushTokens
            | Detail::MissingChatWebhook
            | Detail::AddressSuppressed
            | Detail::LeaseExpired
            | Detail::SomeSendsFailed
            | Detail::RecipientRemoved
            | Detail::RecipientUnsubscribed
            | Detail::PrecedingStepFailed
            | Detail::PrecedingStepSkipped
            | Detail::DelayTimePassed
            | Detail::ScheduleNeverOpens
            | Detail::MaxExtensionsReached
            | Detail::TranslationMissing
            | Detail::TranslationInvalid
            | Detail::LayoutMissing
            | Detail::Canceled
            | Detail::Expired => ExecutionStatus::Warning,
            Detail::ProviderRetry
            | Detail::HandlerRetry
            | Detail::IntegrationSwitched
            | Detail::StepDelayed
            | Detail::DigestOpened
            | Detail::DeferredToSchedule
            | Detail::ExtendedToSchedule
            | Detail::WorkflowPaused
            | Detail::IntegrationPaused
            | Detail::MessageDeferred => ExecutionStatus::Pending,
            Detail::ContentNotGenerated
            | Detail::VariableMissing
            | Detail::NoActiveIntegration
            | Detail::ProviderMissing
            | Detail::ProviderError
            | Detail::AnswerLost
            | Detail::RecordUnreadable
            | Detail::DelayNotPossible
            | Detail::DigestNotPossible
            | Detail::ThrottleNotPossible
            | Detail::HandlerMissing
            | Detail::HandlerError
            | Detail::MessageBounced
            | Detail::RecipientComplained => ExecutionStatus::Failed,
        }
    }
}

impl ExecutionDetail {
    /// Returns the entry that records `detail` at `now`.
    #[doc(hidden)]
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
            source: if detail.is_report() {
                ExecutionSource::Webhook
            } else {
                ExecutionSource::Internal
            },
        }
    }
}

impl Job {
    /// Returns the ids of the tasks of its messages or of its call, which may be done.
    #[doc(hidden)]
    pub fn task_ids(&self) -> impl Iterator<Item = TaskId> {
        let sends = self.sends.iter().map(|send| send.id);
        [self.id].into_iter().chain(sends).map(|id| Uuid::from(id).into())
    }

    /// Returns a job that waits for the job before it.
    #[doc(hidden)]
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
            result: None,
            sends: Vec::new(),
            provider_messages: Vec::new(),
            dead_letter: None,
            schedule_extensions_count: None,
        }
    }

    /// Adds `entry` to the log, and sets the provider and the retry flag of the entry.
    #[doc(hidden)]
    pub fn log(&mut self, mut entry: ExecutionDetail) {
        entry.is_retry = self.execution_details.iter().any(|before| before.detail.is_attempt());
        entry.provider_id = entry.detail.names_provider().then_some(self.provider_id);
        self.execution_details.push(entry);
    }

    /// Adds a message by the id that its provider gave it.
    #[doc(hidden)]
    pub fn sent_as(&mut self, integration: IntegrationId, provider_message_id: &str) {
        let is_known = self.provider_message(integration, provider_message_id).is_some();
        if let (false, Some(sent)) =
            (is_known, ProviderMessage::new(integration, provider_message_id))
        {
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
