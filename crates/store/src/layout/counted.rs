//! The keys of the numbers of records in lists.

use domain::ids::{EnvironmentId, TopicId};
use domain::page::OrderBy;
use uuid::Uuid;

use super::{
    LIST_COUNTS, Table, context_list, environment_of, subscriber_ids, subscription_ids, topic_list,
};
use crate::key::{Bytes, Key, KeyPart, Open, Prefix};

const SUBSCRIBERS: u8 = 0;
const TOPICS: u8 = 1;
const CONTEXTS: u8 = 2;
const SUBSCRIPTIONS: u8 = 3;

/// A list whose records are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CountedList {
    /// The subscribers of an environment.
    Subscribers(EnvironmentId),
    /// The topics of an environment.
    Topics(EnvironmentId),
    /// The contexts of an environment.
    Contexts(EnvironmentId),
    /// The subscriptions of a topic.
    Subscriptions(EnvironmentId, TopicId),
}

impl CountedList {
    /// The tables that have the entries of counted lists.
    pub(crate) const TABLES: [Table; 4] =
        [Table::SubscriberIds, Table::TopicLists, Table::ContextLists, Table::SubscriptionIds];

    /// The environment of the records.
    pub fn environment(self) -> EnvironmentId {
        match self {
            Self::Subscribers(environment)
            | Self::Topics(environment)
            | Self::Contexts(environment)
            | Self::Subscriptions(environment, _) => environment,
        }
    }

    /// The key of the number of records.
    pub fn key(self) -> Key<Bytes> {
        let (environment, tag, topic) = match self {
            Self::Subscribers(environment) => (environment, SUBSCRIBERS, None),
            Self::Topics(environment) => (environment, TOPICS, None),
            Self::Contexts(environment) => (environment, CONTEXTS, None),
            Self::Subscriptions(environment, topic) => (environment, SUBSCRIPTIONS, Some(topic)),
        };
        LIST_COUNTS.within(environment).then(tag).then(topic).end()
    }

    /// The list of a key. Returns `None` if it is no key of a number.
    pub fn read(key: &[u8]) -> Option<Self> {
        let (environment, (tag, (topic, ()))) = LIST_COUNTS.read(key)?;
        Some(match (tag, topic) {
            (SUBSCRIBERS, None) => Self::Subscribers(environment),
            (TOPICS, None) => Self::Topics(environment),
            (CONTEXTS, None) => Self::Contexts(environment),
            (SUBSCRIPTIONS, Some(topic)) => Self::Subscriptions(environment, topic),
            _ => return None,
        })
    }

    /// The list of the records that an entry of an index leads to. Returns `None` if they are not
    /// counted.
    pub(crate) fn of_entry(index: Table, mut key: &[u8]) -> Option<Self> {
        let environment = environment_of(index, key);
        match index {
            Table::SubscriberIds => environment.map(Self::Subscribers),
            Table::TopicLists => environment.map(Self::Topics),
            Table::ContextLists => environment.map(Self::Contexts),
            Table::SubscriptionIds => {
                let environment = EnvironmentId::read(&mut key)?;
                Some(Self::Subscriptions(environment, TopicId::read(&mut key)?))
            }
            _ => None,
        }
    }

    /// The table of its entries.
    pub(crate) fn table(self) -> Table {
        self.entries().table()
    }

    /// The bytes with which the entries of its table begin that lead to its records, in any order.
    pub(crate) fn owner(self) -> Vec<u8> {
        let mut owner = Vec::new();
        match self {
            Self::Subscribers(environment)
            | Self::Topics(environment)
            | Self::Contexts(environment) => EnvironmentId::write(environment, &mut owner),
            Self::Subscriptions(environment, topic) => {
                EnvironmentId::write(environment, &mut owner);
                TopicId::write(topic, &mut owner);
            }
        }
        owner
    }

    /// The entries of its records, one for each, in the order of their ids.
    pub(crate) fn entries(self) -> Prefix<Bytes, (Uuid, Open)> {
        match self {
            Self::Subscribers(environment) => subscriber_ids(environment).of_ids(),
            Self::Topics(environment) => topic_list(environment, OrderBy::Id).of_ids(),
            Self::Contexts(environment) => context_list(environment, None, OrderBy::Id).of_ids(),
            Self::Subscriptions(environment, topic) => {
                subscription_ids(environment, topic).of_ids()
            }
        }
    }

    /// The id of the record of an entry.
    pub(crate) fn id_of(self, entry: &[u8]) -> Option<Uuid> {
        Uuid::read(&mut self.entries().rest(entry)?)
    }
}
