//! Environments: separate sets of records, with their own API keys.

use serde::{Deserialize, Serialize};

use crate::contact::Locale;
use crate::convert::{IntoChecked, text_conversions};
use crate::error::{Invalid, Reason};
use crate::ids::{EnvironmentId, OrganizationId, UserId};
use crate::json::shape;
use crate::names::display_name;
use crate::patch::Patch;
use crate::secret::Secret;
use crate::setters::setters;
use crate::slug::{base62, slugify};
use crate::time::Timestamp;
use crate::vocabulary::wire_enum;

/// Separate set of records, such as development and production.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Environment {
    /// Id given by the engine.
    #[serde(rename = "_id")]
    pub id: EnvironmentId,
    /// Display name, unique in its organization.
    pub name: EnvironmentName,
    /// Organization of the environment.
    #[serde(rename = "_organizationId")]
    pub organization_id: OrganizationId,
    /// Short random name that is safe to publish.
    pub identifier: String,
    /// Purpose of the environment.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<EnvironmentType>,
    /// Key that the environment was created with, until it is revoked. Empty for a caller without
    /// access to it.
    #[serde(default)]
    pub api_keys: Vec<InitialKey>,
    /// Environment that this one derives from.
    #[serde(rename = "_parentId", default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<EnvironmentId>,
    /// Name in URLs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slug: Option<String>,
    /// Display color.
    pub color: Color,
    /// Language of texts for subscribers without one of their own, if the workflow has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_locale: Option<Locale>,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time since which the environment is being deleted. It cannot be used any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Timestamp>,
}

/// New environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EnvironmentCreate {
    /// Display name. `Development` and `Production` are reserved.
    pub name: EnvironmentName,
    /// Environment that this one derives from, in the same organization.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<EnvironmentId>,
    /// Display color.
    pub color: Color,
}

shape! { EnvironmentCreate { "name": name, "parentId": parent_id, "color": color } }

/// Partial update of an environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct EnvironmentUpdate {
    /// Language of texts for subscribers without one of their own, if the workflow has none.
    #[serde(skip_serializing_if = "Patch::is_keep")]
    pub default_locale: Patch<Locale>,
}

shape! { update EnvironmentUpdate { "defaultLocale": default_locale } }

/// Environment of a record, and organization of that environment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Home {
    pub organization_id: OrganizationId,
    pub environment_id: EnvironmentId,
}

/// Environment that every organization has.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provided {
    Development,
    Production,
}

/// Reason to refuse a new environment.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnvironmentRefusal {
    /// The name is reserved for an environment that every organization has.
    ReservedName,
    /// Another environment of the organization has the name.
    NameTaken,
    /// The organization has no such parent.
    NoParent(EnvironmentId),
}

wire_enum! {
    /// Purpose of an environment.
    EnvironmentType, "type":
    Dev = "dev",
    Prod = "prod",
}

/// API key that an environment is created with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InitialKey {
    /// Key.
    pub key: Secret,
    /// User that the key was made for.
    #[serde(rename = "_userId")]
    pub user_id: UserId,
    /// SHA-256 of the key, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
}

display_name! {
    /// Name of an environment: 1 to 128 characters, without white space around it.
    EnvironmentName
}

/// Color of 3, 4, 6 or 8 hexadecimal digits, with or without a `#`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Color(String);

impl Environment {
    /// Returns a new environment, opened by `api_key`. `identifier` is a short random name.
    #[doc(hidden)]
    pub fn new(
        home: &Home,
        create: EnvironmentCreate,
        identifier: String,
        api_key: InitialKey,
        now: Timestamp,
    ) -> Self {
        Self {
            id: home.environment_id,
            kind: Some(create.name.kind()),
            slug: Some(create.name.slug(home.environment_id)),
            name: create.name,
            organization_id: home.organization_id.clone(),
            identifier,
            api_keys: vec![api_key],
            parent_id: create.parent_id,
            color: create.color,
            default_locale: None,
            created_at: now,
            deleted_at: None,
        }
    }

    /// Returns a record in place of one that is gone or cannot be read. The environment has its records and its
    /// keys. It lacks its name, its color and its language, and its first key in plain text.
    #[doc(hidden)]
    pub fn stand_in(home: &Home, identifier: String, now: Timestamp) -> Self {
        let name = EnvironmentName(format!("Repaired {}", home.environment_id));
        Self {
            id: home.environment_id,
            kind: None,
            slug: Some(name.slug(home.environment_id)),
            name,
            organization_id: home.organization_id.clone(),
            identifier,
            api_keys: Vec::new(),
            parent_id: None,
            color: Color::gray(),
            default_locale: None,
            created_at: now,
            deleted_at: None,
        }
    }

    /// Returns the environment with its organization.
    #[doc(hidden)]
    pub fn home(&self) -> Home {
        Home { organization_id: self.organization_id.clone(), environment_id: self.id }
    }

    /// Returns `true` if the environment is being deleted.
    #[doc(hidden)]
    pub const fn is_deleted(&self) -> bool {
        self.deleted_at.is_some()
    }

    /// Returns the environment as it is while its records are removed: without keys.
    #[doc(hidden)]
    #[must_use]
    pub fn deleted(&self, now: Timestamp) -> Self {
        Self { api_keys: Vec::new(), deleted_at: Some(now), ..self.clone() }
    }

