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
//! | `context_lists`             | environment, type (or any), order, sort value, context | key into `contexts` |
//! | `preferences`               | environment, subscriber, context set, workflow (nil: all of them) | [`SubscriberPreference`](domain::preference::SubscriberPreference) |
//! | `workflow_preferences`      | environment, workflow, subscriber, context set     | key into `preferences` |
//! | `channel_endpoints`         | environment, endpoint by its own name              | [`ChannelEndpoint`](domain::endpoint::ChannelEndpoint) |
//! | `endpoint_lists`            | environment, order, integration, subscriber (or any), context set (or any), sort value, endpoint | key into `channel_endpoints` |
//! | `channel_connections`       | environment, connection by its own name            | [`ChannelConnection`](domain::connection::ChannelConnection) |
//! | `connection_lists`          | as `endpoint_lists`                                | key into `channel_connections` |
//! | `connection_owners`         | environment, integration, subscriber (or none), context set | key into `channel_connections` |
//! | `topics`                    | environment, topic by its own name                 | [`Topic`](domain::topic::Topic) |
//! | `topic_lists`               | environment, order, sort value, topic, folded key, folded name | key into `topics` |
//! | `subscriptions`             | environment, topic, subscription by its own name   | [`Subscription`](domain::subscription::Subscription) |
//! | `subscription_ids`          | environment, topic, subscription                   | key into `subscriptions` |
//! | `topic_subscribers`         | environment, topic, subscriber, subscription       | key into `subscriptions` |
//! | `subscriber_subscriptions`  | environment, subscriber, topic, subscription       | key into `subscriptions` |
//! | `layouts`                   | environment, layout by its own name                | [`Layout`](domain::layout::Layout) |
//! | `layout_ids`                | environment, layout                                | key into `layouts` |
//! | `translations`              | environment, kind of resource, resource, locale    | [`Translation`](domain::translation::Translation) |
//! | `translation_ids`           | environment, translation                           | key into `translations` |
//! | `translation_groups`        | environment, kind of resource, resource            | [`TranslationGroup`](domain::translation::TranslationGroup) |
//! | `transactions`              | environment, transaction                           | [`AcceptedTrigger`](domain::trigger::AcceptedTrigger) |
//! | `notifications`             | environment, ordinal                               | [`Notification`](domain::notification::Notification) |
//! | `transaction_notifications` | environment, generation, transaction               | runs of ordinals |
//! | `activity_heads`            | environment                                        | how far the activity index goes |
//! | `activity_facets`           | environment, generation, row                       | facets of notifications that are not sealed |
//! | `activity_segments`         | environment, generation, segment, part             | times, presence and blocks of a sealed segment |
//! | `activity_deleted`          | environment, generation, segment                   | what of it is deleted |
//! | `due`                       | time, environment, notification                    | key into `notifications` |
//! | `messages`                  | environment, subscriber, message                   | [`Message`](domain::message::Message) |
//! | `inbox_messages`            | environment, subscriber, message, if in the inbox  | key into `messages` |
//! | `unseen_messages`           | the same, if it was not seen                       | key into `messages` |
//! | `unread_messages`           | the same, if it was not read                       | key into `messages` |
//! | `stored_answers`            | environment, idempotency key                       | [`StoredAnswer`](domain::idempotency::StoredAnswer) |
//! | `expiring_answers`          | environment, time, idempotency key                 | key into `stored_answers` |
//!
//! Every key starts with its environment, so that a look-up that forgets its scope cannot be
//! written; what is found before the environment is known, and what is due in any of them, are the
//! exceptions. Ids are in order of creation, so that lists by id are lists by time.
//!
//! Nothing outside this file and `entries.rs` spells out a key. Changing a row here changes the format on disk:
//! raise [`FORMAT`], and teach the tests the old one.

mod activity;
mod entries;
mod tables;

use std::ops::{Bound, Range};

