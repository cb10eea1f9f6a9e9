//! The keys: the function that makes each of them, and beside it the one that reads it.

use std::ops;

use domain::connection::ChannelConnection;
use domain::contact::Locale;
use domain::context::{Context, ContextKey, ContextSet};
use domain::endpoint::ChannelEndpoint;
use domain::environment::Environment;
use domain::idempotency::StoredAnswer;
use domain::ids::{
    ConnectionIdentifier, EndpointIdentifier, EnvironmentId, IdempotencyKey, IntegrationId,
    IntegrationIdentifier, InternalSubscriberId, LayoutId, LayoutIdentifier, MessageId,
    OrganizationId, SubscriberId, SubscriptionId, SubscriptionIdentifier, TopicId, TopicKey,
    TransactionId, WorkflowId, WorkflowIdentifier,
};
use domain::integration::Integration;
use domain::layout::Layout;
use domain::message::Message;
use domain::notification::{Notification, Ordinal};
use domain::page::OrderBy;
use domain::preference::SubscriberPreference;
use domain::subscriber::Subscriber;
use domain::subscription::Subscription;
use domain::time::Timestamp;
use domain::topic::{FoldedTopic, Topic};
use domain::translation::{Resource, Translation, TranslationGroup};
use domain::trigger::AcceptedTrigger;
use domain::workflow::Workflow;
use uuid::Uuid;

use super::{
    API_KEYS, CHANNEL_CONNECTIONS, CHANNEL_ENDPOINTS, CONNECTION_LISTS, CONNECTION_OWNERS,
    CONTEXT_LISTS, CONTEXTS, DUE, ENDPOINT_LISTS, ENVIRONMENT_IDS, ENVIRONMENTS, EXPIRING_ANSWERS,
    INBOX_MESSAGES, INTEGRATION_IDENTIFIERS, INTEGRATIONS, LAYOUT_IDS, LAYOUTS, MESSAGES,
    NOTIFICATIONS, PREFERENCES, STORED_ANSWERS, SUBSCRIBER_EMAILS, SUBSCRIBER_IDS,
    SUBSCRIBER_SUBSCRIPTIONS, SUBSCRIBERS, SUBSCRIPTION_IDS, SUBSCRIPTIONS, TOPIC_LISTS,
    TOPIC_SUBSCRIBERS, TOPICS, TRANSACTIONS, TRANSLATION_GROUPS, TRANSLATION_IDS, TRANSLATIONS,
    UNREAD_MESSAGES, UNSEEN_MESSAGES, WORKFLOW_IDENTIFIERS, WORKFLOW_PREFERENCES, WORKFLOWS,
};
use crate::key::{Key, Prefix, Range, TableOf};

/// The environments of an organization.
pub fn environments(organization: &OrganizationId) -> Prefix<Environment> {
    ENVIRONMENTS.all().text(organization.as_str())
}

/// An environment, by its id alone.
pub fn environment_id(id: EnvironmentId) -> Key<Environment> {
    ENVIRONMENT_IDS.within(id).end()
}

/// The environment of an API key.
pub fn api_key(hash: &str) -> Key<Environment> {
    API_KEYS.all().text(hash).end()
}

/// A subscriber, by the id that the host gave it.
pub fn subscriber(environment: EnvironmentId, id: &SubscriberId) -> Key<Subscriber> {
    SUBSCRIBERS.within(environment).text(id.as_str()).end()
}

/// The subscribers of an environment, oldest first.
pub fn subscriber_ids(environment: EnvironmentId) -> Prefix<Subscriber> {
    SUBSCRIBER_IDS.within(environment)
}

/// A subscriber, by the id that the engine gave it.
pub fn subscriber_id(environment: EnvironmentId, id: InternalSubscriberId) -> Key<Subscriber> {
    subscriber_ids(environment).id(id).end()
}

/// The e-mail addresses of an environment with their subscribers.
pub fn emails(environment: EnvironmentId) -> Prefix<Subscriber> {
    SUBSCRIBER_EMAILS.within(environment)
}

/// The subscribers with an e-mail address, oldest first.
pub fn subscriber_emails(environment: EnvironmentId, email: &str) -> Prefix<Subscriber> {
    emails(environment).text(email)
}

