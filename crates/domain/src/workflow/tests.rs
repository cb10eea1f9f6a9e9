use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::error::Reason;
use crate::sample;

fn in_app(body: &str) -> Value {
    json!({ "type": "in_app", "template": { "body": body } })
}

fn created(create: Value) -> Result<Workflow, Invalid> {
    let mut whole = json!({ "workflowId": "welcome", "name": "Welcome", "steps": [] });
    whole.as_object_mut().unwrap().extend(create.as_object().unwrap().clone());
    let mut new_id = sample::ids();
    let new_step = || (new_id().into(), new_id().into());
    let create = serde_json::from_value(whole).unwrap();
    Workflow::new(sample::id(3), &sample::home(), create, new_step, sample::at(0))
}

fn updated(workflow: &Workflow, update: Value) -> Result<Workflow, Invalid> {
    let mut next = 100;
    let new_step = || {
        next += 2;
        (sample::id(next), sample::id(next + 1))
    };
    workflow.updated(serde_json::from_value(update).unwrap(), new_step, sample::at(9))
}

fn between(value: &str) -> Value {
    let part = json!({ "field": "a", "operator": "BETWEEN", "value": value, "on": "payload" });
    json!([{ "type": "GROUP", "value": "AND", "children": [part] }])
}

/// One row per rule: a workflow that breaks it, and the refusal. A workflow at the limit is valid.
#[test]
fn what_no_workflow_can_be_is_refused_with_its_place() {
    let sms = json!({ "type": "sms", "template": { "body": "" } });
    let with = |key: &str, value: Value| {
        let mut step = in_app("");
        step[key] = value;
        json!({ "steps": [in_app(""), step] })
    };
    let variant = |key: &str, value: Value| {
        let mut variant = in_app("");
        variant[key] = value;
        with("variants", json!([in_app(""), variant]))
    };
    let two = "must be two values, as in `1,5`";
    let named = |name| json!({ "type": "in_app", "name": name, "template": { "body": "" } });
    let known = |uuid| json!({ "type": "in_app", "uuid": uuid, "template": { "body": "" } });
    for (create, problem) in [
        (json!({ "name": "" }), "`name` must not be empty"),
        (json!({ "name": "ü".repeat(129) }), "`name` must be at most 128 characters long"),
        (
            json!({ "description": "ü".repeat(257) }),
            "`description` must be at most 256 characters long",
        ),
        (json!({ "tags": vec![""; 17] }), "`tags` must have at most 16 items"),
        (json!({ "tags": ["a", "ü".repeat(65)] }), "`tags[1]` must be at most 64 characters long"),
        (json!({ "tags": ["a", " "] }), "`tags[1]` must not be empty"),
        (json!({ "tags": ["a", "b", "a"] }), "`tags[2]` must not be given twice"),
        (json!({ "name": " \u{a0} " }), "`name` must not be empty"),
        (
            json!({ "preferenceSettings": { "condition": { "var": "paylod.x" } } }),
            "`preferenceSettings.condition.var` has no variable `paylod.x`; did you mean `payload`?",
        ),
        (json!({ "steps": vec![in_app(""); 21] }), "`steps` must have at most 20 items"),
        (
            json!({ "steps": [in_app(""), { "type": "custom", "metadata": { "handler": "" } }] }),
            "`steps[1].metadata.handler` must not be empty",
        ),
        (with("name", json!(" ")), "`steps[1].name` must not be empty"),
        (
            json!({ "steps": (["a", "b", "a"].map(named)) }),
            "`steps[2].name` must not be given twice",
        ),
        (with("uuid", json!("")), "`steps[1].uuid` must not be empty"),
        (with("uuid", json!(" ")), "`steps[1].uuid` must not be empty"),
        (
            json!({ "steps": (["a", "b", "a"].map(known)) }),
            "`steps[2].uuid` must not be given twice",
        ),
        (json!({ "steps": [known("a"), named("a")] }), "`steps[1].name` must not be given twice"),
        (json!({ "steps": [named("a"), known("a")] }), "`steps[1].uuid` must not be given twice"),
        (with("filters", between("1")), &format!("`steps[1].filters[0].children[0].value` {two}")),
        (
            with("variants", json!(vec![in_app(""); 21])),
            "`steps[1].variants` must have at most 20 items",
        ),
        (
            variant("filters", between("1")),
            &format!("`steps[1].variants[1].filters[0].children[0].value` {two}"),
        ),
        (
            with("variants", json!([in_app(""), sms])),
            "`steps[1].variants[1].type` must be the type of its step",
        ),
    ] {
        assert_eq!(created(create).unwrap_err().to_string(), problem);
    }
    for create in [
        json!({ "name": "ü".repeat(128), "description": "ü".repeat(256) }),
        json!({ "tags": ["ü".repeat(64), "ü".repeat(63)] }),
        json!({ "tags": (0..16).map(|n| n.to_string()).collect::<Vec<_>>() }),
        json!({ "steps": vec![in_app(""); 20] }),
        with("variants", json!(vec![in_app(""); 20])),
        variant("filters", between("1,5")),
    ] {
        assert_eq!(created(create.clone()).map(drop), Ok(()), "{create}");
    }
}

