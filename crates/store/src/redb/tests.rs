//! A storage of the host that fails where no file does.

use std::fmt;
use std::io::{self, ErrorKind};
use std::mem;
use std::ops::{Bound, ControlFlow};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use redb::StorageBackend;
use redb::backends::InMemoryBackend;

use super::database::{DatabaseFile, Durable};
use super::disk::Disk;
use super::failure::Failure;
use super::{RedbOptions, open};
use crate::{Order, Snapshot, Table};

/// Far longer than anything here takes.
const LONG: Duration = Duration::from_secs(20);

/// What a storage is asked for, as far as it can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Write,
    Sync,
}

type Hook = Box<dyn FnMut(Act) -> io::Result<()> + Send>;

/// A storage in memory with a hook in front of each write and sync. Clones are the same storage.
#[derive(Clone)]
struct Hooked {
    bytes: Arc<InMemoryBackend>,
    hook: Arc<Mutex<Hook>>,
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

/// A database whose cache is so small that redb writes ahead of its commits.
fn database(storage: &Hooked) -> DatabaseFile {
    let options = RedbOptions { cache_bytes: 64 << 10, log: None, ..RedbOptions::default() };
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
    let (all, order) = ((Bound::Unbounded, Bound::Unbounded), Order::Ascending);
    let visit = &mut |_: &[u8], _: &[u8]| ControlFlow::Continue(());
    Disk::now(file).unwrap().scan(Table::ALL[0], &all, order, None, visit).unwrap();
    assert!(file.has_failed(), "there was nothing to write");
    storage.set_hook(|_| Ok(()));
}

/// Commits more than the cache holds.
fn commit(file: &DatabaseFile, value: u8) -> Result<Durable, Failure> {
    let keys: Vec<_> = (0..400_u32).map(u32::to_be_bytes).collect();
    let value = [value; 1_000];
    file.commit(keys.iter().map(|key| (Table::ALL[0], key.as_slice(), Some(&value[..]))), None)
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
