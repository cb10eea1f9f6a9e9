//! Explanations: what would become of an event, and why, without writing anything.

use std::sync::mpsc::channel;
use std::time::Duration;
use std::{env, fs};

use serde_json::{Value, json};
use tidings::circuit::CircuitPolicy;
use tidings::explain::{
    Assumption, DigestResult, EventOutcome, EvidenceKind, ExplainedStep, Explanation, Rejected,
    SendTime,
};
use tidings::filter::FilterSource;
use tidings::job::{Detail, JobStatus};
use tidings::observer::Event;
use tidings::preference::Layer;
use tidings::step::{DelayEnd, StepDefinition};
use tidings::time::Timestamp;
use tidings::{Call, Error, SendError};

use crate::world::{
    START, World, active_integration, email, id, in_app, on_both, on_both_with, only, parsed,
    payload_is, sms, time, wire, with, workflow_of,
};

fn explain(world: &World, trigger: Value) -> Explanation {
    world.env.events().explain(&parsed(trigger), world.now()).unwrap()
}

/// The step of that number for the only recipient.
fn step(explanation: &Explanation, number: usize) -> ExplainedStep {
    only(explanation.recipients.clone()).steps[number].clone()
}

fn kinds(step: &ExplainedStep) -> Vec<EvidenceKind> {
    step.evidence.iter().map(|finding| finding.kind.clone()).collect()
}

fn after(hours: u64) -> Timestamp {
    time(START).after(Duration::from_secs(hours * 3_600))
}

fn lasting(hours: u32) -> Value {
    json!({ "type": "regular", "amount": hours, "unit": "hours" })
}

/// An order that is shipped, with a bit of everything.
fn shop(world: &World) {
    let texts = json!({ "filters": [payload_is("express", "true")], "name": "text" });
    let mail = json!({
        "type": "email", "name": "mail",
        "template": { "subject": "Order {{ payload.order }}", "body": "It is on its way." },
        "runIf": { "==": [{ "var": "steps.bell.read" }, false] },
    });
    let bell = json!({
        "type": "in_app", "name": "bell",
        "template": { "body": "{{ subscriber.firstName }}, {{ payload.order }} is on its way." },
    });
    let wait = json!({ "type": "delay", "name": "wait", "metadata": lasting(1) });
    let book = json!({ "type": "custom", "name": "book", "metadata": { "handler": "book" } });
    world.workflow_of("order-shipped", &[bell, book, wait, mail, with(sms(), texts)]);
    world.subscriber(json!({
        "subscriberId": "ada", "firstName": "Ada", "email": "ada@example.org",
        "timezone": "Europe/Berlin",
    }));
    world.subscriber(json!({
        "subscriberId": "bob", "firstName": "Bob", "email": "bob@example.org", "phone": "+491",
    }));
    world.active_integration("email", "ses");
    let gold = json!({ "conditions": [payload_is("plan", "gold")] });
    world.integration(with(active_integration("email", "gold"), gold));
    world.active_integration("sms", "twilio");
    let hours = json!([{ "start": "09:00 AM", "end": "05:00 PM" }]);
    let saturday = json!({ "saturday": { "isEnabled": true, "hours": hours } });
    let quiet = json!({ "schedule": { "isEnabled": true, "weeklySchedule": saturday } });
    world.env.preferences(id("ada")).unwrap().update_global(&parsed(quiet)).unwrap();
    let off = json!({ "channels": { "email": false } });
    world.env.preferences(id("bob")).unwrap().update_global(&parsed(off)).unwrap();
}

#[test]
fn an_explanation_prints_as_a_tree() {
    on_both_with(
        |builder| builder.handler("book", |_: &Call| Ok(None)),
        |world| {
            shop(&world);
            let event = json!({
                "name": "order-shipped", "to": ["ada", "bob"],
                "payload": { "order": "A-1001", "express": true },
            });
            let explanation = explain(&world, event);
            let golden = "tests/golden/explain/tree.txt";
            let tree = format!("{explanation}\n");
            if env::var_os("TIDINGS_BLESS").is_some() {
                fs::write(golden, &tree).unwrap();
            }
            assert_eq!(tree, fs::read_to_string(golden).unwrap());
        },
    );
}

