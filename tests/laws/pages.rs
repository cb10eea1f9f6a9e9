//! A page of the file that lies in the place of another one: nothing of another organization is
//! shown, and every operation ends.

use serde_json::json;
use store::Store;
use testkit::dice::Dice;
use testkit::disk::{Disk, PAGE};
use testkit::interposed::{Interposed, Point};
use testkit::records::engine;
use testkit::scaled;
use testkit::tables::load;
use testkit::{parsed, requests, seeded};
use tidings::Scope;
use tidings::ids::EnvironmentId;
use uuid::Uuid;

/// Number of calls of the store that no operation needs.
const MANY: usize = 100_000;

/// A name that belongs to the other organization.
const THEIRS: &str = "Theirs";

#[test]
fn a_page_in_the_wrong_place_shows_nothing_of_others() {
    let (bytes, others) = two_organizations();
    let ours = pages_with(&bytes, seeded::world().env.environment_id());
    let theirs = pages_with(&bytes, others);
    // On some damaged files a destructor of redb panics while redb panics, which ends the process. None
    // of the files of this seed is one of them.
    let mut dice = Dice::new(11);
    let mut refused = 0;
    for round in 0..scaled(40) {
        let pages = if round % 4 == 0 { &ours } else { &theirs };
        let (from, to) = (pages[dice.below(pages.len())], ours[dice.below(ours.len())]);
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

/// The pages with a key of that environment.
fn pages_with(bytes: &[u8], environment: EnvironmentId) -> Vec<usize> {
    let id = Uuid::from(environment);
    let pages = bytes.chunks(PAGE).enumerate();
    let pages = pages.filter(|(_, page)| page.windows(16).any(|bytes| bytes == id.as_bytes()));
    pages.map(|(number, _)| number).collect()
}

/// The seeded world with more in it, and as much of another organization, whose environment is
/// returned.
fn two_organizations() -> (Vec<u8>, EnvironmentId) {
    let disk = Disk::new();
    let store = disk.open();
    load(&store, seeded::entries());
    let engine = engine(store);
    let ours = engine.environment(seeded::world().env.environment_id()).unwrap();
    let theirs = engine.organization("other").unwrap().development().unwrap();
    let others = theirs.environment_id();
    for (env, name) in [(&ours, "ours"), (&theirs, THEIRS)] {
        fill(env, name);
    }
    drop((ours, theirs, engine));
    (disk.bytes(), others)
}

/// Fills an environment with several pages of everything that is listed.
fn fill(env: &Scope, name: &str) {
    let steps = json!([{ "type": "in_app", "template": { "body": name } }]);
    let workflow = json!({ "workflowId": name, "name": name, "active": true, "steps": steps });
    env.workflows().create(&parsed(workflow)).unwrap();
    for n in 0..60 {
        let id = format!("{name}-{n}");
        let create = json!({
            "subscriberId": id, "firstName": name, "email": format!("{id}@example.org"),
        });
        env.subscribers().create(&parsed(create)).unwrap();
        let request = json!({ "subscriptions": [id, "ada"] });
        let refused = env.topics().subscribe(id.as_str(), &parsed(request)).unwrap().errors;
        // The first trigger creates her.
        assert!(n == 0 || refused.is_empty(), "{refused:?}");
        let to = ["ada", "bob", &id].map(|id| json!({ "subscriberId": id, "lastName": name }));
        let trigger = json!({ "name": name, "to": to, "payload": { "of": name } });
        env.events().trigger(&parsed(trigger)).unwrap();
    }
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
