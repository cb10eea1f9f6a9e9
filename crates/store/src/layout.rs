//! The layout on disk: every table, and every key in it.
//!
//! | table                       | key                                                | value |
//! |-----------------------------|----------------------------------------------------|-------|
//! | `environments`              | organization, environment                          | [`Environment`](domain::environment::Environment) |
//! | `environment_ids`           | environment                                        | key into `environments` |
//! | `api_keys`                  | hash of the API key                                | key into `environments` |
//! | `subscribers`               | environment, subscriber by its own name            | [`Subscriber`](domain::subscriber::Subscriber) |
//! | `subscriber_ids`            | environment, subscriber                            | key into `subscribers` |
//! | `subscriber_emails`         | environment, e-mail address, subscriber            | key into `subscribers` |
//! | `workflows`                 | environment, workflow                              | [`Workflow`](domain::workflow::Workflow) |
//! | `workflow_identifiers`      | environment, identifier                            | key into `workflows` |
//! | `integrations`              | environment, integration                           | [`Integration`](domain::integration::Integration) |
//! | `integration_identifiers`   | environment, identifier, unless it is deleted      | key into `integrations` |
//! | `contexts`                  | environment, type, id                              | [`Context`](domain::context::Context) |
//! | `preferences`               | environment, subscriber, context set, workflow (nil: all of them) | [`SubscriberPreference`](domain::preference::SubscriberPreference) |
//! | `workflow_preferences`      | environment, workflow, subscriber, context set     | key into `preferences` |
//! | `transactions`              | environment, transaction                           | [`AcceptedTrigger`](domain::trigger::AcceptedTrigger) |
//! | `notifications`             | environment, notification                          | [`Notification`](domain::notification::Notification) |
//! | `subscriber_notifications`  | environment, subscriber, notification              | key into `notifications` |
//! | `workflow_notifications`    | environment, workflow, notification                | key into `notifications` |
//! | `transaction_notifications` | environment, transaction, notification             | key into `notifications` |
//! | `due`                       | time, environment, notification                    | key into `notifications` |
//! | `messages`                  | environment, subscriber, message                   | [`Message`](domain::message::Message) |
//! | `inbox_messages`            | environment, subscriber, message, if in the inbox  | key into `messages` |
//! | `unseen_messages`           | the same, if it was not seen                       | key into `messages` |
//! | `unread_messages`           | the same, if it was not read                       | key into `messages` |
//!
//! Every key starts with its environment, so that a look-up that forgets its scope cannot be
//! written; what is found before the environment is known, and what is due in any of them, are the
//! exceptions. Ids are in order of creation, so that lists by id are lists by time.
//!
//! Nothing outside this file spells out a key. Changing a row here changes the format on disk:
//! raise [`FORMAT`], and teach the tests the old one.

mod entries;

use std::ops::Bound;

use domain::context::{ContextKey, ContextSet};
use domain::ids::{
    EnvironmentId, IntegrationId, IntegrationIdentifier, InternalSubscriberId, MessageId,
    NotificationId, OrganizationId, SubscriberId, TransactionId, WorkflowId, WorkflowIdentifier,
};
use domain::time::Timestamp;
use uuid::Uuid;

use crate::{Key, KeyRange, Prefix};

/// The version of this layout. A file says which one it was written with.
pub const FORMAT: u32 = 1;

/// Names a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[expect(missing_docs, reason = "the table in the module's doc says it")]
pub enum Table {
    Environments,
    EnvironmentIds,
    ApiKeys,
    Subscribers,
    SubscriberIds,
    SubscriberEmails,
    Workflows,
    WorkflowIdentifiers,
    Integrations,
    IntegrationIdentifiers,
    Contexts,
    Preferences,
    WorkflowPreferences,
    Transactions,
    Notifications,
    SubscriberNotifications,
    WorkflowNotifications,
    TransactionNotifications,
    Due,
    Messages,
    InboxMessages,
    UnseenMessages,
    UnreadMessages,
}

impl Table {
    /// Every table, in the order of their numbers.
    pub const ALL: [Table; 23] = [
        Table::Environments,
        Table::EnvironmentIds,
        Table::ApiKeys,
        Table::Subscribers,
        Table::SubscriberIds,
        Table::SubscriberEmails,
        Table::Workflows,
        Table::WorkflowIdentifiers,
        Table::Integrations,
        Table::IntegrationIdentifiers,
        Table::Contexts,
        Table::Preferences,
        Table::WorkflowPreferences,
        Table::Transactions,
        Table::Notifications,
        Table::SubscriberNotifications,
        Table::WorkflowNotifications,
        Table::TransactionNotifications,
        Table::Due,
        Table::Messages,
        Table::InboxMessages,
        Table::UnseenMessages,
        Table::UnreadMessages,
    ];

    /// The name of the table on disk.
    pub const fn name(self) -> &'static str {
        match self {
            Table::Environments => "environments",
            Table::EnvironmentIds => "environment_ids",
            Table::ApiKeys => "api_keys",
            Table::Subscribers => "subscribers",
            Table::SubscriberIds => "subscriber_ids",
            Table::SubscriberEmails => "subscriber_emails",
            Table::Workflows => "workflows",
            Table::WorkflowIdentifiers => "workflow_identifiers",
            Table::Integrations => "integrations",
            Table::IntegrationIdentifiers => "integration_identifiers",
            Table::Contexts => "contexts",
            Table::Preferences => "preferences",
            Table::WorkflowPreferences => "workflow_preferences",
            Table::Transactions => "transactions",
            Table::Notifications => "notifications",
            Table::SubscriberNotifications => "subscriber_notifications",
            Table::WorkflowNotifications => "workflow_notifications",
            Table::TransactionNotifications => "transaction_notifications",
            Table::Due => "due",
            Table::Messages => "messages",
            Table::InboxMessages => "inbox_messages",
            Table::UnseenMessages => "unseen_messages",
            Table::UnreadMessages => "unread_messages",
        }
    }
}

