//! Terms by which notifications are found.

use domain::context::ContextSet;
use domain::ids::{InternalSubscriberId, SubscriptionIdentifier, TopicKey, WorkflowId};
use domain::notification::Notification;
use domain::time::Timestamp;
use domain::vocabulary::{Severity, StepType};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// Number of notifications whose facets share one row.
pub(crate) const FACETS_IN_ROW: u32 = 16;

/// Number of kinds of terms.
pub(crate) const DIMENSIONS: usize = Dimension::ALL.len();

/// A property of notifications by which the index finds them: a channel, a topic, a severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term {
    dimension: Dimension,
    value: u128,
}

/// Property of a term, from the most to the least selective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
enum Dimension {
    Subscription = 1,
    Subscriber,
    Topic,
    Contexts,
    Workflow,
    Severity,
    Channel,
}

/// Time of creation and terms of a notification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facets {
    /// Time of creation.
    pub created_at: Timestamp,
    /// Its terms.
    pub terms: Vec<Term>,
}

impl Dimension {
    const ALL: [Dimension; 7] = [
        Dimension::Subscription,
        Dimension::Subscriber,
        Dimension::Topic,
        Dimension::Contexts,
        Dimension::Workflow,
        Dimension::Severity,
        Dimension::Channel,
    ];

    const fn term(self, value: u128) -> Term {
        Term { dimension: self, value }
    }
}

#[doc(hidden)]
impl Term {
    /// Term of the notifications for a subscriber.
    pub fn subscriber(id: InternalSubscriberId) -> Self {
        Dimension::Subscriber.term(Uuid::from(id).as_u128())
    }

    /// Returns `true` for a term of the notifications for a subscriber.
    pub(crate) const fn is_subscriber(self) -> bool {
        matches!(self.dimension, Dimension::Subscriber)
    }

    /// Term of the notifications of a workflow.
    pub fn workflow(id: WorkflowId) -> Self {
        Dimension::Workflow.term(Uuid::from(id).as_u128())
    }

    /// Term of the notifications of a severity.
    pub fn severity(severity: Severity) -> Self {
        Dimension::Severity.term(word(severity.as_str()))
    }

    /// Term of the notifications whose workflow has a step of this kind.
    pub fn channel(kind: StepType) -> Self {
        Dimension::Channel.term(word(kind.as_str()))
    }

    /// Term of the notifications that came through a topic.
    pub fn topic(key: &TopicKey) -> Self {
        Dimension::Topic.term(digest(key.as_str()))
    }

    /// Term of the notifications that came through a subscription.
    pub fn subscription(identifier: &SubscriptionIdentifier) -> Self {
        Dimension::Subscription.term(digest(identifier.as_str()))
    }

    /// Term of the notifications about exactly these contexts.
    pub fn contexts(contexts: &ContextSet) -> Self {
        // Most notifications are about none.
        Dimension::Contexts.term(if contexts.is_empty() { 0 } else { digest(contexts.canonical()) })
    }

    /// Number of the dimension, and the value.
    pub(crate) const fn parts(self) -> (u8, u128) {
        (self.dimension as u8, self.value)
    }

    /// The term of the same dimension with that value.
    pub(crate) const fn with_value(self, value: u128) -> Self {
        self.dimension.term(value)
    }

    /// The parts as bytes, which sort as terms do.
    pub(crate) fn to_bytes(self) -> [u8; 17] {
        let mut bytes = [0; 17];
        let (dimension, value) = bytes.split_at_mut(1);
        dimension.copy_from_slice(&[self.dimension as u8]);
        value.copy_from_slice(&self.value.to_be_bytes());
        bytes
    }

    /// Returns the term of `bytes`. Returns `None` if the number of the dimension is unknown.
    pub(crate) fn of_bytes([dimension, value @ ..]: [u8; 17]) -> Option<Self> {
        Self::of_parts(dimension, u128::from_be_bytes(value))
    }

    /// Returns the term of these parts. Returns `None` if the number of the dimension is unknown.
    pub(crate) fn of_parts(dimension: u8, value: u128) -> Option<Self> {
        let at = usize::from(dimension.checked_sub(1)?);
        Some(Dimension::ALL.get(at)?.term(value))
    }
}

impl From<&Notification> for Facets {
    fn from(notification: &Notification) -> Self {
        let mut terms = vec![
            Term::subscriber(notification.subscriber_id),
            Term::contexts(&notification.context_keys),
            Term::severity(notification.severity.unwrap_or_default()),
        ];
        terms.extend(notification.workflow_id.map(Term::workflow));
        terms.extend(notification.step_types.iter().map(|kind| Term::channel(*kind)));
        for topic in &notification.topics {
            terms.push(Term::topic(&topic.topic_key));
            terms.extend(topic.subscription_ids.iter().map(Term::subscription));
        }
        terms.sort_unstable();
        terms.dedup();
        Self { created_at: notification.created_at, terms }
    }
}

// A word of a closed list is its own value: none is longer than 16 bytes, or starts as another one.
fn word(word: &str) -> u128 {
    word.bytes().take(16).fold(0, |value, byte| value << 8 | u128::from(byte))
}

// Texts with equal digests cannot be found, not even on purpose.
fn digest(text: &str) -> u128 {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().take(16).fold(0, |value, byte| value << 8 | u128::from(*byte))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_dimension_has_its_number() {
        for (at, dimension) in (1_u8..).zip(Dimension::ALL) {
            assert_eq!(dimension as u8, at);
            assert_eq!(Term::of_parts(at, 7), Some(dimension.term(7)));
        }
        assert_eq!(Term::of_parts(0, 7), None);
        assert_eq!(Term::of_parts(8, 7), None);
    }

    #[test]
    fn words_have_values_of_their_own() {
        let channels = StepType::ALL.iter().map(|kind| kind.as_str());
        let words: Vec<&str> =
            channels.chain(Severity::ALL.iter().map(|one| one.as_str())).collect();
        let values: BTreeSet<u128> = words.iter().map(|one| word(one)).collect();
        assert_eq!(values.len(), words.len());
        assert!(words.iter().all(|word| word.len() <= 16));
    }
}
