//! Errors between a record and the disk.

#[cfg(feature = "redb")]
use std::path::Path;
use std::path::PathBuf;
use std::{error, io};

use thiserror::Error;

use crate::sealing::KeyId;

/// Result of a store operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A store operation failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The backend could not carry out an action. The same call may succeed later.
    #[error("{backend} could not {action}: {source}")]
    Backend {
        /// The backend, as in `redb`.
        backend: &'static str,
        /// The action, as in `commit a transaction`.
        action: &'static str,
        /// The error of the backend.
        source: Box<dyn error::Error + Send + Sync>,
    },

    /// The backend refuses an action, and would again: a value that it does not take, a right that the role
    /// lacks, or a password that is wrong. A store of your own returns it for what needs a repair.
    #[error("{backend} could not {action}: {source}")]
    Refused {
        /// The backend, as in `PostgreSQL`.
        backend: &'static str,
        /// The action, as in `connect`.
        action: &'static str,
        /// The error of the backend.
        source: Box<dyn error::Error + Send + Sync>,
    },

    /// The server of the backend cannot be reached, has too much to do, or has broken off. Trying
    /// again later may help. If this is the error of a write, all of its changes are there or none.
    #[error("{backend} is not available: {source}")]
    Unavailable {
        /// The backend, as in `PostgreSQL`.
        backend: &'static str,
        /// The error of the connection.
        source: Box<dyn error::Error + Send + Sync>,
    },

    /// A stored record could not be read back. Either the file is damaged, or a newer version of
    /// this library wrote it.
    #[error("record in table `{table}` is not readable")]
    Corrupt {
        /// The table it lies in.
        table: &'static str,
        /// The error of decoding.
        source: Box<dyn error::Error + Send + Sync>,
    },

    /// The folder of the file does not exist.
    #[error("cannot open `{path}`: the folder `{folder}` does not exist")]
    NoFolder {
        /// The file.
        path: PathBuf,
        /// The folder.
        folder: PathBuf,
    },

    /// The file does not exist or is empty, and none is to be created.
    #[error("there is no notification store at `{path}`")]
    NoStore {
        /// The file.
        path: PathBuf,
    },

    /// The operating system does not let the file be read and written.
    #[error("`{path}` cannot be opened: {source}")]
    Unopenable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },

    /// The file is open already, in this process or in another.
    #[error("`{path}` is already open")]
    AlreadyOpen {
        /// The file.
        path: PathBuf,
    },

    /// The file is something else than a store. It was left as it is.
    #[error("`{path}` is not a notification store")]
    NotOurs {
        /// The file.
        path: PathBuf,
    },

    /// A newer version of this library wrote the file. It was left as it is.
    #[error("`{path}` has format {found}, and this version knows formats up to {supported}")]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// The format it was written with.
        found: u32,
        /// The newest format that this version knows.
        supported: u32,
    },

    /// An older version of this library wrote the file, in a format that this version does not
    /// read. It was left as it is.
    #[error("`{path}` has format {found}, and {supported} is the oldest that this version reads")]
    OlderFormat {
        /// The file.
        path: PathBuf,
        /// The format it was written with.
        found: u32,
        /// The oldest format that this version reads.
        supported: u32,
    },

    /// The file was in use when its process or the power failed, and its log is not beside it. The
    /// log has changes that the file does not have.
    #[error(
        "`{path}` cannot be opened without its log `{log}`, which is missing: put it back, or set \
         `discard_damaged_log` to do without its changes"
    )]
    LogMissing {
        /// The file.
        path: PathBuf,
        /// The log.
        log: PathBuf,
    },

    /// The log beside the file belongs to another file, or to an earlier copy of this one.
    #[error("`{log}` is not the log of `{path}`: move it to the file that it belongs to, or away")]
    ForeignLog {
        /// The file.
        path: PathBuf,
        /// The log.
        log: PathBuf,
    },

    /// Values are sealed with a key that the engine does not have.
    #[error("the store is sealed with key {key}, which the engine does not have: see `Keyring`")]
    MissingKey {
        /// The id of the key.
        key: KeyId,
    },

    /// The key of that id is another one than that which values are sealed with, or the mark of the key is
    /// damaged, and there is no record that the key opens. If you are sure of the key, open the store once
    /// with [`Keyring::trusted`](crate::sealing::Keyring::trusted).
    #[error(
        "key {key} is not the one that the store is sealed with, or the mark of the key is damaged: give the \
         right key, or see `Keyring::trusted`"
    )]
    WrongKey {
        /// The id of the key.
        key: KeyId,
    },

    /// Records of the store may be plain, and the keys are for one whose records are all sealed: see
    /// [`Keyring::sealed_only`](crate::sealing::Keyring::sealed_only). No `Engine::reseal` has finished, or
    /// a mark of a key is damaged or was removed.
    #[error(
        "records of the store may be plain: if they should be, open it without \
         `Keyring::sealed_only`, and call `Engine::reseal`"
    )]
    PlainRecords,

    /// The disk is full, or the file may not grow. The call has changed nothing, and reads go on. A
    /// later call that writes goes on by itself when there is room: the store tries again with the
    /// next call, after a pause of two seconds at most, or of as long as the last try took, up to ten seconds.
    #[error("`{path}` takes no changes until there is room on its disk: {source}")]
    StorageFull {
        /// The file.
        path: PathBuf,
        /// What could not be done.
        source: Box<Error>,
    },

    /// The file, its folder or its disk may only be read. Reads go on, if the file was open already.
    /// Make it writable, and open the file again.
    #[error("`{path}` cannot be changed: {source}: make it writable, and open it again")]
    ReadOnly {
        /// The file.
        path: PathBuf,
        /// What could not be done.
        source: Box<Error>,
    },

    /// The file was moved, deleted or replaced by another while it was open, and takes no changes. The
    /// changes since the last checkpoint are in the log beside its former place.
    #[error("`{path}` was moved, deleted or replaced while it was open, and takes no changes")]
    Replaced {
        /// The former place of the file.
        path: PathBuf,
    },

    /// The file was opened again while a snapshot of it was read, because its disk was full. The same
    /// call finds the new snapshot.
    #[error("`{path}` was opened again while it was read: {source}")]
    Interrupted {
        /// The file.
        path: PathBuf,
        /// The failure behind it.
        source: Box<dyn error::Error + Send + Sync>,
    },

    /// A failure of the disk has ended all commits. The same call fails until the file is opened
    /// again, which needs all clones of its handle to be dropped. Reads go on as far as the disk
    /// lets them.
    #[error("`{path}` takes no changes until it is opened again: {source}")]
    NeedsReopen {
        /// The file.
        path: PathBuf,
        /// The failure.
        source: Box<Error>,
    },

    /// A copy of a store would take the place of something. It was left as it is.
    #[error("`{path}` is there already, and a copy does not take its place")]
    TargetExists {
        /// What is there.
        path: PathBuf,
    },

    /// A copy of a store would overwrite the environments of another. They were left as they are.
    #[error("the store to copy to has environments already")]
    TargetInUse,

    /// The store to copy from has records and no environments, as an unfinished copy has: a copy writes its
    /// environments last. Call the backup or the copy again, which goes on with it. If a store has lost the
    /// records of its environments, `Engine::repair` makes others for them.
    #[error(
        "the store to copy from is an unfinished copy: it has records and no environments; make the copy again"
    )]
    UnfinishedCopy,

    /// A copy of a store was compared with its origin, and is another one.
    #[error("the copy of table `{table}` is not as its origin")]
    CopyDiffers {
        /// The table.
        table: &'static str,
    },

    /// The file or its log contradicts itself. With `discard_damaged_log` a damaged log is used as far
    /// as it is sound.
    #[error("`{path}` is damaged")]
    Damaged {
        /// The file or the log.
        path: PathBuf,
        /// The contradiction.
        source: Box<dyn error::Error + Send + Sync>,
    },
}

