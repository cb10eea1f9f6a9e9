//! The key of each record, and the index entries that lead to it.

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

use super::keys::channel_list;
use super::{
    CONNECTION_LISTS, DUE, ENDPOINT_LISTS, EXPIRING_ANSWERS, Table, api_key, connection,
    connection_owner, context, context_list, endpoint, environment_id, environments,
    inbox_messages, integration, integration_identifier, layout, layout_id, message, notification,
    preference, stored_answer, subscriber, subscriber_emails, subscriber_id,
    subscriber_subscriptions, subscription, subscription_id, topic, topic_list, topic_subscriber,
    transaction, translation, translation_group, translation_ids, unread_messages, unseen_messages,
    workflow, workflow_identifier, workflow_preferences,
};
use crate::key::{Key, Prefix, TableOf};
use crate::record::{Entries, Record};

impl Record for Environment {
    const TABLE: Table = Table::Environments;

    fn key(&self) -> Key<Self> {
        environments(&self.organization_id).id(self.id).end()
    }

    fn index(&self, entries: &mut Entries<Self>) {
        entries.add(environment_id(self.id));
        for hash in self.api_keys.iter().filter_map(|api_key| api_key.hash.as_deref()) {
            entries.add(api_key(hash));
        }
    }
}

impl Record for Subscriber {
    const TABLE: Table = Table::Subscribers;

    fn key(&self) -> Key<Self> {
        subscriber(self.environment_id, &self.subscriber_id)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        entries.add(subscriber_id(self.environment_id, self.id));
        if let Some(email) = &self.profile.email {
            let prefix = subscriber_emails(self.environment_id, email.as_str());
            entries.add(prefix.id(self.id).end());
        }
    }
}

impl Record for Workflow {
    const TABLE: Table = Table::Workflows;

    fn key(&self) -> Key<Self> {
        workflow(self.environment_id, self.id)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        let key = workflow_identifier(self.environment_id, self.identifier());
        entries.add(key);
    }
}

impl Record for Integration {
    const TABLE: Table = Table::Integrations;

    fn key(&self) -> Key<Self> {
        integration(self.environment_id, self.id)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        if !self.is_deleted() {
            let key = integration_identifier(self.environment_id, &self.identifier);
            entries.add(key);
        }
    }
}

impl Record for Context {
    const TABLE: Table = Table::Contexts;

    fn key(&self) -> Key<Self> {
        context(self.environment_id, &self.key)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        let dated = Dated { created_at: self.created_at, updated_at: self.updated_at };
        for kind in [None, Some(self.key.kind())] {
            for order_by in TIMES {
                let list = context_list(self.environment_id, kind, order_by);
                entries.add(dated.sort(list, order_by).id(self.id).end());
            }
        }
    }
}

impl Record for ChannelEndpoint {
    const TABLE: Table = Table::ChannelEndpoints;

    fn key(&self) -> Key<Self> {
        endpoint(self.environment_id, &self.identifier)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        let dated = Dated { created_at: self.created_at, updated_at: self.updated_at };
        let lists = channel_lists(
            &ENDPOINT_LISTS,
            (self.environment_id, self.integration_id),
            (Some(&self.subscriber_id), &self.context_keys),
        );
        for (order_by, list) in lists {
            entries.add(dated.sort(list, order_by).id(self.id).end());
        }
    }
}

impl Record for ChannelConnection {
    const TABLE: Table = Table::ChannelConnections;

