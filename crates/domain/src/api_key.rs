//! API keys of an environment, with names: created, listed and revoked.

use serde::{Deserialize, Serialize};

use crate::convert::IntoChecked;
use crate::environment::Home;
use crate::error::Invalid;
use crate::ids::{ApiKeyId, EnvironmentId, OrganizationId};
use crate::json::shape;
use crate::names::display_name;
use crate::secret::Secret;
use crate::time::Timestamp;

/// API key of an environment without the key itself, of which a hash is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ApiKey {
    /// Id given by the engine.
    #[serde(rename = "_id")]
    pub id: ApiKeyId,
    /// Organization of the environment.
    #[serde(rename = "_organizationId")]
    pub organization_id: OrganizationId,
    /// Environment that the key opens.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// Name, unique in the environment.
    pub name: ApiKeyName,
    /// Last four characters of the key.
    pub last_characters: String,
    /// SHA-256 of the key, in hexadecimal digits.
    pub hash: String,
    /// Time of creation.
    pub created_at: Timestamp,
}

/// New API key. The engine makes the key itself.
///
/// ```
/// # extern crate tidings_domain as tidings;
/// use tidings::api_key::ApiKeyCreate;
///
/// let create = ApiKeyCreate::new(" Orders ")?;
/// assert_eq!(create.name.as_str(), "Orders");
/// assert!(ApiKeyCreate::new("").is_err());
/// # Ok::<(), tidings::error::Invalid>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ApiKeyCreate {
    /// Name, unique in the environment.
    pub name: ApiKeyName,
}

shape! { ApiKeyCreate { "name": name } }

/// API key that was created, with the key itself: it is shown by this answer only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CreatedApiKey {
    /// Key for the header `Authorization`.
    pub key: Secret,
    /// Record of the key.
    #[serde(flatten)]
    pub record: ApiKey,
}

display_name! {
    /// Name of an API key: 1 to 128 characters, without white space around it.
    ApiKeyName
}

/// Reason to refuse a new API key.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiKeyRefusal {
    /// Another key of the environment has the name.
    NameTaken,
    /// The environment has as many keys as it may have.
    TooMany,
}

impl ApiKey {
    /// Maximum number of keys of an environment.
    pub const MAX: usize = 100;

    /// Returns the record of `key`, with the hash of it.
    #[doc(hidden)]
    pub fn new(
        id: ApiKeyId,
        home: &Home,
        (name, key, hash): (ApiKeyName, &Secret, String),
        now: Timestamp,
    ) -> Self {
        let key = key.expose();
        let last = key.char_indices().rev().nth(3).and_then(|(at, _)| key.get(at..));
        Self {
            id,
            organization_id: home.organization_id.clone(),
            environment_id: home.environment_id,
            name,
            last_characters: last.unwrap_or_default().into(),
            hash,
            created_at: now,
        }
    }

    /// Returns the environment that the key opens.
    #[doc(hidden)]
    pub fn home(&self) -> Home {
        Home { organization_id: self.organization_id.clone(), environment_id: self.environment_id }
    }
}

impl CreatedApiKey {
    /// Returns the answer to a request.
    #[doc(hidden)]
    pub fn new(key: Secret, record: ApiKey) -> Self {
        Self { key, record }
    }
}

impl ApiKeyCreate {
    /// Returns a new API key of that name.
    pub fn new(name: impl IntoChecked<ApiKeyName>) -> Result<Self, Invalid> {
        Ok(Self { name: name.into_checked()? })
    }

    /// Refuses a name of `siblings`, and one key more than an environment may have.
    #[doc(hidden)]
    pub fn check(&self, siblings: &[ApiKey]) -> Result<(), ApiKeyRefusal> {
        if siblings.iter().any(|sibling| sibling.name == self.name) {
            return Err(ApiKeyRefusal::NameTaken);
        }
        if siblings.len() >= ApiKey::MAX {
            return Err(ApiKeyRefusal::TooMany);
        }
        Ok(())
    }
}

impl ApiKeyName {
    /// Returns the name of the key that an environment is created with.
    #[doc(hidden)]
    pub fn first() -> Self {
        Self("Default".into())
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn record(name: &str, key: &str) -> ApiKey {
        let environment_id = Uuid::from_u128(1).into();
        let home = Home { organization_id: "acme".parse().unwrap(), environment_id };
        let named = (ApiKeyName::new(name).unwrap(), &key.into(), "hash".into());
        ApiKey::new(Uuid::from_u128(2).into(), &home, named, Timestamp::from_millis(0))
    }

    #[test]
    fn a_record_has_the_end_of_its_key_and_no_more() {
        for (key, last) in [("abcdefgh", "efgh"), ("äöüßé", "öüßé"), ("abc", ""), ("", "")]
        {
            let record = record("Orders", key);
            assert_eq!(record.last_characters, last, "{key}");
            assert!(key.is_empty() || !format!("{record:?}").contains(key));
        }
    }

    #[test]
    fn a_new_key_has_a_free_name_and_a_place() {
        let create = ApiKeyCreate::new("Orders").unwrap();
        let named = |number: usize| record(&format!("key {number}"), "key");
        let many: Vec<_> = (0..ApiKey::MAX).map(named).collect();
        let full = [many.as_slice(), &[record("Orders", "key")]].concat();
        for (siblings, expected) in [
            (&[][..], Ok(())),
            (&[record("orders", "key")], Ok(())),
            (&[record("Orders", "key")], Err(ApiKeyRefusal::NameTaken)),
            (&many[1..], Ok(())),
            (&many, Err(ApiKeyRefusal::TooMany)),
            (&full, Err(ApiKeyRefusal::NameTaken)),
        ] {
            assert_eq!(create.check(siblings), expected);
        }
    }

    #[test]
    fn a_name_is_short_and_plain() {
        let most = "x".repeat(128);
        for good in ["Orders", " Orders\t", most.as_str()] {
            assert_eq!(ApiKeyName::new(good).unwrap().as_str(), good.trim());
        }
        for bad in ["", "  ", "a\nb", &format!("{most}x")] {
            assert_eq!(ApiKeyName::new(bad).unwrap_err().field, "name", "{bad}");
        }
        assert_eq!(ApiKeyName::new(ApiKeyName::first().as_str()), Ok(ApiKeyName::first()));
    }
}
