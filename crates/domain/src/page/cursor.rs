//! Cursors: places in lists.

use std::fmt;
use std::iter;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Direction, OrderBy};
use crate::error::{Invalid, Reason};
use crate::hex;
use crate::ids::EnvironmentId;

/// Place in a list: the list, its order, and the sort value of an item. Opaque to callers. It stays
/// valid after the item is deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cursor {
    pub(super) order_by: OrderBy,
    pub(super) list: ListId,
    key: Vec<u8>,
}

/// Identity of a list. A cursor of another list is refused.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListId(pub(super) [u8; 4]);

/// Kinds of paged lists.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListKind {
    ChannelConnections,
    ChannelEndpoints,
    Contexts,
    Layouts,
    Messages,
    Subscribers,
    Subscriptions,
    Suppressions,
    Topics,
    Translations,
    Workflows,
}

impl ListKind {
    // Number of the kind in cursors. It never changes, since clients keep cursors.
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
            ListKind::Suppressions => 44,
        }
    }
}

impl ListId {
    /// Returns the list of this kind in an environment.
    pub fn new(environment: EnvironmentId, kind: ListKind) -> Self {
        // The last bytes of an id are random.
        let [.., first, second, third] = Uuid::from(environment).into_bytes();
        Self([first, second, third, kind.number()])
    }

    /// Returns the part of the list that belongs to `owner`, such as the messages of a subscriber.
    #[must_use]
    pub fn within(self, owner: impl Into<Uuid>) -> Self {
        let Self([first, second, third, kind]) = self;
        let [.., one, two, three] = owner.into().into_bytes();
        Self([first ^ one, second ^ two, third ^ three, kind])
    }
}

impl Cursor {
    /// Returns the place of the item with the sort key `key` in `list`, sorted by `order_by`.
    #[doc(hidden)]
    pub fn at(list: ListId, order_by: OrderBy, key: &[u8]) -> Self {
        Self { order_by, list, key: key.to_vec() }
    }

    /// Returns the list of the cursor.
    #[doc(hidden)]
    pub const fn list(&self) -> ListId {
        self.list
    }

    /// Returns the sort key of the item.
    #[doc(hidden)]
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Returns the place next to this one, as seen in `direction` of ascending sort keys. An item at this place
    /// is in front of it. Returns the same place if it is the last one.
    #[doc(hidden)]
    #[must_use]
    pub fn next_in(&self, direction: Direction) -> Self {
        let (last, first) = match direction {
            Direction::Ascending => (u8::MAX, 0),
            Direction::Descending => (0, u8::MAX),
        };
        let mut next = self.clone();
        let Some(digit) = next.key.iter().rposition(|byte| *byte != last) else { return next };
        for (at, byte) in next.key.iter_mut().enumerate().skip(digit) {
            *byte = match direction {
                _ if at > digit => first,
                Direction::Ascending => *byte + 1,
                Direction::Descending => *byte - 1,
            };
        }
        next
    }

    pub(super) fn foreign() -> Reason {
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
        hex::write(head.chain(self.key.iter().copied()), f)
    }
}

impl FromStr for Cursor {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let bytes: Option<Vec<u8>> = hex::read(text).collect();
        let cursor = bytes.and_then(|bytes| Self::decode(&bytes));
        cursor.ok_or_else(|| Invalid::new("cursor", Self::foreign()))
    }
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
