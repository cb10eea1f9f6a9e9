//! The bytes of a file and of its log.

use std::fs;
use std::path::Path;

use serde_json::json;
use tempfile::tempdir;
use testkit::sealed::keyring;
use tidings::{Builder, Engine, RecordingProvider};

use super::{CANARY, Shown, call, filling};

/// A stolen file shows nothing without its key: neither while it is written nor afterwards.
#[test]
fn a_sealed_file_and_its_log_hold_no_secret() {
    let sealed = found(|builder| builder.sealing(keyring(&[1])));
    assert_eq!(sealed, [false; 3], "a secret is in the file, in its log or in a backup");
    // So that the search is one.
    let plain = found(|builder| builder);
    assert_eq!(plain, [true; 3]);
}

// Whether a canary, a created key and the first key of the environment are in the file or its log,
// while the engine is open, in the file afterwards, when there is no log, or in a backup, which is
// opened with the same keys.
fn found(configure: impl Fn(Builder) -> Builder) -> [bool; 3] {
    let folder = tempdir().unwrap();
    let path = folder.path().join("shop.redb");
    let log = folder.path().join("shop.redb-log");
    let builder = configure(Engine::builder()).default_provider(RecordingProvider::default());
    let engine = builder.open(&path).unwrap();
    let env = engine.organization("acme").unwrap().development().unwrap();
    let shown = Shown::default();
    for request in filling() {
        call(&shown, &engine, &env, &request).unwrap();
    }
    // Payloads, contents and devices are sealed, too.
    let template = json!({ "title": "canary-30", "body": "canary-31 {{ payload.code }}" });
    let push = json!([{ "type": "push", "template": template }]);
    let channel = json!({ "providerId": "fcm", "_integrationId": "$fcm",
        "credentials": { "deviceTokens": ["canary-32"] } });
    for request in [
        json!(["workflows.create", { "workflowId": "push", "name": "Push", "steps": push }]),
        json!(["subscribers.update", "ada", { "channels": [channel], "data": { "x": "canary-33" } }]),
        json!(["events.trigger",
            { "name": "push", "to": ["ada"], "payload": { "code": "canary-34" } }]),
        json!(["delivery.run_due", 100]),
    ] {
        call(&shown, &engine, &env, &request).unwrap();
    }
    // The keys of the environment, of which one is in an answer that is kept for its repetition.
    let created = json!(["idempotent", "key", "keys.create", { "name": "Orders" }]);
    let created = call(&shown, &engine, &env, &created).unwrap();
    let environment = engine.organization("acme").unwrap().environments().development().unwrap();
    let mut secrets = vec![CANARY.to_owned(), created["key"].as_str().unwrap().to_owned()];
    secrets.push(environment.api_keys[0].key.expose().to_owned());
    let holds = |path: &Path| {
        let bytes = fs::read(path).unwrap();
        let found = secrets.iter().map(|secret| holds(&bytes, secret));
        found.collect::<Vec<_>>()
    };
    let open = [holds(&path), holds(&log)];
    let copy = folder.path().join("copy.redb");
    assert!(engine.backup(&copy).unwrap().is_finished);
    drop((env, engine));
    assert!(!log.exists());
    let closed = [holds(&path), holds(&copy)];
    let again = configure(Engine::builder()).open(&copy).unwrap();
    assert_eq!(again.check().unwrap().findings, []);
    // One row per secret: whether one of the files holds it.
    let of_secret = |secret: usize| open.iter().chain(&closed).any(|file| file[secret]);
    [of_secret(0), of_secret(1), of_secret(2)]
}

fn holds(bytes: &[u8], secret: &str) -> bool {
    bytes.windows(secret.len()).any(|window| window.eq_ignore_ascii_case(secret.as_bytes()))
}
