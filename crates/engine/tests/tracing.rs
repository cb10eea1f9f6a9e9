//! Spans of operations, tasks and calls of providers, as a subscriber of the host sees them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex};

use serde_json::json;
use tidings::credentials::Credentials;
use tidings::integration::IntegrationCreate;
use tidings::message::MessageQuery;
use tidings::notification::NotificationQuery;

use tidings::preference::PreferencesQuery;
use tidings::step::Step;
use tidings::store::memory::MemoryStore;
use tidings::subscriber::SubscriberCreate;
use tidings::trigger::Trigger;
use tidings::vocabulary::Channel;
use tidings::workflow::{WorkflowCreate, WorkflowQuery};
use tidings::{Engine, RecordingProvider, Scope, SendError};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

type Fields = BTreeMap<&'static str, String>;

/// Keeps the fields of every span of the library. `within` is the name of the span around it.
#[derive(Clone, Debug, Default)]
struct Spans {
    all: Arc<Mutex<Vec<(&'static str, Fields)>>>,
    entered: Arc<Mutex<Vec<usize>>>,
}

struct Reader<'f>(&'f mut Fields);

impl Visit for Reader<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.into());
    }
}

impl Subscriber for Spans {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("tidings")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields::new();
        span.record(&mut Reader(&mut fields));
        let mut spans = self.all.lock().unwrap();
        if let Some(around) = self.entered.lock().unwrap().last() {
            fields.insert("within", spans.get(*around).unwrap().0.into());
        }
        spans.push((span.metadata().name(), fields));
        Id::from_u64(spans.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut spans = self.all.lock().unwrap();
        values.record(&mut Reader(&mut spans.get_mut(number(span)).unwrap().1));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, span: &Id) {
        self.entered.lock().unwrap().push(number(span));
    }

    fn exit(&self, _: &Id) {
        self.entered.lock().unwrap().pop();
    }
}

fn number(span: &Id) -> usize {
    usize::try_from(span.into_u64()).unwrap() - 1
}

impl Spans {
    /// The values of these fields of the spans with that name, in the order of the spans.
    fn of(&self, name: &str, fields: &[&str]) -> Vec<String> {
        let spans = self.all.lock().unwrap();
        let of_name = spans.iter().filter(|span| span.0 == name);
        let shown = of_name.map(|(_, of_span)| {
            let values = fields.iter().map(|field| of_span.get(field).map_or("-", String::as_str));
            values.collect::<Vec<_>>().join(" ")
        });
        shown.collect()
    }
}

/// Does something of each kind: operations that are accepted and refused, and tasks whose provider
/// accepts and refuses. Everything that is private has `secret` in it.
fn work() -> Result<(), Box<dyn std::error::Error>> {
    let recorder = RecordingProvider::default();
    let builder = Engine::builder().default_provider(recorder.clone());
    let engine = builder.build(MemoryStore::default());
    let env = engine.organization("acme")?.development()?;
    let account = Credentials::default().password("secret").api_key("secret");
    let ses = IntegrationCreate::new("ses", Channel::Email)?.credentials(account);
    env.integrations().create(&ses)?;
    let mail = Step::email("secret {{ payload.text }}", "<p>secret</p>")?;
    env.workflows().create(&WorkflowCreate::new("mail", "Mail")?.step(mail))?;
    env.workflows().get("secret").unwrap_err();
    let ada = SubscriberCreate::new("ada")?.email("secret@example.org")?;
    let event = Trigger::new("mail", ada)?.payload(json!({ "text": "secret" }))?;
    env.events().trigger(&event)?;
    engine.delivery().run_due(10)?;
    recorder.refuse_next(SendError::permanent("secret@example.org is unknown"));
    env.events().trigger(&event)?;
    engine.delivery().run_due(10)?;
    env.workflows().delete("secret").unwrap_err();
    Ok(())
}

