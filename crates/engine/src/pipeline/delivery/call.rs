//! Calls: custom steps, which are functions of the host application.

use std::fmt;

use domain::ids::{JobId, NotificationId};
use domain::job::Detail;
use domain::json::Object;
use domain::notification::Notification;
use domain::plan::{self, Hold, Refusal};
use domain::subscriber::Subscriber;
use domain::task::Outcome;

use super::FailureReason;
use super::claim::Leased;
use super::provider::SendError;
use crate::Engine;
use crate::Result;
use crate::host::{self, Panicked};
use crate::pipeline::facts::RunFacts;
use crate::pipeline::left::LiveEvents;
use crate::resources::notifications;
use crate::tx::Reading;

/// A function of the host application that a custom step calls.
///
/// The engine repeats the call with the same [`idempotency_key`](Call::idempotency_key) if the
/// answer was lost, and after an error that is retryable. The result of the function is known to the
/// steps behind it as `steps.<name>.result`.
///
/// ```
/// use serde_json::json;
/// use tidings::{Call, Engine, SendError, json::Object};
///
/// let engine = Engine::builder()
///     .handler("invoice", |call: &Call| {
///         let total = call.notification.payload.as_ref().and_then(|payload| payload.get("total"));
///         let total = total.ok_or(SendError::permanent("no total"))?;
///         Ok(Object::try_from(json!({ "open": total })).ok())
///     })
///     .build(tidings::store::memory::MemoryStore::default());
/// # drop(engine);
/// ```
pub trait Handler: Send + Sync + 'static {
    /// Does the step. Returns its result, if it has one. A result that is larger than
    /// [`Limits::payload`](crate::limits::Limits::payload) fails the step.
    ///
    /// # Errors
    ///
    /// [`SendError`]. Its variant decides whether the engine tries again.
    fn call(&self, call: &Call) -> Result<Option<Object>, SendError>;
}

impl<F> Handler for F
where
    F: Fn(&Call) -> Result<Option<Object>, SendError> + Send + Sync + 'static,
{
    fn call(&self, call: &Call) -> Result<Option<Object>, SendError> {
        self(call)
    }
}

impl fmt::Debug for dyn Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handler").finish_non_exhaustive()
    }
}

/// A call of a [`Handler`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Call {
    /// Notification of the step.
    pub notification: Notification,
    /// Recipient.
    pub subscriber: Subscriber,
    pub(super) handler: String,
    pub(super) job: JobId,
    pub(super) attempts: u32,
}

/// Decision about a call.
#[derive(Debug)]
pub(super) enum Prepared {
    Call(Box<Call>),
    Refuse(Refusal),
    Hold(Hold),
    Drop,
}

/// Result of a call.
#[derive(Debug)]
pub(super) enum CallResult {
    Done(Option<Object>),
    Refused(SendError),
    NoHandler,
}

impl Call {
    /// Returns the key of the call, the same for every attempt.
    pub fn idempotency_key(&self) -> JobId {
        self.job
    }

    /// Returns the number of the attempt, from 1. Attempts that ended in a crash count.
    pub fn attempt(&self) -> u32 {
        self.attempts
    }
}

/// Decides a call on a snapshot.
pub(super) fn prepare(
    engine: &Engine,
    leased: &Leased,
    (notification_id, job_id): (NotificationId, JobId),
) -> Result<Prepared> {
    let (home, now) = (leased.task.home(), leased.now(engine));
    engine.read(|snapshot| {
        let view = Reading { engine, home: &home, snapshot };
        let Some(notification) = notifications::find(&view, notification_id)? else {
            return Ok(Prepared::Drop);
        };
        let Some(number) = leased.task.work.job_in(&notification) else {
            return Ok(Prepared::Drop);
        };
        let facts = RunFacts::of(&view, &notification, number, &LiveEvents::unbounded(now))?;
        if let Some(hold) = plan::hold(facts.workflow.as_deref()) {
            return Ok(Prepared::Hold(hold));
        }
        let run = facts.run(&view, &notification)?;
        let Some(job) = run.jobs.get(number) else { return Ok(Prepared::Drop) };
        let handler = match plan::call(&run, *job, facts.facts(now)) {
            Ok(handler) => handler.to_owned(),
            Err(refusal) => return Ok(Prepared::Refuse(refusal)),
        };
        let Some(subscriber) = facts.subscriber else { return Ok(Prepared::Drop) };
        let attempts = leased.attempt();
        let call = Call { notification, subscriber, handler, job: job_id, attempts };
        Ok(Prepared::Call(Box::new(call)))
    })
}

/// Calls the handler. Its panic is an error that is retryable, and a result that is too large one that
/// is permanent: the work is done.
pub(super) fn call(engine: &Engine, call: &Call) -> CallResult {
    let Some(handler) = engine.parts.handlers.get(&call.handler) else {
        return CallResult::NoHandler;
    };
    match host::call(|| handler.call(call)) {
        Ok(Ok(result)) => match engine.parts.limits.check_result(result.as_ref()) {
            Ok(()) => CallResult::Done(result),
            Err(invalid) => CallResult::Refused(SendError::permanent(invalid.to_string())),
        },
        Ok(Err(error)) => CallResult::Refused(error),
        Err(Panicked) => CallResult::Refused(SendError::unknown("the handler panicked")),
    }
}

impl CallResult {
    /// Returns the outcome of the attempt.
    pub(super) fn outcome(&self) -> Outcome {
        match self {
            CallResult::Done(_) => Outcome::Done,
            CallResult::Refused(error) => error.outcome(),
            CallResult::NoHandler => Outcome::Never,
        }
    }

    /// Returns the entry in the log of a job that fails.
    pub(super) const fn failure(&self) -> Detail {
        match self {
            CallResult::Done(_) | CallResult::Refused(_) => Detail::HandlerError,
            CallResult::NoHandler => Detail::HandlerMissing,
        }
    }

    /// Returns the reason of a call that was not done.
    pub(super) fn reason(&self) -> FailureReason {
        match self {
            CallResult::Refused(error) => FailureReason::Refused(error.clone()),
            CallResult::Done(_) | CallResult::NoHandler => FailureReason::NoHandler,
        }
    }

    /// Returns the text of the error, shortened for the log.
    pub(super) fn said(&self) -> Option<String> {
        match self {
            CallResult::Refused(error) => Some(error.said()),
            CallResult::Done(_) | CallResult::NoHandler => None,
        }
    }
}