impl Error {
    /// Returns `true` if the same call may succeed later, without a repair by the caller.
    pub const fn is_retryable(&self) -> bool {
        match self {
            Error::StorageFull { .. }
            | Error::Interrupted { .. }
            | Error::Unavailable { .. }
            | Error::Backend { .. } => true,
            Error::Refused { .. }
            | Error::Corrupt { .. }
            | Error::NoFolder { .. }
            | Error::NoStore { .. }
            | Error::Unopenable { .. }
            | Error::AlreadyOpen { .. }
            | Error::NotOurs { .. }
            | Error::NewerFormat { .. }
            | Error::OlderFormat { .. }
            | Error::LogMissing { .. }
            | Error::ForeignLog { .. }
            | Error::MissingKey { .. }
            | Error::WrongKey { .. }
            | Error::PlainRecords
            | Error::ReadOnly { .. }
            | Error::Replaced { .. }
            | Error::NeedsReopen { .. }
            | Error::TargetExists { .. }
            | Error::TargetInUse
            | Error::UnfinishedCopy
            | Error::CopyDiffers { .. }
            | Error::Damaged { .. } => false,
        }
    }

    /// Returns the error of a file at `path` that the operating system refuses to open.
    #[cfg(feature = "redb")]
    pub(crate) fn of_opening(path: &Path, source: io::Error) -> Self {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        match folder {
            Some(folder) if source.kind() == io::ErrorKind::NotFound && !folder.exists() => {
                Error::NoFolder { path: path.to_owned(), folder: folder.to_owned() }
            }
            _ if is_read_only(&source) && !path.is_dir() => {
                let (backend, action) = ("redb", "open the file");
                let source = Error::Backend { backend, action, source: Box::new(source) };
                Error::ReadOnly { path: path.to_owned(), source: Box::new(source) }
            }
            _ => Error::Unopenable { path: path.to_owned(), source },
        }
    }
}

#[cfg(feature = "redb")]
fn is_read_only(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}
