//! The contract of a provider.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use domain::credentials::Credentials;
use domain::error::Invalid;
use domain::ids::{JobId, SendId};
use domain::integration::Integration;
use domain::job::SendTarget;
use domain::json::Object;
use domain::message::Message;
use domain::notification::Notification;
use domain::plan::{Address, OtherIntegrations};
use domain::receipt::{InboundRefusal, Receipt};
use domain::step::ContentWarning;
use domain::subscriber::Subscriber;
use domain::task::Tries;
use domain::vocabulary::Channel;
use serde::Serialize;
use thiserror::Error;

use super::inbound::Inbound;
use crate::error::as_text;

/// A sender of messages, such as an SMTP client or an HTTP client of a service.
pub trait Provider: fmt::Debug + Send + Sync + 'static {
    /// Sends a message. The engine repeats the call with the same [`idempotency_key`] if the answer
    /// was lost. A provider passes the key on if its service takes one.
    ///
    /// [`idempotency_key`]: Delivery::idempotency_key
    ///
    /// # Errors
    ///
    /// [`SendError`]. Its variant decides whether the engine tries again.
    fn send(&self, delivery: &Delivery) -> Result<ProviderReceipt, SendError>;

    /// Checks the channel and the credentials of an integration that is created or changed. By
    /// default, all are accepted.
    ///
    /// ```
    /// use tidings::credentials::Credentials;
    /// use tidings::error::{Invalid, Reason};
    /// use tidings::vocabulary::Channel;
    /// # use tidings::{Delivery, ProviderReceipt, SendError};
    ///
    /// # #[derive(Debug)]
    /// # struct Relay;
    /// # impl tidings::Provider for Relay {
    /// #     fn send(&self, _: &Delivery) -> Result<ProviderReceipt, SendError> {
    /// #         Ok(ProviderReceipt::default())
    /// #     }
    /// fn accept(&self, _: Channel, credentials: &Credentials) -> Result<(), Invalid> {
    ///     let key = credentials.api_key.as_ref();
    ///     key.map(drop).ok_or(Invalid::new("credentials.apiKey", Reason::Missing))
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Invalid`] with the path of the field, such as `credentials.apiKey`. The engine refuses the
    /// integration with it.
    fn accept(&self, channel: Channel, credentials: &Credentials) -> Result<(), Invalid> {
        let _ = (channel, credentials);
        Ok(())
    }

    /// Verifies a report of the service and reads it, see
    /// [`Integrations::ingest_inbound`](crate::Integrations::ingest_inbound). By default, this is not
    /// supported.
    ///
    /// # Errors
    ///
    /// [`InboundRefusal`]. Nothing is recorded then.
    fn receipts(&self, inbound: &Inbound<'_>) -> Result<Vec<Receipt>, InboundRefusal> {
        let _ = inbound;
        Err(InboundRefusal::NotSupported)
    }

    /// Tries an integration without sending a message, see
    /// [`Integrations::test`](crate::Integrations::test). By default, this is not supported.
    fn check(&self, integration: &Integration) -> IntegrationTestResult {
        let _ = integration;
        IntegrationTestResult::NotSupported
    }
}

// Each function is passed on, because the trait has defaults.
macro_rules! provider_behind {
    ($($pointer:ident),+) => {$(
        #[deny(clippy::missing_trait_methods)]
        impl<P: Provider + ?Sized> Provider for $pointer<P> {
            fn send(&self, delivery: &Delivery) -> Result<ProviderReceipt, SendError> {
                (**self).send(delivery)
            }

            fn accept(&self, channel: Channel, credentials: &Credentials) -> Result<(), Invalid> {
                (**self).accept(channel, credentials)
            }

            fn receipts(&self, inbound: &Inbound<'_>) -> Result<Vec<Receipt>, InboundRefusal> {
                (**self).receipts(inbound)
            }

            fn check(&self, integration: &Integration) -> IntegrationTestResult {
                (**self).check(integration)
            }
        }
    )+};
}

provider_behind!(Arc, Box);

/// Result of the test of an integration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "result", content = "error", rename_all = "snake_case")]
#[non_exhaustive]
pub enum IntegrationTestResult {
    /// The service can be reached, and accepts the credentials.
    Passed,
    /// The service cannot be reached, or refuses the credentials.
    Failed(#[serde(serialize_with = "as_text")] SendError),
    /// The provider cannot try an integration without sending a message.
    NotSupported,
    /// No provider is registered for the integration.
    NoProvider,
}

/// A message for a provider, with the records that the provider needs.
///
/// [`Delivery::sample`] makes one for a unit test.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Delivery {
    /// The message as listed after a successful attempt.
    pub message: Message,
    /// The integration of the provider account.
    pub integration: Integration,
    /// Address of the recipient.
    pub address: Address,
    /// The recipient.
    pub subscriber: Subscriber,
    /// Settings of the trigger for this message: those for the step, the channel and the provider
    /// in one object. A provider takes what it knows, such as the id of a template of its service.
    pub overrides: Object,
    /// The notification of the message at the time of the claim.
    pub notification: Notification,
    /// URL at which the recipient unsubscribes, if the engine has
    /// [links](crate::Builder::unsubscribe_links) and the workflow is not critical.
    pub unsubscribe_url: Option<String>,
    /// Name of the chosen variant, if this attempt has rendered the message.
    pub(super) variant: Option<String>,
    /// Warnings about the content, if this attempt has rendered the message.
    pub(super) warnings: Vec<ContentWarning>,
    pub(super) job: JobId,
    /// The other integrations that may send the message.
    pub(super) others: OtherIntegrations,
    /// Destination of a chat or push message.
    pub(super) target: Option<SendTarget>,
    /// Send of the task, if the message has several destinations.
    pub(super) send: Option<SendId>,
    /// Earlier attempts.
    pub(super) tries: Tries,
    pub(super) attempts: u32,
}

/// Receipt of a provider for a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProviderReceipt {
    /// Id of the message at the service.
    pub provider_message_id: Option<String>,
}

/// Failure of an attempt to send a message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SendError {
    /// The service does not accept the message at the moment.
    #[error("try again later: {reason}")]
    #[non_exhaustive]
    Retryable {
        /// Time to wait, if the service named one.
        after: Option<Duration>,
        /// Reason of the service.
        reason: String,
    },
    /// The service never accepts the message.
    #[error("refused: {reason}")]
    #[non_exhaustive]
    Permanent {
        /// Reason of the service.
        reason: String,
    },
    /// The address has no recipient. A destination is removed from the subscriber; an e-mail address or a
    /// telephone number is suppressed for [`Suppression::DAYS`](crate::suppression::Suppression::DAYS).
    #[error("the recipient is gone: {reason}")]
    #[non_exhaustive]
    RecipientGone {
        /// Reason of the service.
        reason: String,
    },
    /// The integration cannot send, whatever the message: a setting is missing or wrong.
    #[error("not set up: {reason}")]
    #[non_exhaustive]
    Misconfigured {
        /// The setting, or the answer of the service to it.
        reason: String,
    },
    /// The answer of the service was lost. The service may have accepted the message.
    #[error("no answer: {reason}")]
    #[non_exhaustive]
    Unknown {
        /// Event that has cut the call short, such as a timeout.
        reason: String,
    },
}

impl ProviderReceipt {
    /// Returns the receipt of a message by the id that the service gave it.
    ///
    /// ```
    /// let receipt = tidings::ProviderReceipt::with_id("msg-17");
    /// assert_eq!(receipt.provider_message_id.as_deref(), Some("msg-17"));
    /// ```
    pub fn with_id(provider_message_id: impl Into<String>) -> Self {
        Self { provider_message_id: Some(provider_message_id.into()) }
    }
}

