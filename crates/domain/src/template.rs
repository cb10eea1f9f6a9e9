//! Templates: texts with placeholders, such as `Hello {{ subscriber.firstName }}`.
//!
//! The language is Jinja's. A template knows `subscriber`, `payload`, `context` (by type: `id` and
//! `data`) and `workflow`. What is not known renders as nothing.
//!
//! A template is written by whoever writes workflows, and is trusted as code is: its instructions
//! are counted and bounded, the texts that it builds up on the way are not. What it is filled with
//! need not be trusted.

use std::collections::HashSet;
use std::sync::LazyLock;

use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::convert::text_conversions;
use crate::error::{Invalid, Reason, Unit};

/// A text with placeholders.
///
/// One that is read from JSON is taken as it is, so that reading a workflow costs nothing more; a
/// workflow that is saved [checks](Template::check) every template in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Template(String);

/// What the placeholders stand for.
#[derive(Clone, Debug)]
pub struct Facts(Value);

/// How text is put in place of placeholders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// As it is.
    Plain,
    /// With what means something in HTML escaped.
    Html,
}

/// A template could not be rendered: it ran too long, or did something impossible.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct RenderError(String);

/// Enough for some thousand placeholders, and gone in a few milliseconds.
const FUEL: u64 = 50_000;

static ENGINE: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut engine = Environment::new();
    engine.set_undefined_behavior(UndefinedBehavior::Chainable);
    engine.set_auto_escape_callback(|name| match name {
        HTML => AutoEscape::Html,
        _ => AutoEscape::None,
    });
    engine.set_fuel(Some(FUEL));
    engine
});

const HTML: &str = "html";
const PLAIN: &str = "plain";

impl Template {
    /// The longest template, in bytes.
    pub const MAX_LEN: usize = 256 * 1024;

    /// Takes `raw` as a template, if it compiles.
    pub fn new(raw: impl Into<String>) -> Result<Self, Invalid> {
        let template = Self(raw.into());
        template.check()?;
        Ok(template)
    }

    /// Refuses a template that is too long or does not compile.
    pub fn check(&self) -> Result<(), Invalid> {
        if self.0.len() > Self::MAX_LEN {
            let reason = Reason::TooLong { max: Self::MAX_LEN, unit: Unit::Bytes };
            return Err(Invalid::new("template", reason));
        }
        ENGINE.template_from_named_str(PLAIN, &self.0).map(drop).map_err(|error| {
            let problem = RenderError::from(error).0;
            Invalid::new("template", Reason::Template { problem })
        })
    }

    /// The template as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The names of the placeholders, as in `payload.order.id`.
    pub fn variables(&self) -> HashSet<String> {
        let compiled = ENGINE.template_from_named_str(PLAIN, &self.0);
        compiled.map(|template| template.undeclared_variables(true)).unwrap_or_default()
    }

    /// The text, with `facts` in the place of the placeholders.
    pub fn render(&self, format: Format, facts: &Facts) -> Result<String, RenderError> {
        let name = match format {
            Format::Plain => PLAIN,
            Format::Html => HTML,
        };
        Ok(ENGINE.render_named_str(name, &self.0, &facts.0)?)
    }
}

impl Facts {
    /// Takes whatever can be serialized as facts.
    pub fn new(facts: impl Serialize) -> Self {
        Self(Value::from(Serde(facts)))
    }
}

text_conversions!(Template);

impl From<minijinja::Error> for RenderError {
    fn from(error: minijinja::Error) -> Self {
        let line = error.line().map(|line| format!(" in line {line}")).unwrap_or_default();
        let detail = error.detail().map(|detail| format!(": {detail}")).unwrap_or_default();
        Self(format!("{}{detail}{line}", error.kind()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn placeholders_are_filled_in() {
        check("Hello {{ subscriber.firstName }}!", "Hello Ada!");
        check("{% for item in payload.items %}[{{ item.name }}]{% endfor %}", "[tea][cup]");
        check("{{ payload.total | round(2) }} {{ 'ü' | upper }}", "12.5 Ü");
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
        let facts = Facts::new(json!({
            "subscriber": { "firstName": "Ada" },
            "payload": {
                "items": [{ "name": "tea" }, { "name": "cup" }],
                "total": 12.5,
                "note": "<b>&</b>",
            },
        }));
        Template::new(template).unwrap().render(format, &facts)
    }

    proptest! {
        #[test]
        fn any_text_is_rendered_or_refused(
            text in "\\PC*|(\\{\\{|\\}\\}|\\{%|%\\}|[a-z.|()\\[\\]'0-9 *+-]| if | for | in | set | end){0,12}",
        ) {
            if let Ok(template) = Template::new(text) {
                let facts = Facts::new(json!({ "payload": { "a": [1, "b"] } }));
                let _ = (template.variables(), template.render(Format::Html, &facts));
            }
        }
    }
}
