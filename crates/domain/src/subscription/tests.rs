use std::cell::{Cell, LazyCell};

use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::*;
use crate::context::{Context, ContextKey};
use crate::error::Reason;
use crate::sample;
use crate::topic::TopicCreate;
use crate::trigger::Trigger;

const OTHER: u128 = 77;

fn contexts(keys: &[&str]) -> ContextSet {
    keys.iter().map(|key| key.parse().unwrap()).collect()
}

// Subscription of `ada` in `orders` without settings.
fn subscription(keys: &[&str]) -> Subscription {
    let create = TopicCreate { key: "orders".parse().unwrap(), name: None };
    let topic = Topic::new(sample::id(7), &sample::home(), create, sample::at(0));
    let subscriber = sample::subscriber(json!({}));
    let of = (&topic, &subscriber);
    let identifier = "it".parse().unwrap();
    let id = sample::id(8);
    Subscription::new(id, identifier, &sample::home(), of, contexts(keys), sample::at(1))
}

fn verdict(number: u128, enabled: bool, condition: Value) -> ResolvedSetting {
    let condition = serde_json::from_value(condition).unwrap();
    ResolvedSetting { workflow_id: sample::id(number), enabled, condition }
}

fn with_settings(verdicts: Vec<ResolvedSetting>) -> Subscription {
    subscription(&[]).updated(Patch::Keep, Some(&verdicts), sample::at(1))
}

// Returns `true` if `subscription` admits `order-shipped`, critical or not, for `ada`.
fn admits(subscription: &Subscription, critical: bool, keys: &[&str], payload: Value) -> bool {
    let subscriber = sample::subscriber(json!({ "data": { "plan": "pro" } }));
    let mut workflow = sample::workflow(json!([]));
    workflow.critical = critical;
    let mut trigger =
        Trigger::new(workflow.identifier().clone(), subscriber.subscriber_id.clone()).unwrap();
    trigger.payload = sample::object(payload);
    let named = |key: &ContextKey| {
        let data = sample::object(json!({ "plan": "pro" }));
        Context::new(sample::id(9), &sample::home(), key.clone(), data, sample::at(0))
    };
    let event = Event {
        actor: None,
        home: &sample::home(),
        trigger: &trigger,
        transaction_id: &"txn".parse().unwrap(),
        workflow: &workflow,
        contexts: &contexts(keys).keys().map(named).collect::<Vec<_>>(),
        context_keys: &contexts(keys),
        now: sample::at(0),
    };
    subscription.admits(&event, &LazyCell::new(|| event.data(&subscriber)))
}

/// One row per setting for a workflow: whether it admits events with the tier `premium`, and with
/// the tier `free`. The names are those of the specification.
#[test]
fn the_setting_of_a_subscription_admits_events() {
    let order = |enabled, condition| vec![verdict(3, enabled, condition)];
    let premium = || json!({ "===": [{ "var": "payload.tier" }, "premium"] });
    let about = |field: &str, value: &str| json!({ "==": [{ "var": field }, value] });
    for (name, verdicts, expected) in [
        ("no word", vec![], [true, true]),
        ("yes", order(true, json!(null)), [true, true]),
        ("no", order(false, json!(null)), [false, false]),
        ("no, about another workflow", vec![verdict(OTHER, false, json!(null))], [true, true]),
        ("a condition for another workflow", vec![verdict(OTHER, true, premium())], [true, true]),
        ("P11", order(true, premium()), [true, false]),
        ("P12: 1 is not true", order(true, json!({ "+": [1] })), [false, false]),
        ("P12: nor is a text", order(true, json!({ "cat": ["true"] })), [false, false]),
        ("P12: nor is a list", order(true, json!({ "merge": [1] })), [false, false]),
        ("P12: nor is nothing", order(true, json!({ "var": "nowhere" })), [false, false]),
        ("P16: a condition decides", order(false, premium()), [true, false]),
        ("P16: true", order(false, json!({ "==": [1, 1] })), [true, true]),
        ("P16: false", order(true, json!({ "==": [1, 2] })), [false, false]),
        ("the subscriber is known", order(true, about("subscriber.data.plan", "pro")), [true; 2]),
        ("the workflow is known", order(true, about("workflow.identifier", "x")), [false; 2]),
    ] {
        let subscription = with_settings(verdicts);
        // P15: a critical workflow is no exception.
        for critical in [false, true] {
            let through = ["premium", "free"]
                .map(|tier| admits(&subscription, critical, &[], json!({ "tier": tier })));
            assert_eq!(through, expected, "{name}");
        }
    }
}

