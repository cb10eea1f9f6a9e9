//! Texts of translations, dates and times, and missing variables.

use std::sync::Arc;

use minijinja::value::Kwargs;
use serde_json::{Value as Json, json};

use super::super::texts::Translator;
use super::super::*;
use crate::sample;
use crate::translation::{Resource, Translation, TranslationUpsert};

fn translation(locale: &str, content: Json) -> Arc<Translation> {
    let resource = Resource::workflow("hi");
    let upsert = TranslationUpsert::new(resource, locale, sample::object(content)).unwrap();
    Arc::new(Translation::new(sample::id(9), &sample::home(), upsert, sample::at(0)))
}

fn variables() -> Variables {
    let german = translation(
        "de_DE",
        json!({
            "hello": "Hallo <b>{{ subscriber.firstName }}</b>",
            "cart": { "title": "Korb", "items": { "one": "{{ count }} Ding", "other": "{{ count }} Dinge" } },
            "broken": "{{ payload.a | shout }}",
            "lost": "{{ payload.a | shout }}",
            "loop": "{{ t.loop }}",
            "results": "{{ steps.mail.read }}",
            "given": "{{ 'read' if read else 'unread' }}",
            "a.b": "flat",
            "greets": "{{ who }}, {{ payload.a }}",
            "gap": "[{{ payload.nothing }}]",
            "split": "<i>{{ payload.a }}</i>",
            "forms": "Text",
        }),
    );
    let english = translation(
        "en",
        json!({
            "broken": "whole",
            "only": "English {# no #}text",
            "split": { "short": "s" },
            "forms": { "one": "1", "few": "some" },
            "cart": { "title": { "long": "A long title" } },
            "later": { "part": "p" },
        }),
    );
    let french = translation("fr", json!({ "later": "Plus tard" }));
    let known = json!({
        "payload": { "a": "<A>", "n": 3, "key": "cart.title", "part": "title", "none": null },
        "subscriber": { "firstName": "Ada & Co", "timezone": "Europe/Berlin" },
        "steps": { "mail": { "read": true } },
    });
    Variables::new(known).texts(Texts::new([german, english, french]))
}

/// One row per template: what it renders as, and the keys that it notes.
#[test]
fn texts_are_found_by_their_keys() {
    for (template, expected, notes) in [
        ("{{ t.cart.title }}", "Korb", vec![]),
        ("{{ t['cart'].title }}{{ t['cart']['title'] }}", "KorbKorb", vec![]),
        ("{{ t[payload.key] }}{{ t.cart[payload.part] }}", "KorbKorb", vec![]),
        ("{{ (t).cart.title | upper }}", "KORB", vec![]),
        ("{{ t.a.b }}", "flat", vec![]),
        ("{{ t.hello }}", "Hallo <b>Ada & Co</b>", vec![]),
        ("{{ t(payload.key) }}{{ payload.key | t }}", "KorbKorb", vec![]),
        ("{{ t('cart.items', count=payload.n) }}", "3 Dinge", vec![]),
        ("{{ 'cart.items' | t(count=payload.n) }}", "3 Dinge", vec![]),
        ("{{ t.cart('items', count=1) if false }}", "", vec![]),
        ("{{ t('greets', who='Bob') }}", "Bob, <A>", vec![]),
        ("{{ t.greets }}", ", <A>", vec![]),
        ("{{ t('given', read=steps.mail.read) }}", "read", vec![]),
        ("{{ t.cart.items }}", " Dinge", vec![]),
        ("{{ t.cart.items.one }}", " Ding", vec![]),
        ("{{ t.only }}", "English text", vec![]),
        // What one language has as a text, another one may have as a structure.
        ("{{ t.split }}{{ t.split.short }}", "<i><A></i>s", vec![]),
        ("{{ t.forms }}{{ t['forms'] }}{{ t('forms') }}", "TextTextText", vec![]),
        ("{{ t.forms | upper }}{{ t.forms ~ '!' }}", "TEXTText!", vec![]),
        ("{{ t.forms[:3] }}{{ t.forms[::-1] }}", "TextxeT", vec![]),
        ("{{ t.cart.title }}, {{ t.cart.title.long }}", "Korb, A long title", vec![]),
        ("{{ t.later }}{{ t.later.part }}", "Plus tardp", vec![]),
        ("{{ t.nothing }}", "nothing", vec![TextNote::Missing("nothing".into())]),
        ("{{ t.cart.x.y | upper }}", "CART.X.Y", vec![TextNote::Missing("cart.x.y".into())]),
        ("{{ t.cart }}", "cart", vec![TextNote::Missing("cart".into())]),
        ("{{ t('x', n=1) }}{{ t.x }}", "xx", vec![TextNote::Missing("x".into())]),
        (
            "{% for one in ['a', 'cart.title'] %}{{ one | t }} {% endfor %}",
            "a Korb ",
            vec![TextNote::Missing("a".into())],
        ),
        ("{% set t = 'own' %}{{ t }}", "own", vec![]),
        // A key that is absent is an empty text, as it is before the filter.
        ("[{{ t(payload.none) }}]", "[]", vec![TextNote::Missing(String::new())]),
        ("[{{ t(payload.x) }}{{ payload.x | t }}]", "[]", vec![TextNote::Missing(String::new())]),
    ] {
        if template.contains("t.cart(") {
            assert!(Template::new(template).is_err());
            continue;
        }
        let variables = variables();
        let rendered = Template::new(template).unwrap().render(Format::Plain, &variables);
        assert_eq!(rendered.as_deref(), Ok(expected), "{template}");
        assert_eq!(variables.notes(), notes, "{template}");
    }
}

