//! What subscriptions say about workflows.

use serde_json::{Value, json};
use tidings::subscription::{Subscription, SubscriptionUpdate};

use super::{get, said, subscribe, subscribe_all};
use crate::topics::key;
use crate::world::{World, in_app, on_both, only, wire, with, workflow_of};

#[test]
fn a_subscription_shows_the_workflows_that_it_says_something_about() {
    on_both(|world| {
        world.bare_subscriber("ada");
        let known = json!({ "tags": ["t"], "severity": "high", "critical": true });
        let hi = world.workflow(with(workflow_of("hi", &[in_app()]), known));
        let rule = json!({ "==": [{ "var": "payload.a" }, 1] });

        // 9.1
        let made = in_with(
            &world,
            json!([
                { "workflowId": "hi", "enabled": false, "condition": rule },
            ]),
        );

        assert_eq!(
            wire(&made.preferences),
            json!([{
                "subscriptionId": "tk_news:si_ada",
                "_workflowId": hi.id,
                "workflow": {
                    "id": hi.id,
                    "identifier": "hi",
                    "name": "hi",
                    "critical": true,
                    "tags": ["t"],
                    "severity": "high",
                },
                "enabled": false,
                "condition": rule,
            }])
        );
        assert_eq!(get(&world, "news", "tk_news:si_ada").unwrap(), made);
        // A workflow is shown as it is, not as it was.
        let renamed = serde_json::from_value(json!({ "name": "Renamed" })).unwrap();
        world.env.workflows().update("hi", &renamed).unwrap();
        let shown = get(&world, "news", "tk_news:si_ada").unwrap();
        assert_eq!(only(shown.preferences).workflow.unwrap().name, "Renamed");
    });
}

/// One row per list of words: what the subscription says then.
#[test]
fn workflows_are_named_or_chosen_by_what_they_are_filed_under() {
    on_both(|world| {
        world.bare_subscriber("ada");
        let tagged = |name: &str, tags: Value| {
            world.workflow(with(workflow_of(name, &[in_app()]), json!({ "tags": tags })))
        };
        let one = tagged("one", json!(["red"]));
        let two = tagged("two", json!(["red", "blue"]));
        tagged("three", json!(["blue"]));
        tagged("four", json!([]));
        let elsewhere = with(workflow_of("there", &[in_app()]), json!({ "tags": ["red"] }));
        let elsewhere = serde_json::from_value(elsewhere).unwrap();
        world.production().workflows().create(&elsewhere).unwrap();

        for (words, expected) in [
            (json!([]), ""),
            (json!(["one"]), "one+"),
            (json!([one.id, two.slug()]), "one+ two+"),
            (
                json!([{ "workflowId": "one" }, { "workflowId": "two", "enabled": false }]),
                "one+ two-",
            ),
            (json!([{ "filter": { "tags": ["red"] }, "enabled": false }]), "one- two-"),
            (json!([{ "filter": { "tags": ["red", "blue"] } }]), "one+ two+ three+"),
            (json!([{ "filter": { "tags": ["green", "Red"] } }]), ""),
            (
                json!([{ "filter": { "workflowIds": ["four", one.id] }, "enabled": false }]),
                "four- one-",
            ),
            (
                json!([{ "filter": { "workflowIds": ["four"], "tags": ["blue"] } }]),
                "four+ two+ three+",
            ),
            // Of two words about one workflow the last one holds, in the place of the first.
            (
                json!([
                    { "filter": { "tags": ["red"] }, "enabled": false },
                    { "filter": { "workflowIds": [two.id] } },
                    { "workflowId": "three", "enabled": false },
                ]),
                "one- two+ three-",
            ),
        ] {
            let update: SubscriptionUpdate =
                serde_json::from_value(json!({ "preferences": words })).unwrap();
            subscribe_all(&world, "news", json!({ "subscriptions": ["ada"] }));
            let updated = world
                .env
                .topics()
                .update_subscription(key("news"), "tk_news:si_ada", &update)
                .unwrap();
            assert_eq!(shown(&updated), expected, "{words}");
            world.env.topics().delete(key("news")).unwrap();
            assert_eq!(shown(&in_with(&world, words.clone())), expected, "{words}");
        }
    });
}

