//! The same notifications for everybody, and what the answers have to be.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bench_data::{Activity, Profile, Shape, Triggered};
use domain::environment::Home;
use domain::ids::EnvironmentId;
use store::memory::MemoryStore;
use store::redb::RedbStore;

use crate::ALLOCATED;
use crate::facts::{Numbers, Question};
use crate::oracle::Expected;
#[cfg(feature = "postgres")]
use crate::postgresql::Postgres;
use crate::sqlite::Sqlite;
use crate::tidings::Tidings;

/// How many notifications are taken in at once.
const AT_ONCE: usize = 1_000;
const SEED: u64 = 1;

/// Everybody with the same notifications, and how long the last of them took.
pub(crate) struct Loaded {
    pub(crate) size: u64,
    pub(crate) expected: Vec<Expected>,
    pub(crate) questions: Vec<Question>,
    pub(crate) redb: (Tidings, Duration),
    pub(crate) memory: (Tidings, Duration),
    /// How many bytes the memory store and its index have taken.
    pub(crate) in_memory: usize,
    pub(crate) sqlite: (Sqlite, Duration),
    #[cfg(feature = "postgres")]
    pub(crate) postgres: Option<(Postgres, Duration)>,
}

/// Everything from the first to the last notification.
struct Batches {
    activity: Activity,
    left: u64,
}

impl Iterator for Batches {
    type Item = Vec<Triggered>;

    fn next(&mut self) -> Option<Vec<Triggered>> {
        let (mut batch, mut count) = (Vec::new(), 0);
        while self.left > 0 && count < AT_ONCE {
            let mut triggered = self.activity.next().unwrap();
            triggered.notifications.truncate(usize::try_from(self.left).unwrap());
            count += triggered.notifications.len();
            self.left -= triggered.notifications.len() as u64;
            batch.push(triggered);
        }
        (!batch.is_empty()).then_some(batch)
    }
}

fn batches(size: u64) -> Batches {
    let profile = Profile { bodies: false, ..Profile::default() };
    Batches { activity: Activity::new(profile, home(), SEED), left: size }
}

fn home() -> Home {
    Home {
        organization_id: "acme".parse().unwrap(),
        environment_id: "0192f0c1-2345-7678-9abc-def012345678".parse().unwrap(),
    }
}

fn environment() -> EnvironmentId {
    home().environment_id
}

// What is asked can only be said when everything has happened.
fn shapes(size: u64) -> Vec<Shape> {
    let mut batches = batches(size);
    let last = batches.by_ref().last().unwrap();
    Shape::all(&batches.activity, last.last().unwrap().created_at)
}

/// How many of the notifications are taken in with all indexes in place, and with a clock.
pub(crate) fn timed(size: u64) -> u64 {
    (size / 5).clamp(1_000, 200_000)
}

/// Gives everybody in `folder` so many notifications.
pub(crate) fn load(
    size: u64,
    folder: &Path,
    #[cfg(feature = "postgres")] mut postgres: Option<Postgres>,
) -> Loaded {
    let shapes = shapes(size);
    let before = ALLOCATED.current_usage();
    let memory = Tidings::new(Arc::new(MemoryStore::default()), environment(), &shapes);
    let mut in_memory = ALLOCATED.current_usage() - before;
    let file = RedbStore::open(folder.join("tidings.redb")).unwrap();
    let redb = Tidings::new(Arc::new(file), environment(), &shapes);
    let sqlite = Sqlite::create(&folder.join("sqlite.db"));
    let mut numbers = Numbers::default();
    let questions = shapes.iter().map(|shape| numbers.question(shape)).collect();
    let mut expected: Vec<_> = shapes.into_iter().map(Expected::nothing).collect();
    let [mut for_redb, mut for_memory, mut for_sqlite] = [Duration::ZERO; 3];
    #[cfg(feature = "postgres")]
    let mut for_postgres = Duration::ZERO;
    let (mut done, mut is_timed) = (0, false);
    for batch in batches(size) {
        if !is_timed && done >= size - timed(size) {
            is_timed = true;
            sqlite.index();
            [for_redb, for_memory, for_sqlite] = [Duration::ZERO; 3];
            #[cfg(feature = "postgres")]
            if let Some(postgres) = &mut postgres {
                postgres.index();
                for_postgres = Duration::ZERO;
            }
        }
        for one in batch.iter().flat_map(|triggered| &triggered.notifications) {
            expected.iter_mut().for_each(|expected| expected.look_at(one));
            done += 1;
        }
        for_redb += time(|| redb.append(&batch));
        let before = ALLOCATED.current_usage();
        for_memory += time(|| memory.append(&batch));
        in_memory = (in_memory + ALLOCATED.current_usage()).saturating_sub(before);
        let rows: Vec<_> = batch.iter().map(|one| numbers.transaction(one)).collect();
        for_sqlite += time(|| sqlite.append(&rows));
        #[cfg(feature = "postgres")]
        if let Some(postgres) = &mut postgres {
            for_postgres += time(|| postgres.append(&rows));
        }
    }
    for_redb += time(|| redb.settle());
    for_memory += time(|| memory.settle());
    Loaded {
        size,
        expected,
        questions,
        redb: (redb, for_redb),
        memory: (memory, for_memory),
        in_memory,
        sqlite: (sqlite, for_sqlite),
        #[cfg(feature = "postgres")]
        postgres: postgres.map(|postgres| (postgres, for_postgres)),
    }
}

pub(crate) fn time(run: impl FnOnce()) -> Duration {
    let start = Instant::now();
    run();
    start.elapsed()
}
