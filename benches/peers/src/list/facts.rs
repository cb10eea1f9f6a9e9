//! Notifications and questions as a relational database likes them best: small integers.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};

use bench_data::{Shape, Triggered, Wanted};
use domain::ids::{InternalSubscriberId, TopicKey, WorkflowId};
use domain::notification::Notification;
use domain::vocabulary::{StepType, Severity};

/// What a notification can be found by.
pub(crate) struct Fact {
    pub(crate) ordinal: i64,
    pub(crate) created_at: i64,
    pub(crate) subscriber: i64,
    pub(crate) workflow: i64,
    pub(crate) contexts: i64,
    pub(crate) severity: i64,
    /// A bit for each of its channels.
    pub(crate) channels: i64,
    /// Topics, and the subscriptions in them.
    pub(crate) topics: Vec<(i64, i64)>,
}

/// A call of trigger, and the facts that it led to, which follow each other.
pub(crate) struct Transaction {
    pub(crate) name: String,
    pub(crate) facts: Vec<Fact>,
}

/// A shape in these terms.
pub(crate) struct Question {
    pub(crate) groups: Vec<Group>,
    pub(crate) after: Option<i64>,
    pub(crate) before: Option<i64>,
    pub(crate) transaction: Option<String>,
    pub(crate) skip: u64,
    /// As many as are on a page, and one more, which tells whether there is another page.
    pub(crate) limit: u64,
}

/// Values of a column, one of which is asked for.
pub(crate) struct Group {
    pub(crate) column: Column,
    pub(crate) values: Vec<i64>,
}

/// What can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    Subscriber,
    Workflow,
    Contexts,
    Severity,
    Channel,
    Topic,
    Subscription,
}

/// Numbers for whatever has a name. None of this is timed: what a host knows of its subscribers
/// and workflows has numbers already.
#[derive(Default)]
pub(crate) struct Numbers {
    subscribers: Dense<InternalSubscriberId>,
    workflows: Dense<WorkflowId>,
    contexts: Dense<String>,
    topics: Dense<TopicKey>,
    // There are nearly as many subscriptions as notifications, so their hashes must do.
    subscriptions: Dense<u64>,
    hasher: RandomState,
}

struct Dense<T>(HashMap<T, i64>);

impl<T> Default for Dense<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T: Hash + Eq> Dense<T> {
    fn of(&mut self, thing: T) -> i64 {
        let next = i64::try_from(self.0.len()).unwrap();
        *self.0.entry(thing).or_insert(next)
    }
}

impl Numbers {
    pub(crate) fn transaction(&mut self, triggered: &Triggered) -> Transaction {
        let facts = triggered.notifications.iter().map(|one| self.fact(one)).collect();
        Transaction { name: triggered.transaction_id.to_string(), facts }
    }

    fn fact(&mut self, one: &Notification) -> Fact {
        let topics = one.topics.iter().flat_map(|topic| {
            topic.subscription_ids.iter().map(move |subscription| (&topic.topic_key, subscription))
        });
        let topics: Vec<_> = topics
            .map(|(topic, subscription)| {
                let subscription = self.hasher.hash_one(subscription.as_str());
                (self.topics.of(topic.clone()), self.subscriptions.of(subscription))
            })
            .collect();
        Fact {
            ordinal: i64::try_from(one.id.ordinal().get()).unwrap(),
            created_at: one.created_at.as_millis(),
            subscriber: self.subscribers.of(one.subscriber_id),
            workflow: self.workflows.of(one.workflow_id.unwrap()),
            contexts: self.contexts.of(one.context_keys.canonical().to_owned()),
            severity: severity(one.severity.unwrap_or_default()),
            channels: one.step_types.iter().fold(0, |bits, kind| bits | 1 << channel(*kind)),
            topics,
        }
    }

    pub(crate) fn question(&mut self, shape: &Shape) -> Question {
        Question {
            groups: shape.groups.iter().map(|group| self.group(group)).collect(),
            after: shape.after.map(domain::time::Timestamp::as_millis),
            before: shape.before.map(domain::time::Timestamp::as_millis),
            transaction: shape.transaction.as_ref().map(ToString::to_string),
            skip: shape.skip(),
            limit: u64::from(shape.limit) + 1,
        }
    }

    /// Returns the number of a subscriber.
    pub(crate) fn subscriber(&mut self, id: InternalSubscriberId) -> i64 {
        self.subscribers.of(id)
    }

    fn group(&mut self, group: &[Wanted]) -> Group {
        let (columns, values): (Vec<_>, _) = group.iter().map(|one| self.value(one)).unzip();
        Group { column: columns[0], values }
    }

    fn value(&mut self, wanted: &Wanted) -> (Column, i64) {
        match wanted {
            Wanted::Subscriber(id) => (Column::Subscriber, self.subscribers.of(*id)),
            Wanted::Workflow(id) => (Column::Workflow, self.workflows.of(*id)),
            Wanted::Topic(key) => (Column::Topic, self.topics.of(key.clone())),
            Wanted::Subscription(id) => {
                let hash = self.hasher.hash_one(id.as_str());
                (Column::Subscription, self.subscriptions.of(hash))
            }
            Wanted::Contexts(contexts) => {
                (Column::Contexts, self.contexts.of(contexts.canonical().to_owned()))
            }
            Wanted::Severity(one) => (Column::Severity, severity(*one)),
            Wanted::Channel(kind) => (Column::Channel, channel(*kind)),
        }
    }
}

const fn severity(severity: Severity) -> i64 {
    match severity {
        Severity::None => 0,
        Severity::Low => 1,
        Severity::Medium => 2,
        Severity::High => 3,
    }
}

fn channel(kind: StepType) -> i64 {
    let at = StepType::ALL.iter().position(|other| *other == kind).unwrap();
    i64::try_from(at).unwrap()
}

/// The numbers of the channels in a set of bits.
pub(crate) fn channels(bits: i64) -> impl Iterator<Item = i64> {
    (0..i64::from(u16::BITS)).filter(move |channel| bits >> channel & 1 == 1)
}
