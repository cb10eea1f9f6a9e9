//! Moving a notification from one job to the next.

use domain::ids::{JobId, MessageId};
use domain::job::{Detail, ExecutionDetail, JobStatus};
use domain::message::Message;
use domain::notification::Notification;
use domain::step::Rendered;
use domain::step_run::{self, Refusal, RefusalKind};
use domain::vocabulary::{Channel, JobType};
use store::{WriteRecords, counters, layout};

use super::RunFacts;
use crate::Result;
use crate::tx::Tx;

/// A notification whose jobs are run in a transaction.
pub(crate) struct StepRun<'r, 't> {
    pub(crate) tx: &'r mut Tx<'t>,
    pub(crate) notification: Notification,
    pub(crate) facts: RunFacts<'r>,
}

impl StepRun<'_, '_> {
    /// Runs the jobs whose turn has come, and queues the first one that needs a provider.
    pub(crate) fn advance(&mut self) -> Result<()> {
        while let Some((job, kind)) = self.notification.next_job().map(|job| (job.id, job.kind)) {
            if kind != JobType::InApp {
                let queued = JobStatus::Queued { due_at: self.tx.now(), attempts: 0 };
                self.log(job, Detail::StepQueued, None);
                self.move_job(job, queued);
                break;
            }
            self.keep(job)?;
        }
        Ok(())
    }

    // Puts the message of an in-app job into the inbox.
    fn keep(&mut self, job: JobId) -> Result<()> {
        let facts = self.facts.step_facts();
        let Some(found) = self.notification.job(job) else { return Ok(()) };
        let rendered = match step_run::render(found, &self.notification, facts) {
            Ok(rendered) => rendered,
            Err(refusal) => {
                self.refuse(job, refusal);
                return Ok(());
            }
        };
        match self.message(job, Channel::InApp, rendered) {
            Some(mut message) => {
                message.delivered_at.push(self.tx.now());
                self.store(job, message)?;
                self.complete(job, Detail::MessageCreated, None);
            }
            None => self.refuse(job, Refusal::workflow_deleted()),
        }
        Ok(())
    }

    /// The message of `job` on `channel`. Returns `None` if the job or its workflow is gone.
    pub(crate) fn message(
        &mut self,
        job: JobId,
        channel: Channel,
        mut rendered: Rendered,
    ) -> Option<Message> {
        if let Some(variant) = rendered.variant.take() {
            self.log(job, Detail::VariantChosen, Some(variant));
        }
        let workflow = self.facts.workflow?;
        let number = self.notification.jobs.iter().position(|other| other.id == job)?;
        let template = self.notification.jobs.get(number)?.step.template_id;
        let (place, now) = (self.notification.place_of_message(number), self.tx.now());
        let id = MessageId::new(now, place, self.tx.random());
        Some(Message::new(id, &self.notification, workflow, template, channel, rendered, now))
    }

    /// Ends a job that is not done.
    pub(crate) fn refuse(&mut self, job: JobId, refusal: Refusal) {
        self.log(job, refusal.detail, refusal.raw);
        match refusal.kind {
            RefusalKind::Skip => self.move_job(job, JobStatus::Skipped),
            RefusalKind::Fail => self.fail(job),
        }
    }

    /// Ends a job whose message is where it should be.
    pub(crate) fn complete(&mut self, job: JobId, detail: Detail, raw: Option<String>) {
        self.log(job, detail, raw);
        self.move_job(job, JobStatus::Completed);
    }

    /// Stores the message of a job as the newest one of its subscriber.
    pub(crate) fn store(&mut self, job: JobId, message: Message) -> Result<()> {
        let key = layout::message_counters(message.environment_id, message.subscriber_id);
        let message = message.listed(&counters::find(self.tx, &key)?);
        self.tx.insert(&message)?;
        if let Some(job) = self.notification.job_mut(job) {
            job.message_id = Some(message.id);
        }
        Ok(())
    }

    /// Ends a failed job. The jobs after it end too if its step demands that.
    pub(crate) fn fail(&mut self, job: JobId) {
        self.move_job(job, JobStatus::Failed);
        if !self.stops_on_failure(job) {
            return;
        }
        while let Some(next) = self.notification.next_job().map(|job| job.id) {
            self.log(next, Detail::PrecedingStepFailed, None);
            self.move_job(next, JobStatus::Canceled);
        }
    }

    fn stops_on_failure(&self, job: JobId) -> bool {
        let workflow = self.facts.workflow;
        let step = self.notification.job(job).zip(workflow);
        step.and_then(|(job, workflow)| workflow.step(job.step.id))
            .is_some_and(|step| step.definition.should_stop_on_fail)
    }

    /// Writes into the log of a job.
    pub(crate) fn log(&mut self, job: JobId, detail: Detail, raw: Option<String>) {
        let (id, now) = (self.tx.id(), self.tx.now());
        if let Some(job) = self.notification.job_mut(job) {
            job.log(ExecutionDetail::new(id, detail, raw, now));
        }
    }

    /// Moves a job to `status`.
    pub(crate) fn move_job(&mut self, job: JobId, status: JobStatus) {
        let now = self.tx.now();
        // The clock may have gone back.
        self.notification.updated_at = now.max(self.notification.created_at);
        if let Some(job) = self.notification.job_mut(job) {
            job.move_to(status, now);
        }
    }
}
