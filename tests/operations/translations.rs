//! Translations: importing (operation 12), reading (17), deleting one (19) and all of a resource
//! (20).

mod import;
mod refusing;

use serde_json::{Value, json};
use tidings::Result;
use tidings::contact::Locale;
use tidings::translation::{Resource, Translation, TranslationUpsert};

use crate::layouts;
use crate::world::{World, changed, in_app, names, on_both, parsed, wire, with, workflow_of};

#[test]
fn a_translation_is_read_as_it_was_stored() {
    on_both(|world| {
        let workflow = world.in_app_workflow("hi");
        let content = json!({
            "hello": "Hállo {{ payload.x | upcase }} 👋",
            "": "empty name",
            "nested": { "deeper": { "text": "" } },
        });

        let stored = upsert(&world, "workflow", "hi", "de-de", content.clone());

        assert_eq!(
            wire(&stored),
            json!({
                "_id": stored.id,
                "_organizationId": "acme",
                "_environmentId": world.env.environment_id(),
                "resourceId": "hi",
                "resourceType": "workflow",
                "locale": "de_DE",
                "content": content,
                "createdAt": world.now(),
                "updatedAt": world.now(),
            })
        );
        // 17.1
        for name in ["hi".into(), workflow.id.to_string(), workflow.slug()] {
            for locale in ["de_DE", "de-DE", "DE_de"] {
                assert_eq!(get(&world, "workflow", &name, locale).unwrap(), stored);
            }
        }
    });
}

#[test]
fn content_is_replaced_as_a_whole() {
    on_both(|world| {
        let workflow = world.in_app_workflow("hi");
        let first = upsert(&world, "workflow", "hi", "de", json!({ "a": "A", "b": "B" }));
        let french = upsert(&world, "workflow", "hi", "fr", json!({ "a": "A" }));

        // 17.13
        let at = world.tick();
        let content = json!({ "a": "new" });
        let second = upsert(&world, "workflow", &workflow.slug(), "de", content.clone());

        let content = parsed(content);
        assert_eq!(
            second,
            changed(first, |it| {
                it.content = content;
                it.updated_at = at;
            })
        );
        assert_eq!(get(&world, "workflow", "hi", "de").unwrap(), second);
        assert_eq!(get(&world, "workflow", "hi", "fr").unwrap(), french);
    });
}

#[test]
fn a_workflow_and_a_layout_of_one_name_have_their_own_translations() {
    on_both(|world| {
        let shared = "frame";
        world.in_app_workflow(shared);
        let layout = layouts::upsert(&world, json!({ "layoutId": shared, "name": "Frame" }));
        // 17.10
        let of_workflow = upsert(&world, "workflow", shared, "de", json!({ "a": "workflow" }));
        let id = layout.id.to_string();
        let of_layout = upsert(&world, "layout", &id, "de", json!({ "a": "layout" }));

        assert_eq!(of_layout.resource.resource_id, shared);
        assert_eq!(get(&world, "workflow", shared, "de").unwrap(), of_workflow);
        assert_eq!(get(&world, "layout", shared, "de").unwrap(), of_layout);
        world.env.translations().delete_group(&resource("layout", &id)).unwrap();
        assert_eq!(get(&world, "workflow", shared, "de").unwrap(), of_workflow);
        missing(&world, "layout", shared, "de");
    });
}

#[test]
fn one_language_is_deleted_and_the_others_stay() {
    on_both(|world| {
        world.in_app_workflow("hi");
        for locale in ["en_US", "en", "fr_FR"] {
            upsert(&world, "workflow", "hi", locale, json!({ "a": locale }));
        }

        // 17.3, 17.4
        delete(&world, "workflow", "hi", "en-us").unwrap();

        missing(&world, "workflow", "hi", "en_US");
        let refusal = "404 translation `workflow/hi/en_US` is not there";
        world.refuses(refusal, || delete(&world, "workflow", "hi", "en_US"));
        // 17.6
        for locale in ["en", "fr_FR"] {
            assert_eq!(wire(get(&world, "workflow", "hi", locale).unwrap())["locale"], locale);
        }
        // Decision 49: the last one leaves an empty group.
        delete(&world, "workflow", "hi", "en").unwrap();
        delete(&world, "workflow", "hi", "fr_FR").unwrap();
        world.env.translations().delete_group(&resource("workflow", "hi")).unwrap();
        let refusal = "404 translation group `workflow/hi` is not there";
        world.refuses(refusal, || {
            world.env.translations().delete_group(&resource("workflow", "hi"))
        });
    });
}

