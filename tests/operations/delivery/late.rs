//! Destinations that come and go between the attempts of a message.

use std::mem;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tidings::ids::SendId;
use tidings::integration::{Integration, IntegrationUpdate, OnUnknown};
use tidings::subscriber::ChannelSettings;
use tidings::{Delivery, Engine, ProviderReceipt, SendError};

use super::refusing::push;
use super::{Told, log, retryable};
use crate::world::{World, on_both, parsed, wire};

/// Device, idempotency key and text of a call.
type Call = (String, SendId, String);

fn call_of(delivery: &Delivery) -> Call {
    let text = wire(&delivery.message)["content"].as_str().unwrap().to_owned();
    (super::fan_out::token(delivery), delivery.idempotency_key(), text)
}

/// A subscriber with devices, and an engine whose provider answers with errors before it accepts
/// everything.
struct Pushing<'w> {
    world: &'w World,
    engine: Engine,
    integration: Integration,
    calls: Arc<Mutex<Vec<Call>>>,
}

impl<'w> Pushing<'w> {
    fn new(world: &'w World, on_unknown: OnUnknown, errors: Vec<SendError>) -> Self {
        let integration = world.active_integration("push", "fcm");
        let update = IntegrationUpdate::default().on_unknown(on_unknown);
        let integration = world.env.integrations().update(integration.id, &update).unwrap();
        world.subscriber(json!({ "subscriberId": "ada", "firstName": "Ada" }));
        let mut push = push();
        push["template"]["body"] = json!("Hello {{ subscriber.firstName }}");
        world.workflow_of("push", &[push]);
        let calls = Arc::new(Mutex::new(Vec::new()));
        let (errors, told) = (Mutex::new(errors.into_iter()), Arc::clone(&calls));
        let provider = Told(move |delivery: &Delivery| {
            told.lock().unwrap().push(call_of(delivery));
            errors.lock().unwrap().next().map_or(Ok(ProviderReceipt::default()), Err)
        });
        let engine = world.engine_with(|builder| builder.default_provider(provider));
        Self { world, engine, integration, calls }
    }

    fn register(&self, token: &str) {
        let settings: ChannelSettings = parsed(json!({
            "providerId": "fcm", "_integrationId": self.integration.id,
            "credentials": { "deviceTokens": [token] },
        }));
        self.world.env.subscribers().set_channel("ada", &settings).unwrap();
    }

    fn unregister(&self, token: &str) {
        self.world.env.subscribers().remove_device("ada", self.integration.id, token).unwrap();
    }

    fn rename(&self) {
        let update = parsed(json!({ "firstName": "Countess" }));
        self.world.env.subscribers().update("ada", &update).unwrap();
    }

    // The calls of an hour later.
    fn run(&self) -> Vec<Call> {
        self.world.pass(Duration::from_secs(3_600));
        self.engine.delivery().run_due(100).unwrap();
        mem::take(&mut self.calls.lock().unwrap())
    }
}

/// A service knows a repeated call by its key.
#[test]
fn a_device_that_comes_between_two_attempts_changes_no_key() {
    let lost = || SendError::unknown("timeout");
    for (on_unknown, error) in [
        (OnUnknown::ResendWithKey, lost()),
        (OnUnknown::Resend, lost()),
        (OnUnknown::Resend, retryable("busy")),
        (OnUnknown::ResendWithKey, retryable("busy")),
    ] {
        on_both(|world| {
            let pushing = Pushing::new(&world, on_unknown, vec![error.clone()]);
            pushing.register("phone");
            world.notify("push", "ada");
            let first = pushing.run();
            pushing.register("tablet");
            pushing.rename();

            assert_eq!(pushing.run(), first, "{on_unknown:?}, {error}");

            world.notify("push", "ada");
            assert_eq!(pushing.run().len(), 2);
            assert_eq!(world.engine.check().unwrap().findings, []);
        });
    }
}

