//! Spans of operations, tasks and calls of providers, and events of workers that fail, for the crate
//! `tracing` (feature `tracing`).
//!
//! A span or an event has names, ids, numbers and the word of an outcome. It has nothing that a record
//! holds otherwise: no content, no address, no secret, and no text of an error.

pub(crate) use self::spans::{operation, provider_call, task, worker_failed};

#[cfg(feature = "tracing")]
mod spans {
    use std::time::Instant;

    use domain::ids::EnvironmentId;
    use domain::integration::Integration;
    use domain::task::{Task, Work};
    use tracing::field::{Empty, display};
    use tracing::{debug_span, error, info_span};

    use crate::{Error, Result};

    /// Runs an operation, such as `workflows.get`. Operations of the host have no environment.
    pub(crate) fn operation<T>(
        name: &'static str,
        environment: Option<EnvironmentId>,
        body: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let environment = environment.map(display);
        let span = debug_span!(target: "tidings", "operation", name, environment, outcome = Empty);
        let result = span.in_scope(body);
        span.record("outcome", outcome(&result));
        result
    }

    /// Does a task. `word` names the result.
    pub(crate) fn task<T>(
        task: &Task,
        attempt: u32,
        word: fn(&T) -> &'static str,
        body: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let span = debug_span!(
            target: "tidings",
            "task",
            kind = kind(&task.work),
            environment = %task.environment_id,
            workflow = Empty,
            attempt,
            outcome = Empty,
        );
        if let Some(workflow) = task.workflow_id {
            span.record("workflow", display(workflow));
        }
        let result = span.in_scope(body);
        span.record("outcome", result.as_ref().map_or_else(failure, word));
        result
    }

    /// Calls the provider of an integration. `word` names the answer.
    pub(crate) fn provider_call<T>(
        integration: &Integration,
        word: fn(&T) -> &'static str,
        body: impl FnOnce() -> T,
    ) -> T {
        let span = info_span!(
            target: "tidings",
            "provider_call",
            integration = %integration.id,
            provider = integration.provider_id,
            outcome = Empty,
            duration_ms = Empty,
        );
        let start = Instant::now();
        let answer = span.in_scope(body);
        span.record("outcome", word(&answer));
        let millis = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
        span.record("duration_ms", millis);
        answer
    }

    /// Tells that a worker has failed, by an error of the store or by a panic of the host's code.
    pub(crate) fn worker_failed(error: Option<&Error>) {
        let outcome = error.map_or("panicked", failure);
        error!(target: "tidings", outcome, "a worker has failed");
    }

    fn outcome<T>(result: &Result<T>) -> &'static str {
        result.as_ref().map_or_else(failure, |_| "ok")
    }

    fn failure(error: &Error) -> &'static str {
        match error {
            Error::Invalid(_) => "invalid",
            Error::NotFound { .. } => "not_found",
            Error::Conflict { .. } => "conflict",
            Error::BeingDeleted { .. } => "being_deleted",
            Error::Rejected(_) => "rejected",
            Error::Unauthorized(_) => "unauthorized",
            Error::Store(_) => "store_error",
        }
    }

    const fn kind(work: &Work) -> &'static str {
        match work {
            Work::Turn { .. } => "turn",
            Work::Send(_) => "send",
            Work::Close { .. } => "close",
            Work::Call { .. } => "call",
            Work::Sweep { .. } => "sweep",
            Work::FanOut { .. } => "fan_out",
            Work::Cancel { .. } => "cancel",
            Work::Release { .. } => "release",
            Work::Wake { .. } => "wake",
        }
    }
}

#[cfg(not(feature = "tracing"))]
mod spans {
    use domain::ids::EnvironmentId;
    use domain::integration::Integration;
    use domain::task::Task;

    use crate::{Error, Result};

    #[inline]
    pub(crate) fn worker_failed(_: Option<&Error>) {}

    #[inline]
    pub(crate) fn operation<T>(
        _: &'static str,
        _: Option<EnvironmentId>,
        body: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        body()
    }

    #[inline]
    pub(crate) fn task<T>(
        _: &Task,
        _: u32,
        _: fn(&T) -> &'static str,
        body: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        body()
    }

    #[inline]
    pub(crate) fn provider_call<T>(
        _: &Integration,
        _: fn(&T) -> &'static str,
        body: impl FnOnce() -> T,
    ) -> T {
        body()
    }
}
