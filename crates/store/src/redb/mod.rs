//! A store that remembers: one file, kept by redb.
//!
//! What is special about it is group commit, which `queue.rs` tells about: callers share a sync of
//! the disk, and still nobody hears `Ok` before their changes are durable.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use redb::StorageBackend;
use redb::backends::FileBackend;

use self::changes::Changes;
use self::disk::Disk;
use self::failure::{Failure, attempt};
use self::handle::Handle;
use self::queue::{News, Queue, Ticket};
use self::transaction::Layered;
use crate::{Decision, Error, ReadBody, Result, Store, WriteBody};

mod changes;
mod disk;
mod failure;
mod gate;
mod handle;
mod meta;
mod open;
mod queue;
mod transaction;

/// Keeps everything in one file, which nobody else can open meanwhile.
pub struct RedbStore {
    database: Handle,
    path: PathBuf,
    queue: Mutex<Queue>,
}

/// How to open a [`RedbStore`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedbOptions {
    /// How many bytes of the file may be kept in memory.
    pub cache_bytes: usize,
    /// Whether to check every page of the file before it is used. Without, a page that was
    /// changed behind the store's back is found out when it makes no sense, and not before.
    pub verify: bool,
}

impl Default for RedbOptions {
    fn default() -> Self {
        Self { cache_bytes: 64 << 20, verify: false }
    }
}

impl RedbStore {
    /// Opens the file at `path`, or creates it. A file that is not a store is left as it is.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, &RedbOptions::default())
    }

    /// Opens the file at `path` in the way `options` say, or creates it.
    pub fn open_with(path: impl AsRef<Path>, options: &RedbOptions) -> Result<Self> {
        let path = path.as_ref();
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path);
        let file = file.map_err(|source| Error::Unopenable { path: path.to_owned(), source })?;
        let storage = attempt("open the file", || FileBackend::new(file));
        Self::open_storage(storage.map_err(|failure| failure.at(path))?, path, options)
    }

    /// Opens what lies in `storage`, which errors call `name`, or creates it there.
    pub fn open_storage(
        storage: impl StorageBackend,
        name: impl Into<PathBuf>,
        options: &RedbOptions,
    ) -> Result<Self> {
        let path = name.into();
        let database = open::open(Box::new(storage), &path, options)?;
        Ok(Self { database, path, queue: Mutex::default() })
    }

    fn wait(&self, ticket: &Ticket) -> Result<(), Failure> {
        match ticket.wait() {
            News::Lead => self.lead(),
            News::Over(outcome) => outcome,
        }
    }

    /// Commits the pending batch, which the caller waits for.
    fn lead(&self) -> Result<(), Failure> {
        let changes = self.queue.lock().take();
        let outcome = attempt("commit a transaction", || self.commit(&changes));
        self.queue.lock().settle(&outcome);
        outcome
    }

    fn commit(&self, changes: &Changes) -> Result<(), redb::Error> {
        let transaction = self.database.get()?.begin_write()?;
        changes.apply(&transaction)?;
        Ok(transaction.commit()?)
    }
}

impl Store for RedbStore {
    fn read(&self, body: &mut ReadBody<'_>) -> Result<()> {
        body(&Disk::now(&self.database, &self.path)?)
    }

    fn write(&self, body: &mut WriteBody<'_>) -> Result<()> {
        let mut queue = self.queue.lock();
        let mut transaction = Layered::new(queue.layers(), &self.database, &self.path);
        let changes = match body(&mut transaction)? {
            Decision::Commit => transaction.into_changes(),
            Decision::Abort => Changes::default(),
        };
        let ticket = queue.join(changes);
        drop(queue);
        let outcome = ticket.map_or(Ok(()), |ticket| self.wait(&ticket));
        outcome.map_err(|failure| failure.at(&self.path))
    }
}

impl fmt::Debug for RedbStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedbStore").field("path", &self.path).finish_non_exhaustive()
    }
}
