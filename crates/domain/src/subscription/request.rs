//! What is asked for about subscriptions, and what comes of it.

use std::collections::HashMap;

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

/// Subscribers to put into a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Subscribe {
    /// Whom: 1 to 100 of them.
    #[serde(alias = "subscriberIds")]
    pub subscriptions: Vec<SubscribeItem>,
    /// What people call the topic, if it is created by this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The contexts that the subscriptions are for. Those that are not there are created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextPayload>,
    /// What the subscriptions say about workflows, at most 100 words. Of two about the same
    /// workflow the last one holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub preferences: Vec<WorkflowWord>,
}

shape! { Subscribe {
    "subscriptions" | "subscriberIds": subscriptions, "name": name, "context": context,
    "preferences": preferences,
} }

/// A subscriber to put into a topic. On the wire it may be just the id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SubscribeItem {
    /// The subscriber.
    pub subscriber_id: SubscriberId,
    /// The name that the topic is to know the subscription by: at most 512 characters. The engine
    /// makes one of the topic, the subscriber and the contexts if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identifier: Option<SubscriptionIdentifier>,
    /// What people call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// What a subscription is to say about some workflows. On the wire it may be just the name of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct WorkflowWord {
    /// The workflows.
    #[serde(flatten)]
    pub workflows: WorkflowChoice,
    /// Whether their notifications are let through: yes, if nothing is said.
    pub enabled: bool,
    /// The rule that lets them through. It has the last word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<Rule>,
}

/// What a subscription is to say about one workflow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkflowVerdict {
    /// The workflow.
    pub workflow_id: WorkflowId,
    /// Whether its notifications are let through.
    pub enabled: bool,
    /// The rule that lets them through. It has the last word.
    pub condition: Option<Rule>,
}

/// Some workflows of an environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all_fields = "camelCase", untagged)]
pub enum WorkflowChoice {
    /// One of them.
    One {
        /// Its identifier, its id or its slug.
        workflow_id: String,
    },
    /// All that match.
    Matching {
        /// What they match.
        filter: WorkflowFilter,
    },
}

/// What workflows are chosen by. Those that any part of it names are chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct WorkflowFilter {
    /// Those of these identifiers, ids or slugs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workflow_ids: Vec<String>,
    /// Those that are filed under one of these words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

shape! { WorkflowFilter { "workflowIds": workflow_ids, "tags": tags } }

/// Subscriptions to take out of a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Unsubscribe {
    /// Which: 1 to 100 of them.
    #[serde(alias = "subscriberIds")]
    pub subscriptions: Vec<UnsubscribeItem>,
}

shape! { Unsubscribe { "subscriptions" | "subscriberIds": subscriptions } }

/// Subscriptions of a topic. On the wire the id of a subscriber may stand alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all_fields = "camelCase", untagged)]
pub enum UnsubscribeItem {
    /// All those of a subscriber.
    Subscriber {
        /// The subscriber.
        subscriber_id: SubscriberId,
    },
    /// One of them.
    Subscription {
        /// The name that the topic knows it by.
        identifier: SubscriptionIdentifier,
    },
}

/// A partial update of a subscription.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SubscriptionUpdate {
    /// What people call it.
    #[serde(skip_serializing_if = "Patch::is_keep")]
    pub name: Patch<String>,
    /// What it says about workflows, in place of what it said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preferences: Option<Vec<WorkflowWord>>,
}

shape! { SubscriptionUpdate { "name": name, "preferences": preferences } }

/// Which subscriptions of a topic are listed. Every condition that is given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SubscriptionQuery {
    /// Which page of them.
    #[serde(flatten)]
    pub page: PageQuery,
    /// Those of this subscriber.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscriber_id: Option<SubscriberId>,
    /// Those for exactly these contexts.
    #[serde(skip_serializing_if = "ContextFilter::is_any")]
    pub context_keys: ContextFilter,
}

shape! { SubscriptionQuery {
    "subscriberId": subscriber_id, "contextKeys": context_keys;
    page by SubscriptionQuery::ORDERS
} }

/// What came of putting subscribers into a topic, or of taking them out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Subscriptions {
    /// The subscriptions that it worked for, in the order of the request.
    pub data: Vec<Subscription>,
    /// How many it worked for.
    pub meta: SubscriptionMeta,
    /// Why it did not work for the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<SubscriptionError>,
}

/// How many subscriptions a request worked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SubscriptionMeta {
    /// How many it was about.
    pub total_count: usize,
    /// How many it worked for.
    pub successful: usize,
    /// How many it did not work for.
    pub failed: usize,
}

/// Why a request did not work for one of its items.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SubscriptionError {
    /// The subscriber, or else the subscription, as the request names it.
    pub subscriber_id: String,
    /// What kind of reason it is.
    pub code: SubscriptionErrorCode,
    /// The reason, for people.
    pub message: String,
}

