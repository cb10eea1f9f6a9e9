//! Records that cannot be read: what goes on without them, and where they are put.

use domain::quarantine::Unreadable;
use store::{Record, Referent, Table, layout};
use uuid::Uuid;

use crate::Result;
use crate::pipeline::delivery::quarantine;
use crate::tx::Draft;

/// Returns what was found. Returns `None` if it cannot be read.
pub(crate) fn if_readable<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Err(error) if error.corruption().is_some() => Ok(None),
        found => found.map(Some),
    }
}

/// Puts a record that cannot be read into quarantine. The caller removes it from its table.
pub(crate) fn quarantine(
    draft: &mut Draft<'_>,
    table: Table,
    unreadable: &Unreadable,
) -> Result<()> {
    let environment = layout::environment_of(table, &unreadable.key);
    let environment = environment.unwrap_or_else(|| Uuid::nil().into());
    quarantine::put(draft, environment, unreadable, None)
}

/// Puts what an entry leads to into quarantine, if it cannot be read.
pub(crate) fn quarantine_referent<R: Record>(
    draft: &mut Draft<'_>,
    referent: &Referent<R>,
) -> Result<()> {
    match referent {
        Referent::Unreadable(unreadable) => quarantine(draft, R::TABLE, unreadable),
        Referent::Record(_) | Referent::Other(_) | Referent::Missing => Ok(()),
    }
}
