//! Triggers: events of the host application, and their recipients.

mod broadcast;
mod cancel;
mod compose;
mod fan_out;
pub(crate) mod overrides;

use std::collections::HashSet;
use std::ops::Range;

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
use crate::vocabulary::{Severity, wire_enum};
use crate::workflow::Workflow;

pub use broadcast::Broadcast;
pub use cancel::{CanceledTrigger, Cancellation};
pub use fan_out::{Crowd, FanOut, FanOutState, Progress, ProgressStatus, Visited};

/// Event of the host application, with its recipients.
///
/// ```
/// # extern crate tidings_domain as tidings;
/// use serde_json::json;
/// use tidings::subscriber::SubscriberCreate;
/// use tidings::trigger::{Recipient, Trigger};
///
/// let trigger = Trigger::new("order-shipped", "ada")?
///     .to(Recipient::topic("orders")?.except("bob")?)?
///     .to(SubscriberCreate::new("cleo")?.email("cleo@example.org")?)?
///     .payload(json!({ "order": "A-1001" }))?
///     .transaction_id("order-A-1001")?
///     .context("tenant", "acme")?;
/// # Ok::<(), tidings::error::Invalid>(())
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
    /// Settings that override those of the workflow for this event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overrides: Option<Object>,
    /// Id of the event, made by the engine if absent. An event that is triggered again under the
    /// same id happens once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction_id: Option<TransactionId>,
    /// Time from which on nothing is sent any more: jobs that have not begun by then are skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Subscriber who has caused the event, created or updated as a recipient is. Topics do not
    /// reach this subscriber. Templates and conditions of steps know it as `actor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<SubscriberRecipient>,
    /// Contexts of the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextPayload>,
}

shape! { Trigger {
    "name": workflow, "to": to, "payload": payload, "overrides": overrides,
    "transactionId": transaction_id, "expiresAt": expires_at, "actor": actor, "context": context,
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

/// Recipient of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Recipient {
    /// Subscriber.
    Subscriber(SubscriberRecipient),
    /// Subscribers in a topic.
    Topic(TopicRecipient),
}

/// Subscriber as a recipient.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum SubscriberRecipient {
    /// Subscriber with this id, created if absent.
    Id(SubscriberId),
    /// Subscriber with this id, created or updated with this profile.
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

impl Shaped for SubscriberRecipient {
    fn shape() -> Shape {
        Shape::choice(|value| match value {
            Value::Object(_) => SubscriberCreate::shape(),
            _ => text_or_object::<SubscriberId>(),
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

/// Subscribers in a topic whose subscriptions admit the event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TopicRecipient {
    /// Type of the recipient.
    #[serde(rename = "type")]
    pub kind: TopicRecipientType,
    /// Key of the topic.
    pub topic_key: TopicKey,
    /// Subscribers to leave out of the topics of the trigger: at most 1,000.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<SubscriberId>,
}

shape! { TopicRecipient { "type": kind, "topicKey": topic_key, "exclude": exclude, } }

wire_enum! {
    /// Type of a recipient other than a subscriber.
    TopicRecipientType, "type":
    Topic = "Topic",
}

/// Result of a trigger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TriggerReceipt {
    /// Always `true`: a trigger that is not acknowledged is an error.
    pub acknowledged: bool,
    /// Status.
    pub status: TriggerStatus,
    /// Id of the event.
    pub transaction_id: TransactionId,
    /// Notifications of the subscribers that the trigger names: at most 100. The activity list has
    /// the others: see [`NotificationQuery::of_transaction`].
    ///
    /// [`NotificationQuery::of_transaction`]: crate::notification::NotificationQuery::of_transaction
    #[serde(default)]
    pub notifications: Vec<CreatedNotification>,
    /// `true` if tasks tell the other recipients, because there are more than 100. The progress is
    /// that of the event.
    #[serde(default, skip_serializing_if = "is_false")]
    pub continues: bool,
    /// Numbers of subscribers in its topics, without those that the trigger names. They are zero if
    /// tasks tell these subscribers.
    #[serde(default, skip_serializing_if = "TopicCounts::is_zero")]
    pub topics: TopicCounts,
    /// Topics of the trigger that do not exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_topics: Vec<TopicKey>,
}

/// Numbers of subscribers in the topics of a trigger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct TopicCounts {
    /// Subscribers with a notification, each counted once.
    pub created: usize,
    /// Subscribers without a subscription that admits the event.
    pub filtered: usize,
}

/// Acknowledged trigger, stored so that a repetition creates nothing.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AcceptedTrigger {
    /// Environment of the trigger.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// Time of the acknowledgement.
    pub created_at: Timestamp,
    /// Ordinals of its notifications, one behind the other. The index of the activity list sets
    /// them.
    pub ordinals: Range<u64>,
    /// Result of the trigger.
    #[serde(flatten)]
    pub receipt: TriggerReceipt,
}

/// Whom the receipt of a trigger names: some of its fields.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TriggerRecipients {
    /// Ordinals of its notifications, one behind the other.
    pub ordinals: Range<u64>,
    /// Id of the event.
    pub transaction_id: TransactionId,
    #[serde(default)]
    notifications: Vec<NamedSubscriber>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NamedSubscriber {
    subscriber_id: SubscriberId,
}

/// Notification of a trigger.
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
    /// Status of a trigger.
    #[non_exhaustive]
    TriggerStatus, "status":
    Processed = "processed",
    TriggerNotActive = "trigger_not_active",
    NoActiveSteps = "no_workflow_active_steps_defined",
    NoSteps = "no_workflow_steps_defined",
}

