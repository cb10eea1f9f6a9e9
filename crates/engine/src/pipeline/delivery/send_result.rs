//! Results of calls of providers.

use std::time::Duration;

use domain::circuit::Verdict;
use domain::dead_letter::DeadLetterReason;
use domain::job::Detail;
use domain::plan::Address;
use domain::task::{Failure, Retry, Tries};

use super::FailureReason;
use super::provider::{Delivery, ProviderReceipt, SendError};

/// Result of an attempt to send a message.
pub(super) type SendResult = Result<ProviderReceipt, SendFailure>;

/// Failure of an attempt to send a message.
#[derive(Clone, Debug)]
pub(super) enum SendFailure {
    /// Answer of the provider.
    Provider(SendError),
    /// No provider is registered for the integration.
    NoProvider,
}

impl SendFailure {
    /// Returns the attempt that may follow, and what is known of the earlier attempts then. Another process
    /// of a store that `is_shared` may have the provider, unless another integration takes over at once.
    pub(super) fn retry(&self, delivery: &Delivery, is_shared: bool) -> (Retry, Tries) {
        let failure = match self {
            SendFailure::Provider(error) => error.failure(),
            SendFailure::NoProvider if is_shared && delivery.others.all.is_empty() => {
                Failure::Busy(Duration::ZERO)
            }
            SendFailure::NoProvider => Failure::Misconfigured,
        };
        let integration = &delivery.integration;
        let others = (&delivery.others.all[..], &delivery.others.unavailable[..]);
        delivery.tries.after((integration.id, integration.on_unknown), failure, others)
    }

    /// Returns what the failure tells of the integration. That is nothing if there was no call, or if the
    /// server that the recipient has named has no answer: messages to others do not go there.
    pub(super) fn verdict(&self, address: &Address) -> Verdict {
        match self {
            SendFailure::Provider(
                SendError::Permanent { .. } | SendError::RecipientGone { .. },
            ) => Verdict::Works,
            SendFailure::Provider(SendError::Retryable { .. } | SendError::Unknown { .. })
                if address.names_server() =>
            {
                Verdict::Unknown
            }
            SendFailure::Provider(
                SendError::Retryable { .. }
                | SendError::Misconfigured { .. }
                | SendError::Unknown { .. },
            ) => Verdict::Fails,
            SendFailure::NoProvider => Verdict::Unknown,
        }
    }

    /// Returns `true` if the address has no recipient any more.
    pub(super) const fn is_gone(&self) -> bool {
        matches!(self, SendFailure::Provider(SendError::RecipientGone { .. }))
    }

    /// Returns the entry in the log of a job that fails.
    pub(super) const fn detail(&self) -> Detail {
        match self {
            SendFailure::Provider(SendError::Unknown { .. }) => Detail::AnswerLost,
            SendFailure::Provider(_) => Detail::ProviderError,
            SendFailure::NoProvider => Detail::ProviderMissing,
        }
    }

    /// Returns the reason for which a message is a dead letter, if no attempt follows.
    pub(super) const fn dead_letter_reason(&self) -> DeadLetterReason {
        match self {
            SendFailure::Provider(SendError::Permanent { .. }) => DeadLetterReason::Refused,
            SendFailure::Provider(SendError::Retryable { .. }) => {
                DeadLetterReason::RetriesExhausted
            }
            SendFailure::Provider(SendError::RecipientGone { .. }) => {
                DeadLetterReason::RecipientGone
            }
            SendFailure::Provider(SendError::Misconfigured { .. }) => {
                DeadLetterReason::Misconfigured
            }
            SendFailure::Provider(SendError::Unknown { .. }) => DeadLetterReason::AnswerLost,
            SendFailure::NoProvider => DeadLetterReason::NoProvider,
        }
    }

    /// Returns the reason for the report.
    pub(super) fn reason(&self) -> FailureReason {
        match self {
            SendFailure::Provider(error) => FailureReason::Refused(error.shortened()),
            SendFailure::NoProvider => FailureReason::NoProvider,
        }
    }

    /// Returns the text of the failure, shortened for the log.
    pub(super) fn text(&self, delivery: &Delivery) -> String {
        match self {
            SendFailure::Provider(error) => error.text(),
            SendFailure::NoProvider => {
                let provider = &delivery.integration.provider_id;
                shortened(&format!("no provider is registered for `{provider}`"))
            }
        }
    }
}

impl From<SendError> for SendFailure {
    fn from(error: SendError) -> Self {
        SendFailure::Provider(error)
    }
}

/// Returns the word of an answer in traces.
pub(super) const fn word(answer: &Result<ProviderReceipt, SendError>) -> &'static str {
    match answer {
        Ok(_) => "sent",
        Err(SendError::Retryable { .. }) => "retryable",
        Err(SendError::Permanent { .. }) => "permanent",
        Err(SendError::RecipientGone { .. }) => "recipient_gone",
        Err(SendError::Misconfigured { .. }) => "misconfigured",
        Err(SendError::Unknown { .. }) => "unknown",
    }
}

impl ProviderReceipt {
    /// Returns the id of the message at the service, shortened for the log.
    pub(super) fn text(&self) -> Option<String> {
        self.provider_message_id.as_deref().map(shortened)
    }
}

impl SendError {
    /// Returns the attempt that may follow a call of a function of the host application.
    pub(super) fn retry(&self) -> Retry {
        match self {
            SendError::Retryable { after, .. } => Retry::Later(after.unwrap_or_default()),
            SendError::Unknown { .. } => Retry::Later(Duration::ZERO),
            SendError::Permanent { .. }
            | SendError::RecipientGone { .. }
            | SendError::Misconfigured { .. } => Retry::Never,
        }
    }

    fn failure(&self) -> Failure {
        match self {
            SendError::Retryable { after, .. } => Failure::Busy(after.unwrap_or_default()),
            SendError::Unknown { .. } => Failure::Unknown,
            SendError::Misconfigured { .. } => Failure::Misconfigured,
            SendError::Permanent { .. } | SendError::RecipientGone { .. } => Failure::Refused,
        }
    }

    /// Returns the error with its reason shortened for the report.
    pub(super) fn shortened(&self) -> Self {
        let mut error = self.clone();
        let (SendError::Retryable { reason, .. }
        | SendError::Permanent { reason }
        | SendError::RecipientGone { reason }
        | SendError::Misconfigured { reason }
        | SendError::Unknown { reason }) = &mut error;
        *reason = shortened(reason);
        error
    }

    /// Returns the text of the error, shortened for the log.
    pub(super) fn text(&self) -> String {
        match self {
            SendError::Retryable { reason, .. } => shortened(reason),
            SendError::Permanent { .. }
            | SendError::RecipientGone { .. }
            | SendError::Misconfigured { .. }
            | SendError::Unknown { .. } => shortened(&self.to_string()),
        }
    }
}

fn shortened(text: &str) -> String {
    const LONGEST: usize = 1_000;
    text.chars().take(LONGEST).collect()
}
