//! A transaction of the server, as a fixed view.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::{fmt, iter};

use futures_util::future::{try_join, try_join4, try_join5};
use store::overlay::Changes;
use store::{KeyRange, Order, Result, Snapshot, Table, Visit, VisitValue};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};

use crate::Shared;
use crate::cache::Value;
use crate::failure::Failure;
use crate::heads::{Counts, Head, Lock, by_head};
use crate::prefetched::{Prefetched, unknown, values_of};
use crate::rows::{Columns, Note, Rows};
use crate::scan::{Span, key_of, scan};
use crate::schema::{self, StoredKey};
use crate::server::Client;
use crate::told::Told;

/// A transaction of the server. Dropping it drops its changes.
pub(crate) struct View {
    shared: Arc<Shared>,
    /// `None` only after its commit, and while it is dropped.
    client: Option<Client>,
    /// Counts of the heads that it shows for sure.
    counts: Counts,
    failed: RefCell<Option<Failure>>,
    /// Number of values of each table that were asked for one by one.
    missed: RefCell<HashMap<Table, u32>>,
    prefetched: Prefetched,
}

/// Number of stale values that are read together at most.
const READ_AHEAD: usize = 128;

/// Whether a transaction keeps others from writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Read,
    Write(Lock),
}

/// What the server has answered to the begin of a transaction.
struct Begun {
    /// Numbers and counts of the heads that are locked.
    locked: Option<Vec<(i16, i64)>>,
    news: Vec<Row>,
    values: Vec<Row>,
}

impl View {
    /// Begins a transaction, in one round trip.
    pub(crate) fn begin(shared: &Arc<Shared>, mode: Mode) -> Result<Self, Failure> {
        let known = shared.cache.counts();
        let wanted = match mode {
            Mode::Read => Vec::new(),
            Mode::Write(lock) => shared.cache.wanted(lock),
        };
        let (row, keys) = (known.to_row(), Columns::without_values(&shared.tables, &wanted));
        let begun = shared.server.begin("begin a transaction", move |client| async move {
            match mode {
                Mode::Read => begin_read(&client, row).await,
                Mode::Write(lock) => begin_write(&client, lock, (row, keys)).await,
            }
        });
        let (client, begun) = begun?;
        let mut view = Self {
            shared: Arc::clone(shared),
            client: Some(client),
            counts: known,
            failed: RefCell::default(),
            missed: RefCell::default(),
            prefetched: Prefetched::default(),
        };
        let told = Told::read(&view.shared.tables, &begun.news)?;
        view.shared.cache.follow(&told.counts, &told.news);
        match begun.locked {
            // What is not locked may change at any time.
            Some(locked) => view.counts = Counts::read(&locked),
            None => told.counts.known().for_each(|(head, count)| view.counts.set(head, count)),
        }
        view.keep_wanted(wanted, &begun.values)?;
        Ok(view)
    }

    fn keep_wanted(&self, wanted: Vec<(Table, Vec<u8>)>, rows: &[Row]) -> Result<(), Failure> {
        for (table, key, value) in values_of(&self.shared.tables, wanted, rows)? {
            self.keep(table, &key, &value);
        }
        Ok(())
    }

    /// The failure since which nothing can be read.
    pub(crate) fn failure(&self) -> Option<Failure> {
        self.failed.borrow().clone()
    }

    /// Makes `changes` durable, in one round trip. `batch` identifies them.
    pub(crate) fn commit(mut self, changes: &Changes, batch: [u8; 16]) -> Result<(), Failure> {
        let client = self.client.clone().ok_or_else(Failure::closed)?;
        let rows = Rows::of(&self.shared.tables, changes);
        let note = Note::of(&self.shared.tables, &self.counts, changes)?;
        let kept = self.shared.commits_kept.cast_signed();
        let committed = self.shared.server.ask("commit a transaction", async move {
            let (put, delete, noting, pruning) = try_join4(
                client.prepare_cached(schema::PUT),
                client.prepare_cached(schema::DELETE),
                client.prepare_cached(schema::NOTE),
                client.prepare_cached(schema::PRUNE),
            )
            .await?;
            let batch = &batch[..];
            let prune = async {
                let is_due = note.numbers.iter().any(|number| number % (kept / 4) == 0);
                let params: [&(dyn ToSql + Sync); 3] = [&note.heads, &note.numbers, &kept];
                if is_due { client.execute(&pruning, &params).await } else { Ok(0) }
            };
            let (put_params, delete_params) = (rows.puts.of_put(), rows.deletes.of_keys());
            let note_params: [&(dyn ToSql + Sync); 4] =
                [&note.heads, &note.numbers, &note.keys, &batch];
            try_join5(
                client.execute(&put, &put_params),
                client.execute(&delete, &delete_params),
                client.execute(&noting, &note_params),
                prune,
                client.batch_execute("COMMIT"),
            )
            .await
            .map(drop)
        });
        // After a failure the transaction may still be open, and is ended when `self` is dropped.
        committed?;
        self.client = None;
        self.shared.server.call();
        for (head, changes) in &by_head(changes) {
            let number = self.next_commit(*head)?;
            self.shared.cache.commit(*head, number, changes);
        }
        Ok(())
    }

