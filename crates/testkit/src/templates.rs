//! Any text as a template, on a small stack.

use std::thread;

use domain::template::{Format, Template, Variables};
use serde_json::json;

/// The smallest stack that templates are rendered on, in bytes.
const STACK: usize = 512 * 1024;

/// The longest text that a template may become, in bytes.
const MAX_OUTPUT: usize = 1024 * 1024;

/// Renders `bytes` in every format, also if a workflow with such a template is refused.
///
/// # Panics
///
/// If a template that compiles is refused later on, or becomes too long a text.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let text = text.to_owned();
    let work = thread::Builder::new().stack_size(STACK).spawn(move || render(&text));
    work.expect("there are threads").join().expect("no template panics");
}

fn render(text: &str) {
    let sound = Template::new(text).is_ok();
    // A stored template is not checked.
    let stored: Template = serde_json::from_value(json!(text)).expect("a text is a template");
    assert_eq!(stored.check().is_ok(), sound, "a template is refused, and then it is not");
    for format in [Format::Plain, Format::Html] {
        // Renderings with the same variables share the budget of a message.
        let render = || stored.render(format, &variables());
        if let Ok(said) = render() {
            assert!(said.len() <= MAX_OUTPUT, "{} bytes", said.len());
            assert_eq!(render(), Ok(said), "it says two things");
        }
    }
    let variables = stored.variables();
    assert!(variables.iter().all(|name| text.contains(name.split('.').next().unwrap_or(""))));
}

fn variables() -> Variables {
    let deep = (0..60).fold(json!("x"), |inner, _| json!([inner]));
    let numbers: Vec<u32> = (0..1000).collect();
    let payload = json!({
        "a": "text", "b": { "a": 1, "b": ["x", 2.5, true, null] }, "deep": deep,
        "list": numbers, "big": "x\\'\"\u{1}<\u{fc}".repeat(10_000),
    });
    let subscriber = json!({ "subscriberId": "ada", "firstName": "Ada" });
    Variables::new(json!({ "payload": payload, "subscriber": subscriber, "context": {} }))
}

/// Templates that make texts and lists as large as they can.
pub fn greedy() -> Vec<String> {
    let repeated =
        |start: &str, text: &str, n: usize, end: &str| format!("{start}{}{end}", text.repeat(n));
    let mut greedy = vec![
        repeated("{% set a = 'x' %}", "{% set a = a ~ a %}", 100, "{{ a }}"),
        repeated("{% set a = 'x' %}", "{% set a = a + a %}", 100, "{{ a }}"),
        repeated("{% set a = 'x' %}", "{% set a = a * 9 %}", 100, "{{ a }}"),
        repeated("{% set a = [1] %}", "{% set a = a + a %}", 100, "{{ a }}"),
        repeated("{% set a = [1] %}", "{% set a = [a, a] %}", 100, "{{ a }}"),
        repeated("{% set a = [1] %}", "{% set a = {1: a, 2: a} %}", 90, "{{ a == a }}"),
        repeated("{% set a = '\\\\' %}", "{% set a = [a] ~ '' %}", 100, "{{ a }}"),
        repeated("{% set a = 'x' %}", "{% set a = a|replace('', a) %}", 50, "{{ a }}"),
        repeated("{% set a = ['x', 'x'] %}", "{% set a = [a|join(a|first)] + a %}", 50, "{{ a }}"),
        repeated("{% set a = 'x' %}", "{% set a = '%s%s'|format(a, a) %}", 100, "{{ a }}"),
        repeated("{% set a = '<' %}", "{% set a = a|e|string|list|join('<')|e %}", 50, "{{ a }}"),
        repeated("{% set a = payload.big %}", "{% set a = a ~ payload.big %}", 500, "{{ a }}"),
        repeated("{{ ", "payload.big ~ ", 60, "1 }}"),
        repeated("{{ [", "payload.big, ", 300, "1] }}"),
        repeated("{{ [", "payload.big[:], ", 60, "1]|length }}"),
        repeated("{% set a = payload.big %}", "{% set b = a[:] %}{% set a = b[:] %}", 300, ""),
        repeated("{{ payload.list", "|map('string')|list", 30, "}}"),
        repeated("{{ payload.list", "|batch(1)", 60, "|string }}"),
        repeated("{{ payload.list", "|map('list')", 60, " }}"),
        "{{ range(20000)|list|sort(attribute='a,' * 2000)|length }}".to_owned(),
        "{{ range(10000)|list|replace('1', payload.big)|length }}".to_owned(),
    ];
    let loops = [
        "{% set a = a ~ 'x' ~ payload.big %}",
        "{% set a = (a or 'x') ~ (a or 'x') %}{{ a|length }}",
        "{% set a = [a, a] %}",
        "{{ payload.big }}",
        "{{ payload.list }}",
        "{{ payload.list|string|length }}",
        "{{ (payload.list|join(payload.big))|length }}",
        "{{ range(100000)|list|length }}",
        "{{ range(100000)|sum }}",
        "{{ range(90000)|reverse|first }}",
        "{{ payload.list|map(attribute='x', default=payload.big)|list|length }}",
        "{{ payload.list|batch(1000, payload.big)|string|length }}",
        "{{ payload.big|replace('x', payload.big)|length }}",
        "{{ payload.big|list|length }}",
        "{{ payload.big|split('x')|length }}",
        "{{ payload.big|indent(1000)|length }}",
        "{{ '%999d'|format(1)|length }}",
        "{{ '%9999999999d'|format(1)|length }}",
        "{{ '%*d'|format(9999999999, 1)|length }}",
        "{{ '%(a)9999999999s'|format(a=1)|length }}",
        "{{ '%.9999999999f'|format(1.5)|length }}",
        "{{ 1.5|round(999)|string|length }}",
        "{{ 'x'|indent(9999999999, true) }}",
        "{{ [1]|batch(9999999999, 1) }}",
        "{{ [1]|slice(9999999999) }}",
        "{{ 2 ** 99999999999 }}",
        "{{ 'x' * 9999999999 }}",
        "{{ [1] * 9999999999 }}",
        "{{ payload.list|sort|unique|groupby('x')|string|length }}",
        "{{ [payload.big, payload.big] == [payload.big, payload.big] }}",
    ];
    for body in loops {
        greedy.push(body.to_owned());
        greedy.push(format!("{{% for i in range(100000) %}}{body}{{% endfor %}}"));
        greedy.push(format!(
            "{{% for i in payload.list %}}{{% for j in payload.list %}}{body}{{% endfor %}}{{% endfor %}}"
        ));
    }
    greedy
}
