//! Operations on the API keys of an environment.

use domain::api_key::{ApiKey, ApiKeyCreate, ApiKeyName, ApiKeyRefusal, CreatedApiKey};
use domain::convert::IntoChecked;
use domain::environment::{Environment, InitialKey};
use domain::ids::{ApiKeyId, UserId};
use domain::secret::Secret;
use store::{Order, ReadRecords, Snapshot, WriteRecords, layout};

use crate::resources::environments;
use crate::trace;
use crate::tx::{Draft, Tx, View};
use crate::{Engine, Entity, Error, Rejection, Result, Scope, Unauthorized};

// Five bits each.
const LENGTH: usize = 52;

// Keys that are made at most until one is not taken. The first one is, unless the host's entropy has
// given the same bytes before.
const TRIES: usize = 1_000;

/// The API keys of an environment. It is created with one of the name `Default`. Keys are rotated by
/// creating another one, using it everywhere, and revoking the first.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tidings::api_key::ApiKeyCreate;
///
/// # let engine = tidings::Engine::in_memory();
/// # let env = engine.organization("acme")?.development()?;
/// let created = env.api_keys().create(&ApiKeyCreate::new("Orders")?)?;
/// let header = format!("ApiKey {}", created.key.expose()); // shown by this answer only
/// assert_eq!(engine.authenticate(&header)?.environment_id(), env.environment_id());
///
/// let names: Vec<_> = env.api_keys().list()?.iter().map(|key| key.name.to_string()).collect();
/// assert_eq!(names, ["Default", "Orders"]);
/// env.api_keys().revoke(created.record.id)?;
/// assert!(engine.authenticate(&header).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ApiKeys<'s> {
    pub(crate) scope: &'s Scope,
}

impl Engine {
    /// Returns the scope of the environment of an API key. `authorization` is the value of an
    /// `Authorization` header: `ApiKey` in any case, a space and the key.
    ///
    /// # Errors
    ///
    /// [`Error::Unauthorized`], if the header is malformed, or its key is unknown or revoked. The
    /// error holds no part of the header.
    pub fn authenticate(&self, authorization: &str) -> Result<Scope> {
        let key = Unauthorized::key_in(authorization)?;
        // The time of a look-up by hash reveals nothing about the key.
        let hash = environments::hash(key);
        let find = |snapshot: &dyn Snapshot| {
            let key = layout::api_key(&hash);
            let is_it = |one: &ApiKey| one.hash == hash;
            let key = environments::indexed(snapshot, &key, is_it)?;
            key.ok_or(Error::Unauthorized(Unauthorized::UnknownKey))
        };
        trace::operation("engine.authenticate", None, || self.read_pure(find))
            .map(|key| Scope::inside(self.clone(), key.home()))
    }
}

impl ApiKeys<'_> {
    /// Creates a key. The store keeps a hash of it, and with an idempotency key the answer. A key is
    /// 52 random letters and digits.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`], if the name is taken; [`Rejection::TooManyApiKeys`], if the environment has
    /// [`ApiKey::MAX`] keys.
    pub fn create(&self, create: &ApiKeyCreate) -> Result<CreatedApiKey> {
        self.scope.write("api_keys.create", create, |tx| {
            let siblings = tx.all(&layout::environment_keys(tx.environment_id()))?;
            create.check(&siblings).map_err(|refusal| match refusal {
                ApiKeyRefusal::NameTaken => Error::conflict(Entity::ApiKey, &create.name),
                ApiKeyRefusal::TooMany => Rejection::TooManyApiKeys { max: ApiKey::MAX }.into(),
            })?;
            let (id, (key, hash)) = (tx.id(), unused(&tx.draft, &create.name)?);
            let named = (create.name.clone(), &key, hash);
            let record = ApiKey::new(id, tx.home(), named, tx.now());
            tx.insert(&record)?;
            Ok(CreatedApiKey::new(key, record))
        })
    }

    /// The keys that are not revoked, oldest first.
    pub fn list(&self) -> Result<Vec<ApiKey>> {
        self.scope.read("api_keys.list", |view| {
            let all = layout::environment_keys(view.environment_id()).range();
            Ok(view.readable(&all, Order::Ascending, usize::MAX)?)
        })
    }

    /// Revokes a key: it opens nothing from now on. A [`Scope`] that was opened with it stays open.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if the environment has no such key.
    pub fn revoke(&self, id: impl IntoChecked<ApiKeyId>) -> Result<ApiKey> {
        let id = id.into_checked()?;
        self.scope.write("api_keys.revoke", id, |tx| {
            let found = tx.find(&layout::environment_key(tx.environment_id(), id))?;
            let key = found.ok_or_else(|| Error::not_found(Entity::ApiKey, id))?;
            tx.remove(&key)?;
            forget(tx, &key)?;
            Ok(key)
        })
    }
}

// The environment has the key that it was created with, in plain text.
fn forget(tx: &mut Tx<'_>, key: &ApiKey) -> Result<()> {
    let home = tx.home();
    let place = layout::environment(&home.organization_id, home.environment_id);
    // A record that cannot be read shows no key, and does not keep one from being revoked.
    let found = store::if_readable(tx.find::<Environment>(&place))?;
    let Some(environment) = found.flatten() else { return Ok(()) };
    Ok(tx.replace(&environment, &environment.without_key(&key.hash))?)
}

/// Makes the key of a new environment.
pub(crate) fn first(draft: &Draft<'_>) -> Result<InitialKey> {
    let (key, hash) = unused(draft, &ApiKeyName::first())?;
    Ok(InitialKey::new(key, UserId::host(), hash))
}

// Makes a key that opens no environment yet, and its hash. Equal randomness makes equal keys.
fn unused(draft: &Draft<'_>, name: &ApiKeyName) -> Result<(Secret, String)> {
    for _ in 0..TRIES {
        let key = draft.random.text(LENGTH);
        let hash = environments::hash(&key);
        if !draft.writer.contains(&layout::api_key(&hash))? {
            return Ok((key.into(), hash));
        }
    }
    Err(Error::conflict(Entity::ApiKey, name))
}

/// Stores the record of the key that an environment is created with.
pub(crate) fn insert_first(draft: &mut Draft<'_>, environment: &Environment) -> Result<()> {
    let home = environment.home();
    for api_key in &environment.api_keys {
        let Some(hash) = api_key.hash.clone() else { continue };
        let named = (ApiKeyName::first(), &api_key.key, hash);
        let record = ApiKey::new(draft.random.id(), &home, named, draft.now);
        draft.writer.insert(&record)?;
    }
    Ok(())
}
