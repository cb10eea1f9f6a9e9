//! Settlement: the results of leased tasks are stored in a transaction.

mod dead_letter;
mod given_up;
mod handler;
mod late;
mod paused;
mod provider;
mod requeue;
mod sends;
mod turned;
mod unreadable;
mod woken;

use std::iter;
use std::sync::Arc;
use std::time::Duration;

use domain::ids::SendId;
use domain::job::{Detail, Job, JobStatus};
use domain::notification::Notification;
use domain::plan::{self, Refusal, RefusalKind, Run};
use domain::task::{Claim, SendWork, Task, TaskState};
use domain::time::Timestamp;
use domain::workflow::Workflow;
use store::{ReadKept, WriteRecords, layout};

use super::batch::UNSETTLED_SIZE;
use super::claim_size::LARGE_BATCH;
use super::lease::Leased;
use super::task_result::{JobResult, TaskResult};
use super::turn::Turn;
use super::{DeliveryFailure, DeliveryReport, FailureReason, quarantine};
use crate::damage::if_readable;
use crate::pipeline::facts::workflow_of;
use crate::pipeline::notification_tx::NotificationTx;
use crate::resources::notifications;
use crate::tx::{Tx, View};
use crate::{Engine, Result};

pub(crate) use unreadable::end_window;

/// Wait of work whose workflow or integration was resumed since it was looked at, and of a broadcast whose
/// event has changed since it was read.
pub(in crate::pipeline) const RECHECK_DELAY: Duration = Duration::from_millis(100);

// Number of new tasks with which a transaction ends: a message may go to hundreds of devices.
const NEW_TASKS: usize = 1_000;

// Effect of a result on the report.
enum Settled {
    Sent,
    Turned { skipped: usize, failed: Vec<DeliveryFailure> },
    Skipped,
    // Failure for good, or until the next attempt.
    Failed(DeliveryFailure),
    // A message was woken.
    Woken,
    // Nothing that counts: the task is due again, or there was nothing left to do.
    Nothing,
    Superseded,
    Quarantined,
    Postponed,
}

/// Stores results, and takes out those that are stored. Results of superseded attempts are dropped. A
/// result that cannot be stored, because a record cannot be read, puts its task into quarantine.
pub(super) fn settle(
    engine: &Engine,
    results: &mut Vec<(Leased, TaskResult)>,
    report: &mut DeliveryReport,
) -> Result<()> {
    let mut stored = 0;
    let mut tell = |settled: Settled| {
        settled.add_to(report);
        stored += 1;
    };
    // A transaction of several environments holds up the writers of all.
    let is_together = !engine.store().runs_side_by_side();
    let environment = |(leased, _): &(Leased, TaskResult)| leased.task.environment_id;
    let parts = results.chunk_by(|one, next| is_together || environment(one) == environment(next));
    let ended = parts.flat_map(parts_of).try_for_each(|part| match settle_all(engine, part) {
        Err(error) if error.corruption().is_some() => {
            part.iter().try_for_each(|result| settle_alone(engine, result).map(&mut tell))
        }
        settled => settled.map(|settled| settled.into_iter().for_each(&mut tell)),
    });
    results.drain(..stored);
    ended
}

/// The parts of results that a transaction stores each. Results that were kept may be many.
pub(super) fn parts_of(
    mut rest: &[(Leased, TaskResult)],
) -> impl Iterator<Item = &[(Leased, TaskResult)]> {
    iter::from_fn(move || {
        let (mut content, mut tasks) = (0, 0);
        let fitting = rest.iter().take(LARGE_BATCH).take_while(|(_, done)| {
            let fits = content <= UNSETTLED_SIZE && tasks <= NEW_TASKS;
            let size = done.size();
            content += size.content;
            tasks += size.tasks;
            fits
        });
        let (part, others) = rest.split_at(fitting.count());
        rest = others;
        Some(part).filter(|part| !part.is_empty())
    })
}

// The next attempt of a job.
struct NextAttempt {
    due_at: Timestamp,
    attempts: u32,
    // Work of its task, if that is other work.
    work: Option<SendWork>,
}