    /// What identifies the changes of a commit of a head. Returns `None` if there is no such commit.
    pub(crate) fn batch_of(&self, head: Head, number: u64) -> Result<Option<Vec<u8>>, Failure> {
        let client = self.client.clone().ok_or_else(Failure::closed)?;
        let (head, number) = (head.number(), number.cast_signed());
        self.shared.server.ask("look for a commit", async move {
            let row = client.query_opt(schema::BATCH, &[&head, &number]).await?;
            row.map(|row| row.try_get(0)).transpose()
        })
    }

    /// Number of the commit of a head that would be the next one. An error if the head is not locked.
    pub(crate) fn next_commit(&self, head: Head) -> Result<u64, Failure> {
        self.counts.next(head)
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
        let known = self.shared.cache.get(&self.counts, table, key);
        known.or_else(|| self.prefetched.get(table, key))
    }

    fn keep(&self, table: Table, key: &[u8], value: &Value) {
        self.shared.cache.keep(&self.counts, table, key, value);
    }

    /// Reads a value. A body that reads one value of a table after the other gets more and more of
    /// those that others have changed with it, so that it soon has all of them.
    fn fetch(&self, table: Table, key: &[u8]) -> Result<Value> {
        let stale = self.shared.cache.stale(table, key, self.next_read_ahead(table));
        if stale.is_empty() {
            return self.fetch_one(table, key);
        }
        let keys = iter::once(key).chain(stale.iter().map(Vec::as_slice)).collect();
        let mut found = self.fetch_many(table, keys)?;
        for key in &stale {
            self.keep(table, key, &found.remove(key));
        }
        Ok(found.remove(key))
    }

    /// Number of stale values to read with the next one of a table: none, 8, 32, and so on.
    fn next_read_ahead(&self, table: Table) -> usize {
        let mut missed = self.missed.borrow_mut();
        let times = missed.entry(table).or_default();
        *times = times.saturating_add(1);
        match *times {
            1 => 0,
            2 => 8,
            3 => 32,
            _ => READ_AHEAD,
        }
    }

    fn fetch_one(&self, table: Table, key: &[u8]) -> Result<Value> {
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
        if self.shared.cache.is_gap(&self.counts, table, span) {
            return Ok(Vec::new());
        }
        let rows = self.fetch_page(table, span, order, limit)?;
        if rows.is_empty() {
            self.shared.cache.keep_gap(&self.counts, table, span);
        }
        Ok(rows)
    }

    fn fetch_page(
        &self,
        table: Table,
        span: &Span,
        order: Order,
        limit: usize,
    ) -> Result<Vec<Row>> {
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
        f.debug_struct("View").field("counts", &self.counts).finish_non_exhaustive()
    }
}

impl Snapshot for &View {
    fn prefetch(&self, keys: &mut dyn Iterator<Item = (Table, Vec<u8>)>) -> Result<()> {
        let unknown = unknown(&self.counts, keys, |table, key| self.known(table, key).is_some());
        let columns = Columns::without_values(&self.shared.tables, &unknown);
        if columns.is_empty() {
            return Ok(());
        }
        let rows = self.ask(|client| async move { wanted_values(&client, &columns).await })?;
        for (table, key, value) in values_of(&self.shared.tables, unknown, &rows)? {
            self.keep(table, &key, &value);
            self.prefetched.keep(table, key, value);
        }
        Ok(())
    }

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
        let page = |span: &Span, limit| self.page(table, span, order, limit);
        scan(page, (range, order, limit), visit)
    }
}

async fn begin_read(client: &Client, known: Vec<i64>) -> Result<Begun, Error> {
    let news = client.prepare_cached(schema::NEWS).await?;
    let params: [&(dyn ToSql + Sync); 1] = [&known];
    // Both are sent at once.
    let begin = client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    let ((), news) = try_join(begin, client.query(&news, &params)).await?;
    Ok(Begun { locked: None, news, values: Vec::new() })
}

async fn begin_write(
    client: &Client,
    lock: Lock,
    (known, keys): (Vec<i64>, Columns),
) -> Result<Begun, Error> {
    let (locking, news) =
        try_join(client.prepare_cached(schema::LOCK), client.prepare_cached(schema::NEWS_OF))
            .await?;
    let heads = lock.numbers();
    let lock_params: [&(dyn ToSql + Sync); 1] = [&heads];
    let news_params: [&(dyn ToSql + Sync); 2] = [&known, &heads];
    // Behind the lock, all statements see the same state.
    let ((), locked, news, values) = try_join4(
        client.batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED"),
        client.query(&locking, &lock_params),
        client.query(&news, &news_params),
        wanted_values(client, &keys),
    )
    .await?;
    let locked = locked.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
    Ok(Begun { locked: Some(locked.collect::<Result<_, Error>>()?), news, values })
}

async fn wanted_values(client: &Client, keys: &Columns) -> Result<Vec<Row>, Error> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let get = client.prepare_cached(schema::GET_WANTED).await?;
    client.query(&get, &keys.of_keys()).await
}
