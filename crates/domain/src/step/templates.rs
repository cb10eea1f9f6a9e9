//! Templates of a step, with their paths, and what a step names of its payload.

use super::{EmailBody, InAppTemplate, StepDefinition, StepKind, run_if};
use crate::error::Invalid;
use crate::filter;
use crate::json::Object;
use crate::payload::fields;
use crate::template::{Role, Template};

/// Path in the step, and template.
type Named<'a> = (String, &'a Template);

impl StepDefinition {
    /// Returns every template of the step and its variants.
    pub(crate) fn templates(&self) -> impl Iterator<Item = &Template> {
        let variants = self.variants.iter().map(|variant| &variant.kind);
        let kinds = [&self.kind].into_iter().chain(variants);
        kinds.flat_map(StepKind::templates).map(|(_, template)| template)
    }

    /// Refuses templates, conditions and settings that name fields of the payload that its `schema` does not
    /// have.
    pub(crate) fn check_payload(&self, schema: &Object) -> Result<(), Invalid> {
        self.each_template(|template| template.check_as(Role::Message(Some(schema))))?;
        self.kind.check_paths(schema)?;
        filter::check_payload(&self.filters, schema)?;
        run_if::check_payload(self.run_if.as_ref(), schema)?;
        let mut variants = self.variants.iter().enumerate();
        variants.try_for_each(|(index, variant)| {
            let checked = filter::check_payload(&variant.filters, schema);
            checked
                .and_then(|()| variant.kind.check_paths(schema))
                .map_err(|invalid| invalid.within(format!("variants[{index}]")))
        })
    }

    /// Refuses templates with texts of translations.
    pub(crate) fn check_untranslated(&self) -> Result<(), Invalid> {
        self.each_template(Template::check_untranslated)
    }

    fn each_template(
        &self,
        check: impl Fn(&Template) -> Result<(), Invalid>,
    ) -> Result<(), Invalid> {
        self.kind.each_template(&check)?;
        let mut variants = self.variants.iter().enumerate();
        variants.try_for_each(|(index, variant)| {
            let checked = variant.kind.each_template(&check);
            checked.map_err(|invalid| invalid.within(format!("variants[{index}]")))
        })
    }
}

impl StepKind {
    /// Refuses templates that do not compile, or that name what there is not.
    pub(super) fn check_templates(&self) -> Result<(), Invalid> {
        self.each_template(Template::check)
    }

    // Refuses a setting that is a path in the payload, if its `schema` does not have it.
    fn check_paths(&self, schema: &Object) -> Result<(), Invalid> {
        let paths = match self {
            StepKind::Digest { metadata } => {
                [metadata.digest_key().map(|key| ("digestKey", key)), None]
            }
            StepKind::Delay { metadata } => [metadata.path(), None],
            StepKind::Throttle { metadata } => [
                metadata.throttle_key.as_deref().map(|key| ("throttleKey", key)),
                metadata.dynamic_key.as_deref().map(|key| ("dynamicKey", key)),
            ],
            StepKind::InApp { .. }
            | StepKind::Email { .. }
            | StepKind::Sms { .. }
            | StepKind::Chat { .. }
            | StepKind::Push { .. }
            | StepKind::Custom { .. } => [None, None],
        };
        paths.into_iter().flatten().try_for_each(|(name, path)| {
            let checked = fields::check_path(path, schema);
            checked.map_err(|reason| Invalid::new(format!("metadata.{name}"), reason))
        })
    }

    fn each_template(
        &self,
        check: impl Fn(&Template) -> Result<(), Invalid>,
    ) -> Result<(), Invalid> {
        let mut templates = self.templates().into_iter();
        templates.try_for_each(|(name, template)| {
            check(template).map_err(|invalid| invalid.named(format!("template.{name}")))
        })
    }

    pub(super) fn templates(&self) -> Vec<Named<'_>> {
        match self {
            StepKind::InApp { template } => template.templates(),
            StepKind::Email { template } => {
                let mut templates = template.body.templates();
                templates.push(("subject".into(), &template.subject));
                templates
            }
            StepKind::Sms { template } | StepKind::Chat { template } => {
                vec![("body".into(), &template.body)]
            }
            StepKind::Push { template } => {
                vec![("title".into(), &template.title), ("body".into(), &template.body)]
            }
            StepKind::Digest { .. }
            | StepKind::Delay { .. }
            | StepKind::Throttle { .. }
            | StepKind::Custom { .. } => Vec::new(),
        }
    }
}

impl InAppTemplate {
    fn templates(&self) -> Vec<Named<'_>> {
        let InAppTemplate { subject, body, url, buttons } = self;
        let subject = subject.iter().map(|subject| ("subject".into(), subject));
        let url = url.iter().map(|url| ("url".into(), url));
        let buttons = buttons.iter().enumerate().flat_map(|(at, button)| {
            let chosen = button.result_content.iter();
            let chosen = chosen.map(move |chosen| (format!("buttons[{at}].resultContent"), chosen));
            [(format!("buttons[{at}].content"), &button.content)].into_iter().chain(chosen)
        });
        subject.chain([("body".into(), body)]).chain(url).chain(buttons).collect()
    }
}

impl EmailBody {
    fn templates(&self) -> Vec<Named<'_>> {
        match self {
            EmailBody::Html(html) => vec![("body".into(), html)],
            EmailBody::Blocks(blocks) => {
                let templates = blocks.iter().enumerate().flat_map(|(at, block)| {
                    let url = block.url.iter().map(move |url| (format!("body[{at}].url"), url));
                    [(format!("body[{at}].content"), &block.content)].into_iter().chain(url)
                });
                templates.collect()
            }
        }
    }
}
