//! Messages that wait for an open circuit, and go on as soon as an integration takes them.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::interposed::Point;
use testkit::waiting::{PATIENCE, wait_until};
use tidings::circuit::{Circuit, CircuitPolicy};
use tidings::integration::{Integration, IntegrationDelete, IntegrationUpdate, OnUnknown};
use tidings::{
    Builder, Delivery, Provider, ProviderReceipt, RecordingProvider, Scope, SendError, SystemClock,
};

use super::retryable;
use crate::world::{
    Counts, World, active_integration, email, names, on_both_with, parsed, payload_is, sms, with,
    workflow_of,
};

const SECOND: Duration = Duration::from_secs(1);

// Three failures within a minute open a circuit for ten seconds.
fn policy(builder: Builder) -> Builder {
    builder.circuit(CircuitPolicy::new(3, SECOND * 60).pause(SECOND * 10))
}

type Work = Box<dyn FnOnce() + Send>;

/// A provider that runs a function in another thread while it is called for the first time.
#[derive(Clone)]
struct Meanwhile {
    recorder: RecordingProvider,
    work: Arc<Mutex<Option<Work>>>,
}

impl fmt::Debug for Meanwhile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meanwhile").finish_non_exhaustive()
    }
}

impl Meanwhile {
    fn installed(world: &mut World) -> Self {
        let provider = Self { recorder: world.recorder.clone(), work: Arc::default() };
        let default = provider.clone();
        world.restart_with(|builder| policy(builder).default_provider(default));
        provider
    }

    fn run(&self, work: impl FnOnce() + Send + 'static) {
        *self.work.lock().unwrap() = Some(Box::new(work));
    }
}

impl Provider for Meanwhile {
    fn send(&self, delivery: &Delivery) -> Result<ProviderReceipt, SendError> {
        let work = self.work.lock().unwrap().take();
        if let Some(work) = work {
            thread::spawn(work).join().unwrap();
        }
        self.recorder.send(delivery)
    }
}

// Delivers at most `limit` tasks in another engine thread, and returns how many messages wait.
fn postponed(world: &World, limit: usize) -> usize {
    world.engine.delivery().run_due(limit).unwrap().postponed
}

fn prepared(world: &World) -> Integration {
    let ses = world.active_integration("email", "ses");
    let phone = json!({ "subscriberId": "ada", "email": "ada@example.org", "phone": "+491" });
    world.subscriber(phone);
    world.workflow_of("mail", &[email()]);
    ses
}

// A fallback for some messages, of which the tests have none.
fn gold_only() -> Value {
    let gold = json!({ "fallback": 1, "conditions": [payload_is("plan", "gold")] });
    with(active_integration("email", "mailgun"), gold)
}

fn fallback(world: &World, name: &str) {
    world.integration(json!({
        "providerId": name, "channel": "email", "identifier": name, "active": true, "fallback": 1,
    }));
}

// Opens the circuit of `ses`, and lets so many messages wait for it.
fn opened(world: &World, waiting: usize) {
    for _ in 0..3 {
        world.recorder.refuse_next(retryable("down"));
    }
    for _ in 0..3 + waiting {
        world.notify("mail", "ada");
    }
    assert_eq!(postponed(world, usize::MAX), waiting);
    assert!(matches!(circuit(world), Circuit::Open { .. }));
}

// Opens the circuit of an integration of `Production`, and lets two messages wait for it.
fn opened_in_production(world: &World) -> (Scope, Integration) {
    let production = world.production();
    let other = parsed(active_integration("email", "other"));
    let other = production.integrations().create(&other).unwrap();
    production.workflows().create(&parsed(workflow_of("mail", &[email()]))).unwrap();
    for _ in 0..3 {
        world.recorder.refuse_next(retryable("down"));
    }
    for _ in 0..5 {
        let ada = json!({ "subscriberId": "ada", "email": "ada@example.org" });
        let trigger = json!({ "name": "mail", "to": ada });
        production.events().trigger(&parsed(trigger)).unwrap();
    }
    assert_eq!(postponed(world, usize::MAX), 2);
    (production, other)
}

