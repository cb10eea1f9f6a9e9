//! Turns: the jobs of a notification that do not wait for another one.

use std::borrow::Cow;
use std::ops::ControlFlow;

use super::digested::only;
use super::step::RunStep;
use super::{
    Action, DigestAction, Facts, Refusal, RefusalKind, Run, RunJob, ThrottleAction, cancel, fail,
    skip,
};
use crate::explain::EvidenceKind;
use crate::job::{Detail, JobStatus};
use crate::step::{Delay, DelayEnd, StepKind, StepOutput, StepResults};
use crate::time::Timestamp;
use crate::vocabulary::{Channel, StepType};
use crate::workflow::Workflow;

/// Largest number of times that a delay or a digest is extended to the schedule of the subscriber.
const MAX_EXTENSIONS: u32 = 3;

/// Decides the jobs whose turn has come, in their order. The turn ends at a job that holds up those
/// behind it, and at a digest whose window has not closed.
pub fn turn(run: &Run<'_>, facts: Facts<'_>) -> Vec<Action> {
    decide_from(run, None, facts)
}

/// Decides a digest whose window is over, and the jobs behind it. Those before it have a turn of their own.
pub fn close(run: &Run<'_>, digest: usize, facts: Facts<'_>) -> Vec<Action> {
    decide_from(run, Some(digest), facts)
}

// Decides the jobs from that of a closed window on, or all.
fn decide_from(run: &Run<'_>, closed: Option<usize>, facts: Facts<'_>) -> Vec<Action> {
    let mut actions = Vec::new();
    // A step sees the results of those that were decided before it in the same turn.
    let mut results = run.results.clone();
    let mut so_far = Cow::Borrowed(run);
    let refers = facts.workflow.is_some_and(Workflow::refers_to_results);
    for (number, &job) in run.jobs.iter().enumerate().skip(closed.unwrap_or_default()) {
        let is_open = job.kind == StepType::Digest && closed != Some(number);
        if is_open && matches!(job.status, JobStatus::Delayed { .. }) {
            break;
        }
        let action = match next(&so_far, number, job, facts, &results) {
            ControlFlow::Continue(Some(action)) => action,
            ControlFlow::Continue(None) => continue,
            ControlFlow::Break(()) => break,
        };
        let effect = Effect::of(&action, facts.workflow, job);
        let passes = job.kind == StepType::Digest && action.passes();
        if passes {
            so_far = Cow::Owned(so_far.into_owned().passing(number + 1));
        }
        if let Some(step) = facts.workflow.and_then(|workflow| workflow.step(job.step))
            && refers
        {
            let (status, output) = action.result();
            let alone = passes.then(|| run.alone());
            let output = alone.as_ref().map_or(output, |one| StepOutput::Digest(only(one)));
            results.insert(step, status, output);
        }
        actions.push(action);
        match effect {
            Effect::GoOn => {}
            Effect::Wait => break,
            Effect::Stop(behind) => {
                actions.extend(stop(run, number + 1, &behind));
                break;
            }
        }
    }
    actions
}

/// Decides a job once more that has failed in its turn, whatever becomes of the others. Returns `None`
/// if there is no such job.
pub fn decide_again(run: &Run<'_>, number: usize, facts: Facts<'_>) -> Option<Action> {
    let job = *run.jobs.get(number)?;
    Some(decide(run, number, job, facts, &run.results))
}

// Decides a job whose turn has come. Returns `None` if the job does not wait for its turn. Breaks
// if it holds up those behind it.
fn next(
    run: &Run<'_>,
    number: usize,
    job: RunJob,
    facts: Facts<'_>,
    results: &StepResults,
) -> ControlFlow<(), Option<Action>> {
    let action = match job.status {
        JobStatus::Completed
        | JobStatus::Failed
        | JobStatus::Canceled
        | JobStatus::Skipped
        | JobStatus::Merged
        | JobStatus::Queued { .. }
        | JobStatus::Running { .. } => None,
        JobStatus::Delayed { until } if facts.now < until => return ControlFlow::Break(()),
        JobStatus::Delayed { .. } => Some(resume(run, number, job, facts, results)),
        JobStatus::Pending if is_held_up(run, number, facts.workflow) => {
            return ControlFlow::Break(());
        }
        JobStatus::Pending => Some(decide(run, number, job, facts, results)),
    };
    ControlFlow::Continue(action)
}

