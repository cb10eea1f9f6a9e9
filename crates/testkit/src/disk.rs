//! A disk in memory.

use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard};

use redb::StorageBackend;
use store::redb::{RedbOptions, RedbStore};

/// A disk. Clones are the same one.
#[derive(Clone, Debug, Default)]
pub struct Disk(Arc<Mutex<Vec<u8>>>);

impl Disk {
    /// The store on it, which is created if there is none.
    pub fn open(&self) -> RedbStore {
        RedbStore::open_storage(self.clone(), "disk in memory", &RedbOptions::default())
            .expect("nothing is wrong with the disk")
    }

    /// Another disk with the same on it: what a process finds that is started after this one was
    /// killed.
    #[must_use]
    pub fn copied(&self) -> Self {
        Self(Arc::new(Mutex::new(self.bytes().clone())))
    }

    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().expect("nobody panics with the disk in hand")
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let (bytes, start) = (self.bytes(), index(offset)?);
        let found = bytes.get(start..start + out.len()).ok_or(ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(found);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.bytes().resize(index(len)?, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let (mut bytes, start) = (self.bytes(), index(offset)?);
        let place = bytes.get_mut(start..start + data.len()).ok_or(ErrorKind::UnexpectedEof)?;
        place.copy_from_slice(data);
        Ok(())
    }
}

fn index(offset: u64) -> io::Result<usize> {
    usize::try_from(offset).map_err(io::Error::other)
}