#[test]
fn an_event_gets_through_in_exactly_the_contexts_of_the_subscription() {
    let both = &["tenant:acme", "app:web"][..];
    for (of, about, expected) in [
        (&[][..], &[][..], true),
        (&[], &["tenant:acme"], false),
        (&["tenant:acme"], &[], false),
        (&["tenant:acme"], &["tenant:acme"], true),
        (&["tenant:acme"], &["tenant:other"], false),
        (&["tenant:acme"], both, false),
        (both, &["tenant:acme"], false),
        (both, &["app:web", "tenant:acme"], true),
    ] {
        assert_eq!(
            admits(&subscription(of), false, about, json!({})),
            expected,
            "{of:?} {about:?}"
        );
    }
    let plan = json!({ "==": [{ "var": "context.tenant.data.plan" }, "pro"] });
    let conditional = Subscription {
        context_keys: contexts(&["tenant:acme"]),
        ..with_settings(vec![verdict(3, true, plan)])
    };
    assert!(admits(&conditional, false, &["tenant:acme"], json!({})), "contexts are known");
}

#[test]
fn data_is_made_up_only_if_a_condition_asks() {
    let subscriber = sample::subscriber(json!({}));
    let workflow = sample::workflow(json!([]));
    let trigger =
        Trigger::new(workflow.identifier().clone(), subscriber.subscriber_id.clone()).unwrap();
    let event = Event {
        actor: None,
        home: &sample::home(),
        trigger: &trigger,
        transaction_id: &"txn".parse().unwrap(),
        workflow: &workflow,
        contexts: &[],
        context_keys: &ContextSet::default(),
        now: sample::at(0),
    };
    let rule = || json!({ "var": "payload.x" });
    for (subscription, asked) in [
        (subscription(&[]), false),
        (with_settings(vec![verdict(3, false, json!(null))]), false),
        (with_settings(vec![verdict(OTHER, true, rule())]), false),
        (with_settings(vec![verdict(3, true, rule())]), true),
    ] {
        let made = Cell::new(false);
        let data = LazyCell::new(|| {
            made.set(true);
            event.data(&subscriber)
        });
        subscription.admits(&event, &data);
        assert_eq!(made.get(), asked, "{subscription:?}");
    }
}

#[test]
fn a_subscription_without_a_name_is_named_after_its_parts() {
    let made = |topic: &str, subscriber: &str, keys: &[&str]| {
        let (topic, subscriber) = (topic.parse().unwrap(), subscriber.parse().unwrap());
        Subscription::made_identifier(&topic, &subscriber, &contexts(keys))
    };
    for (keys, expected) in [
        (&[][..], "tk_orders:si_ada"),
        (&["tenant:acme"], "tk_orders:si_ada:ctx_tenant:acme"),
        (&["tenant:acme", "app:web"], "tk_orders:si_ada:ctx_app:web,tenant:acme"),
        (&["app:web", "tenant:acme"], "tk_orders:si_ada:ctx_app:web,tenant:acme"),
    ] {
        assert_eq!(made("orders", "ada", keys).unwrap().as_str(), expected);
    }
    let key = |n: usize| format!("{n}{}:{}", "t".repeat(99), "i".repeat(100));
    let keys: Vec<_> = (0..5).map(key).collect();
    let keys: Vec<_> = keys.iter().map(String::as_str).collect();
    let longest = made(&"t".repeat(100), &"ü".repeat(127), &keys);
    assert_eq!(longest.unwrap().as_str().len(), 3 + 100 + 4 + 254 + 5 + 5 * 201 + 4);
}

