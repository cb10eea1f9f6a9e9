//! Marks of dead letters in the records of their jobs and sends.

use serde::{Deserialize, Serialize};

use super::{DeadLetter, DeadLetterReason, LetterFacts};
use crate::ids::{DeadLetterId, IntegrationId, MessageId};
use crate::job::{Job, SendTarget};
use crate::notification::Notification;
use crate::time::Timestamp;

/// Mark of a job, or of one of its sends, that its message is a dead letter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DeadLetterMark {
    /// Id of the dead letter.
    #[serde(rename = "_id")]
    pub id: DeadLetterId,
    /// Reason.
    pub reason: DeadLetterReason,
    /// Details of the reason, such as the answer of the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Integration of the last attempt.
    #[serde(rename = "_integrationId", default, skip_serializing_if = "Option::is_none")]
    pub integration_id: Option<IntegrationId>,
    /// Message with the content of the attempts.
    #[serde(rename = "_messageId", default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// Destination of the attempts, if the message had no other one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub called: Option<SendTarget>,
    /// Time of the failure.
    pub died_at: Timestamp,
}

/// Place of a mark in a notification.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkPlace {
    /// Number of the job.
    pub job: usize,
    /// Number of the send of the job. `None` if the mark is that of the job.
    pub send: Option<usize>,
}

impl DeadLetterMark {
    /// Returns the mark of a message that has failed at `died_at` for good, without details.
    #[doc(hidden)]
    pub const fn new(id: DeadLetterId, reason: DeadLetterReason, died_at: Timestamp) -> Self {
        let (text, integration_id, message_id, called) = (None, None, None, None);
        Self { id, reason, text, integration_id, message_id, called, died_at }
    }
}

impl Job {
    // The marks of the job and of its sends.
    fn marks(&self) -> impl Iterator<Item = (Option<usize>, &DeadLetterMark)> {
        let own = self.dead_letter.iter().map(|mark| (None, mark));
        let sends = self.sends.iter().enumerate();
        own.chain(sends.filter_map(|(at, send)| Some((Some(at), send.dead_letter.as_ref()?))))
    }

    /// Removes all marks, since the message is sent anew.
    #[doc(hidden)]
    pub fn unmark(&mut self) {
        self.dead_letter = None;
        for send in &mut self.sends {
            send.dead_letter = None;
        }
    }
}

impl Notification {
    /// Returns the facts of the dead letters, which their index entries hold.
    #[doc(hidden)]
    pub fn letter_facts(&self) -> impl Iterator<Item = LetterFacts> {
        let marked = self.jobs.iter().flat_map(|job| job.marks().map(move |(_, mark)| (job, mark)));
        marked.filter_map(|(job, mark)| {
            Some(LetterFacts {
                id: mark.id,
                died_at: mark.died_at,
                workflow_id: self.workflow_id,
                integration_id: mark.integration_id,
                channel: job.kind.channel()?,
                reason: mark.reason,
                ordinal: self.id.ordinal(),
            })
        })
    }

    /// Returns the place of the mark of a dead letter, and the mark.
    #[doc(hidden)]
    pub fn mark(&self, id: DeadLetterId) -> Option<(MarkPlace, &DeadLetterMark)> {
        let jobs = self.jobs.iter().enumerate();
        let mut marks = jobs.flat_map(|(number, job)| {
            job.marks().map(move |(send, mark)| (MarkPlace { job: number, send }, mark))
        });
        marks.find(|(_, mark)| mark.id == id)
    }

    /// Returns a dead letter of the notification.
    #[doc(hidden)]
    pub fn dead_letter(&self, id: DeadLetterId) -> Option<DeadLetter> {
        let (place, mark) = self.mark(id)?;
        let job = self.jobs.get(place.job)?;
        let send = place.send.and_then(|send| job.sends.get(send));
        Some(DeadLetter {
            id,
            notification_id: self.id,
            transaction_id: self.transaction_id.clone(),
            workflow_id: self.workflow_id,
            step_id: job.step.id,
            subscriber_id: self.subscriber_id,
            channel: job.kind.channel()?,
            idempotency_key: send.map_or(job.id.into(), |send| send.id),
            target: send.map(|send| send.target.clone()).or_else(|| mark.called.clone()),
            reason: mark.reason,
            text: mark.text.clone(),
            integration_id: mark.integration_id,
            message_id: mark.message_id,
            died_at: mark.died_at,
        })
    }

    /// Removes the mark in that place.
    #[doc(hidden)]
    pub fn take_mark(&mut self, place: MarkPlace) -> Option<DeadLetterMark> {
        let job = self.jobs.get_mut(place.job)?;
        match place.send {
            Some(send) => job.sends.get_mut(send)?.dead_letter.take(),
            None => job.dead_letter.take(),
        }
    }
}
