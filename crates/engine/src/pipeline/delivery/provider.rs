//! What carries messages out of the process.

use std::fmt;
use std::time::Duration;

use domain::ids::JobId;
use domain::integration::Integration;
use domain::message::Message;
use domain::notification::Notification;
use domain::step_run::Address;
use domain::subscriber::Subscriber;
use domain::time::Timestamp;
use thiserror::Error;

/// Sends messages: an SMTP client, an HTTP client for a service, or a test's notebook.
pub trait Provider: fmt::Debug + Send + Sync + 'static {
    /// Sends a message. It may be called again with the same [`idempotency_key`] if its answer was
    /// lost, so a provider that can ask its service for that passes the key on.
    ///
    /// [`idempotency_key`]: Delivery::idempotency_key
    ///
    /// # Errors
    ///
    /// The kind of failure, which decides what happens next.
    fn send(&self, delivery: &Delivery) -> Result<ProviderReceipt, SendError>;
}

/// A message on its way out, with everything that a provider needs.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The message as it will be listed once it is sent.
    pub message: Message,
    /// The account that it goes through.
    pub integration: Integration,
    /// Where it goes.
    pub address: Address,
    /// Whom it is for.
    pub subscriber: Subscriber,
    /// The notification that it is a part of, as it was when it was claimed.
    pub notification: Notification,
    pub(super) job: JobId,
    pub(super) attempts: u32,
    pub(super) lease_until: Timestamp,
}

/// A message was taken over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProviderReceipt {
    /// What the service calls the message.
    pub provider_message_id: Option<String>,
}

/// A message was not taken over.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SendError {
    /// The service cannot take it right now.
    #[error("try again later: {reason}")]
    Retryable {
        /// How long the service asked to be left alone.
        after: Option<Duration>,
        /// What the service said.
        reason: String,
    },
    /// The service will never take it.
    #[error("refused: {reason}")]
    Permanent {
        /// What the service said.
        reason: String,
    },
    /// There is nobody at that address any more.
    #[error("nobody is there: {reason}")]
    RecipientGone {
        /// What the service said.
        reason: String,
    },
    /// The integration is not set up well enough to send anything.
    #[error("not set up: {reason}")]
    Misconfigured {
        /// What is missing.
        reason: String,
    },
}

/// Result of an attempt, with what the provider answered.
#[derive(Debug)]
pub(super) enum SendResult {
    Sent(ProviderReceipt),
    Refused(SendError),
    NoProvider,
}

impl ProviderReceipt {
    /// Returns the receipt of a message by the id that the service gave it.
    ///
    /// ```
    /// let receipt = tidings::ProviderReceipt::id("msg-17");
    /// assert_eq!(receipt.provider_message_id.as_deref(), Some("msg-17"));
    /// ```
    pub fn id(provider_message_id: impl Into<String>) -> Self {
        Self { provider_message_id: Some(provider_message_id.into()) }
    }
}

impl SendError {
    /// Returns the error of a service that cannot take the message at the moment.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidings::SendError;
    ///
    /// let error = SendError::retryable("429").after(Duration::from_secs(30));
    /// assert_eq!(error.to_string(), "try again later: 429");
    /// ```
    pub fn retryable(reason: impl Into<String>) -> Self {
        SendError::Retryable { after: None, reason: reason.into() }
    }

    /// Returns the error of a service that never takes the message.
    pub fn permanent(reason: impl Into<String>) -> Self {
        SendError::Permanent { reason: reason.into() }
    }

    /// Returns the error of an address at which there is no recipient any more.
    pub fn recipient_gone(reason: impl Into<String>) -> Self {
        SendError::RecipientGone { reason: reason.into() }
    }

    /// Returns the error of an integration that is not set up to send.
    pub fn misconfigured(reason: impl Into<String>) -> Self {
        SendError::Misconfigured { reason: reason.into() }
    }

    /// Sets how long the service asks not to be called. Errors that are not retryable stay as they
    /// are.
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        match self {
            SendError::Retryable { reason, .. } => {
                SendError::Retryable { after: Some(span), reason }
            }
            error => error,
        }
    }
}

impl Delivery {
    /// The same for every attempt to send this message, and for no other message. What a later
    /// attempt says, and through which integration, may differ: it is decided anew each time.
    pub fn idempotency_key(&self) -> JobId {
        self.job
    }

    /// Which attempt this is, counting from 1. One whose process died counts as well.
    pub fn attempt(&self) -> u32 {
        self.attempts
    }
}

impl From<Result<ProviderReceipt, SendError>> for SendResult {
    fn from(answer: Result<ProviderReceipt, SendError>) -> Self {
        match answer {
            Ok(receipt) => SendResult::Sent(receipt),
            Err(error) => SendResult::Refused(error),
        }
    }
}