#[test]
fn a_new_one_says_nothing_and_is_of_its_subscriber_in_its_topic() {
    let subscription = subscription(&["tenant:acme"]);
    let ada = sample::subscriber(json!({}));
    assert_eq!((&subscription.name, subscription.preferences.len()), (&None, 0));
    assert_eq!(subscription.topic_key.as_str(), "orders");
    assert_eq!(subscription.internal_subscriber_id, ada.id);
    assert!(subscription.is_of(&ada, &contexts(&["tenant:acme"])));
    assert!(!subscription.is_of(&ada, &contexts(&[])), "another context");
    let again = Subscriber { id: sample::id(99), ..ada };
    assert!(!subscription.is_of(&again, &contexts(&["tenant:acme"])), "created again");
}

/// One row per list of settings: the settings of the subscription after it.
#[test]
fn the_last_of_two_settings_for_one_workflow_counts() {
    let rule = || json!({ "var": "payload.x" });
    let null = || json!(null);
    for (verdicts, expected) in [
        (vec![], vec![]),
        (vec![verdict(3, true, null())], vec![verdict(3, true, null())]),
        (
            vec![verdict(3, true, rule()), verdict(4, false, null()), verdict(3, false, null())],
            vec![verdict(3, false, null()), verdict(4, false, null())],
        ),
        (
            vec![verdict(3, false, null()), verdict(3, true, null()), verdict(3, true, rule())],
            vec![verdict(3, true, rule())],
        ),
    ] {
        let before = with_settings(vec![verdict(5, false, json!(null))]);
        let verdicts = ResolvedSetting::last_of_each(verdicts).unwrap();
        let after = before.updated(Patch::Keep, Some(&verdicts), sample::at(9));
        let stored = |stored: &SubscriptionPreference| {
            assert_eq!(stored.subscription_id.as_str(), "it");
            assert_eq!(stored.workflow, None);
            let (enabled, condition) = (stored.enabled, stored.condition.clone());
            ResolvedSetting { workflow_id: stored.workflow_id, enabled, condition }
        };
        assert_eq!(after.preferences.iter().map(stored).collect::<Vec<_>>(), expected);
        assert_eq!(after.updated_at, sample::at(9));
    }
}

#[test]
fn a_subscription_says_something_about_100_workflows_at_most() {
    let about = |workflows| {
        let verdicts = (0..workflows).map(|number| verdict(number, true, json!(null)));
        ResolvedSetting::last_of_each(verdicts.collect()).map(|verdicts| verdicts.len())
    };
    assert_eq!(about(100), Ok(100));
    assert_eq!(about(101).unwrap_err().to_string(), "`preferences` must have at most 100 items");
}

#[test]
fn an_update_changes_what_it_names() {
    let before = Subscription {
        name: Some("Home".into()),
        ..with_settings(vec![verdict(3, false, json!(null))])
    };
    let later = Subscription { updated_at: sample::at(9), ..before.clone() };
    let keep = Patch::<String>::Keep;
    let same = || Some(vec![verdict(3, false, json!(null))]);
    let set = |name: &str| Patch::Set(name.to_owned());
    for (name, verdicts, expected) in [
        (keep.clone(), None, before.clone()),
        (keep.clone(), same(), before.clone()),
        (set("Home"), same(), before.clone()),
        (set("Work"), None, Subscription { name: Some("Work".into()), ..later.clone() }),
        (Patch::Clear, None, Subscription { name: None, ..later.clone() }),
        (keep, Some(vec![]), Subscription { preferences: vec![], ..later }),
    ] {
        assert_eq!(before.updated(name, verdicts.as_deref(), sample::at(9)), expected);
    }
}

// Reads `json` and writes it again. Returns the refusal if it cannot be read.
fn rewritten<T: DeserializeOwned + serde::Serialize>(json: Value) -> Result<Value, String> {
    let read = serde_json::from_value::<T>(json).map_err(|error| error.to_string())?;
    Ok(serde_json::to_value(read).unwrap())
}

// Asserts that each `json` reads as its full form, or is refused.
#[track_caller]
fn check_forms<T: DeserializeOwned + serde::Serialize>(
    forms: Vec<(Value, Value)>,
    refused: Vec<(Value, &str)>,
) {
    for (json, full) in forms {
        assert_eq!(rewritten::<T>(json), Ok(full.clone()));
        assert_eq!(rewritten::<T>(full.clone()), Ok(full));
    }
    for (json, problem) in refused {
        let error = rewritten::<T>(json.clone()).unwrap_err();
        assert!(error.contains(problem), "{json}: {error}");
    }
}

