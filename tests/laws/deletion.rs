//! The deletion of an environment leaves nothing of it, whatever happens meanwhile, and takes nothing of
//! the others.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use domain::ids::EnvironmentId;
use serde_json::json;
use store::layout::FORMAT;
use store::removal::{self, RemovalPlace};
use store::{Table, backfill};
use testkit::interposed::{Call, Interposed, Point};
use testkit::seeded::{
    copy, copy_of, reopened, reopened_with, trigger, with_second_environment,
    with_second_organization,
};
use testkit::tables::{Entry, dump, of_plain_worlds, put};
use testkit::world::{Backend, World};
use tidings::{Delivery, Error, Organization, Provider, ProviderReceipt, SendError};
use uuid::Uuid;

use crate::parsed;

/// Returns `true` if the id of the environment is in the key or in the value.
fn names(environment: EnvironmentId, (_, key, value): &Entry) -> bool {
    let id = Uuid::from(environment);
    [key, value].iter().any(|bytes| bytes.windows(16).any(|window| window == id.as_bytes()))
}

fn without(environment: EnvironmentId, entries: &[Entry]) -> Vec<Entry> {
    entries.iter().filter(|entry| !names(environment, entry)).cloned().collect()
}

#[track_caller]
fn check_gone(world: &World, expected: &[Entry], what: &str) {
    let left = dump(&world.store);
    let there: BTreeSet<&Entry> = expected.iter().collect();
    let extra: Vec<_> = left.iter().filter(|entry| !there.contains(entry)).collect();
    assert!(extra.is_empty(), "{what}: {extra:?}");
    assert_eq!(left.len(), expected.len(), "{what}: a row of another environment is gone");
    assert_eq!(world.engine.check().unwrap().findings, [], "{what}");
}

#[test]
fn an_environment_is_deleted_as_a_whole_and_alone() {
    for entries in [with_second_environment(), with_second_organization()] {
        for backend in Backend::all() {
            let world = reopened(Interposed::over(backend.open()), entries, 1);
            let id = world.env.environment_id();
            for table in of_plain_worlds() {
                let mut of_table = entries.iter().filter(|entry| entry.0 == table);
                assert!(of_table.any(|entry| names(id, entry)), "nothing in {}", table.name());
            }

            let deletion = world.organization.delete_environment(id).unwrap();

            assert_eq!((deletion.environments, deletion.is_finished), (1, true));
            check_gone(&world, &without(id, entries), "the deletion");
        }
    }
}

#[test]
fn an_organization_is_deleted_as_a_whole_and_alone() {
    let entries = with_second_organization();
    let world = copy_of(entries);
    let environments = world.organization.environments().list().unwrap();
    let gone = environments.iter().fold(entries.to_vec(), |left, one| without(one.id, &left));
    assert!(environments.len() > 1 && !gone.is_empty());

    let deletion = world.organization.delete().unwrap();

    assert_eq!(deletion.environments, environments.len() as u64);
    check_gone(&world, &gone, "the deletion");
    let again = world.organization.delete().unwrap();
    assert_eq!((again.environments, again.rows, again.is_finished), (0, 0, true));
}

/// Each state in between is sound, and the next call goes on from there.
#[test]
fn an_interrupted_deletion_goes_on() {
    let entries = with_second_environment();
    let expected = without(copy().env.environment_id(), entries);
    let mut interruptions = 0;
    loop {
        let world = copy_of(entries);
        let id = world.env.environment_id();
        let deleted =
            world.interrupted(interruptions, || world.organization.delete_environment(id));
        let what = format!("interrupted after {interruptions}");
        if deleted.is_ok() {
            break;
        }
        assert_eq!(world.engine.check().unwrap().findings, [], "{what}");
        let before = dump(&world.store);
        assert!(world.engine.repair().unwrap().is_finished, "{what}");
        assert!(dump(&world.store) == before, "{what}: a repair has something to do");
        let engine = world.another_engine();
        engine.delivery().run_due(1_000).unwrap();
        if interruptions > 0 {
            let organization = engine.organization("acme").unwrap();
            let listed = organization.environments().get(id).unwrap();
            assert_eq!((listed.deleted_at, listed.api_keys), (Some(world.now()), vec![]));
            let refused = engine.environment(id).unwrap_err();
            assert!(matches!(refused, Error::NotFound { .. }), "{what}: {refused}");
            assert!(organization.delete_environment(id).unwrap().is_finished);
            check_gone(&world, &expected, &what);
        }
        interruptions += 1;
    }
    assert!(interruptions >= 3, "{interruptions}");
}

