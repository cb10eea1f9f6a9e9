//! Events that are refused, and events in bulk.

use serde_json::{Value, json};
use tidings::SeededEntropy;
use tidings::context::Context;
use tidings::ids::TransactionId;
use tidings::trigger::{Trigger, TriggerReceipt};

use crate::world::{
    NO_ID, World, id, in_app, names, on_both, only, parsed, unreadable, with, workflow_of,
};

#[test]
fn an_event_that_is_not_well_formed_is_refused() {
    on_both(|world| {
        let workflow = world.in_app_workflow("hi");
        world.production().workflows().create(&parsed(workflow_of("there", &[in_app()]))).unwrap();
        let check = |refusal: &str, fields: Value| {
            let event = json!({ "name": "hi", "to": "ada", "context": { "tenant": "acme" } });
            let event: Trigger = parsed(with(event, fields));
            world.refuses(refusal, || world.env.events().trigger(&event));
            let bulk = world.unchanged(|| world.env.events().trigger_bulk(&[event]).unwrap());
            let error = only(bulk).unwrap_err();
            assert_eq!(format!("{} {error}", error.status()), refusal);
        };

        check("404 workflow `there` is not there", json!({ "name": "there" }));
        // An event names a workflow by its identifier, and by nothing else.
        let named = workflow.slug();
        check(&format!("404 workflow `{named}` is not there"), json!({ "name": named }));
        let named = workflow.id.to_string();
        check(&format!("404 workflow `{named}` is not there"), json!({ "name": named }));

        check("422 `to` must not be empty", json!({ "to": [] }));
        let crowd: Vec<_> = (0..101).map(|n| format!("s{n}")).collect();
        check("422 `to` must have at most 100 items", json!({ "to": crowd }));
        let tokens = vec!["token"; 101];
        let channel = json!({
            "providerId": "fcm",
            "_integrationId": NO_ID,
            "credentials": { "deviceTokens": tokens },
        });
        check(
            "422 `to[1].channels[0].credentials.deviceTokens` must have at most 100 items",
            json!({ "to": ["bob", { "subscriberId": "ada", "channels": [channel] }] }),
        );

        check("422 `context` must not be empty", json!({ "context": {} }));
        let six: serde_json::Map<_, _> = (0..6).map(|n| (format!("t{n}"), json!("x"))).collect();
        check("422 `context` must have at most 5 items", json!({ "context": six }));
        let plain = "must be 1 to 100 letters, digits, `_` and `-`";
        check(
            "422 `context.a:b` must be under a type of 1 to 100 letters, digits, `_` and `-`",
            json!({ "context": { "a:b": "x" } }),
        );
        let bad = json!({ "context": { "tenant": "a.b" } });
        check(&format!("422 `context.tenant` {plain}"), bad);
        let bad = json!({ "context": { "tenant": { "id": "" } } });
        check(&format!("422 `context.tenant.id` {plain}"), bad);
        let data = json!({ "text": "x".repeat(Context::MAX_DATA) });
        check(
            "422 `context.tenant.data` must be at most 65536 bytes long",
            json!({ "context": { "app": "shop", "tenant": { "id": "acme", "data": data } } }),
        );
    });
}

#[test]
fn an_event_that_cannot_be_read_is_refused() {
    let check = |fields: Value, error: &str| {
        let event = with(json!({ "name": "hi", "to": "ada" }), fields);
        assert_eq!(unreadable::<Trigger>(event), error);
    };

    check(json!({ "name": "" }), "`workflowId` must not be empty");
    let joined = "`workflowId` must be letters and digits, joined by single `-`, `_` or `.`";
    check(json!({ "name": "a b" }), joined);
    let long = json!("x".repeat(256));
    check(json!({ "transactionId": long }), "`transactionId` must be at most 255 bytes long");
    let deep = (0..65).fold(json!(0), |inner, _| json!({ "in": inner }));
    check(json!({ "payload": deep }), "`object` must be nested at most 64 levels deep");
    assert_eq!(unreadable::<Trigger>(json!({ "name": "hi" })), "missing field `to`");
    assert_eq!(unreadable::<Trigger>(json!({ "to": "ada" })), "missing field `name`");
}

#[test]
fn a_bulk_is_answered_event_by_event() {
    on_both(|world| {
        world.in_app_workflow("hi");

        let answers = bulk(
            &world,
            &[
                json!({ "name": "hi", "to": "ada", "transactionId": "t1" }),
                json!({ "name": "unknown", "to": { "subscriberId": "eve", "firstName": "Eve" } }),
                json!({ "name": "hi", "to": [] }),
                json!({ "name": "hi", "to": ["ada", "bob"], "transactionId": "t2" }),
                json!({ "name": "hi", "to": "cyd", "transactionId": "t1" }),
            ],
        );

        let created = |answer: &tidings::Result<TriggerReceipt>| match answer {
            Ok(receipt) => format!("{} {}", receipt.transaction_id, receipt.notifications.len()),
            Err(error) => format!("{} {error}", error.status()),
        };
        assert_eq!(
            names(&answers, created),
            [
                "t1 1",
                "404 workflow `unknown` is not there",
                "422 `to` must not be empty",
                "t2 2",
                "t1 1",
            ]
        );
        // A transaction happens once within a bulk as well.
        assert_eq!(answers[4].as_ref().unwrap(), answers[0].as_ref().unwrap());
        assert_eq!((world.inbox("ada").len(), world.inbox("bob").len()), (2, 1));
        for nobody in ["eve", "cyd"] {
            let refusal = format!("404 subscriber `{nobody}` is not there");
            world.refuses(&refusal, || world.env.subscribers().get(id(nobody)));
        }
    });
}

