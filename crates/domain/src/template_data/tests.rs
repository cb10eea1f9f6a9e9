use serde_json::json;

use super::*;
use crate::condition::Rule;
use crate::filter::{self, Filter, FilterFacts};
use crate::sample;
use crate::step::StepOutput;
use crate::template::{Format, Template, Variables};

fn context(key: &str, data: Value) -> Context {
    let key = key.parse().unwrap();
    Context::new(sample::id(7), &sample::home(), key, sample::object(data), sample::at(0))
}

#[test]
fn there_are_a_subscriber_a_payload_contexts_and_a_workflow() {
    let subscriber = subscriber_data(&sample::subscriber(json!({ "firstName": "Ada" })));
    let payload = sample::object(json!({ "total": 42 }));
    let contexts =
        [context("tenant:acme", json!({ "plan": "pro" })), context("app:web", json!({}))];
    let workflow = sample::workflow(json!([]));

    let data = TemplateData::new(&subscriber, &payload, &contexts, &workflow).data();
    assert_eq!(data["subscriber"]["firstName"], "Ada");
    assert_eq!(data["subscriber"]["subscriberId"], "ada");
    let rest = json!({
        "subscriber": subscriber,
        "payload": { "total": 42 },
        "context": {
            "tenant": { "id": "acme", "data": { "plan": "pro" } },
            "app": { "id": "web", "data": {} },
        },
        "workflow": { "name": "Order shipped", "identifier": "order-shipped" },
    });
    assert_eq!(data, rest, "and nothing else");
}

#[test]
fn what_is_not_there_is_empty() {
    let subscriber = subscriber_data(&sample::subscriber(json!({})));
    let (payload, workflow) = (Object::default(), sample::workflow(json!([])));
    let data = TemplateData::new(&subscriber, &payload, &[], &workflow).data();
    assert_eq!((&data["payload"], &data["context"]), (&json!({}), &json!({})));
}

#[test]
fn the_settings_of_channels_are_not_known() {
    let subscriber = sample::subscriber(json!({ "lastName": "Lovelace", "channels": [{
        "providerId": "slack",
        "_integrationId": uuid::Uuid::nil(),
        "credentials": { "webhookUrl": "https://chat.example.com/s3cr3t" },
    }] }));
    let known = subscriber_data(&subscriber);
    assert!(!serde_json::to_string(&known).unwrap().contains("s3cr3t"));
    assert_eq!(known.get("lastName"), Some(&json!("Lovelace")));
    assert_eq!(known.get("channels"), None);
    let (payload, workflow) = (Object::default(), sample::workflow(json!([])));
    let data = TemplateData::new(&subscriber, &payload, &[], &workflow).data();
    assert_eq!(data, TemplateData::new(&known, &payload, &[], &workflow).data());
    assert_eq!(data["subscriber"], Value::from(known));
}

#[test]
fn objects_of_the_deepest_nesting_are_known_as_well() {
    let deepest = (1..Object::MAX_DEPTH).fold(json!("pro"), |inner, _| json!({ "in": inner }));
    let deepest = json!({ "plan": deepest });
    let subscriber = subscriber_data(&sample::subscriber(json!({ "data": deepest })));
    let (payload, workflow) = (sample::object(deepest.clone()), sample::workflow(json!([])));
    let contexts = [context("tenant:acme", deepest.clone())];
    let data = TemplateData::new(&subscriber, &payload, &contexts, &workflow).data();
    assert_eq!(data["subscriber"]["data"], deepest);
    assert_eq!(data["payload"], deepest);
    assert_eq!(data["context"]["tenant"]["data"], deepest);
}