// Returns `true` if a job before this one is under way that holds it up. A delay that has begun waits for
// none: a message before it may have been sent again since, and its end comes once.
fn is_held_up(run: &Run<'_>, number: usize, workflow: Option<&Workflow>) -> bool {
    run.jobs.iter().take(number).any(|before| {
        let is_under_way =
            matches!(before.status, JobStatus::Queued { .. } | JobStatus::Running { .. });
        is_under_way && holds_up(workflow, *before)
    })
}

// Effect of an action on the jobs behind it.
enum Effect {
    GoOn,
    Wait,
    // They end with this refusal.
    Stop(Refusal),
}

impl Effect {
    fn of(action: &Action, workflow: Option<&Workflow>, job: RunJob) -> Self {
        match action {
            Action::Refuse(_, refusal) => match refusal.kind {
                RefusalKind::Fail if stops_on_failure(workflow, job) => Effect::Stop(STOPPED),
                RefusalKind::Skip if refusal.detail == Detail::DelayTimePassed => {
                    Effect::Stop(PASSED_OVER)
                }
                RefusalKind::Fail | RefusalKind::Skip | RefusalKind::Cancel => Effect::GoOn,
            },
            Action::Send { .. } if holds_up(workflow, job) => Effect::Wait,
            Action::Digest(_, digest) if !digest.metadata.has_backoff() => Effect::Wait,
            Action::Delay { .. } | Action::Extend { .. } | Action::Call(_) => Effect::Wait,
            Action::DeliverInApp(..)
            | Action::Send { .. }
            | Action::Complete(..)
            | Action::Digest(..)
            | Action::Throttle(..) => Effect::GoOn,
        }
    }
}

impl Action {
    // Returns `true` if the event of a digest may go on at once. The actions behind a `Digest` count
    // only if it does.
    fn passes(&self) -> bool {
        match self {
            Action::Digest(_, digest) => digest.metadata.has_backoff(),
            action => action.is_skip(),
        }
    }

    // Returns the result for the steps behind, as it will be if the turn goes on.
    fn result(&self) -> (&'static str, StepOutput<'static>) {
        let unread = StepOutput::Message { seen: false, read: false };
        let (status, output) = match self {
            Action::Refuse(_, refusal) => (refusal.kind.status(), StepOutput::Nothing),
            Action::DeliverInApp(..) => (JobStatus::Completed, unread),
            Action::Complete(..) | Action::Throttle(..) => {
                (JobStatus::Completed, StepOutput::Nothing)
            }
            Action::Digest(..) => (JobStatus::Skipped, StepOutput::Nothing),
            Action::Send { due_at, .. } => {
                (JobStatus::Queued { due_at: *due_at, attempts: 0 }, StepOutput::Nothing)
            }
            Action::Delay { until, .. } | Action::Extend { until, .. } => {
                (JobStatus::Delayed { until: *until }, StepOutput::Nothing)
            }
            Action::Call(_) => (JobStatus::Pending, StepOutput::Nothing),
        };
        (status.as_str(), output)
    }
}

/// Refusal of the jobs behind one that has failed.
pub const STOPPED: Refusal = cancel(Detail::PrecedingStepFailed);
/// Refusal of the jobs behind one that has ended the run.
pub const PASSED_OVER: Refusal = skip(Detail::PrecedingStepSkipped);

fn decide(
    run: &Run<'_>,
    number: usize,
    job: RunJob,
    facts: Facts<'_>,
    results: &StepResults,
) -> Action {
    let decided = RunStep::new(run, job, facts, results).and_then(|step| {
        step.check_conditions()?;
        let kind = step.kind()?;
        match &*kind {
            StepKind::InApp { .. } => {
                step.check_preferences(Channel::InApp)?;
                Ok(Action::DeliverInApp(number, Box::new(step.render()?)))
            }
            StepKind::Email { .. } => send(&step, number, Channel::Email),
            StepKind::Sms { .. } => send(&step, number, Channel::Sms),
            StepKind::Chat { .. } => send(&step, number, Channel::Chat),
            StepKind::Push { .. } => send(&step, number, Channel::Push),
            StepKind::Delay { metadata } => delay(&step, (number, job), metadata),
            StepKind::Digest { metadata } => {
                let (metadata, zone) = (metadata.clone(), step.zone());
                let key = metadata.event_key(&run.payload);
                Ok(Action::Digest(number, Box::new(DigestAction { metadata, key, zone })))
            }
            StepKind::Throttle { metadata } => {
                let (metadata, zone) = (metadata.clone(), step.zone());
                let key = metadata.event_key(&run.payload);
                Ok(Action::Throttle(number, Box::new(ThrottleAction { metadata, key, zone })))
            }
            StepKind::Custom { .. } => Ok(Action::Call(number)),
        }
    });
    decided.unwrap_or_else(|refusal| Action::Refuse(number, refusal))
}

