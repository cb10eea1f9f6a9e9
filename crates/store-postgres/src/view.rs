//! A transaction of the server, as a fixed view.

use std::cell::{Ref, RefCell};
use std::collections::HashMap;
use std::sync::Arc;
use std::{fmt, iter, mem};

use futures_util::future::try_join;
use store::overlay::Changes;
use store::{KeyRange, Order, Result, Snapshot, Table, Visit, VisitValue};
use tokio_postgres::{Error, Row};

use crate::batch::Outcome;
use crate::cache::Value;
use crate::commit::Commit;
use crate::failure::Failure;
use crate::heads::{Counts, Head, Lock, by_head};
use crate::prefetched::{Prefetched, unknown, values_of};
use crate::questions::{Question, answer, begin_read, begin_write, prepare};
use crate::rows::{Columns, Note, Rows};
use crate::scan::{Span, key_of, scan, unreadable};
use crate::schema::{self, StoredKey};
use crate::seen::Seen;
use crate::server::Client;
use crate::told::Told;
use crate::{Params, Shared};

/// A transaction of the server. Dropping it drops its changes.
pub(crate) struct View {
    shared: Arc<Shared>,
    mode: Mode,
    stage: RefCell<Stage>,
    /// Counts of the heads that it shows for sure.
    counts: RefCell<Counts>,
    /// What becomes of a commit that it begins behind, and the counts then.
    behind: RefCell<Option<Behind>>,
    /// Its bodies see the changes of that commit.
    sees_changes: bool,
    failed: RefCell<Option<Failure>>,
    /// Number of values of each table that were asked for one by one.
    missed: RefCell<HashMap<Table, u32>>,
    prefetched: Prefetched,
}

/// How far a transaction has got.
enum Stage {
    /// The server has not begun it. What was read is right unless it has changed.
    Guess(Seen),
    /// The server has begun it.
    Begun(Client),
    /// It was committed, or its begin has failed.
    Over,
}

/// A commit that is not known to be made, and the counts behind it.
pub(crate) type Behind = (Arc<Outcome>, Counts);

/// Number of stale values that are read together at most.
const READ_AHEAD: usize = 128;

/// Whether a transaction keeps others from writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Read,
    Write(Lock),
}

impl View {
    /// Begins a transaction, in one round trip.
    pub(crate) fn begin(shared: &Arc<Shared>, mode: Mode) -> Result<Self, Failure> {
        let view = Self::guess(shared, mode, None);
        view.open(None)?;
        Ok(view)
    }

    /// A transaction that begins with its first question. What is in memory is taken for right until
    /// then. It fails if that was wrong, or if the commit before it fails.
    pub(crate) fn guess(shared: &Arc<Shared>, mode: Mode, behind: Option<Behind>) -> Self {
        let known = shared.cache.counts();
        let counts = match mode {
            Mode::Read => known,
            // What is not locked may change at any time.
            Mode::Write(lock) => known.within(lock),
        };
        Self {
            shared: Arc::clone(shared),
            mode,
            stage: RefCell::new(Stage::Guess(Seen::default())),
            counts: RefCell::new(counts),
            sees_changes: behind.is_some(),
            behind: RefCell::new(behind),
            failed: RefCell::default(),
            missed: RefCell::default(),
            prefetched: Prefetched::default(),
        }
    }

    /// Begins the transaction, with its first question.
    fn open(&self, question: Option<Question>) -> Result<Vec<Row>, Failure> {
        self.catch_up()?;
        let Stage::Guess(seen) = self.stage.replace(Stage::Over) else {
            return Err(Failure::closed());
        };
        let known = self.shared.cache.counts();
        let mode = self.mode;
        let wanted = match mode {
            Mode::Read => Vec::new(),
            Mode::Write(lock) => self.shared.cache.wanted(lock),
        };
        let (row, keys) = (known.to_row(), Columns::without_values(&self.shared.tables, &wanted));
        let begun = self.shared.server.begin("begin a transaction", move |client| async move {
            match mode {
                Mode::Read => begin_read(&client, row, question).await,
                Mode::Write(lock) => begin_write(&client, lock, (row, keys), question).await,
            }
        });
        let (client, begun) = begun?;
        self.stage.replace(Stage::Begun(client));
        let told = Told::read(&self.shared.tables, &begun.news)?;
        self.shared.cache.follow(&told.counts, &told.news);
        let counts = match begun.locked {
            Some(locked) => Counts::read(&locked),
            None => known.with(&told.counts),
        };
        self.check(&seen, counts)?;
        for (table, key, value) in values_of(&self.shared.tables, wanted, &begun.values)? {
            self.keep(table, &key, &value);
        }
        Ok(begun.answer)
    }

