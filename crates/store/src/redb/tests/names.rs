//! Opening a file whose name is of another one, or is not yet durable.

use std::fs::{self, File};
use std::ops::Bound;
use std::path::PathBuf;

use redb::backends::FileBackend;
use redb::{BackendError, StorageBackend};

use super::super::log::{LogFile, SYNCED_FOLDERS, name};
use super::super::{RedbOptions, RedbStore, unless_replaced};
use super::*;

/// A file in whose place another program puts another one, just before it is locked.
#[derive(Debug)]
struct Replaced {
    file: FileBackend,
    other: PathBuf,
    path: PathBuf,
}

/// Nothing but an opening makes the name durable if there is no log.
#[test]
fn each_opening_without_a_log_syncs_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.redb");
    let without = RedbOptions::default().log(None);
    drop(RedbStore::open(&path).unwrap());
    for opening in 1..3 {
        let before = SYNCED_FOLDERS.get();
        let store = RedbStore::open_with(&path, &without).unwrap();
        assert_eq!(SYNCED_FOLDERS.get() - before, 1, "opening {opening}");
        write(&store, b"ada").unwrap();
    }
}

/// A compaction ends between the opening of the file and its lock, and another caller uses the new file.
#[test]
fn a_file_that_is_replaced_before_it_is_locked_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let [path, other] = ["shop.redb", "other"].map(|name| folder.path().join(name));
    for path in [&path, &other] {
        drop(RedbStore::open(path).unwrap());
    }
    let log = name(&path);
    fs::write(&log, "the log of the other file").unwrap();
    let bytes = [fs::read(&path).unwrap(), fs::read(&other).unwrap()];
    let file = File::options().read(true).write(true).open(&path).unwrap();
    let place = Box::new(LogFile::beside(&path, &file));
    let old = folder.path().join("old");
    fs::hard_link(&path, &old).unwrap();
    let file = FileBackend::new(file).unwrap();
    let storage = Box::new(Replaced { file, other, path: path.clone() });

    let options = RedbOptions::default();
    let opened = RedbStore::open_parts(storage, Some(place), &path, &options);

    assert!(matches!(opened, Err(Error::Replaced { .. })), "{opened:?}");
    assert_eq!(fs::read_to_string(&log).unwrap(), "the log of the other file");
    assert!([fs::read(&old).unwrap(), fs::read(&path).unwrap()] == bytes, "a file was changed");
}

#[test]
fn a_file_that_was_replaced_is_opened_again_a_few_times() {
    let opened = |replaced: usize| {
        let mut tries = 0;
        let opened = unless_replaced(|| {
            tries += 1;
            if tries <= replaced { Err(Error::Replaced { path: "shop".into() }) } else { Ok(()) }
        });
        (tries, opened.is_ok())
    };
    assert_eq!([0, 1, 3, 4].map(opened), [(1, true), (2, true), (4, true), (4, false)]);
}

impl StorageBackend for Replaced {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        if self.other.exists() {
            fs::rename(&self.other, &self.path)?;
        }
        self.file.try_lock_range(start, end)
    }

    fn try_lock_shared_range(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
    ) -> Result<bool, BackendError> {
        self.file.try_lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.query_lock_range(start, end)
    }
}

/// The store with that name could not be opened beside the new file, of whose log it has the name.
#[cfg(unix)]
#[test]
fn a_link_to_a_file_whose_log_has_the_name_of_a_store_makes_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let [alias, file] = ["alias", "shop"].map(|name| folder.path().join(name));
    let store = name(&file);
    drop(RedbStore::open(&store).unwrap());
    std::os::unix::fs::symlink("shop", &alias).unwrap();

    let opened = RedbStore::open(&alias);

    assert!(matches!(opened, Err(Error::ForeignLog { .. })), "{opened:?}");
    assert!(!file.exists());
    drop(RedbStore::open(&store).unwrap());
}
