//! Triggering workflows, one event at a time and in bulk.

mod bulk;
mod cancel;
mod meanwhile;
mod overrides;

use serde_json::{Value, json};
use tidings::Error;
use tidings::context::Context;
use tidings::trigger::{Broadcast, Trigger, TriggerStatus};

use crate::world::{
    NO_ID, START, changed, email, id, in_app, names, on_both, only, parsed, wire, with, workflow_of,
};

#[test]
fn a_trigger_is_acknowledged_with_its_notifications() {
    on_both(|world| {
        world.in_app_workflow("hi");

        let receipt = world.trigger(json!({
            "name": "hi", "to": ["ada", "bob"], "transactionId": "t1",
        }));

        let [ada, bob] = ["ada", "bob"].map(|who| only(world.inbox(who)).notification_id);
        assert_eq!(
            wire(receipt),
            json!({
                "acknowledged": true,
                "status": "processed",
                "transactionId": "t1",
                "notifications": [
                    { "subscriberId": "ada", "_notificationId": ada },
                    { "subscriberId": "bob", "_notificationId": bob },
                ],
            })
        );
    });
}

#[test]
fn a_trigger_without_a_name_is_given_one() {
    on_both(|world| {
        world.in_app_workflow("hi");

        let [first, second] = [(); 2].map(|()| world.trigger(json!({ "name": "hi", "to": "ada" })));

        assert!(first.transaction_id.as_str().starts_with("txn_"), "{first:?}");
        assert_ne!(first.transaction_id, second.transaction_id);
        assert_eq!(world.inbox("ada").len(), 2);
    });
}

#[test]
fn a_recipient_is_created_if_need_be_and_told_what_is_said() {
    on_both(|world| {
        world.in_app_workflow("hi");
        let before = world.subscriber(json!({
            "subscriberId": "ada", "firstName": "Ada", "lastName": "King", "data": { "a": 1 },
        }));
        world.tick();

        world.trigger(json!({
            "name": "hi",
            "to": [
                "bob",
                { "subscriberId": "ada", "lastName": "Lovelace", "data": { "b": 2 } },
                { "subscriberId": "cyd", "email": "cyd@example.org", "locale": "en-us" },
            ],
        }));

        let get = |who| world.env.subscribers().get(id(who)).unwrap();
        let (ada, bob, cyd) = (get("ada"), get("bob"), get("cyd"));
        assert_eq!(
            wire(&ada.profile),
            json!({ "firstName": "Ada", "lastName": "Lovelace", "data": { "b": 2 } })
        );
        assert_eq!((ada.id, ada.created_at), (before.id, before.created_at));
        assert_eq!(wire(&bob.profile), json!({}));
        assert_eq!(wire(&cyd.profile), json!({ "email": "cyd@example.org", "locale": "en_US" }));
    });
}

#[test]
fn a_recipient_who_is_known_by_id_is_left_alone() {
    on_both(|world| {
        world.in_app_workflow("hi");
        let before = world.subscriber(json!({ "subscriberId": "ada", "firstName": "Ada" }));
        world.tick();

        world.notify("hi", "ada");

        assert_eq!(world.env.subscribers().get(id("ada")).unwrap(), before);
    });
}

#[test]
fn of_several_recipients_of_one_id_the_last_one_counts() {
    on_both(|world| {
        world.in_app_workflow("hi");
        let ada = |name| json!({ "subscriberId": "ada", "firstName": name });

        let receipt = world.trigger(json!({
            "name": "hi", "to": [ada("Augusta"), "bob", ada("Ada"), "bob"],
        }));

        assert_eq!(
            names(&receipt.notifications, |created| created.subscriber_id.clone()),
            ["ada", "bob"]
        );
        assert_eq!(world.inbox("ada").len(), 1);
        assert_eq!(wire(world.env.subscribers().get(id("ada")).unwrap())["firstName"], "Ada");
    });
}

