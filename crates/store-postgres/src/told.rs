//! What the server tells of commits.

use tokio_postgres::{Error, Row};

use crate::cache::News;
use crate::failure::Failure;
use crate::heads::Counts;
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
