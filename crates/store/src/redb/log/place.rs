//! Places of logs: a file beside the database, or a storage of the host.

use std::fmt::Debug;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
#[cfg(unix)]
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use redb::StorageBackend;
use redb::backends::FileBackend;
#[cfg(target_os = "linux")]
use rustix::fs::{AtFlags, CWD, StatxFlags, makedev, statx};
#[cfg(target_os = "linux")]
use rustix::io::Errno;

use super::super::access::{private, take_over};

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

    /// Returns what another program has moved, deleted or replaced since the last call of
    /// [`create`](Self::create). It is asked when the store has locked its file, and before each batch, and
    /// has to be quick.
    fn lost(&self) -> Option<Loss> {
        None
    }
}

/// What is not in its place any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The log. The store makes another one.
    Log,
    /// The file beside the log. The store takes no more changes.
    File,
}

/// What the name of a log has behind the name of its file.
const SUFFIX: &str = "-log";

/// A log in a file of its own.
#[derive(Debug)]
pub(in crate::redb) struct LogFile {
    log: PathBuf,
    file: PathBuf,
    identity: Option<Identity>,
    /// The log that was made last.
    made: Mutex<Option<Identity>>,
}

impl LogFile {
    /// The log beside `file`, which is open and at `path`.
    pub(in crate::redb) fn beside(path: &Path, file: &File) -> Self {
        let identity = file.metadata().ok().as_ref().and_then(Identity::of);
        Self { log: name(path), file: path.to_owned(), identity, made: Mutex::default() }
    }

    /// Returns the error with the path of the log, which the operating system leaves out.
    fn named(&self, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("`{}`: {error}", self.log.display()))
    }
}

/// The name of the log that belongs to the file at `path`.
pub(in crate::redb) fn name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(SUFFIX);
    name.into()
}

/// The name of the file that a log at `path` belongs to. Returns `None` if `path` is not the name of a
/// log, or is no UTF-8.
pub(in crate::redb) fn file(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?.strip_suffix(SUFFIX)?;
    Some(path.with_file_name(name)).filter(|_| !name.is_empty())
}

impl LogPlace for LogFile {
    fn open(&self) -> io::Result<Option<Box<dyn StorageBackend>>> {
        match File::options().read(true).write(true).open(&self.log) {
            Ok(file) => storage(file).map(Some),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.named(&error)),
        }
    }

    fn create(&self) -> io::Result<Box<dyn StorageBackend>> {
        // The file that a link leads to belongs to another program.
        if fs::symlink_metadata(&self.log).is_ok_and(|there| there.is_symlink()) {
            self.remove()?;
        }
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(true);
        let file = private(&mut options).open(&self.log).map_err(|error| self.named(&error))?;
        // A log that fewer may read than the file does no harm.
        drop(fs::metadata(&self.file).and_then(|metadata| take_over(&file, &metadata)));
        sync_folder(&self.log)?;
        *self.made.lock() = file.metadata().ok().as_ref().and_then(Identity::of);
        storage(file)
    }

    fn remove(&self) -> io::Result<()> {
        match fs::remove_file(&self.log) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(self.named(&error)),
            _ => Ok(()),
        }
    }

    fn lost(&self) -> Option<Loss> {
        if self.identity.is_some_and(|identity| !identity.is_at(&self.file)) {
            return Some(Loss::File);
        }
        let made = *self.made.lock();
        made.is_some_and(|identity| !identity.is_at(&self.log)).then_some(Loss::Log)
    }
}

/// The number by which the operating system knows a file, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    file: u64,
}

impl Identity {
    #[cfg(unix)]
    #[expect(clippy::unnecessary_wraps, reason = "other systems have no such number")]
    fn of(file: &Metadata) -> Option<Self> {
        Some(Self { device: file.dev(), file: file.ino() })
    }

    #[cfg(not(unix))]
    fn of(_: &Metadata) -> Option<Self> {
        None
    }

    /// Returns `false` if there is another file at `path`, or none. An error of the operating system
    /// says nothing about that.
    fn is_at(self, path: &Path) -> bool {
        match Identity::at(path) {
            Ok(found) => found.is_none_or(|found| found == self),
            Err(error) => error.kind() != ErrorKind::NotFound,
        }
    }

    /// The identity of the file at `path`. Linux marks a file whose times are asked for, so that the next
    /// write changes them, which the sync behind it makes durable. So they are not asked for.
    #[cfg(target_os = "linux")]
    fn at(path: &Path) -> io::Result<Option<Self>> {
        match statx(CWD, path, AtFlags::empty(), StatxFlags::INO) {
            Ok(found) => {
                let device = makedev(found.stx_dev_major, found.stx_dev_minor);
                Ok(Some(Self { device, file: found.stx_ino }))
            }
            // A filter of system calls may not know it.
            Err(Errno::NOSYS | Errno::PERM) => Ok(Self::of(&fs::metadata(path)?)),
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn at(path: &Path) -> io::Result<Option<Self>> {
        Ok(Self::of(&fs::metadata(path)?))
    }
}

fn storage(file: File) -> io::Result<Box<dyn StorageBackend>> {
    Ok(Box::new(FileBackend::new(file).map_err(io::Error::other)?))
}

#[cfg(all(test, unix))]
thread_local! {
    /// Number of folders that this thread has synced.
    pub(in crate::redb) static SYNCED_FOLDERS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Makes the names in the folder of `path` durable. Other systems do so when they create a file.
#[cfg(unix)]
pub(in crate::redb) fn sync_folder(path: &Path) -> io::Result<()> {
    #[cfg(test)]
    SYNCED_FOLDERS.set(SYNCED_FOLDERS.get() + 1);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(not(unix))]
pub(in crate::redb) fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_to_the_same_identity_as_an_open_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shop.redb");
        let open = File::create(&path).unwrap();
        let identity = Identity::of(&open.metadata().unwrap());
        assert!(identity.is_some());
        assert_eq!(Identity::at(&path).unwrap(), identity);

        let other = folder.path().join("other.redb");
        File::create(&other).unwrap();
        assert_ne!(Identity::at(&other).unwrap(), identity);
        fs::rename(&other, &path).unwrap();
        assert!(!identity.is_some_and(|identity| identity.is_at(&path)));
        fs::remove_file(&path).unwrap();
        assert_eq!(Identity::at(&path).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
