//! Operations on channel endpoints.

use domain::channel::ChannelFilter;
use domain::endpoint::{
    ChannelEndpoint, ChannelEndpointCreate, ChannelEndpointQuery, ChannelEndpointUpdate,
};
use domain::ids::EndpointIdentifier;
use domain::integration::Integration;
use domain::page::Page;
use store::{List, ReadRecords, Snapshot, Table, WriteRecords, layout};

use crate::resources::channels::{self, IntegrationNames};
use crate::resources::contexts::{self, NamedData};
use crate::resources::{connections, integrations, subscribers};
use crate::{Entity, Error, Result, Scope};

/// The channel endpoints of an environment.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use serde_json::{from_value, json};
/// # let engine = tidings::Engine::in_memory();
/// # let env = engine.organization("acme".try_into()?).development()?;
/// # env.subscribers().create(from_value(json!({ "subscriberId": "ada" }))?)?;
/// # env.integrations().create(from_value(
/// #     json!({ "providerId": "slack", "channel": "chat", "identifier": "slack" }))?)?;
/// let create = from_value(json!({
///     "subscriberId": "ada",
///     "integrationIdentifier": "slack",
///     "type": "slack_channel",
///     "endpoint": { "channelId": "C0123" },
/// }))?;
/// let endpoint = env.channel_endpoints().create(&create)?;
///
/// let elsewhere = from_value(json!({ "endpoint": { "channelId": "C0456" } }))?;
/// let moved = env.channel_endpoints().update(&endpoint.identifier, &elsewhere)?;
/// assert_eq!(moved.endpoint.data(), json!({ "channelId": "C0456" }).try_into()?);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ChannelEndpoints<'s> {
    pub(crate) scope: &'s Scope,
}

impl ChannelEndpoints<'_> {
    /// Creates an endpoint. A subscriber may have many for the same integration.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such integration or subscriber, or no such connection
    /// of the same integration; [`Error::Conflict`], if the identifier is taken;
    /// [`Error::Invalid`], if a context is not well formed.
    pub fn create(&self, create: &ChannelEndpointCreate) -> Result<ChannelEndpoint> {
        let home = &self.scope.home;
        self.scope.write("channel_endpoints.create", create, |txn, now| {
            let named = contexts::named(create.context.as_ref())?;
            let integration =
                integrations::get_by_identifier(home, &*txn, &create.integration_identifier)?;
            subscribers::get(self.scope, &*txn, &create.subscriber_id)?;
            let made = || EndpointIdentifier::new(format!("chendp_{}", self.scope.made_name()));
            let identifier = create.identifier.clone().map_or_else(made, Ok)?;
            let key = layout::endpoint(home.environment_id, &identifier);
            if txn.contains(Table::ChannelEndpoints, &key)? {
                return Err(Error::conflict(Entity::ChannelEndpoint, identifier));
            }
            self.check_connection(&*txn, create, &integration)?;
            contexts::ensure(self.scope, txn, &named, NamedData::IsIgnored, now)?;
            let (ids, keys) = ((self.scope.id(now), identifier), contexts::keys(&named));
            let endpoint = ChannelEndpoint::new(ids, home, create.clone(), &integration, keys, now);
            txn.insert(&endpoint)?;
            self.shown(&*txn, endpoint)
        })
    }

    /// The endpoint of that identifier.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is none.
    pub fn get(&self, identifier: &EndpointIdentifier) -> Result<ChannelEndpoint> {
        self.scope.read(|snapshot| self.shown(snapshot, self.find(snapshot, identifier)?))
    }

    /// A page of the endpoints, newest first unless the query says otherwise.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], if the page that the query asks for cannot be one.
    pub fn list(&self, query: &ChannelEndpointQuery) -> Result<Page<ChannelEndpoint>> {
        let request =
            query.page.check(self.scope.list_id(Table::ChannelEndpoints), ChannelFilter::ORDERS)?;
        let wanted = query.connection_identifier.as_ref();
        let shows = |endpoint: &ChannelEndpoint| endpoint.connection_identifier.as_ref() == wanted;
        let home = &self.scope.home;
        self.scope.read(|snapshot| {
            let lists = channels::lists(home, snapshot, &query.filter, request.order_by)?;
            let list = List::new(Table::EndpointLists, lists).of_records(wanted.is_some(), &shows);
            let mut page = snapshot.page(&list, &request)?;
            let mut names = IntegrationNames::new(home, snapshot);
            for endpoint in &mut page.data {
                endpoint.integration_identifier = Some(names.of(endpoint.integration_id)?);
            }
            Ok(page)
        })
    }

    /// Moves an endpoint to another place of the type that it has. Nothing else about it changes.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such endpoint; [`Error::Invalid`], if the data is not
    /// that of a place of its type.
    pub fn update(
        &self,
        identifier: &EndpointIdentifier,
        update: &ChannelEndpointUpdate,
    ) -> Result<ChannelEndpoint> {
        self.scope.write("channel_endpoints.update", (identifier, update), |txn, now| {
            let before = self.find(&*txn, identifier)?;
            let after = before.updated(update, now)?;
            txn.replace(&before, &after)?;
            self.shown(&*txn, after)
        })
    }

    /// Deletes an endpoint.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such endpoint.
    pub fn delete(&self, identifier: &EndpointIdentifier) -> Result<()> {
        self.scope.write("channel_endpoints.delete", identifier, |txn, _| {
            let endpoint = self.find(&*txn, identifier)?;
            Ok(txn.remove(&endpoint)?)
        })
    }

    // Refuses a connection that the integration does not have.
    fn check_connection(
        &self,
        snapshot: &dyn Snapshot,
        create: &ChannelEndpointCreate,
        integration: &Integration,
    ) -> Result<()> {
        let Some(identifier) = &create.connection_identifier else { return Ok(()) };
        let connection = connections::get(self.scope, snapshot, identifier)?;
        if connection.integration_id != integration.id {
            return Err(Error::not_found(Entity::ChannelConnection, identifier));
        }
        Ok(())
    }

    fn find(
        &self,
        snapshot: &dyn Snapshot,
        identifier: &EndpointIdentifier,
    ) -> Result<ChannelEndpoint> {
        let found = snapshot.find(&layout::endpoint(self.scope.environment_id(), identifier))?;
        found.ok_or_else(|| Error::not_found(Entity::ChannelEndpoint, identifier))
    }

    fn shown(
        &self,
        snapshot: &dyn Snapshot,
        mut endpoint: ChannelEndpoint,
    ) -> Result<ChannelEndpoint> {
        let mut names = IntegrationNames::new(&self.scope.home, snapshot);
        endpoint.integration_identifier = Some(names.of(endpoint.integration_id)?);
        Ok(endpoint)
    }
}
