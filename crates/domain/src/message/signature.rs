//! Signatures: what queries may ask of a message, in 8 bytes.

use uuid::Uuid;

use super::{MessageFacts, MessageQuery};
use crate::context::{ContextFilter, ContextSet};
use crate::fnv;
use crate::ids::{TransactionId, WorkflowId};
use crate::vocabulary::{Channel, Severity};
use crate::workflow::Workflow;

/// Bloom filter of those values of a message that queries ask for and that never change. It allows
/// each value that the message has, and few others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature(u64);

/// Signatures that the messages of a query may have.
#[derive(Clone, Debug)]
pub struct SignatureFilter {
    // The values of each condition. A message has one of them.
    conditions: Vec<Vec<Signature>>,
}

// A value of a message.
#[derive(Clone, Copy)]
enum Value<'m> {
    Channel(Channel),
    Severity(Severity),
    Contexts(&'m ContextSet),
    Tag(&'m str),
    Transaction(&'m TransactionId),
    Workflow(WorkflowId),
    Identifier(&'m str),
}

// Number of the lower bits, which hashed values share. Each bit above them stands for one value.
const SHARED: u64 = 55;

// Number of bits of a hashed value. A signature of eight hashed values allows one in 20 of the values that
// its message does not have.
const BITS: u32 = 3;

impl Signature {
    /// Length in bytes.
    pub const LEN: usize = size_of::<u64>();

    /// Returns the signature of a message.
    pub fn of<'m>(message: impl Into<MessageFacts<'m>>) -> Self {
        Self::of_facts(message.into())
    }

    fn of_facts(message: MessageFacts<'_>) -> Self {
        let tags = message.tags.iter().map(|tag| Value::Tag(tag));
        let identifier = message.workflow_identifier.map(|id| Value::Identifier(id.as_str()));
        let always = [
            Value::Channel(message.channel),
            Value::Severity(message.severity),
            Value::Contexts(message.context_keys),
            Value::Transaction(message.transaction_id),
        ];
        let values = always.into_iter().chain(message.workflow_id.map(Value::Workflow));
        let values = values.chain(identifier).chain(tags);
        Self(values.fold(0, |bits, value| bits | value.bits()))
    }

    /// Returns the bytes on disk.
    pub const fn to_bytes(self) -> [u8; Self::LEN] {
        self.0.to_be_bytes()
    }

    /// Returns the signature with these bytes.
    pub const fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        Self(u64::from_be_bytes(bytes))
    }

    const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl SignatureFilter {
    /// Returns the filter of the messages that `query` selects.
    pub fn of(query: &MessageQuery) -> Self {
        let tags = query.tags.groups().iter();
        let tags = tags.map(|group| signatures(group.iter().map(|tag| Value::Tag(tag))));
        let severities = query.severities.iter().map(|severity| Value::Severity(*severity));
        let identifiers = query.workflows.iter().map(|name| Value::Identifier(name.as_str()));
        let ids = query.workflows.iter().filter_map(|name| Workflow::id_in(name.as_str()));
        let templates = identifiers.chain(ids.map(Value::Workflow));
        let contexts = match &query.context_keys {
            ContextFilter::Any => None,
            ContextFilter::Exact(contexts) => Some(Value::Contexts(contexts)),
        };
        let conditions = [
            signatures(query.channel.map(Value::Channel)),
            signatures(query.transaction_id.as_ref().map(Value::Transaction)),
            signatures(contexts),
            signatures(severities),
            signatures(templates),
        ];
        let conditions = conditions.into_iter().chain(tags).filter(|values| !values.is_empty());
        Self { conditions: conditions.collect() }
    }

    /// Returns `true` if a message with this signature may meet the conditions.
    pub fn allows(&self, signature: Signature) -> bool {
        self.conditions.iter().all(|values| values.iter().any(|value| signature.has(*value)))
    }
}

fn signatures<'q>(values: impl IntoIterator<Item = Value<'q>>) -> Vec<Signature> {
    values.into_iter().map(|value| Signature(value.bits())).collect()
}

impl Value<'_> {
    // Files have these bits. The shelf of a message says whether it is in the inbox.
    fn bits(self) -> u64 {
        match self {
            Value::Channel(Channel::InApp) => 0,
            Value::Channel(Channel::Email) => 1 << 63,
            Value::Channel(Channel::Sms) => 1 << 62,
            Value::Channel(Channel::Chat) => 1 << 61,
            Value::Channel(Channel::Push) => 1 << 60,
            Value::Severity(Severity::High) => 1 << 59,
            Value::Severity(Severity::Medium) => 1 << 58,
            Value::Severity(Severity::Low) => 1 << 57,
            Value::Severity(Severity::None) => 1 << 56,
            Value::Contexts(contexts) if contexts.is_empty() => 1 << SHARED,
            Value::Contexts(contexts) => hashed(1, contexts.canonical().as_bytes()),
            Value::Tag(tag) => hashed(2, tag.as_bytes()),
            Value::Transaction(id) => hashed(3, id.as_str().as_bytes()),
            Value::Workflow(id) => hashed(4, Uuid::from(id).as_bytes()),
            Value::Identifier(identifier) => hashed(5, identifier.as_bytes()),
        }
    }
}

