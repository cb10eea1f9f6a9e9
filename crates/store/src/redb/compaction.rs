//! Compaction: a file anew, with nothing but its entries.
//!
//! Free pages of a file keep their bytes. A file that is made anew has no bytes of what was removed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::RedbStore;
use super::backup::{backup, partial};
use super::log::sync_folder;
use crate::transfer::{Copied, OnCopy};
use crate::{Error, Result};

/// Writes the entries of the file at `path` into another one, and puts that in its place. The file stays
/// as it is if `progress` breaks.
pub(super) fn compact(path: &Path, progress: &mut OnCopy<'_>) -> Result<Copied> {
    let failed = |source| Error::of_opening(path, source);
    let whole = fs::canonicalize(path).map_err(failed)?;
    let source = RedbStore::open(&whole)?;
    source.checkpoint()?;
    let place = beside(&whole);
    // An interrupted compaction has left a copy, which may have entries that were removed since.
    let remove_copy = || {
        [partial(&place), place.clone()].iter().try_for_each(|left| remove(left).map_err(failed))
    };
    remove_copy()?;
    let copied = backup(&source, &place, progress)?;
    if !copied.is_finished {
        remove_copy()?;
        return Ok(copied);
    }
    fs::rename(&place, &whole).map_err(failed)?;
    // The lock of the old file ends behind the move, so that nobody opens it in between.
    drop(source);
    sync_folder(&whole).map_err(failed)?;
    Ok(copied)
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
