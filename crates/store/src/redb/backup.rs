//! Backups: a file with one snapshot of a store, and no log beside it.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::iter;
use std::ops::{Bound, ControlFlow};
#[cfg(unix)]
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use redb::backends::FileBackend;
use redb::{DatabaseError, StorageBackend, StorageError};

use super::access::private;
#[cfg(unix)]
use super::access::{is_private, takes_permissions};
use super::failure::attempt;
use super::gate::Gate;
use super::log::{self, sync_folder};
use super::unchanged::Unchanged;
use super::{RedbOptions, RedbStore};
use crate::transfer::{Copied, check_source, copy_snapshot, has_all_of};
use crate::{Error, OnProgress, Progress, Result, Snapshot, Store, run};

/// Copies one snapshot of `store` into a new file at `path`, while others read and write `store`. The
/// file needs no log, and [`RedbStore::open`] takes it. On Unix it is readable for its owner alone, as it
/// has all secrets of the store. A file system without permissions leaves that to its folder.
///
/// Until it is complete, compared and synced, the copy is beside `path`, as `shop.redb-partial` for
/// `shop.redb`. A backup that was interrupted leaves that name only. The next one goes on with it if all of its
/// entries are still those of `store`, and removes it otherwise. `progress` is called after each megabyte, and
/// ends the backup if it breaks.
///
/// # Errors
///
/// [`Error::TargetExists`] if there is something at `path`; [`Error::Unopenable`] if `path` is the name of
/// the log of a file that is there, or of an unfinished backup; [`Error::AlreadyOpen`] if another backup to
/// `path` is under way; [`Error::StorageFull`], which removes the part, if there is no room;
/// [`Error::Replaced`] if the part was deleted or replaced meanwhile; [`Error::CopyDiffers`] if the copy is
/// not as its origin; otherwise the errors of `store`, and those of [`RedbStore::open`] for the new file.
pub fn backup(
    store: &dyn Store,
    path: impl AsRef<Path>,
    mut progress: impl FnMut(Progress) -> ControlFlow<()>,
) -> Result<Copied> {
    back_up(store, path.as_ref(), &mut progress)
}

/// [`backup`] with a function that is not generic.
fn back_up(store: &dyn Store, path: &Path, progress: &mut OnProgress<'_>) -> Result<Copied> {
    if path.file_name().is_none() {
        return Err(Error::of_opening(path, ErrorKind::InvalidFilename.into()));
    }
    for taken in [path.to_owned(), log::name(path)] {
        if taken.symlink_metadata().is_ok() {
            return Err(Error::TargetExists { path: taken });
        }
    }
    check_name(path)?;
    let partial = partial(path);
    // The part is locked until it has its name, so that no other backup goes on with it.
    let (copied, part) = write_part(store, &partial, progress).inspect_err(|error| {
        if matches!(error, Error::StorageFull { .. }) {
            drop(fs::remove_file(&partial));
        }
    })?;
    if copied.is_finished {
        part.checkpoint()?;
        publish(&partial, path).map_err(|source| match source.kind() {
            ErrorKind::AlreadyExists => Error::TargetExists { path: path.to_owned() },
            _ => Error::of_opening(path, source),
        })?;
    }
    Ok(copied)
}

