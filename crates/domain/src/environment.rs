//! Environments: the scope of everything else, with API keys of its own.

use serde::{Deserialize, Serialize};

use crate::convert::{IntoChecked, text_conversions};
use crate::error::{Invalid, Reason};
use crate::ids::{EnvironmentId, OrganizationId, UserId, plain};
use crate::json::shape;
use crate::secret::Secret;
use crate::setters::setters;
use crate::slug::{base62, slugify};
use crate::time::Timestamp;
use crate::vocabulary::wire_enum;

/// A separate set of records, such as those for development and those for production.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Environment {
    /// What the engine calls it.
    #[serde(rename = "_id")]
    pub id: EnvironmentId,
    /// What people call it. No other environment of the organization is called so.
    pub name: EnvironmentName,
    /// The organization it belongs to.
    #[serde(rename = "_organizationId")]
    pub organization_id: OrganizationId,
    /// A short random name that is safe to publish.
    pub identifier: String,
    /// What it is for.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<EnvironmentType>,
    /// Its keys; empty for a caller who may not see them.
    #[serde(default)]
    pub api_keys: Vec<ApiKey>,
    /// The environment it was derived from.
    #[serde(rename = "_parentId", default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<EnvironmentId>,
    /// Its name in URLs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slug: Option<String>,
    /// The color it is shown in.
    pub color: Color,
    /// When it was created.
    pub created_at: Timestamp,
}

/// What a new environment is to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EnvironmentCreate {
    /// What people call it. `Development` and `Production` are taken.
    pub name: EnvironmentName,
    /// The environment it is derived from, of the same organization.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<EnvironmentId>,
    /// The color it is shown in.
    pub color: Color,
}

shape! { EnvironmentCreate { "name": name, "parentId": parent_id, "color": color } }

/// The environment that a record belongs to, and the organization that the environment does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Home {
    pub organization_id: OrganizationId,
    pub environment_id: EnvironmentId,
}

wire_enum! {
    /// What an environment is for.
    EnvironmentType, "type":
    Dev = "dev",
    Prod = "prod",
}

/// A key that opens an environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ApiKey {
    /// The key itself.
    pub key: Secret,
    /// Who it was made for.
    #[serde(rename = "_userId")]
    pub user_id: UserId,
    /// The SHA-256 of the key in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
}

/// The name of an environment: not empty, without white space around it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EnvironmentName(String);

/// A color of 3, 4, 6 or 8 hexadecimal digits, with or without a `#`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Color(String);

impl Environment {
    /// Returns a new environment, opened by `api_key`. `identifier` is a short random name.
    pub fn new(
        home: &Home,
        create: EnvironmentCreate,
        identifier: String,
        api_key: ApiKey,
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
            created_at: now,
        }
    }

    /// The environment for a caller who may not see its keys.
    #[must_use]
    pub fn without_keys(self) -> Self {
        Self { api_keys: Vec::new(), ..self }
    }

    /// The environment with its keys made unreadable.
    #[must_use]
    pub fn redacted(mut self) -> Self {
        for api_key in &mut self.api_keys {
            api_key.key = Secret::redacted();
        }
        self
    }
}

impl EnvironmentCreate {
    /// Returns an environment, by its name and the color that it is shown in.
    pub fn new(
        name: impl IntoChecked<EnvironmentName>,
        color: impl IntoChecked<Color>,
    ) -> Result<Self, Invalid> {
        Ok(Self { name: name.into_checked()?, parent_id: None, color: color.into_checked()? })
    }
}

setters! { EnvironmentCreate:
    /// Sets the environment that it is derived from, of the same organization.
    parent_id: into(EnvironmentId);
}

impl ApiKey {
    /// Returns a key of the host application, with its hash.
    pub fn new(key: Secret, user_id: UserId, hash: String) -> Self {
        Self { key, user_id, hash: Some(hash) }
    }
}

impl EnvironmentName {
    /// Checks `raw`, takes the white space off both ends, and takes it as a name.
    pub fn new(raw: impl AsRef<str>) -> Result<Self, Invalid> {
        let name = raw.as_ref().trim();
        if name.is_empty() {
            return Err(Invalid::new("name", Reason::Empty));
        }
        crate::error::at_most("name", name, 128)?;
        plain("name", name)?;
        Ok(Self(name.into()))
    }

    /// The name as people write it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the name is one of those that every organization has from the start.
    pub fn is_reserved(&self) -> bool {
        ["development", "production"].contains(&self.0.to_lowercase().as_str())
    }

    /// What an environment of this name is for.
    pub fn kind(&self) -> EnvironmentType {
        if self.0.eq_ignore_ascii_case("development") {
            EnvironmentType::Dev
        } else {
            EnvironmentType::Prod
        }
    }

    /// The name of the environment `id` in URLs.
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
    /// Checks `raw` and takes it as a color.
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

    /// Returns the color as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

text_conversions!(EnvironmentName);

impl From<EnvironmentName> for String {
    fn from(name: EnvironmentName) -> String {
        name.0
    }
}

text_conversions!(Color);

impl From<Color> for String {
    fn from(color: Color) -> String {
        color.0
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_name_is_trimmed_and_may_be_reserved() {
        let name = EnvironmentName::new("  QA ").unwrap();
        assert_eq!((name.as_str(), name.is_reserved()), ("QA", false));
        assert_eq!(name.kind(), EnvironmentType::Prod);
        for reserved in ["production", " Production ", "DEVELOPMENT"] {
            assert!(EnvironmentName::new(reserved).unwrap().is_reserved(), "{reserved}");
        }
        assert!(EnvironmentName::new("  ").is_err());
    }

    #[test]
    fn a_color_is_hexadecimal() {
        for good in ["#fff", "fff", "#a1b2", "#A1B2C3", "a1b2c3d4"] {
            assert!(Color::new(good).is_ok(), "{good}");
        }
        for bad in ["red", "", "#", "#12345", "#ggg", "##fff", "ä1"] {
            let error = Color::new(bad).unwrap_err();
            assert_eq!(error.field, "color", "{bad}");
        }
    }

    #[test]
    fn a_slug_is_the_name_and_the_id() {
        let id = EnvironmentId::from(Uuid::from_u128(61));
        let slug = |name| EnvironmentName::new(name).unwrap().slug(id);
        assert_eq!(slug("Production"), "prod_env_000000000000000000000z");
        assert_eq!(slug("QA  & Test"), "qa-test_env_000000000000000000000z");
    }
}
