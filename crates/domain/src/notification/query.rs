//! What is asked of the activity list, and what comes back.

use serde::{Deserialize, Serialize};

use super::{Notification, NotificationTopic};
use crate::context::ContextFilter;
use crate::error::{Invalid, Reason};
use crate::ids::{SubscriberId, SubscriptionIdentifier, TopicKey, TransactionId};
use crate::json::shape;
use crate::page;
use crate::query;
use crate::time::Timestamp;
use crate::vocabulary::{JobType, Severity};

/// Which notifications are listed, newest first. Every condition that is given must hold; of
/// several values for one condition one is enough. Conditions about the subscriber are one
/// condition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct NotificationQuery {
    /// Those whose workflow does one of these.
    #[serde(deserialize_with = "query::list", skip_serializing_if = "Vec::is_empty")]
    pub channels: Vec<JobType>,
    /// Those of one of these workflows, by id or identifier.
    #[serde(deserialize_with = "query::list", skip_serializing_if = "Vec::is_empty")]
    pub templates: Vec<String>,
    /// Those for a subscriber with exactly one of these addresses.
    #[serde(deserialize_with = "query::list", skip_serializing_if = "Vec::is_empty")]
    pub emails: Vec<String>,
    /// Those for a subscriber of this id, or with this in the address. Deprecated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    /// Those for one of these subscribers.
    #[serde(deserialize_with = "query::list", skip_serializing_if = "Vec::is_empty")]
    pub subscriber_ids: Vec<SubscriberId>,
    /// Those that matter so much. `none` includes those that do not say.
    #[serde(deserialize_with = "query::list", skip_serializing_if = "Vec::is_empty")]
    pub severity: Vec<Severity>,
    /// Which page of them, counting from 0.
    #[serde(deserialize_with = "query::value")]
    pub page: u32,
    /// How many on a page: 1 to 50, 10 if nothing is said.
    #[serde(deserialize_with = "query::optional", skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Those of this call of trigger.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transaction_id: Option<TransactionId>,
    /// Those that came through this topic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic_key: Option<TopicKey>,
    /// Those that came through this subscription.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscription_id: Option<SubscriptionIdentifier>,
    /// Those about exactly these contexts.
    #[serde(skip_serializing_if = "ContextFilter::is_any")]
    pub context_keys: ContextFilter,
    /// Those triggered then or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Timestamp>,
    /// Those triggered then or earlier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Timestamp>,
}

shape! { NotificationQuery {
    "channels": channels as list, "templates": templates as list, "emails": emails as list,
    "search": search, "subscriberIds": subscriber_ids as list, "severity": severity as list,
    "page": page as written, "limit": limit as written, "transactionId": transaction_id,
    "topicKey": topic_key, "subscriptionId": subscription_id, "contextKeys": context_keys,
    "after": after, "before": before,
} }

/// A page of the activity list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct NotificationPage {
    /// Whether there is another page.
    pub has_more: bool,
    /// The notifications, newest first.
    pub data: Vec<Notification>,
    /// How many were asked for.
    pub page_size: usize,
    /// Which page it is.
    pub page: u32,
}

impl NotificationPage {
    /// Returns the page of that number, which has at most `page_size` notifications.
    pub fn new(data: Vec<Notification>, has_more: bool, page_size: usize, page: u32) -> Self {
        Self { has_more, data, page_size, page }
    }
}

impl NotificationQuery {
    /// The size of a page if nothing is said.
    pub const DEFAULT_LIMIT: u32 = 10;
    /// The largest page.
    pub const MAX_LIMIT: u32 = 50;

    /// Checks the query, and says how many notifications a page has.
    pub fn check(&self) -> Result<usize, Invalid> {
        if let (Some(after), Some(before)) = (self.after, self.before)
            && after > before
        {
            return Err(Invalid::new("after", Reason::Reversed { end: "before".into() }));
        }
        page::limit(self.limit, Self::DEFAULT_LIMIT, Self::MAX_LIMIT)
    }

    /// Whether the query is about certain subscribers.
    pub fn names_subscribers(&self) -> bool {
        let named = !self.emails.is_empty() || !self.subscriber_ids.is_empty();
        named || self.searched().is_some()
    }

    /// What subscribers are searched for.
    pub fn searched(&self) -> Option<&str> {
        self.search.as_deref().filter(|search| !search.is_empty())
    }

    /// Whether `notification` belongs to the list, as far as its own fields say. Which subscribers
    /// and workflows the query names is for the caller to find out.
    pub fn matches(&self, notification: &Notification) -> bool {
        let severity = notification.severity.unwrap_or_default();
        let created_at = notification.created_at;
        let does = |kind: &JobType| notification.channels.contains(kind);
        let came_through =
            |through: &dyn Fn(&NotificationTopic) -> bool| notification.topics.iter().any(through);
        (self.channels.is_empty() || self.channels.iter().any(does))
            && (self.severity.is_empty() || self.severity.contains(&severity))
            && self.transaction_id.as_ref().is_none_or(|id| notification.transaction_id == *id)
            && self
                .topic_key
                .as_ref()
                .is_none_or(|key| came_through(&|topic| topic.topic_key == *key))
            && self
                .subscription_id
                .as_ref()
                .is_none_or(|id| came_through(&|topic| topic.subscription_ids.contains(id)))
            && self.context_keys.matches(&notification.context_keys)
            && self.after.is_none_or(|after| created_at >= after)
            && self.before.is_none_or(|before| created_at <= before)
    }
}
