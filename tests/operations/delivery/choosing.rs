//! Which integration sends, and which content.

use serde_json::{Value, json};
use tidings::Address;
use tidings::integration::IntegrationDelete;
use tidings::job::Detail;

use super::refusing::push;
use super::{ada, log};
use crate::world::{
    World, active_integration, email, names, on_both, only, parsed, payload_is, sms, wire, with,
};

#[test]
fn the_primary_integration_sends() {
    on_both(|world| {
        mailing(&world);
        let first = world.active_integration("email", "first");
        let second = world.active_integration("email", "second");
        assert_eq!(sender(&world, json!({})), "first");

        world.env.integrations().set_primary(second.id).unwrap();
        assert_eq!(sender(&world, json!({})), "second");

        // Without a primary one, the only one that is left sends.
        world.env.integrations().delete(second.id, &IntegrationDelete::default()).unwrap();
        assert_eq!(sender(&world, json!({})), "first");

        // Of several, none does.
        let third = world.active_integration("email", "third");
        world.env.integrations().set_primary(first.id).unwrap();
        world.active_integration("email", "fourth");
        world.env.integrations().delete(first.id, &IntegrationDelete::default()).unwrap();
        assert_eq!(sender(&world, json!({})), "no_active_integration");

        world.env.integrations().set_primary(third.id).unwrap();
        assert_eq!(sender(&world, json!({})), "third");
    });
}

#[test]
fn an_integration_whose_conditions_hold_comes_first() {
    on_both(|world| {
        mailing(&world);
        world.active_integration("email", "primary");
        let german = json!({ "conditions": [payload_is("country", "de")] });
        world.integration(with(active_integration("email", "german"), german));
        let vip = json!({ "conditions": [payload_is("vip", "true")] });
        world.integration(with(active_integration("email", "vip"), vip));

        assert_eq!(sender(&world, json!({})), "primary");
        assert_eq!(sender(&world, json!({ "country": "fr" })), "primary");
        assert_eq!(sender(&world, json!({ "country": "de" })), "german");
        assert_eq!(sender(&world, json!({ "vip": true })), "vip");
    });
}

#[test]
fn an_integration_whose_conditions_do_not_hold_does_not_send() {
    on_both(|world| {
        mailing(&world);
        let german = json!({ "conditions": [payload_is("country", "de")] });
        world.integration(with(active_integration("email", "german"), german));

        assert_eq!(sender(&world, json!({ "country": "de" })), "german");
        assert_eq!(sender(&world, json!({ "country": "fr" })), "no_active_integration");
    });
}

#[test]
fn an_integration_is_chosen_by_the_contexts_and_the_actor() {
    on_both(|world| {
        mailing(&world);
        world.subscriber(json!({ "subscriberId": "eve", "data": { "role": "admin" } }));
        world.active_integration("email", "primary");
        for (name, on, field, value) in [
            ("acme", "context", "tenant.id", "acme"),
            ("pro", "context", "tenant.data.plan", "pro"),
            ("admin", "actor", "data.role", "admin"),
        ] {
            let part = json!({ "field": field, "value": value, "operator": "EQUAL", "on": on });
            let group = json!({ "type": "GROUP", "value": "AND", "children": [part] });
            let conditions = json!({ "conditions": [group] });
            world.integration(with(active_integration("email", name), conditions));
        }
        let tenant = |id: &str, plan: &str| json!({ "context": { "tenant": { "id": id, "data": { "plan": plan } } } });
        for (event, expected) in [
            (json!({}), "primary"),
            (tenant("acme", "free"), "acme"),
            (tenant("umbrella", "free"), "primary"),
            (tenant("umbrella", "pro"), "pro"),
            (json!({ "actor": "eve" }), "admin"),
            (json!({ "actor": "ada" }), "primary"),
        ] {
            assert_eq!(sender_with(&world, event.clone()), expected, "{event}");
        }
        let part =
            json!({ "field": "tenant.name", "value": "a", "operator": "EQUAL", "on": "context" });
        let group = json!({ "type": "GROUP", "value": "AND", "children": [part] });
        let create = with(active_integration("email", "bad"), json!({ "conditions": [group] }));
        let refusal = "422 `conditions[0].children[0].field` has no variable `context.tenant.name`";
        world.refuses(refusal, || world.env.integrations().create(&parsed(create)));
    });
}

