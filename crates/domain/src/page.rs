//! Pages of lists.

mod compose;
mod cursor;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::error::{Invalid, Reason};
use crate::json::{is_default, shape};
use crate::query;
use crate::vocabulary::wire_enum;

pub use cursor::Cursor;
#[doc(hidden)]
pub use cursor::{ListId, ListKind};

/// Page of a list in a query.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct PageQuery {
    /// Cursor in front of the page.
    #[serde(deserialize_with = "after", skip_serializing_if = "Option::is_none")]
    pub after: Option<Cursor>,
    /// Cursor behind the page. Excludes `after`.
    #[serde(deserialize_with = "before", skip_serializing_if = "Option::is_none")]
    pub before: Option<Cursor>,
    /// Maximum number of items: 1 to 100, 10 by default.
    #[serde(deserialize_with = "size", skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Field to sort by. Each list has its own fields. The default is the order of creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order_by: Option<OrderBy>,
    /// Direction of the list. The default is descending: newest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order_direction: Option<Direction>,
    /// `true` if the item at the cursor belongs to the page.
    #[serde(deserialize_with = "include_cursor")]
    pub include_cursor: bool,
}

shape! { PageQuery {
    "after": after, "before": before, "limit": limit as written, "orderBy": order_by,
    "orderDirection": order_direction, "includeCursor": include_cursor as written,
} }

wire_enum! {
    /// Field to sort by. Of two items with equal values, the later created one is larger.
    OrderBy, "orderBy":
    Id = "_id",
    CreatedAt = "createdAt",
    UpdatedAt = "updatedAt",
    Key = "key",
}

wire_enum! {
    /// Direction of a list.
    Direction, "orderDirection":
    Ascending = "ASC",
    Descending = "DESC",
}

/// Checked page query.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// List.
    pub list: ListId,
    /// Place of the page.
    pub place: Place,
    /// Maximum number of items.
    pub limit: usize,
    /// Field to sort by.
    pub order_by: OrderBy,
    /// Direction of the list.
    pub direction: Direction,
}

/// Place of a page in its list.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Start of the list.
    Start,
    /// Behind a cursor.
    After(Bound),
    /// In front of a cursor.
    Before(Bound),
}

/// Cursor, with or without its item.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The item belongs to the page.
    Included(Cursor),
    /// The item does not belong to the page.
    Excluded(Cursor),
}

/// Page of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Page<T> {
    /// Items, in the order of the list.
    pub data: Vec<T>,
    /// Cursor for `after` of the next page. `None` on the last page.
    pub next: Option<Cursor>,
    /// Cursor for `before` of the previous page. `None` on the first page.
    pub previous: Option<Cursor>,
    /// Number of items in the whole list.
    #[serde(flatten)]
    pub total: Total,
    /// Number of items of this page that are left out, because their records cannot be read. The
    /// engine's `check` finds them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unreadable: usize,
}

/// Page of a list that is read in one direction, and has no total.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ForwardPage<T, C> {
    /// Items, in the order of the list.
    pub data: Vec<T>,
    /// Cursor of the next page. `None` on the last page.
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    pub next: Option<C>,
    /// Number of items of this page that are left out, because their records cannot be read. The
    /// engine's `check` finds them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unreadable: usize,
}

/// Number of items in a list, counted up to a cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "TotalFields", into = "TotalFields")]
pub enum Total {
    /// Exact number.
    Exactly(usize),
    /// This number or more: a filtered list is too long to be counted.
    AtLeast(usize),
    /// More than [`Total::CAP`].
    Capped,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TotalFields {
    total_count: usize,
    total_count_capped: bool,
}

impl PageQuery {
    /// Default size of a page.
    pub const DEFAULT_LIMIT: u32 = 10;
    /// Largest page.
    pub const MAX_LIMIT: u32 = 100;

