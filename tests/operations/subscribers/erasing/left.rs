//! What names a person in a place of its own, also if the record that leads to it is gone.

use std::time::Duration;

use domain::digest::WindowEvent;
use domain::idempotency::StoredAnswer;
use domain::suppression::Suppression;
use domain::task::Task;
use serde_json::{Value, json};
use store::{Table, WriteRecords, encoding};
use testkit::sealed::is_wanted;
use testkit::tables::{self, Entry};
use tidings::ids::NotificationId;
use tidings::person::Erasure;
use tidings::receipt::{Receipt, ReceiptKind};
use tidings::retention::Retention;
use tidings::vocabulary::Channel;
use tidings::{Builder, Delivery, Provider, ProviderReceipt, SendError};
use uuid::Uuid;

use super::{fill, no_id_is_left, nothing_is_left, own_ids};
use crate::world::{
    Counts, World, email, in_app, names, on_both, on_both_with, only, parsed, wire, with,
};

// A message to two devices has a task for each of them, which may be held by the integration.
fn push_to_devices(world: &World, is_held: bool) -> NotificationId {
    let integration = world.active_integration("push", "fcm");
    let push = json!({ "type": "push", "template": { "title": "T", "body": "B" } });
    world.workflow_of("push", &[push]);
    let tokens = json!({ "deviceTokens": ["canary-token-1", "canary-token-2"] });
    world.subscriber(json!({ "subscriberId": "canary-id", "channels": [{
        "providerId": "fcm", "_integrationId": integration.id, "credentials": tokens,
    }] }));
    let id = world.notify("push", "canary-id");
    if is_held {
        world.env.integrations().pause(integration.id).unwrap();
        world.run_due();
    } else {
        world.engine.delivery().run_due(1).unwrap();
    }
    id
}

#[test]
fn an_erasure_reaches_the_tasks_of_a_deleted_notification() {
    for is_paused in [false, true] {
        on_both(|world| {
            push_to_devices(&world, is_paused);
            world.tick();
            world.env.notifications().delete_before(world.now()).unwrap();
            let tasks =
                || world.records::<Task>().iter().filter(|task| task.send_work().is_some()).count();
            assert!(tasks() > 0);

            assert!(world.env.subscribers().erase("canary-id").unwrap().is_finished);

            assert_eq!(tasks(), 0, "{is_paused}");
            nothing_is_left(&world.store);
        });
    }
}

/// Nothing names the person any more, and the tasks may be those of others.
#[test]
fn an_erasure_counts_tasks_whose_notification_is_gone() {
    on_both(|world| {
        push_to_devices(&world, true);
        world.tick();
        world.env.notifications().delete_before(world.now()).unwrap();
        world.env.subscribers().delete("canary-id").unwrap();
        let sends =
            || world.records::<Task>().iter().filter(|task| task.send_work().is_some()).count();
        assert_eq!(sends(), 2);

        let erased = world.env.subscribers().erase("canary-id").unwrap();

        assert_eq!(wire(erased)["orphans"], 2, "{erased:?}");
        assert_eq!(sends(), 0);
        world.refuses("404 subscriber `canary-id` is not there", || {
            world.env.subscribers().erase("canary-id")
        });
    });
}

/// The same for an event in the window of a digest.
#[test]
fn an_erasure_counts_events_whose_notification_is_gone() {
    on_both(|world| {
        let hour = json!({ "type": "regular", "amount": 1, "unit": "hours" });
        world.workflow_of("digest", &[json!({ "type": "digest", "metadata": hour }), in_app()]);
        world.notify("digest", "canary-id");
        world.pass(Duration::from_secs(7_200));
        world.run_due();
        let event = only(world.records::<WindowEvent>());
        world.tick();
        world.env.notifications().delete_before(world.now()).unwrap();
        world.env.subscribers().delete("canary-id").unwrap();
        // As after a turn that has put it there while the notification was deleted.
        store::write(&world.opened(), |transaction| transaction.insert(&event)).unwrap();

        let erased = world.env.subscribers().erase("canary-id").unwrap();

        assert_eq!(wire(erased)["orphans"], 1, "{erased:?}");
        assert_eq!(world.records::<WindowEvent>(), []);
    });
}

