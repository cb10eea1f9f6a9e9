//! Importing the texts of many resources (operation 12).

use serde_json::{Value, json};
use tidings::translation::{ImportResult, TranslationImport};

use super::{get, missing, upsert};
use crate::layouts;
use crate::world::{World, in_app, on_both, parsed, unreadable, wire, with, workflow_of};

#[test]
fn every_resource_is_imported() {
    on_both(|world| {
        world.workflow(with(
            workflow_of("hi", &[in_app()]),
            json!({ "isTranslationEnabled": true }),
        ));
        world.in_app_workflow("bye");

        // 12.1, 12.7, 12.8
        let text = "Grüß {{payload.x | upcase}} 👋";
        let answer = import(
            &world,
            "en-US",
            json!({
                "hi": { "greeting": text, "nested": { "deep": "er" } }, "bye": { "a": "A" },
            }),
        );

        assert_eq!(
            wire(answer),
            json!({
                "success": true,
                "message": "imported 2 resource(s)",
                "successful": ["bye", "hi"],
            })
        );
        // 17.12
        let hi = get(&world, "workflow", "hi", "en_US").unwrap();
        let content = json!({ "greeting": text, "nested": { "deep": "er" } });
        assert_eq!(wire(&hi.content), content);
        assert_eq!((hi.created_at, hi.updated_at), (world.now(), world.now()));
        get(&world, "workflow", "bye", "en_US").unwrap();
        // Decision 46: it is no more to be translated than it was.
        assert!(!world.env.workflows().get("bye").unwrap().is_translation_enabled);
    });
}

#[test]
fn what_cannot_be_imported_is_listed() {
    on_both(|world| {
        for name in ["good", "bad-content"] {
            world.in_app_workflow(name);
        }
        let there = parsed(workflow_of("there", &[in_app()]));
        world.production().workflows().create(&there).unwrap();
        let before = upsert(&world, "workflow", "bad-content", "de", json!({ "a": "A" }));
        world.tick();

        // 12.2
        let answer = import(
            &world,
            "de",
            json!({
                "unknown": { "a": "A" },
                "there": { "a": "A" },
                "good": { "a": "A" },
                "bad-content": { "a": "B", "b": { "c": 1 } },
            }),
        );
        assert_eq!(
            wire(answer),
            json!({
                "success": true,
                "message": "partial import: 1 resource(s) imported, 3 failed",
                "successful": ["good"],
                "failed": ["bad-content", "there", "unknown"],
                "errors": [
                    problem("bad-content", "`content.b.c` must be a text, or texts by their names"),
                    problem("there", "workflow `there` is not there"),
                    problem("unknown", "workflow `unknown` is not there"),
                ],
            })
        );
        get(&world, "workflow", "good", "de").unwrap();
        // 12.1: a resource is imported as a whole, or not at all.
        assert_eq!(get(&world, "workflow", "bad-content", "de").unwrap(), before);

        // 12.3
        let none = json!({ "unknown": {}, "there": {} });
        let answer = world.unchanged(|| import(&world, "de", none));
        assert_eq!(
            wire(answer),
            json!({
                "success": false,
                "message": "failed to import any resource",
                "failed": ["there", "unknown"],
                "errors": [
                    problem("there", "workflow `there` is not there"),
                    problem("unknown", "workflow `unknown` is not there"),
                ],
            })
        );
    });
}

#[test]
fn what_is_imported_again_is_replaced_as_a_whole() {
    on_both(|world| {
        let workflow = world.in_app_workflow("hi");
        let answer = import(&world, "de", json!({ "hi": { "a": "A", "b": "B" } }));
        assert_eq!(answer.failed, [""; 0]);
        let first = get(&world, "workflow", "hi", "de").unwrap();
        let at = world.tick();

        // 12.4, 17.13, and the resource by another of its names.
        let answer = import(&world, "de", json!({ workflow.slug(): { "b": "new" } }));

        assert_eq!(answer.successful, [workflow.slug()]);
        let second = get(&world, "workflow", "hi", "de").unwrap();
        assert_eq!(wire(&second.content), json!({ "b": "new" }));
        assert_eq!(
            (second.id, second.created_at, second.updated_at),
            (first.id, first.created_at, at,)
        );
    });
}

#[test]
fn an_import_of_nothing_succeeds_in_nothing() {
    on_both(|world| {
        // 12.5
        for master in [json!({ "workflows": {} }), json!({}), json!({ "layouts": {} })] {
            let import: TranslationImport = parsed(json!({ "locale": "de", "masterJson": master }));
            let answer = world.unchanged(|| world.env.translations().import(&import).unwrap());
            assert_eq!(
                wire(answer),
                json!({ "success": false, "message": "no supported resources found" })
            );
        }
    });
}

