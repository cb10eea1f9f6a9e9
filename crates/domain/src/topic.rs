//! Topics: names for groups of subscribers.

mod compose;

use serde::{Deserialize, Serialize};

use crate::environment::Home;
use crate::error::Invalid;
use crate::folded::FoldedPart;
use crate::ids::{EnvironmentId, OrganizationId, TopicId, TopicKey, line};
use crate::json::shape;
use crate::page::{OrderBy, PageQuery};
use crate::patch::Patch;
use crate::query;
use crate::time::{Dated, Timestamp, dated};

/// Name for a group of subscribers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Topic {
    /// Id given by the engine.
    #[serde(rename = "_id")]
    pub id: TopicId,
    /// Organization of the topic.
    #[serde(rename = "_organizationId")]
    pub organization_id: OrganizationId,
    /// Environment of the topic.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// Key, chosen by the host application. It never changes.
    pub key: TopicKey,
    /// Display name: 1 to 100 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

/// New topic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TopicCreate {
    /// Key, chosen by the host application.
    pub key: TopicKey,
    /// Display name: 1 to 100 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

shape! { TopicCreate { "key": key, "name": name } }

/// Partial update of a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TopicUpdate {
    /// Display name: 1 to 100 characters.
    #[serde(skip_serializing_if = "Patch::is_keep")]
    pub name: Patch<String>,
}

shape! { update TopicUpdate { "name": name } }

/// Query of topics. A topic must meet every condition that is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TopicQuery {
    /// Page of the list.
    #[serde(flatten)]
    pub page: PageQuery,
    /// Part of the key, in any case. An empty text counts as absent.
    #[serde(deserialize_with = "query::search", skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Part of the display name, in any case. An empty text counts as absent.
    #[serde(deserialize_with = "query::search", skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

shape! { TopicQuery { "key": key, "name": name; page by TopicQuery::ORDERS } }

/// Search text of a topic: key and display name, folded.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoldedTopic<'t> {
    /// Key.
    pub key: &'t [u8],
    /// Display name. Empty if the topic has none.
    pub name: &'t [u8],
}

/// Search for topics.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct TopicSearch {
    key: FoldedPart,
    name: FoldedPart,
}

dated! { Topic }

impl Topic {
    /// Longest display name, in characters.
    pub const MAX_NAME: usize = 100;

    /// Returns a new topic.
    #[doc(hidden)]
    pub fn new(id: TopicId, home: &Home, create: TopicCreate, now: Timestamp) -> Self {
        Self {
            id,
            organization_id: home.organization_id.clone(),
            environment_id: home.environment_id,
            key: create.key,
            name: create.name,
            created_at: now,
            updated_at: now,
        }
    }

    /// Returns the topic after `update`. An update without a difference changes nothing, not even
    /// the time.
    #[doc(hidden)]
    #[must_use]
    pub fn updated(&self, update: TopicUpdate, now: Timestamp) -> Self {
        let mut topic = self.clone();
        update.name.apply(&mut topic.name);
        topic.changed_from(self, now)
    }
}

impl TopicCreate {
    /// Refuses a display name that is empty, longer than 100 characters, or has control characters.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Invalid> {
        self.name.as_deref().map_or(Ok(()), check_name)
    }

    /// Returns the update for a topic with this key that exists.
    #[doc(hidden)]
    #[must_use]
    pub fn to_update(&self) -> TopicUpdate {
        TopicUpdate { name: self.name.clone().map_or(Patch::Keep, Patch::Set) }
    }
}

impl TopicUpdate {
    /// Refuses a display name that is empty, longer than 100 characters, or has control characters.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Invalid> {
        self.name.as_set().map_or(Ok(()), |name| check_name(name))
    }
}

fn check_name(name: &str) -> Result<(), Invalid> {
    line("name", name, Topic::MAX_NAME)
}

impl TopicQuery {
    /// Fields that the list can be sorted by.
    #[doc(hidden)]
    pub const ORDERS: &[OrderBy] =
        &[OrderBy::Id, OrderBy::Key, OrderBy::CreatedAt, OrderBy::UpdatedAt];

    /// Returns the search of the query. Returns `None` if it excludes no topic.
    #[doc(hidden)]
    pub fn search(&self) -> Option<TopicSearch> {
        let folded = |text: &Option<String>| FoldedPart::new(text.as_deref().unwrap_or_default());
        let search = TopicSearch { key: folded(&self.key), name: folded(&self.name) };
        let says = |part: &FoldedPart| !part.as_bytes().is_empty();
        (says(&search.key) || says(&search.name)).then_some(search)
    }
}

impl TopicSearch {
    /// Returns `true` if the search finds the topic.
    pub fn finds(&self, topic: FoldedTopic<'_>) -> bool {
        self.key.find_in(topic.key).is_some() && self.name.find_in(topic.name).is_some()
    }
}

#[cfg(test)]
mod tests;
