//! Operations on integrations.

use domain::connection::ChannelConnection;
use domain::endpoint::ChannelEndpoint;
use domain::environment::Home;
use domain::ids::{IntegrationId, IntegrationIdentifier, SubscriberId, UserId};
use domain::integration::{
    Integration, IntegrationCreate, IntegrationDelete, IntegrationUpdate, Peers,
};
use domain::page::OrderBy;
use domain::vocabulary::Channel;
use store::{ReadRecords, Snapshot, Table, Transaction, WriteRecords, layout};

use crate::resources::cascade::Cascade;
use crate::{Entity, Error, Result, Rule, Scope};

/// The integrations of an environment.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use serde_json::{from_value, json};
/// # let engine = tidings::Engine::in_memory();
/// # let env = engine.organization("acme".try_into()?).development()?;
/// let create = |provider| json!({ "providerId": provider, "channel": "email", "active": true });
/// let first = env.integrations().create(from_value(create("sendgrid"))?)?;
/// let second = env.integrations().create(from_value(create("ses"))?)?;
/// assert!(first.is_primary() && !second.is_primary());
///
/// assert!(env.integrations().set_primary(second.id)?.is_primary());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Integrations<'s> {
    pub(crate) scope: &'s Scope,
}

impl Integrations<'_> {
    /// Creates an integration. The first active one for e-mail or text messages becomes primary,
    /// unless it has conditions; others stand right behind the primary one.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`], if the identifier is taken; [`Rule::OneInbox`] for a second in-app
    /// integration.
    pub fn create(&self, create: IntegrationCreate) -> Result<Integration> {
        let active = create.active.unwrap_or(true);
        self.scope.write("integrations.create", &create, |txn, now| {
            let identifier = match create.identifier.clone() {
                Some(identifier) => identifier,
                None => self.made_identifier(&create)?,
            };
            let home = &self.scope.home;
            let integration =
                Integration::new(self.scope.id(now), home, identifier, create.clone())?;
            claim_identifier(&*txn, &integration)?;
            let mut peers = self.peers(&*txn, integration.channel)?;
            if integration.channel == Channel::InApp && !peers.0.is_empty() {
                return Err(Rule::OneInbox.into());
            }
            txn.insert(&integration)?;
            peers.0.push(integration.clone());
            let before = peers.0.clone();
            if active {
                peers.activate_new(integration.id);
            }
            store(txn, &before, &peers.0)?;
            find(peers.0, integration.id)
        })
    }

    /// The integration of that id.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is none.
    pub fn get(&self, id: IntegrationId) -> Result<Integration> {
        self.scope.read(|snapshot| get(&self.scope.home, snapshot, id))
    }

    /// Every integration, oldest first.
    pub fn list(&self) -> Result<Vec<Integration>> {
        self.scope.read(|snapshot| all(&self.scope.home, snapshot))
    }

    /// Every integration that is active, oldest first.
    pub fn list_active(&self) -> Result<Vec<Integration>> {
        let mut integrations = self.list()?;
        integrations.retain(Integration::is_active);
        Ok(integrations)
    }

    /// Changes an integration. One that becomes active does not become primary by that, and one
    /// that becomes inactive or gets conditions is not primary any more.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such integration; [`Error::Conflict`], if the
    /// identifier is taken.
    pub fn update(&self, id: IntegrationId, update: IntegrationUpdate) -> Result<Integration> {
        self.scope.write("integrations.update", (id, &update), |txn, _| {
            let before = get(&self.scope.home, &*txn, id)?;
            let after = before.updated(update.clone())?;
            if after.identifier != before.identifier {
                claim_identifier(&*txn, &after)?;
            }
            self.change(txn, id, |peers| {
                for peer in peers.0.iter_mut().filter(|peer| peer.id == id) {
                    peer.clone_from(&after);
                }
                match update.active {
                    Some(true) if !before.is_active() => peers.activate(id),
                    Some(false) => peers.deactivate(id),
                    Some(true) | None => peers.follow_conditions(id),
                }
            })?;
            get(&self.scope.home, &*txn, id)
        })
    }

    /// Makes an integration the primary one of its channel: it becomes active, and its conditions
    /// are removed. The one that was primary stays active.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such integration; [`Rule::NoPrimary`], if it is for
    /// neither e-mail nor text messages.
    pub fn set_primary(&self, id: IntegrationId) -> Result<Integration> {
        self.scope.write("integrations.set_primary", id, |txn, _| {
            let before = get(&self.scope.home, &*txn, id)?;
            if !before.channel.has_primary() {
                return Err(Rule::NoPrimary { channel: before.channel }.into());
            }
            if before.is_primary() {
                return Ok(before);
            }
            self.change(txn, id, |peers| peers.lead(id))?;
            get(&self.scope.home, &*txn, id)
        })
    }

    /// Deletes an integration for good, with its channel connections and its channel endpoints,
    /// and returns those that are left. If it was primary, its
    /// channel has no primary one until one is set, unless `delete` says to promote the next one.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such integration.
    pub fn delete(&self, id: IntegrationId, delete: IntegrationDelete) -> Result<Vec<Integration>> {
        self.scope.write_in_steps("integrations.delete", (id, delete), (), |txn, now, ()| {
            let integration = get(&self.scope.home, &*txn, id)?;
            let mut cascade = Cascade::new(txn);
            remove_dependents(&mut cascade, &integration, None)?;
            cascade.then(|txn| {
                let by = UserId::host();
                self.change(txn, id, |peers| peers.delete(id, delete.promote, by, now))?;
                all(&self.scope.home, &*txn)
            })
        })
    }

    // Changes the integrations of a channel together, for their ranks depend on one another.
    fn change(
        &self,
        txn: &mut dyn Transaction,
        id: IntegrationId,
        change: impl FnOnce(&mut Peers),
    ) -> Result<()> {
        let channel = get(&self.scope.home, &*txn, id)?.channel;
        let mut peers = self.peers(&*txn, channel)?;
        let before = peers.0.clone();
        change(&mut peers);
        store(txn, &before, &peers.0)
    }

    fn peers(&self, snapshot: &dyn Snapshot, channel: Channel) -> Result<Peers> {
        let mut integrations = all(&self.scope.home, snapshot)?;
        integrations.retain(|integration| integration.channel == channel);
        Ok(Peers(integrations))
    }

    fn made_identifier(&self, create: &IntegrationCreate) -> Result<IntegrationIdentifier> {
        let suffix = self.scope.engine.parts.ids.text(8);
        Ok(Integration::made_identifier(create, &suffix)?)
    }
}

