//! What the redo log is worth: the same work on the same kind of file, with the log and without.
//!
//! ```text
//! cargo bench --bench log
//! ```
//!
//! Recipients are random, and the file has notifications already. Bytes and syncs are those of file
//! and log together, with everything that is applied later. Only ratios within one run mean anything.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use redb::StorageBackend;
use redb::backends::FileBackend;
use serde_json::json;
use tempfile::TempDir;
use testkit::dice::Dice;
use tidings::message::MessageQuery;
use tidings::notification::NotificationQuery;
use tidings::step::Step;
use tidings::store::redb::{LogOptions, LogPlace, RedbOptions, RedbStore};
use tidings::store::{Decision, Store, Table};
use tidings::trigger::{Recipients, Trigger};
use tidings::workflow::WorkflowCreate;
use tidings::{Engine, Scope};

/// Notifications in the file before anything is measured.
const FILLED: u64 = 35_000;
const RECIPIENTS: u64 = 10_000;

fn main() {
    println!(
        "                                  rate, /s   p50, us   p99, us   worst, us   kB each   syncs"
    );
    for log in [None, Some(4 << 20), Some(8 << 20)] {
        let title =
            log.map_or("without a log".to_owned(), |bytes| format!("log, {} MiB", bytes >> 20));
        let bench = Bench::new(log);
        bench.triggers(&title, "one trigger", 2_000, 1);
        bench.triggers(&title, "1 x 100", 400, 100);
        Bench::new(log).crowd(&title);
    }
    reads();
    recovery();
}

/// An engine on a file that is watched.
struct Bench {
    store: Arc<RedbStore>,
    env: Scope,
    written: Arc<Written>,
    folder: TempDir,
}

impl Bench {
    fn new(log: Option<usize>) -> Self {
        let (folder, written) = (tempfile::tempdir().unwrap(), Arc::default());
        let store = Arc::new(open(folder.path(), log, &written));
        let env = environment(Arc::clone(&store));
        let bench = Self { store, env, written, folder };
        bench.fill(FILLED);
        bench
    }

    fn fill(&self, notifications: u64) {
        let mut dice = Dice::new(7);
        for _ in 0..notifications / 1_000 {
            let events: Vec<_> = (0..10).map(|_| event(&mut dice, 100)).collect();
            self.env.events().trigger_bulk(&events).unwrap().all().unwrap();
        }
        self.store.checkpoint().unwrap();
    }

    fn triggers(&self, title: &str, name: &str, calls: usize, recipients: u64) {
        let mut dice = Dice::new(calls as u64);
        let events: Vec<_> = (0..calls).map(|_| event(&mut dice, recipients)).collect();
        let trigger = |event: &Trigger| {
            let begun = Instant::now();
            self.env.events().trigger(event).unwrap();
            begun.elapsed()
        };
        self.report(title, name, recipients, || events.iter().map(trigger).collect());
    }

    fn crowd(&self, title: &str) {
        let store = &self.store;
        self.report(title, "64 callers, 5 records", 1, || {
            let write = |caller: u64| {
                let ids = (0..64).map(move |round| caller * 1_000 + round);
                ids.map(|id| write_five(store, id)).collect::<Vec<_>>()
            };
            thread::scope(|scope| {
                let callers: Vec<_> =
                    (0..64).map(|caller| scope.spawn(move || write(caller))).collect();
                callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect()
            })
        });
    }

    #[expect(clippy::cast_precision_loss, reason = "a table has few digits")]
    fn report(&self, title: &str, name: &str, each: u64, work: impl FnOnce() -> Vec<Duration>) {
        let (bytes, syncs) = (self.written.bytes.load(Relaxed), self.written.syncs.load(Relaxed));
        let begun = Instant::now();
        let mut times = work();
        let rate = (times.len() as u64 * each) as f64 / begun.elapsed().as_secs_f64();
        let syncs = self.written.syncs.load(Relaxed) - syncs;
        // What is written later belongs to the work as well.
        self.store.checkpoint().unwrap();
        let bytes = self.written.bytes.load(Relaxed) - bytes;
        times.sort();
        let at = |part: usize| times[(times.len() * part / 100).min(times.len() - 1)].as_micros();
        let per = bytes as f64 / 1_000.0 / (times.len() as u64 * each) as f64;
        println!(
            "{:32} {rate:10.0} {:9} {:9} {:11} {per:9.1} {syncs:7}",
            format!("{title}: {name}"),
            at(50),
            at(99),
            at(100),
        );
    }
}

/// A record of half a KiB, and index entries that lead to it.
fn write_five(store: &RedbStore, id: u64) -> Duration {
    let random = id.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    let begun = Instant::now();
    let written = store.write(&mut |transaction| {
        transaction.put(Table::ALL[0], &id.to_be_bytes(), &[b'x'; 500])?;
        for table in &Table::ALL[1..5] {
            transaction.put(*table, &random, &id.to_be_bytes())?;
        }
        Ok(Decision::Commit)
    });
    written.unwrap();
    begun.elapsed()
}

