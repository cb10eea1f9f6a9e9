//! Names that are not there, and the one that was meant.

use std::ops::ControlFlow;

use domain::suggest::nearest;
use store::{Order, Range, ReadRecords};

use crate::tx::View;
use crate::{Entity, Error, Result};

/// Number of identifiers on each side of a missing one that are looked at.
const LOOKED_AT: usize = 64;

/// Returns the error of an entity that is not there. It suggests the nearest of the identifiers in
/// the keys `around` that of `name`, which `read` reads.
pub(crate) fn missing<R, N: ToString>(
    view: &dyn View,
    (entity, name): (Entity, &str),
    [before, behind]: [Range<R>; 2],
    read: fn(&[u8]) -> Option<N>,
) -> Result<Error> {
    let mut known = Vec::new();
    for (range, order) in [(before, Order::Descending), (behind, Order::Ascending)] {
        view.scan_bytes(&range, order, Some(LOOKED_AT), &mut |key, _| {
            known.extend(read(key).map(|identifier| identifier.to_string()));
            ControlFlow::Continue(())
        })?;
    }
    let meant = nearest(name, known.iter().map(String::as_str));
    Ok(Error::not_found(entity, name).meaning(meant))
}
