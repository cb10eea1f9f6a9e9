//! Dead letters: messages for a provider whose delivery has failed for good.

mod mark;
mod query;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::{
    DeadLetterId, IntegrationId, InternalSubscriberId, MessageId, NotificationId, SendId, StepId,
    TransactionId, WorkflowId,
};
use crate::job::{Detail, SendTarget};
use crate::time::Timestamp;
use crate::vocabulary::{Channel, wire_enum};

#[doc(hidden)]
pub use mark::{DeadLetterMark, MarkPlace};
pub use query::DeadLetterQuery;
#[doc(hidden)]
pub use query::LetterFacts;

/// Message for a provider whose delivery has failed for good. The job of the message, or its send
/// to one of several destinations, has failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DeadLetter {
    /// Id given by the engine. A message that fails again after it was redriven gets another one.
    #[serde(rename = "_id")]
    pub id: DeadLetterId,
    /// Notification of the message.
    #[serde(rename = "_notificationId")]
    pub notification_id: NotificationId,
    /// Event that has triggered the notification.
    pub transaction_id: TransactionId,
    /// Workflow of the notification.
    #[serde(rename = "_templateId", default, skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<WorkflowId>,
    /// Step of the message.
    #[serde(rename = "_stepId")]
    pub step_id: StepId,
    /// Subscriber, by the id that the engine has given.
    #[serde(rename = "_subscriberId")]
    pub subscriber_id: InternalSubscriberId,
    /// Channel of the message.
    pub channel: Channel,
    /// Idempotency key of the attempts. Those of a redriven message have the same one.
    pub idempotency_key: SendId,
    /// Destination of a chat or push message. `None` if it has none, or if no attempt was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<SendTarget>,
    /// Reason.
    pub reason: DeadLetterReason,
    /// Details of the reason, such as the answer of the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Integration of the last attempt. `None` if no integration was chosen.
    #[serde(rename = "_integrationId", default, skip_serializing_if = "Option::is_none")]
    pub integration_id: Option<IntegrationId>,
    /// Message with the content of the attempts. `None` if no content is stored: a redriven message
    /// is rendered anew then.
    #[serde(rename = "_messageId", default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// Time of the failure.
    pub died_at: Timestamp,
}

wire_enum! {
    /// Reason for which the delivery of a message has failed for good.
    ///
    /// | reason | |
    /// |---|---|
    /// | `retries_exhausted` | the provider did not accept the message in any attempt |
    /// | `refused` | the provider never accepts the message |
    /// | `recipient_gone` | the address has no recipient |
    /// | `misconfigured` | a setting of the integration is missing or wrong, and no other one took over |
    /// | `answer_lost` | the provider may have accepted the message, and it is not sent twice, or the last attempt has no outcome |
    /// | `no_integration` | no integration of the channel may send |
    /// | `no_provider` | the host has registered no provider for the integration |
    /// | `no_content` | the content cannot be rendered |
    #[non_exhaustive]
    DeadLetterReason, "reasons":
    RetriesExhausted = "retries_exhausted",
    Refused = "refused",
    RecipientGone = "recipient_gone",
    Misconfigured = "misconfigured",
    AnswerLost = "answer_lost",
    NoIntegration = "no_integration",
    NoProvider = "no_provider",
    NoContent = "no_content",
}

impl DeadLetterReason {
    /// Returns the number in keys.
    #[doc(hidden)]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Returns the reason of a send that ends with `detail` and without an answer of its provider.
    /// Returns `None` if that is no failure of the delivery.
    #[doc(hidden)]
    pub const fn of(detail: Detail) -> Option<Self> {
        match detail {
            Detail::NoActiveIntegration => Some(Self::NoIntegration),
            Detail::AnswerLost | Detail::LeaseExpired => Some(Self::AnswerLost),
            Detail::ContentNotGenerated | Detail::VariableMissing => Some(Self::NoContent),
            Detail::ProviderMissing => Some(Self::NoProvider),
            _ => None,
        }
    }
}

/// Reason for which a dead letter is not redriven.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum RedriveRefusal {
    /// The message with the content of the attempts was deleted.
    MessageGone,
}

impl fmt::Display for RedriveRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RedriveRefusal::MessageGone => {
                "its message was deleted: resend the step, which renders a new one"
            }
        })
    }
}

#[cfg(test)]
mod tests;
