//! Webhooks: the body, the signature, and who is not called.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use testkit::child;
use tidings::credentials::Credentials;
use tidings::step::Step;
use tidings::vocabulary::Channel;
use tidings::{IntegrationTestResult, Provider, ProviderReceipt};
use tidings_providers::{SignedHeaders, Unverified, Webhook, WebhookKeys};

use crate::server::{Request, Server, answer};
use crate::{chat, delivery, kind};

const OLD: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const NEW: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

fn signed() -> Credentials {
    Credentials::default().secret_key(OLD)
}

fn headers(request: &Request) -> SignedHeaders<'_> {
    SignedHeaders {
        id: &request.headers["webhook-id"],
        timestamp: &request.headers["webhook-timestamp"],
        signature: &request.headers["webhook-signature"],
    }
}

#[test]
fn a_webhook_is_signed_and_says_what_was_sent() {
    let server = Server::start(|_| answer(204, "", ""));
    let delivery = chat(&server.url("http"), signed());
    let webhook = Webhook::default().allow_private_addresses();

    let receipt = webhook.send(&delivery).unwrap();

    let key = delivery.idempotency_key().to_string();
    assert_eq!(receipt, ProviderReceipt::with_id(&key));
    let [request] = &server.requests()[..] else { panic!("one request") };
    assert_eq!(request.line, "POST /hook HTTP/1.1");
    assert_eq!(request.headers["webhook-id"], key);
    let keys = WebhookKeys::new(OLD).unwrap();
    assert_eq!(keys.verify(&headers(request), &request.body, SystemTime::now()), Ok(()));
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    assert_eq!((&body["type"], &body["data"]["channel"]), (&json!("sample"), &json!("chat")));
    assert_eq!(body["data"]["content"], "Order *A-1* is on its way");
    assert_eq!(body["data"]["subscriberId"], "ada");
    // The URL is a secret, and the receiver knows it.
    assert!(!String::from_utf8_lossy(&request.body).contains("/hook"));
}

#[test]
fn other_channels_go_to_the_url_of_the_integration() {
    let server = Server::start(|_| answer(200, "", "ok"));
    let step = Step::sms("Your code is 17").unwrap();
    let credentials = signed().webhook_url(server.url("http"));
    let delivery = delivery(&step, Channel::Sms, json!({}), credentials);
    Webhook::default().allow_private_addresses().send(&delivery).unwrap();
    let body: Value = serde_json::from_slice(&server.requests()[0].body).unwrap();
    assert_eq!(body["data"]["to"], "+491234");
}

/// A relay that was switched off says nothing about the recipients of its messages.
#[test]
fn a_url_of_the_integration_that_is_gone_is_no_recipient_that_is_gone() {
    let server = Server::start(|_| answer(410, "", "the relay is switched off"));
    let step = Step::push("On its way", "Order A-1 is on its way").unwrap();
    let credentials = signed().webhook_url(server.url("http"));
    let devices = json!({ "deviceTokens": ["token"] });
    let delivery = delivery(&step, Channel::Push, devices, credentials);

    let error = Webhook::default().allow_private_addresses().send(&delivery).unwrap_err();

    assert_eq!(kind(&error), "misconfigured", "{error}");
}

#[test]
fn the_proxy_of_the_environment_is_not_used() {
    let test = "webhook::a_webhook_is_signed_and_says_what_was_sent";
    let mut again = child::command(test);
    for name in ["ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy"] {
        again.env(name, "http://127.0.0.1:1");
    }
    child::passed(again.env_remove("NO_PROXY").env_remove("no_proxy"));
}

/// One row per set of keys of a receiver, while one key replaces another.
#[test]
fn keys_are_replaced_one_by_one() {
    let body = b"{}";
    let both = WebhookKeys::new(&format!("{OLD} {NEW}")).unwrap();
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
    let signature = both.sign("id", 1_000, body);
    assert_eq!(signature.split(' ').count(), 2);
    let sent = SignedHeaders { id: "id", timestamp: "1000", signature: &signature };
    for (keys, expected) in [
        (OLD.to_owned(), Ok(())),
        (NEW.to_owned(), Ok(())),
        (format!("{NEW} {OLD}"), Ok(())),
        (format!("whsec_{}", "A".repeat(32)), Err(Unverified::Mismatch)),
    ] {
        assert_eq!(WebhookKeys::new(&keys).unwrap().verify(&sent, body, now), expected, "{keys}");
    }
}

