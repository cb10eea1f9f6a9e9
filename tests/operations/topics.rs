//! Topics: creating, renaming and deleting them (operation 11).

use serde_json::{Value, json};
use tidings::ids::{SubscriptionIdentifier, TopicKey};
use tidings::topic::{Topic, TopicCreate, TopicQuery, TopicUpdate};

use crate::subscriptions::{subscribe, subscribe_all, subscriptions};
use crate::world::{World, changed, on_both, only, parsed, unreadable, wire};

#[test]
fn a_new_topic_is_as_it_was_described() {
    on_both(|world| {
        // 11.5
        let named = create(&world, json!({ "key": "news:eu.1_x-y", "name": "News" }));
        let bare = create(&world, json!({ "key": "team+a@example.org" }));

        let expected = |topic: &Topic| {
            json!({
                "_id": topic.id,
                "_organizationId": "acme",
                "_environmentId": world.env.environment_id(),
                "key": topic.key,
                "createdAt": world.now(),
                "updatedAt": world.now(),
            })
        };
        let mut with_name = expected(&named);
        with_name["name"] = json!("News");
        assert_eq!(wire(&named), with_name);
        assert_eq!(wire(&bare), expected(&bare));
        for topic in [named, bare] {
            assert_eq!(world.env.topics().get(&topic.key).unwrap(), topic);
        }
    });
}

#[test]
fn a_topic_is_created_once() {
    on_both(|world| {
        create(&world, json!({ "key": "news", "name": "News" }));
        let again: TopicCreate = parsed(json!({ "key": "news" }));

        let refusal = "409 topic `news` is there already";
        world.refuses(refusal, || world.env.topics().create(&again));

        // The same key elsewhere is another topic, and so is it in another case.
        let there = world.production().topics().create(&again).unwrap();
        let other = create(&world, json!({ "key": "NEWS" }));
        let news = world.env.topics().get(key("news")).unwrap();
        assert_eq!(news.name.as_deref(), Some("News"));
        assert!(news.id != there.id && news.id != other.id);
    });
}

#[test]
fn an_upsert_creates_a_topic_or_gives_it_what_is_said() {
    on_both(|world| {
        let upsert = |fields: Value| world.env.topics().upsert(&parsed(fields)).unwrap();

        let created = upsert(json!({ "key": "news", "name": "News" }));
        assert_eq!(created.created_at, world.now());

        world.tick();
        // What is not said stays, and what says the same changes nothing.
        for same in [json!({ "key": "news" }), json!({ "key": "news", "name": "News" })] {
            assert_eq!(world.unchanged(|| upsert(same)), created);
        }
        let at = world.now();
        let renamed = upsert(json!({ "key": "news", "name": "Newer" }));
        let name = Some("Newer".into());
        assert_eq!(
            renamed,
            changed(created, |it| {
                it.name = name;
                it.updated_at = at;
            })
        );
        assert_eq!(world.env.topics().get(key("news")).unwrap(), renamed);
    });
}

#[test]
fn a_topic_is_renamed_and_its_name_is_cleared() {
    on_both(|world| {
        let news = create(&world, json!({ "key": "news", "name": "News" }));
        let update = |fields: Value| {
            let update: TopicUpdate = parsed(fields);
            world.env.topics().update(key("news"), &update).unwrap()
        };

        let at = world.tick();
        for same in [json!({}), json!({ "name": "News" }), json!({ "key": "other" })] {
            assert_eq!(world.unchanged(|| update(same)), news);
        }
        let name = Some("Ünïcode".into());
        let renamed = update(json!({ "name": "Ünïcode" }));
        assert_eq!(
            renamed,
            changed(news.clone(), |it| {
                it.name = name;
                it.updated_at = at;
            })
        );
        let at = world.tick();
        let cleared = update(json!({ "name": null }));
        assert_eq!(
            cleared,
            changed(news, |it| {
                it.name = None;
                it.updated_at = at;
            })
        );
        assert_eq!(world.env.topics().get(key("news")).unwrap(), cleared);
    });
}