/// One row per place of a template that does not compile: the path of the refusal.
#[test]
fn a_template_that_does_not_compile_is_refused_with_its_place() {
    let bad = "{% if %}";
    let text = |body: &str| json!({ "type": "text", "content": body });
    for (kind, template, place) in [
        ("in_app", json!({ "body": bad }), "body"),
        ("in_app", json!({ "body": "", "subject": bad }), "subject"),
        ("in_app", json!({ "body": "", "url": bad }), "url"),
        (
            "in_app",
            json!({ "body": "", "buttons": [
                { "type": "primary", "content": "" }, { "type": "primary", "content": bad },
            ] }),
            "buttons[1].content",
        ),
        (
            "in_app",
            json!({ "body": "", "buttons": [
                { "type": "primary", "content": "", "resultContent": bad },
            ] }),
            "buttons[0].resultContent",
        ),
        ("email", json!({ "subject": bad, "body": "" }), "subject"),
        ("email", json!({ "subject": "", "body": bad }), "body"),
        ("email", json!({ "subject": "", "body": [text(""), text(bad)] }), "body[1].content"),
        (
            "email",
            json!({ "subject": "", "body": [{ "type": "button", "content": "", "url": bad }] }),
            "body[0].url",
        ),
        ("sms", json!({ "body": bad }), "body"),
        ("chat", json!({ "body": bad }), "body"),
        ("push", json!({ "title": bad, "body": "" }), "title"),
        ("push", json!({ "title": "", "body": bad }), "body"),
    ] {
        let step = json!({ "type": kind, "template": template });
        let error = created(json!({ "steps": [in_app(""), step] })).unwrap_err();
        assert_eq!(error.field, format!("steps[1].template.{place}"), "{kind}");
        assert!(matches!(error.reason, Reason::Template { .. }), "{error}");

        if kind == "in_app" {
            let mut fine = in_app("");
            fine["variants"] = json!([step]);
            let error = created(json!({ "steps": [fine] })).unwrap_err();
            assert_eq!(error.field, format!("steps[0].variants[0].template.{place}"));
        }
    }
}

#[test]
fn a_new_one_belongs_to_its_environment_and_can_be_triggered_by_its_name() {
    let workflow = created(json!({ "data": { "a": 1 }, "severity": "high" })).unwrap();
    assert_eq!(workflow.identifier().as_str(), "welcome");
    assert_eq!((workflow.environment_id, workflow.organization_id), {
        let home = sample::home();
        (home.environment_id, home.organization_id)
    });
    assert_eq!((workflow.active, workflow.draft, workflow.critical), (true, false, false));
    assert_eq!((workflow.created_at, workflow.updated_at), (sample::at(0), sample::at(0)));
}

#[test]
fn steps_follow_one_another() {
    let workflow = created(json!({ "steps": vec![in_app(""); 3] })).unwrap();
    let ids: Vec<_> = workflow.steps.iter().map(|step| Some(step.id)).collect();
    let parents: Vec<_> = workflow.steps.iter().map(|step| step.parent_id).collect();
    assert_eq!(parents, [None, ids[0], ids[1]]);
}

