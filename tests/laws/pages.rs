//! A page of the file that lies in the place of another one: nothing of another organization is
//! shown, and every operation ends.

use std::time::Duration;

use serde_json::json;
use store::Store;
use testkit::disk::{Dice, Disk, PAGE};
use testkit::interposed::{Interposed, Point};
use testkit::tables::load;
use testkit::{parsed, requests, seeded};
use tidings::{Clock, Engine, ManualClock, Outbox, SeededEntropy};

use crate::scale;

/// Number of calls of the store that no operation needs.
const MANY: usize = 100_000;

/// A name that belongs to the other organization.
const THEIRS: &str = "Theirs";

#[test]
fn a_page_in_the_wrong_place_shows_nothing_of_others() {
    let bytes = two_organizations();
    let pages = bytes.len() / PAGE;
    let mut dice = Dice::new(5);
    let mut refused = 0;
    for _ in 0..60 * scale() {
        // The first page is the header.
        let (from, to) = (1 + dice.below(pages - 1), 1 + dice.below(pages - 1));
        let disk = Disk::holding(bytes.clone());
        disk.copy_page(from, to);
        let Ok(store) = disk.try_open() else { continue };
        for (request, answer) in answers(store) {
            let is_foreign = answer.contains(THEIRS);
            assert!(!is_foreign, "{request} with page {from} in place of {to}: {answer}");
            let has_end = !answer.contains(Interposed::NAME);
            assert!(has_end, "{request} does not end with page {from} in place of {to}");
            refused += usize::from(answer.contains("is not readable"));
        }
    }
    assert!(refused > 0, "no page did any harm");
}

/// The seeded world, and as much of another organization.
fn two_organizations() -> Vec<u8> {
    let disk = Disk::new();
    let store = disk.open();
    load(&store, seeded::entries());
    let engine = engine(store);
    let env = engine.organization("other").unwrap().development().unwrap();
    for n in 0..40 {
        let create = json!({
            "subscriberId": format!("{THEIRS}-{n}"),
            "firstName": THEIRS,
            "email": format!("{THEIRS}-{n}@example.org"),
        });
        env.subscribers().create(&parsed(create)).unwrap();
    }
    let steps = json!([{ "type": "in_app", "template": { "body": THEIRS } }]);
    let workflow = json!({ "workflowId": THEIRS, "name": THEIRS, "active": true, "steps": steps });
    env.workflows().create(&parsed(workflow)).unwrap();
    for n in 0..40 {
        let to = [format!("{THEIRS}-{n}"), format!("{THEIRS}-{}", n / 2)];
        let trigger = json!({ "name": THEIRS, "to": to, "payload": { "of": THEIRS } });
        env.events().trigger(&parsed(trigger)).unwrap();
        let request = json!({ "subscriptions": [format!("{THEIRS}-{n}")] });
        env.topics().subscribe(THEIRS, &parsed(request)).unwrap();
    }
    drop((env, engine));
    disk.bytes()
}

/// The answers to all requests for the seeded environment.
fn answers(store: impl Store) -> Vec<(String, String)> {
    let store = Interposed::new(store);
    let engine = engine(store.clone());
    let Ok(env) = engine.environment(seeded::world().env.environment_id()) else {
        return Vec::new();
    };
    let requests = requests::sound().iter();
    requests
        .map(|request| {
            store.stop(Point::Call, MANY);
            let answer = requests::text(&requests::call(&engine, &env, request));
            store.recover();
            (request.to_string(), answer)
        })
        .collect()
}

fn engine(store: impl Store) -> Engine {
    // At this time, every job is due.
    let now = seeded::world().clock.now().after(Duration::from_secs(1_000));
    Engine::builder()
        .clock(ManualClock::at(now))
        .entropy(SeededEntropy::new(1))
        .default_provider(Outbox::default())
        .activity_segments(16)
        .build(store)
}
