//! A transaction of the server, as a fixed view.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::Arc;

use futures_util::future::{try_join, try_join3, try_join4, try_join5};
use store::overlay::Changes;
use store::{KeyRange, Order, Result, Snapshot, Table, Visit, VisitValue};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};

use crate::Shared;
use crate::cache::{News, Value};
use crate::failure::Failure;
use crate::keys;
use crate::schema::{self, StoredKey};
use crate::server::Client;

/// Number of entries that a scan without a limit asks for at first. Each further time it asks for
/// four times as many.
const FIRST_PAGE: usize = 64;

const LARGEST_PAGE: usize = 4_096;

/// A transaction of the server. Dropping it drops its changes.
pub(crate) struct View {
    shared: Arc<Shared>,
    /// `None` only after its commit, and while it is dropped.
    client: Option<Client>,
    /// Number of commits that it shows.
    commits: u64,
    failed: RefCell<Option<Failure>>,
}

/// Whether a transaction keeps others from writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Read,
    Write,
}

impl Mode {
    fn begin(self) -> &'static str {
        match self {
            Self::Read => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            // Behind the lock, all statements see the same state.
            Self::Write => "BEGIN ISOLATION LEVEL READ COMMITTED",
        }
    }

    fn commits(self) -> &'static str {
        match self {
            Self::Read => schema::COMMITS,
            Self::Write => schema::LOCK,
        }
    }
}

impl View {
    /// Begins a transaction, in one round trip.
    pub(crate) fn begin(shared: &Arc<Shared>, mode: Mode) -> Result<Self, Failure> {
        let client = shared.server.connect()?;
        let mut view = Self {
            shared: Arc::clone(shared),
            client: Some(Arc::clone(&client)),
            commits: 0,
            failed: RefCell::default(),
        };
        let known = shared.cache.commits().cast_signed();
        let (commits, news) = shared.server.ask("begin a transaction", async move {
            let (commits, news) = try_join(
                client.prepare_cached(mode.commits()),
                client.prepare_cached(schema::NEWS),
            )
            .await?;
            let params: [&(dyn ToSql + Sync); 1] = [&known];
            // All of them are sent at once.
            let ((), head, news) = try_join3(
                client.batch_execute(mode.begin()),
                client.query_one(&commits, &[]),
                client.query(&news, &params),
            )
            .await?;
            Ok((head.try_get::<_, i64>(0)?, told(&news)?))
        })?;
        view.commits = commits.cast_unsigned();
        shared.cache.follow(view.commits, News::read(&shared.tables, news));
        Ok(view)
    }

    /// The failure since which nothing can be read.
    pub(crate) fn failure(&self) -> Option<Failure> {
        self.failed.borrow().clone()
    }

    /// Makes `changes` durable, in one round trip. `batch` identifies them.
    pub(crate) fn commit(mut self, changes: &Changes, batch: [u8; 16]) -> Result<(), Failure> {
        let client = self.client.clone().ok_or_else(Failure::closed)?;
        let commit = self.commits + 1;
        let rows = Rows::of(&self.shared, changes);
        let keys = keys::encode(&self.shared.tables, changes);
        let shared = Arc::clone(&self.shared);
        let kept = self.shared.commits_kept;
        let committed = shared.server.ask("commit a transaction", async move {
            let (put, delete, note, prune) = try_join4(
                client.prepare_cached(schema::PUT),
                client.prepare_cached(schema::DELETE),
                client.prepare_cached(schema::NOTE),
                client.prepare_cached(schema::PRUNE),
            )
            .await?;
            let (number, oldest) =
                (commit.cast_signed(), commit.saturating_sub(kept).cast_signed());
            let batch = &batch[..];
            let prune = async {
                let is_due = commit.is_multiple_of(kept / 4);
                if is_due { client.execute(&prune, &[&oldest]).await } else { Ok(0) }
            };
            let (put_params, delete_params) = (rows.puts.of_put(), rows.deletes.of_delete());
            let note_params: [&(dyn ToSql + Sync); 3] = [&number, &batch, &keys];
            try_join5(
                client.execute(&put, &put_params),
                client.execute(&delete, &delete_params),
                client.execute(&note, &note_params),
                prune,
                client.batch_execute("COMMIT"),
            )
            .await
            .map(drop)
        });
        // After a failure the transaction may still be open, and is ended when `self` is dropped.
        committed.inspect(|()| {
            shared.cache.commit(commit, changes);
            self.client = None;
        })
    }

