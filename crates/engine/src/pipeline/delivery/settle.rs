//! Settlement: the results of leased tasks are stored in a transaction.

mod answer;
mod dead_letter;
mod done;
mod paused;
mod returned;
mod sends;
mod turned;
mod woken;

use std::iter;
use std::sync::Arc;
use std::time::Duration;

use domain::ids::{JobId, NotificationId};
use domain::job::{Detail, JobStatus, SendStatus};
use domain::notification::Notification;
use domain::plan::{self, Hold, Refusal, RefusalKind, Run, RunJob};
use domain::quarantine::Unreadable;
use domain::task::{Claim, Task, Work};
use domain::time::Timestamp;
use store::{ReadKept, WriteRecords, layout};

use super::batch::UNSETTLED_SIZE;
use super::call::CallResult;
use super::claim::Leased;
use super::provider::SendResult;
use super::{DeliveryFailure, DeliveryReport, FailureReason, LARGE_BATCH, clock_skew, quarantine};
use crate::damage::if_readable;
use crate::pipeline::apply::Course;
use crate::pipeline::facts::workflow_of;
use crate::pipeline::left::LiveEvents;
use crate::resources::notifications;
use crate::tx::{Tx, View};
use crate::{Engine, Error, Result};

pub(super) use done::Done;

/// Wait of work whose workflow or integration was resumed since it was looked at, and of a broadcast whose
/// event has changed since it was read.
pub(in crate::pipeline) const AGAIN: Duration = Duration::from_millis(100);

// Effect of a result on the report.
enum Settled {
    Sent,
    Turned { skipped: usize, failed: Vec<DeliveryFailure> },
    Skipped,
    // Failure for good, or until the next attempt.
    Failed(DeliveryFailure),
    // A sweep has removed so many records.
    Swept(usize),
    // Tasks have created so many notifications.
    Created(usize),
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
    results: &mut Vec<(Leased, Done)>,
    report: &mut DeliveryReport,
) -> Result<()> {
    let mut stored = 0;
    let mut tell = |settled: Settled| {
        settled.add_to(report);
        stored += 1;
    };
    // A transaction of several environments holds up the writers of all.
    let is_together = !engine.store().runs_side_by_side();
    let environment = |(leased, _): &(Leased, Done)| leased.task.environment_id;
    let parts = results.chunk_by(|one, next| is_together || environment(one) == environment(next));
    let ended = parts.flat_map(parts_of).try_for_each(|part| match settle_all(engine, part) {
        Err(error) if is_damage(&error) => {
            part.iter().try_for_each(|result| settle_alone(engine, result).map(&mut tell))
        }
        settled => settled.map(|settled| settled.into_iter().for_each(&mut tell)),
    });
    results.drain(..stored);
    ended
}

/// The parts of results that a transaction stores each. Results that were kept may be many.
pub(super) fn parts_of(mut rest: &[(Leased, Done)]) -> impl Iterator<Item = &[(Leased, Done)]> {
    iter::from_fn(move || {
        let mut size = 0;
        let fitting = rest.iter().take(LARGE_BATCH).take_while(|(_, done)| {
            let fits = size <= UNSETTLED_SIZE;
            size += done.size();
            fits
        });
        let (part, others) = rest.split_at(fitting.count());
        rest = others;
        Some(part).filter(|part| !part.is_empty())
    })
}

impl Settled {
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
            Self::Swept(count) => report.swept += count,
            Self::Created(count) => report.created += count,
            Self::Woken => report.woken += 1,
            Self::Nothing => {}
            Self::Superseded => report.superseded += 1,
            Self::Quarantined => report.quarantined += 1,
            Self::Postponed => report.postponed += 1,
        }
    }
}

