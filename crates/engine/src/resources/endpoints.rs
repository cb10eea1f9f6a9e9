//! Operations on channel endpoints.

use domain::channel::ChannelFilter;
use domain::connection::ChannelConnection;
use domain::convert::IntoChecked;
use domain::endpoint::{
    ChannelEndpoint, ChannelEndpointCreate, ChannelEndpointQuery, ChannelEndpointUpdate,
};
use domain::ids::EndpointIdentifier;
use domain::integration::Integration;
use domain::page::{ListKind, Page};
use store::{List, ReadRecords, WriteRecords, layout};

use crate::resources::{channels, contexts, integrations, subscribers, suppressions};
use crate::tx::{Tx, View};
use crate::{Entity, Error, Result, Scope};

/// The channel endpoints of an environment.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tidings::endpoint::{ChannelEndpointCreate, Endpoint};
/// # use tidings::{integration::IntegrationCreate, subscriber::SubscriberCreate, vocabulary::Channel};
///
/// # let engine = tidings::Engine::in_memory();
/// # let env = engine.organization("acme")?.development()?;
/// # env.subscribers().create(&SubscriberCreate::new("ada")?)?;
/// # let slack = IntegrationCreate::new("slack", Channel::Chat)?.identifier("slack")?;
/// # env.integrations().create(&slack)?;
/// let place = Endpoint::slack_channel("C0123")?;
/// let create = ChannelEndpointCreate::new("ada", "slack", place)?;
/// let endpoint = env.channel_endpoints().create(&create)?;
///
/// let elsewhere = Endpoint::slack_channel("C0456")?;
/// let moved = env.channel_endpoints().update(&endpoint.identifier, &elsewhere.clone().into())?;
/// assert_eq!(moved.endpoint, elsewhere);
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
        self.scope.write("channel_endpoints.create", create, |tx| {
            let named = contexts::named(create.context.as_ref())?;
            let integration = integrations::get_by_identifier(tx, &create.integration_identifier)?;
            subscribers::get(tx, &create.subscriber_id)?;
            let made = || EndpointIdentifier::new(format!("chendp_{}", tx.text(12)));
            let identifier = create.identifier.clone().map_or_else(made, Ok)?;
            let key = layout::endpoint(tx.environment_id(), &identifier);
            if tx.contains(&key)? {
                return Err(Error::conflict(Entity::ChannelEndpoint, identifier));
            }
            check_connection(tx, create, &integration)?;
            contexts::ensure(tx, &named)?;
            let (ids, keys) = ((tx.id(), identifier), contexts::keys(&named));
            let (home, now) = (tx.home(), tx.now());
            let endpoint = ChannelEndpoint::new(ids, home, create.clone(), &integration, keys, now);
            tx.insert(&endpoint)?;
            channels::shown(tx, endpoint)
        })
    }

    /// The endpoint of that identifier.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is none.
    pub fn get(&self, identifier: impl IntoChecked<EndpointIdentifier>) -> Result<ChannelEndpoint> {
        let identifier = identifier.into_checked()?;
        self.scope.read("channel_endpoints.get", |view| {
            channels::shown(view, channels::get(view, &identifier)?)
        })
    }

    /// The endpoint of that identifier. Returns `None` if there is none.
    pub fn find(
        &self,
        identifier: impl IntoChecked<EndpointIdentifier>,
    ) -> Result<Option<ChannelEndpoint>> {
        let identifier = identifier.into_checked()?;
        self.scope.read("channel_endpoints.find", |view| channels::find_shown(view, &identifier))
    }

    /// A page of the endpoints, newest first by default.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], if the limit, the cursors or the order of the query cannot be used, or if it
    /// has more than 100 contexts.
    pub fn list(&self, query: &ChannelEndpointQuery) -> Result<Page<ChannelEndpoint>> {
        query.filter.check()?;
        let request = query
            .page
            .check(self.scope.list_id(ListKind::ChannelEndpoints), ChannelFilter::ORDERS)?;
        let wanted = query.connection_identifier.as_ref();
        let matches =
            |endpoint: &ChannelEndpoint| endpoint.connection_identifier.as_ref() == wanted;
        self.scope.read("channel_endpoints.list", |view| {
            let lists = channels::lists(view, &query.filter, request.order_by)?;
            let list = List::new(lists).of_records(wanted.is_some(), &matches);
            let mut page = view.page(&list, &request)?;
            channels::name_integrations(view, &mut page.data)?;
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
        identifier: impl IntoChecked<EndpointIdentifier>,
        update: &ChannelEndpointUpdate,
    ) -> Result<ChannelEndpoint> {
        self.update_of(&identifier.into_checked()?, update)
    }

    fn update_of(
        &self,
        identifier: &EndpointIdentifier,
        update: &ChannelEndpointUpdate,
    ) -> Result<ChannelEndpoint> {
        self.scope.write("channel_endpoints.update", (identifier, update), |tx| {
            let before: ChannelEndpoint = channels::get(tx, identifier)?;
            let after = before.updated(update, tx.now())?;
            tx.replace(&before, &after)?;
            if before.address() != after.address() {
                note(tx, &before)?;
            }
            channels::shown(tx, after)
        })
    }

    /// Deletes an endpoint.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such endpoint.
    pub fn delete(&self, identifier: impl IntoChecked<EndpointIdentifier>) -> Result<()> {
        self.delete_of(&identifier.into_checked()?)
    }

    fn delete_of(&self, identifier: &EndpointIdentifier) -> Result<()> {
        self.scope.write("channel_endpoints.delete", identifier, |tx| {
            let endpoint: ChannelEndpoint = channels::get(tx, identifier)?;
            remove(tx, &endpoint)
        })
    }
}

/// Removes an endpoint. The suppression of its telephone number names the subscriber from then on, so that
/// an erasure finds it.
pub(crate) fn remove(tx: &mut Tx<'_>, endpoint: &ChannelEndpoint) -> Result<()> {
    tx.remove(endpoint)?;
    note(tx, endpoint)
}

fn note(tx: &mut Tx<'_>, before: &ChannelEndpoint) -> Result<()> {
    suppressions::note(tx, &before.subscriber_id, before.address())
}

// Refuses a connection that the integration does not have.
fn check_connection(
    view: &dyn View,
    create: &ChannelEndpointCreate,
    integration: &Integration,
) -> Result<()> {
    let Some(identifier) = &create.connection_identifier else { return Ok(()) };
    let connection: ChannelConnection = channels::get(view, identifier)?;
    if connection.integration_id != integration.id {
        return Err(Error::not_found(Entity::ChannelConnection, identifier));
    }
    Ok(())
}
