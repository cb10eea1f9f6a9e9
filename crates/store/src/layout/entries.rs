//! Where each record lies, and which index entries lead to it.

use domain::connection::ChannelConnection;
use domain::context::{Context, ContextSet};
use domain::endpoint::ChannelEndpoint;
use domain::environment::Environment;
use domain::idempotency::StoredAnswer;
use domain::ids::{EnvironmentId, IntegrationId, SubscriberId};
use domain::integration::Integration;
use domain::layout::Layout;
use domain::message::Message;
use domain::notification::Notification;
use domain::page::OrderBy;
use domain::preference::{PreferenceScope, SubscriberPreference};
use domain::subscriber::Subscriber;
use domain::subscription::Subscription;
use domain::time::Timestamp;
use domain::topic::{Topic, TopicQuery, fold};
use domain::translation::{Translation, TranslationGroup};
use domain::trigger::AcceptedTrigger;
use domain::vocabulary::Channel;
use domain::workflow::Workflow;

use super::{
    Table, api_key, channel_list, connection, connection_owner, context, context_list, endpoint,
    environment_id, environments, integration, integration_identifier, layout, layout_id, message,
    notification, preference, scope, stored_answer, subscriber, subscriber_emails, subscriber_id,
    subscriber_subscriptions, subscription, subscription_id, topic, topic_list, topic_subscriber,
    transaction, translation, translation_group, translation_ids, workflow, workflow_identifier,
    workflow_preferences,
};
use crate::record::{Entries, Record};
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

    fn index(&self, entries: &mut Entries) {
        let dated = Dated { created_at: self.created_at, updated_at: self.updated_at };
        for kind in [None, Some(self.key.kind())] {
            for order_by in TIMES {
                let list = context_list(self.environment_id, kind, order_by);
                entries.add(Table::ContextLists, dated.sort(list, order_by).id(self.id).end());
            }
        }
    }
}

impl Record for ChannelEndpoint {
    const TABLE: Table = Table::ChannelEndpoints;

    fn key(&self) -> Key {
        endpoint(self.environment_id, &self.identifier)
    }

    fn index(&self, entries: &mut Entries) {
        let dated = Dated { created_at: self.created_at, updated_at: self.updated_at };
        let lists = channel_lists(
            (self.environment_id, self.integration_id),
            (Some(&self.subscriber_id), &self.context_keys),
        );
        for (order_by, list) in lists {
            entries.add(Table::EndpointLists, dated.sort(list, order_by).id(self.id).end());
        }
    }
}

impl Record for ChannelConnection {
    const TABLE: Table = Table::ChannelConnections;

    fn key(&self) -> Key {
        connection(self.environment_id, &self.identifier)
    }

    fn index(&self, entries: &mut Entries) {
        let (environment, integration) = (self.environment_id, self.integration_id);
        let (subscriber, contexts) = (self.subscriber_id.as_ref(), &self.context_keys);
        let owner = connection_owner(environment, integration, subscriber, contexts);
        entries.add(Table::ConnectionOwners, owner);
        let dated = Dated { created_at: self.created_at, updated_at: self.updated_at };
        for (order_by, list) in channel_lists((environment, integration), (subscriber, contexts)) {
            entries.add(Table::ConnectionLists, dated.sort(list, order_by).id(self.id).end());
        }
    }
}

// The times that a record is sorted by.
struct Dated {
    created_at: Timestamp,
    updated_at: Timestamp,
}

// The orders that lists of dated records can have.
const TIMES: [OrderBy; 3] = [OrderBy::CreatedAt, OrderBy::UpdatedAt, OrderBy::Id];

impl Dated {
    // The place in `list` of what is sorted by one of these times, or by nothing but its id or key.
    fn sort(&self, list: Prefix, order_by: OrderBy) -> Prefix {
        match order_by {
            OrderBy::CreatedAt => list.time(self.created_at),
            OrderBy::UpdatedAt => list.time(self.updated_at),
            OrderBy::Id | OrderBy::Key => list,
        }
    }
}

