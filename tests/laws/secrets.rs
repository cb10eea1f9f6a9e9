//! Secrets are shown to providers and to callers that ask for them, and are printed nowhere.
//!
//! Each secret field has a canary. No debug text, error, event, explanation or log holds one, and
//! no file of sealed records holds one.

mod damaged;
mod files;
mod traced;

use std::error::Error as _;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use testkit::requests::{self, Refusal, sound};
use testkit::world::{World, active_integration, with, workflow_of};
use tidings::observer::Event;
use tidings::sealing::{Keyring, SealingKey};
use tidings::subscriber::SubscriberCreate;
use tidings::{Builder, Delivery, Engine, Provider, ProviderReceipt, Scope, SendError};

use crate::{parsed, seeded};

const CANARY: &str = "canary";

/// What somebody may read: a log, a console, an error page.
#[derive(Clone, Debug, Default)]
struct Shown(Arc<Mutex<Vec<String>>>);

impl Shown {
    fn add(&self, text: impl Debug) {
        self.0.lock().unwrap().push(format!("{text:?}"));
    }

    // An error, with the errors that it comes from, as it is printed and as JSON.
    fn refusal(&self, refusal: &Refusal) {
        self.add(refusal);
        let Refusal::By(error) = refusal else { return };
        self.add((error.to_string(), serde_json::to_string(error).unwrap()));
        let mut source = error.source();
        while let Some(error) = source {
            self.add((error.to_string(), error));
            source = error.source();
        }
    }

    /// No text has one of these.
    #[track_caller]
    fn lacks(&self, secrets: &[String]) {
        let texts = self.0.lock().unwrap();
        for secret in secrets {
            assert!(secret.len() > 20, "{secret} may be there by chance");
            let told = texts.iter().find(|text| text.contains(secret));
            assert!(told.is_none(), "{secret} is in {}", told.unwrap_or(&String::new()));
        }
    }

    #[track_caller]
    fn check(&self, least: usize) {
        let texts = self.0.lock().unwrap();
        assert!(texts.len() >= least, "only {} texts are shown", texts.len());
        // As a text, as hexadecimal digits, as a list of bytes, and as the beginning of base64.
        let forms = [CANARY, "63616e617279", "99, 97, 110, 97, 114, 121", "y2fuyxj5"];
        let has_one = |text: &String| forms.iter().any(|form| text.to_lowercase().contains(form));
        let told = texts.iter().find(|text| has_one(text));
        assert!(told.is_none(), "{}", told.unwrap_or(&String::new()));
        println!("none of {} texts has a canary", texts.len());
    }
}

/// A provider that prints what it gets, and answers with the outcomes in turn.
#[derive(Debug)]
struct Printing {
    shown: Shown,
    calls: Mutex<usize>,
}

impl Provider for Printing {
    fn send(&self, delivery: &Delivery) -> Result<ProviderReceipt, SendError> {
        self.shown.add(delivery);
        let mut calls = self.calls.lock().unwrap();
        *calls += 1;
        match *calls % 4 {
            0 => Err(SendError::permanent("refused")),
            1 => Err(SendError::misconfigured("account")),
            2 => Err(SendError::unknown("lost")),
            _ => Ok(ProviderReceipt::default()),
        }
    }
}

/// Credentials in which every secret is a canary.
fn credentials() -> Value {
    json!({
        "apiKey": "canary-1", "secretKey": "canary-2", "password": "canary-3", "token": "canary-4",
        "webhookUrl": "https://canary.example/5", "serviceAccount": "canary-6",
        "apiToken": "canary-7", "authenticationTokenKey": "canary-8", "accessKey": "canary-9",
        "tlsOptions": { "key": "canary-10" },
    })
}

fn integrations() -> [Value; 4] {
    [("email", "mail"), ("sms", "text"), ("chat", "slack"), ("push", "fcm")].map(
        |(channel, name)| {
            let fields = json!({
                "credentials": credentials(),
                "configurations": {
                    "inboundWebhookEnabled": true, "inboundWebhookSigningKey": "canary-11",
                },
            });
            with(active_integration(channel, name), fields)
        },
    )
}

fn subscriber(id: &str) -> Value {
    json!({
        "subscriberId": id, "email": format!("{id}@example.org"), "phone": "+1",
        "channels": [{
            "providerId": "slack", "_integrationId": "$slack",
            "credentials": { "webhookUrl": "https://canary.example/12" },
        }],
    })
}

