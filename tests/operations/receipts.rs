//! Receipts: what providers report about messages that they have accepted.

use serde_json::{Value, json};
use testkit::interposed::Point;
use tidings::integration::Integration;
use tidings::receipt::{InboundRefusal, Receipt, ReceiptKind, ReceiptOutcome};
use tidings::suppression::SuppressionReason;
use tidings::vocabulary::Channel;
use tidings::{
    Address, Delivery, Inbound, InboundReport, Provider, ProviderReceipt, Rejection, Scope,
    SendError,
};

use crate::world::{World, changed, email, on_both_with, only, parsed, wire, with};

// A service that names its messages by their subscriber, or by their address if that is new, and whose reports are
// lists of receipts behind the key.
#[derive(Debug)]
struct Service;

impl Provider for Service {
    fn send(&self, delivery: &Delivery) -> Result<ProviderReceipt, SendError> {
        let to = match &delivery.address {
            Address::Email(email) if email.as_str().starts_with("new") => "new",
            _ => delivery.subscriber.subscriber_id.as_str(),
        };
        Ok(ProviderReceipt::with_id(format!("msg-{to}")))
    }

    fn receipts(&self, inbound: &Inbound<'_>) -> Result<Vec<Receipt>, InboundRefusal> {
        let problem = String::from("no signature matches");
        if inbound.report.get("x-signature") != Some(inbound.key.expose()) {
            return Err(InboundRefusal::Forged { problem });
        }
        assert_ne!(inbound.report.body, b"panic", "on purpose");
        serde_json::from_slice(&inbound.report.body)
            .map_err(|_| InboundRefusal::Unreadable { problem: "no JSON".into() })
    }
}

fn scenario(run: impl Fn(World, Integration)) {
    on_both_with(
        |builder| builder.provider("ses", Service),
        |world| {
            let ada = json!({ "subscriberId": "ada", "email": "Ada@Example.org" });
            world.subscriber(ada);
            let configurations =
                json!({ "inboundWebhookEnabled": true, "inboundWebhookSigningKey": "key" });
            let ses = world.integration(json!({
                "providerId": "ses", "channel": "email", "identifier": "ses", "active": true,
                "configurations": configurations,
            }));
            world.workflow_of("mail", &[email()]);
            world.notify("mail", "ada");
            assert_eq!(world.run_due().sent, 1);
            run(world, ses);
        },
    );
}

fn receipt(kind: ReceiptKind) -> Receipt {
    Receipt::new("msg-ada", kind).unwrap()
}

fn ingest(env: &Scope, ses: &Integration, receipt: &Receipt) -> Value {
    wire(env.integrations().ingest_receipt(ses.id, receipt).unwrap())
}

// The log of the only job, behind the entries of the delivery.
fn reported(world: &World) -> Vec<Value> {
    let log = only(only(world.notifications(json!({}))).jobs).execution_details;
    let log = log.iter().map(wire);
    log.filter(|entry| entry["source"] == "Webhook").collect()
}

/// One row per event: its entry in the log.
#[test]
fn a_report_is_an_entry_in_the_log_of_its_job() {
    for (kind, detail, status) in [
        (ReceiptKind::Deferred, "message_deferred", "Pending"),
        (ReceiptKind::Delivered, "message_delivered", "Success"),
        (ReceiptKind::Opened, "message_opened", "ReadConfirmation"),
        (ReceiptKind::Clicked, "message_clicked", "Success"),
        (ReceiptKind::Bounced, "message_bounced", "Failed"),
        (ReceiptKind::Complained, "recipient_complained", "Failed"),
        (ReceiptKind::Unsubscribed, "recipient_unsubscribed", "Warning"),
    ] {
        scenario(|world, ses| {
            let report = receipt(kind).event_id("1").text("250 as it is");
            let outcome = ingest(&world.env, &ses, &report);
            let notification = only(world.notifications(json!({})));
            assert_eq!(outcome["outcome"], "recorded");
            assert_eq!(outcome["notificationId"], wire(notification.id));
            let entry = only(reported(&world));
            assert_eq!((&entry["detail"], &entry["status"]), (&json!(detail), &json!(status)));
            assert_eq!(
                (&entry["raw"], &entry["providerId"]),
                (&json!("250 as it is"), &json!("ses"))
            );

            // A repetition changes nothing, nor does a second event of its kind.
            for again in [report.clone(), report.clone().event_id("2"), receipt(kind)] {
                let outcome = world.unchanged(|| ingest(&world.env, &ses, &again));
                assert_eq!(outcome["outcome"], "repeated");
            }
        });
    }
}

