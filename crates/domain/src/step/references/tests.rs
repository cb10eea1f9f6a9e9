use serde_json::{Value, json};

use super::*;
use crate::sample;

const SEEN: &str = "steps.mail.seen";

fn definition(step: Value) -> StepDefinition {
    serde_json::from_value(step).unwrap()
}

fn mail(number: u128, name: &str) -> WorkflowStep {
    let json =
        json!({ "type": "sms", "name": name, "uuid": "editor-1", "template": { "body": "" } });
    WorkflowStep::new(sample::id(number), sample::id(90), definition(json))
}

fn digest(number: u128, name: &str) -> WorkflowStep {
    let metadata = json!({ "type": "regular", "amount": 1, "unit": "days" });
    let json = json!({ "type": "digest", "name": name, "metadata": metadata });
    WorkflowStep::new(sample::id(number), sample::id(91), definition(json))
}

/// Steps 1 to 3: a message, a digest, and a message.
fn earlier() -> [WorkflowStep; 3] {
    let mut steps = [mail(1, "mail"), digest(2, "collect"), mail(3, "text")];
    steps[2].definition.uuid = None;
    steps
}

fn text(body: &str) -> Value {
    json!({ "type": "sms", "template": { "body": body } })
}

fn with(name: &str, value: Value) -> Value {
    let mut step = text("");
    step[name] = value;
    step
}

fn filters(field: &str) -> Value {
    let part = json!({ "field": field, "value": "true", "operator": "EQUAL", "on": "steps" });
    json!([{ "type": "GROUP", "value": "AND", "children": [part] }])
}

/// One row per place and form of a reference: the numbers of the steps that are awaited.
#[test]
fn a_step_awaits_those_that_it_refers_to() {
    let id = sample::id::<StepId>(3).to_string();
    let variant = json!([{ "filters": filters("text.seen"), "type": "sms", "template": { "body": "{{ steps.mail.seen }}" } }]);
    for (step, awaited) in [
        (text("{{ payload.steps }} {{ subscriber.firstName }}"), vec![]),
        (text("{{ steps.mail.seen }}"), vec![1]),
        (text("{% if steps['editor-1'].read %}x{% endif %}"), vec![1]),
        (text(&format!("{{{{ steps['{id}'].status }}}}")), vec![3]),
        (text("{% for event in steps.collect.events %}{{ event.id }}{% endfor %}"), vec![2]),
        (text("{{ total_count }}"), vec![2]),
        (text("{% for event in events %}{{ event.payload.a }}{% endfor %}"), vec![2]),
        (text("{% set events = [1] %}{{ events }}"), vec![]),
        (text("{{ steps[payload.which].seen }}"), vec![1, 2, 3]),
        (text("{% set all = steps %}{{ all.text.seen }}"), vec![1, 2, 3]),
        (with("filters", filters("text.seen")), vec![3]),
        (with("filters", filters("mail")), vec![1]),
        (with("variants", variant), vec![1, 3]),
        (with("runIf", json!({ "!": { "var": SEEN } })), vec![1]),
        (with("runIf", json!({ ">": [{ "var": "total_count" }, 1] })), vec![2]),
        (with("runIf", json!({ "missing": ["payload.a", "steps.text.seen"] })), vec![3]),
        (with("runIf", json!({ "missing_some": [1, ["steps.text.seen"]] })), vec![3]),
        (with("runIf", json!({ "!": { "missing_some": [1, SEEN] } })), vec![1]),
        (with("runIf", json!({ "missing_some": [1, { "merge": [[SEEN]] }] })), vec![1, 2, 3]),
        (with("runIf", json!({ "missing": { "merge": [[SEEN]] } })), vec![1, 2, 3]),
        (with("runIf", json!({ "var": { "cat": ["steps.", "mail"] } })), vec![1, 2, 3]),
        (with("runIf", json!({ "var": "" })), vec![1, 2, 3]),
        (with("runIf", json!({ "var": [] })), vec![1, 2, 3]),
        (with("runIf", json!({ "var": "steps" })), vec![1, 2, 3]),
        (with("runIf", json!({ "some": [{ "var": "payload.a" }, { "var": "steps" }] })), vec![]),
    ] {
        let expected: Vec<StepId> = awaited.into_iter().map(sample::id).collect();
        assert_eq!(definition(step.clone()).awaited(&earlier()), Ok(expected), "{step}");
    }
}

