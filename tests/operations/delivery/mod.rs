//! Delivery: what is sent, to whom, through what, and what is not.

mod choosing;
mod circuits;
mod clocks;
mod fallbacks;
mod fan_out;
mod flood;
mod kept;
mod late;
mod leases;
mod marks;
mod observing;
mod rates;
mod recovered;
mod refusing;
mod reports;
mod retries;
mod samples;
mod set_right;
mod stats;
mod turns;
mod worker;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tidings::ids::NotificationId;
use tidings::message::MessageStatus;
use tidings::notification::Notification;
use tidings::{Delivery, Provider, ProviderReceipt, SendError};

use crate::world::{
    Counts, START, World, email, id, in_app, names, on_both, only, parsed, sms, wire, with,
    workflow_of,
};

#[test]
fn an_email_goes_to_the_address_of_its_subscriber() {
    on_both(|world| {
        ada(&world);
        let workflow = world.workflow_of(
            "mail",
            &[json!({
                "type": "email",
                "template": {
                    "subject": "{{ payload.item }}",
                    "body": "<p>{{ payload.item }} for {{ subscriber.firstName }}</p>",
                },
            })],
        );
        let integration = world.active_integration("email", "sendgrid");
        let receipt = world.trigger(json!({
            "name": "mail", "to": "ada", "payload": { "item": "tea & <cup>" }, "transactionId": "t",
        }));
        let at = world.tick();

        let report = world.run_due();

        assert_eq!(report, Counts { sent: 1, ..Counts::default() });
        let id = only(receipt.notifications).notification_id;
        let message = only(world.messages("ada"));
        assert_eq!(
            with(wire(&message), json!({ "subscriber": null, "template": null })),
            json!({
                "_id": message.id,
                "_templateId": workflow.id,
                "_messageTemplateId": workflow.steps[0].content_id,
                "_environmentId": world.env.environment_id(),
                "_organizationId": "acme",
                "_notificationId": id,
                "_subscriberId": world.notification(id).subscriber_id,
                "subscriber": null,
                "template": null,
                "templateIdentifier": "mail",
                "createdAt": at,
                "deliveredAt": [at],
                "read": false,
                "seen": false,
                "subject": "tea & <cup>",
                "content": "<p>tea &amp; &lt;cup&gt; for Ada</p>",
                "transactionId": "t",
                "email": "ada@example.org",
                "providerId": "sendgrid",
                "channel": "email",
                "cta": {},
                "status": "sent",
                "payload": { "item": "tea & <cup>" },
            })
        );

        let delivery = only(world.recorder.sent());
        assert_eq!(delivery.integration, integration);
        assert_eq!(delivery.subscriber.subscriber_id.as_str(), "ada");
        assert_eq!((delivery.message.id, delivery.notification.id), (message.id, id));
    });
}

#[test]
fn every_channel_has_an_address_of_its_own() {
    on_both(|world| {
        let chat = world.active_integration("chat", "slack");
        let push = world.active_integration("push", "fcm");
        world.active_integration("sms", "twilio");
        world.active_integration("email", "sendgrid");
        world.subscriber(json!({
            "subscriberId": "ada",
            "email": "ada@example.org",
            "phone": "+4912345",
            "channels": [
                {
                    "providerId": "slack",
                    "_integrationId": chat.id,
                    "credentials": { "webhookUrl": "https://chat.example/ada" },
                },
                {
                    "providerId": "fcm",
                    "_integrationId": push.id,
                    "credentials": { "deviceTokens": ["phone", "tablet"] },
                },
            ],
        }));
        let title = json!({ "title": "News", "body": "Hello" });
        let push = json!({ "type": "push", "template": title });
        let chat = with(sms(), json!({ "type": "chat" }));
        world.workflow_of("all", &[email(), sms(), chat, push]);

        world.notify("all", "ada");
        let report = world.run_due();

        // One of them goes to two devices.
        assert_eq!(report.sent, 5);
        let shown = |message: &Value| {
            let mut message = message.clone();
            // Devices are sent to in any order.
            if let Some(devices) = message["deviceTokens"].as_array_mut() {
                devices.sort_by_key(ToString::to_string);
            }
            let channel = message["channel"].as_str().unwrap().to_owned();
            let fields =
                ["email", "phone", "directWebhookUrl", "deviceTokens", "providerId", "title"];
            (channel, fields.map(|field| message[field].clone()))
        };
        let none = Value::Null;
        let sent: Vec<_> = world.messages("ada").iter().rev().map(wire).collect();
        assert_eq!(
            sent.iter().map(shown).collect::<Vec<_>>(),
            [
                (
                    "email",
                    [&json!("ada@example.org"), &none, &none, &none, &json!("sendgrid"), &none]
                ),
                ("sms", [&none, &json!("+4912345"), &none, &none, &json!("twilio"), &none]),
                (
                    "chat",
                    [
                        &none,
                        &none,
                        &json!("https://chat.example/ada"),
                        &none,
                        &json!("slack"),
                        &none
                    ]
                ),
                (
                    "push",
                    [
                        &none,
                        &none,
                        &none,
                        &json!(["phone", "tablet"]),
                        &json!("fcm"),
                        &json!("News")
                    ]
                ),
            ]
            .map(|(channel, fields)| (channel.to_owned(), fields.map(Clone::clone)))
        );
    });
}

