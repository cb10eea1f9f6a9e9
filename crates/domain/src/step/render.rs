//! Rendering of a step.

use super::{Rendered, Variant, WorkflowStep};
use crate::filter::{self, FilterFacts};
use crate::template::{RenderError, Variables};

impl WorkflowStep {
    /// Renders the variant of the step that the `facts` choose. Returns `None` if the step sends no
    /// message. A step without variants needs no facts.
    pub(crate) fn render<'f>(
        &self,
        facts: impl FnOnce() -> FilterFacts<'f>,
        variables: &Variables,
    ) -> Option<Result<Rendered, RenderError>> {
        let has_variants = !self.definition.variants.is_empty();
        let variant = has_variants.then(|| self.variant(&facts())).flatten();
        let kind = variant.map_or(&self.definition.kind, |(_, variant)| &variant.kind);
        let variant = variant.map(|(at, variant)| variant.name.clone().unwrap_or(at.to_string()));
        let rendered = kind.render(variables)?;
        Some(rendered.map(|rendered| Rendered { variant, ..rendered }))
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
}
