//! Operations on channel connections.

use domain::channel::ChannelFilter;
use domain::connection::{
    ChannelConnection, ChannelConnectionCreate, ChannelConnectionQuery, ChannelConnectionUpdate,
};
use domain::convert::IntoChecked;
use domain::ids::ConnectionIdentifier;
use domain::page::{ListKind, Page};
use store::{List, ReadRecords, WriteRecords, layout};

use crate::resources::{channels, contexts, integrations, subscribers};
use crate::tx::View;
use crate::{Entity, Error, Result, Scope};

/// The channel connections of an environment.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tidings::connection::{ChannelConnectionCreate, ChannelConnectionQuery, Workspace};
/// # use tidings::{integration::IntegrationCreate, subscriber::SubscriberCreate, vocabulary::Channel};
///
/// # let engine = tidings::Engine::in_memory();
/// # let env = engine.organization("acme")?.development()?;
/// # env.subscribers().create(&SubscriberCreate::new("ada")?)?;
/// # let slack = IntegrationCreate::new("slack", Channel::Chat)?.identifier("slack")?;
/// # env.integrations().create(&slack)?;
/// let workspace = Workspace::new("T0123")?.name("Acme");
/// let create = ChannelConnectionCreate::new("slack", workspace, "xoxb-secret")?.subscriber_id("ada")?;
/// let connection = env.channel_connections().create(&create)?;
/// assert!(!format!("{connection:?}").contains("xoxb-secret"));
///
/// let of_ada = ChannelConnectionQuery::default().subscriber_id("ada")?.limit(5);
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
        self.scope.write("channel_connections.create", create, |tx| {
            create.check()?;
            let named = contexts::named(create.context.as_ref())?;
            let integration = integrations::get_by_identifier(tx, &create.integration_identifier)?;
            if let Some(subscriber) = &create.subscriber_id {
                subscribers::get(tx, subscriber)?;
            }
            let made = || ConnectionIdentifier::new(format!("chconn_{}", tx.text(12)));
            let identifier = create.identifier.clone().map_or_else(made, Ok)?;
            let (ids, keys) = ((tx.id(), identifier), contexts::keys(&named));
            let (home, now) = (tx.home(), tx.now());
            let connection =
                ChannelConnection::new(ids, home, create.clone(), &integration, keys, now);
            check_is_free(tx, &connection)?;
            contexts::ensure(tx, &named)?;
            tx.insert(&connection)?;
            channels::shown(tx, connection)
        })
    }

    /// The connection of that identifier.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is none.
    pub fn get(
        &self,
        identifier: impl IntoChecked<ConnectionIdentifier>,
    ) -> Result<ChannelConnection> {
        let identifier = identifier.into_checked()?;
        self.scope.read("channel_connections.get", |view| {
            channels::shown(view, channels::get(view, &identifier)?)
        })
    }

    /// The connection of that identifier. Returns `None` if there is none.
    pub fn find(
        &self,
        identifier: impl IntoChecked<ConnectionIdentifier>,
    ) -> Result<Option<ChannelConnection>> {
        let identifier = identifier.into_checked()?;
        self.scope.read("channel_connections.find", |view| channels::find_shown(view, &identifier))
    }

    /// A page of the connections, newest first by default.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], if the limit, the cursors or the order of the query cannot be used, or if it
    /// has more than 100 contexts.
    pub fn list(&self, query: &ChannelConnectionQuery) -> Result<Page<ChannelConnection>> {
        query.filter.check()?;
        let request = query
            .page
            .check(self.scope.list_id(ListKind::ChannelConnections), ChannelFilter::ORDERS)?;
        self.scope.read("channel_connections.list", |view| {
            let lists = channels::lists(view, &query.filter, request.order_by)?;
            let mut page = view.page(&List::new(lists), &request)?;
            channels::name_integrations(view, &mut page.data)?;
            Ok(page)
        })
    }

    /// Changes the workspace or the token of a connection.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such connection; [`Error::Invalid`], if it would open
    /// no workspace.
    pub fn update(
        &self,
        identifier: impl IntoChecked<ConnectionIdentifier>,
        update: &ChannelConnectionUpdate,
    ) -> Result<ChannelConnection> {
        self.update_of(&identifier.into_checked()?, update)
    }

    fn update_of(
        &self,
        identifier: &ConnectionIdentifier,
        update: &ChannelConnectionUpdate,
    ) -> Result<ChannelConnection> {
        self.scope.write("channel_connections.update", (identifier, update), |tx| {
            let before: ChannelConnection = channels::get(tx, identifier)?;
            let after = before.updated(update.clone(), tx.now())?;
            tx.replace(&before, &after)?;
            channels::shown(tx, after)
        })
    }

    /// Deletes a connection. Endpoints that name it stay.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such connection.
    pub fn delete(&self, identifier: impl IntoChecked<ConnectionIdentifier>) -> Result<()> {
        self.delete_of(&identifier.into_checked()?)
    }

    fn delete_of(&self, identifier: &ConnectionIdentifier) -> Result<()> {
        self.scope.write("channel_connections.delete", identifier, |tx| {
            let connection: ChannelConnection = channels::get(tx, identifier)?;
            Ok(tx.remove(&connection)?)
        })
    }
}

// Refuses a connection whose identifier or whose place another one has.
fn check_is_free(view: &dyn View, new: &ChannelConnection) -> Result<()> {
    let environment = view.environment_id();
    let conflict = |other| Err(Error::conflict(Entity::ChannelConnection, other));
    let key = layout::connection(environment, &new.identifier);
    if view.contains(&key)? {
        return conflict(&new.identifier);
    }
    let (integration, subscriber) = (new.integration_id, new.subscriber_id.as_ref());
    let owner = layout::connection_owner(environment, integration, subscriber, &new.context_keys);
    match view.find(&owner)? {
        Some(other) => conflict(&other.identifier),
        None => Ok(()),
    }
}
