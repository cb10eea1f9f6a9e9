//! Changes in a transaction of the host.

use std::cell::RefCell;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use foldhash::HashMap;
use store::overlay::{Changes, Overlay};
use store::{
    Decision, HostTransaction, KeyRange, Order, Result, Scoped, Snapshot, Table, Visit, VisitValue,
    WriteBody, WriteScope,
};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use crate::cache::Value;
use crate::commit::CommitId;
use crate::commit_news::CommitNews;
use crate::failure::Failure;
use crate::heads::{Counts, Lock};
use crate::hidden::Hidden;
use crate::prefetched::{Prefetched, unknown, values_of};
use crate::questions::Question;
use crate::rows::{Columns, Note, Rows};
use crate::scan::{Span, entries_of, scan};
use crate::schema;
use crate::{PostgresStore, Shared};

/// Parameters of a statement, with their types. A statement with types takes one round trip, and
/// leaves nothing in the connection of the host.
pub type TypedParams = Vec<(Param, Type)>;

pub(crate) type Param = Box<dyn ToSql + Send + Sync>;

/// Parameters of a statement.
pub(crate) type Params = Vec<Param>;

/// Types of the parameters of statements on keys, of [`schema::GET_MANY`], of a page of a scan, of
/// [`schema::PRUNE`], and of [`schema::WRITE`].
const KEYS: [Type; 3] = [Type::INT2_ARRAY, Type::BYTEA_ARRAY, Type::BYTEA_ARRAY];
const ENTRIES: [Type; 2] = [Type::INT2, Type::BYTEA_ARRAY];
const PAGE: [Type; 6] =
    [Type::INT2, Type::BYTEA, Type::BYTEA, Type::INT8, Type::BYTEA, Type::BYTEA];
const PRUNE: [Type; 3] = [Type::INT2_ARRAY, Type::INT8_ARRAY, Type::INT8];
const WRITE: [Type; 18] = [
    Type::INT2_ARRAY,
    Type::INT8_ARRAY,
    Type::BYTEA_ARRAY,
    Type::BYTEA,
    Type::TIMESTAMPTZ,
    Type::INT2_ARRAY,
    Type::BYTEA_ARRAY,
    Type::BYTEA_ARRAY,
    Type::BYTEA_ARRAY,
    Type::BYTEA_ARRAY,
    Type::INT2_ARRAY,
    Type::BYTEA_ARRAY,
    Type::BYTEA_ARRAY,
    Type::BYTEA_ARRAY,
    Type::BYTEA_ARRAY,
    Type::INT2_ARRAY,
    Type::BYTEA_ARRAY,
    Type::BYTEA_ARRAY,
];

/// An error of a connection of the host: a [`tokio_postgres::Error`], or one that means that the
/// connection is lost.
pub type HostError = Box<dyn StdError + Send + Sync>;

/// A connection of the host that is in a transaction. It belongs to the database of the store.
///
/// [`PostgresStore::within`] is for one of `tokio-postgres`. A transaction of the crate `postgres` has
/// the same types:
///
/// ```ignore
/// struct Mine<'t, 'c>(&'t mut postgres::Transaction<'c>);
///
/// impl HostConnection for Mine<'_, '_> {
///     fn query(&mut self, statement: &str, params: TypedParams) -> Result<Vec<Row>, HostError> {
///         let params: Vec<_> =
///             params.iter().map(|(it, of)| (&**it as &(dyn ToSql + Sync), of.clone())).collect();
///         Ok(self.0.query_typed(statement, &params)?)
///     }
/// }
/// ```
pub trait HostConnection {
    /// Runs a statement, and returns its rows.
    ///
    /// # Errors
    ///
    /// That of the server, by which the store tells whether another try may help.
    fn query(&mut self, statement: &str, params: TypedParams) -> Result<Vec<Row>, HostError>;
}

/// A transaction of the host that takes changes of a store. See [`PostgresStore::join`].
pub struct Joined<'h> {
    store: PostgresStore,
    host: &'h mut dyn HostConnection,
}

