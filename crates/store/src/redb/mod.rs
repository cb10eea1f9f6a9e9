//! A store in one file, kept by redb.
//!
//! Concurrent callers share a sync of the disk, as `group_commit` describes. Each call returns
//! `Ok` when its changes are durable, and not before.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};

use redb::StorageBackend;
use redb::backends::FileBackend;

use self::disk::{Disk, rows};
use self::failure::{Failure, attempt};
use self::handle::Handle;
use crate::group_commit::{Base, GroupCommit};
use crate::overlay::Changes;
use crate::{Error, ReadBody, Result, Store, WriteBody};

mod disk;
mod failure;
mod gate;
mod handle;
mod meta;
mod open;

/// A store in one file. No other process can open the file meanwhile.
pub struct RedbStore(GroupCommit<DatabaseFile>);

struct DatabaseFile {
    database: Handle,
    path: PathBuf,
}

/// Options of a [`RedbStore`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedbOptions {
    /// Size of the cache of pages, in bytes; 64 MiB by default.
    pub cache_bytes: usize,
    /// `true` to check every page of the file on opening; `false` by default. Without the check a
    /// damaged page is noticed on reading, if its content makes no sense.
    pub verify: bool,
}

impl Default for RedbOptions {
    fn default() -> Self {
        Self { cache_bytes: 64 << 20, verify: false }
    }
}

impl RedbStore {
    /// Opens the file at `path` with the default options, or creates it.
    ///
    /// # Errors
    ///
    /// As [`open_with`](Self::open_with).
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, &RedbOptions::default())
    }

    /// Opens the file at `path`, or creates it.
    ///
    /// # Errors
    ///
    /// [`Error::NoFolder`] if the folder of the file does not exist; [`Error::Unopenable`] if the
    /// operating system refuses for another reason; [`Error::AlreadyOpen`] if the file is
    /// open already; [`Error::NotOurs`], [`Error::NewerFormat`] or [`Error::Damaged`] if this
    /// version cannot use the file, which stays as it is.
    pub fn open_with(path: impl AsRef<Path>, options: &RedbOptions) -> Result<Self> {
        let path = path.as_ref();
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path);
        let file = file.map_err(|source| Error::of_opening(path, source))?;
        let storage = attempt("open the file", || FileBackend::new(file));
        Self::open_storage(storage.map_err(|failure| failure.at(path))?, path, options)
    }

    /// Opens the store in `storage`, or creates it. Errors name it `name`.
    ///
    /// # Errors
    ///
    /// As [`open_with`](Self::open_with).
    pub fn open_storage(
        storage: impl StorageBackend,
        name: impl Into<PathBuf>,
        options: &RedbOptions,
    ) -> Result<Self> {
        let path = name.into();
        let database = open::open(Box::new(storage), &path, options)?;
        Ok(Self(GroupCommit::new(DatabaseFile { database, path })))
    }
}

impl Store for RedbStore {
    fn read(&self, body: &mut ReadBody<'_>) -> Result<()> {
        self.0.read(body)
    }

    fn write(&self, body: &mut WriteBody<'_>) -> Result<()> {
        self.0.write(body)
    }
}

impl Base for DatabaseFile {
    type Snapshot<'s> = Disk<'s>;
    type Failure = Failure;

    fn snapshot(&self) -> Result<Disk<'_>> {
        Disk::now(&self.database, &self.path)
    }

    fn commit(&self, changes: &Changes) -> Result<(), Failure> {
        attempt("commit a transaction", || self.apply(changes))
    }

    fn error(&self, failure: Failure) -> Error {
        failure.at(&self.path)
    }
}

impl DatabaseFile {
    fn apply(&self, changes: &Changes) -> Result<(), redb::Error> {
        let transaction = self.database.get()?.begin_write()?;
        for (table, changes) in changes.tables() {
            let mut table = transaction.open_table(rows(table))?;
            for (key, change) in changes {
                match change {
                    Some(value) => drop(table.insert(key.as_slice(), value.as_slice())?),
                    None => drop(table.remove(key.as_slice())?),
                }
            }
        }
        Ok(transaction.commit()?)
    }
}

impl fmt::Debug for RedbStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedbStore").field("path", &self.0.base().path).finish_non_exhaustive()
    }
}
