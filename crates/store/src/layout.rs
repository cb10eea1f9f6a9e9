//! The layout on disk: every table, and every key in it.
//!
//! | table                       | key                                                | value |
//! |-----------------------------|----------------------------------------------------|-------|
//! | `environments`              | organization, environment                          | [`Environment`] |
//! | `environment_ids`           | environment                                        | key into `environments` |
//! | `api_keys`                  | hash of the API key                                | key into `environments` |
//! | `subscribers`               | environment, subscriber by its own name            | [`Subscriber`] |
//! | `subscriber_ids`            | environment, subscriber                            | key into `subscribers` |
//! | `subscriber_emails`         | environment, e-mail address, subscriber            | key into `subscribers` |
//! | `workflows`                 | environment, workflow                              | [`Workflow`] |
//! | `workflow_identifiers`      | environment, identifier                            | key into `workflows` |
//! | `integrations`              | environment, integration                           | [`Integration`] |
//! | `integration_identifiers`   | environment, identifier, unless it is deleted      | key into `integrations` |
//! | `contexts`                  | environment, type, id                              | [`Context`] |
//! | `preferences`               | environment, subscriber, context set, workflow (nil: all of them) | [`SubscriberPreference`] |
//! | `workflow_preferences`      | environment, workflow, subscriber, context set     | key into `preferences` |
//! | `transactions`              | environment, transaction                           | [`AcceptedTrigger`] |
//! | `notifications`             | environment, notification                          | [`Notification`] |
//! | `subscriber_notifications`  | environment, subscriber, notification              | key into `notifications` |
//! | `workflow_notifications`    | environment, workflow, notification                | key into `notifications` |
//! | `transaction_notifications` | environment, transaction, notification             | key into `notifications` |
//! | `due`                       | time, environment, notification                    | key into `notifications` |
//! | `messages`                  | environment, subscriber, message                   | [`Message`] |
//! | `unseen_messages`           | environment, subscriber, message, if in the inbox  | key into `messages` |
//! | `unread_messages`           | environment, subscriber, message, if in the inbox  | key into `messages` |
//!
//! Every key starts with its environment, so that a look-up that forgets its scope cannot be
//! written; what is found before the environment is known, and what is due in any of them, are the
//! exceptions. Ids are in order of creation, so that lists by id are lists by time.
//!
//! Nothing outside this file spells out a key. Changing a row here changes the format on disk:
//! raise [`FORMAT`], and teach the tests the old one.

use std::ops::Bound;

use domain::context::{Context, ContextKey, ContextSet};
use domain::environment::Environment;
use domain::ids::{
    EnvironmentId, IntegrationId, IntegrationIdentifier, InternalSubscriberId, MessageId,
    NotificationId, OrganizationId, SubscriberId, TransactionId, WorkflowId, WorkflowIdentifier,
};
use domain::integration::Integration;
use domain::message::Message;
use domain::notification::Notification;
use domain::preference::{PreferenceScope, SubscriberPreference};
use domain::subscriber::Subscriber;
use domain::time::Timestamp;
use domain::trigger::AcceptedTrigger;
use domain::vocabulary::Channel;
use domain::workflow::Workflow;
use uuid::Uuid;

use crate::records::{Entries, Record};
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
    UnseenMessages,
    UnreadMessages,
}

