//! Subscribers: creating, upserting, reading, listing, deleting, and changing them (operation 3).

mod bulk;
mod channels;
mod erasing;
mod list;
mod online;

use serde_json::{Value, json};
use store::Table;
use tidings::SeededEntropy;
use tidings::ids::SubscriberId;
use tidings::message::MarkAs;
use tidings::subscriber::{Subscriber, SubscriberCreate, SubscriberUpdate};

use crate::world::{NO_ID, START, World, id, on_both, only, parsed, unreadable, wire, with};

#[test]
fn a_new_subscriber_is_as_it_was_described() {
    on_both(|world| {
        let created = world.subscriber(full());

        assert_eq!(
            wire(&created),
            with(
                full(),
                json!({
                    "_id": created.id,
                    "__v": 0,
                    "_organizationId": "acme",
                    "_environmentId": world.env.environment_id(),
                    "deleted": false,
                    "createdAt": START,
                    "updatedAt": START,
                })
            )
        );
        assert_eq!(get(&world, "ada"), created);

        let bare = wire(world.bare_subscriber("bob"));
        let mut fields: Vec<_> = bare.as_object().unwrap().keys().cloned().collect();
        fields.sort();
        assert_eq!(
            fields,
            [
                "__v",
                "_environmentId",
                "_id",
                "_organizationId",
                "createdAt",
                "deleted",
                "subscriberId",
                "updatedAt",
            ]
        );
    });
}

#[test]
fn an_id_can_be_anything_readable() {
    on_both(|world| {
        let longest = "x".repeat(255);
        for name in ["a", "a b", "ü/ß:%", "ada@example.org", "🦀", &longest] {
            let created = world.bare_subscriber(name);
            assert_eq!(get(&world, name), created);
        }
    });
    let check = |raw: &str, text: &str| {
        assert_eq!(SubscriberId::new(raw).unwrap_err().to_string(), text);
        let create = json!({ "subscriberId": raw });
        assert_eq!(unreadable::<SubscriberCreate>(create), text);
    };
    check("", "`subscriberId` must not be empty");
    check(&"x".repeat(256), "`subscriberId` must be at most 255 bytes long");
    check("a\nb", "`subscriberId` must be text without control characters");
    assert_eq!(unreadable::<SubscriberCreate>(json!({})), "missing field `subscriberId`");
}

#[test]
fn what_cannot_be_created_is_refused() {
    on_both(|world| {
        world.subscriber(full());
        let crowded = |id: &str| {
            let tokens = vec!["token"; 101];
            let channel = json!({
                "providerId": "fcm",
                "_integrationId": NO_ID,
                "credentials": { "deviceTokens": tokens },
            });
            parsed::<SubscriberCreate>(json!({ "subscriberId": id, "channels": [channel] }))
        };
        let refusal = "422 `channels[0].credentials.deviceTokens` must have at most 100 items";

        let again = parsed::<SubscriberCreate>(json!({ "subscriberId": "ada" }));
        world.refuses("409 subscriber `ada` is there already", || {
            world.env.subscribers().create(&again)
        });
        world.refuses(refusal, || world.env.subscribers().create(&crowded("bob")));
        world.refuses(refusal, || world.env.subscribers().upsert(&crowded("ada")));
    });
}

#[test]
fn an_upsert_keeps_what_it_does_not_name() {
    on_both(|world| {
        let created = upsert(&world, full());
        let at = world.tick();

        let changed = upsert(
            &world,
            json!({
                "subscriberId": "ada", "lastName": "King", "data": { "b": 2 },
            }),
        );
        let expected = json!({
            "lastName": "King", "data": { "b": 2 }, "__v": 1, "updatedAt": at,
        });
        assert_eq!(wire(&changed), with(wire(created), expected));
        assert_eq!(get(&world, "ada"), changed);

        world.tick();
        let same = json!({ "subscriberId": "ada", "lastName": "King" });
        assert_eq!(world.unchanged(|| upsert(&world, same)), changed);
    });
}

