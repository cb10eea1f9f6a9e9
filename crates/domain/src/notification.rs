//! Notifications: one triggered event for one subscriber, with its jobs.

mod compose;
mod ordinal;
mod outcome;
mod query;
mod resend;

use serde::{Deserialize, Serialize};

use crate::contact::Email;
use crate::context::ContextSet;
use crate::environment::Home;
use crate::event::Event;
use crate::ids::{
    EnvironmentId, InternalSubscriberId, JobId, NotificationId, OrganizationId, StepId,
    SubscriberId, SubscriptionIdentifier, TopicId, TopicKey, TransactionId, WorkflowId,
};
use crate::job::{Job, JobDigest, JobStatus};
use crate::json::Object;
use crate::subscriber::Subscriber;
use crate::subscription::Subscription;
use crate::time::Timestamp;
use crate::trigger::SubscriberRecipient;
use crate::vocabulary::{Severity, StepType};
use crate::workflow::{NotificationTrigger, Workflow, WorkflowOrigin};

pub use ordinal::Ordinal;
pub use outcome::{NotificationOutcome, Outcomes};
pub use query::{NotificationPage, NotificationQuery};
pub use resend::ResendRefusal;

/// One triggered event for one subscriber: a record of the activity list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Notification {
    /// Id given by the engine.
    #[serde(rename = "_id")]
    pub id: NotificationId,
    /// Environment of the notification.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// Organization of the notification.
    #[serde(rename = "_organizationId")]
    pub organization_id: OrganizationId,
    /// Id of the subscriber, given by the engine.
    #[serde(rename = "_subscriberId")]
    pub subscriber_id: InternalSubscriberId,
    /// Id of the subscriber who has caused the event, given by the engine.
    #[serde(rename = "_actorId", default, skip_serializing_if = "Option::is_none")]
    pub actor_id: Option<InternalSubscriberId>,
    /// Id of the triggered event.
    pub transaction_id: TransactionId,
    /// Id of the workflow.
    #[serde(rename = "_templateId", default, skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<WorkflowId>,
    /// Id of the notification whose digest includes this one.
    #[serde(rename = "_digestedNotificationId", default, skip_serializing_if = "Option::is_none")]
    pub digested_notification_id: Option<NotificationId>,
    /// Time of the trigger.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
    /// Types of the workflow's steps.
    #[serde(rename = "channels", default, skip_serializing_if = "Vec::is_empty")]
    pub step_types: Vec<StepType>,
    /// Subscriber, filled in by reads while it exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscriber: Option<NotificationSubscriber>,
    /// Workflow, filled in by reads while it exists.
    #[serde(rename = "template", default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<NotificationWorkflow>,
    /// Jobs, in the order of the steps.
    #[serde(default)]
    pub jobs: Vec<Job>,
    /// Payload of the trigger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Object>,
    /// Overrides of the trigger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overrides: Option<Object>,
    /// Time from which on nothing is sent any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Values that control the steps. They are always absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controls: Option<Object>,
    /// Recipient, as in the trigger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Object>,
    /// Tags of the workflow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Topics through which the subscriber got the notification.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub topics: Vec<NotificationTopic>,
    /// Severity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// `true` if the workflow is critical: subscribers cannot opt out of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub critical: Option<bool>,
    /// Contexts of the event.
    #[serde(default, skip_serializing_if = "ContextSet::is_empty")]
    pub context_keys: ContextSet,
}

/// Whose a notification is: some of its fields.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NotificationOwner {
    /// Id of the notification.
    #[serde(rename = "_id")]
    pub id: NotificationId,
    /// Id of the subscriber, given by the engine.
    #[serde(rename = "_subscriberId")]
    pub subscriber_id: InternalSubscriberId,
    #[serde(default)]
    to: Option<NamedRecipient>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NamedRecipient {
    #[serde(default)]
    subscriber_id: Option<String>,
}

/// Subscriber of a notification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct NotificationSubscriber {
    /// Id in the host application.
    pub subscriber_id: SubscriberId,
    /// Id given by the engine.
    #[serde(rename = "_id")]
    pub id: InternalSubscriberId,
    /// Given name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_name: Option<String>,
    /// Family name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_name: Option<String>,
    /// E-mail address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<Email>,
    /// Telephone number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phone: Option<String>,
}

