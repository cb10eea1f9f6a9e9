//! Identity of a file, and the note about its log, as its metadata states them.

use std::cmp::Ordering;

use redb::{
    ReadTransaction, ReadableDatabase, ReadableTable, TableDefinition, TableError, WriteTransaction,
};

use super::handle::Handle;
use super::key::{Bytes, bounded};
use super::log::LogId;
use super::view::{Definition, definition};
use crate::layout::{FORMAT, OLDEST_FORMAT};
use crate::{Table, backfill};

const META: Definition = TableDefinition::new("meta");
const APPLICATION: &[u8] = b"application";
const FORMAT_OF_FILE: &[u8] = b"format";
const LOG: &[u8] = b"log";
const US: &[u8] = b"tidings";

/// What a file says about its log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) state: NoteState,
    /// The present log, or the last one.
    pub(super) id: LogId,
    /// The file has the changes of all records up to this sequence.
    pub(super) applied: u64,
}

/// Whether a log may have changes that the file does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum NoteState {
    /// It has none.
    #[default]
    Closed,
    /// It may have some.
    Open,
}

/// Kind of file that redb has opened.
pub(super) enum Identity {
    /// A file without tables.
    Blank,
    /// A store that this version can work with.
    Ours,
    /// A store of a newer version.
    Newer { found: u32 },
    /// A store of an older format, which this version makes its own.
    Old { found: u32 },
    /// A store of a format that this version does not read.
    TooOld { found: u32 },
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
        Ordering::Less if found >= OLDEST_FORMAT => Ok(Identity::Old { found }),
        Ordering::Less => Ok(Identity::TooOld { found }),
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

/// Gives a file of an older format the present one. Rows that it lacks are put later.
pub(super) fn upgrade(database: &Handle, found: u32) -> Result<(), redb::Error> {
    let transaction = database.get()?.begin_write()?;
    let mut marks = transaction.open_table(definition(Table::Backfills))?;
    for mark in backfill::marks(found) {
        marks.insert(mark.as_bytes(), [].as_slice())?;
    }
    drop(marks);
    let mut meta = transaction.open_table(META)?;
    meta.insert(FORMAT_OF_FILE, FORMAT.to_be_bytes().as_slice())?;
    drop(meta);
    Ok(transaction.commit()?)
}

/// Reads the note of a file. A file that never had a log has none.
pub(super) fn note(database: &Handle) -> Result<Note, redb::Error> {
    let transaction = database.get()?.begin_read()?;
    let bytes = match transaction.open_table(META) {
        Err(TableError::TableDoesNotExist(_)) => None,
        meta => read(&meta?, LOG)?,
    };
    bytes.map_or(Ok(Note::default()), |bytes| {
        Note::decode(&bytes).ok_or_else(|| redb::Error::Corrupted("the note is malformed".into()))
    })
}

/// Writes the note of a file.
pub(super) fn write(transaction: &WriteTransaction, note: &Note) -> Result<(), redb::Error> {
    let mut meta = transaction.open_table(META)?;
    bounded(|| meta.insert(LOG, note.encode().as_slice()))?;
    Ok(())
}

impl Note {
    fn encode(&self) -> Vec<u8> {
        let state = match self.state {
            NoteState::Closed => 0,
            NoteState::Open => 1,
        };
        [&[state], self.id.0.as_slice(), &self.applied.to_be_bytes()].concat()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let ([state], bytes) = bytes.split_first_chunk()?;
        let (id, applied) = bytes.split_first_chunk()?;
        let state = match state {
            0 => NoteState::Closed,
            1 => NoteState::Open,
            _ => return None,
        };
        let applied = u64::from_be_bytes(applied.try_into().ok()?);
        Some(Self { state, id: LogId(*id), applied })
    }
}

fn is_blank(transaction: &ReadTransaction) -> Result<bool, redb::Error> {
    Ok(transaction.list_tables()?.next().is_none()
        && transaction.list_multimap_tables()?.next().is_none())
}

fn read(
    meta: &impl ReadableTable<Bytes, &'static [u8]>,
    key: &[u8],
) -> Result<Option<Vec<u8>>, redb::Error> {
    Ok(meta.get(key)?.map(|value| value.value().to_vec()))
}
