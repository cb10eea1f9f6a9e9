//! Queries of the activity list, and its pages.

use serde::{Deserialize, Serialize};

use super::{Notification, NotificationOutcome, NotificationTopic};
use crate::context::ContextFilter;
use crate::error::{Invalid, at_most_items, in_order};
use crate::ids::{SubscriberId, SubscriptionIdentifier, TopicKey, TransactionId, WorkflowRef};
use crate::json::{is_default, shape};
use crate::page;
use crate::query::{self, Emptied, write_unless_emptied};
use crate::time::Timestamp;
use crate::vocabulary::{Severity, StepType};

/// Query of notifications, newest first. A notification must meet every condition that is set, by
/// one of its values. The conditions on the subscriber together count as one condition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, remote = "Self")]
#[non_exhaustive]
pub struct NotificationQuery {
    /// Step types of the workflow.
    #[serde(
        rename = "channels",
        deserialize_with = "query::one_or_many",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub step_types: Vec<StepType>,
    /// Workflows, by identifier, id or slug.
    #[serde(
        rename = "templates",
        deserialize_with = "query::one_or_many",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub workflows: Vec<WorkflowRef>,
    /// E-mail addresses: the subscriber has one of them. They are compared as a whole, and case counts.
    #[serde(deserialize_with = "query::one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub emails: Vec<String>,
    /// Id of the subscriber, or a part of the e-mail address. Deprecated by the specification:
    /// `subscriberIds` finds ids, and `emails` whole addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    /// Ids of the subscriber in the host application.
    #[serde(deserialize_with = "query::one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub subscriber_ids: Vec<SubscriberId>,
    /// Severities. `none` includes notifications without severity.
    #[serde(
        rename = "severity",
        deserialize_with = "query::one_or_many",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub severities: Vec<Severity>,
    /// Number of the page, counting from 0.
    #[serde(rename = "page", deserialize_with = "query::value")]
    pub page_number: u32,
    /// Maximum number of notifications on the page: 1 to 50, 10 by default.
    #[serde(deserialize_with = "query::optional", skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Id of the triggered event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transaction_id: Option<TransactionId>,
    /// Key of the topic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic_key: Option<TopicKey>,
    /// Identifier of the subscription.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscription_id: Option<SubscriptionIdentifier>,
    /// Contexts, compared as a set.
    #[serde(skip_serializing_if = "ContextFilter::is_any")]
    pub context_keys: ContextFilter,
    /// Outcomes of the jobs. A notification with several outcomes is found by each of them.
    #[serde(deserialize_with = "query::one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub outcomes: Vec<NotificationOutcome>,
    /// Earliest time of the trigger.
    #[serde(rename = "after", skip_serializing_if = "Option::is_none")]
    pub earliest: Option<Timestamp>,
    /// Latest time of the trigger.
    #[serde(rename = "before", skip_serializing_if = "Option::is_none")]
    pub latest: Option<Timestamp>,
    #[serde(skip)]
    pub(super) emptied: Emptied,
}

shape! { NotificationQuery {
    "channels": step_types as many, "templates": workflows as many, "emails": emails as many,
    "search": search, "subscriberIds": subscriber_ids as many, "severity": severities as many,
    "page": page_number as written, "limit": limit as written, "transactionId": transaction_id,
    "topicKey": topic_key, "subscriptionId": subscription_id, "contextKeys": context_keys,
    "outcomes": outcomes as many, "after": earliest, "before": latest,
} }

/// Page of the activity list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct NotificationPage {
    /// `true` if there is another page.
    pub has_more: bool,
    /// Notifications, newest first.
    pub data: Vec<Notification>,
    /// Maximum number of notifications on a page.
    pub page_size: usize,
    /// Number of the page, counting from 0.
    pub page: u32,
    /// Number of notifications of this page that are left out, because their records cannot be
    /// read. The engine's `check` finds them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unreadable: usize,
}

impl NotificationPage {
    /// Returns the page with this number and at most `page_size` notifications.
    #[doc(hidden)]
    pub fn new(data: Vec<Notification>, has_more: bool, page_size: usize, page: u32) -> Self {
        Self { has_more, data, page_size, page, unreadable: 0 }
    }

    /// Returns the page with the number of notifications that are left out of it.
    #[doc(hidden)]
    #[must_use]
    pub fn without(self, unreadable: usize) -> Self {
        Self { unreadable, ..self }
    }
}

write_unless_emptied!(NotificationQuery);

impl NotificationQuery {
    /// Default size of a page.
    pub const DEFAULT_LIMIT: u32 = 10;
    /// Largest page.
    pub const MAX_LIMIT: u32 = 50;
    /// Maximum number of values in each list of a query.
    pub const MAX_VALUES: usize = 1_000;

    // Refuses lists that a setter has left without values.
    fn check_emptied(&self) -> Result<(), Invalid> {
        self.emptied.check("channels", &self.step_types)?;
        self.emptied.check("templates", &self.workflows)?;
        self.emptied.check("emails", &self.emails)?;
        self.emptied.check("subscriberIds", &self.subscriber_ids)?;
        self.emptied.check("severity", &self.severities)?;
        self.emptied.check("outcomes", &self.outcomes)
    }

    /// Checks the query, and returns the size of a page.
    #[doc(hidden)]
    pub fn check(&self) -> Result<usize, Invalid> {
        self.check_emptied()?;
        in_order(("after", self.earliest), ("before", self.latest))?;
        at_most_items("channels", &self.step_types, Self::MAX_VALUES)?;
        at_most_items("templates", &self.workflows, Self::MAX_VALUES)?;
        at_most_items("emails", &self.emails, Self::MAX_VALUES)?;
        at_most_items("subscriberIds", &self.subscriber_ids, Self::MAX_VALUES)?;
        at_most_items("severity", &self.severities, Self::MAX_VALUES)?;
        at_most_items("outcomes", &self.outcomes, Self::MAX_VALUES)?;
        self.context_keys.check(Self::MAX_VALUES)?;
        page::limit(self.limit, Self::DEFAULT_LIMIT, Self::MAX_LIMIT)
    }

    /// Returns `true` if the query has conditions on the subscriber.
    #[doc(hidden)]
    pub fn names_subscribers(&self) -> bool {
        let named = !self.emails.is_empty() || !self.subscriber_ids.is_empty();
        named || self.searched().is_some()
    }

    /// Returns the text to search for in subscribers.
    #[doc(hidden)]
    pub fn searched(&self) -> Option<&str> {
        self.search.as_deref().filter(|search| !search.is_empty())
    }

    /// Returns `true` if `notification` meets the conditions on its own fields. The caller checks
    /// those on subscribers and workflows.
    #[doc(hidden)]
    pub fn matches(&self, notification: &Notification) -> bool {
        let severity = notification.severity.unwrap_or_default();
        let created_at = notification.created_at;
        let does = |kind: &StepType| notification.step_types.contains(kind);
        let outcomes = notification.outcomes();
        let became = |outcome: &NotificationOutcome| outcomes.has(*outcome);
        let came_through =
            |through: &dyn Fn(&NotificationTopic) -> bool| notification.topics.iter().any(through);
        (self.step_types.is_empty() || self.step_types.iter().any(does))
            && (self.severities.is_empty() || self.severities.contains(&severity))
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
            && (self.outcomes.is_empty() || self.outcomes.iter().any(became))
            && self.earliest.is_none_or(|earliest| created_at >= earliest)
            && self.latest.is_none_or(|latest| created_at <= latest)
    }
}