// The bits of a value of one kind. Each is from 16 bits of the hash.
fn hashed(kind: u8, value: &[u8]) -> u64 {
    let hash = hash(kind, value);
    (0..BITS).fold(0, |bits, at| {
        let part = hash >> (u16::BITS * at) & u64::from(u16::MAX);
        bits | 1 << ((part * SHARED) >> u16::BITS)
    })
}

// FNV-1a, and the last step of SplitMix64, which makes every bit depend on every byte.
fn hash(kind: u8, value: &[u8]) -> u64 {
    let bits = fnv::hash([kind].iter().chain(value));
    let bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use serde_json::{Value as Json, json};

    use super::*;
    use crate::message::Message;
    use crate::message::tests::message;
    use crate::sample;

    #[derive(Clone, Debug)]
    struct About {
        channel: usize,
        severity: usize,
        tags: BTreeSet<u8>,
        contexts: BTreeSet<u8>,
        workflow: Option<u8>,
        transaction: u8,
    }

    prop_compose! {
        fn about()(
            (channel, severity) in (0..5_usize, 0..4_usize),
            tags in prop::collection::btree_set(0..6_u8, 0..4),
            contexts in prop::collection::btree_set(0..3_u8, 0..3),
            (workflow, transaction) in (prop::option::of(0..4_u8), 0..6_u8),
        ) -> About {
            About { channel, severity, tags, contexts, workflow, transaction }
        }
    }

    fn context_keys(contexts: &BTreeSet<u8>) -> Json {
        contexts.iter().map(|kind| json!(format!("kind-{kind}:id"))).collect()
    }

    fn of(about: &About) -> Message {
        let workflow = about.workflow;
        Message {
            severity: Severity::ALL[about.severity],
            tags: about.tags.iter().map(|tag| format!("tag {tag}")).collect(),
            context_keys: serde_json::from_value(context_keys(&about.contexts)).unwrap(),
            workflow_id: workflow.map(|number| sample::id(number.into())),
            workflow_identifier: workflow.map(|number| format!("w{number}").parse().unwrap()),
            transaction_id: format!("t{}", about.transaction).parse().unwrap(),
            ..message(Channel::ALL[about.channel])
        }
    }

    // A query with those conditions of `about` whose bits are set in `conditions`. Of workflows it
    // names one by its identifier, and one by its id.
    fn query(about: &About, conditions: u8) -> MessageQuery {
        let has = |condition: u8| conditions >> condition & 1 == 1;
        let mut query = json!({});
        let mut ask = |condition, name: &str, value: Json| {
            if has(condition) {
                query[name] = value;
            }
        };
        let message = of(about);
        let workflow = about.workflow.unwrap_or_default();
        let id: WorkflowId = sample::id(u128::from(workflow) + 1);
        ask(0, "channel", json!(message.channel));
        ask(1, "severity", json!([message.severity, "low"]));
        ask(2, "tags", json!(message.tags));
        ask(3, "contextKeys", context_keys(&about.contexts));
        ask(4, "transactionId", json!(message.transaction_id));
        ask(5, "templates", json!([format!("w{workflow}"), id]));
        ask(6, "read", json!(false));
        serde_json::from_value(query).unwrap()
    }

    proptest! {
        #[test]
        fn the_messages_of_a_query_are_allowed(
            all in prop::collection::vec(about(), 1..20),
            (asked, conditions) in (about(), any::<u8>()),
        ) {
            let queries = [query(&asked, conditions), query(&all[0], conditions)];
            for (query, about) in queries.iter().flat_map(|query| all.iter().map(move |one| (query, one))) {
                let message = of(about);
                let is_allowed = SignatureFilter::of(query).allows(Signature::of(&message));
                prop_assert!(is_allowed || !query.matches(&message), "{query:?} of {message:?}");
            }
        }

        #[test]
        fn bytes_are_read_as_they_were_written(bits: u64) {
            let signature = Signature(bits);
            prop_assert_eq!(Signature::from_bytes(signature.to_bytes()), signature);
        }
    }

    /// One row per condition: a query that a message meets, and one that it does not meet.
    #[test]
    fn a_signature_excludes_what_a_message_does_not_have() {
        let (tags, severity) = (vec!["news".to_owned()], Severity::High);
        let id: WorkflowId = sample::id(3);
        let other: WorkflowId = sample::id(4);
        let signature = Signature::of(&Message { tags, severity, ..message(Channel::Sms) });
        for (condition, met, unmet) in [
            ("channel", json!("sms"), json!("email")),
            ("severity", json!(["low", "high"]), json!(["low", "none"])),
            ("tags", json!(["bills", "news"]), json!(["bills", "order-shipped", "tenant:acme"])),
            ("contextKeys", json!(["tenant:acme"]), json!(["tenant:news"])),
            ("contextKeys", json!(["tenant:acme"]), json!([])),
            ("transactionId", json!("txn"), json!("other")),
            ("templates", json!(["other", "order-shipped"]), json!(["other", "news"])),
            ("templates", json!([other, id]), json!([other])),
        ] {
            for (value, is_met) in [(met, true), (unmet, false)] {
                let query: MessageQuery =
                    serde_json::from_value(json!({ condition: value })).unwrap();
                assert_eq!(SignatureFilter::of(&query).allows(signature), is_met, "{query:?}");
            }
        }
    }

    /// With two tags and a set of contexts, a signature has six hashed values.
    #[test]
    fn one_of_30_other_tags_is_allowed_at_most() {
        let asked = |number: u32| {
            let query = json!({ "tags": [format!("other {number}")] });
            SignatureFilter::of(&serde_json::from_value(query).unwrap())
        };
        let mut wrong = 0;
        for number in 0..200 {
            let tags = vec![format!("tag {number}"), format!("kind {}", number % 7)];
            let transaction_id = format!("transaction {number}").parse().unwrap();
            let signature =
                Signature::of(&Message { transaction_id, tags, ..message(Channel::InApp) });
            wrong += (0..200).filter(|number| asked(*number).allows(signature)).count();
        }
        assert!((200..=200 * 200 / 30).contains(&wrong), "{wrong}");
    }

    /// Files have these bits.
    #[test]
    fn every_value_keeps_its_bits() {
        let contexts = |keys: Json| serde_json::from_value::<ContextSet>(keys).unwrap();
        let (none, acme) = (contexts(json!([])), contexts(json!(["tenant:acme"])));
        let transaction = "txn".parse().unwrap();
        let values = [
            Value::Contexts(&none),
            Value::Contexts(&acme),
            Value::Tag("news"),
            Value::Tag("Größe"),
            Value::Transaction(&transaction),
            Value::Workflow(sample::id(3)),
            Value::Identifier("order-shipped"),
        ];
        let bits = |value: Value<'_>| {
            (0..64).filter(|bit| value.bits() >> bit & 1 == 1).collect::<Vec<_>>()
        };
        let expected = [
            vec![55],
            vec![21, 42, 52],
            vec![0, 28],
            vec![3, 11, 27],
            vec![22, 23, 35],
            vec![4, 10, 43],
            vec![9, 13, 31],
        ];
        assert_eq!(values.map(bits), expected);
        let words = Channel::ALL.iter().map(|channel| Value::Channel(*channel).bits());
        assert_eq!(words.collect::<Vec<_>>(), [0, 1 << 63, 1 << 62, 1 << 61, 1 << 60]);
        let words = Severity::ALL.iter().map(|severity| Value::Severity(*severity).bits());
        assert_eq!(words.collect::<Vec<_>>(), [1 << 59, 1 << 58, 1 << 57, 1 << 56]);
    }
}
