//! Applying a plan: the jobs of a notification change in a transaction.

use domain::job::{Detail, ExecutionDetail, JobStatus};
use domain::message::Message;
use domain::notification::Notification;
use domain::plan::{Action, Refusal};
use domain::step::Rendered;
use domain::task::{Task, Work};
use domain::vocabulary::Channel;
use domain::workflow::Workflow;
use store::{ReadRecords, WriteRecords, counters, layout};
use uuid::Uuid;

use crate::Result;
use crate::tx::Tx;

/// A notification whose jobs change in a transaction. Jobs are named by their numbers.
pub(crate) struct Course<'r, 't> {
    pub(crate) tx: &'r mut Tx<'t>,
    pub(crate) notification: Notification,
    pub(crate) workflow: Option<&'r Workflow>,
}

impl Course<'_, '_> {
    /// Applies the actions of a turn.
    pub(crate) fn perform(&mut self, actions: &[Action]) -> Result<()> {
        actions.iter().try_for_each(|action| match action {
            Action::Refuse(job, refusal) => {
                self.refuse(*job, refusal.clone());
                Ok(())
            }
            Action::Keep(job, rendered) => self.keep(*job, rendered),
            Action::Send(job) => self.send(*job),
        })
    }

    // Puts the message of an in-app job into the inbox.
    fn keep(&mut self, job: usize, rendered: &Rendered) -> Result<()> {
        let (now, random) = (self.tx.now(), self.tx.random());
        let Some(workflow) = self.workflow else { return Ok(()) };
        let content = (workflow, Channel::InApp);
        let message =
            Message::of_job(&self.notification, job, content, rendered.clone(), (now, random));
        let Some(mut message) = message else { return Ok(()) };
        message.delivered_at.push(now);
        if let Some(variant) = &rendered.variant {
            self.log(job, Detail::VariantChosen, Some(variant.clone()));
        }
        self.store(job, message)?;
        self.complete(job, Detail::MessageCreated, None);
        Ok(())
    }

    // Queues the message of a job for a provider.
    fn send(&mut self, job: usize) -> Result<()> {
        let due_at = self.tx.now();
        self.log(job, Detail::StepQueued, None);
        self.move_job(job, JobStatus::Queued { due_at, attempts: 0 });
        let Some(job_id) = self.notification.jobs.get(job).map(|job| job.id) else {
            return Ok(());
        };
        let notification_id = self.notification.id;
        let work = Work::Send { notification_id, job_id, message: None };
        let id = Uuid::from(job_id).into();
        let task = Task::of(&self.notification, id, due_at, work);
        Ok(self.tx.insert(&task)?)
    }

    /// Ends a job that is not done.
    pub(crate) fn refuse(&mut self, job: usize, refusal: Refusal) {
        self.log(job, refusal.detail, refusal.raw);
        self.move_job(job, refusal.kind.status());
    }

    /// Ends a job whose message is where it should be.
    pub(crate) fn complete(&mut self, job: usize, detail: Detail, raw: Option<String>) {
        self.log(job, detail, raw);
        self.move_job(job, JobStatus::Completed);
    }

    /// Stores the message of a job as the newest one of its subscriber. A subscriber that was
    /// deleted has no messages any more.
    pub(crate) fn store(&mut self, job: usize, message: Message) -> Result<()> {
        let subscriber = layout::subscriber_id(message.environment_id, message.subscriber_id);
        if !self.tx.contains(&subscriber)? {
            return Ok(());
        }
        let key = layout::message_counters(message.environment_id, message.subscriber_id);
        let message = message.listed(&counters::find(self.tx, &key)?);
        self.tx.insert(&message)?;
        if let Some(job) = self.notification.jobs.get_mut(job) {
            job.message_id = Some(message.id);
        }
        Ok(())
    }

    /// Lets the jobs go on behind a job that has ended, if they waited for it. A turn decides them,
    /// outside this transaction.
    pub(crate) fn go_on(&mut self) -> Result<()> {
        let mut jobs = self.notification.jobs.iter();
        let next =
            jobs.find(|job| matches!(job.status, JobStatus::Pending | JobStatus::Delayed { .. }));
        if next.is_none_or(|job| job.status != JobStatus::Pending) {
            return Ok(());
        }
        let work = Work::Turn { notification_id: self.notification.id };
        let task = Task::of(&self.notification, self.tx.id(), self.tx.now(), work);
        Ok(self.tx.insert(&task)?)
    }

    /// Writes into the log of a job.
    pub(crate) fn log(&mut self, job: usize, detail: Detail, raw: Option<String>) {
        let (id, now) = (self.tx.id(), self.tx.now());
        if let Some(job) = self.notification.jobs.get_mut(job) {
            job.log(ExecutionDetail::new(id, detail, raw, now));
        }
    }

    /// Moves a job to `status`.
    pub(crate) fn move_job(&mut self, job: usize, status: JobStatus) {
        let now = self.tx.now();
        // The clock may have gone back.
        self.notification.updated_at = now.max(self.notification.created_at);
        if let Some(job) = self.notification.jobs.get_mut(job) {
            job.move_to(status, now);
        }
    }
}
