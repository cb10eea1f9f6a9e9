//! Values that are nested 200,000 levels deep, in every function that takes a value built in code.
//!
//! A stack overflow ends the process, so each case has one of its own, and a thread with a small
//! stack in it.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use testkit::child;
use tidings::condition::{Expression, Rule, var};
use tidings::content::ButtonType;
use tidings::context::{ContextCreate, ContextUpdate, RichContext};
use tidings::credentials::{Credentials, TlsOptions};
use tidings::endpoint::ChannelEndpointUpdate;
use tidings::filter::{Filter, FilterChild, FilterField, FilterOperator, Joint};
use tidings::integration::IntegrationCreate;
use tidings::json::{Object, read_value};
use tidings::message::{CompleteAction, MessageQuery};
use tidings::preference::{
    GlobalPreferenceUpdate, Preference, PreferenceCase, WorkflowPreferenceUpdate,
};
use tidings::preview::Preview;
use tidings::step::Step;
use tidings::subscriber::{SubscriberCreate, SubscriberUpdate};
use tidings::subscription::WorkflowSetting;
use tidings::template::{Format, Template, Variables};
use tidings::translation::{MasterJson, Resource, TranslationImport, TranslationUpsert};
use tidings::trigger::{Broadcast, Trigger};
use tidings::vocabulary::Channel;
use tidings::workflow::{WorkflowCreate, WorkflowSync, WorkflowUpdate};
use tidings::{Engine, error::Invalid};

type Compose = fn(Expression, Value) -> Expression;

const LEVELS: usize = 200_000;
const STACK: usize = 1024 * 1024;

/// A name, the functions that are called, as in the listing of the public API, and the calls.
type Case = (&'static str, &'static str, fn());

