//! A store that lies is found out, and no operation goes on for ever.

use std::time::Duration;

use serde_json::{Value, json};
use store::memory::MemoryStore;
use store::{Table, WriteRecords};
use testkit::interposed::{Interposed, Lie, Point};
use testkit::records::engine;
use testkit::requests;
use testkit::seeded;
use testkit::tables::{self, load, put};
use testkit::world::{Counts, World, email, hour, in_app, workflow_of};
use tidings::trigger::AcceptedTrigger;
use tidings::vocabulary::Channel;
use tidings::{Engine, Error};

use crate::parsed;
use crate::wreck::ids;

/// Number of calls that no operation of these tests needs.
const MANY: usize = 100_000;

/// Returns the answers to all requests of a store that tells `lie`.
fn answers(lie: Option<Lie>) -> Vec<(Value, String)> {
    let store = Interposed::new(MemoryStore::default());
    load(&store, seeded::entries());
    let store = store.discarding();
    if let Some(lie) = lie {
        store.tell(lie);
    }
    let engine = engine(store.clone());
    let env = engine.environment(seeded::world().env.environment_id());
    let env = env.expect("the lie leaves the environment");
    let requests = requests::sound().to_vec().into_iter();
    requests
        .map(|request| {
            store.stop(Point::Call, MANY);
            let answer = requests::text(&requests::call(&engine, &env, &request));
            store.recover();
            (request, answer)
        })
        .collect()
}

#[test]
fn no_operation_goes_on_for_ever() {
    for lie in [Lie::Foreign, Lie::Repeated, Lie::Undeleted, Lie::OtherKey, Lie::Stale] {
        for (request, answer) in answers(Some(lie)) {
            assert!(!answer.contains(Interposed::NAME), "{request} does not end: {lie:?}");
        }
    }
}

/// Damage is a finding of a check, and does not end it.
#[test]
fn a_check_of_a_store_that_lies_finds_it() {
    for lie in [Lie::Foreign, Lie::Repeated, Lie::OtherKey] {
        let world = seeded::copy();
        world.store.tell(lie);

        let check = world.engine.check().unwrap();

        assert!(check.is_finished, "{lie:?}");
        assert!(!check.findings.is_empty(), "{lie:?}");
    }
}

/// The value of another key is another record, which may belong to another environment.
#[test]
fn a_record_of_another_key_is_not_shown() {
    let told = answers(Some(Lie::OtherKey));
    let mut refused = 0;
    for ((request, answer), (_, truth)) in told.iter().zip(answers(None)) {
        let is_refused = answer.ends_with("is not readable");
        let is_taken = answer.ends_with("is there already");
        // Lists, changes of many records and delivery pass over what they cannot read.
        let known = ids(&truth);
        let is_part = ids(answer).iter().all(|id| known.contains(id));
        assert!(is_refused || is_taken || is_part, "{request} becomes {answer}");
        refused += usize::from(is_refused);
    }
    assert!(refused > 50, "{refused} requests were refused");
}

#[test]
fn a_job_that_is_due_after_its_claim_is_not_sent_again() {
    let world = World::in_memory();
    world.active_integration("email", "sendgrid");
    world.workflow_of("mail", &[email()]);
    world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
    world.notify("mail", "ada");
    let engine = Engine::builder()
        .clock(world.clock.clone())
        .default_provider(world.recorder.clone())
        .build(world.store.clone().discarding());

    world.store.stop(Point::Write, 10);
    let refused = engine.delivery().run_due(usize::MAX).unwrap_err();

    let is_corrupt = matches!(refused, Error::Store(store::Error::Corrupt { table: "due", .. }));
    assert!(is_corrupt, "{refused:?}");
    assert_eq!(world.recorder.sent().len(), 1);
}

/// The end of the list of an inbox cannot be gone through, behind as many messages as a step counts.
#[test]
fn an_inbox_that_cannot_be_gone_through_takes_messages_after_a_repair() {
    let world = large_inbox();
    world.store.tell(Lie::ForeignBehind(Table::MessageLists));
    let before = tables::of(&world.store, Table::MessageCounters);

    let report = world.engine.repair().unwrap();

    assert!(report.is_finished);
    assert!(
        tables::of(&world.store, Table::MessageCounters) == before,
        "what it cannot count stays"
    );
    takes_messages(&world);
}

