//! What a notification takes in the file: 20,000 of them, with an in-app, an e-mail and a text
//! message each, triggered in bulk for random subscribers and sent batch by batch, so that every
//! record is rewritten as its jobs go on.
//!
//! ```text
//! cargo bench --bench records
//! ```

use std::path::Path;

use bench_data::Calls;
use redb::{ReadableDatabase, ReadableTable, ReadableTableMetadata, TableDefinition};
use serde_json::{from_value, json};
use store::Table;
use store::encoding;
use store::redb::RedbStore;
use tidings::trigger::Trigger;
use tidings::{Delivery, Engine, Provider, ProviderReceipt, Scope, SendError};

const SEED: u64 = 1;
const SUBSCRIBERS: usize = 5_000;
const NOTIFICATIONS: u64 = 20_000;
const AT_A_TIME: u64 = 100;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bench.redb");
    fill(&path);
    let file = std::fs::metadata(&path).unwrap().len();
    let database = redb::Database::open(&path).unwrap();
    let snapshot = database.begin_read().unwrap();
    let rows: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new(Table::Notifications.name());
    let table = snapshot.open_table(rows).unwrap();
    let (mut json, mut stored) = (0, 0);
    for row in table.iter().unwrap() {
        let (_, value) = row.unwrap();
        stored += value.value().len() as u64;
        json += encoding::json(value.value()).unwrap().len() as u64;
    }
    assert_eq!(table.len().unwrap(), NOTIFICATIONS);
    let stats = table.stats().unwrap();
    let pages = stats.stored_bytes() + stats.metadata_bytes() + stats.fragmented_bytes();
    println!("bytes per notification, of {NOTIFICATIONS} with 3 jobs");
    for (what, bytes) in [
        ("as JSON", json),
        ("as it is stored", stored),
        ("in the pages of its table", pages),
        ("in the file, with messages, receipts, indexes and free pages", file),
    ] {
        println!("{:>8}  {what}", bytes / NOTIFICATIONS);
    }
    println!();
    println!("{:<28} {:>9} {:>16}", "table", "entries", "bytes in pages");
    for table in Table::ALL {
        let rows: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new(table.name());
        let Ok(rows) = snapshot.open_table(rows) else { continue };
        let stats = rows.stats().unwrap();
        let pages = stats.stored_bytes() + stats.metadata_bytes() + stats.fragmented_bytes();
        println!("{:<28} {:>9} {:>16}", table.name(), rows.len().unwrap(), pages);
    }
}

fn fill(path: &Path) {
    let engine = Engine::builder().default_provider(Sent).build(RedbStore::open(path).unwrap());
    let env = engine.organization("acme").unwrap().development().unwrap();
    prepare(&env);
    let mut calls = Calls::new(SEED, SUBSCRIBERS);
    for batch in 0..NOTIFICATIONS / AT_A_TIME {
        let orders = batch * AT_A_TIME..(batch + 1) * AT_A_TIME;
        let triggers: Vec<Trigger> = orders.map(|order| trigger(order, &mut calls)).collect();
        env.events().trigger_bulk(&triggers).unwrap().all().unwrap();
        if batch % 5 == 4 {
            while engine.delivery().run_due(1_000).unwrap().sent > 0 {}
        }
    }
    while engine.delivery().run_due(1_000).unwrap().sent > 0 {}
}

fn trigger(order: u64, calls: &mut Calls) -> Trigger {
    let random = calls.trigger(1);
    let customer = random.audience().unwrap().subscribers[0].subscriber_id();
    from_value(json!({
        "name": "order-shipped",
        "transactionId": random.transaction_id,
        "to": {
            "subscriberId": customer,
            "email": format!("{customer}@example.com"),
            "phone": "+351210000000",
        },
        "payload": {
            "order": format!("A-{order}"),
            "city": "Lisbon",
            "carrier": "Correios",
            "total": { "amount": order * 31 % 40_000, "currency": "EUR" },
        },
    }))
    .unwrap()
}

fn prepare(env: &Scope) {
    for (channel, provider) in [("email", "ses"), ("sms", "twilio")] {
        let integration = json!({
            "identifier": provider, "name": provider, "providerId": provider,
            "channel": channel, "active": true,
        });
        env.integrations().create(&from_value(integration).unwrap()).unwrap();
    }
    let body = "Your order {{ payload.order }} is on its way to {{ payload.city }}.";
    let workflow = json!({
        "workflowId": "order-shipped",
        "name": "Order shipped",
        "active": true,
        "tags": ["orders"],
        "steps": [
            { "type": "in_app", "name": "inbox", "template": { "body": body } },
            { "type": "email", "name": "mail", "template": { "subject": "On its way", "body": body } },
            { "type": "sms", "name": "text", "template": { "body": body } },
        ],
    });
    env.workflows().create(&from_value(workflow).unwrap()).unwrap();
}

/// A provider that sends everything at once.
#[derive(Debug)]
struct Sent;

impl Provider for Sent {
    fn send(&self, delivery: &Delivery) -> Result<ProviderReceipt, SendError> {
        Ok(ProviderReceipt::with_id(delivery.idempotency_key().to_string()))
    }
}