/// One row per change of a signed webhook: why it is not verified.
#[test]
fn what_was_changed_or_is_old_is_not_verified() {
    let keys = WebhookKeys::new(OLD).unwrap();
    let signature = keys.sign("id", 1_000, b"{}");
    let sent = SignedHeaders { id: "id", timestamp: "1000", signature: &signature };
    let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    let shifted = SignedHeaders { timestamp: "1001", ..sent };
    let of_v2 = signature.replace("v1,", "v2,");
    for (headers, body, now, expected) in [
        (sent, "{}", 1_000, Ok(())),
        (sent, "{}", 1_300, Ok(())),
        (sent, "{}", 700, Ok(())),
        (sent, "{}", 1_301, Err(Unverified::Expired)),
        (sent, "{}", 699, Err(Unverified::Expired)),
        (sent, "{} ", 1_000, Err(Unverified::Mismatch)),
        (shifted, "{}", 1_000, Err(Unverified::Mismatch)),
        (SignedHeaders { id: "ID", ..sent }, "{}", 1_000, Err(Unverified::Mismatch)),
        (SignedHeaders { signature: "", ..sent }, "{}", 1_000, Err(Unverified::Mismatch)),
        (SignedHeaders { signature: "v1,", ..sent }, "{}", 1_000, Err(Unverified::Mismatch)),
        (SignedHeaders { signature: &of_v2, ..sent }, "{}", 1_000, Err(Unverified::Mismatch)),
        (SignedHeaders { timestamp: "x", ..sent }, "{}", 1_000, Err(Unverified::Malformed)),
        (SignedHeaders { timestamp: "-1", ..sent }, "{}", 1_000, Err(Unverified::Malformed)),
    ] {
        assert_eq!(keys.verify(&headers, body.as_bytes(), at(now)), expected, "{headers:?} {body}");
    }
}

/// One row per URL that is not called, since it leads into a network that is not public.
#[test]
fn a_private_address_is_not_called() {
    let server = Server::secure(|_| answer(200, "", ""));
    let port = server.address.port();
    for url in [
        format!("https://127.0.0.1:{port}/"),
        format!("https://localhost:{port}/"),
        format!("https://[::1]:{port}/"),
        format!("https://[::ffff:127.0.0.1]:{port}/"),
        format!("https://2130706433:{port}/"),
        format!("https://127.1:{port}/"),
        format!("https://user@127.0.0.1:{port}/"),
        format!("https://0.0.0.0:{port}/"),
        "https://169.254.169.254/latest/meta-data".to_owned(),
        format!("http://example.org:{port}/"),
        "ftp://example.org/".to_owned(),
        "nonsense".to_owned(),
    ] {
        let webhook = Webhook::default().timeout(Duration::from_secs(2));
        let error = webhook.send(&chat(&url, signed())).unwrap_err();
        assert!(["permanent", "retryable"].contains(&kind(&error)), "{url}: {error}");
    }
    let of_integration = {
        let step = Step::sms("Your code is 17").unwrap();
        let credentials = signed().webhook_url(format!("https://127.0.0.1:{port}/"));
        delivery(&step, Channel::Sms, json!({}), credentials)
    };
    let error = Webhook::default().send(&of_integration).unwrap_err();
    assert_eq!(kind(&error), "misconfigured", "{error}");
    assert_eq!(server.requests().len(), 0);
}

/// One row per integration that cannot send: the field that is named.
#[test]
fn an_integration_has_a_key_and_a_url() {
    let webhook = Webhook::default();
    for (channel, credentials, field) in [
        (Channel::Chat, signed(), ""),
        (Channel::Sms, signed().webhook_url("https://gateway.example.org/x"), ""),
        (Channel::Sms, signed(), "credentials.webhookUrl"),
        (Channel::Sms, signed().webhook_url("http://a.b/"), "credentials.webhookUrl"),
        (Channel::Sms, signed().webhook_url("https:///x"), "credentials.webhookUrl"),
        (Channel::Chat, Credentials::default(), "credentials.secretKey"),
        (Channel::Chat, Credentials::default().secret_key("whsec_AAAA"), "credentials.secretKey"),
        (
            Channel::Chat,
            Credentials::default().secret_key(format!("{OLD} ?")),
            "credentials.secretKey",
        ),
    ] {
        let refused = webhook.accept(channel, &credentials).map_err(|invalid| invalid.field);
        assert_eq!(refused.err().unwrap_or_default(), field);
    }
}

/// One row per integration: what a test of it says.
#[test]
fn a_test_of_an_integration_reaches_its_url() {
    let server = Server::start(|request| {
        answer(if request.line.starts_with("HEAD") { 405 } else { 200 }, "", "")
    });
    let webhook = Webhook::default().allow_private_addresses().timeout(Duration::from_secs(60));
    let tested = |credentials: Credentials| {
        let mut delivery = chat("https://example.org/", signed());
        delivery.integration.credentials = credentials;
        match webhook.check(&delivery.integration) {
            IntegrationTestResult::Passed => "passed",
            IntegrationTestResult::Failed(error) => kind(&error),
            IntegrationTestResult::NotSupported => "not supported",
            _ => "another",
        }
    };
    assert_eq!(tested(signed().webhook_url(server.url("http"))), "passed");
    assert_eq!(tested(signed().webhook_url("http://127.0.0.1:1/")), "retryable");
    assert_eq!(tested(signed().webhook_url("nonsense")), "misconfigured");
    assert_eq!(tested(signed()), "not supported");
    assert_eq!(tested(Credentials::default()), "misconfigured");
}
