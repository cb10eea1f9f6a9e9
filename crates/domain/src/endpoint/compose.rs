//! Constructors and setters of channel endpoints.

use super::{ChannelEndpointCreate, ChannelEndpointQuery, ChannelEndpointUpdate, Endpoint};
use super::{PhoneNumber, WebhookUrl};
use crate::channel::filter_setters;
use crate::convert::IntoChecked;
use crate::error::{Invalid, Reason};
use crate::ids::{
    ConnectionIdentifier, EndpointIdentifier, IntegrationIdentifier, PlatformId, SubscriberId,
};
use crate::json::Object;
use crate::setters::{context_setter, page_setters, setters};

impl ChannelEndpointCreate {
    /// Returns an endpoint at which an integration reaches a subscriber.
    pub fn new(
        subscriber_id: impl IntoChecked<SubscriberId>,
        integration_identifier: impl IntoChecked<IntegrationIdentifier>,
        endpoint: Endpoint,
    ) -> Result<Self, Invalid> {
        let integration = integration_identifier.into_checked();
        Ok(Self {
            identifier: None,
            subscriber_id: subscriber_id.into_checked()?,
            context: None,
            integration_identifier: integration
                .map_err(|invalid| invalid.named("integrationIdentifier"))?,
            connection_identifier: None,
            endpoint,
        })
    }
}

setters! { ChannelEndpointCreate:
    /// Sets the identifier; the engine makes one if it is absent.
    identifier: checked(EndpointIdentifier, "identifier");
    /// Sets the connection to the endpoint's workspace. It belongs to the same integration.
    connection_identifier: checked(ConnectionIdentifier, "connectionIdentifier");
}

context_setter!(ChannelEndpointCreate);

impl ChannelEndpointUpdate {
    /// Returns an update to these fields, all of the endpoint's type.
    pub fn new(endpoint: impl IntoChecked<Object>) -> Result<Self, Invalid> {
        let endpoint = endpoint.into_checked().map_err(|invalid| invalid.named("endpoint"))?;
        Ok(Self { endpoint })
    }
}

filter_setters!(ChannelEndpointQuery);
page_setters!(ChannelEndpointQuery);

setters! { ChannelEndpointQuery:
    /// Lists the endpoints of this connection.
    connection_identifier: checked(ConnectionIdentifier, "connectionIdentifier");
}

impl Endpoint {
    /// Returns a Slack channel.
    pub fn slack_channel(channel_id: impl IntoChecked<PlatformId>) -> Result<Self, Invalid> {
        Ok(Endpoint::SlackChannel { channel_id: part("channelId", channel_id)? })
    }

    /// Returns a Slack user.
    pub fn slack_user(user_id: impl IntoChecked<PlatformId>) -> Result<Self, Invalid> {
        Ok(Endpoint::SlackUser { user_id: part("userId", user_id)? })
    }

    /// Returns a webhook of a chat platform.
    pub fn webhook(url: impl IntoChecked<WebhookUrl>) -> Result<Self, Invalid> {
        Ok(Endpoint::Webhook { url: part("url", url)?, channel: None })
    }

    /// Returns a telephone number.
    pub fn phone(phone_number: impl IntoChecked<PhoneNumber>) -> Result<Self, Invalid> {
        Ok(Endpoint::Phone { phone_number: part("phoneNumber", phone_number)? })
    }

    /// Returns a Microsoft Teams channel.
    pub fn ms_teams_channel(
        team_id: impl IntoChecked<PlatformId>,
        channel_id: impl IntoChecked<PlatformId>,
    ) -> Result<Self, Invalid> {
        let (team_id, channel_id) = (part("teamId", team_id)?, part("channelId", channel_id)?);
        Ok(Endpoint::MsTeamsChannel { team_id, channel_id })
    }

    /// Returns a Microsoft Teams user.
    pub fn ms_teams_user(user_id: impl IntoChecked<PlatformId>) -> Result<Self, Invalid> {
        Ok(Endpoint::MsTeamsUser { user_id: part("userId", user_id)?, tenant_id: None })
    }

    /// Sets the channel of a webhook.
    pub fn channel(self, channel: impl IntoChecked<PlatformId>) -> Result<Self, Invalid> {
        match self {
            Endpoint::Webhook { url, .. } => {
                Ok(Endpoint::Webhook { url, channel: Some(part("channel", channel)?) })
            }
            other => Err(other.lacks("channel")),
        }
    }

    /// Sets the tenant of a Microsoft Teams user.
    pub fn tenant_id(self, tenant_id: impl IntoChecked<PlatformId>) -> Result<Self, Invalid> {
        match self {
            Endpoint::MsTeamsUser { user_id, .. } => {
                let tenant_id = Some(part("tenantId", tenant_id)?);
                Ok(Endpoint::MsTeamsUser { user_id, tenant_id })
            }
            other => Err(other.lacks("tenantId")),
        }
    }

    fn lacks(&self, field: &str) -> Invalid {
        let expected = format!("a field of the type `{}`, or left out", self.kind());
        Invalid::new(format!("endpoint.{field}"), Reason::malformed(expected))
    }
}

fn part<T>(field: &str, value: impl IntoChecked<T>) -> Result<T, Invalid> {
    value.into_checked().map_err(|invalid| invalid.named(format!("endpoint.{field}")))
}
