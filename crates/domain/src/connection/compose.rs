//! Constructors and setters of channel connections.

use super::{
    ChannelConnectionCreate, ChannelConnectionQuery, ChannelConnectionUpdate, ConnectionAuth,
    Workspace,
};
use crate::channel::filter_setters;
use crate::convert::IntoChecked;
use crate::error::Invalid;
use crate::ids::{ConnectionIdentifier, IntegrationIdentifier, PlatformId, SubscriberId};
use crate::secret::Secret;
use crate::setters::{context_setter, page_setters, setters};

impl ChannelConnectionCreate {
    /// Returns a connection of an integration to a workspace, which `access_token` opens. It needs
    /// a subscriber, contexts, or both.
    pub fn new(
        integration_identifier: impl IntoChecked<IntegrationIdentifier>,
        workspace: Workspace,
        access_token: impl Into<Secret>,
    ) -> Result<Self, Invalid> {
        let integration = integration_identifier.into_checked();
        Ok(Self {
            identifier: None,
            subscriber_id: None,
            context: None,
            integration_identifier: integration
                .map_err(|invalid| invalid.named("integrationIdentifier"))?,
            workspace,
            auth: ConnectionAuth::new(access_token),
        })
    }
}

setters! { ChannelConnectionCreate:
    /// Sets the identifier; the engine makes one if it is absent.
    identifier: checked(ConnectionIdentifier, "identifier");
    /// Sets the subscriber of the workspace.
    subscriber_id: checked(SubscriberId, "subscriberId");
}

context_setter!(ChannelConnectionCreate);

impl Workspace {
    /// Returns the workspace with this id of the platform.
    pub fn new(id: impl IntoChecked<PlatformId>) -> Result<Self, Invalid> {
        let id = id.into_checked().map_err(|invalid| invalid.named("workspace.id"))?;
        Ok(Self { id, name: None })
    }
}

setters! { Workspace:
    /// Sets the display name: at most 255 characters.
    name: into(String);
}

impl ConnectionAuth {
    /// Returns the access to a workspace, by the token of the platform.
    pub fn new(access_token: impl Into<Secret>) -> Self {
        Self { access_token: access_token.into() }
    }
}

setters! { ChannelConnectionUpdate:
    /// Sets the workspace.
    workspace: exact(Workspace);
    /// Sets the access to the workspace.
    auth: exact(ConnectionAuth);
}

filter_setters!(ChannelConnectionQuery);
page_setters!(ChannelConnectionQuery);
