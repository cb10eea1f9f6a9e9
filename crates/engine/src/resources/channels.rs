//! Common rules of channel connections and channel endpoints, which belong to integrations.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::{fmt, slice};

use domain::channel::ChannelFilter;
use domain::connection::ChannelConnection;
use domain::context::{ContextFilter, ContextSet};
use domain::endpoint::ChannelEndpoint;
use domain::ids::{
    ConnectionIdentifier, EndpointIdentifier, EnvironmentId, IntegrationId, IntegrationIdentifier,
};
use domain::integration::Integration;
use domain::page::OrderBy;
use store::{Key, Prefix, ReadRecords, layout};

use crate::damage::if_readable;
use crate::resources::integrations;
use crate::tx::View;
use crate::{Entity, Error, Result};

/// The lists of the connections or endpoints that match a filter: one for each integration.
pub(crate) fn lists<R: OfIntegration>(
    view: &dyn View,
    filter: &ChannelFilter,
    order_by: OrderBy,
) -> Result<Vec<Prefix<R>>> {
    let contexts: Option<&ContextSet> = match &filter.context_keys {
        ContextFilter::Any => None,
        ContextFilter::Exact(contexts) => Some(contexts),
    };
    let mut integrations = integrations::all(view)?;
    integrations.retain(|integration| filter.allows(integration));
    let list = |integration: Arc<Integration>| {
        let (environment, subscriber) = (view.environment_id(), filter.subscriber_id.as_ref());
        layout::channel_list(environment, order_by, integration.id, subscriber, contexts)
    };
    Ok(integrations.into_iter().map(list).collect())
}

/// Connection or endpoint: a record that belongs to an integration.
pub(crate) trait OfIntegration: layout::OfIntegration {
    /// Kind of the record, for errors.
    const ENTITY: Entity;
    /// Identifier, unique in the environment.
    type Identifier: fmt::Display;

    /// The key of the record with that identifier.
    fn at(environment: EnvironmentId, identifier: &Self::Identifier) -> Key<Self>;

    /// The id of the integration, and the field for its identifier.
    fn integration(&mut self) -> (IntegrationId, &mut Option<IntegrationIdentifier>);
}

impl OfIntegration for ChannelConnection {
    const ENTITY: Entity = Entity::ChannelConnection;
    type Identifier = ConnectionIdentifier;

    fn at(environment: EnvironmentId, identifier: &ConnectionIdentifier) -> Key<Self> {
        layout::connection(environment, identifier)
    }

    fn integration(&mut self) -> (IntegrationId, &mut Option<IntegrationIdentifier>) {
        (self.integration_id, &mut self.integration_identifier)
    }
}

impl OfIntegration for ChannelEndpoint {
    const ENTITY: Entity = Entity::ChannelEndpoint;
    type Identifier = EndpointIdentifier;

    fn at(environment: EnvironmentId, identifier: &EndpointIdentifier) -> Key<Self> {
        layout::endpoint(environment, identifier)
    }

    fn integration(&mut self) -> (IntegrationId, &mut Option<IntegrationIdentifier>) {
        (self.integration_id, &mut self.integration_identifier)
    }
}

/// The record of that identifier, as it is stored.
pub(crate) fn get<R: OfIntegration>(view: &dyn View, identifier: &R::Identifier) -> Result<R> {
    let found = view.find(&R::at(view.environment_id(), identifier))?;
    found.ok_or_else(|| Error::not_found(R::ENTITY, identifier))
}

/// The record of that identifier, with the identifier of its integration. Returns `None` if there
/// is none.
pub(crate) fn find_shown<R: OfIntegration>(
    view: &dyn View,
    identifier: &R::Identifier,
) -> Result<Option<R>> {
    let found = view.find(&R::at(view.environment_id(), identifier))?;
    found.map(|record| shown(view, record)).transpose()
}

/// The record with the identifier of its integration.
pub(crate) fn shown<R: OfIntegration>(view: &dyn View, mut record: R) -> Result<R> {
    name_integrations(view, slice::from_mut(&mut record))?;
    Ok(record)
}

/// Fills in the identifiers of the integrations that can be read. Each integration is looked up once.
pub(crate) fn name_integrations<R: OfIntegration>(
    view: &dyn View,
    records: &mut [R],
) -> Result<()> {
    let mut known: HashMap<IntegrationId, Option<IntegrationIdentifier>> = HashMap::new();
    for record in records {
        let (id, name) = record.integration();
        *name = match known.entry(id) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(free) => {
                let found = if_readable(integrations::find(view, id))?.flatten();
                free.insert(found.map(|integration| integration.identifier)).clone()
            }
        };
    }
    Ok(())
}
