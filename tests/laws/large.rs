//! A world in which `ada` has hundreds of everything, so that operations take several transactions.
//!
//! `TIDINGS_LARGE` is its size: the number of subscribers, and what `ada` has of each kind.

use std::env;
use std::sync::LazyLock;

use domain::retention::Retention;
use domain::vocabulary::Channel;
use serde_json::{Value, json};
use store::memory::MemoryStore;
use testkit::facade::restarted;
use testkit::interposed::Interposed;
use testkit::is_thorough;
use testkit::requests;
use testkit::tables::{dump, load};
use testkit::world::{Counts, World, email, in_app, sms, with, workflow_of};
use tidings::time::Timestamp;
use tidings::{Builder, Delivery, Provider, ProviderReceipt, SendError};

/// The largest payload of an event with 100 recipients, in bytes.
const LARGEST_FOR_MANY: usize = 40 * 1024;

/// A provider that refuses every message for good.
#[derive(Debug)]
pub struct Refusing;

impl Provider for Refusing {
    fn send(&self, _: &Delivery) -> Result<ProviderReceipt, SendError> {
        Err(SendError::permanent("no such address"))
    }
}

static LARGE: LazyLock<(MemoryStore, Timestamp)> = LazyLock::new(|| {
    let world = World::with(Interposed::default(), configured(0));
    fill(&world, size());
    let store = MemoryStore::default();
    load(&store, &dump(&world.store));
    (store, world.now())
});

/// The size of the world.
pub fn size() -> usize {
    let size = env::var("TIDINGS_LARGE").map_or(600, |size| size.parse().unwrap());
    assert!(size > 500, "a smaller world shows nothing");
    size
}

/// A store with every entry of the world. No row is copied until it changes.
pub fn store() -> MemoryStore {
    LARGE.0.fork()
}

/// The world over a store that holds its entries, as another process finds it.
pub fn over(store: Interposed) -> World {
    let world = World::with(store, configured(1));
    world.clock.set(LARGE.1);
    world
}

fn configured(restarts: u64) -> impl Fn(Builder) -> Builder {
    let days = Retention::default().activity_days(90).messages_days(Channel::InApp, 90);
    move |builder| {
        let builder = restarted(restarts)(builder).default_provider(Refusing);
        builder.retention(days.clone()).activity_segments(61_440)
    }
}

/// So many letters that cannot be compressed.
pub fn noise(letters: usize) -> String {
    let mut state = 7_u64;
    let mut letter = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b'a' + u8::try_from((state >> 33) % 26).unwrap())
    };
    (0..letters).map(|_| letter()).collect()
}

/// Requests that each change a part of the world that grows with its size.
pub fn requests() -> Vec<Value> {
    let page: Vec<String> = (0..100).map(|number| format!("s{number}")).collect();
    let heavy = json!({ "text": noise(LARGEST_FOR_MANY - 20) });
    let later = "2027-01-01T00:00:00Z";
    // An event that is repeated under its id is no other one.
    let event = |id: usize, payload: &Value| json!({ "name": "both", "to": page, "payload": payload, "transactionId": id.to_string() });
    let bulk: Vec<Value> = (0..100).map(|id| event(id, &json!({}))).collect();
    let texts: Vec<(String, Value)> =
        (0..100).map(|number| (format!("w{number}"), json!({ "hello": "Ciao" }))).collect();
    let texts: serde_json::Map<String, Value> = texts.into_iter().collect();
    // As large as content may be, in thorough runs. Templates compile slowly without optimization.
    let placeholders = if is_thorough() { 9_000 } else { 100 };
    let content: serde_json::Map<String, Value> = (0..7)
        .map(|number| (format!("t{number}"), "{{ payload.n }} ".repeat(placeholders).into()))
        .collect();
    let translation = json!({ "resourceType": "workflow", "resourceId": "w0", "locale": "fr_FR", "content": content });
    vec![
        json!(["subscribers.update", "ada", { "email": "new@example.org" }]),
        json!(["subscribers.delete", "ada"]),
        json!(["subscribers.erase", "ada"]),
        json!(["preferences.update_global", "ada", { "enabled": false }]),
        json!(["topics.delete", "all"]),
        json!(["topics.subscribe", "new", { "subscriptions": page }]),
        json!(["topics.unsubscribe", "all", { "subscriptions": page }]),
        json!(["workflows.delete", "news"]),
        json!(["workflows.delete", "wait"]),
        json!(["workflows.delete", "paused"]),
        json!(["workflows.pause", "wait"]),
        json!(["workflows.resume", "paused"]),
        json!(["workflows.sync", { "undeclared": "delete", "workflows": [
            { "workflowId": "new", "name": "New", "steps": [] },
        ] }]),
        json!(["integrations.update", "@sendgrid", { "active": false }]),
        json!(["integrations.resume", "@twilio"]),
        json!(["integrations.delete", "@sendgrid", { "promote": true }]),
        json!(["integrations.delete", "@twilio", { "promote": true }]),
        json!(["integrations.delete", "@slack", { "promote": true }]),
        json!(["suppressions.clear", "sms"]),
        json!(["contexts.delete", "tenant:acme"]),
        json!(["translations.import", { "locale": "it_IT", "masterJson": { "workflows": texts } }]),
        json!(["translations.upsert", translation]),
        json!(["events.trigger", event(0, &heavy)]),
        json!(["events.trigger_bulk", bulk]),
        json!(["notifications.delete_before", later]),
        json!(["notifications.rebuild_index"]),
        json!(["dead_letters.redrive_matching", {}]),
        json!(["dead_letters.discard_matching", {}]),
        json!(["inbox.mark_all", "ada", "read"]),
        json!(["inbox.archive_matching", "ada", {}]),
        json!(["inbox.snooze_matching", "ada", {}, later]),
        json!(["inbox.delete_matching", "ada", {}]),
    ]
}