/// The call of an integration that restricts what follows a lost answer is stored before it is made, with the
/// content.
#[test]
fn a_crash_and_another_device_change_neither_key_nor_content() {
    for (on_unknown, redriven) in [(OnUnknown::ResendWithKey, false), (OnUnknown::GiveUp, true)] {
        on_both(|world| {
            let pushing = Pushing::new(&world, on_unknown, Vec::new());
            pushing.register("phone");
            world.notify("push", "ada");
            let before = Arc::new(Mutex::new(Vec::new()));
            let told = Arc::clone(&before);
            let mortal = world.mortal_engine(
                |builder| builder,
                move |delivery| told.lock().unwrap().push(call_of(delivery)),
            );
            mortal.delivery().run_due(1).unwrap_err();
            pushing.register("tablet");
            pushing.rename();

            let mut calls = pushing.run();
            if redriven {
                assert_eq!(calls, []);
                world.env.dead_letters().redrive_matching(&parsed(json!({}))).unwrap();
                calls = pushing.run();
            }

            assert_eq!(calls, *before.lock().unwrap(), "{on_unknown:?}");
            assert_eq!(calls.len(), 1);
            assert_eq!(world.engine.check().unwrap().findings, []);
        });
    }
}

#[test]
fn a_dead_letter_is_redriven_to_its_device_only() {
    on_both(|world| {
        let refused = vec![SendError::permanent("too large")];
        let pushing = Pushing::new(&world, OnUnknown::Resend, refused);
        pushing.register("phone");
        world.notify("push", "ada");
        let first = pushing.run();
        pushing.register("tablet");
        pushing.rename();
        let letters = world.env.dead_letters();
        letters.redrive_matching(&parsed(json!({}))).unwrap();

        assert_eq!(pushing.run(), first);
    });
}

/// The service may have the message for the device that is gone.
#[test]
fn other_devices_do_not_get_what_a_device_that_is_gone_may_have() {
    for (on_unknown, error, is_sent) in [
        (OnUnknown::ResendWithKey, SendError::unknown("timeout"), false),
        (OnUnknown::Resend, SendError::unknown("timeout"), true),
        (OnUnknown::ResendWithKey, retryable("busy"), true),
    ] {
        for others in [&[][..], &["tablet"], &["tablet", "watch"]] {
            on_both(|world| {
                let pushing = Pushing::new(&world, on_unknown, vec![error.clone()]);
                pushing.register("phone");
                let id = world.notify("push", "ada");
                let first = pushing.run();
                for device in others {
                    pushing.register(device);
                }
                pushing.unregister("phone");

                let calls = pushing.run();
                // A service that knows the key would take the call for a repeated one.
                let has_other_key = |call: &Call| call.1 != first[0].1;
                assert!(calls.iter().all(has_other_key), "{calls:?} after {first:?}");
                let mut called: Vec<_> = calls.into_iter().map(|(device, ..)| device).collect();

                called.sort();
                let devices = if is_sent { others } else { &[] };
                assert_eq!(called, devices, "{on_unknown:?}, {error}");
                let end = log(&world.notification(id), 0).pop().unwrap();
                assert_eq!(end == "answer_lost", !is_sent, "{on_unknown:?}, {others:?}: {end}");
            });
        }
    }
}

/// The record of an integration's message has one content.
#[test]
fn a_later_device_gets_the_content_of_the_first_one() {
    on_both(|world| {
        let errors = vec![SendError::permanent("too large")];
        let pushing = Pushing::new(&world, OnUnknown::Resend, errors);
        pushing.register("phone");
        pushing.register("tablet");
        world.notify("push", "ada");
        // The message is fanned out, and one device is called.
        pushing.engine.delivery().run_due(2).unwrap();
        let before = mem::take(&mut *pushing.calls.lock().unwrap());
        assert_eq!(before.len(), 1, "{before:?}");
        pushing.rename();
        let second = pushing.run();
        world.env.dead_letters().redrive_matching(&parsed(json!({}))).unwrap();
        let redriven = pushing.run();

        assert_eq!((second.len(), &redriven), (1, &before));
        assert_eq!(second[0].2, before[0].2);
    });
}
