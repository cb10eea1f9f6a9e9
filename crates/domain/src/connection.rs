//! Channel connections: workspaces of a chat or push platform that an integration may write to.

mod compose;

use serde::{Deserialize, Serialize};

use crate::channel::ChannelFilter;
use crate::context::{ContextPayload, ContextSet};
use crate::environment::Home;
use crate::error::{Invalid, Reason, Unit, at_most};
use crate::ids::{
    ConnectionId, ConnectionIdentifier, EnvironmentId, IntegrationId, IntegrationIdentifier,
    OrganizationId, PlatformId, SubscriberId, plain,
};
use crate::integration::Integration;
use crate::json::shape;
use crate::page::PageQuery;
use crate::secret::Secret;
use crate::time::{Dated, Timestamp, dated};
use crate::vocabulary::{Channel, ProviderId};

/// Workspace that an integration may write to. At most one exists for each integration, set of
/// contexts and optional subscriber.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ChannelConnection {
    /// Id given by the engine.
    #[serde(rename = "_id")]
    pub id: ConnectionId,
    /// Organization of the connection.
    #[serde(rename = "_organizationId")]
    pub organization_id: OrganizationId,
    /// Environment of the connection.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// Identifier, unique in its environment.
    pub identifier: ConnectionIdentifier,
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
    /// Subscriber of the workspace. `None` if everyone in the contexts shares it.
    pub subscriber_id: Option<SubscriberId>,
    /// Contexts of the connection.
    pub context_keys: ContextSet,
    /// Workspace on the platform.
    pub workspace: Workspace,
    /// Access to the workspace.
    pub auth: ConnectionAuth,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

/// Workspace of a chat or push platform.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Workspace {
    /// Id given by the platform.
    pub id: PlatformId,
    /// Display name: at most 255 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

shape! { Workspace { "id": id, "name": name } }

/// Access to a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ConnectionAuth {
    /// Access token issued by the platform: at most 16 KiB.
    pub access_token: Secret,
}

shape! { ConnectionAuth { "accessToken": access_token } }

/// New channel connection, for a subscriber, for contexts, or for both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ChannelConnectionCreate {
    /// Identifier, unique in its environment. The engine makes one if it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identifier: Option<ConnectionIdentifier>,
    /// Subscriber of the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscriber_id: Option<SubscriberId>,
    /// Contexts of the connection. Contexts that do not exist are created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextPayload>,
    /// Identifier of the integration.
    pub integration_identifier: IntegrationIdentifier,
    /// Workspace on the platform.
    pub workspace: Workspace,
    /// Access to the workspace.
    pub auth: ConnectionAuth,
}

shape! { ChannelConnectionCreate {
    "identifier": identifier, "subscriberId": subscriber_id, "context": context,
    "integrationIdentifier": integration_identifier, "workspace": workspace, "auth": auth,
} }

/// Partial update of a channel connection. Absent fields keep their value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "named after the fields of `ChannelConnection`")]
#[non_exhaustive]
pub struct ChannelConnectionUpdate {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Workspace>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<ConnectionAuth>,
}

shape! { update ChannelConnectionUpdate { "workspace": workspace, "auth": auth } }

/// Query of channel connections. A connection must meet every condition that is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ChannelConnectionQuery {
    /// Page of the list.
    #[serde(flatten)]
    pub page: PageQuery,
    /// Filter of the list.
    #[serde(flatten)]
    pub filter: ChannelFilter,
}

shape! { ChannelConnectionQuery { ; page by ChannelFilter::ORDERS, filter } }

dated! { ChannelConnection }

impl ChannelConnection {
    /// Returns a new connection.
    #[doc(hidden)]
    pub fn new(
        (id, identifier): (ConnectionId, ConnectionIdentifier),
        home: &Home,
        create: ChannelConnectionCreate,
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
            subscriber_id: create.subscriber_id,
            context_keys,
            workspace: create.workspace,
            auth: create.auth,
            created_at: now,
            updated_at: now,
        }
    }

    /// Returns the connection after `update`. An update without a difference changes nothing, not
    /// even the time.
    #[doc(hidden)]
    pub fn updated(
        &self,
        update: ChannelConnectionUpdate,
        now: Timestamp,
    ) -> Result<Self, Invalid> {
        let mut connection = self.clone();
        connection.workspace = update.workspace.unwrap_or(connection.workspace);
        connection.auth = update.auth.unwrap_or(connection.auth);
        connection.workspace.check()?;
        connection.auth.check()?;
        Ok(connection.changed_from(self, now))
    }

    /// Returns the connection with its token masked.
    #[must_use]
    pub fn redacted(self) -> Self {
        Self { auth: ConnectionAuth { access_token: Secret::redacted() }, ..self }
    }
}

impl ChannelConnectionCreate {
    /// Refuses a connection without subscriber and contexts, an overlong name, and an empty or
    /// overlong token.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Invalid> {
        if self.subscriber_id.is_none() && self.context.is_none() {
            return Err(Invalid::new(
                "subscriberId",
                Reason::MissingUnless { other: "context".into() },
            ));
        }
        self.workspace.check()?;
        self.auth.check()
    }
}

impl Workspace {
    /// Longest display name, in characters.
    pub const MAX_NAME: usize = 255;

    fn check(&self) -> Result<(), Invalid> {
        let name = self.name.as_deref().unwrap_or_default();
        at_most("workspace.name", name, Self::MAX_NAME)?;
        plain("workspace.name", name)
    }
}

impl ConnectionAuth {
    /// Longest access token, in bytes.
    pub const MAX_TOKEN: usize = 16 * 1024;

    fn check(&self) -> Result<(), Invalid> {
        let refused = |reason| Err(Invalid::new("auth.accessToken", reason));
        match self.access_token.expose().len() {
            0 => refused(Reason::Empty),
            1..=Self::MAX_TOKEN => Ok(()),
            _ => refused(Reason::TooLong { max: Self::MAX_TOKEN, unit: Unit::Bytes }),
        }
    }
}

#[cfg(test)]
mod tests;
