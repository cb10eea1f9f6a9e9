//! Channel connections: the workspaces of a chat or push platform that an integration may write to.

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

/// A workspace that an integration may write to. There is at most one for each integration,
/// subscriber (or none) and set of contexts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ChannelConnection {
    /// What the engine calls it.
    #[serde(rename = "_id")]
    pub id: ConnectionId,
    /// The organization it belongs to.
    #[serde(rename = "_organizationId")]
    pub organization_id: OrganizationId,
    /// The environment it belongs to.
    #[serde(rename = "_environmentId")]
    pub environment_id: EnvironmentId,
    /// The name that its environment knows it by.
    pub identifier: ConnectionIdentifier,
    /// The channel that the integration sends on.
    pub channel: Channel,
    /// The provider of the integration, if it is one that is known by name.
    pub provider_id: Option<ProviderId>,
    /// The integration.
    #[serde(rename = "_integrationId")]
    pub integration_id: IntegrationId,
    /// The name that the environment knows the integration by; filled in when it is read.
    pub integration_identifier: Option<IntegrationIdentifier>,
    /// Whose workspace it is; shared by everybody in its contexts if it is nobody's.
    pub subscriber_id: Option<SubscriberId>,
    /// The contexts that it is for.
    pub context_keys: ContextSet,
    /// The workspace.
    pub workspace: Workspace,
    /// What opens the workspace.
    pub auth: ConnectionAuth,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// A workspace of a chat or push platform.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Workspace {
    /// What the platform calls it.
    pub id: PlatformId,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

shape! { Workspace { "id": id, "name": name } }

/// What opens a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ConnectionAuth {
    /// The token that the platform gave out.
    pub access_token: Secret,
}

shape! { ConnectionAuth { "accessToken": access_token } }

/// A new channel connection, for a subscriber, for contexts, or for both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ChannelConnectionCreate {
    /// The name that its environment is to know it by; the engine makes one if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identifier: Option<ConnectionIdentifier>,
    /// Whose workspace it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscriber_id: Option<SubscriberId>,
    /// The contexts that it is for. Those that are not there are created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextPayload>,
    /// The integration.
    pub integration_identifier: IntegrationIdentifier,
    /// The workspace.
    pub workspace: Workspace,
    /// What opens the workspace.
    pub auth: ConnectionAuth,
}

shape! { ChannelConnectionCreate {
    "identifier": identifier, "subscriberId": subscriber_id, "context": context,
    "integrationIdentifier": integration_identifier, "workspace": workspace, "auth": auth,
} }

/// A partial update of a channel connection.
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

shape! { ChannelConnectionUpdate { "workspace": workspace, "auth": auth } }

/// Which channel connections are listed. Every condition that is given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ChannelConnectionQuery {
    /// Which page of them.
    #[serde(flatten)]
    pub page: PageQuery,
    /// Those that this lets through.
    #[serde(flatten)]
    pub filter: ChannelFilter,
}

shape! { ChannelConnectionQuery { ; page by ChannelFilter::ORDERS, filter } }

dated! { ChannelConnection }

impl ChannelConnection {
    /// A connection that nobody has seen before.
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

    /// The connection after `update`. One that says the same changes nothing.
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

    /// The connection with its token made unreadable.
    #[must_use]
    pub fn redacted(self) -> Self {
        Self { auth: ConnectionAuth { access_token: Secret::redacted() }, ..self }
    }
}

impl ChannelConnectionCreate {
    /// Refuses a connection that is for nobody and nothing, and one that opens no workspace.
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
    /// The longest name, in characters.
    pub const MAX_NAME: usize = 255;

    fn check(&self) -> Result<(), Invalid> {
        let name = self.name.as_deref().unwrap_or_default();
        at_most("workspace.name", name, Self::MAX_NAME)?;
        plain("workspace.name", name)
    }
}

impl ConnectionAuth {
    /// The longest token, in bytes.
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
