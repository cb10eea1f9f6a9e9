//! Data about one person: all records of a subscriber, and their erasure.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::connection::ChannelConnection;
use crate::endpoint::ChannelEndpoint;
use crate::ids::{IdempotencyKey, InternalSubscriberId, SubscriberId};
use crate::message::Message;
use crate::notification::Notification;
use crate::preference::SubscriberPreference;
use crate::receipt::ResentMessage;
use crate::subscriber::Subscriber;
use crate::subscription::Subscription;
use crate::suppression::{SuppressedAddress, Suppression};
use crate::trigger::{
    AcceptedTrigger, FanOut, Recipient, Recipients, SubscriberRecipient, TriggerReceipt,
};
use crate::vocabulary::Channel;

/// Maximum number of leading bytes that ids of the same millisecond share.
const SHARED: usize = 10;

/// Minimum size of an address that is looked for within longer texts, in bytes. The phone number of a
/// subscriber may be any text, such as one digit.
const MIN_SEARCHED: usize = 5;

/// Everything that an environment has about a subscriber, as of one moment. Its JSON is for the
/// person, or for another service.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PersonalData {
    /// Subscriber, with addresses, devices and custom data.
    pub subscriber: Subscriber,
    /// Preferences, those for contexts included.
    pub preferences: Vec<SubscriberPreference>,
    /// Subscriptions to topics.
    pub subscriptions: Vec<Subscription>,
    /// Channel connections.
    pub connections: Vec<ChannelConnection>,
    /// Channel endpoints.
    pub endpoints: Vec<ChannelEndpoint>,
    /// Notifications with payloads, jobs and their logs, oldest first. Those that wait in a delay or
    /// a digest and dead letters are among them.
    pub notifications: Vec<Notification>,
    /// Messages.
    pub messages: Vec<Message>,
    /// Receipts of triggers that name the subscriber, without the other recipients.
    pub receipts: Vec<TriggerReceipt>,
    /// Suppressions of the addresses.
    pub suppressions: Vec<Suppression>,
}

impl PersonalData {
    /// Returns the data of a subscriber without anything else.
    #[doc(hidden)]
    pub fn new(subscriber: Subscriber) -> Self {
        Self {
            subscriber,
            preferences: Vec::new(),
            subscriptions: Vec::new(),
            connections: Vec::new(),
            endpoints: Vec::new(),
            notifications: Vec::new(),
            messages: Vec::new(),
            receipts: Vec::new(),
            suppressions: Vec::new(),
        }
    }

    /// Sets the preferences and the subscriptions.
    #[doc(hidden)]
    #[must_use]
    pub fn with_settings(
        self,
        preferences: Vec<SubscriberPreference>,
        subscriptions: Vec<Subscription>,
    ) -> Self {
        Self { preferences, subscriptions, ..self }
    }

    /// Sets the connections and the endpoints.
    #[doc(hidden)]
    #[must_use]
    pub fn with_channels(
        self,
        connections: Vec<ChannelConnection>,
        endpoints: Vec<ChannelEndpoint>,
    ) -> Self {
        Self { connections, endpoints, ..self }
    }

    /// Sets the notifications, the messages and the receipts.
    #[doc(hidden)]
    #[must_use]
    pub fn with_activity(
        self,
        notifications: Vec<Notification>,
        messages: Vec<Message>,
        receipts: Vec<TriggerReceipt>,
    ) -> Self {
        Self { notifications, messages, receipts, ..self }
    }

    /// Sets the suppressions.
    #[doc(hidden)]
    #[must_use]
    pub fn with_suppressions(self, suppressions: Vec<Suppression>) -> Self {
        Self { suppressions, ..self }
    }
}

/// Result of an erasure: the numbers of removed and of changed records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
#[must_use = "it may be unfinished"]
pub struct Erasure {
    /// Removed notifications, with their jobs, payloads and tasks.
    pub notifications: u64,
    /// Removed messages of these notifications.
    pub messages: u64,
    /// Triggers with other recipients that name the subscriber no more.
    pub triggers: u64,
    /// Removed answers of calls with an idempotency key.
    pub answers: u64,
    /// Removed windows and places of digests and throttles.
    pub windows: u64,
    /// Removed entries of the quarantine.
    pub quarantined: u64,
    /// Suppressions of which only a hash of the address is left, so that nothing is sent to it.
    pub suppressions: u64,
    /// Removed tasks and digest events whose notification is gone. Nothing names their person, so that
    /// those of others are among them.
    #[serde(default)]
    pub orphans: u64,
    /// `true` if all was erased. `false` if the host ended the erasure, and another call goes on.
    #[serde(default = "yes")]
    pub is_finished: bool,
}

