//! A store in one file, kept by redb, and a redo log beside it.
//!
//! Concurrent callers share a sync of the disk, as `group_commit` describes. Each call returns
//! `Ok` when its changes are durable, and not before. A batch is a record in the log, and comes into
//! the file later and in larger parts. Without a log, a batch is a transaction of redb.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use redb::StorageBackend;
use redb::backends::FileBackend;

pub use self::backup::{backup, restore, restore_with};
use self::failure::attempt;
use self::log::LogFile;
pub use self::log::{LogPlace, Loss};
use self::logged::{Keeping, Logged, Logging};
pub use self::options::{AppliedBy, LogOptions, RedbOptions};
use crate::group_commit::GroupCommit;
use crate::transfer::Copied;
use crate::{Error, Progress, ReadBody, Result, Store, WriteBody};

mod access;
mod backup;
mod compaction;
mod database;
mod disk;
mod failure;
mod gate;
mod handle;
mod key;
mod log;
mod logged;
mod medium;
mod meta;
mod open;
mod options;
mod recovery;
mod unchanged;
mod view;

#[cfg(test)]
mod tests;

/// A store in one file. No other process can open the file meanwhile.
///
/// While the store is open, there is a log beside the file: `shop.redb-log` beside `shop.redb`. It has the
/// permissions of the file. The two belong together: a copy of one of them is of no use. When the store is
/// dropped, everything is in the file, and the log is gone. Dropping takes up to a second.
pub struct RedbStore(GroupCommit<Logged>);

