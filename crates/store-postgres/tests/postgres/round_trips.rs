//! Round trips of operations: over a network, they decide how long a call takes.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use testkit::interposed::Interposed;
use testkit::parsed;
use testkit::postgres::{Place, Server};
use testkit::world::World;
use tidings::context::ContextQuery;
use tidings::message::{MarkAs, MessageQuery};
use tidings::notification::NotificationQuery;
use tidings::preference::PreferencesQuery;
use tidings_store_postgres::PostgresStore;

/// What the operations take, when the engine has run for a while.
#[test]
fn operations_take_few_round_trips() {
    let Some(server) = Server::shared() else { return };
    let place = place(server);
    let store = place.open();
    let world = world_of(&store);
    world.in_app_workflow("order");
    for number in 0..100 {
        world.in_app_workflow(&format!("workflow-{number}"));
    }
    world.bare_subscriber("ada");
    let notify = || _ = world.notify("order", "ada");
    let notify_once = |id: &str| {
        let trigger = json!({ "name": "order", "to": "ada", "transactionId": id });
        world.trigger(trigger);
    };
    (0..12).for_each(|_| notify());
    notify_once("first");
    let page = || drop(world.env.notifications().list(&NotificationQuery::default()).unwrap());
    page();
    let trips = |call: &dyn Fn()| {
        let before = store.round_trips();
        call();
        store.round_trips() - before
    };
    let preferences = || {
        let all = world.env.preferences("ada").unwrap().get(&PreferencesQuery::default()).unwrap();
        assert_eq!(all.workflows.len(), 101);
    };
    preferences();
    let ids: Vec<_> = world.inbox("ada").iter().map(|message| message.id).take(10).collect();
    let inbox = world.env.inbox("ada").unwrap();
    let mark = || drop(inbox.mark_as(ids.clone(), MarkAs::Read).unwrap());
    let claim = || drop(world.engine.delivery().run_due(100).unwrap());
    // The first one also looks for tasks of a clock that was ahead.
    claim();
    let list = || drop(inbox.list(&MessageQuery::default()).unwrap());
    let expected: [(&str, u64, &dyn Fn()); 7] = [
        ("a trigger for the inbox", 2, &notify),
        ("a trigger with a transaction id", 2, &|| notify_once("second")),
        ("a page of notifications", 1, &page),
        ("ten messages that are marked", 1, &mark),
        ("a claim of nothing", 3, &claim),
        ("a page of an inbox", 2, &list),
        ("preferences over 101 workflows", 2, &preferences),
    ];
    let taken = expected.map(|(operation, _, call)| (operation, trips(call)));
    assert_eq!(taken, expected.map(|(operation, exactly, _)| (operation, exactly)));
}

