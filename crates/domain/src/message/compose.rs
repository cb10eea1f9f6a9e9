//! Setters of message queries and of requests for messages.

use serde_json::Value;

use super::{CompleteAction, MessageQuery};
use crate::content::ButtonType;
use crate::context::ContextKey;
use crate::error::Invalid;
use crate::ids::{TransactionId, WorkflowRef};
use crate::json::Object;
use crate::setters::{page_setters, setters};
use crate::time::Timestamp;
use crate::vocabulary::{Channel, Severity};

setters! { MessageQuery:
    /// Lists the messages on this channel.
    channel: exact(Channel);
    /// Lists the messages of this event.
    transaction_id: checked(TransactionId, "transactionId");
    /// Lists the read messages.
    read: flag(true);
    /// Lists the unread messages.
    unread @ read: flag(false);
    /// Lists the seen messages.
    seen: flag(true);
    /// Lists the unseen messages.
    unseen @ seen: flag(false);
    /// Lists the archived messages.
    archived: flag(true);
    /// Lists the snoozed messages.
    snoozed: flag(true);
    /// Lists the messages with one of these tags: 1 to 100. Replaces the tags of earlier calls, also
    /// those of [`and_tags`](Self::and_tags). An empty list is refused.
    tags: each(String);
    /// Lists the messages that were created at this time or later.
    earliest: exact(Timestamp);
    /// Lists the messages that were created at this time or earlier.
    latest: exact(Timestamp);
    /// Lists the messages of these severities. An empty list is refused.
    severities: some_of(Severity, "severity");
    /// Lists the messages with exactly these contexts, as in `tenant:acme`.
    context_keys: each_checked(ContextKey, "contextKeys");
    /// Lists the messages of these workflows, by identifier, id or slug: 1 to 100.
    workflows: some_of(WorkflowRef, "templates");
}

page_setters!(MessageQuery);

impl MessageQuery {
    /// Lists those of the messages that also have one of these tags. At most 30 groups, with 200 tags.
    #[must_use]
    pub fn and_tags(mut self, tags: impl IntoIterator<Item: Into<String>>) -> Self {
        self.tags.add(tags.into_iter().map(Into::into).collect());
        self
    }

    /// Lists the messages whose payload has one of these values under `name`, which may be a path such as
    /// `order.status`. A second call for a name demands one of its values as well. A list or an object is
    /// refused.
    pub fn data(
        mut self,
        name: impl Into<String>,
        values: impl IntoIterator<Item: Into<Value>>,
    ) -> Result<Self, Invalid> {
        self.data.add(name.into(), values.into_iter().map(Into::into).collect())?;
        Ok(self)
    }
}

impl CompleteAction {
    /// Returns a request that completes the action of a button.
    pub fn new(kind: ButtonType) -> Self {
        Self { kind, payload: None }
    }
}

setters! { CompleteAction:
    /// Sets the data that comes with the choice.
    payload: checked(Object, "payload");
}
