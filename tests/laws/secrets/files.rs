//! The bytes of a file and of its log.

use std::fs;
use std::path::Path;

use serde_json::json;
use tempfile::tempdir;
use testkit::sealed::keyring;
use tidings::{Builder, Engine, Outbox};

use super::{CANARY, Shown, call, filling};

/// A stolen file shows nothing without its key: neither while it is written nor afterwards.
#[test]
fn a_sealed_file_and_its_log_hold_no_secret() {
    let sealed = found(|builder| builder.sealing(keyring(&[1])));
    assert_eq!(sealed, [false; 5], "a canary is in the file, in its log or in a backup");
    // So that the search is one.
    let plain = found(|builder| builder);
    assert!(plain.contains(&true), "{plain:?}");
}

// Whether a canary is in the file and in its log: while the engine is open, and afterwards; and in a
// backup, which is opened with the same keys.
fn found(configure: impl Fn(Builder) -> Builder) -> [bool; 5] {
    let folder = tempdir().unwrap();
    let path = folder.path().join("shop.redb");
    let log = folder.path().join("shop.redb-log");
    let builder = configure(Engine::builder()).default_provider(Outbox::default());
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
    let open = [holds(&path), holds(&log)];
    let copy = folder.path().join("copy.redb");
    assert!(engine.backup(&copy).unwrap().is_finished);
    drop((env, engine));
    let closed = [holds(&path), log.exists() && holds(&log), holds(&copy)];
    let again = configure(Engine::builder()).open(&copy).unwrap();
    assert_eq!(again.check().unwrap().findings, []);
    [open[0], open[1], closed[0], closed[1], closed[2]]
}

fn holds(path: &Path) -> bool {
    let bytes = fs::read(path).unwrap().to_ascii_lowercase();
    bytes.windows(CANARY.len()).any(|window| window == CANARY.as_bytes())
}