/// The e-mail address and the subscriber in a key of [`emails`].
pub fn subscriber_of_email(key: &[u8]) -> Option<(&str, InternalSubscriberId)> {
    let (entry, id) = key.split_last_chunk()?;
    let email = entry.get(16..)?.strip_suffix(&[0])?;
    Some((str::from_utf8(email).ok()?, Uuid::from_bytes(*id).into()))
}

/// The workflows of an environment, oldest first.
pub fn workflows(environment: EnvironmentId) -> Prefix<Workflow> {
    WORKFLOWS.within(environment)
}

/// A workflow, by its id.
pub fn workflow(environment: EnvironmentId, id: WorkflowId) -> Key<Workflow> {
    workflows(environment).id(id).end()
}

/// A workflow, by its identifier.
pub fn workflow_identifier(
    environment: EnvironmentId,
    identifier: &WorkflowIdentifier,
) -> Key<Workflow> {
    WORKFLOW_IDENTIFIERS.within(environment).text(identifier.as_str()).end()
}

/// The integrations of an environment, oldest first, including deleted ones.
pub fn integrations(environment: EnvironmentId) -> Prefix<Integration> {
    INTEGRATIONS.within(environment)
}

/// An integration, by its id.
pub fn integration(environment: EnvironmentId, id: IntegrationId) -> Key<Integration> {
    integrations(environment).id(id).end()
}

/// An integration that is not deleted, by its identifier.
pub fn integration_identifier(
    environment: EnvironmentId,
    identifier: &IntegrationIdentifier,
) -> Key<Integration> {
    INTEGRATION_IDENTIFIERS.within(environment).text(identifier.as_str()).end()
}

/// A context.
pub fn context(environment: EnvironmentId, key: &ContextKey) -> Key<Context> {
    CONTEXTS.within(environment).text(key.kind()).text(key.id()).end()
}

/// The contexts of an environment, or those of a type.
pub fn context_list(
    environment: EnvironmentId,
    kind: Option<&str>,
    order_by: OrderBy,
) -> Prefix<Context> {
    CONTEXT_LISTS.within(environment).narrowed(kind).order(order_by)
}

/// The preferences of a subscriber.
pub fn preferences(
    environment: EnvironmentId,
    subscriber: InternalSubscriberId,
) -> Prefix<SubscriberPreference> {
    PREFERENCES.within(environment).id(subscriber)
}

/// The preferences of a subscriber for a context set.
pub fn preferences_for(
    environment: EnvironmentId,
    subscriber: InternalSubscriberId,
    contexts: &ContextSet,
) -> Prefix<SubscriberPreference> {
    preferences(environment, subscriber).text(&contexts.canonical())
}

/// The preference of a subscriber for a context set about one workflow, or about all of them.
pub fn preference(
    environment: EnvironmentId,
    subscriber: InternalSubscriberId,
    contexts: &ContextSet,
    workflow: Option<WorkflowId>,
) -> Key<SubscriberPreference> {
    let workflow = workflow.map_or(Uuid::nil(), Uuid::from);
    preferences_for(environment, subscriber, contexts).id(workflow).end()
}

/// The preferences about a workflow.
pub fn workflow_preferences(
    environment: EnvironmentId,
    workflow: WorkflowId,
) -> Prefix<SubscriberPreference> {
    WORKFLOW_PREFERENCES.within(environment).id(workflow)
}

/// A channel endpoint.
pub fn endpoint(
    environment: EnvironmentId,
    identifier: &EndpointIdentifier,
) -> Key<ChannelEndpoint> {
    CHANNEL_ENDPOINTS.within(environment).text(identifier.as_str()).end()
}

/// The endpoints of an integration: of a subscriber or of any, for a context set or for any.
pub fn endpoint_list(
    environment: EnvironmentId,
    order_by: OrderBy,
    integration: IntegrationId,
    subscriber: Option<&SubscriberId>,
    contexts: Option<&ContextSet>,
) -> Prefix<ChannelEndpoint> {
    channel_list(&ENDPOINT_LISTS, environment, order_by, integration, subscriber, contexts)
}

/// A channel connection.
pub fn connection(
    environment: EnvironmentId,
    identifier: &ConnectionIdentifier,
) -> Key<ChannelConnection> {
    CHANNEL_CONNECTIONS.within(environment).text(identifier.as_str()).end()
}

/// The connections of an integration: of a subscriber or of any, for a context set or for any.
pub fn connection_list(
    environment: EnvironmentId,
    order_by: OrderBy,
    integration: IntegrationId,
    subscriber: Option<&SubscriberId>,
    contexts: Option<&ContextSet>,
) -> Prefix<ChannelConnection> {
    channel_list(&CONNECTION_LISTS, environment, order_by, integration, subscriber, contexts)
}