/// Each function refuses the value, and neither it nor what becomes of the value afterwards takes
/// more than a small stack.
const CASES: &[Case] = &[
    ("objects", "Object::try_from", || {
        assert!(Object::try_from(list()).is_err());
        too_deep("object", Object::try_from(object()));
        let map = Map::from_iter([("in".to_owned(), list())]);
        too_deep("object", Object::try_from(map));
        too_deep("payload", trigger().payload_of(Nested(LEVELS)));
    }),
    ("requests", "json::read_value", || {
        let mut deep = json!({ "name": "w", "to": "ada" });
        deep["payload"] = object();
        // As deep as a text may be, which is deeper than an object.
        let refused = read_value::<Trigger>(&deep).unwrap_err();
        assert_eq!(refused.to_string(), "`body` must be nested at most 128 levels deep");
        release(deep);
    }),
    ("values of a payload", "MessageQuery::data", || {
        for value in [list(), object()] {
            let refused = MessageQuery::default().data("order.status", [value]).unwrap_err();
            assert!(refused.to_string().starts_with("`data.order.status`"), "{refused}");
        }
    }),
    (
        "payloads",
        "Trigger::payload Trigger::overrides Broadcast::payload Broadcast::overrides \
         Preview::payload CompleteAction::payload",
        || {
            too_deep("payload", trigger().payload(object()));
            too_deep("overrides", trigger().overrides(object()));
            too_deep("payload", Broadcast::new("w").unwrap().payload(object()));
            too_deep("overrides", Broadcast::new("w").unwrap().overrides(object()));
            too_deep("payload", Preview::new("s", "ada").unwrap().payload(object()));
            too_deep("payload", CompleteAction::new(ButtonType::Primary).payload(object()));
        },
    ),
    (
        "custom data",
        "SubscriberCreate::data SubscriberUpdate::data ContextCreate::data \
         ContextUpdate::new RichContext::data WorkflowCreate::data WorkflowUpdate::data \
         ChannelEndpointUpdate::new Credentials::tls_options TlsOptions::try_from",
        || {
            too_deep("data", SubscriberCreate::new("ada").unwrap().data(object()));
            too_deep("data", SubscriberUpdate::default().data(object()));
            too_deep("data", ContextCreate::new("tenant", "acme").unwrap().data(object()));
            too_deep("data", ContextUpdate::new(object()));
            too_deep("data", RichContext::new("acme").data(object()));
            too_deep("data", workflow().data(object()));
            too_deep("data", WorkflowUpdate::default().data(object()));
            too_deep("endpoint", ChannelEndpointUpdate::new(object()));
            too_deep("tlsOptions", Credentials::default().tls_options(object()));
            too_deep("object", TlsOptions::try_from(object()));
        },
    ),
    ("payload schemas", "WorkflowCreate::payload_schema WorkflowUpdate::payload_schema", || {
        too_deep("payloadSchema", workflow().payload_schema(object()));
        too_deep("payloadSchema", WorkflowUpdate::default().payload_schema(object()));
    }),
    (
        "preference cases",
        "PreferenceCase::payload PreferenceCase::subscriber PreferenceCase::actor PreferenceCase::context",
        || {
            let case = PreferenceCase::new(&workflow()).unwrap();
            too_deep("payload", case.clone().payload(object()));
            too_deep("subscriber", case.clone().subscriber(object()));
            too_deep("actor", case.clone().actor(object()));
            too_deep("context", case.context("tenant", "acme", object()));
        },
    ),
    (
        "rules",
        "Rule::new Rule::try_from Step::run_if Preference::condition WorkflowPreferenceUpdate::condition \
         GlobalPreferenceUpdate::condition WorkflowSetting::condition",
        || {
            too_deep("condition", Rule::new(object()));
            too_deep("condition", Rule::new(list()));
            too_deep("condition", Rule::try_from(object()));
            too_deep("runIf", Step::in_app("Hello").unwrap().run_if(object()));
            too_deep("condition", Preference::default().condition(object()));
            too_deep("condition", WorkflowPreferenceUpdate::new("w").condition(object()));
            too_deep("condition", GlobalPreferenceUpdate::default().condition(object()));
            too_deep("condition", WorkflowSetting::new("w").condition(object()));
        },
    ),
    (
        "expressions of deep literals",
        "Expression::from Expression::equals Expression::differs_from Expression::and \
         Expression::or Expression::at_least Expression::at_most Expression::greater_than \
         Expression::less_than Expression::contains Expression::is_in",
        || {
            let deep = var("x").equals(list());
            looked_at(&deep);
            too_deep("condition", Rule::try_from(deep.clone().and(object())));
            let all: [Compose; 9] = [
                |left, right| left.differs_from(right),
                |left, right| left.or(right),
                |left, right| left.at_least(right),
                |left, right| left.at_most(right),
                |left, right| left.greater_than(right),
                |left, right| left.less_than(right),
                |left, right| left.contains(right),
                |left, right| left.is_in([right]),
                |left, right| Expression::from(right).and(left),
            ];
            for compose in all {
                let composed = compose(var("x"), list());
                looked_at(&composed);
                too_deep("condition", Rule::try_from(composed));
            }
            too_deep("condition", Rule::try_from(deep));
        },
    ),
    ("deep expressions", "Rule::try_from", || {
        let deep = (0..LEVELS).fold(var("x"), |inner, _| inner.negated());
        looked_at(&deep);
        too_deep("condition", Rule::try_from(deep));
        let deep = (0..LEVELS).fold(var("x"), |inner, _| Expression::from(1).equals(inner));
        drop(deep);
    }),
    ("data of rules", "Rule::evaluate Rule::holds Rule::is_truthy", || {
        let data = json!({ "in": true });
        let (mut data, deep) = (data, object());
        data["deep"] = deep;
        for rule in [
            json!({ "===": [{ "var": "deep" }, { "var": "deep" }] }),
            json!({ "==": [{ "var": "deep" }, { "var": "deep" }] }),
            json!({ "==": [{ "var": "deep" }, "text"] }),
            json!({ "in": [{ "var": "deep" }, [{ "var": "deep" }]] }),
            json!({ "cat": [{ "var": "deep" }] }),
            json!({ "merge": [{ "var": "deep" }] }),
            json!({ "+": [{ "var": "deep" }] }),
            json!({ "map": [[1, 2], { "var": "deep" }] }),
            json!({ "var": "" }),
            json!({ "reduce": [[1, 2], { "var": "current" }, { "var": "deep" }] }),
        ] {
            let rule = Rule::new(rule).unwrap();
            rule.holds(&data);
            rule.is_truthy(&data);
            drop(rule.evaluate(&data));
        }
        release(data);
    }),
    ("filters", "", || {
        let deep = deep_filter(LEVELS);
        looked_at(&deep);
        assert!(serde_json::to_value(&deep).is_err());
        let step = Step::in_app("Hello").unwrap().only_if(deep.clone());
        looked_at(&step);
        let workflow = workflow().step(step);
        looked_at(&workflow);
        let engine = Engine::in_memory();
        let env = engine.organization("shop").unwrap().development().unwrap();
        let refusal = "`steps[0].filters` must be nested at most 16 levels deep";
        for scope in [env.clone(), env.idempotent("key").unwrap()] {
            let refused = scope.workflows().create(&workflow).unwrap_err();
            assert_eq!(refused.to_string(), refusal);
            assert!(scope.workflows().upsert(&workflow).is_err());
            assert!(scope.workflows().sync(&WorkflowSync::new([workflow.clone()])).is_err());
        }
        let update = WorkflowUpdate::default().steps(workflow.steps.clone());
        looked_at(&update);
        assert!(env.workflows().update("w", &update).is_err());
        let account = IntegrationCreate::new("smtp", Channel::Email).unwrap();
        let account = account.only_if(deep.clone());
        looked_at(&account);
        let refused = env.integrations().create(&account).unwrap_err();
        assert!(
            refused.to_string().ends_with("must be nested at most 16 levels deep"),
            "{refused}"
        );
        assert!(env.integrations().upsert(&account).is_err());
        let joined = deep.clone().and(Filter::payload("a").equals(1)).or(deep).negated();
        drop(joined);
    }),
    (
        "comparisons of filters",
        "FilterField::equals FilterField::differs_from FilterField::greater_than \
         FilterField::less_than FilterField::at_least FilterField::at_most FilterField::between \
         FilterField::is_in FilterField::is_not_in FilterField::any_in FilterField::all_in \
         FilterField::compared",
        || {
            let engine = Engine::in_memory();
            let env = engine.organization("shop").unwrap().development().unwrap();
            let all: [fn(FilterField, Value) -> Filter; 12] = [
                |field, value| field.equals(value),
                |field, value| field.differs_from(value),
                |field, value| field.greater_than(value),
                |field, value| field.less_than(value),
                |field, value| field.at_least(value),
                |field, value| field.at_most(value),
                |field, value| field.between(1, value),
                |field, value| field.is_in([value]),
                |field, value| field.is_not_in([value]),
                |field, value| field.any_in([value]),
                |field, value| field.all_in([value]),
                |field, value| field.compared(FilterOperator::Equal, value),
            ];
            for compare in all {
                for deep in [list(), object(), nested_object(Object::MAX_DEPTH + 1)] {
                    let filter = compare(Filter::payload("a"), deep);
                    let step = Step::in_app("Hello").unwrap().only_if(filter);
                    let refused = env.workflows().create(&workflow().step(step)).unwrap_err();
                    let field = "`steps[0].filters[0].children[0].value` must be at most";
                    assert!(refused.to_string().starts_with(field), "{refused}");
                }
            }
        },
    ),
    (
        "translations",
        "TranslationUpsert::new TranslationImport::workflow TranslationImport::layout \
         ImportTexts::from",
        || {
            let upsert = TranslationUpsert::new(Resource::workflow("w"), "de", object());
            too_deep("content", upsert);
            let import = TranslationImport::new("de").unwrap();
            let import =
                import.workflow("w", object()).layout("l", list()).workflow("x", json!({}));
            looked_at(&import);
            let mut master = MasterJson::default();
            master.workflows.insert("w".into(), object().into());
            looked_at(&master);
            serde_json::to_value(&import).unwrap();
            let engine = Engine::in_memory();
            let env = engine.organization("shop").unwrap().development().unwrap();
            env.workflows().create(&workflow()).unwrap();
            for scope in [env.clone(), env.idempotent("key").unwrap()] {
                let result = scope.translations().import(&import).unwrap();
                assert_eq!(result.failed, ["w", "x", "l"]);
            }
        },
    ),
    ("variables of templates", "", || {
        let template = Template::new("{{ payload.in }}{{ payload }}").unwrap();
        let deep = json!({ "payload": null });
        let mut deep = deep;
        deep["payload"] = object();
        let variables = Variables::new(&deep);
        looked_at(&variables);
        assert_eq!(template.render(Format::Plain, &variables).unwrap(), "");
        release(deep);
    }),
    ("triggers through an engine", "", || {
        let engine = Engine::in_memory();
        let env = engine.organization("shop").unwrap().development().unwrap();
        let step = Step::in_app("{{ payload }}").unwrap();
        env.workflows().create(&WorkflowCreate::new("w", "W").unwrap().step(step)).unwrap();
        let levels = Object::MAX_DEPTH;
        let deepest = trigger().payload(nested_object(levels)).unwrap();
        looked_at(&deepest);
        env.events().trigger(&deepest).unwrap();
        too_deep("payload", trigger().payload(nested_object(levels + 1)));
        assert_eq!(env.events().trigger_bulk(&[deepest]).unwrap().len(), 1);
    }),
];

