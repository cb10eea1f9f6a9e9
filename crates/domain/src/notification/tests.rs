use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::error::{Invalid, Reason};
use crate::ids::WorkflowRef;
use crate::job::JobStatus;
use crate::sample;
use crate::topic::Topic;
use crate::trigger::Trigger;

fn query(json: Value) -> NotificationQuery {
    serde_json::from_value(json).unwrap()
}

/// A job of a step of this type.
pub(super) fn job(kind: StepType, status: JobStatus) -> Job {
    let mut job = notification().jobs.swap_remove(0);
    (job.kind, job.status) = (kind, status);
    job
}

fn notification() -> Notification {
    let workflow = sample::workflow(json!([
        { "type": "in_app", "template": { "body": "" } },
        { "type": "sms", "template": { "body": "" } },
        { "type": "chat", "template": { "body": "" }, "active": false },
    ]));
    let topics = json!([
        {
            "_topicId": uuid::Uuid::nil(), "topicKey": "orders",
            "subscriptionIds": ["s1", "s2"],
        },
        { "_topicId": uuid::Uuid::nil(), "topicKey": "news", "subscriptionIds": ["s3"] },
    ]);
    Notification {
        severity: Some(Severity::High),
        topics: serde_json::from_value(topics).unwrap(),
        context_keys: serde_json::from_value(json!(["tenant:acme", "app:x"])).unwrap(),
        created_at: sample::at(1_000),
        ..sample::notification(&workflow, &sample::subscriber(json!({})), json!({ "a": 1 }))
    }
}

const BEFORE: &str = "1970-01-01T00:00:00.999Z";
const THEN: &str = "1970-01-01T00:00:01.000Z";
const AFTER: &str = "1970-01-01T00:00:01.001Z";

/// One row per value of a condition: whether the notification meets it. With a second condition, it
/// must meet both.
#[test]
fn a_query_matches_notifications_that_meet_every_condition() {
    let conditions = [
        ("channels", json!([]), true),
        ("channels", json!(["in_app"]), true),
        ("channels", json!(["email", "sms"]), true),
        ("channels", json!(["chat"]), false),
        ("severity", json!([]), true),
        ("severity", json!(["low", "high"]), true),
        ("severity", json!(["none"]), false),
        ("transactionId", json!("txn"), true),
        ("transactionId", json!("other"), false),
        ("topicKey", json!("orders"), true),
        ("topicKey", json!("news"), true),
        ("topicKey", json!("order"), false),
        ("subscriptionId", json!("s2"), true),
        ("subscriptionId", json!("s3"), true),
        ("subscriptionId", json!("s4"), false),
        ("contextKeys", json!(null), true),
        ("contextKeys", json!(["app:x", "tenant:acme"]), true),
        ("contextKeys", json!(["app:x", "tenant:acme", "app:x"]), true),
        ("contextKeys", json!(["tenant:acme"]), false),
        ("contextKeys", json!(["app:x", "tenant:acme", "user:1"]), false),
        ("contextKeys", json!([]), false),
        ("contextKeys", json!([""]), false),
        ("outcomes", json!([]), true),
        ("outcomes", json!(["waiting"]), true),
        ("outcomes", json!(["failed", "waiting"]), true),
        ("outcomes", json!(["failed", "delivered", "skipped", "canceled", "merged"]), false),
        ("after", json!(BEFORE), true),
        ("after", json!(THEN), true),
        ("after", json!(AFTER), false),
        ("before", json!(BEFORE), false),
        ("before", json!(THEN), true),
        ("before", json!(AFTER), true),
    ];
    let notification = notification();
    for (name, value, shown) in &conditions {
        let alone = json!({ *name: value });
        assert_eq!(query(alone.clone()).matches(&notification), *shown, "{alone}");
        for (other, second, second_shown) in &conditions {
            if name != other {
                let both = json!({ *name: value, *other: second });
                let expected = *shown && *second_shown;
                assert_eq!(query(both.clone()).matches(&notification), expected, "{both}");
            }
        }
    }
}