/// `request` with the id of an integration in place of `@` and its identifier.
pub fn with_ids(world: &World, request: &Value) -> Value {
    let mut request = request.clone();
    if let Some(Value::String(name)) = request.get_mut(1)
        && let Some(identifier) = name.strip_prefix('@')
    {
        let all = world.env.integrations().list().unwrap();
        let found = all.iter().find(|one| one.identifier.as_str() == identifier).unwrap();
        *name = found.id.to_string();
    }
    request
}

/// Fills `world`: `size` subscribers, of whom `ada` has `size` of everything.
fn fill(world: &World, size: usize) {
    let call = |request: Value| {
        let answer = requests::call(&world.engine, &world.env, &request);
        answer.unwrap_or_else(|refused| panic!("{request}: {refused:?}")).json()
    };
    for (channel, name) in [("email", "sendgrid"), ("sms", "twilio"), ("chat", "slack")] {
        world.active_integration(channel, name);
    }
    call(with_ids(world, &json!(["integrations.pause", "@twilio"])));
    let delay =
        json!({ "type": "delay", "metadata": { "type": "regular", "amount": 1, "unit": "days" } });
    for (name, steps) in [
        ("news", vec![in_app()]),
        ("mail", vec![email()]),
        ("text", vec![sms()]),
        ("wait", vec![delay, in_app()]),
        ("both", vec![in_app(), email()]),
        ("paused", vec![in_app()]),
    ] {
        world.workflow_of(name, &steps);
    }
    for number in 0..100 {
        let step = with(in_app(), json!({}));
        let workflow = workflow_of(&format!("w{number}"), &[step]);
        world.workflow(with(workflow, json!({ "isTranslationEnabled": true })));
    }
    let address = json!({ "email": "ada@example.org", "phone": "+4912345" });
    world.subscriber(with(json!({ "subscriberId": "ada" }), address));
    let subscribers: Vec<String> = (0..size).map(|number| format!("s{number}")).collect();
    for name in &subscribers {
        let address = json!({ "email": format!("{name}@example.org"), "phone": "+49123" });
        world.subscriber(with(json!({ "subscriberId": name }), address));
    }
    for page in subscribers.chunks(100) {
        call(json!(["topics.subscribe", "all", { "subscriptions": page }]));
    }
    call(json!(["topics.subscribe", "all", { "subscriptions": ["ada"] }]));
    world.env.workflows().pause("paused").unwrap();
    for _ in 0..size.div_ceil(100) {
        for name in ["news", "mail", "text", "wait", "paused"] {
            let event = json!({
                "name": name, "to": "ada", "context": { "tenant": "acme" }, "payload": { "n": 1 },
            });
            call(json!(["events.trigger_bulk", vec![event; 100]]));
        }
    }
    while world.run_due() != Counts::default() {}
    let preferences: Vec<Value> = (0..100)
        .map(|number| json!({ "workflowId": format!("w{number}"), "channels": { "email": false } }))
        .collect();
    call(json!(["preferences.update_bulk", "ada", { "preferences": preferences }]));
    for number in 0..size {
        let workspace = json!({ "id": format!("T{number}") });
        call(json!(["channel_connections.create", {
            "integrationIdentifier": "slack", "subscriberId": format!("s{number}"),
            "workspace": workspace, "identifier": format!("c{number}"), "auth": { "accessToken": "secret" },
        }]));
        call(json!(["channel_endpoints.create", {
            "integrationIdentifier": "twilio", "subscriberId": "ada", "type": "phone",
            "identifier": format!("e{number}"), "endpoint": { "phoneNumber": "+442079460001" },
        }]));
        call(json!(["suppressions.add", { "channel": "sms", "address": format!("+44 {number}") }]));
    }
    assert!(!world.inbox("ada").is_empty());
}
