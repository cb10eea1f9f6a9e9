//! Operations on channel connections.

use domain::channel::ChannelFilter;
use domain::connection::{
    ChannelConnection, ChannelConnectionCreate, ChannelConnectionQuery, ChannelConnectionUpdate,
};
use domain::ids::ConnectionIdentifier;
use domain::page::Page;
use store::{List, ReadRecords, Snapshot, Table, WriteRecords, layout};

use crate::resources::channels::{self, IntegrationNames};
use crate::resources::contexts::{self, NamedData};
use crate::resources::{integrations, subscribers};
use crate::{Entity, Error, Result, Scope};

/// The channel connections of an environment.
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
///     "workspace": { "id": "T0123", "name": "Acme" },
///     "auth": { "accessToken": "xoxb-secret" },
/// }))?;
/// let connection = env.channel_connections().create(&create)?;
/// assert!(!format!("{connection:?}").contains("xoxb-secret"));
///
/// let of_ada = from_value(json!({ "subscriberId": "ada", "limit": 5 }))?;
/// assert_eq!(env.channel_connections().list(&of_ada)?.data, [connection]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ChannelConnections<'s> {
    pub(crate) scope: &'s Scope,
}

impl ChannelConnections<'_> {
    /// Creates a connection. There is at most one for each integration, subscriber (or none) and
    /// set of contexts.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such integration or subscriber; [`Error::Conflict`]
    /// with the connection that is there already, or whose identifier it is; [`Error::Invalid`],
    /// if it is for neither a subscriber nor a context, or opens no workspace.
    pub fn create(&self, create: &ChannelConnectionCreate) -> Result<ChannelConnection> {
        let home = &self.scope.home;
        self.scope.write("channel_connections.create", create, |txn, now| {
            create.check()?;
            let named = contexts::named(create.context.as_ref())?;
            let integration =
                integrations::get_by_identifier(home, &*txn, &create.integration_identifier)?;
            if let Some(subscriber) = &create.subscriber_id {
                subscribers::get(self.scope, &*txn, subscriber)?;
            }
            let made = || ConnectionIdentifier::new(format!("chconn_{}", self.scope.made_name()));
            let identifier = create.identifier.clone().map_or_else(made, Ok)?;
            let (ids, keys) = ((self.scope.id(now), identifier), contexts::keys(&named));
            let connection =
                ChannelConnection::new(ids, home, create.clone(), &integration, keys, now);
            self.check_is_free(&*txn, &connection)?;
            contexts::ensure(self.scope, txn, &named, NamedData::IsIgnored, now)?;
            txn.insert(&connection)?;
            self.shown(&*txn, connection)
        })
    }

    /// The connection of that identifier.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is none.
    pub fn get(&self, identifier: &ConnectionIdentifier) -> Result<ChannelConnection> {
        self.scope.read(|snapshot| self.shown(snapshot, get(self.scope, snapshot, identifier)?))
    }

    /// A page of the connections, newest first unless the query says otherwise.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], if the page that the query asks for cannot be one.
    pub fn list(&self, query: &ChannelConnectionQuery) -> Result<Page<ChannelConnection>> {
        let request = query
            .page
            .check(self.scope.list_id(Table::ChannelConnections), ChannelFilter::ORDERS)?;
        let home = &self.scope.home;
        self.scope.read(|snapshot| {
            let lists = channels::lists(home, snapshot, &query.filter, request.order_by)?;
            let list = List::new(Table::ConnectionLists, lists);
            let mut page: Page<ChannelConnection> = snapshot.page(&list, &request)?;
            let mut names = IntegrationNames::new(home, snapshot);
            for connection in &mut page.data {
                connection.integration_identifier = Some(names.of(connection.integration_id)?);
            }
            Ok(page)
        })
    }

    /// Changes the workspace of a connection, or what opens it.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such connection; [`Error::Invalid`], if it would open
    /// no workspace.
    pub fn update(
        &self,
        identifier: &ConnectionIdentifier,
        update: &ChannelConnectionUpdate,
    ) -> Result<ChannelConnection> {
        let arguments = (identifier, update);
        self.scope.write("channel_connections.update", arguments, |txn, now| {
            let before = get(self.scope, &*txn, identifier)?;
            let after = before.updated(update.clone(), now)?;
            txn.replace(&before, &after)?;
            self.shown(&*txn, after)
        })
    }

    /// Deletes a connection. Endpoints that name it stay.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such connection.
    pub fn delete(&self, identifier: &ConnectionIdentifier) -> Result<()> {
        self.scope.write("channel_connections.delete", identifier, |txn, _| {
            let connection = get(self.scope, &*txn, identifier)?;
            Ok(txn.remove(&connection)?)
        })
    }

    // Refuses a connection whose identifier another one has, or whose place.
    fn check_is_free(&self, snapshot: &dyn Snapshot, new: &ChannelConnection) -> Result<()> {
        let environment = self.scope.environment_id();
        let conflict = |other| Err(Error::conflict(Entity::ChannelConnection, other));
        if snapshot.contains(
            Table::ChannelConnections,
            &layout::connection(environment, &new.identifier),
        )? {
            return conflict(&new.identifier);
        }
        let (integration, subscriber) = (new.integration_id, new.subscriber_id.as_ref());
        let owner =
            layout::connection_owner(environment, integration, subscriber, &new.context_keys);
        match snapshot.find_by::<ChannelConnection>(Table::ConnectionOwners, &owner)? {
            Some(other) => conflict(&other.identifier),
            None => Ok(()),
        }
    }

    fn shown(
        &self,
        snapshot: &dyn Snapshot,
        mut connection: ChannelConnection,
    ) -> Result<ChannelConnection> {
        let mut names = IntegrationNames::new(&self.scope.home, snapshot);
        connection.integration_identifier = Some(names.of(connection.integration_id)?);
        Ok(connection)
    }
}

/// The connection of that identifier.
pub(crate) fn get(
    scope: &Scope,
    snapshot: &dyn Snapshot,
    identifier: &ConnectionIdentifier,
) -> Result<ChannelConnection> {
    let found = snapshot.find(&layout::connection(scope.environment_id(), identifier))?;
    found.ok_or_else(|| Error::not_found(Entity::ChannelConnection, identifier))
}