/// Nothing but the tasks has named the person.
#[test]
fn a_notification_that_is_deleted_takes_its_messages_along() {
    on_both(|world| {
        let id = push_to_devices(&world, true);
        assert_eq!(world.engine.delivery().stats().unwrap().total().held, 2);

        world.env.notifications().delete(id).unwrap();
        world.env.subscribers().delete("canary-id").unwrap();

        assert_eq!(world.engine.delivery().stats().unwrap().total().held, 0);
        nothing_is_left(&world.store);
    });
}

/// An identifier may be any word.
#[test]
fn an_erasure_leaves_what_has_the_word_of_an_identifier() {
    on_both(|world| {
        world.bare_subscriber("canary-id");
        world.bare_subscriber("bob");
        let item = |who: &str| json!({ "subscriberId": who, "identifier": "news" });
        let subscribe = |who: &str| parsed(json!({ "subscriptions": [item(who)] }));
        assert_eq!(
            world.env.topics().subscribe("one", &subscribe("canary-id")).unwrap().errors,
            []
        );
        let once = world.env.idempotent("bob").unwrap();
        assert_eq!(once.topics().subscribe("two", &subscribe("bob")).unwrap().errors, []);

        let erased = world.env.subscribers().erase("canary-id").unwrap();

        assert_eq!(erased.answers, 0);
        assert_eq!(world.records::<StoredAnswer>().len(), 1);
    });
}

/// An export is for the person, whom other owners of an address do not concern.
#[test]
fn an_export_names_no_other_owner_of_an_address() {
    on_both(|world| {
        for id in ["ada", "bob"] {
            world.subscriber(json!({ "subscriberId": id, "email": "team@example.org" }));
        }
        let add = json!({ "channel": "email", "address": "team@example.org" });
        world.env.suppressions().add(&parsed(add)).unwrap();
        let other = parsed(json!({ "email": "bob@example.org" }));
        world.env.subscribers().update("bob", &other).unwrap();
        let named = only(world.records::<Suppression>()).subscriber_ids;
        assert_eq!(only(named).as_str(), "bob");

        let export = world.env.subscribers().export("ada").unwrap();

        assert!(only(export.suppressions).subscriber_ids.is_empty());
    });
}

/// The answer of such a call is a preference, which names nobody.
#[test]
fn an_erasure_reaches_answers_about_preferences() {
    on_both(|world| {
        world.bare_subscriber("canary-id");
        world.in_app_workflow("news");
        let once = |key: &str| world.env.idempotent(key).unwrap();
        let rule = json!({ "==": [{ "var": "payload.topic" }, "Canaria"] });
        let all = parsed(json!({ "channels": { "email": false }, "condition": rule }));
        let of_one = json!({ "workflowId": "news", "channels": {}, "condition": rule });
        let of_one = parsed(json!({ "preferences": [of_one] }));
        once("all").preferences("canary-id").unwrap().update_global(&all).unwrap();
        once("one").preferences("canary-id").unwrap().update_bulk(&of_one).unwrap();

        let erased = world.env.subscribers().erase("canary-id").unwrap();

        assert_eq!(erased.answers, 2, "{erased:?}");
        assert_eq!(world.records::<StoredAnswer>(), []);
        nothing_is_left(&world.store);
        let again = once("all").preferences("canary-id").unwrap().update_global(&all);
        assert_eq!(again.unwrap_err().status(), 404);
    });
}

/// A refusal names the identifier that is taken.
#[test]
fn an_erasure_reaches_refusals_that_name_what_the_person_has() {
    on_both(|world| {
        world.active_integration("chat", "slack");
        world.bare_subscriber("canary-id");
        world.bare_subscriber("bob");
        let of = |subscriber: &str, rest: Value| {
            let mut create = json!({
                "identifier": "of-Canaria", "integrationIdentifier": "slack",
                "subscriberId": subscriber,
            });
            create.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
            create
        };
        let connection =
            json!({ "workspace": { "id": "w" }, "auth": { "accessToken": "canary-token" } });
        let endpoint = json!({ "type": "slack_user", "endpoint": { "userId": "u" } });
        let connection = |who: &str| parsed(of(who, connection.clone()));
        let endpoint = |who: &str| parsed(of(who, endpoint.clone()));
        world.env.channel_connections().create(&connection("canary-id")).unwrap();
        world.env.channel_endpoints().create(&endpoint("canary-id")).unwrap();
        let item = |who: &str| json!({ "subscriberId": who, "identifier": "of-Canaria" });
        let subscribe = |who: &str| parsed(json!({ "subscriptions": [item(who)] }));
        assert_eq!(
            world.env.topics().subscribe("news", &subscribe("canary-id")).unwrap().errors,
            []
        );
        let once = |key: &str| world.env.idempotent(key).unwrap();
        once("connection").channel_connections().create(&connection("bob")).unwrap_err();
        once("endpoint").channel_endpoints().create(&endpoint("bob")).unwrap_err();
        drop(once("subscription").topics().subscribe("news", &subscribe("bob")));

        let erased = world.env.subscribers().erase("canary-id").unwrap();

        assert_eq!(erased.answers, 3, "{erased:?}");
        assert_eq!(world.records::<StoredAnswer>(), []);
        nothing_is_left(&world.store);
    });
}

