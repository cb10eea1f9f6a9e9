//! A provider for tests and trials: it sends nothing, and remembers everything.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use super::provider::{Delivery, Provider, ProviderReceipt, SendError};

/// Remembers what it is given. Clones share what they remember.
///
/// ```
/// use tidings::{Engine, Outbox};
///
/// let outbox = Outbox::default();
/// let engine = Engine::builder()
///     .default_provider(outbox.clone())
///     .build(tidings::store::memory::MemoryStore::default());
/// assert_eq!(outbox.sent().len(), 0);
/// # let _ = engine;
/// ```
#[derive(Clone, Debug, Default)]
pub struct Outbox {
    notebook: Arc<Mutex<Notebook>>,
}

#[derive(Debug, Default)]
struct Notebook {
    sent: Vec<Delivery>,
    refusals: VecDeque<SendError>,
}

impl Outbox {
    /// What it was given and did not refuse, oldest first.
    pub fn sent(&self) -> Vec<Delivery> {
        self.notebook.lock().sent.clone()
    }

    /// Refuses a delivery with `error`: the next one, or the one after those refused already.
    pub fn refuse_next(&self, error: SendError) {
        self.notebook.lock().refusals.push_back(error);
    }
}

impl Provider for Outbox {
    fn send(&self, delivery: &Delivery) -> Result<ProviderReceipt, SendError> {
        let mut notebook = self.notebook.lock();
        if let Some(error) = notebook.refusals.pop_front() {
            return Err(error);
        }
        notebook.sent.push(delivery.clone());
        Ok(ProviderReceipt::default())
    }
}
