//! A disk that can be watched, slowed down, broken and unplugged.

use std::io;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use redb::StorageBackend;
use store::redb::{RedbOptions, RedbStore};

/// Power fails between writes of this many bytes, not within them.
const SECTOR: usize = 512;

/// Size of a page of redb, in bytes.
pub const PAGE: usize = 4_096;

/// A disk in memory. Clones are the same disk.
#[derive(Clone, Debug)]
pub struct Disk(Arc<State>);

#[derive(Debug)]
struct State {
    platter: Mutex<Platter>,
    syncing: Mutex<()>,
    sync_time: Duration,
    syncs: AtomicUsize,
    broken: Mutex<Option<fn() -> io::Error>>,
    /// Number of operations before the power fails.
    power: AtomicU64,
}

#[derive(Clone, Debug, Default)]
struct Platter {
    /// View of a reader.
    now: Vec<u8>,
    /// Content at the last sync.
    synced: Vec<u8>,
    /// Writes since the last sync.
    unsynced: Vec<Edit>,
}

#[derive(Clone, Debug)]
enum Edit {
    Write(usize, Vec<u8>),
    SetLen(usize),
}

impl Disk {
    /// An empty disk that takes no time to sync.
    pub fn new() -> Self {
        Self::with_sync_time(Duration::ZERO)
    }

    /// A disk that takes so long to sync.
    pub fn with_sync_time(sync_time: Duration) -> Self {
        Self::from(Platter::default(), sync_time)
    }

    /// A disk with these bytes on it.
    pub fn holding(bytes: Vec<u8>) -> Self {
        let platter = Platter { now: bytes.clone(), synced: bytes, unsynced: Vec::new() };
        Self::from(platter, Duration::ZERO)
    }

    fn from(platter: Platter, sync_time: Duration) -> Self {
        Self(Arc::new(State {
            platter: Mutex::new(platter),
            syncing: Mutex::default(),
            sync_time,
            syncs: AtomicUsize::new(0),
            broken: Mutex::default(),
            power: AtomicU64::new(u64::MAX),
        }))
    }

    /// The store on it, which is created if there is none.
    pub fn open(&self) -> RedbStore {
        self.try_open().expect("nothing is wrong with the disk")
    }

    /// The store on it, or the error of opening the store.
    pub fn try_open(&self) -> store::Result<RedbStore> {
        RedbStore::open_storage(self.clone(), "simulated disk", &RedbOptions::default())
    }

    /// Another disk with the same content, as found by a process that starts after a kill.
    #[must_use]
    pub fn after_kill(&self) -> Self {
        Self::holding(self.bytes())
    }

    /// View of a reader.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.platter.lock().unwrap().now.clone()
    }

    /// Puts a copy of one page in the place of another one.
    pub fn copy_page(&self, from: usize, to: usize) {
        let mut platter = self.0.platter.lock().unwrap();
        let Platter { now, synced, .. } = &mut *platter;
        now.copy_within(from * PAGE..(from + 1) * PAGE, to * PAGE);
        synced.clone_from(now);
    }

    /// Number of started syncs.
    pub fn syncs(&self) -> usize {
        self.0.syncs.load(SeqCst)
    }

    /// Keeps every sync waiting until the guard is dropped.
    pub fn hold_syncs(&self) -> MutexGuard<'_, ()> {
        self.0.syncing.lock().unwrap()
    }

    /// Makes every sync fail from now on, with an error or by a panic.
    pub fn break_syncs(&self, failure: fn() -> io::Error) {
        *self.0.broken.lock().unwrap() = Some(failure);
    }

    /// Lets the power fail after so many operations.
    pub fn unplug_after(&self, operations: u64) {
        self.0.power.store(operations, SeqCst);
    }

    /// Returns the disk after a power cut. All synced bytes remain, and the dice decide about each
    /// unsynced write.
    #[must_use]
    pub fn after_power_cut(&self, dice: &mut Dice) -> Disk {
        let Platter { synced: mut bytes, unsynced, .. } = self.0.platter.lock().unwrap().clone();
        for edit in unsynced {
            match edit {
                Edit::Write(offset, data) => {
                    for (sector, data) in data.chunks(SECTOR).enumerate() {
                        if dice.roll(2) == 0 {
                            Edit::Write(offset + sector * SECTOR, data.to_vec()).make(&mut bytes);
                        }
                    }
                }
                Edit::SetLen(_) if dice.roll(2) == 0 => edit.make(&mut bytes),
                Edit::SetLen(_) => {}
            }
        }
        Disk::holding(bytes)
    }

    fn edit(&self, edit: Edit) -> io::Result<()> {
        self.use_power()?;
        let mut platter = self.0.platter.lock().unwrap();
        edit.make(&mut platter.now);
        platter.unsynced.push(edit);
        Ok(())
    }

    fn use_power(&self) -> io::Result<()> {
        let left = self.0.power.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1));
        left.map(drop).map_err(|_| io::Error::other("the power is gone"))
    }
}

impl Default for Disk {
    fn default() -> Self {
        Self::new()
    }
}

impl Edit {
    fn make(&self, bytes: &mut Vec<u8>) {
        match self {
            Edit::Write(offset, data) => {
                // A write may remain although the earlier growth of the file is lost.
                let end = offset + data.len();
                bytes.resize(bytes.len().max(end), 0);
                bytes[*offset..end].copy_from_slice(data);
            }
            Edit::SetLen(len) => bytes.resize(*len, 0),
        }
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.platter.lock().unwrap().now.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.use_power()?;
        let platter = self.0.platter.lock().unwrap();
        let offset = usize::try_from(offset).unwrap();
        let bytes = platter.now.get(offset..offset + out.len());
        out.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.edit(Edit::SetLen(usize::try_from(len).unwrap()))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.use_power()?;
        self.0.syncs.fetch_add(1, SeqCst);
        drop(self.0.syncing.lock().unwrap());
        thread::sleep(self.0.sync_time);
        let broken = *self.0.broken.lock().unwrap();
        if let Some(failure) = broken {
            return Err(failure());
        }
        let mut platter = self.0.platter.lock().unwrap();
        let Platter { synced, unsynced, .. } = &mut *platter;
        for edit in unsynced.drain(..) {
            edit.make(synced);
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.edit(Edit::Write(usize::try_from(offset).unwrap(), data.to_vec()))
    }
}

/// Dice that fall the same way for the same seed.
#[derive(Debug)]
pub struct Dice(u64);

impl Dice {
    /// Dice of that seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `count`.
    pub fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.roll(count as u64)).expect("it is below a `usize`")
    }

    /// A number below `sides`.
    pub fn roll(&mut self, sides: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }
}
