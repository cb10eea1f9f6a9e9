//! Pages: how a long list is handed out in pieces.

mod compose;

use std::fmt;
use std::iter;
use std::str::FromStr;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use uuid::Uuid;

use crate::error::{Invalid, Reason};
use crate::ids::EnvironmentId;
use crate::json::shape;
use crate::query;
use crate::vocabulary::wire_enum;

/// Which piece of a list is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct PageQuery {
    /// Start behind this place.
    #[serde(deserialize_with = "after", skip_serializing_if = "Option::is_none")]
    pub after: Option<Cursor>,
    /// End just before this place. Not together with `after`.
    #[serde(deserialize_with = "before", skip_serializing_if = "Option::is_none")]
    pub before: Option<Cursor>,
    /// How many items at most: 1 to 100, 10 if nothing is said.
    #[serde(deserialize_with = "size", skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// What the list is sorted by. Which fields it can be is up to the list; if nothing is said,
    /// it is in order of creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order_by: Option<OrderBy>,
    /// The direction of the list: descending, that is newest first, if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order_direction: Option<Direction>,
    /// Whether the item at the cursor belongs to the page.
    #[serde(deserialize_with = "include_cursor")]
    pub include_cursor: bool,
}

shape! { PageQuery {
    "after": after, "before": before, "limit": limit as written, "orderBy": order_by,
    "orderDirection": order_direction, "includeCursor": include_cursor as written,
} }

wire_enum! {
    /// A field that a list can be sorted by. Where two items have the same value, the one that was
    /// created later counts as the larger one.
    OrderBy, "orderBy":
    Id = "_id",
    CreatedAt = "createdAt",
    UpdatedAt = "updatedAt",
    Key = "key",
}

wire_enum! {
    /// The direction of a list.
    Direction, "orderDirection":
    Ascending = "ASC",
    Descending = "DESC",
}

/// A page query, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// The list.
    pub list: ListId,
    /// Where the page lies in the list.
    pub place: Place,
    /// How many items at most.
    pub limit: usize,
    /// What the list is sorted by.
    pub order_by: OrderBy,
    /// The direction of the list.
    pub direction: Direction,
}

/// Where a page lies in its list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// At the start.
    Start,
    /// Behind a cursor.
    After(Bound),
    /// In front of a cursor.
    Before(Bound),
}

/// A cursor, and which side of it its own item is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Its item belongs to the page.
    Included(Cursor),
    /// Its item does not.
    Excluded(Cursor),
}

/// A piece of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Page<T> {
    /// The items, in list order.
    pub data: Vec<T>,
    /// The cursor that the next page comes after; none on the last one.
    pub next: Option<Cursor>,
    /// The cursor that the previous page comes before; none on the first one.
    pub previous: Option<Cursor>,
    /// How many items the whole list has.
    #[serde(flatten)]
    pub total: Total,
}

/// How many items a list has, as far as they are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "TotalFields", into = "TotalFields")]
pub enum Total {
    /// This many.
    Exactly(usize),
    /// More than [`Total::CAP`].
    Capped,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TotalFields {
    total_count: usize,
    total_count_capped: bool,
}

/// A place in a list: which list it is, what it is sorted by, and the value of an item. Opaque to callers, and good for as
/// long as the list is, even if the item is gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cursor {
    order_by: OrderBy,
    list: ListId,
    key: Vec<u8>,
}

/// Tells a list from others, so that a cursor of one is not taken for a place in another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListId([u8; 4]);

/// The kinds of lists that are read by pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum ListKind {
    ChannelConnections,
    ChannelEndpoints,
    Contexts,
    Layouts,
    Messages,
    Subscribers,
    Subscriptions,
    Topics,
    Translations,
    Workflows,
}

impl ListKind {
    // The number of the list in cursors, which clients keep: it never changes.
    const fn number(self) -> u8 {
        match self {
            ListKind::Subscribers => 3,
            ListKind::Workflows => 6,
            ListKind::Contexts => 10,
            ListKind::ChannelEndpoints => 14,
            ListKind::ChannelConnections => 16,
            ListKind::Topics => 19,
            ListKind::Subscriptions => 21,
            ListKind::Layouts => 25,
            ListKind::Translations => 27,
            ListKind::Messages => 38,
        }
    }
}

impl PageQuery {
    /// The size of a page if nothing is said.
    pub const DEFAULT_LIMIT: u32 = 10;
    /// The largest page.
    pub const MAX_LIMIT: u32 = 100;

    /// Checks the query of a list that can be sorted by `orders`, by the first of them if nothing
    /// is said, and says which page it asks for.
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
}