impl PostgresStore {
    /// Lets operations make their changes in a transaction of the host, such as
    /// `env.events().trigger_in(&mut store.join(&mut connection), &trigger)`. The host commits it.
    ///
    /// The transaction may have any isolation level. Above `READ COMMITTED`, an operation fails with a
    /// retryable error if another one has changed the environment meanwhile.
    ///
    /// An operation locks its environment until the transaction ends, and all environments if it turns
    /// out to touch others. Transactions of several operations may therefore wait for each other in a
    /// circle, which the server ends by failing one of them (`40P01`). After a retryable error, the host
    /// rolls back and runs the whole transaction again.
    pub fn join<'h>(&self, host: &'h mut dyn HostConnection) -> Joined<'h> {
        Joined { store: self.clone(), host }
    }
}

impl HostTransaction for Joined<'_> {
    fn write_within(&mut self, scope: WriteScope, body: &mut WriteBody<'_>) -> Result<()> {
        if self.run(scope, body)? {
            return Ok(());
        }
        self.run(WriteScope::Everything, body).map(drop)
    }
}

impl Joined<'_> {
    /// Returns `false` if the body has left its scope.
    fn run(&mut self, scope: WriteScope, body: &mut WriteBody<'_>) -> Result<bool> {
        let view = View::begin(&self.store.shared, &mut *self.host, Lock::of(scope))?;
        let mut transaction =
            Overlay::new(Vec::new(), || Ok(&view)).in_era(view.counts.era.number());
        let mut scoped = Scoped::new(&mut transaction, scope);
        let decision = body(&mut scoped);
        let has_left = scoped.has_left();
        let changes = transaction.into_changes();
        if let Some(failure) = view.failed.take() {
            return Err(failure.into());
        }
        if has_left {
            return Ok(false);
        }
        if decision? == Decision::Commit && !changes.is_empty() {
            view.put(&changes)?;
        }
        Ok(true)
    }
}

impl fmt::Debug for Joined<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Joined").field("store", &self.store).finish_non_exhaustive()
    }
}

/// The transaction of the host, whose heads are locked.
struct View<'h> {
    shared: &'h Arc<Shared>,
    host: RefCell<&'h mut dyn HostConnection>,
    counts: Counts,
    failed: RefCell<Option<Failure>>,
    prefetched: Prefetched,
}

impl<'h> View<'h> {
    fn begin(
        shared: &'h Arc<Shared>,
        host: &'h mut dyn HostConnection,
        lock: Lock,
    ) -> Result<Self, Failure> {
        let known = shared.cache.counts();
        let params: TypedParams = vec![(Box::new(lock.numbers()), Type::INT2_ARRAY)];
        let rows = host
            .query(&schema::qualified(schema::LOCK, &shared.schema), params)
            .map_err(Failure::of_host)?;
        let news = CommitNews::of_locked(&rows)?;
        let mut era = known.era;
        if !news.goes_on_from(&known) {
            shared.cache.end(era, news.start);
            era = shared.cache.counts().era;
        }
        let (host, failed) = (RefCell::new(host), RefCell::default());
        let (counts, prefetched) = (Counts::of(era).with(&news.counts), Prefetched::default());
        Ok(Self { shared, host, counts, failed, prefetched })
    }

    fn query(&self, statement: &str, params: TypedParams) -> Result<Vec<Row>, Failure> {
        let statement = schema::qualified(statement, &self.shared.schema);
        let answer = self.host.borrow_mut().query(&statement, params);
        answer.map_err(Failure::of_host)
    }

    fn read(&self, statement: &str, params: TypedParams) -> Result<Vec<Row>> {
        if let Some(failure) = &*self.failed.borrow() {
            return Err(failure.clone().into());
        }
        let rows = self.query(statement, params);
        Ok(rows.inspect_err(|failure| *self.failed.borrow_mut() = Some(failure.clone()))?)
    }

    /// What others have committed. The cache gets nothing: the host may roll back what is read here.
    fn known(&self, table: Table, key: &[u8]) -> Option<Value> {
        let known = self.shared.cache.get(&self.counts, table, key);
        known.or_else(|| self.prefetched.get(table, key))
    }

    fn number(&self, table: Table) -> i16 {
        self.shared.tables.number(table)
    }

