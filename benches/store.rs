//! What group commit is worth: callers that write five records each, alone and in a crowd, through
//! `RedbStore` and through redb as it comes, side by side; and what reading costs.
//!
//! ```text
//! cargo bench --bench store
//! ```
//!
//! Only ratios within one run mean anything.

use std::hint::{black_box, spin_loop};
use std::io;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use redb::backends::{FileBackend, InMemoryBackend};
use redb::{Builder, Database, StorageBackend, TableDefinition};
use store::memory::MemoryStore;
use store::redb::{RedbOptions, RedbStore};
use store::{Decision, Order, Store, Table};
use tempfile::tempfile;

const CROWD: u64 = 64;
const OPERATIONS: u64 = 4_096;
const RECORDS: u64 = 20_000;
const GETS: u64 = 200_000;
const SCANS: u64 = 2_000;

fn main() {
    println!("five records an operation    callers   operations/s   operations/sync   gain");
    compare("file", || {
        Watched::new(FileBackend::new(tempfile().unwrap()).unwrap(), Duration::ZERO)
    });
    compare("memory, sync = 0.1 ms", || {
        Watched::new(InMemoryBackend::new(), Duration::from_micros(100))
    });
    read();
}

fn compare(name: &str, storage: impl Fn() -> Watched) {
    let plain = || {
        let storage = storage();
        let syncs = storage.syncs.clone();
        let mut builder = Builder::new();
        builder.set_cache_size(RedbOptions::default().cache_bytes);
        (Plain(builder.create_with_backend(storage).unwrap()), syncs)
    };
    let ours = || {
        let storage = storage();
        let syncs = storage.syncs.clone();
        (RedbStore::open_storage(storage, name, &RedbOptions::default()).unwrap(), syncs)
    };
    report(&format!("{name}: redb"), plain);
    report(&format!("{name}: RedbStore"), ours);
}

#[expect(clippy::cast_precision_loss, reason = "a table has three digits")]
fn report<W: Writer>(name: &str, make: impl Fn() -> (W, Arc<AtomicU64>)) {
    let mut alone = None;
    for callers in [1, CROWD] {
        let (writer, syncs) = make();
        let synced = syncs.load(Relaxed);
        let operations = if callers == 1 { OPERATIONS / 4 } else { OPERATIONS };
        let rate = operations as f64 / time(|| crowd(&writer, callers, operations)).as_secs_f64();
        let per_sync = operations as f64 / (syncs.load(Relaxed) - synced) as f64;
        let gain = rate / *alone.get_or_insert(rate);
        println!("{name:32} {callers:3} {rate:14.0} {per_sync:17.1} {gain:6.1}");
    }
}

fn crowd(writer: &impl Writer, callers: u64, operations: u64) {
    thread::scope(|scope| {
        for caller in 0..callers {
            scope.spawn(move || {
                for id in (caller..operations).step_by(usize::try_from(callers).unwrap()) {
                    writer.write_five(id);
                }
            });
        }
    });
}

trait Writer: Sync {
    /// Writes a record and four index entries, and returns when they are durable.
    fn write_five(&self, id: u64);
}

struct Plain(Database);

impl Writer for Plain {
    fn write_five(&self, id: u64) {
        let transaction = self.0.begin_write().unwrap();
        for (table, key, value) in five(id) {
            let rows: TableDefinition<&[u8], &[u8]> = TableDefinition::new(table.name());
            let mut rows = transaction.open_table(rows).unwrap();
            rows.insert(&*key, &*value).unwrap();
        }
        transaction.commit().unwrap();
    }
}

impl Writer for RedbStore {
    fn write_five(&self, id: u64) {
        let five = five(id);
        let result = self.write(&mut |transaction| {
            for (table, key, value) in &five {
                transaction.put(*table, key, value)?;
            }
            Ok(Decision::Commit)
        });
        result.unwrap();
    }
}

/// A record of half a KiB under a key that grows, and index entries that lead to it: in the same
/// order, by one of ten groups, by one of a thousand owners, and by a random name.
fn five(id: u64) -> [(Table, Vec<u8>, Vec<u8>); 5] {
    let random = id.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    [
        (Table::ALL[0], key(&[id]), vec![b'x'; 500]),
        (Table::ALL[1], key(&[id]), vec![]),
        (Table::ALL[2], key(&[random % 10, id]), vec![]),
        (Table::ALL[3], key(&[random % 1_000, id]), vec![]),
        (Table::ALL[4], key(&[random]), id.to_be_bytes().to_vec()),
    ]
}

fn key(parts: &[u64]) -> Vec<u8> {
    let parts = parts.iter().flat_map(|part| part.to_be_bytes());
    b"an environment\0".iter().copied().chain(parts).collect()
}

fn read() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let redb = RedbStore::open(file.path()).unwrap();
    println!("\nreading, 20 000 records of half a KiB      get, ns   scan of 100, ns");
    for (name, store) in
        [("RedbStore", &redb as &dyn Store), ("MemoryStore", &MemoryStore::default())]
    {
        fill(store);
        let (get, scan) = (time(|| gets(store)), time(|| scans(store)));
        let per = |time: Duration, count| time.as_nanos() / u128::from(count);
        println!("{name:32} {:18} {:17}", per(get, GETS), per(scan, SCANS));
    }
}

fn fill(store: &dyn Store) {
    let result = store.write(&mut |transaction| {
        for (table, key, value) in (0..RECORDS).flat_map(five) {
            transaction.put(table, &key, &value)?;
        }
        Ok(Decision::Commit)
    });
    result.unwrap();
}

fn gets(store: &dyn Store) {
    let result = store.read(&mut |snapshot| {
        for id in 0..GETS {
            let key = key(&[id.wrapping_mul(0x9e37_79b9) % RECORDS]);
            let mut show = |value: &[u8]| {
                black_box(value[0]);
            };
            let found = snapshot.get(Table::ALL[0], &key, &mut show)?;
            assert!(found);
        }
        Ok(())
    });
    result.unwrap();
}

fn scans(store: &dyn Store) {
    let result = store.read(&mut |snapshot| {
        for id in 0..SCANS {
            let from = Bound::Included(key(&[id.wrapping_mul(0x9e37_79b9) % (RECORDS - 100)]));
            let mut left = 100;
            let mut visit = |_: &[u8], value: &[u8]| {
                black_box(value[0]);
                left -= 1;
                if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            let range = (from, Bound::Unbounded);
            snapshot.scan(Table::ALL[0], &range, Order::Ascending, None, &mut visit)?;
        }
        Ok(())
    });
    result.unwrap();
}

fn time(task: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    task();
    begun.elapsed()
}

/// A storage whose syncs are counted, and take at least so long.
#[derive(Debug)]
struct Watched {
    storage: Box<dyn StorageBackend>,
    sync_time: Duration,
    syncs: Arc<AtomicU64>,
}

impl Watched {
    fn new(storage: impl StorageBackend, sync_time: Duration) -> Self {
        Self { storage: Box::new(storage), sync_time, syncs: Arc::default() }
    }
}

impl StorageBackend for Watched {
    fn len(&self) -> io::Result<u64> {
        self.storage.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.storage.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.storage.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.syncs.fetch_add(1, Relaxed);
        let end = Instant::now() + self.sync_time;
        self.storage.sync_data()?;
        // Like a disk, it leaves the processor to others. Sleeping takes some 60 us longer than
        // asked for.
        thread::sleep(self.sync_time.saturating_sub(Duration::from_micros(60)));
        while Instant::now() < end {
            spin_loop();
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.storage.write(offset, data)
    }
}
