//! Overrides of a trigger: settings of a step before those of its channel, and those before
//! settings of the provider.

use serde_json::json;

use crate::world::{on_both, only, parsed, with, workflow_of};

#[test]
fn a_message_is_sent_with_the_settings_of_its_trigger() {
    on_both(|world| {
        for name in ["ses", "relay"] {
            world.active_integration("email", name);
        }
        let template = json!({ "subject": "Hello", "body": "<p>Hello</p>" });
        let step = json!({ "type": "email", "name": "receipt", "template": template });
        world.workflow(workflow_of("mail", &[step]));
        let overrides = json!({
            "steps": { "receipt": { "subject": "Your\r\nreceipt", "providers": { "relay": { "tag": "step" } } } },
            "channels": { "email": { "integrationIdentifier": "relay", "subject": "Mail", "tag": "channel" } },
            "providers": { "relay": { "template": 7 }, "ses": { "template": 8 } },
            "severity": "high",
        });
        let ada = json!({ "subscriberId": "ada", "email": "ada@example.org" });
        let trigger = json!({ "name": "mail", "to": ada, "overrides": overrides });

        world.trigger(trigger.clone());
        world.run_due();

        let sent = only(world.outbox.sent());
        assert_eq!(sent.integration.identifier.as_str(), "relay");
        assert_eq!(sent.message.subject.as_deref(), Some("Your  receipt"));
        assert_eq!(sent.message.text(), Some("<p>Hello</p>"));
        let expected = json!({
            "integrationIdentifier": "relay", "subject": "Your\r\nreceipt", "tag": "step", "template": 7,
        });
        assert_eq!(serde_json::to_value(&sent.overrides).unwrap(), expected);
        for (overrides, refusal) in [
            (
                json!({ "channels": { "email": { "body": 1 } } }),
                "channels.email.body` must be a text",
            ),
            (json!({ "channels": { "email": 5 } }), "channels.email` must be an object"),
            (json!({ "email": 5 }), "email` must be an object"),
            (json!({ "steps": { "mail": "no" } }), "steps.mail` must be an object"),
        ] {
            let wrong = with(trigger.clone(), json!({ "overrides": overrides }));
            let refusal = format!("422 `overrides.{refusal}");
            world.refuses(&refusal, || world.env.events().trigger(&parsed(wrong.clone())));
        }
    });
}

/// Texts of the overrides also stand in messages in the inbox.
#[test]
fn a_text_stands_in_place_of_what_is_rendered() {
    on_both(|world| {
        world.in_app_workflow("hi");
        let overrides = json!({ "channels": { "in_app": { "body": "Instead" } } });
        world.trigger(json!({ "name": "hi", "to": "ada", "overrides": overrides }));
        assert_eq!(only(world.inbox("ada")).text(), Some("Instead"));
    });
}
