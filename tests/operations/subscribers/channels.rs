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
        for number in 0..99_u128 {
            let other = uuid::Uuid::from_u128(number + 1).into();
            subscribers.set_channel("ada", &settings(other, &json!({}))).unwrap();
        }
        let one_more = settings(uuid::Uuid::from_u128(1_000).into(), &json!({}));
        let full = "422 `channels` must have at most 100 items";
        world.refuses(full, || subscribers.set_channel("ada", &one_more));
    });
}
