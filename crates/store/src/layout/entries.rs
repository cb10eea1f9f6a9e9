//! The key of each record, and the index entries that lead to it.

use std::ops;

use domain::api_key::ApiKey;
use domain::connection::ChannelConnection;
use domain::context::Context;
use domain::digest::{DigestBucket, ThrottleSlot, WindowEvent};
use domain::endpoint::ChannelEndpoint;
use domain::environment::Environment;
use domain::folded::fold;
use domain::idempotency::StoredAnswer;
use domain::ids::{EnvironmentId, TransactionId};
use domain::integration::Integration;
use domain::layout::Layout;
use domain::message::{Counted, DeletedMessage, Message, MessageExcerpt, Signature, WholeMessage};
use domain::notification::{
    Notification, NotificationOwner, NotificationSubscriber, Ordinal, Outcomes,
};
use domain::observer::Event;
use domain::preference::{PreferenceScope, SubscriberPreference};
use domain::quarantine::Quarantined;
use domain::subscriber::Subscriber;
use domain::subscription::Subscription;
use domain::task::{Task, TaskState};
use domain::time::Timestamp;
use domain::topic::Topic;
use domain::translation::{Translation, TranslationGroup};
use domain::trigger::{AcceptedTrigger, CanceledTrigger, FanOut, FanOutState, TriggerRecipients};
use domain::unsubscribe::LinkKey;
use domain::workflow::Workflow;

use super::channels::lists_with;
use super::letters::dead_letter_entry;
use super::receipts::provider_message_entry;
use super::{
    CONTEXT_LISTS, CountedList, DIGEST_EVENTS, EXPIRING_ANSWERS, HELD, SUBSCRIBER_EMAILS,
    SUBSCRIBER_PHONES, SUBSCRIBER_SUBSCRIPTIONS, TOPIC_LISTS, TOPIC_SUBSCRIBERS, TRANSACTIONS,
    TRANSLATION_IDS, TRIGGERS, WORKFLOW_PREFERENCES, api_key, by_identifier, canceled_trigger,
    connection, connection_owner, context, default_layout, deleted_messages, digest_bucket,
    endpoint, environment, environment_id, environment_key, fan_out, fan_out_state, integration,
    lane, layout_id, link_key, message, message_changes, message_counters, message_list,
    notification, preference, quarantined, stored_answer, subscriber, subscriber_id, subscription,
    subscription_id, task, throttle_slots, topic, translation, translation_group, workflow,
};
use crate::key::{Bytes, Key, SortedPlace};
use crate::outcomes::Listed;
use crate::record::{CountedPlace, Entries, Excerpt, LanePlace, Record};
use crate::text_index::IndexedText;

impl Record for Environment {
    fn key(&self) -> Key<Self> {
        environment(&self.organization_id, self.id)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        entries.add(environment_id(self.id));
    }
}

impl Record for ApiKey {
    fn key(&self) -> Key<Self> {
        environment_key(self.environment_id, self.id)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        entries.add(api_key(&self.hash));
    }
}

impl Record for LinkKey {
    fn key(&self) -> Key<Self> {
        link_key(self.environment_id)
    }
}

impl Record for Subscriber {
    fn key(&self) -> Key<Self> {
        subscriber(self.environment_id, &self.subscriber_id)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        entries.add(subscriber_id(self.environment_id, self.id));
        if let Some(email) = &self.profile.email {
            let emails = SUBSCRIBER_EMAILS.within(self.environment_id).then(email.as_str());
            entries.add(emails.then(self.id).end());
        }
        if let Some(phone) = &self.profile.phone {
            entries
                .add(SUBSCRIBER_PHONES.within(self.environment_id).then(phone).then(self.id).end());
        }
    }

    fn counted_place(&self) -> Option<CountedPlace> {
        Some((CountedList::Subscribers(self.environment_id), self.id.into()))
    }

    fn texts(&self) -> Vec<IndexedText> {
        let Self { environment_id: environment, id, profile, .. } = self;
        let email = profile.email.as_ref();
        let email = email.map(|email| IndexedText::email(*environment, email, *id));
        let name = profile.full_name().map(|name| IndexedText::name(*environment, &name, *id));
        email.into_iter().chain(name).collect()
    }
}

