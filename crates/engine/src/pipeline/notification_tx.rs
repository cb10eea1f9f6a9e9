//! Applying a plan: the jobs of a notification change in a transaction.

use std::ops::ControlFlow;

use domain::ids::{JobId, MessageId, TaskId};
use domain::job::{Detail, ExecutionDetail, JobStatus};
use domain::message::Message;
use domain::notification::Notification;
use domain::plan::{self, Action, Refusal, RefusalKind, Run};
use domain::step::{ContentWarning, Rendered};
use domain::subscriber::Subscriber;
use domain::task::{SendWork, Task, Work};
use domain::time::Timestamp;
use domain::vocabulary::Channel;
use domain::workflow::Workflow;
use store::{ReadRecords, WriteRecords, layout};

use crate::Result;
use crate::resources::messages;
use crate::tx::Tx;

/// A notification whose jobs change in a transaction. Jobs are named by their numbers.
pub(crate) struct NotificationTx<'r, 't> {
    pub(crate) tx: &'r mut Tx<'t>,
    pub(crate) notification: Notification,
    pub(crate) workflow: Option<&'r Workflow>,
    /// Subscriber, if the transaction has looked for it. Otherwise it may have been deleted.
    subscriber: Option<&'r Subscriber>,
}

impl<'r, 't> NotificationTx<'r, 't> {
    /// Begins to change the jobs of a notification.
    pub(crate) fn of(
        tx: &'r mut Tx<'t>,
        notification: Notification,
        workflow: Option<&'r Workflow>,
    ) -> Self {
        Self { tx, notification, workflow, subscriber: None }
    }

    /// Sets the subscriber, which the transaction has found.
    pub(crate) fn with_subscriber(self, subscriber: &'r Subscriber) -> Self {
        Self { subscriber: Some(subscriber), ..self }
    }

    /// Stores the notification in place of the one that was read. Returns it.
    pub(crate) fn store_over(self, before: &Notification) -> Result<Notification> {
        let Self { tx, notification, .. } = self;
        tx.replace(before, &notification)?;
        Ok(notification)
    }

    /// Applies the actions of a turn. Those behind a job that holds up the others, or ends them, are
    /// dropped.
    pub(crate) fn perform(&mut self, actions: &[Action]) -> Result<()> {
        for action in actions {
            if self.perform_one(action)?.is_break() {
                return self.drop_evidence_behind(action.job());
            }
        }
        Ok(())
    }

    fn perform_one(&mut self, action: &Action) -> Result<ControlFlow<()>> {
        match action {
            Action::Refuse(job, refusal) => self.refuse(*job, refusal.clone()),
            Action::DeliverInApp(job, rendered) => self.deliver_in_app(*job, rendered)?,
            Action::Send { job, due_at } => self.send(*job, *due_at)?,
            Action::Complete(job, detail) => self.complete(*job, *detail, None),
            Action::Delay { job, until } => self.delay(*job, *until)?,
            // Only a turn of its own extends a delay.
            Action::Extend { .. } => {}
            Action::Digest(job, digest) => return self.digest(*job, digest),
            Action::Throttle(job, throttle) => return self.throttle(*job, throttle),
            Action::Call(job) => self.call(*job)?,
        }
        Ok(ControlFlow::Continue(()))
    }

    // Puts the message of an in-app job into the inbox.
    fn deliver_in_app(&mut self, job: usize, rendered: &Rendered) -> Result<()> {
        let (now, random) = (self.tx.now(), self.tx.random());
        // It may have been deleted since the turn was planned, and so may the subscriber.
        let Some(workflow) = self.workflow else {
            self.refuse(job, Refusal::new(RefusalKind::Cancel, Detail::WorkflowDeleted));
            return Ok(());
        };
        let content = (workflow, Channel::InApp);
        let message =
            Message::of_job(&self.notification, job, content, rendered.clone(), (now, random));
        let Some(mut message) = message else { return Ok(()) };
        message.delivered_at.push(now);
        if self.store(job, message)?.is_none() {
            self.refuse(job, Refusal::new(RefusalKind::Skip, Detail::SubscriberDeleted));
            return Ok(());
        }
        if let Some(variant) = &rendered.variant {
            self.log(job, Detail::VariantChosen, Some(variant.clone()));
        }
        self.warn(job, &rendered.warnings);
        self.complete(job, Detail::MessageCreated, None);
        Ok(())
    }

