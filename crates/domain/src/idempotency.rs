//! Idempotency: a repeated call with the same key returns the stored outcome, and changes nothing.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{EnvironmentId, IdempotencyKey, TransactionId};
use crate::time::Timestamp;

/// Outcome of a call, stored under the key of the call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredAnswer {
    /// Environment of the call.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// Idempotency key of the call.
    pub key: IdempotencyKey,
    /// Hash of the operation and its arguments. Equal calls have equal hashes.
    pub call: String,
    /// Time of the call.
    pub created_at: Timestamp,
    /// Outcome of the call.
    #[serde(flatten)]
    pub outcome: CallOutcome,
}

/// Outcome of a call, as JSON.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CallOutcome {
    /// The call takes several transactions, and the first one is committed.
    Begun,
    /// The call deletes the record of this id in several transactions, and the first one is committed.
    BegunOn(Value),
    /// A bulk of events has begun. Its events without a transaction id have these ids, in their order.
    BegunAs(Vec<TransactionId>),
    /// The call succeeded, with this result.
    Done(Value),
    /// The call was refused, with this error.
    Refused(Value),
}

impl CallOutcome {
    /// Returns `true` if the call is over, and `false` if it goes on when it is repeated.
    pub fn is_over(&self) -> bool {
        match self {
            Self::Begun | Self::BegunOn(_) | Self::BegunAs(_) => false,
            Self::Done(_) | Self::Refused(_) => true,
        }
    }
}

/// Meaning of a stored answer for another call with its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replay<'a> {
    /// The answer has expired, or is from more than a lifetime ahead, and the call is made.
    Expired,
    /// The call is the same, and has this outcome.
    Same(&'a CallOutcome),
    /// The call is another one, and its key is taken.
    Other,
}

impl StoredAnswer {
    /// Lifetime of a stored answer.
    pub const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

    /// Returns the meaning of the answer for a call at `now`.
    pub fn replay(&self, call: &str, now: Timestamp) -> Replay<'_> {
        if self.has_expired(now) {
            Replay::Expired
        } else if self.call == call {
            Replay::Same(&self.outcome)
        } else {
            Replay::Other
        }
    }

    /// Returns `true` if the answer means nothing for a call at `now`.
    pub fn has_expired(&self, now: Timestamp) -> bool {
        // The clock may have been wrong at the time of the call. An answer from further ahead than a
        // lifetime would keep its key for as long as the clock was wrong.
        self.expires_at() <= now || now.after(Self::LIFETIME) < self.created_at
    }

    /// Returns the time of expiry.
    pub fn expires_at(&self) -> Timestamp {
        self.created_at.after(Self::LIFETIME)
    }
}

// Results may hold secrets at any place.
impl fmt::Debug for CallOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CallOutcome::Begun | CallOutcome::BegunOn(_) | CallOutcome::BegunAs(_) => "Begun",
            CallOutcome::Done(_) => "Done(***)",
            CallOutcome::Refused(_) => "Refused(***)",
        })
    }
}

#[cfg(test)]
mod tests;
