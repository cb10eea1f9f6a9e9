//! Subscribers in the topics of an event whom no subscription of theirs lets the event reach.

use std::ops::Deref;

use serde::Serialize;
use serde_json::Value;

use super::ConditionCheck;
use crate::event::Event;
use crate::ids::{SubscriberId, SubscriptionIdentifier, TopicKey};
use crate::subscription::Subscription;

/// Subscriber in topics of an event who has no subscription that admits it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FilteredMember {
    /// Id of the subscriber in the host application.
    pub subscriber_id: SubscriberId,
    /// Subscriptions in the topics, each with what it says.
    pub subscriptions: Vec<RefusingSubscription>,
}

/// Subscription that does not admit an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RefusingSubscription {
    /// Key of the topic.
    pub topic_key: TopicKey,
    /// Identifier of the subscription.
    pub identifier: SubscriptionIdentifier,
    /// `false` if the contexts of the subscription are not those of the event.
    pub has_contexts: bool,
    /// Setting for the workflow. `None` if the subscription has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Condition of the setting, with the values of its variables. It overrides `enabled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<ConditionCheck>,
}

impl FilteredMember {
    /// Returns a member with these subscriptions, none of which admits `event`. Their conditions are
    /// evaluated over `data`.
    #[doc(hidden)]
    pub fn new(
        subscriber_id: SubscriberId,
        subscriptions: &[Subscription],
        (event, data): (&Event<'_>, &impl Deref<Target = Value>),
    ) -> Self {
        let refusing = |subscription: &Subscription| {
            let setting = subscription.setting_for(event.workflow.id);
            let condition = setting.and_then(|setting| setting.condition.as_ref());
            RefusingSubscription {
                topic_key: subscription.topic_key.clone(),
                identifier: subscription.identifier.clone(),
                has_contexts: subscription.context_keys == *event.context_keys,
                enabled: setting.map(|setting| setting.enabled),
                condition: condition.map(|rule| ConditionCheck::evaluated(rule, data)),
            }
        };
        Self { subscriber_id, subscriptions: subscriptions.iter().map(refusing).collect() }
    }
}
