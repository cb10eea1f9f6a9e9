//! The log of a job.

use serde::{Deserialize, Serialize};

use crate::ids::DetailId;
use crate::time::Timestamp;
use crate::vocabulary::{ProviderId, wire_enum};

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
    /// Provider that took part. A provider that the host has registered under a name of its own is shown
    /// as the built-in one of its channel, as in [`Job::provider_id`](super::Job::provider_id).
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
    /// Origin of an entry in the log of a job. The engine writes `Internal`, and `Webhook` for what a
    /// provider reports.
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
    /// Returns `true` if the event ends an attempt.
    pub(super) const fn is_attempt(self) -> bool {
        matches!(self, Detail::ProviderRetry | Detail::HandlerRetry | Detail::LeaseExpired)
    }

    /// Returns `true` if the provider of the job took part in the event.
    pub(super) const fn names_provider(self) -> bool {
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

    /// Returns the status of the entry.
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
