//! Shapes of queries of the activity list: a page of the notifications with given properties. Some
//! shapes find nothing.

use std::ops::{Range, RangeInclusive};

use activity::{Filter, Term};
use domain::context::ContextSet;
use domain::ids::{
    InternalSubscriberId, SubscriptionIdentifier, TopicKey, TransactionId, WorkflowId,
};
use domain::notification::Notification;
use domain::time::Timestamp;
use domain::vocabulary::{Severity, StepType};

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
    Channel(StepType),
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
            Self::Channel(kind) => notification.step_types.contains(kind),
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
    /// Size of a page if nothing else is wanted.
    pub const LIMIT: u32 = 10;

    /// Returns the query for the first ten of all notifications.
    pub fn new(name: &'static str) -> Self {
        let groups = Vec::new();
        Self {
            name,
            groups,
            after: None,
            before: None,
            transaction: None,
            page: 0,
            limit: Self::LIMIT,
        }
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
    #[doc(hidden)]
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

    /// Returns the same query with pages of that size.
    #[must_use]
    pub fn of(self, limit: u32) -> Self {
        Self { limit, ..self }
    }

    /// Returns the same query for a part of the time until `now`, in percent.
    #[must_use]
    pub fn between(
        self,
        activity: &Activity,
        now: Timestamp,
        percent: RangeInclusive<i64>,
    ) -> Self {
        let start = activity.population().profile().start.as_millis();
        let at = |percent: &i64| {
            Timestamp::from_millis(start + (now.as_millis() - start) / 100 * percent)
        };
        Self { after: Some(at(percent.start())), before: Some(at(percent.end())), ..self }
    }

    /// Returns shapes for `activity` until `now`: frequent and rare properties, unions, windows,
    /// wide and late pages, and combinations that find little or nothing.
    pub fn all(activity: &Activity, now: Timestamp) -> Vec<Self> {
        let there = Asked { activity, now };
        [there.single(), there.combined(), there.unions(), there.rare(), there.far()].concat()
    }
}

// What can be asked about an activity until a time.
struct Asked<'a> {
    activity: &'a Activity,
    now: Timestamp,
}