    /// Queues the message of a job for a provider.
    pub(super) fn send(&mut self, job: usize, due_at: Timestamp) -> Result<()> {
        self.log(job, Detail::StepQueued, None);
        if due_at > self.tx.now() {
            self.log(job, Detail::DeferredToSchedule, Some(due_at.to_string()));
        }
        self.move_job(job, JobStatus::Queued { due_at, attempts: 0 });
        let notification_id = self.notification.id;
        self.queue_job(job, due_at, |job_id| Work::Send(SendWork::new(notification_id, job_id)))
    }

    /// Queues the call of a function of the host application.
    pub(super) fn call(&mut self, job: usize) -> Result<()> {
        let due_at = self.tx.now();
        self.log(job, Detail::StepQueued, None);
        self.move_job(job, JobStatus::Queued { due_at, attempts: 0 });
        let notification_id = self.notification.id;
        self.queue_job(job, due_at, |job_id| Work::Call { notification_id, job_id })
    }

    // Lets the jobs behind this one go on later.
    fn delay(&mut self, job: usize, until: Timestamp) -> Result<()> {
        self.log(job, Detail::StepDelayed, Some(until.to_string()));
        self.move_job(job, JobStatus::Delayed { until });
        let work = Work::Turn { notification_id: self.notification.id };
        self.queue(self.tx.id(), until, work)
    }

    // Queues the task of a job, which has the id of the job.
    fn queue_job(
        &mut self,
        job: usize,
        due_at: Timestamp,
        work: impl FnOnce(JobId) -> Work,
    ) -> Result<()> {
        let Some(id) = self.notification.jobs.get(job).map(|job| job.id) else { return Ok(()) };
        self.queue(id.into(), due_at, work(id))
    }

    /// Queues a task of the notification.
    pub(crate) fn queue(&mut self, id: TaskId, due_at: Timestamp, work: Work) -> Result<()> {
        let task = Task::of(&self.notification, id, due_at, work);
        Ok(self.tx.insert(&task)?)
    }

    /// Ends the jobs behind `job` that are pending.
    pub(crate) fn stop(&mut self, job: usize, refusal: &Refusal) -> Result<()> {
        let stopped: Vec<_> = plan::stop(&Run::of(&self.notification), job + 1, refusal).collect();
        self.perform(&stopped)
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
    /// Returns the id of the message.
    pub(crate) fn store(&mut self, job: usize, message: Message) -> Result<Option<MessageId>> {
        let before = self.delivered(job)?;
        let id = self.list(before, message)?;
        if let (Some(job), Some(id)) = (self.notification.jobs.get_mut(job), id) {
            job.message_id = Some(id);
        }
        Ok(id)
    }

    /// Stores a message as the newest one of its subscriber, in the place of the one before. Returns
    /// `None` if the subscriber was deleted.
    pub(crate) fn list(
        &mut self,
        before: Option<Message>,
        message: Message,
    ) -> Result<Option<MessageId>> {
        if self.subscriber.is_none() {
            let subscriber = layout::subscriber_id(message.environment_id, message.subscriber_id);
            if !self.tx.contains(&subscriber)? {
                return Ok(None);
            }
        }
        let counters = self.tx.counters(message.subscriber_id)?;
        let mut message = message.listed(counters);
        match before {
            Some(before) => {
                message = message.in_place_of(&before);
                messages::move_wake(self.tx, &before, message.snoozed_until)?;
                self.tx.replace(&before, &message)?;
            }
            None => self.tx.insert(&message)?,
        }
        Ok(Some(message.id))
    }

    /// The message of a job that was stored before. Returns `None` if there is none.
    pub(super) fn delivered(&self, job: usize) -> Result<Option<Message>> {
        let Some(id) = self.notification.jobs.get(job).and_then(|job| job.message_id) else {
            return Ok(None);
        };
        self.message(id)
    }

    /// The message of the notification with that id. Returns `None` if it is gone.
    pub(super) fn message(&self, id: MessageId) -> Result<Option<Message>> {
        Ok(self.tx.find(&layout::message(self.notification.environment_id, id.place()))?)
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
        self.queue(self.tx.id(), self.tx.now(), work)
    }

    /// Leaves the first turn of a notification to a task, which waits until the workflow is resumed.
    pub(crate) fn begin_later(&mut self) -> Result<()> {
        self.log(0, Detail::WorkflowPaused, None);
        self.go_on()
    }

    /// Writes warnings about a content into the log of a job.
    pub(crate) fn warn(&mut self, job: usize, warnings: &[ContentWarning]) {
        for warning in warnings {
            self.log(job, warning.detail, Some(warning.subject.clone()));
        }
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
