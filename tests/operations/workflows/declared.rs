//! Workflows that the host application declares in its code.

use serde_json::{Value, json};
use store::Table;
use testkit::tables::put;
use tidings::workflow::{Workflow, WorkflowCreate, WorkflowOrigin, WorkflowSync};
use uuid::Uuid;

use crate::world::{
    World, email, in_app, names, on_both, only, parsed, payload_is, sms, wire, with, workflow_of,
};

fn declared(identifier: &str, steps: &[Value]) -> WorkflowCreate {
    parsed(json!({ "workflowId": identifier, "name": identifier, "steps": steps }))
}

fn upsert(world: &World, identifier: &str, steps: &[Value]) -> Workflow {
    world.env.workflows().upsert(&declared(identifier, steps)).unwrap()
}

#[test]
fn a_declaration_creates_once_and_changes_what_differs() {
    on_both(|world| {
        let created = upsert(&world, "w", &[in_app(), email()]);
        assert_eq!((created.active, created.origin), (true, Some(WorkflowOrigin::External)));
        assert_eq!(world.env.workflows().get("w").unwrap(), created);

        world.tick();
        let again = world.unchanged(|| upsert(&world, "w", &[in_app(), email()]));
        assert_eq!(wire(&again), wire(&created));

        let at = world.tick();
        let other = with(email(), json!({ "shouldStopOnFail": true }));
        let changed = upsert(&world, "w", &[in_app(), other]);
        assert_eq!(changed.updated_at, at);
        let ids = |workflow: &Workflow| names(&workflow.steps, |step| step.id);
        assert_eq!(ids(&changed), ids(&created));
        assert_eq!(world.env.workflows().get("w").unwrap(), changed);
    });
}

/// What a host does when it starts, between a trigger and the sending.
#[test]
fn what_is_on_its_way_when_the_host_starts_again_is_sent() {
    on_both(|world| {
        world.active_integration("email", "ses");
        world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
        let steps = [in_app(), email()];
        let declare: [&dyn Fn(&World); 3] = [
            &|world| drop(upsert(world, "mail", &steps)),
            &|world| {
                let workflows = [declared("mail", &steps)];
                drop(world.env.workflows().sync(&WorkflowSync::new(workflows.clone())).unwrap());
            },
            &|world| {
                let update = parsed(json!({ "steps": steps }));
                drop(world.env.workflows().update("mail", &update).unwrap());
            },
        ];
        for declare in declare {
            upsert(&world, "mail", &steps);
            world.notify("mail", "ada");
            declare(&world);
            assert_eq!(world.run_due().sent, 1);
        }
    });
}

#[test]
fn what_an_operator_has_switched_off_stays_off() {
    on_both(|world| {
        upsert(&world, "w", &[sms()]);
        let off = parsed(json!({ "active": false }));
        world.env.workflows().update("w", &off).unwrap();

        let kept = world.unchanged(|| upsert(&world, "w", &[sms()]));
        assert!(!kept.active);
        let report = world.unchanged(|| {
            world.env.workflows().sync(&WorkflowSync::new([declared("w", &[sms()])])).unwrap()
        });
        assert_eq!(names(&report.unchanged, Clone::clone), ["w"]);
        let on = world.env.workflows().upsert(&parsed(workflow_of("w", &[sms()]))).unwrap();
        assert!(on.active);

        let mail = json!({ "identifier": "mail", "providerId": "ses", "channel": "email" });
        let id = world.env.integrations().upsert(&parsed(mail.clone())).unwrap().id;
        world.env.integrations().update(id, &off_integration()).unwrap();
        let kept =
            world.unchanged(|| world.env.integrations().upsert(&parsed(mail.clone())).unwrap());
        assert!(!kept.is_active());
    });
}

fn off_integration() -> tidings::integration::IntegrationUpdate {
    parsed(json!({ "active": false }))
}

#[test]
fn a_set_is_reported_by_what_became_of_each() {
    on_both(|world| {
        let (a, b) = (declared("a", &[in_app()]), declared("b", &[in_app()]));
        // Not declared in code: it is none of the set's business.
        world.in_app_workflow("of-an-operator");
        let report = world.env.workflows().sync(&WorkflowSync::new([a.clone(), b])).unwrap();
        assert_eq!(wire(report), lists(&["a", "b"], &[], &[], &[]));

        let workflows = [declared("c", &[sms()]), a, declared("b", &[sms()])];
        let report = world.env.workflows().sync(&WorkflowSync::new(workflows.clone())).unwrap();
        assert_eq!(wire(report), lists(&["c"], &["b"], &["a"], &[]));

        let report = world.unchanged(|| {
            world.env.workflows().sync(&WorkflowSync::new(workflows[..1].to_vec())).unwrap()
        });
        assert_eq!(wire(report), lists(&[], &[], &["c"], &["a", "b"]));
    });
}

fn lists(created: &[&str], changed: &[&str], unchanged: &[&str], undeclared: &[&str]) -> Value {
    json!({
        "created": created, "changed": changed, "unchanged": unchanged, "undeclared": undeclared,
    })
}