impl Settled {
    // The effect of a failure. A job that is gone has none.
    fn of_failure(failure: Option<DeliveryFailure>) -> Self {
        failure.map_or(Self::Nothing, Self::Failed)
    }

    fn add_to(self, report: &mut DeliveryReport) {
        match self {
            Self::Sent => report.sent += 1,
            Self::Turned { skipped, failed } => {
                report.skipped += skipped;
                for failure in failed {
                    report.add(failure);
                }
            }
            Self::Skipped => report.skipped += 1,
            Self::Failed(failure) => report.add(failure),
            Self::Woken => report.woken += 1,
            Self::Nothing => {}
            Self::Superseded => report.superseded += 1,
            Self::Quarantined => report.quarantined += 1,
            Self::Postponed => report.postponed += 1,
        }
    }
}

// Stores results in one transaction.
fn settle_all(engine: &Engine, results: &[(Leased, TaskResult)]) -> Result<Vec<Settled>> {
    let Some((first, _)) = results.first() else { return Ok(Vec::new()) };
    let home = first.task.home();
    if results.iter().all(|(leased, _)| leased.task.environment_id == home.environment_id) {
        return engine.write_in(&home, engine.now(), |tx| {
            results.iter().map(|(leased, done)| settle_one(tx, leased, done)).collect()
        });
    }
    engine.write(engine.now(), |draft| {
        let settled = results.iter().map(|(leased, done)| {
            let home = leased.task.home();
            settle_one(&mut draft.within(&home), leased, done)
        });
        settled.collect()
    })
}

// Stores one result, or puts its task into quarantine.
fn settle_alone(engine: &Engine, (leased, done): &(Leased, TaskResult)) -> Result<Settled> {
    let home = leased.task.home();
    let settle = || engine.write_in(&home, engine.now(), |tx| settle_one(tx, leased, done));
    let unreadable = match quarantine::unless_unreadable(engine, leased, settle)? {
        Ok(settled) => return Ok(settled),
        Err(unreadable) => unreadable,
    };
    engine.write(engine.now(), |draft| {
        let mut tx = draft.within(&home);
        // A task that cannot be read is moved when its lease is over.
        let task = if_readable(current(&tx, leased))?.flatten();
        let Some(task) = task.filter(|task| may_settle(task, (leased, done), tx.now())) else {
            return Ok(Settled::Superseded);
        };
        quarantine::move_task(&mut tx, &task, &unreadable)?;
        Ok(Settled::Quarantined)
    })
}

// The task as it is now. Returns `None` if it is done.
fn current(view: &dyn View, leased: &Leased) -> Result<Option<Arc<Task>>> {
    let key = layout::task(leased.task.environment_id, leased.task.id);
    Ok(view.find_again(&key, Some(&leased.task))?)
}

fn may_settle(task: &Task, (leased, done): (&Leased, &TaskResult), now: Timestamp) -> bool {
    done.is_accepted() || leased.is_current(task, now)
}

fn settle_one(tx: &mut Tx<'_>, leased: &Leased, done: &TaskResult) -> Result<Settled> {
    let now = tx.now();
    let current = current(tx, leased)?;
    if current.is_none() && done.is_accepted() {
        return late::settle(tx, leased, done);
    }
    let task = current.filter(|task| may_settle(task, (leased, done), now));
    let Some(task) = task else { return Ok(Settled::Superseded) };
    // What was decided under a time that was wrong is decided again.
    if leased.has_seen_clock_ahead(now) && !done.is_final() {
        return requeue::unused(tx, leased, &task, leased.since).map(|()| Settled::Nothing);
    }
    match done {
        TaskResult::Job(result) => settle_job(tx, leased, &task, result),
        TaskResult::Turned(turn) => settle_turn(tx, leased, &task, turn),
        TaskResult::Woken(message_id) => woken::wake(tx, leased, &task, *message_id),
        TaskResult::WorkflowPaused => paused::wait_for_workflow(tx, leased, &task),
        TaskResult::Early(until) => {
            requeue::given_back(tx, leased, &task, *until).map(|()| Settled::Nothing)
        }
        TaskResult::QuotaUsedUp { since, until } => {
            // The clock may have gone back since then.
            let due_at = tx.now().min(*since).after(until.since(*since));
            requeue::undone(tx, leased, &task, due_at).map(|()| Settled::Postponed)
        }
        TaskResult::CircuitOpen(awaited) => {
            // A circuit may have closed since then. One that closes from now on brings the message forward, in a
            // transaction behind this one.
            let due_at = tx.engine().parts.circuits.wait(awaited, &task, now);
            requeue::undone(tx, leased, &task, due_at).map(|()| Settled::Postponed)
        }
        TaskResult::GaveUp => given_up::settle(tx, leased, &task),
        TaskResult::Dropped => drop_task(tx, &task),
        TaskResult::Unreadable(unreadable) => unreadable::settle(tx, leased, &task, unreadable),
        // A call that was stored and not made has no unknown outcome. The attempt counts.
        TaskResult::Lost => {
            let uncalled = Task::clone(&task).uncalled(&leased.task);
            tx.replace(&*task, &uncalled)?;
            Ok(Settled::Superseded)
        }
        TaskResult::Unused(due_at) => {
            requeue::unused(tx, leased, &task, *due_at).map(|()| Settled::Nothing)
        }
    }
}

