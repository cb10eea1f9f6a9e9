use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::sample;

fn upsert(kind: &str, id: &str, locale: &str) -> TranslationUpsert {
    let json = json!({
        "resourceType": kind, "resourceId": id, "locale": locale, "content": { "hi": "Hallo" },
    });
    serde_json::from_value(json).unwrap()
}

fn translation(kind: &str, id: &str, locale: &str) -> Translation {
    Translation::new(sample::id(9), &sample::home(), upsert(kind, id, locale), sample::at(1))
}

fn import(master_json: Value) -> TranslationImport {
    serde_json::from_value(json!({ "locale": "de-at", "masterJson": master_json })).unwrap()
}

/// One row per content: the path of the refusal.
#[test]
fn content_is_texts_by_their_names() {
    for (content, place) in [
        (json!({}), None),
        (json!({ "a": "" }), None),
        (json!({ "a": "A", "b": "{{ payload.x }}" }), None),
        (json!({ "a": { "b": { "c": "C" }, "d": {} } }), None),
        (json!({ "": "A" }), None),
        (json!({ "a": null }), Some("content.a")),
        (json!({ "a": true }), Some("content.a")),
        (json!({ "a": 1 }), Some("content.a")),
        (json!({ "a": ["A"] }), Some("content.a")),
        (json!({ "a": [] }), Some("content.a")),
        (json!({ "a": "A", "b": { "c": { "d": 1.5 } } }), Some("content.b.c.d")),
        (json!({ "a": { "b": { "c": "C" } }, "z": [{ "y": "Y" }] }), Some("content.z")),
    ] {
        let problem = place
            .map(|place| Invalid::new(place, Reason::malformed("a text, or texts by their names")));
        let checked = Translation::check_content(&sample::object(content.clone()));
        assert_eq!(checked.err(), problem, "{content}");
    }
    let deepest = (1..Object::MAX_DEPTH).fold(json!("text"), |inner, _| json!({ "in": inner }));
    let deepest = sample::object(json!({ "a": deepest }));
    assert_eq!(Translation::check_content(&deepest), Ok(()));
}

#[test]
fn content_takes_a_mebibyte_at_most() {
    let around = r#"{"a":""}"#.len();
    let check = |size: usize| {
        let content = sample::object(json!({ "a": "x".repeat(size - around) }));
        Translation::check_content(&content).map_err(|invalid| invalid.to_string())
    };
    assert_eq!(check(1_048_576), Ok(()));
    assert_eq!(check(1_048_577), Err("`content` must be at most 1048576 bytes long".into()));
}

#[test]
fn a_new_one_has_what_it_was_given_and_its_language_in_canonical_form() {
    let translation = translation("layout", "frame", "ZH-hant-tw");
    assert_eq!(translation.locale, "zh_Hant_TW".to_owned().try_into().unwrap());
    let resource_type = ResourceType::Layout;
    assert_eq!(translation.resource, Resource { resource_id: "frame".into(), resource_type });
    assert_eq!(translation.content, sample::object(json!({ "hi": "Hallo" })));
    assert_eq!((translation.created_at, translation.updated_at), (sample::at(1), sample::at(1)));
}

#[test]
fn new_content_takes_the_place_of_the_old() {
    let before = translation("workflow", "welcome", "de");
    let content = sample::object(json!({ "bye": "Tschüss" }));
    let after = before.with_content(content.clone(), sample::at(9));
    assert_eq!(after, Translation { content, updated_at: sample::at(9), ..before });
}

#[test]
fn a_workflow_and_a_layout_of_one_name_are_two_resources() {
    let workflow = Resource::workflow("same");
    let layout = Resource::layout("same");
    assert_ne!(workflow, layout);
    for (resource, kind) in [(workflow, "workflow"), (layout, "layout")] {
        let json = json!({ "resourceId": "same", "resourceType": kind });
        assert_eq!(serde_json::to_value(&resource).unwrap(), json);
    }
}

/// One row per import: successes, failures and the message.
#[test]
fn an_import_reports_its_result() {
    for (successful, failed, success, message) in [
        (vec![], vec![], false, "no supported resources found"),
        (vec![], vec!["a"], false, "failed to import any resource"),
        (vec!["a"], vec![], true, "imported 1 resource(s)"),
        (vec!["b", "a"], vec![], true, "imported 2 resource(s)"),
        (vec!["a", "b"], vec!["c"], true, "partial import: 2 resource(s) imported, 1 failed"),
    ] {
        let owned = |ids: &[&str]| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
        let of = |id: &&str| ImportProblem::new(Resource::workflow(*id), "it is empty");
        let result =
            ImportResult::new(owned(&successful), failed.iter().map(of).collect(), Vec::new());
        let mut json = json!({ "success": success, "message": message });
        let error = |id: &&str| json!({ "resourceId": id, "resourceType": "workflow", "message": "it is empty" });
        let errors: Vec<_> = failed.iter().map(error).collect();
        if !errors.is_empty() {
            json["errors"] = json!(errors);
        }
        for (field, ids) in [("successful", successful), ("failed", failed)] {
            if !ids.is_empty() {
                json[field] = json!(ids);
            }
        }
        assert_eq!(serde_json::to_value(&result).unwrap(), json);
        assert_eq!(serde_json::from_value::<ImportResult>(json).unwrap(), result);
    }
}