#[test]
fn the_log_of_a_job_says_what_happened_and_when() {
    on_both(|world| {
        ada(&world);
        world.active_integration("email", "sendgrid");
        let workflow = world.workflow_of("mail", &[with(email(), json!({ "name": "Mail" }))]);
        let id = world.notify("mail", "ada");
        let at = world.tick();
        world.run_due();

        let job = only(world.notification(id).jobs);

        let entry = |index: usize, detail, status, at: &Value, provider: Option<&str>, raw| {
            let mut entry = json!({
                "_id": job.execution_details[index].id,
                "createdAt": at,
                "status": status,
                "detail": detail,
                "isRetry": false,
                "isTest": false,
                "source": "Internal",
            });
            let fields = entry.as_object_mut().unwrap();
            fields.extend(provider.map(|provider| ("providerId".into(), json!(provider))));
            fields.extend(Option::map(raw, |raw: &str| ("raw".into(), json!(raw))));
            entry
        };
        let sendgrid = Some("sendgrid");
        assert_eq!(
            wire(&job),
            json!({
                "_id": job.id,
                "type": "email",
                "executionDetails": [
                    entry(0, "step_queued", "Queued", &json!(START), None, None),
                    entry(1, "integration_selected", "Success", &wire(at), sendgrid, sendgrid),
                    entry(2, "message_sent", "Success", &wire(at), sendgrid, None),
                ],
                "step": {
                    "_id": workflow.steps[0].id,
                    "active": true,
                    "filters": [],
                    "_templateId": workflow.steps[0].content_id,
                    "name": "Mail",
                },
                "providerId": "sendgrid",
                "status": "completed",
                "_messageId": only(world.messages("ada")).id,
                "updatedAt": at,
            })
        );
    });
}

#[test]
fn in_app_messages_are_there_at_once_and_the_others_are_sent_later() {
    on_both(|world| {
        ada(&world);
        world.active_integration("email", "sendgrid");
        world.active_integration("sms", "twilio");
        let id = {
            world.workflow_of("all", &[in_app(), email(), in_app(), sms(), in_app()]);
            world.notify("all", "ada")
        };

        let queued = ["completed", "queued", "completed", "queued", "completed"];
        assert_eq!(world.statuses(id), queued);
        assert_eq!(world.inbox("ada").len(), 3);

        assert_eq!(world.engine.delivery().run_due(1).unwrap().sent, 1);
        let sent = world.statuses(id).iter().filter(|status| *status == "completed").count();
        assert_eq!(sent, 4);

        assert_eq!(world.run_due().sent, 1);
        assert_eq!(world.statuses(id), ["completed"; 5]);
        assert_eq!(world.messages("ada").len(), 5);
        assert_eq!(world.run_due(), Counts::default());
    });
}

#[test]
fn at_most_so_many_jobs_are_run() {
    on_both(|world| {
        world.active_integration("email", "sendgrid");
        world.workflow_of("mail", &[email()]);
        world.trigger(json!({ "name": "mail", "to": crowd(40) }));

        let sent = [0, 3, 35, 10].map(|limit| world.engine.delivery().run_due(limit).unwrap().sent);

        assert_eq!(sent, [0, 3, 35, 2]);
        // Oldest first.
        let to =
            names(&world.recorder.sent(), |delivery| delivery.subscriber.subscriber_id.clone());
        assert_eq!(to, (0..40).map(|n| format!("s{n}")).collect::<Vec<_>>());
    });
}

