//! Requests to remove subscriptions from a topic.

use serde::{Deserialize, Serialize};

use super::check_items;
use crate::error::Invalid;
use crate::ids::{SubscriberId, SubscriptionIdentifier};
use crate::json::shape;

/// Request to remove subscriptions from a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Unsubscribe {
    /// Items: 1 to 100.
    #[serde(alias = "subscriberIds")]
    pub subscriptions: Vec<UnsubscribeItem>,
}

shape! { Unsubscribe { "subscriptions" | "subscriberIds": subscriptions } }

/// Subscriptions of a topic. On the wire it may be just the id of a subscriber.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all_fields = "camelCase", untagged)]
pub enum UnsubscribeItem {
    /// All subscriptions of a subscriber.
    Subscriber {
        /// Id of the subscriber in the host application.
        subscriber_id: SubscriberId,
    },
    /// One subscription.
    Subscription {
        /// Identifier, unique in the topic.
        identifier: SubscriptionIdentifier,
    },
}

impl Unsubscribe {
    /// Refuses a request without items, or with more than 100.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Invalid> {
        check_items(&self.subscriptions)
    }
}
