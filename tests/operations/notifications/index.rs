//! The index of the activity list: comparing it with the notifications, and making it anew.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use store::Table;
use testkit::interposed::Point;
use testkit::tables::{self, is_activity, put};
use tidings::{Clock, Scope};

use super::{all, happen, ids, intact, on_both_with_segments as on_both};
use crate::world::{World, parsed, wire};

// What somebody does to an entry.
type Ruin = fn(&[u8]) -> Option<Vec<u8>>;

#[test]
fn an_index_in_order_is_made_anew_and_is_the_same() {
    on_both(|world| {
        history(&world);
        let before = lists(&world.env);
        intact(&world.env);
        let check = world.env.notifications().check_index().unwrap();
        // The first segment is gone, and there is one that is not sealed.
        assert_eq!((check.notifications, check.segments), (33, 3));
        world.unchanged(|| {
            assert_eq!(world.env.notifications().check_index().unwrap(), check);
        });

        for _ in 0..3 {
            assert!(world.env.notifications().rebuild_index().unwrap().is_finished);

            assert_eq!(lists(&world.env), before);
            intact(&world.env);
            assert_eq!(world.env.notifications().check_index().unwrap(), check);
        }
        let sizes = Table::ALL.map(|table| there(&world, table).len());
        assert!(world.env.notifications().rebuild_index().unwrap().is_finished);
        assert_eq!(Table::ALL.map(|table| there(&world, table).len()), sizes, "something is left");
        // An environment without notifications has no index.
        let other = world.elsewhere();
        let heads = there(&world, Table::ActivityHeads);
        assert!(other.notifications().rebuild_index().unwrap().is_finished);
        assert_eq!(there(&world, Table::ActivityHeads), heads);
        assert_eq!(ids(&other, json!({})), []);
        intact(&other);
    });
}

/// One row per part of the index: what is done to all of it, and how a list shows that.
#[test]
fn an_index_that_somebody_has_ruined_is_found_out_and_made_anew() {
    let nothing: Ruin = |_| None;
    let empty: Ruin = |_| Some(Vec::new());
    let half: Ruin = |value| Some(value[..value.len() / 2].into());
    for (table, ruin, refusal) in [
        (Table::ActivityHeads, empty, Some("activity_heads")),
        (Table::ActivityHeads, half, Some("activity_heads")),
        (Table::ActivityFacets, empty, Some("activity_facets")),
        (Table::ActivityFacets, half, Some("activity_facets")),
        (Table::ActivityFacets, nothing, Some("activity_facets")),
        (Table::ActivitySegments, empty, Some("activity_segments")),
        (Table::ActivitySegments, half, Some("activity_segments")),
        (Table::ActivitySegments, nothing, Some("activity_segments")),
        (Table::ActivityDeleted, nothing, None),
    ] {
        on_both(|world| {
            history(&world);
            let before = lists(&world.env);
            for (key, value) in there(&world, table) {
                put(&world.store, table, &key, ruin(&value).as_deref());
            }

            // Somebody who has not seen it whole.
            let engine = world.another_engine();
            let env = engine.environment(world.env.environment_id()).unwrap();
            let check = env.notifications().check_index();
            match refusal {
                Some(refusal) => {
                    let refusal = format!("record in table `{refusal}` is not readable");
                    assert_eq!(check.unwrap_err().to_string(), refusal);
                    // A list makes the index anew.
                    assert_eq!(lists(&env), before, "{}", table.name());
                    intact(&env);
                }
                None => assert!(!check.unwrap().disagreements.is_empty(), "{}", table.name()),
            }

            assert!(env.notifications().rebuild_index().unwrap().is_finished);

            for env in [&env, &world.env] {
                assert_eq!(lists(env), before, "{}", table.name());
                intact(env);
            }
            // Life goes on in both of them.
            let engines = [&env, &world.env].into_iter().cycle().take(20);
            for (n, env) in engines.enumerate() {
                let event = json!({ "name": "hi", "to": "ada", "transactionId": format!("n{n}") });
                env.events().trigger(&serde_json::from_value(event).unwrap()).unwrap();
                assert_eq!(ids(env, json!({ "transactionId": format!("n{n}") })).len(), 1);
                assert_eq!(ids(env, json!({})).len(), 34 + n);
            }
            intact(&world.env);
            intact(&env);
        });
    }
}

