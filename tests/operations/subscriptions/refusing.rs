//! Requests about subscriptions that are refused, and leave nothing behind.

use serde_json::{Value, json};
use tidings::subscription::{
    Subscribe, SubscriptionUpdate, Unsubscribe, UnsubscribeItem, WorkflowSetting,
};

use super::{named, subscribe, subscribe_all, subscriptions};
use crate::topics::key;
use crate::world::{in_app, on_both, parsed, unreadable, with, workflow_of};

// A hundred names.
fn numbered(name: &str) -> Vec<String> {
    (0..100).map(|number| format!("{name}-{number}")).collect()
}

#[test]
fn a_request_that_works_for_nobody_is_refused_and_leaves_nothing_behind() {
    on_both(|world| {
        let there = parsed(json!({ "subscriberId": "there" }));
        world.production().subscribers().create(&there).unwrap();
        let nobody: Subscribe = parsed(json!({
            "subscriptions": ["eve", "there"],
            "name": "News",
            "context": { "tenant": "acme" },
        }));

        // No topic and no context is left behind.
        let refusal = "400 each subscription was refused: \
                       subscriber `eve` is not there; subscriber `there` is not there";
        world.refuses(refusal, || world.env.topics().subscribe(key("news"), &nobody));

        world.bare_subscriber("ada");
        subscribe_all(&world, "news", json!({ "subscriptions": ["ada"] }));
        let nobody: Unsubscribe =
            parsed(json!({ "subscriptions": ["eve", { "identifier": "unknown" }] }));
        let refusal = "400 each subscription was refused: subscriber `eve` is not there; \
                       subscription `unknown` is not there";
        world.refuses(refusal, || world.env.topics().unsubscribe(key("news"), &nobody));
        assert_eq!(subscriptions(&world, "news", json!({})).len(), 1);
    });
}

/// One row per request: why it is refused, whether the topic is there or not.
#[test]
fn a_request_that_no_rule_allows_is_refused() {
    let ada = json!(["ada"]);
    let six: Value = (0..6).map(|n| (format!("t{n}"), json!("x"))).collect();
    let large = json!({ "tenant": { "id": "acme", "data": { "text": "x".repeat(64 * 1024) } } });
    let part = "1 to 100 letters, digits, `_` and `-`";
    let rows = [
        (json!({}), "`subscriptions` must not be empty".into()),
        (
            json!({ "subscriptions": vec!["ada"; 101] }),
            "`subscriptions` must have at most 100 items".into(),
        ),
        (
            json!({ "subscriptions": ["ada", named("ada", &"ü".repeat(513))] }),
            "`subscriptions[1].identifier` must be at most 512 characters long".into(),
        ),
        (
            json!({ "subscriptions": [{ "subscriberId": "ada", "name": "a\nb" }] }),
            "`subscriptions[0].name` must be text without control characters".into(),
        ),
        (json!({ "subscriptions": ada, "name": "" }), "`name` must not be empty".into()),
        (
            json!({ "subscriptions": ada, "preferences": ["hi", { "filter": {} }] }),
            "`preferences[1].filter.workflowIds` is required unless there is `tags`".into(),
        ),
        (
            json!({ "subscriptions": ada, "preferences": [{ "filter": { "tags": vec!["t"; 101] } }] }),
            "`preferences[0].filter.tags` must have at most 100 items".into(),
        ),
        (
            json!({
                "subscriptions": ada,
                "preferences": [{ "filter": { "workflowIds": vec!["hi"; 101] } }],
            }),
            "`preferences[0].filter.workflowIds` must have at most 100 items".into(),
        ),
        (
            json!({ "subscriptions": ada, "preferences": [
                { "filter": { "workflowIds": numbered("unknown") } }, "hi",
            ] }),
            "`preferences` must have at most 100 items".into(),
        ),
        (
            json!({ "subscriptions": ada, "preferences": [{ "filter": { "tags": ["all"] } }] }),
            "`preferences` must have at most 100 items".into(),
        ),
        (json!({ "subscriptions": ada, "context": {} }), "`context` must not be empty".into()),
        (
            json!({ "subscriptions": ada, "context": six }),
            "`context` must have at most 5 items".into(),
        ),
        (
            json!({ "subscriptions": ada, "context": { "a:b": "c" } }),
            format!("`context.a:b` must be under a type of {part}"),
        ),
        (
            json!({ "subscriptions": ada, "context": { "tenant": "" } }),
            format!("`context.tenant` must be {part}"),
        ),
        (
            json!({ "subscriptions": ada, "context": large }),
            "`context.tenant.data` must be at most 65536 bytes long".into(),
        ),
    ];
    on_both(|world| {
        world.bare_subscriber("ada");
        world.in_app_workflow("hi");
        let tagged = json!({ "tags": ["all"] });
        for name in numbered("tagged").into_iter().chain(["last".to_owned()]) {
            world.workflow(with(workflow_of(&name, &[in_app()]), tagged.clone()));
        }
        subscribe_all(&world, "news", json!({ "subscriptions": [named("ada", "there")] }));
        for (request, refusal) in &rows {
            let request: Subscribe = parsed(request.clone());
            for topic in ["news", "other"] {
                world.refuses(&format!("422 {refusal}"), || {
                    world.env.topics().subscribe(key(topic), &request)
                });
            }
        }
    });
}

