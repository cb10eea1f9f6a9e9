//! Web push, with a push service that decrypts what a browser would.

use aes_gcm::Aes128Gcm;
use aes_gcm::aead::{Aead, KeyInit};
use base64ct::{Base64UrlUnpadded, Encoding};
use hkdf::Hkdf;
use p256::{PublicKey, SecretKey};
use serde_json::{Value, json};
use sha2::Sha256;
use tidings::credentials::Credentials;
use tidings::step::Step;
use tidings::vocabulary::Channel;
use tidings::{Delivery, Provider, ProviderReceipt};
use tidings_providers::WebPush;

use crate::server::{Request, Server, answer};
use crate::{delivery, kind};

/// A browser: its keys.
struct Browser {
    key: SecretKey,
    secret: [u8; 16],
}

impl Browser {
    fn new(seed: u8) -> Self {
        Self { key: SecretKey::from_slice(&[seed; 32]).unwrap(), secret: [seed; 16] }
    }

    fn subscription(&self, endpoint: &str) -> String {
        let key = Base64UrlUnpadded::encode_string(&self.key.public_key().to_sec1_bytes());
        let auth = Base64UrlUnpadded::encode_string(&self.secret);
        json!({ "endpoint": endpoint, "expirationTime": null, "keys": { "p256dh": key, "auth": auth } })
            .to_string()
    }

    // Decrypts a message as RFC 8291 says, apart from the code of the provider.
    fn decrypt(&self, body: &[u8]) -> Value {
        let (salt, rest) = body.split_at(16);
        let (size, rest) = rest.split_at(4);
        assert_eq!(size, 4096_u32.to_be_bytes());
        let (sender, sealed) = rest[1..].split_at(usize::from(rest[0]));
        let shared = self.key.diffie_hellman(&PublicKey::from_sec1_bytes(sender).unwrap());
        let own = self.key.public_key().to_sec1_bytes();
        let derive = |salt: &[u8], input: &[u8], info: &[u8], length: usize| {
            let mut output = vec![0; length];
            Hkdf::<Sha256>::new(Some(salt), input).expand(info, &mut output).unwrap();
            output
        };
        let info = [b"WebPush: info\0".as_slice(), &own, sender].concat();
        let input = derive(&self.secret, shared.raw_secret_bytes(), &info, 32);
        let key = derive(salt, &input, b"Content-Encoding: aes128gcm\0", 16);
        let nonce = derive(salt, &input, b"Content-Encoding: nonce\0", 12);
        let nonce: [u8; 12] = nonce.try_into().unwrap();
        let cipher = Aes128Gcm::new_from_slice(&key).unwrap();
        let record = cipher.decrypt(&nonce.into(), sealed).unwrap();
        let end = record.iter().rposition(|byte| *byte != 0).unwrap();
        assert_eq!(record[end], 2);
        serde_json::from_slice(&record[..end]).unwrap()
    }
}

pub fn application() -> Credentials {
    let key = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw";
    Credentials::default().secret_key(key).from("push@example.com")
}

fn push(tokens: &[String]) -> Delivery {
    let step = Step::push("On its way", "Order A-1 is on its way").unwrap();
    delivery(&step, Channel::Push, json!({ "deviceTokens": tokens }), application())
}

fn provider() -> WebPush {
    WebPush::default().allow_private_addresses()
}

fn header<'r>(request: &'r Request, name: &str) -> &'r str {
    &request.headers[name]
}