/// Records that had the address are gone before the erasure: it is one that the subscriber had before, or
/// the subscriber and its notifications were deleted.
#[test]
fn an_erasure_reaches_suppressions_of_addresses_that_nothing_else_names() {
    for (changes, deletes) in [(true, false), (false, true), (true, true)] {
        on_both(|world| {
            let canary = json!({ "subscriberId": "canary-id", "email": "canary@example.org",
                "phone": "+42 (99) 887766" });
            world.subscriber(canary);
            for (channel, address) in [("email", "canary@example.org"), ("sms", "+4299887766")] {
                let add = json!({ "channel": channel, "address": address, "text": "Canaria" });
                world.env.suppressions().add(&parsed(add)).unwrap();
            }
            if changes {
                let other = json!({ "email": "other@example.org", "phone": "+1" });
                world.env.subscribers().update("canary-id", &parsed(other)).unwrap();
            }
            if deletes {
                world.env.subscribers().delete("canary-id").unwrap();
            }

            let erased = world.env.subscribers().erase("canary-id").unwrap();

            assert_eq!(erased.suppressions, 2, "{changes} {deletes}");
            nothing_is_left(&world.store);
            let left = world.records::<Suppression>();
            assert!(left.iter().all(|one| one.address.address().starts_with("erased:")));
            let mail = parsed(json!("email"));
            let found = world.env.suppressions().find(mail, "canary@example.org").unwrap();
            assert!(found.is_some());
        });
    }
}

/// A text message goes to the number of an endpoint first, and one that is suppressed leaves no message.
#[test]
fn an_erasure_reaches_suppressions_of_the_numbers_of_endpoints() {
    for (moves, removes, deletes) in [
        (false, false, false),
        (true, false, false),
        (false, true, false),
        (false, false, true),
        (true, false, true),
    ] {
        on_both(|world| {
            world.active_integration("sms", "twilio");
            world.bare_subscriber("canary-id");
            let endpoint = json!({
                "identifier": "number", "subscriberId": "canary-id", "integrationIdentifier": "twilio",
                "type": "phone", "endpoint": { "phoneNumber": "+4299887766" },
            });
            world.env.channel_endpoints().create(&parsed(endpoint)).unwrap();
            let add = json!({ "channel": "sms", "address": "+4299887766", "text": "Canaria" });
            let once = world.env.idempotent("k").unwrap();
            once.suppressions().add(&parsed(add)).unwrap();
            world.pass(Duration::from_secs(3_600));
            if moves {
                let update = json!({ "endpoint": { "phoneNumber": "+4912345678" } });
                world.env.channel_endpoints().update("number", &parsed(update)).unwrap();
            } else if !removes && !deletes {
                let export = world.env.subscribers().export("canary-id").unwrap();
                assert_eq!(only(export.suppressions).address.address(), "+4299887766");
            }
            if removes {
                world.env.channel_endpoints().delete("number").unwrap();
            }
            if deletes {
                world.env.subscribers().delete("canary-id").unwrap();
            }

            let erased = world.env.subscribers().erase("canary-id").unwrap();

            assert_eq!(
                (erased.suppressions, erased.answers),
                (1, 1),
                "{moves} {removes} {deletes}"
            );
            nothing_is_left(&world.store);
        });
    }
}

