//! Compaction: a file anew, with nothing but its entries.
//!
//! Free pages of a file keep their bytes. A file that is rewritten has no bytes of what was removed.

use std::fs::{self, File};
use std::io;
use std::mem;
use std::path::{Path, PathBuf};

use super::access::take_over;
use super::backup::{partial, write_part};
use super::log::sync_folder;
use super::{RedbOptions, RedbStore};
use crate::transfer::Copied;
use crate::{Error, OnProgress, Result};

/// Writes the entries of the file at `path` into another one, and puts that in its place. The file stays
/// as it is if `progress` breaks.
pub(super) fn compact(path: &Path, progress: &mut OnProgress<'_>) -> Result<Copied> {
    let failed = |source| Error::of_opening(path, source);
    let whole = fs::canonicalize(path).map_err(failed)?;
    let options = RedbOptions::default().create(false);
    let source = RedbStore::open_with(&whole, &options)?;
    source.checkpoint()?;
    let place = partial(&beside(&whole));
    let new = NewFile(&place);
    // An interrupted compaction has left a copy, which may have entries that were removed since.
    new.remove().map_err(failed)?;
    let (copied, part) = write_part(&source, &place, progress)?;
    part.checkpoint()?;
    drop(part);
    if !copied.is_finished {
        new.remove().map_err(failed)?;
        return Ok(copied);
    }
    dress(&place, &whole).map_err(failed)?;
    fs::rename(&place, &whole).map_err(failed)?;
    // From here on, a file of that name is one of another compaction.
    mem::forget(new);
    // The lock of the old file ends behind the move, so that nobody opens it in between.
    drop(source);
    sync_folder(&whole).map_err(failed)?;
    Ok(copied)
}

/// The file that a compaction makes beside the other one. It is removed if the compaction fails or if
/// `progress` panics. Only the part of a backup may have its name.
struct NewFile<'p>(&'p Path);

impl NewFile<'_> {
    fn remove(&self) -> io::Result<()> {
        match fs::remove_file(self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}

impl Drop for NewFile<'_> {
    fn drop(&mut self) {
        drop(self.remove());
    }
}

/// Lets those use the new file who may use the old one.
fn dress(new: &Path, old: &Path) -> io::Result<()> {
    let file = File::options().read(true).write(true).open(new)?;
    take_over(&file, &fs::metadata(old)?)?;
    file.sync_all()
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-compact");
    name.into()
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::redb::backup;

    /// The name that a compaction builds its file under is one that no complete file has.
    #[test]
    fn a_compaction_leaves_other_files_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shop.redb");
        let copy = folder.path().join("shop.redb-compact");
        let goes_on = |_| ControlFlow::Continue(());
        let store = RedbStore::open(&path).unwrap();
        assert!(backup(&store, &copy, goes_on).unwrap().is_finished);
        drop(store);
        let bytes = fs::read(&copy).unwrap();
        fs::write(partial(&copy), "a part").unwrap();

        assert!(compact(&path, &mut { goes_on }).unwrap().is_finished);

        assert!(fs::read(&copy).unwrap() == bytes, "the backup was changed");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        drop(RedbStore::open(&path).unwrap());
    }

    #[test]
    fn an_empty_file_is_not_made_a_store() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shop.redb");
        for bytes in [b"".as_slice(), &[0; 33]] {
            fs::write(&path, bytes).unwrap();
            let compacted = compact(&path, &mut |_| ControlFlow::Continue(()));
            assert!(matches!(compacted, Err(Error::NoStore { .. })), "{compacted:?}");
            assert!(fs::read(&path).unwrap() == bytes, "the file was changed");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }
}