// Stores the result of a job, unless its notification is gone.
fn settle_job(
    tx: &mut Tx<'_>,
    leased: &Leased,
    task: &Task,
    result: &JobResult,
) -> Result<Settled> {
    let found = notifications::of_work(tx, &task.work)?;
    let Some(before) = found else { return drop_task(tx, task) };
    change_jobs(tx, &before, |notification_tx| notification_tx.settle(leased, task, result))
}

// Stores a turn. Another notification goes on if the one that opened the window is gone. The turn is planned
// again if the workflow has changed since.
fn settle_turn(tx: &mut Tx<'_>, leased: &Leased, task: &Task, turn: &Turn) -> Result<Settled> {
    let found = notifications::find_again(tx, turn.notification_id, turn.source.read())?;
    let again = |tx: &mut Tx<'_>| {
        let now = tx.now();
        requeue::given_back(tx, leased, task, now).map(|()| Settled::Nothing)
    };
    // If it was deleted since the turn was planned, other events of the window may be left.
    let Some(before) = found else { return again(tx) };
    let workflow = workflow_of(tx, &before)?;
    if workflow != turn.workflow {
        return again(tx);
    }
    change_jobs_with(tx, (&before, workflow.as_deref()), |notification_tx| {
        notification_tx.turn(leased, task, turn)
    })
}

// Changes a notification as `settle` says, and stores it.
fn change_jobs(
    tx: &mut Tx<'_>,
    before: &Notification,
    settle: impl FnOnce(&mut NotificationTx<'_, '_>) -> Result<Settled>,
) -> Result<Settled> {
    let workflow = workflow_of(tx, before)?;
    change_jobs_with(tx, (before, workflow.as_deref()), settle)
}

fn change_jobs_with(
    tx: &mut Tx<'_>,
    (before, workflow): (&Notification, Option<&Workflow>),
    settle: impl FnOnce(&mut NotificationTx<'_, '_>) -> Result<Settled>,
) -> Result<Settled> {
    let mut notification_tx = NotificationTx::of(tx, before.clone(), workflow);
    let settled = settle(&mut notification_tx)?;
    notification_tx.store_over(before)?;
    Ok(settled)
}

fn drop_task(tx: &mut Tx<'_>, task: &Task) -> Result<Settled> {
    tx.remove(task)?;
    Ok(Settled::Nothing)
}

impl NotificationTx<'_, '_> {
    fn settle(&mut self, leased: &Leased, task: &Task, result: &JobResult) -> Result<Settled> {
        let Some(job) = task.work.job_in(&self.notification) else {
            return drop_task(self.tx, task);
        };
        self.note_repeat(job, leased);
        if result.waits()
            && let Some(settled) = self.end_if_canceled(job, task)?
        {
            return Ok(settled);
        }
        match result {
            JobResult::ProviderCalled(delivery, result) => {
                self.provider_called(job, task, delivery, result)
            }
            JobResult::HandlerCalled(result) => self.handler_called(job, leased, task, result),
            JobResult::Split(targets) => self.split_into_sends(job, task, targets),
            JobResult::Refused(refusal) => {
                self.tx.remove(task)?;
                self.refused(job, task, refusal)
            }
            JobResult::Deferred(due_at) => self.defer(job, leased, task, *due_at),
            JobResult::WorkflowPaused => paused::wait_for_workflow(self.tx, leased, task),
            JobResult::IntegrationPaused(integration_id) => {
                self.wait_for_integration(job, leased, task, *integration_id)
            }
        }
    }

