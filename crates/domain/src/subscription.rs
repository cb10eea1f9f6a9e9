//! Subscriptions: subscribers in topics, with contexts and with settings for workflows.

mod compose;
mod outcome;
mod query;
mod setting;
mod subscribe;
mod unsubscribe;
mod update;
mod wire;

use std::ops::Deref;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::condition::Rule;
use crate::context::ContextSet;
use crate::environment::Home;
use crate::error::{Invalid, Reason, at_most, at_most_items};
use crate::event::Event;
use crate::ids::{
    EnvironmentId, InternalSubscriberId, OrganizationId, SubscriberId, SubscriptionId,
    SubscriptionIdentifier, TopicId, TopicKey, WorkflowId, plain,
};
use crate::patch::Patch;
use crate::preference::WorkflowInfo;
use crate::subscriber::Subscriber;
use crate::time::{Dated, Timestamp, dated};
use crate::topic::Topic;

pub use outcome::{SubscriptionError, SubscriptionErrorCode, SubscriptionMeta, Subscriptions};
pub use query::SubscriptionQuery;
pub use setting::{ResolvedSetting, WorkflowChoice, WorkflowFilter, WorkflowSetting};
pub use subscribe::{Subscribe, SubscribeItem};
pub use unsubscribe::{Unsubscribe, UnsubscribeItem};
pub use update::SubscriptionUpdate;

/// Subscriber in a topic. The same subscriber may have several subscriptions, with other contexts
/// or settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Subscription {
    /// Id given by the engine.
    pub id: SubscriptionId,
    /// Organization of the subscription.
    #[serde(rename = "_organizationId")]
    pub organization_id: OrganizationId,
    /// Environment of the subscription.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// Id of the topic.
    #[serde(rename = "_topicId")]
    pub topic_id: TopicId,
    /// Key of the topic, given by the host application.
    pub topic_key: TopicKey,
    /// Id of the subscriber, given by the engine.
    #[serde(rename = "_subscriberId")]
    pub internal_subscriber_id: InternalSubscriberId,
    /// Id of the subscriber in the host application.
    pub subscriber_id: SubscriberId,
    /// Identifier, unique in the topic.
    pub identifier: SubscriptionIdentifier,
    /// Display name: at most 255 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Settings for single workflows. Other workflows are admitted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preferences: Vec<SubscriptionPreference>,
    /// Contexts of the subscription: exactly these.
    pub context_keys: ContextSet,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

/// Setting of a subscription for a workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SubscriptionPreference {
    /// Identifier of the subscription.
    pub subscription_id: SubscriptionIdentifier,
    /// Id of the workflow.
    #[serde(rename = "_workflowId")]
    pub workflow_id: WorkflowId,
    /// Workflow, filled in by reads while it exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowInfo>,
    /// `true` if the subscription admits the workflow. A condition overrides it.
    pub enabled: bool,
    /// Condition that admits the workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Rule>,
}

dated! { Subscription }

impl Subscription {
    /// Maximum number of subscriptions of one subscriber in one topic.
    pub const MAX_OF_SUBSCRIBER: usize = 10;
    /// Maximum number of workflows with a setting in a subscription.
    pub const MAX_PREFERENCES: usize = 100;
    /// Largest conditions of a subscription, in bytes of JSON text together. One of a setting for several
    /// workflows counts for each.
    pub const MAX_CONDITIONS_SIZE: usize = 64 * 1024;
    /// Longest display name, in characters.
    pub const MAX_NAME: usize = 255;
    /// Longest identifier that a caller may choose, in characters.
    pub const MAX_IDENTIFIER: usize = 512;

    /// Returns a new subscription without settings.
    #[doc(hidden)]
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

    /// Returns the identifier of a subscription created without one.
    #[doc(hidden)]
    pub fn made_identifier(
        topic: &TopicKey,
        subscriber: &SubscriberId,
        contexts: &ContextSet,
    ) -> Result<SubscriptionIdentifier, Invalid> {
        let mut name = format!("{}{topic}{}", Self::MADE, Self::part_of_subscriber(subscriber));
        if !contexts.is_empty() {
            name.push_str(":ctx_");
            name.push_str(contexts.canonical());
        }
        SubscriptionIdentifier::new(name)
    }

    /// The beginning of such an identifier.
    pub(crate) const MADE: &str = "tk_";

    /// Returns the part of such an identifier that names the subscriber.
    pub(crate) fn part_of_subscriber(subscriber: &SubscriberId) -> String {
        format!(":si_{subscriber}")
    }

    /// Returns the subscription with `name`, and with `settings` in place of its own. An update
    /// without a difference changes nothing, not even the time.
    #[doc(hidden)]
    #[must_use]
    pub fn updated(
        &self,
        name: Patch<String>,
        settings: Option<&[ResolvedSetting]>,
        now: Timestamp,
    ) -> Self {
        let mut after = self.clone();
        name.apply(&mut after.name);
        if let Some(settings) = settings {
            after.preferences = settings.iter().map(|setting| self.preference(setting)).collect();
        }
        after.changed_from(self, now)
    }

    fn preference(&self, setting: &ResolvedSetting) -> SubscriptionPreference {
        let ResolvedSetting { workflow_id, enabled, condition } = setting.clone();
        let subscription_id = self.identifier.clone();
        SubscriptionPreference { subscription_id, workflow_id, workflow: None, enabled, condition }
    }

    /// Returns `true` if the subscription belongs to `subscriber` and has exactly these `contexts`.
    #[doc(hidden)]
    pub fn is_of(&self, subscriber: &Subscriber, contexts: &ContextSet) -> bool {
        self.internal_subscriber_id == subscriber.id && self.context_keys == *contexts
    }

    /// Returns `true` if the subscription admits the event. Its conditions are evaluated over
    /// `data`.
    #[doc(hidden)]
    pub fn admits(&self, event: &Event<'_>, data: &impl Deref<Target = Value>) -> bool {
        let word = self.setting_for(event.workflow.id);
        self.context_keys == *event.context_keys && word.is_none_or(|word| word.admits(data))
    }

    /// Returns the setting for a workflow. Returns `None` if there is none.
    #[doc(hidden)]
    pub fn setting_for(&self, workflow: WorkflowId) -> Option<&SubscriptionPreference> {
        self.preferences.iter().find(|preference| preference.workflow_id == workflow)
    }
}

impl SubscriptionPreference {
    // `data` is lazy: only conditions dereference it.
    fn admits(&self, data: &impl Deref<Target = Value>) -> bool {
        admits(self.enabled, self.condition.as_ref(), data)
    }
}

/// Returns `true` if a setting admits the workflow. The condition overrides `enabled`.
pub(crate) fn admits(
    enabled: bool,
    condition: Option<&Rule>,
    data: &impl Deref<Target = Value>,
) -> bool {
    condition.map_or(enabled, |rule| rule.holds(data))
}

fn check_items<T>(items: &[T]) -> Result<(), Invalid> {
    if items.is_empty() {
        return Err(Invalid::new("subscriptions", Reason::Empty));
    }
    at_most_items("subscriptions", items, Subscribe::MAX)
}

fn check_name(name: &str) -> Result<(), Invalid> {
    at_most("name", name, Subscription::MAX_NAME)?;
    plain("name", name)
}

#[cfg(test)]
mod tests;