    /// What identifies the changes of a commit. Returns `None` if there is no such commit.
    pub(crate) fn batch_of(&self, commit: u64) -> Result<Option<Vec<u8>>, Failure> {
        let client = self.client.clone().ok_or_else(Failure::closed)?;
        let number = commit.cast_signed();
        self.shared.server.ask("look for a commit", async move {
            let row = client.query_opt(schema::BATCH, &[&number]).await?;
            row.map(|row| row.try_get(0)).transpose()
        })
    }

    /// Number of the commit that would be the next one.
    pub(crate) fn next_commit(&self) -> u64 {
        self.commits + 1
    }

    fn ask<T: Send + 'static, F>(&self, question: impl FnOnce(Client) -> F) -> Result<T>
    where
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        if let Some(failure) = self.failure() {
            return Err(failure.into());
        }
        let client = self.client.as_ref().ok_or_else(Failure::closed)?;
        let answer = self.shared.server.ask("read entries", question(Arc::clone(client)));
        Ok(answer.inspect_err(|failure| *self.failed.borrow_mut() = Some(failure.clone()))?)
    }

    fn known(&self, table: Table, key: &[u8]) -> Option<Value> {
        self.shared.cache.get(self.commits, table, key)
    }

    fn keep(&self, table: Table, key: &[u8], value: &Value) {
        self.shared.cache.keep(self.commits, table, key, value);
    }

    fn fetch(&self, table: Table, key: &[u8]) -> Result<Value> {
        let (number, key) = (self.shared.tables.number(table), StoredKey::of(key));
        self.ask(|client| async move {
            let get = client.prepare_cached(schema::GET).await?;
            let row = client.query_opt(&get, &[&number, &key.head, &key.hash]).await?;
            row.map(|row| row.try_get::<_, &[u8]>(0).map(Arc::from)).transpose()
        })
    }

    fn fetch_many(&self, table: Table, keys: Vec<&[u8]>) -> Result<HashMap<Vec<u8>, Arc<[u8]>>> {
        let number = self.shared.tables.number(table);
        let heads: Vec<Vec<u8>> = keys.into_iter().map(|key| StoredKey::of(key).head).collect();
        self.ask(|client| async move {
            let get = client.prepare_cached(schema::GET_MANY).await?;
            let rows = client.query(&get, &[&number, &heads]).await?;
            rows.iter()
                .map(|row| Ok((key_of(row)?, Arc::from(row.try_get::<_, &[u8]>(2)?))))
                .collect()
        })
    }

    fn page(&self, table: Table, span: &Span, order: Order, limit: usize) -> Result<Vec<Row>> {
        let number = self.shared.tables.number(table);
        let (start, end) = (StoredKey::of(&span.start), span.end.as_deref().map(StoredKey::of));
        let statement = schema::scan(end.is_some(), order == Order::Descending);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.ask(|client| async move {
            let query = client.prepare_cached(statement).await?;
            let mut params: Vec<&(dyn ToSql + Sync)> =
                vec![&number, &start.head, &start.rest, &limit];
            if let Some(end) = &end {
                params.extend::<[&(dyn ToSql + Sync); 2]>([&end.head, &end.rest]);
            }
            client.query(&query, &params).await
        })
    }
}

impl Drop for View {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            self.shared.server.end(client);
        }
    }
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View").field("commits", &self.commits).finish_non_exhaustive()
    }
}