fn steps() -> [Value; 5] {
    let step = |kind: &str, template: Value| json!({ "type": kind, "template": template });
    [
        step("in_app", json!({ "body": "Hello" })),
        step("email", json!({ "subject": "Hello", "body": "Hello" })),
        step("sms", json!({ "body": "Hello" })),
        step("chat", json!({ "body": "Hello" })),
        step("push", json!({ "title": "Hello", "body": "Hello" })),
    ]
}

/// Requests that put a canary into every secret field, some of them under idempotency keys.
fn filling() -> Vec<Value> {
    let mut all = Vec::new();
    for integration in integrations() {
        let name = integration["identifier"].clone();
        all.push(json!(["idempotent", name, "integrations.create", integration]));
        all.push(json!(["idempotent", name, "integrations.create", integration]));
    }
    let auth = json!({ "accessToken": "canary-13" });
    let connection = json!({
        "identifier": "conn", "integrationIdentifier": "slack", "subscriberId": "ada",
        "workspace": { "id": "w" }, "auth": auth,
    });
    let endpoint = json!({
        "identifier": "end", "integrationIdentifier": "slack", "subscriberId": "ada",
        "type": "webhook", "endpoint": { "url": "https://canary.example/14" },
    });
    all.extend([
        json!(["subscribers.create", subscriber("ada")]),
        json!(["idempotent", "eve", "subscribers.create", subscriber("eve")]),
        json!(["subscribers.update", "ada", { "firstName": "Ada",
            "channels": subscriber("ada")["channels"] }]),
        json!(["channel_connections.create", connection]),
        json!(["channel_connections.update", "conn", { "workspace": { "id": "v" }, "auth": auth }]),
        json!(["channel_endpoints.create", endpoint]),
        json!(["channel_endpoints.update", "end",
            { "endpoint": { "url": "https://canary.example/15" } }]),
        json!(["workflows.create", workflow_of("all", &steps())]),
        json!(["events.trigger", { "name": "all", "to": ["ada", subscriber("bob")] }]),
    ]);
    all
}

/// Requests that show everything that the filling ones have left.
fn reading() -> Vec<Value> {
    vec![
        json!(["integrations.list"]),
        json!(["integrations.list_active"]),
        json!(["subscribers.get", "ada"]),
        json!(["subscribers.list", {}]),
        json!(["channel_connections.list", {}]),
        json!(["channel_connections.get", "conn"]),
        json!(["channel_endpoints.list", {}]),
        json!(["channel_endpoints.get", "end"]),
        json!(["environments.list"]),
        json!(["keys.list"]),
        json!(["notifications.list", {}]),
        json!(["messages.list", "ada", {}]),
        json!(["dead_letters.list", {}]),
        json!(["workflows.list", {}]),
        json!(["quarantine.list", 8]),
    ]
}

/// Makes a request, in which `$slack` and `$fcm` are the ids of these integrations.
fn call(shown: &Shown, engine: &Engine, env: &Scope, request: &Value) -> Option<Value> {
    let mut text = request.to_string();
    for found in env.integrations().list().unwrap_or_default() {
        text = text.replace(&format!("${}", found.identifier), &found.id.to_string());
    }
    match requests::call(engine, env, &serde_json::from_str(&text).unwrap()) {
        Ok(answer) => {
            shown.0.lock().unwrap().push(answer.text());
            Some(answer.json())
        }
        Err(refusal) => {
            shown.refusal(&refusal);
            None
        }
    }
}

/// A world with canaries, whose events and deliveries are shown.
fn world(shown: &Shown) -> World {
    let events = shown.clone();
    let world = World::with(testkit::interposed::Interposed::default(), |builder| {
        let provider = Printing { shown: shown.clone(), calls: Mutex::default() };
        let builder = builder.default_provider(provider);
        builder.observer(move |event: &Event| events.add(event))
    });
    for request in filling() {
        let done = call(shown, &world.engine, &world.env, &request);
        assert!(done.is_some(), "{request}: {:?}", shown.0.lock().unwrap().last());
    }
    world
}