impl Asked<'_> {
    fn population(&self) -> &Population {
        self.activity.population()
    }

    fn subscriber(&self, rank: usize) -> Wanted {
        Wanted::Subscriber(self.population().internal_subscriber_id(rank))
    }

    // Subscribers of whom each has few notifications.
    fn rare_subscriber(&self, number: usize) -> Wanted {
        self.subscriber(self.population().profile().subscribers.count / 2 + number)
    }

    fn workflow(&self, rank: usize) -> Wanted {
        Wanted::Workflow(self.population().workflow_id(rank))
    }

    fn workflows(&self, count: usize) -> Vec<Wanted> {
        (0..count).map(|rank| self.workflow(rank)).collect()
    }

    fn subscribers(&self, ranks: Range<usize>) -> Vec<Wanted> {
        ranks.map(|rank| self.subscriber(rank)).collect()
    }

    fn contexts(&self, rank: usize) -> Wanted {
        Wanted::Contexts(self.population().context_set(rank))
    }

    fn topic(&self, rank: usize) -> Wanted {
        Wanted::Topic(self.population().topic_key(rank))
    }

    fn channel(&self, rank: usize, does: bool) -> Wanted {
        Wanted::Channel(channel(self.population(), rank, does))
    }

    fn between(&self, shape: Shape, percent: RangeInclusive<i64>) -> Shape {
        shape.between(self.activity, self.now, percent)
    }

    // One property.
    fn single(&self) -> Vec<Shape> {
        let middle = self.population().transaction_id(self.activity.triggers() / 2);
        vec![
            Shape::new("everything"),
            Shape::new("a subscriber with many").any_of([self.subscriber(0)]),
            Shape::new("a subscriber with few").any_of([self.rare_subscriber(0)]),
            Shape::new("a workflow").any_of([self.workflow(5)]),
            Shape { transaction: Some(middle), ..Shape::new("a transaction") },
            Shape::new("a context set").any_of([self.contexts(40)]),
            Shape::new("a topic").any_of([self.topic(50)]),
        ]
    }

    // Several properties at once.
    fn combined(&self) -> Vec<Shape> {
        let channel = || self.channel(0, true);
        let window = Shape::new("a tenth of the time, channel").any_of([channel()]);
        let early = Shape::new("the first hundredth of the time, workflow");
        vec![
            Shape::new("workflow, channel")
                .any_of([self.workflow(5)])
                .any_of([self.channel(5, true)]),
            Shape::new("workflow, channel, severity, contexts")
                .any_of([self.workflow(1)])
                .any_of([self.channel(1, true)])
                .any_of([HIGH])
                .any_of([self.contexts(3)]),
            Shape::new("none: workflow, channel")
                .any_of([self.workflow(0)])
                .any_of([self.channel(0, false)]),
            Shape::new("none: 10 subscribers, workflow, channel")
                .any_of(self.subscribers(0..10))
                .any_of([self.workflow(0)])
                .any_of([self.channel(0, false)]),
            self.between(window, 45..=55),
            self.between(early.any_of([self.workflow(3)]), 0..=1),
            Shape::new("topic, severity").any_of([self.topic(9)]).any_of([HIGH]),
            Shape::new("topic, contexts").any_of([self.topic(1)]).any_of([self.contexts(1)]),
        ]
    }

    // One of several values.
    fn unions(&self) -> Vec<Shape> {
        let channel = || self.channel(0, true);
        let five = Shape::new("5 subscribers, channel, window");
        let twenty = Shape::new("20 workflows, 2 severities, window");
        vec![
            self.between(five.any_of(self.subscribers(0..5)).any_of([channel()]), 40..=60),
            Shape::new("20 workflows, channel").any_of(self.workflows(20)).any_of([channel()]),
            self.between(twenty.any_of(self.workflows(20)).any_of([HIGH, MEDIUM]), 40..=60),
            Shape::new("20 subscribers, 3 channels, 2 severities")
                .any_of(self.subscribers(100..120))
                .any_of([StepType::Email, StepType::Sms, StepType::Push].map(Wanted::Channel))
                .any_of([HIGH, LOW]),
            Shape::new("3 addresses, workflow")
                .any_of([20, 300, 4_000].map(|rank| self.subscriber(rank)))
                .any_of([self.workflow(2)]),
            Shape::new("20 workflows").any_of(self.workflows(20)),
        ]
    }

    // What few notifications have.
    fn rare(&self) -> Vec<Shape> {
        let twenty = (0..20).map(|number| self.rare_subscriber(number));
        let last = self.population().profile().workflows.count.max(1) - 1;
        vec![
            Shape::new("a rare subscriber, a rare workflow")
                .any_of([self.rare_subscriber(0)])
                .any_of([self.workflow(last)]),
            Shape::new("20 rare subscribers, high severity").any_of(twenty.clone()).any_of([HIGH]),
            Shape::new("20 rare subscribers").any_of(twenty),
            Shape::new("a rare context set, channel")
                .any_of([self.contexts(self.population().profile().context_sets.count / 2)])
                .any_of([self.channel(0, true)]),
        ]
    }

    // Wide and late pages.
    fn far(&self) -> Vec<Shape> {
        let channel = || self.channel(0, true);
        let late = self.between(Shape::new("page 4,000 of what is later"), 10..=100);
        vec![
            Shape::new("50 of everything").of(50),
            Shape::new("50 of 5 subscribers").any_of(self.subscribers(0..5)).of(50),
            Shape::new("page 1,000").on_page(1_000),
            Shape::new("page 1,000 of workflow, channel")
                .any_of([self.workflow(0)])
                .any_of([channel()])
                .on_page(1_000),
            Shape::new("page 500 of channel, severity")
                .any_of([channel()])
                .any_of([MEDIUM])
                .on_page(500),
            Shape::new("page 100 of 5 subscribers").any_of(self.subscribers(0..5)).on_page(100),
            Shape { before: None, ..late.on_page(4_000) },
        ]
    }
}

const HIGH: Wanted = Wanted::Severity(Severity::High);
const MEDIUM: Wanted = Wanted::Severity(Severity::Medium);
const LOW: Wanted = Wanted::Severity(Severity::Low);

// A channel that the workflow of that rank has, or has not.
fn channel(there: &Population, rank: usize, does: bool) -> StepType {
    let channels = there.workflows().get(rank).map(domain::workflow::Workflow::step_types);
    let channels = channels.unwrap_or_default();
    let all = [StepType::InApp, StepType::Email, StepType::Push, StepType::Sms, StepType::Chat];
    all.into_iter().find(|kind| channels.contains(kind) == does).unwrap_or(StepType::Email)
}
