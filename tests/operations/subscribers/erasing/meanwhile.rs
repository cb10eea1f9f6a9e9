//! What a host does while an erasure runs.

use std::ops::ControlFlow;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::tables;
use tidings::person::Erasure;

use super::{fill, nothing_is_left};
use crate::world::{World, in_app, on_both, parsed};

/// A notification that is triggered between two transactions goes, too.
#[test]
fn an_erasure_tells_how_far_it_is_and_misses_nothing() {
    on_both(|world| {
        world.workflow_of("news", &[in_app()]);
        for id in ["canary-id", "bob"] {
            world.bare_subscriber(id);
        }
        for _ in 0..150 {
            world.notify("news", "canary-id");
        }
        let mut seen: Vec<u64> = Vec::new();

        let erased = world.env.subscribers().erase_with("canary-id", |at| {
            seen.push(at.rows);
            world.notify("news", "canary-id");
            world.notify("news", "bob");
            ControlFlow::Continue(())
        });

        // A notification counts for eight rows.
        assert_eq!(seen[..2], [64 * 8, 128 * 8]);
        assert!(seen.is_sorted());
        assert_eq!(erased.unwrap().notifications, 150 + seen.len() as u64);
        assert_eq!(world.notifications(json!({ "subscriberIds": ["bob"] })).len(), seen.len());
        nothing_is_left(&world.store);
        tables::check_indexes(&world.store);
    });
}

/// What such a notification has left in other tables goes as well, whenever it was triggered.
#[test]
fn an_erasure_leaves_nothing_of_the_events_that_are_triggered_meanwhile() {
    on_both(|world| {
        fill(&world);
        world.workflow_of("news", &[in_app()]);
        (0..60).for_each(|_| _ = world.notify("news", "canary-id"));
        let others: Vec<_> = (0..100).map(|number| format!("s{number}")).collect();
        let mut calls = 0;

        let erased = world.env.subscribers().erase_with("canary-id", |_| {
            calls += 1;
            // The erasure looks at them in two transactions.
            let events = if calls == 1 { 6 } else { 0 };
            (0..events).for_each(|_| _ = world.trigger(json!({ "name": "news", "to": others })));
            let once = world.env.idempotent(format!("call {calls}")).unwrap();
            let own = json!({
                "name": "digest", "to": "canary-id", "payload": { "text": "payload-canary" },
            });
            once.events().trigger(&parsed(own)).unwrap();
            ControlFlow::Continue(())
        });

        assert_eq!(erased.unwrap().notifications, 71 + calls);
        assert_eq!(calls, 2);
        nothing_is_left(&world.store);
        tables::check_indexes(&world.store);
    });
}

/// What calls about the person have answered meanwhile goes as well.
#[test]
fn an_erasure_leaves_no_answers_of_calls_that_are_made_meanwhile() {
    answers_meanwhile(|world| _ = world.tick());
}

/// The time of an answer is that of its call.
#[test]
fn an_erasure_leaves_no_answers_of_calls_that_are_made_under_an_earlier_clock() {
    answers_meanwhile(|world| world.clock.set(world.now().before(Duration::from_secs(3_600))));
}

/// Erases a person about whom calls are made meanwhile, each behind a `change` of the clock.
fn answers_meanwhile(change: impl Fn(&World)) {
    on_both(|world| {
        let upsert = |key: String, profile: Value| {
            let once = world.env.idempotent(key).unwrap();
            once.subscribers().upsert(&parsed(profile)).unwrap();
        };
        world.bare_subscriber("canary-id");
        // More than a transaction looks at.
        for call in 0..600 {
            upsert(format!("call {call}"), json!({ "subscriberId": "bob" }));
        }
        let mut calls = 0;

        let erased = world.env.subscribers().erase_with("canary-id", |_| {
            calls += 1;
            assert!(calls < 100, "it has no end");
            change(&world);
            // In front of the answers that were looked at.
            let name = format!("name-canary {calls}");
            let profile = json!({ "subscriberId": "canary-id", "firstName": name });
            upsert(format!("a call {calls}"), profile);
            ControlFlow::Continue(())
        });

        assert_eq!(erased.unwrap().answers, calls);
        assert!(calls > 0);
        nothing_is_left(&world.store);
        tables::check_indexes(&world.store);
    });
}