#[test]
fn an_import_has_a_fixed_order() {
    let import = import(json!({
        "layouts": { "b": {}, "a": { "x": "X" } },
        "workflows": { "d": {}, "a": 7, "c": null },
    }));
    let resources: Vec<_> = import
        .resources()
        .map(|(resource, texts)| {
            (resource.resource_type.as_str(), resource.resource_id, texts.clone())
        })
        .collect();
    let expected = [
        ("workflow", "a", json!(7)),
        ("workflow", "c", json!(null)),
        ("workflow", "d", json!({})),
        ("layout", "a", json!({ "x": "X" })),
        ("layout", "b", json!({})),
    ];
    assert_eq!(resources, expected.map(|(kind, id, texts)| (kind, id.to_owned(), texts)));
    assert_eq!(import.locale.to_string(), "de_AT");
}

#[test]
fn an_import_has_1000_resources_at_most() {
    let many = |count: usize| (0..count).map(|n| (n.to_string(), json!({}))).collect::<Value>();
    for (workflows, layouts, fits) in
        [(0, 0, true), (1_000, 0, true), (500, 500, true), (1_001, 0, false), (999, 2, false)]
    {
        let import = import(json!({ "workflows": many(workflows), "layouts": many(layouts) }));
        let problem = (!fits).then(|| "`masterJson` must have at most 1000 items".to_owned());
        assert_eq!(import.check().err().map(|invalid| invalid.to_string()), problem);
    }
}

