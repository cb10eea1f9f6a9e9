//! Operations on integrations.

mod lookup;
mod pause;
mod rank;
mod receipts;

use domain::circuit::IntegrationHealth;
use domain::connection::ChannelConnection;
use domain::error::{Invalid, Reason};
use domain::ids::{EnvironmentId, IntegrationId, IntegrationRef, SubscriberId, UserId};
use domain::integration::{Integration, IntegrationCreate, IntegrationDelete, IntegrationUpdate};
use domain::page::OrderBy;
use store::{Key, ReadRecords, Step, WriteRecords, layout};

use crate::pipeline::delivery::{integration_check, release};
use crate::resources::cascade::{Cascade, Deleting};
use crate::resources::{endpoints, references};
use crate::scope::Between;
use crate::tx::{Tx, View};
use crate::{Entity, Error, IntegrationTestResult, Rejection, Result, Scope};

pub(crate) use self::lookup::{
    all, check_readable, find, find_by_identifier, find_named, get, get_by_identifier, get_named,
    with_channels,
};

use self::lookup::{active, cloned};
use self::rank::{peers, rank, readable_peers, store};

/// The integrations of an environment. An integration is named by its identifier or its id.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tidings::integration::IntegrationCreate;
/// use tidings::vocabulary::Channel;
///
/// # let engine = tidings::Engine::in_memory();
/// # let env = engine.organization("acme")?.development()?;
/// let create = |provider| IntegrationCreate::new(provider, Channel::Email);
/// let first = env.integrations().create(&create("sendgrid")?)?;
/// let second = env.integrations().create(&create("ses")?)?;
/// assert!(first.is_primary() && !second.is_primary());
///
/// assert!(env.integrations().set_primary(second.id)?.is_primary());
/// assert_eq!(env.integrations().get(&first.identifier)?.id, first.id);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Integrations<'s> {
    pub(crate) scope: &'s Scope,
}

// Answer of a provider about the credentials of an update.
struct Vetted {
    // The integration that the update was for, if there was one.
    integration: Option<Integration>,
    accepted: Result<(), Invalid>,
}

impl Vetted {
    // Returns `true` if the answer holds for `other`: of the same provider, on the same channel.
    fn is_for(&self, other: &Integration) -> bool {
        self.integration.as_ref().is_some_and(|vetted| {
            vetted.provider_id == other.provider_id && vetted.channel == other.channel
        })
    }
}

