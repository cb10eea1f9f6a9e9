//! Results of leased tasks that have to be stored.

use domain::ids::{IntegrationId, MessageId};
use domain::job::SendTarget;
use domain::plan::Refusal;
use domain::quarantine::Unreadable;
use domain::time::Timestamp;

use super::super::call::CallResult;
use super::super::provider::Delivery;
use super::super::send_result::SendResult;
use super::super::turn::Turn;

/// Result of a leased task.
#[derive(Debug)]
pub(in super::super) enum Done {
    /// The job of the task was attempted, or has to wait.
    Job(JobResult),
    /// The jobs of a notification go on.
    Turned(Box<Turn>),
    /// The snooze of a message is over.
    Woken(MessageId),
    /// The work waits until its workflow is resumed. It is not that of a job.
    WorkflowPaused,
    /// The delay or the window that the jobs of a notification wait for ends at this time.
    Early(Timestamp),
    /// The provider takes no message at `since`, and none until then: its quota is used up, or the circuit
    /// of the integration is open.
    Postponed { since: Timestamp, until: Timestamp },
    /// The outcome of the last attempt is unknown.
    GaveUp,
    /// The notification is gone, or the job has ended.
    Dropped,
    /// A record cannot be read.
    Unreadable(Unreadable),
    /// The lease was over before the host was called. Another worker may have the task.
    Lost,
    /// The attempt has not begun, and does not count. The task is due since this time.
    Unused(Timestamp),
}

/// Result of the work on a job.
#[derive(Debug)]
pub(in super::super) enum JobResult {
    /// A provider was asked to send the message.
    Asked(Box<Delivery>, SendResult),
    /// A function of the host application was called.
    Called(CallResult),
    /// The message has several destinations.
    FannedOut(Vec<SendTarget>),
    /// The message is not sent, or the function not called.
    Refused(Refusal),
    /// The message is sent at a later time.
    Deferred(Timestamp),
    /// The message or the call waits until its workflow is resumed.
    WorkflowPaused,
    /// The message waits until its integration is resumed.
    IntegrationPaused(IntegrationId),
}

/// Size of a result.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct ResultSize {
    /// Size of the messages that the result creates, in bytes.
    pub(in super::super) messages: usize,
    /// Size of all content that the result holds, such as that of the notification and of the events of a digest,
    /// in bytes.
    pub(in super::super) content: usize,
    /// Number of tasks that the result leaves.
    pub(in super::super) tasks: usize,
}

impl JobResult {
    /// Returns `true` if the job waits for something else than its attempt.
    pub(super) const fn waits(&self) -> bool {
        match self {
            JobResult::Deferred(_)
            | JobResult::WorkflowPaused
            | JobResult::IntegrationPaused(_) => true,
            JobResult::Asked(..)
            | JobResult::Called(_)
            | JobResult::FannedOut(_)
            | JobResult::Refused(_) => false,
        }
    }
}

impl Done {
    /// Returns the word of the result.
    pub(in super::super) const fn word(&self) -> &'static str {
        match self {
            Done::Job(JobResult::Asked(..)) => "asked",
            Done::Job(JobResult::Called(_)) => "called",
            Done::Job(JobResult::FannedOut(_)) => "fanned_out",
            Done::Job(JobResult::Refused(_)) => "refused",
            Done::Job(JobResult::Deferred(_)) => "deferred",
            Done::Job(JobResult::WorkflowPaused | JobResult::IntegrationPaused(_))
            | Done::WorkflowPaused => "paused",
            Done::Turned(_) => "turned",
            Done::Woken(_) => "woken",
            Done::Early(_) => "early",
            Done::Postponed { .. } => "postponed",
            Done::GaveUp => "gave_up",
            Done::Dropped => "dropped",
            Done::Unreadable(_) => "unreadable",
            Done::Lost => "lost",
            Done::Unused(_) => "unused",
        }
    }

    /// Returns `true` if the host has done what was asked of it, which is not asked again.
    pub(in super::super) const fn is_accepted(&self) -> bool {
        matches!(self, Done::Job(JobResult::Asked(_, Ok(_)) | JobResult::Called(Ok(_))))
    }

    /// Returns `true` if the result does not depend on the time of the attempt.
    pub(in super::super) const fn is_final(&self) -> bool {
        matches!(self, Done::Job(JobResult::Asked(..) | JobResult::Called(_)) | Done::Unreadable(_))
    }

    /// Returns the size of the result.
    pub(in super::super) fn size(&self) -> ResultSize {
        match self {
            Done::Job(JobResult::Asked(delivery, _)) => {
                let messages = delivery.message.size();
                let content = delivery.notification.size() + messages;
                ResultSize { messages, content, tasks: 0 }
            }
            Done::Job(JobResult::FannedOut(targets)) => {
                ResultSize { tasks: targets.len(), ..ResultSize::default() }
            }
            Done::Turned(turn) => turn.size,
            Done::Job(
                JobResult::Called(_)
                | JobResult::Refused(_)
                | JobResult::Deferred(_)
                | JobResult::WorkflowPaused
                | JobResult::IntegrationPaused(_),
            )
            | Done::Woken(_)
            | Done::WorkflowPaused
            | Done::Early(_)
            | Done::Postponed { .. }
            | Done::GaveUp
            | Done::Dropped
            | Done::Unreadable(_)
            | Done::Lost
            | Done::Unused(_) => ResultSize::default(),
        }
    }
}