#[test]
fn who_does_not_say_how_much_it_matters_says_none() {
    let silent = Notification { severity: None, ..notification() };
    assert!(query(json!({ "severity": ["none"] })).matches(&silent));
    assert!(!query(json!({ "severity": ["low"] })).matches(&silent));
}

#[test]
fn who_is_told_by_whom_is_not_for_the_notification_to_say() {
    for (json, names) in [
        (json!({}), false),
        (json!({ "templates": ["welcome"], "channels": ["sms"] }), false),
        (json!({ "emails": ["a@b.c"] }), true),
        (json!({ "subscriberIds": ["ada"] }), true),
        (json!({ "search": "ada" }), true),
    ] {
        assert!(
            query(json.clone())
                .matches(&Notification { step_types: vec![StepType::Sms], ..notification() }),
            "{json}"
        );
        assert_eq!(query(json.clone()).names_subscribers(), names, "{json}");
    }
}

#[test]
fn a_single_id_stands_for_the_list_of_it() {
    assert_eq!(query(json!({ "templates": "welcome" })).workflows, [WorkflowRef::from("welcome")]);
    assert_eq!(
        query(json!({ "templates": ["a", "b"] })).workflows,
        ["a", "b"].map(WorkflowRef::from)
    );
    assert!(serde_json::from_value::<NotificationQuery>(json!({ "templates": 7 })).is_err());
}

#[test]
fn a_page_has_1_to_50_notifications_of_a_span_that_runs_forward() {
    for (json, size) in [
        (json!({}), Ok(10)),
        (json!({ "limit": 1 }), Ok(1)),
        (json!({ "limit": 50, "page": 4_000_000_000_u32 }), Ok(50)),
        (json!({ "limit": 0 }), Err("`limit` must be between 1 and 50")),
        (json!({ "limit": 51 }), Err("`limit` must be between 1 and 50")),
        (json!({ "after": THEN, "before": THEN }), Ok(10)),
        (json!({ "after": BEFORE, "before": THEN }), Ok(10)),
        (json!({ "after": AFTER, "before": THEN }), Err("`after` must not come after `before`")),
    ] {
        let checked = query(json).check().map_err(|invalid| invalid.to_string());
        assert_eq!(checked.as_ref().map_err(String::as_str), size.as_ref().map_err(|e| *e));
    }
    for json in [json!({ "page": -1 }), json!({ "limit": -1 }), json!({ "after": "yesterday" })] {
        assert!(serde_json::from_value::<NotificationQuery>(json.clone()).is_err(), "{json}");
    }
}

#[test]
fn a_new_one_has_a_job_for_each_active_step() {
    let notification = notification();
    let kinds: Vec<_> = notification.jobs.iter().map(|job| job.kind).collect();
    assert_eq!(kinds, [StepType::InApp, StepType::Sms]);
    assert_eq!(notification.step_types, kinds);
    assert!(notification.jobs.iter().all(|job| job.status == JobStatus::Pending));
    assert_eq!(notification.jobs[1].step.parent_id, Some(notification.jobs[0].step.id));
}

#[test]
fn a_topic_is_named_with_the_subscriptions_that_let_something_through() {
    let subscription = |identifier: &str| {
        let create = serde_json::from_value(json!({ "key": "orders" })).unwrap();
        let topic = Topic::new(sample::id(7), &sample::home(), create, sample::at(0));
        let subscriber = sample::subscriber(json!({}));
        let (of, contexts) = ((&topic, &subscriber), ContextSet::default());
        let identifier = identifier.parse().unwrap();
        Subscription::new(sample::id(8), identifier, &sample::home(), of, contexts, sample::at(0))
    };
    let through = |identifiers: &[&str]| {
        let subscriptions: Vec<_> = identifiers.iter().map(|name| subscription(name)).collect();
        NotificationTopic::through(subscriptions.iter())
    };
    assert_eq!(through(&[]), None);
    for identifiers in [&["one"][..], &["one", "other"]] {
        let json = json!({
            "_topicId": sample::id::<TopicId>(7),
            "topicKey": "orders",
            "subscriptionIds": identifiers,
        });
        assert_eq!(serde_json::to_value(through(identifiers).unwrap()).unwrap(), json);
    }
}

