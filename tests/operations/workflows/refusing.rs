//! Workflows that cannot be.

use serde_json::{Value, json};
use tidings::connection::ChannelConnectionCreate;
use tidings::trigger::Trigger;
use tidings::workflow::{WorkflowCreate, WorkflowUpdate};

use crate::world::{
    NO_ID, in_app, on_both, parsed, payload_is, sms, unreadable, with, workflow_of,
};

#[test]
fn what_is_not_there_is_not_found() {
    on_both(|world| {
        let there = parsed(workflow_of("there", &[in_app()]));
        let there = world.production().workflows().create(&there).unwrap();

        for name in ["", "unknown", "a b", NO_ID, "there", &there.slug(), &there.id.to_string()] {
            let refusal = format!("404 workflow `{name}` is not there");
            world.refuses(&refusal, || world.env.workflows().get(name));
            world.refuses(&refusal, || world.env.workflows().delete(name));
            let update = WorkflowUpdate::default().active(true);
            world.refuses(&refusal, || world.env.workflows().update(name, &update));
        }
    });
}

/// A misspelt identifier of a workflow, a layout or an integration, also among very many.
#[test]
fn the_nearest_name_is_suggested() {
    on_both(|world| {
        let mut names = vec!["order-shipped".to_owned()];
        names.extend((0..70).map(|n| format!("a{n}")));
        for name in &names {
            world.workflow(workflow_of(name, &[in_app()]));
        }
        world.active_integration("email", "sendgrid");
        let frame = json!({ "layoutId": "frame", "name": "Frame" });
        world.env.layouts().upsert(&parsed(frame)).unwrap();
        let env = &world.env;

        let refusal = "404 workflow `order-shiped` is not there; did you mean `order-shipped`?";
        world.refuses(refusal, || env.workflows().get("order-shiped"));
        world.refuses(refusal, || env.workflows().pause("order-shiped"));
        let event = parsed::<Trigger>(json!({ "name": "order-shiped", "to": "ada" }));
        world.refuses(refusal, || env.events().trigger(&event));
        let once = env.idempotent("once").unwrap();
        for _ in 0..2 {
            let refused = once.events().trigger(&event).unwrap_err();
            assert_eq!(format!("404 {refused}"), refusal);
        }
        let refusal = "404 workflow `zz` is not there";
        world.refuses(refusal, || env.workflows().get("zz"));
        let refusal = "404 layout `fame` is not there; did you mean `frame`?";
        world.refuses(refusal, || env.layouts().get("fame"));
        let create = parsed::<ChannelConnectionCreate>(json!({
            "integrationIdentifier": "sendgird", "context": { "tenant": "never" },
            "workspace": { "id": "T1" }, "auth": { "accessToken": "t" },
        }));
        let refusal = "404 integration `sendgird` is not there; did you mean `sendgrid`?";
        world.refuses(refusal, || env.channel_connections().create(&create));
    });
}

/// One row per definition that cannot be: the way to the field, and what is wrong with it. Each is
/// refused when a workflow is created, and when one is changed to it.
#[test]
fn what_cannot_be_run_is_refused() {
    on_both(|world| {
        world.in_app_workflow("taken");
        let check = |fields: Value, refusal: &str| {
            let create = with(workflow_of("new", &[in_app()]), fields.clone());
            world.refuses(refusal, || world.env.workflows().create(&parsed(create)));
            world.refuses(refusal, || world.env.workflows().update("taken", &parsed(fields)));
        };
        let steps = |step: Value| json!({ "steps": [in_app(), step] });

        check(json!({ "name": "" }), "422 `name` must not be empty");
        let long = "ü".repeat(129);
        check(json!({ "name": long }), "422 `name` must be at most 128 characters long");
        let refusal = "422 `description` must be at most 256 characters long";
        check(json!({ "description": "x".repeat(257) }), refusal);
        check(json!({ "tags": vec!["t"; 17] }), "422 `tags` must have at most 16 items");
        let long = json!({ "tags": ["t", "x".repeat(65)] });
        check(long, "422 `tags[1]` must be at most 64 characters long");
        check(json!({ "steps": vec![in_app(); 21] }), "422 `steps` must have at most 20 items");

        let step = json!({
            "type": "digest", "metadata": { "type": "regular", "amount": 0, "unit": "minutes" },
        });
        check(steps(step), "422 `steps[1].metadata.amount` must be between 1 and 5270400");
        let custom = json!({ "type": "custom", "metadata": { "handler": "" } });
        check(steps(custom), "422 `steps[1].metadata.handler` must not be empty");
        let endless = json!({ "template": { "body": "x".repeat(256 * 1024 + 1) } });
        check(
            steps(with(in_app(), endless)),
            "422 `steps[1].template.body` must be at most 262144 bytes long",
        );

        let many = with(in_app(), json!({ "variants": vec![in_app(); 21] }));
        check(steps(many), "422 `steps[1].variants` must have at most 20 items");
        let other = with(in_app(), json!({ "variants": [in_app(), sms()] }));
        check(steps(other), "422 `steps[1].variants[1].type` must be the type of its step");

        let deep = (0..17).fold(
            payload_is("a", "b"),
            |inner, _| json!({ "type": "GROUP", "value": "AND", "children": [inner] }),
        );
        let refusal = "422 `steps[1].filters` must be nested at most 16 levels deep";
        check(steps(with(in_app(), json!({ "filters": [deep] }))), refusal);
        let many: Vec<_> = (0..257).map(|_| payload_is("a", "b")).collect();
        let refusal = "422 `steps[1].variants[0].filters` must have at most 256 items";
        let variant = with(in_app(), json!({ "filters": many }));
        check(steps(with(in_app(), json!({ "variants": [variant] }))), refusal);
        let part = json!({
            "field": "a", "operator": "BETWEEN", "on": "payload", "value": "1",
        });
        let group = json!({ "type": "GROUP", "value": "AND", "children": [part] });
        check(
            steps(with(in_app(), json!({ "filters": [payload_is("a", "b"), group] }))),
            "422 `steps[1].filters[1].children[0].value` must be two values, as in `1,5`",
        );
    });
}