impl Snapshot for &View {
    fn get(&self, table: Table, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let value = if let Some(value) = self.known(table, key) {
            value
        } else {
            let value = self.fetch(table, key)?;
            self.keep(table, key, &value);
            value
        };
        Ok(value.map(|value| visit(&value)).is_some())
    }

    fn get_many(&self, table: Table, keys: &[&[u8]], visit: &mut VisitValue<'_>) -> Result<()> {
        let known: Vec<Option<Value>> = keys.iter().map(|key| self.known(table, key)).collect();
        let unknown = keys.iter().zip(&known).filter(|(_, known)| known.is_none());
        let unknown: Vec<&[u8]> = unknown.map(|(key, _)| *key).collect();
        let found =
            if unknown.is_empty() { HashMap::new() } else { self.fetch_many(table, unknown)? };
        for (key, known) in keys.iter().zip(known) {
            let value = known.unwrap_or_else(|| {
                let value = found.get(*key).cloned();
                self.keep(table, key, &value);
                value
            });
            visit(value.as_deref());
        }
        Ok(())
    }

    fn scan(
        &self,
        table: Table,
        range: &KeyRange,
        order: Order,
        limit: Option<usize>,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        let mut span = Span::of(range);
        let mut left = limit.unwrap_or(usize::MAX);
        let mut size = limit.unwrap_or(FIRST_PAGE).min(LARGEST_PAGE);
        while left > 0 && !span.is_empty() {
            let rows = self.page(table, &span, order, size.min(left))?;
            let mut last = None;
            for row in &rows {
                let key = key_of(row).map_err(unreadable)?;
                let value = row.try_get::<_, &[u8]>(2).map_err(unreadable)?;
                if visit(&key, value).is_break() {
                    return Ok(());
                }
                last = Some(key);
            }
            let Some(last) = last.filter(|_| rows.len() >= size.min(left)) else { break };
            left -= rows.len().min(left);
            size = size.saturating_mul(4).min(LARGEST_PAGE);
            span.go_behind(last, order);
        }
        Ok(())
    }
}

/// Numbers and keys of commits.
pub(crate) type Told = Vec<(i64, Option<Vec<u8>>)>;

pub(crate) fn told(rows: &[Row]) -> Result<Told, Error> {
    rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
}

fn unreadable(error: Error) -> store::Error {
    Failure::of("read entries", error).into()
}

fn key_of(row: &Row) -> Result<Vec<u8>, Error> {
    let (head, rest): (&[u8], &[u8]) = (row.try_get(0)?, row.try_get(1)?);
    Ok([head, rest].concat())
}

/// The keys from `start` on, and before `end` if there is one.
struct Span {
    start: Vec<u8>,
    end: Option<Vec<u8>>,
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

/// Changes as the parameters of statements.
struct Rows {
    puts: Columns,
    deletes: Columns,
}

#[derive(Default)]
struct Columns {
    tables: Vec<i16>,
    heads: Vec<Vec<u8>>,
    hashes: Vec<Vec<u8>>,
    rests: Vec<Vec<u8>>,
    values: Vec<Vec<u8>>,
}

impl Rows {
    fn of(shared: &Shared, changes: &Changes) -> Self {
        let mut rows = Self { puts: Columns::default(), deletes: Columns::default() };
        for (table, changes) in changes.tables() {
            for (key, value) in changes {
                let columns = if value.is_some() { &mut rows.puts } else { &mut rows.deletes };
                let key = StoredKey::of(key);
                columns.tables.push(shared.tables.number(table));
                columns.heads.push(key.head);
                columns.hashes.push(key.hash);
                columns.rests.push(key.rest);
                columns.values.extend(value.clone());
            }
        }
        rows
    }
}

impl Columns {
    fn of_put(&self) -> [&(dyn ToSql + Sync); 5] {
        [&self.tables, &self.heads, &self.hashes, &self.rests, &self.values]
    }

    fn of_delete(&self) -> [&(dyn ToSql + Sync); 3] {
        [&self.tables, &self.heads, &self.hashes]
    }
}
