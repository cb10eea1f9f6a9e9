//! Places of logs: a file beside the database, or a storage of the host.

use std::fmt::Debug;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use redb::StorageBackend;
use redb::backends::FileBackend;

/// The place of a log, for stores in a [`StorageBackend`] of the host.
///
/// Only the store that has the backend open uses the place.
pub trait LogPlace: Debug + Send + Sync + 'static {
    /// Opens the log. Returns `None` if there is none.
    fn open(&self) -> io::Result<Option<Box<dyn StorageBackend>>>;

    /// Creates an empty log, in place of the one before. On return its name is durable.
    fn create(&self) -> io::Result<Box<dyn StorageBackend>>;

    /// Removes the log, if there is one. A removal may be lost in a power cut.
    fn remove(&self) -> io::Result<()>;
}

/// A log in a file of its own.
#[derive(Debug)]
pub(in crate::redb) struct LogFile(PathBuf);

impl LogFile {
    /// The log beside the file at `path`.
    pub(in crate::redb) fn beside(path: &Path) -> Self {
        Self(name(path))
    }

    /// Returns the error with the path of the log, which the operating system leaves out.
    fn named(&self, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("`{}`: {error}", self.0.display()))
    }
}

/// The name of the log that belongs to the file at `path`.
pub(in crate::redb) fn name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-log");
    name.into()
}

impl LogPlace for LogFile {
    fn open(&self) -> io::Result<Option<Box<dyn StorageBackend>>> {
        match File::options().read(true).write(true).open(&self.0) {
            Ok(file) => storage(file).map(Some),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.named(&error)),
        }
    }

    fn create(&self) -> io::Result<Box<dyn StorageBackend>> {
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(true).open(&self.0);
        let file = file.map_err(|error| self.named(&error))?;
        sync_folder(&self.0)?;
        storage(file)
    }

    fn remove(&self) -> io::Result<()> {
        match fs::remove_file(&self.0) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(self.named(&error)),
            _ => Ok(()),
        }
    }
}

fn storage(file: File) -> io::Result<Box<dyn StorageBackend>> {
    Ok(Box::new(FileBackend::new(file).map_err(io::Error::other)?))
}

/// Makes the names in the folder of `path` durable. Other systems do so when they create a file.
#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}