impl TriggerReceipt {
    /// Returns `true` if the event has happened. Otherwise its workflow is inactive or has no active steps.
    #[must_use]
    pub fn is_processed(&self) -> bool {
        self.status == TriggerStatus::Processed
    }
}

impl TriggerRecipients {
    /// Returns `true` if a notification is that of this subscriber.
    pub fn has(&self, id: &SubscriberId) -> bool {
        self.notifications.iter().any(|created| created.subscriber_id == *id)
    }
}

impl Trigger {
    /// Returns the severity in the overrides, or that of the workflow.
    pub(crate) fn severity(&self, workflow: &Workflow) -> Severity {
        let overrides = self.overrides.as_ref();
        let severity = overrides.and_then(|overrides| overrides.get("severity")?.as_str());
        severity.and_then(|severity| severity.parse().ok()).unwrap_or(workflow.severity)
    }

    /// Maximum number of recipients of a trigger.
    pub const MAX_RECIPIENTS: usize = 100;
    /// Maximum number of subscribers in the topics of a trigger that are told at once. Tasks tell
    /// those of larger topics.
    pub const MAX_AT_ONCE: usize = 100;
    /// Maximum number of excluded subscribers of a topic.
    pub const MAX_EXCLUDED: usize = 1_000;
    /// Maximum number of triggers in a bulk.
    pub const MAX_BULK: usize = 100;

    /// Returns the size of the payload and the overrides, in bytes.
    #[doc(hidden)]
    pub fn size(&self) -> usize {
        self.payload.size() + self.overrides.as_ref().map_or(0, Object::size)
    }

    /// Refuses a bulk without triggers, or with more than 100.
    #[doc(hidden)]
    pub fn check_bulk(triggers: &[Trigger]) -> Result<(), Invalid> {
        if triggers.is_empty() {
            return Err(Invalid::new("events", Reason::Empty));
        }
        at_most_items("events", triggers, Self::MAX_BULK)
    }

    /// Returns the subscribers and topics of the trigger, each subscriber once.
    #[doc(hidden)]
    pub fn audience(&self) -> Result<Audience<'_>, Invalid> {
        let recipients = self.to.as_slice();
        if recipients.is_empty() {
            return Err(Invalid::new("to", Reason::Empty));
        }
        at_most_items("to", recipients, Self::MAX_RECIPIENTS)?;
        self.to.each(Recipient::check)?;
        let mut audience = self.nobody()?;
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

