//! Spans and events for the crate `tracing`.

use std::env;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use serde_json::{Value, json};
use testkit::child;
use testkit::requests::sound;
use testkit::seeded;
use testkit::wait_until;
use tidings::store::memory::MemoryStore;
use tidings::{Delivery, Engine, Provider, ProviderReceipt, SendError};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::{Shown, call, filling, reading};

/// Tells the child that it is one.
const CHILD: &str = "TIDINGS_LAWS_TRACED";

/// A subscriber for all threads of a process, which has all spans and events of every level.
#[derive(Clone, Debug, Default)]
struct Recorder {
    shown: Shown,
    spans: std::sync::Arc<AtomicU64>,
}

impl Recorder {
    fn add(&self, metadata: &Metadata<'_>, record: impl FnOnce(&mut Fields)) {
        let mut fields = Fields::default();
        record(&mut fields);
        self.shown.add((metadata, fields.0));
    }
}

#[derive(Debug, Default)]
struct Fields(Vec<String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.push(format!("{field}={value:?}"));
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.add(span.metadata(), |fields| span.record(fields));
        Id::from_u64(1 + self.spans.fetch_add(1, Relaxed))
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        let mut fields = Fields::default();
        values.record(&mut fields);
        self.shown.add(fields);
    }

    fn event(&self, event: &Event<'_>) {
        self.add(event.metadata(), |fields| event.record(fields));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// A provider whose errors have a canary, as those of a service that repeats what it gets.
#[derive(Clone, Debug, Default)]
struct Repeating(std::sync::Arc<AtomicUsize>);

impl Provider for Repeating {
    fn send(&self, _: &Delivery) -> Result<ProviderReceipt, SendError> {
        match self.0.fetch_add(1, Relaxed) % 6 {
            0 => Err(SendError::permanent("canary-50")),
            1 => Err(SendError::retryable("canary-51")),
            2 => Err(SendError::misconfigured("canary-52")),
            3 => Err(SendError::unknown("canary-53")),
            4 => Err(SendError::recipient_gone("canary-54")),
            _ => Ok(ProviderReceipt::default()),
        }
    }
}

/// A subscriber is one of a whole process.
#[test]
fn no_span_and_no_event_holds_a_secret() {
    child::passed(child::command("secrets::traced::child").env(CHILD, "yes"));
}

/// Not a test, but what the other process does.
#[test]
#[ignore = "the other process of a test"]
fn child() {
    if env::var(CHILD).is_err() {
        return;
    }
    let recorder = Recorder::default();
    tracing::subscriber::set_global_default(recorder.clone()).unwrap();
    let mut secrets = Vec::new();
    let answers = Shown::default();

    let world = seeded::copy();
    for request in sound() {
        let answer = call(&answers, &world.engine, &world.env, request);
        collect(&answer.unwrap_or_default(), &mut secrets);
    }
    assert!(secrets.len() > 3, "{secrets:?}");

    let provider = Repeating::default();
    let builder = Engine::builder().default_provider(provider.clone());
    let engine = builder.build(MemoryStore::default());
    let env = engine.organization("acme").unwrap().development().unwrap();
    for request in filling().iter().chain(&reading()) {
        let answer = call(&answers, &engine, &env, request);
        assert!(answer.is_some(), "{request}: {:?}", answers.0.lock().unwrap().last());
    }
    // A refusal of the provider may remove an endpoint, which is read above.
    let worker = engine.worker().threads(2).start().unwrap();
    for number in 0..4 {
        let event =
            json!({ "name": "all", "to": ["ada", "eve"], "transactionId": format!("{number}") });
        call(&answers, &engine, &env, &json!(["events.trigger", event])).unwrap();
    }
    wait_until(|| provider.0.load(Relaxed) >= 12);
    let _ = worker.stop(Duration::from_secs(60));
    for header in ["ApiKey canary-55", "Bearer canary-56", "canary-57"] {
        engine.authenticate(header).unwrap_err();
        env.unsubscribe(header).unwrap_err();
        env.read_unsubscribe(header).unwrap_err();
    }
    recorder.shown.lacks(&secrets);
    recorder.shown.check(1_000);
    let texts = recorder.shown.0.lock().unwrap();
    for span in ["operation", "task", "provider_call"] {
        assert!(texts.iter().any(|text| text.contains(span)), "there is no {span}");
    }
}

// What an answer shows on purpose: keys, tokens and the links with them.
fn collect(answer: &Value, secrets: &mut Vec<String>) {
    match answer {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if name == "key" && text.len() > 20 => {
                        secrets.push(text.clone());
                    }
                    _ => collect(value, secrets),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, secrets)),
        Value::String(text) => {
            secrets.extend(text.split_once("token=").map(|(_, it)| it.to_owned()));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