// Opens the circuit of a chat integration, and lets so many messages wait for it. A call may say nothing of it, as
// its server is that of the recipient.
fn opened_for_chat(world: &World, waiting: usize) {
    let slack = world.integration(json!({
        "providerId": "slack", "channel": "chat", "identifier": "ses", "active": true,
    }));
    world.subscriber(json!({ "subscriberId": "ada", "channels": [{
        "providerId": "slack",
        "_integrationId": slack.id,
        "credentials": { "webhookUrl": "https://chat.example/ada" },
    }] }));
    world.workflow_of("chat", &[with(sms(), json!({ "type": "chat" }))]);
    for _ in 0..3 {
        world.recorder.refuse_next(SendError::misconfigured("no key"));
        world.notify("chat", "ada");
    }
    assert_eq!(world.run_due().failed, 3);
    for _ in 0..waiting {
        world.notify("chat", "ada");
    }
    assert_eq!(postponed(world, usize::MAX), waiting);
}

fn circuit(world: &World) -> Circuit {
    let health = world.env.integrations().health().unwrap();
    health.into_iter().find(|one| one.identifier.as_str() == "ses").unwrap().circuit
}

fn rename(world: &World, integration: &Integration) {
    let update: IntegrationUpdate = parsed(json!({ "name": "New" }));
    world.env.integrations().update(integration.id, &update).unwrap();
}

/// A second thread claims the other messages while the probe is under way. They do not wait for the end of
/// another pause.
#[test]
fn what_was_claimed_during_a_probe_follows_its_success() {
    on_both_with(policy, |mut world| {
        let provider = Meanwhile::installed(&mut world);
        prepared(&world);
        opened(&world, 3);
        world.pass(SECOND * 10);
        let engine = world.engine.clone();
        provider.run(move || {
            assert_eq!(engine.delivery().run_due(usize::MAX).unwrap().postponed, 2);
        });

        assert_eq!(world.engine.delivery().run_due(1).unwrap().sent, 1);

        assert_eq!(world.engine.delivery().next_due().unwrap(), Some(world.now()));
        assert_eq!(world.run_due(), Counts { sent: 2, ..Counts::default() });
        assert_eq!(names(&world.recorder.sent(), Delivery::attempt), ["1", "1", "1"]);
    });
}

/// As before, and the probe fails: no message is sent before the next one.
#[test]
fn what_was_claimed_during_a_probe_that_fails_waits() {
    on_both_with(policy, |mut world| {
        let provider = Meanwhile::installed(&mut world);
        prepared(&world);
        opened(&world, 3);
        world.pass(SECOND * 10);
        let engine = world.engine.clone();
        provider.run(move || drop(engine.delivery().run_due(usize::MAX).unwrap()));
        world.recorder.refuse_next(retryable("down"));

        assert_eq!(world.engine.delivery().run_due(1).unwrap().retried, 1);

        assert_eq!(postponed(&world, usize::MAX), 0);
        assert!(matches!(circuit(&world), Circuit::Open { probes: 1, .. }));
        world.pass(SECOND * 10);
        assert_eq!((world.run_due().sent, world.recorder.sent().len()), (0, 0));
        world.pass(SECOND * 10);
        assert!(world.run_due().sent >= 2);
    });
}

/// A probe may say nothing about its integration, since the server of its recipient has no answer. Then the
/// next message is the probe.
#[test]
fn a_probe_without_a_verdict_makes_no_other_message_wait() {
    on_both_with(policy, |mut world| {
        let provider = Meanwhile::installed(&mut world);
        opened_for_chat(&world, 3);
        world.pass(SECOND * 10);
        let engine = world.engine.clone();
        provider.run(move || drop(engine.delivery().run_due(1).unwrap()));
        world.recorder.refuse_next(SendError::unknown("no answer"));

        assert_eq!(world.engine.delivery().run_due(1).unwrap().retried, 1);

        assert_eq!(circuit(&world), Circuit::Open { until: world.now(), probes: 0 });
        assert_eq!(world.run_due().sent, 2);
        assert_eq!(circuit(&world), Circuit::default());
    });
}