#[test]
fn a_workflow_that_is_named_again_is_looked_up_once() {
    on_both(|world| {
        world.bare_subscriber("ada");
        world.in_app_workflow("hi");
        let request = |count: usize| {
            let named = json!({ "filter": { "workflowIds": vec!["hi"; count] } });
            json!({ "subscriptions": ["ada"], "preferences": vec![named; count] })
        };
        let first = subscribe(&world, "news", request(1));
        let calls = |count| {
            let (calls, again) = world.store.calls_of(|| subscribe(&world, "news", request(count)));
            assert_eq!(again, first);
            calls.len()
        };
        assert_eq!(calls(100), calls(1));
    });
}

#[test]
fn workflows_that_are_not_there_are_all_listed() {
    on_both(|world| {
        world.bare_subscriber("ada");
        let hi = world.in_app_workflow("hi");
        let there = serde_json::from_value(workflow_of("there", &[in_app()])).unwrap();
        let there = world.production().workflows().create(&there).unwrap();
        let words = json!([
            "unknown",
            { "workflowId": hi.id },
            { "workflowId": there.id, "enabled": false },
            { "filter": { "workflowIds": ["hi", "gone"], "tags": ["none"] } },
        ]);
        let refusal = format!("404 workflows `unknown`, `{}`, `gone` are not there", there.id);

        let request = json!({
            "subscriptions": ["ada"], "preferences": words, "context": { "tenant": "acme" },
        });
        let request = serde_json::from_value(request).unwrap();
        world.refuses(&refusal, || world.env.topics().subscribe(key("news"), &request));

        let made = in_with(&world, json!(["hi"]));
        let update = serde_json::from_value(json!({ "preferences": words })).unwrap();
        world.refuses(&refusal, || {
            world.env.topics().update_subscription(key("news"), &made.identifier, &update)
        });
    });
}

#[test]
fn what_was_said_about_a_deleted_workflow_stays_without_it() {
    on_both(|world| {
        world.bare_subscriber("ada");
        for workflow in ["hi", "bye"] {
            world.in_app_workflow(workflow);
        }
        let words = json!([{ "workflowId": "hi", "enabled": false }, "bye"]);
        let made = in_with(&world, words);

        world.env.workflows().delete("hi").unwrap();

        let mut expected = made.clone();
        expected.preferences[0].workflow = None;
        for read in [
            get(&world, "news", "tk_news:si_ada").unwrap(),
            only(super::subscriptions(&world, "news", json!({}))),
            only(subscribe(&world, "news", json!({ "subscriptions": ["ada"] })).data),
        ] {
            assert_eq!(read, expected);
        }
        // Another one of that name is another one.
        let again = world.in_app_workflow("hi");
        let read = get(&world, "news", "tk_news:si_ada").unwrap();
        assert_eq!(said(&read), [("bye".into(), true)]);
        assert_ne!(read.preferences[0].workflow_id, again.id);
    });
}

// Puts `ada` into the topic `news`, with these words about workflows.
fn in_with(world: &World, words: Value) -> Subscription {
    world.env.topics().delete(key("news")).ok();
    let fields = [("subscriptions", json!(["ada"])), ("preferences", words)];
    let request = Value::from_iter(fields);
    only(subscribe(world, "news", request).data)
}

fn shown(subscription: &Subscription) -> String {
    let sign = |enabled: bool| if enabled { "+" } else { "-" };
    let words = said(subscription).into_iter().map(|(name, enabled)| name + sign(enabled));
    words.collect::<Vec<_>>().join(" ")
}