/// One row per update: what is different afterwards. All else is as it was.
#[test]
fn an_update_changes_what_it_names() {
    on_both(|world| {
        let created = world.subscriber(full());
        let check = |update: Value, different: Value| {
            let before = wire(get(&world, "ada"));
            let at = world.tick();

            let updated = change(&world, "ada", update);

            let version = before["__v"].as_u64().unwrap() + 1;
            let changed = with(before, json!({ "__v": version, "updatedAt": at }));
            assert_eq!(shown(&updated), without_nulls(with(changed, different)));
            assert_eq!(get(&world, "ada"), updated);
        };

        // 3.1, 3.10
        let names = json!({ "firstName": "Augusta", "lastName": "Byron" });
        check(names.clone(), names);
        // 3.5
        let empty = json!({ "firstName": "", "lastName": "", "phone": "", "avatar": "" });
        check(empty.clone(), empty);
        // 3.4
        let nulls = json!({ "firstName": null, "lastName": null, "phone": null, "avatar": null });
        check(nulls.clone(), nulls);
        // 3.6
        let nulls = json!({ "email": null, "locale": null, "timezone": null });
        check(nulls.clone(), nulls);
        check(
            json!({ "email": "a@example.org", "locale": "zh-hant-tw", "timezone": "Asia/Taipei" }),
            json!({ "email": "a@example.org", "locale": "zh_Hant_TW", "timezone": "Asia/Taipei" }),
        );
        // 3.12
        check(json!({ "data": { "b": 2 } }), json!({ "data": { "b": 2 } }));
        // 3.9
        check(json!({ "data": null }), json!({ "data": null }));
        // 3.11
        check(json!({ "subscriberId": "bob", "phone": "1" }), json!({ "phone": "1" }));

        let now = get(&world, "ada");
        assert_eq!((now.id, now.created_at), (created.id, created.created_at));
    });
}

#[test]
fn an_update_that_changes_nothing_leaves_everything_as_it_was() {
    on_both(|world| {
        let created = world.subscriber(full());
        world.tick();

        // 3.3
        for same in [json!({}), json!({ "firstName": "Ada", "unknown": 1 })] {
            assert_eq!(world.unchanged(|| change(&world, "ada", same)), created);
        }
    });
}

#[test]
fn an_update_of_nobody_is_refused() {
    on_both(|world| {
        world.subscriber(full());
        let update = || parsed::<SubscriberUpdate>(json!({ "firstName": "Eve" }));
        let production = world.production();

        // 3.2
        let refusal = "404 subscriber `eve` is not there";
        world.refuses(refusal, || world.env.subscribers().update(id("eve"), &update()));
        world.refuses(refusal, || world.env.subscribers().get(id("eve")));
        world.refuses(refusal, || world.env.subscribers().delete(id("eve")));
        let refusal = "404 subscriber `ada` is not there";
        world.refuses(refusal, || production.subscribers().update(id("ada"), &update()));
        world.refuses(refusal, || production.subscribers().get(id("ada")));
        world.refuses(refusal, || production.subscribers().delete(id("ada")));
    });
}

#[test]
fn an_update_that_cannot_be_read_is_refused() {
    #[track_caller]
    fn check(update: Value, text: &str) {
        assert_eq!(unreadable::<SubscriberUpdate>(update.clone()), text);
        let create = with(json!({ "subscriberId": "ada" }), update);
        assert_eq!(unreadable::<SubscriberCreate>(create), text);
    }

    // 3.7
    check(json!({ "email": "" }), "`email` must not be empty");
    check(json!({ "locale": "" }), "`locale` must not be empty");
    check(json!({ "timezone": "" }), "`timezone` must not be empty");
    // 3.8
    check(json!({ "email": "invalid-email" }), "`email` must be an e-mail address");
    let long = format!("{}@example.org", "x".repeat(250));
    check(json!({ "email": long }), "`email` must be at most 254 bytes long");
    let locale = "`locale` must be a locale such as `en` or `en_US`";
    check(json!({ "locale": "!!!invalid!!!" }), locale);
    check(json!({ "timezone": "Invalid/Timezone" }), "`timezone` must be an IANA time zone");
    let deep = (0..65).fold(json!(0), |inner, _| json!({ "in": inner }));
    check(json!({ "data": deep }), "`object` must be nested at most 64 levels deep");
    for data in [json!([]), json!("text"), json!(1)] {
        let text = unreadable::<SubscriberUpdate>(json!({ "data": data }));
        assert!(text.starts_with("invalid type: "), "{text}");
    }
}

