//! Setters of page queries.

use super::{Cursor, Direction, OrderBy, PageQuery};
use crate::setters::setters;

setters! { PageQuery:
    /// Starts the page behind `after`.
    after: into(Cursor);
    /// Ends the page in front of `before`.
    before: into(Cursor);
    /// Sets the maximum number of items on the page: 1 to 100.
    limit: exact(u32);
    /// Sets the field to sort by.
    order_by: exact(OrderBy);
    /// Sets the direction of the list.
    order_direction: exact(Direction);
    /// Includes the item at the cursor.
    include_cursor: flag(true);
}

impl From<&Cursor> for Cursor {
    fn from(cursor: &Cursor) -> Self {
        cursor.clone()
    }
}