    fn fetch(&self, table: Table, keys: &[&[u8]]) -> Result<HashMap<Vec<u8>, Arc<[u8]>>> {
        let question = Question::for_entries(self.number(table), keys);
        entries_of(&self.read(question.statement, typed(question.params, ENTRIES))?)
    }

    /// Makes `changes` a part of the transaction.
    fn put(&self, changes: &Changes) -> Result<(), Failure> {
        // A key that is taken for new, and is not, would fail the transaction of the host.
        let rows = Rows::of(&self.shared.tables, changes, |_, _| false);
        let note = Note::of(&self.shared.tables, &self.counts, changes)?;
        let id = CommitId::new()?;
        let kept = self.shared.commits_kept.cast_signed();
        let is_pruned = note.is_followed_by_pruning(kept);
        let (heads, numbers) = (note.heads, note.numbers);
        let mut write: Params = vec![
            Box::new(heads.clone()),
            Box::new(numbers.clone()),
            Box::new(note.keys),
            Box::new(id.bytes().to_vec()),
            Box::new(self.counts.era.start),
        ];
        write.extend(rows.puts.into_put());
        write.extend(rows.added.into_put());
        write.extend(rows.deletes.into_keys());
        let written = self.query(schema::WRITE, typed(write, WRITE))?;
        let written = written.first().map(|row| row.try_get::<_, i64>(0)).transpose();
        let written = written.map_err(|error| Failure::of("write entries", error))?;
        // The heads are locked.
        let written = written.and_then(|written| usize::try_from(written).ok());
        if written != Some(heads.len()) {
            return Err(Failure::lost_commits());
        }
        if is_pruned {
            let params: Params = vec![Box::new(heads), Box::new(numbers), Box::new(kept)];
            self.query(schema::PRUNE, typed(params, PRUNE))?;
        }
        Ok(())
    }
}

impl Snapshot for &View<'_> {
    fn era(&self) -> u64 {
        self.counts.era.number()
    }

    fn prefetch(&self, keys: &mut dyn Iterator<Item = (Table, Vec<u8>)>) -> Result<()> {
        let unknown = unknown(&self.counts, keys, |table, key| self.known(table, key).is_some());
        let columns = Columns::without_values(&self.shared.tables, &unknown);
        if columns.is_empty() {
            return Ok(());
        }
        let rows = self.read(schema::GET_WANTED, typed(columns.into_keys(), KEYS))?;
        for (table, key, value) in values_of(&self.shared.tables, unknown, &rows)? {
            self.prefetched.keep(table, key, value);
        }
        Ok(())
    }

    fn get(&self, table: Table, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let mut is_there = false;
        self.get_many(table, &[key], &mut |value| {
            is_there = value.map(&mut *visit).is_some();
        })?;
        Ok(is_there)
    }

    fn get_many(&self, table: Table, keys: &[&[u8]], visit: &mut VisitValue<'_>) -> Result<()> {
        let known: Vec<Option<Value>> = keys.iter().map(|key| self.known(table, key)).collect();
        let is_known = known.iter().all(Option::is_some);
        let found = if is_known { HashMap::default() } else { self.fetch(table, keys)? };
        for (key, known) in keys.iter().zip(known) {
            visit(known.unwrap_or_else(|| found.get(*key).cloned()).as_deref());
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
        let page = |span: &Span, limit: usize| {
            let question = Question::for_page(self.number(table), span, order, limit);
            self.read(question.statement, typed(question.params, PAGE))
        };
        scan(page, (range, order, limit), None, visit).map(drop)
    }
}

fn typed<const N: usize>(params: Params, types: [Type; N]) -> TypedParams {
    // The host may log them.
    let hidden = params.into_iter().map(|param| Box::new(Hidden(param)) as Param);
    hidden.zip(types).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_host_logs_has_no_value() {
        let params: Params = vec![Box::new(b"canary".to_vec()), Box::new("canary")];
        let shown = format!("{:?}", typed(params, [Type::BYTEA, Type::TEXT]));
        assert!(!shown.contains("canary") && !shown.contains("99, 97"), "{shown}");
    }
}
