//! Destinations of a subscriber at chat and push integrations, set and removed one by one.

use serde_json::{Value, json};
use tidings::ids::IntegrationId;
use tidings::subscriber::ChannelSettings;

use crate::world::{World, on_both, parsed};

fn settings(integration: IntegrationId, credentials: &Value) -> ChannelSettings {
    parsed(json!({
        "providerId": "fcm", "_integrationId": integration, "credentials": credentials,
    }))
}

fn known(world: &World) -> Value {
    let channels = world.env.subscribers().get("ada").unwrap().profile.channels;
    channels.iter().map(|channel| json!(channel.credentials)).collect()
}

#[test]
fn a_destination_is_added_merged_and_removed() {
    on_both(|world| {
        world.bare_subscriber("ada");
        let [fcm, expo] = ["fcm", "expo"].map(|name| world.active_integration("push", name).id);
        let subscribers = world.env.subscribers();
        let set = |integration, credentials: Value| {
            world.tick();
            subscribers.set_channel("ada", &settings(integration, &credentials)).unwrap()
        };

        let added = set(fcm, json!({ "deviceTokens": ["phone"], "title": "One" }));
        assert_eq!((added.version, added.updated_at), (1, world.now()));
        set(expo, json!({ "deviceTokens": ["watch"] }));
        set(fcm, json!({ "deviceTokens": ["tablet", "phone"], "channel": "c" }));
        let both = json!([
            { "deviceTokens": ["phone", "tablet"], "title": "One", "channel": "c" },
            { "deviceTokens": ["watch"] },
        ]);
        assert_eq!(known(&world), both);
        // What is there already changes nothing.
        let again = set(fcm, json!({ "deviceTokens": ["phone"] }));
        assert_eq!(again.version, 3);

        let left = subscribers.remove_channel("ada", fcm).unwrap();
        assert_eq!((left.version, left.profile.channels.len()), (4, 1));
        assert_eq!(subscribers.remove_channel("ada", fcm).unwrap(), left);
        subscribers.remove_channel("ada", expo).unwrap();
        assert_eq!(known(&world), json!([]));
    });
}

#[test]
fn a_destination_that_cannot_be_set_is_refused() {
    on_both(|world| {
        world.bare_subscriber("ada");
        let fcm = world.active_integration("push", "fcm").id;
        let subscribers = world.env.subscribers();
        let tokens = |from: usize, to: usize| {
            let tokens: Vec<_> = (from..to).map(|number| number.to_string()).collect();
            settings(fcm, &json!({ "deviceTokens": tokens }))
        };
        subscribers.set_channel("ada", &tokens(0, 100)).unwrap();
        let full = "422 `credentials.deviceTokens` must have at most 100 items";
        world.refuses(full, || subscribers.set_channel("ada", &tokens(100, 101)));
        world.refuses("404 subscriber `bob` is not there", || {
            subscribers.set_channel("bob", &tokens(0, 1))
        });
        world.refuses("404 subscriber `bob` is not there", || {
            subscribers.remove_channel("bob", fcm)
        });
        for number in 0..99 {
            let other = world.active_integration("push", &format!("push-{number}")).id;
            subscribers.set_channel("ada", &settings(other, &json!({}))).unwrap();
        }
        let one_more = settings(world.active_integration("chat", "slack").id, &json!({}));
        let full = "422 `channels` must have at most 100 items";
        world.refuses(full, || subscribers.set_channel("ada", &one_more));
    });
}

#[test]
fn a_destination_of_an_integration_without_destinations_is_refused() {
    on_both(|world| {
        world.bare_subscriber("ada");
        let subscribers = world.env.subscribers();
        let nowhere: IntegrationId = uuid::Uuid::from_u128(1).into();
        let missing = format!("404 integration `{nowhere}` is not there");
        let devices = json!({ "deviceTokens": ["phone"] });
        world.refuses(&missing, || subscribers.set_channel("ada", &settings(nowhere, &devices)));
        for channel in ["email", "sms", "in_app"] {
            let other = world.active_integration(channel, channel).id;
            let wrong = "422 `_integrationId` must be the id of a chat or push integration";
            world.refuses(wrong, || subscribers.set_channel("ada", &settings(other, &devices)));
        }
        // A profile may have it: a trigger does not fail because an integration was deleted.
        let inline = json!({ "subscriberId": "ada", "channels": [settings(nowhere, &devices)] });
        subscribers.upsert(&parsed(inline)).unwrap();
        assert_eq!(known(&world), json!([devices]));
    });
}

#[test]
fn one_device_is_signed_out() {
    on_both(|world| {
        world.bare_subscriber("ada");
        let [fcm, expo] = ["fcm", "expo"].map(|name| world.active_integration("push", name).id);
        let subscribers = world.env.subscribers();
        for integration in [fcm, expo] {
            let devices = json!({ "deviceTokens": ["phone", "tablet"] });
            subscribers.set_channel("ada", &settings(integration, &devices)).unwrap();
        }
        world.tick();
        let left = subscribers.remove_device("ada", fcm, "phone").unwrap();
        assert_eq!((left.version, left.updated_at), (3, world.now()));
        let expected = json!([
            { "deviceTokens": ["tablet"] }, { "deviceTokens": ["phone", "tablet"] },
        ]);
        assert_eq!(known(&world), expected);
        world.tick();
        // A token that is not there changes nothing, whatever its length.
        for token in ["phone", "", &"x".repeat(100_000)] {
            assert_eq!(subscribers.remove_device("ada", fcm, token).unwrap(), left);
        }
        world.refuses("404 subscriber `bob` is not there", || {
            subscribers.remove_device("bob", fcm, "phone")
        });
    });
}

/// A recipient with a profile adds its destinations to those of the subscriber, as `upsert` does.
#[test]
fn a_trigger_adds_destinations() {
    on_both(|world| {
        world.bare_subscriber("ada");
        world.in_app_workflow("hi");
        let [fcm, expo] = ["fcm", "expo"].map(|name| world.active_integration("push", name).id);
        let one = |integration, token: &str| {
            let channels = [settings(integration, &json!({ "deviceTokens": [token] }))];
            json!({ "subscriberId": "ada", "channels": channels })
        };
        let subscribers = world.env.subscribers();
        subscribers.upsert(&parsed(one(fcm, "phone"))).unwrap();
        subscribers.upsert(&parsed(one(expo, "watch"))).unwrap();
        let to = |recipient: Value| parsed(json!({ "name": "hi", "to": recipient }));
        world.env.events().trigger(&to(one(fcm, "tablet"))).unwrap();
        let all = json!([{ "deviceTokens": ["phone", "tablet"] }, { "deviceTokens": ["watch"] }]);
        assert_eq!(known(&world), all);

        let many: Vec<_> = (0..99).map(|number| number.to_string()).collect();
        let full = json!({
            "subscriberId": "ada", "channels": [settings(fcm, &json!({ "deviceTokens": many }))],
        });
        let refusal = "422 `channels[0].credentials.deviceTokens` must have at most 100 items";
        world.refuses(refusal, || subscribers.upsert(&parsed(full.clone())));
        let events = world.env.events();
        let placed = |place: &str| refusal.replace("channels[0]", &format!("{place}.channels[0]"));
        world.refuses(&placed("to"), || events.trigger(&to(full.clone())));
        world.refuses(&placed("to[1]"), || events.trigger(&to(json!(["bob", full.clone()]))));
        let by = json!({ "name": "hi", "to": "bob", "actor": full });
        world.refuses(&placed("actor"), || events.trigger(&parsed(by.clone())));
    });
}