#[test]
fn contexts_are_created_and_their_data_replaced() {
    on_both(|world| {
        let body = "{{ context.tenant.id }} {{ context.tenant.data.plan }}";
        world.workflow_of("hi", &[with(in_app(), json!({ "template": { "body": body } }))]);
        let about = |context: Value| {
            let at = world.tick();
            let event = json!({ "name": "hi", "to": "ada", "context": context });
            let receipt = world.trigger(event);
            let created = only(receipt.notifications).notification_id;
            let said = wire(&world.inbox("ada")[0])["content"].clone();
            (at, said, wire(world.notification(created))["contextKeys"].clone())
        };
        let tenant = || -> Context { world.env.contexts().get("tenant:acme").unwrap() };

        let (first, said, keys) = about(json!({ "tenant": "acme", "app": "shop" }));
        assert_eq!(said, "acme ");
        assert_eq!(keys, json!(["app:shop", "tenant:acme"]));
        let created = tenant();
        assert_eq!(
            wire(&created),
            json!({
                "_id": created.id,
                "_organizationId": "acme",
                "_environmentId": world.env.environment_id(),
                "type": "tenant",
                "id": "acme",
                "data": {},
                "createdAt": first,
                "updatedAt": first,
            })
        );

        let rich = json!({ "tenant": { "id": "acme", "data": { "plan": "pro" } } });
        let (second, said, keys) = about(rich.clone());
        assert_eq!((said, keys), (json!("acme pro"), json!(["tenant:acme"])));
        let data = parsed(json!({ "plan": "pro" }));
        let replaced = changed(created, |it| {
            it.data = data;
            it.updated_at = second;
        });
        assert_eq!(tenant(), replaced);

        // What is not said stays, and what is said again changes nothing.
        for same in [json!({ "tenant": "acme" }), json!({ "tenant": { "id": "acme" } }), rich] {
            let (_, said, _) = about(same);
            assert_eq!((said, tenant()), (json!("acme pro"), replaced.clone()));
        }
    });
}

#[test]
fn overrides_are_kept_and_may_say_how_much_it_matters() {
    on_both(|world| {
        world.workflow(with(workflow_of("hi", &[in_app()]), json!({ "severity": "low" })));
        let check = |overrides: Value, severity: &str| {
            let event = json!({ "name": "hi", "to": "ada", "overrides": overrides });
            let created = only(world.trigger(event).notifications).notification_id;

            let notification = wire(world.notification(created));
            assert_eq!(notification["severity"], severity);
            assert_eq!(notification["overrides"], overrides);
            assert_eq!(wire(&world.inbox("ada")[0])["overrides"], overrides);
        };

        check(json!({ "severity": "high" }), "high");
        check(json!({ "severity": "none" }), "none");
        check(json!({ "ses": { "tag": "x" }, "email": { "from": "x" } }), "low");
        check(json!({}), "low");
    });
}

#[test]
fn an_override_with_an_effect_has_a_valid_value() {
    on_both(|world| {
        world.in_app_workflow("hi");
        for (overrides, field) in [
            (json!({ "severity": "hgh" }), "overrides.severity"),
            (json!({ "severity": 5 }), "overrides.severity"),
            (json!({ "severty": "high" }), "overrides.severty"),
            (json!({ "delay": {} }), "overrides.delay.amount"),
            (json!({ "delay": { "amount": 2 } }), "overrides.delay.unit"),
            (json!({ "delay": { "amount": 0, "unit": "days" } }), "overrides.delay.amount"),
            (json!({ "digest": 5 }), "overrides.digest.amount"),
            (
                json!({ "email": { "integrationIdentifier": 5 } }),
                "overrides.email.integrationIdentifier",
            ),
            (
                json!({ "in_app": { "integrationIdentifier": "" } }),
                "overrides.in_app.integrationIdentifier",
            ),
        ] {
            let event = parsed(json!({ "name": "hi", "to": "ada", "overrides": overrides }));
            let refused = world.env.events().trigger(&event);
            let Err(Error::Invalid(invalid)) = refused else { panic!("{overrides}: {refused:?}") };
            assert_eq!(invalid.field, field);
        }
        assert!(world.env.subscribers().find("ada").unwrap().is_none());
        let nothing = json!({ "delay": null, "digest": null });
        world.trigger(json!({ "name": "hi", "to": "ada", "overrides": nothing }));
    });
}

