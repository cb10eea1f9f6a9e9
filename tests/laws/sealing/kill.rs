//! A process that rotates its key is killed.

use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::json;
use store::redb::RedbStore;
use tempfile::tempdir;
use testkit::kill::{acknowledge, exit_on_panic, file_of_child, prepared, work_until_killed};
use testkit::scaled;
use testkit::sealed::{keyring, marks};
use tidings::trigger::Trigger;
use tidings::{Engine, RecordingProvider};

use crate::parsed;
use crate::seeded::{email, inbox};

/// Number of kills.
const ROUNDS: u32 = 4;

/// The same on a machine so slow that no process finishes a rotation.
const MOST_ROUNDS: u32 = 100;

#[test]
fn a_kill_while_keys_are_rotated_loses_nothing() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("tidings.redb");
    let mut acknowledged = Vec::new();
    for round in 0_u32.. {
        let longer = u64::from(round.saturating_sub(scaled(ROUNDS)));
        let span = Duration::from_millis(u64::from(round) * 61 % 200 + longer * 200);
        acknowledged.extend(work_until_killed("sealing::kill::child", &path, span));
        check_left(&path, &acknowledged);
        let is_rotated = acknowledged.iter().any(|what| what.starts_with("key"));
        if round + 1 >= scaled(ROUNDS) && is_rotated {
            let told = acknowledged.len();
            println!("{} kills among {told} acknowledged events and keys lost none", round + 1);
            break;
        }
        assert!(round < scaled(MOST_ROUNDS), "no key was rotated");
    }
}

/// Not a test, but what the other process does.
#[test]
#[ignore = "the other process of a test"]
fn child() {
    let Some(file) = file_of_child() else { return };
    exit_on_panic();
    loop {
        let engine = open(Path::new(&file));
        let env = prepared(&engine, "both", &[inbox(), email()]);
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..8 {
                    let receipt = env.events().trigger(&event()).unwrap();
                    acknowledge(format!("event {}", receipt.transaction_id));
                    engine.delivery().run_due(4).unwrap();
                }
            });
            let report = engine.reseal().unwrap();
            assert!(report.is_finished && report.unreadable == 0, "{report:?}");
        });
        acknowledge("key");
    }
}

/// Opens the file with a new key.
fn open(path: &Path) -> Engine {
    let mut ids: Vec<u32> =
        marks(&RedbStore::open(path).unwrap()).iter().map(|id| id.number()).collect();
    ids.sort_unstable();
    ids.push(ids.last().copied().unwrap_or_default() + 1);
    ids.reverse();
    let builder = Engine::builder().sealing(keyring(&ids)).activity_segments(16);
    builder.default_provider(RecordingProvider::default()).open(path).unwrap()
}

fn event() -> Trigger {
    let ada = json!({ "subscriberId": "ada", "email": "ada@example.org" });
    parsed(json!({ "name": "both", "to": [ada], "payload": { "n": 1 } }))
}

#[track_caller]
fn check_left(path: &Path, acknowledged: &[String]) {
    let engine = open(path);
    assert_eq!(engine.check().unwrap().findings, []);
    let env = engine.organization("acme").unwrap().development().unwrap();
    for event in acknowledged.iter().filter_map(|what| what.strip_prefix("event ")) {
        let query = parsed(json!({ "transactionId": event }));
        assert_eq!(env.notifications().list(&query).unwrap().data.len(), 1, "{event}");
    }
}