#[test]
fn operations_tasks_and_calls_of_providers_have_spans() {
    let spans = Spans::default();
    tracing::subscriber::with_default(spans.clone(), || work().unwrap());

    let operations = [
        "organization.development ok -",
        "integrations.create ok -",
        "workflows.create ok -",
        "workflows.get not_found -",
        "events.trigger ok -",
        "delivery.run_due ok -",
        "events.trigger ok -",
        "delivery.run_due ok -",
        "workflows.delete not_found -",
    ];
    assert_eq!(spans.of("operation", &["name", "outcome", "within"]), operations);
    let tasks = spans.of("task", &["kind", "attempt", "outcome", "within"]);
    assert_eq!(tasks, ["send 1 asked operation"; 2]);
    let calls = spans.of("provider_call", &["provider", "outcome", "within"]);
    assert_eq!(calls, ["ses sent task", "ses permanent task"]);
}

#[test]
fn a_span_has_no_content_no_address_and_no_text_of_an_error() {
    let spans = Spans::default();
    tracing::subscriber::with_default(spans.clone(), || work().unwrap());

    let mut fields = BTreeMap::<_, Vec<_>>::new();
    for (name, of_span) in &*spans.all.lock().unwrap() {
        assert!(!format!("{of_span:?}").contains("secret"), "{of_span:?}");
        fields.entry(*name).or_default().extend(of_span.keys().copied());
    }
    for (name, expected) in [
        ("operation", &["environment", "name", "outcome", "within"][..]),
        ("task", &["attempt", "environment", "kind", "outcome", "within", "workflow"]),
        ("provider_call", &["duration_ms", "integration", "outcome", "provider", "within"]),
    ] {
        let found: BTreeSet<_> = fields.remove(name).unwrap().into_iter().collect();
        assert!(found.iter().all(|field| expected.contains(field)), "{name}: {found:?}");
        let missing = expected.iter().filter(|field| !found.contains(*field));
        assert!(missing.eq(["within"].iter().filter(|_| name == "operation")), "{name}: {found:?}");
    }
    assert!(fields.is_empty(), "{fields:?}");
}

/// One row per kind of reading operation: its span, and a call.
#[test]
fn an_operation_that_reads_has_one_span_with_its_name() {
    type Read = fn(&Scope) -> tidings::Result<()>;
    const READS: &[(&str, Read)] = &[
        ("channel_connections.get not_found", |env| {
            env.channel_connections().get("none").map(drop)
        }),
        ("channel_endpoints.find ok", |env| env.channel_endpoints().find("none").map(drop)),
        ("contexts.get not_found", |env| env.contexts().get("tenant:none").map(drop)),
        ("environments.list ok", |env| env.environments().list().map(drop)),
        ("environments.get ok", |env| env.environments().get(env.environment_id()).map(drop)),
        ("events.progress not_found", |env| env.events().progress("none").map(drop)),
        ("inbox.counts not_found", |env| env.inbox("none")?.counts().map(drop)),
        ("integrations.list ok", |env| env.integrations().list().map(drop)),
        ("layouts.find ok", |env| env.layouts().find("none").map(drop)),
        ("messages.list not_found", |env| {
            env.messages().list("none", &MessageQuery::default()).map(drop)
        }),
        ("notifications.count ok", |env| {
            env.notifications().count(&NotificationQuery::default()).map(drop)
        }),
        ("notifications.check_index ok", |env| env.notifications().check_index().map(drop)),
        ("preferences.get not_found", |env| {
            env.preferences("none")?.get(&PreferencesQuery::default()).map(drop)
        }),
        ("subscribers.get not_found", |env| env.subscribers().get("none").map(drop)),
        ("subscribers.find ok", |env| env.subscribers().find("none").map(drop)),
        ("topics.find_subscription ok", |env| {
            env.topics().find_subscription("none", "none").map(drop)
        }),
        ("workflows.list ok", |env| env.workflows().list(&WorkflowQuery::default()).map(drop)),
    ];
    let engine = Engine::in_memory();
    let env = engine.organization("acme").unwrap().development().unwrap();
    for (expected, read) in READS {
        let spans = Spans::default();
        tracing::subscriber::with_default(spans.clone(), || read(&env).ok());
        assert_eq!(spans.of("operation", &["name", "outcome"]), [*expected]);
        let environment = env.environment_id().to_string();
        assert_eq!(spans.of("operation", &["environment"]), [environment]);
    }
}