pub(super) fn channel_list<R>(
    lists: &TableOf<R>,
    environment: EnvironmentId,
    order_by: OrderBy,
    integration: IntegrationId,
    subscriber: Option<&SubscriberId>,
    contexts: Option<&ContextSet>,
) -> Prefix<R> {
    let contexts = contexts.map(ContextSet::canonical);
    let list = lists.within(environment).order(order_by).id(integration);
    list.narrowed(subscriber.map(SubscriberId::as_str)).narrowed(contexts.as_deref())
}

/// The connection of a subscriber, or of no subscriber, for a context set.
pub fn connection_owner(
    environment: EnvironmentId,
    integration: IntegrationId,
    subscriber: Option<&SubscriberId>,
    contexts: &ContextSet,
) -> Key<ChannelConnection> {
    let owners = CONNECTION_OWNERS.within(environment).id(integration);
    let subscriber = subscriber.map(SubscriberId::as_str);
    owners.narrowed(subscriber).text(&contexts.canonical()).end()
}

/// A topic.
pub fn topic(environment: EnvironmentId, key: &TopicKey) -> Key<Topic> {
    TOPICS.within(environment).text(key.as_str()).end()
}

/// The topics of an environment.
pub fn topic_list(environment: EnvironmentId, order_by: OrderBy) -> Prefix<Topic> {
    TOPIC_LISTS.within(environment).order(order_by)
}

/// The text behind the sort value of a key in [`topic_list`].
pub fn folded_topic(text: &[u8]) -> Option<FoldedTopic<'_>> {
    let mut parts = text.split(|byte| *byte == 0);
    Some(FoldedTopic { key: parts.next()?, name: parts.next()? })
}

/// The subscriptions of a topic.
pub fn subscriptions(environment: EnvironmentId, topic: TopicId) -> Prefix<Subscription> {
    SUBSCRIPTIONS.within(environment).id(topic)
}

/// A subscription, by its identifier.
pub fn subscription(
    environment: EnvironmentId,
    topic: TopicId,
    identifier: &SubscriptionIdentifier,
) -> Key<Subscription> {
    subscriptions(environment, topic).text(identifier.as_str()).end()
}

/// The subscriptions of a topic, oldest first.
pub fn subscription_ids(environment: EnvironmentId, topic: TopicId) -> Prefix<Subscription> {
    SUBSCRIPTION_IDS.within(environment).id(topic)
}

/// A subscription, by its id.
pub fn subscription_id(
    environment: EnvironmentId,
    topic: TopicId,
    id: SubscriptionId,
) -> Key<Subscription> {
    subscription_ids(environment, topic).id(id).end()
}

/// The subscriptions of a topic, in the order of their subscribers.
pub fn topic_subscribers(environment: EnvironmentId, topic: TopicId) -> Prefix<Subscription> {
    TOPIC_SUBSCRIBERS.within(environment).id(topic)
}

/// The subscriptions of a subscriber in a topic, oldest first.
pub fn topic_subscriber(
    environment: EnvironmentId,
    topic: TopicId,
    subscriber: InternalSubscriberId,
) -> Prefix<Subscription> {
    topic_subscribers(environment, topic).id(subscriber)
}

/// The subscriptions of a subscriber.
pub fn subscriber_subscriptions(
    environment: EnvironmentId,
    subscriber: InternalSubscriberId,
) -> Prefix<Subscription> {
    SUBSCRIBER_SUBSCRIPTIONS.within(environment).id(subscriber)
}

/// A layout, by its identifier.
pub fn layout(environment: EnvironmentId, identifier: &LayoutIdentifier) -> Key<Layout> {
    LAYOUTS.within(environment).text(identifier.as_str()).end()
}

/// The layouts of an environment, oldest first.
pub fn layout_ids(environment: EnvironmentId) -> Prefix<Layout> {
    LAYOUT_IDS.within(environment)
}

/// A layout, by its id.
pub fn layout_id(environment: EnvironmentId, id: LayoutId) -> Key<Layout> {
    layout_ids(environment).id(id).end()
}

/// The translations of a resource, in the order of their locales.
pub fn translations(environment: EnvironmentId, resource: &Resource) -> Prefix<Translation> {
    of_resource(TRANSLATIONS.within(environment), resource)
}