/// Messages of an inbox stay when their notifications are deleted. Their keys have the ordinals.
#[test]
fn a_list_that_has_lost_its_head_gives_no_ordinal_of_a_message_again() {
    for ruined in [None, Some(&b"ruined"[..])] {
        on_both(|world| {
            for name in ["ada", "bob"] {
                world.bare_subscriber(name);
            }
            world.in_app_workflow("hi");
            for _ in 0..3 {
                world.tick();
                world.notify("hi", "ada");
            }
            world.tick();
            let at = world.clock.now();
            assert_eq!(world.env.notifications().delete_before(at).unwrap(), 3);
            let before = world.inbox("ada");
            let (heads, _) = there(&world, Table::ActivityHeads).remove(0);
            put(&world.store, Table::ActivityHeads, &heads, ruined);

            let engine = world.another_engine();
            let env = engine.environment(world.env.environment_id()).unwrap();
            env.events().trigger(&parsed(json!({ "name": "hi", "to": "bob" }))).unwrap();

            assert_eq!((world.inbox("ada"), world.inbox("bob").len()), (before, 1));
            assert_eq!(ids(&env, json!({})).len(), 1);
            intact(&env);
        });
    }
}

#[test]
fn an_index_without_notifications_and_without_its_head_is_removed() {
    on_both(|world| {
        history(&world);
        let lost = [Table::Notifications, Table::ActivityHeads];
        let others = [Table::Messages, Table::Triggers, Table::Transactions];
        for table in lost.into_iter().chain(others) {
            for (key, _) in there(&world, table) {
                put(&world.store, table, &key, None);
            }
        }
        assert_ne!(there(&world, Table::ActivitySegments), []);

        let engine = world.another_engine();
        let env = engine.environment(world.env.environment_id()).unwrap();
        assert!(env.notifications().rebuild_index().unwrap().is_finished);

        let tables = Table::ALL.into_iter().filter(|table| is_activity(*table));
        for table in tables {
            assert_eq!(there(&world, table), [], "{}", table.name());
        }
        world.notify("hi", "ada");
        assert_eq!(ids(&env, json!({})).len(), 1);
        intact(&env);
    });
}

/// The transaction ids of notifications that go during a rebuild are free, wherever it is.
#[test]
fn what_is_deleted_during_a_rebuild_leaves_no_trigger() {
    let mut pauses = 0;
    let was_begun = Arc::new(AtomicBool::new(true));
    while was_begun.swap(false, Ordering::SeqCst) {
        on_both(|world| {
            history(&world);
            let page = json!({ "limit": 50 });
            let all = world.env.notifications().list(&parsed(page)).unwrap().data;
            let (env, begun, gone) = (world.env.clone(), Arc::clone(&was_begun), all.clone());
            world.store.pause(Point::Begin, pauses, move || {
                for one in gone {
                    env.notifications().delete(one.id).unwrap();
                }
                begun.store(true, Ordering::SeqCst);
            });
            assert!(world.env.notifications().rebuild_index().unwrap().is_finished);
            if !was_begun.load(Ordering::SeqCst) {
                return;
            }
            intact(&world.env);
            for one in &all {
                let event =
                    json!({ "name": "hi", "to": "ada", "transactionId": one.transaction_id });
                let made = world.env.events().trigger(&parsed(event)).unwrap().notifications;
                assert_eq!(made.len(), 1, "{} at {pauses}", one.transaction_id);
            }
            assert_eq!(world.engine.check().unwrap().findings, []);
        });
        pauses += 1;
    }
    assert!(pauses > 10, "{pauses}");
}

