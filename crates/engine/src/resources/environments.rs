//! Operations on environments.

use std::sync::Arc;

use domain::convert::IntoChecked;
use domain::environment::{
    Environment, EnvironmentCreate, EnvironmentRefusal, EnvironmentUpdate, Home, Provided,
};
use domain::hex;
use domain::ids::{EnvironmentId, OrganizationId};
use domain::unsubscribe::LinkKey;
use sha2::{Digest, Sha256};
use store::{Key, Order, Prefix, ReadRecords, Record, Snapshot, Table, WriteRecords, layout};

use crate::pipeline::sweep;
use crate::resources::keys;
use crate::trace;
use crate::tx::{Draft, Tx, View};
use crate::{Engine, Entity, Error, Rejection, Result, Scope};

/// The record that an entry of an index leads to. If the entry is damaged, the record is looked for
/// among all of its kind.
pub(crate) fn indexed<R: Record>(
    snapshot: &dyn Snapshot,
    key: &Key<R>,
    is_it: impl Fn(&R) -> bool,
) -> Result<Option<R>> {
    let found = snapshot.find(key);
    if !matches!(found, Err(store::Error::Corrupt { .. })) {
        return Ok(found?);
    }
    let all = Prefix::of_all().range();
    let all: Vec<R> = snapshot.readable(&all, Order::Ascending, usize::MAX)?;
    all.into_iter().find(is_it).map(Some).map_or_else(|| Ok(found?), Ok)
}

impl Engine {
    /// The environment of that id. Returns `None` if there is none, or it is being deleted.
    pub(crate) fn find_environment(&self, id: EnvironmentId) -> Result<Option<Environment>> {
        self.read_pure(|snapshot| {
            let key = layout::environment_id(id);
            let found = indexed(snapshot, &key, |one: &Environment| one.id == id)?;
            Ok(found.filter(|one| !one.is_deleted()))
        })
    }
}

/// The environments of an organization.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tidings::environment::EnvironmentCreate;
///
/// # let engine = tidings::Engine::in_memory();
/// let acme = engine.organization("acme")?;
/// let qa = acme.environments().create(&EnvironmentCreate::new("QA")?)?;
///
/// let header = format!("ApiKey {}", qa.api_keys[0].key.expose());
/// assert_eq!(engine.authenticate(&header)?.environment_id(), qa.id);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Environments<'e> {
    engine: &'e Engine,
    organization: &'e OrganizationId,
    viewer: Viewer<'e>,
}

/// Viewer of API keys.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Viewer<'e> {
    /// The host application, which sees all keys.
    Host,
    /// An environment, which sees its own keys.
    Environment(&'e Scope),
}

impl<'e> Environments<'e> {
    pub(crate) fn new(
        engine: &'e Engine,
        organization: &'e OrganizationId,
        viewer: Viewer<'e>,
    ) -> Self {
        Self { engine, organization, viewer }
    }

    /// Creates an environment with a key of its own.
    ///
    /// # Errors
    ///
    /// [`Rejection::ReservedName`] for `Development` and `Production`; [`Error::Conflict`], if the
    /// name is taken; [`Error::NotFound`], if the parent is not there.
    pub fn create(&self, create: &EnvironmentCreate) -> Result<Environment> {
        match self.viewer {
            Viewer::Host => self.operation("environments.create", || {
                self.engine.write(self.engine.now(), |draft| self.insert(draft, create))
            }),
            Viewer::Environment(scope) => {
                scope.write("environments.create", create, |tx| self.insert(&mut tx.draft, create))
            }
        }
    }

    fn insert(&self, draft: &mut Draft<'_>, create: &EnvironmentCreate) -> Result<Environment> {
        create.check(&self.all(draft.writer)?).map_err(|refusal| match refusal {
            EnvironmentRefusal::ReservedName => {
                Rejection::ReservedName { name: create.name.to_string() }.into()
            }
            EnvironmentRefusal::NameTaken => Error::conflict(Entity::Environment, &create.name),
            EnvironmentRefusal::NoParent(parent) => Error::not_found(Entity::Environment, parent),
        })?;
        let environment = self.new_environment(draft, create.clone())?;
        insert(draft, &environment)?;
        Ok(self.shown(environment))
    }

    /// Changes an environment. A caller inside an environment changes that one only.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tidings::environment::EnvironmentUpdate;
    ///
    /// # let engine = tidings::Engine::in_memory();
    /// let env = engine.organization("acme")?.production()?;
    /// let german = EnvironmentUpdate::default().default_locale("de_DE")?;
    /// env.environments().update(env.environment_id(), &german)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if the organization has no such environment, or the caller is inside
    /// another one.
    pub fn update(
        &self,
        id: impl IntoChecked<EnvironmentId>,
        update: &EnvironmentUpdate,
    ) -> Result<Environment> {
        self.update_of(id.into_checked()?, update)
    }

