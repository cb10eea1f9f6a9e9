//! Saying something about several workflows at once (operation 6).

use serde_json::{Value, json};
use tidings::preference::{UpdatedPreference, WorkflowPreferenceUpdate, WorkflowPreferenceUpdates};
use tidings::workflow::Workflow;

use super::{all, get};
use crate::world::{
    World, email, id, in_app, names, on_both, only, parsed, unreadable, wire, with, workflow_of,
};

#[test]
fn words_about_several_workflows_are_kept_together() {
    on_both(|world| {
        world.bare_subscriber("ada");
        let [first, second, third] =
            ["one", "two", "three"].map(|name| world.in_app_workflow(name));
        let at = world.tick();

        // 6.1, 6.7, 6.9, 6.13
        let updated = update(
            &world,
            json!([
                { "workflowId": third.slug(), "channels": { "push": false } },
                { "workflowId": first.id, "channels": { "email": false, "sms": true } },
                { "workflowId": "two", "channels": { "in_app": false } },
            ]),
        );

        let expected = |workflow: &Workflow, off: &str| {
            json!({
                "level": "template",
                "workflow": {
                    "id": workflow.id,
                    "identifier": workflow.identifier(),
                    "name": workflow.name,
                    "critical": false,
                    "severity": "none",
                },
                "enabled": true,
                "channels": with(all(true), json!({ off: false })),
            })
        };
        assert_eq!(
            wire(updated),
            json!([
                expected(&third, "push"),
                expected(&first, "email"),
                expected(&second, "in_app"),
            ])
        );
        let shown = get(&world, json!({})).workflows;
        for (shown, off) in shown.iter().zip(["email", "in_app", "push"]) {
            assert_eq!(wire(shown.channels), with(all(true), json!({ off: false })));
            assert_eq!(shown.updated_at, Some(at));
        }
        assert_eq!(shown.len(), 3);
    });
}

#[test]
fn a_workflow_is_shown_with_what_is_known_about_it() {
    on_both(|world| {
        world.bare_subscriber("ada");
        let known = json!({ "tags": ["news"], "data": { "a": 1 }, "severity": "high" });
        let workflow = world.workflow(with(workflow_of("hi", &[in_app()]), known));

        let updated = update(&world, json!([{ "workflowId": "hi", "channels": {} }]));

        assert_eq!(
            wire(only(updated).workflow),
            json!({
                "id": workflow.id,
                "identifier": "hi",
                "name": "hi",
                "critical": false,
                "tags": ["news"],
                "data": { "a": 1 },
                "severity": "high",
            })
        );
    });
}

#[test]
fn of_two_words_about_a_workflow_the_last_one_holds() {
    on_both(|world| {
        world.bare_subscriber("ada");
        let workflow = world.workflow_of("hi", &[email()]);
        world.workflow_of("other", &[email()]);

        // 6.8, 6.13
        let updated = update(
            &world,
            json!([
                { "workflowId": workflow.id, "channels": { "email": true, "sms": false } },
                { "workflowId": "other", "channels": {} },
                { "workflowId": "hi", "channels": { "email": false } },
            ]),
        );

        let named =
            |updated: &UpdatedPreference| updated.workflow.as_ref().unwrap().identifier.clone();
        assert_eq!(names(&updated, named), ["hi", "other"]);
        assert_eq!(wire(updated[0].channels), with(all(true), json!({ "email": false })));
    });
}

#[test]
fn what_is_not_named_keeps_its_word() {
    on_both(|world| {
        world.bare_subscriber("ada");
        world.workflow_of("hi", &[email()]);
        update(&world, json!([{ "workflowId": "hi", "channels": { "in_app": false } }]));

        // 6.12
        let updated =
            update(&world, json!([{ "workflowId": "hi", "channels": { "email": false } }]));

        let expected = with(all(true), json!({ "in_app": false, "email": false }));
        assert_eq!(wire(only(updated).channels), expected);
        assert_eq!(wire(get(&world, json!({})).workflows[0].channels), expected);
    });
}

#[test]
fn a_slug_that_was_read_can_be_written() {
    on_both(|world| {
        world.bare_subscriber("ada");
        let create = workflow_of("hi", &[email()]);
        world.workflow(with(create, json!({ "name": "Hello,  World" })));

        // 10.12
        let slug = get(&world, json!({})).workflows[0].workflow.slug.clone();
        update(&world, json!([{ "workflowId": slug, "channels": { "email": false } }]));

        let shown = get(&world, json!({})).workflows;
        assert_eq!(wire(shown[0].channels), with(all(true), json!({ "email": false })));
        assert!(slug.starts_with("hello-world_wf_"), "{slug}");
    });
}

#[test]
fn an_identifier_is_one_before_it_is_anything_else() {
    on_both(|world| {
        world.bare_subscriber("ada");
        let first = world.in_app_workflow("first");
        // Called what the other one's id and slug are.
        for name in [first.id.to_string(), first.slug()] {
            let other = world.in_app_workflow(&name);

            let updated = update(&world, json!([{ "workflowId": name, "channels": {} }]));

            assert_eq!(only(updated).workflow.unwrap().id, other.id);
        }
    });
}