wire_enum! {
    /// Why a request did not work for one of its items.
    SubscriptionErrorCode, "code":
    SubscriberNotFound = "SUBSCRIBER_NOT_FOUND",
    SubscriptionNotFound = "SUBSCRIPTION_NOT_FOUND",
    SubscriptionLimitExceeded = "SUBSCRIPTION_LIMIT_EXCEEDED",
    IdentifierTaken = "IDENTIFIER_TAKEN",
}

impl Subscribe {
    /// The most subscribers of one request.
    pub const MAX: usize = 100;

    /// Refuses a request for nobody, for too many, or with something that is too long.
    pub fn check(&self) -> Result<(), Invalid> {
        check_items(&self.subscriptions)?;
        for (index, item) in self.subscriptions.iter().enumerate() {
            item.check().map_err(|invalid| invalid.within(format!("subscriptions[{index}]")))?;
        }
        check_words(&self.preferences)
    }
}

impl WorkflowChoice {
    /// The names of single workflows.
    pub fn names(&self) -> &[String] {
        match self {
            WorkflowChoice::One { workflow_id } => std::slice::from_ref(workflow_id),
            WorkflowChoice::Matching { filter } => &filter.workflow_ids,
        }
    }

    /// The words that workflows are filed under.
    pub fn tags(&self) -> &[String] {
        match self {
            WorkflowChoice::One { .. } => &[],
            WorkflowChoice::Matching { filter } => &filter.tags,
        }
    }

    /// Whether a workflow is among those that the tags choose.
    pub fn chooses(&self, workflow: &Workflow) -> bool {
        workflow.tags.iter().any(|tag| self.tags().contains(tag))
    }
}

impl WorkflowVerdict {
    /// The verdicts, of several about the same workflow the last one in the place of the first.
    /// Refuses to say something about more workflows than a subscription can.
    pub fn last_of_each(verdicts: Vec<Self>) -> Result<Vec<Self>, Invalid> {
        let mut places: HashMap<WorkflowId, usize> = HashMap::new();
        let mut last: Vec<Self> = Vec::new();
        for verdict in verdicts {
            let place = *places.entry(verdict.workflow_id).or_insert(last.len());
            match last.get_mut(place) {
                Some(before) => *before = verdict,
                None => last.push(verdict),
            }
        }
        at_most_items("preferences", &last, Subscription::MAX_PREFERENCES)?;
        Ok(last)
    }
}

impl WorkflowWord {
    /// The same about one of its workflows.
    pub fn about(&self, workflow_id: WorkflowId) -> WorkflowVerdict {
        let Self { enabled, condition, .. } = self.clone();
        WorkflowVerdict { workflow_id, enabled, condition }
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
    /// Refuses a request for nothing, or for too much.
    pub fn check(&self) -> Result<(), Invalid> {
        check_items(&self.subscriptions)
    }
}

impl SubscriptionUpdate {
    /// Refuses something that is too long.
    pub fn check(&self) -> Result<(), Invalid> {
        if let Patch::Set(name) = &self.name {
            check_name(name)?;
        }
        self.preferences.as_deref().map_or(Ok(()), check_words)
    }
}

impl SubscriptionError {
    /// There is no such subscriber.
    pub fn subscriber_not_found(id: &SubscriberId) -> Self {
        Self {
            subscriber_id: id.to_string(),
            code: SubscriptionErrorCode::SubscriberNotFound,
            message: format!("subscriber `{id}` is not there"),
        }
    }

    /// There is no such subscription.
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

    /// The subscriber is in the topic as often as it may be.
    pub fn limit_exceeded(id: &SubscriberId) -> Self {
        let max = Subscription::MAX_OF_SUBSCRIBER;
        Self {
            subscriber_id: id.to_string(),
            code: SubscriptionErrorCode::SubscriptionLimitExceeded,
            message: format!("subscriber `{id}` has {max} subscriptions, the most in a topic"),
        }
    }

    /// The identifier is that of another subscription.
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
    /// What came of a request that worked for `data` and not for others.
    pub fn new(data: Vec<Subscription>, errors: Vec<SubscriptionError>) -> Self {
        let (successful, failed) = (data.len(), errors.len());
        let meta = SubscriptionMeta { total_count: successful + failed, successful, failed };
        Self { data, meta, errors }
    }
}

impl SubscriptionQuery {
    /// What the list can be sorted by.
    pub const ORDERS: &[OrderBy] = &[OrderBy::Id];
}

fn check_items<T>(items: &[T]) -> Result<(), Invalid> {
    if items.is_empty() {
        return Err(Invalid::new("subscriptions", Reason::Empty));
    }
    at_most_items("subscriptions", items, Subscribe::MAX)
}

fn check_words(words: &[WorkflowWord]) -> Result<(), Invalid> {
    at_most_items("preferences", words, Subscribe::MAX)?;
    for (index, word) in words.iter().enumerate() {
        if let WorkflowChoice::Matching { filter } = &word.workflows {
            filter.check().map_err(|bad| bad.within(format!("preferences[{index}].filter")))?;
        }
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
