//! The storage of a database, which can be opened again while it stays locked.
//!
//! redb uses no storage again after an error. So each database gets a view of the storage, and the
//! next database gets the next view. Earlier views fail from then on.
//!
//! redb decides by the first sector which commit is the last one. The medium keeps that sector as of
//! the last sync that has succeeded. It is written again when a sync has failed, before the next database
//! is opened, and before the storage is closed. So a commit whose sync has failed does not count, whatever
//! the operating system has kept of it.
//!
//! A damaged page may lead behind the end of the file. An error of such a read would end the database with all
//! its sound pages. So what lies there reads as zeros, which redb takes for another damaged page. A read that
//! fails because another program has made the file shorter stays an error.

use std::io;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use redb::{BackendError, StorageBackend};
use thiserror::Error;

use super::failure::{caught, is_full};

/// Length of the start of the file that decides which commit is the last one, in bytes.
const START: usize = 512;

/// A storage, and what opening it again needs.
#[derive(Debug)]
pub(super) struct Medium {
    storage: Box<dyn StorageBackend>,
    /// Number of the view that may use the storage. A view that is at work holds the lock.
    turn: RwLock<u64>,
    start: Mutex<Start>,
    /// Length in bytes that the file was given, or `u64::MAX` before the file is ours.
    len: AtomicU64,
    /// The first error of the present view.
    trouble: Mutex<Option<Arc<io::Error>>>,
}

/// The start of the file.
#[derive(Debug, Default)]
struct Start {
    now: Vec<u8>,
    synced: Vec<u8>,
    /// Number of syncs that have changed it.
    version: u64,
}

/// The storage as one database sees it.
#[derive(Debug)]
pub(super) struct View {
    medium: Arc<Medium>,
    turn: u64,
}

/// Error of a view after the next one was made.
#[derive(Clone, Copy, Debug, Error)]
#[error("the file was opened again meanwhile")]
pub(super) struct Outdated;

impl Outdated {
    /// Returns `true` if this is the cause of `error`.
    pub(super) fn is_in(error: &io::Error) -> bool {
        let Some(cause) = error.get_ref() else { return false };
        cause.is::<Self>()
    }
}

impl Medium {
    /// The medium of `storage`, with its first view. Nothing is written before the start is
    /// [noted](Self::note_start).
    pub(super) fn of(storage: Box<dyn StorageBackend>) -> (Arc<Self>, View) {
        let (turn, start, trouble) = (RwLock::default(), Mutex::default(), Mutex::default());
        let len = AtomicU64::new(u64::MAX);
        let medium = Arc::new(Self { storage, turn, start, len, trouble });
        let view = View { medium: Arc::clone(&medium), turn: 0 };
        (medium, view)
    }

    /// Notes the start of the file and its length. The file is locked.
    pub(super) fn note_start(&self) -> io::Result<()> {
        let len = self.note_len()?;
        let mut now = vec![0; usize::try_from(len).unwrap_or(usize::MAX).min(START)];
        self.storage.read(0, &mut now)?;
        *self.start.lock() = Start { synced: now.clone(), now, version: 0 };
        Ok(())
    }

    fn note_len(&self) -> io::Result<u64> {
        let len = self.storage.len()?;
        self.len.store(len, Ordering::Release);
        Ok(len)
    }

    /// The next view, on the last commit whose sync has succeeded. Earlier views fail from now on.
    pub(super) fn renew(self: &Arc<Self>) -> io::Result<View> {
        let mut turn = self.turn.write();
        *turn += 1;
        self.write_synced_start()?;
        self.note_len()?;
        *self.trouble.lock() = None;
        Ok(View { medium: Arc::clone(self), turn: *turn })
    }

    /// Writes the start of the file as of the last sync that has succeeded.
    fn write_synced_start(&self) -> io::Result<()> {
        let Start { now, synced, .. } = &mut *self.start.lock();
        self.storage.write(0, synced)?;
        self.storage.sync_data()?;
        now.clone_from(synced);
        Ok(())
    }

    /// Notes an error of the view before, if the present one has none.
    pub(super) fn keep(&self, trouble: Option<Arc<io::Error>>) {
        let mut present = self.trouble.lock();
        *present = present.take().or(trouble);
    }

    /// Drops the error of a full disk: redb has written everything since.
    pub(super) fn drop_shortage(&self) {
        self.trouble.lock().take_if(|trouble| is_full(trouble));
    }

    /// The first error of the present view.
    pub(super) fn trouble(&self) -> Option<Arc<io::Error>> {
        self.trouble.lock().clone()
    }

    /// A number that changes with each commit that has become durable.
    pub(super) fn version(&self) -> u64 {
        self.start.lock().version
    }
}

