//! The activity list: every condition, and every two of them, over what is sealed in segments of
//! the index and what is not, compared with reading every notification.

use std::collections::BTreeSet;
use std::ops::Range;

use serde_json::{Value, json};
use tidings::Scope;
use tidings::ids::{InternalSubscriberId, WorkflowId};
use tidings::notification::{Notification, NotificationQuery};
use tidings::time::Timestamp;

use super::{all, happen, ids, intact, on_both_with_segments as on_both};
use crate::subscriptions::subscribe_all;
use crate::world::{World, email, id, on_both as on_any, parsed, sms, with, workflow_of};

// A condition, and whom and which workflows it names, if it is about those.
struct Condition {
    said: Value,
    subscribers: &'static [&'static str],
    workflows: &'static [&'static str],
}

#[test]
fn every_condition_and_every_two_of_them_find_what_they_say() {
    on_both(|world| {
        history(&world);
        let conditions = conditions(&world);
        let mut everything = all(&world.env, json!({}));
        assert!(everything.is_sorted_by(|one, next| one.id > next.id));
        assert_eq!(everything.len(), 55);
        check(&world.env, &everything, &conditions);

        // With some of it deleted, the oldest and others, and in an engine that has just begun.
        let notifications = world.env.notifications();
        for at in [1, 6, 20, 21, 22, 40] {
            notifications.delete(everything[at].id).unwrap();
        }
        for at in [40, 22, 21, 20, 6, 1] {
            everything.remove(at);
        }
        let end = everything[43].created_at;
        let there = everything.len();
        everything.retain(|notification| notification.created_at >= end);
        let old = (there - everything.len()) as u64;
        assert_eq!(notifications.delete_before(end).unwrap(), old);
        assert!(old > 0);
        check(&world.env, &everything, &conditions);
        let engine = world.another_engine();
        let env = engine.environment(world.env.environment_id()).unwrap();
        check(&env, &everything, &conditions);
    });
}

#[track_caller]
fn check(env: &Scope, everything: &[Notification], conditions: &[Condition]) {
    let nothing = Condition { said: json!({}), subscribers: &[], workflows: &[] };
    let mut found = 0;
    for (at, one) in conditions.iter().enumerate() {
        for other in conditions[at + 1..].iter().chain([&nothing]) {
            if one.said.as_object().unwrap().keys().any(|key| other.said.get(key).is_some()) {
                continue;
            }
            let query = with(one.said.clone(), other.said.clone());
            let (who, what) = (named(env, &query, [one, other]), workflows(env, [one, other]));
            let plain: NotificationQuery = parsed(query.clone());
            if plain.check().is_err() {
                continue;
            }
            let expected: Vec<_> = everything
                .iter()
                .filter(|notification| plain.matches(notification))
                .filter(|found| who.as_ref().is_none_or(|who| who.contains(&found.subscriber_id)))
                .filter(|found| {
                    what.as_ref().is_none_or(|all| all.contains(&found.workflow_id.unwrap()))
                })
                .map(|notification| notification.id)
                .collect();
            found += usize::from(!expected.is_empty());
            assert_eq!(ids(env, query.clone()), expected, "{query}");
        }
    }
    assert!(found > 60, "hardly anything is found: {found}");
    intact(env);
}

// Those whom the conditions name. Conditions about the subscriber are one condition.
fn named(
    env: &Scope,
    query: &Value,
    conditions: [&Condition; 2],
) -> Option<BTreeSet<InternalSubscriberId>> {
    let about = ["subscriberIds", "emails", "search"];
    about.iter().any(|name| query.get(name).is_some()).then(|| {
        let named = conditions.iter().flat_map(|one| one.subscribers);
        named.map(|who| env.subscribers().get(id(who)).unwrap().id).collect()
    })
}

fn workflows(env: &Scope, conditions: [&Condition; 2]) -> Option<BTreeSet<WorkflowId>> {
    let is_named = conditions.iter().any(|one| one.said.get("templates").is_some());
    is_named.then(|| {
        let named = conditions.iter().flat_map(|one| one.workflows);
        named.map(|name| env.workflows().get(*name).unwrap().id).collect()
    })
}