#[cfg(feature = "plurals")]
#[test]
fn a_count_chooses_the_form_of_a_text() {
    for (template, expected) in [
        ("{{ t('cart.items', count=1) }}", "1 Ding"),
        ("{{ 'cart.items' | t(count=payload.n) }}", "3 Dinge"),
    ] {
        let rendered = Template::new(template).unwrap().render(Format::Plain, &variables());
        assert_eq!(rendered.as_deref(), Ok(expected), "{template}");
    }
}

#[test]
fn markup_of_a_text_stays_and_that_of_values_is_escaped() {
    let render =
        |text: &str| Template::new(text).unwrap().render(Format::Html, &variables()).unwrap();
    assert_eq!(render("{{ t.hello }}"), "Hallo <b>Ada &amp; Co</b>");
    assert_eq!(render("{{ t('greets', who='<i>') }}"), "&lt;i&gt;, &lt;A&gt;");
    assert_eq!(render("{{ t.split }}"), "<i>&lt;A&gt;</i>", "nor if another language has more");
    for more in [
        "{{ t.split ~ '!' }}",
        "{{ t.split + '!' }}",
        "{{ t.split | trim ~ '!' }}",
        "{{ t.split | replace('?', '!') }}!",
        "{{ [t.split, '!'] | join }}",
        "{{ ('%s' | safe) | format(t.split) }}!",
        "{{ ['', '!'] | join(t.split) }}",
        "{{ ['', '!'] | join(d=t.split) }}",
        "{{ ('%(x)s' | safe) | format(x=t.split) }}!",
        "{{ ('%(x)s' | safe) | format({'x': t.split}) }}!",
    ] {
        assert_eq!(render(more), "<i>&lt;A&gt;</i>!", "{more}");
    }
    let joined = "Hallo <b>Ada &amp; Co</b>&lt;A&gt;!";
    assert_eq!(render("{{ t.hello ~ payload.a ~ '!' }}"), joined);
    assert_eq!(render("{{ t.hello + payload.a + '!' }}"), joined);
    assert_eq!(render("{{ 'x' ~ payload.a ~ payload.none }}"), "x&lt;A&gt;");
    assert_eq!(render("{{ t.hello ~ payload.none ~ payload.n }}"), "Hallo <b>Ada &amp; Co</b>3");
    assert_eq!(render("{{ t['<x>'] }}"), "&lt;x&gt;", "a key that is missing is no markup");
}