#[test]
fn results_of_steps_events_and_the_actor_are_added() {
    let subscriber = subscriber_data(&sample::subscriber(json!({})));
    let actor = subscriber_data(&sample::subscriber(json!({ "firstName": "Bob" })));
    let payload = Object::default();
    let metadata = json!({ "handler": "charge" });
    let step = |name: &str| {
        let definition = json!({ "type": "custom", "name": name, "uuid": format!("{name}-1"), "metadata": metadata });
        let definition = serde_json::from_value(definition).unwrap();
        let id = sample::id(name.bytes().map(u128::from).sum());
        crate::step::WorkflowStep::new(id, sample::id(12), definition)
    };
    let event = |id: &str| crate::step::DigestEvent {
        id: id.parse().unwrap(),
        time: sample::at(5),
        payload: sample::object(json!({ "of": id })),
    };
    let (events, last) = ([event("a"), event("b")], event("z"));
    let digested = Digested::new(&events, Some(&last), 7);
    let mut results = StepResults::default();
    let value = json!({ "paid": true });
    results.insert(&step("mail"), "completed", StepOutput::Message { seen: true, read: false });
    results.insert(&step("charge"), "completed", StepOutput::Value(&value));
    results.insert(&step("collect"), "completed", StepOutput::Digest(digested));
    results.insert(&step("wait"), "skipped", StepOutput::Nothing);

    let workflow = sample::workflow(json!([]));
    let known = TemplateData::new(&subscriber, &payload, &[], &workflow);
    let known = known.with_actor(Some(&actor)).with_steps(&results).with_digest(digested);
    let data = known.data();
    let wire = |id: &str| {
        json!({
            "id": id, "time": "1970-01-01T00:00:00.005Z", "payload": { "of": id },
        })
    };
    assert_eq!(data["actor"]["firstName"], "Bob");
    assert_eq!(data["events"], json!([wire("a"), wire("b")]));
    assert_eq!((&data["first"], &data["last"]), (&wire("a"), &wire("z")));
    assert_eq!(data["total_count"], 7);
    for (name, result) in [
        ("mail", json!({ "status": "completed", "seen": true, "read": false })),
        ("charge-1", json!({ "status": "completed", "result": { "paid": true } })),
        (
            "collect",
            json!({ "status": "completed", "events": [wire("a"), wire("b")], "eventCount": 7 }),
        ),
        ("wait", json!({ "status": "skipped" })),
        (&step("wait").id.to_string(), json!({ "status": "skipped" })),
    ] {
        assert_eq!(data["steps"][name], result, "{name}");
    }

    // Templates, conditions and filters see the same.
    let known = TemplateData::new(&subscriber, &payload, &[], &workflow);
    let variables = Variables::new(known.with_steps(&results).with_digest(digested));
    let text = "{{ total_count }} {{ first.payload.of }}-{{ last.payload.of }} \
                {% for event in events %}{{ event.id }}{% endfor %} {{ steps.charge.result.paid }}";
    let text = Template::new(text).unwrap().render(Format::Plain, &variables).unwrap();
    assert_eq!(text, "7 a-z ab True");
    let rule = Rule::new(json!({ "and": [
        { "var": "steps.mail.seen" }, { ">": [{ "var": "total_count" }, 6] },
    ] }));
    assert!(rule.unwrap().is_truthy(&data));
    let facts = FilterFacts::new(&subscriber, &payload);
    for (filter, holds) in [
        (Filter::step("mail.seen").equals(true), true),
        (Filter::step("mail.read").equals(true), false),
        (Filter::step("collect.eventCount").greater_than(6), true),
        (Filter::step("collect.events.1.payload.of").equals("b"), true),
        (Filter::step("other.seen").equals(true), false),
    ] {
        let filters = [filter];
        assert_eq!(filter::evaluate(&filters, &facts.with_steps(&results)).holds, holds);
        assert!(!filter::evaluate(&filters, &facts).holds, "without steps");
    }
}

