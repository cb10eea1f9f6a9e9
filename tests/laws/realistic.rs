//! Realistic activity: every shape of query finds what a look at all notifications finds, and a
//! page has the records, with the names of what they are about.

use std::sync::Arc;

use activity::{ActivityIndex, Facets};
use bench_data::{Activity, Profile, Ranked, Shape};
use domain::environment::Home;
use domain::notification::{Notification, NotificationQuery};
use domain::trigger::AcceptedTrigger;
use store::memory::MemoryStore;
use store::redb::RedbStore;
use store::{Store, WriteRecords};
use tidings::{Engine, Scope};

const NOTIFICATIONS: usize = 1_500;
const SEGMENT: u32 = 256;

#[test]
fn every_shape_finds_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    check(MemoryStore::default());
    check(RedbStore::open(folder.path().join("realistic.redb")).unwrap());
}

fn check(store: impl Store) {
    let store = Arc::new(store);
    let engine = Engine::builder().build(Arc::clone(&store));
    let env = engine.organization("acme").unwrap().development().unwrap();
    let (index, activity, made) = fill(&*store, &env);
    let newest_first: Vec<&Notification> = made.iter().rev().collect();

    let mut matching = 0;
    for shape in Shape::all(&activity, made.last().unwrap().created_at) {
        let expected: Vec<_> = newest_first
            .iter()
            .filter(|one| shape.matches(one))
            .map(|one| one.id.ordinal())
            .collect();
        matching += usize::from(!expected.is_empty());
        let skip = usize::try_from(shape.skip()).unwrap().min(expected.len());
        let found = store::read(&*store, |snapshot| {
            let (environment, filter) = (env.environment_id(), shape.filter());
            assert_eq!(index.count(snapshot, environment, &filter)?, expected.len() as u64);
            index.find(snapshot, environment, &filter, shape.skip(), usize::MAX)
        });
        assert_eq!(found.unwrap(), expected[skip..], "{}", shape.name);
    }
    assert!(matching >= 10, "most shapes find something: {matching}");

    let page = env.notifications().list(&NotificationQuery::default()).unwrap();
    assert!(page.has_more);
    for (listed, made) in page.data.iter().zip(&newest_first) {
        assert_eq!(
            (listed.id, &listed.jobs, &listed.payload),
            (made.id, &made.jobs, &made.payload)
        );
        assert_eq!(listed.subscriber.as_ref().unwrap().id, made.subscriber_id);
        assert_eq!(listed.workflow.as_ref().unwrap().id, made.workflow_id);
    }
    let check = env.notifications().check_index().unwrap();
    assert_eq!((check.notifications, check.disagreements), (made.len() as u64, Vec::new()));
    assert!(check.segments > 5);
}

/// The environment has what the activity says, and the activity goes on behind it.
#[test]
fn a_bench_loads_its_activity_into_an_environment() {
    let few = |count| Ranked { count, exponent: 0.9 };
    let profile = Profile { subscribers: few(1_200), topics: few(20), ..Profile::default() };
    let folder = tempfile::tempdir().unwrap();
    let on_disk = Engine::open(folder.path().join("bench.redb")).unwrap();
    for engine in [Engine::in_memory(), on_disk] {
        let env = engine.organization("acme").unwrap().development().unwrap();
        let activity = tidings::bench_data::load(&env, &profile, 7, 2_500).unwrap();

        let check = env.notifications().check_index().unwrap();
        assert_eq!((check.notifications, check.disagreements), (activity.notifications(), vec![]));
        assert!((2_500..2_600).contains(&check.notifications));
        let population = activity.population();
        let last = env.subscribers().get(population.subscriber_id(1_199)).unwrap();
        assert_eq!(last.id, population.internal_subscriber_id(1_199));
        assert_eq!(env.topics().get(population.topic_key(19)).unwrap().id, population.topic_id(19));
        let page = env.notifications().list(&NotificationQuery::default()).unwrap();
        assert!(page.data.iter().all(|one| one.subscriber.is_some() && one.workflow.is_some()));

        let again = tidings::bench_data::load(&env, &profile, 8, 1).unwrap_err();
        assert_eq!(again.status(), 409);
    }
}

// What the generator makes, put in as a host would who brings records of his own.
fn fill(store: &dyn Store, env: &Scope) -> (ActivityIndex, Activity, Vec<Notification>) {
    let home =
        Home { organization_id: "acme".parse().unwrap(), environment_id: env.environment_id() };
    let few = |count| Ranked { count, exponent: 0.9 };
    let profile = Profile {
        subscribers: few(200),
        context_sets: few(20),
        topics: few(20),
        ..Profile::default()
    };
    let mut activity = Activity::new(profile, home, 7);
    let index = ActivityIndex::with_segments_of(SEGMENT);
    store::write(store, |txn| {
        let there = activity.population();
        there.workflows().iter().try_for_each(|workflow| txn.insert(workflow))?;
        there.subscribers().try_for_each(|subscriber| txn.insert(&subscriber))
    })
    .unwrap();
    let mut made = Vec::new();
    while made.len() < NOTIFICATIONS {
        let triggered = activity.next().unwrap();
        store::write(store, |txn| {
            let mut log = index.append(&*txn, env.environment_id())?;
            for notification in &triggered.notifications {
                txn.insert(notification)?;
                log.add(Facets::from(notification));
            }
            let id = triggered.transaction_id.clone();
            let at = triggered.created_at;
            log.finish(txn, AcceptedTrigger::bare(env.environment_id(), at, id))
        })
        .unwrap();
        index.tend(store, env.environment_id()).unwrap();
        made.extend(triggered.notifications);
    }
    (index, activity, made)
}
