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
    assert_eq!(sealed, [false; 4], "a canary is in the file or in its log");
    // So that the search is one.
    let plain = found(|builder| builder);
    assert!(plain.contains(&true), "{plain:?}");
}

// Whether a canary is in the file and in its log: while the engine is open, and afterwards.
fn found(configure: impl Fn(Builder) -> Builder) -> [bool; 4] {
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
    drop((env, engine));
    let [file, log] = [holds(&path), log.exists() && holds(&log)];
    [open[0], open[1], file, log]
}

fn holds(path: &Path) -> bool {
    let bytes = fs::read(path).unwrap().to_ascii_lowercase();
    bytes.windows(CANARY.len()).any(|window| window == CANARY.as_bytes())
}