/// The template of an email may be large, and is kept in memory all the same.
#[test]
fn large_templates_take_no_round_trips_of_their_own() {
    let Some(server) = Server::shared() else { return };
    let [small, large] = [50, 2_500].map(|words| {
        let store = place(server).open();
        let world = world_of(&store);
        // Records are compressed, which makes this text hardly smaller.
        let words = (1..words).map(|number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let body = words.map(|word| format!("{word:x}")).collect::<Vec<_>>().join(" ");
        let step = json!({ "type": "in_app", "template": { "body": body } });
        world.workflow_of("order", &[step]);
        let step = json!({ "type": "email", "template": { "subject": "Hello", "body": body } });
        world.workflow_of("letter", &[step]);
        world.active_integration("email", "mail");
        world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
        let inbox = world.env.inbox("ada").unwrap();
        let calls: [&dyn Fn(); 4] = [
            &|| _ = world.notify("order", "ada"),
            &|| _ = world.notify("letter", "ada"),
            &|| drop(world.engine.delivery().run_due(100).unwrap()),
            &|| drop(inbox.list(&MessageQuery::default()).unwrap()),
        ];
        (0..12).for_each(|_| calls.iter().for_each(|call| call()));
        // Upkeep takes some now and then.
        let mut least = [u64::MAX; 4];
        for _ in 0..4 {
            for (call, least) in calls.iter().zip(&mut least) {
                let before = store.round_trips();
                call();
                *least = (store.round_trips() - before).min(*least);
            }
        }
        least
    });
    assert_eq!(large, small);
}

/// The rows of many recipients are read together, also in a process that knows none of them.
#[test]
fn the_recipients_of_a_trigger_take_no_round_trips_of_their_own() {
    let Some(server) = Server::shared() else { return };
    let place = place(server);
    let first = world_of(&place.open());
    first.in_app_workflow("order");
    let everybody: Vec<_> = (0..100).map(|number| format!("subscriber-{number}")).collect();
    let trigger = |world: &World, ids: &[String]| {
        world.trigger(json!({
            "name": "order", "to": ids, "context": { "shop": "berlin" },
        }));
    };
    trigger(&first, &everybody);
    let [of_one, of_all] = [1, 100].map(|recipients| {
        let store = place.open();
        let world = world_of(&store);
        // What the engine reads in its first call does not count.
        trigger(&world, &["somebody".to_owned()]);
        let before = store.round_trips();
        trigger(&world, &everybody[..recipients]);
        store.round_trips() - before
    });
    assert_eq!(of_one, 4);
    // Upkeep may take another one.
    assert!(of_all <= of_one + 1, "{of_all}");
}

/// The rows of a recipient are read with the receipt of an earlier event.
#[test]
fn a_known_recipient_takes_no_round_trip_of_its_own() {
    let Some(server) = Server::shared() else { return };
    let place = place(server);
    let first = world_of(&place.open());
    first.in_app_workflow("order");
    let trigger = |world: &World, id: &str, to: &str| {
        world.trigger(json!({ "name": "order", "to": to, "transactionId": id }));
    };
    trigger(&first, "first", "ada");
    let store = place.open();
    let world = world_of(&store);
    // Behind a few commits of its own, the process does not lock the environment beforehand.
    for number in 0..6 {
        trigger(&world, &format!("event-{number}"), "somebody");
    }
    world.env.subscribers().get("ada").unwrap();
    let before = store.round_trips();
    trigger(&world, "last", "ada");
    assert_eq!(store.round_trips() - before, 2);
}

/// An operation, and the round trips that it takes.
type Operation<'o> = (&'o str, u64, &'o dyn Fn(&World));

/// The numbers of records in lists are read with other rows, also in a process that knows none of them.
#[test]
fn a_number_of_records_takes_no_round_trip_of_its_own() {
    let Some(server) = Server::shared() else { return };
    let place = place(server);
    let first = world_of(&place.open());
    first.bare_subscriber("ada");
    first.env.topics().create(&parsed(json!({ "key": "news" }))).unwrap();
    let create = |world: &World| _ = world.bare_subscriber("bob");
    let upsert =
        |world: &World| _ = world.env.topics().upsert(&parsed(json!({ "key": "other" }))).unwrap();
    let delete = |world: &World| world.env.topics().delete("news").unwrap();
    let calls: [Operation<'_>; 3] = [
        ("a subscriber is created", 4, &create),
        ("a topic is created", 3, &upsert),
        ("a topic is deleted", 4, &delete),
    ];
    let taken = calls.map(|(name, _, call)| {
        let store = place.open();
        let world = world_of(&store);
        // What the engine reads in its first call does not count.
        world.env.contexts().list(&ContextQuery::default()).unwrap();
        let before = store.round_trips();
        call(&world);
        (name, store.round_trips() - before)
    });
    assert_eq!(taken, calls.map(|(name, exactly, _)| (name, exactly)));
}

/// A process that knows nothing replaces addresses, until a group of their index is half empty and the others
/// move.
#[test]
fn texts_that_move_take_no_round_trips_of_their_own() {
    let Some(server) = Server::shared() else { return };
    let place = place(server);
    let upsert = |world: &World, first: u32, host: &str| {
        let one = |number: u32| {
            let email = format!("a.person.{number}@{host}.example.com");
            parsed(json!({ "subscriberId": number.to_string(), "email": email }))
        };
        let bulk: Vec<_> = (first..first + 500).map(one).collect();
        world.env.subscribers().upsert_bulk(&bulk).unwrap();
    };
    let all = (0..8_000).step_by(500);
    let world = world_of(&place.open());
    all.clone().for_each(|first| upsert(&world, first, "one"));
    let taken = all.map(|first| {
        let store = place.open();
        let world = world_of(&store);
        world.env.contexts().list(&ContextQuery::default()).unwrap();
        let before = store.round_trips();
        upsert(&world, first, "two");
        store.round_trips() - before
    });
    let taken: Vec<_> = taken.collect();
    assert!(taken.iter().all(|trips| *trips <= 24), "{taken:?}");
    assert!(world.engine.check().unwrap().findings.is_empty());
}

/// The questions for commits of other processes do not count.
fn place(server: &Server) -> Place {
    server.place().with(|options| options.poll = Duration::from_secs(3_600))
}

fn world_of(store: &PostgresStore) -> World {
    World::with(Interposed::over(Arc::new(store.clone())), |it| it)
}
