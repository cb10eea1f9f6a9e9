//! Triggers of topics: their recipients, and the subscriptions that admit or reject them.

mod crowd;
mod gate;

use serde_json::{Value, json};
use tidings::notification::{Notification, NotificationQuery};
use tidings::trigger::{Recipient, TriggerReceipt};

use crate::subscriptions::subscribe_all;
use crate::topics::key;
use crate::world::{
    World, id, in_app, names, on_both, only, parsed, unreadable, wire, with, workflow_of,
};

#[test]
fn everybody_in_a_topic_is_told() {
    on_both(|world| {
        people(&world, &["ada", "bob", "cyd"]);
        subscribe_all(&world, "news", json!({ "subscriptions": ["bob", "ada"] }));
        let topic_id = world.env.topics().get(key("news")).unwrap().id;

        let receipt = world.trigger(json!({
            "name": "hi", "to": topic("news"), "transactionId": "t1", "payload": { "name": "you" },
        }));

        assert_eq!(
            wire(&receipt),
            json!({
                "acknowledged": true,
                "status": "processed",
                "transactionId": "t1",
                "notifications": [],
                "topics": { "created": 2, "filtered": 0 },
            })
        );
        for (notification, who) in created(&world, &receipt).into_iter().zip(["ada", "bob"]) {
            assert_eq!(only(world.inbox(who)).text(), Some("Hello you"));
            let notification = wire(notification);
            assert_eq!(
                notification["topics"],
                json!([{
                    "_topicId": topic_id,
                    "topicKey": "news",
                    "subscriptionIds": [format!("tk_news:si_{who}")],
                }])
            );
            assert_eq!(notification["to"], json!({ "subscriberId": who }));
            assert_eq!(notification["transactionId"], "t1");
        }
        assert_eq!(world.inbox("cyd"), []);
        // The same event happens once, whoever has come since.
        subscribe_all(&world, "news", json!({ "subscriptions": ["cyd"] }));
        let again = json!({ "name": "hi", "to": topic("news"), "transactionId": "t1" });
        assert_eq!(world.unchanged(|| world.trigger(again)), receipt);
    });
}