#[test]
fn a_subscriber_to_put_into_a_topic_may_be_just_an_id() {
    let ada = || json!({ "subscriberId": "ada" });
    let full = || json!({ "subscriberId": "ada", "identifier": "it", "name": "Home" });
    check_forms::<SubscribeItem>(
        vec![
            (json!("ada"), ada()),
            (json!({ "subscriberId": "ada", "identifier": null, "name": null }), ada()),
            (json!({ "subscriberId": "ada", "extra": 1 }), ada()),
            (full(), full()),
        ],
        vec![
            (json!(""), "`subscriberId` must not be empty"),
            (json!("a\nb"), "`subscriberId` must be text without control characters"),
            (json!({ "subscriberId": "" }), "`subscriberId` must not be empty"),
            (json!({}), "missing field `subscriberId`"),
            (json!({ "identifier": "it" }), "missing field `subscriberId`"),
            (json!({ "subscriberId": "ada", "identifier": "" }), "`identifier` must not be empty"),
            (json!({ "subscriberId": 7 }), "invalid type: integer `7`"),
            (json!(7), "expected a text or an object"),
            (json!(null), "expected a text or an object"),
            (json!(["ada"]), "expected a text or an object"),
        ],
    );
}

#[test]
fn a_subscription_to_take_out_is_named_or_all_of_a_subscriber_are() {
    let ada = || json!({ "subscriberId": "ada" });
    let it = || json!({ "identifier": "it" });
    check_forms::<UnsubscribeItem>(
        vec![
            (json!("ada"), ada()),
            (json!({ "subscriberId": "ada", "identifier": null }), ada()),
            (it(), it()),
        ],
        vec![
            (
                json!({ "subscriberId": "ada", "identifier": "it" }),
                "`identifier` must not be given together with `subscriberId`",
            ),
            (json!(""), "`subscriberId` must not be empty"),
            (json!({}), "`subscriberId` is required unless there is `identifier`"),
            (json!({ "subscriberId": null }), "`subscriberId` is required unless there is"),
            (json!({ "identifier": "" }), "`identifier` must not be empty"),
            (json!({ "subscriberId": "" }), "`subscriberId` must not be empty"),
            (json!({ "identifier": 7 }), "invalid type: integer `7`"),
            (json!(7), "expected a text or an object"),
            (json!(null), "expected a text or an object"),
            (json!(["ada"]), "expected a text or an object"),
        ],
    );
}

#[test]
fn a_word_is_about_one_workflow_or_about_those_that_match() {
    let rule = || json!({ "==": [{ "var": "payload.x" }, 1] });
    let both = || json!({ "workflowIds": ["a"], "tags": ["b"] });
    check_forms::<WorkflowSetting>(
        vec![
            (json!("a"), json!({ "workflowId": "a", "enabled": true })),
            (json!({ "workflowId": "a" }), json!({ "workflowId": "a", "enabled": true })),
            (
                json!({ "workflowId": "a", "enabled": false }),
                json!({ "workflowId": "a", "enabled": false }),
            ),
            (
                json!({ "workflowId": "a", "enabled": null, "condition": null, "filter": null }),
                json!({ "workflowId": "a", "enabled": true }),
            ),
            (
                json!({ "workflowId": "a", "condition": rule() }),
                json!({ "workflowId": "a", "enabled": true, "condition": rule() }),
            ),
            (
                json!({ "filter": { "tags": ["b"] }, "enabled": false, "condition": rule() }),
                json!({ "filter": { "tags": ["b"] }, "enabled": false, "condition": rule() }),
            ),
            (
                json!({ "filter": { "workflowIds": ["a"] } }),
                json!({ "filter": { "workflowIds": ["a"] }, "enabled": true }),
            ),
            (json!({ "filter": both() }), json!({ "filter": both(), "enabled": true })),
        ],
        vec![
            (json!({}), "`workflowId` is required unless there is `filter`"),
            (json!({ "enabled": true }), "`workflowId` is required unless there is `filter`"),
            (
                json!({ "workflowId": "a", "filter": both() }),
                "`filter` must not be given together with `workflowId`",
            ),
            (json!({ "workflowId": 7 }), "invalid type: integer `7`"),
            (json!({ "workflowId": "a", "enabled": "yes" }), "invalid type: string \"yes\""),
            (
                json!({ "workflowId": "a", "condition": { "nope": [] } }),
                "`condition` has no operator `nope`",
            ),
            (json!({ "workflowId": "a", "condition": true }), "`condition`"),
            (json!({ "filter": { "tags": "b" } }), "invalid type: string \"b\""),
            (json!(7), "expected a text or an object"),
            (json!(null), "expected a text or an object"),
            (json!(["ada"]), "expected a text or an object"),
        ],
    );
}

