//! Workflows: creating, reading, listing, changing and deleting them.

mod declared;
mod payload;
mod refusing;

use serde_json::{Value, json};
use store::encoding;
use testkit::sealed::is_wanted;
use tidings::ids::WorkflowId;
use tidings::page::PageQuery;
use tidings::workflow::{Workflow, WorkflowQuery};

use crate::world::{
    START, World, email, id, in_app, names, on_both, only, pages, parsed, payload_is, sms, wire,
    with, workflow_of,
};

#[test]
fn a_new_workflow_is_as_it_was_described() {
    on_both(|world| {
        let step = json!({
            "name": "Inbox",
            "type": "in_app",
            "active": false,
            "shouldStopOnFail": true,
            "filters": [payload_is("vip", "true")],
            "template": {
                "subject": "{{ payload.order.id }}",
                "body": "Hello {{ subscriber.firstName }} {{ payload.name }}",
                "url": "https://example.org/{{ payload.name }}",
                "buttons": [{ "type": "secondary", "content": "{{ subscriber.data.n }}" }],
            },
            "variants": [{
                "type": "in_app",
                "active": true,
                "filters": [payload_is("short", "true")],
                "template": { "body": "Hi" },
            }],
            "replyCallback": { "active": true, "url": "https://example.org/replies" },
        });

        let created = world.workflow(json!({
            "workflowId": "order-shipped",
            "name": "Order shipped",
            "description": "Sent when an order leaves.",
            "active": true,
            "critical": true,
            "severity": "high",
            "tags": ["orders", "news"],
            "preferenceSettings": { "enabled": true, "email": false },
            "steps": [step],
            "data": { "a": 1 },
        }));

        let saved = &created.steps[0];
        assert_eq!(
            wire(&created),
            json!({
                "_id": created.id,
                "name": "Order shipped",
                "description": "Sent when an order leaves.",
                "active": true,
                "draft": false,
                "isTranslationEnabled": false,
                "preferenceSettings": { "enabled": true, "email": false },
                "critical": true,
                "tags": ["orders", "news"],
                "steps": [with(step, json!({ "_id": saved.id, "_templateId": saved.content_id }))],
                "_organizationId": "acme",
                "_creatorId": "host",
                "_environmentId": world.env.environment_id(),
                "triggers": [{
                    "type": "event",
                    "identifier": "order-shipped",
                    "variables": [{ "name": "name" }, { "name": "order.id" }],
                    "subscriberVariables": [{ "name": "data.n" }, { "name": "firstName" }],
                }],
                "_notificationGroupId": created.notification_group_id,
                "deleted": false,
                "deletedAt": null,
                "deletedBy": null,
                "data": { "a": 1 },
                "severity": "high",
                "createdAt": START,
                "updatedAt": START,
            })
        );
        assert_eq!(world.env.workflows().get("order-shipped").unwrap(), created);
    });
}

#[test]
fn what_is_not_said_has_a_default() {
    on_both(|world| {
        let created = world.workflow(json!({ "workflowId": "w", "name": "W", "steps": [sms()] }));

        let defaults = json!({
            "description": "", "active": true, "critical": false, "severity": "none", "tags": [],
            "preferenceSettings": {},
        });
        let shown = wire(&created);
        for (field, expected) in defaults.as_object().unwrap() {
            assert_eq!(&shown[field], expected, "{field}");
        }
        let step = &shown["steps"][0];
        assert_eq!(
            (&step["active"], &step["shouldStopOnFail"], &step["filters"]),
            (&json!(true), &json!(false), &json!([]))
        );
    });
}

#[test]
fn a_workflow_is_found_by_each_of_its_names() {
    on_both(|world| {
        let first = world.workflow(json!({ "workflowId": "a.b_c-1", "name": "Ä, b", "steps": [] }));
        let slug = first.slug();
        assert!(slug.starts_with("ä-b_wf_"), "{slug}");

        for name in ["a.b_c-1", &first.id.to_string(), &slug] {
            assert_eq!(world.env.workflows().get(name).unwrap(), first, "{name}");
        }
        // A name that was changed leaves the slugs of old good: the id in them counts.
        let renamed = json!({ "name": "Renamed" });
        let renamed = world.env.workflows().update(&slug, &parsed(renamed)).unwrap();
        assert_eq!(world.env.workflows().get(&slug).unwrap(), renamed);
        // 69: an identifier that looks like a slug or an id is an identifier first.
        for name in [renamed.slug(), first.id.to_string()] {
            let other = world.in_app_workflow(&name);
            assert_eq!(world.env.workflows().get(&name).unwrap(), other);
        }
        world.in_app_workflow("first_wf_signup");
        assert_eq!(world.env.workflows().get("first_wf_signup").unwrap().name, "first_wf_signup");
    });
}

#[test]
fn an_update_changes_what_it_names() {
    on_both(|world| {
        let created = world.workflow_of("w", &[email()]);
        let check = |update: Value, different: Value| {
            let before = world.env.workflows().get("w").unwrap();
            let at = world.tick();

            let updated = change(&world, "w", update);

            let changed = json!({ "updatedAt": at });
            let mut expected = with(with(wire(before), changed), different);
            expected.as_object_mut().unwrap().retain(|field, value| {
                !(value.is_null() && ["data", "preferences"].contains(&field.as_str()))
            });
            assert_eq!(wire(&updated), expected);
            assert_eq!(world.env.workflows().get("w").unwrap(), updated);
        };

        let fields = json!({
            "name": "W", "description": "What", "active": false, "critical": true,
            "severity": "low", "tags": ["t"], "preferenceSettings": { "sms": false },
            "preferences": { "enabled": false }, "data": { "a": 1 },
        });
        for (field, value) in fields.as_object().unwrap() {
            check(json!({ field: value }), json!({ field: value }));
        }
        check(json!({ "data": null }), json!({ "data": null }));
        check(json!({ "preferences": null }), json!({ "preferences": null }));
        // What it is called by triggers is not for an update to change.
        check(json!({ "workflowId": "x", "name": "X" }), json!({ "name": "X" }));

        let before = world.env.workflows().get("w").unwrap();
        world.tick();
        for same in [json!({}), json!({ "name": "X", "critical": true })] {
            assert_eq!(world.unchanged(|| change(&world, "w", same)), before);
        }
        assert_eq!((before.id, before.created_at), (created.id, created.created_at));
    });
}