    fn key(&self) -> Key<Self> {
        connection(self.environment_id, &self.identifier)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        let (environment, integration) = (self.environment_id, self.integration_id);
        let (subscriber, contexts) = (self.subscriber_id.as_ref(), &self.context_keys);
        let owner = connection_owner(environment, integration, subscriber, contexts);
        entries.add(owner);
        let dated = Dated { created_at: self.created_at, updated_at: self.updated_at };
        let lists =
            channel_lists(&CONNECTION_LISTS, (environment, integration), (subscriber, contexts));
        for (order_by, list) in lists {
            entries.add(dated.sort(list, order_by).id(self.id).end());
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
    // The place in `list` of a record, sorted by one of these times, or by its id or key.
    fn sort<R>(&self, list: Prefix<R>, order_by: OrderBy) -> Prefix<R> {
        match order_by {
            OrderBy::CreatedAt => list.time(self.created_at),
            OrderBy::UpdatedAt => list.time(self.updated_at),
            OrderBy::Id | OrderBy::Key => list,
        }
    }
}

// Every list that an endpoint or a connection of this owner is in.
fn channel_lists<R>(
    table: &TableOf<R>,
    (environment, integration): (EnvironmentId, IntegrationId),
    (subscriber, contexts): (Option<&SubscriberId>, &ContextSet),
) -> Vec<(OrderBy, Prefix<R>)> {
    let mut lists = Vec::with_capacity(12);
    for order_by in TIMES {
        for subscriber in [None].into_iter().chain(subscriber.map(Some)) {
            for contexts in [None, Some(contexts)] {
                let list =
                    channel_list(table, environment, order_by, integration, subscriber, contexts);
                lists.push((order_by, list));
            }
        }
    }
    lists
}

impl Record for Topic {
    const TABLE: Table = Table::Topics;

    fn key(&self) -> Key<Self> {
        topic(self.environment_id, &self.key)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        let dated = Dated { created_at: self.created_at, updated_at: self.updated_at };
        let (key, name) = (fold(self.key.as_str()), fold(self.name.as_deref().unwrap_or_default()));
        for order_by in TopicQuery::ORDERS.iter().copied() {
            let list = dated.sort(topic_list(self.environment_id, order_by), order_by);
            let sorted = match order_by {
                OrderBy::Key => list.text(self.key.as_str()),
                OrderBy::Id | OrderBy::CreatedAt | OrderBy::UpdatedAt => list.id(self.id),
            };
            entries.add(sorted.text(&key).text(&name).end());
        }
    }
}

impl Record for Subscription {
    const TABLE: Table = Table::Subscriptions;

    fn key(&self) -> Key<Self> {
        subscription(self.environment_id, self.topic_id, &self.identifier)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        let (environment, topic) = (self.environment_id, self.topic_id);
        let subscriber = self.internal_subscriber_id;
        entries.add(subscription_id(environment, topic, self.id));
        let by_topic = topic_subscriber(environment, topic, subscriber);
        entries.add(by_topic.id(self.id).end());
        let by_subscriber = subscriber_subscriptions(environment, subscriber);
        entries.add(by_subscriber.id(topic).id(self.id).end());
    }
}

impl Record for Layout {
    const TABLE: Table = Table::Layouts;

    fn key(&self) -> Key<Self> {
        layout(self.environment_id, &self.layout_id)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        entries.add(layout_id(self.environment_id, self.id));
    }
}

impl Record for Translation {
    const TABLE: Table = Table::Translations;

    fn key(&self) -> Key<Self> {
        translation(self.environment_id, &self.resource, &self.locale)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        let key = translation_ids(self.environment_id).id(self.id).end();
        entries.add(key);
    }
}

impl Record for TranslationGroup {
    const TABLE: Table = Table::TranslationGroups;

    fn key(&self) -> Key<Self> {
        translation_group(self.environment_id, &self.resource)
    }
}

impl Record for StoredAnswer {
    const TABLE: Table = Table::StoredAnswers;

    fn key(&self) -> Key<Self> {
        stored_answer(self.environment_id, &self.key)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        let expires = EXPIRING_ANSWERS.within(self.environment_id).time(self.expires_at());
        entries.add(expires.text(self.key.as_str()).end());
    }
}

impl Record for SubscriberPreference {
    const TABLE: Table = Table::Preferences;

    fn key(&self) -> Key<Self> {
        let workflow = match self.scope {
            PreferenceScope::Global { .. } => None,
            PreferenceScope::Workflow { workflow_id } => Some(workflow_id),
        };
        preference(self.environment_id, self.subscriber_id, &self.context_keys, workflow)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        if let PreferenceScope::Workflow { workflow_id } = self.scope {
            let prefix = workflow_preferences(self.environment_id, workflow_id);
            let key = prefix.id(self.subscriber_id).text(&self.context_keys.canonical());
            entries.add(key.end());
        }
    }
}

impl Record for AcceptedTrigger {
    const TABLE: Table = Table::Transactions;

    fn key(&self) -> Key<Self> {
        transaction(self.environment_id, &self.receipt.transaction_id)
    }
}

impl Record for Notification {
    const TABLE: Table = Table::Notifications;

    fn key(&self) -> Key<Self> {
        notification(self.environment_id, self.id.ordinal())
    }

    // Its jobs have short logs at first. Five of these with three jobs fill a page.
    fn reserved_len(&self) -> usize {
        240 + 180 * self.jobs.len()
    }

    fn index(&self, entries: &mut Entries<Self>) {
        if let Some(due_at) = self.due_at() {
            let due = DUE.all().time(due_at).id(self.environment_id).id(self.id);
            entries.add(due.end());
        }
    }
}

impl Record for Message {
    const TABLE: Table = Table::Messages;

    fn key(&self) -> Key<Self> {
        message(self.environment_id, self.subscriber_id, self.id)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        if self.channel != Channel::InApp {
            return;
        }
        let (environment, subscriber) = (self.environment_id, self.subscriber_id);
        entries.add(inbox_messages(environment, subscriber).id(self.id).end());
        if !self.stage.is_seen() {
            entries.add(unseen_messages(environment, subscriber).id(self.id).end());
        }
        if !self.stage.is_read() {
            entries.add(unread_messages(environment, subscriber).id(self.id).end());
        }
    }
}
