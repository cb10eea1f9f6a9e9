//! Plans: what a turn of a notification does, and what an attempt to send a message does, decided
//! from facts alone.
//!
//! A notification has a turn when it is triggered, and again after each job that holds up those
//! behind it. A turn decides the jobs that do not wait for another one. A message for a provider is
//! decided a second time, when it is sent: the subscriber and the preferences may have changed.

mod attempt;
mod digested;
mod step;
mod targets;
mod turn;

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use crate::contact::TimeZone;
use crate::context::Context;
use crate::event::Event;
use crate::explain::EvidenceLog;
use crate::ids::{IntegrationId, MessageId, StepId, TransactionId};
use crate::integration::Integration;
use crate::job::{Detail, Job, JobStatus, SendStatus, SendTarget};
use crate::json::Object;
use crate::layout::FrameRef;
use crate::message::Stage;
use crate::notification::Notification;
use crate::preference::Preference;
use crate::schedule::Schedule;
use crate::step::{
    Digest, DigestEvent, Digested, EventKey, Rendered, StepOutput, StepResults, Throttle,
    WorkflowStep,
};
use crate::subscriber::Subscriber;
use crate::suppression::Suppression;
use crate::task::Tries;
use crate::template_data::Shared;
use crate::time::Timestamp;
use crate::translation::Texts;
use crate::unsubscribe::Link;
use crate::vocabulary::StepType;
use crate::workflow::Workflow;

use self::digested::{collected, only};

pub use attempt::{Address, Attempt, Content, Dispatch, OtherIntegrations, attempt, call, layout};
pub use digested::DigestedEvents;
pub use targets::ConnectedEndpoint;
pub use turn::{PASSED_OVER, STOPPED, close, decide_again, stop, stops_on_failure, turn};

/// Records that a plan depends on, as of one snapshot.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Subscriber of the notification. `None` if it was deleted.
    pub subscriber: Option<&'a Subscriber>,
    /// Subscriber who has caused the event.
    pub actor: Option<&'a Subscriber>,
    /// Workflow of the notification. `None` if it was deleted.
    pub workflow: Option<&'a Workflow>,
    /// Contexts of the notification.
    pub contexts: &'a [Context],
    /// Preference of the subscriber for every workflow.
    pub global: Option<&'a Preference>,
    /// Preference of the subscriber for this workflow.
    pub specific: Option<&'a Preference>,
    /// `true` if the event was canceled.
    pub canceled: bool,
    /// Integrations of the environment. A turn needs none.
    pub integrations: &'a [Arc<Integration>],
    /// Endpoints of the subscriber at the integrations of a text, chat or push message.
    pub endpoints: &'a [ConnectedEndpoint],
    /// Hours in which the subscriber accepts disturbing messages.
    pub schedule: Option<&'a Schedule>,
    /// Takes note of what the decisions are made from. `None` if nothing is explained.
    pub evidence: Option<&'a EvidenceLog>,
    /// Texts of the workflow in the languages of the subscriber.
    pub texts: Option<&'a Texts>,
    /// Layout of the e-mail. Only the attempt that renders one needs it.
    pub layout: FrameRef<'a>,
    /// Suppressions of the subscriber's addresses on the channel. Only an attempt looks for them.
    pub suppressions: &'a [Suppression],
    /// Unsubscribe link of the message. Only an attempt has one.
    pub link: Option<&'a Link>,
    /// Time zone of a subscriber without one.
    pub default_zone: TimeZone,
    /// Time of the plan.
    pub now: Timestamp,
}

/// Part of a notification that a plan depends on. It exists before the notification does.
#[derive(Clone, Debug)]
pub struct Run<'a> {
    /// Transaction id of the trigger.
    pub transaction_id: &'a TransactionId,
    /// Time of the trigger.
    pub created_at: Timestamp,
    /// Payload of the trigger.
    pub payload: Cow<'a, Object>,
    /// Overrides of the trigger.
    pub overrides: Option<&'a Object>,
    /// Time from which on nothing is sent any more.
    pub expires_at: Option<Timestamp>,
    /// Jobs, in the order of the steps.
    pub jobs: Vec<RunJob>,
    /// Results of the jobs, if a step refers to some.
    pub results: StepResults,
    /// Events of the digests that have closed, each with the number of its job.
    pub closed: Vec<(usize, Digested<'a>)>,
    /// The event of the trigger, as that of the first digest that it has passed, with the number of the
    /// first job behind that digest.
    pub passed: Option<(usize, DigestEvent)>,
    /// Values that templates share. The contexts, the workflow and the actor are those of the event
    /// in all facts of a run.
    pub(crate) shared: Shared,
    /// Earlier attempts to send the message of the attempt. Empty in a turn.
    pub tries: Tries,
    /// Integrations that are not called at the moment, since their circuit is open.
    pub open: Vec<IntegrationId>,
    /// Destination of the attempt, if the message has several.
    pub target: Option<SendTarget>,
}

