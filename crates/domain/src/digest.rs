//! Records of digests and throttles: the events that a window collects, and the places of a limit.

use serde::{Deserialize, Serialize};

use crate::context::ContextSet;
use crate::ids::{
    DigestWindowId, EnvironmentId, InternalSubscriberId, NotificationId, StepId, TransactionId,
    WorkflowId,
};
use crate::job::{Job, JobDigest};
use crate::notification::Notification;
use crate::step::{DigestEvent, EventKey, Slot};
use crate::time::Timestamp;

/// State of a digest step for the events with one key, one subscriber and one set of contexts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DigestBucket {
    /// Events that are collected together.
    #[serde(flatten)]
    pub id: BucketId,
    /// Latest window. `None` if all events have passed at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<OpenWindow>,
    /// Time of the latest event, also if that event passed at once.
    pub last_event: Timestamp,
}

/// Events that a digest step collects together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BucketId {
    /// Environment of the events.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// Workflow of the step.
    #[serde(rename = "_templateId")]
    pub workflow_id: WorkflowId,
    /// Step.
    #[serde(rename = "_stepId")]
    pub step_id: StepId,
    /// Subscriber of the events.
    #[serde(rename = "_subscriberId")]
    pub subscriber_id: InternalSubscriberId,
    /// Contexts of the events.
    pub context_keys: ContextSet,
    /// Value in the payloads.
    pub key: EventKey,
}

/// Window of a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenWindow {
    /// Id given by the engine.
    #[serde(rename = "_id")]
    pub id: DigestWindowId,
    /// Notification of the first event.
    #[serde(rename = "_notificationId")]
    pub notification_id: NotificationId,
    /// End.
    pub until: Timestamp,
    /// Number of events.
    pub events: u32,
}

/// Event in a window of a digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WindowEvent {
    /// Environment of the event.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// Window.
    #[serde(rename = "_windowId")]
    pub window_id: DigestWindowId,
    /// Number of events before it in the window.
    pub number: u32,
    /// Notification of the event.
    #[serde(rename = "_notificationId")]
    pub notification_id: NotificationId,
    /// Id of the triggered event.
    pub transaction_id: TransactionId,
    /// Time of the event.
    pub created_at: Timestamp,
    /// Time at which the event expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// Place in a window of a throttle, taken by an event that has passed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThrottleSlot {
    /// Events that are counted together.
    #[serde(flatten)]
    pub id: BucketId,
    /// Time from which on the place is free again.
    pub until: Timestamp,
    /// Notification that has taken the place.
    #[serde(rename = "_notificationId")]
    pub notification_id: NotificationId,
    /// Time at which it has taken the place, if that is not its creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_at: Option<Timestamp>,
}

impl Notification {
    /// Returns the windows that have its event, which has opened or joined them.
    #[doc(hidden)]
    pub fn windows(&self) -> impl Iterator<Item = DigestWindowId> {
        self.jobs.iter().filter_map(|job| job.digest.as_ref()?.window_id)
    }

    /// Returns `true` if the jobs go on behind one of these windows, for all events in it.
    #[doc(hidden)]
    pub fn carries_one_of(&self, mut windows: impl Iterator<Item = DigestWindowId>) -> bool {
        let closed = |job: &Job| job.digest.as_ref().and_then(JobDigest::closed_window);
        windows.any(|window| self.jobs.iter().any(|job| closed(job) == Some(window)))
    }
}

impl WindowEvent {
    /// Returns `true` if the event is of no interest at `now`.
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|expires_at| expires_at <= now)
    }

    /// Returns the event with the payload of its notification.
    pub fn with_payload(&self, notification: &Notification) -> DigestEvent {
        DigestEvent {
            id: self.transaction_id.clone(),
            time: self.created_at,
            payload: notification.payload.clone().unwrap_or_default(),
        }
    }
}

impl ThrottleSlot {
    /// Returns the place that a notification takes at `now`.
    pub fn new(id: BucketId, slot: Slot, notification: &Notification, now: Timestamp) -> Self {
        let taken_at = Some(now).filter(|now| *now != notification.created_at);
        Self { id, until: slot.until, notification_id: notification.id, taken_at }
    }

    /// Returns `true` if the place was taken under a clock that was ahead of `now` by more than a day.
    /// Such a place does not count.
    pub fn is_of_clock_ahead(&self, now: Timestamp) -> bool {
        let taken_at = self.taken_at.unwrap_or(self.notification_id.created_at());
        taken_at.is_far_ahead_of(now)
    }
}

impl BucketId {
    /// Returns the bucket of an event of `notification` at the step of a job. Contexts do not
    /// separate the events of a throttle. Returns `None` if the notification has no workflow.
    pub fn of(notification: &Notification, step_id: StepId, key: EventKey) -> Option<Self> {
        Some(Self {
            environment_id: notification.environment_id,
            workflow_id: notification.workflow_id?,
            step_id,
            subscriber_id: notification.subscriber_id,
            context_keys: notification.context_keys.clone(),
            key,
        })
    }

    /// Returns the bucket for events with any contexts.
    #[must_use]
    pub fn of_any_context(self) -> Self {
        Self { context_keys: ContextSet::default(), ..self }
    }
}
