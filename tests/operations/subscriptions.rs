//! Subscriptions: putting subscribers into topics, taking them out, and reading what they are in
//! for (operation 9).

mod changing;
mod choosing;
mod refusing;

use serde_json::{Value, json};
use tidings::Result;
use tidings::subscription::{
    Subscribe, Subscription, SubscriptionQuery, Subscriptions, Unsubscribe,
};

use crate::topics::key;
use crate::world::{NO_ID, World, id, names, on_both, only, parsed, wire};

#[test]
fn subscribers_are_put_into_a_topic_that_is_created_if_need_be() {
    on_both(|world| {
        let [ada, bob] = ["ada", "bob"].map(|who| world.bare_subscriber(who));
        let request = json!({
            "subscriptions": ["ada", {
                "subscriberId": "bob", "identifier": "bob's one", "name": "Bob's",
            }],
            "name": "News",
        });

        let answer = subscribe(&world, "news", request);

        let topic = world.env.topics().get(key("news")).unwrap();
        assert_eq!(topic.name.as_deref(), Some("News"));
        let [first, second] = [&answer.data[0], &answer.data[1]];
        let expected = |one: &Subscription, who: &str, internal: Value, identifier: &str| {
            json!({
                "id": one.id,
                "_organizationId": "acme",
                "_environmentId": world.env.environment_id(),
                "_topicId": topic.id,
                "topicKey": "news",
                "_subscriberId": internal,
                "subscriberId": who,
                "identifier": identifier,
                "contextKeys": [],
                "createdAt": world.now(),
                "updatedAt": world.now(),
            })
        };
        let mut bobs = expected(second, "bob", json!(bob.id), "bob's one");
        bobs["name"] = json!("Bob's");
        assert_eq!(
            wire(&answer),
            json!({
                // 9.5
                "data": [expected(first, "ada", json!(ada.id), "tk_news:si_ada"), bobs],
                "meta": { "totalCount": 2, "successful": 2, "failed": 0 },
            })
        );
        // 9.1
        for one in &answer.data {
            assert_eq!(get(&world, "news", one.identifier.as_str()).as_ref(), Some(one));
        }
    });
}

#[test]
fn a_topic_that_is_there_keeps_its_name() {
    on_both(|world| {
        world.bare_subscriber("ada");
        let topic = parsed(json!({ "key": "news", "name": "News" }));
        let topic = world.env.topics().create(&topic).unwrap();
        world.tick();

        subscribe_all(&world, "news", json!({ "subscriptions": ["ada"], "name": "Other" }));

        assert_eq!(world.env.topics().get(key("news")).unwrap(), topic);
    });
}

#[test]
fn what_does_not_work_for_one_keeps_nobody_else_out() {
    on_both(|world| {
        for who in ["ada", "bob", "cyd"] {
            world.bare_subscriber(who);
        }
        subscribe_all(&world, "news", json!({ "subscriptions": [named("ada", "hers")] }));
        let crowd = (0..10).map(|n| named("cyd", &format!("c{n}")));
        subscribe_all(&world, "news", json!({ "subscriptions": crowd.collect::<Vec<_>>() }));

        let answer = subscribe(
            &world,
            "news",
            json!({ "subscriptions": ["eve", named("bob", "hers"), "cyd", "bob", "ada"] }),
        );

        assert_eq!(names(&answer.data, |one| one.subscriber_id.clone()), ["bob", "ada"]);
        assert_eq!(
            wire((answer.meta, answer.errors)),
            json!([
                { "totalCount": 5, "successful": 2, "failed": 3 },
                [
                    {
                        "subscriberId": "eve",
                        "code": "SUBSCRIBER_NOT_FOUND",
                        "message": "subscriber `eve` is not there",
                    },
                    {
                        "subscriberId": "bob",
                        "code": "IDENTIFIER_TAKEN",
                        "message": "subscription `hers` is there already for another subscriber or for other contexts",
                    },
                    {
                        "subscriberId": "cyd",
                        "code": "SUBSCRIPTION_LIMIT_EXCEEDED",
                        "message": "subscriber `cyd` has 10 subscriptions, the most in a topic",
                    },
                ],
            ])
        );
        assert_eq!(subscriptions(&world, "news", json!({ "limit": 100 })).len(), 13);
    });
}

