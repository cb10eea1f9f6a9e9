//! Receipts: what a provider reports about a message that it has accepted.

mod novelty;
mod subject;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::error::{Invalid, Reason, Unit};
use crate::ids::{IntegrationId, JobId, NotificationId, plain};
use crate::job::{Detail, Job};
use crate::json::shape;
use crate::notification::Notification;
use crate::setters::setters;
use crate::suppression::{Suppression, SuppressionReason};
use crate::vocabulary::wire_enum;

#[doc(hidden)]
pub use novelty::{Novelty, novelty};
#[doc(hidden)]
pub use subject::ReportedAddress;

/// Report of a provider about a message that it has accepted.
///
/// ```
/// # extern crate tidings_domain as tidings;
/// use tidings::receipt::{Receipt, ReceiptKind};
///
/// let bounce = Receipt::new("msg-17", ReceiptKind::Bounced)?.event_id("evt-1");
/// assert_eq!(bounce.text("550 no such user").provider_message_id, "msg-17");
/// # Ok::<(), tidings::error::Invalid>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Receipt {
    /// Id that the provider gave the message.
    pub provider_message_id: String,
    /// Event.
    #[serde(rename = "type")]
    pub kind: ReceiptKind,
    /// Id of the event. A report with a known one is a repetition, unless it names another address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    /// Address that the event is about. Absent for that of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Text of the provider. The log of the job has the first 1,000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

shape! { Receipt {
    "providerMessageId": provider_message_id, "type": kind, "eventId": event_id,
    "address": address, "text": text,
} }

wire_enum! {
    /// Event that a provider reports.
    ReceiptKind, "type":
    Deferred = "deferred",
    Delivered = "delivered",
    Opened = "opened",
    Clicked = "clicked",
    Bounced = "bounced",
    Complained = "complained",
    Unsubscribed = "unsubscribed",
}

/// Message at a provider, with what the provider has reported about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ProviderMessage {
    /// Integration that has sent the message.
    #[serde(rename = "_integrationId")]
    pub integration_id: IntegrationId,
    /// Id that the provider gave the message.
    pub provider_message_id: String,
    /// Reports, in the order of their arrival.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub receipts: Vec<KnownReceipt>,
    /// Present if the message was asked to be sent again since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resent: Option<ResentMessage>,
}

/// Earlier send of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResentMessage {
    /// Address that the message was sent to. Absent for a channel without addresses, and if the message was gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

/// Report that is in the log of its job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct KnownReceipt {
    /// Event.
    #[serde(rename = "type")]
    pub kind: ReceiptKind,
    /// Id of the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    /// Hash of the address that the event is about. Absent for that of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_address: Option<String>,
}

/// Report, with the address that it is about.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Reported<'r> {
    /// The report.
    pub receipt: &'r Receipt,
    /// Hash of the address, if it is not that of the message.
    pub other_address: Option<&'r str>,
}

/// Effect of a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ReceiptOutcome {
    /// The report is in the log of the job.
    Recorded {
        /// Notification of the message.
        notification_id: NotificationId,
        /// Job of the message.
        job_id: JobId,
        /// Suppression of the address, if the report is a reason for one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        suppression: Option<Box<Suppression>>,
    },
    /// The report was recorded before, or is one about another address than that of the message beyond 100 reports.
    Repeated {
        /// Notification of the message.
        notification_id: NotificationId,
        /// Job of the message.
        job_id: JobId,
    },
    /// A later event is known, and the report changes nothing.
    Outdated {
        /// Notification of the message.
        notification_id: NotificationId,
        /// Job of the message.
        job_id: JobId,
    },
    /// No message of the integration has the id. Either retention has removed the message, or the result of its send
    /// is not stored yet. The result is stored within 100 milliseconds, or when the next call of a provider has
    /// ended. Answer the service with an error, so that it repeats the report. This outcome is not stored under an
    /// idempotency key.
    UnknownMessage,
}

/// Reason to refuse a report of a service.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum InboundRefusal {
    /// The integration takes no reports, or has no key for them.
    #[error("the integration takes none: enable them and set their key in its configurations")]
    Disabled,
    /// No provider is registered for the integration.
    #[error("no provider is registered for the integration")]
    NoProvider,
    /// The provider reads no reports.
    #[error("its provider reads none: read it, and call `ingest_receipt`")]
    NotSupported,
    /// The signature is wrong, or too old.
    #[error("its signature is refused: {problem}")]
    Forged {
        /// The problem.
        problem: String,
    },
    /// The body is no report.
    #[error("it cannot be read: {problem}")]
    Unreadable {
        /// The problem.
        problem: String,
    },
}

setters! { Receipt:
    /// Sets the id of the event.
    event_id: into(String);
    /// Sets the address that the event is about.
    address: into(String);
    /// Sets the text of the provider.
    text: into(String);
}

