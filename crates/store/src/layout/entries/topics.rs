//! Topics, subscriptions and contexts.

use domain::context::Context;
use domain::folded::fold;
use domain::subscription::Subscription;
use domain::topic::Topic;

use super::places;
use crate::key::{Key, SortedPlace};
use crate::layout::{
    CONTEXT_LISTS, CountedList, SUBSCRIBER_SUBSCRIPTIONS, TOPIC_LISTS, TOPIC_SUBSCRIBERS, context,
    subscription, subscription_id, topic,
};
use crate::record::{CountedPlace, Entries, Record};

impl Record for Topic {
    fn key(&self) -> Key<Self> {
        topic(self.environment_id, &self.key)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        let (key, name) = (fold(self.key.as_str()), fold(self.name.as_deref().unwrap_or_default()));
        let by_times = places(self.id, self.created_at, self.updated_at);
        for place in by_times.into_iter().chain([SortedPlace::Key(self.key.as_str())]) {
            let list = TOPIC_LISTS.within(self.environment_id).then(place);
            entries.add(list.then(&key).then(&name).end());
        }
    }

    fn counted_place(&self) -> Option<CountedPlace> {
        Some((CountedList::Topics(self.environment_id), self.id.into()))
    }
}

impl Record for Subscription {
    fn key(&self) -> Key<Self> {
        subscription(self.environment_id, self.topic_id, &self.identifier)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        let (environment, topic) = (self.environment_id, self.topic_id);
        let subscriber = self.internal_subscriber_id;
        entries.add(subscription_id(environment, topic, self.id));
        let by_topic = TOPIC_SUBSCRIBERS.within(environment).then(topic);
        entries.add(by_topic.then(subscriber).then(self.id).end());
        let by_subscriber = SUBSCRIBER_SUBSCRIPTIONS.within(environment).then(subscriber);
        entries.add(by_subscriber.then(topic).then(self.id).end());
    }

    fn counted_place(&self) -> Option<CountedPlace> {
        let list = CountedList::Subscriptions(self.environment_id, self.topic_id);
        Some((list, self.id.into()))
    }
}

impl Record for Context {
    fn key(&self) -> Key<Self> {
        context(self.environment_id, &self.key)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        for kind in [None, Some(self.key.kind())] {
            let lists = CONTEXT_LISTS.within(self.environment_id).then(kind);
            for place in places(self.id, self.created_at, self.updated_at) {
                entries.add(lists.clone().then(place).end());
            }
        }
    }

    fn counted_place(&self) -> Option<CountedPlace> {
        Some((CountedList::Contexts(self.environment_id), self.id.into()))
    }
}
