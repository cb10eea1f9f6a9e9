//! An open database: commits, and the note about its log.

use std::path::PathBuf;
use std::sync::Arc;

use redb::{Table as RedbTable, WriteTransaction};

use super::disk::rows;
use super::failure::{Failure, attempt};
use super::handle::Handle;
use super::meta::{self, Note};
use crate::Table;
use crate::memtable::{Memtable, Position};

/// The database and its name.
pub(super) struct DatabaseFile {
    pub(super) database: Handle,
    pub(super) path: PathBuf,
}

/// A key with its new value, or with `None` for its removal.
pub(super) type Row<'r> = (Table, &'r [u8], Option<&'r [u8]>);

/// A memtable that takes no more changes, on its way into the database.
#[derive(Clone)]
pub(super) struct Frozen {
    pub(super) memtable: Arc<Memtable>,
    /// What the database notes when it has all of the changes.
    pub(super) note: Note,
}

type Rows<'t> = RedbTable<'t, &'static [u8], &'static [u8]>;

impl DatabaseFile {
    /// Makes the changes of `rows` and the note durable, or nothing.
    pub(super) fn commit<'r>(
        &self,
        rows: impl IntoIterator<Item = Row<'r>>,
        note: Option<&Note>,
    ) -> Result<(), Failure> {
        attempt("commit a transaction", || {
            let transaction = self.database.get()?.begin_write()?;
            make(&transaction, rows)?;
            if let Some(note) = note {
                meta::write(&transaction, note)?;
            }
            Ok::<_, redb::Error>(transaction.commit()?)
        })
    }

    /// Commits about `bytes` of the changes behind `position`. Returns where they end, or `None` if
    /// they were the last ones.
    ///
    /// The note is written with the last changes. Before that, the changes may be made again.
    pub(super) fn step(
        &self,
        frozen: &Frozen,
        position: Option<&Position>,
        bytes: usize,
    ) -> Result<Option<Position>, Failure> {
        let mut left = frozen.memtable.after(position).peekable();
        let (mut size, mut rows) = (0, Vec::new());
        while let Some(row @ (_, key, value)) = left.next_if(|_| size < bytes.max(1)) {
            size += key.len() + value.map_or(0, <[u8]>::len);
            rows.push(row);
        }
        let end = rows.last().map(|(table, key, _)| (*table, key.to_vec()));
        let end = end.filter(|_| left.peek().is_some());
        let note = if end.is_none() { Some(&frozen.note) } else { None };
        self.commit(rows, note)?;
        Ok(end)
    }
}

fn make<'r>(
    transaction: &WriteTransaction,
    changes: impl IntoIterator<Item = Row<'r>>,
) -> Result<(), redb::Error> {
    let mut current: Option<(Table, Rows<'_>)> = None;
    for (table, key, value) in changes {
        let opened = match current.take() {
            Some((other, opened)) if other == table => opened,
            other => {
                drop(other);
                transaction.open_table(rows(table))?
            }
        };
        let (_, opened) = current.insert((table, opened));
        match value {
            Some(value) => drop(opened.insert(key, value)?),
            None => drop(opened.remove(key)?),
        }
    }
    Ok(())
}
