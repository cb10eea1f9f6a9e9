mod arguments;
mod builtins;
mod limits;
mod mistakes;
mod places;
mod texts;
mod total;

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Names of arguments of filters. No filter has the last one.
const NAMES: [&str; 14] = [
    "attribute",
    "base",
    "blank",
    "by",
    "case_sensitive",
    "d",
    "default",
    "first",
    "method",
    "precision",
    "reverse",
    "start",
    "width",
    "x",
];

#[test]
fn placeholders_are_filled_in() {
    check("Hello {{ subscriber.firstName }}!", "Hello Ada!");
    check("{% for item in payload.items %}[{{ item.name }}]{% endfor %}", "[tea][cup]");
    check("{{ payload.total | round(2) }} {{ 'ü' | upper }}", "12.5 Ü");
    check("{{ 'ü' | upcase }} {{ 'Ü' | downcase }}", "Ü ü");
}

#[test]
fn what_is_not_known_is_nothing() {
    check("({{ payload.no.such.thing }})", "()");
    check("{% if payload.gift %}a gift{% else %}no gift{% endif %}", "no gift");
}

#[test]
fn markup_is_escaped_in_html_only() {
    check("{{ payload.note }}", "<b>&</b>");
    let html = render(Format::Html, "<p>{{ payload.note }}</p>");
    assert_eq!(html.unwrap(), "<p>&lt;b&gt;&amp;&lt;&#x2f;b&gt;</p>");
}

#[test]
fn what_does_not_compile_is_refused_with_its_line() {
    let error = Template::new("fine\n{% if %}").unwrap_err();
    assert!(error.to_string().starts_with("`template` is not a valid template: "), "{error}");
    assert!(error.to_string().ends_with(" in line 2"), "{error}");
    assert!(Template::new("x".repeat(Template::MAX_LEN + 1)).is_err());
    assert!(Template::new("(".repeat(10_000)).is_ok());
    assert!(Template::new(format!("{{{{ {} }}}}", "(".repeat(10_000))).is_err());
}

#[test]
fn nothing_runs_for_long() {
    for greedy in [
        "{% for a in range(10000) %}{% for b in range(10000) %}x{% endfor %}{% endfor %}",
        "{{ 'x' * 1000000000000 }}",
        "{% for a in payload.items * 1000000000 %}x{% endfor %}",
    ] {
        assert!(render(Format::Plain, greedy).is_err(), "{greedy}");
    }
}

#[track_caller]
fn check(template: &str, expected: &str) {
    assert_eq!(render(Format::Plain, template).unwrap(), expected);
}

fn render(format: Format, template: &str) -> Result<String, RenderError> {
    Template::new(template).unwrap().render(format, &variables())
}

fn variables() -> Variables {
    Variables::new(json!({
        "subscriber": { "firstName": "Ada" },
        "payload": {
            "items": [{ "name": "tea" }, { "name": "cup" }],
            "total": 12.5,
            "note": "<b>&</b>",
        },
    }))
}

proptest! {
    #[test]
    fn any_text_is_rendered_or_refused(
        text in "\\PC*|(\\{\\{|\\}\\}|\\{%|%\\}|[a-z.|()\\[\\]'0-9 *+-]| if | for | in | set | end){0,12}",
    ) {
        if let Ok(template) = Template::new(text) {
            let variables = Variables::new(json!({ "payload": { "a": [1, "b"] } }));
            let _ = (template.variables(), template.render(Format::Html, &variables));
        }
    }
}