#[test]
fn a_transaction_happens_once() {
    on_both(|world| {
        world.in_app_workflow("hi");
        let first = world.trigger(json!({ "name": "hi", "to": "ada", "transactionId": "t1" }));
        world.tick();

        for again in [
            json!({ "name": "hi", "to": "ada", "transactionId": "t1" }),
            json!({ "name": "hi", "to": ["bob", "cyd"], "transactionId": "t1" }),
            json!({
                "name": "hi",
                "to": { "subscriberId": "ada", "firstName": "Ada" },
                "transactionId": "t1",
                "payload": { "name": "Ada" },
                "context": { "tenant": "acme" },
            }),
        ] {
            assert_eq!(world.unchanged(|| world.trigger(again)), first);
        }
        assert_eq!(world.inbox("ada").len(), 1);
    });
}

#[test]
fn a_transaction_belongs_to_one_environment() {
    on_both(|world| {
        world.in_app_workflow("hi");
        let production = world.production();
        production.workflows().create(&parsed(workflow_of("hi", &[in_app()]))).unwrap();
        let event: Trigger = parsed(json!({ "name": "hi", "to": "ada", "transactionId": "t1" }));

        let here = world.env.events().trigger(&event).unwrap();
        let there = production.events().trigger(&event).unwrap();

        assert_ne!(here.notifications, there.notifications);
        let own = only(here.notifications).notification_id;
        world.refuses(&format!("404 notification `{own}` is not there"), || {
            production.notifications().get(own)
        });
    });
}

#[test]
fn a_workflow_that_does_nothing_is_said_to() {
    on_both(|world| {
        let asleep = with(in_app(), json!({ "active": false }));
        for (create, status) in [
            (
                with(workflow_of("off", &[in_app()]), json!({ "active": false })),
                TriggerStatus::TriggerNotActive,
            ),
            (workflow_of("empty", &[]), TriggerStatus::NoSteps),
            (workflow_of("asleep", &[asleep.clone(), asleep]), TriggerStatus::NoActiveSteps),
        ] {
            let name = create["workflowId"].clone();
            world.workflow(create);

            let receipt = world.unchanged(|| {
                world.trigger(json!({
                    "name": name, "to": "ada", "transactionId": "t1",
                    "context": { "tenant": "acme" },
                }))
            });

            let expected = json!({
                "acknowledged": true, "status": status, "transactionId": "t1", "notifications": [],
            });
            assert_eq!(wire(receipt), expected);
        }
    });
}

#[test]
fn steps_that_are_not_active_are_left_out() {
    on_both(|world| {
        let asleep = with(in_app(), json!({ "active": false }));
        let workflow = world.workflow_of("hi", &[asleep, in_app()]);

        let notification = world.notification(world.notify("hi", "ada"));

        assert_eq!(only(notification.jobs).step.id, workflow.steps[1].id);
        assert_eq!(world.inbox("ada").len(), 1);
    });
}

#[test]
fn a_notification_says_what_was_triggered() {
    on_both(|world| {
        let create = workflow_of("hi", &[in_app(), email()]);
        let filed = json!({ "tags": ["news"], "severity": "high", "critical": true });
        let workflow = world.workflow(with(create, filed));
        let to = json!({ "subscriberId": "ada", "firstName": "Ada" });

        let receipt = world.trigger(json!({
            "name": "hi",
            "to": with(to.clone(), json!({ "channels": [{
                "providerId": "slack",
                "_integrationId": NO_ID,
                "credentials": { "webhookUrl": "https://secret.example" },
            }] })),
            "payload": { "name": "Ada" },
            "transactionId": "t1",
        }));

        let created = only(receipt.notifications).notification_id;
        let mut shown = wire(world.notification(created));
        shown.as_object_mut().unwrap().remove("jobs").unwrap();
        let ada = &world.env.subscribers().get(id("ada")).unwrap();
        assert_eq!(
            shown,
            json!({
                "_id": created,
                "_environmentId": world.env.environment_id(),
                "_organizationId": "acme",
                "_subscriberId": ada.id,
                "transactionId": "t1",
                "_templateId": workflow.id,
                "createdAt": START,
                "updatedAt": START,
                "channels": ["in_app", "email"],
                "subscriber": { "subscriberId": "ada", "_id": ada.id, "firstName": "Ada" },
                "template": { "_id": workflow.id, "name": "hi", "triggers": workflow.triggers },
                "payload": { "name": "Ada" },
                // The secrets of a recipient's channels are not for the activity list.
                "to": to,
                "tags": ["news"],
                "severity": "high",
                "critical": true,
            })
        );
    });
}

