//! Topics: names under which many subscribers are reached at once.

mod compose;

use memchr::memmem::Finder;
use serde::{Deserialize, Serialize};

use crate::environment::Home;
use crate::error::{Invalid, Reason, at_most};
use crate::ids::{EnvironmentId, OrganizationId, TopicId, TopicKey, plain};
use crate::json::shape;
use crate::page::{OrderBy, PageQuery};
use crate::patch::Patch;
use crate::time::{Dated, Timestamp, dated};

/// A name under which many subscribers are reached at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Topic {
    /// What the engine calls it.
    #[serde(rename = "_id")]
    pub id: TopicId,
    /// The organization it belongs to.
    #[serde(rename = "_organizationId")]
    pub organization_id: OrganizationId,
    /// The environment it belongs to.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// What the host application calls it. It stays as it is.
    pub key: TopicKey,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// A new topic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TopicCreate {
    /// What the host application calls it.
    pub key: TopicKey,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

shape! { TopicCreate { "key": key, "name": name } }

/// A partial update of a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TopicUpdate {
    /// What people call it.
    #[serde(skip_serializing_if = "Patch::is_keep")]
    pub name: Patch<String>,
}

shape! { TopicUpdate { "name": name } }

/// Which topics are listed. Every condition that is given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TopicQuery {
    /// Which page of them.
    #[serde(flatten)]
    pub page: PageQuery,
    /// Those with this in their key, in any case. An empty text says nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Those with this in their name, in any case. An empty text says nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

shape! { TopicQuery { "key": key, "name": name; page by TopicQuery::ORDERS } }

/// What a topic is found by: its key and its name, [folded](fold).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoldedTopic<'t> {
    /// The key.
    pub key: &'t [u8],
    /// The name; empty, if there is none.
    pub name: &'t [u8],
}

/// What topics are searched for.
#[derive(Clone, Debug)]
pub struct TopicSearch {
    key: Finder<'static>,
    name: Finder<'static>,
}

dated! { Topic }

impl Topic {
    /// The longest name, in characters.
    pub const MAX_NAME: usize = 100;

    /// A topic that nobody has seen before.
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

    /// The topic with a new name, or without one. One that says the same changes nothing.
    #[must_use]
    pub fn updated(&self, update: TopicUpdate, now: Timestamp) -> Self {
        let mut topic = self.clone();
        update.name.apply(&mut topic.name);
        topic.changed_from(self, now)
    }
}

impl TopicCreate {
    /// Refuses a name that is empty, too long or not readable.
    pub fn check(&self) -> Result<(), Invalid> {
        self.name.as_deref().map_or(Ok(()), check_name)
    }

    /// What it changes where there is a topic of its key already.
    #[must_use]
    pub fn to_update(&self) -> TopicUpdate {
        TopicUpdate { name: self.name.clone().map_or(Patch::Keep, Patch::Set) }
    }
}

impl TopicUpdate {
    /// Refuses a name that is empty, too long or not readable.
    pub fn check(&self) -> Result<(), Invalid> {
        match &self.name {
            Patch::Keep | Patch::Clear => Ok(()),
            Patch::Set(name) => check_name(name),
        }
    }
}

fn check_name(name: &str) -> Result<(), Invalid> {
    if name.is_empty() {
        return Err(Invalid::new("name", Reason::Empty));
    }
    at_most("name", name, Topic::MAX_NAME)?;
    plain("name", name)
}

impl TopicQuery {
    /// What the list can be sorted by.
    pub const ORDERS: &[OrderBy] =
        &[OrderBy::Id, OrderBy::Key, OrderBy::CreatedAt, OrderBy::UpdatedAt];

    /// What the query searches for, if it leaves any topic out.
    pub fn search(&self) -> Option<TopicSearch> {
        let folded = |text: &Option<String>| {
            Finder::new(&fold(text.as_deref().unwrap_or_default())).into_owned()
        };
        let search = TopicSearch { key: folded(&self.key), name: folded(&self.name) };
        let says = |finder: &Finder<'_>| !finder.needle().is_empty();
        (says(&search.key) || says(&search.name)).then_some(search)
    }
}

impl TopicSearch {
    /// Whether a topic is among those that are searched for.
    pub fn finds(&self, topic: FoldedTopic<'_>) -> bool {
        self.key.find(topic.key).is_some() && self.name.find(topic.name).is_some()
    }
}

/// `text` without regard to case: a part of it folds to a part of what it folds to, whatever is
/// around it. So it goes letter by letter, and by way of capitals, of which there are fewer.
pub fn fold(text: &str) -> String {
    text.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests;
