//! Members of the crowd of an event: the subscribers in its topics, or all subscribers.

use std::cell::LazyCell;
use std::collections::BTreeMap;

use domain::event::Event;
use domain::explain::FilteredMember;
use domain::ids::{InternalSubscriberId, TopicKey};
use domain::notification::NotificationTopic;
use domain::subscriber::Subscriber;
use domain::subscription::Subscription;
use domain::topic::Topic;
use domain::trigger::{Audience, Crowd};
use store::{Order, ReadRecords, layout};
use uuid::Uuid;

use crate::Result;
use crate::resources::topics;
use crate::tx::View;

/// Recipients of an event that it does not name one by one.
#[derive(Debug)]
pub(crate) enum CrowdSource {
    Topics(Vec<Topic>),
    Everybody,
}

/// Consecutive members of a crowd, each once, in the order of their ids.
#[derive(Debug, Default)]
pub(crate) struct Members {
    pub(crate) found: Vec<Member>,
    /// Last of those that were visited.
    pub(crate) behind: Option<InternalSubscriberId>,
    /// `true` if there are no others.
    pub(crate) all: bool,
}

/// Member of a crowd, with the subscriptions in its topics. A broadcast needs none.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) subscriber: Subscriber,
    subscriptions: Option<Vec<Subscription>>,
}

/// Part of a crowd to visit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CrowdRange {
    pub(crate) behind: Option<InternalSubscriberId>,
    /// Members with this id or a later one are left out.
    pub(crate) before: Option<Uuid>,
    /// Number of members.
    pub(crate) limit: usize,
}

// Smallest number of subscriptions of a topic that are read. It is larger than the number of those
// of one subscriber, so that a part has at least one member.
const AT_LEAST: usize = 32;

impl CrowdSource {
    /// Returns the topics that exist, in the order of `keys`, and the keys of the others.
    pub(crate) fn topics<'k>(
        view: &dyn View,
        keys: impl IntoIterator<Item = &'k TopicKey>,
    ) -> Result<(Self, Vec<TopicKey>)> {
        let (mut there, mut missing) = (Vec::new(), Vec::new());
        for key in keys {
            match topics::find(view, key)? {
                Some(topic) => there.push(topic),
                None => missing.push(key.clone()),
            }
        }
        Ok((Self::Topics(there), missing))
    }

    /// Returns the members of a crowd.
    pub(crate) fn of(view: &dyn View, crowd: &Crowd) -> Result<Self> {
        Ok(match crowd {
            Crowd::Topics { keys } => Self::topics(view, keys)?.0,
            Crowd::Everybody => Self::Everybody,
        })
    }

    /// Returns the first id that is behind `next` and behind those of the members. Members may have
    /// later ids than `next`, if the clock went back before the engine was started.
    pub(crate) fn behind_all(&self, view: &dyn View, next: Uuid) -> Result<Uuid> {
        let environment = view.environment_id();
        let mut behind = next.as_u128();
        let mut note = |id: Uuid| behind = behind.max(id.as_u128().saturating_add(1));
        match self {
            CrowdSource::Topics(topics) => {
                for topic in topics {
                    let all = layout::subscription_ids(environment, topic.id);
                    let last: Vec<Subscription> =
                        view.readable(&all.range(), Order::Descending, 1)?;
                    for subscription in &last {
                        note(subscription.id.into());
                    }
                }
            }
            CrowdSource::Everybody => {
                let all = layout::subscriber_ids(environment);
                let last: Vec<Subscriber> = view.readable(&all.range(), Order::Descending, 1)?;
                for subscriber in &last {
                    note(subscriber.id.into());
                }
            }
        }
        Ok(Uuid::from_u128(behind))
    }

    /// Returns `true` if the crowd has no members.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, CrowdSource::Topics(topics) if topics.is_empty())
    }

    /// Returns the next members.
    pub(crate) fn members(&self, view: &dyn View, crowd: CrowdRange) -> Result<Members> {
        match self {
            CrowdSource::Topics(topics) => of_topics(view, topics, crowd),
            CrowdSource::Everybody => everybody(view, crowd),
        }
    }
}

fn everybody(view: &dyn View, crowd: CrowdRange) -> Result<Members> {
    let range = layout::subscriber_ids_behind(view.environment_id(), crowd.behind);
    let mut found: Vec<Subscriber> = view.readable(&range, Order::Ascending, crowd.limit)?;
    let is_late = |subscriber: &Subscriber| crowd.is_late(subscriber.id.into());
    let all = found.len() < crowd.limit || found.last().is_some_and(is_late);
    found.retain(|subscriber| !is_late(subscriber));
    let behind = found.last().map(|last| last.id);
    let member = |subscriber| Member { subscriber, subscriptions: None };
    let found = found.into_iter().map(member).collect();
    Ok(Members { found, behind, all })
}

