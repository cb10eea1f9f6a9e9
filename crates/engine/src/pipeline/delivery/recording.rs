//! A provider for tests: it records deliveries and sends nothing.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use super::provider::{Delivery, Provider, ProviderReceipt, SendError};

/// A provider that records its deliveries. Clones share one record.
///
/// ```
/// use tidings::{Engine, RecordingProvider};
///
/// let recorder = RecordingProvider::default();
/// let engine = Engine::builder()
///     .default_provider(recorder.clone())
///     .build(tidings::store::memory::MemoryStore::default());
/// assert_eq!(recorder.sent().len(), 0);
/// # let _ = engine;
/// ```
#[derive(Clone, Debug, Default)]
pub struct RecordingProvider {
    notebook: Arc<Mutex<Notebook>>,
}

#[derive(Debug, Default)]
struct Notebook {
    sent: Vec<Delivery>,
    refusals: VecDeque<SendError>,
}

impl RecordingProvider {
    /// Returns the accepted deliveries, oldest first.
    pub fn sent(&self) -> Vec<Delivery> {
        self.notebook.lock().sent.clone()
    }

    /// Refuses one delivery with `error`. Several calls refuse as many deliveries, in the order of
    /// the calls.
    pub fn refuse_next(&self, error: SendError) {
        self.notebook.lock().refusals.push_back(error);
    }
}

impl Provider for RecordingProvider {
    fn send(&self, delivery: &Delivery) -> Result<ProviderReceipt, SendError> {
        let mut notebook = self.notebook.lock();
        if let Some(error) = notebook.refusals.pop_front() {
            return Err(error);
        }
        notebook.sent.push(delivery.clone());
        Ok(ProviderReceipt::default())
    }
}