/// One row per template that does not compile: the way to it.
#[test]
fn what_cannot_be_filled_in_is_refused() {
    on_both(|world| {
        world.in_app_workflow("taken");
        let check = |step: Value, field: &str| {
            let create = || parsed(workflow_of("new", &[in_app(), step.clone()]));
            let changed = || parsed(json!({ "steps": [in_app(), step.clone()] }));
            let problem = "is not a valid template: a tag ends too early in line 1";
            let refusal = format!("422 `steps[1].{field}` {problem}");
            world.refuses(&refusal, || world.env.workflows().create(&create()));
            world.refuses(&refusal, || world.env.workflows().update("taken", &changed()));
        };
        let bad = "{% if %}";
        let step = |kind: &str, template: Value| json!({ "type": kind, "template": template });
        let button = |content: &str| json!({ "type": "primary", "content": content });

        check(step("in_app", json!({ "body": bad })), "template.body");
        check(step("in_app", json!({ "body": "", "subject": bad })), "template.subject");
        check(step("in_app", json!({ "body": "", "url": bad })), "template.url");
        let buttons = json!({ "body": "", "buttons": [button("Yes"), button(bad)] });
        check(step("in_app", buttons), "template.buttons[1].content");
        check(step("email", json!({ "subject": bad, "body": "" })), "template.subject");
        check(step("email", json!({ "subject": "", "body": bad })), "template.body");
        let blocks = json!([
            { "type": "text", "content": "Hello" },
            { "type": "button", "content": "Look", "url": bad },
        ]);
        check(step("email", json!({ "subject": "", "body": blocks })), "template.body[1].url");
        check(step("sms", json!({ "body": bad })), "template.body");
        check(step("chat", json!({ "body": bad })), "template.body");
        check(step("push", json!({ "title": bad, "body": "" })), "template.title");
        let variant = with(sms(), json!({ "template": { "body": bad } }));
        let step = with(sms(), json!({ "variants": [sms(), variant] }));
        check(step, "variants[1].template.body");
    });
}

#[test]
fn an_identifier_is_taken_once() {
    on_both(|world| {
        world.in_app_workflow("taken");
        let create = || parsed::<WorkflowCreate>(workflow_of("taken", &[sms()]));

        world.refuses("409 workflow `taken` is there already", || {
            world.env.workflows().create(&create())
        });
        world.production().workflows().create(&create()).unwrap();

        world.env.workflows().delete("taken").unwrap();
        let next = world.env.workflows().create(&create()).unwrap();
        assert_eq!(world.env.workflows().get("taken").unwrap(), next);
    });
}

#[test]
fn what_cannot_be_read_is_refused() {
    let check = |fields: Value, text: &str| {
        let create = with(workflow_of("new", &[in_app()]), fields);
        assert_eq!(unreadable::<WorkflowCreate>(create), text);
    };

    check(json!({ "workflowId": "" }), "`workflowId` must not be empty");
    let joined = "`workflowId` must be letters and digits, joined by single `-`, `_` or `.`";
    check(json!({ "workflowId": "a--b" }), joined);
    check(json!({ "workflowId": "a b" }), joined);
    let long = "x".repeat(256);
    check(json!({ "workflowId": long }), "`workflowId` must be at most 255 bytes long");
    let severity = "`severity` must be one of high, medium, low, none";
    check(json!({ "severity": "huge" }), severity);
    check(json!({ "steps": [{ "type": "sms", "template": {} }] }), "missing field `body`");
    let text = unreadable::<WorkflowCreate>(json!({ "workflowId": "new", "name": "New" }));
    assert_eq!(text, "missing field `steps`");
}

#[test]
fn steps_can_only_keep_ids_that_are_theirs() {
    on_both(|world| {
        let own = world.in_app_workflow("w").steps[0].id;
        let foreign = world.in_app_workflow("other").steps[0].id;
        let check = |ids: &[&str], refusal: &str| {
            let steps: Vec<_> = ids.iter().map(|id| with(in_app(), json!({ "_id": id }))).collect();
            let update = json!({ "steps": steps, "name": "Changed" });
            world.refuses(refusal, || world.env.workflows().update("w", &parsed(update)));
        };

        let (own, foreign) = (own.to_string(), foreign.to_string());
        check(&[&own, &own], "422 `steps[1]._id` must not be given twice");
        let refusal = "422 `steps[0]._id` must be the id of a step that the workflow has";
        check(&[&foreign], refusal);
        check(&[NO_ID], refusal);
    });
}

/// Jobs of the step that are on their way are of the type that it had.
#[test]
fn a_step_that_is_kept_does_what_it_did() {
    on_both(|world| {
        let step = world.in_app_workflow("hello").steps[0].id;
        let update = json!({ "steps": [with(sms(), json!({ "_id": step }))] });
        let update: WorkflowUpdate = parsed(update);

        let refusal = "422 `steps[0].type` must be the type that the step has";
        world.refuses(refusal, || world.env.workflows().update("hello", &update.clone()));
    });
}