    fn update_of(&self, id: EnvironmentId, update: &EnvironmentUpdate) -> Result<Environment> {
        match self.viewer {
            Viewer::Host => self.operation("environments.update", || {
                self.engine.write(self.engine.now(), |draft| self.replace(draft, id, update))
            }),
            Viewer::Environment(scope) => scope.write("environments.update", (id, update), |tx| {
                if id != scope.environment_id() {
                    return Err(Error::not_found(Entity::Environment, id));
                }
                self.replace(&mut tx.draft, id, update)
            }),
        }
    }

    fn replace(
        &self,
        draft: &mut Draft<'_>,
        id: EnvironmentId,
        update: &EnvironmentUpdate,
    ) -> Result<Environment> {
        let found = draft.writer.find(&layout::environment(self.organization, id))?;
        let before = found.filter(|found: &Environment| !found.is_deleted());
        let before = before.ok_or_else(|| Error::not_found(Entity::Environment, id))?;
        let after = before.updated(update.clone());
        draft.writer.replace(&before, &after)?;
        Ok(self.shown(after))
    }

    /// The environment `Development`. Every organization has it: it is created when it is first
    /// asked for.
    #[doc(hidden)]
    pub fn development(&self) -> Result<Environment> {
        let create = Provided::Development.create();
        self.open("environments.development", create)
    }

    /// The environment of that name, for an `operation`. It is created when it is first asked for.
    pub(crate) fn open(
        &self,
        operation: &'static str,
        create: EnvironmentCreate,
    ) -> Result<Environment> {
        self.operation(operation, || self.find_or_create(create))
    }

    /// The environment `Production`. Every organization has it: it is created when it is first
    /// asked for.
    #[doc(hidden)]
    pub fn production(&self) -> Result<Environment> {
        let create = Provided::Production.create();
        self.open("environments.production", create)
    }

    /// The environment of that id.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if the organization has none.
    pub fn get(&self, id: impl IntoChecked<EnvironmentId>) -> Result<Environment> {
        let id = id.into_checked()?;
        let missing = || Error::not_found(Entity::Environment, id);
        self.operation("environments.get", || self.look_up(id)?.ok_or_else(missing))
    }

    /// The environment of that id. Returns `None` if the organization has none.
    pub fn find(&self, id: impl IntoChecked<EnvironmentId>) -> Result<Option<Environment>> {
        let id = id.into_checked()?;
        self.operation("environments.find", || self.look_up(id))
    }

    fn look_up(&self, id: EnvironmentId) -> Result<Option<Environment>> {
        Ok(self.readable()?.into_iter().find(|environment| environment.id == id))
    }

    /// The environments of the organization, oldest first, with those that are being
    /// [deleted](crate::Organization::delete_environment).
    pub fn list(&self) -> Result<Vec<Environment>> {
        self.operation("environments.list", || self.readable())
    }

    fn operation<T>(&self, name: &'static str, body: impl FnOnce() -> Result<T>) -> Result<T> {
        let environment = match self.viewer {
            Viewer::Host => None,
            Viewer::Environment(own) => Some(own.environment_id()),
        };
        trace::operation(name, environment, body)
    }

    // The environments that can be read.
    fn readable(&self) -> Result<Vec<Environment>> {
        let all = layout::environments(self.organization).range();
        let environments: Vec<Environment> = self
            .engine
            .read(|snapshot| Ok(snapshot.readable(&all, Order::Ascending, usize::MAX)?))?;
        Ok(environments.into_iter().map(|environment| self.shown(environment)).collect())
    }

    fn find_or_create(&self, create: EnvironmentCreate) -> Result<Environment> {
        let found = |environments: Vec<Environment>| {
            environments.into_iter().find(|environment| environment.name == create.name)
        };
        if let Some(environment) = found(self.engine.read(|snapshot| self.all(snapshot))?) {
            return Ok(self.shown(environment));
        }
        let environment = self.engine.write(self.engine.now(), |draft| {
            // Another thread may have been quicker.
            if let Some(environment) = found(self.all(draft.writer)?) {
                return Ok(environment);
            }
            let fresh = self.new_environment(draft, create.clone())?;
            insert(draft, &fresh)?;
            Ok(fresh)
        })?;
        Ok(self.shown(environment))
    }

    fn new_environment(&self, draft: &Draft<'_>, create: EnvironmentCreate) -> Result<Environment> {
        let Draft { random, now, .. } = draft;
        let home = Home { organization_id: self.organization.clone(), environment_id: random.id() };
        let key = keys::first(draft)?;
        Ok(Environment::new(&home, create, random.text(12), key, *now))
    }