/// What belongs to an integration is found by its lists. A repair puts the record of the integration in
/// quarantine.
#[test]
fn a_deletion_removes_the_endpoints_of_an_integration_that_cannot_be_read() {
    for (erases, repairs) in [(false, false), (true, false), (false, true), (true, true)] {
        on_both(|world| {
            world.active_integration("chat", "slack");
            world.bare_subscriber("canary-id");
            let of = json!({ "subscriberId": "canary-id", "integrationIdentifier": "slack" });
            let endpoint =
                json!({ "type": "slack_channel", "endpoint": { "channelId": "canary-token-1" } });
            world.env.channel_endpoints().create(&parsed(with(of.clone(), endpoint))).unwrap();
            let auth = json!({ "accessToken": "canary-token-2" });
            let connection = json!({ "workspace": { "id": "T" }, "auth": auth });
            world.env.channel_connections().create(&parsed(with(of, connection))).unwrap();
            let (_, row, _) = only(
                tables::dump(&world.store)
                    .into_iter()
                    .filter(|(table, ..)| *table == Table::Integrations),
            );
            tables::put(&world.store, Table::Integrations, &row, Some(b"damaged"));
            if repairs {
                assert!(world.engine.repair().unwrap().is_finished);
            }

            if erases {
                assert!(world.env.subscribers().erase("canary-id").unwrap().is_finished);
            } else {
                world.env.subscribers().delete("canary-id").unwrap();
            }

            nothing_is_left(&world.store);
        });
    }
}

/// A suppression that has expired names those who had the address. The one that follows it does as well.
#[test]
fn a_suppression_that_is_added_again_names_who_had_the_address() {
    on_both(|world| {
        world.subscriber(json!({ "subscriberId": "canary-id", "email": "canary@example.org" }));
        let until = world.now().after(Duration::from_secs(60));
        let add =
            json!({ "channel": "email", "address": "canary@example.org", "expiresAt": until });
        world.env.suppressions().add(&parsed(add)).unwrap();
        let other = json!({ "email": "other@example.org" });
        world.env.subscribers().update("canary-id", &parsed(other)).unwrap();
        world.pass(Duration::from_secs(60));
        let add = json!({ "channel": "email", "address": "canary@example.org" });
        world.env.suppressions().add(&parsed(add)).unwrap();

        let erased = world.env.subscribers().erase("canary-id").unwrap();

        assert_eq!(erased.suppressions, 1);
        nothing_is_left(&world.store);
    });
}

/// A provider that names its messages.
#[derive(Debug)]
struct Service;

impl Provider for Service {
    fn send(&self, _: &Delivery) -> Result<ProviderReceipt, SendError> {
        Ok(ProviderReceipt::with_id("msg"))
    }
}

/// The address is in the message and in the event only, which are deleted before the person is.
#[test]
fn an_erasure_reaches_the_suppression_of_a_message_that_is_gone() {
    let service = |builder: Builder| builder.default_provider(Service);
    on_both_with(service, |world| {
        let integration = world.active_integration("email", "mail");
        world.workflow_of("mail", &[email()]);
        world.subscriber(json!({ "subscriberId": "canary-id", "email": "first@example.org" }));
        let to = json!({ "subscriberId": "canary-id", "email": "canary@example.org" });
        world.trigger(json!({ "name": "mail", "to": to }));
        assert_eq!(world.run_due().sent, 1);
        world.env.subscribers().update("canary-id", &parsed(json!({ "email": "x@y.z" }))).unwrap();
        let bounced = Receipt::new("msg", ReceiptKind::Bounced).unwrap();
        world.env.integrations().ingest_receipt(integration.id, &bounced).unwrap();
        let named = only(world.records::<Suppression>()).subscriber_ids;
        assert_eq!(only(named).as_str(), "canary-id");
        world.tick();
        world.env.notifications().delete_before(world.now()).unwrap();
        world.env.subscribers().delete("canary-id").unwrap();

        let erased = world.env.subscribers().erase("canary-id").unwrap();

        assert_eq!(erased.suppressions, 1, "{erased:?}");
        nothing_is_left(&world.store);
    });
}