#[test]
fn who_is_in_a_topic_stays_in_it_as_before() {
    on_both(|world| {
        world.bare_subscriber("ada");
        world.in_app_workflow("hi");
        let request = |name: &str, enabled: bool, plan: &str| {
            json!({
                "subscriptions": [{ "subscriberId": "ada", "name": name }],
                "context": { "tenant": { "id": "acme", "data": { "plan": plan } } },
                "preferences": [{ "workflowId": "hi", "enabled": enabled }],
            })
        };
        let first = subscribe(&world, "news", request("first", false, "free"));
        world.tick();

        let again = world.unchanged(|| subscribe(&world, "news", request("second", true, "pro")));

        assert_eq!(again, first);
        assert_eq!(only(only(first.data).preferences).workflow.unwrap().name, "hi");
        // Said twice in one request, it is the same one as well.
        let twice = subscribe(&world, "other", json!({ "subscriptions": ["ada", "ada"] }));
        assert_eq!(twice.data[0], twice.data[1]);
        assert_eq!(subscriptions(&world, "other", json!({})), twice.data[..1]);
    });
}

#[test]
fn a_subscriber_is_in_a_topic_ten_times_at_most() {
    on_both(|world| {
        for who in ["ada", "bob"] {
            world.bare_subscriber(who);
        }
        let ten = |who: &str| -> Vec<Value> {
            (0..10).map(|n| named(who, &format!("{who}-{n}"))).collect()
        };
        let full = json!({ "subscriptions": ten("ada") });
        assert_eq!(subscribe(&world, "news", full.clone()).meta.successful, 10);

        let eleventh = json!({ "subscriptions": [named("ada", "ada-10")] });
        world.refuses(
            "400 each subscription was refused: \
             subscriber `ada` has 10 subscriptions, the most in a topic",
            || world.env.topics().subscribe(key("news"), &parsed(eleventh.clone())),
        );
        // Who is in it is, and others and other topics are not affected.
        assert_eq!(world.unchanged(|| subscribe(&world, "news", full)).meta.successful, 10);
        subscribe_all(&world, "news", json!({ "subscriptions": ten("bob") }));
        subscribe_all(&world, "other", eleventh.clone());
        let third = json!({ "subscriptions": [{ "identifier": "ada-3" }] });
        assert_eq!(unsubscribe(&world, "news", third).unwrap().errors, []);
        assert_eq!(subscribe(&world, "news", eleventh).meta.successful, 1);
        // A request for more than ten of them gets as far as it may.
        let many: Vec<_> = (0..12).map(|n| named("ada", &format!("many-{n}"))).collect();
        let answer = subscribe(&world, "many", json!({ "subscriptions": many }));
        assert_eq!((answer.meta.successful, answer.meta.failed), (10, 2));
    });
}

#[test]
fn a_made_identifier_says_topic_subscriber_and_contexts() {
    on_both(|world| {
        world.bare_subscriber("ada");
        let for_contexts = |context: Value| {
            let request = json!({ "subscriptions": ["ada"], "context": context });
            only(subscribe(&world, "news", request).data)
        };

        // 9.4, 9.6
        let both = for_contexts(json!({ "tenant": "acme", "app": "shop" }));
        let one = for_contexts(json!({ "tenant": "acme" }));
        let none = only(subscribe(&world, "news", json!({ "subscriptions": ["ada"] })).data);

        for (subscription, identifier, keys) in [
            (both, "tk_news:si_ada:ctx_app:shop,tenant:acme", json!(["app:shop", "tenant:acme"])),
            (one, "tk_news:si_ada:ctx_tenant:acme", json!(["tenant:acme"])),
            (none, "tk_news:si_ada", json!([])),
        ] {
            let read = wire(get(&world, "news", identifier));
            assert_eq!((&read["identifier"], &read["contextKeys"]), (&json!(identifier), &keys));
            assert_eq!(read, wire(subscription));
        }
        for context in ["tenant:acme", "app:shop"] {
            world.env.contexts().get(context).unwrap();
        }
    });
}

#[test]
fn the_longest_names_make_an_identifier() {
    on_both(|world| {
        let who = "s".repeat(255);
        world.bare_subscriber(&who);
        let context = |n: usize| (format!("{n}{}", "t".repeat(99)), json!("i".repeat(100)));
        let context: Value = (0..5).map(context).collect();
        let topic = "k".repeat(100);

        let request = json!({ "subscriptions": [who], "context": context });
        let made = only(subscribe(&world, &topic, request).data);

        assert_eq!(get(&world, &topic, made.identifier.as_str()), Some(made));
    });
}