impl Excerpt for NotificationSubscriber {
    type Of = Subscriber;

    fn key(&self, environment: EnvironmentId) -> Key<Subscriber> {
        subscriber(environment, &self.subscriber_id)
    }

    fn entry(&self, environment: EnvironmentId) -> Key<Subscriber> {
        subscriber_id(environment, self.id)
    }
}

impl Record for Workflow {
    fn key(&self) -> Key<Self> {
        workflow(self.environment_id, self.id)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        let key = by_identifier(self.environment_id, self.identifier());
        entries.add(key);
    }
}

impl Record for Integration {
    fn key(&self) -> Key<Self> {
        integration(self.environment_id, self.id)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        if !self.is_deleted() {
            let key = by_identifier(self.environment_id, &self.identifier);
            entries.add(key);
        }
    }
}

impl Record for Context {
    fn key(&self) -> Key<Self> {
        context(self.environment_id, &self.key)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        for kind in [None, Some(self.key.kind())] {
            let lists = CONTEXT_LISTS.within(self.environment_id).then(kind);
            for place in places(self.id, self.created_at, self.updated_at) {
                entries.add(lists.clone().then(place).end());
            }
        }
    }

    fn counted_place(&self) -> Option<CountedPlace> {
        Some((CountedList::Contexts(self.environment_id), self.id.into()))
    }
}

impl Record for ChannelEndpoint {
    fn key(&self) -> Key<Self> {
        endpoint(self.environment_id, &self.identifier)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        let owner = (Some(&self.subscriber_id), &self.context_keys);
        for list in lists_with((self.environment_id, self.integration_id), owner) {
            for place in places(self.id, self.created_at, self.updated_at) {
                entries.add(list.clone().then(place).end());
            }
        }
    }
}

impl Record for ChannelConnection {
    fn key(&self) -> Key<Self> {
        connection(self.environment_id, &self.identifier)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        let (environment, integration) = (self.environment_id, self.integration_id);
        let (subscriber, contexts) = (self.subscriber_id.as_ref(), &self.context_keys);
        let owner = connection_owner(environment, integration, subscriber, contexts);
        entries.add(owner);
        for list in lists_with((environment, integration), (subscriber, contexts)) {
            for place in places(self.id, self.created_at, self.updated_at) {
                entries.add(list.clone().then(place).end());
            }
        }
    }
}

// The places of a record in lists by times and by id.
fn places<Id: Copy>(
    id: Id,
    created: Timestamp,
    updated: Timestamp,
) -> [SortedPlace<'static, Id>; 3] {
    [SortedPlace::CreatedAt(created, id), SortedPlace::UpdatedAt(updated, id), SortedPlace::Id(id)]
}

impl Record for Topic {
    fn key(&self) -> Key<Self> {
        topic(self.environment_id, &self.key)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        let (key, name) = (fold(self.key.as_str()), fold(self.name.as_deref().unwrap_or_default()));
        let by_times = places(self.id, self.created_at, self.updated_at);
        for place in by_times.into_iter().chain([SortedPlace::Key(self.key.as_str())]) {
            let list = TOPIC_LISTS.within(self.environment_id).then(place);
            entries.add(list.then(&key).then(&name).end());
        }
    }

    fn counted_place(&self) -> Option<CountedPlace> {
        Some((CountedList::Topics(self.environment_id), self.id.into()))
    }
}

impl Record for Subscription {
    fn key(&self) -> Key<Self> {
        subscription(self.environment_id, self.topic_id, &self.identifier)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        let (environment, topic) = (self.environment_id, self.topic_id);
        let subscriber = self.internal_subscriber_id;
        entries.add(subscription_id(environment, topic, self.id));
        let by_topic = TOPIC_SUBSCRIBERS.within(environment).then(topic);
        entries.add(by_topic.then(subscriber).then(self.id).end());
        let by_subscriber = SUBSCRIBER_SUBSCRIPTIONS.within(environment).then(subscriber);
        entries.add(by_subscriber.then(topic).then(self.id).end());
    }