    /// Returns the audience of a broadcast, which names nobody. The actor is left out.
    #[doc(hidden)]
    pub fn nobody(&self) -> Result<Audience<'_>, Invalid> {
        let mut audience = Audience::default();
        if let Some(actor) = &self.actor {
            actor.check().map_err(|bad| bad.within("actor"))?;
            audience.passed_over.insert(actor.subscriber_id());
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

    /// Checks every recipient. A refusal names the path of the field.
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
            Recipient::Subscriber(subscriber) => subscriber.check(),
            Recipient::Topic(topic) => {
                at_most_items("exclude", &topic.exclude, Trigger::MAX_EXCLUDED)
            }
        }
    }
}

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

impl AcceptedTrigger {
    /// Returns an acknowledged trigger, without notifications.
    pub fn new(
        environment_id: EnvironmentId,
        created_at: Timestamp,
        receipt: TriggerReceipt,
    ) -> Self {
        Self { environment_id, created_at, ordinals: 0..0, receipt }
    }

    /// Returns an acknowledged trigger whose receipt is empty.
    pub fn bare(
        environment_id: EnvironmentId,
        created_at: Timestamp,
        transaction_id: TransactionId,
    ) -> Self {
        let receipt = TriggerReceipt::empty(TriggerStatus::Processed, transaction_id);
        Self::new(environment_id, created_at, receipt)
    }
}

impl TriggerReceipt {
    /// Returns the receipt of a trigger of `workflow`, without notifications.
    #[doc(hidden)]
    pub fn of(workflow: &Workflow, transaction_id: TransactionId) -> Self {
        Self::empty(TriggerStatus::of(workflow), transaction_id)
    }

    fn empty(status: TriggerStatus, transaction_id: TransactionId) -> Self {
        Self {
            acknowledged: true,
            status,
            transaction_id,
            notifications: Vec::new(),
            continues: false,
            topics: TopicCounts::default(),
            missing_topics: Vec::new(),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl TopicCounts {
    /// Returns the numbers of subscribers with and without a notification.
    pub fn new(created: usize, filtered: usize) -> Self {
        Self { created, filtered }
    }

    fn is_zero(&self) -> bool {
        *self == Self::default()
    }
}

impl CreatedNotification {
    /// Returns the notification with this id for a subscriber.
    #[doc(hidden)]
    pub fn new(subscriber_id: SubscriberId, notification_id: NotificationId) -> Self {
        Self { subscriber_id, notification_id }
    }
}

impl TriggerStatus {
    /// Returns the status of a trigger of `workflow`.
    #[doc(hidden)]
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
    fn check(&self) -> Result<(), Invalid> {
        match self {
            SubscriberRecipient::Id(_) => Ok(()),
            SubscriberRecipient::Inline(create) => create.profile.check(),
        }
    }

    /// Returns the id of the subscriber in the host application.
    pub const fn subscriber_id(&self) -> &SubscriberId {
        match self {
            SubscriberRecipient::Id(id) => id,
            SubscriberRecipient::Inline(subscriber) => &subscriber.subscriber_id,
        }
    }

    /// Returns the recipient as in the trigger, without secrets of its channels. Custom data with
    /// the maximum depth is left out too, since it would be one level deeper here.
    #[doc(hidden)]
    pub fn as_object(&self) -> Object {
        let mut create = self.to_create();
        create.profile.channels.clear();
        let whole = serde_json::to_value(&create).unwrap_or_default();
        Object::try_from(whole).unwrap_or_else(|_| {
            create.profile.data = None;
            Object::of(create)
        })
    }

    /// Returns the subscriber to create if it does not exist.
    #[doc(hidden)]
    pub fn to_create(&self) -> SubscriberCreate {
        match self {
            SubscriberRecipient::Id(id) => {
                SubscriberCreate { subscriber_id: id.clone(), profile: Profile::default() }
            }
            SubscriberRecipient::Inline(subscriber) => subscriber.clone(),
        }
    }
}

// The derived error of an untagged enum does not name the fault.
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

impl<'de> Deserialize<'de> for SubscriberRecipient {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Value::deserialize(from)? {
            Value::String(id) => SubscriberId::new(id).map(Self::from).map_err(D::Error::custom),
            subscriber => {
                SubscriberCreate::deserialize(subscriber).map(Self::from).map_err(D::Error::custom)
            }
        }
    }
}

#[cfg(test)]
mod tests;