#[test]
fn what_is_deleted_is_gone_with_everything_it_had() {
    on_both(|world| {
        world.in_app_workflow("hi");
        world.subscriber(full());
        world.notify("hi", "ada");
        let ada = id("ada");
        let preferences = json!({ "channels": { "email": false } });
        world.env.preferences(&ada).unwrap().update_global(&parsed(preferences)).unwrap();
        let word = json!([{ "workflowId": "hi", "channels": { "email": false } }]);
        let words = parsed(json!({ "preferences": word, "context": { "tenant": "acme" } }));
        world.env.preferences(&ada).unwrap().update_bulk(&words).unwrap();
        assert_eq!(world.env.inbox(&ada).unwrap().mark_all(MarkAs::Read).unwrap(), 1);
        let internal = get(&world, "ada").id;
        let own = [
            Table::Subscribers,
            Table::SubscriberIds,
            Table::SubscriberEmails,
            Table::SubscriberPhones,
            Table::Messages,
            Table::MessageLists,
            Table::MessageCounters,
            Table::MessageChanges,
            Table::Preferences,
            Table::WorkflowPreferences,
        ];
        for table in own {
            assert_ne!(world.rows(table), 0, "{table:?}");
        }

        world.env.subscribers().delete(&ada).unwrap();

        for table in own {
            assert_eq!(world.rows(table), 0, "{table:?}");
        }
        world.refuses("404 subscriber `ada` is not there", || world.env.subscribers().get(&ada));
        assert_eq!(only(world.notifications(json!({}))).subscriber_id, internal);

        // Somebody else may have the name.
        let next = world.bare_subscriber("ada");
        assert_ne!(next.id, internal);
        assert_eq!(world.inbox("ada"), []);
        assert!(
            world.env.preferences(&ada).unwrap().get(&parsed(json!({}))).unwrap().global.enabled
        );
    });
}

#[test]
fn addresses_of_chats_are_not_printed() {
    on_both(|world| {
        let created = world.subscriber(json!({ "subscriberId": "ada", "channels": [{
            "providerId": "slack",
            "_integrationId": NO_ID,
            "credentials": { "webhookUrl": "https://hush.example", "channel": "general" },
        }] }));

        for shown in [format!("{created:?}"), wire(created.clone().redacted()).to_string()] {
            assert!(shown.contains("general") && !shown.contains("hush"), "{shown}");
        }
        assert!(wire(created).to_string().contains("hush"));
    });
}

fn full() -> Value {
    json!({
        "subscriberId": "ada",
        "firstName": "Ada",
        "lastName": "Lovelace",
        "email": "ada@example.org",
        "phone": "+4912345",
        "avatar": "https://example.org/ada.png",
        "locale": "en_GB",
        "timezone": "Europe/London",
        "data": { "a": 1 },
    })
}

fn get(world: &World, name: &str) -> Subscriber {
    world.env.subscribers().get(id(name)).unwrap()
}

fn upsert(world: &World, create: Value) -> Subscriber {
    world.env.subscribers().upsert(&parsed(create)).unwrap()
}

fn change(world: &World, name: &str, update: Value) -> Subscriber {
    world.env.subscribers().update(id(name), &parsed(update)).unwrap()
}

// A subscriber on the wire, on which what there is nothing to say about may be left out.
fn shown(subscriber: &Subscriber) -> Value {
    without_nulls(wire(subscriber))
}

fn without_nulls(mut json: Value) -> Value {
    json.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    json
}

/// Two engines with the same seed make the same ids at the same time.
#[test]
fn a_subscriber_whose_id_another_one_has_is_refused() {
    on_both(|world| {
        let scope = || {
            let engine = world.engine_with(|builder| builder.entropy(SeededEntropy::new(99)));
            engine.environment(world.env.environment_id()).unwrap()
        };
        let [one, other, third] = [(); 3].map(|()| scope());
        let create = |id: &str| parsed(json!({ "subscriberId": id }));
        let ada = one.subscribers().create(&create("ada")).unwrap();
        world.in_app_workflow("hi");
        world.notify("hi", "ada");

        let refusal = format!("409 subscriber `{}` is there already", ada.id);
        world.refuses(&refusal, || other.subscribers().create(&create("bob")));
        let bulk = [create("bob"), create("cy")];
        world.refuses(&refusal, || third.subscribers().upsert_bulk(&bulk));

        assert_eq!(world.inbox("ada").len(), 1);
        other.subscribers().create(&create("bob")).unwrap();
        assert_eq!(world.inbox("bob").len(), 0);
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}