/// Neither the store nor anybody outside learns of an explanation.
#[test]
fn an_explanation_leaves_no_trace() {
    on_both(|world| {
        shop(&world);
        let (sender, told) = channel();
        let observer = move |event: &Event| sender.send(event.clone()).unwrap();
        let called = |_: &Call| panic!("the function was called");
        let engine =
            world.engine_with(|builder| builder.observer(observer).handler("book", called));
        let env = engine.environment(world.env.environment_id()).unwrap();
        let order = json!({ "express": true, "order": "A-1" });
        let event = parsed(json!({ "name": "order-shipped", "to": "ada", "payload": order }));
        let other = json!({ "name": "order-shipped", "to": "bob", "transactionId": "one" });
        env.events().trigger(&parsed(other)).unwrap();
        let seen = || {
            let due = (engine.delivery().next_due().unwrap(), engine.delivery().stats().unwrap());
            let inbox = env.inbox("ada").unwrap().counts().unwrap();
            (due, inbox, env.notifications().list(&parsed(json!({}))).unwrap())
        };
        let before = seen();
        world.unchanged(|| {
            for hours in 0..3 {
                let explanation = env.events().explain(&event, after(hours)).unwrap();
                assert_eq!(step(&explanation, 3).status, JobStatus::Completed);
            }
        });
        assert_eq!(seen(), before);
        assert_eq!(world.recorder.sent().len(), 0);
        drop((env, engine));
        let created = |event: &Event| matches!(event, Event::MessageCreated(_));
        assert_eq!(told.iter().filter(created).count(), 1);
    });
}

/// The answer to an event that is refused is that of the trigger.
#[test]
fn what_a_trigger_refuses_is_not_explained() {
    on_both(|world| {
        shop(&world);
        for event in [
            json!({ "name": "nothing", "to": "ada" }),
            json!({ "name": "order-shipped", "to": [] }),
            json!({ "name": "order-shipped", "to": "ada", "overrides": { "steps": 1 } }),
            json!({ "name": "order-shipped", "to": "ada", "context": { "Bad Type": "x" } }),
        ] {
            let explained = world.env.events().explain(&parsed(event.clone()), world.now());
            let triggered = world.env.events().trigger(&parsed(event));
            let said = |error: Error| (error.status(), error.to_string());
            assert_eq!(said(explained.unwrap_err()), said(triggered.unwrap_err()));
        }
    });
}

#[test]
fn an_event_that_does_nothing_says_why() {
    on_both(|world| {
        shop(&world);
        world.workflow(with(workflow_of("off", &[in_app()]), json!({ "active": false })));
        let event = json!({ "name": "order-shipped", "to": "ada", "transactionId": "one" });
        let first = explain(&world, event.clone());
        assert_eq!((&first.outcome, first.recipients.len()), (&EventOutcome::Accepted, 1));
        world.trigger(event.clone());

        let again = explain(&world, event);
        assert_eq!(wire(&again.outcome), json!({ "type": "repeated", "transactionId": "one" }));
        assert_eq!(again.recipients, []);
        let text = "order-shipped at 2026-11-20T12:00:00.000Z: nothing, one has happened before";
        assert_eq!(again.to_string(), text);

        let off = explain(&world, json!({ "name": "off", "to": "ada" }));
        let status = json!({ "type": "no_effect", "status": "trigger_not_active" });
        assert_eq!(wire(&off.outcome), status);
    });
}

/// Conditions and preferences: each comparison, and the layer that has decided.
#[test]
fn a_skipped_step_names_its_reason() {
    on_both(|world| {
        shop(&world);
        let event = json!({ "name": "order-shipped", "to": "bob", "payload": { "express": "no" } });
        let handled = world.engine_with(|builder| builder.handler("book", |_: &Call| Ok(None)));
        let env = handled.environment(world.env.environment_id()).unwrap();
        let explanation = env.events().explain(&parsed(event), world.now()).unwrap();
        let bob = explanation.recipient("bob").unwrap();

        let text = bob.step("text").unwrap();
        assert_eq!(text.reason, Some(Detail::FilteredByStepConditions));
        let [EvidenceKind::Filters { holds: false, checks }] = &kinds(text)[..] else {
            panic!("{text:?}")
        };
        let check = only(checks.clone());
        assert_eq!((check.on, check.field.as_str()), (FilterSource::Payload, "express"));
        assert_eq!((check.expected.as_str(), check.actual), ("true", Some(json!("no"))));

        let mail = bob.step("mail").unwrap();
        assert_eq!(mail.reason, Some(Detail::FilteredBySubscriberGlobalPreference));
        let EvidenceKind::Preference { enabled: false, decided_by, layers, .. } = &kinds(mail)[1]
        else {
            panic!("{mail:?}")
        };
        assert_eq!(*decided_by, Layer::SubscriberGlobal);
        assert_eq!((layers[0].layer, layers[0].enabled), (Layer::SubscriberGlobal, Some(false)));
        assert_eq!(mail.assumed, [Assumption::Unread]);
        assert_eq!(bob.step("book").unwrap().assumed, [Assumption::NoResult]);
    });
}