/// The environments of an organization.
pub fn environments(organization: &OrganizationId) -> Prefix {
    Prefix::all().text(organization.as_str())
}

/// The entry of an environment in [`Table::EnvironmentIds`].
pub fn environment_id(id: EnvironmentId) -> Key {
    scope(id).end()
}

/// The entry of an API key in [`Table::ApiKeys`].
pub fn api_key(hash: &str) -> Key {
    Prefix::all().text(hash).end()
}

/// A subscriber.
pub fn subscriber(environment: EnvironmentId, id: &SubscriberId) -> Key {
    scope(environment).text(id.as_str()).end()
}

/// The subscribers of an environment in [`Table::SubscriberIds`], oldest first.
pub fn subscriber_ids(environment: EnvironmentId) -> Prefix {
    scope(environment)
}

/// The entry of a subscriber in [`Table::SubscriberIds`].
pub fn subscriber_id(environment: EnvironmentId, id: InternalSubscriberId) -> Key {
    scope(environment).id(id).end()
}

/// The subscribers with an address in [`Table::SubscriberEmails`].
pub fn subscriber_emails(environment: EnvironmentId, email: &str) -> Prefix {
    scope(environment).text(email)
}

/// A workflow.
pub fn workflow(environment: EnvironmentId, id: WorkflowId) -> Key {
    scope(environment).id(id).end()
}

/// The workflows of an environment, oldest first.
pub fn workflows(environment: EnvironmentId) -> Prefix {
    scope(environment)
}

/// The entry of a workflow in [`Table::WorkflowIdentifiers`].
pub fn workflow_identifier(environment: EnvironmentId, identifier: &WorkflowIdentifier) -> Key {
    scope(environment).text(identifier.as_str()).end()
}

/// An integration.
pub fn integration(environment: EnvironmentId, id: IntegrationId) -> Key {
    scope(environment).id(id).end()
}

/// The integrations of an environment, oldest first, with those that are deleted.
pub fn integrations(environment: EnvironmentId) -> Prefix {
    scope(environment)
}

/// The entry of an integration in [`Table::IntegrationIdentifiers`].
pub fn integration_identifier(
    environment: EnvironmentId,
    identifier: &IntegrationIdentifier,
) -> Key {
    scope(environment).text(identifier.as_str()).end()
}

/// A context.
pub fn context(environment: EnvironmentId, key: &ContextKey) -> Key {
    scope(environment).text(key.kind()).text(key.id()).end()
}

/// The preferences of a subscriber.
pub fn preferences(environment: EnvironmentId, subscriber: InternalSubscriberId) -> Prefix {
    scope(environment).id(subscriber)
}

/// The preferences of a subscriber for a context set.
pub fn preferences_for(
    environment: EnvironmentId,
    subscriber: InternalSubscriberId,
    contexts: &ContextSet,
) -> Prefix {
    preferences(environment, subscriber).text(&contexts.canonical())
}

/// The preference of a subscriber for a context set about one workflow, or about all of them.
pub fn preference(
    environment: EnvironmentId,
    subscriber: InternalSubscriberId,
    contexts: &ContextSet,
    workflow: Option<WorkflowId>,
) -> Key {
    let workflow = workflow.map_or(Uuid::nil(), Uuid::from);
    preferences_for(environment, subscriber, contexts).id(workflow).end()
}

/// The preferences about a workflow in [`Table::WorkflowPreferences`].
pub fn workflow_preferences(environment: EnvironmentId, workflow: WorkflowId) -> Prefix {
    scope(environment).id(workflow)
}

/// What came of a trigger.
pub fn transaction(environment: EnvironmentId, id: &TransactionId) -> Key {
    scope(environment).text(id.as_str()).end()
}

/// A notification.
pub fn notification(environment: EnvironmentId, id: NotificationId) -> Key {
    scope(environment).id(id).end()
}

/// The notifications of an environment, oldest first.
pub fn notifications(environment: EnvironmentId) -> Prefix {
    scope(environment)
}

/// The notifications for a subscriber in [`Table::SubscriberNotifications`], oldest first.
pub fn subscriber_notifications(
    environment: EnvironmentId,
    subscriber: InternalSubscriberId,
) -> Prefix {
    scope(environment).id(subscriber)
}

/// The notifications of a workflow in [`Table::WorkflowNotifications`], oldest first.
pub fn workflow_notifications(environment: EnvironmentId, workflow: WorkflowId) -> Prefix {
    scope(environment).id(workflow)
}

/// The notifications of a trigger in [`Table::TransactionNotifications`], oldest first.
pub fn transaction_notifications(environment: EnvironmentId, id: &TransactionId) -> Prefix {
    scope(environment).text(id.as_str())
}

/// What is due at `now`, in [`Table::Due`].
pub fn due_until(now: Timestamp) -> KeyRange {
    let due = Prefix::all().time(now).range();
    (Bound::Unbounded, due.1)
}

/// A message.
pub fn message(environment: EnvironmentId, subscriber: InternalSubscriberId, id: MessageId) -> Key {
    messages(environment, subscriber).id(id).end()
}

/// The messages of a subscriber, oldest first; also those in [`Table::InboxMessages`],
/// [`Table::UnseenMessages`] and [`Table::UnreadMessages`].
pub fn messages(environment: EnvironmentId, subscriber: InternalSubscriberId) -> Prefix {
    scope(environment).id(subscriber)
}

fn scope(environment: EnvironmentId) -> Prefix {
    Prefix::all().id(environment)
}
