//! References of a step to results of earlier steps, in its conditions and templates.

use std::borrow::Cow;

use super::results::EVENT_COUNT;
use super::{StepDefinition, StepKind, Variant, WorkflowStep};
use crate::condition::Rule;
use crate::error::{Invalid, Reason};
use crate::filter::{self, Filter};
use crate::ids::StepId;
use crate::suggest::nearest;
use crate::template_data::DIGEST_ROOTS;

/// What a condition or a template refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Reference<'a> {
    /// Result of the step with this name, and the name of a part of it.
    Step(Cow<'a, str>, Option<Cow<'a, str>>),
    /// Results that are named only when the condition or template runs.
    Any,
    /// Variable of the latest digest.
    Digest(Cow<'a, str>),
}

/// Path in the step, and reference there.
type Placed<'a> = (String, Reference<'a>);

impl StepDefinition {
    /// Returns the steps among the `earlier` ones whose results the conditions and templates of this
    /// step refer to, in their order. Refuses a reference to another step, and one to a part that no
    /// result of the step has.
    pub(crate) fn awaited(&self, earlier: &[WorkflowStep]) -> Result<Vec<StepId>, Invalid> {
        let mut awaited = Vec::new();
        for (field, reference) in self.references() {
            match reference {
                Reference::Any => awaited.extend(earlier.iter().map(|step| step.id)),
                Reference::Step(name, part) => {
                    let step = named(&name, earlier, &field)?;
                    part.map_or(Ok(()), |part| check_part(step, (&name, &part), &field))?;
                    awaited.push(step.id);
                }
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
    filter::step_paths(filters).into_iter().map(move |(at, name, part)| {
        let reference = Reference::Step(name.into(), part.map(Cow::Borrowed));
        (format!("{place}{at}.field"), reference)
    })
}

fn in_rule(rule: &Rule) -> Vec<Placed<'_>> {
    let (paths, any) = rule.paths();
    let references = paths.into_iter().filter_map(|path| {
        let mut names = path.split('.').map(Cow::Borrowed);
        reference(names.next().unwrap_or_default(), names)
    });
    let any = any.then_some(Reference::Any);
    references.chain(any).map(|reference| ("runIf".to_owned(), reference)).collect()
}

fn in_templates<'a>(place: &str, kind: &'a StepKind) -> Vec<Placed<'a>> {
    let templates = kind.templates().into_iter().flat_map(|(name, template)| {
        let uses = template.uses().into_iter();
        uses.filter_map(move |(root, path)| {
            let reference = reference(root.into(), path.into_iter().map(Cow::Owned))?;
            Some((format!("{place}template.{name}"), reference))
        })
    });
    templates.collect()
}

// Returns the reference of a variable with this root and the names behind it.
fn reference<'a>(
    root: Cow<'a, str>,
    mut names: impl Iterator<Item = Cow<'a, str>>,
) -> Option<Reference<'a>> {
    match names.next() {
        Some(name) if root == "steps" => Some(Reference::Step(name, names.next())),
        None if root == "steps" => Some(Reference::Any),
        _ => DIGEST_ROOTS.contains(&&*root).then_some(Reference::Digest(root)),
    }
}

fn named<'s>(
    name: &str,
    earlier: &'s [WorkflowStep],
    field: &str,
) -> Result<&'s WorkflowStep, Invalid> {
    let found = earlier.iter().rev().find(|step| step.names().any(|one| one == name));
    found.ok_or_else(|| {
        let names: Vec<String> = earlier.iter().flat_map(WorkflowStep::names).collect();
        let meant = nearest(name, names.iter().map(String::as_str));
        unknown(field, &format!("steps.{name}"), meant.map(|meant| format!("steps.{meant}")))
    })
}

// Refuses a part that no result of the step has.
fn check_part(step: &WorkflowStep, (name, part): (&str, &str), field: &str) -> Result<(), Invalid> {
    let known = step.definition.kind.result_parts();
    if known.contains(&part) {
        return Ok(());
    }
    // The number of events has another name as a variable of its own.
    let count = || known.iter().copied().find(|one| part == "total_count" && *one == EVENT_COUNT);
    let meant = nearest(part, known.iter().copied()).or_else(count);
    let meant = meant.map(|meant| format!("steps.{name}.{meant}"));
    Err(unknown(field, &format!("steps.{name}.{part}"), meant))
}

fn unknown(field: &str, variable: &str, suggestion: Option<String>) -> Invalid {
    Invalid::new(field, Reason::UnknownVariable { variable: variable.into(), suggestion })
}

#[cfg(test)]
mod tests;