/// Checks the size of a page.
pub(crate) fn limit(asked: Option<u32>, default: u32, max: u32) -> Result<usize, Invalid> {
    let limit = asked.unwrap_or(default);
    if !(1..=max).contains(&limit) {
        return Err(Invalid::new("limit", Reason::OutOfRange { min: 1, max: max.into() }));
    }
    Ok(limit as usize)
}

impl Direction {
    /// The other way round.
    #[must_use]
    pub fn reversed(self) -> Self {
        match self {
            Direction::Ascending => Direction::Descending,
            Direction::Descending => Direction::Ascending,
        }
    }
}

impl<T> Page<T> {
    /// Returns a page with the cursors of its ends, where the list goes on behind them.
    pub fn new(
        data: Vec<T>,
        (previous, next): (Option<Cursor>, Option<Cursor>),
        total: Total,
    ) -> Self {
        Self { data, next, previous, total }
    }
}

impl Total {
    /// The number up to which items are counted.
    pub const CAP: usize = 50_000;

    /// The total of a list of which `counted` items were seen, counting to one past the cap.
    pub fn of(counted: usize) -> Self {
        if counted > Self::CAP { Total::Capped } else { Total::Exactly(counted) }
    }
}

impl From<TotalFields> for Total {
    fn from(fields: TotalFields) -> Self {
        if fields.total_count_capped { Total::Capped } else { Total::Exactly(fields.total_count) }
    }
}

impl From<Total> for TotalFields {
    fn from(total: Total) -> Self {
        match total {
            Total::Exactly(total_count) => TotalFields { total_count, total_count_capped: false },
            Total::Capped => TotalFields { total_count: Total::CAP, total_count_capped: true },
        }
    }
}

impl OrderBy {
    /// How many of the bytes that `sorted` starts with are the value of this field and the id of
    /// the item; nothing, if it does not start with them.
    pub fn sort_len(self, sorted: &[u8]) -> Option<usize> {
        const TIME: usize = size_of::<i64>();
        const ID: usize = size_of::<uuid::Bytes>();
        let len = match self {
            OrderBy::Id => ID,
            OrderBy::CreatedAt | OrderBy::UpdatedAt => TIME + ID,
            // A key is a text, which ends in NUL, and there is one item of it.
            OrderBy::Key => sorted.iter().position(|byte| *byte == 0)? + 1,
        };
        (len <= sorted.len()).then_some(len)
    }

    /// A number for it that stays the same, in cursors and on disk.
    pub const fn tag(self) -> u8 {
        match self {
            OrderBy::Id => 0,
            OrderBy::CreatedAt => 1,
            OrderBy::UpdatedAt => 2,
            OrderBy::Key => 3,
        }
    }
}

impl ListId {
    /// The list of that kind in an environment.
    pub fn new(environment: EnvironmentId, kind: ListKind) -> Self {
        // The end of an id is random.
        let [.., first, second, third] = Uuid::from(environment).into_bytes();
        Self([first, second, third, kind.number()])
    }
}

impl Cursor {
    /// The place of the item that sorts as `key` in `list`, as it is sorted by `order_by`.
    pub fn at(list: ListId, order_by: OrderBy, key: &[u8]) -> Self {
        Self { order_by, list, key: key.to_vec() }
    }

    /// The list that it is a place in.
    pub const fn list(&self) -> ListId {
        self.list
    }

    /// What the item sorts as.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    fn foreign() -> Reason {
        Reason::malformed("a cursor of this list")
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (tag, key) = bytes.split_first()?;
        let order_by = OrderBy::ALL.iter().copied().find(|order_by| order_by.tag() == *tag)?;
        let (list, key) = key.split_first_chunk()?;
        (order_by.sort_len(key)? == key.len()).then(|| Self::at(ListId(*list), order_by, key))
    }
}

// Hexadecimal digits need no escaping in a URL, and keep the order of the bytes.
impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = iter::once(self.order_by.tag()).chain(self.list.0);
        let mut bytes = head.chain(self.key.iter().copied());
        bytes.try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Cursor {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let digit = |digit: &u8| char::from(*digit).to_digit(16);
        let byte = |pair: &[u8]| match pair {
            [high, low] => u8::try_from(digit(high)? << 4 | digit(low)?).ok(),
            _ => None,
        };
        let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(byte).collect();
        let cursor = bytes.and_then(|bytes| Self::decode(&bytes));
        cursor.ok_or_else(|| Invalid::new("cursor", Self::foreign()))
    }
}

// Serde loses the way to these where a query is a part of another one, so they name themselves.
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

impl TryFrom<String> for Cursor {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        text.parse()
    }
}

impl From<Cursor> for String {
    fn from(cursor: Cursor) -> String {
        cursor.to_string()
    }
}

#[cfg(test)]
mod tests;