#[test]
fn nothing_that_is_printed_holds_a_secret() {
    let shown = Shown::default();
    let world = world(&shown);
    let trigger = parsed(json!({ "name": "all", "to": ["ada", "cyd"] }));
    shown.add(&trigger);
    let explanation = world.env.events().explain(&trigger, world.now()).unwrap();
    shown.add((&explanation, explanation.to_string()));
    for _ in 0..12 {
        shown.add(world.engine.delivery().run_due(100).unwrap());
        world.clock.advance(std::time::Duration::from_secs(3_600));
    }
    shown.add((&world.engine, &world.env, world.engine.delivery().stats().unwrap()));
    shown.add(world.env.integrations().health().unwrap());
    shown.add(world.engine.check().unwrap());
    // The key that opens the environment, in right and wrong headers.
    let environment = world.organization.environments().development().unwrap();
    let key = environment.api_keys[0].key.expose().to_owned();
    let created = world.env.api_keys().create(&parsed(json!({ "name": "Orders" }))).unwrap();
    for header in [format!("ApiKey {key}!"), format!("Bearer {key}"), key.clone()] {
        shown.add(world.engine.authenticate(&header));
    }
    shown.add((&environment, &created, world.engine.authenticate(&format!("ApiKey {key}"))));
    // The activity list is for everybody who may see it, as JSON too.
    for request in reading() {
        let json = call(&shown, &world.engine, &world.env, &request).unwrap();
        if ["notifications.list", "dead_letters.list", "keys.list"]
            .contains(&request[0].as_str().unwrap())
        {
            shown.add(json.to_string());
        }
    }
    for request in sound() {
        call(&shown, &world.engine, &world.env, request);
    }
    shown.check(300);
    shown.lacks(&[key, created.key.expose().to_owned()]);
}

/// A key that is wrong, and one that is lost, in what is said about them.
#[test]
fn an_error_about_a_master_key_does_not_show_it() {
    let shown = Shown::default();
    let sealing = |last: u8| {
        let mut bytes = *b"canary-canary-canary-canary-key-";
        bytes[31] = last;
        SealingKey::from_bytes(bytes)
    };
    let key = |last: u8| Keyring::new(7, sealing(last));
    shown.add((sealing(1), key(1), SealingKey::from_base64("canary-23")));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.redb");
    let open = |builder: Builder| {
        builder.open(&path).and_then(|engine| {
            shown.add(&engine);
            let env = engine.organization("acme")?.development()?;
            env.subscribers().upsert(&SubscriberCreate::new("ada")?)?;
            engine.check()
        })
    };
    shown.add(open(Engine::builder().sealing(key(1))).unwrap());
    for builder in [Engine::builder(), Engine::builder().sealing(key(2))] {
        let refused = open(builder).expect_err("another key opens the file");
        shown.refusal(&Refusal::By(refused));
    }
    shown.check(6);
}

/// The requests, as an engine prints those that it cannot read.
#[test]
fn a_request_that_is_refused_shows_nothing_of_its_secrets() {
    let shown = Shown::default();
    let world = seeded::copy();
    for request in filling() {
        let mut paths = Vec::new();
        leaves(&request, &mut Vec::new(), &mut paths);
        for path in paths {
            // A secret in the place of something else, and something else around it.
            for wrong in
                [json!("canary-16"), json!({ "canary-17": "canary-18" }), json!(["canary-19"])]
            {
                let mut request = request.clone();
                *request.pointer_mut(&path).unwrap() = wrong;
                if let Err(refusal) = requests::call(&world.engine, &world.env, &request) {
                    shown.refused_value(&refusal);
                }
            }
        }
    }
    shown.check(100);
}

impl Shown {
    // Names of fields and ids of entities are told on purpose.
    fn refused_value(&self, refusal: &Refusal) {
        if let Refusal::By(tidings::Error::NotFound { .. } | tidings::Error::Conflict { .. }) =
            refusal
        {
            return;
        }
        let text = format!("{refusal:?}").replace("canary-17", "");
        self.0.lock().unwrap().push(text);
    }
}

// The way to each secret.
fn leaves(json: &Value, path: &mut Vec<String>, found: &mut Vec<String>) {
    match json {
        Value::String(text) if text.contains(CANARY) => {
            found.push(format!("/{}", path.join("/")));
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                path.push(at.to_string());
                leaves(item, path, found);
                path.pop();
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                path.push(name.clone());
                leaves(field, path, found);
                path.pop();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
