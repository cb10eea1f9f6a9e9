//! Keeps redb from touching a file before it has proven to be ours.
//!
//! redb repairs each file that it opens, and writes to the file again on closing. Both are right
//! for our own files only. redb also does not recognise a file whose creation was interrupted. So a
//! new file is not made in redb's order, but in ours.

use std::io::{self, ErrorKind};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use redb::{BackendError, StorageBackend};

/// Start of a new file until the rest of the file is complete.
const UNFINISHED: &[u8; 33] = b"an unfinished notification store\n";

/// Number of bytes that a disk writes at once or not at all.
const SECTOR: usize = 512;

/// A storage whose edits are held back until the gate is opened.
#[derive(Clone, Debug)]
pub(super) struct Gate(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    storage: Box<dyn StorageBackend>,
    is_new: bool,
    is_open: AtomicBool,
    held: Mutex<Vec<Edit>>,
}

#[derive(Debug)]
enum Edit {
    Write { offset: u64, data: Vec<u8> },
    Grow { len: u64 },
    Sync,
}

impl Gate {
    /// Closes a gate before `storage`.
    pub(super) fn before(storage: Box<dyn StorageBackend>) -> io::Result<Self> {
        let is_new = is_new(&*storage)?;
        let (is_open, held) = (AtomicBool::new(false), Mutex::default());
        Ok(Self(Arc::new(Shared { storage, is_new, is_open, held })))
    }

    /// Makes the edits that were held back, and holds back nothing from now on.
    pub(super) fn open(&self) -> io::Result<()> {
        if self.0.is_new {
            self.create()?;
        } else {
            self.catch_up()?;
        }
        self.0.is_open.store(true, Ordering::Release);
        Ok(())
    }

    fn catch_up(&self) -> io::Result<()> {
        for edit in self.0.held.lock().drain(..) {
            match edit {
                Edit::Write { offset, data } => self.0.storage.write(offset, &data)?,
                Edit::Grow { len } => self.0.storage.set_len(len)?,
                Edit::Sync => self.0.storage.sync_data()?,
            }
        }
        Ok(())
    }

    /// Writes the first sector last, because redb recognises the file by that sector.
    fn create(&self) -> io::Result<()> {
        let storage = &*self.0.storage;
        if !is_new(storage)? {
            // Another caller has created the file meanwhile, and closed it again.
            return Err(ErrorKind::AlreadyExists.into());
        }
        let mut first = [0; SECTOR];
        self.read(0, &mut first)?;
        storage.set_len(size(UNFINISHED))?;
        storage.write(0, UNFINISHED)?;
        storage.sync_data()?;
        for edit in self.0.held.lock().drain(..) {
            match edit {
                Edit::Write { offset, data } => {
                    let spared = size(&first).saturating_sub(offset);
                    if let Some(rest @ [_, ..]) = data.get(index(spared)..) {
                        storage.write(offset + spared, rest)?;
                    }
                }
                Edit::Grow { len } => storage.set_len(len)?,
                Edit::Sync => {}
            }
        }
        storage.sync_data()?;
        storage.write(0, &first)?;
        storage.sync_data()
    }

    fn is_open(&self) -> bool {
        self.0.is_open.load(Ordering::Acquire)
    }

    fn hold(&self, edit: Edit) {
        self.0.held.lock().push(edit);
    }

    /// Length of the storage in bytes, without the edits that are held back.
    fn len_behind(&self) -> io::Result<u64> {
        if self.0.is_new { Ok(0) } else { self.0.storage.len() }
    }
}

impl StorageBackend for Gate {
    fn len(&self) -> io::Result<u64> {
        if self.is_open() {
            return self.0.storage.len();
        }
        let grown = self.0.held.lock().iter().rev().find_map(|edit| match edit {
            Edit::Grow { len } => Some(*len),
            Edit::Write { .. } | Edit::Sync => None,
        });
        grown.map_or_else(|| self.len_behind(), Ok)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if self.is_open() {
            return self.0.storage.read(offset, out);
        }
        if offset.saturating_add(size(out)) > self.len()? {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let there = self.len_behind()?.saturating_sub(offset).min(size(out));
        let (there, grown) = out.split_at_mut(index(there));
        if !there.is_empty() {
            self.0.storage.read(offset, there)?;
        }
        grown.fill(0);
        for edit in &*self.0.held.lock() {
            if let Edit::Write { offset: start, data } = edit {
                overlay(out, offset, data, *start);
            }
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        if self.is_open() {
            return self.0.storage.set_len(len);
        }
        // redb shrinks a file on closing, and tolerates a refusal.
        if len < self.len()? {
            return Err(ErrorKind::Unsupported.into());
        }
        self.hold(Edit::Grow { len });
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        if self.is_open() {
            return self.0.storage.sync_data();
        }
        self.hold(Edit::Sync);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if self.is_open() {
            return self.0.storage.write(offset, data);
        }
        self.hold(Edit::Write { offset, data: data.to_vec() });
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        self.0.storage.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.storage.try_lock_range(start, end)
    }

    fn try_lock_shared_range(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
    ) -> Result<bool, BackendError> {
        self.0.storage.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.storage.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.storage.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.storage.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.storage.query_lock_range(start, end)
    }
}

/// Returns `true` if `storage` is empty, or has only remains of an interrupted [`Gate::create`].
fn is_new(storage: &dyn StorageBackend) -> io::Result<bool> {
    let mut start = [0; UNFINISHED.len()];
    let len = storage.len()?;
    let (there, _) = start.split_at_mut(index(len.min(size(UNFINISHED))));
    storage.read(0, there)?;
    Ok(start == *UNFINISHED || (len <= size(UNFINISHED) && start == [0; UNFINISHED.len()]))
}

/// Puts the part of `data`, which begins at `start`, over the part of `out`, which begins at
/// `offset`, that has the same place in the file.
fn overlay(out: &mut [u8], offset: u64, data: &[u8], start: u64) {
    let out = out.iter_mut().skip(index(start.saturating_sub(offset)));
    let data = data.iter().skip(index(offset.saturating_sub(start)));
    for (old, new) in out.zip(data) {
        *old = *new;
    }
}

fn size(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

fn index(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use redb::backends::InMemoryBackend;

    use super::*;

    #[test]
    fn edits_are_seen_at_once_and_made_later() {
        let storage = InMemoryBackend::new();
        storage.set_len(4).unwrap();
        storage.write(0, b"ours").unwrap();
        let gate = Gate::before(Box::new(storage)).unwrap();

        gate.write(1, b"wn").unwrap();
        gate.set_len(6).unwrap();
        gate.write(3, b"er").unwrap();
        gate.sync_data().unwrap();

        assert_eq!(bytes(&gate), b"owner\0");
        assert_eq!(bytes(&*gate.0.storage), b"ours");
        gate.open().unwrap();
        assert_eq!(bytes(&gate), b"owner\0");
        assert_eq!(bytes(&*gate.0.storage), b"owner\0");
    }

    #[test]
    fn nothing_is_read_beyond_the_end() {
        let gate = Gate::before(Box::new(InMemoryBackend::new())).unwrap();
        gate.set_len(4).unwrap();
        assert!(gate.read(1, &mut [0; 3]).is_ok());
        assert!(gate.read(2, &mut [0; 3]).is_err());
        assert!(gate.read(u64::MAX, &mut [0; 3]).is_err());
    }

    fn bytes(storage: &dyn StorageBackend) -> Vec<u8> {
        let mut bytes = vec![0; index(storage.len().unwrap())];
        storage.read(0, &mut bytes).unwrap();
        bytes
    }
}