/// What reading costs with so much in the memtables.
fn reads() {
    println!("\nin the memtables     inbox page, us   list of ten, us   get, ns");
    let bench = Bench::new(Some(32 << 20));
    // The same dice as those of the first events.
    let mut dice = Dice::new(7);
    let people: Vec<_> =
        (0..1_000).map(|_| format!("customer-{}", dice.roll(RECIPIENTS))).collect();
    for mib in [0, 4, 8, 16] {
        let mut dice = Dice::new(mib);
        while bench.written.log.load(Relaxed) < mib << 20 {
            bench.env.events().trigger(&event(&mut dice, 100)).unwrap();
        }
        let (inbox, list) = (MessageQuery::default(), NotificationQuery::default());
        let who = |round: usize| &people[round % people.len()];
        let page = time(2_000, |round| {
            bench.env.inbox(who(round)).unwrap().list(&inbox).unwrap();
        });
        let list = time(2_000, |_| drop(bench.env.notifications().list(&list).unwrap()));
        let get = time(20_000, |round| drop(bench.env.subscribers().get(who(round)).unwrap()));
        let us = |time: Duration| time.as_nanos() / 1_000;
        println!("{mib:2} MiB {:28} {:17} {:9}", us(page), us(list), get.as_nanos());
    }
}

fn time(rounds: usize, work: impl Fn(usize)) -> Duration {
    let begun = Instant::now();
    (0..rounds).for_each(work);
    begun.elapsed() / u32::try_from(rounds).unwrap()
}

/// What opening a file costs after a kill.
fn recovery() {
    println!("\nrecovery of a log       ms");
    for mib in [4, 8, 16] {
        let bench = Bench::new(Some(32 << 20));
        let mut dice = Dice::new(mib);
        while bench.written.log.load(Relaxed) < mib << 20 {
            bench.env.events().trigger(&event(&mut dice, 100)).unwrap();
        }
        // Nobody writes, so that a copy of both files is what a kill leaves.
        let copy = tempfile::tempdir().unwrap();
        for name in [FILE, LOG] {
            fs::copy(bench.folder.path().join(name), copy.path().join(name)).unwrap();
        }
        let begun = Instant::now();
        let store = open(copy.path(), Some(8 << 20), &Arc::default());
        println!("{mib:3} MiB {:19}", begun.elapsed().as_millis());
        drop(store);
    }
}

fn environment(store: Arc<RedbStore>) -> Scope {
    let env = Engine::builder().build(store).organization("acme").unwrap().development().unwrap();
    let text = "Your order {{ payload.order }} is on its way to {{ payload.city }}.";
    let shipped = WorkflowCreate::new("order-shipped", "Order shipped").unwrap();
    env.workflows().create(&shipped.step(Step::in_app(text).unwrap())).unwrap();
    env
}

fn event(dice: &mut Dice, recipients: u64) -> Trigger {
    let mut event = Trigger::new("order-shipped", "customer-0").unwrap();
    let to = (0..recipients).map(|_| format!("customer-{}", dice.roll(RECIPIENTS)));
    event.to = Recipients::Many(
        to.map(|id| id.parse::<tidings::ids::SubscriberId>().unwrap().into()).collect(),
    );
    event.payload(json!({ "order": "A-1042", "city": "Lisbon" })).unwrap()
}

const FILE: &str = "bench.redb";
const LOG: &str = "bench.redb-log";

fn open(folder: &Path, log: Option<usize>, written: &Arc<Written>) -> RedbStore {
    let storage = Watched::open(&folder.join(FILE), false, written).unwrap();
    let place = Place { path: folder.join(LOG), written: Arc::clone(written) };
    let log = log.map(|memtable_bytes| LogOptions::default().memtable_bytes(memtable_bytes));
    let options = RedbOptions::default().log(log);
    RedbStore::open_storage_with_log(storage, place, FILE, &options).unwrap()
}

/// What was written to file and log.
#[derive(Debug, Default)]
struct Written {
    bytes: AtomicU64,
    syncs: AtomicU64,
    /// Bytes written to the present log.
    log: AtomicU64,
}

/// A file whose writes and syncs are counted.
#[derive(Debug)]
struct Watched {
    file: FileBackend,
    is_log: bool,
    written: Arc<Written>,
}

impl Watched {
    fn open(path: &Path, is_log: bool, written: &Arc<Written>) -> io::Result<Self> {
        let file =
            File::options().read(true).write(true).create(true).truncate(false).open(path)?;
        let file = FileBackend::new(file).map_err(io::Error::other)?;
        Ok(Self { file, is_log, written: Arc::clone(written) })
    }
}

impl StorageBackend for Watched {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.written.syncs.fetch_add(1, Relaxed);
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.written.bytes.fetch_add(data.len() as u64, Relaxed);
        if self.is_log {
            self.written.log.fetch_add(data.len() as u64, Relaxed);
        }
        self.file.write(offset, data)
    }
}

/// The place of a log that is watched.
#[derive(Debug)]
struct Place {
    path: PathBuf,
    written: Arc<Written>,
}

impl LogPlace for Place {
    fn open(&self) -> io::Result<Option<Box<dyn StorageBackend>>> {
        let there = self.path.exists();
        there
            .then(|| Watched::open(&self.path, true, &self.written).map(|it| Box::new(it) as _))
            .transpose()
    }

    fn create(&self) -> io::Result<Box<dyn StorageBackend>> {
        self.written.log.store(0, Relaxed);
        let log = Watched::open(&self.path, true, &self.written)?;
        log.set_len(0)?;
        File::open(self.path.parent().unwrap())?.sync_all()?;
        Ok(Box::new(log))
    }

    fn remove(&self) -> io::Result<()> {
        self.written.log.store(0, Relaxed);
        if self.path.exists() { fs::remove_file(&self.path) } else { Ok(()) }
    }
}
