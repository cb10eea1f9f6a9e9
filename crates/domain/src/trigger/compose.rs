//! Constructors and setters of triggers.

use super::{
    Recipient, Recipients, SubscriberRecipient, TopicRecipient, TopicRecipientType, Trigger,
};
use crate::convert::IntoChecked;
use crate::error::Invalid;
use crate::ids::{SubscriberId, TopicKey, WorkflowIdentifier};
use crate::json::Object;
use crate::setters::setters;
use crate::subscriber::SubscriberCreate;

impl Trigger {
    /// Returns a trigger of `workflow` for one recipient: the id of a subscriber, a
    /// [`SubscriberCreate`] or a [`TopicRecipient`].
    pub fn new(
        workflow: impl IntoChecked<WorkflowIdentifier>,
        to: impl IntoChecked<Recipient>,
    ) -> Result<Self, Invalid> {
        Ok(Self {
            workflow: workflow.into_checked().map_err(|invalid| invalid.named("name"))?,
            to: Recipients::One(to.into_checked().map_err(|invalid| invalid.named("to"))?),
            payload: Object::default(),
            overrides: None,
            transaction_id: None,
            expires_at: None,
            actor: None,
            context: None,
        })
    }

    /// Adds a recipient: at most 100.
    pub fn to(mut self, recipient: impl IntoChecked<Recipient>) -> Result<Self, Invalid> {
        let mut recipients = match self.to {
            Recipients::One(first) => vec![first],
            Recipients::Many(recipients) => recipients,
        };
        let place = || format!("to[{}]", recipients.len());
        let recipient = recipient.into_checked().map_err(|invalid| invalid.named(place()))?;
        recipients.push(recipient);
        self.to = Recipients::Many(recipients);
        Ok(self)
    }
}

/// Declares the setters of what triggers and broadcasts have in common.
macro_rules! event_setters {
    ($type:ident) => {
        $crate::setters::context_setter!($type);

        $crate::setters::setters! { $type:
            /// Sets the fields of the event, for templates and conditions.
            payload: checked($crate::json::Object, "payload");
            /// Sets the fields of the event to those of `value`, a type of the host application that
            /// serializes as an object.
            ///
            /// ```
            /// # extern crate tidings_domain as tidings;
            /// use serde::Serialize;
            /// use tidings::trigger::Trigger;
            ///
            /// #[derive(Serialize)]
            /// struct Shipped { order: u32 }
            ///
            /// let trigger = Trigger::new("order-shipped", "ada")?.payload_of(&Shipped { order: 7 })?;
            /// assert_eq!(trigger.payload["order"], 7);
            /// # Ok::<(), tidings::error::Invalid>(())
            /// ```
            payload_of @ payload: serialized("payload");
            /// Sets settings that override those of the workflow for this event.
            overrides: checked($crate::json::Object, "overrides");
            /// Sets the id of the event. An event that is triggered again under the same id happens once.
            transaction_id: checked($crate::ids::TransactionId, "transactionId");
            /// Sets the time from which on nothing is sent any more. A time that has passed is accepted:
            /// the event has its notifications, and their steps are skipped.
            expires_at: exact($crate::time::Timestamp);
            /// Sets the subscriber who has caused the event, by id or with a profile.
            actor: checked($crate::trigger::SubscriberRecipient, "actor");
        }
    };
}
pub(super) use event_setters;

event_setters!(Trigger);

impl Recipient {
    /// Returns the subscriber with this id.
    pub fn subscriber(id: impl IntoChecked<SubscriberId>) -> Result<Self, Invalid> {
        id.into_checked().map(Self::from)
    }

    /// Returns the subscribers in a topic. [`TopicRecipient`] leaves some of them out. A topic that does
    /// not exist has none, and is no error: [`TriggerReceipt::missing_topics`] names it.
    ///
    /// [`TriggerReceipt::missing_topics`]: crate::trigger::TriggerReceipt::missing_topics
    pub fn topic(key: impl IntoChecked<TopicKey>) -> Result<Self, Invalid> {
        key.into_checked().map(Self::from)
    }
}

impl TopicRecipient {
    /// Returns the subscribers in a topic.
    pub fn new(topic_key: impl IntoChecked<TopicKey>) -> Result<Self, Invalid> {
        let kind = TopicRecipientType::Topic;
        Ok(Self { kind, topic_key: topic_key.into_checked()?, exclude: Vec::new() })
    }

    /// Leaves a subscriber out: at most 1,000. One who is not in the topic, or does not exist, has no
    /// effect.
    pub fn exclude(mut self, subscriber: impl IntoChecked<SubscriberId>) -> Result<Self, Invalid> {
        let place = format!("exclude[{}]", self.exclude.len());
        self.exclude.push(subscriber.into_checked().map_err(|invalid| invalid.named(place))?);
        Ok(self)
    }
}

setters! { TopicRecipient:
    /// Sets the subscribers to leave out: at most 1,000.
    excludes @ exclude: each_checked(SubscriberId, "exclude");
}

impl From<SubscriberId> for Recipient {
    fn from(id: SubscriberId) -> Self {
        Recipient::Subscriber(SubscriberRecipient::Id(id))
    }
}

impl From<&SubscriberId> for Recipient {
    fn from(id: &SubscriberId) -> Self {
        id.clone().into()
    }
}

impl From<SubscriberCreate> for Recipient {
    fn from(subscriber: SubscriberCreate) -> Self {
        Recipient::Subscriber(SubscriberRecipient::Inline(subscriber))
    }
}

impl From<TopicRecipient> for Recipient {
    fn from(topic: TopicRecipient) -> Self {
        Recipient::Topic(topic)
    }
}

impl From<TopicKey> for Recipient {
    fn from(topic_key: TopicKey) -> Self {
        let kind = TopicRecipientType::Topic;
        Recipient::Topic(TopicRecipient { kind, topic_key, exclude: Vec::new() })
    }
}

impl From<SubscriberId> for SubscriberRecipient {
    fn from(id: SubscriberId) -> Self {
        SubscriberRecipient::Id(id)
    }
}

impl From<SubscriberCreate> for SubscriberRecipient {
    fn from(subscriber: SubscriberCreate) -> Self {
        SubscriberRecipient::Inline(subscriber)
    }
}

impl TryFrom<&str> for SubscriberRecipient {
    type Error = Invalid;

    fn try_from(id: &str) -> Result<Self, Invalid> {
        SubscriberId::new(id).map(Self::from)
    }
}

impl TryFrom<&str> for Recipient {
    type Error = Invalid;

    fn try_from(id: &str) -> Result<Self, Invalid> {
        Self::subscriber(id)
    }
}

impl TryFrom<String> for Recipient {
    type Error = Invalid;

    fn try_from(id: String) -> Result<Self, Invalid> {
        Self::subscriber(id)
    }
}

impl TryFrom<&String> for Recipient {
    type Error = Invalid;

    fn try_from(id: &String) -> Result<Self, Invalid> {
        Self::subscriber(id)
    }
}

impl From<Vec<Recipient>> for Recipients {
    fn from(recipients: Vec<Recipient>) -> Self {
        Recipients::Many(recipients)
    }
}
