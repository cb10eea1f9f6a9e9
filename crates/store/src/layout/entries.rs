//! The key of each record, and the index entries that lead to it.

mod channels;
mod environments;
mod messages;
mod notifications;
mod subscribers;
mod suppressions;
mod topics;
mod triggers;
mod workflows;

use domain::time::Timestamp;

use crate::key::SortedPlace;

// The places of a record in lists by times and by id.
fn places<Id: Copy>(
    id: Id,
    created: Timestamp,
    updated: Timestamp,
) -> [SortedPlace<'static, Id>; 3] {
    [SortedPlace::CreatedAt(created, id), SortedPlace::UpdatedAt(updated, id), SortedPlace::Id(id)]
}
