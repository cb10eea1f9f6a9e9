use std::collections::HashSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::sample;

fn to(to: Value) -> Trigger {
    serde_json::from_value(json!({ "name": "welcome", "to": to })).unwrap()
}

// Recipients as id and, after a colon, name.
fn named(trigger: &Trigger) -> Result<Vec<String>, Invalid> {
    let named = |recipient: &&SubscriberRecipient| {
        let name = recipient.to_create().profile.first_name.map(|name| format!(":{name}"));
        format!("{}{}", recipient.subscriber_id(), name.unwrap_or_default())
    };
    trigger.audience().map(|audience| audience.subscribers.iter().map(named).collect())
}

fn inline(id: &str, name: &str) -> Value {
    json!({ "subscriberId": id, "firstName": name })
}

#[test]
fn of_several_for_one_subscriber_the_last_one_that_says_something_counts() {
    for (recipients, expected) in [
        (json!("a"), vec!["a"]),
        (inline("a", "Ada"), vec!["a:Ada"]),
        (json!(["a", "b"]), vec!["a", "b"]),
        (json!(["a", "b", "a"]), vec!["a", "b"]),
        (json!([inline("a", "X"), "b", inline("a", "Ada")]), vec!["a:Ada", "b"]),
        (json!([inline("a", "Ada"), "a"]), vec!["a:Ada"]),
        (json!(["A", "a"]), vec!["A", "a"]),
    ] {
        assert_eq!(named(&to(recipients)).unwrap(), expected);
    }
}

/// An id is a profile without fields.
#[test]
fn a_recipient_is_an_object_whether_it_has_a_profile_or_not() {
    let id = SubscriberRecipient::Id(SubscriberId::new("ada").unwrap());
    assert_eq!(id.as_object(), Object::of(id.to_create()));
    let inline = SubscriberRecipient::Inline(id.to_create());
    assert_eq!(inline.as_object(), id.as_object());
}

#[test]
fn there_are_1_to_100_recipients() {
    let many = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>();
    let tokens = |count: usize| {
        json!({ "subscriberId": "a", "channels": [{
            "providerId": "fcm",
            "_integrationId": uuid::Uuid::nil(),
            "credentials": { "deviceTokens": vec!["t"; count] },
        }] })
    };
    let excluding = |count| json!({ "type": "Topic", "topicKey": "news", "exclude": many(count) });
    for (recipients, problem) in [
        (json!(many(1)), None),
        (json!(many(100)), None),
        (json!([]), Some("`to` must not be empty")),
        (json!(many(101)), Some("`to` must have at most 100 items")),
        (json!(vec!["a"; 101]), Some("`to` must have at most 100 items")),
        (json!([tokens(100)]), None),
        (json!([excluding(1_000)]), None),
        (json!(["a", excluding(1_001)]), Some("`to[1].exclude` must have at most 1000 items")),
        (json!([excluding(600), "a", excluding(400)]), None),
        (
            json!([excluding(600), "a", excluding(401)]),
            Some("`to[2].exclude` must have at most 1000 items"),
        ),
        (
            json!([tokens(101), "a"]),
            Some("`to[0].channels[0].credentials.deviceTokens` must have at most 100 items"),
        ),
    ] {
        let error = to(recipients).audience().err().map(|invalid| invalid.to_string());
        assert_eq!(error.as_deref(), problem);
    }
}

#[test]
fn what_is_no_recipient_is_refused() {
    for recipient in [
        json!(""),
        json!(7),
        json!(null),
        json!({}),
        json!({ "subscriberId": "" }),
        json!({ "subscriberId": "a", "email": "nowhere" }),
        json!([["a"]]),
    ] {
        let trigger = json!({ "name": "welcome", "to": recipient });
        assert!(serde_json::from_value::<Trigger>(trigger).is_err(), "{recipient}");
    }
}

