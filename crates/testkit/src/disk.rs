//! A disk that can be watched, held up, broken and unplugged.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard};
use std::{io, iter};

use redb::StorageBackend;
use store::redb::{AppliedBy, LogOptions, LogPlace, RedbOptions, RedbStore};

use crate::dice::Dice;
pub use crate::paged::PAGE;
use crate::paged::Paged;

const NAME: &str = "simulated disk";

/// Power fails between writes of this many bytes, not within them.
const SECTOR: usize = 512;

/// A disk in memory, with a file and its log. Clones are the same disk. As a storage it is the file.
#[derive(Clone, Debug)]
pub struct Disk(Arc<State>);

/// The log on a disk, as a place and as a storage. Its number tells it from logs of the same name.
#[derive(Clone, Debug)]
pub struct DiskLog {
    disk: Disk,
    number: usize,
}

#[derive(Debug)]
struct State {
    files: Mutex<Files>,
    syncing: Mutex<()>,
    syncs: AtomicUsize,
    broken: Mutex<Option<fn() -> io::Error>>,
    /// Whether only the syncs of the file are broken, and not those of the log.
    broken_file: AtomicBool,
    /// What becomes of the next change of the file's length that would shrink it.
    broken_shrink: Mutex<Option<BrokenShrink>>,
    /// Whether syncs do nothing, and say that they have done it.
    lies: AtomicBool,
    /// Number of operations before the power fails.
    power: AtomicU64,
    room: Mutex<Room>,
}

/// Fails in the place of making the file shorter.
pub type BrokenShrink = fn(&Disk) -> io::Error;

/// Pages that are free, and when a disk notices that there are none.
#[derive(Clone, Copy, Debug)]
struct Room {
    pages: usize,
    noticed: Noticed,
}

/// When a disk notices that it is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noticed {
    /// With the write that finds no room.
    AtWrite,
    /// With the sync, which then loses the writes since the last one. Readers still see them.
    AtSync,
}

/// All files that have ever been there, and which of them has the name of the log.
#[derive(Clone, Debug)]
struct Files {
    /// The first one is the file, the others are logs.
    contents: Vec<Content>,
    name: Name,
}

/// The log that a name leads to: as a reader sees it, at the last sync of the folder, and since then.
#[derive(Clone, Debug, Default)]
struct Name {
    now: Option<usize>,
    synced: Option<usize>,
    unsynced: Vec<Option<usize>>,
}

#[derive(Clone, Debug, Default)]
struct Content {
    /// View of a reader.
    now: Paged,
    /// Content at the last sync.
    synced: Paged,
    /// Writes since the last sync.
    unsynced: Vec<Edit>,
    /// Pages that have their room on the disk.
    pages: BTreeSet<usize>,
    /// Pages that get theirs with the next sync.
    wanted: BTreeSet<usize>,
}

#[derive(Clone, Debug)]
enum Edit {
    Write(usize, Vec<u8>),
    SetLen(usize),
}

impl Disk {
    /// An empty disk.
    pub fn new() -> Self {
        Self::of_pages(Paged::default(), None)
    }

    /// A disk with these bytes in its file.
    pub fn holding(bytes: Vec<u8>) -> Self {
        Self::with_log(bytes, None)
    }

    /// A disk with these bytes in its file, and a log with those.
    pub fn with_log(bytes: Vec<u8>, log: Option<Vec<u8>>) -> Self {
        Self::of_pages(bytes.into(), log.map(Paged::from))
    }

    /// A disk with these bytes in its file and its log, whose pages are copied when they are written.
    pub fn of_pages(file: Paged, log: Option<Paged>) -> Self {
        Self::from(Files::of(file, log))
    }

    fn from(files: Files) -> Self {
        Self(Arc::new(State {
            files: Mutex::new(files),
            syncing: Mutex::default(),
            syncs: AtomicUsize::new(0),
            broken: Mutex::default(),
            broken_file: AtomicBool::new(false),
            broken_shrink: Mutex::default(),
            lies: AtomicBool::new(false),
            power: AtomicU64::new(u64::MAX),
            room: Mutex::new(Room { pages: usize::MAX, noticed: Noticed::AtWrite }),
        }))
    }

