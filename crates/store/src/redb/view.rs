//! Views of a database: what it shows as of a commit. Snapshots share a view until the next commit.

use std::result;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use redb::{ReadOnlyTable, ReadTransaction, ReadableDatabase, TableDefinition, TableError};

use super::failure::{Failure, attempt};
use super::handle::Handle;
use super::key::Bytes;
use crate::Table;

/// A redb table of ours.
pub(super) type Definition = TableDefinition<'static, Bytes, &'static [u8]>;

/// A redb table of ours, for reading.
pub(super) type ReadTable = ReadOnlyTable<Bytes, &'static [u8]>;

/// The definition of `table`.
pub(super) const fn definition(table: Table) -> Definition {
    TableDefinition::new(table.name())
}

/// What the database shows as of a commit.
pub(super) struct View {
    // Opening a table costs as much as finding an entry in it.
    opened: [OnceLock<Option<ReadTable>>; Table::ALL.len()],
    transaction: ReadTransaction,
    // A database is closed behind its last view.
    _database: Arc<Handle>,
}

/// An open database, and the view that its next snapshot shows.
pub(super) struct OpenDatabase {
    database: Arc<Handle>,
    latest: Mutex<Option<Arc<View>>>,
}

impl View {
    fn now(database: &Arc<Handle>) -> result::Result<Self, Failure> {
        let transaction =
            attempt("take a snapshot", || Ok::<_, redb::Error>(database.get()?.begin_read()?))?;
        let opened = [const { OnceLock::new() }; Table::ALL.len()];
        Ok(Self { opened, transaction, _database: Arc::clone(database) })
    }

    /// Returns the rows of `table`. A table is created by the first commit that changes it. Until then
    /// there are none.
    pub(super) fn open(&self, table: Table) -> result::Result<Option<&ReadTable>, Failure> {
        // `Table::ALL` has a place for each table, in the order of their numbers.
        let Some(opened) = self.opened.get(table as usize) else { return Ok(None) };
        if let Some(rows) = opened.get() {
            return Ok(rows.as_ref());
        }
        let rows =
            attempt("open a table", || match self.transaction.open_table(definition(table)) {
                Err(TableError::TableDoesNotExist(_)) => Ok(None),
                opened => opened.map(Some),
            })?;
        Ok(opened.get_or_init(|| rows).as_ref())
    }
}

impl OpenDatabase {
    pub(super) fn new(database: Handle) -> Self {
        Self { database: Arc::new(database), latest: Mutex::default() }
    }

    pub(super) const fn database(&self) -> &Arc<Handle> {
        &self.database
    }

    /// Returns a view with every commit that has ended.
    pub(super) fn view(&self) -> result::Result<Arc<View>, Failure> {
        // The view is taken under the lock, so that the end of a commit finds it here.
        let mut latest = self.latest.lock();
        if let Some(view) = &*latest {
            return Ok(Arc::clone(view));
        }
        let view = Arc::new(View::now(&self.database)?);
        *latest = Some(Arc::clone(&view));
        Ok(view)
    }

    /// Runs a commit. The shared view is dropped before it, so that redb can use its pages again, and
    /// after it, so that later snapshots see the commit.
    pub(super) fn commit<T>(&self, commit: impl FnOnce(&Handle) -> T) -> T {
        self.forget();
        let committed = commit(&self.database);
        self.forget();
        committed
    }

    fn forget(&self) {
        let view = self.latest.lock().take();
        // Dropped behind the lock: the end of a view closes a transaction of redb.
        drop(view);
    }
}