#[test]
fn words_for_a_context_are_heard_in_it_alone() {
    on_both(|world| {
        world.bare_subscriber("ada");
        world.workflow_of("hi", &[email()]);
        let say = |context: Value, enabled: bool| {
            let word = json!({ "workflowId": "hi", "channels": { "email": enabled } });
            let update: WorkflowPreferenceUpdates =
                parsed(json!({ "preferences": [word], "context": context }));
            world.env.preferences(id("ada")).unwrap().update_bulk(&update).unwrap();
        };
        let heard = |keys: Value| {
            let shown = get(&world, json!({ "contextKeys": keys })).workflows;
            (wire(shown[0].channels)["email"].clone(), shown[0].updated_at.is_some())
        };

        // 6.10, 6.11
        say(json!({ "tenant": "acme" }), false);
        assert_eq!(heard(json!(["tenant:acme"])), (json!(false), true));
        assert_eq!(heard(json!([])), (json!(true), false));
        say(json!({ "tenant": { "id": "globex", "data": { "plan": "pro" } } }), true);
        assert_eq!(heard(json!(["tenant:acme"])), (json!(false), true));
        assert_eq!(heard(json!(["tenant:globex"])), (json!(true), true));
        // A context that is there keeps its data; one that is new has what is said about it.
        let data = |key: &str| wire(world.env.contexts().get(key).unwrap())["data"].clone();
        assert_eq!(data("tenant:globex"), json!({ "plan": "pro" }));
        say(json!({ "tenant": { "id": "globex", "data": { "plan": "free" } } }), true);
        assert_eq!(data("tenant:globex"), json!({ "plan": "pro" }));
    });
}

#[test]
fn an_update_holds_as_a_whole_or_not_at_all() {
    on_both(|world| {
        world.bare_subscriber("ada");
        world.in_app_workflow("good");
        let critical = json!({ "critical": true });
        for name in ["alarm", "security"] {
            world.workflow(with(workflow_of(name, &[in_app()]), critical.clone()));
        }
        let there = parsed(workflow_of("there", &[in_app()]));
        let there = world.production().workflows().create(&there).unwrap();
        let check = |who: &str, workflows: &[&str], refusal: &str| {
            let word = |name: &&str| json!({ "workflowId": name, "channels": { "email": false } });
            let words: Vec<_> = workflows.iter().map(word).collect();
            let update = parsed(json!({ "preferences": words, "context": { "tenant": "acme" } }));
            world.refuses(refusal, || world.env.preferences(id(who)).unwrap().update_bulk(&update));
        };

        // 6.5
        check("ada", &[], "422 `preferences` must not be empty");
        // 6.2
        let many = vec!["good"; 101];
        check("ada", &many, "422 `preferences` must have at most 100 items");
        // 6.3
        check("eve", &["good"], "404 subscriber `eve` is not there");
        // 6.4
        check("ada", &["good", "unknown"], "404 workflow `unknown` is not there");
        check(
            "ada",
            &["unknown", "good", "there", &there.slug(), "alarm"],
            &format!("404 workflows `unknown`, `there`, `{}` are not there", there.slug()),
        );
        // 6.6
        check(
            "ada",
            &["good", "alarm", "security"],
            "400 critical workflows take no preferences: alarm, security",
        );
    });
    let word = |fields: Value| unreadable::<WorkflowPreferenceUpdate>(fields);
    assert_eq!(word(json!({ "workflowId": "hi" })), "missing field `channels`");
    assert_eq!(word(json!({ "channels": {} })), "missing field `workflowId`");
}

#[test]
fn a_hundred_words_are_not_too_many() {
    on_both(|world| {
        world.bare_subscriber("ada");
        world.in_app_workflow("hi");
        let words = vec![json!({ "workflowId": "hi", "channels": { "email": false } }); 100];

        assert_eq!(update(&world, json!(words)).len(), 1);
    });
}

pub(super) fn update(world: &World, words: Value) -> Vec<UpdatedPreference> {
    let update = WorkflowPreferenceUpdates::default()
        .preferences(parsed::<Vec<WorkflowPreferenceUpdate>>(words));
    world.env.preferences(id("ada")).unwrap().update_bulk(&update).unwrap()
}

#[test]
fn what_says_nothing_new_changes_nothing() {
    on_both(|world| {
        world.bare_subscriber("ada");
        world.in_app_workflow("one");
        let nothing = json!([{ "workflowId": "one", "channels": {} }]);
        world.unchanged(|| update(&world, nothing.clone()));

        let word = json!([{ "workflowId": "one", "channels": { "email": false } }]);
        update(&world, word.clone());
        world.tick();
        world.unchanged(|| update(&world, word));
        world.unchanged(|| update(&world, nothing));
    });
}