/// Every integration of an environment that is not deleted, oldest first.
pub(crate) fn all(home: &Home, snapshot: &dyn Snapshot) -> Result<Vec<Integration>> {
    let prefix = layout::integrations(home.environment_id);
    let mut integrations: Vec<Integration> = snapshot.all(Table::Integrations, &prefix)?;
    integrations.retain(|integration| !integration.is_deleted());
    Ok(integrations)
}

/// The integration of that id, unless it is deleted.
pub(crate) fn get(home: &Home, snapshot: &dyn Snapshot, id: IntegrationId) -> Result<Integration> {
    let integration = snapshot.find(&layout::integration(home.environment_id, id))?;
    integration
        .filter(|integration: &Integration| !integration.is_deleted())
        .ok_or_else(|| Error::not_found(Entity::Integration, id))
}

/// The integration that the environment knows by that name.
pub(crate) fn get_by_identifier(
    home: &Home,
    snapshot: &dyn Snapshot,
    identifier: &IntegrationIdentifier,
) -> Result<Integration> {
    let key = layout::integration_identifier(home.environment_id, identifier);
    let found = snapshot.find_by(Table::IntegrationIdentifiers, &key)?;
    found.ok_or_else(|| Error::not_found(Entity::Integration, identifier))
}

/// Removes the channel connections and endpoints of an integration: those of a subscriber, or all.
pub(crate) fn remove_dependents(
    cascade: &mut Cascade<'_>,
    integration: &Integration,
    subscriber: Option<&SubscriberId>,
) -> Result<()> {
    let (environment, order) = (integration.environment_id, OrderBy::Id);
    let list = layout::channel_list(environment, order, integration.id, subscriber, None);
    cascade.remove::<ChannelConnection>(Table::ConnectionLists, &list)?;
    cascade.remove::<ChannelEndpoint>(Table::EndpointLists, &list)
}

// Refuses an identifier that another integration has.
fn claim_identifier(snapshot: &dyn Snapshot, integration: &Integration) -> Result<()> {
    let identifier = &integration.identifier;
    let key = layout::integration_identifier(integration.environment_id, identifier);
    if snapshot.contains(Table::IntegrationIdentifiers, &key)? {
        return Err(Error::conflict(Entity::Integration, identifier));
    }
    Ok(())
}

fn store(txn: &mut dyn Transaction, before: &[Integration], after: &[Integration]) -> Result<()> {
    for (before, after) in before.iter().zip(after).filter(|(before, after)| before != after) {
        txn.replace(before, after)?;
    }
    Ok(())
}

fn find(integrations: Vec<Integration>, id: IntegrationId) -> Result<Integration> {
    let mut integrations = integrations.into_iter();
    let found = integrations.find(|integration| integration.id == id);
    found.ok_or_else(|| Error::not_found(Entity::Integration, id))
}