/// Whichever call of the store fails, another call does the rest.
#[test]
fn a_deletion_that_fails_goes_on() {
    const FAULTS: usize = 24;
    let entries = with_second_environment();
    let world = copy_of(entries);
    let id = world.env.environment_id();
    let expected = without(id, entries);
    let (calls, _) = world.store.calls_of(|| world.organization.delete_environment(id).unwrap());
    let commits = calls.iter().filter(|call| **call == Call::Commit).count();
    let each_call = (0..calls.len()).step_by(calls.len().div_ceil(FAULTS));
    let faults = each_call.map(|after| (Point::Call, after));
    for (point, after) in faults.chain((0..commits).map(|after| (Point::Commit, after))) {
        let world = copy_of(entries);
        world.store.fail(point, after);
        let failed = world.organization.delete_environment(id);
        let what = format!("a fault after {after}");
        assert!(matches!(failed, Err(Error::Store(_))), "{what}: {failed:?}");
        assert_eq!(world.engine.check().unwrap().findings, [], "{what}");
        // The fault of a commit may be behind it.
        match world.organization.delete_environment(id) {
            Ok(_) | Err(Error::NotFound { .. }) => check_gone(&world, &expected, &what),
            Err(other) => panic!("{what}: {other}"),
        }
    }
}

/// Between any two rows that are removed, the rest is sound.
#[test]
fn a_deletion_is_sound_after_each_row() {
    let world = copy_of(with_second_environment());
    let id = world.env.environment_id();
    world.store.stop(Point::Write, 1);
    world.organization.delete_environment(id).unwrap_err();
    world.store.recover();
    let mut place = Some(RemovalPlace::default());
    let mut steps = 0_usize;
    while let Some(from) = place {
        place = store::write(&world.store, |transaction| {
            Ok::<_, store::Error>(removal::step(transaction, id, &from, 1)?.next)
        })
        .unwrap();
        steps += 1;
        // A check looks at everything.
        if steps.is_multiple_of(7) {
            assert_eq!(world.engine.check().unwrap().findings, [], "after {steps} rows");
        }
    }
    assert!(steps > 100, "{steps}");
    assert!(world.organization.delete_environment(id).unwrap().is_finished);
    check_gone(&world, &without(id, with_second_environment()), "the deletion");
}

/// Whichever rows cannot be read, they are removed. Those of tables that are shared belong to nobody
/// then.
#[test]
fn rows_that_cannot_be_read_are_deleted() {
    let entries = with_second_environment();
    for table in of_plain_worlds() {
        if [Table::ApiKeys, Table::Quarantine].contains(&table) {
            continue;
        }
        let world = copy_of(entries);
        let id = world.env.environment_id();
        for (table, key, _) in entries.iter().filter(|row| row.0 == table && names(id, row)) {
            put(&world.store, *table, key, Some(b"\xFFgarbage"));
        }
        assert!(world.organization.delete_environment(id).unwrap().is_finished);
        check_gone(&world, &without(id, entries), table.name());
    }
}

/// Deletes the environment of the first message that it sends.
#[derive(Debug, Default)]
struct Deleting(Arc<OnceLock<Organization>>);

impl Provider for Deleting {
    fn send(&self, delivery: &Delivery) -> Result<ProviderReceipt, SendError> {
        let id = delivery.message.environment_id;
        // The next message may be one of the same environment.
        let deleted = self.0.get().unwrap().delete_environment(id);
        assert!(matches!(deleted, Ok(_) | Err(Error::NotFound { .. })), "{deleted:?}");
        Ok(ProviderReceipt::default())
    }
}

/// A message is on its way when its environment is deleted, and so are others of the same batch.
#[test]
fn work_that_is_under_way_leaves_nothing() {
    for backend in Backend::all() {
        let organization = Arc::new(OnceLock::new());
        let store = Interposed::over(backend.open());
        let entries = with_second_organization();
        let world = reopened_with(store, entries, 1, |builder| {
            builder.default_provider(Deleting(Arc::clone(&organization)))
        });
        organization.set(world.organization.clone()).unwrap();
        let id = world.env.environment_id();
        for step in 0..3 {
            world.env.events().trigger(&trigger("all", json!(["ada", "bob"]))).unwrap();
            if step > 0 {
                world.pass(Duration::from_secs(24 * 3_600));
            }
            world.engine.delivery().run_due(1_000).unwrap();
            if world.engine.environment(id).is_err() {
                break;
            }
        }
        let left = dump(&world.store);
        let own: Vec<_> = left.iter().filter(|entry| names(id, entry)).collect();
        assert!(own.is_empty(), "{own:?}");
        assert_eq!(world.engine.check().unwrap().findings, []);
    }
}

