//! Canceling events. A flag keeps everything from being sent, and tasks end the jobs, so that lists
//! show it soon.

use domain::convert::IntoChecked;
use domain::ids::TransactionId;
use domain::job::{Detail, Job, JobStatus, SendStatus};
use domain::notification::Notification;
use domain::plan;
use domain::task::{Task, Work};
use domain::trigger::{AcceptedTrigger, CanceledTrigger, Cancellation};
use store::{Order, ReadRecords, WriteRecords, layout};

use crate::damage::if_readable;
use crate::pipeline::facts::{is_canceled, workflow_of};
use crate::pipeline::live_events::LiveEvents;
use crate::pipeline::notification_tx::NotificationTx;
use crate::pipeline::trigger::{get_accepted, progress_of};
use crate::tx::{Tx, View};
use crate::{Engine, Events, Result};

// Number of notifications whose jobs one transaction ends.
const AT_A_TIME: usize = 100;

// Each send is a task, so that so many of them are as much work as a notification.
const SENDS_AS_ONE: usize = 10;

impl Events<'_> {
    /// Cancels an event: what has not been sent is not sent any more. Its waiting jobs get the status `canceled`. The
    /// call cancels the jobs of the first 100 notifications, or of fewer if their messages go to many devices, and
    /// tasks cancel the others. A call of a provider that is under way is not recalled. A message that has reached
    /// one of several devices counts as sent, and the other devices do not get it. The message of a closed digest is
    /// canceled if all of its events are canceled, at the latest when it is due. A second cancellation changes
    /// nothing and returns the first answer.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use tidings::{integration::IntegrationCreate, step::Step, subscriber::SubscriberCreate};
    /// # use tidings::{trigger::Trigger, vocabulary::Channel, workflow::WorkflowCreate};
    /// # let engine = tidings::Engine::in_memory();
    /// # let env = engine.organization("acme")?.development()?;
    /// # env.integrations().create(&IntegrationCreate::new("ses", Channel::Email)?)?;
    /// # env.workflows().create(
    /// #     &WorkflowCreate::new("order-shipped", "Shipped")?.step(Step::email("Hi", "Hi")?))?;
    /// let ada = SubscriberCreate::new("ada")?.email("ada@example.org")?;
    /// env.events().trigger(&Trigger::new("order-shipped", ada)?.transaction_id("shipped-4711")?)?;
    /// let canceled = env.events().cancel("shipped-4711")?;
    /// assert_eq!((canceled.canceled, canceled.running), (1, 0));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`](crate::Error::NotFound), if no event has this transaction id.
    pub fn cancel(&self, transaction_id: impl IntoChecked<TransactionId>) -> Result<Cancellation> {
        self.cancel_of(&transaction_id.into_checked()?)
    }

    fn cancel_of(&self, id: &TransactionId) -> Result<Cancellation> {
        self.scope.write("events.cancel", id, |tx| {
            let environment = tx.environment_id();
            if let Some(before) = tx.find(&layout::canceled_trigger(environment, id))? {
                return Ok(before.cancellation);
            }
            let accepted = get_accepted(tx, id)?;
            let created = progress_of(tx, id, || Ok(accepted))?.created;
            let first = Place { run: 0, next: 0 };
            let ended = end_jobs(tx, id, first)?;
            let mut cancellation = Cancellation::new(id.clone());
            cancellation.canceled = ended.canceled;
            cancellation.running = ended.running;
            if ended.rest.is_some() {
                cancellation.remaining = created.saturating_sub(ended.notifications);
            }
            let canceled = CanceledTrigger::new(environment, tx.now(), cancellation);
            tx.insert(&canceled)?;
            go_on(tx, id, ended.rest)?;
            Ok(canceled.cancellation)
        })
    }
}

/// Ends the jobs of the next notifications of a canceled event, and leaves a task for the others.
/// Does nothing if the attempt was superseded.
pub(crate) fn step(engine: &Engine, leased: &Task) -> Result<()> {
    let Work::Cancel { transaction_id, run, next } = &leased.work else { return Ok(()) };
    let (home, place) = (leased.home(), Place { run: *run, next: *next });
    engine.write_in(&home, engine.now(), |tx| {
        let Some(task) = tx.claimed(leased)? else { return Ok(()) };
        tx.remove(&task)?;
        // If all of the event was deleted meanwhile, its id may be that of another one.
        if !is_canceled(tx, transaction_id)? {
            return Ok(());
        }
        let ended = end_jobs(tx, transaction_id, place)?;
        go_on(tx, transaction_id, ended.rest)
    })
}

// A notification of an event: the first ordinal of its run, and its own.
#[derive(Clone, Copy)]
struct Place {
    run: u64,
    next: u64,
}

// Jobs that one transaction has ended.
#[derive(Default)]
struct Ended {
    notifications: u64,
    canceled: u64,
    running: u64,
    rest: Option<Place>,
}

fn go_on(tx: &mut Tx<'_>, id: &TransactionId, rest: Option<Place>) -> Result<()> {
    let Some(Place { run, next }) = rest else { return Ok(()) };
    let work = Work::Cancel { transaction_id: id.clone(), run, next };
    let task = Task::background(tx.home, None, tx.id(), tx.now(), work);
    Ok(tx.insert(&task)?)
}