#[test]
fn layouts_are_imported_behind_the_workflows() {
    on_both(|world| {
        world.in_app_workflow("z");
        layouts::upsert(&world, json!({ "layoutId": "a", "name": "A" }));
        let master = json!({
            "workflows": { "z": { "t": "workflow" }, "a": {} },
            "layouts": { "z": {}, "a": { "t": "layout" } },
        });
        let import: TranslationImport = parsed(json!({ "locale": "de", "masterJson": master }));

        let answer = world.env.translations().import(&import).unwrap();

        assert_eq!(
            (answer.successful, answer.failed),
            (vec!["z".into(), "a".into()], vec!["a".into(), "z".into()],)
        );
        assert_eq!(wire(get(&world, "layout", "a", "de").unwrap().content)["t"], "layout");
        missing(&world, "workflow", "z", "fr");
    });
}

#[test]
fn an_import_that_no_rule_allows_is_refused() {
    on_both(|world| {
        world.in_app_workflow("hi");
        let crowd =
            |count: usize| -> Value { (0..count).map(|n| (format!("w{n}"), json!({}))).collect() };
        let mut many = json!({ "workflows": crowd(1_000), "layouts": {} });
        many["workflows"]["w0"].take();
        many["layouts"]["hi"] = json!({ "a": "A" });
        let import: TranslationImport = parsed(json!({ "locale": "de", "masterJson": many }));
        let refusal = "422 `masterJson` must have at most 1000 items";
        world.refuses(refusal, || world.env.translations().import(&import));
    });
    let form = "`locale` must be a locale such as `en` or `en_US`";
    let master = json!({ "workflows": {} });
    for (import, text) in [
        // 12.6
        (json!({ "locale": "invalid-locale-123", "masterJson": master }), form),
        (json!({ "locale": "123", "masterJson": master }), form),
        (json!({ "locale": "", "masterJson": master }), "`locale` must not be empty"),
        (json!({ "masterJson": master }), "missing field `locale`"),
        (json!({ "locale": "de" }), "missing field `masterJson`"),
    ] {
        assert_eq!(unreadable::<TranslationImport>(import), text);
    }
}

/// One row per content that is refused: it is listed as failed, whatever it is.
#[test]
fn content_that_no_rule_allows_fails_alone() {
    let deep = (0..65).fold(json!("text"), |inner, _| json!({ "in": inner }));
    on_both(|world| {
        for name in ["hi", "good"] {
            world.in_app_workflow(name);
        }
        for content in [
            json!(null),
            json!("text"),
            json!(["text"]),
            json!({ "a": null }),
            json!({ "a": true }),
            json!({ "a": 1 }),
            json!({ "a": ["text"] }),
            json!({ "a": { "b": { "c": [] } } }),
            json!({ "a": "x".repeat(1024 * 1024) }),
            deep.clone(),
        ] {
            let answer = import(&world, "de", json!({ "hi": content, "good": { "a": "A" } }));
            assert_eq!(
                (answer.successful, answer.failed),
                (vec!["good".into()], vec!["hi".into()],)
            );
            missing(&world, "workflow", "hi", "de");
        }
    });
}

#[test]
fn a_text_with_a_mistake_is_stored_as_it_is_with_a_warning() {
    on_both(|world| {
        for name in ["hi", "good"] {
            world.in_app_workflow(name);
        }
        let texts = json!({ "a": { "b": "{{ subscriber.fristName }}" }, "c": "C" });

        let answer = import(&world, "de", json!({ "hi": texts, "good": { "a": "A" } }));

        assert_eq!(answer.successful, ["good", "hi"]);
        let reason = "`content.a.b` is not a valid template: `subscriber` has no field `fristName` \
            (did you mean `firstName`?) in line 1";
        let answer = wire(answer);
        assert_eq!(answer["warnings"], json!([problem("hi", reason)]));
        assert_eq!(answer.get("errors"), None);
        let stored = get(&world, "workflow", "hi", "de").unwrap();
        assert_eq!(stored.content["a"]["b"], "{{ subscriber.fristName }}");
    });
}

// What an import says of a workflow.
fn problem(name: &str, message: &str) -> Value {
    json!({ "resourceId": name, "resourceType": "workflow", "message": message })
}

fn import(world: &World, locale: &str, workflows: Value) -> ImportResult {
    let master = Value::from_iter([("workflows", workflows)]);
    let import: TranslationImport = parsed(json!({ "locale": locale, "masterJson": master }));
    world.env.translations().import(&import).unwrap()
}
