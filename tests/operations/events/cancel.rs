//! Canceled events, and events that expire.

use std::sync::{Arc, OnceLock, mpsc};
use std::time::Duration;

use serde_json::{Value, json};
use testkit::interposed::{Interposed, Point};
use testkit::tables::{dump, put};
use tidings::ids::NotificationId;
use tidings::notification::NotificationQuery;
use tidings::store::Table;
use tidings::{Delivery, Provider, ProviderReceipt, Scope, SendError};

use crate::delivery::log;
use crate::subscriptions::subscribe_all;
use crate::world::{Backend, Counts, World, email, in_app, on_both, only, parsed, wire, with};

const NOTHING: Counts = Counts { sent: 0, retried: 0, failed: 0, skipped: 0, superseded: 0 };

fn ada() -> Value {
    json!({ "subscriberId": "ada", "email": "ada@example.org" })
}

fn trigger_email(world: &World, more: Value) -> NotificationId {
    world.active_integration("email", "ses");
    world.workflow_of("mail", &[in_app(), email(), email()]);
    let trigger = with(json!({ "name": "mail", "to": ada(), "transactionId": "t1" }), more);
    only(world.trigger(trigger).notifications).notification_id
}

#[test]
fn what_waits_is_canceled_at_once() {
    on_both(|world| {
        let id = trigger_email(&world, json!({}));

        let canceled = world.env.events().cancel("t1").unwrap();

        let expected =
            json!({ "transactionId": "t1", "canceled": 2, "running": 0, "remaining": 0 });
        assert_eq!(wire(&canceled), expected);
        assert_eq!(world.statuses(id), ["completed", "canceled", "canceled"]);
        assert_eq!(log(&world.notification(id), 1), ["step_queued", "canceled"]);
        assert_eq!((world.run_due(), world.recorder.sent().len()), (NOTHING, 0));
        // Twice is the same as once.
        assert_eq!(world.unchanged(|| world.env.events().cancel("t1").unwrap()), canceled);
        // The message in the inbox has been delivered.
        assert_eq!(world.inbox("ada").len(), 1);
    });
}

/// Nothing remains of a notification that was deleted.
#[test]
fn what_is_deleted_does_not_remain() {
    on_both(|world| {
        let delay = json!({ "type": "regular", "amount": 1, "unit": "hours" });
        world.workflow_of("late", &[json!({ "type": "delay", "metadata": delay }), in_app()]);
        let event = json!({ "name": "late", "to": ["ada", "bob"], "transactionId": "t1" });
        let [ada, _] = &world.trigger(event).notifications[..] else { panic!("two recipients") };
        world.env.notifications().delete(ada.notification_id).unwrap();

        let canceled = world.env.events().cancel("t1").unwrap();

        assert_eq!((canceled.canceled, canceled.running, canceled.remaining), (2, 0, 0));
    });
}

#[test]
fn an_event_that_is_not_there_cannot_be_canceled() {
    on_both(|world| {
        trigger_email(&world, json!({}));
        let expected = "404 event `t2` is not there";
        world.refuses(expected, || world.env.events().cancel("t2"));
        let elsewhere = world.production();
        world.refuses("404 event `t1` is not there", || elsewhere.events().cancel("t1"));
    });
}

/// One damaged notification does not keep the others from their end.
#[test]
fn an_event_with_a_notification_that_cannot_be_read_is_canceled() {
    on_both(|world| {
        world.active_integration("email", "ses");
        world.workflow_of("mail", &[in_app(), email(), email()]);
        let to = json!(["bob", ada()]);
        world.trigger(json!({ "name": "mail", "to": to, "transactionId": "t1" }));
        let entries = dump(&world.store);
        let mut rows = entries.iter().filter(|(table, ..)| *table == Table::Notifications);
        let (table, key, _) = rows.next().unwrap();
        put(&world.store, *table, key, Some(b"?"));

        let canceled = world.env.events().cancel("t1").unwrap();

        assert_eq!((canceled.canceled, canceled.remaining), (2, 0));
        world.run_due();
        assert_eq!(world.recorder.sent().len(), 0);
    });
}