    /// The store on it, without a log, which is created if there is none.
    pub fn open(&self) -> RedbStore {
        self.try_open().expect("nothing is wrong with the disk")
    }

    /// The store on it, without a log, or the error of opening the store.
    pub fn try_open(&self) -> store::Result<RedbStore> {
        RedbStore::open_storage(self.clone(), NAME, &RedbOptions::default())
    }

    /// The store on it, with a log so small that it is often applied. The store is created if there
    /// is none.
    pub fn open_logged(&self, applied_by: AppliedBy) -> RedbStore {
        self.try_open_logged(applied_by).expect("nothing is wrong with the disk")
    }

    /// The store on it, with a log, or the error of opening the store.
    pub fn try_open_logged(&self, applied_by: AppliedBy) -> store::Result<RedbStore> {
        let log = LogOptions::default().memtable_bytes(12 << 10).applied_by(applied_by);
        self.open_with(&RedbOptions::default().log(log))
    }

    /// The store on it, with a log if the options want one, or the error of opening the store.
    pub fn open_with(&self, options: &RedbOptions) -> store::Result<RedbStore> {
        RedbStore::open_storage_with_log(self.clone(), self.log(), NAME, options)
    }

    fn log(&self) -> DiskLog {
        DiskLog { disk: self.clone(), number: usize::MAX }
    }

    /// Another disk with the same content, as found by a process that starts after a kill.
    #[must_use]
    pub fn after_kill(&self) -> Self {
        let (file, log) = self.pages();
        Self::of_pages(file, log)
    }

    /// View of a reader of the file.
    pub fn bytes(&self) -> Vec<u8> {
        self.pages().0.to_vec()
    }

    /// View of a reader of the log, or `None` if there is none.
    pub fn log_bytes(&self) -> Option<Vec<u8>> {
        self.pages().1.map(|log| log.to_vec())
    }

    /// View of a reader of the file, and of the log if there is one.
    pub fn pages(&self) -> (Paged, Option<Paged>) {
        let Files { contents, name } = &*self.files();
        (contents[0].now.clone(), name.now.map(|number| contents[number].now.clone()))
    }