    /// Returns the environment with no parent.
    #[doc(hidden)]
    #[must_use]
    pub fn without_parent(&self) -> Self {
        Self { parent_id: None, ..self.clone() }
    }

    /// Returns the environment after `update`.
    #[doc(hidden)]
    #[must_use]
    pub fn updated(&self, update: EnvironmentUpdate) -> Self {
        let mut environment = self.clone();
        update.default_locale.apply(&mut environment.default_locale);
        environment
    }

    /// Returns the environment without its keys.
    #[doc(hidden)]
    #[must_use]
    pub fn without_keys(self) -> Self {
        Self { api_keys: Vec::new(), ..self }
    }

    /// Returns the environment without the key of that hash.
    #[doc(hidden)]
    #[must_use]
    pub fn without_key(&self, hash: &str) -> Self {
        let mut environment = self.clone();
        environment.api_keys.retain(|api_key| api_key.hash.as_deref() != Some(hash));
        environment
    }

    /// Returns the environment with its keys masked.
    #[must_use]
    pub fn redacted(mut self) -> Self {
        for api_key in &mut self.api_keys {
            api_key.key = Secret::redacted();
        }
        self
    }
}

impl EnvironmentCreate {
    /// Returns a new environment, by its display name. It is gray unless it has another color.
    pub fn new(name: impl IntoChecked<EnvironmentName>) -> Result<Self, Invalid> {
        Ok(Self { name: name.into_checked()?, parent_id: None, color: Color::gray() })
    }

    /// Refuses a reserved name, a name of `siblings`, and a parent that is none of them.
    #[doc(hidden)]
    pub fn check(&self, siblings: &[Environment]) -> Result<(), EnvironmentRefusal> {
        if self.name.is_reserved() {
            return Err(EnvironmentRefusal::ReservedName);
        }
        if siblings.iter().any(|sibling| sibling.name == self.name) {
            return Err(EnvironmentRefusal::NameTaken);
        }
        match self.parent_id {
            Some(parent) if !siblings.iter().any(|sibling| sibling.id == parent) => {
                Err(EnvironmentRefusal::NoParent(parent))
            }
            Some(_) | None => Ok(()),
        }
    }
}

impl Provided {
    /// Returns the environment that a name is reserved for.
    pub fn of(name: &EnvironmentName) -> Option<Self> {
        match name.0.to_lowercase().as_str() {
            "development" => Some(Provided::Development),
            "production" => Some(Provided::Production),
            _ => None,
        }
    }

    /// Returns the request for this environment.
    pub fn create(self) -> EnvironmentCreate {
        let (name, color) = match self {
            Provided::Development => ("Development", "#7e52f4"),
            Provided::Production => ("Production", "#15a5a2"),
        };
        let (name, color) = (EnvironmentName(name.into()), Color(color.into()));
        EnvironmentCreate { name, parent_id: None, color }
    }
}

setters! { EnvironmentUpdate:
    /// Sets the language of texts for subscribers without one of their own.
    default_locale: checked(Locale, "defaultLocale");
    /// Removes the language of texts for subscribers without one of their own.
    clear_default_locale @ default_locale: clear();
}

setters! { EnvironmentCreate:
    /// Sets the environment that this one derives from, in the same organization.
    parent_id: into(EnvironmentId);
    /// Sets the display color, such as `#f80`.
    color: checked(Color, "color");
}

impl InitialKey {
    /// Returns a key of the host application, with its hash.
    #[doc(hidden)]
    pub fn new(key: Secret, user_id: UserId, hash: String) -> Self {
        Self { key, user_id, hash: Some(hash) }
    }
}

impl EnvironmentName {
    /// Returns `true` if the name is reserved for an environment that every organization has.
    #[doc(hidden)]
    pub fn is_reserved(&self) -> bool {
        Provided::of(self).is_some()
    }

    /// Returns the purpose of an environment with this name.
    #[doc(hidden)]
    pub fn kind(&self) -> EnvironmentType {
        if self.0.eq_ignore_ascii_case("development") {
            EnvironmentType::Dev
        } else {
            EnvironmentType::Prod
        }
    }

    /// Returns the name of the environment `id` in URLs.
    #[doc(hidden)]
    pub fn slug(&self, id: EnvironmentId) -> String {
        let short = match self.0.to_lowercase().as_str() {
            "development" => "dev".into(),
            "production" => "prod".into(),
            other => slugify(other),
        };
        format!("{short}_env_{}", base62(id.into()))
    }
}

impl Color {
    fn gray() -> Self {
        Self("#888".into())
    }

    /// Checks `raw` and returns it as a color.
    pub fn new(raw: impl Into<String>) -> Result<Self, Invalid> {
        let raw = raw.into();
        let digits = raw.strip_prefix('#').unwrap_or(&raw);
        let is_color = matches!(digits.len(), 3 | 4 | 6 | 8)
            && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        if !is_color {
            let expected = "a color of 3, 4, 6 or 8 hexadecimal digits";
            return Err(Invalid::new("color", Reason::malformed(expected)));
        }
        Ok(Self(raw))
    }

    /// Returns the color as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

text_conversions!(Color);

impl From<Color> for String {
    fn from(color: Color) -> String {
        color.0
    }
}

#[cfg(test)]
mod tests;
