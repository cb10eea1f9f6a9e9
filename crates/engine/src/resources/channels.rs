//! Common rules of channel connections and channel endpoints, which belong to integrations.

use std::collections::HashMap;

use domain::channel::ChannelFilter;
use domain::context::{ContextFilter, ContextSet};
use domain::ids::{EnvironmentId, IntegrationId, IntegrationIdentifier, SubscriberId};
use domain::integration::Integration;
use domain::page::OrderBy;
use store::Prefix;

use crate::Result;
use crate::resources::integrations;
use crate::tx::View;

/// A list of the connections or endpoints of an integration, as the layout makes it.
type ListOf<R> = fn(
    EnvironmentId,
    OrderBy,
    IntegrationId,
    Option<&SubscriberId>,
    Option<&ContextSet>,
) -> Prefix<R>;

/// The lists of the connections or endpoints that match a filter: one for each integration.
pub(crate) fn lists<R>(
    view: &dyn View,
    filter: &ChannelFilter,
    order_by: OrderBy,
    list_of: ListOf<R>,
) -> Result<Vec<Prefix<R>>> {
    let contexts: Option<&ContextSet> = match &filter.context_keys {
        ContextFilter::Any => None,
        ContextFilter::Exact(contexts) => Some(contexts),
    };
    let mut integrations = integrations::all(view)?;
    integrations.retain(|integration| filter.allows(integration));
    let list = |integration: Integration| {
        let (environment, subscriber) = (view.environment_id(), filter.subscriber_id.as_ref());
        list_of(environment, order_by, integration.id, subscriber, contexts)
    };
    Ok(integrations.into_iter().map(list).collect())
}

/// The names of integrations, each looked up once.
pub(crate) struct IntegrationNames<'s> {
    view: &'s dyn View,
    known: HashMap<IntegrationId, IntegrationIdentifier>,
}

impl<'s> IntegrationNames<'s> {
    pub(crate) fn new(view: &'s dyn View) -> Self {
        Self { view, known: HashMap::new() }
    }

    /// The name of the integration of that id, which is there.
    pub(crate) fn of(&mut self, id: IntegrationId) -> Result<IntegrationIdentifier> {
        if let Some(name) = self.known.get(&id) {
            return Ok(name.clone());
        }
        let name = integrations::get(self.view, id)?.identifier;
        self.known.insert(id, name.clone());
        Ok(name)
    }
}
