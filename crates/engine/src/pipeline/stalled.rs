//! Records that wait for a task which the queue has lost: they get another one.

use domain::digest::DigestBucket;
use domain::environment::{Environment, Home};
use domain::ids::{DigestWindowId, SendId};
use domain::job::JobStatus;
use domain::message::Message;
use domain::notification::Notification;
use domain::task::{Awaited, Task, Work};
use domain::time::Timestamp;
use domain::trigger::FanOut;
use domain::vocabulary::StepType;
use store::check::{Stalled, Waiting};
use store::{ReadRecords, Record, WriteRecords, layout};
use uuid::Uuid;

use super::facts::workflow_of;
use super::fan_out;
use super::notification_tx::NotificationTx;
use crate::Result;
use crate::damage::if_readable;
use crate::resources::workflows;
use crate::tx::{Draft, Tx, View};

/// Lets a record go on that still waits for what is lost. Returns `false` if it does not.
pub(crate) fn resume(draft: &mut Draft<'_>, stalled: &Stalled) -> Result<bool> {
    let Stalled { table, key, lost } = stalled;
    let (codec, mut found) = (draft.writer.codec(), Ok(None));
    draft.writer.get(*table, key, &mut |value| found = Waiting::read(codec, *table, key, value))?;
    match found? {
        Some(Waiting::Notification(notification)) => {
            resume_jobs(&mut draft.within(&Home::from(&*notification)), &notification, lost)
        }
        Some(Waiting::Message(message)) => {
            resume_snooze(&mut draft.within(&Home::from(&*message)), &message)
        }
        Some(Waiting::FanOut(fan_out)) => resume_fan_out(draft, &fan_out),
        None => Ok(false),
    }
}

fn resume_jobs(tx: &mut Tx<'_>, before: &Notification, lost: &[Awaited]) -> Result<bool> {
    let workflow = if_readable(workflow_of(tx, before))?.flatten();
    let mut notification_tx = NotificationTx::of(tx, before.clone(), workflow.as_deref());
    let mut is_resumed = false;
    for (job, awaited) in before.awaited() {
        if lost.contains(&awaited) && !notification_tx.is_there(&awaited)? {
            notification_tx.resume(job, &awaited)?;
            is_resumed = true;
        }
    }
    notification_tx.store_over(before)?;
    Ok(is_resumed)
}

impl NotificationTx<'_, '_> {
    fn is_there(&self, awaited: &Awaited) -> Result<bool> {
        match awaited {
            Awaited::Task(id) => {
                Ok(self.tx.contains(&layout::task(self.tx.environment_id(), *id))?)
            }
            // Another repair may have put one. The second one has nothing to do.
            Awaited::Turn(_) | Awaited::FanOut(_) => Ok(false),
        }
    }

    fn resume(&mut self, job: usize, awaited: &Awaited) -> Result<()> {
        let Some(waiting) = self.notification.jobs.get(job) else { return Ok(()) };
        let is_call = waiting.kind == StepType::Custom;
        let (status, own) = (waiting.status, waiting.id);
        let now = self.tx.now();
        match (awaited, status) {
            (Awaited::Task(window), JobStatus::Delayed { until }) => {
                self.close_at(job, Uuid::from(*window).into(), until)
            }
            (Awaited::Task(_), _) if is_call => self.call(job),
            (Awaited::Task(task), _) => {
                let id: SendId = Uuid::from(*task).into();
                self.end_lost(job, Some(id).filter(|id| *id != own.into()))
            }
            (Awaited::Turn(_) | Awaited::FanOut(_), status) => {
                let work = Work::Turn { notification_id: self.notification.id };
                self.queue(self.tx.id(), status.due_at().unwrap_or(now), work)
            }
        }
    }

    // Queues the end of a window.
    fn close_at(&mut self, job: usize, window_id: DigestWindowId, until: Timestamp) -> Result<()> {
        let notification_id = self.notification.id;
        let Some(step_id) = self.notification.jobs.get(job).map(|job| job.step.id) else {
            return Ok(());
        };
        let buckets = match layout::digest_keys(&self.notification, step_id) {
            Some(keys) => self.tx.all::<DigestBucket>(&keys)?,
            None => Vec::new(),
        };
        let is_its = |bucket: &DigestBucket| bucket.window.is_some_and(|it| it.id == window_id);
        // The key leads to the bucket. A window whose bucket has a later one needs none.
        let key = buckets.iter().find(|bucket| is_its(bucket)).map(|bucket| bucket.id.key);
        let key = key.unwrap_or_else(|| Uuid::nil().into());
        let work = Work::Close { notification_id, step_id, window_id, key };
        self.queue(window_id.into(), until, work)
    }
}

fn resume_snooze(tx: &mut Tx<'_>, message: &Message) -> Result<bool> {
    let Some(until) = message.snoozed_until else { return Ok(false) };
    let task = Task::wake(message, until);
    let is_lost = !tx.contains(&task.key())?;
    if is_lost {
        tx.insert(&task)?;
    }
    Ok(is_lost)
}

fn resume_fan_out(draft: &mut Draft<'_>, fan_out: &FanOut) -> Result<bool> {
    let key = layout::environment_id(fan_out.environment_id);
    let Some(environment) = draft.writer.find::<Environment>(&key)? else { return Ok(false) };
    let home = environment.home();
    let mut tx = draft.within(&home);
    if !tx.contains(&layout::fan_out_state(environment.id, &fan_out.transaction_id))? {
        fan_out::end_lost(&mut tx, &fan_out.transaction_id)?;
        return Ok(false);
    }
    let workflow = if_readable(workflows::find_by_id(&tx, fan_out.workflow_id))?.flatten();
    let task = fan_out::task(&tx, fan_out, workflow.as_deref());
    tx.insert(&task)?;
    Ok(true)
}
