//! Shapes of queries of the activity list: a page of the notifications with given properties. Some
//! shapes find nothing.

use activity::{Filter, Term};
use domain::context::ContextSet;
use domain::ids::{
    InternalSubscriberId, SubscriptionIdentifier, TopicKey, TransactionId, WorkflowId,
};
use domain::notification::Notification;
use domain::time::Timestamp;
use domain::vocabulary::{JobType, Severity};

use crate::{Activity, Population};

/// Query of one page of the activity list, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Name in tables.
    pub name: &'static str,
    /// Wanted properties. A notification has one of each group.
    pub groups: Vec<Vec<Wanted>>,
    /// They were created then or later.
    pub after: Option<Timestamp>,
    /// They were created then or earlier.
    pub before: Option<Timestamp>,
    /// They are of this trigger.
    pub transaction: Option<TransactionId>,
    /// Number of earlier pages.
    pub page: u32,
    /// Size of a page.
    pub limit: u32,
}

/// Something that a notification can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// It is for this subscriber.
    Subscriber(InternalSubscriberId),
    /// It is of this workflow.
    Workflow(WorkflowId),
    /// It came through this topic.
    Topic(TopicKey),
    /// It came through this subscription.
    Subscription(SubscriptionIdentifier),
    /// It is about exactly these contexts.
    Contexts(ContextSet),
    /// It has this severity.
    Severity(Severity),
    /// Its workflow has a step of this kind.
    Channel(JobType),
}

impl Wanted {
    /// Returns `true` if `notification` has the property.
    pub fn is_in(&self, notification: &Notification) -> bool {
        match self {
            Self::Subscriber(id) => notification.subscriber_id == *id,
            Self::Workflow(id) => notification.workflow_id == Some(*id),
            Self::Topic(key) => notification.topics.iter().any(|topic| topic.topic_key == *key),
            Self::Subscription(id) => {
                notification.topics.iter().any(|topic| topic.subscription_ids.contains(id))
            }
            Self::Contexts(contexts) => notification.context_keys == *contexts,
            Self::Severity(severity) => notification.severity.unwrap_or_default() == *severity,
            Self::Channel(kind) => notification.channels.contains(kind),
        }
    }
}

impl From<&Wanted> for Term {
    fn from(wanted: &Wanted) -> Self {
        match wanted {
            Wanted::Subscriber(id) => Term::subscriber(*id),
            Wanted::Workflow(id) => Term::workflow(*id),
            Wanted::Topic(key) => Term::topic(key),
            Wanted::Subscription(identifier) => Term::subscription(identifier),
            Wanted::Contexts(contexts) => Term::contexts(contexts),
            Wanted::Severity(severity) => Term::severity(*severity),
            Wanted::Channel(kind) => Term::channel(*kind),
        }
    }
}

impl Shape {
    /// Returns the query for the first ten of all notifications.
    pub fn new(name: &'static str) -> Self {
        let groups = Vec::new();
        Self { name, groups, after: None, before: None, transaction: None, page: 0, limit: 10 }
    }

    /// Returns the query of those notifications that also have one of these properties.
    #[must_use]
    pub fn any_of(mut self, group: impl IntoIterator<Item = Wanted>) -> Self {
        self.groups.push(group.into_iter().collect());
        self
    }

    /// Returns the same query for another page.
    #[must_use]
    pub fn on_page(self, page: u32) -> Self {
        Self { page, ..self }
    }

    /// Number of items before the page.
    pub fn skip(&self) -> u64 {
        u64::from(self.page) * u64::from(self.limit)
    }

    /// Returns the filter for the activity index.
    pub fn filter(&self) -> Filter {
        let filter = Filter::new(self.after, self.before, self.transaction.clone());
        self.groups.iter().fold(filter, |filter, group| filter.any_of(group.iter().map(Term::from)))
    }

    /// Returns `true` if `notification` matches the query, on any page.
    pub fn matches(&self, notification: &Notification) -> bool {
        self.groups.iter().all(|group| group.iter().any(|wanted| wanted.is_in(notification)))
            && self.after.is_none_or(|after| notification.created_at >= after)
            && self.before.is_none_or(|before| notification.created_at <= before)
            && self.transaction.as_ref().is_none_or(|id| notification.transaction_id == *id)
    }

    /// Returns fifteen shapes for `activity` until `now`, cheapest first. The last shapes search
    /// much and find nothing.
    pub fn all(activity: &Activity, now: Timestamp) -> Vec<Self> {
        let there = activity.population();
        let subscriber = |rank| Wanted::Subscriber(there.internal_subscriber_id(rank));
        let workflow = |rank| Wanted::Workflow(there.workflow_id(rank));
        let contexts = |rank| Wanted::Contexts(there.context_set(rank));
        let channel = |rank, does| Wanted::Channel(channel(there, rank, does));
        let start = there.profile().start.as_millis();
        let at = |percent: i64| {
            Timestamp::from_millis(start + (now.as_millis() - start) / 100 * percent)
        };
        let window = |shape| Self { after: Some(at(45)), before: Some(at(55)), ..shape };
        let middle = there.transaction_id(activity.triggers() / 2);
        let transaction = |shape| Self { transaction: Some(middle), ..shape };
        let high = Wanted::Severity(Severity::High);
        let rare = there.profile().subscribers.count / 2;
        vec![
            Self::new("everything"),
            Self::new("a subscriber with many").any_of([subscriber(0)]),
            Self::new("a subscriber with few").any_of([subscriber(rare)]),
            Self::new("a workflow").any_of([workflow(5)]),
            Self::new("workflow, channel").any_of([workflow(5)]).any_of([channel(5, true)]),
            Self::new("workflow, channel, severity, contexts")
                .any_of([workflow(1)])
                .any_of([channel(1, true)])
                .any_of([high.clone()])
                .any_of([contexts(3)]),
            Self::new("none: workflow, channel").any_of([workflow(0)]).any_of([channel(0, false)]),
            Self::new("none: 10 subscribers, workflow, channel")
                .any_of((0..10).map(subscriber))
                .any_of([workflow(0)])
                .any_of([channel(0, false)]),
            transaction(Self::new("a transaction")),
            window(Self::new("a tenth of the time, channel").any_of([channel(0, true)])),
            Self::new("page 1,000").on_page(1_000),
            Self::new("page 1,000 of workflow, channel")
                .any_of([workflow(0)])
                .any_of([channel(0, true)])
                .on_page(1_000),
            Self::new("20 subscribers, 3 channels, 2 severities")
                .any_of((100..120).map(subscriber))
                .any_of([JobType::Email, JobType::Sms, JobType::Push].map(Wanted::Channel))
                .any_of([high.clone(), Wanted::Severity(Severity::Low)]),
            Self::new("topic, severity").any_of([Wanted::Topic(there.topic_key(9))]).any_of([high]),
            Self::new("a context set").any_of([contexts(40)]),
        ]
    }
}

// A channel that the workflow of that rank has, or has not.
fn channel(there: &Population, rank: usize, does: bool) -> JobType {
    let channels = there.workflows().get(rank).map(domain::workflow::Workflow::job_types);
    let channels = channels.unwrap_or_default();
    let all = [JobType::InApp, JobType::Email, JobType::Push, JobType::Sms, JobType::Chat];
    all.into_iter().find(|kind| channels.contains(kind) == does).unwrap_or(JobType::Email)
}
