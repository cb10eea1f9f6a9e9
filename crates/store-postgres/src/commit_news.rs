//! News of commits: what a server answers to the question for them.

use std::time::SystemTime;

use store::Table;
use tokio_postgres::{Error, Row};

use crate::failure::Failure;
use crate::heads::{Counts, Head};
use crate::keys;
use crate::tables::Tables;

/// The heads with other counts than were known, and their later commits.
#[derive(Default)]
pub(crate) struct CommitNews {
    /// When the server was started. `None` if there is no news.
    pub(crate) start: Option<SystemTime>,
    pub(crate) counts: Vec<(Head, u64)>,
    pub(crate) commits: Vec<HeadCommit>,
}

impl CommitNews {
    /// Reads the rows of [`NEWS`](crate::schema::NEWS).
    pub(crate) fn read(tables: &Tables, rows: &[Row]) -> Result<Self, Failure> {
        Self::try_read(tables, rows).map_err(|error| Failure::of("read commits", error))
    }

    fn try_read(tables: &Tables, rows: &[Row]) -> Result<Self, Error> {
        let mut news = Self::read_counts(rows)?;
        for row in rows {
            // A head without a commit in its row has forgotten its commits.
            if let Some(number) = row.try_get(3)? {
                let (keys, id) = (row.try_get(4)?, row.try_get(5)?);
                news.commits.extend(HeadCommit::read(tables, (row.try_get(0)?, number, keys), id));
            }
        }
        Ok(news)
    }

    /// Reads the rows of [`LOCK`](crate::schema::LOCK).
    pub(crate) fn of_locked(rows: &[Row]) -> Result<Self, Failure> {
        Self::read_counts(rows).map_err(|error| Failure::of("lock an environment", error))
    }

    fn read_counts(rows: &[Row]) -> Result<Self, Error> {
        let mut news = Self::default();
        for row in rows {
            news.start = Some(row.try_get(2)?);
            let (head, count) = (row.try_get(0)?, row.try_get::<_, i64>(1)?);
            // There may be heads that this version does not know.
            news.counts.extend(Head::read(head).map(|head| (head, count.cast_unsigned())));
        }
        Ok(news)
    }

    /// Returns `true` if the server has all commits that were known, as far as it can tell.
    pub(crate) fn goes_on_from(&self, known: &Counts) -> bool {
        self.start.is_none_or(|start| start == known.era.start)
            && self.counts.iter().all(|(head, count)| known.get(*head) <= Some(*count))
    }
}

/// A commit that has changed keys of a head.
#[derive(Debug)]
pub(crate) struct HeadCommit {
    pub(crate) head: Head,
    pub(crate) number: u64,
    /// `None` if they are too many, or not known.
    pub(crate) keys: Option<Vec<(Table, Vec<u8>)>>,
    /// The id of the commit.
    pub(crate) id: Vec<u8>,
}

impl HeadCommit {
    /// The commit in a row. Returns `None` for a head that this version does not know.
    pub(crate) fn read(
        tables: &Tables,
        (head, number, keys): (i16, i64, Option<Vec<u8>>),
        id: Vec<u8>,
    ) -> Option<Self> {
        let keys = keys.and_then(|keys| keys::decode(tables, &keys));
        Some(Self { head: Head::read(head)?, number: number.cast_unsigned(), keys, id })
    }
}

/// The keys that have changed between two counts. Returns `None` if they are not known.
pub(crate) fn changed_keys(
    commits: &[HeadCommit],
    (head, before, after): (Head, u64, u64),
) -> Option<Vec<(Table, Vec<u8>)>> {
    let mut keys = Vec::new();
    let mut last = before;
    let later = |commit: &&HeadCommit| commit.head == head && commit.number > before;
    for commit in commits.iter().filter(later) {
        if commit.number != last + 1 {
            return None;
        }
        last = commit.number;
        keys.extend_from_slice(commit.keys.as_deref()?);
    }
    (last == after).then_some(keys)
}
