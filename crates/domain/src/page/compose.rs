//! Pages as a program asks for them.

use super::{Cursor, Direction, OrderBy, PageQuery};
use crate::setters::setters;

setters! { PageQuery:
    /// Starts the page behind `after`.
    after: into(Cursor);
    /// Ends the page in front of `before`.
    before: into(Cursor);
    /// Sets how many items the page has at most: 1 to 100.
    limit: exact(u32);
    /// Sets the field that the list is sorted by.
    order_by: exact(OrderBy);
    /// Sets the direction of the list.
    order_direction: exact(Direction);
    /// Takes the item at the cursor into the page.
    include_cursor: flag(true);
}

impl From<&Cursor> for Cursor {
    fn from(cursor: &Cursor) -> Self {
        cursor.clone()
    }
}
