//! Compiled templates, which a template keeps from its first rendering on.

use std::sync::{Arc, OnceLock};

use minijinja::{Environment, Error, Template};

use super::Format;
use super::engine::ENGINE;
use super::lexer::Lexer;

/// Compiled forms of one template. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Prepared {
    plain: OnceLock<Arc<Compiled>>,
    html: OnceLock<Arc<Compiled>>,
    watched_plain: OnceLock<Arc<Compiled>>,
    watched_html: OnceLock<Arc<Compiled>>,
}

/// Template that is compiled for one format.
#[derive(Debug)]
pub(super) struct Compiled {
    // The engine, with this template only. The name of the template is that of the format.
    engine: Environment<'static>,
    format: Format,
}

impl Prepared {
    /// Returns the compiled form for `format`, which reports missing variables if it is `watched`. A
    /// failure of `compile` is not kept.
    pub(super) fn get_or_compile<E>(
        &self,
        (format, watched): (Format, bool),
        compile: impl FnOnce() -> Result<Compiled, E>,
    ) -> Result<&Compiled, E> {
        let form = match (format, watched) {
            (Format::Plain, false) => &self.plain,
            (Format::Html, false) => &self.html,
            (Format::Plain, true) => &self.watched_plain,
            (Format::Html, true) => &self.watched_html,
        };
        match form.get() {
            Some(compiled) => Ok(compiled),
            // Callers that compile at the same time compile the same text.
            None => compile().map(|compiled| &**form.get_or_init(|| Arc::new(compiled))),
        }
    }
}

impl Compiled {
    /// Returns the memory of `text` in any compiled form, in bytes: an upper bound. Measured were 9.9 kB for
    /// a short text, and for each token of a tag as much as 128 bytes beside 4 for each byte of the text: a
    /// name that is reported if it is missing is kept several times.
    pub(super) fn weight(text: &str) -> usize {
        let mut lexer = Lexer::new(text);
        let mut tokens = 0;
        // A text that has no next tag because of an error does not compile.
        while let Ok(Some(tag)) = lexer.next_tag() {
            tokens += tag.tokens.len() + 2;
        }
        10 * 1024 + 4 * text.len() + 150 * tokens
    }

    /// Compiles a template whose text is `edited` for the engine.
    pub(super) fn new(format: Format, edited: String) -> Result<Self, Error> {
        let mut engine = ENGINE.clone();
        engine.add_template_owned(format.name(), edited)?;
        Ok(Self { engine, format })
    }

    pub(super) fn template(&self) -> Result<Template<'_, '_>, Error> {
        self.engine.get_template(self.format.name())
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use serde_json::json;

    use super::super::{Template, Variables};
    use super::*;

    fn variables() -> Variables {
        Variables::new(json!({ "payload": { "a": "<a>" } }))
    }

    #[test]
    fn each_format_is_compiled_once_and_clones_share_it() {
        let template = Template::new("{{ payload.a }}\n").unwrap();
        let html = template.render(Format::Html, &variables());
        assert_eq!(html.unwrap(), "&lt;a&gt;");
        let clone = template.clone();
        for template in [&template, &clone] {
            assert!(template.prepared.plain.get().is_none());
            let compiled = |template: &Template| template.prepared.html.get().map(Arc::as_ptr);
            assert_eq!(compiled(template), compiled(&clone));
            assert!(compiled(template).is_some());
        }
        let first = clone.render(Format::Plain, &variables());
        assert_eq!((first, clone.render(Format::Plain, &variables())), both("<a>"));
        let html = clone.render(Format::Html, &variables());
        assert_eq!((html.clone(), html), both("&lt;a&gt;"));
    }

    fn both<E>(text: &str) -> (Result<String, E>, Result<String, E>) {
        (Ok(text.into()), Ok(text.into()))
    }

    #[test]
    fn a_template_equals_its_text() {
        let template = Template::new("{{ payload.a }}").unwrap();
        template.render(Format::Plain, &variables()).unwrap();
        assert_eq!(template, Template::new("{{ payload.a }}").unwrap());
        assert_ne!(template, Template::new("{{ payload.b }}").unwrap());
        assert_eq!(serde_json::to_value(&template).unwrap(), json!("{{ payload.a }}"));
        assert_eq!(format!("{template:?}"), r#"Template("{{ payload.a }}")"#);
    }

    #[test]
    fn threads_share_a_template() {
        let template = Template::new("{% for n in range(9) %}{{ n }}{% endfor %}").unwrap();
        let render = || template.render(Format::Plain, &variables());
        thread::scope(|scope| {
            let threads = [(); 4].map(|()| scope.spawn(render));
            for rendered in threads.map(thread::ScopedJoinHandle::join) {
                assert_eq!(rendered.unwrap().unwrap(), "012345678");
            }
        });
    }

    /// One row per dense text: the memory that its largest form was measured to take, in bytes.
    #[test]
    fn a_compiled_text_weighs_at_least_its_memory() {
        let name = "n".repeat(60);
        for (text, count, measured) in [
            ("", 1, 9_893),
            ("{{a<a<a<a<a<a<a<a}}", 2_049, 4_366_071),
            (&format!("{{{{a{}}}}}", "<a".repeat(23)), 676, 4_360_272),
            ("{{a~a}}", 2_049, 1_144_530),
            (&format!("{{{{{name}~{name}~{name}}}}}"), 400, 526_644),
        ] {
            let weight = Compiled::weight(&text.repeat(count));
            assert!(weight >= measured, "{text}: {weight} < {measured}");
            assert!(weight < 2 * measured, "{text}: {weight} is far above {measured}");
        }
        // A text outside of tags is one constant.
        let page = "<p>".repeat(10_000);
        assert_eq!(Compiled::weight(&page), 10 * 1024 + 4 * page.len());
    }

    #[test]
    fn a_template_that_does_not_compile_fails_each_time() {
        let template: Template = serde_json::from_value(json!("{{ payload.a")).unwrap();
        let errors = [(); 2].map(|()| template.render(Format::Plain, &variables()).unwrap_err());
        let [first, second] = errors;
        assert_eq!(first, second);
        assert!(template.prepared.plain.get().is_none());
    }
}