#[test]
fn a_text_that_does_not_compile_is_passed_over() {
    let variables = variables();
    let template =
        Template::new("{{ t.broken }} {{ t.lost }} {{ t.loop }} {{ t.results }}").unwrap();
    let expected = Ok("whole lost loop results");
    assert_eq!(template.render(Format::Plain, &variables).as_deref(), expected);
    let [broken, lost, missing, loops, none, results, _] = &variables.notes()[..] else { panic!() };
    let problem = "in de_DE: is not a valid template: unknown filter `shout` in line 1";
    assert_eq!(*broken, TextNote::Invalid(format!("broken {problem}")));
    assert_eq!(*lost, TextNote::Invalid(format!("lost {problem}")));
    assert_eq!(*missing, TextNote::Missing("lost".into()));
    assert!(matches!(loops, TextNote::Invalid(text) if text.contains("refers to other texts")));
    assert_eq!(*none, TextNote::Missing("loop".into()));
    assert!(matches!(results, TextNote::Invalid(text) if text.contains("no results of steps")));
}

/// One row per text that wants too much, and the template that uses it.
#[test]
fn texts_have_the_limits_of_a_rendering() {
    let long = "x".repeat(300_000);
    let many = "{{ payload.a }}".repeat(9_000);
    for (text, template) in [
        ("{{ range(100000) | list }}".into(), "{{ t.x }}".to_owned()),
        (long, "{% set a = t.x %}".repeat(60)),
        (many, "{% set a = t.x %}".repeat(60)),
        ("{% for a in range(40000) %}{% endfor %}".into(), "{{ t.x }}{{ t('x') }}".into()),
        (
            format!("{{{{ payload.a | shout }}}}{}", "x".repeat(300_000)),
            "{% set a = t.x %}".repeat(60),
        ),
        (
            "{% for a in range(900) %}{% set b = payload.l | upper %}{% endfor %}".into(),
            "{% set a = t.x %}".repeat(500),
        ),
    ] {
        let texts = Texts::new([translation("en", json!({ "x": text }))]);
        let variables = Variables::new(json!({ "payload": { "a": "a", "l": "l".repeat(9_000) } }));
        let variables = variables.texts(texts);
        let rendered = Template::new(template).unwrap().render(Format::Plain, &variables);
        assert!(matches!(rendered, Err(RenderError::Failed(_))), "{text:.40}");
    }
}

// Returns a group of texts that another language has as this text.
fn group(text: &str) -> Value {
    let groups = translation("en", json!({ "a": { "x": "y" } }));
    let whole = translation("de", json!({ "a": text }));
    let variables = Variables::new(json!({})).texts(Texts::new([groups, whole]));
    let roots = Roots { variables, format: Format::Plain, given: None };
    Translator::of(Arc::new(roots)).get_attr("a").unwrap()
}

/// One row per filter that would make too much, or take too long, if it were called.
#[test]
fn a_value_that_is_no_text_is_weighed_as_its_text() {
    let numbers = || Value::from((0..5_000).collect::<Vec<_>>());
    let list = |value: Value| Value::from(vec![value]);
    let named = |name: &str, value: Value| Value::from(Kwargs::from_iter([(name, value)]));
    let separator = || group("{{ 'x' * 1000 }}");
    let text = || Value::from("a".repeat(500_000));
    for (name, value, other) in [
        ("__join", numbers(), separator()),
        ("__join", numbers(), list(separator())),
        ("__join", numbers(), named("d", separator())),
        ("__join", numbers(), named("d", list(separator()))),
        ("__indent", list(group("{{ '\n' * 5000 }}")), Value::from(1000)),
        ("__trim", text(), list(text())),
        ("__trim", list(text()), text()),
        ("__selectattr", numbers(), list(text())),
        ("__rejectattr", numbers(), list(text())),
        ("__map", numbers(), named("attribute", list(text()))),
    ] {
        let error = sizes::check_size(&mut ENGINE.empty_state(), name, &value, &[other]);
        let error = error.expect_err(name).to_string();
        assert!(error.contains("are too large"), "{name}: {error}");
    }
}