/// Workflow of a notification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NotificationWorkflow {
    /// Id given by the engine.
    #[serde(rename = "_id", default, skip_serializing_if = "Option::is_none")]
    pub id: Option<WorkflowId>,
    /// Display name.
    pub name: String,
    /// Origin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<WorkflowOrigin>,
    /// Triggers.
    pub triggers: [NotificationTrigger; 1],
}

/// Topic through which a subscriber got a notification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct NotificationTopic {
    /// Id given by the engine.
    #[serde(rename = "_topicId")]
    pub topic_id: TopicId,
    /// Key, given by the host application.
    pub topic_key: TopicKey,
    /// Identifiers of the subscriptions that admitted the notification.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subscription_ids: Vec<SubscriptionIdentifier>,
}

impl NotificationTopic {
    /// Returns a topic, with the subscriptions that admitted a notification.
    #[doc(hidden)]
    pub fn new(
        topic_id: TopicId,
        topic_key: TopicKey,
        subscription_ids: Vec<SubscriptionIdentifier>,
    ) -> Self {
        Self { topic_id, topic_key, subscription_ids }
    }

    /// Returns the topic of `subscriptions`, which admitted a notification. Returns `None` if there
    /// are none.
    #[doc(hidden)]
    pub fn through<'s>(subscriptions: impl Iterator<Item = &'s Subscription>) -> Option<Self> {
        let mut subscriptions = subscriptions.peekable();
        let first = subscriptions.peek()?;
        let (topic_id, topic_key) = (first.topic_id, first.topic_key.clone());
        let subscription_ids = subscriptions.map(|one| one.identifier.clone()).collect();
        Some(Self { topic_id, topic_key, subscription_ids })
    }
}

impl Notification {
    /// Returns the size of the payload and the overrides, in bytes.
    #[doc(hidden)]
    pub fn size(&self) -> usize {
        [&self.payload, &self.overrides].into_iter().flatten().map(Object::size).sum()
    }

    /// Returns the notification of `event` for `subscriber`, with a job for each active step.
    /// `topics` is empty for a recipient that the trigger names. The first argument is the id and
    /// the time of creation.
    #[doc(hidden)]
    pub fn new(
        (id, created_at): (NotificationId, Timestamp),
        event: &Event<'_>,
        subscriber: &Subscriber,
        recipient: &SubscriberRecipient,
        topics: Vec<NotificationTopic>,
        mut new_job: impl FnMut() -> JobId,
    ) -> Self {
        let Event { home, trigger, workflow, now, .. } = *event;
        let jobs = workflow.active_steps().map(|step| Job::new(new_job(), step, now)).collect();
        let severity = trigger.severity(workflow);
        Self {
            actor_id: event.actor.map(|actor| actor.id),
            workflow_id: Some(workflow.id),
            step_types: workflow.step_types(),
            jobs,
            payload: Some(trigger.payload.clone()),
            overrides: trigger.overrides.clone(),
            expires_at: trigger.expires_at,
            to: Some(recipient.as_object()),
            tags: workflow.tags.clone(),
            topics,
            severity: Some(severity),
            critical: Some(workflow.critical),
            context_keys: event.context_keys.clone(),
            ..Self::bare(id, home, subscriber.id, event.transaction_id.clone(), created_at)
        }
    }

    /// Returns a notification with every other field empty.
    #[doc(hidden)]
    pub fn bare(
        id: NotificationId,
        home: &Home,
        subscriber_id: InternalSubscriberId,
        transaction_id: TransactionId,
        created_at: Timestamp,
    ) -> Self {
        Self {
            id,
            environment_id: home.environment_id,
            organization_id: home.organization_id.clone(),
            subscriber_id,
            actor_id: None,
            transaction_id,
            workflow_id: None,
            digested_notification_id: None,
            created_at,
            updated_at: created_at,
            step_types: Vec::new(),
            subscriber: None,
            workflow: None,
            jobs: Vec::new(),
            payload: None,
            overrides: None,
            expires_at: None,
            controls: None,
            to: None,
            tags: Vec::new(),
            topics: Vec::new(),
            severity: None,
            critical: None,
            context_keys: ContextSet::default(),
        }
    }

    /// Returns the job with this id.
    pub fn job(&self, id: JobId) -> Option<&Job> {
        self.jobs.iter().find(|job| job.id == id)
    }

    /// Returns the end of the last job. Returns `None` if a job waits.
    #[doc(hidden)]
    pub fn ended_at(&self) -> Option<Timestamp> {
        self.jobs.iter().all(|job| job.status.has_ended()).then_some(self.updated_at)
    }