/// Neither does a damaged task.
#[test]
fn an_event_with_a_task_that_cannot_be_read_is_canceled() {
    on_both(|world| {
        world.active_integration("email", "ses");
        world.workflow_of("mail", &[email()]);
        let to = json!([ada(), { "subscriberId": "bob", "email": "bob@example.org" }]);
        world.trigger(json!({ "name": "mail", "to": to, "transactionId": "t1" }));
        let entries = dump(&world.store);
        let mut rows = entries.iter().filter(|(table, ..)| *table == Table::Tasks);
        let (table, key, _) = rows.next().unwrap();
        put(&world.store, *table, key, Some(b"?"));

        let canceled = world.env.events().cancel("t1").unwrap();

        assert_eq!((canceled.canceled, canceled.remaining), (2, 0));
        world.run_due();
        assert_eq!(world.recorder.sent().len(), 0);
    });
}

#[test]
fn a_message_that_waits_for_another_attempt_is_canceled() {
    on_both(|world| {
        let id = trigger_email(&world, json!({}));
        world.recorder.refuse_next(SendError::retryable("busy"));
        assert_eq!(world.run_due(), Counts { sent: 1, retried: 1, ..NOTHING });

        assert_eq!(world.env.events().cancel("t1").unwrap().canceled, 1);

        world.pass(Duration::from_secs(86_400));
        assert_eq!(world.run_due(), NOTHING);
        assert_eq!(world.statuses(id), ["completed", "canceled", "completed"]);
    });
}

// A provider that cancels the event whose message it has.
#[derive(Clone, Debug)]
struct Canceling {
    scope: Arc<OnceLock<Scope>>,
    answer: Result<ProviderReceipt, SendError>,
}

impl Provider for Canceling {
    fn send(&self, _: &Delivery) -> Result<ProviderReceipt, SendError> {
        let canceled = self.scope.get().unwrap().events().cancel("t1").unwrap();
        assert_eq!((canceled.canceled, canceled.running), (0, 2));
        self.answer.clone()
    }
}

/// One row per answer of a provider that has the message meanwhile.
#[test]
fn a_message_that_a_provider_has_is_not_recalled_and_not_tried_again() {
    let rows: [(Result<_, _>, _, &[&str], _); 3] = [
        (Ok(ProviderReceipt::default()), "completed", &["message_sent"], (1, 1)),
        (
            Err(SendError::retryable("busy")),
            "canceled",
            &["provider_retry: busy", "canceled"],
            (0, 2),
        ),
        (Err(SendError::permanent("no")), "failed", &["provider_error: refused: no"], (0, 1)),
    ];
    for (answer, status, end, (sent, skipped)) in rows {
        on_both_canceling(&answer, |world| {
            let id = trigger_email(world, json!({}));

            let counts = world.run_due();

            assert_eq!((counts.sent, counts.skipped), (sent, skipped), "{status}");
            assert_eq!(world.statuses(id), ["completed", status, "canceled"]);
            let log = log(&world.notification(id), 1);
            assert_eq!(log[log.len() - end.len()..], *end);
            world.pass(Duration::from_secs(86_400));
            assert_eq!(world.run_due(), NOTHING);
        });
    }
}

fn on_both_canceling(answer: &Result<ProviderReceipt, SendError>, scenario: impl Fn(&World)) {
    for backend in Backend::both() {
        let scope = Arc::new(OnceLock::new());
        let provider = Canceling { scope: Arc::clone(&scope), answer: answer.clone() };
        let store = Interposed::over(backend.open());
        let world = World::with(store, |builder| builder.default_provider(provider));
        scope.set(world.env.clone()).unwrap();
        scenario(&world);
    }
}

#[test]
fn a_crowd_is_canceled_by_tasks() {
    on_both(|world| {
        world.active_integration("email", "ses");
        world.workflow_of("mail", &[email()]);
        let people: Vec<String> = (0..150).map(|number| format!("s{number:03}")).collect();
        for id in &people {
            world.subscriber(json!({ "subscriberId": id, "email": "a@example.org" }));
        }
        subscribe_all(&world, "crowd", json!({ "subscriptions": people[..75] }));
        let topic = json!({ "type": "Topic", "topicKey": "crowd" });
        let to: Vec<Value> = people[75..].iter().map(|id| json!(id)).chain([topic]).collect();
        world.trigger(json!({ "name": "mail", "to": to, "transactionId": "t1" }));

        let canceled = world.env.events().cancel("t1").unwrap();

        assert_eq!((canceled.canceled, canceled.remaining), (100, 50));
        world.run_due();
        assert_eq!(world.recorder.sent().len(), 0);
        let query = NotificationQuery::default().limit(50);
        for page in 0..3 {
            for notification in
                world.env.notifications().list(&query.clone().page_number(page)).unwrap().data
            {
                assert_eq!(only(notification.jobs).status.as_str(), "canceled");
            }
        }
        assert_eq!(world.engine.delivery().next_due().unwrap(), None);
    });
}