/// The receipt of an event may outlive its notifications, and a message as well.
#[test]
fn an_erasure_reaches_receipts_whose_notification_is_gone() {
    let policy =
        Retention::default().activity_days(1).receipts_days(365).messages_days(Channel::InApp, 5);
    let keeping = |builder: Builder| builder.retention(policy.clone());
    for days in [3, 10] {
        on_both_with(keeping, |world| {
            world.in_app_workflow("hi");
            let to = json!(["canary-id", "bob"]);
            let shared = json!({ "name": "hi", "to": to, "transactionId": "shared" });
            let receipt = world.trigger(shared.clone());
            let own = "canary@example.org";
            world.trigger(json!({ "name": "hi", "to": "canary-id", "transactionId": own }));
            world.env.events().cancel(own).unwrap();
            for _ in 0..days {
                world.pass(Duration::from_secs(24 * 60 * 60));
                world.run_due();
            }
            assert_eq!(world.notifications(json!({})), []);
            let exported = world.env.subscribers().export("canary-id").unwrap();
            let ids = names(&exported.receipts, |one| one.transaction_id.clone());
            assert_eq!(ids, ["shared", own]);

            let erased = world.env.subscribers().erase("canary-id").unwrap();

            let messages = if days < 5 { 2 } else { 0 };
            assert_eq!((erased.triggers, erased.messages), (1, messages), "{erased:?}");
            let again = world.trigger(shared);
            assert_eq!(again.notifications, receipt.notifications[1..]);
            assert_eq!(world.env.subscribers().find("canary-id").unwrap(), None);
            nothing_is_left(&world.store);
            assert_eq!(world.engine.check().unwrap().findings, []);
        });
    }
}

/// An event for a person and a topic has notified others, whom its receipt does not name. If it is triggered
/// again, they are not notified again.
#[test]
fn an_erasure_leaves_the_receipt_of_an_event_that_has_notified_others() {
    let policy =
        Retention::default().activity_days(1).receipts_days(365).messages_days(Channel::InApp, 1);
    for members in [1, 150] {
        on_both_with(
            |builder| builder.retention(policy.clone()),
            |world| {
                world.in_app_workflow("hi");
                let name = |number| {
                    let id = format!("s{number}");
                    world.bare_subscriber(&id);
                    id
                };
                let ids: Vec<_> = (0..members).map(name).collect();
                for part in ids.chunks(100) {
                    let subscribe = parsed(json!({ "subscriptions": part }));
                    let told = world.env.topics().subscribe("all", &subscribe).unwrap();
                    assert_eq!(told.errors, []);
                }
                let topic = json!({ "type": "Topic", "topicKey": "all" });
                let event =
                    json!({ "name": "hi", "to": ["canary-id", topic], "transactionId": "t" });
                world.trigger(event.clone());
                while world.run_due() != Counts::default() {}
                for _ in 0..3 {
                    world.pass(Duration::from_secs(24 * 60 * 60));
                    world.run_due();
                }
                assert_eq!(world.env.notifications().count(&parsed(json!({}))).unwrap(), 0);

                let erased = world.env.subscribers().erase("canary-id").unwrap();

                assert_eq!(erased.triggers, 1, "{erased:?}");
                let again = world.trigger(event);
                assert_eq!(again.notifications, []);
                while world.run_due() != Counts::default() {}
                assert_eq!(world.env.notifications().count(&parsed(json!({}))).unwrap(), 0);
                nothing_is_left(&world.store);
                assert_eq!(world.engine.check().unwrap().findings, []);
            },
        );
    }
}

/// The host suppresses a former address, which only a message has.
#[test]
fn an_erasure_reaches_the_address_of_a_message_whose_notification_is_gone() {
    on_both(|world| {
        world.active_integration("email", "mail");
        world.workflow_of("mail", &[email()]);
        world.subscriber(json!({ "subscriberId": "canary-id", "email": "canary@example.org" }));
        world.notify("mail", "canary-id");
        assert_eq!(world.run_due().sent, 1);
        world.env.subscribers().update("canary-id", &parsed(json!({ "email": "x@y.z" }))).unwrap();
        for notification in world.notifications(json!({})) {
            world.env.notifications().delete(notification.id).unwrap();
        }
        let suppressed = json!({ "channel": "email", "address": "canary@example.org" });
        world.env.suppressions().add(&parsed(suppressed)).unwrap();

        let erased = world.env.subscribers().erase("canary-id").unwrap();

        assert_eq!((erased.suppressions, erased.messages), (1, 1), "{erased:?}");
        nothing_is_left(&world.store);
    });
}