/// Job of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunJob {
    /// Step.
    pub step: StepId,
    /// Type of the step.
    pub kind: StepType,
    /// Status.
    pub status: JobStatus,
    /// Number of extensions to the schedule of the subscriber.
    pub extensions: u32,
}

/// Decision about a job, which its number names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The job ends.
    Refuse(usize, Refusal),
    /// The message of the job is put into the inbox.
    DeliverInApp(usize, Box<Rendered>),
    /// The message of the job is sent by a task of its own.
    Send {
        /// Number of the job.
        job: usize,
        /// Time of the first attempt.
        due_at: Timestamp,
    },
    /// The job is done.
    Complete(usize, Detail),
    /// The jobs behind this one go on at a later time.
    Delay {
        /// Number of the job.
        job: usize,
        /// Time.
        until: Timestamp,
    },
    /// A job whose delay is over waits for the next opening of the schedule.
    Extend {
        /// Number of the job.
        job: usize,
        /// Time.
        until: Timestamp,
    },
    /// The event joins a window of the digest, opens one, or passes. The actions behind this one
    /// count only if it passes.
    Digest(usize, Box<DigestAction>),
    /// The event takes a place in a window of the throttle, if one is free. The actions behind this
    /// one count only in that case.
    Throttle(usize, Box<ThrottleAction>),
    /// A function of the host application is called by a task of its own.
    Call(usize),
}

impl Action {
    /// Returns the number of the job.
    pub const fn job(&self) -> usize {
        match self {
            Action::Refuse(job, _)
            | Action::DeliverInApp(job, _)
            | Action::Send { job, .. }
            | Action::Complete(job, _)
            | Action::Delay { job, .. }
            | Action::Extend { job, .. }
            | Action::Digest(job, _)
            | Action::Throttle(job, _)
            | Action::Call(job) => *job,
        }
    }
}

/// Returns the size of the messages that `actions` put into the inbox, in bytes. Each of them has the
/// payload and the overrides of its event, which take `event` bytes.
pub fn messages_size(event: usize, actions: &[Action]) -> usize {
    let size = |action: &Action| match action {
        Action::DeliverInApp(_, rendered) => event + rendered.size(),
        _ => 0,
    };
    actions.iter().map(size).sum()
}

/// Digest of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DigestAction {
    /// Settings of the step.
    pub metadata: Digest,
    /// Value in the payload.
    pub key: EventKey,
    /// Time zone of the subscriber.
    pub zone: TimeZone,
}

/// Throttle of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThrottleAction {
    /// Settings of the step.
    pub metadata: Throttle,
    /// Value in the payload.
    pub key: EventKey,
    /// Time zone of the subscriber.
    pub zone: TimeZone,
}

/// Reason for not running a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Kind of refusal.
    pub kind: RefusalKind,
    /// Entry for the log.
    pub detail: Detail,
    /// Details, as text.
    pub raw: Option<String>,
}

/// Kind of refusal of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// A rule skips the job.
    Skip,
    /// The job should run, but cannot.
    Fail,
    /// The notification has come to its end before the job.
    Cancel,
}

impl Refusal {
    /// Returns a refusal without details.
    pub const fn new(kind: RefusalKind, detail: Detail) -> Self {
        Self { kind, detail, raw: None }
    }

    /// Returns the refusal with details.
    #[must_use]
    pub fn because(self, raw: String) -> Self {
        Self { raw: Some(raw), ..self }
    }
}

impl<'a> Run<'a> {
    /// Returns the run of a notification that `event` is about to create.
    pub fn new(event: &Event<'a>) -> Self {
        let job = |step: &WorkflowStep| RunJob {
            step: step.id,
            kind: step.definition.kind.step_type(),
            status: JobStatus::Pending,
            extensions: 0,
        };
        let run = Self {
            transaction_id: event.transaction_id,
            created_at: event.now,
            payload: Cow::Borrowed(&event.trigger.payload),
            overrides: event.trigger.overrides.as_ref(),
            results: StepResults::default(),
            closed: Vec::new(),
            passed: None,
            shared: Shared::default(),
            tries: Tries::default(),
            open: Vec::new(),
            target: None,
            expires_at: event.trigger.expires_at,
            jobs: event.workflow.active_steps().map(job).collect(),
        };
        run.past_digests_without_jobs(event.workflow)
    }

