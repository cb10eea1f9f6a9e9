//! Commits of several environments in one statement, which is a transaction.
//!
//! A transaction that commits what it has taken for right has no connection yet. Those of different
//! environments that are ready at the same time share one, and one sync of the server. The statement waits
//! for no lock: a head that another transaction holds is left out, and its commit waits for it alone.

use std::sync::Arc;
use std::time::SystemTime;

use foldhash::HashMap;
use tokio_postgres::Error;
use tokio_postgres::types::ToSql;

use crate::coalesce::Coalescer;
use crate::commit::{Caution, Commit};
use crate::failure::Failure;
use crate::hidden::query;
use crate::rows::{Columns, Rows};
use crate::schema;
use crate::server::{Client, Server};

/// Number of statements under way at most.
const UNDER_WAY: usize = 1;

/// Largest size of the changes in a statement, in bytes.
const BYTES: usize = 1 << 20;

/// Commits that are under way, and those that wait.
pub(crate) struct Commits {
    all: Coalescer<Gathered, Outcome>,
    /// Commits that go alone, behind one that has failed together with others. The server may not be
    /// able to leave out what is locked.
    alone: Caution,
}

/// For each head that was free, whether its changes are made.
type Outcome = Result<Arc<HashMap<i16, bool>>, Failure>;

/// Commits of one head each. No two are of the same head, whose transactions go one by one.
#[derive(Default)]
struct Gathered {
    commits: Vec<Arc<Commit>>,
    bytes: usize,
}

impl Default for Commits {
    fn default() -> Self {
        Self { all: Coalescer::new(UNDER_WAY), alone: Caution::default() }
    }
}

impl Commits {
    /// Number of commits that wait for a statement under way.
    pub(crate) fn waiting(&self) -> usize {
        self.all.waiting()
    }

    /// Makes a commit together with those of other heads, as [`Commit::make`] does. Returns `None`, and has
    /// changed nothing, if it has to go alone.
    pub(crate) fn make(
        &self,
        server: &Server,
        commit: &Arc<Commit>,
    ) -> Result<Option<bool>, Failure> {
        let Some(head) = commit.only_head().filter(|_| !self.alone.take()) else {
            return Ok(None);
        };
        let ask = |gathered: Gathered| {
            let made = server
                .begin("commit transactions", |client| async move { gathered.make(&client).await });
            made.map(|(_, made)| Arc::new(made))
        };
        let join = |all: &mut Gathered| all.join(commit);
        match self.all.ask(join, ask, Err(Failure::no_answer())) {
            Some(Ok(made)) => Ok(made.get(&head).copied()),
            Some(Err(failure)) if failure.is_of_connection() => Err(failure),
            // It may be that of another commit.
            Some(Err(_)) => {
                self.alone.raise();
                Ok(None)
            }
            None => Ok(None),
        }
    }
}

impl Gathered {
    /// Returns `false` if there is no room.
    fn join(&mut self, commit: &Arc<Commit>) -> bool {
        let bytes = self.bytes + commit.rows.size();
        let has_room = bytes <= BYTES;
        if has_room {
            self.bytes = bytes;
            self.commits.push(Arc::clone(commit));
        }
        has_room
    }

    /// Makes the changes durable of all whose heads are free, and have not changed meanwhile.
    async fn make(&self, client: &Client) -> Result<HashMap<i16, bool>, Error> {
        let pruning = self.commits.iter().find(|commit| commit.is_pruned());
        let kept = pruning.map(|commit| commit.kept);
        let writing = match kept {
            Some(_) => schema::WRITE_FREE_AND_PRUNE,
            None => schema::WRITE_FREE,
        };
        let writing = client.prepare_cached(writing).await?;
        let notes = || self.commits.iter().map(|commit| &commit.note);
        let heads: Vec<i16> = notes().flat_map(|note| &note.heads).copied().collect();
        let numbers: Vec<i64> = notes().flat_map(|note| &note.numbers).copied().collect();
        let keys: Vec<Option<&[u8]>> =
            notes().flat_map(|note| &note.keys).map(Option::as_deref).collect();
        let ids: Vec<&[u8]> = self.commits.iter().map(|commit| commit.id.bytes()).collect();
        let starts: Vec<SystemTime> = self.commits.iter().map(|commit| commit.start).collect();
        let columns = |of: fn(&Rows) -> &Columns| {
            Columns::all(
                heads.iter().copied().zip(self.commits.iter().map(|commit| of(&commit.rows))),
            )
        };
        let (puts, of_puts) = columns(|rows| &rows.puts);
        let (added, of_added) = columns(|rows| &rows.added);
        let (deletes, of_deletes) = columns(|rows| &rows.deletes);
        let note: [&(dyn ToSql + Sync); 5] = [&heads, &numbers, &keys, &ids, &starts];
        let owners: [&(dyn ToSql + Sync); 3] = [&of_puts, &of_added, &of_deletes];
        let mut write =
            [&note[..], &puts.of_put(), &added.of_put(), &deletes.of_keys(), &owners].concat();
        write.extend(kept.as_ref().map(|kept| kept as &(dyn ToSql + Sync)));
        let made = query(client, &writing, &write).await?;
        made.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
    }
}