/// The first window has closed, the notification of its opener is gone, and the bucket has a later window.
#[test]
fn an_erasure_reaches_the_events_of_a_window_whose_opener_is_gone() {
    on_both(|world| {
        let hour = json!({ "type": "regular", "amount": 1, "unit": "hours" });
        world.workflow_of("digest", &[json!({ "type": "digest", "metadata": hour }), in_app()]);
        let trigger = |number| {
            let id = format!("{number}-canary@example.org");
            let receipt =
                world.trigger(json!({ "name": "digest", "to": "canary-id", "transactionId": id }));
            receipt.notifications[0].notification_id
        };
        let first = [0, 1, 2].map(trigger);
        world.pass(Duration::from_secs(7_200));
        world.run_due();
        trigger(3);
        world.env.notifications().delete(first[0]).unwrap();

        assert!(world.env.subscribers().erase("canary-id").unwrap().is_finished);

        assert_eq!(world.records::<WindowEvent>(), []);
        nothing_is_left(&world.store);
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

/// A receipt that cannot be read is about nobody that is known.
#[test]
fn an_erasure_and_an_export_pass_over_receipts_that_cannot_be_read() {
    on_both(|world| {
        world.in_app_workflow("hi");
        world.notify("hi", "bob");
        world.notify("hi", "canary-id");
        let triggers = |(table, ..): &Entry| *table == Table::Triggers;
        let (table, key, _) = tables::dump(&world.store).into_iter().find(triggers).unwrap();
        tables::put(&world.store, table, &key, Some(b"\xFFgarbage"));

        let exported = world.env.subscribers().export("canary-id").unwrap();
        let erased = world.env.subscribers().erase("canary-id").unwrap();

        assert_eq!((exported.receipts.len(), erased.notifications), (1, 1));
        nothing_is_left(&world.store);
    });
}

// Damages the record of the subscriber, so that a repair puts it into quarantine.
fn put_aside(world: &World, ruin: impl Fn(&[u8]) -> Vec<u8>) {
    let is_own = |(table, key, _): &Entry| {
        *table == Table::Subscribers && key.windows(9).any(|part| part == b"canary-id")
    };
    let (table, key, value) = only(tables::dump(&world.store).into_iter().filter(is_own));
    tables::put(&world.store, table, &key, Some(&ruin(&value)));
    assert_eq!(world.engine.repair().unwrap().put_aside, 1);
}

// Erases the person. Neither texts nor ids are left, and another erasure finds nothing.
fn erased_for_good(world: &World, ids: &[Uuid]) -> Erasure {
    let erased = world.env.subscribers().erase("canary-id").unwrap();
    nothing_is_left(&world.store);
    no_id_is_left(world, ids);
    tables::check_indexes(&world.store);
    world.refuses("404 subscriber `canary-id` is not there", || {
        world.env.subscribers().erase("canary-id")
    });
    erased
}

fn garbage(_: &[u8]) -> Vec<u8> {
    b"\xFFgarbage".to_vec()
}

/// Its dependents have the ids that the engine gave, and only some of them the id of the host.
#[test]
fn an_erasure_reaches_what_a_subscriber_without_a_record_has_left() {
    for is_there_again in [false, true] {
        on_both(|world| {
            fill(&world);
            let ids = own_ids(&world, "canary-id");
            put_aside(&world, garbage);
            if is_there_again {
                world.bare_subscriber("canary-id");
            }

            assert!(erased_for_good(&world, &ids).is_finished);
        });
    }
}

/// The same without notifications, which tell the id as well.
#[test]
fn an_erasure_reaches_what_settings_and_channels_a_subscriber_without_a_record_has_left() {
    for (has_subscription, is_there_again) in [(false, false), (true, false), (true, true)] {
        on_both(|world| {
            world.active_integration("chat", "slack");
            world.active_integration("sms", "twilio");
            world.bare_subscriber("canary-id");
            let of = json!({ "subscriberId": "canary-id", "integrationIdentifier": "slack" });
            let connection = json!({ "identifier": "of-Canaria", "workspace": { "id": "w" },
                "auth": { "accessToken": "canary-token" } });
            let connection = parsed(with(of, connection));
            world.env.channel_connections().create(&connection).unwrap();
            let endpoint = json!({
                "subscriberId": "canary-id", "integrationIdentifier": "twilio",
                "type": "phone", "endpoint": { "phoneNumber": "+4299887766" },
            });
            world.env.channel_endpoints().create(&parsed(endpoint)).unwrap();
            let add = json!({ "channel": "sms", "address": "+4299887766" });
            world.env.suppressions().add(&parsed(add)).unwrap();
            let once = world.env.idempotent("k").unwrap();
            once.channel_connections().create(&connection).unwrap_err();
            let mut ids = Vec::new();
            if has_subscription {
                let item = json!({ "subscriberId": "canary-id", "identifier": "Canaria" });
                let subscribe = parsed(json!({ "subscriptions": [item] }));
                assert_eq!(world.env.topics().subscribe("news", &subscribe).unwrap().errors, []);
                let all = json!({ "channels": { "sms": false } });
                let preferences = world.env.preferences("canary-id").unwrap();
                preferences.update_global(&parsed(all)).unwrap();
                ids = own_ids(&world, "canary-id");
            }
            put_aside(&world, garbage);
            if is_there_again {
                world.bare_subscriber("canary-id");
            }

            let erased = erased_for_good(&world, &ids);

            assert_eq!((erased.suppressions, erased.answers), (1, 1), "{erased:?}");
        });
    }
}

/// Nothing but the record tells the id that the engine gave.
#[test]
fn an_erasure_reaches_preferences_of_a_subscriber_whose_id_is_in_quarantine() {
    // Sealed bytes tell nothing.
    if is_wanted() {
        return;
    }
    on_both(|world| {
        world.bare_subscriber("canary-id");
        let all = json!({ "channels": { "sms": false } });
        let preferences = world.env.preferences("canary-id").unwrap();
        preferences.update_global(&parsed(all)).unwrap();
        let ids = own_ids(&world, "canary-id");
        put_aside(&world, |value| {
            let mut json: Value = serde_json::from_slice(&encoding::json(value).unwrap()).unwrap();
            json.as_object_mut().unwrap().remove("createdAt");
            [b"\x01", json.to_string().as_bytes()].concat()
        });

        assert!(erased_for_good(&world, &ids).is_finished);
    });
}

/// Only the record says which entries it has. One that leads nowhere kept the next connection from being
/// created.
#[test]
fn a_dependent_that_cannot_be_read_leaves_no_entry() {
    for table in [
        Table::ChannelConnections,
        Table::ChannelEndpoints,
        Table::Subscriptions,
        Table::Preferences,
        Table::Messages,
    ] {
        for erases in [false, true] {
            on_both(|world| {
                world.active_integration("chat", "slack");
                world.in_app_workflow("hi");
                let fill = || {
                    world.bare_subscriber("canary-id");
                    let of =
                        json!({ "subscriberId": "canary-id", "integrationIdentifier": "slack" });
                    let connection = json!({ "identifier": "one", "workspace": { "id": "w" },
                        "auth": { "accessToken": "canary-token" } });
                    let connection = parsed(with(of.clone(), connection));
                    world.env.channel_connections().create(&connection).unwrap();
                    let endpoint = json!({ "identifier": "one", "type": "slack_user",
                        "endpoint": { "userId": "Canaria" } });
                    let endpoint = parsed(with(of, endpoint));
                    world.env.channel_endpoints().create(&endpoint).unwrap();
                    let item = json!({ "subscriberId": "canary-id", "identifier": "one" });
                    let subscribe = parsed(json!({ "subscriptions": [item] }));
                    assert_eq!(
                        world.env.topics().subscribe("news", &subscribe).unwrap().errors,
                        []
                    );
                    let update = json!({ "workflowId": "hi", "channels": { "sms": false } });
                    let update = parsed(json!({ "preferences": [update] }));
                    world.env.preferences("canary-id").unwrap().update_bulk(&update).unwrap();
                    world.notify("hi", "canary-id");
                    world.run_due();
                };
                fill();
                let (_, key, _) = only(tables::of(&world.store, table));
                tables::put(&world.store, table, &key, Some(b"\xFFgarbage"));

                if erases {
                    assert!(world.env.subscribers().erase("canary-id").unwrap().is_finished);
                    nothing_is_left(&world.store);
                } else {
                    world.env.subscribers().delete("canary-id").unwrap();
                }

                tables::check_indexes(&world.store);
                fill();
                assert_eq!(world.inbox("canary-id").len(), 1, "{table:?} {erases}");
            });
        }
    }
}