/// One row per list of recipients: the named subscribers, and the topics.
#[test]
fn subscribers_and_topics_may_stand_together() {
    let topic = |key: &str| json!({ "type": "Topic", "topicKey": key });
    for (recipients, subscribers, topics) in [
        (topic("orders"), vec![], vec!["orders"]),
        (json!([topic("orders"), "a", topic("news")]), vec!["a"], vec!["orders", "news"]),
        (json!(["a", topic("orders"), "a"]), vec!["a"], vec!["orders"]),
        (
            json!([topic("orders"), inline("a", "Ada"), topic("orders")]),
            vec!["a:Ada"],
            vec!["orders", "orders"],
        ),
        (json!(["b"]), vec!["b"], vec![]),
    ] {
        let trigger = to(recipients);
        assert_eq!(named(&trigger).unwrap(), subscribers);
        let audience = trigger.audience().unwrap();
        let keys = audience.topics.iter().map(|topic| topic.topic_key.as_str());
        assert_eq!(keys.collect::<Vec<_>>(), topics);
        let once: HashSet<_> = audience.topic_keys().collect();
        assert_eq!(once.len(), audience.topic_keys().count(), "each once");
        assert_eq!(once, audience.topics.iter().map(|topic| &topic.topic_key).collect());
    }
    let many = |count: usize| vec![topic("orders"); count];
    assert!(to(json!(many(100))).audience().is_ok());
    let error = to(json!(many(101))).audience().unwrap_err();
    assert_eq!(error.to_string(), "`to` must have at most 100 items");
}

/// One row per list of recipients: the excluded subscribers, of `a` to `e`.
#[test]
fn a_subscriber_excluded_from_one_topic_is_reached_by_none() {
    let topic = |key: &str, exclude: &[&str]| json!({ "type": "Topic", "topicKey": key, "exclude": exclude });
    for (recipients, excluded) in [
        (json!([topic("x", &[])]), ""),
        (json!([topic("x", &["a"])]), "a"),
        (json!([topic("x", &["a"]), topic("y", &["b", "c"])]), "abc"),
        (json!([topic("x", &["a", "a"]), topic("y", &["a"])]), "a"),
        // A named subscriber is a recipient, and not a second time through a topic.
        (json!(["a", topic("x", &[])]), "a"),
        (json!([topic("x", &["a"]), "a"]), "a"),
        (json!([topic("x", &["b"]), inline("a", "Ada")]), "ab"),
        (json!(["A", topic("x", &["e"])]), "e"),
    ] {
        let trigger = to(recipients.clone());
        let audience = trigger.audience().unwrap();
        let told = |id: &char| audience.excludes(&SubscriberId::new(id.to_string()).unwrap());
        assert_eq!(('a'..='e').filter(told).collect::<String>(), excluded, "{recipients}");
    }
    let trigger = to(json!([topic("x", &["a"]), "a"]));
    assert_eq!(named(&trigger).unwrap(), ["a"], "who is named is told, whoever excludes them");
}

#[test]
fn a_topic_is_written_as_it_is_read() {
    for (json, exclude) in [
        (json!({ "type": "Topic", "topicKey": "orders" }), 0),
        (json!({ "type": "Topic", "topicKey": "orders", "exclude": ["a", "b"] }), 2),
    ] {
        let recipient: Recipient = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(serde_json::to_value(&recipient).unwrap(), json);
        let Recipient::Topic(topic) = recipient else { panic!("{recipient:?}") };
        assert_eq!((topic.topic_key.as_str(), topic.exclude.len()), ("orders", exclude));
    }
    let topic = Trigger::new("welcome", TopicRecipient::new("orders").unwrap()).unwrap();
    assert_eq!(topic, to(json!({ "type": "Topic", "topicKey": "orders" })));
}