/// A preference that is off by its condition shows it, with the values that it has seen.
#[test]
fn the_condition_of_a_preference_is_a_part_of_the_explanation() {
    on_both(|world| {
        world.bare_subscriber("ada");
        world.in_app_workflow("hi");
        let large = json!({ ">": [{ "var": "payload.amount" }, 100] });
        let item = json!({ "workflowId": "hi", "channels": {}, "condition": large });
        let update = parsed(json!({ "preferences": [item] }));
        world.env.preferences(id("ada")).unwrap().update_bulk(&update).unwrap();

        for (amount, holds) in [(50, false), (101, true)] {
            let event = json!({ "name": "hi", "to": "ada", "payload": { "amount": amount } });
            let explanation = explain(&world, event);

            let found = kinds(&step(&explanation, 0));
            let EvidenceKind::Preference { layers, .. } = &found[0] else { panic!("{found:?}") };
            let condition = layers[0].condition.clone().unwrap();
            assert_eq!((condition.holds, condition.rule), (holds, large.clone()));
            assert_eq!(wire(condition.actual), json!({ "payload.amount": amount }));
            let (is, set) = if holds { ("holds", "on") } else { ("does not hold", "off") };
            let tree = explanation.to_string();
            let shown = [
                format!("preference: in_app is {set}, by subscriber workflow"),
                format!("└─ subscriber workflow: {set}, decides"),
                format!("   └─ condition {is}: {large}"),
                format!("      └─ payload.amount is {amount}"),
            ];
            let mut lines = tree.lines().skip_while(|line| !line.contains(&shown[0]));
            for part in &shown {
                assert!(lines.next().unwrap_or_default().ends_with(part), "{tree}");
            }
        }
    });
}

/// Without the function of a custom step, it fails as it would.
#[test]
fn a_missing_function_fails() {
    on_both(|world| {
        shop(&world);
        let explanation = explain(&world, json!({ "name": "order-shipped", "to": "ada" }));
        assert_eq!(step(&explanation, 1).reason, Some(Detail::HandlerMissing));
        assert_eq!(step(&explanation, 2).status, JobStatus::Canceled);
        assert_eq!(step(&explanation, 2).reason, Some(Detail::PrecedingStepFailed));
    });
}

/// The candidates for a message, and why the others were not chosen.
#[test]
fn integrations_say_why_they_do_not_send() {
    on_both(|world| {
        world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
        world.workflow_of("mail", &[email()]);
        world.active_integration("email", "first");
        world.active_integration("email", "second");
        let off = with(active_integration("email", "off"), json!({ "active": false }));
        world.integration(off);
        let gold = json!({ "conditions": [payload_is("plan", "gold")] });
        world.integration(with(active_integration("email", "gold"), gold));
        world.active_integration("sms", "twilio");
        let rejected = |event: Value| {
            let found = kinds(&step(&explain(&world, event), 0));
            let Some(EvidenceKind::Integrations { candidates, .. }) = found.last() else {
                panic!("{found:?}")
            };
            let mut said: Vec<_> = candidates
                .iter()
                .map(|one| (one.identifier.to_string(), wire(&one.rejected)["reason"].clone()))
                .collect();
            said.sort_by(|one, other| one.0.cmp(&other.0));
            said
        };
        let said = |reasons: [Value; 4]| {
            let names = ["first", "gold", "off", "second"].map(ToOwned::to_owned);
            names.into_iter().zip(reasons).collect::<Vec<_>>()
        };
        let plain = json!({ "name": "mail", "to": "ada" });
        let expected = [Value::Null, json!("conditions"), json!("inactive"), json!("outranked")];
        assert_eq!(rejected(plain.clone()), said(expected));
        let gold = with(plain.clone(), json!({ "payload": { "plan": "gold" } }));
        let expected = [json!("outranked"), Value::Null, json!("inactive"), json!("outranked")];
        assert_eq!(rejected(gold), said(expected));
        let named = json!({ "overrides": {
            "channels": { "email": { "integrationIdentifier": "second" } },
        } });
        let expected = [json!("not_named"), json!("not_named"), json!("inactive"), Value::Null];
        assert_eq!(rejected(with(plain, named)), said(expected));
    });
}

