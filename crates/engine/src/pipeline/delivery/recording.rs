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
    recorded: Arc<Mutex<Recorded>>,
}

#[derive(Debug, Default)]
struct Recorded {
    sent: Vec<Delivery>,
    refusals: VecDeque<SendError>,
}

impl RecordingProvider {
    /// Returns the accepted deliveries, oldest first.
    pub fn sent(&self) -> Vec<Delivery> {
        self.recorded.lock().sent.clone()
    }

    /// Refuses one delivery with `error`. Several calls refuse as many deliveries, in the order of
    /// the calls.
    pub fn refuse_next(&self, error: SendError) {
        self.recorded.lock().refusals.push_back(error);
    }
}

impl Provider for RecordingProvider {
    fn send(&self, delivery: &Delivery) -> Result<ProviderReceipt, SendError> {
        let mut recorded = self.recorded.lock();
        if let Some(error) = recorded.refusals.pop_front() {
            return Err(error);
        }
        recorded.sent.push(delivery.clone());
        Ok(ProviderReceipt::default())
    }
}