// Answers are stored of finished erasures only.
const fn yes() -> bool {
    true
}

impl Erasure {
    /// Returns the result of an erasure that is at its end.
    #[doc(hidden)]
    pub const fn finished(self) -> Self {
        Self { is_finished: true, ..self }
    }
}

/// What a record about a person is recognized by.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct PersonalIdentifiers {
    id: SubscriberId,
    // The ids given by the engine, as texts and as the quarantine shows bytes.
    ids: Vec<String>,
    // The addresses, each as it was given and as suppressions name it.
    addresses: Vec<String>,
    // The identifiers of connections, endpoints and subscriptions.
    identifiers: BTreeSet<String>,
}

impl PersonalIdentifiers {
    /// Returns the identifiers of those who had an id: the ids that the engine gave them, and addresses.
    pub fn of(
        id: &SubscriberId,
        own: impl IntoIterator<Item = InternalSubscriberId>,
        addresses: impl IntoIterator<Item = (Channel, String)>,
    ) -> Self {
        let ids = own.into_iter().flat_map(forms_of_id).collect();
        let addresses = addresses.into_iter().flat_map(forms).collect();
        Self { id: id.clone(), ids, addresses, identifiers: BTreeSet::new() }
    }

    /// Adds the identifiers of connections, endpoints and subscriptions.
    #[must_use]
    pub fn naming(self, identifiers: BTreeSet<String>) -> Self {
        Self { identifiers, ..self }
    }

    /// Adds the identifiers of a subscriber.
    #[must_use]
    pub fn with(mut self, subscriber: Option<&Subscriber>) -> Self {
        let Some(Subscriber { id, profile, .. }) = subscriber else { return self };
        self.ids.extend(forms_of_id(*id));
        self.addresses.extend(profile.addresses().flat_map(forms));
        self
    }

    /// Returns `true` if a text in `json` is the id of the subscriber, or has an id that the engine has
    /// given, the identifier of a subscription that the engine has made or an address in it. An address
    /// within a longer word does not count.
    pub fn are_in(&self, json: &Value) -> bool {
        let subscription = Subscription::part_of_subscriber(&self.id);
        let is_found = |text: &str| {
            text == self.id.as_str()
                || has_subscription(text, &subscription)
                || self.ids.iter().any(|id| text.contains(id.as_str()))
                || self.addresses.iter().any(|address| has_word(text, address))
        };
        any_text(json, is_found)
    }

    /// Returns `true` if a text in the JSON of a refusal is an identifier, or quotes one. An identifier may
    /// be any word, which says nothing in the result of a call that was done.
    pub fn are_named_in(&self, refusal: &Value) -> bool {
        any_text(refusal, |text| text.split('`').any(|part| self.identifiers.contains(part)))
    }

    /// Returns `true` if `text`, with escapes for bytes that are not printable ASCII, has one of
    /// them in it, also within a longer address: the texts in a record that cannot be read have no
    /// known bounds. The id that the host has given may be any word, and does not count.
    pub fn are_in_escaped(&self, text: &str) -> bool {
        self.ids
            .iter()
            .chain(self.searched_addresses())
            .any(|part| text.contains(part.as_str()) || text.contains(&escaped(part.as_bytes())))
    }

    /// Returns `true` if an idempotency key has one of them in it, as [`are_in`](Self::are_in)
    /// does. A key that is the id that the host has given may be about something else.
    pub fn are_in_key(&self, key: &IdempotencyKey) -> bool {
        self.ids.iter().any(|id| key.as_str().contains(id.as_str()))
            || self.searched_addresses().any(|address| has_word(key.as_str(), address))
    }

    fn searched_addresses(&self) -> impl Iterator<Item = &String> {
        self.addresses.iter().filter(|address| address.len() >= MIN_SEARCHED)
    }
}

// Returns `true` if `is_found` returns `true` for a text in `json`, at any depth.
fn any_text(json: &Value, is_found: impl Fn(&str) -> bool) -> bool {
    let mut open = vec![json];
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) if is_found(text) => return true,
            Value::Array(items) => open.extend(items),
            Value::Object(members) => open.extend(members.values()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    false
}

// Returns `true` if `address` is in `text` without a letter or a digit before or behind it. A short
// address has to be the whole text.
fn has_word(text: &str, address: &str) -> bool {
    if address.len() < MIN_SEARCHED {
        return text == address;
    }
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once(address) {
        if !before.ends_with(char::is_alphanumeric) && !behind.starts_with(char::is_alphanumeric) {
            return true;
        }
        // The next one may begin within this one, behind a sign.
        let found = rest.get(before.len()..).unwrap_or_default();
        let behind_sign = found.split_once(|one: char| !one.is_alphanumeric());
        rest = behind_sign.map_or("", |(_, behind)| behind);
    }
    false
}