#[test]
fn a_recipient_whose_data_is_as_deep_as_it_may_be_is_told() {
    on_both(|world| {
        world.in_app_workflow("hello");
        let data = (0..64).fold(json!("bottom"), |inner, _| json!({ "in": inner }));
        let to = json!({ "subscriberId": "ada", "firstName": "Ada", "data": data });

        world.trigger(json!({ "name": "hello", "to": to }));

        let notification = only(world.notifications(json!({})));
        let named = json!({ "subscriberId": "ada", "firstName": "Ada" });
        assert_eq!(notification.to.map(Value::from), Some(named));
        assert_eq!(world.inbox("ada").len(), 1);
    });
}

#[test]
fn a_repeated_transaction_has_its_receipt_whatever_became_of_its_workflow() {
    on_both(|world| {
        world.in_app_workflow("hello");
        let event = json!({ "name": "hello", "to": "ada", "transactionId": "t-1" });
        let receipt = world.trigger(event.clone());

        let inactive = parsed(json!({ "active": false }));
        world.env.workflows().update("hello", &inactive).unwrap();
        assert_eq!(world.unchanged(|| world.trigger(event.clone())), receipt);

        world.env.workflows().delete("hello").unwrap();
        assert_eq!(world.unchanged(|| world.trigger(event)), receipt);
    });
}

#[test]
fn an_event_of_another_workflow_cannot_have_the_transaction_id() {
    on_both(|world| {
        world.in_app_workflow("placed");
        world.in_app_workflow("shipped");
        let event = |workflow: &str, payload: Value| -> Trigger {
            let id = "order-1";
            parsed(
                json!({ "name": workflow, "to": "ada", "transactionId": id, "payload": payload }),
            )
        };
        let first = world.env.events().trigger(&event("placed", json!({}))).unwrap();

        let taken = "409 event `order-1` is one of another workflow";
        let shipped = event("shipped", json!({}));
        world.refuses(taken, || world.env.events().trigger(&shipped));
        let misspelled = event("shiped", json!({}));
        let missing = "404 workflow `shiped` is not there; did you mean `shipped`?";
        world.refuses(missing, || world.env.events().trigger(&misspelled));
        let broadcast: Broadcast = parsed(json!({ "name": "shipped", "transactionId": "order-1" }));
        world.refuses(taken, || world.env.events().broadcast(&broadcast));

        let other = event("placed", json!({ "n": 1 }));
        assert_eq!(world.unchanged(|| world.env.events().trigger(&other)).unwrap(), first);
        let inactive = parsed(json!({ "active": false }));
        world.env.workflows().update("shipped", &inactive).unwrap();
        world.refuses(taken, || world.env.events().trigger(&shipped));
    });
}

/// The first one is not there yet when the others are prepared.
#[test]
fn one_of_two_events_of_a_bulk_has_the_transaction_id() {
    on_both(|world| {
        world.in_app_workflow("placed");
        world.in_app_workflow("shipped");
        let event = |workflow: &str| -> Trigger {
            parsed(json!({ "name": workflow, "to": "ada", "transactionId": "order-1" }))
        };
        let events = [event("placed"), event("shipped"), event("placed")];
        let receipts = world.env.events().trigger_bulk(&events).unwrap();
        let said = receipts.iter().map(|receipt| match receipt {
            Ok(receipt) => receipt.transaction_id.to_string(),
            Err(error) => error.to_string(),
        });
        let taken = "event `order-1` is one of another workflow";
        assert_eq!(said.collect::<Vec<_>>(), ["order-1", taken, "order-1"]);
        assert_eq!(world.inbox("ada").len(), 1);
    });
}
