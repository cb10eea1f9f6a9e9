//! Organizations, and the operations inside an environment.

mod write;

use domain::convert::IntoChecked;
use domain::environment::{Environment, EnvironmentCreate, EnvironmentName, Home, Provided};
use domain::ids::{EnvironmentId, IdempotencyKey, OrganizationId, SubscriberId};
use domain::page::{ListId, ListKind};

pub(crate) use self::write::{Between, Write};
use crate::heal::healed;
use crate::resources::environments::Viewer;
use crate::trace;
use crate::tx::Reading;
use crate::{
    ApiKeys, ChannelConnections, ChannelEndpoints, Contexts, DeadLetters, Engine, Entity,
    Environments, Error, Events, Inbox, Integrations, Layouts, Messages, Notifications, Result,
    SubscriberPreferences, Subscribers, Suppressions, Topics, Translations, Workflows,
};

/// An organization, with its environments.
#[derive(Clone, Debug)]
pub struct Organization {
    engine: Engine,
    id: OrganizationId,
}

/// The operations inside an environment. Cheap to clone. A scope keeps the file of its engine open.
#[derive(Clone, Debug)]
pub struct Scope {
    pub(crate) engine: Engine,
    pub(crate) home: Home,
    pub(crate) idempotency_key: Option<IdempotencyKey>,
}

impl Organization {
    pub(crate) fn new(engine: Engine, id: OrganizationId) -> Self {
        Self { engine, id }
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The id that the host has given. An organization exists once it has an environment. A misspelled id is not
    /// refused, because it names another organization. [`Engine::organizations`] lists the existing ones.
    pub fn id(&self) -> &OrganizationId {
        &self.id
    }

    pub(crate) fn home(&self, environment_id: EnvironmentId) -> Home {
        Home { organization_id: self.id.clone(), environment_id }
    }

    /// Returns the scope of the environment `Development`. The first call creates the environment.
    pub fn development(&self) -> Result<Scope> {
        self.open("organization.development", Provided::Development.create())
    }

    /// Returns the scope of the environment `Production`. The first call creates the environment.
    pub fn production(&self) -> Result<Scope> {
        self.open("organization.production", Provided::Production.create())
    }

    /// Returns the scope of the environment of that name. The first call creates the environment.
    /// [`Environments::create`] gives it a color and a parent.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = tidings::Engine::in_memory();
    /// let acme = engine.organization("acme")?;
    /// let staging = acme.environment_named("Staging")?;
    /// assert_eq!(acme.environment(staging.environment_id())?.environment_id(), staging.environment_id());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`](crate::Error::Invalid), if the name is empty, or longer than 128 characters.
    pub fn environment_named(&self, name: impl IntoChecked<EnvironmentName>) -> Result<Scope> {
        let create = EnvironmentCreate::new(name)?;
        let provided = Provided::of(&create.name).map(Provided::create);
        self.open("organization.environment_named", provided.unwrap_or(create))
    }

    fn open(&self, operation: &'static str, create: EnvironmentCreate) -> Result<Scope> {
        let environment = self.environments().open(operation, create)?;
        Ok(Scope::new(self.engine.clone(), &environment))
    }

    /// Returns the scope of the environment of that id, which a request of this organization may name.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`](crate::Error::NotFound), if the organization has no such environment.
    pub fn environment(&self, id: impl IntoChecked<EnvironmentId>) -> Result<Scope> {
        let id = id.into_checked()?;
        trace::operation("organization.environment", Some(id), || {
            let found = self.engine.find_environment(id)?;
            let own = found.filter(|environment| environment.organization_id == self.id);
            let own = own.ok_or_else(|| Error::not_found(Entity::Environment, id))?;
            Ok(Scope::new(self.engine.clone(), &own))
        })
    }

    /// The organization's environments, with all of their keys.
    pub fn environments(&self) -> Environments<'_> {
        Environments::new(&self.engine, &self.id, Viewer::Host)
    }
}

impl Engine {
    /// Returns the scope of an environment of any organization. An id that a tenant names belongs to
    /// [`Organization::environment`].
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such environment.
    pub fn environment(&self, id: impl IntoChecked<EnvironmentId>) -> Result<Scope> {
        self.environment_of(id.into_checked()?)
    }

    fn environment_of(&self, id: EnvironmentId) -> Result<Scope> {
        trace::operation("engine.environment", Some(id), || {
            let found = self.find_environment(id)?;
            let environment = found.ok_or_else(|| Error::not_found(Entity::Environment, id))?;
            Ok(Scope::new(self.clone(), &environment))
        })
    }
}

impl Scope {
    pub(crate) fn new(engine: Engine, environment: &Environment) -> Self {
        Self::inside(engine, environment.home())
    }

    pub(crate) fn inside(engine: Engine, home: Home) -> Self {
        Self { engine, home, idempotency_key: None }
    }