// Returns `true` if `text` has the identifier of a subscription in which `part` names the subscriber. What
// follows is the end, the contexts, or a quotation mark if the identifier is quoted: an id may be the
// beginning of another one, and have quotation marks in it.
fn has_subscription(text: &str, part: &str) -> bool {
    let Some(start) = text.find(Subscription::MADE) else { return false };
    let quotes = ['`', '"'].map(|quote| (quote, text.find(quote)));
    text.match_indices(part).any(|(at, _)| {
        let behind = text.get(at + part.len()..).unwrap_or_default();
        let ends_quoted = quotes.iter().any(|(quote, first)| {
            first.is_some_and(|first| first < at) && behind.starts_with(*quote)
        });
        start < at && (behind.is_empty() || ends_quoted || behind.starts_with(":ctx_"))
    })
}

// An id as text, and its last bytes as the quarantine shows bytes.
fn forms_of_id(id: InternalSubscriberId) -> [String; 2] {
    let tail: Vec<u8> = Uuid::from(id).as_bytes().iter().skip(SHARED).copied().collect();
    [id.to_string(), escaped(&tail)]
}

// Bytes as the quarantine shows them.
fn escaped(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

// An address as it was given, and as suppressions name it.
fn forms((channel, given): (Channel, String)) -> impl Iterator<Item = String> {
    let suppressed = SuppressedAddress::new(channel, &given).ok();
    let suppressed = suppressed.map(|address| address.address().to_owned());
    [given].into_iter().chain(suppressed).filter(|form| !form.is_empty())
}

/// Returns the addresses of a message.
#[doc(hidden)]
pub fn addresses_of_message(message: Message) -> impl Iterator<Item = (Channel, String)> {
    let email = message.email.map(|email| (Channel::Email, email));
    email.into_iter().chain(message.phone.map(|phone| (Channel::Sms, phone)))
}

/// Returns the addresses of the recipient in the event of a notification, and those of messages that were sent
/// again since.
#[doc(hidden)]
pub fn addresses_of(notification: &Notification) -> impl Iterator<Item = (Channel, String)> {
    let text = |name: &str| Some(notification.to.as_ref()?.get(name)?.as_str()?.to_owned());
    let email = text("email").map(|email| (Channel::Email, email));
    let phone = text("phone").map(|phone| (Channel::Sms, phone));
    let resent = notification.jobs.iter().flat_map(|job| {
        let sent = job.provider_messages.iter().filter_map(|sent| sent.resent.as_ref());
        let address = |resent: &ResentMessage| Some((job.kind.channel()?, resent.address.clone()?));
        sent.filter_map(address)
    });
    let given = email.into_iter().chain(phone).chain(resent);
    given.filter(|(_, address)| !address.is_empty())
}

impl TriggerReceipt {
    /// Returns the receipt without the notifications of other subscribers.
    #[doc(hidden)]
    #[must_use]
    pub fn only(mut self, id: &SubscriberId) -> Self {
        self.notifications.retain(|created| created.subscriber_id == *id);
        self
    }
}

impl AcceptedTrigger {
    /// Returns the trigger without a subscriber. Returns `None` if it does not name the subscriber.
    pub fn without(&self, id: &SubscriberId) -> Option<Self> {
        let mut rest = self.clone();
        rest.receipt.notifications.retain(|created| created.subscriber_id != *id);
        (rest != *self).then_some(rest)
    }
}

impl FanOut {
    /// Returns the event without a subscriber. Returns `None` if it does not name the subscriber.
    pub fn without(&self, id: &SubscriberId) -> Option<Self> {
        let mut rest = self.clone();
        let names = |recipient: &SubscriberRecipient| recipient.subscriber_id() == id;
        let is_other = |recipient: &Recipient| match recipient {
            Recipient::Subscriber(subscriber) => !names(subscriber),
            Recipient::Topic(_) => true,
        };
        let without_exclusion = |mut recipient: Recipient| {
            if let Recipient::Topic(topic) = &mut recipient {
                topic.exclude.retain(|excluded| excluded != id);
            }
            recipient
        };
        rest.trigger.to = match rest.trigger.to {
            Recipients::One(one) if is_other(&one) => Recipients::One(without_exclusion(one)),
            Recipients::One(_) => Recipients::Many(Vec::new()),
            Recipients::Many(many) => {
                Recipients::Many(many.into_iter().filter(is_other).map(without_exclusion).collect())
            }
        };
        rest.trigger.actor = rest.trigger.actor.filter(|actor| !names(actor));
        (rest != *self).then_some(rest)
    }
}

#[cfg(test)]
mod tests;
