//! Compaction: a file anew, with nothing but its entries.
//!
//! Free pages of a file keep their bytes. A file that is made anew has no bytes of what was removed.

use std::fs;
use std::ops::{Bound, ControlFlow};
use std::path::{Path, PathBuf};

use super::{RedbOptions, RedbStore};
use crate::{Decision, Error, KeyRange, Order, Result, Snapshot, Store, Table};

/// Bytes that one transaction copies, about.
const AT_A_TIME: usize = 4 << 20;

type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// Writes the entries of the file at `path` into another one, and puts that in its place.
pub(super) fn compact(path: &Path) -> Result<()> {
    let whole = fs::canonicalize(path).map_err(|source| Error::of_opening(path, source))?;
    let source = RedbStore::open(&whole)?;
    source.checkpoint()?;
    let place = beside(&whole);
    remove(&place)?;
    let copied = copy(&source, &place);
    let moved = copied.and_then(|()| fs::rename(&place, &whole).map_err(failed));
    if moved.is_err() {
        fs::remove_file(&place).ok();
    }
    moved?;
    // The lock of the old file ends behind the move, so that nobody opens it in between.
    drop(source);
    sync_folder(&whole)
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-compact");
    name.into()
}

// An interrupted compaction has left a part of a copy.
fn remove(place: &Path) -> Result<()> {
    if place.exists() { fs::remove_file(place).map_err(failed) } else { Ok(()) }
}

fn copy(source: &RedbStore, place: &Path) -> Result<()> {
    let copy = RedbStore::open_with(place, &RedbOptions { log: None, ..RedbOptions::default() })?;
    crate::read(source, |snapshot| {
        Table::ALL.iter().try_for_each(|table| copy_table(snapshot, *table, &copy))
    })
}

fn copy_table(snapshot: &dyn Snapshot, table: Table, copy: &RedbStore) -> Result<()> {
    let mut after = None;
    loop {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let rows = batch(snapshot, table, &(start, Bound::Unbounded))?;
        let Some((last, _)) = rows.last() else { return Ok(()) };
        after = Some(last.clone());
        copy.write(&mut |transaction| {
            for (key, value) in &rows {
                transaction.put(table, key, value)?;
            }
            Ok(Decision::Commit)
        })?;
    }
}

fn batch(snapshot: &dyn Snapshot, table: Table, range: &KeyRange) -> Result<Rows> {
    let (mut rows, mut size) = (Rows::new(), 0);
    snapshot.scan(table, range, Order::Ascending, None, &mut |key, value| {
        size += key.len() + value.len();
        rows.push((key.to_vec(), value.to_vec()));
        if size < AT_A_TIME { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(rows)
}

#[cfg(unix)]
fn sync_folder(path: &Path) -> Result<()> {
    let Some(folder) = path.parent() else { return Ok(()) };
    fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> Result<()> {
    Ok(())
}

fn failed(source: std::io::Error) -> Error {
    Error::Backend { backend: "redb", action: "compact the file", source: source.into() }
}