#[test]
fn a_late_report_does_not_undo_a_bounce() {
    scenario(|world, ses| {
        ingest(&world.env, &ses, &receipt(ReceiptKind::Bounced).text("550 no such user"));
        for late in [ReceiptKind::Delivered, ReceiptKind::Opened] {
            let outcome = world.unchanged(|| ingest(&world.env, &ses, &receipt(late)));
            assert_eq!(outcome["outcome"], "outdated");
        }
        let message = wire(only(world.messages("ada")));
        assert_eq!(message["status"], "error");
        assert_eq!(message["errorText"], "550 no such user");
    });
}

/// One row per report of which its address is suppressed: the reason, and for how many days.
#[test]
fn bounces_and_complaints_suppress_the_address() {
    for (kind, reason, days) in [
        (ReceiptKind::Bounced, SuppressionReason::Bounced, Some(90)),
        (ReceiptKind::Complained, SuppressionReason::Complained, None),
    ] {
        scenario(|world, ses| {
            let suppressions = world.env.suppressions();
            let outcome = ingest(&world.env, &ses, &receipt(kind).text("why"));
            let found = suppressions.get(Channel::Email, "ada@example.org").unwrap();
            assert_eq!(outcome["suppression"]["_id"], wire(found.id));
            assert_eq!((found.reason, found.text.as_deref()), (reason, Some("why")));
            let day = std::time::Duration::from_secs(24 * 60 * 60);
            assert_eq!(found.expires_at, days.map(|days| world.now().after(day * days)));
            world.notify("mail", "ada");
            assert_eq!(world.run_due().skipped, 1);
        });
    }
}

/// The address is that of the message, and not the one that the subscriber has since.
#[test]
fn the_address_of_the_message_is_suppressed_unless_the_report_names_another() {
    scenario(|world, ses| {
        let moved = parsed(json!({ "email": "new@example.org" }));
        world.env.subscribers().update("ada", &moved).unwrap();
        ingest(&world.env, &ses, &receipt(ReceiptKind::Bounced));
        let suppressions = world.env.suppressions();
        assert!(suppressions.find(Channel::Email, "ada@example.org").unwrap().is_some());
        assert!(suppressions.find(Channel::Email, "new@example.org").unwrap().is_none());
        let other = receipt(ReceiptKind::Complained).address("CC@Example.org");
        ingest(&world.env, &ses, &other);
        assert!(suppressions.find(Channel::Email, "cc@example.org").unwrap().is_some());
    });
}

/// A report about an earlier send is not about the address of the later one.
#[test]
fn the_address_of_a_message_that_was_sent_again_is_that_of_its_send() {
    for kind in [ReceiptKind::Bounced, ReceiptKind::Complained] {
        scenario(|world, ses| {
            let moved = parsed(json!({ "email": "new@example.org" }));
            world.env.subscribers().update("ada", &moved).unwrap();
            let notification = only(world.notifications(json!({})));
            let step = only(notification.jobs).step.id;
            for _ in 0..2 {
                world.env.notifications().resend(notification.id, step).unwrap();
                assert_eq!(world.run_due().sent, 1);
            }
            let suppressions = world.env.suppressions();
            let is_suppressed =
                |address: &str| suppressions.find(Channel::Email, address).unwrap().is_some();

            let outcome = ingest(&world.env, &ses, &receipt(kind));
            assert_eq!(outcome["suppression"]["address"], "ada@example.org");
            assert!(!is_suppressed("new@example.org"));
            assert_eq!(wire(only(world.messages("ada")))["status"], "sent");

            ingest(&world.env, &ses, &Receipt::new("msg-new", kind).unwrap());
            assert!(is_suppressed("new@example.org"));
        });
    }
}

/// A person who is erased is not named by a suppression of a message that was sent again either.
#[test]
fn an_erasure_hides_the_address_of_an_earlier_send() {
    scenario(|world, ses| {
        let moved = parsed(json!({ "email": "new@example.org" }));
        world.env.subscribers().update("ada", &moved).unwrap();
        let notification = only(world.notifications(json!({})));
        world.env.notifications().resend(notification.id, "0").unwrap();
        world.run_due();
        ingest(&world.env, &ses, &receipt(ReceiptKind::Complained));

        assert!(world.env.subscribers().erase("ada").unwrap().is_finished);

        let listed = only(world.env.suppressions().list(&parsed(json!({}))).unwrap().data);
        assert!(listed.address.address().starts_with("erased:"), "{listed:?}");
    });
}

