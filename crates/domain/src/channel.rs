//! Filter, orders and setters that channel connections and channel endpoints share. Both belong to
//! an integration, a subscriber and contexts.

use serde::{Deserialize, Serialize};

use crate::context::ContextFilter;
use crate::error::Invalid;
use crate::ids::{IntegrationIdentifier, SubscriberId};
use crate::integration::Integration;
use crate::json::shape;
use crate::page::OrderBy;
use crate::vocabulary::{Channel, ProviderId};

/// Filter of a list of connections or endpoints. An item must meet every condition that is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ChannelFilter {
    /// Subscriber of the item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscriber_id: Option<SubscriberId>,
    /// Channel of the item's integration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<Channel>,
    /// Provider of the item's integration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<ProviderId>,
    /// Identifier of the item's integration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub integration_identifier: Option<IntegrationIdentifier>,
    /// Contexts of the item, compared as a set. At most 100.
    #[serde(skip_serializing_if = "ContextFilter::is_any")]
    pub context_keys: ContextFilter,
}

shape! { ChannelFilter {
    "subscriberId": subscriber_id, "channel": channel, "providerId": provider_id,
    "integrationIdentifier": integration_identifier, "contextKeys": context_keys,
} }

impl ChannelFilter {
    /// Fields that the lists can be sorted by.
    #[doc(hidden)]
    pub const ORDERS: &[OrderBy] = &[OrderBy::CreatedAt, OrderBy::UpdatedAt, OrderBy::Id];

    /// Refuses a filter by more than 100 contexts.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Invalid> {
        self.context_keys.check(ContextFilter::MAX_VALUES)
    }

    /// Returns `true` if the channel, provider and identifier of `integration` meet the filter.
    #[doc(hidden)]
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
            /// Lists the items of this subscriber.
            subscriber_id @ filter.subscriber_id: checked($crate::ids::SubscriberId, "subscriberId");
            /// Lists the items of integrations on this channel.
            channel @ filter.channel: exact($crate::vocabulary::Channel);
            /// Lists the items of integrations of this provider.
            provider_id @ filter.provider_id: exact($crate::vocabulary::ProviderId);
            /// Lists the items of this integration.
            integration_identifier @ filter.integration_identifier:
                checked($crate::ids::IntegrationIdentifier, "integrationIdentifier");
            /// Lists the items with exactly these contexts, as in `tenant:acme`.
            context_keys @ filter.context_keys:
                each_checked($crate::context::ContextKey, "contextKeys");
        }
    };
}
pub(crate) use filter_setters;
