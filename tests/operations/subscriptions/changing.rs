//! Changing subscriptions, and taking subscribers out of topics.

use serde_json::{Value, json};
use tidings::ids::SubscriptionIdentifier;
use tidings::subscription::SubscriptionUpdate;

use super::{get, named, said, subscribe, subscribe_all, subscriptions, unsubscribe};
use crate::topics::key;
use crate::world::{changed, names, on_both, only, parsed, wire};

#[test]
fn a_subscription_is_changed_in_what_is_said() {
    on_both(|world| {
        world.bare_subscriber("ada");
        for workflow in ["hi", "bye"] {
            world.in_app_workflow(workflow);
        }
        let request = json!({
            "subscriptions": [{ "subscriberId": "ada", "name": "first" }],
            "preferences": [{ "workflowId": "hi", "enabled": false }],
        });
        let before = only(subscribe(&world, "news", request).data);
        let update = |fields: Value| {
            let update: SubscriptionUpdate = parsed(fields);
            let topics = world.env.topics();
            topics.update_subscription(key("news"), &before.identifier, &update).unwrap()
        };

        let at = world.tick();
        let same = json!({
            "name": "first", "preferences": [{ "workflowId": "hi", "enabled": false }],
        });
        for same in [json!({}), same] {
            assert_eq!(world.unchanged(|| update(same)), before);
        }
        let renamed = update(json!({ "name": "second" }));
        let name = Some("second".into());
        assert_eq!(
            renamed,
            changed(before.clone(), |it| {
                it.name = name;
                it.updated_at = at;
            })
        );
        // What it says about workflows is replaced as a whole.
        let changed = update(json!({ "name": null, "preferences": ["bye"] }));
        assert_eq!((&changed.name, changed.created_at), (&None, before.created_at));
        assert_eq!(said(&changed), [("bye".into(), true)]);
        assert_eq!(get(&world, "news", before.identifier.as_str()), Some(changed));
        assert_eq!(update(json!({ "preferences": [] })).preferences, []);
        // By its id as well.
        let id: SubscriptionIdentifier = before.id.to_string().parse().unwrap();
        let update = parsed(json!({ "name": "third" }));
        let third = world.env.topics().update_subscription(key("news"), &id, &update).unwrap();
        assert_eq!((third.id, third.name.as_deref()), (before.id, Some("third")));
    });
}

#[test]
fn subscribers_and_single_subscriptions_are_taken_out() {
    on_both(|world| {
        for who in ["ada", "bob", "cyd"] {
            world.bare_subscriber(who);
        }
        let bobs = json!({ "subscriptions": ["bob"], "context": { "tenant": "acme" } });
        subscribe_all(&world, "news", bobs);
        let all = json!({ "subscriptions": ["ada", named("ada", "a2"), "bob", "cyd"] });
        subscribe_all(&world, "news", all.clone());
        subscribe_all(&world, "other", all);
        let id = get(&world, "news", "tk_news:si_cyd").unwrap().id;

        let answer = unsubscribe(
            &world,
            "news",
            json!({ "subscriptions": [
                "eve",
                { "identifier": "a2" },
                "bob",
                { "identifier": "a2" },
                { "subscriberId": "bob" },
                { "identifier": id },
            ] }),
        );

        let answer = answer.unwrap();
        // All that a subscriber has, in the order of creation.
        assert_eq!(
            names(&answer.data, |one| one.identifier.clone()),
            ["a2", "tk_news:si_bob:ctx_tenant:acme", "tk_news:si_bob", "tk_news:si_cyd"]
        );
        let error = |error: &_| {
            let error = wire(error);
            format!("{} {}", error["subscriberId"], error["code"]).replace('"', "")
        };
        assert_eq!(
            names(&answer.errors, error),
            ["eve SUBSCRIBER_NOT_FOUND", "a2 SUBSCRIPTION_NOT_FOUND", "bob SUBSCRIPTION_NOT_FOUND",]
        );
        assert_eq!(wire(answer.meta), json!({ "totalCount": 7, "successful": 4, "failed": 3 }));
        let left = subscriptions(&world, "news", json!({}));
        assert_eq!(names(&left, |one| one.identifier.clone()), ["tk_news:si_ada"]);
        assert_eq!(subscriptions(&world, "other", json!({})).len(), 4);
        // A topic that nobody is in any more is still there.
        assert_eq!(
            unsubscribe(&world, "news", json!({ "subscriptions": ["ada"] })).unwrap().errors,
            []
        );
        assert_eq!(subscriptions(&world, "news", json!({})), []);
    });
}

#[test]
fn a_deleted_subscriber_is_in_no_topic() {
    on_both(|world| {
        for who in ["ada", "adam"] {
            world.bare_subscriber(who);
        }
        for topic in ["news", "other"] {
            subscribe_all(&world, topic, json!({ "subscriptions": ["ada", "adam"] }));
        }

        world.env.subscribers().delete("ada").unwrap();
        world.bare_subscriber("ada");

        for topic in ["news", "other"] {
            let left = subscriptions(&world, topic, json!({}));
            assert_eq!(names(&left, |one| one.subscriber_id.clone()), ["adam"]);
            assert_eq!(subscriptions(&world, topic, json!({ "subscriberId": "ada" })), []);
        }
        assert_eq!(get(&world, "news", "tk_news:si_ada"), None);
        // Who comes back is let in again.
        subscribe_all(&world, "news", json!({ "subscriptions": ["ada"] }));
    });
}
