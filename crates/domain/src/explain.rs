//! Explanations: what becomes of an event, for each recipient and each step, and why.

mod evidence;
mod gate;
mod tree;

use serde::Serialize;

use crate::content::{Cta, MessageContent};
use crate::ids::{SubscriberId, TopicKey, TransactionId, WorkflowIdentifier};
use crate::job::{Detail, ExecutionDetail, Job, JobStatus};
use crate::message::Message;
use crate::time::Timestamp;
use crate::trigger::TriggerStatus;
use crate::vocabulary::{Channel, StepType, wire_enum};

#[doc(hidden)]
pub use evidence::EvidenceLog;
pub use evidence::{
    Candidate, ConditionCheck, DigestResult, Evidence, EvidenceKind, LayerSetting, VariantChoice,
};
pub use gate::{FilteredMember, RefusingSubscription};

pub use crate::integration::route::Rejected;
pub use crate::schedule::send_time::SendTime;

/// Explanation of an event: the outcome for each recipient and each step, with the reasons. It prints as a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Explanation {
    /// Identifier of the workflow.
    pub workflow: WorkflowIdentifier,
    /// Time of the event.
    pub at: Timestamp,
    /// Outcome of the event as a whole.
    pub outcome: EventOutcome,
    /// Recipients: those that the event names, and those of its topics unless they are a crowd.
    pub recipients: Vec<ExplainedRecipient>,
    /// Crowd of the event: the members of its topics, if they are more than 100. Tasks notify them, and the
    /// explanation only counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crowd: Option<ExplainedCrowd>,
    /// Number of subscribers in the topics without a subscription that admits the event.
    pub filtered: usize,
    /// These subscribers, with their subscriptions: at most 100.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filtered_members: Vec<FilteredMember>,
    /// Topics that do not exist.
    pub missing_topics: Vec<TopicKey>,
    /// Jobs that wait at the end of the simulated time. `None` if all jobs have ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
}

/// Outcome of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum EventOutcome {
    /// The event is accepted, and its recipients are notified.
    Accepted,
    /// The event changes nothing, because an earlier event has the same transaction id.
    #[non_exhaustive]
    Repeated {
        /// Transaction id.
        transaction_id: TransactionId,
    },
    /// The event changes nothing. `status` has the reason.
    #[non_exhaustive]
    NoEffect {
        /// Status in the receipt of the trigger.
        status: TriggerStatus,
    },
}

/// Crowd of an event, which tasks notify.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ExplainedCrowd {
    /// Number of subscribers, whether their subscriptions admit the event or not.
    pub subscribers: usize,
    /// `false` if there are more than were counted.
    pub is_complete: bool,
}

/// Jobs that wait at the end of the simulated time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Cut {
    /// End of the simulated time.
    pub until: Timestamp,
    /// Number of jobs that wait.
    pub jobs: usize,
}

/// Outcome of an event for a recipient.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ExplainedRecipient {
    /// Id of the subscriber in the host application.
    pub subscriber_id: SubscriberId,
    /// `true` if the event creates the subscriber.
    pub is_new: bool,
    /// Topics through which the event reaches the subscriber.
    pub topics: Vec<TopicKey>,
    /// Steps, in their order.
    pub steps: Vec<ExplainedStep>,
}

/// Outcome of a step for a recipient.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ExplainedStep {
    /// Type of the step.
    #[serde(rename = "type")]
    pub kind: StepType,
    /// Name of the step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Status of the job.
    #[serde(flatten)]
    pub status: JobStatus,
    /// Last entry in the log of the job, which is the reason of its status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Detail>,
    /// Time of the last change of the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
    /// Inputs of the decisions about the step, in their order.
    #[serde(rename = "findings")]
    pub evidence: Vec<Evidence>,
    /// Log of the job.
    pub log: Vec<ExplainedEntry>,
    /// Message of the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<ExplainedMessage>,
    /// Assumptions on which the outcome depends.
    pub assumed: Vec<Assumption>,
}

/// Entry in the log of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ExplainedEntry {
    /// Time of the entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// Event that the entry records.
    pub detail: Detail,
    /// Details, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
}

/// Message of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ExplainedMessage {
    /// Channel.
    pub channel: Channel,
    /// Time of creation.
    pub created_at: Timestamp,
    /// E-mail address or telephone number of the recipient.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Id of the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// Subject of an e-mail, or line above a message in the inbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Title of a push message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<MessageContent>,
    /// Target of a click, and buttons, of a message in the inbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cta: Option<Cta>,
}

wire_enum! {
    /// Assumption of an explanation.
    ///
    /// | assumption | |
    /// |---|---|
    /// | `provider_accepts` | the provider accepts the message |
    /// | `no_result` | the function of a custom step succeeds without a result |
    /// | `no_later_events` | no later event joins the window of the digest |
    /// | `earlier_event` | at the end of the window, an earlier event of it is neither canceled nor expired |
    /// | `no_other_events` | no other event reaches a throttle or a digest first, while a step before it waits |
    /// | `unread` | the subscriber has neither seen nor read an earlier message |
    #[non_exhaustive]
    Assumption, "assumed":
    ProviderAccepts = "provider_accepts",
    NoResult = "no_result",
    NoLaterEvents = "no_later_events",
    EarlierEvent = "earlier_event",
    NoOtherEvents = "no_other_events",
    Unread = "unread",
}

