//! Setters of queries of the activity list.

use super::{NotificationOutcome, NotificationQuery};
use crate::context::ContextKey;
use crate::ids::{SubscriberId, SubscriptionIdentifier, TopicKey, TransactionId, WorkflowRef};
use crate::setters::setters;
use crate::time::Timestamp;
use crate::vocabulary::{Severity, StepType};

setters! { NotificationQuery:
    /// Lists the notifications of workflows with one of these step types. An empty list is refused.
    step_types: some_of(StepType, "channels");
    /// Lists the notifications of these workflows, by identifier, id or slug. An empty list is refused.
    workflows: some_of(WorkflowRef, "templates");
    /// Lists the notifications for subscribers whose e-mail address is one of these. Addresses are
    /// compared as a whole, and case counts. An empty list is refused.
    emails: some_of(String, "emails");
    /// Lists the notifications for the subscriber with this id, or with this text in the e-mail address.
    /// Deprecated by the specification: [`subscriber_ids`](Self::subscriber_ids) finds ids, and
    /// [`emails`](Self::emails) whole addresses. Nothing else finds parts of an address.
    search: into(String);
    /// Lists the notifications for these subscribers. An empty list is refused.
    subscriber_ids: some_checked(SubscriberId, "subscriberIds");
    /// Lists the notifications of these severities. An empty list is refused.
    severities: some_of(Severity, "severity");
    /// Sets the number of the page, counting from 0.
    page_number: exact(u32);
    /// Sets the maximum number of notifications on the page: 1 to 50.
    limit: exact(u32);
    /// Lists the notifications of this event.
    transaction_id: checked(TransactionId, "transactionId");
    /// Lists the notifications through this topic.
    topic_key: checked(TopicKey, "topicKey");
    /// Lists the notifications through this subscription.
    subscription_id: checked(SubscriptionIdentifier, "subscriptionId");
    /// Lists the notifications with exactly these contexts, as in `tenant:acme`.
    context_keys: each_checked(ContextKey, "contextKeys");
    /// Lists the notifications with a job of one of these outcomes. An empty list is refused.
    outcomes: some_of(NotificationOutcome, "outcomes");
    /// Lists the notifications triggered at this time or later.
    earliest: exact(Timestamp);
    /// Lists the notifications triggered at this time or earlier.
    latest: exact(Timestamp);
}

impl NotificationQuery {
    /// Returns the query of the notifications of one event, such as the topics of a trigger reach.
    ///
    /// ```
    /// # extern crate tidings_domain as tidings;
    /// # use tidings::notification::NotificationQuery;
    /// # use tidings::ids::TransactionId;
    /// # fn main() -> Result<(), tidings::error::Invalid> {
    /// let id = TransactionId::new("shipped-A-1001")?;
    /// let query = NotificationQuery::of_transaction(&id).limit(50);
    /// assert_eq!(query, NotificationQuery::default().transaction_id(id)?.limit(50));
    /// # Ok(())
    /// # }
    /// ```
    pub fn of_transaction(id: &TransactionId) -> Self {
        Self { transaction_id: Some(id.clone()), ..Self::default() }
    }
}