/// A thousand of the messages may be the probe. One that says nothing lets no other ones go on.
#[test]
fn a_probe_without_a_verdict_makes_no_backlog_due() {
    on_both_with(policy, |world| {
        opened_for_chat(&world, 1_100);
        world.pass(SECOND * 10);
        world.recorder.refuse_next(SendError::unknown("no answer"));
        assert_eq!(world.engine.delivery().run_due(1).unwrap().retried, 1);
        world.recorder.refuse_next(SendError::misconfigured("no key"));

        let report = world.engine.delivery().run_due(usize::MAX).unwrap();

        assert_eq!((report.failed, report.postponed), (1, 998));
    });
}

/// A provider that panics as the probe opens the circuit again, and the next probe sends.
#[test]
fn a_probe_that_panics_is_a_probe_that_fails() {
    on_both_with(policy, |mut world| {
        let provider = Meanwhile::installed(&mut world);
        prepared(&world);
        opened(&world, 3);
        world.pass(SECOND * 10);
        provider.run(|| panic!("a provider has an error"));

        assert_eq!(world.run_due(), Counts { retried: 1, ..Counts::default() });

        let until = world.now().after(SECOND * 20);
        assert_eq!(circuit(&world), Circuit::Open { until, probes: 1 });
        world.pass(SECOND * 20);
        assert!(world.run_due().sent >= 2);
        assert_eq!(circuit(&world), Circuit::default());
    });
}

/// The clock goes back by an hour while messages wait. The success of a new message lets them go on.
#[test]
fn messages_go_on_though_the_clock_went_back() {
    on_both_with(policy, |world| {
        prepared(&world);
        opened(&world, 3);
        world.clock.set(world.now().before(SECOND * 3_600));
        world.notify("mail", "ada");

        assert_eq!(world.run_due(), Counts { sent: 4, ..Counts::default() });

        assert_eq!(circuit(&world), Circuit::default());
    });
}