/// The message of an SMTP override may have copies, with one id for all of its recipients.
#[test]
fn each_recipient_of_a_message_has_its_own_reports() {
    scenario(|world, ses| {
        let of = |event: &str, address: &str| {
            receipt(ReceiptKind::Bounced).event_id(event).address(address)
        };
        let status = || wire(only(world.messages("ada")))["status"].clone();
        let copy = of("1", "boss@example.org");
        assert_eq!(ingest(&world.env, &ses, &copy)["suppression"]["address"], "boss@example.org");
        assert_eq!(status(), "sent", "her own is on its way");
        let delivered = receipt(ReceiptKind::Delivered).address("ADA@example.org");
        assert_eq!(ingest(&world.env, &ses, &delivered)["outcome"], "recorded");
        let own = of("1", "ada@example.org");
        assert_eq!(ingest(&world.env, &ses, &own)["suppression"]["address"], "ada@example.org");
        assert_eq!(status(), "error");
        for again in [copy, own, receipt(ReceiptKind::Bounced)] {
            let outcome = world.unchanged(|| ingest(&world.env, &ses, &again));
            assert_eq!(outcome["outcome"], "repeated");
        }
        assert_eq!(reported(&world).len(), 3);
    });
}

#[test]
fn other_reports_suppress_nothing() {
    scenario(|world, ses| {
        for kind in [ReceiptKind::Deferred, ReceiptKind::Opened, ReceiptKind::Unsubscribed] {
            ingest(&world.env, &ses, &receipt(kind));
        }
        let listed = world.env.suppressions().list(&parsed(json!({}))).unwrap();
        assert_eq!(listed.data, []);
    });
}

#[test]
fn a_wish_to_unsubscribe_switches_off_the_channel_of_the_workflow() {
    scenario(|world, ses| {
        world.workflow_of("other", &[email()]);
        ingest(&world.env, &ses, &receipt(ReceiptKind::Unsubscribed));
        world.notify("mail", "ada");
        assert_eq!(world.run_due().sent, 0);
        world.notify("other", "ada");
        assert_eq!(world.run_due().sent, 1);
    });
}

#[test]
fn a_critical_workflow_does_not_listen_to_a_wish_to_unsubscribe() {
    scenario(|world, ses| {
        let critical = parsed(json!({ "critical": true }));
        world.env.workflows().update("mail", &critical).unwrap();
        let outcome = ingest(&world.env, &ses, &receipt(ReceiptKind::Unsubscribed));
        assert_eq!(outcome["outcome"], "recorded");
        let ordinary = parsed(json!({ "critical": false }));
        world.env.workflows().update("mail", &ordinary).unwrap();
        world.notify("mail", "ada");
        assert_eq!(world.run_due().sent, 1);
    });
}

#[test]
fn a_report_is_recorded_once_under_a_key() {
    scenario(|world, ses| {
        let once = world.env.idempotent("k").unwrap();
        let opened = receipt(ReceiptKind::Opened);
        let first = ingest(&once, &ses, &opened);
        assert_eq!(first["outcome"], "recorded");
        assert_eq!(world.unchanged(|| ingest(&once, &ses, &opened)), first);
        world.refuses("409 idempotency key `k` was used for another call", || {
            once.integrations().ingest_receipt(ses.id, &receipt(ReceiptKind::Clicked))
        });
    });
}

/// The result of a send may be stored behind the first report about it.
#[test]
fn an_unknown_message_is_looked_up_again_under_a_key() {
    scenario(|world, ses| {
        let once = world.env.idempotent("k").unwrap();
        let opened = Receipt::new("msg-bob", ReceiptKind::Opened).unwrap();
        let inbound =
            InboundReport::new(serde_json::to_vec(&[&opened, &receipt(opened.kind)]).unwrap())
                .header("X-Signature", "key");
        let every = world.env.idempotent("every").unwrap();
        let ingest_all = || wire(every.integrations().ingest_inbound(ses.id, &inbound).unwrap());
        assert_eq!(ingest(&once, &ses, &opened)["outcome"], "unknownMessage");
        assert_eq!(ingest_all()[0]["outcome"], "unknownMessage");

        world.subscriber(json!({ "subscriberId": "bob", "email": "bob@example.org" }));
        world.notify("mail", "bob");
        assert_eq!(world.run_due().sent, 1);

        assert_eq!(ingest(&once, &ses, &opened)["outcome"], "recorded");
        assert_eq!(ingest(&once, &ses, &opened)["outcome"], "recorded", "this one is stored");
        let outcomes = ingest_all();
        assert_eq!(
            (&outcomes[0]["outcome"], &outcomes[1]["outcome"]),
            (&json!("repeated"), &json!("repeated"))
        );
        assert_eq!(ingest_all(), outcomes);
    });
}

