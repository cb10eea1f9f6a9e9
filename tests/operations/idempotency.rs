//! Idempotency keys: a call that is made again happens once.

mod bulk;
mod refused;
mod runs;
mod steps;
mod writes;

use std::thread;
use std::time::Duration;

use domain::idempotency::{CallOutcome, StoredAnswer};
use serde_json::json;
use store::{Table, WriteRecords};
use tidings::Scope;
use tidings::ids::IdempotencyKey;
use tidings::message::MarkAs;
use tidings::topic::{Topic, TopicCreate};

use crate::topics::key;
use crate::world::{World, on_both, only, parsed, wire};

const A_DAY: Duration = Duration::from_secs(24 * 60 * 60);
const A_MILLISECOND: Duration = Duration::from_millis(1);
const ALMOST_A_DAY: Duration = Duration::from_millis(24 * 60 * 60 * 1_000 - 1);

#[test]
fn a_day_later_the_call_is_made_again() {
    on_both(|world| {
        let once = once(&world, "k");
        let upsert = |name: &str| -> tidings::Result<Topic> {
            once.topics().upsert(&parsed(json!({ "key": "news", "name": name })))
        };
        let first = upsert("first").unwrap();
        world.env.topics().delete(key("news")).unwrap();

        world.pass(ALMOST_A_DAY);
        assert_eq!(world.unchanged(|| upsert("first")).unwrap(), first);
        let refusal = "409 idempotency key `k` was used for another call";
        world.refuses(refusal, || upsert("second"));

        let at = world.pass(A_MILLISECOND);
        let again = upsert("first").unwrap();
        assert!(again.id != first.id && again.created_at == at, "{again:?}");
        // From now on that is the answer, for a day.
        world.pass(ALMOST_A_DAY);
        assert_eq!(world.unchanged(|| upsert("first")).unwrap(), again);
        // The key of a call that is forgotten may name another one.
        world.pass(A_MILLISECOND);
        assert_eq!(upsert("second").unwrap().name.as_deref(), Some("second"));
        assert_eq!(stored(&world), (1, 1));
    });
}

/// A clock that was wrong for a while does not take a key until the time that it showed.
#[test]
fn an_answer_from_more_than_a_day_ahead_means_nothing() {
    on_both(|world| {
        let once = once(&world, "k");
        let upsert = |name: &str| -> tidings::Result<Topic> {
            once.topics().upsert(&parsed(json!({ "key": "news", "name": name })))
        };
        let right = world.now();
        world.clock.set("2099-01-01T00:00:00Z".parse().unwrap());
        upsert("first").unwrap();
        world.clock.set(right);

        assert_eq!(upsert("second").unwrap().name.as_deref(), Some("second"));
        assert_eq!(stored(&world), (1, 1));
        // A clock that goes back by less is one that was adjusted.
        world.pass(ALMOST_A_DAY);
        world.refuses("409 idempotency key `k` was used for another call", || upsert("third"));
        world.clock.set(right);
        world.refuses("409 idempotency key `k` was used for another call", || upsert("third"));
    });
}

#[test]
fn answers_that_mean_nothing_any_more_are_removed() {
    on_both(|world| {
        let call = |number: usize| {
            let create: TopicCreate = parsed(json!({ "key": format!("topic-{number}") }));
            once(&world, &format!("k{number}")).topics().create(&create).unwrap();
        };
        (0..20).for_each(call);
        // Those of somebody else are not ours to remove.
        let there = world.production().idempotent("k").unwrap();
        there.topics().create(&parsed(json!({ "key": "topic" }))).unwrap();
        assert_eq!(stored(&world), (21, 21));

        world.pass(ALMOST_A_DAY);
        call(20);
        assert_eq!(stored(&world), (22, 22));
        world.pass(A_MILLISECOND);
        // They get fewer with every call, however many have been left over.
        let mut left = 22;
        for number in 21..30 {
            call(number);
            let (now, indexed) = stored(&world);
            assert!(now < left || now == number - 18, "{now} after {left}");
            assert_eq!(now, indexed);
            left = now;
        }
        // Nine of now, one of a day ago that still counts, and the one that is not ours.
        assert_eq!(left, 11);
        // A refusal removes them as well.
        world.pass(A_DAY);
        let create: TopicCreate = parsed(json!({ "key": "topic-0" }));
        once(&world, "again").topics().create(&create).unwrap_err();
        assert!(stored(&world).0 < left);
    });
}

#[test]
fn a_key_that_is_used_again_leaves_nothing_of_its_first_answer() {
    on_both(|world| {
        let call = |number: usize| {
            let upsert: TopicCreate = parsed(json!({ "key": format!("topic-{number}") }));
            once(&world, &format!("k{number}")).topics().upsert(&upsert).unwrap();
            world.tick();
        };
        (0..10).for_each(call);
        world.pass(A_DAY);

        // Its turn to be removed has not come, for others are older.
        call(9);

        assert_eq!(stored(&world), (6, 6));
        (0..9).for_each(call);
        assert_eq!(stored(&world), (10, 10));
    });
}

