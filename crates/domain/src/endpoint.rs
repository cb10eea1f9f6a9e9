//! Channel endpoints: the concrete destinations at which a subscriber is reached through an
//! integration.

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

/// A destination at which a subscriber is reached through an integration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ChannelEndpoint {
    /// What the engine calls it.
    #[serde(rename = "_id")]
    pub id: EndpointId,
    /// The organization it belongs to.
    #[serde(rename = "_organizationId")]
    pub organization_id: OrganizationId,
    /// The environment it belongs to.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// The name that its environment knows it by.
    pub identifier: EndpointIdentifier,
    /// The channel that the integration sends on.
    pub channel: Channel,
    /// The provider of the integration, if it is one that is known by name.
    pub provider_id: Option<ProviderId>,
    /// The integration.
    #[serde(rename = "_integrationId")]
    pub integration_id: IntegrationId,
    /// The name that the environment knows the integration by; filled in when it is read.
    pub integration_identifier: Option<IntegrationIdentifier>,
    /// The connection whose workspace it lies in.
    pub connection_identifier: Option<ConnectionIdentifier>,
    /// Who is reached there.
    pub subscriber_id: SubscriberId,
    /// The contexts that it is for.
    pub context_keys: ContextSet,
    /// Where it is.
    #[serde(flatten)]
    pub endpoint: Endpoint,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// A new channel endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ChannelEndpointCreate {
    /// The name that its environment is to know it by; the engine makes one if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identifier: Option<EndpointIdentifier>,
    /// Who is reached there.
    pub subscriber_id: SubscriberId,
    /// The contexts that it is for. Those that are not there are created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextPayload>,
    /// The integration.
    pub integration_identifier: IntegrationIdentifier,
    /// The connection whose workspace it lies in: one of the same integration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_identifier: Option<ConnectionIdentifier>,
    /// Where it is.
    #[serde(flatten)]
    pub endpoint: Endpoint,
}

shape! { ChannelEndpointCreate {
    "identifier": identifier, "subscriberId": subscriber_id, "context": context,
    "integrationIdentifier": integration_identifier,
    "connectionIdentifier": connection_identifier;
    endpoint
} }

/// A new place for a channel endpoint, of the type that it has.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChannelEndpointUpdate {
    /// The fields of the place. Those that are not named are gone.
    pub endpoint: Object,
}

shape! { ChannelEndpointUpdate { "endpoint": endpoint } }

/// Which channel endpoints are listed. Every condition that is given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ChannelEndpointQuery {
    /// Which page of them.
    #[serde(flatten)]
    pub page: PageQuery,
    /// Those that this lets through.
    #[serde(flatten)]
    pub filter: ChannelFilter,
    /// Those in the workspace of this connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection_identifier: Option<ConnectionIdentifier>,
}

shape! { ChannelEndpointQuery {
    "connectionIdentifier": connection_identifier;
    page by ChannelFilter::ORDERS, filter
} }

dated! { ChannelEndpoint }

impl ChannelEndpoint {
    /// An endpoint that nobody has seen before.
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

    /// The endpoint after `update`, which has to be of its type. One that says the same changes
    /// nothing.
    pub fn updated(&self, update: &ChannelEndpointUpdate, now: Timestamp) -> Result<Self, Invalid> {
        let endpoint = Endpoint::new(self.endpoint.kind(), &update.endpoint)?;
        Ok(Self { endpoint, ..self.clone() }.changed_from(self, now))
    }

    /// The endpoint with its secrets made unreadable.
    #[must_use]
    pub fn redacted(mut self) -> Self {
        if let Endpoint::Webhook { url, .. } = &mut self.endpoint {
            *url = url.redacted();
        }
        self
    }
}

// Which of the fields are secret is for the type to say, so that only their names are shown.
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