/// Checks every page of the backup at `from`, and copies it to `to`, which is a new file. On Unix that is
/// readable and writable for its owner alone. The backup stays as it is, and may be read-only. If it is a
/// copy with a log beside it, the log is used up.
///
/// ```
/// use std::ops::ControlFlow;
/// use tidings_store::redb::{RedbStore, backup, restore};
///
/// # let folder = tempfile::tempdir()?;
/// # let (shop, copy) = (folder.path().join("shop.redb"), folder.path().join("copy.redb"));
/// let store = RedbStore::open(&shop)?;
/// let copied = backup(&store, &copy, |_| ControlFlow::Continue(()))?;
/// assert!(copied.is_finished);
/// # drop(store);
/// # std::fs::remove_file(&shop)?;
/// assert!(restore(&copy, &shop)?.is_finished);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`Error::Damaged`] if a page of the backup is damaged; [`Error::NotOurs`] if it is no store;
/// [`Error::Unopenable`] if it cannot be read, or is a folder; [`Error::UnfinishedCopy`] if it is the part of
/// an unfinished backup; otherwise as [`backup`].
pub fn restore(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<Copied> {
    restore_with(from, to, |_| ControlFlow::Continue(()))
}

/// [`restore`] that calls `progress` after each megabyte, and ends if `progress` breaks. The next call
/// goes on with what is there then.
///
/// # Errors
///
/// As [`restore`].
pub fn restore_with(
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
    mut progress: impl FnMut(Progress) -> ControlFlow<()>,
) -> Result<Copied> {
    let source = open_backup(from.as_ref())?;
    run::read(&source, |snapshot| check_source(snapshot))?;
    back_up(&source, to.as_ref(), &mut progress)
}

/// Opens the backup at `from` and checks its pages.
fn open_backup(from: &Path) -> Result<RedbStore> {
    // A log is beside the file that a link leads to.
    let found = from.canonicalize();
    let from = &found.map_err(|source| Error::of_opening(from, source))?;
    // A copy that was cut off is not an empty store.
    let options = RedbOptions::default().create(false).verify(true);
    let opened = if log::name(from).exists() {
        RedbStore::open_with(from, &options)
    } else {
        unchanged(from).and_then(|file| RedbStore::open_storage(file, from, &options))
    };
    opened.map_err(|error| match error {
        Error::NoStore { path } => Error::NotOurs { path },
        error => error,
    })
}

/// The file at `path`, which may be read-only. What redb changes is kept in memory.
fn unchanged(path: &Path) -> Result<Gate> {
    let unopenable = |source| Error::Unopenable { path: path.to_owned(), source };
    let file = File::open(path).map_err(unopenable)?;
    if file.metadata().map_err(unopenable)?.is_dir() {
        return Err(unopenable(ErrorKind::IsADirectory.into()));
    }
    let held = attempt("open the file", || {
        let file = Unchanged(FileBackend::new(file)?);
        Ok::<_, DatabaseError>(Gate::before(Box::new(file)).map_err(StorageError::Io)?)
    });
    held.map_err(|failure| failure.at(path))
}

/// Copies one snapshot of `store` into the file at `partial`, or goes on with that.
pub(super) fn write_part(
    store: &dyn Store,
    partial: &Path,
    progress: &mut OnProgress<'_>,
) -> Result<(Copied, RedbStore)> {
    run::read(store, |snapshot| {
        let part = part_of(snapshot, partial)?;
        Ok((copy_snapshot(snapshot, &part, progress)?, part))
    })
}

/// Opens the part of a copy of `snapshot`. A part with other entries is not used: its free pages would keep
/// the bytes of what was removed or sealed since. Nor is a file that a backup cannot have left.
fn part_of(snapshot: &dyn Snapshot, partial: &Path) -> Result<RedbStore> {
    let options = RedbOptions::default().log(None);
    let open = |options: &RedbOptions| {
        RedbStore::open_file(partial, options, private(&mut File::options()))
    };
    let remove = || fs::remove_file(partial).map_err(|source| Error::of_opening(partial, source));
    remove_other(partial)?;
    match open(&options.clone().verify(true)) {
        Ok(part) if run::read(&part, |rows| has_all_of(snapshot, rows))? => return Ok(part),
        // A part of another moment or another version, or one that a power cut has left.
        Ok(_)
        | Err(
            Error::Damaged { .. }
            | Error::NewerFormat { .. }
            | Error::OlderFormat { .. }
            | Error::NotOurs { .. },
        ) => remove()?,
        Err(error) => return Err(error),
    }
    open(&options)
}

/// Removes what is at `partial` if no backup can have left it. What another backup is writing stays.
fn remove_other(partial: &Path) -> Result<()> {
    let Ok(found) = partial.symlink_metadata() else { return Ok(()) };
    // A link would be followed, and a pipe waits for its other end.
    let file = if found.is_file() { File::options().write(true).open(partial).ok() } else { None };
    // It is locked until it is removed, so that no backup goes on with it.
    let is_part = match &file {
        Some(file) if is_held(file) => {
            return Err(Error::AlreadyOpen { path: partial.to_owned() });
        }
        Some(file) => is_part_of(file),
        None => is_part(&found),
    };
    if is_part {
        return Ok(());
    }
    match fs::remove_file(partial) {
        // Another backup has removed it, or has given it its name.
        Err(source) if source.kind() != ErrorKind::NotFound => {
            Err(Error::of_opening(partial, source))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Locks `file` as an open store does. Returns `true` if a store is open there.
fn is_held(file: &File) -> bool {
    let whole = (Bound::Unbounded, Bound::Unbounded);
    let locked = file.try_clone().ok().and_then(|file| {
        let file = FileBackend::new(file).ok()?;
        file.try_lock_range(whole.0, whole.1).ok()
    });
    locked == Some(false)
}

/// As [`is_part`] for a file that is open. Where files have no permissions of their own, those that it has
/// tell nothing.
#[cfg(unix)]
fn is_part_of(file: &File) -> bool {
    let Ok(found) = file.metadata() else { return false };
    match found.nlink() {
        // It was removed meanwhile: its name is that of another file, or of none.
        0 => true,
        1 => is_part(&found) || found.is_file() && !takes_permissions(file),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_part_of(file: &File) -> bool {
    file.metadata().is_ok_and(|found| is_part(&found))
}

/// Returns `true` if an unfinished backup may have left this file. One with another name as well is that of
/// a backup which ended before it removed this name: what is written to it would change that backup.
#[cfg(unix)]
fn is_part(found: &Metadata) -> bool {
    found.is_file() && found.nlink() == 1 && is_private(found)
}

#[cfg(not(unix))]
fn is_part(found: &Metadata) -> bool {
    found.is_file()
}

/// Gives the file at `partial` its name, unless that is taken meanwhile. Both are durable then.
fn publish(partial: &Path, path: &Path) -> io::Result<()> {
    // Windows syncs files that are open for writing only.
    File::options().write(true).open(partial)?.sync_all()?;
    match fs::hard_link(partial, path) {
        Ok(()) => fs::remove_file(partial)?,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(error),
        // Not every file system has links.
        Err(_) => match path.symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => fs::rename(partial, path)?,
            Err(error) => return Err(error),
            Ok(_) => return Err(ErrorKind::AlreadyExists.into()),
        },
    }
    sync_folder(path)
}

// Number of links that are followed at most, as by operating systems.
const MAX_LINKS: usize = 40;

/// The end of the names of unfinished backups and compactions, which no other file has: they are removed.
const PART: &str = "-partial";

pub(super) fn partial(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(PART);
    name.into()
}

/// Refuses the name of an unfinished backup, and that of the log of a file that is there.
pub(super) fn check_name(path: &Path) -> Result<()> {
    let refused = |reason| {
        let source = io::Error::new(ErrorKind::InvalidFilename, reason);
        Err(Error::of_opening(path, source))
    };
    let name = path.file_name().unwrap_or_default();
    if name.as_encoded_bytes().ends_with(PART.as_bytes()) {
        return refused(format!("a name that ends with `{PART}` is that of an unfinished backup"));
    }
    match log::file(path).filter(|file| file.is_file()) {
        Some(file) => refused(format!("its name is that of the log of `{}`", file.display())),
        None => Ok(()),
    }
}

/// Refuses these names also for the file to which a link leads, whether it is there or not.
pub(super) fn check_name_and_links(path: &Path) -> Result<()> {
    links(path).iter().try_for_each(|linked| check_name(linked))
}

/// Returns `path` and what its links lead to. The last path is that of the file, whether it is there or not.
pub(super) fn links(path: &Path) -> Vec<PathBuf> {
    // It follows links among the folders, too.
    if let Ok(linked) = path.canonicalize() {
        return vec![path.to_owned(), linked];
    }
    let next = |link: &PathBuf| {
        let target = link.read_link().ok()?;
        Some(link.parent().unwrap_or(Path::new("")).join(target))
    };
    iter::successors(Some(path.to_owned()), next).take(MAX_LINKS + 1).collect()
}

#[cfg(test)]
mod tests {
    use redb::{Database, TableDefinition};

    use super::*;

    /// What has such a name is removed by a backup.
    #[test]
    fn a_store_has_no_name_of_a_part() {
        let folder = tempfile::tempdir().unwrap();
        let [shop, part] = ["shop", "shop-partial"].map(|name| folder.path().join(name));
        let store = RedbStore::open(&shop).unwrap();
        let backed_up = backup(&store, &part, |_| ControlFlow::Continue(()));
        drop(store);
        for refused in [
            backed_up.map(drop),
            restore(&shop, &part).map(drop),
            RedbStore::open(&part).map(drop),
            RedbStore::compact(&part).map(drop),
        ] {
            let error = refused.unwrap_err();
            assert!(matches!(error, Error::Unopenable { .. }), "{error}");
        }
        assert!(!part.exists());
    }

    /// Such as one of a later version, whose backup was interrupted.
    #[test]
    fn a_part_that_no_backup_goes_on_with_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let [shop, copy, part] =
            ["shop", "copy", "copy-partial"].map(|name| folder.path().join(name));
        let store = RedbStore::open(&shop).unwrap();
        let meta = TableDefinition::<&[u8], &[u8]>::new("meta");
        for format in [Some(0), Some(crate::layout::FORMAT + 1), None] {
            let options = RedbOptions::default().log(None);
            let opened = RedbStore::open_file(&part, &options, private(&mut File::options()));
            drop(opened.unwrap());
            let database = Database::open(&part).unwrap();
            let change = database.begin_write().unwrap();
            match format {
                Some(format) => {
                    let mut meta = change.open_table(meta).unwrap();
                    meta.insert(&b"format"[..], &format.to_be_bytes()[..]).unwrap();
                }
                None => assert!(change.delete_table(meta).unwrap()),
            }
            change.commit().unwrap();
            drop(database);

            assert!(backup(&store, &copy, |_| ControlFlow::Continue(())).unwrap().is_finished);

            fs::remove_file(&copy).unwrap();
        }
    }

    /// A store is open at the file to which a link leads.
    #[cfg(unix)]
    #[test]
    fn a_link_to_a_part_opens_no_store() {
        let folder = tempfile::tempdir().unwrap();
        let [other, part, link] =
            ["other", "shop-partial", "link"].map(|name| folder.path().join(name));
        drop(RedbStore::open(&other).unwrap());
        fs::rename(&other, &part).unwrap();
        std::os::unix::fs::symlink(&part, &link).unwrap();
        let opened = RedbStore::open(&link);
        assert!(matches!(opened, Err(Error::Unopenable { .. })), "{opened:?}");
    }

    /// A store would be made at the file to which a link leads.
    #[cfg(unix)]
    #[test]
    fn a_link_to_a_part_or_log_that_is_not_there_opens_no_store() {
        let folder = tempfile::tempdir().unwrap();
        let shop = RedbStore::open(folder.path().join("shop")).unwrap();
        for (number, target) in ["copy-partial", "shop-log", "link-0"].into_iter().enumerate() {
            let link = folder.path().join(format!("link-{number}"));
            std::os::unix::fs::symlink(target, &link).unwrap();
            let opened = RedbStore::open(&link);
            assert!(matches!(opened, Err(Error::Unopenable { .. })), "{target}: {opened:?}");
        }
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("other", &link).unwrap();
        drop(RedbStore::open(&link).unwrap());
        drop(shop);
        assert!(folder.path().join("other").is_file());
    }

    /// The log of a store is made and removed by its name.
    #[test]
    fn a_store_has_no_name_of_a_log() {
        let folder = tempfile::tempdir().unwrap();
        let [shop, log] = ["shop", "shop-log"].map(|name| folder.path().join(name));
        drop(RedbStore::open(&log).unwrap());
        // Nothing is there that it could be the log of.
        drop(RedbStore::open(&log).unwrap());
        fs::rename(&log, &shop).unwrap();
        let store = RedbStore::open(&shop).unwrap();
        for refused in [RedbStore::open(&log).map(drop), RedbStore::compact(&log).map(drop)] {
            let error = refused.unwrap_err();
            assert!(matches!(error, Error::Unopenable { .. }), "{error}");
        }
        assert!(!log.exists());
        drop(store);
    }

    #[test]
    fn what_is_no_store_is_not_restored() {
        let folder = tempfile::tempdir().unwrap();
        let [from, to, database] = ["from", "to", "database"].map(|name| folder.path().join(name));
        drop(Database::create(&database).unwrap());
        let database = fs::read(&database).unwrap();
        let unfinished = b"an unfinished notification store\n";
        for bytes in [b"".as_slice(), &[0], &[0; 33], unfinished, &[0; 4_096], &database] {
            for log in [None, Some("")] {
                fs::write(&from, bytes).unwrap();
                if let Some(log) = log {
                    fs::write(log::name(&from), log).unwrap();
                }
                let there = fs::read_dir(folder.path()).unwrap().count();

                let restored = restore(&from, &to);

                assert!(matches!(restored, Err(Error::NotOurs { .. })), "{restored:?}");
                assert_eq!(fs::read_dir(folder.path()).unwrap().count(), there);
                assert!(fs::read(&from).unwrap() == bytes, "the file was changed");
                drop(fs::remove_file(log::name(&from)));
            }
        }
    }
}
