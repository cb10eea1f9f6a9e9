//! Steps of a workflow, as saved.

use super::matching::kept;
use super::{StepIds, Workflow};
use crate::error::{Invalid, Reason, at_most_items};
use crate::step::{Step, StepDefinition, WorkflowStep};

/// Checks the new steps of a workflow with the steps `before`, and gives ids to them.
pub(super) fn saved(
    before: &[WorkflowStep],
    steps: Vec<Step>,
    mut new_step: impl FnMut() -> StepIds,
) -> Result<Vec<WorkflowStep>, Invalid> {
    at_most_items("steps", &steps, Workflow::MAX_STEPS)?;
    let matched = kept(before, &steps);
    let mut saved: Vec<WorkflowStep> = Vec::with_capacity(steps.len());
    for ((index, Step { id, definition }), kept) in steps.into_iter().enumerate().zip(matched) {
        let at = |invalid: Invalid| invalid.within(format!("steps[{index}]"));
        definition.check().map_err(at)?;
        check_named_once(&saved, &definition).map_err(at)?;
        let awaits = definition.awaited(&saved).map_err(at)?;
        let (id, content_id) = match (id, kept) {
            (Some(id), _) if saved.iter().any(|step| step.id == id) => {
                return Err(at(Invalid::new("_id", Reason::Repeated)));
            }
            (Some(_), None) => {
                let expected = "the id of a step that the workflow has";
                return Err(at(Invalid::new("_id", Reason::malformed(expected))));
            }
            // Its jobs on the way have the old type.
            (_, Some(kept)) if kept.definition.kind.step_type() != definition.kind.step_type() => {
                let expected = "the type that the step has";
                return Err(at(Invalid::new("type", Reason::malformed(expected))));
            }
            (_, Some(kept)) => (kept.id, kept.content_id),
            (None, None) => new_step(),
        };
        let parent_id = saved.last().map(|step| step.id);
        saved.push(WorkflowStep { id, content_id, parent_id, awaits, definition });
    }
    Ok(saved)
}

// Conditions, templates and overrides refer to a step by its name or `uuid`, and the jobs of a step go on with
// the one that has its `uuid`.
fn check_named_once(before: &[WorkflowStep], step: &StepDefinition) -> Result<(), Invalid> {
    let is_taken = |is_same: &dyn Fn(&StepDefinition) -> bool| {
        before.iter().any(|one| is_same(&one.definition))
    };
    for (field, word) in [("name", &step.name), ("uuid", &step.uuid)] {
        let is_same = |one: &StepDefinition| one.name == *word || one.uuid == *word;
        if word.is_some() && is_taken(&is_same) {
            return Err(Invalid::new(field, Reason::Repeated));
        }
    }
    Ok(())
}
