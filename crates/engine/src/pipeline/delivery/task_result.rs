//! Results of leased tasks that have to be stored.

use domain::ids::{IntegrationId, MessageId};
use domain::job::SendTarget;
use domain::plan::Refusal;
use domain::quarantine::Unreadable;
use domain::time::Timestamp;

use super::call::CallResult;
use super::circuits::Awaited;
use super::provider::Delivery;
use super::send_result::SendResult;
use super::turn::Turn;

/// Result of a leased task.
#[derive(Debug)]
pub(super) enum TaskResult {
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
    /// The provider takes no message at `since`, and none until then: its quota is used up.
    QuotaUsedUp { since: Timestamp, until: Timestamp },
    /// The message waits for an integration that may be called.
    CircuitOpen(Awaited),
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
pub(super) enum JobResult {
    /// A provider was asked to send the message.
    ProviderCalled(Box<Delivery>, SendResult),
    /// A function of the host application was called.
    HandlerCalled(CallResult),
    /// The message has several destinations.
    Split(Vec<SendTarget>),
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
pub(super) struct ResultSize {
    /// Size of the messages that the result creates, in bytes.
    pub(super) messages: usize,
    /// Size of all content that the result holds, such as that of the notification and of the events of a digest,
    /// in bytes.
    pub(super) content: usize,
    /// Number of tasks that the result leaves.
    pub(super) tasks: usize,
}

impl JobResult {
    /// Returns `true` if the job waits for something else than its attempt.
    pub(super) const fn waits(&self) -> bool {
        match self {
            JobResult::Deferred(_)
            | JobResult::WorkflowPaused
            | JobResult::IntegrationPaused(_) => true,
            JobResult::ProviderCalled(..)
            | JobResult::HandlerCalled(_)
            | JobResult::Split(_)
            | JobResult::Refused(_) => false,
        }
    }
}

impl TaskResult {
    /// Returns the word of the result.
    pub(super) const fn word(&self) -> &'static str {
        match self {
            TaskResult::Job(JobResult::ProviderCalled(..)) => "asked",
            TaskResult::Job(JobResult::HandlerCalled(_)) => "called",
            TaskResult::Job(JobResult::Split(_)) => "fanned_out",
            TaskResult::Job(JobResult::Refused(_)) => "refused",
            TaskResult::Job(JobResult::Deferred(_)) => "deferred",
            TaskResult::Job(JobResult::WorkflowPaused | JobResult::IntegrationPaused(_))
            | TaskResult::WorkflowPaused => "paused",
            TaskResult::Turned(_) => "turned",
            TaskResult::Woken(_) => "woken",
            TaskResult::Early(_) => "early",
            TaskResult::QuotaUsedUp { .. } | TaskResult::CircuitOpen(_) => "postponed",
            TaskResult::GaveUp => "gave_up",
            TaskResult::Dropped => "dropped",
            TaskResult::Unreadable(_) => "unreadable",
            TaskResult::Lost => "lost",
            TaskResult::Unused(_) => "unused",
        }
    }

    /// Returns `true` if the host has done what was asked of it, which is not asked again.
    pub(super) const fn is_accepted(&self) -> bool {
        matches!(
            self,
            TaskResult::Job(JobResult::ProviderCalled(_, Ok(_)) | JobResult::HandlerCalled(Ok(_)))
        )
    }

    /// Returns `true` if the result does not depend on the time of the attempt.
    pub(super) const fn is_final(&self) -> bool {
        matches!(
            self,
            TaskResult::Job(JobResult::ProviderCalled(..) | JobResult::HandlerCalled(_))
                | TaskResult::Unreadable(_)
        )
    }

    /// Returns the size of the result.
    pub(super) fn size(&self) -> ResultSize {
        match self {
            TaskResult::Job(JobResult::ProviderCalled(delivery, _)) => {
                let messages = delivery.message.size();
                let content = delivery.notification.size() + messages;
                ResultSize { messages, content, tasks: 0 }
            }
            TaskResult::Job(JobResult::Split(targets)) => {
                ResultSize { tasks: targets.len(), ..ResultSize::default() }
            }
            TaskResult::Turned(turn) => turn.size,
            TaskResult::Job(
                JobResult::HandlerCalled(_)
                | JobResult::Refused(_)
                | JobResult::Deferred(_)
                | JobResult::WorkflowPaused
                | JobResult::IntegrationPaused(_),
            )
            | TaskResult::Woken(_)
            | TaskResult::WorkflowPaused
            | TaskResult::Early(_)
            | TaskResult::QuotaUsedUp { .. }
            | TaskResult::CircuitOpen(_)
            | TaskResult::GaveUp
            | TaskResult::Dropped
            | TaskResult::Unreadable(_)
            | TaskResult::Lost
            | TaskResult::Unused(_) => ResultSize::default(),
        }
    }
}
