//! Settlement of the sends of a message with several destinations.

use domain::endpoint::ChannelEndpoint;
use domain::ids::{MessageId, SendId};
use domain::job::{Destination, Detail, JobSend, JobStatus, SendStatus, SendTarget, SendsOutcome};
use domain::message::Message;
use domain::task::{SendWork, Task, Work};
use store::{ReadRecords, WriteRecords, layout};

use super::Settled;
use crate::Result;
use crate::pipeline::delivery::provider::Delivery;
use crate::pipeline::notification_tx::NotificationTx;
use crate::resources::{endpoints, subscribers};

impl NotificationTx<'_, '_> {
    // Leaves a task for each destination.
    pub(super) fn split_into_sends(
        &mut self,
        job: usize,
        task: &Task,
        targets: &[SendTarget],
    ) -> Result<Settled> {
        self.tx.remove(task)?;
        let (now, notification_id) = (self.tx.now(), self.notification.id);
        let Some(stored) = self.notification.jobs.get_mut(job) else {
            return Ok(Settled::Nothing);
        };
        let job_id = stored.id;
        stored.split(targets);
        let sends = stored.sends.clone();
        self.log(job, Detail::SendsQueued, Some(sends.len().to_string()));
        self.move_job(job, JobStatus::Queued { due_at: now, attempts: 0 });
        for JobSend { id, target, .. } in sends {
            let work = SendWork { target: Some(target), ..SendWork::new(notification_id, job_id) };
            self.queue(id.into(), now, Work::Send(work))?;
        }
        Ok(Settled::Nothing)
    }

    // Stores the message of an integration, which has several destinations.
    pub(super) fn store_send(
        &mut self,
        job: usize,
        send: SendId,
        message: Message,
    ) -> Result<Option<MessageId>> {
        let Some(stored) = self.notification.jobs.get(job) else { return Ok(None) };
        let send = stored.sends.iter().find(|one| one.id == send);
        let Some(integration) = send.map(|one| one.target.integration_id) else { return Ok(None) };
        let before = stored.stored_message(integration);
        let before = before.map_or(Ok(None), |id| self.message(id))?;
        let (before, message) = match before {
            Some(before) => {
                let joined = message.joined(&before);
                (Some(before), joined)
            }
            None => self.in_a_free_place(message)?,
        };
        let Some(id) = self.list(before, message)? else { return Ok(None) };
        let Some(stored) = self.notification.jobs.get_mut(job) else { return Ok(None) };
        stored.set_message(integration, id);
        Ok(Some(id))
    }

    // Returns the message of an integration in a place without one, and the message that it replaces if there is no
    // such place. An integration without destinations may have left its message.
    fn in_a_free_place(&self, mut message: Message) -> Result<(Option<Message>, Message)> {
        loop {
            let Some(there) = self.message(message.id)? else { return Ok((None, message)) };
            match message.id.of_next_integration() {
                Some(next) => message.id = next,
                None => return Ok((Some(there), message)),
            }
        }
    }

    // Ends a send, and the job with the last one.
    pub(super) fn end_send(&mut self, job: usize, send: SendId, status: SendStatus) -> Result<()> {
        let Some(stored) = self.notification.jobs.get_mut(job) else { return Ok(()) };
        if let Some(one) = stored.sends.iter_mut().find(|one| one.id == send) {
            one.status = status;
        }
        if self.end_sends(job) { self.go_on_behind(job) } else { Ok(()) }
    }

    /// Ends a job whose sends have ended. Returns `false` if one has not.
    pub(crate) fn end_sends(&mut self, job: usize) -> bool {
        let Some(stored) = self.notification.jobs.get(job) else { return false };
        let outcome = SendsOutcome::of(&stored.sends);
        let Some(status) = outcome.status() else { return false };
        if let SendsOutcome::SomeFailed { failed } = outcome {
            self.log(job, Detail::SomeSendsFailed, Some(failed.to_string()));
        }
        self.move_job(job, status);
        true
    }

    // Removes a destination without a recipient. It may have got another address during the call.
    pub(super) fn remove_destination(
        &mut self,
        job: usize,
        delivery: &Delivery,
        target: &SendTarget,
    ) -> Result<()> {
        let removed = match &target.to {
            Destination::Endpoint { identifier } => {
                let key = layout::endpoint(self.notification.environment_id, identifier);
                let found = self.tx.find::<ChannelEndpoint>(&key)?;
                let endpoint = found.filter(|one| {
                    one.integration_id == target.integration_id
                        && delivery.address.is_at(&one.endpoint)
                });
                if let Some(endpoint) = &endpoint {
                    endpoints::remove(self.tx, endpoint)?;
                }
                endpoint.is_some()
            }
            Destination::Webhook | Destination::Device { .. } => {
                let found = subscribers::find_by_id(self.tx, self.notification.subscriber_id)?;
                let Some(before) = found else { return Ok(()) };
                let after = before.without(target, &delivery.address, self.tx.now());
                if let Some(after) = &after {
                    self.tx.replace(&before, after)?;
                }
                after.is_some()
            }
        };
        if removed {
            self.log(job, Detail::RecipientRemoved, target.to.shown());
        }
        Ok(())
    }
}