    /// Waits for the commit before it.
    fn catch_up(&self) -> Result<(), Failure> {
        let Some((outcome, counts)) = self.behind.take() else { return Ok(()) };
        outcome.wait().map_err(|_| Failure::stale())?;
        self.counts.replace(counts);
        Ok(())
    }

    /// Waits for the commit before it. Returns the counts behind its own commit.
    pub(crate) fn counts_behind(&self, changes: &Changes) -> Counts {
        if let Err(failure) = self.catch_up() {
            *self.failed.borrow_mut() = Some(failure);
        }
        let mut counts = self.counts().clone();
        for head in by_head(changes).into_keys() {
            if let Ok(number) = self.next_commit(head) {
                counts.set(head, number);
            }
        }
        counts
    }

    /// Takes the counts of the server, if what was seen is still right. Of changes that bodies have seen
    /// before their commit, it is not known which have been read.
    fn check(&self, seen: &Seen, counts: Counts) -> Result<(), Failure> {
        let is_next = !self.sees_changes || *self.counts() == counts;
        let guessed = self.counts.replace(counts);
        let is_right = is_next && seen.is_same(&self.shared.cache, &guessed);
        if is_right { Ok(()) } else { Err(Failure::stale()) }
    }

    /// Makes sure that what was read is right, if the server was not asked yet. A transaction that
    /// writes is begun.
    pub(crate) fn settle(&self) -> Result<(), Failure> {
        if let Some(failure) = self.failure() {
            return Err(failure);
        }
        let settled = match (&*self.stage.borrow(), self.mode) {
            (Stage::Guess(seen), Mode::Read) if seen.is_confirmed || seen.is_empty() => {
                return Ok(());
            }
            (Stage::Begun(_) | Stage::Over, _) => return Ok(()),
            (Stage::Guess(_), mode) => mode,
        };
        let settled = match settled {
            Mode::Read => self.look(None),
            Mode::Write(_) => self.open(None),
        };
        settled.map(drop).inspect_err(|failure| *self.failed.borrow_mut() = Some(failure.clone()))
    }

    /// Asks for news without a transaction, and a question before that: its answer is that of both
    /// states, if the news is not about it.
    fn look(&self, question: Option<(Question, Seen)>) -> Result<Vec<Row>, Failure> {
        let Stage::Guess(mut seen) = self.stage.replace(Stage::Over) else {
            return Err(Failure::closed());
        };
        let known = self.counts().clone();
        let news = Question::of(schema::NEWS, vec![Box::new(known.to_row())]);
        let (question, more) = question.unzip();
        if let Some(more) = more {
            seen.add(more);
        }
        let asked = self.shared.server.begin("read entries", move |client| async move {
            let question = prepare(&client, question).await?;
            let news = prepare(&client, Some(news)).await?;
            try_join(answer(&client, question), answer(&client, news)).await
        });
        let (_, (rows, news)) = asked?;
        let told = Told::read(&self.shared.tables, &news)?;
        self.shared.cache.follow(&told.counts, &told.news);
        self.check(&seen, known.with(&told.counts))?;
        seen.is_confirmed = true;
        self.stage.replace(Stage::Guess(seen));
        Ok(rows)
    }

    /// The failure since which nothing can be read.
    pub(crate) fn failure(&self) -> Option<Failure> {
        self.failed.borrow().clone()
    }