#[test]
fn steps_that_name_their_ids_keep_them() {
    on_both(|world| {
        let created = world.workflow_of("w", &[in_app(), sms(), email()]);
        let [first, second, third] = &created.steps[..] else { panic!("three steps") };
        let body = json!({ "template": { "body": "{{ payload.new }}" } });

        let updated = change(
            &world,
            "w",
            json!({ "steps": [
            with(email(), json!({ "_id": third.id })),
            in_app(),
            with(with(in_app(), body.clone()), json!({ "_id": first.id })),
        ] }),
        );

        let [third_now, fresh, first_now] = &updated.steps[..] else { panic!("three steps") };
        assert_eq!((third_now.id, third_now.content_id), (third.id, third.content_id));
        assert_eq!(third_now.definition, parsed(email()));
        assert_eq!((first_now.id, first_now.content_id), (first.id, first.content_id));
        assert_eq!(first_now.definition, parsed(with(in_app(), body)));
        assert!([first.id, second.id, third.id].iter().all(|known| *known != fresh.id));
        let before = updated.steps.iter().map(|step| step.parent_id).collect::<Vec<_>>();
        assert_eq!(before, [None, Some(third.id), Some(fresh.id)]);
        assert_eq!(names(&updated.triggers[0].variables, |one| one.name.clone()), ["name", "new"]);
        assert_eq!(updated.triggers[0].identifier.as_str(), "w");
    });
}

/// One row per query: which workflows are listed, newest first.
#[test]
fn every_condition_of_a_list_must_hold() {
    on_both(|world| {
        for (name, active, tags) in
            [("a", true, vec!["x", "y"]), ("b", false, vec!["x"]), ("c", true, vec![])]
        {
            let fields = json!({ "active": active, "tags": tags });
            world.workflow(with(workflow_of(name, &[in_app()]), fields));
        }
        let there = parsed(workflow_of("there", &[]));
        world.production().workflows().create(&there).unwrap();
        let check = |query: Value, expected: &[&str]| {
            let page = world.env.workflows().list(&parsed(query)).unwrap();
            assert_eq!(names(&page.data, |one| one.identifier().clone()), expected);
            assert_eq!(page.total, tidings::page::Total::Exactly(expected.len()));
        };

        check(json!({}), &["c", "b", "a"]);
        check(json!({ "orderDirection": "ASC" }), &["a", "b", "c"]);
        check(json!({ "tag": "x" }), &["b", "a"]);
        check(json!({ "tag": "X" }), &[]);
        check(json!({ "active": true }), &["c", "a"]);
        check(json!({ "active": false }), &["b"]);
        check(json!({ "active": true, "tag": "x" }), &["a"]);

        let query: WorkflowQuery = parsed(json!({ "limit": 101 }));
        let refusal = "422 `limit` must be between 1 and 100";
        world.refuses(refusal, || world.env.workflows().list(&query));
    });
}

#[test]
fn a_list_is_walked_page_by_page() {
    on_both(|world| {
        let mut made = ["e", "d", "c", "b", "a"].map(|name| world.in_app_workflow(name));
        let page = PageQuery::default().limit(2);
        let walk = |active| {
            pages(&page, |page| {
                let mut query = WorkflowQuery::default().page(page);
                query.active = active;
                world.env.workflows().list(&query).unwrap()
            })
        };

        made.reverse();
        let expected = [&made[..2], &made[2..4], &made[4..]];
        assert_eq!(walk(None), expected);
        assert_eq!(walk(Some(true)), expected);
    });
}

#[test]
fn what_was_said_about_a_workflow_goes_with_it() {
    on_both(|world| {
        let gone = world.in_app_workflow("gone");
        let kept = world.in_app_workflow("kept");
        world.bare_subscriber("ada");
        let word = |name| json!({ "workflowId": name, "channels": { "email": false } });
        for context in [json!(null), json!({ "tenant": "acme" })] {
            let words = json!({ "preferences": [word("gone"), word("kept")], "context": context });
            world.env.preferences(id("ada")).unwrap().update_bulk(&parsed(words)).unwrap();
        }

        world.env.workflows().delete("gone").unwrap();

        let about = |workflow: WorkflowId| {
            let id = workflow.to_string();
            let is_about = |value: &[u8]| {
                let json = encoding::json(value).unwrap_or_default();
                String::from_utf8_lossy(&json).contains(&id)
            };
            world.dump().values().filter(|value| is_about(value)).count()
        };
        assert_eq!(about(gone.id), 0);
        // The workflow itself, and two words. The bytes of sealed values say nothing.
        assert_eq!(about(kept.id), if is_wanted() { 0 } else { 3 });
        world.refuses("404 workflow `gone` is not there", || world.env.workflows().get("gone"));
        let shown =
            world.env.preferences(id("ada")).unwrap().get(&parsed(json!({}))).unwrap().workflows;
        assert_eq!(only(shown).workflow.identifier.as_str(), "kept");
    });
}

fn change(world: &World, name: &str, update: Value) -> Workflow {
    world.env.workflows().update(name, &parsed(update)).unwrap()
}
