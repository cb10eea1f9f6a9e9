//! An open database: commits, and the note about its log.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock};
use redb::{Builder, StorageError, Table as RedbTable, WriteTransaction};

use super::failure::{Failure, attempt};
use super::handle::Handle;
use super::key::{Bytes, bounded};
use super::medium::Medium;
use super::meta::{self, Note};
use super::view::{OpenDatabase, definition};
use crate::Table;
use crate::memtable::{Memtable, Position};

/// The database and its name.
pub(super) struct DatabaseFile {
    /// The present database. Another one takes its place after a failure of the disk.
    present: RwLock<Arc<OpenDatabase>>,
    /// Held by a commit, and while the file is opened again: a commit in the middle of which the file
    /// is opened again has no certain outcome.
    committing: Mutex<()>,
    medium: Arc<Medium>,
    /// Why the file stays closed: it could not be opened again, and not for want of room.
    closed: OnceLock<Failure>,
    cache_bytes: usize,
    pub(super) path: PathBuf,
}

/// What has become of a commit that is durable.
#[must_use]
pub(super) enum Durable {
    /// Snapshots show it.
    Shown,
    /// The present database shows the state before it, and the file could not be opened again.
    Hidden(Failure),
}

/// A key with its new value, or with `None` for its removal.
pub(super) type Row<'r> = (Table, &'r [u8], Option<&'r [u8]>);

/// A memtable that takes no more changes, on its way into the database.
#[derive(Clone)]
pub(super) struct Frozen {
    pub(super) memtable: Arc<Memtable>,
    /// What the database notes when it has all of the changes.
    pub(super) note: Note,
}

const REOPEN: &str = "open the file again";

type WriteTable<'t> = RedbTable<'t, Bytes, &'static [u8]>;

impl DatabaseFile {
    pub(super) fn new(database: Handle, medium: Arc<Medium>, path: PathBuf, cache: usize) -> Self {
        let present = RwLock::new(Arc::new(OpenDatabase::new(database)));
        let (committing, closed) = (Mutex::default(), OnceLock::new());
        Self { present, committing, medium, closed, cache_bytes: cache, path }
    }

    /// The present database.
    pub(super) fn present(&self) -> Arc<OpenDatabase> {
        Arc::clone(&self.present.read())
    }

    /// Returns `true` if the present database has seen an error of the disk. It then fails until the
    /// file is opened again.
    pub(super) fn has_failed(&self) -> bool {
        self.medium.trouble().is_some()
    }

    /// Opens the file again after the disk was full, on the last commit that is durable. redb reads
    /// all of the file, to check that the commit is whole. Snapshots that are being read are
    /// interrupted, and new ones wait.
    pub(super) fn reopen(&self) -> Result<(), Failure> {
        let _committing = self.committing.lock();
        let Some(trouble) = self.medium.trouble() else { return Ok(()) };
        let failure = Failure::of_disk(REOPEN, Arc::clone(&trouble));
        if !matches!(failure, Failure::Full { .. }) {
            return Err(failure);
        }
        self.replace(Some(trouble))
    }

    /// Puts another database in the place of the present one, which has seen `trouble`.
    fn replace(&self, trouble: Option<Arc<io::Error>>) -> Result<(), Failure> {
        let mut present = self.present.write();
        *present = self.open_again().inspect_err(|failure| {
            self.medium.keep(trouble);
            if !matches!(failure, Failure::Full { .. }) {
                self.closed.get_or_init(|| failure.clone());
            }
        })?;
        Ok(())
    }

    /// Why the file stays closed. Snapshots then show no more than redb has in memory.
    pub(super) fn closed(&self) -> Option<&Failure> {
        self.closed.get()
    }