    /// Checks the query of a list that can be sorted by `orders`. The first of them is the default.
    #[doc(hidden)]
    pub fn check(&self, list: ListId, orders: &[OrderBy]) -> Result<PageRequest, Invalid> {
        let limit = limit(self.limit, Self::DEFAULT_LIMIT, Self::MAX_LIMIT)?;
        let order_by = self.order_by.or(orders.first().copied()).unwrap_or(OrderBy::Id);
        if !orders.contains(&order_by) {
            let words = orders.iter().map(ToString::to_string).collect();
            return Err(Invalid::new("orderBy", Reason::NotOneOf { words }));
        }
        let side = if self.include_cursor { Bound::Included } else { Bound::Excluded };
        let bound = |cursor: &Cursor| side(cursor.clone());
        let place = match (&self.after, &self.before) {
            (Some(_), Some(_)) => {
                return Err(Invalid::new("before", Reason::Excludes { other: "after".into() }));
            }
            (Some(after), None) => Place::After(bound(after)),
            (None, Some(before)) => Place::Before(bound(before)),
            (None, None) => Place::Start,
        };
        for (field, cursor) in [("after", &self.after), ("before", &self.before)] {
            if cursor
                .as_ref()
                .is_some_and(|cursor| (cursor.list, cursor.order_by) != (list, order_by))
            {
                return Err(Invalid::new(field, Cursor::foreign()));
            }
        }
        let direction = self.order_direction.unwrap_or(Direction::Descending);
        Ok(PageRequest { list, place, limit, order_by, direction })
    }

    /// Refuses each part that is given, for a call without pages.
    #[doc(hidden)]
    pub fn check_absent(&self) -> Result<(), Invalid> {
        let Self { after, before, limit, order_by, order_direction, include_cursor } = self;
        absent("after", after.is_some())?;
        absent("before", before.is_some())?;
        absent("limit", limit.is_some())?;
        absent("orderBy", order_by.is_some())?;
        absent("orderDirection", order_direction.is_some())?;
        absent("includeCursor", *include_cursor)
    }
}

/// Refuses `field` in the query of a call without pages.
pub(crate) fn absent(field: &str, is_given: bool) -> Result<(), Invalid> {
    if is_given { Err(Invalid::new(field, Reason::NoPages)) } else { Ok(()) }
}

/// Checks the size of a page.
pub(crate) fn limit(asked: Option<u32>, default: u32, max: u32) -> Result<usize, Invalid> {
    let limit = asked.unwrap_or(default);
    if !(1..=max).contains(&limit) {
        return Err(Invalid::new("limit", Reason::OutOfRange { min: 1, max: max.into() }));
    }
    Ok(limit as usize)
}

impl Bound {
    /// Returns the cursor.
    pub const fn cursor(&self) -> &Cursor {
        match self {
            Bound::Included(cursor) | Bound::Excluded(cursor) => cursor,
        }
    }
}

impl Direction {
    /// Returns the opposite direction.
    #[doc(hidden)]
    #[must_use]
    pub fn reversed(self) -> Self {
        match self {
            Direction::Ascending => Direction::Descending,
            Direction::Descending => Direction::Ascending,
        }
    }
}

impl<T> Page<T> {
    /// Returns a page. A cursor is set where the list continues.
    #[doc(hidden)]
    pub fn new(
        data: Vec<T>,
        (previous, next): (Option<Cursor>, Option<Cursor>),
        total: Total,
    ) -> Self {
        Self { data, next, previous, total, unreadable: 0 }
    }

    /// Returns the page with the number of items that are left out of it.
    #[doc(hidden)]
    #[must_use]
    pub fn without(self, unreadable: usize) -> Self {
        Self { unreadable, ..self }
    }
}

impl<T, C> ForwardPage<T, C> {
    /// Returns a page. A cursor is set where the list continues.
    #[doc(hidden)]
    pub const fn new(data: Vec<T>, next: Option<C>) -> Self {
        Self { data, next, unreadable: 0 }
    }

