//! An explanation is what the trigger and a simulation do then, in a world that stays as it is.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use domain::explain::{Assumption, ExplainedRecipient, ExplainedStep};
use proptest::prelude::*;
use proptest::sample::subsequence;
use serde_json::{Value, json};
use testkit::interposed::Interposed;
use testkit::parsed;
use testkit::world::{Backend, World, email, id, payload_is, sms, time, with, workflow_of};
use tidings::Call;
use tidings::job::{Detail, JobStatus};
use tidings::message::MessageQuery;
use tidings::notification::Notification;
use tidings::time::Timestamp;
use tidings::trigger::Trigger;
use tidings::vocabulary::StepType;

const DAY: u64 = 24 * 3_600;

/// Steps in an order in which no step of an earlier event can take part in what is explained.
fn steps() -> Vec<Value> {
    let say = |body: &str| json!({ "type": "in_app", "template": { "body": body } });
    let lasting = |hours: u32| json!({ "type": "regular", "amount": hours, "unit": "hours" });
    let hour = |kind: &str| json!({ "type": kind, "metadata": lasting(1) });
    let throttle = json!({ "type": "throttle", "metadata": { "amount": 1, "unit": "hours" } });
    let custom = |handler: &str| json!({ "type": "custom", "metadata": { "handler": handler } });
    let look_back = json!({ "backoff": true, "backoffAmount": 2, "backoffUnit": "hours" });
    let mut backoff = with(hour("digest"), json!({ "name": "backoff" }));
    backoff["metadata"].as_object_mut().unwrap().extend(look_back.as_object().unwrap().clone());
    let unread = json!({ "==": [{ "var": "steps.bell.read" }, false] });
    let loud = json!({ "==": [{ "var": "payload.loud" }, true] });
    let variant = with(email(), json!({ "filters": [payload_is("plan", "gold")] }));
    let extended = with(lasting(5), json!({ "extendToSchedule": true }));
    vec![
        with(say("{{ payload.n }} for {{ subscriber.firstName }}"), json!({ "name": "bell" })),
        with(say("gold only"), json!({ "filters": [payload_is("plan", "gold")] })),
        with(throttle, json!({ "filters": [payload_is("plan", "gold")] })),
        with(hour("digest"), json!({ "metadata": lasting(2) })),
        backoff,
        custom("known"),
        hour("delay"),
        with(email(), json!({ "runIf": loud })),
        with(email(), json!({ "name": "mail", "variants": [variant] })),
        sms(),
        with(say("{{ payload.n | int + 1 }}"), json!({ "runIf": unread })),
        json!({ "type": "delay", "metadata": extended }),
        with(email(), json!({ "name": "late" })),
        custom("missing"),
        say("the end"),
    ]
}

/// A world, with the number of calls of its function.
fn world(
    backend: &Backend,
    chosen: &[Value],
    critical: bool,
    rate: usize,
) -> (World, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let known = move |_: &Call| {
        counted.fetch_add(1, Ordering::Relaxed);
        Ok(None)
    };
    let world = World::with(Interposed::over(backend.open()), |builder| {
        builder.handler("known", known).per_second("quick", rate)
    });
    for to in ["ada", "bob", "cleo"] {
        let email = format!("{to}@example.org");
        world.subscriber(json!({ "subscriberId": to, "email": email, "firstName": to }));
    }
    world.active_integration("email", "quick");
    let gold = json!({ "conditions": [payload_is("plan", "gold")] });
    world.integration(with(testkit::world::active_integration("email", "gold"), gold));
    let workflow = workflow_of("any", chosen);
    let defined = json!({ "critical": critical, "preferenceSettings": { "chat": false } });
    world.workflow(with(workflow, defined));
    let hours = json!([{ "start": "09:00 AM", "end": "05:00 PM" }]);
    let saturday = json!({ "saturday": { "isEnabled": true, "hours": hours } });
    let set = |to: &str, update: Value| {
        world.env.preferences(id(to)).unwrap().update_global(&parsed(update)).unwrap();
    };
    set("bob", json!({ "schedule": { "isEnabled": true, "weeklySchedule": saturday } }));
    set("cleo", json!({ "channels": { "email": false } }));
    world.env.topics().create(&parsed(json!({ "key": "news" }))).unwrap();
    let member = parsed(json!({ "subscriberIds": ["bob", "dora"] }));
    world.subscriber(json!({ "subscriberId": "dora", "firstName": "dora" }));
    assert_eq!(world.env.topics().subscribe("news", &member).unwrap().errors, []);
    (world, calls)
}

