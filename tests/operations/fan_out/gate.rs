//! Whether a subscription lets an event through.

use serde_json::{Value, json};
use tidings::trigger::TriggerReceipt;

use super::{created, people, recipients, topic};
use crate::subscriptions::subscribe_all;
use crate::world::{World, in_app, names, on_both, only, wire, with, workflow_of};

/// One row per word about the workflow: whether the subscriber is a recipient.
#[test]
fn a_condition_has_the_last_word() {
    let tier = |tier: &str| json!({ "===": [{ "var": "payload.tier" }, tier] });
    let rows = [
        (json!([]), true),
        (json!(["hi"]), true),
        (json!([{ "workflowId": "hi", "enabled": false }]), false),
        (json!([{ "workflowId": "other", "enabled": false }]), true),
        // P11
        (json!([{ "workflowId": "hi", "condition": tier("premium") }]), false),
        (json!([{ "workflowId": "hi", "condition": tier("free") }]), true),
        // P12
        (json!([{ "workflowId": "hi", "condition": { "+": [1] } }]), false),
        (json!([{ "workflowId": "hi", "condition": { "var": "payload.tier" } }]), false),
        // P16
        (json!([{ "workflowId": "hi", "enabled": false, "condition": tier("free") }]), true),
        (json!([{ "workflowId": "hi", "enabled": true, "condition": tier("premium") }]), false),
        (json!([{ "workflowId": "other", "condition": tier("premium") }]), true),
        // The last word about a workflow counts.
        (json!(["hi", { "workflowId": "hi", "enabled": false }]), false),
        (json!([{ "workflowId": "hi", "enabled": false }, "hi"]), true),
    ];
    on_both(|world| {
        people(&world, &["ada"]);
        world.in_app_workflow("other");
        for (at, (words, expected)) in rows.iter().enumerate() {
            let key = format!("topic-{at}");
            let request = json!({ "subscriptions": ["ada"], "preferences": words });
            subscribe_all(&world, &key, request);

            let receipt = world.trigger(json!({
                "name": "hi", "to": topic(&key), "payload": { "tier": "free" },
            }));

            let (reached, counts) = (recipients(&world, &receipt), receipt.topics);
            let expected = if *expected { ("ada", 1, 0) } else { ("", 0, 1) };
            assert_eq!((reached.as_str(), counts.created, counts.filtered), expected, "{words}");
        }
    });
}

#[test]
fn who_is_filtered_has_no_notification_and_is_counted() {
    on_both(|world| {
        people(&world, &["ada", "bob", "cyd", "dan"]);
        let no = |who: Value| {
            let words = json!([{ "workflowId": "hi", "enabled": false }]);
            json!({ "subscriptions": who, "preferences": words })
        };
        subscribe_all(&world, "news", no(json!(["bob", "ada", "cyd"])));
        subscribe_all(&world, "other", no(json!(["bob", "dan"])));
        subscribe_all(&world, "other", json!({ "subscriptions": ["cyd"] }));
        let event = json!({
            "name": "hi", "to": [topic("news"), topic("other")], "transactionId": "t",
        });

        let receipt = world.trigger(event.clone());

        // Each once, and not a recipient of another topic.
        assert_eq!(recipients(&world, &receipt), "cyd");
        assert_eq!(wire(&receipt)["topics"], json!({ "created": 1, "filtered": 3 }));
        assert_eq!(world.inbox("ada"), []);
        assert_eq!(world.notifications(json!({})).len(), 1);
        assert_eq!(world.unchanged(|| world.trigger(event)), receipt);
    });
}

#[test]
fn of_several_subscriptions_those_that_let_it_through_are_recorded() {
    on_both(|world| {
        people(&world, &["ada"]);
        let named = |identifier: &str, condition: Value| {
            let words = json!([{ "workflowId": "hi", "condition": condition }]);
            let item = json!({ "subscriberId": "ada", "identifier": identifier });
            subscribe_all(&world, "news", json!({ "subscriptions": [item], "preferences": words }));
            subscribe_all(
                &world,
                "other",
                json!({ "subscriptions": ["ada"], "preferences": words }),
            );
        };
        named("no", json!({ "==": [1, 2] }));
        named("yes", json!({ "==": [1, 1] }));
        named("maybe", json!({ "var": "payload.on" }));
        let through = |payload: Value| {
            let to = json!([topic("news"), topic("other")]);
            let receipt = world.trigger(json!({ "name": "hi", "to": to, "payload": payload }));
            assert_eq!((receipt.topics.created, receipt.topics.filtered), (1, 0));
            let topics = only(created(&world, &receipt)).topics;
            // P13: the other topic, which lets nothing through, is not among them.
            assert_eq!(names(&topics, |topic| topic.topic_key.clone()), ["news"]);
            names(&topics[0].subscription_ids, Clone::clone)
        };

        assert_eq!(through(json!({})), ["yes"]);
        assert_eq!(through(json!({ "on": true })), ["yes", "maybe"]);
        assert_eq!(through(json!({ "on": 1 })), ["yes"]);
    });
}