/// A cancellation has jobs left to end, and all of its event is deleted before. The id is that of
/// another event then.
#[test]
fn a_cancellation_does_not_reach_a_later_event() {
    on_both(|world| {
        world.active_integration("email", "ses");
        world.workflow_of("mail", &[email()]);
        let person = |n| json!({ "subscriberId": format!("s{n}"), "email": "a@example.org" });
        let people: Vec<Value> = (0..75).map(person).collect();
        subscribe_crowd(&world, 75);
        let topic = json!({ "type": "Topic", "topicKey": "crowd" });
        let to: Vec<Value> = people.into_iter().chain([topic]).collect();
        let trigger = json!({ "name": "mail", "to": to, "transactionId": "t1" });
        world.trigger(trigger.clone());
        assert_eq!(world.env.events().cancel("t1").unwrap().remaining, 50);
        let notifications = world.env.notifications();
        loop {
            let page = notifications.list(&NotificationQuery::default().limit(50)).unwrap();
            if page.data.is_empty() {
                break;
            }
            page.data.iter().for_each(|one| notifications.delete(one.id).unwrap());
        }

        world.trigger(trigger);
        world.run_due();

        assert_eq!(world.recorder.sent().len(), 150);
    });
}

/// Subscribes others than those with low numbers to a topic.
fn subscribe_crowd(world: &World, number: usize) {
    let ids: Vec<String> = (100..100 + number).map(|n| format!("s{n}")).collect();
    for id in &ids {
        world.subscriber(json!({ "subscriberId": id, "email": "a@example.org" }));
    }
    subscribe_all(world, "crowd", json!({ "subscriptions": ids }));
}

#[test]
fn what_is_not_sent_in_time_is_skipped() {
    on_both(|world| {
        let expires_at = world.now().after(Duration::from_secs(1));
        let id = trigger_email(&world, json!({ "expiresAt": expires_at }));
        assert_eq!(world.notification(id).expires_at, Some(expires_at));
        world.recorder.refuse_next(SendError::retryable("busy"));
        assert_eq!(world.run_due(), Counts { sent: 1, retried: 1, ..NOTHING });

        world.pass(Duration::from_secs(86_400));

        assert_eq!(world.run_due(), Counts { skipped: 1, ..NOTHING });
        assert_eq!(world.statuses(id), ["completed", "skipped", "completed"]);
        assert_eq!(log(&world.notification(id), 1).last().unwrap(), "expired");
    });
}

#[test]
fn an_event_that_has_expired_reaches_nobody() {
    on_both(|world| {
        let id = trigger_email(&world, json!({ "expiresAt": world.now() }));
        assert_eq!(world.statuses(id), ["skipped", "skipped", "skipped"]);
        assert_eq!((world.inbox("ada"), world.run_due()), (vec![], NOTHING));
    });
}

