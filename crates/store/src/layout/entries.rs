//! Where each record lies, and which index entries lead to it.

use domain::context::Context;
use domain::environment::Environment;
use domain::integration::Integration;
use domain::message::Message;
use domain::notification::Notification;
use domain::preference::{PreferenceScope, SubscriberPreference};
use domain::subscriber::Subscriber;
use domain::trigger::AcceptedTrigger;
use domain::vocabulary::Channel;
use domain::workflow::Workflow;

use super::{
    Table, api_key, context, environment_id, environments, integration, integration_identifier,
    message, notification, preference, subscriber, subscriber_emails, subscriber_id,
    subscriber_notifications, transaction, transaction_notifications, workflow,
    workflow_identifier, workflow_notifications, workflow_preferences,
};
use crate::records::{Entries, Record};
use crate::{Key, Prefix};

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
        if self.channel != Channel::InApp {
            return;
        }
        entries.add(Table::InboxMessages, self.key());
        if !self.stage.is_seen() {
            entries.add(Table::UnseenMessages, self.key());
        }
        if !self.stage.is_read() {
            entries.add(Table::UnreadMessages, self.key());
        }
    }
}