#[test]
fn a_trigger_may_overrule_the_severity() {
    let mut workflow = sample::workflow(json!([]));
    workflow.severity = Severity::Low;
    for (overrides, severity) in [
        (None, Severity::Low),
        (Some(json!({})), Severity::Low),
        (Some(json!({ "severity": "high" })), Severity::High),
        (Some(json!({ "severity": "none" })), Severity::None),
        (Some(json!({ "severity": "extreme" })), Severity::Low),
        (Some(json!({ "severity": 1 })), Severity::Low),
    ] {
        let subscriber = sample::subscriber(json!({}));
        let to = subscriber.subscriber_id.clone();
        let mut trigger = Trigger::new(workflow.identifier().clone(), to).unwrap();
        trigger.overrides = overrides.clone().map(sample::object);
        let notification = sample::triggered(&workflow, &subscriber, &trigger);
        assert_eq!(notification.severity, Some(severity), "{overrides:?}");
    }
}

#[test]
fn a_job_is_found_by_its_id() {
    let notification = notification();
    let id = notification.jobs[1].id;
    assert_eq!(notification.job(id).map(|job| job.kind), Some(StepType::Sms));
    assert_eq!(notification.job(sample::id(99)), None);
}

#[test]
fn what_is_read_along_is_what_the_others_say() {
    let subscriber = sample::subscriber(json!({
        "firstName": "Ada", "lastName": "L", "email": "a@b.c", "phone": "1", "avatar": "x",
    }));
    assert_eq!(
        serde_json::to_value(NotificationSubscriber::from(&subscriber)).unwrap(),
        json!({
            "subscriberId": "ada", "_id": subscriber.id, "firstName": "Ada", "lastName": "L",
            "email": "a@b.c", "phone": "1",
        })
    );
    let workflow = sample::workflow(json!([]));
    assert_eq!(
        serde_json::to_value(NotificationWorkflow::from(&workflow)).unwrap(),
        json!({ "_id": workflow.id, "name": "Order shipped", "triggers": workflow.triggers })
    );
    assert_eq!(Home::from(&notification()), sample::home());
}

/// One row per setter of a list: a list that a host has computed, and that came out empty, selects nothing else.
#[test]
fn a_list_that_a_setter_leaves_empty_is_refused() {
    let none = Vec::<String>::new;
    let query = NotificationQuery::default;
    for (field, query) in [
        ("channels", query().step_types([StepType::Email]).step_types(Vec::<StepType>::new())),
        ("templates", query().workflows(none())),
        ("emails", query().emails(none())),
        ("subscriberIds", query().subscriber_ids(none()).unwrap()),
        ("severity", query().severities(Vec::<Severity>::new())),
        ("outcomes", query().outcomes(Vec::<NotificationOutcome>::new())),
    ] {
        assert_eq!(query.check(), Err(Invalid::new(field, Reason::Empty)));
        let written = serde_json::to_value(&query).unwrap_err().to_string();
        assert!(written.contains(field), "{field}: {written}");
        assert_eq!(self::query(json!({ field: [] })).check(), Ok(10), "{field}");
    }
    let set_again = query().workflows(none()).workflows(["order-shipped"]);
    assert_eq!(set_again, query().workflows(["order-shipped"]));
}

proptest! {
    #[test]
    fn what_comes_between_two_instants_is_shown(
        created_at in 0_i64..9,
        after in proptest::option::of(0_i64..9),
        before in proptest::option::of(0_i64..9),
    ) {
        let notification = Notification { created_at: sample::at(created_at), ..notification() };
        let query = NotificationQuery {
            earliest: after.map(sample::at),
            latest: before.map(sample::at),
            ..NotificationQuery::default()
        };
        let shown = (after.unwrap_or(0)..=before.unwrap_or(9)).contains(&created_at);
        prop_assert_eq!(query.matches(&notification), shown);
    }
}