#[test]
fn an_identifier_belongs_to_one_subscription_of_its_topic() {
    on_both(|world| {
        for who in ["ada", "bob"] {
            world.bare_subscriber(who);
        }
        let hers = only(
            subscribe(&world, "news", json!({ "subscriptions": [named("ada", "hers")] })).data,
        );
        // Another subscriber, the same one for other contexts, and a name that is made.
        subscribe_all(&world, "news", json!({ "subscriptions": [named("ada", "tk_news:si_bob")] }));
        let tenant = json!({ "tenant": "acme" });
        for (item, context) in [
            (named("bob", "hers"), Value::Null),
            (named("bob", "hers"), tenant.clone()),
            (named("ada", "hers"), tenant),
            (json!("bob"), Value::Null),
        ] {
            let request = json!({ "subscriptions": [item], "context": context });
            let request: Subscribe = parsed(request);
            let before = world.dump();
            let error = world.env.topics().subscribe(key("news"), &request).unwrap_err();
            assert_eq!(error.status(), 400);
            assert!(wire(&error).to_string().contains("IDENTIFIER_TAKEN"), "{error}");
            assert!(world.dump() == before, "{error} left something behind");
        }
        // It is free in another topic.
        let there = only(
            subscribe(&world, "other", json!({ "subscriptions": [named("bob", "hers")] })).data,
        );
        assert_eq!(get(&world, "news", "hers"), Some(hers));
        assert_eq!(get(&world, "other", "hers"), Some(there));
    });
}

#[test]
fn a_subscription_is_read_by_its_identifier_or_its_id() {
    on_both(|world| {
        world.bare_subscriber("ada");
        let one = only(subscribe(&world, "news", json!({ "subscriptions": ["ada"] })).data);
        subscribe_all(&world, "other", json!({ "subscriptions": [named("ada", "there")] }));
        let id = one.id.to_string();

        // 9.2, as decision 39 has it.
        assert_eq!(get(&world, "news", &id), Some(one.clone()));
        // 9.3, 9.7
        for (topic, name) in [
            ("news", "unknown"),
            ("news", "there"),
            ("news", NO_ID),
            ("unknown", "tk_news:si_ada"),
            ("other", "tk_news:si_ada"),
            ("other", &id),
        ] {
            assert_eq!(get(&world, topic, name), None, "{topic} {name}");
        }
        // An identifier that looks like an id is an identifier first.
        let odd =
            only(subscribe(&world, "news", json!({ "subscriptions": [named("ada", &id)] })).data);
        assert_ne!(odd.id, one.id);
        assert_eq!(get(&world, "news", &id), Some(odd));
    });
}

/// One row per query: what it finds, newest first.
#[test]
fn subscriptions_are_listed_by_subscriber_and_contexts() {
    let rows = [
        (json!({}), "ada-both,ada-acme,bob-acme,bob,ada"),
        (json!({ "subscriberId": "ada" }), "ada-both,ada-acme,ada"),
        (json!({ "subscriberId": "cyd" }), ""),
        (json!({ "subscriberId": "eve" }), ""),
        (json!({ "contextKeys": ["tenant:acme"] }), "ada-acme,bob-acme"),
        (json!({ "contextKeys": ["tenant:acme", "app:shop"] }), "ada-both"),
        (json!({ "contextKeys": ["app:shop"] }), ""),
        (json!({ "contextKeys": [] }), "bob,ada"),
        (json!({ "subscriberId": "ada", "contextKeys": [] }), "ada"),
        (json!({ "subscriberId": "ada", "contextKeys": ["tenant:acme"] }), "ada-acme"),
        (json!({ "orderDirection": "ASC", "limit": 2 }), "ada,bob"),
    ];
    on_both(|world| {
        for who in ["ada", "bob", "cyd"] {
            world.bare_subscriber(who);
        }
        let acme = json!({ "tenant": "acme" });
        for (items, context) in [
            (vec![named("ada", "ada"), named("bob", "bob")], Value::Null),
            (vec![named("bob", "bob-acme"), named("ada", "ada-acme")], acme),
            (vec![named("ada", "ada-both")], json!({ "app": "shop", "tenant": "acme" })),
        ] {
            subscribe_all(&world, "news", json!({ "subscriptions": items, "context": context }));
        }
        subscribe_all(&world, "newsletter", json!({ "subscriptions": ["ada", "cyd"] }));
        for (query, expected) in &rows {
            let found = subscriptions(&world, "news", query.clone());
            let found = names(&found, |one| one.identifier.clone());
            assert_eq!(found.join(","), *expected, "{query}");
        }
        let refusal = "404 topic `unknown` is not there";
        let query = SubscriptionQuery::default();
        world.refuses(refusal, || world.env.topics().subscriptions(key("unknown"), &query));
    });
}

