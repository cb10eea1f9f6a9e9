//! A key is rotated while an engine works.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use testkit::interposed::Interposed;
use testkit::sealed::keyring;
use testkit::tables::{check_indexes, dump};
use tidings::trigger::Trigger;
use tidings::{Delivery, Engine, Error, RecordingProvider};

use super::check_sealed;
use crate::parsed;
use crate::seeded::email;

const BEFORE: usize = 100;
const MEANWHILE: usize = 50;

#[test]
fn workers_send_while_a_key_is_rotated() {
    let store = Interposed::default();
    let engine = |ids: &[u32], recorder: &RecordingProvider| {
        let builder = Engine::builder().sealing(keyring(ids)).default_provider(recorder.clone());
        builder.build(store.clone())
    };
    let recorder = RecordingProvider::default();
    let env = engine(&[1], &recorder).organization("acme").unwrap().development().unwrap();
    let workflow = json!({ "workflowId": "mail", "name": "Mail", "steps": [email()] });
    env.workflows().create(&parsed(workflow)).unwrap();
    let mail = json!({ "providerId": "host", "channel": "email", "active": true });
    env.integrations().create(&parsed(mail)).unwrap();
    for number in 0..BEFORE {
        env.events().trigger(&event(number)).unwrap();
    }
    check_sealed(&store, 1);
    drop(env);

    let engine = engine(&[2, 1], &recorder);
    let env = engine.organization("acme").unwrap().development().unwrap();
    let worker = engine.worker().threads(2).start().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in BEFORE..BEFORE + MEANWHILE {
                env.events().trigger(&event(number)).unwrap();
            }
        });
        let report = engine.reseal().unwrap();
        assert!(report.is_finished && report.unreadable == 0, "{report:?}");
        assert!(report.resealed > BEFORE as u64, "{report:?}");
    });
    let start = Instant::now();
    while recorder.sent().len() < BEFORE + MEANWHILE && start.elapsed() < Duration::from_secs(60) {
        thread::sleep(Duration::from_millis(5));
    }
    let report = worker.stop(Duration::from_secs(60));
    assert_eq!((report.errors, report.running), (0, 0), "{report:?}");
    let keys: BTreeSet<_> = recorder.sent().iter().map(Delivery::idempotency_key).collect();
    assert_eq!((keys.len(), recorder.sent().len()), (BEFORE + MEANWHILE, BEFORE + MEANWHILE));
    check_sealed(&store, 2);
    check_indexes(&store);
}

/// Another process has begun to seal with a key that this one does not have.
#[test]
fn an_engine_without_a_new_key_takes_no_record_for_damaged() {
    let cases: [(Option<&[u32]>, &[u32]); 2] = [(None, &[1]), (Some(&[1]), &[2, 1])];
    for (before, after) in cases {
        let (store, recorder) = (Interposed::default(), RecordingProvider::default());
        let engine = |ids: Option<&[u32]>| {
            let builder = Engine::builder().default_provider(recorder.clone());
            let builder = ids.iter().fold(builder, |builder, ids| builder.sealing(keyring(ids)));
            builder.build(store.clone())
        };
        let (old, new) = (engine(before), engine(Some(after)));
        let env = old.organization("acme").unwrap().development().unwrap();
        let workflow = json!({ "workflowId": "mail", "name": "Mail", "steps": [email()] });
        env.workflows().create(&parsed(workflow)).unwrap();
        let mail = json!({ "providerId": "host", "channel": "email", "active": true });
        env.integrations().create(&parsed(mail)).unwrap();
        let rotating = new.organization("acme").unwrap().development().unwrap();
        for number in 0..5 {
            rotating.events().trigger(&event(number)).unwrap();
        }

        let entries = dump(&store);
        let refused = |error: Error| {
            let is_missing = matches!(error, Error::Store(store::Error::MissingKey { .. }));
            assert!(is_missing, "{error:?}");
        };
        refused(old.delivery().run_due(100).unwrap_err());
        refused(env.notifications().list(&parsed(json!({}))).unwrap_err());
        refused(env.events().trigger(&event(0)).unwrap_err());
        refused(old.check().unwrap_err());
        refused(old.repair().unwrap_err());
        if before.is_some() {
            refused(old.reseal().unwrap_err());
        }
        assert!(dump(&store) == entries, "an engine without the key has changed something");

        assert_eq!(new.check().unwrap().findings, []);
        assert_eq!(new.delivery().run_due(100).unwrap().sent, 5);
    }
}

fn event(number: usize) -> Trigger {
    let id = format!("s{number}");
    let to = json!([{ "subscriberId": id, "email": format!("{id}@example.org") }]);
    parsed(json!({ "name": "mail", "to": to }))
}
