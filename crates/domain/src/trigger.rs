//! Triggers: the way into the engine.

mod compose;

use std::collections::HashSet;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::context::ContextPayload;
use crate::error::{Invalid, Reason, at_most_items};
use crate::ids::{
    EnvironmentId, NotificationId, SubscriberId, TopicKey, TransactionId, WorkflowIdentifier,
};
use crate::json::{Object, Shape, Shaped, shape, text_or_object};
use crate::subscriber::{Profile, SubscriberCreate};
use crate::time::Timestamp;
use crate::vocabulary::wire_enum;
use crate::workflow::Workflow;

/// An event that has happened, and its recipients.
///
/// ```
/// use serde_json::json;
/// use tidings_domain::subscriber::SubscriberCreate;
/// use tidings_domain::trigger::{Recipient, Trigger};
///
/// let trigger = Trigger::new("order-shipped", "ada")?
///     .to(Recipient::topic("orders")?.except("bob")?)?
///     .to(SubscriberCreate::new("cleo")?.email("cleo@example.org")?)?
///     .payload(json!({ "order": "A-1001" }))?
///     .transaction_id("order-A-1001")?
///     .context("tenant", "acme")?;
/// # Ok::<(), tidings_domain::error::Invalid>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Trigger {
    /// Identifier of the workflow.
    #[serde(rename = "name")]
    pub workflow: WorkflowIdentifier,
    /// Recipients: 1 to 100 subscribers and topics. Of several for the same subscriber, the last one
    /// with a profile counts.
    pub to: Recipients,
    /// Fields of the event, for templates and conditions.
    #[serde(default)]
    pub payload: Object,
    /// Settings that are different this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overrides: Option<Object>,
    /// Id of the event, made by the engine if absent. An event that is triggered again under the
    /// same id happens once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction_id: Option<TransactionId>,
    /// Contexts of the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextPayload>,
}

shape! { Trigger {
    "name": workflow, "to": to, "payload": payload, "overrides": overrides,
    "transactionId": transaction_id, "context": context,
} }

/// Recipients of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Recipients {
    /// One recipient.
    One(Recipient),
    /// Several.
    Many(Vec<Recipient>),
}

/// A recipient of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Recipient {
    /// A subscriber.
    Subscriber(SubscriberRecipient),
    /// The subscribers in a topic.
    Topic(TopicRecipient),
}

/// A subscriber as a recipient.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
#[expect(clippy::large_enum_variant, reason = "there are few, and they are written by hand")]
pub enum SubscriberRecipient {
    /// The subscriber of that id, created if absent.
    Id(SubscriberId),
    /// The subscriber of that id, created or updated with this profile.
    Inline(SubscriberCreate),
}

impl Shaped for Recipients {
    fn shape() -> Shape {
        Shape::choice(|value| match value {
            Value::Array(_) => Vec::<Recipient>::shape(),
            _ => Recipient::shape(),
        })
    }
}

impl Shaped for Recipient {
    fn shape() -> Shape {
        Shape::choice(|value| match value {
            Value::Object(topic)
                if ["type", "topicKey"].iter().any(|name| topic.contains_key(*name)) =>
            {
                TopicRecipient::shape()
            }
            Value::Object(_) => SubscriberCreate::shape(),
            _ => text_or_object::<SubscriberId>(),
        })
    }
}

/// The subscribers in a topic whose subscriptions let the event through.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TopicRecipient {
    /// Type of the recipient.
    #[serde(rename = "type")]
    pub kind: TopicRecipientType,
    /// Key of the topic.
    pub topic_key: TopicKey,
    /// Subscribers that no topic of the trigger reaches: at most 1,000.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<SubscriberId>,
}

shape! { TopicRecipient { "type": kind, "topicKey": topic_key, "exclude": exclude, } }

wire_enum! {
    /// What a recipient can be besides a subscriber.
    TopicRecipientType, "type":
    Topic = "Topic",
}