    /// Makes `changes` durable, in one round trip. `batch` identifies them.
    pub(crate) fn commit(&self, changes: &Arc<Changes>, batch: [u8; 16]) -> Result<(), Failure> {
        let commit = Commit {
            rows: Rows::of(&self.shared.tables, changes),
            note: Note::of(&self.shared.tables, &self.counts(), changes)?,
            batch,
            kept: self.shared.commits_kept.cast_signed(),
        };
        self.shared.cache.expect(batch, changes);
        let made = self.make(commit);
        // After a failure the transaction may still be open, and is ended when `self` is dropped.
        let is_made = matches!(made, Ok(true));
        for head in by_head(changes).into_keys() {
            let number = self.next_commit(head).ok().filter(|_| is_made);
            self.shared.cache.commit(head, number);
            if matches!(made, Ok(false)) {
                self.shared.cache.doubt(head);
            }
        }
        if !made? {
            return Err(Failure::stale());
        }
        self.shared.server.call();
        Ok(())
    }

    /// Returns `false` if another process has changed the heads.
    fn make(&self, commit: Commit) -> Result<bool, Failure> {
        let client = match &*self.stage.borrow() {
            Stage::Guess(_) => None,
            Stage::Begun(client) => Some(Arc::clone(client)),
            Stage::Over => return Err(Failure::closed()),
        };
        let server = &self.shared.server;
        let is_made = match client {
            None => {
                let begun = server.begin("commit a transaction", |client| async move {
                    commit.make(&client, Some(schema::BEGIN_WRITE)).await
                });
                begun?.1
            }
            Some(client) => server
                .ask("commit a transaction", async move { commit.make(&client, None).await })?,
        };
        self.stage.replace(Stage::Over);
        Ok(is_made)
    }

    /// What identifies the changes of a commit of a head. Returns `None` if there is no such commit.
    pub(crate) fn batch_of(&self, head: Head, number: u64) -> Result<Option<Vec<u8>>, Failure> {
        let (head, number) = (Box::new(head.number()), Box::new(number.cast_signed()));
        let question = Question::of(schema::BATCH, vec![head, number]);
        let rows = self.answer(question, Seen::default())?;
        let batch = rows.first().map(|row| row.try_get(0)).transpose();
        batch.map_err(|error| Failure::of("look for a commit", error))
    }

    /// Number of the commit of a head that would be the next one. An error if the head is not locked.
    pub(crate) fn next_commit(&self, head: Head) -> Result<u64, Failure> {
        self.counts().next(head)
    }