// Reads a part of each topic. The members up to the first end of such a part are complete.
fn of_topics(view: &dyn View, topics: &[Topic], crowd: CrowdRange) -> Result<Members> {
    let share = (crowd.limit / topics.len().max(1)).max(AT_LEAST);
    let mut end: Option<InternalSubscriberId> = None;
    let mut by_subscriber: BTreeMap<InternalSubscriberId, Vec<Subscription>> = BTreeMap::new();
    for topic in topics {
        let range = layout::topic_subscribers_behind(topic.environment_id, topic.id, crowd.behind);
        let found: Vec<Subscription> = view.readable(&range, Order::Ascending, share)?;
        if let Some(last) = found.last().filter(|_| found.len() >= share) {
            let last = last.internal_subscriber_id;
            end = Some(end.map_or(last, |end| end.min(last)));
        }
        for subscription in found {
            by_subscriber
                .entry(subscription.internal_subscriber_id)
                .or_default()
                .push(subscription);
        }
    }
    if let Some(end) = end {
        // In a damaged table, the subscriptions of one subscriber may be more than a part.
        let is_alone = by_subscriber.keys().next() == Some(&end);
        by_subscriber.retain(|subscriber, _| *subscriber < end || is_alone && *subscriber == end);
    }
    let all = end.is_none() && by_subscriber.len() <= crowd.limit;
    let visited: Vec<_> = by_subscriber.into_iter().take(crowd.limit).collect();
    let behind = visited.last().map(|(subscriber, _)| *subscriber);
    let found = subscribed(view, visited, crowd)?;
    Ok(Members { found, behind, all })
}

// The members with a subscription that was there in time.
fn subscribed(
    view: &dyn View,
    visited: Vec<(InternalSubscriberId, Vec<Subscription>)>,
    crowd: CrowdRange,
) -> Result<Vec<Member>> {
    let environment = view.environment_id();
    let in_time = visited.into_iter().filter_map(|(subscriber, mut subscriptions)| {
        subscriptions.retain(|subscription| !crowd.is_late(subscription.id.into()));
        (!subscriptions.is_empty()).then_some((subscriber, subscriptions))
    });
    let in_time: Vec<_> = in_time.collect();
    let keys = in_time.iter().map(|(id, _)| layout::subscriber_id(environment, *id));
    let keys: Vec<_> = keys.collect();
    let mut found = Vec::with_capacity(keys.len());
    for key in &keys {
        found.push(store::if_readable(view.find::<Subscriber>(key))?.flatten());
    }
    let members = found.into_iter().zip(in_time).filter_map(|(subscriber, (_, subscriptions))| {
        Some(Member { subscriber: subscriber?, subscriptions: Some(subscriptions) })
    });
    Ok(members.collect())
}

impl CrowdRange {
    fn is_late(self, id: Uuid) -> bool {
        self.before.is_some_and(|before| id >= before)
    }
}

impl Member {
    /// Returns `true` if the event leaves the member out. A subscriber that is being deleted is left out, too:
    /// an erasure removes it from the exclusions of the event.
    pub(crate) fn is_excluded(&self, audience: &Audience<'_>) -> bool {
        self.subscriber.deleted || audience.excludes(&self.subscriber.subscriber_id)
    }

    /// Returns the member with its subscriber as the call is about to change it.
    pub(crate) fn changed(self, subscriber: Option<&Subscriber>) -> Self {
        match subscriber {
            Some(subscriber) => Self { subscriber: subscriber.clone(), ..self },
            None => self,
        }
    }

    /// Returns the topics through which the event reaches the member. Returns `None` if no
    /// subscription admits it.
    pub(crate) fn admitted(&self, event: &Event<'_>) -> Option<Vec<NotificationTopic>> {
        let Some(subscriptions) = &self.subscriptions else { return Some(Vec::new()) };
        let data = LazyCell::new(|| event.data(&self.subscriber));
        let of_topics = subscriptions.chunk_by(|one, next| one.topic_id == next.topic_id);
        let topics = of_topics.filter_map(|of_topic| {
            NotificationTopic::through(of_topic.iter().filter(|one| one.admits(event, &data)))
        });
        let topics: Vec<_> = topics.collect();
        (!topics.is_empty()).then_some(topics)
    }

    /// Returns what the subscriptions of the member say of an event that none of them admits.
    pub(crate) fn filtered(&self, event: &Event<'_>) -> FilteredMember {
        let data = LazyCell::new(|| event.data(&self.subscriber));
        let subscriptions = self.subscriptions.as_deref().unwrap_or_default();
        let id = self.subscriber.subscriber_id.clone();
        FilteredMember::new(id, subscriptions, (event, &data))
    }
}