/// Result of a trigger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TriggerReceipt {
    /// Always true: a trigger that is not acknowledged is an error.
    pub acknowledged: bool,
    /// What came of it.
    pub status: TriggerStatus,
    /// Id of the event.
    pub transaction_id: TransactionId,
    /// The notifications that were created, one for each recipient.
    #[serde(default)]
    pub notifications: Vec<CreatedNotification>,
    /// Subscribers in a topic of the trigger of whom no subscription let it through.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filtered: Vec<SubscriberId>,
    /// Topics of the trigger that do not exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_topics: Vec<TopicKey>,
}

/// A trigger that was acknowledged, kept so that it happens once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AcceptedTrigger {
    /// Environment of the trigger.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// Time of the acknowledgement.
    pub created_at: Timestamp,
    /// Result of the trigger.
    #[serde(flatten)]
    pub receipt: TriggerReceipt,
}

/// A notification that a trigger created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CreatedNotification {
    /// Id of the subscriber in the host application.
    pub subscriber_id: SubscriberId,
    /// Id of the notification, made by the engine.
    #[serde(rename = "_notificationId")]
    pub notification_id: NotificationId,
}

wire_enum! {
    /// What came of a trigger.
    #[non_exhaustive]
    TriggerStatus, "status":
    Processed = "processed",
    TriggerNotActive = "trigger_not_active",
    NoActiveSteps = "no_workflow_active_steps_defined",
    NoSteps = "no_workflow_steps_defined",
}

impl Trigger {
    /// The most recipients of one trigger.
    pub const MAX_RECIPIENTS: usize = 100;
    /// The most subscribers that are left out of a topic.
    pub const MAX_EXCLUDED: usize = 1_000;
    /// The most triggers of one bulk.
    pub const MAX_BULK: usize = 100;

    /// Refuses a bulk of no triggers, and one of too many.
    pub fn check_bulk(triggers: &[Trigger]) -> Result<(), Invalid> {
        if triggers.is_empty() {
            return Err(Invalid::new("events", Reason::Empty));
        }
        at_most_items("events", triggers, Self::MAX_BULK)
    }

    /// The subscribers and the topics that it is for, each subscriber once.
    pub fn audience(&self) -> Result<Audience<'_>, Invalid> {
        let recipients = self.to.as_slice();
        if recipients.is_empty() {
            return Err(Invalid::new("to", Reason::Empty));
        }
        at_most_items("to", recipients, Self::MAX_RECIPIENTS)?;
        self.to.each(Recipient::check)?;
        let mut audience = Audience::default();
        for recipient in recipients {
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

impl Recipients {
    fn as_slice(&self) -> &[Recipient] {
        match self {
            Recipients::One(recipient) => std::slice::from_ref(recipient),
            Recipients::Many(recipients) => recipients,
        }
    }

    /// Checks every recipient. What is refused is named with the way to it.
    pub(crate) fn each(
        &self,
        check: impl Fn(&Recipient) -> Result<(), Invalid>,
    ) -> Result<(), Invalid> {
        match self {
            Recipients::One(recipient) => check(recipient).map_err(|bad| bad.within("to")),
            Recipients::Many(recipients) => {
                recipients.iter().enumerate().try_for_each(|(index, recipient)| {
                    check(recipient).map_err(|bad| bad.within(format!("to[{index}]")))
                })
            }
        }
    }
}

impl Recipient {
    fn check(&self) -> Result<(), Invalid> {
        match self {
            Recipient::Subscriber(SubscriberRecipient::Id(_)) => Ok(()),
            Recipient::Subscriber(SubscriberRecipient::Inline(create)) => create.profile.check(),
            Recipient::Topic(topic) => {
                at_most_items("exclude", &topic.exclude, Trigger::MAX_EXCLUDED)
            }
        }
    }
}

/// Whom a trigger is for.
#[derive(Clone, Debug, Default)]
pub struct Audience<'t> {
    /// Those who are named themselves, each once.
    pub subscribers: Vec<&'t SubscriberRecipient>,
    /// The topics.
    pub topics: Vec<&'t TopicRecipient>,
    // Who is not told through a topic.
    passed_over: HashSet<&'t SubscriberId>,
}

impl<'t> Audience<'t> {
    // Of several for one subscriber the last that says something about it counts.
    fn add(&mut self, recipient: &'t SubscriberRecipient) {
        let id = recipient.subscriber_id();
        self.passed_over.insert(id);
        let known = self.subscribers.iter_mut().find(|known| known.subscriber_id() == id);
        match (known, recipient) {
            (None, _) => self.subscribers.push(recipient),
            (Some(known), SubscriberRecipient::Inline(_)) => *known = recipient,
            (Some(_), SubscriberRecipient::Id(_)) => {}
        }
    }