/// Each integration has a message of its own. One that went to several destinations has reached others.
#[test]
fn a_bounce_is_one_of_the_message_of_its_integration() {
    let configure =
        |builder: tidings::Builder| builder.provider("slack", Service).provider("discord", Service);
    for (urls, marked) in [(["https://a.example", ""], true), (["https://a.example", "b"], false)] {
        on_both_with(configure, |world| {
            let slack = world.active_integration("chat", "slack");
            let discord = world.active_integration("chat", "discord");
            world.subscriber(json!({ "subscriberId": "ada", "channels": [
                settings(&slack, "https://s.example"),
                settings(&discord, urls[0]),
            ] }));
            if !urls[1].is_empty() {
                let endpoint = json!({
                    "identifier": "more", "subscriberId": "ada", "integrationIdentifier": "discord",
                    "type": "webhook", "endpoint": { "url": "https://b.example" },
                });
                world.env.channel_endpoints().create(&parsed(endpoint)).unwrap();
            }
            world.workflow_of("chat", &[with(email(), json!({ "type": "chat" }))]);
            world.notify("chat", "ada");
            world.run_due();

            let bounced = receipt(ReceiptKind::Bounced);
            assert_eq!(ingest(&world.env, &discord, &bounced)["outcome"], "recorded");

            for message in world.messages("ada") {
                let message = wire(message);
                let is_marked = marked && message["providerId"] == "discord";
                let expected = if is_marked { "error" } else { "sent" };
                assert_eq!(message["status"], expected, "{message}");
            }
        });
    }
}

fn settings(integration: &Integration, url: &str) -> Value {
    json!({
        "providerId": integration.provider_id, "_integrationId": integration.id,
        "credentials": { "webhookUrl": url },
    })
}

#[test]
fn a_message_is_known_to_its_integration_only() {
    scenario(|world, ses| {
        let unknown = Receipt::new("msg-bob", ReceiptKind::Opened).unwrap();
        let env = &world.env;
        let outcome = world.unchanged(|| env.integrations().ingest_receipt(ses.id, &unknown));
        assert_eq!(outcome.unwrap(), ReceiptOutcome::UnknownMessage);
        let other = world.active_integration("email", "other");
        let opened = receipt(ReceiptKind::Opened);
        assert_eq!(ingest(env, &other, &opened)["outcome"], "unknownMessage");
        let elsewhere = world.production();
        world.refuses(&format!("404 integration `{}` is not there", ses.id), || {
            elsewhere.integrations().ingest_receipt(ses.id, &opened)
        });
        let nameless = changed(opened, |receipt| receipt.provider_message_id.clear());
        world.refuses("422 `providerMessageId` must not be empty", || {
            env.integrations().ingest_receipt(ses.id, &nameless)
        });
        // Nothing is left of a message whose notification is deleted.
        let id = only(world.notifications(json!({}))).id;
        env.notifications().delete(id).unwrap();
        assert_eq!(ingest(env, &ses, &receipt(ReceiptKind::Opened))["outcome"], "unknownMessage");
    });
}