#[test]
fn a_key_means_something_in_its_environment_alone() {
    on_both(|world| {
        let create: TopicCreate = parsed(json!({ "key": "news" }));
        let other: TopicCreate = parsed(json!({ "key": "other" }));
        once(&world, "k").topics().create(&create).unwrap();

        for (there, create) in [(world.production(), &create), (world.elsewhere(), &other)] {
            let there = there.idempotent("k").unwrap();
            let first = there.topics().create(create).unwrap();
            assert_eq!(there.topics().create(create).unwrap(), first);
        }
        // Whoever comes with the key of the environment is in it as well.
        let api_key = world.organization.environments().development().unwrap().api_keys;
        let header = format!("ApiKey {}", api_key[0].key.expose());
        let scope = world.engine.authenticate(&header).unwrap().idempotent("k").unwrap();
        world.unchanged(|| scope.topics().create(&create).unwrap());
    });
}

#[test]
fn reading_and_calls_without_a_key_are_not_affected() {
    on_both(|world| {
        let create: TopicCreate = parsed(json!({ "key": "news" }));
        let once = once(&world, "k");
        once.topics().create(&create).unwrap();

        world.unchanged(|| once.topics().get(key("news")).unwrap());
        world.unchanged(|| once.topics().get(key("other")).unwrap_err());
        world.unchanged(|| once.environments().list().unwrap());
        let refusal = "409 topic `news` is there already";
        world.refuses(refusal, || world.env.topics().create(&create));
        world.env.topics().delete(key("news")).unwrap();
        assert_eq!(stored(&world), (1, 1));
        assert_eq!(once.environment_id(), world.env.environment_id());
    });
}

#[test]
fn a_call_that_many_make_at_once_happens_once() {
    on_both(|world| {
        let upsert: TopicCreate = parsed(json!({ "key": "news" }));
        let call = || once(&world, "k").topics().create(&upsert);

        let answers: Vec<_> = thread::scope(|threads| {
            let all: Vec<_> = (0..8).map(|_| threads.spawn(call)).collect();
            all.into_iter().map(|one| one.join().unwrap().unwrap()).collect()
        });

        let topic = world.env.topics().get(key("news")).unwrap();
        assert_eq!(answers, vec![topic; 8]);
    });
}

/// An answer about messages has the id of their subscriber. Older files have answers without it.
#[test]
fn an_answer_that_does_not_name_its_subscriber_comes_back() {
    on_both(|world| {
        world.in_app_workflow("hi");
        world.notify("hi", "ada");
        let id = only(world.inbox("ada")).id;
        let once = once(&world, "k");
        let mark = || once.inbox("ada").unwrap().mark_as([id], MarkAs::Read);
        let marked = mark().unwrap();
        let stored = only(world.records::<StoredAnswer>());
        let CallOutcome::Done(named) = &stored.outcome else { panic!("{stored:?}") };
        assert_eq!(named, &json!(["ada", wire(&marked)]));
        let outcome = CallOutcome::Done(wire(&marked));
        let bare = StoredAnswer { outcome, ..stored.clone() };
        store::write(&world.opened(), |transaction| transaction.replace(&stored, &bare)).unwrap();

        assert_eq!(world.unchanged(|| mark().unwrap()), marked);
    });
}

#[test]
fn a_key_has_at_most_255_characters() {
    on_both(|world| {
        let longest = "ü".repeat(255);
        let create: TopicCreate = parsed(json!({ "key": "news" }));
        let once = once(&world, &longest);
        let first = once.topics().create(&create).unwrap();
        assert_eq!(world.unchanged(|| once.topics().create(&create).unwrap()), first);
        // One that begins the same is another one.
        let shorter = world.env.idempotent("ü".repeat(254)).unwrap();
        assert_eq!(shorter.topics().create(&create).unwrap_err().status(), 409);
    });
    let long = "ü".repeat(256);
    for (raw, text) in [
        ("", "`idempotency-key` must not be empty"),
        (&long, "`idempotency-key` must be at most 255 characters long"),
        ("a\0b", "`idempotency-key` must be text without control characters"),
    ] {
        assert_eq!(raw.parse::<IdempotencyKey>().unwrap_err().to_string(), text);
    }
}

// The environment of the world, for one call that has a name.
fn once(world: &World, key: &str) -> Scope {
    world.env.idempotent(key).unwrap()
}

// How many answers are stored, and in how many places of the index.
fn stored(world: &World) -> (usize, usize) {
    (world.rows(Table::StoredAnswers), world.rows(Table::ExpiringAnswers))
}
