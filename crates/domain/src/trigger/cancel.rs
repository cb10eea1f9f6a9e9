//! Canceled events.

use serde::{Deserialize, Serialize};

use crate::ids::{EnvironmentId, TransactionId};
use crate::time::Timestamp;

/// Result of the cancellation of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Cancellation {
    /// Id of the event.
    pub transaction_id: TransactionId,
    /// Number of jobs that were canceled at once, also those whose message some of several devices have.
    pub canceled: u64,
    /// Number of messages that providers had at that time. They are not recalled: a message that
    /// its provider accepts is sent, and one that it does not accept is not tried again.
    pub running: u64,
    /// Number of notifications whose jobs are canceled by tasks. None of them is sent any more. Zero if
    /// all jobs were canceled at once. Otherwise it includes notifications that were deleted before.
    pub remaining: u64,
}

/// Canceled event, stored so that it is looked up before each step and each attempt.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CanceledTrigger {
    /// Environment of the event.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// Time of the cancellation.
    pub canceled_at: Timestamp,
    /// Result of the cancellation.
    #[serde(flatten)]
    pub cancellation: Cancellation,
}

impl Cancellation {
    /// Returns the cancellation of an event, before any of its jobs is canceled.
    #[doc(hidden)]
    pub fn new(transaction_id: TransactionId) -> Self {
        Self { transaction_id, canceled: 0, running: 0, remaining: 0 }
    }
}

impl CanceledTrigger {
    /// Returns the stored cancellation of an event.
    pub fn new(
        environment_id: EnvironmentId,
        canceled_at: Timestamp,
        cancellation: Cancellation,
    ) -> Self {
        Self { environment_id, canceled_at, cancellation }
    }
}
