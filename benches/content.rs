//! What contents cost: a template of 1 kB with ten variables, and the same with translated texts.
//!
//! ```text
//! cargo bench --bench content
//! ```

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use domain::environment::Home;
use domain::template::{Format, Template, Variables};
use domain::time::Timestamp;
use domain::translation::{Resource, Texts, Translation, TranslationUpsert};
use serde_json::{Value, json};
use uuid::Uuid;

const VARIABLES: usize = 10;
const SIZE: usize = 1_000;

// A template of 1 kB with the placeholders among equal stretches of text.
fn template(placeholder: impl Fn(usize) -> String) -> Template {
    let placeholders: Vec<_> = (0..VARIABLES).map(placeholder).collect();
    let taken: usize = placeholders.iter().map(String::len).sum();
    let filler = "x".repeat((SIZE - taken) / VARIABLES);
    let text: Vec<_> = placeholders.into_iter().map(|one| filler.clone() + &one).collect();
    Template::new(text.concat()).unwrap()
}

fn known() -> Value {
    let payload: serde_json::Map<_, _> =
        (0..VARIABLES).map(|number| (format!("v{number}"), json!("a value"))).collect();
    json!({ "payload": payload, "subscriber": { "firstName": "Ada", "timezone": "Europe/Berlin" } })
}

fn texts(text: impl Fn(usize) -> Value) -> Texts {
    let content: serde_json::Map<_, _> =
        (0..VARIABLES).map(|number| (format!("k{number}"), text(number))).collect();
    let upsert =
        TranslationUpsert::new(Resource::workflow("hi"), "de_DE", Value::from(content)).unwrap();
    let home = Home {
        organization_id: "acme".parse().unwrap(),
        environment_id: Uuid::from_u128(1).into(),
    };
    let id = Uuid::from_u128(2).into();
    Texts::new([Arc::new(Translation::new(id, &home, upsert, Timestamp::from_millis(0)))])
}

fn contents(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("content, 1 kB, 10 placeholders, warm");
    let mut bench = |name: &str, template: &Template, format: Format, texts: Option<&Texts>| {
        // Each message has its own limits, and so its own variables. Clones share the limits.
        let variables = || match texts {
            Some(texts) => Variables::new(known()).texts(texts.clone()),
            None => Variables::new(known()),
        };
        let render = |variables| black_box(template).render(format, &variables).unwrap();
        group.bench_function(name, |bencher| {
            bencher.iter_batched(variables, render, BatchSize::SmallInput);
        });
    };
    let plain = template(|number| format!("{{{{ payload.v{number} }}}}"));
    bench("text", &plain, Format::Plain, None);
    bench("HTML", &plain, Format::Html, None);
    let translated = template(|number| format!("{{{{ t.k{number} }}}}"));
    let fixed = texts(|number| json!(format!("Text {number}")));
    bench("translated", &translated, Format::Html, Some(&fixed));
    let filled = texts(|number| json!(format!("Text of {{{{ payload.v{number} }}}}")));
    bench("translated, with a variable in each text", &translated, Format::Html, Some(&filled));
    let counted = template(|number| format!("{{{{ t('k{number}', count=3) }}}}"));
    let forms = texts(|_| json!({ "one": "{{ count }} Ding", "other": "{{ count }} Dinge" }));
    bench("translated, with plural forms", &counted, Format::Html, Some(&forms));
    let dated = template(|_| "{{ '2026-01-05T09:00:00Z' | date('%d.%m.%Y') }}".into());
    bench("dates", &dated, Format::Plain, None);
}

criterion_group!(benches, contents);
criterion_main!(benches);
