//! Rendering of a step.

use super::{
    ButtonTemplate, ContentWarning, EmailBody, EmailTemplate, InAppTemplate, PushTemplate,
    Rendered, StepKind, Variant, WorkflowStep,
};
use crate::content::{Cta, CtaAction, CtaButton, MessageContent};
use crate::explain::VariantChoice;
use crate::filter::{self, FilterFacts};
use crate::job::Detail;
use crate::layout::{FrameRef, LayoutChoice};
use crate::patch::Patch;
use crate::template::{Format, RenderError, Template, TextNote, Variables};

impl WorkflowStep {
    /// Renders the variant of the step that the `facts` choose. Returns `None` if the step sends no
    /// message. A step without variants needs no facts.
    pub(crate) fn render<'f>(
        &self,
        facts: impl FnOnce() -> FilterFacts<'f>,
        variables: &Variables,
    ) -> Option<Result<Rendered, RenderError>> {
        let (kind, variant) = self.chosen(facts);
        let variant = variant.map(|(at, variant)| variant.shown(at));
        let rendered = kind.render(variables)?;
        Some(rendered.map(|rendered| Rendered { variant, ..rendered }))
    }

    /// Returns the layout that the content wants which the `facts` choose.
    pub(crate) fn layout<'f>(&self, facts: impl FnOnce() -> FilterFacts<'f>) -> LayoutChoice {
        match self.chosen(facts).0 {
            StepKind::Email { template } => match &template.layout_id {
                Patch::Keep => LayoutChoice::Default,
                Patch::Clear => LayoutChoice::None,
                Patch::Set(id) => LayoutChoice::Named(id.as_str().to_owned()),
            },
            _ => LayoutChoice::None,
        }
    }

    fn chosen<'f>(
        &self,
        facts: impl FnOnce() -> FilterFacts<'f>,
    ) -> (&StepKind, Option<(usize, &Variant)>) {
        let has_variants = !self.definition.variants.is_empty();
        let variant = has_variants.then(|| self.variant(&facts())).flatten();
        (variant.map_or(&self.definition.kind, |(_, variant)| &variant.kind), variant)
    }

    // Returns the first variant whose conditions hold, and its index. A variant without conditions
    // is never chosen.
    fn variant(&self, facts: &FilterFacts<'_>) -> Option<(usize, &Variant)> {
        let mut variants = self.definition.variants.iter().enumerate();
        variants.find(|(_, variant)| {
            variant.active
                && !variant.filters.is_empty()
                && filter::evaluate(&variant.filters, facts).holds
        })
    }

    /// Returns the variants of the step, up to the one that the `facts` choose with what was compared.
    pub(crate) fn variant_choices(&self, facts: &FilterFacts<'_>) -> Vec<VariantChoice> {
        let mut is_open = true;
        let variants = self.definition.variants.iter().enumerate().map(|(at, variant)| {
            let is_candidate = is_open && variant.active && !variant.filters.is_empty();
            let report = is_candidate.then(|| filter::evaluate(&variant.filters, facts));
            let chosen = report.as_ref().is_some_and(|report| report.holds);
            is_open &= !chosen;
            let checks = report.map(|report| report.checks).unwrap_or_default();
            VariantChoice { name: variant.shown(at), chosen, checks }
        });
        variants.collect()
    }
}

impl Variant {
    // The name of the variant, or its number.
    fn shown(&self, number: usize) -> String {
        self.name.clone().unwrap_or_else(|| number.to_string())
    }
}

impl StepKind {
    /// Renders the content of the step. Returns `None` if the step has no content.
    #[doc(hidden)]
    pub fn render(&self, variables: &Variables) -> Option<Result<Rendered, RenderError>> {
        match self {
            StepKind::InApp { template } => Some(template.render(variables)),
            StepKind::Email { template } => Some(template.render(variables)),
            StepKind::Sms { template } | StepKind::Chat { template } => {
                Some(template.body.render(Format::Plain, variables).map(Rendered::text))
            }
            StepKind::Push { template } => Some(template.render(variables)),
            StepKind::Digest { .. }
            | StepKind::Delay { .. }
            | StepKind::Throttle { .. }
            | StepKind::Custom { .. } => None,
        }
    }
}

impl InAppTemplate {
    fn render(&self, variables: &Variables) -> Result<Rendered, RenderError> {
        let plain = |template: &Template| template.render(Format::Plain, variables);
        let button = |button: &ButtonTemplate| {
            Ok(CtaButton {
                kind: button.kind,
                content: plain(&button.content)?,
                result_content: button.result_content.as_ref().map(plain).transpose()?,
            })
        };
        let buttons = self.buttons.iter().map(button).collect::<Result<Vec<_>, RenderError>>()?;
        Ok(Rendered {
            subject: self.subject.as_ref().map(plain).transpose()?.map(one_line),
            cta: Cta::new(self.url.as_ref().map(plain).transpose()?, CtaAction::pending(buttons)),
            ..Rendered::text(plain(&self.body)?)
        })
    }
}

impl EmailTemplate {
    fn render(&self, variables: &Variables) -> Result<Rendered, RenderError> {
        let format = if self.disable_output_sanitization { Format::Plain } else { Format::Html };
        let html = |template: &Template| template.render(format, variables);
        let content = match &self.body {
            EmailBody::Html(body) => MessageContent::Text(html(body)?),
            EmailBody::Blocks(blocks) => {
                let blocks = blocks.iter().map(|block| block.try_map(html));
                MessageContent::Blocks(blocks.collect::<Result<_, _>>()?)
            }
        };
        let subject = Some(one_line(self.subject.render(Format::Plain, variables)?));
        Ok(Rendered { subject, ..Rendered::of(content) })
    }
}

impl PushTemplate {
    fn render(&self, variables: &Variables) -> Result<Rendered, RenderError> {
        let title = Some(one_line(self.title.render(Format::Plain, variables)?));
        let text = self.body.render(Format::Plain, variables)?;
        Ok(Rendered { title, ..Rendered::text(text) })
    }
}

impl Rendered {
    /// Puts an e-mail into its layout, and adds the warnings of all its parts.
    pub(crate) fn finished(
        mut self,
        layout: FrameRef<'_>,
        variables: &Variables,
    ) -> Result<Self, RenderError> {
        if let Some(name) = layout.missing {
            self.warn(Detail::LayoutMissing, name.to_owned());
        }
        if let Some(frame) = layout.frame {
            self.content = MessageContent::Text(frame.around(&self.content, variables)?);
        }
        for note in variables.notes() {
            match note {
                TextNote::Missing(key) => self.warn(Detail::TranslationMissing, key),
                TextNote::Invalid(problem) => self.warn(Detail::TranslationInvalid, problem),
            }
        }
        Ok(self)
    }

    fn warn(&mut self, detail: Detail, subject: String) {
        self.warnings.push(ContentWarning { detail, subject });
    }

    fn text(text: String) -> Self {
        Self::of(MessageContent::Text(text))
    }

    fn of(content: MessageContent) -> Self {
        let (subject, title, cta, variant, warnings) = Default::default();
        Self { subject, title, content, cta, variant, warnings }
    }
}

/// Replaces control characters by spaces: a line break in a subject could begin another header.
pub(crate) fn one_line(text: String) -> String {
    let breaks =
        |character: char| character.is_control() || matches!(character, '\u{2028}' | '\u{2029}');
    if text.contains(breaks) { text.replace(breaks, " ") } else { text }
}