    fn counted_place(&self) -> Option<CountedPlace> {
        let list = CountedList::Subscriptions(self.environment_id, self.topic_id);
        Some((list, self.id.into()))
    }
}

impl Record for Layout {
    fn key(&self) -> Key<Self> {
        by_identifier(self.environment_id, &self.layout_id)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        entries.add(layout_id(self.environment_id, self.id));
        if self.is_default {
            entries.add(default_layout(self.environment_id));
        }
    }
}

impl Record for Translation {
    fn key(&self) -> Key<Self> {
        translation(self.environment_id, &self.resource, &self.locale)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        entries.add(TRANSLATION_IDS.within(self.environment_id).then(self.id).end());
    }
}

impl Record for TranslationGroup {
    fn key(&self) -> Key<Self> {
        translation_group(self.environment_id, &self.resource)
    }
}

impl Record for StoredAnswer {
    fn key(&self) -> Key<Self> {
        stored_answer(self.environment_id, &self.key)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        let expires = EXPIRING_ANSWERS.within(self.environment_id).then(self.expires_at());
        entries.add(expires.then(&self.key).end());
    }
}

impl Record for SubscriberPreference {
    fn key(&self) -> Key<Self> {
        let workflow = match self.scope {
            PreferenceScope::Global { .. } => None,
            PreferenceScope::Workflow { workflow_id } => Some(workflow_id),
        };
        preference(self.environment_id, self.subscriber_id, &self.context_keys, workflow)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        if let PreferenceScope::Workflow { workflow_id } = self.scope {
            let of_workflow = WORKFLOW_PREFERENCES.within(self.environment_id).then(workflow_id);
            let key = of_workflow.then(self.subscriber_id).then(&self.context_keys);
            entries.add(key.end());
        }
    }

    fn events(before: Option<&Self>, after: Option<&Self>) -> Vec<Event> {
        after.or(before).map(Event::of_preference).into_iter().collect()
    }
}

fn trigger(
    environment: EnvironmentId,
    ordinals: &ops::Range<u64>,
    transaction: &TransactionId,
) -> Key<AcceptedTrigger> {
    let (first, end) = (Ordinal::new(ordinals.start), Ordinal::new(ordinals.end));
    TRIGGERS.within(environment).then(first).then(end).then(transaction).end()
}

impl Excerpt for TriggerRecipients {
    type Of = AcceptedTrigger;

    fn key(&self, environment: EnvironmentId) -> Key<AcceptedTrigger> {
        trigger(environment, &self.ordinals, &self.transaction_id)
    }
}

impl Excerpt for NotificationOwner {
    type Of = Notification;

    fn key(&self, environment: EnvironmentId) -> Key<Notification> {
        notification(environment, self.id.ordinal())
    }
}

impl Record for AcceptedTrigger {
    fn key(&self) -> Key<Self> {
        trigger(self.environment_id, &self.ordinals, &self.receipt.transaction_id)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        let of_transaction =
            TRANSACTIONS.within(self.environment_id).then(&self.receipt.transaction_id);
        let (first, end) = (Ordinal::new(self.ordinals.start), Ordinal::new(self.ordinals.end));
        entries.add(of_transaction.then(first).then(end).end());
    }
}

impl Record for CanceledTrigger {
    fn key(&self) -> Key<Self> {
        canceled_trigger(self.environment_id, &self.cancellation.transaction_id)
    }
}

impl Record for FanOut {
    fn key(&self) -> Key<Self> {
        fan_out(self.environment_id, &self.transaction_id)
    }
}

impl Record for FanOutState {
    fn key(&self) -> Key<Self> {
        fan_out_state(self.environment_id, &self.progress.transaction_id)
    }
}

impl Record for Notification {
    fn key(&self) -> Key<Self> {
        notification(self.environment_id, self.id.ordinal())
    }

    // The jobs of one that is under way have short logs yet. Eight of these with three jobs fill a
    // page.
    fn reserved_len(&self) -> usize {
        let has_ended = self.jobs.iter().all(|job| job.status.has_ended());
        if has_ended { 0 } else { 130 + 110 * self.jobs.len() }
    }

