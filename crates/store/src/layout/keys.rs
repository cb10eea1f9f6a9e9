//! The keys and the ranges of keys that operations look up.

use std::ops;

use domain::api_key::ApiKey;
use domain::connection::ChannelConnection;
use domain::contact::Locale;
use domain::context::{Context, ContextKey, ContextSet};
use domain::digest::{BucketId, DigestBucket, ThrottleSlot, WindowEvent};
use domain::endpoint::ChannelEndpoint;
use domain::environment::Environment;
use domain::idempotency::StoredAnswer;
use domain::ids::{
    ApiKeyId, ConnectionIdentifier, DigestWindowId, EndpointIdentifier, EnvironmentId,
    IdempotencyKey, IntegrationId, InternalSubscriberId, LayoutId, NotificationId, OrganizationId,
    QuarantineId, SubscriberId, SubscriptionId, SubscriptionIdentifier, TaskId, TopicId, TopicKey,
    TransactionId, WorkflowId,
};
use domain::integration::Integration;
use domain::layout::Layout;
use domain::message::{DeletedMessage, ListPlace, Message, MessagePlace, Shelf};
use domain::notification::{Notification, Ordinal};
use domain::page::OrderBy;
use domain::preference::SubscriberPreference;
use domain::quarantine::Quarantined;
use domain::subscriber::Subscriber;
use domain::subscription::Subscription;
use domain::task::Task;
use domain::time::Timestamp;
use domain::topic::{FoldedTopic, Topic};
use domain::translation::{Resource, Translation, TranslationGroup};
use domain::trigger::{AcceptedTrigger, CanceledTrigger, FanOut, FanOutState};
use domain::unsubscribe::LinkKey;
use domain::workflow::Workflow;

use super::{
    API_KEYS, BACKFILLS, CANCELED_TRIGGERS, CHANNEL_CONNECTIONS, CHANNEL_ENDPOINTS,
    CONNECTION_OWNERS, CONTEXT_LISTS, CONTEXTS, DEFAULT_LAYOUTS, DELETED_MESSAGES, DIGEST_BUCKETS,
    DIGEST_EVENTS, ENVIRONMENT_IDS, ENVIRONMENT_KEYS, ENVIRONMENTS, EXPIRING_ANSWERS,
    FAN_OUT_STATES, FAN_OUTS, HELD, INTEGRATIONS, LAYOUT_IDS, LINK_KEYS, MESSAGE_CHANGES,
    MESSAGE_COUNTERS, MESSAGE_LISTS, MESSAGES, NOTIFICATIONS, PREFERENCES, QUARANTINE, SEALS,
    STORED_ANSWERS, SUBSCRIBER_EMAILS, SUBSCRIBER_IDS, SUBSCRIBER_PHONES, SUBSCRIBER_SUBSCRIPTIONS,
    SUBSCRIBERS, SUBSCRIPTION_IDS, SUBSCRIPTIONS, TASKS, THROTTLE_SLOTS, TOPIC_LISTS,
    TOPIC_SUBSCRIBERS, TOPICS, TRANSACTIONS, TRANSLATION_GROUPS, TRANSLATION_IDS, TRANSLATIONS,
    TRIGGERS, WORKFLOW_PREFERENCES, WORKFLOWS,
};
use crate::key::{Bytes, Key, KeyPart, Prefix, Range, parts};

/// A list of messages.
pub type MessageList = Prefix<Message, parts![ListPlace]>;

/// A list of changes of messages, by their numbers.
pub type MessageChanges<R> = Prefix<R, parts![u64, MessagePlace]>;

