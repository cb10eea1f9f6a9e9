//! What an engine is made of.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use activity::ActivityIndex;
use domain::job::RetryPolicy;
use domain::limits::Limits;
use domain::workflow::Workflow;
use store::{Decoded, Store};

use crate::Engine;
use crate::clock::{Clock, SystemClock};
use crate::entropy::{Entropy, OsEntropy, Seeds};
use crate::pipeline::delivery::Provider;

/// The parts of an engine, before it has a store.
#[derive(Debug)]
pub struct Builder {
    clock: Box<dyn Clock>,
    seeds: Seeds,
    providers: Providers,
    retry: RetryPolicy,
    lease: Duration,
    limits: Limits,
    activity: ActivityIndex,
}

/// The parts of an engine.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) store: Box<dyn Store>,
    pub(crate) activity: ActivityIndex,
    pub(crate) workflows: Decoded<Workflow>,
    pub(crate) clock: Box<dyn Clock>,
    pub(crate) seeds: Seeds,
    pub(crate) providers: Providers,
    pub(crate) retry: RetryPolicy,
    pub(crate) lease: Duration,
    pub(crate) limits: Limits,
}

/// Who sends for which provider.
#[derive(Debug, Default)]
pub(crate) struct Providers {
    named: HashMap<String, Box<dyn Provider>>,
    default: Option<Box<dyn Provider>>,
}

impl Default for Builder {
    /// The system's clock and randomness, no providers, eight tries in half an hour, five minutes
    /// for a try.
    fn default() -> Self {
        Self {
            clock: Box::new(SystemClock),
            seeds: Seeds::new(OsEntropy),
            providers: Providers::default(),
            retry: RetryPolicy::default(),
            lease: Duration::from_secs(300),
            limits: Limits::default(),
            activity: ActivityIndex::default(),
        }
    }
}

impl Builder {
    /// Reads the time from `clock`.
    #[must_use]
    pub fn clock(self, clock: impl Clock) -> Self {
        Self { clock: Box::new(clock), ..self }
    }

    /// Makes ids and keys from `entropy`.
    #[must_use]
    pub fn entropy(self, entropy: impl Entropy) -> Self {
        Self { seeds: Seeds::new(entropy), ..self }
    }

    /// Sends through `provider` what goes through integrations of `provider_id`.
    #[must_use]
    pub fn provider(mut self, provider_id: impl Into<String>, provider: impl Provider) -> Self {
        self.providers.named.insert(provider_id.into(), Box::new(provider));
        self
    }

    /// Sends through `provider` what goes through integrations of providers without one of their
    /// own.
    #[must_use]
    pub fn default_provider(mut self, provider: impl Provider) -> Self {
        self.providers.default = Some(Box::new(provider));
        self
    }

    /// Tries again as `retry` says when a provider cannot send right now.
    #[must_use]
    pub fn retry(self, retry: RetryPolicy) -> Self {
        Self { retry, ..self }
    }

    /// Gives up on a try whose outcome nobody has reported after `lease`, and tries again. Up to 32
    /// messages are claimed at once and sent one after the other; what has not been sent by then is
    /// left for another turn.
    #[must_use]
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease, ..self }
    }

    /// Sets the limits on what callers hand in.
    ///
    /// ```
    /// use tidings::limits::Limits;
    /// use tidings::{Builder, store::memory::MemoryStore};
    ///
    /// let limits = Limits::default().payload(16 * 1024);
    /// let engine = Builder::default().limits(limits).build(MemoryStore::default());
    /// # drop(engine);
    /// ```
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Seals so many notifications into a segment of the activity index, in environments that have
    /// none yet: 16 to 61,440, and as many as that if nothing is said. Fewer than that are for
    /// tests that want to see segments.
    #[must_use]
    pub fn activity_segments(self, notifications: u32) -> Self {
        Self { activity: ActivityIndex::with_segments_of(notifications), ..self }
    }

    /// An engine of these parts that keeps its records in `store`.
    pub fn build(self, store: impl Store) -> Engine {
        let Self { clock, seeds, providers, retry, lease, limits, activity } = self;
        let store = Box::new(store);
        let workflows = Decoded::default();
        let parts =
            Parts { store, activity, workflows, clock, seeds, providers, retry, lease, limits };
        Engine { parts: Arc::new(parts) }
    }

    /// An engine of these parts that keeps its records in the file at `path`.
    ///
    /// # Errors
    ///
    /// As [`Engine::open`].
    #[cfg(feature = "redb")]
    pub fn open(self, path: impl AsRef<std::path::Path>) -> crate::Result<Engine> {
        Ok(self.build(store::redb::RedbStore::open(path)?))
    }
}

impl Providers {
    /// Who sends what goes through integrations of `provider_id`.
    pub(crate) fn of(&self, provider_id: &str) -> Option<&dyn Provider> {
        self.named.get(provider_id).or(self.default.as_ref()).map(AsRef::as_ref)
    }
}