// Stores results in one transaction.
fn settle_all(engine: &Engine, results: &[(Leased, Done)]) -> Result<Vec<Settled>> {
    let Some((first, _)) = results.first() else { return Ok(Vec::new()) };
    if let Some(settled) = results.iter().map(|(_, done)| settled_by_work(done)).collect() {
        return Ok(settled);
    }
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
fn settle_alone(engine: &Engine, (leased, done): &(Leased, Done)) -> Result<Settled> {
    let home = leased.task.home();
    let settle = || engine.write_in(&home, engine.now(), |tx| settle_one(tx, leased, done));
    let unreadable = match quarantine::unless_unreadable(engine, leased, settle)? {
        Ok(settled) => return Ok(settled),
        Err(unreadable) => unreadable,
    };
    engine.write(engine.now(), |draft| {
        let mut tx = draft.within(&home);
        let Some(task) = current(&tx, leased)? else { return Ok(Settled::Superseded) };
        if !may_settle(&task, leased, done) {
            return Ok(Settled::Superseded);
        }
        quarantine::move_task(&mut tx, &task, &unreadable)?;
        Ok(Settled::Quarantined)
    })
}

fn is_damage(error: &Error) -> bool {
    matches!(error, Error::Store(store::Error::Corrupt { .. }))
}

// Gives a task back that was not attempted. Its attempt does not count. The task is due at the time of the
// claim, or at the present one if the clock has gone back since. A delay that was set under the right clock
// keeps its end if that of the claim was ahead.
fn give_back(tx: &mut Tx<'_>, leased: &Leased, task: &Task) -> Result<bool> {
    if leased.is_of_clock_ahead(tx.now()) {
        return clock_skew::give_back(tx, leased, task);
    }
    let due_at = leased.since.min(tx.now());
    undo(tx, leased, task, due_at)
}

// Undoes the claim of a task, which is due at `due_at`. A call that was noted and not made has no unknown
// outcome.
fn undo(tx: &mut Tx<'_>, leased: &Leased, task: &Task, due_at: Timestamp) -> Result<bool> {
    let Some(state) = task.state.undone(leased.claim, due_at) else { return Ok(false) };
    tx.replace(task, &task.with(state).with_tries(leased.task.tries()))?;
    Ok(true)
}

// Makes a task due at `due_at`. Its attempt does not count.
fn put_back(tx: &mut Tx<'_>, leased: &Leased, task: &Task, due_at: Timestamp) -> Result<bool> {
    let Some(state) = task.state.given_back(leased.attempt(), due_at) else { return Ok(false) };
    tx.replace(task, &task.with(state))?;
    Ok(true)
}

// The task as it is now. Returns `None` if it is done.
fn current(view: &dyn View, leased: &Leased) -> Result<Option<Arc<Task>>> {
    let key = layout::task(leased.task.environment_id, leased.task.id);
    Ok(view.find_again(&key, Some(&leased.task))?)
}

// What is done is not done again, also if another worker has the task now.
fn may_settle(task: &Task, leased: &Leased, done: &Done) -> bool {
    let accepted =
        matches!(done, Done::Asked(_, SendResult::Sent(_)) | Done::Called(CallResult::Done(_)));
    accepted || task.state.is_attempt(leased.attempt())
}

// The effect of work that has settled its task in its own transactions. Returns `None` for other work.
fn settled_by_work(done: &Done) -> Option<Settled> {
    match done {
        Done::Swept(count) => Some(Settled::Swept(*count)),
        Done::Created(count) => Some(Settled::Created(*count)),
        _ => None,
    }
}

fn settle_one(tx: &mut Tx<'_>, leased: &Leased, done: &Done) -> Result<Settled> {
    if let Some(settled) = settled_by_work(done) {
        return Ok(settled);
    }
    let Some(task) = current(tx, leased)? else { return Ok(Settled::Superseded) };
    if !may_settle(&task, leased, done) {
        return Ok(Settled::Superseded);
    }
    // What was decided under a time that was wrong is decided again.
    if leased.has_seen_clock_ahead(tx.now()) && !done.is_final() {
        return give_back(tx, leased, &task).map(|_| Settled::Nothing);
    }
    match (done, &task.work) {
        (Done::Unused, _) => give_back(tx, leased, &task).map(|_| Settled::Nothing),
        // A call that was noted and not made has no unknown outcome. The attempt counts.
        (Done::Lost, _) => {
            let uncalled = Task::clone(&task).with_tries(leased.task.tries());
            tx.replace(&*task, &uncalled)?;
            Ok(Settled::Superseded)
        }
        (Done::Postponed { since, until }, _) => {
            // The clock may have gone back since then.
            let due_at = tx.now().min(*since).after(until.since(*since));
            undo(tx, leased, &task, due_at).map(|_| Settled::Postponed)
        }
        (Done::Early(until), _) => put_back(tx, leased, &task, *until).map(|_| Settled::Nothing),
        (Done::Paused(Hold::Workflow), _) => paused::wait_for_workflow(tx, leased, &task),
        (Done::Unreadable(unreadable), _) => set_aside(tx, &task, unreadable),
        (_, Work::Wake { message_id }) => woken::wake(tx, leased, &task, *message_id),
        _ => settle_in_course(tx, leased, &task, done),
    }
}

// Stores a result in the notification of its task.
fn settle_in_course(tx: &mut Tx<'_>, leased: &Leased, task: &Task, done: &Done) -> Result<Settled> {
    let (notification_id, read) = match done {
        // Another notification goes on if the one that opened the window is gone.
        Done::Turned(turn) => (Some(turn.notification_id), turn.read.as_ref()),
        Done::GaveUp => (given_up(tx, &task.work)?, None),
        _ => (task.work.notification_id(), None),
    };
    let before = match notification_id {
        Some(id) => notifications::find_again(tx, id, read)?,
        None => None,
    };
    let Some(before) = before.filter(|_| !matches!(done, Done::Dropped)) else {
        return match done {
            // It was deleted since the turn was planned. Other events of the window may be left.
            Done::Turned(_) => {
                let now = tx.now();
                put_back(tx, leased, task, now).map(|_| Settled::Nothing)
            }
            _ => tx.remove(task).map(|()| Settled::Nothing).map_err(Into::into),
        };
    };
    let workflow = workflow_of(tx, &before)?;
    let notification = Notification::clone(&before);
    let mut course = Course::of(tx, notification, workflow.as_deref());
    let settled = course.settle(leased, task, done)?;
    course.store_over(&before)?;
    Ok(settled)
}

// The notification whose job fails if a task is given up. For the end of a window, it is that of the first
// event that is left: its jobs would go on.
fn given_up(tx: &Tx<'_>, work: &Work) -> Result<Option<NotificationId>> {
    let first = match work {
        Work::Close { window_id, step_id, .. } => {
            LiveEvents::bounded(tx.now()).first(tx, *window_id, *step_id)?
        }
        _ => None,
    };
    Ok(first.or_else(|| work.notification_id()))
}

// Puts a task into quarantine. Its job fails, if the notification can be read.
fn set_aside(tx: &mut Tx<'_>, task: &Task, unreadable: &Unreadable) -> Result<Settled> {
    quarantine::move_task(tx, task, unreadable)?;
    let found = if_readable(notifications::of_work(tx, &task.work))?.flatten();
    let Some(before) = found else { return Ok(Settled::Quarantined) };
    let workflow = if_readable(workflow_of(tx, &before))?.flatten();
    let mut course = Course::of(tx, before.clone(), workflow.as_deref());
    course.end_delay(task);
    if let Some(job) = task.work.job_in(&course.notification) {
        course.log(job, Detail::RecordUnreadable, Some(unreadable.table.into()));
        course.end_failed(job, task.send_id())?;
    }
    course.store_over(&before)?;
    Ok(Settled::Quarantined)
}

impl Course<'_, '_> {
    fn settle(&mut self, leased: &Leased, task: &Task, done: &Done) -> Result<Settled> {
        if let Done::Turned(turn) = done {
            return self.turn(leased, task, turn);
        }
        if matches!(done, Done::GaveUp) {
            return self.gave_up(task);
        }
        let Some(job) = task.work.job_in(&self.notification) else { return self.drop_task(task) };
        if done.is_attempt() {
            self.note_repeat(job, leased);
        }
        match done {
            Done::Asked(delivery, result) => self.answer(job, task, delivery, result),
            Done::FannedOut(targets) => self.fan_out(job, task, targets),
            Done::Refused(refusal) => {
                self.tx.remove(task)?;
                match task.send_id() {
                    Some(send) => self.send_refused(job, task, send, refusal),
                    None => self.refused(job, task, refusal),
                }
            }
            Done::Deferred(due_at) => self.defer(job, leased, task, *due_at),
            Done::Called(result) => self.returned(job, leased, task, result),
            Done::Paused(Hold::Integration(integration_id)) => {
                self.wait_for_integration(job, leased, task, *integration_id)
            }
            Done::Turned(_)
            | Done::GaveUp
            | Done::Dropped
            | Done::Lost
            | Done::Postponed { .. }
            | Done::Early(_)
            | Done::Paused(Hold::Workflow)
            | Done::Unreadable(_)
            | Done::Swept(_)
            | Done::Woken
            | Done::Unused
            | Done::Created(_) => self.drop_task(task),
        }
    }

    // Ends a job whose last attempt had no end.
    fn gave_up(&mut self, task: &Task) -> Result<Settled> {
        self.end_delay(task);
        let skipped = self.carry_given_up(task)?;
        self.tx.remove(task)?;
        let Some(job) = task.work.job_in(&self.notification) else {
            return Ok(Settled::Turned { skipped, failed: Vec::new() });
        };
        let failure = self.failure(job, FailureReason::Unanswered);
        self.log(job, Detail::LeaseExpired, None);
        self.mark_dead_unsent(job, task, Detail::LeaseExpired, None)?;
        self.end_failed(job, task.send_id())?;
        Ok(Settled::Turned { skipped, failed: failure.into_iter().collect() })
    }

    fn note_repeat(&mut self, job: usize, leased: &Leased) {
        if matches!(leased.claim, Claim::Repeat(_)) {
            self.log(job, Detail::LeaseExpired, None);
        }
    }

    fn refused(&mut self, job: usize, task: &Task, refusal: &Refusal) -> Result<Settled> {
        match refusal.kind {
            RefusalKind::Skip | RefusalKind::Cancel => {
                self.refuse(job, refusal.clone());
                self.go_on()?;
                Ok(Settled::Skipped)
            }
            RefusalKind::Fail => {
                let (detail, text) = (refusal.detail, refusal.raw.clone());
                let failure = self.failure(job, FailureReason::Unsendable { detail, text });
                self.log(job, refusal.detail, refusal.raw.clone());
                self.mark_dead_unsent(job, task, refusal.detail, refusal.raw.clone())?;
                self.fail(job)?;
                Ok(failure.map_or(Settled::Nothing, Settled::Failed))
            }
        }
    }

    // Ends a job that has failed, or its send.
    fn end_failed(&mut self, job: usize, send: Option<JobId>) -> Result<()> {
        match send {
            Some(send) => self.end_send(job, send, SendStatus::Failed),
            None => self.fail(job),
        }
    }

    // Ends a failed job.
    fn fail(&mut self, job: usize) -> Result<()> {
        self.move_job(job, JobStatus::Failed);
        self.go_on_behind(job)
    }

    // Lets the jobs go on behind a job that has ended. They end too if it has failed and its step
    // demands that, unless they have begun: its message was sent before, and was sent again.
    fn go_on_behind(&mut self, job: usize) -> Result<()> {
        let run = Run::of(&self.notification);
        let failed = run.jobs.get(job).filter(|job| job.status == JobStatus::Failed);
        let has_begun =
            |behind: &RunJob| !matches!(behind.status, JobStatus::Pending | JobStatus::Canceled);
        let stops = failed.is_some_and(|job| plan::stops_on_failure(self.workflow, *job))
            && !run.jobs.iter().skip(job + 1).any(has_begun);
        if stops { self.stop(job, &plan::STOPPED) } else { self.go_on() }
    }

    fn failure(&self, job: usize, reason: FailureReason) -> Option<DeliveryFailure> {
        let job = self.notification.jobs.get(job)?;
        Some(DeliveryFailure::unsent(&self.notification, (job.id, job.kind), reason))
    }

    // Ends the delay that a turn was due for, if the turn fails.
    fn end_delay(&mut self, task: &Task) {
        let is_turn = matches!(task.work, Work::Turn { .. });
        if !is_turn || self.notification.is_collecting() {
            return;
        }
        let mut jobs = self.notification.jobs.iter();
        if let Some(job) = jobs.position(|job| matches!(job.status, JobStatus::Delayed { .. })) {
            self.complete(job, Detail::DelayFinished, None);
        }
    }

    // Takes over the jobs behind a window whose end is given up, so that they fail. Returns the number of
    // those that are skipped.
    fn carry_given_up(&mut self, task: &Task) -> Result<usize> {
        let Work::Close { step_id, .. } = task.work else { return Ok(0) };
        let mut jobs = self.notification.jobs.iter();
        let digest = jobs.find(|job| job.step.id == step_id).and_then(|job| job.digest.clone());
        digest.map_or(Ok(0), |digest| self.carry(task, step_id, digest))
    }

    fn drop_task(&mut self, task: &Task) -> Result<Settled> {
        self.tx.remove(task)?;
        Ok(Settled::Nothing)
    }
}
