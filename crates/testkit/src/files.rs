//! Any damage of a file and its log.

use std::ops::Range;
use std::panic::{self, PanicHookInfo};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Once};

use arbitrary::Arbitrary;
use store::redb::{AppliedBy, LogOptions, RedbOptions, RedbStore};
use tidings::{Engine, ManualClock, RecordingProvider, SeededEntropy};

use crate::disk::{Disk, PAGE};
use crate::effort::Effort;
use crate::paged::Paged;
use crate::requests;
use crate::seeded;
use crate::tables::load;

/// Damage of the files of a store that was closed, or of a process that was killed.
#[derive(Clone, Debug, Arbitrary)]
pub struct Damage {
    /// Whether the process was killed. If not, there is no log.
    pub is_killed: bool,
    /// The changes.
    pub edits: Vec<Edit>,
}

/// A change of the file or of its log.
#[derive(Clone, Debug, Arbitrary)]
pub enum Edit {
    /// A bit of a page is the other one.
    Flip(Place, u8),
    /// These bytes are written into a page.
    Write(Place, Vec<u8>),
    /// A page has the content of another one.
    Copy(u16, u16),
    /// Two pages have changed places.
    Swap(u16, u16),
    /// A page is empty.
    Clear(u16),
    /// The file ends after so many pages.
    Cut(u16),
    /// A bit of the log is the other one.
    FlipLog(u16, u8),
    /// These bytes are written into the log.
    WriteLog(u16, Vec<u8>),
    /// The log ends there.
    CutLog(u16),
    /// There is no log.
    NoLog,
}

/// A place in a page.
#[derive(Clone, Copy, Debug, Arbitrary)]
pub struct Place {
    /// Number of the page.
    pub page: u16,
    /// Place in it.
    pub at: u16,
}

/// The path of the log of a file.
pub fn log_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-log");
    name.into()
}

/// Opens the files with this damage by default, makes requests, and runs what is due. A fuzzer does
/// both in some runs only, and else a little of one of them.
///
/// # Panics
///
/// If a request panics. A panic of redb becomes an error of the store.
pub fn run(damage: &Damage, effort: Effort) {
    leave_panics_of_redb_to_the_store();
    let Ok(store) = damage.disk().open_with(&options()) else { return };
    let store = Arc::new(store);
    let engine = engine(&store);
    let is_whole = effort.is_one_of(16);
    let asks = effort.is_one_of(2);
    if asks && let Ok(env) = engine.environment(seeded::world().env.environment_id()) {
        for request in effort.some_of(requests::sound(), 2) {
            drop(requests::call(&engine, &env, request));
        }
    }
    if is_whole || !asks {
        drop(engine.delivery().run_due(if is_whole { 32 } else { 2 }));
    }
    if effort.is_one_of(256) {
        drop(engine.check());
        drop(engine.repair());
    }
    drop(store.checkpoint());
}

impl Damage {
    fn disk(&self) -> Disk {
        let (file, log) = if self.is_killed { &IMAGE.killed } else { &IMAGE.closed };
        let (mut file, mut log) = (file.clone(), log.clone());
        for edit in self.edits.iter().take(8) {
            edit.make(&mut file, &mut log);
        }
        Disk::of_pages(file, log)
    }
}

impl Edit {
    fn make(&self, file: &mut Paged, log: &mut Option<Paged>) {
        let no_log = &mut Paged::default();
        match self {
            Edit::Flip(place, bit) => {
                let at = place.offset(file);
                flip(file, at, *bit);
            }
            Edit::Write(place, bytes) => {
                let at = place.offset(file);
                write(file, at, bytes);
            }
            Edit::Copy(from, to) => {
                let (from, to) = (page(file, *from), page(file, *to));
                let copied = part(file, &from);
                file.write(to.start, &copied);
            }
            Edit::Swap(one, other) => {
                let (one, other) = (page(file, *one), page(file, *other));
                let (kept, moved) = (part(file, &one), part(file, &other));
                file.write(one.start, &moved);
                write(file, other.start, &kept);
            }
            Edit::Clear(cleared) => {
                let cleared = page(file, *cleared);
                file.write(cleared.start, &vec![0; cleared.len()]);
            }
            Edit::Cut(pages) => file.set_len(page(file, *pages).end),
            Edit::FlipLog(at, bit) => flip(log.as_mut().unwrap_or(no_log), usize::from(*at), *bit),
            Edit::WriteLog(at, bytes) => {
                write(log.as_mut().unwrap_or(no_log), usize::from(*at), bytes);
            }
            Edit::CutLog(at) => {
                let log = log.as_mut().unwrap_or(no_log);
                log.set_len(log.len().min(usize::from(*at)));
            }
            Edit::NoLog => *log = None,
        }
    }
}

