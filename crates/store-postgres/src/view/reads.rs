//! Reads of a view: from memory, or else from the server.

use std::iter;
use std::sync::Arc;

use foldhash::HashMap;
use store::{KeyRange, Order, Result, Snapshot, Table, Visit, VisitValue};
use tokio_postgres::{Error, Row};

use super::{Mode, QUESTIONS_WITHOUT_TRANSACTION, Stage, View};
use crate::Params;
use crate::cache::Value;
use crate::failure::Failure;
use crate::prefetched::unknown;
use crate::questions::Question;
use crate::scan::{Span, entries_of, key_of, scan, unreadable};
use crate::schema::{self, StoredKey};
use crate::seen::Seen;

/// Number of stale values that are read together at most.
const READ_AHEAD: usize = 128;

impl View {
    fn known(&self, table: Table, key: &[u8]) -> Option<Value> {
        let known = self.shared.cache.get(&self.counts(), table, key);
        known.or_else(|| self.prefetched.get(table, key))
    }

    /// A value in memory, which is read. Returns `None` if it is not there.
    fn read(&self, table: Table, key: &[u8]) -> Result<Option<Value>> {
        let mut known = self.known(table, key);
        if known.is_some() && self.is_unopened() {
            self.ask(None, Seen::default())?;
            known = self.known(table, key);
        }
        let Some(value) = known else { return Ok(None) };
        if value.is_some() {
            self.note_found(table, key);
        }
        if let Stage::Guess(seen) = &mut *self.stage.borrow_mut() {
            seen.keys.push((table, key.to_vec()));
        }
        Ok(Some(value))
    }

    fn is_unopened(&self) -> bool {
        matches!(&*self.stage.borrow(), Stage::Unopened)
    }

    pub(super) fn keep(&self, table: Table, key: &[u8], value: &Value) {
        if value.is_some() {
            self.note_found(table, key);
        }
        self.shared.cache.keep(&self.counts(), table, key, value);
    }

    /// Returns `true` if a key is likely to be new: no value was seen under it.
    pub(super) fn is_new(&self, table: Table, key: &[u8]) -> bool {
        let is_put = self.ahead().is_some_and(|ahead| ahead.changes.puts(table, key));
        let is_found = self.found.borrow().get(&table).is_some_and(|keys| keys.contains(key));
        !is_put && !is_found && !matches!(self.known(table, key), Some(Some(_)))
    }

    /// Notes for a commit that there is an entry, which the cache may forget before.
    fn note_found(&self, table: Table, key: &[u8]) {
        if let Mode::Write(_) = self.mode {
            self.found.borrow_mut().entry(table).or_default().insert(key.to_vec());
        }
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
        if self.may_ask_without_transaction() {
            self.read_without_transaction(table, &[key])?;
            return Ok(self.prefetched.get(table, key).flatten());
        }
        let reads = Seen::of_keys([(table, key.to_vec())]);
        let (number, key) = (self.shared.tables.number(table), StoredKey::of(key));
        let params: Params = vec![Box::new(number), Box::new(key.head), Box::new(key.hash)];
        let rows = self.ask(Some(Question::of(schema::GET, params)), reads)?;
        let value = rows.first().map(|row| row.try_get::<_, &[u8]>(0).map(Arc::from));
        value.transpose().map_err(unreadable)
    }

    fn fetch_many(&self, table: Table, keys: Vec<&[u8]>) -> Result<HashMap<Vec<u8>, Arc<[u8]>>> {
        if self.may_ask_without_transaction() {
            self.read_without_transaction(table, &keys)?;
            let found = |key: &[u8]| Some((key.to_vec(), self.prefetched.get(table, key)??));
            return Ok(keys.into_iter().filter_map(found).collect());
        }
        let reads = Seen::of_keys(keys.iter().map(|key| (table, key.to_vec())));
        let question = Question::for_entries(self.shared.tables.number(table), &keys);
        entries_of(&self.ask(Some(question), reads)?)
    }