/// A translation.
pub fn translation(
    environment: EnvironmentId,
    resource: &Resource,
    locale: &Locale,
) -> Key<Translation> {
    translations(environment, resource).text(locale.as_str()).end()
}

/// The translations of an environment, oldest first.
pub fn translation_ids(environment: EnvironmentId) -> Prefix<Translation> {
    TRANSLATION_IDS.within(environment)
}

/// The translation group of a resource.
pub fn translation_groups(
    environment: EnvironmentId,
    resource: &Resource,
) -> Prefix<TranslationGroup> {
    of_resource(TRANSLATION_GROUPS.within(environment), resource)
}

/// A translation group.
pub fn translation_group(environment: EnvironmentId, resource: &Resource) -> Key<TranslationGroup> {
    translation_groups(environment, resource).end()
}

fn of_resource<R>(within: Prefix<R>, resource: &Resource) -> Prefix<R> {
    within.text(resource.resource_type.as_str()).text(&resource.resource_id)
}

/// An accepted trigger.
pub fn transaction(environment: EnvironmentId, id: &TransactionId) -> Key<AcceptedTrigger> {
    TRANSACTIONS.within(environment).text(id.as_str()).end()
}

/// The notifications of an environment, oldest first.
pub fn notifications(environment: EnvironmentId) -> Prefix<Notification> {
    NOTIFICATIONS.within(environment)
}

/// The notification of an ordinal. Two ids may have the same ordinal: compare the id of the record.
pub fn notification(environment: EnvironmentId, ordinal: Ordinal) -> Key<Notification> {
    notifications(environment).ordinal(ordinal).end()
}

/// The notifications of an environment with ordinals within `range`, oldest first.
pub fn notifications_between(
    environment: EnvironmentId,
    range: ops::Range<u64>,
) -> Range<Notification> {
    let key = |ordinal| notification(environment, Ordinal::new(ordinal));
    key(range.start).until(key(range.end))
}

/// The notifications of an environment from an ordinal on, oldest first.
pub fn notifications_from(environment: EnvironmentId, from: Ordinal) -> Range<Notification> {
    notifications(environment).range().starting_at(notification(environment, from))
}

/// The notifications that are due at `now`, in any environment.
pub fn due_until(now: Timestamp) -> Range<Notification> {
    DUE.all().range().through(DUE.all().time(now).range())
}

/// The messages of a subscriber, oldest first.
pub fn messages(environment: EnvironmentId, subscriber: InternalSubscriberId) -> Prefix<Message> {
    MESSAGES.within(environment).id(subscriber)
}

/// A message.
pub fn message(
    environment: EnvironmentId,
    subscriber: InternalSubscriberId,
    id: MessageId,
) -> Key<Message> {
    messages(environment, subscriber).id(id).end()
}

/// The messages of `list` that are newer than the message `id`, oldest first. `list` is one of the
/// lists of a subscriber's messages.
pub fn messages_behind(list: &Prefix<Message>, id: MessageId) -> Range<Message> {
    list.range().behind(list.clone().id(id).end())
}

/// The messages in the inbox of a subscriber, oldest first.
pub fn inbox_messages(
    environment: EnvironmentId,
    subscriber: InternalSubscriberId,
) -> Prefix<Message> {
    INBOX_MESSAGES.within(environment).id(subscriber)
}

/// The messages in an inbox that are not seen, oldest first.
pub fn unseen_messages(
    environment: EnvironmentId,
    subscriber: InternalSubscriberId,
) -> Prefix<Message> {
    UNSEEN_MESSAGES.within(environment).id(subscriber)
}

/// The messages in an inbox that are not read, oldest first.
pub fn unread_messages(
    environment: EnvironmentId,
    subscriber: InternalSubscriberId,
) -> Prefix<Message> {
    UNREAD_MESSAGES.within(environment).id(subscriber)
}

/// The stored answer of an idempotency key.
pub fn stored_answer(environment: EnvironmentId, key: &IdempotencyKey) -> Key<StoredAnswer> {
    STORED_ANSWERS.within(environment).text(key.as_str()).end()
}

/// The stored answers that have expired at `now`.
pub fn expired_answers(environment: EnvironmentId, now: Timestamp) -> Range<StoredAnswer> {
    let expiring = EXPIRING_ANSWERS.within(environment);
    expiring.range().through(expiring.time(now).range())
}