    /// Gives the window of a digest step to its job. If the jobs of another notification waited for the
    /// window and have ended, those of this one are taken over from there on: they are due at `now`.
    #[doc(hidden)]
    pub fn take_over(&mut self, step: StepId, digest: JobDigest, now: Timestamp) {
        let Some(first) = self.jobs.iter().position(|job| job.step.id == step) else { return };
        for job in self.jobs.iter_mut().skip(first) {
            if job.status == JobStatus::Merged {
                job.move_to(JobStatus::Pending, now);
                self.digested_notification_id = None;
            }
        }
        if let Some(job) = self.jobs.get_mut(first) {
            job.digest = Some(digest);
            if job.status == JobStatus::Pending {
                job.move_to(JobStatus::Delayed { until: now }, now);
            }
        }
    }

    /// Returns `true` if the jobs wait for the end of a window that the notification has opened.
    #[doc(hidden)]
    pub fn is_collecting(&self) -> bool {
        let waits = |job: &Job| matches!(job.status, JobStatus::Delayed { .. });
        self.jobs.iter().any(|job| job.kind == StepType::Digest && waits(job))
    }

    /// Returns the id that the host has given to the subscriber, who may have been deleted since.
    #[doc(hidden)]
    pub fn recipient_id(&self) -> Option<SubscriberId> {
        let id = self.to.as_ref()?.get("subscriberId")?.as_str()?;
        SubscriberId::new(id).ok()
    }

    /// Returns the end of the delay or of the window that the jobs wait for. Returns `None` if there is
    /// none, or it is over at `now`.
    #[doc(hidden)]
    pub fn waits_until(&self, now: Timestamp) -> Option<Timestamp> {
        let mut ends = self.jobs.iter().filter_map(|job| job.status.delayed_until());
        ends.find(|until| now < *until)
    }

    /// Returns `true` if a job that waits for its turn is before a delayed one: the task of its turn was put
    /// back.
    #[doc(hidden)]
    pub fn has_turn_before_delay(&self) -> bool {
        let is_delayed = |job: &Job| matches!(job.status, JobStatus::Delayed { .. });
        let is_pending = |job: &Job| job.status == JobStatus::Pending;
        let delay = self.jobs.iter().position(is_delayed);
        delay.is_some_and(|delay| self.jobs.iter().take(delay).any(is_pending))
    }

    /// Returns `true` if the event is of no interest at `now`.
    #[doc(hidden)]
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|expires_at| expires_at <= now)
    }

    /// Returns the number of the first job that a turn decides, or that of all jobs if there is none. A message
    /// before it may still be under way.
    #[doc(hidden)]
    pub fn next_job(&self) -> usize {
        let waits =
            |job: &Job| matches!(job.status, JobStatus::Pending | JobStatus::Delayed { .. });
        self.jobs.iter().position(waits).unwrap_or(self.jobs.len())
    }

    /// Returns the number of the job of a step, or that of all jobs if it has none.
    #[doc(hidden)]
    pub fn job_of(&self, step: StepId) -> usize {
        self.jobs.iter().position(|job| job.step.id == step).unwrap_or(self.jobs.len())
    }
}

impl From<&Notification> for Home {
    fn from(notification: &Notification) -> Self {
        Self {
            organization_id: notification.organization_id.clone(),
            environment_id: notification.environment_id,
        }
    }
}

impl NotificationOwner {
    /// Returns `true` if the trigger has named this id of the host for the subscriber, who may have been
    /// deleted since.
    pub fn is_recipient(&self, id: &SubscriberId) -> bool {
        let named = self.to.as_ref().and_then(|to| to.subscriber_id.as_deref());
        named == Some(id.as_str())
    }
}

impl From<&Subscriber> for NotificationSubscriber {
    fn from(subscriber: &Subscriber) -> Self {
        let profile = &subscriber.profile;
        Self {
            subscriber_id: subscriber.subscriber_id.clone(),
            id: subscriber.id,
            first_name: profile.first_name.clone(),
            last_name: profile.last_name.clone(),
            email: profile.email.clone(),
            phone: profile.phone.clone(),
        }
    }
}

impl From<&Workflow> for NotificationWorkflow {
    fn from(workflow: &Workflow) -> Self {
        Self {
            id: Some(workflow.id),
            name: workflow.name.clone(),
            origin: workflow.origin,
            triggers: workflow.triggers.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
