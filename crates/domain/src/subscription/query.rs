//! Queries of subscriptions.

use serde::{Deserialize, Serialize};

use crate::context::ContextFilter;
use crate::error::Invalid;
use crate::ids::SubscriberId;
use crate::json::shape;
use crate::page::{OrderBy, PageQuery};

/// Query of the subscriptions in a topic, or of those of a subscriber. A subscription must meet every condition
/// that is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SubscriptionQuery {
    /// Page of the list.
    #[serde(flatten)]
    pub page: PageQuery,
    /// Id of the subscriber in the host application.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscriber_id: Option<SubscriberId>,
    /// Contexts, compared as a set. At most 100.
    #[serde(skip_serializing_if = "ContextFilter::is_any")]
    pub context_keys: ContextFilter,
}

shape! { SubscriptionQuery {
    "subscriberId": subscriber_id, "contextKeys": context_keys;
    page by SubscriptionQuery::ORDERS
} }

impl SubscriptionQuery {
    /// Fields that the list can be sorted by.
    #[doc(hidden)]
    pub const ORDERS: &[OrderBy] = &[OrderBy::Id];

    /// Refuses a query with more than 100 contexts.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Invalid> {
        self.context_keys.check(ContextFilter::MAX_VALUES)
    }
}