    /// Asks for the first entry of a span, for the values that were noted, and for news, together with other
    /// readers.
    pub(super) fn read_with_others(
        &self,
        span: Option<(i16, Span)>,
        mut seen: Seen,
    ) -> Result<Vec<Row>, Failure> {
        let (known, noted) = (self.counts().clone(), self.take_noted());
        seen.add(Seen::of_keys(noted.iter().cloned()));
        let (read, first) = self.shared.reads.ask(&self.shared, &noted, span)?;
        if read.since.era != known.era {
            return Err(Failure::lost_commits());
        }
        self.check(&seen, known.with(&read.counts))?;
        seen.confirmed += 1;
        self.stage.replace(Stage::Guess(seen));
        for (table, key) in noted {
            let value = read.value(table, &key);
            self.keep(table, &key, &value);
            self.prefetched.keep(table, key, value);
        }
        Ok(first.into_iter().collect())
    }

    /// Returns `true` if the next question is asked without a transaction.
    fn may_ask_without_transaction(&self) -> bool {
        let is_guess = matches!(&*self.stage.borrow(), Stage::Guess(seen) if seen.confirmed < QUESTIONS_WITHOUT_TRANSACTION);
        is_guess && self.mode == Mode::Read
    }

    /// Reads values without a transaction.
    fn read_without_transaction(&self, table: Table, keys: &[&[u8]]) -> Result<()> {
        self.noted.borrow_mut().extend(keys.iter().map(|key| (table, key.to_vec())));
        self.ask(None, Seen::default()).map(drop)
    }

    fn page(&self, table: Table, span: &Span, order: Order, limit: usize) -> Result<Vec<Row>> {
        if !self.is_unopened() && self.shared.cache.is_gap(&self.counts(), table, span) {
            if let Stage::Guess(seen) = &mut *self.stage.borrow_mut() {
                seen.spans.push((table, span.clone()));
            }
            return Ok(Vec::new());
        }
        let rows = self.fetch_page(table, span, order, limit)?;
        if let Mode::Write(_) = self.mode {
            let keys = rows.iter().map(key_of).collect::<Result<Vec<_>, Error>>();
            self.found.borrow_mut().entry(table).or_default().extend(keys.map_err(unreadable)?);
        }
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
        let number = self.shared.tables.number(table);
        let question = Question::for_page(number, span, order, limit);
        let reads = Seen { spans: vec![(table, span.clone())], ..Seen::default() };
        self.ask(Some(question), reads)
    }

    /// Reads the values that were noted, if one of `keys` is among them.
    fn read_noted(&self, table: Table, keys: &[&[u8]]) -> Result<()> {
        let is_noted = |key: &&[u8]| self.noted.borrow().contains(&(table, key.to_vec()));
        if self.noted.borrow().is_empty() || !keys.iter().any(is_noted) {
            return Ok(());
        }
        self.ask(None, Seen::default()).map(drop)
    }
}

impl Snapshot for &View {
    fn era(&self) -> u64 {
        View::era(self)
    }

    fn prefetch(&self, keys: &mut dyn Iterator<Item = (Table, Vec<u8>)>) -> Result<()> {
        let is_known = |table, key: &[u8]| self.known(table, key).is_some();
        let keys: Vec<_> = keys.collect();
        // What is in memory may be stale, and is read with the others then.
        if self.is_unopened() && keys.iter().any(|(table, key)| is_known(*table, key)) {
            self.ask(None, Seen::default())?;
        }
        let unknown = unknown(&self.counts(), &mut keys.into_iter(), is_known);
        self.noted.borrow_mut().extend(unknown);
        Ok(())
    }

    fn get(&self, table: Table, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.read_noted(table, &[key])?;
        let value = if let Some(value) = self.read(table, key)? {
            value
        } else {
            let value = self.fetch(table, key)?;
            self.keep(table, key, &value);
            value
        };
        Ok(value.map(|value| visit(&value)).is_some())
    }

    fn get_many(&self, table: Table, keys: &[&[u8]], visit: &mut VisitValue<'_>) -> Result<()> {
        self.read_noted(table, keys)?;
        let known = keys.iter().map(|key| self.read(table, key)).collect::<Result<Vec<_>>>()?;
        let unknown = keys.iter().zip(&known).filter(|(_, known)| known.is_none());
        let unknown: Vec<&[u8]> = unknown.map(|(key, _)| *key).collect();
        let found =
            if unknown.is_empty() { HashMap::default() } else { self.fetch_many(table, unknown)? };
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
        let fitting = self.fitting.borrow().get(&table).copied();
        if let Some(fitting) = scan(page, (range, order, limit), fitting, visit)? {
            self.fitting.borrow_mut().insert(table, fitting);
        }
        Ok(())
    }
}