#[test]
fn an_inbox_that_cannot_be_gone_through_takes_messages_without_its_counters() {
    let world = large_inbox();
    for (table, key, _) in tables::of(&world.store, Table::MessageCounters) {
        put(&world.store, table, &key, Some(b"damaged"));
    }
    world.store.tell(Lie::ForeignBehind(Table::MessageLists));

    takes_messages(&world);
}

type Made = fn() -> World;
type Call = fn(&World) -> Result<(), Error>;

/// What removes records in steps ends where they are still there.
#[test]
fn a_removal_that_does_not_stick_ends() {
    let cases: [(&str, Made, Call); 7] = [
        ("suppressions", suppressed, |world| {
            world.env.suppressions().clear_all().map(|cleared| assert_eq!(cleared, 300))
        }),
        ("suppressions of a channel", suppressed, |world| {
            let cleared = world.env.suppressions().clear_channel(Channel::Email);
            cleared.map(|cleared| assert_eq!(cleared, 300))
        }),
        ("messages", || of_ada(&[in_app()], 1), erase),
        ("events of a digest", || of_ada(&[hour("digest"), in_app()], 6), erase),
        ("runs of a deletion", of_many_runs, |world| {
            world.env.notifications().delete(world.notifications(json!({}))[0].id)
        }),
        ("runs of old notifications", of_many_runs, |world| {
            let later = world.now().after(Duration::from_secs(1_000));
            world.env.notifications().delete_before(later).map(drop)
        }),
        ("runs of an erasure", of_many_runs, erase),
    ];
    let mut endless = Vec::new();
    for (what, world, call) in cases {
        let world = world();
        world.store.tell(Lie::Undeleted);
        world.store.stop(Point::Call, MANY);
        if let Err(error) = call(&world)
            && !matches!(error, Error::Store(store::Error::Corrupt { .. }))
        {
            endless.push(format!("{what}: {error:?}"));
        }
    }
    assert!(endless.is_empty(), "{endless:#?}");
}

fn erase(world: &World) -> Result<(), Error> {
    world.env.subscribers().erase("ada").map(drop)
}

fn suppressed() -> World {
    let world = World::in_memory();
    for number in 0..300 {
        let address = format!("{number}@example.org");
        let add = json!({ "channel": "email", "address": address });
        world.env.suppressions().add(&parsed(add)).unwrap();
    }
    world
}

// A world in which so many times a hundred events were triggered for ada.
fn of_ada(steps: &[Value], bulks: usize) -> World {
    let world = World::in_memory();
    world.workflow(workflow_of("news", steps));
    world.subscriber(json!({ "subscriberId": "ada" }));
    let bulk = vec![parsed(json!({ "name": "news", "to": "ada" })); 100];
    for _ in 0..bulks {
        let told = world.env.events().trigger_bulk(&bulk).unwrap();
        assert!(told.into_iter().all(|told| told.is_ok()));
    }
    while world.run_due() != Counts::default() {}
    world
}

// A world with an event in many runs, whose notifications are gone but for one.
fn of_many_runs() -> World {
    let world = World::in_memory();
    world.workflow(workflow_of("news", &[in_app()]));
    world.subscriber(json!({ "subscriberId": "ada" }));
    let crowd = json!({ "name": "news", "to": ["ada"], "transactionId": "crowd" });
    let told = world.env.events().trigger(&parsed(crowd)).unwrap();
    for first in (0..600).map(|run| 1_000 + run * 2) {
        let (id, environment) = (told.transaction_id.clone(), world.env.environment_id());
        let bare = AcceptedTrigger::bare(environment, world.now(), id);
        let run = AcceptedTrigger { ordinals: first..first + 1, ..bare };
        store::write(&world.store, |tx| tx.insert(&run)).unwrap();
    }
    world
}

// A world in which ada has more messages than a step counts.
fn large_inbox() -> World {
    of_ada(&[in_app()], 11)
}

#[track_caller]
fn takes_messages(world: &World) {
    let messages = || world.rows(Table::Messages);
    for _ in 0..3 {
        let before = messages();
        world.notify("news", "ada");
        world.run_due();
        assert_eq!(messages(), before + 1);
    }
    assert!(world.env.inbox("ada").unwrap().count(&parsed(json!({}))).is_ok());
}