fn conditions(world: &World) -> Vec<Condition> {
    let bare = |said: Value| Condition { said, subscribers: &[], workflows: &[] };
    let times = all(&world.env, json!({}));
    let time = |at: usize| json!(times[at].created_at);
    let id = json!(world.env.workflows().get("text").unwrap().id);
    let slug = json!(world.env.workflows().get("both").unwrap().slug());
    let mut conditions: Vec<Condition> = [
        json!({ "channels": ["sms"] }),
        json!({ "channels": ["email", "push", "in_app"] }),
        json!({ "severity": ["none"] }),
        json!({ "severity": ["high", "medium"] }),
        json!({ "transactionId": "t-3" }),
        json!({ "transactionId": "t-unknown" }),
        json!({ "topicKey": "news" }),
        json!({ "subscriptionId": "tk_news:si_ada" }),
        json!({ "contextKeys": [] }),
        json!({ "contextKeys": ["tenant:alpha"] }),
        json!({ "contextKeys": ["app:shop", "tenant:beta"] }),
        json!({ "outcomes": "waiting" }),
        json!({ "outcomes": ["failed", "merged"] }),
        json!({ "outcomes": "delivered" }),
        json!({ "outcomes": ["delivered", "failed"] }),
        json!({ "after": time(30) }),
        json!({ "after": time(3) }),
        json!({ "before": time(10) }),
        json!({ "before": time(50) }),
        json!({ "after": time(44), "before": time(20) }),
    ]
    .map(bare)
    .into();
    for (said, subscribers) in [
        (json!({ "subscriberIds": ["ada"] }), &["ada"][..]),
        (json!({ "subscriberIds": ["cyd", "bob", "nobody"] }), &["bob", "cyd"]),
        (json!({ "emails": ["bob@example.org"] }), &["bob"]),
        (json!({ "search": "EXAMPLE.ORG" }), &["ada", "bob"]),
        (json!({ "search": "nobody" }), &[]),
    ] {
        conditions.push(Condition { said, subscribers, workflows: &[] });
    }
    for (said, workflows) in [
        (json!({ "templates": ["hi"] }), &["hi"][..]),
        (json!({ "templates": [id, "unknown", "both"] }), &["both", "text"]),
        (json!({ "templates": [slug] }), &["both"]),
    ] {
        conditions.push(Condition { said, subscribers: &[], workflows });
    }
    conditions
}

