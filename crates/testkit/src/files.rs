//! Any damage of a file and its log.

use std::ops::Range;
use std::panic::{self, PanicHookInfo};
use std::sync::{Arc, LazyLock, Once};

use arbitrary::Arbitrary;
use store::redb::{AppliedBy, LogOptions, RedbOptions, RedbStore};
use tidings::{Engine, ManualClock, Outbox, SeededEntropy};

use crate::disk::{Disk, PAGE};
use crate::effort::Effort;
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

/// Opens the files with this damage by default, makes requests, and runs what is due.
///
/// # Panics
///
/// If a request panics. A panic of redb becomes an error of the store.
pub fn run(damage: &Damage, effort: Effort) {
    leave_panics_of_redb_to_the_store();
    let Ok(store) = damage.disk().open_with(&options()) else { return };
    let store = Arc::new(store);
    let engine = engine(&store);
    if let Ok(env) = engine.environment(seeded::world().env.environment_id()) {
        for request in effort.some_of(requests::sound(), 6) {
            drop(requests::call(&engine, &env, request));
        }
    }
    drop(engine.delivery().run_due(32));
    if effort.is_one_of(64) {
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
        Disk::with_log(file, log)
    }
}

impl Edit {
    fn make(&self, file: &mut Vec<u8>, log: &mut Option<Vec<u8>>) {
        let no_log = &mut Vec::new();
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
                file.copy_within(from, to.start);
            }
            Edit::Swap(one, other) => {
                let (one, other) = (page(file, *one), page(file, *other));
                let kept = file[one.clone()].to_vec();
                file.copy_within(other.clone(), one.start);
                write(file, other.start, &kept);
            }
            Edit::Clear(cleared) => {
                let cleared = page(file, *cleared);
                file[cleared].fill(0);
            }
            Edit::Cut(pages) => file.truncate(page(file, *pages).end),
            Edit::FlipLog(at, bit) => flip(log.as_mut().unwrap_or(no_log), usize::from(*at), *bit),
            Edit::WriteLog(at, bytes) => {
                write(log.as_mut().unwrap_or(no_log), usize::from(*at), bytes);
            }
            Edit::CutLog(at) => log.as_mut().unwrap_or(no_log).truncate(usize::from(*at)),
            Edit::NoLog => *log = None,
        }
    }
}

impl Place {
    fn offset(self, file: &[u8]) -> usize {
        page(file, self.page).start + usize::from(self.at) % PAGE
    }
}

/// The page with that number, of those that are in use.
fn page(file: &[u8], number: u16) -> Range<usize> {
    let pages = &IMAGE.pages;
    let start = pages[usize::from(number) % pages.len()] * PAGE;
    let start = start.min(file.len().saturating_sub(PAGE));
    start..file.len().min(start + PAGE)
}

fn flip(bytes: &mut [u8], at: usize, bit: u8) {
    bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << (bit % 8));
}

fn write(bytes: &mut [u8], at: usize, new: &[u8]) {
    bytes.iter_mut().skip(at).zip(new).for_each(|(byte, new)| *byte = *new);
}

/// The files of a store with two environments that use the same names.
struct Image {
    closed: (Vec<u8>, Option<Vec<u8>>),
    killed: (Vec<u8>, Option<Vec<u8>>),
    /// Numbers of the pages that are in use.
    pages: Vec<usize>,
}

static IMAGE: LazyLock<Image> = LazyLock::new(|| {
    let disk = Disk::new();
    let store = disk.open_with(&options()).expect("the disk is sound");
    load(&store, seeded::neighbours());
    let store = Arc::new(store);
    let engine = engine(&store);
    store.checkpoint().expect("the disk is sound");
    let env = engine.environment(seeded::world().env.environment_id()).expect("it is there");
    for to in ["ada", "bob", "cyd"] {
        let trigger = seeded::trigger("both", to.into());
        env.events().trigger(&trigger).expect("it is sound");
    }
    let killed = (disk.bytes(), disk.log_bytes());
    drop((env, engine, store));
    let closed = (disk.bytes(), disk.log_bytes());
    let used = |page: &[u8]| page.iter().any(|byte| *byte != 0);
    let pages = closed.0.chunks(PAGE).enumerate().filter(|(_, page)| used(page));
    let pages = pages.map(|(number, _)| number).collect();
    Image { closed, killed, pages }
});

fn options() -> RedbOptions {
    let log = Some(LogOptions { applied_by: AppliedBy::Callers, ..LogOptions::default() });
    RedbOptions { log, ..RedbOptions::default() }
}

fn engine(store: &Arc<RedbStore>) -> Engine {
    let clock = ManualClock::at(seeded::world().now());
    let builder = Engine::builder().clock(clock).entropy(SeededEntropy::new(977));
    builder.default_provider(Outbox::default()).activity_segments(16).build(Arc::clone(store))
}

/// A fuzzer ends the process at every panic. The store catches those of redb, which does not expect
/// damage.
fn leave_panics_of_redb_to_the_store() {
    static DONE: Once = Once::new();
    DONE.call_once(|| {
        let hook = panic::take_hook();
        panic::set_hook(Box::new(move |panic: &PanicHookInfo<'_>| {
            let is_of_redb = |file: &str| file.split('/').any(|part| part.starts_with("redb-"));
            if !panic.location().is_some_and(|location| is_of_redb(location.file())) {
                hook(panic);
            }
        }));
    });
}
