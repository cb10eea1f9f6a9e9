//! Scans of entries, a page at a time.

use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::Arc;

use foldhash::HashMap;
use store::{KeyRange, Order, Result, Visit};
use tokio_postgres::{Error, Row};

use crate::failure::Failure;

/// Number of entries that a scan asks for at first, unless its limit is a small one.
const FIRST_PAGE: usize = 64;

/// Largest limit whose entries are asked for at once.
const SMALL_LIMIT: usize = 256;

const LARGEST_PAGE: usize = 4_096;

/// Size of the entries of a page, in bytes. It is somewhat more than what a transaction of a copy takes, so
/// that such a transaction needs one page.
const PAGE_BYTES: usize = (1 << 20) + (1 << 17);

/// Scans a range by the rows of its pages, until `visit` breaks. `fitting` is the number of entries of a page,
/// as an earlier scan of the table has returned it. Returns that number if there are entries.
pub(crate) fn scan(
    page: impl Fn(&Span, usize) -> Result<Vec<Row>>,
    (range, order, limit): (&KeyRange, Order, Option<usize>),
    fitting: Option<usize>,
    visit: &mut Visit<'_>,
) -> Result<Option<usize>> {
    let mut span = Span::of(range);
    let mut left = limit.unwrap_or(usize::MAX);
    let mut size = first_page(limit, fitting);
    let mut fitting = None;
    while left > 0 && !span.is_empty() {
        let rows = page(&span, size.min(left))?;
        let (mut last, mut bytes) = (None, 0);
        for row in &rows {
            bytes += row_size(row).map_err(unreadable)?;
        }
        fitting = (rows.len() * PAGE_BYTES).checked_div(bytes).or(fitting);
        for row in &rows {
            let key = key_of(row).map_err(unreadable)?;
            let value = row.try_get::<_, &[u8]>(2).map_err(unreadable)?;
            if visit(&key, value).is_break() {
                return Ok(fitting);
            }
            last = Some(key);
        }
        let Some(last) = last.filter(|_| rows.len() >= size.min(left)) else { break };
        left -= rows.len().min(left);
        size = next_page(size, limit, fitting);
        span.go_behind(last, order);
    }
    Ok(fitting)
}

fn first_page(limit: Option<usize>, fitting: Option<usize>) -> usize {
    match limit {
        Some(limit @ ..=SMALL_LIMIT) => limit,
        Some(_) => fitting.unwrap_or(FIRST_PAGE).clamp(1, LARGEST_PAGE),
        None => fitting.unwrap_or(FIRST_PAGE).clamp(1, FIRST_PAGE),
    }
}

/// A scan without a limit may end at any entry, and asks for four times as many each further time.
fn next_page(size: usize, limit: Option<usize>, fitting: Option<usize>) -> usize {
    let most = fitting.unwrap_or(LARGEST_PAGE).clamp(1, LARGEST_PAGE);
    if limit.is_some() { most } else { size.saturating_mul(4).min(most) }
}

fn row_size(row: &Row) -> Result<usize, Error> {
    let value: &[u8] = row.try_get(2)?;
    Ok(key_of(row)?.len() + value.len())
}

/// The entries in rows, by their keys.
pub(crate) fn entries_of(rows: &[Row]) -> Result<HashMap<Vec<u8>, Arc<[u8]>>> {
    let entry = |row: &Row| Ok((key_of(row)?, Arc::from(row.try_get::<_, &[u8]>(2)?)));
    rows.iter().map(entry).collect::<Result<_, Error>>().map_err(unreadable)
}

/// The failure to read a row.
pub(crate) fn unreadable(error: Error) -> store::Error {
    Failure::of("read entries", error).into()
}

/// The key in a row of an entry.
pub(crate) fn key_of(row: &Row) -> Result<Vec<u8>, Error> {
    let (head, rest): (&[u8], &[u8]) = (row.try_get(0)?, row.try_get(1)?);
    Ok([head, rest].concat())
}

/// The keys from `start` on, and before `end` if there is one.
#[derive(Clone)]
pub(crate) struct Span {
    pub(crate) start: Vec<u8>,
    pub(crate) end: Option<Vec<u8>>,
}

impl Span {
    fn of((start, end): &KeyRange) -> Self {
        Self {
            start: match start {
                Unbounded => Vec::new(),
                Included(start) => start.clone(),
                Excluded(start) => next(start.clone()),
            },
            end: match end {
                Unbounded => None,
                Excluded(end) => Some(end.clone()),
                Included(end) => Some(next(end.clone())),
            },
        }
    }

    /// Returns `true` if a key lies in the span.
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        *self.start <= *key && self.end.as_ref().is_none_or(|end| *key < **end)
    }

    /// Number of bytes of its ends.
    pub(crate) fn size(&self) -> usize {
        self.start.len() + self.end.as_ref().map_or(0, Vec::len)
    }

    fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| *end <= self.start)
    }

    fn go_behind(&mut self, last: Vec<u8>, order: Order) {
        match order {
            Order::Ascending => self.start = next(last),
            Order::Descending => self.end = Some(last),
        }
    }
}

/// The smallest key behind `key`.
fn next(mut key: Vec<u8>) -> Vec<u8> {
    key.push(0);
    key
}