#[test]
fn a_word_about_workflows_is_a_verdict_about_each() {
    let word: WorkflowSetting = serde_json::from_value(json!({
        "filter": { "tags": ["b"] }, "enabled": false, "condition": { "var": "payload.x" },
    }))
    .unwrap();
    assert_eq!(word.about(sample::id(3)), verdict(3, false, json!({ "var": "payload.x" })));
}

/// One row per request: the refusal.
#[test]
fn a_request_has_1_to_100_items_of_bounded_length() {
    let many = |item: Value, count: usize| vec![item; count];
    let item = |field: &str, text: String| json!({ "subscriptions": ["eve", { "subscriberId": "ada", field: text }] });
    let filter = |filter: Value| json!({ "subscriptions": ["ada"], "preferences": ["a", { "filter": filter }] });
    let place = "preferences[1].filter";
    for (request, problem) in [
        (json!({}), Some("`subscriptions` must not be empty".into())),
        (json!({ "subscriptions": [] }), Some("`subscriptions` must not be empty".into())),
        (json!({ "subscriptions": many(json!("ada"), 100) }), None),
        (json!({ "subscriberIds": ["ada"] }), None),
        (
            json!({ "subscriptions": many(json!("ada"), 101) }),
            Some("`subscriptions` must have at most 100 items".into()),
        ),
        (item("identifier", "ü".repeat(512)), None),
        (
            item("identifier", "x".repeat(513)),
            Some("`subscriptions[1].identifier` must be at most 512 characters long".into()),
        ),
        (item("name", "ü".repeat(255)), None),
        (
            item("name", "x".repeat(256)),
            Some("`subscriptions[1].name` must be at most 255 characters long".into()),
        ),
        (
            item("name", "a\0b".into()),
            Some("`subscriptions[1].name` must be text without control characters".into()),
        ),
        (json!({ "subscriptions": ["ada"], "preferences": many(json!("a"), 100) }), None),
        (
            json!({ "subscriptions": ["ada"], "preferences": many(json!("a"), 101) }),
            Some("`preferences` must have at most 100 items".into()),
        ),
        (
            filter(json!({})),
            Some(format!("`{place}.workflowIds` is required unless there is `tags`")),
        ),
        (
            filter(json!({ "workflowIds": [], "tags": [] })),
            Some(format!("`{place}.workflowIds` is required unless there is `tags`")),
        ),
        (filter(json!({ "workflowIds": many(json!("a"), 100) })), None),
        (
            filter(json!({ "workflowIds": many(json!("a"), 101) })),
            Some(format!("`{place}.workflowIds` must have at most 100 items")),
        ),
        (
            filter(json!({ "tags": many(json!("a"), 101) })),
            Some(format!("`{place}.tags` must have at most 100 items")),
        ),
    ] {
        let request: Subscribe = serde_json::from_value(request).unwrap();
        assert_eq!(request.check().err().map(|invalid| invalid.to_string()), problem);
    }
}

#[test]
fn a_request_to_take_out_has_1_to_100_items() {
    let check = |json| {
        let request: Unsubscribe = serde_json::from_value(json).unwrap();
        request.check().err().map(|invalid| invalid.to_string())
    };
    let empty = Some("`subscriptions` must not be empty".to_owned());
    let too_many = Some("`subscriptions` must have at most 100 items".to_owned());
    assert_eq!(check(json!({})), empty);
    assert_eq!(check(json!({ "subscriberIds": vec!["ada"; 100] })), None);
    assert_eq!(check(json!({ "subscriptions": vec!["ada"; 101] })), too_many);
}

