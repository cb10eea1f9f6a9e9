//! Recipients that a trigger reaches through its topics.

use std::cell::LazyCell;
use std::collections::{HashMap, HashSet};

use domain::event::Event;
use domain::ids::{InternalSubscriberId, SubscriberId, TopicKey};
use domain::notification::NotificationTopic;
use domain::subscriber::Subscriber;
use domain::subscription::Subscription;
use domain::trigger::Audience;
use store::{ReadRecords, layout};

use crate::Result;
use crate::resources::{subscribers, topics};
use crate::tx::View;

/// Recipients that a trigger reaches through its topics, each once.
#[derive(Debug, Default)]
pub(crate) struct FanOut {
    /// Recipients, each with the topics that reach it.
    pub(crate) recipients: Vec<(Subscriber, Vec<NotificationTopic>)>,
    /// Subscribers in a topic without a subscription that admits the event.
    pub(crate) filtered: Vec<SubscriberId>,
    /// Topics that do not exist.
    pub(crate) missing: Vec<TopicKey>,
    places: HashMap<InternalSubscriberId, usize>,
}

impl FanOut {
    /// Returns the recipients of `event`, in the order of its topics. Within a topic, the oldest
    /// subscriber comes first.
    /// `changed` has the subscribers that the call is about to change.
    pub(crate) fn of(
        view: &dyn View,
        event: &Event<'_>,
        audience: &Audience<'_>,
        changed: &HashMap<SubscriberId, Subscriber>,
    ) -> Result<Self> {
        let mut fan_out = Self::default();
        for key in audience.topic_keys() {
            let Some(topic) = topics::find(view, key)? else {
                fan_out.missing.push(key.clone());
                continue;
            };
            let all = view.all(&layout::topic_subscribers(topic.environment_id, topic.id))?;
            for of_one in all.chunk_by(Subscription::is_of_same_subscriber) {
                let Some(first) = of_one.first() else { continue };
                if audience.excludes(&first.subscriber_id) {
                    continue;
                }
                let subscriber = match changed.get(&first.subscriber_id) {
                    Some(subscriber) => subscriber.clone(),
                    None => subscribers::get(view, &first.subscriber_id)?,
                };
                fan_out.add(event, subscriber, of_one);
            }
        }
        fan_out.settle();
        Ok(fan_out)
    }

    // Adds a subscriber with these subscriptions of a topic.
    fn add(&mut self, event: &Event<'_>, subscriber: Subscriber, subscriptions: &[Subscription]) {
        let data = LazyCell::new(|| event.data(&subscriber));
        let admitted = subscriptions.iter().filter(|one| one.admits(event, &data));
        let Some(topic) = NotificationTopic::through(admitted) else {
            self.filtered.push(subscriber.subscriber_id);
            return;
        };
        let place = *self.places.entry(subscriber.id).or_insert(self.recipients.len());
        match self.recipients.get_mut(place) {
            Some((_, topics)) => topics.push(topic),
            None => self.recipients.push((subscriber, vec![topic])),
        }
    }

    // A recipient of one topic does not count as filtered by another.
    fn settle(&mut self) {
        let recipients =
            self.recipients.iter().map(|(subscriber, _)| subscriber.subscriber_id.clone());
        let mut known: HashSet<SubscriberId> = recipients.collect();
        self.filtered.retain(|id| known.insert(id.clone()));
    }
}