/// Conditions decide before the circuit does.
#[test]
fn an_integration_whose_conditions_do_not_hold_is_not_said_to_be_left_alone() {
    let policy = CircuitPolicy::new(1, Duration::from_secs(60));
    on_both_with(
        |builder| builder.circuit(policy),
        |world| {
            world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
            world.workflow_of("mail", &[email()]);
            world.active_integration("email", "plain");
            let gold = json!({ "conditions": [payload_is("plan", "gold")] });
            world.integration(with(active_integration("email", "gold"), gold));
            world.recorder.refuse_next(SendError::retryable("down"));
            let of_plan =
                |plan: &str| json!({ "name": "mail", "to": "ada", "payload": { "plan": plan } });
            world.trigger(of_plan("gold"));
            world.run_due();

            for (plan, expected) in [("free", json!("conditions")), ("gold", Value::Null)] {
                let found = kinds(&step(&explain(&world, of_plan(plan)), 0));
                let candidates = found.iter().find_map(|kind| match kind {
                    EvidenceKind::Integrations { candidates, .. } => Some(candidates.clone()),
                    _ => None,
                });
                let mut candidates = candidates.unwrap().into_iter();
                let gold = candidates.find(|one| one.identifier.as_str() == "gold").unwrap();
                assert_eq!(wire(&gold.rejected)["reason"], expected, "{plan}");
            }
        },
    );
}

/// The first variant whose filters hold is chosen, and those behind it are not looked at.
#[test]
fn the_choice_of_a_variant_says_why() {
    on_both(|world| {
        world.bare_subscriber("ada");
        let says = |body: &str| json!({ "type": "in_app", "template": { "body": body } });
        let when = |name: &str, plan: &str| {
            let filters = json!([payload_is("plan", plan)]);
            with(says(name), json!({ "name": name, "filters": filters }))
        };
        let variants = json!([when("gold", "gold"), when("free", "free"), when("other", "gold")]);
        world.workflow_of("plans", &[with(says("plain"), json!({ "variants": variants }))]);
        let found = |plan: &str| {
            let event = json!({ "name": "plans", "to": "ada", "payload": { "plan": plan } });
            let explanation = explain(&world, event);
            let variants = kinds(&step(&explanation, 0)).into_iter().find_map(|kind| match kind {
                EvidenceKind::Variants { variants, .. } => Some(variants),
                _ => None,
            });
            let variants = variants.unwrap();
            let told = explanation.to_string();
            let of = variants.iter().map(|one| (one.chosen, one.checks.len())).collect::<Vec<_>>();
            (of, told)
        };
        let (gold, told) = found("gold");
        assert_eq!(gold, [(true, 1), (false, 0), (false, 0)]);
        assert!(told.contains("variant: gold"), "{told}");
        let (none, told) = found("none");
        assert_eq!(none, [(false, 1); 3]);
        assert!(told.contains("variant: none, so the content of the step"), "{told}");
    });
}

#[test]
fn a_message_that_waits_for_an_integration_says_so() {
    on_both(|world| {
        world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
        world.workflow_of("mail", &[email()]);
        let ses = world.active_integration("email", "ses");
        let paused = world.env.integrations().pause(ses.id).unwrap().paused_at.unwrap();
        let explanation = explain(&world, json!({ "name": "mail", "to": "ada" }));
        let line = format!("integration ses: paused since {paused}");
        assert!(explanation.to_string().contains(&line), "{explanation}");
    });
}

