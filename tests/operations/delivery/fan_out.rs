//! Chat and push messages to several devices and endpoints.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use store::Table;
use testkit::interposed::Point;
use testkit::tables;
use tidings::endpoint::ChannelEndpoint;
use tidings::ids::NotificationId;
use tidings::integration::IntegrationDelete;
use tidings::job::{Destination, SendStatus};
use tidings::quarantine::QuarantineQuery;
use tidings::{Address, Delivery, ProviderReceipt, SendError};

use super::refusing::push;
use super::{Told, log, retryable};
use crate::world::{Counts, World, names, on_both, only, parsed, payload_is, sms, wire, with};

#[test]
fn a_push_message_goes_to_each_device() {
    on_both(|world| {
        let id = pushing(&world);

        assert_eq!(world.run_due(), Counts { sent: 3, ..Counts::default() });

        let sent = world.recorder.sent();
        assert_eq!(tokens(&world), ["phone", "tablet", "watch"]);
        let keys: std::collections::BTreeSet<_> =
            sent.iter().map(Delivery::idempotency_key).collect();
        assert_eq!(keys.len(), 3);
        assert_eq!(world.statuses(id), ["completed"]);
        // Each integration has one message.
        let messages: Vec<_> = world.messages("ada").iter().map(wire).collect();
        let shown: Vec<_> = messages
            .iter()
            .map(|one| (one["providerId"].clone(), one["deviceTokens"].clone()))
            .collect();
        let expected =
            [(json!("fcm"), json!(["phone", "tablet"])), (json!("apns"), json!(["watch"]))];
        assert_eq!(shown.len(), 2);
        for one in expected {
            assert!(shown.contains(&one), "{shown:?}");
        }
        let job = only(world.notification(id).jobs);
        assert!(job.sends.iter().all(|send| send.status == SendStatus::Sent));
        assert!(job.message_id.is_some());
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

#[test]
fn what_was_sent_is_not_sent_again_with_the_others() {
    on_both(|world| {
        let id = pushing(&world);
        world.recorder.refuse_next(retryable("busy"));

        assert_eq!(world.run_due(), Counts { sent: 2, retried: 1, ..Counts::default() });
        assert_eq!(world.statuses(id), ["queued"]);
        world.pass(Duration::from_secs(60));
        assert_eq!(world.run_due(), Counts { sent: 1, ..Counts::default() });

        assert_eq!(world.statuses(id), ["completed"]);
        assert_eq!(tokens(&world), ["phone", "tablet", "watch"]);
        assert_eq!(world.run_due(), Counts::default());
    });
}

#[test]
fn a_message_that_some_devices_have_is_sent() {
    on_both(|world| {
        let id = pushing(&world);
        world.recorder.refuse_next(SendError::permanent("too large"));

        assert_eq!(world.run_due(), Counts { sent: 2, failed: 1, ..Counts::default() });

        assert_eq!(world.statuses(id), ["completed"]);
        assert_eq!(log(&world.notification(id), 0).pop().unwrap(), "some_sends_failed: 1");
        let messages: Vec<_> = world.messages("ada").iter().map(wire).collect();
        // The message of an integration with another device is sent.
        let sent = messages.iter().filter(|message| message["status"] == "sent").count();
        let with_two = messages.iter().find(|message| message["providerId"] == "fcm").unwrap();
        assert!(sent >= 1 && with_two["status"] == "sent", "{messages:?}");
    });
}

#[test]
fn a_message_that_no_device_has_has_failed() {
    on_both(|world| {
        let id = pushing(&world);
        for _ in 0..3 {
            world.recorder.refuse_next(SendError::permanent("too large"));
        }
        assert_eq!(world.run_due(), Counts { failed: 3, ..Counts::default() });
        assert_eq!(world.statuses(id), ["failed"]);
        let messages: Vec<_> = world.messages("ada").iter().map(wire).collect();
        assert!(messages.iter().all(|message| message["status"] == "error"), "{messages:?}");
    });
}

/// Providers of devices, and their tokens.
type Devices<'d> = &'d [(&'d str, &'d str)];

/// One row per destinations of a message and of its next send: each integration keeps a message of its own, also
/// one without destinations.
#[test]
fn a_message_that_is_sent_again_elsewhere_leaves_the_others() {
    let rows: [(Devices<'_>, Devices<'_>, &[&str]); 3] = [
        (
            &[("fcm", "phone"), ("apns", "watch")],
            &[("fcm", "phone"), ("expo", "pad")],
            &["apns", "expo", "fcm"],
        ),
        (
            &[("apns", "watch"), ("apns", "clock")],
            &[("fcm", "phone"), ("apns", "watch")],
            &["apns", "fcm"],
        ),
        (
            &[("fcm", "phone"), ("apns", "watch")],
            &[("apns", "watch"), ("expo", "pad")],
            &["apns", "expo", "fcm"],
        ),
    ];
    for (first, next, expected) in rows {
        on_both(|world| {
            let providers = ["fcm", "apns", "expo"];
            let ids = providers.map(|provider| world.active_integration("push", provider).id);
            let with_devices = |devices: Devices<'_>| {
                let channels = providers.iter().zip(ids).filter_map(|(provider, id)| {
                    let own = devices.iter().filter(|(one, _)| one == provider);
                    let tokens: Vec<_> = own.map(|(_, token)| *token).collect();
                    (!tokens.is_empty()).then(|| {
                        json!({
                            "providerId": provider, "_integrationId": id,
                            "credentials": { "deviceTokens": tokens },
                        })
                    })
                });
                json!({ "subscriberId": "ada", "channels": channels.collect::<Vec<_>>() })
            };
            world.subscriber(with_devices(first));
            world.workflow_of("push", &[push()]);
            let id = world.notify("push", "ada");
            assert_eq!(world.run_due().sent, first.len());

            replace_destinations(&world, with_devices(next));
            world.tick();
            world.env.notifications().resend(id, "0").unwrap();
            assert_eq!(world.run_due().sent, next.len());

            let messages = world.messages("ada").into_iter();
            let mut kept: Vec<_> = messages.filter_map(|message| message.provider_id).collect();
            kept.sort();
            assert_eq!(kept, expected, "{first:?} {next:?}");
            assert_eq!(world.statuses(id), ["completed"]);
            assert_eq!(world.engine.check().unwrap().findings, []);
        });
    }
}

#[test]
fn a_device_without_a_recipient_is_removed() {
    on_both(|world| {
        let id = pushing(&world);
        let before = world.env.subscribers().get("ada").unwrap();
        world.tick();
        world.recorder.refuse_next(SendError::recipient_gone("the app was removed"));

        assert_eq!(world.run_due().sent, 2);

        let sent = tokens(&world);
        let all = ["phone", "tablet", "watch"];
        let gone = all.into_iter().find(|one| !sent.contains(&(*one).to_owned())).unwrap();
        let removed = format!("recipient_removed: {gone}");
        assert!(log(&world.notification(id), 0).contains(&removed));
        let ada = world.env.subscribers().get("ada").unwrap();
        let mut left: Vec<_> = ada
            .profile
            .channels
            .iter()
            .flat_map(|one| one.credentials.device_tokens.clone())
            .collect();
        left.sort();
        assert_eq!(left, sent);
        assert_eq!((ada.version, ada.updated_at), (before.version + 1, world.now()));
        assert_eq!(world.engine.check().unwrap().findings, []);
        world.recorder.refuse_next(SendError::recipient_gone("the app was removed"));
        world.notify("push", "ada");
        assert_eq!(world.run_due().sent, 1);
    });
}

#[test]
fn a_destination_that_goes_while_its_send_waits_is_skipped() {
    on_both(|world| {
        let id = pushing(&world);
        for _ in 0..3 {
            world.recorder.refuse_next(retryable("busy"));
        }
        world.run_due();
        let fcm = world.env.integrations().list().unwrap().remove(0).id;
        let other = json!({ "subscriberId": "ada", "channels": [
            { "providerId": "fcm", "_integrationId": fcm, "credentials": { "deviceTokens": ["new"] } },
        ] });
        replace_destinations(&world, other);
        world.pass(Duration::from_secs(60));

        assert_eq!(world.run_due(), Counts { skipped: 3, ..Counts::default() });
        assert_eq!(world.statuses(id), ["skipped"]);
    });
}

/// One row per change of the integrations while the sends wait: whether they can be sent again. One
/// destination and several have the same outcome.
#[test]
fn a_message_whose_integrations_do_not_send_fails() {
    type Change = fn(&World, &str);
    let inactive: Change = |world, name| update(world, name, json!({ "active": false }));
    let conditions: Change =
        |world, name| update(world, name, json!({ "conditions": [payload_is("vip", "true")] }));
    let deleted: Change = |world, name| {
        world.env.integrations().delete(name, &IntegrationDelete::default()).unwrap();
    };
    for (change, comes_back) in [(inactive, true), (conditions, true), (deleted, false)] {
        for devices in [json!(["phone"]), json!(["phone", "tablet"])] {
            on_both(|world| {
                let fcm = world.active_integration("push", "fcm");
                let settings = json!({ "deviceTokens": devices });
                world.subscriber(json!({ "subscriberId": "ada", "channels": [
                    { "providerId": "fcm", "_integrationId": fcm.id, "credentials": settings },
                ] }));
                world.workflow_of("push", &[push()]);
                let id = world.notify("push", "ada");
                let sends = devices.as_array().unwrap().len();
                for _ in 0..sends {
                    world.recorder.refuse_next(retryable("busy"));
                }
                assert_eq!(world.run_due(), Counts { retried: sends, ..Counts::default() });
                change(&world, "fcm");
                world.pass(Duration::from_secs(60));

                assert_eq!(world.run_due(), Counts { failed: sends, ..Counts::default() });

                assert_eq!(world.statuses(id), ["failed"]);
                let log = log(&world.notification(id), 0);
                let is_told = log.iter().any(|line| line.starts_with("no_active_integration"));
                assert!(is_told, "{log:?}");
                if !comes_back {
                    return;
                }
                update(&world, "fcm", json!({ "active": true, "conditions": [] }));
                world.env.dead_letters().redrive_matching(&parsed(json!({}))).unwrap();
                assert_eq!(world.run_due(), Counts { sent: sends, ..Counts::default() });
                assert_eq!(world.statuses(id), ["completed"]);
                assert_eq!(world.engine.check().unwrap().findings, []);
            });
        }
    }
}

/// The other destinations have the message. It is sent to none of them again.
#[test]
fn a_send_whose_own_integration_does_not_send_fails() {
    on_both(|world| {
        let id = pushing(&world);
        for _ in 0..3 {
            world.recorder.refuse_next(retryable("busy"));
        }
        world.run_due();
        update(&world, "fcm", json!({ "active": false }));
        world.pass(Duration::from_secs(60));

        assert_eq!(world.run_due(), Counts { sent: 1, failed: 2, ..Counts::default() });

        assert_eq!(tokens(&world), ["watch"]);
        assert_eq!(world.statuses(id), ["completed"]);
        assert_eq!(log(&world.notification(id), 0).pop().unwrap(), "some_sends_failed: 2");
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

/// The sends wait for a repair, as the message of one destination does.
#[test]
fn sends_of_an_integration_that_cannot_be_read_are_set_aside() {
    on_both(|world| {
        let id = pushing(&world);
        for _ in 0..3 {
            world.recorder.refuse_next(retryable("busy"));
        }
        world.run_due();
        let rows = tables::dump(&world.store).into_iter();
        let rows: Vec<_> = rows.filter(|(table, ..)| *table == Table::Integrations).collect();
        for (table, key, _) in &rows {
            tables::put(&world.store, *table, key, Some(b"damaged"));
        }
        world.pass(Duration::from_secs(60));
        world.run_due();
        for (table, key, value) in &rows {
            tables::put(&world.store, *table, key, Some(value));
        }

        let entries = world.engine.quarantine().list(&QuarantineQuery::default()).unwrap().data;
        assert_eq!(entries.len(), 3);
        for entry in entries {
            world.engine.quarantine().requeue(entry.id).unwrap();
        }

        assert_eq!(world.run_due().sent, 3);
        assert_eq!(world.statuses(id), ["completed"]);
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

/// One row per answers of the provider: what becomes of the job if the event is canceled while the
/// provider has the last message, and afterwards. What was sent counts.
#[test]
fn a_canceled_message_is_not_sent_to_the_other_devices() {
    let busy = || Some(retryable("busy"));
    let no = || Some(SendError::permanent("no"));
    for (answers, status, some_failed) in [
        ([busy(), busy(), busy()], "canceled", false),
        ([busy(), None, None], "completed", false),
        ([busy(), no(), None], "completed", true),
        ([no(), busy(), no()], "failed", false),
    ] {
        for meanwhile in [true, false] {
            on_both(|world| {
                let id = pushing(&world);
                let (env, calls, next) = (world.env.clone(), AtomicUsize::new(0), answers.clone());
                let transaction = world.notification(id).transaction_id;
                let event = transaction.clone();
                let engine = world.engine_with(|builder| {
                    builder.default_provider(Told(move |_: &Delivery| {
                        let call = calls.fetch_add(1, Ordering::SeqCst);
                        if meanwhile && call == 2 {
                            assert_eq!(env.events().cancel(&event).unwrap().running, 1);
                        }
                        next[call].clone().map_or(Ok(ProviderReceipt::default()), Err)
                    }))
                });
                engine.delivery().run_due(100).unwrap();
                if !meanwhile {
                    let canceled = world.env.events().cancel(transaction).unwrap();
                    assert_eq!((canceled.canceled, canceled.running), (1, 0));
                }

                assert_eq!(world.statuses(id), [status], "{answers:?}, {meanwhile}");
                let log = log(&world.notification(id), 0);
                assert!(log.contains(&"canceled".to_owned()), "{log:?}");
                let is_told = log.contains(&"some_sends_failed: 1".to_owned());
                assert_eq!(is_told, some_failed, "{log:?}");
                world.pass(Duration::from_secs(60));
                assert_eq!(world.run_due(), Counts::default());
                assert_eq!(world.engine.check().unwrap().findings, []);
            });
        }
    }
}

#[test]
fn a_chat_message_goes_to_the_endpoints_of_its_contexts() {
    on_both(|world| {
        let slack = world.active_integration("chat", "slack");
        world.subscriber(json!({ "subscriberId": "ada", "channels": [{
            "providerId": "slack",
            "_integrationId": slack.id,
            "credentials": { "webhookUrl": "https://chat.example/ada" },
        }] }));
        world.workflow_of("chat", &[with(sms(), json!({ "type": "chat" }))]);
        connect(&world, "slack");
        endpoint(
            &world,
            "channel",
            json!({
                "type": "slack_channel", "endpoint": { "channelId": "C1" },
                "connectionIdentifier": "work",
            }),
        );
        endpoint(&world, "user", json!({ "type": "slack_user", "endpoint": { "userId": "U1" } }));
        endpoint(
            &world,
            "hook",
            json!({
                "type": "webhook", "endpoint": { "url": "https://chat.example/hook", "channel": "news" },
            }),
        );
        endpoint(
            &world,
            "phone",
            json!({
                "type": "phone", "endpoint": { "phoneNumber": "+4930123456" },
            }),
        );
        endpoint(
            &world,
            "elsewhere",
            json!({
                "type": "slack_channel", "endpoint": { "channelId": "C2" },
                "context": { "tenant": "acme" },
            }),
        );

        let id = world.notify("chat", "ada");
        assert_eq!(world.run_due().sent, 5);

        let mut addresses: Vec<_> =
            world.recorder.sent().iter().map(|sent| shown(&sent.address)).collect();
        addresses.sort();
        assert_eq!(
            addresses,
            [
                "phone +4930123456",
                "slack channel C1 in T1 with token",
                // The connection of the subscriber is that of the endpoint.
                "slack user U1 in T1 with token",
                "webhook https://chat.example/ada",
                "webhook https://chat.example/hook to news",
            ]
        );
        assert_eq!(world.messages("ada").len(), 1);
        assert_eq!(world.statuses(id), ["completed"]);

        // Of another context, there is one endpoint, and one send.
        let trigger = json!({ "name": "chat", "to": "ada", "context": { "tenant": "acme" } });
        let bare = json!({ "subscriberId": "ada", "channels": [
            { "providerId": "slack", "_integrationId": slack.id, "credentials": {} },
        ] });
        replace_destinations(&world, bare);
        let receipt = world.trigger(trigger);
        assert_eq!(world.run_due().sent, 1);
        let id = only(receipt.notifications).notification_id;
        assert_eq!(only(world.notification(id).jobs).sends, []);

        // An endpoint without a recipient is removed.
        world.recorder.refuse_next(SendError::recipient_gone("the channel was removed"));
        let trigger = json!({ "name": "chat", "to": "ada", "context": { "tenant": "acme" } });
        world.trigger(trigger);
        assert_eq!(world.run_due().failed, 1);
        assert_eq!(world.env.channel_endpoints().find("elsewhere").unwrap(), None);
    });
}

/// Each send whose task is put back waits again.
#[test]
fn sends_that_were_set_aside_are_put_back() {
    on_both(|world| {
        let id = pushing(&world);
        world.engine.delivery().run_due(1).unwrap();
        let rows = tables::dump(&world.store).into_iter();
        let (_, key, value) = only(rows.filter(|(table, ..)| *table == Table::Subscribers));
        tables::put(&world.store, Table::Subscribers, &key, Some(b"damaged"));
        assert_eq!(world.run_due().sent, 0);
        assert_eq!(world.statuses(id), ["failed"]);
        tables::put(&world.store, Table::Subscribers, &key, Some(&value));

        for entry in world.engine.quarantine().list(&QuarantineQuery::default()).unwrap().data {
            world.engine.quarantine().requeue(entry.id).unwrap();
        }

        assert_eq!(world.run_due().sent, 3);
        assert_eq!(world.statuses(id), ["completed"]);
        let sends = only(world.notification(id).jobs).sends;
        assert!(sends.iter().all(|send| send.status == SendStatus::Sent), "{sends:?}");
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

/// Only the address that was asked has no recipient.
#[test]
fn a_destination_that_gets_another_address_during_the_call_stays() {
    on_both(|world| {
        let slack = world.active_integration("chat", "slack");
        world.workflow_of("chat", &[with(sms(), json!({ "type": "chat" }))]);
        let channels = move |url: &str| {
            json!([{
                "providerId": "slack", "_integrationId": slack.id, "credentials": { "webhookUrl": url },
            }])
        };
        let hook = |url: &str| json!({ "endpoint": { "url": url } });
        let [before, after] = ["https://chat.example/before", "https://chat.example/after"];
        let env = world.env.clone();
        let changed: Box<dyn FnOnce() + Send> = Box::new(move || {
            env.channel_endpoints().update("hook", &parsed(hook(after))).unwrap();
        });
        world.bare_subscriber("ada");
        endpoint(&world, "hook", with(hook(before), json!({ "type": "webhook" })));
        refused_while(&world, changed);
        assert!(world.env.channel_endpoints().find("hook").unwrap().is_some());

        world.env.channel_endpoints().delete("hook").unwrap();
        let ada = |channels: Value| json!({ "subscriberId": "ada", "channels": channels });
        world.env.subscribers().upsert(&parsed(ada(channels(before)))).unwrap();
        let env = world.env.clone();
        refused_while(
            &world,
            Box::new(move || {
                env.subscribers().upsert(&parsed(ada(channels(after)))).unwrap();
            }),
        );

        let ada = world.env.subscribers().get("ada").unwrap();
        let url = only(ada.profile.channels).credentials.webhook_url.unwrap();
        assert_eq!(url.expose(), after);
        world.recorder.refuse_next(SendError::recipient_gone("the channel was removed"));
        world.notify("chat", "ada");
        assert_eq!(world.run_due().failed, 1);
        let ada = world.env.subscribers().get("ada").unwrap();
        assert_eq!(only(ada.profile.channels).credentials.webhook_url, None);
    });
}

// Sends a message to a destination without a recipient, and changes it during the call.
fn refused_while(world: &World, change: Box<dyn FnOnce() + Send>) {
    world.notify("chat", "ada");
    world.recorder.refuse_next(SendError::recipient_gone("the channel was removed"));
    world.store.pause(Point::Write, 1, change);
    assert_eq!(world.run_due().failed, 1);
}

/// A token is for the service of its integration only.
#[test]
fn a_connection_that_is_created_again_for_another_integration_is_not_used() {
    on_both(|world| {
        world.active_integration("chat", "slack");
        world.active_integration("chat", "discord");
        world.bare_subscriber("ada");
        world.workflow_of("chat", &[with(sms(), json!({ "type": "chat" }))]);
        connect(&world, "slack");
        let user = json!({
            "type": "slack_user", "endpoint": { "userId": "U1" }, "connectionIdentifier": "work",
        });
        endpoint(&world, "user", user);

        for (integration, is_used) in [("slack", true), ("discord", false)] {
            world.env.channel_connections().delete("work").unwrap();
            connect(&world, integration);
            world.notify("chat", "ada");
            assert_eq!(world.run_due().sent, 1);
            let sent = world.recorder.sent().pop().unwrap();
            let Address::Workspace { workspace, access_token, .. } = sent.address else {
                panic!("{:?}", sent.address)
            };
            let found = (workspace.is_some(), access_token.is_some());
            assert_eq!(found, (is_used, is_used), "{integration}");
        }
    });
}

#[test]
fn a_trigger_may_name_one_of_the_integrations() {
    on_both(|world| {
        pushing(&world);
        world.run_due();
        let overrides = json!({ "push": { "integrationIdentifier": "apns" } });
        let receipt = world.trigger(json!({ "name": "push", "to": "ada", "overrides": overrides }));
        assert_eq!(world.run_due().sent, 1);
        let id = only(receipt.notifications).notification_id;
        assert_eq!(log(&world.notification(id), 0)[1], "integration_selected: apns");
    });
}

#[test]
fn a_resent_message_goes_to_each_device_again() {
    on_both(|world| {
        let id = pushing(&world);
        world.run_due();
        let step = only(world.notification(id).jobs).step.id;
        world.env.notifications().resend(id, step).unwrap();

        assert_eq!(world.run_due().sent, 3);
        assert_eq!(world.messages("ada").len(), 2);
        assert_eq!(world.statuses(id), ["completed"]);
        assert_eq!(world.engine.check().unwrap().findings, []);
        let job = only(world.notification(id).jobs);
        assert!(job.sends.iter().all(|send| send.status == SendStatus::Sent));
        let phone = Destination::Device { token: "phone".into() };
        assert!(job.sends.iter().any(|send| send.target.to == phone));
    });
}

/// What was sent to several devices is sent again to the one that is left. One row per time of the
/// cancellation: while the provider has the message, and before.
#[test]
fn a_message_that_is_sent_again_to_one_device_is_canceled() {
    for meanwhile in [true, false] {
        on_both(|world| {
            let id = pushing(&world);
            world.run_due();
            let integrations = world.env.integrations().list().unwrap();
            let apns = integrations.iter().find(|one| one.provider_id == "apns").unwrap().id;
            let left = json!({ "subscriberId": "ada", "channels": [{
                "providerId": "apns", "_integrationId": apns,
                "credentials": { "deviceTokens": ["watch"] },
            }] });
            replace_destinations(&world, left);
            world.env.notifications().resend(id, "0").unwrap();
            let event = world.notification(id).transaction_id;
            let (env, canceled) = (world.env.clone(), event.clone());
            let engine = world.engine_with(|builder| {
                builder.default_provider(Told(move |_: &Delivery| {
                    let answer = env.events().cancel(&canceled).unwrap();
                    assert_eq!((answer.canceled, answer.running), (0, 1));
                    Ok(ProviderReceipt::default())
                }))
            });

            let (status, last) = if meanwhile {
                engine.delivery().run_due(100).unwrap();
                ("completed", "message_sent")
            } else {
                let answer = world.env.events().cancel(&event).unwrap();
                assert_eq!((answer.canceled, answer.running), (1, 0));
                ("canceled", "canceled")
            };

            assert_eq!(world.statuses(id), [status]);
            assert_eq!(log(&world.notification(id), 0).last().unwrap(), last);
            assert_eq!(world.engine.delivery().next_due().unwrap(), None);
            assert_eq!(world.engine.check().unwrap().findings, []);
        });
    }
}

/// The endpoints behind the last one are left out.
#[test]
fn a_message_goes_to_so_many_endpoints_at_most() {
    let world = World::in_memory();
    world.active_integration("chat", "slack");
    world.subscriber(json!({ "subscriberId": "ada" }));
    for number in 0..=ChannelEndpoint::MAX_PER_INTEGRATION {
        let phone = json!({ "phoneNumber": format!("+49{number:03}") });
        endpoint(&world, &format!("n{number}"), json!({ "type": "phone", "endpoint": phone }));
    }
    world.workflow_of("chat", &[with(sms(), json!({ "type": "chat" }))]);
    world.notify("chat", "ada");
    let sent = ChannelEndpoint::MAX_PER_INTEGRATION;
    assert_eq!(world.run_due(), Counts { sent, ..Counts::default() });
}

fn connect(world: &World, integration: &str) {
    let create = json!({
        "identifier": "work", "integrationIdentifier": integration, "subscriberId": "ada",
        "workspace": { "id": "T1" }, "auth": { "accessToken": "token" },
    });
    world.env.channel_connections().create(&parsed(create)).unwrap();
}

fn update(world: &World, integration: &str, fields: Value) {
    world.env.integrations().update(integration, &parsed(fields)).unwrap();
}

fn endpoint(world: &World, identifier: &str, fields: Value) {
    let create = json!({
        "identifier": identifier, "subscriberId": "ada", "integrationIdentifier": "slack",
    });
    world.env.channel_endpoints().create(&parsed(with(create, fields))).unwrap();
}

// Triggers a push message to `ada`, who has three devices at two integrations.
fn pushing(world: &World) -> NotificationId {
    let fcm = world.active_integration("push", "fcm");
    let apns = world.active_integration("push", "apns");
    let settings = |provider: &str, id: Value, tokens: Value| {
        json!({
            "providerId": provider, "_integrationId": id, "credentials": { "deviceTokens": tokens },
        })
    };
    world.subscriber(json!({ "subscriberId": "ada", "channels": [
        settings("fcm", json!(fcm.id), json!(["phone", "tablet"])),
        settings("apns", json!(apns.id), json!(["watch"])),
    ] }));
    world.workflow_of("push", &[push()]);
    world.notify("push", "ada")
}

fn tokens(world: &World) -> Vec<String> {
    let mut tokens = names(&world.recorder.sent(), token);
    tokens.sort();
    tokens
}

pub fn token(delivery: &Delivery) -> String {
    match &delivery.address {
        Address::Device(token) => token.clone(),
        other => panic!("{other:?}"),
    }
}

fn shown(address: &Address) -> String {
    use tidings::endpoint::Endpoint;
    match address {
        Address::Phone(phone) => format!("phone {phone}"),
        Address::Webhook { url, channel: None } => format!("webhook {}", url.expose()),
        Address::Webhook { url, channel: Some(channel) } => {
            format!("webhook {} to {channel}", url.expose())
        }
        Address::Workspace { endpoint, workspace, access_token } => {
            let place = match endpoint {
                Endpoint::SlackChannel { channel_id } => format!("channel {channel_id}"),
                Endpoint::SlackUser { user_id } => format!("user {user_id}"),
                other => panic!("{other:?}"),
            };
            let workspace = workspace.as_ref().unwrap().id.to_string();
            let token = access_token.as_ref().unwrap().expose().to_owned();
            format!("slack {place} in {workspace} with {token}")
        }
        other => panic!("{other:?}"),
    }
}

// Sets the destinations of a subscriber in place of those that are there, which an upsert keeps.
fn replace_destinations(world: &World, profile: Value) {
    let subscribers = world.env.subscribers();
    for settings in subscribers.get("ada").unwrap().profile.channels {
        subscribers.remove_channel("ada", settings.integration_id).unwrap();
    }
    subscribers.upsert(&parsed(profile)).unwrap();
}
