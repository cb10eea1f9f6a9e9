//! What cannot be translated, and translations that are not there.

use serde_json::{Value, json};
use tidings::contact::Locale;
use tidings::translation::{Resource, Translation, TranslationUpsert};

use super::{delete, get, missing, resource, upsert};
use crate::layouts;
use crate::world::{in_app, on_both, parsed, unreadable, with, workflow_of};

#[test]
fn what_is_not_there_is_not_found() {
    on_both(|world| {
        world.in_app_workflow("hi");
        layouts::upsert(&world, json!({ "layoutId": "frame", "name": "Frame" }));
        upsert(&world, "workflow", "hi", "de_DE", json!({}));
        let translations = world.env.translations();

        // 17.2
        missing(&world, "workflow", "hi", "de");
        missing(&world, "workflow", "hi", "de_AT");
        for (kind, name) in [
            ("workflow", "unknown"),
            ("workflow", "frame"),
            ("layout", "hi"),
            ("layout", "a b"),
            ("workflow", ""),
        ] {
            let refusal = format!("404 {kind} `{name}` is not there");
            world.refuses(&refusal, || get(&world, kind, name, "de_DE"));
            world.refuses(&refusal, || delete(&world, kind, name, "de_DE"));
            // 17.8
            world.refuses(&refusal, || translations.delete_group(&resource(kind, name)));
            let upsert = upsert_of(kind, name, json!({}));
            world.refuses(&refusal, || translations.upsert(&upsert));
        }
        let refusal = "404 translation group `layout/frame` is not there";
        world.refuses(refusal, || translations.delete_group(&resource("layout", "frame")));
    });
}

#[test]
fn what_is_in_another_environment_is_not_found() {
    on_both(|world| {
        let workflow = world.in_app_workflow("hi");
        upsert(&world, "workflow", "hi", "de", json!({}));
        let german = Locale::new("de").unwrap();
        for there in [world.production(), world.elsewhere()] {
            let translations = there.translations();
            for name in ["hi".into(), workflow.id.to_string(), workflow.slug()] {
                let refusal = format!("404 workflow `{name}` is not there");
                let resource = resource("workflow", &name);
                world.refuses(&refusal, || translations.get(&resource, &german));
                world.refuses(&refusal, || translations.delete(&resource, &german));
                world.refuses(&refusal, || translations.delete_group(&resource));
                let upsert = upsert_of("workflow", &name, json!({}));
                world.refuses(&refusal, || translations.upsert(&upsert));
            }
            assert_eq!(translations.list(&parsed(json!({}))).unwrap().data, []);
        }
    });
}

#[test]
fn content_that_no_rule_allows_is_refused_with_the_way_to_it() {
    let text = |field: &str| format!("422 `{field}` must be a text, or texts by their names");
    let frame = r#"{"a":""}"#.len();
    let longest = "x".repeat(Translation::MAX_CONTENT - frame);
    on_both(|world| {
        world.in_app_workflow("hi");
        for (content, refusal) in [
            (json!({ "a": null }), text("content.a")),
            (json!({ "a": "A", "b": { "c": { "d": 1 } } }), text("content.b.c.d")),
            (json!({ "a": [] }), text("content.a")),
            (
                json!({ "a": format!("{longest}x") }),
                "422 `content` must be at most 1048576 bytes long".into(),
            ),
        ] {
            let upsert = upsert_of("workflow", "hi", content);
            world.refuses(&refusal, || world.env.translations().upsert(&upsert));
        }
        upsert(&world, "workflow", "hi", "de", json!({ "a": longest }));
    });
}

/// One row per mistake in a text, which would be sent as its key.
#[test]
fn a_text_with_a_mistake_is_refused_with_the_way_to_it() {
    let invalid = |problem: &str| {
        format!("422 `content.cart.title` is not a valid template: {problem} in line 1")
    };
    let schema = json!({ "type": "object", "properties": { "name": {}, "items": {} } });
    on_both(|world| {
        world.in_app_workflow("hi");
        world.workflow(with(
            workflow_of("strict", &[in_app()]),
            json!({ "payloadSchema": schema, "validatePayload": true }),
        ));
        let layout = json!({ "layoutId": "frame", "name": "Frame" });
        world.env.layouts().upsert(&parsed(layout)).unwrap();
        let field = "`subscriber` has no field `fristName` (did you mean `firstName`?)";
        let payload = "`payload` has no field `naem` (did you mean `name`?)";
        for (kind, name, text, problem) in [
            ("workflow", "hi", "{{ subscriber.fristName }}", field),
            ("layout", "frame", "{{ subscriber.fristName }}", field),
            ("workflow", "hi", "{{ nope( }}", "unexpected `}`"),
            ("workflow", "hi", "{{ t.a }}", "a text of a translation refers to other texts"),
            (
                "workflow",
                "hi",
                "{{ steps.a.read }}",
                "a text of a translation has no results of steps: the template gives it values, as \
                 in `t('key', read=steps.mail.read)`",
            ),
            ("workflow", "strict", "{{ payload.naem }}", payload),
        ] {
            let upsert = upsert_of(kind, name, json!({ "cart": { "title": text } }));
            world.refuses(&invalid(problem), || world.env.translations().upsert(&upsert));
        }
        // A form of a text is a text, and what a template gives to a text has any name.
        let forms = json!({ "items": { "one": "{{ count }}", "other": "{{ cuont }} {{ t.a }}" } });
        let refusal = "422 `content.items.other` is not a valid template: a text of a translation \
            refers to other texts in line 1";
        let upsert_forms = upsert_of("workflow", "hi", forms);
        world.refuses(refusal, || world.env.translations().upsert(&upsert_forms));
        for (name, text) in [
            ("hi", "{{ payload.naem }} {{ cuont }}"),
            ("strict", "{{ payload.name.first }}"),
            ("strict", "}} 100 % { {"),
        ] {
            upsert(&world, "workflow", name, "de", json!({ "cart": { "title": text } }));
        }
    });
}

#[test]
fn what_cannot_be_read_says_why() {
    let whole = || {
        json!({
            "resourceType": "workflow", "resourceId": "hi", "locale": "de", "content": {},
        })
    };
    let but = |field: &str, value: Value| {
        let mut fields = whole();
        fields[field] = value;
        unreadable::<TranslationUpsert>(fields)
    };
    parsed::<TranslationUpsert>(whole());
    // 17.5
    let form = "`locale` must be a locale such as `en` or `en_US`";
    for locale in ["invalid-locale-123", "123", "e", "en_US_x", "en US"] {
        assert_eq!(but("locale", json!(locale)), form);
        assert_eq!(Locale::new(locale).unwrap_err().to_string(), form);
    }
    assert_eq!(but("content", json!([])), "invalid type: sequence, expected a map");
    let deep = (0..65).fold(json!("text"), |inner, _| json!({ "in": inner }));
    assert_eq!(but("content", deep), "`object` must be nested at most 64 levels deep");
    let text = "`resourceType` must be one of workflow, layout";
    assert_eq!(but("resourceType", json!("page")), text);
    assert_eq!(
        unreadable::<Resource>(json!({ "resourceId": "x" })),
        "missing field `resourceType`"
    );
}

fn upsert_of(kind: &str, name: &str, content: Value) -> TranslationUpsert {
    let locale = Locale::new("de").unwrap();
    TranslationUpsert::new(resource(kind, name), locale, content).unwrap()
}
