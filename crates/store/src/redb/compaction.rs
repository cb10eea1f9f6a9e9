//! Compaction: a file anew, with nothing but its entries.
//!
//! Free pages of a file keep their bytes. A file that is made anew has no bytes of what was removed.

use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::RedbStore;
use super::backup::{backup, partial};
use super::log::sync_folder;
use crate::{Error, Result};

/// Writes the entries of the file at `path` into another one, and puts that in its place.
pub(super) fn compact(path: &Path) -> Result<()> {
    let failed = |source| Error::of_opening(path, source);
    let whole = fs::canonicalize(path).map_err(failed)?;
    let source = RedbStore::open(&whole)?;
    source.checkpoint()?;
    let place = beside(&whole);
    // An interrupted compaction has left a copy, which may have entries that were removed since.
    for left in [partial(&place), place.clone()] {
        remove(&left).map_err(failed)?;
    }
    backup(&source, &place, &mut |_| ControlFlow::Continue(())).map(drop)?;
    fs::rename(&place, &whole).map_err(failed)?;
    // The lock of the old file ends behind the move, so that nobody opens it in between.
    drop(source);
    sync_folder(&whole).map_err(failed)
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