/// The event is canceled at each point between the claim of a turn and its settlement. The clock stands still, so
/// that the turn is due again as it was.
#[test]
fn an_event_that_is_canceled_between_plan_and_settlement_ends() {
    let delay = json!({ "type": "regular", "amount": 1, "unit": "minutes" });
    let delay = json!({ "type": "delay", "metadata": delay });
    let mut canceled = 0;
    for calls in 0.. {
        let world = World::in_memory();
        world.bare_subscriber("ada");
        world.workflow_of("late", &[delay.clone(), in_app()]);
        let event = json!({ "name": "late", "to": "ada", "transactionId": "t1" });
        let id = only(world.trigger(event).notifications).notification_id;
        world.clock.advance(Duration::from_secs(60));
        let (env, (tell, told)) = (world.env.clone(), mpsc::channel());
        world.store.pause(Point::Begin, calls, move || {
            tell.send(env.events().cancel("t1").unwrap().canceled).unwrap();
        });

        world.engine.delivery().run_due(100).unwrap();

        let Ok(ended) = told.try_recv() else { break };
        let expected = if ended == 0 { ["completed"; 2] } else { ["canceled"; 2] };
        assert_eq!(world.statuses(id), expected, "canceled before call {calls}");
        assert_eq!(world.inbox("ada").len(), usize::from(ended == 0));
        assert_eq!(world.engine.delivery().next_due().unwrap(), None);
        assert_eq!(world.engine.check().unwrap().findings, []);
        canceled += usize::from(ended > 0);
    }
    // Behind the claim, there are the plan and the settlement.
    assert!(canceled >= 3, "{canceled}");
}

/// A message that is sent again holds up the one behind a digest, which is that of another event, too.
#[test]
fn what_is_left_of_a_canceled_event_does_not_wait_for_what_has_ended() {
    on_both(|world| {
        let ses = world.active_integration("email", "ses").id;
        let mail = with(email(), json!({ "name": "mail", "shouldStopOnFail": true }));
        world.workflow_of("news", &[mail, hourly(), counted()]);
        let [first, _] = ["t1", "t2"].map(|id| told(&world, id));
        world.env.integrations().pause(ses).unwrap();
        world.env.notifications().resend(first, "mail").unwrap();
        world.pass(Duration::from_secs(3_600));
        world.run_due();
        assert_eq!(world.statuses(first), ["queued", "completed", "pending"]);

        assert_eq!(world.env.events().cancel("t1").unwrap().canceled, 1);

        world.run_due();
        assert_eq!(world.statuses(first), ["canceled", "completed", "completed"]);
        assert_eq!(world.texts("ada"), ["2"]);
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

/// One row per first run of a message for two devices, of which one never gets it and the other one waits:
/// what is behind it goes on if the message was sent before, and ends with it otherwise.
#[test]
fn what_is_left_of_a_canceled_event_ends_with_a_message_that_has_failed() {
    for (was_sent, expected) in [(true, "completed"), (false, "canceled")] {
        on_both(|world| {
            let fcm = world.active_integration("push", "fcm").id;
            let template = json!({ "title": "Hello", "body": "Hello" });
            let push = json!({ "type": "push", "name": "push", "template": template });
            let push = with(push, json!({ "shouldStopOnFail": true }));
            world.workflow_of("news", &[push, hourly(), counted()]);
            let devices = json!({ "subscriberId": "ada", "channels": [{
                "providerId": "fcm", "_integrationId": fcm,
                "credentials": { "deviceTokens": ["phone", "tablet"] },
            }] });
            if was_sent {
                world.subscriber(devices.clone());
            }
            let [first, _] = ["t1", "t2"].map(|id| told(&world, id));
            world.env.subscribers().upsert(&parsed(devices)).unwrap();
            world.recorder.refuse_next(SendError::permanent("no"));
            world.recorder.refuse_next(SendError::retryable("busy"));
            world.pass(Duration::from_secs(3_599));
            world.env.notifications().resend(first, "push").unwrap();
            world.run_due();
            world.tick();
            world.env.integrations().pause(fcm).unwrap();
            world.run_due();
            assert_eq!(world.statuses(first), ["queued", "completed", "pending"]);

            assert_eq!(world.env.events().cancel("t1").unwrap().canceled, 1);

            world.run_due();
            assert_eq!(world.statuses(first), ["failed", "completed", expected]);
            assert_eq!(world.engine.check().unwrap().findings, []);
        });
    }
}

fn hourly() -> Value {
    let hour = json!({ "type": "regular", "amount": 1, "unit": "hours" });
    json!({ "type": "digest", "name": "hourly", "metadata": hour })
}

fn counted() -> Value {
    json!({ "type": "in_app", "template": { "body": "{{ total_count }}" } })
}

/// An event for ada, whose message has been sent.
fn told(world: &World, id: &str) -> NotificationId {
    let event = json!({ "name": "news", "to": ada(), "transactionId": id });
    let id = only(world.trigger(event).notifications).notification_id;
    world.run_due();
    id
}
