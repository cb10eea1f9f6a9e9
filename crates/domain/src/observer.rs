//! What has happened, as an observer is told.

use crate::ids::{EnvironmentId, InternalSubscriberId, MessageId, NotificationId, WorkflowId};
use crate::message::{Message, MessageStatus};
use crate::notification::Notification;
use crate::preference::{PreferenceScope, SubscriberPreference};
use crate::time::Timestamp;
use crate::vocabulary::Channel;

/// Something that has happened. All of it but [`ClockJumped`](Self::ClockJumped) and
/// [`Lagged`](Self::Lagged) is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A message was put into the inbox of its subscriber.
    MessageCreated(MessageEvent),
    /// A provider has accepted a message.
    MessageSent(MessageEvent),
    /// A message was handed to its provider, and has failed for good.
    MessageFailed(MessageEvent),
    /// A message was marked, such as read or seen.
    MessageMarked(MessageEvent),
    /// The last job of a notification has ended.
    NotificationEnded {
        /// Environment.
        environment_id: EnvironmentId,
        /// Notification.
        notification_id: NotificationId,
    },
    /// A preference of a subscriber was set or removed.
    PreferenceChanged {
        /// Environment.
        environment_id: EnvironmentId,
        /// Subscriber.
        subscriber_id: InternalSubscriberId,
        /// Workflow. `None` if the preference is about all workflows.
        workflow_id: Option<WorkflowId>,
    },
    /// The clock has moved by two seconds more or less than the time that has passed.
    ClockJumped {
        /// Time that was expected.
        from: Timestamp,
        /// Time on the clock.
        to: Timestamp,
    },
    /// So many events were not told, because the observer is too slow.
    Lagged(u64),
}

/// A message to which something has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageEvent {
    /// Environment.
    pub environment_id: EnvironmentId,
    /// Message.
    pub message_id: MessageId,
    /// Notification of the message.
    pub notification_id: NotificationId,
    /// Recipient.
    pub subscriber_id: InternalSubscriberId,
    /// Channel.
    pub channel: Channel,
}

impl From<&Message> for MessageEvent {
    fn from(message: &Message) -> Self {
        Self {
            environment_id: message.environment_id,
            message_id: message.id,
            notification_id: message.notification_id,
            subscriber_id: message.subscriber_id,
            channel: message.channel,
        }
    }
}

impl Event {
    /// Returns the event of a message that has changed.
    #[doc(hidden)]
    pub fn of_message(before: Option<&Message>, after: Option<&Message>) -> Option<Self> {
        let after = after?;
        let event = MessageEvent::from(after);
        match before {
            Some(before) => (before.stage != after.stage).then_some(Event::MessageMarked(event)),
            None => Some(match after.status {
                MessageStatus::Error { .. } => Event::MessageFailed(event),
                _ if after.channel == Channel::InApp => Event::MessageCreated(event),
                _ => Event::MessageSent(event),
            }),
        }
    }

    /// Returns the event of a notification that has changed.
    #[doc(hidden)]
    pub fn of_notification(
        before: Option<&Notification>,
        after: Option<&Notification>,
    ) -> Option<Self> {
        let has_ended = |one: &Notification| one.jobs.iter().all(|job| job.status.has_ended());
        let after = after.filter(|after| has_ended(after))?;
        before.is_none_or(|before| !has_ended(before)).then_some(Event::NotificationEnded {
            environment_id: after.environment_id,
            notification_id: after.id,
        })
    }

    /// Returns the event of a preference that has changed.
    #[doc(hidden)]
    pub fn of_preference(preference: &SubscriberPreference) -> Self {
        let workflow_id = match preference.scope {
            PreferenceScope::Global { .. } => None,
            PreferenceScope::Workflow { workflow_id } => Some(workflow_id),
        };
        let (environment_id, subscriber_id) = (preference.environment_id, preference.subscriber_id);
        Event::PreferenceChanged { environment_id, subscriber_id, workflow_id }
    }
}
