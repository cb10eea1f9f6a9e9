//! Turns: the jobs of a notification that do not wait for another one.

use super::step::RunStep;
use super::{Action, Facts, Refusal, RefusalKind, Run, RunJob, cancel, fail};
use crate::job::{Detail, JobStatus};
use crate::vocabulary::Channel;
use crate::workflow::Workflow;

/// Decides the jobs whose turn has come, in their order. The turn ends at a job that holds up those
/// behind it.
pub fn turn(run: &Run<'_>, facts: Facts<'_>) -> Vec<Action> {
    let mut actions = Vec::new();
    for (number, job) in run.jobs.iter().enumerate() {
        match job.status {
            JobStatus::Completed
            | JobStatus::Failed
            | JobStatus::Canceled
            | JobStatus::Skipped
            | JobStatus::Merged => {}
            JobStatus::Delayed { .. } => break,
            JobStatus::Queued { .. } | JobStatus::Running { .. } => {
                if holds_up(facts.workflow, *job) {
                    break;
                }
            }
            JobStatus::Pending => {
                let action = decide(run, number, *job, facts);
                let effect = Effect::of(&action, facts.workflow, *job);
                actions.push(action);
                match effect {
                    Effect::GoOn => {}
                    Effect::Wait => break,
                    Effect::Stop => {
                        actions.extend(stop(run, number + 1));
                        break;
                    }
                }
            }
        }
    }
    actions
}

// Effect of an action on the jobs behind it.
enum Effect {
    GoOn,
    Wait,
    Stop,
}

impl Effect {
    fn of(action: &Action, workflow: Option<&Workflow>, job: RunJob) -> Self {
        match action {
            Action::Refuse(_, Refusal { kind: RefusalKind::Fail, .. })
                if stops_on_failure(workflow, job) =>
            {
                Effect::Stop
            }
            Action::Send(_) if holds_up(workflow, job) => Effect::Wait,
            Action::Refuse(..) | Action::Keep(..) | Action::Send(_) => Effect::GoOn,
        }
    }
}

fn decide(run: &Run<'_>, number: usize, job: RunJob, facts: Facts<'_>) -> Action {
    let decided = RunStep::new(run, job, facts).and_then(|step| {
        step.check_conditions()?;
        match step.step.definition.kind.channel() {
            Some(Channel::InApp) => {
                step.check_preferences(Channel::InApp)?;
                Ok(Action::Keep(number, Box::new(step.render()?)))
            }
            Some(channel) => {
                step.check_preferences(channel)?;
                Ok(Action::Send(number))
            }
            None => Err(fail(Detail::ContentNotGenerated)),
        }
    });
    decided.unwrap_or_else(|refusal| Action::Refuse(number, refusal))
}

/// Cancels the pending jobs from number `from` on, since a job before them has failed.
pub fn stop(run: &Run<'_>, from: usize) -> impl Iterator<Item = Action> {
    let behind = run.jobs.iter().enumerate().skip(from);
    behind
        .filter(|(_, job)| job.status == JobStatus::Pending)
        .map(|(number, _)| Action::Refuse(number, cancel(Detail::PrecedingStepFailed)))
}

// Returns `true` if the jobs behind this one wait for its message.
fn holds_up(workflow: Option<&Workflow>, job: RunJob) -> bool {
    stops_on_failure(workflow, job)
}

/// Returns `true` if a failure of the job cancels those behind it.
pub fn stops_on_failure(workflow: Option<&Workflow>, job: RunJob) -> bool {
    let step = workflow.and_then(|workflow| workflow.step(job.step));
    step.is_some_and(|step| step.definition.should_stop_on_fail)
}
