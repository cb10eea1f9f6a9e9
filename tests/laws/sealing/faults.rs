//! Faults at every call of the store, over sealed records.

use std::sync::LazyLock;

use serde_json::json;
use testkit::interposed::{Interposed, Point};
use testkit::scaled;
use testkit::sealed::keyring;
use testkit::tables::{Entry, check_indexes, dump, load};
use testkit::world::World;

use super::{check_sealed, sealed_world};
use crate::all_or_nothing::faults::{ask, check_in};
use crate::seeded;

static ENTRIES: LazyLock<Vec<Entry>> =
    LazyLock::new(|| dump(&sealed_world(seeded::entries()).store));

fn copy(keys: &[u32]) -> World {
    let store = Interposed::default();
    load(&store, &ENTRIES);
    let world = World::with(store, |builder| builder.sealing(keyring(keys)));
    world.clock.set(seeded::world().now());
    world
}

#[test]
fn a_failed_operation_leaves_nothing_behind() {
    for request in [
        json!(["subscribers.upsert", { "subscriberId": "ada", "email": "new@example.org" }]),
        json!(["integrations.create", { "providerId": "host", "channel": "email", "active": true,
            "credentials": { "password": "secret" } }]),
        json!(["environments.create", { "name": "QA", "color": "#fff" }]),
        json!(["idempotent", "key", "environments.create", { "name": "QA", "color": "#fff" }]),
        json!(["suppressions.add", { "channel": "sms", "address": "+1" }]),
    ] {
        let fork = || {
            let world = copy(&[1]);
            let store = world.store.clone();
            (world, store)
        };
        let is_unchanged = |store: &Interposed| dump(store) == *ENTRIES;
        for world in check_in(1, fork, is_unchanged, |world| ask(world, &request)) {
            check_sealed(&world.store, 1);
        }
    }
}

/// Wherever a resealing fails, everything can be read, and another one comes to the end.
#[test]
fn a_failed_resealing_is_gone_on_with() {
    let mut failed = 0;
    for point in [Point::Call, Point::Commit, Point::Committed] {
        // Every nineteenth call, unless `TIDINGS_TEST_SCALE` says otherwise, and every commit.
        let step = if matches!(point, Point::Call) { (19 / scaled(1_usize)).max(1) } else { 1 };
        for after in (0..).step_by(step) {
            let world = copy(&[2, 1]);
            world.store.fail(point, after);
            let result = world.engine.reseal();
            if !world.store.recover() {
                assert!(result.unwrap().is_finished);
                break;
            }
            failed += 1;
            if failed % 10 == 0 {
                check_indexes(&world.store);
            }
            let report = world.engine.reseal().unwrap();
            assert!(report.is_finished && report.unreadable == 0, "{report:?}");
            check_sealed(&world.store, 2);
        }
    }
    assert!(failed > 50, "{failed}");
}
