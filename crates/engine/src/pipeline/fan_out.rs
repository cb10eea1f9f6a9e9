//! Who is told through the topics of a trigger.

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

/// Who is told through the topics of a trigger, each once, and who is not.
#[derive(Debug, Default)]
pub(crate) struct FanOut {
    /// Who is told, and through which topics.
    pub(crate) told: Vec<(Subscriber, Vec<NotificationTopic>)>,
    /// Who is in a topic, and has no subscription that lets the event through.
    pub(crate) filtered: Vec<SubscriberId>,
    /// The topics that are not there.
    pub(crate) missing: Vec<TopicKey>,
    places: HashMap<InternalSubscriberId, usize>,
}

impl FanOut {
    /// Who is told of `event`, in the order of its topics, and within a topic in that in which the
    /// subscribers were created.
    pub(crate) fn of(view: &dyn View, event: &Event<'_>, audience: &Audience<'_>) -> Result<Self> {
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
                let subscriber = subscribers::get(view, &first.subscriber_id)?;
                fan_out.add(event, subscriber, of_one);
            }
        }
        fan_out.settle();
        Ok(fan_out)
    }

    // A subscriber who is in a topic with these subscriptions.
    fn add(&mut self, event: &Event<'_>, subscriber: Subscriber, subscriptions: &[Subscription]) {
        let data = LazyCell::new(|| event.data(&subscriber));
        let admitted = subscriptions.iter().filter(|one| one.admits(event, &data));
        let Some(topic) = NotificationTopic::through(admitted) else {
            self.filtered.push(subscriber.subscriber_id);
            return;
        };
        let place = *self.places.entry(subscriber.id).or_insert(self.told.len());
        match self.told.get_mut(place) {
            Some((_, topics)) => topics.push(topic),
            None => self.told.push((subscriber, vec![topic])),
        }
    }

    // Who is told through one topic was not filtered by another.
    fn settle(&mut self) {
        let told = self.told.iter().map(|(subscriber, _)| subscriber.subscriber_id.clone());
        let mut known: HashSet<SubscriberId> = told.collect();
        self.filtered.retain(|id| known.insert(id.clone()));
    }
}
