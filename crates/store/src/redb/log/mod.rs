//! The redo log: a file beside the database that takes changes with one sync.
//!
//! The log has two halves, which are written in turns. Each has the records of one memtable. A half
//! is written again when its memtable is in the database. Sequences never repeat, so that what is
//! left of an earlier lap is known by its sequence.

mod format;
mod place;
mod scan;

use std::{io, mem};

use redb::StorageBackend;

pub(super) use self::format::LogId;
use self::format::{Header, Record, SECTOR, Start, VERSION};
#[cfg(all(test, unix))]
pub(super) use self::place::SYNCED_FOLDERS;
pub(super) use self::place::{LogFile, file, name, sync_folder};
pub use self::place::{LogPlace, Loss};
pub(super) use self::scan::Scan;

/// Place of the first half, a page behind the header.
const HALVES: u64 = 4096;

/// Largest length of a half, in bytes. Records have lengths of four bytes.
const LARGEST_HALF: u64 = 1 << 30;

/// Number of zeros that are written ahead of the records, in bytes.
const AHEAD: usize = 1 << 20;

/// Number of zeros in one write. Linux may keep what is written at once as one large unit of its cache, and goes
/// through all of it when a later record changes a part.
const PIECE: usize = 16 << 10;

/// Memory for records that a log keeps from one to the next, in bytes. Larger records get their own.
const BUFFER: usize = 64 << 10;

/// A log that takes records. Its bytes may hold secrets, so it has no debug text.
pub(super) struct Log {
    storage: Box<dyn StorageBackend>,
    header: Header,
    half: Half,
    /// End of the last record, from the start of its half.
    end: u64,
    /// How far the half was ever written, from its start.
    reach: u64,
    /// How far the other half was ever written.
    other_reach: u64,
    /// Sequence of the last record.
    last: u64,
    /// Memory for the bytes of the next record.
    buffer: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum Half {
    First,
    Second,
}

/// What lies in the place of a log.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LogContent {
    /// Nothing, or a log whose creation was interrupted.
    Nothing,
    /// Something else than a log.
    Foreign,
    /// A log of a newer version, which this one cannot read.
    Newer { found: u32, supported: u32 },
    /// A log whose header is damaged.
    Damaged,
    /// A log.
    Log { id: LogId, scan: Scan },
}

impl Log {
    /// Creates the log of a database that has everything up to the sequence `last`.
    pub(super) fn create(place: &dyn LogPlace, half: usize, last: u64) -> io::Result<Self> {
        let mut id = LogId::default();
        getrandom::fill(&mut id.0).map_err(io::Error::other)?;
        let half = size(half).clamp(HALVES, LARGEST_HALF).next_multiple_of(size(SECTOR));
        let (header, storage) = (Header { id, half }, place.create()?);
        storage.write(0, &header.encode())?;
        storage.sync_data()?;
        Ok(Self {
            storage,
            header,
            half: Half::First,
            end: 0,
            reach: 0,
            other_reach: 0,
            last,
            buffer: Vec::new(),
        })
    }

    /// Sequence of the last record.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    pub(super) fn id(&self) -> LogId {
        self.header.id
    }

    /// Returns `true` if an empty half has room for such a payload.
    pub(super) fn takes(&self, payload: usize) -> bool {
        size(Record::len(payload)) <= self.header.half
    }

    /// Returns `true` if what is left of the half has room for such a payload.
    pub(super) fn has_room(&self, payload: usize) -> bool {
        self.end.saturating_add(size(Record::len(payload))) <= self.header.half
    }

    /// Appends a record, and makes it durable. If that fails, the log takes no more records.
    pub(super) fn append(&mut self, payload: &[u8]) -> io::Result<()> {
        self.try_append(payload).inspect_err(|_| self.void())
    }

    /// Removes what is there of a record whose caller gets an error, as far as the disk lets it.
    fn void(&self) {
        let place = self.half.start(&self.header).saturating_add(self.end);
        let voided = self.storage.write(place, &[0; SECTOR]);
        drop(voided.and_then(|()| self.storage.sync_data()));
    }

    fn try_append(&mut self, payload: &[u8]) -> io::Result<()> {
        let record = Record { sequence: self.last.saturating_add(1), payload };
        let mut bytes = mem::take(&mut self.buffer);
        record.encode_into(self.header.id, &mut bytes);
        let written = self.write(&bytes);
        if bytes.capacity() <= BUFFER {
            self.buffer = bytes;
        }
        written?;
        self.last = record.sequence;
        Ok(())
    }

    /// Writes a record behind the last one, and makes it durable.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let start = self.half.start(&self.header);
        let end = self.end.saturating_add(size(bytes.len()));
        self.reserve(start, end)?;
        self.storage.write(start.saturating_add(self.end), bytes)?;
        self.storage.sync_data()?;
        self.end = end;
        Ok(())
    }

    /// Writes zeros behind a record that reaches further than any before. The next syncs then find a
    /// file that does not grow, which is quicker.
    fn reserve(&mut self, start: u64, end: u64) -> io::Result<()> {
        if end > self.reach {
            let left = self.header.half.saturating_sub(end);
            let ahead = usize::try_from(left).map_or(AHEAD, |left| left.min(AHEAD));
            for from in (0..ahead).step_by(PIECE) {
                let zeros = vec![0; PIECE.min(ahead - from)];
                let place = start.saturating_add(end).saturating_add(size(from));
                self.storage.write(place, &zeros)?;
            }
            self.reach = end.saturating_add(size(ahead));
        }
        Ok(())
    }

    /// Continues at the start of the other half. The database has the changes of its records.
    pub(super) fn turn(&mut self) {
        self.half = match self.half {
            Half::First => Half::Second,
            Half::Second => Half::First,
        };
        self.end = 0;
        mem::swap(&mut self.reach, &mut self.other_reach);
    }
}

impl Half {
    fn start(self, header: &Header) -> u64 {
        match self {
            Half::First => HALVES,
            Half::Second => HALVES.saturating_add(header.half),
        }
    }
}

/// Reads the log of a database that has everything up to the sequence `applied`.
pub(super) fn find(place: &dyn LogPlace, applied: u64) -> io::Result<LogContent> {
    let Some(storage) = place.open()? else { return Ok(LogContent::Nothing) };
    let header = match Start::decode(&read(&*storage, 0, size(SECTOR))?) {
        Start::Blank => return Ok(LogContent::Nothing),
        Start::Foreign => return Ok(LogContent::Foreign),
        Start::Newer { found } => return Ok(LogContent::Newer { found, supported: VERSION }),
        Start::Damaged => return Ok(LogContent::Damaged),
        Start::Header(header) => header,
    };
    let read = |half: Half| read(&*storage, half.start(&header), header.half);
    let (first, second) = (read(Half::First)?, read(Half::Second)?);
    let scan = scan::scan(header.id, [&first, &second], applied);
    Ok(LogContent::Log { id: header.id, scan })
}

/// The `len` bytes from `start` on, or as many as there are.
fn read(storage: &dyn StorageBackend, start: u64, len: u64) -> io::Result<Vec<u8>> {
    let there = storage.len()?.saturating_sub(start).min(len);
    let mut bytes = vec![0; usize::try_from(there).map_err(io::Error::other)?];
    if !bytes.is_empty() {
        storage.read(start, &mut bytes)?;
    }
    Ok(bytes)
}

fn size(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
