//! Plans: what a turn of a notification does, and what an attempt to send a message does, decided
//! from facts alone.
//!
//! A notification has a turn when it is triggered, and again after each job that holds up those
//! behind it. A turn decides the jobs that do not wait for another one. A message for a provider is
//! decided a second time, when it is sent: the subscriber and the preferences may have changed.

mod attempt;
mod step;
mod turn;

use std::borrow::Cow;
use std::sync::Arc;

use crate::context::Context;
use crate::event::Event;
use crate::ids::StepId;
use crate::integration::Integration;
use crate::job::{Detail, JobStatus};
use crate::json::Object;
use crate::notification::Notification;
use crate::preference::Preference;
use crate::step::Rendered;
use crate::subscriber::Subscriber;
use crate::workflow::Workflow;

pub use attempt::{Address, Content, Dispatch, attempt};
pub use turn::{stop, stops_on_failure, turn};

/// Records that a plan depends on, as of one snapshot.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Subscriber of the notification. `None` if it was deleted.
    pub subscriber: Option<&'a Subscriber>,
    /// Workflow of the notification. `None` if it was deleted.
    pub workflow: Option<&'a Workflow>,
    /// Contexts of the notification.
    pub contexts: &'a [Context],
    /// Preference of the subscriber for every workflow.
    pub global: Option<&'a Preference>,
    /// Preference of the subscriber for this workflow.
    pub specific: Option<&'a Preference>,
    /// Integrations of the environment. A turn needs none.
    pub integrations: &'a [Arc<Integration>],
}

/// Part of a notification that a plan depends on. It exists before the notification does.
#[derive(Clone, Debug)]
pub struct Run<'a> {
    /// Payload of the trigger.
    pub payload: Cow<'a, Object>,
    /// Overrides of the trigger.
    pub overrides: Option<&'a Object>,
    /// Jobs, in the order of the steps.
    pub jobs: Vec<RunJob>,
}

/// Job of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunJob {
    /// Step.
    pub step: StepId,
    /// Status.
    pub status: JobStatus,
}

/// Decision about a job, which its number names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The job ends.
    Refuse(usize, Refusal),
    /// The message of the job is put into the inbox.
    Keep(usize, Box<Rendered>),
    /// The message of the job is sent by a task of its own.
    Send(usize),
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
    pub(crate) const fn new(kind: RefusalKind, detail: Detail) -> Self {
        Self { kind, detail, raw: None }
    }

    fn because(self, raw: String) -> Self {
        Self { raw: Some(raw), ..self }
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
}

const fn skip(detail: Detail) -> Refusal {
    Refusal::new(RefusalKind::Skip, detail)
}

const fn fail(detail: Detail) -> Refusal {
    Refusal::new(RefusalKind::Fail, detail)
}

const fn cancel(detail: Detail) -> Refusal {
    Refusal::new(RefusalKind::Cancel, detail)
}

impl<'a> Run<'a> {
    /// Returns the run of a notification that `event` is about to create.
    pub fn new(event: &Event<'a>) -> Self {
        let job =
            |step: &crate::step::WorkflowStep| RunJob { step: step.id, status: JobStatus::Pending };
        Self {
            payload: Cow::Borrowed(&event.trigger.payload),
            overrides: event.trigger.overrides.as_ref(),
            jobs: event.workflow.active_steps().map(job).collect(),
        }
    }

    /// Returns the run of a notification.
    pub fn of(notification: &'a Notification) -> Self {
        let jobs = notification.jobs.iter();
        Self {
            payload: notification.payload.as_ref().map(Cow::Borrowed).unwrap_or_default(),
            overrides: notification.overrides.as_ref(),
            jobs: jobs.map(|job| RunJob { step: job.step.id, status: job.status }).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