#[test]
fn a_browser_reads_what_its_push_service_cannot() {
    let service = Server::start(|_| answer(201, "location: /message/17\r\n", ""));
    let browser = Browser::new(1);
    let mut delivery = push(&[browser.subscription(&service.url("http"))]);

    assert_eq!(provider().send(&delivery), Ok(ProviderReceipt::with_id("/message/17")));
    delivery.overrides =
        json!({ "ttl": 60, "urgency": "high", "topic": "orders", "data": { "order": "A-1" } })
            .try_into()
            .unwrap();
    provider().send(&delivery).unwrap();

    let [first, second] = &service.requests()[..] else { panic!("two requests") };
    let message = json!({
        "title": "On its way", "body": "Order A-1 is on its way", "url": null, "data": null,
    });
    let mut decrypted = browser.decrypt(&first.body);
    // A sample has no payload, or an empty one.
    decrypted["data"] = Value::Null;
    assert_eq!(decrypted, message);
    assert!(!String::from_utf8_lossy(&first.body).contains("On its way"));
    assert_eq!(browser.decrypt(&second.body)["data"], json!({ "order": "A-1" }));
    assert_ne!(first.body[..16], second.body[..16], "a salt is drawn for each message");
    assert_eq!(header(first, "content-encoding"), "aes128gcm");
    assert_eq!((header(first, "ttl"), header(first, "urgency")), ("2419200", "normal"));
    assert_eq!((header(second, "ttl"), header(second, "urgency")), ("60", "high"));
    assert_eq!(header(second, "topic"), "orders");
    let key = WebPush::application_server_key(&application()).unwrap();
    assert!(header(first, "authorization").ends_with(&format!(", k={key}")));
}

/// A push service refuses messages that it would have to keep for longer.
#[test]
fn a_message_is_kept_for_four_weeks_at_most() {
    let service = Server::start(|_| answer(201, "", ""));
    for (ttl, expected) in
        [(0, "0"), (2_419_200, "2419200"), (2_419_201, "2419200"), (99_999_999_999_u64, "2419200")]
    {
        let mut delivery = push(&[Browser::new(1).subscription(&service.url("http"))]);
        delivery.overrides = json!({ "ttl": ttl }).try_into().unwrap();
        provider().send(&delivery).unwrap();
        assert_eq!(header(service.requests().last().unwrap(), "ttl"), expected);
    }
}

/// One row per answer of a push service: the error.
#[test]
fn an_answer_of_a_push_service_is_understood() {
    for (status, expected) in [
        (404, "gone"),
        (410, "gone"),
        // A header that is not valid is one of the message.
        (400, "permanent"),
        (401, "permanent"),
        (403, "permanent"),
        (406, "retryable"),
        (413, "permanent"),
        (429, "retryable"),
        (500, "retryable"),
        (502, "unknown"),
    ] {
        let service = Server::start(move |_| answer(status, "", ""));
        let delivery = push(&[Browser::new(1).subscription(&service.url("http"))]);
        let error = provider().send(&delivery).unwrap_err();
        assert_eq!(kind(&error), expected, "{status}: {error}");
    }
}

#[test]
fn a_token_without_a_subscription_is_refused() {
    let error = provider().send(&push(&["no subscription".into()])).unwrap_err();
    assert_eq!(kind(&error), "permanent", "{error}");
}

#[test]
fn keys_are_read_in_both_alphabets_of_base64() {
    let service = Server::start(|_| answer(201, "", ""));
    for seed in 1..20 {
        let url = service.url("http");
        let subscription = Browser::new(seed).subscription(&url);
        let mut other: Value = serde_json::from_str(&subscription).unwrap();
        for name in ["p256dh", "auth"] {
            let key = other["keys"][name].as_str().unwrap();
            other["keys"][name] = json!(format!("{}=", key.replace('-', "+").replace('_', "/")));
        }
        provider().send(&push(&[other.to_string()])).unwrap();
    }
}

/// One row per override that is not valid, and a message that is too long.
#[test]
fn what_no_push_service_takes_is_refused() {
    let service = Server::start(|_| answer(201, "", ""));
    for overrides in [
        json!({ "ttl": "long" }),
        json!({ "ttl": -1 }),
        json!({ "urgency": "highest" }),
        json!({ "topic": "a b" }),
        json!({ "topic": "x".repeat(33) }),
        json!({ "topic": "a\r\nb: c" }),
        json!({ "data": "x".repeat(4096) }),
    ] {
        let mut delivery = push(&[Browser::new(1).subscription(&service.url("http"))]);
        delivery.overrides = overrides.clone().try_into().unwrap();
        let error = provider().send(&delivery).unwrap_err();
        assert_eq!(kind(&error), "permanent", "{overrides}: {error}");
    }
    assert_eq!(service.requests().len(), 0);
}