#[test]
fn a_subscriber_is_told_once_however_often_it_is_in_the_topics() {
    on_both(|world| {
        people(&world, &["ada", "bob"]);
        let several = json!([
            { "subscriberId": "ada", "identifier": "a1" },
            { "subscriberId": "bob", "identifier": "b1" },
            { "subscriberId": "ada", "identifier": "a2" },
        ]);
        subscribe_all(&world, "news", json!({ "subscriptions": several }));
        subscribe_all(&world, "other", json!({ "subscriptions": ["ada"] }));

        let receipt = world.trigger(json!({
            "name": "hi", "to": [topic("other"), topic("news"), topic("other")],
        }));

        assert_eq!(recipients(&world, &receipt), "ada bob");
        assert_eq!(world.inbox("ada").len(), 1);
        let through = |at: usize| {
            let topics = &created(&world, &receipt)[at].topics;
            let shown = topics.iter().map(|topic| {
                let ids = names(&topic.subscription_ids, Clone::clone).join("+");
                format!("{}:{ids}", topic.topic_key)
            });
            shown.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(through(0), "other:tk_other:si_ada news:a1+a2");
        assert_eq!(through(1), "news:b1");
    });
}

#[test]
fn a_crowd_is_told_once_each() {
    on_both(|world| {
        world.in_app_workflow("hi");
        let everybody: Vec<String> = (0..150).map(|n| format!("s{n:03}")).collect();
        for some in everybody.chunks(75) {
            world.trigger(json!({ "name": "hi", "to": some }));
        }
        let named = |at: &str, who: &String| json!({ "subscriberId": who, "identifier": format!("{at}{who}") });
        for at in ["x", "y"] {
            for some in everybody.chunks(75) {
                let items: Vec<_> = some.iter().map(|who| named(at, who)).collect();
                subscribe_all(&world, "crowd", json!({ "subscriptions": items }));
            }
        }

        let receipt = world.trigger(json!({ "name": "hi", "to": topic("crowd") }));
        world.run_due();

        assert_eq!(recipients(&world, &receipt), everybody.join(" "));
        let last = created(&world, &receipt).pop().unwrap();
        assert_eq!(names(&only(last.topics).subscription_ids, Clone::clone), ["xs149", "ys149"]);
    });
}

#[test]
fn who_is_named_directly_is_told_without_the_topic() {
    on_both(|world| {
        people(&world, &["ada", "bob"]);
        let request = json!({
            "subscriptions": ["ada", "bob"],
            "preferences": [{ "workflowId": "hi", "enabled": false }],
        });
        subscribe_all(&world, "news", request);

        // P14
        let receipt = world.trigger(json!({ "name": "hi", "to": [topic("news"), "ada", "eve"] }));

        assert_eq!(recipients(&world, &receipt), "ada eve");
        assert_eq!(wire(&receipt)["topics"], json!({ "created": 0, "filtered": 1 }));
        assert_eq!(named(&receipt), "ada eve");
        for notification in created(&world, &receipt) {
            assert_eq!(notification.topics, []);
        }
    });
}

#[test]
fn direct_recipients_come_first() {
    on_both(|world| {
        people(&world, &["ada", "bob", "cyd"]);
        subscribe_all(&world, "news", json!({ "subscriptions": ["ada", "bob", "cyd"] }));

        let to = json!([topic("news"), { "subscriberId": "cyd", "firstName": "Cyd" }, "zoe"]);
        let receipt = world.trigger(json!({ "name": "hi", "to": to }));

        assert_eq!(recipients(&world, &receipt), "cyd zoe ada bob");
        assert_eq!((named(&receipt).as_str(), receipt.topics.created), ("cyd zoe", 2));
        let cyd = world.notification(receipt.notifications[0].notification_id);
        let recipient = json!({ "subscriberId": "cyd", "firstName": "Cyd" });
        assert_eq!((wire(&cyd.to), cyd.topics), (recipient, vec![]));
    });
}

#[test]
fn a_subscriber_excluded_from_one_topic_is_reached_by_none() {
    on_both(|world| {
        people(&world, &["ada", "bob", "cyd", "dan"]);
        for key in ["news", "other"] {
            subscribe_all(&world, key, json!({ "subscriptions": ["ada", "bob", "cyd", "dan"] }));
        }
        let without = |key: &str, who: Value| with(topic(key), json!({ "exclude": who }));

        let to = json!([
            topic("other"),
            without("news", json!(["ada", "eve"])),
            without("other", json!(["bob"])),
        ]);
        let receipt = world.trigger(json!({ "name": "hi", "to": to }));
        assert_eq!(recipients(&world, &receipt), "cyd dan");
        // It is what the caller wanted, and no subscription that filtered.
        assert_eq!(receipt.topics.filtered, 0);

        // A subscriber that the trigger names is a recipient anyway. The exclusion holds once.
        let to = json!(["ada", without("news", json!(["ada", "bob"]))]);
        assert_eq!(
            recipients(&world, &world.trigger(json!({ "name": "hi", "to": to }))),
            "ada cyd dan"
        );
        let to = topic("news");
        assert_eq!(
            recipients(&world, &world.trigger(json!({ "name": "hi", "to": to }))),
            "ada bob cyd dan"
        );
    });
}

#[test]
fn topics_that_are_not_there_are_reported_and_the_others_told() {
    on_both(|world| {
        people(&world, &["ada"]);
        subscribe_all(&world, "news", json!({ "subscriptions": ["ada"] }));
        let there = parsed(json!({ "key": "there" }));
        world.production().topics().create(&there).unwrap();

        let to = json!([topic("gone"), topic("news"), topic("there")]);
        let receipt = world.trigger(json!({ "name": "hi", "to": to }));
        assert_eq!(recipients(&world, &receipt), "ada");
        assert_eq!(wire(&receipt)["missingTopics"], json!(["gone", "there"]));

        // A trigger without recipients is no error.
        let event = json!({ "name": "hi", "to": topic("gone"), "transactionId": "t" });
        let receipt = world.trigger(event.clone());
        let nobody = json!({
            "acknowledged": true,
            "status": "processed",
            "transactionId": "t",
            "notifications": [],
            "missingTopics": ["gone"],
        });
        assert_eq!(wire(&receipt), nobody);
        // It has happened, also if the topic is there later.
        subscribe_all(&world, "gone", json!({ "subscriptions": ["ada"] }));
        assert_eq!(wire(world.unchanged(|| world.trigger(event))), nobody);
        // A topic without anybody is there.
        world.env.topics().create(&parsed(json!({ "key": "empty" }))).unwrap();
        let receipt = world.trigger(json!({ "name": "hi", "to": topic("empty") }));
        assert_eq!((receipt.missing_topics, receipt.topics.created), (vec![], 0));
    });
}

#[test]
fn a_deleted_subscriber_is_told_through_no_topic() {
    on_both(|world| {
        people(&world, &["ada", "bob"]);
        subscribe_all(&world, "news", json!({ "subscriptions": ["ada", "bob"] }));

        world.env.subscribers().delete(id("ada")).unwrap();

        let event = json!({ "name": "hi", "to": topic("news") });
        assert_eq!(recipients(&world, &world.trigger(event.clone())), "bob");
        // One who comes back under the same name is somebody else.
        world.bare_subscriber("ada");
        assert_eq!(recipients(&world, &world.trigger(event)), "bob");
    });
}

#[test]
fn notifications_are_found_by_the_topic_and_the_subscription_they_came_through() {
    on_both(|world| {
        people(&world, &["ada", "bob"]);
        let several = json!(["bob", { "subscriberId": "ada", "identifier": "a1" }, "ada"]);
        subscribe_all(&world, "news", json!({ "subscriptions": several }));
        subscribe_all(&world, "newsletter", json!({ "subscriptions": ["ada"] }));
        for (name, to) in [
            ("t1", topic("news")),
            ("t2", topic("newsletter")),
            ("t3", json!([topic("newsletter"), topic("news"), "eve"])),
            ("t4", json!("ada")),
        ] {
            world.trigger(json!({ "name": "hi", "to": to, "transactionId": name }));
        }
        let found = |query: Value| {
            let shown = world.notifications(query).into_iter().map(|one| {
                format!("{}/{}", one.transaction_id, one.subscriber.unwrap().subscriber_id)
            });
            shown.collect::<Vec<_>>().join(" ")
        };
        for (query, expected) in [
            (json!({ "topicKey": "news" }), "t3/bob t3/ada t1/bob t1/ada"),
            (json!({ "topicKey": "newsletter" }), "t3/ada t2/ada"),
            (json!({ "topicKey": "NEWS" }), ""),
            (json!({ "subscriptionId": "a1" }), "t3/ada t1/ada"),
            (json!({ "subscriptionId": "tk_newsletter:si_ada" }), "t3/ada t2/ada"),
            (json!({ "subscriptionId": "unknown" }), ""),
            // Every condition must hold.
            (json!({ "topicKey": "news", "subscriptionId": "tk_newsletter:si_ada" }), "t3/ada"),
            (json!({ "topicKey": "news", "subscriberIds": "bob" }), "t3/bob t1/bob"),
            (json!({ "topicKey": "news", "transactionId": "t1" }), "t1/bob t1/ada"),
            (json!({ "topicKey": "newsletter", "templates": ["hi"], "limit": 1 }), "t3/ada"),
        ] {
            assert_eq!(found(query.clone()), expected, "{query}");
        }
        // What has happened stays, whatever becomes of the topic.
        world.env.topics().delete(key("news")).unwrap();
        assert_eq!(found(json!({ "topicKey": "news" })), "t3/bob t3/ada t1/bob t1/ada");
    });
}

#[test]
fn a_bulk_reaches_topics() {
    on_both(|world| {
        people(&world, &["ada", "bob"]);
        subscribe_all(&world, "news", json!({ "subscriptions": ["ada", "bob"] }));
        let unknown = json!({ "name": "unknown", "to": topic("news") });
        let event = json!({ "name": "hi", "to": topic("news") });

        let events: Vec<_> = [event.clone(), unknown, event].map(parsed).into();
        let receipts = world.env.events().trigger_bulk(&events).unwrap();

        let shown = receipts.iter().map(|receipt| match receipt {
            Ok(receipt) => recipients(&world, receipt),
            Err(error) => error.to_string(),
        });
        let expected = ["ada bob", "workflow `unknown` is not there", "ada bob"];
        assert_eq!(shown.collect::<Vec<_>>(), expected);
        assert_eq!(world.inbox("bob").len(), 2);
    });
}

#[test]
fn a_topic_counts_as_one_recipient() {
    on_both(|world| {
        people(&world, &["ada"]);
        subscribe_all(&world, "news", json!({ "subscriptions": ["ada"] }));
        let to = |count: usize| json!({ "name": "hi", "to": vec![topic("news"); count] });

        assert_eq!(recipients(&world, &world.trigger(to(100))), "ada");
        let crowded = parsed(to(101));
        let refusal = "422 `to` must have at most 100 items";
        world.refuses(refusal, || world.env.events().trigger(&crowded));
    });
    let recipient = unreadable::<Recipient>;
    assert_eq!(recipient(json!({ "type": "Topic" })), "missing field `topicKey`");
    let text = "`type` must be one of Topic";
    assert_eq!(recipient(json!({ "type": "topic", "topicKey": "news" })), text);
    assert_eq!(recipient(with(topic(""), json!({}))), "`topicKey` must not be empty");
    let text = "`subscriberId` must not be empty";
    assert_eq!(recipient(with(topic("news"), json!({ "exclude": [""] }))), text);
}

// A recipient that is a topic.
fn topic(key: &str) -> Value {
    json!({ "type": "Topic", "topicKey": key })
}

// Makes subscribers of those names, and a workflow.
fn people(world: &World, names: &[&str]) {
    world.workflow(workflow_of("hi", &[in_app()]));
    for name in names {
        world.bare_subscriber(name);
    }
}

// Whom the event has reached, in the order in which their notifications were created.
fn recipients(world: &World, receipt: &TriggerReceipt) -> String {
    let all = created(world, receipt);
    names(&all, |one| one.subscriber.as_ref().unwrap().subscriber_id.clone()).join(" ")
}

// The notifications of the event, in the order in which they were created.
fn created(world: &World, receipt: &TriggerReceipt) -> Vec<Notification> {
    let query = NotificationQuery::of_transaction(&receipt.transaction_id).limit(50);
    let page =
        |page| world.env.notifications().list(&query.clone().page_number(page)).unwrap().data;
    let mut all: Vec<_> = (0..).map(page).take_while(|page| !page.is_empty()).flatten().collect();
    all.reverse();
    all
}

// Whom the receipt names.
fn named(receipt: &TriggerReceipt) -> String {
    names(&receipt.notifications, |created| created.subscriber_id.clone()).join(" ")
}