// Each is a prefix of a table, or a whole key in it, made of these parts in this order.
macro_rules! keys {
    ($($(#[$doc:meta])* $name:ident: $kind:ty
        = $table:ident($($part:ident: $type:ty),* $(,)?) $($end:ident)?;)+) => {
        $($(#[$doc])*
        pub fn $name($($part: $type),*) -> $kind {
            $table.all()$(.then($part))* $(.$end())?
        })+
    };
}

keys! {
    /// The mark of a sealing key.
    seal_mark: Key<Bytes> = SEALS(id: u32) end;
    /// The mark of records of a format, which may lack rows that the next format has.
    backfill: Key<Bytes> = BACKFILLS(format: u32) end;

    /// The environments of an organization.
    environments: Prefix<Environment> = ENVIRONMENTS(organization: &OrganizationId) open;
    /// An environment.
    environment: Key<Environment>
        = ENVIRONMENTS(organization: &OrganizationId, id: EnvironmentId) end;
    /// An environment, by its id alone.
    environment_id: Key<Environment> = ENVIRONMENT_IDS(id: EnvironmentId) end;
    /// The API keys of an environment, oldest first.
    environment_keys: Prefix<ApiKey> = ENVIRONMENT_KEYS(environment: EnvironmentId) open;
    /// An API key.
    environment_key: Key<ApiKey>
        = ENVIRONMENT_KEYS(environment: EnvironmentId, id: ApiKeyId) end;
    /// An API key by its hash.
    api_key: Key<ApiKey> = API_KEYS(hash: &str) end;
    /// The key that signs the unsubscribe links of an environment.
    link_key: Key<LinkKey> = LINK_KEYS(environment: EnvironmentId) end;

    /// A subscriber, by the id that the host gave it.
    subscriber: Key<Subscriber> = SUBSCRIBERS(environment: EnvironmentId, id: &SubscriberId) end;
    /// The subscribers of an environment, oldest first.
    subscriber_ids: Prefix<Subscriber> = SUBSCRIBER_IDS(environment: EnvironmentId) open;
    /// A subscriber, by the id that the engine gave it.
    subscriber_id: Key<Subscriber>
        = SUBSCRIBER_IDS(environment: EnvironmentId, id: InternalSubscriberId) end;
    /// The subscribers with an e-mail address, oldest first.
    subscriber_emails: Prefix<Subscriber>
        = SUBSCRIBER_EMAILS(environment: EnvironmentId, email: &str) open;
    /// The subscribers with a telephone number, oldest first.
    subscriber_phones: Prefix<Subscriber>
        = SUBSCRIBER_PHONES(environment: EnvironmentId, phone: &str) open;

    /// The workflows of an environment, oldest first.
    workflows: Prefix<Workflow> = WORKFLOWS(environment: EnvironmentId) open;
    /// A workflow, by its id.
    workflow: Key<Workflow> = WORKFLOWS(environment: EnvironmentId, id: WorkflowId) end;

    /// The integrations of an environment, oldest first, including deleted ones.
    integrations: Prefix<Integration> = INTEGRATIONS(environment: EnvironmentId) open;
    /// An integration, by its id.
    integration: Key<Integration> = INTEGRATIONS(environment: EnvironmentId, id: IntegrationId) end;

    /// A context.
    context: Key<Context> = CONTEXTS(environment: EnvironmentId, key: &ContextKey) end;

    /// The preferences of a subscriber.
    preferences: Prefix<SubscriberPreference>
        = PREFERENCES(environment: EnvironmentId, subscriber: InternalSubscriberId) open;
    /// The preferences of a subscriber for a context set.
    preferences_for: Prefix<SubscriberPreference> = PREFERENCES(
        environment: EnvironmentId,
        subscriber: InternalSubscriberId,
        contexts: &ContextSet,
    ) open;
    /// The preference of a subscriber for a context set about one workflow, or about all of them.
    preference: Key<SubscriberPreference> = PREFERENCES(
        environment: EnvironmentId,
        subscriber: InternalSubscriberId,
        contexts: &ContextSet,
        workflow: Option<WorkflowId>,
    ) end;
    /// The preferences about a workflow.
    workflow_preferences: Prefix<SubscriberPreference>
        = WORKFLOW_PREFERENCES(environment: EnvironmentId, workflow: WorkflowId) open;

    /// A channel endpoint.
    endpoint: Key<ChannelEndpoint>
        = CHANNEL_ENDPOINTS(environment: EnvironmentId, identifier: &EndpointIdentifier) end;
    /// A channel connection.
    connection: Key<ChannelConnection>
        = CHANNEL_CONNECTIONS(environment: EnvironmentId, identifier: &ConnectionIdentifier) end;
    /// The connection of a subscriber, or of no subscriber, for a context set.
    connection_owner: Key<ChannelConnection> = CONNECTION_OWNERS(
        environment: EnvironmentId,
        integration: IntegrationId,
        subscriber: Option<&SubscriberId>,
        contexts: &ContextSet,
    ) end;

    /// A topic.
    topic: Key<Topic> = TOPICS(environment: EnvironmentId, key: &TopicKey) end;

    /// The subscriptions of a topic.
    subscriptions: Prefix<Subscription>
        = SUBSCRIPTIONS(environment: EnvironmentId, topic: TopicId) open;
    /// The subscriptions of all topics.
    all_subscriptions: Prefix<Subscription> = SUBSCRIPTIONS(environment: EnvironmentId) open;
    /// A subscription, by its identifier.
    subscription: Key<Subscription> = SUBSCRIPTIONS(
        environment: EnvironmentId,
        topic: TopicId,
        identifier: &SubscriptionIdentifier,
    ) end;
    /// The subscriptions of a topic, oldest first.
    subscription_ids: Prefix<Subscription>
        = SUBSCRIPTION_IDS(environment: EnvironmentId, topic: TopicId) open;
    /// A subscription, by its id.
    subscription_id: Key<Subscription>
        = SUBSCRIPTION_IDS(environment: EnvironmentId, topic: TopicId, id: SubscriptionId) end;
    /// The subscriptions of a subscriber in a topic, oldest first.
    topic_subscriber: Prefix<Subscription> = TOPIC_SUBSCRIBERS(
        environment: EnvironmentId,
        topic: TopicId,
        subscriber: InternalSubscriberId,
    ) open;
    /// The subscriptions of a subscriber.
    subscriber_subscriptions: Prefix<Subscription>
        = SUBSCRIBER_SUBSCRIPTIONS(environment: EnvironmentId, subscriber: InternalSubscriberId) open;

    /// The layouts of an environment, oldest first.
    layout_ids: Prefix<Layout> = LAYOUT_IDS(environment: EnvironmentId) open;
    /// A layout, by its id.
    layout_id: Key<Layout> = LAYOUT_IDS(environment: EnvironmentId, id: LayoutId) end;
    /// The default layout of an environment.
    default_layout: Key<Layout> = DEFAULT_LAYOUTS(environment: EnvironmentId) end;

    /// The translations of a resource, in the order of their locales.
    translations: Prefix<Translation>
        = TRANSLATIONS(environment: EnvironmentId, resource: &Resource) open;
    /// A translation.
    translation: Key<Translation>
        = TRANSLATIONS(environment: EnvironmentId, resource: &Resource, locale: &Locale) end;
    /// The translations of an environment, oldest first.
    translation_ids: Prefix<Translation> = TRANSLATION_IDS(environment: EnvironmentId) open;
    /// The translation group of a resource.
    translation_group: Key<TranslationGroup>
        = TRANSLATION_GROUPS(environment: EnvironmentId, resource: &Resource) end;

    /// The accepted triggers of an environment, oldest first.
    triggers: Prefix<AcceptedTrigger> = TRIGGERS(environment: EnvironmentId) open;
    /// The accepted trigger of a transaction. Each run of its ordinals has an entry.
    transaction: Prefix<AcceptedTrigger>
        = TRANSACTIONS(environment: EnvironmentId, id: &TransactionId) open;
    /// The cancellation of an event.
    canceled_trigger: Key<CanceledTrigger>
        = CANCELED_TRIGGERS(environment: EnvironmentId, id: &TransactionId) end;
    /// An event whose recipients tasks tell.
    fan_out: Key<FanOut> = FAN_OUTS(environment: EnvironmentId, id: &TransactionId) end;
    /// The events of an environment whose recipients tasks tell.
    fan_outs: Prefix<FanOut> = FAN_OUTS(environment: EnvironmentId) open;
    /// The state of an event whose recipients tasks tell or have told.
    fan_out_state: Key<FanOutState>
        = FAN_OUT_STATES(environment: EnvironmentId, id: &TransactionId) end;

    /// The notifications of an environment, oldest first.
    notifications: Prefix<Notification> = NOTIFICATIONS(environment: EnvironmentId) open;
    /// The events of a window, oldest first.
    digest_events: Prefix<WindowEvent>
        = DIGEST_EVENTS(environment: EnvironmentId, window: DigestWindowId) open;

    /// The events of all windows.
    all_digest_events: Prefix<WindowEvent> = DIGEST_EVENTS(environment: EnvironmentId) open;
    /// The digests of an environment.
    digest_buckets: Prefix<DigestBucket> = DIGEST_BUCKETS(environment: EnvironmentId) open;
    /// The digests of a workflow.
    workflow_buckets: Prefix<DigestBucket>
        = DIGEST_BUCKETS(environment: EnvironmentId, workflow: WorkflowId) open;
    /// The places in throttles of an environment.
    all_throttle_slots: Prefix<ThrottleSlot> = THROTTLE_SLOTS(environment: EnvironmentId) open;
    /// The places in throttles of a workflow.
    workflow_slots: Prefix<ThrottleSlot>
        = THROTTLE_SLOTS(environment: EnvironmentId, workflow: WorkflowId) open;

    /// A task, by its id.
    task: Key<Task> = TASKS(environment: EnvironmentId, id: TaskId) end;
    /// The tasks of an environment.
    tasks: Prefix<Task> = TASKS(environment: EnvironmentId) open;
    /// The tasks that wait until an integration is resumed.
    held: Prefix<Task> = HELD(environment: EnvironmentId, integration: IntegrationId) open;

    /// An entry of the quarantine.
    quarantined: Key<Quarantined> = QUARANTINE(id: QuarantineId) end;

    /// The notification of an ordinal. Two ids may have the same ordinal: compare the id of the
    /// record.
    notification: Key<Notification>
        = NOTIFICATIONS(environment: EnvironmentId, ordinal: Ordinal) end;

    /// The message in a place. Two ids may have the same place: compare the id of the record.
    message: Key<Message> = MESSAGES(environment: EnvironmentId, place: MessagePlace) end;
    /// The messages of an environment, by the ordinals of their notifications.
    messages: Prefix<Message> = MESSAGES(environment: EnvironmentId) open;
    /// All messages of a subscriber, one shelf after the other.
    message_lists: Prefix<Message>
        = MESSAGE_LISTS(environment: EnvironmentId, subscriber: InternalSubscriberId) open;
    /// The messages of a subscriber on a shelf, oldest first.
    message_list: MessageList = MESSAGE_LISTS(
        environment: EnvironmentId,
        subscriber: InternalSubscriberId,
        shelf: Shelf,
    );
    /// The counters of the messages of a subscriber.
    message_counters: Key<Bytes>
        = MESSAGE_COUNTERS(environment: EnvironmentId, subscriber: InternalSubscriberId) end;

    /// The changed messages in the inbox of a subscriber, by the number of the change.
    message_changes: MessageChanges<Message>
        = MESSAGE_CHANGES(environment: EnvironmentId, subscriber: InternalSubscriberId);
    /// The deleted messages of a subscriber, by the number of the change.
    deleted_messages: MessageChanges<DeletedMessage>
        = DELETED_MESSAGES(environment: EnvironmentId, subscriber: InternalSubscriberId);

    /// The stored answer of an idempotency key.
    stored_answer: Key<StoredAnswer>
        = STORED_ANSWERS(environment: EnvironmentId, key: &IdempotencyKey) end;
    /// The stored answers of an environment.
    stored_answers: Prefix<StoredAnswer> = STORED_ANSWERS(environment: EnvironmentId) open;
}

/// The e-mail address and the subscriber in a key of [`subscriber_emails`] of that environment.
pub fn subscriber_of_email(
    environment: EnvironmentId,
    key: &[u8],
) -> Option<(&str, InternalSubscriberId)> {
    let (within, (email, (subscriber, ()))) = SUBSCRIBER_EMAILS.read(key)?;
    (within == environment).then_some((email, subscriber))
}

/// The contexts of an environment, or those of a type.
pub fn context_list(
    environment: EnvironmentId,
    kind: Option<&str>,
    order_by: OrderBy,
) -> Prefix<Context> {
    CONTEXT_LISTS.within(environment).then(kind).by(order_by)
}

/// The topics of an environment.
pub fn topic_list(environment: EnvironmentId, order_by: OrderBy) -> Prefix<Topic> {
    TOPIC_LISTS.within(environment).by(order_by)
}

/// The text behind the sort value of a key in [`topic_list`].
pub fn folded_topic(text: &[u8]) -> Option<FoldedTopic<'_>> {
    let mut parts = text.split(|byte| *byte == 0);
    Some(FoldedTopic { key: parts.next()?, name: parts.next()? })
}

/// The ordinals of the notifications of a trigger, by its key in [`triggers`].
pub fn ordinals_of_trigger(key: &[u8]) -> Option<ops::Range<u64>> {
    let (_, (first, (end, _))) = TRIGGERS.read(key)?;
    (first <= end).then(|| first.get()..end.get())
}

/// The ordinals in an entry of [`TRANSACTIONS`], and the key of its trigger.
pub fn run_of_transaction(entry: &[u8]) -> Option<(ops::Range<u64>, Key<AcceptedTrigger>)> {
    let (environment, (id, (first, (behind, ())))) = TRANSACTIONS.read(entry)?;
    let trigger = TRIGGERS.within(environment).then(first).then(behind).then(&id).end();
    Some((first.get()..behind.get(), trigger))
}

/// The runs of a transaction up to the one that may have the notification of this ordinal.
pub fn runs_until(
    environment: EnvironmentId,
    id: &TransactionId,
    ordinal: Ordinal,
) -> Range<AcceptedTrigger> {
    TRANSACTIONS.within(environment).then(id).until(ordinal)
}

/// The runs of a transaction from the one with this first ordinal on.
pub fn runs_from(
    environment: EnvironmentId,
    id: &TransactionId,
    run: u64,
) -> Range<AcceptedTrigger> {
    TRANSACTIONS.within(environment).then(id).from(Ordinal::new(run))
}

/// The subscriptions of a topic, by subscriber, of the subscribers behind one of them.
pub fn topic_subscribers_behind(
    environment: EnvironmentId,
    topic: TopicId,
    behind: Option<InternalSubscriberId>,
) -> Range<Subscription> {
    TOPIC_SUBSCRIBERS.within(environment).then(topic).behind_or_all(behind)
}

/// The topic of an entry in [`subscriber_subscriptions`].
pub fn topic_of_subscription(entry: &[u8]) -> Option<TopicId> {
    let (_, (_, (topic, _))) = SUBSCRIBER_SUBSCRIPTIONS.read(entry)?;
    Some(topic)
}

/// The subscriptions of a subscriber in the topics behind one of them.
pub fn subscriptions_behind(
    environment: EnvironmentId,
    subscriber: InternalSubscriberId,
    topic: TopicId,
) -> Range<Subscription> {
    SUBSCRIBER_SUBSCRIPTIONS.within(environment).then(subscriber).behind(topic)
}

/// The subscribers of an environment behind one of them, oldest first.
pub fn subscriber_ids_behind(
    environment: EnvironmentId,
    behind: Option<InternalSubscriberId>,
) -> Range<Subscriber> {
    SUBSCRIBER_IDS.within(environment).behind_or_all(behind)
}

/// The notifications of an environment with ordinals within `range`, oldest first.
pub fn notifications_between(
    environment: EnvironmentId,
    range: ops::Range<u64>,
) -> Range<Notification> {
    let ordinals = Ordinal::new(range.start)..Ordinal::new(range.end);
    NOTIFICATIONS.within(environment).between(ordinals)
}

/// The notifications of an environment from an ordinal on, oldest first.
pub fn notifications_from(environment: EnvironmentId, from: Ordinal) -> Range<Notification> {
    NOTIFICATIONS.within(environment).from(from)
}

/// The ordinal in the key of a notification.
pub fn ordinal_of(key: &[u8]) -> Option<Ordinal> {
    let (_, (ordinal, ())) = NOTIFICATIONS.read(key)?;
    Some(ordinal)
}

/// What a digest has of the events of a bucket.
pub fn digest_bucket(id: &BucketId) -> Key<DigestBucket> {
    let step = DIGEST_BUCKETS.within(id.environment_id).then(id.workflow_id).then(id.step_id);
    step.then(id.subscriber_id).then(&id.context_keys).then(id.key).end()
}

/// The places that events of a bucket have taken, the first that is free again first.
pub fn throttle_slots(id: &BucketId) -> Prefix<ThrottleSlot, parts![Timestamp, NotificationId]> {
    let step = THROTTLE_SLOTS.within(id.environment_id).then(id.workflow_id).then(id.step_id);
    step.then(id.subscriber_id).then(id.key)
}

/// The places of a bucket that are free again at `now`.
pub fn free_throttle_slots(id: &BucketId, now: Timestamp) -> Range<ThrottleSlot> {
    throttle_slots(id).until(now)
}

/// The places of a bucket that are taken at `now`.
pub fn taken_throttle_slots(id: &BucketId, now: Timestamp) -> Range<ThrottleSlot> {
    throttle_slots(id).behind(now)
}

/// The environment and the id of an integration, from its key.
pub fn integration_of(key: &[u8]) -> Option<(EnvironmentId, IntegrationId)> {
    let (environment, (id, ())) = INTEGRATIONS.read(key)?;
    Some((environment, id))
}

/// The environment and the idempotency key of a stored answer, from its key.
pub fn answer_key_of(key: &[u8]) -> Option<(EnvironmentId, IdempotencyKey)> {
    let (environment, (key, ())) = STORED_ANSWERS.read(key)?;
    Some((environment, key))
}

/// The stored answer of an entry in [`EXPIRING_ANSWERS`].
pub fn answer_of(entry: &[u8]) -> Option<Key<StoredAnswer>> {
    let (environment, (_, (key, ()))) = EXPIRING_ANSWERS.read(entry)?;
    Some(stored_answer(environment, &key))
}

/// The messages of `list` up to a place, oldest first.
pub fn messages_until(list: &MessageList, place: ListPlace) -> Range<Message> {
    list.until(place)
}

/// The changes of `list` behind all with a number, or behind that of a message with the number.
pub fn changes_behind<R>(
    list: &MessageChanges<R>,
    number: u64,
    within: Option<MessagePlace>,
) -> Range<R> {
    match within {
        Some(place) => list.behind_both(number, place),
        None => list.behind(number),
    }
}

/// The subscriber of a key of [`message_counters`].
pub fn counted_subscriber(key: &[u8]) -> Option<Key<Subscriber>> {
    let (environment, (subscriber, ())) = MESSAGE_COUNTERS.read(key)?;
    Some(subscriber_id(environment, subscriber))
}

/// The sort value of a place in lists of messages.
pub fn list_place_bytes(place: ListPlace) -> Vec<u8> {
    let mut bytes = Vec::new();
    ListPlace::write(place, &mut bytes);
    bytes
}

/// The place with this sort value.
pub fn list_place_of(mut bytes: &[u8]) -> Option<ListPlace> {
    ListPlace::read(&mut bytes).filter(|_| bytes.is_empty())
}

/// The stored answers that have expired at `now`.
pub fn expired_answers(environment: EnvironmentId, now: Timestamp) -> Range<StoredAnswer> {
    EXPIRING_ANSWERS.within(environment).until(now)
}

/// The stored answers of calls that have begun at `since` or later.
pub fn answers_from(environment: EnvironmentId, since: Timestamp) -> Range<StoredAnswer> {
    EXPIRING_ANSWERS.within(environment).from(since.after(StoredAnswer::LIFETIME))
}
