//! Requests to add subscribers to a topic.

use serde::{Deserialize, Serialize};

use super::setting::check_settings;
use super::{Subscription, SubscriptionError, WorkflowSetting, check_items, check_name};
use crate::context::ContextPayload;
use crate::error::{Invalid, at_most};
use crate::ids::{SubscriberId, SubscriptionIdentifier};
use crate::json::shape;

/// Request to add subscribers to a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Subscribe {
    /// Subscribers: 1 to 100.
    #[serde(alias = "subscriberIds")]
    pub subscriptions: Vec<SubscribeItem>,
    /// Display name of the topic, if the request creates it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Contexts of the subscriptions. Contexts that do not exist are created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextPayload>,
    /// Settings for workflows: at most 100. The last one for a workflow counts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub preferences: Vec<WorkflowSetting>,
}

shape! { Subscribe {
    "subscriptions" | "subscriberIds": subscriptions, "name": name, "context": context,
    "preferences": preferences,
} }

/// Subscriber to add to a topic. On the wire it may be just the id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SubscribeItem {
    /// Id of the subscriber in the host application.
    pub subscriber_id: SubscriberId,
    /// Identifier, unique in the topic: at most 512 characters. If absent, the engine composes one
    /// from the topic, the subscriber and the contexts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identifier: Option<SubscriptionIdentifier>,
    /// Display name: at most 255 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Subscribe {
    /// Maximum number of subscribers in a request.
    pub const MAX: usize = 100;

    /// Refuses a request without subscribers, with more than 100, with an overlong text, or with more
    /// than 100 names of workflows.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Invalid> {
        check_items(&self.subscriptions)?;
        for (index, item) in self.subscriptions.iter().enumerate() {
            item.check().map_err(|invalid| invalid.within(format!("subscriptions[{index}]")))?;
        }
        check_settings(&self.preferences)
    }
}

impl SubscribeItem {
    fn check(&self) -> Result<(), Invalid> {
        if let Some(identifier) = &self.identifier {
            at_most("identifier", identifier.as_str(), Subscription::MAX_IDENTIFIER)?;
        }
        self.name.as_deref().map_or(Ok(()), check_name)
    }
}

impl Subscription {
    /// Refuses a further subscription of the subscriber `id`, who has `others` in the topic.
    #[doc(hidden)]
    pub fn check_room(others: usize, id: &SubscriberId) -> Result<(), SubscriptionError> {
        if others >= Self::MAX_OF_SUBSCRIBER {
            return Err(SubscriptionError::limit_exceeded(id));
        }
        Ok(())
    }
}
