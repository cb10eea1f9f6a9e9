//! Messages of jobs that have ended, sent again.

use domain::job::{Detail, JobStatus};
use domain::message::{Message, Stage};
use domain::plan;
use domain::vocabulary::Channel;

use super::facts::RunFacts;
use super::live_events::LiveEvents;
use super::notification_tx::NotificationTx;
use crate::Result;

impl NotificationTx<'_, '_> {
    /// Sends the message of a job that has ended again. The job gets another id, which is the
    /// idempotency key of the attempts. A message in the inbox is unseen again, and one that could not
    /// be rendered is rendered again. One for a provider keeps its marks. Returns `false` if there is none.
    pub(crate) fn resend(&mut self, job: usize) -> Result<bool> {
        let Some(resent) = self.notification.jobs.get(job) else { return Ok(false) };
        if resent.kind.channel() == Some(Channel::InApp) {
            let has_failed = resent.status == JobStatus::Failed;
            return if has_failed { self.make_anew(job) } else { self.deliver_again(job) };
        }
        let now = self.tx.now();
        self.note_addresses(job)?;
        self.begin_anew(job);
        self.send(job, now)?;
        Ok(true)
    }

    // Puts the message of a job into the inbox again.
    fn deliver_again(&mut self, job: usize) -> Result<bool> {
        let Some(mut again) = self.delivered(job)? else { return Ok(false) };
        again.delivered_at = vec![self.tx.now()];
        again.listed_at = None;
        again.stage = Stage::Unseen;
        again.snoozed_until = None;
        self.log(job, Detail::StepResent, None);
        self.store(job, again)?;
        self.complete(job, Detail::MessageCreated, None);
        Ok(true)
    }

    // Decides a job of the inbox once more, by the workflow and the subscriber as they are now.
    fn make_anew(&mut self, job: usize) -> Result<bool> {
        let now = self.tx.now();
        let facts = RunFacts::of(self.tx, &self.notification, job, &LiveEvents::bounded(now))?;
        let run = facts.run(self.tx, &self.notification)?;
        let Some(action) = plan::decide_again(&run, job, facts.facts(now)) else {
            return Ok(false);
        };
        self.begin_anew(job);
        self.perform(&[action])?;
        Ok(true)
    }

    // Notes what the message was sent to so far. The row of the message has the next address when it is sent,
    // and late reports are about this one.
    fn note_addresses(&mut self, job: usize) -> Result<()> {
        let Some(before) = self.notification.jobs.get(job) else { return Ok(()) };
        let mut addresses = Vec::with_capacity(before.provider_messages.len());
        for sent in &before.provider_messages {
            let message = match before.message_of(sent.integration_id) {
                Some(id) if sent.resent.is_none() => self.message(id)?,
                Some(_) | None => None,
            };
            addresses.push(message.as_ref().and_then(Message::address));
        }
        if let Some(job) = self.notification.jobs.get_mut(job) {
            for (sent, address) in job.provider_messages.iter_mut().zip(addresses) {
                sent.resend(address);
            }
        }
        Ok(())
    }

    fn begin_anew(&mut self, job: usize) {
        let id = self.tx.id();
        if let Some(job) = self.notification.jobs.get_mut(job) {
            job.id = id;
            job.unmark();
        }
        self.log(job, Detail::StepResent, None);
    }
}
