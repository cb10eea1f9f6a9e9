//! Look-ups of integrations, by id, by identifier and by channel.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::connection::ChannelConnection;
use domain::endpoint::ChannelEndpoint;
use domain::ids::{IntegrationId, IntegrationIdentifier};
use domain::integration::Integration;
use store::{ReadRecords, layout};

use crate::resources::references;
use crate::tx::View;
use crate::{Entity, Error, Result};

/// Every integration of an environment that is not deleted and can be read, oldest first.
pub(crate) fn all(view: &dyn View) -> Result<Vec<Arc<Integration>>> {
    Ok(readable(view)?.0)
}

/// The ids of the integrations that have connections or endpoints. The record of an integration may be
/// lost.
pub(crate) fn with_channels(view: &dyn View) -> Result<BTreeSet<IntegrationId>> {
    let connections = with_records::<ChannelConnection>(view)?;
    Ok(connections.into_iter().chain(with_records::<ChannelEndpoint>(view)?).collect())
}

fn with_records<R: layout::OfIntegration>(view: &dyn View) -> Result<Vec<IntegrationId>> {
    let environment = view.environment_id();
    let behind = |id: &IntegrationId| layout::channel_lists_behind::<R>(environment, *id);
    Ok(view.distinct(
        layout::channel_lists(environment),
        layout::integration_of_list::<R>,
        behind,
    )?)
}

// The integrations of an environment that are not deleted and can be read, oldest first, and the number
// of those that cannot be read.
fn readable(view: &dyn View) -> Result<(Vec<Arc<Integration>>, usize)> {
    let prefix = layout::integrations(view.environment_id());
    let (mut found, unreadable) =
        view.engine().parts.decoded.integrations.readable(view, &prefix)?;
    found.retain(|integration| !integration.is_deleted());
    Ok((found, unreadable))
}

/// Fails if an integration cannot be read.
pub(crate) fn check_readable(view: &dyn View) -> Result<()> {
    let prefix = layout::integrations(view.environment_id());
    view.engine().parts.decoded.integrations.all(view, &prefix)?;
    Ok(())
}

/// The integrations of an environment that are active, oldest first.
pub(super) fn active(view: &dyn View) -> Result<Vec<Integration>> {
    let mut integrations = cloned(all(view)?);
    integrations.retain(Integration::is_active);
    Ok(integrations)
}

/// The integrations, out of what keeps them decoded.
pub(super) fn cloned(integrations: Vec<Arc<Integration>>) -> Vec<Integration> {
    integrations.into_iter().map(Arc::unwrap_or_clone).collect()
}

/// The integration of that id, unless it is deleted.
pub(crate) fn get(view: &dyn View, id: IntegrationId) -> Result<Integration> {
    find(view, id)?.ok_or_else(|| Error::not_found(Entity::Integration, id))
}

/// The integration that the environment knows by that name.
pub(crate) fn get_by_identifier(
    view: &dyn View,
    identifier: &IntegrationIdentifier,
) -> Result<Integration> {
    let found = find_by_identifier(view, identifier)?;
    references::expect::<Integration, _>(view, identifier.as_str(), found)
}

/// The integration of that name.
pub(crate) fn get_named(view: &dyn View, name: &str) -> Result<Integration> {
    references::expect::<Integration, _>(view, name, find_named(view, name)?)
}

/// The integration of that name, unless it is deleted. Returns `None` if there is none.
pub(crate) fn find_named(view: &dyn View, name: &str) -> Result<Option<Integration>> {
    let found = references::find(view.environment_id(), name, |key| Ok(view.find(key)?))?;
    Ok(found.filter(|integration: &Integration| !integration.is_deleted()))
}

/// The integration with that identifier. Returns `None` if there is none.
pub(crate) fn find_by_identifier(
    view: &dyn View,
    identifier: &IntegrationIdentifier,
) -> Result<Option<Integration>> {
    Ok(view.find(&layout::by_identifier(view.environment_id(), identifier))?)
}

/// The integration of that id, unless it is deleted. Returns `None` if there is none.
pub(crate) fn find(view: &dyn View, id: IntegrationId) -> Result<Option<Integration>> {
    let found: Option<Integration> = view.find(&layout::integration(view.environment_id(), id))?;
    Ok(found.filter(|integration| !integration.is_deleted()))
}
