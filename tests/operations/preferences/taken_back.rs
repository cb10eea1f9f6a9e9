//! Settings that are taken back: a wider layer decides again.

use serde_json::{Value, json};
use tidings::store::Table;

use super::{all, bulk, get, update_global};
use crate::world::{Counts, World, email, in_app, on_both, only, wire, with};

// Whether `hi` may send e-mail, and the layer that decides.
fn email_of(world: &World) -> (bool, String) {
    let shown = wire(&get(world, json!({})).workflows[0]);
    let [_, email, ..] = &shown["overrides"].as_array().unwrap()[..] else { panic!("{shown}") };
    (shown["channels"]["email"] == true, email["layer"].as_str().unwrap().to_owned())
}

fn say(world: &World, channels: &Value) {
    bulk::update(world, json!([{ "workflowId": "hi", "channels": channels }]));
}

fn stored(world: &World) -> usize {
    world.rows(Table::Preferences)
}

#[test]
fn a_channel_follows_the_wider_layer_again() {
    on_both(|world| {
        world.bare_subscriber("ada");
        world.workflow_of("hi", &[email()]);
        update_global(&world, json!({ "channels": { "email": false } }));
        say(&world, &json!({ "email": true, "sms": false }));
        assert_eq!(email_of(&world), (true, "subscriber_workflow".into()));

        say(&world, &json!({ "email": null }));
        assert_eq!(email_of(&world), (false, "subscriber_global".into()));
        assert_eq!(wire(get(&world, json!({})).workflows[0].channels)["sms"], false);
        let updated = update_global(&world, json!({ "channels": { "email": null } }));
        assert_eq!(wire(updated.channels), all(true));
        assert_eq!(email_of(&world), (true, "default".into()));
        // What has no setting has none to take back.
        world.unchanged(|| say(&world, &json!({ "email": null, "push": null })));
    });
}

/// The subscriber has no preference for the workflow then, and none for all workflows.
#[test]
fn a_preference_without_settings_is_removed() {
    on_both(|world| {
        world.bare_subscriber("ada");
        world.workflow_of("hi", &[email()]);
        let hours = json!({ "isEnabled": true });
        update_global(&world, json!({ "channels": { "push": false }, "schedule": hours }));
        say(&world, &json!({ "email": true }));
        assert_eq!(stored(&world), 2);

        say(&world, &json!({ "email": null }));
        assert_eq!((stored(&world), get(&world, json!({})).workflows[0].updated_at), (1, None));
        update_global(&world, json!({ "channels": { "push": null } }));
        assert_eq!(stored(&world), 1, "the schedule is left");
        update_global(&world, json!({ "schedule": null }));
        assert_eq!(stored(&world), 0);
        world.unchanged(|| say(&world, &json!({ "email": null })));
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

/// A channel that is on by name is still used.
#[test]
fn a_workflow_is_muted() {
    on_both(|world| {
        world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
        world.active_integration("email", "ses");
        world.workflow_of("hi", &[in_app(), email()]);
        let word = |fields: Value| {
            let word = with(json!({ "workflowId": "hi", "channels": {} }), fields);
            wire(only(bulk::update(&world, json!([word]))))
        };
        let notified = || {
            world.notify("hi", "ada");
            let sent = world.run_due().sent;
            (world.inbox("ada").len(), sent)
        };

        let muted = word(json!({ "enabled": false }));
        assert_eq!((&muted["enabled"], &muted["channels"]), (&json!(false), &all(false)));
        let shown = wire(&get(&world, json!({})).workflows[0]);
        assert_eq!((&shown["enabled"], &shown["channels"]), (&json!(false), &all(false)));
        assert_eq!(shown["overrides"][1]["layer"], "subscriber_workflow");
        assert_eq!(notified(), (0, 0));
        assert_eq!(world.run_due(), Counts::default());

        word(json!({ "channels": { "email": true } }));
        assert_eq!(notified(), (0, 1));
        let back = word(json!({ "channels": { "email": null }, "enabled": null }));
        assert_eq!((&back["enabled"], &back["channels"]), (&json!(true), &all(true)));
        assert_eq!(stored(&world), 0);
        assert_eq!(notified(), (1, 1));
    });
}