impl Receipt {
    /// Longest id of a message or of an event, in bytes.
    pub const MAX_ID: usize = 255;
    /// Longest text in the log of a job, in characters.
    pub const MAX_TEXT: usize = 1_000;
    /// Number of reports about a message after which reports about other addresses count as repetitions.
    pub const MAX_RECORDED: usize = 100;

    /// Returns a report of an event without details.
    ///
    /// # Errors
    ///
    /// [`Invalid`], if the id is empty, longer than 255 bytes, or has control characters.
    pub fn new(provider_message_id: impl Into<String>, kind: ReceiptKind) -> Result<Self, Invalid> {
        let provider_message_id = provider_message_id.into();
        let (event_id, address, text) = (None, None, None);
        let receipt = Self { provider_message_id, kind, event_id, address, text };
        receipt.check()?;
        Ok(receipt)
    }

    /// Refuses ids that no record can have.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Invalid> {
        check_id("providerMessageId", &self.provider_message_id)?;
        self.event_id.as_ref().map_or(Ok(()), |id| check_id("eventId", id))
    }

    /// Returns the text as the log of a job has it.
    #[doc(hidden)]
    pub fn shown(&self) -> Option<String> {
        Some(self.text.as_ref()?.chars().take(Self::MAX_TEXT).collect())
    }
}

impl ProviderMessage {
    /// Returns a message by the id that its provider gave it. Returns `None` for an id that cannot be
    /// looked up.
    #[doc(hidden)]
    pub fn new(integration_id: IntegrationId, provider_message_id: &str) -> Option<Self> {
        check_id("providerMessageId", provider_message_id).ok()?;
        let provider_message_id = provider_message_id.to_owned();
        Some(Self { integration_id, provider_message_id, receipts: Vec::new(), resent: None })
    }

    /// Notes that the message is sent again, to an address that may be another one.
    #[doc(hidden)]
    pub fn resend(&mut self, address: Option<String>) {
        self.resent.get_or_insert(ResentMessage { address });
    }

    /// Returns `true` if the message has this id at its provider.
    pub(crate) fn is(&self, integration: IntegrationId, id: &str) -> bool {
        self.integration_id == integration && self.provider_message_id == id
    }

    /// Adds a report.
    #[doc(hidden)]
    pub fn record(&mut self, reported: Reported<'_>) {
        let Receipt { kind, event_id, .. } = reported.receipt.clone();
        let other_address = reported.other_address.map(str::to_owned);
        self.receipts.push(KnownReceipt { kind, event_id, other_address });
    }
}

impl Notification {
    /// Returns the messages by the ids that their providers gave them, each once.
    #[doc(hidden)]
    pub fn provider_messages(&self) -> BTreeSet<(IntegrationId, &str)> {
        let sent = self.jobs.iter().flat_map(|job| &job.provider_messages);
        sent.map(|sent| (sent.integration_id, sent.provider_message_id.as_str())).collect()
    }

    /// Returns the number of the last job whose message has this id at its provider.
    #[doc(hidden)]
    pub fn job_of_receipt(&self, integration: IntegrationId, id: &str) -> Option<usize> {
        let is_sent = |job: &Job| job.provider_messages.iter().any(|sent| sent.is(integration, id));
        self.jobs.iter().rposition(is_sent)
    }
}

impl ReceiptKind {
    /// Returns the entry in the log of the job.
    #[doc(hidden)]
    pub const fn detail(self) -> Detail {
        match self {
            ReceiptKind::Deferred => Detail::MessageDeferred,
            ReceiptKind::Delivered => Detail::MessageDelivered,
            ReceiptKind::Opened => Detail::MessageOpened,
            ReceiptKind::Clicked => Detail::MessageClicked,
            ReceiptKind::Bounced => Detail::MessageBounced,
            ReceiptKind::Complained => Detail::RecipientComplained,
            ReceiptKind::Unsubscribed => Detail::RecipientUnsubscribed,
        }
    }

    /// Returns the reason for which the address is suppressed. Returns `None` if it is not.
    #[doc(hidden)]
    pub const fn suppression(self) -> Option<SuppressionReason> {
        match self {
            ReceiptKind::Bounced => Some(SuppressionReason::Bounced),
            ReceiptKind::Complained => Some(SuppressionReason::Complained),
            ReceiptKind::Deferred
            | ReceiptKind::Delivered
            | ReceiptKind::Opened
            | ReceiptKind::Clicked
            | ReceiptKind::Unsubscribed => None,
        }
    }
}

fn check_id(field: &str, id: &str) -> Result<(), Invalid> {
    let (max, unit) = (Receipt::MAX_ID, Unit::Bytes);
    match id.len() {
        0 => Err(Invalid::new(field, Reason::Empty)),
        length if length > max => Err(Invalid::new(field, Reason::TooLong { max, unit })),
        _ => plain(field, id),
    }
}

#[cfg(test)]
mod tests;