    /// Returns the page with the number of items that are left out of it.
    #[doc(hidden)]
    #[must_use]
    pub fn without(self, unreadable: usize) -> Self {
        Self { unreadable, ..self }
    }
}

impl Total {
    /// Number up to which items are counted.
    pub const CAP: usize = 50_000;

    /// Returns the number of items, or a lower bound, if the total [is not exact](Self::is_exact).
    ///
    /// ```
    /// # extern crate tidings_domain as tidings;
    /// use tidings::page::Total;
    ///
    /// assert_eq!((Total::Exactly(7).number(), Total::Exactly(7).is_exact()), (7, true));
    /// assert_eq!((Total::Capped.number(), Total::Capped.is_exact()), (50_000, false));
    /// ```
    pub const fn number(self) -> usize {
        match self {
            Total::Exactly(number) | Total::AtLeast(number) => number,
            Total::Capped => Self::CAP,
        }
    }

    /// Returns `true` if [`number`](Self::number) is that of the items.
    pub const fn is_exact(self) -> bool {
        matches!(self, Total::Exactly(_))
    }

    /// Returns the total of a list with `counted` items, counted to one past the cap.
    #[doc(hidden)]
    pub fn of(counted: usize) -> Self {
        if counted > Self::CAP { Total::Capped } else { Total::Exactly(counted) }
    }
}

impl From<TotalFields> for Total {
    fn from(fields: TotalFields) -> Self {
        match (fields.total_count_capped, fields.total_count) {
            (true, Total::CAP) => Total::Capped,
            (true, count) => Total::AtLeast(count),
            (false, count) => Total::Exactly(count),
        }
    }
}

impl From<Total> for TotalFields {
    fn from(total: Total) -> Self {
        TotalFields { total_count: total.number(), total_count_capped: !total.is_exact() }
    }
}

impl OrderBy {
    /// Returns the length of the sort value and the id at the start of `sorted`, in bytes. Returns
    /// `None` if `sorted` does not start with them.
    #[doc(hidden)]
    pub fn sort_len(self, sorted: &[u8]) -> Option<usize> {
        const TIME: usize = size_of::<i64>();
        // An id, or the sort time and the place of a message.
        const ID: usize = size_of::<uuid::Bytes>();
        let len = match self {
            OrderBy::Id => ID,
            OrderBy::CreatedAt | OrderBy::UpdatedAt => TIME + ID,
            // A key ends in NUL, and belongs to one item only.
            OrderBy::Key => sorted.iter().position(|byte| *byte == 0)? + 1,
        };
        (len <= sorted.len()).then_some(len)
    }

    /// Returns the stable number of the field in cursors and on disk.
    #[doc(hidden)]
    pub const fn tag(self) -> u8 {
        match self {
            OrderBy::Id => 0,
            OrderBy::CreatedAt => 1,
            OrderBy::UpdatedAt => 2,
            OrderBy::Key => 3,
        }
    }
}

// Serde loses the path of flattened fields, so these refusals contain their own.
fn size<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    let refused = || Invalid::new("limit", Reason::malformed("a whole number"));
    query::optional(from).map_err(|_| D::Error::custom(refused()))
}

fn include_cursor<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    let refused = || Invalid::new("includeCursor", Reason::malformed("`true` or `false`"));
    query::value(from).map_err(|_| D::Error::custom(refused()))
}

fn after<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Cursor>, D::Error> {
    cursor("after", from)
}

fn before<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Cursor>, D::Error> {
    cursor("before", from)
}

fn cursor<'de, D: Deserializer<'de>>(field: &str, from: D) -> Result<Option<Cursor>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    let cursor = text.map(|text| text.parse().map_err(|invalid: Invalid| invalid.named(field)));
    cursor.transpose().map_err(D::Error::custom)
}

#[cfg(test)]
mod tests;