#[test]
fn a_repeated_event_of_a_bulk_changes_nothing_for_those_behind_it() {
    on_both(|world| {
        let body = json!({ "body": "Hello {{ subscriber.firstName }}" });
        world.workflow_of("hi", &[json!({ "type": "in_app", "template": body })]);
        let event = |id: &str, to: Value| json!({ "name": "hi", "to": to, "transactionId": id });
        let named = |name: &str| json!({ "subscriberId": "ada", "firstName": name });
        let receipt = world.trigger(event("t1", named("Ada")));

        let answers = bulk(&world, &[event("t1", named("Eve")), event("t2", json!("ada"))]);

        assert_eq!(answers[0].as_ref().unwrap(), &receipt);
        let texts = names(&world.inbox("ada"), |message| message.text().unwrap().to_owned());
        assert_eq!(texts, ["Hello Ada", "Hello Ada"]);
    });
}

/// Two engines with the same seed make the same ids at the same time.
#[test]
fn an_event_with_a_subscriber_whose_id_another_one_has_leaves_nothing_behind() {
    on_both(|world| {
        world.in_app_workflow("hi");
        world.bare_subscriber("ada");
        let scope = || {
            let engine = world.engine_with(|builder| builder.entropy(SeededEntropy::new(99)));
            engine.environment(world.env.environment_id()).unwrap()
        };
        let event = |new: &str| parsed(json!({ "name": "hi", "to": ["ada", new] }));
        let (one, other) = (scope(), scope());
        one.events().trigger_bulk(&[event("bob")]).unwrap()[0].as_ref().unwrap();

        let bob = world.env.subscribers().get("bob").unwrap();
        let refusal = format!("409 subscriber `{}` is there already", bob.id);
        world.refuses(&refusal, || other.events().trigger_bulk(&[event("cyd")]));

        assert_eq!(world.inbox("ada").len(), 1);
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

#[test]
fn a_bulk_has_an_event_and_takes_a_hundred() {
    on_both(|world| {
        world.in_app_workflow("hi");
        world.refuses("422 `events` must not be empty", || world.env.events().trigger_bulk(&[]));

        let answers = bulk(&world, &vec![json!({ "name": "hi", "to": "ada" }); 100]);

        let transactions: std::collections::BTreeSet<TransactionId> =
            answers.into_iter().map(|answer| answer.unwrap().transaction_id).collect();
        assert_eq!(transactions.len(), 100);
        assert_eq!(world.env.inbox(id("ada")).unwrap().counts().unwrap().unseen, 100);
    });
}

fn bulk(world: &World, events: &[Value]) -> Vec<tidings::Result<TriggerReceipt>> {
    let events: Vec<Trigger> = events.iter().cloned().map(parsed).collect();
    world.env.events().trigger_bulk(&events).unwrap().into_iter().collect()
}

#[test]
fn refused_events_are_named_by_their_index() {
    on_both(|world| {
        world.in_app_workflow("hi");
        let events = ["hi", "gone", "hi", "lost"].map(|name| json!({ "name": name, "to": "ada" }));
        let events = events.map(parsed::<Trigger>);

        let receipts = world.env.events().trigger_bulk(&events).unwrap();

        let refused = receipts.refused().map(|(index, error)| format!("{index}: {error}"));
        let expected = ["1: workflow `gone` is not there", "3: workflow `lost` is not there"];
        assert_eq!(refused.collect::<Vec<_>>(), expected);
        assert_eq!(receipts.iter().filter(|receipt| receipt.is_ok()).count(), 2);
        let first = receipts.all().unwrap_err();
        assert_eq!(first.to_string(), "workflow `gone` is not there");

        let receipts = world.env.events().trigger_bulk(&[events[0].clone()]).unwrap();
        assert_eq!(receipts.all().unwrap().len(), 1);
    });
}

/// An event that repeats the id of an earlier one of its bulk changes nothing, whatever else it says. It has
/// the receipt of the first one.
#[test]
fn an_event_that_is_repeated_in_its_bulk_changes_nothing() {
    on_both(|world| {
        let body = "{{ subscriber.firstName }} {{ context.tenant.data.name }}";
        world.workflow_of("hi", &[json!({ "type": "in_app", "template": { "body": body } })]);
        world.subscriber(json!({ "subscriberId": "ada", "firstName": "Ada" }));
        let acme = json!({ "type": "tenant", "id": "acme", "data": { "name": "Acme" } });
        world.env.contexts().create(&parsed(acme)).unwrap();
        let wrong = json!({ "subscriberId": "ada", "firstName": "Wrong" });
        let ajax = json!({ "tenant": { "id": "acme", "data": { "name": "Wrong" } } });
        let events: Vec<Trigger> = [
            json!({ "name": "hi", "to": "bob", "transactionId": "t1" }),
            json!({ "name": "hi", "to": wrong, "transactionId": "t1", "context": ajax }),
            json!({ "name": "hi", "to": "ada", "transactionId": "t1" }),
            json!({ "name": "hi", "to": [], "transactionId": "t1" }),
            json!({ "name": "hi", "to": "ada", "context": { "tenant": "acme" } }),
        ]
        .map(parsed)
        .into();

        let receipts = world.env.events().trigger_bulk(&events).unwrap();

        let receipts: Vec<TriggerReceipt> = receipts.into_iter().map(Result::unwrap).collect();
        assert!(receipts[1..4].iter().all(|repeated| *repeated == receipts[0]), "{receipts:?}");
        assert_eq!(only(world.inbox("ada")).text(), Some("Ada Acme"));
    });
}
