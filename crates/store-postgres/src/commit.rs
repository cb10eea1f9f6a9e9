//! The commit of a transaction.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

use futures_util::future::try_join4;
use tokio_postgres::Error;
use tokio_postgres::types::ToSql;

use crate::failure::Failure;
use crate::hidden::query;
use crate::rows::{Note, Rows};
use crate::schema;
use crate::server::Client;

/// Number of coming commits that look for each of their keys, and take none for new.
#[derive(Default)]
pub(crate) struct Caution(AtomicU32);

impl Caution {
    /// Number of such commits behind one that has taken a key for new that was there.
    const COMMITS: u32 = 64;

    pub(crate) fn raise(&self) {
        self.0.store(Self::COMMITS, Ordering::Relaxed);
    }

    /// Returns `true` if this commit is one of them.
    pub(crate) fn take(&self) -> bool {
        let one_less = |left: u32| left.checked_sub(1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok()
    }
}

/// Identity of a commit. It begins with the id of its store, which leaves out its own commits when it asks for
/// those of other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CommitId([u8; 16]);

impl CommitId {
    /// The id of commits without changes.
    pub(crate) const NOTHING: Self = Self([0; 16]);

    /// Returns a new id of a transaction of the host, which is of no store.
    pub(crate) fn new() -> Result<Self, Failure> {
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(|error| Failure::refused("identify a commit", error))?;
        Ok(Self(id))
    }

    /// Returns a new id of a store.
    pub(crate) fn of(store: [u8; 8]) -> Result<Self, Failure> {
        let Self(mut id) = Self::new()?;
        id[..8].copy_from_slice(&store);
        Ok(Self(id))
    }

    /// The bytes of the id, as in the relation of commits.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// What a commit writes.
pub(crate) struct Commit {
    pub(crate) rows: Rows,
    pub(crate) note: Note,
    pub(crate) id: CommitId,
    /// When the server was started that has the state before it.
    pub(crate) start: SystemTime,
    /// Number of commits of a head that other processes can look back.
    pub(crate) kept: i64,
}

impl Commit {
    /// The number of the only head.
    pub(crate) fn only_head(&self) -> Option<i16> {
        let [head] = self.note.heads[..] else { return None };
        Some(head)
    }

    /// Returns `true` if the notes of old commits are removed at the same time.
    pub(crate) fn is_pruned(&self) -> bool {
        self.note.is_followed_by_pruning(self.kept)
    }

    /// Makes the changes durable, in one round trip. `begin` begins the transaction, if it has not begun.
    /// Returns `false` if another one has changed its heads meanwhile. Then nothing is changed.
    pub(crate) async fn make(
        &self,
        client: &Client,
        begin: Option<&'static str>,
    ) -> Result<bool, Error> {
        let Self { rows, note, id, start, kept } = self;
        let writing = client.prepare_cached(schema::WRITE).await?;
        let pruning = client.prepare_cached(schema::PRUNE).await?;
        let id = id.bytes();
        let is_pruned = self.is_pruned();
        // A statement is a transaction, too.
        let is_alone = begin.is_some() && !is_pruned;
        let note_of: [&(dyn ToSql + Sync); 5] =
            [&note.heads, &note.numbers, &note.keys, &id, start];
        let Rows { puts, added, deletes } = rows;
        let write = [&note_of[..], &puts.of_put(), &added.of_put(), &deletes.of_keys()].concat();
        let prune: [&(dyn ToSql + Sync); 3] = [&note.heads, &note.numbers, kept];
        let run = async |sql: Option<&str>| match sql.filter(|_| !is_alone) {
            Some(sql) => client.batch_execute(sql).await,
            None => Ok(()),
        };
        // All are sent at once, in this order.
        let ((), written, _, ()) = try_join4(
            run(begin),
            query(client, &writing, &write),
            async { if is_pruned { client.execute(&pruning, &prune).await } else { Ok(0) } },
            run(Some("COMMIT")),
        )
        .await?;
        let written = written.first().map(|row| row.try_get::<_, i64>(0)).transpose()?;
        Ok(written.and_then(|written| usize::try_from(written).ok()) == Some(note.heads.len()))
    }
}
