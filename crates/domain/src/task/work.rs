//! What tasks do.

use serde::{Deserialize, Serialize};

use super::SendWork;
use crate::ids::{
    DigestWindowId, IntegrationId, JobId, MessageId, NotificationId, StepId, TransactionId,
};
use crate::retention::{SweepPace, SweepPart};
use crate::step::EventKey;

/// What a task does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Work {
    /// The jobs of a notification go on. The first of them that is delayed has waited long enough.
    Turn {
        /// Notification.
        #[serde(rename = "_notificationId")]
        notification_id: NotificationId,
    },
    /// The message of a job is sent.
    Send(SendWork),
    /// The window of a digest closes.
    Close {
        /// Notification of the first event.
        #[serde(rename = "_notificationId")]
        notification_id: NotificationId,
        /// Digest step.
        #[serde(rename = "_stepId")]
        step_id: StepId,
        /// Window.
        #[serde(rename = "_windowId")]
        window_id: DigestWindowId,
        /// Value in the payloads.
        key: EventKey,
    },
    /// A function of the host application is called.
    Call {
        /// Notification.
        #[serde(rename = "_notificationId")]
        notification_id: NotificationId,
        /// Job.
        #[serde(rename = "_jobId")]
        job_id: JobId,
    },
    /// Old records are removed.
    Sweep {
        /// Records that are looked at.
        part: SweepPart,
        /// Key of the last record that was looked at. Empty at the start of the part.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        after: Vec<u8>,
        /// Last steps.
        #[serde(flatten)]
        pace: SweepPace,
    },
    /// The next recipients of an event are notified.
    FanOut {
        /// Event.
        transaction_id: TransactionId,
    },
    /// The snooze of a message is over.
    Wake {
        /// Message.
        #[serde(rename = "_messageId")]
        message_id: MessageId,
    },
    /// The jobs of the remaining notifications of a canceled event end.
    Cancel {
        /// Event.
        transaction_id: TransactionId,
        /// First ordinal of the run to go on with.
        run: u64,
        /// Ordinal of the next notification.
        next: u64,
    },
    /// Messages that were held while an integration was paused are due again.
    Release {
        /// Integration.
        #[serde(rename = "_integrationId")]
        integration_id: IntegrationId,
    },
}

impl Work {
    /// Returns `true` if the work concerns one notification or message and calls no function of the host, so that
    /// it is short.
    pub fn is_short(&self) -> bool {
        match self {
            Self::Turn { .. } | Self::Wake { .. } => true,
            Self::Send(_)
            | Self::Call { .. }
            | Self::Close { .. }
            | Self::Sweep { .. }
            | Self::FanOut { .. }
            | Self::Cancel { .. }
            | Self::Release { .. } => false,
        }
    }

    /// Returns whether a function or a provider of the host application is called.
    pub fn calls_the_host(&self) -> bool {
        match self {
            Self::Send(_) | Self::Call { .. } => true,
            Self::Turn { .. }
            | Self::Close { .. }
            | Self::Sweep { .. }
            | Self::FanOut { .. }
            | Self::Wake { .. }
            | Self::Cancel { .. }
            | Self::Release { .. } => false,
        }
    }

    /// Returns the notification of the work. Returns `None` if the work is about many.
    pub const fn notification_id(&self) -> Option<NotificationId> {
        match self {
            Work::Turn { notification_id }
            | Work::Send(SendWork { notification_id, .. })
            | Work::Close { notification_id, .. }
            | Work::Call { notification_id, .. } => Some(*notification_id),
            Work::Sweep { .. }
            | Work::FanOut { .. }
            | Work::Wake { .. }
            | Work::Cancel { .. }
            | Work::Release { .. } => None,
        }
    }
}