/// One row per import that cannot be read: the refusal.
#[test]
fn the_refusal_of_an_import_names_the_fault() {
    for (json, problem) in [
        (json!({ "masterJson": {} }), "missing field `locale`"),
        (json!({ "locale": "de" }), "missing field `masterJson`"),
        (json!({ "locale": "", "masterJson": {} }), "`locale` must not be empty"),
        (
            json!({ "locale": "german", "masterJson": {} }),
            "`locale` must be a locale such as `en` or `en_US`",
        ),
        (json!({ "locale": "de", "masterJson": "x" }), "invalid type: string"),
        (json!({ "locale": "de", "masterJson": { "workflows": 1 } }), "invalid type: integer `1`"),
    ] {
        let error = serde_json::from_value::<TranslationImport>(json).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn a_query_shows_what_fulfils_all_of_it() {
    let translation = translation("workflow", "welcome", "de-at");
    for (query, matches) in [
        (json!({}), true),
        (json!({ "resourceType": "workflow" }), true),
        (json!({ "resourceType": "layout" }), false),
        (json!({ "resourceId": "welcome" }), true),
        (json!({ "resourceId": "welcom" }), false),
        (json!({ "locale": "de_AT" }), true),
        (json!({ "locale": "DE-at" }), true),
        (json!({ "locale": "de" }), false),
        (json!({ "resourceType": "workflow", "resourceId": "x", "locale": "de_AT" }), false),
        (json!({ "resourceType": "workflow", "resourceId": "welcome", "locale": "de" }), false),
    ] {
        let filtered = query != json!({});
        let query: TranslationQuery = serde_json::from_value(query).unwrap();
        assert_eq!(
            (query.matches(&translation), query.is_filtered()),
            (matches, filtered),
            "{query:?}"
        );
    }
}

/// One row per set of languages: the best ones for the readers of some locales.
#[test]
fn the_best_languages_come_first() {
    let locales = |tags: &str| -> Vec<Locale> {
        tags.split_whitespace().map(|tag| Locale::new(tag).unwrap()).collect()
    };
    for (wants, available, expected) in [
        ("de_DE", "en_US de_CH de de_DE de_AT", "de_DE de de_AT de_CH"),
        ("de_AT en", "en_GB de_DE fr en", "de_DE en en_GB"),
        ("zh_Hant_TW", "zh zh_CN zh_Hant zh_Hant_HK", "zh_Hant zh_Hant_HK zh zh_CN"),
        ("zh_Hant_TW", "zh_CN zh_HK zh_TW", "zh_TW zh_HK zh_CN"),
        ("zh_TW", "zh_Hans zh_Hant", "zh_Hant zh_Hans"),
        ("zh_HK", "zh_CN zh_TW", "zh_TW zh_CN"),
        ("zh", "zh_Hant zh_TW zh_CN", "zh_CN zh_Hant zh_TW"),
        ("zh_Hans_SG", "zh zh_TW zh_CN", "zh zh_CN zh_TW"),
        ("sr_Latn_RS", "sr sr_Latn sr_RS", "sr_Latn sr_RS sr"),
        ("fr it en_US", "en it_CH de", "it_CH en"),
        ("en", "en_AU en_CA en_GB en_IE en_NZ en_US", "en_AU en_CA en_GB en_IE en_NZ"),
        ("pt de de_DE", "de_DE de", "de de_DE"),
        ("xx_XX", "en", ""),
        ("", "en", ""),
    ] {
        let (wants, available) = (locales(wants), locales(available));
        let chain = chain(&wants, &available);
        let found: Vec<_> = chain.iter().map(|one| one.as_str()).collect();
        assert_eq!(found.join(" "), expected, "{wants:?}");
    }
}

fn of(locale: &str, content: Value) -> Translation {
    let upsert =
        TranslationUpsert::new(Resource::workflow("hi"), locale, sample::object(content)).unwrap();
    Translation::new(sample::id(9), &sample::home(), upsert, sample::at(0))
}

/// One row per language and number: the plural form.
#[cfg(feature = "plurals")]
#[test]
fn a_form_is_that_of_the_number_in_its_language() {
    let all = json!({ "n": {
        "zero": "zero", "one": "one", "two": "two", "few": "few", "many": "many", "other": "other",
    } });
    for (locale, rows) in [
        ("en", vec![("0", "other"), ("1", "one"), ("2", "other"), ("1.0", "other"), ("-1", "one")]),
        ("pl_PL", vec![("1", "one"), ("2", "few"), ("5", "many"), ("22", "few"), ("1.5", "other")]),
        ("ar", vec![("0", "zero"), ("1", "one"), ("2", "two"), ("3", "few"), ("11", "many")]),
        ("ja_JP", vec![("1", "other")]),
        ("fr_CA", vec![("0", "one"), ("1.5", "one"), ("2", "other"), ("1000000", "many")]),
        ("xx_XX", vec![("1", "other")]),
        ("en", vec![("", "other"), ("one", "other"), ("1e300", "other"), ("NaN", "other")]),
    ] {
        let translation = of(locale, all.clone());
        for (count, form) in rows {
            assert_eq!(translation.text("n", Some(count)), Some(form), "{locale} {count:?}");
        }
        assert_eq!(translation.text("n", None), Some("other"));
        assert_eq!(translation.text("n", Some(&"9".repeat(1_000_000))), Some("other"));
    }
    let polish = of("pl", json!({ "n": { "one": "one", "other": "other" } }));
    assert_eq!(polish.text("n", Some("3")), Some("other"), "a form that there is not");
}

#[test]
fn names_with_dots_come_before_paths() {
    let content = json!({
        "a": { "b": { "c": "path" }, "b.c": "half", "one": "form", "other": 7 },
        "a.b.d": "flat", "forms": { "other": "o", "fix": "f" },
    });
    let translation = of("en", content);
    for (key, text) in [
        ("a.b.c", Some("half")),
        ("a.b.d", Some("flat")),
        ("a.b", None),
        ("a.one", Some("form")),
        ("a", None),
        ("forms", None),
        ("forms.other", Some("o")),
        ("", None),
        ("a..b", None),
        (".", None),
    ] {
        assert_eq!(translation.text(key, Some("1")), text, "{key}");
    }
    assert!(translation.is_group("a.b") && translation.is_group("forms"));
    assert!(!translation.is_group("a.b.c") && !translation.is_group("x"));
}

#[test]
fn a_text_is_compiled_once_and_at_most_so_many_are_kept() {
    let translation = of("en", json!({ "x": "{{ payload.a }}" }));
    let compiled = |text: &str| translation.template(text).unwrap().unwrap();
    assert!(Arc::ptr_eq(&compiled("{{ payload.a }}"), &compiled("{{ payload.a }}")));
    assert!(translation.template("a { b }").unwrap().is_none());
    for number in 0..400 {
        compiled(&format!("{{{{ payload.a{number} }}}}"));
    }
    assert!(!Arc::ptr_eq(&compiled("{{ payload.a399 }}"), &compiled("{{ payload.a399 }}")));
    // It has a form for each format.
    assert!(translation.prepared_weight() > 20_000);
    assert_eq!(of("en", json!({ "x": "plain" })).prepared_weight(), 0);
}
