//! What the activity list costs: every shape of `bench-data` over 184,319 and 1,105,919 notifications,
//! on both backends, with as many of them unsealed as there can be. Every answer is
//! compared with a look at all notifications before it is timed. What is timed is the index; a
//! page's records come on top of it.
//!
//! ```text
//! cargo bench --bench activity_filter
//! TIDINGS_BENCH_SIZES=10000000 cargo bench --bench activity_filter
//! ```

use std::collections::VecDeque;
use std::env;
use std::time::Duration;

use activity::{ActivityIndex, Facets, Filter};
use bench_data::{Activity, Profile, Shape, Triggered};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use domain::environment::Home;
use domain::notification::Ordinal;
use domain::trigger::AcceptedTrigger;
use store::Store;
use store::memory::MemoryStore;
use store::redb::RedbStore;

const SEED: u64 = 1;
const SEGMENT: u64 = 61_440;
const AT_A_TIME: usize = 1_000;

fn activity_filter(criterion: &mut Criterion) {
    for size in sizes() {
        // The next size at which all segments are sealed but the last, and that one is all but full.
        let size = size.next_multiple_of(SEGMENT) + SEGMENT - 1;
        let folder = tempfile::tempdir().unwrap();
        let file = RedbStore::open(folder.path().join("bench.redb")).unwrap();
        let (memory, redb) = (Loaded::new(MemoryStore::default()), Loaded::new(file));
        let shapes = load(size, &[&memory, &redb]);
        for (backend, loaded) in [("memory", memory), ("redb", redb)] {
            let mut group = criterion.benchmark_group(format!("activity, {size}, {backend}"));
            group.warm_up_time(Duration::from_millis(300));
            group.measurement_time(Duration::from_secs(1));
            for (shape, expected) in &shapes {
                let filter = shape.filter();
                assert_eq!(*expected, loaded.find(shape, &filter), "{}", shape.name);
                let id = BenchmarkId::from_parameter(shape.name);
                group.bench_function(id, |bencher| bencher.iter(|| loaded.find(shape, &filter)));
            }
        }
    }
}

fn sizes() -> Vec<u64> {
    let sizes = env::var("TIDINGS_BENCH_SIZES").unwrap_or("100000,1000000".into());
    sizes.split(',').map(|size| size.trim().parse().unwrap()).collect()
}

/// A store with notifications, and their index.
struct Loaded {
    store: Box<dyn Store>,
    index: ActivityIndex,
}

impl Loaded {
    fn new(store: impl Store) -> Self {
        Self { store: Box::new(store), index: ActivityIndex::default() }
    }

    fn add(&self, triggered: &[Triggered]) {
        let environment = home().environment_id;
        let added = store::write(&*self.store, |txn| {
            for Triggered { transaction_id, created_at, notifications, .. } in triggered {
                let mut log = self.index.append(&*txn, environment)?;
                for notification in notifications {
                    log.add(Facets::from(notification));
                }
                let id = transaction_id.clone();
                log.finish(txn, AcceptedTrigger::bare(environment, *created_at, id))?;
            }
            Ok::<_, store::Error>(())
        });
        added.unwrap();
        self.index.tend(&*self.store, environment).unwrap();
    }

    fn find(&self, shape: &Shape, filter: &Filter) -> Vec<Ordinal> {
        let (environment, limit) = (home().environment_id, shape.limit as usize + 1);
        let found = store::read(&*self.store, |snapshot| {
            self.index.find(snapshot, environment, filter, shape.skip(), limit)
        });
        found.unwrap()
    }
}

// Loads `size` notifications, and returns each shape with what it has to find.
fn load(size: u64, stores: &[&Loaded]) -> Vec<(Shape, VecDeque<Ordinal>)> {
    let mut shapes: Vec<(Shape, VecDeque<Ordinal>)> =
        shapes(size).into_iter().map(|shape| (shape, VecDeque::new())).collect();
    let mut activity = start();
    while activity.notifications() < size {
        let batch = next(&mut activity, size);
        for notification in batch.iter().flat_map(|triggered| &triggered.notifications) {
            for (shape, newest) in &mut shapes {
                if shape.matches(notification) {
                    newest.push_front(notification.id.ordinal());
                    let page = shape.limit as usize + 1;
                    newest.truncate(usize::try_from(shape.skip()).unwrap() + page);
                }
            }
        }
        for loaded in stores {
            loaded.add(&batch);
        }
    }
    for loaded in stores {
        loaded.index.tend_all(&*loaded.store, home().environment_id).unwrap();
    }
    for (shape, newest) in &mut shapes {
        let skipped = usize::try_from(shape.skip()).unwrap().min(newest.len());
        newest.drain(..skipped);
    }
    shapes
}

// The shapes depend on how long it takes for so many notifications to come up.
fn shapes(size: u64) -> Vec<Shape> {
    let mut activity = start();
    let mut now = activity.population().profile().start;
    while activity.notifications() < size {
        now = next(&mut activity, size).last().map_or(now, |triggered| triggered.created_at);
    }
    Shape::all(&activity, now)
}

fn start() -> Activity {
    Activity::new(Profile { bodies: false, ..Profile::default() }, home(), SEED)
}

// What fits into a transaction. The last trigger has as many recipients as are missing.
fn next(activity: &mut Activity, size: u64) -> Vec<Triggered> {
    let mut batch = Vec::new();
    let mut count = 0;
    while count < AT_A_TIME && activity.notifications() < size {
        let mut triggered = activity.next().unwrap();
        let surplus = usize::try_from(activity.notifications().saturating_sub(size)).unwrap();
        triggered.notifications.truncate(triggered.notifications.len() - surplus);
        count += triggered.notifications.len();
        batch.push(triggered);
    }
    batch
}

fn home() -> Home {
    Home {
        organization_id: "acme".parse().unwrap(),
        environment_id: "0192f0c1-2345-7678-9abc-def012345678".parse().unwrap(),
    }
}

criterion_group!(benches, activity_filter);
criterion_main!(benches);