/// A host that triggers events for the person all the time does not keep an erasure from its end.
#[test]
fn an_erasure_among_endless_events_ends() {
    on_both(|world| {
        world.workflow_of("news", &[in_app()]);
        world.bare_subscriber("canary-id");
        answers(&world);
        let mut calls = 0;

        let erased = world.env.subscribers().erase_with("canary-id", |_| {
            calls += 1;
            assert!(calls < 100, "it has no end");
            world.notify("news", "canary-id");
            ControlFlow::Continue(())
        });

        assert_eq!(erased.unwrap().notifications, calls);
        assert!(world.env.subscribers().find("canary-id").unwrap().is_none());
        tables::check_indexes(&world.store);
    });
}

/// A window that is opened behind the look at the windows may have more events than a transaction removes.
#[test]
fn an_erasure_leaves_nothing_of_a_large_digest_that_begins_meanwhile() {
    on_both(|world| {
        let hour = json!({ "type": "regular", "amount": 1, "unit": "hours" });
        world.workflow_of("news", &[json!({ "type": "digest", "metadata": hour }), in_app()]);
        answers(&world);
        let event = json!({ "name": "news", "to": "canary-id", "payload": { "n": "canary" } });
        let bulk = vec![parsed(event); 100];

        let erased = erased_while(&world, || {
            for _ in 0..6 {
                assert!(world.env.events().trigger_bulk(&bulk).unwrap().iter().all(Result::is_ok));
            }
        });

        assert_eq!(erased.notifications, 600);
        nothing_is_left(&world.store);
        tables::check_indexes(&world.store);
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

/// An event for the id of a person who was deleted creates another subscriber.
#[test]
fn an_erasure_of_a_deleted_person_leaves_nothing_of_the_events_that_are_triggered_meanwhile() {
    on_both(|world| {
        fill(&world);
        world.workflow_of("news", &[in_app()]);
        (0..150).for_each(|_| _ = world.notify("news", "canary-id"));
        world.env.subscribers().delete("canary-id").unwrap();

        let erased = erased_while(&world, || {
            let payload = json!({ "text": "payload-canary" });
            let own = json!({ "name": "digest", "to": "canary-id", "payload": payload });
            let shared = json!({ "name": "news", "to": ["canary-id", "bob"] });
            for trigger in [own, shared] {
                world.trigger(trigger);
            }
        });

        assert_eq!(erased.notifications, 11 + 150 + 2);
        assert_eq!(world.env.subscribers().find("canary-id").unwrap(), None);
        nothing_is_left(&world.store);
        tables::check_indexes(&world.store);
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

/// Such a subscriber has the id of the person.
#[test]
fn an_erasure_of_a_deleted_person_removes_the_subscriber_who_is_created_meanwhile() {
    on_both(|world| {
        world.workflow_of("news", &[in_app()]);
        (0..150).for_each(|_| _ = world.notify("news", "canary-id"));
        world.env.subscribers().delete("canary-id").unwrap();

        let erased = erased_while(&world, || {
            world.subscriber(json!({ "subscriberId": "canary-id", "firstName": "Canaria" }));
        });

        assert_eq!(erased.notifications, 150);
        assert_eq!(world.env.subscribers().find("canary-id").unwrap(), None);
        nothing_is_left(&world.store);
        tables::check_indexes(&world.store);
    });
}

// More stored answers than a transaction looks at.
fn answers(world: &World) {
    for call in 0..600 {
        let once = world.env.idempotent(format!("call {call}")).unwrap();
        once.subscribers().upsert(&parsed(json!({ "subscriberId": "bob" }))).unwrap();
    }
}

// Erases the person, and runs `meanwhile` behind the first transaction.
fn erased_while(world: &World, meanwhile: impl FnOnce()) -> Erasure {
    let mut meanwhile = Some(meanwhile);
    let erased = world.env.subscribers().erase_with("canary-id", |_| {
        if let Some(meanwhile) = meanwhile.take() {
            meanwhile();
        }
        ControlFlow::Continue(())
    });
    erased.unwrap()
}
