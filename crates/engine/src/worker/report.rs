//! The report of a worker.

use serde::Serialize;

use crate::DeliveryReport;

/// Results of a worker since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct WorkerReport {
    /// Results of the tasks.
    pub delivery: DeliveryReport,
    /// Number of errors of the store, and of panics of the host's code outside of providers. The
    /// worker goes on after a pause, or at once if the upkeep of the activity index has failed. An observer
    /// is told of each ([`Event::WorkerFailed`](crate::observer::Event::WorkerFailed)).
    pub errors: usize,
    /// Text of the last one.
    pub last_error: Option<String>,
    /// Number of threads that still work. After [`stop`](crate::Worker::stop), each of them is in a
    /// call of a provider. It stores the result, and ends, when the call is over.
    pub running: usize,
}