impl Explanation {
    /// Returns the explanation of an event without recipients.
    #[doc(hidden)]
    pub const fn new(workflow: WorkflowIdentifier, at: Timestamp, outcome: EventOutcome) -> Self {
        Self {
            workflow,
            at,
            outcome,
            recipients: Vec::new(),
            crowd: None,
            filtered: 0,
            filtered_members: Vec::new(),
            missing_topics: Vec::new(),
            cut: None,
        }
    }

    /// Adds what the explanation does not reach: the jobs that wait at `until`.
    #[doc(hidden)]
    #[must_use]
    pub fn cut_at(mut self, until: Timestamp) -> Self {
        let steps = self.recipients.iter().flat_map(|recipient| &recipient.steps);
        let jobs = steps.filter(|step| !step.status.has_ended()).count();
        self.cut = (jobs > 0).then_some(Cut { until, jobs });
        self
    }

    /// Returns what becomes of the event for a subscriber. Returns `None` if it is no recipient.
    pub fn recipient(&self, subscriber_id: &str) -> Option<&ExplainedRecipient> {
        let mut recipients = self.recipients.iter();
        recipients.find(|recipient| recipient.subscriber_id.as_str() == subscriber_id)
    }
}

impl EventOutcome {
    /// Returns the outcome of an event whose transaction id an earlier one has.
    #[doc(hidden)]
    pub const fn repeated(transaction_id: TransactionId) -> Self {
        EventOutcome::Repeated { transaction_id }
    }

    /// Returns the outcome of an event with this status.
    #[doc(hidden)]
    pub fn of(status: TriggerStatus) -> Self {
        match status {
            TriggerStatus::Processed => EventOutcome::Accepted,
            TriggerStatus::TriggerNotActive
            | TriggerStatus::NoActiveSteps
            | TriggerStatus::NoSteps => EventOutcome::NoEffect { status },
        }
    }
}

impl ExplainedCrowd {
    /// Returns a crowd of so many subscribers.
    #[doc(hidden)]
    pub const fn new(subscribers: usize, is_complete: bool) -> Self {
        Self { subscribers, is_complete }
    }
}

impl ExplainedRecipient {
    /// Returns a recipient without steps.
    #[doc(hidden)]
    pub const fn new(subscriber_id: SubscriberId, is_new: bool, topics: Vec<TopicKey>) -> Self {
        Self { subscriber_id, is_new, topics, steps: Vec::new() }
    }

    /// Returns the first step with this name.
    pub fn step(&self, name: &str) -> Option<&ExplainedStep> {
        self.steps.iter().find(|step| step.name.as_deref() == Some(name))
    }
}

impl ExplainedStep {
    /// Returns the explanation of a job of an event at `at`, with its message.
    #[doc(hidden)]
    pub fn new(
        job: &Job,
        at: Timestamp,
        evidence: Vec<Evidence>,
        message: Option<&Message>,
    ) -> Self {
        let assumed = Assumption::ALL.iter().copied();
        let assumed = assumed.filter(|one| one.is_made(job, at, &evidence)).collect();
        Self {
            kind: job.kind,
            name: job.step.name.clone(),
            status: job.status,
            reason: job.execution_details.last().map(|entry| entry.detail),
            updated_at: job.updated_at,
            log: job.execution_details.iter().map(ExplainedEntry::from).collect(),
            message: message.map(ExplainedMessage::from),
            evidence,
            assumed,
        }
    }
}

impl Assumption {
    fn is_made(self, job: &Job, at: Timestamp, evidence: &[Evidence]) -> bool {
        let mut log = job.execution_details.iter();
        let mut logged = |detail| log.any(|entry| entry.detail == detail);
        match self {
            Assumption::ProviderAccepts => logged(Detail::MessageSent),
            Assumption::NoResult => logged(Detail::HandlerCompleted),
            Assumption::NoLaterEvents => logged(Detail::DigestOpened),
            Assumption::EarlierEvent => logged(Detail::DigestMerged),
            Assumption::NoOtherEvents => log.any(|entry| {
                let is_first = matches!(
                    entry.detail,
                    Detail::ThrottlePassed | Detail::DigestOpened | Detail::DigestPassed
                );
                is_first && entry.created_at.is_some_and(|reached_at| reached_at > at)
            }),
            Assumption::Unread => evidence.iter().any(|one| one.kind.asks_for_reader()),
        }
    }
}

impl From<&ExecutionDetail> for ExplainedEntry {
    fn from(entry: &ExecutionDetail) -> Self {
        Self { at: entry.created_at, detail: entry.detail, raw: entry.raw.clone() }
    }
}

impl From<&Message> for ExplainedMessage {
    fn from(message: &Message) -> Self {
        Self {
            channel: message.channel,
            created_at: message.created_at,
            to: message.email.clone().or_else(|| message.phone.clone()),
            provider_id: message.provider_id.clone(),
            subject: message.subject.clone(),
            title: message.title.clone(),
            content: message.content.clone(),
            cta: Some(&message.cta).filter(|cta| **cta != Cta::default()).cloned(),
        }
    }
}