#[test]
fn what_has_lost_its_translations_can_be_changed() {
    on_both(|world| {
        let text = "{{ t.hello }}";
        let step = json!({ "type": "in_app", "template": { "body": text } });
        world.workflow(json!({
            "workflowId": "hi", "name": "Hi", "active": true, "isTranslationEnabled": true,
            "steps": [step],
        }));
        let frame = |rest: Value| with(json!({ "layoutId": "frame", "name": "Frame" }), rest);
        let framed =
            json!({ "body": format!("{text}{{{{ content }}}}"), "isTranslationEnabled": true });
        layouts::upsert(&world, frame(framed));
        for (kind, name) in [("workflow", "hi"), ("layout", "frame")] {
            upsert(&world, kind, name, "de", json!({ "hello": "Hallo" }));
            world.env.translations().delete_group(&resource(kind, name)).unwrap();
        }

        let update = |update: Value| world.env.workflows().update("hi", &parsed(update));
        assert!(!update(json!({ "active": false })).unwrap().active);
        update(json!({ "isTranslationEnabled": false, "name": "Hello" })).unwrap();
        let renamed = layouts::upsert(&world, frame(json!({ "name": "Other", "isDefault": true })));
        assert_eq!(renamed.name, "Other");
        let refusal = "422 `steps[0].template.body` is not a valid template: `t` needs \
                       `isTranslationEnabled` in line 1";
        let other = json!({ "type": "in_app", "template": { "body": format!("{text}!") } });
        world.refuses(refusal, || update(json!({ "steps": [other] })));
    });
}

#[test]
fn a_group_is_deleted_with_every_language() {
    on_both(|world| {
        // Names of which one begins with the other.
        for name in ["hi", "hi-2"] {
            world.workflow(with(
                workflow_of(name, &[in_app()]),
                json!({ "isTranslationEnabled": true }),
            ));
            for locale in ["en", "fr", "de"] {
                upsert(&world, "workflow", name, locale, json!({ "a": "A" }));
            }
        }
        // 17.11
        delete(&world, "workflow", "hi", "en").unwrap();
        let at = world.tick();

        let slug = world.env.workflows().get("hi").unwrap().slug();
        world.env.translations().delete_group(&resource("workflow", &slug)).unwrap();

        // 17.7
        for locale in ["en", "fr", "de"] {
            missing(&world, "workflow", "hi", locale);
            get(&world, "workflow", "hi-2", locale).unwrap();
        }
        // The workflow is not translated any more, the other one is.
        let [hi, other] = ["hi", "hi-2"].map(|name| world.env.workflows().get(name).unwrap());
        assert!(!hi.is_translation_enabled && other.is_translation_enabled);
        assert_eq!(hi.updated_at, at);
        world.env.translations().delete_group(&resource("workflow", "hi-2")).unwrap();
    });
}

#[test]
fn a_group_is_there_as_soon_as_the_resource_is_to_be_translated() {
    on_both(|world| {
        let translated = json!({ "isTranslationEnabled": true });
        let delete_group =
            |kind, name| world.env.translations().delete_group(&resource(kind, name));
        // 17.9
        world.in_app_workflow("plain");
        layouts::upsert(&world, json!({ "layoutId": "plain", "name": "Plain" }));
        for kind in ["workflow", "layout"] {
            let refusal = format!("404 translation group `{kind}/plain` is not there");
            world.refuses(&refusal, || delete_group(kind, "plain"));
        }

        world.workflow(with(workflow_of("from-start", &[in_app()]), translated.clone()));
        world.env.workflows().update("plain", &parsed(translated.clone())).unwrap();
        for workflow in ["from-start", "plain"] {
            delete_group("workflow", workflow).unwrap();
            let workflow = world.env.workflows().get(workflow).unwrap();
            assert!(!workflow.is_translation_enabled);
        }
        for layout in ["from-start", "plain"] {
            let fields = with(json!({ "layoutId": layout, "name": "x" }), translated.clone());
            layouts::upsert(&world, fields);
            delete_group("layout", layout).unwrap();
            assert!(!world.env.layouts().get(layout).unwrap().is_translation_enabled);
        }
        // Or as soon as there is a translation.
        upsert(&world, "workflow", "plain", "de", json!({}));
        delete_group("workflow", "plain").unwrap();
    });
}

