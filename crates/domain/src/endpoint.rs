//! Channel endpoints: destinations at which an integration reaches a subscriber.

mod compose;
mod data;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::channel::ChannelFilter;
use crate::context::{ContextPayload, ContextSet};
use crate::environment::Home;
use crate::error::Invalid;
use crate::ids::{
    ConnectionIdentifier, EndpointId, EndpointIdentifier, EnvironmentId, IntegrationId,
    IntegrationIdentifier, OrganizationId, SubscriberId,
};
use crate::integration::Integration;
use crate::json::{Object, shape};
use crate::page::PageQuery;
use crate::time::{Dated, Timestamp, dated};
use crate::vocabulary::{Channel, ProviderId};

pub use data::{Endpoint, EndpointType, PhoneNumber, WebhookUrl};

/// Destination at which an integration reaches a subscriber.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ChannelEndpoint {
    /// Id given by the engine.
    #[serde(rename = "_id")]
    pub id: EndpointId,
    /// Organization of the endpoint.
    #[serde(rename = "_organizationId")]
    pub organization_id: OrganizationId,
    /// Environment of the endpoint.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// Identifier, unique in its environment.
    pub identifier: EndpointIdentifier,
    /// Channel of the integration.
    pub channel: Channel,
    /// Provider of the integration. `None` for one that the host has registered under a name of its own,
    /// which is [`Integration::provider_id`](crate::integration::Integration::provider_id).
    pub provider_id: Option<ProviderId>,
    /// Id of the integration.
    #[serde(rename = "_integrationId")]
    pub integration_id: IntegrationId,
    /// Identifier of the integration, filled in by reads.
    pub integration_identifier: Option<IntegrationIdentifier>,
    /// Identifier of the connection to the endpoint's workspace.
    pub connection_identifier: Option<ConnectionIdentifier>,
    /// Id of the subscriber in the host application.
    pub subscriber_id: SubscriberId,
    /// Contexts of the endpoint.
    pub context_keys: ContextSet,
    /// Destination.
    #[serde(flatten)]
    pub endpoint: Endpoint,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

impl ChannelEndpoint {
    /// Returns the address that a suppression can have, with its channel: a telephone number. Returns
    /// `None` for other destinations.
    #[doc(hidden)]
    pub fn address(&self) -> Option<(Channel, String)> {
        match &self.endpoint {
            Endpoint::Phone { phone_number } => {
                Some((Channel::Sms, phone_number.as_str().to_owned()))
            }
            Endpoint::Webhook { .. }
            | Endpoint::SlackChannel { .. }
            | Endpoint::SlackUser { .. }
            | Endpoint::MsTeamsChannel { .. }
            | Endpoint::MsTeamsUser { .. } => None,
        }
    }
}

/// New channel endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ChannelEndpointCreate {
    /// Identifier, unique in its environment. The engine makes one if it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identifier: Option<EndpointIdentifier>,
    /// Id of the subscriber in the host application.
    pub subscriber_id: SubscriberId,
    /// Contexts of the endpoint. Contexts that do not exist are created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextPayload>,
    /// Identifier of the integration.
    pub integration_identifier: IntegrationIdentifier,
    /// Identifier of the connection to the endpoint's workspace, which belongs to the same
    /// integration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_identifier: Option<ConnectionIdentifier>,
    /// Destination.
    #[serde(flatten)]
    pub endpoint: Endpoint,
}

shape! { ChannelEndpointCreate {
    "identifier": identifier, "subscriberId": subscriber_id, "context": context,
    "integrationIdentifier": integration_identifier,
    "connectionIdentifier": connection_identifier;
    endpoint
} }

/// New destination of a channel endpoint, of the same type.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChannelEndpointUpdate {
    /// Fields of the destination. They replace all of the stored fields.
    pub endpoint: Object,
}

shape! { ChannelEndpointUpdate { "endpoint": endpoint } }

/// Query of channel endpoints. An endpoint must meet every condition that is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ChannelEndpointQuery {
    /// Page of the list.
    #[serde(flatten)]
    pub page: PageQuery,
    /// Filter of the list.
    #[serde(flatten)]
    pub filter: ChannelFilter,
    /// Connection of the endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection_identifier: Option<ConnectionIdentifier>,
}

shape! { ChannelEndpointQuery {
    "connectionIdentifier": connection_identifier;
    page by ChannelFilter::ORDERS, filter
} }

dated! { ChannelEndpoint }

impl ChannelEndpoint {
    /// Maximum number of endpoints of a subscriber at an integration that a message goes to. Those
    /// behind them are left out.
    pub const MAX_PER_INTEGRATION: usize = 100;

    /// Returns a new endpoint.
    #[doc(hidden)]
    pub fn new(
        (id, identifier): (EndpointId, EndpointIdentifier),
        home: &Home,
        create: ChannelEndpointCreate,
        integration: &Integration,
        context_keys: ContextSet,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            organization_id: home.organization_id.clone(),
            environment_id: home.environment_id,
            identifier,
            channel: integration.channel,
            provider_id: integration.provider_id.parse().ok(),
            integration_id: integration.id,
            integration_identifier: None,
            connection_identifier: create.connection_identifier,
            subscriber_id: create.subscriber_id,
            context_keys,
            endpoint: create.endpoint,
            created_at: now,
            updated_at: now,
        }
    }

    /// Returns the endpoint after `update`. Refuses fields of another type. An update without a
    /// difference changes nothing, not even the time.
    #[doc(hidden)]
    pub fn updated(&self, update: &ChannelEndpointUpdate, now: Timestamp) -> Result<Self, Invalid> {
        let endpoint = Endpoint::new(self.endpoint.kind(), &update.endpoint)?;
        Ok(Self { endpoint, ..self.clone() }.changed_from(self, now))
    }

    /// Returns the endpoint with its secrets masked.
    #[must_use]
    pub fn redacted(mut self) -> Self {
        if let Endpoint::Webhook { url, .. } = &mut self.endpoint {
            *url = url.redacted();
        }
        self
    }
}

// Prints names only: the type, which is absent here, decides on the secret fields.
impl fmt::Debug for ChannelEndpointUpdate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.endpoint.keys().collect();
        f.debug_struct("ChannelEndpointUpdate").field("endpoint", &names).finish()
    }
}

impl From<Endpoint> for ChannelEndpointUpdate {
    fn from(endpoint: Endpoint) -> Self {
        Self { endpoint: endpoint.data() }
    }
}

#[cfg(test)]
mod tests;