/// Functions that take a value of a bounded depth: it was refused where it was made.
const BOUNDED: [&str; 3] = ["Endpoint::new", "PreferenceCase::subscription_if", "TlsOptions::from"];

/// The listing has each function that takes a value, or what is made from one.
#[test]
fn every_function_that_takes_a_value_is_called() {
    const TYPES: [&str; 6] = [
        "serde_json::value::Value",
        "serde_json::map::Map",
        "tidings::json::Object",
        "tidings::credentials::TlsOptions",
        "tidings::condition::Expression",
        "tidings::condition::Rule",
    ];
    let takes = |given: &str| TYPES.iter().any(|of| given.contains(of));
    let last_of = |path: &str| path.rsplit("::").next().unwrap_or_default().to_owned();
    let mut found = BTreeSet::new();
    for line in include_str!("../golden/public-api.txt").lines() {
        if let Some((path, given)) = line.split_once(" fn ").and_then(|(_, it)| it.split_once('('))
            && takes(given.rsplit_once(" -> ").map_or(given, |(given, _)| given))
        {
            let (of, name) = without_generics(path).rsplit_once("::").unwrap_or_default();
            found.insert(format!("{}::{name}", last_of(of)));
        }
        for (which, name) in [("From<", "from"), ("TryFrom<", "try_from")] {
            let conversion = line.split_once(&format!("core::convert::{which}"));
            let Some((given, of)) = conversion.and_then(|(_, it)| it.split_once("> for ")) else {
                continue;
            };
            // The type itself converts without a change.
            if (takes(given) || line.contains("Into<serde_json::value::Value>"))
                && given.trim_start_matches('&') != of
            {
                found.insert(format!("{}::{name}", last_of(of)));
            }
        }
    }
    let called = CASES.iter().flat_map(|(_, functions, _)| functions.split_whitespace());
    let called: BTreeSet<_> = called.chain(BOUNDED).map(ToOwned::to_owned).collect();
    assert_eq!(found, called);
}