/// An event: minutes since the one before, and bits for its recipients and its payload.
type Event = (u64, u8);

fn trigger((_, bits): Event, number: usize) -> Trigger {
    let mut to: Vec<Value> = Vec::new();
    for (bit, recipient) in
        [json!("ada"), json!("bob"), json!("cleo"), json!("new"), topic()].into_iter().enumerate()
    {
        if bits & (1 << bit) != 0 {
            to.push(recipient);
        }
    }
    if to.is_empty() {
        to.push(json!("ada"));
    }
    let plan = if bits & 32 == 0 { "gold" } else { "free" };
    let mut event = json!({
        "name": "any", "to": to,
        "payload": { "n": number, "plan": plan, "loud": bits & 64 != 0 },
    });
    if bits & 128 != 0 {
        event["expiresAt"] = json!("2026-11-20T16:30:00.000Z");
    }
    parsed(event)
}

fn topic() -> Value {
    json!({ "type": "Topic", "topicKey": "news" })
}

/// What has become of an event, as an explanation says it.
fn really(world: &World, trigger: &Trigger, before: &BTreeSet<String>) -> Vec<ExplainedRecipient> {
    let receipt = world.env.events().trigger(trigger).unwrap();
    world.engine.delivery().run_until(world.now().after(Duration::from_secs(400 * DAY))).unwrap();
    let query = json!({ "transactionId": receipt.transaction_id, "limit": 50 });
    let mut made = world.notifications(query);
    made.sort_by_key(|one| one.id.ordinal());
    made.iter().map(|one| recipient(world, one, before)).collect()
}

fn recipient(
    world: &World,
    notification: &Notification,
    before: &BTreeSet<String>,
) -> ExplainedRecipient {
    let subscriber_id = notification.subscriber.as_ref().unwrap().subscriber_id.clone();
    let topics = notification.topics.iter().map(|topic| topic.topic_key.clone()).collect();
    let is_new = !before.contains(subscriber_id.as_str());
    // A subscriber has more messages than a page has by default.
    let query = MessageQuery::default().limit(100);
    let messages = world.env.messages().list(subscriber_id.clone(), &query).unwrap().data;
    let mut explained = ExplainedRecipient::new(subscriber_id, is_new, topics);
    for job in &notification.jobs {
        let message = messages.iter().find(|message| Some(message.id) == job.message_id);
        assert_eq!(message.is_some(), job.message_id.is_some());
        let at = notification.created_at;
        explained.steps.push(plain(ExplainedStep::new(job, at, Vec::new(), message)));
    }
    explained
}

// The law is about what happens.
fn plain(mut step: ExplainedStep) -> ExplainedStep {
    step.evidence.clear();
    step.assumed.clear();
    step
}

fn plainly(mut recipients: Vec<ExplainedRecipient>) -> Vec<ExplainedRecipient> {
    for recipient in &mut recipients {
        recipient.steps = recipient.steps.drain(..).map(plain).collect();
    }
    recipients
}

/// Checks that what a step shows was decided in its turn, and that a step which the event does not reach shows
/// nothing.
fn check_evidence(recipient: &ExplainedRecipient) {
    let mut begun = None;
    for step in &recipient.steps {
        let is_reached = match step.reason {
            Some(Detail::PrecedingStepSkipped | Detail::PrecedingStepFailed) => false,
            reason => step.status != JobStatus::Merged || reason == Some(Detail::DigestMerged),
        };
        let in_turn = step.evidence.iter().all(|one| is_reached && Some(one.at) >= begun);
        assert!(in_turn, "{step:?} behind {begun:?}");
        // Those behind a step that waits are decided at its end.
        let waits = matches!(step.kind, StepType::Delay | StepType::Digest | StepType::Custom);
        if waits && step.status.has_ended() {
            begun = begun.max(step.updated_at);
        }
    }
}

fn subscribers(world: &World) -> BTreeSet<String> {
    let all = world.env.subscribers().list(&parsed(json!({ "limit": 100 }))).unwrap().data;
    all.into_iter().map(|one| one.subscriber_id.to_string()).collect()
}

fn minutes(count: u64) -> Timestamp {
    time(testkit::world::START).after(Duration::from_secs(count * 60))
}

fn history() -> impl Strategy<Value = Vec<Event>> {
    prop::collection::vec((0..100_u64, any::<u8>()), 1..6)
}