    /// Returns the same environment with an idempotency key for one call of a writing operation. A
    /// repeated call within 24 hours changes nothing, and returns the result of the first call, also a refusal.
    /// Another call with the same key is refused with [`Error::Conflict`](crate::Error::Conflict). A call that failed
    /// with [`Error::Store`](crate::Error::Store) may be made again: it continues, or returns the result. Reads ignore
    /// the key. [Guarantees](https://github.com/tidings-rs/tidings/blob/main/GUARANTEES.md#once-in-at-least-once-out)
    /// says when a result expires earlier.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tidings::subscriber::SubscriberCreate;
    ///
    /// # let engine = tidings::Engine::in_memory();
    /// # let env = engine.organization("acme")?.development()?;
    /// let once = env.idempotent("order-4711")?;
    /// let ada = SubscriberCreate::new("ada")?;
    /// let first = once.subscribers().create(&ada)?;
    /// let again = once.subscribers().create(&ada)?;
    /// assert_eq!(again, first);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`](crate::Error::Invalid), if the key is empty, longer than 255 characters,
    /// or has control characters.
    pub fn idempotent(&self, key: impl IntoChecked<IdempotencyKey>) -> Result<Self> {
        Ok(Self { idempotency_key: Some(key.into_checked()?), ..self.clone() })
    }

    /// The environment.
    pub fn environment_id(&self) -> EnvironmentId {
        self.home.environment_id
    }

    /// The organization of the environment.
    pub fn organization_id(&self) -> &OrganizationId {
        &self.home.organization_id
    }

    /// The environments of the organization, with the keys of this one only.
    pub fn environments(&self) -> Environments<'_> {
        Environments::new(&self.engine, &self.home.organization_id, Viewer::Environment(self))
    }

    /// Channel connections: workspaces that integrations write to.
    pub fn channel_connections(&self) -> ChannelConnections<'_> {
        ChannelConnections { scope: self }
    }

    /// Channel endpoints: addresses of subscribers in integrations.
    pub fn channel_endpoints(&self) -> ChannelEndpoints<'_> {
        ChannelEndpoints { scope: self }
    }

    /// Contexts.
    pub fn contexts(&self) -> Contexts<'_> {
        Contexts { scope: self }
    }

    /// Dead letters: messages for a provider that have failed for good.
    pub fn dead_letters(&self) -> DeadLetters<'_> {
        DeadLetters { scope: self }
    }

    /// Triggering workflows.
    pub fn events(&self) -> Events<'_> {
        Events { scope: self }
    }

    /// The inbox of a subscriber.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`](crate::Error::Invalid), if the id is malformed. The first operation checks
    /// that the subscriber exists.
    pub fn inbox(&self, subscriber: impl IntoChecked<SubscriberId>) -> Result<Inbox<'_>> {
        Ok(Inbox { scope: self, subscriber: subscriber.into_checked()? })
    }

    /// Integrations.
    pub fn integrations(&self) -> Integrations<'_> {
        Integrations { scope: self }
    }

    /// API keys of the environment.
    pub fn api_keys(&self) -> ApiKeys<'_> {
        ApiKeys { scope: self }
    }

    /// Layouts.
    pub fn layouts(&self) -> Layouts<'_> {
        Layouts { scope: self }
    }

    /// Messages.
    pub fn messages(&self) -> Messages<'_> {
        Messages { scope: self }
    }

    /// The activity list.
    pub fn notifications(&self) -> Notifications<'_> {
        Notifications { scope: self }
    }

    /// The preferences of a subscriber.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`](crate::Error::Invalid), if the id is malformed. The first operation checks
    /// that the subscriber exists.
    pub fn preferences(
        &self,
        subscriber: impl IntoChecked<SubscriberId>,
    ) -> Result<SubscriberPreferences<'_>> {
        Ok(SubscriberPreferences { scope: self, subscriber: subscriber.into_checked()? })
    }

    /// Subscribers.
    pub fn subscribers(&self) -> Subscribers<'_> {
        Subscribers { scope: self }
    }

    /// Suppressions: addresses to which no messages are sent.
    pub fn suppressions(&self) -> Suppressions<'_> {
        Suppressions { scope: self }
    }

    /// Topics, and the subscriptions in them.
    pub fn topics(&self) -> Topics<'_> {
        Topics { scope: self }
    }

    /// Translations.
    pub fn translations(&self) -> Translations<'_> {
        Translations { scope: self }
    }

    /// Workflows.
    pub fn workflows(&self) -> Workflows<'_> {
        Workflows { scope: self }
    }

    /// The id of a list of the environment.
    pub(crate) fn list_id(&self, kind: ListKind) -> ListId {
        ListId::new(self.environment_id(), kind)
    }

    /// Runs an operation of the environment, which may read and write several times.
    pub(crate) fn operation<T>(
        &self,
        name: &'static str,
        body: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        trace::operation(name, Some(self.environment_id()), body)
    }

    /// Runs an operation that reads one view of the environment. `body` may run several times.
    pub(crate) fn read<T>(
        &self,
        operation: &'static str,
        body: impl FnMut(&Reading<'_>) -> Result<T>,
    ) -> Result<T> {
        self.operation(operation, || self.view(body))
    }

    /// Runs a part of an operation on one view of the environment. `body` may run several times.
    pub(crate) fn view<T>(&self, mut body: impl FnMut(&Reading<'_>) -> Result<T>) -> Result<T> {
        let mut outcome = None;
        self.look(&mut |view| {
            outcome = Some(body(view)?);
            Ok(())
        })?;
        Ok(outcome.ok_or_else(store::not_run)?)
    }

    fn look(&self, body: &mut dyn FnMut(&Reading<'_>) -> Result<()>) -> Result<()> {
        let (engine, home) = (&self.engine, &self.home);
        healed(engine, home.environment_id, || {
            engine.run_pure(&mut |snapshot| body(&Reading { engine, home, snapshot }))
        })
    }
}