impl RedbStore {
    /// Opens the file at `path` with the default options, or creates it.
    ///
    /// # Errors
    ///
    /// As [`open_with`](Self::open_with).
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, &RedbOptions::default())
    }

    /// Opens the file at `path`, or creates it unless [`create`](RedbOptions::create) is `false`. If
    /// `path` is a link, the log is beside the file that it leads to.
    ///
    /// A file of an older format gets the present one, and older versions of this library refuse it from
    /// then on. What it lacks is put by the operations that need it, in parts, or by a repair.
    ///
    /// # Errors
    ///
    /// [`Error::NoFolder`] if the folder of the file does not exist; [`Error::NoStore`] if the file does
    /// not exist or is empty, and is not to be created; [`Error::Unopenable`] if the
    /// operating system refuses for another reason, or if the name is that of the log of a file that is
    /// there, or ends with `-partial`, as that of an unfinished backup; [`Error::AlreadyOpen`] if the file
    /// is open already; [`Error::NotOurs`], [`Error::NewerFormat`], [`Error::OlderFormat`] or
    /// [`Error::Damaged`] if this version cannot use the file or its log; [`Error::LogMissing`] or
    /// [`Error::ForeignLog`] if the log beside the file is not the one that belongs to it;
    /// [`Error::Replaced`] if another program replaces the file again and again meanwhile. File and
    /// log stay as they are.
    pub fn open_with(path: impl AsRef<Path>, options: &RedbOptions) -> Result<Self> {
        backup::check_name_and_links(path.as_ref())?;
        Self::open_file(path.as_ref(), options, &mut File::options())
    }

    /// Opens the store as [`open_with`](Self::open_with) does, with more options for the file. It is opened again
    /// if a compaction or a backup gives its name to another one before it is locked.
    fn open_file(path: &Path, options: &RedbOptions, how: &mut OpenOptions) -> Result<Self> {
        unless_replaced(|| Self::try_open_file(path, options, how))
    }

    fn try_open_file(path: &Path, options: &RedbOptions, how: &mut OpenOptions) -> Result<Self> {
        if options.create && !path.exists() {
            // A file whose log cannot be made is not made either, also through a link that leads to no file.
            let links = backup::links(path);
            let log = log::name(links.last().map_or(path, PathBuf::as_path));
            match log.try_exists() {
                Ok(true) => return Err(Error::ForeignLog { path: path.to_owned(), log }),
                Err(source) if source.kind() == ErrorKind::InvalidFilename => {
                    return Err(Error::of_opening(&log, source));
                }
                Ok(false) | Err(_) => {}
            }
        }
        let file = how.read(true).write(true).create(options.create).truncate(false).open(path);
        let file = file.map_err(|source| {
            let is_missing = source.kind() == ErrorKind::NotFound;
            match Error::of_opening(path, source) {
                Error::Unopenable { path, .. } if is_missing && !options.create => {
                    Error::NoStore { path }
                }
                error => error,
            }
        })?;
        // The log is made and removed by its path while the store is open. It stays beside the file
        // if the process changes its folder, or if a link on the way is set to another folder.
        let path = path.canonicalize().map_err(|source| Error::of_opening(path, source))?;
        let path = path.as_path();
        // A log makes the name of the file durable together with its own, but only with the first write:
        // an earlier opening may have made the file, and not its name durable.
        if options.log.is_none() {
            log::sync_folder(path).map_err(|source| Error::of_opening(path, source))?;
        }
        let place = Box::new(LogFile::beside(path, &file));
        let storage = attempt("open the file", || FileBackend::new(file));
        let storage = storage.map_err(|failure| failure.at(path))?;
        Self::open_parts(Box::new(storage), Some(place), path, options)
    }

    /// Opens the store in `storage`, or creates it. Errors name it `name`. It has no log.
    ///
    /// # Errors
    ///
    /// As [`open_with`](Self::open_with).
    pub fn open_storage(
        storage: impl StorageBackend,
        name: impl Into<PathBuf>,
        options: &RedbOptions,
    ) -> Result<Self> {
        Self::open_parts(Box::new(storage), None, &name.into(), options)
    }

    /// Opens the store in `storage` with its log at `place`, or creates it. Errors name it `name`.
    ///
    /// # Errors
    ///
    /// As [`open_with`](Self::open_with).
    pub fn open_storage_with_log(
        storage: impl StorageBackend,
        place: impl LogPlace,
        name: impl Into<PathBuf>,
        options: &RedbOptions,
    ) -> Result<Self> {
        Self::open_parts(Box::new(storage), Some(Box::new(place)), &name.into(), options)
    }

    fn open_parts(
        storage: Box<dyn StorageBackend>,
        place: Option<Box<dyn LogPlace>>,
        path: &Path,
        options: &RedbOptions,
    ) -> Result<Self> {
        let (file, note) = open::open(storage, path, options, place.as_deref())?;
        let keeping = match (place, options.log.clone()) {
            (Some(place), Some(options)) => Keeping::Log(Logging { place, options }),
            (place, _) => Keeping::Directly(place),
        };
        Ok(Self(GroupCommit::new(Logged::new(file, note, keeping))))
    }

    /// Makes the file at `path` anew, with nothing but its entries: it is as small as it can be, and
    /// has no bytes of what was removed. The log is applied before. Nobody may have the file open.
    /// The copy is beside the file until it is whole, as `shop.redb-compact-partial` for `shop.redb`, and
    /// needs as much space. It then has the permissions of the file, and its owner if the process may
    /// give files away.
    ///
    /// # Errors
    ///
    /// As [`open_with`](Self::open_with). [`Error::Backend`] if the disk fails; the file is as it
    /// was then.
    pub fn compact(path: impl AsRef<Path>) -> Result<Copied> {
        Self::compact_with(path, |_| ControlFlow::Continue(()))
    }

    /// [`compact`](Self::compact) that tells `progress` about each megabyte, and ends if `progress`
    /// breaks. The file is as it was then.
    ///
    /// # Errors
    ///
    /// As [`compact`](Self::compact).
    pub fn compact_with(
        path: impl AsRef<Path>,
        mut progress: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Copied> {
        compaction::compact(path.as_ref(), &mut progress)
    }

    /// Applies the log to the file, and removes the log. The file alone is then the whole store,
    /// until the next call that writes.
    ///
    /// # Errors
    ///
    /// [`Error::StorageFull`] if the disk is full; [`Error::NeedsReopen`] if it fails otherwise, or
    /// has failed before; [`Error::ReadOnly`] and [`Error::Replaced`] as for calls that write.
    pub fn checkpoint(&self) -> Result<()> {
        let base = self.0.base();
        base.checkpoint().map_err(|failure| failure.at(&base.file().path))
    }
}

/// Opens a file, so many times at most as another one has got its name meanwhile.
fn unless_replaced<T>(mut open: impl FnMut() -> Result<T>) -> Result<T> {
    const TRIES: usize = 4;
    for _ in 1..TRIES {
        match open() {
            Err(Error::Replaced { .. }) => {}
            opened => return opened,
        }
    }
    open()
}

impl Store for RedbStore {
    fn read(&self, body: &mut ReadBody<'_>) -> Result<()> {
        self.0.read(body)
    }

    fn write(&self, body: &mut WriteBody<'_>) -> Result<()> {
        self.0.write(body)
    }
}

impl fmt::Debug for RedbStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.0.base().file().path;
        f.debug_struct("RedbStore").field("path", path).finish_non_exhaustive()
    }
}