fn send(step: &RunStep<'_>, job: usize, channel: Channel) -> Result<Action, Refusal> {
    step.check_preferences(channel)?;
    let due_at = step.send_time(channel)?.unwrap_or(step.facts.now);
    Ok(Action::Send { job, due_at })
}

fn delay(
    step: &RunStep<'_>,
    (number, job): (usize, RunJob),
    metadata: &Delay,
) -> Result<Action, Refusal> {
    let end = metadata.end(step.facts.now, &step.run.payload, step.zone());
    if let Ok(end) = end {
        step.note(|| EvidenceKind::Delay { end });
    }
    match end {
        Ok(DelayEnd::Over) => Ok(match end_of(step, job, metadata.extends_to_schedule()) {
            // The delay has not begun, and lasts until then.
            End::Moves { until } => Action::Delay { job: number, until },
            End::Passes(detail) => Action::Complete(number, detail),
        }),
        Ok(DelayEnd::Lasts { until }) => Ok(Action::Delay { job: number, until }),
        Ok(DelayEnd::Passed) => Err(skip(Detail::DelayTimePassed)),
        Err(no_end) => Err(fail(Detail::DelayNotPossible).because(no_end.to_string())),
    }
}

// Decides a job whose delay is over.
fn resume(
    run: &Run<'_>,
    number: usize,
    job: RunJob,
    facts: Facts<'_>,
    results: &StepResults,
) -> Action {
    let step = match RunStep::new(run, job, facts, results) {
        Ok(step) => step,
        // A window that has closed is over, whatever became of its step.
        Err(Refusal { detail: Detail::StepDeleted | Detail::StepInactive, .. }) => {
            return Action::Complete(number, finished(job));
        }
        Err(refusal) => return Action::Refuse(number, refusal),
    };
    let extends = match &step.step.definition.kind {
        StepKind::Delay { metadata } => metadata.extends_to_schedule(),
        StepKind::Digest { metadata } => metadata.extends_to_schedule(),
        _ => false,
    };
    match end_of(&step, job, extends) {
        End::Moves { until } => Action::Extend { job: number, until },
        End::Passes(detail) => Action::Complete(number, detail),
    }
}

// End of a delay or of a window whose time has come.
enum End {
    // It moves to the next opening of the schedule.
    Moves { until: Timestamp },
    // The jobs behind go on.
    Passes(Detail),
}

fn end_of(step: &RunStep<'_>, job: RunJob, extends: bool) -> End {
    if !extends || step.workflow.critical {
        return End::Passes(finished(job));
    }
    let now = step.facts.now;
    let opening = step.facts.schedule.and_then(|one| one.next_opening(now, step.zone()));
    match opening {
        Some(until) if until > now && job.extensions < MAX_EXTENSIONS => {
            step.note(|| EvidenceKind::Extended { until });
            End::Moves { until }
        }
        Some(until) if until > now => End::Passes(Detail::MaxExtensionsReached),
        Some(_) | None => End::Passes(finished(job)),
    }
}

const fn finished(job: RunJob) -> Detail {
    match job.kind {
        StepType::Digest => Detail::DigestClosed,
        _ => Detail::DelayFinished,
    }
}

/// Ends the pending jobs from number `from` on with `refusal`.
pub fn stop(run: &Run<'_>, from: usize, refusal: &Refusal) -> impl Iterator<Item = Action> + use<> {
    let behind = run.jobs.iter().enumerate().skip(from);
    let pending = behind.filter(|(_, job)| job.status == JobStatus::Pending);
    let numbers: Vec<_> = pending.map(|(number, _)| number).collect();
    let refusal = refusal.clone();
    numbers.into_iter().map(move |number| Action::Refuse(number, refusal.clone()))
}

// Returns `true` if the jobs behind this one wait for its message.
fn holds_up(workflow: Option<&Workflow>, job: RunJob) -> bool {
    let is_awaited =
        |workflow: &Workflow| workflow.steps.iter().any(|step| step.awaits.contains(&job.step));
    stops_on_failure(workflow, job) || workflow.is_some_and(is_awaited)
}

/// Returns `true` if a failure of the job ends those behind it. Steps that send nothing always do
/// that.
pub fn stops_on_failure(workflow: Option<&Workflow>, job: RunJob) -> bool {
    let step = workflow.and_then(|workflow| workflow.step(job.step));
    job.kind.channel().is_none() || step.is_some_and(|step| step.definition.should_stop_on_fail)
}