impl Place {
    fn offset(self, file: &Paged) -> usize {
        page(file, self.page).start + usize::from(self.at) % PAGE
    }
}

/// The page with that number, of those that are in use.
fn page(file: &Paged, number: u16) -> Range<usize> {
    let pages = &IMAGE.pages;
    let start = pages[usize::from(number) % pages.len()] * PAGE;
    let start = start.min(file.len().saturating_sub(PAGE));
    start..file.len().min(start + PAGE)
}

fn part(file: &Paged, range: &Range<usize>) -> Vec<u8> {
    let mut bytes = vec![0; range.len()];
    assert!(file.read(range.start, &mut bytes), "the range is one of the file");
    bytes
}

fn flip(file: &mut Paged, at: usize, bit: u8) {
    let mut byte = [0];
    if file.read(at, &mut byte) {
        file.write(at, &[byte[0] ^ 1 << (bit % 8)]);
    }
}

/// Writes as much as there is room for before the end.
fn write(file: &mut Paged, at: usize, new: &[u8]) {
    let room = file.len().saturating_sub(at);
    if room > 0 {
        file.write(at, &new[..new.len().min(room)]);
    }
}

/// The files of a store with two environments that use the same names.
struct Image {
    closed: (Paged, Option<Paged>),
    killed: (Paged, Option<Paged>),
    /// Numbers of the pages that are in use.
    pages: Vec<usize>,
}

static IMAGE: LazyLock<Image> = LazyLock::new(|| {
    let disk = Disk::new();
    let store = disk.open_with(&options()).expect("the disk is sound");
    load(&store, seeded::with_second_environment());
    let store = Arc::new(store);
    let engine = engine(&store);
    store.checkpoint().expect("the disk is sound");
    let env = engine.environment(seeded::world().env.environment_id()).expect("it is there");
    for to in ["ada", "bob", "cyd"] {
        let trigger = seeded::trigger("both", to.into());
        env.events().trigger(&trigger).expect("it is sound");
    }
    let killed = disk.pages();
    drop((env, engine, store));
    let closed = disk.pages();
    let used = |page: &[u8]| page.iter().any(|byte| *byte != 0);
    let bytes = closed.0.to_vec();
    let pages = bytes.chunks(PAGE).enumerate().filter(|(_, page)| used(page));
    let pages = pages.map(|(number, _)| number).collect();
    Image { closed, killed, pages }
});

fn options() -> RedbOptions {
    let log = LogOptions::default().applied_by(AppliedBy::Callers);
    RedbOptions::default().log(log)
}

fn engine(store: &Arc<RedbStore>) -> Engine {
    let clock = ManualClock::at(seeded::world().now());
    let builder = Engine::builder().clock(clock).entropy(SeededEntropy::new(977));
    builder
        .default_provider(RecordingProvider::default())
        .activity_segments(16)
        .build(Arc::clone(store))
}

/// A fuzzer ends the process at every panic. The store catches those of redb, which does not expect
/// damage, and its own that ends a recursion of redb.
fn leave_panics_of_redb_to_the_store() {
    static DONE: Once = Once::new();
    DONE.call_once(|| {
        let hook = panic::take_hook();
        panic::set_hook(Box::new(move |panic: &PanicHookInfo<'_>| {
            let is_caught = |file: &str| {
                file.ends_with("store/src/redb/key.rs")
                    || file.split('/').any(|part| part.starts_with("redb-"))
            };
            if !panic.location().is_some_and(|location| is_caught(location.file())) {
                hook(panic);
            }
        }));
    });
}
