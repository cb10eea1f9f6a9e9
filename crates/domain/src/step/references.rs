//! References of a step to results of earlier steps, in its conditions and templates.

use std::borrow::Cow;

use super::{StepDefinition, StepKind, Variant, WorkflowStep};
use crate::condition::Rule;
use crate::error::{Invalid, Reason};
use crate::filter::{self, Filter};
use crate::ids::StepId;
use crate::known::DIGEST_ROOTS;
use crate::suggest::nearest;

/// What a condition or a template refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Reference<'a> {
    /// Result of the step with this name.
    Step(Cow<'a, str>),
    /// Results that are named only when the condition or template runs.
    Any,
    /// Variable of the latest digest.
    Digest(Cow<'a, str>),
}

/// Path in the step, and reference there.
type Placed<'a> = (String, Reference<'a>);

impl StepDefinition {
    /// Returns the steps among the `earlier` ones whose results the conditions and templates of this
    /// step refer to, in their order. Refuses a reference to another step.
    pub(crate) fn awaited(&self, earlier: &[WorkflowStep]) -> Result<Vec<StepId>, Invalid> {
        let mut awaited = Vec::new();
        for (field, reference) in self.references() {
            match reference {
                Reference::Any => awaited.extend(earlier.iter().map(|step| step.id)),
                Reference::Step(name) => awaited.push(named(&name, earlier, &field)?),
                Reference::Digest(name) => {
                    let digest = earlier.iter().rev().find(|step| step.is_digest());
                    awaited.push(digest.ok_or_else(|| unknown(&field, &name, None))?.id);
                }
            }
        }
        let is_awaited = |step: &&WorkflowStep| awaited.contains(&step.id);
        Ok(earlier.iter().filter(is_awaited).map(|step| step.id).collect())
    }

    fn references(&self) -> Vec<Placed<'_>> {
        let mut references: Vec<_> = in_filters("", &self.filters).collect();
        references.extend(self.run_if.iter().flat_map(in_rule));
        references.extend(in_templates("", &self.kind));
        for (index, Variant { filters, kind, .. }) in self.variants.iter().enumerate() {
            let place = format!("variants[{index}].");
            references.extend(in_filters(&place, filters));
            references.extend(in_templates(&place, kind));
        }
        references
    }
}

fn in_filters<'a>(place: &str, filters: &'a [Filter]) -> impl Iterator<Item = Placed<'a>> {
    filter::step_names(filters)
        .into_iter()
        .map(move |(part, name)| (format!("{place}{part}.field"), Reference::Step(name.into())))
}

fn in_rule(rule: &Rule) -> Vec<Placed<'_>> {
    let (paths, any) = rule.paths();
    let references = paths.into_iter().filter_map(|path| {
        let mut names = path.split('.');
        reference(names.next().unwrap_or_default().into(), names.next().map(Cow::Borrowed))
    });
    let any = any.then_some(Reference::Any);
    references.chain(any).map(|reference| ("runIf".to_owned(), reference)).collect()
}

fn in_templates<'a>(place: &str, kind: &'a StepKind) -> Vec<Placed<'a>> {
    let templates = kind.templates().into_iter().flat_map(|(name, template)| {
        let uses = template.uses().into_iter();
        uses.filter_map(move |(root, path)| {
            let reference = reference(root.into(), path.map(Cow::Owned))?;
            Some((format!("{place}template.{name}"), reference))
        })
    });
    templates.collect()
}

// Returns the reference of a variable with this root and the name behind it.
fn reference<'a>(root: Cow<'a, str>, name: Option<Cow<'a, str>>) -> Option<Reference<'a>> {
    match name {
        Some(name) if root == "steps" => Some(Reference::Step(name)),
        None if root == "steps" => Some(Reference::Any),
        _ => DIGEST_ROOTS.contains(&&*root).then_some(Reference::Digest(root)),
    }
}

fn named(name: &str, earlier: &[WorkflowStep], field: &str) -> Result<StepId, Invalid> {
    let found = earlier.iter().rev().find(|step| step.names().any(|one| one == name));
    found.map(|step| step.id).ok_or_else(|| {
        let names: Vec<String> = earlier.iter().flat_map(WorkflowStep::names).collect();
        let meant = nearest(name, names.iter().map(String::as_str));
        unknown(field, &format!("steps.{name}"), meant.map(|meant| format!("steps.{meant}")))
    })
}

fn unknown(field: &str, variable: &str, suggestion: Option<String>) -> Invalid {
    Invalid::new(field, Reason::UnknownVariable { variable: variable.into(), suggestion })
}

#[cfg(test)]
mod tests;