// Fifty-five notifications, of which forty-eight are sealed.
fn history(world: &World) {
    for who in ["ada", "bob"] {
        let email = format!("{who}@example.org");
        world.subscriber(json!({ "subscriberId": who, "email": email }));
    }
    world.bare_subscriber("cyd");
    let high = json!({ "severity": "high" });
    world.in_app_workflow("hi");
    world.workflow(with(workflow_of("text", &[sms()]), high));
    world.workflow_of("both", &[sms(), email()]);
    subscribe_all(world, "news", json!({ "subscriptions": ["ada", "cyd"] }));
    let topic = json!({ "type": "Topic", "topicKey": "news" });
    let alpha = json!({ "tenant": "alpha" });
    let contexts = [None, Some(alpha), Some(json!({ "tenant": "beta", "app": "shop" }))];
    for n in 0..22 {
        let to = [json!(["ada", "bob", "cyd"]), json!([topic, "bob"]), json!("ada")][n % 3].clone();
        let crowd = ["bob", "cyd", "ada", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
        let to = if n == 21 { json!(crowd) } else { to };
        let mut fields = json!({ "to": to });
        if let Some(context) = &contexts[n / 2 % 3] {
            fields["context"] = context.clone();
        }
        if n % 3 == 0 {
            fields["transactionId"] = json!(format!("t-{n}"));
        }
        if n % 5 == 0 {
            fields["overrides"] = json!({ "severity": "medium" });
        }
        happen(world, ["hi", "text", "both", "hi"][n % 4], "ada", fields);
    }
    // There is no integration, so that some messages fail, and the others wait.
    world.engine.delivery().run_due(20).unwrap();
}

#[test]
fn a_list_is_in_the_order_of_creation_when_the_clock_goes_back() {
    on_both(|world| {
        world.in_app_workflow("hi");
        for n in 0..40 {
            if n % 3 == 1 {
                let earlier = world.now().as_millis() - 10_000;
                world.clock.set(Timestamp::from_millis(earlier));
            }
            let made = happen(&world, "hi", "ada", json!({ "to": ["ada", "bob"] }));
            let made = world.notification(made);
            assert_eq!((made.created_at, made.updated_at), (world.now(), world.now()));
        }
        let found = all(&world.env, json!({}));
        assert_eq!(found.len(), 80);
        assert!(found.is_sorted_by(|one, next| one.id.ordinal() > next.id.ordinal()));
        assert!(!found.is_sorted_by(|one, next| one.created_at >= next.created_at));
        let times = [0, 7, 40, 41, 79].map(|at| found[at].created_at);
        for (after, before) in times.iter().flat_map(|one| times.iter().map(move |two| (one, two)))
        {
            if after > before {
                continue;
            }
            let expected = found.iter().filter(|one| (after..=before).contains(&&one.created_at));
            let query = json!({ "after": after, "before": before });
            assert_eq!(all(&world.env, query), expected.cloned().collect::<Vec<_>>());
        }
        // So it is in an engine that knows nothing of it.
        let engine = world.another_engine();
        let env = engine.environment(world.env.environment_id()).unwrap();
        assert_eq!(all(&env, json!({})), found);
        assert_eq!(
            all(&env, json!({ "after": times[2] })),
            all(&world.env, json!({ "after": times[2] }))
        );
        intact(&env);
    });
}

/// One row per search: whom it finds.
#[test]
fn a_search_is_for_a_part_of_an_address_in_any_case_or_for_an_id() {
    on_any(|world| {
        world.in_app_workflow("hi");
        for (who, email) in [
            ("ada", Some("Ada.Lovelace@Example.ORG")),
            ("bob", Some("bob+100%@example.com")),
            ("jürgen", Some("JÜRGEN@bücher.example")),
            ("Ödön", Some("odon@straße.example")),
            ("example", None),
            ("gone", Some("gone@example.net")),
        ] {
            world.subscriber(json!({ "subscriberId": who, "email": email }));
            happen(&world, "hi", who, json!({}));
        }
        world.env.subscribers().delete(id("gone")).unwrap();
        let check = |search: &str, expected: &[&str]| {
            let found = all(&world.env, json!({ "search": search }));
            let names = found.iter().rev().map(|one| one.subscriber.as_ref().unwrap());
            let names: Vec<_> = names.map(|one| one.subscriber_id.to_string()).collect();
            assert_eq!(names, expected, "{search}");
        };

        check("love", &["ada"]);
        check("LOVELACE@eXample.org", &["ada"]);
        check("EXAMPLE.", &["ada", "bob"]);
        check("+100%", &["bob"]);
        check("_ada", &[]);
        check("jürgen", &["jürgen"]);
        check("jÜRGEN", &["jürgen"]);
        check("BÜCHER", &["jürgen"]);
        check("bucher", &[]);
        check("straße", &["Ödön"]);
        // By its id exactly.
        check("Ödön", &["Ödön"]);
        check("ödön", &[]);
        check("bob", &["bob"]);
        check("bo", &["bob"]);
        check("example", &["ada", "bob", "jürgen", "Ödön", "example"]);
        check("Example", &["ada", "bob", "jürgen", "Ödön"]);
        check("gone", &[]);
        check("example.net", &[]);
        check("@", &["ada", "bob", "jürgen", "Ödön"]);
        check(" love", &[]);
    });
}

/// So many subscribers share an address that a search holds, and one more.
#[test]
fn a_search_finds_the_notifications_of_very_many_subscribers() {
    const HELD: usize = 4_096;
    let world = World::in_memory();
    world.in_app_workflow("hi");
    let of = |number: usize| format!("s{number}");
    let email = |number: usize| {
        if number.is_multiple_of(2) { "Even@shared.example" } else { "odd@shared.example" }
    };
    let add = |numbers: Range<usize>| {
        let one = |number| json!({ "subscriberId": of(number), "email": email(number) });
        numbers.map(one).for_each(|one| _ = world.subscriber(one));
    };
    add(0..HELD);
    world.subscriber(json!({ "subscriberId": "other", "email": "other@example.org" }));
    for number in (0..HELD).step_by(64).chain(1..64) {
        happen(&world, "hi", &of(number), json!({}));
        happen(&world, "hi", "other", json!({}));
    }
    let searches = [
        json!({ "search": "SHARED" }),
        json!({ "search": "@shared.", "severity": ["none"], "subscriberIds": ["other"] }),
        json!({ "search": "en@s" }),
        json!({ "emails": ["Even@shared.example", "odd@shared.example"] }),
        json!({ "emails": ["Even@shared.example"], "search": "s1" }),
    ];
    let found = || searches.clone().map(|search| ids(&world.env, search));
    let before = found();
    assert_eq!(before.each_ref().map(Vec::len), [127, 254, 95, 127, 96]);
    // From here on they are too many to be held.
    add(HELD..HELD + 2);
    assert_eq!(found(), before);
    for number in HELD..HELD + 2 {
        happen(&world, "hi", &of(number), json!({}));
    }
    let after = found();
    assert_eq!(after.each_ref().map(Vec::len), [129, 256, 96, 129, 97]);
    assert!(after.iter().zip(&before).all(|(after, before)| after.ends_with(before)));
    for (search, found) in searches.into_iter().zip(after) {
        let query = parsed::<NotificationQuery>(search);
        assert_eq!(world.env.notifications().count(&query).unwrap(), found.len() as u64);
    }
}