/// Drops the steps from the one on that has taken the place of earlier events: the explanation has
/// assumed that one of them is left at the end of the window. Returns `true` if there is such a step.
fn cut_where_it_took_over(
    explained: &mut ExplainedRecipient,
    really: &mut ExplainedRecipient,
) -> bool {
    let mut steps = explained.steps.iter().zip(&really.steps);
    let took_over = steps.position(|(explained, really)| {
        explained.assumed.contains(&Assumption::EarlierEvent) && really.status != JobStatus::Merged
    });
    if let Some(step) = took_over {
        explained.steps.truncate(step);
        really.steps.truncate(step);
    }
    took_over.is_some()
}

/// Returns `true` if an assumption of the explanation was wrong.
fn holds(backend: &Backend, chosen: &[Value], critical: bool, events: &[Event]) -> bool {
    // The messages of earlier events that wait for an opening take part in the rate.
    let rate = if events.len() == 1 { 1 } else { 100 };
    let (world, calls) = world(backend, chosen, critical, rate);
    let (mut now, mut took_over) = (0, false);
    for (number, event) in events.iter().enumerate() {
        now += event.0;
        let trigger = trigger(*event, number);
        let sent = (world.recorder.sent().len(), calls.load(Ordering::Relaxed));
        let explained =
            world.unchanged(|| world.env.events().explain(&trigger, minutes(now)).unwrap());
        assert_eq!(sent, (world.recorder.sent().len(), calls.load(Ordering::Relaxed)));
        assert!(explained.cut.is_none(), "{explained}");
        explained.recipients.iter().for_each(check_evidence);
        // It prints, and it is JSON.
        assert!(explained.to_string().lines().count() > explained.recipients.len());
        assert!(serde_json::to_value(&explained).unwrap().is_object());
        world.engine.delivery().run_until(minutes(now)).unwrap();
        if number + 1 < events.len() {
            world.env.events().trigger(&trigger).unwrap();
            world.engine.delivery().run_until(minutes(now)).unwrap();
        } else {
            let before = subscribers(&world);
            let mut really = really(&world, &trigger, &before);
            let mut recipients = explained.recipients.clone();
            for (explained, really) in recipients.iter_mut().zip(&mut really) {
                took_over |= cut_where_it_took_over(explained, really);
            }
            assert_eq!(plainly(recipients), really, "{explained}");
        }
    }
    let (_, earlier) = events.split_last().unwrap();
    let expires = |event: &Event| event.1 & 128 != 0;
    assert!(!took_over || earlier.iter().any(expires), "no earlier event expires");
    took_over
}

/// Messages that a provider does not take at once are spread over the seconds.
#[test]
fn an_explanation_keeps_to_the_rate_of_a_provider() {
    let mails: Vec<_> = steps().into_iter().filter(|step| step["type"] == "email").collect();
    let chosen = [&steps()[..1], &mails[..]].concat();
    holds(&Backend::both()[0], &chosen, true, &[(0, 0b0110_1111)]);
}

/// The second event meets a throttle without a free place, or a digest that passes the first event only.
#[test]
fn an_explanation_shows_what_the_event_has_reached() {
    let mail = steps().swap_remove(8);
    for before in [2, 4] {
        let chosen = [steps().swap_remove(0), steps().swap_remove(before), mail.clone()];
        holds(&Backend::both()[0], &chosen, true, &[(0, 0b0000_0001), (30, 0b0000_0001)]);
    }
}

/// The second event joins the window of the first one, which has expired at its end.
#[test]
fn an_event_takes_the_place_of_one_that_has_expired() {
    let digest = steps().swap_remove(3);
    let chosen = [steps().swap_remove(0), digest];
    assert!(holds(&Backend::both()[0], &chosen, false, &[(150, 0b1000_0010), (0, 0b0000_0010)]));
    assert!(!holds(&Backend::both()[0], &chosen, false, &[(150, 0b0000_0010), (0, 0b0000_0010)]));
}

proptest! {
    #![proptest_config(crate::cases(32))]

    #[test]
    fn an_explanation_is_what_happens(
        others in subsequence(steps().split_off(1), 0..8),
        critical in any::<bool>(),
        events in history(),
    ) {
        // Conditions refer to the first step.
        let chosen: Vec<_> = steps().into_iter().take(1).chain(others).collect();
        holds(&Backend::both()[0], &chosen, critical, &events);
    }
}

/// All steps, on both backends.
#[test]
fn an_explanation_is_what_happens_on_both_backends() {
    for backend in Backend::both() {
        holds(&backend, &steps(), false, &[(0, 0b0001_1111), (30, 0b0101_1111), (95, 0b0001_0111)]);
    }
}