#[test]
fn what_is_translated_takes_its_translations_with_it() {
    on_both(|world| {
        let make = || {
            world.in_app_workflow("hi");
            layouts::upsert(&world, json!({ "layoutId": "hi", "name": "Hi" }));
        };
        make();
        for kind in ["workflow", "layout"] {
            upsert(&world, kind, "hi", "de", json!({ "a": "A" }));
            upsert(&world, kind, "hi", "fr", json!({ "a": "A" }));
        }

        world.env.workflows().delete("hi").unwrap();
        get(&world, "layout", "hi", "de").unwrap();
        world.env.layouts().delete("hi").unwrap();

        let all = world.env.translations().list(&parsed(json!({}))).unwrap();
        assert_eq!(all.data, []);
        // Nothing is left for others of that name.
        make();
        for kind in ["workflow", "layout"] {
            missing(&world, kind, "hi", "de");
            let refusal = format!("404 translation group `{kind}/hi` is not there");
            world
                .refuses(&refusal, || world.env.translations().delete_group(&resource(kind, "hi")));
        }
    });
}

/// One row per query: what it finds, newest first.
#[test]
fn translations_are_listed_by_resource_and_language() {
    let rows = [
        (json!({}), "layout/hi/de workflow/bye/en_US workflow/hi/fr workflow/hi/de"),
        (json!({ "resourceType": "layout" }), "layout/hi/de"),
        (json!({ "resourceId": "hi" }), "layout/hi/de workflow/hi/fr workflow/hi/de"),
        (
            json!({ "resourceType": "workflow", "resourceId": "hi" }),
            "workflow/hi/fr workflow/hi/de",
        ),
        (json!({ "locale": "DE" }), "layout/hi/de workflow/hi/de"),
        (json!({ "locale": "en-us" }), "workflow/bye/en_US"),
        (json!({ "locale": "en" }), ""),
        (json!({ "orderDirection": "ASC", "limit": 1 }), "workflow/hi/de"),
    ];
    on_both(|world| {
        for name in ["hi", "bye"] {
            world.in_app_workflow(name);
        }
        layouts::upsert(&world, json!({ "layoutId": "hi", "name": "Hi" }));
        for (kind, name, locale) in [
            ("workflow", "hi", "de"),
            ("workflow", "hi", "fr"),
            ("workflow", "bye", "en_US"),
            ("layout", "hi", "de"),
        ] {
            upsert(&world, kind, name, locale, json!({}));
        }
        for (query, expected) in &rows {
            let page = world.env.translations().list(&parsed(query.clone())).unwrap();
            let found = names(&page.data, |one| {
                let Resource { resource_type, resource_id, .. } = &one.resource;
                format!("{resource_type}/{resource_id}/{}", one.locale)
            });
            assert_eq!(found.join(" "), *expected, "{query}");
        }
    });
}

/// Stores the texts of a resource in one language.
pub fn upsert(world: &World, kind: &str, name: &str, locale: &str, content: Value) -> Translation {
    let upsert = TranslationUpsert::new(resource(kind, name), locale, content).unwrap();
    world.env.translations().upsert(&upsert).unwrap()
}

/// A workflow or a layout by that name.
pub fn resource(kind: &str, name: &str) -> Resource {
    parsed(json!({ "resourceType": kind, "resourceId": name }))
}

fn get(world: &World, kind: &str, name: &str, locale: &str) -> Result<Translation> {
    world.env.translations().get(&resource(kind, name), Locale::new(locale).unwrap())
}

fn delete(world: &World, kind: &str, name: &str, locale: &str) -> Result<()> {
    world.env.translations().delete(&resource(kind, name), Locale::new(locale).unwrap())
}

#[track_caller]
fn missing(world: &World, kind: &str, name: &str, locale: &str) {
    let refusal = format!("404 translation `{kind}/{name}/{locale}` is not there");
    world.refuses(&refusal, || get(world, kind, name, locale));
}
