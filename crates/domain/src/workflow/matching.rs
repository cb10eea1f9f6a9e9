//! Matching of a workflow's new steps to its stored ones.

use crate::step::{Step, StepDefinition, WorkflowStep};

/// Returns the kept step of `before` for each step of `after`, or `None` for a new one.
///
/// The `_id` of a step comes first. A step without `_id` is matched by type and `uuid`, then by
/// type and `name`. The remaining steps are matched by position, if the list of types is unchanged
/// and no step has an `_id`.
pub(super) fn kept<'b>(
    before: &'b [WorkflowStep],
    after: &[Step],
) -> Vec<Option<&'b WorkflowStep>> {
    let mut matching = Matching::new(before, after);
    matching.by(|old, new| new.id == Some(old.id));
    matching.by(|old, new| is_named_alike(old, new, |step| step.uuid.as_deref()));
    matching.by(|old, new| is_named_alike(old, new, |step| step.name.as_deref()));
    // A caller that knows the ids of steps sends the id of each step to keep.
    if after.iter().all(|new| new.id.is_none()) && have_same_types(before, after) {
        matching.by_position(before);
    }
    matching.kept
}

struct Matching<'b, 'a> {
    after: &'a [Step],
    kept: Vec<Option<&'b WorkflowStep>>,
    free: Vec<&'b WorkflowStep>,
}

impl<'b, 'a> Matching<'b, 'a> {
    fn new(before: &'b [WorkflowStep], after: &'a [Step]) -> Self {
        Self { after, kept: vec![None; after.len()], free: before.iter().collect() }
    }

    fn by(&mut self, is_same: impl Fn(&WorkflowStep, &Step) -> bool) {
        for (kept, new) in self.kept.iter_mut().zip(self.after).filter(|(kept, _)| kept.is_none()) {
            let place = self.free.iter().position(|old| is_same(old, new));
            *kept = place.map(|place| self.free.remove(place));
        }
    }

    fn by_position(&mut self, before: &'b [WorkflowStep]) {
        for (kept, old) in self.kept.iter_mut().zip(before).filter(|(kept, _)| kept.is_none()) {
            *kept = self.free.iter().copied().find(|free| free.id == old.id);
        }
    }
}

fn is_named_alike<'s>(
    old: &'s WorkflowStep,
    new: &'s Step,
    name: impl Fn(&'s StepDefinition) -> Option<&'s str>,
) -> bool {
    let (old, updated) = (&old.definition, &new.definition);
    new.id.is_none()
        && name(updated).is_some()
        && name(updated) == name(old)
        && updated.kind.step_type() == old.kind.step_type()
}

fn have_same_types(before: &[WorkflowStep], after: &[Step]) -> bool {
    let before = before.iter().map(|old| old.definition.kind.step_type());
    before.eq(after.iter().map(|new| new.definition.kind.step_type()))
}

#[cfg(test)]
mod tests;
