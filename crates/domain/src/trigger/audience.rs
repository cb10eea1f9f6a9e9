//! Audiences: the recipients of a trigger, each subscriber once.

use std::cell::Cell;

use foldhash::{HashSet, HashSetExt};

use super::{Recipient, SubscriberRecipient, TopicRecipient, Trigger};
use crate::error::{Invalid, Reason, at_most_items};
use crate::ids::{SubscriberId, TopicKey};

/// Recipients of a trigger.
#[doc(hidden)]
#[derive(Clone, Debug, Default)]
pub struct Audience<'t> {
    /// Subscribers that the trigger names, each once.
    pub subscribers: Vec<&'t SubscriberRecipient>,
    /// Topics.
    pub topics: Vec<&'t TopicRecipient>,
    // Subscribers that no topic reaches.
    passed_over: HashSet<&'t SubscriberId>,
}

impl<'t> Audience<'t> {
    // The last recipient with a profile counts among several for one subscriber.
    fn add(&mut self, recipient: &'t SubscriberRecipient) {
        let id = recipient.subscriber_id();
        let is_new = self.passed_over.insert(id);
        let mut subscribers = self.subscribers.iter_mut();
        let known =
            if is_new { None } else { subscribers.find(|known| known.subscriber_id() == id) };
        match (known, recipient) {
            (None, _) => self.subscribers.push(recipient),
            (Some(known), SubscriberRecipient::Inline(_)) => *known = recipient,
            (Some(_), SubscriberRecipient::Id(_)) => {}
        }
    }

    /// Returns the keys of the topics, each once.
    pub fn topic_keys(&self) -> impl Iterator<Item = &'t TopicKey> {
        let mut known = HashSet::new();
        self.topics.iter().map(|topic| &topic.topic_key).filter(move |key| known.insert(*key))
    }

    /// Returns `true` if the topics do not reach the subscriber. A subscriber that the trigger
    /// names gets the event anyway.
    pub fn excludes(&self, subscriber: &SubscriberId) -> bool {
        self.passed_over.contains(subscriber)
    }
}

impl Trigger {
    /// Returns the subscribers and topics of the trigger, each subscriber once.
    #[doc(hidden)]
    pub fn audience(&self) -> Result<Audience<'_>, Invalid> {
        let recipients = self.to.as_slice();
        if recipients.is_empty() {
            return Err(Invalid::new("to", Reason::Empty));
        }
        at_most_items("to", recipients, Self::MAX_RECIPIENTS)?;
        self.to.each(Recipient::check)?;
        self.check_excluded()?;
        self.accepted_audience()
    }

    fn check_excluded(&self) -> Result<(), Invalid> {
        let all = Cell::new(0);
        self.to.each(|recipient| {
            if let Recipient::Topic(topic) = recipient {
                all.set(all.get() + topic.exclude.len());
            }
            if all.get() > Self::MAX_EXCLUDED {
                return Err(Invalid::new("exclude", Reason::TooMany { max: Self::MAX_EXCLUDED }));
            }
            Ok(())
        })
    }

    /// Returns the subscribers and topics of a trigger without a check of limits: it was accepted, maybe under
    /// others, or is that of a broadcast and names none. Topics do not reach the actor.
    #[doc(hidden)]
    pub fn accepted_audience(&self) -> Result<Audience<'_>, Invalid> {
        let mut audience = Audience::default();
        audience.passed_over.reserve(self.to.as_slice().len());
        if let Some(actor) = &self.actor {
            actor.check().map_err(|bad| bad.within("actor"))?;
            audience.passed_over.insert(actor.subscriber_id());
        }
        for recipient in self.to.as_slice() {
            match recipient {
                Recipient::Subscriber(subscriber) => audience.add(subscriber),
                Recipient::Topic(topic) => {
                    audience.topics.push(topic);
                    audience.passed_over.extend(&topic.exclude);
                }
            }
        }
        Ok(audience)
    }
}
