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
    /// The backend could not carry out an action.
    #[error("{backend} could not {action}: {source}")]
    Backend {
        /// The backend, as in `redb`.
        backend: &'static str,
        /// The action, as in `commit a transaction`.
        action: &'static str,
        /// The error of the backend.
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
    #[error("`{path}` has format {found}, and this version reads format {supported}")]
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

    /// The key of that id is another one than that which values are sealed with, or the mark of the
    /// key is damaged.
    #[error("key {key} is not the one that the store is sealed with")]
    WrongKey {
        /// The id of the key.
        key: KeyId,
    },

    /// An earlier failure has ended all commits. Reads go on.
    #[error("`{path}` takes no changes until it is opened again: {source}")]
    Stopped {
        /// The file.
        path: PathBuf,
        /// The earlier failure.
        source: Box<Error>,
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
    /// Returns the error of a file at `path` that the operating system refuses to open.
    #[cfg(feature = "redb")]
    pub(crate) fn of_opening(path: &Path, source: io::Error) -> Self {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        match folder {
            Some(folder) if source.kind() == io::ErrorKind::NotFound && !folder.exists() => {
                Error::NoFolder { path: path.to_owned(), folder: folder.to_owned() }
            }
            _ => Error::Unopenable { path: path.to_owned(), source },
        }
    }
}