#[test]
fn the_longest_names_and_the_longest_lists_are_allowed() {
    on_both(|world| {
        world.bare_subscriber("ada");
        world.in_app_workflow("hi");
        let longest = json!({
            "subscriberId": "ada", "identifier": "ü".repeat(512), "name": "ü".repeat(255),
        });
        let words = vec![json!({ "filter": { "workflowIds": vec!["hi"; 100] } }); 100];
        let request = json!({ "subscriptions": vec![longest; 100], "preferences": words });
        assert_eq!(subscribe(&world, "news", request).meta.successful, 100);
        assert_eq!(subscriptions(&world, "news", json!({})).len(), 1);
    });
}

#[test]
fn a_change_or_a_removal_that_no_rule_allows_is_refused() {
    on_both(|world| {
        world.bare_subscriber("ada");
        subscribe_all(&world, "news", json!({ "subscriptions": [named("ada", "one")] }));
        subscribe_all(&world, "other", json!({ "subscriptions": [named("ada", "there")] }));
        let topics = world.env.topics();
        let name = "422 `name` must be at most 255 characters long";
        let words = "422 `preferences` must have at most 100 items";
        let filter = "422 `preferences[0].filter.workflowIds` is required unless there is `tags`";
        let unknown = "404 subscription `there` is not there";
        let nowhere = "404 topic `unknown` is not there";
        for (topic, identifier, fields, refusal) in [
            ("news", "one", json!({ "name": "n".repeat(256) }), name),
            ("news", "one", json!({ "preferences": vec!["hi"; 101] }), words),
            ("news", "one", json!({ "preferences": [{ "filter": {} }] }), filter),
            ("news", "there", json!({}), unknown),
            ("unknown", "one", json!({}), nowhere),
        ] {
            let update: SubscriptionUpdate = parsed(fields);
            world.refuses(refusal, || topics.update_subscription(key(topic), identifier, &update));
        }
        let none = "422 `subscriptions` must not be empty";
        let many = "422 `subscriptions` must have at most 100 items";
        for (topic, request, refusal) in [
            ("news", json!({}), none),
            ("news", json!({ "subscriptions": vec!["ada"; 101] }), many),
            ("unknown", json!({ "subscriptions": ["ada"] }), nowhere),
        ] {
            let request: Unsubscribe = parsed(request);
            world.refuses(refusal, || topics.unsubscribe(key(topic), &request));
        }
    });
}

#[test]
fn what_cannot_be_read_says_why() {
    let item = |item: Value| unreadable::<Subscribe>(json!({ "subscriptions": [item] }));
    assert_eq!(item(json!({})), "missing field `subscriberId`");
    assert_eq!(item(json!("")), "`subscriberId` must not be empty");
    assert_eq!(item(named("ada", "")), "`identifier` must not be empty");
    let long = "`identifier` must be at most 2048 bytes long";
    assert_eq!(item(named("ada", &"x".repeat(2049))), long);
    let control = "`identifier` must be text without control characters";
    assert_eq!(item(named("ada", "a\0b")), control);

    let leaving = unreadable::<UnsubscribeItem>;
    let text = "`subscriberId` is required unless there is `identifier`";
    assert_eq!(leaving(json!({})), text);
    assert_eq!(leaving(json!("s".repeat(256))), "`subscriberId` must be at most 255 bytes long");

    let word = unreadable::<WorkflowSetting>;
    assert_eq!(word(json!({})), "`workflowId` is required unless there is `filter`");
    assert_eq!(
        word(json!({ "workflowId": "hi", "filter": { "tags": ["t"] } })),
        "`filter` must not be given together with `workflowId`"
    );
    assert_eq!(
        word(json!({ "workflowId": "hi", "condition": { "and": [true, { "nor": [] }] } })),
        "`condition.and[1]` has no operator `nor`"
    );
    // The ids of subscribers may be in a list of that name.
    let request: Subscribe = parsed(json!({ "subscriberIds": ["ada"] }));
    assert_eq!(request.subscriptions.len(), 1);
}