#[test]
fn buttons_and_links_are_told() {
    on_both(|world| {
        let template = json!({
            "body": "Join?", "url": "https://example.org/{{ payload.n }}",
            "buttons": [{ "type": "primary", "content": "Yes", "resultContent": "Joined" }],
        });
        world.workflow_of("join", &[json!({ "type": "in_app", "template": template })]);
        let event = json!({ "name": "join", "to": "ada", "payload": { "n": 7 } });
        let explanation = explain(&world, event.clone());
        let told = explanation.to_string();
        assert!(
            told.contains("url: https://example.org/7") && told.contains("button: Yes"),
            "{told}"
        );
        world.trigger(event);
        let cta = step(&explanation, 0).message.unwrap().cta;
        assert_eq!(cta.as_ref(), Some(&only(world.inbox("ada")).cta));
    });
}

#[test]
fn an_event_of_a_paused_workflow_says_so() {
    on_both(|world| {
        world.workflow_of("hi", &[in_app()]);
        world.env.workflows().pause("hi").unwrap();
        let explanation = explain(&world, json!({ "name": "hi", "to": "ada" }));
        assert!(explanation.to_string().contains("workflow: paused"), "{explanation}");
        assert_eq!(step(&explanation, 0).status, JobStatus::Pending);
    });
}

#[test]
fn an_integration_without_an_address_says_so() {
    on_both(|world| {
        world.bare_subscriber("ada");
        world.workflow_of("chat", &[json!({ "type": "chat", "template": { "body": "Hi" } })]);
        world.active_integration("chat", "slack");
        world.active_integration("chat", "teams");
        let explanation = explain(&world, json!({ "name": "chat", "to": "ada" }));
        let chat = step(&explanation, 0);
        assert_eq!(chat.reason, Some(Detail::MissingChatWebhook));
        let found = kinds(&chat);
        let Some(EvidenceKind::Integrations { candidates, .. }) = found.last() else {
            panic!("{chat:?}")
        };
        let other = candidates.iter().find_map(|one| one.rejected.as_ref()).unwrap();
        let Rejected::NoAddress { detail, .. } = other else { panic!("{other:?}") };
        assert_eq!(*detail, Detail::MissingChatWebhook);
    });
}

/// A message goes to a number of integrations at most, and those behind them have an address as well.
#[test]
fn an_integration_behind_the_last_one_is_not_said_to_have_no_address() {
    on_both(|world| {
        let channels = (0..=StepDefinition::MAX_INTEGRATIONS).map(|number| {
            let push = world.active_integration("push", &format!("push-{number}"));
            let devices = json!({ "deviceTokens": ["phone"] });
            json!({ "providerId": "fcm", "_integrationId": push.id, "credentials": devices })
        });
        let channels: Vec<_> = channels.collect();
        world.subscriber(json!({ "subscriberId": "ada", "channels": channels }));
        let template = json!({ "title": "Hello", "body": "Hello" });
        world.workflow_of("push", &[json!({ "type": "push", "template": template })]);
        let found = kinds(&step(&explain(&world, json!({ "name": "push", "to": "ada" })), 0));
        let candidates = found.iter().find_map(|kind| match kind {
            EvidenceKind::Integrations { candidates, .. } => Some(candidates.clone()),
            _ => None,
        });
        let rejected = candidates.unwrap().into_iter().filter_map(|one| one.rejected);
        assert_eq!(rejected.collect::<Vec<_>>(), [Rejected::Outranked]);
    });
}

/// Schedules, delays, digests and throttles, at any time.
#[test]
fn time_is_that_of_the_event() {
    on_both(|world| {
        shop(&world);
        world.workflow_of("mail", &[email()]);
        let event = parsed(json!({ "name": "mail", "to": "ada" }));
        let mail = |at| step(&world.env.events().explain(&event, at).unwrap(), 0);
        // Saturday at nine in Berlin.
        let opening = after(20);
        let late = mail(after(0));
        let closed = kinds(&late).into_iter().find_map(|kind| match kind {
            EvidenceKind::Schedule { timing: SendTime::AtOpening { at, .. }, .. } => Some(at),
            _ => None,
        });
        assert_eq!((closed, late.updated_at), (Some(opening), Some(opening)));
        // A week before and a week after the clock.
        for at in [opening.before(Duration::from_secs(7 * 86_400)), after(20 + 7 * 24)] {
            let open = mail(at);
            assert_eq!((open.status, open.updated_at), (JobStatus::Completed, Some(at)));
            let timing = EvidenceKind::Schedule {
                channel: tidings::vocabulary::Channel::Email,
                timing: SendTime::Now,
            };
            assert!(kinds(&open).contains(&timing), "{open:?}");
        }
    });
}

