//! A store that lies is found out, and no operation goes on for ever.

use std::time::Duration;

use serde_json::{Value, json};
use store::memory::MemoryStore;
use testkit::interposed::{Interposed, Lie, Point};
use testkit::requests;
use testkit::seeded;
use testkit::tables::load;
use testkit::world::{World, email};
use tidings::{Clock, Engine, Error, ManualClock, RecordingProvider, SeededEntropy};

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
    let now = seeded::world().clock.now().after(Duration::from_secs(1_000));
    let engine = Engine::builder()
        .clock(ManualClock::at(now))
        .entropy(SeededEntropy::new(1))
        .default_provider(RecordingProvider::default())
        .activity_segments(16)
        .build(store.clone());
    let env = engine.environment(seeded::world().env.environment_id());
    let requests = requests::sound().to_vec().into_iter();
    requests
        .map(|request| {
            store.stop(Point::Call, MANY);
            let answer = match &env {
                Ok(env) => requests::text(&requests::call(&engine, env, &request)),
                Err(error) => error.to_string(),
            };
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