impl Table {
    /// Every table, in the order of their numbers.
    pub const ALL: [Table; 22] = [
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

/// What somebody has to look after until `now`, in [`Table::Due`].
pub fn due_until(now: Timestamp) -> KeyRange {
    let behind = now.after(std::time::Duration::from_millis(1));
    (Bound::Unbounded, Bound::Excluded(Prefix::all().time(behind).end().as_bytes().to_vec()))
}

/// A message.
pub fn message(environment: EnvironmentId, subscriber: InternalSubscriberId, id: MessageId) -> Key {
    messages(environment, subscriber).id(id).end()
}

/// The messages of a subscriber, oldest first; also those in [`Table::UnseenMessages`] and
/// [`Table::UnreadMessages`].
pub fn messages(environment: EnvironmentId, subscriber: InternalSubscriberId) -> Prefix {
    scope(environment).id(subscriber)
}

fn scope(environment: EnvironmentId) -> Prefix {
    Prefix::all().id(environment)
}

impl Record for Environment {
    const TABLE: Table = Table::Environments;

    fn key(&self) -> Key {
        environments(&self.organization_id).id(self.id).end()
    }

    fn index(&self, entries: &mut Entries) {
        entries.add(Table::EnvironmentIds, environment_id(self.id));
        for hash in self.api_keys.iter().filter_map(|api_key| api_key.hash.as_deref()) {
            entries.add(Table::ApiKeys, api_key(hash));
        }
    }
}

impl Record for Subscriber {
    const TABLE: Table = Table::Subscribers;

    fn key(&self) -> Key {
        subscriber(self.environment_id, &self.subscriber_id)
    }

    fn index(&self, entries: &mut Entries) {
        entries.add(Table::SubscriberIds, subscriber_id(self.environment_id, self.id));
        if let Some(email) = &self.profile.email {
            let prefix = subscriber_emails(self.environment_id, email.as_str());
            entries.add(Table::SubscriberEmails, prefix.id(self.id).end());
        }
    }
}

impl Record for Workflow {
    const TABLE: Table = Table::Workflows;

    fn key(&self) -> Key {
        workflow(self.environment_id, self.id)
    }

    fn index(&self, entries: &mut Entries) {
        let key = workflow_identifier(self.environment_id, self.identifier());
        entries.add(Table::WorkflowIdentifiers, key);
    }
}

impl Record for Integration {
    const TABLE: Table = Table::Integrations;

    fn key(&self) -> Key {
        integration(self.environment_id, self.id)
    }

    fn index(&self, entries: &mut Entries) {
        if !self.is_deleted() {
            let key = integration_identifier(self.environment_id, &self.identifier);
            entries.add(Table::IntegrationIdentifiers, key);
        }
    }
}

impl Record for Context {
    const TABLE: Table = Table::Contexts;

    fn key(&self) -> Key {
        context(self.environment_id, &self.key)
    }
}

impl Record for SubscriberPreference {
    const TABLE: Table = Table::Preferences;

    fn key(&self) -> Key {
        let workflow = match self.scope {
            PreferenceScope::Global { .. } => None,
            PreferenceScope::Workflow { workflow_id } => Some(workflow_id),
        };
        preference(self.environment_id, self.subscriber_id, &self.context_keys, workflow)
    }

    fn index(&self, entries: &mut Entries) {
        if let PreferenceScope::Workflow { workflow_id } = self.scope {
            let prefix = workflow_preferences(self.environment_id, workflow_id);
            let key = prefix.id(self.subscriber_id).text(&self.context_keys.canonical());
            entries.add(Table::WorkflowPreferences, key.end());
        }
    }
}

impl Record for AcceptedTrigger {
    const TABLE: Table = Table::Transactions;

    fn key(&self) -> Key {
        transaction(self.environment_id, &self.receipt.transaction_id)
    }
}

impl Record for Notification {
    const TABLE: Table = Table::Notifications;

    fn key(&self) -> Key {
        notification(self.environment_id, self.id)
    }

    fn index(&self, entries: &mut Entries) {
        let by_subscriber = subscriber_notifications(self.environment_id, self.subscriber_id);
        entries.add(Table::SubscriberNotifications, by_subscriber.id(self.id).end());
        if let Some(workflow) = self.workflow_id {
            let by_workflow = workflow_notifications(self.environment_id, workflow);
            entries.add(Table::WorkflowNotifications, by_workflow.id(self.id).end());
        }
        let by_transaction = transaction_notifications(self.environment_id, &self.transaction_id);
        entries.add(Table::TransactionNotifications, by_transaction.id(self.id).end());
        if let Some(due_at) = self.due_at() {
            let due = Prefix::all().time(due_at).id(self.environment_id).id(self.id);
            entries.add(Table::Due, due.end());
        }
    }
}

impl Record for Message {
    const TABLE: Table = Table::Messages;

    fn key(&self) -> Key {
        message(self.environment_id, self.subscriber_id, self.id)
    }

    fn index(&self, entries: &mut Entries) {
        if self.channel == Channel::InApp && !self.stage.is_seen() {
            entries.add(Table::UnseenMessages, self.key());
        }
        if self.channel == Channel::InApp && !self.stage.is_read() {
            entries.add(Table::UnreadMessages, self.key());
        }
    }
}