    fn counts(&self) -> Ref<'_, Counts> {
        self.counts.borrow()
    }

    fn ask(&self, question: Question, reads: Seen) -> Result<Vec<Row>> {
        if let Some(failure) = self.failure() {
            return Err(failure.into());
        }
        let answer = self.answer(question, reads);
        Ok(answer.inspect_err(|failure| *self.failed.borrow_mut() = Some(failure.clone()))?)
    }

    fn answer(&self, question: Question, reads: Seen) -> Result<Vec<Row>, Failure> {
        let (client, is_first) = match &*self.stage.borrow() {
            Stage::Guess(seen) => (None, !seen.is_confirmed),
            Stage::Begun(client) => (Some(Arc::clone(client)), false),
            Stage::Over => return Err(Failure::closed()),
        };
        match (client, self.mode) {
            (None, Mode::Read) if is_first && reads.has_heads() => {
                self.look(Some((question, reads)))
            }
            (None, _) => self.open(Some(question)),
            (Some(client), _) => self.shared.server.ask("read entries", async move {
                let question = prepare(&client, Some(question)).await?;
                answer(&client, question).await
            }),
        }
    }

    fn known(&self, table: Table, key: &[u8]) -> Option<Value> {
        let known = self.shared.cache.get(&self.counts(), table, key);
        known.or_else(|| self.prefetched.get(table, key))
    }

    /// A value in memory, which is read.
    fn read(&self, table: Table, key: &[u8]) -> Option<Value> {
        let value = self.known(table, key)?;
        if let Stage::Guess(seen) = &mut *self.stage.borrow_mut() {
            seen.keys.push((table, key.to_vec()));
        }
        Some(value)
    }

    fn keep(&self, table: Table, key: &[u8], value: &Value) {
        self.shared.cache.keep(&self.counts(), table, key, value);
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
        let reads = Seen::of_keys([(table, key.to_vec())]);
        let (number, key) = (self.shared.tables.number(table), StoredKey::of(key));
        let params: Params = vec![Box::new(number), Box::new(key.head), Box::new(key.hash)];
        let rows = self.ask(Question::of(schema::GET, params), reads)?;
        let value = rows.first().map(|row| row.try_get::<_, &[u8]>(0).map(Arc::from));
        value.transpose().map_err(unreadable)
    }

    fn fetch_many(&self, table: Table, keys: Vec<&[u8]>) -> Result<HashMap<Vec<u8>, Arc<[u8]>>> {
        let reads = Seen::of_keys(keys.iter().map(|key| (table, key.to_vec())));
        let number = self.shared.tables.number(table);
        let heads: Vec<Vec<u8>> = keys.into_iter().map(|key| StoredKey::of(key).head).collect();
        let params: Params = vec![Box::new(number), Box::new(heads)];
        let rows = self.ask(Question::of(schema::GET_MANY, params), reads)?;
        let entry = |row: &Row| Ok((key_of(row)?, Arc::from(row.try_get::<_, &[u8]>(2)?)));
        rows.iter().map(entry).collect::<Result<_, Error>>().map_err(unreadable)
    }

    fn page(&self, table: Table, span: &Span, order: Order, limit: usize) -> Result<Vec<Row>> {
        if self.shared.cache.is_gap(&self.counts(), table, span) {
            if let Stage::Guess(seen) = &mut *self.stage.borrow_mut() {
                seen.spans.push((table, span.clone()));
            }
            return Ok(Vec::new());
        }
        let rows = self.fetch_page(table, span, order, limit)?;
        if rows.is_empty() {
            self.shared.cache.keep_gap(&self.counts(), table, span);
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
        let (start, end) = (StoredKey::of(&span.start), span.end.as_deref().map(StoredKey::of));
        let statement = schema::scan(end.is_some(), order == Order::Descending);
        let mut params: Params = vec![
            Box::new(self.shared.tables.number(table)),
            Box::new(start.head),
            Box::new(start.rest),
            Box::new(i64::try_from(limit).unwrap_or(i64::MAX)),
        ];
        if let Some(end) = end {
            params.push(Box::new(end.head));
            params.push(Box::new(end.rest));
        }
        let reads = Seen { spans: vec![(table, span.clone())], ..Seen::default() };
        self.ask(Question::of(statement, params), reads)
    }
}

impl Drop for View {
    fn drop(&mut self) {
        if let Stage::Begun(client) = mem::replace(self.stage.get_mut(), Stage::Over) {
            self.shared.server.end(client);
        }
    }
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View").field("mode", &self.mode).finish_non_exhaustive()
    }
}

impl Snapshot for &View {
    fn prefetch(&self, keys: &mut dyn Iterator<Item = (Table, Vec<u8>)>) -> Result<()> {
        let is_known = |table, key: &[u8]| self.known(table, key).is_some();
        let unknown = unknown(&self.counts(), keys, is_known);
        let columns = Columns::without_values(&self.shared.tables, &unknown);
        if columns.is_empty() {
            return Ok(());
        }
        let reads = Seen::of_keys(unknown.iter().cloned());
        let rows = self.ask(Question::of(schema::GET_WANTED, columns.into_keys()), reads)?;
        for (table, key, value) in values_of(&self.shared.tables, unknown, &rows)? {
            self.keep(table, &key, &value);
            self.prefetched.keep(table, key, value);
        }
        Ok(())
    }

    fn get(&self, table: Table, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let value = if let Some(value) = self.read(table, key) {
            value
        } else {
            let value = self.fetch(table, key)?;
            self.keep(table, key, &value);
            value
        };
        Ok(value.map(|value| visit(&value)).is_some())
    }

    fn get_many(&self, table: Table, keys: &[&[u8]], visit: &mut VisitValue<'_>) -> Result<()> {
        let known: Vec<Option<Value>> = keys.iter().map(|key| self.read(table, key)).collect();
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
