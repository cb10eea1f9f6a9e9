//! Pages: how a long list is handed out in pieces.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Invalid, Reason};
use crate::vocabulary::vocabulary;

/// Which piece of a list is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PageQuery {
    /// Start behind this place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Cursor>,
    /// End just before this place. Not together with `after`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Cursor>,
    /// How many items at most: 1 to 100, 10 if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// The order of the list: newest first, if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order_direction: Option<Direction>,
    /// Whether the item at the cursor belongs to the page.
    pub include_cursor: bool,
}

vocabulary! {
    /// The direction of a list.
    Direction, "orderDirection":
    Ascending = "ASC",
    Descending = "DESC",
}

/// A page query, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// Where the page lies in the list.
    pub place: Place,
    /// How many items at most.
    pub limit: usize,
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

/// A place in a list: the sort key of an item. Opaque to callers, and good for as long as the
/// list is, even if the item is gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cursor(Vec<u8>);

impl PageQuery {
    /// The size of a page if nothing is said.
    pub const DEFAULT_LIMIT: u32 = 10;
    /// The largest page.
    pub const MAX_LIMIT: u32 = 100;

    /// Checks the query and says which page it asks for.
    pub fn check(&self) -> Result<PageRequest, Invalid> {
        let limit = limit(self.limit, Self::DEFAULT_LIMIT, Self::MAX_LIMIT)?;
        for (field, cursor) in [("after", &self.after), ("before", &self.before)] {
            if cursor.as_ref().is_some_and(|cursor| cursor.key().len() != Cursor::LEN) {
                let expected = "a cursor of this list";
                return Err(Invalid::new(field, Reason::malformed(expected)));
            }
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
        let direction = self.order_direction.unwrap_or(Direction::Descending);
        Ok(PageRequest { place, limit, direction })
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

impl Cursor {
    /// How many bytes an item is sorted by: those of its id.
    const LEN: usize = 16;

    /// The place of the item that sorts as `key`.
    pub fn at(key: &[u8]) -> Self {
        Self(key.to_vec())
    }

    /// What the item sorts as.
    pub fn key(&self) -> &[u8] {
        &self.0
    }
}

// Hexadecimal digits need no escaping in a URL, and keep the order of the bytes.
impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
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
        bytes.map(Self).ok_or_else(|| {
            Invalid::new("cursor", Reason::malformed("a cursor of this list"))
        })
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_page_has_1_to_100_items() {
        let limit = |limit| PageQuery { limit, ..PageQuery::default() }.check().map(|ok| ok.limit);
        assert_eq!([None, Some(1), Some(100)].map(limit), [Ok(10), Ok(1), Ok(100)]);
        for bad in [0, 101, u32::MAX] {
            let error = limit(Some(bad)).unwrap_err();
            assert_eq!(error.to_string(), "`limit` must be between 1 and 100");
        }
    }

    #[test]
    fn a_page_lies_on_one_side_of_one_cursor() {
        let cursor = Some(Cursor::at(&[7; 16]));
        let both = PageQuery { after: cursor.clone(), before: cursor, ..PageQuery::default() };
        let error = both.check().unwrap_err();
        assert_eq!(error.to_string(), "`before` must not be given together with `after`");
    }

    #[test]
    fn a_cursor_is_read_as_it_is_written() {
        let cursor = Cursor::at(&[0, 1, 0x7f, 0xff]);
        assert_eq!(cursor.to_string(), "00017fff");
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
        for bad in ["0", "0g", "ü0", "é"] {
            assert!(bad.parse::<Cursor>().is_err(), "{bad}");
        }
    }

    #[test]
    fn totals_are_counted_up_to_a_cap() {
        let json = |counted| serde_json::to_string(&Total::of(counted)).unwrap();
        assert_eq!(json(50_000), r#"{"totalCount":50000,"totalCountCapped":false}"#);
        assert_eq!(json(50_001), r#"{"totalCount":50000,"totalCountCapped":true}"#);
    }

    /// One row per query: where the page lies, whether the item at the cursor belongs to it.
    #[test]
    fn a_page_lies_behind_or_before_a_cursor() {
        let cursor = || Cursor::at(&[7; Cursor::LEN]);
        let query = |after: bool, before: bool, include_cursor| PageQuery {
            after: after.then(cursor),
            before: before.then(cursor),
            include_cursor,
            ..PageQuery::default()
        };
        for (query, place) in [
            (query(false, false, false), Place::Start),
            (query(false, false, true), Place::Start),
            (query(true, false, false), Place::After(Bound::Excluded(cursor()))),
            (query(true, false, true), Place::After(Bound::Included(cursor()))),
            (query(false, true, false), Place::Before(Bound::Excluded(cursor()))),
            (query(false, true, true), Place::Before(Bound::Included(cursor()))),
        ] {
            let direction = Direction::Descending;
            assert_eq!(query.check(), Ok(PageRequest { place, limit: 10, direction }));
        }
        let order_direction = Some(Direction::Ascending);
        let ascending = PageQuery { order_direction, ..PageQuery::default() };
        assert_eq!(ascending.check().unwrap().direction, Direction::Ascending);
    }

    #[test]
    fn a_cursor_of_another_list_is_refused() {
        for length in [0, 15, 17] {
            let foreign = || Some(Cursor::at(&vec![7; length]));
            for (query, field) in [
                (PageQuery { after: foreign(), ..PageQuery::default() }, "after"),
                (PageQuery { before: foreign(), ..PageQuery::default() }, "before"),
            ] {
                let expected = "a cursor of this list";
                let error = Invalid::new(field, Reason::malformed(expected));
                assert_eq!(query.check(), Err(error), "{length}");
            }
        }
    }

    #[test]
    fn every_direction_has_another() {
        for direction in Direction::ALL {
            assert_ne!(direction.reversed(), *direction);
            assert_eq!(direction.reversed().reversed(), *direction);
        }
    }

    proptest! {
        #[test]
        fn cursors_sort_as_their_keys_do(
            keys in prop::array::uniform2(prop::array::uniform16(any::<u8>())),
        ) {
            let [one, other] = keys.map(|key| Cursor::at(&key));
            prop_assert_eq!(one.to_string().cmp(&other.to_string()), keys[0].cmp(&keys[1]));
            prop_assert_eq!(one.to_string().parse(), Ok(one));
        }

        #[test]
        fn any_text_is_taken_for_a_cursor_without_harm(text in "\\PC*|[0-9a-fA-F]*") {
            if let Ok(cursor) = text.parse::<Cursor>() {
                prop_assert_eq!(cursor.to_string(), text.to_lowercase());
            }
        }

        #[test]
        fn a_total_is_read_as_it_is_written(counted in 0_usize..60_000) {
            let total = Total::of(counted);
            let json = serde_json::to_string(&total).unwrap();
            prop_assert_eq!(serde_json::from_str::<Total>(&json).unwrap(), total);
        }
    }
}
