//! Workflows that declare their payload.

use serde_json::{Value, json};
use tidings::preview::Preview;
use tidings::workflow::WorkflowCreate;

use crate::world::{in_app, on_both, parsed, with, workflow_of};

fn declared(body: &str) -> Value {
    let schema = json!({
        "type": "object",
        "properties": { "order": { "properties": { "id": { "type": "string" } } } },
        "required": ["order"],
    });
    let step = with(in_app(), json!({ "name": "inbox", "template": { "body": body } }));
    with(workflow_of("order", &[step]), json!({ "payloadSchema": schema }))
}

#[test]
fn triggers_and_templates_are_checked_against_the_schema() {
    on_both(|world| {
        let create = |body: &str| -> WorkflowCreate { parsed(declared(body)) };
        let misspelled = create("{{ payload.order.idd }}");
        world.refuses(
            "422 `steps[0].template.body` is not a valid template: `payload.order` has no field \
             `idd` (did you mean `id`?) in line 1",
            || world.env.workflows().create(&misspelled),
        );
        world.env.workflows().create(&create("Order {{ payload.order.id }}")).unwrap();
        world.env.subscribers().create(&parsed(json!({ "subscriberId": "ada" }))).unwrap();
        for (payload, refusal) in [
            (json!({}), "422 `payload.order` is required"),
            (
                json!({ "order": { "id": 5 } }),
                "422 `payload.order.id` does not match the schema: value is not of type \"string\"",
            ),
        ] {
            let trigger = parsed(json!({ "name": "order", "to": "ada", "payload": payload }));
            world.refuses(refusal, || world.env.events().trigger(&trigger));
            let preview = Preview::new("inbox", "ada").unwrap().payload(payload.clone()).unwrap();
            world.refuses(refusal, || world.env.workflows().preview("order", &preview));
        }
        let payload = json!({ "order": { "id": "A-1" } });
        world.trigger(json!({ "name": "order", "to": "ada", "payload": payload }));
        assert_eq!(world.inbox("ada").len(), 1);

        let update = |change: Value| world.env.workflows().update("order", &parsed(change));
        world.refuses(
            "422 `steps[0].template.body` is not a valid template: `payload` has no field `order` \
             in line 1",
            || update(json!({ "payloadSchema": { "properties": { "other": {} } } })),
        );
        update(json!({ "validatePayload": false })).unwrap();
        world.trigger(json!({ "name": "order", "to": "ada", "payload": {} }));
        assert_eq!(world.inbox("ada").len(), 2);
        let workflow = update(json!({ "payloadSchema": null })).unwrap();
        assert_eq!(workflow.payload_schema, None);
    });
}

/// One row per place of a step that names a field: the step, and the refusal of a misspelled field.
#[test]
fn settings_and_conditions_are_checked_against_the_schema() {
    let say = || with(in_app(), json!({ "template": { "body": "Order" } }));
    let filter = |field: &str| {
        let part = json!({ "field": field, "value": "1", "operator": "EQUAL", "on": "payload" });
        json!([{ "isNegated": false, "type": "GROUP", "value": "AND", "children": [part] }])
    };
    let metadata = |kind: &str, metadata: Value| json!({ "type": kind, "metadata": metadata });
    let rows = |id: &str| {
        let rule =
            json!({ "and": [true, { "==": [{ "var": format!("payload.order.{id}") }, 1] }] });
        let variant = with(say(), json!({ "filters": filter(&format!("order.{id}")) }));
        let (key, rooted) = (format!("order.{id}"), format!("payload.order.{id}"));
        let window = json!({ "amount": 1, "unit": "hours" });
        [
            (
                metadata(
                    "digest",
                    with(window.clone(), json!({ "type": "regular", "digestKey": key })),
                ),
                "metadata.digestKey",
            ),
            (
                metadata("delay", json!({ "type": "scheduled", "delayPath": rooted })),
                "metadata.delayPath",
            ),
            (
                metadata("delay", json!({ "type": "dynamic", "dynamicKey": key })),
                "metadata.dynamicKey",
            ),
            (
                metadata("throttle", with(window, json!({ "throttleKey": rooted }))),
                "metadata.throttleKey",
            ),
            (metadata("throttle", json!({ "dynamicKey": key })), "metadata.dynamicKey"),
            (with(say(), json!({ "filters": filter(&rooted) })), "filters[0].children[0].field"),
            (with(say(), json!({ "runIf": rule })), "runIf.and[1].==[0].var"),
            (
                with(say(), json!({ "variants": [variant] })),
                "variants[0].filters[0].children[0].field",
            ),
        ]
    };
    on_both(|world| {
        for ((misspelled, field), (sound, _)) in rows("idd").into_iter().zip(rows("id")) {
            let create = |step: Value| -> WorkflowCreate {
                parsed(with(declared("Order"), json!({ "steps": [step] })))
            };
            let refusal = format!(
                "422 `steps[0].{field}` has no variable `payload.order.idd`; did you mean \
                 `payload.order.id`?"
            );
            world.refuses(&refusal, || world.env.workflows().create(&create(misspelled.clone())));
            world.env.workflows().create(&create(sound)).unwrap();
            world.env.workflows().delete("order").unwrap();
        }
    });
}

/// The time of a check is bounded, however often the alternatives of a schema refer to the whole. A
/// search along all of them would take 2^61 steps.
#[test]
fn a_nested_payload_is_checked_along_each_alternative_once() {
    let kind = |kind: &str| {
        let inner = json!({ "$ref": "#/$defs/node" });
        json!({ "properties": { "child": inner, "kind": { "const": kind } } })
    };
    let node = json!({ "anyOf": [kind("list"), kind("quote")] });
    let schema = json!({ "$ref": "#/$defs/node", "$defs": { "node": node } });
    let workflow = with(workflow_of("tree", &[in_app()]), json!({ "payloadSchema": schema }));
    let nested = |depth: usize, leaf: &str| {
        let node = |child: Value, _| json!({ "kind": "quote", "child": child });
        (0..depth).fold(json!({ "kind": leaf }), node)
    };
    let event = |payload: Value| parsed(json!({ "name": "tree", "to": "ada", "payload": payload }));
    on_both(|world| {
        world.workflow(workflow.clone());
        world.env.events().trigger(&event(nested(61, "list"))).unwrap();
        world.refuses(
            "422 `payload` does not match the schema: the value is nested too deep for the field \
             to be found",
            || world.env.events().trigger(&event(nested(61, "other"))),
        );
        let shallow = world.env.events().trigger(&event(nested(3, "other"))).unwrap_err();
        let text = "`payload` does not match the schema: value is not valid under any of";
        assert!(shallow.to_string().starts_with(text), "{shallow}");
    });
}
