//! Subscriptions: who is reached through a topic, for which contexts, and by which workflows.

mod compose;
mod request;
mod wire;

use std::ops::Deref;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::condition::Rule;
use crate::context::ContextSet;
use crate::environment::Home;
use crate::error::Invalid;
use crate::event::Event;
use crate::ids::{
    EnvironmentId, InternalSubscriberId, OrganizationId, SubscriberId, SubscriptionId,
    SubscriptionIdentifier, TopicId, TopicKey, WorkflowId,
};
use crate::patch::Patch;
use crate::preference::WorkflowInfo;
use crate::subscriber::Subscriber;
use crate::time::{Dated, Timestamp, dated};
use crate::topic::Topic;

pub use request::{
    Subscribe, SubscribeItem, SubscriptionError, SubscriptionErrorCode, SubscriptionMeta,
    SubscriptionQuery, SubscriptionUpdate, Subscriptions, Unsubscribe, UnsubscribeItem,
    WorkflowChoice, WorkflowFilter, WorkflowVerdict, WorkflowWord,
};

/// A subscriber in a topic. The same subscriber may be in it several times, for other contexts or
/// with other rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Subscription {
    /// What the engine calls it.
    pub id: SubscriptionId,
    /// The organization it belongs to.
    #[serde(rename = "_organizationId")]
    pub organization_id: OrganizationId,
    /// The environment it belongs to.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// The topic.
    #[serde(rename = "_topicId")]
    pub topic_id: TopicId,
    /// What the host application calls the topic.
    pub topic_key: TopicKey,
    /// The subscriber.
    #[serde(rename = "_subscriberId")]
    pub internal_subscriber_id: InternalSubscriberId,
    /// What the host application calls the subscriber.
    pub subscriber_id: SubscriberId,
    /// The name that its topic knows it by.
    pub identifier: SubscriptionIdentifier,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it says about single workflows. About others it says yes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preferences: Vec<SubscriptionPreference>,
    /// The contexts that it is for: exactly these, and no others.
    pub context_keys: ContextSet,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// What a subscription says about a workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SubscriptionPreference {
    /// The subscription.
    pub subscription_id: SubscriptionIdentifier,
    /// The workflow.
    #[serde(rename = "_workflowId")]
    pub workflow_id: WorkflowId,
    /// The workflow; filled in when it is read, as long as the workflow exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowInfo>,
    /// Whether its notifications are let through. A condition has the last word.
    pub enabled: bool,
    /// The rule that lets them through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Rule>,
}

dated! { Subscription }

impl Subscription {
    /// The most subscriptions of one subscriber in one topic.
    pub const MAX_OF_SUBSCRIBER: usize = 10;
    /// The most workflows that a subscription says something about.
    pub const MAX_PREFERENCES: usize = 100;
    /// The longest name, in characters.
    pub const MAX_NAME: usize = 255;
    /// The longest identifier that a caller may choose, in characters.
    pub const MAX_IDENTIFIER: usize = 512;

    /// A subscription that nobody has seen before, with nothing to say.
    pub fn new(
        id: SubscriptionId,
        identifier: SubscriptionIdentifier,
        home: &Home,
        (topic, subscriber): (&Topic, &Subscriber),
        context_keys: ContextSet,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            organization_id: home.organization_id.clone(),
            environment_id: home.environment_id,
            topic_id: topic.id,
            topic_key: topic.key.clone(),
            internal_subscriber_id: subscriber.id,
            subscriber_id: subscriber.subscriber_id.clone(),
            identifier,
            name: None,
            preferences: Vec::new(),
            context_keys,
            created_at: now,
            updated_at: now,
        }
    }

    /// The name of a subscription that is created without one.
    pub fn made_identifier(
        topic: &TopicKey,
        subscriber: &SubscriberId,
        contexts: &ContextSet,
    ) -> Result<SubscriptionIdentifier, Invalid> {
        let mut name = format!("tk_{topic}:si_{subscriber}");
        if !contexts.is_empty() {
            name.push_str(":ctx_");
            name.push_str(&contexts.canonical());
        }
        SubscriptionIdentifier::new(name)
    }

    /// The subscription after `name`, and with `verdicts`, one about each workflow, in place of
    /// what it said. What says the same changes nothing.
    #[must_use]
    pub fn updated(
        &self,
        name: Patch<String>,
        verdicts: Option<&[WorkflowVerdict]>,
        now: Timestamp,
    ) -> Self {
        let mut after = self.clone();
        name.apply(&mut after.name);
        if let Some(verdicts) = verdicts {
            after.preferences = verdicts.iter().map(|verdict| self.saying(verdict)).collect();
        }
        after.changed_from(self, now)
    }

    fn saying(&self, verdict: &WorkflowVerdict) -> SubscriptionPreference {
        let WorkflowVerdict { workflow_id, enabled, condition } = verdict.clone();
        let subscription_id = self.identifier.clone();
        SubscriptionPreference { subscription_id, workflow_id, workflow: None, enabled, condition }
    }

    /// Whether it is the one of `subscriber` for `contexts`.
    pub fn is_of(&self, subscriber: &Subscriber, contexts: &ContextSet) -> bool {
        self.internal_subscriber_id == subscriber.id && self.context_keys == *contexts
    }

    /// Whether `other` is a subscription of the same subscriber.
    pub fn is_of_same_subscriber(&self, other: &Self) -> bool {
        self.internal_subscriber_id == other.internal_subscriber_id
    }

    /// Whether it lets an event through. `data` is what its conditions are asked about.
    pub fn admits(&self, event: &Event<'_>, data: &impl Deref<Target = Value>) -> bool {
        let about =
            |preference: &&SubscriptionPreference| preference.workflow_id == event.workflow.id;
        let word = self.preferences.iter().find(about);
        self.context_keys == *event.context_keys && word.is_none_or(|word| word.admits(data))
    }
}

impl SubscriptionPreference {
    // Data is made up only if it is asked for.
    fn admits(&self, data: &impl Deref<Target = Value>) -> bool {
        self.condition.as_ref().map_or(self.enabled, |rule| rule.holds(data))
    }
}

#[cfg(test)]
mod tests;
