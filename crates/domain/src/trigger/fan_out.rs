//! Events with many recipients, which tasks notify a chunk at a time.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Trigger, TriggerReceipt};
use crate::context::ContextSet;
use crate::ids::{EnvironmentId, InternalSubscriberId, TopicKey, TransactionId, WorkflowId};
use crate::time::Timestamp;
use crate::vocabulary::wire_enum;

/// Progress of an event with many recipients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EventProgress {
    /// Id of the event.
    pub transaction_id: TransactionId,
    /// Status.
    pub status: ProgressStatus,
    /// Number of notifications so far, including those of the subscribers that the trigger names.
    pub created: u64,
    /// Number of subscribers so far without a subscription that admits the event.
    pub filtered: u64,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

wire_enum! {
    /// Status of an event with many recipients.
    #[non_exhaustive]
    ProgressStatus, "status":
    Running = "running",
    Completed = "completed",
    Canceled = "canceled",
}

/// Event whose recipients tasks notify.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FanOut {
    /// Environment of the event.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// Id of the event.
    pub transaction_id: TransactionId,
    /// Workflow of the event.
    #[serde(rename = "_templateId")]
    pub workflow_id: WorkflowId,
    /// Trigger.
    pub trigger: Trigger,
    /// Recipients.
    pub crowd: Crowd,
    /// Subscribers and subscriptions with this id or a later one were not there yet.
    pub before: Uuid,
    /// Keys of the contexts of the event.
    pub context_keys: ContextSet,
    /// Subscriber who has caused the event.
    #[serde(rename = "_actorId", default, skip_serializing_if = "Option::is_none")]
    pub actor_id: Option<InternalSubscriberId>,
}

/// Recipients that an event does not name one by one.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Crowd {
    /// Subscribers in these topics.
    Topics {
        /// Keys of the topics.
        keys: Vec<TopicKey>,
    },
    /// All subscribers.
    Everybody,
}

/// State of an event whose recipients tasks notify.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FanOutState {
    /// Environment of the event.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// Last subscriber that was visited.
    #[serde(rename = "_behind", default, skip_serializing_if = "Option::is_none")]
    pub behind: Option<InternalSubscriberId>,
    /// Number of subscribers in the next chunk.
    pub chunk: usize,
    /// Progress of the event.
    #[serde(flatten)]
    pub progress: EventProgress,
}

/// Subscribers that a chunk has visited.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visited {
    /// Last of them.
    pub behind: Option<InternalSubscriberId>,
    /// Number of notifications.
    pub created: u64,
    /// Number of subscribers without a subscription that admits the event.
    pub filtered: u64,
    /// `true` if there are no others.
    pub all: bool,
}

/// Time for which a chunk should hold the writer: half of the longest time.
const HELD: Duration = Duration::from_millis(5);
const FIRST_CHUNK: usize = 64;
const SMALLEST_CHUNK: usize = 8;
const LARGEST_CHUNK: usize = 512;

/// Returns the size of the chunk behind one of `size` subscribers that has held the writer for
/// `held`.
fn next_chunk(size: usize, held: Duration) -> usize {
    let next = if held > HELD {
        let part = HELD.as_millis() as usize * size / (held.as_millis() as usize).max(1);
        part.min(size)
    } else if held * 2 < HELD {
        size * 2
    } else {
        size
    };
    next.clamp(SMALLEST_CHUNK, LARGEST_CHUNK)
}

impl EventProgress {
    /// Returns the progress of an event that was accepted at `at` with this receipt.
    #[doc(hidden)]
    pub fn of(receipt: &TriggerReceipt, at: Timestamp) -> Self {
        let created = receipt.notifications.len() + receipt.topics.created;
        Self {
            transaction_id: receipt.transaction_id.clone(),
            status: if receipt.continues {
                ProgressStatus::Running
            } else {
                ProgressStatus::Completed
            },
            created: created as u64,
            filtered: receipt.topics.filtered as u64,
            updated_at: at,
        }
    }

    /// Returns the progress of an event that was canceled at this time, or was not.
    #[doc(hidden)]
    #[must_use]
    pub fn canceled(self, at: Option<Timestamp>) -> Self {
        let Some(at) = at else { return self };
        let updated_at = at.max(self.updated_at);
        Self { status: ProgressStatus::Canceled, updated_at, ..self }
    }
}

impl FanOutState {
    /// Returns the state of an event that was accepted with this progress.
    pub fn new(environment_id: EnvironmentId, progress: EventProgress) -> Self {
        Self { environment_id, behind: None, chunk: FIRST_CHUNK, progress }
    }

    /// Returns the state behind a chunk that has held the writer for `held`.
    #[must_use]
    pub fn behind(&self, visited: Visited, held: Duration, now: Timestamp) -> Self {
        let progress = EventProgress {
            status: if visited.all { ProgressStatus::Completed } else { ProgressStatus::Running },
            created: self.progress.created + visited.created,
            filtered: self.progress.filtered + visited.filtered,
            updated_at: now,
            ..self.progress.clone()
        };
        let behind = visited.behind.or(self.behind);
        Self { behind, chunk: next_chunk(self.chunk, held), progress, ..self.clone() }
    }

    /// Returns the state in place of one that is lost: the event reaches nobody else, because those who were
    /// told are not known. `receipt` counts the first of them.
    pub fn lost(fan_out: &FanOut, receipt: Option<&TriggerReceipt>, now: Timestamp) -> Self {
        let told = receipt.map(|receipt| EventProgress::of(receipt, now));
        let progress = told.unwrap_or_else(|| EventProgress {
            transaction_id: fan_out.transaction_id.clone(),
            status: ProgressStatus::Canceled,
            created: 0,
            filtered: 0,
            updated_at: now,
        });
        Self::new(fan_out.environment_id, progress.canceled(Some(now)))
    }

    /// Returns the state of an event that reaches nobody else.
    #[must_use]
    pub fn canceled(&self, now: Timestamp) -> Self {
        Self { progress: self.progress.clone().canceled(Some(now)), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One row per size and time: the size of the next chunk.
    #[test]
    fn a_chunk_holds_the_writer_for_five_milliseconds() {
        for (size, held, next) in [
            (64, 0, 128),
            (64, 2, 128),
            (64, 3, 64),
            (64, 5, 64),
            (64, 10, 32),
            (64, 10_000, 8),
            (8, 6, 8),
            (512, 0, 512),
        ] {
            assert_eq!(next_chunk(size, Duration::from_millis(held)), next, "{size} {held}");
        }
    }
}
