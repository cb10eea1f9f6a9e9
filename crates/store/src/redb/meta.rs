//! Identity of a file, as its metadata states it.

use std::cmp::Ordering;

use redb::{ReadTransaction, ReadableDatabase, ReadableTable, TableDefinition, TableError};

use super::disk::Definition;
use super::handle::Handle;
use crate::layout::FORMAT;

const META: Definition = TableDefinition::new("meta");
const APPLICATION: &[u8] = b"application";
const FORMAT_OF_FILE: &[u8] = b"format";
const US: &[u8] = b"tidings";

/// Kind of file that redb has opened.
pub(super) enum Identity {
    /// A file without tables.
    Blank,
    /// A store that this version can work with.
    Ours,
    /// A store of a newer version.
    Newer { found: u32 },
    /// A database of another application.
    Foreign,
}

/// Finds the kind of a file.
pub(super) fn identify(database: &Handle) -> Result<Identity, redb::Error> {
    let transaction = database.get()?.begin_read()?;
    let meta = match transaction.open_table(META) {
        Ok(meta) => meta,
        Err(TableError::TableDoesNotExist(_)) if is_blank(&transaction)? => {
            return Ok(Identity::Blank);
        }
        Err(TableError::Storage(error)) => return Err(error.into()),
        Err(_) => return Ok(Identity::Foreign),
    };
    if read(&meta, APPLICATION)?.as_deref() != Some(US) {
        return Ok(Identity::Foreign);
    }
    let format = read(&meta, FORMAT_OF_FILE)?.and_then(|bytes| bytes.try_into().ok());
    let Some(found) = format.map(u32::from_be_bytes) else {
        return Err(redb::Error::Corrupted("the file does not state its format".to_owned()));
    };
    match found.cmp(&FORMAT) {
        Ordering::Equal => Ok(Identity::Ours),
        Ordering::Greater => Ok(Identity::Newer { found }),
        Ordering::Less => {
            Err(redb::Error::Corrupted(format!("no version has written format {found}")))
        }
    }
}

/// Makes a blank file ours.
pub(super) fn claim(database: &Handle) -> Result<(), redb::Error> {
    let transaction = database.get()?.begin_write()?;
    let mut meta = transaction.open_table(META)?;
    meta.insert(APPLICATION, US)?;
    meta.insert(FORMAT_OF_FILE, FORMAT.to_be_bytes().as_slice())?;
    drop(meta);
    Ok(transaction.commit()?)
}

fn is_blank(transaction: &ReadTransaction) -> Result<bool, redb::Error> {
    Ok(transaction.list_tables()?.next().is_none()
        && transaction.list_multimap_tables()?.next().is_none())
}

fn read(
    meta: &impl ReadableTable<&'static [u8], &'static [u8]>,
    key: &[u8],
) -> Result<Option<Vec<u8>>, redb::Error> {
    Ok(meta.get(key)?.map(|value| value.value().to_vec()))
}