/// A workflow that was stored when two steps could have the same name.
#[test]
fn steps_of_the_same_name_stay_until_the_steps_are_changed() {
    let named = |name| json!({ "type": "in_app", "name": name, "template": { "body": "" } });
    let mut before = created(json!({ "steps": (["a", "b"].map(named)) })).unwrap();
    before.steps[1].definition.name = Some("a".into());
    let stored = serde_json::to_value(&before).unwrap();
    assert_eq!(serde_json::from_value::<Workflow>(stored).unwrap(), before);

    let renamed = updated(&before, json!({ "name": "Hello" })).unwrap();
    assert_eq!(renamed.steps, before.steps);
    let refused = updated(&before, json!({ "steps": (["a", "a"].map(named)) })).unwrap_err();
    assert_eq!(refused.to_string(), "`steps[1].name` must not be given twice");
    let told_apart = updated(&before, json!({ "steps": (["a", "b"].map(named)) })).unwrap();
    let ids = |workflow: &Workflow| workflow.steps.iter().map(|one| one.id).collect::<Vec<_>>();
    assert_eq!(ids(&told_apart), ids(&before));
}

/// A workflow that was stored when two steps could have the same `uuid`, or an empty one.
#[test]
fn steps_of_the_same_uuid_stay_until_the_steps_are_changed() {
    let known = |uuid| json!({ "type": "in_app", "uuid": uuid, "template": { "body": "" } });
    for uuid in ["a", ""] {
        let mut before = created(json!({ "steps": (["a", "b"].map(known)) })).unwrap();
        for step in &mut before.steps {
            step.definition.uuid = Some(uuid.into());
        }
        let stored = serde_json::to_value(&before).unwrap();
        assert_eq!(serde_json::from_value::<Workflow>(stored).unwrap(), before);

        let renamed = updated(&before, json!({ "name": "Hello" })).unwrap();
        assert_eq!(renamed.steps, before.steps);
        updated(&before, json!({ "steps": ([uuid, uuid].map(known)) })).unwrap_err();
        let told_apart = updated(&before, json!({ "steps": (["a", "b"].map(known)) })).unwrap();
        let ids = |workflow: &Workflow| workflow.steps.iter().map(|one| one.id).collect::<Vec<_>>();
        assert_eq!(ids(&told_apart), ids(&before));
    }
}

/// The jobs of the original go on with the step that has its id.
#[test]
fn a_copied_step_does_not_take_over_the_original() {
    let mail = |name: &str| {
        json!({
            "type": "email", "name": name, "uuid": "u",
            "template": { "subject": "", "body": "" },
        })
    };
    let before = created(json!({ "steps": [mail("a")] })).unwrap();
    let copied = updated(&before, json!({ "steps": [mail("b"), mail("a")] })).unwrap_err();
    assert_eq!(copied.to_string(), "`steps[1].uuid` must not be given twice");
}