#[test]
fn a_deleted_topic_takes_its_subscriptions_with_it() {
    on_both(|world| {
        world.in_app_workflow("hi");
        for who in ["ada", "bob"] {
            world.bare_subscriber(who);
        }
        let both = json!({ "subscriptions": ["ada", "bob"] });
        for topic in ["news", "newsletter"] {
            subscribe_all(&world, topic, both.clone());
        }
        let gone = world.env.topics().get(key("news")).unwrap();

        world.env.topics().delete(key("news")).unwrap();

        let refusal = "404 topic `news` is not there";
        world.refuses(refusal, || world.env.topics().get(key("news")));
        world.refuses(refusal, || world.env.topics().delete(key("news")));
        assert_eq!(subscriptions(&world, "newsletter", json!({})).len(), 2);
        // Nothing of it is left for one that is created again.
        let again = create(&world, json!({ "key": "news" }));
        assert_ne!(again.id, gone.id);
        assert_eq!(subscriptions(&world, "news", json!({})), []);
        let event = json!({ "name": "hi", "to": { "type": "Topic", "topicKey": "news" } });
        assert_eq!(world.trigger(event).notifications, []);
        assert_eq!(subscribe(&world, "news", both).meta.successful, 2);
    });
}

#[test]
fn what_is_in_another_environment_is_not_there() {
    on_both(|world| {
        world.bare_subscriber("ada");
        let one = only(subscribe(&world, "news", json!({ "subscriptions": ["ada"] })).data);
        let news = key("news");
        for there in [world.production(), world.elsewhere()] {
            let topics = there.topics();
            let refusal = "404 topic `news` is not there";
            world.refuses(refusal, || topics.get(&news));
            world.refuses(refusal, || topics.update(&news, &parsed(json!({ "name": "x" }))));
            world.refuses(refusal, || topics.delete(&news));
            world.refuses(refusal, || topics.subscriptions(&news, &parsed(json!({}))));
            let nobody = parsed(json!({ "subscriptions": ["ada"] }));
            world.refuses(refusal, || topics.unsubscribe(&news, &nobody));
            let nothing = parsed(json!({}));
            world.refuses(refusal, || topics.update_subscription(&news, &one.identifier, &nothing));
            let id: SubscriptionIdentifier = one.id.to_string().parse().unwrap();
            for name in [&one.identifier, &id] {
                assert_eq!(topics.find_subscription(&news, name).unwrap(), None);
            }
            // 11.9
            assert_eq!(topics.list(&TopicQuery::default()).unwrap().data, []);
        }
    });
}

#[test]
fn a_topic_with_a_name_that_no_rule_allows_is_refused() {
    on_both(|world| {
        create(&world, json!({ "key": "news" }));
        let empty = "422 `name` must not be empty";
        let long = "422 `name` must be at most 100 characters long";
        let control = "422 `name` must be text without control characters";
        for (name, refusal) in [("", empty), (&"ü".repeat(101), long), ("a\0b", control)] {
            let topics = world.env.topics();
            for key in ["news", "other"] {
                let create: TopicCreate = parsed(json!({ "key": key, "name": name }));
                world.refuses(refusal, || topics.create(&create));
                world.refuses(refusal, || topics.upsert(&create));
                let update: TopicUpdate = parsed(json!({ "name": name }));
                world.refuses(refusal, || topics.update(key, &update));
            }
        }
    });
    let form = "`topicKey` must be letters, digits, `_`, `:`, `.` and `-`, or an e-mail address";
    for (key, text) in [
        (json!(""), "`topicKey` must not be empty"),
        (json!("k".repeat(101)), "`topicKey` must be at most 100 characters long"),
        (json!("a b"), form),
        (json!("a/b"), form),
        (json!("ä"), form),
        (json!("a\0b"), form),
        (json!("@example.org"), form),
        (json!(null), "invalid type: null, expected a string"),
    ] {
        assert_eq!(unreadable::<TopicCreate>(json!({ "key": key })), text);
    }
    assert_eq!(unreadable::<TopicCreate>(json!({})), "missing field `key`");
}

/// A topic key.
pub fn key(key: &str) -> TopicKey {
    key.parse().unwrap()
}

fn create(world: &World, fields: Value) -> Topic {
    world.env.topics().create(&parsed(fields)).unwrap()
}