    /// Returns the run of a notification.
    pub fn of(notification: &'a Notification) -> Self {
        let jobs = notification.jobs.iter();
        let closed = |(number, job)| Some((number, collected(job)?));
        let run = Self {
            transaction_id: &notification.transaction_id,
            created_at: notification.created_at,
            payload: notification.payload.as_ref().map(Cow::Borrowed).unwrap_or_default(),
            overrides: notification.overrides.as_ref(),
            expires_at: notification.expires_at,
            results: StepResults::default(),
            shared: Shared::default(),
            closed: jobs.clone().enumerate().filter_map(closed).collect(),
            passed: None,
            jobs: jobs.map(RunJob::of).collect(),
            tries: Tries::default(),
            open: Vec::new(),
            target: None,
        };
        match run.jobs.iter().position(|job| job.has_passed()) {
            Some(digest) => run.passing(digest + 1),
            None => run,
        }
    }

    /// Adds the results of the jobs of `notification`, to which steps of `workflow` refer. `stage`
    /// returns how far the reader of a message is.
    #[must_use]
    pub fn with_results(
        mut self,
        notification: &Notification,
        workflow: &Workflow,
        stage: impl Fn(MessageId) -> Option<Stage>,
    ) -> Self {
        for job in &notification.jobs {
            let Some(step) = workflow.step(job.step.id) else { continue };
            let stage = job.message_id.and_then(&stage);
            let alone = RunJob::of(job).has_passed().then(|| self.alone());
            let events = collected(job).or(alone.as_ref().map(only));
            let value = job.result.clone().map(Value::from);
            let output = match (&stage, events, &value) {
                (Some(stage), ..) => {
                    StepOutput::Message { seen: stage.is_seen(), read: stage.is_read() }
                }
                (None, Some(events), _) => StepOutput::Digest(events),
                (None, None, Some(value)) => StepOutput::Value(value),
                (None, None, None) => StepOutput::Nothing,
            };
            self.results.insert(step, job.status.as_str(), output);
        }
        self
    }

    /// Returns the run of an event that passes the digests of its workflow without a job: those that are
    /// inactive, and those that were added since.
    #[must_use]
    pub fn past_digests_without_jobs(mut self, workflow: &Workflow) -> Self {
        for (place, step) in workflow.steps.iter().enumerate() {
            if !step.is_digest() || self.jobs.iter().any(|job| job.step == step.id) {
                continue;
            }
            if workflow.refers_to_results() {
                let alone = self.alone();
                let output = StepOutput::Digest(only(&alone));
                self.results.insert(step, JobStatus::Skipped.as_str(), output);
            }
            let before = workflow.steps.get(..place).unwrap_or_default();
            let is_before = |job: &RunJob| before.iter().any(|step| step.id == job.step);
            let behind = self.jobs.iter().rposition(is_before).map_or(0, |last| last + 1);
            self = self.passing(behind);
        }
        self
    }
}

impl RunJob {
    fn of(job: &Job) -> Self {
        Self {
            step: job.step.id,
            kind: job.kind,
            status: job.status,
            extensions: job.schedule_extensions_count.unwrap_or_default(),
        }
    }

    // Returns `true` for a digest that the event has passed.
    fn has_passed(self) -> bool {
        self.kind == StepType::Digest && self.status == JobStatus::Skipped
    }
}

impl Action {
    /// Returns `true` if a rule skips the job.
    pub fn is_skip(&self) -> bool {
        matches!(self, Action::Refuse(_, Refusal { kind: RefusalKind::Skip, .. }))
    }
}

impl RefusalKind {
    /// Returns the status of a job that was refused.
    pub const fn status(self) -> JobStatus {
        match self {
            RefusalKind::Skip => JobStatus::Skipped,
            RefusalKind::Fail => JobStatus::Failed,
            RefusalKind::Cancel => JobStatus::Canceled,
        }
    }

    /// Returns the status of a send that was refused.
    pub const fn send_status(self) -> SendStatus {
        match self {
            RefusalKind::Skip => SendStatus::Skipped,
            RefusalKind::Fail => SendStatus::Failed,
            RefusalKind::Cancel => SendStatus::Canceled,
        }
    }
}

const fn skip(detail: Detail) -> Refusal {
    Refusal::new(RefusalKind::Skip, detail)
}

pub(crate) const fn fail(detail: Detail) -> Refusal {
    Refusal::new(RefusalKind::Fail, detail)
}

const fn cancel(detail: Detail) -> Refusal {
    Refusal::new(RefusalKind::Cancel, detail)
}

/// Refusal of the jobs of an event that has expired.
pub const EXPIRED: Refusal = skip(Detail::Expired);

/// Refusal of the jobs of a canceled event.
pub const CANCELED: Refusal = cancel(Detail::Canceled);

#[cfg(test)]
mod tests;