    /// Puts a copy of one page in the place of another one.
    pub fn copy_page(&self, from: usize, to: usize) {
        let Content { now, synced, .. } = &mut self.files().contents[0];
        let mut page = [0; PAGE];
        assert!(now.read(from * PAGE, &mut page), "there is no such page");
        now.write(to * PAGE, &page);
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

    /// Makes every sync of the file fail from now on, and none of the log.
    pub fn break_syncs_of_file(&self, failure: fn() -> io::Error) {
        self.0.broken_file.store(true, SeqCst);
        self.break_syncs(failure);
    }

    /// Lets syncs succeed again. As an operating system may, the disk holds for written what a sync has failed
    /// to write, and the dice decide what of it is durable: the rest never becomes durable.
    pub fn mend_syncs(&self, dice: &mut Dice) {
        for content in &mut self.files().contents {
            let Content { synced, unsynced, .. } = content;
            for edit in unsynced.drain(..).filter(|_| dice.roll(2) == 0) {
                edit.make(synced);
            }
        }
        self.0.broken_file.store(false, SeqCst);
        *self.0.broken.lock().unwrap() = None;
    }

    /// Makes the file fail to shrink, once. The failure may do more to the disk.
    pub fn break_shrink(&self, failure: BrokenShrink) {
        *self.0.broken_shrink.lock().unwrap() = Some(failure);
    }

    /// Returns `true` if the file has not yet failed to shrink.
    pub fn has_broken_shrink(&self) -> bool {
        self.0.broken_shrink.lock().unwrap().is_some()
    }

    /// Makes every sync from now on do nothing, and succeed.
    pub fn lie(&self) {
        self.0.lies.store(true, SeqCst);
    }

    /// Lets the power fail after so many operations on either file.
    pub fn unplug_after(&self, operations: u64) {
        self.0.power.store(operations, SeqCst);
    }

    /// Number of operations that the power is on for.
    pub fn power_left(&self) -> u64 {
        self.0.power.load(SeqCst)
    }

    /// Leaves room for so many pages that were never written. Growing a file takes none.
    pub fn leave_room(&self, pages: usize, noticed: Noticed) {
        *self.0.room.lock().unwrap() = Room { pages, noticed };
    }

    /// Returns the disk after a power cut. All synced bytes remain, and the dice decide about each
    /// unsynced write, and how far the folder has come.
    #[must_use]
    pub fn after_power_cut(&self, dice: &mut Dice) -> Disk {
        let Files { contents, name } = self.files().clone();
        let names: Vec<_> = iter::once(name.synced).chain(name.unsynced).collect();
        let name = names[usize::try_from(dice.roll(names.len() as u64)).unwrap()];
        let mut contents = contents.into_iter().map(|content| content.after_power_cut(dice));
        let file = contents.next().unwrap();
        Disk::of_pages(file, name.and_then(|number| contents.nth(number - 1)))
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.0.files.lock().unwrap()
    }

    fn len_of(&self, file: usize) -> u64 {
        self.files().contents[file].now.len() as u64
    }

    fn read_of(&self, file: usize, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.use_power()?;
        let files = self.files();
        let offset = usize::try_from(offset).unwrap();
        let is_there = files.contents[file].now.read(offset, out);
        if is_there { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    fn edit(&self, file: usize, edit: Edit) -> io::Result<()> {
        self.use_power()?;
        let content = &mut self.files().contents[file];
        let edit = match edit {
            Edit::Write(offset, data) => content.place(offset, data, &self.0.room)?,
            Edit::SetLen(_) => edit,
        };
        edit.make(&mut content.now);
        content.unsynced.push(edit);
        Ok(())
    }

    /// Makes the content of one file durable, and nothing else.
    fn sync(&self, file: usize) -> io::Result<()> {
        self.use_power()?;
        self.0.syncs.fetch_add(1, SeqCst);
        drop(self.0.syncing.lock().unwrap());
        let broken = *self.0.broken.lock().unwrap();
        let spared = file > 0 && self.0.broken_file.load(SeqCst);
        if let Some(failure) = broken.filter(|_| !spared) {
            return Err(failure());
        }
        if !self.0.lies.load(SeqCst) {
            let content = &mut self.files().contents[file];
            content.take_room(&self.0.room)?;
            let Content { synced, unsynced, .. } = content;
            for edit in unsynced.drain(..) {
                edit.make(synced);
            }
        }
        Ok(())
    }

    fn rename(&self, log: Option<usize>) -> io::Result<()> {
        self.use_power()?;
        let Files { contents, name } = &mut *self.files();
        if let Some(removed) = name.now {
            let pages = std::mem::take(&mut contents[removed].pages).len();
            let room = &mut self.0.room.lock().unwrap().pages;
            *room = room.saturating_add(pages);
        }
        name.now = log;
        name.unsynced.push(log);
        Ok(())
    }

    fn sync_folder(&self) -> io::Result<()> {
        self.use_power()?;
        let Name { now, synced, unsynced } = &mut self.files().name;
        *synced = *now;
        unsynced.clear();
        Ok(())
    }

    fn use_power(&self) -> io::Result<()> {
        let left = self.0.power.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1));
        left.map(drop).map_err(|_| io::Error::other("the power is gone"))
    }
}

impl Files {
    fn of(file: Paged, log: Option<Paged>) -> Self {
        let name = log.as_ref().map(|_| 1);
        let name = Name { now: name, synced: name, unsynced: Vec::new() };
        Files { contents: iter::once(file).chain(log).map(Content::holding).collect(), name }
    }
}

impl Content {
    fn holding(bytes: Paged) -> Self {
        let pages = (0..bytes.len().div_ceil(PAGE)).collect();
        let now = bytes.clone();
        Content { now, synced: bytes, pages, ..Self::default() }
    }