// The functions in place of operators give the results of Jinja.
#[test]
fn operators_bind_as_in_jinja() {
    for (expression, expected) in [
        ("1 + 2 * 3", "7"),
        ("(1 + 2) * 3", "9"),
        ("10 - 2 + 3", "11"),
        ("10 - (2 + 3)", "5"),
        ("8 / 2 * 3", "12.0"),
        ("2 * 8 // 3", "5"),
        ("2 * 3 ** 2", "18"),
        ("-2 * 3 + 1", "-5"),
        ("1 ~ 2 + 3", "!"),
        ("1 ~ (2 + 3)", "15"),
        ("'a' ~ 1 + 2", "!"),
        ("1 * 2 ~ 3 * 4", "212"),
        ("'a' ~ 'b' == 'ab'", "True"),
        ("not 'a' ~ 'b' == 'ab'", "False"),
        ("'a' ~ 1 if 1 + 1 == 2 else 'b' ~ 2", "a1"),
        ("'a' ~ 1 if 1 + 1 == 3 else 'b' ~ 2 * 2", "b4"),
        ("[1 + 1, 'a' ~ 'b']", "[2, 'ab']"),
        ("{'a' ~ 'b': 1 + 1}", "{'ab': 2}"),
        ("{'a': [1]}.a[0] + 1", "2"),
        ("(1, 2)[1] * 2", "4"),
        ("[1, 2, 3][1:] + [4]", "[2, 3, 4]"),
        ("[1, 2, 3, 4][::2][1]", "3"),
        ("'abc'[1:] ~ 'd'", "bcd"),
        ("'abc'[-1]", "c"),
        ("1.5 + 1", "2.5"),
        ("1 + 2.0", "3.0"),
        ("'ab' * 2 ~ 'c'", "ababc"),
        ("2 * 'ab'", "abab"),
        ("'a' + 'b' + 'c'", "abc"),
        ("[1] + [2] + [3]", "[1, 2, 3]"),
        ("'a' in 'a' ~ 'b' and 2 in [1 + 1]", "True"),
        ("1 not in [2] and 3 is not even", "True"),
        ("3 is divisibleby 3", "True"),
        ("4 is eq 2 + 2", "2"),
        ("4 is eq(2 + 2)", "True"),
        ("payload.items | map(attribute='name') | join(', ') ~ '!'", "tea, cup!"),
        ("payload.items | length + 1", "3"),
        ("payload.none + 1", "!"),
        ("payload.none ~ 'x'", "x"),
        ("payload.total * 2", "25.0"),
        ("payload.items[0]['name'] ~ payload.items.1.name", "teacup"),
        ("'%.2f' | format(payload.total + 0.006)", "12.51"),
        ("[3, 1, 2] | sort | first", "1"),
        ("[[1, 2], [3]] | sum(start=[])", "[1, 2, 3]"),
        ("range(3) | list", "[0, 1, 2]"),
        ("range(3) | map('string') | join('-')", "0-1-2"),
        ("'a' 'b' ~ 'c'", "abc"),
    ] {
        let said = render(Format::Plain, &format!("{{{{ {expression} }}}}"));
        assert_eq!(said.as_deref().unwrap_or("!"), expected, "{expression}: {said:?}");
    }
}

#[test]
fn statements_render_as_in_jinja() {
    check("{% set a = 'x' ~ 1 %}{{ a }}{% set b, c = (1, 2) %}{{ b + c }}", "x13");
    check("{% with a = 1 + 1, b = a * 2 %}{{ a ~ b }}{% endwith %}", "24");
    check("{% for a in [1, 2] + [3] if a + 1 > 2 %}{{ loop.index ~ a }} {% endfor %}", "12 23 ");
    check("{% for k, v in {'a': 1} | items %}{{ k ~ v }}{% else %}none{% endfor %}", "a1");
    check("{% for k in [] %}{{ k }}{% else %}none{% endfor %}", "none");
    check("{% if 1 + 1 == 3 %}a{% elif 'a' ~ 'b' == 'ab' %}b{% else %}c{% endif %}", "b");
    check("a {{- 1 -}} b {%- if 1 -%} c {%- endif +%} d", "a1bc d");
    check("{% raw %}{{ 1 ~ 2 }}{% endraw %}{# 1 ~ 2 #}{{ 1 ~ 2 }}", "{{ 1 ~ 2 }}12");
    check("{{ '}}' ~ \"%}\" ~ '\\'' }}", "}}%}'");
    check("{{ {'a': {'b': 1}}['a'].b }}", "1");
    check("{% for a in range(2) %}{{ loop.cycle('x', 'y') }}{% endfor %}", "xy");
    let html = "{% autoescape false %}{{ '<' ~ '>' }}{% endautoescape %}{{ '<' ~ 'b' }}";
    assert_eq!(render(Format::Html, html).unwrap(), "<>&lt;b");
    assert_eq!(
        render(Format::Html, "{{ '<br>' | safe }}{{ ['<'] }}").unwrap(),
        "<br>[&#x27;&lt;&#x27;]"
    );
}

#[test]
fn every_filter_and_test_is_there() {
    for filter in engine::FILTERS {
        let error = Template::unchecked(format!("{{{{ 'a' | {filter} }}}}"))
            .render(Format::Plain, &variables());
        assert!(!error.is_err_and(|error| error.to_string().contains("unknown")), "{filter}");
    }
    for test in engine::TESTS {
        let error = Template::unchecked(format!("{{{{ 'a' is {test} }}}}"))
            .render(Format::Plain, &variables());
        assert!(!error.is_err_and(|error| error.to_string().contains("unknown")), "{test}");
    }
}
