//! The span of an operation has the name of its method, as `workflows.get` has it.
//!
//! Methods are those of the listing of the public API. A method that calls `progress` between its
//! transactions is the same operation, under the name without `_with`.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use testkit::requests::{self, sound};
use testkit::seeded;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::listed;

const LISTING: &str = include_str!("../golden/public-api.txt");

/// The types with operations, and the group of each.
const GROUPS: &[(&str, &str)] = &[
    ("ApiKeys", "api_keys"),
    ("ChannelConnections", "channel_connections"),
    ("ChannelEndpoints", "channel_endpoints"),
    ("Contexts", "contexts"),
    ("DeadLetters", "dead_letters"),
    ("DeliveryQueue", "delivery"),
    ("Engine", "engine"),
    ("Environments", "environments"),
    ("Events", "events"),
    ("Inbox", "inbox"),
    ("Integrations", "integrations"),
    ("Layouts", "layouts"),
    ("Messages", "messages"),
    ("Notifications", "notifications"),
    ("Organization", "organization"),
    ("Quarantine", "quarantine"),
    ("Scope", "scope"),
    ("SubscriberPreferences", "preferences"),
    ("Subscribers", "subscribers"),
    ("Suppressions", "suppressions"),
    ("Topics", "topics"),
    ("Translations", "translations"),
    ("Workflows", "workflows"),
];

/// Methods that return a result without an operation: they open, or check a name.
const WITHOUT: &[&str] = &[
    "engine.in_memory",
    "engine.open",
    "engine.open_existing",
    "engine.organization",
    "inbox.wait",
    "scope.idempotent",
    "scope.inbox",
    "scope.preferences",
];

/// Methods that the listing leaves out. Those of an organization do the same.
const HIDDEN: &[&str] = &["environments.development", "environments.production"];

/// Names of the spans that are in no other.
#[derive(Clone, Debug, Default)]
struct Outermost(Arc<Mutex<(Vec<String>, usize)>>);

struct Name(Option<String>);

impl Visit for Name {
    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "name" {
            self.0 = Some(value.into());
        }
    }
}

impl Subscriber for Outermost {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "tidings" && metadata.name() == "operation"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut name = Name(None);
        span.record(&mut name);
        let mut spans = self.0.lock().unwrap();
        if spans.1 == 0 {
            spans.0.push(name.0.unwrap());
        }
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &Id) {
        self.0.lock().unwrap().1 += 1;
    }

    fn exit(&self, _: &Id) {
        self.0.lock().unwrap().1 -= 1;
    }
}

/// The methods of the listing that return a result.
fn methods() -> BTreeSet<String> {
    let lines = LISTING.lines().filter_map(|line| line.strip_prefix("pub fn tidings::"));
    let methods = lines.filter_map(|line| {
        let (path, rest) = line.split_once('(')?;
        let (of, method) = path.rsplit_once("::")?;
        let of = of.split('<').next()?;
        let (_, group) = GROUPS.iter().find(|(name, _)| *name == of)?;
        let method = method.split('<').next()?;
        let method = method.strip_suffix("_with").unwrap_or(method);
        rest.contains("-> tidings::error::Result<").then(|| format!("{group}.{method}"))
    });
    let methods = methods.filter(|method| !WITHOUT.contains(&&**method));
    methods.chain(HIDDEN.iter().map(|method| (*method).to_owned())).collect()
}

#[test]
fn a_request_has_one_span_with_the_name_of_its_method() {
    let methods = methods();
    let mut wrong = Vec::new();
    let all = json!(["suppressions.clear", null]);
    for request in sound().iter().chain([&all]) {
        let mut expected = listed::methods(request);
        if expected.len() > 1 {
            expected.remove(usize::from(request[1] != Value::Null));
            expected.reverse();
        }
        let expected = expected.pop().unwrap();
        assert!(methods.contains(&expected), "the listing has no `{expected}`");
        // The first call of a method registers its span. If another thread does so just when a subscriber comes,
        // the span may not be told to it.
        let copy = seeded::copy();
        _ = requests::call(&copy.engine, &copy.env, request);
        let copy = seeded::copy();
        let spans = Outermost::default();
        tracing::subscriber::with_default(spans.clone(), || {
            _ = requests::call(&copy.engine, &copy.env, request);
        });
        let mut named = spans.0.lock().unwrap().0.clone();
        // A request that names a record by its place looks it up before.
        let named = named.pop();
        if named.as_ref() != Some(&expected) {
            wrong.push(format!("{request}: {named:?} instead of {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_method_of_the_listing_has_a_span_and_each_span_is_that_of_a_method() {
    let (methods, spans) = (methods(), listed::all());
    assert!(methods.len() > 120, "only {} methods are found", methods.len());
    let others = |one: &BTreeSet<String>, other: &BTreeSet<String>| -> Vec<String> {
        one.difference(other).cloned().collect()
    };
    assert_eq!(others(&spans, &methods), [""; 0], "spans of no method");
    assert_eq!(others(&methods, &spans), [""; 0], "methods without a span");
}
