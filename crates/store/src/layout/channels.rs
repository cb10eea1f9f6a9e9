//! The lists of channel connections and channel endpoints, which belong to integrations.

use domain::connection::ChannelConnection;
use domain::context::ContextSet;
use domain::endpoint::ChannelEndpoint;
use domain::ids::{ConnectionId, EndpointId, EnvironmentId, IntegrationId, SubscriberId};
use domain::page::OrderBy;

use super::{CONNECTION_LISTS, ENDPOINT_LISTS};
use crate::key::{Any, KeyPart, Prefix, Range, Sorted, TableOf, parts};
use crate::record::Record;

/// A table of lists: of an integration, of a subscriber or of any, for a context set or for any.
pub type ChannelLists<R, Id> = TableOf<
    R,
    parts![EnvironmentId, IntegrationId, Any<SubscriberId>, Any<ContextSet>, Sorted<Id>],
>;

/// A connection or an endpoint: a record that belongs to an integration.
pub trait OfIntegration: Record {
    /// Id of the record.
    type Id: KeyPart;

    /// The table of its lists.
    const LISTS: ChannelLists<Self, Self::Id>;
}

type List<R> = Prefix<R, parts![Sorted<<R as OfIntegration>::Id>]>;

impl OfIntegration for ChannelConnection {
    type Id = ConnectionId;

    const LISTS: ChannelLists<Self, ConnectionId> = CONNECTION_LISTS;
}

impl OfIntegration for ChannelEndpoint {
    type Id = EndpointId;

    const LISTS: ChannelLists<Self, EndpointId> = ENDPOINT_LISTS;
}

/// A list of an integration: of a subscriber or of any, for a context set or for any.
pub fn channel_list<R: OfIntegration>(
    environment: EnvironmentId,
    order_by: OrderBy,
    integration: IntegrationId,
    subscriber: Option<&SubscriberId>,
    contexts: Option<&ContextSet>,
) -> Prefix<R> {
    list((environment, integration), subscriber, contexts).by(order_by)
}

/// The lists of an environment.
pub fn channel_lists<R: OfIntegration>(environment: EnvironmentId) -> Range<R> {
    R::LISTS.within(environment).range()
}

/// The lists of later integrations.
pub fn channel_lists_behind<R: OfIntegration>(
    environment: EnvironmentId,
    integration: IntegrationId,
) -> Range<R> {
    R::LISTS.within(environment).behind(integration)
}

/// The integration of a list, from a key in it.
pub fn integration_of_list<R: OfIntegration>(key: &[u8]) -> Option<IntegrationId> {
    let (_, (integration, _)) = R::LISTS.read(key)?;
    Some(integration)
}

/// Every list that a record of this owner is in.
pub(super) fn lists_with<R: OfIntegration>(
    within: (EnvironmentId, IntegrationId),
    (subscriber, contexts): (Option<&SubscriberId>, &ContextSet),
) -> Vec<List<R>> {
    let subscribers = [None].into_iter().chain(subscriber.map(Some));
    subscribers
        .flat_map(|subscriber| {
            [None, Some(contexts)].map(|contexts| list(within, subscriber, contexts))
        })
        .collect()
}

fn list<R: OfIntegration>(
    (environment, integration): (EnvironmentId, IntegrationId),
    subscriber: Option<&SubscriberId>,
    contexts: Option<&ContextSet>,
) -> List<R> {
    R::LISTS.within(environment).then(integration).then(subscriber).then(contexts)
}