/// A host may do everything while it is told of the progress, also the same.
#[test]
fn an_index_is_made_anew_within_a_rebuild() {
    on_both(|world| {
        history(&world);
        let before = lists(&world.env);
        let notifications = world.env.notifications();
        let mut steps = 0;
        let rebuilt = notifications.rebuild_index_with(|_| {
            steps += 1;
            assert!(notifications.rebuild_index().unwrap().is_finished);
            assert!(world.engine.repair().unwrap().is_finished);
            assert_eq!(lists(&world.env), before);
            ControlFlow::Continue(())
        });
        assert!(rebuilt.unwrap().is_finished && steps > 3, "{steps}");
        assert_eq!(lists(&world.env), before);
        intact(&world.env);
        assert_eq!(world.engine.check().unwrap().findings, []);
        let sizes = Table::ALL.map(|table| there(&world, table).len());
        assert!(notifications.rebuild_index().unwrap().is_finished);
        assert_eq!(Table::ALL.map(|table| there(&world, table).len()), sizes, "something is left");
    });
}

/// A damaged index is made anew by the host, by the calls of its `progress`, and by another thread.
#[test]
fn an_index_is_made_anew_by_several_at_once() {
    on_both(|world| {
        history(&world);
        let before = lists(&world.env);
        for (key, _) in there(&world, Table::ActivitySegments) {
            put(&world.store, Table::ActivitySegments, &key, Some(b""));
        }
        let engine = world.another_engine();
        let env = engine.environment(world.env.environment_id()).unwrap();
        thread::scope(|scope| {
            let rebuilt = env.notifications().rebuild_index_with(|_| {
                scope.spawn(|| assert_eq!(lists(&env), before));
                thread::sleep(Duration::from_millis(20));
                assert_eq!(lists(&env), before);
                ControlFlow::Continue(())
            });
            assert!(rebuilt.unwrap().is_finished);
        });
        intact(&env);
    });
}

/// Others may create a notification between any two steps of a rebuild.
#[test]
fn an_index_is_made_anew_among_endless_events() {
    on_both(|world| {
        history(&world);
        let mut events = 0;
        let rebuilt = world.env.notifications().rebuild_index_with(|_| {
            events += 1;
            assert!(events < 100, "the rebuild does not end");
            happen(&world, "hi", "dan", json!({}));
            ControlFlow::Continue(())
        });
        assert!(rebuilt.unwrap().is_finished);
        intact(&world.env);
    });
}

// Fifty notifications, of which the first sixteen and one more are deleted.
fn history(world: &World) {
    world.in_app_workflow("hi");
    let made: Vec<_> = (0..50)
        .map(|n| {
            happen(
                world,
                "hi",
                ["ada", "bob", "cyd"][n % 3],
                json!({ "transactionId": format!("t{n}") }),
            )
        })
        .collect();
    let end = world.notification(made[16]).created_at;
    assert_eq!(world.env.notifications().delete_before(end).unwrap(), 16);
    world.env.notifications().delete(made[20]).unwrap();
    world.env.notifications().delete(made[48]).unwrap();
    assert_eq!(world.env.notifications().delete_before(end).unwrap(), 0);
    happen(world, "hi", "dan", json!({}));
}

fn lists(env: &Scope) -> Vec<Value> {
    let queries = [
        json!({}),
        json!({ "subscriberIds": ["bob"] }),
        json!({ "channels": ["in_app"], "severity": ["none"] }),
        json!({ "transactionId": "t17" }),
        json!({ "transactionId": "t3" }),
        json!({ "transactionId": "t20" }),
        json!({ "after": "2026-11-20T12:00:40Z" }),
    ];
    queries.map(|query| wire(all(env, query))).into()
}

fn there(world: &World, table: Table) -> Vec<(Vec<u8>, Vec<u8>)> {
    let entries = tables::of(&world.store, table).into_iter();
    entries.map(|(_, key, value)| (key, value)).collect()
}
