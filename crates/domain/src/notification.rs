//! Notifications: one triggered event for one subscriber, with everything that happened to it.

mod compose;
mod ordinal;
mod query;

use serde::{Deserialize, Serialize};

use crate::contact::Email;
use crate::context::ContextSet;
use crate::environment::Home;
use crate::event::Event;
use crate::ids::{
    EnvironmentId, InternalSubscriberId, JobId, NotificationId, OrganizationId, SubscriberId,
    SubscriptionIdentifier, TopicId, TopicKey, TransactionId, WorkflowId,
};
use crate::job::{Job, JobStatus};
use crate::json::Object;
use crate::subscriber::Subscriber;
use crate::subscription::Subscription;
use crate::time::Timestamp;
use crate::trigger::SubscriberRecipient;
use crate::vocabulary::{JobType, Severity};
use crate::workflow::{NotificationTrigger, Workflow, WorkflowOrigin};

pub use ordinal::Ordinal;
pub use query::{NotificationPage, NotificationQuery};

/// One triggered event for one subscriber: a record of the activity list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Notification {
    /// What the engine calls it.
    #[serde(rename = "_id")]
    pub id: NotificationId,
    /// The environment it belongs to.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// The organization it belongs to.
    #[serde(rename = "_organizationId")]
    pub organization_id: OrganizationId,
    /// Whom it is for.
    #[serde(rename = "_subscriberId")]
    pub subscriber_id: InternalSubscriberId,
    /// The call of trigger that it is from.
    pub transaction_id: TransactionId,
    /// The workflow that it is from.
    #[serde(rename = "_templateId", default, skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<WorkflowId>,
    /// The notification whose digest it went into.
    #[serde(rename = "_digestedNotificationId", default, skip_serializing_if = "Option::is_none")]
    pub digested_notification_id: Option<NotificationId>,
    /// When the event was triggered.
    pub created_at: Timestamp,
    /// When something last happened to it.
    pub updated_at: Timestamp,
    /// What its workflow does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub channels: Vec<JobType>,
    /// Whom it is for; filled in when it is read, as long as the subscriber exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscriber: Option<NotificationSubscriber>,
    /// The workflow that it is from; filled in when it is read, as long as the workflow exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<NotificationTemplate>,
    /// Its jobs, in the order of the steps.
    #[serde(default)]
    pub jobs: Vec<Job>,
    /// What happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Object>,
    /// What was different this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overrides: Option<Object>,
    /// Values that control its steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controls: Option<Object>,
    /// Whom it was for, as the trigger said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Object>,
    /// What its workflow is filed under.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The topics through which the subscriber got it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub topics: Vec<NotificationTopic>,
    /// How much it matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// Whether its workflow is critical: subscribers cannot opt out of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub critical: Option<bool>,
    /// The contexts that it is about.
    #[serde(default, skip_serializing_if = "ContextSet::is_empty")]
    pub context_keys: ContextSet,
}

/// Whom a notification is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct NotificationSubscriber {
    /// What the host application calls it.
    pub subscriber_id: SubscriberId,
    /// What the engine calls it.
    #[serde(rename = "_id")]
    pub id: InternalSubscriberId,
    /// Given name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_name: Option<String>,
    /// Family name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_name: Option<String>,
    /// Where e-mail goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<Email>,
    /// Where text messages go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phone: Option<String>,
}

/// The workflow that a notification is from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NotificationTemplate {
    /// What the engine calls it.
    #[serde(rename = "_id", default, skip_serializing_if = "Option::is_none")]
    pub id: Option<WorkflowId>,
    /// What people call it.
    pub name: String,
    /// Where it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<WorkflowOrigin>,
    /// What sets it off.
    pub triggers: [NotificationTrigger; 1],
}

/// A topic through which a subscriber got a notification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct NotificationTopic {
    /// What the engine calls it.
    #[serde(rename = "_topicId")]
    pub topic_id: TopicId,
    /// What the host application calls it.
    pub topic_key: TopicKey,
    /// The subscriptions that let it through.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subscription_ids: Vec<SubscriptionIdentifier>,
}

impl NotificationTopic {
    /// Returns a topic, with the subscriptions that let a notification through.
    pub fn new(
        topic_id: TopicId,
        topic_key: TopicKey,
        subscription_ids: Vec<SubscriptionIdentifier>,
    ) -> Self {
        Self { topic_id, topic_key, subscription_ids }
    }

    /// The topic of these subscriptions, which let a notification through; nothing, if there are
    /// none.
    pub fn through<'s>(subscriptions: impl Iterator<Item = &'s Subscription>) -> Option<Self> {
        let mut subscriptions = subscriptions.peekable();
        let first = subscriptions.peek()?;
        let (topic_id, topic_key) = (first.topic_id, first.topic_key.clone());
        let subscription_ids = subscriptions.map(|one| one.identifier.clone()).collect();
        Some(Self { topic_id, topic_key, subscription_ids })
    }
}

impl Notification {
    /// The notification of `event` for `subscriber`, who is told through `topics`, or else in
    /// person, with a job for each active step of the workflow. What comes first is its id, and
    /// when it was created.
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
        let severity = event.severity().unwrap_or(workflow.severity);
        Self {
            id,
            environment_id: home.environment_id,
            organization_id: home.organization_id.clone(),
            subscriber_id: subscriber.id,
            transaction_id: event.transaction_id.clone(),
            workflow_id: Some(workflow.id),
            digested_notification_id: None,
            created_at,
            updated_at: created_at,
            channels: workflow.job_types(),
            subscriber: None,
            template: None,
            jobs,
            payload: Some(trigger.payload.clone()),
            overrides: trigger.overrides.clone(),
            controls: None,
            to: Some(recipient.as_object()),
            tags: workflow.tags.clone(),
            topics,
            severity: Some(severity),
            critical: Some(workflow.critical),
            context_keys: event.context_keys.clone(),
        }
    }

    /// Returns a notification of which nothing else is known.
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
            transaction_id,
            workflow_id: None,
            digested_notification_id: None,
            created_at,
            updated_at: created_at,
            channels: Vec::new(),
            subscriber: None,
            template: None,
            jobs: Vec::new(),
            payload: None,
            overrides: None,
            controls: None,
            to: None,
            tags: Vec::new(),
            topics: Vec::new(),
            severity: None,
            critical: None,
            context_keys: ContextSet::default(),
        }
    }

    /// The job of that id.
    pub fn job(&self, id: JobId) -> Option<&Job> {
        self.jobs.iter().find(|job| job.id == id)
    }

    /// The job of that id.
    pub fn job_mut(&mut self, id: JobId) -> Option<&mut Job> {
        self.jobs.iter_mut().find(|job| job.id == id)
    }

    /// When one of its jobs is to be tried, or its lease is over; never, if none waits for that.
    /// Jobs run one after the other, so there is at most one.
    pub fn due_at(&self) -> Option<Timestamp> {
        self.jobs.iter().find_map(|job| job.status.due_at())
    }

    /// The job whose turn it is, if the ones before it are over.
    pub fn next_job(&self) -> Option<&Job> {
        let next = self.jobs.iter().find(|job| !job.status.has_ended())?;
        (next.status == JobStatus::Pending).then_some(next)
    }

    /// The job that is to be tried at `now`, or whose lease is over by then.
    pub fn due_job(&self, now: Timestamp) -> Option<&Job> {
        let due = |job: &&Job| job.status.due_at().is_some_and(|due_at| due_at <= now);
        self.jobs.iter().find(due)
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

impl From<&Workflow> for NotificationTemplate {
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