fn end_jobs(tx: &mut Tx<'_>, id: &TransactionId, from: Place) -> Result<Ended> {
    let mut ended = Ended::default();
    let live_events = LiveEvents::bounded(tx.now());
    let mut left = AT_A_TIME;
    let runs = layout::runs_from(tx.environment_id(), id, from.run);
    let runs: Vec<AcceptedTrigger> = tx.first(&runs, Order::Ascending, AT_A_TIME)?;
    if let Some(last) = runs.get(AT_A_TIME - 1) {
        ended.rest = Some(Place { run: last.ordinals.start, next: last.ordinals.end });
    }
    for AcceptedTrigger { ordinals, .. } in runs {
        let first = ordinals.start.max(from.next);
        if left == 0 {
            ended.rest = Some(Place { run: ordinals.start, next: first });
            return Ok(ended);
        }
        let range = layout::notifications_between(tx.environment_id(), first..ordinals.end);
        // The tasks of those that cannot be read go into quarantine.
        let notifications: Vec<Notification> = tx.readable(&range, Order::Ascending, left)?;
        for notification in notifications {
            let next = notification.id.ordinal().get() + 1;
            // A message may go to hundreds of devices, by a task for each.
            let sends: usize = notification.jobs.iter().map(|job| job.sends.len()).sum();
            left = left.saturating_sub(1 + sends / SENDS_AS_ONE);
            end_jobs_of(tx, notification, &live_events, &mut ended)?;
            if left == 0 && next < ordinals.end {
                ended.rest = Some(Place { run: ordinals.start, next });
                return Ok(ended);
            }
        }
    }
    Ok(ended)
}

fn end_jobs_of(
    tx: &mut Tx<'_>,
    before: Notification,
    live_events: &LiveEvents,
    ended: &mut Ended,
) -> Result<()> {
    ended.notifications += 1;
    let mut notification_tx = NotificationTx::of(tx, before.clone(), None);
    let mut jobs = Vec::new();
    for job in 0..before.jobs.len() {
        match notification_tx.cancel(job, live_events)? {
            Canceled::Ended => {
                ended.canceled += 1;
                jobs.push(job);
            }
            Canceled::Runs => ended.running += 1,
            Canceled::Stays => {}
        }
    }
    let after = notification_tx.notification;
    let is_left = after.jobs.iter().any(|job| job.status == JobStatus::Pending);
    // One whose other sends have failed may end those behind it.
    let has_failed = |job: &Job| job.status == JobStatus::Failed;
    let failed = jobs.iter().find(|number| after.jobs.get(**number).is_some_and(has_failed));
    let Some(number) = failed.or(jobs.first()).filter(|_| is_left) else {
        return Ok(tx.replace(&before, &after)?);
    };
    // What is left goes on for the other events of a digest, and may have waited for what has ended.
    let workflow = if_readable(workflow_of(tx, &after))?.flatten();
    let mut left = NotificationTx::of(tx, after, workflow.as_deref());
    left.go_on_behind(*number)?;
    left.store_over(&before).map(drop)
}

// Effect of the cancellation of a job.
enum Canceled {
    Ended,
    // A provider has its message.
    Runs,
    // The job has ended, or goes on for other events.
    Stays,
}

impl NotificationTx<'_, '_> {
    // Ends a job, unless a provider has its message. Work of others, such as the end of a digest
    // that has more events, stays.
    fn cancel(&mut self, job: usize, live_events: &LiveEvents) -> Result<Canceled> {
        let waiting = self.notification.jobs.get(job).filter(|job| !job.status.has_ended());
        let Some(waiting) = waiting else { return Ok(Canceled::Stays) };
        // The job is also that of other events, which a digest has collected.
        if live_events.has_others(self.tx, &self.notification, job)? {
            return Ok(Canceled::Stays);
        }
        if waiting.waiting_sends().next().is_some() {
            return self.cancel_sends(job);
        }
        let is_queued = matches!(waiting.status, JobStatus::Queued { .. });
        let key = layout::task(self.tx.environment_id(), waiting.id.into());
        // A task that cannot be read goes into quarantine when it is due.
        let task = store::if_readable(self.tx.find::<Task>(&key))?.flatten();
        let own = Some(self.notification.id);
        if let Some(task) = task.filter(|task| task.work.notification_id() == own) {
            if is_queued && task.state.is_leased() {
                return Ok(Canceled::Runs);
            }
            self.tx.remove(&task)?;
        }
        self.refuse(job, plan::CANCELED);
        Ok(Canceled::Ended)
    }

    // Ends the sends of a job that no provider has.
    fn cancel_sends(&mut self, job: usize) -> Result<Canceled> {
        let environment = self.tx.environment_id();
        let Some(stored) = self.notification.jobs.get_mut(job) else {
            return Ok(Canceled::Stays);
        };
        let mut canceled = false;
        for send in stored.sends.iter_mut().filter(|one| one.status == SendStatus::Queued) {
            let key = layout::task(environment, send.id.into());
            match store::if_readable(self.tx.find::<Task>(&key))?.flatten() {
                Some(task) if task.state.is_leased() => {}
                task => {
                    task.map_or(Ok(()), |task| self.tx.remove(&task))?;
                    send.status = SendStatus::Canceled;
                    canceled = true;
                }
            }
        }
        if canceled {
            self.log(job, Detail::Canceled, None);
        }
        Ok(if self.end_sends(job) { Canceled::Ended } else { Canceled::Runs })
    }
}