#[test]
fn windows_and_places_are_those_of_the_store() {
    on_both(|world| {
        world.bare_subscriber("ada");
        let digest = json!({ "type": "digest", "metadata": lasting(2) });
        let limit = json!({ "amount": 1, "unit": "hours", "threshold": 2 });
        let throttle = json!({ "type": "throttle", "metadata": limit });
        world.workflow_of("replies", &[throttle, digest, in_app()]);
        let event = json!({ "name": "replies", "to": "ada" });
        let found = |number| {
            let explanation = explain(&world, event.clone());
            wire(&step(&explanation, number).evidence)
        };
        let throttled = |passes: bool, used: u32, until: Timestamp| {
            json!([{
                "at": world.now(), "type": "throttle",
                "passes": passes, "limit": 2, "used": used, "until": until,
            }])
        };
        let opens = json!({ "event": "opens", "until": after(2) });
        assert_eq!(found(0), throttled(true, 0, after(1)));
        assert_eq!(found(1), json!([{ "at": world.now(), "type": "digest", "result": opens }]));

        world.trigger(event.clone());
        world.tick();
        let joins = json!({ "event": "joins", "until": after(2), "events": 1 });
        assert_eq!(found(0), throttled(true, 1, after(1)));
        assert_eq!(found(1), json!([{ "at": world.now(), "type": "digest", "result": joins }]));
        let merged = step(&explain(&world, event.clone()), 1);
        assert_eq!(
            (merged.status, merged.assumed),
            (JobStatus::Merged, vec![Assumption::EarlierEvent])
        );

        world.trigger(event.clone());
        assert_eq!(found(0), throttled(false, 2, after(1)));
        let refused = step(&explain(&world, event.clone()), 0);
        assert_eq!(refused.reason, Some(Detail::ThrottleLimitExceeded));
    });
}

/// The steps behind a throttle or a digest are decided in advance. What they were decided from counts only if the
/// event goes on at once.
#[test]
fn steps_that_an_event_does_not_reach_have_no_findings() {
    on_both(|world| {
        world.bare_subscriber("ada");
        let throttle = json!({ "type": "throttle", "metadata": { "amount": 1, "unit": "hours" } });
        let gold = with(in_app(), json!({ "filters": [payload_is("plan", "gold")] }));
        world.workflow_of("limited", &[throttle, gold]);
        let event =
            json!({ "name": "limited", "to": "ada", "payload": { "plan": "gold", "name": "Ada" } });
        let passed = step(&explain(&world, event.clone()), 1);
        assert_eq!((passed.status, passed.evidence.len()), (JobStatus::Completed, 2));

        world.trigger(event.clone());
        let refused = step(&explain(&world, event), 1);
        assert_eq!(refused.reason, Some(Detail::PrecedingStepSkipped));
        assert_eq!(refused.evidence, []);
    });
}

/// The window closes behind the hours of the subscriber, in which the digest has collected the event.
#[test]
fn steps_behind_a_digest_have_the_findings_of_its_end() {
    on_both(|world| {
        world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
        world.active_integration("email", "ses");
        let hours = json!([{ "start": "09:00 AM", "end": "12:30 PM" }]);
        let friday = json!({ "friday": { "isEnabled": true, "hours": hours } });
        let schedule = json!({ "schedule": { "isEnabled": true, "weeklySchedule": friday } });
        world.env.preferences("ada").unwrap().update_global(&parsed(schedule)).unwrap();
        let look_back = json!({ "backoff": true, "backoffAmount": 2, "backoffUnit": "hours" });
        let digest = json!({ "type": "digest", "metadata": with(lasting(1), look_back) });
        world.workflow_of("replies", &[digest, email()]);
        let event = json!({ "name": "replies", "to": "ada" });
        world.trigger(event.clone());
        world.tick();

        let found = step(&explain(&world, event), 1).evidence;

        let schedules =
            found.iter().filter(|one| matches!(one.kind, EvidenceKind::Schedule { .. }));
        let times: Vec<_> = schedules.map(|one| one.at).collect();
        let closed = world.now().after(Duration::from_secs(3_600));
        // The turn, and the attempt at the next opening.
        assert_eq!((times.len(), times[0]), (2, closed), "{found:?}");
        assert!(found.iter().all(|one| one.at >= closed), "{found:?}");
    });
}