    fn open_again(&self) -> Result<Arc<OpenDatabase>, Failure> {
        let view = attempt(REOPEN, || self.medium.renew().map_err(StorageError::Io))?;
        let mut builder = Builder::new();
        builder.set_cache_size(self.cache_bytes);
        // redb says so between the first and the second half when the last commit is not whole, and
        // would go on with the commit before it, which does not have all that was acknowledged.
        builder.set_repair_callback(|repair| {
            if (0.1..0.5).contains(&repair.progress()) {
                repair.abort();
            }
        });
        let opened = attempt(REOPEN, || builder.create_with_backend(view));
        let opened = opened.map_err(|failure| self.explained(failure))?;
        Ok(Arc::new(OpenDatabase::new(Handle::new(opened))))
    }

    /// The failure with its cause, if redb only says that there was one.
    pub(super) fn explained(&self, failure: Failure) -> Failure {
        match (failure, self.medium.trouble()) {
            (Failure::Refused { action, .. }, Some(trouble)) => Failure::of_disk(action, trouble),
            (failure, _) => failure,
        }
    }

    /// Makes the changes of `rows` and the note durable, or nothing.
    pub(super) fn commit<'r>(
        &self,
        rows: impl IntoIterator<Item = Row<'r>>,
        note: Option<&Note>,
    ) -> Result<Durable, Failure> {
        let _committing = self.committing.lock();
        let (present, version) = (self.present(), self.medium.version());
        let committed = present.commit(|database| {
            attempt("commit a transaction", || {
                let transaction = database.get()?.begin_write()?;
                make(&transaction, rows)?;
                if let Some(note) = note {
                    meta::write(&transaction, note)?;
                }
                Ok::<_, redb::Error>(transaction.commit()?)
            })
        });
        match committed {
            Ok(()) => {
                self.medium.drop_shortage();
                Ok(Durable::Shown)
            }
            // What redb does behind a commit has failed, such as making the file shorter. It may
            // show the state before the commit.
            Err(_) if self.medium.version() != version => {
                let replaced = self.replace(self.medium.trouble());
                Ok(replaced.map_or_else(Durable::Hidden, |()| Durable::Shown))
            }
            Err(failure) => Err(self.explained(failure)),
        }
    }

    /// Commits about `bytes` of the changes behind `position`. Returns where they end, or `None` if
    /// they were the last ones.
    ///
    /// The note is written with the last changes. Before that, and after a failure, the changes may be
    /// made again.
    pub(super) fn step(
        &self,
        frozen: &Frozen,
        position: Option<&Position>,
        bytes: usize,
    ) -> Result<Option<Position>, Failure> {
        let mut left = frozen.memtable.after(position).peekable();
        let (mut size, mut rows) = (0, Vec::new());
        while let Some(row @ (_, key, value)) = left.next_if(|_| size < bytes.max(1)) {
            size += key.len() + value.map_or(0, <[u8]>::len);
            rows.push(row);
        }
        let end = rows.last().map(|(table, key, _)| (*table, key.to_vec()));
        let end = end.filter(|_| left.peek().is_some());
        let note = if end.is_none() { Some(&frozen.note) } else { None };
        self.commit(rows, note)?.shown()?;
        Ok(end)
    }
}

impl Durable {
    /// Returns the failure of a commit that snapshots do not show.
    pub(super) fn shown(self) -> Result<(), Failure> {
        match self {
            Durable::Shown => Ok(()),
            Durable::Hidden(failure) => Err(failure),
        }
    }
}

fn make<'r>(
    transaction: &WriteTransaction,
    changes: impl IntoIterator<Item = Row<'r>>,
) -> Result<(), redb::Error> {
    let mut current: Option<(Table, WriteTable<'_>)> = None;
    for (table, key, value) in changes {
        let opened = match current.take() {
            Some((other, opened)) if other == table => opened,
            other => {
                drop(other);
                transaction.open_table(definition(table))?
            }
        };
        let (_, opened) = current.insert((table, opened));
        match value {
            Some(value) => drop(bounded(|| opened.insert(key, value))?),
            None => drop(bounded(|| opened.remove(key))?),
        }
    }
    Ok(())
}
