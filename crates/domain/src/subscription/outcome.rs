//! Results of requests to add or remove subscriptions.

use serde::{Deserialize, Serialize};

use super::{Subscription, UnsubscribeItem};
use crate::ids::{SubscriberId, SubscriptionIdentifier};
use crate::vocabulary::wire_enum;

/// Result of a request to add or remove subscriptions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
#[must_use = "it has the items that were refused"]
pub struct Subscriptions {
    /// Subscriptions of the successful items, in the order of the request.
    pub data: Vec<Subscription>,
    /// Numbers of subscriptions and errors.
    pub meta: SubscriptionMeta,
    /// Errors of the other items.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<SubscriptionError>,
}

/// Numbers of subscriptions and errors of a request. An item about all subscriptions of a subscriber counts
/// each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SubscriptionMeta {
    /// Number of subscriptions and errors.
    pub total_count: usize,
    /// Number of subscriptions.
    pub successful: usize,
    /// Number of errors.
    pub failed: usize,
}

/// Error of one item of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SubscriptionError {
    /// Subscriber or subscription, as in the request.
    pub subscriber_id: String,
    /// Kind of error.
    pub code: SubscriptionErrorCode,
    /// Message.
    pub message: String,
}

wire_enum! {
    /// Kind of error of an item.
    SubscriptionErrorCode, "code":
    SubscriberNotFound = "SUBSCRIBER_NOT_FOUND",
    SubscriptionNotFound = "SUBSCRIPTION_NOT_FOUND",
    SubscriptionLimitExceeded = "SUBSCRIPTION_LIMIT_EXCEEDED",
    IdentifierTaken = "IDENTIFIER_TAKEN",
}

impl Subscriptions {
    /// Returns the result with the subscriptions `data` and the `errors`.
    #[doc(hidden)]
    pub fn new(data: Vec<Subscription>, errors: Vec<SubscriptionError>) -> Self {
        let (successful, failed) = (data.len(), errors.len());
        let meta = SubscriptionMeta { total_count: successful + failed, successful, failed };
        Self { data, meta, errors }
    }
}

impl SubscriptionError {
    /// Returns the error for a missing subscriber.
    #[doc(hidden)]
    pub fn subscriber_not_found(id: &SubscriberId) -> Self {
        Self {
            subscriber_id: id.to_string(),
            code: SubscriptionErrorCode::SubscriberNotFound,
            message: format!("subscriber `{id}` is not there"),
        }
    }

    /// Returns the error for a missing subscription.
    #[doc(hidden)]
    pub fn subscription_not_found(item: &UnsubscribeItem) -> Self {
        let (id, message) = match item {
            UnsubscribeItem::Subscriber { subscriber_id: id } => {
                (id.to_string(), format!("subscriber `{id}` has no subscription in the topic"))
            }
            UnsubscribeItem::Subscription { identifier: id } => {
                (id.to_string(), format!("subscription `{id}` is not there"))
            }
        };
        Self { subscriber_id: id, code: SubscriptionErrorCode::SubscriptionNotFound, message }
    }

    /// Returns the error for a subscriber with the maximum number of subscriptions in the topic.
    #[doc(hidden)]
    pub fn limit_exceeded(id: &SubscriberId) -> Self {
        let max = Subscription::MAX_OF_SUBSCRIBER;
        Self {
            subscriber_id: id.to_string(),
            code: SubscriptionErrorCode::SubscriptionLimitExceeded,
            message: format!("subscriber `{id}` has {max} subscriptions, the most in a topic"),
        }
    }

    /// Returns the error for an identifier that another subscription has.
    #[doc(hidden)]
    pub fn identifier_taken(id: &SubscriberId, identifier: &SubscriptionIdentifier) -> Self {
        Self {
            subscriber_id: id.to_string(),
            code: SubscriptionErrorCode::IdentifierTaken,
            message: format!(
                "subscription `{identifier}` is there already for another subscriber or for other contexts"
            ),
        }
    }
}
