use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::environment::Environment;
use crate::integration::{Integration, IntegrationCreate, IntegrationUpdate};
use crate::message::Message;
use crate::plan::Address;
use crate::sample;
use crate::subscriber::{Subscriber, SubscriberCreate};
use crate::trigger::Trigger;
use crate::vocabulary::Channel;

const SECRET: &str = "s3cr3t";

/// Reads a value with secrets, and asserts that it does not print them.
#[track_caller]
fn check<T: fmt::Debug + Serialize + DeserializeOwned>(json: Value) -> T {
    let it: T = serde_json::from_value(json).unwrap();
    let debug = format!("{it:?} {it:#?}");
    assert!(debug.contains("***") && !debug.contains(SECRET), "{debug}");
    assert!(serde_json::to_string(&it).unwrap().contains(SECRET), "the wire form is whole");
    it
}

/// The same for a record, with `redacted` as well.
#[track_caller]
fn check_record<T: fmt::Debug + Serialize + DeserializeOwned>(json: Value, redacted: fn(T) -> T) {
    let text = serde_json::to_string(&redacted(check(json))).unwrap();
    assert!(text.contains("***") && !text.contains(SECRET), "{text}");
}

fn with(record: impl Serialize, field: &str, value: Value) -> Value {
    let mut json = serde_json::to_value(record).unwrap();
    json[field] = value;
    json
}

fn credentials() -> Value {
    let mut credentials = json!({
        "user": "ada", "tlsOptions": { "key": SECRET, "inner": { "key": SECRET } },
    });
    for name in [
        "apiKey",
        "secretKey",
        "password",
        "token",
        "webhookUrl",
        "serviceAccount",
        "apiToken",
        "authenticationTokenKey",
        "accessKey",
    ] {
        credentials[name] = SECRET.into();
    }
    credentials
}

fn configurations() -> Value {
    json!({ "inboundWebhookEnabled": true, "inboundWebhookSigningKey": SECRET })
}

fn channels() -> Value {
    json!([{
        "providerId": "slack", "_integrationId": uuid::Uuid::nil(),
        "credentials": { "webhookUrl": SECRET },
    }])
}

#[test]
fn an_integration_hides_its_credentials() {
    let integration = sample::integration(1, "outbox", Channel::Email);
    let bare = with(&integration, "configurations", configurations());
    check_record(bare.clone(), Integration::redacted);
    check_record(with(bare, "credentials", credentials()), Integration::redacted);
    check::<IntegrationCreate>(json!({
        "providerId": "outbox", "channel": "email", "credentials": credentials(),
        "configurations": configurations(),
    }));
    check::<IntegrationUpdate>(json!({
        "credentials": credentials(), "configurations": configurations(),
    }));
}

/// Each secret is hidden on its own, without the others.
#[test]
fn every_secret_credential_is_hidden() {
    for (name, value) in credentials().as_object().unwrap() {
        if name == "user" {
            continue;
        }
        let integration = sample::integration(1, "outbox", Channel::Email);
        let one = with(integration, "credentials", json!({ name: value }));
        let integration: Integration = check(one);
        let redacted = serde_json::to_string(&integration.redacted()).unwrap();
        assert!(!redacted.contains(SECRET), "{redacted}");
    }
}

#[test]
fn an_environment_hides_its_keys() {
    check_record(
        json!({
            "_id": uuid::Uuid::nil(), "name": "QA", "_organizationId": "acme", "identifier": "x",
            "color": "#fff", "createdAt": "1970-01-01T00:00:00.000Z",
            "apiKeys": [{ "key": SECRET, "_userId": "host" }, { "key": SECRET, "_userId": "eve" }],
        }),
        Environment::redacted,
    );
}

#[test]
fn a_subscriber_hides_its_webhooks() {
    let subscriber = sample::subscriber(json!({}));
    check_record(with(&subscriber, "channels", channels()), Subscriber::redacted);
    let create = json!({ "subscriberId": "ada", "channels": channels() });
    check::<SubscriberCreate>(create.clone());
    check::<Trigger>(json!({ "name": "welcome", "to": create }));
    check::<Trigger>(json!({ "name": "welcome", "to": [create] }));
}

#[test]
fn a_message_hides_where_it_went() {
    let mut message = json!({
        "_id": uuid::Uuid::nil(), "_environmentId": uuid::Uuid::nil(), "_organizationId": "acme",
        "_notificationId": uuid::Uuid::nil(), "_subscriberId": uuid::Uuid::nil(),
        "createdAt": "1970-01-01T00:00:00.000Z", "transactionId": "txn", "channel": "chat",
        "read": false, "seen": false, "cta": {}, "status": "sent",
    });
    check_record(with(&message, "directWebhookUrl", SECRET.into()), Message::redacted);
    let subscriber = with(sample::subscriber(json!({})), "channels", channels());
    message["subscriber"] = subscriber;
    check_record(message, Message::redacted);
    let address = Address::Webhook { url: SECRET.into(), channel: None };
    assert_eq!(format!("{address:?}"), "Webhook { url: ***, channel: None }");
}

#[test]
fn a_secret_is_had_by_asking_for_it() {
    let secret = Secret::new(SECRET);
    assert_eq!((secret.expose(), format!("{secret:?}").as_str()), (SECRET, "***"));
    assert_eq!(serde_json::to_value(&secret).unwrap(), json!(SECRET));
    assert_eq!(serde_json::from_value::<Secret>(json!(SECRET)).unwrap(), secret);
    assert_eq!(Secret::redacted().expose(), "***");
}
