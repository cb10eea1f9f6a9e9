//! The work of a task that sends a message.

use serde::{Deserialize, Serialize};

use super::Tries;
use crate::ids::{JobId, NotificationId};
use crate::job::SendTarget;
use crate::message::Message;

/// A message that is sent to a provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendWork {
    /// Notification.
    #[serde(rename = "_notificationId")]
    pub notification_id: NotificationId,
    /// Job.
    #[serde(rename = "_jobId")]
    pub job_id: JobId,
    /// Message of the first attempt, which later attempts send again. `None` before the first
    /// attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Box<Message>>,
    /// Earlier attempts.
    #[serde(default, skip_serializing_if = "Tries::is_empty")]
    pub tries: Tries,
    /// Destination, if the message has several. The task has the id of the send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<SendTarget>,
}

impl SendWork {
    /// Returns the work of a job whose message was not sent yet.
    pub fn new(notification_id: NotificationId, job_id: JobId) -> Self {
        Self { notification_id, job_id, message: None, tries: Tries::default(), target: None }
    }

    /// Returns the work behind an attempt with this message.
    #[must_use]
    pub fn after(&self, message: Message, tries: Tries) -> Self {
        Self { message: Some(Box::new(message)), tries, ..self.clone() }
    }
}