#[test]
fn environments_are_delivered_for_alone() {
    on_both(|world| {
        ada(&world);
        let production = world.production();
        production.workflows().create(&parsed(workflow_of("mail", &[email()]))).unwrap();
        world.workflow_of("mail", &[email()]);
        world.active_integration("email", "sendgrid");
        let there = json!({ "name": "mail", "to": {
            "subscriberId": "ada", "email": "ada@production.example",
        } });

        world.notify("mail", "ada");
        production.events().trigger(&parsed(there)).unwrap();
        let report = world.run_due();

        // Production has no integration, and does not use that of development.
        assert_eq!(report, Counts { sent: 1, failed: 1, ..Counts::default() });
        let sent = only(world.recorder.sent());
        assert_eq!(sent.notification.environment_id, world.env.environment_id());
        assert_eq!(sent.message.email.as_deref(), Some("ada@example.org"));
        let subscriber = id("ada");
        let list = production.messages().list(&subscriber, &parsed(json!({}))).unwrap();
        assert_eq!(list.data, []);
    });
}

#[test]
fn two_threads_send_each_message_once() {
    on_both(|world| {
        world.active_integration("email", "sendgrid");
        world.workflow_of("mail", &[email()]);
        world.trigger(json!({ "name": "mail", "to": crowd(100) }));
        let (calls, recorder) = (AtomicUsize::new(0), world.recorder.clone());
        let provider = Told(move |delivery: &Delivery| {
            calls.fetch_add(1, Ordering::SeqCst);
            // Neither goes on before the other has something to send, if it ever has.
            let patience = Instant::now() + Duration::from_secs(60);
            while calls.load(Ordering::SeqCst) < 2 && Instant::now() < patience {
                thread::yield_now();
            }
            recorder.send(delivery)
        });
        let engine = world.engine_with(|builder| builder.default_provider(provider));

        let sent = thread::scope(|scope| {
            let run = || engine.delivery().run_due(usize::MAX).unwrap().sent;
            [(); 2].map(|()| scope.spawn(run)).map(|thread| thread.join().unwrap())
        });

        assert_eq!(sent.iter().sum::<usize>(), 100);
        assert!(sent.iter().all(|sent| *sent > 0), "{sent:?}");
        let keys = names(&world.recorder.sent(), Delivery::idempotency_key);
        assert_eq!(keys.len(), 100);
        assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), 100);
    });
}

// So many recipients who can be sent e-mail.
fn crowd(size: usize) -> Vec<Value> {
    let recipient = |n| json!({ "subscriberId": format!("s{n}"), "email": "s@example.org" });
    (0..size).map(recipient).collect()
}

// Makes `ada` a subscriber who can be sent e-mail and text messages.
fn ada(world: &World) {
    world.subscriber(json!({
        "subscriberId": "ada",
        "firstName": "Ada",
        "email": "ada@example.org",
        "phone": "+4912345",
    }));
}

// Triggers an e-mail to `ada`, through `sendgrid`.
fn queued_email(world: &World) -> NotificationId {
    ada(world);
    world.active_integration("email", "sendgrid");
    world.workflow_of("mail", &[email()]);
    world.notify("mail", "ada")
}

// What was written into the log of a job, with what is to be known about it.
pub(crate) fn log(notification: &Notification, job: usize) -> Vec<String> {
    names(&notification.jobs[job].execution_details, |entry| match &entry.raw {
        Some(raw) => format!("{}: {raw}", entry.detail),
        None => entry.detail.to_string(),
    })
}

fn error(id: &str, text: &str) -> MessageStatus {
    MessageStatus::Error { error_id: id.into(), error_text: text.into() }
}

fn retryable(reason: &str) -> SendError {
    SendError::retryable(reason)
}

/// A provider that does what it is told to.
struct Told<F>(F);

impl<F> fmt::Debug for Told<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Told").finish_non_exhaustive()
    }
}

impl<F> Provider for Told<F>
where
    F: Fn(&Delivery) -> Result<ProviderReceipt, SendError> + Send + Sync + 'static,
{
    fn send(&self, delivery: &Delivery) -> Result<ProviderReceipt, SendError> {
        self.0(delivery)
    }
}