#[test]
fn a_group_of_texts_names_no_test() {
    let texts = translation("en", json!({ "__in": { "x": "y" }, "odd": { "x": "y" } }));
    let variables = Variables::new(json!({})).texts(Texts::new([texts]));
    for call in ["select(t['__in'], [1])", "reject(t.odd)", "selectattr('a', t['__in'], [1])"] {
        let template = Template::new(format!("{{{{ [1] | {call} }}}}")).unwrap();
        let error = template.render(Format::Plain, &variables).expect_err(call).to_string();
        assert!(error.contains("such a test"), "{call}: {error}");
    }
}

#[test]
fn a_million_braces_are_no_text() {
    for text in ["{{".repeat(500_000), "{{ a }}".repeat(140_000), "{%".repeat(100_000)] {
        let variables = Variables::new(json!({}));
        let variables = variables.texts(Texts::new([translation("xx_XX", json!({ "x": text }))]));
        let rendered = Template::new("{{ t.x }}").unwrap().render(Format::Plain, &variables);
        assert_eq!(rendered.as_deref(), Ok("x"));
        assert!(matches!(variables.notes()[0], TextNote::Invalid(_)));
    }
}

/// One row per filter: what it shows of a moment, for a subscriber in Berlin.
#[test]
fn moments_are_shown_in_the_zone_of_the_subscriber() {
    for (template, expected) in [
        ("{{ '2026-01-05T23:30:00Z' | date }}", "2026-01-06"),
        ("{{ '2026-01-05T23:30:00Z' | time }}", "00:30"),
        ("{{ '2026-07-05T23:30:00.250Z' | date('%d.%m.%Y %H:%M') }}", "06.07.2026 01:30"),
        ("{{ '2026-01-05T23:30:00-05:00' | date(format='%H', zone='UTC') }}", "04"),
        ("{{ '2026-01-05T23:30:00Z' | date('%A', 'Asia/Tokyo') }}", "Tuesday"),
        ("{{ '2026-01-05T23:30:00' | time }}", "00:30"),
        ("{{ '2026-01-05' | date('%-d %B') }}", "5 January"),
        ("{{ 0 | time }}", "01:00"),
        ("{{ payload.nothing | date }}|{{ payload.none | date | default('-', true) }}", "|-"),
    ] {
        let rendered = Template::new(template).unwrap().render(Format::Plain, &variables());
        assert_eq!(rendered.as_deref(), Ok(expected), "{template}");
    }
    let utc = Variables::new(json!({ "subscriber": { "timezone": 7 } }));
    let time = Template::new("{{ 0 | time }}").unwrap();
    assert_eq!(time.render(Format::Plain, &utc).as_deref(), Ok("00:00"));
    for wrong in [
        "{{ 'soon' | date }}",
        "{{ 1e300 | date }}",
        "{{ 9223372036854775807 | date }}",
        "{{ [] | date }}",
        "{{ 0 | date(payload.a ~ '%') }}",
        "{{ 0 | date(zone=payload.a) }}",
    ] {
        let rendered = Template::new(wrong).unwrap().render(Format::Plain, &variables());
        assert!(rendered.is_err(), "{wrong}: {rendered:?}");
    }
    for (wrong, expected) in [
        ("date('%#z')", "`format` of the filter `date` must be a format such as `%Y-%m-%d` in"),
        ("date('%Q')", "`format` of the filter `date` must be a format such as `%Y-%m-%d` in"),
        (
            "time(zone='europe/berlni')",
            "`zone` of the filter `time` must be an IANA time zone (did you mean `Europe/Berlin`?) in",
        ),
        ("time('%H', 'Moon')", "`zone` of the filter `time` must be an IANA time zone in"),
    ] {
        let refused = Template::new(format!("{{{{ payload.at | {wrong} }}}}")).unwrap_err();
        assert!(refused.to_string().contains(expected), "{refused}");
    }
}