#[test]
fn a_trigger_for_one_is_short() {
    let ada: SubscriberId = "ada".parse().unwrap();
    let trigger = Trigger::new("welcome", ada).unwrap();
    assert_eq!(trigger, to(json!("ada")));
    let create: SubscriberCreate = serde_json::from_value(inline("ada", "Ada")).unwrap();
    assert_eq!(Trigger::new("welcome", create).unwrap(), to(inline("ada", "Ada")));
}

#[test]
fn only_an_active_workflow_with_active_steps_is_processed() {
    let active = json!({ "type": "sms", "template": { "body": "" } });
    let mut inactive = active.clone();
    inactive["active"] = false.into();
    for (steps, status, when_off) in [
        (json!([]), TriggerStatus::NoSteps, TriggerStatus::TriggerNotActive),
        (json!([inactive]), TriggerStatus::NoActiveSteps, TriggerStatus::TriggerNotActive),
        (json!([inactive, active]), TriggerStatus::Processed, TriggerStatus::TriggerNotActive),
    ] {
        let mut workflow = sample::workflow(steps);
        assert_eq!(TriggerStatus::of(&workflow), status);
        workflow.active = false;
        assert_eq!(TriggerStatus::of(&workflow), when_off);
    }
}

proptest! {
    #[test]
    fn each_subscriber_is_told_once_and_what_was_said_last(
        recipients in prop::collection::vec(("[a-d]", proptest::option::of("[X-Z]")), 1..12),
    ) {
        let json = recipients.iter().map(|(id, name)| match name {
            Some(name) => inline(id, name),
            None => json!(id),
        });
        let trigger = to(json.collect());
        let told = named(&trigger).unwrap();

        let ids: HashSet<_> = recipients.iter().map(|(id, _)| id.as_str()).collect();
        prop_assert_eq!(told.len(), ids.len());
        for id in ids {
            let said = recipients.iter().filter(|(other, _)| other == id);
            let last = said.filter_map(|(_, name)| name.as_ref()).next_back();
            let name = last.map(|name| format!(":{name}")).unwrap_or_default();
            let expected = format!("{id}{name}");
            prop_assert!(told.contains(&expected));
        }
    }
}

/// One row per recipient that cannot be read: the refusal.
#[test]
fn the_refusal_of_a_recipient_names_the_fault() {
    for (recipients, problem) in [
        (json!(""), "`subscriberId` must not be empty"),
        (json!({ "subscriberId": "a", "email": "no" }), "`email` must be an e-mail address"),
        (json!(["a", { "subscriberId": "b", "timezone": "Mars" }]), "`timezone` must be"),
        (json!([{ "firstName": "Ada" }]), "missing field `subscriberId`"),
        (json!({ "type": "Topic" }), "missing field `topicKey`"),
        (json!({ "type": "Topic", "topicKey": "a b" }), "`topicKey` must be letters, digits"),
        (json!({ "type": "topic", "topicKey": "t" }), "`type` must be one of Topic"),
        (json!({ "type": "Subscriber", "subscriberId": "a" }), "`type` must be one of Topic"),
        (json!({ "type": null, "topicKey": "t" }), "invalid type: null"),
        (
            json!(["a", { "type": "Topic", "topicKey": "t", "exclude": [""] }]),
            "`subscriberId` must not be empty",
        ),
        (json!(7), "invalid type: integer `7`"),
    ] {
        let trigger = json!({ "name": "welcome", "to": recipients });
        let error = serde_json::from_value::<Trigger>(trigger).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}

/// Receipts are stored. Those without counts name the recipients of topics.
#[test]
fn a_receipt_without_counts_is_read() {
    let receipt = json!({
        "acknowledged": true,
        "status": "processed",
        "transactionId": "t1",
        "notifications": [
            { "subscriberId": "ada", "_notificationId": "01990000-0000-7000-8000-000000000071" },
        ],
        "filtered": ["bob"],
    });
    let read: TriggerReceipt = serde_json::from_value(receipt).unwrap();
    assert_eq!((read.notifications.len(), read.topics), (1, TopicCounts::default()));
}
