//! A storage of the host that fails or panics where no file does.

use std::fmt;
use std::io::{self, ErrorKind};
use std::mem;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use redb::StorageBackend;
use redb::backends::InMemoryBackend;

use super::database::{DatabaseFile, Durable};
use super::disk::Disk;
use super::failure::Failure;
use super::{AppliedBy, LogOptions, LogPlace, Loss, RedbOptions, RedbStore, open};
use crate::range::EVERYTHING;
use crate::{Decision, Error, Order, Snapshot, Store, Table};

#[cfg(unix)]
mod names;

/// Far longer than anything here takes.
const LONG: Duration = Duration::from_secs(20);

const SMALL_LOG: LogOptions = LogOptions { memtable_bytes: 4_096, applied_by: AppliedBy::Thread };

/// What a storage is asked for, as far as it can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Write,
    Sync,
}

type Hook = Box<dyn FnMut(Act) -> io::Result<()> + Send>;

type Lost = fn() -> Option<Loss>;

/// A storage in memory with a hook in front of each write and sync. Clones are the same storage.
#[derive(Clone)]
struct Hooked {
    bytes: Arc<InMemoryBackend>,
    hook: Arc<Mutex<Hook>>,
}

/// A place in memory, and what it says of a loss. Clones are the same place.
#[derive(Clone, Debug)]
struct Place {
    bytes: Arc<Mutex<Option<Hooked>>>,
    lost: Arc<Mutex<Lost>>,
}

#[test]
fn a_shortage_that_redb_has_got_over_is_dropped() {
    let storage = Hooked::new();
    let file = &database(&storage);
    read_on_a_full_disk(file, &storage);
    assert!(matches!(commit(file, 3), Ok(Durable::Shown)));
    assert!(!file.has_failed(), "the shortage is over");
}

#[test]
fn a_file_is_not_opened_again_within_a_commit() {
    let storage = Hooked::new();
    let file = &database(&storage);
    read_on_a_full_disk(file, &storage);
    let (reach, reached) = channel();
    let (go_on, wait) = channel::<()>();
    let mut is_first = true;
    storage.set_hook(move |act| {
        if act == Act::Write && mem::take(&mut is_first) {
            reach.send(()).unwrap();
            wait.recv().unwrap();
        }
        Ok(())
    });
    thread::scope(|scope| {
        let committing = scope.spawn(move || commit(file, 3));
        reached.recv_timeout(LONG).unwrap();
        let reopening = scope.spawn(move || file.reopen());
        thread::sleep(Duration::from_millis(100));
        go_on.send(()).unwrap();
        let committed = committing.join().unwrap();
        assert!(matches!(committed, Ok(Durable::Shown)), "the commit is interrupted");
        assert!(reopening.join().unwrap().is_ok());
        let mut found = 0;
        let visit = &mut |value: &[u8]| found = value[0];
        assert!(Disk::now(file).unwrap().get(Table::ALL[0], &[0; 4], visit).unwrap());
        assert_eq!(found, 3, "the commit is lost");
    });
}

/// One caller leads, and the other waits for it.
#[test]
fn a_panic_of_the_place_is_the_error_of_all_who_wait() {
    for logged in [false, true] {
        let (place, log) = (Place::new(), logged.then_some(SMALL_LOG));
        let options = RedbOptions::default().log(log);
        let store =
            RedbStore::open_storage_with_log(Hooked::new(), place.clone(), "shop", &options);
        let store = Arc::new(store.unwrap());
        write(&store, b"ada").unwrap();
        *place.lost.lock() = || panic!("on purpose");
        let (join, joined) = channel();
        let first = {
            let store = Arc::clone(&store);
            in_time(move || {
                store.write(&mut |transaction| {
                    join.send(()).unwrap();
                    // The other caller comes while this body runs.
                    thread::sleep(Duration::from_millis(50));
                    transaction.put(Table::ALL[0], b"bob", b"").map(|()| Decision::Commit)
                })
            })
        };
        joined.recv_timeout(LONG).unwrap();
        let second = {
            let store = Arc::clone(&store);
            in_time(move || write(&store, b"cid"))
        };
        for caller in [second, first] {
            let told = caller.recv_timeout(LONG).map_err(named).expect("a caller waits");
            assert!(matches!(told, Err(Error::NeedsReopen { .. })), "{told:?}");
        }
    }
}

/// The storage panics while the thread that applies opens the file again.
#[test]
fn a_panic_of_the_storage_that_is_opened_again_is_the_error_of_all_who_wait() {
    let (storage, mut has_failed) = (Hooked::new(), false);
    let options = RedbOptions::default().log(SMALL_LOG);
    let store = RedbStore::open_storage_with_log(storage.clone(), Place::new(), "shop", &options);
    let store = Arc::new(store.unwrap());
    write(&store, b"ada").unwrap();
    storage.set_hook(move |act| match act {
        Act::Sync => {
            has_failed = true;
            Err(ErrorKind::StorageFull.into())
        }
        Act::Write => {
            assert!(!has_failed, "on purpose");
            Ok(())
        }
    });
    let written = in_time(move || (0..100_u32).try_for_each(|id| write(&store, &id.to_be_bytes())));
    let told = written.recv_timeout(LONG).map_err(named).expect("a caller waits");
    assert!(matches!(told, Err(Error::NeedsReopen { .. })), "{told:?}");
}