// Every list that an endpoint or a connection of this owner is in.
fn channel_lists(
    (environment, integration): (EnvironmentId, IntegrationId),
    (subscriber, contexts): (Option<&SubscriberId>, &ContextSet),
) -> Vec<(OrderBy, Prefix)> {
    let mut lists = Vec::with_capacity(12);
    for order_by in TIMES {
        for subscriber in [None].into_iter().chain(subscriber.map(Some)) {
            for contexts in [None, Some(contexts)] {
                let list = channel_list(environment, order_by, integration, subscriber, contexts);
                lists.push((order_by, list));
            }
        }
    }
    lists
}

impl Record for Topic {
    const TABLE: Table = Table::Topics;

    fn key(&self) -> Key {
        topic(self.environment_id, &self.key)
    }

    fn index(&self, entries: &mut Entries) {
        let dated = Dated { created_at: self.created_at, updated_at: self.updated_at };
        let (key, name) = (fold(self.key.as_str()), fold(self.name.as_deref().unwrap_or_default()));
        for order_by in TopicQuery::ORDERS.iter().copied() {
            let list = dated.sort(topic_list(self.environment_id, order_by), order_by);
            let sorted = match order_by {
                OrderBy::Key => list.text(self.key.as_str()),
                OrderBy::Id | OrderBy::CreatedAt | OrderBy::UpdatedAt => list.id(self.id),
            };
            entries.add(Table::TopicLists, sorted.text(&key).text(&name).end());
        }
    }
}

impl Record for Subscription {
    const TABLE: Table = Table::Subscriptions;

    fn key(&self) -> Key {
        subscription(self.environment_id, self.topic_id, &self.identifier)
    }

    fn index(&self, entries: &mut Entries) {
        let (environment, topic) = (self.environment_id, self.topic_id);
        let subscriber = self.internal_subscriber_id;
        entries.add(Table::SubscriptionIds, subscription_id(environment, topic, self.id));
        let by_topic = topic_subscriber(environment, topic, subscriber);
        entries.add(Table::TopicSubscribers, by_topic.id(self.id).end());
        let by_subscriber = subscriber_subscriptions(environment, subscriber);
        entries.add(Table::SubscriberSubscriptions, by_subscriber.id(topic).id(self.id).end());
    }
}

impl Record for Layout {
    const TABLE: Table = Table::Layouts;

    fn key(&self) -> Key {
        layout(self.environment_id, &self.layout_id)
    }

    fn index(&self, entries: &mut Entries) {
        entries.add(Table::LayoutIds, layout_id(self.environment_id, self.id));
    }
}

impl Record for Translation {
    const TABLE: Table = Table::Translations;

    fn key(&self) -> Key {
        translation(self.environment_id, &self.resource, &self.locale)
    }

    fn index(&self, entries: &mut Entries) {
        let key = translation_ids(self.environment_id).id(self.id).end();
        entries.add(Table::TranslationIds, key);
    }
}

impl Record for TranslationGroup {
    const TABLE: Table = Table::TranslationGroups;

    fn key(&self) -> Key {
        translation_group(self.environment_id, &self.resource)
    }
}

impl Record for StoredAnswer {
    const TABLE: Table = Table::StoredAnswers;

    fn key(&self) -> Key {
        stored_answer(self.environment_id, &self.key)
    }

    fn index(&self, entries: &mut Entries) {
        let expires = scope(self.environment_id).time(self.expires_at());
        entries.add(Table::ExpiringAnswers, expires.text(self.key.as_str()).end());
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
        notification(self.environment_id, self.id.ordinal())
    }

    // Its jobs have short logs at first. Five of these with three jobs fill a page.
    fn room(&self) -> usize {
        240 + 180 * self.jobs.len()
    }

    fn index(&self, entries: &mut Entries) {
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