/// One row per template: what a missing variable makes of it, as a marker and as an error.
#[test]
fn missing_variables_are_empty_marked_or_an_error() {
    let missing = |name: &str| Err(RenderError::Missing(name.into()));
    for (template, empty, marked, error) in [
        ("[{{ payload.x }}]", "[]", "[[missing: payload.x]]", missing("payload.x")),
        ("{{ payload.x | upper }}", "", "[missing: payload.x]", missing("payload.x")),
        ("{{ payload.x.y }}", "", "[missing: payload.x.y]", missing("payload.x.y")),
        ("{{ payload.none }}", "", "[missing: payload.none]", missing("payload.none")),
        ("{{ payload.x | date }}", "", "[missing: payload.x]", missing("payload.x")),
        ("{{ payload.x | join(', ') }}", "", "[missing: payload.x]", missing("payload.x")),
        ("{{ payload.x | int }}", "0", "[missing: payload.x]", missing("payload.x")),
        ("{{ payload.x | date | default('soon') }}", "soon", "soon", Ok("soon".into())),
        ("{{ payload.x | default('d') }}", "d", "d", Ok("d".into())),
        ("{{ payload.x | d('d') | upper }}", "D", "D", Ok("D".into())),
        ("{{ payload.none | default('d') }}", "d", "d", Ok("d".into())),
        ("{{ payload['x'] }}", "", "[missing: payload['x']]", missing("payload['x']")),
        (
            r#"{{ payload["x"].y | lower }}"#,
            "",
            r#"[missing: payload["x"].y]"#,
            missing(r#"payload["x"].y"#),
        ),
        ("{{ payload.list[7] }}", "", "[missing: payload.list[7]]", missing("payload.list[7]")),
        ("{{ payload.list.7 }}", "", "[missing: payload.list.7]", missing("payload.list.7")),
        ("{{ (payload.x) }}", "", "[missing: (payload.x)]", missing("(payload.x)")),
        (
            "{{ 'Dear ' ~ payload.x }}!",
            "Dear !",
            "Dear [missing: payload.x]!",
            missing("payload.x"),
        ),
        (
            "{{payload.none~payload.a}}",
            "<A>",
            "[missing: payload.none]<A>",
            missing("payload.none"),
        ),
        ("{{ payload.x if payload.a }}", "", "[missing: payload.x]", missing("payload.x")),
        ("{{ payload.a if payload.a else payload.x }}", "<A>", "<A>", Ok("<A>".into())),
        (
            "{{ payload.a if payload.x else payload.none }}",
            "",
            "[missing: payload.none]",
            missing("payload.none"),
        ),
        ("{{ payload.x or 'o' }}{{ payload.x == 1 }}", "oFalse", "oFalse", Ok("oFalse".into())),
        (
            "{{ payload.x is defined }}{{ not payload.x }}",
            "FalseTrue",
            "FalseTrue",
            Ok("FalseTrue".into()),
        ),
        ("{{ [payload.x] | length }}", "1", "1", Ok("1".into())),
        ("{{ 'h' if payload.x ~ payload.none }}", "", "", Ok(String::new())),
        ("{{ 'h' if payload.x ~ '' ~ payload.x else 'e' }}", "e", "e", Ok("e".into())),
        ("{{ payload.x ~ '' == '' }}", "True", "True", Ok("True".into())),
        ("{{ 'A' == 'A' ~ payload.x }}", "True", "True", Ok("True".into())),
        ("{% if payload.x %}{{ payload.x }}{% endif %}", "", "", Ok(String::new())),
        (
            "{{ payload.n }}{{ payload.n + 1 }}{{ t.cart.title }}",
            "34Korb",
            "34Korb",
            Ok("34Korb".into()),
        ),
        ("{{ t.gap }}", "[]", "[[missing: payload.nothing]]", missing("payload.nothing")),
        (
            "{% set x = 1 %}{{ x }}{% for y in [1] %}{{ y }}{{ loop.index }}{% endfor %}",
            "111",
            "111",
            Ok("111".into()),
        ),
    ] {
        let template = Template::new(template).unwrap();
        let render = |how| template.render(Format::Plain, &variables().missing(how));
        assert_eq!(render(MissingVariables::Empty).as_deref(), Ok(empty), "{template:?}");
        assert_eq!(render(MissingVariables::Marker).as_deref(), Ok(marked), "{template:?}");
        assert_eq!(render(MissingVariables::Error), error, "{template:?}");
    }
}

/// Rows as above, of variables in brackets, at places that are computed, and of names that a template sets.
#[test]
fn missing_variables_are_found_wherever_they_are_printed() {
    for (template, empty, name) in [
        ("{{ ('Dear ' ~ payload.x) }}", "Dear ", "payload.x"),
        ("{{ ('Dear ' ~ payload.x) | upper }}", "DEAR ", "payload.x"),
        ("{{ ((payload.x | upper) ~ '!') }}", "!", "payload.x"),
        ("{{ (payload.x if payload.a else 1) }}", "", "payload.x"),
        ("{{ (payload.x | upper) | lower }}", "", "payload.x"),
        ("{{ (payload).x }}", "", "(payload).x"),
        ("{{ payload.list[-9] }}", "", "payload.list[-9]"),
        ("{{ payload[payload.a] }}", "", "payload[payload.a]"),
        ("{{ payload.x[payload.a].y ~ '!' }}", "!", "payload.x[payload.a].y"),
        ("{% for y in [payload.a, payload.x] %}{{ y }}{% endfor %}", "<A>", "y"),
        ("{% for y in [payload] %}{{ y.none }}{% endfor %}", "", "y.none"),
        ("{% set y = payload.x %}{{ y }}", "", "y"),
        ("{% with y = payload.none %}{{ y | upper }}{% endwith %}", "", "y"),
    ] {
        let template = Template::new(template).unwrap();
        let render = |how| template.render(Format::Plain, &variables().missing(how));
        assert_eq!(render(MissingVariables::Empty).as_deref(), Ok(empty), "{template:?}");
        let marked = render(MissingVariables::Marker).unwrap().to_lowercase();
        assert!(marked.contains(&format!("[missing: {name}]")), "{template:?}: {marked}");
        let error = Err(RenderError::Missing(name.into()));
        assert_eq!(render(MissingVariables::Error), error, "{template:?}");
    }
    // What is tested, compared, computed or cut is not printed as it is.
    for template in [
        "{{ (payload.x) is defined }}",
        "{{ (payload.x ~ '') is string }}",
        "{{ (payload.x) or 1 }}",
        "{{ (payload.x) == 1 }}",
        "{{ 1 in [payload.x] }}",
        "{{ (payload.x, 1) | length }}",
        "{{ (payload.x ~ 'ab')[:1] }}",
        "{{ payload.x[:2] }}",
        "{{ (payload.x ~ '') + 'b' }}",
        "{{ 1 if (payload.x) }}",
        "{{ (payload.x) | default('d') }}",
        "{{ payload.a | replace('A', payload.x) }}",
    ] {
        let template = Template::new(template).unwrap();
        let render = |how| template.render(Format::Plain, &variables().missing(how));
        let empty = render(MissingVariables::Empty).unwrap();
        for how in [MissingVariables::Marker, MissingVariables::Error] {
            assert_eq!(render(how).as_deref(), Ok(&*empty), "{template:?}");
        }
    }
}

/// A value that is absent fails no message, whatever the filter.
#[test]
fn every_filter_takes_an_absent_value() {
    let arguments = |filter: &str| match filter {
        "batch" | "slice" => "(2)",
        "groupby" | "selectattr" | "rejectattr" => "('a')",
        "map" => "(attribute='a')",
        "replace" => "('a', 'b')",
        "t" => "()",
        _ => "",
    };
    for filter in engine::FILTERS {
        for value in ["payload.x", "payload.none", "payload.x.y"] {
            let text = format!("{{{{ {value} | {filter}{} }}}}", arguments(filter));
            let template = Template::new(text.clone()).unwrap();
            for how in [MissingVariables::Empty, MissingVariables::Marker] {
                let rendered = template.render(Format::Plain, &variables().missing(how));
                assert!(rendered.is_ok(), "{text}: {rendered:?}");
            }
        }
    }
    let counted = Template::new("{{ payload.x | length }}{{ payload.none | count }}").unwrap();
    assert_eq!(counted.render(Format::Plain, &variables()).as_deref(), Ok("00"));
}

#[test]
fn a_marker_is_escaped() {
    let variables = variables().missing(MissingVariables::Marker);
    let template = Template::new("{{ payload['<b>'] | safe }}").unwrap();
    let html = template.render(Format::Html, &variables).unwrap();
    assert!(html.contains("&lt;b&gt;"), "{html}");
}

/// Hosts send `null` for what people have not said.
#[test]
fn null_is_an_empty_text() {
    for filter in [
        "upper",
        "upcase",
        "lower",
        "downcase",
        "title",
        "capitalize",
        "trim",
        "string",
        "escape",
        "safe",
        "replace('o', 'a')",
        "indent",
        "join(',')",
        "reverse | string",
    ] {
        for value in ["payload.none", "payload['none']", "payload.x"] {
            let template = Template::new(format!("[{{{{ {value} | {filter} }}}}]")).unwrap();
            let rendered = template.render(Format::Plain, &variables());
            assert_eq!(rendered.as_deref(), Ok("[]"), "{value} | {filter}");
        }
    }
    for (template, expected) in [
        ("{% set x = payload.none %}{{ x | upper }}", ""),
        ("{% for x in [payload.none] %}{{ x | upper }}{% endfor %}", ""),
        ("{{ 'Dear ' ~ payload.none ~ '!' }}", "Dear !"),
        ("{{ payload.none | default('d') | upper }}", "D"),
        ("{{ payload.none is none }}{{ payload.none is undefined }}", "TrueFalse"),
        ("{{ ['a', payload.none, payload.x, 1] | join('-') }}", "a---1"),
        ("{{ ['a', payload.none] | join(d='-') }}", "a-"),
        ("{{ [payload, {'a': 'b'}] | join(', ', 'none') }}", ", "),
        ("{{ [payload, {'none': 'b'}] | join(', ', attribute='none') }}", ", b"),
        ("{{ 'abc' | join('-') }}", "a-b-c"),
        ("{{ '%s!' | format(payload.none) }}", "!"),
        ("{{ '%(none)s%(n)d!' | format(payload) }}", "3!"),
        ("{{ '%(a)s%(b)s' | format(a=payload.none, b=1) }}", "1"),
        ("{{ payload.a | replace('A', payload.none) }}", "<>"),
    ] {
        let rendered = Template::new(template).unwrap().render(Format::Plain, &variables());
        assert_eq!(rendered.as_deref(), Ok(expected), "{template}");
    }
}

#[test]
fn a_frame_has_the_body_and_no_results_of_steps() {
    let frame = Template::new("<html>{{ content }} {{ payload.a }}</html>").unwrap_err();
    assert!(frame.to_string().contains("unknown variable `content`"), "{frame}");
    let frame = Template::unchecked("<html>{{ content }} {{ payload.a }}</html>".into());
    assert_eq!(frame.check_as(Role::Frame), Ok(()));
    let rendered = frame.render(Format::Html, &variables().content("<p>x</p>".into()));
    assert_eq!(rendered.as_deref(), Ok("<html><p>x</p> &lt;A&gt;</html>"));
    for other in ["{{ steps.mail.seen }}", "{{ total_count }}", "{{ contnt }}"] {
        assert!(Template::unchecked(other.into()).check_as(Role::Frame).is_err(), "{other}");
    }
}
