//! What the server tells of commits.

use store::Table;
use tokio_postgres::{Error, Row};

use crate::failure::Failure;
use crate::heads::{Counts, Head};
use crate::keys;
use crate::tables::Tables;

/// Heads with more commits than were known, and those commits.
pub(crate) struct Told {
    pub(crate) counts: Counts,
    pub(crate) news: Vec<News>,
}

impl Told {
    /// Reads the rows of [`NEWS`](crate::schema::NEWS).
    pub(crate) fn read(tables: &Tables, rows: &[Row]) -> Result<Self, Failure> {
        Self::try_read(tables, rows).map_err(|error| Failure::of("read commits", error))
    }

    fn try_read(tables: &Tables, rows: &[Row]) -> Result<Self, Error> {
        let (mut counts, mut news) = (Vec::new(), Vec::new());
        for row in rows {
            let head = row.try_get(0)?;
            counts.push((head, row.try_get(1)?));
            // A head without news has forgotten its commits.
            if let Some(number) = row.try_get(2)? {
                let (keys, batch) = (row.try_get(3)?, row.try_get(4)?);
                news.extend(News::read(tables, (head, number, keys), batch));
            }
        }
        Ok(Self { counts: Counts::read(&counts), news })
    }
}

/// A commit that has changed keys of a head.
#[derive(Debug)]
pub(crate) struct News {
    pub(crate) head: Head,
    pub(crate) number: u64,
    /// `None` if they are too many, or not known.
    pub(crate) keys: Option<Vec<(Table, Vec<u8>)>>,
    /// What identifies the changes.
    pub(crate) batch: Vec<u8>,
}

impl News {
    /// The news in a row. Returns `None` for a head that this version does not know.
    pub(crate) fn read(
        tables: &Tables,
        (head, number, keys): (i16, i64, Option<Vec<u8>>),
        batch: Vec<u8>,
    ) -> Option<Self> {
        let keys = keys.and_then(|keys| keys::decode(tables, &keys));
        Some(Self { head: Head::read(head)?, number: number.cast_unsigned(), keys, batch })
    }
}

/// The keys that have changed between two counts. Returns `None` if they are not known.
pub(crate) fn changed_keys(
    news: &[News],
    (head, before, after): (Head, u64, u64),
) -> Option<Vec<(Table, Vec<u8>)>> {
    let mut keys = Vec::new();
    let mut last = before;
    for news in news.iter().filter(|news| news.head == head && news.number > before) {
        if news.number != last + 1 {
            return None;
        }
        last = news.number;
        keys.extend_from_slice(news.keys.as_deref()?);
    }
    (last == after).then_some(keys)
}
