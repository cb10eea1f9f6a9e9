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

#[test]
fn the_last_of_several_steps_with_a_name_counts() {
    let steps = [mail(1, "mail"), mail(2, "mail")];
    let awaited = definition(text("{{ steps.mail.seen }}")).awaited(&steps);
    assert_eq!(awaited, Ok(vec![sample::id(2)]));
    let mut results = crate::step::StepResults::default();
    results.insert(&steps[0], "completed", crate::step::StepOutput::Nothing);
    results.insert(&steps[1], "failed", crate::step::StepOutput::Nothing);
    assert_eq!(results.as_object()["mail"]["status"], "failed");
    assert_eq!(results.as_object()[&steps[0].id.to_string()]["status"], "completed");
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