#[test]
fn what_is_no_longer_declared_is_kept_unless_the_request_says_otherwise() {
    on_both(|world| {
        world.in_app_workflow("of-an-operator");
        world.bare_subscriber("ada");
        let all = ["a", "b", "c"].map(|name| declared(name, &[in_app()]));
        world.env.workflows().sync(&WorkflowSync::new(all)).unwrap();
        let words = json!({ "preferences": [
            { "workflowId": "b", "channels": { "email": false } },
        ] });
        world.env.preferences("ada").unwrap().update_bulk(&parsed(words)).unwrap();

        let set = || WorkflowSync::new([declared("a", &[in_app()])]);
        let at = world.tick();
        let report = world.env.workflows().sync(&set().deactivate_undeclared()).unwrap();
        assert_eq!(wire(report), lists(&[], &[], &["a"], &["b", "c"]));
        let off = world.env.workflows().get("b").unwrap();
        assert_eq!((off.active, off.updated_at), (false, at));
        assert!(world.env.workflows().get("of-an-operator").unwrap().active);

        let rolled_back = set().workflows.into_iter().chain([declared("b", &[in_app()])]);
        let report = world.env.workflows().sync(&WorkflowSync::new(rolled_back)).unwrap();
        assert_eq!(wire(report), lists(&[], &["b"], &["a"], &["c"]));
        assert!(world.env.workflows().get("b").unwrap().active);
        assert!(!world.env.workflows().get("c").unwrap().active);

        let report = world.env.workflows().sync(&set().delete_undeclared()).unwrap();
        assert_eq!(wire(report), lists(&[], &[], &["a"], &["b", "c"]));
        for gone in ["b", "c"] {
            assert_eq!(world.env.workflows().find(gone).unwrap(), None);
        }
        assert!(world.env.workflows().find("of-an-operator").unwrap().is_some());
        let report = world.env.workflows().sync(&set().delete_undeclared()).unwrap();
        assert_eq!(wire(report), lists(&[], &[], &["a"], &[]));
    });
}

#[test]
fn a_set_is_refused_as_a_whole() {
    on_both(|world| {
        let between = json!([{ "type": "GROUP", "value": "AND", "children": [
            { "field": "a", "operator": "BETWEEN", "value": "1", "on": "payload" },
        ] }]);
        let bad = with(in_app(), json!({ "filters": between }));
        let workflows = [
            declared("a", &[with(in_app(), json!({ "filters": [payload_is("a", "b")] }))]),
            declared("b", &[in_app(), bad]),
        ];
        world.refuses(
            "422 `workflows[1].steps[1].filters[0].children[0].value` must be two values, as in \
             `1,5`",
            || world.env.workflows().sync(&WorkflowSync::new(workflows.clone())),
        );
        let twice = [declared("a", &[]), declared("a", &[])];
        let refusal = "422 `workflows[1].workflowId` must not be given twice";
        world.refuses(refusal, || world.env.workflows().sync(&WorkflowSync::new(twice.clone())));
    });
}

#[test]
fn an_integration_is_declared_by_its_identifier() {
    on_both(|world| {
        let mail = json!({ "identifier": "mail", "providerId": "ses", "channel": "email" });
        let upsert =
            |fields: Value| world.env.integrations().upsert(&parsed(with(mail.clone(), fields)));
        let created = upsert(json!({})).unwrap();
        assert!(created.is_primary());
        assert_eq!(world.unchanged(|| upsert(json!({})).unwrap()), created);

        let key = json!({ "credentials": { "apiKey": "new" }, "name": "Mail" });
        let changed = upsert(key).unwrap();
        assert_eq!((changed.id, changed.name.as_str()), (created.id, "Mail"));
        assert!(changed.is_primary());
        assert_eq!(only(world.env.integrations().list().unwrap()), changed);
        // What the declaration leaves out is gone.
        assert_eq!(upsert(json!({})).unwrap(), created);
        assert!(!upsert(json!({ "active": false })).unwrap().is_active());

        for (field, has, other) in [("channel", "email", "sms"), ("providerId", "ses", "sendgrid")]
        {
            let refusal = format!(
                "422 `{field}` must be `{has}`, as that of the integration `mail`; \
                 another one has another identifier"
            );
            world.refuses(&refusal, || upsert(json!({ field: other })));
        }
        let unnamed = json!({ "providerId": "ses", "channel": "email" });
        world.refuses("422 `identifier` is required", || {
            world.env.integrations().upsert(&parsed(unnamed.clone()))
        });
    });
}

/// A host declares its workflows when it starts. Another one that cannot be read does not keep it from that.
#[test]
fn a_synchronization_passes_over_workflows_that_cannot_be_read() {
    let synchronizations: [fn(WorkflowSync) -> WorkflowSync; 3] =
        [|sync| sync, WorkflowSync::deactivate_undeclared, WorkflowSync::delete_undeclared];
    for (which, configure) in synchronizations.into_iter().enumerate() {
        on_both(|world| {
            let damaged = upsert(&world, "damaged", &[in_app()]);
            upsert(&world, "other", &[in_app()]);
            let rows = world.dump();
            let of_it = |(table, key): &&(&'static str, Vec<u8>)| {
                *table == Table::Workflows.name()
                    && key.ends_with(Uuid::from(damaged.id).as_bytes())
            };
            let (_, key) = rows.keys().find(of_it).unwrap();
            put(&world.store, Table::Workflows, key, Some(b"damaged"));
            let sync = configure(WorkflowSync::new([declared("new", &[in_app()])]));

            let answer = world.env.workflows().sync(&sync);

            // What is deleted has to be known.
            if which == 2 {
                assert_eq!(answer.unwrap_err().status(), 500);
                return;
            }
            let report = answer.unwrap();
            assert_eq!(
                (only(report.created).as_str(), only(report.undeclared).as_str()),
                ("new", "other")
            );
            assert_eq!(world.env.workflows().get("other").unwrap().active, which == 0);
        });
    }
}