/// Events that wait do not go on in an explanation, so that its cost does not depend on them. The steps
/// that they may reach before the event that is explained say so.
#[test]
fn events_that_wait_take_no_part() {
    on_both(|world| {
        let wait = json!({ "type": "delay", "metadata": lasting(1) });
        let limit = json!({ "amount": 1, "unit": "days" });
        let throttle = json!({ "type": "throttle", "metadata": limit });
        let digest = json!({ "type": "digest", "metadata": lasting(2) });
        world.workflow_of("late", &[wait, throttle, digest, in_app()]);
        let event = json!({ "name": "late", "to": "ada" });
        world.trigger(event.clone());
        world.tick();
        let explanation = explain(&world, event);
        let throttle = step(&explanation, 1);
        let found = kinds(&throttle);
        let [EvidenceKind::Throttle { passes: true, used: 0, .. }] = found[..] else {
            panic!("{found:?}")
        };
        assert_eq!(wire(throttle.assumed), json!(["no_other_events"]));
        let digest = wire(step(&explanation, 2).assumed);
        assert_eq!(digest, json!(["no_later_events", "no_other_events"]));

        let backoff = json!({
            "type": "backoff", "amount": 1, "unit": "days", "backoffAmount": 1,
            "backoffUnit": "hours",
        });
        let passed = json!({ "type": "digest", "metadata": backoff });
        let wait = json!({ "type": "delay", "metadata": lasting(1) });
        world.workflow_of("backoff", &[wait, passed, in_app()]);
        let explanation = explain(&world, json!({ "name": "backoff", "to": "ada" }));
        let digest = step(&explanation, 1);
        assert_eq!(digest.reason, Some(Detail::DigestPassed));
        assert_eq!(wire(digest.assumed), json!(["no_other_events"]));
    });
}

/// The window of an event that is explained closes with this event alone.
#[test]
fn a_window_that_opens_is_assumed_to_get_no_other_events() {
    on_both(|world| {
        let digest = json!({ "type": "digest", "metadata": lasting(2) });
        let say = json!({ "type": "in_app", "template": { "body": "{{ total_count }} of {{ events[0].payload.n }}" } });
        world.workflow_of("replies", &[digest, say]);
        let event = json!({ "name": "replies", "to": "ada", "payload": { "n": 7 } });
        let explanation = explain(&world, event);
        assert!(explanation.recipients[0].is_new);
        let opened = step(&explanation, 0);
        let opens = EvidenceKind::Digest { result: DigestResult::opens(after(2)) };
        assert_eq!(
            (kinds(&opened), opened.assumed),
            (vec![opens], vec![Assumption::NoLaterEvents])
        );
        let message = step(&explanation, 1).message.unwrap();
        assert_eq!((message.created_at, wire(message.content)), (after(2), json!("1 of 7")));
    });
}

/// Delays, and the end of the simulated time.
#[test]
fn an_explanation_says_where_it_ends() {
    on_both(|world| {
        let months = json!({ "type": "regular", "amount": 8, "unit": "months" });
        let long = json!({ "type": "delay", "metadata": months });
        world.workflow_of("trial", &[long.clone(), long, in_app()]);
        let explanation = explain(&world, json!({ "name": "trial", "to": "ada" }));
        let cut = explanation.cut.unwrap();
        assert_eq!((cut.jobs, cut.until), (2, after(400 * 24)));
        assert_eq!(step(&explanation, 0).status, JobStatus::Completed);
        let delay = step(&explanation, 1);
        let JobStatus::Delayed { until } = delay.status else { panic!("{delay:?}") };
        let found = kinds(&delay);
        let [EvidenceKind::Delay { end: DelayEnd::Lasts { until: end, .. } }] = found[..] else {
            panic!("{found:?}")
        };
        assert_eq!((until, wire(until)), (end, json!("2028-03-20T12:00:00.000Z")));
        let last = "└─ 2 jobs wait at 2027-12-25T12:00:00.000Z, where the simulation ends";
        assert_eq!(explanation.to_string().lines().last(), Some(last));
    });
}

