//! Calls: custom steps, which are functions of the host application.

use std::fmt;
use std::ops::ControlFlow::{self, Break, Continue};
use std::time::Duration;

use domain::ids::{JobId, NotificationId};
use domain::job::Detail;
use domain::json::Object;
use domain::notification::Notification;
use domain::plan;
use domain::subscriber::Subscriber;
use domain::task::Retry;

use super::FailureReason;
use super::lease::Leased;
use super::provider::SendError;
use super::task_result::{JobResult, TaskResult};
use crate::host::{self, Panicked};
use crate::pipeline::facts::RunFacts;
use crate::pipeline::live_events::LiveEvents;
use crate::resources::notifications;
use crate::tx::Reading;
use crate::{Engine, Result, Scope};

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
#[derive(Clone)]
#[non_exhaustive]
pub struct Call {
    /// Notification of the step.
    pub notification: Notification,
    /// Recipient.
    pub subscriber: Subscriber,
    pub(super) scope: Scope,
    pub(super) handler: String,
    pub(super) job: JobId,
    pub(super) attempts: u32,
}

// An engine has much to print.
impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("notification", &self.notification)
            .field("subscriber", &self.subscriber)
            .field("handler", &self.handler)
            .field("job", &self.job)
            .field("attempts", &self.attempts)
            .finish_non_exhaustive()
    }
}

/// Result of a call.
pub(super) type CallResult = std::result::Result<Option<Object>, CallFailure>;

/// Failure of a call.
#[derive(Debug)]
pub(super) enum CallFailure {
    /// Error of the handler.
    Handler(SendError),
    /// No handler is registered for the step.
    NoHandler,
}

impl Call {
    /// Returns the environment of the notification, for operations of the handler: it may trigger another
    /// event. A scope that the handler keeps keeps the file of the engine open.
    ///
    /// ```
    /// use tidings::{Call, Engine, SendError, trigger::Trigger};
    /// # use tidings::{step::Step, subscriber::SubscriberCreate, workflow::WorkflowCreate};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::builder()
    ///     .handler("tell the manager", |call: &Call| {
    ///         let permanent = |error: &dyn std::error::Error| SendError::permanent(error.to_string());
    ///         let event = format!("escalated-{}", call.idempotency_key());
    ///         let trigger = Trigger::new("escalated", "manager")
    ///             .and_then(|trigger| trigger.transaction_id(event))
    ///             .map_err(|error| permanent(&error))?;
    ///         call.scope().events().trigger(&trigger).map_err(|error| permanent(&error))?;
    ///         Ok(None)
    ///     })
    ///     .build(tidings::store::memory::MemoryStore::default());
    /// # let env = engine.organization("acme")?.development()?;
    /// # env.subscribers().create(&SubscriberCreate::new("manager")?)?;
    /// # env.workflows().create(
    /// #     &WorkflowCreate::new("escalated", "Escalated")?.step(Step::in_app("Look at this")?))?;
    /// # env.workflows().create(
    /// #     &WorkflowCreate::new("alarm", "Alarm")?.step(Step::custom("tell the manager")))?;
    /// env.events().trigger(&Trigger::new("alarm", "ada")?)?;
    /// engine.delivery().run_due(10)?;
    /// assert_eq!(env.inbox("manager")?.counts()?.unread, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Returns the key of the call, the same for every attempt.
    pub fn idempotency_key(&self) -> JobId {
        self.job
    }

    /// Returns the number of the attempt, from 1. Attempts that ended in a crash count.
    pub fn attempt(&self) -> u32 {
        self.attempts
    }
}

/// Decides a call on a snapshot. Breaks with the result if no call is made.
pub(super) fn prepare(
    engine: &Engine,
    leased: &Leased,
    notification_id: NotificationId,
    job_id: JobId,
) -> Result<ControlFlow<TaskResult, Box<Call>>> {
    let (home, now) = (leased.task.home(), leased.now(engine));
    engine.read_pure(|snapshot| {
        let view = Reading { engine, home: &home, snapshot };
        let Some(notification) = notifications::find(&view, notification_id)? else {
            return Ok(Break(TaskResult::Dropped));
        };
        let Some(number) = leased.task.work.job_in(&notification) else {
            return Ok(Break(TaskResult::Dropped));
        };
        let facts = RunFacts::of(&view, &notification, number, &LiveEvents::unbounded(now))?;
        if facts.is_workflow_paused() {
            return Ok(Break(TaskResult::Job(JobResult::WorkflowPaused)));
        }
        let run = facts.run(&view, &notification)?;
        let Some(job) = run.jobs.get(number) else { return Ok(Break(TaskResult::Dropped)) };
        let handler = match plan::call(&run, *job, facts.facts(now)) {
            Ok(handler) => handler.to_owned(),
            Err(refusal) => return Ok(Break(TaskResult::Job(JobResult::Refused(refusal)))),
        };
        let Some(subscriber) = facts.subscriber else { return Ok(Break(TaskResult::Dropped)) };
        let (scope, attempts) = (Scope::inside(engine.clone(), home.clone()), leased.attempt());
        let call = Call { notification, subscriber, scope, handler, job: job_id, attempts };
        Ok(Continue(Box::new(call)))
    })
}

/// Calls the handler. Its panic is an error that is retryable, and a result that is too large one that
/// is permanent: the work is done.
pub(super) fn call(engine: &Engine, call: &Call) -> CallResult {
    let handler = engine.parts.callbacks.handler(&call.handler).ok_or(CallFailure::NoHandler)?;
    let panicked = |Panicked| Err(SendError::unknown("the handler panicked"));
    let result = host::call(|| handler.call(call)).unwrap_or_else(panicked)?;
    let checked = engine.parts.settings.limits.check_result(result.as_ref());
    checked.map_err(|invalid| SendError::permanent(invalid.to_string()))?;
    Ok(result)
}

impl CallFailure {
    /// Returns the attempt that may follow. Another process of a store that `is_shared` may have the
    /// handler.
    pub(super) fn retry(&self, is_shared: bool) -> Retry {
        match self {
            CallFailure::Handler(error) => error.retry(),
            CallFailure::NoHandler if is_shared => Retry::Later(Duration::ZERO),
            CallFailure::NoHandler => Retry::Never,
        }
    }

    /// Returns the entry in the log of a job that fails.
    pub(super) const fn detail(&self) -> Detail {
        match self {
            CallFailure::Handler(_) => Detail::HandlerError,
            CallFailure::NoHandler => Detail::HandlerMissing,
        }
    }

    /// Returns the reason for the report.
    pub(super) fn reason(&self) -> FailureReason {
        match self {
            CallFailure::Handler(error) => FailureReason::Refused(error.shortened()),
            CallFailure::NoHandler => FailureReason::NoHandler,
        }
    }

    /// Returns the text of the error, shortened for the log.
    pub(super) fn text(&self) -> Option<String> {
        match self {
            CallFailure::Handler(error) => Some(error.text()),
            CallFailure::NoHandler => None,
        }
    }
}

impl From<SendError> for CallFailure {
    fn from(error: SendError) -> Self {
        CallFailure::Handler(error)
    }
}
