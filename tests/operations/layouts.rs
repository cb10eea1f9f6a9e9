//! Layouts: what translations can be for, besides workflows.

use serde_json::{Value, json};
use tidings::layout::{Layout, LayoutUpsert};

use crate::world::{World, changed, names, on_both, parsed, unreadable, wire};

#[test]
fn a_layout_is_created_and_changed_under_its_identifier() {
    on_both(|world| {
        let created = upsert(&world, json!({ "layoutId": "frame", "name": "Frame" }));
        let expected = json!({
            "_id": created.id,
            "_organizationId": "acme",
            "_environmentId": world.env.environment_id(),
            "layoutId": "frame",
            "name": "Frame",
            "isTranslationEnabled": false,
            "createdAt": world.now(),
            "updatedAt": world.now(),
        });
        assert_eq!(wire(&created), expected);

        let at = world.tick();
        let fields = json!({ "layoutId": "frame", "name": "New", "isTranslationEnabled": true });
        let after = upsert(&world, fields.clone());
        let expected = changed(created.clone(), |it| {
            it.name = "New".into();
            it.is_translation_enabled = true;
            it.updated_at = at;
        });
        assert_eq!(after, expected);
        // What is not said stays, and what says the same changes nothing.
        world.tick();
        for same in [fields, json!({ "layoutId": "frame", "name": "New" })] {
            assert_eq!(world.unchanged(|| upsert(&world, same)), after);
        }
        for name in ["frame", &created.id.to_string()] {
            assert_eq!(world.env.layouts().get(name).unwrap(), after);
        }
    });
}

#[test]
fn an_identifier_is_one_before_it_is_an_id() {
    on_both(|world| {
        let first = upsert(&world, json!({ "layoutId": "first", "name": "First" }));
        let id = first.id.to_string();
        let other = upsert(&world, json!({ "layoutId": id, "name": "Other" }));

        assert_eq!(world.env.layouts().get(&id).unwrap(), other);
        world.env.layouts().delete(&id).unwrap();
        assert_eq!(world.env.layouts().get(&id).unwrap(), first);
    });
}

#[test]
fn layouts_are_listed_newest_first() {
    on_both(|world| {
        for (name, translated) in [("a", true), ("b", false), ("c", true)] {
            let fields = json!({
                "layoutId": name, "name": name, "isTranslationEnabled": translated,
            });
            upsert(&world, fields.clone());
            world.production().layouts().upsert(&parsed(fields)).unwrap();
        }
        world.production().layouts().delete("b").unwrap();
        for (query, expected) in [
            (json!({}), "c b a"),
            (json!({ "isTranslationEnabled": true }), "c a"),
            (json!({ "isTranslationEnabled": "false" }), "b"),
            (json!({ "orderDirection": "ASC", "limit": 2 }), "a b"),
        ] {
            let page = world.env.layouts().list(&parsed(query.clone())).unwrap();
            let found = names(&page.data, |layout| layout.identifier.clone());
            assert_eq!(found.join(" "), expected, "{query}");
        }
    });
}

#[test]
fn a_layout_that_is_not_there_is_not_found() {
    on_both(|world| {
        let layout = upsert(&world, json!({ "layoutId": "frame", "name": "Frame" }));
        let id = layout.id.to_string();
        for name in ["frame", &id] {
            let refusal = format!("404 layout `{name}` is not there");
            for there in [world.production(), world.elsewhere()] {
                world.refuses(&refusal, || there.layouts().get(name));
                world.refuses(&refusal, || there.layouts().delete(name));
            }
        }
        world.env.layouts().delete(&id).unwrap();
        for name in ["frame", &id, "", "a b", "unknown"] {
            let refusal = format!("404 layout `{name}` is not there");
            world.refuses(&refusal, || world.env.layouts().get(name));
            world.refuses(&refusal, || world.env.layouts().delete(name));
        }
    });
}

#[test]
fn a_layout_that_no_rule_allows_is_refused() {
    on_both(|world| {
        upsert(&world, json!({ "layoutId": "frame", "name": "n".repeat(128) }));
        let long = "ü".repeat(129);
        for layout in ["frame", "other"] {
            for (name, refusal) in [
                ("", "422 `name` must not be empty"),
                (&long, "422 `name` must be at most 128 characters long"),
            ] {
                let fields: LayoutUpsert = parsed(json!({ "layoutId": layout, "name": name }));
                world.refuses(refusal, || world.env.layouts().upsert(&fields));
            }
        }
    });
    let form = "`layoutId` must be letters and digits, joined by single `-`, `_` or `.`";
    for (fields, text) in [
        (json!({ "name": "x" }), "missing field `layoutId`"),
        (json!({ "layoutId": "x" }), "missing field `name`"),
        (json!({ "layoutId": "", "name": "x" }), "`layoutId` must not be empty"),
        (json!({ "layoutId": "a b", "name": "x" }), form),
        (json!({ "layoutId": "a--b", "name": "x" }), form),
    ] {
        assert_eq!(unreadable::<LayoutUpsert>(fields), text);
    }
}

/// Creates or changes the layout that `fields` describe.
pub fn upsert(world: &World, fields: Value) -> Layout {
    world.env.layouts().upsert(&parsed(fields)).unwrap()
}
