use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::sample;
use crate::workflow::{Undeclared, WorkflowSync};

fn create(fields: Value) -> WorkflowCreate {
    let mut whole = json!({ "workflowId": "welcome", "name": "Welcome", "steps": [] });
    whole.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    serde_json::from_value(whole).unwrap()
}

fn ids(first: u128) -> impl FnMut() -> StepIds {
    let mut next = first;
    move || {
        next += 2;
        (sample::id(next), sample::id(next + 1))
    }
}

fn declared(fields: Value) -> Workflow {
    let (id, home) = (sample::id(3), sample::home());
    Workflow::declared(id, &home, create(fields), ids(10), sample::at(0)).unwrap()
}

fn redeclared(workflow: &Workflow, fields: Value) -> Workflow {
    workflow.redeclared(create(fields), ids(100), sample::at(9)).unwrap()
}

fn whole() -> Value {
    json!({
        "description": "D", "critical": true, "severity": "high", "tags": ["t"],
        "isTranslationEnabled": true, "preferenceSettings": { "sms": false }, "data": { "a": 1 },
        "steps": [{ "type": "in_app", "template": { "body": "{{ payload.a }}" } }],
    })
}

#[test]
fn a_declaration_replaces_what_it_leaves_out() {
    let before = declared(whole());
    assert_eq!(before.origin, Some(WorkflowOrigin::External));

    let after = redeclared(&before, json!({}));

    let expected = Workflow { created_at: before.created_at, ..declared(json!({})) };
    assert_eq!(after, Workflow { updated_at: sample::at(9), ..expected });
    assert_eq!(redeclared(&after, whole()).triggers, before.triggers);
}

/// One row per state of the workflow and declared `active`: the state after the declaration.
#[test]
fn a_declaration_that_does_not_say_active_leaves_it() {
    for (before, declaration, expected) in [
        (json!({}), json!({}), true),
        (json!({ "active": false }), json!({}), false),
        (json!({ "active": true }), json!({}), true),
        (json!({ "active": false }), json!({ "active": true }), true),
        (json!({ "active": true }), json!({ "active": false }), false),
    ] {
        let after = redeclared(&declared(before.clone()), declaration.clone());
        assert_eq!(after.active, expected, "{before} {declaration}");
    }
}

/// One row per `validatePayload` of the workflow and of the declaration.
#[test]
fn a_declaration_replaces_whether_payloads_are_checked() {
    for before in [json!({}), json!({ "validatePayload": false })] {
        for declaration in
            [json!({}), json!({ "validatePayload": false }), json!({ "validatePayload": true })]
        {
            let after = redeclared(&declared(before.clone()), declaration.clone());
            let expected = declared(declaration.clone()).validate_payload;
            assert_eq!(after.validate_payload, expected, "{before} {declaration}");
        }
    }
}

#[test]
fn what_an_operator_said_about_channels_stays() {
    let update = json!({ "preferences": { "email": false } });
    let update = serde_json::from_value(update).unwrap();
    let before = declared(json!({})).updated(update, ids(50), sample::at(5)).unwrap();
    assert_eq!(redeclared(&before, json!({})), before);
}

#[test]
fn a_workflow_that_was_not_declared_is_from_now_on() {
    let before = Workflow { origin: None, ..declared(whole()) };
    assert!(!before.is_declared());
    let after = redeclared(&before, whole());
    assert!(after.is_declared());
    assert_eq!(after.updated_at, sample::at(9));
}

#[test]
fn an_undeclared_workflow_is_inactive_until_it_is_declared_again() {
    let off = declared(json!({})).undeclared(sample::at(5));
    assert_eq!((off.active, off.undeclared_at, off.updated_at), {
        (false, Some(sample::at(5)), sample::at(5))
    });
    assert_eq!(off.undeclared(sample::at(6)), off);
    let again = redeclared(&off, json!({}));
    assert_eq!((again.active, again.undeclared_at), (true, None));
    let stays_off = redeclared(&off, json!({ "active": false }));
    assert_eq!((stays_off.active, stays_off.undeclared_at), (false, None));
}

#[test]
fn a_declaration_leaves_a_workflow_as_its_operator_has_set_it() {
    let set = |before: &Workflow, active: bool| {
        let update = serde_json::from_value(json!({ "active": active })).unwrap();
        before.updated(update, ids(100), sample::at(6)).unwrap()
    };
    let off = set(&declared(json!({})), false).undeclared(sample::at(7));
    assert_eq!(off.undeclared_at, None);
    assert!(!redeclared(&off, json!({})).active);
    let undeclared = declared(json!({})).undeclared(sample::at(5));
    assert!(!redeclared(&set(&undeclared, false), json!({})).active);
    assert_eq!(set(&undeclared, true).undeclared_at, None);
}

#[test]
fn a_set_names_each_workflow_once() {
    let workflow = |name: &str| create(json!({ "workflowId": name }));
    let set = WorkflowSync::new(["a", "b", "a"].map(workflow));
    let error = set.check().unwrap_err().to_string();
    assert_eq!(error, "`workflows[2].workflowId` must not be given twice");
    let many = |count: usize| WorkflowSync::new((0..count).map(|n| workflow(&format!("w{n}"))));
    let error = many(1_001).check().unwrap_err().to_string();
    assert_eq!(error, "`workflows` must have at most 1000 items");
    assert_eq!(many(1_000).check(), Ok(()));
    assert_eq!(many(0).delete_undeclared().undeclared, Undeclared::Delete);
    assert_eq!(many(0).deactivate_undeclared().undeclared, Undeclared::Deactivate);
}

fn some_declaration() -> impl Strategy<Value = Value> {
    let step = (0..3_u8, prop::option::of("[ab]"), "[xy]").prop_map(|(kind, name, body)| {
        let mut step = match kind {
            0 => json!({ "type": "in_app", "template": { "body": body } }),
            1 => json!({ "type": "sms", "template": { "body": body } }),
            _ => json!({ "type": "email", "template": { "subject": body, "body": "" } }),
        };
        if let Some(name) = name {
            step["name"] = json!(name);
        }
        step
    });
    let steps = prop::collection::vec(step, 0..5);
    (steps, any::<bool>(), prop::option::of(any::<bool>())).prop_map(|(steps, critical, active)| {
        let steps = named_once(steps);
        let mut fields = json!({ "steps": steps, "critical": critical });
        if let Some(active) = active {
            fields["active"] = json!(active);
        }
        fields
    })
}

// No two steps have the same name.
fn named_once(mut steps: Vec<Value>) -> Vec<Value> {
    let mut names = Vec::new();
    for step in &mut steps {
        let name = step["name"].clone();
        if names.contains(&name) {
            step.as_object_mut().unwrap().remove("name");
        }
        names.push(name);
    }
    steps
}

proptest! {
    #[test]
    fn a_declaration_that_is_repeated_changes_nothing(
        first in some_declaration(),
        second in some_declaration(),
    ) {
        let first = declared(first);
        let once = redeclared(&first, second.clone());
        let again = once.redeclared(create(second), ids(200), sample::at(99)).unwrap();
        prop_assert_eq!(serde_json::to_vec(&again).unwrap(), serde_json::to_vec(&once).unwrap());
    }
}