#[test]
fn the_subscriptions_of_a_subscriber_are_listed_over_all_topics() {
    on_both(|world| {
        for who in ["ada", "bob"] {
            world.bare_subscriber(who);
        }
        // Those of a topic are not one behind the other.
        for (topic, who, identifier) in [
            ("news", "ada", "first"),
            ("prices", "ada", "second"),
            ("news", "bob", "bob's"),
            ("sport", "bob", "bob's other"),
            ("news", "ada", "third"),
            ("culture", "ada", "fourth"),
        ] {
            world.tick();
            subscribe_all(&world, topic, json!({ "subscriptions": [named(who, identifier)] }));
        }
        let tenant =
            json!({ "subscriptions": [named("ada", "fifth")], "context": { "tenant": "acme" } });
        world.tick();
        subscribe_all(&world, "news", tenant);

        let of = |who: &str, query: Value| {
            let page = world.env.subscribers().subscriptions(id(who), &parsed(query)).unwrap();
            names(&page.data, |one| format!("{} {}", one.topic_key, one.identifier))
        };
        let all = ["news fifth", "culture fourth", "news third", "prices second", "news first"];
        assert_eq!(of("ada", json!({})), all);
        let ascending = json!({ "orderDirection": "ASC", "contextKeys": [] });
        assert_eq!(
            of("ada", ascending),
            ["news first", "prices second", "news third", "culture fourth"]
        );
        assert_eq!(of("ada", json!({ "contextKeys": ["tenant:acme"] })), ["news fifth"]);
        assert_eq!(of("ada", json!({ "subscriberId": "ada" })), all);
        assert!(of("ada", json!({ "subscriberId": "bob" })).is_empty());
        assert_eq!(of("bob", json!({})), ["sport bob's other", "news bob's"]);

        let page = |query: &SubscriptionQuery| {
            world.env.subscribers().subscriptions(id("ada"), query).unwrap()
        };
        for limit in 1..=6 {
            let mut query = SubscriptionQuery::default().limit(limit);
            let mut found = Vec::new();
            loop {
                let part = page(&query);
                assert_eq!(part.total.number(), all.len());
                found.extend(names(&part.data, |one| {
                    format!("{} {}", one.topic_key, one.identifier)
                }));
                let Some(next) = part.next else { break };
                query = query.after(next);
            }
            assert_eq!(found, all, "pages of {limit}");
        }

        world.env.topics().delete(key("news")).unwrap();
        assert_eq!(of("ada", json!({})), ["culture fourth", "prices second"]);
        let missing = "404 subscriber `nobody` is not there";
        let query = SubscriptionQuery::default();
        world.refuses(missing, || world.env.subscribers().subscriptions("nobody", &query));
    });
}

/// Does what `request` says with the topic of that key.
#[track_caller]
pub fn subscribe(world: &World, topic: &str, request: Value) -> Subscriptions {
    let request: Subscribe = parsed(request);
    world.env.topics().subscribe(key(topic), &request).unwrap()
}

/// Subscribes as `request` says, and checks that each item has succeeded.
#[track_caller]
pub fn subscribe_all(world: &World, topic: &str, request: Value) {
    assert_eq!(subscribe(world, topic, request).errors, []);
}

/// The subscriptions in the topic of that key that match `query`.
pub fn subscriptions(world: &World, topic: &str, query: Value) -> Vec<Subscription> {
    world.env.topics().subscriptions(key(topic), &parsed(query)).unwrap().data
}

fn unsubscribe(world: &World, topic: &str, request: Value) -> Result<Subscriptions> {
    let request: Unsubscribe = parsed(request);
    world.env.topics().unsubscribe(key(topic), &request)
}

fn get(world: &World, topic: &str, name: &str) -> Option<Subscription> {
    world.env.topics().find_subscription(key(topic), name).unwrap()
}

fn named(subscriber: &str, identifier: &str) -> Value {
    json!({ "subscriberId": subscriber, "identifier": identifier })
}

// What a subscription says about workflows that are there, by their identifiers.
fn said(subscription: &Subscription) -> Vec<(String, bool)> {
    let said = subscription.preferences.iter().filter_map(|preference| {
        let workflow = preference.workflow.as_ref()?;
        Some((workflow.identifier.to_string(), preference.enabled))
    });
    said.collect()
}