#[test]
fn an_update_is_of_bounded_length() {
    let words = |count: usize| Some(vec![serde_json::from_value(json!("a")).unwrap(); count]);
    let too_long = Reason::TooLong { max: 255, unit: crate::error::Unit::Characters };
    let too_many = Invalid::new("preferences", Reason::TooMany { max: 100 });
    for (name, preferences, expected) in [
        (Patch::Keep, None, Ok(())),
        (Patch::Clear, words(0), Ok(())),
        (Patch::Set("ü".repeat(255)), words(100), Ok(())),
        (Patch::Set("x".repeat(256)), None, Err(Invalid::new("name", too_long))),
        (Patch::Keep, words(101), Err(too_many)),
    ] {
        assert_eq!(SubscriptionUpdate { name, preferences }.check(), expected);
    }
}

/// One row per error: the code, the subject and the message.
#[test]
fn a_reason_names_the_subscriber_or_the_subscription() {
    let (ada, it): (SubscriberId, SubscriptionIdentifier) =
        ("ada".parse().unwrap(), "it".parse().unwrap());
    let of_subscriber = UnsubscribeItem::Subscriber { subscriber_id: ada.clone() };
    let of_name = UnsubscribeItem::Subscription { identifier: it.clone() };
    for (error, code, id, message) in [
        (
            SubscriptionError::subscriber_not_found(&ada),
            "SUBSCRIBER_NOT_FOUND",
            "ada",
            "subscriber `ada` is not there",
        ),
        (
            SubscriptionError::subscription_not_found(&of_subscriber),
            "SUBSCRIPTION_NOT_FOUND",
            "ada",
            "subscriber `ada` has no subscription in the topic",
        ),
        (
            SubscriptionError::subscription_not_found(&of_name),
            "SUBSCRIPTION_NOT_FOUND",
            "it",
            "subscription `it` is not there",
        ),
        (
            SubscriptionError::limit_exceeded(&ada),
            "SUBSCRIPTION_LIMIT_EXCEEDED",
            "ada",
            "subscriber `ada` has 10 subscriptions, the most in a topic",
        ),
        (
            SubscriptionError::identifier_taken(&ada, &it),
            "IDENTIFIER_TAKEN",
            "ada",
            "subscription `it` is there already for another subscriber or for other contexts",
        ),
    ] {
        let json = json!({ "subscriberId": id, "code": code, "message": message });
        assert_eq!(serde_json::to_value(&error).unwrap(), json);
        assert_eq!(serde_json::from_value::<SubscriptionError>(json).unwrap(), error);
    }
}

#[test]
fn a_result_counts_what_worked_and_what_did_not() {
    let ada: SubscriberId = "ada".parse().unwrap();
    let failed = || SubscriptionError::subscriber_not_found(&ada);
    for (worked, errors) in [(0, 0), (2, 0), (0, 2), (2, 3)] {
        let result = Subscriptions::new(vec![subscription(&[]); worked], vec![failed(); errors]);
        let total_count = worked + errors;
        assert_eq!(
            result.meta,
            SubscriptionMeta { total_count, successful: worked, failed: errors }
        );
        assert_eq!((result.data.len(), result.errors.len()), (worked, errors));
    }
}

proptest! {
    /// Subscriptions that differ in a part of their name have different names.
    #[test]
    fn made_names_tell_contexts_apart(
        one in prop::collection::btree_set("[ab]:[ab]{1,2}", 0..4),
        other in prop::collection::btree_set("[ab]:[ab]{1,2}", 0..4),
    ) {
        let made = |keys: &std::collections::BTreeSet<String>| {
            let keys: Vec<_> = keys.iter().map(String::as_str).collect();
            let (topic, subscriber) = ("t".parse().unwrap(), "s".parse().unwrap());
            Subscription::made_identifier(&topic, &subscriber, &contexts(&keys)).unwrap()
        };
        prop_assert_eq!(made(&one) == made(&other), one == other);
    }
}

#[test]
fn a_subscriber_has_10_subscriptions_in_a_topic() {
    let ada = "ada".parse().unwrap();
    for others in 0..Subscription::MAX_OF_SUBSCRIBER {
        assert_eq!(Subscription::check_room(others, &ada), Ok(()));
    }
    for others in [10, 11, usize::MAX] {
        let refused = Subscription::check_room(others, &ada);
        assert_eq!(refused, Err(SubscriptionError::limit_exceeded(&ada)));
    }
}