/// Small topics are explained, large ones are counted.
#[test]
fn members_whom_a_topic_leaves_out_are_told() {
    on_both(|world| {
        world.in_app_workflow("hi");
        let rule = json!({ "==": [{ "var": "payload.n" }, 1] });
        for (who, more) in [
            ("ada", json!({ "preferences": [{ "workflowId": "hi", "enabled": false }] })),
            ("bob", json!({ "preferences": [{ "workflowId": "hi", "condition": rule }] })),
            ("cyd", json!({})),
        ] {
            world.bare_subscriber(who);
            let item = json!({ "subscriberId": who, "identifier": format!("of-{who}") });
            let subscribe = with(json!({ "subscriptions": [item] }), more);
            let subscribed = world.env.topics().subscribe("news", &parsed(subscribe)).unwrap();
            assert_eq!(subscribed.errors, []);
        }
        world.bare_subscriber("dan");
        let other = json!({ "subscriptions": ["dan"], "context": { "tenant": "acme" } });
        assert_eq!(world.env.topics().subscribe("news", &parsed(other)).unwrap().errors, []);
        let to = json!([{ "type": "Topic", "topicKey": "news" }]);

        let explanation = explain(&world, json!({ "name": "hi", "to": to, "payload": { "n": 2 } }));

        assert_eq!(explanation.recipients.len(), 1);
        assert_eq!(explanation.filtered, 3);
        let [ada, bob, dan] = &explanation.filtered_members[..] else { panic!("{explanation}") };
        let [ada, bob, dan] = [ada, bob, dan].map(|member| only(member.subscriptions.clone()));
        assert_eq!(ada.identifier.as_str(), "of-ada");
        assert_eq!((ada.has_contexts, ada.enabled, ada.condition), (true, Some(false), None));
        let condition = bob.condition.unwrap();
        assert_eq!((condition.holds, &condition.actual["payload.n"]), (false, &json!(2)));
        assert_eq!((dan.has_contexts, dan.enabled), (false, None));
        let tree = explanation.to_string();
        for line in [
            "3 subscribers in topics have no subscription that admits it",
            "   ├─ ada\n   │  └─ of-ada in news: off",
            "of-bob in news: its condition does not hold",
            "payload.n is 2",
            "in news: it is of other contexts",
        ] {
            assert!(tree.contains(line), "{line}: {tree}");
        }
    });
}

#[test]
fn topics_are_explained_up_to_a_hundred_subscribers() {
    on_both(|world| {
        world.in_app_workflow("news");
        world.env.topics().create(&parsed(json!({ "key": "all" }))).unwrap();
        let subscribe = |first: usize, count: usize| {
            let ids: Vec<_> = (first..first + count).map(|n| format!("s{n}")).collect();
            for id in &ids {
                world.bare_subscriber(id);
            }
            let all = parsed(json!({ "subscriberIds": ids }));
            assert_eq!(world.env.topics().subscribe("all", &all).unwrap().errors, []);
        };
        let topic = json!({ "type": "Topic", "topicKey": "all" });
        let none = json!({ "type": "Topic", "topicKey": "none" });
        let event = json!({ "name": "news", "to": ["ada", topic, none] });
        subscribe(0, 100);
        let explanation = explain(&world, event.clone());
        assert_eq!((explanation.recipients.len(), explanation.crowd), (101, None));
        let member = explanation.recipient("s7").unwrap();
        assert_eq!((wire(&member.topics), member.is_new), (json!(["all"]), false));
        assert_eq!(wire(&explanation.missing_topics), json!(["none"]));

        subscribe(100, 50);
        let explanation = world.unchanged(|| explain(&world, event));
        assert_eq!(explanation.recipients.len(), 1);
        assert!(explanation.recipients[0].is_new);
        assert_eq!(step(&explanation, 0).evidence.len(), 1);
        let crowd = explanation.crowd.unwrap();
        assert_eq!((crowd.subscribers, crowd.is_complete), (150, true));
        let text = explanation.to_string();
        assert!(text.contains("\n├─ 150 subscribers in topics are told by tasks"), "{text}");
    });
}
