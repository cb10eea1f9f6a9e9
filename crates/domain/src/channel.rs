//! What channel connections and channel endpoints have in common: they belong to integrations, to
//! subscribers and to contexts.

use serde::{Deserialize, Serialize};

use crate::context::ContextFilter;
use crate::ids::{IntegrationIdentifier, SubscriberId};
use crate::integration::Integration;
use crate::json::shape;
use crate::page::OrderBy;
use crate::vocabulary::{Channel, ProviderId};

/// Which connections or endpoints are listed. Every condition that is given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ChannelFilter {
    /// Those of this subscriber.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscriber_id: Option<SubscriberId>,
    /// Those of integrations on this channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<Channel>,
    /// Those of integrations of this provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<ProviderId>,
    /// Those of this integration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub integration_identifier: Option<IntegrationIdentifier>,
    /// Those for exactly these contexts.
    #[serde(skip_serializing_if = "ContextFilter::is_any")]
    pub context_keys: ContextFilter,
}

shape! { ChannelFilter {
    "subscriberId": subscriber_id, "channel": channel, "providerId": provider_id,
    "integrationIdentifier": integration_identifier, "contextKeys": context_keys,
} }

impl ChannelFilter {
    /// What the lists can be sorted by.
    pub const ORDERS: &[OrderBy] = &[OrderBy::CreatedAt, OrderBy::UpdatedAt, OrderBy::Id];

    /// Whether those of `integration` may be listed.
    pub fn allows(&self, integration: &Integration) -> bool {
        let provider_id = integration.provider_id.as_str();
        let identifier = &integration.identifier;
        self.channel.is_none_or(|channel| integration.channel == channel)
            && self.provider_id.is_none_or(|wanted| provider_id == wanted.as_str())
            && self.integration_identifier.as_ref().is_none_or(|wanted| identifier == wanted)
    }
}

/// Declares the setters of a query with a [`ChannelFilter`].
macro_rules! filter_setters {
    ($type:ident) => {
        $crate::setters::setters! { $type:
            /// Lists those of this subscriber.
            subscriber_id @ filter.subscriber_id: checked($crate::ids::SubscriberId, "subscriberId");
            /// Lists those of integrations on this channel.
            channel @ filter.channel: exact($crate::vocabulary::Channel);
            /// Lists those of integrations of this provider.
            provider_id @ filter.provider_id: exact($crate::vocabulary::ProviderId);
            /// Lists those of this integration.
            integration_identifier @ filter.integration_identifier:
                checked($crate::ids::IntegrationIdentifier, "integrationIdentifier");
            /// Lists those for exactly these contexts, as in `tenant:acme`.
            context_keys @ filter.context_keys:
                each_checked($crate::context::ContextKey, "contextKeys");
        }
    };
}
pub(crate) use filter_setters;