/// The path of a function without its own generic parameters.
fn without_generics(path: &str) -> &str {
    let mut depth = 0;
    let open = path.rmatch_indices(['<', '>']).find(|(_, bracket)| {
        depth += if *bracket == ">" { 1 } else { -1 };
        depth == 0
    });
    open.filter(|_| path.ends_with('>')).map_or(path, |(at, _)| &path[..at])
}

#[test]
fn no_depth_of_a_value_takes_the_stack() {
    let failed: Vec<_> = CASES.iter().filter_map(|(name, ..)| failure_of(name)).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

fn failure_of(name: &str) -> Option<String> {
    let run = child::run(child::command("deep::one_case").env("TIDINGS_DEEP", name));
    run.err().map(|failure| format!("{name}: {failure:.2000}"))
}

#[test]
#[ignore = "the other process of a test"]
fn one_case() {
    let Ok(name) = std::env::var("TIDINGS_DEEP") else { return };
    let (.., case) = CASES.iter().find(|(of, ..)| *of == name).unwrap();
    std::thread::Builder::new().stack_size(STACK).spawn(*case).unwrap().join().unwrap();
}

fn trigger() -> Trigger {
    Trigger::new("w", "ada").unwrap()
}

fn workflow() -> WorkflowCreate {
    WorkflowCreate::new("w", "W").unwrap()
}

fn list() -> Value {
    (0..LEVELS).fold(Value::Null, |inner, _| Value::Array(vec![inner]))
}

fn object() -> Value {
    nested_object(LEVELS)
}

fn nested_object(levels: usize) -> Value {
    (0..levels)
        .fold(Value::Null, |inner, _| Value::Object(Map::from_iter([("in".to_owned(), inner)])))
}

fn deep_filter(levels: usize) -> Filter {
    (0..levels).fold(Filter::payload("a").equals(1), |inner, _| {
        Filter::group(Joint::And, [FilterChild::Group(inner)])
    })
}

// A list in a list, as a host's own type may have it.
struct Nested(usize);

impl serde::Serialize for Nested {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = to.serialize_map(Some(1))?;
        if let Some(below) = self.0.checked_sub(1) {
            map.serialize_entry("in", &Nested(below))?;
        }
        map.end()
    }
}

#[track_caller]
fn too_deep<T>(field: &str, result: Result<T, Invalid>) {
    let refused = result.err().expect("a refusal");
    assert_eq!(refused.field, field);
    assert!(refused.to_string().ends_with("must be nested at most 64 levels deep"), "{refused}");
}

// Cloned, compared, printed and dropped.
fn looked_at<T: Clone + std::fmt::Debug>(value: &T) {
    let copy = value.clone();
    assert!(format!("{copy:?}").len() < 10_000);
}

// What the test itself owns is taken apart level by level.
fn release(value: Value) {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(map) => open.extend(map.into_iter().map(|(_, item)| item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}
