//! Overrides of a trigger: settings of a step before those of its channel, and those before
//! settings of the provider.

use serde_json::json;

use crate::world::{in_app, on_both, only, parsed, with, workflow_of};

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

        let sent = only(world.recorder.sent());
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

#[test]
fn an_override_of_a_step_names_a_step_of_the_workflow() {
    on_both(|world| {
        let bell = |name: &str| with(in_app(), json!({ "name": name }));
        world.workflow(workflow_of("hi", &[bell("bell")]));
        let event = |step: &str| {
            let overrides = json!({ "steps": { step: { "body": "Instead" } } });
            json!({ "name": "hi", "overrides": overrides })
        };
        let to_ada = |step: &str| with(event(step), json!({ "to": "ada" }));
        let refusal = "`overrides.steps.bel` is not known; did you mean `bell`?";
        let unprocessable = format!("422 {refusal}");
        world.refuses(&unprocessable, || world.env.events().trigger(&parsed(to_ada("bel"))));
        world.refuses(&unprocessable, || world.env.events().broadcast(&parsed(event("bel"))));
        let bulk = [parsed(to_ada("bel")), parsed(to_ada("bell"))];
        let answers = world.env.events().trigger_bulk(&bulk).unwrap();
        assert_eq!(answers[0].as_ref().unwrap_err().to_string(), refusal);
        assert_eq!(only(world.inbox("ada")).text(), Some("Instead"));

        // A broadcast that was accepted goes on after the step has got another name.
        let crowd: Vec<_> = (0..150).map(|number| format!("s{number}")).collect();
        for one in &crowd {
            world.bare_subscriber(one);
        }
        world.env.events().broadcast(&parsed(event("bell"))).unwrap();
        let renamed = parsed(json!({ "steps": [bell("chime")] }));
        world.env.workflows().update("hi", &renamed).unwrap();
        world.run_due();
        assert!(crowd.iter().all(|one| world.inbox(one).len() == 1));
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