/// An environment is deleted while messages wait in it and in another one. Those of the other one go on.
#[test]
fn messages_go_on_beside_a_deleted_environment() {
    on_both_with(policy, |world| {
        let ses = prepared(&world);
        let (production, _) = opened_in_production(&world);
        opened(&world, 2);

        let id = production.environment_id();
        assert!(world.organization.delete_environment(id).unwrap().is_finished);
        rename(&world, &ses);

        assert!(world.run_due().sent >= 2);
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

/// Messages go on in two environments. If the transaction of the one fails, the next one is of the other.
#[test]
fn an_environment_that_fails_holds_up_no_other() {
    on_both_with(policy, |world| {
        let ses = prepared(&world);
        let (production, other) = opened_in_production(&world);
        opened(&world, 2);
        rename(&world, &ses);
        production.integrations().update(other.id, &parsed(json!({ "name": "New" }))).unwrap();
        // Both are due at the same time, so the slot of the lower id is first.
        let last = production.environment_id().max(world.env.environment_id());
        world.store.fail(Point::Commit, 0);
        assert_eq!(world.engine.delivery().run_due(1).unwrap().sent, 0);

        assert_eq!(world.engine.delivery().run_due(1).unwrap().sent, 1);

        let sent = world.recorder.sent().pop().unwrap();
        assert_eq!(sent.message.environment_id, last);
    });
}

/// One row per change that lets the messages go on, and the integration that sends them.
#[test]
fn a_change_of_an_integration_lets_messages_go_on() {
    type Row = (fn(&World, &[Integration; 2]), &'static str);
    let rows: [Row; 3] = [
        (|world, [ses, _]| rename(world, ses), "ses"),
        (
            |world, [_, mailgun]| {
                let unconditional = parsed(json!({ "conditions": [] }));
                world.env.integrations().update(mailgun.id, &unconditional).unwrap();
            },
            "mailgun",
        ),
        (
            |world, [ses, _]| {
                fallback(world, "other");
                world.env.integrations().delete(ses.id, &IntegrationDelete::default()).unwrap();
            },
            "other",
        ),
    ];
    for (change, sender) in rows {
        on_both_with(policy, |world| {
            let ses = prepared(&world);
            let mailgun = world.integration(gold_only());
            opened(&world, 4);

            change(&world, &[ses, mailgun]);

            assert_eq!(world.engine.delivery().next_due().unwrap(), Some(world.now()), "{sender}");
            // Those that have failed are due after as long a time, and may go too.
            assert!(world.run_due().sent >= 4, "{sender}");
            for sent in world.recorder.sent() {
                assert_eq!(sent.integration.identifier.as_str(), sender);
            }
        });
    }
}

/// A change of the integration of another environment does not.
#[test]
fn a_change_elsewhere_lets_no_message_go_on() {
    on_both_with(policy, |world| {
        prepared(&world);
        opened(&world, 2);
        let production = world.production();
        let other = parsed(active_integration("email", "other"));
        let other = production.integrations().create(&other).unwrap();
        production.integrations().update(other.id, &parsed(json!({ "name": "New" }))).unwrap();
        assert_eq!(postponed(&world, usize::MAX), 0);
        assert_eq!(
            world.engine.delivery().next_due().unwrap(),
            Some(world.now().after(SECOND * 10))
        );
    });
}

/// The messages are brought forward some at a time. A delay of the same workflow that ends at the same time
/// is not, though more tasks of delays come first than a transaction looks at.
#[test]
fn many_messages_go_on_and_delays_do_not() {
    on_both_with(policy, |world| {
        let ses = prepared(&world);
        let soon = json!({ "type": "regular", "amount": 10, "unit": "seconds" });
        let slow = json!([payload_is("slow", "yes")]);
        let delay = json!({ "type": "delay", "metadata": soon, "filters": slow });
        world.workflow_of("both", &[delay, email()]);
        let slow = json!({ "name": "both", "to": "ada", "payload": { "slow": "yes" } });
        for _ in 0..210 {
            world.trigger(slow.clone());
        }
        assert_eq!(world.run_due(), Counts::default());
        opened(&world, 0);
        for _ in 0..410 {
            world.notify("both", "ada");
        }
        assert_eq!(postponed(&world, usize::MAX), 410);

        rename(&world, &ses);

        assert_eq!(world.run_due(), Counts { sent: 410, ..Counts::default() });
        world.pass(SECOND * 10);
        assert!(world.run_due().sent >= 210);
    });
}

/// More messages wait than may be the probe. The end of a pause finds a thousand of them only.
#[test]
fn a_backlog_is_not_claimed_at_the_end_of_each_pause() {
    on_both_with(policy, |world| {
        prepared(&world);
        opened(&world, 1_100);
        world.recorder.refuse_next(retryable("down"));
        world.pass(SECOND * 10);
        let report = world.engine.delivery().run_due(usize::MAX).unwrap();
        assert_eq!((report.retried, report.postponed), (1, 999));

        world.pass(SECOND * 20);
        let sent = world.run_due().sent;
        assert!(sent >= 1_099, "{sent}");
        world.pass(SECOND * 3_600);
        assert_eq!(sent + world.run_due().sent, 1_103);
    });
}

/// The circuit closes after a message was found to wait, and before that is stored.
#[test]
fn a_circuit_that_closes_before_the_settlement_makes_no_message_wait() {
    on_both_with(policy, |mut world| {
        let provider = Meanwhile::installed(&mut world);
        let ses = prepared(&world);
        world.active_integration("sms", "twilio");
        world.workflow_of("text", &[sms()]);
        opened(&world, 0);
        world.notify("mail", "ada");
        world.notify("text", "ada");
        let env = world.env.clone();
        provider.run(move || {
            let update: IntegrationUpdate = parsed(json!({ "name": "New" }));
            env.integrations().update(ses.id, &update).unwrap();
        });

        assert_eq!(world.run_due().sent, 2);
    });
}

/// A fallback takes messages after one was found to wait, and before that is stored.
#[test]
fn a_fallback_that_comes_before_the_settlement_sends_the_message() {
    on_both_with(policy, |mut world| {
        let provider = Meanwhile::installed(&mut world);
        prepared(&world);
        let mailgun = world.integration(gold_only());
        world.active_integration("sms", "twilio");
        world.workflow_of("text", &[sms()]);
        opened(&world, 0);
        world.notify("mail", "ada");
        world.notify("text", "ada");
        let env = world.env.clone();
        provider.run(move || {
            let unconditional = parsed(json!({ "conditions": [] }));
            env.integrations().update(mailgun.id, &unconditional).unwrap();
        });

        assert_eq!(world.run_due().sent, 2);
        let senders = names(&world.recorder.sent(), |sent| sent.integration.identifier.clone());
        assert_eq!(senders, ["twilio", "mailgun"]);
    });
}

/// A call lasts longer than the pause of the circuit that opens meanwhile, and fails. The messages wait on.
#[test]
fn a_late_failure_lets_no_message_go_on() {
    on_both_with(policy, |mut world| {
        let provider = Meanwhile::installed(&mut world);
        prepared(&world);
        world.notify("mail", "ada");
        let (engine, env, clock) = (world.engine.clone(), world.env.clone(), world.clock.clone());
        let recorder = world.recorder.clone();
        provider.run(move || {
            for _ in 0..3 {
                recorder.refuse_next(retryable("down"));
            }
            for _ in 0..1_103 {
                env.events().trigger(&parsed(json!({ "name": "mail", "to": "ada" }))).unwrap();
            }
            assert_eq!(engine.delivery().run_due(usize::MAX).unwrap().postponed, 1_100);
            clock.advance(SECOND * 15);
            recorder.refuse_next(retryable("late"));
            recorder.refuse_next(retryable("down"));
        });

        assert_eq!(world.engine.delivery().run_due(1).unwrap().retried, 1);

        // The probe, the other messages that may be, and those that have failed.
        let report = world.engine.delivery().run_due(usize::MAX).unwrap();
        assert_eq!((report.retried, report.postponed), (1, 999 + 3));
    });
}

/// A provider takes one message and no others, so that its circuit opens again. The messages that wait are not
/// claimed once more.
#[test]
fn a_circuit_that_opens_again_holds_the_messages_back() {
    on_both_with(policy, |world| {
        prepared(&world);
        opened(&world, 1_600);
        world.pass(SECOND * 10);
        assert_eq!(world.engine.delivery().run_due(1).unwrap().sent, 1);
        for _ in 0..3 {
            world.recorder.refuse_next(retryable("busy"));
        }

        let postponed: Vec<_> = (0..10).map(|_| postponed(&world, usize::MAX)).collect();

        let all: usize = postponed.iter().sum();
        assert!(all < 1_200, "{postponed:?}");
        world.pass(SECOND * 3_600);
        assert!(world.run_due().sent >= 1_600);
    });
}

/// More slots are released than a call looks at, and their messages are gone. The next due time passes none that is left.
#[test]
fn a_slot_behind_many_others_is_due() {
    on_both_with(policy, |world| {
        let ses = prepared(&world);
        opened(&world, 0);
        for number in 0..70 {
            let identifier = format!("w{number}");
            world.workflow_of(&identifier, &[email()]);
            let id = world.notify(&identifier, "ada");
            assert_eq!(postponed(&world, usize::MAX), 1);
            if number < 69 {
                world.env.notifications().delete(id).unwrap();
            }
        }

        rename(&world, &ses);

        let mut sent = 0;
        while sent == 0 {
            assert_eq!(world.engine.delivery().next_due().unwrap(), Some(world.now()));
            sent = world.engine.delivery().run_due(1).unwrap().sent;
        }
    });
}

/// A message is made for an integration whose circuit opens before the call. Its fallback is free.
#[test]
fn a_circuit_that_opens_before_the_call_leaves_the_fallback() {
    on_both_with(policy, |world| {
        let ses = prepared(&world);
        fallback(&world, "mailgun");
        let update = IntegrationUpdate::default().on_unknown(OnUnknown::GiveUp);
        world.env.integrations().update(ses.id, &update).unwrap();
        for _ in 0..3 {
            world.recorder.refuse_next(SendError::misconfigured("no key"));
        }
        for _ in 0..4 {
            world.notify("mail", "ada");
        }
        let (engine, clock) = (world.engine.clone(), world.clock.clone());
        // The claim is stored, and what comes next is the note of the call.
        world.store.pause(Point::Write, 1, move || {
            clock.advance(SECOND);
            thread::spawn(move || {
                assert_eq!(engine.delivery().run_due(3).unwrap().retried, 3);
            })
            .join()
            .unwrap();
        });

        assert_eq!(postponed(&world, 1), 1);

        assert!(matches!(circuit(&world), Circuit::Open { .. }));
        assert_eq!(world.run_due(), Counts { sent: 4, ..Counts::default() });
        let senders = names(&world.recorder.sent(), |sent| sent.integration.identifier.clone());
        assert_eq!(senders, ["mailgun"; 4]);
    });
}

/// The operator has paused the fallback. A message does not wait for its resumption.
#[test]
fn a_paused_fallback_is_no_fallback() {
    on_both_with(policy, |world| {
        prepared(&world);
        fallback(&world, "mailgun");
        let all = world.env.integrations().list().unwrap();
        let mailgun = all.iter().find(|one| one.identifier.as_str() == "mailgun").unwrap();
        world.env.integrations().pause(mailgun.id).unwrap();
        opened(&world, 2);
        world.pass(SECOND * 10);
        assert!(world.run_due().sent >= 2);
        for sent in world.recorder.sent() {
            assert_eq!(sent.integration.identifier.as_str(), "ses");
        }
    });
}

/// The subscriber has a telephone number at the first integration only, so its message waits for that.
#[test]
fn a_fallback_without_an_address_is_passed_over() {
    on_both_with(policy, |world| {
        let text = |name: &str, fallback: Value| {
            let create = json!({
                "providerId": name, "channel": "sms", "identifier": name, "active": true,
            });
            world.integration(with(create, fallback));
        };
        text("ses", json!({}));
        text("vonage", json!({ "fallback": 1 }));
        world.subscriber(json!({ "subscriberId": "ada", "phone": "+491" }));
        world.bare_subscriber("eve");
        let phone = json!({
            "subscriberId": "eve", "integrationIdentifier": "ses", "type": "phone",
            "endpoint": { "phoneNumber": "+492" },
        });
        world.env.channel_endpoints().create(&parsed(phone)).unwrap();
        world.workflow_of("text", &[sms()]);
        for _ in 0..3 {
            world.recorder.refuse_next(SendError::misconfigured("no key"));
            world.notify("text", "ada");
            assert_eq!(world.run_due(), Counts { sent: 1, retried: 1, ..Counts::default() });
        }
        world.notify("text", "eve");

        assert_eq!(postponed(&world, usize::MAX), 1);

        world.pass(SECOND * 10);
        assert_eq!(world.run_due(), Counts { sent: 1, ..Counts::default() });
        let sent = world.recorder.sent().pop().unwrap();
        assert_eq!(sent.integration.identifier.as_str(), "ses");
    });
}

/// The circuits of both integrations are open. A message waits for the one that takes messages first.
#[test]
fn a_message_waits_for_the_first_of_its_integrations() {
    on_both_with(policy, |world| {
        prepared(&world);
        fallback(&world, "mailgun");
        let no_key = || world.recorder.refuse_next(SendError::misconfigured("no key"));
        let by_mailgun = json!({
            "name": "mail", "to": "ada",
            "overrides": { "email": { "integrationIdentifier": "mailgun" } },
        });
        for _ in 0..3 {
            no_key();
            world.trigger(by_mailgun.clone());
        }
        assert_eq!(world.run_due().failed, 3);
        world.pass(SECOND * 5);
        for _ in 0..3 {
            no_key();
            world.notify("mail", "ada");
        }
        assert_eq!(world.run_due().retried, 3);

        world.notify("mail", "ada");
        assert_eq!(postponed(&world, usize::MAX), 1);

        world.pass(SECOND * 5);
        assert_eq!(world.run_due().sent, 1);
        let senders = names(&world.recorder.sent(), |sent| sent.integration.identifier.clone());
        assert_eq!(senders, ["mailgun"]);
    });
}

/// The store fails while messages are brought forward. They go on when it does.
#[test]
fn messages_go_on_after_a_failure_of_the_store() {
    on_both_with(policy, |world| {
        let ses = prepared(&world);
        opened(&world, 5);
        rename(&world, &ses);
        world.store.fail(Point::Commit, 0);
        assert_eq!(world.run_due(), Counts::default());

        assert_eq!(world.engine.delivery().next_due().unwrap(), Some(world.now()));
        assert!(world.run_due().sent >= 5);

        let mut keys = names(&world.recorder.sent(), Delivery::idempotency_key);
        let sent = keys.len();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), sent, "a message is sent twice");
    });
}

/// A message without an attempt is not rendered. One without an address does not wait.
#[test]
fn a_message_that_waits_is_not_rendered() {
    on_both_with(policy, |world| {
        prepared(&world);
        opened(&world, 0);
        world.bare_subscriber("eve");
        let broken = json!({ "subject": "Hello", "body": "{{ payload.a / payload.b }}" });
        world.workflow_of("broken", &[json!({ "type": "email", "template": broken })]);
        for (to, b) in [("ada", json!("two")), ("eve", json!(2))] {
            let payload = json!({ "a": 1, "b": b });
            world.trigger(json!({ "name": "broken", "to": to, "payload": payload }));
        }
        let report = world.engine.delivery().run_due(usize::MAX).unwrap();
        assert_eq!((report.postponed, report.skipped, report.failed), (1, 1, 0));
        world.pass(SECOND * 10);
        assert_eq!(world.run_due().failed, 1);
    });
}

/// A worker that sleeps until the end of the pause is woken.
#[test]
fn a_sleeping_worker_learns_of_the_change() {
    on_both_with(policy, |world| {
        let ses = prepared(&world);
        let engine = world.engine_with(|builder| {
            let policy = CircuitPolicy::new(3, SECOND * 60).pause(SECOND * 3_600);
            builder.circuit(policy).clock(SystemClock)
        });
        let env = engine.environment(world.env.environment_id()).unwrap();
        for _ in 0..3 {
            world.recorder.refuse_next(SendError::misconfigured("no key"));
        }
        for _ in 0..5 {
            env.events().trigger(&parsed(json!({ "name": "mail", "to": "ada" }))).unwrap();
        }
        let worker = engine.worker().start().unwrap();
        wait_until(|| worker.report().delivery.postponed == 2);

        env.integrations().update(ses.id, &parsed(json!({ "name": "New" }))).unwrap();

        wait_until(|| world.recorder.sent().len() == 2);
        assert_eq!(worker.stop(PATIENCE).running, 0);
    });
}