#[test]
fn a_critical_workflow_does_not_pass_a_subscription_that_says_no() {
    on_both(|world| {
        people(&world, &["ada"]);
        world.workflow(with(workflow_of("alarm", &[in_app()]), json!({ "critical": true })));
        let words = json!([{ "workflowId": "alarm", "enabled": false }]);
        subscribe_all(&world, "news", json!({ "subscriptions": ["ada"], "preferences": words }));

        // P15
        let receipt = world.trigger(json!({ "name": "alarm", "to": topic("news") }));

        assert_eq!(recipients(&world, &receipt), "");
        assert_eq!(receipt.topics.filtered, 1);
    });
}

/// One row per event: the subscriptions that let it through, out of one for each of these sets.
#[test]
fn a_subscription_is_for_exactly_its_contexts() {
    let acme = json!({ "tenant": "acme" });
    let both = json!({ "tenant": "acme", "app": "shop" });
    let rows = [
        (Value::Null, "none"),
        (acme.clone(), "acme"),
        (both.clone(), "both"),
        (json!({ "tenant": { "id": "acme", "data": { "a": 1 } } }), "acme"),
        (json!({ "app": "shop" }), ""),
        (json!({ "tenant": "globex" }), ""),
        (json!({ "tenant": "acme", "app": "shop", "region": "eu" }), ""),
    ];
    on_both(|world| {
        people(&world, &["ada"]);
        for (identifier, context) in [("none", &Value::Null), ("acme", &acme), ("both", &both)] {
            let item = json!({ "subscriberId": "ada", "identifier": identifier });
            subscribe_all(&world, "news", json!({ "subscriptions": [item], "context": context }));
        }
        for (context, expected) in &rows {
            let event = json!({ "name": "hi", "to": topic("news"), "context": context });
            let receipt = world.trigger(event);
            assert_eq!(through(&world, &receipt), *expected, "{context}");
            assert_eq!(receipt.topics.filtered == 0, !expected.is_empty(), "{context}");
        }
    });
}

/// One row per rule: whether it holds for what is known.
#[test]
fn a_condition_knows_the_subscriber_the_payload_the_contexts_and_the_workflow() {
    let is = |path: &str, value: Value| json!({ "===": [{ "var": path }, value] });
    let rows = [
        (is("subscriber.subscriberId", json!("ada")), true),
        (is("subscriber.firstName", json!("Ada")), true),
        (is("subscriber.data.plan", json!("pro")), true),
        (is("subscriber.data.plan", json!("free")), false),
        (is("payload.order.total", json!(42)), true),
        (is("payload.order.total", json!("42")), false),
        (is("context.tenant.id", json!("acme")), true),
        // What the trigger says about the context, not what was known before.
        (is("context.tenant.data.plan", json!("new")), true),
        (is("workflow.identifier", json!("hi")), true),
        // Names that are computed are not checked.
        (json!({ "===": [{ "var": { "cat": ["subscriber.", "channels"] } }, []] }), false),
        (json!({ "===": [{ "var": { "cat": ["un", "known"] } }, null] }), true),
    ];
    on_both(|world| {
        world.in_app_workflow("hi");
        world.subscriber(json!({
            "subscriberId": "ada", "firstName": "Ada", "data": { "plan": "pro" },
        }));
        let context = |plan: &str| json!({ "tenant": { "id": "acme", "data": { "plan": plan } } });
        for (at, (rule, expected)) in rows.iter().enumerate() {
            let key = format!("topic-{at}");
            let words = json!([{ "workflowId": "hi", "condition": rule }]);
            let request = json!({
                "subscriptions": ["ada"], "preferences": words, "context": context("old"),
            });
            subscribe_all(&world, &key, request);
            let receipt = world.trigger(json!({
                "name": "hi",
                "to": topic(&key),
                "payload": { "order": { "total": 42 } },
                "context": context("new"),
            }));
            assert_eq!(receipt.topics.created == 1, *expected, "{rule}");
        }
    });
}

fn through(world: &World, receipt: &TriggerReceipt) -> String {
    let topics = created(world, receipt).into_iter().flat_map(|notification| notification.topics);
    let ids = topics.flat_map(|topic| topic.subscription_ids);
    ids.map(String::from).collect::<Vec<_>>().join("+")
}
