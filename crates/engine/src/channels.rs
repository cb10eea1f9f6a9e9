//! What channel connections and channel endpoints have in common: they belong to integrations.

use std::collections::HashMap;

use domain::context::{ContextFilter, ContextSet};
use domain::environment::Home;
use domain::ids::{IntegrationId, IntegrationIdentifier, SubscriberId};
use domain::integration::Integration;
use domain::page::OrderBy;
use domain::vocabulary::{Channel, ProviderId};
use store::{Prefix, Snapshot, layout};

use crate::{Result, integrations};

/// Which connections or endpoints are asked for.
#[derive(Debug)]
pub(crate) struct ChannelFilter<'q> {
    pub(crate) channel: Option<Channel>,
    pub(crate) provider_id: Option<ProviderId>,
    pub(crate) integration_identifier: Option<&'q IntegrationIdentifier>,
    pub(crate) subscriber_id: Option<&'q SubscriberId>,
    pub(crate) contexts: &'q ContextFilter,
}

impl ChannelFilter<'_> {
    /// Where they are: one list for each integration that they may belong to.
    pub(crate) fn lists(
        &self,
        home: &Home,
        snapshot: &dyn Snapshot,
        order_by: OrderBy,
    ) -> Result<Vec<Prefix>> {
        let contexts: Option<&ContextSet> = match self.contexts {
            ContextFilter::Any => None,
            ContextFilter::Exact(contexts) => Some(contexts),
        };
        let mut integrations = integrations::all(home, snapshot)?;
        integrations.retain(|integration| self.allows(integration));
        let list = |integration: Integration| {
            let environment = home.environment_id;
            let id = integration.id;
            layout::channel_list(environment, order_by, id, self.subscriber_id, contexts)
        };
        Ok(integrations.into_iter().map(list).collect())
    }

    fn allows(&self, integration: &Integration) -> bool {
        let provider_id = integration.provider_id.as_str();
        self.channel.is_none_or(|channel| integration.channel == channel)
            && self.provider_id.is_none_or(|wanted| provider_id == wanted.as_str())
            && self.integration_identifier.is_none_or(|wanted| integration.identifier == *wanted)
    }
}

/// The names of integrations, each looked up once.
#[derive(Debug, Default)]
pub(crate) struct IntegrationNames(HashMap<IntegrationId, IntegrationIdentifier>);

impl IntegrationNames {
    /// The name of the integration of that id, which is there.
    pub(crate) fn of(
        &mut self,
        home: &Home,
        snapshot: &dyn Snapshot,
        id: IntegrationId,
    ) -> Result<IntegrationIdentifier> {
        if let Some(name) = self.0.get(&id) {
            return Ok(name.clone());
        }
        let name = integrations::get(home, snapshot, id)?.identifier;
        self.0.insert(id, name.clone());
        Ok(name)
    }
}