#[test]
fn an_update_keeps_the_ids_of_the_steps_it_names() {
    let before = created(json!({ "steps": [in_app("a"), in_app("b"), in_app("c")] })).unwrap();
    let [a, _, c] = &before.steps[..] else { panic!("{:?}", before.steps) };
    let kept = |step: &WorkflowStep, body: &str| {
        let mut json = in_app(body);
        json["_id"] = json!(step.id);
        json
    };

    let after = updated(&before, json!({ "steps": [kept(c, "C"), in_app("d"), kept(a, "a")] }));

    let steps = after.unwrap().steps;
    let ids: Vec<_> = steps.iter().map(|step| (step.id, step.content_id)).collect();
    let new = (sample::id(102), sample::id(103));
    assert_eq!(ids, [(c.id, c.content_id), new, (a.id, a.content_id)]);
    let parents: Vec<_> = steps.iter().map(|step| step.parent_id).collect();
    assert_eq!(parents, [None, Some(c.id), Some(new.0)]);
    assert_eq!(steps[0].definition, serde_json::from_value(in_app("C")).unwrap());

    let twice = json!({ "steps": [kept(a, ""), kept(a, "")] });
    let error = updated(&before, twice).unwrap_err();
    assert_eq!(error.to_string(), "`steps[1]._id` must not be given twice");
    let foreign = WorkflowStep { id: sample::id(77), ..a.clone() };
    let error = updated(&before, json!({ "steps": [kept(&foreign, "")] })).unwrap_err();
    let expected = "`steps[0]._id` must be the id of a step that the workflow has";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn an_update_changes_what_it_names() {
    let before = created(json!({
        "description": "d", "tags": ["t"], "data": { "a": 1 }, "steps": [in_app("x")],
    }))
    .unwrap();
    let off = Preference::default().enabled(false);
    let update = json!({
        "name": "N", "description": "D", "active": false, "critical": true, "severity": "low",
        "tags": ["T"], "preferenceSettings": off, "preferences": off, "data": null,
    });
    let expected = Workflow {
        name: "N".into(),
        description: "D".into(),
        active: false,
        critical: true,
        severity: Severity::Low,
        tags: vec!["T".into()],
        preference_settings: off.clone(),
        operator_preference: Some(off),
        data: None,
        updated_at: sample::at(9),
        ..before.clone()
    };
    let after = updated(&before, update.clone()).unwrap();
    assert_eq!(after, expected);
    assert_eq!(updated(&before, json!({})), Ok(before.clone()), "nothing is changed by nothing");
    let later = |update: Value| {
        let update = serde_json::from_value(update).unwrap();
        after.updated(update, || (sample::id(0), sample::id(0)), sample::at(99)).unwrap()
    };
    assert_eq!(later(update).updated_at, sample::at(9), "nor by the same");
    assert_eq!(later(json!({ "preferences": null })).operator_preference, None);
    let error = updated(&before, json!({ "name": "" })).unwrap_err();
    assert_eq!(error, Invalid::new("name", Reason::Empty));
}

#[test]
fn what_the_templates_name_are_the_variables() {
    let workflow = created(json!({ "steps": [
        {
            "type": "in_app",
            "template": {
                "subject": "{{ payload.a }}",
                "body": "{{ payload.b.c }} {{ subscriber.firstName }} {{ context.tenant.id }}",
                "url": "{{ payload.d }}",
                "buttons": [{ "type": "primary", "content": "{{ payload.e }}" }],
            },
        },
        {
            "type": "email",
            "template": { "subject": "{{ payload.a }}", "body": [
                { "type": "button", "content": "{{ payload.f }}", "url": "{{ payload.g }}" },
            ] },
        },
        { "type": "email", "template": { "subject": "", "body": "{{ payload.h }}" } },
        {
            "type": "push",
            "template": { "title": "{{ payload.i }}", "body": "{{ subscriber.data.x }}" },
            "variants": [
                { "type": "push", "template": { "title": "{{ payload.j }}", "body": "" } },
            ],
        },
        { "type": "sms", "template": { "body": "{% set x = 1 %}{{ x }}{{ workflow.name }}" } },
    ] }));
    let [trigger] = workflow.unwrap().triggers;
    let names = |variables: Vec<TriggerVariable>| {
        variables.into_iter().map(|variable| variable.name).collect::<Vec<_>>()
    };
    assert_eq!(names(trigger.variables), ["a", "b.c", "d", "e", "f", "g", "h", "i", "j"]);
    assert_eq!(names(trigger.subscriber_variables), ["data.x", "firstName"]);
}

#[test]
fn an_update_of_the_steps_changes_the_variables() {
    let before = created(json!({ "steps": [in_app("{{ payload.a }}")] })).unwrap();
    let after = updated(&before, json!({ "steps": [in_app("{{ payload.b }}")] })).unwrap();
    assert_eq!(after.triggers[0].variables, [TriggerVariable { name: "b".into() }]);
    assert_eq!(after.identifier(), before.identifier());
}

#[test]
fn a_workflow_is_translated_if_that_is_said() {
    let on = json!({ "isTranslationEnabled": true });
    assert!(!created(json!({})).unwrap().is_translation_enabled);
    let before = created(on.clone()).unwrap();
    assert!(before.is_translation_enabled);
    for (update, expected) in
        [(json!({}), true), (on, true), (json!({ "isTranslationEnabled": false }), false)]
    {
        let after = updated(&before, update).unwrap();
        assert_eq!(after.is_translation_enabled, expected);
        assert_eq!(after.updated_at != before.updated_at, !expected);
    }
    let after = before.untranslated(sample::at(9));
    let (is_translation_enabled, updated_at) = (false, sample::at(9));
    assert_eq!(after, Workflow { is_translation_enabled, updated_at, ..before });
    assert_eq!(after.untranslated(sample::at(99)), after, "what is not translated stays");
}

#[test]
fn only_active_steps_are_run() {
    let sms = json!({ "type": "sms", "template": { "body": "" } });
    let email = json!({
        "type": "email", "template": { "subject": "", "body": "" }, "active": false,
    });
    let steps = json!([sms, in_app(""), email, in_app("")]);
    let workflow = created(json!({ "steps": steps })).unwrap();
    let active: Vec<_> = workflow.active_steps().map(|step| step.id).collect();
    let [a, b, _, d] = &workflow.steps[..] else { panic!("{:?}", workflow.steps) };
    assert_eq!(active, [a.id, b.id, d.id]);
    assert_eq!(workflow.step_types(), [StepType::InApp, StepType::Sms]);
    assert_eq!(workflow.step(b.id), Some(b));
    assert_eq!(workflow.step(sample::id(99)), None);
}

#[test]
fn everybody_with_a_say_has_a_layer() {
    let mut workflow = created(json!({ "critical": true })).unwrap();
    let [definition, operator, global, specific] = [
        Preference::default().enabled(true),
        Preference::default().enabled(false),
        Preference::default().with(crate::vocabulary::Channel::Sms, true),
        Preference::default().with(crate::vocabulary::Channel::Sms, false),
    ];
    workflow.preference_settings = definition.clone();
    workflow.operator_preference = Some(operator.clone());
    let layers = workflow.layers(Some(&global), Some(&specific));
    assert_eq!(layers.definition, Some(&definition));
    assert_eq!(layers.operator, Some(&operator));
    assert_eq!(layers.subscriber_global, Some(&global));
    assert_eq!(layers.subscriber_workflow, Some(&specific));
    assert!(layers.critical);
}

#[test]
fn a_query_shows_what_fulfils_all_of_it() {
    let workflow = created(json!({ "tags": ["a", "b"], "active": true })).unwrap();
    for (query, matches) in [
        (json!({}), true),
        (json!({ "tag": "b" }), true),
        (json!({ "tag": "c" }), false),
        (json!({ "active": true }), true),
        (json!({ "active": false }), false),
        (json!({ "tag": "a", "active": false }), false),
        (json!({ "tag": "c", "active": true }), false),
    ] {
        let filtered = query != json!({});
        let query: WorkflowQuery = serde_json::from_value(query).unwrap();
        assert_eq!(query.matches(&workflow), matches, "{query:?}");
        assert_eq!(query.is_filtered(), filtered, "{query:?}");
    }
}

proptest! {
    #[test]
    fn the_id_is_found_in_the_slug_whatever_the_name(
        number in any::<u128>(),
        name in "\\PC{1,20}|.*_wf_.*",
    ) {
        let mut workflow = created(json!({})).unwrap();
        (workflow.id, workflow.name) = (sample::id(number), name);
        let slug = workflow.slug();
        prop_assert_eq!(Workflow::id_in_slug(&slug), Some(workflow.id));
        let url = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
        prop_assert!(slug.chars().all(|c| url(c) || !c.is_ascii()), "{}", slug);
    }

    #[test]
    fn any_text_is_taken_for_a_slug_without_harm(text in "\\PC*|.*_wf_[0-9A-Za-z]{20,24}") {
        let _ = Workflow::id_in_slug(&text);
    }
}