#[test]
fn a_reference_to_another_step_is_refused_with_its_place() {
    let variant = |step: Value| with("variants", json!([step]));
    for (step, problem) in [
        (
            text("{{ steps.mial.seen }}"),
            "`template.body` has no variable `steps.mial`; did you mean `steps.mail`?",
        ),
        (
            with("filters", filters("xyzzy.seen")),
            "`filters[0].children[0].field` has no variable `steps.xyzzy`",
        ),
        (
            with("runIf", json!({ "var": "steps.texts.seen" })),
            "`runIf` has no variable `steps.texts`; did you mean `steps.text`?",
        ),
        (
            variant(text("{{ steps.xyzzy }}")),
            "`variants[0].template.body` has no variable `steps.xyzzy`",
        ),
        // A part that no result of the step has.
        (
            text("{{ steps.mail.raed }}"),
            "`template.body` has no variable `steps.mail.raed`; did you mean `steps.mail.read`?",
        ),
        (
            text("{% if (steps['editor-1']).Status %}x{% endif %}"),
            "`template.body` has no variable `steps.editor-1.Status`; did you mean `steps.editor-1.status`?",
        ),
        (
            text("{{ steps.collect.total_count }}"),
            "`template.body` has no variable `steps.collect.total_count`; did you mean `steps.collect.eventCount`?",
        ),
        (
            text("{{ steps.mail.total_count }}"),
            "`template.body` has no variable `steps.mail.total_count`",
        ),
        (
            with("filters", filters("collect.eventCuont")),
            "`filters[0].children[0].field` has no variable `steps.collect.eventCuont`; did you mean `steps.collect.eventCount`?",
        ),
        (
            with("runIf", json!({ "!": { "missing": ["payload.a", "steps.mail.raed"] } })),
            "`runIf` has no variable `steps.mail.raed`; did you mean `steps.mail.read`?",
        ),
        (
            with("runIf", json!({ "var": "steps.collect.seen" })),
            "`runIf` has no variable `steps.collect.seen`",
        ),
        (
            variant(with("filters", filters("text.events"))),
            "`variants[0].filters[0].children[0].field` has no variable `steps.text.events`",
        ),
    ] {
        let error = definition(step).awaited(&earlier()).unwrap_err();
        assert_eq!(error.to_string(), problem);
    }
    // Without a digest there are no events.
    for step in [text("{{ first.payload.a }}"), with("runIf", json!({ "var": "first" }))] {
        let error = definition(step).awaited(&[mail(1, "mail")]).unwrap_err();
        let expected = Reason::UnknownVariable { variable: "first".into(), suggestion: None };
        assert_eq!(error.reason, expected);
    }
}

/// One row per type of a step: the parts of its result.
#[test]
fn a_result_has_the_parts_of_its_type() {
    let metadata = json!({ "type": "regular", "amount": 1, "unit": "days" });
    let message = json!({ "subject": "", "title": "", "body": "" });
    for (kind, content, parts) in [
        ("in_app", message.clone(), vec!["read", "seen", "status"]),
        ("email", message.clone(), vec!["read", "seen", "status"]),
        ("sms", message.clone(), vec!["read", "seen", "status"]),
        ("chat", message.clone(), vec!["read", "seen", "status"]),
        ("push", message, vec!["read", "seen", "status"]),
        ("digest", metadata.clone(), vec!["eventCount", "events", "status"]),
        ("delay", metadata, vec!["status"]),
        ("throttle", json!({ "amount": 1, "unit": "days" }), vec!["status"]),
        ("custom", json!({ "handler": "charge" }), vec!["result", "status"]),
    ] {
        let mut step = json!({ "type": kind, "name": "it" });
        let place = if content.get("body").is_some() { "template" } else { "metadata" };
        step[place] = content;
        let step = WorkflowStep::new(sample::id(1), sample::id(90), definition(step));
        let all = ["eventCount", "events", "read", "result", "seen", "status", "xyzzy"];
        let known = all.into_iter().filter(|part| {
            // Behind the part may be anything.
            let deep = text(&format!("{{{{ steps.it.{part} }}}}{{{{ steps.it.{part}.x[0] }}}}"));
            definition(deep).awaited(std::slice::from_ref(&step)).is_ok()
        });
        assert_eq!(known.collect::<Vec<_>>(), parts, "{kind}");
    }
}