use domain::contact::Locale;
use domain::context::{ContextKey, ContextSet};
use domain::ids::{
    ConnectionIdentifier, EndpointIdentifier, EnvironmentId, IdempotencyKey, IntegrationId,
    IntegrationIdentifier, InternalSubscriberId, LayoutId, LayoutIdentifier, MessageId,
    OrganizationId, SubscriberId, SubscriptionId, SubscriptionIdentifier, TopicId, TopicKey,
    TransactionId, WorkflowId, WorkflowIdentifier,
};
use domain::notification::Ordinal;
use domain::page::OrderBy;
use domain::time::Timestamp;
use domain::topic::FoldedTopic;
use domain::translation::Resource;
use uuid::Uuid;

use crate::{Key, KeyRange, Prefix};

pub use activity::*;
pub use tables::Table;

/// The version of this layout. A file says which one it was written with.
pub const FORMAT: u32 = 1;

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

/// The addresses of all subscribers of an environment in [`Table::SubscriberEmails`].
pub fn emails(environment: EnvironmentId) -> Prefix {
    scope(environment)
}

/// The address and the subscriber of an entry in [`Table::SubscriberEmails`].
pub fn subscriber_of_email(key: &[u8]) -> Option<(&str, InternalSubscriberId)> {
    let (entry, id) = key.split_last_chunk()?;
    let email = entry.get(16..)?.strip_suffix(&[0])?;
    Some((str::from_utf8(email).ok()?, Uuid::from_bytes(*id).into()))
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

/// The contexts of an environment, or those of a type, in [`Table::ContextLists`].
pub fn context_list(environment: EnvironmentId, kind: Option<&str>, order_by: OrderBy) -> Prefix {
    scope(environment).narrowed(kind).order(order_by)
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

/// A channel endpoint.
pub fn endpoint(environment: EnvironmentId, identifier: &EndpointIdentifier) -> Key {
    scope(environment).text(identifier.as_str()).end()
}

/// A channel connection.
pub fn connection(environment: EnvironmentId, identifier: &ConnectionIdentifier) -> Key {
    scope(environment).text(identifier.as_str()).end()
}

/// The endpoints of an integration in [`Table::EndpointLists`], or its connections in
/// [`Table::ConnectionLists`]: those of a subscriber, or of any; those for a context set, or for
/// any.
pub fn channel_list(
    environment: EnvironmentId,
    order_by: OrderBy,
    integration: IntegrationId,
    subscriber: Option<&SubscriberId>,
    contexts: Option<&ContextSet>,
) -> Prefix {
    let contexts = contexts.map(ContextSet::canonical);
    let list = scope(environment).order(order_by).id(integration);
    list.narrowed(subscriber.map(SubscriberId::as_str)).narrowed(contexts.as_deref())
}

/// The connection of a subscriber, or of nobody, for a context set in
/// [`Table::ConnectionOwners`].
pub fn connection_owner(
    environment: EnvironmentId,
    integration: IntegrationId,
    subscriber: Option<&SubscriberId>,
    contexts: &ContextSet,
) -> Key {
    let subscriber = subscriber.map(SubscriberId::as_str);
    scope(environment).id(integration).narrowed(subscriber).text(&contexts.canonical()).end()
}

/// A topic.
pub fn topic(environment: EnvironmentId, key: &TopicKey) -> Key {
    scope(environment).text(key.as_str()).end()
}

/// The topics of an environment in [`Table::TopicLists`].
pub fn topic_list(environment: EnvironmentId, order_by: OrderBy) -> Prefix {
    scope(environment).order(order_by)
}

/// What an entry in [`Table::TopicLists`] says behind what it is sorted by.
pub fn folded_topic(text: &[u8]) -> Option<FoldedTopic<'_>> {
    let mut parts = text.split(|byte| *byte == 0);
    Some(FoldedTopic { key: parts.next()?, name: parts.next()? })
}

/// A subscription.
pub fn subscription(
    environment: EnvironmentId,
    topic: TopicId,
    identifier: &SubscriptionIdentifier,
) -> Key {
    subscriptions(environment, topic).text(identifier.as_str()).end()
}

/// The subscriptions of a topic; also those in [`Table::SubscriptionIds`], oldest first, and those
/// in [`Table::TopicSubscribers`], in the order of their subscribers.
pub fn subscriptions(environment: EnvironmentId, topic: TopicId) -> Prefix {
    scope(environment).id(topic)
}

/// The entry of a subscription in [`Table::SubscriptionIds`].
pub fn subscription_id(environment: EnvironmentId, topic: TopicId, id: SubscriptionId) -> Key {
    subscriptions(environment, topic).id(id).end()
}

/// The subscriptions of a subscriber in a topic in [`Table::TopicSubscribers`], oldest first.
pub fn topic_subscriber(
    environment: EnvironmentId,
    topic: TopicId,
    subscriber: InternalSubscriberId,
) -> Prefix {
    subscriptions(environment, topic).id(subscriber)
}

/// The subscriptions of a subscriber in [`Table::SubscriberSubscriptions`].
pub fn subscriber_subscriptions(
    environment: EnvironmentId,
    subscriber: InternalSubscriberId,
) -> Prefix {
    scope(environment).id(subscriber)
}

/// A layout.
pub fn layout(environment: EnvironmentId, identifier: &LayoutIdentifier) -> Key {
    scope(environment).text(identifier.as_str()).end()
}

/// The layouts of an environment in [`Table::LayoutIds`], oldest first.
pub fn layout_ids(environment: EnvironmentId) -> Prefix {
    scope(environment)
}

/// The entry of a layout in [`Table::LayoutIds`].
pub fn layout_id(environment: EnvironmentId, id: LayoutId) -> Key {
    layout_ids(environment).id(id).end()
}

/// A translation.
pub fn translation(environment: EnvironmentId, resource: &Resource, locale: &Locale) -> Key {
    translations(environment, resource).text(locale.as_str()).end()
}

/// The translations of a resource, in the order of their locales.
pub fn translations(environment: EnvironmentId, resource: &Resource) -> Prefix {
    let Resource { resource_type, resource_id } = resource;
    scope(environment).text(resource_type.as_str()).text(resource_id)
}

/// The translations of an environment in [`Table::TranslationIds`], oldest first.
pub fn translation_ids(environment: EnvironmentId) -> Prefix {
    scope(environment)
}

/// A translation group.
pub fn translation_group(environment: EnvironmentId, resource: &Resource) -> Key {
    translations(environment, resource).end()
}

/// What came of a trigger.
pub fn transaction(environment: EnvironmentId, id: &TransactionId) -> Key {
    scope(environment).text(id.as_str()).end()
}

/// A notification. There is none but the one of that ordinal, so whoever asks for an id has to see
/// whether it is that one.
pub fn notification(environment: EnvironmentId, ordinal: Ordinal) -> Key {
    scope(environment).ordinal(ordinal).end()
}

/// The notifications of an environment with ordinals within `range`, oldest first.
pub fn notifications_between(environment: EnvironmentId, range: Range<u64>) -> KeyRange {
    let key = |ordinal| notification(environment, Ordinal::new(ordinal)).as_bytes().to_vec();
    (Bound::Included(key(range.start)), Bound::Excluded(key(range.end)))
}

/// The notifications of an environment that are not before `from`, oldest first.
pub fn notifications_from(environment: EnvironmentId, from: Ordinal) -> KeyRange {
    let start = notification(environment, from);
    (Bound::Included(start.as_bytes().to_vec()), notifications(environment).range().1)
}

/// The notifications of an environment, oldest first.
pub fn notifications(environment: EnvironmentId) -> Prefix {
    scope(environment)
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

/// What came of a call with an idempotency key.
pub fn stored_answer(environment: EnvironmentId, key: &IdempotencyKey) -> Key {
    scope(environment).text(key.as_str()).end()
}

/// The answers that mean nothing any more at `now`, in [`Table::ExpiringAnswers`].
pub fn expired_answers(environment: EnvironmentId, now: Timestamp) -> KeyRange {
    let expired = scope(environment).time(now).range();
    (scope(environment).range().0, expired.1)
}

fn scope(environment: EnvironmentId) -> Prefix {
    Prefix::with_room().id(environment)
}