    /// What the topics are called, each once.
    pub fn topic_keys(&self) -> impl Iterator<Item = &'t TopicKey> {
        let mut known = HashSet::new();
        self.topics.iter().map(|topic| &topic.topic_key).filter(move |key| known.insert(*key))
    }

    /// Whether a subscriber in one of the topics is not told through any of them: who is named
    /// otherwise is told anyway.
    pub fn excludes(&self, subscriber: &SubscriberId) -> bool {
        self.passed_over.contains(subscriber)
    }
}

impl TriggerReceipt {
    /// What comes of a trigger of `workflow`, before it has any notification.
    pub fn of(workflow: &Workflow, transaction_id: TransactionId) -> Self {
        let status = TriggerStatus::of(workflow);
        Self {
            acknowledged: true,
            status,
            transaction_id,
            notifications: Vec::new(),
            filtered: Vec::new(),
            missing_topics: Vec::new(),
        }
    }
}

impl CreatedNotification {
    /// Returns the notification of that id for a subscriber.
    pub fn new(subscriber_id: SubscriberId, notification_id: NotificationId) -> Self {
        Self { subscriber_id, notification_id }
    }
}

impl TriggerStatus {
    /// What comes of a trigger of `workflow`.
    pub fn of(workflow: &Workflow) -> Self {
        if !workflow.active {
            TriggerStatus::TriggerNotActive
        } else if workflow.steps.is_empty() {
            TriggerStatus::NoSteps
        } else if workflow.active_steps().next().is_none() {
            TriggerStatus::NoActiveSteps
        } else {
            TriggerStatus::Processed
        }
    }
}

impl SubscriberRecipient {
    /// What the host application calls the subscriber.
    pub const fn subscriber_id(&self) -> &SubscriberId {
        match self {
            SubscriberRecipient::Id(id) => id,
            SubscriberRecipient::Inline(subscriber) => &subscriber.subscriber_id,
        }
    }

    /// How the trigger named it. The secrets of its channels are left out, and so is custom data
    /// that is nested as deep as it may be, for here it lies one level deeper.
    pub fn as_object(&self) -> Object {
        let mut create = self.to_create();
        create.profile.channels.clear();
        let whole = serde_json::to_value(&create).unwrap_or_default();
        Object::try_from(whole).unwrap_or_else(|_| {
            create.profile.data = None;
            Object::of(create)
        })
    }

    /// What the subscriber is created with if need be.
    pub fn to_create(&self) -> SubscriberCreate {
        match self {
            SubscriberRecipient::Id(id) => {
                SubscriberCreate { subscriber_id: id.clone(), profile: Profile::default() }
            }
            SubscriberRecipient::Inline(subscriber) => subscriber.clone(),
        }
    }
}

// What serde derives for untagged enums does not say what is wrong with a recipient.
impl<'de> Deserialize<'de> for Recipients {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Value::deserialize(from)? {
            Value::Array(recipients) => recipients
                .into_iter()
                .map(Recipient::deserialize)
                .collect::<Result<_, _>>()
                .map(Recipients::Many),
            recipient => Recipient::deserialize(recipient).map(Recipients::One),
        }
        .map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Recipient {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Value::deserialize(from)? {
            Value::String(id) => SubscriberId::new(id).map(Self::from).map_err(D::Error::custom),
            topic if topic.get("type").is_some() => {
                TopicRecipient::deserialize(topic).map(Recipient::Topic).map_err(D::Error::custom)
            }
            subscriber => {
                SubscriberCreate::deserialize(subscriber).map(Self::from).map_err(D::Error::custom)
            }
        }
    }
}

#[cfg(test)]
mod tests;
