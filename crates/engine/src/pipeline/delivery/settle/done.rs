//! Results of leased tasks.

use domain::job::SendTarget;
use domain::plan::{Hold, Refusal};
use domain::quarantine::Unreadable;
use domain::time::Timestamp;

use super::super::call::CallResult;
use super::super::provider::{Delivery, SendResult};
use super::super::turn::Turn;

/// Result of a leased task.
#[derive(Debug)]
pub(in super::super) enum Done {
    /// A provider was asked to send the message.
    Asked(Box<Delivery>, SendResult),
    /// The message of a job has several destinations.
    FannedOut(Vec<SendTarget>),
    /// The message of a job is not sent.
    Refused(Refusal),
    /// The message of a job is sent at a later time.
    Deferred(Timestamp),
    /// A function of the host application was called.
    Called(CallResult),
    /// The lease was over before the host was called. Another worker may have the task.
    Lost,
    /// The provider takes no message at `since`, and none until then: its quota is used up, or the circuit
    /// of the integration is open.
    Postponed { since: Timestamp, until: Timestamp },
    /// The delay or the window that the jobs of a notification wait for ends at this time.
    Early(Timestamp),
    /// The work waits until what is paused is resumed.
    Paused(Hold),
    /// The jobs of a notification go on.
    Turned(Box<Turn>),
    /// The outcome of the last attempt is unknown.
    GaveUp,
    /// The notification is gone, or the job has ended.
    Dropped,
    /// A record cannot be read.
    Unreadable(Unreadable),
    /// A sweep has settled itself, and removed so many records.
    Swept(usize),
    /// The snooze of a message is over.
    Woken,
    /// The work has settled itself, and created so many notifications.
    Created(usize),
    /// The attempt has not begun, and does not count.
    Unused,
}

impl Done {
    /// Returns the word of the result.
    pub(in super::super) const fn word(&self) -> &'static str {
        match self {
            Done::Asked(..) => "asked",
            Done::FannedOut(_) => "fanned_out",
            Done::Refused(_) => "refused",
            Done::Deferred(_) => "deferred",
            Done::Called(_) => "called",
            Done::Lost => "lost",
            Done::Postponed { .. } => "postponed",
            Done::Early(_) => "early",
            Done::Paused(_) => "paused",
            Done::Turned(_) => "turned",
            Done::GaveUp => "gave_up",
            Done::Dropped => "dropped",
            Done::Unreadable(_) => "unreadable",
            Done::Swept(_) => "swept",
            Done::Created(_) => "created",
            Done::Woken => "woken",
            Done::Unused => "unused",
        }
    }

    /// Returns `true` if the result is that of an attempt of a job.
    pub(in super::super) const fn is_attempt(&self) -> bool {
        matches!(self, Done::Asked(..) | Done::FannedOut(_) | Done::Refused(_) | Done::Called(_))
    }

    /// Returns `true` if the result does not depend on the time of the attempt.
    pub(in super::super) const fn is_final(&self) -> bool {
        matches!(self, Done::Asked(..) | Done::Called(_) | Done::Unreadable(_))
    }

    /// Returns the size of the messages that the result creates, in bytes.
    pub(in super::super) fn messages_size(&self) -> usize {
        match self {
            Done::Asked(delivery, _) => delivery.message.size(),
            Done::Turned(turn) => turn.size.messages,
            _ => 0,
        }
    }

    /// Returns the size of the content that the result holds, in bytes.
    pub(in super::super) fn size(&self) -> usize {
        match self {
            Done::Asked(delivery, _) => delivery.notification.size() + delivery.message.size(),
            Done::Turned(turn) => turn.size.all,
            _ => 0,
        }
    }
}