/// The path of the variable is known only when the template runs.
#[test]
fn a_part_that_a_template_chooses_is_not_checked() {
    for body in [
        "{{ steps.mail[payload.part] }}",
        "{% set mail = steps.mail %}{{ mail.raed }}",
        "{% for step in [steps.mail, steps.text] %}{{ step.raed }}{% endfor %}",
        "{% for steps in payload.all %}{{ steps.mail.raed }}{% endfor %}",
    ] {
        assert!(definition(text(body)).awaited(&earlier()).is_ok(), "{body}");
    }
}

#[test]
fn a_stored_step_with_an_unknown_part_is_read_and_kept() {
    use crate::workflow::{Workflow, WorkflowUpdate};
    let mail = json!({ "type": "sms", "name": "mail", "template": { "body": "" } });
    let workflow = sample::workflow(json!([mail, text("{{ steps.mail.seen }}")]));
    let mut stored = serde_json::to_value(&workflow).unwrap();
    stored["steps"][1]["template"]["body"] = json!("{{ steps.mail.sean }}");
    let stored: Workflow = serde_json::from_value(stored).unwrap();
    let update = |update: Value| {
        let update: WorkflowUpdate = serde_json::from_value(update).unwrap();
        stored.updated(update, || unreachable!("no step is new"), sample::at(0))
    };

    let renamed = update(json!({ "name": "Another" })).unwrap();
    assert_eq!(renamed.steps, stored.steps);
    let given = serde_json::to_value(&stored.steps).unwrap();
    let refused = update(json!({ "steps": given })).unwrap_err().to_string();
    assert!(refused.starts_with("`steps[1].template.body` has no variable"), "{refused}");
}

#[test]
fn the_last_of_several_steps_with_a_name_counts() {
    let steps = [mail(1, "mail"), mail(2, "mail")];
    let awaited = definition(text("{{ steps.mail.seen }}")).awaited(&steps);
    assert_eq!(awaited, Ok(vec![sample::id(2)]));
    let mut results = crate::step::StepResults::default();
    results.insert(&steps[0], "completed", crate::step::StepOutput::Nothing);
    results.insert(&steps[1], "failed", crate::step::StepOutput::Nothing);
    assert_eq!(results.parts()["mail"]["status"], "failed");
    assert_eq!(results.parts()[&*steps[0].id.to_string()]["status"], "completed");
}

/// The workflow keeps what its steps refer to, and reads and writes it.
#[test]
fn a_saved_workflow_knows_what_its_steps_await() {
    let mail = json!({ "type": "sms", "name": "mail", "template": { "body": "" } });
    let steps = json!([mail, text("{{ steps.mail.seen }}"), text("")]);
    let workflow = sample::workflow(steps);
    let first = workflow.steps[0].id;
    let awaits: Vec<_> = workflow.steps.iter().map(|step| step.awaits.clone()).collect();
    assert_eq!(awaits, [vec![], vec![first], vec![]]);
    let written = serde_json::to_value(&workflow).unwrap();
    assert_eq!(written["steps"][1]["_awaitedStepIds"], json!([first]));
    assert_eq!(written["steps"][0].get("_awaitedStepIds"), None);
    assert_eq!(serde_json::from_value::<crate::workflow::Workflow>(written).unwrap(), workflow);
}
