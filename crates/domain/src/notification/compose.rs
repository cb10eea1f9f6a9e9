//! Queries of the activity list as a program writes them.

use super::NotificationQuery;
use crate::context::ContextKey;
use crate::ids::{SubscriberId, SubscriptionIdentifier, TopicKey, TransactionId};
use crate::setters::setters;
use crate::time::Timestamp;
use crate::vocabulary::{JobType, Severity};

setters! { NotificationQuery:
    /// Lists those whose workflow does one of these.
    channels: each(JobType);
    /// Lists those of one of these workflows, by id or identifier.
    templates: each(String);
    /// Lists those for a subscriber with exactly one of these addresses.
    emails: each(String);
    /// Lists those for a subscriber of this id, or with this text in the address. Deprecated.
    search: into(String);
    /// Lists those for one of these subscribers.
    subscriber_ids: each_checked(SubscriberId, "subscriberIds");
    /// Lists those of one of these severities.
    severity: each(Severity);
    /// Sets which page is asked for, counting from 0.
    page: exact(u32);
    /// Sets how many notifications the page has at most: 1 to 50.
    limit: exact(u32);
    /// Lists those of this event.
    transaction_id: checked(TransactionId, "transactionId");
    /// Lists those that came through this topic.
    topic_key: checked(TopicKey, "topicKey");
    /// Lists those that came through this subscription.
    subscription_id: checked(SubscriptionIdentifier, "subscriptionId");
    /// Lists those about exactly these contexts, as in `tenant:acme`.
    context_keys: each_checked(ContextKey, "contextKeys");
    /// Lists those triggered then or later.
    after: exact(Timestamp);
    /// Lists those triggered then or earlier.
    before: exact(Timestamp);
}