#[test]
fn a_trigger_can_name_the_integration() {
    on_both(|world| {
        mailing(&world);
        world.active_integration("email", "primary");
        let german = json!({ "conditions": [payload_is("country", "de")] });
        world.integration(with(active_integration("email", "german"), german));
        let asleep = json!({ "active": false });
        world.integration(with(active_integration("email", "asleep"), asleep));
        world.active_integration("sms", "twilio");
        let named = |channel: &str, name: &str| {
            let overrides = json!({ channel: { "integrationIdentifier": name } });
            sender_with(&world, json!({ "overrides": overrides }))
        };

        assert_eq!(named("email", "primary"), "primary");
        // It was asked for, whatever its conditions say.
        assert_eq!(named("email", "german"), "german");
        for other in ["asleep", "twilio", "unknown"] {
            assert_eq!(named("email", other), "no_active_integration", "{other}");
        }
        assert_eq!(named("sms", "unknown"), "primary");
    });
}

#[test]
fn the_integration_is_chosen_when_the_message_is_sent() {
    on_both(|world| {
        mailing(&world);
        world.active_integration("email", "first");
        let second = world.active_integration("email", "second");
        world.recorder.refuse_next(super::retryable("busy"));
        let id = world.notify("mail", "ada");
        world.run_due();

        world.env.integrations().set_primary(second.id).unwrap();
        world.pass(std::time::Duration::from_secs(60));
        world.run_due();

        assert_eq!(
            log(&world.notification(id), 0),
            [
                "step_queued",
                "integration_selected: first",
                "provider_retry: busy",
                "integration_selected: second",
                "message_sent",
            ]
        );
        assert_eq!(only(world.recorder.sent()).message.provider_id.as_deref(), Some("second"));
    });
}

#[test]
fn every_provider_has_its_own_messages() {
    on_both(|world| {
        mailing(&world);
        world.workflow_of("text", &[sms()]);
        world.active_integration("email", "sendgrid");
        world.active_integration("sms", "own");
        let own = tidings::RecordingProvider::default();
        let engine = world.engine_with(|builder| builder.provider("own", own.clone()));
        world.notify("mail", "ada");
        world.notify("text", "ada");

        engine.delivery().run_due(usize::MAX).unwrap();

        assert_eq!(only(own.sent()).message.channel.as_str(), "sms");
        assert_eq!(only(world.recorder.sent()).message.channel.as_str(), "email");
        // A provider that only the host knows has no name in the activity list.
        let jobs = world.notifications(json!({ "channels": ["sms"] }));
        assert_eq!(only(only(jobs).jobs).provider_id.as_str(), "svc-sms");
    });
}

#[test]
fn the_first_variant_whose_conditions_hold_is_sent() {
    on_both(|world| {
        ada(&world);
        world.active_integration("sms", "twilio");
        let says = |body: &str| json!({ "type": "sms", "template": { "body": body } });
        let when = |body: &str, field: &str| {
            with(says(body), json!({ "filters": [payload_is(field, "true")] }))
        };
        let variants = [
            // Without conditions, it is never chosen.
            says("bare"),
            with(when("asleep", "vip"), json!({ "active": false })),
            when("vip", "vip"),
            with(when("german", "german"), json!({ "name": "German" })),
        ];
        world.workflow_of("mail", &[with(says("plain"), json!({ "variants": variants }))]);

        let check = |payload: Value, body: &str, variant: Option<&str>| {
            world.trigger(json!({ "name": "mail", "to": "ada", "payload": payload }));
            world.run_due();
            assert_eq!(world.messages("ada")[0].text(), Some(body));
            let log = world.notifications(json!({})).remove(0).jobs.remove(0).execution_details;
            let chosen = log.into_iter().find(|entry| entry.detail == Detail::VariantChosen);
            assert_eq!(chosen.and_then(|entry| entry.raw).as_deref(), variant);
        };

        check(json!({}), "plain", None);
        check(json!({ "vip": false, "german": true }), "german", Some("German"));
        check(json!({ "vip": true }), "vip", Some("2"));
        check(json!({ "vip": true, "german": true }), "vip", Some("2"));
    });
}

