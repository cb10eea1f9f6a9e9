//! Idempotency: what came of a call is kept for a while under the key that its caller gave it, so
//! that the call happens once however often it is made.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{EnvironmentId, IdempotencyKey};
use crate::time::Timestamp;

/// What came of a call, kept under its key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredAnswer {
    /// The environment it belongs to.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// The key of the call.
    pub key: IdempotencyKey,
    /// A hash of the operation and its arguments: the same just for the same call.
    pub call: String,
    /// When the call was made.
    pub created_at: Timestamp,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: CallOutcome,
}

/// What came of a call, as JSON.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CallOutcome {
    /// It takes several transactions, and the first of them was made.
    Begun,
    /// It was done, and returned this.
    Done(Value),
    /// It was refused, with this error.
    Refused(Value),
}

/// What a stored answer means for a call with its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replay<'a> {
    /// It is too old to mean anything: the call is made.
    Expired,
    /// It is the same call: this came of it.
    Same(&'a CallOutcome),
    /// It is another call: the key is taken.
    Other,
}

impl StoredAnswer {
    /// How long an answer is kept.
    pub const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

    /// What the answer means for a call that is made at `now`.
    pub fn replay(&self, call: &str, now: Timestamp) -> Replay<'_> {
        if self.expires_at() <= now {
            Replay::Expired
        } else if self.call == call {
            Replay::Same(&self.outcome)
        } else {
            Replay::Other
        }
    }

    /// When it stops to mean anything.
    pub fn expires_at(&self) -> Timestamp {
        self.created_at.after(Self::LIFETIME)
    }
}

// A record that was returned may hold secrets, and here nobody knows where.
impl fmt::Debug for CallOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CallOutcome::Begun => "Begun",
            CallOutcome::Done(_) => "Done(***)",
            CallOutcome::Refused(_) => "Refused(***)",
        })
    }
}

#[cfg(test)]
mod tests;