    fn index(&self, entries: &mut Entries<Self>) {
        for letter in self.letter_facts() {
            entries.add(dead_letter_entry(self.environment_id, &letter));
        }
        for message in self.provider_messages() {
            entries.add(provider_message_entry(self, message));
        }
    }

    fn outcomes(&self) -> Option<(Listed, Outcomes)> {
        Some((Listed::of(self.environment_id, self.id.ordinal()), self.outcomes()))
    }

    fn events(before: Option<&Self>, after: Option<&Self>) -> Vec<Event> {
        Event::of_notification(before, after)
    }
}

impl Record for Task {
    fn key(&self) -> Key<Self> {
        task(self.environment_id, self.id)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        match self.state {
            TaskState::Waiting { due_at, .. } | TaskState::Leased { until: due_at, .. } => {
                entries.add(lane(&self.lane()).then(due_at).then(self.id).end());
            }
            TaskState::Held { integration_id, .. } => {
                let held = HELD.within(self.environment_id).then(integration_id);
                entries.add(held.then(self.id).end());
            }
        }
    }

    fn lane(&self) -> Option<LanePlace> {
        Some((self.lane(), self.state.due_at()))
    }
}

impl Record for DigestBucket {
    fn key(&self) -> Key<Self> {
        digest_bucket(&self.id)
    }
}

impl Record for WindowEvent {
    fn key(&self) -> Key<Self> {
        let window = DIGEST_EVENTS.within(self.environment_id).then(self.window_id);
        window.then(self.number).end()
    }
}

impl Record for ThrottleSlot {
    fn key(&self) -> Key<Self> {
        throttle_slots(&self.id).then(self.until).then(self.notification_id).end()
    }
}

impl Record for Quarantined {
    fn key(&self) -> Key<Self> {
        quarantined(self.id)
    }
}

impl Record for Message {
    fn key(&self) -> Key<Self> {
        message(self.environment_id, self.id.place())
    }

    fn index(&self, entries: &mut Entries<Self>) {
        let list = message_list(self.environment_id, self.subscriber_id, self.shelf());
        entries.add_signed(list.then(self.list_place()).end(), Signature::of(self));
        if let Some(change) = self.last_change {
            let changes = message_changes(self.environment_id, self.subscriber_id);
            entries.add(changes.then(change).then(self.id.place()).end());
        }
    }

    fn counted(&self) -> Option<(Key<Bytes>, Counted)> {
        let key = message_counters(self.environment_id, self.subscriber_id);
        Some((key, Counted::Message(self.counted_part())))
    }

    fn events(before: Option<&Self>, after: Option<&Self>) -> Vec<Event> {
        Event::of_message(before, after).into_iter().collect()
    }
}

impl Excerpt for MessageExcerpt {
    type Of = Message;

    fn key(&self, environment: EnvironmentId) -> Key<Message> {
        message(environment, self.id.place())
    }

    fn entry(&self, environment: EnvironmentId) -> Key<Message> {
        let list = message_list(environment, self.subscriber_id, self.shelf());
        list.then(self.list_place()).end()
    }
}

impl Excerpt for WholeMessage {
    type Of = Message;

    fn key(&self, environment: EnvironmentId) -> Key<Message> {
        message(environment, self.0.id.place())
    }

    fn entry(&self, environment: EnvironmentId) -> Key<Message> {
        let Self(message) = self;
        let list = message_list(environment, message.subscriber_id, message.shelf());
        list.then(message.list_place()).end()
    }
}

impl Record for DeletedMessage {
    fn key(&self) -> Key<Self> {
        let deleted = deleted_messages(self.environment_id, self.subscriber_id);
        deleted.then(self.change).then(self.message_id.place()).end()
    }

    fn counted(&self) -> Option<(Key<Bytes>, Counted)> {
        let key = message_counters(self.environment_id, self.subscriber_id);
        let (change, place) = (self.change, self.message_id.place());
        Some((key, Counted::Deletion { change, place }))
    }
}
