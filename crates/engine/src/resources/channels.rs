//! What channel connections and channel endpoints have in common: they belong to integrations.

use std::collections::HashMap;

use domain::channel::ChannelFilter;
use domain::context::{ContextFilter, ContextSet};
use domain::environment::Home;
use domain::ids::{IntegrationId, IntegrationIdentifier};
use domain::integration::Integration;
use domain::page::OrderBy;
use store::{Prefix, Snapshot, layout};

use crate::Result;
use crate::resources::integrations;

/// Where the connections or endpoints that a filter lets through are: one list for each integration
/// that they may belong to.
pub(crate) fn lists(
    home: &Home,
    snapshot: &dyn Snapshot,
    filter: &ChannelFilter,
    order_by: OrderBy,
) -> Result<Vec<Prefix>> {
    let contexts: Option<&ContextSet> = match &filter.context_keys {
        ContextFilter::Any => None,
        ContextFilter::Exact(contexts) => Some(contexts),
    };
    let mut integrations = integrations::all(home, snapshot)?;
    integrations.retain(|integration| filter.allows(integration));
    let list = |integration: Integration| {
        let (environment, subscriber) = (home.environment_id, filter.subscriber_id.as_ref());
        layout::channel_list(environment, order_by, integration.id, subscriber, contexts)
    };
    Ok(integrations.into_iter().map(list).collect())
}

/// The names of integrations, each looked up once.
pub(crate) struct IntegrationNames<'s> {
    home: &'s Home,
    snapshot: &'s dyn Snapshot,
    known: HashMap<IntegrationId, IntegrationIdentifier>,
}

impl<'s> IntegrationNames<'s> {
    pub(crate) fn new(home: &'s Home, snapshot: &'s dyn Snapshot) -> Self {
        Self { home, snapshot, known: HashMap::new() }
    }

    /// The name of the integration of that id, which is there.
    pub(crate) fn of(&mut self, id: IntegrationId) -> Result<IntegrationIdentifier> {
        if let Some(name) = self.known.get(&id) {
            return Ok(name.clone());
        }
        let name = integrations::get(self.home, self.snapshot, id)?.identifier;
        self.known.insert(id, name.clone());
        Ok(name)
    }
}
