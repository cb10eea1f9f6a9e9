//! Compaction: a file anew, with nothing but its entries.
//!
//! Free pages of a file keep their bytes. A file that is made anew has no bytes of what was removed.

use std::fs::{self, File};
use std::io;
use std::mem;
use std::path::{Path, PathBuf};

use super::access::take_over;
use super::backup::{back_up, partial};
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
    let place = beside(&whole);
    let new = NewFile(&place);
    // An interrupted compaction has left a copy, which may have entries that were removed since.
    new.remove().map_err(failed)?;
    let copied = back_up(&source, &place, progress)?;
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
/// `progress` panics.
struct NewFile<'p>(&'p Path);

impl NewFile<'_> {
    fn remove(&self) -> io::Result<()> {
        [partial(self.0), self.0.to_owned()].iter().try_for_each(|left| remove(left))
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

fn remove(left: &Path) -> io::Result<()> {
    match fs::remove_file(left) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;

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
