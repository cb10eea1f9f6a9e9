//! Many subscribers in one call.

use serde_json::{Value, json};
use testkit::interposed::Point;
use tidings::subscriber::{SubscriberCreate, SubscriberQuery, Upserted};

use crate::world::{World, on_both, parsed, wire};

fn creates(json: Value) -> Vec<SubscriberCreate> {
    parsed(json)
}

// All but the ids that the engine gives.
fn shown(world: &World) -> Vec<Value> {
    let page = world.env.subscribers().list(&SubscriberQuery::default().limit(100)).unwrap();
    let mut all: Vec<_> = page.data.iter().map(wire).collect();
    for subscriber in &mut all {
        let fields = subscriber.as_object_mut().unwrap();
        fields.retain(|name, _| !["_id", "_environmentId"].contains(&&**name));
    }
    all.sort_by_key(ToString::to_string);
    all
}

#[test]
fn a_bulk_is_as_one_call_for_each() {
    let all = || {
        creates(json!([
            { "subscriberId": "new", "firstName": "New", "data": { "a": 1 } },
            { "subscriberId": "ada", "email": "new@example.org" },
            { "subscriberId": "bob" },
            { "subscriberId": "new", "firstName": "Newer", "phone": "1" },
            { "subscriberId": "new", "phone": "1" },
        ]))
    };
    let before = |world: &World| {
        world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
        world.bare_subscriber("bob");
        world.tick();
    };
    on_both(|world| {
        before(&world);
        for create in all() {
            world.env.subscribers().upsert(&create).unwrap();
        }
        let expected = shown(&world);
        on_both(|other| {
            before(&other);
            let upserted = other.env.subscribers().upsert_bulk(&all()).unwrap();
            let [created, updated, unchanged] =
                [Upserted::Created, Upserted::Updated, Upserted::Unchanged];
            assert_eq!(upserted, [created, updated, unchanged, updated, unchanged]);
            assert_eq!(shown(&other), expected);
            assert_eq!(wire(&upserted[..2]), json!(["created", "updated"]));
            let found = SubscriberQuery::default().phone("1");
            assert_eq!(other.env.subscribers().list(&found).unwrap().data.len(), 1);
        });
    });
}

#[test]
fn a_bulk_that_is_refused_leaves_nothing() {
    on_both(|world| {
        world.bare_subscriber("ada");
        let device = |from: usize, to: usize| {
            let tokens: Vec<_> = (from..to).map(|number| number.to_string()).collect();
            json!([{
                "providerId": "fcm", "_integrationId": uuid::Uuid::nil(),
                "credentials": { "deviceTokens": tokens },
            }])
        };
        let at_the_limit = json!({ "subscriberId": "ada", "channels": device(0, 100) });
        world.env.subscribers().upsert(&parsed(at_the_limit)).unwrap();
        for (last, refusal) in [
            (
                json!({ "subscriberId": "b", "firstName": "x".repeat(100_000) }),
                "422 `subscribers[1].firstName` must be at most 255 characters long, not 100000",
            ),
            (
                json!({ "subscriberId": "b", "phone": "\u{0}" }),
                "422 `subscribers[1].phone` must be text without control characters",
            ),
            (
                json!({ "subscriberId": "ada", "channels": device(100, 101) }),
                "422 `subscribers[1].channels[0].credentials.deviceTokens` must have at most 100 \
                 items",
            ),
        ] {
            let all = creates(json!([{ "subscriberId": "new" }, last]));
            world.refuses(refusal, || world.env.subscribers().upsert_bulk(&all));
        }
        world.refuses("422 `subscribers` must not be empty", || {
            world.env.subscribers().upsert_bulk(&[])
        });
    });
}

/// A deletion of many dependents takes several transactions.
#[test]
fn a_bulk_creates_nobody_whose_deletion_has_begun() {
    on_both(|world| {
        world.bare_subscriber("ada");
        world.in_app_workflow("hi");
        let event = || parsed(json!({ "name": "hi", "to": "ada" }));
        for _ in 0..6 {
            let events: Vec<_> = (0..100).map(|_| event()).collect();
            let receipts = world.env.events().trigger_bulk(&events).unwrap();
            assert!(receipts.iter().all(Result::is_ok));
        }
        let env = world.env.clone();
        world.store.pause(Point::Write, 1, move || {
            let bulk = creates(json!([{ "subscriberId": "bob" }, { "subscriberId": "ada" }]));
            let refused = env.subscribers().upsert_bulk(&bulk).unwrap_err();
            assert_eq!(refused.to_string(), "subscriber `ada` is being deleted: if the deletion was interrupted, delete it again");
            assert!(env.subscribers().get("bob").is_err());
        });

        world.env.subscribers().delete("ada").unwrap();

        let bulk = creates(json!([{ "subscriberId": "ada" }]));
        assert_eq!(world.env.subscribers().upsert_bulk(&bulk).unwrap(), [Upserted::Created]);
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}