    fn note_repeat(&mut self, job: usize, leased: &Leased) {
        if matches!(leased.claim, Claim::Repeat(_)) {
            self.log(job, Detail::LeaseExpired, None);
        }
    }

    // Ends a job, or its send, whose event was canceled since its task was claimed. Returns `None` if it was not.
    fn end_if_canceled(&mut self, job: usize, task: &Task) -> Result<Option<Settled>> {
        if !self.is_canceled(job)? {
            return Ok(None);
        }
        self.tx.remove(task)?;
        self.refused(job, task, &plan::CANCELED).map(Some)
    }

    // Ends a job, or its send, whose message is not sent.
    fn refused(&mut self, job: usize, task: &Task, refusal: &Refusal) -> Result<Settled> {
        let (detail, text) = (refusal.detail, refusal.raw.clone());
        self.log(job, detail, text.clone());
        if refusal.kind == RefusalKind::Fail {
            self.mark_dead_unsent(job, task, detail, text.clone())?;
        }
        self.end(job, task.send_id(), refusal.kind)?;
        match refusal.kind {
            RefusalKind::Skip | RefusalKind::Cancel => Ok(Settled::Skipped),
            RefusalKind::Fail => {
                let reason = FailureReason::Unsendable { detail, text };
                Ok(Settled::of_failure(self.failure(job, reason)))
            }
        }
    }

    // Puts a job off until its next attempt, unless its event was canceled meanwhile.
    fn retry_later(
        &mut self,
        job: usize,
        task: &Task,
        next: NextAttempt,
        failure: Option<DeliveryFailure>,
    ) -> Result<Settled> {
        let NextAttempt { due_at, attempts, work } = next;
        self.move_job(job, JobStatus::Queued { due_at, attempts });
        if let Some(settled) = self.end_if_canceled(job, task)? {
            return Ok(settled);
        }
        let mut after = task.with(TaskState::Waiting { due_at, attempts });
        if let Some(work) = work {
            after = after.with_send_work(work);
        }
        self.tx.replace(task, &after)?;
        Ok(Settled::of_failure(failure.map(|failure| failure.retried_at(due_at))))
    }

    // Ends a job that has failed, or its send.
    fn end_failed(&mut self, job: usize, send: Option<SendId>) -> Result<()> {
        self.end(job, send, RefusalKind::Fail)
    }

    // Ends a job, or its send, with the status of a refusal.
    fn end(&mut self, job: usize, send: Option<SendId>, kind: RefusalKind) -> Result<()> {
        if let Some(send) = send {
            return self.end_send(job, send, kind.send_status());
        }
        self.move_job(job, kind.status());
        self.go_on_behind(job)
    }

    /// Lets the jobs go on behind a job that has ended. They end too if it has failed and its step
    /// demands that, unless its message was sent before, and was sent again.
    pub(in crate::pipeline) fn go_on_behind(&mut self, job: usize) -> Result<()> {
        let run = Run::of(&self.notification);
        let failed = run.jobs.get(job).filter(|job| job.status == JobStatus::Failed);
        let was_sent = self.notification.jobs.get(job).is_some_and(Job::was_sent);
        let stops =
            !was_sent && failed.is_some_and(|job| plan::stops_on_failure(self.workflow, *job));
        if stops { self.stop(job, &plan::STOPPED) } else { self.go_on() }
    }

    // The failure of a job, for the report. Returns `None` if the job is gone.
    fn failure(&self, job: usize, reason: FailureReason) -> Option<DeliveryFailure> {
        let job = self.notification.jobs.get(job)?;
        Some(DeliveryFailure::unsent(&self.notification, (job.id, job.kind), reason))
    }
}