/// Another store may have its log there.
#[test]
fn a_log_beside_another_file_stays_after_a_full_disk() {
    let (storage, place) = (Hooked::new(), Place::new());
    let options = RedbOptions::default().log(SMALL_LOG);
    let store = RedbStore::open_storage_with_log(storage.clone(), place.clone(), "shop", &options);
    let store = store.unwrap();
    write(&store, b"ada").unwrap();
    storage.set_hook(|act| match act {
        Act::Sync => Err(ErrorKind::StorageFull.into()),
        Act::Write => Ok(()),
    });
    let told = (0..100_u32).try_for_each(|id| write(&store, &id.to_be_bytes()));
    assert!(matches!(told, Err(Error::StorageFull { .. })), "{told:?}");
    storage.set_hook(|_| Ok(()));
    *place.lost.lock() = || Some(Loss::File);
    let is_full = |told: &Result<(), Error>| matches!(told, Err(Error::StorageFull { .. }));
    let mut told = write(&store, b"bob");
    while is_full(&told) {
        thread::sleep(Duration::from_millis(10));
        told = write(&store, b"bob");
    }
    assert!(matches!(told, Err(Error::Replaced { .. })), "{told:?}");
    drop(store);
    assert!(place.bytes.lock().is_some(), "the log is gone");
}

/// A file that cannot be opened again is not one that the next call reads.
#[test]
fn a_read_of_a_file_that_stays_closed_says_so() {
    let storage = Hooked::new();
    let file = &database(&storage);
    assert!(matches!(commit(file, 1), Ok(Durable::Shown)));
    storage.set_hook(|_| Err(ErrorKind::StorageFull.into()));
    assert!(matches!(commit(file, 2), Err(Failure::Full { .. })));
    storage.set_hook(|_| Err(io::Error::other("on purpose")));
    assert!(matches!(file.reopen(), Err(Failure::Refused { .. })));
    let read = read(file);
    assert!(matches!(read, Err(Error::NeedsReopen { .. })), "{read:?}");
}

/// A database whose cache is so small that redb writes ahead of its commits.
fn database(storage: &Hooked) -> DatabaseFile {
    let options = RedbOptions::default().cache_bytes(64 << 10).log(None);
    let opened = open::open(Box::new(storage.clone()), Path::new("shop"), &options, None);
    opened.map(|(file, _)| file).unwrap()
}

/// Reads more than the cache holds. redb then writes what it keeps behind a commit, if there is room,
/// and goes on if there is none.
fn read_on_a_full_disk(file: &DatabaseFile, storage: &Hooked) {
    // The second commit frees pages of the first one.
    for value in 1..3 {
        assert!(matches!(commit(file, value), Ok(Durable::Shown)));
    }
    storage.set_hook(|_| Err(ErrorKind::StorageFull.into()));
    read(file).unwrap();
    assert!(file.has_failed(), "there was nothing to write");
    storage.set_hook(|_| Ok(()));
}

/// Reads everything.
fn read(file: &DatabaseFile) -> Result<(), Error> {
    let visit = &mut |_: &[u8], _: &[u8]| ControlFlow::Continue(());
    Disk::now(file)?.scan(Table::ALL[0], &EVERYTHING, Order::Ascending, None, visit)
}

/// Commits more than the cache holds.
fn commit(file: &DatabaseFile, value: u8) -> Result<Durable, Failure> {
    let keys: Vec<_> = (0..400_u32).map(u32::to_be_bytes).collect();
    let value = [value; 1_000];
    file.commit(keys.iter().map(|key| (Table::ALL[0], key.as_slice(), Some(&value[..]))), None)
}

fn write(store: &RedbStore, key: &[u8]) -> Result<(), Error> {
    store.write(&mut |transaction| {
        transaction.put(Table::ALL[0], key, &[1; 1_000]).map(|()| Decision::Commit)
    })
}

/// Runs `act` in a thread of its own, which remains if it never ends.
fn in_time<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> Receiver<T> {
    let (end, ended) = channel();
    thread::spawn(move || drop(end.send(act())));
    ended
}

fn named(error: RecvTimeoutError) -> &'static str {
    match error {
        RecvTimeoutError::Timeout => "it never ends",
        RecvTimeoutError::Disconnected => "it has panicked",
    }
}

impl Hooked {
    fn new() -> Self {
        let hook: Hook = Box::new(|_| Ok(()));
        Self { bytes: Arc::new(InMemoryBackend::new()), hook: Arc::new(Mutex::new(hook)) }
    }

    fn set_hook(&self, hook: impl FnMut(Act) -> io::Result<()> + Send + 'static) {
        *self.hook.lock() = Box::new(hook);
    }

    fn before(&self, act: Act) -> io::Result<()> {
        (*self.hook.lock())(act)
    }
}

impl fmt::Debug for Hooked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooked").finish_non_exhaustive()
    }
}

impl StorageBackend for Hooked {
    fn len(&self) -> io::Result<u64> {
        self.bytes.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.bytes.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.bytes.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.before(Act::Sync)?;
        self.bytes.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.before(Act::Write)?;
        self.bytes.write(offset, data)
    }
}

impl Place {
    fn new() -> Self {
        Self { bytes: Arc::default(), lost: Arc::new(Mutex::new(|| None)) }
    }
}

impl LogPlace for Place {
    fn open(&self) -> io::Result<Option<Box<dyn StorageBackend>>> {
        Ok(self.bytes.lock().clone().map(|bytes| Box::new(bytes) as _))
    }

    fn create(&self) -> io::Result<Box<dyn StorageBackend>> {
        let bytes = Hooked::new();
        bytes.set_len(1 << 20)?;
        *self.bytes.lock() = Some(bytes.clone());
        Ok(Box::new(bytes))
    }

    fn remove(&self) -> io::Result<()> {
        *self.bytes.lock() = None;
        Ok(())
    }

    fn lost(&self) -> Option<Loss> {
        let lost = *self.lost.lock();
        lost()
    }
}