    // Those that are not being deleted. Fails if one of them cannot be read, since it may have the name
    // that is looked for.
    fn all(&self, snapshot: &dyn Snapshot) -> Result<Vec<Environment>> {
        let mut all: Vec<Environment> = snapshot.all(&layout::environments(self.organization))?;
        all.retain(|environment| !environment.is_deleted());
        Ok(all)
    }

    fn shown(&self, environment: Environment) -> Environment {
        match self.viewer {
            Viewer::Host => environment,
            Viewer::Environment(own) if own.environment_id() == environment.id => environment,
            Viewer::Environment(_) => environment.without_keys(),
        }
    }
}

/// The environment of a view. Returns `None` if it cannot be found, or cannot be read: its language
/// is another one then, and its messages are sent.
pub(crate) fn own(view: &dyn View) -> Result<Option<Arc<Environment>>> {
    let home = view.home();
    let key = layout::environment(&home.organization_id, home.environment_id);
    Ok(store::if_readable(view.engine().parts.decoded.environments.find(view, &key))?.flatten())
}

/// Refuses a change in an environment that is deleted.
pub(crate) fn check_there(view: &dyn View) -> Result<()> {
    if is_there(view.engine(), view, view.home())? {
        return Ok(());
    }
    Err(Error::not_found(Entity::Environment, view.environment_id()))
}

/// Returns `false` if an environment is deleted. One whose record cannot be read is there.
pub(crate) fn is_there(engine: &Engine, snapshot: &dyn Snapshot, home: &Home) -> Result<bool> {
    let key = layout::environment(&home.organization_id, home.environment_id);
    Ok(is_open(engine, snapshot, &key)?)
}

/// Returns `false` if there is no environment of that id, or it is deleted. One whose entry by its id is lost
/// is not there.
pub(crate) fn exists(
    engine: &Engine,
    snapshot: &dyn Snapshot,
    id: EnvironmentId,
) -> store::Result<bool> {
    is_open(engine, snapshot, &layout::environment_id(id))
}

fn is_open(
    engine: &Engine,
    snapshot: &dyn Snapshot,
    key: &Key<Environment>,
) -> store::Result<bool> {
    Ok(match store::if_readable(engine.parts.decoded.environments.find(snapshot, key))? {
        Some(found) => found.is_some_and(|found| !found.is_deleted()),
        None => true,
    })
}

// Stores a new environment, with its task of the retention, its key of unsubscribe links and the
// record of its API key.
fn insert(draft: &mut Draft<'_>, environment: &Environment) -> Result<()> {
    draft.writer.insert(environment)?;
    sweep::add(draft, &environment.home())?;
    insert_link_key(draft, environment.id)?;
    keys::insert_first(draft, environment)
}

/// Stores a new key of the unsubscribe links of an environment without one.
pub(crate) fn insert_link_key(draft: &mut Draft<'_>, environment_id: EnvironmentId) -> Result<()> {
    let (key, created_at) = (draft.random.text(LinkKey::LENGTH).into(), draft.now);
    Ok(draft.writer.insert(&LinkKey { environment_id, key, created_at })?)
}

/// Stores a new key of the unsubscribe links, unless there is one, readable or not, or the environment is
/// deleted.
pub(crate) fn put_link_key(tx: &mut Tx<'_>) -> Result<()> {
    let key = layout::link_key(tx.environment_id());
    if tx.contains(&key)? || !is_there(tx.engine(), &*tx, tx.home())? {
        return Ok(());
    }
    let environment = tx.environment_id();
    insert_link_key(&mut tx.draft, environment)
}

/// Puts a record in the place of one that is gone or could not be read, under the same key. Returns the id of
/// the environment. Returns `None` if the key cannot be read either, or if the environment has a record under
/// another key.
pub(crate) fn replace_lost(draft: &mut Draft<'_>, key: &[u8]) -> Result<Option<EnvironmentId>> {
    let Some(home) = layout::home_of(key) else { return Ok(None) };
    if has_other_record(&*draft.writer, home.environment_id, key)? {
        return Ok(None);
    }
    let environment = Environment::stand_in(&home, draft.random.text(12), draft.now);
    draft.writer.insert(&environment)?;
    Ok(Some(home.environment_id))
}

// Returns `true` if the entry of the id leads to a record of the environment that is not under `key`.
fn has_other_record(snapshot: &dyn Snapshot, id: EnvironmentId, key: &[u8]) -> Result<bool> {
    let mut targets = snapshot.targets(&[layout::environment_id(id)])?;
    let Some(other) = targets.pop().flatten() else { return Ok(false) };
    let is_of_it = layout::home_of(&other).is_some_and(|home| home.environment_id == id);
    Ok(is_of_it && other != key && snapshot.get(Table::Environments, &other, &mut |_| {})?)
}

/// The SHA-256 of an API key in hexadecimal digits.
pub(crate) fn hash(key: &str) -> String {
    hex::text(Sha256::digest(key.as_bytes()))
}
