//! What is searched for, and what that is without an index.

use domain::ids::InternalSubscriberId;
use domain::notification::Notification;
use domain::vocabulary::{Severity, StepType};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use tidings_activity::{Filter, Term};

use crate::sample;

/// A filter.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) after: Option<i64>,
    pub(crate) before: Option<i64>,
    pub(crate) transaction: Option<u8>,
    pub(crate) groups: Vec<Vec<Wish>>,
}

/// A term.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wish {
    Subscriber(u16),
    Workflow(u16),
    Severity(Severity),
    Channel(StepType),
    Topic(u16),
    Subscription(u16),
    Contexts(u16),
}

/// A search for a page.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    pub(crate) wanted: Wanted,
    pub(crate) skip: u64,
    pub(crate) limit: usize,
}

impl Wanted {
    pub(crate) fn filter(&self) -> Filter {
        let (after, before) = (self.after.map(sample::time), self.before.map(sample::time));
        let filter = Filter::new(after, before, self.transaction.map(sample::transaction));
        let groups = self.groups.iter();
        groups.fold(filter, |filter, group| filter.any_of(group.iter().map(Wish::term)))
    }

    /// The same as the filter, with the subscribers of one group apart from it.
    pub(crate) fn apart(&self) -> Option<(Filter, Vec<InternalSubscriberId>)> {
        let of = |group: &Vec<Wish>| group.iter().map(Wish::subscriber).collect::<Option<Vec<_>>>();
        let at = self.groups.iter().position(|group| of(group).is_some())?;
        let mut others = self.clone();
        let subscribers = of(&others.groups.remove(at))?;
        Some((others.filter(), subscribers))
    }

    pub(crate) fn matches(&self, notification: &Notification) -> bool {
        let at = notification.created_at;
        self.after.is_none_or(|after| at >= sample::time(after))
            && self.before.is_none_or(|before| at <= sample::time(before))
            && self
                .transaction
                .is_none_or(|id| notification.transaction_id == sample::transaction(id))
            && self.groups.iter().all(|group| group.iter().any(|wish| wish.matches(notification)))
    }
}

impl Wish {
    fn subscriber(&self) -> Option<InternalSubscriberId> {
        match self {
            Self::Subscriber(number) => Some(sample::subscriber(*number)),
            _ => None,
        }
    }

    fn term(&self) -> Term {
        match *self {
            Self::Subscriber(number) => Term::subscriber(sample::subscriber(number)),
            Self::Workflow(number) => Term::workflow(sample::workflow(number)),
            Self::Severity(severity) => Term::severity(severity),
            Self::Channel(kind) => Term::channel(kind),
            Self::Topic(number) => Term::topic(&sample::topic(number)),
            Self::Subscription(number) => Term::subscription(&sample::subscription(number)),
            Self::Contexts(number) => Term::contexts(&sample::contexts(number)),
        }
    }

    fn matches(&self, found: &Notification) -> bool {
        match *self {
            Self::Subscriber(number) => found.subscriber_id == sample::subscriber(number),
            Self::Workflow(number) => found.workflow_id == Some(sample::workflow(number)),
            Self::Severity(severity) => found.severity.unwrap_or(Severity::None) == severity,
            Self::Channel(kind) => found.step_types.contains(&kind),
            Self::Topic(number) => {
                found.topics.iter().any(|topic| topic.topic_key == sample::topic(number))
            }
            Self::Subscription(number) => {
                let identifier = sample::subscription(number);
                found.topics.iter().any(|topic| topic.subscription_ids.contains(&identifier))
            }
            Self::Contexts(number) => found.context_keys == sample::contexts(number),
        }
    }
}

pub(crate) fn query() -> impl Strategy<Value = Query> {
    let skip = prop_oneof![4 => Just(0), 4 => 0_u64..60, 1 => any::<u64>()];
    let limit =
        prop_oneof![1 => Just(0), 6 => 1_usize..30, 1 => Just(10_000), 1 => Just(usize::MAX)];
    (wanted(), skip, limit).prop_map(|(wanted, skip, limit)| Query { wanted, skip, limit })
}

pub(crate) fn wanted() -> impl Strategy<Value = Wanted> {
    // Mostly within the history, sometimes beyond all time.
    let time = || {
        option::weighted(
            0.3,
            prop_oneof![12 => -150_i64..250, 1 => Just(i64::MIN), 1 => Just(i64::MAX)],
        )
    };
    let groups = prop_oneof![1 => Just(Vec::new()), 4 => vec(group(), 1..4)];
    (time(), time(), option::weighted(0.2, 0_u8..6), groups).prop_map(
        |(after, before, transaction, groups)| Wanted { after, before, transaction, groups },
    )
}

fn group() -> impl Strategy<Value = Vec<Wish>> {
    let of_one = prop_oneof![
        vec((0_u16..40).prop_map(Wish::Subscriber), 1..12),
        vec((0_u16..5).prop_map(Wish::Workflow), 1..4),
        vec(select(Severity::ALL).prop_map(Wish::Severity), 1..4),
        vec(select(&sample::CHANNELS).prop_map(Wish::Channel), 1..3),
        vec((0_u16..3).prop_map(Wish::Topic), 1..3),
        vec((0_u16..5).prop_map(Wish::Subscription), 1..4),
        vec((0_u16..4).prop_map(Wish::Contexts), 1..3),
    ];
    // Also terms about several things, or none at all.
    prop_oneof![8 => of_one.boxed(), 2 => vec(wish(), 0..10)]
}

fn wish() -> impl Strategy<Value = Wish> {
    prop_oneof![
        (0_u16..40).prop_map(Wish::Subscriber),
        (0_u16..5).prop_map(Wish::Workflow),
        select(Severity::ALL).prop_map(Wish::Severity),
        select(&sample::CHANNELS).prop_map(Wish::Channel),
        (0_u16..3).prop_map(Wish::Topic),
        (0_u16..5).prop_map(Wish::Subscription),
        (0_u16..4).prop_map(Wish::Contexts),
    ]
}
