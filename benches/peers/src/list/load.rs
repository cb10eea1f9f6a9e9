//! The same notifications for everybody, and what the answers have to be.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use activity::Facets;
use bench_data::{Activity, Population, Profile, Shape, Triggered};
use domain::environment::Home;
use domain::notification::Notification;
use store::memory::MemoryStore;
use store::redb::RedbStore;

use crate::allocated;
use crate::list::facts::{Numbers, Question};
use crate::list::oracle::Expected;
use crate::list::search;
use crate::list::system::Peer;
use crate::list::tidings::Tidings;

/// How many notifications are taken in at once, before there is a clock and with it.
const IN_BULK: usize = 10_000;
const AT_ONCE: usize = 1_000;
pub(crate) const SEED: u64 = 1;

/// Everybody with the same notifications.
pub(crate) struct Loaded {
    pub(crate) expected: Vec<Expected>,
    /// What the searches for a part of an address find.
    pub(crate) searched: Vec<Expected>,
    pub(crate) questions: Vec<Question>,
    pub(crate) redb: Clocked<Tidings>,
    pub(crate) memory: Clocked<Tidings>,
    /// How many bytes the memory store and its index have taken, if that is counted.
    pub(crate) in_memory: Option<usize>,
    pub(crate) peers: Vec<Clocked<Box<dyn Peer>>>,
    pub(crate) numbers: Numbers,
}

/// Somebody, and how long the last notifications took, with every index in place.
pub(crate) struct Clocked<T> {
    pub(crate) it: T,
    took: Duration,
    count: u32,
}

impl<T> Clocked<T> {
    const fn new(it: T) -> Self {
        Self { it, took: Duration::ZERO, count: 0 }
    }

    fn clock(&mut self, run: impl FnOnce(&mut T)) {
        let start = Instant::now();
        run(&mut self.it);
        self.took += start.elapsed();
    }

    // A new beginning, with so many notifications to come.
    fn start(&mut self, count: u64) {
        self.took = Duration::ZERO;
        self.count = u32::try_from(count).unwrap();
    }

    /// How long each of the last notifications took.
    pub(crate) fn each(&self) -> Duration {
        self.took / self.count
    }
}

// How many of the notifications are taken in with a clock.
fn clocked(size: u64) -> u64 {
    (size / 5).clamp(1_000, 200_000)
}

/// Everything from the first to the last notification, in batches.
struct Batches {
    activity: Activity,
    left: u64,
    at_once: usize,
}

impl Batches {
    fn new(size: u64) -> Self {
        Self::of(profile(false), size)
    }

    fn of(profile: Profile, size: u64) -> Self {
        let at_once = usize::try_from(size / 5).unwrap().clamp(1, IN_BULK);
        Self { activity: Activity::new(profile, home(), SEED), left: size, at_once }
    }
}

impl Iterator for Batches {
    type Item = Vec<Triggered>;

    fn next(&mut self) -> Option<Vec<Triggered>> {
        let (mut batch, mut count) = (Vec::new(), 0);
        while self.left > 0 && count < self.at_once {
            let triggered = self.activity.next().unwrap();
            count += triggered.notifications.len();
            self.left = self.left.saturating_sub(triggered.notifications.len() as u64);
            batch.push(triggered);
        }
        (!batch.is_empty()).then_some(batch)
    }
}

/// The notifications of a size with everything that they have.
pub(crate) fn whole(size: u64) -> impl Iterator<Item = Notification> {
    Batches::of(profile(true), size).flatten().flat_map(|triggered| triggered.notifications)
}

/// The profile of all notifications.
pub(crate) fn profile(bodies: bool) -> Profile {
    Profile { bodies, ..Profile::default() }
}

fn home() -> Home {
    Home {
        organization_id: "acme".parse().unwrap(),
        environment_id: "0192f0c1-2345-7678-9abc-def012345678".parse().unwrap(),
    }
}

// What is asked can only be said when everything has happened.
fn shapes(size: u64) -> Vec<Shape> {
    let mut batches = Batches::new(size);
    let last = batches.by_ref().last().unwrap();
    Shape::all(&batches.activity, last.last().unwrap().created_at)
}

/// The facets of some notifications.
pub(crate) fn some_facets() -> Vec<Facets> {
    let triggered = Batches::new(20_000).flatten();
    triggered.flat_map(|one| one.notifications).map(|one| Facets::from(&one)).collect()
}

/// Gives everybody so many notifications, Tidings in a file at `path` and in memory.
pub(crate) fn load(size: u64, path: &Path, peers: Vec<Box<dyn Peer>>) -> Loaded {
    let mut loaded = Loaded::nothing(size, path, peers);
    let (mut batches, mut is_clocked) = (Batches::new(size), false);
    while let Some(batch) = batches.next() {
        for one in batch.iter().flat_map(|triggered| &triggered.notifications) {
            loaded.look_at(one);
        }
        loaded.take_in(&batch);
        if !is_clocked {
            // Such large batches leave more to do than one step each.
            loaded.settle();
        }
        if !is_clocked && batches.left <= clocked(size) {
            is_clocked = true;
            batches.at_once = AT_ONCE;
            loaded.start_clocks(batches.left);
        }
    }
    loaded.settle();
    loaded
}

impl Loaded {
    fn nothing(size: u64, path: &Path, peers: Vec<Box<dyn Peer>>) -> Self {
        let population = Population::new(profile(false), home(), SEED);
        let shapes = shapes(size);
        let environment = home().environment_id;
        let file = RedbStore::open(path).unwrap();
        let memory = MemoryStore::default();
        let mut numbers = Numbers::default();
        Self {
            questions: shapes.iter().map(|shape| numbers.question(shape)).collect(),
            redb: Clocked::new(Tidings::new(Arc::new(file), environment, &shapes)),
            memory: Clocked::new(Tidings::new(Arc::new(memory), environment, &shapes)),
            in_memory: allocated().map(|_| 0),
            searched: search::shapes(&population).map(Expected::nothing).collect(),
            expected: shapes.into_iter().map(Expected::nothing).collect(),
            peers: peers.into_iter().map(Clocked::new).collect(),
            numbers,
        }
    }

    fn look_at(&mut self, notification: &Notification) {
        for expected in self.expected.iter_mut().chain(&mut self.searched) {
            expected.look_at(notification);
        }
    }

    fn start_clocks(&mut self, left: u64) {
        self.redb.start(left);
        self.memory.start(left);
        for peer in &mut self.peers {
            peer.it.index();
            peer.start(left);
        }
    }

    fn take_in(&mut self, batch: &[Triggered]) {
        self.redb.clock(|redb| redb.append(batch));
        self.in_memory(|memory| memory.append(batch));
        let rows: Vec<_> = batch.iter().map(|one| self.numbers.transaction(one)).collect();
        for peer in &mut self.peers {
            peer.clock(|peer| peer.append(&rows));
        }
    }

    fn settle(&mut self) {
        self.redb.clock(|redb| redb.settle());
        self.in_memory(|memory| memory.settle());
    }

    fn in_memory(&mut self, run: impl FnOnce(&mut Tidings)) {
        let before = allocated();
        self.memory.clock(run);
        if let (Some(so_far), Some(before), Some(after)) = (self.in_memory, before, allocated()) {
            self.in_memory = Some((so_far + after).saturating_sub(before));
        }
    }
}