impl Drop for Medium {
    fn drop(&mut self) {
        if self.start.get_mut().is_unsynced() {
            // If the sync fails, the next process that opens the file reads it all the same.
            drop(caught(|| self.write_synced_start()));
        }
        // An error leaves the lock to the operating system, which drops it with the file.
        drop(self.storage.close());
    }
}

impl Start {
    fn write(&mut self, offset: u64, data: &[u8]) {
        let Some(offset) = usize::try_from(offset).ok().filter(|offset| *offset < START) else {
            return;
        };
        let end = offset.saturating_add(data.len()).min(START);
        self.now.resize(self.now.len().max(end), 0);
        for (old, new) in self.now.iter_mut().skip(offset).zip(data) {
            *old = *new;
        }
    }

    fn is_unsynced(&self) -> bool {
        self.now != self.synced
    }

    fn sync(&mut self) {
        if self.is_unsynced() {
            self.synced.clone_from(&self.now);
            self.version += 1;
        }
    }
}

impl View {
    fn run<T>(&self, act: impl FnOnce(&Medium) -> io::Result<T>) -> io::Result<T> {
        let turn = self.medium.turn.read();
        if *turn != self.turn {
            return Err(io::Error::other(Outdated));
        }
        act(&self.medium).inspect_err(|error| {
            self.medium.trouble.lock().get_or_insert_with(|| Arc::new(copy(error)));
        })
    }

    /// Runs an action on the locks, or returns `granted`: later views have the locks of the first.
    fn lock<T>(
        &self,
        granted: T,
        act: impl FnOnce(&dyn StorageBackend) -> Result<T, BackendError>,
    ) -> Result<T, BackendError> {
        if self.turn == 0 { act(&*self.medium.storage) } else { Ok(granted) }
    }
}

/// An error that says the same.
fn copy(error: &io::Error) -> io::Error {
    let text = || io::Error::new(error.kind(), error.to_string());
    error.raw_os_error().map_or_else(text, io::Error::from_raw_os_error)
}

impl StorageBackend for View {
    fn len(&self) -> io::Result<u64> {
        self.run(|medium| medium.storage.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.run(|medium| {
            let end = u64::try_from(out.len()).ok().and_then(|len| offset.checked_add(len));
            if end.is_none_or(|end| end > medium.len.load(Ordering::Acquire)) {
                out.fill(0);
                return Ok(());
            }
            medium.storage.read(offset, out)
        })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.run(|medium| {
            medium.storage.set_len(len)?;
            medium.len.store(len, Ordering::Release);
            Ok(())
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        self.run(|medium| {
            let synced = medium.storage.sync_data();
            if synced.is_ok() {
                medium.start.lock().sync();
            } else {
                // A process that is killed now must not leave the commit to the next one.
                drop(medium.write_synced_start());
            }
            synced
        })
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.run(|medium| {
            medium.storage.write(offset, data)?;
            medium.start.lock().write(offset, data);
            Ok(())
        })
    }

    // The medium closes the storage. Until then the file stays locked.
    fn close(&self) -> io::Result<()> {
        Ok(())
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.lock(true, |storage| storage.try_lock_range(start, end))
    }

    fn try_lock_shared_range(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
    ) -> Result<bool, BackendError> {
        self.lock(true, |storage| storage.try_lock_shared_range(start, end))
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.lock((), |storage| storage.lock_range(start, end))
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.lock((), |storage| storage.lock_shared_range(start, end))
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.lock((), |storage| storage.unlock_range(start, end))
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.lock(false, |storage| storage.query_lock_range(start, end))
    }
}

#[cfg(test)]
mod tests {
    use redb::backends::InMemoryBackend;

    use super::*;

    #[test]
    fn the_next_view_starts_at_the_last_sync_and_ends_the_earlier_one() {
        let (medium, first) = Medium::of(Box::new(InMemoryBackend::new()));
        first.set_len(1_024).unwrap();
        first.write(0, b"synced").unwrap();
        first.sync_data().unwrap();
        let version = medium.version();
        first.write(0, b"lost").unwrap();
        first.write(512, b"page").unwrap();
        assert_eq!(medium.version(), version);

        let next = medium.renew().unwrap();
        let mut bytes = [0; 6];
        next.read(0, &mut bytes).unwrap();
        assert_eq!(&bytes, b"synced");
        let outdated = |result: io::Result<()>| Outdated::is_in(&result.unwrap_err());
        assert!(outdated(first.read(0, &mut bytes)));
        assert!(outdated(first.write(0, b"late")));
        assert!(outdated(first.sync_data()));
        assert!(medium.trouble().is_none());
    }
}