impl Integrations<'_> {
    /// Creates an integration. An active one for e-mail or text messages becomes primary if its channel has no
    /// primary one, unless it has filters or is a fallback. Others stand right behind the primary one.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`], if the identifier is taken; [`Rejection::OneInbox`] for a second in-app
    /// integration; [`Error::Invalid`], if the provider lacks a credential.
    pub fn create(&self, create: &IntegrationCreate) -> Result<Integration> {
        let accepted = self.accept(create);
        self.scope.write("integrations.create", create, |tx| created(tx, create, &accepted))
    }

    /// Creates the integration of that identifier, or changes it to the declaration. An equal
    /// declaration writes nothing.
    ///
    /// A host application that declares its integrations in code calls this when it starts. The
    /// declaration replaces every field, but `active` if it is absent.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tidings::integration::IntegrationCreate;
    /// use tidings::vocabulary::Channel;
    ///
    /// # let engine = tidings::Engine::in_memory();
    /// # let env = engine.organization("acme")?.development()?;
    /// let mail = IntegrationCreate::new("sendgrid", Channel::Email)?.identifier("mail")?;
    /// let created = env.integrations().upsert(&mail)?;
    /// assert_eq!(env.integrations().upsert(&mail)?, created);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`create`](Self::create), but for the conflict; [`Error::Invalid`], if the request has no
    /// identifier, or if the integration has another channel or another provider.
    pub fn upsert(&self, create: &IntegrationCreate) -> Result<Integration> {
        let accepted = self.accept(create);
        self.scope.write("integrations.upsert", create, |tx| {
            let Some(identifier) = &create.identifier else {
                return Err(Error::invalid("identifier", Reason::Missing));
            };
            match find_by_identifier(tx, identifier)? {
                Some(before) => {
                    changed(tx, &before, &before.redeclared(create.clone())?, &accepted)
                }
                None => created(tx, create, &accepted),
            }
        })
    }

    /// The integration of that name, with its secrets: [`Integration::redacted`] masks them.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is none.
    pub fn get(&self, name: impl Into<IntegrationRef>) -> Result<Integration> {
        let name = name.into();
        self.scope.read("integrations.get", |view| get_named(view, name.as_str()))
    }

    /// The integration of that name. Returns `None` if there is none.
    pub fn find(&self, name: impl Into<IntegrationRef>) -> Result<Option<Integration>> {
        let name = name.into();
        self.scope.read("integrations.find", |view| find_named(view, name.as_str()))
    }

    /// Every integration, oldest first, with its secrets: [`Integration::redacted`] masks them.
    pub fn list(&self) -> Result<Vec<Integration>> {
        self.scope.read("integrations.list", |view| Ok(cloned(all(view)?)))
    }

    /// Every integration that is active, oldest first.
    pub fn list_active(&self) -> Result<Vec<Integration>> {
        self.scope.read("integrations.list_active", |view| active(view))
    }

    /// Returns the state of every active integration, oldest first: whether its calls succeed in
    /// this engine, or its circuit is open. See [`Builder::circuit`](crate::Builder::circuit).
    ///
    /// ```
    /// # fn main() -> tidings::Result<()> {
    /// use tidings::circuit::Circuit;
    ///
    /// # let engine = tidings::Engine::in_memory();
    /// # let env = engine.organization("acme")?.development()?;
    /// for health in env.integrations().health()? {
    ///     if let Circuit::Open { until, .. } = health.circuit {
    ///         eprintln!("{} fails: no call before {until}", health.identifier);
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn health(&self) -> Result<Vec<IntegrationHealth>> {
        let circuits = &self.scope.engine.parts.circuits;
        let active = self.scope.read("integrations.health", |view| active(view))?;
        Ok(active.iter().map(|one| IntegrationHealth::new(one, circuits.of(one.id))).collect())
    }

    /// Changes an integration. One that becomes active does not become primary by that, and one
    /// that becomes inactive or gets filters is not primary any more. Then no other one takes its place:
    /// e-mails and text messages that no filter directs elsewhere fail until
    /// [`set_primary`](Self::set_primary) names one.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such integration; [`Error::Conflict`], if the
    /// identifier is taken; [`Error::Invalid`], if the provider lacks a credential of those that
    /// are to be stored.
    pub fn update(
        &self,
        name: impl Into<IntegrationRef>,
        update: &IntegrationUpdate,
    ) -> Result<Integration> {
        self.update_of(name.into().as_str(), update)
    }

    fn update_of(&self, name: &str, update: &IntegrationUpdate) -> Result<Integration> {
        let found = self.scope.view(|view| find_named(view, name))?;
        let start = self.vetted(found, update);
        let again: Between<'_, Vetted, Integration> =
            &mut |other| Ok(Step::More(self.vetted(other.integration, update)));
        let arguments = (name, update);
        self.scope.write_in_steps_with(
            "integrations.update",
            arguments,
            (start, again),
            |tx, vetted| {
                let before = get_named(tx, name)?;
                if update.credentials.is_some() && !vetted.is_for(&before) {
                    // Another call has given the name to another integration.
                    return Ok(Step::More(Vetted { integration: Some(before), accepted: Ok(()) }));
                }
                changed(tx, &before, update, &vetted.accepted).map(Step::Done)
            },
        )
    }

    fn vetted(&self, integration: Option<Integration>, update: &IntegrationUpdate) -> Vetted {
        let accepted = match (&update.credentials, &integration) {
            (Some(credentials), Some(Integration { provider_id, channel, .. })) => {
                integration_check::accept(&self.scope.engine, provider_id, *channel, credentials)
            }
            (None, _) | (_, None) => Ok(()),
        };
        Vetted { integration, accepted }
    }

    // Asks the provider, which is code of the host, before a transaction is open.
    fn accept(&self, create: &IntegrationCreate) -> Result<(), Invalid> {
        let IntegrationCreate { provider_id, channel, credentials, .. } = create;
        integration_check::accept(&self.scope.engine, provider_id, *channel, credentials)
    }

    /// Tests an integration: its provider tries to reach the service with the stored credentials.
    /// No message is sent. The integration may be inactive.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tidings::integration::IntegrationCreate;
    /// use tidings::{IntegrationTestResult, vocabulary::Channel};
    ///
    /// # let engine = tidings::Engine::in_memory();
    /// # let env = engine.organization("acme")?.development()?;
    /// let mail = env.integrations().create(&IntegrationCreate::new("smtp", Channel::Email)?)?;
    /// match env.integrations().test(mail.id)? {
    ///     IntegrationTestResult::Failed(error) => println!("{error}"),
    ///     other => assert_eq!(other, IntegrationTestResult::NoProvider),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such integration.
    pub fn test(&self, name: impl Into<IntegrationRef>) -> Result<IntegrationTestResult> {
        let name = name.into();
        self.scope.operation("integrations.test", || {
            let integration = self.scope.view(|view| get_named(view, name.as_str()))?;
            Ok(integration_check::test(&self.scope.engine, &integration))
        })
    }

    /// Makes an integration the primary one of its channel: it becomes active, and its filters
    /// are removed. The one that was primary stays active.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such integration; [`Rejection::NoPrimary`], if it is for
    /// neither e-mail nor text messages.
    pub fn set_primary(&self, name: impl Into<IntegrationRef>) -> Result<Integration> {
        self.set_primary_of(name.into().as_str())
    }

    fn set_primary_of(&self, name: &str) -> Result<Integration> {
        self.scope.write("integrations.set_primary", name, |tx| {
            let before = get_named(tx, name)?;
            if !before.channel.has_primary() {
                return Err(Rejection::NoPrimary { channel: before.channel }.into());
            }
            if before.is_primary() {
                return Ok(before);
            }
            rank(tx, before.channel, |peers| peers.make_primary(before.id))?;
            get(tx, before.id)
        })
    }

    /// Deletes an integration for good, with its channel connections and its channel endpoints, and
    /// returns those that are left. If it was primary, its channel has no primary one until one is
    /// set, unless `delete` promotes the next one.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such integration.
    pub fn delete(
        &self,
        name: impl Into<IntegrationRef>,
        delete: &IntegrationDelete,
    ) -> Result<Vec<Integration>> {
        self.delete_of(name.into().as_str(), delete)
    }

    fn delete_of(&self, name: &str, delete: &IntegrationDelete) -> Result<Vec<Integration>> {
        let mut deleted = None;
        let left =
            self.scope.write_deletion("integrations.delete", (name, delete), |tx, before| {
                let found = find_named(tx, name)?;
                if before.is_over(found.as_ref().map(|integration| integration.id)) {
                    return Ok(Step::Done(cloned(all(tx)?)));
                }
                let integration = references::expect::<Integration, _>(tx, name, found)?;
                deleted = Some(integration.id);
                let mut cascade = Cascade::new(tx, before.removed());
                let environment = integration.environment_id;
                remove_dependents(&mut cascade, environment, integration.id, None)?;
                let step = cascade.then(|tx| {
                    let (by, now) = (UserId::host(), tx.now());
                    // Others may be deleted while one cannot be read.
                    let mut peers = readable_peers(tx, integration.channel)?;
                    let before = peers.0.clone();
                    peers.delete(integration.id, delete.promote, by, now);
                    store(tx, &before, &peers.0)?;
                    release::begin(tx, integration.id)?;
                    Ok(cloned(all(tx)?))
                })?;
                Ok(Deleting::after(step, integration.id))
            })?;
        if let Some(id) = deleted {
            self.scope.engine.parts.circuits.forget(id);
        }
        Ok(left)
    }
}

