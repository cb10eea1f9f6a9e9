//! Requests for subscriptions, and their results.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::Subscription;
use crate::condition::Rule;
use crate::context::{ContextFilter, ContextPayload};
use crate::error::{Invalid, Reason, at_most, at_most_items};
use crate::ids::{SubscriberId, SubscriptionIdentifier, WorkflowId, plain};
use crate::json::shape;
use crate::page::{OrderBy, PageQuery};
use crate::patch::Patch;
use crate::vocabulary::wire_enum;
use crate::workflow::Workflow;

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

/// Setting of a subscription for some workflows. On the wire it may be just the name of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct WorkflowSetting {
    /// Workflows.
    #[serde(flatten)]
    pub workflows: WorkflowChoice,
    /// `true` if the subscription admits the workflows, which is the default.
    pub enabled: bool,
    /// Condition that admits the workflows. It overrides `enabled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<Rule>,
}

/// Setting of a subscription for one workflow.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedSetting {
    /// Id of the workflow.
    pub workflow_id: WorkflowId,
    /// `true` if the subscription admits the workflow.
    pub enabled: bool,
    /// Condition that admits the workflow. It overrides `enabled`.
    pub condition: Option<Rule>,
}

/// Selection of workflows of an environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all_fields = "camelCase", untagged)]
pub enum WorkflowChoice {
    /// One workflow.
    One {
        /// Identifier, id or slug.
        workflow_id: String,
    },
    /// All matching workflows.
    Matching {
        /// Filter.
        filter: WorkflowFilter,
    },
}

/// Filter of workflows. A workflow matches if any part of the filter selects it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct WorkflowFilter {
    /// Identifiers, ids or slugs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workflow_ids: Vec<String>,
    /// Tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

shape! { WorkflowFilter { "workflowIds": workflow_ids, "tags": tags } }

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

/// Partial update of a subscription. Absent fields keep their value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SubscriptionUpdate {
    /// Display name: at most 255 characters.
    #[serde(skip_serializing_if = "Patch::is_keep")]
    pub name: Patch<String>,
    /// Settings for workflows, which replace the stored ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preferences: Option<Vec<WorkflowSetting>>,
}

shape! { update SubscriptionUpdate { "name": name, "preferences": preferences } }

/// Query of the subscriptions of a topic. A subscription must meet every condition that is set.
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
        check_words(&self.preferences)
    }
}

impl WorkflowChoice {
    /// Returns the identifiers, ids and slugs.
    pub fn names(&self) -> &[String] {
        match self {
            WorkflowChoice::One { workflow_id } => std::slice::from_ref(workflow_id),
            WorkflowChoice::Matching { filter } => &filter.workflow_ids,
        }
    }

    /// Returns the tags.
    pub fn tags(&self) -> &[String] {
        match self {
            WorkflowChoice::One { .. } => &[],
            WorkflowChoice::Matching { filter } => &filter.tags,
        }
    }

    /// Returns `true` if the tags select the workflow.
    #[doc(hidden)]
    pub fn chooses(&self, workflow: &Workflow) -> bool {
        workflow.tags.iter().any(|tag| self.tags().contains(tag))
    }
}

impl ResolvedSetting {
    /// Returns the settings without repetition: the last one for a workflow, at the place of the
    /// first. Refuses settings for more than 100 workflows.
    pub fn last_of_each(settings: Vec<Self>) -> Result<Vec<Self>, Invalid> {
        let mut places: HashMap<WorkflowId, usize> = HashMap::new();
        let mut last: Vec<Self> = Vec::new();
        for setting in settings {
            let place = *places.entry(setting.workflow_id).or_insert(last.len());
            match last.get_mut(place) {
                Some(before) => *before = setting,
                None => last.push(setting),
            }
        }
        at_most_items("preferences", &last, Subscription::MAX_PREFERENCES)?;
        Ok(last)
    }
}

impl WorkflowSetting {
    /// Returns the setting for one of its workflows.
    #[doc(hidden)]
    pub fn about(&self, workflow_id: WorkflowId) -> ResolvedSetting {
        let (enabled, condition) = (self.enabled, self.condition.clone());
        ResolvedSetting { workflow_id, enabled, condition }
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

impl Unsubscribe {
    /// Refuses a request without items, or with more than 100.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Invalid> {
        check_items(&self.subscriptions)
    }
}

impl SubscriptionUpdate {
    /// Refuses an overlong text, and more than 100 names of workflows.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Invalid> {
        if let Patch::Set(name) = &self.name {
            check_name(name)?;
        }
        self.preferences.as_deref().map_or(Ok(()), check_words)
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
        let id = match item {
            UnsubscribeItem::Subscriber { subscriber_id } => subscriber_id.as_str(),
            UnsubscribeItem::Subscription { identifier } => identifier.as_str(),
        };
        Self {
            subscriber_id: id.to_owned(),
            code: SubscriptionErrorCode::SubscriptionNotFound,
            message: format!("subscription of or as `{id}` is not there"),
        }
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

impl Subscriptions {
    /// Returns the result with the subscriptions `data` and the `errors`.
    #[doc(hidden)]
    pub fn new(data: Vec<Subscription>, errors: Vec<SubscriptionError>) -> Self {
        let (successful, failed) = (data.len(), errors.len());
        let meta = SubscriptionMeta { total_count: successful + failed, successful, failed };
        Self { data, meta, errors }
    }
}

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

fn check_items<T>(items: &[T]) -> Result<(), Invalid> {
    if items.is_empty() {
        return Err(Invalid::new("subscriptions", Reason::Empty));
    }
    at_most_items("subscriptions", items, Subscribe::MAX)
}

fn check_words(words: &[WorkflowSetting]) -> Result<(), Invalid> {
    at_most_items("preferences", words, Subscribe::MAX)?;
    for (index, word) in words.iter().enumerate() {
        if let WorkflowChoice::Matching { filter } = &word.workflows {
            filter.check().map_err(|bad| bad.within(format!("preferences[{index}].filter")))?;
        }
        if let Some(rule) = &word.condition {
            rule.check_names().map_err(|bad| bad.within(format!("preferences[{index}]")))?;
        }
    }
    // Each name is looked up.
    let names: HashSet<_> = words.iter().flat_map(|word| word.workflows.names()).collect();
    if names.len() > Subscription::MAX_PREFERENCES {
        let reason = Reason::TooMany { max: Subscription::MAX_PREFERENCES };
        return Err(Invalid::new("preferences", reason));
    }
    Ok(())
}

impl WorkflowFilter {
    fn check(&self) -> Result<(), Invalid> {
        if self.workflow_ids.is_empty() && self.tags.is_empty() {
            let reason = Reason::MissingUnless { other: "tags".into() };
            return Err(Invalid::new("workflowIds", reason));
        }
        at_most_items("workflowIds", &self.workflow_ids, Subscribe::MAX)?;
        at_most_items("tags", &self.tags, Subscribe::MAX)
    }
}

fn check_name(name: &str) -> Result<(), Invalid> {
    at_most("name", name, Subscription::MAX_NAME)?;
    plain("name", name)
}
