//! Errors about records that cannot be read.

use std::time::Duration;

use serde_json::{Map, Value, json};
use store::{Table, encoding};
use testkit::tables::{decoded, dump, put};
use tidings::check::{Finding, Problem, TableFinding};

use super::{CANARY, Shown, call, reading, world};

/// A record whose fields have changed places, as one of another version.
#[test]
fn an_unreadable_record_shows_nothing_of_its_secrets() {
    let (shown, hidden) = (Shown::default(), Shown::default());
    let world = world(&hidden);
    let entries = dump(&world.store);
    let mut tables = Vec::new();
    for (table, key, value) in &entries {
        let Some(Value::Object(record)) = decoded(value) else { continue };
        if tables.iter().filter(|other| *other == table).count() == 2 {
            continue;
        }
        tables.push(*table);
        let mut is_read = false;
        for wrong in wrong_fields(&record) {
            put(&world.store, *table, key, Some(&wrong));
            let check = world.engine.check().unwrap();
            // A text that may be anything is no damage.
            if !check.findings.iter().any(is_unreadable) {
                continue;
            }
            shown.add(check);
            if !is_read {
                for request in reading() {
                    call(&shown, &world.engine, &world.env, &request);
                }
                shown.add(world.engine.delivery().run_due(4));
                world.clock.advance(Duration::from_secs(1));
            }
            is_read = true;
        }
        put(&world.store, *table, key, Some(value));
    }
    assert!(tables.contains(&Table::Integrations) && tables.contains(&Table::StoredAnswers));
    // Keys of entries are shown, and hold no secret.
    assert!(!entries.iter().any(|(_, key, _)| key.escape_ascii().to_string().contains(CANARY)));
    shown.check(300);
}

fn is_unreadable(finding: &Finding) -> bool {
    matches!(finding, Finding::Table(TableFinding { problem: Problem::Unreadable { .. }, .. }))
}

// The record with one of its fields replaced, in both encodings.
fn wrong_fields(record: &Map<String, Value>) -> Vec<Vec<u8>> {
    let mut wrong = Vec::new();
    for name in record.keys() {
        for value in [json!("canary-20"), json!({ "canary-21": "canary-22" })] {
            let mut record = record.clone();
            record.insert(name.clone(), value);
            let json = Value::Object(record);
            wrong.extend([encoding::encode(&json, 0).unwrap(), as_json(&json)]);
        }
    }
    wrong
}

fn as_json(json: &Value) -> Vec<u8> {
    [b"\x01", json.to_string().as_bytes()].concat()
}