#[test]
fn a_provider_verifies_and_reads_the_reports_of_its_service() {
    scenario(|world, ses| {
        let integrations = world.env.integrations();
        let body = json!([
            { "providerMessageId": "msg-ada", "type": "delivered", "eventId": "1" },
            { "providerMessageId": "msg-bob", "type": "opened" },
            { "providerMessageId": "msg-ada", "type": "opened", "eventId": "2" },
        ]);
        let report = |body: &str| InboundReport::new(body.as_bytes()).header("X-Signature", "key");
        let all = report(&body.to_string());
        let outcomes = |report: &InboundReport| {
            let outcomes = integrations.ingest_inbound(ses.id, report).unwrap();
            outcomes.iter().map(|one| wire(one)["outcome"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(outcomes(&all), ["recorded", "unknownMessage", "recorded"]);
        assert_eq!(reported(&world).len(), 2);
        assert_eq!(outcomes(&all), ["repeated", "unknownMessage", "repeated"]);
        assert_eq!(outcomes(&report("[]")), [] as [Value; 0]);

        let forged = InboundReport::new(all.body.clone()).header("x-signature", "guess");
        let prefix = "400 the report of the service is refused: ";
        for (report, reason) in [
            (forged, "its signature is refused: no signature matches"),
            (report("{"), "it cannot be read: no JSON"),
            (report("panic"), "it cannot be read: the provider panicked"),
        ] {
            world.refuses(&format!("{prefix}{reason}"), || {
                integrations.ingest_inbound(ses.id, &report)
            });
        }
        let huge = InboundReport::new(vec![b' '; (1 << 20) + 1]);
        let huge = integrations.ingest_inbound(ses.id, &huge).unwrap_err();
        assert_eq!(huge.status(), 422);
        let off = parsed(json!({ "configurations": { "inboundWebhookSigningKey": "key" } }));
        integrations.update(ses.id, &off).unwrap();
        let refused = integrations.ingest_inbound(ses.id, &all).unwrap_err();
        let reason = InboundRefusal::Disabled;
        let disabled = tidings::Error::Rejected(Rejection::InboundReport { reason });
        assert_eq!(refused.to_string(), disabled.to_string());
    });
}

/// Each report has a transaction of its own, and the call goes on where it was interrupted.
#[test]
fn reports_that_were_interrupted_are_recorded_by_the_next_call() {
    scenario(|world, ses| {
        let body = json!([
            { "providerMessageId": "msg-ada", "type": "delivered" },
            { "providerMessageId": "msg-ada", "type": "opened" },
            { "providerMessageId": "msg-ada", "type": "clicked" },
        ]);
        let report = InboundReport::new(body.to_string()).header("x-signature", "key");
        let once = world.env.idempotent("k").unwrap();
        let ingest = |env: &Scope| env.integrations().ingest_inbound(ses.id, &report);
        world.store.stop(Point::Write, 1);
        ingest(&once).unwrap_err();
        world.store.recover();
        assert_eq!(reported(&world).len(), 1);
        let outcomes = ingest(&once).unwrap();
        let outcome = |one: &ReceiptOutcome| wire(one)["outcome"].clone();
        let expected = ["repeated", "recorded", "recorded"];
        assert_eq!(outcomes.iter().map(outcome).collect::<Vec<_>>(), expected);
        assert_eq!(world.unchanged(|| ingest(&once).unwrap()), outcomes);
        // The answer is that of the first call, whatever has become of the key since.
        let off = parsed(json!({ "configurations": { "inboundWebhookSigningKey": "other" } }));
        world.env.integrations().update(ses.id, &off).unwrap();
        assert_eq!(world.unchanged(|| ingest(&once).unwrap()), outcomes);
        let refused = world.env.idempotent("other").unwrap();
        ingest(&refused).unwrap_err();
        let on = parsed(json!({ "configurations": ses.configurations }));
        world.env.integrations().update(ses.id, &on).unwrap();
        ingest(&refused).unwrap_err();
        let again = ingest(&world.env).unwrap();
        assert_eq!(again.iter().map(outcome).collect::<Vec<_>>(), ["repeated"; 3]);
    });
}

#[test]
fn what_a_provider_reads_is_bounded_and_checked() {
    scenario(|world, ses| {
        let one = |id: &str| json!({ "providerMessageId": id, "type": "opened" });
        for (reports, refusal) in [
            (vec![one("msg-ada"); 1_001], "422 `receipts` must have at most 1000 items"),
            (vec![one("msg-ada"), one("")], "422 `providerMessageId` must not be empty"),
        ] {
            let body = Value::from(reports).to_string();
            let report = InboundReport::new(body).header("x-signature", "key");
            world.refuses(refusal, || world.env.integrations().ingest_inbound(ses.id, &report));
            assert_eq!(reported(&world), [] as [Value; 0]);
        }
    });
}

/// A provider without ids, or with one that no report can name, sends all the same.
#[test]
fn the_outbox_reads_no_reports() {
    scenario(|world, _| {
        let other = world.integration(json!({
            "providerId": "outbox", "channel": "email", "identifier": "outbox", "active": true,
            "configurations":
                { "inboundWebhookEnabled": true, "inboundWebhookSigningKey": "key" },
        }));
        let report = InboundReport::new("[]");
        let refused = world.env.integrations().ingest_inbound(other.id, &report).unwrap_err();
        assert!(
            refused
                .to_string()
                .ends_with("its provider reads none: read it, and call `ingest_receipt`")
        );
    });
}
