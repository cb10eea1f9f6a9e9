//! Events for observers.

use crate::ids::{
    EnvironmentId, InternalSubscriberId, JobId, MessageId, NotificationId, StepId, WorkflowId,
};
use crate::job::{Detail, Job, JobStatus};
use crate::message::{Message, MessageStatus};
use crate::notification::Notification;
use crate::preference::{PreferenceScope, SubscriberPreference};
use crate::time::Timestamp;
use crate::vocabulary::{Channel, StepType};

/// Event for an observer. The store has all changes that events report, except [`ClockJumped`](Self::ClockJumped),
/// [`WorkerFailed`](Self::WorkerFailed) and [`Lagged`](Self::Lagged).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A message was put into the inbox of its subscriber. The event is repeated if a snooze ends, or if the message
    /// is sent again.
    MessageCreated(MessageEvent),
    /// A provider has accepted a message. It is told for each destination, and each time that the message
    /// is sent again.
    MessageSent(MessageEvent),
    /// A message was handed to its provider, and has failed for good. Its job has failed too, unless
    /// another destination has got the message ([`JobFailed`](Self::JobFailed)). If the message is sent again and
    /// fails in the same way, there is only the event of the job.
    MessageFailed(MessageEvent),
    /// A message was marked, such as read or seen.
    MessageMarked(MessageEvent),
    /// A job has failed for good: its message was not sent, or could not be made, such as one of the
    /// inbox with a template that fails; or its delay, digest or function has failed.
    JobFailed(JobEvent),
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
    /// A worker has come across an error of the store, or a panic of the host's code outside of providers.
    /// It goes on after a pause of up to one second, and each pause is told once.
    WorkerFailed {
        /// Text of the error.
        error: String,
    },
    /// Number of events that were discarded, because the observer was too slow.
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

/// A job to which something has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobEvent {
    /// Environment.
    pub environment_id: EnvironmentId,
    /// Notification of the job.
    pub notification_id: NotificationId,
    /// Recipient.
    pub subscriber_id: InternalSubscriberId,
    /// Job.
    pub job_id: JobId,
    /// Step of the job.
    pub step_id: StepId,
    /// Type of the step.
    pub kind: StepType,
    /// Last entry in the log of the job, which is the reason of its status.
    pub reason: Option<Detail>,
}

impl JobEvent {
    fn of(notification: &Notification, job: &Job) -> Self {
        Self {
            environment_id: notification.environment_id,
            notification_id: notification.id,
            subscriber_id: notification.subscriber_id,
            job_id: job.id,
            step_id: job.step.id,
            kind: job.kind,
            reason: job.execution_details.last().map(|entry| entry.detail),
        }
    }
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
        let Some(before) = before else { return Some(Self::of_stored(after, event)) };
        // A failure leaves the times of delivery.
        let is_settled = before.status != after.status || before.delivered_at != after.delivered_at;
        let is_unsnoozed = before.snoozed_until.is_some()
            && after.snoozed_until.is_none()
            && before.stage == after.stage;
        if is_settled || is_unsnoozed {
            return Some(Self::of_stored(after, event));
        }
        (before.stage != after.stage).then_some(Event::MessageMarked(event))
    }

    // The event of a message that was put into the inbox, or that a provider has answered for.
    fn of_stored(message: &Message, event: MessageEvent) -> Self {
        match message.status {
            MessageStatus::Error { .. } => Event::MessageFailed(event),
            _ if message.channel == Channel::InApp => Event::MessageCreated(event),
            _ => Event::MessageSent(event),
        }
    }

    /// Returns the events of a notification that has changed: jobs that have failed since, and the
    /// end of the last job.
    #[doc(hidden)]
    pub fn of_notification(
        before: Option<&Notification>,
        after: Option<&Notification>,
    ) -> Vec<Self> {
        let Some(after) = after else { return Vec::new() };
        let has_failed = |job: &Job| job.status == JobStatus::Failed;
        // A job that is sent again has another id.
        let is_known = |job: &Job| {
            let mut jobs = before.into_iter().flat_map(|before| &before.jobs);
            jobs.any(|one| one.id == job.id && has_failed(one))
        };
        let failed = after.jobs.iter().filter(|job| has_failed(job) && !is_known(job));
        let mut events: Vec<_> =
            failed.map(|job| Event::JobFailed(JobEvent::of(after, job))).collect();
        let has_ended = |one: &Notification| one.jobs.iter().all(|job| job.status.has_ended());
        if has_ended(after) && before.is_none_or(|before| !has_ended(before)) {
            let (environment_id, notification_id) = (after.environment_id, after.id);
            events.push(Event::NotificationEnded { environment_id, notification_id });
        }
        events
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