// Creates an integration, active by default.
fn created(
    tx: &mut Tx<'_>,
    create: &IntegrationCreate,
    accepted: &Result<(), Invalid>,
) -> Result<Integration> {
    let made = || Integration::made_identifier(create, &tx.text(8));
    let identifier = create.identifier.clone().map_or_else(made, Ok)?;
    let integration = Integration::new(tx.id(), tx.home(), identifier, create.clone())?;
    accepted.clone()?;
    claim_identifier(tx, &integration)?;
    if !peers(tx, integration.channel)?.admits(&integration) {
        return Err(Rejection::OneInbox.into());
    }
    tx.insert(&integration)?;
    if create.active.unwrap_or(true) {
        rank(tx, integration.channel, |peers| peers.activate_new(integration.id))?;
    }
    get(tx, integration.id)
}

// Changes an integration and its rank.
fn changed(
    tx: &mut Tx<'_>,
    before: &Integration,
    update: &IntegrationUpdate,
    accepted: &Result<(), Invalid>,
) -> Result<Integration> {
    let after = before.updated(update.clone())?;
    accepted.clone()?;
    if after.identifier != before.identifier {
        claim_identifier(tx, &after)?;
    }
    rank(tx, before.channel, |peers| peers.update(&after, update.active))?;
    get(tx, before.id)
}

/// Removes the channel connections and endpoints of an integration: those of a subscriber, or all.
pub(crate) fn remove_dependents(
    cascade: &mut Cascade<'_, '_>,
    environment: EnvironmentId,
    id: IntegrationId,
    subscriber: Option<&SubscriberId>,
) -> Result<()> {
    let order = OrderBy::Id;
    let own = layout::channel_list::<ChannelConnection>(environment, order, id, subscriber, None);
    cascade.remove(&own)?;
    let own = layout::channel_list(environment, order, id, subscriber, None);
    cascade.remove_by(&own, endpoints::remove)
}

// Refuses an identifier that another integration has.
fn claim_identifier(view: &dyn View, integration: &Integration) -> Result<()> {
    let identifier = &integration.identifier;
    let key: Key<Integration> = layout::by_identifier(integration.environment_id, identifier);
    if view.contains(&key)? {
        return Err(Error::conflict(Entity::Integration, identifier));
    }
    Ok(())
}