/// Others go on meanwhile: those who have the environment open, and those who deliver.
#[test]
fn calls_between_the_transactions_of_a_deletion_leave_nothing() {
    let entries = with_second_environment();
    for pause in 0..3 {
        let world = copy_of(entries);
        let id = world.env.environment_id();
        let (env, engine) = (world.env.clone(), world.engine.clone());
        let refused = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&refused);
        world.store.pause(Point::Write, pause, move || {
            let trigger = trigger("inbox", json!(["ada"]));
            let changes = [
                env.events().trigger(&trigger).map(drop),
                env.subscribers().delete("bob").map(drop),
                env.idempotent("once").unwrap().workflows().delete("inbox").map(drop),
            ];
            count.fetch_add(changes.iter().filter(|it| it.is_err()).count(), Ordering::SeqCst);
            engine.delivery().run_due(1_000).unwrap();
        });
        assert!(world.organization.delete_environment(id).unwrap().is_finished);
        // Before the first transaction the environment is open.
        let expected = if pause == 0 { 0 } else { 3 };
        assert_eq!(refused.load(Ordering::SeqCst), expected, "at {pause}");
        let left = dump(&world.store);
        let own: Vec<_> = left.iter().filter(|entry| names(id, entry)).collect();
        assert!(own.is_empty(), "at {pause}: {own:?}");
        assert_eq!(world.engine.check().unwrap().findings, [], "at {pause}");
    }
}

/// Upkeep of an environment, and the tables that are damaged before it.
type Upkeep = (&'static str, &'static [Table], fn(&World));

const UPKEEP: [Upkeep; 5] = [
    ("rebuild_index", &[], |world| {
        let rebuilt = world.env.notifications().rebuild_index();
        let is_made_anew = matches!(&rebuilt, Ok(rebuild) if rebuild.is_finished);
        let is_gone = matches!(rebuilt, Err(Error::NotFound { .. }));
        assert!(is_made_anew || is_gone, "{rebuilt:?}");
    }),
    ("repair", &DERIVED, |world| assert!(world.engine.repair().unwrap().is_finished)),
    ("a search", &DERIVED, |world| {
        let search = json!({ "search": "example", "outcomes": ["waiting"] });
        let _ = world.env.notifications().list(&parsed(search));
    }),
    ("a list by name", &[Table::NameIndex], |world| {
        let _ = world.env.subscribers().list(&parsed(json!({ "name": "ada" })));
    }),
    ("a list in an older store", &[], |world| {
        let mark = backfill::marks(FORMAT - 1).next().unwrap();
        world.store.undisturbed(|| put(&world.store, Table::Backfills, mark.as_bytes(), Some(b"")));
        let _ = world.env.subscribers().list(&parsed(json!({ "name": "ada" })));
    }),
];

const DERIVED: [Table; 5] = [
    Table::EmailIndex,
    Table::NameIndex,
    Table::ActivityHeads,
    Table::NotificationOutcomes,
    Table::ListCounts,
];

/// Rows that are made anew meanwhile go with the environment.
#[test]
fn upkeep_beside_a_deletion_leaves_nothing() {
    let entries = with_second_environment();
    for (name, damaged, upkeep) in UPKEEP {
        let mut pauses = 0;
        loop {
            let world = copy_of(entries);
            let id = world.env.environment_id();
            for (table, key, _) in entries.iter().filter(|(table, ..)| damaged.contains(table)) {
                put(&world.store, *table, key, Some(b"?"));
            }
            let (organization, deleted) = (world.organization.clone(), Arc::default());
            let count: Arc<AtomicUsize> = Arc::clone(&deleted);
            world.store.pause(Point::Begin, pauses, move || {
                assert!(organization.delete_environment(id).unwrap().is_finished);
                count.fetch_add(1, Ordering::SeqCst);
            });
            upkeep(&world);
            if deleted.load(Ordering::SeqCst) == 0 {
                break;
            }
            let left = dump(&world.store);
            let own: Vec<_> = left.iter().filter(|entry| names(id, entry)).collect();
            assert!(own.is_empty(), "{name} at {pauses}: {own:?}");
            pauses += 1;
        }
        assert!(pauses > 3, "{name}: {pauses}");
    }
}

#[test]
fn a_deletion_ends_when_it_is_told_to() {
    let world = copy();
    let id = world.env.environment_id();
    let deletion =
        world.organization.delete_environment_with(id, |_| ControlFlow::Break(())).unwrap();
    assert_eq!((deletion.environments, deletion.is_finished), (0, false));
    let mut rows = 0;
    let deletion = world.organization.delete_with(|progress| {
        assert!(progress.rows >= rows);
        rows = progress.rows;
        ControlFlow::Continue(())
    });
    assert!(deletion.unwrap().is_finished);
    check_gone(&world, &[], "the deletion");
}