#[test]
fn a_template_knows_a_subscriber_whose_data_is_as_deep_as_it_may_be() {
    on_both(|world| {
        let data = (0..64).fold(json!("bottom"), |inner, _| json!({ "in": inner }));
        world.subscriber(json!({
            "subscriberId": "ada", "firstName": "Ada", "phone": "+4912345", "data": data,
        }));
        world.active_integration("sms", "twilio");
        let template = json!({ "body": "Hello {{ subscriber.firstName }}" });
        world.workflow_of("text", &[with(sms(), json!({ "template": template }))]);

        let id = world.notify("text", "ada");
        world.run_due();

        assert_eq!(world.statuses(id), ["completed"]);
        let message = wire(only(world.messages("ada")));
        assert_eq!(message["content"], "Hello Ada");
    });
}

// Makes `ada` a subscriber who can be sent e-mail, and a workflow that does so.
fn mailing(world: &World) {
    ada(world);
    world.workflow_of("mail", &[email()]);
}

// Who sends an event with that payload, or why nobody does.
fn sender(world: &World, payload: Value) -> String {
    sender_with(world, Value::from_iter([("payload", payload)]))
}

fn sender_with(world: &World, fields: Value) -> String {
    let event = with(json!({ "name": "mail", "to": "ada" }), fields);
    let receipt = world.env.events().trigger(&parsed(event)).unwrap();
    let already = world.recorder.sent().len();
    world.run_due();
    let id = only(receipt.notifications).notification_id;
    let details = &only(world.notification(id).jobs).execution_details;
    match world.recorder.sent().get(already) {
        Some(sent) => sent.integration.identifier.to_string(),
        None => names(details, |entry| entry.detail).pop().unwrap(),
    }
}

#[test]
fn of_several_push_integrations_the_one_that_reaches_the_subscriber_sends() {
    on_both(|world| {
        let old = world.active_integration("push", "old");
        world.subscriber(json!({ "subscriberId": "ada", "channels": [{
            "providerId": "fcm",
            "_integrationId": old.id,
            "credentials": { "deviceTokens": ["phone"] },
        }] }));
        world.active_integration("push", "new");
        world.workflow_of("push", &[push()]);

        world.notify("push", "ada");
        world.run_due();

        assert_eq!(only(world.recorder.sent()).integration.id, old.id);
    });
}

/// A text message goes to the telephone number at its integration, and to that of the profile if the
/// integration has none for these contexts.
#[test]
fn a_text_message_goes_to_a_phone_endpoint() {
    on_both(|world| {
        world.bare_subscriber("ada");
        world.workflow_of("text", &[sms()]);
        world.active_integration("sms", "twilio");
        world.active_integration("sms", "other");
        let phone = |integration: &str, number: &str| {
            let create = json!({
                "subscriberId": "ada", "integrationIdentifier": integration, "type": "phone",
                "endpoint": { "phoneNumber": number },
            });
            world.env.channel_endpoints().create(&parsed(create)).unwrap().identifier
        };
        let sent_to = || {
            let before = world.recorder.sent().len();
            world.notify("text", "ada");
            world.run_due();
            world.recorder.sent().get(before).map(|delivery| match delivery.address.clone() {
                Address::Phone(number) => number,
                other => panic!("{other:?}"),
            })
        };
        phone("other", "+4911");
        assert_eq!(sent_to(), None);
        let own = phone("twilio", "+4912");
        assert_eq!(sent_to().as_deref(), Some("+4912"));
        world.env.subscribers().update("ada", &parsed(json!({ "phone": "+4913" }))).unwrap();
        assert_eq!(sent_to().as_deref(), Some("+4912"));
        world.env.channel_endpoints().delete(own).unwrap();
        assert_eq!(sent_to().as_deref(), Some("+4913"));
    });
}