/// One row per rule: its value, and the events and results in its data.
#[test]
fn a_rule_has_the_data_that_it_names() {
    let subscriber = subscriber_data(&sample::subscriber(json!({ "firstName": "Ada" })));
    let (payload, workflow) = (sample::object(json!({ "n": 1 })), sample::workflow(json!([])));
    let step = |id: u128, name: &str| {
        let metadata = json!({ "type": "regular", "amount": 1, "unit": "days" });
        let definition = json!({ "type": "digest", "name": name, "metadata": metadata });
        let definition = serde_json::from_value(definition).unwrap();
        crate::step::WorkflowStep::new(sample::id(id), sample::id(12), definition)
    };
    let event = |id: &str| crate::step::DigestEvent {
        id: id.parse().unwrap(),
        time: sample::at(5),
        payload: sample::object(json!({ "of": id })),
    };
    let events = [event("a"), event("b")];
    let digested = Digested::new(&events, None, 7);
    let mut results = StepResults::default();
    results.insert(&step(1, "one"), "completed", StepOutput::Digest(digested));
    results.insert(&step(2, "two"), "completed", StepOutput::Digest(digested));
    results.insert(&step(2, "two"), "failed", StepOutput::Nothing);
    let id = sample::id::<crate::ids::StepId>(1).to_string();
    let by_id = format!("steps.{id}.events.1.id");
    let every = ["events", "one.events", "two.events", "1.events"];
    for (rule, value, has) in [
        (json!({ "==": [{ "var": "payload.n" }, 1] }), json!(true), &every[..0]),
        (json!({ "+": [{ "var": "total_count" }] }), json!(7), &[]),
        (json!({ "var": "first.payload.of" }), json!("a"), &[]),
        (json!({ "var": "last.payload.of" }), json!("b"), &[]),
        (json!({ "var": "events.1.payload.of" }), json!("b"), &["events"]),
        (json!({ "var": "steps.two.status" }), json!("failed"), &[]),
        (json!({ "var": "steps.one.eventCount" }), json!(7), &[]),
        (json!({ "var": "steps.two.events.0.id" }), json!("a"), &["two.events"]),
        (json!({ "var": by_id }), json!("b"), &["1.events"]),
        (
            json!({ "missing": ["steps.one", "steps.xyzzy"] }),
            json!(["steps.xyzzy"]),
            &["one.events"],
        ),
        (
            json!({ "missing_some": [1, ["steps.one.events.9", "n"]] }),
            json!(["steps.one.events.9", "n"]),
            &["one.events"],
        ),
        (
            json!({ "some": [{ "var": "events" }, { "==": [{ "var": "id" }, "b"] }] }),
            json!(true),
            &["events"],
        ),
        (json!({ "!": { "var": "steps" } }), json!(false), &every[1..]),
        (json!({ "!": { "var": "" } }), json!(false), &every),
        (json!({ "var": { "cat": ["steps.one.", "eventCount"] } }), json!(7), &every),
    ] {
        let known = || {
            let known = TemplateData::new(&subscriber, &payload, &[], &workflow);
            known.with_steps(&results).with_digest(digested)
        };
        let rule = Rule::new(rule).unwrap();
        let data = known().data_for(&rule);
        assert_eq!(rule.evaluate(&data), value, "{}", rule.source());
        assert_eq!(rule.evaluate(&known().data()), value, "{}", rule.source());
        let found = every.into_iter().filter(|place| {
            let step = |(name, part): (&str, &str)| {
                data["steps"][if name == "1" { &*id } else { name }].get(part).is_some()
            };
            place.split_once('.').map_or(data["events"] != json!([]), step)
        });
        assert_eq!(found.collect::<Vec<_>>(), has, "{}", rule.source());
    }
}

/// Templates see the data as it serializes, whether the recipients of an event share values or not.
#[test]
fn templates_see_the_data() {
    let payload = sample::object(json!({ "n": 1, "list": [1, "<b>"], "deep": { "a": null } }));
    let people = ["Ada", "Bob"].map(|name| sample::subscriber(json!({ "firstName": name })));
    let actor = sample::subscriber(json!({ "firstName": "Eve" }));
    let workflow = sample::workflow(json!([]));
    let contexts = [context("tenant:acme", json!({ "a": 1 })), context("app:web", json!({}))];
    let event = crate::step::DigestEvent {
        id: "a".parse().unwrap(),
        time: sample::at(5),
        payload: sample::object(json!({ "of": "a" })),
    };
    let events = [event];
    let text = "{{ payload }} {{ subscriber }} {{ context }} {{ context.tenant.id }} {{ workflow }} \
                {{ actor }} {{ steps }} {{ events }} {{ first }} {{ last }} {{ total_count }}";
    let template = Template::new(text).unwrap();
    for (with_actor, with_digest) in [(false, false), (true, false), (false, true)] {
        let shared = Shared::default();
        for subscriber in &people {
            let results = StepResults::default();
            let mut known = TemplateData::new(subscriber, &payload, &contexts, &workflow);
            if with_actor {
                known = known.with_actor(Some(&actor));
            }
            if with_digest {
                known = known.with_steps(&results).with_digest(Digested::new(&events, None, 1));
            }
            let render = |variables| template.render(Format::Plain, &variables).unwrap();
            let rendered = render(known.variables(&shared));
            assert_eq!(rendered, render(Variables::new(&known)));
            assert!(rendered.contains(subscriber.profile.first_name.as_deref().unwrap()));
        }
    }
}

#[test]
fn a_digest_of_one_event_has_it_first_and_last() {
    let event = crate::step::DigestEvent {
        id: "a".parse().unwrap(),
        time: sample::at(0),
        payload: Object::default(),
    };
    let events = [event];
    let one = serde_json::to_value(Digested::new(&events, None, 1)).unwrap();
    assert_eq!((&one["first"], &one["last"]), (&one["events"][0], &one["events"][0]));
    let none = serde_json::to_value(Digested::new(&[], None, 0)).unwrap();
    assert_eq!(none, json!({ "events": [], "total_count": 0 }));
}
