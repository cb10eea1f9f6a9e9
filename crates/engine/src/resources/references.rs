//! Records that are named by their identifiers or ids. If a name is missing, the error suggests the one
//! that was meant.

use std::fmt::Display;
use std::ops::ControlFlow;
use std::str::FromStr;

use domain::ids::EnvironmentId;
use domain::integration::Integration;
use domain::layout::Layout;
use domain::suggest::nearest;
use domain::workflow::Workflow;
use store::layout::Identified;
use store::{Key, Order, ReadRecords, layout};

use crate::tx::View;
use crate::{Entity, Error, Result};

/// Number of identifiers on each side of a missing one that are looked at.
const LOOKED_AT: usize = 64;

/// A record that is named by its identifier or by its id.
pub(crate) trait NamedRecord: Identified<Identifier: FromStr + Display> {
    /// Kind of the record, for errors.
    const ENTITY: Entity;

    /// The key of the record, if the name is an id.
    fn by_id(environment: EnvironmentId, name: &str) -> Option<Key<Self>>;
}

impl NamedRecord for Workflow {
    const ENTITY: Entity = Entity::Workflow;

    fn by_id(environment: EnvironmentId, name: &str) -> Option<Key<Self>> {
        Some(layout::workflow(environment, Self::id_in(name)?))
    }
}

impl NamedRecord for Layout {
    const ENTITY: Entity = Entity::Layout;

    fn by_id(environment: EnvironmentId, name: &str) -> Option<Key<Self>> {
        Some(layout::layout_id(environment, name.parse().ok()?))
    }
}

impl NamedRecord for Integration {
    const ENTITY: Entity = Entity::Integration;

    fn by_id(environment: EnvironmentId, name: &str) -> Option<Key<Self>> {
        Some(layout::integration(environment, name.parse().ok()?))
    }
}

/// What `look_up` finds under a name. A name that looks like an id is an identifier first.
pub(crate) fn find<R: NamedRecord, T>(
    environment: EnvironmentId,
    name: &str,
    look_up: impl Fn(&Key<R>) -> Result<Option<T>>,
) -> Result<Option<T>> {
    if let Ok(identifier) = name.parse()
        && let Some(found) = look_up(&layout::by_identifier(environment, &identifier))?
    {
        return Ok(Some(found));
    }
    R::by_id(environment, name).map_or(Ok(None), |key| look_up(&key))
}

/// What was found under a name. Otherwise the error suggests the nearest of the identifiers around it.
pub(crate) fn expect<R: NamedRecord, T>(
    view: &dyn View,
    name: &str,
    found: Option<T>,
) -> Result<T> {
    match found {
        Some(found) => Ok(found),
        None => Err(missing::<R>(view, name)?),
    }
}

fn missing<R: NamedRecord>(view: &dyn View, name: &str) -> Result<Error> {
    let missing = Error::not_found(R::ENTITY, name);
    let Ok(identifier) = name.parse() else { return Ok(missing) };
    let [before, behind] = layout::around_identifier::<R>(view.environment_id(), &identifier);
    let mut known = Vec::new();
    for (range, order) in [(before, Order::Descending), (behind, Order::Ascending)] {
        view.scan_bytes(&range, order, Some(LOOKED_AT), &mut |key, _| {
            known.extend(layout::identifier_of::<R>(key).map(|identifier| identifier.to_string()));
            ControlFlow::Continue(())
        })?;
    }
    Ok(missing.meaning(nearest(name, known.iter().map(String::as_str))))
}