impl SendError {
    /// Returns the error of a service that cannot take the message at the moment.
    pub fn retryable(reason: impl Into<String>) -> Self {
        SendError::Retryable { after: None, reason: reason.into() }
    }

    /// Returns the error of a service that asks not to be called for `span`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidings::SendError;
    ///
    /// let error = SendError::retry_after("429", Duration::from_secs(30));
    /// assert_eq!(error.to_string(), "try again later: 429");
    /// ```
    pub fn retry_after(reason: impl Into<String>, span: Duration) -> Self {
        SendError::Retryable { after: Some(span), reason: reason.into() }
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

    /// Returns the error of a call without an answer, after which the service may have the message.
    pub fn unknown(reason: impl Into<String>) -> Self {
        SendError::Unknown { reason: reason.into() }
    }
}

impl Delivery {
    /// Returns the key of the message, the same for every attempt. The content is the same too, but for
    /// one case: the process has ended during the first call, and the integration
    /// [sends again](crate::integration::OnUnknown::Resend) after a lost answer. Then the message is made
    /// anew, for the devices that the subscriber has then.
    ///
    /// The integration and the address of a later attempt may differ. A message to several devices or
    /// endpoints has a key for each of them, and so has one whose first device is gone.
    pub fn idempotency_key(&self) -> SendId {
        self.send.unwrap_or(self.job.into())
    }

    /// Returns the number of the attempt, from 1. Attempts that ended in a crash count.
    pub fn attempt(&self) -> u32 {
        self.attempts
    }
}

impl From<Result<(), SendError>> for IntegrationTestResult {
    fn from(tried: Result<(), SendError>) -> Self {
        tried.map_or_else(IntegrationTestResult::Failed, |()| IntegrationTestResult::Passed)
    }
}