    /// The write, or as much of it as there is room for, and then an error.
    fn place(&mut self, offset: usize, data: Vec<u8>, room: &Mutex<Room>) -> io::Result<Edit> {
        let room = &mut *room.lock().unwrap();
        let touched = offset / PAGE..(offset + data.len()).div_ceil(PAGE);
        if room.noticed == Noticed::AtSync {
            self.wanted.extend(touched.filter(|page| !self.pages.contains(page)));
            return Ok(Edit::Write(offset, data));
        }
        for page in touched {
            if self.pages.contains(&page) {
                continue;
            }
            if room.pages == 0 {
                let fits = data.get(..(page * PAGE).saturating_sub(offset)).unwrap_or_default();
                let edit = Edit::Write(offset, fits.to_vec());
                if !fits.is_empty() {
                    edit.make(&mut self.now);
                    self.unsynced.push(edit);
                }
                return Err(io::ErrorKind::StorageFull.into());
            }
            room.pages -= 1;
            self.pages.insert(page);
        }
        Ok(Edit::Write(offset, data))
    }

    /// Gives each page that was written its room, or loses the writes since the last sync.
    fn take_room(&mut self, room: &Mutex<Room>) -> io::Result<()> {
        let room = &mut *room.lock().unwrap();
        let wanted = std::mem::take(&mut self.wanted);
        if let Some(left) = room.pages.checked_sub(wanted.len()) {
            room.pages = left;
            self.pages.extend(wanted);
            return Ok(());
        }
        self.unsynced.retain(|edit| matches!(edit, Edit::SetLen(_)));
        Err(io::ErrorKind::StorageFull.into())
    }

    fn after_power_cut(self, dice: &mut Dice) -> Paged {
        let mut bytes = self.synced;
        for edit in self.unsynced {
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
        bytes
    }
}

impl Default for Disk {
    fn default() -> Self {
        Self::new()
    }
}

impl Edit {
    fn make(&self, bytes: &mut Paged) {
        match self {
            // A write may remain although the earlier growth of the file is lost.
            Edit::Write(offset, data) => bytes.write(*offset, data),
            Edit::SetLen(len) => bytes.set_len(*len),
        }
    }
}

impl LogPlace for DiskLog {
    fn open(&self) -> io::Result<Option<Box<dyn StorageBackend>>> {
        self.disk.use_power()?;
        let number = self.disk.files().name.now;
        Ok(number.map(|number| Box::new(DiskLog { number, ..self.clone() }) as _))
    }

    fn create(&self) -> io::Result<Box<dyn StorageBackend>> {
        let mut files = self.disk.files();
        let number = files.contents.len();
        files.contents.push(Content::default());
        drop(files);
        self.disk.rename(Some(number))?;
        self.disk.sync_folder()?;
        Ok(Box::new(DiskLog { number, ..self.clone() }))
    }

    fn remove(&self) -> io::Result<()> {
        self.disk.rename(None)
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.len_of(0))
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.read_of(0, offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        if len < self.len_of(0)
            && let Some(failure) = self.0.broken_shrink.lock().unwrap().take()
        {
            return Err(failure(self));
        }
        self.edit(0, Edit::SetLen(usize::try_from(len).unwrap()))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.sync(0)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.edit(0, Edit::Write(usize::try_from(offset).unwrap(), data.to_vec()))
    }
}

impl StorageBackend for DiskLog {
    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.len_of(self.number))
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.disk.read_of(self.number, offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.disk.edit(self.number, Edit::SetLen(usize::try_from(len).unwrap()))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk.sync(self.number)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.disk.edit(self.number, Edit::Write(usize::try_from(offset).unwrap(), data.to_vec()))
    }
}
