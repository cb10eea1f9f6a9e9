//! Constructors and setters of subscriptions.

use super::{
    Subscribe, SubscribeItem, SubscriptionQuery, SubscriptionUpdate, Unsubscribe, UnsubscribeItem,
    WorkflowChoice, WorkflowFilter, WorkflowSetting,
};
use crate::condition::Rule;
use crate::context::ContextKey;
use crate::convert::IntoChecked;
use crate::error::Invalid;
use crate::ids::{SubscriberId, SubscriptionIdentifier, WorkflowRef};
use crate::setters::{context_setter, page_setters, setters};

impl Subscribe {
    /// Returns a request for one subscriber: the id or a [`SubscribeItem`].
    pub fn new(item: impl IntoChecked<SubscribeItem>) -> Result<Self, Invalid> {
        Self::default().subscription(item)
    }

    /// Adds a subscriber, by the id or by a [`SubscribeItem`]: at most 100.
    pub fn subscription(mut self, item: impl IntoChecked<SubscribeItem>) -> Result<Self, Invalid> {
        let place = format!("subscriptions[{}]", self.subscriptions.len());
        self.subscriptions.push(item.into_checked().map_err(|invalid| invalid.named(place))?);
        Ok(self)
    }
}

setters! { Subscribe:
    /// Sets the subscribers: 1 to 100.
    subscriptions: each_checked(SubscribeItem, "subscriptions");
    /// Sets the display name of the topic, if the request creates it.
    name: into(String);
    /// Adds a setting for some workflows: at most 100.
    preference @ preferences: push(WorkflowSetting);
    /// Sets the settings for workflows: at most 100.
    preferences: each(WorkflowSetting);
}

context_setter!(Subscribe);

impl SubscribeItem {
    /// Returns a subscriber whose subscription has no name.
    pub fn new(subscriber_id: impl IntoChecked<SubscriberId>) -> Result<Self, Invalid> {
        subscriber_id.into_checked().map(Self::from)
    }
}

setters! { SubscribeItem:
    /// Sets the identifier of the subscription: at most 512 characters.
    identifier: checked(SubscriptionIdentifier, "identifier");
    /// Sets the display name of the subscription: at most 255 characters.
    name: into(String);
}

impl WorkflowSetting {
    /// Returns a setting that admits one workflow, by its identifier, id or slug.
    pub fn new(workflow_id: impl Into<WorkflowRef>) -> Self {
        WorkflowChoice::One { workflow_id: workflow_id.into() }.into()
    }

    /// Returns a setting that admits all workflows that match at the time of the call. A workflow that gets the tag
    /// later is not among them, and a tag that no workflow has is not refused.
    pub fn matching(filter: WorkflowFilter) -> Self {
        WorkflowChoice::Matching { filter }.into()
    }
}

setters! { WorkflowSetting:
    /// Admits or rejects the workflows. A condition overrides this.
    enabled: exact(bool);
    /// Sets the condition, which overrides `enabled`.
    condition: within(Rule);
}

impl From<WorkflowChoice> for WorkflowSetting {
    fn from(workflows: WorkflowChoice) -> Self {
        Self { workflows, enabled: true, condition: None }
    }
}

impl From<&str> for WorkflowSetting {
    fn from(workflow_id: &str) -> Self {
        Self::new(workflow_id)
    }
}

setters! { WorkflowFilter:
    /// Selects the workflows with these identifiers, ids or slugs.
    workflow_ids: each(WorkflowRef);
    /// Selects the workflows with one of these tags.
    tags: each(String);
}

impl Unsubscribe {
    /// Returns a request for one item: the id of a subscriber, or an [`UnsubscribeItem`].
    pub fn new(item: impl IntoChecked<UnsubscribeItem>) -> Result<Self, Invalid> {
        Self::default().subscription(item)
    }

    /// Adds an item, the id of a subscriber or an [`UnsubscribeItem`]: at most 100.
    pub fn subscription(
        mut self,
        item: impl IntoChecked<UnsubscribeItem>,
    ) -> Result<Self, Invalid> {
        let place = format!("subscriptions[{}]", self.subscriptions.len());
        self.subscriptions.push(item.into_checked().map_err(|invalid| invalid.named(place))?);
        Ok(self)
    }
}

setters! { Unsubscribe:
    /// Sets the items: 1 to 100.
    subscriptions: each_checked(UnsubscribeItem, "subscriptions");
}

impl UnsubscribeItem {
    /// Returns all subscriptions of a subscriber.
    pub fn subscriber(id: impl IntoChecked<SubscriberId>) -> Result<Self, Invalid> {
        id.into_checked().map(Self::from)
    }

    /// Returns one subscription.
    pub fn subscription(
        identifier: impl IntoChecked<SubscriptionIdentifier>,
    ) -> Result<Self, Invalid> {
        identifier.into_checked().map(Self::from)
    }
}

setters! { SubscriptionUpdate:
    /// Sets the display name: at most 255 characters.
    name: into(String);
    /// Removes the display name.
    clear_name @ name: clear();
    /// Sets the settings for workflows, which replace the stored ones: at most 100.
    preferences: each(WorkflowSetting);
}

setters! { SubscriptionQuery:
    /// Lists the subscriptions of this subscriber.
    subscriber_id: checked(SubscriberId, "subscriberId");
    /// Lists the subscriptions with exactly these contexts, as in `tenant:acme`.
    context_keys: each_checked(ContextKey, "contextKeys");
}

page_setters!(SubscriptionQuery);

impl From<SubscriberId> for SubscribeItem {
    fn from(subscriber_id: SubscriberId) -> Self {
        Self { subscriber_id, identifier: None, name: None }
    }
}

impl From<SubscriberId> for UnsubscribeItem {
    fn from(subscriber_id: SubscriberId) -> Self {
        UnsubscribeItem::Subscriber { subscriber_id }
    }
}

impl From<SubscriptionIdentifier> for UnsubscribeItem {
    fn from(identifier: SubscriptionIdentifier) -> Self {
        UnsubscribeItem::Subscription { identifier }
    }
}

/// Converts ids of subscribers into an item.
macro_rules! from_subscriber {
    ($item:ident from $($id:ty)+) => {
        impl From<&SubscriberId> for $item {
            fn from(id: &SubscriberId) -> Self {
                id.clone().into()
            }
        }

        $(impl TryFrom<$id> for $item {
            type Error = Invalid;

            fn try_from(id: $id) -> Result<Self, Invalid> {
                SubscriberId::new(id.as_ref()).map(Self::from)
            }
        })+
    };
}

from_subscriber!(SubscribeItem from &str String &String);
from_subscriber!(UnsubscribeItem from &str String &String);
